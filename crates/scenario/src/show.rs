//! Prints a scenario with all defaults filled in. The text reads back as the same scenario.

use std::fmt::Write as _;

use everett_net::{Fault, HostIndex, HostSet, Interface, Scope, StartTime, StaticRoute, Value};

use crate::message_fields;
use crate::model::{
    Accept, Argument, CheckTime, EnvValue, Expectation, FileSource, HostSetup, PeerListen,
    PeerSetup, Process, Scenario, StateEvent, Stdin, Trojans,
};
use crate::options::OptionSetting;
use crate::units::show_ns;

/// Formats the whole scenario.
pub fn show(scenario: &Scenario) -> String {
    let mut out = String::new();
    let topology = &scenario.topology;
    for network in topology.networks() {
        let _ = write!(out, "network {}", network.name);
        for subnet in &network.subnets {
            let _ = write!(out, " {subnet}");
        }
        let _ = write!(out, ", latency {}", show_ns(network.latency_ns));
        if let Some(bits) = network.bandwidth_bits_per_s {
            let _ = write!(out, ", {bits} bit/s");
        }
        if let Some(packets) = network.queue_packets {
            let _ = write!(out, ", queue of {packets}");
        }
        let _ = writeln!(out, ", mtu {}", network.mtu);
    }
    for router in topology.routers() {
        let _ = writeln!(out, "router {}", router.name);
        place(scenario, &router.interfaces, &router.routes, &mut out);
    }
    for (setup, start) in scenario.hosts.iter().zip(scenario.start_times()) {
        host(scenario, setup, start, &mut out);
    }
    for fault in scenario.faults.list() {
        show_fault(scenario, fault, &mut out);
    }
    for check in &scenario.checks {
        let from = check
            .file
            .as_ref()
            .map(|file| format!(" in {}", relative(scenario, file)));
        let when: Vec<String> = check.when.iter().map(check_time).collect();
        let _ = writeln!(
            out,
            "check {}{}: {}",
            check.name,
            from.unwrap_or_default(),
            when.join(", ")
        );
    }
    about_all(scenario, &mut out);
    if let Some(trojans) = &scenario.trojans {
        show_trojans(scenario, trojans, &mut out);
    }
    out
}

fn show_trojans(scenario: &Scenario, trojans: &Trojans, out: &mut String) {
    let name = |host: &HostIndex| scenario.hosts[host.index()].name.clone();
    let clients: Vec<String> = trojans.clients.iter().map(name).collect();
    let protocol = if trojans.is_stream { "tcp" } else { "udp" };
    let _ = writeln!(
        out,
        "trojans of {}, {protocol} port {}: messages of {} to {} bytes, against {}",
        name(&trojans.server),
        trojans.port,
        trojans.least_length,
        trojans.most_length,
        clients.join(", ")
    );
    if let Some(of) = &trojans.fields_of {
        let mask = match of.mask.join(", ") {
            mask if mask.is_empty() => mask,
            mask => format!(", masked: {mask}"),
        };
        let _ = writeln!(out, "  fields: the members of {}{mask}", of.name);
    }
    for line in message_fields::lines(&trojans.fields) {
        let _ = writeln!(out, "  {line}");
    }
    let accept = match &trojans.accept {
        Accept::Reply => "a reply".to_owned(),
        Accept::ReplyMatches(pattern) => format!("a reply that matches {pattern:?}"),
        Accept::ReplyOther(pattern) => format!("a reply that does not match {pattern:?}"),
        Accept::Calls(calls) => format!("a call of {}", calls.join(", ")),
        Accept::Marks => "a mark".to_owned(),
    };
    let _ = writeln!(out, "  accepted by {accept}, or by a finding");
    for function in &trojans.replace {
        let (name, returns) = (&function.name, function.returns());
        let _ = writeln!(out, "  {name} is replaced: it returns {returns}");
    }
    if let Some(number) = trojans.number {
        let _ = writeln!(out, "  only message {number} of a client counts");
    }
    let ever = trojans.ever || trojans.has_state();
    out.push_str(match (ever, trojans.number) {
        (true, _) => "  what clients send at any time counts\n",
        (false, Some(_)) => "",
        (false, None) => "  what clients send before they hear from the server counts\n",
    });
    if let Some(at_ns) = trojans.state_ns {
        let _ = writeln!(out, "  the message is sent at {}", show_ns(at_ns));
    }
    let _ = match &trojans.state_event {
        Some((StateEvent::Message(number), _)) => writeln!(
            out,
            "  the message is sent when the server has received message {number}"
        ),
        Some((StateEvent::Mark(name), _)) => {
            writeln!(out, "  the message is sent when a host has marked {name:?}")
        }
        None => Ok(()),
    };
}

fn about_all(scenario: &Scenario, out: &mut String) {
    let of = |table: &'static str| {
        let options = scenario.options.iter();
        let options = options.filter(move |option| option.key.table == table);
        options.filter_map(OptionSetting::shown)
    };
    for limit in of("limits") {
        let _ = writeln!(out, "limit {limit}");
    }
    let search: Vec<String> = of("search").collect();
    if !search.is_empty() {
        let _ = writeln!(out, "search {}", search.join(", "));
    }
}

fn place(scenario: &Scenario, interfaces: &[Interface], routes: &[StaticRoute], out: &mut String) {
    for interface in interfaces {
        let network = &scenario.topology.network(interface.network).name;
        let _ = write!(out, "  {} on {network}", interface.name);
        for address in &interface.addresses {
            let _ = write!(out, " {address}");
        }
        if let Some(mtu) = interface.mtu {
            let _ = write!(out, " mtu {mtu}");
        }
        out.push('\n');
    }
    for route in routes {
        let _ = writeln!(out, "  route {} via {}", route.to, route.via);
    }
}

fn show_peer(scenario: &Scenario, peer: &PeerSetup, out: &mut String) {
    let protocol = if peer.is_udp { "udp" } else { "tcp" };
    match &peer.connects {
        Some(host) => {
            let name = &scenario.hosts[host.index()].name;
            let _ = writeln!(out, "  connects to {protocol} port {} of {name}", peer.port);
        }
        None => {
            let _ = writeln!(out, "  serves {protocol} port {}", peer.port);
        }
    }
    let listen = match &peer.listen {
        PeerListen::Internet(address) => address.to_string(),
        PeerListen::Unix(path) => format!("unix:{path}"),
    };
    let what = match peer.command.as_slice() {
        [] => "runs already".to_owned(),
        words => format!("is started by {words:?}"),
    };
    let _ = writeln!(out, "  {what}, reached at {listen}");
    let patience = show_ns(peer.patience_ns);
    let _ = writeln!(
        out,
        "  counts as silent after {patience}, {} times",
        peer.silences
    );
    let varies = peer.varies.iter();
    for text in varies {
        let _ = writeln!(out, "  may differ in {text:?}");
    }
}

fn relative(scenario: &Scenario, path: &std::path::Path) -> String {
    let inside = path.strip_prefix(&scenario.folder).unwrap_or(path);
    inside.display().to_string()
}

fn host(scenario: &Scenario, setup: &HostSetup, start: StartTime, out: &mut String) {
    let host = scenario.topology.host(setup.index);
    let what = if setup.peer.is_some() { "peer" } else { "host" };
    let _ = write!(out, "{what} {}", setup.name);
    if !host.aliases.is_empty() {
        let _ = write!(out, " ({})", host.aliases.join(", "));
    }
    out.push('\n');
    place(scenario, &host.interfaces, &host.routes, out);
    if let Some(peer) = &setup.peer {
        show_peer(scenario, peer, out);
    }
    for process in &setup.processes {
        show_process(scenario, process, out);
    }
    for other in &setup.programs {
        let guest = other.guest_path.as_ref().map(|path| format!(" at {path}"));
        let program = relative(scenario, &other.program);
        let _ = writeln!(out, "  can execute {program}{}", guest.unwrap_or_default());
    }
    for file in &setup.files {
        let _ = writeln!(out, "  {}", show_file(scenario, file));
    }
    match start {
        StartTime::Blocked(hosts) if hosts == setup.index.index() => {
            out.push_str("  starts when the hosts before it wait\n");
        }
        StartTime::Blocked(hosts) => {
            let last = hosts.checked_sub(1).and_then(|at| scenario.hosts.get(at));
            let last = last.map_or("", |setup| &setup.name);
            let _ = writeln!(out, "  starts when the hosts up to {last} wait");
        }
        StartTime::At(ns) => {
            let _ = writeln!(out, "  starts at {}", show_ns(ns));
        }
    }
    if let Some(trace) = &setup.begin {
        let trace = trace.file_name().unwrap_or_default().display();
        let _ = writeln!(out, "  is set up by its program, as in {trace}");
    }
    if let Some(ns) = setup.stop_ns {
        let _ = writeln!(out, "  stops at {}", show_ns(ns));
    }
    if setup.clock_skew_ns != 0 {
        let sign = if setup.clock_skew_ns < 0 {
            "behind"
        } else {
            "ahead"
        };
        let skew = show_ns(setup.clock_skew_ns.unsigned_abs());
        let _ = writeln!(out, "  clock {skew} {sign}");
    }
    if setup.symbolic_clock {
        out.push_str("  clock symbolic\n");
    }
    let options = setup.options.iter();
    for option in options.filter(|option| option.value.is_some()) {
        if let Some(shown) = option.shown() {
            let _ = writeln!(out, "  {shown}");
        }
    }
    for variable in &setup.variables {
        let of = match variable.range {
            Some((low, high)) => format!(" from {low} to {high}"),
            None => String::new(),
        };
        let _ = writeln!(out, "  {} is symbolic{of}", variable.path);
    }
    for watch in &setup.watches {
        let _ = writeln!(
            out,
            "  watches {} as {} in state {}",
            watch.path, watch.key, watch.state
        );
    }
}

fn show_process(scenario: &Scenario, process: &Process, out: &mut String) {
    let _ = write!(out, "  runs {}", relative(scenario, &process.program));
    for argument in &process.args {
        let _ = match argument {
            Argument::Text(text) => write!(out, " {text:?}"),
            Argument::Symbolic { length } => write!(out, " <{length} symbolic bytes>"),
            Argument::SymbolicMany {
                least,
                most,
                length,
            } => write!(out, " <{least} to {most} of {length} symbolic bytes>"),
        };
    }
    out.push('\n');
    for (name, value) in &process.env {
        let _ = match value {
            EnvValue::Text(text) => writeln!(out, "    {name}={text:?}"),
            EnvValue::Symbolic { length } => writeln!(out, "    {name}=<{length} symbolic bytes>"),
        };
    }
    let stdin = match &process.stdin {
        Stdin::Empty => None,
        Stdin::Text(text) => Some(format!("{text:?}")),
        Stdin::File(file) => Some(relative(scenario, file)),
        Stdin::Symbolic { size } => Some(format!("<{size} symbolic bytes>")),
    };
    if let Some(stdin) = stdin {
        let _ = writeln!(out, "    reads {stdin}");
    }
    if let Some(cwd) = &process.cwd {
        let _ = writeln!(out, "    in {cwd}");
    }
    let expected = process.expect.map(|expect| match expect {
        Expectation::Exit(Some(code)) => format!("exit {code}"),
        Expectation::Exit(None) => "exit".to_owned(),
        Expectation::Signal(Some(number)) => format!("signal {number}"),
        Expectation::Signal(None) => "signal".to_owned(),
        Expectation::Running => "running".to_owned(),
    });
    if let Some(expected) = expected {
        let _ = writeln!(out, "    expected: {expected}");
    }
}

fn show_file(scenario: &Scenario, file: &FileSource) -> String {
    match file {
        FileSource::Folder(from) => format!("files of {}", relative(scenario, from)),
        FileSource::Mount { from, to } => format!("{to} is {}", relative(scenario, from)),
        FileSource::File { to, from } => format!("{to} is {}", relative(scenario, from)),
        FileSource::Text { to, text } => format!("{to} is {text:?}"),
        FileSource::Symbolic { to, least, most } if least == most => {
            format!("{to} is {most} symbolic bytes")
        }
        FileSource::Symbolic { to, least, most } => {
            format!("{to} is {least} to {most} symbolic bytes")
        }
    }
}

fn show_fault(scenario: &Scenario, fault: &Fault, out: &mut String) {
    let _ = write!(out, "fault {}: {}", fault.name, fault.kind.name);
    for (parameter, value) in fault.kind.parameters.iter().zip(&fault.values) {
        let _ = write!(out, ", {} {}", parameter.name, setting(scenario, value));
    }
    let filter = &fault.filter;
    for (name, hosts) in [("from", &filter.from), ("to", &filter.to)] {
        if hosts.hosts().is_some() {
            let _ = write!(out, ", {name} {}", host_set(scenario, hosts));
        }
    }
    for protocol in &filter.protocols {
        let _ = write!(out, ", {protocol}");
    }
    for (name, ports) in [
        ("port", &filter.ports),
        ("source port", &filter.source_ports),
    ] {
        for range in &ports.0 {
            let _ = write!(out, ", {name} {}-{}", range.start(), range.end());
        }
    }
    if !filter.numbers.is_all() {
        let _ = write!(
            out,
            ", number {}-{}",
            filter.numbers.0.start(),
            filter.numbers.0.end()
        );
    }
    if !filter.sizes.is_all() {
        let _ = write!(
            out,
            ", size {}-{}",
            filter.sizes.0.start(),
            filter.sizes.0.end()
        );
    }
    if !filter.times.is_all() {
        let (from, to) = (filter.times.0.start(), filter.times.0.end());
        let _ = write!(out, ", from {} to {}", show_ns(*from), show_ns(*to));
    }
    let per = match fault.scope {
        Scope::World => "world",
        Scope::Causal => "causal past",
        Scope::Host => "host",
    };
    let _ = write!(out, ", at most {} a {per}", fault.max_count);
    out.push_str(if fault.always { ", always\n" } else { "\n" });
}

fn setting(scenario: &Scenario, value: &Value) -> String {
    match value {
        Value::Count(number) => number.to_string(),
        Value::Duration(u64::MAX) => "never".to_owned(),
        Value::Duration(ns) => show_ns(*ns),
        Value::Flag(flag) => flag.to_string(),
        Value::Hosts(hosts) => host_set(scenario, hosts),
        Value::Word(word) => (*word).to_owned(),
        Value::Words(words) if words.is_empty() => "any".to_owned(),
        Value::Words(words) => words.join(" "),
    }
}

fn host_set(scenario: &Scenario, hosts: &HostSet) -> String {
    let name = |host: &HostIndex| scenario.topology.host(*host).name.as_str();
    match hosts.hosts() {
        None => "all".to_owned(),
        Some(hosts) => hosts.iter().map(name).collect::<Vec<_>>().join(" "),
    }
}

fn check_time(time: &CheckTime) -> String {
    match time {
        CheckTime::Change => "at changes".to_owned(),
        CheckTime::End => "at the end".to_owned(),
        CheckTime::Eventually => "eventually".to_owned(),
        CheckTime::At(ns) => format!("at {}", show_ns(*ns)),
    }
}
