//! Explores a single program: a searcher picks a state, which runs for a batch of instructions.

use super::merging::Opened;
use super::*;

use crate::oracle::Fork;
use crate::source::describe;
use crate::statistics::FLOATS;
use crate::worker::{Other, RunFor};

/// KLEE's text about a fork beyond the share of its place.
const SKIPPED: &str = "skipping fork and concretizing condition (MaxStatic*Pct limit reached)";

/// What happens to a state after a slice of its batch.
enum AfterSlice {
    /// It continues its batch.
    Continues(Box<State>),
    /// It completes the instruction that forked, which ends its batch.
    Completes(Box<State>),
    /// Its batch is over.
    Stays(Box<State>),
    /// Its path has ended, or is cut off.
    Gone,
}

impl Explorer<'_> {
    /// Runs the state that the searcher picks for a batch. Returns why the search stops, if it
    /// does.
    pub(super) fn run_program(&mut self, listener: &mut dyn Listener) -> Option<Stopped> {
        let Some(id) = self.select() else {
            return Some(Stopped::Finished);
        };
        match self.take(id) {
            Some(state) => self.execute(id, state, listener),
            None => {
                self.frontier.remove(id);
                self.searcher.removed(id);
            }
        }
        None
    }

    /// Picks the next state. A spilled state must be rematerialised from the start, so it is passed
    /// over while there are others in memory, unless few instructions were spent on that so far.
    fn select(&mut self) -> Option<StateId> {
        /// Fraction of all instructions that may be spent on rematerialising states.
        const PART: u64 = 20;
        const TRIES: u32 = 64;
        while let Some(&id) = self.seeded.first() {
            let stored = self.frontier.get(id);
            if matches!(stored, Some(Stored::Live(state)) if !state.path.seeds.is_empty()) {
                return Some(id);
            }
            self.seeded.remove(&id);
        }
        let spent = self.statistics.replayed > self.statistics.instructions / PART;
        let has_others = self.frontier.spilled() < self.frontier.len();
        let tries = if spent && has_others { TRIES } else { 1 };
        let mut picked = None;
        for _ in 0..tries {
            picked = self.searcher.select(&self.frontier, &mut self.random);
            let is_spilled = |id| matches!(self.frontier.get(id), Some(Stored::Spilled(_)));
            if !picked.is_some_and(is_spilled) {
                break;
            }
        }
        picked
    }

    /// Runs one state for a batch.
    fn execute(&mut self, id: StateId, mut state: Box<State>, listener: &mut dyn Listener) {
        let start = state.instructions();
        // A state that another worker has begun may start again here.
        if self.config.seeds_apart && start == 0 && state.path.counted == 0 {
            let seeds = state.path.seeds.numbers();
            seeds.for_each(|number| listener.seed(number));
        }
        let forks_before = self.statistics.forks;
        let batch = self.config.batch_instructions;
        let batch = batch.min(self.instructions_left()).max(1);
        let mut target = self.before_hang(&state, start + batch);
        // The instruction that forked is completed before another state runs.
        let mut completes = false;
        loop {
            let follows = state.path.follow.is_some();
            let before = state.instructions();
            let budget = match completes || self.is_before_main(&mut state) {
                true => 1,
                false => target.saturating_sub(before).max(1),
            };
            let (exit, fork) = self.run_slice(&mut state, budget);
            if follows || before < state.path.counted {
                // Rematerialising a state is no part of its batch.
                target = self.before_hang(&state, target.max(state.instructions() + batch));
            }
            self.count_executed(&mut state, before);
            self.note_coverage(&mut state);
            let next = self.after_slice(id, state, (exit, fork, completes), listener);
            state = match next {
                AfterSlice::Continues(state) => state,
                AfterSlice::Completes(next) => {
                    state = next;
                    completes = true;
                    continue;
                }
                AfterSlice::Stays(next) => {
                    state = next;
                    break;
                }
                AfterSlice::Gone => return,
            };
            let forks = self.statistics.forks - forks_before;
            let forked = forks >= FORKS_A_BATCH || (forks > 0 && self.config.selects_after_forks);
            let is_full = forked || completes || self.has_grown() || self.is_asked_for_states();
            if state.instructions() >= target
                || is_full
                || self.out_of_time()
                || self.out_of_forks()
                || self.is_at_limit(Counted::Instructions)
            {
                break;
            }
        }
        let info = self.info(&state);
        self.frontier.set_info(id, info);
        self.frontier.put(id, Stored::Live(state));
        self.searcher.updated(&self.frontier, id);
    }

    /// Handles the end of a slice: forks, and ends or cuts the path. `completes` says whether the
    /// state completed an instruction that forked.
    #[inline]
    fn after_slice(
        &mut self,
        id: StateId,
        mut state: Box<State>,
        (exit, fork, completes): (HostExit, Option<Fork>, bool),
        listener: &mut dyn Listener,
    ) -> AfterSlice {
        match (exit, fork) {
            // The instruction asks another question, which stays open.
            (HostExit::Suspended, Some(_)) if completes => return AfterSlice::Stays(state),
            // Another worker took the last fork: the question stays open.
            (HostExit::Suspended, Some(_)) if !self.reserve(Counted::Forks) => {
                return AfterSlice::Stays(state);
            }
            (HostExit::Suspended, Some(fork)) => {
                let of_data = fork.is_of_data();
                if let Some(child) = self.fork(id, &mut state, fork, listener)
                    && self.config.completes_forks
                    && of_data
                {
                    self.complete(child, listener);
                    return AfterSlice::Completes(state);
                }
                if self.is_over_depth(&state) {
                    return self.cut_off(id, state, "max-depth", listener);
                }
            }
            (HostExit::Suspended, None) if Self::opens_region(&mut state) => {
                match self.open_region(id, &mut state, listener) {
                    Opened::Continues if self.is_over_depth(&state) => {
                        return self.cut_off(id, state, "max-depth", listener);
                    }
                    Opened::Continues => {}
                    Opened::Stands => return AfterSlice::Stays(state),
                    Opened::Lost => {
                        self.note_lost(1, "its paths cannot be merged again");
                        self.cut(id, state, LOST, listener);
                        return AfterSlice::Gone;
                    }
                }
            }
            // The time is over, and a question is open.
            (HostExit::Suspended, None) if self.is_stopping() || self.must_leave() => {
                return AfterSlice::Stays(state);
            }
            // The instruction waits for memory.
            (HostExit::Suspended, None) if self.clear_room() => {
                // Workers that leave hand their states over between batches.
                let hands_over = self.is_waiting_for_team();
                if hands_over {
                    return AfterSlice::Stays(state);
                }
            }
            (HostExit::Suspended, None) => {
                return self.cut_off(id, state, "max-memory", listener);
            }
            (HostExit::Ended(_), _) if !self.reserve(Counted::Paths) => {
                return AfterSlice::Stays(self.before_its_end(&state));
            }
            (HostExit::Ended(ending), _) => {
                self.end(id, state, ending, listener);
                return AfterSlice::Gone;
            }
            _ => {}
        }
        self.after_instruction(id, state, listener)
    }

    /// Cuts off a path at a limit.
    fn cut_off(
        &mut self,
        id: StateId,
        state: Box<State>,
        limit: &'static str,
        listener: &mut dyn Listener,
    ) -> AfterSlice {
        self.note_limit(limit);
        self.cut(id, state, limit, listener);
        AfterSlice::Gone
    }

    /// Ends a path that diverged from its trace or hangs.
    #[inline]
    fn after_instruction(
        &mut self,
        id: StateId,
        mut state: Box<State>,
        listener: &mut dyn Listener,
    ) -> AfterSlice {
        if let Some(message) = state.path.diverged.take() {
            self.warnings
                .push(format!("a trace could not be followed: {message}"));
            return self.cut_off(id, state, "diverged", listener);
        }
        if self.hangs(&state) {
            if !self.reserve(Counted::Paths) {
                return AfterSlice::Stays(self.before_its_end(&state));
            }
            self.note_limit("max-instructions");
            let bug = state.hang();
            self.end(id, state, Ending::Bug(Box::new(bug)), listener);
            return AfterSlice::Gone;
        }
        AfterSlice::Continues(state)
    }

    /// Lets a new state complete the instruction that forked, unless that asks another question: an
    /// error for which the instruction checks ends the path now.
    fn complete(&mut self, id: StateId, listener: &mut dyn Listener) {
        let Some(mut state) = self.take(id) else {
            return;
        };
        let before = state.instructions();
        let (exit, _) = self.run_slice(&mut state, 1);
        self.count_executed(&mut state, before);
        self.note_coverage(&mut state);
        state.path.at_merge = None;
        match exit {
            HostExit::Ended(ending) if self.reserve(Counted::Paths) => {
                return self.end(id, state, ending, listener);
            }
            HostExit::Ended(_) => state = self.before_its_end(&state),
            _ => {}
        }
        let info = self.info(&state);
        self.frontier.set_info(id, info);
        self.frontier.put(id, Stored::Live(state));
        self.searcher.updated(&self.frontier, id);
    }

    /// Returns whether what a state executes is not counted, because its program has not entered
    /// its `main` yet.
    fn is_before_main(&self, state: &mut State) -> bool {
        if !self.config.counts_from_main || state.has_main {
            return false;
        }
        let host = state.host.as_ref();
        state.has_main = host.is_some_and(|host| {
            let main = self.mains[usize::from(host.image().0)];
            let frames = &host.thread().frames;
            main.is_none_or(|main| frames.iter().any(|frame| frame.function == main))
        });
        !state.has_main
    }

    /// Counts the instructions that a state has executed since it had executed `before`.
    pub(crate) fn count_executed(&mut self, state: &mut State, before: u64) {
        let after = state.instructions();
        let executed = after - before;
        if self.is_before_main(state) {
            state.path.counted = state.path.counted.max(after);
            return;
        }
        let new = after.saturating_sub(before.max(state.path.counted));
        self.statistics.instructions += new;
        self.count(Counted::Instructions, new);
        self.statistics.replayed += executed - new;
        state.path.counted = state.path.counted.max(after);
        state.since_new += executed;
    }

    /// Returns a state before the end of its path, for a path that may not end now because another
    /// worker's path reached the limit. It ends when the run is resumed.
    fn before_its_end(&self, state: &State) -> Box<State> {
        let trace = state.path.pending_trace(&mut Sharing::default());
        Box::new(State::starting(Path::following(Arc::new(trace))))
    }

    /// Reads the clock now and then, so that states that fork all the time do not run past the
    /// limit.
    fn out_of_time(&mut self) -> bool {
        self.ticks += 1;
        self.ticks.is_multiple_of(64) && self.is_late()
    }

    /// Returns the end of a batch, but not beyond the limit on instructions of a path: a path that
    /// would end after it hangs, also if its trace is followed.
    fn before_hang(&self, state: &State, target: u64) -> u64 {
        match self.config.limits.max_instructions {
            Some(limit) => {
                let limit = limit.saturating_add(state.instructions_before());
                target.min(limit.max(state.instructions() + 1))
            }
            None => target,
        }
    }

    fn hangs(&self, state: &State) -> bool {
        let limit = self.config.limits.max_instructions;
        let executed = state.instructions() - state.instructions_before();
        limit.is_some_and(|limit| executed >= limit)
    }

    /// Runs a state for at most `budget` instructions, and less if memory is short.
    pub(crate) fn run_slice(&mut self, state: &mut State, budget: u64) -> (HostExit, Option<Fork>) {
        let budget = budget.min(self.most_instructions());
        let host = match &self.config.against {
            Some(other) if state.path.second.is_some() => other,
            _ => &self.config.hosts[0].config,
        };
        let result = self.worker.run(state, host, None, RunFor::Budget(budget));
        self.tell_room();
        result
    }

    /// Returns whether the program (`klee_set_forking`) or the user ([`FLOATS`]) wants only one side
    /// of this fork. The run is then not complete, and reports why.
    pub(crate) fn takes_one_side(&mut self, state: &State, fork: &Fork) -> bool {
        let limit = match &state.path {
            path if path.fixes_floats => FLOATS,
            path if path.takes_one_side => "klee_set_forking",
            _ => return false,
        };
        let one_side = fork.is_of_data();
        if one_side {
            self.note_limit(limit);
        }
        one_side
    }

    /// Returns whether a fork takes one side because forks or queries at its place have more than
    /// their share. The run is then not complete, and reports why.
    fn exceeds_share(&mut self, state: &State, fork: &Fork, listener: &mut dyn Listener) -> bool {
        let queries = self.worker.solver.asked();
        let Some(shares) = &mut self.worker.shares else {
            return false;
        };
        if !fork.is_of_data() || !state.path.seeds.is_empty() {
            return false;
        }
        let Some((limit, site)) = shares.exceeded(queries) else {
            shares.forked();
            return false;
        };
        self.note_limit(limit);
        if self.config.tell_output {
            let place = describe(self.images(), &[site]).into_iter().next();
            let place = place.unwrap_or_default();
            let text = format!("{SKIPPED} at {}:{}", place.file, place.line);
            listener.noted(&[Note::WarningOnce(text)]);
        }
        true
    }

    /// Splits a state at a question with several answers. Returns the new state, if there is one.
    fn fork(
        &mut self,
        id: StateId,
        state: &mut State,
        fork: Fork,
        listener: &mut dyn Listener,
    ) -> Option<StateId> {
        self.statistics.forks += 1;
        self.tell_output(state, listener);
        let one_side =
            self.takes_one_side(state, &fork) || self.exceeds_share(state, &fork, listener);
        let of_data = fork.is_of_data();
        // In KLEE, a state goes on where the condition holds, and the new state is the other one.
        let is_other = matches!(fork, Fork::Branch { side: false, .. })
            && self.config.new_is_false
            && !one_side
            && state.path.seeds.is_empty();
        let mut other = self.worker.split(state, fork);
        if let (Other::State(child), true) = (&mut other, is_other) {
            std::mem::swap(state, &mut **child);
        }
        match other {
            Other::State(child) if self.is_over_depth(&child) => {
                self.statistics.unknown.add(child.path.weight);
                self.count_partial();
            }
            Other::State(child) if one_side => self.statistics.pruned.add(child.path.weight),
            Other::State(child) if of_data && self.is_without_seeds(&child) => {
                self.note_limit("only-seeds");
                self.statistics.pruned.add(child.path.weight);
            }
            Other::State(child) => {
                let view = &mut StateView::new(id, &child, &mut self.worker);
                match listener.forked(view) {
                    Keep::Yes | Keep::Lose | Keep::Mark(_) => {
                        return Some(self.add_child(id, child));
                    }
                    Keep::Prune => self.statistics.pruned.add(child.path.weight),
                }
            }
            Other::Unknown(reason) => self.give_up(state, &reason, listener),
        }
        None
    }

    /// Returns whether a state is not explored because no seed takes its way.
    fn is_without_seeds(&self, state: &State) -> bool {
        self.config.only_seeds && state.path.seeds.is_empty()
    }

    pub(super) fn add_child(&mut self, parent: StateId, child: Box<State>) -> StateId {
        self.add_state(parent, child, false)
    }

    /// Adds a state that forked or was merged from another one; `covered_new` says whether it was
    /// the first to execute some code.
    pub(super) fn add_state(
        &mut self,
        parent: StateId,
        mut child: Box<State>,
        covered_new: bool,
    ) -> StateId {
        child.covered_new = covered_new;
        let info = self.info(&child);
        let is_seeded = !child.path.seeds.is_empty();
        let id = self.frontier.add_child(parent, Stored::Live(child), info);
        if is_seeded {
            self.seeded.insert(id);
        }
        self.searcher.added(&self.frontier, id);
        self.forks_left = self.forks_left.saturating_sub(1);
        self.statistics.states_peak = self.statistics.states_peak.max(self.states() as u64);
        id
    }

    /// Reports that the solver could not decide whether a side of a fork is feasible. The weight of
    /// that side is unknown: neither finished nor pending.
    fn give_up(&mut self, state: &State, reason: &str, listener: &mut dyn Listener) {
        self.statistics.unknown.add(state.path.weight);
        self.count_partial();
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
}
