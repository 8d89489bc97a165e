//! What a solver is told at the start, and what it counts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

use crate::clock::Clock;

/// How a [`crate::Solver`] works.
#[derive(Clone, Debug)]
pub struct SolverConfig {
    /// The clock of the run. Only statistics and the log of slow queries depend on it, never an answer.
    pub clock: Clock,
    /// When, by `clock`, no query of the second tier may take any more time.
    pub deadline: Option<Duration>,
    /// Conflicts after which a query goes from the small SAT solver to CaDiCaL.
    pub light_conflict_budget: u32,
    /// Conflicts of CaDiCaL after which a query goes to the second tier.
    pub conflict_budget: u32,
    /// Clauses after which a SAT instance starts anew.
    pub clause_limit: usize,
    /// The second tier, for queries over the budget and for floats.
    pub smt: Option<SmtConfig>,
    /// A directory for queries slower than `slow_query`, as SMT-LIB files.
    pub solver_log: Option<PathBuf>,
    pub slow_query: Duration,
}

impl Default for SolverConfig {
    fn default() -> Self {
        SolverConfig {
            clock: Clock::Stopped,
            deadline: None,
            light_conflict_budget: 400,
            conflict_budget: 20_000,
            clause_limit: 100_000,
            smt: None,
            solver_log: None,
            slow_query: Duration::from_millis(100),
        }
    }
}

/// Where the program of the second tier is.
#[derive(Clone, Debug)]
pub enum SmtProgram {
    /// It is known.
    Path(PathBuf),
    /// It is asked for when the first query needs it: most runs need none, and finding it can mean
    /// installing it.
    Lazy(FindProgram),
}

/// Finds the program of the second tier, or says why there is none.
#[derive(Clone)]
pub struct FindProgram(Arc<dyn Fn() -> Result<PathBuf, String> + Send + Sync>);

impl FindProgram {
    /// Looks for it.
    pub fn find(&self) -> Result<PathBuf, String> {
        (self.0)()
    }
}

impl std::fmt::Debug for FindProgram {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("FindProgram")
    }
}

/// A solver that speaks SMT-LIB on its standard input and output.
#[derive(Clone, Debug)]
pub struct SmtConfig {
    pub program: SmtProgram,
    /// What makes it read commands from its input, like `-in` for z3.
    pub arguments: Vec<String>,
    /// After this time a query is `Unknown` and the process is ended.
    pub timeout: Duration,
}

impl SmtConfig {
    /// The usual arguments for the solvers that are known by name; none for others.
    pub fn for_program(program: PathBuf, timeout: Duration) -> SmtConfig {
        let name = program
            .file_stem()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let arguments: &[&str] = match name {
            name if name.starts_with("z3") => &["-in", "-smt2"],
            name if name.starts_with("cvc5") => &["--incremental", "--lang=smt2"],
            _ => &[],
        };
        let arguments = arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect();
        SmtConfig {
            program: SmtProgram::Path(program),
            arguments,
            timeout,
        }
    }

    /// z3, at a path that `find` tells when the first query needs it.
    pub fn z3_found_by(
        find: impl Fn() -> Result<PathBuf, String> + Send + Sync + 'static,
        timeout: Duration,
    ) -> SmtConfig {
        SmtConfig {
            program: SmtProgram::Lazy(FindProgram(Arc::new(find))),
            ..SmtConfig::for_program(PathBuf::from("z3"), timeout)
        }
    }
}

/// What can go wrong in making a solver.
#[derive(Debug, Error)]
pub enum SolverError {
    #[error("the SMT solver `{program}` cannot be started: {reason}")]
    SmtStart {
        program: PathBuf,
        reason: std::io::Error,
    },
    #[error("the directory for slow queries, `{directory}`, cannot be made: {reason}")]
    LogDirectory {
        directory: PathBuf,
        reason: std::io::Error,
    },
}

/// Queries by the layer that answered them, and the time in the expensive layers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SolverStatistics {
    /// Calls of `check`, also those made by `unsigned_min`, `values` and their like.
    pub queries: u64,
    /// The condition was already true under the model.
    pub by_model: u64,
    /// The condition was constant after simplification with the bytes that are fixed.
    pub by_simplification: u64,
    /// Ranges or known bits of the terms told.
    pub by_ranges: u64,
    /// Truth tables over a single byte told.
    pub by_bytes: u64,
    /// The same query was asked before.
    pub by_cache: u64,
    /// A model of another query fits.
    pub by_cached_model: u64,
    /// A known unsatisfiable core is contained.
    pub by_core: u64,
    /// Queries that reached the SAT solvers.
    pub sat_queries: u64,
    /// Those of them that were too hard for the small one.
    pub cadical_queries: u64,
    pub sat_over_budget: u64,
    pub sat_restarts: u64,
    pub sat_time: Duration,
    /// Queries that reached the SMT process.
    pub smt_queries: u64,
    pub smt_time: Duration,
    /// Queries without an answer.
    pub unknown: u64,
}
