//! Files by name: opening, making, removing, asking about them.

use std::collections::BTreeMap;

use everett_vm::Value;

use crate::bytes::Bytes;
use crate::errno::Errno;
use crate::files::{Description, Descriptor, Inode, InodeId, Node, OpenFlags, Status, Target};
use crate::kernel::{Kernel, Stop};
use crate::table::ArgKind::{Buffer, Fd, Flags, Int, Path, Pointer};
use crate::table::{Answer, Call, Row};

/// The family.
pub const ROWS: &[Row] = &[
    Row::new("open", 2, &[Path, Flags, Int], OPEN_ERRORS, open).without("permissions, O_TMPFILE"),
    Row::new("openat", 257, &[Fd, Path, Flags, Int], OPEN_ERRORS, openat)
        .without("permissions, O_TMPFILE"),
    Row::new("creat", 85, &[Path, Int], OPEN_ERRORS, creat).without("permissions"),
    Row::new("stat", 4, &[Path, Pointer], ASK_ERRORS, stat),
    Row::new("fstat", 5, &[Fd, Pointer], &[], fstat),
    Row::new("lstat", 6, &[Path, Pointer], ASK_ERRORS, lstat),
    Row::new(
        "newfstatat",
        262,
        &[Fd, Path, Pointer, Flags],
        ASK_ERRORS,
        newfstatat,
    ),
    Row::new(
        "statx",
        332,
        &[Fd, Path, Flags, Flags, Pointer],
        ASK_ERRORS,
        statx,
    ),
    Row::new("access", 21, &[Path, Int], ASK_ERRORS, access).without("permissions: root may all"),
    Row::new("faccessat", 269, &[Fd, Path, Int], ASK_ERRORS, faccessat)
        .without("permissions: root may all"),
    Row::new(
        "faccessat2",
        439,
        &[Fd, Path, Int, Flags],
        ASK_ERRORS,
        faccessat,
    )
    .without("permissions: root may all"),
    Row::new("readlink", 89, &[Path, Buffer, Int], ASK_ERRORS, readlink),
    Row::new(
        "readlinkat",
        267,
        &[Fd, Path, Buffer, Int],
        ASK_ERRORS,
        readlinkat,
    ),
    Row::new("getcwd", 79, &[Buffer, Int], &[], getcwd),
    Row::new("chdir", 80, &[Path], ASK_ERRORS, chdir),
    Row::new("truncate", 76, &[Path, Int], &[Errno::EIO], truncate),
    Row::new("mkdir", 83, &[Path, Int], MAKE_ERRORS, mkdir),
    Row::new("mkdirat", 258, &[Fd, Path, Int], MAKE_ERRORS, mkdirat),
    Row::new("rmdir", 84, &[Path], MAKE_ERRORS, rmdir),
    Row::new("unlink", 87, &[Path], MAKE_ERRORS, unlink),
    Row::new("unlinkat", 263, &[Fd, Path, Flags], MAKE_ERRORS, unlinkat),
    Row::new("umask", 95, &[Int], &[], umask),
];

const OPEN_ERRORS: &[Errno] = &[
    Errno::ENOENT,
    Errno::EACCES,
    Errno::EMFILE,
    Errno::ENOSPC,
    Errno::EINTR,
];
const ASK_ERRORS: &[Errno] = &[Errno::ENOENT, Errno::EACCES];
const MAKE_ERRORS: &[Errno] = &[Errno::EACCES, Errno::ENOSPC];

const AT_FDCWD: i32 = -100;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_REMOVEDIR: u64 = 0x200;
const AT_EMPTY_PATH: u64 = 0x1000;

fn open(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.open_file(AT_FDCWD, call.args[0], call.args[1], call.args[2])
}

fn openat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.open_file(call.int(0), call.args[1], call.args[2], call.args[3])
}

fn creat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY | OpenFlags::TRUNCATE;
    kernel.open_file(AT_FDCWD, call.args[0], u64::from(flags), call.args[1])
}

fn stat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.find(AT_FDCWD, call.args[0], true)?;
    kernel.tell(Target::Inode(id), call.args[1])
}

fn lstat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.find(AT_FDCWD, call.args[0], false)?;
    kernel.tell(Target::Inode(id), call.args[1])
}

fn fstat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (_, description) = kernel.description(call.int(0))?;
    kernel.tell(description.target, call.args[1])
}

fn newfstatat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let target = kernel.target(call.int(0), call.args[1], call.args[3])?;
    kernel.tell(target, call.args[2])
}

fn statx(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let target = kernel.target(call.int(0), call.args[1], call.args[2])?;
    let status = Status::of_target(&kernel.host.files.tree, target);
    kernel.write_bytes(call.args[4], &status.to_statx())?;
    Ok(Value::ZERO)
}

fn access(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.may_access(AT_FDCWD, call.args[0], call.args[1])
}

fn faccessat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.may_access(call.int(0), call.args[1], call.args[2])
}

fn readlink(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.read_link(AT_FDCWD, call.args[0], call.args[1], call.int(2))
}

fn readlinkat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.read_link(call.int(0), call.args[1], call.args[2], call.int(3))
}

fn getcwd(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let path = kernel.host.files.tree.path_of(kernel.process().cwd);
    let mut path = path.ok_or(Errno::ENOENT)?;
    path.push(0);
    if call.args[1] < path.len() as u64 {
        return Err(Errno::ERANGE.into());
    }
    kernel.write_bytes(call.args[0], &path)?;
    Ok(Value::concrete(path.len() as u64))
}

fn chdir(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.find(AT_FDCWD, call.args[0], true)?;
    match kernel.host.files.tree.get(id).node {
        Node::Directory(..) => kernel.process_mut().cwd = id,
        _ => return Err(Errno::ENOTDIR.into()),
    }
    Ok(Value::ZERO)
}

fn truncate(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.find(AT_FDCWD, call.args[0], true)?;
    kernel.truncate(id, call.args[1])
}

fn mkdir(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.make_directory(AT_FDCWD, call.args[0], call.args[1])
}

fn mkdirat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.make_directory(call.int(0), call.args[1], call.args[2])
}

fn rmdir(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.remove(AT_FDCWD, call.args[0], true)
}

fn unlink(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.remove(AT_FDCWD, call.args[0], false)
}

fn unlinkat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.remove(call.int(0), call.args[1], call.args[2] & AT_REMOVEDIR != 0)
}

fn umask(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let old = kernel.process().umask;
    kernel.process_mut().umask = call.args[0] as u32 & 0o777;
    Ok(Value::concrete(u64::from(old)))
}

impl Kernel<'_, '_> {
    /// The directory that relative paths start from.
    fn base(&self, fd: i32, path: &[u8]) -> Result<InodeId, Errno> {
        if fd == AT_FDCWD || path.first() == Some(&b'/') {
            return Ok(self.process().cwd);
        }
        match self.description(fd)?.1.target {
            Target::Inode(id)
                if matches!(self.host.files.tree.get(id).node, Node::Directory(..)) =>
            {
                Ok(id)
            }
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// The file that a path in guest memory names.
    fn find(&mut self, fd: i32, path: u64, follow: bool) -> Result<InodeId, Stop> {
        let path = self.read_path(path)?;
        let base = self.base(fd, &path)?;
        Ok(self.host.files.tree.lookup(base, &path, follow)?)
    }

    /// What a path names, or with `AT_EMPTY_PATH` the descriptor itself.
    fn target(&mut self, fd: i32, path: u64, flags: u64) -> Result<Target, Stop> {
        if flags & AT_EMPTY_PATH != 0 {
            let empty = path == 0 || self.read_path(path)?.is_empty();
            if empty && fd != AT_FDCWD {
                return Ok(self.description(fd)?.1.target);
            }
            if empty {
                return Ok(Target::Inode(self.process().cwd));
            }
        }
        let id = self.find(fd, path, flags & AT_SYMLINK_NOFOLLOW == 0)?;
        Ok(Target::Inode(id))
    }

    fn tell(&mut self, target: Target, address: u64) -> Answer {
        let status = Status::of_target(&self.host.files.tree, target);
        self.write_bytes(address, &status.to_stat())?;
        Ok(Value::ZERO)
    }

    /// Root may read and write all, and execute what has an execute bit.
    fn may_access(&mut self, fd: i32, path: u64, wanted: u64) -> Answer {
        const EXECUTE: u64 = 1;
        if wanted & !7 != 0 {
            return Err(Errno::EINVAL.into());
        }
        let id = self.find(fd, path, true)?;
        let inode = self.host.files.tree.get(id);
        let is_directory = matches!(inode.node, Node::Directory(..));
        if wanted & EXECUTE != 0 && !is_directory && inode.mode & 0o111 == 0 {
            return Err(Errno::EACCES.into());
        }
        Ok(Value::ZERO)
    }

    fn read_link(&mut self, fd: i32, path: u64, to: u64, room: i32) -> Answer {
        if room <= 0 {
            return Err(Errno::EINVAL.into());
        }
        let id = self.find(fd, path, false)?;
        let Node::Link(mut target) = self.host.files.tree.get(id).node.clone() else {
            return Err(Errno::EINVAL.into());
        };
        target.truncate(room as usize);
        self.write_bytes(to, &target)?;
        Ok(Value::concrete(target.len() as u64))
    }

    fn open_file(&mut self, fd: i32, path: u64, flags: u64, mode: u64) -> Answer {
        let flags = OpenFlags(flags as u32);
        let path = match flags.has(OpenFlags::CREATE) {
            true => self.read_new_path(path)?,
            false => self.read_path(path)?,
        };
        let base = self.base(fd, &path)?;
        let to = self.process().descriptors.free_from(0)?;
        let exclusive = flags.has(OpenFlags::CREATE) && flags.has(OpenFlags::EXCLUSIVE);
        let follow = !flags.has(OpenFlags::NO_FOLLOW) && !exclusive;
        let id = match self.host.files.tree.lookup(base, &path, follow) {
            Ok(_) if exclusive => return Err(Errno::EEXIST.into()),
            Ok(id) => self.open_existing(id, flags)?,
            Err(Errno::ENOENT) if flags.has(OpenFlags::CREATE) => self.create(base, &path, mode)?,
            Err(errno) => return Err(errno.into()),
        };
        const KEPT: u32 = !(OpenFlags::CREATE
            | OpenFlags::EXCLUSIVE
            | OpenFlags::TRUNCATE
            | OpenFlags::CLOSE_ON_EXEC);
        let description = Description::new(Target::Inode(id), flags.0 & KEPT | OpenFlags::LARGE);
        let description = self.host.files.open(description);
        let close_on_exec = flags.has(OpenFlags::CLOSE_ON_EXEC);
        self.process_mut().descriptors.set(
            to,
            Some(Descriptor {
                description,
                close_on_exec,
            }),
        );
        Ok(Value::concrete(to as u64))
    }

    fn open_existing(&mut self, id: InodeId, flags: OpenFlags) -> Result<InodeId, Stop> {
        let only_path = flags.has(OpenFlags::PATH);
        match &self.host.files.tree.get(id).node {
            Node::Directory(..) if flags.writable() || flags.has(OpenFlags::CREATE) => {
                return Err(Errno::EISDIR.into());
            }
            Node::Directory(..) => {}
            _ if flags.has(OpenFlags::DIRECTORY) => return Err(Errno::ENOTDIR.into()),
            Node::Link(_) if !only_path => return Err(Errno::ELOOP.into()),
            Node::Regular(_) if flags.has(OpenFlags::TRUNCATE) && flags.writable() => {
                self.truncate(id, 0)?;
            }
            _ => {}
        }
        Ok(id)
    }

    /// Makes an empty file. A link that leads nowhere stays so.
    fn create(&mut self, base: InodeId, path: &[u8], mode: u64) -> Result<InodeId, Stop> {
        let tree = &self.host.files.tree;
        let place = tree.place(base, path)?;
        if path.ends_with(b"/") {
            return Err(Errno::EISDIR.into());
        }
        if tree.child(place.directory, place.name)?.is_some() {
            return Err(Errno::ENOENT.into());
        }
        let inode = Inode {
            node: Node::Regular(Bytes::default()),
            mode: mode as u32 & 0o7777 & !self.process().umask,
            links: 1,
            modified_ns: self.wall_clock_ns(),
            program: None,
        };
        Ok(self.host.files.tree.add(place.directory, place.name, inode))
    }

    fn make_directory(&mut self, fd: i32, path: u64, mode: u64) -> Answer {
        let path = self.read_new_path(path)?;
        let base = self.base(fd, &path)?;
        let tree = &self.host.files.tree;
        let place = tree.place(base, &path)?;
        if tree.child(place.directory, place.name)?.is_some() {
            return Err(Errno::EEXIST.into());
        }
        let inode = Inode {
            node: Node::Directory(BTreeMap::new(), place.directory),
            mode: mode as u32 & 0o1777 & !self.process().umask,
            links: 2,
            modified_ns: self.wall_clock_ns(),
            program: None,
        };
        self.host.files.tree.add(place.directory, place.name, inode);
        Ok(Value::ZERO)
    }

    fn remove(&mut self, fd: i32, path: u64, directory: bool) -> Answer {
        let path = self.read_path(path)?;
        let base = self.base(fd, &path)?;
        let tree = &self.host.files.tree;
        let place = tree.place(base, &path)?;
        let id = tree
            .child(place.directory, place.name)?
            .ok_or(Errno::ENOENT)?;
        match (&tree.get(id).node, directory) {
            (Node::Directory(..), true) if place.name.is_empty() => return Err(Errno::EBUSY.into()),
            (Node::Directory(..), true) if place.name == b"." => return Err(Errno::EINVAL.into()),
            (Node::Directory(..), true) if place.name == b".." => {
                return Err(Errno::ENOTEMPTY.into());
            }
            (Node::Directory(names, _), true) if !names.is_empty() => {
                return Err(Errno::ENOTEMPTY.into());
            }
            (Node::Directory(..), true) => {}
            (Node::Directory(..), false) => return Err(Errno::EISDIR.into()),
            (_, true) => return Err(Errno::ENOTDIR.into()),
            (_, false) if path.ends_with(b"/") => return Err(Errno::ENOTDIR.into()),
            (_, false) => {}
        }
        self.host.files.tree.remove(place.directory, place.name);
        if !directory {
            self.host.files.let_go(id);
        }
        Ok(Value::ZERO)
    }
}
