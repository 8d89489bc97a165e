//! Rules for `<` and `<=`, signed and unsigned. The canonical forms with a constant are `x < c` and
//! `c <= x`, which are negations of each other.

use crate::arena::Arena;
use crate::node::{BinaryOp, CompareOp, ExprId, Node};
use crate::scalar;

impl Arena {
    pub(super) fn simplify_unsigned_order(
        &mut self,
        op: CompareOp,
        a: ExprId,
        b: ExprId,
    ) -> ExprId {
        let result = if self.is_const(b) {
            self.below_constant(op, a, b)
        } else if self.is_const(a) {
            self.above_constant(op, a, b)
        } else {
            self.unsigned_terms(op, a, b)
        };
        result.unwrap_or_else(|| self.plain_compare(op, a, b))
    }

    fn plus_one(&mut self, c: ExprId) -> ExprId {
        let one = self.constant(self.width(c), 1);
        self.add(c, one)
    }

    /// Simplifies `a < c` and `a <= c`.
    fn below_constant(&mut self, op: CompareOp, a: ExprId, c: ExprId) -> Option<ExprId> {
        if op == CompareOp::Ule {
            if self.is_all_ones(c) {
                return Some(self.bool_constant(true));
            }
            let next = self.plus_one(c);
            return Some(self.ult(a, next));
        }
        let limit = crate::limbs::to_u64(self.as_const_limbs(c)?);
        match limit {
            Some(0) => return Some(self.bool_constant(false)),
            Some(1) => {
                let zero = self.zero(self.width(a));
                return Some(self.eq(a, zero));
            }
            _ if self.is_all_ones(c) => return Some(self.ne(a, c)),
            _ => {}
        }
        let (a, c) = self.compared_inside(a, c)?;
        Some(self.ult(a, c))
    }

    /// Simplifies `c < a` and `c <= a`.
    fn above_constant(&mut self, op: CompareOp, c: ExprId, a: ExprId) -> Option<ExprId> {
        if op == CompareOp::Ult {
            if self.is_all_ones(c) {
                return Some(self.bool_constant(false));
            }
            let next = self.plus_one(c);
            return Some(self.ule(next, a));
        }
        let limit = crate::limbs::to_u64(self.as_const_limbs(c)?);
        match limit {
            Some(0) => return Some(self.bool_constant(true)),
            Some(1) => {
                let zero = self.zero(self.width(a));
                return Some(self.ne(a, zero));
            }
            _ if self.is_all_ones(c) => return Some(self.eq(a, c)),
            _ => {}
        }
        let (a, c) = self.compared_inside(a, c)?;
        Some(self.ule(c, a))
    }

    /// Returns a smaller term and constant for which `x < c` (and `c <= x`) is equivalent to the
    /// given one.
    fn compared_inside(&mut self, a: ExprId, c: ExprId) -> Option<(ExprId, ExprId)> {
        let width = self.width(a);
        match self.node(a) {
            // Constants out of the range of the inner term were decided by the facts, or are too
            // wide for them.
            Node::ZeroExtend { e } => {
                let low = self.extract(c, 0, self.width(e));
                let back = self.zext(low, width);
                (back == c).then_some((e, low))
            }
            Node::SignExtend { e } => {
                let low = self.extract(c, 0, self.width(e));
                let back = self.sext(low, width);
                if back == c {
                    return Some((e, low));
                }
                // Between the greatest and the least signed number: the sign bit decides.
                let greatest = self.signed_max(self.width(e));
                Some((e, self.not(greatest)))
            }
            Node::Binary {
                op: BinaryOp::Add,
                a: x,
                b: k,
            } if width <= 64 => self.compared_sum(x, self.as_const(k)?, self.as_const(c)?),
            // The low part does not matter if that of the constant is zero.
            Node::Concat { hi, lo } => {
                let cut = self.width(lo);
                let low = self.extract(c, 0, cut);
                let high = self.extract(c, cut, width - cut);
                self.is_zero(low).then_some((hi, high))
            }
            _ => None,
        }
    }

    /// Simplifies `x + k < c`. If the sum does not wrap, the constants are combined. If an extended
    /// term is decreased, as in tests for a range of characters, the subtraction moves inside the
    /// extension.
    fn compared_sum(&mut self, x: ExprId, k: u64, c: u64) -> Option<(ExprId, ExprId)> {
        let width = self.width(x);
        let all = scalar::mask(width);
        let (_, greatest) = self.unsigned_range(x);
        if greatest <= all - k && c > k {
            return Some((x, self.constant(width, c - k)));
        }
        let (inner, room) = match self.node(x) {
            Node::ZeroExtend { e } => (e, 1u64 << self.width(e)),
            Node::SignExtend { e } => (e, 1u64 << (self.width(e) - 1)),
            _ => return None,
        };
        // Values below the subtrahend wrap to at least `room - down` in both widths.
        let down = k.wrapping_neg() & all;
        if down >= room || c > room - down {
            return None;
        }
        let inner_width = self.width(inner);
        let moved = self.constant(inner_width, k);
        let moved = self.add(inner, moved);
        Some((moved, self.constant(inner_width, c)))
    }

    fn unsigned_terms(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> Option<ExprId> {
        match (self.node(a), self.node(b)) {
            (Node::ZeroExtend { e: x }, Node::ZeroExtend { e: y }) => {
                let width = self.width(x).max(self.width(y));
                let (x, y) = (self.zext(x, width), self.zext(y, width));
                Some(self.compare(op, x, y))
            }
            (Node::SignExtend { e: x }, Node::SignExtend { e: y }) => {
                let width = self.width(x).max(self.width(y));
                let (x, y) = (self.sext(x, width), self.sext(y, width));
                Some(self.compare(op, x, y))
            }
            (Node::Not { e: x }, Node::Not { e: y }) => Some(self.compare(op, y, x)),
            (Node::Concat { hi: x, lo: low }, Node::Concat { hi: y, lo: same }) if low == same => {
                Some(self.compare(op, x, y))
            }
            (Node::Concat { hi: x, lo }, Node::Concat { hi: same, lo: low })
                if x == same && self.width(lo) == self.width(low) =>
            {
                Some(self.compare(op, lo, low))
            }
            _ if self.width(a) == 1 => Some(self.order_of_bits(op, a, b)),
            _ => None,
        }
    }

    /// Returns `a < b` or `a <= b` at width 1, as logical operations.
    fn order_of_bits(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> ExprId {
        let not_a = self.not(a);
        if op == CompareOp::Ult {
            self.and(not_a, b)
        } else {
            self.or(not_a, b)
        }
    }

    pub(super) fn simplify_signed_order(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        let unsigned = if op == CompareOp::Slt {
            CompareOp::Ult
        } else {
            CompareOp::Ule
        };
        if width == 1 {
            // Signed, the one-bit value 1 is -1.
            return self.compare(unsigned, b, a);
        }
        if self.same_sign(a, b) {
            return self.compare(unsigned, a, b);
        }
        let result = if self.is_const(b) {
            self.signed_below_constant(op, a, b)
        } else if self.is_const(a) {
            self.signed_above_constant(op, a, b)
        } else {
            self.signed_terms(op, a, b)
        };
        result.unwrap_or_else(|| self.plain_compare(op, a, b))
    }

    fn same_sign(&self, a: ExprId, b: ExprId) -> bool {
        let width = self.width(a);
        if width > 64 {
            let positive = |e| matches!(self.node(e), Node::ZeroExtend { .. });
            return positive(a) && positive(b);
        }
        let ((a_zeros, a_ones), (b_zeros, b_ones)) = (self.known_bits(a), self.known_bits(b));
        (a_zeros & b_zeros | a_ones & b_ones) & scalar::sign_bit(width) != 0
    }

    fn sign(&mut self, e: ExprId) -> ExprId {
        let width = self.width(e);
        self.extract(e, width - 1, 1)
    }

    /// Returns the greatest signed number of a width.
    fn signed_max(&mut self, width: u32) -> ExprId {
        if width == 1 {
            return self.zero(1);
        }
        let ones = self.all_ones(width - 1);
        self.zext(ones, width)
    }

    /// Simplifies signed `a < c` and `a <= c`.
    fn signed_below_constant(&mut self, op: CompareOp, a: ExprId, c: ExprId) -> Option<ExprId> {
        let width = self.width(a);
        let greatest = self.signed_max(width);
        if op == CompareOp::Sle {
            if c == greatest {
                return Some(self.bool_constant(true));
            }
            let next = self.plus_one(c);
            return Some(self.slt(a, next));
        }
        let least = self.not(greatest);
        if c == least {
            return Some(self.bool_constant(false));
        }
        if self.is_zero(c) {
            return Some(self.sign(a));
        }
        if c == greatest {
            return Some(self.ne(a, c));
        }
        if self.plus_one(least) == c {
            return Some(self.eq(a, least));
        }
        let (a, c) = self.signed_inside(a, c)?;
        Some(self.slt(a, c))
    }

    /// Simplifies signed `c < a` and `c <= a`.
    fn signed_above_constant(&mut self, op: CompareOp, c: ExprId, a: ExprId) -> Option<ExprId> {
        let width = self.width(a);
        let greatest = self.signed_max(width);
        if op == CompareOp::Slt {
            if c == greatest {
                return Some(self.bool_constant(false));
            }
            let next = self.plus_one(c);
            return Some(self.sle(next, a));
        }
        // `c <= a` is the negation of `a < c`, which has all the rules.
        let least = self.not(greatest);
        if c == least {
            return Some(self.bool_constant(true));
        }
        if self.is_zero(c) {
            let sign = self.sign(a);
            return Some(self.not(sign));
        }
        if c == greatest {
            return Some(self.eq(a, c));
        }
        if self.plus_one(least) == c {
            return Some(self.ne(a, least));
        }
        let (a, c) = self.signed_inside(a, c)?;
        Some(self.sle(c, a))
    }

    fn signed_inside(&mut self, a: ExprId, c: ExprId) -> Option<(ExprId, ExprId)> {
        let Node::SignExtend { e } = self.node(a) else {
            return None;
        };
        let width = self.width(a);
        let low = self.extract(c, 0, self.width(e));
        let back = self.sext(low, width);
        (back == c).then_some((e, low))
    }

    fn signed_terms(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> Option<ExprId> {
        match (self.node(a), self.node(b)) {
            (Node::SignExtend { e: x }, Node::SignExtend { e: y }) => {
                let width = self.width(x).max(self.width(y));
                let (x, y) = (self.sext(x, width), self.sext(y, width));
                Some(self.compare(op, x, y))
            }
            (Node::Not { e: x }, Node::Not { e: y }) => Some(self.compare(op, y, x)),
            _ => None,
        }
    }
}
