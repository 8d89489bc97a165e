//! What only machine code can do in the libc: thread pointers, start and end, system calls.

use super::{Operation, supplied};
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, SystemCall, Vm};

/// The family.
pub const OPERATIONS: &[Operation] = &[
    supplied("__set_thread_area", set_thread_area),
    supplied("_init", nothing),
    supplied("_fini", nothing),
    supplied("__syscall_cp_asm", cancellable_system_call),
];

fn nothing(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Void)
}

fn set_thread_area(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    vm.thread.fs_base = vm.concretize(args.get(0))?;
    Ok(Done::Value(Value::ZERO))
}

/// A system call at which a thread can be cancelled: a pointer to the request for it, the number, the arguments.
/// Cancellation is a signal, which the kernel delivers, so the request is not looked at.
fn cancellable_system_call(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let call = SystemCall {
        number: args.get(1),
        args: std::array::from_fn(|at| args.get(at + 2)),
    };
    Err(Interrupt::SystemCall(Box::new(call)))
}
