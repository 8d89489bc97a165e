//! The log of packets: what the internet sockets of a host send each other, for programs that show such things.

use std::net::SocketAddr;

use everett_vm::Buffer;
use triomphe::Arc;

use crate::errno::Errno;
use crate::host::{Host, HostState};
use crate::objects::ObjectId;

/// What a packet is about.
#[derive(Clone, Debug)]
pub enum PacketKind {
    /// A connection to another host is asked for; there is room for so many bytes at this end.
    Request {
        /// How many.
        room: u64,
    },
    /// A connection from another host is taken; there is room for so many bytes at this end.
    Accepted {
        /// How many.
        room: u64,
    },
    /// There is room for so many more bytes at this end of a connection to another host.
    Room {
        /// How many.
        more: u64,
    },
    /// What was sent cannot be delivered.
    Unreachable(Errno),
    /// A connection was made.
    Opened,
    /// Nobody takes connections there.
    Refused,
    /// Bytes of a connection.
    Data(Buffer),
    /// Nothing more will be sent.
    End,
    /// The connection is broken off.
    Reset,
    /// A datagram of UDP.
    Datagram(Buffer),
}

/// A packet, as far as the model knows it.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Virtual time since the start.
    pub clock_ns: u64,
    /// Who sent it.
    pub from: SocketAddr,
    /// To whom.
    pub to: SocketAddr,
    /// What it is about.
    pub kind: PacketKind,
}

impl HostState {
    /// Notes a packet, where they are noted.
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

    /// Notes a packet that a TCP socket sends to its peer.
    pub(crate) fn log_sent(&mut self, socket: ObjectId, kind: PacketKind) {
        if let Some((local, remote)) = self.ends_of(socket) {
            self.log_packet(local, remote, kind);
        }
    }

    /// Notes a packet that comes to a TCP socket from its peer.
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
    /// The log of packets, where the host keeps one.
    pub fn packets(&self) -> &[Packet] {
        self.state.packets.as_deref().map_or(&[], Vec::as_slice)
    }
}
