//! The memory limit: states are spilled to disk, and what is left is written when a run stops.

use super::*;
use std::io;

use crate::spill::SpillId;
use crate::weight::Weight;

impl Explorer<'_> {
    /// Near the memory limit, spills states and frees terms that nothing uses any more.
    pub(super) fn mind_memory(&mut self) {
        let Some(limit) = self.config.limits.max_memory else {
            return;
        };
        if self.is_world() {
            return;
        }
        // Spilling takes memory, too.
        let limit = limit - (limit / 32 + ROOM_TO_SPILL).min(limit / 4);
        if self.rounds_left > 0 && self.forks_left > 0 {
            self.rounds_left -= 1;
            return;
        }
        self.forks_left = FORKS_A_BATCH;
        let used = self.config.memory.used();
        // Asking takes longer than a short round, so it is done often only near the limit.
        self.rounds_left = if used < limit / 2 { 63 } else { 3 };
        // What spilling did not free, it will not free the next time either.
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

    /// Keeps one of `part` states in memory, and `entries` spilled ones in the frontier.
    fn make_room(&mut self, part: usize, entries: usize) {
        self.spill_all_but(part);
        self.fill_backlog(entries);
        self.sweep();
        self.config.memory.release();
        self.memory_floor = self.config.memory.used();
    }

    /// Spills all states but one of `part`.
    fn spill_all_but(&mut self, part: usize) {
        let Some(spill) = &mut self.spill else { return };
        let live: Vec<StateId> = live_paths(&self.frontier).map(|(id, _)| id).collect();
        let (_, most) = live.split_at(live.len() / part);
        for part in most.chunks(BUNDLE) {
            let paths = part.iter().filter_map(|id| self.frontier.get(*id)?.path());
            match spill.put(paths) {
                Ok(places) => {
                    for (id, place) in part.iter().zip(places) {
                        self.frontier.take(*id);
                        self.frontier.put(*id, Stored::Spilled(place));
                        self.statistics.spilled += 1;
                    }
                }
                Err(error) => {
                    self.warnings
                        .push(format!("states cannot be spilled: {error}"));
                    break;
                }
            }
        }
    }

    /// Frees terms that no state uses.
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

    /// How many states the frontier may hold: a spilled state takes memory there, too.
    fn most_in_frontier(&self) -> usize {
        let limit = self.config.limits.max_memory.unwrap_or(u64::MAX);
        usize::try_from(limit / MEMORY_AN_ENTRY).unwrap_or(usize::MAX)
    }

    /// Where the frontier has more spilled states than so many, moves all but half of them to the backlog.
    fn fill_backlog(&mut self, most: usize) {
        if self.frontier.spilled() <= most {
            return;
        }
        let mut next = StateId(0);
        while self.frontier.spilled() > most / 2 {
            let Some(spill) = &mut self.spill else { return };
            let spilled = spilled_states(&self.frontier, next).take(BUNDLE);
            let (ids, places): (Vec<StateId>, Vec<SpillId>) = spilled.unzip();
            let Some(last) = ids.last() else { return };
            next = *last;
            match spill.bundle(&places) {
                Ok(bundle) => self.put_last(bundle),
                Err(error) => {
                    self.warnings
                        .push(format!("states cannot be spilled: {error}"));
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

    /// Moves states from the backlog to the frontier where there is room.
    pub(super) fn take_from_backlog(&mut self) {
        while self.frontier.len() < self.most_in_frontier() / 4
            && let Some(bundle) = self.backlog.pop_front()
        {
            self.in_backlog -= bundle.count as usize;
            let Some(spill) = &self.spill else { return };
            match spill.unbundle(&bundle) {
                Ok(places) => {
                    for id in self.frontier.add_roots(places) {
                        self.searcher.added(&self.frontier, id);
                    }
                }
                // Their weight never becomes finished, so the run is not complete.
                Err(error) => self
                    .warnings
                    .push(format!("{} spilled states are lost: {error}", bundle.count)),
            }
        }
    }

    /// Writes all states that are still to be explored to the spill file, so that another search can begin with them.
    pub fn leave(&mut self) -> io::Result<Vec<Bundle>> {
        let Some(spill) = &mut self.spill else {
            return Ok(Vec::new());
        };
        let mut bundles: Vec<Bundle> = self.backlog.iter().cloned().collect();
        let mut spilled = spilled_states(&self.frontier, StateId(0)).map(|(_, place)| place);
        loop {
            let part: Vec<SpillId> = spilled.by_ref().take(BUNDLE).collect();
            if part.is_empty() {
                break;
            }
            bundles.push(spill.bundle(&part)?);
        }
        let live: Vec<&Path> = live_paths(&self.frontier).map(|(_, path)| path).collect();
        for part in live.chunks(BUNDLE) {
            let places = spill.put(part.iter().copied())?;
            bundles.push(spill.bundle(&places)?);
        }
        Ok(bundles)
    }

    /// The weight of all that is still to be explored.
    pub fn pending_weight(&self) -> WeightSum {
        if self.is_world() {
            return self.pending_worlds();
        }
        let mut sum = WeightSum::default();
        for (_, stored) in self.frontier.iter() {
            match stored {
                Stored::Live(state) => sum.add(state.path.weight),
                Stored::Spilled(place) => sum.add(Weight {
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
}

/// States that are spilled together: each is stored as its difference from the one before.
pub(super) const BUNDLE: usize = 256;
/// Memory that is kept free for spilling, besides a part of the limit.
const ROOM_TO_SPILL: u64 = 2 << 20;
/// Memory that is allowed for an entry of the frontier and what searchers know about it.
const MEMORY_AN_ENTRY: u64 = 1024;
/// The paths of states that are in memory.
pub(super) fn live_paths(frontier: &Frontier) -> impl Iterator<Item = (StateId, &Path)> {
    let live = |(id, stored): (StateId, _)| Some((id, Stored::path(stored)?));
    frontier.iter().filter_map(live)
}

/// Spilled states, beginning with this id.
fn spilled_states(frontier: &Frontier, first: StateId) -> impl Iterator<Item = (StateId, SpillId)> {
    frontier
        .iter_from(first)
        .filter_map(|(id, stored)| match stored {
            Stored::Spilled(place) => Some((id, *place)),
            Stored::Live(_) | Stored::Running => None,
        })
}
