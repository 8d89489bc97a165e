//! Pipes and FIFOs: queues of bytes, concrete or symbolic.
//!
//! A pipe has a number of pages, as in Linux. A write starts a new page unless its part beyond
//! whole pages fits after the last one. A page is free once all of it was read. This determines
//! when a writer blocks, and how much of a large write fits.

use everett_vm::{Buffer, Value};
use std::collections::VecDeque;

use super::{Object, OpenObject, Operations, event};
use crate::capabilities::SYS_RESOURCE;
use crate::errno::Errno;
use crate::files::OpenFlags;
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Answer, Kernel, Stop};
use crate::queue::ByteQueue;
use crate::signals::SIGPIPE;

/// Page size; writes of at most this size are atomic (`PIPE_BUF`).
const PAGE: u64 = 4096;
/// Default capacity in pages.
const PAGES: u64 = 16;
/// The largest capacity in bytes (`F_SETPIPE_SZ`).
const MAX_BYTES: u64 = 1 << 31;
/// The largest capacity that a user without `CAP_SYS_RESOURCE` can set (`pipe-max-size`).
const MAX_OF_USERS: u64 = 1 << 20;

/// A page of a pipe.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Page {
    /// Bytes already read.
    gone: u16,
    /// Bytes that are left.
    len: u16,
    /// It was written with `O_DIRECT`: a read ends at the end of this page, and discards what is
    /// left of it.
    is_packet: bool,
    /// Small writes may be appended.
    can_grow: bool,
}

/// A pipe.
#[derive(Clone, Debug)]
pub struct Pipe {
    /// Bytes written and not yet read.
    queue: ByteQueue,
    /// The pages that contain these bytes.
    pages: VecDeque<Page>,
    /// Capacity in pages.
    most_pages: u64,
    /// Open file descriptions of the read end.
    pub readers: u32,
    /// Open file descriptions of the write end.
    pub writers: u32,
    /// Number of times it was opened for writing.
    pub writers_ever: u64,
}

impl Pipe {
    /// An empty pipe with one open file description at each end.
    pub fn new() -> Pipe {
        Pipe {
            queue: ByteQueue::default(),
            pages: VecDeque::new(),
            most_pages: PAGES,
            readers: 1,
            writers: 1,
            writers_ever: 1,
        }
    }

    /// The pipe of a FIFO before it is opened.
    pub fn without_ends() -> Pipe {
        Pipe {
            readers: 0,
            writers: 0,
            writers_ever: 0,
            ..Pipe::new()
        }
    }

    /// Bytes that can be read.
    pub fn len(&self) -> u64 {
        self.queue.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether no page is free.
    pub fn is_full(&self) -> bool {
        self.pages.len() as u64 >= self.most_pages
    }

    /// A copy of the next bytes.
    pub fn peek(&self, wanted: u64) -> Buffer {
        self.queue.peek(wanted)
    }

    /// Reads at most this many bytes, and not beyond a packet.
    pub fn take(&mut self, wanted: u64) -> Buffer {
        let (mut taken, mut lost) = (0, 0);
        while let Some(page) = self.pages.front_mut()
            && taken < wanted
        {
            let len = u64::from(page.len).min(wanted - taken);
            taken += len;
            page.gone += len as u16;
            page.len -= len as u16;
            let is_packet = page.is_packet;
            if is_packet {
                lost = u64::from(page.len);
            }
            if is_packet || page.len == 0 {
                self.pages.pop_front();
            }
            if is_packet {
                break;
            }
        }
        let bytes = self.queue.take(taken);
        self.queue.skip(lost);
        bytes
    }

    /// Writes bytes and returns how many fit. A write that continues starts a new page.
    pub fn put(&mut self, parts: &[Buffer], goes_on: bool, as_packets: bool) -> u64 {
        let wanted: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let odd = wanted % PAGE;
        let mut room = 0;
        if let Some(last) = self.pages.back_mut()
            && last.can_grow
            && !goes_on
            && odd > 0
            && u64::from(last.gone) + u64::from(last.len) + odd <= PAGE
        {
            last.len += odd as u16;
            room = odd;
        }
        while room < wanted && !self.is_full() {
            let len = (wanted - room).min(PAGE);
            self.add_page(len, as_packets, !as_packets);
            room += len;
        }
        self.queue.append(parts, room)
    }

    /// Inserts whole pages from elsewhere; the first begins at this offset. Returns how many bytes
    /// fit. Later writes are not appended to these pages.
    pub fn put_pages(&mut self, bytes: &Buffer, offset: u64) -> u64 {
        let wanted = bytes.len() as u64;
        let mut room = 0;
        while room < wanted && !self.is_full() {
            let len = (wanted - room).min(PAGE - (offset + room) % PAGE);
            self.add_page(len, false, false);
            room += len;
        }
        self.queue.append(std::slice::from_ref(bytes), room)
    }

    /// Number of free pages.
    pub fn free_pages(&self) -> u64 {
        self.most_pages.saturating_sub(self.pages.len() as u64)
    }

    fn add_page(&mut self, len: u64, is_packet: bool, can_grow: bool) {
        self.pages.push_back(Page {
            gone: 0,
            len: len as u16,
            is_packet,
            can_grow,
        });
    }
}

/// Operations of a pipe.
pub const OPERATIONS: Operations = Operations {
    mode: 0o010_600,
    read,
    write,
    readiness,
    close,
    fcntl,
    available: |host, open| pipe(host, open.object).map(Pipe::len),
    for_each_term: |object, visit| {
        if let Object::Pipe(pipe) = object {
            pipe.queue.for_each_term(visit);
        }
    },
    ..Operations::CLOSED
};

/// The pipe with this id, if it is one.
pub fn pipe(host: &HostState, id: ObjectId) -> Option<&Pipe> {
    match host.objects.get(id.0)? {
        Object::Pipe(pipe) => Some(pipe),
        _ => None,
    }
}

/// The pipe with this id, for changing it.
pub fn pipe_mut(host: &mut HostState, id: ObjectId) -> Option<&mut Pipe> {
    match host.objects.get_mut(id.0)? {
        Object::Pipe(pipe) => Some(pipe),
        _ => None,
    }
}

fn read(kernel: &mut Kernel<'_, '_>, open: OpenObject<'_>, wanted: u64) -> Result<Buffer, Stop> {
    let pipe = pipe(kernel.host, open.object).ok_or(Errno::EBADF)?;
    if wanted == 0 || (pipe.is_empty() && pipe.writers == 0) {
        return Ok(Buffer::zeroed(0));
    }
    if pipe.is_empty() {
        return Err(kernel.wait_for(open, event::IN, "read from a pipe"));
    }
    let taken = kernel.host.take_from_pipe(open.object, wanted)?;
    if let Some(fifo) = kernel.host.files.fifo_of(open.object) {
        kernel.note_access(fifo, open.description.flags);
    }
    Ok(taken)
}

fn write(kernel: &mut Kernel<'_, '_>, open: OpenObject<'_>, parts: &[Buffer]) -> Result<u64, Stop> {
    if parts.iter().all(Buffer::is_empty) {
        return Ok(0);
    }
    let goes_on = kernel.task().progress > 0;
    kernel.check_readers(open.object)?;
    let as_packets = open.description.flags.has(OpenFlags::DIRECT);
    let pipe = pipe_mut(kernel.host, open.object).ok_or(Errno::EBADF)?;
    let written = pipe.put(parts, goes_on, as_packets);
    if written == 0 {
        return Err(kernel.wait_for(open, event::OUT, "write to a pipe"));
    }
    kernel.host.announce(open.object, event::READING);
    if let Some(fifo) = kernel.host.files.fifo_of(open.object) {
        let now_ns = kernel.wall_clock_ns();
        kernel.host.files.tree.get_mut(fifo).touch(now_ns);
    }
    Ok(written)
}

fn readiness(host: &HostState, open: OpenObject<'_>) -> u16 {
    let Some(pipe) = pipe(host, open.object) else {
        return event::INVALID;
    };
    let mut events = 0;
    if open.description.flags.readable() {
        if !pipe.is_empty() {
            events |= event::READING;
        }
        // A FIFO that was opened before any writer came has no hang-up.
        if pipe.writers == 0 && open.description.offset != pipe.writers_ever {
            events |= event::HANG_UP;
        }
    }
    if open.description.flags.writable() {
        if !pipe.is_full() {
            events |= event::WRITING;
        }
        if pipe.readers == 0 {
            events |= event::ERROR;
        }
    }
    events
}

fn close(host: &mut HostState, open: OpenObject<'_>) {
    let Some(pipe) = pipe_mut(host, open.object) else {
        return;
    };
    if open.description.flags.readable() {
        pipe.readers = pipe.readers.saturating_sub(1);
    }
    if open.description.flags.writable() {
        pipe.writers = pipe.writers.saturating_sub(1);
    }
    match (pipe.readers, pipe.writers) {
        (0, 0) => host.objects.remove(open.object.0),
        (0, _) | (_, 0) => host.announce(open.object, event::ALL),
        _ => {}
    }
}

fn fcntl(kernel: &mut Kernel<'_, '_>, open: OpenObject<'_>, command: i32, argument: u64) -> Answer {
    const SET_SIZE: i32 = 1031;
    const GET_SIZE: i32 = 1032;
    let may_exceed = kernel.is_capable(SYS_RESOURCE);
    let pipe = pipe_mut(kernel.host, open.object).ok_or(Errno::EBADF)?;
    match command {
        SET_SIZE => {
            let wanted = argument & 0xffff_ffff;
            if wanted > MAX_BYTES {
                return Err(Errno::EINVAL.into());
            }
            let pages = wanted.div_ceil(PAGE).max(1).next_power_of_two();
            if pages > pipe.most_pages && pages * PAGE > MAX_OF_USERS && !may_exceed {
                return Err(Errno::EPERM.into());
            }
            if pages < pipe.pages.len() as u64 {
                return Err(Errno::EBUSY.into());
            }
            let was_full = pipe.is_full();
            pipe.most_pages = pages;
            if was_full && !pipe.is_full() {
                kernel.host.announce(open.object, event::WRITING);
            }
            Ok(Value::concrete(pages * PAGE))
        }
        GET_SIZE => Ok(Value::concrete(pipe.most_pages * PAGE)),
        _ => Err(Errno::EINVAL.into()),
    }
}

impl HostState {
    /// Reads bytes from a pipe and announces free space.
    pub fn take_from_pipe(&mut self, id: ObjectId, wanted: u64) -> Result<Buffer, Stop> {
        let pipe = pipe_mut(self, id).ok_or(Errno::EBADF)?;
        let was_full = pipe.is_full();
        let taken = pipe.take(wanted);
        if was_full && !pipe.is_full() {
            self.announce(id, event::WRITING);
        }
        Ok(taken)
    }
}

impl Kernel<'_, '_> {
    /// `SIGPIPE` and `EPIPE` if a pipe has no readers.
    pub fn check_readers(&mut self, id: ObjectId) -> Result<(), Stop> {
        let pipe = pipe(self.host, id).ok_or(Errno::EBADF)?;
        if pipe.readers == 0 {
            self.raise(SIGPIPE);
            return Err(Errno::EPIPE.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(count: usize) -> [Buffer; 1] {
        [Buffer::with_bytes(&vec![7; count], count)]
    }

    #[test]
    fn pages_decide_when_a_pipe_is_full() {
        let mut pipe = Pipe::new();
        // Each write starts a page of its own, since it does not fit after the last one.
        for _ in 0..PAGES {
            assert_eq!(pipe.put(&bytes(3000), false, false), 3000);
        }
        assert!(pipe.is_full());
        assert_eq!(pipe.put(&bytes(1000), false, false), 1000);
        assert_eq!(pipe.put(&bytes(1000), false, false), 0);
        assert_eq!(pipe.take(2999).len(), 2999);
        assert!(pipe.is_full());
        assert_eq!(pipe.take(1).len(), 1);
        assert_eq!(pipe.put(&bytes(10_000), false, false), 4096);
        assert!(pipe.is_full());
    }

    #[test]
    fn a_read_ends_with_a_packet() {
        let mut pipe = Pipe::new();
        assert_eq!(pipe.put(&bytes(5000), false, true), 5000);
        assert_eq!(pipe.put(&bytes(3), false, true), 3);
        assert_eq!(pipe.take(10).len(), 10);
        assert_eq!(pipe.take(9999).len(), 904);
        assert_eq!(pipe.take(9999).len(), 3);
        assert!(pipe.is_empty() && pipe.pages.is_empty());
    }
}
