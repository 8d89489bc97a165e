//! What hosts send each other: where it goes, what becomes of it, and who receives it.

use everett_expr::ExprId;
use everett_linux::{Errno, Packet, PacketKind};
use everett_net::{Alternative, Fate, HostIndex, Mark, Protocol, Route, Unreachable};
use everett_solver::Verdict;
use everett_vm::{Buffer, ChoiceSite, Interrupt, Oracle, Value};
use std::sync::Arc;

use super::member::{Arrival, Doing, Member};
use super::*;
use crate::oracle::PathOracle;

/// Bytes of a packet besides what it carries: of Ethernet, IP and TCP or UDP, about.
const HEADERS: u64 = 54;
/// When TCP sends again what got lost in a queue.
const SENT_AGAIN_NS: u64 = 200_000_000;
/// How long something is held back for others at most.
const MOST_HELD_NS: u64 = 1_000_000_000;

impl Worlds<'_> {
    /// Sends on what a host has sent. `false` if its state turns out to be in no world.
    pub(super) fn transmit(&mut self, id: MemberId, member: &mut Member) -> bool {
        let sent = member.state.host.as_mut().map(|host| host.take_sent());
        for packet in sent.unwrap_or_default() {
            self.counted.packets += 1;
            member.sent += 1;
            let from = Self::index(self.table.host(id));
            let topology = &self.config.topology;
            let (targets, path): (Vec<HostIndex>, _) = match topology.route(from, packet.to.ip()) {
                Route::Local => continue,
                Route::Host { target, path } => (vec![target], path),
                Route::Many { hosts, path, .. } => {
                    let others = hosts.iter().copied().filter(|host| *host != from);
                    (others.collect(), path)
                }
                Route::Unreachable(why) => {
                    self.bounce(member, from, &packet, why);
                    continue;
                }
            };
            let size = HEADERS + payload(&packet);
            let way = topology.arrival_ns(path, packet.clock_ns, size, &mut member.links);
            let mut arrival = Arrival {
                at_ns: packet.clock_ns.saturating_add(path.latency_ns),
                from,
                number: member.sent,
                packet: Arc::new(packet),
                decided: false,
                behind: 0,
                again: 0,
            };
            match way {
                everett_net::Arrival::At(time) => arrival.at_ns = time,
                // As on a real network, nobody is told that a queue was full.
                everett_net::Arrival::Dropped(_) if arrival.is_alone() => continue,
                // What TCP sends again is late, not lost.
                everett_net::Arrival::Dropped(_) => {
                    arrival.at_ns = arrival.at_ns.saturating_add(SENT_AGAIN_NS);
                }
            }
            for target in targets {
                self.note_sent(&arrival, target, member);
                if !self.deliver(id, member, target, &arrival) {
                    return false;
                }
            }
        }
        true
    }

    /// Nobody can be reached: the sender learns it after a while, as from a router.
    fn bounce(&self, member: &mut Member, from: HostIndex, packet: &Packet, why: Unreachable) {
        let errno = match why {
            Unreachable::NoRoute => Errno::ENETUNREACH,
            Unreachable::HostUnreachable => Errno::EHOSTUNREACH,
            Unreachable::PortUnreachable => Errno::ECONNREFUSED,
        };
        let at_ns = packet.clock_ns.saturating_add(2 * self.least_latency_ns);
        let answer = Packet {
            clock_ns: packet.clock_ns,
            from: packet.to,
            to: packet.from,
            kind: PacketKind::Unreachable(errno),
        };
        member.expect(Arrival {
            at_ns,
            from,
            number: member.sent,
            packet: Arc::new(answer),
            decided: true,
            behind: 0,
            again: 0,
        });
    }

    /// Something goes to a host: in all worlds that the sender is in, and in no others.
    fn deliver(
        &mut self,
        id: MemberId,
        member: &Member,
        target: HostIndex,
        arrival: &Arrival,
    ) -> bool {
        let to = HostNumber(target.0);
        let mut copies = Vec::new();
        let receivers = self.with_mapping(&mut copies, |mapping, table, copy| {
            mapping.sent(table, id, to, copy)
        });
        for receiver in receivers {
            let Some(mut other) = self.members.remove(&receiver) else {
                continue;
            };
            if self.meets(&mut other, member) {
                self.forget_past(other.past, receiver);
                other.past = other.past.then(&arrival.look());
                other.expect(arrival.clone());
                self.members.insert(receiver, other);
                self.place(receiver);
                self.unite(receiver);
                continue;
            }
            self.counted.impossible += 1;
            if self.forget(receiver).contains(&id) {
                return false;
            }
        }
        copies.into_iter().for_each(|copy| self.place(copy));
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
        let faults = &self.config.faults;
        faults.meet(&mut receiver.counters, &sender.counters)
            && self.join(&mut receiver.state.path, &sender.state.path, false)
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
                    self.warnings.push(format!("the solver gave up: {reason}"));
                    self.note_limit("solver");
                    return !must_know;
                }
            }
            path.constraints.add(&mut worker.arena, condition);
        }
        true
    }

    /// The next thing arrives at a host. An error says that a question has several answers, or that the time is over.
    pub(super) fn arrive(
        &mut self,
        host: HostNumber,
        member: &mut Member,
    ) -> Result<(), Option<Fork>> {
        let Some(arrival) = member.next_arrival().cloned() else {
            return Ok(());
        };
        let at = Self::index(host);
        let known = described(&arrival, at);
        let (mut alternatives, mut marks) = (Vec::new(), Vec::new());
        if !arrival.decided {
            alternatives = self.config.faults.fates(&known, at, &member.counters);
            marks = self.config.faults.marks(&known, at, &member.counters);
        }
        let site = self.site(&alternatives);
        let deadline = self.deadline();
        let (solver, scratch) = (&mut self.worker.solver, &mut self.worker.scratch);
        let mut oracle = PathOracle::new(&mut member.state.path, solver, scratch, deadline);
        let decision = decide(
            &mut oracle,
            &mut self.worker.arena,
            &arrival,
            &site,
            &alternatives,
            &marks,
        );
        let (picked, packet) = match decision {
            Ok(decision) => decision,
            Err(_) => return Err(oracle.fork.take()),
        };
        oracle.commit();
        member.take_arrival();
        if !arrival.decided {
            let faults = &self.config.faults;
            faults.note_packet(
                &known,
                at,
                &alternatives,
                picked,
                &marks,
                &mut member.counters,
            );
        }
        let fate = alternatives.get(picked);
        self.note_fate(&arrival, at, fate, !marks.is_empty());
        let later = |at_ns: u64, behind: u32| Arrival {
            at_ns,
            packet: packet.clone(),
            decided: true,
            behind,
            ..arrival.clone()
        };
        match alternatives
            .get(picked)
            .map_or(Fate::Deliver, |taken| taken.fate)
        {
            Fate::Drop => {
                if let Some(later) = sent_again(&arrival) {
                    member.expect(later);
                }
                return Ok(());
            }
            Fate::Delay { by_ns } => {
                member.expect(later(arrival.at_ns.saturating_add(by_ns), 0));
                return Ok(());
            }
            Fate::HoldBack { packets } => {
                member.expect(later(arrival.at_ns.saturating_add(MOST_HELD_NS), packets));
                return Ok(());
            }
            Fate::Twice { after_ns } => {
                member.expect(later(arrival.at_ns.saturating_add(after_ns), 0));
            }
            Fate::Deliver | Fate::Corrupt { .. } => {}
        }
        if let Some(receiver) = &mut member.state.host {
            receiver.pass_time(arrival.at_ns);
            receiver.receive(&packet);
        }
        if let Doing::Waits(_) = member.doing {
            member.doing = Doing::Runs;
        }
        member.let_others_follow();
        Ok(())
    }

    /// The name of the question what becomes of a packet.
    fn site(&self, alternatives: &[Alternative<Fate>]) -> ChoiceSite {
        let faults = alternatives.iter().filter_map(|other| other.fault);
        let names: Vec<&str> = faults
            .map(|fault| self.config.faults.get(fault).name.as_str())
            .collect();
        ChoiceSite {
            name: format!("fault:packet:{}", names.join(",")),
        }
    }
}

/// What TCP sends again when it was lost, ever later; `None` where it gives up, or where nobody sends again.
fn sent_again(arrival: &Arrival) -> Option<Arrival> {
    const MOST: u32 = 10;
    if arrival.is_alone() || arrival.again >= MOST {
        return None;
    }
    let wait = SENT_AGAIN_NS << arrival.again;
    let packet = Packet {
        clock_ns: arrival.at_ns.saturating_add(wait),
        ..(*arrival.packet).clone()
    };
    Some(Arrival {
        at_ns: arrival.at_ns.saturating_add(wait),
        packet: Arc::new(packet),
        again: arrival.again + 1,
        ..arrival.clone()
    })
}

/// Bytes that a packet carries.
fn payload(packet: &Packet) -> u64 {
    match &packet.kind {
        PacketKind::Datagram(bytes) | PacketKind::Data(bytes) => bytes.len() as u64,
        _ => 0,
    }
}

/// What is known of a packet.
fn described(arrival: &Arrival, to: HostIndex) -> everett_net::Packet {
    let packet = &arrival.packet;
    let protocol = match &packet.kind {
        PacketKind::Datagram(_) => Protocol::Udp,
        PacketKind::Unreachable(_) => Protocol::Icmp,
        _ => Protocol::Tcp,
    };
    everett_net::Packet {
        from: arrival.from,
        to,
        protocol,
        source: packet.from,
        destination: packet.to,
        size: payload(packet) as u32,
        sent_ns: packet.clock_ns,
    }
}

/// What becomes of a packet, and what it is then.
fn decide(
    oracle: &mut PathOracle<'_>,
    arena: &mut everett_expr::Arena,
    arrival: &Arrival,
    site: &ChoiceSite,
    alternatives: &[Alternative<Fate>],
    marks: &[Mark],
) -> Result<(usize, Arc<Packet>), Interrupt> {
    let mut picked = 0;
    if alternatives.len() > 1 {
        picked = oracle.choose(site, alternatives.len() as u32)? as usize;
    }
    let mut ranges: Vec<(u32, u32, bool)> = Vec::new();
    if let Some(Fate::Corrupt { offset, length }) = alternatives.get(picked).map(|taken| taken.fate)
    {
        ranges.push((offset, length, false));
    }
    ranges.extend(
        marks
            .iter()
            .map(|mark| (mark.offset, mark.length, mark.printable)),
    );
    if ranges.is_empty() {
        return Ok((picked, arrival.packet.clone()));
    }
    let mut packet = (*arrival.packet).clone();
    let (PacketKind::Datagram(bytes) | PacketKind::Data(bytes)) = &mut packet.kind else {
        return Ok((picked, arrival.packet.clone()));
    };
    for (offset, length, printable) in ranges {
        make_symbolic(oracle, arena, bytes, (offset, length), printable)?;
    }
    Ok((picked, Arc::new(packet)))
}

fn make_symbolic(
    oracle: &mut PathOracle<'_>,
    arena: &mut everett_expr::Arena,
    bytes: &mut Buffer,
    (offset, length): (u32, u32),
    printable: bool,
) -> Result<(), Interrupt> {
    let array = oracle.input(arena, "packet", length)?;
    for at in 0..length {
        let term = arena.read(array, at);
        if printable {
            let (least, most) = (arena.constant(8, 0x20), arena.constant(8, 0x7e));
            let high = arena.ule(least, term);
            let low = arena.ule(term, most);
            let both = arena.and(high, low);
            oracle.assume(arena, both)?;
        }
        let value = Value {
            bits: 0,
            term: Some(term),
        };
        bytes.store((offset + at) as usize, 1, value);
    }
    Ok(())
}
