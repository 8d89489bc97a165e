//! Rights in a cluster: whose runs a worker accepts, and what the users of a server may do.

use crate::cluster::{CLEAN, Up, start_server_with, test_build, wait_for};
use crate::common::{build, everett, expect, folder, summary, text};
use crate::postgres::{postgres, start_postgres};
use everett::{RunSpec, Session, Silent};
use everett_cluster::{
    Broker, Key, Kind, SharedMemory, SigningKey, Status, Submission, Submitted, Submitters, Worker,
    WorkerSpec, WorkerStep, results, status,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

const FAILED: i32 = 2;

const FEW: &str = r#"
#include <everett.h>
int main(void) { return everett_choose(4, "number"); }
"#;

/// Submits a run, signed if there is a key.
fn submitted(
    folder: &Path,
    shared: &SharedMemory,
    out: &str,
    key: Option<&SigningKey>,
) -> Submitted {
    let spec = RunSpec {
        out: Some(folder.join(out)),
        no_confirm: true,
        ..RunSpec::new([folder.join("few")])
    };
    let submission = Submission {
        spec,
        build: test_build(),
        work: None,
        max_work: None,
        nonce: out.as_bytes().to_vec(),
        key: key.cloned(),
    };
    let submitted = Submitted::submit(&mut shared.connect(), submission, &Session::new());
    submitted.expect("it is submitted").1
}

/// Lets a worker explore what it accepts. Returns which runs it refuses, and why.
fn explore(shared: &SharedMemory, accept: Option<&Path>) -> BTreeMap<String, String> {
    let spec = WorkerSpec {
        name: "one".to_owned(),
        build: test_build(),
        max_memory: None,
        scratch: None,
        idle: Some(Duration::from_millis(300)),
        accept: accept.map(|file| Submitters::read(file).expect("keys")),
    };
    let broker: Mutex<Box<dyn Broker>> = Mutex::new(Box::new(shared.connect()));
    let mut refused = BTreeMap::new();
    let worked = Worker::new(spec, &Session::new()).run(&broker, &mut |did| {
        if let WorkerStep::Refused(run, why) = did {
            let before = refused.insert(run.to_string(), why.clone());
            assert_eq!(before, None, "it is told once");
        }
    });
    worked.expect("it works");
    refused
}

/// A worker explores runs that are signed by whom it knows, and nothing of others: not what is not
/// signed, what somebody else has signed, or what was altered or renamed since.
#[test]
fn a_worker_accepts_only_what_certain_submitters_have_signed() {
    let folder = folder("rights-signed");
    build(&folder, "few", FEW, &[]);
    let [ours, theirs] = ["ours", "theirs"]
        .map(|name| SigningKey::read_or_create(&folder.join(name)).expect("a key"));
    let accept = folder.join("accept");
    fs::write(&accept, format!("# who may submit\n{} us\n", ours.public())).expect("written");
    let shared = SharedMemory::new(100_000);
    let submit = |out: &str, key| submitted(&folder, &shared, out, key).run;
    let unsigned = submit("unsigned", None);
    let (stranger, altered) = (
        submit("stranger", Some(&theirs)),
        submit("altered", Some(&ours)),
    );
    let (renamed, good) = (submit("renamed", None), submit("good", Some(&ours)));
    let mut broker = shared.connect();
    let mut record = |key: &Key| broker.look_up(key).expect("a broker").expect("a record");
    let manifest = Key::of_run(Kind::Run, &altered);
    let mut other: Value = serde_json::from_slice(&record(&manifest)).expect("JSON");
    other["work"] = 1.into();
    let copied = record(&Key::of_run(Kind::Signature, &good));
    let bytes = serde_json::to_vec(&other).expect("JSON");
    broker.note(&manifest, &bytes).expect("noted");
    let signature = Key::of_run(Kind::Signature, &renamed);
    broker.note(&signature, &copied).expect("noted");
    let status_of = |run| status(&mut shared.connect(), run).expect("accounts");

    let refused = explore(&shared, Some(&accept));
    let expected = [
        (&unsigned, "it is not signed"),
        (&stranger, "it is signed by a key that is not in"),
        (&altered, "this is not what"),
        (&renamed, "this is not what"),
    ];
    assert_eq!(refused.len(), expected.len(), "{refused:?}");
    for (run, why) in expected {
        assert!(refused[run.as_str()].starts_with(why), "{refused:?}");
        let status: Status = status_of(run);
        let told = status.to_string();
        assert!(status.jobs == 0 && !status.is_over(), "{told}");
        assert!(
            told.contains("worker one does not accept the run: "),
            "{told}"
        );
    }
    let complete = |run, out: &str| {
        assert!(status_of(run).is_complete());
        let result = results(
            &mut shared.connect(),
            &folder.join(out),
            &Session::new(),
            &mut Silent,
        );
        let summary = result.expect("results").summary;
        assert!(summary.complete && summary.paths.completed == 4);
    };
    complete(&good, "good");

    // A worker that accepts all runs gets what the other one has left.
    shared.expire_leases();
    assert_eq!(explore(&shared, None), BTreeMap::new());
    complete(&unsigned, "unsigned");
    complete(&stranger, "stranger");
    assert!(!status_of(&unsigned).to_string().contains("does not accept"));
}

/// Submits, explores, watches and removes runs of a server by users who have one role each. `by`
/// returns a command of the user with a role.
fn work_by_roles(folder: &Path, by: &dyn Fn(&str) -> Command) {
    build(folder, "few", FEW, &[]);
    let run = |role: &str, words: &[&str], code: i32| text(&expect(by(role).args(words), code));
    let key = run("watch", &["cluster", "key", "alice.key"], CLEAN);
    fs::write(folder.join("accept"), &key).expect("written");
    run(
        "submit",
        &["submit", "--quiet", "--out", "bad", "./few"],
        CLEAN,
    );
    let mut submit = by("submit");
    submit.args(["submit", "--quiet", "--out", "good", "./few"]);
    expect(submit.env("EVERETT_SIGNING_KEY_FILE", "alice.key"), CLEAN);
    // Only workers work.
    let worker = [
        "worker",
        "--workers",
        "1",
        "--idle",
        "1s",
        "--accept",
        "accept",
    ];
    for role in ["submit", "watch"] {
        run(role, &worker, FAILED);
    }
    // A slow broker may take longer than a worker stays.
    let mut told = String::new();
    wait_for("the end of the run", || {
        told += &run("work", &worker, CLEAN);
        let status = run("watch", &["status", "good"], CLEAN);
        status.starts_with("finished: ").then_some(())
    });
    let why = "it is not signed";
    assert!(
        told.contains("does not accept run ") && told.contains(why),
        "{told}"
    );
    let bad = run("watch", &["status", "bad"], CLEAN);
    assert!(
        bad.starts_with("running: 0 jobs explored") && bad.contains(why),
        "{bad}"
    );
    let all = run("watch", &["status"], CLEAN);
    assert_eq!(all.lines().count(), 2, "{all}");
    // Results belong to whoever may read them; the run, to whoever may submit.
    run("watch", &["results", "--quiet", "good"], CLEAN);
    assert_eq!(summary(&folder.join("good"))["complete"], true);
    for role in ["watch", "work"] {
        run(role, &["cancel", "bad"], FAILED);
    }
    for command in ["pause", "unpause", "cancel"] {
        run("submit", &[command, "bad"], CLEAN);
    }
    for out in ["bad", "good"] {
        run("submit", &["cancel", "--remove", out], CLEAN);
    }
    assert_eq!(run("watch", &["status"], CLEAN), "");
}

#[test]
fn users_of_nats_have_the_rights_of_their_roles() {
    let folder = folder("rights-nats");
    let (_up, url): (Up, String) = start_server_with(&folder, &["--roles"]);
    work_by_roles(&folder, &|role| {
        let keys: PathBuf = folder.join("broker/keys");
        let mut command = everett(&folder);
        command.env("EVERETT_BROKER", &url);
        command.env(
            "EVERETT_BROKER_NKEY_FILE",
            keys.join(role).with_extension("nk"),
        );
        command
    });
}

#[test]
fn users_of_postgresql_have_the_rights_of_their_roles() {
    let folder = folder("rights-postgres");
    let database = start_postgres(&folder, "rights");
    let status = ["status", "--broker", &database.url];
    expect(everett(&folder).args(status), CLEAN);
    let address = database
        .url
        .strip_prefix("postgres://everett@")
        .expect("a URL");
    let query = |arguments: &[&str]| {
        let mut psql = postgres("psql");
        psql.args([
            "--quiet",
            "--no-psqlrc",
            "-v",
            "ON_ERROR_STOP=1",
            &database.url,
        ]);
        expect(psql.current_dir("/").args(arguments), 0);
    };
    let roles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/postgres-roles.sql");
    let roles = fs::read_to_string(roles).expect("a file");
    // The file may be applied again.
    for _ in 0..2 {
        query(&["-c", &roles]);
    }
    for role in ["work", "submit", "watch"] {
        query(&["-c", &format!("CREATE USER {role} IN ROLE everett_{role}")]);
    }
    work_by_roles(&folder, &|role| {
        let mut command = everett(&folder);
        command.env("EVERETT_BROKER", format!("postgres://{role}@{address}"));
        command
    });
}
