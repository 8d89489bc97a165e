//! Random search.

use super::{Issued, Search};
use crate::numbers::Numbers;
use crate::space::{Point, Space};

/// A search that draws scenarios uniformly.
pub(super) struct RandomSearch {
    issued: Issued,
    numbers: Numbers,
}

impl RandomSearch {
    pub(super) fn new(numbers: Numbers) -> RandomSearch {
        RandomSearch {
            issued: Issued::default(),
            numbers,
        }
    }
}

impl Search for RandomSearch {
    fn next(&mut self, space: &Space) -> Option<Point> {
        self.issued.draw(space, &mut self.numbers)
    }

    fn learn(&mut self, _: &Space, _: &Point, _: f64) {}
}
