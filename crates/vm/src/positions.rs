//! The positions of an access through a symbolic pointer.

use everett_expr::{Arena, ExprId};
use std::collections::BTreeSet;

use crate::stride::Stride;
use crate::vm::Vm;

/// Offsets of an access, at equal distances.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Positions {
    pub(crate) first: u64,
    pub(crate) step: u64,
    pub(crate) count: u64,
}

/// Minimum number of positions whose offset is searched for its values, and maximum number of these.
const MANY: u64 = 64;
const MAX_FEW: usize = 32;

impl Positions {
    /// Returns the number of positions.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of bytes from the first to the end of the last access.
    pub(crate) fn extent(&self, len: u64) -> u64 {
        (self.count - 1) * self.step + len
    }

    /// Returns the indices of the positions at which an access of `len` bytes includes one of these
    /// bytes.
    pub(crate) fn of_bytes(&self, bytes: &BTreeSet<u64>, len: u64) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        for byte in bytes {
            let Some(last) = byte.checked_sub(self.first) else {
                continue;
            };
            let first = (last + 1).saturating_sub(len).div_ceil(self.step);
            let last = (last / self.step).min(self.count - 1);
            found.extend(first..=last);
        }
        found
    }

    /// Returns the positions that the offset can be at, in order, if they are few of many: an index
    /// that is computed from a digit, or chosen by conditions.
    pub(crate) fn few(&self, arena: &Arena, offset: ExprId) -> Option<Vec<u64>> {
        if self.count < MANY {
            return None;
        }
        let last = self.first + (self.count - 1) * self.step;
        let values = arena.few_values(offset, MAX_FEW)?;
        let few: Vec<u64> = values.range(self.first..=last).copied().collect();
        (!few.is_empty()).then_some(few)
    }
}

impl Vm<'_> {
    /// Returns the positions of a write, each with the condition that the offset is there.
    pub(crate) fn places(&mut self, offset: ExprId, positions: Positions) -> Vec<(u64, ExprId)> {
        if let Some(few) = positions.few(self.arena, offset) {
            let hit = |at: u64| {
                let place = self.arena.constant(64, at);
                (at, self.arena.eq(offset, place))
            };
            return few.into_iter().map(hit).collect();
        }
        let Positions { first, step, count } = positions;
        let chosen = Stride::of(self.arena, offset).index(self.arena, offset, first);
        let hit = |index: u64| {
            let here = self.arena.constant(64, index);
            (first + index * step, self.arena.eq(chosen, here))
        };
        (0..count).map(hit).collect()
    }
}
