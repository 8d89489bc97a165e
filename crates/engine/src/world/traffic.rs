//! Transmission between states of different hosts. The mapping determines which states receive a
//! packet. The path condition of the sender is joined into that of each receiver. A pair of states
//! whose conditions contradict each other, or that together exceeds a bound on faults, is in no
//! common world.

use everett_expr::ExprId;
use everett_net::HostIndex;
use everett_sim::{Arrival, Incoming};
use everett_solver::Verdict;

use super::*;
use crate::state::Identity;

impl Explorer<'_> {
    /// Puts the packets of a host in transit as soon as the clocks of all others have reached the
    /// time of sending: worlds that settle before that need not be split. Returns `false` if the
    /// state turns out to be in no world.
    pub(super) fn transmit(
        &mut self,
        id: StateId,
        state: &mut State,
        listener: &mut dyn Listener,
    ) -> bool {
        if let (Some(host), Some(net)) = (&mut state.host, &mut state.net) {
            net.sim.unsent.extend(host.take_sent());
        }
        let unsent_ns = state.sim().unsent_ns();
        let hold_own = unsent_ns.is_some_and(|sent_ns| self.is_ahead(id, sent_ns));
        for (packet, is_own) in state.sim_mut().take_outgoing(hold_own) {
            self.world.counted.packets += 1;
            let from = self.world.table.host(id);
            let topology = &self.world.network.topology;
            let Some((targets, arrival)) = state.sim_mut().transmit(topology, from, packet, is_own)
            else {
                continue;
            };
            let view = &mut StateView::new(id, state, &mut self.worker);
            let keep = listener.sent(view, &arrival.packet, &targets);
            if keep == Keep::Prune {
                self.prune_worlds_with(id);
                return false;
            }
            if listener.keeps_sent() && arrival.packet.payload().is_some() {
                state.net_mut().sent.push((*arrival.packet).clone());
            }
            if keep == Keep::Lose {
                continue;
            }
            for target in targets {
                self.log_sent(&arrival, target, state);
                if !self.deliver(id, state, target, &arrival, listener) {
                    return false;
                }
            }
        }
        true
    }

    /// Returns whether another state has an event before this time.
    fn is_ahead(&self, id: StateId, time_ns: u64) -> bool {
        let first = self.first_beside(id);
        first.is_some_and(|(next_ns, _, _)| next_ns < time_ns)
    }

    /// Puts a packet into the inboxes of the receiving states of a host.
    fn deliver(
        &mut self,
        id: StateId,
        state: &State,
        target: HostIndex,
        arrival: &Arrival,
        listener: &mut dyn Listener,
    ) -> bool {
        let content = arrival.content(&mut self.worker.arena);
        let everybody = |_: &Self, _: StateId| true;
        let receive = |other: &mut State, faults: &Faults| {
            let incoming = Incoming::Packet(arrival.clone());
            other.net_mut().receive(incoming, &content, faults);
        };
        self.reach((id, state), target, everybody, receive, listener)
    }

    /// Marks the states of a host in all worlds of a state. Returns `false` if the state turns out to
    /// be in no world.
    pub(super) fn mark(
        &mut self,
        marking: (StateId, &State),
        target: HostIndex,
        listener: &mut dyn Listener,
    ) -> bool {
        let everybody = |_: &Self, _: StateId| true;
        let is_marked = |other: &mut State, _: &Faults| {
            let net = other.net_mut();
            net.is_marked = true;
            net.history = net.history.then(&"marked");
        };
        self.reach(marking, target, everybody, is_marked, listener)
    }

    /// Applies an action of a state to the states of a host that it concerns, in all worlds of the
    /// state and in no others. Returns `false` if the state turns out to be in no world.
    pub(super) fn reach(
        &mut self,
        (id, state): (StateId, &State),
        target: HostIndex,
        concerns: impl Fn(&Self, StateId) -> bool,
        happens: impl Fn(&mut State, &Faults),
        listener: &mut dyn Listener,
    ) -> bool {
        self.with_mapping(|mapping, table, copy| mapping.part(table, id, copy));
        if !self.leave_beyond(id) {
            return false;
        }
        // Settled worlds need no copies.
        self.finish_settled(listener);
        let receivers =
            self.with_mapping(|mapping, table, copy| mapping.receivers(table, id, target, copy));
        for receiver in receivers {
            if !concerns(self, receiver) {
                continue;
            }
            let Some(mut other) = self.take(receiver) else {
                // The receiver is lost, and its worlds with it.
                if !self.world.table.contains(id) {
                    return false;
                }
                continue;
            };
            let is_within = self.are_within(&other, state);
            if is_within && self.meets(&mut other, state) {
                self.forget_history(other.net().history, receiver);
                happens(&mut other, &self.world.network.faults);
                self.frontier.put(receiver, Stored::Live(other));
                self.enqueue(receiver);
                self.merge(receiver);
                continue;
            }
            // The receiver is put back first, because its weight is part of that of its worlds.
            self.frontier.put(receiver, Stored::Live(other));
            let gone = if is_within {
                self.world.counted.impossible += 1;
                self.finish_worlds_with(receiver)
            } else {
                self.exclude_worlds_with(receiver)
            };
            if gone.contains(&id) {
                return false;
            }
        }
        true
    }

    /// Merges a state with another state of its host that has the same history and path condition.
    fn merge(&mut self, id: StateId) {
        let Some(history) = self.frontier.history(id) else {
            return;
        };
        let known = self.world.histories.get(&history).copied();
        let Some(other) = known.filter(|other| *other != id) else {
            self.world.histories.insert(history, id);
            return;
        };
        let identities = [id, other].map(|id| self.identity(id));
        let is_same = identities[0].is_some() && identities[0] == identities[1];
        if is_same && self.world.mapping.merge(&mut self.world.table, id, other) {
            self.world.counted.merged += 1;
            self.drop_states(&[id]);
        }
    }

    fn identity(&self, id: StateId) -> Option<Identity> {
        let live = self.frontier.live(id);
        let live = live.map(Identity::of);
        live.or_else(|| Some(self.frontier.spilled_net(id)?.identity))
    }

    /// Joins the sender's path condition into the receiver's. Returns `false` if they contradict
    /// each other.
    fn meets(&mut self, receiver: &mut State, sender: &State) -> bool {
        self.join(&mut receiver.path, &sender.path, false)
    }

    /// Adds the condition of one path to that of another. Returns `false` if they contradict each
    /// other or, with `must_know`, if the solver cannot decide that.
    pub(super) fn join(&mut self, path: &mut Path, other: &Path, must_know: bool) -> bool {
        if path.is_loose() || other.is_loose() {
            // All values are given; the receiver needs those of the packet.
            path.model = path.model.with(other.model.iter());
            return true;
        }
        let new: Vec<ExprId> = other
            .constraints
            .iter()
            .filter(|condition| !path.constraints.contains(*condition))
            .collect();
        if new.is_empty() {
            return true;
        }
        // If the models of both paths agree, the solver is not needed.
        let joined = path.model.with(other.model.iter());
        let worker = &mut self.worker;
        let holds = path
            .constraints
            .iter()
            .chain(new.iter().copied())
            .all(|condition| {
                worker
                    .arena
                    .eval_bool(condition, &joined, &mut worker.scratch)
            });
        if holds {
            path.model = joined;
            for condition in new {
                path.constraints.add(&mut worker.arena, condition);
            }
            return true;
        }
        self.add_conditions(path, new, must_know)
    }

    /// Adds conditions to a path, with a model of all. If the run is being stopped, they are added
    /// without a model, which is searched when the run continues ([`Explorer::settle`]).
    fn add_conditions(&mut self, path: &mut Path, new: Vec<ExprId>, must_know: bool) -> bool {
        for condition in new {
            let worker = &mut self.worker;
            let constraints = &path.constraints;
            let verdict =
                worker
                    .solver
                    .check(&mut worker.arena, constraints, &path.model, condition);
            match verdict {
                Verdict::Sat(model) => path.model = model,
                Verdict::Unsat => return false,
                Verdict::Unknown(reason) => {
                    self.note_unknown(&reason);
                    // Too many worlds are better than too few, but a finding must be known to be
                    // feasible.
                    if must_know || !self.is_stopping() {
                        return !must_know;
                    }
                }
            }
            path.constraints.add(&mut self.worker.arena, condition);
        }
        true
    }

    /// Searches a model of a path condition that was joined while a run was being stopped. Returns
    /// `false` if there is none: the states have no common world.
    pub(crate) fn settle(&mut self, path: &mut Path) -> bool {
        let worker = &mut self.worker;
        let conditions: Vec<ExprId> = path.constraints.iter().collect();
        let holds = conditions.iter().all(|condition| {
            worker
                .arena
                .eval_bool(*condition, &path.model, &mut worker.scratch)
        });
        if holds {
            return true;
        }
        (path.constraints, path.model) = Default::default();
        self.add_conditions(path, conditions, false)
    }
}
