//! `everett faults` on worlds of native programs under the kernel model.

use crate::common::{build, everett, expect, folder, summary, text};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Stores each byte in a file and answers. If a file cannot be opened the second time, it writes to
/// a null pointer; if a write fails, it answers as if it had succeeded.
const SERVER: &str = r#"
#include <everett.h>
#include <fcntl.h>
#include <stdlib.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
static int opened, stored, answered;
static void put(char byte) {
  int *failures = malloc(sizeof *failures);
  int fd = open("/store", O_CREAT | O_WRONLY | O_APPEND, 0600);
  opened++;
  if (fd < 0) {
    if (opened == 2)
      failures = 0;
    *failures = 1;
    return;
  }
  if (write(fd, &byte, 1) == 1)
    stored++;
  close(fd);
  free(failures);
}
int main(void) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(7)}, from;
  if (bind(fd, (struct sockaddr *)&own, sizeof own))
    return 1;
  for (int i = 0; i < 3; i++) {
    char byte;
    socklen_t size = sizeof from;
    if (recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&from, &size) != 1)
      return 2;
    put(byte);
    answered++;
    everett_expose("0", "stored", &stored, sizeof stored);
    everett_expose("0", "answered", &answered, sizeof answered);
    sendto(fd, &byte, 1, 0, (struct sockaddr *)&from, size);
  }
  return 0;
}
"#;

/// Sends three bytes; a byte without an answer is an error.
const CLIENT: &str = r#"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
int main(void) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7)};
  inet_pton(AF_INET, "10.0.0.1", &to.sin_addr);
  struct timeval patience = {.tv_sec = 1};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  for (int i = 0; i < 3; i++) {
    char byte = 'a' + i;
    sendto(fd, &byte, 1, 0, (struct sockaddr *)&to, sizeof to);
    if (recv(fd, &byte, 1, 0) != 1)
      return 3;
  }
  return 0;
}
"#;

const WORLD: &str = r#"
[host.server]
program = "./server"
[host.client]
program = "./client"
[fault.lost]
kind = "loss"
[check.store]
file = "store.minv"
"#;

const SEARCH: &str = r#"
space = """
host : { server } function : { open } errno : { EMFILE } number : [0, 4] ;
host : { server } function : { write } errno : { EIO, ENOSPC } number : [0, 4] ;
host : { server, client } fault : { lost } packet : [0, 4] ;
"""
injector = "model"
scenario = "world.toml"
"#;

fn place(name: &str) -> std::path::PathBuf {
    let folder = folder(name);
    build(&folder, "server", SERVER, &["-g"]);
    build(&folder, "client", CLIENT, &["-g"]);
    fs::write(folder.join("world.toml"), WORLD).expect("written");
    fs::write(folder.join("search.toml"), SEARCH).expect("written");
    let check = "at end invariant store() {\n\
                 return sys.data(\"server\", 0, \"stored\").int() == sys.data(\"server\", 0, \"answered\").int();\n}\n";
    fs::write(folder.join("store.minv"), check).expect("written");
    folder
}

fn search(folder: &Path, out: &str, more: &[&str]) -> Value {
    let run = ["faults", "run", "search.toml", "--out", out];
    expect(everett(folder).args(run).args(more), 1);
    summary(&folder.join(out))
}

/// Returns how a scenario ended.
fn outcome<'s>(summary: &'s Value, scenario: &str) -> &'s Value {
    let mut all = summary["results"].as_array().expect("a list").iter();
    all.find(|one| one["scenario"] == scenario)
        .unwrap_or_else(|| panic!("no scenario {scenario}"))
}

#[test]
fn faults_of_calls_and_packets_are_in_one_space() {
    let folder = place("faults-world");
    let all = search(&folder, "all", &["--search", "exhaustive"]);
    assert_eq!(all["scenarios_run"], 25, "{all}");
    assert_eq!(all["errors"], 0);
    assert_eq!(all["isolation"], "model");
    let crash = outcome(&all, "host server function open errno EMFILE number 2");
    assert_eq!(crash["outcome"], "crashed");
    assert_eq!(crash["repeats"], "always the same");
    let stack = crash["stack"].to_string();
    assert!(stack.contains("in put at"), "{stack}");
    let harmless = outcome(&all, "host server function open errno EMFILE number 4");
    assert_eq!(harmless["outcome"], "passed");
    assert_eq!(harmless["injected"], false);
    for number in 1..=3 {
        let lie = format!("host server function write errno ENOSPC number {number}");
        let lie = outcome(&all, &lie);
        assert_eq!(
            (&lie["outcome"], &lie["impact"]),
            (&"failed".into(), &20.0.into())
        );
        assert!(lie["why"].to_string().contains("store"), "{lie}");
    }
    let lost = outcome(&all, "host client fault lost packet 2");
    assert_eq!(lost["why"][0], "exit 3", "{lost}");
    // Failures of one call at one place form one cluster.
    assert!(all["clusters"].as_u64() <= Some(6), "{all}");
}

#[test]
fn a_search_of_worlds_repeats_and_its_failures_replay() {
    let folder = place("faults-world-replay");
    let ordered = |summary: &Value| {
        let results = summary["results"].as_array().expect("a list").iter();
        let fields = ["name", "scenario", "outcome", "impact", "cluster"];
        let fields = |one: &Value| fields.map(|name| one[name].to_string());
        results.map(fields).collect::<Vec<_>>()
    };
    let one = search(&folder, "one", &["--jobs", "1"]);
    let two = search(&folder, "two", &["--jobs", "2"]);
    assert_eq!(ordered(&one), ordered(&two));
    for scenario in [
        "host server function open errno EMFILE number 2",
        "host server function write errno EIO number 1",
        "host client fault lost packet 1",
    ] {
        let name = outcome(&one, scenario)["name"].as_str().expect("a name");
        let replay = format!("one/{name}");
        let words = ["faults", "replay", &replay, "--times", "3"];
        expect(everett(&folder).args(words), 0);
        // The trace is one of native code.
        let trace = format!("one/scenarios/{name}");
        let said = text(&expect(everett(&folder).args(["replay", &trace]), 0));
        assert!(said.contains("confirmed"), "{said}");
    }
}

#[test]
fn the_space_of_a_world_is_what_can_go_wrong_in_it() {
    let folder = place("faults-world-profile");
    let words = ["faults", "profile", "--out", "w.space", "--", "world.toml"];
    expect(everett(&folder).args(words), 0);
    let space = fs::read_to_string(folder.join("w.space")).expect("a space");
    for line in [
        "host : { client } fault : { lost } number : [1, 3] ;",
        "host : { server } function : { malloc } errno : { ENOMEM } number : [1, 3] ;",
        "host : { server } function : { write } errno : { EIO, ENOSPC } number : [1, 3] ;",
    ] {
        assert!(space.contains(line), "{space}");
    }
    let named = SEARCH.split("\"\"\"").last().expect("the rest");
    let file = format!("space = \"w.space\"{named}");
    fs::write(folder.join("search.toml"), file).expect("written");
    let all = search(&folder, "out", &[]);
    assert_eq!(all["is_complete"], true);
    // Counted faults do happen.
    assert_eq!(all["scenarios_injected"], all["scenarios_total"], "{all}");
    let oom = outcome(&all, "host server function malloc errno ENOMEM number 2");
    assert_eq!(oom["outcome"], "passed", "{oom}");
}

#[test]
fn mistakes_in_searches_of_worlds_are_told() {
    let folder = place("faults-world-mistakes");
    let cases = [
        (
            "host : { server }",
            "host : { nobody }",
            "there is no host nobody",
        ),
        (
            "fault : { lost }",
            "fault : { found }",
            "there is no fault found",
        ),
        ("{ open }", "{ getpid }", "never fail"),
        ("EMFILE", "EPIPE", "not with EPIPE"),
        (
            "function : { open } errno : { EMFILE }",
            "",
            "neither an attribute fault",
        ),
        (
            "function : { open }",
            "function : { open } fault : { lost }",
            "not both",
        ),
        ("scenario = \"world.toml\"", "", "`scenario` is missing"),
        ("world.toml", "other.toml", "other.toml"),
        (
            "injector = \"model\"",
            "injector = \"model\"\ntest = \"true\"",
            "`test` is not for",
        ),
        (
            "injector = \"model\"",
            "injector = \"model\"\nprogram = \"server\"",
            "`program` is not for",
        ),
        (
            "\"model\"",
            "\"ptrace\"\ntest = \"true\"",
            "`scenario` is for injector model",
        ),
    ];
    for (number, (from, to, said)) in cases.into_iter().enumerate() {
        assert!(SEARCH.contains(from));
        fs::write(folder.join("search.toml"), SEARCH.replacen(from, to, 1)).expect("written");
        let out = format!("out-{number}");
        let run = ["faults", "run", "search.toml", "--out", &out];
        let told = text(&expect(everett(&folder).args(run), 2));
        assert!(told.contains(said), "{told}");
    }
}

/// Reads a file of ten bytes and sends one byte to its peer, which waits for it. Without the file,
/// it takes memory without end; without a socket, it sleeps without end; after a short read, it
/// exits with 4.
const SENDER: &str = r#"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv) {
  struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(7)};
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  char bytes[4096];
  if (argc > 1) {
    if (bind(fd, (struct sockaddr *)&peer, sizeof peer))
      return 2;
    return recv(fd, bytes, sizeof bytes, 0) != 10;
  }
  inet_pton(AF_INET, "10.0.0.2", &peer.sin_addr);
  while (fd < 0)
    usleep(1000);
  int file = open("/ten", O_RDONLY);
  while (file < 0)
    memset(malloc(1 << 20), 1, 1 << 20);
  if (read(file, bytes, sizeof bytes) != 10)
    return 4;
  usleep(20000);
  sendto(fd, bytes, 10, 0, (struct sockaddr *)&peer, sizeof peer);
  return 0;
}
"#;

fn place_of_sender(name: &str, expect: &str, space: &str) -> std::path::PathBuf {
    let folder = folder(name);
    build(&folder, "sender", SENDER, &["-g"]);
    let world = format!(
        "[host.sender]\nprogram = \"./sender\"\nfile.\"/ten\".text = \"0123456789\"\n\
         [host.waiter]\nprogram = \"./sender\"\nargs = [\"wait\"]\n{expect}\n\
         [fault.lost]\nkind = \"loss\"\n"
    );
    fs::write(folder.join("world.toml"), world).expect("written");
    let search = format!(
        "space = \"{space}\"\ninjector = \"model\"\nscenario = \"world.toml\"\nrepetitions = 1\n\
         [limits]\nmemory = \"96M\"\ntimeout = \"60s\"\n"
    );
    fs::write(folder.join("search.toml"), search).expect("written");
    folder
}

#[test]
fn hosts_wait_for_ever_only_in_worlds_that_are_over() {
    // The sender reaches a limit, so it is unknown how long its peer would have waited.
    let space = "host : {sender} function : {open} errno : {EMFILE} ;";
    let folder = place_of_sender("faults-world-limit", "expect = \"exit 0\"", space);
    let all = search(&folder, "out", &["--jobs", "1"]);
    let one = outcome(&all, "host sender function open errno EMFILE");
    assert_eq!(one["outcome"], "limit", "{one}");
    assert_eq!(one["why"][0], "limit of memory", "{one}");
    let said = fs::read_to_string(folder.join("out/scenarios/000001/stderr.txt")).expect("a file");
    assert!(said.contains("waiter: has not ended"), "{said}");
    // Its trace would not end there again.
    for trace in ["test.world", "finding.world"] {
        let trace = folder.join("out/scenarios/000001").join(trace);
        assert!(!trace.exists(), "{}", trace.display());
    }
    // Nothing that it sends arrives: its peer, which otherwise ends, waits forever.
    let space = "fault : {lost} packet : {1, 2} ;";
    let folder = place_of_sender("faults-world-stuck", "", space);
    let all = search(&folder, "out", &["--jobs", "1"]);
    let one = outcome(&all, "fault lost packet 1");
    assert_eq!(
        (&one["outcome"], &one["impact"]),
        (&"hung".into(), &10.0.into())
    );
    assert_eq!(one["why"][0], "waiter does not end", "{one}");
    assert_eq!(outcome(&all, "fault lost packet 2")["outcome"], "passed");
    // The same if the world is cut off, whatever is expected.
    let limit = "expect = \"exit 0\"\n[limits]\nvirtual_time = \"1s\"";
    let space = "host : {sender} function : {socket} errno : {EMFILE} ;";
    let folder = place_of_sender("faults-world-cut", limit, space);
    let all = search(&folder, "out", &["--jobs", "1"]);
    let one = outcome(&all, "host sender function socket errno EMFILE");
    assert_eq!(one["why"][0], "sender does not end", "{one}");
}

#[test]
fn short_transfers_are_short() {
    let space = "host : {sender} function : {read} failure : {short} ;";
    let folder = place_of_sender("faults-world-short", "", space);
    let all = search(&folder, "out", &["--jobs", "1"]);
    // The buffer is much longer than the file.
    let short = outcome(&all, "host sender function read failure short");
    assert_eq!(short["why"][0], "exit 4", "{short}");
    // A datagram is transferred whole.
    let space = text(&expect(
        everett(&folder).args(["faults", "profile", "--", "world.toml"]),
        0,
    ));
    assert!(
        space.contains("function : { read } failure : { short }"),
        "{space}"
    );
    // The one waits for the other, which does not wait.
    for (call, errno) in [("recvfrom", "EINTR"), ("sendto", "ENOBUFS")] {
        assert!(
            space.contains(&format!("{{ {call} }} errno : {{ {errno} }}")),
            "{space}"
        );
        assert!(!space.contains(&format!("{{ {call} }} failure")), "{space}");
    }
}

#[test]
fn mistakes_in_profiles_of_worlds_are_told() {
    let folder = place("faults-world-profile-mistakes");
    let world = format!("{WORLD}\n[host.late]\nprogram = \"./server\"\nexpect = \"exit 0\"\n");
    fs::write(folder.join("waits.toml"), world).expect("written");
    for (words, said) in [
        (&["--", "world.toml", "true"][..], "profiled on its own"),
        (&["--syscalls", "--", "world.toml"], "not for scenarios"),
        (
            &["--", "waits.toml"],
            "fails without any fault: late: deadlock",
        ),
    ] {
        let run = everett(&folder)
            .args(["faults", "profile"])
            .args(words)
            .output();
        let told = text(&run.expect("it runs"));
        assert!(told.contains(said), "{told}");
    }
    let show = ["faults", "show", "nothing.space"];
    let told = text(&expect(everett(&folder).args(show), 2));
    assert_eq!(told.matches("No such file").count(), 1, "{told}");
}

/// Recovers from a failed write, unless its input has a certain byte.
const RECOVERS: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  char input[2];
  if (read(0, input, 2) != 2)
    return 1;
  for (int i = 0; i < 2; i++) {
    int fd = open("/log", O_CREAT | O_WRONLY | O_APPEND, 0600);
    if (fd < 0 || write(fd, &input[i], 1) != 1) {
      if (i == 1 && input[0] == 'q')
        abort();
      return 0;
    }
    close(fd);
  }
  return 0;
}
"#;

const RECOVERING_WORLD: &str = r#"
[host.node]
program = "./recovers"
stdin = { symbolic = 2 }
"#;

const RECOVERING_SEARCH: &str = r#"
space = "host : { node } function : { write } errno : { EIO } number : [0, 3] ;"
injector = "model"
scenario = "world.toml"
"#;

#[test]
fn scenarios_are_explored_with_symbolic_inputs() {
    let folder = folder("fault-worlds-explored");
    build(&folder, "recovers", RECOVERS, &["-g"]);
    fs::write(folder.join("world.toml"), RECOVERING_WORLD).expect("written");
    fs::write(folder.join("search.toml"), RECOVERING_SEARCH).expect("written");
    let run = ["faults", "run", "search.toml", "--out", "out"];
    // No input that a concrete run has leads to a crash.
    expect(everett(&folder).args(run), 0);
    let out = expect(everett(&folder).args(run).args(["--explore", "5"]), 1);
    assert!(text(&out).contains("abort"), "{}", text(&out));
    let summary = summary(&folder.join("out"));
    assert_eq!(summary["failures"], 0, "{summary}");
    let explored = summary["explored"].as_array().expect("a list");
    // Both writes are injection points; a third write and write 0 never happen.
    assert_eq!(explored.len(), 2, "{summary}");
    let found: Vec<usize> = explored
        .iter()
        .map(|one| one["findings"].as_array().expect("a list").len())
        .collect();
    assert_eq!(found, [0, 1], "{summary}");
    assert!(
        explored.iter().all(|one| one["complete"] == true),
        "{summary}"
    );
    assert_eq!(
        explored[1]["findings"][0]["confirmed"], "confirmed",
        "{summary}"
    );
    assert_eq!(explored[1]["findings"][0]["line"], 13, "{summary}");
    let finding = format!(
        "out/{}/findings/0001",
        explored[1]["folder"].as_str().unwrap()
    );
    expect(everett(&folder).args(["replay", &finding]), 0);
    // Only worlds can be explored.
    fs::write(
        folder.join("real.toml"),
        "space = \"function : { read } callNumber : [1,2] ;\"\ninjector = \"ptrace\"\ntest = \"true\"\n",
    )
    .expect("written");
    let refused = expect(
        everett(&folder).args(["faults", "run", "real.toml", "--explore", "1"]),
        2,
    );
    assert!(text(&refused).contains("only worlds can be explored"));
}

#[test]
fn explorations_that_say_little_are_told() {
    let folder = folder("fault-worlds-explored-little");
    build(&folder, "recovers", RECOVERS, &["-g"]);
    fs::write(folder.join("world.toml"), RECOVERING_WORLD).expect("written");
    let run = |out: &str, code: i32, explore: &[&str]| {
        let words = ["faults", "run", "search.toml", "--out", out];
        text(&expect(everett(&folder).args(words).args(explore), code))
    };
    // No fault ever happens.
    let never = RECOVERING_SEARCH.replace("[0, 3]", "[0, 0]");
    fs::write(folder.join("search.toml"), never).expect("written");
    let said = run("never", 0, &["--explore", "1"]);
    assert!(said.contains("nothing was explored"), "{said}");
    // Explorations are kept if the search goes on without them.
    fs::write(folder.join("search.toml"), RECOVERING_SEARCH).expect("written");
    run("kept", 1, &["--explore", "2"]);
    let before = summary(&folder.join("kept"))["explored"].clone();
    for explore in [&["--explore", "1"][..], &[]] {
        run("kept", 1, explore);
        assert_eq!(summary(&folder.join("kept"))["explored"], before);
    }
    // Nothing is symbolic.
    fs::write(folder.join("input"), "qq").expect("written");
    let world = RECOVERING_WORLD.replace("symbolic = 2", "file = \"input\"");
    fs::write(folder.join("world.toml"), world).expect("written");
    let said = run("concrete", 1, &["--explore", "1"]);
    assert!(
        said.contains("each exploration has a single path"),
        "{said}"
    );
    // A program without bitcode runs, and cannot be explored: that is told before the search.
    fs::remove_file(folder.join("recovers.bc")).expect("removed");
    let said = run("native", 2, &["--explore", "1"]);
    assert!(said.contains("has no bitcode beside it"), "{said}");
    assert!(!folder.join("native/journal.jsonl").exists());
    run("native", 1, &[]);
}

#[test]
fn lines_of_worlds_are_covered() {
    let folder = folder("fault-worlds-covered");
    build(&folder, "recovers", RECOVERS, &["-g"]);
    fs::write(folder.join("world.toml"), RECOVERING_WORLD).expect("written");
    let search = format!("{RECOVERING_SEARCH}[impact]\ncoverage = 1\n");
    fs::write(folder.join("search.toml"), search).expect("written");
    for jobs in ["1", "2"] {
        let out = format!("out-{jobs}");
        let run = ["faults", "run", "search.toml", "--search", "exhaustive"];
        expect(
            everett(&folder)
                .args(run)
                .args(["--jobs", jobs, "--out", &out]),
            0,
        );
        let summary = summary(&folder.join(&out));
        // Without faults, all lines are covered except the three of the recovery and the one for a
        // short input. With faults, two more are: the condition and the return, where the program
        // ends.
        assert_eq!(summary["lines_covered"][1], 11, "{summary}");
        assert_eq!(summary["lines_covered"][0], 9, "{summary}");
        let first = outcome(&summary, "host node function write errno EIO number 1");
        assert_eq!(first["impact"], 2.0, "{summary}");
        let second = outcome(&summary, "host node function write errno EIO number 2");
        assert_eq!(second["impact"], 0.0, "{summary}");
    }
}

#[test]
fn faults_of_a_world_can_be_bound_to_call_sites_and_stacks() {
    let folder = place("faults-world-sites");
    let at = |call: &str| {
        let mut lines = SERVER.lines().zip(1..);
        let line = lines.find(|(line, _)| line.contains(call));
        format!("server.c:{}", line.expect("a line of the server").1)
    };
    let profile = |by: &str| {
        let file = format!("{by}.space");
        let run = [
            "faults",
            "profile",
            "--by",
            by,
            "--out",
            &file,
            "--",
            "world.toml",
        ];
        expect(everett(&folder).args(run), 0);
        fs::read_to_string(folder.join(file)).expect("a space")
    };
    let space = profile("callsite");
    for (call, line) in [
        ("malloc", "malloc("),
        ("write", "write("),
        ("close", "close("),
    ] {
        let axes = format!("function : {{ {call} }} callsite : {{ \"{}\" }}", at(line));
        assert!(space.contains(&axes), "{axes} is not in {space}");
    }
    let stacks = profile("stack");
    let of_open = stacks.lines().find_map(|line| {
        let rest = line.strip_prefix("# stack ")?;
        rest.split_once(": open from ").map(|(stack, _)| stack)
    });
    let stack = of_open.expect("a stack");
    let search_file = format!(
        "space = \"\"\"\nfunction : {{ open }} callsite : {{ put, main, \"{}\", \"{}\" }} errno : {{ EMFILE }} \
         number : {{ 2 }} ;\nfunction : {{ open }} stack : {{ \"{stack}\", \"0123456789abcdef\" }} errno : {{ EMFILE }} \
         number : {{ 2 }} ;\nfunction : {{ malloc, close }} callsite : {{ put }} number : {{ 1 }} ;\n\
         host : {{ server }} fault : {{ lost }} number : {{ 1 }} and function : {{ close }} callsite : {{ put }} \
         number : {{ 1 }} ;\n\"\"\"\ninjector = \"model\"\nscenario = \"world.toml\"\n",
        at("open("),
        at("write(")
    );
    fs::write(folder.join("search.toml"), search_file).expect("written");
    let all = search(
        &folder,
        "sites",
        &["--search", "exhaustive", "--explore", "1"],
    );
    assert_eq!(all["scenarios_run"], 9, "{all}");
    for (site, happens) in [
        ("callsite put".to_owned(), true),
        ("callsite main".to_owned(), true),
        (format!("callsite {}", at("open(")), true),
        (format!("callsite {}", at("write(")), false),
        (format!("stack {stack}"), true),
        ("stack 0123456789abcdef".to_owned(), false),
    ] {
        let one = format!("function open {site} errno EMFILE number 2");
        let one = outcome(&all, &one);
        assert_eq!(one["injected"], happens, "{one}");
        assert_eq!(one["outcome"] == "crashed", happens, "{one}");
    }
    // The frame that calls a function without frame pointer is on the stack, too.
    for call in ["malloc", "close"] {
        let one = format!("function {call} callsite put number 1");
        let one = outcome(&all, &one);
        let frame = one["stack"][1].to_string();
        assert!(
            frame.contains("in put at") && frame.contains("server.c:"),
            "{one}"
        );
    }
    // An exploration has the same fault.
    let explored = &all["explored"][0];
    assert_eq!(explored["complete"], true, "{explored}");
    assert_eq!(
        explored["findings"][0]["kind"], "null-pointer",
        "{explored}"
    );
}
