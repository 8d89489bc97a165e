//! Picks the state that runs next, according to the search order.

use super::*;
use crate::world::order::{By, QueuePlace};

/// Number of steps of one dstate before the searcher picks again: the dstate may never end.
const PATIENCE: u32 = 1 << 12;

/// Number of picks of a searcher before the state with the least clock is taken.
const TRIES: u32 = 64;

impl Explorer<'_> {
    /// Adds a state that can run to the searcher.
    pub(super) fn offer(&mut self, id: StateId) {
        if self.world.order.is_by_searcher() {
            self.searcher.added(&self.frontier, id);
        }
    }

    /// Removes a state from the searcher.
    pub(super) fn withdraw(&mut self, id: StateId) {
        if self.world.order.is_by_searcher() {
            self.searcher.removed(id);
        }
    }

    /// Returns the next state and the time of its next event.
    pub(super) fn turn(&mut self) -> Option<QueuePlace> {
        let first = self.world.queue.first().copied()?;
        let picked = match self.world.order.by {
            By::Clock => return Some(first),
            By::Searcher => self.first_under_way().or_else(|| self.pick()),
            By::Dstate => self.first_under_way().or_else(|| self.newest()),
        };
        let Some(mut next) = picked else {
            self.bring_to_end(first);
            return Some(first);
        };
        while let Some(earlier) = self.first_beside(next.2).filter(|other| *other < next) {
            next = earlier;
        }
        // No state passes a time at which invariants are evaluated or a host starts, nor the limit
        // of virtual time.
        let check_ns = self.world.times.first().copied();
        let last = [
            self.config.limits.max_virtual_ns,
            check_ns,
            self.next_start_ns(),
        ];
        let is_beyond = last.iter().flatten().any(|last| next.0 > *last);
        if is_beyond {
            self.bring_to_end(first);
            return Some(first);
        }
        Some(next)
    }

    /// Makes a dstate of this state the one that runs to its end, if dstates run one after the
    /// other.
    fn bring_to_end(&mut self, (_, _, id): QueuePlace) {
        if self.world.order.by == By::Dstate {
            let dstate = self.world.table.dstates_of(id).pop();
            self.world.order.under_way = dstate.map(|dstate| (dstate, PATIENCE));
        }
    }

    /// Returns the first state of the newest dstate that can run.
    fn newest(&mut self) -> Option<QueuePlace> {
        while let Some(dstate) = self.world.order.newer.pop() {
            self.world.order.under_way = Some((dstate, PATIENCE));
            if let Some(first) = self.first_under_way() {
                return Some(first);
            }
        }
        None
    }

    /// Returns the states that are needed last, to spill them; one in `part` is kept.
    pub(crate) fn least_needed(&mut self, part: usize) -> Vec<StateId> {
        if !self.world.mapping.shares_states() {
            self.world.order.save_memory();
        }
        let under_way = self.world.order.under_way.map(|(dstate, _)| dstate);
        let needed: BTreeSet<StateId> = match under_way {
            Some(dstate) => self.world.table.members(dstate).collect(),
            None => BTreeSet::new(),
        };
        let by_clock = self.world.queue.iter().map(|(_, _, id)| *id);
        let mut live: Vec<StateId> = match self.world.order.by {
            By::Dstate => self.frontier.iter().map(|(id, _)| id).collect(),
            By::Clock | By::Searcher => by_clock.rev().collect(),
        };
        live.retain(|id| self.frontier.live(*id).is_some() && !needed.contains(id));
        live.truncate(live.len() - live.len() / part);
        // Neighbouring states in the file have more in common.
        live.sort_unstable();
        live
    }

    /// Returns the first state of the dstate that runs to its end, if that can still run.
    fn first_under_way(&mut self) -> Option<QueuePlace> {
        let (dstate, steps) = self.world.order.under_way?;
        self.world.order.under_way = steps.checked_sub(1).map(|left| (dstate, left));
        let members = self.world.table.members(dstate);
        let first = members.filter_map(|id| self.place_of(id)).min();
        first.filter(|(next_ns, _, _)| *next_ns < u64::MAX)
    }

    /// Lets the searcher pick the next dstate.
    fn pick(&mut self) -> Option<QueuePlace> {
        let mut picked = None;
        for _ in 0..TRIES {
            picked = self.searcher.select(&self.frontier, &mut self.random);
            let can_run = |id| {
                self.world
                    .places
                    .get(&id)
                    .is_some_and(|(next_ns, _)| *next_ns < u64::MAX)
            };
            if picked.is_none_or(can_run) {
                break;
            }
            picked = None;
        }
        let newest = self.world.table.dstates_of(picked?).pop();
        self.world.order.under_way = newest.map(|dstate| (dstate, PATIENCE));
        self.first_under_way()
    }

    fn place_of(&self, id: StateId) -> Option<QueuePlace> {
        let (next, host) = self.world.places.get(&id)?;
        Some((*next, *host, id))
    }

    /// Returns the first of the states from which a state may still receive something.
    pub(super) fn first_beside(&self, id: StateId) -> Option<QueuePlace> {
        let table = &self.world.table;
        match self.world.order.by {
            // All clocks are in one order, so only the first matters.
            By::Clock => {
                let mut others = self.world.queue.iter().filter(|(_, _, other)| *other != id);
                others.next().copied()
            }
            By::Searcher => {
                let others = table.beside(id);
                others.filter_map(|other| self.place_of(other)).min()
            }
            // Within a dstate, events are in the order of clocks, as if there were no other
            // dstates.
            By::Dstate => {
                let dstates = table.dstates_of(id).into_iter();
                let members = dstates.flat_map(|dstate| table.members(dstate));
                let others = members.filter(|other| *other != id);
                others.filter_map(|other| self.place_of(other)).min()
            }
        }
    }
}
