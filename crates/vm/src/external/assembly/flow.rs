//! The order in which the instructions of a piece of inline assembly are executed: jumps to labels
//! of the template, and to those of the program (`asm goto`).

use super::execute::{self, takes_repetition};
use super::machine::{Location, Machine, condition};
use super::parse::{Instruction, Operand, Template, is_condition};
use super::step::{count, operand};
use super::unknown;
use crate::value::Value;
use crate::vm::Interrupt;

/// Executes a template. Returns the number of the target that it leaves by, from 1; 0 if it ends.
pub fn run(m: &mut Machine<'_, '_, '_>, template: &Template) -> Result<u64, Interrupt> {
    let mut at = 0;
    while let Some(instruction) = template.instructions.get(at) {
        count(m, 1)?;
        at += 1;
        if let Some(jumps) = jump(m, instruction)? {
            if !jumps {
                continue;
            }
            match operand(m, instruction, 0)? {
                Operand::Label(label) => {
                    at = template
                        .find(label, at - 1)
                        .ok_or_else(|| unknown(m.args, &format!("the label {label}")))?;
                }
                target => match m.locate(target)?.0 {
                    Location::Target(number) => return Ok(number as u64 + 1),
                    _ => return Err(unknown(m.args, "an indirect jump")),
                },
            }
            continue;
        }
        let (execute, suffix) = execute::lookup(&instruction.name)
            .filter(|_| instruction.repeat.is_none() || takes_repetition(instruction))
            .ok_or_else(|| unknown(m.args, &format!("the instruction {}", instruction.name)))?;
        execute(m, instruction, suffix)?;
    }
    Ok(0)
}

/// Decides whether a jump is taken; `None` if the instruction is no jump.
fn jump(m: &mut Machine<'_, '_, '_>, instruction: &Instruction) -> Result<Option<bool>, Interrupt> {
    let holds = match instruction.name.as_str() {
        "jmp" | "jmpq" => return Ok(Some(true)),
        "jrcxz" | "jecxz" => {
            let width = if instruction.name == "jrcxz" { 64 } else { 32 };
            let count = m.read(Location::General(1), width)?;
            let zero = m.vm.arena.zero(width);
            m.vm.arena.eq(count, zero)
        }
        "loop" | "loope" | "loopz" | "loopne" | "loopnz" => {
            let count = m.general(1);
            let one = m.vm.arena.constant(64, 1);
            let count = m.vm.arena.sub(count, one);
            m.write(Location::General(1), count)?;
            let zero = m.vm.arena.zero(64);
            let more = m.vm.arena.ne(count, zero);
            let also = match &instruction.name[4..] {
                "" => return m.vm.decide_term(more).map(Some),
                "e" | "z" => condition(m, "e"),
                _ => condition(m, "ne"),
            };
            m.vm.arena.and(more, also)
        }
        name => match name.strip_prefix('j') {
            Some(code) if is_condition(code) => condition(m, code),
            _ => return Ok(None),
        },
    };
    let holds = Value::of_term(m.vm.arena, holds);
    m.vm.decide(holds).map(Some)
}
