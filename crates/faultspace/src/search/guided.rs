//! Algorithm 1 of AFEX: fitness-guided generation of the next test.

use std::collections::{HashMap, VecDeque};

use super::{Issued, Search};
use crate::numbers::Numbers;
use crate::settings::Guided;
use crate::space::{Point, Space};

/// Number of tries to find new offspring before a random scenario is taken instead.
const TRIES: u32 = 64;

/// A test that can have offspring.
struct Parent {
    point: Point,
    /// The fitness, which decreases with age.
    fitness: f64,
    /// The test retires when its fitness falls below this value.
    retires_at: f64,
}

/// The guided search. Pending tests are proposed but not yet learned; the history is all proposed
/// tests.
pub(super) struct GuidedSearch {
    settings: Guided,
    numbers: Numbers,
    issued: Issued,
    /// Q_priority of Algorithm 1.
    priority: Vec<Parent>,
    /// The axis that was mutated, for each pending test.
    pending: HashMap<u64, usize>,
    /// For each axis, the fitness of the last tests in which it was mutated.
    gains: Vec<VecDeque<f64>>,
}

impl GuidedSearch {
    pub(super) fn new(space: &Space, settings: &Guided, numbers: Numbers) -> GuidedSearch {
        GuidedSearch {
            settings: settings.clone(),
            numbers,
            issued: Issued::default(),
            priority: Vec::new(),
            pending: HashMap::new(),
            gains: vec![VecDeque::new(); space.names().len()],
        }
    }

    /// Lines 1 to 14: mutates a test of high fitness into one that was not proposed before.
    fn offspring(&mut self, space: &Space) -> Option<(Point, usize)> {
        let shares = self.shares();
        for _ in 0..TRIES {
            let fitness = self.priority.iter().map(|parent| parent.fitness);
            let parent = self.numbers.weighted(fitness)?;
            let mut point = self.priority[parent].point.clone();
            let axes = space.axes(&point);
            let weights = (0..axes.len()).map(|axis| match axes[axis].values.len() {
                1 => 0.0,
                _ => shares[space.name_of(point.subspace, axis)],
            });
            let Some(axis) = self.numbers.weighted(weights) else {
                continue;
            };
            let count = axes[axis].values.len();
            point.indices[axis] = self.mutate(point.indices[axis], count);
            if self.issued.take(space, &point) {
                let name = space.name_of(point.subspace, axis);
                return Some((point, name));
            }
        }
        None
    }

    /// Lines 8 and 9: a discrete Gaussian around the old value, within the axis.
    fn mutate(&mut self, old: u64, count: u64) -> u64 {
        let deviation = (count as f64 * self.settings.sigma).max(0.5);
        for _ in 0..TRIES {
            let moved = (self.numbers.normal() * deviation).round();
            let new = old as f64 + moved;
            if moved != 0.0 && (0.0..count as f64).contains(&new) {
                return new as u64;
            }
        }
        self.numbers.below(count)
    }

    /// Returns the normalised sensitivity of each axis, with a minimum share so that no axis is
    /// given up.
    fn shares(&self) -> Vec<f64> {
        let sums: Vec<f64> = self.gains.iter().map(|gains| gains.iter().sum()).collect();
        let total: f64 = sums.iter().sum();
        let least = self.settings.least_share;
        let share = |sum: &f64| match total > 0.0 {
            true => (sum / total).max(least),
            false => 1.0,
        };
        let shares: Vec<f64> = sums.iter().map(share).collect();
        let total: f64 = shares.iter().sum();
        shares.iter().map(|share| share / total).collect()
    }

    /// Ages the tests: fitness decreases, and tests that were good long ago retire.
    fn age(&mut self) {
        for parent in &mut self.priority {
            parent.fitness *= self.settings.ageing;
        }
        self.priority
            .retain(|parent| parent.fitness >= parent.retires_at);
    }

    /// Drops a test, more likely one with low fitness.
    fn drop_one(&mut self) {
        let weights = self
            .priority
            .iter()
            .map(|parent| 1.0 / parent.fitness.max(f64::MIN_POSITIVE));
        if let Some(at) = self.numbers.weighted(weights) {
            self.priority.swap_remove(at);
        }
    }
}

impl Search for GuidedSearch {
    fn next(&mut self, space: &Space) -> Option<Point> {
        if self.issued.len() >= self.settings.initial
            && let Some((point, axis)) = self.offspring(space)
        {
            self.pending.insert(space.position(&point), axis);
            return Some(point);
        }
        self.issued.draw(space, &mut self.numbers)
    }

    fn learn(&mut self, space: &Space, point: &Point, fitness: f64) {
        self.age();
        if let Some(axis) = self.pending.remove(&space.position(point)) {
            let gains = &mut self.gains[axis];
            gains.push_back(fitness);
            if gains.len() > self.settings.history {
                gains.pop_front();
            }
        }
        if fitness > 0.0 {
            self.priority.push(Parent {
                point: point.clone(),
                fitness,
                retires_at: fitness * self.settings.retire,
            });
            if self.priority.len() > self.settings.queue {
                self.drop_one();
            }
        }
    }

    fn sensitivity(&self) -> Vec<f64> {
        self.shares()
    }
}
