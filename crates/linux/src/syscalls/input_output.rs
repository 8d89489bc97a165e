//! `read`, `write` and their variants, on files, devices and kernel objects.

use everett_vm::{Buffer, Value};

use crate::bytes::{input_bytes, join};
use crate::errno::Errno;
use crate::files::{Description, Descriptor, Device, InodeKind, OpenFlags, Target};
use crate::host::HostState;
use crate::ids::{DescriptionId, ObjectId};
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::{Object, OpenObject, Operations, event, happened, pipe};
use crate::signals::SIGXFSZ;
use crate::table::ArgKind::{Buffer as Bytes, Fd, Flags, Int, Pointer, Symbolic};
use crate::table::property::{READS, SHOWS_INPUT, WRITES};
use crate::table::{Call, Row};
use crate::transfers::{COPIES, IoRange, MAX_TRANSFER, first_bytes, skip};
use crate::wait::WaitCondition;

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("read", 0, &[Fd, Bytes, Symbolic], STREAM_READ_ERRORS, read)
        .with(READS)
        .fails_where(transfer_fails),
    Row::new("write", 1, &[Fd, Bytes, Int], STREAM_WRITE_ERRORS, write)
        .with(WRITES | SHOWS_INPUT)
        .fails_where(transfer_fails),
    Row::new("pread64", 17, &[Fd, Bytes, Int, Int], READ_ERRORS, pread64)
        .with(READS)
        .fails_where(transfer_fails),
    Row::new(
        "pwrite64",
        18,
        &[Fd, Bytes, Int, Int],
        WRITE_ERRORS,
        pwrite64,
    )
    .with(WRITES | SHOWS_INPUT)
    .fails_where(transfer_fails),
    Row::new("readv", 19, &[Fd, Pointer, Int], STREAM_READ_ERRORS, readv)
        .with(READS)
        .fails_where(transfer_fails),
    Row::new(
        "writev",
        20,
        &[Fd, Pointer, Int],
        STREAM_WRITE_ERRORS,
        writev,
    )
    .with(WRITES)
    .fails_where(transfer_fails),
    Row::new(
        "preadv",
        295,
        &[Fd, Pointer, Int, Int, Int],
        READ_ERRORS,
        preadv,
    )
    .with(READS)
    .fails_where(transfer_fails),
    Row::new(
        "pwritev",
        296,
        &[Fd, Pointer, Int, Int, Int],
        WRITE_ERRORS,
        pwritev,
    )
    .with(WRITES)
    .fails_where(transfer_fails),
    Row::new(
        "preadv2",
        327,
        &[Fd, Pointer, Int, Int, Int, Flags],
        STREAM_READ_ERRORS,
        preadv2,
    )
    .with(READS)
    .fails_where(transfer_fails),
    Row::new(
        "pwritev2",
        328,
        &[Fd, Pointer, Int, Int, Int, Flags],
        STREAM_WRITE_ERRORS,
        pwritev2,
    )
    .with(WRITES)
    .fails_where(transfer_fails),
];

/// Whether a transfer can fail with this errno: a pipe or socket has no disk that could fail or be
/// full.
fn transfer_fails(kernel: &Kernel<'_, '_>, args: &[u64; 6], errno: Errno) -> bool {
    let target = kernel
        .description(args[0] as i32)
        .map(|found| found.1.target);
    let Ok(Target::Object(id)) = target else {
        return !matches!(errno, Errno::EAGAIN | Errno::EPIPE | Errno::ECONNRESET);
    };
    if matches!(errno, Errno::EPIPE | Errno::ECONNRESET) {
        return kernel.host.can_break(id, errno);
    }
    if errno == Errno::EAGAIN && !kernel.is_nonblocking(args[0] as i32) {
        return false;
    }
    if is_told(kernel.host, id) {
        return errno == Errno::EINTR;
    }
    let has_disk = kernel.host.socket(id).is_none() && pipe(kernel.host, id).is_none();
    has_disk || !matches!(errno, Errno::EIO | Errno::ENOSPC)
}

/// Whether an object only reports events, like counters and timers: its transfers cannot fail with
/// an I/O error.
fn is_told(host: &HostState, id: ObjectId) -> bool {
    let counts = |object: &Object| {
        matches!(
            object,
            Object::EventCounter(_) | Object::Timer(_) | Object::Signals(_) | Object::Inotify(_)
        )
    };
    host.objects.get(id.0).is_some_and(counts)
}

const READ_ERRORS: &[Errno] = &[Errno::EINTR, Errno::EIO];
/// Errors of reads that can also come from a connection.
const STREAM_READ_ERRORS: &[Errno] = &[Errno::EINTR, Errno::EIO, Errno::ECONNRESET];
const WRITE_ERRORS: &[Errno] = &[Errno::EINTR, Errno::EIO, Errno::ENOSPC, Errno::EAGAIN];
/// Errors of writes that can also go to a connection.
const STREAM_WRITE_ERRORS: &[Errno] = &[
    Errno::EINTR,
    Errno::EIO,
    Errno::ENOSPC,
    Errno::EAGAIN,
    Errno::EPIPE,
    Errno::ECONNRESET,
];

/// Maximum number of buffers of one call (`IOV_MAX`).
const IOV_MAX: u64 = 1024;
/// Maximum number of random bytes of one read.
const MAX_RANDOM: u64 = 0x1ff_ffff;
/// File offset of a transfer.
#[derive(Copy, Clone)]
enum At {
    /// The offset of the open file, which advances.
    Current,
    /// An explicit offset.
    Offset(u64),
}

fn read(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let range = IoRange {
        address: call.args[1],
        len: kernel.count_to_read(call.int(0), call.args[1], call.raw[2])?,
    };
    kernel.read_file(call.int(0), &[range], At::Current)
}

fn write(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let range = IoRange {
        address: call.args[1],
        len: call.args[2],
    };
    kernel.write_file(call.int(0), &[range], At::Current)
}

fn pread64(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let range = IoRange {
        address: call.args[1],
        len: call.args[2],
    };
    kernel.read_file(call.int(0), &[range], offset(call.args[3])?)
}

fn pwrite64(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let range = IoRange {
        address: call.args[1],
        len: call.args[2],
    };
    kernel.write_file(call.int(0), &[range], offset(call.args[3])?)
}

fn readv(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.description(call.int(0))?;
    let ranges = kernel.ranges(call.args[1], call.args[2])?;
    kernel.read_file(call.int(0), &ranges, At::Current)
}

fn writev(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.description(call.int(0))?;
    let ranges = kernel.ranges(call.args[1], call.args[2])?;
    kernel.write_file(call.int(0), &ranges, At::Current)
}

fn preadv(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.description(call.int(0))?;
    let ranges = kernel.ranges(call.args[1], call.args[2])?;
    kernel.read_file(call.int(0), &ranges, offset(call.args[3])?)
}

fn pwritev(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.description(call.int(0))?;
    let ranges = kernel.ranges(call.args[1], call.args[2])?;
    kernel.write_file(call.int(0), &ranges, offset(call.args[3])?)
}

fn preadv2(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.with_transfer_flags(call, |kernel, at| {
        let ranges = kernel.ranges(call.args[1], call.args[2])?;
        kernel.read_file(call.int(0), &ranges, at)
    })
}

fn pwritev2(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.with_transfer_flags(call, |kernel, at| {
        let ranges = kernel.ranges(call.args[1], call.args[2])?;
        kernel.write_file(call.int(0), &ranges, at)
    })
}

fn offset(offset: u64) -> Result<At, Errno> {
    if offset as i64 >= 0 {
        Ok(At::Offset(offset))
    } else {
        Err(Errno::EINVAL)
    }
}

impl Kernel<'_, '_> {
    /// A descriptor, and the open file description behind it.
    pub fn description(&self, fd: i32) -> Result<(Descriptor, Description), Errno> {
        let descriptor = self.process().descriptors.get(fd)?;
        let description = self.host.files.description(descriptor.description);
        Ok((descriptor, description.cloned().ok_or(Errno::EBADF)?))
    }

    /// Reads or writes with the flags and the offset of `preadv2` and `pwritev2`.
    fn with_transfer_flags(
        &mut self,
        call: &Call,
        transfer: impl FnOnce(&mut Self, At) -> Answer,
    ) -> Answer {
        const NO_WAIT: u64 = 8;
        const APPEND: u64 = 0x10;
        const KNOWN: u64 = 0x1f;
        const CURRENT: u64 = u64::MAX;
        let (descriptor, description) = self.description(call.int(0))?;
        let flags = call.args[5] & 0xffff_ffff;
        if flags & !KNOWN != 0 {
            self.refuse(
                "preadv2",
                format!("flags {:#x} of preadv2 and pwritev2", flags & !KNOWN),
            );
            return Err(Errno::EOPNOTSUPP.into());
        }
        let at = match call.args[3] {
            CURRENT => At::Current,
            place => offset(place)?,
        };
        let mut more = 0;
        if flags & NO_WAIT != 0 {
            more |= OpenFlags::NONBLOCK;
        }
        if flags & APPEND != 0 {
            more |= OpenFlags::APPEND;
        }
        let before = description.flags;
        // The open file description has these flags for this call only.
        let set = |kernel: &mut Self, flags: OpenFlags| {
            if let Some(open) = kernel.host.files.description_mut(descriptor.description) {
                open.flags = flags;
            }
        };
        set(self, OpenFlags(before.0 | more));
        let answer = transfer(self, at);
        set(self, before);
        answer
    }

    /// Reads an array of `struct iovec`.
    pub fn ranges(&mut self, address: u64, count: u64) -> Result<Vec<IoRange>, Stop> {
        if count > IOV_MAX {
            return Err(Errno::EINVAL.into());
        }
        let mut ranges = Vec::with_capacity(count as usize);
        let mut total = 0u64;
        for index in 0..count {
            let at = address.wrapping_add(16 * index);
            let range = IoRange {
                address: self.read_u64(at)?,
                len: self.read_u64(at.wrapping_add(8))?,
            };
            total = total
                .checked_add(range.len)
                .filter(|total| *total as i64 >= 0)
                .ok_or(Errno::EINVAL)?;
            ranges.push(range);
        }
        Ok(ranges)
    }

    /// Concretizes the byte count of a read. All values beyond the available bytes are one case:
    /// they read the same bytes.
    pub fn count_to_read(&mut self, fd: i32, address: u64, count: Value) -> Result<u64, Stop> {
        if count.term.is_none() {
            return Ok(count.bits);
        }
        let Some(available) = self.available(fd)? else {
            return Ok(self.vm.concretize(count)?);
        };
        // A count beyond the end of the buffer gets its own path: it may be a finding.
        let object = self.vm.memory.near(address);
        let end = object.map(|object| object.start.saturating_add(object.size));
        let room = end.map(|end| end.saturating_sub(address));
        match room {
            Some(room) if self.is_above(count, room)? => Ok(room.saturating_add(1)),
            _ if self.is_above(count, available)? => Ok(available.max(1)),
            _ => Ok(self.vm.concretize(count)?),
        }
    }

    fn is_above(&mut self, count: Value, most: u64) -> Result<bool, Stop> {
        let term = count.to_term(self.vm.arena, 64);
        let most = self.vm.arena.constant(64, most);
        let above = self.vm.arena.ult(most, term);
        Ok(self.vm.decide_term(above)?)
    }

    fn read_file(&mut self, fd: i32, ranges: &[IoRange], at: At) -> Answer {
        let (descriptor, description) = self.description(fd)?;
        if !description.flags.readable() {
            return Err(Errno::EBADF.into());
        }
        let wanted = ranges
            .iter()
            .fold(0u64, |sum, range| sum.saturating_add(range.len));
        let wanted = self.limit_transfer(wanted.min(MAX_TRANSFER));
        let offset = match at {
            At::Current => description.offset,
            At::Offset(offset) => offset,
        };
        if let Some((open, operations)) =
            self.host.open_object(descriptor.description, &description)
        {
            return self.read_object(open, operations, ranges, wanted, at);
        }
        let bytes = match description.target {
            Target::Object(_) | Target::Output(_) => return Err(Errno::EBADF.into()),
            Target::Stdin(_) if matches!(at, At::Offset(_)) => return Err(Errno::ESPIPE.into()),
            Target::Stdin(number) if wanted > 0 && self.host.files.stdin(number).must_wait() => {
                return Err(self.no_input_yet(descriptor, description.flags));
            }
            Target::Stdin(number) => {
                let there = self.host.files.stdin(number).available().min(wanted);
                self.vm.need_room(there.saturating_mul(COPIES))?;
                self.host.files.stdin(number).peek(wanted)
            }
            Target::Inode(id) => match &self.host.files.tree.get(id).kind {
                InodeKind::Regular(bytes) => {
                    let there = bytes.len().saturating_sub(offset).min(wanted);
                    self.vm.need_room(there.saturating_mul(COPIES))?;
                    bytes.read(offset, wanted)
                }
                InodeKind::Directory(..) => return Err(Errno::EISDIR.into()),
                InodeKind::Device(device) => {
                    let device = *device;
                    self.read_device(device, wanted)?
                }
                _ => return Err(Errno::EBADF.into()),
            },
        };
        let random = self.host.random;
        let mut bytes = self.apply_symbolic_source(descriptor.description, bytes)?;
        if let Target::Inode(_) = description.target {
            let there = self.accessible(ranges, bytes.len() as u64, true);
            let there = there.inspect_err(|_| self.host.random = random)?;
            bytes = join(first_bytes(vec![bytes], there));
        }
        self.scatter(ranges, &bytes)
            .inspect_err(|_| self.host.random = random)?;
        let read = bytes.len() as u64;
        match description.target {
            Target::Stdin(number) => self.host.files.stdin_mut(number).advance(read),
            Target::Inode(id) => {
                self.note_access(id, description.flags);
                if read > 0 {
                    self.host.notify(id, happened::ACCESS);
                }
                self.advance(descriptor, at, offset + read);
            }
            _ => {}
        }
        Ok(Value::concrete(read))
    }

    fn no_input_yet(&mut self, descriptor: Descriptor, flags: OpenFlags) -> Stop {
        if flags.has(OpenFlags::NONBLOCK) {
            Errno::EAGAIN.into()
        } else {
            let condition = WaitCondition::Ready(vec![(descriptor.description, event::IN)]);
            self.wait_restartable(condition, "standard input")
        }
    }

    fn read_object(
        &mut self,
        open: OpenObject<'_>,
        operations: &Operations,
        ranges: &[IoRange],
        wanted: u64,
        at: At,
    ) -> Answer {
        if matches!(at, At::Offset(_)) {
            return Err(Errno::ESPIPE.into());
        }
        match self.check_targets(open, operations, ranges, wanted) {
            Err(Stop::Errno(errno)) if self.host.keeps_messages(open.object) => {
                // The message is lost.
                let bytes = (operations.read)(self, open, wanted)?;
                self.scatter_accessible(ranges, &bytes)?;
                return Err(errno.into());
            }
            checked => checked?,
        }
        let wanted = self.piece(open, operations, wanted)?;
        let bytes = (operations.read)(self, open, wanted)?;
        let bytes = self.apply_symbolic_source(open.id, bytes)?;
        self.scatter(ranges, &bytes)?;
        Ok(Value::concrete(bytes.len() as u64))
    }

    /// Checks, before bytes are consumed, that their destination is writable. Only the bytes that
    /// are available count: a count beyond the end of a buffer is harmless if fewer arrive.
    pub fn check_targets(
        &mut self,
        open: OpenObject<'_>,
        operations: &Operations,
        ranges: &[IoRange],
        wanted: u64,
    ) -> Result<(), Stop> {
        let available = (operations.available)(self.host, open);
        let most = wanted.min(operations.largest_read);
        let mut left = available.unwrap_or(most).min(most);
        for range in ranges {
            let len = range.len.min(left);
            self.check(range.address, len, true)?;
            left -= len;
        }
        Ok(())
    }

    /// Number of bytes that one read of an object returns, if its bytes arrive in fragments.
    pub fn piece(
        &mut self,
        open: OpenObject<'_>,
        operations: &Operations,
        wanted: u64,
    ) -> Result<u64, Stop> {
        if self.host.keeps_messages(open.object) {
            return Ok(wanted);
        }
        let available = (operations.available)(self.host, open).unwrap_or(0);
        let whole = available.min(wanted);
        let wanted = self.limit_transfer(wanted);
        let most = open.description.fragments;
        let most = most.unwrap_or(self.host.options.faults.fragments);
        let mut piece = wanted;
        if available.min(wanted) > 1 && open.description.pieces + 1 < most {
            piece = self.fragment(available, wanted)?;
            if let Some(description) = self.host.files.description_mut(open.id) {
                description.pieces += 1;
            }
        }
        if piece < whole {
            // The rest arrives after this read: edge-triggered watchers get an event.
            self.host
                .announce(open.object, event::IN | event::READ_NORMAL);
        }
        Ok(piece)
    }

    /// The bytes that were read, or symbolic bytes in their place if the program asked for them.
    pub fn apply_symbolic_source(
        &mut self,
        id: DescriptionId,
        bytes: Buffer,
    ) -> Result<Buffer, Stop> {
        let symbolic = self
            .host
            .files
            .description(id)
            .map_or(0, |open| open.symbolic);
        let len = symbolic.min(bytes.len() as u64);
        if len == 0 {
            return Ok(bytes);
        }
        let input = self.vm.input("received", len as u32)?;
        let mut made = bytes;
        made.copy_from(
            0,
            &input_bytes(self.vm.arena, input, 0, len as u32),
            0,
            len as usize,
        );
        if let Some(open) = self.host.files.description_mut(id) {
            open.symbolic -= len;
        }
        Ok(made)
    }

    /// Writes to an object. A blocking write continues until everything is written.
    fn write_object(
        &mut self,
        open: OpenObject<'_>,
        operations: &Operations,
        ranges: &[IoRange],
        at: At,
    ) -> Answer {
        if matches!(at, At::Offset(_)) {
            return Err(Errno::ESPIPE.into());
        }
        if !operations.writes_whole || self.host.keeps_messages(open.object) {
            let parts = self.gather_all(ranges)?;
            return Ok(Value::concrete((operations.write)(self, open, &parts)?));
        }
        self.write_all(ranges, |kernel, parts| {
            (operations.write)(kernel, open, parts)
        })
    }

    /// Writes until everything is written, an error occurs, or the write blocks; the bytes written
    /// so far count.
    pub fn write_all(
        &mut self,
        ranges: &[IoRange],
        mut write: impl FnMut(&mut Self, &[Buffer]) -> Result<u64, Stop>,
    ) -> Answer {
        let mut done = self.task().progress;
        loop {
            let parts = match done {
                0 => self.gather(ranges)?,
                _ => self.gather(&skip(ranges, done))?,
            };
            let wanted: u64 = parts.iter().map(|part| part.len() as u64).sum();
            let written = match write(self, &parts) {
                Ok(written) => written,
                Err(Stop::Errno(_)) if done > 0 => return Ok(Value::concrete(done)),
                Err(stop) => return Err(stop),
            };
            done += written;
            if written >= wanted || written == 0 {
                return Ok(Value::concrete(done));
            }
            self.task_mut().progress = done;
        }
    }

    fn read_device(&mut self, device: Device, wanted: u64) -> Result<Buffer, Stop> {
        Ok(match device {
            Device::Null
            | Device::Terminal
            | Device::Other { .. }
            | Device::Multiplexer
            | Device::Line(_) => Buffer::zeroed(0),
            Device::Zero | Device::Full => {
                self.vm.need_room(wanted.saturating_mul(COPIES))?;
                Buffer::zeroed(wanted as usize)
            }
            Device::Random | Device::Urandom => self.draw(wanted.min(MAX_RANDOM) as usize)?,
        })
    }

    fn write_file(&mut self, fd: i32, ranges: &[IoRange], at: At) -> Answer {
        let (descriptor, description) = self.description(fd)?;
        if !description.flags.writable() {
            return Err(Errno::EBADF.into());
        }
        if matches!((description.target, at), (Target::Output(_), At::Offset(_))) {
            return Err(Errno::ESPIPE.into());
        }
        if let Some((open, operations)) =
            self.host.open_object(descriptor.description, &description)
        {
            return self.write_object(open, operations, ranges, at);
        }
        if let Target::Inode(id) = description.target
            && let Some(what) = self.host.files.tree.get(id).setting
        {
            return self.write_setting(what, ranges);
        }
        let wanted = ranges.iter().map(|range| range.len);
        let wanted = wanted.fold(0, u64::saturating_add).min(MAX_TRANSFER);
        match description.target {
            Target::Output(_) => self.check_output(wanted)?,
            Target::Inode(id) if self.host.files.tree.get(id).is_regular() => {
                let offset = match at {
                    At::Current => description.offset,
                    At::Offset(offset) => offset,
                };
                self.check_disk(offset, wanted)?;
            }
            _ => {}
        }
        let parts = match description.target {
            Target::Inode(id) if self.host.files.tree.get(id).ignores_bytes() => {
                match self.gather(ranges) {
                    Err(Stop::Errno(_)) => return Ok(Value::concrete(wanted)),
                    parts => parts?,
                }
            }
            Target::Inode(_) => {
                let most = self.limit_transfer(wanted);
                let there = self.accessible(ranges, most, false)?;
                self.gather_most(ranges, there)?
            }
            _ => self.gather(ranges)?,
        };
        let written = parts.iter().map(|part| part.len() as u64).sum();
        match description.target {
            Target::Object(_) | Target::Stdin(_) => return Err(Errno::EBADF.into()),
            Target::Output(stream) => {
                let output = &mut self.host.outputs[stream as usize];
                parts.iter().for_each(|part| output.append(part));
                self.host.printed += written;
            }
            Target::Inode(id) => match &self.host.files.tree.get(id).kind {
                InodeKind::Regular(_) if written == 0 => {}
                InodeKind::Regular(_) if self.is_sealed(id) => return Err(Errno::EPERM.into()),
                InodeKind::Regular(bytes) => {
                    let inode = (id, bytes.len());
                    return self.write_parts((descriptor, &description), inode, parts, at);
                }
                InodeKind::Device(Device::Full) => return Err(Errno::ENOSPC.into()),
                InodeKind::Device(_) => {}
                _ => return Err(Errno::EBADF.into()),
            },
        }
        Ok(Value::concrete(written))
    }

    /// Writes to a regular file as much as its limits and seals allow.
    fn write_parts(
        &mut self,
        (descriptor, description): (Descriptor, &Description),
        (id, size): (crate::ids::InodeId, u64),
        parts: Vec<Buffer>,
        at: At,
    ) -> Answer {
        let start = match at {
            _ if description.flags.has(OpenFlags::APPEND) => size,
            At::Current => description.offset,
            At::Offset(offset) => offset,
        };
        let given = parts.iter().map(|part| part.len() as u64).sum();
        let end = self.end_in_file("write", start, given)?;
        let end = self.limit_file(start, end)?;
        let end = self.sealed_end(id, start, end)?;
        let written = end - start;
        let parts = first_bytes(parts, written);
        self.write_regular(id, start, &parts);
        if description.flags.has(OpenFlags::DSYNC) {
            self.host.files.sync(id);
        }
        self.advance(descriptor, at, end);
        Ok(Value::concrete(written))
    }

    /// Whether it is a memory file that is sealed against writing.
    pub fn is_sealed(&self, id: crate::ids::InodeId) -> bool {
        const WRITE_SEALS: u32 = 0x18;
        let seals = self.host.files.tree.get(id).seals;
        seals.is_some_and(|seals| seals & WRITE_SEALS != 0)
    }

    /// The end of a write to a file: whole pages before the end of a memory file that must not grow.
    fn sealed_end(&self, id: crate::ids::InodeId, start: u64, end: u64) -> Result<u64, Errno> {
        const GROW: u32 = 4;
        const PAGE: u64 = everett_vm::PAGE as u64;
        let inode = self.host.files.tree.get(id);
        let InodeKind::Regular(bytes) = &inode.kind else {
            return Ok(end);
        };
        if inode.seals.unwrap_or(0) & GROW == 0 || end <= bytes.len() {
            return Ok(end);
        }
        let last = bytes.len() / PAGE * PAGE;
        if last > start {
            Ok(last)
        } else {
            Err(Errno::EPERM)
        }
    }

    /// `EFBIG` and `SIGXFSZ` if a file would grow beyond `RLIMIT_FSIZE`.
    pub fn check_new_size(&mut self, id: crate::ids::InodeId, len: u64) -> Result<(), Stop> {
        let InodeKind::Regular(bytes) = &self.host.files.tree.get(id).kind else {
            return Ok(());
        };
        let grows = len > bytes.len();
        if grows && self.file_size_limit().is_some_and(|limit| len > limit) {
            self.raise(SIGXFSZ);
            return Err(Errno::EFBIG.into());
        }
        Ok(())
    }

    /// The end of a write, limited by `RLIMIT_FSIZE`.
    pub fn limit_file(&mut self, start: u64, end: u64) -> Result<u64, Stop> {
        match self.file_size_limit() {
            Some(limit) if start >= limit && end > start => {
                self.raise(SIGXFSZ);
                Err(Errno::EFBIG.into())
            }
            Some(limit) => Ok(end.min(limit.max(start))),
            None => Ok(end),
        }
    }

    pub fn write_regular(&mut self, id: crate::ids::InodeId, start: u64, parts: &[Buffer]) {
        let now = self.wall_clock_ns();
        let who = self.fs_credentials();
        let inode = self.host.files.tree.get_mut(id);
        inode.touch(now);
        if parts.iter().any(|part| !part.is_empty()) {
            who.clear_set_ids(inode);
        }
        if let InodeKind::Regular(bytes) = &mut inode.kind {
            let mut at = start;
            for part in parts {
                bytes.write(at, part);
                at += part.len() as u64;
            }
        }
        self.host.notify(id, happened::MODIFY);
    }

    fn advance(&mut self, descriptor: Descriptor, at: At, end: u64) {
        if let At::Current = at
            && let Some(description) = self.host.files.description_mut(descriptor.description)
        {
            description.offset = end;
        }
    }
}
