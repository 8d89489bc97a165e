//! Rewriting rules.

use crate::arena::Arena;
use crate::node::{BinaryOp, CompareOp, ExprId, Node};

impl Arena {
    pub(crate) fn simplified(&mut self, rule: impl FnOnce(&mut Arena) -> ExprId) -> ExprId {
        rule(self)
    }

    pub(crate) fn simplify_binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        self.intern(Node::Binary { op, a, b }, width)
    }

    pub(crate) fn simplify_compare(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> ExprId {
        self.intern(Node::Compare { op, a, b }, 1)
    }

    pub(crate) fn simplify_not(&mut self, e: ExprId) -> ExprId {
        if let Node::Not { e } = self.node(e) {
            return e;
        }
        let width = self.width(e);
        self.intern(Node::Not { e }, width)
    }

    pub(crate) fn simplify_ite(&mut self, c: ExprId, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        self.intern(Node::Ite { c, a, b }, width)
    }

    pub(crate) fn simplify_extract(&mut self, e: ExprId, low: u32, width: u32) -> ExprId {
        self.intern(Node::Extract { e, low }, width)
    }

    pub(crate) fn simplify_concat(&mut self, hi: ExprId, lo: ExprId) -> ExprId {
        let width = self.width(hi) + self.width(lo);
        self.intern(Node::Concat { hi, lo }, width)
    }

    pub(crate) fn simplify_zext(&mut self, e: ExprId, width: u32) -> ExprId {
        self.intern(Node::ZeroExtend { e }, width)
    }

    pub(crate) fn simplify_sext(&mut self, e: ExprId, width: u32) -> ExprId {
        self.intern(Node::SignExtend { e }, width)
    }
}
