//! The network placement of hosts and routers: networks, interfaces, given and automatic addresses,
//! routes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use everett_net::{
    Host, HostIndex, Interface, Network, NetworkIndex, Prefix, Router, RouterIndex, StaticRoute,
    Topology, TopologyNode,
};

use crate::reader::{Table, ValueReader, unknown};
use crate::source::{Diagnostics, SourceSpan};
use crate::toml_tree::{TomlEntry, TomlNode, TomlValue};
use crate::units;

/// Reads `[network.*]`. A scenario without networks gets one.
pub(crate) fn networks(
    entries: &[TomlEntry],
    hosts: usize,
    is_wide: bool,
    diagnostics: &mut Diagnostics,
) -> (Vec<Network>, Vec<SourceSpan>) {
    if entries.is_empty() {
        // The usual size, unless it is too small.
        let subnet = if is_wide {
            "10.0.0.0/8"
        } else if hosts < 250 {
            "10.0.0.0/24"
        } else {
            "10.0.0.0/16"
        };
        let subnets = subnet.parse().into_iter().collect();
        return (
            vec![Network::new("lan", subnets)],
            vec![SourceSpan::default()],
        );
    }
    let mut networks = Vec::new();
    let mut spots = Vec::new();
    for entry in entries {
        let path = format!("network.{}", entry.key);
        let Some(mut table) = Table::new(path, entry.key_span, &entry.node, diagnostics) else {
            continue;
        };
        networks.push(network(&entry.key, &mut table, diagnostics));
        spots.push(entry.key_span);
        table.finish(diagnostics);
    }
    (networks, spots)
}

fn network(name: &str, table: &mut Table<'_>, diagnostics: &mut Diagnostics) -> Network {
    let values = ValueReader::default();
    let subnets = match table.either("subnet", "subnets", diagnostics) {
        Some(node) => values.list(node, diagnostics, ValueReader::prefix),
        None => {
            let help = "give it one: subnet = \"10.0.0.0/24\"";
            diagnostics.help(table.span, format!("network {name:?} has no subnet"), help);
            Vec::new()
        }
    };
    let mut network = Network::new(name, subnets.into_iter().map(Prefix::subnet).collect());
    if let Some(node) = table.get("latency") {
        network.latency_ns = values.duration_ns(node, diagnostics).unwrap_or(1);
    }
    if let Some(node) = table.get("bandwidth") {
        network.bandwidth_bits_per_s = match node.value {
            TomlValue::Integer(_) => values.number(node, u64::MAX, diagnostics),
            _ => values.parsed(node, diagnostics, units::bits_per_s),
        };
    }
    if let Some(node) = table.get("queue") {
        network.queue_packets = values.small(node, diagnostics);
    }
    if let Some(node) = table.get("mtu") {
        network.mtu = values.small(node, diagnostics).unwrap_or(network.mtu);
    }
    network
}

/// A requested interface.
#[derive(Clone, Debug)]
struct InterfaceRequest {
    name: String,
    network: usize,
    addresses: Vec<Prefix>,
    mtu: Option<u32>,
    /// Whether no further addresses are assigned.
    is_exact: bool,
    span: SourceSpan,
}

/// The gateway of a route.
#[derive(Clone, Debug)]
enum Via {
    Address(IpAddr),
    Router(usize),
}

/// The requested placement of a host or router.
#[derive(Clone, Debug)]
pub(crate) struct NodeRequest {
    pub name: String,
    pub aliases: Vec<String>,
    pub span: SourceSpan,
    is_router: bool,
    interfaces: Vec<InterfaceRequest>,
    /// `None` requests automatic routes.
    routes: Option<Vec<(Option<Prefix>, Via, SourceSpan)>>,
}

/// The names that can be referred to.
pub(crate) struct KnownNames<'k> {
    pub networks: &'k [Network],
    /// Names of routers, in order.
    pub routers: &'k [&'k str],
}

impl KnownNames<'_> {
    fn network(
        &self,
        name: &str,
        span: SourceSpan,
        diagnostics: &mut Diagnostics,
    ) -> Option<usize> {
        let found = self.networks.iter().position(|other| other.name == name);
        if found.is_none() {
            let names: Vec<&str> = self.networks.iter().map(|n| n.name.as_str()).collect();
            unknown(span, "network", name, &names, diagnostics);
        }
        found
    }

    fn network_of(&self, address: IpAddr) -> Option<usize> {
        let has_it = |network: &Network| network.subnets.iter().any(|s| s.contains(address));
        self.networks.iter().position(has_it)
    }
}

/// Reads the placement of a host or router.
pub(crate) fn read_placement(
    name: String,
    is_router: bool,
    table: &mut Table<'_>,
    values: ValueReader,
    known: &KnownNames<'_>,
    diagnostics: &mut Diagnostics,
) -> NodeRequest {
    let aliases = match is_router {
        true => Vec::new(),
        false => {
            let node = table.either("alias", "aliases", diagnostics);
            node.map_or_else(Vec::new, |node| values.texts(node, diagnostics))
        }
    };
    let routes = routes(table, values, known, diagnostics);
    NodeRequest {
        name,
        aliases,
        span: table.span,
        is_router,
        interfaces: interfaces(is_router, table, values, known, diagnostics),
        routes,
    }
}

/// Reads an address with or without a prefix length.
fn address(
    values: ValueReader,
    node: &TomlNode,
    known: &KnownNames<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<(Prefix, usize)> {
    let text = values.text(node, diagnostics)?;
    let ip = text.split_once('/').map_or(text.as_str(), |(ip, _)| ip);
    let Ok(ip) = ip.parse::<IpAddr>() else {
        let help = "write it as \"10.0.0.5\" or \"10.0.0.5/24\"";
        diagnostics.help(
            node.span,
            format!("{text:?} is not an IPv4 or IPv6 address"),
            help,
        );
        return None;
    };
    let Some(network) = known.network_of(ip) else {
        let subnets = known.networks.iter().flat_map(|network| {
            let name = &network.name;
            let subnets = network.subnets.iter();
            subnets.map(move |subnet| format!("{subnet} ({name})"))
        });
        let subnets = subnets.take(8).collect::<Vec<_>>().join(", ");
        let help = format!("the subnets are: {subnets}");
        diagnostics.help(node.span, format!("{ip} is in no subnet"), help);
        return None;
    };
    if text.contains('/') {
        let prefix = text.parse::<Prefix>();
        let prefix = prefix.map_err(|error| diagnostics.error(node.span, error.to_string()));
        return prefix.ok().map(|prefix| (prefix, network));
    }
    let subnets = &known.networks[network].subnets;
    let subnet = subnets.iter().find(|subnet| subnet.contains(ip))?;
    Prefix::new(ip, subnet.length()).map(|prefix| (prefix, network))
}

fn interfaces(
    is_router: bool,
    table: &mut Table<'_>,
    values: ValueReader,
    known: &KnownNames<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<InterfaceRequest> {
    let mut wishes: Vec<InterfaceRequest> = Vec::new();
    let named = table.either("network", "networks", diagnostics);
    let given = table.either("address", "addresses", diagnostics);
    let add = |network: usize, span: SourceSpan, wishes: &mut Vec<InterfaceRequest>| {
        let found = wishes.iter().position(|wish| wish.network == network);
        found.unwrap_or_else(|| {
            wishes.push(InterfaceRequest {
                name: format!("eth{}", wishes.len()),
                network,
                addresses: Vec::new(),
                mtu: None,
                is_exact: false,
                span,
            });
            wishes.len() - 1
        })
    };
    if let Some(node) = named {
        let names = values.list(node, diagnostics, |values, node, diagnostics| {
            let name = values.text(node, diagnostics)?;
            Some((known.network(&name, node.span, diagnostics)?, node.span))
        });
        for (network, span) in names {
            add(network, span, &mut wishes);
        }
    }
    if let Some(node) = given {
        let addresses = values.list(node, diagnostics, |values, node, diagnostics| {
            Some((address(values, node, known, diagnostics)?, node.span))
        });
        for ((prefix, network), span) in addresses {
            let at = add(network, span, &mut wishes);
            wishes[at].addresses.push(prefix);
        }
    }
    let has_tables = !table.below("interface", diagnostics).is_empty();
    for entry in table.below("interface", diagnostics) {
        wishes.extend(interface(entry, &table.path, values, known, diagnostics));
    }
    let is_silent = named.is_none() && given.is_none() && !has_tables;
    match known.networks.len() {
        1 if is_silent => {
            add(0, table.span, &mut wishes);
        }
        2.. if is_silent => {
            let what = if is_router { "router" } else { "host" };
            let names: Vec<&str> = known.networks.iter().map(|n| n.name.as_str()).collect();
            let message = format!("this {what} is on no network");
            let help = format!("say which: networks = [...] of {}", names.join(", "));
            diagnostics.help(table.span, message, help);
        }
        _ => {}
    }
    wishes
}

/// Reads `[host.NAME.interface.eth0]`.
fn interface(
    entry: &TomlEntry,
    above: &str,
    values: ValueReader,
    known: &KnownNames<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<InterfaceRequest> {
    let path = format!("{above}.interface.{}", entry.key);
    let mut table = Table::new(path, entry.key_span, &entry.node, diagnostics)?;
    let named = table.get("network");
    let network = named.and_then(|node| {
        let name = values.text(node, diagnostics)?;
        known.network(&name, node.span, diagnostics)
    });
    let given = table.either("address", "addresses", diagnostics);
    let addresses = given.map_or_else(Vec::new, |node| {
        values.list(node, diagnostics, |values, node, diagnostics| {
            address(values, node, known, diagnostics)
        })
    });
    let mtu = table.get("mtu");
    let mtu = mtu.and_then(|node| values.small(node, diagnostics));
    let span = table.span;
    table.finish(diagnostics);
    let first = addresses.first().map(|(_, network)| *network);
    let network = match (network, named) {
        (Some(network), _) => network,
        (None, Some(_)) => return None,
        (None, None) => match first {
            Some(network) => network,
            None if given.is_some() => return None,
            None => {
                let help = "give it a network or an address";
                diagnostics.help(span, "this interface is on no network", help);
                return None;
            }
        },
    };
    Some(InterfaceRequest {
        name: entry.key.clone(),
        network,
        addresses: addresses.into_iter().map(|(prefix, _)| prefix).collect(),
        mtu,
        is_exact: given.is_some(),
        span,
    })
}

type Routes = Vec<(Option<Prefix>, Via, SourceSpan)>;

/// Reads `gateway` and `routes`; `None` if neither is given.
fn routes(
    table: &mut Table<'_>,
    values: ValueReader,
    known: &KnownNames<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Routes> {
    let via = |values: ValueReader, node: &TomlNode, diagnostics: &mut Diagnostics| {
        let text = values.text(node, diagnostics)?;
        if let Ok(address) = text.parse() {
            return Some(Via::Address(address));
        }
        let found = known.routers.iter().position(|name| *name == text);
        if found.is_none() {
            unknown(
                node.span,
                "router or address",
                &text,
                known.routers,
                diagnostics,
            );
        }
        found.map(Via::Router)
    };
    let gateway = table.get("gateway");
    let given = table.get("routes");
    let mut routes = Vec::new();
    if let Some(node) = gateway {
        let defaults = values.list(node, diagnostics, |values, node, diagnostics| {
            Some((None, via(values, node, diagnostics)?, node.span))
        });
        routes.extend(defaults);
    }
    for entry in table.below("routes", diagnostics) {
        let to = match entry.key.as_str() {
            "default" => None,
            text => {
                let filled = values.fill(text, entry.key_span, diagnostics);
                match filled.map(|text| text.parse::<Prefix>()) {
                    Some(Ok(prefix)) => Some(prefix),
                    Some(Err(error)) => {
                        let help = "routes are written as \"10.1.0.0/16\" = \"10.0.0.254\"";
                        diagnostics.help(entry.key_span, error.to_string(), help);
                        continue;
                    }
                    None => continue,
                }
            }
        };
        let via = via(values, &entry.node, diagnostics);
        routes.extend(via.map(|via| (to, via, entry.key_span)));
    }
    (gateway.is_some() || given.is_some()).then_some(routes)
}

/// Assigns the addresses that were not given and creates the topology.
pub(crate) fn topology(
    networks: Vec<Network>,
    network_spots: &[SourceSpan],
    wanted: &[NodeRequest],
    diagnostics: &mut Diagnostics,
) -> Option<Topology> {
    let mut taken: BTreeSet<IpAddr> = BTreeSet::new();
    for wish in wanted.iter().flat_map(|wanted| &wanted.interfaces) {
        taken.extend(wish.addresses.iter().map(|address| address.address()));
    }
    let mut choice = AddressAllocator {
        networks: &networks,
        taken,
        next: networks.iter().map(|n| vec![0; n.subnets.len()]).collect(),
    };
    let all: Vec<Vec<Interface>> = wanted
        .iter()
        .map(|wanted| choice.interfaces(wanted, diagnostics))
        .collect();
    let (mut hosts, mut routers) = (Vec::new(), Vec::new());
    let (mut host_wishes, mut router_wishes) = (Vec::new(), Vec::new());
    let router_interfaces: Vec<&Vec<Interface>> = all
        .iter()
        .zip(wanted)
        .filter_map(|(interfaces, wanted)| wanted.is_router.then_some(interfaces))
        .collect();
    for (wanted, interfaces) in wanted.iter().zip(&all) {
        let routes = static_routes(wanted, interfaces, &router_interfaces, diagnostics);
        let (name, interfaces) = (wanted.name.clone(), interfaces.clone());
        if wanted.is_router {
            router_wishes.push(wanted);
            routers.push(Router {
                name,
                interfaces,
                routes,
            });
        } else {
            host_wishes.push(wanted);
            let aliases = wanted.aliases.clone();
            hosts.push(Host {
                name,
                aliases,
                interfaces,
                routes,
            });
        }
    }
    if !diagnostics.is_empty() {
        return None;
    }
    let wish = |part: TopologyNode| match part {
        TopologyNode::Host(HostIndex(at)) => host_wishes.get(at as usize),
        TopologyNode::Router(RouterIndex(at)) => router_wishes.get(at as usize),
        TopologyNode::Network(_) => None,
    };
    let is_automatic =
        |part: TopologyNode| wish(part).is_some_and(|wanted| wanted.routes.is_none());
    match Topology::with_automatic_routes(networks, routers, hosts, &is_automatic) {
        Ok(topology) => Some(topology),
        Err(errors) => {
            for error in errors {
                let span = match error.node {
                    TopologyNode::Network(NetworkIndex(at)) => {
                        network_spots.get(at as usize).copied()
                    }
                    part => wish(part).map(|wanted| wanted.span),
                };
                diagnostics.error(span.unwrap_or_default(), error.to_string());
            }
            None
        }
    }
}

/// An allocator of free addresses.
struct AddressAllocator<'n> {
    networks: &'n [Network],
    taken: BTreeSet<IpAddr>,
    /// The number of addresses tried in each subnet of each network, for hosts.
    next: Vec<Vec<u128>>,
}

impl AddressAllocator<'_> {
    fn interfaces(
        &mut self,
        wanted: &NodeRequest,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Interface> {
        let mut interfaces = Vec::new();
        for wish in &wanted.interfaces {
            let mut addresses = wish.addresses.clone();
            let subnets = match wish.is_exact {
                true => 0,
                false => self.networks[wish.network].subnets.len(),
            };
            for number in 0..subnets {
                let subnet = self.networks[wish.network].subnets[number];
                let is_same =
                    |given: &Prefix| given.address().is_ipv4() == subnet.address().is_ipv4();
                if addresses.iter().any(is_same) {
                    continue;
                }
                match self.free(wish.network, number, wanted.is_router) {
                    Some(address) => addresses.push(address),
                    None => {
                        let name = &self.networks[wish.network].name;
                        let message =
                            format!("subnet {subnet} of network {name} has no address left");
                        diagnostics.help(wish.span, message, "give the network a larger subnet");
                    }
                }
            }
            interfaces.push(Interface {
                name: wish.name.clone(),
                network: NetworkIndex(wish.network as u32),
                addresses,
                mtu: wish.mtu,
            });
        }
        interfaces
    }

    /// Returns a free address. Hosts are numbered from the bottom of a subnet, routers from its
    /// top.
    fn free(&mut self, network: usize, number: usize, from_top: bool) -> Option<Prefix> {
        let subnet = self.networks[network].subnets[number];
        let capacity = subnet.capacity();
        // The top of an IPv6 subnet is too long to read, so a low address is used.
        let mut top = match subnet.address() {
            IpAddr::V4(_) => capacity,
            IpAddr::V6(_) => capacity.min(0xfffe),
        };
        loop {
            let index = if from_top {
                let index = top;
                top = top.checked_sub(1)?;
                index
            } else {
                let next = &mut self.next[network][number];
                *next += 1;
                *next
            };
            let address = subnet.nth(index)?;
            if self.taken.insert(address) {
                return Prefix::new(address, subnet.length());
            }
        }
    }
}

fn static_routes(
    wanted: &NodeRequest,
    interfaces: &[Interface],
    routers: &[&Vec<Interface>],
    diagnostics: &mut Diagnostics,
) -> Vec<StaticRoute> {
    let mut routes = Vec::new();
    for (to, via, span) in wanted.routes.iter().flatten() {
        let is_v4 = to.map(|to| to.address().is_ipv4());
        let near = |address: IpAddr| {
            let fits = is_v4.is_none_or(|is_v4| is_v4 == address.is_ipv4());
            let mut own = interfaces.iter().flat_map(|interface| &interface.addresses);
            fits && own.any(|own| own.contains(address))
        };
        let address = match via {
            Via::Address(address) => Some(*address),
            Via::Router(router) => {
                let theirs = routers.get(*router).map(|interfaces| interfaces.iter());
                let mut theirs = theirs.into_iter().flatten().flat_map(|i| &i.addresses);
                let found = theirs.find(|address| near(address.address()));
                found.map(|address| address.address())
            }
        };
        let Some(via) = address else {
            let message = "that router is on none of the networks here";
            diagnostics.help(*span, message, "name one that is");
            continue;
        };
        let everything = match via {
            IpAddr::V4(_) => Prefix::ALL_V4,
            IpAddr::V6(_) => Prefix::ALL_V6,
        };
        let to = to.map_or(everything, Prefix::subnet);
        routes.push(StaticRoute { to, via });
    }
    routes
}
