//! Estimates how long it takes to close a run (to spill the frontier and write the results), so
//! that the search stops early enough to meet its time limit.

use super::memory::live_states;
use super::*;
use crate::spill::BUNDLE;

impl Explorer<'_> {
    /// Estimates how long [`Explorer::save`] takes, by spilling samples of neighbouring states,
    /// which share most of their data. The first states of a sample are not timed: they write what
    /// all others share.
    fn leaving_time(&mut self) -> Duration {
        const RUNS: usize = 4;
        const FIRST: usize = 32;
        // States with long inputs take long to spill, and more samples would add nothing.
        const ENOUGH: Duration = Duration::from_millis(50);
        let Some(spill) = &mut self.spill else {
            return Duration::ZERO;
        };
        let live: Vec<&State> = live_states(&self.frontier).map(|(_, one)| one).collect();
        let (mut tried, mut time) = (0, Duration::ZERO);
        for run in live.chunks(live.len().div_ceil(RUNS).max(1)) {
            if time >= ENOUGH {
                break;
            }
            // Samples are as large as the batches of a checkpoint, so a state costs as much as it
            // will then.
            let (first, others) = run.split_at(run.len().min(FIRST));
            let others = &others[..others.len().min(BUNDLE)];
            let parts = if others.is_empty() {
                [others, first]
            } else {
                [first, others]
            };
            let mut start = Duration::ZERO;
            for part in parts {
                start = self.config.clock.now();
                let arena = &self.worker.arena;
                if spill.writer().put(part.iter().copied(), arena).is_err() {
                    // The error is reported when it matters.
                    return Duration::ZERO;
                }
            }
            time += self.config.clock.now().saturating_sub(start);
            tried += parts[1].len();
        }
        time.mul_f64(live.len() as f64 / tried.max(1) as f64)
    }

    /// Returns when the search has to stop to finish all later work within the time limit.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let limit = self.config.limits.max_time?;
        let elsewhere = self.member.as_ref().map_or(0, Member::elsewhere);
        let closing = self.closing.expected(self.frontier.len() + elsewhere);
        Some(limit.saturating_sub(closing + self.closing.after))
    }

    /// Measures again how long closing takes, if the result may have changed much.
    pub(super) fn mind_closing(&mut self, listener: &mut dyn Listener) {
        let Some(limit) = self.config.limits.max_time else {
            return;
        };
        let (states, now) = (self.frontier.len(), self.config.clock.now());
        let is_due = match self.closing.measured {
            None => true,
            Some(_) if states < CLOSING_FEW_STATES => false,
            // Long before the end no estimate is needed.
            Some(_) if now + 2 * self.closing.expected(states) < limit / 2 => false,
            Some((at, _)) => states >= at + at / 4 || now >= self.closing.measured_at + limit / 8,
        };
        if is_due {
            let leaving = self.leaving_time().mul_f64(CLOSING_MARGIN);
            let time = leaving + listener.closing_time(self);
            self.closing.measure(states, time);
            self.closing.measured_at = now;
        }
        self.closing.after = listener.time_after();
        let deadline = self.deadline();
        self.worker.solver.set_deadline(deadline);
    }
}

/// Margin for states that are added after the measurement, and for a machine that is slower by
/// then: states for which there is no time are not saved.
const CLOSING_MARGIN: f64 = 1.5;
/// Number of states below which the time to spill them is negligible.
const CLOSING_FEW_STATES: usize = 512;

/// The estimated time to close a run: to write the states that are left and the results.
#[derive(Default)]
pub(super) struct Closing {
    /// Time to close a run with hardly a state.
    fixed: Duration,
    /// The last measurement: number of states and time.
    measured: Option<(usize, Duration)>,
    /// When the last measurement was made.
    measured_at: Duration,
    /// Time reserved for the work after the search.
    after: Duration,
}

impl Closing {
    fn measure(&mut self, states: usize, time: Duration) {
        if self.measured.is_none() && states < CLOSING_FEW_STATES {
            self.fixed = time;
        }
        self.measured = Some((states, time));
    }

    /// Returns how long it will take with this many states.
    fn expected(&self, states: usize) -> Duration {
        match self.measured {
            Some((at, time)) if at >= CLOSING_FEW_STATES => {
                let each = time.saturating_sub(self.fixed).as_secs_f64() / at as f64;
                self.fixed + Duration::from_secs_f64(each * states as f64)
            }
            // A guess, until there is something to measure.
            _ => self.fixed + Duration::from_micros(10) * u32::try_from(states).unwrap_or(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_takes_longer_with_more_states() {
        let ms = Duration::from_millis;
        let mut closing = Closing::default();
        assert_eq!(closing.expected(0), ms(0));
        closing.measure(1, ms(30));
        assert_eq!(closing.expected(100), ms(31));
        closing.measure(1000, ms(130));
        assert_eq!(closing.expected(500), ms(80));
        assert_eq!(closing.expected(2000), ms(230));
        let mut resumed = Closing::default();
        resumed.measure(1000, ms(100));
        assert_eq!(resumed.expected(2000), ms(200));
    }
}
