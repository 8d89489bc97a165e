//! Counters of the search.

use everett_net::HostIndex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::shares::SHARES;
use crate::weight::WeightSum;

/// Counters of a search.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// The number of executed instructions, each step of a path once.
    pub instructions: u64,
    /// The number of instructions executed to rematerialise states.
    pub replayed: u64,
    /// The number of forks.
    pub forks: u64,
    /// The number of paths or worlds that ended, with or without findings.
    pub paths_completed: u64,
    /// The number of paths that were cut off or ended silently.
    pub paths_partial: u64,
    /// The number of paths that `klee_close_merge` merged into others.
    #[serde(default)]
    pub paths_merged: u64,
    /// The largest number of states at a time.
    pub states_peak: u64,
    /// The number of spilled states.
    pub spilled: u64,
    /// The weight of paths that ended.
    pub finished: WeightSum,
    /// The weight of paths that were cut off.
    pub unknown: WeightSum,
    /// The weight of states that a listener, or the program by `klee_set_forking`, pruned.
    #[serde(default)]
    pub pruned: WeightSum,
    /// The weight of combinations of states that are no worlds, because they exceed a bound on
    /// faults.
    #[serde(default)]
    pub excluded: WeightSum,
    /// Failures that could be injected on ended paths, with the number of times each was.
    pub faults: BTreeMap<String, u64>,
    /// Failures that were injected, by the number of the host, in the words of
    /// [`everett_linux::InjectedFailure::what`].
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
        self.paths_merged += other.paths_merged;
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

    /// Returns whether everything was explored.
    pub fn is_all_explored(&self) -> bool {
        let mut explored = self.finished.clone();
        explored.add_sum(&self.excluded);
        explored.is_one()
    }
}

impl WorldStatistics {
    /// Returns the number of states created; merged states count as one.
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
    /// The number of states created, including initial and merged ones.
    pub states_made: u64,
    /// The number of copies that the mapping made.
    pub copies: u64,
    /// The number of packets sent to other hosts.
    pub packets: u64,
    /// The number of states merged with others of equal history and path condition.
    pub merged: u64,
    /// The number of deliveries between states whose path conditions contradict each other.
    pub impossible: u64,
    /// The number of worlds that ended.
    pub worlds: u128,
    /// The number of ended worlds in which a host that is on is blocked forever.
    #[serde(default)]
    pub stalled: u128,
    /// The number of ended worlds with several hosts, all of which are blocked forever.
    #[serde(default)]
    pub deadlocked: u128,
    /// Hosts that are blocked forever at the end of a world.
    #[serde(default)]
    pub waiting: BTreeSet<HostIndex>,
    /// Hosts that have ended, or are off, at the end of a world.
    #[serde(default)]
    pub ending: BTreeSet<HostIndex>,
    /// The largest number of dstates at a time.
    pub dstates_peak: usize,
    /// The number of symbolic bytes that got one value because they were sent to live peers.
    #[serde(default)]
    pub concretised: u64,
    /// The time spent on evaluating invariants.
    pub in_invariants: Duration,
}

/// Counters of a solver that summaries show.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SolverFigures {
    /// The number of queries.
    pub queries: u64,
    /// The number of queries that reached the SAT solvers.
    pub sat_queries: u64,
    /// The number of queries that reached the SMT process.
    pub smt_queries: u64,
    /// The time spent in queries.
    pub time: Duration,
}

/// The work explored so far, to estimate what is left.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct ExploredWork {
    /// The number of instructions.
    pub(crate) instructions: u64,
    /// The number of forks.
    pub(crate) forks: u64,
    /// The weight of paths that ended.
    pub(crate) finished: f64,
}

impl ExploredWork {
    /// Returns the work, in instructions.
    pub(crate) fn work(&self) -> f64 {
        (self.instructions + FORK_WORK * self.forks) as f64
    }
}

/// The work that a fork counts as, in instructions: the queries before it take as long.
pub const FORK_WORK: u64 = 1000;

/// The name of the limit that is noted when states are lost.
pub(crate) const LOST: &str = "lost-state";

/// Names of limits that say what is missing from the results, so that a resumed search must know
/// them. Limits on time, memory, paths and forks are not among them, because that search has its
/// own.
pub(crate) const KEPT_LIMITS: [&str; 25] = [
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
    FLOATS,
    "only-seeds",
    FRAMES,
    SHARES[0],
    SHARES[1],
    SHARES[2],
    SHARES[3],
    PEERS,
];

/// The name of the limit that is noted where operands of an operation on floats get one value.
pub(crate) const FLOATS: &str = "concretize-floats";

/// The name of the limit on nested calls.
pub(crate) const FRAMES: &str = "max-stack-frames";

/// The name of the limit that is noted when a live peer does not answer.
pub(crate) const PEERS: &str = "peers";

/// The name of the limit on events of a host.
pub const EVENTS: &str = "max-events";

/// The name of the limit on virtual time.
pub const VIRTUAL_TIME: &str = "max-virtual-time";
