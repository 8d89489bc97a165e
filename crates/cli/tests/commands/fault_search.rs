//! `everett faults` on real programs of this machine.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A folder with files for one test, removed at its end.
pub(crate) struct TestFolder(std::path::PathBuf);

impl TestFolder {
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> TestFolder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        for (name, text) in files {
            fs::write(path.join(name), text).unwrap();
        }
        TestFolder(path)
    }

    /// Builds a C program.
    pub(crate) fn build(&self, program: &str, flags: &[&str]) {
        let source = self.0.join(format!("{program}.c"));
        let made = Command::new("cc")
            .args(flags)
            .arg("-o")
            .arg(self.0.join(program))
            .arg(source)
            .status();
        assert!(made.unwrap().success());
    }

    pub(crate) fn faults(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
        command
            .arg("faults")
            .args(args)
            .current_dir(&self.0)
            .output()
            .unwrap()
    }

    /// Runs a search that writes its results to a folder.
    pub(crate) fn run(&self, out: &str, args: &[&str]) -> Value {
        let all = [&["run", "s.toml", "--out", out], args].concat();
        let output = self.faults(&all);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
        serde_json::from_slice(&fs::read(self.0.join(out).join("summary.json")).unwrap()).unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
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

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the outcome of a scenario.
pub(crate) fn outcome<'s>(summary: &'s Value, scenario: &str) -> &'s str {
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
    let place = TestFolder::new("preload", &[("recovery.c", RECOVERY), ("s.toml", SEARCH)]);
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
    // Only the results are left; the file that the program creates is gone.
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
        let file = format!(
            "out/scenarios/{}/result.json",
            result["name"].as_str().unwrap()
        );
        let own: Value = serde_json::from_slice(&fs::read(place.0.join(file)).unwrap()).unwrap();
        assert_eq!(own, *result);
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
    // Another number of jobs gives the same results, and a stopped search continues.
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

/// A static program whose child also counts its own calls.
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
    let place = TestFolder::new(
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
    // These tests end by themselves, are ended at a limit of processes or output, or never end.
    let text = "space = \"kind : { parent, flood, disk, forks, outside, words };\"\ninjector = \"script\"\n\
                test = \"sh ./harmful.sh\"\nrepetitions = 1\n[limits]\ntimeout = \"100s\"\noutput = \"64K\"\n\
                disk = \"8M\"\nprocesses = 60\n";
    let place = TestFolder::new("harmful", &[("harmful.sh", HARMFUL), ("s.toml", text)]);
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
        .replace("100s", "20s");
    fs::write(place.0.join("s.toml"), hang).unwrap();
    let summary = place.run("out2", &[]);
    assert_eq!(outcome(&summary, "kind hang"), "hung");
    assert_eq!(place.names(), ["harmful.sh", "out", "out2", "s.toml"]);
    assert!(!place.0.join("../everett-outside").exists());
}

#[test]
fn mistakes_are_told_before_anything_is_run() {
    let good = "space = \"function : { read } callNumber : [1,2];\"\ninjector = \"ptrace\"\ntest = \"true\"\n";
    let place = TestFolder::new("mistakes", &[]);
    for (from, to, message) in [
        (
            "[1,2]",
            "[2,1]",
            "s.toml:1:43: there is no number from 2 to 1",
        ),
        ("read", "strdup", "strdup is not a system call"),
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

/// Crashes at the first malloc, hangs if reading fails forever, and survives one failed read.
const RETRIES: &str = r#"
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  char *memory = malloc(10), byte;
  memory[0] = 1;
  while (read(0, &byte, 1) < 0) usleep(1000);
  return 0;
}
"#;

/// Returns a search file for `retries` with this space.
fn retries(injector: &str, space: &str) -> String {
    format!(
        "space = \"{space}\"\ninjector = \"{injector}\"\nprogram = \"retries\"\ntest = \"./retries\"\n\
         repetitions = 1\n[limits]\ntimeout = \"20s\"\n"
    )
}

#[test]
fn hangs_are_no_crashes_and_faults_from_a_call_on_show_them() {
    let place = TestFolder::new("retries", &[("retries.c", RETRIES)]);
    for injector in ["preload", "ptrace"] {
        let space =
            "function : { read } errno : { EINTR } callNumber : [1,1] persistent : { no, yes };";
        // The loader of a dynamic program also reads.
        let flags: &[&str] = if injector == "ptrace" {
            &["-static"]
        } else {
            &[]
        };
        place.build("retries", flags);
        let mut text = retries(injector, space);
        if injector == "preload" {
            text = text.replace("yes };", "yes }; function : { malloc } callNumber : [1,1];");
        }
        fs::write(place.0.join("s.toml"), text).unwrap();
        let summary = place.run(injector, &["--search", "exhaustive"]);
        let scenario = "function read errno EINTR callNumber 1 persistent";
        assert_eq!(outcome(&summary, &format!("{scenario} yes")), "hung");
        assert_eq!(outcome(&summary, &format!("{scenario} no")), "passed");
        assert_eq!(summary["hangs"], 1);
        assert_eq!(summary["crashes"], u64::from(injector == "preload"));
        assert_eq!(summary["scenarios_injected"], summary["scenarios_run"]);
        // What is known only at the end is also in the folders of scenarios.
        for result in summary["results"].as_array().unwrap() {
            let name = result["name"].as_str().unwrap();
            let file = place
                .0
                .join(injector)
                .join("scenarios")
                .join(name)
                .join("result.json");
            let own: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            assert_eq!(own, *result);
        }
        // The hang lasted until the time limit.
        let junit = fs::read_to_string(place.0.join(injector).join("junit.xml")).unwrap();
        let case = junit
            .lines()
            .find(|line| line.contains("persistent yes"))
            .unwrap();
        assert!(!case.contains("time=\"0.0"), "{case}");
    }
}

#[test]
fn a_search_that_injects_nothing_has_not_passed() {
    let place = TestFolder::new("nothing", &[("retries.c", RETRIES)]);
    place.build("retries", &["-static"]);
    fs::copy(place.0.join("retries"), place.0.join("other")).unwrap();
    let space = "function : { read, malloc } callNumber : [0,2];";
    let wrong = retries("ptrace", &space.replace(", malloc", "")).replace("./retries", "./other");
    for (out, text, hint) in [
        ("typo", wrong, "program retries"),
        ("static", retries("preload", space), "is it static"),
    ] {
        fs::write(place.0.join("s.toml"), text).unwrap();
        let output = place.faults(&["run", "s.toml", "--out", out]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("no fault was ever injected") && said.contains(hint),
            "{said}"
        );
        let bytes = fs::read(place.0.join(out).join("summary.json")).unwrap();
        let summary: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(summary["scenarios_injected"], 0);
        assert!(summary["warnings"][0].as_str().unwrap().contains(hint));
        let junit = fs::read_to_string(place.0.join(out).join("junit.xml")).unwrap();
        assert!(junit.contains("<skipped"), "{junit}");
    }
    // If no call is to fail, no fault is missing.
    let none = retries("preload", "function : { malloc } callNumber : [0,0];");
    fs::write(place.0.join("s.toml"), none).unwrap();
    let output = place.faults(&["run", "s.toml", "--out", "none"]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn scripts_run_without_faults_first() {
    let place = TestFolder::new("script-free", &[]);
    let text = |test: &str| {
        format!(
            "space = \"clients : [10,20] step 10;\"\ninjector = \"script\"\ntest = '{test}'\nrepetitions = 1\n"
        )
    };
    for test in ["exit 3", "echo $((1000/EVERETT_FAULT_CLIENTS))"] {
        fs::write(place.0.join("s.toml"), text(test)).unwrap();
        let output = place.faults(&["run", "s.toml", "--out", "out"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("the test fails without any fault"), "{said}");
        assert!(said.contains("EVERETT_FAULT_FREE=1"), "{said}");
    }
    // The run without faults has no arguments and empty attributes; the others have no
    // EVERETT_FAULT_FREE.
    let good = "if [ -n \"$EVERETT_FAULT_FREE\" ]; then \
                [ $# = 0 ] && [ -z {clients} ] && [ \"${EVERETT_FAULT_CLIENTS-unset}\" = \"\" ]; \
                else [ \"$*\" != \"clients 20\" ]; fi; : $@";
    let good = good.replace("; : $@", " || exit 4");
    fs::write(place.0.join("s.toml"), text(&format!("{good}; true $@"))).unwrap();
    let summary = place.run("out", &["--search", "exhaustive"]);
    assert_eq!(outcome(&summary, "clients 10"), "passed");
    assert_eq!(outcome(&summary, "clients 20"), "failed");
}

#[test]
fn results_are_kept_and_foreign_folders_are_refused() {
    let text = "space = \"n : [1,8];\"\ninjector = \"script\"\ntest = 'exit $(( ${2:-0} > 5 )); $@'\n\
                repetitions = 1\n[stop]\nfailures = 2\n";
    let place = TestFolder::new("kept", &[("s.toml", text)]);
    let whole = place.run("out", &["--search", "exhaustive", "--runs", "7"]);
    assert_eq!(whole["scenarios_run"], 7);
    // A lower limit of runs, or a reached target, drops no results.
    let fewer = place.run("out", &["--search", "exhaustive", "--runs", "3"]);
    assert_eq!(fewer["results"], whole["results"]);
    fs::create_dir(place.0.join("mine")).unwrap();
    fs::write(place.0.join("mine/letter.txt"), "x").unwrap();
    let output = place.faults(&["run", "s.toml", "--out", "mine"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("mine is not empty") && said.contains("letter.txt"),
        "{said}"
    );
    assert_eq!(fs::read_dir(place.0.join("mine")).unwrap().count(), 1);
    // Another search is refused, and the files that replays need stay.
    let before = fs::read(place.0.join("out/search.json")).unwrap();
    let output = place.faults(&["run", "s.toml", "--out", "out", "--seed", "5"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read(place.0.join("out/search.json")).unwrap(), before);
}

/// Takes memory until it is killed; without a fault, none.
const EATER: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
  if (count < 2) return 0;
  for (;;) {
    char *more = malloc(1 << 20);
    if (more) memset(more, 1, 1 << 20);
    usleep(5000);
  }
}
"#;

#[test]
fn a_test_that_takes_too_much_memory_is_ended_and_said() {
    let text = "space = \"n : [1,1];\"\ninjector = \"script\"\ntest = \"./eater\"\nrepetitions = 1\n\
                [limits]\ntimeout = \"100s\"\nmemory = \"64M\"\n";
    let place = TestFolder::new("memory", &[("eater.c", EATER), ("s.toml", text)]);
    place.build("eater", &["-O0"]);
    let summary = place.run("out", &[]);
    assert_eq!(outcome(&summary, "n 1"), "limit");
    assert_eq!(summary["results"][0]["why"][0], "limit of memory");
}

#[test]
fn scripts_of_failures_replay_in_isolation() {
    let text =
        "space = \"n : [1,1];\"\ninjector = \"script\"\ntest = \"sh ./t.sh\"\nrepetitions = 1\n";
    // What the test writes, and where, shows whether it was isolated.
    let test = "[ $# = 0 ] && exit 0\n\
                echo x >>\"$EVERETT_FOLDER/../kept-log\"\necho x >\"$EVERETT_FOLDER/made\"\nexit 3\n";
    let place = TestFolder::new("isolated", &[("t.sh", test), ("s.toml", text)]);
    let inner = place.0.join("inner");
    fs::create_dir(&inner).unwrap();
    for file in ["t.sh", "s.toml"] {
        fs::rename(place.0.join(file), inner.join(file)).unwrap();
    }
    let output = place.faults(&["run", "inner/s.toml", "--out", "out"]);
    assert_eq!(output.status.code(), Some(1));
    let script = place.0.join("out/scenarios/000001/replay.sh");
    let other = place.0.join("tmp");
    fs::create_dir(&other).unwrap();
    let run = |args: &[&str], everett: &str| {
        let output = Command::new(&script)
            .args(args)
            .env("EVERETT", everett)
            .env("TMPDIR", &other)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    assert_eq!(run(&[], env!("CARGO_BIN_EXE_everett")).0, Some(0));
    assert_eq!(place.names(), ["inner", "out", "tmp"]);
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    let (code, said) = run(&[], "/no/everett");
    assert!(code == Some(2) && said.contains("set EVERETT"), "{said}");
    // Without Everett, the script runs only on request (`--plain`); then the folder is a copy.
    let (code, said) = run(&["--plain"], "/no/everett");
    assert!(
        code == Some(0) && said.contains("warning: no isolation"),
        "{said}"
    );
    assert!(!inner.join("made").exists() && !place.0.join("kept-log").exists());
    assert!(other.join("kept-log").exists());
}

#[test]
fn an_interrupted_search_with_failures_ends_with_1() {
    let text =
        "space = \"n : [1,100000];\"\ninjector = \"script\"\ntest = 'exit $(( $# > 0 )); $@'\n";
    let place = TestFolder::new("interrupted", &[("s.toml", text)]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_everett"))
        .args(["faults", "run", "s.toml", "--out", "out"])
        .current_dir(&place.0)
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // The first failure is printed. The rest must be read, or the search would block.
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert!(line.contains("failed: n "), "{line}");
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    std::io::copy(&mut said, &mut std::io::sink()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let bytes = fs::read(place.0.join("out/summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(summary["is_interrupted"], true);
}

/// Returns a pipe whose reader has ended.
fn closed() -> std::process::Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Returns a full disk.
fn full() -> std::process::Stdio {
    fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

#[test]
fn commands_whose_output_nobody_reads_do_their_work() {
    let text = "space = \"n : [1,4];\"\ninjector = \"script\"\ntest = 'exit $(( $# > 0 )); $@'\nrepetitions = 1\n";
    let place = TestFolder::new("unread", &[("s.toml", text)]);
    let command = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
        command.args(words).current_dir(&place.0);
        command
    };
    for (out, streams) in [("closed", [closed(), closed()]), ("full", [full(), full()])] {
        let [stdout, stderr] = streams;
        let mut run = command(&["faults", "run", "s.toml", "--out", out]);
        let status = run.stdout(stdout).stderr(stderr).status().unwrap();
        assert_eq!(status.code(), Some(1), "{out}");
        let bytes = fs::read(place.0.join(out).join("summary.json")).unwrap();
        let summary: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(summary["failures"], 4);
    }
    for words in [
        &["run", "no-such-program"][..],
        &["faults", "show", "none"],
        &["native", "none"],
    ] {
        for stderr in [closed(), full()] {
            let status = command(words)
                .stdout(closed())
                .stderr(stderr)
                .status()
                .unwrap();
            assert_eq!(status.code(), Some(2), "{words:?}");
        }
    }
}

/// Tests can write to a folder with mounts below it, as /tmp may be, and nothing persists.
#[test]
fn folders_with_mounts_below_them_are_written_to() {
    let place = TestFolder::new("mounts", &[]);
    let folder = Path::new("/tmp").join(format!("faults-mounts-{}", std::process::id()));
    let inner = folder.join("inner/mounted");
    fs::create_dir_all(&inner).unwrap();
    fs::write(folder.join("file"), "here").unwrap();
    let search = format!(
        "space = \"n : {{ 1, 2 }} ;\"\ninjector = \"script\"\n\
         test = '''grep here {0}/file && echo > {0}/new && echo > {0}/inner/new && echo > {0}/inner/mounted/new \
         && test ! -e {0}/old && touch {0}/old && true $@'''\n[impact]\nexit = 5\n",
        folder.display()
    );
    fs::write(place.0.join("s.toml"), search).unwrap();
    let mount = format!(
        "mount -t tmpfs none {} && exec \"$0\" \"$@\"",
        inner.display()
    );
    let mut command = Command::new("unshare");
    command
        .args(["-Urm", "sh", "-c", &mount, env!("CARGO_BIN_EXE_everett")])
        .args(["faults", "run", "s.toml", "--out", "out"])
        .current_dir(&place.0);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let made = folder.join("new").exists() || folder.join("inner/new").exists();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!made, "files of a test stayed");
}

/// One function that is called from two places, of which one does not check it.
const SITES: &str = r#"
#include <stdlib.h>
#include <string.h>
static char *copy(const char *text) {
  char *copied = malloc(strlen(text) + 1);
  return copied ? strcpy(copied, text) : 0;
}
static int careful(void) { return copy("a") ? 0 : 3; }
static int careless(void) {
  copy("b")[0] = 'c';
  return 0;
}
int main(void) { return careful() || careful() || careless(); }
"#;

#[test]
fn faults_hit_the_calls_of_a_line_a_function_or_a_stack() {
    let search = "space = 'function : { malloc } callsite : { \"sites.c:5\", \"sites.c:10\", careful } \
                  callNumber : [1,4] ;'\n\
                  injector = \"preload\"\nprogram = \"sites\"\ntest = \"./sites\"\n";
    let place = TestFolder::new("sites", &[("sites.c", SITES), ("s.toml", search)]);
    place.build("sites", &["-g", "-O0"]);
    let summary = place.run("out", &["--search", "exhaustive"]);
    let of = |site: &str, number: u32| {
        outcome(
            &summary,
            &format!("function malloc callsite {site} callNumber {number}"),
        )
    };
    let all = |site: &str| [1, 2, 3, 4].map(|number| of(site, number));
    assert_eq!(all("sites.c:5"), ["failed", "failed", "crashed", "passed"]);
    assert_eq!(all("sites.c:10"), ["crashed", "passed", "passed", "passed"]);
    assert_eq!(all("careful"), ["failed", "failed", "passed", "passed"]);
    let results = summary["results"].as_array().unwrap();
    let crashes: Vec<&Value> = results
        .iter()
        .filter(|one| one["outcome"] == "crashed")
        .collect();
    let frames = crashes[0]["stack"].to_string();
    assert!(frames.contains("sites!careless+"), "{frames}");
    let cores_in = |out: &str| {
        let cores = crashes.iter().filter_map(|crash| {
            let name = crash["name"].as_str().unwrap();
            fs::read(place.0.join(format!("{out}/scenarios/{name}/core"))).ok()
        });
        cores.collect::<Vec<_>>()
    };
    let cores = cores_in("out");
    assert!(cores.len() == 2 && cores.iter().all(|core| core.starts_with(b"\x7fELF")));
    // The two crashes are alike: with little room, there is one core file.
    let limited = format!("{search}[limits]\ncores = \"1K\"\n");
    fs::write(place.0.join("s.toml"), limited).unwrap();
    let one = place.run("one", &["--search", "exhaustive"]);
    assert_eq!(cores_in("one").len(), 1);
    let warnings = one["warnings"].to_string();
    assert!(warnings.contains("no core file of 1 crash"), "{warnings}");
    let used = one["processor_seconds"].as_f64().unwrap();
    assert!(used > 0.0 && one["test_seconds"].as_f64().unwrap() > 0.0);

    let told = [
        ("callsite", "callsite : { \"sites.c:5\" }", 1),
        ("stack", ": malloc from sites.c:5", 3),
    ];
    for (by, text, times) in told {
        let profiled = place.faults(&["profile", "--by", by, "--", "./sites"]);
        let space = String::from_utf8(profiled.stdout).unwrap();
        assert_eq!(space.matches(text).count(), times, "{space}");
        fs::write(place.0.join("by.space"), &space).unwrap();
        fs::write(
            place.0.join("s.toml"),
            search.replace(search.lines().next().unwrap(), "space = \"by.space\""),
        )
        .unwrap();
        let summary = place.run(by, &["--search", "exhaustive"]);
        assert_eq!(
            (&summary["failures"], &summary["crashes"]),
            (&3.into(), &1.into()),
            "{space}"
        );
    }
}

/// System calls of a static program are failed by their site, too.
#[test]
fn system_calls_fail_by_their_call_site() {
    const PROGRAM: &str = "#include <fcntl.h>\n#include <unistd.h>\n\
        static int first(void) { return open(\"/dev/null\", O_RDONLY) < 0; }\n\
        static int second(void) { return open(\"/dev/zero\", O_RDONLY) < 0; }\n\
        int main(void) { first(); return second(); }\n";
    let search = "space = 'function : { openat } callsite : { \"p.c:3\", \"p.c:4\", second, third } ;'\n\
                  injector = \"ptrace\"\nprogram = \"p\"\ntest = \"./p\"\n";
    let place = TestFolder::new("sites-ptrace", &[("p.c", PROGRAM), ("s.toml", search)]);
    place.build("p", &["-g", "-static"]);
    let summary = place.run("out", &["--search", "exhaustive"]);
    let of = |site: &str| outcome(&summary, &format!("function openat callsite {site}"));
    let all = ["p.c:3", "p.c:4", "second", "third"].map(of);
    assert_eq!(all, ["passed", "failed", "failed", "passed"]);
    assert_eq!(summary["scenarios_injected"], 3);
}
