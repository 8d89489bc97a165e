//! What only machine code can do in the libc: thread pointers, start and end.

use super::{Operation, supplied};
use crate::bug::{Bug, BugKind};
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The family.
pub const OPERATIONS: &[Operation] = &[
    supplied("__set_thread_area", set_thread_area),
    supplied("_init", nothing),
    supplied("_fini", nothing),
    supplied("llvm.trap", trap),
    supplied("llvm.ubsantrap", trap),
    supplied("llvm.debugtrap", trap),
    supplied("_Unwind_RaiseException", raise_exception),
    supplied("_Unwind_Resume", resume_exception),
];

fn nothing(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Void)
}

fn set_thread_area(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    vm.thread.fs_base = vm.concretize(args.get(0))?;
    Ok(Done::Value(Value::ZERO))
}

fn trap(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let message = format!("the program executed a trap ({})", args.name);
    Err(Bug::new(BugKind::Trap, message).into())
}

fn raise_exception(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let exception = vm.concretize(args.get(0))?;
    vm.raise(exception)
}

fn resume_exception(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    vm.resume_unwinding(args.get(0))?;
    Ok(Done::Moved)
}
