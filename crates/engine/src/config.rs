//! The configuration of a search: hosts, limits, options of the vm and of the solver.

use everett_invariant::Invariants;
use everett_linux::{Boot, HostConfig};
use everett_net::StartTime;
use everett_sim::{Expected, Network, PeerConfig, Plan};
use everett_solver::{Clock, SolverConfig};
use everett_vm::{BugKind, Outside, VmOptions};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::MemoryAccount;
use crate::seeds::Seed;
use crate::shares::ShareLimits;
use crate::source::IsCallAt;
use crate::trace::Trace;

/// Limits of the search.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Time limit, including the work after the search.
    pub max_time: Option<Duration>,
    /// Memory limit of the process, above which states are spilled.
    pub max_memory: Option<u64>,
    /// Number of ended paths.
    pub max_paths: Option<u64>,
    /// Number of forks of the whole run.
    pub max_forks: Option<u64>,
    /// Number of forks on one path; deeper paths are cut off.
    pub max_depth: Option<u32>,
    /// Number of instructions of the whole run.
    pub max_total_instructions: Option<u64>,
    /// Number of instructions on one path; more is a hang.
    pub max_instructions: Option<u64>,
    /// Virtual time at which a world is cut off.
    pub max_virtual_ns: Option<u64>,
    /// Shares of all forks and queries that one place of a program may have.
    pub shares: ShareLimits,
}

/// A host that is explored.
#[derive(Clone, Debug)]
pub struct WorldHost {
    /// The name of the host.
    pub name: String,
    /// The programs, files and options of the host.
    pub config: HostConfig,
    /// When the host starts.
    pub start: StartTime,
    /// How the processes of the host must end; anything else is a finding.
    pub expects: Vec<Expected>,
    /// The trace that leads to the host's initial state, if its program sets it up (`netklee.h`).
    pub begin: Option<Arc<Trace>>,
    /// The configuration of the live peer, if the host is one; a live peer has no programs.
    pub peer: Option<Arc<PeerConfig>>,
}

impl WorldHost {
    /// Creates the host of a single program.
    pub fn alone(config: HostConfig) -> WorldHost {
        WorldHost {
            name: "host".to_owned(),
            config,
            start: StartTime::At(0),
            expects: Vec::new(),
            begin: None,
            peer: None,
        }
    }

    /// Returns whether the program of the host sets it up (`netklee.h`).
    pub fn sets_itself_up(&self) -> bool {
        matches!(self.config.boot, Boot::Start(_))
    }
}

/// The configuration of a world besides its hosts.
#[derive(Clone, Default)]
pub struct WorldConfig {
    /// The network between the hosts, and its faults.
    pub network: Network,
    /// Invariants over all hosts, file by file.
    pub invariants: Vec<Arc<Invariants>>,
    /// The name of the state mapping.
    pub mapping: String,
}

/// The configuration of a search.
#[derive(Clone)]
pub struct ExplorerConfig {
    /// The hosts, in the order of the topology. A single program has one host.
    pub hosts: Vec<WorldHost>,
    /// Another build of a single program, on the same host: its behaviour is compared with that of
    /// each path.
    pub against: Option<Box<HostConfig>>,
    /// The world between the hosts; `None` for a single program.
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
    /// Limits of the search.
    pub limits: Limits,
    /// Inputs that a search of a program follows before others.
    pub seeds: Vec<Seed>,
    /// Explore only the ways that seeds take.
    pub only_seeds: bool,
    /// Follow each seed on a path of its own from the beginning.
    pub seeds_apart: bool,
    /// Stop at the first finding of one of these kinds.
    pub stop_at: Vec<BugKind>,
    /// Make a trace for every path or world, not only for those that cover something new.
    pub all_tests: bool,
    /// Make no traces of paths that end without a finding.
    pub no_tests: bool,
    /// Report every path that ends in a finding, not only the first at each location.
    pub all_findings: bool,
    /// Findings at different instructions of a line are different ones.
    pub findings_by_instruction: bool,
    /// Let the searcher pick the next state after every fork, not only after a batch.
    pub selects_after_forks: bool,
    /// Where a condition is decided, the new state is the one in which it is false.
    pub new_is_false: bool,
    /// Both states of a fork complete the instruction that forked before the searcher picks one: an
    /// error that the instruction checks for ends its path at once.
    pub completes_forks: bool,
    /// What a program executes before its `main` is not counted.
    pub counts_from_main: bool,
    /// Report heap blocks that are unreachable at exit.
    pub check_leaks: bool,
    /// Keep the output of paths.
    pub keep_output: bool,
    /// Tell the listener what programs print, when a path forks or ends.
    pub tell_output: bool,
    /// Keep the files that paths create or change.
    pub keep_files: bool,
    /// The clock of the run.
    pub clock: Clock,
    /// The memory account of the run.
    pub memory: Arc<dyn MemoryAccount>,
    /// The path of the spill file.
    pub spill: Option<PathBuf>,
    /// The source of answers for live peers.
    pub outside: Option<Arc<dyn Outside>>,
    /// The planned faults of each host: no other fault happens then. Empty if all faults are
    /// explored.
    pub plans: Vec<Plan>,
    /// Returns whether a call comes from the call site of a planned fault.
    pub is_at: Option<IsCallAt>,
}
