//! The constraint solver: decides whether a condition is satisfiable under a path condition.
//!
//! Owns queries, the chain of layers that answers them, and the back ends. This is the only crate
//! that uses a SAT or SMT solver. It knows nothing of programs or states.

#![deny(missing_docs)]

mod bisect;
mod blast;
mod bytes;
mod cache;
mod chain;
mod clock;
mod config;
mod constraints;
mod domains;
mod enumerate;
mod interrupt;
mod lanes;
mod light;
mod log;
mod model;
mod persistent;
mod program;
mod sample;
mod smt;
#[cfg(test)]
mod tests;
mod values;
mod verdict;

pub use chain::{Solver, cadical_alone};
pub use clock::Clock;
pub use config::{
    Asker, AskerCost, FindProgram, Layer, SmtConfig, SmtProgram, SolverConfig, SolverError,
    SolverStatistics,
};
pub use constraints::Constraints;
pub use interrupt::Interrupt;
pub use model::Model;
pub use verdict::Verdict;
