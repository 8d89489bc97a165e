//! Operations that the libc implements in assembly: thread pointer, process start and exit, system
//! calls.

use super::{Operation, supplied};
use crate::thread::OnReturn;
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, SystemCall, Vm};

/// The libc's system call wrapper that is a cancellation point.
const CANCELLABLE: &str = "__syscall_cp_asm";

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    supplied("__set_thread_area", set_thread_area),
    supplied("_init", nothing),
    supplied("_fini", nothing),
    supplied(CANCELLABLE, cancellable_system_call),
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

/// Executes a system call that is a cancellation point. Its arguments are a pointer to the
/// cancellation flag, the number, and the arguments of the system call. A cancellation request that
/// arrives while the call blocks is a signal, which the kernel model delivers.
fn cancellable_system_call(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let request = vm.load(args.get(0), 4)?;
    if vm.concretize(request)? != 0 && vm.begin_cancellation()? {
        return Ok(Done::Moved);
    }
    let values = std::array::from_fn(|at| args.get(at + 2));
    let call = SystemCall::new(args.get(1), values);
    Err(Interrupt::SystemCall(Box::new(call)))
}

impl Vm<'_> {
    /// Returns whether the call in progress is `__syscall_cp_asm`, at which threads are cancelled.
    pub fn at_cancellation_point(&self) -> bool {
        let call = self.current_call();
        call.is_some_and(|call| self.callee_name(call.callee) == CANCELLABLE)
    }

    /// Calls the libc's cancellation handler instead of a cancellable system call. Returns whether
    /// the program has one.
    pub fn begin_cancellation(&mut self) -> Result<bool, Interrupt> {
        let Some(function) = self.image.program().function("__cancel") else {
            return Ok(false);
        };
        self.push_frame(function, &[], None, OnReturn::Caller)?;
        Ok(true)
    }
}

/// `__clone(function, stack, flags, argument, parent_tid, tls, child_tid)`: the stack argument is
/// unused, because the vm allocates stacks.
fn clone(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    const CLONE: u64 = 56;
    let [flags, parent, tls, child] = [2, 4, 5, 6].map(|at| args.get(at));
    let call = SystemCall {
        number: Value::concrete(CLONE),
        args: [flags, args.get(1), parent, child, tls, Value::ZERO],
        entry: Some((args.get(0), args.get(3))),
        jump: None,
    };
    Err(Interrupt::SystemCall(Box::new(call)))
}

fn vfork(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    const VFORK: u64 = 58;
    let call = SystemCall::new(Value::concrete(VFORK), [Value::ZERO; 6]);
    Err(Interrupt::SystemCall(Box::new(call)))
}

/// Unmaps the stack of the running thread and ends the thread. Its frames are not in guest memory,
/// so this is an ordinary unmap.
fn unmap_self(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    const EXIT: u64 = 60;
    let base = vm.concretize(args.get(0))?;
    let len = vm.concretize(args.get(1))?;
    let stack = vm.stack();
    vm.memory.unmap(base, len, stack);
    let call = SystemCall::new(Value::concrete(EXIT), [Value::ZERO; 6]);
    Err(Interrupt::SystemCall(Box::new(call)))
}
