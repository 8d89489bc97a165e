//! The structure of terms: typed ids, operators and nodes. It knows nothing of simplification.

use std::num::NonZeroU32;

/// A term of one arena. Ids are dense, so they can index flat arrays.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ExprId(NonZeroU32);

impl ExprId {
    /// Index of the term in arrays with one entry per term.
    #[inline]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// The inverse of [`ExprId::index`].
    ///
    /// # Panics
    /// If the index does not fit in 32 bits.
    #[inline]
    pub fn from_index(index: usize) -> ExprId {
        let raw = u32::try_from(index).ok().and_then(|i| i.checked_add(1));
        ExprId(
            raw.and_then(NonZeroU32::new)
                .expect("a term index fits in 32 bits"),
        )
    }
}

/// A symbolic array of bytes.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ArrayId(pub(crate) u32);

impl ArrayId {
    /// Index in arrays with one entry per symbolic array.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One symbolic byte: a position in a symbolic array.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Variable {
    /// The array that the byte belongs to.
    pub array: ArrayId,
    /// The position of the byte in the array.
    pub index: u32,
}

/// Name and size of a symbolic array.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ArrayInfo {
    /// Distinguishes arrays of the same name, and orders them.
    pub ordinal: u32,
    /// The name that the user gave.
    pub name: String,
    /// Number of bytes.
    pub size: u32,
}

/// Arithmetic and bitwise operators, total as in SMT-LIB: dividing by zero gives all ones (or the
/// dividend for remainders), shifting by the width or more gives zero (or copies of the sign).
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    And,
    Or,
    Xor,
    Shl,
    LShr,
    AShr,
}

impl BinaryOp {
    /// All operators, in encoding order.
    pub const ALL: [BinaryOp; 13] = {
        use BinaryOp::*;
        [
            Add, Sub, Mul, UDiv, SDiv, URem, SRem, And, Or, Xor, Shl, LShr, AShr,
        ]
    };

    /// Whether the operation is commutative.
    pub fn is_commutative(self) -> bool {
        use BinaryOp::*;
        matches!(self, Add | Mul | And | Or | Xor)
    }
}

/// Comparisons; the others are expressed by swapping operands or negating.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum CompareOp {
    Eq,
    Ult,
    Ule,
    Slt,
    Sle,
}

impl CompareOp {
    /// All comparisons, in encoding order.
    pub const ALL: [CompareOp; 5] = [
        CompareOp::Eq,
        CompareOp::Ult,
        CompareOp::Ule,
        CompareOp::Slt,
        CompareOp::Sle,
    ];
}

/// The layout of a float's bits.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum FloatFormat {
    /// IEEE binary16.
    Half,
    /// IEEE binary32.
    Single,
    /// IEEE binary64.
    Double,
    /// The 80-bit extended format of the x87, with its explicit integer bit.
    X87,
}

impl FloatFormat {
    /// All formats, in encoding order.
    pub const ALL: [FloatFormat; 4] = [
        FloatFormat::Half,
        FloatFormat::Single,
        FloatFormat::Double,
        FloatFormat::X87,
    ];

    /// Number of bits of a value in this format.
    pub fn width(self) -> u32 {
        match self {
            FloatFormat::Half => 16,
            FloatFormat::Single => 32,
            FloatFormat::Double => 64,
            FloatFormat::X87 => 80,
        }
    }
}

/// Float arithmetic on two operands, rounded to nearest even.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum FloatOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// Remainder of the quotient truncated towards zero (`fmod`, LLVM's `frem`).
    Rem,
}

impl FloatOp {
    /// All operators, in encoding order.
    pub const ALL: [FloatOp; 5] = [
        FloatOp::Add,
        FloatOp::Sub,
        FloatOp::Mul,
        FloatOp::Div,
        FloatOp::Rem,
    ];
}

/// How a float is rounded to an integral value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum RoundingMode {
    /// To the nearest, ties to even (`rint`, `roundeven`).
    NearestEven,
    /// To the nearest, ties away from zero (`round`).
    NearestAway,
    /// Towards zero (`trunc`).
    TowardZero,
    /// Towards positive infinity (`ceil`).
    TowardPositive,
    /// Towards negative infinity (`floor`).
    TowardNegative,
}

impl RoundingMode {
    /// All modes, in encoding order.
    pub const ALL: [RoundingMode; 5] = [
        RoundingMode::NearestEven,
        RoundingMode::NearestAway,
        RoundingMode::TowardZero,
        RoundingMode::TowardPositive,
        RoundingMode::TowardNegative,
    ];
}

/// Float operations on one operand. Negation and absolute value are operations on the sign bit, see
/// `Arena::float_neg` and `Arena::float_abs`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum FloatUnaryOp {
    /// Square root, rounded to nearest even.
    Sqrt,
    /// Rounds to an integral float in this mode.
    RoundToIntegral(RoundingMode),
}

/// Float comparisons; the others are expressed by swapping operands, negating and combining.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum FloatCompareOp {
    /// Equal, and neither is NaN.
    Oeq,
    /// Less, and neither is NaN.
    Olt,
    /// Less or equal, and neither is NaN.
    Ole,
    /// At least one is NaN.
    Uno,
}

impl FloatCompareOp {
    /// All comparisons, in encoding order.
    pub const ALL: [FloatCompareOp; 4] = [
        FloatCompareOp::Oeq,
        FloatCompareOp::Olt,
        FloatCompareOp::Ole,
        FloatCompareOp::Uno,
    ];
}

/// The node of a term. The arena stores its width; float operands and results are bit vectors in
/// the encoding of the format.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Node {
    /// A constant of at most 64 bits; bits above the width are zero.
    Constant { bits: u64 },
    /// A constant of more than 64 bits: `Arena::as_const_limbs` gives its value.
    WideConstant { index: u32 },
    /// A symbolic byte.
    Read { array: ArrayId, index: u32 },
    /// Bitwise complement; logical negation at width 1.
    Not { e: ExprId },
    /// Operands and result have the same width.
    Binary { op: BinaryOp, a: ExprId, b: ExprId },
    /// Operands have the same width, the result has width 1.
    Compare { op: CompareOp, a: ExprId, b: ExprId },
    /// `c` has width 1, `a` (where `c` is true) and `b` have the width of the result.
    Ite { c: ExprId, a: ExprId, b: ExprId },
    /// Bits `low..low + width` of `e`.
    Extract { e: ExprId, low: u32 },
    /// The concatenation of `hi` and `lo`.
    Concat { hi: ExprId, lo: ExprId },
    /// Zero extension.
    ZeroExtend { e: ExprId },
    /// Sign extension.
    SignExtend { e: ExprId },
    FloatBinary {
        op: FloatOp,
        format: FloatFormat,
        a: ExprId,
        b: ExprId,
    },
    FloatUnary {
        op: FloatUnaryOp,
        format: FloatFormat,
        e: ExprId,
    },
    /// The result has width 1.
    FloatCompare {
        op: FloatCompareOp,
        format: FloatFormat,
        a: ExprId,
        b: ExprId,
    },
    /// From one format to another, rounded to nearest even.
    FloatConvert {
        from: FloatFormat,
        to: FloatFormat,
        e: ExprId,
    },
    /// An integer of any width to a float, rounded to nearest even.
    FloatFromInt {
        signed: bool,
        format: FloatFormat,
        e: ExprId,
    },
    /// Truncates a float towards zero to an integer of the term's width. Out of range gives only
    /// the sign bit set (x86's "integer indefinite"), signed or not.
    FloatToInt {
        signed: bool,
        format: FloatFormat,
        e: ExprId,
    },
}

/// The operands of a node, in order.
#[derive(Copy, Clone, Debug)]
pub struct Children {
    ids: [Option<ExprId>; 3],
    next: usize,
}

impl Iterator for Children {
    type Item = ExprId;

    #[inline]
    fn next(&mut self) -> Option<ExprId> {
        let id = *self.ids.get(self.next)?;
        self.next += 1;
        id
    }
}

impl Node {
    /// The operands, in order.
    #[inline]
    pub fn children(&self) -> Children {
        let ids = match *self {
            Node::Constant { .. } | Node::WideConstant { .. } | Node::Read { .. } => {
                [None, None, None]
            }
            Node::Not { e }
            | Node::Extract { e, .. }
            | Node::ZeroExtend { e }
            | Node::SignExtend { e }
            | Node::FloatUnary { e, .. }
            | Node::FloatConvert { e, .. }
            | Node::FloatFromInt { e, .. }
            | Node::FloatToInt { e, .. } => [Some(e), None, None],
            Node::Binary { a, b, .. }
            | Node::Compare { a, b, .. }
            | Node::FloatBinary { a, b, .. }
            | Node::FloatCompare { a, b, .. } => [Some(a), Some(b), None],
            Node::Concat { hi, lo } => [Some(hi), Some(lo), None],
            Node::Ite { c, a, b } => [Some(c), Some(a), Some(b)],
        };
        Children { ids, next: 0 }
    }

    /// Whether the node is a constant of any width.
    #[inline]
    pub fn is_constant(&self) -> bool {
        matches!(self, Node::Constant { .. } | Node::WideConstant { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_nodes_are_small() {
        assert_eq!(std::mem::size_of::<Option<ExprId>>(), 4);
        assert_eq!(std::mem::size_of::<Node>(), 16);
        assert_eq!(ExprId::from_index(7).index(), 7);
    }
}
