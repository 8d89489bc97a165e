//! Bit-vector and float terms: hash-consed in an arena of one worker, simplified as they are built,
//! evaluated, written to bytes and read back. Knows nothing of programs, states or solvers.

#![warn(missing_docs)]

mod arena;
mod build;
pub mod codec;
mod digest;
mod display;
mod eval;
mod facts;
pub mod float;
mod float_build;
mod hash;
pub mod limbs;
mod node;
pub mod scalar;
mod simplify;
mod substitute;
mod support;

pub use arena::Arena;
pub use digest::Digest128;
pub use display::Display;
pub use eval::{Assignment, EvalScratch};
pub use facts::Facts;
pub use node::{
    ArrayId, ArrayInfo, BinaryOp, Children, CompareOp, ExprId, FloatCompareOp, FloatFormat,
    FloatOp, FloatUnaryOp, Node, RoundingMode, Variable,
};
pub use support::Support;
