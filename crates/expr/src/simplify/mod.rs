//! Rewriting rules, one file per family. A rule takes simplified operands and calls the
//! constructors for its result. Fuel bounds the work of one external call: when it runs out, terms
//! are stored unsimplified, which is always correct.

mod bitwise;
mod compare;
mod equality;
mod extent;
mod ite;
mod linear;
mod order;
mod pieces;
mod polynomial;
mod product;
mod select;
mod shift;
mod slice;

use crate::arena::{Arena, EXHAUSTED, hash};
use crate::node::{BinaryOp, CompareOp, ExprId, Node};
/// The largest cost that the arena can store for a term.
const MAX_RULE_LIMIT: u32 = u16::MAX as u32 - 1;

impl Arena {
    /// Sets the limit of rule applications that one call of a constructor may cause. With zero,
    /// only constants are folded; tests compare the rules with such plain terms.
    pub fn set_rule_limit(&mut self, limit: u32) {
        self.rule_limit = limit.min(MAX_RULE_LIMIT);
        self.forget_simplified();
    }

    /// Builds terms without rules: only constants are folded, and operands are ordered.
    pub(crate) fn without_rules<T>(&mut self, build: impl FnOnce(&mut Arena) -> T) -> T {
        debug_assert_eq!(self.depth, 0, "no rule is under way");
        // This is the state inside a rule after the fuel ran out.
        self.fuel = 0;
        self.depth = 1;
        let built = build(self);
        self.depth = 0;
        built
    }

    /// Runs a rule if there is fuel, else stores the node as it is.
    #[inline(always)]
    pub(crate) fn simplified(
        &mut self,
        plain: Node,
        width: u32,
        rule: impl FnOnce(&mut Arena) -> ExprId,
    ) -> ExprId {
        let hash = hash(&plain, width);
        if let Some(e) = self.known(&plain, width, hash) {
            return e;
        }
        if self.depth == 0 {
            self.fuel = self.rule_limit;
        }
        if self.fuel == 0 {
            return self.intern(plain, width);
        }
        let before = self.fuel;
        self.fuel -= 1;
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        if self.fuel > 0 {
            self.remember(&plain, width, hash, result, before - self.fuel);
        } else if self.depth == 0 {
            // A result without sufficient fuel is valid only for calls with the same fuel.
            self.remember(&plain, width, hash, result, EXHAUSTED);
        }
        result
    }

    pub(crate) fn simplify_binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        match op {
            BinaryOp::Add | BinaryOp::Sub if self.width(a) == 1 => self.xor(a, b),
            BinaryOp::Mul if self.width(a) == 1 => self.and(a, b),
            BinaryOp::Add => self.simplify_sum(a, b, false),
            BinaryOp::Sub => self.simplify_sum(a, b, true),
            BinaryOp::Mul => self.simplify_product(a, b),
            BinaryOp::UDiv | BinaryOp::URem => self.simplify_unsigned_division(op, a, b),
            BinaryOp::SDiv | BinaryOp::SRem => self.simplify_signed_division(op, a, b),
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => self.simplify_bitwise(op, a, b),
            BinaryOp::Shl | BinaryOp::LShr | BinaryOp::AShr => self.simplify_shift(op, a, b),
        }
    }

    /// Returns whether the operands of a commutative operator must be exchanged. The order is by
    /// content, so that the shape of terms does not depend on earlier contents of the arena; ids
    /// only separate terms whose digests collide. Constants come last. Higher terms come after
    /// lower ones, so that rules see the parts of a chain in the same order.
    #[inline]
    pub(crate) fn goes_after(&self, a: ExprId, b: ExprId) -> bool {
        let key = |e: ExprId| {
            let content = self.entries[e.index()].content();
            u128::from(content.height) << 64 | u128::from(content.digest)
        };
        let (x, y) = (key(a), key(b));
        // The order of digests is unpredictable, so this avoids branches.
        (x > y) | ((x == y) & (a > b))
    }

    /// Returns the operands of a commutative operator in their order.
    #[inline]
    pub(crate) fn ordered(&self, a: ExprId, b: ExprId) -> (ExprId, ExprId) {
        if self.goes_after(a, b) {
            (b, a)
        } else {
            (a, b)
        }
    }

    /// Stores a binary node to which no rule applies.
    pub(crate) fn plain_binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        let (a, b) = if op.is_commutative() {
            self.ordered(a, b)
        } else {
            (a, b)
        };
        self.intern(Node::Binary { op, a, b }, width)
    }

    pub(crate) fn simplify_not(&mut self, e: ExprId) -> ExprId {
        let width = self.width(e);
        match self.node(e) {
            Node::Not { e } => e,
            Node::Compare {
                op: CompareOp::Ult,
                a,
                b,
            } => self.compare(CompareOp::Ule, b, a),
            Node::Compare {
                op: CompareOp::Ule,
                a,
                b,
            } => self.compare(CompareOp::Ult, b, a),
            Node::Compare {
                op: CompareOp::Slt,
                a,
                b,
            } => self.compare(CompareOp::Sle, b, a),
            Node::Compare {
                op: CompareOp::Sle,
                a,
                b,
            } => self.compare(CompareOp::Slt, b, a),
            Node::Binary {
                op: BinaryOp::Xor,
                a,
                b,
            } if self.is_const(b) => {
                let flipped = self.not(b);
                self.xor(a, flipped)
            }
            Node::Ite { c, a, b } if self.is_const(a) && self.is_const(b) => {
                let (a, b) = (self.not(a), self.not(b));
                self.ite(c, a, b)
            }
            _ => self.intern(Node::Not { e }, width),
        }
    }

    /// Returns whether one term is the complement of the other.
    pub(crate) fn are_complements(&self, a: ExprId, b: ExprId) -> bool {
        match (self.node(a), self.node(b)) {
            (Node::Not { e }, _) if e == b => true,
            (_, Node::Not { e }) if e == a => true,
            (
                Node::Compare {
                    op: first,
                    a: x,
                    b: y,
                },
                Node::Compare {
                    op: second,
                    a: v,
                    b: w,
                },
            ) => {
                let opposite = matches!(
                    (first, second),
                    (CompareOp::Ult, CompareOp::Ule)
                        | (CompareOp::Ule, CompareOp::Ult)
                        | (CompareOp::Slt, CompareOp::Sle)
                        | (CompareOp::Sle, CompareOp::Slt)
                );
                opposite && x == w && y == v
            }
            _ => false,
        }
    }

    pub(crate) fn is_zero(&self, e: ExprId) -> bool {
        self.as_const_limbs(e).is_some_and(crate::limbs::is_zero)
    }

    pub(crate) fn is_all_ones(&self, e: ExprId) -> bool {
        let width = self.width(e);
        self.as_const_limbs(e).is_some_and(|value| {
            let (top, rest) = value.split_last().expect("a constant has a limb");
            let top_width = (width - 1) % 64 + 1;
            *top == crate::scalar::mask(top_width) && rest.iter().all(|&limb| limb == u64::MAX)
        })
    }
}
