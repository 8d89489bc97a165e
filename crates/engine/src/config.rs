//! The configuration of a search: hosts, limits, options of the vm and of the solver.

use everett_invariant::Invariants;
use everett_linux::{Boot, HostConfig};
use everett_sim::{Expected, Network, PeerConfig};
use everett_solver::{Clock, SolverConfig};
use everett_vm::{Outside, VmOptions};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::MemoryAccount;
use crate::trace::Trace;

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
    /// Instructions that a state executes before the searcher picks the next state.
    pub batch_instructions: u64,
    /// Seed of all random choices.
    pub seed: u64,
    /// Where the search stops.
    pub limits: Limits,
    /// Make a trace for every path or world, not only for those that cover something new.
    pub all_tests: bool,
    /// Make no traces of paths that end well.
    pub no_tests: bool,
    /// Report every path that ends in a finding, not only the first at each location.
    pub all_findings: bool,
    /// Report heap blocks that are unreachable at exit.
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
