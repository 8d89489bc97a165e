//! String instructions of inline assembly, and the prefixes that repeat them.

use everett_expr::ExprId;

use super::arithmetic::difference;
use super::machine::{Location, Machine};
use super::parse::{Instruction, Repeat};
use super::step::{Execute, Step, count};
use crate::value::Value;
use crate::vm::Interrupt;

/// The instructions.
pub const INSTRUCTIONS: &[(&str, Execute)] = &[
    ("cld", cld),
    ("std", std),
    ("movs", move_string),
    ("stos", stos),
    ("lods", lods),
    ("scas", scas),
    ("cmps", cmps),
];

const COUNT: usize = 1;
const SOURCE: usize = 6;
const TARGET: usize = 7;

fn cld(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    m.flags.down = false;
    Ok(())
}

fn std(m: &mut Machine<'_, '_, '_>, _: &Instruction, _: Option<u32>) -> Step {
    m.flags.down = true;
    Ok(())
}

/// Repeats an element as often as the prefix says. `element` returns whether the operands were
/// equal, for instructions that compare.
fn repeat(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    mut element: impl FnMut(&mut Machine<'_, '_, '_>) -> Result<Option<ExprId>, Interrupt>,
) -> Step {
    let Some(repeat) = i.repeat else {
        element(m)?;
        return Ok(());
    };
    loop {
        let zero = m.vm.arena.zero(64);
        let left = m.general(COUNT);
        let done = m.vm.arena.eq(left, zero);
        if m.vm.decide_term(done)? {
            return Ok(());
        }
        count(m, 1)?;
        let one = m.vm.arena.constant(64, 1);
        let left = m.vm.arena.sub(left, one);
        m.write(Location::General(COUNT), left)?;
        let Some(equal) = element(m)? else {
            continue;
        };
        if m.vm.decide_term(equal)? != (repeat == Repeat::WhileEqual) {
            return Ok(());
        }
    }
}

/// Returns the memory that an index register points to, and moves the register to the next element.
fn element(
    m: &mut Machine<'_, '_, '_>,
    register: usize,
    width: u32,
) -> Result<Location, Interrupt> {
    let bytes = u64::from(width / 8);
    let pointer = m.general(register);
    let by = if m.flags.down {
        bytes.wrapping_neg()
    } else {
        bytes
    };
    let by = m.vm.arena.constant(64, by);
    let next = m.vm.arena.add(pointer, by);
    m.write(Location::General(register), next)?;
    Ok(Location::Memory(Value::of_term(m.vm.arena, pointer)))
}

/// Executes as many elements as possible in words of eight bytes: upwards, if no word reads what an
/// earlier element of the same word has written.
fn in_words(
    m: &mut Machine<'_, '_, '_>,
    i: &Instruction,
    width: u32,
    copies: bool,
    fill: Option<ExprId>,
) -> Step {
    let registers = [COUNT, SOURCE, TARGET].map(|register| m.general(register));
    let known = registers.map(|term| m.vm.arena.as_const(term));
    let [Some(left), source, Some(target)] = known else {
        return Ok(());
    };
    let apart = match (copies, source) {
        (false, _) => true,
        (true, Some(source)) => target.wrapping_sub(source) >= 8,
        (true, None) => false,
    };
    if i.repeat.is_none() || m.flags.down || !apart {
        return Ok(());
    }
    let each = u64::from(64 / width);
    for _ in 0..left / each {
        count(m, 1)?;
        let word = match fill {
            Some(word) => word,
            None => {
                let from = element(m, SOURCE, 64)?;
                m.read(from, 64)?
            }
        };
        let to = element(m, TARGET, 64)?;
        m.write(to, word)?;
    }
    let rest = m.vm.arena.constant(64, left % each);
    m.write(Location::General(COUNT), rest)
}

/// Copies elements.
pub fn move_string(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let width = m.width(i, suffix)?;
    in_words(m, i, width, true, None)?;
    repeat(m, i, |m| {
        let from = element(m, SOURCE, width)?;
        let to = element(m, TARGET, width)?;
        let value = m.read(from, width)?;
        m.write(to, value)?;
        Ok(None)
    })
}

fn stos(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let width = m.width(i, suffix)?;
    let value = m.read(Location::General(0), width)?;
    let mut word = value;
    while m.vm.arena.width(word) < 64 {
        word = m.vm.arena.concat(word, word);
    }
    in_words(m, i, width, false, Some(word))?;
    repeat(m, i, |m| {
        let to = element(m, TARGET, width)?;
        m.write(to, value)?;
        Ok(None)
    })
}

fn lods(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let width = m.width(i, suffix)?;
    repeat(m, i, |m| {
        let from = element(m, SOURCE, width)?;
        let value = m.read(from, width)?;
        m.write(Location::General(0), value)?;
        Ok(None)
    })
}

fn scas(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let width = m.width(i, suffix)?;
    repeat(m, i, |m| {
        let with = element(m, TARGET, width)?;
        let x = m.read(Location::General(0), width)?;
        let y = m.read(with, width)?;
        difference(m, x, y, None);
        Ok(Some(m.flags.zero))
    })
}

fn cmps(m: &mut Machine<'_, '_, '_>, i: &Instruction, suffix: Option<u32>) -> Step {
    let width = m.width(i, suffix)?;
    repeat(m, i, |m| {
        let first = element(m, SOURCE, width)?;
        let second = element(m, TARGET, width)?;
        let x = m.read(first, width)?;
        let y = m.read(second, width)?;
        difference(m, x, y, None);
        Ok(Some(m.flags.zero))
    })
}
