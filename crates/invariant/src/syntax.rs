//! The syntax tree: names are not resolved and types are not checked.

use crate::source::Span;
use std::fmt;

/// A type of the language.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    Bool,
    Int,
    String,
    Data,
    Array(Box<Type>),
}

impl Type {
    /// Finds a type by name.
    pub fn named(name: &str) -> Option<Type> {
        match name {
            "bool" => Some(Type::Bool),
            "int" => Some(Type::Int),
            "string" => Some(Type::String),
            "data" => Some(Type::Data),
            _ => None,
        }
    }

    /// Returns the type of arrays of this type.
    pub fn array(self) -> Type {
        Type::Array(Box::new(self))
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Bool => write!(f, "bool"),
            Type::Int => write!(f, "int"),
            Type::String => write!(f, "string"),
            Type::Data => write!(f, "data"),
            Type::Array(element) => write!(f, "{element}[]"),
        }
    }
}

/// When an invariant is evaluated.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum When {
    /// Whenever exposed or watched data has changed.
    OnChange,
    /// When a world ends.
    AtEnd,
    /// At a virtual time.
    At {
        /// Nanoseconds since the start of the world.
        time_ns: u64,
    },
    /// At the end of a world; the invariant must have held at least once, at the end or after a
    /// change of data.
    Eventually,
}

/// A name with its span.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub text: String,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub kind: Type,
    pub name: Name,
}

#[derive(Debug)]
pub(crate) struct Function {
    pub name: Name,
    pub result: Type,
    pub parameters: Vec<Parameter>,
    pub body: Vec<Statement>,
    /// The span of the closing brace, where a missing `return` is reported.
    pub end: Span,
}

/// An invariant: a function with result `bool`, and the functions that select the data that it
/// observes.
#[derive(Debug)]
pub(crate) struct InvariantItem {
    /// The times of evaluation; empty if not specified.
    pub when: Vec<When>,
    pub function: Function,
    /// The functions that return nodes, states and keys.
    pub collect: Option<[Name; 3]>,
    pub span: Span,
}

#[derive(Debug, Default)]
pub(crate) struct File {
    pub functions: Vec<Function>,
    pub invariants: Vec<InvariantItem>,
}

#[derive(Debug)]
pub(crate) enum Statement {
    Return(Expr),
    Declare {
        kind: Type,
        name: Name,
        value: Expr,
    },
    Assign {
        name: Name,
        value: Expr,
    },
    If {
        condition: Expr,
        yes: Vec<Statement>,
        no: Vec<Statement>,
    },
    For {
        kind: Type,
        name: Name,
        array: Expr,
        body: Vec<Statement>,
    },
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub kind: ExprKind,
    pub span: Span,
    /// Height of the expression tree.
    pub height: u32,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Bool(bool),
    Int(i64),
    Text(Vec<u8>),
    Name(String),
    Array {
        element: Type,
        items: Vec<Expr>,
    },
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
    Call {
        name: Name,
        arguments: Vec<Expr>,
    },
    Method {
        object: Box<Expr>,
        name: Name,
        arguments: Vec<Expr>,
    },
    Index(Box<Expr>, Box<Expr>),
    Lambda {
        parameter: Name,
        body: Box<Expr>,
    },
}
