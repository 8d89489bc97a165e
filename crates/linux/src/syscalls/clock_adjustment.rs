//! `adjtimex` and `clock_adjtime`, by which time synchronisation daemons adjust the clock.

use everett_vm::Value;

use super::time::{REALTIME, SECOND};
use crate::capabilities::SYS_TIME;
use crate::clock_rate::{LARGEST_ERROR, TICK_US, UNSYNCHRONISED};
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel};
use crate::table::ArgKind::{Int, Pointer};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("adjtimex", 159, &[Pointer], &[], adjtimex).without(WITHOUT),
    Row::new("clock_adjtime", 305, &[Int, Pointer], &[], clock_adjtime).without(WITHOUT),
];

const WITHOUT: &str =
    "`adjtime`, the phase-locked loop, leap seconds; monotonic clocks keep their rate";

/// Bytes of a `struct timex`.
const SIZE: usize = 208;
/// `STA_NANO`: times are in nanoseconds.
const NANOSECONDS: u32 = 0x2000;
/// `STA_CLOCKERR`.
const CLOCK_ERROR: u32 = 0x1000;
/// The result if the clock is not synchronised (`TIME_ERROR`).
const TIME_ERROR: u64 = 5;
/// 500 ppm, in 2^-16 ppm.
const MOST_FREQUENCY: i64 = 500 << 16;

mod mode {
    pub const OFFSET: u32 = 1;
    pub const FREQUENCY: u32 = 2;
    pub const LARGEST_ERROR: u32 = 4;
    pub const ESTIMATED_ERROR: u32 = 8;
    pub const STATUS: u32 = 0x10;
    pub const CONSTANT: u32 = 0x20;
    pub const TAI: u32 = 0x80;
    pub const STEP: u32 = 0x100;
    pub const MICROSECONDS: u32 = 0x1000;
    pub const NANOSECONDS: u32 = 0x2000;
    pub const TICK: u32 = 0x4000;
    /// `adjtime`; with [`NANOSECONDS`] it only reads.
    pub const GRADUALLY: u32 = 0x8000;
}

/// Offsets of the fields of a `struct timex`.
mod field {
    pub const OFFSET: usize = 8;
    pub const FREQUENCY: usize = 16;
    pub const LARGEST_ERROR: usize = 24;
    pub const ESTIMATED_ERROR: usize = 32;
    pub const STATUS: usize = 40;
    pub const CONSTANT: usize = 48;
    pub const PRECISION: usize = 56;
    pub const TOLERANCE: usize = 64;
    pub const SECONDS: usize = 72;
    pub const FRACTION: usize = 80;
    pub const TICK: usize = 88;
    /// Fields for a pulse-per-second source, which the model does not have.
    pub const PULSES: std::ops::Range<usize> = 96..160;
    pub const TAI: usize = 160;
}

/// A `struct timex`.
struct Timex([u8; SIZE]);

impl Timex {
    fn word(&self, at: usize) -> i64 {
        self.0[at..]
            .first_chunk()
            .map_or(0, |word| i64::from_le_bytes(*word))
    }

    fn half(&self, at: usize) -> u32 {
        self.0[at..]
            .first_chunk()
            .map_or(0, |half| u32::from_le_bytes(*half))
    }

    fn set(&mut self, at: usize, value: i64) {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn set_half(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn modes(&self) -> u32 {
        self.half(0)
    }

    fn has(&self, mode: u32) -> bool {
        self.modes() & mode != 0
    }

    /// Whether it requests `adjtime`.
    fn is_gradual(&self) -> bool {
        self.has(mode::GRADUALLY)
    }

    /// Checks the requested changes.
    fn check(&self, may_set: bool) -> Result<(), Errno> {
        let only_asks = match self.is_gradual() {
            true if !self.has(mode::OFFSET) => return Err(Errno::EINVAL),
            true => self.has(mode::NANOSECONDS),
            false => self.modes() == 0,
        };
        if !only_asks && !may_set {
            return Err(Errno::EPERM);
        }
        let range = TICK_US * 9 / 10..=TICK_US * 11 / 10;
        if !self.is_gradual() && self.has(mode::TICK) && !range.contains(&self.word(field::TICK)) {
            return Err(Errno::EINVAL);
        }
        let unit = if self.has(mode::NANOSECONDS) {
            SECOND
        } else {
            1_000_000
        };
        if self.has(mode::STEP) && !(0..unit as i64).contains(&self.word(field::FRACTION)) {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    /// Nanoseconds by which it steps the clock.
    fn step_ns(&self) -> i64 {
        let unit = if self.has(mode::NANOSECONDS) { 1 } else { 1000 };
        let seconds = self.word(field::SECONDS).saturating_mul(SECOND as i64);
        seconds.saturating_add(self.word(field::FRACTION) * unit)
    }
}

fn adjtimex(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.adjust_clock(call.args[0])
}

fn clock_adjtime(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.read_bytes(call.args[1], SIZE as u64)?;
    if call.int(0) != REALTIME {
        kernel.base_of_clock(call.int(0))?;
        return Err(Errno::EOPNOTSUPP.into());
    }
    kernel.adjust_clock(call.args[1])
}

impl Kernel<'_, '_> {
    fn adjust_clock(&mut self, address: u64) -> Answer {
        let bytes = self.read_bytes(address, SIZE as u64)?;
        let mut timex = Timex(*bytes.first_chunk().ok_or(Errno::EFAULT)?);
        timex.check(self.is_capable(SYS_TIME))?;
        self.check(address, SIZE as u64, true)?;
        if timex.has(mode::STEP) {
            let now = self.wall_clock_ns();
            let to = now
                .checked_add_signed(timex.step_ns())
                .ok_or(Errno::EINVAL)?;
            self.set_wall_clock(to)?;
        }
        if !timex.is_gradual() {
            self.set_clock_rate(&timex);
        } else if !timex.has(mode::NANOSECONDS) && timex.word(field::OFFSET) != 0 {
            self.refuse("adjtimex", "adjtime");
        }
        self.tell_clock(&mut timex);
        self.write_bytes(address, &timex.0)?;
        let status = timex.half(field::STATUS);
        let is_wrong = status & (UNSYNCHRONISED | CLOCK_ERROR) != 0;
        Ok(Value::concrete(if is_wrong { TIME_ERROR } else { 0 }))
    }

    /// Sets the parameters that the modes select.
    fn set_clock_rate(&mut self, timex: &Timex) {
        /// `STA_` flags that only the kernel sets.
        const KERNELS: u32 = 0xff00;
        const LOCKED_LOOP: u32 = 1;
        const LEAPS: u32 = 0x30;
        let now = self.host.clock_ns;
        let mut rate = *self.host.clock_rate;
        rate.status = rate.status_at(now);
        if timex.has(mode::STATUS) {
            let wanted = timex.half(field::STATUS);
            rate.status = rate.status & KERNELS | wanted & !KERNELS;
            if wanted & LEAPS != 0 {
                self.refuse("adjtimex", "a leap second");
            }
        }
        if timex.has(mode::NANOSECONDS) {
            rate.status |= NANOSECONDS;
        }
        if timex.has(mode::MICROSECONDS) {
            rate.status &= !NANOSECONDS;
        }
        if timex.has(mode::FREQUENCY) {
            let wanted = timex.word(field::FREQUENCY);
            rate.frequency = wanted.clamp(-MOST_FREQUENCY, MOST_FREQUENCY);
        }
        if timex.has(mode::LARGEST_ERROR) {
            rate.largest_error = timex.word(field::LARGEST_ERROR).clamp(0, LARGEST_ERROR);
            rate.error_since_ns = now;
        }
        if timex.has(mode::ESTIMATED_ERROR) {
            rate.estimated_error = timex.word(field::ESTIMATED_ERROR).clamp(0, LARGEST_ERROR);
        }
        if timex.has(mode::CONSTANT) {
            let finer = if rate.status & NANOSECONDS == 0 { 4 } else { 0 };
            rate.constant = (timex.word(field::CONSTANT).clamp(0, 10) + finer).min(10);
        }
        if timex.has(mode::TAI) && (0..=100_000).contains(&timex.word(field::CONSTANT)) {
            rate.tai = timex.word(field::CONSTANT) as i32;
        }
        if timex.has(mode::TICK) {
            rate.tick_us = timex.word(field::TICK);
        }
        let has_phase = timex.has(mode::OFFSET) && rate.status & LOCKED_LOOP != 0;
        if has_phase && timex.word(field::OFFSET) != 0 {
            self.refuse("adjtimex", "the phase-locked loop of the clock");
        }
        self.change_clock_rate(rate);
    }

    /// Writes the state of the clock.
    fn tell_clock(&self, timex: &mut Timex) {
        let now = self.host.clock_ns;
        let rate = &self.host.clock_rate;
        let wall = self.wall_clock_ns();
        let status = rate.status_at(now);
        let unit = if status & NANOSECONDS == 0 { 1000 } else { 1 };
        timex.set(field::OFFSET, 0);
        timex.set(field::FREQUENCY, rate.frequency);
        timex.set(field::LARGEST_ERROR, rate.largest_error_at(now));
        timex.set(field::ESTIMATED_ERROR, rate.estimated_error);
        timex.set_half(field::STATUS, status);
        timex.set(field::CONSTANT, rate.constant);
        timex.set(field::PRECISION, 1);
        timex.set(field::TOLERANCE, MOST_FREQUENCY);
        timex.set(field::SECONDS, (wall / SECOND) as i64);
        timex.set(field::FRACTION, (wall % SECOND / unit) as i64);
        timex.set(field::TICK, rate.tick_us);
        timex.0[field::PULSES].fill(0);
        timex.set_half(field::TAI, rate.tai as u32);
    }
}
