//! Rules for if-then-else.

use crate::arena::Arena;
use crate::node::{BinaryOp, CompareOp, ExprId, Node};

impl Arena {
    pub(crate) fn simplify_ite(&mut self, c: ExprId, a: ExprId, b: ExprId) -> ExprId {
        // Canonical form: a condition, never its negation.
        match self.node(c) {
            Node::Not { e } => return self.ite(e, b, a),
            Node::Compare {
                op: CompareOp::Ule | CompareOp::Sle,
                ..
            } => {
                let opposite = self.not(c);
                return self.ite(opposite, b, a);
            }
            _ => {}
        }
        let width = self.width(a);
        if width == 1
            && let Some(result) = self.simplify_bool_ite(c, a, b)
        {
            return result;
        }
        if self.is_const(a) && self.is_const(b) {
            if let Some(result) = self.constant_ite(c, a, b) {
                return result;
            }
        } else if let Some(result) = self.nested_ite(c, a, b) {
            return result;
        }
        if let Node::Compare {
            op: CompareOp::Eq,
            a: x,
            b: y,
        } = self.node(c)
            && ((x, y) == (a, b) || (x, y) == (b, a))
        {
            return b;
        }
        self.intern(Node::Ite { c, a, b }, width)
    }

    fn simplify_bool_ite(&mut self, c: ExprId, a: ExprId, b: ExprId) -> Option<ExprId> {
        if a == c {
            return Some(self.or(c, b));
        }
        if b == c {
            return Some(self.and(c, a));
        }
        let not_c = self.not(c);
        match (self.as_const(a), self.as_const(b)) {
            (Some(1), Some(_)) => Some(c),
            (Some(_), Some(_)) => Some(not_c),
            (Some(1), None) => Some(self.or(c, b)),
            (Some(_), None) => Some(self.and(not_c, b)),
            (None, Some(1)) => Some(self.or(not_c, a)),
            (None, Some(_)) => Some(self.and(c, a)),
            (None, None) if self.are_complements(a, b) => {
                let different = self.xor(c, a);
                Some(self.not(different))
            }
            (None, None) => None,
        }
    }

    /// Simplifies an if-then-else of one and zero to the extended condition.
    fn constant_ite(&mut self, c: ExprId, a: ExprId, b: ExprId) -> Option<ExprId> {
        let width = self.width(a);
        let (is_zero_a, is_zero_b) = (self.is_zero(a), self.is_zero(b));
        if is_zero_b && self.is_one(a) {
            return Some(self.zext(c, width));
        }
        if is_zero_b && self.is_all_ones(a) {
            return Some(self.sext(c, width));
        }
        if is_zero_a && (self.is_one(b) || self.is_all_ones(b)) {
            let not_c = self.not(c);
            let negative = self.is_all_ones(b);
            return Some(if negative {
                self.sext(not_c, width)
            } else {
                self.zext(not_c, width)
            });
        }
        None
    }

    fn is_one(&self, e: ExprId) -> bool {
        self.as_const_limbs(e)
            .is_some_and(|value| crate::limbs::to_u64(value) == Some(1))
    }

    fn nested_ite(&mut self, c: ExprId, a: ExprId, b: ExprId) -> Option<ExprId> {
        if let Node::Ite {
            c: inner,
            a: x,
            b: y,
        } = self.node(a)
        {
            if inner == c {
                return Some(self.ite(c, x, b));
            }
            if y == b {
                let both = self.and(c, inner);
                return Some(self.ite(both, x, b));
            }
            if x == b {
                let not_inner = self.not(inner);
                let both = self.and(c, not_inner);
                return Some(self.ite(both, y, b));
            }
        }
        if let Node::Ite {
            c: inner,
            a: x,
            b: y,
        } = self.node(b)
        {
            if inner == c {
                return Some(self.ite(c, a, y));
            }
            if x == a {
                let either = self.or(c, inner);
                return Some(self.ite(either, a, y));
            }
            if y == a {
                let not_inner = self.not(inner);
                let either = self.or(c, not_inner);
                return Some(self.ite(either, a, x));
            }
        }
        self.common_operation(c, a, b)
    }

    /// Simplifies `c ? f(x) : f(y)` to `f(c ? x : y)`, for operations that only rearrange bits.
    fn common_operation(&mut self, c: ExprId, a: ExprId, b: ExprId) -> Option<ExprId> {
        let width = self.width(a);
        match (self.node(a), self.node(b)) {
            (Node::ZeroExtend { e: x }, Node::ZeroExtend { e: y })
                if self.width(x) == self.width(y) =>
            {
                let inner = self.ite(c, x, y);
                Some(self.zext(inner, width))
            }
            (Node::SignExtend { e: x }, Node::SignExtend { e: y })
                if self.width(x) == self.width(y) =>
            {
                let inner = self.ite(c, x, y);
                Some(self.sext(inner, width))
            }
            (Node::ZeroExtend { e: x }, Node::Constant { bits })
                if bits >> self.width(x).min(63) == 0 && self.width(x) < 64 =>
            {
                let narrow = self.constant(self.width(x), bits);
                let inner = self.ite(c, x, narrow);
                Some(self.zext(inner, width))
            }
            (Node::Constant { bits }, Node::ZeroExtend { e: y })
                if bits >> self.width(y).min(63) == 0 && self.width(y) < 64 =>
            {
                let narrow = self.constant(self.width(y), bits);
                let inner = self.ite(c, narrow, y);
                Some(self.zext(inner, width))
            }
            (
                Node::Binary { op, a: x, b: k },
                Node::Binary {
                    op: same,
                    a: y,
                    b: l,
                },
            ) if op == same && k == l && x != y && op != BinaryOp::Mul && self.is_const(k) => {
                let inner = self.ite(c, x, y);
                Some(self.binary(op, inner, k))
            }
            _ => None,
        }
    }
}
