//! Event descriptors: `eventfd`, `timerfd` and `signalfd`.

use everett_vm::Value;

use super::time::{is_wall_clock, timespec};
use crate::errno::Errno;
use crate::files::{OpenFlags, Target};
use crate::ids::ObjectId;
use crate::kernel::{Answer, Kernel};
use crate::objects::{EventCounter, Object, TimerDescriptor, readable_signals, timer, timer_mut};
use crate::signals::blockable;
use crate::table::ArgKind::{Fd, Flags, Int, Pointer};
use crate::table::{Call, Row};
use crate::timers::{TimeBase, Timer, TimerAction};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("eventfd", 284, &[Int], OPEN_ERRORS, eventfd),
    Row::new("eventfd2", 290, &[Int, Flags], OPEN_ERRORS, eventfd2),
    Row::new(
        "timerfd_create",
        283,
        &[Int, Flags],
        OPEN_ERRORS,
        timerfd_create,
    ),
    Row::new(
        "timerfd_settime",
        286,
        &[Fd, Flags, Pointer, Pointer],
        &[],
        timerfd_settime,
    ),
    Row::new("timerfd_gettime", 287, &[Fd, Pointer], &[], timerfd_gettime),
    Row::new("signalfd", 282, &[Fd, Pointer, Int], OPEN_ERRORS, signalfd)
        .fails_where(is_new_signalfd),
    Row::new(
        "signalfd4",
        289,
        &[Fd, Pointer, Int, Flags],
        OPEN_ERRORS,
        signalfd4,
    )
    .fails_where(is_new_signalfd),
];

/// Whether `signalfd` creates a descriptor; for an existing one it only changes the mask.
fn is_new_signalfd(_: &Kernel<'_, '_>, args: &[u64; 6], _: Errno) -> bool {
    args[0] as i32 == -1
}

const OPEN_ERRORS: &[Errno] = &[Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM];

fn eventfd(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.create_eventfd(call.args[0] as u32, 0)
}

fn eventfd2(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.create_eventfd(call.args[0] as u32, call.args[1] as u32)
}

fn timerfd_create(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    /// Real time, monotonic, boot time, and the two alarm clocks.
    const CLOCKS: [i32; 5] = [0, 1, 7, 8, 9];
    let flags = call.args[1] as u32;
    let known = OpenFlags::CLOSE_ON_EXEC | OpenFlags::NONBLOCK;
    if !CLOCKS.contains(&call.int(0)) || flags & !known != 0 {
        return Err(Errno::EINVAL.into());
    }
    kernel.check_alarm_clock(call.int(0))?;
    let timer = TimerDescriptor {
        clock: call.int(0),
        running: None,
        interval_ns: 0,
        fired: 0,
        cancels: false,
        is_canceled: false,
    };
    let fd = kernel.open_new(Object::Timer(timer), flags | OpenFlags::READ_WRITE)?;
    Ok(Value::concrete(fd as u64))
}

fn timerfd_settime(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const ABSOLUTE: u64 = 1;
    const CANCEL_ON_SET: u64 = 2;
    let flags = call.args[1];
    let interval_ns = kernel.read_time(call.args[2])?;
    let value_ns = kernel.read_time(call.args[2].wrapping_add(16))?;
    if flags & !(ABSOLUTE | CANCEL_ON_SET) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let id = kernel.timer_behind(call.int(0))?;
    let old = kernel.timer_setting(id);
    if call.args[3] != 0 {
        kernel.write_bytes(call.args[3], &old)?;
    }
    let clock = timer(kernel.host, id).map_or(0, |timer| timer.clock);
    let now = kernel.host.clock_ns;
    let at_ns = match flags & ABSOLUTE {
        0 => now.saturating_add(value_ns),
        // `CLOCK_REALTIME_ALARM` is number 8.
        _ if is_wall_clock(clock) || clock == 8 => kernel.host.when_wall_clock_shows(value_ns),
        _ => kernel.host.base_time_of(TimeBase::Host, value_ns),
    };
    let is_wall = is_wall_clock(clock) || clock == 8;
    let cancels = is_wall && flags == ABSOLUTE | CANCEL_ON_SET;
    if let Some(number) = timer(kernel.host, id).and_then(|timer| timer.running) {
        kernel.host.timers.remove(number);
    }
    let running = (value_ns != 0).then(|| {
        kernel.host.timers.insert(Timer {
            base: TimeBase::Host,
            at_ns,
            interval_ns,
            on_wall_clock: flags & ABSOLUTE != 0 && is_wall,
            action: TimerAction::Descriptor { object: id },
        })
    });
    if let Some(timer) = timer_mut(kernel.host, id) {
        timer.running = running;
        timer.interval_ns = interval_ns;
        timer.fired = 0;
        timer.cancels = cancels;
        // The call reports once that the wall clock was set meanwhile.
        if std::mem::take(&mut timer.is_canceled) && cancels && value_ns != 0 {
            return Err(Errno::ECANCELED.into());
        }
    }
    Ok(Value::ZERO)
}

fn timerfd_gettime(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.timer_behind(call.int(0))?;
    let setting = kernel.timer_setting(id);
    kernel.write_bytes(call.args[1], &setting)?;
    Ok(Value::ZERO)
}

fn signalfd(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.create_signalfd(call, 0)
}

fn signalfd4(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.create_signalfd(call, call.args[3] as u32)
}

impl Kernel<'_, '_> {
    fn create_eventfd(&mut self, count: u32, flags: u32) -> Answer {
        const SEMAPHORE: u32 = 1;
        if flags & !(SEMAPHORE | OpenFlags::CLOSE_ON_EXEC | OpenFlags::NONBLOCK) != 0 {
            return Err(Errno::EINVAL.into());
        }
        let counter = EventCounter {
            count: u64::from(count),
            is_semaphore: flags & SEMAPHORE != 0,
        };
        let flags = flags & !SEMAPHORE | OpenFlags::READ_WRITE;
        let fd = self.open_new(Object::EventCounter(counter), flags)?;
        Ok(Value::concrete(fd as u64))
    }

    fn timer_behind(&mut self, fd: i32) -> Result<ObjectId, Errno> {
        self.host.fire_timers();
        match self.description(fd)?.1.target {
            Target::Object(id) if timer(self.host, id).is_some() => Ok(id),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Encodes a `struct itimerspec`: period and remaining time.
    fn timer_setting(&self, id: ObjectId) -> Vec<u8> {
        let timer = timer(self.host, id);
        let running = timer.and_then(|timer| self.host.timers.get(timer.running?));
        let left = running.map_or(0, |running| {
            running.at_ns - self.host.clock_ns.min(running.at_ns)
        });
        let interval = timer.map_or(0, |timer| timer.interval_ns);
        [timespec(interval), timespec(left)].concat()
    }

    /// Creates a signalfd, or changes the mask of an existing one.
    fn create_signalfd(&mut self, call: &Call, flags: u32) -> Answer {
        const NEW: i32 = -1;
        if flags & !(OpenFlags::CLOSE_ON_EXEC | OpenFlags::NONBLOCK) != 0 || call.args[2] != 8 {
            return Err(Errno::EINVAL.into());
        }
        let mask = blockable(self.read_u64(call.args[1])?);
        if call.int(0) == NEW {
            let flags = flags | OpenFlags::READ_WRITE;
            let fd = self.open_new(Object::Signals(mask), flags)?;
            return Ok(Value::concrete(fd as u64));
        }
        match self.description(call.int(0))?.1.target {
            Target::Object(id) if readable_signals(self.host, id).is_some() => {
                if let Some(Object::Signals(old)) = self.host.objects.get_mut(id.0) {
                    *old = mask;
                }
                Ok(Value::concrete(call.int(0) as u64))
            }
            _ => Err(Errno::EINVAL.into()),
        }
    }
}
