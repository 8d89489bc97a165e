//! Counters of the search.

use everett_net::HostIndex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::weight::WeightSum;

/// Counters of a search.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// Instructions executed, each step of a path once.
    pub instructions: u64,
    /// Instructions executed to rematerialise states.
    pub replayed: u64,
    /// Forks.
    pub forks: u64,
    /// Paths or worlds that the programs ended, with findings or without.
    pub paths_completed: u64,
    /// Paths that ended otherwise.
    pub paths_partial: u64,
    /// Largest number of states at a time.
    pub states_peak: u64,
    /// States spilled.
    pub spilled: u64,
    /// Weight of paths that ended.
    pub finished: WeightSum,
    /// Weight of paths that were given up.
    pub unknown: WeightSum,
    /// Weight of what a listener, or the program by `klee_set_forking`, pruned.
    #[serde(default)]
    pub pruned: WeightSum,
    /// Weight of combinations of states that are no worlds: more faults
    /// happen in them than may in a world.
    #[serde(default)]
    pub excluded: WeightSum,
    /// Failures that could be injected on paths that ended, and on how many of them each was.
    pub faults: BTreeMap<String, u64>,
    /// Failures that were injected, by the number of the host, as
    /// [`everett_linux::InjectedFailure::what`] says them.
    #[serde(default)]
    pub injected: BTreeMap<u32, BTreeSet<String>>,
}

impl Statistics {
    /// Adds the counters of another worker.
    pub(crate) fn add(&mut self, other: &Statistics) {
        self.instructions += other.instructions;
        self.replayed += other.replayed;
        self.forks += other.forks;
        self.paths_completed += other.paths_completed;
        self.paths_partial += other.paths_partial;
        self.spilled += other.spilled;
        self.finished.add_sum(&other.finished);
        self.unknown.add_sum(&other.unknown);
        self.pruned.add_sum(&other.pruned);
        self.excluded.add_sum(&other.excluded);
        for (fault, count) in &other.faults {
            *self.faults.entry(fault.clone()).or_default() += count;
        }
        for (host, failures) in &other.injected {
            let known = self.injected.entry(*host).or_default();
            known.extend(failures.iter().cloned());
        }
    }

    /// Whether everything was explored.
    pub fn is_all_explored(&self) -> bool {
        let mut explored = self.finished.clone();
        explored.add_sum(&self.excluded);
        explored.is_one()
    }
}

impl WorldStatistics {
    /// Number of states created; merged states count as one.
    pub fn states_total(&self) -> u64 {
        self.states_made.saturating_sub(self.merged)
    }

    /// Adds the counters of another worker.
    pub(crate) fn add(&mut self, other: &WorldStatistics) {
        self.states_made += other.states_made;
        self.copies += other.copies;
        self.packets += other.packets;
        self.merged += other.merged;
        self.impossible += other.impossible;
        self.worlds = self.worlds.saturating_add(other.worlds);
        self.stalled = self.stalled.saturating_add(other.stalled);
        self.deadlocked = self.deadlocked.saturating_add(other.deadlocked);
        self.waiting.extend(&other.waiting);
        self.ending.extend(&other.ending);
        self.dstates_peak = self.dstates_peak.max(other.dstates_peak);
        self.concretised += other.concretised;
        self.in_invariants += other.in_invariants;
    }
}

/// Counters of worlds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WorldStatistics {
    /// Number of states created, including initial and merged ones.
    pub states_made: u64,
    /// Copies that the mapping made.
    pub copies: u64,
    /// Packets sent to other hosts.
    pub packets: u64,
    /// States merged with others of equal history and path condition.
    pub merged: u64,
    /// Deliveries between states whose path conditions contradict each other.
    pub impossible: u64,
    /// Worlds that ended.
    pub worlds: u128,
    /// Those of them in which a host that is on waits for ever.
    #[serde(default)]
    pub stalled: u128,
    /// Those of them in which all hosts that are on wait for ever, and more than one does.
    #[serde(default)]
    pub deadlocked: u128,
    /// Hosts that wait for ever at the end of a world.
    #[serde(default)]
    pub waiting: BTreeSet<HostIndex>,
    /// Hosts that have ended, or are off, at the end of a world.
    #[serde(default)]
    pub ending: BTreeSet<HostIndex>,
    /// Largest number of dstates at a time.
    pub dstates_peak: usize,
    /// Symbolic bytes that got one value because they were sent to live peers.
    #[serde(default)]
    pub concretised: u64,
    /// Time spent on invariants.
    pub in_invariants: Duration,
}

/// Counters of a solver that summaries show.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SolverFigures {
    /// Queries.
    pub queries: u64,
    /// Queries that reached the SAT solvers.
    pub sat_queries: u64,
    /// Queries that reached the SMT process.
    pub smt_queries: u64,
    /// Time spent in queries.
    pub time: Duration,
}

/// What was explored, to estimate what is left.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct ExploredWork {
    /// Instructions.
    pub(crate) instructions: u64,
    /// Forks.
    pub(crate) forks: u64,
    /// The weight of paths that ended.
    pub(crate) finished: f64,
}

/// The limit of a search that lacks states.
pub(crate) const LOST: &str = "lost-state";

/// Limits that say what is missing from the results, so that the next search must know of them. It
/// has its own limits on time, memory, paths and forks.
pub(crate) const KEPT_LIMITS: [&str; 17] = [
    "max-depth",
    "max-heap",
    "max-instructions",
    EVENTS,
    "max-output",
    "max-files",
    "max-processes",
    "diverged",
    "interrupted",
    VIRTUAL_TIME,
    "max-tests",
    "solver",
    "unsupported",
    "invariant",
    "begin",
    LOST,
    "klee_set_forking",
];

/// The limit on events of a host.
pub const EVENTS: &str = "max-events";

/// The limit on virtual time.
pub const VIRTUAL_TIME: &str = "max-virtual-time";
