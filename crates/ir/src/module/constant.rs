//! Constants: plain data and expressions over addresses.

use super::ids::*;
use super::instruction::{BinaryOp, CastOp, FloatPredicate, GepFlags, IntPredicate, Value};

/// A constant with its type. The graph of constants is acyclic, which the reader checks. References
/// to globals and functions are addresses, and are not followed.
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
    /// All bits zero, of any type: the null pointer, `zeroinitializer`, 0.
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
    /// A conversion to the constant's type.
    Cast {
        /// The operation.
        op: CastOp,
        /// The operand.
        value: Value,
    },
    /// Address arithmetic.
    Gep {
        /// The source element type.
        source: TypeId,
        /// The base address.
        base: Value,
        /// The indices.
        indices: Box<[Value]>,
        /// The flags.
        flags: GepFlags,
    },
    /// Arithmetic.
    Binary {
        /// The operation.
        op: BinaryOp,
        /// Left operand.
        lhs: Value,
        /// Right operand.
        rhs: Value,
    },
    /// `fneg`.
    FNeg {
        /// The operand.
        value: Value,
    },
    /// Integer comparison.
    ICmp {
        /// The predicate.
        predicate: IntPredicate,
        /// Left operand.
        lhs: Value,
        /// Right operand.
        rhs: Value,
    },
    /// Float comparison.
    FCmp {
        /// The predicate.
        predicate: FloatPredicate,
        /// Left operand.
        lhs: Value,
        /// Right operand.
        rhs: Value,
    },
    /// If-then-else.
    Select {
        /// The condition.
        condition: Value,
        /// The value if the condition holds.
        then: Value,
        /// The value otherwise.
        otherwise: Value,
    },
    /// A lane of a vector.
    ExtractElement {
        /// The vector.
        vector: Value,
        /// The index.
        index: Value,
    },
    /// A vector with a lane replaced.
    InsertElement {
        /// The vector.
        vector: Value,
        /// The new lane.
        element: Value,
        /// The index.
        index: Value,
    },
    /// Lanes of two vectors selected by a constant mask.
    ShuffleVector {
        /// Left operand.
        lhs: Value,
        /// Right operand.
        rhs: Value,
        /// The mask.
        mask: Value,
    },
    /// Address of a basic block.
    BlockAddress {
        /// The function.
        function: FunctionId,
        /// The block.
        block: BlockId,
    },
    /// A function, or an equivalent function.
    DsoLocalEquivalent(Value),
    /// A function, without indirection through control-flow integrity.
    NoCfi(Value),
    /// A constant that is not supported, by its LLVM name.
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
    /// Whether the assembly must not be removed.
    pub side_effects: bool,
    /// Whether the stack must be aligned.
    pub align_stack: bool,
    /// Whether the syntax is Intel instead of AT&T.
    pub intel_dialect: bool,
    /// Whether the assembly may raise an exception.
    pub can_throw: bool,
}
