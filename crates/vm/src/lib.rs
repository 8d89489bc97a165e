//! The interpreter for lowered programs: memory, stack frames, instructions and built-in
//! operations.
//!
//! All mutable process state is a value: cloning a [`Memory`] or a [`Thread`] forks it. The vm
//! never calls a solver and never draws a random number; it asks an [`Oracle`].

#![deny(missing_docs)]

mod access;
mod anywhere;
mod atomic;
mod bug;
mod call;
mod call_arguments;
mod choice;
pub mod external;
mod floating;
mod function_faults;
mod image;
mod integer;
mod interpreter;
mod leak;
mod memory;
mod merging;
mod options;
mod oracle;
mod outside;
mod positions;
mod preemption;
mod race_checks;
mod races;
mod rare_floats;
mod room;
mod stacks;
mod stride;
#[cfg(test)]
mod testing;
mod thread;
mod uninitialised;
mod unwind;
mod value;
mod vm;
mod writes;

pub use access::AccessTarget;
pub use bug::{
    ABS_OF_LEAST, Bug, BugKind, BuildCheck, FAILED_CHECK, FaultCode, MOST_FRAMES, NativeFault,
    NativeSign, bytes,
};
pub use call_arguments::{ShownArgument, shown_arguments};
pub use choice::{ChoiceSite, FaultNames, UnknownSite};
pub use external::{
    CHECK_MEMORY_ACCESS, MAKE_SYMBOLIC, MISSING_ARGUMENTS, SYMBOLIC_TEXT, TEXT, is_within,
    processor,
};
pub use function_faults::{FailingFunction, FunctionFailure, FunctionFaults, STREAM_ERROR};
pub use image::{Image, ImageError, Replaced};
pub use leak::{Leak, leak_finding, leaked_blocks};
pub use memory::{
    AccessFault, BREAK_END, BREAK_START, Backing, Buffer, FileView, MAX_STACKS, Mapping,
    MappingTraits, Memory, Merge, Object, ObjectKind, OnFork, PAGE, Pages, Placement, Protection,
    WrittenPages, made_bytes,
};
pub use options::VmOptions;
pub use oracle::{ConcreteOracle, Narrowed, Note, Oracle, Suspend};
pub use outside::{Outside, OutsideAnswer, OutsideQuestion};
pub use room::take_needed_bytes;
pub use stacks::{CallSite, ImageId, StackId, StackTable};
pub use thread::{FloatEnvironment, Frame, OnReturn, Thread, Variadic, VariadicArgument};
pub use value::{Value, mask, resize, signed};
pub use vm::{
    Arguments, Coverage, Declined, Done, ExecContext, Exit, HYPERCALL_BASE, Interrupt, JumpTarget,
    PreemptionPoints, SystemCall, Vm,
};
pub use writes::WriteLog;
