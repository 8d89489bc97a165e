//! Can this condition hold on this path? Owns queries, the chain of layers that answers them, and the back
//! ends; the only room that knows a SAT or SMT solver. Knows nothing of programs or states.

mod blast;
mod bytes;
mod cache;
mod chain;
mod clock;
mod config;
mod constraints;
mod light;
mod log;
mod model;
mod persistent;
mod smt;
#[cfg(test)]
mod tests;
mod values;

pub use chain::{Solver, Verdict};
pub use clock::Clock;
pub use config::{FindProgram, SmtConfig, SmtProgram, SolverConfig, SolverError, SolverStatistics};
pub use constraints::Constraints;
pub use model::Model;
