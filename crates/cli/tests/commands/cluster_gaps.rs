//! A cluster whose broker loses objects, or does not answer for a while.

use crate::cluster::{
    CLEAN, Slot, Trouble, simulate, start_server, start_worker, status_of, submitted, test_build,
    wait_for,
};
use crate::cluster_upkeep::{Database, spec};
use crate::common::samples::{FORKS, FORKS_PATHS};
use crate::common::{build, check_weights, everett, expect, folder, summary, text};
use crate::postgres::postgres;
use everett::{Session, Silent};
use everett_cluster::{
    Broker, Hash, JobId, Key, Kind, MemoryBroker, Removed, RunId, Secrets, SharedMemory, Worker,
    WorkerSpec, WorkerStep, cancel, connect, paths, remove, reseed, results, status,
};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const FAILED: i32 = 2;

/// A run that was explored to its end.
struct Explored {
    shared: SharedMemory,
    broker: MemoryBroker,
    run: RunId,
    dir: PathBuf,
}

impl Explored {
    fn new(folder: &Path, name: &str) -> Explored {
        let shared = SharedMemory::new(1000);
        let mut broker = shared.connect();
        let (run, dir) = submitted(&mut broker, &spec(folder, "forks", name));
        let (status, _) = simulate(&shared, &run, 2, 1, Trouble::default());
        assert!(status.is_complete() && status.jobs > 10);
        Explored {
            shared,
            broker,
            run,
            dir,
        }
    }

    /// Returns the objects that outcomes with ended paths name in a field.
    fn objects(&mut self, field: fn(&Value) -> &Value) -> Vec<Hash> {
        let outcomes = self.broker.list(Kind::Outcome, &self.run).expect("a list");
        let outcomes = outcomes.iter().map(|(_, outcome)| {
            let outcome: Value = serde_json::from_slice(outcome).expect("JSON");
            outcome
        });
        let with_paths = outcomes.filter(|outcome| outcome["paths"].as_u64() > Some(0));
        let objects = with_paths.map(|outcome| field(&outcome).as_str().and_then(Hash::parse));
        objects.flatten().collect()
    }

    fn lose(&mut self, objects: &[Hash]) {
        assert!(!objects.is_empty());
        self.broker.remove_objects(objects).expect("removed");
    }

    /// Lets workers explore what is open, and expects all paths, each once.
    fn expect_all(&mut self) {
        let (status, _) = simulate(&self.shared, &self.run, 2, 5, Trouble::default());
        assert!(status.is_complete() && status.jobs_again > 0, "{status}");
        let found = paths(&mut self.broker, &self.run).expect("each path once");
        assert_eq!(found.len() as u64, FORKS_PATHS);
        let result = results(&mut self.broker, &self.dir, &Session::new(), &mut Silent);
        assert!(result.expect("results").summary.complete);
        check_weights(&summary(&self.dir));
    }
}

#[test]
fn a_lost_result_is_explored_again() {
    let folder = folder("gaps-results");
    build(&folder, "forks", FORKS, &[]);
    let mut explored = Explored::new(&folder, "by");
    let lost = explored.objects(|outcome| &outcome["results"])[0];
    explored.lose(&[lost]);
    // Whoever fetches the results is told, and gets the others.
    let (dir, session) = (explored.dir.clone(), Session::new());
    let result = results(&mut explored.broker, &dir, &session, &mut Silent).expect("results");
    let weight = &result.summary.weight;
    assert!(!result.summary.complete && weight.finished > 0.0 && weight.unknown == 0.0);
    assert!(weight.pending > 0.0);
    check_weights(&summary(&dir));
    let said = summary(&dir)["warnings"].to_string();
    assert!(said.contains("has lost what 1 job came to"), "{said}");
    explored.expect_all();
}

/// An idle worker notices the loss before anybody fetches the results. The states from which the
/// job began may be lost, too.
#[test]
fn an_idle_worker_fills_the_gaps_of_a_run_that_is_over() {
    let folder = folder("gaps-idle");
    build(&folder, "forks", FORKS, &[]);
    for (number, all) in [false, true].into_iter().enumerate() {
        let mut explored = Explored::new(&folder, &format!("by-{number}"));
        let mut lost = explored.objects(|outcome| &outcome["results"]);
        match all {
            // Nothing is left but the program.
            true => lost.extend(explored.objects(|outcome| &outcome["children"][0]["states"])),
            false => lost.truncate(3),
        }
        explored.lose(&lost);
        let session = Session::new();
        let mut slot = Slot::new(&explored.shared, &session, 9);
        let published = slot.worker.reseed(&mut explored.broker).expect("it looks");
        assert!(published > 0);
        explored.expect_all();
        assert_eq!(
            slot.worker.reseed(&mut explored.broker).expect("it looks"),
            0
        );
    }
}

/// A job whose states are lost is created again by the job that created it.
#[test]
fn lost_states_are_created_again() {
    let folder = folder("gaps-states");
    build(&folder, "forks", FORKS, &[]);
    let shared = SharedMemory::new(1000);
    let mut broker = shared.connect();
    let (run, dir) = submitted(&mut broker, &spec(&folder, "forks", "by"));
    let session = Session::new();
    let mut slot = Slot::new(&shared, &session, 0);
    for _ in 0..12 {
        slot.step(false).expect("it works");
    }
    let open = status(&mut broker, &run).expect("accounts");
    assert!(open.jobs_pending > 0 && open.jobs_again == 0);
    let outcomes = broker.list(Kind::Outcome, &run).expect("a list");
    let states = outcomes.iter().flat_map(|(_, outcome)| {
        let outcome: Value = serde_json::from_slice(outcome).expect("JSON");
        let children = outcome["children"].as_array().cloned().unwrap_or_default();
        let states = children
            .into_iter()
            .filter_map(|child| child["states"].as_str().and_then(Hash::parse));
        states.collect::<Vec<_>>()
    });
    broker
        .remove_objects(&states.collect::<Vec<_>>())
        .expect("removed");
    drop(slot);
    shared.expire_leases();
    let (status, _) = simulate(&shared, &run, 2, 3, Trouble::default());
    assert!(status.is_complete() && status.jobs_again > 0, "{status}");
    assert_eq!(status.failures, Vec::<String>::new());
    let found = paths(&mut broker, &run).expect("each path once");
    assert_eq!(found.len() as u64, FORKS_PATHS);
    let result = results(&mut broker, &dir, &session, &mut Silent).expect("results");
    assert!(result.summary.complete);
}

/// A server that did not write everything to its disk before a loss of power has lost outcomes that it
/// had acknowledged, or damaged them. Their jobs are in nobody's hands, and are explored again.
#[test]
fn lost_and_damaged_outcomes_are_explored_again() {
    let folder = folder("gaps-outcomes");
    build(&folder, "forks", FORKS, &[]);
    for is_damaged in [false, true] {
        let mut explored = Explored::new(&folder, &format!("by-{is_damaged}"));
        let all = explored.broker.list(Kind::Outcome, &explored.run);
        let all = all.expect("a list");
        // A worker has noted that the run is over.
        let noted = reseed(&mut explored.broker, &explored.run).expect("it looks");
        assert_eq!(noted, None);
        // Some in the middle, whose jobs have left others, and some at the end.
        for (job, _) in [&all[1], &all[all.len() / 2], &all[all.len() - 1]] {
            let key = Key::of_job(Kind::Outcome, &explored.run, job);
            match is_damaged {
                true => explored.broker.note(&key, b"damaged").expect("noted"),
                false => explored.shared.lose_record(&key),
            }
        }
        let before = status(&mut explored.broker, &explored.run).expect("accounts");
        assert!(!before.is_over(), "{before}");
        let (dir, session) = (explored.dir.clone(), Session::new());
        let result = results(&mut explored.broker, &dir, &session, &mut Silent).expect("results");
        assert!(!result.summary.complete && result.summary.weight.pending > 0.0);
        check_weights(&summary(&dir));
        let said = summary(&dir)["warnings"].to_string();
        assert!(
            said.contains("workers of the cluster explore it again"),
            "{said}"
        );
        let (after, _) = simulate(&explored.shared, &explored.run, 2, 5, Trouble::default());
        assert!(after.is_complete(), "{after}");
        assert_eq!(after.jobs_again > 0, is_damaged, "{after}");
        let found = paths(&mut explored.broker, &explored.run).expect("each path once");
        assert_eq!(found.len() as u64, FORKS_PATHS);
        let result = results(&mut explored.broker, &dir, &session, &mut Silent).expect("results");
        assert!(result.summary.complete);
    }
}

/// A run whose records cannot be read, because they are damaged or belong to another version, holds
/// up no other run.
#[test]
fn a_run_that_cannot_be_read_is_set_aside() {
    let folder = folder("gaps-aside");
    build(&folder, "forks", FORKS, &[]);
    let shared = SharedMemory::new(1000);
    let mut broker = shared.connect();
    let (run, _) = submitted(&mut broker, &spec(&folder, "forks", "by"));
    let old = RunId::parse("00ab").expect("a name");
    let manifest = br#"{"protocol": 1, "build": {"version": "0.1", "digest": "old"}, "other": 3}"#;
    broker
        .record(&Key::of_run(Kind::Run, &old), manifest)
        .expect("recorded");
    let junk = RunId::parse("00cd").expect("a name");
    broker
        .record(&Key::of_run(Kind::Run, &junk), b"junk")
        .expect("recorded");
    let told = status(&mut broker, &old).expect_err("another version");
    assert!(
        told.to_string().contains("everett 0.1 (old), protocol 1"),
        "{told}"
    );
    let session = Session::new();
    let spec = WorkerSpec {
        name: "one".to_owned(),
        build: test_build(),
        max_memory: None,
        scratch: None,
        // Idle workers look for jobs that nobody has after five seconds.
        idle: Some(Duration::from_secs(7)),
        accept: None,
    };
    let connection: Mutex<Box<dyn Broker>> = Mutex::new(Box::new(shared.connect()));
    let mut aside = Vec::new();
    let worked = Worker::new(spec, &session).run(&connection, &mut |did| {
        if let WorkerStep::SetAside(run, why) = did {
            aside.push((run.clone(), why.clone()));
        }
    });
    worked.expect("it goes on");
    assert!(status(&mut broker, &run).expect("accounts").is_complete());
    // It says so once.
    let runs: Vec<&RunId> = aside.iter().map(|(run, _)| run).collect();
    assert_eq!(runs, [&old, &junk], "{aside:?}");
    assert!(aside[0].1.contains("protocol 1"), "{aside:?}");
}

/// Publishes bytes to a NATS server.
fn publish_to_nats(url: &str, subject: &str, bytes: &str) {
    let address = url.strip_prefix("nats://").expect("an address");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = bytes.len();
    let text =
        format!("CONNECT {{\"verbose\":false}}\r\nPUB {subject} {length}\r\n{bytes}\r\nPING\r\n");
    stream.write_all(text.as_bytes()).expect("it reads");
    let mut told = String::new();
    while !told.contains("PONG") {
        let mut some = [0; 4096];
        let count = stream.read(&mut some).expect("it answers");
        assert!(count > 0, "{told}");
        told += &String::from_utf8_lossy(&some[..count]);
    }
}

/// Lets a worker explore a run while its queue has messages that are no jobs.
fn explore_beside_junk(folder: &Path, url: &str) {
    build(folder, "forks", FORKS, &[]);
    let mut submit = everett(folder);
    submit.args(["submit", "--broker", url, "--out", "by", "./forks"]);
    expect(&mut submit, CLEAN);
    // A slow broker may take longer than a worker stays.
    wait_for("the end of the run", || {
        let mut worker = everett(folder);
        worker.args(["worker", "--join", url, "--workers", "1", "--lease", "1s"]);
        // Each of the messages would be handed out again meanwhile.
        let told = text(&expect(worker.args(["--quiet", "--idle", "3s"]), CLEAN));
        assert_eq!(told, "");
        (status_of(folder, url)["complete"] == true).then_some(())
    });
}

#[test]
fn what_is_no_job_in_the_queue_of_nats_is_dropped() {
    let folder = folder("gaps-junk-nats");
    let (_up, url) = start_server(&folder);
    // This creates the queue.
    expect(everett(&folder).args(["status", "--broker", &url]), CLEAN);
    for number in 0..20 {
        publish_to_nats(&url, &format!("everett.job.ab.{number}"), "junk");
    }
    explore_beside_junk(&folder, &url);
}

#[test]
fn what_is_no_job_in_the_queue_of_postgresql_is_dropped() {
    let folder = folder("gaps-junk-postgres");
    let database = Database::new(&folder, "junk");
    let (server, url) = (database.start(), database.url());
    // This creates the tables.
    expect(everett(&folder).args(["status", "--broker", &url]), CLEAN);
    let query = |what: &str| {
        let mut psql = postgres("psql");
        psql.current_dir(&database.dir).arg("-h").arg(&database.dir);
        psql.args(["-U", "everett", "-d", "postgres", "-tAc", what]);
        text(&expect(&mut psql, CLEAN))
    };
    query(
        "INSERT INTO everett_jobs (run, job, ticket) SELECT 'ab', n, 'junk' FROM generate_series(1, 20) n",
    );
    explore_beside_junk(&folder, &url);
    assert_eq!(query("SELECT count(*) FROM everett_jobs").trim(), "0");
    database.stop(server);
    fs::remove_dir_all(&database.dir).expect("it can be removed");
}

/// The description of a run with very many files is larger than a message of NATS may be.
#[test]
fn a_record_may_be_larger_than_a_message() {
    let folder = folder("gaps-large");
    build(&folder, "forks", FORKS, &[]);
    let (_up, url) = start_server(&folder);
    let secrets = Secrets::from_environment(None).expect("no secrets");
    let mut broker = connect(&url, &secrets, None).expect("it answers");
    let broker = &mut *broker;
    let (run, _) = submitted(broker, &spec(&folder, "forks", "by"));
    let manifest = broker.look_up(&Key::of_run(Kind::Run, &run));
    let mut large = manifest.expect("a record").expect("a manifest");
    large.resize(3 << 20, b' ');
    let other = RunId::parse("ab12").expect("a name");
    let key = Key::of_run(Kind::Run, &other);
    assert!(broker.record(&key, &large).expect("recorded") == large);
    // The first value counts.
    assert!(broker.record(&key, b"another").expect("recorded") == large);
    assert!(broker.look_up(&key).expect("a record") == Some(large.clone()));
    assert!(!status(broker, &other).expect("accounts").is_over());
    // The removal of another run takes nothing of it.
    cancel(broker, &other).expect("cancelled");
    let removed = remove(broker, &run).expect("removed");
    assert!(matches!(removed, Removed::Objects(_)), "{removed:?}");
    assert!(broker.look_up(&key).expect("a record") == Some(large));
}

/// What workers report to each other is advice: damaged, it keeps nobody from anything.
#[test]
fn damaged_advice_does_no_harm() {
    let folder = folder("gaps-advice");
    build(&folder, "forks", FORKS, &[]);
    let mut explored = Explored::new(&folder, "by");
    let stranger = JobId::parse("12").expect("a name");
    for kind in [Kind::Worker, Kind::Request] {
        let key = Key::of_job(kind, &explored.run, &stranger);
        explored.broker.note(&key, b"junk").expect("noted");
    }
    for kind in [Kind::Round, Kind::Coverage] {
        let key = Key::of_run(kind, &explored.run);
        explored.broker.note(&key, b"junk").expect("noted");
    }
    let status = status(&mut explored.broker, &explored.run).expect("accounts");
    assert!(status.is_complete());
    let result = results(
        &mut explored.broker,
        &explored.dir,
        &Session::new(),
        &mut Silent,
    );
    assert!(result.expect("results").summary.complete);
}

/// Nobody explores anything of a cancelled run again: what was lost is unknown, and the rest counts.
#[test]
fn a_lost_result_of_a_cancelled_run_is_unknown() {
    let folder = folder("gaps-cancelled");
    build(&folder, "forks", FORKS, &[]);
    let mut explored = Explored::new(&folder, "by");
    let lost = explored.objects(|outcome| &outcome["results"])[0];
    explored.lose(&[lost]);
    cancel(&mut explored.broker, &explored.run).expect("cancelled");
    let (dir, session) = (explored.dir.clone(), Session::new());
    let result = results(&mut explored.broker, &dir, &session, &mut Silent).expect("results");
    let weight = &result.summary.weight;
    assert!(!result.summary.complete && weight.unknown > 0.0 && weight.finished > 0.0);
    let summary = summary(&dir);
    check_weights(&summary);
    let said = summary.to_string();
    assert!(said.contains("its results are lost"), "{said}");
    assert!(summary["paths"]["completed"].as_u64() > Some(0), "{said}");
}

/// Whether a proxy holds back all data, and how many connections it has accepted.
#[derive(Default)]
struct Valve {
    is_shut: Mutex<bool>,
    changed: Condvar,
    accepted: AtomicU64,
}

impl Valve {
    fn set(&self, is_shut: bool) {
        *self.is_shut.lock().expect("a lock") = is_shut;
        self.changed.notify_all();
    }

    /// Waits until data may pass.
    fn pass(&self) {
        let is_shut = self.is_shut.lock().expect("a lock");
        drop(self.changed.wait_while(is_shut, |is_shut| *is_shut));
    }

    fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }
}

/// Copies bytes while the valve is open.
fn copy(valve: &Valve, mut from: impl Read, mut to: impl Write) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        valve.pass();
        if to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// Starts a proxy for the socket of a database. Returns its port.
fn start_proxy(database: &Database, valve: &Arc<Valve>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (socket, valve) = (database.dir.join(".s.PGSQL.5432"), valve.clone());
    let serve = move |client: TcpStream| {
        valve.accepted.fetch_add(1, Ordering::Relaxed);
        let (valve, socket) = (valve.clone(), socket.clone());
        std::thread::spawn(move || {
            valve.pass();
            let Ok(server) = UnixStream::connect(socket) else {
                return;
            };
            let other = (
                client.try_clone().expect("a socket"),
                server.try_clone().expect("a socket"),
            );
            let there = valve.clone();
            std::thread::spawn(move || {
                copy(&there, &other.0, &other.1);
                let _ = other.1.shutdown(Shutdown::Both);
            });
            copy(&valve, &server, &client);
            let _ = client.shutdown(Shutdown::Both);
        });
    };
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    port
}

/// PostgreSQL accepts connections and never answers: commands say so, and a worker goes on when it
/// answers again.
#[test]
fn a_database_that_does_not_answer_is_given_up_and_asked_again() {
    let folder = folder("gaps-silence");
    build(&folder, "forks", FORKS, &[]);
    let database = Database::new(&folder, "still");
    let (server, url) = (database.start(), database.url());
    let valve = Arc::new(Valve::default());
    let port = start_proxy(&database, &valve);
    let by_proxy = format!(
        "postgres://everett@127.0.0.1:{port}/postgres?connect_timeout=4&tcp_user_timeout=4"
    );
    let worker = start_worker(&folder, &by_proxy, "one");
    wait_for("the worker", || {
        let log = fs::read_to_string(folder.join("one.log")).expect("a log");
        log.contains("waits for jobs").then_some(())
    });
    valve.set(true);
    let refused = expect(
        everett(&folder).args(["status", "--broker", &by_proxy]),
        FAILED,
    );
    let told = text(&refused);
    let address = format!("127.0.0.1:{port} accepts connections but has not answered for 4 s");
    assert!(told.contains(&address), "{told}");
    // The worker gives up its connection, and tries others.
    let before = valve.accepted();
    wait_for("more attempts", || {
        (valve.accepted() > before + 1).then_some(())
    });
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
    expect(submit.args(["--all-tests", "./forks"]), CLEAN);
    valve.set(false);
    wait_for("the end of the run", || {
        (status_of(&folder, &url)["complete"] == true).then_some(())
    });
    drop(worker);
    database.stop(server);
    fs::remove_dir_all(&database.dir).expect("it can be removed");
}
