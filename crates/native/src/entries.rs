//! Breakpoints at function entries, by name.

use std::collections::BTreeMap;

use crate::known::KnownProgram;
use crate::tracee::{Registers, Stopped, Tracee};

const BREAKPOINT: u8 = 0xcc;

/// Addresses of watched functions, and the bytes that breakpoints replace.
#[derive(Clone, Default, Debug)]
pub struct Entries {
    points: BTreeMap<u64, u8>,
}

impl Entries {
    /// Sets breakpoints at the functions with these names in a program
    /// that has not executed anything yet.
    pub fn watch(
        names: &[&str],
        program: &KnownProgram,
        tracee: &mut Tracee,
        bias: u64,
    ) -> Entries {
        let mut entries = Entries::default();
        for address in names.iter().flat_map(|name| program.functions(name)) {
            let address = address.wrapping_add(bias);
            let mut byte = [0];
            if !entries.points.contains_key(&address) && tracee.peek(address, &mut byte) {
                tracee.poke(address, &[BREAKPOINT]);
                entries.points.insert(address, byte[0]);
            }
        }
        entries
    }

    /// Returns the registers of a stopped thread at the entry of a watched
    /// function; `None` if it is elsewhere.
    pub fn reached(&self, tracee: &Tracee) -> std::io::Result<Option<Registers>> {
        if self.points.is_empty() {
            return Ok(None);
        }
        let registers = tracee.registers()?;
        let rip = registers.rip.wrapping_sub(1);
        Ok(self
            .points
            .contains_key(&rip)
            .then_some(Registers { rip, ..registers }))
    }

    /// Executes the first instruction of the function that a thread has reached.
    pub fn step(&self, tracee: &mut Tracee, registers: Registers) -> std::io::Result<Stopped> {
        let address = registers.rip;
        let original = self.points.get(&address).copied();
        tracee.set_registers(registers)?;
        tracee.poke(address, &[original.unwrap_or(BREAKPOINT)]);
        let stopped = tracee.step();
        tracee.poke(address, &[BREAKPOINT]);
        stopped
    }
}
