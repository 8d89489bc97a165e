//! Detection of `longjmp` to frames that have returned. Native code would continue in their
//! remains, so breakpoints check the target before the jump.

use crate::known::KnownProgram;

use crate::entries::Entries;
use crate::tracee::{Registers, Stopped, Tracee, mappings_of};

const FUNCTIONS: [&str; 3] = ["longjmp", "_longjmp", "siglongjmp"];
/// Offset of the stack pointer in a `jmp_buf` of musl.
const STACK_POINTER: u64 = 48;

/// Breakpoints at the jump functions.
#[derive(Clone, Default, Debug)]
pub struct Jumps {
    entries: Entries,
}

/// A thread that is about to jump.
pub struct Jump {
    /// How the thread stopped after the first instruction.
    pub stopped: Stopped,
    /// The return address of the call, if the target frame has returned.
    pub dead_frame: Option<u64>,
}

impl Jumps {
    /// Sets breakpoints at the jump functions of a program that has not executed anything yet.
    pub fn watch(program: &KnownProgram, tracee: &mut Tracee, bias: u64) -> Jumps {
        let entries = Entries::watch(&FUNCTIONS, program, tracee, bias);
        Jumps { entries }
    }

    /// Handles a stopped thread. `None` if it is elsewhere; otherwise the first
    /// instruction of the jump was executed.
    pub fn execute(&self, tracee: &mut Tracee) -> std::io::Result<Option<Jump>> {
        let Some(registers) = self.entries.reached(tracee)? else {
            return Ok(None);
        };
        let dead_frame = dead_frame(tracee, &registers)?;
        let stopped = self.entries.step(tracee, registers)?;
        Ok(Some(Jump {
            stopped,
            dead_frame,
        }))
    }
}

/// Checks whether a jump leads deeper into the stack than the caller's
/// frame: that frame has returned.
fn dead_frame(tracee: &mut Tracee, registers: &Registers) -> std::io::Result<Option<u64>> {
    let word = |tracee: &mut Tracee, at: u64| {
        let mut bytes = [0; 8];
        let there = tracee.peek(at, &mut bytes);
        there.then(|| u64::from_le_bytes(bytes))
    };
    let target = word(tracee, registers.rdi.wrapping_add(STACK_POINTER));
    let (Some(target), Some(back)) = (target, word(tracee, registers.rsp)) else {
        return Ok(None);
    };
    let callers = registers.rsp + 8;
    if target >= callers {
        return Ok(None);
    }
    // A program can have several stacks.
    let mappings = mappings_of(tracee.process)?;
    let mut mappings = mappings.iter().map(|mapping| mapping.start..mapping.end);
    let same = mappings.any(|stack| stack.contains(&target) && stack.contains(&callers));
    Ok(same.then_some(back))
}
