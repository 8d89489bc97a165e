//! Errors: why a search cannot start or continue.

use everett_solver::SolverError;
use std::io;

use crate::mapping::UnknownMapping;
use crate::search::UnknownSearcher;

/// Why a search cannot continue from a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// The checkpoint is of other programs or of another scenario.
    #[error("the checkpoint is of another program or scenario")]
    Other,
    /// The checkpoint contradicts itself.
    #[error("the checkpoint is damaged")]
    Damaged,
}

/// Why the search could not start.
#[derive(Debug, thiserror::Error)]
pub enum ExplorerError {
    /// There is no such mapping.
    #[error(transparent)]
    Mapping(#[from] UnknownMapping),
    /// There is no such searcher.
    #[error(transparent)]
    Searcher(#[from] UnknownSearcher),
    /// The solver cannot be started.
    #[error(transparent)]
    Solver(#[from] SolverError),
    /// The spill file cannot be used.
    #[error("states cannot be spilled: {0}")]
    Spill(#[from] io::Error),
    /// The checkpoint cannot be used.
    #[error(transparent)]
    Saved(#[from] SavedError),
}
