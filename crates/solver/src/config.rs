//! Configuration and statistics of a solver.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use thiserror::Error;

use crate::clock::Clock;

/// Configuration of a [`crate::Solver`].
#[derive(Clone, Debug)]
pub struct SolverConfig {
    /// The clock of the run. Only the deadline, statistics and the log of slow queries depend on
    /// it.
    pub clock: Clock,
    /// The time of `clock` after which no query may run.
    pub deadline: Option<Duration>,
    /// After this time, if any, a query is `Unknown`. Answers then depend on the load of the
    /// machine.
    pub query_time: Option<Duration>,
    /// A flag of the caller that stops the current query, which is then `Unknown`.
    pub stop: Option<Arc<AtomicBool>>,
    /// Conflicts after which a query moves from the small SAT solver to CaDiCaL.
    pub light_conflict_budget: u32,
    /// CaDiCaL conflicts after which a query moves to the second tier.
    pub conflict_budget: u32,
    /// Number of clauses after which a new SAT instance is started.
    pub clause_limit: usize,
    /// The second tier, for queries over the budget and for floats.
    pub smt: Option<SmtConfig>,
    /// A directory for queries slower than `slow_query`, as SMT-LIB files.
    pub solver_log: Option<PathBuf>,
    /// Minimum time of a query that is logged there.
    pub slow_query: Duration,
    /// A directory for all queries that no cheap layer answers, as
    /// SMT-LIB files and as encoded terms.
    pub log_queries: Option<PathBuf>,
}

impl Default for SolverConfig {
    fn default() -> Self {
        SolverConfig {
            clock: Clock::Stopped,
            deadline: None,
            query_time: None,
            stop: None,
            light_conflict_budget: 400,
            conflict_budget: 20_000,
            clause_limit: 100_000,
            smt: None,
            solver_log: None,
            slow_query: Duration::from_millis(100),
            log_queries: None,
        }
    }
}

/// The program of the second tier.
#[derive(Clone, Debug)]
pub enum SmtProgram {
    /// The program at this path.
    Path(PathBuf),
    /// A function that is called when the first query needs the program: most runs need none, and
    /// finding it can mean installing it.
    Lazy(FindProgram),
}

/// A function that finds the program of the second tier, or returns why there is none.
#[derive(Clone)]
pub struct FindProgram(Arc<dyn Fn() -> Result<PathBuf, String> + Send + Sync>);

impl FindProgram {
    /// Calls the function.
    pub fn find(&self) -> Result<PathBuf, String> {
        (self.0)()
    }
}

impl std::fmt::Debug for FindProgram {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("FindProgram")
    }
}

/// Time limit of a query for solvers that do not count work.
const LONGEST: Duration = Duration::from_secs(30);

/// An SMT solver: how its program is asked.
pub struct SmtSolver {
    /// The name of the solver, with which the name of its program begins.
    pub name: &'static str,
    /// Arguments that make it read commands from its input.
    pub arguments: &'static [&'static str],
    /// Arguments before the name of a file with commands.
    pub file_arguments: &'static [&'static str],
    /// The option that limits the work of a query, in the solver's own units, if it counts any.
    pub work_option: Option<&'static str>,
}

impl SmtSolver {
    /// The solvers known by name. The first one is the default: it counts its work, so answers do
    /// not depend on the load of the machine.
    pub const ALL: &[SmtSolver] = &[
        SmtSolver {
            name: "z3",
            arguments: &["-in", "-smt2"],
            file_arguments: &["-smt2"],
            work_option: Some(":rlimit"),
        },
        SmtSolver {
            name: "cvc5",
            arguments: &["--incremental", "--lang=smt2"],
            file_arguments: &["--lang=smt2"],
            work_option: Some(":rlimit-per"),
        },
        SmtSolver {
            name: "bitwuzla",
            arguments: &[],
            file_arguments: &[],
            work_option: None,
        },
    ];

    /// Returns the solver that a program is, by its name.
    fn of_program(program: &Path) -> Option<&'static SmtSolver> {
        let name = program.file_stem()?.to_str()?;
        SmtSolver::ALL
            .iter()
            .find(|solver| name.starts_with(solver.name))
    }
}

/// A solver that speaks SMT-LIB on its standard input and output.
#[derive(Clone, Debug)]
pub struct SmtConfig {
    /// The program.
    pub program: SmtProgram,
    /// Arguments that make it read commands from its input, such as `-in` for z3.
    pub arguments: Vec<String>,
    /// The work after which a query is `Unknown`, in the solver's own units, with the command that
    /// sets it. Unlike a time limit, it does not depend on the load of the machine.
    pub work: Option<(&'static str, u64)>,
    /// After this time, if any, a query is `Unknown` and the process is killed.
    pub timeout: Option<Duration>,
}

impl SmtConfig {
    /// Returns the configuration for a program, with the usual arguments of the solvers known by
    /// name.
    pub fn for_program(program: PathBuf, work: u64, timeout: Option<Duration>) -> SmtConfig {
        let solver = SmtSolver::of_program(&program);
        let arguments = solver.map_or(&[] as &[&str], |solver| solver.arguments);
        let work_option = solver.and_then(|solver| solver.work_option);
        SmtConfig {
            program: SmtProgram::Path(program),
            arguments: arguments.iter().copied().map(str::to_owned).collect(),
            work: work_option.map(|option| (option, work)),
            // A solver that counts no work is bounded by time alone.
            timeout: timeout.or(work_option.is_none().then_some(LONGEST)),
        }
    }

    /// Returns the configuration of the default solver, at a path that `find` returns when the first query needs
    /// it.
    pub fn z3_found_by(
        find: impl Fn() -> Result<PathBuf, String> + Send + Sync + 'static,
        work: u64,
        timeout: Option<Duration>,
    ) -> SmtConfig {
        let name = SmtSolver::ALL[0].name;
        SmtConfig {
            program: SmtProgram::Lazy(FindProgram(Arc::new(find))),
            ..SmtConfig::for_program(PathBuf::from(name), work, timeout)
        }
    }
}

/// Why a solver could not be created.
#[derive(Debug, Error)]
pub enum SolverError {
    /// The SMT solver does not start.
    #[error("the SMT solver `{program}` cannot be started: {reason}")]
    SmtStart {
        /// The path of the program.
        program: PathBuf,
        /// The cause.
        reason: std::io::Error,
    },
    /// The directory for slow queries cannot be created.
    #[error("the directory for slow queries, `{directory}`, cannot be made: {reason}")]
    LogDirectory {
        /// The path of the directory.
        directory: PathBuf,
        /// The cause.
        reason: std::io::Error,
    },
}

/// A layer that answers queries that the cheap layers leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Evaluation of all combinations of values.
    Enumeration,
    /// Evaluation of some combinations of values.
    Samples,
    /// Equations solved backwards.
    Inversion,
    /// Cases by the divisors of a product, or bounds of a sum.
    Factors,
    /// All values of a part that has the only input.
    Waist,
    /// Ranges of floats.
    Ranges,
    /// The small SAT solver.
    Small,
    /// The query became evident when it was rewritten.
    Reduction,
    /// CaDiCaL.
    Cadical,
    /// The SMT process; also for queries that no layer could answer.
    Smt,
}

/// Whom queries are counted for: numbers whose meaning the caller defines.
pub type Asker = [u32; 3];

/// The cost of queries of one asker that no cheap layer answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskerCost {
    /// Number of queries.
    pub queries: u64,
    /// Time for these queries.
    pub time: Duration,
}

/// Queries by the layer that answered them, and the time in the expensive layers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SolverStatistics {
    /// Number of calls of `check`, including those by `unsigned_min`, `values` and similar.
    pub queries: u64,
    /// Number of queries whose condition was already true under the model.
    pub by_model: u64,
    /// Number of queries whose condition was constant after substituting fixed bytes.
    pub by_simplification: u64,
    /// Number of queries decided by ranges or known bits of terms.
    pub by_ranges: u64,
    /// Number of queries decided by truth tables over a single byte.
    pub by_bytes: u64,
    /// Number of queries decided by evaluating all combinations of values.
    pub by_enumeration: u64,
    /// Number of queries decided by evaluating some combinations of values, one of which is a
    /// solution.
    pub by_samples: u64,
    /// Number of queries whose equations were solved backwards.
    pub by_inversion: u64,
    /// Number of queries divided into cases by the divisors of a product, or refuted by the bounds of
    /// a sum.
    pub by_factors: u64,
    /// Number of queries divided by the values of a part that has the only input.
    pub by_waist: u64,
    /// Number of queries with the answer of an equal query.
    pub by_cache: u64,
    /// Number of queries that a model of another query satisfies.
    pub by_cached_model: u64,
    /// Number of queries that contain a known unsatisfiable core.
    pub by_core: u64,
    /// Number of queries that reached the SAT solvers.
    pub sat_queries: u64,
    /// Number of queries that were too hard for the small SAT solver.
    pub cadical_queries: u64,
    /// Number of queries on which CaDiCaL exceeded its conflict budget.
    pub sat_over_budget: u64,
    /// Number of times that a new SAT instance was started.
    pub sat_restarts: u64,
    /// Time in the SAT solvers.
    pub sat_time: Duration,
    /// Number of queries that reached the SMT process.
    pub smt_queries: u64,
    /// Time in the SMT process.
    pub smt_time: Duration,
    /// Number of queries without an answer.
    pub unknown: u64,
    /// The cost of queries that no cheap layer answered, by asker.
    pub askers: BTreeMap<Asker, AskerCost>,
}

impl SolverStatistics {
    /// Adds the counts of another solver.
    pub fn add(&mut self, other: &SolverStatistics) {
        self.queries += other.queries;
        self.by_model += other.by_model;
        self.by_simplification += other.by_simplification;
        self.by_ranges += other.by_ranges;
        self.by_bytes += other.by_bytes;
        self.by_enumeration += other.by_enumeration;
        self.by_samples += other.by_samples;
        self.by_inversion += other.by_inversion;
        self.by_factors += other.by_factors;
        self.by_waist += other.by_waist;
        self.by_cache += other.by_cache;
        self.by_cached_model += other.by_cached_model;
        self.by_core += other.by_core;
        self.sat_queries += other.sat_queries;
        self.cadical_queries += other.cadical_queries;
        self.sat_over_budget += other.sat_over_budget;
        self.sat_restarts += other.sat_restarts;
        self.sat_time += other.sat_time;
        self.smt_queries += other.smt_queries;
        self.smt_time += other.smt_time;
        self.unknown += other.unknown;
        for (&asker, cost) in &other.askers {
            let own = self.askers.entry(asker).or_default();
            own.queries += cost.queries;
            own.time += cost.time;
        }
    }

    /// Returns the difference to earlier statistics of the same solver.
    #[must_use]
    pub fn since(&self, earlier: &SolverStatistics) -> SolverStatistics {
        SolverStatistics {
            queries: self.queries - earlier.queries,
            by_model: self.by_model - earlier.by_model,
            by_simplification: self.by_simplification - earlier.by_simplification,
            by_ranges: self.by_ranges - earlier.by_ranges,
            by_bytes: self.by_bytes - earlier.by_bytes,
            by_enumeration: self.by_enumeration - earlier.by_enumeration,
            by_samples: self.by_samples - earlier.by_samples,
            by_inversion: self.by_inversion - earlier.by_inversion,
            by_factors: self.by_factors - earlier.by_factors,
            by_waist: self.by_waist - earlier.by_waist,
            by_cache: self.by_cache - earlier.by_cache,
            by_cached_model: self.by_cached_model - earlier.by_cached_model,
            by_core: self.by_core - earlier.by_core,
            sat_queries: self.sat_queries - earlier.sat_queries,
            cadical_queries: self.cadical_queries - earlier.cadical_queries,
            sat_over_budget: self.sat_over_budget - earlier.sat_over_budget,
            sat_restarts: self.sat_restarts - earlier.sat_restarts,
            sat_time: self.sat_time - earlier.sat_time,
            smt_queries: self.smt_queries - earlier.smt_queries,
            smt_time: self.smt_time - earlier.smt_time,
            unknown: self.unknown - earlier.unknown,
            askers: self.askers_since(earlier),
        }
    }

    fn askers_since(&self, earlier: &SolverStatistics) -> BTreeMap<Asker, AskerCost> {
        let mut since = BTreeMap::new();
        for (&asker, cost) in &self.askers {
            let before = earlier.askers.get(&asker).copied().unwrap_or_default();
            if *cost != before {
                let cost = AskerCost {
                    queries: cost.queries - before.queries,
                    time: cost.time - before.time,
                };
                since.insert(asker, cost);
            }
        }
        since
    }
}
