//! Descriptors and open files: closing, copying, seeking, their flags and sizes.

use everett_vm::Value;

use crate::errno::Errno;
use crate::files::{Descriptor, MAX_DESCRIPTORS, Node, OpenFlags, Target};
use crate::kernel::{Kernel, Stop};
use crate::table::ArgKind::{Fd, Flags, Int};
use crate::table::{Answer, Call, Row};

/// The family.
pub const ROWS: &[Row] = &[
    Row::new("close", 3, &[Fd], &[Errno::EINTR, Errno::EIO], close),
    Row::new("lseek", 8, &[Fd, Int, Int], &[], lseek).without("SEEK_DATA, SEEK_HOLE"),
    Row::new("ioctl", 16, &[Fd, Int, Int], &[], ioctl)
        .without("all but FIONBIO and FIOCLEX; nothing is a terminal"),
    Row::new("dup", 32, &[Fd], &[Errno::EMFILE], dup),
    Row::new("dup2", 33, &[Fd, Fd], &[Errno::EMFILE], dup2),
    Row::new("dup3", 292, &[Fd, Fd, Flags], &[Errno::EMFILE], dup3),
    Row::new("fcntl", 72, &[Fd, Int, Int], &[Errno::EMFILE], fcntl)
        .without("locks, owners, leases, pipe sizes"),
    Row::new("flock", 73, &[Fd, Int], &[], flock).without("other processes"),
    Row::new("fsync", 74, &[Fd], &[Errno::EIO, Errno::ENOSPC], fsync),
    Row::new("fdatasync", 75, &[Fd], &[Errno::EIO, Errno::ENOSPC], fsync),
    Row::new(
        "ftruncate",
        77,
        &[Fd, Int],
        &[Errno::EIO, Errno::ENOSPC],
        ftruncate,
    ),
];

fn close(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let descriptor = kernel.process().descriptors.get(call.int(0))?;
    kernel.process_mut().descriptors.set(call.int(0), None);
    kernel.host.release(descriptor.description);
    Ok(Value::ZERO)
}

fn lseek(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const SET: i32 = 0;
    const CURRENT: i32 = 1;
    const END: i32 = 2;
    let (descriptor, description) = kernel.description(call.int(0))?;
    let opened = kernel
        .host
        .open_object(descriptor.description, &description);
    if opened.is_some_and(|(_, operations)| operations.seeks) {
        return Ok(Value::ZERO);
    }
    let Target::Inode(id) = description.target else {
        return Err(Errno::ESPIPE.into());
    };
    let base = match (call.int(2), &kernel.host.files.tree.get(id).node) {
        (SET, _) => 0,
        (CURRENT, _) => description.offset,
        (END, Node::Regular(bytes)) => bytes.len(),
        (END, _) => 0,
        _ => return Err(Errno::EINVAL.into()),
    };
    let offset = (base as i64)
        .checked_add(call.args[1] as i64)
        .ok_or(Errno::EOVERFLOW)?;
    let offset = u64::try_from(offset).map_err(|_| Errno::EINVAL)?;
    if let Some(description) = kernel.host.files.description_mut(descriptor.description) {
        description.offset = offset;
    }
    Ok(Value::concrete(offset))
}

fn ioctl(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const FIONCLEX: u64 = 0x5450;
    const FIOCLEX: u64 = 0x5451;
    const FIONBIO: u64 = 0x5421;
    /// Terminal requests, which what is no terminal refuses without a warning.
    const TERMINAL: std::ops::RangeInclusive<u64> = 0x5401..=0x541f;
    let (descriptor, _) = kernel.description(call.int(0))?;
    let request = call.args[1] & 0xffff_ffff;
    if let Some(answer) = kernel.own_ioctl(call.int(0), request, call.args[2]) {
        return answer;
    }
    match request {
        FIOCLEX => kernel.set_close_on_exec(call.int(0), descriptor, true),
        FIONCLEX => kernel.set_close_on_exec(call.int(0), descriptor, false),
        FIONBIO => {
            let on = kernel.read_value(call.args[2], 4)?;
            let on = kernel.vm.concretize(on)? != 0;
            if let Some(description) = kernel.host.files.description_mut(descriptor.description) {
                let others = description.flags.0 & !OpenFlags::NONBLOCK;
                description.flags = OpenFlags(others | if on { OpenFlags::NONBLOCK } else { 0 });
            }
        }
        request => {
            if !TERMINAL.contains(&request) {
                kernel
                    .host
                    .warn(format!("ioctl request {request:#x} is not modelled"));
            }
            return Err(Errno::ENOTTY.into());
        }
    }
    Ok(Value::ZERO)
}

fn dup(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.duplicate(call.int(0), 0, false)
}

fn dup2(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (from, to) = (call.int(0), call.int(1));
    kernel.process().descriptors.get(from)?;
    if from == to {
        return Ok(Value::concrete(to as u64));
    }
    kernel.duplicate_onto(from, to, false)
}

fn dup3(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let flags = call.args[2] as u32;
    if call.int(0) == call.int(1) || flags & !OpenFlags::CLOSE_ON_EXEC != 0 {
        return Err(Errno::EINVAL.into());
    }
    kernel.duplicate_onto(call.int(0), call.int(1), flags != 0)
}

fn fcntl(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const DUPLICATE: i32 = 0;
    const GET_DESCRIPTOR_FLAGS: i32 = 1;
    const SET_DESCRIPTOR_FLAGS: i32 = 2;
    const GET_FLAGS: i32 = 3;
    const SET_FLAGS: i32 = 4;
    const GET_LOCK: i32 = 5;
    const SET_LOCK: i32 = 6;
    const SET_LOCK_WAIT: i32 = 7;
    const DUPLICATE_CLOSE_ON_EXEC: i32 = 1030;
    const CHANGEABLE: u32 = OpenFlags::APPEND | OpenFlags::NONBLOCK;
    let fd = call.int(0);
    let (descriptor, description) = kernel.description(fd)?;
    match call.int(1) {
        command @ (DUPLICATE | DUPLICATE_CLOSE_ON_EXEC) => {
            let lowest = call.int(2);
            if lowest < 0 || lowest as usize >= MAX_DESCRIPTORS {
                return Err(Errno::EINVAL.into());
            }
            kernel.duplicate(fd, lowest, command == DUPLICATE_CLOSE_ON_EXEC)
        }
        GET_DESCRIPTOR_FLAGS => Ok(Value::concrete(u64::from(descriptor.close_on_exec))),
        SET_DESCRIPTOR_FLAGS => {
            kernel.set_close_on_exec(fd, descriptor, call.args[2] & 1 != 0);
            Ok(Value::ZERO)
        }
        GET_FLAGS => Ok(Value::concrete(u64::from(description.flags.0))),
        SET_FLAGS => {
            if let Some(open) = kernel.host.files.description_mut(descriptor.description) {
                let flags = open.flags.0 & !CHANGEABLE | call.args[2] as u32 & CHANGEABLE;
                open.flags = OpenFlags(flags);
            }
            Ok(Value::ZERO)
        }
        // A process alone never meets a lock.
        SET_LOCK | SET_LOCK_WAIT => Ok(Value::ZERO),
        GET_LOCK => {
            const UNLOCKED: u16 = 2;
            kernel.write_bytes(call.args[2], &UNLOCKED.to_le_bytes())?;
            Ok(Value::ZERO)
        }
        command => {
            kernel
                .host
                .warn(format!("fcntl command {command} is not modelled"));
            Err(Errno::EINVAL.into())
        }
    }
}

fn flock(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.description(call.int(0))?;
    Ok(Value::ZERO)
}

fn fsync(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    match kernel.description(call.int(0))?.1.target {
        Target::Inode(_) => Ok(Value::ZERO),
        Target::Stdin | Target::Output(_) | Target::Object(_) => Err(Errno::EINVAL.into()),
    }
}

fn ftruncate(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (_, description) = kernel.description(call.int(0))?;
    match description.target {
        Target::Inode(id) if description.flags.writable() => kernel.truncate(id, call.args[1]),
        _ => Err(Errno::EINVAL.into()),
    }
}

impl Kernel<'_, '_> {
    fn set_close_on_exec(&mut self, fd: i32, descriptor: Descriptor, close_on_exec: bool) {
        let changed = Descriptor {
            close_on_exec,
            ..descriptor
        };
        self.process_mut().descriptors.set(fd, Some(changed));
    }

    /// A second descriptor for an open file, the lowest free one from `lowest` on.
    fn duplicate(&mut self, fd: i32, lowest: i32, close_on_exec: bool) -> Answer {
        let descriptor = self.process().descriptors.get(fd)?;
        let to = self.process().descriptors.free_from(lowest)?;
        self.host.files.retain(descriptor.description);
        self.set_close_on_exec(to, descriptor, close_on_exec);
        Ok(Value::concrete(to as u64))
    }

    fn duplicate_onto(&mut self, from: i32, to: i32, close_on_exec: bool) -> Answer {
        let descriptor = self.process().descriptors.get(from)?;
        if to < 0 || to as usize >= MAX_DESCRIPTORS {
            return Err(Errno::EBADF.into());
        }
        self.host.files.retain(descriptor.description);
        let changed = Descriptor {
            close_on_exec,
            ..descriptor
        };
        if let Some(old) = self.process_mut().descriptors.set(to, Some(changed)) {
            self.host.release(old.description);
        }
        Ok(Value::concrete(to as u64))
    }

    /// Sets the size of a file.
    pub fn truncate(&mut self, id: crate::files::InodeId, len: u64) -> Answer {
        if (len as i64) < 0 {
            return Err(Errno::EINVAL.into());
        }
        if len > super::input_output::MAX_FILE {
            return Err(Stop::Errno(Errno::EFBIG));
        }
        let now = self.wall_clock_ns();
        let tree = &mut self.host.files.tree;
        match &tree.get(id).node {
            Node::Regular(_) => {}
            Node::Directory(..) => return Err(Errno::EISDIR.into()),
            _ => return Err(Errno::EINVAL.into()),
        }
        let inode = tree.get_mut(id);
        inode.modified_ns = now;
        if let Node::Regular(bytes) = &mut inode.node {
            bytes.set_len(len);
        }
        Ok(Value::ZERO)
    }
}
