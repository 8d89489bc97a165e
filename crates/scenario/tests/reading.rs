//! Tests of the meaning of scenarios.

mod common;

use everett_net::{FaultIndex, HostIndex, Route, Scope, StartTime, Value};
use everett_scenario::{
    Argument, CheckTime, EnvValue, Expectation, FileSource, NameContext, OptionKey, OptionSetting,
    OptionValue, Scenario, Start, Stdin, parse, show,
};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A context in which everything is a file, except names that end in `-dir` and `missing`.
struct Anything;

impl NameContext for Anything {
    fn is_file(&self, path: &Path) -> bool {
        !self.is_folder(path) && !path.ends_with("missing")
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.to_string_lossy().ends_with("-dir")
    }

    fn options(&self) -> Vec<OptionKey> {
        common::options()
    }
}

fn read_with(text: &str, overrides: &[(&str, &str)]) -> Scenario {
    let overrides: Vec<(String, String)> = overrides
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    match parse(text, Path::new("world/test.toml"), &overrides, &Anything) {
        Ok(scenario) => scenario,
        Err(problems) => panic!("{problems}"),
    }
}

fn read(text: &str) -> Scenario {
    read_with(text, &[])
}

/// Returns the value of an option.
fn value<'o>(options: &'o [OptionSetting], name: &str) -> Option<&'o OptionValue> {
    let option = options.iter().find(|option| option.key.name == name);
    option.and_then(|option| option.value.as_ref())
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn two_programs_are_enough() {
    let world =
        read("[host.server]\nprogram = \"./server\"\n[host.client]\nprogram = \"./client\"\n");
    assert_eq!(world.name, "test");
    assert_eq!(world.hosts.len(), 2);
    assert_eq!(
        world.hosts[0].processes[0].program,
        PathBuf::from("world/./server")
    );
    assert_eq!(world.hosts[0].start, Start::InTurn);
    let times = [StartTime::At(0), StartTime::At(10_000_000)];
    assert_eq!(world.start_times(), times);
    assert_eq!(world.topology.resolve("server"), [ip("10.0.0.1")]);
    assert_eq!(world.topology.resolve("client"), [ip("10.0.0.2")]);
    let Route::Host { path, .. } = world.topology.route(HostIndex(1), ip("10.0.0.1")) else {
        panic!("the server is not reached");
    };
    assert_eq!(path.latency_ns, 1_000_000);
    assert_eq!(value(&world.options, "mapping"), None);
    let shown = show(&world);
    let usual = "limit memory 4G\nsearch mapping sds, orders 0, seed 0\n";
    assert!(shown.ends_with(usual), "{shown}");
}

#[test]
fn paths_start_where_the_scenario_says_but_traces_lie_beside_it() {
    let text = "folder = \"../programs\"\n[host.a]\nprogram = \"a\"\nbegin = \"a.begin\"\nstart = \"3ms\"\n\
                [check.c]\nfile = \"c.minv\"\n";
    let world = read(text);
    let host = &world.hosts[0];
    let program = PathBuf::from("world/../programs/a");
    assert_eq!(host.processes[0].program, program);
    assert_eq!(host.begin, Some(PathBuf::from("world/a.begin")));
    let check = PathBuf::from("world/../programs/c.minv");
    assert_eq!(world.checks[0].file, Some(check));
    let shown = show(&world);
    assert!(
        shown.contains("is set up by its program, as in a.begin"),
        "{shown}"
    );
    assert_eq!(
        read_with(text, &[("folder", "/abs")]).folder,
        PathBuf::from("/abs")
    );
}

#[test]
fn an_interface_has_the_addresses_that_it_is_given() {
    let text = "[network.n]\nsubnets = [\"10.0.0.0/24\", \"fd00::/64\"]\n\
                [host.a]\nprogram = \"a\"\ninterface.eth0 = { network = \"n\", addresses = [\"10.0.0.7\"] }\n\
                [host.b]\nprogram = \"b\"\ninterface.eth0 = { network = \"n\" }\n\
                [host.c]\nprogram = \"c\"\ninterface.eth0 = { network = \"n\", addresses = [] }\n";
    let topology = read(text).topology;
    let addresses = |host| topology.addresses(HostIndex(host)).collect::<Vec<_>>();
    assert_eq!(addresses(0), [ip("10.0.0.7")]);
    assert_eq!(addresses(1), [ip("10.0.0.1"), ip("fd00::1")]);
    assert!(addresses(2).is_empty());
}

const FULL: &str = r#"
[defaults]
env = { LANG = "C" }
expect = "exit 0"

[network.lan]
subnets = ["10.1.0.0/24", "fd00::/64"]
latency = "200us"
bandwidth = "10Mbit"
queue = 16

[network.wan]
subnet = "10.2.0.0/24"
latency = "20ms"
mtu = 1400

[router.edge]
networks = ["lan", "wan"]

[host.server]
program = "bin/server"
args = ["-p", 80, { symbolic = 4 }, { symbolic = 2, least = 0, most = 3 }]
alias = "www"
network = "lan"
files = "site-dir"
file = { "/etc/conf" = "conf", "/etc/motd" = { text = "hi" }, "/data" = { symbolic = 8, least = 2 } }
stdin = { symbolic = 16 }
env = { PORT = 80, TOKEN = { symbolic = 4 } }
start = "0"
stop = "5s"
expect = "running"
faults = 1
fault_calls = ["read:EINTR"]
clock_skew = "-5ms"
watch = { count = "server.table.count", state = { path = "state", state = 2 } }

[host.server.process.logger]
program = "bin/logger"

[host."node{i}"]
count = 3
program = "bin/node"
args = ["--id", "{i}", "--next", "node{(i+1)%n}"]
network = "wan"
address = "10.2.0.{10+i}"

[fault.loss]
from = "server"
most = 2
per = "host"

[fault.cut]
kind = "partition"
between = ["node{i}"]
at = "10ms"
heal = "1s"

[fault.reboot]
kind = "restart"
hosts = ["node0", "node2"]
on = "call"
calls = ["fsync"]

[check.agree]
text = "invariant x"
when = ["change", "10ms", "eventually"]

[limits]
time = "10m"
memory = "4G"
virtual_time = "1h"
events = 1000

[search]
order = ["dfs"]
mapping = "cow"
orders = 2
seed = 7
"#;

#[test]
fn everything_can_be_said() {
    let world = read(FULL);
    let server = &world.hosts[0];
    let main = &server.processes[0];
    assert_eq!(
        main.args,
        [
            Argument::Text("-p".to_owned()),
            Argument::Text("80".to_owned()),
            Argument::Symbolic { length: 4 },
            Argument::SymbolicMany {
                least: 0,
                most: 3,
                length: 2
            },
        ]
    );
    assert_eq!(
        main.env.len(),
        2,
        "its own environment, not the default one"
    );
    assert_eq!(
        main.env[1],
        ("TOKEN".to_owned(), EnvValue::Symbolic { length: 4 })
    );
    assert_eq!(main.stdin, Stdin::Symbolic { size: 16 });
    assert_eq!(main.expect, Some(Expectation::Running));
    assert_eq!(server.processes[1].name, "logger");
    assert_eq!(server.files[0], FileSource::Folder("world/site-dir".into()));
    assert!(server.files.contains(&FileSource::Symbolic {
        to: "/data".to_owned(),
        least: 2,
        most: 8
    }));
    assert_eq!(
        (server.start, server.stop_ns),
        (Start::At(0), Some(5_000_000_000))
    );
    assert_eq!(server.clock_skew_ns, -5_000_000);
    let faults = ["faults", "fault_calls"].map(|name| value(&server.options, name));
    let calls = OptionValue::Texts(vec!["read:EINTR".to_owned()]);
    assert_eq!(faults, [Some(&OptionValue::Number(1)), Some(&calls)]);
    assert_eq!(
        (
            server.watches[1].state.as_str(),
            server.watches[1].path.as_str()
        ),
        ("2", "state")
    );
    let names: Vec<&str> = world.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["server", "node0", "node1", "node2"]);
    let last = &world.hosts[3].processes[0];
    assert_eq!(last.args[3], Argument::Text("node0".to_owned()));
    assert_eq!(last.env[0].0, "LANG");
    assert_eq!(last.expect, Some(Expectation::Exit(Some(0))));
    assert_eq!(world.topology.resolve("node2"), [ip("10.2.0.12")]);
    assert_eq!(
        world.topology.resolve("www"),
        [ip("10.1.0.1"), ip("fd00::1")]
    );
    assert_eq!(
        world.topology.routers()[0].interfaces[0].addresses[0].address(),
        ip("10.1.0.254")
    );
    assert!(matches!(
        world.topology.route(HostIndex(0), ip("10.2.0.11")),
        Route::Host { target: HostIndex(2), path } if path.latency_ns == 20_200_000
    ));
    let loss = world.faults.get(FaultIndex(0));
    assert_eq!((loss.max_count, loss.scope), (2, Scope::Host));
    let cut = world.faults.get(FaultIndex(1));
    let Some(Value::Hosts(between)) = cut.value("between") else {
        panic!("no hosts");
    };
    assert_eq!(
        between.hosts().map(<[HostIndex]>::len),
        Some(3),
        "a group is all of its hosts"
    );
    assert_eq!(
        world.checks[0].when,
        [
            CheckTime::Change,
            CheckTime::At(10_000_000),
            CheckTime::Eventually
        ]
    );
    let is = |name: &str, wanted: OptionValue| {
        assert_eq!(value(&world.options, name), Some(&wanted), "{name}");
    };
    is("memory", OptionValue::Size(4 << 30));
    is("virtual_time", OptionValue::Duration(3_600_000_000_000));
    is("orders", OptionValue::Number(2));
    is("seed", OptionValue::Number(7));
    is("order", OptionValue::Texts(vec!["dfs".to_owned()]));
    let arguments = |name: &str| value(&world.options, name).map(OptionValue::arguments);
    let time = vec!["3600000000000ns".to_owned()];
    assert_eq!(arguments("virtual_time"), Some(time));
}

#[test]
fn the_command_line_stands_above_the_text() {
    let overrides = [
        ("host.server.args", r#"["-x"]"#),
        ("host.server.program", "./other"),
        ("host.\"node{i}\".count", "2"),
        ("fault.reboot.hosts", "node1"),
        ("network.wan.latency", "3ms"),
        ("fault.loss.most", "9"),
        ("limits.paths", "12"),
    ];
    let world = read_with(FULL, &overrides);
    assert_eq!(world.hosts.len(), 3);
    let main = &world.hosts[0].processes[0];
    assert_eq!(main.args, [Argument::Text("-x".to_owned())]);
    assert!(main.program.ends_with("other"));
    assert_eq!(world.topology.networks()[1].latency_ns, 3_000_000);
    assert_eq!(world.faults.get(FaultIndex(0)).max_count, 9);
    let paths = value(&world.options, "paths");
    assert_eq!(paths, Some(&OptionValue::Number(12)));
}

#[test]
fn hosts_start_at_times_in_turn_or_when_others_wait() {
    let world = read(
        "[defaults]\nprogram = \"./server\"\n[host.a]\n[host.b]\nstart = \"blocked\"\n[host.c]\n[host.d]\nstart = \"3ms\"\n[host.e]\nstart = \"blocked\"\n[host.f]\nstart = \"together\"\n",
    );
    let times = [
        StartTime::At(0),
        StartTime::Blocked(1),
        StartTime::At(10_000_000),
        StartTime::At(3_000_000),
        StartTime::Blocked(4),
        StartTime::Blocked(4),
    ];
    assert_eq!(world.start_times(), times);
    assert_eq!(world.hosts[1].start, Start::Blocked);
    let shown = show(&world);
    let starts: Vec<&str> = shown
        .lines()
        .filter(|line| line.contains("starts"))
        .collect();
    assert_eq!(
        starts,
        [
            "  starts at 0s",
            "  starts when the hosts before it wait",
            "  starts at 10ms",
            "  starts at 3ms",
            "  starts when the hosts before it wait",
            "  starts when the hosts up to d wait",
        ]
    );
}

#[test]
fn a_scenario_is_shown_the_same_each_time() {
    let text = show(&read(FULL));
    assert_eq!(text, show(&read(FULL)));
    let expected = include_str!("full.txt");
    assert_eq!(text, expected, "shown as:\n{text}");
}

#[test]
fn many_hosts_get_addresses_of_their_own() {
    let world = read(
        "[host.node]\ncount = 300\nprogram = \"x\"\n[host.one]\nprogram = \"y\"\naddress = \"10.0.0.2\"\n",
    );
    assert_eq!(world.hosts.len(), 301);
    assert_eq!(world.topology.resolve("node0"), [ip("10.0.0.1")]);
    assert_eq!(world.topology.resolve("node1"), [ip("10.0.0.3")]);
    assert_eq!(world.topology.resolve("node299"), [ip("10.0.1.45")]);
}

#[test]
fn routes_can_be_given_by_name() {
    let world = read(
        r#"
[network.a]
subnet = "10.0.1.0/24"
[network.b]
subnet = "10.0.2.0/24"
[router.r]
networks = ["a", "b"]
[router.s]
networks = ["a", "b"]
[host.x]
program = "x"
network = "a"
gateway = "s"
[host.y]
program = "x"
network = "b"
routes = {}
"#,
    );
    let (x, y) = (HostIndex(0), HostIndex(1));
    assert_eq!(world.topology.host(x).routes[0].via, ip("10.0.1.253"));
    assert!(matches!(
        world.topology.route(x, ip("10.0.2.1")),
        Route::Host { .. }
    ));
    assert!(matches!(
        world.topology.route(y, ip("10.0.1.1")),
        Route::Unreachable(_)
    ));
}

/// The neighbours that nodes of a generated grid are told are at the addresses that these get, also
/// where there are more hosts than a /24 has addresses.
#[test]
fn generated_grids_have_the_addresses_of_their_hosts() {
    let generate = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sde-grid/generate");
    for (size, neighbours) in [(3, 40), (16, 1860)] {
        let written = Command::new(&generate).arg(size.to_string()).output();
        let written = written.expect("it starts");
        assert!(written.status.success(), "{written:?}");
        let world = read(&String::from_utf8(written.stdout).expect("text"));
        assert_eq!(world.hosts.len(), size * size);
        let mut checked = 0;
        for argument in world.hosts.iter().flat_map(|host| &host.processes[0].args) {
            let Argument::Text(text) = argument else {
                panic!("a fixed argument");
            };
            let Some((number, address)) = text.split_once('@') else {
                continue;
            };
            let number: u32 = number.parse().expect("a number");
            let interfaces = &world.topology.host(HostIndex(number)).interfaces;
            assert_eq!(
                interfaces[0].addresses[0].address(),
                ip(address),
                "{number}"
            );
            checked += 1;
        }
        assert_eq!(checked, neighbours, "{size}");
    }
}
