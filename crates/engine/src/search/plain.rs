//! Searchers that use only the age of states or a random number: DFS, BFS, random path, random
//! state.

use std::collections::VecDeque;

use super::Searcher;
use crate::frontier::{Frontier, StateId};
use crate::random::Random;

/// Picks the newest state.
#[derive(Default)]
pub struct DepthFirst {
    stack: Vec<StateId>,
}

impl Searcher for DepthFirst {
    fn added(&mut self, _: &Frontier, id: StateId) {
        self.stack.push(id);
    }

    fn removed(&mut self, id: StateId) {
        if let Some(at) = self.stack.iter().rposition(|other| *other == id) {
            self.stack.remove(at);
        }
    }

    fn updated(&mut self, _: &Frontier, _: StateId) {}

    fn select(&mut self, _: &Frontier, _: &mut Random) -> Option<StateId> {
        self.stack.last().copied()
    }
}

/// Picks the state that has waited longest.
#[derive(Default)]
pub struct BreadthFirst {
    queue: VecDeque<StateId>,
}

impl Searcher for BreadthFirst {
    fn added(&mut self, _: &Frontier, id: StateId) {
        self.queue.push_back(id);
    }

    fn removed(&mut self, id: StateId) {
        if let Some(at) = self.queue.iter().position(|other| *other == id) {
            self.queue.remove(at);
        }
    }

    fn updated(&mut self, _: &Frontier, id: StateId) {
        self.removed(id);
        self.queue.push_back(id);
    }

    fn select(&mut self, _: &Frontier, _: &mut Random) -> Option<StateId> {
        self.queue.front().copied()
    }
}

/// Picks a state by a random walk down the tree of forks: both sides of a fork are equally likely,
/// however many states are below each.
pub struct RandomPath;

impl Searcher for RandomPath {
    fn added(&mut self, _: &Frontier, _: StateId) {}

    fn removed(&mut self, _: StateId) {}

    fn updated(&mut self, _: &Frontier, _: StateId) {}

    fn select(&mut self, frontier: &Frontier, random: &mut Random) -> Option<StateId> {
        frontier.random_leaf(random)
    }
}

/// Picks a random state, each with equal probability.
#[derive(Default)]
pub struct RandomState {
    states: Vec<StateId>,
    position: Vec<u32>,
}

impl Searcher for RandomState {
    fn added(&mut self, _: &Frontier, id: StateId) {
        let at = id.0 as usize;
        if self.position.len() <= at {
            self.position.resize(at + 1, 0);
        }
        self.position[at] = self.states.len() as u32;
        self.states.push(id);
    }

    fn removed(&mut self, id: StateId) {
        let at = self.position[id.0 as usize] as usize;
        self.states.swap_remove(at);
        if let Some(moved) = self.states.get(at) {
            self.position[moved.0 as usize] = at as u32;
        }
    }

    fn updated(&mut self, _: &Frontier, _: StateId) {}

    fn select(&mut self, _: &Frontier, random: &mut Random) -> Option<StateId> {
        let count = self.states.len() as u64;
        (count > 0).then(|| self.states[(random.next_u64() % count) as usize])
    }
}
