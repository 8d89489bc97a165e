//! What can be wrong with a program.

use crate::stacks::StackId;

/// Kinds of findings. The names are what users see in reports.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BugKind {
    OutOfBounds,
    UseAfterFree,
    UseAfterReturn,
    DoubleFree,
    InvalidFree,
    NullPointer,
    WildPointer,
    ReadOnlyWrite,
    ProtectedPage,
    BeyondFile,
    OverlappingCopy,
    StackOverflow,
    HugeAllocation,
    DivisionByZero,
    Overflow,
    UndefinedShift,
    Unreachable,
    Trap,
    Assertion,
    Abort,
    Signal,
    UncaughtException,
    Panic,
    InvalidCall,
    BadJump,
    Leak,
    Uninitialised,
    UserReport,
    InvalidAssumption,
    Hang,
    Deadlock,
    /// An invariant over all hosts does not hold.
    Invariant,
    /// A host did not end as the scenario says that it must.
    Expectation,
    DataRace,
    Unsupported,
    SolverGaveUp,
}

impl BugKind {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            BugKind::OutOfBounds => "out-of-bounds",
            BugKind::UseAfterFree => "use-after-free",
            BugKind::UseAfterReturn => "use-after-return",
            BugKind::DoubleFree => "double-free",
            BugKind::InvalidFree => "invalid-free",
            BugKind::NullPointer => "null-pointer",
            BugKind::WildPointer => "wild-pointer",
            BugKind::ReadOnlyWrite => "read-only-write",
            BugKind::ProtectedPage => "protected-page",
            BugKind::BeyondFile => "beyond-file",
            BugKind::OverlappingCopy => "overlapping-copy",
            BugKind::StackOverflow => "stack-overflow",
            BugKind::HugeAllocation => "huge-allocation",
            BugKind::DivisionByZero => "division-by-zero",
            BugKind::Overflow => "overflow",
            BugKind::UndefinedShift => "undefined-shift",
            BugKind::Unreachable => "unreachable",
            BugKind::Trap => "trap",
            BugKind::Assertion => "assertion",
            BugKind::Abort => "abort",
            BugKind::Signal => "signal",
            BugKind::UncaughtException => "uncaught-exception",
            BugKind::Panic => "panic",
            BugKind::InvalidCall => "invalid-call",
            BugKind::BadJump => "bad-jump",
            BugKind::Leak => "leak",
            BugKind::Uninitialised => "uninitialised",
            BugKind::UserReport => "user-report",
            BugKind::InvalidAssumption => "invalid-assumption",
            BugKind::Hang => "hang",
            BugKind::Deadlock => "deadlock",
            BugKind::Invariant => "invariant",
            BugKind::Expectation => "expectation",
            BugKind::DataRace => "data-race",
            BugKind::Unsupported => "unsupported",
            BugKind::SolverGaveUp => "solver-gave-up",
        }
    }

    /// It says that this tool reached a limit, not that the program is wrong.
    pub fn is_tool_limit(self) -> bool {
        matches!(self, BugKind::Unsupported | BugKind::SolverGaveUp)
    }
}

/// Something wrong at the instruction that is executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bug {
    /// What kind.
    pub kind: BugKind,
    /// One line for people.
    pub message: String,
    /// Where the memory concerned was allocated.
    pub allocated: Option<StackId>,
    /// Where it was freed.
    pub freed: Option<StackId>,
    /// Where the other thread was that it races with.
    pub other: Option<StackId>,
    /// The address that the processor would not have let the program use.
    pub address: Option<u64>,
}

impl Bug {
    /// A finding without memory concerned.
    pub fn new(kind: BugKind, message: impl Into<String>) -> Bug {
        Bug {
            kind,
            message: message.into(),
            allocated: None,
            freed: None,
            other: None,
            address: None,
        }
    }

    /// The same, where the processor would not have let the program use this address.
    pub fn at(self, address: u64) -> Bug {
        Bug {
            address: Some(address),
            ..self
        }
    }
}

/// A number of bytes as people read it.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        1 => "1 byte".to_owned(),
        _ => format!("{count} bytes"),
    }
}
