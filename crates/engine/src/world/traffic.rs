//! What hosts send each other: in which states it arrives, and which of them can be together.

use everett_expr::ExprId;
use everett_net::{HostEvent, HostFaultPoint, HostIndex};
use everett_solver::Verdict;

use super::mailbox::{Doing, Next};
use super::member::Member;
use super::moments::{self, AtNobody, Befallen, Befalls};
use super::post::{self, Arrival, Sent};
use super::*;
use crate::oracle::PathOracle;

impl Worlds<'_> {
    /// Sends on what a host has sent, as soon as all others have come as far: those to whom nothing happens any more by then need not
    /// be kept apart. `false` if its state turns out to be in no world.
    pub(super) fn transmit(
        &mut self,
        id: MemberId,
        member: &mut Member,
        listener: &mut dyn WorldListener,
    ) -> bool {
        if let Some(host) = &mut member.state.host {
            member.unsent.extend(host.take_sent());
        }
        let own = match member.unsent_ns() {
            Some(sent_ns) if self.is_ahead(id, sent_ns) => Vec::new(),
            _ => std::mem::take(&mut member.unsent),
        };
        let own = own.into_iter().map(|packet| (packet, true));
        // What the network says is not the host's, and nothing becomes of it.
        let others = std::mem::take(&mut member.outbox).into_iter();
        for (packet, is_own) in own.chain(others.map(|packet| (packet, false))) {
            self.counted.packets += 1;
            member.sent += 1;
            let from = self.table.host(id);
            let topology = &self.config.topology;
            let (links, known) = (&mut member.links, &member.counters);
            match post::send(topology, from, packet, member.sent, links, known) {
                Sent::Nowhere => {}
                Sent::Back(arrival) => member.mailbox.expect(arrival),
                Sent::To(targets, mut arrival) => {
                    arrival.decided |= !is_own;
                    arrival.met |= !is_own;
                    for target in targets {
                        self.note_sent(&arrival, target, member);
                        if !self.deliver(id, member, target, &arrival, listener) {
                            return false;
                        }
                    }
                }
            }
        }
        true
    }

    /// Something happens to another state before this time.
    fn is_ahead(&self, id: MemberId, time_ns: u64) -> bool {
        let first = self.first_beside(id);
        first.is_some_and(|(next_ns, _, _)| next_ns < time_ns)
    }

    /// Something goes to a host.
    fn deliver(
        &mut self,
        id: MemberId,
        member: &Member,
        target: HostIndex,
        arrival: &Arrival,
        listener: &mut dyn WorldListener,
    ) -> bool {
        let everybody = |_: &Member| true;
        let expect = |other: &mut Member, _: &Faults| {
            other.past = other.past.then(&arrival.look());
            other.mailbox.expect(arrival.clone());
        };
        self.reach((id, member), target, everybody, expect, listener)
    }

    /// Something that a state does reaches those states of a host that it concerns: in all worlds that it is in, and in no others.
    /// `false` if it turns out to be in no world.
    pub(super) fn reach(
        &mut self,
        (id, member): (MemberId, &Member),
        target: HostIndex,
        concerns: impl Fn(&Member) -> bool,
        happens: impl Fn(&mut Member, &Faults),
        listener: &mut dyn WorldListener,
    ) -> bool {
        self.with_mapping(|mapping, table, copy| mapping.part(table, id, copy));
        // Nobody need be copied for worlds that are at their end without this.
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
                self.forget_past(other.past, receiver);
                happens(&mut other, &self.config.faults);
                self.members.insert(receiver, other);
                self.place(receiver);
                self.unite(receiver);
                continue;
            }
            self.counted.impossible += 1;
            // It counts with its worlds, so it has to be there.
            self.members.insert(receiver, other);
            if self.finish_worlds_with(receiver).contains(&id) {
                return false;
            }
        }
        true
    }

    /// Where the same has happened to another state, one of the two is enough.
    fn unite(&mut self, id: MemberId) {
        let Some(past) = self.members.get(&id).map(|member| member.past) else {
            return;
        };
        let Some(other) = self.pasts.get(&past).copied().filter(|other| *other != id) else {
            self.pasts.insert(past, id);
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

    /// Whether two states can be in one world; then the first one knows what the other one knew.
    fn meets(&mut self, receiver: &mut Member, sender: &Member) -> bool {
        self.join(&mut receiver.state.path, &sender.state.path, false)
    }

    /// Adds the condition of one path to that of another. `false` if both together cannot be, or, where that must be known,
    /// if it is not known.
    pub(super) fn join(&mut self, path: &mut Path, other: &Path, must_know: bool) -> bool {
        if path.is_loose() || other.is_loose() {
            // All values are given; who receives something has to know those that it is made of.
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
        // Where the values of both fit together nothing need be asked.
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
                    // Too many worlds are better than too few; what is reported has to be known.
                    self.solver_gave_up(&reason);
                    return !must_know;
                }
            }
            path.constraints.add(&mut worker.arena, condition);
        }
        true
    }

    /// What happens to a host next: something arrives, or a time comes. An error says that a question has several answers, or
    /// that the time of the search is over.
    pub(super) fn arrive(
        &mut self,
        host: HostIndex,
        member: &mut Member,
    ) -> Result<(), Option<Fork>> {
        let arrival = match member.mailbox.next() {
            None => return Ok(()),
            Some(Next::Time(time)) => {
                if let Doing::Off(_) = member.doing {
                    member.mailbox.take();
                    return Ok(());
                }
                let befallen = self.ask(host, member, HostFaultPoint::Time, time)?;
                member.mailbox.take();
                self.strike(host, member, befallen, time);
                return Ok(());
            }
            Some(Next::Packet(_)) => match self.first_of_race(member)? {
                Some(arrival) => arrival,
                None => return Ok(()),
            },
        };
        if let Doing::Off(until) = member.doing {
            member.mailbox.take();
            self.note_nobody(&arrival, host);
            match moments::arrive_at_nobody(&arrival, until.is_none()) {
                AtNobody::Lost => {}
                AtNobody::Later(arrival) => member.mailbox.expect(arrival),
                AtNobody::GivenUp(packet) => member.outbox.push(packet),
            }
            return Ok(());
        }
        self.config
            .faults
            .learn(&mut member.counters, &arrival.known);
        if !arrival.met && self.config.faults.has_message_faults(host) {
            let now_ns = arrival.at_ns.max(member.clock_ns());
            let packet = post::described(&arrival, host, member.doing);
            let befallen = self.ask(host, member, HostFaultPoint::Message(&packet), now_ns)?;
            member.mailbox.is_met();
            if self.strike(host, member, befallen, now_ns) {
                return Ok(());
            }
        }
        self.arrive_packet(host, member, &arrival)
    }

    /// What arrives first of what races for a host; nothing where that is something that is not due yet.
    fn first_of_race(&mut self, member: &mut Member) -> Result<Option<Arrival>, Option<Fork>> {
        if member.overtaken < self.config.orders && !matches!(member.doing, Doing::Off(_)) {
            let deadline = self.deadline();
            let (solver, scratch) = (&mut self.worker.solver, &mut self.worker.scratch);
            let mut oracle = PathOracle::new(&mut member.state.path, solver, scratch, deadline);
            match member.mailbox.race(&mut oracle) {
                Ok(false) => {}
                Ok(true) => {
                    member.overtaken += 1;
                    return Ok(None);
                }
                Err(_) => return Err(oracle.fork.take()),
            }
        }
        match member.mailbox.next() {
            Some(Next::Packet(arrival)) => Ok(Some(arrival)),
            _ => Ok(None),
        }
    }

    fn arrive_packet(
        &mut self,
        host: HostIndex,
        member: &mut Member,
        arrival: &Arrival,
    ) -> Result<(), Option<Fork>> {
        let deadline = self.deadline();
        let (solver, scratch) = (&mut self.worker.solver, &mut self.worker.scratch);
        let mut oracle = PathOracle::new(&mut member.state.path, solver, scratch, deadline);
        let (arena, faults) = (&mut self.worker.arena, &self.config.faults);
        let fated = post::arrive(
            &mut oracle,
            arena,
            faults,
            (host, member.doing),
            arrival,
            &mut member.counters,
        );
        let fated = match fated {
            Ok(fated) => fated,
            Err(_) => return Err(oracle.fork.take()),
        };
        member.mailbox.take();
        self.fired.extend(fated.taken.and_then(|taken| taken.fault));
        self.fired.extend(fated.marks.iter().copied());
        self.note_fate(arrival, host, &fated, member);
        if let Some(later) = fated.later {
            member.mailbox.expect(later);
        }
        member.outbox.extend(fated.back);
        let Some(packet) = fated.now else {
            return Ok(());
        };
        if let Some(receiver) = &mut member.state.host {
            receiver.pass_time(arrival.at_ns);
            receiver.receive(&packet);
        }
        if let Doing::Waits(_) = member.doing {
            member.doing = Doing::Runs;
        }
        let now = member.clock_ns();
        member.mailbox.let_others_follow(now);
        Ok(())
    }

    /// Asks what becomes of a host at a moment.
    pub(super) fn ask(
        &mut self,
        host: HostIndex,
        member: &mut Member,
        point: HostFaultPoint<'_>,
        now_ns: u64,
    ) -> Result<Befallen, Option<Fork>> {
        let deadline = self.deadline();
        let (solver, scratch) = (&mut self.worker.solver, &mut self.worker.scratch);
        let mut oracle = PathOracle::new(&mut member.state.path, solver, scratch, deadline);
        let event = HostEvent {
            host,
            point,
            now_ns,
        };
        let (faults, running) = (&self.config.faults, member.state.host.as_ref());
        let befallen = moments::befalls(&mut oracle, faults, &event, running, &mut member.counters);
        befallen.map_err(|_| oracle.fork.take())
    }

    /// Something becomes of a host. `false` if that is nothing.
    pub(super) fn strike(
        &mut self,
        host: HostIndex,
        member: &mut Member,
        befallen: Befallen,
        now_ns: u64,
    ) -> bool {
        self.fired.extend(befallen.fault);
        self.note_befallen(host, &befallen, now_ns);
        match befallen.what {
            Befalls::Nothing => return false,
            Befalls::Pauses(until) => {
                if let Some(running) = &mut member.state.host {
                    running.pass_time(until);
                }
                if let Doing::Waits(_) = member.doing {
                    member.doing = Doing::Runs;
                }
            }
            Befalls::Off => member.switch_off(now_ns, None),
            Befalls::Restarts(at_ns, disk) => member.switch_off(now_ns, Some((at_ns, disk))),
        }
        true
    }
}
