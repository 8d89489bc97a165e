//! Memory of native processes: the real kernel's, while what files hold comes from the model.

use everett_linux::{Errno, Guest, Served, TaskName};

use crate::sandbox::{MAX_MAPPED, mapped};
use crate::world::{Call, NativeError, World, number};

impl World<'_> {
    /// Memory is the real kernel's; what a file holds comes from the model.
    pub(crate) fn map(&mut self, name: TaskName, call: Call) -> Result<Served, NativeError> {
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
        if (start as i64) < 0 && (start as i64) > -4096 {
            return Ok(Served::Done(start, Vec::new()));
        }
        native.tracee.write(start, &bytes);
        native
            .tracee
            .aside(number::MPROTECT, [start, len, protection, 0, 0, 0])?;
        Ok(Served::Done(start, Vec::new()))
    }
}
