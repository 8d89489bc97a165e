//! The structure of terms: typed ids, operators and nodes. It knows nothing of simplification.

use std::num::NonZeroU32;

/// A term of one arena. Ids are dense, so they can index flat arrays.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ExprId(NonZeroU32);

impl ExprId {
    pub(crate) const FIRST: ExprId = ExprId(NonZeroU32::MIN);

    /// Returns the position of the term in arrays with one entry per term.
    #[inline]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Returns the inverse of [`ExprId::index`].
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
    /// Returns the position of the array in arrays with one entry per symbolic array.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A table of constants.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TableId(pub(crate) u32);

/// One symbolic byte: a position in a symbolic array.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Variable {
    /// The array that the byte belongs to.
    pub array: ArrayId,
    /// The position of the byte in the array.
    pub index: u32,
}

/// Ordinal, name and size of a symbolic array.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ArrayInfo {
    /// A number that distinguishes arrays of the same name, and orders them.
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

    /// Returns whether the operation is commutative.
    pub fn is_commutative(self) -> bool {
        use BinaryOp::*;
        matches!(self, Add | Mul | And | Or | Xor)
    }
}

/// Comparisons; all others are expressed by swapping operands or negating.
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

    /// Returns the number of bits of a value in this format.
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
    /// Rounding to an integral float in this mode.
    RoundToIntegral(RoundingMode),
}

/// Float comparisons; all others are expressed by swapping operands, negating and combining.
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
    /// An arithmetic or bitwise operator; operands and result have the same width.
    Binary { op: BinaryOp, a: ExprId, b: ExprId },
    /// A comparison; operands have the same width, the result has width 1.
    Compare { op: CompareOp, a: ExprId, b: ExprId },
    /// If-then-else: `c` has width 1, `a` (if `c` is true) and `b` have the width of the result.
    Ite { c: ExprId, a: ExprId, b: ExprId },
    /// The entry of a table (`Arena::table`) at an index; indices past the end give the last entry.
    Select { table: TableId, index: ExprId },
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
    /// A float comparison; the result has width 1.
    FloatCompare {
        op: FloatCompareOp,
        format: FloatFormat,
        a: ExprId,
        b: ExprId,
    },
    /// A conversion between float formats, rounded to nearest even.
    FloatConvert {
        from: FloatFormat,
        to: FloatFormat,
        e: ExprId,
    },
    /// A conversion of an integer of any width to a float, rounded to nearest even.
    FloatFromInt {
        signed: bool,
        format: FloatFormat,
        e: ExprId,
    },
    /// A float truncated towards zero to an integer of the term's width. Out of range, only the
    /// sign bit is set (x86's "integer indefinite"), signed or not.
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

/// Numbers of operators, as they are encoded and digested. They never change.
pub(crate) mod tag {
    pub const CONSTANT: u8 = 0;
    pub const WIDE_CONSTANT: u8 = 1;
    pub const READ: u8 = 2;
    pub const NOT: u8 = 3;
    pub const ITE: u8 = 4;
    pub const EXTRACT: u8 = 5;
    pub const CONCAT: u8 = 6;
    pub const ZERO_EXTEND: u8 = 7;
    pub const SIGN_EXTEND: u8 = 8;
    pub const FLOAT_BINARY: u8 = 9;
    pub const FLOAT_UNARY: u8 = 10;
    pub const FLOAT_COMPARE: u8 = 11;
    pub const FLOAT_CONVERT: u8 = 12;
    pub const FLOAT_FROM_INT: u8 = 13;
    pub const FLOAT_TO_INT: u8 = 14;
    pub const SELECT: u8 = 15;
    pub const BINARY: u8 = 16;
    pub const COMPARE: u8 = 32;
}

/// The content of a node besides its operands and its width, in numbers that never change.
pub(crate) struct Code {
    /// The operator.
    pub tag: u8,
    /// The format and the other parameters of a float operation.
    pub parts: Option<[u8; 2]>,
    /// A number that is not an operand: a value, an index or a position.
    pub number: Option<u64>,
}

impl Node {
    /// Returns the operands, in order.
    #[inline]
    pub fn children(&self) -> Children {
        let ids = match *self {
            Node::Constant { .. } | Node::WideConstant { .. } | Node::Read { .. } => {
                [None, None, None]
            }
            Node::Not { e }
            | Node::Select { index: e, .. }
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

    /// Returns the operator and its numbers, without the array of a read, a table, and the limbs of
    /// a wide constant.
    #[inline]
    pub(crate) fn code(&self) -> Code {
        let plain = |tag| (tag, None, None);
        let (tag, parts, number) = match *self {
            Node::Constant { bits } => (tag::CONSTANT, None, Some(bits)),
            Node::WideConstant { .. } => plain(tag::WIDE_CONSTANT),
            Node::Read { index, .. } => (tag::READ, None, Some(u64::from(index))),
            Node::Not { .. } => plain(tag::NOT),
            Node::Binary { op, .. } => plain(tag::BINARY + op as u8),
            Node::Compare { op, .. } => plain(tag::COMPARE + op as u8),
            Node::Ite { .. } => plain(tag::ITE),
            Node::Select { .. } => plain(tag::SELECT),
            Node::Extract { low, .. } => (tag::EXTRACT, None, Some(u64::from(low))),
            Node::Concat { .. } => plain(tag::CONCAT),
            Node::ZeroExtend { .. } => plain(tag::ZERO_EXTEND),
            Node::SignExtend { .. } => plain(tag::SIGN_EXTEND),
            Node::FloatBinary { op, format, .. } => {
                (tag::FLOAT_BINARY, Some([op as u8, format as u8]), None)
            }
            Node::FloatUnary { op, format, .. } => {
                let op = match op {
                    FloatUnaryOp::Sqrt => 0,
                    FloatUnaryOp::RoundToIntegral(mode) => 1 + mode as u8,
                };
                (tag::FLOAT_UNARY, Some([op, format as u8]), None)
            }
            Node::FloatCompare { op, format, .. } => {
                (tag::FLOAT_COMPARE, Some([op as u8, format as u8]), None)
            }
            Node::FloatConvert { from, to, .. } => {
                (tag::FLOAT_CONVERT, Some([from as u8, to as u8]), None)
            }
            Node::FloatFromInt { signed, format, .. } => {
                let parts = [u8::from(signed), format as u8];
                (tag::FLOAT_FROM_INT, Some(parts), None)
            }
            Node::FloatToInt { signed, format, .. } => {
                let parts = [u8::from(signed), format as u8];
                (tag::FLOAT_TO_INT, Some(parts), None)
            }
        };
        Code { tag, parts, number }
    }

    /// Returns whether two nodes are equal. If the kind of one node is known at compile time, this
    /// is a single comparison of fields.
    #[inline(always)]
    pub(crate) fn is(&self, known: &Node) -> bool {
        use Node::*;
        match (*known, *self) {
            (Constant { bits }, Constant { bits: other }) => bits == other,
            (Read { array, index }, Read { array: r, index: i }) => array == r && index == i,
            (Not { e }, Not { e: x })
            | (ZeroExtend { e }, ZeroExtend { e: x })
            | (SignExtend { e }, SignExtend { e: x }) => e == x,
            (Binary { op, a, b }, Binary { op: o, a: x, b: y }) => op == o && a == x && b == y,
            (Compare { op, a, b }, Compare { op: o, a: x, b: y }) => op == o && a == x && b == y,
            (Ite { c, a, b }, Ite { c: z, a: x, b: y }) => c == z && a == x && b == y,
            (Extract { e, low }, Extract { e: x, low: l }) => e == x && low == l,
            (Concat { hi, lo }, Concat { hi: x, lo: y }) => hi == x && lo == y,
            _ => self == known,
        }
    }

    /// Returns the node as two words: operator and first operand, and the rest.
    #[inline(always)]
    pub(crate) fn words(&self) -> [u64; 2] {
        let word = |low: u64, high: u64| low | high << 32;
        let id = |e: ExprId| u64::from(e.0.get());
        let head = |tag: u8, first| word(u64::from(tag), first);
        match *self {
            Node::Constant { bits } => [head(tag::CONSTANT, 0), bits],
            Node::WideConstant { index } => [head(tag::WIDE_CONSTANT, 0), u64::from(index)],
            Node::Read { array, index } => [head(tag::READ, u64::from(array.0)), u64::from(index)],
            Node::Not { e } => [head(tag::NOT, id(e)), 0],
            Node::Binary { op, a, b } => [head(tag::BINARY + op as u8, id(a)), id(b)],
            Node::Compare { op, a, b } => [head(tag::COMPARE + op as u8, id(a)), id(b)],
            Node::Ite { c, a, b } => [head(tag::ITE, id(c)), word(id(a), id(b))],
            Node::Select { table, index } => [head(tag::SELECT, id(index)), u64::from(table.0)],
            Node::Extract { e, low } => [head(tag::EXTRACT, id(e)), u64::from(low)],
            Node::Concat { hi, lo } => [head(tag::CONCAT, id(hi)), id(lo)],
            Node::ZeroExtend { e } => [head(tag::ZERO_EXTEND, id(e)), 0],
            Node::SignExtend { e } => [head(tag::SIGN_EXTEND, id(e)), 0],
            _ => self.float_words(),
        }
    }

    fn float_words(&self) -> [u64; 2] {
        let code = self.code();
        let [first, second] = code.parts.unwrap_or_default();
        let head = u64::from(code.tag) | u64::from(first) << 8 | u64::from(second) << 16;
        let mut operands = self.children().map(|e| u64::from(e.0.get()));
        let mut operand = || operands.next().unwrap_or(0);
        [head | operand() << 32, operand()]
    }

    /// Returns whether the node is a constant of any width.
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
