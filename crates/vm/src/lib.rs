//! Executes lowered programs: memory, frames, stepping, the operations that programs find in the vm.
//!
//! Everything of a process that changes is a value: cloning a [`Memory`] or a [`Thread`] forks it. The vm
//! never asks a solver and never draws a random number; it asks an [`Oracle`].

mod access;
mod anywhere;
mod atomic;
mod bug;
mod call;
mod choice;
pub mod external;
mod floating;
mod image;
mod integer;
mod interpreter;
mod leak;
mod memory;
mod oracle;
mod points;
mod races;
mod rare_floats;
mod stacks;
#[cfg(test)]
mod testing;
mod thread;
mod uninitialised;
mod unwind;
mod value;
mod vm;

pub use access::Place;
pub use bug::{Bug, BugKind};
pub use choice::{ChoiceSite, FaultNames, UnknownSite};
pub use external::processor;
pub use image::{Image, ImageError, ImageId};
pub use leak::{Leak, leak_finding, leaked_blocks};
pub use memory::{
    BREAK_END, BREAK_START, Backing, Buffer, Fault, FileView, MAX_STACKS, Mapping, Memory, Object,
    ObjectKind, PAGE, Pages, Placement, Protection, Traits,
};
pub use oracle::{ConcreteOracle, Oracle, Suspend};
pub use points::Points;
pub use stacks::{CallSite, StackId, StackTable};
pub use thread::{Frame, OnReturn, Thread, Variadic, VariadicArgument};
pub use value::{Value, mask, resize, signed};
pub use vm::{
    Arguments, Coverage, Done, Exit, Interrupt, Jump, OWN_CALLS, Surroundings, SystemCall, Vm,
    VmOptions,
};
