//! The rate of the wall clock and the other parameters of `adjtimex`. Monotonic clocks keep the
//! rate of the virtual clock, so timers are not affected.

/// Parts per nanosecond. The deviation of a second is counted in these parts.
const PARTS: i128 = 1 << 16;
/// Parts in a second.
const SECOND: i128 = PARTS * 1_000_000_000;
/// Microseconds of a tick (a hundredth of a second) at the nominal rate.
pub const TICK_US: i64 = 10_000;
/// The time between two ticks of the system, which is the resolution of coarse clocks.
pub const SYSTEM_TICK_NS: u64 = 4_000_000;
/// The largest error that the kernel reports, in microseconds: the clock was never set.
pub const LARGEST_ERROR: i64 = 16_000_000;

/// `STA_UNSYNC` in the `status` of `adjtimex`: nothing synchronises the clock.
pub const UNSYNCHRONISED: u32 = 0x40;

/// The parameters that `adjtimex` sets and reports.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ClockRate {
    /// Virtual time since which this rate applies.
    since_ns: u64,
    /// Deviation of a second from its nominal length, in parts.
    excess: i64,
    /// Frequency, in 2^-16 ppm.
    pub frequency: i64,
    /// Microseconds of a tick.
    pub tick_us: i64,
    /// `STA_` flags.
    pub status: u32,
    /// The largest possible error when it was set, in microseconds.
    pub largest_error: i64,
    /// Virtual time when the largest error was set; the error grows since then.
    pub error_since_ns: u64,
    /// The estimated error, in microseconds.
    pub estimated_error: i64,
    /// The time constant of the phase-locked loop.
    pub constant: i64,
    /// Offset of TAI from UTC, in seconds.
    pub tai: i32,
}

impl Default for ClockRate {
    fn default() -> ClockRate {
        ClockRate {
            since_ns: 0,
            excess: 0,
            frequency: 0,
            tick_us: TICK_US,
            status: UNSYNCHRONISED,
            largest_error: LARGEST_ERROR,
            error_since_ns: 0,
            estimated_error: LARGEST_ERROR,
            constant: 2,
            tai: 0,
        }
    }
}

impl ClockRate {
    /// How far the wall clock is ahead of a clock with the nominal rate at this virtual time.
    pub fn ahead_ns(&self, at_ns: u64) -> i64 {
        let passed = i128::from(at_ns) - i128::from(self.since_ns);
        (passed * i128::from(self.excess)).div_euclid(SECOND) as i64
    }

    /// The first virtual time at which this clock shows what a clock with the nominal rate shows at
    /// `right_ns`.
    pub fn when(&self, right_ns: u64) -> u64 {
        let excess = i128::from(self.excess);
        let parts = i128::from(right_ns) * SECOND + i128::from(self.since_ns) * excess;
        let rate = SECOND + excess;
        u64::try_from((parts + rate - 1).div_euclid(rate)).unwrap_or(0)
    }

    /// The last tick of the system before this virtual time: the time that coarse clocks show. A
    /// change of the clock counts as a tick.
    pub fn last_tick(&self, now_ns: u64) -> u64 {
        (now_ns - now_ns % SYSTEM_TICK_NS).max(self.since_ns)
    }

    /// Applies the current frequency and tick from this virtual time on.
    pub fn begin(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
        let of_tick = (self.tick_us - TICK_US) * 100 * 1000 * PARTS as i64;
        self.excess = of_tick + self.frequency * 1000;
    }

    /// The largest possible error now, in microseconds. It grows by 500 each second.
    pub fn largest_error_at(&self, now_ns: u64) -> i64 {
        let seconds = now_ns.saturating_sub(self.error_since_ns) / 1_000_000_000;
        let grown = i64::try_from(seconds)
            .unwrap_or(i64::MAX)
            .saturating_mul(500);
        self.largest_error.saturating_add(grown).min(LARGEST_ERROR)
    }

    /// `STA_` flags now: a clock that was not set for a long time counts as unsynchronised.
    pub fn status_at(&self, now_ns: u64) -> u32 {
        if self.largest_error_at(now_ns) >= LARGEST_ERROR {
            self.status | UNSYNCHRONISED
        } else {
            self.status
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_clock_with_another_rate_are_found_again() {
        let second = 1_000_000_000;
        let mut rate = ClockRate {
            frequency: 100 << 16,
            tick_us: TICK_US + 1,
            ..ClockRate::default()
        };
        rate.begin(5 * second);
        assert_eq!(rate.ahead_ns(5 * second), 0);
        // 100 ppm from the frequency, and as much from the tick.
        assert_eq!(rate.ahead_ns(6 * second), 200_000);
        for at in [5 * second, 6 * second, 7 * second + 123] {
            let shown = at.wrapping_add_signed(rate.ahead_ns(at));
            assert_eq!(rate.when(shown), at);
        }
        rate.frequency = -(500 << 16);
        rate.tick_us = TICK_US;
        rate.begin(0);
        assert_eq!(rate.ahead_ns(2 * second), -1_000_000);
        assert_eq!(rate.when(2 * second - 1_000_000), 2 * second);
        let right = ClockRate::default();
        assert_eq!((right.ahead_ns(77), right.when(77)), (0, 77));
    }

    #[test]
    fn errors_grow_until_the_clock_is_not_right() {
        let mut rate = ClockRate::default();
        assert_eq!(rate.status_at(0), UNSYNCHRONISED);
        rate.largest_error = 1000;
        rate.status = 0;
        assert_eq!(rate.largest_error_at(3_000_000_000), 2500);
        assert_eq!(rate.status_at(3_000_000_000), 0);
        assert_eq!(rate.status_at(u64::MAX), UNSYNCHRONISED);
    }
}
