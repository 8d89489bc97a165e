//! Live peers of a scenario: their configuration as hosts of the world, and the live programs or
//! recordings that answer for them. Owns the permission to contact anything outside.

use everett_engine::ExplorerConfig;
use everett_net::Topology;
use everett_peers::{LivePeers, LiveSetup, Mode, ReadyWhen, Where};
use everett_scenario::{Fresh, HostSetup, PeerListen, PeerSetup, PeerSymbolic, Ready, Scenario};
use everett_sim::{PeerConfig, SymbolicBytes};
use everett_vm::Outside;
use std::any::Any;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result, bail};
use crate::spec::RunSpec;
use crate::summary::PeerFigures;

/// Minimum virtual time before a peer is asked, beyond the round trip of a packet.
const THINK_NS: u64 = 1_000_000;

/// Creates the configuration of a peer as a host of the world.
pub(crate) fn peer_config(
    scenario: &Scenario,
    setup: &HostSetup,
    peer: &PeerSetup,
) -> Arc<PeerConfig> {
    let topology = &scenario.topology;
    let addresses: Vec<_> = topology.addresses(setup.index).collect();
    let connects_to = peer.connects.and_then(|host| {
        let mut theirs = topology.addresses(host);
        let is_same = |address: &std::net::IpAddr| {
            addresses
                .iter()
                .any(|own| own.is_ipv4() == address.is_ipv4())
        };
        theirs.find(is_same)
    });
    Arc::new(PeerConfig {
        name: setup.name.clone(),
        addresses,
        port: peer.port,
        connects_to,
        is_udp: peer.is_udp,
        think_ns: peer.think_ns.unwrap_or_else(|| usual_think_ns(topology)),
        silences: peer.silences,
        is_independent: peer.is_independent,
        any_order: peer.any_order,
        symbolic: match peer.symbolic {
            PeerSymbolic::One => SymbolicBytes::One,
            PeerSymbolic::All => SymbolicBytes::All,
            PeerSymbolic::Refuse => SymbolicBytes::Refuse,
        },
    })
}

/// Returns the paths at which hosts reach peers, and their addresses.
pub(crate) fn peer_paths(scenario: &Scenario) -> Vec<(Vec<u8>, SocketAddr)> {
    let path = |setup: &HostSetup| {
        let peer = setup.peer.as_ref()?;
        let path = peer.path.as_ref()?.clone().into_bytes();
        let mut addresses = scenario.topology.addresses(setup.index);
        let address = addresses.find(|address| address.is_ipv4())?;
        Some((path, SocketAddr::new(address, peer.port)))
    };
    scenario.hosts.iter().filter_map(path).collect()
}

/// Returns a time after which a host's reply has arrived before the peer is asked again.
fn usual_think_ns(topology: &Topology) -> u64 {
    let latencies = topology.networks().iter().map(|network| network.latency_ns);
    let longest = latencies.max().unwrap_or(0);
    longest.saturating_mul(4).saturating_add(THINK_NS)
}

/// Returns the configuration of the live program of a peer.
fn live_setup(scenario: &Scenario, setup: &HostSetup, peer: &PeerSetup) -> Result<LiveSetup> {
    let varies = peer.varies.iter().map(|text| {
        let pattern = everett_peers::pattern(text);
        pattern.map_err(Error::Invalid)
    });
    Ok(LiveSetup {
        name: setup.name.clone(),
        command: peer.command.clone(),
        folder: scenario.folder.clone(),
        env: peer.env.clone(),
        files: peer.files.clone(),
        ready: match &peer.ready {
            Ready::Port => ReadyWhen::Port,
            Ready::Line(text) => ReadyWhen::Line(text.clone()),
            Ready::After(ns) => ReadyWhen::After(Duration::from_nanos(*ns)),
        },
        listen: match &peer.listen {
            PeerListen::Internet(address) => Where::Internet(*address),
            PeerListen::Unix(path) => Where::Unix(PathBuf::from(path)),
        },
        is_datagram: peer.is_udp,
        is_client: peer.connects.is_some(),
        fresh: match peer.fresh {
            _ if peer.is_independent => everett_peers::Fresh::Connection,
            Fresh::Connection => everett_peers::Fresh::Connection,
            Fresh::Process => everett_peers::Fresh::Process,
            Fresh::Snapshot => everett_peers::Fresh::Snapshot,
        },
        instances: peer.instances as usize,
        any_order: peer.any_order,
        varies: varies.collect::<Result<_>>()?,
        patience: Duration::from_nanos(peer.patience_ns),
        max_bytes: peer.max_bytes,
    })
}

fn setups(scenario: &Scenario) -> Result<Vec<LiveSetup>> {
    let peers = scenario.hosts.iter();
    let peers = peers.filter_map(|setup| Some((setup, setup.peer.as_ref()?)));
    peers
        .map(|(setup, peer)| live_setup(scenario, setup, peer))
        .collect()
}

/// Returns what answers for the peers of a scenario in a run; `None` if there are no peers.
pub(crate) fn outside(scenario: &Scenario, spec: &RunSpec) -> Result<Option<Arc<dyn Outside>>> {
    let setups = setups(scenario)?;
    if setups.is_empty() {
        return Ok(None);
    }
    let mode = match (spec.allow_live, &spec.offline, &spec.recorded_in) {
        (true, None, _) => Mode::Live,
        (_, Some(_), _) | (_, _, Some(_)) => Mode::Offline,
        (false, None, None) => {
            let names: Vec<&str> = setups.iter().map(|setup| setup.name.as_str()).collect();
            bail!(
                Usage,
                "the scenario has live peers ({}): `allow_live` lets them be started and contacted, `offline` \
                 answers from the recording of an earlier run",
                names.join(", ")
            );
        }
    };
    let peers = LivePeers::new(setups, mode);
    for folder in [&spec.offline, &spec.recorded_in].into_iter().flatten() {
        let loaded = peers.load(folder);
        loaded.map_err(|error| {
            Error::Invalid(format!(
                "the recording of live peers cannot be used: {error}"
            ))
        })?;
    }
    Ok(Some(Arc::new(peers)))
}

/// Returns the live peers themselves, for a replay against them.
pub(crate) fn live(scenario: &Scenario) -> Result<Arc<dyn Outside>> {
    Ok(Arc::new(LivePeers::new(setups(scenario)?, Mode::Live)))
}

/// Returns the live peers of a search.
fn peers_of(config: &ExplorerConfig) -> Option<&LivePeers> {
    let outside: &dyn Any = config.outside.as_deref()?;
    outside.downcast_ref()
}

/// Records the answers of live peers in the folder of a run.
pub(crate) fn record(config: &ExplorerConfig, folder: &Path) -> Result<()> {
    let Some(peers) = peers_of(config) else {
        return Ok(());
    };
    let recorded = peers.record_to(folder);
    recorded.map_err(|error| Error::Invalid(format!("live peers cannot be recorded: {error}")))
}

/// Ends the live peers of a search that is over.
pub(crate) fn stop(config: &ExplorerConfig) {
    if let Some(peers) = peers_of(config) {
        peers.stop();
    }
}

/// Returns the counters of live peers.
pub(crate) fn figures(config: &ExplorerConfig) -> Vec<PeerFigures> {
    let counts = peers_of(config).map_or_else(Vec::new, LivePeers::counts);
    let figures = counts.into_iter().map(|peer| PeerFigures {
        name: peer.name,
        recorded: peer.recorded,
        from_recording: peer.replayed,
        live: peer.live,
        instances: peer.instances,
        played_again: peer.played,
    });
    figures.collect()
}
