//! Memory, and what is left to be explored.

use super::*;

impl Explorer<'_> {
    /// Near the memory limit, puts states away and lets go of terms that nothing uses any more.
    pub(super) fn mind_memory(&mut self) {
        let Some(limit) = self.config.limits.max_memory else {
            return;
        };
        if self.rounds_left > 0 {
            self.rounds_left -= 1;
            return;
        }
        let used = (self.config.memory_used)();
        // Asking takes longer than a short round, so it is done often only where it matters.
        self.rounds_left = if used < limit / 2 { 63 } else { 3 };
        // What putting away did not free, it will not free the next time either.
        let floor = self.memory_floor.min(limit);
        let most = (limit / 10 * 7).max(floor + (limit - floor) / 4);
        if used < most {
            return;
        }
        self.note_limit("max-memory");
        self.put_away();
        self.sweep();
        (self.config.release_memory)();
        self.memory_floor = (self.config.memory_used)();
    }

    /// Puts most states away.
    fn put_away(&mut self) {
        let Some(shelf) = &mut self.shelf else { return };
        let live: Vec<StateId> = live_paths(&self.frontier).map(|(id, _)| id).collect();
        let (_, most) = live.split_at(live.len() / 4);
        for part in most.chunks(PUT_AWAY_TOGETHER) {
            let paths = part.iter().filter_map(|id| self.frontier.get(*id)?.path());
            match shelf.put(paths) {
                Ok(places) => {
                    for (id, place) in part.iter().zip(places) {
                        self.frontier.take(*id);
                        self.frontier.put(*id, Stored::Away(place));
                        self.statistics.put_away += 1;
                    }
                }
                Err(error) => {
                    self.warnings
                        .push(format!("states cannot be put away: {error}"));
                    break;
                }
            }
        }
    }

    /// Lets go of terms that no state uses.
    fn sweep(&mut self) {
        let mut terms = Vec::new();
        for (_, stored) in self.frontier.iter() {
            let Stored::Live(state) = stored else {
                continue;
            };
            terms.extend(state.path.constraints.iter());
            terms.extend(state.path.preferences.iter().copied());
            if let Some(host) = &state.host {
                host.for_each_term(&mut |term| terms.push(term));
            }
        }
        self.solver.on_sweep();
        self.arena.sweep(terms.into_iter());
    }

    /// Writes all states that are still to be explored to the shelf, so that another search can begin with them.
    pub fn leave(&mut self) -> io::Result<Vec<ShelfId>> {
        let Some(shelf) = &mut self.shelf else {
            return Ok(Vec::new());
        };
        let away = self.frontier.iter().filter_map(|(_, stored)| match stored {
            Stored::Away(place) => Some(*place),
            _ => None,
        });
        let mut places: Vec<ShelfId> = away.collect();
        let live: Vec<&Path> = live_paths(&self.frontier).map(|(_, path)| path).collect();
        for part in live.chunks(PUT_AWAY_TOGETHER) {
            places.extend(shelf.put(part.iter().copied())?);
        }
        Ok(places)
    }

    /// How long [`Explorer::leave`] will take: it is tried with some of the states, in runs of neighbours since those
    /// share most.
    fn leaving_time(&mut self) -> Duration {
        const SAMPLE: usize = 2048;
        const RUNS: usize = 8;
        let Some(shelf) = &mut self.shelf else {
            return Duration::ZERO;
        };
        let start = (self.config.clock)();
        let live: Vec<&Path> = live_paths(&self.frontier).map(|(_, path)| path).collect();
        let step = live.len().div_ceil(RUNS).max(1);
        let (mut tried, mut failed) = (0, false);
        for run in live.chunks(step) {
            let sample = &run[..run.len().min(SAMPLE / RUNS)];
            failed |= shelf.put(sample.iter().copied()).is_err();
            tried += sample.len();
        }
        if failed || tried == 0 {
            // The error will be told when it matters.
            return Duration::ZERO;
        }
        let time = (self.config.clock)().saturating_sub(start);
        time.mul_f64(live.len() as f64 / tried as f64)
    }

    /// The weight of all that is still to be explored.
    pub fn pending_weight(&self) -> WeightSum {
        let mut sum = WeightSum::default();
        for (_, stored) in self.frontier.iter() {
            match stored {
                Stored::Live(state) => sum.add(state.path.weight),
                Stored::Away(place) => sum.add(Weight {
                    halvings: place.halvings,
                }),
                Stored::Running => {}
            }
        }
        sum
    }

    /// When the search has to stop, so that what comes after it is done at the limit.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let limit = self.config.limits.max_time?;
        Some(limit.saturating_sub(self.closing.expected(self.frontier.len())))
    }

    /// Asks how long closing takes, as often as the answer may have changed much.
    pub(super) fn mind_closing(&mut self, listener: &mut dyn Listener) {
        let Some(limit) = self.config.limits.max_time else {
            return;
        };
        let (states, now) = (self.frontier.len(), (self.config.clock)());
        let is_due = match self.closing.measured {
            None => true,
            Some(_) if states < CLOSING_FEW_STATES => false,
            // Nobody needs to know long before the end.
            Some(_) if now + 2 * self.closing.expected(states) < limit / 2 => false,
            Some((at, _)) => states >= at + at / 4 || now >= self.closing.measured_at + limit / 8,
        };
        if is_due {
            let leaving = self.leaving_time().mul_f64(CLOSING_MARGIN);
            let time = leaving + listener.closing_time(self);
            self.closing.measure(states, time);
            self.closing.measured_at = now;
        }
        let deadline = self.deadline();
        self.solver.set_deadline(deadline);
    }
}

/// States that are put away in one go: they are told one by another, and in memory until all are written.
const PUT_AWAY_TOGETHER: usize = 1024;
/// States become more and longer after the closing of a run was measured.
const CLOSING_MARGIN: f64 = 1.1;
/// Fewer states take no time worth mentioning.
const CLOSING_FEW_STATES: usize = 512;

/// The paths of states that are in memory.
fn live_paths(frontier: &Frontier) -> impl Iterator<Item = (StateId, &Path)> {
    let live = |(id, stored): (StateId, _)| Some((id, Stored::path(stored)?));
    frontier.iter().filter_map(live)
}

/// How long it takes to close a run: to write down what is left, and what was found.
#[derive(Default)]
pub(super) struct Closing {
    /// How long with hardly a state.
    fixed: Duration,
    /// At how many states it was measured last, and what it was.
    measured: Option<(usize, Duration)>,
    /// When that was.
    measured_at: Duration,
}

impl Closing {
    fn measure(&mut self, states: usize, time: Duration) {
        if self.measured.is_none() && states < CLOSING_FEW_STATES {
            self.fixed = time;
        }
        self.measured = Some((states, time));
    }

    /// How long it will take with this many states.
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
