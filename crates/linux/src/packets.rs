//! Packets between internet sockets, and the log of them.

use std::net::{IpAddr, SocketAddr};

use everett_expr::ExprId;
use everett_vm::Buffer;
use triomphe::Arc;

use crate::errno::Errno;
use crate::frames::{Frame, USUAL_TTL};
use crate::host::{Host, HostState};
use crate::objects::ObjectId;

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
        /// Why, as the sender of the packet is told.
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
        /// How many come before it.
        ahead: u64,
    },
    /// Bytes of a stream.
    Data(Buffer),
    /// End of the stream in this direction.
    Fin,
    /// The connection is reset.
    Reset,
    /// A UDP datagram.
    Datagram(Buffer),
    /// What a raw or packet socket sends, or what the kernel answers to that.
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
    /// Its payload, where it has one.
    pub fn payload(&self) -> Option<&Buffer> {
        match &self.kind {
            PacketKind::Datagram(bytes) | PacketKind::Data(bytes) => Some(bytes),
            PacketKind::Frame(frame) => Some(&frame.payload),
            _ => None,
        }
    }

    /// Its payload, for changing it.
    pub fn payload_mut(&mut self) -> Option<&mut Buffer> {
        let has_payload = self.payload().is_some();
        self.bytes_mut().filter(|_| has_payload)
    }

    /// All bytes in it that can be symbolic: its payload, or what it quotes.
    pub fn bytes(&self) -> Option<&Buffer> {
        match &self.kind {
            PacketKind::Unreachable { quoted, .. } => Some(quoted),
            _ => self.payload(),
        }
    }

    /// The same, for changing them.
    pub fn bytes_mut(&mut self) -> Option<&mut Buffer> {
        match &mut self.kind {
            PacketKind::Unreachable { quoted, .. } => Some(quoted),
            PacketKind::Datagram(bytes) | PacketKind::Data(bytes) => Some(bytes),
            PacketKind::Frame(frame) => Some(&mut frame.payload),
            _ => None,
        }
    }

    /// Its start, as an ICMP error quotes it; nothing of TCP.
    pub fn quoted(&self) -> Buffer {
        let frame = match &self.kind {
            PacketKind::Datagram(bytes) => Frame::udp(self.from, self.to, USUAL_TTL, bytes),
            PacketKind::Frame(frame) => return frame.quoted(),
            _ => None,
        };
        frame.map_or_else(|| Buffer::zeroed(0), |frame| frame.quoted())
    }

    /// The address of the host that it goes to; `None` if no host has its hardware address.
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

impl HostState {
    /// Logs a packet, if packets are logged.
    pub(crate) fn log_packet(&mut self, from: SocketAddr, to: SocketAddr, kind: PacketKind) {
        let clock_ns = self.clock_ns;
        if let Some(packets) = &mut self.packets {
            Arc::make_mut(packets).push(Packet {
                clock_ns,
                from,
                to,
                kind,
            });
        }
    }

    /// Logs a packet that a TCP socket sends to its peer.
    pub(crate) fn log_sent(&mut self, socket: ObjectId, kind: PacketKind) {
        if let Some((local, remote)) = self.ends_of(socket) {
            self.log_packet(local, remote, kind);
        }
    }

    /// Logs a packet that a TCP socket receives from its peer.
    pub(crate) fn log_received(&mut self, socket: ObjectId, kind: PacketKind) {
        if let Some((local, remote)) = self.ends_of(socket) {
            self.log_packet(remote, local, kind);
        }
    }

    fn ends_of(&self, socket: ObjectId) -> Option<(SocketAddr, SocketAddr)> {
        self.packets.as_ref()?;
        let socket = self.socket(socket).filter(|socket| socket.is_tcp())?;
        socket.local.internet().zip(socket.remote.internet())
    }
}

impl Host {
    /// The log of packets; empty if packets are not logged.
    pub fn packets(&self) -> &[Packet] {
        self.state.packets.as_deref().map_or(&[], Vec::as_slice)
    }
}
