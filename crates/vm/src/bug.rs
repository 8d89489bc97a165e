//! Kinds of findings, and the finding at one instruction.

use crate::stacks::StackId;

/// The kind of a finding. [`BugKind::name`] is what users see in reports.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BugKind {
    /// An access outside of an object.
    OutOfBounds,
    /// An access to a freed heap block or unmapped memory.
    UseAfterFree,
    /// An access to a stack slot of a function that has returned.
    UseAfterReturn,
    /// A second deallocation of the same block.
    DoubleFree,
    /// A deallocation of something that is not a heap block.
    InvalidFree,
    /// An access through a null pointer.
    NullPointer,
    /// An access through a pointer that points to no object.
    WildPointer,
    /// A write to constant memory.
    ReadOnlyWrite,
    /// An access that the protection of a page does not allow.
    ProtectedPage,
    /// An access to a mapped page past the end of its file (`SIGBUS`).
    BeyondFile,
    /// A copy between overlapping ranges where C forbids it.
    OverlappingCopy,
    /// The stack is exhausted.
    StackOverflow,
    /// An allocation over the configured limit.
    HugeAllocation,
    /// A division or remainder by zero.
    DivisionByZero,
    /// An integer overflow that `nsw`, `nuw` or the division excludes.
    Overflow,
    /// A shift by at least the width.
    UndefinedShift,
    /// Control reached an `unreachable` instruction.
    Unreachable,
    /// Control reached a trap instruction.
    Trap,
    /// A failed assertion.
    Assertion,
    /// A call of `abort`.
    Abort,
    /// A fatal signal.
    Signal,
    /// An uncaught C++ exception.
    UncaughtException,
    /// A Rust panic that ends the program.
    Panic,
    /// A call through a pointer that is not a function.
    InvalidCall,
    /// A `longjmp` to an invalid target.
    BadJump,
    /// A memory leak at exit.
    Leak,
    /// A decision on uninitialised memory.
    Uninitialised,
    /// An error that the program reported through the test API.
    UserReport,
    /// An assumption that is false for all inputs of the path.
    InvalidAssumption,
    /// A path that exceeds its instruction limit or loops without progress.
    Hang,
    /// All threads or hosts wait forever.
    Deadlock,
    /// An invariant over all hosts does not hold.
    Invariant,
    /// A host did not end as the scenario requires.
    Expectation,
    /// A data race between two threads.
    DataRace,
    /// Something that Everett does not support.
    Unsupported,
    /// A query that the solver could not decide.
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

    /// Whether this kind reports a limit of Everett, not a defect of the program.
    pub fn is_tool_limit(self) -> bool {
        matches!(self, BugKind::Unsupported | BugKind::SolverGaveUp)
    }
}

/// A finding at the instruction that is being executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bug {
    /// The kind.
    pub kind: BugKind,
    /// A one-line message for the user.
    pub message: String,
    /// Call stack of the allocation of the memory concerned.
    pub allocated: Option<StackId>,
    /// Call stack of its deallocation.
    pub freed: Option<StackId>,
    /// Call stack of the other thread, for data races.
    pub other: Option<StackId>,
    /// The address at which a native run would raise a memory fault.
    pub address: Option<u64>,
}

impl Bug {
    /// Creates a finding that concerns no memory object.
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

    /// Adds the address at which a native run would raise a memory fault.
    pub fn at(self, address: u64) -> Bug {
        Bug {
            address: Some(address),
            ..self
        }
    }
}

/// Formats a byte count for messages.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        1 => "1 byte".to_owned(),
        _ => format!("{count} bytes"),
    }
}
