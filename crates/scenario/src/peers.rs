//! Reads `[peer.*]`: live peers, which are not explored.

use everett_net::HostIndex;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::model::{Fresh, HostSetup, PeerListen, PeerSetup, PeerSymbolic, Ready, Start};
use crate::placement::{KnownNames, NodeRequest, read_placement};
use crate::reader::{Table, ValueReader, unknown};
use crate::source::Diagnostics;
use crate::toml_tree::{TomlEntry, TomlNode, TomlValue};
use crate::units;
use crate::{NameContext, NameKind};

const PATIENCE_NS: u64 = 100_000_000;
const MAX_BYTES: u64 = 256 << 20;
const INSTANCES: u32 = 4;

/// The context for reading peers.
pub(crate) struct PeerReader<'r> {
    pub folder: &'r Path,
    pub context: &'r dyn NameContext,
    /// The hosts that are explored.
    pub hosts: &'r [HostSetup],
}

/// Returns whether a peer has an address outside of the default subnet of scenarios.
pub(crate) fn need_wide_network(entries: &[TomlEntry]) -> bool {
    let address = |entry: &TomlEntry| match &entry.node.value {
        TomlValue::Table(keys) => {
            let found = keys.iter().find(|key| key.key == "address")?;
            match &found.node.value {
                TomlValue::Text(text) => text.parse::<std::net::Ipv4Addr>().ok(),
                _ => None,
            }
        }
        _ => None,
    };
    let mut octets = entries
        .iter()
        .filter_map(address)
        .map(|address| address.octets());
    octets.any(|octets| octets[0] == 10 && octets[1..3] != [0, 0])
}

impl PeerReader<'_> {
    /// Reads a peer: its address and its network placement.
    pub fn read(
        &self,
        entry: &TomlEntry,
        index: HostIndex,
        known: &KnownNames<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Option<(HostSetup, NodeRequest)> {
        let values = ValueReader::default();
        let path = format!("peer.{}", entry.key);
        let mut table = Table::new(path, entry.key_span, &entry.node, diagnostics)?;
        let name = entry.key.clone();
        if self.hosts.iter().any(|host| host.name == name) {
            let message = format!("{name:?} is the name of a host");
            diagnostics.help(entry.key_span, message, "give the peer another name");
        }
        let mut place = read_placement(name, false, &mut table, values, known, diagnostics);
        let alias = table
            .get("name")
            .and_then(|node| values.text(node, diagnostics));
        place.aliases.extend(alias);
        let peer = self.peer(&mut table, values, diagnostics);
        let start = crate::hosts::start(&mut table, values, diagnostics);
        let start = match (start, &peer) {
            // A client connects when the hosts are ready for it.
            (Start::InTurn, Some(peer)) if peer.connects.is_some() => Start::Blocked,
            (Start::InTurn, _) => Start::At(0),
            (start, _) => start,
        };
        table.finish(diagnostics);
        let setup = HostSetup {
            index,
            name: entry.key.clone(),
            group: entry.key.clone(),
            number: 0,
            processes: Vec::new(),
            programs: Vec::new(),
            files: Vec::new(),
            start,
            begin: None,
            stop_ns: None,
            clock_skew_ns: 0,
            symbolic_clock: false,
            options: Vec::new(),
            watches: Vec::new(),
            variables: Vec::new(),
            peer: Some(peer?),
        };
        Some((setup, place))
    }

    fn peer(
        &self,
        table: &mut Table<'_>,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Option<PeerSetup> {
        let command = table.get("command");
        let command = command.map_or_else(Vec::new, |node| values.texts(node, diagnostics));
        let is_udp = table.get("protocol").is_some_and(|node| {
            let words = [("tcp", false), ("udp", true)];
            values.word(node, &words, diagnostics).unwrap_or_default()
        });
        let listen = self.listen(table, values, !command.is_empty(), diagnostics);
        let path = table
            .get("path")
            .and_then(|node| values.text(node, diagnostics));
        let port = self.port(table, values, path.is_some(), diagnostics);
        let role = table.get("role");
        let is_client = role.is_some_and(|node| {
            let words = [("server", false), ("client", true)];
            values.word(node, &words, diagnostics).unwrap_or_default()
        });
        let connects = self.connects(table, values, is_client, diagnostics);
        let fresh = self.fresh(table, values, (!command.is_empty(), is_client), diagnostics);
        let independent = table.get("independent");
        if is_client {
            let sends_on_path = is_udp && matches!(listen, Some(PeerListen::Unix(_)));
            expect_of_client(table, independent, sends_on_path, diagnostics);
        }
        let is_independent = independent.and_then(|node| values.flag(node, diagnostics));
        if let (Some(node), Some(true), Fresh::Snapshot) = (independent, is_independent, fresh) {
            let help = "leave it out, or write fresh = \"connection\"";
            let message = "independent connections go to one process, which is not copied";
            diagnostics.help(node.span, message, help);
        }
        let any_order = table.get("order").is_some_and(|node| {
            let words = [("seen", false), ("any", true)];
            values.word(node, &words, diagnostics).unwrap_or_default()
        });
        let symbolic = table.get("symbolic").and_then(|node| {
            let words = [
                ("one", PeerSymbolic::One),
                ("all", PeerSymbolic::All),
                ("refuse", PeerSymbolic::Refuse),
            ];
            values.word(node, &words, diagnostics)
        });
        let time = |node: Option<&TomlNode>, diagnostics: &mut Diagnostics| {
            node.and_then(|node| values.duration_ns(node, diagnostics))
        };
        Some(PeerSetup {
            env: self.env(table, values, diagnostics),
            files: self.files(table, values, diagnostics),
            ready: ready(table, values, diagnostics),
            varies: self.varies(table, values, diagnostics),
            patience_ns: time(table.get("patience"), diagnostics).unwrap_or(PATIENCE_NS),
            think_ns: time(table.get("think"), diagnostics),
            silences: at_least_one(table.get("silences"), values, 1, diagnostics),
            instances: at_least_one(table.get("instances"), values, INSTANCES, diagnostics),
            max_bytes: match table.get("max_bytes") {
                Some(node) => values.size(node, diagnostics).unwrap_or(MAX_BYTES),
                None => MAX_BYTES,
            },
            command,
            listen: listen?,
            port: port?,
            path,
            is_udp,
            connects,
            fresh,
            is_independent: is_independent.unwrap_or_default(),
            any_order,
            symbolic: symbolic.unwrap_or_default(),
        })
    }

    fn listen(
        &self,
        table: &mut Table<'_>,
        values: ValueReader,
        is_started: bool,
        diagnostics: &mut Diagnostics,
    ) -> Option<PeerListen> {
        let Some(node) = table.get("listen") else {
            let message = format!(
                "[{}] does not say where the real peer is reached",
                table.path
            );
            let help = "write listen = \"127.0.0.1:PORT\"; port 0 takes a free one, which is {port} in the command";
            diagnostics.help(table.span, message, help);
            return None;
        };
        let text = values.text(node, diagnostics)?;
        if let Some(path) = text.strip_prefix("unix:") {
            return Some(PeerListen::Unix(path.to_owned()));
        }
        let Ok(address) = text.parse::<SocketAddr>() else {
            let help = "write it as \"127.0.0.1:7000\" or \"unix:PATH\"; names are not looked up";
            let message = format!("{text:?} is not an address with a port");
            diagnostics.help(node.span, message, help);
            return None;
        };
        if address.port() == 0 && !is_started {
            let help = "give the port at which it runs, or the command that starts it";
            let message = "a peer that runs already has a port";
            diagnostics.help(node.span, message, help);
            return None;
        }
        Some(PeerListen::Internet(address))
    }

    fn port(
        &self,
        table: &mut Table<'_>,
        values: ValueReader,
        has_path: bool,
        diagnostics: &mut Diagnostics,
    ) -> Option<u16> {
        let Some(node) = table.get("port") else {
            if has_path {
                return Some(1);
            }
            let message = format!("[{}] has no port", table.path);
            let help = "write port = NUMBER, as the hosts see it; for a client, that of the host it connects to";
            diagnostics.help(table.span, message, help);
            return None;
        };
        let number = values.number(node, u16::MAX.into(), diagnostics)?;
        u16::try_from(number).ok()
    }

    /// Reads the host that a client connects to.
    fn connects(
        &self,
        table: &mut Table<'_>,
        values: ValueReader,
        is_client: bool,
        diagnostics: &mut Diagnostics,
    ) -> Option<HostIndex> {
        let node = table.get("connects");
        match (node, is_client) {
            (Some(node), true) => {
                let name = values.text(node, diagnostics)?;
                let found = self.hosts.iter().find(|host| host.name == name);
                if found.is_none() {
                    let names: Vec<&str> =
                        self.hosts.iter().map(|host| host.name.as_str()).collect();
                    unknown(node.span, "host", &name, &names, diagnostics);
                }
                found.map(|host| host.index)
            }
            (None, true) => match self.hosts {
                [only] => Some(only.index),
                _ => {
                    let message =
                        format!("[{}] does not say which host it connects to", table.path);
                    diagnostics.help(table.span, message, "write connects = \"HOST\"");
                    None
                }
            },
            (Some(node), false) => {
                let help = "write role = \"client\", too";
                diagnostics.help(node.span, "only a client connects to a host", help);
                None
            }
            (None, false) => None,
        }
    }

    fn fresh(
        &self,
        table: &mut Table<'_>,
        values: ValueReader,
        (is_started, is_client): (bool, bool),
        diagnostics: &mut Diagnostics,
    ) -> Fresh {
        let usual = if is_started {
            Fresh::Process
        } else {
            Fresh::Connection
        };
        let Some(node) = table.get("fresh") else {
            return usual;
        };
        let words = [
            ("connection", Fresh::Connection),
            ("process", Fresh::Process),
            ("snapshot", Fresh::Snapshot),
        ];
        let fresh = values.word(node, &words, diagnostics).unwrap_or(usual);
        let is_copied = fresh == Fresh::Snapshot;
        if is_copied && is_client {
            let help = "write fresh = \"process\"";
            let message = "a client is not copied: it connects as soon as it is ready";
            diagnostics.help(node.span, message, help);
        }
        if fresh != Fresh::Connection && !is_started {
            let help = "write the command that starts it, or fresh = \"connection\"";
            diagnostics.help(
                node.span,
                "a peer that runs already cannot be started afresh",
                help,
            );
        }
        fresh
    }

    fn env(
        &self,
        table: &mut Table<'_>,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Vec<(String, String)> {
        let entries = table.below("env", diagnostics).iter();
        let value = |entry: &TomlEntry, diagnostics: &mut Diagnostics| {
            Some((entry.key.clone(), values.text(&entry.node, diagnostics)?))
        };
        entries
            .filter_map(|entry| value(entry, diagnostics))
            .collect()
    }

    fn files(
        &self,
        table: &mut Table<'_>,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Vec<PathBuf> {
        let Some(node) = table.get("files") else {
            return Vec::new();
        };
        values.list(node, diagnostics, |values, node, diagnostics| {
            let path = self.folder.join(values.text(node, diagnostics)?);
            if !self.context.is_file(&path) && !self.context.is_folder(&path) {
                let help = "relative paths start at the folder of the scenario";
                let message = format!("there is no file {}", path.display());
                diagnostics.help(node.span, message, help);
            }
            Some(path)
        })
    }

    fn varies(
        &self,
        table: &mut Table<'_>,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Vec<String> {
        let Some(node) = table.get("varies") else {
            return Vec::new();
        };
        values.list(node, diagnostics, |values, node, diagnostics| {
            let text = values.text(node, diagnostics)?;
            if let Err(message) = self.context.check(NameKind::Regex, &text) {
                diagnostics.error(node.span, message);
            }
            Some(text)
        })
    }
}

/// Reads a number of things of which there is at least one.
fn at_least_one(
    node: Option<&TomlNode>,
    values: ValueReader,
    usual: u32,
    diagnostics: &mut Diagnostics,
) -> u32 {
    let said = node.and_then(|node| Some((node, values.small(node, diagnostics)?)));
    if let Some((node, 0)) = said {
        diagnostics.error(node.span, "0 is too few: there is at least one");
    }
    said.map_or(usual, |(_, number)| number).max(1)
}

/// Refuses what a peer that connects to hosts cannot do.
fn expect_of_client(
    table: &Table<'_>,
    independent: Option<&TomlNode>,
    sends_on_path: bool,
    diagnostics: &mut Diagnostics,
) {
    if let Some(node) = independent {
        let help = "leave it out: what a client does on its connections is one recording";
        diagnostics.help(node.span, "a client has no independent connections", help);
    }
    if sends_on_path {
        let help = "let it send them to an address: listen = \"127.0.0.1:0\"";
        diagnostics.help(
            table.span,
            "a live client cannot send datagrams over a Unix socket",
            help,
        );
    }
}

/// Reads `ready = "port"`, a time, or a part of a line that the peer prints.
fn ready(table: &mut Table<'_>, values: ValueReader, diagnostics: &mut Diagnostics) -> Ready {
    let Some(node) = table.get("ready") else {
        return Ready::Port;
    };
    match values.text(node, diagnostics).as_deref() {
        None | Some("port") => Ready::Port,
        Some(text) => match units::duration_ns(text) {
            Ok(after_ns) => Ready::After(after_ns),
            Err(_) => Ready::Line(text.to_owned()),
        },
    }
}
