//! Automatic routes for hosts and routers without configured ones. A host gets a default route via
//! the first router of its networks; a router gets a route with the fewest hops to each subnet.

use std::net::IpAddr;

use crate::address::Prefix;
use crate::topology::{
    Host, Network, NetworkIndex, Router, RouterIndex, StaticRoute, Tables, Topology, TopologyError,
    TopologyNode,
};

impl Topology {
    /// Validates the nodes and computes the routes. Reports all errors at once.
    pub fn new(
        networks: Vec<Network>,
        routers: Vec<Router>,
        hosts: Vec<Host>,
    ) -> Result<Topology, Vec<TopologyError>> {
        Topology::with_automatic_routes(networks, routers, hosts, &|_| false)
    }

    /// Like [`Topology::new`], and adds automatic routes to these hosts and routers.
    pub fn with_automatic_routes(
        networks: Vec<Network>,
        routers: Vec<Router>,
        hosts: Vec<Host>,
        is_automatic: &dyn Fn(TopologyNode) -> bool,
    ) -> Result<Topology, Vec<TopologyError>> {
        let mut topology = Topology {
            networks,
            routers,
            hosts,
            ports: Vec::new(),
            first_ports: Vec::new(),
            owners: Vec::new(),
            members: Vec::new(),
            tables: Tables::default(),
        };
        let mut errors = Vec::new();
        topology.check_names(&mut errors);
        topology.check_networks(&mut errors);
        topology.check_interfaces(&mut errors);
        if errors.is_empty() {
            topology.number_ports();
            topology.find_owners(&mut errors);
        }
        if errors.is_empty() {
            topology.check_routes(&mut errors);
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        for (node, routes) in automatic_routes(&topology, is_automatic) {
            match node {
                TopologyNode::Host(host) => topology.hosts[host.index()].routes.extend(routes),
                TopologyNode::Router(router) => {
                    topology.routers[router.index()].routes.extend(routes)
                }
                TopologyNode::Network(_) => {}
            }
        }
        topology.tables = Tables::of(&topology);
        Ok(topology)
    }
}

/// Returns the automatic routes of these hosts and routers.
fn automatic_routes(
    topology: &Topology,
    is_automatic: &dyn Fn(TopologyNode) -> bool,
) -> Vec<(TopologyNode, Vec<StaticRoute>)> {
    let mut all = Vec::new();
    for node in topology.nodes().filter(|node| is_automatic(*node)) {
        let routes = match node {
            TopologyNode::Host(host) => default_routes(topology, topology.host(host)),
            TopologyNode::Router(router) => router_routes(topology, router),
            TopologyNode::Network(_) => Vec::new(),
        };
        if !routes.is_empty() {
            all.push((node, routes));
        }
    }
    all
}

/// Returns the addresses of the routers on a network, in router order.
fn gateways(
    topology: &Topology,
    network: NetworkIndex,
) -> impl Iterator<Item = (RouterIndex, IpAddr)> + '_ {
    let routers = topology.routers.iter().enumerate();
    routers.flat_map(move |(at, router)| {
        let here = router
            .interfaces
            .iter()
            .filter(move |i| i.network == network);
        let addresses = here.flat_map(|interface| interface.addresses.iter());
        addresses.map(move |address| (RouterIndex(at as u32), address.address()))
    })
}

/// Returns a default route of each IP version, via the first router that a host can reach directly.
fn default_routes(topology: &Topology, host: &Host) -> Vec<StaticRoute> {
    let mut routes = Vec::new();
    for to in [Prefix::ALL_V4, Prefix::ALL_V6] {
        let reached = host.interfaces.iter().flat_map(|interface| {
            let usable = move |(_, via): &(RouterIndex, IpAddr)| {
                to.contains(*via) && interface.addresses.iter().any(|a| a.contains(*via))
            };
            gateways(topology, interface.network).filter(usable)
        });
        routes.extend(reached.map(|(_, via)| StaticRoute { to, via }).take(1));
    }
    routes
}

/// Returns the routes of a router, by breadth-first search over networks and routers.
fn router_routes(topology: &Topology, start: RouterIndex) -> Vec<StaticRoute> {
    let router = &topology.routers[start.index()];
    let mut reached = vec![false; topology.networks.len()];
    let mut routes = Vec::new();
    for interface in &router.interfaces {
        reached[interface.network.index()] = true;
    }
    for family in [Prefix::ALL_V4, Prefix::ALL_V6] {
        let mut reached = reached.clone();
        // The routers to expand, each with the first hop to it.
        let mut queue = std::collections::VecDeque::new();
        for interface in &router.interfaces {
            let own = |via: IpAddr| interface.addresses.iter().any(|a| a.contains(via));
            let near = gateways(topology, interface.network)
                .filter(|(other, via)| *other != start && family.contains(*via) && own(*via));
            queue.extend(near);
        }
        while let Some((other, via)) = queue.pop_front() {
            for interface in &topology.routers[other.index()].interfaces {
                let network = interface.network;
                if std::mem::replace(&mut reached[network.index()], true) {
                    continue;
                }
                let subnets = topology.network(network).subnets.iter();
                let same = subnets.filter(|subnet| family.contains(subnet.address()));
                routes.extend(same.map(|to| StaticRoute { to: *to, via }));
                let further = gateways(topology, network)
                    .filter(|(next, address)| *next != other && family.contains(*address));
                queue.extend(further.map(|(next, _)| (next, via)));
            }
        }
    }
    routes
}
