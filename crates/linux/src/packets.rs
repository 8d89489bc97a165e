//! Packets between internet sockets, and the state of a host's network interface ([`Wire`]).

use everett_expr::{ExprId, VisitTerms};
use everett_vm::Buffer;
use std::net::{IpAddr, SocketAddr};

use crate::errno::Errno;
use crate::frames::{Datagram, Frame};
use crate::outcome::HostExit;

/// Contents of a packet.
#[derive(Clone, Debug)]
pub enum PacketKind {
    /// A connection request to another host, with the receive window of the sender.
    Syn {
        /// Window in bytes.
        window: u64,
    },
    /// The acceptance of a connection from another host, with the receive window of the sender.
    SynAck {
        /// Window in bytes.
        window: u64,
    },
    /// A window update: the sender can receive more bytes.
    WindowUpdate {
        /// Additional bytes.
        bytes: u64,
    },
    /// A packet could not be delivered.
    Unreachable {
        /// The error that the sender of the packet gets.
        errno: Errno,
        /// The start of that packet, with its IP header; empty for TCP.
        quoted: Buffer,
    },
    /// A connection was established on the same host.
    Established,
    /// No socket listens at the destination.
    Refused,
    /// One of the next bytes of a stream is urgent.
    Urgent {
        /// Number of bytes before it.
        ahead: u64,
    },
    /// Bytes of a stream.
    Data(Buffer),
    /// End of the stream in this direction.
    Fin,
    /// The connection is reset.
    Reset,
    /// A UDP datagram.
    Datagram(Datagram),
    /// A frame that a raw or packet socket sends, or the kernel's reply to one.
    Frame(Box<Frame>),
}

/// A packet, at the level of detail of the model.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Virtual time since boot.
    pub clock_ns: u64,
    /// Source address.
    pub from: SocketAddr,
    /// Destination address.
    pub to: SocketAddr,
    /// Contents.
    pub kind: PacketKind,
}

impl Packet {
    /// Its payload, if it has one.
    pub fn payload(&self) -> Option<&Buffer> {
        match &self.kind {
            PacketKind::Datagram(datagram) => Some(&datagram.bytes),
            PacketKind::Data(bytes) => Some(bytes),
            PacketKind::Frame(frame) => Some(&frame.payload),
            _ => None,
        }
    }

    /// Its payload, for changing it.
    pub fn payload_mut(&mut self) -> Option<&mut Buffer> {
        let has_payload = self.payload().is_some();
        self.bytes_mut().filter(|_| has_payload)
    }

    /// All bytes in it that can be symbolic: the payload, or the quoted packet.
    pub fn bytes(&self) -> Option<&Buffer> {
        match &self.kind {
            PacketKind::Unreachable { quoted, .. } => Some(quoted),
            _ => self.payload(),
        }
    }

    /// All bytes in it that can be symbolic, for changing them.
    pub fn bytes_mut(&mut self) -> Option<&mut Buffer> {
        match &mut self.kind {
            PacketKind::Unreachable { quoted, .. } => Some(quoted),
            PacketKind::Datagram(datagram) => Some(&mut datagram.bytes),
            PacketKind::Data(bytes) => Some(bytes),
            PacketKind::Frame(frame) => Some(&mut frame.payload),
            _ => None,
        }
    }

    /// Its start, as an ICMP error quotes it; empty for TCP.
    pub fn quoted(&self) -> Buffer {
        let frame = match &self.kind {
            PacketKind::Datagram(datagram) => Frame::udp(self.from, self.to, datagram),
            PacketKind::Frame(frame) => return frame.quoted(),
            _ => None,
        };
        frame.map_or_else(|| Buffer::zeroed(0), |frame| frame.quoted())
    }

    /// The address of its next hop; `None` if no host has its hardware address.
    pub fn next_hop(&self) -> Option<IpAddr> {
        match &self.kind {
            PacketKind::Frame(frame) => frame.next_hop(),
            _ => Some(self.to.ip()),
        }
    }

    /// All terms in it.
    pub fn terms(&self) -> impl Iterator<Item = ExprId> + '_ {
        self.bytes().into_iter().flat_map(Buffer::terms)
    }
}

/// The network interface of a host.
#[derive(Clone, Debug)]
pub struct Wire {
    /// There are other hosts.
    pub is_networked: bool,
    /// The clock must not pass this time: a packet may arrive then.
    pub(crate) horizon_ns: u64,
    /// The host returns to its driver whenever it waits, even if its clock could jump to a
    /// deadline.
    pub(crate) stops_at_waits: bool,
    /// How many more times the clock may jump to a deadline while all threads are blocked.
    pub(crate) waits_left: u64,
    /// Packets to be sent.
    pub(crate) sent: Vec<Packet>,
    /// Exposed data has changed since the driver last took it.
    pub(crate) exposed: bool,
    /// The states and keys under which programs have exposed data since the driver last took it.
    pub(crate) shown: Vec<(String, String)>,
    /// The states and keys of the data that the driver took last.
    pub(crate) just_shown: Vec<(String, String)>,
    /// The system call that is about to be made, if the driver has not taken it yet.
    pub(crate) call: Option<&'static str>,
    /// Connection requests that found the listen queue full, and when they are retried.
    pub(crate) retries: Vec<(u64, Packet)>,
}

/// Delay before a connection request is retried.
const CONNECT_RETRY_NS: u64 = 1_000_000_000;

impl Wire {
    /// The network interface at boot.
    pub fn new(is_networked: bool) -> Wire {
        Wire {
            is_networked,
            horizon_ns: u64::MAX,
            stops_at_waits: false,
            waits_left: u64::MAX,
            sent: Vec::new(),
            exposed: false,
            shown: Vec::new(),
            just_shown: Vec::new(),
            call: None,
            retries: Vec::new(),
        }
    }

    /// Makes the driver set a new horizon before the host continues.
    pub(crate) fn reset_horizon(&mut self) {
        self.horizon_ns = 0;
    }

    /// Records that exposed data has changed.
    pub(crate) fn mark_exposed(&mut self) {
        self.exposed = self.is_networked;
    }

    /// Schedules a retry of a connection request.
    pub(crate) fn schedule_retry(&mut self, clock_ns: u64, packet: Packet) {
        self.retries
            .push((clock_ns.saturating_add(CONNECT_RETRY_NS), packet));
    }

    /// Time of the next retry.
    pub(crate) fn next_retry(&self) -> Option<u64> {
        self.retries.iter().map(|(at, _)| *at).min()
    }

    /// Whether the driver must act before the host continues.
    pub(crate) fn interrupts(&self, clock_ns: u64) -> bool {
        self.exposed || self.call.is_some() || !self.sent.is_empty() || clock_ns > self.horizon_ns
    }

    /// The reason why the driver must act before the host continues.
    pub(crate) fn exit(&self, clock_ns: u64) -> Option<HostExit> {
        if self.exposed {
            Some(HostExit::Exposed)
        } else if let Some(name) = self.call {
            Some(HostExit::AtCall(name))
        } else if !self.sent.is_empty() {
            Some(HostExit::Sent)
        } else {
            (clock_ns > self.horizon_ns).then_some(HostExit::Horizon)
        }
    }

    /// Counts a jump of the clock to a deadline. Returns `false` if the driver must act first: the
    /// deadline is beyond the horizon, or no jump is left but the last.
    pub(crate) fn may_jump(&mut self, deadline_ns: u64) -> bool {
        let may = deadline_ns <= self.horizon_ns && self.waits_left > 1;
        self.waits_left -= u64::from(may);
        may
    }
}

impl Wire {
    /// Visits all terms in packets.
    pub(crate) fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        let retries = self.retries.iter().map(|(_, packet)| packet);
        for packet in self.sent.iter().chain(retries) {
            packet.terms().for_each(|term| visit.term(term));
        }
    }
}
