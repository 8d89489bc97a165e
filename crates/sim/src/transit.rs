//! Packets in transit: where they go, when they arrive, and what network faults do to them on
//! arrival.
//!
//! Pure functions over the topology, the fault table and an [`Oracle`], which explored and native
//! hosts share.

use everett_expr::Arena;
use everett_linux::{Errno, Packet, PacketKind, protocol};
use everett_net::{
    Alternative, DeliveryOutcome, FaultCounters, FaultIndex, Faults, HostIndex, LinkState,
    Protocol, Route, SymbolicRange, Topology, Unreachable,
};
use everett_vm::{Buffer, ChoiceSite, Interrupt, Oracle, Value};
use std::sync::Arc;

use crate::arrival::{Arrival, connection_timeout};
use crate::inbox::RunState;

/// Approximate size of the headers of a packet (Ethernet, IP and TCP or UDP).
const HEADER_BYTES: u64 = 54;
/// The first retransmission timeout of TCP.
const RETRANSMIT_NS: u64 = 200_000_000;
/// Maximum time for which a packet is held back behind others.
const MAX_HELD_NS: u64 = 1_000_000_000;

/// The route of a packet through the network.
pub enum Routed {
    /// To these hosts.
    To(Vec<HostIndex>, Arrival),
    /// No host can be reached; the sender gets this ICMP error back.
    Bounced(Arrival),
    /// Dropped without notice.
    Dropped,
}

/// Routes a packet that a host sent; `number` is its sequence number at that host.
pub fn route(
    topology: &Topology,
    from: HostIndex,
    packet: Packet,
    number: u64,
    links: &mut LinkState,
    known: &FaultCounters,
) -> Routed {
    let Some(next_hop) = packet.next_hop() else {
        return Routed::Dropped;
    };
    let (targets, path): (Vec<HostIndex>, _) = match topology.route(from, next_hop) {
        Route::Local => return Routed::Dropped,
        Route::Host { target, path } => (vec![target], path),
        Route::Multicast { hosts, path, .. } => {
            let others = hosts.iter().copied().filter(|host| *host != from);
            (others.collect(), path)
        }
        // Nobody answers for hardware addresses.
        Route::Unreachable(_) if is_by_hardware(&packet) => return Routed::Dropped,
        Route::Unreachable(why) => {
            return Routed::Bounced(bounced(topology, from, &packet, number, why));
        }
    };
    let size = HEADER_BYTES + payload_len(&packet);
    let way = topology.arrival_ns(path, packet.clock_ns, size, links);
    let mut arrival = Arrival {
        at_ns: packet.clock_ns.saturating_add(path.latency_ns),
        from,
        number,
        packet: Arc::new(packet),
        decided: false,
        held_behind: 0,
        held_since: None,
        retransmissions: 0,
        host_faults_decided: false,
        known: Arc::new(known.clone()),
        wins_race: false,
    };
    match way {
        everett_net::Arrival::At(time) => arrival.at_ns = time,
        // As on a real network, a full queue drops datagrams without notice.
        everett_net::Arrival::Dropped(_) if arrival.is_connectionless() => return Routed::Dropped,
        // TCP retransmits: a segment is late, not lost.
        everett_net::Arrival::Dropped(_) => {
            arrival.at_ns = arrival.at_ns.saturating_add(RETRANSMIT_NS);
        }
    }
    Routed::To(targets, arrival)
}

fn is_by_hardware(packet: &Packet) -> bool {
    matches!(&packet.kind, PacketKind::Frame(frame) if frame.hardware.is_some())
}

/// Returns the ICMP error for a packet that cannot be routed.
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
        kind: PacketKind::Unreachable {
            errno,
            quoted: packet.quoted(),
        },
    };
    Arrival {
        at_ns: packet
            .clock_ns
            .saturating_add(2 * least_latency_ns(topology)),
        from,
        number,
        packet: Arc::new(answer),
        decided: true,
        held_behind: 0,
        held_since: None,
        retransmissions: 0,
        host_faults_decided: true,
        known: Arc::default(),
        wins_race: false,
    }
}

/// Returns the least latency between two hosts, which is the lookahead of the simulation.
pub fn least_latency_ns(topology: &Topology) -> u64 {
    let latencies = topology.networks().iter().map(|network| network.latency_ns);
    latencies.min().unwrap_or(1).max(1)
}

/// The outcome of an arrival.
pub struct Delivery {
    /// The packet that the host receives now, if it does.
    pub delivered: Option<Arc<Packet>>,
    /// The arrival, or second arrival, of the packet at a later time.
    pub later: Option<Arrival>,
    /// The error that the sender gets if the packet is lost for good.
    pub bounce: Option<Packet>,
    /// The network fault that was chosen among the possible ones.
    pub taken: Option<Alternative<DeliveryOutcome>>,
    /// Faults that made bytes of the packet symbolic.
    pub marks: Vec<FaultIndex>,
}

/// Decides which network faults happen to an arrival, and delivers it accordingly. Changes nothing
/// while a question is open.
pub fn deliver(
    oracle: &mut dyn Oracle,
    arena: &mut Arena,
    faults: &Faults,
    (at, run_state): (HostIndex, RunState),
    arrival: &Arrival,
    counters: &mut FaultCounters,
) -> Result<Delivery, Interrupt> {
    let known = packet_info(arrival, at, run_state);
    let (mut alternatives, mut marks) = (Vec::new(), Vec::new());
    if !arrival.decided {
        alternatives = faults.delivery_outcomes(&known, at, counters);
        marks = faults.symbolic_ranges(&known, at, counters);
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
        taken.map(|taken| taken.effect),
        &marks,
    )?;
    oracle.commit();
    if !arrival.decided {
        faults.record_packet(&known, at, &alternatives, picked, &marks, counters);
    }
    let is_twice =
        matches!(taken, Some(taken) if matches!(taken.effect, DeliveryOutcome::Duplicate { .. }));
    let again = |by_ns: u64, held_behind: u32| {
        Some(Arrival {
            // Host faults at a late packet are already decided; a duplicate may cause another one.
            host_faults_decided: !is_twice,
            // The packet may race again.
            wins_race: false,
            at_ns: arrival.at_ns.saturating_add(by_ns),
            packet: packet.clone(),
            decided: true,
            held_behind,
            ..arrival.clone()
        })
    };
    let (arrives, later) = match taken.map_or(DeliveryOutcome::Deliver, |taken| taken.effect) {
        DeliveryOutcome::Drop => (false, retransmitted(arrival)),
        DeliveryOutcome::Delay { by_ns } => (false, again(by_ns, 0)),
        DeliveryOutcome::HoldBack { packets } => (false, again(MAX_HELD_NS, packets)),
        DeliveryOutcome::Duplicate { after_ns } => (true, again(after_ns, 0)),
        DeliveryOutcome::Deliver | DeliveryOutcome::Corrupt { .. } => (true, None),
    };
    let is_lost = !arrives && later.is_none();
    Ok(Delivery {
        delivered: arrives.then_some(packet),
        later,
        bounce: is_lost.then(|| connection_timeout(arrival)).flatten(),
        taken,
        marks: marks.iter().map(|mark| mark.fault).collect(),
    })
}

/// Returns the site of the choice between the network faults that can happen to a packet.
fn site(faults: &Faults, alternatives: &[Alternative<DeliveryOutcome>]) -> ChoiceSite {
    let possible = alternatives.iter().filter_map(|other| other.fault);
    let names = possible.map(|fault| faults.get(fault).name.as_str());
    ChoiceSite::PacketFault {
        faults: names.collect(),
    }
}

/// Returns the retransmission of a lost TCP segment, with exponential backoff; `None` if TCP gives
/// up, and for datagrams.
pub(crate) fn retransmitted(arrival: &Arrival) -> Option<Arrival> {
    const MOST: u32 = 10;
    if arrival.is_connectionless() || arrival.retransmissions >= MOST {
        return None;
    }
    let wait = RETRANSMIT_NS << arrival.retransmissions;
    let packet = Packet {
        clock_ns: arrival.at_ns.saturating_add(wait),
        ..(*arrival.packet).clone()
    };
    Some(Arrival {
        at_ns: arrival.at_ns.saturating_add(wait),
        packet: Arc::new(packet),
        retransmissions: arrival.retransmissions + 1,
        wins_race: false,
        ..arrival.clone()
    })
}

fn payload_len(packet: &Packet) -> u64 {
    packet.payload().map_or(0, |bytes| bytes.len() as u64)
}

/// Returns the properties of a packet that filters of faults match.
pub fn packet_info(arrival: &Arrival, to: HostIndex, run_state: RunState) -> everett_net::Packet {
    /// How long after the receiver's timeout a "late" packet arrives.
    const PAST_TIMEOUT_NS: u64 = 1_000;
    let misses_by_ns = match run_state {
        RunState::Waiting(Some(until)) => until.checked_sub(arrival.at_ns),
        _ => None,
    };
    let packet = &arrival.packet;
    let protocol = match &packet.kind {
        PacketKind::Datagram(_) => Protocol::Udp,
        PacketKind::Unreachable { .. } => Protocol::Icmp,
        PacketKind::Frame(frame) => match frame.ip.as_ref().map(|ip| ip.protocol()) {
            Some(protocol::UDP) => Protocol::Udp,
            Some(protocol::ICMP) => Protocol::Icmp,
            _ => Protocol::Raw,
        },
        _ => Protocol::Tcp,
    };
    everett_net::Packet {
        from: arrival.from,
        to,
        protocol,
        source: packet.from,
        destination: packet.to,
        size: payload_len(packet) as u32,
        sent_ns: packet.clock_ns,
        misses_by_ns: misses_by_ns.map(|by_ns| by_ns.saturating_add(PAST_TIMEOUT_NS)),
    }
}

/// Returns the packet with the bytes that faults made symbolic.
fn marked(
    oracle: &mut dyn Oracle,
    arena: &mut Arena,
    arrival: &Arrival,
    outcome: Option<DeliveryOutcome>,
    marks: &[SymbolicRange],
) -> Result<Arc<Packet>, Interrupt> {
    let corrupted = match outcome {
        Some(DeliveryOutcome::Corrupt { offset, length }) => Some((offset, length, false)),
        _ => None,
    };
    let marks = marks.iter();
    let marks = marks.map(|mark| (mark.offset, mark.length, mark.printable));
    let mut packet = arrival.packet.clone();
    for (offset, length, printable) in corrupted.into_iter().chain(marks) {
        if let Some(bytes) = Arc::make_mut(&mut packet).payload_mut() {
            make_symbolic(oracle, arena, bytes, (offset, length), printable)?;
        }
    }
    Ok(packet)
}

/// Replaces bytes of a packet by a new symbolic input.
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
