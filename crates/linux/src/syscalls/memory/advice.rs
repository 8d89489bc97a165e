//! `madvise`, `mincore` and `msync`.

use everett_vm::{Backing, Buffer, PAGE, Value};

use super::{PAGE_SIZE, aligned, whole_pages};
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
const WIPE_ON_FORK: u64 = 18;
const COLLAPSE: u64 = 25;
const POISON: u64 = 100;
const SOFT_OFFLINE: u64 = 101;
const GUARD: u64 = 102;
const REMOVE_GUARD: u64 = 103;
/// Advice without effect: access patterns, huge pages, core dumps, forks, paging.
const WITHOUT_EFFECT: &[u64] = &[
    0, 1, 2, 3, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
];

pub(super) fn madvise(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let [address, len, advice, ..] = call.args;
    let is_known = WITHOUT_EFFECT.contains(&advice)
        || matches!(advice, DONT_NEED | FREE | REMOVE | DONT_NEED_LOCKED);
    let is_refused = match advice {
        POISON | SOFT_OFFLINE => kernel.is_capable(SYS_ADMIN),
        DONT_FORK | WIPE_ON_FORK | COLLAPSE | GUARD | REMOVE_GUARD => true,
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
    let is_shared = |backing| matches!(backing, Backing::Shared { .. });
    for mapping in &range.mappings {
        let backing = mapping.traits.backing;
        match advice {
            DONT_NEED | DONT_NEED_LOCKED => {
                kernel.vm.memory.discard(mapping.start, mapping.size);
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
    /// Zeroes a range of a file.
    fn punch(&mut self, inode: InodeId, offset: u64, len: u64) {
        if let InodeKind::Regular(bytes) = &mut self.host.files.tree.get_mut(inode).kind {
            let end = bytes.len().min(offset.saturating_add(len));
            let mut at = offset;
            while at < end {
                let room = (end - at).min(PAGE as u64);
                bytes.write(at, &Buffer::zeroed(room as usize));
                at += room;
            }
        }
    }
}
