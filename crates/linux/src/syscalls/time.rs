//! Clocks and sleeping, all on the host's virtual clock.

use everett_vm::Value;

use crate::errno::Errno;
use crate::kernel::{Kernel, Stop};
use crate::table::ArgKind::{Flags, Int, Pointer};
use crate::table::{Answer, Call, Row};
use crate::wait::Until;

/// The family.
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

const SECOND: u64 = 1_000_000_000;
const REALTIME: i32 = 0;
const REALTIME_COARSE: i32 = 5;
const TAI: i32 = 11;

fn is_wall_clock(clock: i32) -> bool {
    matches!(clock, REALTIME | REALTIME_COARSE | TAI)
}

/// Clocks 0 to 11, but the one that was taken away; negative ones are the processor time of a process.
fn is_clock(clock: i32) -> bool {
    matches!(clock, 0..=9 | TAI) || clock < 0
}

/// A `struct timespec`.
fn timespec(ns: u64) -> Vec<u8> {
    [ns / SECOND, ns % SECOND].map(u64::to_le_bytes).concat()
}

fn nanosleep(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let duration = kernel.read_time(call.args[0])?;
    let deadline = kernel.host.clock_ns.saturating_add(duration);
    kernel.wait(Until::Never, Some(deadline), "nanosleep")?;
    Ok(Value::ZERO)
}

fn clock_nanosleep(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const ABSOLUTE: u64 = 1;
    let clock = call.int(0);
    if !is_clock(clock) || call.args[1] & !ABSOLUTE != 0 {
        return Err(Errno::EINVAL.into());
    }
    let time = kernel.read_time(call.args[2])?;
    let deadline = match call.args[1] {
        0 => kernel.host.clock_ns.saturating_add(time),
        _ if is_wall_clock(clock) => time.saturating_sub(kernel.host.start_time_ns),
        _ => time,
    };
    kernel.wait(Until::Never, Some(deadline), "clock_nanosleep")?;
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
        let bytes = [ticks, 0, 0, 0].map(u64::to_le_bytes).concat();
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
    if !is_clock(call.int(0)) {
        return Err(Errno::EINVAL.into());
    }
    let now = if is_wall_clock(call.int(0)) {
        kernel.wall_clock_ns()
    } else {
        kernel.host.clock_ns
    };
    kernel.write_bytes(call.args[1], &timespec(now))?;
    Ok(Value::ZERO)
}

fn clock_getres(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if !is_clock(call.int(0)) {
        return Err(Errno::EINVAL.into());
    }
    if call.args[1] != 0 {
        kernel.write_bytes(call.args[1], &timespec(1))?;
    }
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// Time of the wall clock, in nanoseconds since 1970.
    pub fn wall_clock_ns(&self) -> u64 {
        self.host.start_time_ns.saturating_add(self.host.clock_ns)
    }

    /// A `struct timespec` in guest memory, in nanoseconds.
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
