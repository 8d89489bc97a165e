//! Dynamically linked programs while their loader runs. The calls of the loader are not the
//! program's own: the bitcode has no loader, so they take no time, are no scheduling points and
//! cannot be made to fail.

use everett_linux::{Stream, TaskName};

use super::{NativeError, NativeMachine};
use crate::tracee::{Registers, Tracee};

const BREAKPOINT: u8 = 0xcc;

/// Sets a breakpoint at the entry point of a new program if it starts in a loader.
pub(super) fn begin(tracee: &mut Tracee) -> std::io::Result<Option<(u64, u8)>> {
    let entry = tracee.start_address()?;
    if tracee.registers()?.rip == entry {
        return Ok(None);
    }
    let mut byte = [0];
    if !tracee.peek(entry, &mut byte) {
        return Ok(None);
    }
    tracee.poke(entry, &[BREAKPOINT]);
    Ok(Some((entry, byte[0])))
}

impl NativeMachine<'_> {
    /// Returns whether the program of a thread is being loaded.
    pub(super) fn is_loading(&self, name: TaskName) -> bool {
        let native = self.threads.get(&name);
        native.is_some_and(|native| native.loading.is_some())
    }

    /// Handles a thread that hit a breakpoint. Returns `true` if that is the entry point of its
    /// program, where the thread is stopped now.
    pub(super) fn finish_loading(&mut self, name: TaskName) -> Result<bool, NativeError> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(false);
        };
        let Some((entry, original)) = native.loading else {
            return Ok(false);
        };
        let registers = native.tracee.registers()?;
        if registers.rip.wrapping_sub(1) != entry {
            return Ok(false);
        }
        native.tracee.poke(entry, &[original]);
        native.tracee.set_registers(Registers {
            rip: entry,
            ..registers
        })?;
        native.loading = None;
        Ok(true)
    }

    /// Fails if a process exits before its program was loaded: such a run says nothing about the
    /// trace.
    pub(super) fn expect_loaded(&mut self, name: TaskName) -> Result<(), NativeError> {
        if !self.is_loading(name) {
            return Ok(());
        }
        let said = self.host.output(Stream::Stderr);
        let said = said.evaluate(&mut self.arena, &self.oracle.inputs);
        let said = String::from_utf8_lossy(&said);
        let said = said.lines().last().unwrap_or_default();
        let message = format!("the native program cannot be loaded: {said}");
        Err(NativeError::NotReplayable(message))
    }
}
