//! Replaced functions: a run can replace a function of the program by one that returns any number
//! of a range.

use everett_expr::{Arena, ExprId};
use everett_ir::code::ValueType;

use crate::bug::{Bug, BugKind};
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// Executes a call of a replaced function.
pub(super) fn replacement(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let Some(function) = vm.image.replaced(args.name) else {
        let message = format!("call of {}, which is not defined", args.name);
        return Err(Bug::new(BugKind::Unsupported, message).into());
    };
    let whole = 8 * function.bytes;
    let (low, high) = (function.low, function.high);
    let number = match low == high {
        true => vm.arena.constant(whole, low as u64),
        false => {
            let number = vm.input_number(&function.name, function.bytes)?;
            let is_within = is_within(vm.arena, number, (low, high));
            vm.assume(is_within)?;
            number
        }
    };
    let width = match args.call.result {
        ValueType::Void => return Ok(Done::Void),
        ValueType::Int(width) => u32::from(width),
        ValueType::Pointer => u64::BITS,
        _ => {
            let message = format!("a call of {} that takes no number from it", args.name);
            return Err(Bug::new(BugKind::Unsupported, message).into());
        }
    };
    let number = vm.arena.zext_or_trunc(number, width);
    Ok(Done::Value(Value::of_term(vm.arena, number)))
}

/// Returns the condition that a number is in a range. Numbers wrap, so this is correct for signed
/// and for unsigned ones.
pub fn is_within(arena: &mut Arena, number: ExprId, (low, high): (i64, i64)) -> ExprId {
    let width = arena.width(number);
    let (from, range) = (low as u64, high.wrapping_sub(low) as u64);
    let from = arena.constant(width, from);
    let range = arena.constant(width, range);
    let distance = arena.sub(number, from);
    arena.ule(distance, range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_signed_or_unsigned() {
        for (number, bounds, width, expected) in [
            (-3, (-3, 4), 16, true),
            (4, (-3, 4), 16, true),
            (5, (-3, 4), 16, false),
            (-4, (-3, 4), 16, false),
            (200, (0, 255), 8, true),
            (9, (10, 200), 8, false),
            (i64::MIN, (i64::MIN, i64::MAX), 64, true),
        ] {
            let mut arena = Arena::new();
            let number = arena.constant(width, number as u64);
            let answer = is_within(&mut arena, number, bounds);
            assert_eq!(
                arena.as_const(answer),
                Some(u64::from(expected)),
                "{bounds:?}"
            );
        }
    }
}
