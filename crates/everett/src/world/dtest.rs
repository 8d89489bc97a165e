//! Tests of worlds as `.dtest` files: a test in KLEE's format for each host, and a file that
//! composes them.

use everett_engine::{Trace, TraceEnd, WorldHost};
use everett_linux::Argument;
use everett_net::{Interface, StartTime, StaticRoute, Topology};
use everett_report::{DTest, NamedFile, TestHost, TestInterface, TestNode};
use everett_vm::BugKind;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::finding::ktest;

/// The parts that all tests of a scenario share.
#[derive(Clone)]
pub(crate) struct Tests {
    topology: Topology,
    hosts: Arc<[WorldHost]>,
}

impl Tests {
    /// Creates the shared parts for a scenario.
    pub(crate) fn of(topology: &Topology, hosts: &[WorldHost]) -> Tests {
        Tests {
            topology: topology.clone(),
            hosts: hosts.into(),
        }
    }

    /// Returns the files of a test: `STEM.dtest`, and `STEM-HOST.ktest` for each host.
    pub(crate) fn files(&self, stem: &str, traces: &BTreeMap<String, Trace>) -> Vec<NamedFile> {
        let mut files = Vec::new();
        // A host that waits for earlier ones starts after all of them.
        let mut latest_ns = 0;
        let mut starts: Vec<(u64, usize)> = Vec::with_capacity(self.hosts.len());
        for (at, host) in self.hosts.iter().enumerate() {
            let start_ns = match host.start {
                StartTime::At(start_ns) => start_ns,
                StartTime::Blocked(_) => latest_ns,
            };
            latest_ns = latest_ns.max(start_ns);
            starts.push((start_ns, at));
        }
        starts.sort();
        let mut hosts = Vec::new();
        for (_, at) in starts {
            let (host, place) = (&self.hosts[at], &self.topology.hosts()[at]);
            let trace = traces.get(&host.name).cloned().unwrap_or_default();
            let name = format!("{stem}-{}.ktest", host.name);
            let words: Vec<String> = host.config.args.iter().map(word).collect();
            files.push((name.clone(), ktest(&words, &trace)));
            hosts.push(TestHost {
                node: self.node(&place.name, &place.interfaces, &place.routes),
                file: name.rsplit('/').next().unwrap_or(&name).to_owned(),
                is_server: trace.end.as_ref().is_none_or(goes_on),
            });
        }
        let networks = self.topology.networks().iter();
        let routers = self.topology.routers().iter();
        let test = DTest {
            networks: networks.map(|network| network.name.clone()).collect(),
            routers: routers
                .map(|router| self.node(&router.name, &router.interfaces, &router.routes))
                .collect(),
            hosts,
        };
        files.push((format!("{stem}.dtest"), test.to_xml().into_bytes()));
        files
    }

    fn node(&self, name: &str, interfaces: &[Interface], routes: &[StaticRoute]) -> TestNode {
        let interface = |interface: &Interface| TestInterface {
            network: self.topology.network(interface.network).name.clone(),
            addresses: interface
                .addresses
                .iter()
                .map(|address| (address.address(), address.length()))
                .collect(),
        };
        let route = |route: &StaticRoute| ((route.to.address(), route.to.length()), route.via);
        TestNode {
            name: name.to_owned(),
            interfaces: interfaces.iter().map(interface).collect(),
            routes: routes.iter().map(route).collect(),
        }
    }
}

/// Returns whether a host does not end by itself. What is wrong about a world as a whole is recorded
/// at one of its hosts, which may well go on.
fn goes_on(end: &TraceEnd) -> bool {
    let kind = end.finding.as_deref().and_then(BugKind::from_name);
    let lasts = matches!(
        kind,
        Some(BugKind::Deadlock | BugKind::Hang | BugKind::Invariant | BugKind::Expectation)
    );
    let has_ended = end.exit.is_some() || end.signal.is_some() || end.off;
    !has_ended && (end.idle || lasts)
}

/// Returns a word of the command line; the test itself contains the symbolic ones.
fn word(argument: &Argument) -> String {
    match argument {
        Argument::Concrete(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Argument::Symbolic { max_len } => format!("--sym-arg={max_len}"),
        Argument::SymbolicMany { min, max, max_len } => {
            format!("--sym-args={min},{max},{max_len}")
        }
        Argument::Prefixed { name, max_len, .. } => format!("--sym-env={name},{max_len}"),
    }
}
