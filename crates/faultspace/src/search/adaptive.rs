//! Everett's own search. It learns the fitness of each value of an axis and of each pair of values
//! of two axes, and proposes the most promising of several candidates. Unlike Algorithm 1 of AFEX,
//! it does not need an order in which neighbours are similar. It exploits one if there is one,
//! because half of its mutations go to a neighbour. Calls that a program does not check are expected
//! to pay, until results say otherwise, and are tried first.

use std::collections::{HashMap, HashSet};

use super::{Issued, Search};
use crate::numbers::Numbers;
use crate::settings::Guided;
use crate::space::{Point, Space};
use crate::unchecked::Place;

/// Number of candidates, of which the best is proposed.
const CANDIDATES: u32 = 24;
/// One in this many proposals is random.
const RANDOM: u64 = 10;
/// Weight of the prior expectation, as a number of results.
const PRIOR: f64 = 2.0;
/// Factor of the prior expectation of calls that the program does not check.
const UNCHECKED: f64 = 3.0;
/// One in this many scenarios of the beginning is drawn from all, not from unchecked calls.
const ANY: u64 = 4;
/// Number of good scenarios from which candidates are made.
const KEPT: usize = 64;

/// Statistics of results: their number and the sum of their fitness.
#[derive(Copy, Clone, Default)]
struct Seen {
    count: f64,
    sum: f64,
}

impl Seen {
    fn add(&mut self, fitness: f64) {
        self.count += 1.0;
        self.sum += fitness;
    }

    /// Returns the mean, drawn towards the prior expectation while there are few results.
    fn mean(self, expected: f64) -> f64 {
        (self.sum + PRIOR * expected) / (self.count + PRIOR)
    }
}

/// A value of an axis: the index of the axis among the names of the space, and that of the value.
type Cell = (usize, u64);

/// The adaptive search. The maps are only looked up, never iterated.
pub(super) struct AdaptiveSearch {
    initial: u64,
    sigma: f64,
    numbers: Numbers,
    issued: Issued,
    all: Seen,
    values: HashMap<Cell, Seen>,
    pairs: HashMap<(Cell, Cell), Seen>,
    /// Values that stand for calls that the program does not check.
    places: Vec<Place>,
    unchecked: HashSet<Cell>,
    /// The fittest scenarios, best first.
    best: Vec<(f64, Point)>,
}

impl AdaptiveSearch {
    pub(super) fn new(space: &Space, settings: &Guided, numbers: Numbers) -> AdaptiveSearch {
        let places = settings.unchecked.places(space);
        let cells = places.iter().flat_map(|place| {
            let of = |index: &u64| cell(space, place.subspace, place.axis, *index);
            place.indices.iter().map(of)
        });
        AdaptiveSearch {
            unchecked: cells.collect(),
            places,
            initial: settings.initial,
            sigma: settings.sigma,
            numbers,
            issued: Issued::default(),
            all: Seen::default(),
            values: HashMap::new(),
            pairs: HashMap::new(),
            best: Vec::new(),
        }
    }

    /// Returns the logarithm of expected fitness over mean fitness, with a bonus for values with
    /// few results.
    fn promise(&self, space: &Space, point: &Point) -> f64 {
        let mean = self.all.mean(0.0).max(f64::MIN_POSITIVE);
        let cells = cells(space, point);
        let ratio = |cell: &Cell| {
            let seen = self.values.get(cell).copied().unwrap_or_default();
            let factor = if self.unchecked.contains(cell) {
                UNCHECKED
            } else {
                1.0
            };
            (seen.mean(mean * factor) / mean, seen.count)
        };
        let ratios: Vec<(f64, f64)> = cells.iter().map(ratio).collect();
        let mut promise = 0.0;
        for (one, (first, count)) in ratios.iter().enumerate() {
            promise += first.ln() + 0.2 / (1.0 + count).sqrt();
            for (two, (second, _)) in ratios.iter().enumerate().skip(one + 1) {
                let expected = mean * first * second;
                if let Some(seen) = self.pairs.get(&(cells[one], cells[two])) {
                    promise += (seen.mean(expected) / expected).ln();
                }
            }
        }
        promise
    }

    /// Draws a new scenario in which a call fails that the program does not check. `None` if that is
    /// not its turn, or if there is none left.
    fn draw_unchecked(&mut self, space: &Space) -> Option<Point> {
        if self.places.is_empty() || self.numbers.below(ANY) == 0 {
            return None;
        }
        for _ in 0..CANDIDATES {
            let place = &self.places[self.numbers.below(self.places.len() as u64) as usize];
            let mut point = Point {
                subspace: place.subspace,
                indices: Vec::new(),
            };
            for axis in space.axes(&point) {
                point.indices.push(self.numbers.below(axis.values.len()));
            }
            let at = self.numbers.below(place.indices.len() as u64) as usize;
            point.indices[place.axis] = place.indices[at];
            if self.issued.take(space, &point) {
                return Some(point);
            }
        }
        None
    }

    /// Returns a candidate: a good scenario with another value on an axis, or any scenario.
    fn candidate(&mut self, space: &Space) -> Point {
        let kept = self.best.len() as u64;
        if kept == 0 || self.numbers.below(4) == 0 {
            return space.point(self.numbers.below(space.positions()));
        }
        // Better scenarios have more offspring.
        let at = self.numbers.below(kept).min(self.numbers.below(kept)) as usize;
        let mut point = self.best[at].1.clone();
        let axes = space.axes(&point);
        let axis = self.numbers.below(axes.len() as u64) as usize;
        let count = axes[axis].values.len();
        point.indices[axis] = match self.numbers.below(2) {
            0 => self.numbers.below(count),
            _ => {
                let moved = self.numbers.normal() * (count as f64 * self.sigma).max(1.0);
                let new = (point.indices[axis] as f64 + moved).round();
                new.clamp(0.0, (count - 1) as f64) as u64
            }
        };
        point
    }
}

fn cell(space: &Space, subspace: usize, axis: usize, index: u64) -> Cell {
    // A value may have different indices in different subspaces, so each subspace learns
    // separately.
    let part = (subspace as u64) << 48;
    (space.name_of(subspace, axis), part ^ index)
}

fn cells(space: &Space, point: &Point) -> Vec<Cell> {
    let indices = point.indices.iter().enumerate();
    let of = |(axis, index): (usize, &u64)| cell(space, point.subspace, axis, *index);
    indices.map(of).collect()
}

impl Search for AdaptiveSearch {
    fn next(&mut self, space: &Space) -> Option<Point> {
        let begins = self.issued.len() < self.initial || self.all.sum == 0.0;
        let is_random = begins || self.numbers.below(RANDOM) == 0;
        if !is_random {
            let mut best: Option<(f64, Point)> = None;
            for _ in 0..CANDIDATES {
                let point = self.candidate(space);
                if !self.issued.is_new(space, &point) {
                    continue;
                }
                let promise = self.promise(space, &point);
                if best.as_ref().is_none_or(|(most, _)| promise > *most) {
                    best = Some((promise, point));
                }
            }
            if let Some((_, point)) = best.filter(|(_, point)| self.issued.take(space, point)) {
                return Some(point);
            }
        } else if begins && let Some(point) = self.draw_unchecked(space) {
            return Some(point);
        }
        self.issued.draw(space, &mut self.numbers)
    }

    fn learn(&mut self, space: &Space, point: &Point, fitness: f64) {
        self.all.add(fitness);
        let cells = cells(space, point);
        for (one, cell) in cells.iter().enumerate() {
            self.values.entry(*cell).or_default().add(fitness);
            for other in &cells[one + 1..] {
                self.pairs.entry((*cell, *other)).or_default().add(fitness);
            }
        }
        if fitness > 0.0 {
            let at = self.best.partition_point(|(other, _)| *other > fitness);
            self.best.insert(at, (fitness, point.clone()));
            self.best.truncate(KEPT);
        }
    }
}
