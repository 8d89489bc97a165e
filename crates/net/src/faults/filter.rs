//! Which packets a fault is about.

use std::ops::RangeInclusive;

use crate::packet::{Packet, Protocol};
use crate::topology::HostIndex;

/// Some hosts, or all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostSet {
    /// In order; `None` means all.
    hosts: Option<Vec<HostIndex>>,
}

impl HostSet {
    /// All hosts.
    pub const ALL: HostSet = HostSet { hosts: None };

    /// These hosts.
    pub fn of(mut hosts: Vec<HostIndex>) -> HostSet {
        hosts.sort_unstable();
        hosts.dedup();
        HostSet { hosts: Some(hosts) }
    }

    /// The host is one of them.
    pub fn contains(&self, host: HostIndex) -> bool {
        match &self.hosts {
            Some(hosts) => hosts.binary_search(&host).is_ok(),
            None => true,
        }
    }

    /// Which, in order; `None` means all.
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
            /// The number is among them.
            pub fn contains(&self, number: $number) -> bool {
                self.0.contains(&number)
            }

            /// All numbers are among them.
            pub fn is_all(&self) -> bool {
                *self == $name::default()
            }
        }
    };
}

range! {
    /// Which of the fitting packets, counted from 1.
    Numbers, u32
}
range! {
    /// Sizes of payloads.
    Sizes, u32
}
range! {
    /// Times of sending, in nanoseconds.
    Times, u64
}

/// Some ports; all where there are none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ports(pub Vec<RangeInclusive<u16>>);

impl Ports {
    /// The port is among them.
    pub fn contains(&self, port: u16) -> bool {
        self.0.is_empty() || self.0.iter().any(|range| range.contains(&port))
    }
}

/// Which packets a fault is about: all that fit all of these.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Who sends.
    pub from: HostSet,
    /// Who receives.
    pub to: HostSet,
    /// What it belongs to; anything where there is none.
    pub protocols: Vec<Protocol>,
    /// Port that it comes from.
    pub source_ports: Ports,
    /// Port that it goes to.
    pub ports: Ports,
    /// Which of those that fit all the others, as the host counts them that is asked.
    pub numbers: Numbers,
    /// When it is sent.
    pub times: Times,
    /// Size of the payload.
    pub sizes: Sizes,
}

impl Filter {
    /// The packet fits, its number apart.
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
