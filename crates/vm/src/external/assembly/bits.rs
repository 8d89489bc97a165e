//! Inline assembly instructions that shift, rotate, count and scan bits.

use everett_expr::{BinaryOp, ExprId};

use super::super::intrinsics::integer::{count_ones, leading_zeros, reverse, trailing_zeros};
use super::super::intrinsics::x86::crc32c;
use super::super::intrinsics::x86_bits::{bit_field, by_mask, control_byte, low_ones};
use super::machine::{Location, Machine};
use super::parse::Instruction;
use crate::external::assembly::step::{Execute, Step, both, operand, set_result_flags, single};
use crate::value::Value;
use crate::vm::Interrupt;

/// The instructions.
pub const INSTRUCTIONS: &[(&str, Execute)] = &[
    ("shl", shl),
    ("sal", shl),
    ("shr", shr),
    ("sar", sar),
    ("rol", rol),
    ("ror", ror),
    ("shld", shld),
    ("shrd", shrd),
    ("bswap", bswap),
    ("bsf", bsf),
    ("bsr", bsr),
    ("tzcnt", tzcnt),
    ("lzcnt", lzcnt),
    ("popcnt", popcnt),
    ("bt", bt),
    ("bts", bts),
    ("btr", btr),
    ("btc", btc),
    ("andn", andn),
    ("bextr", bextr),
    ("bzhi", bzhi),
    ("blsi", blsi),
    ("blsr", blsr),
    ("blsmsk", blsmsk),
    ("pdep", pdep),
    ("pext", pext),
    ("rorx", rorx),
    ("shlx", shlx),
    ("shrx", shrx),
    ("sarx", sarx),
    ("movbe", movbe),
    ("crc32", crc32),
];

/// Returns the value to shift, its location, and the amount. A single operand is shifted by one.
fn shift_operands(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    suffix: Option<u32>,
) -> Result<(ExprId, Location, ExprId), Interrupt> {
    let last = operand(m, i, i.operands.len().saturating_sub(1))?;
    let (target, known) = m.locate(last)?;
    let Some(width) = suffix.or(known) else {
        return Err(m.args.unsupported("without a width"));
    };
    let x = m.read(target, width)?;
    let count = if i.operands.len() > 1 {
        let (source, _) = m.locate(operand(m, i, 0)?)?;
        m.read(source, 8)?
    } else {
        m.vm.arena.constant(8, 1)
    };
    // The processor uses the low five or six bits of the amount.
    let mask = if width == 64 { 63 } else { 31 };
    let mask = m.vm.arena.constant(8, mask);
    let count = m.vm.arena.and(count, mask);
    let count = m.vm.arena.zext(count, 2 * width);
    Ok((x, target, count))
}

/// Sets the flags of a shift. A shift by zero leaves them unchanged.
fn shift_flags(m: &mut Machine<'_, '_, '_>, count: ExprId, carry: ExprId, result: ExprId) {
    let before = m.flags;
    let width = m.vm.arena.width(count);
    let zero = m.vm.arena.zero(width);
    let none = m.vm.arena.eq(count, zero);
    set_result_flags(m, result);
    m.flags.carry = m.vm.arena.ite(none, before.carry, carry);
    m.flags.zero = m.vm.arena.ite(none, before.zero, m.flags.zero);
    m.flags.sign = m.vm.arena.ite(none, before.sign, m.flags.sign);
}

fn shl(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (x, target, count) = shift_operands(m, i, suffix)?;
    let width = m.vm.arena.width(x);
    let wide = m.vm.arena.zext(x, 2 * width);
    let shifted = m.vm.arena.shl(wide, count);
    let result = m.vm.arena.extract(shifted, 0, width);
    let carry = m.vm.arena.extract(shifted, width, 1);
    shift_flags(m, count, carry, result);
    m.write(target, result)
}

fn shift_right(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    suffix: Option<u32>,
    op: BinaryOp,
) -> Step {
    let (x, target, count) = shift_operands(m, i, suffix)?;
    let width = m.vm.arena.width(x);
    // One more bit at the low end keeps the bit that is shifted out last.
    let below = m.vm.arena.zero(width);
    let wide = m.vm.arena.concat(x, below);
    let shifted = m.vm.arena.binary(op, wide, count);
    let result = m.vm.arena.extract(shifted, width, width);
    let carry = m.vm.arena.extract(shifted, width - 1, 1);
    shift_flags(m, count, carry, result);
    m.write(target, result)
}

fn shr(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    shift_right(m, i, suffix, BinaryOp::LShr)
}

fn sar(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    shift_right(m, i, suffix, BinaryOp::AShr)
}

fn rotate(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>, left: bool) -> Step {
    let (x, target, count) = shift_operands(m, i, suffix)?;
    let width = m.vm.arena.width(x);
    let modulus = m.vm.arena.constant(2 * width, u64::from(width));
    let count = m.vm.arena.urem(count, modulus);
    let twice = m.vm.arena.concat(x, x);
    let (result, carry_bit) = if left {
        let shifted = m.vm.arena.shl(twice, count);
        (m.vm.arena.extract(shifted, width, width), 0)
    } else {
        let shifted = m.vm.arena.lshr(twice, count);
        (m.vm.arena.extract(shifted, 0, width), width - 1)
    };
    m.flags.carry = m.vm.arena.extract(result, carry_bit, 1);
    m.write(target, result)
}

fn rol(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    rotate(m, i, suffix, true)
}

fn ror(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    rotate(m, i, suffix, false)
}

/// Shifts in the bits of another register; the amount is the first operand.
fn double_shift(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    suffix: Option<u32>,
    left: bool,
) -> Step {
    let (x, target, count) = shift_operands(m, i, suffix)?;
    let width = m.vm.arena.width(x);
    let (source, _) = m.locate(operand(m, i, 1)?)?;
    let filler = m.read(source, width)?;
    let result = if left {
        let both = m.vm.arena.concat(x, filler);
        let shifted = m.vm.arena.shl(both, count);
        m.vm.arena.extract(shifted, width, width)
    } else {
        let both = m.vm.arena.concat(filler, x);
        let shifted = m.vm.arena.lshr(both, count);
        m.vm.arena.extract(shifted, 0, width)
    };
    m.write(target, result)
}

fn shld(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    double_shift(m, i, suffix, true)
}

fn shrd(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    double_shift(m, i, suffix, false)
}

fn bswap(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (x, target) = single(m, i, suffix)?;
    let result = reverse(m.vm.arena, x, 8);
    m.write(target, result)
}

/// Computes the position of a set bit. If no bit is set, the destination is unchanged.
fn scan(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>, lowest: bool) -> Step {
    let (x, old, target) = both(m, i, suffix)?;
    let width = m.vm.arena.width(x);
    let position = if lowest {
        trailing_zeros(m.vm.arena, x)
    } else {
        let zeros = leading_zeros(m.vm.arena, x);
        let top = m.vm.arena.constant(width, u64::from(width - 1));
        m.vm.arena.sub(top, zeros)
    };
    let zero = m.vm.arena.zero(width);
    m.flags.zero = m.vm.arena.eq(x, zero);
    let result = m.vm.arena.ite(m.flags.zero, old, position);
    m.write(target, result)
}

fn bsf(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    scan(m, i, suffix, true)
}

fn bsr(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    scan(m, i, suffix, false)
}

/// Sets the flags of a count of zeros: carry if the number is zero.
fn count_flags(m: &mut Machine<'_, '_, '_>, x: ExprId, result: ExprId) {
    let zero = m.vm.arena.zero(m.vm.arena.width(x));
    m.flags.carry = m.vm.arena.eq(x, zero);
    m.flags.zero = m.vm.arena.eq(result, zero);
}

fn tzcnt(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (x, _, target) = both(m, i, suffix)?;
    let result = trailing_zeros(m.vm.arena, x);
    count_flags(m, x, result);
    m.write(target, result)
}

fn lzcnt(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (x, _, target) = both(m, i, suffix)?;
    let result = leading_zeros(m.vm.arena, x);
    count_flags(m, x, result);
    m.write(target, result)
}

fn popcnt(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (x, _, target) = both(m, i, suffix)?;
    let width = m.vm.arena.width(x);
    let result = count_ones(m.vm.arena, x);
    let result = m.vm.arena.zext_or_trunc(result, width);
    clear_flags(m, x);
    m.write(target, result)
}

/// Clears carry and overflow, and sets zero and sign as a number says.
fn clear_flags(m: &mut Machine<'_, '_, '_>, result: ExprId) {
    set_result_flags(m, result);
    m.flags.carry = m.vm.arena.zero(1);
    m.flags.overflow = m.vm.arena.zero(1);
}

/// Copies one bit to the carry flag and applies `change` to it. A bit index in a register may
/// select a bit beyond the addressed word in memory.
fn one_bit(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    suffix: Option<u32>,
    change: Option<BinaryOp>,
) -> Step {
    let width = m.width(i, suffix)?;
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (mut target, _) = m.locate(operand(m, i, 1)?)?;
    let position = m.read(source, width)?;
    if let (Location::Memory(base), false) = (target, matches!(source, Location::Immediate(_))) {
        let wide = m.vm.arena.sext_or_trunc(position, 64);
        let by = m.vm.arena.constant(64, u64::from(width.trailing_zeros()));
        let word = m.vm.arena.ashr(wide, by);
        let bytes = m.vm.arena.constant(64, u64::from(width / 8));
        let offset = m.vm.arena.mul(word, bytes);
        let base = base.to_term(m.vm.arena, 64);
        let address = m.vm.arena.add(base, offset);
        target = Location::Memory(Value::of_term(m.vm.arena, address));
    }
    let x = m.read(target, width)?;
    let mask = m.vm.arena.constant(width, u64::from(width - 1));
    let position = m.vm.arena.and(position, mask);
    let shifted = m.vm.arena.lshr(x, position);
    m.flags.carry = m.vm.arena.extract(shifted, 0, 1);
    let Some(change) = change else {
        return Ok(());
    };
    let one = m.vm.arena.constant(width, 1);
    let mut bit = m.vm.arena.shl(one, position);
    if change == BinaryOp::And {
        bit = m.vm.arena.not(bit);
    }
    let result = m.vm.arena.binary(change, x, bit);
    m.write(target, result)
}

fn bt(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    one_bit(m, i, suffix, None)
}

fn bts(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    one_bit(m, i, suffix, Some(BinaryOp::Or))
}

fn btr(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    one_bit(m, i, suffix, Some(BinaryOp::And))
}

fn btc(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    one_bit(m, i, suffix, Some(BinaryOp::Xor))
}

/// Reads the two sources of an instruction with three operands; also returns the location of its
/// destination. The last operand of the sources comes first.
fn sources(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    suffix: Option<u32>,
) -> Result<(ExprId, ExprId, Location), Interrupt> {
    let width = m.width(i, suffix)?;
    let (last, _) = m.locate(operand(m, i, 0)?)?;
    let (first, _) = m.locate(operand(m, i, 1)?)?;
    let (target, _) = m.locate(operand(m, i, 2)?)?;
    Ok((m.read(first, width)?, m.read(last, width)?, target))
}

fn andn(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (inverted, x, target) = sources(m, i, suffix)?;
    let inverted = m.vm.arena.not(inverted);
    let result = m.vm.arena.and(inverted, x);
    clear_flags(m, result);
    m.write(target, result)
}

fn bextr(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (x, control, target) = sources(m, i, suffix)?;
    let result = bit_field(m.vm.arena, x, control);
    clear_flags(m, result);
    m.write(target, result)
}

fn bzhi(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (x, index, target) = sources(m, i, suffix)?;
    let count = control_byte(m.vm.arena, index, 0);
    let mask = low_ones(m.vm.arena, count);
    let result = m.vm.arena.and(x, mask);
    clear_flags(m, result);
    let width = m.vm.arena.width(x);
    let limit = m.vm.arena.constant(width, u64::from(width));
    m.flags.carry = m.vm.arena.uge(count, limit);
    m.write(target, result)
}

/// Combines a number with the one below it (`with_below`), or with its negation. The carry says
/// whether the number is zero, or is not.
fn lowest_bit(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    suffix: Option<u32>,
    op: BinaryOp,
    with_below: bool,
) -> Step {
    let (x, _, target) = both(m, i, suffix)?;
    let width = m.vm.arena.width(x);
    let zero = m.vm.arena.zero(width);
    let is_zero = m.vm.arena.eq(x, zero);
    let (other, carry) = if with_below {
        let one = m.vm.arena.constant(width, 1);
        (m.vm.arena.sub(x, one), is_zero)
    } else {
        (m.vm.arena.sub(zero, x), m.vm.arena.not(is_zero))
    };
    let result = m.vm.arena.binary(op, x, other);
    clear_flags(m, result);
    m.flags.carry = carry;
    m.write(target, result)
}

fn blsi(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    lowest_bit(m, i, suffix, BinaryOp::And, false)
}

fn blsr(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    lowest_bit(m, i, suffix, BinaryOp::And, true)
}

fn blsmsk(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    lowest_bit(m, i, suffix, BinaryOp::Xor, true)
}

/// Moves bits to or from the places of a mask, which is concretised.
fn masked(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>, spread: bool) -> Step {
    let (x, mask, target) = sources(m, i, suffix)?;
    let mask = Value::of_term(m.vm.arena, mask);
    let mask = m.vm.concretize(mask)?;
    let result = by_mask(m.vm.arena, x, mask, spread);
    m.write(target, result)
}

fn pdep(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    masked(m, i, suffix, true)
}

fn pext(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    masked(m, i, suffix, false)
}

/// Shifts the second operand by the first, without changing flags.
fn shift_quietly(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    suffix: Option<u32>,
    op: BinaryOp,
) -> Step {
    let (x, count, target) = sources(m, i, suffix)?;
    let width = m.vm.arena.width(x);
    let mask = m.vm.arena.constant(width, u64::from(width - 1));
    let count = m.vm.arena.and(count, mask);
    let result = m.vm.arena.binary(op, x, count);
    m.write(target, result)
}

fn shlx(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    shift_quietly(m, i, suffix, BinaryOp::Shl)
}

fn shrx(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    shift_quietly(m, i, suffix, BinaryOp::LShr)
}

fn sarx(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    shift_quietly(m, i, suffix, BinaryOp::AShr)
}

fn rorx(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (x, count, target) = sources(m, i, suffix)?;
    let width = m.vm.arena.width(x);
    let mask = m.vm.arena.constant(width, u64::from(width - 1));
    let count = m.vm.arena.and(count, mask);
    let count = m.vm.arena.zext(count, 2 * width);
    let twice = m.vm.arena.concat(x, x);
    let shifted = m.vm.arena.lshr(twice, count);
    let result = m.vm.arena.extract(shifted, 0, width);
    m.write(target, result)
}

fn movbe(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let width = m.width(i, suffix)?;
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (target, _) = m.locate(operand(m, i, 1)?)?;
    let x = m.read(source, width)?;
    let result = reverse(m.vm.arena, x, 8);
    m.write(target, result)
}

/// Adds the bits of the source to a CRC-32C in the low half of the destination.
fn crc32(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let (source, known) = m.locate(operand(m, i, 0)?)?;
    let (target, _) = m.locate(operand(m, i, 1)?)?;
    let Some(width) = suffix.or(known) else {
        return Err(m.args.unsupported("without a width"));
    };
    let crc = m.read(target, 32)?;
    let data = m.read(source, width)?;
    let result = crc32c(m.vm.arena, crc, data);
    let result = m.vm.arena.zext(result, 64);
    m.write(target, result)
}
