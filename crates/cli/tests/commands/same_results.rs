//! One, two, four and eight workers reach the same paths, worlds, findings and tests: threads of one
//! process, and processes that share a broker.

use crate::cluster::{
    CLEAN, COMMANDS, Paths, Process, Reached, reached, spec, start_server, start_worker,
};
use crate::cluster_worlds::{self, EXAMPLES};
use crate::common::samples::{FORKS, WORDS};
use crate::common::{build, everett, expect, files, folder, is_at_its_end, stop_at, summary};
use crate::teams::FAILING;
use everett::{RunSpec, Session, Silent, explore};
use everett_cluster::{Broker, Secrets, connect, results};
use std::fs;
use std::path::{Path, PathBuf};

const WORKERS: [u64; 4] = [1, 2, 4, 8];
/// The work of a job, so small that programs have several jobs.
const JOB_WORK: &str = "2000";

/// Programs of the benchmarks, with sizes at which they have some hundred paths at most.
const MEASURED: [(&str, &str); 7] = [
    ("02_branch_tree", "-DBITS=6"),
    ("03_branch_tree_dep", "-DBITS=6"),
    ("05_bubble_sort", "-DN=4"),
    ("07_expr_parser", "-DSIZE=4"),
    ("10_linked_list", "-DN=4"),
    ("28_utf8", "-O1"),
    ("29_json", "-O1"),
];
const MAPPINGS: [&str; 3] = ["cob", "sds", "cow"];
/// The example whose states have no symbolic data.
const CONCRETE: &str = "echo";

/// Builds ten programs, and returns the commands to explore.
fn programs(folder: &Path) -> Vec<Vec<&'static str>> {
    build(folder, "forks", FORKS, &[]);
    build(folder, "words", WORDS, &[]);
    build(folder, "failing", FAILING, &[]);
    let mut commands: Vec<Vec<&str>> = COMMANDS.iter().map(|words| words.to_vec()).collect();
    commands.push(vec!["failing"]);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/programs");
    for (name, size) in MEASURED {
        let source = fs::read_to_string(sources.join(format!("{name}.c"))).expect("a program");
        build(folder, name, &source, &[size]);
        commands.push(vec![name]);
    }
    assert_eq!(commands.len(), 10);
    commands
}

/// Returns what a number of threads reach.
fn by_threads(spec: &RunSpec, workers: u64) -> Reached {
    let spec = RunSpec {
        workers: Some(workers),
        ..spec.clone()
    };
    let mut paths = Paths::default();
    explore(&spec, &Session::new(), &mut paths).expect("it can be explored");
    reached(paths, spec.out.as_ref().expect("a folder"))
}

/// Returns the folders of three scenarios, with their programs.
fn scenarios(name: &str) -> Vec<PathBuf> {
    let folders = EXAMPLES.iter().map(|example| {
        let folder = folder(&format!("{name}-{}", example.folder));
        example.build(&folder);
        folder
    });
    folders.collect()
}

#[test]
fn threads_reach_the_same_paths() {
    let folder = folder("same-threads");
    for command in programs(&folder) {
        let spec = |workers| spec(&folder, &format!("{}-{workers}", command[0]), &command);
        let one = by_threads(&spec(1), 1);
        assert!(one.paths.len() > 5, "{command:?}");
        for workers in &WORKERS[1..] {
            let many = by_threads(&spec(*workers), *workers);
            assert_eq!(many, one, "{command:?}, {workers} threads");
        }
    }
}

#[test]
fn threads_reach_the_same_worlds() {
    let folders = scenarios("same-threads");
    for ((example, folder), mapping) in EXAMPLES.iter().zip(&folders).zip(MAPPINGS) {
        let reach = |workers: u64| {
            let name = format!("by-{workers}");
            let spec = RunSpec {
                workers: Some(workers),
                batch: Some(500),
                ..example.spec(folder, &name, mapping)
            };
            explore(&spec, &Session::new(), &mut Silent).expect("it can be explored");
            let dir = folder.join(name);
            if example.folder == CONCRETE {
                let share = summary(&dir)["team"]["replay_share"].as_f64();
                assert_eq!(share, Some(0.0), "states moved without being run again");
            }
            cluster_worlds::reached(&dir)
        };
        let one = reach(1);
        for workers in &WORKERS[1..] {
            assert_eq!(reach(*workers), one, "{mapping}, {workers} threads");
        }
    }
}

/// Submits a run by the command, with the options of [`spec`].
fn submit(folder: &Path, url: &str, out: &str, words: &[&str]) {
    let mut submit = everett(folder);
    submit.args(["submit", "--broker", url, "--job-work", JOB_WORK]);
    submit.args(["--all-tests", "--no-confirm", "--batch", "50"]);
    expect(submit.args(["--out", out]).args(words), CLEAN);
}

/// Waits for the end of a run.
fn watch(folder: &Path, url: &str, out: &str) {
    let mut watch = everett(folder);
    expect(
        watch.args(["watch", "--quiet", out, "--broker", url]),
        CLEAN,
    );
}

#[test]
fn processes_reach_the_same_paths_and_worlds() {
    let folder = folder("same-processes");
    let (_up, url) = start_server(&folder);
    let commands = programs(&folder);
    let worlds = scenarios("same-processes");
    let whole: Vec<Reached> = commands
        .iter()
        .map(|command| by_threads(&spec(&folder, &format!("{}-whole", command[0]), command), 1))
        .collect();
    let mut broker: Box<dyn Broker> =
        connect(&url, &Secrets::default(), None).expect("a connection");
    let mut processes: Vec<Process> = Vec::new();
    for workers in WORKERS {
        let out = format!("by-{workers}");
        for command in &commands {
            let program = format!("./{}", command[0]);
            let words: Vec<&str> = [&[&*program], &command[1..]].concat();
            submit(&folder, &url, &format!("{}-{out}", command[0]), &words);
        }
        for ((example, folder), mapping) in EXAMPLES.iter().zip(&worlds).zip(MAPPINGS) {
            let sets = example
                .settings
                .iter()
                .map(|(key, value)| format!("{key}={value}"));
            let sets: Vec<String> = sets.collect();
            let mut words = vec!["--no-shrink", "--mapping", mapping];
            words.extend(sets.iter().flat_map(|set| ["--set", &**set]));
            words.push(example.file);
            submit(folder, &url, &out, &words);
        }
        while (processes.len() as u64) < workers {
            let name = format!("worker-{}", processes.len());
            processes.push(start_worker(&folder, &url, &name));
        }
        for (command, whole) in commands.iter().zip(&whole) {
            let dir = folder.join(format!("{}-{out}", command[0]));
            watch(&folder, &url, &dir.to_string_lossy());
            let mut paths = Paths::default();
            results(&mut *broker, &dir, &Session::new(), &mut paths).expect("results");
            assert_eq!(
                reached(paths, &dir),
                *whole,
                "{command:?}, {workers} processes"
            );
        }
        for ((example, folder), mapping) in EXAMPLES.iter().zip(&worlds).zip(MAPPINGS) {
            watch(folder, &url, &out);
            let dir = folder.join(&out);
            results(&mut *broker, &dir, &Session::new(), &mut Silent).expect("results");
            let whole = folder.join("whole");
            if !whole.exists() {
                let spec = example.spec(folder, "whole", mapping);
                explore(&spec, &Session::new(), &mut Silent).expect("it can be explored");
            }
            let [by, whole] = [&dir, &whole].map(|dir| cluster_worlds::reached(dir));
            assert_eq!(by, whole, "{mapping}, {workers} processes");
        }
    }
}

/// A run of a scenario with a finding is killed at twenty moments, and resumed each time.
#[test]
fn a_run_that_is_killed_twenty_times_reaches_the_same_worlds_findings_and_tests() {
    const KILLS: usize = 20;
    let example = EXAMPLES.iter().find(|example| example.folder == "raft");
    let example = example.expect("an example");
    let folder = folder("killed-raft");
    example.build(&folder);
    let run = |out: &str| {
        let mut run = everett(&folder);
        run.args(["run", "--all-tests", "--no-confirm", "--checkpoint", "0s"]);
        run.args(["--workers", "1", "--out", out, example.file]);
        run
    };
    expect(&mut run("whole"), 1);
    let (whole, out) = (folder.join("whole"), folder.join("killed"));
    let tests = |out: &Path| -> Vec<Vec<u8>> {
        let mut tests: Vec<_> = files(&out.join("tests")).into_values().collect();
        tests.sort_unstable();
        tests
    };
    let all = tests(&whole);
    assert!(all.len() > KILLS, "{} tests", all.len());
    let mut command = run("killed");
    for kill in 0..KILLS {
        let enough = (all.len() * kill / KILLS).max(1);
        stop_at(&mut command, "KILL", &out.join("tests"), enough);
        command = everett(&folder);
        command.arg("resume").arg(&out);
    }
    if !is_at_its_end(&out) {
        expect(&mut command, 1);
    }
    assert!(tests(&out) == all);
    assert!(cluster_worlds::reached(&out) == cluster_worlds::reached(&whole));
    let (of_whole, of_killed) = (summary(&whole), summary(&out));
    for key in ["worlds", "states_total", "tests", "complete"] {
        assert_eq!(of_whole[key], of_killed[key], "{key}");
    }
}
