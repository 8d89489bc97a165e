//! The search order of worlds. By default the state with the least clock is next. A searcher picks a state, and one of its
//! dstates is brought to its end: before each of its states run those from which it may still receive something.

use super::*;
use crate::mapping::DstateId;

/// Steps of one dstate before the searcher is asked again: it may have no end.
const PATIENCE: u32 = 1 << 12;
/// Picks of a searcher before the state with the least clock is taken.
const TRIES: u32 = 64;

/// Which dstate is brought to its end.
pub struct SearchOrder {
    /// A searcher decides, not the clock.
    by_searcher: bool,
    /// The dstate, and for how many steps.
    under_way: Option<(DstateId, u32)>,
}

impl SearchOrder {
    /// By a searcher, or by the clock.
    pub fn by(by_searcher: bool) -> SearchOrder {
        SearchOrder {
            by_searcher,
            under_way: None,
        }
    }

    /// A searcher decides.
    pub fn is_by_searcher(&self) -> bool {
        self.by_searcher
    }
}

/// The position of a state in the queue.
pub(super) type QueuePlace = (u64, HostIndex, StateId);

impl Explorer<'_> {
    /// Adds a state that can run to the searcher.
    pub(super) fn offer(&mut self, id: StateId) {
        if self.world.order.by_searcher {
            self.searcher.added(&self.frontier, id);
        }
    }

    /// Removes a state from the searcher.
    pub(super) fn withdraw(&mut self, id: StateId) {
        if self.world.order.by_searcher {
            self.searcher.removed(id);
        }
    }

    /// The next state and the time of its next event.
    pub(super) fn turn(&mut self) -> Option<QueuePlace> {
        let first = self.world.queue.first().copied()?;
        if !self.world.order.by_searcher {
            return Some(first);
        }
        let Some(mut next) = self.first_under_way().or_else(|| self.pick()) else {
            return Some(first);
        };
        while let Some(earlier) = self.first_beside(next.2).filter(|other| *other < next) {
            next = earlier;
        }
        // No state passes a time at which invariants are evaluated or a host starts, nor the last one.
        let looked_at = self.world.times.first().copied();
        let last = [
            self.config.limits.max_virtual_ns,
            looked_at,
            self.next_start_ns(),
        ];
        let is_beyond = last.iter().flatten().any(|last| next.0 > *last);
        Some(if is_beyond { first } else { next })
    }

    /// The first state of the dstate under way, if that has not ended.
    fn first_under_way(&mut self) -> Option<QueuePlace> {
        let (dstate, steps) = self.world.order.under_way?;
        self.world.order.under_way = steps.checked_sub(1).map(|left| (dstate, left));
        let members = self.world.table.members(dstate);
        let first = members.filter_map(|id| self.place_of(id)).min();
        first.filter(|(next_ns, _, _)| *next_ns < u64::MAX)
    }

    /// Asks the searcher which dstate is next.
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

    /// The first of the states from which a state may still receive something.
    pub(super) fn first_beside(&self, id: StateId) -> Option<QueuePlace> {
        if !self.world.order.by_searcher {
            // With all clocks in one order it is enough to look at the first.
            let mut others = self.world.queue.iter().filter(|(_, _, other)| *other != id);
            return others.next().copied();
        }
        let others = self.world.table.beside(id);
        others.filter_map(|other| self.place_of(other)).min()
    }
}
