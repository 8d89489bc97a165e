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
    supplied("__clone", clone),
    supplied("vfork", vfork),
    supplied("__vfork", vfork),
    supplied("__unmapself", unmap_self),
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
        entry: None,
    };
    Err(Interrupt::SystemCall(Box::new(call)))
}

/// `__clone(function, stack, flags, argument, parent_tid, tls, child_tid)`: stacks are the vm's own.
fn clone(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    const CLONE: u64 = 56;
    let [flags, parent, tls, child] = [2, 4, 5, 6].map(|at| args.get(at));
    let call = SystemCall {
        number: Value::concrete(CLONE),
        args: [flags, args.get(1), parent, child, tls, Value::ZERO],
        entry: Some((args.get(0), args.get(3))),
    };
    Err(Interrupt::SystemCall(Box::new(call)))
}

fn vfork(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    const VFORK: u64 = 58;
    let call = SystemCall {
        number: Value::concrete(VFORK),
        args: [Value::ZERO; 6],
        entry: None,
    };
    Err(Interrupt::SystemCall(Box::new(call)))
}

/// A thread takes its own stack away and ends. Its frames are not there, so that nothing is in the way.
fn unmap_self(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    const EXIT: u64 = 60;
    let base = vm.concretize(args.get(0))?;
    let stack = vm.stack();
    vm.memory
        .free(base, crate::memory::ObjectKind::Mapping, stack)?;
    let call = SystemCall {
        number: Value::concrete(EXIT),
        args: [Value::ZERO; 6],
        entry: None,
    };
    Err(Interrupt::SystemCall(Box::new(call)))
}
