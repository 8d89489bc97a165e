//! Inline assembly instructions on vector registers: SSE to SSE4.1, on integers and on single numbers.

use everett_expr::{Arena, BinaryOp, CompareOp, ExprId, FloatCompareOp, FloatFormat, FloatOp};

use super::super::intrinsics::x86_bits::carryless_product;
use super::machine::{Location, Machine, VECTOR};
use super::parse::Instruction;
use super::step::{Execute, Step, both, operand};
use crate::value::Value;
use crate::vm::Interrupt;

/// The instructions.
pub const INSTRUCTIONS: &[(&str, Execute)] = &[
    ("movdqa", copy),
    ("movdqu", copy),
    ("lddqu", copy),
    ("movaps", copy),
    ("movups", copy),
    ("movapd", copy),
    ("movupd", copy),
    ("movntdq", copy),
    ("movntdqa", copy),
    ("movntps", copy),
    ("movntpd", copy),
    ("movd", movd),
    ("movq", movq),
    ("movss", |m, i, _| copy_scalar(m, i, 32)),
    ("movsd", |m, i, _| copy_scalar(m, i, 64)),
    ("pxor", |m, i, _| whole(m, i, Arena::xor)),
    ("xorps", |m, i, _| whole(m, i, Arena::xor)),
    ("xorpd", |m, i, _| whole(m, i, Arena::xor)),
    ("por", |m, i, _| whole(m, i, Arena::or)),
    ("orps", |m, i, _| whole(m, i, Arena::or)),
    ("orpd", |m, i, _| whole(m, i, Arena::or)),
    ("pand", |m, i, _| whole(m, i, Arena::and)),
    ("andps", |m, i, _| whole(m, i, Arena::and)),
    ("andpd", |m, i, _| whole(m, i, Arena::and)),
    ("pandn", |m, i, _| whole(m, i, and_not)),
    ("andnps", |m, i, _| whole(m, i, and_not)),
    ("andnpd", |m, i, _| whole(m, i, and_not)),
    ("paddb", |m, i, _| lanes(m, i, 8, Arena::add)),
    ("paddw", |m, i, _| lanes(m, i, 16, Arena::add)),
    ("paddd", |m, i, _| lanes(m, i, 32, Arena::add)),
    ("paddq", |m, i, _| lanes(m, i, 64, Arena::add)),
    ("psubb", |m, i, _| lanes(m, i, 8, Arena::sub)),
    ("psubw", |m, i, _| lanes(m, i, 16, Arena::sub)),
    ("psubd", |m, i, _| lanes(m, i, 32, Arena::sub)),
    ("psubq", |m, i, _| lanes(m, i, 64, Arena::sub)),
    ("pmullw", |m, i, _| lanes(m, i, 16, Arena::mul)),
    ("pmulld", |m, i, _| lanes(m, i, 32, Arena::mul)),
    ("pmuludq", |m, i, _| lanes(m, i, 64, low_product)),
    ("pcmpeqb", |m, i, _| lanes(m, i, 8, equal)),
    ("pcmpeqw", |m, i, _| lanes(m, i, 16, equal)),
    ("pcmpeqd", |m, i, _| lanes(m, i, 32, equal)),
    ("pcmpeqq", |m, i, _| lanes(m, i, 64, equal)),
    ("pcmpgtb", |m, i, _| lanes(m, i, 8, greater)),
    ("pcmpgtw", |m, i, _| lanes(m, i, 16, greater)),
    ("pcmpgtd", |m, i, _| lanes(m, i, 32, greater)),
    ("pminub", |m, i, _| {
        lanes(m, i, 8, |a, x, y| least(a, CompareOp::Ult, x, y))
    }),
    ("pmaxub", |m, i, _| {
        lanes(m, i, 8, |a, x, y| greatest(a, CompareOp::Ult, x, y))
    }),
    ("pminsw", |m, i, _| {
        lanes(m, i, 16, |a, x, y| least(a, CompareOp::Slt, x, y))
    }),
    ("pmaxsw", |m, i, _| {
        lanes(m, i, 16, |a, x, y| greatest(a, CompareOp::Slt, x, y))
    }),
    ("psllw", |m, i, _| shift(m, i, 16, BinaryOp::Shl)),
    ("pslld", |m, i, _| shift(m, i, 32, BinaryOp::Shl)),
    ("psllq", |m, i, _| shift(m, i, 64, BinaryOp::Shl)),
    ("psrlw", |m, i, _| shift(m, i, 16, BinaryOp::LShr)),
    ("psrld", |m, i, _| shift(m, i, 32, BinaryOp::LShr)),
    ("psrlq", |m, i, _| shift(m, i, 64, BinaryOp::LShr)),
    ("psraw", |m, i, _| shift(m, i, 16, BinaryOp::AShr)),
    ("psrad", |m, i, _| shift(m, i, 32, BinaryOp::AShr)),
    ("pslldq", |m, i, _| shift_bytes(m, i, BinaryOp::Shl)),
    ("psrldq", |m, i, _| shift_bytes(m, i, BinaryOp::LShr)),
    ("palignr", palignr),
    ("pshufb", pshufb),
    ("pshufd", |m, i, _| shuffle_words(m, i, 32, 0)),
    ("pshuflw", |m, i, _| shuffle_words(m, i, 16, 0)),
    ("pshufhw", |m, i, _| shuffle_words(m, i, 16, 4)),
    ("punpcklbw", |m, i, _| interleave(m, i, 8, false)),
    ("punpcklwd", |m, i, _| interleave(m, i, 16, false)),
    ("punpckldq", |m, i, _| interleave(m, i, 32, false)),
    ("punpcklqdq", |m, i, _| interleave(m, i, 64, false)),
    ("punpckhbw", |m, i, _| interleave(m, i, 8, true)),
    ("punpckhwd", |m, i, _| interleave(m, i, 16, true)),
    ("punpckhdq", |m, i, _| interleave(m, i, 32, true)),
    ("punpckhqdq", |m, i, _| interleave(m, i, 64, true)),
    ("unpcklps", |m, i, _| interleave(m, i, 32, false)),
    ("unpckhps", |m, i, _| interleave(m, i, 32, true)),
    ("pmovmskb", |m, i, _| signs(m, i, 8)),
    ("movmskps", |m, i, _| signs(m, i, 32)),
    ("movmskpd", |m, i, _| signs(m, i, 64)),
    ("ptest", ptest),
    ("pextrw", |m, i, _| extract_lane(m, i, 16)),
    ("pextrb", |m, i, _| extract_lane(m, i, 8)),
    ("pextrd", |m, i, _| extract_lane(m, i, 32)),
    ("pextrq", |m, i, _| extract_lane(m, i, 64)),
    ("pinsrw", |m, i, _| insert_lane(m, i, 16)),
    ("pinsrb", |m, i, _| insert_lane(m, i, 8)),
    ("pinsrd", |m, i, _| insert_lane(m, i, 32)),
    ("pinsrq", |m, i, _| insert_lane(m, i, 64)),
    ("pclmulqdq", pclmulqdq),
    ("addss", |m, i, _| {
        floats(m, i, FloatFormat::Single, FloatOp::Add, 1)
    }),
    ("subss", |m, i, _| {
        floats(m, i, FloatFormat::Single, FloatOp::Sub, 1)
    }),
    ("mulss", |m, i, _| {
        floats(m, i, FloatFormat::Single, FloatOp::Mul, 1)
    }),
    ("divss", |m, i, _| {
        floats(m, i, FloatFormat::Single, FloatOp::Div, 1)
    }),
    ("addps", |m, i, _| {
        floats(m, i, FloatFormat::Single, FloatOp::Add, 4)
    }),
    ("subps", |m, i, _| {
        floats(m, i, FloatFormat::Single, FloatOp::Sub, 4)
    }),
    ("mulps", |m, i, _| {
        floats(m, i, FloatFormat::Single, FloatOp::Mul, 4)
    }),
    ("divps", |m, i, _| {
        floats(m, i, FloatFormat::Single, FloatOp::Div, 4)
    }),
    ("addsd", |m, i, _| {
        floats(m, i, FloatFormat::Double, FloatOp::Add, 1)
    }),
    ("subsd", |m, i, _| {
        floats(m, i, FloatFormat::Double, FloatOp::Sub, 1)
    }),
    ("mulsd", |m, i, _| {
        floats(m, i, FloatFormat::Double, FloatOp::Mul, 1)
    }),
    ("divsd", |m, i, _| {
        floats(m, i, FloatFormat::Double, FloatOp::Div, 1)
    }),
    ("addpd", |m, i, _| {
        floats(m, i, FloatFormat::Double, FloatOp::Add, 2)
    }),
    ("subpd", |m, i, _| {
        floats(m, i, FloatFormat::Double, FloatOp::Sub, 2)
    }),
    ("mulpd", |m, i, _| {
        floats(m, i, FloatFormat::Double, FloatOp::Mul, 2)
    }),
    ("divpd", |m, i, _| {
        floats(m, i, FloatFormat::Double, FloatOp::Div, 2)
    }),
    ("comiss", |m, i, _| compare(m, i, FloatFormat::Single)),
    ("ucomiss", |m, i, _| compare(m, i, FloatFormat::Single)),
    ("comisd", |m, i, _| compare(m, i, FloatFormat::Double)),
    ("ucomisd", |m, i, _| compare(m, i, FloatFormat::Double)),
];

/// Returns the parts of a vector, the lowest first.
fn split(m: &mut Machine<'_, '_, '_>, vector: ExprId, width: u32) -> Vec<ExprId> {
    let count = m.vm.arena.width(vector) / width;
    let arena = &mut *m.vm.arena;
    (0..count)
        .map(|at| arena.extract(vector, at * width, width))
        .collect()
}

fn joined(m: &mut Machine<'_, '_, '_>, lanes: &[ExprId]) -> ExprId {
    m.vm.arena.concat_bytes(lanes)
}

/// Returns the number that the first operand gives.
fn immediate(m: &mut Machine<'_, '_, '_>, i: &Instruction) -> Result<u64, Interrupt> {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let number = m.read(source, 8)?;
    let number = Value::of_term(m.vm.arena, number);
    m.vm.concretize(number)
}

/// Returns source, old destination and location of an instruction behind its immediate.
fn behind_immediate(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    width: u32,
) -> Result<(ExprId, ExprId, Location), Interrupt> {
    let (source, _) = m.locate(operand(m, i, 1)?)?;
    let (target, _) = m.locate(operand(m, i, 2)?)?;
    Ok((m.read(source, width)?, m.read(target, VECTOR)?, target))
}

fn copy(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (target, _) = m.locate(operand(m, i, 1)?)?;
    let value = m.read(source, VECTOR)?;
    m.write(target, value)
}

/// Copies a number; a vector register that takes it is zero above.
fn copy_word(m: &mut Machine<'_, '_, '_>, i: &Instruction, width: u32) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (target, _) = m.locate(operand(m, i, 1)?)?;
    let mut value = m.read(source, width)?;
    if let Location::Vector(_) = target {
        value = m.vm.arena.zext(value, VECTOR);
    }
    m.write(target, value)
}

fn movd(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    copy_word(m, i, 32)
}

fn movq(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    copy_word(m, i, 64)
}

/// Copies a number between the low ends of registers, or a register and memory. A register that is
/// loaded from memory is zero above. Without operands, this is the string instruction.
fn copy_scalar(m: &mut Machine<'_, '_, '_>, i: &Instruction, width: u32) -> Step {
    if i.operands.is_empty() {
        return super::repeated::move_string(m, i, Some(32));
    }
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (target, _) = m.locate(operand(m, i, 1)?)?;
    let value = m.read(source, width)?;
    match (source, target) {
        (_, Location::Memory(_)) => m.write(target, value),
        (Location::Memory(_), _) => {
            let value = m.vm.arena.zext(value, VECTOR);
            m.write(target, value)
        }
        _ => write_low(m, target, value),
    }
}

/// Replaces the low end of a vector register.
fn write_low(m: &mut Machine<'_, '_, '_>, target: Location, value: ExprId) -> Step {
    let width = m.vm.arena.width(value);
    let old = m.read(target, VECTOR)?;
    let rest = m.vm.arena.extract(old, width, VECTOR - width);
    let value = m.vm.arena.concat(rest, value);
    m.write(target, value)
}

/// Computes `old op source` on whole registers.
fn whole(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    op: fn(&mut Arena, ExprId, ExprId) -> ExprId,
) -> Step {
    lanes(m, i, VECTOR, op)
}

/// Computes `old op source` on each lane.
fn lanes(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    width: u32,
    op: fn(&mut Arena, ExprId, ExprId) -> ExprId,
) -> Step {
    let (y, x, target) = both(m, i, Some(VECTOR))?;
    let (xs, ys) = (split(m, x, width), split(m, y, width));
    let results: Vec<ExprId> = xs
        .into_iter()
        .zip(ys)
        .map(|(x, y)| op(m.vm.arena, x, y))
        .collect();
    let result = joined(m, &results);
    m.write(target, result)
}

fn and_not(arena: &mut Arena, x: ExprId, y: ExprId) -> ExprId {
    let inverted = arena.not(x);
    arena.and(inverted, y)
}

fn low_product(arena: &mut Arena, x: ExprId, y: ExprId) -> ExprId {
    let [x, y] = [x, y].map(|term| {
        let low = arena.extract(term, 0, 32);
        arena.zext(low, 64)
    });
    arena.mul(x, y)
}

fn mask(arena: &mut Arena, holds: ExprId, width: u32) -> ExprId {
    arena.sext(holds, width)
}

fn equal(arena: &mut Arena, x: ExprId, y: ExprId) -> ExprId {
    let width = arena.width(x);
    let holds = arena.eq(x, y);
    mask(arena, holds, width)
}

fn greater(arena: &mut Arena, x: ExprId, y: ExprId) -> ExprId {
    let width = arena.width(x);
    let holds = arena.slt(y, x);
    mask(arena, holds, width)
}

/// Returns the smaller number.
fn least(arena: &mut Arena, less: CompareOp, x: ExprId, y: ExprId) -> ExprId {
    let holds = arena.compare(less, x, y);
    arena.ite(holds, x, y)
}

/// Returns the greater number.
fn greatest(arena: &mut Arena, less: CompareOp, x: ExprId, y: ExprId) -> ExprId {
    let holds = arena.compare(less, x, y);
    arena.ite(holds, y, x)
}

/// Shifts each lane by the same amount: an immediate, or the low half of a register.
fn shift(m: &mut Machine<'_, '_, '_>, i: &Instruction, width: u32, op: BinaryOp) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (target, _) = m.locate(operand(m, i, 1)?)?;
    let amount = match source {
        Location::Immediate(number) => m.vm.arena.constant(64, number & 0xff),
        _ => m.read(source, 64)?,
    };
    let limit = m.vm.arena.constant(64, u64::from(width));
    let too_far = m.vm.arena.uge(amount, limit);
    let x = m.read(target, VECTOR)?;
    let most = m.vm.arena.constant(64, u64::from(width - 1));
    let amount = m.vm.arena.ite(too_far, most, amount);
    let amount = m.vm.arena.zext_or_trunc(amount, width);
    let zero = m.vm.arena.zero(width);
    let mut results = Vec::new();
    for lane in split(m, x, width) {
        let shifted = m.vm.arena.binary(op, lane, amount);
        results.push(match op {
            BinaryOp::AShr => shifted,
            _ => m.vm.arena.ite(too_far, zero, shifted),
        });
    }
    let result = joined(m, &results);
    m.write(target, result)
}

fn shift_bytes(m: &mut Machine<'_, '_, '_>, i: &Instruction, op: BinaryOp) -> Step {
    let bytes = immediate(m, i)?;
    let (target, _) = m.locate(operand(m, i, 1)?)?;
    let x = m.read(target, VECTOR)?;
    let amount = m.vm.arena.constant(VECTOR, 8 * bytes.min(16));
    let result = if bytes > 15 {
        m.vm.arena.zero(VECTOR)
    } else {
        m.vm.arena.binary(op, x, amount)
    };
    m.write(target, result)
}

fn palignr(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let bytes = immediate(m, i)?.min(32);
    let (source, old, target) = behind_immediate(m, i, VECTOR)?;
    let zero = m.vm.arena.zero(8);
    let mut all = split(m, source, 8);
    all.extend(split(m, old, 8));
    all.resize(48, zero);
    let result = joined(m, &all[bytes as usize..bytes as usize + 16]);
    m.write(target, result)
}

fn pshufb(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let (selectors, x, target) = both(m, i, Some(VECTOR))?;
    let bytes = split(m, x, 8);
    let mut results = Vec::new();
    for selector in split(m, selectors, 8) {
        let clears = m.vm.arena.extract(selector, 7, 1);
        let index = m.vm.arena.extract(selector, 0, 4);
        let mut result = bytes[0];
        for (at, byte) in (1..).zip(&bytes[1..]) {
            let number = m.vm.arena.constant(4, at);
            let is_this = m.vm.arena.eq(index, number);
            result = m.vm.arena.ite(is_this, *byte, result);
        }
        let zero = m.vm.arena.zero(8);
        results.push(m.vm.arena.ite(clears, zero, result));
    }
    let result = joined(m, &results);
    m.write(target, result)
}

/// Selects four lanes from `first` on by the pairs of bits of an immediate; others are copied.
fn shuffle_words(m: &mut Machine<'_, '_, '_>, i: &Instruction, width: u32, first: usize) -> Step {
    let order = immediate(m, i)?;
    let (source, _, target) = behind_immediate(m, i, VECTOR)?;
    let words = split(m, source, width);
    let mut results = words.clone();
    for at in 0..4 {
        results[first + at] = words[first + (order >> (2 * at) & 3) as usize];
    }
    let result = joined(m, &results);
    m.write(target, result)
}

/// Takes lanes of the destination and the source in turn, from their lower or upper halves.
fn interleave(m: &mut Machine<'_, '_, '_>, i: &Instruction, width: u32, upper: bool) -> Step {
    let (y, x, target) = both(m, i, Some(VECTOR))?;
    let (xs, ys) = (split(m, x, width), split(m, y, width));
    let half = xs.len() / 2;
    let range = if upper { half..2 * half } else { 0..half };
    let results: Vec<ExprId> = range.flat_map(|at| [xs[at], ys[at]]).collect();
    let result = joined(m, &results);
    m.write(target, result)
}

/// Collects the sign bits of all lanes in a general register.
fn signs(m: &mut Machine<'_, '_, '_>, i: &Instruction, width: u32) -> Step {
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (target, _) = m.locate(operand(m, i, 1)?)?;
    let x = m.read(source, VECTOR)?;
    let mut bits = Vec::new();
    for lane in split(m, x, width) {
        bits.push(m.vm.arena.extract(lane, width - 1, 1));
    }
    let result = joined(m, &bits);
    let result = m.vm.arena.zext(result, 64);
    m.write(target, result)
}

fn ptest(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let (y, x, _) = both(m, i, Some(VECTOR))?;
    let arena = &mut *m.vm.arena;
    let zero = arena.zero(VECTOR);
    let common = arena.and(x, y);
    let missing = and_not(arena, x, y);
    m.flags.zero = arena.eq(common, zero);
    m.flags.carry = arena.eq(missing, zero);
    m.flags.sign = arena.zero(1);
    m.flags.overflow = arena.zero(1);
    m.flags.parity = arena.constant(8, 1);
    Ok(())
}

fn extract_lane(m: &mut Machine<'_, '_, '_>, i: &Instruction, width: u32) -> Step {
    let index = immediate(m, i)? as u32 % (VECTOR / width);
    let (source, _) = m.locate(operand(m, i, 1)?)?;
    let (target, _) = m.locate(operand(m, i, 2)?)?;
    let x = m.read(source, VECTOR)?;
    let mut lane = m.vm.arena.extract(x, index * width, width);
    if !matches!(target, Location::Memory(_)) {
        lane = m.vm.arena.zext(lane, 64);
    }
    m.write(target, lane)
}

fn insert_lane(m: &mut Machine<'_, '_, '_>, i: &Instruction, width: u32) -> Step {
    let index = immediate(m, i)? as usize % (VECTOR / width) as usize;
    let (lane, old, target) = behind_immediate(m, i, width)?;
    let mut all = split(m, old, width);
    all[index] = lane;
    let result = joined(m, &all);
    m.write(target, result)
}

/// Multiplies polynomials over two elements: one half of each register, which the immediate selects.
fn pclmulqdq(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    let halves = immediate(m, i)?;
    let (y, x, target) = behind_immediate(m, i, VECTOR)?;
    let x =
        m.vm.arena
            .extract(x, if halves & 1 == 0 { 0 } else { 64 }, 64);
    let y =
        m.vm.arena
            .extract(y, if halves & 16 == 0 { 0 } else { 64 }, 64);
    let result = carryless_product(m.vm.arena, x, y);
    m.write(target, result)
}

/// Computes `old op source` on the lowest `count` numbers.
fn floats(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    format: FloatFormat,
    op: FloatOp,
    count: u32,
) -> Step {
    let width = format.width();
    let (y, x, target) = both(m, i, Some(count * width))?;
    let (xs, ys) = (split(m, x, width), split(m, y, width));
    let mut results = Vec::new();
    for (x, y) in xs.into_iter().zip(ys) {
        results.push(m.vm.float_term(op, format, x, y)?);
    }
    let result = joined(m, &results);
    if count * width == VECTOR {
        return m.write(target, result);
    }
    write_low(m, target, result)
}

/// Compares the lowest numbers: unordered sets zero, parity and carry, less sets carry, and equal
/// sets zero.
fn compare(m: &mut Machine<'_, '_, '_>, i: &Instruction, format: FloatFormat) -> Step {
    let (y, x, _) = both(m, i, Some(format.width()))?;
    set_comparison(m, format, x, y)
}

/// Sets the flags of a comparison of floating-point numbers.
pub fn set_comparison(
    m: &mut Machine<'_, '_, '_>,
    format: FloatFormat,
    x: ExprId,
    y: ExprId,
) -> Step {
    m.vm.float_flags_unknown();
    let arena = &mut *m.vm.arena;
    let less = arena.float_compare(FloatCompareOp::Olt, format, x, y);
    let same = arena.float_compare(FloatCompareOp::Oeq, format, x, y);
    let unordered = arena.float_compare(FloatCompareOp::Uno, format, x, y);
    m.flags.zero = arena.or(same, unordered);
    m.flags.carry = arena.or(less, unordered);
    let ordered = arena.not(unordered);
    m.flags.parity = arena.zext(ordered, 8);
    m.flags.sign = arena.zero(1);
    m.flags.overflow = arena.zero(1);
    Ok(())
}
