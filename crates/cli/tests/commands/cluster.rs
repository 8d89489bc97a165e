//! A search on several machines reaches the same as a search on one: with any number of workers,
//! whichever workers die, and whatever messages are late or duplicated. Most tests are simulations,
//! with an in-process broker whose clock is logical; the others run Everett over real brokers.

#[path = "../common/mortal.rs"]
pub(crate) mod mortal;

use crate::common::samples::{FORKS, FORKS_PATHS, WORDS};
use crate::common::{build, endings, everett, expect, folder, summary, text};
use crate::postgres::start_postgres;
use everett::{Event, Observer, RunSpec, Session, explore};
use everett_cluster::{
    Broker, Build, Error, Explored, Hash, Key, Kind, RunId, SharedMemory, Status, Submission,
    Submitted, Taken, TakenJob, Ticket, Worker, WorkerSpec, cancel, results, status, submit,
};
use mortal::Mortal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) const CLEAN: i32 = 0;
pub(crate) const FINDINGS: i32 = 1;
/// The work of a job, so small that there are many jobs.
const WORK: u64 = 2_000;

/// Idle steps after which workers look for jobs that nobody hands out, as real ones do.
const IDLE_BEFORE_RESEEDING: u64 = 60;

/// Pseudorandom numbers.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// An observer that collects the paths of a run, as digests of their answers.
#[derive(Default)]
pub(crate) struct Paths(pub(crate) BTreeSet<u64>);

impl Observer for Paths {
    fn event(&mut self, event: &Event<'_>) {
        if let Event::PathDone(end) = event {
            assert!(self.0.insert(end.digest), "a path ended twice");
        }
    }
}

/// The results that do not depend on who explored what.
#[derive(PartialEq, Debug)]
pub(crate) struct Reached {
    pub(crate) paths: BTreeSet<u64>,
    endings: Vec<String>,
    findings: Vec<[String; 4]>,
    weight: Value,
    coverage: Value,
    completed: Value,
}

pub(crate) fn reached(paths: Paths, out: &Path) -> Reached {
    let summary = summary(out);
    assert_eq!(summary["complete"], true, "{summary}");
    let findings = summary["findings"].as_array().expect("a list").iter();
    let field = |finding: &Value, name: &str| finding[name].to_string();
    let mut findings: Vec<_> = findings
        .map(|finding| ["kind", "file", "line", "function"].map(|name| field(finding, name)))
        .collect();
    findings.sort();
    Reached {
        paths: paths.0,
        endings: endings(out),
        findings,
        weight: summary["weight"].clone(),
        coverage: summary["coverage"].clone(),
        completed: summary["paths"].clone(),
    }
}

pub(crate) fn spec(folder: &Path, name: &str, command: &[&str]) -> RunSpec {
    let program = folder.join(command[0]);
    let words = command[1..].iter().map(Into::into);
    RunSpec {
        all_tests: true,
        out: Some(folder.join(name)),
        batch: Some(50),
        no_confirm: true,
        ..RunSpec::new(std::iter::once(program.into_os_string()).chain(words))
    }
}

/// Returns what `everett run` reaches.
fn whole(folder: &Path, name: &str, command: &[&str]) -> Reached {
    let spec = spec(folder, name, command);
    let mut paths = Paths::default();
    explore(&spec, &Session::new(), &mut paths).expect("it can be explored");
    reached(paths, &folder.join(name))
}

pub(crate) fn test_build() -> Build {
    Build {
        version: "test".to_owned(),
        digest: "test".to_owned(),
    }
}

/// Submits a run to a broker, and creates its folder.
pub(crate) fn submitted(broker: &mut dyn Broker, spec: &RunSpec) -> (RunId, PathBuf) {
    let submission = Submission {
        spec: spec.clone(),
        build: test_build(),
        work: Some(WORK),
        max_work: None,
        nonce: Vec::new(),
        key: None,
    };
    let submitted = Submitted::submit(broker, submission, &Session::new());
    let (dir, submitted) = submitted.expect("it is submitted");
    (submitted.run, dir)
}

/// A worker, and its current job.
pub(crate) struct Slot<'s> {
    pub(crate) worker: Worker<'s>,
    pub(crate) broker: Mortal,
    job: Option<(Box<TakenJob>, Option<Explored>)>,
}

impl<'s> Slot<'s> {
    pub(crate) fn new(shared: &SharedMemory, session: &'s Session, number: u64) -> Slot<'s> {
        let spec = WorkerSpec {
            name: format!("worker {number}"),
            build: test_build(),
            max_memory: None,
            scratch: None,
            idle: None,
            accept: None,
        };
        Slot {
            worker: Worker::new(spec, session),
            broker: Mortal::new(shared),
            job: None,
        }
    }

    /// Takes a job, explores it, or hands it back. Returns `false` if there was nothing to do.
    pub(crate) fn step(&mut self, go_on: bool) -> Result<bool, Error> {
        match self.job.take() {
            None => match self.worker.take(&mut self.broker)? {
                Taken::Nothing => return Ok(false),
                Taken::Over | Taken::Refused(..) => {}
                Taken::Job(job) => self.job = Some((job, None)),
            },
            Some((job, None)) => {
                let mut times = 0;
                let explored = self.worker.explore(&job, &mut || {
                    times += 1;
                    go_on && times < 3
                })?;
                self.job = Some((job, Some(explored)));
            }
            Some((job, Some(explored))) => {
                self.worker.finish(&mut self.broker, &job, &explored)?;
            }
        }
        Ok(true)
    }
}

/// The faults of a simulation.
#[derive(Copy, Clone, Default)]
pub(crate) struct Trouble {
    /// The number of workers that die at some operation.
    pub(crate) kills: u64,
    /// Whether jobs are handed out twice, and leases expire during work.
    pub(crate) disorder: bool,
}

/// Simulates workers that explore a run to its end. Returns how many died.
pub(crate) fn simulate(
    shared: &SharedMemory,
    run: &RunId,
    count: u64,
    seed: u64,
    trouble: Trouble,
) -> (Status, u64) {
    const MOST_STEPS: u32 = 20_000;
    let session = Session::new();
    let mut numbers = Numbers(seed);
    let mut slots: Vec<Slot<'_>> = (0..count)
        .map(|number| Slot::new(shared, &session, number))
        .collect();
    let (mut deaths, mut idle) = (0, 0);
    for _ in 0..MOST_STEPS {
        if trouble.disorder && numbers.below(10) == 0 {
            match numbers.below(2) {
                0 => shared.deliver_again(),
                _ => shared.expire_leases(),
            }
        }
        let (at, go_on) = (numbers.below(count), numbers.below(2) == 0);
        let slot = &mut slots[at as usize];
        if deaths < trouble.kills && numbers.below(4) == 0 && slot.broker.breaths > 1000 {
            slot.broker.breaths = 1 + numbers.below(12);
            slot.broker.after = numbers.below(2) == 0;
        }
        match slot.step(go_on) {
            Ok(true) => idle = 0,
            Ok(false) => idle += 1,
            Err(error) => {
                assert!(slot.broker.is_dead, "{error}");
                *slot = Slot::new(shared, &session, count + deaths);
                deaths += 1;
            }
        }
        if idle > 4 * count {
            let status = status(&mut shared.connect(), run).expect("the accounts add up");
            if status.is_over() {
                return (status, deaths);
            }
            shared.expire_leases();
        }
        if idle > IDLE_BEFORE_RESEEDING {
            // A dead worker may have granted work to a job without handing it out.
            let slot = &mut slots[at as usize];
            slot.worker.reseed(&mut shared.connect()).expect("it looks");
        }
    }
    panic!("no end after {MOST_STEPS} steps");
}

pub(crate) const COMMANDS: [&[&str]; 2] =
    [&["forks"], &["words", "--sym-arg", "2", "--sym-stdin", "4"]];

#[test]
fn any_number_of_workers_reaches_what_one_machine_does() {
    let folder = folder("cluster-workers");
    build(&folder, "forks", FORKS, &[]);
    build(&folder, "words", WORDS, &[]);
    for (number, command) in COMMANDS.into_iter().enumerate() {
        let whole = whole(&folder, &format!("whole-{number}"), command);
        for workers in [1, 2, 4, 8] {
            let shared = SharedMemory::new(1000);
            let spec = spec(&folder, &format!("by-{workers}-{number}"), command);
            let (run, dir) = submitted(&mut shared.connect(), &spec);
            let (status, _) = simulate(&shared, &run, workers, 7, Trouble::default());
            assert!(status.is_complete() && status.jobs > 10, "{}", status.jobs);
            let mut paths = Paths::default();
            let result = results(&mut shared.connect(), &dir, &Session::new(), &mut paths);
            let result = result.expect("results");
            assert_eq!(reached(paths, &dir), whole, "{workers} workers");
            let figures = result.summary.cluster.expect("figures");
            assert_eq!((figures.jobs, figures.jobs_left), (status.jobs, 0));
            assert!(figures.bytes_sent <= shared.bytes_sent());
            assert!(figures.states_moved > 0 && figures.replay_share > 0.0);
        }
    }
}

/// A program with few paths, so that the simulation can be repeated often.
const FEW: &str = r#"
#include <everett.h>
int main(void) {
  unsigned char b[2];
  everett_make_symbolic(b, sizeof b, "b");
  return (b[0] > 7) + (b[1] > 9);
}
"#;

/// Simulates the death of a worker before each operation in turn. Returns how often jobs were
/// temporarily lost.
fn die_at_each_operation(folder: &Path, is_hasty: bool) -> u64 {
    build(folder, "few", FEW, &[]);
    let whole = whole(folder, "whole", &["few"]);
    let submission = Submission {
        spec: RunSpec {
            batch: Some(200),
            ..spec(folder, "by", &["few"])
        },
        build: test_build(),
        work: Some(1),
        max_work: None,
        nonce: Vec::new(),
        key: None,
    };
    let session = Session::new();
    let mut losses = 0;
    for at in 1.. {
        let shared = SharedMemory::new(1000);
        let mut broker = shared.connect();
        let (run, _) = submit(&mut broker, &submission, &session).expect("it is submitted");
        let mut slot = Slot::new(&shared, &session, 0);
        (slot.broker.breaths, slot.broker.is_hasty) = (at, is_hasty);
        while let Ok(true) = slot.step(false) {}
        let (status, lost) = finish_alone(&shared, &run, &session);
        assert!(status.is_complete());
        losses += u64::from(lost > 0);
        let paths = everett_cluster::paths(&mut broker, &run).expect("each path once");
        assert_eq!(paths, whole.paths, "dead at operation {at}");
        if !slot.broker.is_dead {
            assert!(at > 20, "only {at} operations");
            break;
        }
    }
    losses
}

/// Lets one worker continue a run after another has died. Returns how many jobs had fallen out of
/// the queue.
fn finish_alone(shared: &SharedMemory, run: &RunId, session: &Session) -> (Status, u64) {
    let mut slot = Slot::new(shared, session, 1);
    let mut lost = 0;
    loop {
        shared.expire_leases();
        while slot.step(false).expect("it works") {}
        let status = status(&mut shared.connect(), run).expect("the accounts add up");
        if status.is_over() {
            return (status, lost);
        }
        lost += slot.worker.reseed(&mut slot.broker).expect("it looks");
    }
}

#[test]
fn a_worker_may_die_at_any_operation() {
    let folder = folder("cluster-deaths");
    assert_eq!(die_at_each_operation(&folder, false), 0);
}

/// A check of the test itself: a worker that acknowledges a job before it has handed out the rest
/// loses jobs when it dies.
#[test]
fn acknowledging_too_early_is_noticed() {
    let folder = folder("cluster-hasty");
    assert!(die_at_each_operation(&folder, true) > 0);
}

#[test]
fn deaths_and_disorder_change_nothing() {
    let folder = folder("cluster-disorder");
    build(&folder, "forks", FORKS, &[]);
    let whole = whole(&folder, "whole", &["forks"]);
    assert_eq!(whole.paths.len() as u64, FORKS_PATHS);
    for seed in 0..3 {
        let shared = SharedMemory::new(40);
        let spec = spec(&folder, &format!("by-{seed}"), &["forks"]);
        let (run, dir) = submitted(&mut shared.connect(), &spec);
        let trouble = Trouble {
            kills: 25,
            disorder: true,
        };
        let (status, deaths) = simulate(&shared, &run, 3, seed, trouble);
        assert!(status.is_complete());
        assert!(deaths > 5, "{deaths} deaths");
        let mut paths = Paths::default();
        results(&mut shared.connect(), &dir, &Session::new(), &mut paths).expect("results");
        assert_eq!(reached(paths, &dir), whole, "seed {seed}");
    }
}

#[test]
fn jobs_that_the_broker_loses_are_found_again() {
    let folder = folder("cluster-lost");
    build(&folder, "forks", FORKS, &[]);
    let whole = whole(&folder, "whole", &["forks"]);
    let shared = SharedMemory::new(1000);
    let (run, _) = submitted(&mut shared.connect(), &spec(&folder, "by", &["forks"]));
    let session = Session::new();
    let mut slot = Slot::new(&shared, &session, 0);
    for _ in 0..12 {
        slot.step(false).expect("it works");
    }
    shared.lose_queue();
    let mut broker = shared.connect();
    assert_eq!(broker.waiting().expect("a number"), 0);
    let open = status(&mut broker, &run).expect("accounts");
    assert!(open.jobs_pending > 0);
    let added = slot.worker.reseed(&mut broker).expect("it looks");
    assert_eq!(added, open.jobs_pending);
    simulate(&shared, &run, 2, 3, Trouble::default());
    let paths = everett_cluster::paths(&mut broker, &run).expect("each path once");
    assert_eq!(paths, whole.paths);
}

#[test]
fn another_build_leaves_the_job_to_others() {
    let folder = folder("cluster-build");
    build(&folder, "few", FEW, &[]);
    let shared = SharedMemory::new(1000);
    let mut broker = shared.connect();
    let (run, dir) = submitted(&mut broker, &spec(&folder, "by", &["few"]));
    let session = Session::new();
    let spec = WorkerSpec {
        name: "other".to_owned(),
        build: Build {
            version: "1.0".to_owned(),
            digest: "other".to_owned(),
        },
        max_memory: None,
        scratch: None,
        idle: None,
        accept: None,
    };
    let refused = Worker::new(spec, &session).take(&mut broker);
    let Err(Error::OtherBuild { theirs, ours }) = refused else {
        panic!("it took a job of another build");
    };
    assert!(theirs.contains("test") && ours.contains("1.0"));
    assert_eq!(broker.waiting().expect("a number"), 1);
    let (status, _) = simulate(&shared, &run, 1, 0, Trouble::default());
    assert!(status.is_complete());
    // Another program in its place is not the explored one.
    build(&folder, "few", FORKS, &[]);
    let changed = results(&mut broker, &dir, &session, &mut Paths::default());
    assert!(matches!(changed, Err(Error::ProgramChanged)));
}

#[test]
fn hostile_jobs_are_refused() {
    let folder = folder("cluster-hostile");
    build(&folder, "few", FEW, &[]);
    let session = Session::new();
    let spec = spec(&folder, "by", &["few"]);
    let submission = Submission {
        spec,
        build: test_build(),
        work: None,
        max_work: None,
        nonce: Vec::new(),
        key: None,
    };
    let honest = SharedMemory::new(1000);
    let (run, _) = submit(&mut honest.connect(), &submission, &session).expect("a run");
    let key = Key::of_run(Kind::Run, &run);
    let recorded = honest.connect().look_up(&key).expect("a record");
    let manifest: Value = serde_json::from_slice(&recorded.expect("a record")).expect("JSON");
    let states = everett_cluster::pack(&[everett::root_state()]);
    let one = || serde_json::json!("1.");
    // For each field, a hostile value, and the worker's error message.
    let mount = serde_json::json!([{"from": "/etc", "to": "/etc"}]);
    let program = Hash::of(b"no bitcode").to_string();
    let missing = Hash::of(b"nowhere").to_string();
    let cases: [(&str, Value, &[u8], Value, &str); 9] = [
        ("/spec/ro", mount, &states, one(), "paths of this machine"),
        (
            "/spec/out",
            "/tmp/x".into(),
            &states,
            one(),
            "paths of this machine",
        ),
        (
            "/spec/solver_log",
            "/tmp/x".into(),
            &states,
            one(),
            "not possible",
        ),
        (
            "/spec/log_queries",
            "/tmp/x".into(),
            &states,
            one(),
            "not possible",
        ),
        (
            "/spec/smt_solver",
            "/bin/sh".into(),
            &states,
            one(),
            "not possible",
        ),
        (
            "/programs/0",
            program.into(),
            &states,
            one(),
            "bitcode at bit",
        ),
        ("/programs/0", missing.into(), &states, one(), "is missing"),
        (
            "/work",
            1.into(),
            b"everett states 1\nxyz",
            one(),
            "cannot be decompressed",
        ),
        (
            "/work",
            1.into(),
            &states,
            "0.8000000000000000".into(),
            "not its weight",
        ),
    ];
    for (pointer, value, states, weight, expected) in cases {
        let shared = honest_copy(&honest, &run);
        let mut broker = shared.connect();
        let mut manifest = manifest.clone();
        *manifest.pointer_mut(pointer).expect("a field") = value;
        let run = RunId::parse("bad").expect("a name");
        let bytes = serde_json::to_vec(&manifest).expect("JSON");
        let key = Key::of_run(Kind::Run, &run);
        broker.record(&key, &bytes).expect("recorded");
        for bytes in [states, b"no bitcode"] {
            broker.put(Hash::of(bytes), bytes).expect("stored");
        }
        let weight = serde_json::from_value(weight).expect("a weight");
        let ticket = Ticket::new(&run, run.as_str(), Hash::of(states), weight);
        broker.publish(&ticket).expect("published");
        let mut slot = Slot::new(&shared, &session, 0);
        while slot.step(false).expect("it goes on") {}
        let outcome = broker.look_up(&Key::of_job(Kind::Outcome, &run, &ticket.job));
        let outcome = outcome.expect("a record").expect("an outcome");
        let text = String::from_utf8_lossy(&outcome);
        assert!(
            text.contains("failure") && text.contains(expected),
            "{pointer}: {text}"
        );
    }
}

/// Creates a broker with the objects of a run, and nothing else.
fn honest_copy(honest: &SharedMemory, run: &RunId) -> SharedMemory {
    let shared = SharedMemory::new(1000);
    let key = Key::of_run(Kind::Run, run);
    let recorded = honest.connect().look_up(&key).expect("a record");
    let manifest: Value = serde_json::from_slice(&recorded.expect("a record")).expect("JSON");
    for list in ["programs", "natives"] {
        let hash = manifest[list][0].as_str().and_then(Hash::parse);
        let hash = hash.expect("a hash");
        let bytes = honest.connect().get(hash).expect("an object");
        let bytes = bytes.expect("bytes");
        shared.connect().put(hash, &bytes).expect("stored");
    }
    shared
}

#[test]
fn a_cancelled_run_can_be_finished_on_one_machine() {
    let folder = folder("cluster-cancelled");
    build(&folder, "forks", FORKS, &[]);
    let whole = whole(&folder, "whole", &["forks"]);
    let shared = SharedMemory::new(1000);
    let mut broker = shared.connect();
    let (run, dir) = submitted(&mut broker, &spec(&folder, "by", &["forks"]));
    let session = Session::new();
    let mut slot = Slot::new(&shared, &session, 0);
    for _ in 0..12 {
        slot.step(false).expect("it works");
    }
    cancel(&mut broker, &run).expect("it is cancelled");
    while slot.step(false).expect("it drops jobs") {}
    assert_eq!(broker.waiting().expect("a number"), 0);
    let open = status(&mut broker, &run).expect("accounts");
    assert!(open.is_cancelled && !open.is_over());
    let result = results(&mut broker, &dir, &session, &mut Paths::default()).expect("results");
    assert!(!result.summary.complete && result.summary.weight.pending > 0.0);
    crate::common::check_weights(&summary(&dir));
    expect(everett(&folder).args(["resume", "by"]), FINDINGS);
    let seen = summary(&dir);
    assert_eq!(
        (&seen["complete"], &seen["paths"]),
        (&Value::Bool(true), &whole.completed)
    );
    assert_eq!(endings(&dir), whole.endings);
}

/// The process of `everett cluster up`. It is interrupted at the end: killed, it could not end its
/// server.
pub(crate) struct Up(pub(crate) Child);

impl Drop for Up {
    fn drop(&mut self) {
        let id = nix::unistd::Pid::from_raw(self.0.id() as i32);
        // The process may already have been reaped.
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT);
            let _ = self.0.wait();
        }
    }
}

/// A process that is killed at the end of the test.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Polls until a condition holds. A loaded machine may take long; if it never holds, that is an
/// error.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..6000 {
        if let Some(seen) = look() {
            return seen;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{what} never happened");
}

pub(crate) fn start_worker(folder: &Path, url: &str, name: &str) -> Process {
    let mut worker = everett(folder);
    worker.args(["worker", "--join", url, "--name", name, "--workers", "1"]);
    worker.args(["--lease", "3s", "--metrics", "127.0.0.1:0"]);
    let log = fs::File::create(folder.join(format!("{name}.log"))).expect("a log");
    Process(worker.stderr(log).spawn().expect("it starts"))
}

pub(crate) fn status_of(folder: &Path, url: &str) -> Value {
    let output = expect(
        everett(folder).args(["status", "--json", "by", "--broker", url]),
        CLEAN,
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Waits until a worker counts as many jobs as the run has from it. It may count more: if two
/// workers explored a job, the first one counts for the run.
fn expect_metrics(folder: &Path, name: &str, status: &Value) {
    // The worker may have joined after the end of the run.
    let address = wait_for("its address", || {
        let log = fs::read_to_string(folder.join(format!("{name}.log"))).expect("a log");
        let (_, address) = log.split_once("metrics: http://")?;
        Some(address.split_once("/metrics")?.0.to_owned())
    });
    let jobs = status["workers"][name]["jobs"].as_u64().unwrap_or(0);
    wait_for("as many jobs", || {
        let mut stream = TcpStream::connect(&address).expect("it serves");
        let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request).expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        // The server starts before its worker.
        text.contains("\neverett_workers 1\n").then_some(())?;
        let counted = text
            .split_once("\neverett_jobs_explored_total ")
            .expect("a counter");
        let counted = counted.1.lines().next().expect("a number").parse::<u64>();
        (counted.expect("a number") >= jobs).then_some(())
    });
}

/// Two workers explore a run over a broker; one of them is killed and another replaces it.
fn explore_over(folder: &Path, url: &str) {
    build(folder, "forks", FORKS, &[]);
    let common = ["--all-tests", "--batch", "50", "--out"];
    expect(
        everett(folder)
            .arg("run")
            .args(common)
            .args(["whole", "./forks"]),
        FINDINGS,
    );
    let mut submit = everett(folder);
    submit.args(["submit", "--broker", url, "--job-work", "500"]);
    expect(submit.args(common).args(["by", "./forks"]), CLEAN);
    let explored = |at_least: u64| {
        let status = status_of(folder, url);
        let explored = status["jobs"]["explored"].as_u64();
        (explored >= Some(at_least) || status["over"] == true).then_some(())
    };
    let killed = start_worker(folder, url, "killed");
    wait_for("a job", || explored(2));
    let _other = start_worker(folder, url, "other");
    wait_for("more jobs", || explored(5));
    // SIGKILL: the worker cannot tell anybody.
    drop(killed);
    let _instead = start_worker(folder, url, "instead");
    expect(
        everett(folder).args(["watch", "--quiet", "by", "--broker", url]),
        CLEAN,
    );
    let status = status_of(folder, url);
    assert_eq!(status["complete"], true, "{status}");
    assert_eq!(status["failures"], serde_json::json!([]));
    for name in ["other", "instead"] {
        expect_metrics(folder, name, &status);
    }
    expect(
        everett(folder).args(["results", "by", "--broker", url]),
        FINDINGS,
    );
    let (whole, by) = (folder.join("whole"), folder.join("by"));
    assert_eq!(endings(&by), endings(&whole));
    let [whole, by] = [summary(&whole), summary(&by)];
    for field in ["complete", "paths", "weight", "coverage", "tests"] {
        assert_eq!(by[field], whole[field], "{field}");
    }
    let found = |summary: &Value| summary["findings"][0]["confirmed"].clone();
    assert_eq!(found(&by), found(&whole));
    assert_eq!(found(&by), "confirmed");
    assert!(by["cluster"]["jobs"].as_u64() > Some(10), "{by}");
    let broker = "nats://user:secret@127.0.0.1:4222";
    let refused = everett(folder)
        .args(["status", "by", "--broker", broker])
        .output()
        .expect("it starts");
    let refused = text(&refused);
    assert!(refused.contains("others can read"), "{refused}");
}

/// Starts a server, and returns its address.
pub(crate) fn start_server(folder: &Path) -> (Up, String) {
    start_server_with(folder, &[])
}

pub(crate) fn start_server_with(folder: &Path, words: &[&str]) -> (Up, String) {
    let mut up = everett(folder);
    let up = up.args(["cluster", "up", "--dir", "broker"]).args(words);
    let up = up.stdout(Stdio::piped());
    let mut up = Up(up.spawn().expect("it starts"));
    let mut url = String::new();
    let lines = up.0.stdout.take().expect("its output");
    BufReader::new(lines)
        .read_line(&mut url)
        .expect("its address");
    assert!(url.starts_with("nats://127.0.0.1:"), "{url}");
    (up, url.trim().to_owned())
}

#[test]
fn a_killed_worker_costs_nothing_over_nats() {
    let folder = folder("cluster-nats");
    let (mut up, url) = start_server(&folder);
    explore_over(&folder, &url);
    // An interrupt also ends the server.
    let kill = format!("kill -INT {}", up.0.id());
    expect(Command::new("sh").args(["-c", &kill]), 0);
    assert!(up.0.wait().expect("its end").success());
}

#[test]
fn a_killed_worker_costs_nothing_over_postgresql() {
    let folder = folder("cluster-postgres");
    let server = start_postgres(&folder, "pg");
    explore_over(&folder, &server.url);
}
