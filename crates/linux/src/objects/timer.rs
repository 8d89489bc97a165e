//! Timer descriptors (`timerfd`).

use everett_vm::{Buffer, Value};

use super::{Object, OpenObject, Operations, event};
use crate::errno::Errno;
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Answer, Kernel, Stop};

/// A timerfd.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TimerDescriptor {
    /// The clock that it was created with.
    pub clock: i32,
    /// Key in [`HostState::timers`] while it is armed.
    pub running: Option<u32>,
    /// Period.
    pub interval_ns: u64,
    /// Expirations since the last read.
    pub fired: u64,
    /// A change of the wall clock cancels it (`TFD_TIMER_CANCEL_ON_SET`).
    pub cancels: bool,
    /// The wall clock was set, and no read has reported it yet.
    pub is_canceled: bool,
}

/// Operations of a timerfd.
pub const OPERATIONS: Operations = Operations {
    read,
    readiness,
    close,
    ioctl,
    seeks: true,
    largest_read: 8,
    ..Operations::CLOSED
};

/// The timerfd with this id, if it is one.
pub fn timer(host: &HostState, id: ObjectId) -> Option<&TimerDescriptor> {
    match host.objects.get(id.0)? {
        Object::Timer(timer) => Some(timer),
        _ => None,
    }
}

/// The timerfd with this id, for changing it.
pub fn timer_mut(host: &mut HostState, id: ObjectId) -> Option<&mut TimerDescriptor> {
    match host.objects.get_mut(id.0)? {
        Object::Timer(timer) => Some(timer),
        _ => None,
    }
}

fn read(kernel: &mut Kernel<'_, '_>, open: OpenObject<'_>, wanted: u64) -> Result<Buffer, Stop> {
    if wanted < 8 {
        return Err(Errno::EINVAL.into());
    }
    kernel.host.fire_timers();
    let timer = timer_mut(kernel.host, open.object).ok_or(Errno::EBADF)?;
    // Expirations that came with the change of the clock are told by the next read.
    if std::mem::take(&mut timer.is_canceled) {
        return Err(Errno::ECANCELED.into());
    }
    match std::mem::take(&mut timer.fired) {
        0 => Err(kernel.wait_for(open, event::IN, "read from a timerfd")),
        fired => Ok(Buffer::with_bytes(&fired.to_le_bytes(), 8)),
    }
}

/// `TFD_IOC_SET_TICKS`: sets the number of expirations that the next read returns.
fn ioctl(kernel: &mut Kernel<'_, '_>, open: OpenObject<'_>, request: u64, at: u64) -> Answer {
    const SET_TICKS: u64 = 0x4008_5400;
    if request != SET_TICKS {
        return Err(Errno::ENOTTY.into());
    }
    let ticks = kernel.read_u64(at)?;
    if ticks == 0 {
        return Err(Errno::EINVAL.into());
    }
    kernel.host.fire_timers();
    let timer = timer_mut(kernel.host, open.object).ok_or(Errno::EBADF)?;
    if std::mem::take(&mut timer.is_canceled) {
        return Err(Errno::ECANCELED.into());
    }
    timer.fired = ticks;
    kernel.host.announce(open.object, event::IN);
    Ok(Value::ZERO)
}

fn readiness(host: &HostState, open: OpenObject<'_>) -> u16 {
    let Some(timer) = timer(host, open.object) else {
        return event::INVALID;
    };
    let running = timer.running.and_then(|number| host.timers.get(number));
    let is_due = running.is_some_and(|running| running.at_ns <= host.clock_ns);
    if timer.fired > 0 || timer.is_canceled || is_due {
        event::IN
    } else {
        0
    }
}

fn close(host: &mut HostState, open: OpenObject<'_>) {
    if let Some(number) = timer(host, open.object).and_then(|timer| timer.running) {
        host.timers.remove(number);
    }
    host.objects.remove(open.object.0);
}

impl HostState {
    /// Cancels timers after the wall clock was set: those with `TFD_TIMER_CANCEL_ON_SET` become
    /// readable, and the next read fails.
    pub fn cancel_descriptors(&mut self) {
        let of = |object: &Object| matches!(object, Object::Timer(timer) if timer.cancels);
        let all = self.objects.iter().filter(|(_, object)| of(object));
        let canceled: Vec<ObjectId> = all.map(|(id, _)| ObjectId(id)).collect();
        for id in canceled {
            if let Some(timer) = timer_mut(self, id) {
                timer.is_canceled = true;
            }
            self.announce(id, event::IN);
        }
    }

    /// Counts an expiration of a timerfd, and `missed` further ones.
    pub fn fire_descriptor(&mut self, id: ObjectId, missed: u64) {
        if let Some(timer) = timer_mut(self, id) {
            // Only the first expiration since the last read is announced.
            let is_new = timer.fired == 0;
            timer.fired = timer.fired.saturating_add(missed).saturating_add(1);
            if timer.interval_ns == 0 {
                timer.running = None;
            }
            if is_new {
                self.announce(id, event::IN);
            }
        }
    }
}
