//! File attributes: permissions, owners, times and sizes.

use everett_vm::Value;

use super::paths::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW};
use crate::capabilities::{CHOWN, FSETID};
use crate::errno::Errno;
use crate::files::{InodeKind, OpenFlags, Target, WRITE};
use crate::ids::InodeId;
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::happened;
use crate::table::ArgKind::{Fd, Flags, Int, Path, Pointer};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("chmod", 90, &[Path, Int], CHANGE_ERRORS, chmod),
    Row::new("fchmod", 91, &[Fd, Int], FD_ERRORS, fchmod),
    Row::new("fchmodat", 268, &[Fd, Path, Int], CHANGE_ERRORS, fchmodat),
    Row::new(
        "fchmodat2",
        452,
        &[Fd, Path, Int, Flags],
        CHANGE_ERRORS,
        fchmodat2,
    ),
    Row::new("chown", 92, &[Path, Int, Int], CHANGE_ERRORS, chown),
    Row::new("fchown", 93, &[Fd, Int, Int], FD_ERRORS, fchown),
    Row::new("lchown", 94, &[Path, Int, Int], CHANGE_ERRORS, lchown),
    Row::new(
        "fchownat",
        260,
        &[Fd, Path, Int, Int, Flags],
        CHANGE_ERRORS,
        fchownat,
    ),
    Row::new("utime", 132, &[Path, Pointer], CHANGE_ERRORS, utime),
    Row::new("utimes", 235, &[Path, Pointer], CHANGE_ERRORS, utimes),
    Row::new(
        "futimesat",
        261,
        &[Fd, Path, Pointer],
        CHANGE_ERRORS,
        futimesat,
    ),
    Row::new(
        "utimensat",
        280,
        &[Fd, Path, Pointer, Flags],
        CHANGE_ERRORS,
        utimensat,
    ),
    Row::new("truncate", 76, &[Path, Int], SIZE_ERRORS, truncate),
    Row::new("ftruncate", 77, &[Fd, Int], SIZE_ERRORS, ftruncate),
    Row::new(
        "fallocate",
        285,
        &[Fd, Int, Int, Int],
        SIZE_ERRORS,
        fallocate,
    )
    .without("FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE"),
    Row::new("umask", 95, &[Int], &[], umask),
    Row::new("statfs", 137, &[Path, Pointer], &[Errno::EACCES], statfs),
    Row::new("fstatfs", 138, &[Fd, Pointer], &[], fstatfs),
];

const CHANGE_ERRORS: &[Errno] = &[Errno::ENOENT, Errno::EACCES, Errno::EPERM];
const FD_ERRORS: &[Errno] = &[Errno::EPERM];
const SIZE_ERRORS: &[Errno] = &[Errno::EIO, Errno::ENOSPC];

const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
/// `F_SEAL_SHRINK` and `F_SEAL_GROW`.
const SHRINK: u32 = 2;
const GROW: u32 = 4;
const SECOND_NS: i64 = 1_000_000_000;

fn chmod(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.find(AT_FDCWD, call.args[0], true)?;
    kernel.change_mode(Target::Inode(id), call.args[1] as u32)
}

fn fchmod(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let target = kernel.usable(call.int(0))?;
    kernel.change_mode(target, call.args[1] as u32)
}

fn fchmodat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.find(call.int(0), call.args[1], true)?;
    kernel.change_mode(Target::Inode(id), call.args[2] as u32)
}

fn fchmodat2(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.args[3] & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let target = kernel.target(call.int(0), call.args[1], call.args[3])?;
    kernel.change_mode(target, call.args[2] as u32)
}

fn chown(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.find(AT_FDCWD, call.args[0], true)?;
    kernel.change_owner(
        Target::Inode(id),
        [call.args[1] as u32, call.args[2] as u32],
    )
}

fn fchown(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let target = kernel.usable(call.int(0))?;
    kernel.change_owner(target, [call.args[1] as u32, call.args[2] as u32])
}

fn lchown(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.find(AT_FDCWD, call.args[0], false)?;
    kernel.change_owner(
        Target::Inode(id),
        [call.args[1] as u32, call.args[2] as u32],
    )
}

fn fchownat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.args[4] & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let target = kernel.target(call.int(0), call.args[1], call.args[4])?;
    kernel.change_owner(target, [call.args[2] as u32, call.args[3] as u32])
}

/// A time argument of `utimensat` and similar calls.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Time {
    Now,
    Kept,
    At(i64),
}

fn utime(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let mut times = [Time::Now; 2];
    if call.args[1] != 0 {
        for (time, at) in times.iter_mut().zip([0, 8]) {
            let seconds = kernel.read_u64(call.args[1].wrapping_add(at))? as i64;
            *time = Time::At(seconds.saturating_mul(SECOND_NS));
        }
    }
    let id = kernel.find(AT_FDCWD, call.args[0], true)?;
    kernel.change_times(Target::Inode(id), times)
}

fn utimes(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let times = kernel.read_microseconds(call.args[1])?;
    let id = kernel.find(AT_FDCWD, call.args[0], true)?;
    kernel.change_times(Target::Inode(id), times)
}

fn futimesat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let times = kernel.read_microseconds(call.args[2])?;
    let id = kernel.find(call.int(0), call.args[1], true)?;
    kernel.change_times(Target::Inode(id), times)
}

fn utimensat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let [_, path, address, flags, ..] = call.args;
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    // Wrong times are told only where there is such a file.
    let times = match kernel.read_nanoseconds(address) {
        Err(Stop::Errno(Errno::EINVAL)) => None,
        times => Some(times?),
    };
    if times == Some([Time::Kept; 2]) {
        return Ok(Value::ZERO);
    }
    let target = if path == 0 {
        kernel.usable(call.int(0))?
    } else {
        kernel.target(call.int(0), path, flags)?
    };
    kernel.change_times(target, times.ok_or(Errno::EINVAL)?)
}

fn truncate(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if (call.args[1] as i64) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let id = kernel.find(AT_FDCWD, call.args[0], true)?;
    let inode = kernel.host.files.tree.get(id);
    match inode.kind {
        InodeKind::Directory(_) => return Err(Errno::EISDIR.into()),
        InodeKind::Regular(_) => {}
        _ => return Err(Errno::EINVAL.into()),
    }
    kernel.fs_credentials().check(inode, WRITE)?;
    kernel.check_not_executed(id)?;
    kernel.truncate(id, call.args[1])
}

fn ftruncate(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if (call.args[1] as i64) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let (_, description) = kernel.description(call.int(0))?;
    if description.flags.has(OpenFlags::PATH) {
        return Err(Errno::EBADF.into());
    }
    match description.target {
        Target::Inode(id) if description.flags.writable() => kernel.truncate(id, call.args[1]),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn fallocate(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const KEEP_SIZE: u64 = 1;
    const PUNCH_HOLE: u64 = 2;
    const ZERO_RANGE: u64 = 0x10;
    let [_, mode, offset, len, ..] = call.args;
    let (_, description) = kernel.description(call.int(0))?;
    if (offset as i64) < 0 || (len as i64) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let punches = mode & PUNCH_HOLE != 0;
    let clears = punches || mode & ZERO_RANGE != 0;
    if mode & !(KEEP_SIZE | PUNCH_HOLE | ZERO_RANGE) != 0
        || (punches && mode != PUNCH_HOLE | KEEP_SIZE)
    {
        kernel.refuse("fallocate", format!("mode {mode:#x} of fallocate"));
        return Err(Errno::EOPNOTSUPP.into());
    }
    if !description.flags.writable() {
        return Err(Errno::EBADF.into());
    }
    let id = match description.target {
        Target::Inode(id) => id,
        target => {
            let is_pipe = kernel.host.status(target).mode & 0o170_000 == 0o010_000;
            return Err(if is_pipe {
                Errno::ESPIPE
            } else {
                Errno::ENODEV
            }
            .into());
        }
    };
    match &kernel.host.files.tree.get(id).kind {
        InodeKind::Regular(_) => {}
        InodeKind::Directory(_) => return Err(Errno::EISDIR.into()),
        _ => return Err(Errno::ENODEV.into()),
    }
    let end = kernel.end_in_file("fallocate", offset, len)?;
    kernel.check_seals(id, clears, end)?;
    if mode & KEEP_SIZE == 0 {
        kernel.check_new_size(id, end)?;
    }
    let who = kernel.fs_credentials();
    let now_ns = kernel.wall_clock_ns();
    let inode = kernel.host.files.tree.get_mut(id);
    if let InodeKind::Regular(bytes) = &mut inode.kind {
        if clears {
            bytes.clear(offset, len);
        }
        if mode & KEEP_SIZE == 0 && end > bytes.len() {
            bytes.set_len(end);
        }
    }
    inode.touch(now_ns);
    who.clear_set_ids(inode);
    kernel.host.notify(id, happened::MODIFY);
    Ok(Value::ZERO)
}

fn umask(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let old = kernel.process().umask;
    kernel.process_mut().umask = call.args[0] as u32 & 0o777;
    Ok(Value::concrete(u64::from(old)))
}

fn statfs(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.find(AT_FDCWD, call.args[0], true)?;
    kernel.write_statfs(Target::Inode(id), call.args[1])
}

fn fstatfs(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (_, description) = kernel.description(call.int(0))?;
    kernel.write_statfs(description.target, call.args[1])
}

impl Kernel<'_, '_> {
    /// The target of a descriptor, unless it was opened with `O_PATH`.
    pub fn usable(&self, fd: i32) -> Result<Target, Errno> {
        let (_, description) = self.description(fd)?;
        if description.flags.has(OpenFlags::PATH) {
            return Err(Errno::EBADF);
        }
        Ok(description.target)
    }

    fn change_mode(&mut self, target: Target, mode: u32) -> Answer {
        // Permissions of anonymous pipes and sockets are not observable.
        let Target::Inode(id) = target else {
            return Ok(Value::ZERO);
        };
        let who = self.fs_credentials();
        let now_ns = self.wall_clock_ns();
        let inode = self.host.files.tree.get(id);
        if matches!(inode.kind, InodeKind::Link(_)) {
            return Err(Errno::EOPNOTSUPP.into());
        }
        who.check_owner(inode)?;
        let mut mode = mode & 0o7777;
        if !who.has(FSETID) && !who.is_in(inode.gid) {
            mode &= !SET_GID;
        }
        let inode = self.host.files.tree.get_mut(id);
        inode.mode = mode;
        inode.touch_status(now_ns);
        self.host.notify(id, happened::ATTRIBUTES);
        Ok(Value::ZERO)
    }

    /// Sets owner and group; -1 leaves one unchanged.
    fn change_owner(&mut self, target: Target, [uid, gid]: [u32; 2]) -> Answer {
        const KEPT: u32 = u32::MAX;
        let Target::Inode(id) = target else {
            return Ok(Value::ZERO);
        };
        let who = self.fs_credentials();
        let now_ns = self.wall_clock_ns();
        let inode = self.host.files.tree.get(id);
        let owns = who.uid == inode.uid;
        let may_give = uid == KEPT || (owns && uid == inode.uid);
        let may_group = gid == KEPT || (owns && (who.is_in(gid) || gid == inode.gid));
        let allowed = who.has(CHOWN) || (may_give && may_group);
        if !allowed {
            return Err(Errno::EPERM.into());
        }
        // The call takes these bits, which is a change of the mode.
        let gives_ids = inode.mode & SET_UID != 0 || inode.grants_ids();
        if !inode.is_directory() && gives_ids {
            who.check_owner(inode)?;
        }
        let inode = self.host.files.tree.get_mut(id);
        if uid != KEPT {
            inode.uid = uid;
        }
        if gid != KEPT {
            inode.gid = gid;
        }
        if !inode.is_directory() {
            inode.mode &= !SET_UID;
            if inode.mode & 0o010 != 0 {
                inode.mode &= !SET_GID;
            }
        }
        inode.touch_status(now_ns);
        self.host.notify(id, happened::ATTRIBUTES);
        Ok(Value::ZERO)
    }

    /// Reads an array of two `struct timeval`.
    fn read_microseconds(&mut self, address: u64) -> Result<[Time; 2], Stop> {
        let mut times = [Time::Now; 2];
        if address == 0 {
            return Ok(times);
        }
        for (time, at) in times.iter_mut().zip([0, 16]) {
            let seconds = self.read_u64(address.wrapping_add(at))? as i64;
            let microseconds = self.read_u64(address.wrapping_add(at + 8))?;
            if microseconds >= 1_000_000 {
                return Err(Errno::EINVAL.into());
            }
            let rest = microseconds as i64 * 1000;
            *time = Time::At(seconds.saturating_mul(SECOND_NS).saturating_add(rest));
        }
        Ok(times)
    }

    /// Reads an array of two `struct timespec`.
    fn read_nanoseconds(&mut self, address: u64) -> Result<[Time; 2], Stop> {
        const NOW: u64 = 0x3fff_ffff;
        const KEPT: u64 = 0x3fff_fffe;
        let mut times = [Time::Now; 2];
        if address == 0 {
            return Ok(times);
        }
        for (time, at) in times.iter_mut().zip([0, 16]) {
            // The seconds next to a special value have no meaning, and need not be initialised.
            *time = match self.read_u64(address.wrapping_add(at + 8))? {
                NOW => Time::Now,
                KEPT => Time::Kept,
                rest if rest < SECOND_NS as u64 => {
                    let seconds = self.read_u64(address.wrapping_add(at))? as i64;
                    let whole = seconds.saturating_mul(SECOND_NS);
                    Time::At(whole.saturating_add(rest as i64))
                }
                _ => return Err(Errno::EINVAL.into()),
            };
        }
        Ok(times)
    }

    fn change_times(&mut self, target: Target, times: [Time; 2]) -> Answer {
        let Target::Inode(id) = target else {
            return Ok(Value::ZERO);
        };
        let who = self.fs_credentials();
        let now_ns = self.wall_clock_ns();
        let inode = self.host.files.tree.get(id);
        // Write permission suffices to set both times to the current time.
        let both_now = times == [Time::Now; 2];
        if both_now && who.check_owner(inode).is_err() {
            who.check(inode, WRITE)?;
        } else if !both_now {
            who.check_owner(inode)?;
        }
        let inode = self.host.files.tree.get_mut(id);
        inode.touch_status(now_ns);
        let now = inode.changed_ns;
        for (field, time) in [&mut inode.accessed_ns, &mut inode.modified_ns]
            .into_iter()
            .zip(times)
        {
            match time {
                Time::Now => *field = now,
                Time::Kept => {}
                Time::At(ns) => *field = ns,
            }
        }
        self.host.notify(id, happened::ATTRIBUTES);
        Ok(Value::ZERO)
    }

    /// `EPERM` if a memory file is sealed against what `fallocate` does to it.
    fn check_seals(&self, id: InodeId, clears: bool, end: u64) -> Result<(), Errno> {
        let inode = self.host.files.tree.get(id);
        let grows = matches!(&inode.kind, InodeKind::Regular(bytes) if end > bytes.len());
        let is_sealed = match clears {
            true => self.is_sealed(id),
            false => grows && inode.seals.unwrap_or(0) & GROW != 0,
        };
        if is_sealed { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// Sets the size of a file.
    pub fn truncate(&mut self, id: InodeId, len: u64) -> Answer {
        self.end_in_file("ftruncate", len, 0)?;
        let now_ns = self.wall_clock_ns();
        let inode = self.host.files.tree.get(id);
        let InodeKind::Regular(bytes) = &inode.kind else {
            return Err(Errno::EINVAL.into());
        };
        let seals = inode.seals.unwrap_or(0);
        if (len < bytes.len() && seals & SHRINK != 0) || (len > bytes.len() && seals & GROW != 0) {
            return Err(Errno::EPERM.into());
        }
        self.check_new_size(id, len)?;
        let who = self.fs_credentials();
        let inode = self.host.files.tree.get_mut(id);
        inode.touch(now_ns);
        // The program is no longer in the file.
        inode.program = None;
        who.clear_set_ids(inode);
        if let InodeKind::Regular(bytes) = &mut inode.kind {
            bytes.set_len(len);
        }
        self.host.notify(id, happened::MODIFY);
        Ok(Value::ZERO)
    }

    /// Writes a `struct statfs`: a large disk, half of it free.
    fn write_statfs(&mut self, target: Target, address: u64) -> Answer {
        const EXT4: u64 = 0xef53;
        const PROC: u64 = 0x9fa0;
        const PIPES: u64 = 0x5049_5045;
        const BLOCK: u64 = 4096;
        const BLOCKS: u64 = 1 << 24;
        const FILES: u64 = 1 << 20;
        let kind = match target {
            Target::Inode(id) => match self.host.files.tree.get(id).kind {
                InodeKind::Generated(_) | InodeKind::Magic(_) => PROC,
                InodeKind::Directory(_) if self.host.files.tree.is_in_proc(id) => PROC,
                _ => EXT4,
            },
            _ => PIPES,
        };
        let words = [
            kind,
            BLOCK,
            BLOCKS,
            BLOCKS / 2,
            BLOCKS / 2,
            FILES,
            FILES / 2,
            1,
            255,
            BLOCK,
            0x20,
        ];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(120, 0);
        self.write_bytes(address, &bytes)?;
        Ok(Value::ZERO)
    }
}
