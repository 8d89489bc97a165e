//! Event counters (`eventfd`).

use everett_vm::Buffer;

use super::{Object, OpenObject, Operations, event};
use crate::errno::Errno;
use crate::files::OpenFlags;
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Kernel, Stop};
use crate::wait::WaitCondition;

/// An event counter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct EventCounter {
    /// The current count.
    pub count: u64,
    /// `EFD_SEMAPHORE`: a read decrements the count by one.
    pub is_semaphore: bool,
}

/// The largest count.
const MAX: u64 = u64::MAX - 1;

/// Operations of an event counter.
pub const OPERATIONS: Operations = Operations {
    read,
    write,
    readiness,
    writes_whole: false,
    seeks: true,
    largest_read: 8,
    ..Operations::CLOSED
};

fn counter(host: &HostState, id: ObjectId) -> Option<&EventCounter> {
    match host.objects.get(id.0)? {
        Object::EventCounter(counter) => Some(counter),
        _ => None,
    }
}

fn set(host: &mut HostState, id: ObjectId, count: u64) {
    if let Some(Object::EventCounter(counter)) = host.objects.get_mut(id.0) {
        counter.count = count;
    }
}

fn read(kernel: &mut Kernel<'_, '_>, open: OpenObject<'_>, wanted: u64) -> Result<Buffer, Stop> {
    let counter = *counter(kernel.host, open.object).ok_or(Errno::EBADF)?;
    if wanted < 8 {
        return Err(Errno::EINVAL.into());
    }
    if counter.count == 0 {
        return Err(kernel.wait_for(open, event::IN, "read from an eventfd"));
    }
    let taken = if counter.is_semaphore {
        1
    } else {
        counter.count
    };
    set(kernel.host, open.object, counter.count - taken);
    kernel.host.announce(open.object, event::WRITING);
    Ok(Buffer::with_bytes(&taken.to_le_bytes(), 8))
}

/// Each buffer of `writev` is a separate write.
fn write(kernel: &mut Kernel<'_, '_>, open: OpenObject<'_>, parts: &[Buffer]) -> Result<u64, Stop> {
    let mut count = counter(kernel.host, open.object).ok_or(Errno::EBADF)?.count;
    let mut written = 0;
    for part in parts {
        match kernel.sum(open, count, part) {
            Ok(sum) => count = sum,
            Err(Stop::Errno(_) | Stop::Block(_)) if written > 0 => break,
            Err(stop) => return Err(stop),
        }
        written += 8;
    }
    set(kernel.host, open.object, count);
    kernel.host.announce(open.object, event::READING);
    Ok(written)
}

impl Kernel<'_, '_> {
    /// The count after adding the number in a buffer.
    fn sum(&mut self, open: OpenObject<'_>, count: u64, part: &Buffer) -> Result<u64, Stop> {
        if part.len() != 8 {
            return Err(Errno::EINVAL.into());
        }
        let added = part.load(self.vm.arena, 0, 8);
        let added = self.vm.concretize(added)?;
        if added == u64::MAX {
            return Err(Errno::EINVAL.into());
        }
        match count.checked_add(added).filter(|sum| *sum <= MAX) {
            Some(sum) => Ok(sum),
            None if open.description.flags.has(OpenFlags::NONBLOCK) => Err(Errno::EAGAIN.into()),
            None => {
                let condition = WaitCondition::CountAtMost(open.object, MAX - added);
                Err(self.wait_restartable(condition, "write to an eventfd"))
            }
        }
    }
}

impl HostState {
    /// Whether a counter is at most this value.
    pub fn counts_at_most(&self, id: ObjectId, most: u64) -> bool {
        counter(self, id).is_none_or(|counter| counter.count <= most)
    }
}

fn readiness(host: &HostState, open: OpenObject<'_>) -> u16 {
    let Some(counter) = counter(host, open.object) else {
        return event::INVALID;
    };
    let mut events = 0;
    if counter.count > 0 {
        events |= event::IN;
    }
    if counter.count < MAX {
        events |= event::OUT;
    }
    events
}
