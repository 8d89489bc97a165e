//! Worlds of several hosts: the states of each host fork on their own and run in the order of their
//! clocks. A mapping tracks which states form worlds together.
//!
//! A state runs when no other state has an earlier clock (unless a searcher is chosen, or memory is
//! short: `order`), and only to its horizon: the time before which nothing can still arrive. So no
//! packet arrives in a host's past, and what a host does depends only on what it has received.

mod bounds;
mod choose;
mod ending;
mod host_status;
mod initial_states;
mod invariants;
mod jobs;
mod machine;
mod messages;
mod order;
mod pending;
mod rematerialise;
mod schedule;
mod settled;
pub(crate) mod shared;
mod starts;
pub(crate) mod stored;
mod tally;
mod traffic;
pub(crate) mod transfer;
mod verdicts;

use everett_invariant::Invariants;
use everett_linux::{Ending, Host};
use everett_net::{FaultIndex, Faults, HostIndex};
use everett_sim::{RunState, Step, horizon_ns};
use everett_vm::{Bug, BugKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use jobs::Worlds;
pub(crate) use transfer::WorldPart;

use crate::error::SavedError;
use crate::explorer::{Explorer, Listener, Stopped};
use crate::frontier::{StateId, Stored};
use crate::history::HistoryDigest;
use crate::mapping::{Mapping, Table, weight_of};
use crate::observe::{Keep, StateView};
use crate::oracle::Fork;
use crate::path::Path;
use crate::state::State;
use crate::statistics::{EVENTS, PEERS, VIRTUAL_TIME};
use crate::trace::Trace;
use crate::weight::WeightSum;
use crate::worker::{Other, RunFor};
use crate::world::shared::World;
use machine::Explored;

impl Explorer<'_> {
    /// Adds an initial state of a host to the frontier.
    fn add_root(&mut self, state: State) -> StateId {
        self.world.counted.states_made += 1;
        let info = self.info(&state);
        let used = self
            .world
            .bounds
            .used(state.net().host, &state.sim().counters);
        let state = Stored::Live(Box::new(state));
        let id = self.frontier.add_root(state, info);
        self.frontier.set_used(id, used);
        id
    }

    /// Puts a state into the queue, at the time of its next event.
    fn enqueue(&mut self, id: StateId) {
        if let Some(state) = self.frontier.live(id) {
            let (next_ns, is_awaiting) = (state.next_ns(), state.sim().start.is_awaiting());
            self.enqueue_at(id, next_ns, is_awaiting);
        }
    }

    /// Puts a state into the queue at a time, and marks it quiescent if it has no next event.
    pub(crate) fn enqueue_at(&mut self, id: StateId, next_ns: u64, is_awaiting: bool) {
        self.dequeue(id);
        let host = self.world.table.host(id);
        let place = (next_ns, host, id);
        if is_awaiting {
            self.world.not_started.insert(place);
        }
        self.world.places.insert(id, (next_ns, host));
        self.world.queue.insert(place);
        self.world.table.set_quiescent(id, next_ns == u64::MAX);
        if next_ns < u64::MAX {
            self.offer(id);
        }
    }

    /// Returns the position of a state in the queue, and whether it waits for the hosts before it
    /// to block.
    pub(crate) fn queued(&self, id: StateId) -> Option<(u64, HostIndex, bool)> {
        let (next_ns, host) = *self.world.places.get(&id)?;
        let is_awaiting = self.world.not_started.contains(&(next_ns, host, id));
        Some((next_ns, host, is_awaiting))
    }

    /// Returns the names of the hosts.
    pub(crate) fn host_names(&self) -> Vec<String> {
        let hosts = self.config.hosts.iter();
        hosts.map(|host| host.name.clone()).collect()
    }

    /// Removes a state from the queue.
    fn dequeue(&mut self, id: StateId) {
        if let Some((next_ns, host)) = self.world.places.remove(&id) {
            self.world.queue.remove(&(next_ns, host, id));
            self.world.not_started.remove(&(next_ns, host, id));
            if next_ns < u64::MAX {
                self.withdraw(id);
            }
        }
    }

    /// Advances the next state of the worlds. Returns why the search stops, if it does.
    pub(crate) fn run_world(&mut self, listener: &mut dyn Listener) -> Option<Stopped> {
        self.check_again(listener);
        self.finish_settled(listener);
        if self.world.has_open_questions {
            // The run is being stopped; settled worlds may be left.
            return None;
        }
        let Some((next_ns, _, id)) = self.turn() else {
            // Other workers may have worlds left.
            let is_last = !self.begin_more_worlds() && self.member.is_none();
            return is_last.then_some(Stopped::Finished);
        };
        if let Some(time_ns) = self.time_before(next_ns) {
            self.check_at(time_ns, listener);
            return None;
        }
        let most = self.config.limits.max_virtual_ns;
        if most.is_some_and(|most| next_ns > most) {
            self.note_limit(VIRTUAL_TIME);
            self.cut_all();
            let is_last = !self.begin_more_worlds() && self.member.is_none();
            return is_last.then_some(Stopped::Limit(VIRTUAL_TIME));
        }
        let states = self.frontier.len() as u64;
        self.statistics.states_peak = self.statistics.states_peak.max(states);
        let counted = &mut self.world.counted;
        counted.dstates_peak = counted.dstates_peak.max(self.world.table.len());
        self.advance(id, listener);
        None
    }

    /// Returns the names of the scenario's faults that have never happened.
    pub fn faults_never_fired(&self) -> Vec<String> {
        let all = self.world.network.faults.list().iter().zip(0..);
        let never = all.filter(|(_, at)| !self.world.fired.contains(&FaultIndex(*at)));
        never.map(|(fault, _)| fault.name.clone()).collect()
    }

    /// Returns the horizon of a state: the time before which nothing can still arrive, or, in order,
    /// before which nothing can happen on other hosts.
    fn horizon(&self, id: StateId, in_order: bool) -> u64 {
        let next = self.first_beside(id).map_or(u64::MAX, |(next, _, _)| next);
        let check_ns = self.world.times.first().copied();
        // Nothing happens beyond the limit of virtual time.
        let limit_ns = self.config.limits.max_virtual_ns;
        let limit_ns = limit_ns.map(|most| most.saturating_add(1));
        let barriers = [check_ns, self.next_start_ns(), limit_ns];
        let barriers = barriers.into_iter().flatten();
        let lookahead_ns = match in_order {
            true => 1,
            false => self.world.lookahead_ns,
        };
        horizon_ns(next, lookahead_ns, barriers)
    }

    /// Runs a state to its horizon.
    fn advance(&mut self, id: StateId, listener: &mut dyn Listener) {
        if !self.is_within(id) {
            self.exclude_worlds_with(id);
            return;
        }
        let Some(mut state) = self.take(id) else {
            return;
        };
        self.forget_history(state.net().history, id);
        if self.run_to_horizon(id, &mut state, listener) {
            let history = state.net().history;
            self.world.histories.entry(history).or_insert(id);
            let info = self.info(&state);
            self.frontier.set_info(id, info);
            self.frontier.put(id, Stored::Live(state));
            self.enqueue(id);
        }
    }

    /// Steps a state until it blocks at its horizon, or until a batch, the time or the memory of
    /// the run is used up. Returns `false` if the state is in no world any more.
    fn run_to_horizon(
        &mut self,
        id: StateId,
        state: &mut State,
        listener: &mut dyn Listener,
    ) -> bool {
        /// Number of steps before a request to stop takes effect here. A state that stops before
        /// its horizon changes the order in which others run, so a resumed run would merge other
        /// states than an undisturbed one.
        const PATIENCE: u32 = 10_000;
        let mut batch_end = u64::MAX;
        if self.world.order.is_by_searcher() {
            batch_end = state.instructions() + self.config.batch_instructions;
        }
        let mut steps = 0;
        loop {
            if !self.transmit(id, state, listener) {
                return false;
            }
            if !state.sim().unsent.is_empty() {
                return true;
            }
            if !self.is_within_limits(id, state, listener) {
                return false;
            }
            let was_off = state.sim().is_off();
            // A receiver may answer, so the horizon changes whenever something is sent.
            let horizon_ns = self.horizon(id, listener.wants_order());
            let stepped = self.step(id, state, horizon_ns, listener.wants_waits());
            if !self.is_on_its_way(id, state) || !self.note_used(id, state) {
                return false;
            }
            let now_ns = match stepped {
                Err(Some(fork)) => {
                    self.fork_alone(id, state, fork, listener);
                    let view = &mut StateView::new(id, state, &mut self.worker);
                    if listener.narrowed(view) == Keep::Prune {
                        self.prune_worlds_with(id);
                        return false;
                    }
                    state.clock_ns()
                }
                Ok((Step::Blocked, _)) => return true,
                // The time is over, and a question is open.
                Err(None) if self.is_stopping() => return true,
                // The instruction waits for memory.
                Err(None) if self.clear_room() => state.clock_ns(),
                Err(None) => {
                    self.note_limit("max-memory");
                    self.cut_worlds_with(id);
                    return false;
                }
                Ok((step, now_ns)) => {
                    if !self.handle(id, state, step, listener)
                        || !self.tell_wait(id, state, listener)
                    {
                        return false;
                    }
                    now_ns
                }
            };
            if state.sim().is_off() && !was_off {
                state.net_mut().ending = None;
                // A host that is off exposes nothing.
                self.check_change(id, state, listener);
            }
            if let Some(message) = state.path.diverged.take() {
                self.warn(format!("a trace could not be followed: {message}"));
            }
            if !self.notify_blocked(id, state, now_ns, listener) {
                return false;
            }
            steps += 1;
            let must_stop = self.is_late() || steps > PATIENCE && self.is_stopping();
            let must_stop = must_stop || self.is_out_of_room();
            if must_stop || self.out_of_forks() || state.instructions() >= batch_end {
                return true;
            }
        }
    }

    /// Notifies a listener that a state is blocked, if it wants that. Returns
    /// `false` if the state is pruned.
    fn tell_wait(&mut self, id: StateId, state: &mut State, listener: &mut dyn Listener) -> bool {
        let waits = matches!(state.sim().run_state, RunState::Waiting(_))
            && state.host.as_ref().is_some_and(Host::awaits_others);
        // Packets that the host sent before it blocked come first.
        let has_unsent =
            !state.sim().unsent.is_empty() || state.host.as_ref().is_some_and(Host::has_sent);
        if !listener.wants_waits() || !waits || has_unsent {
            return true;
        }
        let view = &mut StateView::new(id, state, &mut self.worker);
        if listener.waits(view) == Keep::Prune {
            self.prune_worlds_with(id);
            return false;
        }
        state.net_mut().note_wait();
        true
    }

    /// Handles the result of a step. Returns `false` if the state no longer exists.
    fn handle(
        &mut self,
        id: StateId,
        state: &mut State,
        step: Step<Ending>,
        listener: &mut dyn Listener,
    ) -> bool {
        self.world.fired.extend(step.faults());
        self.log_step(self.world.table.host(id), &step, state);
        match step {
            Step::Exposed => {
                self.exposed(id, state, listener);
                let view = &mut StateView::new(id, state, &mut self.worker);
                let keep = listener.exposed(view);
                return self.obey(id, state, keep, listener);
            }
            Step::Called(name) => {
                let view = &mut StateView::new(id, state, &mut self.worker);
                if listener.called(view, name) == Keep::Prune {
                    self.prune_worlds_with(id);
                    return false;
                }
            }
            Step::Livelock(events) => {
                self.note_limit(EVENTS);
                let message = format!("over {events} messages and times that it waited for");
                let bug = Bug::new(BugKind::Hang, message);
                return !self.ended(id, state, Ending::Bug(Box::new(bug)), listener);
            }
            Step::Stopped(ending) => return !self.ended(id, state, ending, listener),
            Step::Asked(concretised) => self.note_concretised(id, concretised),
            Step::Unanswered(message) => {
                let name = &self.host(self.world.table.host(id)).name;
                self.warn(format!("peer {name} does not answer: {message}"));
                self.note_limit(PEERS);
                self.cut_worlds_with(id);
                return false;
            }
            Step::Delivered(_, delivery) => {
                if let Some(packet) = &delivery.delivered {
                    let view = &mut StateView::new(id, state, &mut self.worker);
                    let keep = listener.delivered(view, packet);
                    return self.obey(id, state, keep, listener);
                }
            }
            _ => {}
        }
        true
    }

    /// Does what a listener has decided. Returns `false` if the state no longer exists.
    fn obey(
        &mut self,
        id: StateId,
        state: &mut State,
        keep: Keep,
        listener: &mut dyn Listener,
    ) -> bool {
        match keep {
            Keep::Yes | Keep::Lose => true,
            Keep::Mark(host) if host == state.net().host => {
                state.net_mut().is_marked = true;
                true
            }
            Keep::Mark(host) => self.mark((id, state), host, listener),
            Keep::Prune => {
                self.prune_worlds_with(id);
                false
            }
        }
    }

    /// Counts symbolic bytes that got one value because they were sent to a live peer, and warns.
    fn note_concretised(&mut self, id: StateId, bytes: u64) {
        if bytes > 0 {
            self.world.counted.concretised += bytes;
            let name = &self.host(self.world.table.host(id)).name;
            self.warn(format!(
                "symbolic bytes that are sent to peer {name} get one value; others are not explored (see `symbolic`)"
            ));
        }
    }

    /// Advances a state by one step, and counts its instructions, coverage and warnings.
    fn step(
        &mut self,
        id: StateId,
        state: &mut State,
        horizon_ns: u64,
        wants_waits: bool,
    ) -> Result<(Step<Ending>, u64), Option<Fork>> {
        let stop_at_waits = wants_waits || self.is_waited_for(id);
        let (before, warned) = (state.instructions(), state.warnings().len());
        let most = self.config.limits.max_instructions.unwrap_or(u64::MAX);
        let left = most.saturating_sub(before).clamp(1, machine::BUDGET);
        let left = left.min(self.most_instructions());
        let run_for = RunFor::Budget(left);
        let result = self.step_alone(state, horizon_ns, stop_at_waits, run_for);
        self.tell_room();
        let executed = state.instructions().saturating_sub(before);
        self.statistics.instructions += executed;
        state.since_new += executed;
        self.note_coverage(state);
        self.hear(state, warned);
        result
    }

    /// Advances a state by one step, without counting anything.
    fn step_alone(
        &mut self,
        state: &mut State,
        horizon_ns: u64,
        stop_at_waits: bool,
        run_for: RunFor,
    ) -> Result<(Step<Ending>, u64), Option<Fork>> {
        let Some(mut net) = state.net.take() else {
            return Err(None);
        };
        let host = net.host;
        let mut machine = Explored {
            state,
            worker: &mut self.worker,
            config: &self.config.hosts[host.index()],
            run_for,
        };
        let (network, sim) = (&self.world.network, &mut net.sim);
        let result = everett_sim::step(network, host, sim, &mut machine, horizon_ns, stop_at_waits);
        state.net = Some(net);
        result
    }

    /// Checks a host that follows a trace to its initial state, because its program sets it up.
    /// Cuts its worlds off and returns `false` if it diverges from the trace.
    fn is_on_its_way(&mut self, id: StateId, state: &mut State) -> bool {
        if !state.sim().is_setting_up(state.host.as_ref()) {
            return true;
        }
        let Some(message) = state.path.diverged.take() else {
            return true;
        };
        let name = &self.host(self.world.table.host(id)).name;
        self.warn(format!("host {name} does not reach its start: {message}"));
        self.note_limit("begin");
        self.cut_worlds_with(id);
        false
    }

    /// Ends a state that exceeds the limit on forks or has reached the limit on instructions.
    /// Returns `false` if it has ended.
    fn is_within_limits(
        &mut self,
        id: StateId,
        state: &mut State,
        listener: &mut dyn Listener,
    ) -> bool {
        if self.is_over_depth(state) {
            if !self.leave_beyond(id) {
                return false;
            }
            self.note_limit("max-depth");
            self.cut_worlds_with(id);
            return false;
        }
        let most = self.config.limits.max_instructions;
        let hangs = most.is_some_and(|most| state.instructions() >= most);
        if hangs && state.sim().run_state == RunState::Running {
            self.note_limit("max-instructions");
            let ending = Ending::Bug(Box::new(state.hang()));
            return !self.ended(id, state, ending, listener);
        }
        true
    }

    /// Splits a state at a question with several answers.
    fn fork_alone(
        &mut self,
        id: StateId,
        state: &mut State,
        fork: Fork,
        listener: &mut dyn Listener,
    ) {
        self.statistics.forks += 1;
        let before = state.net().history;
        state.net_mut().history = before.then(&"this side");
        let one_side = self.takes_one_side(state, &fork);
        let other = self.worker.split(state, fork);
        self.frontier.set_weight(id, state.path.weight);
        let mut child = match other {
            Other::State(child) => child,
            Other::Unknown(reason) => {
                // The weight of the other side of the fork is neither finished nor pending.
                let half = self.tally_with(id);
                self.book(&half, |statistics| &mut statistics.unknown);
                return self.solver_gave_up(&reason);
            }
        };
        child.net_mut().history = before.then(&"the other side");
        child.covered_new = false;
        let keep = match one_side {
            true => Keep::Prune,
            false => listener.forked(&mut StateView::new(id, &child, &mut self.worker)),
        };
        let info = self.info(&child);
        self.world.counted.states_made += 1;
        let child = self.frontier.add_child(id, Stored::Live(child), info);
        self.forks_left = self.forks_left.saturating_sub(1);
        self.with_mapping(|mapping, table, copy| mapping.branch(table, id, child, copy));
        self.enqueue(child);
        if keep == Keep::Prune {
            self.prune_worlds_with(child);
        }
    }

    /// Calls the mapping with a function that copies states.
    fn with_mapping<T>(
        &mut self,
        work: impl FnOnce(&mut dyn Mapping, &mut Table, &mut dyn FnMut(StateId) -> StateId) -> T,
    ) -> T {
        let World {
            mapping,
            table,
            counted,
            ..
        } = &mut self.world;
        let frontier = &mut self.frontier;
        let mut copies = Vec::new();
        let mut copy = |old: StateId| {
            counted.states_made += 1;
            counted.copies += 1;
            // The mapping never copies the state that is being executed.
            let id = frontier.copy(old).unwrap_or(old);
            copies.push((old, id));
            id
        };
        let result = work(&mut **mapping, table, &mut copy);
        self.world.order.note_new(self.world.table.newest());
        self.forks_left = self.forks_left.saturating_sub(copies.len() as u64);
        for (old, id) in copies {
            if let Some((next_ns, _, is_awaiting)) = self.queued(old) {
                self.enqueue_at(id, next_ns, is_awaiting);
            }
        }
        result
    }

    /// Returns the weight of all unfinished combinations of states; some of them may turn out to be
    /// no worlds.
    pub(crate) fn pending_worlds(&self) -> WeightSum {
        let mut sum = self.weight_of_others();
        let table = &self.world.table;
        for dstate in table.dstates() {
            let hosts = table.hosts(dstate);
            sum.add_sum(&weight_of(hosts, |id| self.frontier.weight(id)));
        }
        sum
    }

    /// Removes a state and all states that are in no world without it. Returns the removed states.
    /// The caller has already counted the weight.
    fn forget(&mut self, id: StateId) -> Vec<StateId> {
        let gone = self.world.table.remove(id);
        self.drop_states(&gone);
        gone
    }

    /// Counts all worlds with a state as finished, and removes the state.
    fn finish_worlds_with(&mut self, id: StateId) -> Vec<StateId> {
        let tally = self.tally_with(id);
        self.book(&tally, |statistics| &mut statistics.finished);
        self.forget(id)
    }

    /// Drops a state with a contradictory path condition: its worlds do not exist.
    pub(crate) fn drop_contradictory(&mut self, id: StateId) {
        self.world.counted.impossible += 1;
        self.finish_worlds_with(id);
    }

    /// Prunes all worlds with a state, for a listener.
    pub(crate) fn prune_worlds_with(&mut self, id: StateId) {
        let tally = self.tally_with(id);
        self.book(&tally, |statistics| &mut statistics.pruned);
        self.forget(id);
    }

    /// Cuts off all worlds with a state: their weight is unknown.
    pub(crate) fn cut_worlds_with(&mut self, id: StateId) {
        let tally = self.tally_with(id);
        self.book(&tally, |statistics| &mut statistics.unknown);
        self.statistics.paths_partial += 1;
        self.forget(id);
    }

    /// Cuts off all worlds: their weight is unknown.
    fn cut_all(&mut self) {
        for dstate in self.world.table.dstates() {
            let hosts: Vec<_> = self.world.table.hosts(dstate).collect();
            let tally = self.tally(&hosts);
            self.book(&tally, |statistics| &mut statistics.unknown);
        }
        self.statistics.paths_partial += self.world.table.len() as u64;
        let all: Vec<StateId> = self.world.table.states().collect();
        self.world.table = Table::default();
        self.drop_states(&all);
    }

    /// Records that the solver gave no answer: it reached its limit, or the run is being stopped
    /// and the query stays open.
    fn note_unknown(&mut self, reason: &str) {
        match self.is_stopping() {
            true => self.world.has_open_questions = true,
            false => self.solver_gave_up(reason),
        }
    }

    fn solver_gave_up(&mut self, reason: &str) {
        self.warn(format!("the solver gave up: {reason}"));
        self.note_limit("solver");
    }

    fn drop_states(&mut self, gone: &[StateId]) {
        for id in gone {
            self.dequeue(*id);
            if let Some(history) = self.frontier.history(*id) {
                self.forget_history(history, *id);
            }
            self.frontier.remove(*id);
        }
    }

    /// Removes a state from the index of histories, because its history changes or it is dropped.
    fn forget_history(&mut self, history: HistoryDigest, id: StateId) {
        if self.world.histories.get(&history) == Some(&id) {
            self.world.histories.remove(&history);
        }
    }

    /// Returns the name of the state mapping.
    pub fn mapping_name(&self) -> &str {
        let world = self.config.world.as_ref();
        world.map_or("", |world| &world.mapping)
    }

    /// Returns the table of states and dstates.
    pub fn table(&self) -> &Table {
        &self.world.table
    }

    /// Returns the least clock of all unfinished worlds, if there are any.
    pub fn virtual_ns(&self) -> Option<u64> {
        let next = self.world.queue.first().map(|(next, _, _)| *next);
        next.filter(|next| *next != u64::MAX)
    }
}
