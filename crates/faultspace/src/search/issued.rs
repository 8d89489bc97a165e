//! The scenarios that a search has proposed, so that no scenario is proposed twice and a search can
//! draw from the rest.

use std::collections::HashSet;

use crate::numbers::Numbers;
use crate::space::{Point, Space};

/// Number of random draws before the rest is enumerated.
const DRAWS: u32 = 64;
/// Maximum number of positions that are listed to draw from the rest.
const LISTED: u64 = 1 << 20;

/// The proposed scenarios. The set is only tested for membership, so its order does not matter.
#[derive(Clone, Default, Debug)]
pub struct Issued {
    positions: HashSet<u64>,
    /// The remaining scenarios, once they are few.
    rest: Option<Vec<u64>>,
}

impl Issued {
    /// Returns the number of proposed scenarios.
    pub fn len(&self) -> u64 {
        self.positions.len() as u64
    }

    /// Returns whether none was proposed.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Returns whether all scenarios were proposed.
    pub fn is_complete(&self, space: &Space) -> bool {
        self.len() >= space.size()
    }

    /// Returns whether a point is a scenario that was not proposed yet.
    pub fn is_new(&self, space: &Space, point: &Point) -> bool {
        !self.positions.contains(&space.position(point)) && space.is_scenario(point)
    }

    /// Marks a point as proposed. Returns `false` if it is not a new scenario.
    pub fn take(&mut self, space: &Space, point: &Point) -> bool {
        let is_new = self.is_new(space, point);
        if is_new {
            self.positions.insert(space.position(point));
        }
        is_new
    }

    /// Draws one of the remaining scenarios uniformly.
    pub fn draw(&mut self, space: &Space, numbers: &mut Numbers) -> Option<Point> {
        if self.is_complete(space) {
            return None;
        }
        let positions = space.positions();
        if self.rest.is_none() {
            for _ in 0..DRAWS {
                let point = space.point(numbers.below(positions));
                if self.take(space, &point) {
                    return Some(point);
                }
            }
            if positions <= LISTED {
                let is_left = |position: &u64| self.is_new(space, &space.point(*position));
                self.rest = Some((0..positions).filter(is_left).collect());
            }
        }
        if let Some(mut rest) = self.rest.take() {
            while !rest.is_empty() {
                let position = rest.swap_remove(numbers.below(rest.len() as u64) as usize);
                let point = space.point(position);
                if self.take(space, &point) {
                    self.rest = Some(rest);
                    return Some(point);
                }
            }
            return None;
        }
        // Nearly all of a huge space is holes or done: take the next scenario from a random
        // position on.
        let begin = numbers.below(positions);
        let all = (begin..positions).chain(0..begin);
        let found = all
            .map(|position| space.point(position))
            .find(|point| self.is_new(space, point));
        found.filter(|point| self.take(space, point))
    }
}
