//! Reads a scenario: the parts in their order, and what is about the whole.

use std::path::Path;

use everett_net::HostIndex;

use crate::faults::faults;
use crate::hosts::{HostReader, expand};
use crate::model::{Check, CheckTime, HostSetup, Limits, Mapping, Scenario, Search};
use crate::place::{Known, Wanted, networks, topology, wanted};
use crate::reader::{Scope, Table};
use crate::source::{Findings, Problems, Spot};
use crate::tree::{Entry, Value, parse as parse_tree, set};
use crate::{NameKind, Surroundings};

/// Reads a scenario's file.
pub fn load(
    file: &Path,
    overrides: &[(String, String)],
    around: &dyn Surroundings,
) -> Result<Scenario, Problems> {
    let name = file.display().to_string();
    let text = match std::fs::read(file) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    match text {
        Ok(text) => parse(&text, file, overrides, around),
        Err(message) => {
            let mut findings = Findings::new(&name, "");
            findings.error(Spot::default(), format!("cannot be read: {message}"));
            Err(findings.into_problems())
        }
    }
}

/// Reads the text of a scenario. Relative paths start at the folder of `file`; `overrides` are keys such as
/// `host.server.args` with values in TOML, which stand above the text.
pub fn parse(
    text: &str,
    file: &Path,
    overrides: &[(String, String)],
    around: &dyn Surroundings,
) -> Result<Scenario, Problems> {
    let mut findings = Findings::new(&file.display().to_string(), text);
    let scenario = read(file, overrides, around, &mut findings);
    match scenario {
        Some(scenario) if findings.is_empty() => Ok(scenario),
        _ => Err(findings.into_problems()),
    }
}

fn read(
    file: &Path,
    overrides: &[(String, String)],
    around: &dyn Surroundings,
    findings: &mut Findings,
) -> Option<Scenario> {
    let mut root = parse_tree(0, findings);
    if !findings.is_empty() {
        // Half a text would only give errors that mean nothing.
        return None;
    }
    for (key, value) in overrides {
        set(&mut root, key, value, findings);
    }
    let mut table = Table::new(String::new(), Spot::default(), &root, findings)?;
    let beside = file.parent().unwrap_or(Path::new(""));
    let folder = match table.get("folder") {
        Some(node) => beside.join(Scope::default().text(node, findings)?),
        None => beside.to_owned(),
    };
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let defaults = table.below("defaults", findings);
    let host_entries = expand(table.below("host", findings), findings);
    if host_entries.is_empty() && findings.is_empty() {
        let help = "a world needs at least one: [host.NAME] with program = \"./PROGRAM\"";
        findings.help(Spot::default(), "there is no host", help);
    }
    let network_entries = table.below("network", findings);
    let (networks, network_spots) = networks(network_entries, host_entries.len(), findings);
    let router_entries = table.below("router", findings);
    let router_names: Vec<&str> = router_entries.iter().map(|e| e.key.as_str()).collect();
    let known = Known {
        networks: &networks,
        routers: &router_names,
    };
    let mut places = routers(router_entries, &known, findings);
    let reader = HostReader {
        folder: &folder,
        beside,
        around,
        defaults,
    };
    check_defaults(defaults, findings);
    let mut hosts: Vec<HostSetup> = Vec::new();
    for entry in &host_entries {
        let index = HostIndex(hosts.len() as u32);
        if let Some((setup, place)) = reader.read(entry, index, &known, findings) {
            hosts.push(setup);
            places.push(place);
        }
    }
    let faults = faults(table.below("fault", findings), &hosts, around, findings);
    let checks = checks(table.below("check", findings), &folder, around, findings);
    let limits = limits(&mut table, findings);
    let search = search(&mut table, around, findings);
    table.finish(findings);
    if !findings.is_empty() {
        return None;
    }
    let topology = topology(networks, &network_spots, &places, findings)?;
    Some(Scenario {
        name: name.into_owned(),
        folder,
        hosts,
        topology,
        faults,
        checks,
        limits,
        search,
    })
}

/// What is one host's cannot be everybody's.
fn check_defaults(entries: &[Entry], findings: &mut Findings) {
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
            findings.help(entry.key_spot, message, "say it in the tables of the hosts");
        }
    }
}

fn routers(entries: &[Entry], known: &Known<'_>, findings: &mut Findings) -> Vec<Wanted> {
    let mut all = Vec::new();
    for entry in entries {
        let path = format!("router.{}", entry.key);
        let table = Table::new(path, entry.key_spot, &entry.node, findings);
        let Some(mut table) = table else { continue };
        let (name, scope) = (entry.key.clone(), Scope::default());
        all.push(wanted(name, true, &mut table, scope, known, findings));
        table.finish(findings);
    }
    all
}

fn checks(
    entries: &[Entry],
    folder: &Path,
    around: &dyn Surroundings,
    findings: &mut Findings,
) -> Vec<Check> {
    let mut checks = Vec::new();
    for entry in entries {
        let path = format!("check.{}", entry.key);
        let table = Table::new(path, entry.key_spot, &entry.node, findings);
        let Some(mut table) = table else { continue };
        checks.extend(check(entry, &mut table, folder, around, findings));
        table.finish(findings);
    }
    checks
}

fn check(
    entry: &Entry,
    table: &mut Table<'_>,
    folder: &Path,
    around: &dyn Surroundings,
    findings: &mut Findings,
) -> Option<Check> {
    let scope = Scope::default();
    let (file, text) = (table.get("file"), table.get("text"));
    let when = table.get("when");
    let when = match when {
        Some(node) => scope.list(node, findings, |scope, node, findings| {
            let words = [
                ("change", CheckTime::Change),
                ("end", CheckTime::End),
                ("eventually", CheckTime::Eventually),
            ];
            match &node.value {
                Value::Text(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
                    scope.duration_ns(node, findings).map(CheckTime::At)
                }
                _ => scope.word(node, &words, findings),
            }
        }),
        None => vec![CheckTime::Change, CheckTime::End],
    };
    let line = text.map_or(0, |node| findings.line(node.spot));
    match (file, text) {
        (Some(node), None) => {
            let path = folder.join(scope.text(node, findings)?);
            if !around.is_file(&path) {
                let help = "relative paths start at the folder of the scenario";
                findings.help(
                    node.spot,
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
            let text = scope.text(node, findings)?;
            if let Err(message) = around.check(NameKind::Invariant, &text) {
                findings.error(node.spot, message);
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
            findings.help(entry.key_spot, message, help);
            None
        }
    }
}

fn limits(root: &mut Table<'_>, findings: &mut Findings) -> Limits {
    let scope = Scope::default();
    let mut limits = Limits::default();
    let Some(entry) = root.entry("limits") else {
        return limits;
    };
    let table = Table::new("limits".to_owned(), entry.key_spot, &entry.node, findings);
    let Some(mut table) = table else {
        return limits;
    };
    let number = |key, table: &mut Table<'_>, findings: &mut Findings| {
        let node = table.get(key)?;
        scope.number(node, u64::MAX, findings)
    };
    limits.paths = number("paths", &mut table, findings);
    limits.forks = number("forks", &mut table, findings);
    limits.depth = number("depth", &mut table, findings);
    limits.instructions = number("instructions", &mut table, findings);
    limits.events = number("events", &mut table, findings);
    if let Some(node) = table.get("time") {
        limits.time_ns = scope.duration_ns(node, findings);
    }
    if let Some(node) = table.get("virtual_time") {
        limits.virtual_time_ns = scope.duration_ns(node, findings);
    }
    if let Some(node) = table.get("memory") {
        limits.memory_bytes = scope.size(node, findings);
    }
    table.finish(findings);
    limits
}

fn search(root: &mut Table<'_>, around: &dyn Surroundings, findings: &mut Findings) -> Search {
    let scope = Scope::default();
    let mut search = Search::default();
    let Some(entry) = root.entry("search") else {
        return search;
    };
    let table = Table::new("search".to_owned(), entry.key_spot, &entry.node, findings);
    let Some(mut table) = table else {
        return search;
    };
    if let Some(node) = table.get("order") {
        search.searchers = scope.list(node, findings, |scope, node, findings| {
            let name = scope.text(node, findings)?;
            if let Err(message) = around.check(NameKind::Searcher, &name) {
                findings.error(node.spot, message);
            }
            Some(name)
        });
    }
    if let Some(node) = table.get("mapping") {
        let mapping = scope.word(node, &Mapping::ALL, findings);
        search.mapping = mapping.unwrap_or_default();
    }
    if let Some(node) = table.get("orders") {
        search.orders = scope.small(node, findings).unwrap_or(0);
    }
    if let Some(node) = table.get("seed") {
        search.seed = scope.number(node, u64::MAX, findings).unwrap_or(0);
    }
    table.finish(findings);
    search
}
