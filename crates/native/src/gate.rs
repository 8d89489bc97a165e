//! The gate: two pages of Everett in every native process. The first holds the one instruction from
//! which injected system calls are made; the second holds the data that these calls read and write.
//! The guest can neither change the first page nor unmap or map over either. The seccomp filter
//! accepts calls from the gate only.

use std::io;

use crate::call_numbers::MMAP;
use crate::tracee::Tracee;

/// Address of the gate: in the gap that the kernel leaves between mappings and the stack of a
/// process without random addresses.
pub const GATE: u64 = 0x7fff_fc00_0000;
/// Address of the page that injected calls read and write.
pub const SCRATCH: u64 = GATE + PAGE;
/// First address behind the gate.
pub const END: u64 = SCRATCH + PAGE;
/// The program counter of a thread after it has executed the instruction of the gate.
pub const BEHIND: u64 = GATE + SYSCALL.len() as u64;

const PAGE: u64 = 4096;
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// The `hlt` instruction, which faults in user mode.
const HALT: u8 = 0xf4;

const READ: u64 = 1;
const WRITE: u64 = 2;
const EXECUTE: u64 = 4;
const PRIVATE_ANONYMOUS: u64 = 0x22;
const FIXED_NO_REPLACE: u64 = 0x10_0000;

/// Returns whether a range of addresses overlaps the gate. A range that wraps around extends to the
/// end of memory.
pub fn overlaps(start: u64, len: u64) -> bool {
    // The kernel rounds to whole pages.
    let from = start & !(PAGE - 1);
    let end = start.saturating_add(len).saturating_add(PAGE - 1);
    len > 0 && from < END && end & !(PAGE - 1) > GATE
}

/// Creates the gate in a process that has not executed an instruction of its program yet.
pub fn install(tracee: &mut Tracee) -> io::Result<()> {
    let before = tracee.registers()?;
    let mut code = [0; SYSCALL.len()];
    if !tracee.peek(before.rip, &mut code) || !tracee.poke(before.rip, &SYSCALL) {
        return Err(io::Error::other(
            "the program has no code at its entry point",
        ));
    }
    let map = |start: u64, rights: u64| {
        let flags = PRIVATE_ANONYMOUS | FIXED_NO_REPLACE;
        [start, PAGE, rights, flags, u64::MAX, 0]
    };
    let mapped = tracee.inject_call_at(before.rip, MMAP, map(GATE, READ | EXECUTE));
    tracee.poke(before.rip, &code);
    let mut page = vec![HALT; PAGE as usize];
    page[..SYSCALL.len()].copy_from_slice(&SYSCALL);
    if mapped?.0 != GATE
        || !tracee.poke(GATE, &page)
        || tracee.inject_call(MMAP, map(SCRATCH, READ | WRITE))?.0 != SCRATCH
    {
        let message = "its memory has no room for the pages from which system calls are injected";
        return Err(io::Error::other(message));
    }
    tracee.set_registers(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_touches_the_gate_overlaps_it() {
        assert!(!overlaps(GATE - PAGE, PAGE));
        assert!(!overlaps(GATE, 0));
        assert!(!overlaps(END, u64::MAX));
        for (start, len) in [
            (GATE, 1),
            (GATE - 1, 2),
            (GATE - PAGE, PAGE + 1),
            (SCRATCH, PAGE),
            (END - 1, 1),
            (0, u64::MAX),
            (PAGE, u64::MAX - 1),
        ] {
            assert!(overlaps(start, len), "{start:#x} {len:#x}");
        }
    }
}
