//! Term constructors. Each folds constants and passes the rest to the rules in `simplify`.

use crate::arena::Arena;
use crate::limbs;
use crate::node::{BinaryOp, CompareOp, ExprId, Node};
use crate::scalar;

impl Arena {
    /// Returns an arithmetic or bitwise operation on two terms of the same width.
    pub fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        assert_eq!(width, self.width(b), "operands of {op:?} differ in width");
        if let (Some(x), Some(y)) = (self.as_const(a), self.as_const(b)) {
            return self.constant(width, scalar::binary(op, width, x, y));
        }
        if let (Some(x), Some(y)) = (self.as_const_limbs(a), self.as_const_limbs(b)) {
            let value = limbs::binary(op, width, x, y);
            return self.constant_limbs(width, &value);
        }
        // Constants go to the right, all other operands are ordered by content.
        let (a, b) = if op.is_commutative() {
            self.ordered(a, b)
        } else {
            (a, b)
        };
        self.simplified(Node::Binary { op, a, b }, width, |arena| {
            arena.simplify_binary(op, a, b)
        })
    }

    /// Returns a comparison of two terms of the same width.
    pub fn compare(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        assert_eq!(width, self.width(b), "operands of {op:?} differ in width");
        if let (Some(x), Some(y)) = (self.as_const(a), self.as_const(b)) {
            return self.bool_constant(scalar::compare(op, width, x, y));
        }
        if let (Some(x), Some(y)) = (self.as_const_limbs(a), self.as_const_limbs(b)) {
            let value = limbs::compare(op, width, x, y);
            return self.bool_constant(value);
        }
        let (a, b) = if op == CompareOp::Eq {
            self.ordered(a, b)
        } else {
            (a, b)
        };
        self.simplified(Node::Compare { op, a, b }, 1, |arena| {
            arena.simplify_compare(op, a, b)
        })
    }

    /// Returns the bitwise complement, which is logical negation at width 1.
    pub fn not(&mut self, e: ExprId) -> ExprId {
        let width = self.width(e);
        if let Some(bits) = self.as_const(e) {
            return self.constant(width, !bits);
        }
        if let Some(value) = self.as_const_limbs(e) {
            let value = limbs::not(width, value);
            return self.constant_limbs(width, &value);
        }
        self.simplified(Node::Not { e }, width, |arena| arena.simplify_not(e))
    }

    /// Returns `a` if the condition (of width 1) is true, else `b`.
    pub fn ite(&mut self, c: ExprId, a: ExprId, b: ExprId) -> ExprId {
        assert_eq!(self.width(c), 1, "a condition has one bit");
        assert_eq!(self.width(a), self.width(b), "branches differ in width");
        match self.as_const(c) {
            Some(0) => b,
            Some(_) => a,
            None if a == b => a,
            None => {
                let width = self.width(a);
                self.simplified(Node::Ite { c, a, b }, width, |arena| {
                    arena.simplify_ite(c, a, b)
                })
            }
        }
    }

    /// Returns bits `low..low + width` of a term.
    ///
    /// # Panics
    /// If the term is too narrow.
    pub fn extract(&mut self, e: ExprId, low: u32, width: u32) -> ExprId {
        let from = self.width(e);
        assert!(width > 0 && low.checked_add(width).is_some_and(|end| end <= from));
        if width == from {
            return e;
        }
        if let Some(value) = self.as_const_limbs(e) {
            let value = limbs::extract(value, low, width);
            return self.constant_limbs(width, &value);
        }
        self.simplified(Node::Extract { e, low }, width, |arena| {
            arena.simplify_extract(e, low, width)
        })
    }

    /// Returns the concatenation of `hi` (upper bits) and `lo` (lower bits).
    pub fn concat(&mut self, hi: ExprId, lo: ExprId) -> ExprId {
        let (hi_width, lo_width) = (self.width(hi), self.width(lo));
        if let (Some(x), Some(y)) = (self.as_const_limbs(hi), self.as_const_limbs(lo)) {
            let value = limbs::concat(hi_width, x, lo_width, y);
            return self.constant_limbs(hi_width + lo_width, &value);
        }
        let width = hi_width + lo_width;
        self.simplified(Node::Concat { hi, lo }, width, |arena| {
            arena.simplify_concat(hi, lo)
        })
    }

    /// Zero-extends a term to a width that is not less than its own.
    pub fn zext(&mut self, e: ExprId, width: u32) -> ExprId {
        let from = self.width(e);
        assert!(from <= width, "extension to a smaller width");
        if from == width {
            return e;
        }
        if let Some(value) = self.as_const_limbs(e) {
            let value = limbs::extract(value, 0, width);
            return self.constant_limbs(width, &value);
        }
        self.simplified(Node::ZeroExtend { e }, width, |arena| {
            arena.simplify_zext(e, width)
        })
    }

    /// Sign-extends a term to a width that is not less than its own.
    pub fn sext(&mut self, e: ExprId, width: u32) -> ExprId {
        let from = self.width(e);
        assert!(from <= width, "extension to a smaller width");
        if from == width {
            return e;
        }
        if let Some(value) = self.as_const_limbs(e) {
            let value = limbs::sext(from, value, width);
            return self.constant_limbs(width, &value);
        }
        self.simplified(Node::SignExtend { e }, width, |arena| {
            arena.simplify_sext(e, width)
        })
    }

    /// Truncates or zero-extends a term to a width.
    pub fn zext_or_trunc(&mut self, e: ExprId, width: u32) -> ExprId {
        if self.width(e) > width {
            self.extract(e, 0, width)
        } else {
            self.zext(e, width)
        }
    }

    /// Truncates or sign-extends a term to a width.
    pub fn sext_or_trunc(&mut self, e: ExprId, width: u32) -> ExprId {
        if self.width(e) > width {
            self.extract(e, 0, width)
        } else {
            self.sext(e, width)
        }
    }

    /// Joins bytes, least significant first.
    ///
    /// # Panics
    /// If there are no bytes.
    pub fn concat_bytes(&mut self, bytes: &[ExprId]) -> ExprId {
        let (&first, rest) = bytes.split_first().expect("at least one byte");
        rest.iter().fold(first, |low, &byte| self.concat(byte, low))
    }

    /// Returns the constant zero of a width.
    pub fn zero(&mut self, width: u32) -> ExprId {
        self.constant(width, 0)
    }

    /// Returns the constant with all bits set.
    pub fn all_ones(&mut self, width: u32) -> ExprId {
        if width <= 64 {
            return self.constant(width, u64::MAX);
        }
        self.constant_limbs(width, &vec![u64::MAX; limbs::count(width)])
    }

    /// Returns the two's complement negation.
    pub fn neg(&mut self, e: ExprId) -> ExprId {
        let zero = self.zero(self.width(e));
        self.sub(zero, e)
    }

    /// Returns `a != b`.
    pub fn ne(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let equal = self.eq(a, b);
        self.not(equal)
    }

    /// Returns `a > b`, unsigned.
    pub fn ugt(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.ult(b, a)
    }

    /// Returns `a >= b`, unsigned.
    pub fn uge(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.ule(b, a)
    }

    /// Returns `a > b`, signed.
    pub fn sgt(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.slt(b, a)
    }

    /// Returns `a >= b`, signed.
    pub fn sge(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.sle(b, a)
    }

    /// Returns whether any bit of a term is set, as a term of width 1.
    pub fn is_nonzero(&mut self, e: ExprId) -> ExprId {
        if self.width(e) == 1 {
            return e;
        }
        let zero = self.zero(self.width(e));
        self.ne(e, zero)
    }

    /// Returns `!a | b` at width 1.
    pub fn implies(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let not_a = self.not(a);
        self.or(not_a, b)
    }

    /// Returns the conjunction of conditions; true if there are none.
    pub fn all(&mut self, conditions: &[ExprId]) -> ExprId {
        let start = self.bool_constant(true);
        conditions
            .iter()
            .fold(start, |all, &condition| self.and(all, condition))
    }

    /// Returns the disjunction of conditions; false if there are none.
    pub fn any(&mut self, conditions: &[ExprId]) -> ExprId {
        let start = self.bool_constant(false);
        conditions
            .iter()
            .fold(start, |any, &condition| self.or(any, condition))
    }

    /// Rebuilds a node with new operands, through the constructors.
    pub fn rebuild(
        &mut self,
        node: Node,
        width: u32,
        mut operand: impl FnMut(ExprId) -> ExprId,
    ) -> ExprId {
        match node {
            Node::Constant { bits } => self.constant(width, bits),
            Node::WideConstant { .. } | Node::Read { .. } => self.intern(node, width),
            Node::Not { e } => self.not(operand(e)),
            Node::Binary { op, a, b } => self.binary(op, operand(a), operand(b)),
            Node::Compare { op, a, b } => self.compare(op, operand(a), operand(b)),
            Node::Ite { c, a, b } => self.ite(operand(c), operand(a), operand(b)),
            Node::Select { table, index } => self.select_from(table, operand(index)),
            Node::Extract { e, low } => self.extract(operand(e), low, width),
            Node::Concat { hi, lo } => self.concat(operand(hi), operand(lo)),
            Node::ZeroExtend { e } => self.zext(operand(e), width),
            Node::SignExtend { e } => self.sext(operand(e), width),
            Node::FloatBinary { op, format, a, b } => {
                self.float_binary(op, format, operand(a), operand(b))
            }
            Node::FloatUnary { op, format, e } => self.float_unary(op, format, operand(e)),
            Node::FloatCompare { op, format, a, b } => {
                self.float_compare(op, format, operand(a), operand(b))
            }
            Node::FloatConvert { from, to, e } => self.float_convert(from, to, operand(e)),
            Node::FloatFromInt { signed, format, e } => {
                self.float_from_int(signed, format, operand(e))
            }
            Node::FloatToInt { signed, format, e } => {
                self.float_to_int(signed, format, operand(e), width)
            }
        }
    }
}

/// Defines constructors of single operators.
macro_rules! shorthands {
    ($($(#[$doc:meta])* $name:ident = $method:ident($op:expr);)*) => {
        impl Arena {
            $($(#[$doc])*
            #[allow(clippy::should_implement_trait)]
            pub fn $name(&mut self, a: ExprId, b: ExprId) -> ExprId {
                self.$method($op, a, b)
            })*
        }
    };
}

shorthands! {
    /// Sum.
    add = binary(BinaryOp::Add);
    /// Difference.
    sub = binary(BinaryOp::Sub);
    /// Product.
    mul = binary(BinaryOp::Mul);
    /// Unsigned quotient.
    udiv = binary(BinaryOp::UDiv);
    /// Signed quotient.
    sdiv = binary(BinaryOp::SDiv);
    /// Unsigned remainder.
    urem = binary(BinaryOp::URem);
    /// Signed remainder, with the sign of the dividend.
    srem = binary(BinaryOp::SRem);
    /// Bitwise and.
    and = binary(BinaryOp::And);
    /// Bitwise or.
    or = binary(BinaryOp::Or);
    /// Bitwise exclusive or.
    xor = binary(BinaryOp::Xor);
    /// Left shift.
    shl = binary(BinaryOp::Shl);
    /// Logical right shift.
    lshr = binary(BinaryOp::LShr);
    /// Arithmetic right shift.
    ashr = binary(BinaryOp::AShr);
    /// `a == b`.
    eq = compare(CompareOp::Eq);
    /// `a < b`, unsigned.
    ult = compare(CompareOp::Ult);
    /// `a <= b`, unsigned.
    ule = compare(CompareOp::Ule);
    /// `a < b`, signed.
    slt = compare(CompareOp::Slt);
    /// `a <= b`, signed.
    sle = compare(CompareOp::Sle);
}
