//! Transmission between states of different hosts: the mapping says which states receive a packet; sender and receiver
//! join their path conditions, and a pair whose conditions contradict each other never met.

use everett_expr::ExprId;
use everett_net::HostIndex;
use everett_sim::Arrival;
use everett_solver::Verdict;

use super::member::Member;
use super::*;

impl Worlds<'_> {
    /// Puts what a host has sent in transit, as soon as all others have come as far: worlds that settle before that need not
    /// be split. Returns `false` if its state turns out to be in no world.
    pub(super) fn transmit(
        &mut self,
        id: MemberId,
        member: &mut Member,
        listener: &mut dyn WorldListener,
    ) -> bool {
        if let Some(host) = &mut member.state.host {
            member.sim.unsent.extend(host.take_sent());
        }
        let unsent_ns = member.sim.unsent_ns();
        let hold_own = unsent_ns.is_some_and(|sent_ns| self.is_ahead(id, sent_ns));
        for (packet, is_own) in member.sim.take_outgoing(hold_own) {
            self.counted.packets += 1;
            let from = self.table.host(id);
            let topology = &self.network.topology;
            let Some((targets, arrival)) = member.sim.transmit(topology, from, packet, is_own)
            else {
                continue;
            };
            for target in targets {
                self.log_sent(&arrival, target, member);
                if !self.deliver(id, member, target, &arrival, listener) {
                    return false;
                }
            }
        }
        true
    }

    /// Another state has an event before this time.
    fn is_ahead(&self, id: MemberId, time_ns: u64) -> bool {
        let first = self.first_beside(id);
        first.is_some_and(|(next_ns, _, _)| next_ns < time_ns)
    }

    /// Puts a packet into the inboxes of the receiving states of a host.
    fn deliver(
        &mut self,
        id: MemberId,
        member: &Member,
        target: HostIndex,
        arrival: &Arrival,
        listener: &mut dyn WorldListener,
    ) -> bool {
        let everybody = |_: &Member| true;
        let receive = |other: &mut Member, _: &Faults| {
            other.history = other.history.then(&arrival.content());
            other.sim.inbox.push(arrival.clone());
        };
        self.reach((id, member), target, everybody, receive, listener)
    }

    /// Lets an action of a state reach the states of a host that it concerns: in all worlds of the state, and in no others.
    /// Returns `false` if the state turns out to be in no world.
    pub(super) fn reach(
        &mut self,
        (id, member): (MemberId, &Member),
        target: HostIndex,
        concerns: impl Fn(&Member) -> bool,
        happens: impl Fn(&mut Member, &Faults),
        listener: &mut dyn WorldListener,
    ) -> bool {
        self.with_mapping(|mapping, table, copy| mapping.part(table, id, copy));
        // Worlds that are at their end already need no copies.
        self.finish_settled(listener);
        let receivers =
            self.with_mapping(|mapping, table, copy| mapping.receivers(table, id, target, copy));
        for receiver in receivers {
            if !self.members.get(&receiver).is_some_and(&concerns) {
                continue;
            }
            let Some(mut other) = self.members.remove(&receiver) else {
                continue;
            };
            if self.meets(&mut other, member) {
                self.forget_history(other.history, receiver);
                happens(&mut other, &self.network.faults);
                self.members.insert(receiver, other);
                self.enqueue(receiver);
                self.merge(receiver);
                continue;
            }
            self.counted.impossible += 1;
            // The weights of its worlds are counted with it.
            self.members.insert(receiver, other);
            if self.finish_worlds_with(receiver).contains(&id) {
                return false;
            }
        }
        true
    }

    /// Merges a state with another one of its host that has the same history and path condition.
    fn merge(&mut self, id: MemberId) {
        let Some(history) = self.members.get(&id).map(|member| member.history) else {
            return;
        };
        let known = self.histories.get(&history).copied();
        let Some(other) = known.filter(|other| *other != id) else {
            self.histories.insert(history, id);
            return;
        };
        let is_same = match (self.members.get(&id), self.members.get(&other)) {
            (Some(one), Some(other)) => one.is_same(other),
            _ => false,
        };
        if is_same && self.mapping.unite(&mut self.table, id, other) {
            self.counted.merged += 1;
            self.counted.states_total -= 1;
            self.drop_members(&[id]);
        }
    }

    /// Joins the sender's path condition into the receiver's. Returns `false` if they contradict each other.
    fn meets(&mut self, receiver: &mut Member, sender: &Member) -> bool {
        self.join(&mut receiver.state.path, &sender.state.path, false)
    }

    /// Adds the condition of one path to that of another. Returns `false` if they contradict each other, or, with `must_know`, if
    /// the solver cannot tell.
    pub(super) fn join(&mut self, path: &mut Path, other: &Path, must_know: bool) -> bool {
        if path.is_loose() || other.is_loose() {
            // All values are given; the receiver needs those that the packet is made of.
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
        // Where the models of both fit together the solver is not needed.
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
        for condition in new {
            let constraints = &path.constraints;
            let verdict =
                worker
                    .solver
                    .check(&mut worker.arena, constraints, &path.model, condition);
            match verdict {
                Verdict::Sat(model) => path.model = model,
                Verdict::Unsat => return false,
                Verdict::Unknown(reason) => {
                    // Too many worlds are better than too few; a finding must be known to be feasible.
                    self.solver_gave_up(&reason);
                    return !must_know;
                }
            }
            path.constraints.add(&mut worker.arena, condition);
        }
        true
    }
}
