//! A packet in transit to a host, with the time of its arrival.

use everett_expr::{Arena, Digest128};
use everett_linux::{Errno, Packet, PacketKind};
use everett_net::{FaultCounters, HostIndex};
use everett_vm::Buffer;
use std::hash::Hash;
use std::mem::discriminant;
use std::sync::Arc;

/// A packet in transit to a host.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The time of its arrival.
    pub at_ns: u64,
    /// The host that sent it.
    pub from: HostIndex,
    /// The sequence number among the packets of that sender, which breaks ties between simultaneous
    /// arrivals.
    pub number: u64,
    /// The packet.
    pub packet: Arc<Packet>,
    /// Whether network faults were already decided for the packet.
    pub decided: bool,
    /// The number of other packets that must arrive before this one, unless its time comes first.
    pub held_behind: u32,
    /// When the packet was held back, as the number of earlier events of the inbox; later packets
    /// are those pushed after that.
    pub held_since: Option<u64>,
    /// How often TCP has retransmitted the packet.
    pub retransmissions: u32,
    /// Whether host faults at this arrival were already decided.
    pub host_faults_decided: bool,
    /// The faults in the causal past of the sender when it sent the packet.
    pub known: Arc<FaultCounters>,
    /// Whether the packet has won a race: it arrives before the packets that it raced with.
    pub wins_race: bool,
}

impl Arrival {
    /// Returns everything that the receiver can distinguish about the packet, with its payload by
    /// content. It is part of the receiver's history.
    pub fn content(&self, arena: &mut Arena) -> impl Hash + use<'_> {
        let packet = &self.packet;
        let room = match &packet.kind {
            PacketKind::Syn { window } | PacketKind::SynAck { window } => *window,
            PacketKind::WindowUpdate { bytes } => *bytes,
            PacketKind::Urgent { ahead } => *ahead,
            PacketKind::Unreachable { errno, .. } => errno.result(),
            _ => 0,
        };
        let when = (self.at_ns, packet.clock_ns, self.from);
        let what = discriminant(&packet.kind);
        let ends = (packet.from, packet.to);
        let frame = match &packet.kind {
            PacketKind::Frame(frame) => Some((frame.hardware, frame.ethertype, &frame.ip)),
            _ => None,
        };
        let payload = packet.bytes();
        let payload = payload.map(|bytes| bytes.digest(arena, Digest128::new()).finish());
        (when, ends, what, (payload, frame), room, &*self.known)
    }

    /// Returns whether the packet does not belong to a TCP stream.
    pub fn is_connectionless(&self) -> bool {
        matches!(
            self.packet.kind,
            PacketKind::Datagram(_) | PacketKind::Frame(_) | PacketKind::Unreachable { .. }
        )
    }

    /// Returns whether both packets belong to the same direction of one TCP stream.
    pub(crate) fn is_same_stream(&self, other: &Arrival) -> bool {
        let ends = |one: &Arrival| (one.packet.from, one.packet.to);
        !self.is_connectionless() && ends(self) == ends(other)
    }

    /// Returns the key by which arrivals are ordered.
    pub(crate) fn order(&self) -> (u64, u64, HostIndex, u64) {
        // Of several packets that were held back until now, the one held back longest comes first.
        let since = self.held_since.unwrap_or(u64::MAX);
        (self.at_ns, since, self.from, self.number)
    }
}

/// Returns the error that the sender of a TCP segment gets if it is never acknowledged.
pub fn connection_timeout(arrival: &Arrival) -> Option<Packet> {
    let after_ns = match &arrival.packet.kind {
        PacketKind::Syn { .. } => CONNECT_TIMEOUT_NS,
        PacketKind::Data(_) | PacketKind::Urgent { .. } | PacketKind::Fin => STREAM_TIMEOUT_NS,
        _ => return None,
    };
    Some(Packet {
        clock_ns: arrival.at_ns.saturating_add(after_ns),
        from: arrival.packet.to,
        to: arrival.packet.from,
        kind: PacketKind::Unreachable {
            errno: Errno::ETIMEDOUT,
            quoted: Buffer::zeroed(0),
        },
    })
}

/// How long TCP tries to connect to a host that is gone.
pub(crate) const CONNECT_TIMEOUT_NS: u64 = 127_000_000_000;

/// How long TCP retransmits to a host that is gone, on an established connection.
pub(crate) const STREAM_TIMEOUT_NS: u64 = 924_000_000_000;
