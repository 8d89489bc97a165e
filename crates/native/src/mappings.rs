//! Memory of native processes: the real kernel's, while what files hold comes from the model.

use everett_linux::{Errno, Guest, Served, TaskName};

use crate::sandbox::{MAX_MAPPED, MAX_RESIDENT, mapped, resident};
use crate::world::{Call, NativeError, World, number};

impl World<'_> {
    /// Answers a call about memory: by the real kernel, where it is not to fail.
    pub(crate) fn memory_call(
        &mut self,
        name: TaskName,
        call: Call,
    ) -> Result<Served, NativeError> {
        let served = match call.number {
            number::MMAP => self.map_or_fail(name, call)?,
            _ => self.change_memory(name, call)?,
        };
        if self.calls.is_multiple_of(64) {
            self.check_memory()?;
        }
        Ok(served)
    }

    /// Whether it fails is asked where it succeeds.
    fn map_or_fail(&mut self, name: TaskName, call: Call) -> Result<Served, NativeError> {
        let served = self.map(name, call)?;
        let Served::Done(start, _) = served else {
            return Ok(served);
        };
        if is_error(start) {
            return Ok(served);
        }
        let Some(errno) = self.memory_call_fails(name, call) else {
            return Ok(served);
        };
        if let Some(native) = self.threads.get_mut(&name) {
            let mapping = [start, call.args[1], 0, 0, 0, 0];
            native.tracee.aside(number::MUNMAP, mapping)?;
        }
        Ok(Served::Done(errno.result(), Vec::new()))
    }

    fn change_memory(&mut self, name: TaskName, call: Call) -> Result<Served, NativeError> {
        if let Some(errno) = self.memory_call_fails(name, call) {
            return Ok(Served::Done(errno.result(), Vec::new()));
        }
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(Served::Off);
        };
        let result = match is_harmless(&call) {
            true => native.tracee.aside(call.number, call.args)?,
            false => Errno::EINVAL.result(),
        };
        Ok(Served::Done(result, Vec::new()))
    }

    /// A run must not take the memory of the whole machine.
    pub(crate) fn check_memory(&self) -> Result<(), NativeError> {
        let threads = self.threads.values();
        let first = threads.filter(|native| native.tracee.thread == native.tracee.process);
        let used: u64 = first.map(|native| resident(native.tracee.process)).sum();
        if used > MAX_RESIDENT {
            let message = format!("its processes use more than {} MiB", MAX_RESIDENT >> 20);
            return Err(NativeError::NotReplayable(message));
        }
        Ok(())
    }

    /// Memory is the real kernel's; what a file holds comes from the model.
    fn map(&mut self, name: TaskName, call: Call) -> Result<Served, NativeError> {
        const SHARED: u64 = 1;
        const WRITE: u64 = 2;
        const PRIVATE: u64 = 2;
        const ANONYMOUS: u64 = 0x20;
        let [address, len, protection, flags, fd, offset] = call.args;
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(Served::Off);
        };
        if flags & ANONYMOUS != 0 {
            // The real kernel limits only memory that is not shared.
            let after = mapped(native.tracee.process).saturating_add(len);
            if flags & SHARED != 0 && after > MAX_MAPPED {
                return Ok(Served::Done(Errno::ENOMEM.result(), Vec::new()));
            }
            let result = native.tracee.aside(number::MMAP, call.args)?;
            return Ok(Served::Done(result, Vec::new()));
        }
        if flags & SHARED != 0 && protection & WRITE != 0 {
            let message = "the program writes to a shared mapping of a file".to_owned();
            return Err(NativeError::NotReplayable(message));
        }
        let contents = match self.host.file_contents(name.pid, fd as i32, offset, len) {
            Ok(contents) => contents,
            Err(errno) => return Ok(Served::Done(errno.result(), Vec::new())),
        };
        let bytes = contents.evaluate(&mut self.arena, &self.oracle.inputs);
        let flags = flags & !(SHARED | PRIVATE) | PRIVATE | ANONYMOUS;
        let args = [address, len, protection | WRITE, flags, u64::MAX, 0];
        let start = native.tracee.aside(number::MMAP, args)?;
        if is_error(start) {
            return Ok(Served::Done(start, Vec::new()));
        }
        native.tracee.write(start, &bytes);
        native
            .tracee
            .aside(number::MPROTECT, [start, len, protection, 0, 0, 0])?;
        Ok(Served::Done(start, Vec::new()))
    }
}

/// The result of a system call is an error.
fn is_error(result: u64) -> bool {
    (-4095..0).contains(&(result as i64))
}

/// What can be done to a real process without reaching anything else of the machine.
fn is_harmless(call: &Call) -> bool {
    const SET_GS: u64 = 0x1001;
    const GET_GS: u64 = 0x1004;
    /// Pages that are taken away from the machine.
    const POISON: u64 = 100;
    match call.number {
        number::ARCH_PRCTL => (SET_GS..=GET_GS).contains(&call.args[0]),
        number::MADVISE => call.args[2] < POISON,
        _ => true,
    }
}
