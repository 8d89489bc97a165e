//! Reads a scenario: all parts in order, and the keys of the top level.

use std::path::Path;

use everett_net::HostIndex;

use crate::faults::faults;
use crate::hosts::{HostEntry, HostReader, expand};
use crate::model::{Check, CheckTime, HostSetup, Scenario};
use crate::options::{OptionSetting, read_options};
use crate::peers::{PeerReader, need_wide_network};
use crate::placement::{KnownNames, NodeRequest, networks, read_placement, topology};
use crate::reader::{Table, ValueReader};
use crate::source::{Diagnostics, Problems, SourceSpan};
use crate::toml_tree::{TomlEntry, TomlNode, TomlValue, parse as parse_tree, set};
use crate::trojans::trojans;
use crate::{NameContext, NameKind};

/// Reads a scenario file.
pub fn load(
    file: &Path,
    overrides: &[(String, String)],
    context: &dyn NameContext,
) -> Result<Scenario, Problems> {
    let name = file.display().to_string();
    let text = match context.read(file) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    match text {
        Ok(text) => parse(&text, file, overrides, context),
        Err(message) => {
            let mut diagnostics = Diagnostics::new(&name, "");
            diagnostics.error(SourceSpan::default(), format!("cannot be read: {message}"));
            Err(diagnostics.into_problems())
        }
    }
}

/// Parses the text of a scenario. Relative paths start at the folder of `file`. `overrides` are
/// keys such as `host.server.args` with TOML values that take precedence over the text.
pub fn parse(
    text: &str,
    file: &Path,
    overrides: &[(String, String)],
    context: &dyn NameContext,
) -> Result<Scenario, Problems> {
    let mut diagnostics = Diagnostics::new(&file.display().to_string(), text);
    let scenario = read(file, overrides, context, &mut diagnostics);
    match scenario {
        Some(scenario) if diagnostics.is_empty() => Ok(scenario),
        _ => Err(diagnostics.into_problems()),
    }
}

fn read(
    file: &Path,
    overrides: &[(String, String)],
    context: &dyn NameContext,
    diagnostics: &mut Diagnostics,
) -> Option<Scenario> {
    let mut root = parse_tree(0, diagnostics);
    if !diagnostics.is_empty() {
        // A syntax error would cause meaningless follow-up errors.
        return None;
    }
    for (key, value) in overrides {
        set(&mut root, key, value, diagnostics);
    }
    let mut table = Table::new(String::new(), SourceSpan::default(), &root, diagnostics)?;
    let beside = file.parent().unwrap_or(Path::new(""));
    let folder = match table.get("folder") {
        Some(node) => beside.join(ValueReader::default().text(node, diagnostics)?),
        None => beside.to_owned(),
    };
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let defaults = table.below("defaults", diagnostics);
    let host_entries = expand(table.below("host", diagnostics), diagnostics);
    if host_entries.is_empty() && diagnostics.is_empty() {
        let help = "a world needs at least one: [host.NAME] with program = \"./PROGRAM\"";
        diagnostics.help(SourceSpan::default(), "there is no host", help);
    }
    let peer_entries = table.below("peer", diagnostics);
    let network_entries = table.below("network", diagnostics);
    let count = host_entries.len() + peer_entries.len();
    let is_wide = need_wide_network(peer_entries);
    let (networks, network_spots) = networks(network_entries, count, is_wide, diagnostics);
    let router_entries = table.below("router", diagnostics);
    let router_names: Vec<&str> = router_entries.iter().map(|e| e.key.as_str()).collect();
    let known = KnownNames {
        networks: &networks,
        routers: &router_names,
    };
    let mut places = routers(router_entries, &known, diagnostics);
    check_defaults(defaults, diagnostics);
    let reader = HostReader {
        folder: &folder,
        beside,
        context,
        defaults,
    };
    let entries = (host_entries.as_slice(), peer_entries);
    let hosts = read_hosts(&reader, entries, &known, &mut places, diagnostics);
    let faults = faults(
        table.below("fault", diagnostics),
        &hosts,
        context,
        diagnostics,
    );
    let checks = checks(
        table.below("check", diagnostics),
        &folder,
        context,
        diagnostics,
    );
    let mut all_options = options("limits", &mut table, context, diagnostics);
    all_options.extend(options("search", &mut table, context, diagnostics));
    let trojans = trojans(table.entry("trojans"), &hosts, context, diagnostics);
    table.finish(diagnostics);
    if !diagnostics.is_empty() {
        return None;
    }
    let topology = topology(networks, &network_spots, &places, diagnostics)?;
    Some(Scenario {
        name: name.into_owned(),
        folder,
        hosts,
        topology,
        faults,
        checks,
        options: all_options,
        trojans,
    })
}

/// Reads the hosts and, after them, the peers. Adds the places of both.
fn read_hosts(
    reader: &HostReader<'_>,
    (host_entries, peer_entries): (&[HostEntry<'_>], &[TomlEntry]),
    known: &KnownNames<'_>,
    places: &mut Vec<NodeRequest>,
    diagnostics: &mut Diagnostics,
) -> Vec<HostSetup> {
    let mut hosts: Vec<HostSetup> = Vec::new();
    for entry in host_entries {
        let index = HostIndex(hosts.len() as u32);
        if let Some((setup, place)) = reader.read(entry, index, known, diagnostics) {
            hosts.push(setup);
            places.push(place);
        }
    }
    let explored = hosts.clone();
    let reader = PeerReader {
        folder: reader.folder,
        context: reader.context,
        hosts: &explored,
    };
    for entry in peer_entries {
        let index = HostIndex(hosts.len() as u32);
        if let Some((setup, place)) = reader.read(entry, index, known, diagnostics) {
            hosts.push(setup);
            places.push(place);
        }
    }
    hosts
}

/// Rejects defaults for keys that are specific to one host.
fn check_defaults(entries: &[TomlEntry], diagnostics: &mut Diagnostics) {
    for entry in entries {
        if matches!(
            entry.key.as_str(),
            "count"
                | "address"
                | "addresses"
                | "alias"
                | "aliases"
                | "interface"
                | "process"
                | "begin"
        ) {
            let message = format!(
                "[defaults] cannot have {:?}: it differs between hosts",
                entry.key
            );
            diagnostics.help(entry.key_span, message, "say it in the tables of the hosts");
        }
    }
}

fn routers(
    entries: &[TomlEntry],
    known: &KnownNames<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<NodeRequest> {
    let mut all = Vec::new();
    for entry in entries {
        let path = format!("router.{}", entry.key);
        let table = Table::new(path, entry.key_span, &entry.node, diagnostics);
        let Some(mut table) = table else { continue };
        let (name, values) = (entry.key.clone(), ValueReader::default());
        all.push(read_placement(
            name,
            true,
            &mut table,
            values,
            known,
            diagnostics,
        ));
        table.finish(diagnostics);
    }
    all
}

fn checks(
    entries: &[TomlEntry],
    folder: &Path,
    context: &dyn NameContext,
    diagnostics: &mut Diagnostics,
) -> Vec<Check> {
    let mut checks = Vec::new();
    for entry in entries {
        let path = format!("check.{}", entry.key);
        let table = Table::new(path, entry.key_span, &entry.node, diagnostics);
        let Some(mut table) = table else { continue };
        checks.extend(check(entry, &mut table, folder, context, diagnostics));
        table.finish(diagnostics);
    }
    checks
}

fn check(
    entry: &TomlEntry,
    table: &mut Table<'_>,
    folder: &Path,
    context: &dyn NameContext,
    diagnostics: &mut Diagnostics,
) -> Option<Check> {
    let values = ValueReader::default();
    let (file, text) = (table.get("file"), table.get("text"));
    let when = table.get("when");
    let when = match when {
        Some(node) => values.list(node, diagnostics, |values, node, diagnostics| {
            let words = [
                ("change", CheckTime::Change),
                ("end", CheckTime::End),
                ("eventually", CheckTime::Eventually),
            ];
            match &node.value {
                TomlValue::Text(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
                    values.duration_ns(node, diagnostics).map(CheckTime::At)
                }
                _ => values.word(node, &words, diagnostics),
            }
        }),
        None => vec![CheckTime::Change, CheckTime::End],
    };
    let line = text.map_or(0, |node| diagnostics.line(node.span));
    match (file, text) {
        (Some(node), None) => {
            let path = folder.join(values.text(node, diagnostics)?);
            if !context.is_file(&path) {
                let help = "relative paths start at the folder of the scenario";
                diagnostics.help(
                    node.span,
                    format!("there is no file {}", path.display()),
                    help,
                );
            }
            let name = entry.key.clone();
            Some(Check {
                name,
                file: Some(path),
                text: None,
                line,
                when,
            })
        }
        (None, Some(node)) => {
            let text = values.text(node, diagnostics)?;
            if let Err(message) = context.check(NameKind::Invariant, &text) {
                diagnostics.error(node.span, message);
            }
            Some(Check {
                name: entry.key.clone(),
                file: None,
                text: Some(text),
                line,
                when,
            })
        }
        _ => {
            let help = "write file = \"NAME.minv\" or text = \"\"\"...\"\"\"";
            let message = format!("check {:?} needs a file or a text, one of them", entry.key);
            diagnostics.help(entry.key_span, message, help);
            None
        }
    }
}

/// Reads the options of the run in a table of the top level.
fn options(
    name: &'static str,
    root: &mut Table<'_>,
    context: &dyn NameContext,
    diagnostics: &mut Diagnostics,
) -> Vec<OptionSetting> {
    let nothing = TomlNode {
        value: TomlValue::Table(Vec::new()),
        span: SourceSpan::default(),
    };
    let entry = root.entry(name);
    let (span, node) = entry.map_or((nothing.span, &nothing), |entry| {
        (entry.key_span, &entry.node)
    });
    let Some(mut table) = Table::new(name.to_owned(), span, node, diagnostics) else {
        return Vec::new();
    };
    let values = ValueReader::default();
    let options = read_options(name, &mut table, values, context, diagnostics);
    table.finish(diagnostics);
    options
}
