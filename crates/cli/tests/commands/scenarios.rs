//! `everett scenario`: what it prints, draws and rejects.

use crate::common::{build, check_weights, count, everett, expect, folder, summary, text};
use std::fs;

const WORLD: &str = r#"
[network.lan]
subnet = "10.0.0.0/24"

[network.wan]
subnet = "10.1.0.0/24"
latency = "10ms"

[router.edge]
networks = ["lan", "wan"]

[host.server]
program = "./server"
network = "lan"
faults = 1
fault_calls = ["read:EINTR"]
scheduler = "bounded:2"

[host.client]
count = 2
program = "./client"
network = "wan"
args = ["server", "{i}"]

[fault.loss]

[search]
order = ["dfs", "coverage"]
"#;

#[test]
fn a_scenario_is_checked_shown_and_drawn() {
    let folder = folder("scenario");
    fs::write(folder.join("world.toml"), WORLD).expect("written");
    for program in ["server", "client"] {
        fs::write(folder.join(program), "").expect("written");
    }
    let checked = expect(
        everett(&folder).args(["scenario", "check", "world.toml"]),
        0,
    );
    assert_eq!(
        text(&checked),
        "world.toml: in order, 3 hosts, 2 networks, 1 router, 1 fault\n"
    );
    let mut show = everett(&folder);
    show.args(["scenario", "show", "world.toml", "--dot", "w.dot"]);
    let shown = text(&expect(show.args(["--svg", "w.svg"]), 0));
    for words in [
        "network wan 10.1.0.0/24, latency 10ms, mtu 1500\n",
        "host client1\n  eth0 on wan 10.1.0.2/24\n  route 0.0.0.0/0 via 10.1.0.254\n",
        "  runs ./client \"server\" \"1\"\n",
        "fault loss: loss, udp, at most 1 a world\n",
    ] {
        assert!(shown.contains(words), "{words:?} is not in:\n{shown}");
    }
    let dot = fs::read_to_string(folder.join("w.dot")).expect("a picture");
    assert!(dot.starts_with("graph topology {") && dot.contains("client1"));
    let svg = fs::read_to_string(folder.join("w.svg")).expect("a picture");
    assert!(svg.starts_with("<svg ") && svg.contains("10.1.0.254"));
    let mut more = everett(&folder);
    more.args(["scenario", "show", "world.toml"]);
    more.args([
        "--set",
        "host.client.count=4",
        "--set",
        "network.wan.latency=3ms",
    ]);
    let shown = text(&expect(&mut more, 0));
    assert!(
        shown.contains("host client3\n") && shown.contains("latency 3ms"),
        "{shown}"
    );
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let folder = folder("bad-scenario");
    let refused = |file: &str, arguments: &[&str], words: &[&str]| {
        let mut command = everett(&folder);
        command.args(["scenario", "check", file]).args(arguments);
        let said = text(&expect(&mut command, 2));
        for word in words {
            assert!(said.contains(word), "{word:?} is not in:\n{said}");
        }
    };
    refused(
        "nothing.toml",
        &[],
        &["nothing.toml", "cannot be read", "No such file"],
    );
    fs::write(folder.join("server"), "").expect("written");
    let lines = "[host.a]\nprogram = \"server\"\nscheduler = \"fair\"\nfault_calls = [\"raed\"]\n[search]\norder = \"deep\"\n";
    fs::write(folder.join("names.toml"), lines).expect("written");
    refused(
        "names.toml",
        &[],
        &[
            "everett: 3 errors in the scenario\n",
            "names.toml:3:13: \"fair\" is not a scheduler",
            "names.toml:4:16: \"raed\" is not a system call",
            "names.toml:6:9: \"deep\" is not a searcher; there are: dfs",
            "\n6 | order = \"deep\"\n  |         ^^^^^^\n",
        ],
    );
    fs::write(folder.join("bytes.toml"), [0xff, 0xfe]).expect("written");
    refused("bytes.toml", &[], &["bytes.toml", "UTF-8"]);
    refused("names.toml", &["--set", "host"], &["KEY=VALUE"]);
    let program = ["--set", "host.a.program=./nothing"];
    refused(
        "names.toml",
        &program,
        &["--set: ", "host.a.program=./nothing", "there is no program"],
    );
}

/// A client that waits for an answer which may be lost. Its server waits forever in every world, as
/// servers do.
#[test]
fn stalled_worlds_are_counted_and_can_be_findings() {
    const SOURCE: &str = r#"
#include <arpa/inet.h>
#include <sys/socket.h>
int main(int count, char **words) {
  int end = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7)};
  socklen_t size = sizeof at;
  char byte = 1;
  if (count > 1) {
    inet_pton(AF_INET, words[1], &at.sin_addr);
    sendto(end, &byte, 1, 0, (struct sockaddr *)&at, size);
    return recv(end, &byte, 1, 0) != 1;
  }
  bind(end, (struct sockaddr *)&at, size);
  while (recvfrom(end, &byte, 1, 0, (struct sockaddr *)&at, &size) == 1)
    sendto(end, &byte, 1, 0, (struct sockaddr *)&at, size);
}
"#;
    const WORLD: &str = "[host.server]\nprogram = \"./echo\"\n[host.client]\nprogram = \"./echo\"\n\
                         args = [\"10.0.0.1\"]\n[fault.lost]\nkind = \"loss\"\n";
    let folder = folder("scenario_stalled");
    build(&folder, "echo", SOURCE, &[]);
    fs::write(folder.join("world.toml"), WORLD).expect("written");
    let said = text(&expect(
        everett(&folder).args(["run", "--out", "out", "world.toml"]),
        0,
    ));
    let counted = "a host waits for ever in 3 of 3 worlds, all hosts in 2; hosts that end in other worlds: client";
    assert!(said.contains(counted), "{said}");
    assert!(
        said.contains("(--check-deadlocks makes that a finding)"),
        "{said}"
    );
    let found = summary(&folder.join("out"));
    assert_eq!(count(&found, "/worlds_deadlocked"), 2);
    assert_eq!(found["hosts_stalled"], serde_json::json!(["client"]));
    let options = ["--check-deadlocks", "--set", "host.server.expect=running"];
    let run = ["run", "--out", "found", "world.toml"];
    let said = text(&expect(everett(&folder).args(run).args(options), 1));
    assert!(!said.contains("makes that a finding"), "{said}");
    let found = summary(&folder.join("found"));
    let findings = found["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 1, "{found}");
    for (key, value) in [
        ("kind", "deadlock"),
        ("host", "client"),
        ("confirmed", "confirmed"),
    ] {
        assert_eq!(findings[0][key], value, "{found}");
    }
}

fn partitions(count: usize) -> String {
    let one = |at| format!("[fault.p{at}]\nkind = \"partition\"\nbetween = \"a\"\n");
    (0..count).map(one).collect()
}

/// Worlds of eleven partitions do not begin all at once, and a run that stops before some have
/// begun continues with them.
#[test]
fn more_than_ten_partitions_are_explored() {
    let folder = folder("scenario_partitions");
    build(&folder, "program", "int main(void) { return 0; }", &[]);
    let hosts = "[host.a]\nprogram = \"./program\"\n[host.b]\nprogram = \"./program\"\n";
    fs::write(
        folder.join("world.toml"),
        format!("{hosts}{}", partitions(11)),
    )
    .expect("written");
    let options = [
        "run",
        "-q",
        "--no-tests",
        "--max-forks",
        "500",
        "--out",
        "out",
        "world.toml",
    ];
    expect(everett(&folder).args(options), 0);
    let stopped = summary(&folder.join("out"));
    assert_eq!(stopped["complete"], false);
    assert!(
        stopped["weight"]["pending"].as_f64() >= Some(0.5),
        "{stopped}"
    );
    check_weights(&stopped);
    expect(
        everett(&folder).args(["resume", "-q", "--max-forks", "5000", "out"]),
        0,
    );
    let whole = summary(&folder.join("out"));
    assert_eq!(whole["complete"], true, "{whole}");
    assert_eq!(count(&whole, "/worlds"), 1 << 11);
}

#[test]
fn what_is_not_explored_yet_is_refused_not_left_out() {
    let folder = folder("scenario_refused");
    fs::write(folder.join("program"), "").expect("written");
    let hosts = "[host.a]\nprogram = \"./program\"\n[host.b]\nprogram = \"./program\"\n";
    for (more, option, said) in [
        (partitions(63), "-q", "more than 62 partitions"),
        (String::new(), "--faults=2", "is for single programs"),
        (String::new(), "--stop-at=all", "is for programs"),
        (
            String::new(),
            "--max-static-pct-check-delay=9",
            "is for programs",
        ),
        (String::new(), "--search=sideways", "is not a searcher"),
    ] {
        fs::write(folder.join("world.toml"), format!("{hosts}{more}")).expect("written");
        let refused = expect(everett(&folder).args(["run", option, "world.toml"]), 2);
        let refused = text(&refused);
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn watched_data_that_is_not_there_is_told() {
    const SOURCE: &str = r#"
        #include <unistd.h>
        struct table { int count; int rows[3]; struct table *next; };
        struct table table;
        static struct { int read; int written; } kept;
        static _Thread_local int own;
        int main(int argc, char **argv) {
            table.count = argc;
            kept.written = argc;
            while (getpid() > 1 << 20)
                kept.read += argc + own++;
            return kept.read;
        }"#;
    let folder = folder("scenario_watched");
    build(&folder, "program", SOURCE, &["-g", "-O2"]);
    let world = "[host.a]\nprogram = \"./program\"\n[host.b]\nprogram = \"./program\"\n";
    fs::write(folder.join("world.toml"), world).expect("written");
    let run = |path: &str, code: i32| {
        let setting = format!("host.a.watch={{ x = \"{path}\" }}");
        let mut command = everett(&folder);
        let command = command.args(["run", "--max-time", "1000s", "--out", &format!("of {path}")]);
        text(&expect(
            command.args(["--set", &setting, "world.toml"]),
            code,
        ))
    };
    for (path, said) in [
        ("tabel.count", "there is `table`"),
        ("table.cuont", "it has: count, rows, next"),
        ("table.rows[3]", "index 3 is beyond the 3 elements"),
        ("table.next.count", "a pointer; `->` follows it"),
        ("kept.written", "the optimiser has left `kept.written` out"),
        ("own", "every thread has a variable of its own"),
    ] {
        let refused = run(path, 2);
        assert!(refused.contains(said), "{path}: {refused}");
    }
    for path in ["table", "table.rows[2]", "table.next->count", "kept.read"] {
        run(path, 0);
    }
}
