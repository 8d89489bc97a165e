//! Commands on worlds besides exploration: native runs without a trace, replay, stepping, tests.

use crate::common::{build, count, everett, expect, folder, summary, text};
use std::fs;
use std::path::{Path, PathBuf};

/// Copies an example with its programs, for a test.
fn example(name: &str, test: &str, programs: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = folder(&format!("world_commands_{test}"));
    for entry in fs::read_dir(root.join("examples").join(name)).expect("an example") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, folder.join(path.file_name().expect("a name"))).expect("a copy");
    }
    for program in programs {
        let mut command = everett(&folder);
        command
            .args(["cc", "-g", "-O1", "-I"])
            .arg(root.join("include"));
        expect(command.args(["-o", program, &format!("{program}.c")]), 0);
    }
    folder
}

fn said(folder: &Path, args: &[&str], code: i32) -> String {
    text(&expect(everett(folder).args(args), code))
}

#[test]
fn worlds_run_natively_with_random_faults() {
    let folder = example("deadlock", "native", &["client", "server"]);
    let runs = |out: &str, seed: &str| {
        let args = [
            "native",
            "scenario.toml",
            "--runs",
            "150",
            "--seed",
            seed,
            "--out",
            out,
        ];
        said(&folder, &args, 1);
        summary(&folder.join(out))
    };
    let first = runs("native", "7");
    let again = runs("again", "7");
    assert_eq!(
        first["ends"], again["ends"],
        "the same seeds are the same runs"
    );
    let ends = first["ends"].as_array().expect("ends");
    assert!(
        ends.len() >= 2,
        "some lose a packet, others do not: {ends:?}"
    );
    let found = |end: &&serde_json::Value| end["finding"] == "findings/0001";
    let found = ends.iter().find(found).expect("a finding");
    let end = found["end"].as_str().expect("an end");
    assert!(end.starts_with("host client: deadlock: "), "{end}");
    // The finding is reproduced, natively and in the bitcode.
    said(&folder, &["replay", "native"], 0);
    said(&folder, &["follow", "native"], 0);
    for file in [
        "finding.txt",
        "messages.txt",
        "messages.svg",
        "client.pcap",
        "server.pcap",
    ] {
        let path = folder.join("native/findings/0001").join(file);
        assert!(
            fs::metadata(&path).is_ok_and(|file| file.len() > 0),
            "{}",
            path.display()
        );
    }
    // One run with the seed of the finding ends the same; one with faults that cannot happen ends
    // well.
    let seed = found["seed"].to_string();
    let one = said(&folder, &["native", "--seed", &seed, "scenario.toml"], 1);
    assert!(one.contains("host client: deadlock"), "{one}");
    let args = [
        "native",
        "--seed",
        &seed,
        "--set",
        "fault.lost.most=0",
        "scenario.toml",
    ];
    said(&folder, &args, 0);
}

#[test]
fn random_packets_are_printable_where_they_have_to_be() {
    let folder = example("fragile-parser", "printable", &["client", "server"]);
    let printable = "fault.anything.printable=true";
    let args = [
        "native", "--runs", "20", "--out", "native", "--set", printable,
    ];
    let output = everett(&folder)
        .args(args)
        .args(["--set", "host.server.expect=exit 0", "scenario.toml"])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let world = fs::read(folder.join("native/findings/0001/finding.world")).expect("a finding");
    let world: serde_json::Value = serde_json::from_slice(&world).expect("JSON");
    let inputs = world["hosts"]["server"]["inputs"]
        .as_array()
        .expect("inputs");
    assert_eq!(inputs.len(), 1);
    assert!(inputs[0].to_string().contains("packet"), "{inputs:?}");
    let shown = fs::read_to_string(folder.join("native/findings/0001/messages.txt")).expect("it");
    assert!(shown.contains("may be anything; here \""), "{shown}");
    let first = shown
        .lines()
        .next()
        .and_then(|line| line.split("; here ").nth(1));
    assert!(first.is_some_and(|bytes| !bytes.contains("\\x")), "{shown}");
    said(&folder, &["replay", "native"], 0);
}

#[test]
fn replays_of_worlds_are_looked_at() {
    let folder = example(
        "two-phase-commit",
        "looked_at",
        &["coordinator", "committer", "committer-fixed"],
    );
    said(&folder, &["run", "--out", "out", "scenario.toml"], 1);
    let finding = "out/findings/0001";
    let times = said(&folder, &["replay", finding, "--times", "50"], 0);
    assert!(times.contains("50 runs, 0 with another log"), "{times}");
    let strace = said(&folder, &["replay", finding, "--strace"], 0);
    for host in ["coordinator", "committer0", "committer1"] {
        assert!(strace.contains(&format!("1 {host} 0.0")), "{strace}");
    }
    let strace = said(&folder, &["strace", finding], 0);
    assert!(
        strace.contains("committer1 0.0") && strace.contains(" sendto("),
        "{strace}"
    );
    said(&folder, &["replay", finding, "--pcap", "seen.pcap"], 0);
    let (sent, seen) = ("coordinator.pcap", "seen-coordinator.pcap");
    let explored = fs::read(folder.join(finding).join(sent)).expect("a capture of the search");
    let native = fs::read(folder.join(seen)).expect("a capture of the replay");
    assert!(explored == native, "the same packets at the same times");
    // With fixed committers, all hosts decide the same.
    let mended = ["replay", finding, "--on", "committer=./committer-fixed"];
    assert!(said(&folder, &mended, 1).contains("not-reproduced"));
    let unknown = said(
        &folder,
        &["replay", finding, "--on", "nobody=./committer"],
        2,
    );
    assert!(
        unknown.contains("there are: coordinator, committer0, committer1"),
        "{unknown}"
    );
    let debugged = expect(
        everett(&folder)
            .env("EVERETT_GDB", "echo")
            .args(["replay", finding, "--gdb=committer1:4"]),
        0,
    );
    let debugged = text(&debugged);
    assert!(
        debugged.contains("stands still") && debugged.contains("/committer"),
        "{debugged}"
    );
}

#[test]
fn worlds_are_confirmed_and_tested() {
    let folder = example(
        "deadlock",
        "tested",
        &["client", "server", "client-fixed", "server-fixed"],
    );
    said(
        &folder,
        &[
            "run",
            "--no-confirm",
            "--all-tests",
            "--out",
            "out",
            "scenario.toml",
        ],
        1,
    );
    assert!(summary(&folder.join("out"))["findings"][0]["confirmed"].is_null());
    said(&folder, &["confirm", "--tests", "out"], 0);
    assert_eq!(
        summary(&folder.join("out"))["findings"][0]["confirmed"],
        "confirmed"
    );
    let tested = said(&folder, &["test", "out", "--junit", "results.xml"], 0);
    assert!(
        tested.contains(" 0 failed, 0 diverged, 0 skipped"),
        "{tested}"
    );
    let junit = fs::read_to_string(folder.join("results.xml")).expect("results");
    assert!(junit.contains("finding.world"), "{junit}");
    let tested = said(&folder, &["test", "--fixed", "out/findings"], 1);
    assert!(tested.contains("it still happens"), "{tested}");
    let mended = [
        "--on",
        "client=./client-fixed",
        "--on",
        "server=./server-fixed",
    ];
    let args = [&["test", "--fixed", "out/findings"][..], &mended].concat();
    said(&folder, &args, 0);
}

/// Returns the world of a run in which no fault happened.
fn usual_world(tests: &Path) -> PathBuf {
    let mut worlds: Vec<PathBuf> = fs::read_dir(tests)
        .expect("tests")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "world")
        })
        .collect();
    worlds.sort();
    let is_usual = |path: &PathBuf| {
        let text = fs::read(path).expect("a trace");
        let world: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let hosts = world["hosts"].as_object().expect("hosts");
        let mut choices = hosts.values().flat_map(|host| host["choices"].as_array());
        choices.all(|all| all.iter().all(|choice| choice["picked"] == 0))
    };
    worlds.into_iter().find(is_usual).expect("a usual world")
}

/// Returns whether this machine permits network namespaces.
fn has_namespaces() -> bool {
    let name = format!("everett-probe-{}", std::process::id());
    let netns = |what: &str| {
        let mut command = std::process::Command::new("ip");
        let output = command.args(["netns", what, &name]).output();
        output.is_ok_and(|output| output.status.success())
    };
    netns("add") && netns("delete")
}

#[test]
fn worlds_become_scripts_for_network_namespaces_and_distributed_tests() {
    let folder = example("deadlock", "exported", &["client", "server"]);
    let args = [
        "run",
        "--all-tests",
        "--dtest",
        "--out",
        "out",
        "scenario.toml",
    ];
    said(&folder, &args, 1);
    let dtest = fs::read_to_string(folder.join("out/findings/0001/finding.dtest")).expect("it");
    assert!(
        dtest.contains("<node filename=\"finding-client.ktest\" hostname=\"client\""),
        "{dtest}"
    );
    assert!(
        folder
            .join("out/findings/0001/finding-client.ktest")
            .exists()
    );
    // A distributed test is replayed: only its inputs, without the losses.
    let world = usual_world(&folder.join("out/tests")).with_extension("dtest");
    let replay = everett(&folder).arg("replay").arg(&world).output();
    let replayed = text(&replay.expect("it starts"));
    assert!(replayed.contains("1 of 1 worlds confirmed"), "{replayed}");
    // A script for the finding names what is lost; one for a world without faults runs on the
    // machine's real network.
    let script = said(&folder, &["export", "netns", "out/findings/0001"], 0);
    assert!(
        script.contains("# Datagram 1 from client to port 7000 of server is dropped"),
        "{script}"
    );
    let world = usual_world(&folder.join("out/tests"));
    let export = ["export", "netns", "--out", "world.sh"];
    expect(everett(&folder).args(export).arg(&world), 0);
    // The client sends once: the server is bound to port 7000 (1B58) by then, on any machine.
    let script = fs::read_to_string(folder.join("world.sh")).expect("a script");
    assert!(script.contains("sleep 0.3\n"), "{script}");
    let bound = "tries=0\nuntil grep -q ':1B58 ' /proc/$!/net/udp 2> /dev/null || [ $tries -ge 600 ]; do\n\
                 sleep 0.1\ntries=$((tries + 1))\ndone\n";
    let script = script.replacen("sleep 0.3\n", bound, 1);
    fs::write(folder.join("world.sh"), script).expect("written");
    expect(
        std::process::Command::new("sh")
            .args(["-n", "world.sh"])
            .current_dir(&folder),
        0,
    );
    if !has_namespaces() {
        eprintln!(
            "network namespaces cannot be made here (root and iproute2 are needed): the script is not run"
        );
        return;
    }
    let mut shell = std::process::Command::new("sh");
    let output = shell
        .arg("world.sh")
        .current_dir(&folder)
        .output()
        .expect("a shell");
    let seen = text(&output);
    assert_eq!(output.status.code(), Some(0), "{seen}");
    assert!(
        seen.contains("client: answered") && seen.contains("server: confirmed"),
        "{seen}"
    );
}

/// A host with two processes, one of which executes another program that dies for some input.
const STARTER: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char byte = 0;
  int status;
  if (read(0, &byte, 1) != 1)
    return 9;
  if (fork() == 0) {
    char text[] = {byte, 0};
    execl("tools/judge", "judge", text, (char *)0);
    _exit(8);
  }
  wait(&status);
  printf("%s %d\n", argv[1], WIFSIGNALED(status));
  return 0;
}
"#;
const JUDGE: &str = r#"
int main(int argc, char **argv) {
  static int *volatile nowhere;
  if (argv[1][0] == 'x')
    *nowhere = 1;
  return 0;
}
"#;
const SEVERAL: &str = r#"
[host.machine]
program = "./starter"
args = ["first"]
stdin = "a"
programs = { "tools/judge" = "./judge" }
process.second = { program = "./starter", args = ["second"], stdin = { symbolic = 1 } }
"#;

#[test]
fn hosts_with_several_programs_are_exported() {
    let folder = folder("exporting-several");
    build(&folder, "starter", STARTER, &["-g"]);
    build(&folder, "judge", JUDGE, &["-g"]);
    fs::write(folder.join("several.toml"), SEVERAL).expect("a scenario");
    said(&folder, &["run", "--out", "out", "several.toml"], 1);
    let export = [
        "export",
        "netns",
        "--out",
        "several.sh",
        "out/findings/0001",
    ];
    said(&folder, &export, 0);
    let script = fs::read_to_string(folder.join("several.sh")).expect("a script");
    assert!(script.contains("/judge' 'tools/judge'"), "{script}");
    if has_namespaces() {
        let mut shell = std::process::Command::new("sh");
        let output = shell.arg("several.sh").current_dir(&folder).output();
        let seen = text(&output.expect("a shell"));
        assert!(seen.contains("machine: first 0"), "{seen}");
        assert!(seen.contains("machine: second 1"), "{seen}");
    }
    // The same with one program, without a network.
    let words = ["run", "--out", "one", "--program", "tools/judge=judge"];
    let command = ["./starter", "one", "--sym-stdin", "1"];
    said(&folder, &[&words[..], &command].concat(), 1);
    said(
        &folder,
        &["export", "--out", "one.sh", "one/findings/0001"],
        0,
    );
    let mut shell = std::process::Command::new("sh");
    let output = shell.arg("one.sh").current_dir(&folder).output();
    let seen = text(&output.expect("a shell"));
    assert!(seen.contains("one 1"), "{seen}");
    // A path that the program does not use.
    let words = ["run", "--out", "far", "--program", "/opt/judge=judge"];
    said(&folder, &[&words[..], &["./starter", "far"]].concat(), 0);
    let refused = said(&folder, &["export", "far/tests/000001.trace"], 2);
    assert!(refused.contains("it executes /opt/judge"), "{refused}");
}

#[test]
fn worlds_are_made_simpler() {
    let folder = example("raft", "shrink", &["raft"]);
    let more = [
        "--set",
        "fault.again.most=2",
        "--set",
        "fault.power.most=2",
        "scenario.toml",
    ];
    let run = |options: &[&str]| said(&folder, &[&["run"], options, &more].concat(), 1);
    run(&["--no-shrink", "--out", "long"]);
    let shrunk = said(&folder, &["shrink", "long/findings/0001"], 0);
    // More than one duplicated message, or more than one restart that loses a file; one of each is
    // enough.
    assert!(!shrunk.contains("before: 3 choices"), "{shrunk}");
    assert!(shrunk.contains("after:  3 choices"), "{shrunk}");
    assert!(
        folder
            .join("long/findings/0001/finding.original.world")
            .exists()
    );
    said(&folder, &["replay", "long/findings/0001"], 0);
    run(&["--out", "short"]);
    let again = said(&folder, &["shrink", "short/findings/0001"], 0);
    assert!(again.contains("nothing simpler"), "{again}");
}

#[test]
fn tests_are_written_while_the_search_goes_on() {
    let folder = example("echo", "streamed", &["client", "server"]);
    let run = |out: &str, limits: &[&str]| {
        let mut args = vec!["run", "-q", "--all-tests", "--out", out, "losses.toml"];
        args.extend(limits);
        said(&folder, &args, 0);
        let summary = summary(&folder.join(out));
        let tests = fs::read_dir(folder.join(out).join("tests"));
        let tests = tests.map_or(0, |tests| tests.count() as u64);
        assert_eq!(summary["tests"], tests);
        assert_eq!(summary["worlds"], tests);
        (summary["complete"] == true, tests)
    };
    let (is_complete, all) = run("all", &[]);
    assert!(is_complete);
    // Worlds that had ended when the search stopped are reported, others are not.
    let (is_complete, some) = run("some", &["--max-forks", "100"]);
    assert!(!is_complete && some > 0 && some < all, "{some} of {all}");
    said(&folder, &["follow", "some"], 0);
}

/// Prints what hosts draw from the kernel, and ends badly for some of it.
const DRAW: &str = r#"
#include <stdio.h>
#include <sys/random.h>

int main(void) {
    unsigned char bytes[8];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return 2;
    for (unsigned at = 0; at < sizeof bytes; at++)
        printf("%02x", bytes[at]);
    printf("\n");
    return bytes[0] % 4 == 0;
}
"#;

#[test]
fn native_hosts_draw_random_bytes_by_the_seed() {
    let folder = folder("world_commands_random");
    build(&folder, "draw", DRAW, &["-g", "-O1"]);
    let scenario =
        "[defaults]\nprogram = \"./draw\"\nexpect = \"exit 0\"\n[host.one]\n[host.two]\n";
    fs::write(folder.join("world.toml"), scenario).expect("it can be written");
    let drawn = |seed: &str| {
        let mut native = everett(&folder);
        let output = native.args(["native", "--seed", seed, "world.toml"]);
        let output = output.output().expect("it runs");
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let bytes = |host: &str| {
            let mut lines = output.lines();
            let line = lines
                .find_map(|line| line.strip_prefix(host))
                .map(str::to_owned);
            line.unwrap_or_else(|| panic!("{host} draws nothing: {output}"))
        };
        [bytes("one: "), bytes("two: ")]
    };
    let [one, two] = drawn("1");
    assert_eq!(
        drawn("1"),
        [one.clone(), two.clone()],
        "the same seed is the same run"
    );
    assert_ne!(one, two, "hosts draw others");
    assert_ne!(drawn("2")[0], one, "other seeds draw others");
    assert_ne!(one, "0".repeat(16));
    // What fails for some of them is reproduced, natively and in the bitcode.
    let many = ["native", "world.toml", "--runs", "12", "--out", "native"];
    said(&folder, &many, 1);
    said(&folder, &["replay", "native"], 0);
    said(&folder, &["follow", "native"], 0);
}

#[test]
fn searchers_bring_worlds_to_their_end_where_there_is_too_much_to_explore() {
    let folder = example("echo", "searchers", &["client", "server"]);
    let worlds = |searcher: &[&str]| {
        let out = format!("out{}", searcher.len());
        let mut run = everett(&folder);
        run.args([
            "run",
            "--mapping",
            "cow",
            "--max-forks",
            "200",
            "--out",
            &out,
        ]);
        run.args(["--set", "host.client.count=5"]).args(searcher);
        expect(run.arg("losses.toml"), 0);
        let summary = summary(&folder.join(out));
        assert_eq!(summary["limits_hit"][0], "max-forks");
        summary["worlds"].as_u64().expect("a number")
    };
    assert_eq!(worlds(&[]), 0, "all of them go on side by side");
    assert!(worlds(&["--search", "dfs"]) > 0);
}

#[test]
fn worlds_take_the_options_of_programs() {
    const SOURCE: &str = r#"
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        int main(int argc, char **argv) {
            char *volatile lost = malloc(argc == 2 ? 24 : 1);
            FILE *file = fopen("/left", "w");
            fputs(argv[1], file);
            fclose(file);
            if (argv[1][0] == 'x') abort();
            lost = 0;
            return 0;
        }"#;
    const WORLD: &str = "[host.a]\nprogram = \"./prog\"\nargs = [{ symbolic = 1 }]\n\
                         [host.b]\nprogram = \"./prog\"\nargs = [\"fixed\"]\n";
    let folder = folder("world_commands_options");
    build(&folder, "prog", SOURCE, &["-g", "-O0"]);
    fs::write(folder.join("world.toml"), WORLD).expect("written");
    let run = |out: &str, options: &[&str], code: i32| {
        let mut command = everett(&folder);
        command.args(["run", "--out", out]).args(options);
        expect(command.arg("world.toml"), code);
        summary(&folder.join(out))
    };
    // By default, tests with new coverage are written; all of them follow and replay.
    let new = run("new", &[], 1);
    assert!(count(&new, "/tests") >= 1, "{new}");
    said(&folder, &["follow", "new"], 0);
    said(&folder, &["replay", "new"], 0);
    let none = run("none", &["--no-tests"], 1);
    assert_eq!(count(&none, "/tests"), 0, "{none}");
    assert!(!folder.join("none/tests").join("000001.world").exists());
    let all = run("all", &["--all-tests"], 1);
    assert!(count(&all, "/tests") >= count(&new, "/tests"), "{all}");
    // Leaks of both hosts are findings, and happen natively.
    let leaks = run("leaks", &["--check-leaks"], 1);
    let findings = leaks["findings"].as_array().expect("findings");
    let leaking = findings.iter().filter(|one| one["kind"] == "leak");
    let hosts: Vec<&str> = leaking.filter_map(|one| one["host"].as_str()).collect();
    assert!(hosts.contains(&"a") && hosts.contains(&"b"), "{leaks:#}");
    let confirmed = |one: &serde_json::Value| one["confirmed"] == "confirmed";
    assert!(findings.iter().all(confirmed), "{leaks:#}");
    // Files that hosts leave behind are next to their tests.
    run("files", &["--all-tests", "--save-fs"], 1);
    let files = walk(&folder.join("files/tests"));
    let left = |path: &PathBuf| path.ends_with("left");
    assert!(files.iter().any(left), "{files:?}");
}

#[test]
fn a_simpler_world_draws_the_same_random_bytes() {
    const SOURCE: &str = r#"
        #include <sys/random.h>
        int main(int argc, char **argv) {
            unsigned char drawn[8], odd = 0;
            if (getrandom(drawn, 8, 0) != 8 || argv[1][0] == 'y') return 0;
            for (int at = 0; at < 8; at++) odd += drawn[at] > 64;
            return odd == 8 ? 3 : 0;
        }"#;
    let folder = folder("world_commands_drawn");
    build(&folder, "prog", SOURCE, &["-g", "-O0"]);
    let world = "[host.a]\nprogram = \"./prog\"\nargs = [{ symbolic = 6 }]\nexpect = \"exit 0\"\n";
    fs::write(folder.join("world.toml"), world).expect("written");
    let many = ["native", "world.toml", "--runs", "200", "--out", "native"];
    said(&folder, &many, 1);
    let shrunk = said(&folder, &["shrink", "native/findings/0001"], 0);
    assert!(shrunk.contains("after:  0 choices"), "{shrunk}");
    said(&folder, &["replay", "native/findings/0001"], 0);
    said(&folder, &["follow", "native/findings/0001"], 0);
}

#[test]
fn the_command_line_stands_above_the_scenario() {
    const SOURCE: &str = r#"
        #include <stdio.h>
        #include <sys/random.h>
        int main(int argc, char **argv) {
            unsigned char drawn;
            if (argv[1][0] == 'x') puts("x");
            return getrandom(&drawn, 1, 0) == 1 ? drawn : 1;
        }"#;
    let folder = folder("world_commands_above");
    build(&folder, "prog", SOURCE, &["-g", "-O0"]);
    let host = "[host.a]\nprogram = \"./prog\"\nargs = [{ symbolic = 1 }]\n";
    let said = "[limits]\nmemory = 1\npaths = 1\nvirtual_time = \"1ns\"\n[search]\nseed = 5\nmapping = \"cob\"\n";
    fs::write(folder.join("plain.toml"), host).expect("written");
    fs::write(folder.join("said.toml"), format!("{host}{said}")).expect("written");
    let run = |out: &str, options: &[&str], scenario: &str| {
        let mut command = everett(&folder);
        command.args(["run", "--json", "--all-tests", "--out", out]);
        let output = expect(command.args(options).arg(scenario), 0);
        let last = String::from_utf8(output.stdout).expect("UTF-8");
        let last = last.lines().last().expect("an event");
        let last: serde_json::Value = serde_json::from_str(last).expect("JSON");
        assert_eq!(last["event"], "end", "{last}");
        let written = summary(&folder.join(out));
        assert_eq!(last["summary"], written, "the last event has the summary");
        written
    };
    let drawn = |out: &str| {
        let path = folder.join(out).join("tests/000001.world");
        let world = fs::read(path).expect("a world");
        let world: serde_json::Value = serde_json::from_slice(&world).expect("JSON");
        world["hosts"]["a"]["end"]["exit"].clone()
    };
    let plain = run("plain", &[], "plain.toml");
    assert_eq!(plain["mapping"], "sds");
    let above = [
        "--max-memory=4G",
        "--max-paths=9",
        "--max-virtual-time=1h",
        "--seed=0",
        "--mapping=sds",
    ];
    let flags = run("flags", &above, "said.toml");
    for name in ["complete", "stopped", "mapping", "worlds", "limits_hit"] {
        assert_eq!(flags[name], plain[name], "{name}: {flags}");
    }
    assert_eq!(plain["complete"], true, "{plain}");
    assert_eq!(drawn("flags"), drawn("plain"), "--seed 0 is a seed");
    run("seed", &["--seed=5"], "plain.toml");
    assert_ne!(drawn("seed"), drawn("plain"), "hosts draw from the seed");
    let scenario = run("scenario", &[], "said.toml");
    assert_eq!(scenario["mapping"], "cob", "{scenario}");
    assert_eq!(scenario["complete"], false, "{scenario}");
    // Follow and replay use the options of the run.
    for command in ["follow", "replay"] {
        expect(everett(&folder).args([command, "flags"]), 0);
        expect(everett(&folder).args([command, "seed"]), 0);
    }
}

/// Returns all files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => walk(&path),
            false => vec![path],
        })
        .collect()
}

#[test]
fn native_worlds_keep_bounds_on_faults() {
    let folder = folder("world_commands_bounds");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = root.join("tests/worlds/bounds/gossip.c");
    let source = fs::read_to_string(source).expect("the program");
    let include = format!("-I{}", root.join("include").display());
    build(&folder, "gossip", &source, &["-g", "-O1", &include]);
    let scenario = r#"
[defaults]
program = "./gossip"
start = "0ms"
[host."h{i}"]
count = 8
args = ["{i}", "8"]
[fault.loss]
[check.one]
text = """
at end invariant oneAtMost() {
  return sys.nodes().count(n => sys.data(n, 0, "heard").int() != 7) <= 1;
}
"""
"#;
    fs::write(folder.join("world.toml"), scenario).expect("it can be written");
    // Each of 56 packets is lost with probability 1/32 where that is possible.
    let runs = ["native", "--runs", "12", "--seed", "1", "world.toml"];
    let causal = ["--set", "fault.loss.per=\"causal\"", "--out", "causal"];
    said(&folder, &[&runs[..], &causal].concat(), 1);
    said(&folder, &[&runs[..], &["--out", "world"]].concat(), 0);
}

#[test]
fn strace_tells_whose_calls_are_not_kept() {
    let folder = folder("world_commands_off");
    let source = "#include <unistd.h>\nint main(void) { sleep(2); write(1, \"a\", 1); }\n";
    build(&folder, "sleeps", source, &[]);
    let strace = |fault: &str| {
        let hosts = "[defaults]\nprogram = \"./sleeps\"\n[host.a]\n[host.b]\n";
        let file = format!("{hosts}[fault.{fault}]\nhosts = [\"b\"]\non = \"time\"\nat = \"1s\"\n");
        fs::write(folder.join("world.toml"), file).expect("it can be written");
        let run = ["run", "--all-tests", "--out", fault, "world.toml"];
        said(&folder, &run, 0);
        let lines = said(&folder, &["strace", fault], 0);
        assert!(
            lines.contains("a 2.0") && lines.contains("b 2.0"),
            "{lines}"
        );
        lines
    };
    let lines = strace("crash");
    let off = "b +++ is off: its calls until then are not kept +++\n";
    assert_eq!(lines.matches("+++").count(), 2, "{lines}");
    assert!(lines.contains(off), "{lines}");
    let lines = strace("restart");
    let again = "b +++ was started again: its calls until then are not kept +++\nb ";
    assert!(lines.contains(again), "{lines}");
}

/// Under COB no world shares a state with another, so several workers repeat nothing.
#[test]
fn worlds_that_share_no_states_use_all_processors() {
    let folder = example("echo", "workers-of-worlds", &["server", "client"]);
    let counts = |mapping: &str, workers: &str| {
        let out = format!("{mapping}-{workers}");
        let mut run = everett(&folder);
        run.env("EVERETT_WORKERS", workers)
            .args(["run", "--no-confirm"]);
        run.args(["--mapping", mapping, "--out", &out, "losses.toml"]);
        expect(run.args(["--set", "host.client.count=2"]), 0);
        let summary = summary(&folder.join(out));
        (summary["worlds"].clone(), summary["states_moved"].is_u64())
    };
    let (worlds, is_team) = counts("cob", "1");
    assert!(!is_team);
    assert_eq!(counts("cob", "2"), (worlds.clone(), true));
    assert_eq!(counts("sds", "2"), (worlds, false));
}

/// A worker that is paused for a checkpoint saves only its own worlds.
#[test]
fn checkpoints_of_several_workers_change_nothing() {
    let folder = folder("worlds-checkpoints");
    let source = r#"
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <stdlib.h>
int main(int count, char **args) {
    int id = atoi(args[1]), socket_ = socket(AF_INET, SOCK_DGRAM, 0), word;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9000)};
    bind(socket_, (void *)&to, sizeof to);
    usleep(50000);
    for (int i = 0; i < 9; i++) {
        to.sin_addr.s_addr = htonl(0x0a000001 + i % 3);
        if (i % 3 != id)
            sendto(socket_, &i, sizeof i, 0, (void *)&to, sizeof to);
    }
    struct timeval wait = {.tv_usec = 300000};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    int got = 0;
    while (recv(socket_, &word, sizeof word, 0) == sizeof word)
        got++;
    return got > 9;
}"#;
    build(&folder, "node", source, &["-w"]);
    let scenario = "[host.node]\ncount = 3\nprogram = \"./node\"\nargs = [\"{i}\"]\n\
                    [fault.loss]\nmost = 2\n[fault.duplication]\n";
    fs::write(folder.join("world.toml"), scenario).expect("written");
    let worlds = |workers: &str, checkpoint: &str| {
        let mut run = everett(&folder);
        run.args([
            "run",
            "--no-tests",
            "--mapping",
            "sds",
            "--workers",
            workers,
        ]);
        run.args(["--checkpoint", checkpoint, "--out", workers]);
        expect(run.arg("world.toml"), 0);
        summary(&folder.join(workers))["worlds"].clone()
    };
    assert_eq!(worlds("2", "0s"), worlds("1", "1h"));
}
