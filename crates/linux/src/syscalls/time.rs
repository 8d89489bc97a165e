//! Clocks and sleeping, all on the host's virtual clock.

use everett_vm::Value;

use crate::errno::Errno;
use crate::kernel::{Kernel, Stop};
use crate::table::ArgKind::{Flags, Int, Pointer};
use crate::table::{Answer, Call, Row};
use crate::timers::TimeBase;
use crate::wait::WaitCondition;

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "nanosleep",
        35,
        &[Pointer, Pointer],
        &[Errno::EINTR],
        nanosleep,
    ),
    Row::new("gettimeofday", 96, &[Pointer, Pointer], &[], gettimeofday),
    Row::new("times", 100, &[Pointer], &[], times),
    Row::new("time", 201, &[Pointer], &[], time),
    Row::new("settimeofday", 164, &[Pointer, Pointer], &[], settimeofday).without("time zones"),
    Row::new("clock_settime", 227, &[Int, Pointer], &[], clock_settime),
    Row::new("clock_gettime", 228, &[Int, Pointer], &[], clock_gettime),
    Row::new("clock_getres", 229, &[Int, Pointer], &[], clock_getres),
    Row::new(
        "clock_nanosleep",
        230,
        &[Int, Flags, Pointer, Pointer],
        &[Errno::EINTR],
        clock_nanosleep,
    ),
];

pub const SECOND: u64 = 1_000_000_000;
const REALTIME: i32 = 0;
const REALTIME_COARSE: i32 = 5;
const TAI: i32 = 11;

/// Whether a clock shows the time of day.
pub fn is_wall_clock(clock: i32) -> bool {
    matches!(clock, REALTIME | REALTIME_COARSE | TAI)
}

/// Encodes a `struct timespec`.
pub fn timespec(ns: u64) -> Vec<u8> {
    [ns / SECOND, ns % SECOND].map(u64::to_le_bytes).concat()
}

fn nanosleep(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let duration = kernel.read_time(call.args[0])?;
    let deadline = kernel.host.clock_ns.saturating_add(duration);
    kernel.task_mut().remainder = call.args[1];
    kernel.wait(WaitCondition::Never, Some(deadline), "nanosleep")?;
    Ok(Value::ZERO)
}

fn clock_nanosleep(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const ABSOLUTE: u64 = 1;
    let clock = call.int(0);
    let base = kernel.base_of_clock(clock)?;
    match base {
        TimeBase::Host => {}
        TimeBase::Thread(_) => return Err(Errno::EINVAL.into()),
        TimeBase::Process(_) => return Err(Errno::EOPNOTSUPP.into()),
    }
    let time = kernel.read_time(call.args[2])?;
    let is_absolute = call.args[1] & ABSOLUTE != 0;
    let deadline = match is_absolute {
        false => kernel.host.clock_ns.saturating_add(time),
        true if is_wall_clock(clock) => time.saturating_sub(kernel.host.start_time_ns),
        true => time,
    };
    if !is_absolute {
        kernel.task_mut().remainder = call.args[3];
    }
    kernel.wait(WaitCondition::Never, Some(deadline), "clock_nanosleep")?;
    Ok(Value::ZERO)
}

fn gettimeofday(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let now = kernel.wall_clock_ns();
    if call.args[0] != 0 {
        let bytes = [now / SECOND, now % SECOND / 1000]
            .map(u64::to_le_bytes)
            .concat();
        kernel.write_bytes(call.args[0], &bytes)?;
    }
    if call.args[1] != 0 {
        kernel.write_bytes(call.args[1], &[0; 8])?;
    }
    Ok(Value::ZERO)
}

fn times(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const TICK_NS: u64 = 10_000_000;
    let ticks = kernel.host.clock_ns / TICK_NS;
    if call.args[0] != 0 {
        let process = kernel.process();
        let words = [process.cpu_ns, 0, process.children_cpu_ns, 0];
        let bytes = words.map(|ns| (ns / TICK_NS).to_le_bytes()).concat();
        kernel.write_bytes(call.args[0], &bytes)?;
    }
    Ok(Value::concrete(ticks))
}

fn time(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let seconds = kernel.wall_clock_ns() / SECOND;
    if call.args[0] != 0 {
        kernel.write_bytes(call.args[0], &seconds.to_le_bytes())?;
    }
    Ok(Value::concrete(seconds))
}

fn clock_gettime(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let base = kernel.base_of_clock(call.int(0))?;
    let now = if is_wall_clock(call.int(0)) {
        kernel.wall_clock_ns()
    } else {
        kernel.host.time_of(base)
    };
    kernel.write_bytes(call.args[1], &timespec(now))?;
    Ok(Value::ZERO)
}

fn clock_settime(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.int(0) != REALTIME {
        return Err(Errno::EINVAL.into());
    }
    let time = kernel.read_time(call.args[1])?;
    kernel.set_wall_clock(time)
}

fn settimeofday(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.args[0] == 0 {
        return Ok(Value::ZERO);
    }
    let seconds = kernel.read_u64(call.args[0])?;
    let microseconds = kernel.read_u64(call.args[0].wrapping_add(8))?;
    if (seconds as i64) < 0 || microseconds >= 1_000_000 {
        return Err(Errno::EINVAL.into());
    }
    let time = seconds.saturating_mul(SECOND);
    kernel.set_wall_clock(time.saturating_add(microseconds * 1000))
}

fn clock_getres(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.base_of_clock(call.int(0))?;
    if call.args[1] != 0 {
        kernel.write_bytes(call.args[1], &timespec(1))?;
    }
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// The time base of a clock. Negative ids are CPU-time clocks of a process or thread.
    pub fn base_of_clock(&self, clock: i32) -> Result<TimeBase, Errno> {
        const PROCESS: i32 = 2;
        const THREAD: i32 = 3;
        const OF_THREAD: i32 = 4;
        const KIND: i32 = 3;
        match clock {
            PROCESS => Ok(TimeBase::Process(self.process().pid)),
            THREAD => Ok(TimeBase::Thread(self.task().tid)),
            0..=9 | TAI => Ok(TimeBase::Host),
            _ if clock >= 0 || clock & KIND == KIND => Err(Errno::EINVAL),
            _ if clock & OF_THREAD != 0 => match !(clock >> 3) {
                0 => Ok(TimeBase::Thread(self.task().tid)),
                tid => {
                    let task = self.host.task_by_tid(tid as u32);
                    let task = task.map(|at| &self.host.tasks[at]);
                    let own = task.filter(|task| task.pid == self.process().pid);
                    own.map(|task| TimeBase::Thread(task.tid))
                        .ok_or(Errno::EINVAL)
                }
            },
            _ => {
                let process = self.process_or_self(!(clock >> 3));
                let process = process.map_err(|_| Errno::EINVAL)?;
                Ok(TimeBase::Process(process.pid))
            }
        }
    }

    /// Sets the time of day; sleeping threads keep their deadlines.
    fn set_wall_clock(&mut self, time_ns: u64) -> Answer {
        if !self.is_privileged() {
            return Err(Errno::EPERM.into());
        }
        self.host.start_time_ns = time_ns.saturating_sub(self.host.clock_ns);
        Ok(Value::ZERO)
    }

    /// Wall-clock time, in nanoseconds since 1970.
    pub fn wall_clock_ns(&self) -> u64 {
        self.host.start_time_ns.saturating_add(self.host.clock_ns)
    }

    /// A signal interrupts a sleep: stores the remaining time if the program asked for it.
    pub(crate) fn write_remainder(&mut self) {
        let task = self.task();
        let (address, deadline) = (task.remainder, task.deadline_ns.unwrap_or(0));
        let left = deadline.saturating_sub(self.host.clock_ns);
        if address != 0 {
            // A bad address is ignored: the call fails with `EINTR` already.
            let _ = self.write_bytes(address, &timespec(left));
        }
    }

    /// Reads a `struct timespec`, in nanoseconds.
    pub fn read_time(&mut self, address: u64) -> Result<u64, Stop> {
        let seconds = self.read_u64(address)? as i64;
        let nanoseconds = self.read_u64(address.wrapping_add(8))?;
        let seconds = u64::try_from(seconds).map_err(|_| Errno::EINVAL)?;
        if nanoseconds >= SECOND {
            return Err(Errno::EINVAL.into());
        }
        Ok(seconds.saturating_mul(SECOND).saturating_add(nanoseconds))
    }
}
