//! One worker: picks states, runs them, forks them, and accounts for every path.

use everett_expr::{Arena, EvalScratch};
use everett_linux::{Ending, Host, HostConfig, HostExit, Stream};
use everett_solver::{Solver, SolverConfig, SolverError, SolverStatistics, Verdict};
use everett_vm::{
    Bug, BugKind, Coverage, Image, Interrupt, StackTable, Surroundings, VmOptions, leak_finding,
    leaked_blocks,
};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::distance::Distances;
use crate::finding::{Finding, FindingIndex, PathEnd, PathEnding};
use crate::frontier::{Frontier, StateId, StateInfo, Stored};
use crate::oracle::{Fork, PathOracle};
use crate::path::{Answer, Path};
use crate::random::Random;
use crate::search::{Searcher, UnknownSearcher, searcher};
use crate::shelf::Shelf;
use crate::source::{describe, principal};
use crate::state::State;
use crate::trace::{Trace, TraceChoice, TraceEnd, digest};
use crate::weight::{Weight, WeightSum};

/// Where the search stops.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Time for the whole run.
    pub max_time: Option<Duration>,
    /// Memory of the process; over it states are put away.
    pub max_memory: Option<u64>,
    /// Paths that end.
    pub max_paths: Option<u64>,
    /// Forks of the whole run.
    pub max_forks: Option<u64>,
    /// Forks along one path; a deeper one is cut off.
    pub max_depth: Option<u32>,
    /// Instructions on one path; more is a hang.
    pub max_instructions: Option<u64>,
}

/// What the search is told.
#[derive(Clone)]
pub struct ExplorerConfig {
    /// What the host is started with.
    pub host: HostConfig,
    /// Settings of the vm.
    pub vm: VmOptions,
    /// Settings of the solver.
    pub solver: SolverConfig,
    /// Searchers that take turns.
    pub search: Vec<String>,
    /// Instructions before another state is picked.
    pub batch_instructions: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Where the search stops.
    pub limits: Limits,
    /// Make a trace for every path, not only for those that cover something new.
    pub all_tests: bool,
    /// Report every path that ends in a finding, not only the first at a place.
    pub all_findings: bool,
    /// Report memory that nobody can free any more at exit.
    pub check_leaks: bool,
    /// Keep what paths write.
    pub keep_output: bool,
    /// Time since the start.
    pub clock: fn() -> Duration,
    /// Memory that the process takes.
    pub memory_used: fn() -> u64,
    /// File for states that are put away.
    pub shelf: Option<PathBuf>,
}

/// Why the search could not start.
#[derive(Debug, thiserror::Error)]
pub enum ExplorerError {
    /// Of the searchers.
    #[error(transparent)]
    Searcher(#[from] UnknownSearcher),
    /// Of the solver.
    #[error(transparent)]
    Solver(#[from] SolverError),
    /// Of the shelf.
    #[error("states cannot be put away: {0}")]
    Shelf(#[from] io::Error),
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Instructions executed, without those of following traces.
    pub instructions: u64,
    /// Instructions executed to take states up again.
    pub replayed: u64,
    /// Forks.
    pub forks: u64,
    /// Paths that the program ended, well or badly.
    pub paths_completed: u64,
    /// Paths that ended otherwise.
    pub paths_partial: u64,
    /// Most states at a time.
    pub states_peak: u64,
    /// States put away.
    pub put_away: u64,
    /// Weight of paths that ended.
    pub finished: WeightSum,
    /// Weight of paths that were given up.
    pub unknown: WeightSum,
}

/// Told while the search goes on.
pub trait Listener {
    /// A path ended.
    fn path(&mut self, end: &PathEnd);
    /// Something wrong was found, for the first time at its place.
    fn finding(&mut self, finding: &Finding);
    /// Called often; shows progress when it thinks fit.
    fn tick(&mut self, explorer: &Explorer<'_>);
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

/// The finding for memory that nobody can free any more.
fn leak(arena: &Arena, host: &Host) -> Option<Bug> {
    host.processes().iter().find_map(|process| {
        let threads: Vec<_> = process.tasks.iter().map(|task| &task.thread).collect();
        leak_finding(&leaked_blocks(&process.memory, &threads, arena))
    })
}

/// One worker.
pub struct Explorer<'a> {
    image: &'a Image,
    config: ExplorerConfig,
    arena: Arena,
    solver: Solver,
    stacks: StackTable,
    coverage: Coverage,
    scratch: EvalScratch,
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
    ticks: u64,
}

impl<'a> Explorer<'a> {
    /// A worker at the start of the search, or with the states that these traces lead to.
    pub fn new(
        image: &'a Image,
        config: ExplorerConfig,
        pending: Option<Vec<Trace>>,
    ) -> Result<Explorer<'a>, ExplorerError> {
        let program = image.program();
        let mut explorer = Explorer {
            image,
            arena: Arena::new(),
            solver: Solver::new(config.solver.clone())?,
            stacks: StackTable::default(),
            coverage: Coverage::new(program.segments.len()),
            scratch: EvalScratch::new(),
            frontier: Frontier::default(),
            searcher: searcher(&config.search)?,
            random: Random::new(config.seed),
            distances: Distances::new(program),
            distances_stale: true,
            instructions_at_renewal: 0,
            findings: FindingIndex::default(),
            statistics: Statistics::default(),
            limits_hit: Vec::new(),
            warnings: Vec::new(),
            shelf: config.shelf.as_deref().map(Shelf::create).transpose()?,
            ticks: 0,
            config,
        };
        let starts = pending.unwrap_or_else(|| vec![Trace::default()]);
        for trace in starts {
            explorer.add_trace(trace)?;
        }
        Ok(explorer)
    }

    fn add_trace(&mut self, trace: Trace) -> Result<(), ExplorerError> {
        let is_start = trace == Trace::default();
        let stored = match &mut self.shelf {
            Some(shelf) if !is_start => Stored::Away(shelf.put(&trace)?),
            _ if is_start => Stored::Live(Box::new(State::starting(Path::default()))),
            _ => Stored::Live(Box::new(State::starting(Path::following(Arc::new(trace))))),
        };
        let id = self.frontier.add_root(stored, StateInfo::default());
        self.searcher.added(&self.frontier, id);
        Ok(())
    }

    /// Explores until nothing is left, a limit is reached, or `stop` is set.
    pub fn run(&mut self, stop: &AtomicBool, listener: &mut dyn Listener) -> Stopped {
        while !self.frontier.is_empty() {
            if stop.load(Ordering::Relaxed) {
                return Stopped::Asked;
            }
            if let Some(limit) = self.limit_reached() {
                self.note_limit(limit);
                return Stopped::Limit(limit);
            }
            self.mind_memory();
            listener.tick(self);
            self.renew_distances();
            let Some(id) = self.searcher.select(&self.frontier, &mut self.random) else {
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

    fn limit_reached(&self) -> Option<&'static str> {
        let limits = &self.config.limits;
        let paths = self.statistics.paths_completed + self.statistics.paths_partial;
        if limits
            .max_time
            .is_some_and(|limit| (self.config.clock)() >= limit)
        {
            Some("max-time")
        } else if limits.max_paths.is_some_and(|limit| paths >= limit) {
            Some("max-paths")
        } else if limits
            .max_forks
            .is_some_and(|limit| self.statistics.forks >= limit)
        {
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
            Stored::Away(place) => match self.shelf.as_mut()?.get(place) {
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
        let mut target = start + self.config.batch_instructions;
        if let Some(limit) = self.config.limits.max_instructions {
            target = target.min(limit.max(start + 1));
        }
        loop {
            let follows = state.path.follow.is_some();
            let before = state.instructions();
            let (exit, fork) = self.run_slice(&mut state, target.saturating_sub(before).max(1));
            let executed = state.instructions() - before;
            if follows {
                self.statistics.replayed += executed;
                // Taking a state up again is no part of its batch.
                target = target.max(state.instructions() + self.config.batch_instructions);
            } else {
                self.statistics.instructions += executed;
            }
            state.since_new += executed;
            if self.coverage.grew {
                self.coverage.grew = false;
                self.distances_stale = true;
                state.covered_new = true;
                state.since_new = 0;
            }
            match (exit, fork) {
                (HostExit::Suspended, Some(fork)) => {
                    if let Some(ending) = self.fork(id, &mut state, fork, listener) {
                        return self.end(id, state, ending, listener);
                    }
                    if self.is_over_depth(&state) {
                        self.note_limit("max-depth");
                        return self.cut(id, state, "max-depth", listener);
                    }
                }
                (HostExit::Ended(ending), _) => return self.end(id, state, ending, listener),
                _ => {}
            }
            if let Some(message) = state.path.diverged.take() {
                self.warnings
                    .push(format!("a trace could not be followed: {message}"));
                return self.cut(id, state, "diverged", listener);
            }
            if self.hangs(&state) {
                let message = format!("over {} instructions on one path", state.instructions());
                let bug = Bug::new(BugKind::Hang, message);
                return self.end(id, state, Ending::Bug(Box::new(bug)), listener);
            }
            if state.instructions() >= target || self.out_of_time() {
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
        self.ticks % 64 == 0
            && self
                .config
                .limits
                .max_time
                .is_some_and(|limit| (self.config.clock)() >= limit)
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
        let mut oracle = PathOracle::new(&mut state.path, &mut self.solver, &mut self.scratch);
        let mut around = Surroundings {
            image: self.image,
            arena: &mut self.arena,
            oracle: &mut oracle,
            stacks: &mut self.stacks,
            coverage: &mut self.coverage,
            options: &self.config.vm,
        };
        let exit = match &mut state.host {
            Some(host) => host.run(around, budget),
            None => match Host::boot(&self.config.host, &mut around) {
                Ok(host) => {
                    around.oracle.commit();
                    state.host = Some(host);
                    HostExit::Budget
                }
                Err(Interrupt::Suspend) => HostExit::Suspended,
                Err(Interrupt::Bug(bug)) => HostExit::Ended(Ending::Bug(bug)),
                Err(_) => HostExit::Ended(Ending::EndPath),
            },
        };
        (exit, oracle.fork)
    }

    /// Splits a state at a question with several answers. `Some` if the state itself cannot go on.
    fn fork(
        &mut self,
        id: StateId,
        state: &mut State,
        fork: Fork,
        listener: &mut dyn Listener,
    ) -> Option<Ending> {
        self.statistics.forks += 1;
        state.path.weight = state.path.weight.half();
        state.path.depth += 1;
        match fork {
            Fork::Branch {
                condition,
                side,
                other,
            } => {
                let negated = self.arena.not(condition);
                let (here, there) = if side {
                    (condition, negated)
                } else {
                    (negated, condition)
                };
                match other {
                    Ok(model) => {
                        let mut child = state.clone();
                        child.path.model = model;
                        child.path.constrain(&mut self.arena, there);
                        child.path.answer(Answer::Bool(!side));
                        self.add_child(id, child);
                    }
                    Err(reason) => self.give_up(state, &reason, listener),
                }
                state.path.constrain(&mut self.arena, here);
                state.path.answer(Answer::Bool(side));
            }
            Fork::Value { term, value, other } => {
                let width = self.arena.width(term);
                let constant = self.arena.constant(width, value);
                let here = self.arena.eq(term, constant);
                let there = self.arena.not(here);
                match other {
                    Ok(model) => {
                        let mut child = state.clone();
                        child.path.model = model;
                        child.path.constrain(&mut self.arena, there);
                        child.path.excluded.push(value);
                        self.add_child(id, child);
                    }
                    Err(reason) => self.give_up(state, &reason, listener),
                }
                state.path.constrain(&mut self.arena, here);
                state.path.answer(Answer::Value(value));
            }
            Fork::Choice {
                site,
                alternatives,
                picked,
            } => {
                let mut child = state.clone();
                child.path.excluded.push(u64::from(picked));
                self.add_child(id, child);
                let choice = TraceChoice {
                    site,
                    alternatives,
                    picked,
                };
                Arc::make_mut(&mut state.path.choices).push(choice);
                state.path.answer(Answer::Choice(picked));
            }
        }
        None
    }

    fn add_child(&mut self, parent: StateId, mut child: State) {
        child.covered_new = false;
        let info = self.info(&child);
        let id = self
            .frontier
            .add_child(parent, Stored::Live(Box::new(child)), info);
        self.searcher.added(&self.frontier, id);
        self.statistics.states_peak = self.statistics.states_peak.max(self.frontier.len() as u64);
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
            state.path.pending_trace(),
            [Vec::new(), Vec::new()],
            listener,
        );
    }

    fn info(&self, state: &State) -> StateInfo {
        let count = |prefix: &str| {
            let choices = state.path.choices.iter();
            choices
                .filter(|choice| choice.picked > 0 && choice.site.starts_with(prefix))
                .count()
        };
        let distance = state.host.as_ref().map_or(0, |host| {
            self.distances.of_stack(
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
            faults: count("fault:") as u32,
            preemptions: count("preempt:") as u32,
        }
    }

    fn renew_distances(&mut self) {
        // Every renewal walks the whole program, so it is not done for each new segment.
        let since = self.statistics.instructions - self.instructions_at_renewal;
        if self.distances_stale && (since > 1_000_000 || self.instructions_at_renewal == 0) {
            self.distances.renew(&self.coverage.segments);
            self.distances_stale = false;
            self.instructions_at_renewal = self.statistics.instructions.max(1);
        }
    }

    fn cut(
        &mut self,
        id: StateId,
        state: Box<State>,
        why: &'static str,
        listener: &mut dyn Listener,
    ) {
        self.statistics.unknown.add(state.path.weight);
        self.statistics.paths_partial += 1;
        self.close(id, &state, PathEnding::Cut(why), None, listener);
    }

    /// A path has ended.
    fn end(
        &mut self,
        id: StateId,
        mut state: Box<State>,
        ending: Ending,
        listener: &mut dyn Listener,
    ) {
        let ending = self.check_leaks(&state, ending);
        let is_own_limit = matches!(&ending, Ending::Bug(bug) if bug.kind.is_own_limit());
        let is_silent = matches!(&ending, Ending::EndPath);
        if is_own_limit {
            self.statistics.unknown.add(state.path.weight);
            self.note_limit("unsupported");
        } else {
            self.statistics.finished.add(state.path.weight);
        }
        if is_own_limit || is_silent {
            self.statistics.paths_partial += 1;
        } else {
            self.statistics.paths_completed += 1;
        }
        if let Some(host) = &state.host {
            for warning in host.warnings() {
                let warning = warning.to_string();
                if !self.warnings.contains(&warning) {
                    self.warnings.push(warning);
                }
            }
        }
        let bug = match ending {
            Ending::Bug(bug) => bug,
            Ending::Exit(status) => {
                let wanted = self.wants_test(&state);
                if wanted {
                    self.settle_preferences(&mut state.path);
                }
                let status = match status.term {
                    None => status.bits,
                    Some(term) => self.arena.eval(term, &state.path.model, &mut self.scratch),
                };
                let trace = wanted.then(|| state.path.trace_under(&state.path.model));
                return self.close(id, &state, PathEnding::Exit(status as i32), trace, listener);
            }
            Ending::Signal(signal) => {
                let trace = Some(state.path.trace_under(&state.path.model));
                return self.close(id, &state, PathEnding::Signal(signal), trace, listener);
            }
            Ending::EndPath => return self.close(id, &state, PathEnding::Silent, None, listener),
        };
        self.settle_preferences(&mut state.path);
        let trace = state.path.trace_under(&state.path.model);
        let output = self.output(&state);
        let first = self.report(&state, &bug, trace.clone(), output, listener);
        let trace = (first || self.config.all_tests || self.config.all_findings).then_some(trace);
        self.close(id, &state, PathEnding::Bug(bug.kind), trace, listener);
    }

    fn wants_test(&self, state: &State) -> bool {
        self.config.all_tests || state.covered_new
    }

    fn check_leaks(&self, state: &State, ending: Ending) -> Ending {
        let Ending::Exit(_) = &ending else {
            return ending;
        };
        if !self.config.check_leaks {
            return ending;
        }
        match state.host.as_ref().and_then(|host| leak(&self.arena, host)) {
            Some(bug) => Ending::Bug(Box::new(bug)),
            None => ending,
        }
    }

    /// Tells of a finding if it is the first at its place.
    fn report(
        &mut self,
        state: &State,
        bug: &Bug,
        trace: Trace,
        output: [Vec<u8>; 2],
        listener: &mut dyn Listener,
    ) -> bool {
        let program = self.image.program();
        let host = state.host.as_ref();
        let sites = host.map_or_else(Vec::new, Host::stack);
        let stack = describe(program, &sites);
        let place = principal(&stack).cloned();
        let key = match &place {
            Some(place) => (
                bug.kind,
                place.file.clone(),
                place.line,
                place.function.clone(),
            ),
            None => (bug.kind, String::new(), 0, String::new()),
        };
        let first = self.findings.count(key);
        if !first && !self.config.all_findings {
            return false;
        }
        let of = |id: Option<everett_vm::StackId>| {
            id.map_or_else(Vec::new, |id| describe(program, &self.stacks.sites(id)))
        };
        let finding = Finding {
            kind: bug.kind,
            message: bug.message.clone(),
            allocated: of(bug.allocated),
            freed: of(bug.freed),
            stack,
            trace,
            clock_ns: host.map_or(0, Host::clock_ns),
            instructions: state.instructions(),
            output,
        };
        listener.finding(&finding);
        first
    }

    /// Changes the model so that as many preferences hold as can, in their order.
    fn settle_preferences(&mut self, path: &mut Path) {
        let preferences = path.preferences.clone();
        let mut constraints = path.constraints.clone();
        for preference in preferences.iter() {
            let holds = self.arena.eval(*preference, &path.model, &mut self.scratch) != 0;
            if !holds {
                match self
                    .solver
                    .check(&mut self.arena, &constraints, &path.model, *preference)
                {
                    Verdict::Sat(model) => path.model = model,
                    _ => continue,
                }
            }
            constraints.add(&mut self.arena, *preference);
        }
    }

    fn output(&mut self, state: &State) -> [Vec<u8>; 2] {
        let Some(host) = &state.host else {
            return [Vec::new(), Vec::new()];
        };
        [Stream::Stdout, Stream::Stderr].map(|stream| {
            host.output(stream)
                .evaluate(&mut self.arena, &state.path.model)
        })
    }

    fn close(
        &mut self,
        id: StateId,
        state: &State,
        ending: PathEnding,
        mut trace: Option<Trace>,
        listener: &mut dyn Listener,
    ) {
        self.frontier.remove(id);
        self.searcher.removed(id);
        if let Some(trace) = &mut trace {
            trace.end = Some(self.trace_end(state, &ending));
        }
        let output = if self.config.keep_output {
            self.output(state)
        } else {
            [Vec::new(), Vec::new()]
        };
        listener.path(&PathEnd {
            ending,
            trace,
            covered_new: state.covered_new,
            depth: state.path.depth,
            instructions: state.instructions(),
            output,
        });
    }

    fn trace_end(&mut self, state: &State, ending: &PathEnding) -> TraceEnd {
        let output = self.output(state).map(|bytes| digest(&bytes));
        let mut end = TraceEnd {
            output,
            ..TraceEnd::default()
        };
        match ending {
            PathEnding::Exit(status) => end.exit = Some(*status),
            PathEnding::Signal(signal) => end.signal = Some(*signal),
            PathEnding::Bug(kind) => end.finding = Some(kind.name().to_owned()),
            PathEnding::Silent | PathEnding::Cut(_) => {}
        }
        end
    }

    /// Near the memory limit, puts states away and lets go of terms that nothing uses any more.
    fn mind_memory(&mut self) {
        self.ticks += 1;
        let Some(limit) = self.config.limits.max_memory else {
            return;
        };
        if self.ticks % 256 != 0 || (self.config.memory_used)() < limit / 10 * 8 {
            return;
        }
        self.note_limit("max-memory");
        let Some(shelf) = &mut self.shelf else { return };
        let live: Vec<StateId> = self
            .frontier
            .iter()
            .filter(|(_, stored)| matches!(stored, Stored::Live(_)))
            .map(|(id, _)| id)
            .collect();
        for id in live.iter().skip(live.len() / 4) {
            let Some(Stored::Live(state)) = self.frontier.take(*id) else {
                continue;
            };
            match shelf.put(&state.path.pending_trace()) {
                Ok(place) => {
                    self.frontier.put(*id, Stored::Away(place));
                    self.statistics.put_away += 1;
                }
                Err(error) => {
                    self.warnings
                        .push(format!("states cannot be put away: {error}"));
                    self.frontier.put(*id, Stored::Live(state));
                    break;
                }
            }
        }
        self.sweep();
    }

    /// Lets go of terms that no state uses.
    fn sweep(&mut self) {
        let mut terms = Vec::new();
        for (_, stored) in self.frontier.iter() {
            let Stored::Live(state) = stored else {
                continue;
            };
            terms.extend(state.path.constraints.iter());
            terms.extend(state.path.preferences.iter().copied());
            if let Some(host) = &state.host {
                host.for_each_term(&mut |term| terms.push(term));
            }
        }
        self.solver.on_sweep();
        self.arena.sweep(terms.into_iter());
    }

    /// Traces of all states that are still to be explored.
    pub fn pending(&mut self) -> Vec<Trace> {
        let mut traces = Vec::new();
        let mut away = Vec::new();
        for (_, stored) in self.frontier.iter() {
            match stored {
                Stored::Live(state) => traces.push(state.path.pending_trace()),
                Stored::Away(place) => away.push(*place),
                Stored::Running => {}
            }
        }
        for place in away {
            match self.shelf.as_mut().map(|shelf| shelf.get(place)) {
                Some(Ok(trace)) => traces.push(trace),
                _ => self
                    .warnings
                    .push("a state that was put away is lost".to_owned()),
            }
        }
        traces
    }

    /// The weight of all that is still to be explored.
    pub fn pending_weight(&mut self) -> WeightSum {
        let mut sum = WeightSum::default();
        for trace in self.pending() {
            let halvings = trace.pending.map_or(0, |pending| pending.halvings);
            sum.add(Weight { halvings });
        }
        sum
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
        self.solver.statistics()
    }

    /// What was executed.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// The same, for going on with an earlier run.
    pub fn coverage_mut(&mut self) -> &mut Coverage {
        &mut self.coverage
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

    /// States that are still to be explored.
    pub fn states(&self) -> usize {
        self.frontier.len()
    }

    /// The program.
    pub fn image(&self) -> &'a Image {
        self.image
    }
}
