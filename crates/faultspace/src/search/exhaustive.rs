//! Exhaustive search.

use super::Search;
use crate::space::{Point, Space};

/// A search that proposes all scenarios in the order of the space.
#[derive(Default)]
pub(super) struct ExhaustiveSearch {
    position: u64,
}

impl Search for ExhaustiveSearch {
    fn next(&mut self, space: &Space) -> Option<Point> {
        while self.position < space.positions() {
            let point = space.point(self.position);
            self.position += 1;
            if space.is_scenario(&point) {
                return Some(point);
            }
        }
        None
    }

    fn learn(&mut self, _: &Space, _: &Point, _: f64) {}
}
