//! Inline assembly instructions that divide, extend, and set flags, and arithmetic with the carry in
//! other flags.

use everett_expr::{BinaryOp, ExprId};

use super::arithmetic::{product, sum};
use super::machine::{Location, Machine, condition};
use super::parse::Instruction;
use super::step::{Execute, Step, both, move_extended, operand, single};
use crate::bug::{Bug, BugKind};

/// The instructions.
pub const INSTRUCTIONS: &[(&str, Execute)] = &[
    ("div", div),
    ("idiv", idiv),
    ("mulx", mulx),
    ("adcx", adcx),
    ("adox", adox),
    ("clc", clc),
    ("stc", stc),
    ("cmc", cmc),
    ("lahf", lahf),
    ("sahf", sahf),
    ("popf", pop_flags),
    ("popfq", pop_flags),
    ("cbtw", cbtw),
    ("cbw", cbtw),
    ("cwtl", cwtl),
    ("cwde", cwtl),
    ("cltq", cltq),
    ("cdqe", cltq),
    ("cwtd", cwtd),
    ("cwd", cwtd),
    ("cltd", cltd),
    ("cdq", cltd),
    ("cqto", cqto),
    ("cqo", cqto),
    ("movzx", movzx),
    ("movsx", movsx),
    ("movsxd", movsx),
];

/// Divides a dividend of twice the width, which takes two registers, or `ax` for bytes.
fn quotient(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    suffix: Option<u32>,
    signed: bool,
) -> Step {
    let (divisor, _) = single(m, i, suffix)?;
    let width = m.vm.arena.width(divisor);
    let dividend = if width == 8 {
        m.read(Location::General(0), 16)?
    } else {
        let high = m.read(Location::General(2), width)?;
        let low = m.read(Location::General(0), width)?;
        m.vm.arena.concat(high, low)
    };
    let zero = m.vm.arena.zero(width);
    let by_zero = m.vm.arena.eq(divisor, zero);
    m.vm.forbid(by_zero, || {
        Bug::new(BugKind::DivisionByZero, "division by zero")
    })?;
    let arena = &mut *m.vm.arena;
    let (wide, division, rest) = if signed {
        (
            arena.sext(divisor, 2 * width),
            BinaryOp::SDiv,
            BinaryOp::SRem,
        )
    } else {
        (
            arena.zext(divisor, 2 * width),
            BinaryOp::UDiv,
            BinaryOp::URem,
        )
    };
    let exact = arena.binary(division, dividend, wide);
    let remainder = arena.binary(rest, dividend, wide);
    let quotient = arena.extract(exact, 0, width);
    let back = if signed {
        arena.sext(quotient, 2 * width)
    } else {
        arena.zext(quotient, 2 * width)
    };
    let too_large = arena.ne(exact, back);
    let remainder = arena.extract(remainder, 0, width);
    m.vm.forbid(too_large, || {
        Bug::new(
            BugKind::Overflow,
            "the quotient does not fit in its register",
        )
    })?;
    m.write(Location::General(0), quotient)?;
    if width == 8 {
        return m.write(Location::High(0), remainder);
    }
    m.write(Location::General(2), remainder)
}

fn div(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    quotient(m, i, suffix, false)
}

fn idiv(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    quotient(m, i, suffix, true)
}

/// Multiplies by `rdx` without changing flags. The operands are the factor, the low half and the
/// high half of the product.
fn mulx(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let width = m.width(i, suffix)?;
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (low_target, _) = m.locate(operand(m, i, 1)?)?;
    let (high_target, _) = m.locate(operand(m, i, 2)?)?;
    let y = m.read(source, width)?;
    let x = m.read(Location::General(2), width)?;
    let flags = m.flags;
    let product = product(m, x, y, false);
    m.flags = flags;
    let low = m.vm.arena.extract(product, 0, width);
    let high = m.vm.arena.extract(product, width, width);
    m.write(low_target, low)?;
    m.write(high_target, high)
}

/// Adds two numbers and one flag, and returns the result and the new carry. No other flag changes.
fn add_with(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    suffix: Option<u32>,
    carry: ExprId,
) -> Result<ExprId, crate::vm::Interrupt> {
    let (y, x, target) = both(m, i, suffix)?;
    let flags = m.flags;
    let result = sum(m, x, y, Some(carry));
    let out = m.flags.carry;
    m.flags = flags;
    m.write(target, result)?;
    Ok(out)
}

fn adcx(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let carry = m.flags.carry;
    m.flags.carry = add_with(m, i, suffix, carry)?;
    Ok(())
}

fn adox(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let carry = m.flags.overflow;
    m.flags.overflow = add_with(m, i, suffix, carry)?;
    Ok(())
}

fn clc(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    m.flags.carry = m.vm.arena.zero(1);
    Ok(())
}

fn stc(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    m.flags.carry = m.vm.arena.constant(1, 1);
    Ok(())
}

fn cmc(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    m.flags.carry = m.vm.arena.not(m.flags.carry);
    Ok(())
}

/// Loads sign, zero, parity and carry into `ah`; bit 1 is always set. There is no auxiliary carry.
fn lahf(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    let parity = condition(m, "p");
    let now = m.flags;
    let mut flags = m.vm.arena.constant(8, 2);
    for (bit, flag) in [(0, now.carry), (2, parity), (6, now.zero), (7, now.sign)] {
        let flag = m.vm.arena.zext(flag, 8);
        let by = m.vm.arena.constant(8, bit);
        let flag = m.vm.arena.shl(flag, by);
        flags = m.vm.arena.or(flags, flag);
    }
    m.write(Location::High(0), flags)
}

/// Sets the flags in the lowest byte of a word of flags.
fn set_flags(m: &mut Machine<'_, '_, '_>, word: ExprId) {
    let arena = &mut *m.vm.arena;
    m.flags.carry = arena.extract(word, 0, 1);
    m.flags.zero = arena.extract(word, 6, 1);
    m.flags.sign = arena.extract(word, 7, 1);
    let parity = arena.extract(word, 2, 1);
    let odd = arena.not(parity);
    m.flags.parity = arena.zext(odd, 8);
}

fn sahf(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    let word = m.read(Location::High(0), 8)?;
    set_flags(m, word);
    Ok(())
}

fn pop_flags(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    let word = m.pop()?;
    let down = m.vm.arena.extract(word, 10, 1);
    m.flags.down = m.vm.decide_term(down)?;
    m.flags.overflow = m.vm.arena.extract(word, 11, 1);
    set_flags(m, word);
    Ok(())
}

/// Sign-extends the accumulator in its register.
fn widen(m: &mut Machine<'_, '_, '_>, width: u32) -> Step {
    let x = m.read(Location::General(0), width)?;
    let x = m.vm.arena.sext(x, 2 * width);
    m.write(Location::General(0), x)
}

fn cbtw(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    widen(m, 8)
}

fn cwtl(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    widen(m, 16)
}

fn cltq(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    widen(m, 32)
}

/// Fills `rdx` with the sign of the accumulator.
fn spread_sign(m: &mut Machine<'_, '_, '_>, width: u32) -> Step {
    let x = m.read(Location::General(0), width)?;
    let sign = m.vm.arena.extract(x, width - 1, 1);
    let filled = m.vm.arena.sext(sign, width);
    m.write(Location::General(2), filled)
}

fn cwtd(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    spread_sign(m, 16)
}

fn cltd(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    spread_sign(m, 32)
}

fn cqto(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    spread_sign(m, 64)
}

/// Extends a register of which the width is known, as in Intel's syntax.
fn extend(m: &mut Machine<'_, '_, '_>, i: &Instruction, signed: bool) -> Step {
    let (source, from) = m.locate(operand(m, i, 0)?)?;
    let (target, to) = m.locate(operand(m, i, 1)?)?;
    let (Some(from), Some(to)) = (from, to) else {
        return Err(m.args.unsupported("without a width"));
    };
    move_extended(m, (source, from), (target, to), signed)
}

fn movzx(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    extend(m, i, false)
}

fn movsx(m: &mut Machine<'_, '_, '_>, i: &Instruction, _: Option<u32>) -> Step {
    extend(m, i, true)
}
