//! The checked form of a file: names are resolved to slots and functions, operations are selected
//! by type. Code in this form is well typed, which evaluation relies on.

use crate::source::Span;
use std::sync::Arc;

/// The functions of a file, and its text for error locations.
#[derive(Debug)]
pub(crate) struct Program {
    pub source: Arc<str>,
    pub functions: Vec<Function>,
}

pub(crate) type FunctionId = usize;

#[derive(Debug)]
pub(crate) struct Function {
    /// Number of variable slots; the parameters come first.
    pub slots: usize,
    pub body: Vec<Statement>,
}

#[derive(Debug)]
pub(crate) enum Statement {
    Return(Expr),
    Set {
        slot: usize,
        value: Expr,
    },
    If {
        condition: Expr,
        yes: Vec<Statement>,
        no: Vec<Statement>,
    },
    For {
        slot: usize,
        array: Expr,
        body: Vec<Statement>,
    },
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Bool(bool),
    Int(i64),
    Text(Vec<u8>),
    Local(usize),
    Array(Vec<Expr>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Implies(Box<Expr>, Box<Expr>),
    Equal(Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
    Call(FunctionId, Vec<Expr>),
    /// An operation; the first operand is its object.
    Operation(Operation, Vec<Expr>),
    /// A function applied to each element of an array.
    Apply(Application, Box<Expr>, Applied),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    Less,
    LessOrEqual,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

/// A function applied to elements.
#[derive(Debug)]
pub(crate) enum Applied {
    Function(FunctionId),
    /// A lambda. Its body sees the enclosing variables: its parameter is one more slot of their
    /// function.
    Lambda {
        slot: usize,
        body: Box<Expr>,
    },
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Application {
    All,
    Any,
    Count,
    Filter,
    Map,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    // Operations on the world.
    Nodes,
    NodeIndex,
    States,
    Keys,
    Has,
    Data,
    // Operations on arrays.
    ArraySize,
    Element,
    Join,
    EqualElements,
    DistinctElements,
    ArrayContains,
    Sum,
    Min,
    Max,
    // Operations on data and strings.
    BytesSize,
    ByteAt,
    Concat,
    Slice,
    StartsWith,
    EndsWith,
    BytesContain,
    /// A conversion between data and string without change.
    Same,
    /// Data up to its first zero byte.
    CString,
    Decode {
        size: usize,
        signed: bool,
        big_endian: bool,
    },
    /// All bytes as one number, least significant first.
    DecodeAll {
        signed: bool,
    },
}
