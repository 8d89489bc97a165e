//! The topology: hosts, networks and routers, and their validation. A [`Topology`] is immutable;
//! what changes (queues, counters) is in separate values.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

use crate::address::{Prefix, canonical, is_loopback, is_multicast_or_broadcast, is_unspecified};

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the number as an index into the list.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index! {
    /// Index of a host.
    HostIndex
}
index! {
    /// Index of a network.
    NetworkIndex
}
index! {
    /// Index of a router.
    RouterIndex
}
index! {
    /// Index of an interface of a host or router; those of hosts come first.
    PortIndex
}

/// A LAN: its nodes reach each other directly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// The name of the network.
    pub name: String,
    /// The subnets of the network.
    pub subnets: Vec<Prefix>,
    /// The propagation latency. It is not 0, so that a packet never arrives at the time it is sent.
    pub latency_ns: u64,
    /// The bandwidth of an interface; unlimited if `None`.
    pub bandwidth_bits_per_s: Option<u64>,
    /// The queue capacity of an interface in packets; packets beyond it are dropped.
    pub queue_packets: Option<u32>,
    /// The maximum packet size.
    pub mtu: u32,
}

impl Network {
    /// Creates a network with default values: 1 ms latency, unlimited bandwidth, MTU 1500.
    pub fn new(name: impl Into<String>, subnets: Vec<Prefix>) -> Network {
        Network {
            name: name.into(),
            subnets,
            latency_ns: 1_000_000,
            bandwidth_bits_per_s: None,
            queue_packets: None,
            mtu: 1500,
        }
    }
}

/// An interface of a host or router.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The name of the interface, such as `eth0`.
    pub name: String,
    /// The network that the interface is on.
    pub network: NetworkIndex,
    /// The addresses with their subnets, the primary one of each family first.
    pub addresses: Vec<Prefix>,
    /// The maximum packet size, if less than that of the network.
    pub mtu: Option<u32>,
}

/// A static route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StaticRoute {
    /// The destination; [`Prefix::ALL_V4`] is the default route.
    pub to: Prefix,
    /// The gateway.
    pub via: IpAddr,
}

/// A machine that runs programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// The name of the host.
    pub name: String,
    /// The other names of the host.
    pub aliases: Vec<String>,
    /// The interfaces of the host.
    pub interfaces: Vec<Interface>,
    /// The static routes of the host.
    pub routes: Vec<StaticRoute>,
}

/// A router: forwards packets between networks, and runs no programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Router {
    /// The name of the router.
    pub name: String,
    /// The interfaces of the router.
    pub interfaces: Vec<Interface>,
    /// The static routes of the router.
    pub routes: Vec<StaticRoute>,
}

/// A node of a topology.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TopologyNode {
    /// A host.
    Host(HostIndex),
    /// A router.
    Router(RouterIndex),
    /// A network.
    Network(NetworkIndex),
}

/// An interface together with its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// The host or router.
    pub node: TopologyNode,
    /// The index of the interface among those of the node.
    pub interface: u32,
    /// The network that the interface is on.
    pub network: NetworkIndex,
}

/// An error in a topology.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct TopologyError {
    /// The node that the error concerns.
    pub node: TopologyNode,
    /// The kind and name of that node.
    pub name: String,
    /// The kind of error.
    pub kind: TopologyErrorKind,
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.node {
            TopologyNode::Host(_) => "host",
            TopologyNode::Router(_) => "router",
            TopologyNode::Network(_) => "network",
        };
        write!(f, "{kind} {}: {}", self.name, self.kind)
    }
}

/// The kind of an error in a topology.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TopologyErrorKind {
    /// Two nodes have the same name.
    #[error("there is another host or router of this name, or an alias like it")]
    NameTaken,
    /// The name cannot be used in files of the guest.
    #[error("{0:?} is not a host name; use letters, digits, '-', '_' and '.'")]
    BadName(String),
    /// Two networks have the same name.
    #[error("there is another network of this name")]
    NetworkNameTaken,
    /// The latency is zero.
    #[error("its latency is 0; messages must take some time")]
    NoLatency,
    /// The bandwidth is zero.
    #[error("its bandwidth is 0")]
    NoBandwidth,
    /// The MTU leaves no room for headers.
    #[error("its mtu of {0} is below 68, the least that IPv4 allows")]
    SmallMtu(u32),
    /// Two networks have overlapping subnets.
    #[error("its subnet {subnet} overlaps with that of network {other}")]
    Overlap {
        /// The subnet of this network.
        subnet: Prefix,
        /// The other network.
        other: String,
    },
    /// The network does not exist.
    #[error("interface {interface} is on a network that does not exist")]
    NoNetwork {
        /// The interface.
        interface: String,
    },
    /// Two interfaces have the same name.
    #[error("it has two interfaces {0}")]
    InterfaceTwice(String),
    /// The address is in no subnet of the network.
    #[error("{address} is in no subnet of network {network}")]
    OutsideSubnet {
        /// The address.
        address: Prefix,
        /// The network.
        network: String,
    },
    /// No host can have this address.
    #[error("{0} cannot be the address of an interface")]
    BadAddress(IpAddr),
    /// Two interfaces have the same address.
    #[error("{address} is also an address of {other}")]
    AddressTaken {
        /// The address.
        address: IpAddr,
        /// The other owner.
        other: String,
    },
    /// The gateway is not on a connected network.
    #[error("the router {via} of the route to {to} is on none of its networks")]
    FarGateway {
        /// The destination.
        to: Prefix,
        /// The gateway.
        via: IpAddr,
    },
    /// The gateway is not a router: hosts do not forward.
    #[error("the router {via} of the route to {to} is not the address of a router on that network")]
    NoGateway {
        /// The destination.
        to: Prefix,
        /// The gateway.
        via: IpAddr,
    },
    /// Two routes have the same destination.
    #[error("it has two routes to {0}")]
    RouteTwice(Prefix),
    /// Too many hosts: routing tables grow with the square of their number.
    #[error("it is one of more than {0} hosts; fewer are possible")]
    TooMany(usize),
}

/// Maximum number of hosts.
pub const MAX_HOSTS: usize = 1024;

/// Hosts, networks and routers, in order, with all routes precomputed. The default has none of
/// them: a host on its own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Topology {
    pub(crate) networks: Vec<Network>,
    pub(crate) routers: Vec<Router>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) ports: Vec<Port>,
    /// Index of the first port of each host, then of each router.
    pub(crate) first_ports: Vec<u32>,
    /// Owners of addresses, sorted by address.
    pub(crate) owners: Vec<(IpAddr, PortIndex)>,
    /// Hosts on each network.
    pub(crate) members: Vec<Vec<HostIndex>>,
    pub(crate) tables: Tables,
}

impl Topology {
    /// Returns all hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Returns all networks.
    pub fn networks(&self) -> &[Network] {
        &self.networks
    }

    /// Returns all routers.
    pub fn routers(&self) -> &[Router] {
        &self.routers
    }

    /// Returns a host.
    pub fn host(&self, host: HostIndex) -> &Host {
        &self.hosts[host.index()]
    }

    /// Returns a network.
    pub fn network(&self, network: NetworkIndex) -> &Network {
        &self.networks[network.index()]
    }

    /// Returns a port.
    pub fn port(&self, port: PortIndex) -> Port {
        self.ports[port.index()]
    }

    /// Returns the port of an interface of a host.
    pub fn port_of(&self, host: HostIndex, interface: usize) -> Option<PortIndex> {
        let has_it = interface < self.host(host).interfaces.len();
        has_it.then(|| PortIndex(self.first_ports[host.index()] + interface as u32))
    }

    /// Returns the interface of a port.
    pub fn interface(&self, port: PortIndex) -> &Interface {
        let port = self.port(port);
        &self.node_interfaces(port.node)[port.interface as usize]
    }

    /// Returns the hosts on a network, in order.
    pub fn hosts_on(&self, network: NetworkIndex) -> &[HostIndex] {
        &self.members[network.index()]
    }

    /// Finds a host by name or alias, ignoring case.
    pub fn host_by_name(&self, name: &str) -> Option<HostIndex> {
        let is_meant = |host: &Host| {
            let mut names = std::iter::once(&host.name).chain(&host.aliases);
            names.any(|known| known.eq_ignore_ascii_case(name))
        };
        let at = self.hosts.iter().position(is_meant)?;
        Some(HostIndex(at as u32))
    }

    /// Returns the addresses of a host, first interface first.
    pub fn addresses(&self, host: HostIndex) -> impl Iterator<Item = IpAddr> + '_ {
        let interfaces = self.host(host).interfaces.iter();
        interfaces.flat_map(|interface| interface.addresses.iter().map(|prefix| prefix.address()))
    }

    /// Returns the port that has an address. Loopback addresses belong to no port.
    pub fn owner(&self, address: IpAddr) -> Option<PortIndex> {
        self.owner_number(address).map(|at| self.owners[at].1)
    }

    pub(crate) fn owner_number(&self, address: IpAddr) -> Option<usize> {
        let address = canonical(address);
        let found = self.owners.binary_search_by_key(&address, |owner| owner.0);
        found.ok()
    }

    /// Returns the host that has an address.
    pub fn host_of(&self, address: IpAddr) -> Option<HostIndex> {
        match self.port(self.owner(address)?).node {
            TopologyNode::Host(host) => Some(host),
            _ => None,
        }
    }

    /// Returns the content of `/etc/hosts` with all hosts; it is the same on each host.
    pub fn hosts_file(&self) -> String {
        let mut text = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost\n");
        for (at, host) in self.hosts.iter().enumerate() {
            for address in self.addresses(HostIndex(at as u32)) {
                text.push_str(&format!("{address} {}", host.name));
                for alias in &host.aliases {
                    text.push_str(&format!(" {alias}"));
                }
                text.push('\n');
            }
        }
        text
    }

    /// Returns the addresses that a resolver returns for a host name.
    pub fn resolve(&self, name: &str) -> Vec<IpAddr> {
        match self.host_by_name(name) {
            Some(host) => self.addresses(host).collect(),
            None => Vec::new(),
        }
    }

    /// Returns the name of a node.
    pub fn name_of(&self, node: TopologyNode) -> &str {
        match node {
            TopologyNode::Host(host) => &self.hosts[host.index()].name,
            TopologyNode::Router(router) => &self.routers[router.index()].name,
            TopologyNode::Network(network) => &self.networks[network.index()].name,
        }
    }

    pub(crate) fn node_interfaces(&self, node: TopologyNode) -> &[Interface] {
        match node {
            TopologyNode::Host(host) => &self.hosts[host.index()].interfaces,
            TopologyNode::Router(router) => &self.routers[router.index()].interfaces,
            TopologyNode::Network(_) => &[],
        }
    }

    pub(crate) fn node_routes(&self, node: TopologyNode) -> &[StaticRoute] {
        match node {
            TopologyNode::Host(host) => &self.hosts[host.index()].routes,
            TopologyNode::Router(router) => &self.routers[router.index()].routes,
            TopologyNode::Network(_) => &[],
        }
    }

    /// Returns all hosts, then all routers.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = TopologyNode> + use<> {
        let (hosts, routers) = (self.hosts.len() as u32, self.routers.len() as u32);
        let hosts = (0..hosts).map(|at| TopologyNode::Host(HostIndex(at)));
        hosts.chain((0..routers).map(|at| TopologyNode::Router(RouterIndex(at))))
    }

    fn error(&self, node: TopologyNode, kind: TopologyErrorKind) -> TopologyError {
        let name = self.name_of(node).to_owned();
        TopologyError { node, name, kind }
    }

    /// Checks the names of hosts and routers, and the number of hosts.
    pub(crate) fn check_names(&self, errors: &mut Vec<TopologyError>) {
        let mut taken = std::collections::BTreeSet::new();
        for node in self.nodes() {
            let aliases: &[String] = match node {
                TopologyNode::Host(host) => &self.host(host).aliases,
                _ => &[],
            };
            let own = self.name_of(node);
            for name in std::iter::once(own).chain(aliases.iter().map(String::as_str)) {
                if !is_name(name) {
                    errors.push(self.error(node, TopologyErrorKind::BadName(name.to_owned())));
                }
                if !taken.insert(name.to_ascii_lowercase()) {
                    errors.push(self.error(node, TopologyErrorKind::NameTaken));
                }
            }
        }
        if self.hosts.len() > MAX_HOSTS {
            let first = TopologyNode::Host(HostIndex(MAX_HOSTS as u32));
            errors.push(self.error(first, TopologyErrorKind::TooMany(MAX_HOSTS)));
        }
    }

    /// Checks the names, subnets and parameters of networks.
    pub(crate) fn check_networks(&self, errors: &mut Vec<TopologyError>) {
        for (at, network) in self.networks.iter().enumerate() {
            let node = TopologyNode::Network(NetworkIndex(at as u32));
            let earlier = &self.networks[..at];
            if earlier.iter().any(|other| other.name == network.name) {
                errors.push(self.error(node, TopologyErrorKind::NetworkNameTaken));
            }
            if network.latency_ns == 0 {
                errors.push(self.error(node, TopologyErrorKind::NoLatency));
            }
            if network.bandwidth_bits_per_s == Some(0) {
                errors.push(self.error(node, TopologyErrorKind::NoBandwidth));
            }
            if network.mtu < 68 {
                errors.push(self.error(node, TopologyErrorKind::SmallMtu(network.mtu)));
            }
            for subnet in &network.subnets {
                let overlaps =
                    |other: &&Network| other.subnets.iter().any(|theirs| subnet.overlaps(*theirs));
                if let Some(other) = earlier.iter().find(overlaps) {
                    let (subnet, other) = (*subnet, other.name.clone());
                    errors.push(self.error(node, TopologyErrorKind::Overlap { subnet, other }));
                }
            }
        }
    }

    /// Checks the interfaces of hosts and routers, and their addresses.
    pub(crate) fn check_interfaces(&self, errors: &mut Vec<TopologyError>) {
        for node in self.nodes() {
            let interfaces = self.node_interfaces(node);
            for (at, interface) in interfaces.iter().enumerate() {
                let name = &interface.name;
                if interfaces[..at].iter().any(|other| other.name == *name) {
                    errors.push(self.error(node, TopologyErrorKind::InterfaceTwice(name.clone())));
                }
                if let Some(mtu) = interface.mtu.filter(|mtu| *mtu < 68) {
                    errors.push(self.error(node, TopologyErrorKind::SmallMtu(mtu)));
                }
                let Some(network) = self.networks.get(interface.network.index()) else {
                    let interface = name.clone();
                    errors.push(self.error(node, TopologyErrorKind::NoNetwork { interface }));
                    continue;
                };
                for address in &interface.addresses {
                    if let Some(kind) = address_error(*address, network) {
                        errors.push(self.error(node, kind));
                    }
                }
            }
        }
    }

    /// Numbers the interfaces of all hosts and routers as ports.
    pub(crate) fn number_ports(&mut self) {
        self.members = vec![Vec::new(); self.networks.len()];
        for node in self.nodes() {
            self.first_ports.push(self.ports.len() as u32);
            let interfaces = self.node_interfaces(node);
            let ports: Vec<Port> = interfaces
                .iter()
                .enumerate()
                .map(|(at, interface)| Port {
                    node,
                    interface: at as u32,
                    network: interface.network,
                })
                .collect();
            for port in &ports {
                let members = &mut self.members[port.network.index()];
                if let TopologyNode::Host(host) = node
                    && members.last() != Some(&host)
                {
                    members.push(host);
                }
            }
            self.ports.extend(ports);
        }
    }

    /// Collects the owners of addresses; two owners of one address are an error.
    pub(crate) fn find_owners(&mut self, errors: &mut Vec<TopologyError>) {
        let mut owners = Vec::new();
        for at in 0..self.ports.len() as u32 {
            let addresses = &self.interface(PortIndex(at)).addresses;
            owners.extend(addresses.iter().map(|a| (a.address(), PortIndex(at))));
        }
        owners.sort();
        for pair in owners.windows(2) {
            if pair[0].0 == pair[1].0 {
                let (first, second) = (self.port(pair[0].1), self.port(pair[1].1));
                let kind = TopologyErrorKind::AddressTaken {
                    address: pair[0].0,
                    other: self.name_of(first.node).to_owned(),
                };
                errors.push(self.error(second.node, kind));
            }
        }
        self.owners = owners;
    }

    /// Checks that static routes have distinct destinations and a gateway on a connected network.
    pub(crate) fn check_routes(&self, errors: &mut Vec<TopologyError>) {
        for node in self.nodes() {
            let routes = self.node_routes(node);
            for (at, route) in routes.iter().enumerate() {
                let (to, via) = (route.to, route.via);
                let is_same = |other: &StaticRoute| other.to.subnet() == to.subnet();
                if routes[..at].iter().any(is_same) {
                    errors.push(self.error(node, TopologyErrorKind::RouteTwice(to)));
                }
                let interfaces = self.node_interfaces(node).iter();
                let mut near = interfaces
                    .filter(|interface| interface.addresses.iter().any(|a| a.contains(via)));
                let Some(interface) = near.next() else {
                    errors.push(self.error(node, TopologyErrorKind::FarGateway { to, via }));
                    continue;
                };
                let gateway = self.owner(via).map(|port| self.port(port));
                let is_router = gateway.is_some_and(|port| {
                    port.network == interface.network
                        && matches!(port.node, TopologyNode::Router(_))
                });
                if !is_router {
                    errors.push(self.error(node, TopologyErrorKind::NoGateway { to, via }));
                }
            }
        }
    }
}

/// Returns why an interface on this network cannot have an address, if so.
fn address_error(address: Prefix, network: &Network) -> Option<TopologyErrorKind> {
    let ip = address.address();
    let is_end = address.broadcast() == Some(ip)
        || (address.broadcast().is_some() && address.subnet().address() == ip);
    if is_loopback(ip)
        || is_unspecified(ip)
        || is_multicast_or_broadcast(ip)
        || is_end
        || canonical(ip) != ip
    {
        return Some(TopologyErrorKind::BadAddress(ip));
    }
    let mut subnets = network.subnets.iter();
    if subnets.any(|subnet| subnet.contains(ip)) {
        return None;
    }
    Some(TopologyErrorKind::OutsideSubnet {
        address,
        network: network.name.clone(),
    })
}

fn is_name(name: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_good) && name != "localhost"
}

/// Precomputed routing tables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tables {
    /// Routing tables of hosts, then routers, longest prefixes first.
    pub(crate) routes: Vec<Vec<RouteEntry>>,
    /// All distinct paths. The first ones are those of one hop, from each port.
    pub(crate) paths: Vec<Path>,
    /// The route from each host to each owned address: by host, then by index of the owner.
    pub(crate) pair_routes: Vec<PairRoute>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RouteEntry {
    pub(crate) to: Prefix,
    pub(crate) port: PortIndex,
    /// The gateway; `None` if the network is directly connected.
    pub(crate) via: Option<IpAddr>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PairRoute {
    Local,
    Path(u32),
    Unreachable(Unreachable),
}

/// One network on a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hop {
    /// The outgoing interface.
    pub port: PortIndex,
    /// The network.
    pub network: NetworkIndex,
}

/// The path of a packet, from the sender's interface on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// The networks in order; at least one.
    pub hops: Vec<Hop>,
    /// Total latency.
    pub latency_ns: u64,
    /// The smallest MTU on the path.
    pub mtu: u32,
}

impl Path {
    /// Returns the number of routers on the path, by which the time to live is decremented.
    pub fn routers(&self) -> usize {
        self.hops.len().saturating_sub(1)
    }
}

/// Why a destination is unreachable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Unreachable {
    /// The sender has no route (`ENETUNREACH`).
    NoRoute,
    /// No host has the address, or a router on the path has no route (`EHOSTUNREACH`).
    HostUnreachable,
    /// The address is that of a router, where no process listens (`ECONNREFUSED`).
    PortUnreachable,
}
