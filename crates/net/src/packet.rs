//! Packet metadata: everything except the payload bytes.

use std::fmt;
use std::net::SocketAddr;

use crate::topology::HostIndex;

/// The transport protocol of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Protocol {
    /// UDP datagrams.
    Udp,
    /// TCP segments.
    Tcp,
    /// ICMP errors and echoes.
    Icmp,
    /// Other packets of raw and packet sockets.
    Raw,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Protocol; 4] = [Protocol::Udp, Protocol::Tcp, Protocol::Icmp, Protocol::Raw];

    /// Returns the name in scenario files.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Udp => "udp",
            Protocol::Tcp => "tcp",
            Protocol::Icmp => "icmp",
            Protocol::Raw => "raw",
        }
    }

    /// Finds a protocol by name.
    pub fn from_name(name: &str) -> Option<Protocol> {
        Protocol::ALL
            .into_iter()
            .find(|protocol| protocol.name() == name)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The metadata of a packet from one host to one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The sender.
    pub from: HostIndex,
    /// The receiver; for a multicast, one of the receivers.
    pub to: HostIndex,
    /// The protocol.
    pub protocol: Protocol,
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port.
    pub destination: SocketAddr,
    /// Payload size in bytes.
    pub size: u32,
    /// Send time on the world's clock.
    pub sent_ns: u64,
    /// The additional delay after which the packet would just miss the receiver's timeout, if the
    /// receiver waits with one.
    pub misses_by_ns: Option<u64>,
}
