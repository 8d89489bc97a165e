//! memcpy and its family.

use super::{Operation, replaced};
use crate::bug::{Bug, BugKind};
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The family.
pub const OPERATIONS: &[Operation] = &[
    replaced("memcpy", memcpy),
    replaced("memmove", memmove),
    replaced("memset", memset),
    replaced("llvm.memcpy", memcpy),
    replaced("llvm.memcpy.inline", memcpy),
    replaced("llvm.memmove", memmove),
    replaced("llvm.memset", memset),
    replaced("llvm.memset.inline", memset),
];

fn memcpy(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (to, from, len) = ranges(vm, args)?;
    // Copying an object onto itself is what compilers make of `*p = *p`; real copies must not overlap.
    let overlap = to != from && to < from.wrapping_add(len) && from < to.wrapping_add(len);
    if overlap {
        let message = format!("memcpy of {len} bytes between ranges that overlap");
        return Err(Bug::new(BugKind::OverlappingCopy, message).into());
    }
    vm.copy_range(to, from, len);
    Ok(Done::Value(Value::concrete(to)))
}

fn memmove(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (to, from, len) = ranges(vm, args)?;
    vm.copy_range(to, from, len);
    Ok(Done::Value(Value::concrete(to)))
}

/// Target, source and length of a copy, all checked.
fn ranges(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<(u64, u64, u64), Interrupt> {
    let len = vm.concretize(args.get(2))?;
    let to = vm.concretize(args.get(0))?;
    let from = vm.concretize(args.get(1))?;
    vm.check_range(from, len, false)?;
    vm.check_range(to, len, true)?;
    Ok((to, from, len))
}

fn memset(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let len = vm.concretize(args.get(2))?;
    let to = vm.concretize(args.get(0))?;
    vm.check_range(to, len, true)?;
    let byte = vm.truncate(args.get(1), 8);
    match byte.as_concrete() {
        Some(byte) => {
            if let Some(object) = vm.memory.object_at_mut(to, len) {
                let offset = to - object.start;
                object.fill(offset, len, byte as u8);
            }
        }
        None => {
            for at in 0..len {
                vm.store(Value::concrete(to + at), 1, byte)?;
            }
        }
    }
    Ok(Done::Value(Value::concrete(to)))
}
