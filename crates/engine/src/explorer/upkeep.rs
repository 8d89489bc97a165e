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
        let live: Vec<StateId> = self
            .frontier
            .iter()
            .filter(|(_, stored)| matches!(stored, Stored::Live(_)))
            .map(|(id, _)| id)
            .collect();
        for id in live.iter().skip(live.len() / 4) {
            let Some(Stored::Live(state)) = self.frontier.take(*id) else {
                continue;
            };
            let trace = state.path.pending_trace(&mut Sharing::default());
            match shelf.put(&trace) {
                Ok(place) => {
                    self.frontier.put(*id, Stored::Away(place));
                    self.statistics.put_away += 1;
                }
                Err(error) => {
                    self.warnings
                        .push(format!("states cannot be put away: {error}"));
                    self.frontier.put(*id, Stored::Live(state));
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

    /// All states that are still to be explored. Their traces share what the states share.
    pub fn pending(&self) -> Unexplored {
        let mut pending = Unexplored::default();
        let mut sharing = Sharing::default();
        for (_, stored) in self.frontier.iter() {
            match stored {
                Stored::Live(state) => {
                    let trace = state.path.pending_trace(&mut sharing);
                    pending.traces.push(trace);
                }
                Stored::Away(place) => pending.away.push(*place),
                Stored::Running => {}
            }
        }
        pending
    }

    /// Some of these states, in runs of neighbours since those share most: about as many as asked for.
    pub fn pending_sample(&self, count: usize) -> Unexplored {
        const RUNS: usize = 8;
        let (run, step) = (count.div_ceil(RUNS), self.frontier.len().div_ceil(RUNS));
        let mut sample = Unexplored::default();
        let mut sharing = Sharing::default();
        for (number, (_, stored)) in self.frontier.iter().enumerate() {
            match stored {
                _ if number % step.max(1) >= run => {}
                Stored::Live(state) => sample.traces.push(state.path.pending_trace(&mut sharing)),
                Stored::Away(place) => sample.away.push(*place),
                Stored::Running => {}
            }
        }
        sample
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
            let time = listener.closing_time(self);
            self.closing.measure(states, time);
            self.closing.measured_at = now;
        }
        let deadline = self.deadline();
        self.solver.set_deadline(deadline);
    }
}

/// Fewer states take no time worth mentioning.
const CLOSING_FEW_STATES: usize = 512;

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
