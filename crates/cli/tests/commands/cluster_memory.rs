//! A worker of a cluster that is short of memory sends states away to others that are not. The broker
//! is in-process, and the account of memory that of the test, so that nothing depends on the machine.

use crate::cluster::{Paths, submitted, test_build};
use crate::cluster_limits::spec;
use crate::common::samples::{FORKS, FORKS_PATHS};
use crate::common::{build, endings, folder, summary};
use everett::{MemoryAccount, Session, Silent, explore};
use everett_cluster::{
    Broker, RunId, SharedMemory, Station, Status, Worker, WorkerSpec, WorkerStep, paths, results,
    status,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const MIB: u64 = 1 << 20;

/// A process whose memory fills a little each time that somebody looks, and is nearly empty after it
/// was released.
#[derive(Debug, Default)]
struct Filling(AtomicU64);

impl MemoryAccount for Filling {
    fn used(&self) -> u64 {
        60 * MIB + self.0.fetch_add(MIB / 2, Ordering::Relaxed)
    }

    fn release(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Lets a worker explore jobs, at most this many, until there are none.
fn work(shared: &SharedMemory, session: &Session, (name, max_memory): (&str, u64), most: u64) {
    let spec = WorkerSpec {
        name: name.to_owned(),
        build: test_build(),
        max_memory: Some(max_memory),
        scratch: None,
        idle: None,
        accept: None,
    };
    let mut worker = Worker::new(spec, session);
    let broker: Mutex<Box<dyn Broker>> = Mutex::new(Box::new(shared.connect()));
    for _ in 0..most {
        let did = worker.step(&broker, &mut |_| {}).expect("it works");
        if matches!(did, WorkerStep::Nothing) {
            return;
        }
    }
}

/// One worker with little memory begins a run. Another one is there, or not, and explores what is left.
fn explored(shared: &SharedMemory, run: &RunId, is_beside: bool) -> (Status, Status) {
    let two = Station::new("large");
    if is_beside {
        two.report(&mut shared.connect(), run, 1).expect("a report");
    }
    let small = Session {
        memory: Arc::new(Filling::default()),
        ..Session::new()
    };
    let status = || status(&mut shared.connect(), run).expect("the accounts add up");
    work(shared, &small, ("small", 100 * MIB), 1);
    let before = status();
    work(shared, &Session::new(), ("large", 4096 * MIB), u64::MAX);
    (before, status())
}

/// The states of a worker that is short of memory are jobs for others.
#[test]
fn a_worker_that_is_short_of_memory_sends_states_away() {
    let folder = folder("cluster-memory");
    build(&folder, "forks", FORKS, &[]);
    let mut whole = Paths::default();
    explore(&spec(&folder, "whole"), &Session::new(), &mut whole).expect("it is explored");

    let shared = SharedMemory::new(100_000);
    let (run, dir) = submitted(&mut shared.connect(), &spec(&folder, "by"));
    let (before, after) = explored(&shared, &run, true);
    let small = before.loads.iter().find(|load| load.name == "small");
    let given = small.expect("a report").given_for_memory;
    // All states that have moved have done so for lack of memory, and wait for others.
    assert!(given > 0 && given == before.states_moved, "{before}");
    assert!(
        before.transfers > 0 && before.jobs_pending == before.transfers,
        "{before}"
    );
    // The other worker has explored them, and nothing is lost.
    assert!(
        after.is_complete() && after.workers["large"].jobs >= before.transfers,
        "{after}"
    );
    assert_eq!(after.work.paths, FORKS_PATHS);
    let reached = paths(&mut shared.connect(), &run).expect("each path once");
    assert_eq!(reached, whole.0);
    results(&mut shared.connect(), &dir, &Session::new(), &mut Silent).expect("results");
    assert_eq!(endings(&dir), endings(&folder.join("whole")));
    assert_eq!(
        summary(&dir)["weight"],
        summary(&folder.join("whole"))["weight"]
    );

    // If nobody is there, states stay on the disk.
    let shared = SharedMemory::new(100_000);
    let (run, _) = submitted(&mut shared.connect(), &spec(&folder, "alone"));
    let (before, after) = explored(&shared, &run, false);
    assert_eq!((before.states_moved, before.transfers), (0, 0));
    assert!(after.is_complete());
}
