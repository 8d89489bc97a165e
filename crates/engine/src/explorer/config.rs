//! What the search is told, and what it counts.

use everett_solver::Clock;
use std::collections::BTreeMap;

use super::*;
use crate::memory::MemoryAccount;

/// Where the search stops.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Time, by the clock, at which all is done, also what comes after the search.
    pub max_time: Option<Duration>,
    /// Memory of the process; over it states are put away.
    pub max_memory: Option<u64>,
    /// Paths that end.
    pub max_paths: Option<u64>,
    /// Forks of the whole run.
    pub max_forks: Option<u64>,
    /// Forks along one path; a deeper one is cut off.
    pub max_depth: Option<u32>,
    /// Instructions on one path; more is a hang.
    pub max_instructions: Option<u64>,
}

/// What the search is told.
#[derive(Clone)]
pub struct ExplorerConfig {
    /// What the host is started with.
    pub host: HostConfig,
    /// Settings of the vm.
    pub vm: VmOptions,
    /// Settings of the solver.
    pub solver: SolverConfig,
    /// Searchers that take turns.
    pub search: Vec<String>,
    /// Instructions before another state is picked.
    pub batch_instructions: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Where the search stops.
    pub limits: Limits,
    /// Make a trace for every path, not only for those that cover something new.
    pub all_tests: bool,
    /// Report every path that ends in a finding, not only the first at a place.
    pub all_findings: bool,
    /// Report memory that nobody can free any more at exit.
    pub check_leaks: bool,
    /// Keep what paths write.
    pub keep_output: bool,
    /// Keep what paths leave behind in their files.
    pub keep_files: bool,
    /// The clock of the run.
    pub clock: Clock,
    /// The memory that the run takes.
    pub memory: Arc<dyn MemoryAccount>,
    /// File for states that are put away.
    pub shelf: Option<PathBuf>,
}

/// Why the search could not start.
#[derive(Debug, thiserror::Error)]
pub enum ExplorerError {
    /// Of the searchers.
    #[error(transparent)]
    Searcher(#[from] UnknownSearcher),
    /// Of the solver.
    #[error(transparent)]
    Solver(#[from] SolverError),
    /// Of the shelf.
    #[error("states cannot be put away: {0}")]
    Shelf(#[from] io::Error),
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Instructions executed, each step of a path once.
    pub instructions: u64,
    /// Instructions executed to take states up again.
    pub replayed: u64,
    /// Forks.
    pub forks: u64,
    /// Paths that the program ended, well or badly.
    pub paths_completed: u64,
    /// Paths that ended otherwise.
    pub paths_partial: u64,
    /// Most states at a time.
    pub states_peak: u64,
    /// States put away.
    pub put_away: u64,
    /// Weight of paths that ended.
    pub finished: WeightSum,
    /// Weight of paths that were given up.
    pub unknown: WeightSum,
    /// Failures that could be injected on paths that ended, and on how many of them each was.
    pub faults: BTreeMap<String, u64>,
}
