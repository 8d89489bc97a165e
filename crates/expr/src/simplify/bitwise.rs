//! Rules for and, or and exclusive or, on words and conditions.

use crate::arena::Arena;
use crate::node::{BinaryOp, ExprId, Node};
use crate::scalar;

impl Arena {
    pub(super) fn simplify_bitwise(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let trivial = match op {
            BinaryOp::And => self.trivial_and(a, b),
            BinaryOp::Or => self.trivial_or(a, b),
            _ => self.trivial_xor(a, b),
        };
        if let Some(result) = trivial {
            return result;
        }
        if let Some(result) = self.absorbed(op, a, b) {
            return result;
        }
        if self.is_const(b)
            && let Some(result) = self.with_constant(op, a, b)
        {
            return result;
        }
        if let Some(joined) = self.join_pieces(op, a, b, false) {
            return joined;
        }
        self.plain_binary(op, a, b)
    }

    fn trivial_and(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        if a == b || self.is_all_ones(b) {
            return Some(a);
        }
        if self.is_zero(b) || self.are_complements(a, b) {
            return Some(self.zero(self.width(a)));
        }
        None
    }

    fn trivial_or(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        if a == b || self.is_zero(b) {
            return Some(a);
        }
        if self.is_all_ones(b) || self.are_complements(a, b) {
            return Some(self.all_ones(self.width(a)));
        }
        None
    }

    fn trivial_xor(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        let width = self.width(a);
        if a == b {
            return Some(self.zero(width));
        }
        if self.is_zero(b) {
            return Some(a);
        }
        if self.is_all_ones(b) {
            return Some(self.not(a));
        }
        if self.are_complements(a, b) {
            return Some(self.all_ones(width));
        }
        // Complements move outwards, where they cancel and meet comparisons.
        match (self.node(a), self.node(b)) {
            (Node::Not { e: x }, Node::Not { e: y }) => Some(self.xor(x, y)),
            (Node::Not { e: x }, _) => {
                let inner = self.xor(x, b);
                Some(self.not(inner))
            }
            (_, Node::Not { e: y }) if !self.is_const(a) => {
                let inner = self.xor(a, y);
                Some(self.not(inner))
            }
            _ => None,
        }
    }

    /// Simplifies `x & (x & y)`, `x & (x | y)`, `x & (!x & y)`, `x ^ (x ^ y)` and similar.
    fn absorbed(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> Option<ExprId> {
        for (outer, inner) in [(a, b), (b, a)] {
            let Node::Binary {
                op: inner_op,
                a: x,
                b: y,
            } = self.node(inner)
            else {
                continue;
            };
            let same = x == outer || y == outer;
            let other = if x == outer { y } else { x };
            match (op, inner_op) {
                (BinaryOp::And, BinaryOp::And) | (BinaryOp::Or, BinaryOp::Or) => {
                    if same {
                        return Some(inner);
                    }
                    if self.are_complements(x, outer) || self.are_complements(y, outer) {
                        let width = self.width(a);
                        return Some(match op {
                            BinaryOp::And => self.zero(width),
                            _ => self.all_ones(width),
                        });
                    }
                }
                (BinaryOp::And, BinaryOp::Or) | (BinaryOp::Or, BinaryOp::And) => {
                    if same {
                        return Some(outer);
                    }
                    if self.are_complements(x, outer) {
                        return Some(self.binary(op, outer, y));
                    }
                    if self.are_complements(y, outer) {
                        return Some(self.binary(op, outer, x));
                    }
                }
                (BinaryOp::Xor, BinaryOp::Xor) if same => return Some(other),
                _ => {}
            }
        }
        None
    }

    fn with_constant(&mut self, op: BinaryOp, a: ExprId, c: ExprId) -> Option<ExprId> {
        if let Node::Binary {
            op: inner,
            a: x,
            b: y,
        } = self.node(a)
            && inner == op
            && self.is_const(y)
        {
            let constant = self.binary(op, y, c);
            return Some(self.binary(op, x, constant));
        }
        if let Node::Ite {
            c: condition,
            a: x,
            b: y,
        } = self.node(a)
            && self.is_const(x)
            && self.is_const(y)
        {
            let (x, y) = (self.binary(op, x, c), self.binary(op, y, c));
            return Some(self.ite(condition, x, y));
        }
        let bits = self.as_const(c)?;
        let width = self.width(a);
        let (zeros, ones) = self.known_bits(a);
        match op {
            BinaryOp::And if bits | zeros == scalar::mask(width) => Some(a),
            BinaryOp::Or if bits & !ones == 0 => Some(a),
            BinaryOp::And => self.masked(a, bits),
            _ => None,
        }
    }

    /// Simplifies `a & bits` to an extraction, if the set bits are contiguous.
    fn masked(&mut self, a: ExprId, bits: u64) -> Option<ExprId> {
        let width = self.width(a);
        let low = bits.trailing_zeros();
        let length = (bits >> low).trailing_ones();
        if low + length < 64 && bits >> (low + length) != 0 {
            return None;
        }
        let kept = self.extract(a, low, length);
        let kept = self.zext(kept, width);
        let amount = self.constant(width, u64::from(low));
        Some(self.shl(kept, amount))
    }
}
