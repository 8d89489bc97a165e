//! File locks: `flock`, and the lock commands of `fcntl`.

use everett_vm::Value;

use crate::errno::Errno;
use crate::files::{Conflict, Description, Descriptor, InodeKind, LockOwner, LockRange, Target};
use crate::ids::InodeId;
use crate::kernel::{Answer, Kernel, Stop};
use crate::table::ArgKind::{Fd, Int};
use crate::table::{Call, Row};
use crate::wait::WaitCondition;

/// Rows of this family.
pub const ROWS: &[Row] = &[Row::new(
    "flock",
    73,
    &[Fd, Int],
    &[Errno::EINTR, Errno::EAGAIN],
    flock,
)
.fails_where(|_, args, errno| {
    let nonblock = args[1] as i32 & NONBLOCK != 0;
    args[1] as i32 & RELEASE == 0 && nonblock == (errno == Errno::EAGAIN)
})];

/// Flags of the operation of `flock`.
const NONBLOCK: i32 = 4;
const RELEASE: i32 = 8;

/// Lock commands of `fcntl`.
pub const GET_LOCK: i32 = 5;
pub const SET_LOCK: i32 = 6;
pub const SET_LOCK_WAIT: i32 = 7;
pub const GET_OPEN_LOCK: i32 = 36;
pub const SET_OPEN_LOCK: i32 = 37;
pub const SET_OPEN_LOCK_WAIT: i32 = 38;

const READ_LOCK: u16 = 0;
const WRITE_LOCK: u16 = 1;
const UNLOCK: u16 = 2;

fn flock(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const SHARED: i32 = 1;
    const EXCLUSIVE: i32 = 2;
    /// `LOCK_MAND`, which newer kernels ignore.
    const MANDATORY: i32 = 32;
    kernel.usable(call.int(0))?;
    let (descriptor, description) = kernel.description(call.int(0))?;
    if call.int(1) & MANDATORY != 0 {
        return Ok(Value::ZERO);
    }
    let wanted = match call.int(1) & !NONBLOCK {
        SHARED => Some(false),
        EXCLUSIVE => Some(true),
        RELEASE => None,
        _ => return Err(Errno::EINVAL.into()),
    };
    // A target without an inode cannot be opened a second time, so its lock is never contended.
    let Target::Inode(inode) = description.target else {
        return Ok(Value::ZERO);
    };
    let owner = descriptor.description;
    let held = kernel.host.files.locks.holds(inode, owner);
    if held == wanted {
        return Ok(Value::ZERO);
    }
    // A lock is released before it is converted.
    if kernel.host.files.locks.set_whole(inode, owner, None) {
        kernel.host.lock_releases += 1;
    }
    let Some(exclusive) = wanted else {
        return Ok(Value::ZERO);
    };
    if kernel.host.files.locks.is_taken(inode, owner, exclusive) {
        if call.int(1) & NONBLOCK != 0 {
            return Err(Errno::EAGAIN.into());
        }
        let releases = kernel.host.lock_releases;
        return Err(kernel.wait_restartable(WaitCondition::LockReleased(releases), "flock"));
    }
    let locks = &mut kernel.host.files.locks;
    locks.set_whole(inode, owner, Some(exclusive));
    Ok(Value::ZERO)
}

/// A requested lock.
struct LockRequest {
    kind: u16,
    range: LockRange,
}

impl Kernel<'_, '_> {
    /// The lock commands of `fcntl`.
    pub fn lock(
        &mut self,
        descriptor: Descriptor,
        description: &Description,
        command: i32,
        address: u64,
    ) -> Answer {
        let of_open_file = command >= GET_OPEN_LOCK;
        let wanted = self.read_lock(address, description, of_open_file)?;
        let Target::Inode(inode) = description.target else {
            return Err(Errno::EINVAL.into());
        };
        let owner = match of_open_file {
            true => LockOwner::Description(descriptor.description),
            false => LockOwner::Process(self.process().pid),
        };
        if matches!(command, GET_LOCK | GET_OPEN_LOCK) {
            return self.write_conflict(inode, owner, &wanted, address);
        }
        let exclusive = match wanted.kind {
            READ_LOCK if !description.flags.readable() => return Err(Errno::EBADF.into()),
            WRITE_LOCK if !description.flags.writable() => return Err(Errno::EBADF.into()),
            READ_LOCK => Some(false),
            WRITE_LOCK => Some(true),
            _ => None,
        };
        if let Some(exclusive) = exclusive {
            let asked = Conflict {
                range: wanted.range,
                owner,
                exclusive,
            };
            if self.host.files.locks.conflict(inode, asked).is_some() {
                let waits = matches!(command, SET_LOCK_WAIT | SET_OPEN_LOCK_WAIT);
                return Err(self.must_wait_for(inode, asked, waits));
            }
        }
        let tid = self.task().tid;
        let locks = &mut self.host.files.locks;
        locks.stop_waiting(tid);
        if locks.set(inode, owner, wanted.range, exclusive) {
            self.host.lock_releases += 1;
        }
        Ok(Value::ZERO)
    }

    fn must_wait_for(&mut self, inode: InodeId, asked: Conflict, waits: bool) -> Stop {
        if !waits {
            return Errno::EAGAIN.into();
        }
        let tid = self.task().tid;
        if let LockOwner::Process(_) = asked.owner {
            let tasks = &self.host.tasks;
            let waits = |other: u32| {
                let task = tasks.iter().find(|task| task.tid == other);
                let condition = task.and_then(|task| task.run_state.condition());
                other != tid && matches!(condition, Some(WaitCondition::LockReleased(_)))
            };
            if self.host.files.locks.would_deadlock(inode, asked, waits) {
                return Errno::EDEADLK.into();
            }
            self.host.files.locks.wait(tid, inode, asked);
        }
        let releases = self.host.lock_releases;
        self.wait_restartable(WaitCondition::LockReleased(releases), "lock of a file")
    }

    /// Reads a `struct flock`.
    fn read_lock(
        &mut self,
        address: u64,
        description: &Description,
        of_open_file: bool,
    ) -> Result<LockRequest, Stop> {
        let bytes = self.read_bytes(address, 32)?;
        let number = |at: usize, len: usize| {
            let mut word = [0; 8];
            word[..len].copy_from_slice(&bytes[at..at + len]);
            u64::from_le_bytes(word)
        };
        let (kind, whence) = (number(0, 2) as u16, number(2, 2));
        let (start, len) = (number(8, 8) as i64, number(16, 8) as i64);
        if kind > UNLOCK || (of_open_file && number(24, 4) != 0) {
            return Err(Errno::EINVAL.into());
        }
        let base = match whence {
            0 => 0,
            1 => description.offset as i64,
            2 => match description.target {
                Target::Inode(id) => match &self.host.files.tree.get(id).kind {
                    InodeKind::Regular(bytes) => bytes.len() as i64,
                    _ => 0,
                },
                _ => 0,
            },
            _ => return Err(Errno::EINVAL.into()),
        };
        let start = base.checked_add(start).ok_or(Errno::EOVERFLOW)?;
        let (start, end) = match len {
            0 => (start, None),
            1.. => {
                let last = start.checked_add(len - 1).ok_or(Errno::EOVERFLOW)?;
                (start, Some(last as u64 + 1))
            }
            _ => (start.saturating_add(len), Some(start as u64)),
        };
        let start = u64::try_from(start).map_err(|_| Errno::EINVAL)?;
        // The largest offset means the end of the file.
        let end = end
            .filter(|end| *end <= i64::MAX as u64)
            .unwrap_or(u64::MAX);
        Ok(LockRequest {
            kind,
            range: LockRange { start, end },
        })
    }

    fn write_conflict(
        &mut self,
        inode: InodeId,
        owner: LockOwner,
        wanted: &LockRequest,
        address: u64,
    ) -> Answer {
        let exclusive = match wanted.kind {
            READ_LOCK => false,
            WRITE_LOCK => true,
            _ => return Err(Errno::EINVAL.into()),
        };
        let asked = Conflict {
            range: wanted.range,
            owner,
            exclusive,
        };
        let Some(found) = self.host.files.locks.conflict(inode, asked) else {
            self.write_bytes(address, &UNLOCK.to_le_bytes())?;
            return Ok(Value::ZERO);
        };
        let len = match found.range.end {
            u64::MAX => 0,
            end => end - found.range.start,
        };
        let pid = match found.owner {
            LockOwner::Process(pid) => pid as i32,
            LockOwner::Description(_) => -1,
        };
        let kind = if found.exclusive {
            WRITE_LOCK
        } else {
            READ_LOCK
        };
        let mut bytes = Vec::with_capacity(32);
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&[0; 6]);
        bytes.extend_from_slice(&found.range.start.to_le_bytes());
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(&pid.to_le_bytes());
        self.write_bytes(address, &bytes)?;
        Ok(Value::ZERO)
    }
}
