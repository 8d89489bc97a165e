//! Files in `/proc/PID` that change something when they are written.

use everett_vm::Value;

use crate::capabilities::SYS_RESOURCE;
use crate::errno::Errno;
use crate::files::{About, Generated};
use crate::kernel::{Answer, Kernel, Stop};
use crate::transfers::IoRange;

/// Bytes that are read of what is written.
const LONGEST: u64 = 15;

impl Kernel<'_, '_> {
    /// Writes to a generated file.
    pub(super) fn write_setting(&mut self, what: Generated, ranges: &[IoRange]) -> Answer {
        let all = ranges
            .iter()
            .fold(0u64, |sum, range| sum.saturating_add(range.len));
        let mut bytes = Vec::new();
        for range in ranges {
            let left = LONGEST - bytes.len() as u64;
            bytes.extend(self.read_bytes(range.address, range.len.min(left))?);
        }
        match what {
            Generated::Process(pid, About::OutOfMemory) => self.adjust_score(pid, &bytes)?,
            Generated::Process(pid, About::Name) => self.rename_task(pid, &bytes)?,
            _ => return Err(Errno::EINVAL.into()),
        }
        Ok(Value::concrete(all))
    }

    fn adjust_score(&mut self, pid: u32, bytes: &[u8]) -> Result<(), Stop> {
        let text = std::str::from_utf8(bytes).unwrap_or_default().trim();
        let wanted: i32 = text.parse().map_err(|_| Errno::EINVAL)?;
        if !(-1000..=1000).contains(&wanted) {
            return Err(Errno::EINVAL.into());
        }
        let may_lower = self.is_capable(SYS_RESOURCE);
        let process = self.host.process_by_pid_mut(pid).ok_or(Errno::ESRCH)?;
        let score = &mut process.out_of_memory;
        if wanted < score.lowest && !may_lower {
            return Err(Errno::EACCES.into());
        }
        score.adjustment = wanted;
        if may_lower {
            score.lowest = wanted;
        }
        Ok(())
    }

    /// Sets the name of the first thread of the calling process (`comm`).
    fn rename_task(&mut self, pid: u32, bytes: &[u8]) -> Result<(), Stop> {
        if pid != self.process().pid {
            return Err(Errno::EINVAL.into());
        }
        let task = self.host.task_by_tid(pid).ok_or(Errno::ESRCH)?;
        let mut name = [0; 16];
        name[..bytes.len()].copy_from_slice(bytes);
        triomphe::Arc::make_mut(&mut self.host.tasks[task]).name = name;
        Ok(())
    }
}
