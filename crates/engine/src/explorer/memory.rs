//! The memory limit: near it, the explorer spills states to disk and frees unused terms.

use super::*;
use everett_expr::Marking;
use everett_vm::{made_bytes, take_needed_bytes};
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
        let had_others = self.has_others();
        let is_enough = self.spill_near_limit(limit);
        self.measure_room();
        is_enough || self.narrow_team() || had_others
    }

    /// Returns whether other workers explore the same program. What was measured before they left
    /// includes their memory.
    fn has_others(&self) -> bool {
        let member = self.member.as_ref().filter(|_| !self.is_world());
        member.is_some_and(Member::has_others)
    }

    /// Checks how much memory is in use, and spills states near the limit. Returns `false` if too
    /// much is left in memory.
    fn spill_near_limit(&mut self, limit: u64) -> bool {
        let used = self.config.memory.used();
        // Measuring takes longer than a short round, so it is done often only near the limit.
        self.rounds_left = if used < limit / 2 { 63 } else { 3 };
        // Memory that the last spill did not free will not be freed by the next one either.
        let floor = self.memory_floor.min(limit);
        let most = (limit / 10 * 7).max(floor + (limit - floor) / 4);
        if self.is_world() && self.spill.is_none() {
            return used < limit;
        }
        if used < most {
            return true;
        }
        if live_states(&self.frontier).nth(1).is_none() {
            // Spilling the only state would not help: it is rematerialised at once.
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

    /// Records how much memory is left up to the limit.
    pub(crate) fn measure_room(&mut self) {
        self.measure_room_for(0);
    }

    /// Records how much memory is left up to the limit. An instruction that needs more than the
    /// share of this worker gets it from what no worker was given.
    fn measure_room_for(&mut self, needed: u64) {
        let Some(limit) = self.config.limits.max_memory else {
            return;
        };
        let left = || limit.max(LEAST).saturating_sub(self.config.memory.used());
        self.room = match &self.member {
            Some(member) => member.take_room(needed, left),
            None => left(),
        };
        self.made_at_check = made_bytes();
        self.worker.vm.most_made = self.made_at_check.saturating_add(self.room);
    }

    /// Returns whether so much memory was allocated since the last check that a new one is due.
    pub(super) fn has_grown(&self) -> bool {
        let made = made_bytes() - self.made_at_check;
        made > self.room / GROWTH_PART
    }

    /// Returns how many instructions may run before the next check of memory.
    pub(crate) fn most_instructions(&self) -> u64 {
        let made = made_bytes() - self.made_at_check;
        (self.room.saturating_sub(made) / MEMORY_OF_INSTRUCTION).max(SHORT_SLICE)
    }

    /// Returns whether the limit may be reached. Measures again after much was allocated, because
    /// terms are not counted in between.
    pub(crate) fn is_out_of_room(&mut self) -> bool {
        if self.config.limits.max_memory.is_some() && self.has_grown() {
            self.measure_room();
            return self.room == 0;
        }
        made_bytes() - self.made_at_check > self.room
    }

    /// Tells the other workers how much of its room this worker may still use.
    pub(crate) fn tell_room(&self) {
        if let Some(member) = &self.member {
            member.keep_room(self.room.saturating_sub(made_bytes() - self.made_at_check));
        }
    }

    /// Spills all states other than the running one, because its instruction needs more memory than
    /// is left. Returns `false` if that has not helped.
    pub(crate) fn clear_room(&mut self) -> bool {
        let had_others = self.has_others();
        let needed = match take_needed_bytes() {
            0 => 0,
            needed => needed.saturating_add(ROOM_TO_SPILL),
        };
        let before = self.room.saturating_sub(made_bytes() - self.made_at_check);
        // What was freed since the last check counts again.
        self.measure_room_for(needed);
        if self.room > before.saturating_add(ROOM_TO_SPILL) {
            return true;
        }
        let spilled_before = self.statistics.spilled;
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
                break;
            }
        }
        let has_spilled = self.statistics.spilled > spilled_before;
        self.config.memory.release();
        self.measure_room_for(needed);
        if has_spilled {
            self.note_limit("max-memory");
        }
        let has_more = self.room > before.saturating_add(ROOM_TO_SPILL);
        has_spilled || has_more || self.narrow_team() || had_others
    }

    /// Makes all workers but the lead leave, if several workers together use too much memory.
    /// Returns `false` if that has not helped.
    fn narrow_team(&mut self) -> bool {
        match &self.member {
            Some(member) if !self.is_world() => member.narrow(),
            _ => false,
        }
    }

    /// Returns whether the memory that cannot be spilled is within the limit: the table of a world,
    /// or single states of a program. For programs, small limits allow a fixed amount for data
    /// other than states.
    fn fits(&self) -> bool {
        let limit = self.config.limits.max_memory.unwrap_or(u64::MAX);
        let most = if self.is_world() {
            limit
        } else {
            limit.max(LEAST)
        };
        self.memory_floor <= most
    }

    /// Spills all states but one in `part`, and keeps at most `entries` spilled states in the
    /// frontier.
    fn make_room(&mut self, part: usize, entries: usize) {
        self.spill_all_but(part);
        if self.is_stopping() {
            // The time that is left is needed for the last checkpoint.
            return;
        }
        if !self.is_world() {
            self.fill_backlog(entries);
        }
        self.sweep();
        self.config.memory.release();
        self.memory_floor = self.config.memory.used();
    }

    /// Spills all states but one in `part`.
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
        // States share most of their terms: a list of all of them may take more memory than all
        // states.
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

    /// Returns how many states the frontier may hold, because an entry of a spilled state uses
    /// memory, too.
    fn most_in_frontier(&self) -> usize {
        let limit = self.config.limits.max_memory.unwrap_or(u64::MAX);
        usize::try_from(limit / MEMORY_AN_ENTRY).unwrap_or(usize::MAX)
    }

    /// Moves spilled states from the frontier to the backlog if there are more than `most`, until
    /// half that number is left.
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

    /// Appends a list of spilled states to the backlog.
    pub(crate) fn put_last(&mut self, bundle: Bundle) {
        self.in_backlog += bundle.count as usize;
        self.backlog.push_back(bundle);
    }

    /// Moves states from the backlog to the frontier while it has room.
    pub(crate) fn take_from_backlog(&mut self) {
        self.take_from_backlog_up_to(self.most_in_frontier() / 4);
    }

    /// Moves all states from the backlog to the frontier.
    pub(crate) fn take_all_from_backlog(&mut self) {
        self.take_from_backlog_up_to(usize::MAX);
    }

    /// Moves states from the backlog to the frontier until that has `most` states.
    fn take_from_backlog_up_to(&mut self, most: usize) {
        while self.frontier.len() < most
            && let Some(bundle) = self.backlog.pop_front()
        {
            self.in_backlog -= bundle.count as usize;
            let Some(spill) = &self.spill else { return };
            match spill.unbundle(&bundle) {
                Ok(places) => {
                    let spilled = places.into_iter().map(Spilled::of_program);
                    for id in self
                        .frontier
                        .add_roots(spilled.map(Stored::Spilled).collect())
                    {
                        self.searcher.added(&self.frontier, id);
                    }
                }
                Err(error) => self.note_lost_bundle(&bundle, &error.to_string()),
            }
        }
    }

    /// Takes up states of a program from other workers. They are spilled at once, where they are
    /// traces, and not kept in memory.
    pub(crate) fn stow(&mut self, jobs: Vec<Job>) {
        for part in jobs.chunks(BUNDLE) {
            let are_states = part.iter().all(|job| matches!(job, Job::States(_)));
            let traces = part.iter().flat_map(Job::traces).cloned();
            let states = traces.map(|trace| State::starting(Path::following(trace)));
            let states: Vec<State> = states.collect();
            let Some(spill) = self.spill.as_mut().filter(|_| are_states) else {
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

    /// Returns the lists of spilled states that are not in the frontier.
    pub(crate) fn backlog(&self) -> impl Iterator<Item = &Bundle> {
        self.backlog.iter()
    }

    /// Calls a function with the inputs and choices that lead to each unexplored state of a
    /// program: tests that go on from there. States that cannot be read are left out.
    pub fn for_each_pending(&self, visit: &mut dyn FnMut(Trace)) {
        let mut places = Vec::new();
        for (_, stored) in self.frontier.iter() {
            match stored {
                Stored::Live(state) => visit(state.path.trace_under(&state.path.model)),
                Stored::Spilled(spilled) => places.push(spilled.at),
                Stored::Running => {}
            }
        }
        let Some(spill) = &self.spill else { return };
        for bundle in &self.backlog {
            places.extend(spill.unbundle(bundle).unwrap_or_default());
        }
        for trace in places.into_iter().filter_map(|at| spill.get(at).ok()) {
            visit(Trace {
                pending: None,
                ..trace
            });
        }
    }

    /// Returns the weight of all that is still to be explored.
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

/// Memory for data other than states that programs always get, whatever the limit.
const LEAST: u64 = 128 << 20;
/// Memory is checked again after one part in this many of what was left is used.
const GROWTH_PART: u64 = 8;
/// Maximum memory that an instruction allocates: two pages and their bookkeeping. Instructions that
/// write more ask first.
const MEMORY_OF_INSTRUCTION: u64 = 3 * 4096;
/// Minimum number of instructions between two checks.
const SHORT_SLICE: u64 = 1000;
/// Memory that is kept free for spilling, besides a part of the limit.
const ROOM_TO_SPILL: u64 = 2 << 20;
/// Number of states that are spilled between two checks of the clock: a state with a long path
/// condition takes a millisecond.
const SPILLED_TOGETHER: usize = 64;
/// Memory that is allowed for an entry of the frontier and for the searchers' data about it.
const MEMORY_AN_ENTRY: u64 = 1024;

/// Returns the states of the frontier that are in memory.
pub(super) fn live_states(frontier: &Frontier) -> impl Iterator<Item = (StateId, &State)> {
    frontier.iter().filter_map(|(id, stored)| match stored {
        Stored::Live(state) => Some((id, &**state)),
        Stored::Spilled(_) | Stored::Running => None,
    })
}

/// Returns the spilled states of the frontier, beginning with this id.
fn spilled_states(frontier: &Frontier, first: StateId) -> impl Iterator<Item = (StateId, SpillId)> {
    frontier
        .iter_from(first)
        .filter_map(|(id, stored)| match stored {
            Stored::Spilled(spilled) => Some((id, spilled.at)),
            Stored::Live(_) | Stored::Running => None,
        })
}
