//! The inotify calls: `inotify_init`, `inotify_add_watch` and `inotify_rm_watch`.

use everett_vm::Value;

use super::paths::AT_FDCWD;
use crate::errno::Errno;
use crate::files::{OpenFlags, READ, Target};
use crate::ids::ObjectId;
use crate::kernel::{Answer, Kernel};
use crate::objects::{Inotify, Object, happened, inotify};
use crate::table::ArgKind::{Fd, Flags, Int, Path};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("inotify_init", 253, &[], OPEN_ERRORS, inotify_init),
    Row::new("inotify_init1", 294, &[Flags], OPEN_ERRORS, inotify_init1),
    Row::new(
        "inotify_add_watch",
        254,
        &[Fd, Path, Flags],
        &[Errno::ENOENT, Errno::EACCES, Errno::ENOSPC],
        inotify_add_watch,
    )
    .without("IN_EXCL_UNLINK; names of files that were removed while open"),
    Row::new("inotify_rm_watch", 255, &[Fd, Int], &[], inotify_rm_watch),
];

const OPEN_ERRORS: &[Errno] = &[Errno::EMFILE, Errno::ENOMEM];

fn inotify_init(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    kernel.create_inotify(0)
}

fn inotify_init1(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let flags = call.args[0] as u32;
    if flags & !(OpenFlags::NONBLOCK | OpenFlags::CLOSE_ON_EXEC) != 0 {
        return Err(Errno::EINVAL.into());
    }
    kernel.create_inotify(flags)
}

fn inotify_add_watch(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const ONLY_DIRECTORIES: u32 = 0x100_0000;
    const NO_FOLLOW: u32 = 0x200_0000;
    const ONLY_NEW: u32 = 0x1000_0000;
    const ADD: u32 = 0x2000_0000;
    const KNOWN: u32 = happened::ALL
        | ONLY_DIRECTORIES
        | NO_FOLLOW
        | happened::EXCLUDE_UNLINKED
        | ONLY_NEW
        | ADD
        | happened::ONE_SHOT;
    let mask = call.args[2] as u32;
    if mask & KNOWN == 0 {
        return Err(Errno::EINVAL.into());
    }
    let id = kernel.inotify_behind(call.int(0));
    if mask & (ONLY_NEW | ADD) == ONLY_NEW | ADD {
        // A closed descriptor is reported first.
        kernel.description(call.int(0))?;
        return Err(Errno::EINVAL.into());
    }
    let id = id?;
    let inode = kernel.find(AT_FDCWD, call.args[1], mask & NO_FOLLOW == 0)?;
    let file = kernel.host.files.tree.get(inode);
    if mask & ONLY_DIRECTORIES != 0 && !file.is_directory() {
        return Err(Errno::ENOTDIR.into());
    }
    kernel.fs_credentials().check(file, READ)?;
    let old = inotify(kernel.host, id).and_then(|inotify| inotify.watch_of(inode));
    let kept = match old {
        Some(_) if mask & ONLY_NEW != 0 => return Err(Errno::EEXIST.into()),
        Some((_, old)) if mask & ADD != 0 => old,
        _ => 0,
    };
    if mask & happened::EXCLUDE_UNLINKED != 0 {
        kernel.refuse("inotify_add_watch", "IN_EXCL_UNLINK");
    }
    let told = happened::ALL | happened::EXCLUDE_UNLINKED | happened::ONE_SHOT;
    let watch = kernel.host.watch_file(id, inode, mask & told | kept);
    Ok(Value::concrete(watch as u64))
}

fn inotify_rm_watch(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.inotify_behind(call.int(0))?;
    if !inotify(kernel.host, id).is_some_and(|inotify| inotify.has(call.int(1))) {
        return Err(Errno::EINVAL.into());
    }
    kernel.host.unwatch_file(id, call.int(1));
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    fn create_inotify(&mut self, flags: u32) -> Answer {
        let fd = self.open_new(Object::Inotify(Inotify::default()), flags)?;
        Ok(Value::concrete(fd as u64))
    }

    fn inotify_behind(&self, fd: i32) -> Result<ObjectId, Errno> {
        match self.description(fd)?.1.target {
            Target::Object(id) if inotify(self.host, id).is_some() => Ok(id),
            _ => Err(Errno::EINVAL),
        }
    }
}
