//! The routing table as netlink shows and changes it. The network decides the path of packets
//! between hosts; a route that a program adds only determines what is reachable, and from which
//! address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use triomphe::Arc;

use super::Network;
use super::interfaces::{ETHERNET, LOOPBACK};
use super::table_route::{IfPresent, LOCAL, MAIN, TableRoute, route_type};
use crate::errno::Errno;

/// `rtm_protocol`: the origin of a route.
const BY_KERNEL: u8 = 2;
const BY_BOOT: u8 = 3;
/// `rtm_scope`.
const EVERYWHERE: u8 = 0;
const ON_LINK: u8 = 253;
const ON_HOST: u8 = 254;

impl Network {
    /// Whether an address belongs to a network of the host.
    pub fn is_on_link(&self, ip: IpAddr) -> bool {
        let mut own = self.routes.iter().filter(|route| route.gateway.is_none());
        own.any(|route| route.leads_to(ip))
    }

    /// The best route that a program has added, if its prefix is longer than `than`: the source
    /// address, or the error for packets.
    pub(super) fn added_route(
        &self,
        to: IpAddr,
        than: Option<u8>,
    ) -> Option<Result<IpAddr, Errno>> {
        let fitting = self.added.iter().filter(|route| {
            matches!(route.table, MAIN | LOCAL)
                && than.is_none_or(|than| route.prefix_len > than)
                && route.leads_to(to)
        });
        let best = fitting.max_by_key(|route| (route.prefix_len, u32::MAX - route.priority))?;
        let own = || self.address_like(ETHERNET, to);
        Some(match best.kind {
            route_type::BLACKHOLE => Err(Errno::EINVAL),
            route_type::UNREACHABLE => Err(Errno::EHOSTUNREACH),
            route_type::PROHIBIT => Err(Errno::EACCES),
            _ => best.source.or_else(own).ok_or(Errno::ENETUNREACH),
        })
    }

    /// Adds a route, and returns it with its interface filled in.
    pub fn add_route(
        &mut self,
        mut route: TableRoute,
        present: IfPresent,
    ) -> Result<TableRoute, Errno> {
        if route.interface != 0 && self.interface(route.interface).is_none() {
            return Err(Errno::ENODEV);
        }
        if route.kind == route_type::UNICAST {
            match route.gateway {
                Some(gateway) if !self.is_on_link(gateway) => return Err(Errno::ENETUNREACH),
                Some(_) if route.interface == 0 => route.interface = ETHERNET,
                None if route.interface == 0 => return Err(Errno::ENODEV),
                _ => {}
            }
        } else if !(route_type::BLACKHOLE..=route_type::PROHIBIT).contains(&route.kind) {
            return Err(Errno::EOPNOTSUPP);
        }
        if route.source.is_some_and(|source| !self.is_own(source)) {
            return Err(Errno::EINVAL);
        }
        let own = self.own_routes();
        let is_own = own.iter().any(|known| known.has_place_of(&route));
        let added = Arc::make_mut(&mut self.added);
        let known = added.iter().position(|known| known.has_place_of(&route));
        match known {
            _ if is_own => return Err(Errno::EEXIST),
            Some(_) if present.fails => return Err(Errno::EEXIST),
            Some(at) if present.replaces => added[at] = route,
            Some(at) if !present.appends || added[at] == route => return Err(Errno::EEXIST),
            None if !present.creates => return Err(Errno::ENOENT),
            _ => added.push(route),
        }
        Ok(route)
    }

    /// Deletes a route that a program has added. The routes of the host itself stay.
    pub fn delete_route(&mut self, request: &TableRoute) -> Option<TableRoute> {
        let at = self.added.iter().position(|one| one.is_meant_by(request))?;
        Some(Arc::make_mut(&mut self.added).remove(at))
    }

    /// All routes.
    pub fn all_routes(&self) -> Vec<TableRoute> {
        let mut all = self.own_routes();
        all.extend(self.added.iter().copied());
        all
    }

    /// Routes that come with the addresses and networks of the host.
    fn own_routes(&self) -> Vec<TableRoute> {
        let mut all = Vec::new();
        for interface in [LOOPBACK, ETHERNET] {
            for (ip, prefix_len) in self.addresses_of(interface) {
                all.extend(of_address(interface, ip, prefix_len));
            }
        }
        for route in self.routes.iter() {
            // Broadcast, and multicast groups.
            let is_many = |ip: Ipv4Addr| ip.is_broadcast() || ip == Ipv4Addr::new(224, 0, 0, 0);
            if matches!(route.network, IpAddr::V4(ip) if is_many(ip)) {
                continue;
            }
            let is_behind = route.gateway.is_some();
            all.push(TableRoute {
                network: route.network,
                prefix_len: route.prefix_len,
                table: MAIN,
                protocol: if is_behind { BY_BOOT } else { BY_KERNEL },
                scope: if is_behind || route.network.is_ipv6() {
                    EVERYWHERE
                } else {
                    ON_LINK
                },
                kind: route_type::UNICAST,
                tos: 0,
                priority: if route.network.is_ipv6() { 256 } else { 0 },
                gateway: route.gateway,
                interface: ETHERNET,
                source: Some(route.source).filter(|_| !is_behind && route.network.is_ipv4()),
            });
        }
        all
    }
}

/// The routes that an address adds to the table `local`.
fn of_address(interface: u32, ip: IpAddr, prefix_len: u8) -> Vec<TableRoute> {
    let local = |network: IpAddr, prefix_len: u8| TableRoute {
        network,
        prefix_len,
        table: LOCAL,
        protocol: BY_KERNEL,
        scope: if network.is_ipv4() {
            ON_HOST
        } else {
            EVERYWHERE
        },
        kind: route_type::LOCAL,
        tos: 0,
        priority: 0,
        gateway: None,
        interface,
        source: Some(ip).filter(IpAddr::is_ipv4),
    };
    let IpAddr::V4(own) = ip else {
        return vec![local(ip, 128)];
    };
    let host_bits = u32::MAX.checked_shr(prefix_len.into()).unwrap_or(0);
    let mut all = vec![local(ip, 32)];
    if own.is_loopback() {
        all.insert(
            0,
            local(
                Ipv4Addr::from(u32::from(own) & !host_bits).into(),
                prefix_len,
            ),
        );
    }
    if host_bits > 1 {
        all.push(TableRoute {
            scope: ON_LINK,
            kind: route_type::BROADCAST,
            ..local(Ipv4Addr::from(u32::from(own) | host_bits).into(), 32)
        });
    }
    all
}

/// The wildcard address of a family.
pub fn any(is_v4: bool) -> IpAddr {
    if is_v4 {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RouteSpec;
    use crate::objects::socket::Destination;

    fn network() -> Network {
        let own = IpAddr::from([10, 0, 0, 1]);
        let route = |network: [u8; 4], prefix_len, gateway| RouteSpec {
            network: network.into(),
            prefix_len,
            source: own,
            gateway,
        };
        let behind = route([10, 1, 0, 0], 16, Some(IpAddr::from([10, 0, 0, 254])));
        Network::new(vec![own], vec![route([10, 0, 0, 0], 25, None), behind])
    }

    fn unicast(network: [u8; 4], prefix_len: u8) -> TableRoute {
        TableRoute {
            network: network.into(),
            prefix_len,
            table: MAIN,
            protocol: 12,
            scope: 0,
            kind: route_type::UNICAST,
            tos: 0,
            priority: 32,
            gateway: Some(IpAddr::from([10, 0, 0, 2])),
            interface: 0,
            source: None,
        }
    }

    const NEW: IfPresent = IfPresent {
        replaces: false,
        fails: true,
        creates: true,
        appends: false,
    };

    #[test]
    fn routes_are_added_once_and_deleted() {
        let mut network = network();
        let to = IpAddr::from([192, 0, 2, 9]);
        assert_eq!(network.route(to), Destination::Nowhere(Errno::ENETUNREACH));
        let route = unicast([192, 0, 2, 0], 24);
        assert_eq!(network.add_route(route, NEW).unwrap().interface, ETHERNET);
        assert_eq!(network.add_route(route, NEW), Err(Errno::EEXIST));
        let from = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(network.route(to), Destination::Remote { from });
        assert!(network.is_on_link(IpAddr::from([10, 0, 0, 2])) && !network.is_on_link(to));
        let closer = TableRoute {
            kind: route_type::PROHIBIT,
            gateway: None,
            ..unicast([192, 0, 2, 8], 29)
        };
        network.add_route(closer, NEW).unwrap();
        assert_eq!(network.route(to), Destination::Nowhere(Errno::EACCES));
        let far = TableRoute {
            gateway: Some(IpAddr::from([10, 0, 0, 200])),
            ..unicast([198, 51, 100, 0], 24)
        };
        assert_eq!(network.add_route(far, NEW), Err(Errno::ENETUNREACH));
        assert!(network.delete_route(&closer).is_some());
        assert!(network.delete_route(&closer).is_none());
        assert_eq!(network.route(to), Destination::Remote { from });
    }

    #[test]
    fn routes_of_the_host_are_shown_as_linux_has_them() {
        let all = network().all_routes();
        let shown = |network: [u8; 4], prefix_len: u8| {
            let network = IpAddr::from(network);
            let found = all
                .iter()
                .find(|one| (one.network, one.prefix_len) == (network, prefix_len));
            found.map(|one| (one.table, one.kind, one.scope, one.gateway))
        };
        assert_eq!(shown([127, 0, 0, 0], 8), Some((LOCAL, 2, 254, None)));
        assert_eq!(shown([10, 0, 0, 1], 32), Some((LOCAL, 2, 254, None)));
        assert_eq!(shown([10, 0, 0, 127], 32), Some((LOCAL, 3, 253, None)));
        assert_eq!(shown([10, 0, 0, 0], 25), Some((MAIN, 1, 253, None)));
        let gateway = Some(IpAddr::from([10, 0, 0, 254]));
        assert_eq!(shown([10, 1, 0, 0], 16), Some((MAIN, 1, 0, gateway)));
    }
}
