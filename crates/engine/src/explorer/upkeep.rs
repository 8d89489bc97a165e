//! Memory, and what is left to be explored.

use super::*;

impl Explorer<'_> {
    /// Near the memory limit, puts states away and lets go of terms that nothing uses any more.
    pub(super) fn mind_memory(&mut self) {
        let Some(limit) = self.config.limits.max_memory else {
            return;
        };
        // Putting states away takes memory, too.
        let limit = limit - (limit / 32 + ROOM_TO_PUT_AWAY).min(limit / 4);
        if self.rounds_left > 0 && self.forks_left > 0 {
            self.rounds_left -= 1;
            return;
        }
        self.forks_left = FORKS_A_BATCH;
        let used = self.config.memory.used();
        // Asking takes longer than a short round, so it is done often only where it matters.
        self.rounds_left = if used < limit / 2 { 63 } else { 3 };
        // What putting away did not free, it will not free the next time either.
        let floor = self.memory_floor.min(limit);
        let most = (limit / 10 * 7).max(floor + (limit - floor) / 4);
        if used < most {
            return;
        }
        self.note_limit("max-memory");
        self.make_room(4, self.most_in_frontier());
        if self.memory_floor > limit / 10 * 8 {
            self.make_room(64, self.most_in_frontier() / 8);
        }
    }

    /// Keeps one of `part` states, and places for `places` that are put away.
    fn make_room(&mut self, part: usize, places: usize) {
        self.put_away(part);
        self.put_into_backlog(places);
        self.sweep();
        self.config.memory.release();
        self.memory_floor = self.config.memory.used();
    }

    /// Puts all states away but one of `part`.
    fn put_away(&mut self, part: usize) {
        let Some(shelf) = &mut self.shelf else { return };
        let live: Vec<StateId> = live_paths(&self.frontier).map(|(id, _)| id).collect();
        let (_, most) = live.split_at(live.len() / part);
        for part in most.chunks(BUNDLE) {
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
        self.worker.solver.on_sweep();
        self.worker.arena.sweep(terms.into_iter());
    }

    /// How many states have a place in the frontier, where they take memory although they are put away.
    fn most_in_frontier(&self) -> usize {
        let limit = self.config.limits.max_memory.unwrap_or(u64::MAX);
        usize::try_from(limit / MEMORY_A_PLACE).unwrap_or(usize::MAX)
    }

    /// Where more states are put away than so many, only half of so many keep their places in the frontier.
    fn put_into_backlog(&mut self, most: usize) {
        if self.frontier.away() <= most {
            return;
        }
        let mut next = StateId(0);
        while self.frontier.away() > most / 2 {
            let Some(shelf) = &mut self.shelf else { return };
            let away = places_away(&self.frontier, next).take(BUNDLE);
            let (ids, places): (Vec<StateId>, Vec<ShelfId>) = away.unzip();
            let Some(last) = ids.last() else { return };
            next = *last;
            match shelf.bundle(&places) {
                Ok(bundle) => self.put_last(bundle),
                Err(error) => {
                    self.warnings
                        .push(format!("states cannot be put away: {error}"));
                    return;
                }
            }
            for id in ids {
                self.frontier.remove(id);
                self.searcher.removed(id);
            }
        }
    }

    pub(super) fn put_last(&mut self, bundle: Bundle) {
        self.in_backlog += bundle.count as usize;
        self.backlog.push_back(bundle);
    }

    /// Where there is much room in the frontier, states that were put away get places again.
    pub(super) fn take_from_backlog(&mut self) {
        while self.frontier.len() < self.most_in_frontier() / 4
            && let Some(bundle) = self.backlog.pop_front()
        {
            self.in_backlog -= bundle.count as usize;
            let Some(shelf) = &self.shelf else { return };
            match shelf.unbundle(&bundle) {
                Ok(places) => {
                    for id in self.frontier.add_roots(places) {
                        self.searcher.added(&self.frontier, id);
                    }
                }
                // Their weight never becomes finished, so the run is not complete.
                Err(error) => self.warnings.push(format!(
                    "what was put away is lost, {} states: {error}",
                    bundle.count
                )),
            }
        }
    }

    /// Writes all states that are still to be explored to the shelf, so that another search can begin with them.
    pub fn leave(&mut self) -> io::Result<Vec<Bundle>> {
        let Some(shelf) = &mut self.shelf else {
            return Ok(Vec::new());
        };
        let mut bundles: Vec<Bundle> = self.backlog.iter().cloned().collect();
        let mut away = places_away(&self.frontier, StateId(0)).map(|(_, place)| place);
        loop {
            let part: Vec<ShelfId> = away.by_ref().take(BUNDLE).collect();
            if part.is_empty() {
                break;
            }
            bundles.push(shelf.bundle(&part)?);
        }
        let live: Vec<&Path> = live_paths(&self.frontier).map(|(_, path)| path).collect();
        for part in live.chunks(BUNDLE) {
            let places = shelf.put(part.iter().copied())?;
            bundles.push(shelf.bundle(&places)?);
        }
        Ok(bundles)
    }

    /// How long [`Explorer::leave`] will take: it is tried with some of the states, in runs of neighbours since those
    /// share most. The first of a run are not timed: what they share with all the others is written with them.
    fn leaving_time(&mut self) -> Duration {
        const RUNS: usize = 8;
        let Some(shelf) = &mut self.shelf else {
            return Duration::ZERO;
        };
        let live: Vec<&Path> = live_paths(&self.frontier).map(|(_, path)| path).collect();
        let (mut tried, mut time) = (0, Duration::ZERO);
        for run in live.chunks(live.len().div_ceil(RUNS).max(1)) {
            let (first, others) = run.split_at(run.len().min(BUNDLE));
            let others = &others[..others.len().min(BUNDLE)];
            let parts = if others.is_empty() {
                [others, first]
            } else {
                [first, others]
            };
            let mut start = Duration::ZERO;
            for part in parts {
                start = self.config.clock.now();
                if shelf.put(part.iter().copied()).is_err() {
                    // The error will be told when it matters.
                    return Duration::ZERO;
                }
            }
            time += self.config.clock.now().saturating_sub(start);
            tried += parts[1].len();
        }
        time.mul_f64(live.len() as f64 / tried.max(1) as f64)
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
        for bundle in &self.backlog {
            sum.add_sum(&bundle.weight().unwrap_or_default());
        }
        sum
    }

    /// When the search has to stop, so that what comes after it is done at the limit.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let limit = self.config.limits.max_time?;
        let closing = self.closing.expected(self.frontier.len());
        Some(limit.saturating_sub(closing + self.closing.after))
    }

    /// Asks how long closing takes, as often as the answer may have changed much.
    pub(super) fn mind_closing(&mut self, listener: &mut dyn Listener) {
        let Some(limit) = self.config.limits.max_time else {
            return;
        };
        let (states, now) = (self.frontier.len(), self.config.clock.now());
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
        self.closing.after = listener.time_after();
        let deadline = self.deadline();
        self.worker.solver.set_deadline(deadline);
    }
}

/// States that are put away in one go: they are told one by another, and in memory until all are written.
const BUNDLE: usize = 256;
/// Memory that is kept free for putting states away, besides a part of the limit.
const ROOM_TO_PUT_AWAY: u64 = 2 << 20;
/// Memory that is allowed for a place in the frontier: it and what searchers know take a part of this.
const MEMORY_A_PLACE: u64 = 1024;
/// States become more and longer after the closing of a run was measured.
const CLOSING_MARGIN: f64 = 1.1;
/// Fewer states take no time worth mentioning.
const CLOSING_FEW_STATES: usize = 512;

/// The paths of states that are in memory.
fn live_paths(frontier: &Frontier) -> impl Iterator<Item = (StateId, &Path)> {
    let live = |(id, stored): (StateId, _)| Some((id, Stored::path(stored)?));
    frontier.iter().filter_map(live)
}

/// Where states are that are put away, beginning with the state of this number.
fn places_away(frontier: &Frontier, first: StateId) -> impl Iterator<Item = (StateId, ShelfId)> {
    frontier
        .iter_from(first)
        .filter_map(|(id, stored)| match stored {
            Stored::Away(place) => Some((id, *place)),
            Stored::Live(_) | Stored::Running => None,
        })
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
    /// What is wanted after it.
    after: Duration,
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
