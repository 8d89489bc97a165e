//! `everett faults` on real programs of this machine.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A folder for one test, with files. It is gone with the test.
struct Place(std::path::PathBuf);

impl Place {
    fn new(name: &str, files: &[(&str, &str)]) -> Place {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        for (name, text) in files {
            fs::write(path.join(name), text).unwrap();
        }
        Place(path)
    }

    /// Builds a program of C.
    fn build(&self, program: &str, flags: &[&str]) {
        let source = self.0.join(format!("{program}.c"));
        let made = Command::new("cc")
            .args(flags)
            .arg("-o")
            .arg(self.0.join(program))
            .arg(source)
            .status();
        assert!(made.unwrap().success());
    }

    fn faults(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
        command
            .arg("faults")
            .args(args)
            .current_dir(&self.0)
            .output()
            .unwrap()
    }

    /// Runs a search with results in a folder.
    fn run(&self, out: &str, args: &[&str]) -> Value {
        let all = [&["run", "s.toml", "--out", out], args].concat();
        let output = self.faults(&all);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
        serde_json::from_slice(&fs::read(self.0.join(out).join("summary.json")).unwrap()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap().flatten();
        let mut names: Vec<String> = entries
            .map(|one| one.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The outcome of a scenario.
fn outcome<'s>(summary: &'s Value, scenario: &str) -> &'s str {
    let results = summary["results"].as_array().unwrap();
    let found = results.iter().find(|result| result["scenario"] == scenario);
    found.unwrap_or_else(|| panic!("{scenario} was not run"))["outcome"]
        .as_str()
        .unwrap()
}

/// Fig. 3.7: an unchecked strdup. Fig. 3.6: the recovery of a failed close unlocks twice.
const RECOVERY: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t lock;
static int create(void) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&lock, &kind);
  pthread_mutex_lock(&lock);
  int file = open("table", O_CREAT | O_WRONLY, 0644);
  if (file < 0) goto err;
  if (write(file, "x", 1) != 1) goto err;
  pthread_mutex_unlock(&lock);
  if (close(file)) goto err;
  return 0;
err:
  if (pthread_mutex_unlock(&lock)) abort();
  return 3;
}
int main(void) {
  char *name = strdup("name");
  name[0] = 'N';
  return create();
}
"#;

const SEARCH: &str = "space = \"function : { strdup, open, write, close } callNumber : [0,2];\"\n\
                      injector = \"preload\"\nprogram = \"recovery\"\ntest = \"./recovery\"\nrepetitions = 2\n";

#[test]
fn failures_of_libc_functions_are_found_and_replayed() {
    let place = Place::new("preload", &[("recovery.c", RECOVERY), ("s.toml", SEARCH)]);
    place.build("recovery", &["-g"]);
    let before = place.names();
    let summary = place.run("out", &["--jobs", "1"]);
    assert_eq!(summary["scenarios_total"], 12);
    assert_eq!(summary["scenarios_run"], 12);
    assert_eq!(outcome(&summary, "function strdup callNumber 1"), "crashed");
    assert_eq!(outcome(&summary, "function close callNumber 1"), "crashed");
    assert_eq!(outcome(&summary, "function open callNumber 1"), "failed");
    assert_eq!(outcome(&summary, "function write callNumber 1"), "failed");
    assert_eq!(outcome(&summary, "function open callNumber 0"), "passed");
    assert_eq!(outcome(&summary, "function open callNumber 2"), "passed");
    assert_eq!(summary["failures"], 4);
    assert_eq!(summary["clusters"], 4);
    // Nothing but the results is left; the file that the program makes is gone.
    let after: Vec<String> = place
        .names()
        .into_iter()
        .filter(|name| name != "out")
        .collect();
    assert_eq!(after, before);
    for result in summary["results"].as_array().unwrap() {
        if result["outcome"] == "passed" {
            continue;
        }
        assert_eq!(result["precision"], Value::Null);
        assert_eq!(result["repeats"], "always the same");
        let stack = result["stack"].to_string();
        assert!(stack.contains("recovery"), "{stack}");
        let name = result["name"].as_str().unwrap();
        let replayed = place.faults(&["replay", &format!("out/{name}"), "--times", "2"]);
        assert!(replayed.status.success());
        let script = place.0.join("out/scenarios").join(name).join("replay.sh");
        for _ in 0..3 {
            let output = Command::new(&script)
                .env("EVERETT", env!("CARGO_BIN_EXE_everett"))
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
    // The same with another number of jobs, and a search that is stopped goes on.
    let jobs = place.run("out2", &["--jobs", "2"]);
    assert_eq!(jobs["results"], summary["results"]);
    place.run("out3", &["--runs", "5"]);
    let whole = place.run("out3", &[]);
    assert_eq!(whole["results"], summary["results"]);
    assert!(
        place
            .faults(&["run", "s.toml", "--out", "out3", "--seed", "9"])
            .status
            .code()
            == Some(2)
    );
    let shown = String::from_utf8(place.faults(&["show", "out"]).stdout).unwrap();
    assert!(
        shown.starts_with("12 scenarios") && shown.contains("relative linear density"),
        "{shown}"
    );
}

/// A static program, whose child counts its own calls, too.
const CALLS: &str = r#"
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
static int work(void) {
  char byte;
  int file = open("data", O_RDONLY);
  if (file < 0) return 3;
  for (int at = 0; at < 2; at++)
    if (read(file, &byte, 1) < 0) return 4 + at;
  return close(file) ? 9 : 0;
}
int main(void) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) return work() ? 20 : 0;
  waitpid(child, &status, 0);
  int own = work();
  return own && status ? own + 100 : own || status ? 50 : 0;
}
"#;

#[test]
fn failures_of_system_calls_hit_static_programs_and_each_process() {
    let text = "space = \"\"\"function : { openat, read } errno : { EIO } callNumber : [0,3];\n\
                function : { close } callNumber : <0,2>;\"\"\"\n\
                injector = \"ptrace\"\ntest = \"./calls; exit $?\"\nrepetitions = 1\n";
    let place = Place::new(
        "ptrace",
        &[("calls.c", CALLS), ("s.toml", text), ("data", "hello")],
    );
    place.build("calls", &["-static"]);
    let summary = place.run("out", &["--search", "exhaustive"]);
    let why = |scenario: &str| {
        let results = summary["results"].as_array().unwrap();
        let found = results
            .iter()
            .find(|result| result["scenario"] == scenario)
            .unwrap();
        found["why"][0].as_str().unwrap_or("").to_owned()
    };
    assert_eq!(why("function openat errno EIO callNumber 1"), "exit 103");
    assert_eq!(why("function read errno EIO callNumber 2"), "exit 105");
    assert_eq!(why("function read errno EIO callNumber 3"), "");
    assert_eq!(why("function read errno EIO callNumber 0"), "");
    assert_eq!(why("function close callNumber <1,1>"), "exit 109");
    assert_eq!(why("function close callNumber <0,0>"), "");
    let profile = place.faults(&["profile", "--syscalls", "--out", "p.space", "--", "./calls"]);
    assert!(profile.status.success());
    let space = fs::read_to_string(place.0.join("p.space")).unwrap();
    assert!(
        space.contains("function : { read }\nerrno : { ")
            && space.contains("callNumber : [ 1 , 2 ]"),
        "{space}"
    );
}

const HARMFUL: &str = r#"
case "$2" in
  parent) kill -9 $PPID; kill -9 -1;;
  flood) exec yes;;
  disk) head -c 100000000 /dev/zero >big; exit 7;;
  forks) f() { f | f & f & wait; }; f;;
  hang) exec sleep 1000000;;
  outside) echo x >changed; echo x >"$EVERETT_FOLDER/../everett-outside"; exit 8;;
  words) [ "$*" = "kind words" ] && [ "$EVERETT_FAULT_KIND" = words ] && [ "$EVERETT_SCENARIO" = "$*" ] && exit 9;;
esac
"#;

#[test]
fn no_program_can_stop_the_search_or_change_the_machine() {
    // All that ends does so by itself, or is ended at a limit of processes or output, or never ends.
    let text = "space = \"kind : { parent, flood, disk, forks, outside, words };\"\ninjector = \"script\"\n\
                test = \"sh ./harmful.sh\"\nrepetitions = 1\n[limits]\ntimeout = \"100s\"\noutput = \"64K\"\n\
                disk = \"8M\"\nprocesses = 60\n";
    let place = Place::new("harmful", &[("harmful.sh", HARMFUL), ("s.toml", text)]);
    let summary = place.run("out", &["--search", "exhaustive"]);
    assert_eq!(summary["scenarios_run"], 6);
    assert_eq!(outcome(&summary, "kind parent"), "crashed");
    assert_eq!(outcome(&summary, "kind flood"), "limit");
    assert_eq!(outcome(&summary, "kind forks"), "limit");
    for scenario in ["kind disk", "kind outside", "kind words"] {
        assert_eq!(outcome(&summary, scenario), "failed");
    }
    let hang = text
        .replace("parent, flood, disk, forks, outside, words", "hang")
        .replace("100s", "200ms");
    fs::write(place.0.join("s.toml"), hang).unwrap();
    let summary = place.run("out2", &[]);
    assert_eq!(outcome(&summary, "kind hang"), "hung");
    assert_eq!(place.names(), ["harmful.sh", "out", "out2", "s.toml"]);
    assert!(!place.0.join("../everett-outside").exists());
}

#[test]
fn mistakes_are_told_before_anything_is_run() {
    let good = "space = \"function : { read } callNumber : [1,2];\"\ninjector = \"ptrace\"\ntest = \"true\"\n";
    let place = Place::new("mistakes", &[]);
    for (from, to, message) in [
        (
            "[1,2]",
            "[2,1]",
            "s.toml:1:43: there is no number from 2 to 1",
        ),
        ("read", "strdup", "strdup is no system call"),
        (
            "\"true\"",
            "\"exit 3\"",
            "the test fails without any fault: exit 3",
        ),
        (
            "test =",
            "start = \"echo why >&2; exit 4\"\ntest =",
            "`start` fails without any fault: exit 4: why",
        ),
    ] {
        fs::write(place.0.join("s.toml"), good.replace(from, to)).unwrap();
        let output = place.faults(&["run", "s.toml", "--out", "out"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(message), "{said}");
    }
}
