//! Reachability, paths and rejected topologies.

use everett_net::{
    Arrival, Host, HostIndex, Interface, LinkState, Network, NetworkIndex, Prefix, Route, Router,
    StaticRoute, Topology, TopologyErrorKind, TopologyNode, Unreachable,
};
use proptest::prelude::*;
use std::net::IpAddr;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn prefix(text: &str) -> Prefix {
    text.parse().expect("a prefix")
}

fn interface(number: usize, network: u32, addresses: &[&str]) -> Interface {
    Interface {
        name: format!("eth{number}"),
        network: NetworkIndex(network),
        addresses: addresses.iter().map(|text| prefix(text)).collect(),
        mtu: None,
    }
}

fn host(name: &str, interfaces: &[(u32, &[&str])]) -> Host {
    let interfaces = interfaces.iter().enumerate();
    Host {
        name: name.to_owned(),
        aliases: Vec::new(),
        interfaces: interfaces
            .map(|(at, (n, a))| interface(at, *n, a))
            .collect(),
        routes: Vec::new(),
    }
}

fn router(name: &str, interfaces: &[(u32, &[&str])]) -> Router {
    let made = host(name, interfaces);
    Router {
        name: made.name,
        interfaces: made.interfaces,
        routes: Vec::new(),
    }
}

/// Three LANs in a row with routers between them; two hosts on the first, one on each other.
fn row() -> (Vec<Network>, Vec<Router>, Vec<Host>) {
    let mut networks: Vec<Network> = (0..3)
        .map(|at| {
            let subnets = vec![
                prefix(&format!("10.0.{at}.0/24")),
                prefix(&format!("fd00:{at}::/64")),
            ];
            Network::new(format!("net{at}"), subnets)
        })
        .collect();
    networks[1].latency_ns = 5_000_000;
    networks[1].mtu = 576;
    let routers = vec![
        router(
            "r0",
            &[
                (0, &["10.0.0.254/24", "fd00:0::fe/64"]),
                (1, &["10.0.1.254/24"]),
            ],
        ),
        router("r1", &[(1, &["10.0.1.253/24"]), (2, &["10.0.2.254/24"])]),
    ];
    let hosts = vec![
        host("a", &[(0, &["10.0.0.1/24", "fd00:0::1/64"])]),
        host("b", &[(0, &["10.0.0.2/24", "fd00:0::2/64"])]),
        host("c", &[(1, &["10.0.1.1/24"])]),
        host("d", &[(2, &["10.0.2.1/24"])]),
    ];
    (networks, routers, hosts)
}

fn automatic() -> Topology {
    let (networks, routers, hosts) = row();
    Topology::with_automatic_routes(networks, routers, hosts, &|_| true).expect("a topology")
}

const A: HostIndex = HostIndex(0);
const B: HostIndex = HostIndex(1);
const D: HostIndex = HostIndex(3);

#[test]
fn hosts_reach_themselves() {
    let world = automatic();
    for own in [
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "0.0.0.0",
        "::",
        "10.0.0.1",
        "::ffff:10.0.0.1",
    ] {
        assert_eq!(world.route(A, ip(own)), Route::Local, "{own}");
    }
    assert_eq!(world.source_for(A, ip("127.0.0.1")), Some(ip("127.0.0.1")));
    assert_eq!(world.source_for(A, ip("10.0.0.1")), Some(ip("10.0.0.1")));
}

#[test]
fn neighbours_are_one_hop_away() {
    let world = automatic();
    for address in ["10.0.0.2", "fd00:0::2"] {
        let Route::Host { target, path } = world.route(A, ip(address)) else {
            panic!("{address} is not reached");
        };
        assert_eq!((target, path.hops.len(), path.routers()), (B, 1, 0));
        assert_eq!((path.latency_ns, path.mtu), (1_000_000, 1500));
    }
    assert_eq!(world.source_for(A, ip("fd00:0::2")), Some(ip("fd00:0::1")));
}

#[test]
fn routers_forward() {
    let world = automatic();
    let Route::Host { target, path } = world.route(A, ip("10.0.2.1")) else {
        panic!("d is not reached");
    };
    assert_eq!((target, path.routers()), (D, 2));
    assert_eq!((path.latency_ns, path.mtu), (7_000_000, 576));
    assert_eq!(world.source_for(A, ip("10.0.2.1")), Some(ip("10.0.0.1")));
    // And back.
    assert!(matches!(
        world.route(D, ip("10.0.0.1")),
        Route::Host { target: A, .. }
    ));
}

#[test]
fn nobody_there() {
    let world = automatic();
    let unreachable = |text: &str| match world.route(A, ip(text)) {
        Route::Unreachable(reason) => reason,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(unreachable("10.0.0.77"), Unreachable::HostUnreachable);
    assert_eq!(unreachable("10.0.2.77"), Unreachable::HostUnreachable);
    assert_eq!(unreachable("192.168.0.1"), Unreachable::HostUnreachable);
    assert_eq!(unreachable("10.0.0.254"), Unreachable::PortUnreachable);
    assert_eq!(unreachable("10.0.2.254"), Unreachable::PortUnreachable);
    let (networks, routers, hosts) = row();
    let plain = Topology::new(networks, routers, hosts).expect("a topology");
    let no_route = Route::Unreachable(Unreachable::NoRoute);
    assert_eq!(plain.route(A, ip("10.0.2.1")), no_route);
    assert_eq!(plain.source_for(A, ip("10.0.2.1")), None);
}

#[test]
fn many_are_those_of_the_lan() {
    let world = automatic();
    for address in ["255.255.255.255", "10.0.0.255", "224.0.0.1", "ff02::1"] {
        let Route::Multicast {
            network,
            path,
            hosts,
        } = world.route(A, ip(address))
        else {
            panic!("{address} is not for many");
        };
        assert_eq!((network, hosts), (NetworkIndex(0), &[A, B][..]));
        assert_eq!(path.hops.len(), 1);
        let family = ip(address).is_ipv4();
        let source = world.source_for(A, ip(address)).expect("an address");
        assert_eq!(source.is_ipv4(), family);
    }
    // Routers do not forward it.
    let elsewhere = world.route(A, ip("10.0.2.255"));
    assert_eq!(elsewhere, Route::Unreachable(Unreachable::HostUnreachable));
}

#[test]
fn longer_prefixes_win_and_circles_end() {
    let (networks, mut routers, mut hosts) = row();
    let route = |to: &str, via: &str| StaticRoute {
        to: prefix(to),
        via: ip(via),
    };
    hosts[2].routes = vec![
        route("0.0.0.0/0", "10.0.1.254"),
        route("10.0.2.0/24", "10.0.1.253"),
        route("10.0.2.128/25", "10.0.1.254"),
    ];
    // The two routers have default routes to each other.
    routers[0].routes = vec![route("0.0.0.0/0", "10.0.1.253")];
    routers[1].routes = vec![route("0.0.0.0/0", "10.0.1.254")];
    let c = HostIndex(2);
    let world = Topology::new(networks, routers, hosts).expect("a topology");
    let Route::Host { path, .. } = world.route(c, ip("10.0.2.1")) else {
        panic!("d is not reached");
    };
    assert_eq!(path.routers(), 1);
    let circle = world.route(c, ip("192.168.1.1"));
    assert_eq!(circle, Route::Unreachable(Unreachable::HostUnreachable));
}

#[test]
fn bandwidth_makes_packets_wait_and_queues_overflow() {
    let (mut networks, routers, hosts) = row();
    // 1000 bytes take a millisecond.
    networks[0].bandwidth_bits_per_s = Some(8_000_000);
    networks[0].queue_packets = Some(1);
    let world = Topology::new(networks, routers, hosts).expect("a topology");
    let Route::Host { path, .. } = world.route(A, ip("10.0.0.2")) else {
        panic!("b is not reached");
    };
    let mut links = LinkState::default();
    let mut send = |at_ns: u64| world.arrival_ns(path, at_ns, 1000, &mut links);
    assert_eq!(send(0), Arrival::At(2_000_000));
    assert_eq!(send(0), Arrival::At(3_000_000), "it waits for the first");
    assert_eq!(send(10), Arrival::Dropped(path.hops[0].port));
    assert_eq!(send(1_000_000), Arrival::At(4_000_000), "the first is gone");
    assert_eq!(send(50_000_000), Arrival::At(52_000_000));
    let before = links.clone();
    assert!(!before.is_idle());
}

#[test]
fn names_are_resolved() {
    let (networks, routers, mut hosts) = row();
    hosts[0].aliases = vec!["www.example".to_owned()];
    let world = Topology::new(networks, routers, hosts).expect("a topology");
    assert_eq!(
        world.resolve("WWW.example"),
        [ip("10.0.0.1"), ip("fd00:0::1")]
    );
    assert!(world.resolve("nobody").is_empty());
    let file = world.hosts_file();
    assert!(file.starts_with("127.0.0.1 localhost\n"));
    assert!(file.contains("\n10.0.0.1 a www.example\nfd00::1 a www.example\n10.0.0.2 b\n"));
}

#[test]
fn everything_wrong_is_told_with_its_name() {
    let (mut networks, routers, mut hosts) = row();
    networks[1].latency_ns = 0;
    hosts[1].name = "a".to_owned();
    hosts[2].interfaces[0].addresses = vec![prefix("10.9.0.1/24")];
    hosts[3].name = "no name".to_owned();
    let errors = Topology::new(networks, routers, hosts).expect_err("it is wrong");
    let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "host a: there is another host or router of this name, or an alias like it",
            "host no name: \"no name\" is not a host name; use letters, digits, '-', '_' and '.'",
            "network net1: its latency is 0; messages must take some time",
            "host c: 10.9.0.1/24 is in no subnet of network net1",
        ]
    );
}

#[test]
fn addresses_and_routes_are_checked() {
    let first_trouble = |change: &dyn Fn(&mut Vec<Network>, &mut Vec<Host>)| {
        let (mut networks, routers, mut hosts) = row();
        change(&mut networks, &mut hosts);
        let errors = Topology::new(networks, routers, hosts).expect_err("it is wrong");
        (errors[0].node, errors[0].kind.clone())
    };
    let (node, trouble) =
        first_trouble(&|_, hosts| hosts[1].interfaces[0].addresses[0] = prefix("10.0.0.1/24"));
    assert_eq!(node, TopologyNode::Host(B));
    assert!(matches!(trouble, TopologyErrorKind::AddressTaken { .. }));
    for bad in ["10.0.0.255/24", "10.0.0.0/24"] {
        let change = |_: &mut Vec<Network>, hosts: &mut Vec<Host>| {
            hosts[1].interfaces[0].addresses[0] = prefix(bad);
        };
        assert!(
            matches!(first_trouble(&change).1, TopologyErrorKind::BadAddress(_)),
            "{bad}"
        );
    }
    let routed = |via: &'static str| {
        move |_: &mut Vec<Network>, hosts: &mut Vec<Host>| {
            let to = Prefix::ALL_V4;
            hosts[0].routes = vec![StaticRoute { to, via: ip(via) }];
        }
    };
    assert!(matches!(
        first_trouble(&routed("10.0.1.254")).1,
        TopologyErrorKind::FarGateway { .. }
    ));
    assert!(matches!(
        first_trouble(&routed("10.0.0.2")).1,
        TopologyErrorKind::NoGateway { .. }
    ));
    let overlap = |networks: &mut Vec<Network>, _: &mut Vec<Host>| {
        networks[2].subnets = vec![prefix("10.0.0.0/16")];
    };
    assert!(matches!(
        first_trouble(&overlap).1,
        TopologyErrorKind::Overlap { .. }
    ));
    let nowhere = |_: &mut Vec<Network>, hosts: &mut Vec<Host>| {
        hosts[0].interfaces[0].network = NetworkIndex(9);
    };
    assert!(matches!(
        first_trouble(&nowhere).1,
        TopologyErrorKind::NoNetwork { .. }
    ));
}

proptest! {
    /// With automatic routes, hosts reach each other exactly if routers connect their networks, and
    /// return paths have the same length.
    #[test]
    fn automatic_routes_lead_everywhere(links in proptest::collection::vec((0u32..6, 0u32..6), 0..8)) {
        let networks: Vec<Network> = (0..6)
            .map(|at| Network::new(format!("n{at}"), vec![prefix(&format!("10.0.{at}.0/24"))]))
            .collect();
        let links: Vec<(u32, u32)> = links.into_iter().filter(|(a, b)| a != b).collect();
        let routers = links.iter().enumerate().map(|(at, (a, b))| {
            let last = 254 - at;
            let first = format!("10.0.{a}.{last}/24");
            let second = format!("10.0.{b}.{last}/24");
            router(&format!("r{at}"), &[(*a, &[&first]), (*b, &[&second])])
        });
        let hosts = (0..6).map(|at| {
            let address = format!("10.0.{at}.1/24");
            host(&format!("h{at}"), &[(at, &[&address])])
        });
        let (routers, hosts) = (routers.collect(), hosts.collect());
        let world = Topology::with_automatic_routes(networks, routers, hosts, &|_| true).expect("a topology");
        // Networks that are connected, by repeated joining.
        let mut group: Vec<usize> = (0..6).collect();
        for _ in 0..6 {
            for (a, b) in &links {
                let least = group[*a as usize].min(group[*b as usize]);
                group[*a as usize] = least;
                group[*b as usize] = least;
            }
        }
        for a in 0..6usize {
            for b in 0..6usize {
                let route = world.route(HostIndex(a as u32), ip(&format!("10.0.{b}.1")));
                match route {
                    Route::Local => prop_assert_eq!(a, b),
                    Route::Host { target, .. } => {
                        prop_assert_eq!(target.index(), b);
                        prop_assert_eq!(group[a], group[b]);
                    }
                    other => prop_assert_ne!(group[a], group[b], "{:?}", other),
                }
            }
        }
    }
}
