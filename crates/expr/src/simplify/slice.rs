//! Rules for extraction and concatenation.

use crate::arena::Arena;
use crate::node::{BinaryOp, ExprId, Node};
use crate::scalar;

impl Arena {
    /// Returns whether extracting the low bits makes a term smaller instead of only wrapping it.
    pub(super) fn narrows(&self, e: ExprId, width: u32, depth: u32) -> bool {
        match self.node(e) {
            Node::Constant { .. } | Node::WideConstant { .. } | Node::Select { .. } => true,
            Node::ZeroExtend { e } | Node::SignExtend { e } => {
                self.width(e) <= width || depth > 0 && self.narrows(e, width, depth - 1)
            }
            Node::Concat { lo, .. } => {
                self.width(lo) <= width || depth > 0 && self.narrows(lo, width, depth - 1)
            }
            Node::Extract { .. } => true,
            Node::Binary {
                op: BinaryOp::Shl,
                a,
                b,
            } if self.is_const(b) => depth > 0 && self.narrows(a, width, depth - 1),
            Node::Not { e } => depth > 0 && self.narrows(e, width, depth - 1),
            Node::Ite { a, b, .. } => {
                depth > 0 && self.narrows(a, width, depth - 1) && self.narrows(b, width, depth - 1)
            }
            Node::Binary { op, a, b } => {
                use BinaryOp::{Add, And, Mul, Or, Sub, Xor};
                matches!(op, Add | Sub | Mul | And | Or | Xor)
                    && depth > 0
                    && self.narrows(a, width, depth - 1)
                    && self.narrows(b, width, depth - 1)
            }
            _ => false,
        }
    }

    pub(crate) fn simplify_extract(&mut self, e: ExprId, low: u32, width: u32) -> ExprId {
        let end = low + width;
        match self.node(e) {
            Node::Extract {
                e: inner,
                low: below,
            } => self.extract(inner, below + low, width),
            Node::Concat { hi, lo } => {
                let cut = self.width(lo);
                if end <= cut {
                    self.extract(lo, low, width)
                } else if low >= cut {
                    self.extract(hi, low - cut, width)
                } else {
                    let lo = self.extract(lo, low, cut - low);
                    let hi = self.extract(hi, 0, end - cut);
                    self.concat(hi, lo)
                }
            }
            Node::ZeroExtend { e: inner } => self.extract_extended(inner, low, width, false),
            Node::SignExtend { e: inner } => self.extract_extended(inner, low, width, true),
            Node::Not { e: inner } => {
                let part = self.extract(inner, low, width);
                self.not(part)
            }
            Node::Ite { c, a, b } if self.is_const(a) && self.is_const(b) => {
                let (a, b) = (self.extract(a, low, width), self.extract(b, low, width));
                self.ite(c, a, b)
            }
            Node::Select { table, index } => self.extract_selected(table, index, low, width),
            Node::Binary {
                op: BinaryOp::Shl,
                a,
                b,
            } if self.is_const(b) => self.extract_shifted(e, a, low, width),
            Node::Binary { op, a, b }
                if self.splits(op, low, end, a, b) || self.carries_nothing(op, low, a, b) =>
            {
                let (a, b) = (self.extract(a, low, width), self.extract(b, low, width));
                self.binary(op, a, b)
            }
            _ => self.intern(Node::Extract { e, low }, width),
        }
    }

    /// Returns whether bits of the result depend only on the same bits of the operands, and
    /// extracting them there pays off.
    fn splits(&self, op: BinaryOp, low: u32, end: u32, a: ExprId, b: ExprId) -> bool {
        match op {
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
                self.is_const(b) || self.narrows(a, end, 3) && self.narrows(b, end, 3)
            }
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
                low == 0 && self.narrows(a, end, 3) && self.narrows(b, end, 3)
            }
            _ => false,
        }
    }

    /// Returns whether a sum of a shifted term and a constant has zeros below `low` in both
    /// summands, so that its bits above are the sum of their bits: the index of an element is such
    /// a part of its address.
    fn carries_nothing(&self, op: BinaryOp, low: u32, a: ExprId, b: ExprId) -> bool {
        let shift = |e: ExprId| match (op, self.as_shifted(e)) {
            (BinaryOp::Add, Some((_, shift))) => shift,
            _ => 0,
        };
        let low = low.min(u64::BITS - 1);
        low > 0 && shift(a) >= low && self.as_const(b).is_some_and(|b| b & scalar::mask(low) == 0)
    }

    /// Returns bits of `e`, which is `x` shifted left.
    fn extract_shifted(&mut self, e: ExprId, x: ExprId, low: u32, width: u32) -> ExprId {
        let Some((_, shift)) = self.as_shifted(e) else {
            return self.intern(Node::Extract { e, low }, width);
        };
        if low >= shift {
            return self.extract(x, low - shift, width);
        }
        if low + width <= shift {
            return self.zero(width);
        }
        if low == 0 && !self.narrows(x, width, 3) {
            return self.intern(Node::Extract { e, low }, width);
        }
        let kept = self.extract(x, 0, low + width - shift);
        let zeros = self.zero(shift - low);
        self.concat(kept, zeros)
    }

    fn extract_extended(&mut self, inner: ExprId, low: u32, width: u32, signed: bool) -> ExprId {
        let cut = self.width(inner);
        if low + width <= cut {
            return self.extract(inner, low, width);
        }
        if low >= cut && !signed {
            return self.zero(width);
        }
        // At least the sign bit of a signed term remains.
        let low = low.min(cut - 1);
        let kept = self.extract(inner, low, cut - low);
        if signed {
            self.sext_or_trunc(kept, width)
        } else {
            self.zext(kept, width)
        }
    }

    pub(crate) fn simplify_concat(&mut self, hi: ExprId, lo: ExprId) -> ExprId {
        let (hi_width, lo_width) = (self.width(hi), self.width(lo));
        let width = hi_width + lo_width;
        if self.is_zero(hi) {
            return self.zext(lo, width);
        }
        match self.node(hi) {
            Node::Concat {
                hi: top,
                lo: middle,
            } => {
                let lo = self.concat(middle, lo);
                return self.concat(top, lo);
            }
            Node::ZeroExtend { e } => {
                let joined = self.concat(e, lo);
                return self.zext(joined, width);
            }
            _ => {}
        }
        if let Some(joined) = self.joined(hi, lo) {
            return joined;
        }
        match self.node(lo) {
            Node::Concat {
                hi: middle,
                lo: low,
            } => {
                if let Some(top) = self.joined(hi, middle) {
                    return self.concat(top, low);
                }
            }
            Node::ZeroExtend { e } if self.is_const(hi) => {
                let zeros = self.zero(lo_width - self.width(e));
                let top = self.concat(hi, zeros);
                return self.concat(top, e);
            }
            _ => {}
        }
        self.intern(Node::Concat { hi, lo }, width)
    }

    /// Joins two adjacent parts of the same term.
    fn joined(&mut self, hi: ExprId, lo: ExprId) -> Option<ExprId> {
        let (hi_width, lo_width) = (self.width(hi), self.width(lo));
        if self.is_const(hi) && self.is_const(lo) {
            return Some(self.concat(hi, lo));
        }
        let sign = match self.node(hi) {
            Node::SignExtend { e } if self.width(e) == 1 => e,
            _ => hi,
        };
        match (self.node(hi), self.node(lo)) {
            (
                Node::Extract { e, low },
                Node::Extract {
                    e: same,
                    low: below,
                },
            ) if e == same && below + lo_width == low => {
                Some(self.extract(e, below, hi_width + lo_width))
            }
            (
                Node::Ite { c, a, b },
                Node::Ite {
                    c: same,
                    a: x,
                    b: y,
                },
            ) if c == same => {
                let (a, b) = (self.concat(a, x), self.concat(b, y));
                Some(self.ite(c, a, b))
            }
            // The neighbour may be a part of the same term in another form.
            (Node::Extract { e, low }, _)
                if low >= lo_width && self.extract(e, low - lo_width, lo_width) == lo =>
            {
                Some(self.extract(e, low - lo_width, hi_width + lo_width))
            }
            (_, Node::Extract { e, low })
                if low + lo_width + hi_width <= self.width(e)
                    && self.extract(e, low + lo_width, hi_width) == hi =>
            {
                Some(self.extract(e, low, hi_width + lo_width))
            }
            (
                Node::Binary { op, a: x, b: c },
                Node::Binary {
                    op: same,
                    a: y,
                    b: d,
                },
            ) if op == same
                && matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor)
                && self.is_const(c)
                && self.is_const(d) =>
            {
                let both = self.joined(x, y)?;
                let constant = self.concat(c, d);
                Some(self.binary(op, both, constant))
            }
            _ => match self.node(sign) {
                Node::Extract { e, low }
                    if e == lo && low == lo_width - 1 && self.width(sign) == 1 =>
                {
                    Some(self.sext(lo, hi_width + lo_width))
                }
                _ => None,
            },
        }
    }

    pub(crate) fn simplify_zext(&mut self, e: ExprId, width: u32) -> ExprId {
        match self.node(e) {
            Node::ZeroExtend { e } => self.intern(Node::ZeroExtend { e }, width),
            Node::Ite { c, a, b } if self.is_const(a) && self.is_const(b) => {
                let (a, b) = (self.zext(a, width), self.zext(b, width));
                self.ite(c, a, b)
            }
            _ => self.intern(Node::ZeroExtend { e }, width),
        }
    }

    pub(crate) fn simplify_sext(&mut self, e: ExprId, width: u32) -> ExprId {
        match self.node(e) {
            Node::SignExtend { e } => self.intern(Node::SignExtend { e }, width),
            Node::ZeroExtend { e } => self.zext(e, width),
            Node::Ite { c, a, b } if self.is_const(a) && self.is_const(b) => {
                let (a, b) = (self.sext(a, width), self.sext(b, width));
                self.ite(c, a, b)
            }
            _ => {
                let from = self.width(e);
                if from <= 64 && self.known_bits(e).0 & crate::scalar::sign_bit(from) != 0 {
                    return self.zext(e, width);
                }
                self.intern(Node::SignExtend { e }, width)
            }
        }
    }
}
