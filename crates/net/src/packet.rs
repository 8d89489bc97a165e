//! What is known of a packet on its way, apart from its bytes.

use std::fmt;
use std::net::SocketAddr;

use crate::topology::HostIndex;

/// What a packet belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Protocol {
    /// Datagrams.
    Udp,
    /// Parts of streams.
    Tcp,
    /// Errors and echoes.
    Icmp,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Protocol; 3] = [Protocol::Udp, Protocol::Tcp, Protocol::Icmp];

    /// As in scenario files.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Udp => "udp",
            Protocol::Tcp => "tcp",
            Protocol::Icmp => "icmp",
        }
    }

    /// The protocol of this name.
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

/// One packet from one host to one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Who sends it.
    pub from: HostIndex,
    /// Whom it is for; one of them where it is for many.
    pub to: HostIndex,
    /// What it belongs to.
    pub protocol: Protocol,
    /// Address and port that it comes from.
    pub source: SocketAddr,
    /// Address and port that it goes to.
    pub destination: SocketAddr,
    /// Bytes of its payload.
    pub size: u32,
    /// When it was sent, on the clock of the world.
    pub sent_ns: u64,
    /// How much later it would arrive just behind the time until which its receiver waits, where that is so.
    pub misses_by_ns: Option<u64>,
}
