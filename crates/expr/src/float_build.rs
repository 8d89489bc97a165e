//! Constructors of float terms. Constants are folded exactly; little else is simplified, because
//! float identities rarely hold.

use crate::arena::Arena;
use crate::float;
use crate::node::{ExprId, FloatCompareOp, FloatFormat, FloatOp, FloatUnaryOp, Node};

impl Arena {
    fn expect_format(&self, e: ExprId, format: FloatFormat) {
        assert_eq!(
            self.width(e),
            format.width(),
            "operand is not of format {format:?}"
        );
    }

    /// Returns float arithmetic on two terms of the format.
    pub fn float_binary(
        &mut self,
        op: FloatOp,
        format: FloatFormat,
        a: ExprId,
        b: ExprId,
    ) -> ExprId {
        self.expect_format(a, format);
        self.expect_format(b, format);
        if let (Some(x), Some(y)) = (self.as_const_u128(a), self.as_const_u128(b)) {
            return self.constant_u128(format.width(), float::binary(op, format, x, y));
        }
        self.intern(Node::FloatBinary { op, format, a, b }, format.width())
    }

    /// Returns the square root, or the rounding to an integral value.
    pub fn float_unary(&mut self, op: FloatUnaryOp, format: FloatFormat, e: ExprId) -> ExprId {
        self.expect_format(e, format);
        if let Some(bits) = self.as_const_u128(e) {
            return self.constant_u128(format.width(), float::unary(op, format, bits));
        }
        self.intern(Node::FloatUnary { op, format, e }, format.width())
    }

    /// Returns a float comparison, at width 1.
    pub fn float_compare(
        &mut self,
        op: FloatCompareOp,
        format: FloatFormat,
        a: ExprId,
        b: ExprId,
    ) -> ExprId {
        self.expect_format(a, format);
        self.expect_format(b, format);
        if let (Some(x), Some(y)) = (self.as_const_u128(a), self.as_const_u128(b)) {
            return self.bool_constant(float::compare(op, format, x, y));
        }
        // Equality and unordered comparisons are symmetric.
        let (a, b) = match op {
            FloatCompareOp::Oeq | FloatCompareOp::Uno => self.ordered(a, b),
            _ => (a, b),
        };
        if a == b && op == FloatCompareOp::Olt {
            return self.bool_constant(false);
        }
        if a == b && matches!(op, FloatCompareOp::Oeq | FloatCompareOp::Ole) {
            let unordered = self.float_compare(FloatCompareOp::Uno, format, a, b);
            return self.not(unordered);
        }
        self.intern(Node::FloatCompare { op, format, a, b }, 1)
    }

    /// Converts between formats.
    pub fn float_convert(&mut self, from: FloatFormat, to: FloatFormat, e: ExprId) -> ExprId {
        self.expect_format(e, from);
        if from == to {
            return e;
        }
        if let Some(bits) = self.as_const_u128(e) {
            return self.constant_u128(to.width(), float::convert(from, to, bits));
        }
        self.intern(Node::FloatConvert { from, to, e }, to.width())
    }

    /// Converts an integer of any width to a float.
    pub fn float_from_int(&mut self, signed: bool, format: FloatFormat, e: ExprId) -> ExprId {
        if let Some(value) = self.as_const_limbs(e) {
            let bits = float::from_int(signed, format, self.width(e), value);
            return self.constant_u128(format.width(), bits);
        }
        self.intern(Node::FloatFromInt { signed, format, e }, format.width())
    }

    /// Truncates a float towards zero to an integer of this width.
    pub fn float_to_int(
        &mut self,
        signed: bool,
        format: FloatFormat,
        e: ExprId,
        width: u32,
    ) -> ExprId {
        self.expect_format(e, format);
        assert!(width > 0, "a term has at least one bit");
        if let Some(bits) = self.as_const_u128(e) {
            let value = float::to_int(signed, format, bits, width);
            return self.constant_limbs(width, &value);
        }
        self.intern(Node::FloatToInt { signed, format, e }, width)
    }

    fn sign_constant(&mut self, format: FloatFormat) -> ExprId {
        self.constant_u128(format.width(), 1 << (format.width() - 1))
    }

    /// Negates a float by flipping its sign bit, also for NaNs.
    pub fn float_neg(&mut self, format: FloatFormat, e: ExprId) -> ExprId {
        self.expect_format(e, format);
        let sign = self.sign_constant(format);
        self.xor(e, sign)
    }

    /// Returns the absolute value of a float, by clearing its sign bit, also for NaNs.
    pub fn float_abs(&mut self, format: FloatFormat, e: ExprId) -> ExprId {
        self.expect_format(e, format);
        let sign = self.sign_constant(format);
        let rest = self.not(sign);
        self.and(e, rest)
    }

    /// Returns the float with the magnitude of one operand and the sign of the other.
    pub fn float_copysign(
        &mut self,
        format: FloatFormat,
        magnitude: ExprId,
        sign: ExprId,
    ) -> ExprId {
        let magnitude = self.float_abs(format, magnitude);
        let bit = self.sign_constant(format);
        let sign = self.and(sign, bit);
        self.or(magnitude, sign)
    }

    /// Returns whether a float is NaN, as a term of width 1.
    pub fn float_is_nan(&mut self, format: FloatFormat, e: ExprId) -> ExprId {
        self.float_compare(FloatCompareOp::Uno, format, e, e)
    }
}
