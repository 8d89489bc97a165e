//! Constants: plain data and expressions over addresses.

use super::ids::*;
use super::instruction::{BinaryOp, CastOp, FloatPredicate, GepFlags, IntPredicate, Value};

/// A constant with its type. The graph of constants has no cycle (the reader checks that);
/// references to globals and functions are addresses, and are not followed.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Type of the value.
    pub ty: TypeId,
    /// The value.
    pub kind: ConstantKind,
}

/// The value of a constant. Operands are [`Value::Constant`], `Global`, `Function`, `Alias` or
/// `Ifunc`.
#[derive(Clone, Debug, PartialEq)]
pub enum ConstantKind {
    /// All bits zero, of whatever type: the null pointer, `zeroinitializer`, 0.
    Null,
    /// Any value.
    Undef,
    /// A deferred error.
    Poison,
    /// An integer of at most 64 bits, zero-extended.
    Integer(u64),
    /// An integer of more than 64 bits: words from the least significant on, exactly
    /// `width.div_ceil(64)` of them, unused high bits zero.
    WideInteger(Box<[u64]>),
    /// Raw bits of a half, bfloat, float or double.
    Float(u64),
    /// Raw bits of an x86_fp80 (80 used), fp128 or ppc_fp128, the low word first.
    WideFloat([u64; 2]),
    /// Members of a struct, array or vector, as many as the type has.
    Aggregate(Box<[Value]>),
    /// The bytes of an array or vector of integers or floats, elements little-endian and without
    /// padding; as long as the type.
    Data(Box<[u8]>),
    /// Conversion to the constant's type.
    Cast { op: CastOp, value: Value },
    /// Address arithmetic.
    Gep {
        source: TypeId,
        base: Value,
        indices: Box<[Value]>,
        flags: GepFlags,
    },
    /// Arithmetic.
    Binary {
        op: BinaryOp,
        lhs: Value,
        rhs: Value,
    },
    /// `fneg`.
    FNeg { value: Value },
    /// Integer comparison.
    ICmp {
        predicate: IntPredicate,
        lhs: Value,
        rhs: Value,
    },
    /// Float comparison.
    FCmp {
        predicate: FloatPredicate,
        lhs: Value,
        rhs: Value,
    },
    /// Choice.
    Select {
        condition: Value,
        then: Value,
        otherwise: Value,
    },
    /// A lane of a vector.
    ExtractElement { vector: Value, index: Value },
    /// A vector with a lane replaced.
    InsertElement {
        vector: Value,
        element: Value,
        index: Value,
    },
    /// Lanes of two vectors picked by a constant mask.
    ShuffleVector { lhs: Value, rhs: Value, mask: Value },
    /// Address of a basic block.
    BlockAddress {
        function: FunctionId,
        block: BlockId,
    },
    /// A function, or something that behaves exactly like it.
    DsoLocalEquivalent(Value),
    /// A function, without an indirection of control-flow integrity.
    NoCfi(Value),
    /// A constant that is read but has no meaning here, by its LLVM name.
    Unsupported(&'static str),
}

impl ConstantKind {
    /// Calls `visit` with each operand.
    pub fn for_each_operand(&self, mut visit: impl FnMut(Value)) {
        use ConstantKind::*;
        match self {
            Null | Undef | Poison | Integer(_) | WideInteger(_) | Float(_) | WideFloat(_) => {}
            Data(_) | BlockAddress { .. } | Unsupported(_) => {}
            Aggregate(members) => members.iter().copied().for_each(visit),
            Gep { base, indices, .. } => {
                visit(*base);
                indices.iter().copied().for_each(visit);
            }
            Cast { value, .. } | FNeg { value } | DsoLocalEquivalent(value) | NoCfi(value) => {
                visit(*value);
            }
            Binary { lhs, rhs, .. } | ICmp { lhs, rhs, .. } | FCmp { lhs, rhs, .. } => {
                visit(*lhs);
                visit(*rhs);
            }
            ExtractElement { vector, index } => {
                visit(*vector);
                visit(*index);
            }
            Select {
                condition: a,
                then: b,
                otherwise: c,
            }
            | InsertElement {
                vector: a,
                element: b,
                index: c,
            }
            | ShuffleVector {
                lhs: a,
                rhs: b,
                mask: c,
            } => {
                visit(*a);
                visit(*b);
                visit(*c);
            }
        }
    }
}

/// Inline assembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineAsm {
    /// Signature of the call.
    pub signature: TypeId,
    /// The template.
    pub text: Box<str>,
    /// LLVM's constraint string.
    pub constraints: Box<str>,
    /// May not be removed.
    pub side_effects: bool,
    /// Needs the stack aligned.
    pub align_stack: bool,
    /// Intel instead of AT&T syntax.
    pub intel_dialect: bool,
    /// May raise an exception.
    pub can_throw: bool,
}
