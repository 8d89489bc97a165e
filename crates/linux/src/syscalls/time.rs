//! Clocks and sleeping, all on the host's virtual clock.

use everett_expr::{Arena, BinaryOp, CompareOp, ExprId};
use everett_vm::{Buffer, Value};

use crate::capabilities::{SYS_TIME, WAKE_ALARM};
use crate::clock_rate::{ClockRate, SYSTEM_TICK_NS};
use crate::dispatch::SYSTEM_CALL_NS;
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel, Stop};
use crate::process::RunState;
use crate::table::ArgKind::{Flags, Int, Pointer};
use crate::table::property::{ONE_THREAD, READS_CLOCK};
use crate::table::{Call, Row};
use crate::timers::TimeBase;
use crate::wait::{Wait, WaitCondition};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "nanosleep",
        35,
        &[Pointer, Pointer],
        &[Errno::EINTR],
        nanosleep,
    ),
    Row::new("gettimeofday", 96, &[Pointer, Pointer], &[], gettimeofday)
        .with(READS_CLOCK | ONE_THREAD),
    Row::new("times", 100, &[Pointer], &[], times).with(READS_CLOCK),
    Row::new("time", 201, &[Pointer], &[], time).with(READS_CLOCK),
    Row::new("settimeofday", 164, &[Pointer, Pointer], &[], settimeofday).without("time zones"),
    Row::new("clock_settime", 227, &[Int, Pointer], &[], clock_settime),
    Row::new("clock_gettime", 228, &[Int, Pointer], &[], clock_gettime)
        .with(READS_CLOCK | ONE_THREAD),
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
pub const REALTIME: i32 = 0;
const REALTIME_COARSE: i32 = 5;
const MONOTONIC_COARSE: i32 = 6;
const TAI: i32 = 11;
/// Clocks that no timer and no sleep goes by: the raw one and the coarse ones.
pub const NO_SLEEPS: [i32; 3] = [4, REALTIME_COARSE, MONOTONIC_COARSE];

/// Whether a clock shows the time of day.
pub fn is_wall_clock(clock: i32) -> bool {
    matches!(clock, REALTIME | REALTIME_COARSE | TAI)
}

/// Whether a clock shows the time of the last tick.
fn is_coarse(clock: i32) -> bool {
    matches!(clock, REALTIME_COARSE | MONOTONIC_COARSE)
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
    if NO_SLEEPS.contains(&clock) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    match base {
        TimeBase::Host => kernel.check_alarm_clock(clock)?,
        TimeBase::Thread(tid) if tid == kernel.task().tid => return Err(Errno::EINVAL.into()),
        _ => return kernel.sleep_on_processor_time(base, call),
    }
    let time = kernel.read_time(call.args[2])?;
    let is_absolute = call.args[1] & ABSOLUTE != 0;
    let deadline = match is_absolute {
        false => kernel.host.clock_ns.saturating_add(time),
        true if is_wall_clock(clock) => kernel.wall_deadline(time),
        true => kernel.host.base_time_of(base, time),
    };
    if !is_absolute {
        kernel.task_mut().remainder = call.args[3];
    }
    kernel.wait(WaitCondition::Never, Some(deadline), "clock_nanosleep")?;
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// Sleeps until a process or another thread has used processor time.
    fn sleep_on_processor_time(&mut self, base: TimeBase, call: &Call) -> Answer {
        const ABSOLUTE: u64 = 1;
        let time = self.read_time(call.args[2])?;
        let is_absolute = call.args[1] & ABSOLUTE != 0;
        let now = self.host.time_of(base);
        let until = match is_absolute {
            true => time,
            false => now.saturating_add(time),
        };
        // It was set when the handler ran for the first time.
        let until = self.task().deadline_ns.unwrap_or(until);
        if now >= until {
            return Ok(Value::ZERO);
        }
        if !is_absolute {
            self.task_mut().remainder = call.args[3];
        }
        Err(Stop::Block(Box::new(Wait {
            deadline_ns: Some(until),
            condition: WaitCondition::ProcessorTime(base),
            what: "clock_nanosleep",
            restarts: false,
        })))
    }
}

fn gettimeofday(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if call.args[0] != 0 {
        let (seconds, ns) = kernel.wall_clock();
        let arena = &mut *kernel.vm.arena;
        let microseconds = match ns.term {
            None => Value::concrete(ns.bits / 1000),
            Some(ns) => {
                let unit = arena.constant(64, 1000);
                let quotient = arena.binary(BinaryOp::UDiv, ns, unit);
                Value::of_term(arena, quotient)
            }
        };
        kernel.write_words(call.args[0], [seconds, microseconds])?;
    }
    if call.args[1] != 0 {
        kernel.write_bytes(call.args[1], &[0; 8])?;
    }
    Ok(Value::ZERO)
}

fn times(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const TICK_NS: u64 = 10_000_000;
    let ticks = kernel.host.shown(TimeBase::Host) / TICK_NS;
    if call.args[0] != 0 {
        let process = kernel.process();
        let words = [process.cpu_ns, 0, process.children_cpu_ns, 0];
        let bytes = words.map(|ns| (ns / TICK_NS).to_le_bytes()).concat();
        kernel.write_bytes(call.args[0], &bytes)?;
    }
    Ok(Value::concrete(ticks))
}

fn time(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (seconds, _) = kernel.wall_clock_at(kernel.host.last_tick());
    if call.args[0] != 0 {
        kernel.write_words(call.args[0], [seconds])?;
    }
    Ok(seconds)
}

fn clock_gettime(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let base = kernel.base_of_clock(call.int(0))?;
    let at_ns = match is_coarse(call.int(0)) {
        true => kernel.host.last_tick(),
        false => kernel.host.clock_ns,
    };
    if is_wall_clock(call.int(0)) {
        let (seconds, ns) = kernel.wall_clock_at(at_ns);
        kernel.write_words(call.args[1], [seconds, ns])?;
    } else {
        let late_ns = kernel.host.clock_ns - at_ns;
        let now = kernel.host.shown(base).saturating_sub(late_ns);
        kernel.write_bytes(call.args[1], &timespec(now))?;
    }
    Ok(Value::ZERO)
}

fn clock_settime(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    match kernel.base_of_clock(call.int(0)) {
        _ if call.int(0) == REALTIME => {}
        Ok(TimeBase::Process(_) | TimeBase::Thread(_)) if call.int(0) < 0 => {
            return Err(Errno::EPERM.into());
        }
        _ => return Err(Errno::EINVAL.into()),
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
    let resolution = match is_coarse(call.int(0)) {
        true => SYSTEM_TICK_NS,
        false => 1,
    };
    if call.args[1] != 0 {
        kernel.write_bytes(call.args[1], &timespec(resolution))?;
    }
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// `EPERM` if the clock can wake up the machine (`CLOCK_REALTIME_ALARM`, `CLOCK_BOOTTIME_ALARM`)
    /// and the process may not do that.
    pub fn check_alarm_clock(&self, clock: i32) -> Result<(), Errno> {
        match clock {
            8 | 9 if !self.is_capable(WAKE_ALARM) => Err(Errno::EPERM),
            _ => Ok(()),
        }
    }

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

    /// Sets the time of day. Deadlines and timers on the wall clock move with it.
    pub fn set_wall_clock(&mut self, time_ns: u64) -> Answer {
        if !self.is_capable(SYS_TIME) {
            return Err(Errno::EPERM.into());
        }
        self.move_wall_clock(time_ns, *self.host.clock_rate);
        self.host.cancel_descriptors();
        Ok(Value::ZERO)
    }

    /// Changes the rate of the wall clock from now on.
    pub fn change_clock_rate(&mut self, rate: ClockRate) {
        self.move_wall_clock(self.wall_clock_ns(), rate);
    }

    /// Sets time of day and rate. Deadlines and timers on the wall clock move with them.
    fn move_wall_clock(&mut self, time_ns: u64, mut rate: ClockRate) {
        let (start_before, rate_before) = (self.host.start_time_ns, *self.host.clock_rate);
        let start = time_ns.saturating_sub(self.host.clock_ns);
        rate.begin(self.host.clock_ns);
        self.host.start_time_ns = start;
        self.host.clock_rate = triomphe::Arc::new(rate);
        let moved = |at_ns: u64| {
            let shown = at_ns.saturating_add_signed(rate_before.ahead_ns(at_ns));
            rate.when(shown.saturating_add(start_before).saturating_sub(start))
        };
        for task in &mut self.host.tasks {
            if !task.waits_for_wall_clock {
                continue;
            }
            let task = triomphe::Arc::make_mut(task);
            task.deadline_ns = task.deadline_ns.map(moved);
            if let RunState::Waiting(wait) = &mut task.run_state {
                wait.deadline_ns = wait.deadline_ns.map(moved);
            }
        }
        let of_wall = self
            .host
            .timers
            .iter()
            .filter(|(_, timer)| timer.on_wall_clock);
        let of_wall: Vec<u32> = of_wall.map(|(number, _)| number).collect();
        for number in of_wall {
            if let Some(timer) = self.host.timers.get_mut(number) {
                timer.at_ns = moved(timer.at_ns);
            }
        }
    }

    /// Converts a deadline of the current call on the wall clock to the virtual clock.
    pub fn wall_deadline(&mut self, at_ns: u64) -> u64 {
        self.task_mut().waits_for_wall_clock = true;
        self.host.when_wall_clock_shows(at_ns)
    }

    /// Virtual time that the current system call takes. A thread that only reads the clock is
    /// waiting for time to pass: after 100 readings, each one takes an eighth longer than the one
    /// before, at most a millisecond (a tenth of that on a host with a network), but not beyond the
    /// next deadline or timer.
    pub(crate) fn time_taken(&mut self, reads_clock: Option<bool>) -> u64 {
        const PATIENCE: u32 = 100;
        // Packets that arrive meanwhile are delayed by as much.
        let longest_ns = if self.host.wire.is_networked {
            100_000
        } else {
            1_000_000
        };
        let task = self.task_mut();
        match reads_clock {
            Some(true) => task.clock_readings = task.clock_readings.saturating_add(1),
            Some(false) => task.clock_readings = 0,
            None => {}
        }
        let beyond = task.clock_readings.saturating_sub(PATIENCE);
        if beyond == 0 {
            return SYSTEM_CALL_NS;
        }
        let mut took_ns = SYSTEM_CALL_NS;
        for _ in 0..beyond.min(PATIENCE) {
            took_ns = (took_ns + took_ns / 8).min(longest_ns);
        }
        let now = self.host.clock_ns;
        let left = self.host.next_deadline().map(|at| at.saturating_sub(now));
        took_ns.min(left.unwrap_or(took_ns)).max(SYSTEM_CALL_NS)
    }

    /// Wall-clock time, in nanoseconds since 1970.
    pub fn wall_clock_ns(&self) -> u64 {
        self.host.wall_clock_ns()
    }

    /// Seconds and nanoseconds of the wall clock. If it is symbolic, the start time of the host is
    /// any 32-bit second and any nanosecond in it; the time since then is concrete.
    fn wall_clock(&mut self) -> (Value, Value) {
        self.wall_clock_at(self.host.clock_ns)
    }

    /// What the wall clock shows at a virtual time.
    fn wall_clock_at(&mut self, passed: u64) -> (Value, Value) {
        if !self.host.options.symbolic_draws {
            let now = self.host.wall_clock_at(passed);
            return (Value::concrete(now / SECOND), Value::concrete(now % SECOND));
        }
        let arena = &mut *self.vm.arena;
        // Not an input of the path: every reading of the clock uses the same array.
        let array = arena.array(CLOCK_ORDINAL, "wall clock", 8);
        let bytes: Vec<ExprId> = (0..8).map(|at| arena.read(array, at)).collect();
        let start = arena.concat_bytes(&bytes[..4]);
        let start = arena.zext(start, 64);
        // 30 bits, with values of a second or more reduced by a second: every nanosecond of a
        // second is among the values.
        let drawn = arena.concat_bytes(&bytes[4..]);
        let drawn = arena.extract(drawn, 0, 30);
        let drawn = arena.zext(drawn, 64);
        let since = arena.constant(64, passed % SECOND);
        let (start_ns, _) = within_second(arena, drawn);
        let ns = arena.binary(BinaryOp::Add, start_ns, since);
        let (ns, carry) = within_second(arena, ns);
        let whole = arena.constant(64, passed / SECOND);
        let seconds = arena.binary(BinaryOp::Add, start, whole);
        let seconds = arena.binary(BinaryOp::Add, seconds, carry);
        (Value::of_term(arena, seconds), Value::of_term(arena, ns))
    }

    /// Writes words of 8 bytes, which may be symbolic.
    fn write_words<const N: usize>(&mut self, address: u64, words: [Value; N]) -> Result<(), Stop> {
        let mut bytes = Buffer::zeroed(8 * N);
        for (at, word) in words.into_iter().enumerate() {
            bytes.store(8 * at, 8, word);
        }
        self.write_buffer(address, &bytes)
    }

    /// Stores the remaining time of a sleep that a signal interrupts, if the program asked for it.
    pub(crate) fn write_remainder(&mut self, wait: &Wait) {
        let task = self.task();
        let (address, deadline) = (task.remainder, task.deadline_ns.unwrap_or(0));
        let left = deadline.saturating_sub(self.host.time_of(wait.clock()));
        if address != 0 {
            // A bad address is ignored: the call already fails with `EINTR`.
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

/// Ordinal of the symbolic wall clock, which is not an input of a path: inputs count from 0.
const CLOCK_ORDINAL: u32 = u32::MAX - 2;

/// Reduces nanoseconds below two seconds to below one second. Also returns the carry in seconds.
fn within_second(arena: &mut Arena, ns: ExprId) -> (ExprId, ExprId) {
    let (second, zero, one) = (
        arena.constant(64, SECOND),
        arena.constant(64, 0),
        arena.constant(64, 1),
    );
    let is_below = arena.compare(CompareOp::Ult, ns, second);
    let rest = arena.binary(BinaryOp::Sub, ns, second);
    (
        arena.ite(is_below, ns, rest),
        arena.ite(is_below, zero, one),
    )
}
