//! Reads `[fault.*]`. The keys of a fault derive from its row in the table of fault kinds.

use everett_net::{
    Fault, Faults, HostIndex, HostSet, KINDS, Numbers, ParameterKind, Ports, Protocol,
    Scope as CountScope, Sizes, Times, Value as ParameterValue, kind,
};

use crate::model::HostSetup;
use crate::reader::{Table, ValueReader, unknown};
use crate::source::Diagnostics;
use crate::toml_tree::{TomlEntry, TomlNode, TomlValue};
use crate::units;
use crate::{NameContext, NameKind};

pub(crate) fn faults(
    entries: &[TomlEntry],
    hosts: &[HostSetup],
    context: &dyn NameContext,
    diagnostics: &mut Diagnostics,
) -> Faults {
    let reader = Reader { hosts, context };
    let faults = entries
        .iter()
        .filter_map(|entry| reader.fault(entry, diagnostics));
    let stops = hosts.iter().filter_map(stop);
    let clocks = hosts.iter().filter_map(undetermined_clock);
    Faults::new(faults.chain(stops).chain(clocks).collect())
}

/// Returns the fault of a host with an undetermined clock: every time-out may or may not have fired
/// when a message arrives.
fn undetermined_clock(host: &HostSetup) -> Option<Fault> {
    let mut fault = Fault::new(format!("clock of {}", host.name), kind("late")?);
    fault.filter.to = HostSet::of(vec![host.index]);
    fault.max_count = u32::MAX;
    host.symbolic_clock.then_some(fault)
}

/// Returns the fault of a host with a stop time: it crashes then, in every world.
fn stop(host: &HostSetup) -> Option<Fault> {
    let mut fault = Fault::new(format!("stop of {}", host.name), kind("crash")?);
    fault.set(
        "hosts",
        ParameterValue::Hosts(HostSet::of(vec![host.index])),
    );
    fault.set("on", ParameterValue::Word("time"));
    fault.set("at", ParameterValue::Duration(host.stop_ns?));
    fault.always = true;
    fault.scope = CountScope::Host;
    Some(fault)
}

struct Reader<'r> {
    hosts: &'r [HostSetup],
    context: &'r dyn NameContext,
}

const VALUES: ValueReader = ValueReader { numbering: None };

impl Reader<'_> {
    fn fault(&self, entry: &TomlEntry, diagnostics: &mut Diagnostics) -> Option<Fault> {
        let path = format!("fault.{}", entry.key);
        let mut table = Table::new(path, entry.key_span, &entry.node, diagnostics)?;
        let (name, span) = match table.get("kind") {
            Some(node) => (VALUES.text(node, diagnostics)?, node.span),
            None => (entry.key.clone(), entry.key_span),
        };
        let Some(kind) = kind(&name) else {
            let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            unknown(span, "kind of fault", &name, &known, diagnostics);
            return None;
        };
        let mut fault = Fault::new(entry.key.clone(), kind);
        for parameter in kind.parameters {
            let given = table.get(parameter.name);
            if given.is_none() && parameter.kind == ParameterKind::NamedHosts {
                let (key, help) = (parameter.name, parameter.help);
                let message = format!("a {name} needs {key:?}");
                diagnostics.help(entry.key_span, message, format!("say which: {help}"));
            }
            if let Some(node) = given
                && let Some(value) = self.setting(parameter.kind, parameter.name, node, diagnostics)
            {
                fault.set(parameter.name, value);
            }
        }
        self.filter(&mut fault, &mut table, diagnostics);
        if let Some(node) = table.get("most") {
            fault.max_count = VALUES.small(node, diagnostics).unwrap_or(0);
        }
        if let Some(node) = table.get("always") {
            fault.always = VALUES.flag(node, diagnostics).unwrap_or(fault.always);
        }
        scope(&mut fault, table.get("per"), diagnostics);
        table.finish(diagnostics);
        Some(fault)
    }

    fn setting(
        &self,
        kind: ParameterKind,
        name: &str,
        node: &TomlNode,
        diagnostics: &mut Diagnostics,
    ) -> Option<ParameterValue> {
        Some(match kind {
            ParameterKind::Count(_) => {
                ParameterValue::Count(VALUES.small(node, diagnostics)?.into())
            }
            ParameterKind::Duration(_) | ParameterKind::Forever => {
                ParameterValue::Duration(VALUES.duration_ns(node, diagnostics)?)
            }
            ParameterKind::Flag(_) => ParameterValue::Flag(VALUES.flag(node, diagnostics)?),
            ParameterKind::Hosts | ParameterKind::NamedHosts => {
                ParameterValue::Hosts(self.host_set(node, diagnostics))
            }
            ParameterKind::Word(words) => {
                let words: Vec<_> = words.iter().map(|word| (*word, *word)).collect();
                ParameterValue::Word(VALUES.word(node, &words, diagnostics)?)
            }
            ParameterKind::Words => {
                let check = |scope: ValueReader, node: &TomlNode, diagnostics: &mut Diagnostics| {
                    let text = scope.text(node, diagnostics)?;
                    if name == "calls"
                        && let Err(message) = self.context.check(NameKind::Call, &text)
                    {
                        diagnostics.error(node.span, message);
                    }
                    Some(text)
                };
                ParameterValue::Words(VALUES.list(node, diagnostics, check))
            }
        })
    }

    fn filter(&self, fault: &mut Fault, table: &mut Table<'_>, diagnostics: &mut Diagnostics) {
        let filter = &mut fault.filter;
        if let Some(node) = table.get("from") {
            filter.from = self.host_set(node, diagnostics);
        }
        if let Some(node) = table.get("to") {
            filter.to = self.host_set(node, diagnostics);
        }
        if let Some(node) = table.either("protocol", "protocols", diagnostics) {
            let words = Protocol::ALL.map(|protocol| (protocol.name(), protocol));
            let word = |scope: ValueReader, node: &TomlNode, diagnostics: &mut Diagnostics| {
                scope.word(node, &words, diagnostics)
            };
            filter.protocols = VALUES.list(node, diagnostics, word);
        }
        let ports = |scope: ValueReader, node: &TomlNode, diagnostics: &mut Diagnostics| {
            range(scope, node, u16::MAX, diagnostics, |text| {
                text.parse().map_err(|_| format!("{text:?} is not a port"))
            })
        };
        if let Some(node) = table.either("port", "ports", diagnostics) {
            filter.ports = Ports(VALUES.list(node, diagnostics, ports));
        }
        if let Some(node) = table.either("source_port", "source_ports", diagnostics) {
            filter.source_ports = Ports(VALUES.list(node, diagnostics, ports));
        }
        let number = |text: &str| {
            let number = text.parse::<u32>();
            number.map_err(|_| format!("{text:?} is not a number"))
        };
        if let Some(node) = table.either("number", "numbers", diagnostics)
            && let Some(numbers) = range(VALUES, node, u32::MAX, diagnostics, number)
        {
            if *numbers.start() == 0 {
                diagnostics.error(node.span, "packets are numbered from 1");
            }
            filter.numbers = Numbers(numbers);
        }
        if let Some(node) = table.get("size")
            && let Some(sizes) = range(VALUES, node, u32::MAX, diagnostics, number)
        {
            filter.sizes = Sizes(sizes);
        }
        if let Some(node) = table.get("during")
            && let Some(times) = range(VALUES, node, u64::MAX, diagnostics, units::duration_ns)
        {
            filter.times = Times(times);
        }
    }

    /// Reads names of hosts or of groups of hosts, or `"*"`.
    fn host_set(&self, node: &TomlNode, diagnostics: &mut Diagnostics) -> HostSet {
        let mut is_all = false;
        let named = VALUES.list(node, diagnostics, |scope, node, diagnostics| {
            let name = scope.text(node, diagnostics)?;
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
                unknown(node.span, "host", &name, &known, diagnostics);
            }
            Some(meant)
        });
        match is_all {
            true => HostSet::ALL,
            false => HostSet::of(named.concat()),
        }
    }
}

/// Sets the scope in which `most` is counted: the world, unless nothing chooses where in the world
/// the fault happens.
fn scope(fault: &mut Fault, per: Option<&TomlNode>, diagnostics: &mut Diagnostics) {
    let is_certain = !fault.is_choice() && !fault.kind.per_world;
    let Some(node) = per else {
        if is_certain {
            fault.scope = CountScope::Causal;
        }
        return;
    };
    let words = [
        ("world", CountScope::World),
        ("causal", CountScope::Causal),
        ("host", CountScope::Host),
    ];
    let word = VALUES.word(node, &words, diagnostics);
    fault.scope = word.unwrap_or_default();
    if is_certain && word == Some(CountScope::World) {
        let message = "a fault that happens wherever it can is not counted over the world";
        let help = "nothing chooses where it happens: count it per \"causal\" past or per \"host\"";
        diagnostics.help(node.span, message, help);
    }
}

/// Reads a number, or a range such as `"1-3"`.
fn range<T: Copy + PartialOrd>(
    scope: ValueReader,
    node: &TomlNode,
    last: T,
    diagnostics: &mut Diagnostics,
    number: impl Fn(&str) -> Result<T, String>,
) -> Option<std::ops::RangeInclusive<T>> {
    match &node.value {
        TomlValue::Integer(only) => match number(&only.to_string()) {
            Ok(only) => Some(only..=only),
            Err(message) => {
                diagnostics.error(node.span, message);
                None
            }
        },
        _ => scope.parsed(node, diagnostics, |text| units::range(text, last, number)),
    }
}
