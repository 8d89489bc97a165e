//! `everett faults` on several machines: nodes run the tests of a search over a broker. Here the
//! machines are processes, each with its own copy of the system under test.

use crate::cluster::{CLEAN, Process, start_server, wait_for};
use crate::common::{everett, expect, folder, text};
use crate::postgres::start_postgres;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const INTERRUPTED: i32 = 3;

/// Takes a while, so that a node can be killed in the middle of a test.
const SYSTEM: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int use(char *text) { return text[0] == 'a'; }
int main(int count, char **words) {
  char *first = strdup("a"), *second = strdup("b");
  usleep(20000);
  if (!second)
    return 3;
  return count == 2 && words[1][0] == 'n' ? !use(first) : 0;
}
"#;

const SEARCH: &str = r#"
space = "test : { no, yes } function : { strdup, usleep, close } callNumber : [0,4];"
injector = "preload"
program = "system"
start = "[ -e system ] && echo begun >started"
test = "[ -e started ] && ./system {test}"
cleanup = "rm started"
repetitions = 2
"#;

/// Creates a machine: a folder with the system and the search.
fn machine(folder: &Path, name: &str) -> PathBuf {
    let machine = folder.join(name);
    fs::create_dir_all(&machine).expect("a folder");
    fs::write(machine.join("system.c"), SYSTEM).expect("written");
    fs::write(machine.join("s.toml"), SEARCH).expect("written");
    let mut build = Command::new("cc");
    build.args(["-g", "-w", "-o", "system", "system.c"]);
    expect(build.current_dir(&machine), CLEAN);
    machine
}

fn start_node(machine: &Path, url: &str, name: &str, more: &[&str]) -> Process {
    let mut node = everett(machine);
    node.args(["faults", "node", "s.toml", "--broker", url, "--name", name]);
    node.args(["--jobs", "2", "--lease", "15s"]).args(more);
    let log = fs::File::create(machine.join(format!("{name}.log"))).expect("a log");
    Process(node.stderr(log).spawn().expect("it starts"))
}

fn search(machine: &Path, out: &str, more: &[&str]) -> Value {
    let mut run = everett(machine);
    run.args(["faults", "run", "s.toml", "--out", out, "--seed", "5"]);
    let output = expect(run.args(more), 1);
    let summary = fs::read(machine.join(out).join("summary.json")).expect("a summary");
    let mut summary: Value = serde_json::from_slice(&summary).expect("JSON");
    summary["said"] = text(&output).into();
    summary
}

/// Compares searches by all that does not depend on who ran the tests.
fn expect_same(one: &Value, two: &Value) {
    for field in [
        "results",
        "failures",
        "clusters",
        "sensitivity",
        "other_runs",
        "errors",
        "isolation",
        "cleanup_failures",
    ] {
        assert_eq!(one[field], two[field], "{field}");
    }
}

#[test]
fn nodes_give_the_results_of_local_jobs_and_may_die() {
    let folder = folder("fault-nodes");
    let [own, first, second] = ["own", "first", "second"].map(|name| machine(&folder, name));
    let local = search(&own, "local", &[]);
    assert_eq!(local["scenarios_run"], 30, "{local}");
    assert!(local["crashes"].as_u64() > Some(0), "{local}");
    let (_server, url) = start_server(&folder);
    let both = {
        let _nodes = [("a", &first), ("b", &second)]
            .map(|(name, machine)| start_node(machine, &url, name, &[]));
        search(&own, "both", &["--broker", &url])
    };
    expect_same(&local, &both);
    let said = both["said"].as_str().expect("text");
    assert!(
        said.contains("node a: ") || said.contains("node b: "),
        "{said}"
    );
    // The explorer has its own files, and runs nothing.
    let killed = std::thread::scope(|scope| {
        let searching = scope.spawn(|| search(&own, "killed", &["--broker", &url]));
        let dies = start_node(&first, &url, "dies", &[]);
        wait_for("some results", || {
            let journal = fs::read_to_string(own.join("killed/journal.jsonl")).ok()?;
            (journal.lines().count() > 4).then_some(())
        });
        drop(dies);
        let _lives = start_node(&second, &url, "lives", &[]);
        searching.join().expect("it ends")
    });
    expect_same(&local, &killed);
    let did = |name: &str| killed["nodes"][name].as_u64().unwrap_or(0);
    // The node that was killed may have been faster than we could kill it.
    assert!(did("lives") > 0 || did("dies") >= 30, "{killed}");
    let before = fs::read_dir(&second).expect("a folder").count();
    assert_eq!(before, 5, "a test changed the folder of its node");
}

#[test]
fn nodes_work_over_postgresql() {
    let folder = folder("fault-nodes-postgres");
    let [own, other] = ["own", "other"].map(|name| machine(&folder, name));
    let local = search(&own, "local", &["--runs", "12"]);
    let server = start_postgres(&folder, "fault-nodes");
    let node = start_node(&other, &server.url, "node", &[]);
    let over = search(&own, "over", &["--runs", "12", "--broker", &server.url]);
    expect_same(&local, &over);
    assert!(over["nodes"]["node"].as_u64() >= Some(12), "{over}");
    // Tests and explorations do not meet at the broker.
    let mut status = everett(&own);
    let said = text(&expect(
        status.args(["status", "--broker", &server.url]),
        CLEAN,
    ));
    assert!(!said.contains("jobs"), "{said}");
    drop(node);
}

#[test]
fn nodes_of_another_search_leave_its_tests_to_others() {
    let folder = folder("fault-other-nodes");
    let [own, other] = ["own", "other"].map(|name| machine(&folder, name));
    let changed = SEARCH.replace("[0,4]", "[0,3]");
    fs::write(other.join("s.toml"), changed).expect("written");
    let (_server, url) = start_server(&folder);
    let _other = start_node(&other, &url, "other", &[]);
    let found = std::thread::scope(|scope| {
        let searching = scope.spawn(|| search(&own, "out", &["--broker", &url]));
        wait_for("a refusal", || {
            let log = fs::read_to_string(other.join("other.log")).ok()?;
            log.contains("belongs to another search").then_some(())
        });
        let _node = start_node(&own, &url, "right", &[]);
        searching.join().expect("it ends")
    });
    assert_eq!(found["nodes"].as_object().map(|all| all.len()), Some(1));
    assert_eq!(found["errors"], 0);
}

#[test]
fn a_start_that_fails_on_a_node_is_told() {
    let folder = folder("fault-bad-node");
    let [own, bad] = ["own", "bad"].map(|name| machine(&folder, name));
    fs::remove_file(bad.join("system")).expect("removed");
    let (_server, url) = start_server(&folder);
    let _bad = start_node(&bad, &url, "bad", &[]);
    let mut run = everett(&own);
    run.args(["faults", "run", "s.toml", "--out", "out", "--broker", &url]);
    let said = text(&expect(&mut run, 2));
    assert!(said.contains("`start` fails without any fault"), "{said}");
}

#[test]
fn an_interrupted_search_without_nodes_ends_and_an_idle_node_ends() {
    let folder = folder("fault-no-nodes");
    let own = machine(&folder, "own");
    let (_server, url) = start_server(&folder);
    let mut run = everett(&own);
    run.args(["faults", "run", "s.toml", "--out", "out", "--broker", &url]);
    let mut run = Process(run.spawn().expect("it starts"));
    wait_for("the library", || {
        own.join("out/preload.so").exists().then_some(())
    });
    let id = nix::unistd::Pid::from_raw(run.0.id() as i32);
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).expect("it is interrupted");
    assert_eq!(run.0.wait().expect("it ends").code(), Some(INTERRUPTED));
    let mut node = start_node(&own, &url, "idle", &["--idle", "1s"]);
    assert_eq!(node.0.wait().expect("it ends").code(), Some(CLEAN));
}
