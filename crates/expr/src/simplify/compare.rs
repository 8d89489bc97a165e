//! Rules for comparisons: dispatch to the rule families, and common rules.

use crate::arena::Arena;
use crate::node::{CompareOp, ExprId, Node};

impl Arena {
    pub(crate) fn simplify_compare(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> ExprId {
        if a == b {
            return self.bool_constant(!matches!(op, CompareOp::Ult | CompareOp::Slt));
        }
        // Facts decide many comparisons; checking them first saves the other rules.
        if let Some(truth) = self.decided(op, a, b) {
            return self.bool_constant(truth);
        }
        let folded = self.compare_choices(op, a, b);
        if let Some(result) = folded.or_else(|| self.compare_selected(op, a, b)) {
            return result;
        }
        match op {
            CompareOp::Eq => self.simplify_equality(a, b),
            CompareOp::Ult | CompareOp::Ule => self.simplify_unsigned_order(op, a, b),
            CompareOp::Slt | CompareOp::Sle => self.simplify_signed_order(op, a, b),
        }
    }

    pub(super) fn plain_compare(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> ExprId {
        self.intern(Node::Compare { op, a, b }, 1)
    }

    /// Simplifies the comparison of an if-then-else with a constant, or of two with the same
    /// condition, to an if-then-else of comparisons.
    fn compare_choices(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> Option<ExprId> {
        let (c, first, second) = match (self.node(a), self.node(b)) {
            (Node::Ite { c, a: x, b: y }, _) if self.is_const(b) => {
                if !self.is_const(x) && !self.is_const(y) {
                    return None;
                }
                (c, (x, b), (y, b))
            }
            (_, Node::Ite { c, a: x, b: y }) if self.is_const(a) => {
                if !self.is_const(x) && !self.is_const(y) {
                    return None;
                }
                (c, (a, x), (a, y))
            }
            (
                Node::Ite { c, a: x, b: y },
                Node::Ite {
                    c: same,
                    a: v,
                    b: w,
                },
            ) if c == same => (c, (x, v), (y, w)),
            _ => return None,
        };
        let first = self.compare(op, first.0, first.1);
        let second = self.compare(op, second.0, second.1);
        Some(self.ite(c, first, second))
    }
}
