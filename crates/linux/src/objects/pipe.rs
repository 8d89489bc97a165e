//! Pipes and FIFOs: bytes go in at one end and come out at the other, in order, terms and all.

use everett_vm::Buffer;

use super::{Object, ObjectId, Open, Operations, event};
use crate::errno::Errno;
use crate::host::HostState;
use crate::kernel::{Kernel, Stop};
use crate::queue::Queue;
use crate::syscalls::signals::SIGPIPE;

/// Bytes that a pipe holds before writers wait.
pub const CAPACITY: u64 = 65536;
/// Writes of at most so many bytes are not torn apart.
const ATOMIC: u64 = 4096;

/// A pipe.
#[derive(Clone, Debug)]
pub struct Pipe {
    /// What was written and not yet read.
    pub queue: Queue,
    /// How much it holds.
    pub capacity: u64,
    /// Open files that can read it.
    pub readers: u32,
    /// Open files that can write it.
    pub writers: u32,
}

impl Pipe {
    /// An empty pipe with one open file at each end.
    pub fn new() -> Pipe {
        Pipe {
            queue: Queue::default(),
            capacity: CAPACITY,
            readers: 1,
            writers: 1,
        }
    }
}

/// What can be done with a pipe.
pub const OPERATIONS: Operations = Operations {
    mode: 0o010_600,
    read,
    write,
    readiness,
    close,
    available: |host, open| pipe(host, open.object).map(|pipe| pipe.queue.len()),
    for_each_term: |object, visit| {
        if let Object::Pipe(pipe) = object {
            pipe.queue.for_each_term(visit);
        }
    },
    ..Operations::CLOSED
};

fn pipe(host: &HostState, id: ObjectId) -> Option<&Pipe> {
    match host.objects.get(id.0)? {
        Object::Pipe(pipe) => Some(pipe),
        _ => None,
    }
}

fn pipe_mut(host: &mut HostState, id: ObjectId) -> Option<&mut Pipe> {
    match host.objects.get_mut(id.0)? {
        Object::Pipe(pipe) => Some(pipe),
        _ => None,
    }
}

fn read(kernel: &mut Kernel<'_, '_>, open: Open<'_>, wanted: u64) -> Result<Buffer, Stop> {
    let pipe = pipe_mut(kernel.host, open.object).ok_or(Errno::EBADF)?;
    if wanted == 0 || (pipe.queue.is_empty() && pipe.writers == 0) {
        return Ok(Buffer::zeroed(0));
    }
    if pipe.queue.is_empty() {
        return Err(kernel.wait_for(open, event::IN, "read from a pipe"));
    }
    let taken = pipe.queue.take(wanted);
    kernel.host.announce(open.object, event::WRITING);
    Ok(taken)
}

fn write(kernel: &mut Kernel<'_, '_>, open: Open<'_>, parts: &[Buffer]) -> Result<u64, Stop> {
    let pipe = pipe_mut(kernel.host, open.object).ok_or(Errno::EBADF)?;
    let wanted: u64 = parts.iter().map(|part| part.len() as u64).sum();
    if pipe.readers == 0 {
        kernel.raise(SIGPIPE);
        return Err(Errno::EPIPE.into());
    }
    let room = pipe.capacity.saturating_sub(pipe.queue.len());
    let fits = if wanted <= ATOMIC {
        room >= wanted
    } else {
        room > 0
    };
    if !fits {
        return Err(kernel.wait_for(open, event::OUT, "write to a pipe"));
    }
    let written = pipe.queue.append(parts, room.min(wanted));
    kernel.host.announce(open.object, event::READING);
    Ok(written)
}

fn readiness(host: &HostState, open: Open<'_>) -> u16 {
    let Some(pipe) = pipe(host, open.object) else {
        return event::INVALID;
    };
    let mut events = 0;
    if open.description.flags.readable() {
        if !pipe.queue.is_empty() {
            events |= event::IN | event::READ_NORMAL;
        }
        if pipe.writers == 0 {
            events |= event::HANG_UP;
        }
    }
    if open.description.flags.writable() {
        // A write that must not be torn apart has room.
        if pipe.queue.len() + ATOMIC <= pipe.capacity {
            events |= event::OUT | event::WRITE_NORMAL;
        }
        if pipe.readers == 0 {
            events |= event::ERROR | event::OUT | event::WRITE_NORMAL;
        }
    }
    events
}

fn close(host: &mut HostState, open: Open<'_>) {
    let Some(pipe) = pipe_mut(host, open.object) else {
        return;
    };
    if open.description.flags.readable() {
        pipe.readers -= 1;
    }
    if open.description.flags.writable() {
        pipe.writers -= 1;
    }
    if pipe.readers + pipe.writers == 0 {
        host.objects.remove(open.object.0);
    } else {
        host.announce(open.object, event::ALL);
    }
}
