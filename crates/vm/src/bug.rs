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
pub(crate) const SIGFPE: i32 = 8;
const SIGSEGV: i32 = 11;
const ABORTS: &[i32] = &[SIGABRT, SIGILL, SIGTRAP];
const TRAPS: &[i32] = &[SIGILL, SIGTRAP, SIGSEGV];
const MEMORY_FAULTS: &[i32] = &[SIGSEGV, SIGBUS, SIGILL, SIGABRT];
const FILE_FAULTS: &[i32] = &[SIGBUS, SIGSEGV, SIGILL, SIGABRT];

/// The signal that native code gets where a finding makes it fault.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct NativeFault {
    /// The number of the signal.
    pub signal: i32,
    /// The `si_code`, and when it is certain.
    pub code: FaultCode,
}

/// The `si_code` of a fault.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FaultCode {
    /// Native code faults always.
    Certain(i32),
    /// Native code faults if no object is at the address, which the finding then has.
    AtAddress(i32),
    /// Native code may survive.
    Uncertain,
}

const fn fault(signal: i32, code: FaultCode) -> NativeFault {
    NativeFault { signal, code }
}

const UNMAPPED: i32 = 1;
const NO_ACCESS: i32 = 2;
const NO_SUCH_ADDRESS: i32 = 2;
const INTEGER_DIVISION: i32 = 1;
const ILLEGAL_OPERAND: i32 = 2;
const FROM_KERNEL: i32 = 0x80;
const FROM_THREAD: i32 = -6;

const NO_FAULT: NativeFault = fault(SIGSEGV, FaultCode::Uncertain);
const AT_ADDRESS: NativeFault = fault(SIGSEGV, FaultCode::AtAddress(UNMAPPED));
const NOT_MAPPED: NativeFault = fault(SIGSEGV, FaultCode::Certain(UNMAPPED));
const PROTECTED: NativeFault = fault(SIGSEGV, FaultCode::Certain(NO_ACCESS));
const NOT_IN_FILE: NativeFault = fault(SIGBUS, FaultCode::Certain(NO_SUCH_ADDRESS));
const DIVIDED: NativeFault = fault(SIGFPE, FaultCode::Certain(INTEGER_DIVISION));
const CALLS_ABORT: NativeFault = fault(SIGABRT, FaultCode::Certain(FROM_THREAD));
const MAY_ABORT: NativeFault = fault(SIGABRT, FaultCode::Uncertain);
const MAY_TRAP: NativeFault = fault(SIGILL, FaultCode::Uncertain);
const MAY_OVERFLOW: NativeFault = fault(SIGFPE, FaultCode::Uncertain);

/// KLEE's name of a finding: the suffix of its file (before `.err`), and its text.
type KleeName = Option<(&'static str, &'static str)>;
const KLEE_OUT_OF_BOUNDS: KleeName = Some(("ptr", "memory error: out of bound pointer"));

/// Defines [`BugKind`] by rows: the documentation, the variant, the name, the sign in a native run,
/// the fault of native code, the checks of builds that detect the kind where native code may
/// survive, in the order of preference, and KLEE's name. Optimised native code may survive a defect
/// that the unoptimised bitcode shows.
macro_rules! bug_kinds {
    ($($(#[$doc:meta])* $variant:ident: $name:literal, $sign:expr, $fault:expr,
       [$($check:ident),*], $klee:expr;)*) => {
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

            /// Returns the signal of native code that faults because of the finding.
            pub fn native_fault(self) -> NativeFault {
                match self {
                    $(BugKind::$variant => $fault,)*
                }
            }

            /// Returns the checks of builds that detect the finding, in the order of preference.
            pub fn build_checks(self) -> &'static [BuildCheck] {
                match self {
                    $(BugKind::$variant => &[$(BuildCheck::$check),*],)*
                }
            }

            /// Returns the suffix of KLEE's file and KLEE's text, if KLEE detects the kind and its
            /// text does not depend on the message.
            pub fn klee_name(self) -> Option<(&'static str, &'static str)> {
                match self {
                    $(BugKind::$variant => $klee,)*
                }
            }
        }
    };
}

bug_kinds! {
    /// An access outside of an object.
    OutOfBounds: "out-of-bounds", Signals(MEMORY_FAULTS), AT_ADDRESS, [Memory, Bounds],
        KLEE_OUT_OF_BOUNDS;
    /// An access to a freed heap block or unmapped memory.
    UseAfterFree: "use-after-free", Signals(MEMORY_FAULTS), AT_ADDRESS, [Memory],
        Some(("ptr", "memory error: use after free"));
    /// An access to a stack slot of a function that has returned.
    UseAfterReturn: "use-after-return", Signals(MEMORY_FAULTS), AT_ADDRESS, [Memory],
        KLEE_OUT_OF_BOUNDS;
    /// Access to a variable outside of its block, in unoptimised code.
    UseAfterScope: "use-after-scope", Signals(MEMORY_FAULTS), AT_ADDRESS, [Memory], None;
    /// A second deallocation of the same block.
    DoubleFree: "double-free", Signals(MEMORY_FAULTS), AT_ADDRESS, [Memory],
        Some(("ptr", "memory error: double free"));
    /// A deallocation of something that is not a heap block.
    InvalidFree: "invalid-free", Signals(MEMORY_FAULTS), AT_ADDRESS, [Memory],
        Some(("ptr", "memory error: invalid pointer: free"));
    /// An access through a null pointer.
    NullPointer: "null-pointer", Signals(MEMORY_FAULTS), AT_ADDRESS, [Memory],
        Some(("ptr", "memory error: null page access"));
    /// An access through a pointer that points to no object.
    WildPointer: "wild-pointer", Signals(MEMORY_FAULTS), AT_ADDRESS, [Memory], KLEE_OUT_OF_BOUNDS;
    /// A write to constant memory.
    ReadOnlyWrite: "read-only-write", Signals(MEMORY_FAULTS), PROTECTED, [Memory],
        Some(("read_only", "memory error: object read only"));
    /// An access that the protection of a page does not allow.
    ProtectedPage: "protected-page", Signals(MEMORY_FAULTS), PROTECTED, [], KLEE_OUT_OF_BOUNDS;
    /// An access to a mapped page past the end of its file (`SIGBUS`).
    BeyondFile: "beyond-file", Signals(FILE_FAULTS), NOT_IN_FILE, [], KLEE_OUT_OF_BOUNDS;
    /// A copy between overlapping ranges where C forbids it.
    OverlappingCopy: "overlapping-copy", Reported, NO_FAULT, [Memory], KLEE_OUT_OF_BOUNDS;
    /// The stack is exhausted.
    StackOverflow: "stack-overflow", Signals(MEMORY_FAULTS), NOT_MAPPED, [], None;
    /// An allocation over the configured limit.
    HugeAllocation: "huge-allocation", Reported, NO_FAULT, [],
        Some(("model", "concretized symbolic size"));
    /// A division or remainder by zero.
    DivisionByZero: "division-by-zero", Signals(&[SIGFPE]), DIVIDED, [Memory],
        Some(("div", "divide by zero"));
    /// An integer overflow that `nsw`, `nuw` or the division excludes.
    Overflow: "overflow", Signals(&[SIGFPE]), MAY_OVERFLOW, [Memory],
        Some(("overflow", "integer overflow"));
    /// A shift by at least the width.
    UndefinedShift: "undefined-shift", Reported, NO_FAULT, [Memory],
        Some(("overshift", "overshift error"));
    /// Control reached an `unreachable` instruction.
    Unreachable: "unreachable", Signals(TRAPS), MAY_TRAP, [Memory, Bounds],
        Some(("exec", "reached \"unreachable\" instruction"));
    /// Control reached a trap instruction.
    Trap: "trap", Signals(TRAPS), MAY_TRAP, [], None;
    /// A failed assertion.
    Assertion: "assertion", Signals(ABORTS), CALLS_ABORT, [], None;
    /// A call of `abort`.
    Abort: "abort", Signals(ABORTS), CALLS_ABORT, [], Some(("abort", "abort failure"));
    /// A fatal signal.
    Signal: "signal", Reported, NO_FAULT, [], None;
    /// An uncaught C++ exception.
    UncaughtException: "uncaught-exception", Signals(ABORTS), MAY_ABORT, [], None;
    /// A Rust panic that ends the program.
    Panic: "panic", Signals(ABORTS), MAY_ABORT, [], None;
    /// A call through a pointer that is not a function.
    InvalidCall: "invalid-call", Signals(MEMORY_FAULTS), NOT_MAPPED, [],
        Some(("exec", "invalid function pointer"));
    /// A read of a variadic argument after the last one.
    MissingArgument: "missing-argument", Unseen, NO_FAULT, [], KLEE_OUT_OF_BOUNDS;
    /// A `longjmp` to an invalid target.
    BadJump: "bad-jump", Signals(MEMORY_FAULTS), NO_FAULT, [], None;
    /// A memory leak at exit.
    Leak: "leak", Reported, NO_FAULT, [], None;
    /// An index that leaves an array inside a larger object.
    Subobject: "subobject", Unseen, NO_FAULT, [], KLEE_OUT_OF_BOUNDS;
    /// A decision that depends on uninitialised memory.
    Uninitialised: "uninitialised", Reported, NO_FAULT, [Initialised], None;
    /// An error that the program reported through the test API.
    UserReport: "user-report", Signals(ABORTS), NO_FAULT, [], None;
    /// An assumption that is false for all inputs of the path.
    InvalidAssumption: "invalid-assumption", Unseen, NO_FAULT, [], None;
    /// A path that exceeds its instruction limit or loops without progress.
    Hang: "hang", Reported, NO_FAULT, [], None;
    /// All threads or hosts wait forever.
    Deadlock: "deadlock", Reported, NO_FAULT, [], None;
    /// An invariant over all hosts does not hold.
    Invariant: "invariant", Unseen, NO_FAULT, [], None;
    /// A host did not end as the scenario requires.
    Expectation: "expectation", Unseen, NO_FAULT, [], None;
    /// A data race between two threads.
    DataRace: "data-race", Reported, NO_FAULT, [], None;
    /// Something that Everett does not support.
    Unsupported: "unsupported", Unseen, NO_FAULT, [], None;
    /// A query that the solver could not decide.
    SolverGaveUp: "solver-gave-up", Unseen, NO_FAULT, [],
        Some(("solver", "Query timed out (fork)."));
}

impl BugKind {
    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<BugKind> {
        BugKind::ALL
            .iter()
            .copied()
            .find(|kind| kind.name() == name)
    }

    /// Returns whether native code that faults because of the finding can get this signal from the
    /// processor.
    pub fn faults_with(self, signal: i32) -> bool {
        let fault = self.native_fault();
        fault.signal == signal && signal != SIGABRT && fault.code != FaultCode::Uncertain
    }

    /// Returns whether this kind reports a limit of Everett, not a defect of the program.
    pub fn is_tool_limit(self) -> bool {
        matches!(self, BugKind::Unsupported | BugKind::SolverGaveUp)
    }
}

/// The start of the message where a limit on nested calls cuts a path off. The text is KLEE's.
pub const MOST_FRAMES: &str = "Maximum stack size reached";

/// The message about `llvm.abs` of the least integer, where its result is poison. It is KLEE's.
pub const ABS_OF_LEAST: &str = "llvm.abs called with poison and INT_MIN";

/// The message of a check that the program was compiled with (`-fsanitize=`) begins with this.
pub const FAILED_CHECK: &str = "a check of the build failed: ";

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

    /// Returns the number of the signal that native code would get.
    pub fn native_signal(&self) -> i32 {
        self.signal.unwrap_or(self.kind.native_fault().signal)
    }

    /// Returns the `si_code` of that signal, if native code is certain to get it.
    pub fn fault_code(&self) -> Option<i32> {
        if let Some(signal) = self.signal {
            return Some(match signal {
                SIGILL => ILLEGAL_OPERAND,
                SIGFPE => INTEGER_DIVISION,
                _ => FROM_KERNEL,
            });
        }
        match self.kind.native_fault().code {
            FaultCode::Certain(code) => Some(code),
            FaultCode::AtAddress(code) => self.address.map(|_| code),
            FaultCode::Uncertain => None,
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

    /// Creates the finding of a check of `-fsanitize=` that fails. Natively it ends in a trap.
    pub(crate) fn failed_check(what: &str) -> Bug {
        Bug {
            signal: Some(SIGILL),
            ..Bug::new(BugKind::Trap, format!("{FAILED_CHECK}{what}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What confirms a finding natively and what a handler of the program gets are two columns of a
    /// row.
    #[test]
    fn a_certain_fault_is_a_sign_in_native_runs() {
        for kind in BugKind::ALL {
            let NativeFault { signal, code } = kind.native_fault();
            if let (NativeSign::Signals(signs), true) =
                (kind.native_sign(), code != FaultCode::Uncertain)
            {
                assert!(signs.contains(&signal), "{}", kind.name());
            } else {
                assert_eq!(code, FaultCode::Uncertain, "{}", kind.name());
            }
        }
    }

    #[test]
    fn a_fault_is_certain_at_an_address_or_by_the_processor() {
        let outside = Bug::new(BugKind::OutOfBounds, "outside");
        assert_eq!(outside.fault_code(), None);
        assert_eq!(outside.at(64).fault_code(), Some(UNMAPPED));
        assert_eq!(Bug::trap("int3").fault_code(), Some(FROM_KERNEL));
        assert!(BugKind::BeyondFile.faults_with(SIGBUS));
        assert!(!BugKind::Abort.faults_with(SIGABRT));
        assert!(!BugKind::Hang.faults_with(SIGSEGV));
    }
}
