//! Sums as linear combinations of terms with coefficients and a constant, so that equal sums become
//! the same term whatever the order of additions. Up to 128 bits.

use crate::arena::Arena;
use crate::limbs;
use crate::node::{BinaryOp, ExprId, Node};

/// Sums with more parts are not decomposed again, so that adding to a long sum stays cheap.
const MAX_PARTS: usize = 8;
const MAX_WIDTH: u32 = 128;

/// `Σ coefficient · term + constant`, modulo 2^width.
#[derive(Default, Debug)]
pub(super) struct Linear {
    pub(super) terms: Vec<(ExprId, u128)>,
    pub(super) constant: u128,
}

pub(super) fn mask(width: u32) -> u128 {
    if width >= 128 {
        u128::MAX
    } else {
        (1 << width) - 1
    }
}

fn is_negative(width: u32, coefficient: u128) -> bool {
    coefficient > 1 << (width - 1)
}

impl Linear {
    fn push(&mut self, e: ExprId, coefficient: u128) {
        match self.terms.iter_mut().find(|(term, _)| *term == e) {
            Some((_, sum)) => *sum = sum.wrapping_add(coefficient),
            None => self.terms.push((e, coefficient)),
        }
    }

    fn finish(&mut self, arena: &Arena, width: u32) {
        let mask = mask(width);
        self.constant &= mask;
        self.terms
            .iter_mut()
            .for_each(|(_, coefficient)| *coefficient &= mask);
        self.terms.retain(|&(_, coefficient)| coefficient != 0);
        self.terms
            .sort_unstable_by_key(|&(term, _)| arena.part_order(term));
    }
}

impl Arena {
    /// Returns `x` and `k` if the term is `x << k` with `k` above zero and below the width.
    pub(super) fn as_shifted(&self, e: ExprId) -> Option<(ExprId, u32)> {
        let Node::Binary {
            op: BinaryOp::Shl,
            a,
            b,
        } = self.node(e)
        else {
            return None;
        };
        let amount = u32::try_from(limbs::to_u64(self.as_const_limbs(b)?)?).ok()?;
        (1..self.width(e)).contains(&amount).then_some((a, amount))
    }

    /// Returns whether the term is a sum or multiple.
    fn is_sum(&self, e: ExprId) -> bool {
        match self.node(e) {
            Node::Binary {
                op: BinaryOp::Add | BinaryOp::Sub,
                ..
            } => true,
            Node::Binary {
                op: BinaryOp::Mul,
                b,
                ..
            } => self.is_const(b),
            Node::Not { .. } => true,
            Node::Constant { .. } | Node::WideConstant { .. } => true,
            _ => self.as_shifted(e).is_some(),
        }
    }

    /// Adds `coefficient · e` to a sum; `false` if it has too many parts.
    fn add_parts(&self, e: ExprId, coefficient: u128, sum: &mut Linear) -> bool {
        let mut stack = [(e, coefficient); MAX_PARTS + 4];
        let mut length = 1;
        let mut visits = 0;
        while length > 0 {
            length -= 1;
            let (e, coefficient) = stack[length];
            visits += 1;
            if visits > 2 * MAX_PARTS || length + 2 > stack.len() {
                return false;
            }
            let mut push = |e, coefficient| {
                stack[length] = (e, coefficient);
                length += 1;
            };
            if let Some(bits) = self.as_const_u128(e) {
                sum.constant = sum.constant.wrapping_add(bits.wrapping_mul(coefficient));
                continue;
            }
            match self.node(e) {
                Node::Binary {
                    op: BinaryOp::Add,
                    a,
                    b,
                } => {
                    push(a, coefficient);
                    push(b, coefficient);
                }
                Node::Binary {
                    op: BinaryOp::Sub,
                    a,
                    b,
                } => {
                    push(a, coefficient);
                    push(b, coefficient.wrapping_neg());
                }
                Node::Not { e } => {
                    sum.constant = sum.constant.wrapping_sub(coefficient);
                    push(e, coefficient.wrapping_neg());
                }
                Node::Binary {
                    op: BinaryOp::Mul,
                    a,
                    b,
                } if self.is_const(b) => {
                    let factor = self.as_const_u128(b).unwrap_or(0);
                    push(a, coefficient.wrapping_mul(factor));
                }
                _ => match self.as_shifted(e) {
                    Some((x, shift)) => push(x, coefficient.wrapping_shl(shift)),
                    None => sum.push(e, coefficient),
                },
            }
        }
        sum.terms.len() <= MAX_PARTS
    }

    /// Adds a term to a sum: its parts, or the term as a whole if it has too many parts.
    fn add_to(&self, e: ExprId, coefficient: u128, sum: &mut Linear) {
        if !self.is_sum(e) {
            return sum.push(e, coefficient);
        }
        let before = (sum.terms.clone(), sum.constant);
        if !self.add_parts(e, coefficient, sum) {
            (sum.terms, sum.constant) = before;
            sum.push(e, coefficient);
        }
    }

    /// Returns the parts of `a + b` or `a - b`, if the width allows.
    pub(super) fn linear(&self, a: ExprId, b: ExprId, subtract: bool) -> Option<Linear> {
        let width = self.width(a);
        if width > MAX_WIDTH {
            return None;
        }
        let mut sum = Linear {
            terms: Vec::with_capacity(MAX_PARTS),
            constant: 0,
        };
        self.add_to(a, 1, &mut sum);
        self.add_to(b, if subtract { u128::MAX } else { 1 }, &mut sum);
        sum.finish(self, width);
        Some(sum)
    }

    pub(super) fn simplify_sum(&mut self, a: ExprId, b: ExprId, subtract: bool) -> ExprId {
        let op = if subtract {
            BinaryOp::Sub
        } else {
            BinaryOp::Add
        };
        let width = self.width(a);
        if self.is_zero(b) {
            return a;
        }
        if a == b && subtract {
            return self.zero(width);
        }
        if width > MAX_WIDTH {
            return self.simplify_wide_sum(op, a, b);
        }
        if !subtract && let Some(joined) = self.disjoint_sum(a, b) {
            return joined;
        }
        let known = self.divided_sum(a, b, subtract);
        if let Some(known) = known.or_else(|| self.narrow_extended(op, a, b)) {
            return known;
        }
        if a != b && !self.is_sum(a) && !self.is_sum(b) {
            return self.plain_binary(op, a, b);
        }
        if !subtract && self.is_const(b) && !self.is_sum(a) {
            return self.plain_binary(op, a, b);
        }
        match self.linear(a, b, subtract) {
            Some(sum) => self.sum_of(&sum, width),
            None => self.plain_binary(op, a, b),
        }
    }

    fn simplify_wide_sum(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        if op == BinaryOp::Sub && self.is_const(b) {
            let negated = self.neg(b);
            return self.add(a, negated);
        }
        if let (
            Node::Binary {
                op: BinaryOp::Add,
                a: x,
                b: c,
            },
            true,
        ) = (self.node(a), self.is_const(b))
            && self.is_const(c)
        {
            let constant = self.binary(op, c, b);
            return self.add(x, constant);
        }
        match self.node(a) {
            Node::Binary {
                op: BinaryOp::Add,
                a: x,
                b: y,
            } if op == BinaryOp::Sub && y == b => x,
            Node::Binary {
                op: BinaryOp::Add,
                a: x,
                b: y,
            } if op == BinaryOp::Sub && x == b => y,
            Node::Binary {
                op: BinaryOp::Sub,
                a: x,
                b: y,
            } if op == BinaryOp::Add && y == b => x,
            _ => self.plain_binary(op, a, b),
        }
    }

    /// Returns `coefficient · e`, for a term that is not a multiple itself.
    pub(super) fn scaled(&mut self, e: ExprId, coefficient: u128) -> ExprId {
        let width = self.width(e);
        if coefficient == 1 {
            return e;
        }
        if coefficient.is_power_of_two() {
            let amount = self.constant(width, u64::from(coefficient.trailing_zeros()));
            return self.plain_binary(BinaryOp::Shl, e, amount);
        }
        let factor = self.constant_u128(width, coefficient);
        self.plain_binary(BinaryOp::Mul, e, factor)
    }

    /// Returns the term of a sum: added parts in order, then subtracted parts, then the constant.
    fn sum_of(&mut self, sum: &Linear, width: u32) -> ExprId {
        let constant = self.constant_u128(width, sum.constant);
        let parts = |negative: bool| {
            let terms = sum.terms.iter().copied();
            terms.filter(move |&(_, coefficient)| is_negative(width, coefficient) == negative)
        };
        let mut result = None;
        for (e, coefficient) in parts(false) {
            let part = self.scaled(e, coefficient);
            result = Some(match result {
                Some(sum) => self.joined_sum(sum, part),
                None => part,
            });
        }
        let constant_first = result.is_none();
        let mut result = result.unwrap_or(constant);
        for (e, coefficient) in parts(true) {
            let part = self.scaled(e, coefficient.wrapping_neg() & mask(width));
            // All ones minus x is the complement of x.
            result = if self.is_all_ones(result) {
                self.not(part)
            } else {
                self.plain_binary(BinaryOp::Sub, result, part)
            };
        }
        if constant_first || sum.constant == 0 {
            return result;
        }
        self.joined_sum(result, constant)
    }

    /// Simplifies a sum of terms without common bits to a concatenation. Constants are excluded,
    /// because they are more useful as a part of the sum.
    fn disjoint_sum(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        if self.is_const(a) || self.is_const(b) {
            return None;
        }
        self.join_pieces(BinaryOp::Or, a, b, true)
    }

    fn joined_sum(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match self.disjoint_sum(a, b) {
            Some(joined) => joined,
            None => self.plain_binary(BinaryOp::Add, a, b),
        }
    }

    /// Cancels equal parts on both sides of an equation. Added parts go to the left, subtracted
    /// parts to the right. `None` if nothing changes.
    pub(super) fn balance(&mut self, a: ExprId, b: ExprId) -> Option<(ExprId, ExprId)> {
        let width = self.width(a);
        let takes_part = |e| self.is_sum(e) && !self.is_const(e);
        if !takes_part(a) && !takes_part(b) {
            return None;
        }
        let mut sum = self.linear(a, b, true)?;
        // The first part decides the sides, so that both orders give the same result.
        let flip = sum
            .terms
            .first()
            .is_some_and(|&(_, c)| is_negative(width, c));
        if flip {
            sum.constant = sum.constant.wrapping_neg() & mask(width);
            let negate = |c: &mut u128| *c = c.wrapping_neg() & mask(width);
            sum.terms.iter_mut().for_each(|(_, c)| negate(c));
        }
        let (right, left): (Vec<_>, Vec<_>) = sum
            .terms
            .iter()
            .copied()
            .partition(|&(_, c)| is_negative(width, c));
        let negate = |(e, c): (ExprId, u128)| (e, c.wrapping_neg() & mask(width));
        let left = Linear {
            terms: left,
            constant: 0,
        };
        let right = Linear {
            terms: right.into_iter().map(negate).collect(),
            constant: sum.constant.wrapping_neg() & mask(width),
        };
        let left = self.sum_of(&left, width);
        let right = self.sum_of(&right, width);
        let (x, y) = if self.goes_after(left, right) {
            (right, left)
        } else {
            (left, right)
        };
        ((x, y) != (a, b)).then_some((x, y))
    }
}
