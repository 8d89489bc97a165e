//! Limits of a whole run on several machines: all workers together keep them, and what they cut off
//! does not count as explored.

use crate::cluster::{FINDINGS, Trouble, simulate, submitted, test_build};
use crate::common::samples::{FORKS, FORKS_PATHS};
use crate::common::{build, check_weights, endings, everett, expect, folder, summary};
use everett::{MemoryAccount, RunSpec, Session, Silent};
use everett_cluster::{
    Broker, RunId, SharedMemory, Status, Submission, Submitted, Worker, WorkerSpec, WorkerStep,
    results, status, unpause,
};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) fn spec(folder: &Path, name: &str) -> RunSpec {
    RunSpec {
        all_tests: true,
        out: Some(folder.join(name)),
        batch: Some(50),
        no_confirm: true,
        ..RunSpec::new([folder.join("forks")])
    }
}

const TROUBLE: Trouble = Trouble {
    kills: 10,
    disorder: true,
};

#[test]
fn paths_are_limited_for_all_workers_together() {
    let folder = folder("cluster-max-paths");
    build(&folder, "forks", FORKS, &[]);
    for (most, seed) in [1, 7, 20, FORKS_PATHS - 1].into_iter().zip(0..) {
        for (workers, trouble) in [
            (1, Trouble::default()),
            (4, Trouble::default()),
            (3, TROUBLE),
        ] {
            let shared = SharedMemory::new(1000);
            let name = format!("by-{most}-{workers}");
            let spec = RunSpec {
                max_paths: Some(most),
                ..spec(&folder, &name)
            };
            let (run, dir) = submitted(&mut shared.connect(), &spec);
            let (status, _) = simulate(&shared, &run, workers, seed, trouble);
            assert_eq!(
                (status.work.paths, status.limit()),
                (most, Some("max-paths"))
            );
            assert!(status.is_over() && !status.is_complete());
            let mut broker = shared.connect();
            results(&mut broker, &dir, &Session::new(), &mut Silent).expect("results");
            let seen = summary(&dir);
            check_weights(&seen);
            assert_eq!(seen["complete"], false);
            assert_eq!(seen["stopped"], "max-paths");
            assert_eq!(seen["limits_hit"], serde_json::json!(["max-paths"]));
            assert_eq!(seen["tests"], most, "{seen:#}");
        }
    }
    // The rest is in a checkpoint.
    everett::explore(&spec(&folder, "whole"), &Session::new(), &mut Silent).expect("a run");
    expect(everett(&folder).args(["resume", "by-20-3"]), FINDINGS);
    let resumed = folder.join("by-20-3");
    assert_eq!(summary(&resumed)["complete"], true);
    assert_eq!(endings(&resumed), endings(&folder.join("whole")));
}

#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    let folder = folder("cluster-loose-limits");
    build(&folder, "forks", FORKS, &[]);
    let shared = SharedMemory::new(1000);
    let spec = RunSpec {
        max_paths: Some(FORKS_PATHS + 1),
        max_forks: Some(100_000),
        ..spec(&folder, "by")
    };
    let (run, dir) = submitted(&mut shared.connect(), &spec);
    let (status, _) = simulate(&shared, &run, 3, 2, TROUBLE);
    assert!(status.is_complete() && status.limit().is_none());
    let mut broker = shared.connect();
    results(&mut broker, &dir, &Session::new(), &mut Silent).expect("results");
    assert_eq!(summary(&dir)["complete"], true);
}

#[test]
fn forks_and_work_are_limited_for_all_workers_together() {
    let folder = folder("cluster-max-work");
    build(&folder, "forks", FORKS, &[]);
    let session = Session::new();
    for (forks, work) in [(Some(9), None), (None, Some(3_000))] {
        let spec = RunSpec {
            max_forks: forks,
            ..spec(&folder, &format!("by-{}", forks.is_some()))
        };
        let submission = Submission {
            spec,
            build: test_build(),
            work: Some(1_000),
            max_work: work,
            nonce: Vec::new(),
            key: None,
        };
        let shared = SharedMemory::new(1000);
        let mut broker = shared.connect();
        let submitted = Submitted::submit(&mut broker, submission, &session);
        let (dir, submitted) = submitted.expect("a run");
        let run = submitted.run;
        let (seen, _) = simulate(&shared, &run, 3, 4, TROUBLE);
        let name = if forks.is_some() {
            "max-forks"
        } else {
            "max-work"
        };
        assert_eq!(seen.limit(), Some(name));
        if let Some(forks) = forks {
            assert_eq!(seen.work.forks, forks);
        }
        assert!(seen.free.spent().is_some() && !seen.is_complete());
        let again = status(&mut broker, &run).expect("the accounts add up");
        assert_eq!(again.work, seen.work);
        results(&mut broker, &dir, &session, &mut Silent).expect("results");
        let summary = summary(&dir);
        check_weights(&summary);
        assert_eq!(
            (&summary["complete"], &summary["stopped"]),
            (&false.into(), &name.into())
        );
    }
}

/// Two limits at a time: if one of them stops a job, its consumption of the other is not lost.
#[test]
fn the_first_of_two_limits_counts() {
    let folder = folder("cluster-two-limits");
    build(&folder, "forks", FORKS, &[]);
    for seed in 0..20 {
        let shared = SharedMemory::new(1000);
        let spec = RunSpec {
            max_paths: Some(15),
            max_forks: Some(FORKS_PATHS),
            ..spec(&folder, &format!("by-{seed}"))
        };
        let (run, _) = submitted(&mut shared.connect(), &spec);
        let (status, _) = simulate(&shared, &run, 4, seed, TROUBLE);
        assert!(status.work.forks <= FORKS_PATHS && status.work.paths <= 15);
        let reached = match status.limit() {
            Some("max-paths") => status.work.paths == 15,
            Some("max-forks") => status.work.forks == FORKS_PATHS,
            _ => false,
        };
        assert!(reached, "{:?} {:?}", status.limit(), status.work);
    }
}

/// An account of which everything is used, whatever the process of the tests uses.
#[derive(Debug)]
struct UsedUp;

impl MemoryAccount for UsedUp {
    fn used(&self) -> u64 {
        1 << 40
    }
}

/// Lets a worker with a limit on memory explore a run, at most this many jobs. Returns its status, and
/// how often the worker had too little memory.
fn explore_with(
    shared: &SharedMemory,
    run: &RunId,
    (name, max_memory): (&str, Option<u64>),
    most: u32,
) -> (Status, u32) {
    let spec = WorkerSpec {
        name: name.to_owned(),
        build: test_build(),
        max_memory,
        scratch: None,
        idle: Some(Duration::from_secs(1)),
        accept: None,
    };
    let connection: Mutex<Box<dyn Broker>> = Mutex::new(Box::new(shared.connect()));
    let mut session = Session::new();
    if max_memory.is_some() {
        session.memory = Arc::new(UsedUp);
    }
    let (mut left, mut explored) = (0, 0);
    let worked = Worker::new(spec, &session).run(&connection, &mut |did| {
        left += u32::from(matches!(did, WorkerStep::NoMemory(of) if of == run));
        explored += u32::from(matches!(did, WorkerStep::Explored(..)));
        session.stop.fetch_or(explored >= most, Ordering::Relaxed);
    });
    worked.expect("it works");
    let status = status(&mut shared.connect(), run).expect("accounts");
    (status, left)
}

/// A worker with too little memory for a job leaves it to others. It does not hand out the same job
/// again and again.
#[test]
fn a_worker_without_memory_leaves_a_job_to_others() {
    let folder = folder("cluster-no-memory");
    build(&folder, "forks", FORKS, &[]);
    fs::write(
        folder.join("world.toml"),
        "[host.one]\nprogram = \"./forks\"\n[host.two]\nprogram = \"./forks\"\n",
    )
    .expect("written");
    let spec = RunSpec {
        out: Some(folder.join("by")),
        no_confirm: true,
        ..RunSpec::new([folder.join("world.toml")])
    };
    let shared = SharedMemory::new(100);
    let (run, _) = submitted(&mut shared.connect(), &spec);
    let explore =
        |name: &str, max_memory| explore_with(&shared, &run, (name, max_memory), u32::MAX);
    let (small, left) = explore("small", Some(1));
    assert!(left > 0 && small.jobs == 0 && !small.is_over(), "{small}");
    shared.expire_leases();
    // No worker ever has memory for it: the run does not wait for ever.
    for _ in 0..8 {
        explore("small", Some(1));
        shared.expire_leases();
    }
    let stuck = status(&mut shared.connect(), &run).expect("accounts");
    assert_eq!((stuck.state(), stuck.jobs), ("paused", 0));
    assert!(stuck.to_string().contains("enough memory"), "{stuck}");
    unpause(&mut shared.connect(), &run).expect("it goes on");
    let (large, left) = explore("large", None);
    assert_eq!(large.paused_because, None);
    assert!(left == 0 && large.is_complete(), "{large}");
}

/// A run of which every job was tried in vain is paused, also if there are several.
#[test]
fn a_run_whose_jobs_all_lack_memory_is_paused() {
    let folder = folder("cluster-no-memory-jobs");
    build(&folder, "forks", FORKS, &[]);
    let shared = SharedMemory::new(100_000);
    let (run, _) = submitted(&mut shared.connect(), &spec(&folder, "by"));
    let (begun, _) = explore_with(&shared, &run, ("large", None), 1);
    let jobs = begun.jobs_pending;
    assert!(jobs > 1, "{begun}");
    let small = || {
        let (status, left) = explore_with(&shared, &run, ("small", Some(1)), u32::MAX);
        shared.expire_leases();
        (status, u64::from(left))
    };
    for _ in 0..5 {
        let (status, left) = small();
        assert!(
            !status.is_paused && left == jobs,
            "{left} of {jobs}: {status}"
        );
    }
    let (paused, _) = small();
    assert_eq!(
        (paused.state(), paused.jobs),
        ("paused", begun.jobs),
        "{paused}"
    );
    unpause(&mut shared.connect(), &run).expect("it goes on");
    let (all, _) = explore_with(&shared, &run, ("large", None), u32::MAX);
    assert!(all.is_complete(), "{all}");
}
