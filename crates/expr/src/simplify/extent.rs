//! Sums and products of more than 64 bits whose results fit in 64 bits, because the operands are
//! small. Overflow checks compute such terms.

use crate::arena::Arena;
use crate::node::{BinaryOp, ExprId, Node};
use crate::scalar;

/// Maximum depth to which a term is searched for its least and greatest value.
const MAX_DEPTH: u32 = 10;

/// The least and the greatest value of a term as a signed number.
type Extent = (i128, i128);

impl Arena {
    /// Returns the operation on words of 64 bits with its result extended, if the result fits.
    pub(super) fn narrow_extended(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> Option<ExprId> {
        let width = self.width(a);
        if width <= 64 {
            return None;
        }
        if let (Some((x, x_max)), Some((y, y_max))) = (self.unsigned_word(a), self.unsigned_word(b))
            && let BinaryOp::Add | BinaryOp::Mul = op
        {
            match op {
                BinaryOp::Add => x_max.checked_add(y_max)?,
                _ => x_max.checked_mul(y_max)?,
            };
            let (x, y) = (self.zext(x, 64), self.zext(y, 64));
            let narrow = self.binary(op, x, y);
            return Some(self.zext(narrow, width));
        }
        let (x, y) = (self.extended(a)?, self.extended(b)?);
        fitting(64, combined(op, x, y)?)?;
        let (x, y) = (self.extract(a, 0, 64), self.extract(b, 0, 64));
        let narrow = self.binary(op, x, y);
        Some(self.sext(narrow, width))
    }

    /// Returns the operand of a zero extension, and its greatest value.
    fn unsigned_word(&self, e: ExprId) -> Option<(ExprId, u64)> {
        match self.node(e) {
            Node::ZeroExtend { e } if self.width(e) <= 64 => Some((e, self.unsigned_range(e).1)),
            _ => None,
        }
    }

    /// Returns the extent of an extended word or of a wide constant, if it fits in a signed number
    /// of 64 bits.
    fn extended(&self, e: ExprId) -> Option<Extent> {
        let width = self.width(e);
        let extent = match self.node(e) {
            Node::WideConstant { .. } if width <= 128 => {
                let shift = 128 - width;
                let number = (self.as_const_u128(e)? << shift) as i128 >> shift;
                (number, number)
            }
            Node::ZeroExtend { e } if self.width(e) <= 64 => {
                let (min, max) = self.unsigned_range(e);
                (i128::from(min), i128::from(max))
            }
            Node::SignExtend { e } if self.width(e) <= 64 => self.extent(e, MAX_DEPTH),
            _ => return None,
        };
        fitting(64, extent)
    }

    fn extent(&self, e: ExprId, depth: u32) -> Extent {
        let width = self.width(e);
        let computed = match self.node(e) {
            _ if depth == 0 => None,
            Node::Binary {
                op: op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul),
                a,
                b,
            } => combined(op, self.extent(a, depth - 1), self.extent(b, depth - 1)),
            Node::SignExtend { e } => Some(self.extent(e, depth - 1)),
            _ => None,
        };
        let known = computed.and_then(|extent| fitting(width, extent));
        known.unwrap_or_else(|| {
            let (min, max) = self.unsigned_range(e);
            match min & scalar::sign_bit(width) == max & scalar::sign_bit(width) {
                true => (
                    i128::from(scalar::to_signed(width, min)),
                    i128::from(scalar::to_signed(width, max)),
                ),
                false => whole(width),
            }
        })
    }
}

/// Returns the extent of all signed numbers of a width.
fn whole(width: u32) -> Extent {
    (-(1 << (width - 1)), (1 << (width - 1)) - 1)
}

/// Returns the extent, if it is within the signed numbers of a width, so that nothing wraps around.
fn fitting(width: u32, extent: Extent) -> Option<Extent> {
    let (least, greatest) = whole(width);
    (least <= extent.0 && extent.1 <= greatest).then_some(extent)
}

/// Returns the extent of an exact result, without wrapping. The operands must have at most 65 bits.
fn combined(op: BinaryOp, (a, b): Extent, (c, d): Extent) -> Option<Extent> {
    match op {
        BinaryOp::Add => Some((a + c, b + d)),
        BinaryOp::Sub => Some((a - d, b - c)),
        BinaryOp::Mul => {
            let corners = [(a, c), (a, d), (b, c), (b, d)];
            let mut least = i128::MAX;
            let mut greatest = i128::MIN;
            for (x, y) in corners {
                let product = x.checked_mul(y)?;
                least = least.min(product);
                greatest = greatest.max(product);
            }
            Some((least, greatest))
        }
        _ => None,
    }
}
