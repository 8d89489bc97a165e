//! Workers, brokers and machines come and go: a run that was begun on one machine continues on a
//! cluster, and comes back; a hundred workers die; the broker restarts.

use crate::cluster::mortal::Mortal;
use crate::cluster::{
    CLEAN, FINDINGS, Numbers, Process, Slot, Trouble, Up, simulate, start_server, start_worker,
    status_of, test_build, wait_for,
};
use crate::common::samples::FORKS;
use crate::common::{
    build, check_weights, endings, everett, expect, folder, mappings, summary, text,
};
use everett::{ResumeSpec, RunSpec, Session, Silent, explore, resume};
use everett_cluster::{Broker, SharedMemory, Submission, Submitted, cancel, results, status};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Returns the results that do not depend on who explored what.
pub(crate) fn reached(out: &Path) -> (Vec<String>, Vec<Value>) {
    let summary = summary(out);
    check_weights(&summary);
    let mut findings: Vec<String> = summary["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|finding| {
            format!(
                "{} {} {}",
                finding["kind"], finding["file"], finding["line"]
            )
        })
        .collect();
    findings.sort();
    let fields = ["complete", "paths", "coverage", "tests", "worlds", "weight"];
    let mut values: Vec<Value> = fields.map(|name| summary[name].clone()).to_vec();
    values.push(findings.into());
    (endings(out), values)
}

/// Stops a run early, with some of it explored and some left.
fn stopped(spec: &RunSpec, limit: u64) {
    let spec = RunSpec {
        max_forks: Some(limit),
        ..spec.clone()
    };
    let result = explore(&spec, &Session::new(), &mut Silent).expect("it can be explored");
    let weight = &result.summary.weight;
    assert!(!result.summary.complete && weight.pending > 0.0);
}

/// Hands a run over to two workers, and compares the result with an undisturbed run.
fn hand_over(spec: &RunSpec, limit: u64) {
    let out = spec.out.clone().expect("a folder");
    let undisturbed = out.with_extension("whole");
    let whole = RunSpec {
        out: Some(undisturbed.clone()),
        ..spec.clone()
    };
    let session = Session::new();
    explore(&whole, &session, &mut Silent).expect("it can be explored");
    stopped(spec, limit);
    let shared = SharedMemory::new(1000);
    let handed = ResumeSpec {
        dir: out.clone(),
        ..ResumeSpec::default()
    };
    let submitted = Submitted::resume(
        &mut shared.connect(),
        &handed,
        (test_build(), None),
        &session,
    );
    let run = submitted.expect("it is handed over").run;
    let before = status(&mut shared.connect(), &run).expect("the accounts add up");
    assert!(!before.is_over() && before.jobs == 1, "{}", before.jobs);
    let (after, _) = simulate(&shared, &run, 2, 3, Trouble::default());
    assert!(after.is_complete() && after.jobs > 1, "{}", after.jobs);
    results(&mut shared.connect(), &out, &session, &mut Silent).expect("results");
    let (mine, theirs) = (reached(&out), reached(&undisturbed));
    assert_eq!(mine, theirs);
}

#[test]
fn a_run_begun_on_one_machine_goes_on_with_workers() {
    let folder = folder("handover");
    build(&folder, "forks", FORKS, &["-g"]);
    let spec = RunSpec {
        all_tests: true,
        no_confirm: true,
        out: Some(folder.join("out")),
        ..RunSpec::new([folder.join("forks")])
    };
    hand_over(&spec, 30);
}

pub(crate) const HOST: &str = r#"
#include <arpa/inet.h>
#include <everett.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int count, char **words) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7)};
  unsigned char bytes[2];
  if (count == 1) {
    bind(fd, (struct sockaddr *)&at, sizeof at);
    int sum = 0;
    for (int i = 0; i < 2; i++) {
      recv(fd, bytes, sizeof bytes, 0);
      for (int bit = 0; bit < 2; bit++)
        sum += bytes[0] >> bit & 1 ? bit + 1 : 0;
    }
    return sum;
  }
  inet_pton(AF_INET, words[1], &at.sin_addr);
  everett_make_symbolic(bytes, sizeof bytes, "bytes");
  for (int i = 0; i < 2; i++)
    if (bytes[1] >> i & 1)
      sleep(1);
  sendto(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&at, sizeof at);
  return 0;
}
"#;

#[test]
fn worlds_begun_on_one_machine_go_on_with_workers() {
    let folder = folder("handover-worlds");
    build(&folder, "host", HOST, &["-g"]);
    let scenario = "[host.server]\nprogram = \"./host\"\n\
                    [host.client]\ncount = 2\nprogram = \"./host\"\nargs = [\"10.0.0.1\"]\n\
                    [fault.lost]\nkind = \"loss\"\nmost = 1\n";
    fs::write(folder.join("world.toml"), scenario).expect("written");
    for mapping in mappings() {
        let spec = RunSpec {
            all_tests: true,
            no_confirm: true,
            mapping: Some(mapping.to_owned()),
            out: Some(folder.join(mapping)),
            ..RunSpec::new([folder.join("world.toml")])
        };
        hand_over(&spec, 12);
    }
}

/// There and back: the cluster has explored a part when the run is taken home.
#[test]
fn a_run_that_was_handed_over_comes_back() {
    let folder = folder("handover-back");
    build(&folder, "forks", FORKS, &[]);
    let spec = RunSpec {
        all_tests: true,
        no_confirm: true,
        ..RunSpec::new([folder.join("forks")])
    };
    let at = |name: &str| RunSpec {
        out: Some(folder.join(name)),
        ..spec.clone()
    };
    let session = Session::new();
    explore(&at("whole"), &session, &mut Silent).expect("it can be explored");
    stopped(&at("out"), 20);
    let handed = ResumeSpec {
        dir: folder.join("out"),
        ..ResumeSpec::default()
    };
    let shared = SharedMemory::new(1000);
    let mut broker = shared.connect();
    let submitted = Submitted::resume(&mut broker, &handed, (test_build(), None), &session);
    let run = submitted.expect("it is handed over").run;
    // Two runs of a cluster would have one folder.
    let twice = Submitted::resume(&mut broker, &handed, (test_build(), None), &session);
    let error = twice.map(|_| ()).expect_err("it is going on").to_string();
    let expected = format!("submitted already, as run {run}, which is going on");
    assert!(error.contains(&expected), "{error}");
    let mut slot = Slot::new(&shared, &session, 0);
    for _ in 0..3 {
        slot.step(false).expect("it works");
    }
    cancel(&mut broker, &run).expect("it is cancelled");
    results(&mut broker, &handed.dir, &session, &mut Silent).expect("results");
    resume(&handed, &session, &mut Silent).expect("it goes on");
    assert_eq!(reached(&handed.dir), reached(&folder.join("whole")));
    // Now the run is at its end.
    let again = Submitted::resume(&mut broker, &handed, (test_build(), None), &session);
    let error = again.map(|_| ()).expect_err("nothing is left").to_string();
    assert!(error.contains("nothing to resume"), "{error}");
}

/// Wherever a handover is interrupted, the folder names the run of the cluster if there is one, and
/// the run can be handed over again.
#[test]
fn a_handover_that_was_interrupted_can_be_found() {
    let folder = folder("handover-interrupted");
    build(&folder, "forks", FORKS, &[]);
    let spec = RunSpec {
        no_confirm: true,
        out: Some(folder.join("out")),
        ..RunSpec::new([folder.join("forks")])
    };
    stopped(&spec, 20);
    let handed = ResumeSpec {
        dir: folder.join("out"),
        ..ResumeSpec::default()
    };
    let session = Session::new();
    let (mut unknown, mut known) = (0, 0);
    for breaths in 1.. {
        let shared = SharedMemory::new(1000);
        let mut broker = Mortal::new(&shared);
        broker.breaths = breaths;
        let submitted = Submitted::resume(&mut broker, &handed, (test_build(), None), &session);
        let runs = shared.connect().runs().expect("a list");
        let named = Submitted::of(&handed.dir).map(|submitted| submitted.run);
        match runs.first() {
            Some(run) => {
                assert_eq!(named.expect("the folder names the run"), *run);
                known += 1;
            }
            None => unknown += 1,
        }
        if submitted.is_ok() {
            break;
        }
    }
    assert!(unknown > 1 && known > 1, "{unknown} and {known}");
}

#[test]
fn resume_submits_a_run_to_a_broker() {
    let folder = folder("handover-nats");
    build(&folder, "forks", FORKS, &[]);
    let run = ["run", "--no-confirm", "--max-paths", "9", "--out", "out"];
    // Options of the first machine are no obstacle.
    let local = ["--workers", "1", "--checkpoint", "1m", "--max-time", "1h"];
    expect(
        everett(&folder).args(run).args(local).arg("./forks"),
        FINDINGS,
    );
    let (_up, url) = start_server(&folder);
    let words = ["resume", "out", "--submit", "--broker", &url];
    let said = text(&expect(everett(&folder).args(words), CLEAN));
    assert!(said.contains("results will be in out"), "{said}");
    let _worker = start_worker(&folder, &url, "one");
    wait_for("the end of the run", || {
        let mut look = everett(&folder);
        look.args(["status", "out", "--json", "--broker", &url]);
        let status: Value = serde_json::from_slice(&expect(&mut look, CLEAN).stdout).ok()?;
        status["complete"].as_bool().filter(|complete| *complete)
    });
    let words = ["results", "out", "--broker", &url];
    expect(everett(&folder).args(words), FINDINGS);
    let seen = summary(&folder.join("out"));
    assert_eq!(seen["complete"], true, "{seen}");
    expect(
        everett(&folder).args(["run", "--no-confirm", "--out", "whole", "./forks"]),
        FINDINGS,
    );
    assert_eq!(seen["paths"], summary(&folder.join("whole"))["paths"]);
}

/// In one run, workers die a hundred times, at any operation, while jobs are delivered twice and
/// leases expire.
#[test]
fn a_hundred_deaths_change_nothing() {
    let folder = folder("elastic-deaths");
    build(&folder, "forks", FORKS, &[]);
    let at = |name: &str| RunSpec {
        all_tests: true,
        no_confirm: true,
        batch: Some(50),
        out: Some(folder.join(name)),
        ..RunSpec::new([folder.join("forks")])
    };
    let session = Session::new();
    explore(&at("whole"), &session, &mut Silent).expect("it can be explored");
    let shared = SharedMemory::new(40);
    let submission = Submission {
        spec: at("by"),
        build: test_build(),
        work: Some(300),
        max_work: None,
        nonce: Vec::new(),
        key: None,
    };
    let submitted = Submitted::submit(&mut shared.connect(), submission, &session);
    let (dir, submitted) = submitted.expect("it is submitted");
    let trouble = Trouble {
        kills: 100,
        disorder: true,
    };
    let (status, deaths) = simulate(&shared, &submitted.run, 6, 1, trouble);
    assert!(status.is_complete());
    assert!(deaths >= 100, "{deaths} deaths");
    results(&mut shared.connect(), &dir, &session, &mut Silent).expect("results");
    assert_eq!(reached(&dir), reached(&folder.join("whole")));
}

/// Starts the server of a broker again, with its files and at its address.
fn start_server_again(folder: &Path, url: &str) -> Up {
    let port = url.rsplit(':').next().expect("a port");
    // Meanwhile the port may be that of a connection of another process.
    wait_for("the server", || {
        let mut again = everett(folder);
        again.args(["cluster", "up", "--dir", "broker", "--port", port]);
        let mut up = Up(again.stdout(Stdio::piped()).spawn().expect("it starts"));
        let lines = up.0.stdout.take().expect("its output");
        let mut address = String::new();
        let read = BufReader::new(lines).read_line(&mut address);
        read.expect("its address");
        (address.trim() == url).then_some(up)
    })
}

/// Two worker processes are replaced a hundred times, each killed at a random moment, and the broker
/// restarts meanwhile.
#[test]
fn a_hundred_killed_processes_change_nothing() {
    const KILLS: u64 = 100;
    let folder = folder("elastic-processes");
    let source = "#include <everett.h>\nint main(void) { unsigned char c[9]; int n = 0;\n\
        everett_make_symbolic(c, sizeof c, \"c\");\n\
        for (int i = 0; i < 9; i++) if (c[i] > 100) n += i;\nreturn n; }\n";
    build(&folder, "tree", source, &[]);
    let common = ["--all-tests", "--no-confirm", "--batch", "50", "--out"];
    let mut run = everett(&folder);
    expect(run.arg("run").args(common).args(["whole", "./tree"]), CLEAN);
    let (mut up, url) = start_server(&folder);
    let mut submit = everett(&folder);
    submit.args(["submit", "--broker", &url, "--job-work", "1000"]);
    expect(submit.args(common).args(["by", "./tree"]), CLEAN);
    let start = |name: &str| {
        let mut worker = everett(&folder);
        worker.args(["worker", "--quiet", "--join", &url, "--name", name]);
        worker.args(["--workers", "1", "--lease", "1s"]);
        let worker = worker.stderr(Stdio::null()).spawn();
        Process(worker.expect("it starts"))
    };
    let mut numbers = Numbers(4);
    let mut workers = [start("a"), start("b")];
    for kill in 0..KILLS {
        std::thread::sleep(Duration::from_millis(numbers.below(250)));
        let at = numbers.below(2) as usize;
        // The old process is killed when its place is taken.
        workers[at] = start(&format!("worker-{kill}"));
        if kill == KILLS / 2 {
            drop(up);
            up = start_server_again(&folder, &url);
        }
    }
    let status = wait_for("the end of the run", || {
        let status = status_of(&folder, &url);
        (status["over"] == true).then_some(status)
    });
    assert_eq!(status["complete"], true, "{status}");
    assert_eq!(status["failures"], Value::Array(Vec::new()));
    let words = ["results", "by", "--broker", &url];
    expect(everett(&folder).args(words), CLEAN);
    assert_eq!(reached(&folder.join("by")), reached(&folder.join("whole")));
    drop(up);
}

/// The broker ends in the middle of a run, and restarts with its files. Workers wait for it.
#[test]
fn a_broker_that_restarts_loses_nothing() {
    let folder = folder("elastic-broker");
    build(&folder, "forks", FORKS, &[]);
    let common = ["--all-tests", "--no-confirm", "--batch", "50", "--out"];
    expect(
        everett(&folder)
            .arg("run")
            .args(common)
            .args(["whole", "./forks"]),
        FINDINGS,
    );
    let (up, url) = start_server(&folder);
    let mut submit = everett(&folder);
    submit.args(["submit", "--broker", &url, "--job-work", "2000"]);
    expect(submit.args(common).args(["by", "./forks"]), CLEAN);
    let _workers = ["one", "two"].map(|name| start_worker(&folder, &url, name));
    wait_for("a job", || {
        let explored = status_of(&folder, &url)["jobs"]["explored"].as_u64();
        (explored >= Some(3)).then_some(())
    });
    drop(up);
    let _up = start_server_again(&folder, &url);
    let status = wait_for("the end of the run", || {
        let mut look = everett(&folder);
        look.args(["status", "by", "--json", "--broker", &url]);
        let output = look.output().expect("it starts");
        let status: Value = serde_json::from_slice(&output.stdout).ok()?;
        (status["over"] == true).then_some(status)
    });
    assert_eq!(status["complete"], true, "{status}");
    expect(
        everett(&folder).args(["results", "by", "--broker", &url]),
        FINDINGS,
    );
    assert_eq!(reached(&folder.join("by")), reached(&folder.join("whole")));
}

/// Starts `everett watch`, with its output in files.
fn start_watch(folder: &Path, url: &str) -> Process {
    let file = |name: &str| fs::File::create(folder.join(name)).expect("a file");
    let mut watch = everett(folder);
    watch.args(["watch", "by", "--broker", url]);
    let watch = watch.stdout(file("watch.out")).stderr(file("watch.err"));
    Process(watch.spawn().expect("it starts"))
}

/// `everett watch` goes on while its broker restarts, until the run has ended.
#[test]
fn watch_goes_on_while_its_broker_restarts() {
    let folder = folder("elastic-watch");
    build(&folder, "forks", FORKS, &[]);
    let (up, url) = start_server(&folder);
    let mut submit = everett(&folder);
    submit.args(["submit", "--broker", &url, "--out", "by", "./forks"]);
    expect(&mut submit, CLEAN);
    let mut watch = start_watch(&folder, &url);
    let said = |name: &str, what: &str| {
        let said = fs::read_to_string(folder.join(name)).expect("a file");
        said.contains(what).then_some(())
    };
    wait_for("a first line", || said("watch.out", "0.000 % explored"));
    drop(up);
    wait_for("a notice", || {
        said("watch.err", "cannot be reached, trying again")
    });
    let _up = start_server_again(&folder, &url);
    wait_for("the server", || {
        let mut list = everett(&folder);
        let list = list.args(["status", "--broker", &url]).output();
        list.expect("it starts").status.success().then_some(())
    });
    let _worker = start_worker(&folder, &url, "one");
    let end = wait_for("its end", || watch.0.try_wait().expect("a child"));
    assert_eq!(end.code(), Some(CLEAN));
    said("watch.out", "100.000 % explored").expect("the last line");
    let errors = fs::read_to_string(folder.join("watch.err")).expect("a file");
    // The server may be reached and be silent again before it is ready: not a line an attempt.
    let lines = errors.lines();
    assert!(
        lines.clone().all(|line| line.contains("cannot be reached")),
        "{errors}"
    );
    assert!((1..=3).contains(&lines.count()), "{errors}");
}
