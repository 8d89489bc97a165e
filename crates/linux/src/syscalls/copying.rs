//! Memory files, in-kernel copies, and synchronisation with the disk.

use everett_vm::{Buffer, Value};
use triomphe::Arc;

use crate::bytes::Bytes;
use crate::errno::Errno;
use crate::files::{Description, Inode, InodeKind, OpenFlags, Target};
use crate::ids::InodeId;
use crate::kernel::{Answer, Kernel, Stop};
use crate::queue::slice;
use crate::table::ArgKind::{Fd, Flags, Int, Path, Pointer};
use crate::table::{Call, Row};
use crate::transfers::COPIES;

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "memfd_create",
        319,
        &[Path, Flags],
        &[Errno::EMFILE, Errno::ENOMEM],
        memfd_create,
    )
    .without("huge pages"),
    Row::new(
        "copy_file_range",
        326,
        &[Fd, Pointer, Fd, Pointer, Int, Flags],
        &[Errno::EIO, Errno::ENOSPC],
        copy_file_range,
    ),
    Row::new("fsync", 74, &[Fd], SYNC_ERRORS, fsync),
    Row::new("fdatasync", 75, &[Fd], SYNC_ERRORS, fsync),
    Row::new("sync", 162, &[], &[], sync),
    Row::new("syncfs", 306, &[Fd], SYNC_ERRORS, syncfs),
    Row::new(
        "sync_file_range",
        277,
        &[Fd, Int, Int, Flags],
        SYNC_ERRORS,
        sync_file_range,
    ),
    Row::new("fadvise64", 221, &[Fd, Int, Int, Int], &[], fadvise64),
    Row::new("readahead", 187, &[Fd, Int, Int], &[], readahead),
];

const SYNC_ERRORS: &[Errno] = &[Errno::EIO, Errno::ENOSPC];

fn memfd_create(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const CLOSE_ON_EXEC: u64 = 1;
    const ALLOW_SEALING: u64 = 2;
    const NO_EXECUTE: u64 = 8;
    const EXECUTABLE: u64 = 0x10;
    const KNOWN: u64 = CLOSE_ON_EXEC | ALLOW_SEALING | NO_EXECUTE | EXECUTABLE;
    /// `F_SEAL_SEAL`: no more seals can be added.
    const SEALED: u32 = 1;
    /// Maximum length of a name, without the kernel's prefix.
    const NAME_MAX: usize = 249;
    const HUGE_PAGES: u64 = 4;
    let flags = call.args[1];
    if flags & HUGE_PAGES != 0 {
        kernel.refuse("memfd_create", "memfd_create with MFD_HUGETLB");
    }
    if flags & !KNOWN != 0 || flags & (NO_EXECUTE | EXECUTABLE) == NO_EXECUTE | EXECUTABLE {
        return Err(Errno::EINVAL.into());
    }
    let name = kernel.read_new_path(call.args[0])?;
    if name.len() > NAME_MAX {
        return Err(Errno::EINVAL.into());
    }
    let fd = kernel.process().descriptors.free_from(0)?;
    let now_ns = kernel.wall_clock_ns();
    let seals = if flags & (ALLOW_SEALING | NO_EXECUTE) != 0 {
        0
    } else {
        SEALED
    };
    let mode = if flags & NO_EXECUTE != 0 {
        0o666
    } else {
        0o777
    };
    let who = kernel.fs_credentials();
    let inode = Inode {
        uid: who.uid,
        gid: who.gid,
        seals: Some(seals),
        last_path: Some(Arc::new([&b"/memfd:"[..], &name].concat())),
        ..Inode::new(InodeKind::Regular(Bytes::default()), mode, now_ns)
    };
    let id = kernel.host.files.tree.add_unlinked(inode);
    let mut open_flags = OpenFlags::READ_WRITE | OpenFlags::LARGE;
    if flags & CLOSE_ON_EXEC != 0 {
        open_flags |= OpenFlags::CLOSE_ON_EXEC;
    }
    kernel.install(fd, Description::new(Target::Inode(id), open_flags));
    Ok(Value::concrete(fd as u64))
}

fn copy_file_range(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const MAX: u64 = 1 << 24;
    let [_, from_at, _, to_at, len, flags] = call.args;
    if flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (from_descriptor, from) = kernel.description(call.int(0))?;
    let (to_descriptor, to) = kernel.description(call.int(2))?;
    if !from.flags.readable() || !to.flags.writable() || to.flags.has(OpenFlags::APPEND) {
        return Err(Errno::EBADF.into());
    }
    let (source, target) = (kernel.regular(from.target)?, kernel.regular(to.target)?);
    let start = kernel.offset_at(from_at, from.offset)?;
    let end = kernel.offset_at(to_at, to.offset)?;
    let bytes = match &kernel.host.files.tree.get(source).kind {
        InodeKind::Regular(bytes) => {
            let there = bytes.len().saturating_sub(start).min(len.min(MAX));
            kernel.vm.need_room(there.saturating_mul(COPIES))?;
            bytes.read(start, len.min(MAX))
        }
        _ => Buffer::zeroed(0),
    };
    let copied = bytes.len() as u64;
    let meets = start < end.saturating_add(len) && end < start.saturating_add(len);
    if source == target && meets {
        return Err(Errno::EINVAL.into());
    }
    if kernel.is_sealed(target) {
        return Err(Errno::EPERM.into());
    }
    let limit = kernel.end_in_file("copy_file_range", end, copied)?;
    let copied = kernel.limit_file(end, limit)? - end;
    if copied == 0 {
        return Ok(Value::ZERO);
    }
    kernel.check_disk(end, copied)?;
    for (address, offset, descriptor) in [
        (from_at, start, from_descriptor),
        (to_at, end, to_descriptor),
    ] {
        let after = offset + copied;
        if address != 0 {
            kernel.write_bytes(address, &after.to_le_bytes())?;
        } else if let Some(open) = kernel.host.files.description_mut(descriptor.description) {
            open.offset = after;
        }
    }
    kernel.note_access(source, from.flags);
    kernel.write_regular(target, end, &[slice(&bytes, 0, copied as usize)]);
    Ok(Value::concrete(copied))
}

fn fsync(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    match kernel.usable(call.int(0))? {
        Target::Inode(id)
            if matches!(
                kernel.host.files.tree.get(id).kind,
                InodeKind::Regular(_) | InodeKind::Directory(_)
            ) =>
        {
            kernel.host.files.sync(id);
            Ok(Value::ZERO)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

fn sync(kernel: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    kernel.host.files.sync_all();
    Ok(Value::ZERO)
}

fn syncfs(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.usable(call.int(0))?;
    kernel.host.files.sync_all();
    Ok(Value::ZERO)
}

fn sync_file_range(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let [_, offset, len, flags, ..] = call.args;
    let target = kernel.usable(call.int(0))?;
    if (offset as i64) < 0 || (len as i64) < 0 || flags & !7 != 0 {
        return Err(Errno::EINVAL.into());
    }
    match target {
        Target::Inode(_) => Ok(Value::ZERO),
        _ => Err(Errno::ESPIPE.into()),
    }
}

fn fadvise64(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    match kernel.usable(call.int(0))? {
        Target::Inode(_) if call.args[3] <= 5 && (call.args[2] as i64) >= 0 => Ok(Value::ZERO),
        Target::Inode(_) => Err(Errno::EINVAL.into()),
        _ => Err(Errno::ESPIPE.into()),
    }
}

fn readahead(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (_, description) = kernel.description(call.int(0))?;
    if !description.flags.readable() {
        return Err(Errno::EBADF.into());
    }
    kernel.regular(description.target)?;
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// The regular file behind a target.
    fn regular(&self, target: Target) -> Result<InodeId, Errno> {
        let Target::Inode(id) = target else {
            return Err(Errno::EINVAL);
        };
        match self.host.files.tree.get(id).kind {
            InodeKind::Regular(_) => Ok(id),
            InodeKind::Directory(_) => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The offset at an address; at address 0, `own`, the offset of the open file.
    fn offset_at(&mut self, address: u64, own: u64) -> Result<u64, Stop> {
        if address == 0 {
            return Ok(own);
        }
        let offset = self.read_u64(address)?;
        if (offset as i64) < 0 {
            return Err(Errno::EINVAL.into());
        }
        Ok(offset)
    }
}
