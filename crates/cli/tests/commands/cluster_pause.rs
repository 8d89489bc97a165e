//! A run on a cluster pauses: workers hand back what they hold of it and explore other runs, and it
//! goes on, with other workers, as if nothing had happened.

use crate::cluster::{
    CLEAN, Slot, Trouble, simulate, spec, start_server, start_worker, status_of, submitted,
    wait_for,
};
use crate::cluster_elastic::reached;
use crate::common::samples::{ENDLESS, FORKS};
use crate::common::{build, endings, everett, expect, folder, summary, text};
use crate::postgres::start_postgres;
use everett::{RunSpec, Session, Silent, explore};
use everett_cluster::{Broker, SharedMemory, pause, reseed, results, status, unpause};
use serde_json::Value;
use std::path::Path;

/// A program with 32 paths.
const FEW: &str = r#"
#include <everett.h>
int main(void) {
  unsigned char bytes[5];
  int count = 0;
  everett_make_symbolic(bytes, sizeof bytes, "bytes");
  for (int at = 0; at < 5; at++)
    if (bytes[at] > 100)
      count += at;
  return count;
}
"#;

#[test]
fn a_paused_run_goes_on_with_other_workers() {
    let folder = folder("pause");
    build(&folder, "forks", FORKS, &[]);
    let session = Session::new();
    explore(&spec(&folder, "whole", &["forks"]), &session, &mut Silent).expect("explored");
    let shared = SharedMemory::new(1000);
    let mut broker = shared.connect();
    let (run, dir) = submitted(&mut broker, &spec(&folder, "by", &["forks"]));
    let mut slot = Slot::new(&shared, &session, 0);
    // The worker has explored a job, and has another one.
    for _ in 0..4 {
        slot.step(false).expect("it works");
    }
    pause(&mut broker, &run).expect("it pauses");
    pause(&mut broker, &run).expect("twice is once");
    // It hands back what it has; all other jobs leave the queue.
    while slot.step(false).expect("it works") {}
    assert_eq!(broker.waiting().expect("a number"), 0);
    let before = status(&mut broker, &run).expect("accounts");
    assert_eq!((before.state(), before.is_over()), ("paused", false));
    assert!(
        before.jobs_leased == 0 && before.jobs_pending > 0,
        "{before}"
    );
    assert!(
        before.progress().ends_with(", paused"),
        "{}",
        before.progress()
    );
    // An idle worker does not put them back.
    assert_eq!(reseed(&mut broker, &run).expect("it looks"), Some(0));
    assert_eq!(broker.waiting().expect("a number"), 0);
    // Another run is explored meanwhile.
    let another = RunSpec {
        batch: Some(60),
        ..spec(&folder, "other", &["forks"])
    };
    let (other, _) = submitted(&mut broker, &another);
    assert!(
        simulate(&shared, &other, 2, 1, Trouble::default())
            .0
            .is_complete()
    );
    let same = status(&mut broker, &run).expect("accounts");
    assert_eq!(same.jobs, before.jobs);
    unpause(&mut broker, &run).expect("it goes on");
    assert_eq!(
        status(&mut broker, &run).expect("accounts").state(),
        "running"
    );
    assert_eq!(broker.waiting().expect("a number"), before.jobs_pending);
    let (after, _) = simulate(&shared, &run, 2, 2, Trouble::default());
    assert!(after.is_complete());
    results(&mut broker, &dir, &session, &mut Silent).expect("results");
    assert_eq!(reached(&dir), reached(&folder.join("whole")));
    let error = pause(&mut broker, &run)
        .expect_err("it is finished")
        .to_string();
    assert!(error.contains("the run is finished"), "{error}");
}

/// Workers die at any operation while they take jobs of a paused run out of the queue, and a job
/// of a worker that died before the pause is handed out again during it.
#[test]
fn a_worker_may_die_while_a_run_is_paused() {
    let folder = folder("pause-deaths");
    build(&folder, "few", FEW, &[]);
    let session = Session::new();
    explore(&spec(&folder, "whole", &["few"]), &session, &mut Silent).expect("explored");
    let whole = reached(&folder.join("whole"));
    let mut died = 0;
    // To drop a job takes seven operations, so deaths hit all of them.
    for breaths in (1..).step_by(5) {
        let shared = SharedMemory::new(1000);
        let mut broker = shared.connect();
        let out = format!("by{breaths}");
        let (run, dir) = submitted(&mut broker, &spec(&folder, &out, &["few"]));
        let mut dead = Slot::new(&shared, &session, 0);
        for _ in 0..4 {
            dead.step(false).expect("it works");
        }
        pause(&mut broker, &run).expect("it pauses");
        shared.expire_leases();
        let mut slot = Slot::new(&shared, &session, 1);
        slot.broker.breaths = breaths;
        slot.broker.after = breaths % 2 == 0;
        let is_dead = loop {
            match slot.step(false) {
                Ok(true) => {}
                Ok(false) => break false,
                Err(error) => {
                    assert!(slot.broker.is_dead, "{error}");
                    break true;
                }
            }
        };
        if !is_dead {
            // All of it is back, also what the dead worker had.
            let status = status(&mut broker, &run).expect("accounts");
            assert_eq!(status.jobs_leased, 0, "{status}");
        }
        unpause(&mut broker, &run).expect("it goes on");
        let (after, _) = simulate(&shared, &run, 2, breaths, Trouble::default());
        assert!(after.is_complete());
        results(&mut broker, &dir, &session, &mut Silent).expect("results");
        assert_eq!(reached(&dir), whole);
        if !is_dead {
            break;
        }
        died += 1;
    }
    assert!(died > 5, "{died}");
}

fn explored(status: &Value) -> u64 {
    status["jobs"]["explored"].as_u64().expect("a number")
}

fn pause_over(folder: &Path, url: &str) {
    build(folder, "few", FEW, &[]);
    build(folder, "endless", ENDLESS, &[]);
    let on = |words: &[&str], code: i32| {
        text(&expect(
            everett(folder).args(words).args(["--broker", url]),
            code,
        ))
    };
    let submit = |out: &str, program: &[&str]| {
        let words = [
            "submit",
            "--broker",
            url,
            "--job-work",
            "500",
            "--no-confirm",
        ];
        let more = ["--all-tests", "--batch", "50", "--out", out];
        let mut submit = everett(folder);
        expect(submit.args(words).args(more).args(program), CLEAN);
    };
    submit("by", &["./endless", "--sym-stdin", "64"]);
    let worker = start_worker(folder, url, "one");
    wait_for("a job", || {
        (explored(&status_of(folder, url)) > 1).then_some(())
    });
    on(&["pause", "by"], CLEAN);
    // The worker hands back what it has, takes the jobs out of the queue, and explores another run.
    let paused = wait_for("all of it", || {
        let status = status_of(folder, url);
        (status["jobs"]["leased"] == 0).then_some(status)
    });
    assert_eq!(
        (&paused["paused"], &paused["over"]),
        (&true.into(), &false.into())
    );
    submit("other", &["./few"]);
    on(&["watch", "--quiet", "other"], CLEAN);
    // The worker may have been about to begin with a job when the run was paused.
    let paused = status_of(folder, url);
    submit("again", &["./few"]);
    on(&["watch", "--quiet", "again"], CLEAN);
    let still = status_of(folder, url);
    assert_eq!(
        (explored(&still), &still["jobs"]["leased"]),
        (explored(&paused), &0.into())
    );
    assert!(on(&["status", "by"], CLEAN).starts_with("paused: "));
    assert!(on(&["status"], CLEAN).contains(" paused: "));
    // It goes on with another worker.
    drop(worker);
    let worker = start_worker(folder, url, "two");
    on(&["unpause", "by"], CLEAN);
    wait_for("more jobs", || {
        let status = status_of(folder, url);
        assert_eq!(status["paused"], false);
        (status["workers"]["two"]["jobs"].as_u64() > Some(0)).then_some(())
    });
    on(&["cancel", "by"], CLEAN);
    assert!(on(&["pause", "by"], 2).contains("the run is cancelled"));
    // A run that is paused before anybody has seen it is explored as a whole afterwards.
    drop(worker);
    submit("late", &["./few"]);
    on(&["pause", "late"], CLEAN);
    let _worker = start_worker(folder, url, "three");
    submit("more", &["./few"]);
    on(&["watch", "--quiet", "more"], CLEAN);
    on(&["unpause", "late"], CLEAN);
    on(&["watch", "--quiet", "late"], CLEAN);
    on(&["results", "late"], CLEAN);
    on(&["results", "other"], CLEAN);
    let [late, other] = ["late", "other"].map(|out| folder.join(out));
    assert_eq!(endings(&late), endings(&other));
    assert_eq!(summary(&late)["complete"], true);
}

#[test]
fn a_run_pauses_over_nats() {
    let folder = folder("pause-nats");
    let (_up, url) = start_server(&folder);
    pause_over(&folder, &url);
}

#[test]
fn a_run_pauses_over_postgresql() {
    let folder = folder("pause-postgres");
    let server = start_postgres(&folder, "pause-pg");
    pause_over(&folder, &server.url);
}
