//! Kinds of findings, and the finding at one instruction.

use crate::stacks::StackId;

/// How a finding of a kind shows in a native run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NativeSign {
    /// The native run ends with one of these signals, or the kernel model or a checked build
    /// reports the same finding.
    Signals(&'static [i32]),
    /// The native run shows the same finding, and no signal.
    Reported,
    /// The native run does not show it: the program continues.
    Unseen,
}

/// A kind of checks that builds of a program can perform.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BuildCheck {
    /// Accesses to red zones around objects and to freed memory.
    Memory,
    /// Accesses outside the object that the pointer is derived from, and unreachable code.
    Bounds,
    /// Uninitialised values.
    Initialised,
}

const SIGILL: i32 = 4;
const SIGTRAP: i32 = 5;
const SIGABRT: i32 = 6;
const SIGBUS: i32 = 7;
const SIGFPE: i32 = 8;
const SIGSEGV: i32 = 11;
const ABORTS: &[i32] = &[SIGABRT, SIGILL, SIGTRAP];
const TRAPS: &[i32] = &[SIGILL, SIGTRAP, SIGSEGV];
const MEMORY_FAULTS: &[i32] = &[SIGSEGV, SIGBUS, SIGILL, SIGABRT];
const FILE_FAULTS: &[i32] = &[SIGBUS, SIGSEGV, SIGILL, SIGABRT];

/// Defines [`BugKind`] by rows: the documentation, the variant, the name, the sign in a native run,
/// and the checks of builds that detect the kind where native code may survive, in the order of
/// preference. Optimised native code may survive a defect that the unoptimised bitcode shows.
macro_rules! bug_kinds {
    ($($(#[$doc:meta])* $variant:ident: $name:literal, $sign:expr, [$($check:ident),*];)*) => {
        /// The kind of a finding. Reports show [`BugKind::name`].
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum BugKind {
            $($(#[$doc])* $variant,)*
        }

        impl BugKind {
            /// All kinds.
            pub const ALL: &'static [BugKind] = &[$(BugKind::$variant),*];

            /// Returns the name in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(BugKind::$variant => $name,)*
                }
            }

            /// Returns how a native run shows the finding.
            pub fn native_sign(self) -> NativeSign {
                use NativeSign::{Reported, Signals, Unseen};
                match self {
                    $(BugKind::$variant => $sign,)*
                }
            }

            /// Returns the checks of builds that detect the finding, in the order of preference.
            pub fn build_checks(self) -> &'static [BuildCheck] {
                match self {
                    $(BugKind::$variant => &[$(BuildCheck::$check),*],)*
                }
            }
        }
    };
}

bug_kinds! {
    /// An access outside of an object.
    OutOfBounds: "out-of-bounds", Signals(MEMORY_FAULTS), [Memory, Bounds];
    /// An access to a freed heap block or unmapped memory.
    UseAfterFree: "use-after-free", Signals(MEMORY_FAULTS), [Memory];
    /// An access to a stack slot of a function that has returned.
    UseAfterReturn: "use-after-return", Signals(MEMORY_FAULTS), [Memory];
    /// Access to a variable outside of its block, in unoptimised code.
    UseAfterScope: "use-after-scope", Signals(MEMORY_FAULTS), [Memory];
    /// A second deallocation of the same block.
    DoubleFree: "double-free", Signals(MEMORY_FAULTS), [Memory];
    /// A deallocation of something that is not a heap block.
    InvalidFree: "invalid-free", Signals(MEMORY_FAULTS), [Memory];
    /// An access through a null pointer.
    NullPointer: "null-pointer", Signals(MEMORY_FAULTS), [Memory];
    /// An access through a pointer that points to no object.
    WildPointer: "wild-pointer", Signals(MEMORY_FAULTS), [Memory];
    /// A write to constant memory.
    ReadOnlyWrite: "read-only-write", Signals(MEMORY_FAULTS), [Memory];
    /// An access that the protection of a page does not allow.
    ProtectedPage: "protected-page", Signals(MEMORY_FAULTS), [];
    /// An access to a mapped page past the end of its file (`SIGBUS`).
    BeyondFile: "beyond-file", Signals(FILE_FAULTS), [];
    /// A copy between overlapping ranges where C forbids it.
    OverlappingCopy: "overlapping-copy", Reported, [Memory];
    /// The stack is exhausted.
    StackOverflow: "stack-overflow", Signals(MEMORY_FAULTS), [];
    /// An allocation over the configured limit.
    HugeAllocation: "huge-allocation", Reported, [];
    /// A division or remainder by zero.
    DivisionByZero: "division-by-zero", Signals(&[SIGFPE]), [Memory];
    /// An integer overflow that `nsw`, `nuw` or the division excludes.
    Overflow: "overflow", Signals(&[SIGFPE]), [Memory];
    /// A shift by at least the width.
    UndefinedShift: "undefined-shift", Reported, [Memory];
    /// Control reached an `unreachable` instruction.
    Unreachable: "unreachable", Signals(TRAPS), [Memory, Bounds];
    /// Control reached a trap instruction.
    Trap: "trap", Signals(TRAPS), [];
    /// A failed assertion.
    Assertion: "assertion", Signals(ABORTS), [];
    /// A call of `abort`.
    Abort: "abort", Signals(ABORTS), [];
    /// A fatal signal.
    Signal: "signal", Reported, [];
    /// An uncaught C++ exception.
    UncaughtException: "uncaught-exception", Signals(ABORTS), [];
    /// A Rust panic that ends the program.
    Panic: "panic", Signals(ABORTS), [];
    /// A call through a pointer that is not a function.
    InvalidCall: "invalid-call", Signals(MEMORY_FAULTS), [];
    /// A read of a variadic argument after the last one.
    MissingArgument: "missing-argument", Unseen, [];
    /// A `longjmp` to an invalid target.
    BadJump: "bad-jump", Signals(MEMORY_FAULTS), [];
    /// A memory leak at exit.
    Leak: "leak", Reported, [];
    /// An index that leaves an array inside a larger object.
    Subobject: "subobject", Unseen, [];
    /// A decision that depends on uninitialised memory.
    Uninitialised: "uninitialised", Reported, [Initialised];
    /// An error that the program reported through the test API.
    UserReport: "user-report", Signals(ABORTS), [];
    /// An assumption that is false for all inputs of the path.
    InvalidAssumption: "invalid-assumption", Unseen, [];
    /// A path that exceeds its instruction limit or loops without progress.
    Hang: "hang", Reported, [];
    /// All threads or hosts wait forever.
    Deadlock: "deadlock", Reported, [];
    /// An invariant over all hosts does not hold.
    Invariant: "invariant", Unseen, [];
    /// A host did not end as the scenario requires.
    Expectation: "expectation", Unseen, [];
    /// A data race between two threads.
    DataRace: "data-race", Reported, [];
    /// Something that Everett does not support.
    Unsupported: "unsupported", Unseen, [];
    /// A query that the solver could not decide.
    SolverGaveUp: "solver-gave-up", Unseen, [];
}

impl BugKind {
    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<BugKind> {
        BugKind::ALL
            .iter()
            .copied()
            .find(|kind| kind.name() == name)
    }

    /// Returns whether this kind reports a limit of Everett, not a defect of the program.
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
    /// Call stack of the deallocation of the memory concerned.
    pub freed: Option<StackId>,
    /// Call stack of the other thread, for data races.
    pub other: Option<StackId>,
    /// The address at which a native run would raise a memory fault.
    pub address: Option<u64>,
    /// The signal of the exception that the processor raises, where the kind does not tell it.
    pub signal: Option<i32>,
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
            signal: None,
        }
    }

    /// Creates the finding of an instruction, or of an intrinsic that becomes one, which raises an
    /// exception wherever it is executed.
    pub(crate) fn trap(name: &str) -> Bug {
        let signal = match name {
            // Privileged, and software interrupts that programs may not raise: general protection.
            "hlt" | "int" => SIGSEGV,
            "int3" | "llvm.debugtrap" => SIGTRAP,
            _ => SIGILL,
        };
        let message = format!("the program executed a trap ({name})");
        Bug {
            signal: Some(signal),
            ..Bug::new(BugKind::Trap, message)
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
pub fn bytes(count: u64) -> String {
    match count {
        1 => "1 byte".to_owned(),
        _ => format!("{count} bytes"),
    }
}
