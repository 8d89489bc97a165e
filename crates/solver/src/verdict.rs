//! The answer to a query.

use crate::model::Model;

/// The answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Satisfiable, with a model.
    Sat(Model),
    /// Unsatisfiable.
    Unsat,
    /// No layer could decide it, for this reason.
    Unknown(String),
}

/// How much a query may cost this layer.
#[derive(Clone, Copy, PartialEq)]
pub enum Effort {
    /// It has just come.
    First,
    /// The small SAT solver gave up.
    Hard,
}
