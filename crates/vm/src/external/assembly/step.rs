//! Items that all families of assembly instructions share: the type of their functions, access to
//! operands, and the flags of a result.

use everett_expr::ExprId;

use crate::external::assembly::machine::{Location, Machine};
use crate::external::assembly::parse::{Instruction, Operand};
use crate::vm::Interrupt;

/// Executes an instruction. The suffix of its mnemonic may give the width.
pub type Execute =
    for<'x, 'm, 'a, 'b> fn(&'x mut Machine<'m, 'a, 'b>, &Instruction, Option<u32>) -> Step;

/// The result of an instruction.
pub type Step = Result<(), Interrupt>;

/// The most instructions that one execution of a piece may take. Repetitions count, too.
const MOST_STEPS: u64 = 4_000_000;

/// Counts executed instructions.
pub fn count(m: &mut Machine<'_, '_, '_>, steps: u64) -> Result<(), Interrupt> {
    m.steps += steps;
    if m.steps > MOST_STEPS {
        return Err(m.args.unsupported("with so many repetitions"));
    }
    Ok(())
}

/// Returns an operand that must exist.
pub fn operand<'i>(
    m: &Machine<'_, '_, '_>,
    i: &'i Instruction,
    index: usize,
) -> Result<&'i Operand, Interrupt> {
    let operand = i.operands.get(index);
    operand.ok_or_else(|| m.args.unsupported("with so few operands"))
}

/// Reads the source and destination of an instruction with two operands; also returns the location
/// of the destination.
pub fn both(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    suffix: Option<u32>,
) -> Result<(ExprId, ExprId, Location), Interrupt> {
    let width = m.width(i, suffix)?;
    let (source, _) = m.locate(operand(m, i, 0)?)?;
    let (target, _) = m.locate(operand(m, i, 1)?)?;
    Ok((m.read(source, width)?, m.read(target, width)?, target))
}

/// Reads the last operand; also returns its location.
pub fn single(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    suffix: Option<u32>,
) -> Result<(ExprId, Location), Interrupt> {
    let width = m.width(i, suffix)?;
    let (target, _) = m.locate(operand(m, i, i.operands.len().saturating_sub(1))?)?;
    Ok((m.read(target, width)?, target))
}

/// Moves a value to a place of another width; both have their widths in bits.
pub fn move_extended(
    m: &mut Machine<'_, '_, '_>,
    (source, from): (Location, u32),
    (target, to): (Location, u32),
    signed: bool,
) -> Step {
    let value = m.read(source, from)?;
    let value = if signed {
        m.vm.arena.sext_or_trunc(value, to)
    } else {
        m.vm.arena.zext_or_trunc(value, to)
    };
    m.write(target, value)
}

pub fn set_result_flags(m: &mut Machine<'_, '_, '_>, result: ExprId) {
    let width = m.vm.arena.width(result);
    let zero = m.vm.arena.zero(width);
    m.flags.zero = m.vm.arena.eq(result, zero);
    m.flags.sign = m.vm.arena.extract(result, width - 1, 1);
    m.flags.parity = m.vm.arena.extract(result, 0, 8);
}
