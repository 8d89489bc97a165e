//! A cluster whose broker loses objects, or does not answer for a while.

use crate::cluster::{
    CLEAN, Slot, Trouble, simulate, start_worker, status_of, submitted, wait_for,
};
use crate::cluster_upkeep::{Database, spec};
use crate::common::samples::{FORKS, FORKS_PATHS};
use crate::common::{build, check_weights, everett, expect, folder, summary, text};
use everett::{Session, Silent};
use everett_cluster::{
    Broker, Hash, Kind, MemoryBroker, RunId, SharedMemory, cancel, paths, results, status,
};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

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
        "postgres://everett@127.0.0.1:{port}/postgres?connect_timeout=1&tcp_user_timeout=1"
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
    let address = format!("127.0.0.1:{port} accepts connections but has not answered for 1 s");
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
