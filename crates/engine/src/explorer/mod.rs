//! The explorer: picks states, runs them, forks them, and accounts for every path. A single program
//! is a world of one host without a network: it needs no mapping and no order of clocks
//! (`program`). Worlds of several hosts are in `crate::world`.

mod closing;
mod endings;
mod limits;
mod memory;
mod merging;
mod pairs;
mod program;

use everett_ir::code::FunctionId;
use everett_linux::{Ending, HostExit, Packet, Setup};
use everett_net::HostIndex;
use everett_solver::{SolverConfig, SolverStatistics};
use everett_vm::{Bug, BugKind, CallSite, Coverage, Image, Note};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::config::{ExplorerConfig, Limits, WorldHost};
use crate::distance::Distances;
use crate::error::ExplorerError;
use crate::finding::{Finding, FindingIndex, PathEnd, SavedFiles, Unsupported, WorldFinding};
use crate::frontier::{Frontier, StateId, StateInfo, Stored};
use crate::observe::{Keep, StateView};
use crate::pair::Difference;
use crate::path::{Path, Sharing};
use crate::random::Random;
use crate::saved::Saved;
use crate::search::{Searcher, searcher};
use crate::seeds::Seeds;
use crate::shares::Shares;
use crate::source::{SolverLine, solver_lines};
use crate::spill::{Bundle, SpillFile, SpillId};
use crate::state::State;
use crate::statistics::{
    ExploredWork, FRAMES, LOST, SolverFigures, Statistics, VIRTUAL_TIME, WorldStatistics,
};
use crate::team::member::{Counted, Job, Member, TeamStatistics};
use crate::trace::Trace;
use crate::weight::WeightSum;
use crate::worker::Worker;
use crate::world::Worlds;
use crate::world::shared::World;
use crate::world::stored::PendingWorld;
use closing::Closing;

/// Observes the search.
pub trait Listener {
    /// A path of a single program ended.
    fn path(&mut self, _end: &PathEnd) {}
    /// A path has printed this on standard output and standard error since it was heard of last.
    /// What several paths printed together is told once. Called only with
    /// [`ExplorerConfig::tell_output`].
    fn printed(&mut self, _output: &[Vec<u8>; 2]) {}
    /// The path of a seed begins. Called only with [`ExplorerConfig::seeds_apart`].
    fn seed(&mut self, _number: u32) {}
    /// A path has something to say to the user of its program (`klee_warning`). Called as
    /// [`Listener::printed`] is.
    fn noted(&mut self, _notes: &[Note]) {}
    /// A finding was made, the first at its location.
    fn finding(&mut self, finding: &WorldFinding);
    /// Two builds behave differently.
    fn difference(&mut self, _difference: &Difference) {}
    /// A world ended with these traces of its hosts. Called only if a test is wanted.
    fn world(&mut self, _traces: &BTreeMap<String, Trace>, _files: &SavedFiles) {}
    /// A dstate settled: nothing will happen in it any more, so every combination of one of these
    /// states per host is a world that ended. States are named by digests of their answers. Called
    /// only if [`Listener::wants_settled`].
    fn settled(&mut self, _hosts: Vec<Vec<u64>>) {}
    /// Returns whether [`Listener::settled`] is called.
    fn wants_settled(&self) -> bool {
        false
    }
    /// A state has forked; this is the new state.
    fn forked(&mut self, _child: &mut StateView<'_, '_>) -> Keep {
        Keep::Yes
    }
    /// A state has forked; this is the state that continues, under a stronger path condition.
    fn narrowed(&mut self, _state: &mut StateView<'_, '_>) -> Keep {
        Keep::Yes
    }
    /// All threads of a host are blocked, at least one of them on an event from outside. Called
    /// only if [`Listener::wants_waits`].
    fn waits(&mut self, _state: &mut StateView<'_, '_>) -> Keep {
        Keep::Yes
    }
    /// A host is about to make this system call. Called only for hosts that stop at calls.
    fn called(&mut self, _state: &mut StateView<'_, '_>, _call: &str) -> Keep {
        Keep::Yes
    }
    /// The data that a host exposes has changed.
    fn exposed(&mut self, _state: &mut StateView<'_, '_>) -> Keep {
        Keep::Yes
    }
    /// Returns whether [`Listener::waits`] is called: hosts then stop whenever they block.
    fn wants_waits(&self) -> bool {
        false
    }
    /// Returns whether no host runs ahead of others: events of different hosts of a world are then
    /// heard of in the order of their times.
    fn wants_order(&self) -> bool {
        false
    }
    /// Returns whether states keep the packets that they send ([`StateView::sent`]).
    fn keeps_sent(&self) -> bool {
        false
    }
    /// A host sends a packet to others. Its payload may be symbolic, under the sender's path
    /// condition.
    fn sent(
        &mut self,
        _sender: &mut StateView<'_, '_>,
        _packet: &Packet,
        _to: &[HostIndex],
    ) -> Keep {
        Keep::Yes
    }
    /// A host has received a packet from another one, after faults were applied to it.
    fn delivered(&mut self, _receiver: &mut StateView<'_, '_>, _packet: &Packet) -> Keep {
        Keep::Yes
    }
    /// The programs of a host have ended.
    fn ended(&mut self, _state: &mut StateView<'_, '_>, _ending: &Ending) {}
    /// Whether worlds in which the programs of this host have exited are of no interest any more:
    /// they are pruned.
    fn ends_world(&self, _host: HostIndex) -> bool {
        false
    }
    /// A path has declared itself a host of a world; the trace leads to its state.
    fn set_up(&mut self, _setup: &Setup, _trace: &Trace) {}
    /// Returns whether the next tick writes a checkpoint, for which all workers must pause.
    fn is_saving_due(&mut self) -> bool {
        false
    }
    /// Called often, for instance to show progress.
    fn tick(&mut self, explorer: &Explorer<'_>);
    /// Returns how long it would take to write the results if the search stopped now; the time
    /// limit includes it.
    fn closing_time(&mut self, _explorer: &Explorer<'_>) -> Duration {
        Duration::ZERO
    }
    /// Returns the time to reserve after the search; the time limit includes it.
    fn time_after(&self) -> Duration {
        Duration::ZERO
    }
}

/// Maximum number of forks in a batch: memory is checked only between batches.
const FORKS_A_BATCH: u64 = 256;
/// Maximum number of lost states that are named one by one.
const MOST_NAMED_LOSSES: usize = 32;
/// Fraction of the memory limit that the index of the spill file may use.
const SPILL_INDEX_PART: u64 = 64;

/// Where a search begins.
pub enum Start {
    /// At the start of the programs.
    Beginning,
    /// At the state to which this trace of a program leads.
    Trace(Trace),
    /// At the state to which this trace of a program leads, followed loosely: what the trace leaves
    /// out takes its default. Inputs are matched by name and choices by site. The solver is not
    /// queried.
    Loosely(Trace),
    /// In one world, along these traces of its hosts, followed loosely. Messages between hosts are
    /// logged.
    World(BTreeMap<String, Trace>),
    /// With an empty frontier: states come from other workers.
    Nothing,
    /// With these states of a program, given as pending traces.
    States(Vec<Trace>),
    /// At the checkpoint of an earlier search; its files are beside the spill file.
    Saved(Box<Saved>),
    /// With these worlds, each with the stored state of every host.
    Pending(Vec<PendingWorld>),
    /// With these worlds of another search, which are validated before they are used.
    Worlds(Vec<Worlds>),
}

/// Why the search stopped.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// The frontier is empty.
    Finished,
    /// The search reached this limit.
    Limit(&'static str),
    /// The stop flag was set.
    Asked,
}

impl Stopped {
    /// Returns the name of the reason in summaries.
    pub fn name(&self) -> &'static str {
        match self {
            Stopped::Finished => "finished",
            Stopped::Limit(limit) => limit,
            Stopped::Asked => "asked",
        }
    }
}

/// The search: the frontier, the worker that runs states, and all that is counted.
pub struct Explorer<'a> {
    pub(crate) config: ExplorerConfig,
    pub(crate) worker: Worker<'a>,
    pub(crate) frontier: Frontier,
    pub(crate) searcher: Box<dyn Searcher>,
    pub(crate) random: Random,
    /// States whose way seeds take, which run first. Some of them may be gone.
    seeded: BTreeSet<StateId>,
    /// The `main` of each program.
    mains: Vec<Option<FunctionId>>,
    /// Distances to uncovered code, for the coverage searcher.
    distances: Distances,
    /// Whether coverage has grown since the distances were computed.
    pub(crate) distances_stale: bool,
    /// The number of executed instructions when the distances were computed; 0 if they never were.
    instructions_at_renewal: u64,
    pub(crate) findings: FindingIndex,
    pub(crate) statistics: Statistics,
    /// Names of the limits that were reached.
    pub(crate) limits_hit: Vec<&'static str>,
    /// Requests that kernels refused, by call, request and location, with the largest count on one
    /// path.
    refusals: BTreeMap<(String, String, Vec<CallSite>), u64>,
    /// Requests that kernels refused in earlier runs and in other parts of the search.
    pub(crate) earlier_refusals: Vec<Unsupported>,
    pub(crate) warnings: Vec<String>,
    pub(crate) spill: Option<SpillFile>,
    /// Files of earlier checkpoints that may still contain states.
    pub(crate) older_files: Vec<PathBuf>,
    /// Spilled states that are not in the frontier, as lists in the spill file.
    backlog: VecDeque<Bundle>,
    /// Number of states in the backlog.
    in_backlog: usize,
    /// Number of states that the last checkpoint lacks.
    pub(crate) unsaved: u64,
    /// Number of lost states that were named in warnings.
    named_losses: usize,
    /// Counts calls of `out_of_time`, which reads the clock only at some of them.
    ticks: u64,
    /// The estimated time to close the run.
    closing: Closing,
    /// Rounds until memory is checked again.
    pub(crate) rounds_left: u64,
    /// Forks until memory is checked, even if there are rounds left.
    pub(crate) forks_left: u64,
    /// Memory that was still in use after the last spill.
    memory_floor: u64,
    /// Memory that was left up to the limit at the last check, for this worker.
    room: u64,
    /// The number of bytes allocated when memory was last checked.
    made_at_check: u64,
    /// The state mapping and the network between hosts.
    pub(crate) world: World,
    /// This worker's membership in a team of workers on the same search, if there is one.
    pub(crate) member: Option<Member>,
    /// States that are in transit between workers while a checkpoint is written.
    pub(crate) in_transit: Vec<Job>,
    /// Counters of the solvers of other workers.
    pub(crate) others_solver: SolverStatistics,
    pub(crate) team_statistics: TeamStatistics,
    /// Coverage of searches elsewhere, which only guides this one; empty if there is none.
    covered_elsewhere: Vec<u8>,
    /// Counters of the solver when the last part of the results was taken
    /// ([`Explorer::take_part`]).
    pub(crate) parted_solver: SolverFigures,
    /// Work of all parts of the results that were taken.
    pub(crate) parted_work: ExploredWork,
    /// Replay instructions of states that were given away although the work below them did not
    /// outweigh the replay.
    pub(crate) given_replay: u64,
}

/// Opens the file for states that do not fit into memory.
fn spill_file(config: &ExplorerConfig, start: &Start) -> Result<Option<SpillFile>, ExplorerError> {
    let index_memory = config.limits.max_memory.unwrap_or(1 << 30) / SPILL_INDEX_PART;
    Ok(match (config.spill.as_deref(), start) {
        (Some(path), Start::Saved(saved)) => {
            let beside = |name: &PathBuf| path.with_file_name(name);
            let older: Vec<PathBuf> = saved.files.iter().map(beside).collect();
            Some(SpillFile::open(path, &older, index_memory)?)
        }
        (Some(path), _) => Some(SpillFile::create(path, index_memory)?),
        (None, _) => None,
    })
}

impl<'a> Explorer<'a> {
    /// Creates a search at its start.
    pub fn new(
        images: &'a [Image],
        config: ExplorerConfig,
        start: Start,
    ) -> Result<Explorer<'a>, ExplorerError> {
        let solver = SolverConfig {
            deadline: config.limits.max_time,
            ..config.solver.clone()
        };
        let is_followed = matches!(start, Start::World(_));
        let mut explorer = Explorer {
            worker: Worker {
                outside: config.outside.clone(),
                plans: config.plans.clone(),
                is_at: config.is_at.clone(),
                merges: Self::merges_paths(&config, images),
                seeds: config.seeds.clone(),
                keeps_notes: config.tell_output,
                shares: Shares::new(config.limits.shares),
                ..Worker::new(images, config.vm.clone(), solver)?
            },
            frontier: match config.world {
                Some(_) => Frontier::of_worlds(),
                None => Frontier::default(),
            },
            searcher: searcher(&config.search)?,
            random: Random::new(config.seed),
            seeded: BTreeSet::new(),
            mains: images
                .iter()
                .map(|image| image.program().function("main"))
                .collect(),
            distances: Distances::new(images),
            distances_stale: true,
            instructions_at_renewal: 0,
            findings: FindingIndex::default(),
            statistics: Statistics::default(),
            limits_hit: Vec::new(),
            refusals: BTreeMap::new(),
            earlier_refusals: Vec::new(),
            warnings: Vec::new(),
            older_files: Vec::new(),
            backlog: VecDeque::new(),
            in_backlog: 0,
            unsaved: 0,
            named_losses: 0,
            spill: spill_file(&config, &start)?,
            ticks: 0,
            closing: Closing::default(),
            rounds_left: 0,
            forks_left: 0,
            memory_floor: 0,
            room: u64::MAX,
            made_at_check: 0,
            world: World::new(&config, is_followed)?,
            member: None,
            in_transit: Vec::new(),
            others_solver: SolverStatistics::default(),
            team_statistics: TeamStatistics::default(),
            covered_elsewhere: Vec::new(),
            parted_solver: SolverFigures::default(),
            parted_work: ExploredWork::default(),
            given_replay: 0,
            config,
        };
        explorer.begin(start)?;
        Ok(explorer)
    }

    /// Adds the states with which the search begins.
    fn begin(&mut self, start: Start) -> Result<(), ExplorerError> {
        match start {
            Start::Beginning if self.is_world() => self.begin_worlds(None),
            Start::World(traces) => self.begin_worlds(Some(&traces)),
            Start::Beginning => {
                let seeds = 0..self.config.seeds.len() as u32;
                let paths = match self.config.seeds_apart {
                    true => Path::of_each_seed(seeds.end),
                    false => vec![Path {
                        seeds: Seeds::new(seeds),
                        ..Path::default()
                    }],
                };
                paths.into_iter().for_each(|path| self.add_path(path));
            }
            Start::Nothing => {}
            Start::States(traces) => {
                let paths = traces.into_iter().map(Arc::new).map(Path::following);
                paths.for_each(|path| self.add_path(path));
            }
            Start::Trace(trace) => self.add_path(Path::following(Arc::new(trace))),
            Start::Loosely(trace) => self.add_path(Path::following_loosely(Arc::new(trace))),
            Start::Pending(worlds) => self.take_up(worlds)?,
            Start::Worlds(worlds) => self.take_up_worlds(worlds)?,
            Start::Saved(saved) => {
                self.older_files = saved.files.clone();
                self.restore_saved(*saved)?;
            }
        }
        Ok(())
    }

    /// Returns whether it explores worlds of several hosts rather than a single program.
    pub fn is_world(&self) -> bool {
        self.config.world.is_some()
    }

    /// Adds a state of a program at the start of a path.
    pub(crate) fn add_path(&mut self, path: Path) {
        let is_seeded = !path.seeds.is_empty();
        let state = Stored::Live(Box::new(State::starting(path)));
        let id = self.frontier.add_root(state, StateInfo::default());
        if is_seeded {
            self.seeded.insert(id);
        }
        self.searcher.added(&self.frontier, id);
    }

    /// Explores until nothing is left, a limit is reached, or `stop` is set.
    pub fn run(&mut self, stop: &AtomicBool, listener: &mut dyn Listener) -> Stopped {
        loop {
            self.take_from_backlog();
            if self.frontier.is_empty() {
                // What was left of the worlds that have begun may have ended while it ran.
                self.begin_more_worlds();
            }
            if let Some(stopped) = self.exchange(listener) {
                return stopped;
            }
            if self.frontier.is_empty() && self.is_team_finished() {
                return Stopped::Finished;
            }
            if stop.load(Ordering::Relaxed) {
                return Stopped::Asked;
            }
            self.mind_closing(listener);
            if let Some(limit) = self.limit_reached() {
                self.note_limit(limit);
                return Stopped::Limit(limit);
            }
            if !self.frontier.is_empty() && !self.enforce_memory_limit() {
                return self.stopped_by_memory(stop);
            }
            self.tick(listener);
            if self.frontier.is_empty() {
                continue;
            }
            self.renew_distances();
            let stopped = match self.is_world() {
                true => self.run_world(listener),
                false => self.run_program(listener),
            };
            if let Some(stopped) = stopped {
                return stopped;
            }
        }
    }

    /// Calls the listener's tick, and pauses the other workers meanwhile if it writes a checkpoint.
    fn tick(&mut self, listener: &mut dyn Listener) {
        let is_held = self.member.is_some() && listener.is_saving_due();
        if is_held && !self.hold_team(listener) {
            return;
        }
        listener.tick(self);
        if is_held {
            self.release_team();
        }
    }

    /// Returns why a search stops that uses too much memory. It may be that spilling was cut short,
    /// because the time is over or the user asked the search to stop.
    fn stopped_by_memory(&mut self, stop: &AtomicBool) -> Stopped {
        if stop.load(Ordering::Relaxed) {
            return Stopped::Asked;
        }
        let limit = self.limit_reached().unwrap_or("max-memory");
        self.note_limit(limit);
        Stopped::Limit(limit)
    }

    /// Records a limit that was reached.
    pub(crate) fn note_limit(&mut self, limit: &'static str) {
        if !self.limits_hit.contains(&limit) {
            self.limits_hit.push(limit);
        }
    }

    /// Records a limit that all parts of a search have reached together.
    pub fn note_limit_of_all(&mut self, limit: &'static str) {
        self.note_limit(limit);
    }

    /// Sets other limits. A search that has stopped at its limit on paths or forks can go on: what
    /// it had left is still pending.
    pub fn set_limits(&mut self, limits: Limits) {
        self.config.limits = limits;
        let goes_on = |limit: &&str| !["max-paths", "max-forks"].contains(limit);
        self.limits_hit.retain(goes_on);
    }

    /// Why a search with an empty frontier stops.
    pub fn stopped_by_virtual_time(&self) -> Stopped {
        match self.limits_hit.contains(&VIRTUAL_TIME) {
            true => Stopped::Limit(VIRTUAL_TIME),
            false => Stopped::Finished,
        }
    }

    /// Records a warning for the user, once.
    pub(crate) fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Records that a state has executed new code, for searchers and other workers.
    pub(crate) fn note_coverage(&mut self, state: &mut State) {
        if !std::mem::take(&mut self.worker.coverage.grew) {
            return;
        }
        self.distances_stale = true;
        if let Some(member) = &mut self.member {
            member.has_grown = true;
        }
        state.covered_new = true;
        state.since_new = 0;
    }

    /// Takes a state out of the frontier; rematerialises it if it was spilled.
    pub(crate) fn take(&mut self, id: StateId) -> Option<Box<State>> {
        match self.frontier.take(id)? {
            Stored::Live(state) => Some(state),
            Stored::Spilled(spilled) if self.is_world() => match self.rematerialise(&spilled) {
                Ok(mut state) => {
                    if self.settle(&mut state.path) {
                        return Some(state);
                    }
                    self.drop_contradictory(id);
                    None
                }
                Err(error) => {
                    self.note_lost_state(spilled.at, &error);
                    self.cut_worlds_with(id);
                    None
                }
            },
            Stored::Spilled(spilled) => match self.spill.as_ref()?.get(spilled.at) {
                Ok(trace) => Some(Box::new(State::starting(Path::following(Arc::new(trace))))),
                Err(error) => {
                    self.note_lost_state(spilled.at, &error.to_string());
                    None
                }
            },
            Stored::Running => None,
        }
    }

    /// Records that a spilled state cannot be read, and names its position in the file.
    pub(crate) fn note_lost_state(&mut self, at: SpillId, error: &str) {
        self.named_losses += 1;
        if self.named_losses > MOST_NAMED_LOSSES {
            self.warn("more spilled states are lost: the file of states is damaged".to_owned());
            return self.note_limit(LOST);
        }
        let forks = at.halvings;
        let place = self.place_of_spilled(at.place());
        self.note_lost(
            1,
            &format!("{error} (the state at {place}, after {forks} forks)"),
        );
    }

    /// Records that a list of spilled states cannot be read.
    pub(crate) fn note_lost_bundle(&mut self, bundle: &Bundle, error: &str) {
        let place = self.place_of_spilled(bundle.place());
        let error = format!("{error} (the list at {place})");
        self.note_lost(u64::from(bundle.count), &error);
    }

    /// Describes a position in a file of states.
    fn place_of_spilled(&self, (number, offset): (u16, u64)) -> String {
        let older = usize::from(number).checked_sub(1);
        let file = older.and_then(|at| self.older_files.get(at));
        let name = file.map_or("spill".into(), |file| file.display().to_string());
        format!("byte {offset} of {name}")
    }

    /// Records that spilled states cannot be read. Their weight never becomes
    /// finished, so the run is not complete.
    pub(crate) fn note_lost(&mut self, states: u64, error: &str) {
        self.warn(match states {
            1 => format!("a spilled state is lost: {error}"),
            _ => format!("{states} spilled states are lost: {error}"),
        });
        self.note_limit(LOST);
    }

    /// Returns whether the search has to stop because of its time limit.
    pub(crate) fn is_late(&self) -> bool {
        let deadline = self.deadline();
        deadline.is_some_and(|end| self.config.clock.now() >= end)
    }

    /// Returns whether the run ends, at its deadline or on request: unanswered queries then stay
    /// open.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_late() || self.worker.solver.is_interrupted()
    }

    pub(crate) fn out_of_forks(&self) -> bool {
        self.is_at_limit(Counted::Forks)
    }

    /// Returns the number of ended paths, with or without findings.
    pub(crate) fn paths_ended(&self) -> u64 {
        self.statistics.paths_completed + self.statistics.paths_partial
    }

    /// Returns whether a path has more forks than the limit.
    pub(crate) fn is_over_depth(&self, state: &State) -> bool {
        let limit = self.config.limits.max_depth;
        limit.is_some_and(|limit| state.path.depth > limit)
    }

    /// Returns the properties by which searchers order a state.
    pub(crate) fn info(&self, state: &State) -> StateInfo {
        let distance = state.host.as_ref().map_or(0, |host| {
            let frames = host.thread().frames.iter().rev();
            let frames = frames.map(|frame| (frame.function, frame.pc));
            self.distances.of_stack(host.image(), frames)
        });
        let net = state.net.as_ref();
        let faults = net.map_or(0, |net| net.sim.counters.total_used());
        StateInfo {
            depth: state.path.depth,
            distance,
            since_new: state.since_new,
            faults: state.path.faults + faults,
            preemptions: state.path.preemptions,
        }
    }

    /// Computes the distances to uncovered code again, if coverage has grown and enough was
    /// executed.
    fn renew_distances(&mut self) {
        // Every renewal walks the whole program, so it is not done for each new segment.
        let executed = self.statistics.instructions;
        let since = executed.saturating_sub(self.instructions_at_renewal);
        if self.distances_stale && (since > 1_000_000 || self.instructions_at_renewal == 0) {
            let mut covered = self.worker.coverage.segments.clone();
            for (mark, known) in covered.iter_mut().zip(&self.covered_elsewhere) {
                *mark |= known;
            }
            self.distances.renew(&covered);
            self.distances_stale = false;
            self.instructions_at_renewal = executed.max(1);
        }
    }

    pub(crate) fn host(&self, host: HostIndex) -> &WorldHost {
        &self.config.hosts[host.index()]
    }

    /// Takes the counters, to report them to the lead, and resets them.
    pub(crate) fn take_statistics(&mut self) -> Statistics {
        let executed = self.statistics.instructions;
        // Only the distance from it counts; 0 would mean that there was no renewal yet.
        let renewed = self.instructions_at_renewal;
        self.instructions_at_renewal = renewed.saturating_sub(executed).max(renewed.min(1));
        std::mem::take(&mut self.statistics)
    }

    /// Replaces the index of findings by one that other workers share.
    pub(crate) fn share_findings(&mut self, findings: FindingIndex) {
        self.findings = findings;
    }

    /// Returns the counters of the search.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the counters of the search, to continue those of an earlier run.
    pub fn statistics_mut(&mut self) -> &mut Statistics {
        &mut self.statistics
    }

    /// Returns the counters of all solvers of the team.
    pub fn solver_statistics(&self) -> SolverStatistics {
        let mut all = self.worker.solver.statistics().clone();
        all.add(&self.others_solver);
        all
    }

    /// Returns the source lines whose queries took longest, at most `most`, longest first.
    pub fn solver_lines(&self, most: usize) -> Vec<SolverLine> {
        solver_lines(self.images(), &self.solver_statistics(), most)
    }

    /// Returns the coverage of the search.
    pub fn coverage(&self) -> &Coverage {
        &self.worker.coverage
    }

    /// Returns the coverage of the search, to continue that of an earlier run.
    pub fn coverage_mut(&mut self) -> &mut Coverage {
        &mut self.worker.coverage
    }

    /// Records what searches elsewhere have covered, as one mark for each segment. It only guides
    /// searchers: results, tests and the coverage of this search do not depend on it.
    pub fn know_covered(&mut self, marks: &[u8]) {
        let known = &mut self.covered_elsewhere;
        known.resize(self.worker.coverage.segments.len(), 0);
        let mut is_new = false;
        for (known, mark) in known.iter_mut().zip(marks) {
            is_new |= *mark != 0 && *known == 0;
            *known |= u8::from(*mark != 0);
        }
        if is_new {
            // New coverage arrives rarely, so distances are renewed at once.
            self.distances_stale = true;
            self.instructions_at_renewal = 0;
        }
    }

    /// Returns the findings so far.
    pub fn findings(&self) -> &FindingIndex {
        &self.findings
    }

    /// Returns the index of findings, so that findings of an earlier run are not reported again.
    pub fn findings_mut(&mut self) -> &mut FindingIndex {
        &mut self.findings
    }

    /// Returns the limits that were reached.
    pub fn limits_hit(&self) -> &[&'static str] {
        &self.limits_hit
    }

    /// Returns the warnings for the user.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the number of unexplored states, also of other workers.
    pub fn states(&self) -> usize {
        let elsewhere = self.member.as_ref().map_or(0, Member::elsewhere);
        self.frontier.len() + self.in_backlog + elsewhere
    }

    /// Returns the number of states that are in the spill file, because memory is short.
    pub fn spilled_states(&self) -> usize {
        self.frontier.spilled() + self.in_backlog
    }

    /// Returns the counters of worlds.
    pub fn world_statistics(&self) -> &WorldStatistics {
        &self.world.counted
    }

    /// Returns the configuration of the search.
    pub fn config(&self) -> &ExplorerConfig {
        &self.config
    }

    /// Returns the programs.
    pub fn images(&self) -> &'a [Image] {
        self.worker.images
    }
}
