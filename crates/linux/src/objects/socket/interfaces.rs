//! The network interfaces of a host, and their addresses.

use std::net::{IpAddr, Ipv4Addr};

use super::Network;
use crate::frames::hardware_of;

/// A network interface of the host.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct NetworkInterface {
    /// Interface index.
    pub index: u32,
    /// Its name.
    pub name: &'static str,
    /// `IFF_` flags.
    pub flags: u32,
    /// Maximum transmission unit.
    pub mtu: u32,
    /// Hardware address.
    pub hardware: [u8; 6],
    /// Type of the hardware address (`ARPHRD_`).
    pub kind: u16,
}

/// Interface indices: every host has the loopback and one interface for its addresses.
pub const LOOPBACK: u32 = 1;
pub const ETHERNET: u32 = 2;

const INTERFACES: [NetworkInterface; 2] = [
    NetworkInterface {
        index: LOOPBACK,
        name: "lo",
        flags: 0x1_0049,
        mtu: 65536,
        hardware: [0; 6],
        kind: 772,
    },
    NetworkInterface {
        index: ETHERNET,
        name: "eth0",
        flags: 0x1_1043,
        mtu: 1500,
        hardware: [2, 0, 0, 0, 0, 1],
        kind: 1,
    },
];

impl Network {
    /// All interfaces. The hardware address encodes the first IP address, so that frames find their
    /// host.
    pub fn interfaces(&self) -> [NetworkInterface; 2] {
        let mut all = INTERFACES;
        let first = self.address_like(ETHERNET, Ipv4Addr::UNSPECIFIED.into());
        if let Some(IpAddr::V4(first)) = first {
            all[1].hardware = hardware_of(first);
        }
        all
    }

    /// The interface with this index.
    pub fn interface(&self, index: u32) -> Option<NetworkInterface> {
        let mut all = self.interfaces().into_iter();
        all.find(|interface| interface.index == index)
    }

    /// The interface with this name.
    pub fn interface_named(&self, name: &[u8]) -> Option<NetworkInterface> {
        let mut all = self.interfaces().into_iter();
        all.find(|interface| interface.name.as_bytes() == name)
    }

    /// Addresses of an interface, with prefix lengths.
    pub fn addresses_of(&self, index: u32) -> Vec<(IpAddr, u8)> {
        if index == 1 {
            return vec![
                (IpAddr::from([127, 0, 0, 1]), 8),
                (IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1u16]), 128),
            ];
        }
        let bits = |ip: &IpAddr| {
            let mut routes = self.routes.iter();
            let own = routes.find(|route| route.source == *ip && route.leads_to(*ip));
            let usual = if ip.is_ipv4() { 24 } else { 64 };
            own.map_or(usual, |route| route.prefix_len)
        };
        self.addresses.iter().map(|ip| (*ip, bits(ip))).collect()
    }
}
