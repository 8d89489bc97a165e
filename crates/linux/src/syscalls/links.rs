//! Directory entries: creating, unlinking, linking and renaming.

use everett_vm::Value;

use super::paths::{AT_EMPTY_PATH, AT_FDCWD};
use crate::bytes::Bytes;
use crate::capabilities::MKNOD;
use crate::errno::Errno;
use crate::files::{Dentry, Device, Directory, EXECUTE, InodeKind, READ, Target, WRITE};
use crate::ids::InodeId;
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::happened;
use crate::table::ArgKind::{Fd, Flags, Int, Path};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("mkdir", 83, &[Path, Int], MAKE_ERRORS, mkdir),
    Row::new("mkdirat", 258, &[Fd, Path, Int], MAKE_ERRORS, mkdirat),
    Row::new("mknod", 133, &[Path, Int, Int], MAKE_ERRORS, mknod),
    Row::new("mknodat", 259, &[Fd, Path, Int, Int], MAKE_ERRORS, mknodat),
    Row::new("rmdir", 84, &[Path], MAKE_ERRORS, rmdir),
    Row::new("unlink", 87, &[Path], MAKE_ERRORS, unlink),
    Row::new("unlinkat", 263, &[Fd, Path, Flags], MAKE_ERRORS, unlinkat),
    Row::new("rename", 82, &[Path, Path], MAKE_ERRORS, rename),
    Row::new(
        "renameat",
        264,
        &[Fd, Path, Fd, Path],
        MAKE_ERRORS,
        renameat,
    ),
    Row::new(
        "renameat2",
        316,
        &[Fd, Path, Fd, Path, Flags],
        MAKE_ERRORS,
        renameat2,
    )
    .without("RENAME_WHITEOUT"),
    Row::new("link", 86, &[Path, Path], MAKE_ERRORS, link),
    Row::new(
        "linkat",
        265,
        &[Fd, Path, Fd, Path, Flags],
        MAKE_ERRORS,
        linkat,
    ),
    Row::new("symlink", 88, &[Path, Path], MAKE_ERRORS, symlink),
    Row::new("symlinkat", 266, &[Path, Fd, Path], MAKE_ERRORS, symlinkat),
];

const MAKE_ERRORS: &[Errno] = &[Errno::EACCES, Errno::ENOSPC];

const AT_REMOVEDIR: u64 = 0x200;
const AT_SYMLINK_FOLLOW: u64 = 0x400;

fn mkdir(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.create_directory(AT_FDCWD, call.args[0], call.args[1])
}

fn mkdirat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.create_directory(call.int(0), call.args[1], call.args[2])
}

fn mknod(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.create_node(AT_FDCWD, call.args[0], call.args[1] as u32, call.args[2])
}

fn mknodat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.create_node(call.int(0), call.args[1], call.args[2] as u32, call.args[3])
}

fn rmdir(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.remove_directory(AT_FDCWD, call.args[0])
}

fn unlink(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.remove_name(AT_FDCWD, call.args[0])
}

fn unlinkat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    match call.args[2] {
        0 => kernel.remove_name(call.int(0), call.args[1]),
        AT_REMOVEDIR => kernel.remove_directory(call.int(0), call.args[1]),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn rename(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.rename((AT_FDCWD, call.args[0]), (AT_FDCWD, call.args[1]), 0)
}

fn renameat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.rename((call.int(0), call.args[1]), (call.int(2), call.args[3]), 0)
}

fn renameat2(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.rename(
        (call.int(0), call.args[1]),
        (call.int(2), call.args[3]),
        call.args[4],
    )
}

fn link(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.hard_link((AT_FDCWD, call.args[0]), (AT_FDCWD, call.args[1]), 0)
}

fn linkat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.hard_link(
        (call.int(0), call.args[1]),
        (call.int(2), call.args[3]),
        call.args[4],
    )
}

fn symlink(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.symbolic_link(call.args[0], AT_FDCWD, call.args[1])
}

fn symlinkat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.symbolic_link(call.args[0], call.int(1), call.args[2])
}

const NO_REPLACE: u64 = 1;
const EXCHANGE: u64 = 2;
const WHITEOUT: u64 = 4;

impl Kernel<'_, '_> {
    /// Parent directory and name of a new file that is not a directory.
    fn new_dentry(&mut self, fd: i32, path: u64) -> Result<Dentry, Stop> {
        let path = self.read_new_path(path)?;
        let base = self.base(fd, &path)?;
        let (dentry, found) = self.resolve_dentry(base, &path)?;
        if found.is_some() {
            return Err(Errno::EEXIST.into());
        }
        if dentry.must_be_directory {
            return Err(Errno::ENOENT.into());
        }
        Ok(dentry)
    }

    fn create_directory(&mut self, fd: i32, path: u64, mode: u64) -> Answer {
        let path = self.read_new_path(path)?;
        let base = self.base(fd, &path)?;
        let (dentry, found) = self.resolve_dentry(base, &path)?;
        if found.is_some() {
            return Err(Errno::EEXIST.into());
        }
        let node = InodeKind::Directory(Directory::new(dentry.directory));
        self.create_file(&dentry, node, mode as u32 & 0o1777)?;
        Ok(Value::ZERO)
    }

    fn create_node(&mut self, fd: i32, path: u64, mode: u32, device: u64) -> Answer {
        let node = match mode & 0o170_000 {
            0 | 0o100_000 => InodeKind::Regular(Bytes::default()),
            0o010_000 => InodeKind::Fifo,
            0o140_000 => InodeKind::Socket,
            kind @ (0o020_000 | 0o060_000) => {
                let (high, low) = (device as u32 >> 12 & 0xf_ff00, device as u32 & 0xff);
                let (major, minor) = (device as u32 >> 8 & 0xfff, high | low);
                let is_block = kind == 0o060_000;
                let known = Device::with_number((major, minor)).filter(|_| !is_block);
                InodeKind::Device(known.unwrap_or(Device::Other {
                    is_block,
                    major,
                    minor,
                }))
            }
            0o040_000 => return Err(Errno::EPERM.into()),
            _ => return Err(Errno::EINVAL.into()),
        };
        let dentry = self.new_dentry(fd, path)?;
        if matches!(node, InodeKind::Device(_)) && !self.is_capable(MKNOD) {
            let directory = self.host.files.tree.get(dentry.directory);
            self.fs_credentials().check(directory, WRITE | EXECUTE)?;
            return Err(Errno::EPERM.into());
        }
        self.create_file(&dentry, node, mode)?;
        Ok(Value::ZERO)
    }

    fn remove_directory(&mut self, fd: i32, path: u64) -> Answer {
        let path = self.read_path(path)?;
        let base = self.base(fd, &path)?;
        let (dentry, found) = self.resolve_dentry(base, &path)?;
        match dentry.name.as_slice() {
            b"" => return Err(Errno::EBUSY.into()),
            b"." => return Err(Errno::EINVAL.into()),
            b".." => return Err(Errno::ENOTEMPTY.into()),
            _ => {}
        }
        let id = found.ok_or(Errno::ENOENT)?;
        self.check_removal(&dentry, id)?;
        let tree = &self.host.files.tree;
        let directory = tree.directory(id).ok_or(Errno::ENOTDIR)?;
        if !directory.names.is_empty() {
            return Err(Errno::ENOTEMPTY.into());
        }
        self.unlink(&dentry);
        self.notify_removal(&dentry, id);
        Ok(Value::ZERO)
    }

    fn remove_name(&mut self, fd: i32, path: u64) -> Answer {
        let path = self.read_path(path)?;
        let base = self.base(fd, &path)?;
        let (dentry, found) = self.resolve_dentry(base, &path)?;
        if !dentry.is_ordinary() {
            return Err(Errno::EISDIR.into());
        }
        let id = found.ok_or(Errno::ENOENT)?;
        let is_directory = self.host.files.tree.get(id).is_directory();
        if dentry.must_be_directory && !is_directory {
            return Err(Errno::ENOTDIR.into());
        }
        if dentry.must_be_directory {
            return Err(Errno::EISDIR.into());
        }
        self.check_removal(&dentry, id)?;
        if is_directory {
            return Err(Errno::EISDIR.into());
        }
        self.unlink(&dentry);
        self.notify_removal(&dentry, id);
        Ok(Value::ZERO)
    }

    /// Whether a name may be unlinked.
    fn check_removal(&self, dentry: &Dentry, id: InodeId) -> Result<(), Errno> {
        let tree = &self.host.files.tree;
        if tree.is_in_proc(dentry.directory) {
            return Err(Errno::EPERM);
        }
        self.fs_credentials()
            .check_removal(tree.get(dentry.directory), tree.get(id))
    }

    /// Reports the removal of a name to inotify.
    fn notify_removal(&mut self, dentry: &Dentry, id: InodeId) {
        let is_directory = self.host.files.tree.get(id).is_directory();
        if !is_directory {
            self.host.notify_self(id, happened::ATTRIBUTES);
        }
        self.host.notify_gone(id);
        let mask = happened::DELETE | happened::directory(is_directory);
        self.host
            .notify_name(dentry.directory, &dentry.name, mask, 0);
    }

    /// Unlinks a name, and frees the file if that was its last link.
    fn unlink(&mut self, dentry: &Dentry) {
        let now_ns = self.wall_clock_ns();
        let tree = &mut self.host.files.tree;
        tree.get_mut(dentry.directory).touch(now_ns);
        let Some(id) = tree.remove(dentry.directory, &dentry.name) else {
            return;
        };
        let inode = tree.get_mut(id);
        inode.touch_status(now_ns);
        if !inode.is_directory() {
            self.host.files.free_if_unused(id);
        }
    }

    fn rename(&mut self, from: (i32, u64), to: (i32, u64), flags: u64) -> Answer {
        if flags & !(NO_REPLACE | EXCHANGE) == WHITEOUT {
            self.refuse("renameat2", "RENAME_WHITEOUT");
        }
        if flags & !(NO_REPLACE | EXCHANGE) != 0 || flags == NO_REPLACE | EXCHANGE {
            return Err(Errno::EINVAL.into());
        }
        let old_path = self.read_path(from.1)?;
        let new_path = match flags & EXCHANGE {
            0 => self.read_new_path(to.1)?,
            _ => self.read_path(to.1)?,
        };
        let old_base = self.base(from.0, &old_path)?;
        let (old, moved) = self.resolve_dentry(old_base, &old_path)?;
        let new_base = self.base(to.0, &new_path)?;
        let (new, replaced) = self.resolve_dentry(new_base, &new_path)?;
        if !old.is_ordinary() {
            return Err(Errno::EBUSY.into());
        }
        if !new.is_ordinary() {
            let errno = if flags & NO_REPLACE != 0 {
                Errno::EEXIST
            } else {
                Errno::EBUSY
            };
            return Err(errno.into());
        }
        let moved = moved.ok_or(Errno::ENOENT)?;
        if flags & NO_REPLACE != 0 && replaced.is_some() {
            return Err(Errno::EEXIST.into());
        }
        if flags & EXCHANGE != 0 && replaced.is_none() {
            return Err(Errno::ENOENT.into());
        }
        self.check_move(&old, moved, &new, replaced, flags)?;
        self.commit_move(&old, moved, &new, replaced, flags);
        Ok(Value::ZERO)
    }

    fn check_move(
        &self,
        old: &Dentry,
        moved: InodeId,
        new: &Dentry,
        replaced: Option<InodeId>,
        flags: u64,
    ) -> Result<(), Errno> {
        let tree = &self.host.files.tree;
        let is_directory = tree.get(moved).is_directory();
        if !is_directory && (old.must_be_directory || (flags == 0 && new.must_be_directory)) {
            return Err(Errno::ENOTDIR);
        }
        if is_directory && tree.is_below(new.directory, moved) {
            return Err(Errno::EINVAL);
        }
        if let Some(id) = replaced
            && tree.is_below(old.directory, id)
        {
            let exchanged = flags & EXCHANGE != 0;
            return Err(if exchanged {
                Errno::EINVAL
            } else {
                Errno::ENOTEMPTY
            });
        }
        if Some(moved) == replaced {
            return Ok(());
        }
        self.check_removal(old, moved)?;
        match replaced {
            None => {
                let directory = tree.get(new.directory);
                if directory.links == 0 || tree.is_in_proc(new.directory) {
                    return Err(Errno::ENOENT);
                }
                self.fs_credentials().check(directory, WRITE | EXECUTE)?;
                return self.check_parents(old, moved, new);
            }
            Some(id) => self.check_removal(new, id)?,
        }
        let target = replaced.and_then(|id| tree.directory(id));
        if let (Some(id), true) = (replaced, flags & EXCHANGE != 0) {
            self.check_parents(old, moved, new)?;
            return self.check_parents(new, id, old);
        }
        match (is_directory, target) {
            (true, None) => return Err(Errno::ENOTDIR),
            (false, Some(_)) => return Err(Errno::EISDIR),
            _ => self.check_parents(old, moved, new)?,
        }
        match target {
            Some(target) if !target.names.is_empty() => Err(Errno::ENOTEMPTY),
            _ => Ok(()),
        }
    }

    /// Checks write permission on a directory whose parent changes, since its `..` entry is
    /// written.
    fn check_parents(&self, from: &Dentry, moved: InodeId, to: &Dentry) -> Result<(), Errno> {
        let inode = self.host.files.tree.get(moved);
        if from.directory == to.directory || !inode.is_directory() {
            return Ok(());
        }
        self.fs_credentials().check(inode, WRITE)
    }

    fn commit_move(
        &mut self,
        old: &Dentry,
        moved: InodeId,
        new: &Dentry,
        replaced: Option<InodeId>,
        flags: u64,
    ) {
        if Some(moved) == replaced {
            return;
        }
        let now_ns = self.wall_clock_ns();
        let (from, to) = (
            (old.directory, old.name.as_slice()),
            (new.directory, new.name.as_slice()),
        );
        if flags & EXCHANGE != 0 {
            self.host.files.tree.exchange(from, to);
        } else {
            if replaced.is_some() {
                self.unlink(new);
            }
            self.host.files.tree.rename(from, to);
        }
        let tree = &mut self.host.files.tree;
        for directory in [old.directory, new.directory] {
            tree.get_mut(directory).touch(now_ns);
        }
        tree.get_mut(moved).touch_status(now_ns);
        let directory = happened::directory(tree.get(moved).is_directory());
        let cookie = self.host.next_move();
        let (left, came) = (happened::MOVED_FROM, happened::MOVED_TO);
        self.host
            .notify_name(from.0, from.1, left | directory, cookie);
        self.host.notify_name(to.0, to.1, came | directory, cookie);
        if let Some(replaced) = replaced {
            self.host.notify_self(replaced, happened::ATTRIBUTES);
        }
        self.host.notify(moved, happened::MOVE_SELF);
        if let Some(replaced) = replaced {
            self.host.notify_gone(replaced);
        }
    }

    fn hard_link(&mut self, from: (i32, u64), to: (i32, u64), flags: u64) -> Answer {
        if flags & !(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH) != 0 {
            return Err(Errno::EINVAL.into());
        }
        let path = self.read_path(from.1)?;
        let id = if flags & AT_EMPTY_PATH != 0 && path.is_empty() {
            match self.description(from.0)?.1.target {
                Target::Inode(id) => id,
                _ => return Err(Errno::EXDEV.into()),
            }
        } else {
            let base = self.base(from.0, &path)?;
            self.resolve(base, &path, flags & AT_SYMLINK_FOLLOW != 0)?
        };
        let dentry = self.new_dentry(to.0, to.1)?;
        let now_ns = self.wall_clock_ns();
        let tree = &mut self.host.files.tree;
        let inode = tree.get(id);
        if matches!(inode.kind, InodeKind::Generated(_) | InodeKind::Magic(_))
            || tree.is_in_proc(dentry.directory)
        {
            return Err(Errno::EXDEV.into());
        }
        if tree.get(dentry.directory).links == 0 {
            return Err(Errno::ENOENT.into());
        }
        // A hard link to another user's file requires permission to read and write it.
        let who = self.fs_credentials();
        let inode = self.host.files.tree.get(id);
        let is_own = who.check_owner(inode).is_ok();
        // A link would keep a program that runs as its owner or group, with its errors.
        let is_regular = matches!(inode.kind, InodeKind::Regular(_)) && !inode.grants_ids();
        let may_copy = is_regular && who.check(inode, READ | WRITE).is_ok();
        if !is_own && !may_copy {
            return Err(Errno::EPERM.into());
        }
        self.fs_credentials()
            .check(self.host.files.tree.get(dentry.directory), WRITE | EXECUTE)?;
        let tree = &mut self.host.files.tree;
        if tree.get(id).is_directory() {
            return Err(Errno::EPERM.into());
        }
        tree.link(dentry.directory, &dentry.name, id);
        tree.get_mut(id).touch_status(now_ns);
        tree.get_mut(dentry.directory).touch(now_ns);
        self.host.notify_self(id, happened::ATTRIBUTES);
        let created = happened::CREATE;
        self.host
            .notify_name(dentry.directory, &dentry.name, created, 0);
        Ok(Value::ZERO)
    }

    fn symbolic_link(&mut self, target: u64, fd: i32, path: u64) -> Answer {
        let target = self.read_new_path(target)?;
        if target.is_empty() {
            return Err(Errno::ENOENT.into());
        }
        let dentry = self.new_dentry(fd, path)?;
        self.create_file(&dentry, InodeKind::Link(target), 0o777)?;
        Ok(Value::ZERO)
    }
}
