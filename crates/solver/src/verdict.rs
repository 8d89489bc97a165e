//! The answer to a query.

use crate::model::Model;

/// The answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Satisfiable, with a model.
    Sat(Model),
    /// Unsatisfiable.
    Unsat,
    /// No layer could decide the query, for this reason.
    Unknown(String),
}

/// How much work a layer may spend on a query.
#[derive(Clone, Copy, PartialEq)]
pub enum Effort {
    /// The query has not reached the SAT solvers yet.
    First,
    /// The small SAT solver gave up on the query.
    Hard,
    /// CaDiCaL did not decide the query at once.
    Last,
}
