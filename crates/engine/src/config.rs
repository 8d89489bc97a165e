//! What the search is told, and what it counts.

use everett_invariant::Invariants;
use everett_linux::{Boot, HostConfig};
use everett_net::HostIndex;
use everett_sim::{Expected, Network, PeerConfig};
use everett_solver::{Clock, SolverConfig, SolverError};
use everett_vm::{Outside, VmOptions};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::checkpoint::SavedError;
use crate::mapping::UnknownMapping;
use crate::memory::MemoryAccount;
use crate::search::UnknownSearcher;
use crate::trace::Trace;
use crate::weight::WeightSum;

/// Where the search stops.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Time, by the clock, at which all is done, also what comes after the search.
    pub max_time: Option<Duration>,
    /// Memory of the process; over it states are spilled to disk.
    pub max_memory: Option<u64>,
    /// Paths that end.
    pub max_paths: Option<u64>,
    /// Forks of the whole run.
    pub max_forks: Option<u64>,
    /// Forks along one path; a deeper one is cut off.
    pub max_depth: Option<u32>,
    /// Instructions on one path; more is a hang.
    pub max_instructions: Option<u64>,
    /// Virtual time at which a world is cut off.
    pub max_virtual_ns: Option<u64>,
}

/// A host that is explored.
#[derive(Clone, Debug)]
pub struct WorldHost {
    /// Its name.
    pub name: String,
    /// What it is started with.
    pub config: HostConfig,
    /// When it starts; `None` for when the hosts before it are blocked.
    pub start_ns: Option<u64>,
    /// How its processes must end; anything else is a finding.
    pub expects: Vec<Expected>,
    /// The trace to where it begins, where its program sets it up by itself.
    pub begin: Option<Arc<Trace>>,
    /// It is a live peer: it has no programs.
    pub peer: Option<Arc<PeerConfig>>,
}

impl WorldHost {
    /// The host of a program on its own.
    pub fn alone(config: HostConfig) -> WorldHost {
        WorldHost {
            name: "host".to_owned(),
            config,
            start_ns: Some(0),
            expects: Vec::new(),
            begin: None,
            peer: None,
        }
    }

    /// Its program sets it up by itself.
    pub fn sets_itself_up(&self) -> bool {
        matches!(self.config.boot, Boot::Start(_))
    }
}

/// What a world has besides its hosts.
#[derive(Clone, Default)]
pub struct WorldConfig {
    /// The network between the hosts, and its faults.
    pub network: Network,
    /// Invariants over all hosts, file by file.
    pub invariants: Vec<Arc<Invariants>>,
    /// The state mapping.
    pub mapping: String,
}

/// What the search is told.
#[derive(Clone)]
pub struct ExplorerConfig {
    /// The hosts, in the order of the topology. A program on its own is one host.
    pub hosts: Vec<WorldHost>,
    /// Another build of the program on its own, on the same host: what it does is compared with each path.
    pub against: Option<Box<HostConfig>>,
    /// The world between them; `None` for a program on its own.
    pub world: Option<WorldConfig>,
    /// Settings of the vm.
    pub vm: VmOptions,
    /// Settings of the solver.
    pub solver: SolverConfig,
    /// Searchers that take turns. In a world without any, the state with the least clock is next.
    pub search: Vec<String>,
    /// Instructions before another state is picked.
    pub batch_instructions: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Where the search stops.
    pub limits: Limits,
    /// Make a trace for every path or world, not only for those that cover something new.
    pub all_tests: bool,
    /// Make no traces of paths that end well.
    pub no_tests: bool,
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
    /// File that states are spilled to.
    pub spill: Option<PathBuf>,
    /// Answers for live peers.
    pub outside: Option<Arc<dyn Outside>>,
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

/// What was counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// Instructions executed, each step of a path once.
    pub instructions: u64,
    /// Instructions executed to rematerialise states.
    pub replayed: u64,
    /// Forks.
    pub forks: u64,
    /// Paths or worlds that the programs ended, well or badly.
    pub paths_completed: u64,
    /// Paths that ended otherwise.
    pub paths_partial: u64,
    /// Most states at a time.
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
    /// Weight of combinations of states that are no worlds: more faults happen in them than may in a world.
    #[serde(default)]
    pub excluded: WeightSum,
    /// Failures that could be injected on paths that ended, and on how many of them each was.
    pub faults: BTreeMap<String, u64>,
    /// Failures that were injected, by the number of the host, as [`everett_linux::InjectedFailure::what`] says them.
    #[serde(default)]
    pub injected: BTreeMap<u32, BTreeSet<String>>,
}

impl Statistics {
    /// Adds what another worker counted.
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

    /// Everything was explored.
    pub fn is_all_explored(&self) -> bool {
        let mut explored = self.finished.clone();
        explored.add_sum(&self.excluded);
        explored.is_one()
    }
}

impl WorldStatistics {
    /// States ever made; of those that were merged, one counts.
    pub fn states_total(&self) -> u64 {
        self.states_made.saturating_sub(self.merged)
    }

    /// Adds what another worker counted.
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

/// What is counted of worlds besides.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WorldStatistics {
    /// States ever made, initial ones and those that were merged included.
    pub states_made: u64,
    /// Copies that the mapping made.
    pub copies: u64,
    /// Packets sent to other hosts.
    pub packets: u64,
    /// States merged with others of equal history and path condition.
    pub merged: u64,
    /// Deliveries between states whose path conditions contradict each other.
    pub impossible: u64,
    /// Worlds that came to their end.
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
    /// Most dstates at a time.
    pub dstates_peak: usize,
    /// Symbolic bytes that got one value because they were sent to live peers.
    #[serde(default)]
    pub concretised: u64,
    /// Time spent on invariants.
    pub in_invariants: Duration,
}
