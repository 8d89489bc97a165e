//! x86 intrinsics of BMI, BMI2, PCLMUL, and what inline assembly shares with them.

use everett_expr::{Arena, ExprId};

use super::super::{Operation, supplied};
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    supplied("llvm.x86.bmi.pdep.32", pdep),
    supplied("llvm.x86.bmi.pdep.64", pdep),
    supplied("llvm.x86.bmi.pext.32", pext),
    supplied("llvm.x86.bmi.pext.64", pext),
    supplied("llvm.x86.bmi.bzhi.32", bzhi),
    supplied("llvm.x86.bmi.bzhi.64", bzhi),
    supplied("llvm.x86.bmi.bextr.32", bextr),
    supplied("llvm.x86.bmi.bextr.64", bextr),
    supplied("llvm.x86.pclmulqdq", pclmulqdq),
];

/// Moves bits between the low end and the places of a mask: to these places if they are spread.
pub fn by_mask(arena: &mut Arena, x: ExprId, mask: u64, spread: bool) -> ExprId {
    let width = arena.width(x);
    let mut bits = vec![arena.zero(1); width as usize];
    let places = (0..width).filter(|place| mask >> place & 1 != 0);
    for (low, place) in (0..).zip(places) {
        let (from, to) = if spread { (low, place) } else { (place, low) };
        bits[to as usize] = arena.extract(x, from, 1);
    }
    arena.concat_bytes(&bits)
}

/// Returns a number with as many low bits set as `count` says; all if these are its width or more.
pub fn low_ones(arena: &mut Arena, count: ExprId) -> ExprId {
    let width = arena.width(count);
    let one = arena.constant(width, 1);
    let limit = arena.constant(width, u64::from(width));
    let shifted = arena.shl(one, count);
    let ones = arena.sub(shifted, one);
    let all = arena.uge(count, limit);
    let zero = arena.zero(width);
    let full = arena.not(zero);
    arena.ite(all, full, ones)
}

/// Returns a byte of a control operand, as wide as the operand.
pub fn control_byte(arena: &mut Arena, control: ExprId, at: u32) -> ExprId {
    let width = arena.width(control);
    let byte = arena.extract(control, at, 8);
    arena.zext(byte, width)
}

/// Returns the bits that a control operand selects by start and length.
pub fn bit_field(arena: &mut Arena, x: ExprId, control: ExprId) -> ExprId {
    let start = control_byte(arena, control, 0);
    let length = control_byte(arena, control, 8);
    let shifted = arena.lshr(x, start);
    let mask = low_ones(arena, length);
    arena.and(shifted, mask)
}

/// Multiplies polynomials over two elements, of 64 bits each.
pub fn carryless_product(arena: &mut Arena, x: ExprId, y: ExprId) -> ExprId {
    let wide = arena.zext(x, 128);
    let zero = arena.zero(128);
    (0..64).fold(zero, |sum, at| {
        let bit = arena.extract(y, at, 1);
        let by = arena.constant(128, u64::from(at));
        let shifted = arena.shl(wide, by);
        let part = arena.ite(bit, shifted, zero);
        arena.xor(sum, part)
    })
}

fn operands(vm: &mut Vm<'_>, args: &Arguments<'_>) -> [ExprId; 2] {
    [0, 1].map(|index| vm.operand_term(args, index, args.width(index)))
}

fn mask_operation(vm: &mut Vm<'_>, args: &Arguments<'_>, spread: bool) -> Result<Done, Interrupt> {
    let [x, mask] = operands(vm, args);
    let mask = Value::of_term(vm.arena, mask);
    let mask = vm.concretize(mask)?;
    let result = by_mask(vm.arena, x, mask, spread);
    Ok(vm.done(result))
}

fn pdep(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    mask_operation(vm, args, true)
}

fn pext(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    mask_operation(vm, args, false)
}

fn bzhi(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let [x, index] = operands(vm, args);
    let count = control_byte(vm.arena, index, 0);
    let mask = low_ones(vm.arena, count);
    let result = vm.arena.and(x, mask);
    Ok(vm.done(result))
}

fn bextr(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let [x, control] = operands(vm, args);
    let result = bit_field(vm.arena, x, control);
    Ok(vm.done(result))
}

/// Multiplies one half of each vector, which the last argument selects.
fn pclmulqdq(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (_, x) = vm.lane_terms(args, 0)?;
    let (_, y) = vm.lane_terms(args, 1)?;
    let halves = args.operand(2).first().map_or(0, |value| value.bits);
    let (x, y) = (x[(halves & 1) as usize], y[(halves >> 4 & 1) as usize]);
    let product = carryless_product(vm.arena, x, y);
    let halves = [0, 64].map(|at| vm.arena.extract(product, at, 64));
    Ok(vm.done_lanes(halves))
}

#[cfg(test)]
mod tests {
    use crate::testing::{Harness, int};
    use everett_ir::code::ValueType;

    #[test]
    fn bits_are_those_of_the_processor() {
        let mut harness = Harness::new();
        let mut compute = |name: &str, x: u64, y: u64| {
            let args = [int(64, x.into()), int(64, y.into())];
            harness.compute(name, &args, ValueType::Int(64))[0].bits
        };
        let (x, mask) = (0x1234_5678_9abc_def0, 0xff00_ff00_ff00_ff00);
        assert_eq!(
            compute("llvm.x86.bmi.pdep.64", 0xabcd, 0xf0f0_f0f0),
            0xa0b0_c0d0
        );
        assert_eq!(compute("llvm.x86.bmi.pext.64", x, mask), 0x1256_9ade);
        assert_eq!(compute("llvm.x86.bmi.bzhi.64", x, 12), 0xef0);
        assert_eq!(compute("llvm.x86.bmi.bzhi.64", x, 64), x);
        assert_eq!(compute("llvm.x86.bmi.bextr.64", x, 0x1408), 0xabcde);
    }
}
