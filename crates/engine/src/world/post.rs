//! The post between hosts: where packets go, when they arrive, and what becomes of them. The same for hosts that are explored and for
//! native ones.

use everett_expr::{Arena, ExprId};
use everett_linux::{Errno, Packet, PacketKind};
use everett_net::{
    Alternative, Fate, FaultCounters, FaultIndex, Faults, HostIndex, LinkState, Mark, Protocol,
    Route, Topology, Unreachable,
};
use everett_vm::{Buffer, ChoiceSite, Interrupt, Oracle, Value};
use std::hash::Hash;
use std::mem::discriminant;
use std::sync::Arc;

use super::moments::given_up;

/// Bytes of a packet besides what it carries: of Ethernet, IP and TCP or UDP, about.
const HEADERS: u64 = 54;
/// When TCP sends again what got lost in a queue.
const SENT_AGAIN_NS: u64 = 200_000_000;
/// How long something is held back for others at most.
const MOST_HELD_NS: u64 = 1_000_000_000;

/// Something on its way to a host.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When it is there.
    pub at_ns: u64,
    /// Who sent it.
    pub from: HostIndex,
    /// Its number among what that host sent: of what arrives at once, the first is first.
    pub number: u64,
    /// What it is.
    pub packet: Arc<Packet>,
    /// What becomes of it is decided.
    pub decided: bool,
    /// It arrives as soon as so many others have, if that is before its time.
    pub behind: u32,
    /// How often it was sent again.
    pub again: u32,
    /// What becomes of the host when it arrives is decided.
    pub met: bool,
    /// What the sender knew of what went wrong.
    pub known: Arc<FaultCounters>,
    /// It is decided that it arrives before those that it races with.
    pub leads: bool,
}

impl Arrival {
    /// What makes it different from others for who receives it.
    pub fn look(&self) -> impl Hash + use<'_> {
        let packet = &self.packet;
        let bytes = match &packet.kind {
            PacketKind::Datagram(bytes) | PacketKind::Data(bytes) => {
                let terms: Vec<ExprId> = bytes.terms().collect();
                let is_symbolic = |at: &usize| !terms.is_empty() && bytes.has_symbolic(*at, 1);
                let symbolic: Vec<usize> = (0..bytes.len()).filter(is_symbolic).collect();
                Some((bytes.bytes(), symbolic, terms))
            }
            _ => None,
        };
        let room = match &packet.kind {
            PacketKind::Request { room } | PacketKind::Accepted { room } => *room,
            PacketKind::Room { more } => *more,
            PacketKind::Unreachable(errno) => errno.result(),
            _ => 0,
        };
        let when = (self.at_ns, packet.clock_ns, self.from);
        let what = discriminant(&packet.kind);
        let ends = (packet.from, packet.to);
        (when, ends, what, bytes, room, &*self.known)
    }

    /// It is no part of a stream.
    pub fn is_alone(&self) -> bool {
        matches!(
            self.packet.kind,
            PacketKind::Datagram(_) | PacketKind::Unreachable(_)
        )
    }

    fn is_of_stream(&self, other: &Arrival) -> bool {
        let ends = |one: &Arrival| (one.packet.from, one.packet.to);
        !self.is_alone() && ends(self) == ends(other)
    }

    fn order(&self) -> (u64, HostIndex, u64) {
        (self.at_ns, self.from, self.number)
    }
}

/// What a host does.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Doing {
    /// It can go on, when its time comes.
    Runs,
    /// It waits until this time, or for what arrives.
    Waits(Option<u64>),
    /// Its programs have ended; its kernel answers what arrives.
    Over,
    /// It is switched off until this time, or for good.
    Off(Option<u64>),
}

/// What is on its way to a host, the next first, and times at which something can become of it. Cloning is O(1).
#[derive(Clone, Debug, Default)]
pub struct Mailbox {
    arriving: Arc<Vec<Arrival>>,
    times: Arc<Vec<u64>>,
    times_passed: usize,
}

/// What happens to a host next.
pub enum Next {
    /// This time comes.
    Time(u64),
    /// Something arrives.
    Packet(Arrival),
}

impl Mailbox {
    /// Nothing is on its way; something can become of the host at these times, in order.
    pub fn new(times: Vec<u64>) -> Mailbox {
        Mailbox {
            times: Arc::new(times),
            ..Mailbox::default()
        }
    }

    /// Something will arrive. What belongs to a stream overtakes nothing of the same stream that was sent before it, however
    /// late that is.
    pub fn expect(&mut self, mut arrival: Arrival) {
        let list = Arc::make_mut(&mut self.arriving);
        if !arrival.is_alone() {
            let same = list.iter().filter(|other| other.is_of_stream(&arrival));
            let before = same.filter(|other| other.number < arrival.number);
            let last = before.map(|other| other.at_ns).max().unwrap_or(0);
            arrival.at_ns = arrival.at_ns.max(last);
            for other in list.iter_mut() {
                if other.is_of_stream(&arrival) && other.number > arrival.number {
                    other.at_ns = other.at_ns.max(arrival.at_ns);
                }
            }
            list.sort_by_key(Arrival::order);
        }
        let at = list.partition_point(|other| other.order() <= arrival.order());
        list.insert(at, arrival);
    }

    fn next_time(&self) -> Option<u64> {
        self.times.get(self.times_passed).copied()
    }

    /// What happens next.
    pub fn next(&self) -> Option<Next> {
        let arrival = self.arriving.first();
        match (self.next_time(), arrival) {
            (Some(time), Some(arrival)) if arrival.at_ns < time => {
                Some(Next::Packet(arrival.clone()))
            }
            (Some(time), _) => Some(Next::Time(time)),
            (None, arrival) => arrival.cloned().map(Next::Packet),
        }
    }

    /// When that is; `u64::MAX` where nothing will.
    pub fn next_ns(&self) -> u64 {
        let arrival = self.arriving.first().map(|next| next.at_ns);
        let time = self.next_time();
        let next = [arrival, time].into_iter().flatten().min();
        next.unwrap_or(u64::MAX)
    }

    /// What happens next is behind us.
    pub fn take(&mut self) {
        match self.next() {
            Some(Next::Time(_)) => self.times_passed += 1,
            Some(Next::Packet(_)) => {
                Arc::make_mut(&mut self.arriving).remove(0);
            }
            None => {}
        }
    }

    /// Others that could arrive before the next packet: the first of each other sender that had sent it by then.
    fn racing(&self) -> Vec<usize> {
        let Some(first) = self.arriving.first() else {
            return Vec::new();
        };
        let mut senders = vec![first.from];
        let mut racing = Vec::new();
        for (at, other) in self.arriving.iter().enumerate() {
            if !senders.contains(&other.from) {
                senders.push(other.from);
                if other.packet.clock_ns < first.at_ns {
                    racing.push(at);
                }
            }
        }
        racing
    }

    /// Asks which of the packets that race for the host arrives first, where that can still be another one than by time. `true`
    /// if it is. Nothing is changed where the question has several answers.
    pub fn race(&mut self, oracle: &mut dyn Oracle) -> Result<bool, Interrupt> {
        let racing = match self.arriving.first() {
            Some(first) if !first.leads => self.racing(),
            _ => return Ok(false),
        };
        if racing.is_empty() {
            return Ok(false);
        }
        let site = ChoiceSite {
            name: "order:packet".to_owned(),
        };
        let picked = oracle.choose(&site, 1 + racing.len() as u32)? as usize;
        oracle.commit();
        let list = Arc::make_mut(&mut self.arriving);
        let at_ns = list[0].at_ns;
        if picked == 0 {
            list[0].leads = true;
            return Ok(false);
        }
        let mut winner = list.remove(racing[picked - 1]);
        winner.at_ns = at_ns.saturating_sub(1);
        winner.leads = true;
        list.insert(0, winner);
        Ok(true)
    }

    /// What becomes of the host when the next packet arrives is decided.
    pub fn is_met(&mut self) {
        if let Some(first) = Arc::make_mut(&mut self.arriving).first_mut() {
            first.met = true;
        }
    }

    /// Something has arrived: what is held back for others may be due before its time.
    pub fn let_others_follow(&mut self, now_ns: u64) {
        if self.arriving.iter().all(|arrival| arrival.behind == 0) {
            return;
        }
        let list = Arc::make_mut(&mut self.arriving);
        for arrival in list.iter_mut().filter(|arrival| arrival.behind > 0) {
            arrival.behind -= 1;
            if arrival.behind == 0 {
                arrival.at_ns = arrival.at_ns.min(now_ns);
            }
        }
        list.sort_by_key(Arrival::order);
    }

    /// The next arrival is due before anything else happens at a host whose clock shows this.
    pub fn is_due(&self, doing: Doing, clock_ns: u64, horizon_ns: u64) -> bool {
        let next_ns = self.next_ns();
        if next_ns == u64::MAX {
            return false;
        }
        match doing {
            Doing::Runs => next_ns <= clock_ns,
            Doing::Waits(until) | Doing::Off(until) => {
                next_ns <= until.unwrap_or(u64::MAX) && next_ns <= horizon_ns
            }
            Doing::Over => next_ns <= horizon_ns,
        }
    }

    /// When a host does something next; `u64::MAX` where nothing will happen.
    pub fn next_event_ns(&self, doing: Doing, clock_ns: u64) -> u64 {
        match doing {
            Doing::Runs => clock_ns,
            Doing::Waits(until) | Doing::Off(until) => {
                until.unwrap_or(u64::MAX).min(self.next_ns())
            }
            Doing::Over => self.next_ns(),
        }
    }
}

/// Where a packet goes.
pub enum Sent {
    /// To these hosts.
    To(Vec<HostIndex>, Arrival),
    /// Nobody can be reached: the sender learns it after a while, as from a router.
    Back(Arrival),
    /// Nowhere, and nobody learns it.
    Nowhere,
}

/// Sends a packet on its way: the one of this number that the host has sent.
pub fn send(
    topology: &Topology,
    from: HostIndex,
    packet: Packet,
    number: u64,
    links: &mut LinkState,
    known: &FaultCounters,
) -> Sent {
    let (targets, path): (Vec<HostIndex>, _) = match topology.route(from, packet.to.ip()) {
        Route::Local => return Sent::Nowhere,
        Route::Host { target, path } => (vec![target], path),
        Route::Many { hosts, path, .. } => {
            let others = hosts.iter().copied().filter(|host| *host != from);
            (others.collect(), path)
        }
        Route::Unreachable(why) => {
            return Sent::Back(bounced(topology, from, &packet, number, why));
        }
    };
    let size = HEADERS + payload(&packet);
    let way = topology.arrival_ns(path, packet.clock_ns, size, links);
    let mut arrival = Arrival {
        at_ns: packet.clock_ns.saturating_add(path.latency_ns),
        from,
        number,
        packet: Arc::new(packet),
        decided: false,
        behind: 0,
        again: 0,
        met: false,
        known: Arc::new(known.clone()),
        leads: false,
    };
    match way {
        everett_net::Arrival::At(time) => arrival.at_ns = time,
        // As on a real network, nobody is told that a queue was full.
        everett_net::Arrival::Dropped(_) if arrival.is_alone() => return Sent::Nowhere,
        // What TCP sends again is late, not lost.
        everett_net::Arrival::Dropped(_) => {
            arrival.at_ns = arrival.at_ns.saturating_add(SENT_AGAIN_NS);
        }
    }
    Sent::To(targets, arrival)
}

fn bounced(
    topology: &Topology,
    from: HostIndex,
    packet: &Packet,
    number: u64,
    why: Unreachable,
) -> Arrival {
    let errno = match why {
        Unreachable::NoRoute => Errno::ENETUNREACH,
        Unreachable::HostUnreachable => Errno::EHOSTUNREACH,
        Unreachable::PortUnreachable => Errno::ECONNREFUSED,
    };
    let answer = Packet {
        clock_ns: packet.clock_ns,
        from: packet.to,
        to: packet.from,
        kind: PacketKind::Unreachable(errno),
    };
    Arrival {
        at_ns: packet
            .clock_ns
            .saturating_add(2 * least_latency_ns(topology)),
        from,
        number,
        packet: Arc::new(answer),
        decided: true,
        behind: 0,
        again: 0,
        met: true,
        known: Arc::default(),
        leads: false,
    }
}

/// Shortest time that something takes to another host.
pub fn least_latency_ns(topology: &Topology) -> u64 {
    let latencies = topology.networks().iter().map(|network| network.latency_ns);
    latencies.min().unwrap_or(1).max(1)
}

/// What becomes of a packet that arrives.
pub struct Fated {
    /// It is delivered, as this.
    pub now: Option<Arc<Packet>>,
    /// It comes, or comes again, later.
    pub later: Option<Arrival>,
    /// What its sender learns, where it was lost for good.
    pub back: Option<Packet>,
    /// What was taken of what could have happened.
    pub taken: Option<Alternative<Fate>>,
    /// Why bytes of it may be anything, where they may.
    pub marks: Vec<FaultIndex>,
}

/// Asks what becomes of a packet that arrives at a host. Nothing is changed where a question has several answers.
pub fn arrive(
    oracle: &mut dyn Oracle,
    arena: &mut Arena,
    faults: &Faults,
    (at, doing): (HostIndex, Doing),
    arrival: &Arrival,
    counters: &mut FaultCounters,
) -> Result<Fated, Interrupt> {
    let known = described(arrival, at, doing);
    let (mut alternatives, mut marks) = (Vec::new(), Vec::new());
    if !arrival.decided {
        alternatives = faults.fates(&known, at, counters);
        marks = faults.marks(&known, at, counters);
    }
    let mut picked = 0;
    if alternatives.len() > 1 {
        let site = site(faults, &alternatives);
        picked = oracle.choose(&site, alternatives.len() as u32)? as usize;
    }
    let taken = alternatives.get(picked).copied();
    let packet = marked(
        oracle,
        arena,
        arrival,
        taken.map(|taken| taken.fate),
        &marks,
    )?;
    oracle.commit();
    if !arrival.decided {
        faults.note_packet(&known, at, &alternatives, picked, &marks, counters);
    }
    let is_twice = matches!(taken, Some(taken) if matches!(taken.fate, Fate::Twice { .. }));
    let again = |by_ns: u64, behind: u32| {
        Some(Arrival {
            // What only comes later has met the host already, what comes twice meets it twice.
            met: !is_twice,
            at_ns: arrival.at_ns.saturating_add(by_ns),
            packet: packet.clone(),
            decided: true,
            behind,
            ..arrival.clone()
        })
    };
    let (arrives, later) = match taken.map_or(Fate::Deliver, |taken| taken.fate) {
        Fate::Drop => (false, sent_again(arrival)),
        Fate::Delay { by_ns } => (false, again(by_ns, 0)),
        Fate::HoldBack { packets } => (false, again(MOST_HELD_NS, packets)),
        Fate::Twice { after_ns } => (true, again(after_ns, 0)),
        Fate::Deliver | Fate::Corrupt { .. } => (true, None),
    };
    let is_lost = !arrives && later.is_none();
    Ok(Fated {
        now: arrives.then_some(packet),
        later,
        back: is_lost.then(|| given_up(arrival)).flatten(),
        taken,
        marks: marks.iter().map(|mark| mark.fault).collect(),
    })
}

/// The name of the question what becomes of a packet.
fn site(faults: &Faults, alternatives: &[Alternative<Fate>]) -> ChoiceSite {
    let possible = alternatives.iter().filter_map(|other| other.fault);
    let names: Vec<&str> = possible
        .map(|fault| faults.get(fault).name.as_str())
        .collect();
    ChoiceSite {
        name: format!("fault:packet:{}", names.join(",")),
    }
}

/// What TCP sends again when it was lost, ever later; `None` where it gives up, or where nobody sends again.
pub(super) fn sent_again(arrival: &Arrival) -> Option<Arrival> {
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
pub fn described(arrival: &Arrival, to: HostIndex, doing: Doing) -> everett_net::Packet {
    /// It is late by so much, at least.
    const BEHIND_NS: u64 = 1_000;
    let misses_by_ns = match doing {
        Doing::Waits(Some(until)) => until.checked_sub(arrival.at_ns),
        _ => None,
    };
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
        misses_by_ns: misses_by_ns.map(|by_ns| by_ns.saturating_add(BEHIND_NS)),
    }
}

/// A packet with the bytes that may be anything.
fn marked(
    oracle: &mut dyn Oracle,
    arena: &mut Arena,
    arrival: &Arrival,
    fate: Option<Fate>,
    marks: &[Mark],
) -> Result<Arc<Packet>, Interrupt> {
    let corrupted = match fate {
        Some(Fate::Corrupt { offset, length }) => Some((offset, length, false)),
        _ => None,
    };
    let marks = marks.iter();
    let marks = marks.map(|mark| (mark.offset, mark.length, mark.printable));
    let mut packet = arrival.packet.clone();
    for (offset, length, printable) in corrupted.into_iter().chain(marks) {
        if let PacketKind::Datagram(bytes) | PacketKind::Data(bytes) =
            &mut Arc::make_mut(&mut packet).kind
        {
            make_symbolic(oracle, arena, bytes, (offset, length), printable)?;
        }
    }
    Ok(packet)
}

fn make_symbolic(
    oracle: &mut dyn Oracle,
    arena: &mut Arena,
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
