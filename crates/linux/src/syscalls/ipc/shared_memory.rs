//! System V shared memory: an unlinked file that processes map.

use everett_vm::Value;

use super::{IPC_64, READ, REMOVE, SET, STATUS, WRITE, longs, set_permissions};
use crate::errno::Errno;
use crate::files::{Description, Target};
use crate::host::Host;
use crate::ipc::Segment;
use crate::kernel::{Answer, Kernel};
use crate::syscalls::memory::MapRequest;
use crate::table::Call;

const PAGE_SIZE: u64 = everett_vm::PAGE as u64;
/// Maximum size of a segment.
const LARGEST: u64 = 1 << 32;
/// Maximum number of segments of a host.
const MAX: usize = 4096;

/// `SHM_DEST`: the segment is destroyed at the last detach.
const GOING: u32 = 0o1000;

pub(super) fn shmget(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (key, size, flags) = (call.args[0] as u32, call.args[1], call.args[2]);
    let segments = &kernel.host.ipc.segments;
    let found = segments
        .iter()
        .find(|(_, segment)| segment.permissions.key == key && !segment.removed);
    let found = found.map(|(id, segment)| (*id, segment.permissions));
    if let Some(id) = kernel.find_key(key, flags, found)? {
        if kernel.host.ipc.segments[&id].size < size {
            return Err(Errno::EINVAL.into());
        }
        return Ok(Value::concrete(u64::from(id)));
    }
    if size == 0 || size > LARGEST {
        return Err(Errno::EINVAL.into());
    }
    if kernel.host.ipc.segments.len() >= MAX {
        return Err(Errno::ENOSPC.into());
    }
    let inode = kernel.host.anonymous_file(size.next_multiple_of(PAGE_SIZE));
    let holder = kernel
        .host
        .files
        .open(Description::new(Target::Inode(inode), 2));
    let segment = Segment {
        permissions: kernel.new_permissions(key, flags),
        size,
        inode,
        holder,
        times: [0, 0, kernel.host.wall_seconds()],
        pids: [kernel.process().pid, 0],
        removed: false,
    };
    let id = kernel.ipc().new_number();
    kernel.ipc().segments.insert(id, segment);
    Ok(Value::concrete(u64::from(id)))
}

pub(super) fn shmat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const READ_ONLY: u64 = 0o10000;
    const ROUND: u64 = 0o20000;
    const REMAP: u64 = 0o40000;
    const EXECUTE: u64 = 0o100_000;
    const FIXED: u64 = 0x10;
    const SHARED: u64 = 1;
    let (id, mut address, flags) = (call.args[0] as u32, call.args[1], call.args[2]);
    let segment = kernel.segment(id)?;
    if address % PAGE_SIZE != 0 {
        if flags & ROUND == 0 {
            return Err(Errno::EINVAL.into());
        }
        address -= address % PAGE_SIZE;
    }
    let wanted = match flags & READ_ONLY {
        0 => READ | WRITE,
        _ => READ,
    };
    kernel.allowed(&segment.permissions, wanted)?;
    let size = segment.size.next_multiple_of(PAGE_SIZE);
    if address != 0 && flags & REMAP == 0 && !kernel.is_free(address, size) {
        return Err(Errno::EINVAL.into());
    }
    if address == 0 && flags & REMAP != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mapped = kernel.map(MapRequest {
        address,
        size,
        protection: match flags & (READ_ONLY | EXECUTE) {
            0 => 3,
            READ_ONLY => 1,
            EXECUTE => 7,
            _ => 5,
        },
        flags: SHARED | if address != 0 { FIXED } else { 0 },
        file: Some((segment.inode, segment.holder.0, 0)),
        may_write: flags & READ_ONLY == 0,
    })?;
    let pid = kernel.process().pid;
    let now = kernel.host.wall_seconds();
    let ipc = kernel.ipc();
    ipc.attached.insert((pid, mapped.bits), id);
    if let Some(segment) = ipc.segments.get_mut(&id) {
        segment.times[0] = now;
        segment.pids[1] = pid;
    }
    Ok(mapped)
}

pub(super) fn shmdt(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (pid, address) = (kernel.process().pid, call.args[0]);
    let id = kernel.host.ipc.attached.get(&(pid, address)).copied();
    let id = id.ok_or(Errno::EINVAL)?;
    let now = kernel.host.wall_seconds();
    let ipc = kernel.ipc();
    ipc.attached.remove(&(pid, address));
    let mut size = 0;
    if let Some(segment) = ipc.segments.get_mut(&id) {
        size = segment.size.next_multiple_of(PAGE_SIZE);
        segment.times[1] = now;
        segment.pids[1] = pid;
    }
    kernel.unmap(address, size);
    kernel.host.destroy_unused_segment(id);
    Ok(Value::ZERO)
}

pub(super) fn shmctl(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const LOCK: u64 = 11;
    const UNLOCK: u64 = 12;
    let (id, command, address) = (call.args[0] as u32, call.args[1] & !IPC_64, call.args[2]);
    kernel.refuse_tables("shmctl", command, &[13, 14, 15]);
    let segment = kernel.segment(id)?;
    match command {
        STATUS => {
            kernel.allowed(&segment.permissions, READ)?;
            let going = if segment.removed { GOING } else { 0 };
            let mut bytes = segment.permissions.encode(segment.permissions.mode | going);
            let [attached, detached, changed] = segment.times;
            bytes.extend(longs(&[segment.size, attached, detached, changed]));
            bytes.extend(segment.pids.iter().flat_map(|pid| pid.to_le_bytes()));
            bytes.extend(longs(&[kernel.host.ipc.attachments(id), 0, 0]));
            kernel.write_bytes(address, &bytes)?;
        }
        SET => {
            let new = kernel.read_permissions(address)?;
            kernel.owns(&segment.permissions)?;
            let now = kernel.host.wall_seconds();
            if let Some(segment) = kernel.ipc().segments.get_mut(&id) {
                set_permissions(&mut segment.permissions, new);
                segment.times[2] = now;
            }
        }
        REMOVE => {
            kernel.owns(&segment.permissions)?;
            if let Some(segment) = kernel.ipc().segments.get_mut(&id) {
                segment.removed = true;
                segment.permissions.key = 0;
            }
            kernel.host.destroy_unused_segment(id);
        }
        LOCK | UNLOCK => kernel.owns(&segment.permissions)?,
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// The segment with this id.
    fn segment(&self, id: u32) -> Result<Segment, Errno> {
        let segment = self.host.ipc.segments.get(&id);
        segment.cloned().ok_or(Errno::EINVAL)
    }
}

impl Host {
    /// The size of a segment of shared memory, in whole pages.
    pub fn shared_memory_size(&self, id: u32) -> Option<u64> {
        let segment = self.state.ipc.segments.get(&id)?;
        Some(segment.size.next_multiple_of(PAGE_SIZE))
    }
}
