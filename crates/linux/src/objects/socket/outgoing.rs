//! The routing of a socket's packets (destination, source address, interface), and the multicast
//! groups that a host has joined.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::interfaces::{ETHERNET, LOOPBACK};
use super::{Destination, Network, Socket, level};
use crate::errno::Errno;
use crate::host::HostState;

/// Options for multicast: hops, and whether messages loop back to the host.
const GROUP_TTL: u32 = 33;
const GROUP_LOOP: u32 = 34;
const ALL_GROUPS: u32 = 49;
const GROUP_HOPS6: u32 = 18;
const GROUP_LOOP6: u32 = 19;

/// The routing decision for a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// The destination; the wildcard address means the loopback.
    pub to: IpAddr,
    /// Source address of a socket that is not bound to one.
    pub from: IpAddr,
    /// Index of the interface.
    pub index: u32,
    /// Other hosts can receive it.
    pub leaves: bool,
    /// Sockets of this host can receive it.
    pub arrives: bool,
}

impl Network {
    /// Whether this is a broadcast address.
    pub fn is_broadcast(&self, ip: IpAddr) -> bool {
        let IpAddr::V4(ip) = ip else { return false };
        let is_last = |network: Ipv4Addr, prefix_len: u8| {
            let host_bits = u32::MAX.checked_shr(u32::from(prefix_len)).unwrap_or(0);
            host_bits > 1 && u32::from(network) | host_bits == u32::from(ip)
        };
        let mut routes = self.routes.iter();
        ip.is_broadcast()
            || routes.any(|route| match (route.network, route.source) {
                (IpAddr::V4(network), IpAddr::V4(_)) if route.leads_to(route.source) => {
                    is_last(network, route.prefix_len)
                }
                _ => false,
            })
    }

    /// The first address of an interface in the family of another address.
    pub fn address_like(&self, index: u32, other: IpAddr) -> Option<IpAddr> {
        let all = self.addresses_of(index).into_iter().map(|(ip, _)| ip);
        let mut fitting = all.filter(|ip| ip.is_ipv4() == other.is_ipv4());
        fitting.next()
    }

    /// Index of the interface with this address; the wildcard address means the default interface
    /// for multicast.
    pub fn index_of(&self, ip: IpAddr) -> Option<u32> {
        if ip.is_unspecified() {
            return self.address_like(ETHERNET, ip).map(|_| ETHERNET);
        }
        if ip.is_loopback() {
            return Some(LOOPBACK);
        }
        self.addresses.contains(&ip).then_some(ETHERNET)
    }
}

impl Socket {
    /// Whether it receives messages to a group at an interface: it has joined the group, or
    /// receives those of all groups that sockets of the host have joined.
    fn takes_group(&self, group: IpAddr, index: u32) -> bool {
        let is_v4 = group.is_ipv4();
        let takes_all = !is_v4 || self.options.other(level::IP, ALL_GROUPS) == Some(1);
        takes_all || self.has_joined(group, index)
    }

    fn has_joined(&self, group: IpAddr, index: u32) -> bool {
        self.options.groups.contains(&(group, index))
    }

    /// Whether interface and group let it receive a packet to this address.
    pub(super) fn takes_at(&self, to: IpAddr, index: u32) -> bool {
        let device = self.options.device;
        let is_there = device == 0 || device == index;
        is_there && (!to.is_multicast() || self.takes_group(to, index))
    }
}

impl HostState {
    /// The route of a socket to an address; with `SO_DONTROUTE`, only to networks of the host.
    pub(super) fn route_of(&self, socket: &Socket, to: IpAddr) -> Destination {
        const DONT_ROUTE: u32 = 5;
        let stays = socket.options.other(level::SOCKET, DONT_ROUTE) == Some(1);
        match self.network.route(to) {
            Destination::Remote { .. } if stays && !self.network.is_on_link(to) => {
                Destination::Nowhere(Errno::ENETUNREACH)
            }
            destination => destination,
        }
    }

    /// The largest packet that a socket can send to the address that it is connected to.
    pub fn path_mtu(&self, id: super::ObjectId) -> Option<u32> {
        let socket = self.socket(id).filter(|socket| socket.is_connected())?;
        let way = self.way(socket, socket.remote.internet()?.ip()).ok()?;
        let mtu = self.network.interface(way.index)?.mtu;
        Some(match way.to {
            // The length of a packet has 16 bits.
            IpAddr::V4(_) => mtu.min(u32::from(u16::MAX)),
            IpAddr::V6(_) => mtu,
        })
    }

    /// Routes a packet of a socket.
    pub(super) fn way(&self, socket: &Socket, to: IpAddr) -> Result<Outgoing, Errno> {
        if to.is_multicast() {
            return self.way_to_group(socket, to);
        }
        match self.route_of(socket, to) {
            Destination::Local { to, from } => Ok(Outgoing {
                to,
                from,
                index: LOOPBACK,
                leaves: false,
                arrives: true,
            }),
            Destination::Remote { from } => Ok(Outgoing {
                to,
                from,
                index: ETHERNET,
                leaves: true,
                arrives: self.network.is_broadcast(to),
            }),
            Destination::Nowhere(errno) => {
                let is_chosen = self.network.is_broadcast(to) && socket.options.device == ETHERNET;
                let from = self.network.address_like(ETHERNET, to);
                let from = from.filter(|_| is_chosen).ok_or(errno)?;
                Ok(Outgoing {
                    to,
                    from,
                    index: ETHERNET,
                    leaves: self.wire.is_networked,
                    arrives: true,
                })
            }
        }
    }

    fn way_to_group(&self, socket: &Socket, to: IpAddr) -> Result<Outgoing, Errno> {
        let options = &socket.options;
        let (hops, loops) = match to {
            IpAddr::V4(_) => (
                options.other(level::IP, GROUP_TTL),
                options.other(level::IP, GROUP_LOOP),
            ),
            IpAddr::V6(_) => (
                options.other(level::IPV6, GROUP_HOPS6),
                options.other(level::IPV6, GROUP_LOOP6),
            ),
        };
        let chosen = [options.group_interface.0, options.device];
        let chosen = chosen.into_iter().find(|index| *index != 0);
        let index = chosen.unwrap_or(ETHERNET);
        let own = self.network.address_like(index, to);
        let given = options
            .group_interface
            .1
            .filter(|ip| ip.is_ipv4() == to.is_ipv4());
        Ok(Outgoing {
            to,
            from: given.or(own).ok_or(Errno::ENETUNREACH)?,
            index,
            leaves: index == ETHERNET && self.wire.is_networked && hops != Some(0),
            // Packets that leave through the loopback arrive there.
            arrives: (index == LOOPBACK || loops != Some(0)) && self.has_joined(to, index),
        })
    }

    /// Whether a socket of this host has joined a group at an interface. Every host belongs to some
    /// groups.
    pub(super) fn has_joined(&self, group: IpAddr, index: u32) -> bool {
        let is_of_all = match group {
            IpAddr::V4(group) => group == Ipv4Addr::new(224, 0, 0, 1),
            IpAddr::V6(group) => group == Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
        };
        let mut sockets = self.sockets();
        is_of_all || sockets.any(|(_, socket)| socket.has_joined(group, index))
    }

    /// Whether the host accepts packets to this address that arrive at an interface.
    pub(super) fn accepts(&self, to: IpAddr, index: u32) -> bool {
        if to.is_multicast() {
            return self.has_joined(to, index);
        }
        self.network.is_own(to) || self.network.is_broadcast(to)
    }

    /// Joins or leaves a group. `index` 0 and the wildcard address mean the default interface for
    /// multicast.
    pub fn change_group(
        &mut self,
        id: super::ObjectId,
        group: IpAddr,
        interface: (u32, IpAddr),
        joins: bool,
    ) -> Result<(), Errno> {
        /// Maximum number of groups of one socket (`igmp_max_memberships`).
        const MOST: usize = 20;
        if !group.is_multicast() {
            return Err(Errno::EINVAL);
        }
        let index = match interface {
            (0, address) => self.network.index_of(address),
            (index, _) => self.network.interface(index).map(|found| found.index),
        };
        let socket = self.socket_mut(id).ok_or(Errno::ENOTSOCK)?;
        let groups = &mut socket.options.groups;
        let at = |index: u32| groups.iter().position(|one| *one == (group, index));
        match (index, joins) {
            (None, true) => return Err(Errno::ENODEV),
            (Some(index), true) if at(index).is_some() => return Err(Errno::EADDRINUSE),
            (Some(_), true) if groups.len() >= MOST => return Err(Errno::ENOBUFS),
            (Some(index), true) => groups.push((group, index)),
            (index, false) => {
                let is_any = interface.0 == 0 && interface.1.is_unspecified();
                let found = match (index, is_any) {
                    (_, true) => groups.iter().position(|one| one.0 == group),
                    (Some(index), false) => at(index),
                    (None, false) => return Err(Errno::ENODEV),
                };
                groups.remove(found.ok_or(Errno::EADDRNOTAVAIL)?);
            }
        }
        Ok(())
    }
}
