//! Reads `[fault.*]`. Which keys a fault has follows from its row in the table of kinds.

use everett_net::{
    Fault, Faults, HostIndex, HostSet, KINDS, Numbers, ParameterKind, Ports, Protocol,
    Scope as Over, Sizes, Times, Value as Setting, kind,
};

use crate::model::HostSetup;
use crate::reader::{Scope, Table, unknown};
use crate::source::Findings;
use crate::tree::{Entry, Node, Value};
use crate::units;
use crate::{NameKind, Surroundings};

pub(crate) fn faults(
    entries: &[Entry],
    hosts: &[HostSetup],
    around: &dyn Surroundings,
    findings: &mut Findings,
) -> Faults {
    let reader = Reader { hosts, around };
    let faults = entries
        .iter()
        .filter_map(|entry| reader.fault(entry, findings));
    let stops = hosts.iter().filter_map(stop);
    let clocks = hosts.iter().filter_map(undetermined_clock);
    Faults::new(faults.chain(stops).chain(clocks).collect())
}

/// Where it is not determined what a clock says, every time-out may have fired when something arrives, or may not.
fn undetermined_clock(host: &HostSetup) -> Option<Fault> {
    let mut fault = Fault::new(format!("clock of {}", host.name), kind("late")?);
    fault.filter.to = HostSet::of(vec![host.index]);
    fault.most = u32::MAX;
    host.symbolic_clock.then_some(fault)
}

/// A host that is switched off at a time crashes then, in every world.
fn stop(host: &HostSetup) -> Option<Fault> {
    let mut fault = Fault::new(format!("stop of {}", host.name), kind("crash")?);
    fault.set("hosts", Setting::Hosts(HostSet::of(vec![host.index])));
    fault.set("on", Setting::Word("time"));
    fault.set("at", Setting::Duration(host.stop_ns?));
    fault.always = true;
    Some(fault)
}

struct Reader<'r> {
    hosts: &'r [HostSetup],
    around: &'r dyn Surroundings,
}

const SCOPE: Scope = Scope { numbering: None };

impl Reader<'_> {
    fn fault(&self, entry: &Entry, findings: &mut Findings) -> Option<Fault> {
        let path = format!("fault.{}", entry.key);
        let mut table = Table::new(path, entry.key_spot, &entry.node, findings)?;
        let (name, spot) = match table.get("kind") {
            Some(node) => (SCOPE.text(node, findings)?, node.spot),
            None => (entry.key.clone(), entry.key_spot),
        };
        let Some(kind) = kind(&name) else {
            let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            unknown(spot, "kind of fault", &name, &known, findings);
            return None;
        };
        let mut fault = Fault::new(entry.key.clone(), kind);
        for parameter in kind.parameters {
            let given = table.get(parameter.name);
            if given.is_none() && parameter.kind == ParameterKind::NamedHosts {
                let (key, help) = (parameter.name, parameter.help);
                let message = format!("a {name} needs {key:?}");
                findings.help(entry.key_spot, message, format!("say which: {help}"));
            }
            if let Some(node) = given
                && let Some(value) = self.setting(parameter.kind, parameter.name, node, findings)
            {
                fault.set(parameter.name, value);
            }
        }
        self.filter(&mut fault, &mut table, findings);
        if let Some(node) = table.get("most") {
            fault.most = SCOPE.small(node, findings).unwrap_or(0);
        }
        if let Some(node) = table.get("per") {
            let words = [("path", Over::Path), ("host", Over::Host)];
            fault.scope = SCOPE.word(node, &words, findings).unwrap_or_default();
        }
        if let Some(node) = table.get("always") {
            fault.always = SCOPE.flag(node, findings).unwrap_or(fault.always);
        }
        table.finish(findings);
        Some(fault)
    }

    fn setting(
        &self,
        kind: ParameterKind,
        name: &str,
        node: &Node,
        findings: &mut Findings,
    ) -> Option<Setting> {
        Some(match kind {
            ParameterKind::Count(_) => Setting::Count(SCOPE.small(node, findings)?.into()),
            ParameterKind::Duration(_) | ParameterKind::Forever => {
                Setting::Duration(SCOPE.duration_ns(node, findings)?)
            }
            ParameterKind::Flag(_) => Setting::Flag(SCOPE.flag(node, findings)?),
            ParameterKind::Hosts | ParameterKind::NamedHosts => {
                Setting::Hosts(self.host_set(node, findings))
            }
            ParameterKind::Word(words) => {
                let words: Vec<_> = words.iter().map(|word| (*word, *word)).collect();
                Setting::Word(SCOPE.word(node, &words, findings)?)
            }
            ParameterKind::Words => {
                let check = |scope: Scope, node: &Node, findings: &mut Findings| {
                    let text = scope.text(node, findings)?;
                    if name == "calls"
                        && let Err(message) = self.around.check(NameKind::Call, &text)
                    {
                        findings.error(node.spot, message);
                    }
                    Some(text)
                };
                Setting::Words(SCOPE.list(node, findings, check))
            }
        })
    }

    fn filter(&self, fault: &mut Fault, table: &mut Table<'_>, findings: &mut Findings) {
        let filter = &mut fault.filter;
        if let Some(node) = table.get("from") {
            filter.from = self.host_set(node, findings);
        }
        if let Some(node) = table.get("to") {
            filter.to = self.host_set(node, findings);
        }
        if let Some(node) = table.either("protocol", "protocols", findings) {
            let words = Protocol::ALL.map(|protocol| (protocol.name(), protocol));
            let word = |scope: Scope, node: &Node, findings: &mut Findings| {
                scope.word(node, &words, findings)
            };
            filter.protocols = SCOPE.list(node, findings, word);
        }
        let ports = |scope: Scope, node: &Node, findings: &mut Findings| {
            range(scope, node, u16::MAX, findings, |text| {
                text.parse().map_err(|_| format!("{text:?} is no port"))
            })
        };
        if let Some(node) = table.either("port", "ports", findings) {
            filter.ports = Ports(SCOPE.list(node, findings, ports));
        }
        if let Some(node) = table.either("source_port", "source_ports", findings) {
            filter.source_ports = Ports(SCOPE.list(node, findings, ports));
        }
        let number = |text: &str| {
            let number = text.parse::<u32>();
            number.map_err(|_| format!("{text:?} is no number"))
        };
        if let Some(node) = table.either("number", "numbers", findings)
            && let Some(numbers) = range(SCOPE, node, u32::MAX, findings, number)
        {
            if *numbers.start() == 0 {
                findings.error(node.spot, "packets are numbered from 1");
            }
            filter.numbers = Numbers(numbers);
        }
        if let Some(node) = table.get("size")
            && let Some(sizes) = range(SCOPE, node, u32::MAX, findings, number)
        {
            filter.sizes = Sizes(sizes);
        }
        if let Some(node) = table.get("during")
            && let Some(times) = range(SCOPE, node, u64::MAX, findings, units::duration_ns)
        {
            filter.times = Times(times);
        }
    }

    /// Names of hosts, of groups of them, or `"*"`.
    fn host_set(&self, node: &Node, findings: &mut Findings) -> HostSet {
        let mut is_all = false;
        let named = SCOPE.list(node, findings, |scope, node, findings| {
            let name = scope.text(node, findings)?;
            is_all |= name == "*";
            let means = |host: &&HostSetup| host.name == name || host.group == name;
            let meant = self.hosts.iter().filter(means).map(|host| host.index);
            let meant: Vec<HostIndex> = meant.collect();
            if meant.is_empty() && name != "*" {
                let mut known: Vec<&str> = Vec::new();
                for host in self.hosts {
                    known.extend([host.group.as_str(), host.name.as_str()]);
                }
                known.dedup();
                unknown(node.spot, "host", &name, &known, findings);
            }
            Some(meant)
        });
        match is_all {
            true => HostSet::ALL,
            false => HostSet::of(named.concat()),
        }
    }
}

/// A number or a text such as `"1-3"`.
fn range<T: Copy + PartialOrd>(
    scope: Scope,
    node: &Node,
    last: T,
    findings: &mut Findings,
    number: impl Fn(&str) -> Result<T, String>,
) -> Option<std::ops::RangeInclusive<T>> {
    match &node.value {
        Value::Integer(only) => match number(&only.to_string()) {
            Ok(only) => Some(only..=only),
            Err(message) => {
                findings.error(node.spot, message);
                None
            }
        },
        _ => scope.parsed(node, findings, |text| units::range(text, last, number)),
    }
}
