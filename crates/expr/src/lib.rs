//! Bit-vector and float terms: hash-consed in a per-worker arena, simplified on construction,
//! evaluated, encoded and decoded. This crate knows nothing of programs, states or solvers.
//!
//! Layers, lowest first: `node` (types), `scalar`, `limbs` and `float` (concrete operators),
//! `facts`, `support` and `table` (derived and interned data), `arena` (storage), `marking`, `queries`,
//! `simplify` (rules) and `build` (constructors), then `eval`, `few`, `substitute`, `codec` and
//! `display`.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod arena;
mod build;
pub mod codec;
mod content;
mod digest;
mod display;
pub mod environment;
mod eval;
mod facts;
mod few;
pub mod float;
mod float_build;
mod hash;
mod kquery;
pub mod limbs;
mod marking;
mod node;
mod queries;
pub mod scalar;
mod simplify;
mod substitute;
mod support;
mod table;

pub use arena::Arena;
pub use digest::Digest128;
pub use display::Display;
pub use eval::{Assignment, EvalScratch};
pub use facts::Facts;
pub use kquery::Kquery;
pub use marking::{Marking, Marks, VisitTerms};
pub use node::{
    ArrayId, ArrayInfo, BinaryOp, Children, CompareOp, ExprId, FloatCompareOp, FloatFormat,
    FloatOp, FloatUnaryOp, Node, RoundingMode, TableId, Variable,
};
pub use support::Support;
