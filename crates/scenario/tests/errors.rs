//! Tests of the errors in scenarios: location, message and help.

mod common;

use everett_scenario::{NameContext, NameKind, OptionKey, parse};
use std::path::Path;

/// A context with one program, one folder and few names.
struct Little;

impl NameContext for Little {
    fn is_file(&self, path: &Path) -> bool {
        path.ends_with("server") || path.ends_with("client")
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.ends_with("site")
    }

    fn check(&self, kind: NameKind, name: &str) -> Result<(), String> {
        match (kind, name) {
            (NameKind::Call, "read") | (NameKind::Watched, "x.y") => Ok(()),
            (NameKind::Invariant, "fine") => Ok(()),
            _ => Err(format!("there is no {kind:?} {name}")),
        }
    }

    fn options(&self) -> Vec<OptionKey> {
        common::options()
    }

    fn check_option(&self, key: &OptionKey, argument: &str) -> Result<(), String> {
        match (key.name, argument) {
            ("order", "dfs") => Ok(()),
            ("order" | "mapping", _) => Err(format!("{argument:?} is no {}", key.name)),
            _ => Ok(()),
        }
    }
}

fn said(text: &str, overrides: &[(&str, &str)]) -> String {
    let overrides: Vec<(String, String)> = overrides
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    match parse(text, Path::new("s.toml"), &overrides, &Little) {
        Ok(_) => String::new(),
        Err(problems) => problems.to_string(),
    }
}

/// Returns the errors of a host with these additional lines.
fn of_host(lines: &str) -> String {
    said(&format!("[host.a]\nprogram = \"server\"\n{lines}\n"), &[])
}

#[test]
fn a_wrong_key_is_shown_with_the_right_one() {
    assert_eq!(
        said("[host.a]\nprogam = \"server\"\n", &[]),
        r#"s.toml:1:7: [host.a] has no program
  |
1 | [host.a]
  |       ^
  = say what it runs: program = "./server"
s.toml:2:1: [host.a] has no key "progam"
  |
2 | progam = "server"
  | ^^^^^^
  = did you mean "program"?"#
    );
}

#[test]
fn several_errors_are_told_at_once() {
    let text = r#"[host.a]
program = "sever"
start = 10
address = "10.0.0.300"
[host.b]
program = 5
faults = -1
[hots.c]
"#;
    assert_eq!(
        said(text, &[]),
        r#"s.toml:2:11: there is no program sever
  |
2 | program = "sever"
  |           ^^^^^^^
  = build it with everett cc, c++ or cargo
s.toml:3:9: 10 is not a duration: it has no unit
  |
3 | start = 10
  |         ^^
  = write "10ms" or "10s"
s.toml:4:11: "10.0.0.300" is not an IPv4 or IPv6 address
  |
4 | address = "10.0.0.300"
  |           ^^^^^^^^^^^^
  = write it as "10.0.0.5" or "10.0.0.5/24"
s.toml:6:11: expected a string, found an integer
  |
6 | program = 5
  |           ^
s.toml:7:10: -1 is not between 0 and 4294967295
  |
7 | faults = -1
  |          ^^
s.toml:8:2: a scenario has no key "hots"
  |
8 | [hots.c]
  |  ^^^^
  = did you mean "host"?"#
    );
}

#[test]
fn text_that_is_no_toml() {
    let text = said("[host.a]\nprogram = \"server\nargs = [1\n", &[]);
    assert!(text.starts_with("s.toml:2:"), "{text}");
    assert!(text.contains("this is not TOML"), "{text}");
    assert!(text.contains("2 | program = \"server\n"), "{text}");
}

#[test]
fn names_are_taken_once() {
    let twice = said(
        "[host.a]\nprogram = \"server\"\n[host.a]\nprogram = \"client\"\n",
        &[],
    );
    assert!(twice.starts_with("s.toml:3:"), "{twice}");
    let alias = of_host("[host.b]\nprogram = \"client\"\nalias = \"a\"");
    assert!(
        alias.starts_with("s.toml:3:7: host b: there is another"),
        "{alias}"
    );
    let count = of_host("[host.\"a{i-i}\"]\ncount = 2\nprogram = \"server\"");
    assert!(count.contains("host a0: there is another"), "{count}");
}

#[test]
fn settings_are_named() {
    let host = "[host.a]\nprogram = \"server\"\n";
    assert_eq!(
        said(host, &[("host.a.colour", "3")]),
        r#"`settings`: [host.a] has no key "colour"
 |
 | host.a.colour=3
 | ^^^^^^^^^^^^^
 = it can have: count, alias, aliases, gateway, routes, network, networks, address, addresses, interface, process, program, args, env, stdin, cwd, expect, programs, ro, files, file, start, begin, stop, clock_skew, clock, scheduler, preempt, faults, fault_calls, fault_programs, fault_regions, fragment, wait_all, trust_handlers, watch, symbolic"#
    );
    assert_eq!(
        said(host, &[("host.a.start", "soon")]),
        r#"`settings`: "soon" is not a unit of time; use ns, us, ms, s, m or h; or write "blocked" for when the hosts before it wait
 |
 | host.a.start=soon
 |              ^^^^"#
    );
    let below = said(host, &[("host.a.program.x", "1")]);
    assert!(
        below.contains("host.a.program is a string, not a table"),
        "{below}"
    );
    let broken = said(host, &[("host.a.args", "[1")]);
    assert!(broken.contains("[1 is not a TOML value"), "{broken}");
    assert!(said(host, &[("a..b", "1")]).contains("\"a..b\" is not a key"));
}

#[test]
fn every_wrong_thing_has_its_words() {
    let cases = [
        ("network = \"wan\"", "s.toml:3:11: unknown network \"wan\""),
        ("address = \"192.168.0.1\"", "192.168.0.1 is in no subnet"),
        ("files = \"server\"", "server is not a folder"),
        ("files = \"nothing\"", "there is no nothing"),
        ("stdin = { symblic = 3 }", "did you mean \"symbolic\"?"),
        (
            "args = \"x\"",
            "expected an array of strings, found a string",
        ),
        (
            "args = [{ symbolic = 1, least = 2, most = 1 }]",
            "2 is not between 0 and 1",
        ),
        ("expect = \"exit 256\"", "is not an expected end"),
        ("gateway = \"r\"", "unknown router or address \"r\""),
        ("gateway = \"10.0.0.9\"", "is not the address of a router"),
        ("routes = { \"10.1.0.0\" = \"10.0.0.9\" }", "has no length"),
        ("count = 2000", "2000 is not between 0 and 1024"),
        ("count = 2\nargs = [\"{x}\"]", "{x} is not a number"),
        ("count = 0", "there is no host"),
        ("clock = \"wall\"", "use one of: virtual, symbolic"),
        ("interface.eth0 = {}", "this interface is on no network"),
        (
            "networks = [\"lan\"]\nnetwork = \"lan\"",
            "they mean the same",
        ),
        (
            "[network.lan]\nlatency = \"0\"",
            "network \"lan\" has no subnet",
        ),
        (
            "[network.lan]\nsubnet = \"10.0.0.0/24\"\nlatency = \"0s\"",
            "its latency is 0",
        ),
        (
            "[network.n]\nsubnet = \"10.0.0.0/30\"\n[host.b]\ncount = 3\nprogram = \"server\"",
            "has no address left",
        ),
        ("[fault.los]", "did you mean \"loss\"?"),
        (
            "[fault.loss]\nper = \"path\"",
            "use one of: world, causal, host",
        ),
        (
            "[fault.loss]\nalways = true\nper = \"world\"",
            "is not counted over the world",
        ),
        (
            "[fault.loss]\nwindow = 1",
            "[fault.loss] has no key \"window\"",
        ),
        ("[fault.loss]\nfrom = \"b\"", "unknown host \"b\""),
        ("[fault.loss]\nnumber = \"3-1\"", "ends before it begins"),
        ("[fault.loss]\nnumber = 0", "numbered from 1"),
        ("[fault.loss]\nport = 70000", "\"70000\" is not a port"),
        ("[fault.partition]", "a partition needs \"between\""),
        ("[fault.crash]\ncalls = [\"raed\"]", "there is no Call raed"),
        ("[check.c]\nfile = \"no.minv\"", "there is no file no.minv"),
        ("[check.c]", "needs a file or a text"),
        ("[limits]\nmemory = \"4X\"", "is not a unit of size"),
        ("[limits]\npath = 3", "did you mean \"paths\"?"),
        (
            "[limits]\npaths = \"3\"",
            "expected an integer, found a string",
        ),
        ("wait_all = 1", "expected true or false, found an integer"),
        (
            "[search]\nmapping = \"cop\"",
            "s.toml:4:11: \"cop\" is no mapping",
        ),
        (
            "[search]\norder = [\"dfs\", \"bfs\"]",
            "s.toml:4:17: \"bfs\" is no order",
        ),
        ("[search]\nseed = 99999999999999999999", "is too large"),
        (
            "[defaults]\naddress = \"10.0.0.1\"",
            "it differs between hosts",
        ),
        (
            "[defaults]\nprogrm = \"x\"",
            "[defaults] has no key \"progrm\"",
        ),
        (
            "[host.\"b c\"]\nprogram = \"client\"",
            "\"b c\" is not a host name",
        ),
        ("watch = { a = \"x..y\" }", "there is no Watched x..y"),
        (
            "[check.c]\ntext = \"bad\"",
            "s.toml:4:8: there is no Invariant bad",
        ),
        ("begin = \"a.begin\"", "there is no trace a.begin"),
        ("begin = 1", "expected a string, found an integer"),
        ("[defaults]\nbegin = \"server\"", "it differs between hosts"),
        ("watch = { a = 1 }", "expected a string, found an integer"),
        ("host = 1", "[host.a] has no key \"host\""),
    ];
    for (lines, words) in cases {
        let text = of_host(lines);
        assert!(
            text.contains(words),
            "{lines}\ndoes not say {words:?}:\n{text}"
        );
        assert!(text.contains("s.toml:"), "{lines}\n{text}");
    }
    assert!(said("", &[]).contains("there is no host"));
    assert!(said("host = 1", &[]).contains("expected a table"));
}

/// Returns the errors of a peer with these lines; they begin at line 5.
fn of_peer(lines: &str) -> String {
    let text = "[host.a]\nprogram = \"server\"\n\n[peer.db]\n";
    said(&format!("{text}{lines}\n"), &[])
}

#[test]
fn errors_of_peers_point_at_what_is_wrong() {
    let whole = "listen = \"127.0.0.1:7000\"\nport = 7";
    assert_eq!(of_peer(whole), "");
    assert_eq!(of_peer("listen = \"unix:db\"\npath = \"/run/db\""), "");
    let cases = [
        (
            "port = 7",
            "s.toml:4:7",
            "does not say where the real peer is reached",
        ),
        ("listen = \"127.0.0.1:7000\"", "s.toml:4:7", "has no port"),
        (
            "port = 7\nlisten = \"db:7000\"",
            "s.toml:6:10",
            "is not an address with a port",
        ),
        (
            "port = 7\nlisten = \"127.0.0.1:0\"",
            "s.toml:6:10",
            "a peer that runs already has a port",
        ),
        (
            "port = 70000\nlisten = \"127.0.0.1:1\"",
            "s.toml:5:8",
            "70000 is not between 0 and 65535",
        ),
        (
            "port = 7\nlisten = \"unix:s\"\nrole = \"client\"\nprotocol = \"udp\"",
            "s.toml:4:7",
            "cannot send datagrams over a Unix socket",
        ),
    ];
    for (lines, place, message) in cases {
        let said = of_peer(lines);
        assert!(
            said.contains(place) && said.contains(message),
            "{lines}: {said}"
        );
    }
    let more = [
        ("fresh = \"process\"", "cannot be started afresh"),
        ("fresh = \"snapshot\"", "cannot be started afresh"),
        (
            "fresh = \"snapshot\"\nrole = \"client\"",
            "a client is not copied",
        ),
        (
            "fresh = \"snapshot\"\nindependent = true",
            "go to one process",
        ),
        ("varies = \"(\"", "there is no Regex ("),
        ("connects = \"a\"", "only a client connects to a host"),
        ("role = \"client\"\nconnects = \"b\"", "unknown host \"b\""),
        (
            "role = \"client\"\nindependent = true",
            "no independent connections",
        ),
        ("patience = 5", "it has no unit"),
        ("files = \"nothing\"", "there is no file"),
        ("lsten = \"x\"", "did you mean \"listen\"?"),
    ];
    for (lines, message) in more {
        let said = of_peer(&format!("{whole}\n{lines}"));
        let is_placed =
            said.contains("s.toml:7:") || said.contains("s.toml:8:") || said.contains("s.toml:4:");
        assert!(is_placed && said.contains(message), "{lines}: {said}");
    }
    let both = said(
        "[host.a]\nprogram = \"server\"\n[peer.a]\nlisten = \"127.0.0.1:1\"\nport = 7\n",
        &[],
    );
    assert!(both.contains("\"a\" is the name of a host"), "{both}");
}
