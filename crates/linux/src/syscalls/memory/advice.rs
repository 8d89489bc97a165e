//! `madvise`, `mincore` and `msync`.

use everett_vm::{Backing, Value};

use super::{PAGE_SIZE, PageRange, aligned, whole_pages};
use crate::capabilities::SYS_ADMIN;
use crate::errno::Errno;
use crate::files::InodeKind;
use crate::ids::InodeId;
use crate::kernel::{Answer, Kernel};
use crate::table::Call;

const DONT_NEED: u64 = 4;
const FREE: u64 = 8;
const REMOVE: u64 = 9;
const DONT_NEED_LOCKED: u64 = 24;
const DONT_FORK: u64 = 10;
const DO_FORK: u64 = 11;
const WIPE_ON_FORK: u64 = 18;
const KEEP_ON_FORK: u64 = 19;
const POPULATE_READ: u64 = 22;
const POPULATE_WRITE: u64 = 23;
const COLLAPSE: u64 = 25;
const POISON: u64 = 100;
const SOFT_OFFLINE: u64 = 101;
const GUARD: u64 = 102;
const REMOVE_GUARD: u64 = 103;
/// Advice that is not refused, most of it without effect: access patterns, huge pages, core dumps,
/// forks, paging.
const WITHOUT_EFFECT: &[u64] = &[
    0, 1, 2, 3, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
];

pub(super) fn madvise(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let [address, len, advice, ..] = call.args;
    let is_known = WITHOUT_EFFECT.contains(&advice)
        || matches!(advice, DONT_NEED | FREE | REMOVE | DONT_NEED_LOCKED);
    let is_refused = match advice {
        POISON | SOFT_OFFLINE => kernel.is_capable(SYS_ADMIN),
        DONT_FORK | WIPE_ON_FORK => kernel.is_own_object(address),
        COLLAPSE | GUARD | REMOVE_GUARD => true,
        _ => false,
    };
    if is_refused {
        kernel.refuse("madvise", format!("madvise with advice {advice}"));
    }
    if matches!(advice, POISON | SOFT_OFFLINE) {
        return Err(Errno::EPERM.into());
    }
    let size = whole_pages(len);
    if !is_known || aligned(address).is_err() || size.is_none() {
        return Err(Errno::EINVAL.into());
    }
    if len == 0 {
        return Ok(Value::ZERO);
    }
    let range = kernel.range(address, len).map_err(|_| Errno::EINVAL)?;
    if kernel.is_own_object(address) {
        if matches!(advice, DONT_NEED | DONT_NEED_LOCKED | REMOVE) {
            let what = format!("madvise with advice {advice} for globals, stacks or heap");
            kernel.refuse("madvise", what);
        }
        return Ok(Value::ZERO);
    }
    if matches!(advice, POPULATE_READ | POPULATE_WRITE) {
        return kernel.populate(&range, advice == POPULATE_WRITE);
    }
    let is_shared = |backing| matches!(backing, Backing::Shared { .. });
    for mapping in &range.mappings {
        let backing = mapping.traits.backing;
        match advice {
            DONT_NEED | DONT_NEED_LOCKED => {
                kernel.vm.memory.discard(mapping.start, mapping.size);
            }
            WIPE_ON_FORK if backing != Backing::Anonymous => return Err(Errno::EINVAL.into()),
            DONT_FORK | DO_FORK | WIPE_ON_FORK | KEEP_ON_FORK => {
                let memory = &mut kernel.vm.memory;
                memory.advise_fork(mapping.start, mapping.size, |on_fork| match advice {
                    DONT_FORK => on_fork.drops = true,
                    DO_FORK => on_fork.drops = false,
                    WIPE_ON_FORK => on_fork.wipes = true,
                    _ => on_fork.wipes = false,
                });
            }
            FREE if backing != Backing::Anonymous => return Err(Errno::EINVAL.into()),
            REMOVE if !is_shared(backing) => return Err(Errno::EINVAL.into()),
            REMOVE if !mapping.traits.may_write => return Err(Errno::EACCES.into()),
            REMOVE => {
                if let Backing::Shared { file, page } = backing {
                    kernel.punch(InodeId(file), page * PAGE_SIZE, mapping.size);
                }
            }
            _ => {}
        }
    }
    match range.has_hole() {
        true => Err(Errno::ENOMEM.into()),
        false => Ok(Value::ZERO),
    }
}

pub(super) fn mincore(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let [address, len, vector, ..] = call.args;
    let range = kernel.range(address, len)?;
    let pages = range.size / PAGE_SIZE;
    kernel
        .check(vector, pages, true)
        .map_err(|_| Errno::EFAULT)?;
    if range.has_hole() && !kernel.is_own_object(address) {
        return Err(Errno::ENOMEM.into());
    }
    let residents = kernel.vm.memory.resident_pages(range.start, range.size);
    let bytes: Vec<u8> = residents.into_iter().map(u8::from).collect();
    kernel.write_bytes(vector, &bytes)?;
    Ok(Value::ZERO)
}

pub(super) fn msync(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const ASYNC: u64 = 1;
    const INVALIDATE: u64 = 2;
    const SYNC: u64 = 4;
    let [address, len, flags, ..] = call.args;
    let both = flags & (ASYNC | SYNC) == ASYNC | SYNC;
    if flags & !(ASYNC | INVALIDATE | SYNC) != 0 || both {
        return Err(Errno::EINVAL.into());
    }
    // Files already contain what was written through mappings.
    let range = kernel.range(address, len)?;
    if kernel.has_hole(&range) {
        return Err(Errno::ENOMEM.into());
    }
    if flags & INVALIDATE != 0 && kernel.is_locked(&range) {
        return Err(Errno::EBUSY.into());
    }
    if flags & SYNC != 0 {
        // Synchronises all files, whichever is mapped: this understates what a host may lose.
        kernel.host.files.sync_all();
    }
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// Accesses each page of a range as the program would, up to the first that it cannot access.
    fn populate(&self, range: &PageRange, write: bool) -> Answer {
        let mut at = range.start;
        for mapping in &range.mappings {
            if mapping.start > at {
                return Err(Errno::ENOMEM.into());
            }
            at = mapping.end();
            if !mapping.traits.protection.allows(write) {
                return Err(Errno::EINVAL.into());
            }
            let (Backing::Shared { file, page } | Backing::Private { file, page }) =
                mapping.traits.backing
            else {
                continue;
            };
            if let InodeKind::Regular(bytes) = &self.host.files.tree.get(InodeId(file)).kind
                && page * PAGE_SIZE + mapping.size > bytes.len().next_multiple_of(PAGE_SIZE)
            {
                return Err(Errno::EFAULT.into());
            }
        }
        match range.has_hole() {
            true => Err(Errno::ENOMEM.into()),
            false => Ok(Value::ZERO),
        }
    }

    /// Zeroes a range of a file.
    fn punch(&mut self, inode: InodeId, offset: u64, len: u64) {
        if let InodeKind::Regular(bytes) = &mut self.host.files.tree.get_mut(inode).kind {
            bytes.clear(offset, len);
        }
    }
}
