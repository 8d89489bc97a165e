//! The post between hosts: where packets go, when they arrive, and what becomes of them. The same for hosts that are explored and for
//! native ones.

use everett_expr::Arena;
use everett_linux::{Errno, Packet, PacketKind};
use everett_net::{
    Alternative, Fate, FaultCounters, FaultIndex, Faults, HostIndex, LinkState, Mark, Protocol,
    Route, Topology, Unreachable,
};
use everett_vm::{Buffer, ChoiceSite, Interrupt, Oracle, Value};
use std::hash::Hash;
use std::mem::discriminant;
use std::sync::Arc;

use super::mailbox::Doing;
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
            PacketKind::Datagram(bytes) | PacketKind::Data(bytes) => Some(bytes),
            _ => None,
        };
        let room = match &packet.kind {
            PacketKind::Syn { window } | PacketKind::SynAck { window } => *window,
            PacketKind::WindowUpdate { bytes: more } => *more,
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

    pub(super) fn is_of_stream(&self, other: &Arrival) -> bool {
        let ends = |one: &Arrival| (one.packet.from, one.packet.to);
        !self.is_alone() && ends(self) == ends(other)
    }

    pub(super) fn order(&self) -> (u64, HostIndex, u64) {
        (self.at_ns, self.from, self.number)
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
            // And it may race with others again.
            leads: false,
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
        leads: false,
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
