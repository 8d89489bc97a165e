//! Programs that a loader puts together before they begin. What it asks the kernel for is not of the program: the
//! bitcode has no loader, so time, turns and failures do not go by its calls.

use everett_linux::{Stream, TaskName};

use super::{NativeError, World};
use crate::tracee::{Registers, Tracee};

const BREAKPOINT: u8 = 0xcc;

/// A process that has not executed anything yet: if it begins in a loader, a breakpoint says when that is done.
pub(super) fn begin(tracee: &mut Tracee) -> std::io::Result<Option<(u64, u8)>> {
    let entry = tracee.start_address()?;
    if tracee.registers()?.rip == entry {
        return Ok(None);
    }
    let mut byte = [0];
    if !tracee.look(entry, &mut byte) {
        return Ok(None);
    }
    tracee.put(entry, &[BREAKPOINT]);
    Ok(Some((entry, byte[0])))
}

impl World<'_> {
    /// The program of a thread is being loaded.
    pub(super) fn is_loading(&self, name: TaskName) -> bool {
        let native = self.threads.get(&name);
        native.is_some_and(|native| native.loading.is_some())
    }

    /// A thread stopped at a breakpoint. `true` if that is where its program begins; it stands there now.
    pub(super) fn has_loaded(&mut self, name: TaskName) -> Result<bool, NativeError> {
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
        native.tracee.put(entry, &[original]);
        native.tracee.set_registers(Registers {
            rip: entry,
            ..registers
        })?;
        native.loading = None;
        Ok(true)
    }

    /// A process is about to end by itself. One that never began says nothing about its trace.
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
