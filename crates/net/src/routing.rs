//! Where packets go: who is behind an address, over which links, or why nobody is. All pairs of hosts and addresses are
//! worked out when the topology is made; asking allocates nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::{Prefix, canonical, is_loopback, is_multicast_or_broadcast, is_unspecified};
use crate::topology::{HostIndex, NetworkIndex, PortIndex, Topology, TopologyNode};

/// More routers than this on a way are a circle.
const MAX_HOPS: usize = 64;

/// One network that a packet crosses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hop {
    /// The interface that it leaves by.
    pub port: PortIndex,
    /// The network.
    pub network: NetworkIndex,
}

/// The way of a packet, from the sender's interface on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// Networks in the order in which they are crossed; at least one.
    pub hops: Vec<Hop>,
    /// Latency of all of them.
    pub latency_ns: u64,
    /// Largest packet that goes all the way whole.
    pub mtu: u32,
}

impl Path {
    /// Routers on the way: by so much the time to live goes down.
    pub fn routers(&self) -> usize {
        self.hops.len().saturating_sub(1)
    }
}

/// Why a packet reaches nobody.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Unreachable {
    /// The sender has no route (`ENETUNREACH`).
    NoRoute,
    /// Nobody has the address, or a router on the way has no route (`EHOSTUNREACH`).
    HostUnreachable,
    /// The address is a router's, where nothing listens (`ECONNREFUSED`).
    PortUnreachable,
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route<'t> {
    /// To the sender itself.
    Local,
    /// To a host.
    Host {
        /// The host.
        target: HostIndex,
        /// The way there.
        path: &'t Path,
    },
    /// To all hosts of a LAN; who of them listens is theirs to say.
    Multicast {
        /// The LAN.
        network: NetworkIndex,
        /// The way, the same to all.
        path: &'t Path,
        /// All hosts on it, the sender too.
        hosts: &'t [HostIndex],
    },
    /// To nobody.
    Unreachable(Unreachable),
}

/// What is worked out in advance.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tables {
    /// Of each host, then each router: routes, the longest prefixes first.
    routes: Vec<Vec<RouteEntry>>,
    /// All different ways. The first are those from each port over its own network only.
    paths: Vec<Path>,
    /// By host, then by number of the owner.
    pair_routes: Vec<PairRoute>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RouteEntry {
    to: Prefix,
    port: PortIndex,
    /// The router, where the network is not the node's own.
    via: Option<IpAddr>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PairRoute {
    Local,
    Path(u32),
    Unreachable(Unreachable),
}

impl Tables {
    /// Works out all routes of a topology that was checked.
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

    /// Goes from node to node until the address is found.
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
                    // The address can be the router's own.
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

/// The table of a node: its own networks, then its routes, longest prefixes first.
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
    /// Where a packet of a host for an address goes.
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

    /// To all hosts of the LAN that a port is on: for programs that choose the interface themselves.
    pub fn multicast_route(&self, port: PortIndex) -> Route<'_> {
        let network = self.port(port).network;
        Route::Multicast {
            network,
            path: &self.tables.paths[port.index()],
            hosts: self.hosts_on(network),
        }
    }

    /// Where multicast and broadcast leave a host: by the route that was given for them, else by the first interface.
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

    /// The address that a host sends from, where the program did not choose one.
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
