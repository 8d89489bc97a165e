//! The time limit of a run on several machines counts by the clock of the broker, for all workers
//! together, and not while the run is paused.

use crate::cluster::{
    CLEAN, FINDINGS, Slot, Trouble, simulate, spec, start_server, start_worker, status_of,
    submitted, wait_for,
};
use crate::cluster_elastic::{HOST, reached};
use crate::common::samples::{ENDLESS, FORKS};
use crate::common::{build, check_weights, everett, expect, folder, summary, text};
use crate::postgres::start_postgres;
use everett::{RunSpec, Session, Silent, explore};
use everett_cluster::{Broker, SharedMemory, pause, reseed, results, status, unpause};
use std::fs;
use std::path::Path;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// Explores a part of a run until its time is over, and finishes it on one machine.
fn run_out_of_time(folder: &Path, name: &str, spec: &RunSpec) {
    let session = Session::new();
    let whole = RunSpec {
        out: Some(folder.join(format!("{name}-whole"))),
        ..spec.clone()
    };
    explore(&whole, &session, &mut Silent).expect("explored");
    let shared = SharedMemory::new(1000);
    let mut broker = shared.connect();
    let (run, dir) = submitted(&mut broker, spec);
    // The time before a worker begins does not count, nor does a pause then.
    shared.pass_time(3 * HOUR);
    pause(&mut broker, &run).expect("it pauses");
    shared.pass_time(7 * HOUR);
    unpause(&mut broker, &run).expect("it goes on");
    let mut slots = [0, 1].map(|number| Slot::new(&shared, &session, number));
    for _ in 0..4 {
        slots[0].step(false).expect("it works");
    }
    slots[1].step(false).expect("it works");
    shared.pass_time(HOUR / 2);
    pause(&mut broker, &run).expect("it pauses");
    shared.pass_time(5 * HOUR);
    unpause(&mut broker, &run).expect("it goes on");
    shared.pass_time(HOUR / 3);
    let before = status(&mut broker, &run).expect("accounts");
    assert!(!before.is_late && !before.is_over(), "{before}");
    shared.pass_time(HOUR);
    // One worker has a job, and is dead; the others drop all that they get.
    let late = status(&mut broker, &run).expect("accounts");
    assert!(
        late.is_late && !late.is_over() && late.jobs_leased > 0,
        "{late}"
    );
    shared.expire_leases();
    let (after, _) = simulate(&shared, &run, 2, 1, Trouble::default());
    assert_eq!(
        (after.state(), after.limit()),
        ("at a limit", Some("max-time"))
    );
    assert_eq!(
        (after.jobs, broker.waiting().expect("a number")),
        (late.jobs, 0)
    );
    assert_eq!(reseed(&mut broker, &run).expect("it looks"), None);
    results(&mut broker, &dir, &session, &mut Silent).expect("results");
    let seen = summary(&dir);
    check_weights(&seen);
    assert_eq!(
        (&seen["complete"], &seen["stopped"]),
        (&false.into(), &"max-time".into())
    );
    let out = dir.file_name().expect("a name");
    expect(
        everett(folder).arg("resume").arg(out),
        if name == "forks" { FINDINGS } else { CLEAN },
    );
    assert_eq!(
        reached(&dir),
        reached(&folder.join(format!("{name}-whole")))
    );
}

#[test]
fn the_time_of_a_run_counts_for_all_workers() {
    let folder = folder("cluster-max-time");
    build(&folder, "forks", FORKS, &[]);
    let limited = RunSpec {
        max_time: Some(HOUR),
        ..spec(&folder, "by", &["forks"])
    };
    run_out_of_time(&folder, "forks", &limited);
}

#[test]
fn the_time_of_a_scenario_counts_for_all_workers() {
    let folder = folder("cluster-max-time-worlds");
    build(&folder, "host", HOST, &["-g"]);
    let scenario = "[host.server]\nprogram = \"./host\"\n\
                    [host.client]\ncount = 2\nprogram = \"./host\"\nargs = [\"10.0.0.1\"]\n\
                    [fault.lost]\nkind = \"loss\"\nmost = 1\n[limits]\ntime = \"1h\"\n";
    fs::write(folder.join("world.toml"), scenario).expect("written");
    let limited = RunSpec {
        all_tests: true,
        no_confirm: true,
        out: Some(folder.join("by")),
        ..RunSpec::new([folder.join("world.toml")])
    };
    run_out_of_time(&folder, "world", &limited);
}

/// A run without an end stops at its time, also one whose only worker is in the middle of a job.
fn stop_over(folder: &Path, url: &str) {
    build(folder, "endless", ENDLESS, &[]);
    let words = [
        "submit",
        "--broker",
        url,
        "--no-confirm",
        "--max-time",
        "2s",
    ];
    let more = ["--out", "by", "./endless", "--sym-stdin", "64"];
    expect(everett(folder).args(words).args(more), CLEAN);
    let worker = start_worker(folder, url, "one");
    let on = |words: &[&str]| {
        text(&expect(
            everett(folder).args(words).args(["--broker", url]),
            CLEAN,
        ))
    };
    on(&["watch", "--quiet", "by"]);
    // A worker may just have begun with a job, and say so later. Killed, it says nothing more, and nobody has its job
    // when its lease is over.
    drop(worker);
    let status = wait_for("the end", || {
        let status = status_of(folder, url);
        (status["over"] == true).then_some(status)
    });
    assert_eq!(
        (&status["limit"], &status["over"]),
        (&"max-time".into(), &true.into())
    );
    assert!(on(&["status", "by"]).starts_with("at a limit: "));
    // Nothing of it is explored any more.
    let words = ["worker", "--join", url, "--workers", "1", "--idle", "1s"];
    expect(everett(folder).args(words), CLEAN);
    let again = status_of(folder, url);
    assert_eq!(again["jobs"]["explored"], status["jobs"]["explored"]);
    on(&["results", "by"]);
    let seen = summary(&folder.join("by"));
    assert_eq!(
        (&seen["complete"], &seen["stopped"]),
        (&false.into(), &"max-time".into())
    );
    check_weights(&seen);
}

#[test]
fn a_run_stops_at_its_time_over_nats() {
    let folder = folder("max-time-nats");
    let (_up, url) = start_server(&folder);
    stop_over(&folder, &url);
}

#[test]
fn a_run_stops_at_its_time_over_postgresql() {
    let folder = folder("max-time-postgres");
    let server = start_postgres(&folder, "time-pg");
    stop_over(&folder, &server.url);
}
