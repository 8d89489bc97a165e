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
        self.rounds_left = if used < limit / 2 { 255 } else { 7 };
        // What putting away did not free, it will not free the next time either.
        let floor = self.memory_floor.min(limit);
        let most = (limit / 10 * 8).max(floor + (limit - floor) / 2);
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
            match shelf.put(&state.path.pending_trace()) {
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

    /// Traces of all states that are still to be explored.
    pub fn pending(&mut self) -> Vec<Trace> {
        let mut traces = Vec::new();
        let mut away = Vec::new();
        for (_, stored) in self.frontier.iter() {
            match stored {
                Stored::Live(state) => traces.push(state.path.pending_trace()),
                Stored::Away(place) => away.push(*place),
                Stored::Running => {}
            }
        }
        for place in away {
            match self.shelf.as_mut().map(|shelf| shelf.get(place)) {
                Some(Ok(trace)) => traces.push(trace),
                _ => self
                    .warnings
                    .push("a state that was put away is lost".to_owned()),
            }
        }
        traces
    }

    /// The weight of all that is still to be explored.
    pub fn pending_weight(&mut self) -> WeightSum {
        let mut sum = WeightSum::default();
        let mut away = Vec::new();
        for (_, stored) in self.frontier.iter() {
            match stored {
                Stored::Live(state) => sum.add(state.path.weight),
                Stored::Away(place) => away.push(*place),
                Stored::Running => {}
            }
        }
        for place in away {
            // One that is lost has no weight here; it is told where its trace is needed.
            let trace = self.shelf.as_mut().and_then(|shelf| shelf.get(place).ok());
            let pending = trace.and_then(|trace| trace.pending);
            if let Some(pending) = pending {
                let halvings = pending.halvings;
                sum.add(Weight { halvings });
            }
        }
        sum
    }
}
