//! The constraint solver: decides whether a condition is satisfiable under a path condition.
//!
//! Owns queries, the chain of layers that answers them, and the back ends. This is the only crate
//! that uses a SAT or SMT solver. It knows nothing of programs or states.
//!
//! The chain, in its order; each layer passes on what it cannot answer:
//!
//! 1. the model of the path, simplification under the path condition, ranges (`chain`, `domains`)
//! 2. tables of the values that one byte may have (`bytes`)
//! 3. answers, unsatisfiable cores and models of earlier queries (`cache`)
//! 4. evaluation: all combinations of few values (`enumerate`, `lanes`), samples (`sample`), and
//!    bisection of comparisons (`bisect`)
//! 5. a case for each pair of divisors, if a product must have a given value (`factor`, `intervals`)
//! 6. search: the small SAT solver of the crate (`light`, `blast::cdcl`), ranges of floats
//!    (`float_ranges`), equations solved backwards (`backward`), evaluation with more effort, all values of a part
//!    that has the only input (`waist`), then CaDiCaL (`blast`) on the query rewritten to an easier one (`reduce`),
//!    evaluation with most effort, and an SMT-LIB process (`smt`)
//!
//! Only the independent part of the path condition that shares variables with the condition takes
//! part (`constraints`). Effort is limited by work, never by time.

#![deny(missing_docs)]

mod affine;
mod backward;
mod bisect;
mod blast;
mod bytes;
mod cache;
mod chain;
mod clock;
mod config;
mod congruence;
mod constraints;
mod domains;
mod enumerate;
mod factor;
mod float_ranges;
mod interrupt;
mod intervals;
mod lanes;
mod light;
mod log;
mod model;
mod persistent;
mod program;
mod reduce;
mod sample;
mod smt;
#[cfg(test)]
mod tests;
mod values;
mod verdict;
mod waist;

pub use chain::{Solver, cadical_alone};
pub use clock::Clock;
pub use config::{
    Asker, AskerCost, FindProgram, Layer, SmtConfig, SmtProgram, SmtSolver, SolverConfig,
    SolverError, SolverStatistics,
};
pub use constraints::Constraints;
pub use interrupt::Interrupt;
pub use model::Model;
pub use verdict::Verdict;
