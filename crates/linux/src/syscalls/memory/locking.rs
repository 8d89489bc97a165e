//! Locked memory (`mlock`). The model never swaps, so locking has no effect except on
//! the resource limit and on `msync`.

use everett_vm::Value;

use super::{PAGE_SIZE, PageRange};
use crate::capabilities::IPC_LOCK;
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel};
use crate::limits::{LOCKED_MEMORY, UNLIMITED};
use crate::process::LockedMemory;
use crate::table::Call;

pub(super) fn mlock(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let limit = kernel.lock_limit()?;
    let range = kernel.range_to_lock(call)?;
    let end = range.start + range.size;
    let mut locked = kernel.process().locked_memory.clone();
    locked.lock(range.start, end);
    if locked.bytes() > limit || kernel.has_hole(&range) {
        return Err(Errno::ENOMEM.into());
    }
    if range.size > 0 {
        kernel.process_mut().locked_memory = locked;
    }
    Ok(Value::ZERO)
}

pub(super) fn munlock(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let range = kernel.range_to_lock(call)?;
    if kernel.has_hole(&range) {
        return Err(Errno::ENOMEM.into());
    }
    let end = range.start + range.size;
    kernel.process_mut().locked_memory.unlock(range.start, end);
    Ok(Value::ZERO)
}

pub(super) fn mlock2(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const ON_FAULT: u64 = 1;
    if call.args[2] & !ON_FAULT != 0 {
        return Err(Errno::EINVAL.into());
    }
    mlock(kernel, call)
}

pub(super) fn mlockall(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const CURRENT: u64 = 1;
    const FUTURE: u64 = 2;
    const ON_FAULT: u64 = 4;
    let flags = call.args[0];
    if flags & !(CURRENT | FUTURE | ON_FAULT) != 0 || flags & (CURRENT | FUTURE) == 0 {
        return Err(Errno::EINVAL.into());
    }
    let limit = kernel.lock_limit()?;
    // Memory that every program has mapped from the start: code, data and stack.
    const AT_LEAST: u64 = 1 << 16;
    let mapped = match &mut kernel.guest {
        Some(guest) => {
            let mappings = guest.mappings();
            mappings.iter().map(|one| one.end - one.start).sum()
        }
        None => kernel.vm.memory.address_space(),
    };
    if flags & CURRENT != 0 && limit < mapped.max(AT_LEAST) {
        return Err(Errno::ENOMEM.into());
    }
    let locked = &mut kernel.process_mut().locked_memory;
    locked.all |= flags & CURRENT != 0;
    locked.future = flags & FUTURE != 0;
    Ok(Value::ZERO)
}

pub(super) fn munlockall(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    kernel.process_mut().locked_memory = LockedMemory::default();
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// The pages that a call names; the address is rounded down to a page.
    fn range_to_lock(&self, call: &Call) -> Result<PageRange, Errno> {
        let start = call.args[0] & !(PAGE_SIZE - 1);
        let len = call.args[1].saturating_add(call.args[0] - start);
        self.range(start, len).map_err(|_| Errno::ENOMEM)
    }

    /// `RLIMIT_MEMLOCK`: maximum number of bytes that the process may lock. `EPERM` if it may lock
    /// none.
    pub(super) fn lock_limit(&self) -> Result<u64, Errno> {
        if self.is_capable(IPC_LOCK) {
            return Ok(UNLIMITED);
        }
        match self.process().limits.soft(LOCKED_MEMORY) {
            0 => Err(Errno::EPERM),
            limit => Ok(limit),
        }
    }

    /// Whether a part of a range is locked.
    pub(super) fn is_locked(&self, range: &PageRange) -> bool {
        let end = range.start + range.size;
        self.process().locked_memory.overlaps(range.start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_and_counted_once() {
        let mut locked = LockedMemory::default();
        locked.lock(0x1000, 0x5000);
        locked.lock(0x2000, 0x3000);
        assert_eq!(locked.bytes(), 0x4000);
        locked.unlock(0x1000, 0x2000);
        assert_eq!(locked.bytes(), 0x3000);
        assert!(!locked.overlaps(0x1000, 0x2000) && locked.overlaps(0x1000, 0x2001));
    }
}
