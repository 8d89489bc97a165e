//! Reproduction of data races: brings two threads to where both are about to access the same
//! memory, so that nothing orders the accesses. The first thread that reaches one of the two lines
//! is held there while all others run.

use std::collections::BTreeMap;

use everett_linux::TaskName;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess,
};

use crate::operands::{MemoryOperand, memory_operands};
use crate::points::Lines;
use crate::tracee::{Registers, Stopped, Tracee};

const BREAKPOINT: u8 = 0xcc;

/// A source location: file and line.
pub type Line = (String, u32);

/// The accesses of two lines, and the thread that is held before one of them.
#[derive(Clone, Default)]
pub struct Races {
    points: BTreeMap<u64, WatchedAccess>,
    held: Option<(TaskName, Vec<MemoryOperand>)>,
    /// The thread that was held and continues.
    released: Option<TaskName>,
    /// Number of threads that pass an access before one is held.
    race_skips: u32,
}

#[derive(Copy, Clone)]
struct WatchedAccess {
    original: u8,
    instruction: Instruction,
}

/// Outcome for a thread that has reached an access.
pub enum AtAccess {
    /// The thread has executed the access.
    Passed(Stopped),
    /// The thread is held before the access.
    Held,
    /// The thread is about to access the same memory as the held thread.
    Races,
}

impl Races {
    /// Sets breakpoints at the accesses of two lines of a program
    /// that has not executed anything yet.
    pub fn watch(
        lines: &Lines,
        lines_of_race: &[Line],
        race_skips: u32,
        tracee: &mut Tracee,
    ) -> std::io::Result<Races> {
        let mut races = Races {
            race_skips,
            ..Races::default()
        };
        let start = tracee.start_address()?;
        for (from, to) in lines_of_race
            .iter()
            .flat_map(|place| lines.find(place, start))
        {
            let mut code = vec![0; (to - from) as usize];
            if !tracee.peek(from, &mut code) {
                continue;
            }
            for instruction in &mut Decoder::with_ip(64, &code, from, DecoderOptions::NONE) {
                if accesses(&instruction) {
                    let original = code[(instruction.ip() - from) as usize];
                    let point = WatchedAccess {
                        original,
                        instruction,
                    };
                    races.points.insert(instruction.ip(), point);
                }
            }
        }
        for address in races.points.keys() {
            tracee.poke(*address, &[BREAKPOINT]);
        }
        Ok(races)
    }

    /// Handles a stopped thread. `None` if it is not at one of the accesses. `can_wait` says that
    /// other threads can run.
    pub fn arrive(
        &mut self,
        name: TaskName,
        tracee: &mut Tracee,
        can_wait: bool,
    ) -> std::io::Result<Option<AtAccess>> {
        let registers = tracee.registers()?;
        let address = registers.rip.wrapping_sub(1);
        let Some(point) = self.points.get(&address).copied() else {
            return Ok(None);
        };
        let registers = Registers {
            rip: address,
            ..registers
        };
        tracee.set_registers(registers)?;
        let memory_operands = memory_operands(&point.instruction, &registers);
        match &self.held {
            Some((other, theirs)) if *other != name && conflict(&memory_operands, theirs) => {
                return Ok(Some(AtAccess::Races));
            }
            None if can_wait && self.released.take() != Some(name) => {
                if self.race_skips == 0 {
                    self.held = Some((name, memory_operands));
                    return Ok(Some(AtAccess::Held));
                }
                self.race_skips -= 1;
            }
            _ => {}
        }
        tracee.poke(address, &[point.original]);
        let stopped = tracee.step();
        tracee.poke(address, &[BREAKPOINT]);
        Ok(Some(AtAccess::Passed(stopped?)))
    }

    /// Releases the held thread; `false` if there is none.
    pub fn release(&mut self) -> bool {
        self.released = self.held.take().map(|(name, _)| name);
        self.released.is_some()
    }
}

/// Returns whether an instruction accesses memory other than by calls, returns and the like.
fn accesses(instruction: &Instruction) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_memory();
    instruction.flow_control() == FlowControl::Next
        && !instruction.is_stack_instruction()
        && used
            .iter()
            .any(|memory| memory.access() != OpAccess::NoMemAccess)
}

fn conflict(own: &[MemoryOperand], theirs: &[MemoryOperand]) -> bool {
    let meets = |a: &MemoryOperand, b: &MemoryOperand| {
        a.start < b.end && b.start < a.end && (a.writes || b.writes)
    };
    own.iter().any(|a| theirs.iter().any(|b| meets(a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(code: &[u8]) -> Instruction {
        Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).decode()
    }

    #[test]
    fn accesses_to_the_same_memory_conflict_if_one_writes() {
        // SAFETY: registers are plain numbers.
        let mut registers: Registers = unsafe { std::mem::zeroed() };
        registers.rax = 0x5000;
        registers.rdi = 0x4ffe;
        // mov ecx, [rax]; mov [rdi], ecx; mov ecx, [rdi+6]
        let read = memory_operands(&decode(&[0x8b, 0x08]), &registers);
        let write = memory_operands(&decode(&[0x89, 0x0f]), &registers);
        let beyond = memory_operands(&decode(&[0x8b, 0x4f, 0x06]), &registers);
        assert!(conflict(&read, &write) && conflict(&write, &read));
        assert!(!conflict(&read, &read) && !conflict(&beyond, &write));
    }

    #[test]
    fn calls_and_the_stack_are_no_accesses() {
        // push rbp; call; ret; mov eax, [rbp-4]; lea rax, [rip]
        assert!(!accesses(&decode(&[0x55])));
        assert!(!accesses(&decode(&[0xe8, 0, 0, 0, 0])));
        assert!(!accesses(&decode(&[0xc3])));
        assert!(accesses(&decode(&[0x8b, 0x45, 0xfc])));
        assert!(!accesses(&decode(&[0x48, 0x8d, 0x05, 0, 0, 0, 0])));
    }
}
