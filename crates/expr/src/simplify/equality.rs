//! Rules for `a == b`.

use super::linear::mask;
use crate::arena::Arena;
use crate::limbs;
use crate::node::{BinaryOp, CompareOp, ExprId, Node};

/// Returns the multiplicative inverse of an odd number modulo 2^128.
fn inverse(odd: u128) -> u128 {
    let mut inverse = odd;
    // Each Newton step doubles the number of correct bits, starting with three.
    for _ in 0..6 {
        inverse = inverse.wrapping_mul(2u128.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse
}

impl Arena {
    pub(super) fn simplify_equality(&mut self, a: ExprId, b: ExprId) -> ExprId {
        if self.width(a) == 1 {
            let different = self.xor(a, b);
            return self.not(different);
        }
        if self.are_complements(a, b) {
            return self.bool_constant(false);
        }
        let rewritten = if self.is_const(b) {
            self.equal_constant(a, b)
        } else {
            self.equal_terms(a, b)
        };
        if let Some(result) = rewritten {
            return result;
        }
        if let Some((x, y)) = self.balance(a, b) {
            return self.eq(x, y);
        }
        match self.polynomials_differ(a, b) {
            Some(differ) => self.bool_constant(!differ),
            None => self.plain_compare(CompareOp::Eq, a, b),
        }
    }

    fn both(&mut self, first: (ExprId, ExprId), second: (ExprId, ExprId)) -> ExprId {
        let first = self.eq(first.0, first.1);
        if self.is_false(first) {
            return first;
        }
        let second = self.eq(second.0, second.1);
        self.and(first, second)
    }

    fn equal_constant(&mut self, a: ExprId, c: ExprId) -> Option<ExprId> {
        let width = self.width(a);
        match self.node(a) {
            Node::ZeroExtend { e } | Node::SignExtend { e } => {
                let inner = self.width(e);
                let signed = matches!(self.node(a), Node::SignExtend { .. });
                let low = self.extract(c, 0, inner);
                let back = if signed {
                    self.sext(low, width)
                } else {
                    self.zext(low, width)
                };
                Some(if back == c {
                    self.eq(e, low)
                } else {
                    self.bool_constant(false)
                })
            }
            Node::Concat { hi, lo } => {
                let cut = self.width(lo);
                let low = self.extract(c, 0, cut);
                let high = self.extract(c, cut, width - cut);
                Some(self.both((hi, high), (lo, low)))
            }
            Node::Not { e } => {
                let flipped = self.not(c);
                Some(self.eq(e, flipped))
            }
            Node::Binary { op, a: x, b: y } => self.binary_equal_constant(op, x, y, c),
            _ => None,
        }
    }

    fn binary_equal_constant(
        &mut self,
        op: BinaryOp,
        x: ExprId,
        y: ExprId,
        c: ExprId,
    ) -> Option<ExprId> {
        let width = self.width(x);
        match op {
            BinaryOp::Xor if self.is_const(y) => {
                let constant = self.xor(y, c);
                Some(self.eq(x, constant))
            }
            BinaryOp::Xor if self.is_zero(c) => Some(self.eq(x, y)),
            BinaryOp::Or if self.is_zero(c) => Some(self.both((x, c), (y, c))),
            BinaryOp::And if self.is_all_ones(c) => Some(self.both((x, c), (y, c))),
            BinaryOp::Shl if self.is_const(y) => {
                let shift = u32::try_from(limbs::to_u64(self.as_const_limbs(y)?)?).ok()?;
                if shift == 0 || shift >= width {
                    return None;
                }
                let low = self.extract(c, 0, shift);
                if !self.is_zero(low) {
                    return Some(self.bool_constant(false));
                }
                let high = self.extract(c, shift, width - shift);
                let kept = self.extract(x, 0, width - shift);
                Some(self.eq(kept, high))
            }
            BinaryOp::Mul if width <= 128 => {
                let factor = self.as_const_u128(y)?;
                if factor & 1 == 0 {
                    return None;
                }
                let value = self.as_const_u128(c)?.wrapping_mul(inverse(factor)) & mask(width);
                let constant = self.constant_u128(width, value);
                Some(self.eq(x, constant))
            }
            _ => None,
        }
    }

    fn equal_terms(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        match (self.node(a), self.node(b)) {
            (Node::ZeroExtend { e: x }, Node::ZeroExtend { e: y }) => {
                let width = self.width(x).max(self.width(y));
                let (x, y) = (self.zext(x, width), self.zext(y, width));
                return Some(self.eq(x, y));
            }
            (Node::SignExtend { e: x }, Node::SignExtend { e: y }) => {
                let width = self.width(x).max(self.width(y));
                let (x, y) = (self.sext(x, width), self.sext(y, width));
                return Some(self.eq(x, y));
            }
            (Node::Not { e: x }, Node::Not { e: y }) => return Some(self.eq(x, y)),
            (
                Node::Binary {
                    op: BinaryOp::Xor,
                    a: x,
                    b: y,
                },
                Node::Binary {
                    op: BinaryOp::Xor,
                    a: v,
                    b: w,
                },
            ) => {
                if y == w {
                    return Some(self.eq(x, v));
                }
                if x == v {
                    return Some(self.eq(y, w));
                }
            }
            _ => {}
        }
        if let Some(result) = self.equal_pieces(a, b) {
            return Some(result);
        }
        self.equal_own_part(a, b)
            .or_else(|| self.equal_own_part(b, a))
    }

    /// Simplifies the comparison of a term with an exclusive or or an if-then-else that contains
    /// it.
    fn equal_own_part(&mut self, whole: ExprId, part: ExprId) -> Option<ExprId> {
        match self.node(whole) {
            Node::Binary {
                op: BinaryOp::Xor,
                a,
                b,
            } if a == part || b == part => {
                let rest = if a == part { b } else { a };
                let zero = self.zero(self.width(part));
                Some(self.eq(rest, zero))
            }
            Node::Ite { c, a, b } if a == part => {
                let equal = self.eq(b, part);
                Some(self.or(c, equal))
            }
            Node::Ite { c, a, b } if b == part => {
                let equal = self.eq(a, part);
                let not_c = self.not(c);
                Some(self.or(not_c, equal))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_of_odd_numbers() {
        for odd in [1u128, 3, 5, 7, 33, 0x9e37_79b9_7f4a_7c15, u128::MAX] {
            assert_eq!(odd.wrapping_mul(inverse(odd)), 1);
        }
    }
}
