//! The coverage searcher: picks states at random, and prefers states near code that was never
//! executed and states that covered new code recently.

use super::Searcher;
use crate::frontier::{Frontier, StateId, StateInfo};
use crate::random::Random;

/// Picks states at random, in proportion to a weight for each state. A Fenwick tree holds sums over
/// ranges of states, so that picking and changing take logarithmic time.
#[derive(Default)]
pub struct CoverageGuided {
    weights: Vec<f64>,
    sums: Vec<f64>,
    changes: u32,
}

/// Returns the weight of a state: large near code that was never executed, and soon after new
/// coverage.
fn weight(info: StateInfo) -> f64 {
    let near = if info.distance == u32::MAX {
        1e-4
    } else {
        1.0 / f64::from(info.distance + 1)
    };
    let recent = 1.0 / (info.since_new.saturating_sub(1000).max(1)) as f64;
    near * near + recent * recent
}

impl CoverageGuided {
    /// Sets the weight of a state and updates the sums.
    fn set(&mut self, id: StateId, weight: f64) {
        let at = id.0 as usize;
        if self.weights.len() <= at {
            self.weights
                .resize((at + 1).next_power_of_two().max(64), 0.0);
            self.rebuild();
        }
        let change = weight - self.weights[at];
        self.weights[at] = weight;
        self.changes += 1;
        if self.changes > 1 << 20 {
            // Rebuilding the sums removes the rounding errors of many small changes.
            return self.rebuild();
        }
        let mut index = at + 1;
        while index <= self.weights.len() {
            self.sums[index] += change;
            index += index & index.wrapping_neg();
        }
    }

    /// Computes all sums from the weights.
    fn rebuild(&mut self) {
        self.changes = 0;
        let count = self.weights.len();
        self.sums = vec![0.0; count + 1];
        for index in 1..=count {
            self.sums[index] += self.weights[index - 1];
            let parent = index + (index & index.wrapping_neg());
            if parent <= count {
                self.sums[parent] += self.sums[index];
            }
        }
    }
}

impl Searcher for CoverageGuided {
    fn added(&mut self, frontier: &Frontier, id: StateId) {
        self.set(id, weight(frontier.info(id)));
    }

    fn removed(&mut self, id: StateId) {
        self.set(id, 0.0);
    }

    fn updated(&mut self, frontier: &Frontier, id: StateId) {
        self.set(id, weight(frontier.info(id)));
    }

    fn select(&mut self, frontier: &Frontier, random: &mut Random) -> Option<StateId> {
        let count = self.weights.len();
        let total = self.sums.get(count).copied().unwrap_or(0.0);
        let mut rest = random.unit() * total;
        let mut at = 0;
        let mut step = count;
        while step > 0 {
            if at + step <= count && self.sums[at + step] < rest {
                at += step;
                rest -= self.sums[at];
            }
            step /= 2;
        }
        // Rounding can lead past the end or to a state that was removed.
        match self.weights.get(at) {
            Some(weight) if *weight > 0.0 => Some(StateId(at as u32)),
            _ => frontier.random_leaf(random),
        }
    }
}
