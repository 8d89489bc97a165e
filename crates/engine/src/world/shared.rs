//! The data of a search of worlds besides its states: mapping, table, queues, caches. Must not know
//! the explorer, which acts on it.

use everett_invariant::Invariants;
use everett_net::{FaultIndex, HostIndex, StartTime};
use everett_sim::{MessageLog, Network};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{ExplorerConfig, WorldConfig};
use crate::error::ExplorerError;
use crate::finding::HostStatus;
use crate::frontier::StateId;
use crate::history::HistoryDigest;
use crate::mapping::{MAPPINGS, Mapping, Table, mapping};
use crate::statistics::WorldStatistics;
use crate::world::bounds::Bounds;
use crate::world::order::SearchOrder;
use crate::world::verdicts::Verdicts;

/// The data of a search of worlds besides its states.
pub struct World {
    pub(super) mapping: Box<dyn Mapping>,
    /// The table of states and dstates.
    pub(crate) table: Table,
    /// States by the time of their next event, then by host.
    pub(super) queue: BTreeSet<(u64, HostIndex, StateId)>,
    /// The position of each state in the queue.
    pub(super) places: HashMap<StateId, (u64, HostIndex)>,
    /// States by history: two states with the same history and path condition are merged.
    pub(super) histories: HashMap<HistoryDigest, StateId>,
    pub(super) order: SearchOrder,
    pub(crate) counted: WorldStatistics,
    /// Faults that have happened in some world.
    pub(super) fired: BTreeSet<FaultIndex>,
    /// The message log, if one world is followed.
    pub(super) messages: Option<MessageLog>,
    /// The status of each host at the end of a world that is followed.
    pub(super) host_status: Vec<HostStatus>,
    /// The network between the hosts, with its faults.
    pub(super) network: Network,
    /// Bounds on the number of faults in a world.
    pub(super) bounds: Bounds,
    /// How far a host may run ahead of the others.
    pub(super) lookahead_ns: u64,
    pub(super) invariants: Vec<Arc<Invariants>>,
    /// Times at which invariants are still to be evaluated.
    pub(super) times: BTreeSet<u64>,
    /// Hosts that start when the hosts before them are blocked.
    pub(super) starting: Vec<HostIndex>,
    /// States of such hosts that have not started, with their positions in the queue.
    pub(super) not_started: BTreeSet<(u64, HostIndex, StateId)>,
    /// The cache of invariant evaluations.
    pub(super) verdicts: Verdicts,
    /// Time spent on reporting broken invariants.
    pub(super) reporting: Duration,
    /// The number of the next world that has not begun; `None` if all have.
    pub(crate) next_world: Option<u64>,
    /// The number of worlds that have begun.
    pub(crate) begun: u64,
    /// Whether the run was stopped while it evaluated invariants. A resumed run evaluates them
    /// again.
    pub(crate) has_open_questions: bool,
}

impl World {
    /// Creates the data of a search without states. With `is_followed`, messages between hosts are
    /// logged.
    pub(crate) fn new(config: &ExplorerConfig, is_followed: bool) -> Result<World, ExplorerError> {
        let WorldConfig {
            network,
            invariants,
            mapping: name,
        } = config.world.clone().unwrap_or_default();
        let default = MAPPINGS[0].name;
        let name = if config.world.is_some() {
            &name
        } else {
            default
        };
        let names = config.hosts.iter().map(|host| host.name.clone());
        let hosts = config.hosts.iter().zip(0..);
        let starting = hosts.filter(|(host, _)| matches!(host.start, StartTime::Blocked(_)));
        Ok(World {
            mapping: mapping(name)?,
            table: Table::default(),
            queue: BTreeSet::new(),
            places: HashMap::new(),
            histories: HashMap::new(),
            order: SearchOrder::by(!config.search.is_empty()),
            counted: WorldStatistics::default(),
            fired: BTreeSet::new(),
            messages: is_followed.then(|| MessageLog::between(names.collect())),
            host_status: Vec::new(),
            lookahead_ns: network.lookahead_ns(),
            bounds: Bounds::of(&network.faults, config.hosts.len()),
            network,
            times: invariants.iter().flat_map(|file| file.times()).collect(),
            invariants,
            starting: starting.map(|(_, at)| HostIndex(at)).collect(),
            not_started: BTreeSet::new(),
            verdicts: Verdicts::default(),
            reporting: Duration::ZERO,
            next_world: None,
            begun: 0,
            has_open_questions: false,
        })
    }

    /// Schedules the evaluation of invariants at all their times, for worlds that begin.
    pub(super) fn begin_times(&mut self) {
        self.times = self
            .invariants
            .iter()
            .flat_map(|file| file.times())
            .collect();
    }
}

impl World {
    /// Returns the times at which invariants are still to be evaluated, and the faults that have
    /// happened.
    pub(crate) fn times_and_fired(&self) -> (Vec<u64>, Vec<FaultIndex>) {
        let times = self.times.iter().copied().collect();
        (times, self.fired.iter().copied().collect())
    }

    /// Restores the times and faults of an earlier search.
    pub(crate) fn set_times_and_fired(&mut self, times: Vec<u64>, fired: Vec<FaultIndex>) {
        self.times = times.into_iter().collect();
        self.fired = fired.into_iter().collect();
    }

    /// Records faults that have happened in worlds of another worker.
    pub(crate) fn note_fired(&mut self, faults: Vec<FaultIndex>) {
        self.fired.extend(faults);
    }

    /// Adds a state to the index of histories.
    pub(crate) fn know_history(&mut self, history: HistoryDigest, id: StateId) {
        self.histories.entry(history).or_insert(id);
    }

    /// Clears the cache of evaluations, because terms that nothing else uses are freed.
    pub(crate) fn forget_verdicts(&mut self) {
        self.verdicts = Verdicts::default();
    }
}
