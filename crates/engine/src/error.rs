//! Errors: why a search cannot start or continue.

use everett_solver::SolverError;
use std::io;

use crate::mapping::UnknownMapping;
use crate::search::UnknownSearcher;

/// Why a search cannot go on from a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It is of other programs or of another scenario.
    #[error("the checkpoint is of another program or scenario")]
    Other,
    /// It contradicts itself.
    #[error("the checkpoint is damaged")]
    Damaged,
}

/// Why the search could not start.
#[derive(Debug, thiserror::Error)]
pub enum ExplorerError {
    /// Of the mapping.
    #[error(transparent)]
    Mapping(#[from] UnknownMapping),
    /// Of the searchers.
    #[error(transparent)]
    Searcher(#[from] UnknownSearcher),
    /// Of the solver.
    #[error(transparent)]
    Solver(#[from] SolverError),
    /// Of the spill file.
    #[error("states cannot be spilled: {0}")]
    Spill(#[from] io::Error),
    /// Of the checkpoint that it is to go on from.
    #[error(transparent)]
    Saved(#[from] SavedError),
}
