//! Jumps to frames that are gone: native code lands in what is left of them, so breakpoints at `longjmp` look at where
//! it leads before it is made.

use std::collections::BTreeMap;
use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind};

use crate::tracee::{Registers, Stopped, Tracee, mappings_of};

const BREAKPOINT: u8 = 0xcc;
const FUNCTIONS: [&str; 3] = ["longjmp", "_longjmp", "siglongjmp"];
/// Where musl keeps the stack pointer in a `jmp_buf`.
const STACK_POINTER: u64 = 48;

/// Where jumps are made, and the bytes that breakpoints stand for.
#[derive(Clone, Default, Debug)]
pub struct Jumps {
    points: BTreeMap<u64, u8>,
}

/// A thread was about to jump.
pub struct Jump {
    /// How it stopped behind the first instruction.
    pub stopped: Stopped,
    /// The address behind the call, if the frame that the jump leads to is gone.
    pub into_nothing: Option<u64>,
}

impl Jumps {
    /// Puts breakpoints at the jumps of a program that has not executed anything yet.
    pub fn watch(program: &Path, tracee: &mut Tracee, bias: u64) -> std::io::Result<Jumps> {
        let bytes = std::fs::read(program)?;
        let mut jumps = Jumps::default();
        let Ok(file) = object::File::parse(&*bytes) else {
            return Ok(jumps);
        };
        for symbol in file.symbols() {
            let is_jump = symbol.name().is_ok_and(|name| FUNCTIONS.contains(&name));
            if !is_jump || symbol.kind() != SymbolKind::Text || symbol.is_undefined() {
                continue;
            }
            let address = symbol.address().wrapping_add(bias);
            let mut byte = [0];
            if !jumps.points.contains_key(&address) && tracee.look(address, &mut byte) {
                tracee.put(address, &[BREAKPOINT]);
                jumps.points.insert(address, byte[0]);
            }
        }
        Ok(jumps)
    }

    /// A thread stopped. `None` if that was elsewhere; otherwise the first instruction of the jump was executed.
    pub fn execute(&self, tracee: &mut Tracee) -> std::io::Result<Option<Jump>> {
        let registers = tracee.registers()?;
        let address = registers.rip.wrapping_sub(1);
        let Some(original) = self.points.get(&address) else {
            return Ok(None);
        };
        let into_nothing = into_nothing(tracee, &registers)?;
        tracee.set_registers(Registers {
            rip: address,
            ..registers
        })?;
        tracee.put(address, &[*original]);
        let stopped = tracee.step();
        tracee.put(address, &[BREAKPOINT]);
        Ok(Some(Jump {
            stopped: stopped?,
            into_nothing,
        }))
    }
}

/// A jump leads deeper into the stack than the caller's frame: whoever was there has returned.
fn into_nothing(tracee: &mut Tracee, registers: &Registers) -> std::io::Result<Option<u64>> {
    let word = |tracee: &mut Tracee, at: u64| {
        let mut bytes = [0; 8];
        let there = tracee.look(at, &mut bytes);
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
    // Programs can have several stacks.
    let mappings = mappings_of(tracee.process)?;
    let mut mappings = mappings.iter().map(|mapping| mapping.start..mapping.end);
    let same = mappings.any(|stack| stack.contains(&target) && stack.contains(&callers));
    Ok(same.then_some(back))
}
