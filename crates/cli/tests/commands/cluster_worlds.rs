//! Worlds on several machines are the same as on one machine: with any number of workers, under
//! every state mapping, whichever workers die, and whatever messages are late or duplicated.

use crate::cluster::{
    CLEAN, FINDINGS, Slot, Trouble, simulate, start_server, start_worker, status_of, submitted,
    test_build, wait_for,
};
use crate::common::{
    build, check_weights, count, everett, expect, files, folder, mappings, summary, text,
};
use everett::{RunSpec, Session, Silent, States, explore};
use everett_cluster::{
    Broker, Error, Hash, Key, Kind, Outcome, RunId, SharedMemory, Submission, Ticket, cancel,
    pack_states, results, status, submit, unpack_states,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A scenario of an example, its programs, and overridden keys.
pub(crate) struct Example {
    pub(crate) folder: &'static str,
    pub(crate) file: &'static str,
    programs: &'static [&'static str],
    pub(crate) settings: &'static [(&'static str, &'static str)],
}

/// One example with losses, one with findings, and one with several hosts, duplicated messages,
/// restarts and a finding.
pub(crate) const EXAMPLES: [Example; 3] = [
    Example {
        folder: "echo",
        file: "losses.toml",
        programs: &["server", "client"],
        settings: &[("host.client.count", "2")],
    },
    Example {
        folder: "two-phase-commit",
        file: "scenario.toml",
        programs: &["coordinator", "committer"],
        settings: &[],
    },
    Example {
        folder: "raft",
        file: "scenario.toml",
        programs: &["raft"],
        settings: &[],
    },
];

impl Example {
    /// Copies the example, and builds its programs.
    pub(crate) fn build(&self, into: &Path) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        for (name, bytes) in files(&from.join(self.folder)) {
            let to = into.join(name);
            fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            fs::write(to, bytes).expect("it can be written");
        }
        for program in self.programs {
            let source = format!("{program}.c");
            let flags = ["cc", "-g", "-O1", &source, "-o", program];
            expect(everett(into).args(flags), CLEAN);
        }
    }

    pub(crate) fn spec(&self, folder: &Path, name: &str, mapping: &str) -> RunSpec {
        let settings = self.settings.iter();
        RunSpec {
            all_tests: true,
            no_confirm: true,
            no_shrink: true,
            mapping: Some(mapping.to_owned()),
            settings: settings
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            out: Some(folder.join(name)),
            ..RunSpec::new([folder.join(self.file)])
        }
    }
}

/// The results that do not depend on who explored what.
#[derive(PartialEq, Debug)]
pub(crate) struct Reached {
    worlds: BTreeMap<String, usize>,
    findings: Vec<String>,
    figures: Vec<Value>,
}

/// Returns the choices in the worlds of a run and how hosts end in them, with the number of equal
/// worlds.
fn worlds(out: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for bytes in files(&out.join("tests")).into_values() {
        let world: Value = serde_json::from_slice(&bytes).expect("a world");
        let hosts = world["hosts"].as_object().expect("hosts").iter();
        let told = hosts
            .map(|(name, trace)| format!("{name}: {} {}", trace["choices"], trace["end"]["exit"]));
        let told = told.collect::<Vec<_>>().join("\n");
        *counts.entry(told).or_default() += 1;
    }
    counts
}

pub(crate) fn reached(out: &Path) -> Reached {
    let summary = summary(out);
    assert_eq!(summary["complete"], true, "{summary:#}");
    check_weights(&summary);
    let findings = summary["findings"].as_array().expect("a list").iter();
    let fields = ["kind", "file", "line", "function", "host", "message"];
    let told = |finding: &Value| fields.map(|name| finding[name].to_string()).join(" ");
    let mut findings: Vec<String> = findings.map(told).collect();
    findings.sort();
    let figures = [
        "weight",
        "worlds",
        "worlds_stalled",
        "worlds_deadlocked",
        "tests",
        "coverage",
        "faults_never_fired",
        "stopped",
        "limits_hit",
        "warnings",
    ];
    Reached {
        worlds: worlds(out),
        findings,
        figures: figures.map(|name| summary[name].clone()).to_vec(),
    }
}

/// Returns what `everett run` reaches.
fn whole(example: &Example, folder: &Path, mapping: &str) -> Reached {
    let name = format!("whole-{mapping}");
    let spec = example.spec(folder, &name, mapping);
    explore(&spec, &Session::new(), &mut Silent).expect("it can be explored");
    reached(&folder.join(name))
}

/// Checks that any number of workers reaches the same as one machine. Returns how many states
/// moved.
fn reach_with_workers(example: &Example, name: &str) -> u64 {
    let folder = folder(name);
    example.build(&folder);
    let mut moved = 0;
    for mapping in mappings() {
        let whole = whole(example, &folder, mapping);
        assert!(!whole.worlds.is_empty());
        for workers in [1, 2, 4, 8] {
            let shared = SharedMemory::new(1000);
            let spec = example.spec(&folder, &format!("by-{mapping}-{workers}"), mapping);
            let (run, dir) = submitted(&mut shared.connect(), &spec);
            let (status, _) = simulate(&shared, &run, workers, workers, Trouble::default());
            assert_eq!(status.failures, Vec::<String>::new());
            assert!(
                status.is_complete() && status.jobs > 3,
                "{} jobs",
                status.jobs
            );
            moved += status.states_moved;
            let mut broker = shared.connect();
            results(&mut broker, &dir, &Session::new(), &mut Silent).expect("results");
            assert_eq!(reached(&dir), whole, "{workers} workers, {mapping}");
        }
    }
    moved
}

#[test]
fn worlds_with_losses_are_those_of_one_machine() {
    assert!(reach_with_workers(&EXAMPLES[0], "cluster-worlds-losses") > 0);
}

#[test]
fn worlds_with_findings_are_those_of_one_machine() {
    assert!(reach_with_workers(&EXAMPLES[1], "cluster-worlds-findings") > 0);
}

#[test]
fn worlds_with_restarts_are_those_of_one_machine() {
    assert!(reach_with_workers(&EXAMPLES[2], "cluster-worlds-restarts") > 0);
}

#[test]
fn deaths_and_disorder_change_no_world() {
    let (folder, example) = (folder("cluster-worlds-disorder"), &EXAMPLES[2]);
    example.build(&folder);
    for (mapping, seed) in mappings().zip(0..) {
        let whole = whole(example, &folder, mapping);
        let shared = SharedMemory::new(40);
        let spec = example.spec(&folder, &format!("by-{mapping}"), mapping);
        let (run, dir) = submitted(&mut shared.connect(), &spec);
        let trouble = Trouble {
            kills: 25,
            disorder: true,
        };
        let (status, deaths) = simulate(&shared, &run, 3, seed, trouble);
        assert!(status.is_complete() && deaths > 5, "{deaths} deaths");
        assert!(status.redelivered > 0);
        let mut broker = shared.connect();
        results(&mut broker, &dir, &Session::new(), &mut Silent).expect("results");
        assert_eq!(reached(&dir), whole, "{mapping}");
    }
}

/// Two hosts whose connection may be cut at eleven times: more worlds than can begin at once.
fn cuts() -> String {
    let mut text =
        "[host.one]\nprogram = \"./one\"\n\n[host.two]\nprogram = \"./two\"\n".to_owned();
    for number in 0..11 {
        let (cut, heal) = (2 * number + 10, 2 * number + 11);
        text += &format!(
            "\n[fault.cut{number}]\nkind = \"partition\"\nbetween = \"two\"\nat = \"{cut}s\"\nheal = \"{heal}s\"\n"
        );
    }
    text
}

const ENDS: &str = "int main(void) { return 0; }";
const ABORTS: &str = "#include <stdlib.h>\nint main(void) { abort(); }";

#[test]
fn worlds_that_have_not_begun_are_handed_over() {
    for (name, source) in [("ends", ENDS), ("aborts", ABORTS)] {
        let folder = folder(&format!("cluster-worlds-cuts-{name}"));
        build(&folder, "one", ENDS, &[]);
        build(&folder, "two", source, &[]);
        fs::write(folder.join("cuts.toml"), cuts()).expect("a file");
        let example = Example {
            file: "cuts.toml",
            settings: &[],
            ..EXAMPLES[0]
        };
        let whole = whole(&example, &folder, "sds");
        // A world with a finding does not reach its end.
        let is_clean = name == "ends";
        let ended = if is_clean { 2048 } else { 0 };
        assert_eq!(whole.figures[1], ended);
        assert_eq!(whole.findings.is_empty(), is_clean);
        assert_eq!(
            count(&summary(&folder.join("whole-sds")), "/paths/completed"),
            2048
        );
        let shared = SharedMemory::new(1000);
        let spec = example.spec(&folder, "by", "sds");
        let (run, dir) = submitted(&mut shared.connect(), &spec);
        let (status, _) = simulate(&shared, &run, 3, 1, Trouble::default());
        assert!(status.is_complete() && status.jobs > 10);
        let mut broker = shared.connect();
        results(&mut broker, &dir, &Session::new(), &mut Silent).expect("results");
        assert_eq!(reached(&dir), whole);
    }
}

/// Explores a part of a run, and cancels it.
fn cancelled(example: &Example, folder: &Path, shared: &SharedMemory) -> (RunId, u64) {
    let mut broker = shared.connect();
    let (run, dir) = submitted(&mut broker, &example.spec(folder, "by", "cob"));
    let session = Session::new();
    let mut slot = Slot::new(shared, &session, 0);
    for _ in 0..60 {
        slot.step(false).expect("it works");
    }
    cancel(&mut broker, &run).expect("it is cancelled");
    while slot.step(false).expect("it drops jobs") {}
    let result = results(&mut broker, &dir, &session, &mut Silent).expect("results");
    assert!(!result.summary.complete && result.summary.weight.pending > 0.0);
    check_weights(&summary(&dir));
    let open = status(&mut broker, &run).expect("accounts");
    (run, open.jobs_pending)
}

#[test]
fn a_cancelled_run_of_worlds_can_be_finished_on_one_machine() {
    let (folder, example) = (folder("cluster-worlds-cancelled"), &EXAMPLES[2]);
    example.build(&folder);
    let whole = whole(example, &folder, "cob");
    let (_, left) = cancelled(example, &folder, &SharedMemory::new(1000));
    assert!(left > 1);
    expect(everett(&folder).args(["resume", "by"]), FINDINGS);
    let mut resumed = reached(&folder.join("by"));
    // Findings of the second part are listed after those of the first.
    resumed.findings.sort();
    assert_eq!(resumed, whole);
}

#[test]
fn worlds_are_limited_for_all_workers_together() {
    let (folder, example) = (folder("cluster-worlds-limits"), &EXAMPLES[2]);
    example.build(&folder);
    let whole = whole(example, &folder, "cob");
    for (most, workers) in [(1, 1), (30, 3)] {
        let shared = SharedMemory::new(1000);
        let spec = RunSpec {
            max_paths: Some(most),
            ..example.spec(&folder, &format!("by-{most}"), "cob")
        };
        let (run, dir) = submitted(&mut shared.connect(), &spec);
        let trouble = Trouble {
            kills: 5,
            disorder: true,
        };
        let (status, _) = simulate(&shared, &run, workers, most, trouble);
        assert_eq!(status.limit(), Some("max-paths"));
        // One step may end several worlds.
        assert!((most..2 * most + 8).contains(&status.work.paths));
        let mut broker = shared.connect();
        results(&mut broker, &dir, &Session::new(), &mut Silent).expect("results");
        let seen = summary(&dir);
        check_weights(&seen);
        assert_eq!(
            (&seen["complete"], &seen["stopped"]),
            (&json!(false), &json!("max-paths"))
        );
    }
    expect(everett(&folder).args(["resume", "by-30"]), FINDINGS);
    assert_eq!(reached(&folder.join("by-30")), whole);
}

/// Without `--all-tests`, the written tests cover everything that the worlds cover, and each ends
/// as recorded.
#[test]
fn tests_of_worlds_execute_what_the_worlds_do() {
    let (folder, example) = (folder("cluster-worlds-tests"), &EXAMPLES[2]);
    example.build(&folder);
    let all = whole(example, &folder, "sds");
    let shared = SharedMemory::new(1000);
    let spec = RunSpec {
        all_tests: false,
        ..example.spec(&folder, "by", "sds")
    };
    let (run, dir) = submitted(&mut shared.connect(), &spec);
    simulate(&shared, &run, 3, 1, Trouble::default());
    let mut broker = shared.connect();
    results(&mut broker, &dir, &Session::new(), &mut Silent).expect("results");
    let seen = reached(&dir);
    assert_eq!(seen.findings, all.findings);
    let tests: usize = seen.worlds.values().sum();
    assert!(
        0 < tests && tests < all.worlds.values().sum::<usize>(),
        "{tests}"
    );
    expect(everett(&folder).args(["follow", "by"]), CLEAN);
    let coverage = expect(everett(&folder).args(["coverage", "by"]), CLEAN);
    assert!(!text(&coverage).is_empty());
}

/// A sum of weights is not enough: a job with the results of another one is noticed.
#[test]
fn a_world_that_was_explored_twice_is_refused() {
    let (folder, example) = (folder("cluster-worlds-twice"), &EXAMPLES[2]);
    example.build(&folder);
    for mapping in ["cob", "sds"] {
        let shared = SharedMemory::new(1000);
        let mut broker = shared.connect();
        let spec = example.spec(&folder, &format!("by-{mapping}"), mapping);
        let (run, dir) = submitted(&mut broker, &spec);
        simulate(&shared, &run, 2, 1, Trouble::default());
        let outcomes = broker
            .list(Kind::Outcome, &run)
            .expect("outcomes")
            .into_iter();
        let outcomes =
            outcomes.map(|(job, bytes)| (job, Outcome::read(&bytes).expect("an outcome")));
        let ended: Vec<_> = outcomes.filter(|(_, one)| one.work.paths > 0).collect();
        let [(_, one), (job, other), ..] = &ended[..] else {
            panic!("too few jobs");
        };
        let forged = Outcome {
            results: one.results,
            ..other.clone()
        };
        let key = Key::of_job(Kind::Outcome, &run, job);
        broker.note(&key, &forged.to_bytes()).expect("noted");
        assert!(status(&mut broker, &run).expect("weights").is_complete());
        let refused = results(&mut broker, &dir, &Session::new(), &mut Silent);
        let message = refused.expect_err("it is refused").to_string();
        assert!(message.contains("was explored twice"), "{message}");
    }
}

/// The program of the scenario below.
const READER: &str = r#"
#include <everett.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int holds(const char *path, const char *text) {
  char got[16] = {0};
  int file = path ? open(path, O_RDONLY) : 0;
  return file >= 0 && read(file, got, 15) > 0 && !strncmp(got, text, strlen(text));
}
int main(int argc, char **argv) {
  unsigned char b;
  everett_make_symbolic(&b, sizeof b, "b");
  int right = holds("/one", "first") && holds("/data/two", "second") && holds("three", "third") && holds(NULL, "input");
  if (!right || strcmp(argv[0], "./bin/reader")) return 1;
  if (b <= 7) return 10;
  puts("more");
  return 11;
}
"#;

/// Files of a scenario are submitted with it: workers need no file of the submitting machine.
#[test]
fn files_of_a_scenario_go_with_it() {
    let folder = folder("cluster-worlds-files");
    let here = folder.join("here");
    for (name, text) in [
        ("one.txt", "first"),
        ("data/two", "second"),
        ("start/three", "third"),
        ("input", "input"),
        ("reader.c", READER),
    ] {
        let path = here.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    fs::create_dir_all(here.join("bin")).expect("a folder");
    let flags = ["cc", "-g", "-O1", "reader.c", "-o", "bin/reader"];
    expect(everett(&here).args(flags), CLEAN);
    let scenario = "[host.one]\nprogram = \"./bin/reader\"\nfile = { \"/one\" = \"one.txt\" }\nro = [\"data=/data\"]\n\
                    files = [\"start\"]\nstdin = { file = \"input\" }\n\n[host.two]\nprogram = \"./bin/reader\"\n";
    fs::write(here.join("world.toml"), scenario).expect("a file");
    let example = Example {
        file: "here/world.toml",
        settings: &[],
        ..EXAMPLES[0]
    };
    let whole = whole(&example, &folder, "sds");
    let exits = |code: &str| {
        whole
            .worlds
            .keys()
            .filter(|world| world.contains(code))
            .count()
    };
    assert!(exits(" 10") > 0 && exits(" 11") > 0, "{:?}", whole.worlds);
    let shared = SharedMemory::new(1000);
    let spec = example.spec(&folder, "by", "sds");
    let (run, dir) = submitted(&mut shared.connect(), &spec);
    fs::rename(&here, folder.join("elsewhere")).expect("it can be moved");
    let (status, _) = simulate(&shared, &run, 2, 1, Trouble::default());
    assert_eq!(status.failures, Vec::<String>::new());
    fs::rename(folder.join("elsewhere"), &here).expect("it can be moved");
    let mut broker = shared.connect();
    results(&mut broker, &dir, &Session::new(), &mut Silent).expect("results");
    assert_eq!(reached(&dir), whole);
    // A change since the submission is noticed.
    fs::write(here.join("data/two"), "another").expect("a file");
    let changed = results(&mut broker, &dir, &Session::new(), &mut Silent);
    assert!(matches!(changed, Err(Error::ProgramChanged)));
}

/// Invariants at fixed times: each job knows which of them are still to be evaluated.
#[test]
fn invariants_at_times_are_evaluated_once() {
    let (folder, example) = (folder("cluster-worlds-times"), &EXAMPLES[1]);
    example.build(&folder);
    let file = folder.join(example.file);
    let text = fs::read_to_string(&file).expect("a scenario");
    let when = "file = \"decisions.minv\"\nwhen = [\"120ms\", \"350ms\", \"900ms\"]";
    let text = text.replace("file = \"decisions.minv\"", when);
    fs::write(&file, text).expect("it can be written");
    for mapping in ["cob", "sds"] {
        let whole = whole(example, &folder, mapping);
        assert!(!whole.findings.is_empty());
        let shared = SharedMemory::new(1000);
        let spec = example.spec(&folder, &format!("by-{mapping}"), mapping);
        let (run, dir) = submitted(&mut shared.connect(), &spec);
        let (status, _) = simulate(&shared, &run, 3, 5, Trouble::default());
        assert!(status.is_complete());
        let mut broker = shared.connect();
        results(&mut broker, &dir, &Session::new(), &mut Silent).expect("results");
        assert_eq!(reached(&dir), whole, "{mapping}");
    }
}

fn submission(spec: RunSpec) -> Submission {
    Submission {
        spec,
        build: test_build(),
        work: Some(2_000),
        max_work: None,
        nonce: Vec::new(),
        key: None,
    }
}

#[test]
fn live_peers_and_time_limits_are_refused() {
    let (folder, example) = (folder("cluster-worlds-refused"), &EXAMPLES[0]);
    example.build(&folder);
    let text = fs::read_to_string(folder.join(example.file)).expect("a scenario");
    let refused = |more: &str| {
        fs::write(folder.join("other.toml"), format!("{text}\n{more}")).expect("a file");
        let spec = RunSpec::new([folder.join("other.toml")]);
        let mut broker = SharedMemory::new(1000).connect();
        let refused = submit(&mut broker, &submission(spec), &Session::new());
        let message = refused.expect_err("it is refused").to_string();
        assert_eq!(broker.waiting().expect("a number"), 0);
        message
    };
    let peer = "[peer.shop]\ncommand = [\"./shop\"]\nlisten = \"127.0.0.1:0\"\nport = 80\n";
    let message = refused(peer);
    assert!(
        message.contains("live peers (shop)") && message.contains("on one machine"),
        "{message}"
    );
}

/// Creates a broker with a run named `bad`, with a changed manifest, and its first job.
fn hostile(manifest: &Value, objects: &[Vec<u8>], states: &[u8]) -> (SharedMemory, Ticket) {
    let shared = SharedMemory::new(1000);
    let mut broker = shared.connect();
    let run = RunId::parse("bad").expect("a name");
    let bytes = serde_json::to_vec(manifest).expect("JSON");
    let key = Key::of_run(Kind::Run, &run);
    broker.record(&key, &bytes).expect("recorded");
    for bytes in objects.iter().map(Vec::as_slice).chain([states]) {
        broker.put(Hash::of(bytes), bytes).expect("stored");
    }
    let weight = serde_json::from_value(json!("1.")).expect("a weight");
    let ticket = Ticket::new(&run, run.as_str(), Hash::of(states), weight);
    broker.publish(&ticket).expect("published");
    (shared, ticket)
}

/// Returns a worker's answer to the only job of a broker.
fn failure(shared: &SharedMemory, ticket: &Ticket) -> Option<String> {
    let session = Session::new();
    let mut slot = Slot::new(shared, &session, 0);
    for _ in 0..3 {
        slot.step(false).expect("it goes on");
    }
    let key = Key::of_job(Kind::Outcome, &ticket.run, &ticket.job);
    let outcome = shared.connect().look_up(&key).expect("a record");
    let outcome: Value = serde_json::from_slice(&outcome.expect("an outcome")).expect("JSON");
    outcome["failure"].as_str().map(str::to_owned)
}

/// Returns the manifest and the objects of a run that was submitted honestly.
fn honest(example: &Example, folder: &Path) -> (Value, Vec<Vec<u8>>) {
    let shared = SharedMemory::new(1000);
    let mut broker = shared.connect();
    let spec = example.spec(folder, "by", "sds");
    let (run, _) = submit(&mut broker, &submission(spec), &Session::new()).expect("a run");
    let recorded = broker.look_up(&Key::of_run(Kind::Run, &run));
    let recorded = recorded.expect("a record").expect("a manifest");
    let manifest: Value = serde_json::from_slice(&recorded).expect("JSON");
    let mut objects = Vec::new();
    for entry in manifest["disk"].as_array().expect("a list") {
        let hash = entry["contents"]["Bytes"].as_str().and_then(Hash::parse);
        if let Some(hash) = hash {
            objects.extend(broker.get(hash).expect("an object"));
        }
    }
    (manifest, objects)
}

#[test]
fn hostile_scenarios_are_refused() {
    let (folder, example) = (folder("cluster-worlds-hostile"), &EXAMPLES[0]);
    example.build(&folder);
    let (manifest, mut objects) = honest(example, &folder);
    let beginning = pack_states(&States::beginning(true)).expect("bytes");
    let (shared, ticket) = hostile(&manifest, &objects, &beginning);
    assert_eq!(failure(&shared, &ticket), None);
    // The scenario names files of the worker's machine that the job does not contain.
    let text = fs::read_to_string(folder.join(example.file)).expect("a scenario");
    let program = |path: &str| text.replace("./server", path).into_bytes();
    let mount = text.replace(
        "[host.server]",
        "[host.server]\nfile = { \"/x\" = \"/etc/passwd\" }",
    );
    let folder_of_root = text.replace("[host.server]", "[host.server]\nro = [\"/etc\"]");
    let check = format!("{text}\n[check.x]\nfile = \"/etc/passwd\"\n");
    let entries = manifest["disk"].as_array().expect("a list");
    let path: Vec<u8> = example.file.bytes().collect();
    let at = entries
        .iter()
        .position(|entry| entry["path"] == json!(path));
    let at = at.expect("the scenario");
    let scenarios = [
        (program("/bin/true"), "there is no program /bin/true"),
        (mount.into_bytes(), "there is no /etc/passwd"),
        (folder_of_root.into_bytes(), "there is no /etc"),
        (check.into_bytes(), "there is no file /etc/passwd"),
        (b"[host".to_vec(), "by"),
    ];
    for (scenario, expected) in scenarios {
        let mut manifest = manifest.clone();
        manifest["disk"][at]["contents"]["Bytes"] = json!(Hash::of(&scenario).to_string());
        objects.push(scenario);
        let (shared, ticket) = hostile(&manifest, &objects, &beginning);
        let failure = failure(&shared, &ticket).expect("it is refused");
        assert!(
            failure.contains(expected) || expected == "by",
            "{expected}: {failure}"
        );
    }
    let fields = [
        ("/spec/started_in", json!("/etc"), "paths of this machine"),
        ("/spec/out", json!("/tmp/x"), "paths of this machine"),
        ("/spec/log_queries", json!("/tmp/x"), "not possible"),
        ("/spec/allow_live", json!(true), "not possible"),
        (
            "/spec/ro",
            json!([{"from": "/etc", "to": "/etc"}]),
            "paths of this machine",
        ),
        ("/disk", json!([]), "cannot be read"),
    ];
    for (pointer, value, expected) in fields {
        let mut manifest = manifest.clone();
        *manifest.pointer_mut(pointer).expect("a field") = value;
        let (shared, ticket) = hostile(&manifest, &objects, &beginning);
        let failure = failure(&shared, &ticket).expect("it is refused");
        assert!(failure.contains(expected), "{pointer}: {failure}");
    }
}

/// Returns a job of worlds with the value at a place replaced.
fn changed(states: &[u8], pointer: &str, value: &Value) -> Option<Vec<u8>> {
    let Ok(States::Worlds(worlds)) = unpack_states(states) else {
        panic!("these are no worlds");
    };
    let mut text = serde_json::to_value(&worlds).expect("JSON");
    *text.pointer_mut(pointer).expect("a place") = value.clone();
    let worlds = serde_json::from_value(text).ok()?;
    Some(pack_states(&States::Worlds(worlds)).expect("bytes"))
}

/// Whatever a job of worlds contains, a worker refuses it or explores something of its weight.
#[test]
fn damaged_worlds_are_no_end_of_a_worker() {
    let (folder, example) = (folder("cluster-worlds-damaged"), &EXAMPLES[0]);
    example.build(&folder);
    let shared = SharedMemory::new(1000);
    let mut broker = shared.connect();
    let (run, _) = submitted(&mut broker, &example.spec(&folder, "by", "sds"));
    let session = Session::new();
    let mut slot = Slot::new(&shared, &session, 0);
    for _ in 0..3 {
        slot.step(false).expect("it works");
    }
    let lease = broker.lease().expect("it works").expect("a job");
    let ticket = lease.ticket.clone();
    let states = broker.get(ticket.states).expect("it works").expect("bytes");
    let places = [
        "/part/states/0/0/net/host",
        "/part/states/0/0/net/position/clock_ns",
        "/part/states/0/0/net/position/answered",
        "/part/states/0/0/net/position/instructions",
        "/part/states/0/0/net/world",
        "/part/states/0/0/weight/halvings",
        "/part/states/0/0/conditions/parts",
        "/part/states/0/1/host",
        "/part/states/0/1/next_ns",
        "/part/states/0/1/used",
        "/part/table/sets",
        "/part/table/sets/0",
        "/part/table/sets/0/0",
        "/part/table/dstates",
        "/part/table/dstates/0",
        "/part/table/dstates/0/0",
        "/part/states",
        "/times",
        "/not_begun",
    ];
    let values = [
        json!(0),
        json!(7),
        json!(u32::MAX),
        json!(1u64 << 40),
        json!([]),
        json!([0, 0]),
        json!([9]),
        json!("00ff"),
        json!(["00ff"]),
        json!({"next": 1, "begun": 5}),
        json!(null),
    ];
    let mut tried = 0;
    for place in places {
        for value in &values {
            let Some(states) = changed(&states, place, value) else {
                continue;
            };
            tried += 1;
            let bad = Ticket::new(
                &run,
                ticket.job.as_str(),
                Hash::of(&states),
                ticket.weight.clone(),
            );
            broker.put(bad.states, &states).expect("stored");
            let shared = shared.clone();
            shared.lose_queue();
            broker.publish(&bad).expect("published");
            slot = Slot::new(&shared, &session, tried);
            for _ in 0..3 {
                slot.step(false).expect("it goes on");
            }
            let key = Key::of_job(Kind::Outcome, &run, &bad.job);
            let outcome = broker.look_up(&key).expect("a record").expect("an outcome");
            let outcome = Outcome::read(&outcome).expect("an outcome");
            assert_eq!(
                outcome.weight().as_ref(),
                Some(&bad.weight),
                "{place} {value}"
            );
        }
    }
    assert!(tried > 40, "{tried}");
}

#[test]
fn a_killed_worker_costs_no_world_over_nats() {
    let (folder, example) = (folder("cluster-worlds-nats"), &EXAMPLES[2]);
    example.build(&folder);
    let (_up, url) = start_server(&folder);
    let common = ["--all-tests", "--mapping", "cob", "--out"];
    let mut run = everett(&folder);
    run.arg("run").args(common).args(["whole", example.file]);
    expect(&mut run, FINDINGS);
    let mut submit = everett(&folder);
    submit.args(["submit", "--broker", &url, "--job-work", "2000"]);
    expect(submit.args(common).args(["by", example.file]), CLEAN);
    let explored = |at_least: u64| {
        let status = status_of(&folder, &url);
        let explored = status["jobs"]["explored"].as_u64();
        (explored >= Some(at_least) || status["over"] == true).then_some(())
    };
    let killed = start_worker(&folder, &url, "killed");
    wait_for("a job", || explored(2));
    let _other = start_worker(&folder, &url, "other");
    wait_for("more jobs", || explored(5));
    // SIGKILL: the worker cannot tell anybody.
    drop(killed);
    let _instead = start_worker(&folder, &url, "instead");
    let mut watch = everett(&folder);
    expect(
        watch.args(["watch", "--quiet", "by", "--broker", &url]),
        CLEAN,
    );
    let status = status_of(&folder, &url);
    assert_eq!(status["complete"], true, "{status}");
    assert_eq!(status["failures"], json!([]));
    let workers = status["workers"].as_object().expect("workers").values();
    let by_workers: Option<u64> = workers.map(|worker| worker["paths"].as_u64()).sum();
    assert_eq!(by_workers, status["paths"].as_u64());
    let output = expect(
        everett(&folder).args(["results", "by", "--broker", &url]),
        FINDINGS,
    );
    assert!(text(&output).contains("invariant"), "{}", text(&output));
    let (whole, by) = (folder.join("whole"), folder.join("by"));
    assert_eq!(reached(&by), reached(&whole));
    let confirmed = |out: &Path| summary(out)["findings"][0]["confirmed"].clone();
    assert_eq!(confirmed(&by), confirmed(&whole));
}
