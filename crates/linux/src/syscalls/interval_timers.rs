//! Timers that send signals: `alarm`, `setitimer` and `timer_create`.

use everett_vm::Value;

use super::time::{NO_SLEEPS, SECOND, is_wall_clock, timespec};
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel, Stop};
use crate::signals::{SIGALRM, Signal, is_signal};
use crate::table::ArgKind::{Flags, Int, Pointer};
use crate::table::{Call, Row};
use crate::timers::{Notice, PosixTimer, TimeBase, Timer, TimerAction};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("getitimer", 36, &[Int, Pointer], &[], getitimer),
    Row::new("alarm", 37, &[Int], &[], alarm),
    Row::new("setitimer", 38, &[Int, Pointer, Pointer], &[], setitimer),
    Row::new(
        "timer_create",
        222,
        &[Int, Pointer, Pointer],
        &[Errno::EAGAIN],
        timer_create,
    ),
    Row::new(
        "timer_settime",
        223,
        &[Int, Flags, Pointer, Pointer],
        &[],
        timer_settime,
    ),
    Row::new("timer_gettime", 224, &[Int, Pointer], &[], timer_gettime),
    Row::new("timer_getoverrun", 225, &[Int], &[], timer_getoverrun),
    Row::new("timer_delete", 226, &[Int], &[], timer_delete),
];

/// `ITIMER_REAL`.
const REAL: usize = 0;

/// Remaining time and period of a timer.
#[derive(Copy, Clone, Default)]
struct Setting {
    value_ns: u64,
    interval_ns: u64,
}

fn alarm(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let seconds = call.args[0] as u32;
    let setting = Setting {
        value_ns: u64::from(seconds) * SECOND,
        interval_ns: 0,
    };
    let old = kernel.set_alarm(REAL, setting);
    // Rounded, but never down to 0.
    let whole = old.value_ns / SECOND;
    let rest = old.value_ns % SECOND;
    let up = rest >= SECOND / 2 || (whole == 0 && rest > 0);
    Ok(Value::concrete(whole + u64::from(up)))
}

fn which(call: &Call) -> Result<usize, Errno> {
    match call.int(0) {
        which @ 0..=2 => Ok(which as usize),
        _ => Err(Errno::EINVAL),
    }
}

fn getitimer(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let setting = kernel.alarm(which(call)?);
    kernel.write_timeval_pair(call.args[1], setting)?;
    Ok(Value::ZERO)
}

fn setitimer(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let which = which(call)?;
    let new = match call.args[1] {
        0 => Setting::default(),
        address => {
            let mut words = [0u64; 4];
            for (at, word) in (0..).zip(&mut words) {
                *word = kernel.read_u64(address.wrapping_add(8 * at))?;
            }
            let [interval, interval_us, value, value_us] = words;
            Setting {
                interval_ns: timeval(interval, interval_us)?,
                value_ns: timeval(value, value_us)?,
            }
        }
    };
    if call.args[2] != 0 {
        kernel.check(call.args[2], 32, true)?;
    }
    let old = kernel.set_alarm(which, new);
    if call.args[2] != 0 {
        kernel.write_timeval_pair(call.args[2], old)?;
    }
    Ok(Value::ZERO)
}

fn timeval(seconds: u64, microseconds: u64) -> Result<u64, Errno> {
    if (seconds as i64) < 0 || microseconds >= 1_000_000 {
        return Err(Errno::EINVAL);
    }
    Ok(seconds
        .saturating_mul(SECOND)
        .saturating_add(microseconds * 1000))
}

impl Kernel<'_, '_> {
    fn alarm_base(&self, which: usize) -> TimeBase {
        match which {
            REAL => TimeBase::Host,
            _ => TimeBase::Process(self.process().pid),
        }
    }

    /// Remaining time of an armed timer.
    fn left_of(&self, running: Option<u32>) -> Setting {
        let timer = running.and_then(|number| self.host.timers.get(number));
        timer.map_or_else(Setting::default, |timer| Setting {
            // A timer that has expired but not fired yet is not shown as disarmed.
            value_ns: timer
                .at_ns
                .saturating_sub(self.host.time_of(timer.base))
                .max(1),
            interval_ns: timer.interval_ns,
        })
    }

    fn alarm(&self, which: usize) -> Setting {
        self.left_of(self.process().alarms[which])
    }

    fn set_alarm(&mut self, which: usize, new: Setting) -> Setting {
        let old = self.alarm(which);
        if let Some(number) = self.process_mut().alarms[which].take() {
            self.host.timers.remove(number);
        }
        if new.value_ns != 0 {
            let base = self.alarm_base(which);
            let pid = self.process().pid;
            let number = self.host.timers.insert(Timer {
                base,
                at_ns: self.host.time_of(base).saturating_add(new.value_ns),
                interval_ns: new.interval_ns,
                on_wall_clock: false,
                action: TimerAction::Alarm { pid, which },
            });
            self.process_mut().alarms[which] = Some(number);
        }
        old
    }

    fn write_timeval_pair(&mut self, address: u64, setting: Setting) -> Result<(), Stop> {
        // Rounded up to microseconds, so that an armed timer is not shown as disarmed.
        let parts = |ns: u64| {
            let us = ns.div_ceil(1000);
            [us / 1_000_000, us % 1_000_000]
        };
        let words = [parts(setting.interval_ns), parts(setting.value_ns)].concat();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write_bytes(address, &bytes)
    }
}

fn timer_create(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const SIGNAL: u32 = 0;
    const NONE: u32 = 1;
    const THREAD: u32 = 2;
    const THREAD_ID: u32 = 4;
    const MAX: usize = 4096;
    kernel.timer_base(call.int(0))?;
    kernel.check_alarm_clock(call.int(0))?;
    let event = match call.args[1] {
        0 => None,
        address => {
            let value = kernel.read_cookie(address)?;
            let rest = kernel.read_bytes(address.wrapping_add(8), 12)?;
            let word = |at: usize| {
                let bytes = rest[4 * at..4 * at + 4].first_chunk();
                bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
            };
            Some((value, word(0) as i32, word(1), word(2)))
        }
    };
    if let Some((_, signal, notify, tid)) = event {
        let is_valid = match notify {
            NONE => true,
            SIGNAL | THREAD => is_signal(signal),
            THREAD_ID => {
                let task = kernel.host.task_by_tid(tid);
                let own = task.map(|at| kernel.host.tasks[at].pid) == Some(kernel.process().pid);
                own && is_signal(signal)
            }
            _ => false,
        };
        if !is_valid {
            return Err(Errno::EINVAL.into());
        }
    }
    let may_queue = kernel.host.may_queue_signal(kernel.process().pid);
    if !may_queue || kernel.process().timers.iter().count() >= MAX {
        return Err(Errno::EAGAIN.into());
    }
    kernel.check(call.args[2], 4, true)?;
    let timer = PosixTimer {
        clock: call.int(0),
        notice: match event {
            Some((_, _, NONE, _)) => Notice::None,
            Some((_, _, THREAD_ID, tid)) => Notice::Thread(tid),
            _ => Notice::Process,
        },
        signal: event.map_or(SIGALRM, |(_, signal, _, _)| signal),
        value: 0,
        running: None,
        interval_ns: 0,
        unseen: 0,
        overrun: 0,
    };
    let number = kernel.process_mut().timers.insert(timer);
    if let Some(timer) = kernel.process_mut().timers.get_mut(number) {
        // The default value is the timer's id.
        timer.value = event.map_or(u64::from(number), |(value, ..)| value);
    }
    kernel.write_bytes(call.args[2], &number.to_le_bytes())?;
    Ok(Value::ZERO)
}

fn timer_settime(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const ABSOLUTE: u64 = 1;
    if call.args[2] == 0 {
        return Err(Errno::EINVAL.into());
    }
    let interval_ns = kernel.read_time(call.args[2])?;
    let value_ns = kernel.read_time(call.args[2].wrapping_add(16))?;
    let (number, timer) = kernel.timer(call)?;
    if call.args[3] != 0 {
        kernel.check(call.args[3], 32, true)?;
    }
    let base = kernel.timer_base(timer.clock)?;
    let now = kernel.host.time_of(base);
    let at_ns = match call.args[1] & ABSOLUTE {
        0 => now.saturating_add(value_ns),
        _ if is_wall_clock(timer.clock) => kernel.host.when_wall_clock_shows(value_ns),
        _ => kernel.host.base_time_of(base, value_ns),
    };
    let old = kernel.setting_of(&timer);
    if let Some(running) = timer.running {
        kernel.host.timers.remove(running);
    }
    kernel.forget_expirations(number, &timer);
    let pid = kernel.process().pid;
    let running = (value_ns != 0).then(|| {
        kernel.host.timers.insert(Timer {
            base,
            at_ns,
            interval_ns,
            on_wall_clock: call.args[1] & ABSOLUTE != 0 && is_wall_clock(timer.clock),
            action: TimerAction::Posix { pid, timer: number },
        })
    });
    if let Some(timer) = kernel.process_mut().timers.get_mut(number) {
        timer.running = running;
        timer.interval_ns = if value_ns == 0 { 0 } else { interval_ns };
        timer.unseen = 0;
        timer.overrun = 0;
    }
    if call.args[3] != 0 {
        kernel.write_timespec_pair(call.args[3], old)?;
    }
    Ok(Value::ZERO)
}

fn timer_gettime(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (_, timer) = kernel.timer(call)?;
    let setting = kernel.setting_of(&timer);
    kernel.write_timespec_pair(call.args[1], setting)?;
    Ok(Value::ZERO)
}

fn timer_getoverrun(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (_, timer) = kernel.timer(call)?;
    Ok(Value::concrete(timer.overrun))
}

fn timer_delete(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (number, timer) = kernel.timer(call)?;
    if let Some(running) = timer.running {
        kernel.host.timers.remove(running);
    }
    kernel.forget_expirations(number, &timer);
    kernel.process_mut().timers.remove(number);
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    fn timer(&self, call: &Call) -> Result<(u32, PosixTimer), Errno> {
        let number = u32::try_from(call.int(0)).map_err(|_| Errno::EINVAL)?;
        let timer = self.process().timers.get(number).ok_or(Errno::EINVAL)?;
        Ok((number, timer.clone()))
    }

    /// Takes back the pending signal of a timer that is set anew or deleted.
    fn forget_expirations(&mut self, number: u32, timer: &PosixTimer) {
        let of_timer = |signal: &Signal| signal.is_of_timer(number);
        match timer.notice {
            Notice::None => {}
            Notice::Process => self.process_mut().pending.remove(of_timer),
            Notice::Thread(tid) => {
                if let Some(at) = self.host.task_by_tid(tid) {
                    let task = triomphe::Arc::make_mut(&mut self.host.tasks[at]);
                    task.pending.remove(of_timer);
                }
            }
        }
    }

    fn setting_of(&self, timer: &PosixTimer) -> Setting {
        Setting {
            interval_ns: timer.interval_ns,
            ..self.left_of(timer.running)
        }
    }

    fn write_timespec_pair(&mut self, address: u64, setting: Setting) -> Result<(), Stop> {
        let bytes = [timespec(setting.interval_ns), timespec(setting.value_ns)].concat();
        self.write_bytes(address, &bytes)
    }

    /// The time base of timers of a clock.
    fn timer_base(&self, clock: i32) -> Result<TimeBase, Errno> {
        if NO_SLEEPS.contains(&clock) {
            return Err(Errno::EOPNOTSUPP);
        }
        self.base_of_clock(clock)
    }
}
