//! Searchers that pick the state with the least key, such as the fewest faults; among equals, the
//! state that has waited longest.

use std::collections::{BTreeMap, BTreeSet};

use super::Searcher;
use crate::frontier::{Frontier, StateId, StateInfo};
use crate::random::Random;

/// Picks the state with the least key.
pub struct Ordered {
    key: fn(StateInfo) -> u64,
    queue: BTreeSet<(u64, u64, StateId)>,
    place: BTreeMap<StateId, (u64, u64)>,
    arrivals: u64,
}

impl Ordered {
    /// Creates a searcher with this key.
    pub fn new(key: fn(StateInfo) -> u64) -> Ordered {
        Ordered {
            key,
            queue: BTreeSet::new(),
            place: BTreeMap::new(),
            arrivals: 0,
        }
    }
}

impl Searcher for Ordered {
    fn added(&mut self, frontier: &Frontier, id: StateId) {
        self.arrivals += 1;
        let place = ((self.key)(frontier.info(id)), self.arrivals);
        self.place.insert(id, place);
        self.queue.insert((place.0, place.1, id));
    }

    fn removed(&mut self, id: StateId) {
        if let Some(place) = self.place.remove(&id) {
            self.queue.remove(&(place.0, place.1, id));
        }
    }

    fn updated(&mut self, frontier: &Frontier, id: StateId) {
        self.removed(id);
        self.added(frontier, id);
    }

    fn select(&mut self, _: &Frontier, _: &mut Random) -> Option<StateId> {
        self.queue.first().map(|entry| entry.2)
    }
}
