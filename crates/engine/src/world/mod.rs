//! Worlds of several hosts: states of hosts fork alone and run in the order of their clocks; a mapping keeps track of which
//! states belong to one world.
//!
//! A state runs when no other one has an earlier clock, and only to its horizon, before which nothing can still arrive. So no
//! packet arrives in a host's past, and what a host does depends only on what it has received.

mod beginnings;
mod done;
mod ending;
mod invariants;
mod machine;
mod member;
mod messages;
mod order;
mod standing;
mod starts;
mod traffic;
mod verdicts;

use everett_invariant::Invariants;
use everett_linux::{Boot, Ending, HostConfig, LeftFile};
use everett_net::{FaultIndex, Faults, HostIndex, Topology};
use everett_sim::{Expected, MessageLog, Network, RunState, Step, horizon_ns};
use everett_solver::{Clock, SolverConfig, SolverError, SolverStatistics};
use everett_vm::{Bug, BugKind, Coverage, Image, VmOptions};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use ending::WorldFinding;
use machine::Explored;
use member::{HistoryDigest, Member};
use order::Wanted;
pub use standing::HostStanding;
use verdicts::Verdicts;

use crate::explorer::{Limits, Statistics, Stopped};
use crate::finding::FindingIndex;
use crate::mapping::{Mapping, MemberId, Table, UnknownMapping, mapping, weight_of};
use crate::memory::MemoryAccount;
use crate::oracle::Fork;
use crate::path::Path;
use crate::search::UnknownSearcher;
use crate::state::State;
use crate::trace::Trace;
use crate::weight::{Weight, WeightSum};
use crate::worker::{Deadline, Other, Worker};

/// A host of the scenario.
#[derive(Clone, Debug)]
pub struct WorldHost {
    /// Its name.
    pub name: String,
    /// What it is started with.
    pub config: HostConfig,
    /// When; `None` for when those before it wait.
    pub start_ns: Option<u64>,
    /// How its processes have to end; anything else is a finding.
    pub expects: Vec<Expected>,
    /// What leads to where it begins, where its program sets it up itself.
    pub begin: Option<Arc<Trace>>,
}

/// What is explored.
#[derive(Clone)]
pub struct WorldConfig {
    /// The hosts, in the order of the topology.
    pub hosts: Vec<WorldHost>,
    /// The network between them.
    pub topology: Topology,
    /// What can go wrong.
    pub faults: Faults,
    /// What must hold, file by file.
    pub invariants: Vec<Arc<Invariants>>,
    /// How states are kept together.
    pub mapping: String,
    /// Settings of the vm.
    pub vm: VmOptions,
    /// Settings of the solver.
    pub solver: SolverConfig,
    /// Where the search stops.
    pub limits: Limits,
    /// Searchers that take turns; where there are none the state with the least clock goes on.
    pub searchers: Vec<String>,
    /// Of what searchers do at random.
    pub seed: u64,
    /// How often at most something arrives at a host before what would have arrived earlier.
    pub orders: u32,
    /// Messages and times to wait for of one host before it counts as a livelock.
    pub max_events: Option<u64>,
    /// Virtual time at which a world is cut off.
    pub max_virtual_ns: Option<u64>,
    /// Make a trace for every world.
    pub all_tests: bool,
    /// The clock of the run.
    pub clock: Clock,
    /// The memory that the run takes.
    pub memory: Arc<dyn MemoryAccount>,
}

/// Why the search could not start.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// Of the mapping.
    #[error(transparent)]
    Mapping(#[from] UnknownMapping),
    /// Of the searchers.
    #[error(transparent)]
    Searcher(#[from] UnknownSearcher),
    /// Of the solver.
    #[error(transparent)]
    Solver(#[from] SolverError),
}

/// Files that programs of hosts want to have written down, and what they hold.
pub type SavedFiles = BTreeMap<String, Vec<(LeftFile, Vec<u8>)>>;

/// Told while the search goes on.
pub trait WorldListener {
    /// Something wrong was found, for the first time at its place.
    fn finding(&mut self, finding: &WorldFinding);
    /// A world came to its end by these traces of its hosts; only where they are wanted for all.
    fn world(&mut self, traces: &BTreeMap<String, Trace>, files: &SavedFiles);
    /// Called often; shows progress when it thinks fit.
    fn tick(&mut self, worlds: &Worlds<'_>);
}

/// What is counted besides what a search of one host counts.
#[derive(Clone, Debug, Default)]
pub struct WorldStatistics {
    /// States that were ever made, those at the start too, but those that were the same as others.
    pub states_total: u64,
    /// Copies that the mapping made.
    pub copies: u64,
    /// Packets that were sent to other hosts.
    pub packets: u64,
    /// States that were not needed, because the same had happened to another one.
    pub merged: u64,
    /// Deliveries that could not be, because those who would meet never do.
    pub impossible: u64,
    /// Worlds that came to their end.
    pub worlds: u128,
    /// Most dstates at a time.
    pub dstates_peak: usize,
    /// Time that it took to look at invariants.
    pub in_invariants: Duration,
}

/// The search.
pub struct Worlds<'a> {
    config: WorldConfig,
    worker: Worker<'a>,
    mapping: Box<dyn Mapping>,
    table: Table,
    members: BTreeMap<MemberId, Member>,
    /// States by the time at which they go on, then by host.
    queue: BTreeSet<(u64, HostIndex, MemberId)>,
    /// The place of each in the queue.
    places: BTreeMap<MemberId, (u64, HostIndex)>,
    weights: BTreeMap<MemberId, Weight>,
    /// States by history: two with the same history and path condition are merged.
    histories: HashMap<HistoryDigest, MemberId>,
    wanted: Wanted,
    next_id: u32,
    findings: FindingIndex,
    statistics: Statistics,
    counted: WorldStatistics,
    limits_hit: Vec<&'static str>,
    warnings: Vec<String>,
    /// Faults that happened somewhere.
    fired: BTreeSet<FaultIndex>,
    /// Steps of the search so far.
    steps: u64,
    /// What hosts sent each other, where that is noted.
    messages: Option<MessageLog>,
    /// What hosts were doing at the end of a world that is followed.
    standing: Vec<HostStanding>,
    /// What surrounds the hosts.
    network: Network,
    /// How far a host may run ahead of the others.
    lookahead_ns: u64,
    /// Times at which invariants are still to be looked at.
    times: BTreeSet<u64>,
    /// Hosts that start when those before them wait.
    starting: Vec<HostIndex>,
    /// What came of looking at what hosts show.
    verdicts: Verdicts,
    /// Time that it took to tell of those that are broken.
    telling: Duration,
}

impl<'a> Worlds<'a> {
    /// A search that has done nothing yet. Where there are traces of hosts, they are followed, and what they do not say goes as
    /// usual.
    pub fn new(
        images: &'a [Image],
        config: WorldConfig,
        follow: Option<&BTreeMap<String, Trace>>,
    ) -> Result<Worlds<'a>, WorldError> {
        let solver = SolverConfig {
            deadline: config.limits.max_time,
            ..config.solver.clone()
        };
        let network = Network {
            topology: config.topology.clone(),
            faults: config.faults.clone(),
            orders: config.orders,
            max_events: config.max_events,
        };
        let mut worlds = Worlds {
            worker: Worker::new(images, config.vm.clone(), solver)?,
            mapping: mapping(&config.mapping)?,
            wanted: Wanted::by(&config.searchers, config.seed)?,
            table: Table::default(),
            members: BTreeMap::new(),
            queue: BTreeSet::new(),
            places: BTreeMap::new(),
            weights: BTreeMap::new(),
            histories: HashMap::new(),
            next_id: 0,
            findings: FindingIndex::default(),
            statistics: Statistics::default(),
            counted: WorldStatistics::default(),
            limits_hit: Vec::new(),
            warnings: Vec::new(),
            fired: BTreeSet::new(),
            steps: 0,
            messages: follow.map(|_| {
                let names = config.hosts.iter().map(|host| host.name.clone());
                MessageLog::between(names.collect())
            }),
            standing: Vec::new(),
            lookahead_ns: network.lookahead_ns(),
            network,
            times: config
                .invariants
                .iter()
                .flat_map(|file| file.times())
                .collect(),
            starting: config
                .hosts
                .iter()
                .zip(0..)
                .filter(|(host, _)| host.start_ns.is_none())
                .map(|(_, at)| HostIndex(at))
                .collect(),
            verdicts: Verdicts::default(),
            telling: Duration::ZERO,
            config,
        };
        worlds.begin(follow);
        Ok(worlds)
    }

    fn add(&mut self, member: Member) -> MemberId {
        let id = MemberId(self.next_id);
        self.next_id += 1;
        self.counted.states_total += 1;
        self.weights.insert(id, member.state.path.weight);
        self.members.insert(id, member);
        id
    }

    /// Puts a state into the queue, at the time of its next event.
    fn enqueue(&mut self, id: MemberId) {
        self.dequeue(id);
        let host = self.table.host(id);
        if let Some(member) = self.members.get(&id) {
            let next = member.next_ns();
            self.places.insert(id, (next, host));
            self.queue.insert((next, host, id));
            self.table.set_still(id, next == u64::MAX);
            self.want(id);
        }
    }

    /// Takes a state out of the queue.
    fn dequeue(&mut self, id: MemberId) {
        if let Some((next, host)) = self.places.remove(&id) {
            self.queue.remove(&(next, host, id));
            self.wanted.dequeue(id);
        }
    }

    fn host(&self, host: HostIndex) -> &WorldHost {
        &self.config.hosts[host.index()]
    }

    /// Explores until nothing is left, a limit is reached, or `stop` is set.
    pub fn run(&mut self, stop: &AtomicBool, listener: &mut dyn WorldListener) -> Stopped {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Stopped::Asked;
            }
            if let Some(limit) = self.limit_reached() {
                self.note_limit(limit);
                return Stopped::Limit(limit);
            }
            listener.tick(self);
            self.finish_settled(listener);
            let Some((next_ns, _, id)) = self.turn() else {
                return Stopped::Finished;
            };
            if let Some(time_ns) = self.time_before(next_ns) {
                self.check_at(time_ns, listener);
                continue;
            }
            if self
                .config
                .max_virtual_ns
                .is_some_and(|most| next_ns > most)
            {
                self.note_limit("max-virtual-time");
                self.cut_all();
                return Stopped::Limit("max-virtual-time");
            }
            self.statistics.states_peak =
                self.statistics.states_peak.max(self.members.len() as u64);
            self.counted.dstates_peak = self.counted.dstates_peak.max(self.table.len());
            self.advance(id, listener);
        }
    }

    fn limit_reached(&mut self) -> Option<&'static str> {
        /// Asking for the memory takes longer than most steps.
        const BETWEEN_LOOKS: u64 = 64;
        self.steps += 1;
        let limits = &self.config.limits;
        let forks = self.statistics.forks;
        let looks = self.steps.is_multiple_of(BETWEEN_LOOKS);
        if self.is_late() {
            Some("max-time")
        } else if limits.max_forks.is_some_and(|limit| forks >= limit) {
            Some("max-forks")
        } else if limits
            .max_paths
            .is_some_and(|limit| self.statistics.paths_completed >= limit)
        {
            Some("max-paths")
        } else if looks
            && limits
                .max_memory
                .is_some_and(|most| self.config.memory.used() >= most)
        {
            Some("max-memory")
        } else {
            None
        }
    }

    fn is_late(&self) -> bool {
        let limit = self.config.limits.max_time;
        limit.is_some_and(|limit| self.config.clock.now() >= limit)
    }

    fn deadline(&self) -> Deadline {
        let limit = self.config.limits.max_time?;
        Some((self.config.clock, limit))
    }

    /// Faults of the scenario that happened nowhere.
    pub fn faults_never_fired(&self) -> Vec<String> {
        let all = self.config.faults.list().iter().zip(0..);
        let never = all.filter(|(_, at)| !self.fired.contains(&FaultIndex(*at)));
        never.map(|(fault, _)| fault.name.clone()).collect()
    }

    fn note_limit(&mut self, limit: &'static str) {
        if !self.limits_hit.contains(&limit) {
            self.limits_hit.push(limit);
        }
    }

    /// The horizon of a state.
    fn horizon(&self, id: MemberId) -> u64 {
        let next = self.first_beside(id).map_or(u64::MAX, |(next, _, _)| next);
        let check_ns = self.times.first().copied();
        let barriers = [check_ns, self.next_start_ns()].into_iter().flatten();
        horizon_ns(next, self.lookahead_ns, barriers)
    }

    /// Runs a state to its horizon.
    fn advance(&mut self, id: MemberId, listener: &mut dyn WorldListener) {
        let Some(mut member) = self.members.remove(&id) else {
            return;
        };
        self.forget_history(member.history, id);
        if self.run_to_horizon(id, &mut member, listener) {
            self.histories.entry(member.history).or_insert(id);
            self.members.insert(id, member);
            self.enqueue(id);
        }
    }

    /// Steps a state until it blocks or the time of the run is over. Returns `false` if it is in no world any more.
    fn run_to_horizon(
        &mut self,
        id: MemberId,
        member: &mut Member,
        listener: &mut dyn WorldListener,
    ) -> bool {
        loop {
            if !self.transmit(id, member, listener) {
                return false;
            }
            if !member.sim.unsent.is_empty() {
                return true;
            }
            let was_off = member.sim.is_off();
            // A receiver may answer, so the horizon changes whenever something is sent.
            let horizon_ns = self.horizon(id);
            let stepped = self.step(id, member, horizon_ns);
            if !self.is_on_its_way(id, member) {
                return false;
            }
            let now_ns = match stepped {
                Err(Some(fork)) => {
                    self.fork(id, member, fork);
                    member.clock_ns()
                }
                Err(None) | Ok((Step::Blocked, _)) => return true,
                Ok((step, now_ns)) => {
                    if !self.handle(id, member, step, listener) {
                        return false;
                    }
                    now_ns
                }
            };
            if member.sim.is_off() && !was_off {
                member.ending = None;
                // A host that is off exposes nothing.
                self.check_change(id, member, listener);
            }
            if let Some(message) = member.state.path.diverged.take() {
                self.warn(format!("a trace could not be followed: {message}"));
            }
            if !self.notify_blocked(id, member, now_ns, listener) {
                return false;
            }
            if !self.is_within_limits(id, member, listener) {
                return false;
            }
            if self.is_late() {
                return true;
            }
        }
    }

    /// Handles what a step did. Returns `false` if the state is gone with that.
    fn handle(
        &mut self,
        id: MemberId,
        member: &mut Member,
        step: Step<Ending>,
        listener: &mut dyn WorldListener,
    ) -> bool {
        self.fired.extend(step.faults());
        self.log_step(self.table.host(id), &step, member);
        match step {
            Step::Exposed => self.exposed(id, member, listener),
            Step::Livelock(events) => {
                let message = format!("over {events} messages and times that it waited for");
                let bug = Bug::new(BugKind::Hang, message);
                return !self.ended(id, member, Ending::Bug(Box::new(bug)), listener);
            }
            Step::Stopped(ending) => return !self.ended(id, member, ending, listener),
            _ => {}
        }
        true
    }

    /// One step of a state, with its instructions, coverage and warnings counted.
    fn step(
        &mut self,
        id: MemberId,
        member: &mut Member,
        horizon_ns: u64,
    ) -> Result<(Step<Ending>, u64), Option<Fork>> {
        let deadline = self.deadline();
        let stop_at_waits = self.is_waited_for(id);
        let host = self.table.host(id);
        let (before, warned) = (member.state.instructions(), member.warnings().len());
        let mut machine = Explored {
            state: &mut member.state,
            worker: &mut self.worker,
            config: &self.config.hosts[host.index()],
            deadline,
        };
        let (network, sim) = (&self.network, &mut member.sim);
        let result = everett_sim::step(network, host, sim, &mut machine, horizon_ns, stop_at_waits);
        let executed = member.state.instructions().saturating_sub(before);
        self.statistics.instructions += executed;
        member.state.since_new += executed;
        if std::mem::take(&mut self.worker.coverage.grew) {
            member.state.since_new = 0;
        }
        for warning in member.warnings().iter().skip(warned) {
            self.warn(warning.clone());
        }
        result
    }

    /// A host that its program sets up follows a trace to where it begins. Returns `false` where it strays: it is cut off.
    fn is_on_its_way(&mut self, id: MemberId, member: &mut Member) -> bool {
        if !member.sim.is_setting_up(member.host()) {
            return true;
        }
        let Some(message) = member.state.path.diverged.take() else {
            return true;
        };
        let name = &self.host(self.table.host(id)).name;
        self.warn(format!("host {name} does not come to its begin: {message}"));
        self.note_limit("begin");
        self.cut(id);
        false
    }

    /// Ends a state that has more forks or instructions than it may. Returns `false` if it is gone.
    fn is_within_limits(
        &mut self,
        id: MemberId,
        member: &mut Member,
        listener: &mut dyn WorldListener,
    ) -> bool {
        let limits = &self.config.limits;
        let (depth, instructions) = (member.state.path.depth, member.state.instructions());
        if limits.max_depth.is_some_and(|most| depth > most) {
            self.note_limit("max-depth");
            self.cut(id);
            return false;
        }
        let hangs = limits
            .max_instructions
            .is_some_and(|most| instructions >= most);
        if hangs && member.sim.run_state == RunState::Running {
            let ending = Ending::Bug(Box::new(member.state.hang()));
            return !self.ended(id, member, ending, listener);
        }
        true
    }

    /// Splits a state at a question with several answers.
    fn fork(&mut self, id: MemberId, member: &mut Member, fork: Fork) {
        self.statistics.forks += 1;
        let before = member.history;
        member.history = before.then(&"this side");
        let other = self.worker.split(&mut member.state, fork);
        self.weights.insert(id, member.state.path.weight);
        let child = match other {
            Other::State(state) => member.with_state(*state, before.then(&"the other side")),
            Other::Unknown(reason) => {
                // The other half of its worlds is neither finished nor pending.
                let half = self.weight_with(id);
                self.statistics.unknown.add_sum(&half);
                return self.solver_gave_up(&reason);
            }
        };
        let child = self.add(child);
        self.with_mapping(|mapping, table, copy| mapping.branched(table, id, child, copy));
        self.enqueue(child);
    }

    /// Lets the mapping work; it may want copies of states.
    fn with_mapping<T>(
        &mut self,
        work: impl FnOnce(&mut dyn Mapping, &mut Table, &mut dyn FnMut(MemberId) -> MemberId) -> T,
    ) -> T {
        let (members, weights) = (&mut self.members, &mut self.weights);
        let (next, counted) = (&mut self.next_id, &mut self.counted);
        let mut copies = Vec::new();
        let mut copy = |old: MemberId| {
            let id = MemberId(*next);
            *next += 1;
            counted.states_total += 1;
            counted.copies += 1;
            if let Some(member) = members.get(&old).cloned() {
                weights.insert(id, member.state.path.weight);
                members.insert(id, member);
            }
            copies.push(id);
            id
        };
        let result = work(&mut *self.mapping, &mut self.table, &mut copy);
        copies.into_iter().for_each(|copy| self.enqueue(copy));
        result
    }

    /// The weight of a state.
    fn weight(&self, id: MemberId) -> Weight {
        self.weights.get(&id).copied().unwrap_or_default()
    }

    /// The weight of all worlds with a state.
    fn weight_with(&self, id: MemberId) -> WeightSum {
        let mut sum = WeightSum::default();
        for place in self.table.places(id) {
            if let Some(dstate) = self.table.dstate(place) {
                let with_it = dstate.with_only([id], self.table.host(id));
                sum.add_sum(&weight_of(&with_it, |id| self.weight(id)));
            }
        }
        sum
    }

    /// The weight of all worlds that have not come to their end.
    pub fn pending_weight(&self) -> WeightSum {
        let mut sum = WeightSum::default();
        for (_, dstate) in self.table.dstates() {
            sum.add_sum(&weight_of(dstate, |id| self.weight(id)));
        }
        sum
    }

    /// There is no world with a state, or all of them are at their end. Its weight is to be counted before. Returns who is gone
    /// with it.
    fn forget(&mut self, id: MemberId) -> Vec<MemberId> {
        let gone = self.table.remove(id);
        self.drop_members(&gone);
        gone
    }

    fn finish_worlds_with(&mut self, id: MemberId) -> Vec<MemberId> {
        let weight = self.weight_with(id);
        self.statistics.finished.add_sum(&weight);
        self.forget(id)
    }

    /// Worlds with a state are not followed any further.
    fn cut(&mut self, id: MemberId) {
        let weight = self.weight_with(id);
        self.statistics.unknown.add_sum(&weight);
        self.statistics.paths_partial += 1;
        self.forget(id);
    }

    /// Worlds are not followed any further: what would become of them is not known.
    fn cut_all(&mut self) {
        let pending = self.pending_weight();
        self.statistics.unknown.add_sum(&pending);
        self.statistics.paths_partial += self.table.len() as u64;
        let all: Vec<MemberId> = self.table.states().collect();
        self.table = Table::default();
        self.drop_members(&all);
    }

    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    fn solver_gave_up(&mut self, reason: &str) {
        self.warn(format!("the solver gave up: {reason}"));
        self.note_limit("solver");
    }

    fn drop_members(&mut self, gone: &[MemberId]) {
        for id in gone {
            self.dequeue(*id);
            self.weights.remove(id);
            if let Some(member) = self.members.remove(id) {
                self.forget_history(member.history, *id);
            }
        }
    }

    /// A state has another history now.
    fn forget_history(&mut self, history: HistoryDigest, id: MemberId) {
        if self.histories.get(&history) == Some(&id) {
            self.histories.remove(&history);
        }
    }

    /// What was counted.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// What was counted of worlds.
    pub fn world_statistics(&self) -> &WorldStatistics {
        &self.counted
    }

    /// What the solver counted.
    pub fn solver_statistics(&self) -> &SolverStatistics {
        self.worker.solver.statistics()
    }

    /// What was executed.
    pub fn coverage(&self) -> &Coverage {
        &self.worker.coverage
    }

    /// Which states are in which dstates.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// States at the moment.
    pub fn states(&self) -> usize {
        self.members.len()
    }

    /// What was found.
    pub fn findings(&self) -> &FindingIndex {
        &self.findings
    }

    /// Limits that were reached.
    pub fn limits_hit(&self) -> &[&'static str] {
        &self.limits_hit
    }

    /// What the user should know.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The programs.
    pub fn images(&self) -> &'a [Image] {
        self.worker.images
    }

    /// The earliest time to which no world has come yet, if any goes on.
    pub fn virtual_ns(&self) -> Option<u64> {
        let next = self.queue.first().map(|(next, _, _)| *next);
        next.filter(|next| *next != u64::MAX)
    }
}
