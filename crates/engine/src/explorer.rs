//! One worker: picks states, runs them, forks them, and accounts for every path.

mod config;
mod endings;
mod upkeep;

use everett_expr::Arena;
use everett_linux::{Ending, Host, HostConfig, HostExit, Setup};
use everett_solver::{SolverConfig, SolverError, SolverStatistics, Verdict};
use everett_vm::{Bug, BugKind, Coverage, Image, VmOptions, leak_finding, leaked_blocks};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use upkeep::Closing;

pub use config::{ExplorerConfig, ExplorerError, Limits, Statistics};

use crate::distance::Distances;
use crate::finding::{Finding, FindingIndex, PathEnd, PathEnding, uncaught_signal};
use crate::frontier::{Frontier, StateId, StateInfo, Stored};
use crate::oracle::Fork;
use crate::path::{Path, Sharing};
use crate::random::Random;
use crate::search::{Searcher, UnknownSearcher, searcher};
use crate::shelf::{Bundle, Shelf, ShelfId};
use crate::state::State;
use crate::trace::Trace;
use crate::weight::{Weight, WeightSum};
use crate::worker::{Other, Worker};

/// Told while the search goes on.
pub trait Listener {
    /// A path ended.
    fn path(&mut self, end: &PathEnd);
    /// Something wrong was found, for the first time at its place.
    fn finding(&mut self, finding: &Finding);
    /// A path has set itself up as a host of a world that is to be made; this leads to where it stands.
    fn set_up(&mut self, _setup: &Setup, _trace: &Trace) {}
    /// Called often; shows progress when it thinks fit.
    fn tick(&mut self, explorer: &Explorer<'_>);
    /// How long it would take to write down what was found if the search stopped now; the time limit includes it.
    fn closing_time(&mut self, _explorer: &Explorer<'_>) -> Duration {
        Duration::ZERO
    }
    /// Time that is wanted after the search for what was found; the time limit includes it.
    fn time_after(&self) -> Duration {
        Duration::ZERO
    }
}

/// A batch ends after so many forks, for there is no look at the memory in use before.
const FORKS_A_BATCH: u64 = 256;
/// Part of the memory that the shelf may take for itself.
const SHELF_PART: u64 = 64;

/// Where a search begins.
#[derive(Clone, Debug)]
pub enum Start {
    /// At the start of the program.
    Beginning,
    /// Where this trace leads.
    Trace(Trace),
    /// The same, but what the trace does not say goes as usual: inputs are found by their names, choices by what is
    /// asked. Nothing is asked of the solver.
    Loosely(Trace),
    /// With the states on the shelf that an earlier search left.
    Left(Vec<Bundle>),
}

/// Why the search stopped.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// Nothing is left.
    Finished,
    /// At this limit.
    Limit(&'static str),
    /// It was asked to.
    Asked,
}

impl Stopped {
    /// As summaries have it.
    pub fn name(&self) -> &'static str {
        match self {
            Stopped::Finished => "finished",
            Stopped::Limit(limit) => limit,
            Stopped::Asked => "asked",
        }
    }
}

/// One worker.
pub struct Explorer<'a> {
    config: ExplorerConfig,
    worker: Worker<'a>,
    frontier: Frontier,
    searcher: Box<dyn Searcher>,
    random: Random,
    distances: Distances,
    distances_stale: bool,
    instructions_at_renewal: u64,
    findings: FindingIndex,
    statistics: Statistics,
    limits_hit: Vec<&'static str>,
    warnings: Vec<String>,
    shelf: Option<Shelf>,
    /// States that have no place in the frontier either.
    backlog: VecDeque<Bundle>,
    /// How many.
    in_backlog: usize,
    /// Looks at the clock.
    ticks: u64,
    closing: Closing,
    /// Rounds until memory is looked at again.
    rounds_left: u64,
    /// Forks until it is looked at even if there are rounds left.
    forks_left: u64,
    /// Memory that is in use although states were put away.
    memory_floor: u64,
}

impl<'a> Explorer<'a> {
    /// A worker that has done nothing yet.
    pub fn new(
        images: &'a [Image],
        config: ExplorerConfig,
        start: Start,
    ) -> Result<Explorer<'a>, ExplorerError> {
        let shelf_memory = config.limits.max_memory.unwrap_or(1 << 30) / SHELF_PART;
        let mut explorer = Explorer {
            worker: Worker::new(
                images,
                config.vm.clone(),
                SolverConfig {
                    deadline: config.limits.max_time,
                    ..config.solver.clone()
                },
            )?,
            frontier: Frontier::default(),
            searcher: searcher(&config.search)?,
            random: Random::new(config.seed),
            distances: Distances::new(images),
            distances_stale: true,
            instructions_at_renewal: 0,
            findings: FindingIndex::default(),
            statistics: Statistics::default(),
            limits_hit: Vec::new(),
            warnings: Vec::new(),
            backlog: VecDeque::new(),
            in_backlog: 0,
            shelf: match (config.shelf.as_deref(), &start) {
                (Some(path), Start::Left(_)) => Some(Shelf::open(path, shelf_memory)?),
                (Some(path), _) => Some(Shelf::create(path, shelf_memory)?),
                (None, _) => None,
            },
            ticks: 0,
            closing: Closing::default(),
            rounds_left: 0,
            forks_left: 0,
            memory_floor: 0,
            config,
        };
        match start {
            Start::Beginning => explorer.add_path(Path::default()),
            Start::Trace(trace) => explorer.add_path(Path::following(Arc::new(trace))),
            Start::Loosely(trace) => explorer.add_path(Path::following_loosely(Arc::new(trace))),
            Start::Left(bundles) => bundles.into_iter().for_each(|it| explorer.put_last(it)),
        }
        Ok(explorer)
    }

    fn add_path(&mut self, path: Path) {
        let state = Stored::Live(Box::new(State::starting(path)));
        let id = self.frontier.add_root(state, StateInfo::default());
        self.searcher.added(&self.frontier, id);
    }

    /// Explores until nothing is left, a limit is reached, or `stop` is set.
    pub fn run(&mut self, stop: &AtomicBool, listener: &mut dyn Listener) -> Stopped {
        loop {
            self.take_from_backlog();
            if self.frontier.is_empty() {
                break;
            }
            if stop.load(Ordering::Relaxed) {
                return Stopped::Asked;
            }
            self.mind_closing(listener);
            if let Some(limit) = self.limit_reached() {
                self.note_limit(limit);
                return Stopped::Limit(limit);
            }
            self.mind_memory();
            listener.tick(self);
            self.renew_distances();
            let Some(id) = self.select() else {
                break;
            };
            let Some(state) = self.take(id) else {
                self.frontier.remove(id);
                self.searcher.removed(id);
                continue;
            };
            self.execute(id, state, listener);
        }
        Stopped::Finished
    }

    /// The state to go on with. One that is put away has to be made again from the start, so it is passed over where there
    /// are others, unless little was spent on that.
    fn select(&mut self) -> Option<StateId> {
        /// Part of all instructions that may be spent.
        const PART: u64 = 20;
        const TRIES: u32 = 64;
        let spent = self.statistics.replayed > self.statistics.instructions / PART;
        let has_others = self.frontier.away() < self.frontier.len();
        let tries = if spent && has_others { TRIES } else { 1 };
        let mut picked = None;
        for _ in 0..tries {
            picked = self.searcher.select(&self.frontier, &mut self.random);
            let is_away = |id| matches!(self.frontier.get(id), Some(Stored::Away(_)));
            if !picked.is_some_and(is_away) {
                break;
            }
        }
        picked
    }

    fn limit_reached(&self) -> Option<&'static str> {
        let limits = &self.config.limits;
        let paths = self.statistics.paths_completed + self.statistics.paths_partial;
        if self.is_late() {
            Some("max-time")
        } else if limits.max_paths.is_some_and(|limit| paths >= limit) {
            Some("max-paths")
        } else if self.out_of_forks() {
            Some("max-forks")
        } else {
            None
        }
    }

    fn note_limit(&mut self, limit: &'static str) {
        if !self.limits_hit.contains(&limit) {
            self.limits_hit.push(limit);
        }
    }

    /// The state itself, made again if it was put away.
    fn take(&mut self, id: StateId) -> Option<Box<State>> {
        match self.frontier.take(id)? {
            Stored::Live(state) => Some(state),
            Stored::Away(place) => match self.shelf.as_ref()?.get(place) {
                Ok(trace) => Some(Box::new(State::starting(Path::following(Arc::new(trace))))),
                Err(error) => {
                    // The path is not forgotten: its weight never becomes finished, so the run is not complete.
                    self.warnings
                        .push(format!("a state that was put away is lost: {error}"));
                    self.note_limit("lost-state");
                    None
                }
            },
            Stored::Running => None,
        }
    }

    /// Runs one state for a batch.
    fn execute(&mut self, id: StateId, mut state: Box<State>, listener: &mut dyn Listener) {
        let start = state.instructions();
        let forks_before = self.statistics.forks;
        let mut target = start + self.config.batch_instructions;
        if let Some(limit) = self.config.limits.max_instructions {
            target = target.min(limit.max(start + 1));
        }
        loop {
            let follows = state.path.follow.is_some();
            let before = state.instructions();
            let (exit, fork) = self.run_slice(&mut state, target.saturating_sub(before).max(1));
            let after = state.instructions();
            let executed = after - before;
            let new = after.saturating_sub(before.max(state.path.counted));
            self.statistics.instructions += new;
            self.statistics.replayed += executed - new;
            if follows || before < state.path.counted {
                // Taking a state up again is no part of its batch.
                target = target.max(after + self.config.batch_instructions);
            }
            state.path.counted = state.path.counted.max(after);
            state.since_new += executed;
            if self.worker.coverage.grew {
                self.worker.coverage.grew = false;
                self.distances_stale = true;
                state.covered_new = true;
                state.since_new = 0;
            }
            match (exit, fork) {
                (HostExit::Suspended, Some(fork)) => {
                    self.fork(id, &mut state, fork, listener);
                    if self.is_over_depth(&state) {
                        self.note_limit("max-depth");
                        return self.cut(id, state, "max-depth", listener);
                    }
                }
                // The time is over and a question is open.
                (HostExit::Suspended, None) => break,
                (HostExit::Ended(ending), _) => return self.end(id, state, ending, listener),
                _ => {}
            }
            if let Some(message) = state.path.diverged.take() {
                self.warnings
                    .push(format!("a trace could not be followed: {message}"));
                return self.cut(id, state, "diverged", listener);
            }
            if self.hangs(&state) {
                let bug = state.hang();
                return self.end(id, state, Ending::Bug(Box::new(bug)), listener);
            }
            let forked = self.statistics.forks - forks_before >= FORKS_A_BATCH;
            if state.instructions() >= target || forked || self.out_of_time() || self.out_of_forks()
            {
                break;
            }
        }
        let info = self.info(&state);
        self.frontier.set_info(id, info);
        self.frontier.put(id, Stored::Live(state));
        self.searcher.updated(&self.frontier, id);
    }

    /// Looks at the clock now and then, so that states which fork all the time do not run past the limit.
    fn out_of_time(&mut self) -> bool {
        self.ticks += 1;
        self.ticks.is_multiple_of(64) && self.is_late()
    }

    fn is_late(&self) -> bool {
        let deadline = self.deadline();
        deadline.is_some_and(|end| self.config.clock.now() >= end)
    }

    fn out_of_forks(&self) -> bool {
        let limit = self.config.limits.max_forks;
        limit.is_some_and(|limit| self.statistics.forks >= limit)
    }

    fn hangs(&self, state: &State) -> bool {
        let limit = self.config.limits.max_instructions;
        limit.is_some_and(|limit| state.instructions() >= limit)
    }

    fn is_over_depth(&self, state: &State) -> bool {
        self.config
            .limits
            .max_depth
            .is_some_and(|limit| state.path.depth > limit)
    }

    fn run_slice(&mut self, state: &mut State, budget: u64) -> (HostExit, Option<Fork>) {
        let deadline = self.deadline().map(|end| (self.config.clock, end));
        self.worker
            .run(state, &self.config.host, None, budget, deadline)
    }

    /// Splits a state at a question with several answers.
    fn fork(&mut self, id: StateId, state: &mut State, fork: Fork, listener: &mut dyn Listener) {
        self.statistics.forks += 1;
        match self.worker.split(state, fork) {
            Other::State(child) => self.add_child(id, child),
            Other::Unknown(reason) => self.give_up(state, &reason, listener),
        }
    }

    fn add_child(&mut self, parent: StateId, mut child: Box<State>) {
        child.covered_new = false;
        let info = self.info(&child);
        let id = self.frontier.add_child(parent, Stored::Live(child), info);
        self.searcher.added(&self.frontier, id);
        self.forks_left = self.forks_left.saturating_sub(1);
        self.statistics.states_peak = self.statistics.states_peak.max(self.states() as u64);
    }

    /// The solver could not tell whether a side of a fork is possible: its weight is neither finished nor pending.
    fn give_up(&mut self, state: &State, reason: &str, listener: &mut dyn Listener) {
        self.statistics.unknown.add(state.path.weight);
        self.statistics.paths_partial += 1;
        self.note_limit("solver");
        let bug = Bug::new(
            BugKind::SolverGaveUp,
            format!("the solver gave up: {reason}"),
        );
        self.report(
            state,
            &bug,
            state.path.pending_trace(&mut Sharing::default()),
            [Vec::new(), Vec::new()],
            listener,
        );
    }

    fn info(&self, state: &State) -> StateInfo {
        let distance = state.host.as_ref().map_or(0, |host| {
            self.distances.of_stack(
                host.image(),
                host.thread()
                    .frames
                    .iter()
                    .rev()
                    .map(|frame| (frame.function, frame.pc)),
            )
        });
        StateInfo {
            depth: state.path.depth,
            distance,
            since_new: state.since_new,
            faults: state.path.faults,
            preemptions: state.path.preemptions,
        }
    }

    fn renew_distances(&mut self) {
        // Every renewal walks the whole program, so it is not done for each new segment.
        let since = self
            .statistics
            .instructions
            .saturating_sub(self.instructions_at_renewal);
        if self.distances_stale && (since > 1_000_000 || self.instructions_at_renewal == 0) {
            self.distances.renew(&self.worker.coverage.segments);
            self.distances_stale = false;
            self.instructions_at_renewal = self.statistics.instructions.max(1);
        }
    }

    /// What was counted.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The same, for going on with an earlier count.
    pub fn statistics_mut(&mut self) -> &mut Statistics {
        &mut self.statistics
    }

    /// What the solver counted.
    pub fn solver_statistics(&self) -> &SolverStatistics {
        self.worker.solver.statistics()
    }

    /// What was executed.
    pub fn coverage(&self) -> &Coverage {
        &self.worker.coverage
    }

    /// The same, for going on with an earlier run.
    pub fn coverage_mut(&mut self) -> &mut Coverage {
        &mut self.worker.coverage
    }

    /// What was found.
    pub fn findings(&self) -> &FindingIndex {
        &self.findings
    }

    /// The same, for not telling again what an earlier run told.
    pub fn findings_mut(&mut self) -> &mut FindingIndex {
        &mut self.findings
    }

    /// Limits that were reached.
    pub fn limits_hit(&self) -> &[&'static str] {
        &self.limits_hit
    }

    /// What the user should know.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// States that are still to be explored.
    pub fn states(&self) -> usize {
        self.frontier.len() + self.in_backlog
    }

    /// The programs.
    pub fn images(&self) -> &'a [Image] {
        self.worker.images
    }
}
