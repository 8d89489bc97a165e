//! The memory limit: near it, the explorer spills states to disk and frees unused terms.

use super::*;
use everett_expr::Marking;
use everett_vm::made_bytes;
use std::io;

use crate::frontier::Spilled;
use crate::spill::{BUNDLE, SpillId};
use crate::weight::Weight;

impl Explorer<'_> {
    /// Near the memory limit, spills states and frees unused terms.
    /// Returns `false` if that is not enough.
    pub(super) fn enforce_memory_limit(&mut self) -> bool {
        let Some(limit) = self.config.limits.max_memory else {
            return true;
        };
        // Spilling takes memory, too.
        let limit = limit - (limit / 32 + ROOM_TO_SPILL).min(limit / 4);
        if self.rounds_left > 0 && self.forks_left > 0 && !self.has_grown() {
            self.rounds_left -= 1;
            return true;
        }
        self.forks_left = FORKS_A_BATCH;
        let is_enough = self.spill_near_limit(limit);
        self.measure_room();
        is_enough || self.narrow_team()
    }

    /// Looks how much memory is in use, and spills states if that is much.
    fn spill_near_limit(&mut self, limit: u64) -> bool {
        let used = self.config.memory.used();
        // Asking takes longer than a short round, so it is done often only near the limit.
        self.rounds_left = if used < limit / 2 { 63 } else { 3 };
        // What spilling did not free, it will not free the next time either.
        let floor = self.memory_floor.min(limit);
        let most = (limit / 10 * 7).max(floor + (limit - floor) / 4);
        if self.is_world() && self.spill.is_none() {
            return used < limit;
        }
        if used < most {
            return true;
        }
        if live_states(&self.frontier).nth(1).is_none() {
            // To spill the only state would not help: it is taken up again at once.
            self.config.memory.release();
            self.memory_floor = self.config.memory.used();
            return self.fits();
        }
        self.note_limit("max-memory");
        self.make_room(4, self.most_in_frontier());
        if self.memory_floor > limit / 10 * 8 {
            self.make_room(64, self.most_in_frontier() / 8);
        }
        self.fits()
    }

    /// Notes how much memory is left up to the limit.
    fn measure_room(&mut self) {
        let Some(limit) = self.config.limits.max_memory else {
            return;
        };
        let left = limit.max(LEAST).saturating_sub(self.config.memory.used());
        let workers = self.member.as_ref().map_or(1, Member::workers);
        self.room = left / workers as u64;
        self.made_at_check = made_bytes();
        self.worker.vm.most_made = self.made_at_check.saturating_add(self.room);
    }

    /// So much memory was taken since it was looked at that it is time to look again.
    pub(super) fn has_grown(&self) -> bool {
        let made = made_bytes() - self.made_at_check;
        made > self.room / GROWTH_PART
    }

    /// How many instructions may run before memory is looked at again.
    pub(crate) fn most_instructions(&self) -> u64 {
        let made = made_bytes() - self.made_at_check;
        (self.room.saturating_sub(made) / MEMORY_OF_INSTRUCTION).max(SHORT_SLICE)
    }

    /// Whether the limit may be reached. Looks at memory again where much was taken: terms take
    /// some, too, which is not counted.
    pub(crate) fn is_out_of_room(&mut self) -> bool {
        if self.config.limits.max_memory.is_some() && self.has_grown() {
            self.measure_room();
            return self.room == 0;
        }
        made_bytes() - self.made_at_check > self.room
    }

    /// An instruction of the state that runs takes more memory than there is. Spills all other
    /// states. Returns `false` if there are none.
    pub(crate) fn clear_room(&mut self) -> bool {
        let before = self.room.saturating_sub(made_bytes() - self.made_at_check);
        let live: Vec<StateId> = match self.spill {
            Some(_) => live_states(&self.frontier).map(|(id, _)| id).collect(),
            None => Vec::new(),
        };
        for part in live.chunks(SPILLED_TOGETHER) {
            if self.is_stopping() {
                break;
            }
            if let Err(error) = self.spill_states(part) {
                self.warn(format!("states cannot be spilled: {error}"));
            }
        }
        self.config.memory.release();
        self.measure_room();
        if !live.is_empty() {
            self.note_limit("max-memory");
        }
        !live.is_empty() || self.room > before + ROOM_TO_SPILL || self.narrow_team()
    }

    /// Where several workers have too much memory together, all but the lead leave. Returns
    /// `false` if that has not helped.
    fn narrow_team(&mut self) -> bool {
        match &self.member {
            Some(member) if !self.is_world() => member.narrow(),
            _ => false,
        }
    }

    /// Whether what cannot be spilled is within the limit: the table of a world, or single states
    /// of a program. For programs small limits leave room for what is no state.
    fn fits(&self) -> bool {
        let limit = self.config.limits.max_memory.unwrap_or(u64::MAX);
        let most = if self.is_world() {
            limit
        } else {
            limit.max(LEAST)
        };
        self.memory_floor <= most
    }

    /// Keeps one of `part` states in memory, and `entries` spilled ones in the frontier.
    fn make_room(&mut self, part: usize, entries: usize) {
        self.spill_all_but(part);
        if self.is_stopping() {
            // The time that is left is for the last checkpoint.
            return;
        }
        if !self.is_world() {
            self.fill_backlog(entries);
        }
        self.sweep();
        self.config.memory.release();
        self.memory_floor = self.config.memory.used();
    }

    /// Spills all states but one of `part`.
    fn spill_all_but(&mut self, part: usize) {
        let most = match self.is_world() {
            true => self.least_needed(part),
            false => {
                let live: Vec<StateId> = live_states(&self.frontier).map(|(id, _)| id).collect();
                live[live.len() / part..].to_vec()
            }
        };
        for part in most.chunks(SPILLED_TOGETHER) {
            if self.is_stopping() {
                break;
            }
            if let Err(error) = self.spill_states(part) {
                self.warn(format!("states cannot be spilled: {error}"));
                break;
            }
        }
    }

    /// Spills these states, which are in memory.
    fn spill_states(&mut self, ids: &[StateId]) -> io::Result<()> {
        let Some(spill) = &mut self.spill else {
            return Ok(());
        };
        let arena = &self.worker.arena;
        let states = ids.iter().filter_map(|id| self.frontier.live(*id));
        let places = spill.writer().put(states, arena)?;
        for (id, place) in ids.iter().zip(places) {
            if let Some(Stored::Live(state)) = self.frontier.take(*id) {
                let spilled = Spilled::of(place, &state);
                self.frontier.put(*id, Stored::Spilled(spilled));
                self.statistics.spilled += 1;
            }
        }
        Ok(())
    }

    /// Frees terms that no state uses.
    fn sweep(&mut self) {
        // States share most of their terms: a list of all of them may take more than all states.
        let mut marking = Marking::new(&self.worker.arena);
        for (_, stored) in self.frontier.iter() {
            match stored {
                Stored::Live(state) => state.for_each_term(&mut marking),
                Stored::Spilled(spilled) => {
                    let shown = spilled.net.iter().flat_map(|net| &net.exposed);
                    let shown = shown.flat_map(|data| data.values());
                    shown.for_each(|bytes| bytes.visit_terms(&mut marking));
                }
                Stored::Running => {}
            }
        }
        let marks = marking.finish();
        self.world.forget_verdicts();
        self.worker.solver.on_sweep();
        self.worker.arena.sweep_unmarked(&marks);
    }

    /// How many states the frontier may hold: a spilled state takes memory there, too.
    fn most_in_frontier(&self) -> usize {
        let limit = self.config.limits.max_memory.unwrap_or(u64::MAX);
        usize::try_from(limit / MEMORY_AN_ENTRY).unwrap_or(usize::MAX)
    }

    /// If the frontier has more than this number of spilled states, moves
    /// all but half of it to the backlog.
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
            match spill.writer().bundle(&places) {
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

    pub(crate) fn put_last(&mut self, bundle: Bundle) {
        self.in_backlog += bundle.count as usize;
        self.backlog.push_back(bundle);
    }

    /// Moves states from the backlog to the frontier where there is room.
    pub(crate) fn take_from_backlog(&mut self) {
        self.take_from_backlog_up_to(self.most_in_frontier() / 4);
    }

    /// Moves all states from the backlog to the frontier.
    pub(crate) fn take_all_from_backlog(&mut self) {
        self.take_from_backlog_up_to(usize::MAX);
    }

    fn take_from_backlog_up_to(&mut self, most: usize) {
        while self.frontier.len() < most
            && let Some(bundle) = self.backlog.pop_front()
        {
            self.in_backlog -= bundle.count as usize;
            let Some(spill) = &self.spill else { return };
            match spill.unbundle(&bundle) {
                Ok(places) => {
                    let places = places.into_iter().map(Spilled::of_program).collect();
                    for id in self.frontier.add_roots(places) {
                        self.searcher.added(&self.frontier, id);
                    }
                }
                Err(error) => self.note_lost_bundle(&bundle, &error.to_string()),
            }
        }
    }

    /// Takes up states of a program without keeping them in memory, where they are traces.
    pub(crate) fn stow(&mut self, jobs: Vec<Job>) {
        for part in jobs.chunks(BUNDLE) {
            let traces = part.iter().filter_map(|job| match job {
                Job::State(trace) => Some(Arc::new((**trace).clone())),
                Job::Worlds(_) => None,
            });
            let states = traces.map(|trace| State::starting(Path::following(trace)));
            let states: Vec<State> = states.collect();
            let Some(spill) = self.spill.as_mut().filter(|_| states.len() == part.len()) else {
                self.take_jobs(part.to_vec());
                continue;
            };
            let writer = spill.writer();
            let places = writer.put(states.iter(), &self.worker.arena);
            match places.and_then(|places| writer.bundle(&places)) {
                Ok(bundle) => self.put_last(bundle),
                Err(error) => {
                    self.warn(format!("states cannot be spilled: {error}"));
                    self.take_jobs(part.to_vec());
                }
            }
        }
    }

    /// Spilled states that have no place in the frontier.
    pub(crate) fn backlog(&self) -> impl Iterator<Item = &Bundle> {
        self.backlog.iter()
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
                Stored::Spilled(spilled) => sum.add(Weight {
                    halvings: spilled.at.halvings,
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

/// Memory that programs get for data other than states, whatever the limit.
const LEAST: u64 = 128 << 20;
/// Memory is checked again after this part of what is left was used.
const GROWTH_PART: u64 = 8;
/// The most memory that an instruction takes: two pages and what is kept about them.
/// Those that write more ask first.
const MEMORY_OF_INSTRUCTION: u64 = 3 * 4096;
/// The least instructions between two checks.
const SHORT_SLICE: u64 = 1000;
/// Memory that is kept free for spilling, besides a part of the limit.
const ROOM_TO_SPILL: u64 = 2 << 20;
/// States that are spilled between two looks at the clock: one with a long path condition takes a
/// millisecond.
const SPILLED_TOGETHER: usize = 64;
/// Memory that is allowed for an entry of the frontier and what searchers know about it.
const MEMORY_AN_ENTRY: u64 = 1024;

/// States that are in memory.
pub(super) fn live_states(frontier: &Frontier) -> impl Iterator<Item = (StateId, &State)> {
    frontier.iter().filter_map(|(id, stored)| match stored {
        Stored::Live(state) => Some((id, &**state)),
        Stored::Spilled(_) | Stored::Running => None,
    })
}

/// Spilled states, beginning with this id.
fn spilled_states(frontier: &Frontier, first: StateId) -> impl Iterator<Item = (StateId, SpillId)> {
    frontier
        .iter_from(first)
        .filter_map(|(id, stored)| match stored {
            Stored::Spilled(spilled) => Some((id, spilled.at)),
            Stored::Live(_) | Stored::Running => None,
        })
}
