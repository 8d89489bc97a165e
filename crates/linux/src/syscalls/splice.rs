//! Transfers between open files within the kernel: `sendfile`, `splice`, `tee` and `vmsplice`.

use everett_vm::{Buffer, Value};

use crate::errno::Errno;
use crate::files::{Description, Device, InodeKind, OpenFlags, Target};
use crate::ids::{DescriptionId, ObjectId};
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::{event, pipe, pipe_mut};
use crate::queue::slice;
use crate::signals::SIGXFSZ;
use crate::table::ArgKind::{Fd, Flags, Int, Pointer};
use crate::table::property::WRITES;
use crate::table::{Call, Row};
use crate::wait::WaitCondition;

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "sendfile",
        40,
        &[Fd, Fd, Pointer, Int],
        SEND_ERRORS,
        sendfile,
    )
    .with(WRITES)
    .fails_where(sendfile_fails),
    Row::new(
        "splice",
        275,
        &[Fd, Pointer, Fd, Pointer, Int, Flags],
        ERRORS,
        splice,
    ),
    Row::new("tee", 276, &[Fd, Fd, Int, Flags], &[Errno::EINTR], tee),
    Row::new(
        "vmsplice",
        278,
        &[Fd, Pointer, Int, Flags],
        &[Errno::EINTR, Errno::ENOMEM],
        vmsplice,
    ),
];

const ERRORS: &[Errno] = &[Errno::EINTR, Errno::EIO, Errno::ENOMEM];
const SEND_ERRORS: &[Errno] = &[
    Errno::EINTR,
    Errno::EIO,
    Errno::ENOMEM,
    Errno::EPIPE,
    Errno::ECONNRESET,
];

/// Whether `sendfile` can fail with this errno: only a connection can be broken or reset.
fn sendfile_fails(kernel: &Kernel<'_, '_>, args: &[u64; 6], errno: Errno) -> bool {
    if !matches!(errno, Errno::EPIPE | Errno::ECONNRESET) {
        return true;
    }
    let target = kernel
        .description(args[0] as i32)
        .map(|found| found.1.target);
    matches!(target, Ok(Target::Object(id)) if kernel.host.can_break(id, errno))
}

/// Maximum number of bytes of one call.
const MAX: u64 = 0x7fff_f000;
/// Bytes moved at once.
const PIECE: u64 = 1 << 16;
const PAGE: u64 = 4096;

/// `SPLICE_F_NONBLOCK`.
const NONBLOCK: u64 = 2;
/// All flags of `splice` and similar calls.
const KNOWN: u64 = 0xf;

/// Source or destination of a transfer.
struct End {
    id: DescriptionId,
    description: Description,
    /// Address of an explicit offset, which replaces the offset of the open file.
    offset_at: u64,
}

impl End {
    fn pipe(&self, kernel: &Kernel<'_, '_>) -> Option<ObjectId> {
        match self.description.target {
            Target::Object(id) => pipe(kernel.host, id).map(|_| id),
            _ => None,
        }
    }

    fn may_not_wait(&self, flags: u64) -> bool {
        flags & NONBLOCK != 0 || self.description.flags.has(OpenFlags::NONBLOCK)
    }
}

fn sendfile(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let from = kernel.open_end(call.int(1), call.args[2], false)?;
    let to = kernel.open_end(call.int(0), 0, true)?;
    let is_object = matches!(
        from.description.target,
        Target::Object(_) | Target::Stdin(_)
    );
    if is_object && call.args[2] != 0 {
        return Err(Errno::ESPIPE.into());
    }
    if is_object || to.description.flags.has(OpenFlags::APPEND) {
        return Err(Errno::EINVAL.into());
    }
    let wanted = kernel.limit_transfer(call.args[3].min(MAX));
    let to_pipe = to.pipe(kernel);
    if let Target::Inode(id) = from.description.target
        && to_pipe.is_none()
        && kernel.task().progress == 0
    {
        let there = match &kernel.host.files.tree.get(id).kind {
            InodeKind::Regular(bytes) => bytes.len().saturating_sub(kernel.offset_of(&from)?),
            _ => wanted,
        };
        kernel.vm.need_room(there.min(wanted))?;
    }
    // Both offsets advance with each piece, so that they are correct when the call blocks or a
    // signal arrives.
    loop {
        let done = kernel.task().progress;
        let offset = kernel.offset_of(&from)?;
        let most = match to_pipe.and_then(|sink| pipe(kernel.host, sink)) {
            Some(pipe) if !pipe.is_full() => pipe.free_pages() * PAGE - offset % PAGE,
            _ => PIECE,
        };
        let bytes = kernel.bytes_at(&from, offset, (wanted - done).min(most))?;
        if bytes.is_empty() {
            return Ok(Value::concrete(done));
        }
        kernel.check(
            from.offset_at,
            if from.offset_at == 0 { 0 } else { 8 },
            true,
        )?;
        let written = match kernel.put(&to, &bytes, offset) {
            Ok(written) => written,
            Err(Stop::Errno(_)) if done > 0 => return Ok(Value::concrete(done)),
            Err(stop) => return Err(stop),
        };
        kernel.set_offset(&from, offset + written)?;
        kernel.task_mut().progress = done + written;
        // A pipe accepts as many bytes as it has space for, once.
        if done + written == wanted || written == 0 || to_pipe.is_some() {
            return Ok(Value::concrete(done + written));
        }
    }
}

fn splice(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (wanted, flags) = (call.args[4].min(MAX), call.args[5]);
    if wanted == 0 {
        return Ok(Value::ZERO);
    }
    if flags & !KNOWN != 0 {
        return Err(Errno::EINVAL.into());
    }
    let from = kernel.open_end(call.int(0), call.args[1], false)?;
    let to = kernel.open_end(call.int(2), call.args[3], true)?;
    match (from.pipe(kernel), to.pipe(kernel)) {
        (Some(_), _) if from.offset_at != 0 => Err(Errno::ESPIPE.into()),
        (_, Some(_)) if to.offset_at != 0 => Err(Errno::ESPIPE.into()),
        (Some(source), Some(sink)) if source == sink => Err(Errno::EINVAL.into()),
        (Some(_), Some(sink)) => {
            let source = kernel.full_pipe(&from, flags)?;
            let Some(source) = source else {
                return Ok(Value::ZERO);
            };
            kernel.pipe_with_room(&to, sink, flags)?;
            let bytes = kernel.peek(source, wanted);
            let moved = kernel.put_pages(sink, &bytes, 0);
            kernel.host.take_from_pipe(source, moved)?;
            Ok(Value::concrete(moved))
        }
        (Some(_), None) => kernel.splice_from_pipe(&from, &to, wanted, flags),
        (None, Some(sink)) => kernel.splice_to_pipe(&from, &to, sink, wanted, flags),
        (None, None) => Err(Errno::EINVAL.into()),
    }
}

fn tee(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (wanted, flags) = (call.args[2].min(MAX), call.args[3]);
    if flags & !KNOWN != 0 {
        return Err(Errno::EINVAL.into());
    }
    if wanted == 0 {
        return Ok(Value::ZERO);
    }
    let from = kernel.open_end(call.int(0), 0, false)?;
    let to = kernel.open_end(call.int(1), 0, true)?;
    match (from.pipe(kernel), to.pipe(kernel)) {
        (Some(source), Some(sink)) if source != sink => {
            let Some(source) = kernel.full_pipe(&from, flags)? else {
                return Ok(Value::ZERO);
            };
            kernel.pipe_with_room(&to, sink, flags)?;
            let bytes = kernel.peek(source, wanted);
            Ok(Value::concrete(kernel.put_pages(sink, &bytes, 0)))
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

fn vmsplice(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let flags = call.args[3];
    if flags & !KNOWN != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (descriptor, description) = kernel.description(call.int(0))?;
    let end = End {
        id: descriptor.description,
        description,
        offset_at: 0,
    };
    let object = end.pipe(kernel).ok_or(Errno::EBADF)?;
    let ranges = kernel.ranges(call.args[1], call.args[2])?;
    if ranges.iter().all(|range| range.len == 0) {
        return Ok(Value::ZERO);
    }
    if !end.description.flags.writable() {
        let wanted = ranges.iter().map(|range| range.len).sum();
        let Some(source) = kernel.full_pipe(&end, flags)? else {
            return Ok(Value::ZERO);
        };
        let bytes = kernel.peek(source, wanted);
        kernel.scatter(&ranges, &bytes)?;
        let taken = kernel.host.take_from_pipe(source, bytes.len() as u64)?;
        return Ok(Value::concrete(taken.len() as u64));
    }
    let parts = kernel.gather(&ranges)?;
    kernel.pipe_with_room(&end, object, flags)?;
    let mut moved = 0;
    for (part, range) in parts.iter().zip(&ranges) {
        let put = kernel.put_pages(object, part, range.address % PAGE);
        moved += put;
        if put < part.len() as u64 {
            break;
        }
    }
    Ok(Value::concrete(moved))
}

impl Kernel<'_, '_> {
    fn open_end(&mut self, fd: i32, offset_at: u64, writes: bool) -> Result<End, Stop> {
        let (descriptor, description) = self.description(fd)?;
        let allowed = match writes {
            true => description.flags.writable(),
            false => description.flags.readable(),
        };
        if !allowed {
            return Err(Errno::EBADF.into());
        }
        Ok(End {
            id: descriptor.description,
            description,
            offset_at,
        })
    }

    /// The current offset.
    fn offset_of(&mut self, end: &End) -> Result<u64, Stop> {
        let offset = match end.offset_at {
            0 => {
                let description = self.host.files.description(end.id);
                description.map_or(0, |description| description.offset)
            }
            address => self.read_u64(address)?,
        };
        if offset as i64 >= 0 {
            Ok(offset)
        } else {
            Err(Errno::EINVAL.into())
        }
    }

    /// Advances the offset.
    fn set_offset(&mut self, end: &End, offset: u64) -> Result<(), Stop> {
        match end.offset_at {
            0 => {
                if let Some(description) = self.host.files.description_mut(end.id) {
                    description.offset = offset;
                }
                Ok(())
            }
            address => self.write_bytes(address, &offset.to_le_bytes()),
        }
    }

    /// Bytes of a file of the tree.
    fn bytes_at(&mut self, end: &End, offset: u64, wanted: u64) -> Result<Buffer, Stop> {
        let Target::Inode(id) = end.description.target else {
            return Err(Errno::EINVAL.into());
        };
        match &self.host.files.tree.get(id).kind {
            InodeKind::Regular(bytes) => Ok(bytes.read(offset, wanted)),
            InodeKind::Device(Device::Zero | Device::Full) => Ok(Buffer::zeroed(wanted as usize)),
            InodeKind::Device(Device::Null) => Ok(Buffer::zeroed(0)),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    /// Writes bytes to an open file, as many as it accepts at once.
    fn put(&mut self, to: &End, bytes: &Buffer, from_offset: u64) -> Result<u64, Stop> {
        if let Some(sink) = to.pipe(self) {
            self.pipe_with_room(to, sink, 0)?;
            return Ok(self.put_pages(sink, bytes, from_offset % PAGE));
        }
        if let Some((open, operations)) = self.host.open_object(to.id, &to.description) {
            return (operations.write)(self, open, std::slice::from_ref(bytes));
        }
        let len = bytes.len() as u64;
        match to.description.target {
            Target::Output(stream) => {
                self.check_output(len)?;
                self.host.outputs[stream as usize].append(bytes);
                self.host.printed += len;
            }
            Target::Inode(id) => match &self.host.files.tree.get(id).kind {
                InodeKind::Regular(_) => {
                    let offset = self.offset_of(to)?;
                    let end = self.end_in_file("splice", offset, len)?;
                    let end = self.limit_file(offset, end)?;
                    let len = end - offset;
                    if len < bytes.len() as u64 {
                        // Linux goes on with the rest, which is beyond the limit.
                        self.raise(SIGXFSZ);
                    }
                    self.check_disk(offset, len)?;
                    self.write_regular(id, offset, &[slice(bytes, 0, len as usize)]);
                    self.set_offset(to, end)?;
                    return Ok(len);
                }
                InodeKind::Device(Device::Full) => return Err(Errno::ENOSPC.into()),
                InodeKind::Device(_) => {}
                _ => return Err(Errno::EINVAL.into()),
            },
            _ => return Err(Errno::EBADF.into()),
        }
        Ok(len)
    }

    /// A non-empty pipe; `None` at end of file.
    fn full_pipe(&mut self, from: &End, flags: u64) -> Result<Option<ObjectId>, Stop> {
        let id = from.pipe(self).ok_or(Errno::EINVAL)?;
        match pipe(self.host, id) {
            Some(pipe) if !pipe.is_empty() => Ok(Some(id)),
            Some(pipe) if pipe.writers > 0 => Err(self.wait_at(from, event::IN, flags)),
            _ => Ok(None),
        }
    }

    /// Blocks until a pipe has space or no readers.
    fn pipe_with_room(&mut self, to: &End, id: ObjectId, flags: u64) -> Result<(), Stop> {
        self.check_readers(id)?;
        match pipe(self.host, id) {
            Some(pipe) if pipe.is_full() => Err(self.wait_at(to, event::OUT, flags)),
            _ => Ok(()),
        }
    }

    fn wait_at(&mut self, end: &End, events: u16, flags: u64) -> Stop {
        if end.may_not_wait(flags) {
            return Errno::EAGAIN.into();
        }
        let condition = WaitCondition::Ready(vec![(end.id, events)]);
        self.wait_restartable(condition, "splice")
    }

    fn peek(&self, id: ObjectId, wanted: u64) -> Buffer {
        pipe(self.host, id).map_or_else(|| Buffer::zeroed(0), |pipe| pipe.peek(wanted))
    }

    fn put_pages(&mut self, id: ObjectId, bytes: &Buffer, offset: u64) -> u64 {
        let Some(pipe) = pipe_mut(self.host, id) else {
            return 0;
        };
        let put = pipe.put_pages(bytes, offset);
        if put > 0 {
            self.host.announce(id, event::READING);
        }
        put
    }

    fn splice_from_pipe(&mut self, from: &End, to: &End, wanted: u64, flags: u64) -> Answer {
        if to.description.flags.has(OpenFlags::APPEND) {
            return Err(Errno::EINVAL.into());
        }
        if to.offset_at != 0 && !matches!(to.description.target, Target::Inode(_)) {
            return Err(Errno::ESPIPE.into());
        }
        self.offset_of(to)?;
        let Some(source) = self.full_pipe(from, flags)? else {
            return Ok(Value::ZERO);
        };
        let bytes = self.peek(source, wanted);
        if to.offset_at != 0 {
            self.check(to.offset_at, 8, true)?;
        }
        let moved = self.put(to, &bytes, 0)?;
        self.host.take_from_pipe(source, moved)?;
        Ok(Value::concrete(moved))
    }

    fn splice_to_pipe(
        &mut self,
        from: &End,
        to: &End,
        sink: ObjectId,
        wanted: u64,
        flags: u64,
    ) -> Answer {
        let is_file = matches!(from.description.target, Target::Inode(_));
        if from.offset_at != 0 && !is_file {
            return Err(Errno::ESPIPE.into());
        }
        let offset = self.offset_of(from)?;
        self.pipe_with_room(to, sink, flags)?;
        let room = pipe(self.host, sink).map_or(0, |pipe| pipe.free_pages() * PAGE);
        if !is_file {
            let opened = self.host.open_object(from.id, &from.description);
            let (open, operations) = opened.ok_or(Errno::EINVAL)?;
            let bytes = (operations.read)(self, open, wanted.min(room))?;
            return Ok(Value::concrete(self.put_pages(sink, &bytes, 0)));
        }
        let bytes = self.bytes_at(from, offset, wanted.min(room - offset % PAGE))?;
        if from.offset_at != 0 {
            self.check(from.offset_at, 8, true)?;
        }
        let moved = self.put_pages(sink, &bytes, offset % PAGE);
        self.set_offset(from, offset + moved)?;
        Ok(Value::concrete(moved))
    }
}
