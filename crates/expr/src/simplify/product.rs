//! Rules for products, with sorted factors and one constant, and for quotients.

use super::linear::mask;
use crate::arena::Arena;
use crate::node::{BinaryOp, ExprId, Node};
use crate::scalar;

/// Products with more factors are not decomposed again.
const MAX_FACTORS: usize = 8;

impl Arena {
    /// Splits a term into factors; `false` if there are too many.
    fn factors(&self, e: ExprId, factors: &mut Vec<ExprId>, coefficient: &mut u128) -> bool {
        let mut stack = vec![e];
        while let Some(e) = stack.pop() {
            if factors.len() + stack.len() >= MAX_FACTORS {
                return false;
            }
            if let Some(bits) = self.as_const_u128(e) {
                *coefficient = coefficient.wrapping_mul(bits);
                continue;
            }
            match self.node(e) {
                Node::Binary {
                    op: BinaryOp::Mul,
                    a,
                    b,
                } => stack.extend([b, a]),
                Node::Binary {
                    op: BinaryOp::Sub,
                    a,
                    b,
                } if self.is_zero(a) => {
                    *coefficient = coefficient.wrapping_neg();
                    stack.push(b);
                }
                _ => match self.as_shifted(e) {
                    Some((x, shift)) => {
                        *coefficient = coefficient.wrapping_shl(shift);
                        stack.push(x);
                    }
                    None => factors.push(e),
                },
            }
        }
        true
    }

    fn has_factors(&self, e: ExprId) -> bool {
        match self.node(e) {
            Node::Constant { .. } | Node::WideConstant { .. } => true,
            Node::Binary { op, a, .. } => match op {
                BinaryOp::Mul | BinaryOp::Shl => true,
                BinaryOp::Sub => self.is_zero(a),
                _ => false,
            },
            _ => false,
        }
    }

    pub(super) fn simplify_product(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        if self.is_zero(b) {
            return b;
        }
        if let Some(narrow) = self.narrow_extended(BinaryOp::Mul, a, b) {
            return narrow;
        }
        if width > 128 || !self.has_factors(a) && !self.has_factors(b) {
            return self.plain_binary(BinaryOp::Mul, a, b);
        }
        let mut factors = Vec::new();
        let mut coefficient = 1;
        let flat = self.factors(a, &mut factors, &mut coefficient)
            && self.factors(b, &mut factors, &mut coefficient);
        coefficient &= mask(width);
        if !flat {
            return self.plain_binary(BinaryOp::Mul, a, b);
        }
        if coefficient == 0 {
            return self.zero(width);
        }
        factors.sort_unstable_by_key(|&factor| self.part_order(factor));
        let product = factors.into_iter().fold(None, |product, factor| {
            Some(match product {
                Some(product) => self.plain_binary(BinaryOp::Mul, product, factor),
                None => factor,
            })
        });
        let Some(product) = product else {
            return self.constant_u128(width, coefficient);
        };
        if coefficient == mask(width) && coefficient != 1 {
            return self.neg(product);
        }
        // A product that became constant is folded, not scaled.
        if self.is_const(product) {
            let factor = self.constant_u128(width, coefficient);
            return self.mul(product, factor);
        }
        self.scaled(product, coefficient)
    }

    /// Simplifies `x / y * y + x % y` to `x`, and `x - x / y * y` to `x % y`, also for a `y` of 0.
    pub(super) fn divided_sum(&mut self, a: ExprId, b: ExprId, subtract: bool) -> Option<ExprId> {
        if subtract {
            let (op, x, y) = self.multiple(b)?;
            return (x == a).then(|| self.binary(op, x, y));
        }
        for (product, rest) in [(a, b), (b, a)] {
            let Some((op, x, y)) = self.multiple(product) else {
                continue;
            };
            if self.node(rest) == (Node::Binary { op, a: x, b: y }) {
                return Some(x);
            }
        }
        None
    }

    /// Returns the remainder that belongs to a product of a quotient and its divisor, as operator,
    /// dividend and divisor.
    fn multiple(&self, e: ExprId) -> Option<(BinaryOp, ExprId, ExprId)> {
        let Node::Binary {
            op: BinaryOp::Mul,
            a,
            b,
        } = self.node(e)
        else {
            return None;
        };
        [(a, b), (b, a)].into_iter().find_map(|(quotient, by)| {
            let Node::Binary { op, a: x, b: y } = self.node(quotient) else {
                return None;
            };
            let remainder = match op {
                BinaryOp::UDiv => BinaryOp::URem,
                BinaryOp::SDiv => BinaryOp::SRem,
                _ => return None,
            };
            (y == by).then_some((remainder, x, y))
        })
    }

    pub(super) fn simplify_unsigned_division(
        &mut self,
        op: BinaryOp,
        a: ExprId,
        b: ExprId,
    ) -> ExprId {
        let width = self.width(a);
        let quotient = op == BinaryOp::UDiv;
        if let Some(divisor) = self.as_const_u128(b)
            && width <= 128
            && divisor.is_power_of_two()
        {
            let shift = divisor.trailing_zeros();
            return match (quotient, shift) {
                (true, _) => self.shift_right_by(a, shift),
                (false, 0) => self.zero(width),
                (false, _) => {
                    let low = self.extract(a, 0, shift);
                    self.zext(low, width)
                }
            };
        }
        if width <= 64 {
            let (_, a_max) = self.unsigned_range(a);
            let (b_min, b_max) = self.unsigned_range(b);
            if a_max < b_min {
                return if quotient { self.zero(width) } else { a };
            }
            let used = 64 - (a_max | b_max).leading_zeros();
            if used < width && self.is_const(b) && b_min > 0 && self.narrows(a, used, 4) {
                let (a, b) = (self.extract(a, 0, used), self.extract(b, 0, used));
                let narrow = self.binary(op, a, b);
                return self.zext(narrow, width);
            }
        }
        self.plain_binary(op, a, b)
    }

    pub(super) fn simplify_signed_division(
        &mut self,
        op: BinaryOp,
        a: ExprId,
        b: ExprId,
    ) -> ExprId {
        let width = self.width(a);
        if width <= 64 {
            let sign = scalar::sign_bit(width);
            let (a_zeros, _) = self.known_bits(a);
            let (b_zeros, _) = self.known_bits(b);
            if a_zeros & b_zeros & sign != 0 {
                let unsigned = if op == BinaryOp::SDiv {
                    BinaryOp::UDiv
                } else {
                    BinaryOp::URem
                };
                return self.binary(unsigned, a, b);
            }
        }
        if self.is_all_ones(b) {
            return if op == BinaryOp::SDiv {
                self.neg(a)
            } else {
                self.zero(width)
            };
        }
        if width > 1 && self.as_const_u128(b) == Some(1) && width <= 128 {
            return if op == BinaryOp::SDiv {
                a
            } else {
                self.zero(width)
            };
        }
        self.plain_binary(op, a, b)
    }
}
