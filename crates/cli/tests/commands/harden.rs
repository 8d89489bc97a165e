//! `everett harden`: builds with selected checks compute the same as the program, and stop at
//! errors.

use crate::common::{build, everett, expect, folder};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

const SIGABRT: i32 = 6;

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

/// Runs a native program with input.
fn run(folder: &Path, program: &str, input: &str) -> Output {
    let mut child = Command::new(folder.join(program))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(input.as_bytes()).expect("it reads");
    drop(pipe);
    child.wait_with_output().expect("it ends")
}

/// Runs the first steps, without a workload.
fn estimate(folder: &Path, program: &str) -> usize {
    for step in ["instrument", "atoms", "estimate"] {
        expect(everett(folder).args(["harden", step, program]), 0);
    }
    let atoms = read_json(&folder.join(format!("{program}.harden/atoms.json")));
    atoms["atoms"].as_array().expect("atoms").len()
}

/// Builds a program with these checks.
fn activate(folder: &Path, program: &str, kept: &[usize], output: &str) {
    let selection = json!({
        "budget": null, "goal": null, "method": "greedy", "expected_overhead": 0.0,
        "benefit": 0.0, "benefit_other": 0.0, "kept": kept,
    });
    let path = folder.join(format!("{program}.harden/selection.json"));
    fs::write(path, selection.to_string()).expect("written");
    expect(
        everett(folder).args(["harden", "activate", "-o", output, program]),
        0,
    );
}

/// A program with everything that can confuse a runtime: threads, fork, signals that longjmp away,
/// callbacks, variable frames, large blocks.
const VARIED: &str = include_str!("../../../../tests/harden/varied.c");

/// Small programs of another kind: arithmetic in loops without
/// optimisation, and C++ with exceptions.
const LOOPS: &str = include_str!("../../../../tests/harden/loops.c");

const CXX: &str = include_str!("../../../../tests/harden/cxx.cc");

/// A number generator, so that selections are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        self.0 >> 33
    }
}

fn any_selection_computes_the_same(folder: &Path, program: &str, input: &str, selections: u64) {
    let expected = run(folder, program, input);
    assert!(expected.status.code().is_some(), "{expected:?}");
    let atoms = estimate(folder, program);
    for seed in 0..selections {
        let mut numbers = Numbers(seed);
        // From no checks to all.
        let kept: Vec<usize> = (0..atoms)
            .filter(|_| numbers.next() % (selections - 1) < seed)
            .collect();
        activate(folder, program, &kept, "chosen");
        let seen = run(folder, "chosen", input);
        assert_eq!(
            seen,
            expected,
            "seed {seed} of {program}, {} of {atoms} atoms",
            kept.len()
        );
    }
}

#[test]
fn threads_signals_and_jumps_are_the_same_with_any_selection() {
    let folder = folder("harden-varied");
    build(&folder, "varied", VARIED, &["-O2", "-g", "-pthread"]);
    any_selection_computes_the_same(&folder, "varied", "", 10);
}

/// Frames that a jump leaves have no red zones afterwards, and frames above it keep theirs. A
/// child of `vfork` shares them with its parent.
#[test]
fn frames_above_a_jump_keep_their_red_zones() {
    const JUMPS: &str = include_str!("../../../../tests/harden/jumps.c");
    let folder = folder("harden-jumps");
    build(&folder, "jumps", JUMPS, &["-O2", "-g", "-pthread"]);
    any_selection_computes_the_same(&folder, "jumps", "", 3);
    // The last selection had all checks.
    for how in ["vfork", "signal", "jump"] {
        let mut command = Command::new(folder.join("chosen"));
        let seen = command.args([how, "0123456789abc"]).output().unwrap();
        let said = String::from_utf8_lossy(&seen.stderr).into_owned();
        assert_eq!(seen.status.signal(), Some(SIGABRT), "{how}");
        assert!(said.contains("out of bounds: write of 14 bytes"), "{said}");
    }
}

#[test]
fn loops_are_the_same_with_any_selection() {
    let folder = folder("harden-loops");
    build(&folder, "loops", LOOPS, &["-O0", "-g"]);
    any_selection_computes_the_same(&folder, "loops", "one\ntwo\nthree\n", 10);
}

/// Programs of `tests/programs/c/exec`, all of them with `./test --targets all`. One overflows.
#[test]
fn test_programs_are_the_same_with_any_selection() {
    const SAMPLE: [&str; 2] = ["compression.c", "sections.c"];
    const OVERFLOWING: &str = "recursion.c";
    let all = std::env::var_os("EVERETT_TEST_ALL_TARGETS").is_some();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/c/exec");
    let mut count = 0;
    for entry in fs::read_dir(root).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let is_wanted = SAMPLE.contains(&&*name) || all && name != OVERFLOWING;
        let Some(stem) = name.strip_suffix(".c").filter(|_| is_wanted) else {
            continue;
        };
        let source = fs::read_to_string(entry.path()).unwrap();
        let flags = source
            .lines()
            .find_map(|line| line.strip_prefix("// build:"));
        let flags: Vec<&str> = flags.unwrap_or_default().split_whitespace().collect();
        let folder = folder(&format!("harden-{stem}"));
        build(
            &folder,
            stem,
            &source,
            &[&["-g", "-w"], &flags[..]].concat(),
        );
        any_selection_computes_the_same(&folder, stem, "", 10);
        count += 1;
    }
    assert!(count >= SAMPLE.len(), "{count}");
}

#[test]
fn exceptions_are_the_same_with_any_selection() {
    let folder = folder("harden-cxx");
    fs::write(folder.join("cxx.cc"), CXX).unwrap();
    let flags = ["c++", "-std=c++17", "-O1", "-g", "-o", "cxx", "cxx.cc"];
    expect(everett(&folder).args(flags), 0);
    // C++ programs take long to link.
    any_selection_computes_the_same(&folder, "cxx", "", 3);
}

/// A server with a hot command, and rare ones with bugs modelled on the vulnerabilities of §5.5.2.
const SERVER: &str = include_str!("../../../../tests/harden/server.c");

/// Inputs that trigger each of them, and the message of the full build. The third overwrites a
/// member of the same object, which red zones do not detect, also in the paper.
const VULNERABILITIES: [(&str, Option<&str>); 9] = [
    ("event -3", Some("out of bounds")),
    ("diag 200", Some("out of bounds")),
    ("compat", None),
    ("dump 24", Some("out of bounds")),
    ("closed 2", Some("use after free")),
    ("twice", Some("double free")),
    ("vcpu 18", Some("out of bounds")),
    (
        "service aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        Some("out of bounds"),
    ),
    ("page 96", Some("out of bounds")),
];

#[test]
fn vulnerabilities_in_rare_code_are_stopped() {
    let folder = folder("harden-rare");
    build(
        &folder,
        "server",
        SERVER,
        &["-O2", "-g", "-fno-stack-protector"],
    );
    let script = "#!/bin/sh\nprintf 'hot\\nhot\\n' | \"$1\" 100000\n";
    fs::write(folder.join("bench.sh"), script).unwrap();
    expect(
        Command::new("chmod").arg("+x").arg(folder.join("bench.sh")),
        0,
    );
    let mut harden = everett(&folder);
    harden.args([
        "harden",
        "--budget",
        "10%",
        "--rounds",
        "1",
        "--workload",
        "./bench.sh",
        "server",
    ]);
    // Times vary on a loaded machine. Code that never runs in the workload costs nothing, so its
    // checks are always kept.
    let output = harden.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let made = read_json(&folder.join("server.hard.json"));
    let atoms = made["atoms"].as_array().unwrap();
    let of = |key: &str| atoms.iter().filter(|atom| atom[key] == true).count() as u64;
    assert_eq!(made["selected"].as_u64(), Some(of("kept")));
    let rare = atoms.iter().filter(|atom| atom["count"] == 0);
    assert!(rare.clone().count() > 10 && rare.clone().all(|atom| atom["kept"] == true));
    let line = |text: &str| SERVER.lines().position(|line| line.contains(text)).unwrap() as u64 + 1;
    // The loop is unrolled: its checks share the work.
    let in_hot = atoms
        .iter()
        .filter(|atom| atom["line"] == line("sum = sum * 31"));
    let counts = in_hot.filter_map(|atom| atom["count"].as_u64());
    assert_eq!(counts.sum::<u64>(), 2 * 100_000 * 64);
    for (input, expected) in VULNERABILITIES {
        let input = format!("{input}\n");
        for program in ["server.harden/full", "server.hard"] {
            let seen = run(&folder, program, &input);
            let said = String::from_utf8_lossy(&seen.stderr).into_owned();
            match expected {
                Some(expected) => {
                    assert_eq!(seen.status.signal(), Some(SIGABRT), "{program} on {input}");
                    let expected = match said.contains("index out of bounds") {
                        true => "index out of bounds",
                        false => expected,
                    };
                    assert!(said.contains(expected), "{program} on {input} says {said}");
                    assert!(
                        said.contains("server.c:") || said.contains("free"),
                        "{said}"
                    );
                }
                None => assert_eq!(
                    seen.status.code(),
                    Some(0),
                    "{program} on {input} says {said}"
                ),
            }
        }
    }
}

/// Buffers of library calls are checked by what the call really reads and writes.
#[test]
fn buffers_of_library_calls_are_checked() {
    const CALLS: &str = include_str!("../../../../tests/harden/calls.c");
    let folder = folder("harden-calls");
    let flags = ["-O1", "-g", "-w", "-fno-builtin"];
    build(&folder, "calls", CALLS, &flags);
    let atoms = estimate(&folder, "calls");
    activate(&folder, "calls", &(0..atoms).collect::<Vec<_>>(), "full");
    let mut names: Vec<&str> = CALLS
        .split("strcmp(what, \"")
        .filter_map(|part| part.split_once("\"))"))
        .map(|(name, _)| name)
        .collect();
    names.retain(|name| !name.contains('\n'));
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let run = |more: &[&str]| {
            let mut command = Command::new(folder.join("full"));
            command.arg(name).args(more).output().expect("it starts")
        };
        let right = run(&[]);
        assert_eq!(right.status.code(), Some(0), "{name}: {right:?}");
        assert!(right.stdout.ends_with(b"done 1\n"), "{name}: {right:?}");
        let wrong = run(&["wrong"]);
        assert_eq!(wrong.status.signal(), Some(SIGABRT), "{name}: {wrong:?}");
        let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
        assert!(said.contains("stopped: out of bounds"), "{name}: {said}");
    }
}

/// Uninitialised memory needs a shadow of its own, and so another build.
#[test]
fn decisions_on_uninitialised_memory_stop_a_build_of_their_own() {
    const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *work(void *argument) {
  int *block = malloc(4 * sizeof *block);
  block[0] = *(int *)argument;
  int other = *(volatile int *)argument > 1 ? 1 : 0;
  if (block[other]) puts("more");
  free(block);
  return 0;
}
int main(int argc, char **argv) {
  pthread_t thread;
  pthread_create(&thread, 0, work, &argc);
  pthread_join(thread, 0);
  puts("done");
  return 0;
}
"#;
    let folder = folder("harden-initialised");
    build(&folder, "program", PROGRAM, &["-O1", "-g", "-pthread"]);
    expect(
        everett(&folder).args(["harden", "initialised", "program"]),
        0,
    );
    let right = run(&folder, "program.msan", "");
    assert_eq!(
        (right.status.code(), &*right.stdout),
        (Some(0), &b"more\ndone\n"[..])
    );
    let wrong = Command::new(folder.join("program.msan"))
        .arg("one")
        .output()
        .expect("it starts");
    assert_eq!(wrong.status.signal(), Some(SIGABRT), "{wrong:?}");
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        said.contains("stopped: uninitialised") && said.contains("0x"),
        "{said}"
    );
    let nothing = expect(
        everett(&folder).args(["harden", "initialised", "nosuch"]),
        2,
    );
    assert!(crate::common::text(&nothing).contains("nosuch.bc: there is no such file"));
}

/// Allocates and frees from two threads, and prints how much memory that took.
const CHURN: &str = include_str!("../../../../tests/harden/churn.c");

#[test]
fn the_heap_keeps_bounded_memory() {
    let folder = folder("harden-churn");
    build(&folder, "churn", CHURN, &["-O2", "-g", "-pthread"]);
    let atoms = estimate(&folder, "churn");
    activate(&folder, "churn", &(0..atoms).collect::<Vec<_>>(), "full");
    let seen = run(&folder, "full", "");
    let kib: u64 = String::from_utf8_lossy(&seen.stdout)
        .trim()
        .parse()
        .expect("a number");
    // Ten million blocks of half a kibibyte are 5 GiB; 64 live ones and the quarantine are at most
    // 50 MiB.
    assert!(kib < 128 << 10, "{kib} KiB");
}

/// A check on a line that a complete exploration has passed has less benefit than one that it never
/// reached.
#[test]
fn explorations_lower_the_benefit_of_what_they_reach() {
    const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int table[8];
static int log_note(int value) { return fprintf(stderr, "%d\n", value); }
int main(int argc, char **argv) {
  int *block = calloc(4, sizeof *block);
  block[argc & 3] = 1; /* reached */
  log_note(2);
  if (argc > 1)
    table[atoi(argv[1])] = block[argc]; /* unreached */
  free(block);
  return 0;
}
"#;
    let folder = folder("harden-explored");
    build(&folder, "program", PROGRAM, &["-O0", "-g"]);
    expect(
        everett(&folder).args(["run", "--out", "found", "./program"]),
        0,
    );
    expect(
        everett(&folder).args(["harden", "instrument", "--log", "log_note", "program"]),
        0,
    );
    expect(everett(&folder).args(["harden", "atoms", "program"]), 0);
    let estimate = ["harden", "estimate", "--explored", "found", "program"];
    let said = expect(everett(&folder).args(estimate), 0);
    assert!(
        crate::common::text(&said).contains("complete, 1 path;"),
        "{}",
        crate::common::text(&said)
    );
    let atoms = read_json(&folder.join("program.harden/atoms.json"));
    let estimates = read_json(&folder.join("program.harden/estimates.json"));
    let line = |text: &str| {
        PROGRAM
            .lines()
            .position(|line| line.contains(text))
            .unwrap() as u64
            + 1
    };
    let benefits = |kind: &str, wanted: u64| -> Vec<f64> {
        let all = atoms["atoms"].as_array().unwrap().iter().enumerate();
        all.filter(|(_, atom)| atom["line"] == wanted && atom["kind"] == kind)
            .map(|(at, _)| estimates["atoms"][at]["benefit"].as_f64().unwrap())
            .collect()
    };
    let reached = benefits("write", line("/* reached */"));
    let unreached = benefits("write", line("/* unreached */"));
    assert!(reached.iter().all(|benefit| *benefit < 0.1) && !reached.is_empty());
    assert!(unreached.iter().all(|benefit| *benefit == 1.0) && !unreached.is_empty());
    // A log statement is an atom; without it, the program prints nothing.
    assert_eq!(benefits("log", line("log_note(2)")).len(), 1);
    activate(&folder, "program", &[], "silent");
    assert_eq!(run(&folder, "silent", "").stderr, b"");
    expect(
        everett(&folder).args(["harden", "select", "--goal", "50%", "program"]),
        0,
    );
    expect(everett(&folder).args(["harden", "activate", "program"]), 0);
    let made = read_json(&folder.join("program.hard.json"));
    assert!(made["benefit"].as_f64().unwrap() >= 0.5 && made["is_measured"] == false);
    assert!(folder.join("program.harden/curve.svg").is_file());
}

#[test]
fn a_survey_makes_code_that_compiles() {
    const MAIN: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
unsigned long everett_popularity(long number, const long *arguments);
int main(void) {
  long read_only[6] = {0, O_RDONLY}, other[6] = {0, O_EXCL};
  printf("%lu %lu %lu\n", everett_popularity(SYS_open, read_only), everett_popularity(SYS_open, other),
         everett_popularity(SYS_close, other));
  return 0;
}
"#;
    let folder = folder("harden-survey");
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::create_dir_all(folder.join("headers")).unwrap();
    let header = "#define SYS_open 2\n#define SYS_close 3\n#define O_RDONLY 0\n";
    fs::write(folder.join("headers/fcntl.h"), header).unwrap();
    let source = "void f(void) { close(open(a, O_RDONLY)); open(b, O_RDONLY); open(c, flags); }\n";
    fs::write(folder.join("src/a.c"), source).unwrap();
    expect(
        everett(&folder).args(["harden", "survey", "--headers", "headers", "src"]),
        0,
    );
    fs::write(folder.join("main.c"), MAIN).unwrap();
    expect(
        everett(&folder).args(["cc", "-o", "main", "main.c", "survey/popularity.c"]),
        0,
    );
    assert_eq!(run(&folder, "main", "").stdout, b"2 1 1\n");
}

/// Handles requests through a table of functions. The request `far` reads past a block, which
/// native code survives.
const REQUESTS: &str = include_str!("../../../../tests/harden/requests.c");

#[test]
fn requests_decide_which_version_runs() {
    let folder = folder("harden-dynamic");
    build(&folder, "requests", REQUESTS, &["-O2", "-g"]);
    let input = "hello\nsorted\naway\nabc\nsorted again\naway\nlast\n".repeat(40);
    let expected = run(&folder, "requests", &input);
    estimate(&folder, "requests");
    let dynamic = |program: &str| {
        expect(
            everett(&folder).args(["harden", "select", "--budget", "0", program]),
            0,
        );
        let entry = ["harden", "activate", "--entry", "handle", program];
        expect(everett(&folder).args(entry), 0);
    };
    dynamic("requests");
    let made = read_json(&folder.join("requests.hard.json"));
    let paths = made["paths"].as_array().unwrap();
    let entry = paths.iter().find(|path| path["function"] == "handle");
    assert!(
        entry.is_some_and(|entry| entry["is_entry"] == true),
        "{paths:?}"
    );
    let on_request: u64 = paths
        .iter()
        .filter_map(|path| path["on_request"].as_u64())
        .sum();
    let atoms = made["atoms"].as_array().unwrap();
    let left_out = atoms.iter().filter(|atom| atom["kept"] == false).count() as u64;
    assert!(
        on_request > 0 && on_request <= left_out,
        "{on_request} of {left_out}"
    );
    let with_budget = |program: &str, budget: &str, input: &str| {
        let shell = format!("EVERETT_BUDGET={budget} exec ./{program}");
        let mut command = Command::new("sh");
        command.args(["-c", &shell]).current_dir(&folder);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A stopped program reads no further.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    };
    for budget in ["0", "5", "100000"] {
        assert_eq!(
            with_budget("requests.hard", budget, &input),
            expected,
            "{budget}"
        );
    }
    // With budget 0 nothing is checked, and with an unreachable budget everything is.
    assert_eq!(
        with_budget("requests.hard", "0", "far\n").status.code(),
        Some(0)
    );
    let stopped = with_budget("requests.hard", "100000", "far\n");
    assert_eq!(stopped.status.signal(), Some(SIGABRT));
    let said = String::from_utf8_lossy(&stopped.stderr).into_owned();
    assert!(
        said.contains("read of 1 byte") && said.contains("requests.c:"),
        "{said}"
    );
    // A program that decides itself has its unpopular requests checked, but not the popular ones.
    build(&folder, "deciding", REQUESTS, &["-O2", "-g", "-DDECIDES"]);
    estimate(&folder, "deciding");
    dynamic("deciding");
    let hot = "popular\n".repeat(1000);
    let stopped = with_budget("deciding.hard", "1", &format!("{hot}far\n"));
    assert_eq!(stopped.status.signal(), Some(SIGABRT));
    let wrong = ["harden", "activate", "--entry", "main", "requests"];
    let refused = expect(everett(&folder).args(wrong), 2);
    assert!(crate::common::text(&refused).contains("main cannot be an entry point"));
}

/// A hardened program that runs, and its control socket.
struct Asked {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
    socket: UnixDatagram,
    /// A short way to the program's folder: addresses of sockets are short, paths of folders may be long.
    short: tempfile::TempDir,
}

impl Asked {
    fn start(name: &str, source: &str, settings: &[(&str, &str)]) -> Asked {
        let folder = folder(name);
        build(&folder, "requests", source, &["-O2", "-g"]);
        // A process that was killed has left its socket behind.
        drop(UnixDatagram::bind(folder.join("control")));
        estimate(&folder, "requests");
        expect(
            everett(&folder).args(["harden", "select", "--budget", "0", "requests"]),
            0,
        );
        expect(
            everett(&folder).args(["harden", "activate", "--entry", "handle", "requests"]),
            0,
        );
        let mut child = Command::new(folder.join("requests.hard"))
            .current_dir(&folder)
            .env("EVERETT_CONTROL", "control")
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap()).lines();
        let short = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(&folder, short.path().join("there")).unwrap();
        let socket = UnixDatagram::bind(short.path().join("own")).unwrap();
        Asked {
            child,
            to,
            from,
            socket,
            short,
        }
    }

    /// Sends requests, and waits for each to be handled.
    fn request(&mut self, line: &str, count: usize) {
        for _ in 0..count {
            writeln!(self.to, "{line}").unwrap();
            self.from.next().unwrap().unwrap();
        }
    }

    /// Sends a message, and returns the figures that are answered after the next requests.
    fn ask(&mut self, message: &str, line: &str) -> String {
        let control = self.short.path().join("there/control");
        self.socket.send_to(message.as_bytes(), control).unwrap();
        self.request(line, 64);
        let mut answer = [0; 1000];
        let size = self.socket.recv(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..size]).into_owned()
    }

    fn end(mut self) {
        drop(self.to);
        assert!(self.child.wait().unwrap().success());
    }
}

/// Returns one of the figures of an answer.
fn figure(answer: &str, name: &str) -> u64 {
    let line = answer.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|value| value.trim().parse().ok());
    value.unwrap_or_else(|| panic!("{name} in {answer}"))
}

/// The control socket accepts a budget, and answers with figures.
#[test]
fn a_running_program_can_be_asked() {
    let mut program = Asked::start("harden-control", REQUESTS, &[]);
    program.request("hello", 1);
    let answer = program.ask("budget 7", "hello");
    assert_eq!(figure(&answer, "budget_permille"), 70, "{answer}");
    assert_eq!(figure(&answer, "requests"), 64, "{answer}");
    assert_eq!(figure(&answer, "late_permille"), 0, "{answer}");
    // What is no number changes nothing.
    let answer = program.ask("budget x", "hello");
    assert_eq!(figure(&answer, "budget_permille"), 70, "{answer}");
    let answer = program.ask("budget 2.5%\n", "hello");
    assert_eq!(figure(&answer, "budget_permille"), 25, "{answer}");
    // Another process of the program runs without.
    let folder = program.short.path().join("there");
    let other = |name: &str, value: &str| {
        let mut command = Command::new(folder.join("requests.hard"));
        command.current_dir(&folder).env(name, value);
        command.stdin(Stdio::null()).output().unwrap()
    };
    let second = other("EVERETT_CONTROL", "control");
    assert!(second.status.success(), "{second:?}");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("is that of another process"), "{said}");
    for (name, value) in [("EVERETT_BUDGET", "all"), ("EVERETT_LATENCY", "")] {
        let refused = other(name, value);
        assert_eq!(refused.status.signal(), Some(SIGABRT), "{name}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(&format!("{name} is not a number")), "{said}");
    }
    program.end();
}

/// The budget is that of a process and its children, and any of them answers.
#[test]
fn children_share_the_budget() {
    const CHILDREN: &str = include_str!("../../../../tests/harden/children.c");
    let mut program = Asked::start("harden-children", CHILDREN, &[]);
    program.request("hello", 2);
    let control = program.short.path().join("there/control");
    program.socket.send_to(b"budget 9", control).unwrap();
    program.request("hello", 1);
    program.request("hello", 1);
    let mut answer = [0; 1000];
    let size = program.socket.recv(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer[..size]).into_owned();
    assert_eq!(figure(&answer, "requests"), 64 * 3, "{answer}");
    let control = program.short.path().join("there/control");
    program.socket.send_to(b"figures", control).unwrap();
    program.request("hello", 1);
    let size = program.socket.recv(&mut [0; 1000]).unwrap();
    assert!(size > 0);
    program.end();
}

/// What was made before its input was made again is about another build.
#[test]
fn steps_that_are_out_of_date_are_refused() {
    let folder = folder("harden-stale");
    let source = "#include <stdio.h>\nint main(int c, char **v) { printf(\"%s\", v[c - 1]); }\n";
    build(&folder, "program", source, &["-O1", "-g"]);
    estimate(&folder, "program");
    let step = |words: &[&str], code| {
        let output = expect(everett(&folder).arg("harden").args(words), code);
        crate::common::text(&output)
    };
    step(&["select", "--budget", "50", "program"], 0);
    build(&folder, "program", source, &["-O1", "-g"]);
    let said = step(&["activate", "program"], 2);
    assert!(
        said.contains("run `everett harden instrument` again"),
        "{said}"
    );
    step(&["instrument", "program"], 0);
    let said = step(&["select", "--budget", "50", "program"], 2);
    assert!(said.contains("run `everett harden atoms` again"), "{said}");
    let said = step(&["instrument", "--log", "nofunction", "program"], 2);
    assert!(said.contains("no call of nofunction"), "{said}");
    let said = step(&["survey", "nofolder"], 2);
    assert!(said.contains("cannot read nofolder"), "{said}");
    let said = step(&["estimate", "--rounds", "0", "program"], 2);
    assert!(said.contains("invalid value '0'"), "{said}");
}

/// The monitor alone, with a clock of its own: checked requests take longer than they may, others do
/// not. As many are checked as the limit allows, and more when it is lifted.
#[test]
fn as_many_requests_are_checked_as_their_limit_allows() {
    const STUBS: &str = include_str!("../../../../tests/harden/monitor_stubs.c");
    const MONITOR: &str = include_str!("../../../toolchain/runtime/hard/decide.c");
    const RUN: &str = include_str!("../../../../tests/harden/monitor.c");
    let folder = folder("harden-monitor");
    let source = format!("{STUBS}\n{MONITOR}\n{RUN}");
    build(&folder, "monitor", &source, &["-O1", "-w"]);
    let output = run(&folder, "monitor", "");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// Requests that take longer than they may are checked less and less, whatever the budget.
#[test]
fn a_running_program_keeps_the_time_of_requests() {
    let settings = [("EVERETT_BUDGET", "100000"), ("EVERETT_LATENCY", "0.1ms")];
    let mut program = Asked::start("harden-latency", REQUESTS, &settings);
    program.request("slow", 64 * 5);
    let answer = program.ask("figures", "slow");
    assert_eq!(figure(&answer, "latency_microseconds"), 100, "{answer}");
    assert_eq!(figure(&answer, "late_permille"), 1000, "{answer}");
    assert!(figure(&answer, "period") >= 16, "{answer}");
    let [requests, checked] = ["requests", "checked"].map(|name| figure(&answer, name));
    assert!(checked < requests / 2, "{answer}");
    // With time enough, the late ones count less and less.
    program.ask("latency 1000s", "slow");
    program.request("slow", 64 * 2);
    let later = program.ask("figures", "slow");
    assert!(figure(&later, "late_permille") < 1000, "{later}");
    program.end();
}
