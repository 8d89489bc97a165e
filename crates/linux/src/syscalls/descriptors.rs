//! File descriptors: closing, duplicating, seeking, flags and sizes.

use everett_vm::Value;

use super::locks;
use crate::errno::Errno;
use crate::files::{Description, Descriptor, InodeKind, OpenFlags, Target};
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::message_queue::queue;
use crate::objects::{Object, pipe};
use crate::owners;
use crate::table::ArgKind::{Fd, Flags, Int};
use crate::table::property::CLOSES;
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("close", 3, &[Fd], &[Errno::EINTR, Errno::EIO], close).with(CLOSES),
    Row::new("lseek", 8, &[Fd, Int, Int], &[], lseek),
    Row::new("ioctl", 16, &[Fd, Int, Int], &[], ioctl)
        .without("all but FIONBIO, FIOASYNC, FIONREAD, FIOCLEX, TFD_IOC_SET_TICKS and requests of pseudo-terminals, sockets and network interfaces, which cannot be changed"),
    Row::new("dup", 32, &[Fd], &[Errno::EMFILE], dup),
    // The caller gives the number, so the call does not run out of descriptors.
    Row::new("dup2", 33, &[Fd, Fd], &[Errno::ENOMEM], dup2),
    Row::new("dup3", 292, &[Fd, Fd, Flags], &[Errno::ENOMEM], dup3),
    Row::new("fcntl", 72, &[Fd, Int, Int], FCNTL_ERRORS, fcntl)
        .fails_where(fcntl_fails)
        .without("leases, directory notifications"),
    Row::new("close_range", 436, &[Int, Int, Flags], &[], close_range),
];

const FCNTL_ERRORS: &[Errno] = &[Errno::EMFILE, Errno::EINTR, Errno::ENOLCK, Errno::ENOMEM];

/// Commands of `fcntl` that create a descriptor.
const DUPLICATE: i32 = 0;
const DUPLICATE_CLOSE_ON_EXEC: i32 = 1030;
/// The command of `fcntl` that replaces the buffer of a pipe.
const SET_PIPE_SIZE: i32 = 1031;

/// Whether `fcntl` can fail with this errno: commands that read or set flags cannot.
fn fcntl_fails(_: &Kernel<'_, '_>, args: &[u64; 6], errno: Errno) -> bool {
    match args[1] as i32 {
        DUPLICATE | DUPLICATE_CLOSE_ON_EXEC => errno == Errno::EMFILE,
        locks::SET_LOCK | locks::SET_OPEN_LOCK => errno == Errno::ENOLCK,
        locks::SET_LOCK_WAIT | locks::SET_OPEN_LOCK_WAIT => {
            errno == Errno::ENOLCK || errno == Errno::EINTR
        }
        SET_PIPE_SIZE => errno == Errno::ENOMEM,
        _ => false,
    }
}

fn close(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.process().descriptors.get(call.int(0))?;
    kernel.close(call.int(0));
    Ok(Value::ZERO)
}

fn close_range(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const UNSHARE: u64 = 2;
    const CLOSE_ON_EXEC: u64 = 4;
    let (first, last) = (call.args[0] as u32, call.args[1] as u32);
    if first > last || call.args[2] & !(UNSHARE | CLOSE_ON_EXEC) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let open: Vec<_> = kernel.process().descriptors.iter().collect();
    for (fd, descriptor) in open {
        if fd as u32 >= first && fd as u32 <= last {
            if call.args[2] & CLOSE_ON_EXEC != 0 {
                kernel.set_close_on_exec(fd, descriptor, true);
            } else {
                kernel.close(fd);
            }
        }
    }
    Ok(Value::ZERO)
}

fn lseek(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const SET: i32 = 0;
    const CURRENT: i32 = 1;
    const END: i32 = 2;
    const DATA: i32 = 3;
    const HOLE: i32 = 4;
    kernel.usable(call.int(0))?;
    let (descriptor, description) = kernel.description(call.int(0))?;
    let opened = kernel
        .host
        .open_object(descriptor.description, &description);
    if opened.is_some_and(|(_, operations)| operations.seeks) {
        return Ok(Value::ZERO);
    }
    let wanted = call.args[1];
    if let Target::Object(id) = description.target
        && queue(kernel.host, id).is_some()
    {
        /// Size of what can be read of a message queue (`FILENT_SIZE`).
        const SIZE: u64 = 80;
        let offset = match call.int(2) {
            SET => moved(0, wanted)?,
            CURRENT => moved(description.offset, wanted)?,
            END => moved(SIZE, wanted)?,
            DATA | HOLE if wanted >= SIZE => return Err(Errno::ENXIO.into()),
            DATA => wanted,
            HOLE => SIZE,
            _ => return Err(Errno::EINVAL.into()),
        };
        return Ok(kernel.move_to(descriptor, offset));
    }
    let Target::Inode(id) = description.target else {
        return Err(Errno::ESPIPE.into());
    };
    /// The largest file, as ext4 has it with blocks of 4 KiB.
    const LARGEST: u64 = (1 << 44) - 4096;
    let offset = match (call.int(2), &kernel.host.files.tree.get(id).kind) {
        // Devices have no file offset.
        (SET | CURRENT | END, InodeKind::Device(_)) => 0,
        (SET, _) => moved(0, wanted)?,
        (CURRENT, _) => moved(description.offset, wanted)?,
        (END, InodeKind::Regular(bytes)) => moved(bytes.len(), wanted)?,
        (END, _) => moved(0, wanted)?,
        (whence @ (DATA | HOLE), InodeKind::Regular(bytes)) => {
            if wanted >= bytes.len() {
                return Err(Errno::ENXIO.into());
            }
            let found = bytes.next_change(wanted, whence == DATA);
            found.ok_or(Errno::ENXIO)?
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    if offset > LARGEST {
        return Err(Errno::EINVAL.into());
    }
    Ok(kernel.move_to(descriptor, offset))
}

fn moved(base: u64, by: u64) -> Result<u64, Errno> {
    let offset = (base as i64).checked_add(by as i64);
    let offset = offset.ok_or(Errno::EINVAL)?;
    u64::try_from(offset).map_err(|_| Errno::EINVAL)
}

fn ioctl(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const FIONCLEX: u64 = 0x5450;
    const FIOCLEX: u64 = 0x5451;
    const FIONREAD: u64 = 0x541b;
    /// `FICLONE`, which programs try before they copy.
    const FICLONE: u64 = 0x4004_9409;
    const FICLONERANGE: u64 = 0x4020_940d;
    const FIONBIO: u64 = 0x5421;
    const FIOASYNC: u64 = 0x5452;
    const SET_OWNER: [u64; 2] = [0x8901, 0x8902];
    const GET_OWNER: [u64; 2] = [0x8903, 0x8904];
    /// Terminal requests, which are not recorded as refused for other files.
    const TERMINAL: std::ops::RangeInclusive<u64> = 0x5401..=0x541f;
    let (descriptor, description) = kernel.description(call.int(0))?;
    let opened = kernel
        .host
        .open_object(descriptor.description, &description);
    let request = call.args[1] & 0xffff_ffff;
    if let Some(answer) = kernel.own_ioctl(call.int(0), request, call.args[2]) {
        return answer;
    }
    let is_socket =
        matches!(description.target, Target::Object(id) if kernel.host.socket(id).is_some());
    if is_socket && SET_OWNER.contains(&request) {
        let owner = kernel.read_value(call.args[2], 4)?;
        let owner = kernel.vm.concretize(owner)? as i32;
        return kernel.set_owner(descriptor.description, owner);
    }
    if is_socket && GET_OWNER.contains(&request) {
        let owner = kernel.owner(descriptor.description);
        kernel.write_bytes(call.args[2], &owner.to_le_bytes())?;
        return Ok(Value::ZERO);
    }
    if let Target::Object(object) = description.target
        && let Some(answer) = kernel.socket_ioctl(object, request, call.args[2])
    {
        return answer;
    }
    match request {
        FIONREAD => return kernel.write_available(call.int(0), call.args[2]),
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
        FIOASYNC => {
            let on = kernel.read_value(call.args[2], 4)?;
            let on = kernel.vm.concretize(on)? != 0;
            if !kernel.set_asynchronous(call.int(0), descriptor.description, on) && on {
                return Err(Errno::ENOTTY.into());
            }
        }
        FICLONE | FICLONERANGE => return Err(Errno::EOPNOTSUPP.into()),
        request => {
            if TERMINAL.contains(&request) && kernel.is_symbolic_terminal(description.target)? {
                return kernel.answer_as_terminal(request, call.args[2]);
            }
            let answer = match opened {
                Some((open, operations)) => (operations.ioctl)(kernel, open, request, call.args[2]),
                None => Err(Errno::ENOTTY.into()),
            };
            let is_refused = matches!(&answer, Err(Stop::Errno(errno)) if *errno == Errno::ENOTTY);
            // Terminals record the requests that they do not support themselves.
            let is_terminal = kernel.is_terminal(&description);
            if is_refused && !is_terminal && !TERMINAL.contains(&request) {
                kernel.refuse("ioctl", format!("ioctl request {request:#x}"));
            }
            return answer;
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
    const GET_DESCRIPTOR_FLAGS: i32 = 1;
    const SET_DESCRIPTOR_FLAGS: i32 = 2;
    const GET_FLAGS: i32 = 3;
    const SET_FLAGS: i32 = 4;
    const ADD_SEALS: i32 = 1033;
    const GET_SEALS: i32 = 1034;
    const GET_PIPE_SIZE: i32 = 1032;
    const GET_LEASE: i32 = 1025;
    const NOTIFY: i32 = 1026;
    /// `F_UNLCK`: no file has a lease.
    const NO_LEASE: u64 = 2;
    /// What also works for files that were opened with `O_PATH`.
    const OF_PATHS: [i32; 5] = [
        DUPLICATE,
        DUPLICATE_CLOSE_ON_EXEC,
        GET_DESCRIPTOR_FLAGS,
        SET_DESCRIPTOR_FLAGS,
        GET_FLAGS,
    ];
    let fd = call.int(0);
    let (descriptor, description) = kernel.description(fd)?;
    if !OF_PATHS.contains(&call.int(1)) {
        kernel.usable(fd)?;
    }
    match call.int(1) {
        command @ (DUPLICATE | DUPLICATE_CLOSE_ON_EXEC) => {
            let lowest = call.int(2);
            if lowest < 0 || lowest as usize >= kernel.process().descriptors.limit() {
                return Err(Errno::EINVAL.into());
            }
            kernel.duplicate(fd, lowest, command == DUPLICATE_CLOSE_ON_EXEC)
        }
        GET_DESCRIPTOR_FLAGS => Ok(Value::concrete(u64::from(descriptor.close_on_exec))),
        SET_DESCRIPTOR_FLAGS => {
            kernel.set_close_on_exec(fd, descriptor, call.args[2] & 1 != 0);
            Ok(Value::ZERO)
        }
        GET_FLAGS => {
            let flags = description.flags.0 & !OpenFlags::CLOSE_ON_EXEC;
            Ok(Value::concrete(u64::from(flags)))
        }
        SET_FLAGS => {
            kernel.set_flags((fd, descriptor), &description, call.args[2] as u32)?;
            Ok(Value::ZERO)
        }
        command @ (locks::GET_LOCK
        | locks::SET_LOCK
        | locks::SET_LOCK_WAIT
        | locks::GET_OPEN_LOCK
        | locks::SET_OPEN_LOCK
        | locks::SET_OPEN_LOCK_WAIT) => {
            kernel.usable(fd)?;
            kernel.lock(descriptor, &description, command, call.args[2])
        }
        command @ (owners::SET_OWNER
        | owners::GET_OWNER
        | owners::SET_SIGNAL
        | owners::GET_SIGNAL
        | owners::SET_TYPED_OWNER
        | owners::GET_TYPED_OWNER
        | owners::GET_OWNER_USERS) => {
            kernel.owner_command(descriptor.description, command, call.args[2])
        }
        ADD_SEALS => kernel.add_seals(&description, call.args[2] as u32),
        GET_SEALS => {
            let seals = match description.target {
                Target::Inode(id) => kernel.host.files.tree.get(id).seals,
                _ => None,
            };
            Ok(Value::concrete(u64::from(seals.ok_or(Errno::EINVAL)?)))
        }
        GET_LEASE => Ok(Value::concrete(NO_LEASE)),
        NOTIFY if call.args[2] == 0 => Ok(Value::ZERO),
        SET_PIPE_SIZE | GET_PIPE_SIZE if !kernel.is_pipe(&description) => Err(Errno::EBADF.into()),
        command => {
            let opened = kernel
                .host
                .open_object(descriptor.description, &description);
            let is_size = matches!(command, SET_PIPE_SIZE | GET_PIPE_SIZE);
            if let Some((open, operations)) = opened.filter(|_| is_size) {
                return (operations.fcntl)(kernel, open, command, call.args[2]);
            }
            kernel.refuse("fcntl", format!("fcntl command {command}"));
            Err(Errno::EINVAL.into())
        }
    }
}

impl Kernel<'_, '_> {
    /// `F_SETFL`: changes the flags of an open file.
    fn set_flags(
        &mut self,
        (fd, descriptor): (i32, Descriptor),
        description: &Description,
        flags: u32,
    ) -> Result<(), Stop> {
        const CHANGEABLE: u32 =
            OpenFlags::APPEND | OpenFlags::NONBLOCK | OpenFlags::DIRECT | OpenFlags::NO_ACCESS_TIME;
        let new = OpenFlags(flags & !description.flags.0);
        if new.has(OpenFlags::NO_ACCESS_TIME)
            && let Target::Inode(id) = description.target
        {
            let inode = self.host.files.tree.get(id);
            self.fs_credentials().check_owner(inode)?;
        }
        let is_file = matches!(description.target, Target::Inode(id)
            if self.host.files.tree.get(id).is_regular());
        if new.has(OpenFlags::DIRECT) && !is_file && !self.is_pipe(description) {
            return Err(Errno::EINVAL.into());
        }
        let wants_signals = flags & OpenFlags::ASYNC != 0;
        if wants_signals != description.flags.has(OpenFlags::ASYNC) {
            self.set_asynchronous(fd, descriptor.description, wants_signals);
        }
        if let Some(open) = self.host.files.description_mut(descriptor.description) {
            let flags = open.flags.0 & !CHANGEABLE | flags & CHANGEABLE;
            open.flags = OpenFlags(flags);
        }
        Ok(())
    }

    fn move_to(&mut self, descriptor: Descriptor, offset: u64) -> Value {
        if let Some(description) = self.host.files.description_mut(descriptor.description) {
            description.offset = offset;
        }
        Value::concrete(offset)
    }

    fn is_pipe(&self, description: &Description) -> bool {
        matches!(description.target, Target::Object(id) if pipe(self.host, id).is_some())
    }

    fn is_terminal(&self, description: &Description) -> bool {
        let Target::Object(id) = description.target else {
            return false;
        };
        let object = self.host.objects.get(id.0);
        matches!(object, Some(Object::Terminal(_) | Object::TerminalLine(_)))
    }

    /// Bytes that can be read without blocking, if known.
    pub fn available(&mut self, fd: i32) -> Result<Option<u64>, Errno> {
        self.usable(fd)?;
        let (descriptor, description) = self.description(fd)?;
        Ok(match description.target {
            Target::Stdin(number) => Some(self.host.files.stdin(number).available()),
            Target::Output(_) => Some(0),
            Target::Inode(id) => match &self.host.files.tree.get(id).kind {
                InodeKind::Regular(bytes) => Some(bytes.len().saturating_sub(description.offset)),
                _ => None,
            },
            Target::Object(_) => {
                let open = self.host.open_object(descriptor.description, &description);
                open.and_then(|(open, operations)| (operations.available)(self.host, open))
            }
        })
    }

    /// `FIONREAD`.
    fn write_available(&mut self, fd: i32, address: u64) -> Answer {
        let available = self.available(fd)?.ok_or(Errno::ENOTTY)?;
        let count = available.min(i32::MAX as u64) as u32;
        self.write_bytes(address, &count.to_le_bytes())?;
        Ok(Value::ZERO)
    }

    fn set_close_on_exec(&mut self, fd: i32, descriptor: Descriptor, close_on_exec: bool) {
        let changed = Descriptor {
            close_on_exec,
            ..descriptor
        };
        self.process_mut().descriptors.set(fd, Some(changed));
    }

    /// Duplicates a descriptor to the lowest free one from `lowest` on.
    fn duplicate(&mut self, fd: i32, lowest: i32, close_on_exec: bool) -> Answer {
        let descriptor = self.process().descriptors.get(fd)?;
        let to = self.process().descriptors.free_from(lowest)?;
        self.host.files.retain(descriptor.description);
        self.set_close_on_exec(to, descriptor, close_on_exec);
        Ok(Value::concrete(to as u64))
    }

    fn duplicate_onto(&mut self, from: i32, to: i32, close_on_exec: bool) -> Answer {
        let descriptor = self.process().descriptors.get(from)?;
        if to < 0 || to as usize >= self.process().descriptors.limit() {
            return Err(Errno::EBADF.into());
        }
        self.host.files.retain(descriptor.description);
        let changed = Descriptor {
            close_on_exec,
            ..descriptor
        };
        self.close(to);
        self.process_mut().descriptors.set(to, Some(changed));
        Ok(Value::concrete(to as u64))
    }

    /// Closes a descriptor.
    pub fn close(&mut self, fd: i32) {
        let pid = self.process().pid;
        if let Some(old) = self.process_mut().descriptors.set(fd, None) {
            self.host.close(pid, old.description);
        }
    }

    fn add_seals(&mut self, description: &Description, more: u32) -> Answer {
        /// `F_SEAL_` bits: seal, shrink, grow, write, future write.
        const KNOWN: u32 = 0x1f;
        const SEALED: u32 = 1;
        const WRITE: u32 = 8;
        let Target::Inode(id) = description.target else {
            return Err(Errno::EINVAL.into());
        };
        if !description.flags.writable() {
            return Err(Errno::EPERM.into());
        }
        if more & !KNOWN != 0 {
            return Err(Errno::EINVAL.into());
        }
        let seals = self.host.files.tree.get(id).seals.ok_or(Errno::EINVAL)?;
        if seals & SEALED != 0 {
            return Err(Errno::EPERM.into());
        }
        if more & !seals & WRITE != 0 && self.host.files.is_mapped_writable(id) {
            return Err(Errno::EBUSY.into());
        }
        self.host.files.tree.get_mut(id).seals = Some(seals | more);
        Ok(Value::ZERO)
    }
}
