//! What is known about the value of a term without solving: bits that are always zero or one, and
//! the least and the greatest unsigned value. Kept for terms of at most 64 bits.

use crate::arena::Arena;
use crate::node::{ExprId, Node};
use crate::scalar;

/// What holds for the value of a term under every assignment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Bits that are always zero.
    pub zeros: u64,
    /// Bits that are always one.
    pub ones: u64,
    /// The value is never less.
    pub min: u64,
    /// The value is never greater.
    pub max: u64,
}

impl Facts {
    /// Nothing but the width.
    pub(crate) fn unknown(width: u32) -> Facts {
        let all = scalar::mask(width);
        Facts {
            zeros: !all,
            ones: 0,
            min: 0,
            max: all,
        }
    }

    pub(crate) fn constant(bits: u64) -> Facts {
        Facts {
            zeros: !bits,
            ones: bits,
            min: bits,
            max: bits,
        }
    }

    /// The facts of a new node from those of its operands.
    pub(crate) fn of(_arena: &Arena, node: &Node, width: u32) -> Facts {
        match *node {
            Node::Constant { bits } => Facts::constant(bits),
            _ => Facts::unknown(width),
        }
    }
}

impl Arena {
    /// Bits that are always zero and bits that are always one, for terms of at most 64 bits; bits
    /// above the width count as neither.
    pub fn known_bits(&self, e: ExprId) -> (u64, u64) {
        let facts = self.facts[e.index()];
        (facts.zeros & scalar::mask(self.width(e)), facts.ones)
    }

    /// The least and the greatest unsigned value, for terms of at most 64 bits.
    pub fn unsigned_range(&self, e: ExprId) -> (u64, u64) {
        let facts = self.facts[e.index()];
        (facts.min, facts.max)
    }
}
