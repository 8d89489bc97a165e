//! The rate of the wall clock and what else `adjtimex` sets. Monotonic clocks keep the
//! rate of the virtual clock, so that no timer changes by it.

/// Parts of a nanosecond in which the deviation of a second is counted.
const PARTS: i128 = 1 << 16;
/// Parts in a second.
const SECOND: i128 = PARTS * 1_000_000_000;
/// Microseconds of a tick (a hundredth of a second) at the right rate.
pub const TICK_US: i64 = 10_000;
/// The largest error that the kernel knows, in microseconds: nobody has set the clock.
pub const LARGEST_ERROR: i64 = 16_000_000;

/// `status` of `adjtimex`: nobody keeps the clock right.
pub const UNSYNCHRONISED: u32 = 0x40;

/// What `adjtimex` sets and tells.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ClockRate {
    /// Virtual time from which on the rate holds.
    since_ns: u64,
    /// By how many parts a second is longer than it should be.
    excess: i64,
    /// Frequency, in 2^-16 ppm.
    pub frequency: i64,
    /// Microseconds of a tick.
    pub tick_us: i64,
    /// `STA_` flags.
    pub status: u32,
    /// The largest possible error when it was set, in microseconds.
    pub largest_error: i64,
    /// Virtual time when it was set: it grows since then.
    pub error_since_ns: u64,
    /// The estimated error, in microseconds.
    pub estimated_error: i64,
    /// The time constant of the phase-locked loop.
    pub constant: i64,
    /// Seconds between TAI and UTC.
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
    /// By how much the wall clock is ahead at this virtual time of one that goes right.
    pub fn ahead_ns(&self, at_ns: u64) -> i64 {
        let passed = i128::from(at_ns) - i128::from(self.since_ns);
        (passed * i128::from(self.excess)).div_euclid(SECOND) as i64
    }

    /// The first virtual time at which a clock of this rate shows what
    /// one that goes right shows at `right_ns`.
    pub fn when(&self, right_ns: u64) -> u64 {
        let excess = i128::from(self.excess);
        let parts = i128::from(right_ns) * SECOND + i128::from(self.since_ns) * excess;
        let rate = SECOND + excess;
        u64::try_from((parts + rate - 1).div_euclid(rate)).unwrap_or(0)
    }

    /// Goes on at the rate of frequency and tick from here.
    pub fn begin(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
        let of_tick = (self.tick_us - TICK_US) * 100 * 1000 * PARTS as i64;
        self.excess = of_tick + self.frequency * 1000;
    }

    /// The largest possible error now, in microseconds: 500 more each second.
    pub fn largest_error_at(&self, now_ns: u64) -> i64 {
        let seconds = now_ns.saturating_sub(self.error_since_ns) / 1_000_000_000;
        let grown = i64::try_from(seconds)
            .unwrap_or(i64::MAX)
            .saturating_mul(500);
        self.largest_error.saturating_add(grown).min(LARGEST_ERROR)
    }

    /// `STA_` flags now: a clock that nobody has set for long is not right.
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
        // 100 ppm of the frequency, and as much of the tick.
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
