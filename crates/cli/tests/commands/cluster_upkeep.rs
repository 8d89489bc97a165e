//! The upkeep of a cluster: servers that restart or are started twice, runs that are listed and
//! removed, objects that are lost, and options that make no sense.

use crate::cluster::mortal::Mortal;
use crate::cluster::{
    CLEAN, Process, Slot, Trouble, Up, simulate, start_server, start_worker, status_of, submitted,
    test_build, wait_for,
};
use crate::common::samples::ENDLESS;
use crate::common::{build, everett, expect, folder, summary, text};
use crate::postgres::postgres;
use everett::{RunSpec, Session, Silent};
use everett_cluster::{
    Broker, Error, Removed, RunId, Secrets, SharedMemory, Submission, Submitted, Worker,
    WorkerSpec, connect, remove, results, status,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

const FAILED: i32 = 2;
const INTERRUPTED: i32 = 3;

const FEW: &str = r#"
#include <everett.h>
int main(void) {
  unsigned char b[2];
  everett_make_symbolic(b, sizeof b, "b");
  return (b[0] > 7) + (b[1] > 9);
}
"#;

/// A PostgreSQL server that is reached by a socket.
pub(crate) struct Database {
    pub(crate) dir: PathBuf,
    log: PathBuf,
}

impl Database {
    pub(crate) fn new(folder: &Path, name: &str) -> Database {
        // The path of a socket must be short.
        let dir = std::env::temp_dir().join(format!("everett-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a folder");
        if nix::unistd::geteuid().is_root() {
            expect(Command::new("chown").arg("postgres").arg(&dir), 0);
        }
        let initdb = ["-A", "trust", "-U", "everett", "--no-sync", "-D", "data"];
        expect(postgres("initdb").current_dir(&dir).args(initdb), 0);
        let log = folder.join("postgres.log");
        Database { dir, log }
    }

    pub(crate) fn start(&self) -> Process {
        let log = fs::File::create(&self.log).expect("a log");
        let mut server = postgres("postgres");
        let quiet = ["-F", "-c", "listen_addresses=", "-D", "data", "-k"];
        server.current_dir(&self.dir).args(quiet).arg(&self.dir);
        server.stdout(log.try_clone().expect("a log")).stderr(log);
        let mut server = Process(server.spawn().expect("it starts"));
        wait_for("the server", || {
            let has_ended = server.0.try_wait().expect("a child").is_some();
            assert!(!has_ended, "it has ended");
            let mut ready = postgres("pg_isready");
            let ready = ready
                .current_dir(&self.dir)
                .arg("-h")
                .arg(&self.dir)
                .output();
            ready.expect("it starts").status.success().then_some(())
        });
        server
    }

    /// Ends the connections of the server, and then the server.
    pub(crate) fn stop(&self, mut server: Process) {
        let mut stop = postgres("pg_ctl");
        let stop = stop
            .current_dir(&self.dir)
            .args(["stop", "-m", "fast", "-D", "data"]);
        expect(stop, 0);
        server.0.wait().expect("its end");
    }

    pub(crate) fn url(&self) -> String {
        let socket = self.dir.to_string_lossy().replace('/', "%2F");
        format!("postgres://everett@{socket}/postgres")
    }
}

fn explored(folder: &Path, url: &str) -> u64 {
    let explored = status_of(folder, url)["jobs"]["explored"].as_u64();
    explored.expect("a number")
}

/// Returns the lines of a list of all runs.
fn list(folder: &Path, url: &str) -> String {
    text(&expect(
        everett(folder).args(["status", "--broker", url]),
        CLEAN,
    ))
}

/// A worker is busy when its server restarts. It continues with the same job.
#[test]
fn a_busy_worker_survives_a_restart_of_postgresql() {
    let folder = folder("upkeep-postgres");
    build(&folder, "endless", ENDLESS, &[]);
    let database = Database::new(&folder, "up");
    let (server, url) = (database.start(), database.url());
    let mut submit = everett(&folder);
    submit.args([
        "submit",
        "--broker",
        &url,
        "--job-work",
        "2000",
        "--out",
        "by",
    ]);
    expect(submit.args(["./endless", "--sym-stdin", "64"]), CLEAN);
    let mut worker = start_worker(&folder, &url, "one");
    wait_for("jobs", || (explored(&folder, &url) >= 3).then_some(()));
    database.stop(server);
    let server = database.start();
    let before = explored(&folder, &url);
    wait_for("more jobs", || {
        (explored(&folder, &url) > before + 2).then_some(())
    });
    kill(Pid::from_raw(worker.0.id() as i32), Signal::SIGINT).expect("it lives");
    assert!(worker.0.wait().expect("its end").success());
    assert!(list(&folder, &url).contains(" running: "));
    expect(
        everett(&folder).args(["cancel", "by", "--remove", "--broker", &url]),
        CLEAN,
    );
    assert_eq!(list(&folder, &url), "");
    database.stop(server);
    fs::remove_dir_all(&database.dir).expect("it can be removed");
}

/// Returns the process id in the lock file of a server.
fn server_id(folder: &Path) -> Pid {
    let lock = fs::read_to_string(folder.join("broker/lock")).expect("a lock");
    let (_, id) = lock.split_once("process ").expect("a process");
    let id = id.split(')').next().and_then(|id| id.parse().ok());
    Pid::from_raw(id.expect("a number"))
}

#[test]
fn a_folder_has_one_server() {
    let folder = folder("upkeep-lock");
    let (mut up, url) = start_server(&folder);
    let second = || {
        let mut second = everett(&folder);
        let refused = expect(second.args(["cluster", "up", "--dir", "broker"]), FAILED);
        let told = text(&refused);
        assert!(
            told.contains("broker is in use by nats-server (process "),
            "{told}"
        );
        assert!(told.contains(&url), "{told}");
    };
    second();
    // The server outlives the process that started it.
    up.0.kill().expect("it lives");
    up.0.wait().expect("its end");
    second();
    let lock = fs::File::open(folder.join("broker/lock")).expect("a lock");
    kill(server_id(&folder), Signal::SIGTERM).expect("it lives");
    wait_for("the end of the server", || lock.try_lock().ok());
    // A process that another test starts just now may have the file, too.
    lock.unlock().expect("it is held");
    drop(lock);
    start_server(&folder);
}

/// A worker that refuses a run leaves nothing behind, and the run to workers of its own build.
#[test]
fn a_worker_that_refuses_a_run_removes_its_folder() {
    let folder = folder("upkeep-refused");
    build(&folder, "few", FEW, &[]);
    let (_up, url) = start_server(&folder);
    let ours = || Secrets::from_environment(None).expect("no secrets");
    let mut broker = connect(&url, &ours(), None).expect("it answers");
    let (run, dir) = submitted(&mut *broker, &spec(&folder, "few", "by"));
    let files = folder.join("tmp");
    fs::create_dir(&files).expect("a folder");
    let mut worker = everett(&folder);
    worker.args(["worker", "--join", &url, "--quiet", "--workers", "2"]);
    // Nobody gets its job because the lease has expired.
    worker.args(["--lease", "1h"]);
    let told = text(&expect(worker.env("TMPDIR", &files), FAILED));
    assert!(
        told.contains("the run was submitted by everett test (test)")
            && told.contains("must be the same build"),
        "{told}"
    );
    let left: Vec<_> = fs::read_dir(&files).expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
    // Another worker gets the job.
    let session = Session::new();
    let spec = || WorkerSpec {
        name: "ours".to_owned(),
        build: test_build(),
        max_memory: None,
        scratch: Some(files.clone()),
        idle: Some(Duration::from_millis(500)),
        accept: None,
    };
    let broker = connect(&url, &ours(), Some(Duration::from_secs(30))).expect("it answers");
    let broker = Mutex::new(broker);
    // A slow broker may take longer than a worker stays.
    wait_for("the end of the run", || {
        let worked = Worker::new(spec(), &session).run(&broker, &mut |_| {});
        worked.expect("it works");
        let broker = &mut **broker.lock().expect("no poison");
        let status = status(broker, &run).expect("accounts");
        status.is_complete().then_some(())
    });
    let broker = &mut **broker.lock().expect("no poison");
    let result = results(broker, &dir, &session, &mut Silent).expect("results");
    assert!(result.summary.complete);
}

#[test]
fn errors_of_workers_are_not_interrupts() {
    let folder = folder("upkeep-codes");
    let refused = |words: &[&str], told: &str| {
        let refused = text(&expect(everett(&folder).arg("worker").args(words), FAILED));
        assert!(refused.contains(told), "{refused}");
    };
    refused(&["--join", "nats://127.0.0.1:1"], "the broker: ");
    refused(
        &["--join", "postgres://everett@127.0.0.1:1/x"],
        "the broker: ",
    );
    refused(
        &["--join", "http://127.0.0.1:1"],
        "not the address of a broker",
    );
    let unused = ["--join", "nats://127.0.0.1:1"];
    refused(
        &[&unused[..], &["--workers", "0"]].concat(),
        "'0' for '--workers",
    );
    refused(&[&unused[..], &["--lease", "0s"]].concat(), "at least 1s");
}

/// A worker that is to leave when there is no job leaves even if its broker does not answer.
#[test]
fn an_idle_worker_leaves_a_silent_broker() {
    let folder = folder("upkeep-silent");
    let (_up, url) = start_server(&folder);
    let mut worker = everett(&folder);
    worker.args(["worker", "--join", &url, "--workers", "1", "--idle", "3s"]);
    let log = folder.join("worker.log");
    let worker = worker.stderr(fs::File::create(&log).expect("a log"));
    let mut worker = Process(worker.spawn().expect("it starts"));
    wait_for("the worker", || {
        let log = fs::read_to_string(&log).expect("a log");
        log.contains("waits for jobs").then_some(())
    });
    kill(server_id(&folder), Signal::SIGSTOP).expect("it lives");
    let end = wait_for("its end", || worker.0.try_wait().expect("a child"));
    // It may have noticed that there is no job before the server was stopped.
    assert!(matches!(end.code(), Some(CLEAN | FAILED)), "{end}");
}

#[test]
fn runs_are_listed_and_removed_and_not_overwritten() {
    let folder = folder("upkeep-runs");
    build(&folder, "few", FEW, &[]);
    let (_up, url): (Up, String) = start_server(&folder);
    let submit = |out: &str, more: &[&str], code| {
        let mut submit = everett(&folder);
        submit
            .args(["submit", "--broker", &url, "--out", out])
            .args(more);
        text(&expect(submit.arg("./few"), code))
    };
    submit("by", &[], CLEAN);
    let named = fs::read(folder.join("by/cluster.json")).expect("a file");
    let told = submit("by", &[], FAILED);
    assert!(told.contains("it holds an earlier run"), "{told}");
    expect(
        everett(&folder).args(["run", "--out", "by", "./few"]),
        FAILED,
    );
    assert_eq!(
        fs::read(folder.join("by/cluster.json")).expect("a file"),
        named
    );
    let told = submit("other", &["--deterministic"], FAILED);
    assert!(
        told.contains("--deterministic is not possible on a cluster"),
        "{told}"
    );
    // Who joins decides how many workers there are, and the broker keeps what is explored.
    let told = submit("other", &["--workers", "3"], FAILED);
    assert!(
        told.contains("--workers cannot be chosen") && told.contains("join the broker"),
        "{told}"
    );
    let told = submit("other", &["--checkpoint", "1m"], FAILED);
    assert!(told.contains("--checkpoint has no meaning"), "{told}");
    let told = submit("other", &["--job-work", "0"], FAILED);
    assert!(told.contains("'0' for '--job-work"), "{told}");
    assert!(!folder.join("other").exists());
    submit("other", &[], CLEAN);
    assert_eq!(list(&folder, &url).lines().count(), 2);
    let cancel = |out: &str| {
        let mut cancel = everett(&folder);
        text(&expect(
            cancel.args(["cancel", "--remove", out, "--broker", &url]),
            CLEAN,
        ))
    };
    // The other run goes on and has the same program.
    let told = cancel("other");
    assert!(told.contains("the next removal"), "{told}");
    // Whoever takes home what is left so far is told that the cluster goes on with it.
    let mut early = everett(&folder);
    let early = early.args(["results", "by", "--broker", &url]);
    let told = text(&expect(early, INTERRUPTED));
    assert!(
        told.contains("workers of the cluster go on with the run"),
        "{told}"
    );
    let worker = [
        "worker",
        "--join",
        &url,
        "--quiet",
        "--workers",
        "1",
        "--idle",
        "1s",
    ];
    // A slow broker may take longer than a worker stays.
    wait_for("the end of the run", || {
        expect(everett(&folder).args(worker), CLEAN);
        let list = list(&folder, &url);
        list.contains(" finished: 100.000 % explored").then_some(())
    });
    let mut gather = everett(&folder);
    let told = text(&expect(
        gather.args(["results", "by", "--broker", &url]),
        CLEAN,
    ));
    // The time of `results` is not that of the workers.
    assert!(
        told.contains(" of workers, gathered in ") && !told.contains("/s)"),
        "{told}"
    );
    assert!(!told.contains("go on with"), "{told}");
    assert_eq!(summary(&folder.join("by"))["complete"], true);
    assert_eq!(cancel("by"), "");
    assert_eq!(list(&folder, &url), "");
}

pub(crate) fn spec(folder: &Path, program: &str, name: &str) -> RunSpec {
    RunSpec {
        all_tests: true,
        batch: Some(50),
        no_confirm: true,
        out: Some(folder.join(name)),
        ..RunSpec::new([folder.join(program)])
    }
}

/// Explores runs to their ends.
fn finished(folder: &Path, shared: &SharedMemory, count: u64) -> Vec<(RunId, PathBuf)> {
    build(folder, "few", FEW, &[]);
    let explored = (0..count).map(|number| {
        // Other limits make other runs.
        let spec = RunSpec {
            max_depth: Some(100 + number as u32),
            ..spec(folder, "few", &format!("by-{number}"))
        };
        let (run, dir) = submitted(&mut shared.connect(), &spec);
        let (status, _) = simulate(shared, &run, 2, number, Trouble::default());
        assert!(status.is_complete());
        (run, dir)
    });
    explored.collect()
}

#[test]
fn idle_workers_look_once_at_runs_that_are_over() {
    let folder = folder("upkeep-idle");
    let shared = SharedMemory::new(1000);
    finished(&folder, &shared, 5);
    let session = Session::new();
    let mut first = Slot::new(&shared, &session, 7);
    assert_eq!(first.worker.reseed(&mut first.broker).expect("it looks"), 0);
    // A worker that comes later need not look at the jobs of these runs at all.
    let mut later = Slot::new(&shared, &session, 8);
    let requests = |slot: &mut Slot<'_>| {
        let before = slot.broker.breaths;
        assert_eq!(
            slot.worker
                .balance(&mut slot.broker, true)
                .expect("it looks"),
            []
        );
        before - slot.broker.breaths
    };
    assert_eq!([(); 3].map(|()| requests(&mut later)), [1 + 2 * 5, 1, 1]);
}

#[test]
fn a_removed_run_takes_nothing_from_others() {
    let folder = folder("upkeep-removed");
    let shared = SharedMemory::new(1000);
    let runs = finished(&folder, &shared, 2);
    let mut broker = shared.connect();
    let [(one, one_dir), (two, two_dir)] = &runs[..] else {
        panic!("two runs");
    };
    let before = broker.objects().expect("a list").len() as u64;
    let removed = remove(&mut broker, one).expect("it is removed");
    let Removed::Objects(count) = removed else {
        panic!("{removed:?}");
    };
    assert_eq!(
        broker.objects().expect("a list").len() as u64,
        before - count
    );
    assert_eq!(broker.runs().expect("a list"), std::slice::from_ref(two));
    let session = Session::new();
    let gone = results(&mut broker, one_dir, &session, &mut Silent);
    let gone = gone.map(|_| ()).expect_err("it is gone").to_string();
    assert!(gone.contains("has no run"), "{gone}");
    let result = results(&mut broker, two_dir, &session, &mut Silent).expect("results");
    assert!(result.summary.complete);
    remove(&mut broker, two).expect("it is removed");
    // The states with which every run begins stay.
    let left = broker.objects().expect("a list").len();
    assert!(left <= 2, "{left} objects");
    assert!(status(&mut broker, two).is_err());
}

/// Wherever a submission is interrupted, its folder names a run of which the broker has nothing or
/// the beginning.
#[test]
fn a_submission_that_was_interrupted_can_be_found() {
    let folder = folder("upkeep-interrupted");
    build(&folder, "few", FEW, &[]);
    let (session, shared) = (Session::new(), SharedMemory::new(1000));
    let (mut unknown, mut known) = (0, 0);
    for breaths in 1.. {
        let mut broker = Mortal::new(&shared);
        broker.breaths = breaths;
        let dir = folder.join(format!("by-{breaths}"));
        let submission = Submission {
            spec: RunSpec {
                out: Some(dir.clone()),
                ..RunSpec::new([folder.join("few")])
            },
            build: test_build(),
            work: None,
            max_work: None,
            nonce: breaths.to_le_bytes().to_vec(),
            key: None,
        };
        let sent = Submitted::submit(&mut broker, submission, &session);
        let run = Submitted::of(&dir).expect("the folder names the run").run;
        match status(&mut shared.connect(), &run) {
            Ok(status) => known += u32::from(!status.is_over()),
            Err(Error::NoRun(_)) => unknown += 1,
            Err(error) => panic!("{error}"),
        }
        if sent.is_ok() {
            break;
        }
    }
    assert!(unknown > 1 && known > 1, "{unknown} and {known}");
}
