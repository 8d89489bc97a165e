//! Index checks for arrays that are parts of larger objects.

use super::{Operation, supplied};
use crate::bug::{Bug, BugKind};
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family. Lowering emits them on request only.
pub const OPERATIONS: &[Operation] = &[supplied("everett.check_index", check_index)];

/// `check_index(index, width, limit)`: checks that the index, a signed number of this width, is
/// below the limit.
fn check_index(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (index, width, limit) = (args.get(0), args.get(1).bits as u32, args.get(2).bits);
    let message = "an index leaves its array, which is a part of a larger object or of a row";
    let index = index.to_term(vm.arena, width.clamp(1, 64));
    let index = vm.arena.sext(index, 64);
    let limit = vm.arena.constant(64, limit);
    let outside = vm.arena.uge(index, limit);
    vm.forbid(outside, || Bug::new(BugKind::Subobject, message))?;
    Ok(Done::Void)
}
