//! Routing: the host behind an address, the path to it, or why it is unreachable. The routes of all
//! pairs of hosts and addresses are computed when the topology is created; a lookup allocates
//! nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::{Prefix, canonical, is_loopback, is_multicast_or_broadcast, is_unspecified};
use crate::topology::{
    Hop, HostIndex, NetworkIndex, PairRoute, Path, PortIndex, RouteEntry, Tables, Topology,
    TopologyNode, Unreachable,
};

/// Maximum number of routers on a path; more is a routing loop.
const MAX_HOPS: usize = 64;

/// The route of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route<'t> {
    /// To the sender itself.
    Local,
    /// To a host.
    Host {
        /// The host.
        target: HostIndex,
        /// The path.
        path: &'t Path,
    },
    /// To all hosts of a LAN (multicast or broadcast). Each host decides whether it listens.
    Multicast {
        /// The LAN.
        network: NetworkIndex,
        /// The path, the same for all hosts.
        path: &'t Path,
        /// All hosts on the LAN, including the sender.
        hosts: &'t [HostIndex],
    },
    /// There is no route.
    Unreachable(Unreachable),
}

impl Tables {
    /// Computes all routes of a validated topology.
    pub fn of(topology: &Topology) -> Tables {
        let mut tables = Tables {
            routes: topology
                .nodes()
                .map(|node| routes(topology, node))
                .collect(),
            ..Tables::default()
        };
        for at in 0..topology.ports.len() as u32 {
            let network = topology.port(PortIndex(at)).network;
            let hop = Hop {
                port: PortIndex(at),
                network,
            };
            tables.paths.push(path(topology, vec![hop]));
        }
        let single = |(at, path): (usize, &Path)| (path.hops.clone(), at as u32);
        let mut known: BTreeMap<Vec<Hop>, u32> =
            tables.paths.iter().enumerate().map(single).collect();
        for host in 0..topology.hosts.len() as u32 {
            for (address, owner) in &topology.owners {
                let mut hops = Vec::new();
                let start = TopologyNode::Host(HostIndex(host));
                if topology.port(*owner).node == start {
                    tables.pair_routes.push(PairRoute::Local);
                    continue;
                }
                let reached = tables.walk(topology, start, *address, |hop| hops.push(hop));
                let way = match reached.map(|port| topology.port(port).node) {
                    Err(reason) => PairRoute::Unreachable(reason),
                    Ok(TopologyNode::Host(_)) => {
                        PairRoute::Path(*known.entry(hops).or_insert_with_key(|hops| {
                            tables.paths.push(path(topology, hops.clone()));
                            tables.paths.len() as u32 - 1
                        }))
                    }
                    Ok(_) => PairRoute::Unreachable(Unreachable::PortUnreachable),
                };
                tables.pair_routes.push(way);
            }
        }
        tables
    }

    /// Follows routes from node to node to the owner of the address.
    fn walk(
        &self,
        topology: &Topology,
        start: TopologyNode,
        address: IpAddr,
        mut crossed: impl FnMut(Hop),
    ) -> Result<PortIndex, Unreachable> {
        let mut node = start;
        for _ in 0..MAX_HOPS {
            let Some(entry) = self.entry(topology, node, address) else {
                return Err(match node == start {
                    true => Unreachable::NoRoute,
                    false => Unreachable::HostUnreachable,
                });
            };
            let network = topology.port(entry.port).network;
            let port = entry.port;
            crossed(Hop { port, network });
            let next = topology
                .owner(entry.via.unwrap_or(address))
                .filter(|owner| topology.port(*owner).network == network)
                .ok_or(Unreachable::HostUnreachable)?;
            match topology.port(next).node {
                router @ TopologyNode::Router(_) if entry.via.is_some() => {
                    // The address may be the router's own.
                    if topology
                        .owner(address)
                        .map(|owner| topology.port(owner).node)
                        == Some(router)
                    {
                        return Ok(next);
                    }
                    node = router;
                }
                _ => return Ok(next),
            }
        }
        Err(Unreachable::HostUnreachable)
    }

    /// Returns the routing table entry of a node for an address, which has the longest prefix.
    fn entry(
        &self,
        topology: &Topology,
        node: TopologyNode,
        address: IpAddr,
    ) -> Option<RouteEntry> {
        let entries = &self.routes[node_number(topology, node)];
        let mut fitting = entries.iter().filter(|entry| entry.to.contains(address));
        fitting.next().copied()
    }
}

fn node_number(topology: &Topology, node: TopologyNode) -> usize {
    match node {
        TopologyNode::Host(host) => host.index(),
        TopologyNode::Router(router) => topology.hosts.len() + router.index(),
        TopologyNode::Network(_) => unreachable!("networks have no routes"),
    }
}

/// Returns the routing table of a node: connected networks and its routes, longest prefixes first.
fn routes(topology: &Topology, node: TopologyNode) -> Vec<RouteEntry> {
    let first = topology.first_ports[node_number(topology, node)];
    let mut entries = Vec::new();
    let interfaces = topology.node_interfaces(node);
    for (at, interface) in interfaces.iter().enumerate() {
        let port = PortIndex(first + at as u32);
        entries.extend(interface.addresses.iter().map(|address| RouteEntry {
            to: address.subnet(),
            port,
            via: None,
        }));
    }
    for route in topology.node_routes(node) {
        let near = interfaces
            .iter()
            .position(|interface| interface.addresses.iter().any(|a| a.contains(route.via)));
        if let Some(at) = near {
            entries.push(RouteEntry {
                to: route.to,
                port: PortIndex(first + at as u32),
                via: Some(route.via),
            });
        }
    }
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.to.length()));
    entries
}

/// Creates the path over these hops, with its latency and MTU.
fn path(topology: &Topology, hops: Vec<Hop>) -> Path {
    let latency = |hop: &Hop| topology.network(hop.network).latency_ns;
    let mtu = |hop: &Hop| {
        let whole = topology.network(hop.network).mtu;
        topology.interface(hop.port).mtu.unwrap_or(whole).min(whole)
    };
    Path {
        latency_ns: hops.iter().map(latency).fold(0, u64::saturating_add),
        mtu: hops.iter().map(mtu).min().unwrap_or(u32::MAX),
        hops,
    }
}

impl Topology {
    /// Returns the route of a packet from a host to an address.
    pub fn route(&self, from: HostIndex, destination: IpAddr) -> Route<'_> {
        let destination = canonical(destination);
        if let Some(number) = self.owner_number(destination) {
            return match self.tables.pair_routes[from.index() * self.owners.len() + number] {
                PairRoute::Local => Route::Local,
                PairRoute::Unreachable(reason) => Route::Unreachable(reason),
                PairRoute::Path(path) => match self.port(self.owners[number].1).node {
                    TopologyNode::Host(target) => Route::Host {
                        target,
                        path: &self.tables.paths[path as usize],
                    },
                    _ => Route::Unreachable(Unreachable::PortUnreachable),
                },
            };
        }
        if is_loopback(destination) || is_unspecified(destination) {
            return Route::Local;
        }
        if let Some(port) = self.port_to_many(from, destination) {
            return self.multicast_route(port);
        }
        if is_multicast_or_broadcast(destination) {
            return Route::Unreachable(Unreachable::NoRoute);
        }
        let start = TopologyNode::Host(from);
        match self.tables.walk(self, start, destination, |_| {}) {
            Err(reason) => Route::Unreachable(reason),
            Ok(_) => Route::Unreachable(Unreachable::HostUnreachable),
        }
    }

    /// Returns the route to all hosts of the LAN of a port, for programs that select the interface
    /// themselves.
    pub fn multicast_route(&self, port: PortIndex) -> Route<'_> {
        let network = self.port(port).network;
        Route::Multicast {
            network,
            path: &self.tables.paths[port.index()],
            hosts: self.hosts_on(network),
        }
    }

    /// Returns the outgoing port for multicast and broadcast: that of a matching route, otherwise
    /// the first interface of the IP version.
    fn port_to_many(&self, from: HostIndex, destination: IpAddr) -> Option<PortIndex> {
        let first = self.first_ports[from.index()];
        let interfaces = &self.host(from).interfaces;
        let port = |at: usize| PortIndex(first + at as u32);
        let broadcasts = interfaces.iter().position(|interface| {
            let mut addresses = interface.addresses.iter();
            addresses.any(|address| address.broadcast() == Some(destination))
        });
        if let Some(at) = broadcasts {
            return Some(port(at));
        }
        if !is_multicast_or_broadcast(destination) {
            return None;
        }
        let routed = self
            .tables
            .entry(self, TopologyNode::Host(from), destination);
        if let Some(entry) = routed {
            return Some(entry.port);
        }
        let speaks = |address: &Prefix| address.address().is_ipv4() == destination.is_ipv4();
        let speaking = interfaces
            .iter()
            .position(|interface| interface.addresses.iter().any(speaks));
        speaking.map(port)
    }

    /// Returns the source address for a destination, if the program did not bind one.
    pub fn source_for(&self, from: HostIndex, destination: IpAddr) -> Option<IpAddr> {
        let destination = canonical(destination);
        let port = match self.route(from, destination) {
            Route::Local if is_loopback(destination) || is_unspecified(destination) => {
                return Some(match destination {
                    IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                    IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
                });
            }
            Route::Local => return Some(destination),
            Route::Host { path, .. } | Route::Multicast { path, .. } => path.hops[0].port,
            Route::Unreachable(Unreachable::NoRoute) => return None,
            Route::Unreachable(_) => {
                self.tables
                    .entry(self, TopologyNode::Host(from), destination)?
                    .port
            }
        };
        let via = self
            .tables
            .entry(self, TopologyNode::Host(from), destination)
            .and_then(|entry| entry.via)
            .unwrap_or(destination);
        let addresses = &self.interface(port).addresses;
        let near = addresses.iter().find(|address| address.contains(via));
        let mut speaking = addresses
            .iter()
            .filter(|address| address.address().is_ipv4() == destination.is_ipv4());
        near.or_else(|| speaking.next()).map(|a| a.address())
    }
}
