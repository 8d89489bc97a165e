//! Rules for shifts. A right shift by a constant is an extraction; a left shift stays, because it
//! is also a multiple.

use crate::arena::Arena;
use crate::node::{BinaryOp, ExprId, Node};

impl Arena {
    /// Returns `e << amount`: a multiple, so that it takes part in sums and products.
    fn shift_left_by(&mut self, e: ExprId, amount: u32) -> ExprId {
        let width = self.width(e);
        match amount {
            0 => e,
            amount if amount >= width => self.zero(width),
            amount if width <= 128 => {
                let factor = self.constant_u128(width, 1 << amount);
                self.mul(e, factor)
            }
            amount => {
                let amount = self.constant(width, u64::from(amount));
                self.plain_binary(BinaryOp::Shl, e, amount)
            }
        }
    }

    /// Returns `e >> amount`, logical.
    pub(super) fn shift_right_by(&mut self, e: ExprId, amount: u32) -> ExprId {
        let width = self.width(e);
        match amount {
            0 => e,
            amount if amount >= width => self.zero(width),
            amount => {
                let kept = self.extract(e, amount, width - amount);
                self.zext(kept, width)
            }
        }
    }

    pub(super) fn simplify_shift(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        if let Some(limbs) = self.as_const_limbs(b) {
            let amount = crate::limbs::to_u64(limbs).unwrap_or(u64::MAX);
            let amount = amount.min(u64::from(width)) as u32;
            return match op {
                BinaryOp::Shl => self.shift_left_by(a, amount),
                BinaryOp::LShr => self.shift_right_by(a, amount),
                _ => {
                    let amount = amount.min(width - 1);
                    let kept = self.extract(a, amount, width - amount);
                    self.sext(kept, width)
                }
            };
        }
        if self.is_zero(a) || (op == BinaryOp::AShr && self.is_all_ones(a)) {
            return a;
        }
        if width <= 64 {
            let (least, _) = self.unsigned_range(b);
            if op != BinaryOp::AShr && least >= u64::from(width) {
                return self.zero(width);
            }
            let (zeros, _) = self.known_bits(a);
            if op == BinaryOp::AShr && zeros & crate::scalar::sign_bit(width) != 0 {
                return self.lshr(a, b);
            }
        }
        // A shift by an if-then-else of two constants is an if-then-else of two shifts.
        if let Node::Ite { c, a: x, b: y } = self.node(b)
            && self.is_const(x)
            && self.is_const(y)
        {
            let (x, y) = (self.binary(op, a, x), self.binary(op, a, y));
            return self.ite(c, x, y);
        }
        self.plain_binary(op, a, b)
    }
}
