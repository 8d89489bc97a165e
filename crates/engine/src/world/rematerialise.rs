//! Rematerialises spilled states of worlds. The answers of a host and what it received determine
//! its state, so the host runs again from its start, alone. What it sends and exposes on the way is
//! already known and is discarded.

use everett_sim::{Received, RunState, Step};

use super::stored::{Position, StoredWorldState};
use super::*;
use crate::frontier::Spilled;
use crate::state::Identity;

/// Number of steps without a visible change, such as asking whether a fault happens at a call,
/// before a state may run to the target's clock.
const IDLE_STEPS: u32 = 4;
/// Number of steps without a visible change before a state may run to its next arrival.
const MORE_IDLE_STEPS: u32 = 2 * IDLE_STEPS;
/// Number of steps without a visible change before a state counts as lost.
const MOST_IDLE_STEPS: u32 = 3 * IDLE_STEPS;

impl Explorer<'_> {
    /// Brings a state back to memory if it is spilled. Returns `false` if it is lost, and its
    /// worlds with it.
    pub(super) fn load(&mut self, id: StateId) -> bool {
        if self.frontier.spilled_net(id).is_none() {
            return true;
        }
        let Some(state) = self.take(id) else {
            return false;
        };
        self.frontier.put(id, Stored::Live(state));
        true
    }

    /// Brings these states back to memory if they are spilled.
    pub(super) fn load_all(&mut self, ids: impl IntoIterator<Item = StateId>) {
        for id in ids {
            self.load(id);
        }
    }

    /// Reads a spilled state and rematerialises it.
    pub(crate) fn rematerialise(&mut self, spilled: &Spilled) -> Result<Box<State>, String> {
        let stored = match &self.spill {
            Some(spill) => spill.get_of_world(spilled.at),
            None => return Err("there is no spill file".to_owned()),
        };
        let stored = stored.map_err(|error| error.to_string())?;
        let mut state = self.materialise(stored)?;
        let known = spilled.net.as_ref();
        state.covered_new = known.is_some_and(|net| net.covered_new);
        Ok(state)
    }

    /// Rematerialises a stored state.
    pub(super) fn materialise(
        &mut self,
        mut stored: StoredWorldState,
    ) -> Result<Box<State>, String> {
        let mut received = Vec::new();
        for part in std::mem::take(&mut stored.received) {
            let part = part.restore(&mut self.worker.arena);
            received.extend(part.map_err(|error| error.to_string())?);
        }
        let mut state = self.at_its_start(&stored)?;
        // The state fitted into memory before, and states that are needed at the same time must not
        // be spilled for it.
        let most = std::mem::replace(&mut self.worker.vm.most_made, u64::MAX);
        let run_again = self.run_again(&mut state, &stored.net.position, &received);
        self.worker.vm.most_made = most;
        run_again?;
        self.restore(&mut state, stored, received)?;
        Ok(state)
    }

    /// Returns the initial state of a host, which follows the stored trace.
    fn at_its_start(&mut self, stored: &StoredWorldState) -> Result<Box<State>, String> {
        let (host, world) = (stored.net.host, stored.net.world);
        if host.index() >= self.config.hosts.len() {
            return Err("it is of a host that there is not".to_owned());
        }
        let mut path = Path::following(Arc::new(stored.trace.clone()));
        path.pause_at = Some(stored.net.position.answered);
        path.model = stored.conditions.model(&mut self.worker.arena);
        if host == HostIndex(0) {
            for choice in self.first_choices(world) {
                path.begin_with(choice);
            }
            if let Some(follow) = &mut path.follow {
                follow.choices_used = path.choices.len();
            }
        }
        let answers = self.answers(world);
        Ok(Box::new(self.initial_state(host, world, path, &answers)))
    }

    /// Runs a host to its stored position.
    fn run_again(
        &mut self,
        state: &mut State,
        target: &Position,
        received: &[Received],
    ) -> Result<(), String> {
        let mut received = received.iter().peekable();
        let (mut before, mut idle) = (None, 0);
        loop {
            let inbox = state.sim().inbox.clock();
            while let Some(next) = received.next_if(|next| next.when <= inbox) {
                let faults = &self.world.network.faults;
                state.sim_mut().receive(&next.what, faults);
            }
            if let (Some(net), Some(host)) = (&mut state.net, &mut state.host) {
                net.sim.unsent.extend(host.take_sent());
            }
            if Position::of(state) == *target {
                return Ok(());
            }
            self.discard_sent(state);
            let here = Position::of(state);
            if here == *target {
                return Ok(());
            }
            idle = if before == Some(here) { idle + 1 } else { 0 };
            before = Some(here);
            if idle > MOST_IDLE_STEPS || here.is_beyond(target) {
                return Err(format!(
                    "it does not come to where it stood: {here:?}, not {target:?}"
                ));
            }
            self.step_again(state, &here, target, idle)?;
        }
    }

    /// Discards what a host sends again: its receivers got it when it was sent for the first time.
    fn discard_sent(&mut self, state: &mut State) {
        let net = state.net_mut();
        let topology = &self.world.network.topology;
        for (packet, is_own) in net.sim.take_outgoing(false) {
            net.sim.transmit(topology, net.host, packet, is_own);
        }
    }

    /// Advances a state that is being rematerialised by one step towards its target.
    fn step_again(
        &mut self,
        state: &mut State,
        here: &Position,
        target: &Position,
        idle: u32,
    ) -> Result<(), String> {
        let was_off = state.sim().is_off();
        let horizon_ns = here.horizon(target, idle);
        let instructions = here.instructions;
        let stepped = self.step_alone(state, horizon_ns, false, here.run_for(target));
        let executed = state.instructions().saturating_sub(instructions);
        self.statistics.replayed += executed;
        self.worker.coverage.grew = false;
        match stepped {
            // The state is at a question, or is about to continue with the answer.
            Err(_) => {}
            Ok((Step::Exposed, _)) => {
                self.observe(state);
            }
            Ok((Step::Stopped(ending), _)) => {
                state.sim_mut().run_state = RunState::Ended;
                state.net_mut().ending = Some(ending);
            }
            Ok((Step::Livelock(_), _)) => return Err("it does not end".to_owned()),
            Ok((Step::Unanswered(message), _)) => return Err(message),
            Ok(_) => {}
        }
        if state.sim().is_off() && !was_off {
            state.net_mut().ending = None;
        }
        if let Some(message) = state.path.diverged.take() {
            return Err(message);
        }
        if let (Some(net), false) = (&mut state.net, self.world.starting.is_empty()) {
            let run_state = net.sim.run_state;
            net.sim.start.notification(run_state, state.host.as_ref());
        }
        Ok(())
    }

    /// Restores those parts of a state that do not follow from running it again.
    fn restore(
        &mut self,
        state: &mut State,
        stored: StoredWorldState,
        received: Vec<Received>,
    ) -> Result<(), String> {
        let StoredWorldState {
            net: stored,
            conditions,
            weight,
            ..
        } = stored;
        let arena = &mut self.worker.arena;
        let constraints = conditions.constraints(arena);
        state.since_new = stored.since_new;
        let path = &mut state.path;
        path.constraints = constraints.map_err(|error| error.to_string())?;
        path.pause_at = None;
        path.excluded = stored.excluded.into();
        path.excluded_anew = false;
        path.weight = weight;
        path.depth = stored.depth;
        path.counted = stored.counted;
        let net = state.net_mut();
        net.history = stored.history;
        net.sim.inbox.set_waits(stored.waits);
        net.received = received.into_iter().collect();
        match Identity::of(state) == stored.identity {
            true => Ok(()),
            false => Err("it is another one than it was".to_owned()),
        }
    }
}

impl Position {
    /// Returns whether a state at this position has passed the target.
    fn is_beyond(&self, target: &Position) -> bool {
        let in_last_boot = self.restarts == target.restarts && self.is_on && target.is_on;
        let is_past = self.instructions > target.instructions || self.clock_ns > target.clock_ns;
        self.restarts > target.restarts
            || self.answered > target.answered
            || self.inbox > target.inbox
            || self.sent > target.sent
            || in_last_boot && is_past
    }

    /// Returns the horizon for a state at this position, so that it does not pass the target. The
    /// last `idle` steps changed nothing.
    fn horizon(&self, target: &Position, idle: u32) -> u64 {
        if self.restarts < target.restarts {
            return u64::MAX;
        }
        if let (RunState::Off(_), RunState::Off(Some(until_ns))) =
            (self.run_state, target.run_state)
        {
            return until_ns - 1;
        }
        if !target.is_on || self.inbox < target.inbox {
            return u64::MAX;
        }
        match idle {
            // It stops as soon as its clock reaches the time.
            ..IDLE_STEPS if self.clock_ns < target.clock_ns => target.clock_ns - 1,
            // It runs as long as no time passes.
            ..=MORE_IDLE_STEPS => target.clock_ns,
            // The spilled state was at a question about its next arrival.
            _ => u64::MAX,
        }
    }

    /// Returns how many instructions a state at this position may execute.
    fn run_for(&self, target: &Position) -> RunFor {
        let is_last_boot = self.restarts == target.restarts && target.is_on;
        match is_last_boot {
            true if self.instructions < target.instructions => RunFor::To(target.instructions),
            true => RunFor::Budget(1),
            false => RunFor::Budget(machine::BUDGET),
        }
    }
}
