//! Properties of a term that are known without solving: known bits, ranges and support.

use crate::arena::Arena;
use crate::facts::decide;
use crate::node::{ArrayId, CompareOp, ExprId};
use crate::scalar;
use crate::support::Support;

impl Arena {
    /// Decides a comparison by the facts of its operands, if they suffice.
    #[inline]
    pub(crate) fn decided(&self, op: CompareOp, a: ExprId, b: ExprId) -> Option<bool> {
        decide(
            op,
            self.width(a),
            self.facts[a.index()],
            self.facts[b.index()],
        )
    }

    /// Returns the bits that are always zero and the bits that are always one, for terms of at most
    /// 64 bits. Bits above the width count as neither.
    pub fn known_bits(&self, e: ExprId) -> (u64, u64) {
        let facts = self.facts[e.index()];
        (facts.zeros & scalar::mask(self.width(e)), facts.ones)
    }

    /// Returns the minimal and maximal unsigned value, for terms of at most 64 bits.
    pub fn unsigned_range(&self, e: ExprId) -> (u64, u64) {
        let facts = self.facts[e.index()];
        (facts.min, facts.max)
    }

    /// Returns the bytes that a term depends on.
    pub fn support(&mut self, e: ExprId) -> Support {
        let entries = &self.entries;
        self.supports.support(e, |e| entries[e.index()].node)
    }

    /// Returns the support mask of a term: one bit per byte, with several bytes sharing a bit.
    #[inline]
    pub fn support_mask(&self, e: ExprId) -> u64 {
        self.supports.mask(e)
    }

    /// Returns whether two terms have no byte in common.
    pub fn supports_disjoint(&mut self, a: ExprId, b: ExprId) -> bool {
        if self.support_mask(a) & self.support_mask(b) == 0 {
            return true;
        }
        let a = self.support(a);
        a.is_disjoint(&self.support(b))
    }

    /// Returns the byte that a term depends on, if it is exactly one.
    #[inline]
    pub fn single_byte_support(&self, e: ExprId) -> Option<(ArrayId, u32)> {
        self.supports.single_byte(e)
    }
}
