//! Filters: the packets that a fault applies to.

use std::ops::RangeInclusive;

use crate::packet::{Packet, Protocol};
use crate::topology::HostIndex;

/// A set of hosts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostSet {
    /// The hosts, sorted; `None` means all hosts.
    hosts: Option<Vec<HostIndex>>,
}

impl HostSet {
    /// All hosts.
    pub const ALL: HostSet = HostSet { hosts: None };

    /// Creates the set of these hosts.
    pub fn of(mut hosts: Vec<HostIndex>) -> HostSet {
        hosts.sort_unstable();
        hosts.dedup();
        HostSet { hosts: Some(hosts) }
    }

    /// Returns whether the set contains a host.
    pub fn contains(&self, host: HostIndex) -> bool {
        match &self.hosts {
            Some(hosts) => hosts.binary_search(&host).is_ok(),
            None => true,
        }
    }

    /// Returns the hosts in order; `None` means all.
    pub fn hosts(&self) -> Option<&[HostIndex]> {
        self.hosts.as_deref()
    }
}

macro_rules! range {
    ($(#[$doc:meta])* $name:ident, $number:ty) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct $name(pub RangeInclusive<$number>);

        impl Default for $name {
            fn default() -> $name {
                $name(0..=<$number>::MAX)
            }
        }

        impl $name {
            /// Returns whether the set contains a number.
            pub fn contains(&self, number: $number) -> bool {
                self.0.contains(&number)
            }

            /// Returns whether the set contains all numbers.
            pub fn is_all(&self) -> bool {
                *self == $name::default()
            }
        }
    };
}

range! {
    /// Indices among the matching packets, from 1.
    Numbers, u32
}
range! {
    /// Payload sizes.
    Sizes, u32
}
range! {
    /// Send times in nanoseconds.
    Times, u64
}

/// A set of ports; empty means all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ports(pub Vec<RangeInclusive<u16>>);

impl Ports {
    /// Returns whether the set contains a port.
    pub fn contains(&self, port: u16) -> bool {
        self.0.is_empty() || self.0.iter().any(|range| range.contains(&port))
    }
}

/// The packets that a fault applies to: those that match all of these.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Senders.
    pub from: HostSet,
    /// Receivers.
    pub to: HostSet,
    /// Protocols; empty means all.
    pub protocols: Vec<Protocol>,
    /// Source ports.
    pub source_ports: Ports,
    /// Destination ports.
    pub ports: Ports,
    /// Indices among the packets that match everything else, as counted by the host that is asked.
    pub numbers: Numbers,
    /// Send times.
    pub times: Times,
    /// Payload sizes.
    pub sizes: Sizes,
}

impl Filter {
    /// Returns whether a packet matches, apart from its index.
    pub fn fits(&self, packet: &Packet) -> bool {
        (self.protocols.is_empty() || self.protocols.contains(&packet.protocol))
            && self.from.contains(packet.from)
            && self.to.contains(packet.to)
            && self.source_ports.contains(packet.source.port())
            && self.ports.contains(packet.destination.port())
            && self.times.contains(packet.sent_ns)
            && self.sizes.contains(packet.size)
    }
}
