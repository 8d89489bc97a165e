//! Scripts that were written around KLEE: its names of programs, folders and options.

use crate::common::{build, everett, expect, folder, summary, text};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Has an error, and prints a variable of its environment.
const PROGRAM: &str = r#"
#include <klee/klee.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  unsigned a = klee_int("a");
  printf("zone %s\n", getenv("TZ"));
  fflush(stdout);
  klee_assert(a != 7);
  return 1 << (a % 40) == 16;
}
"#;

/// Returns the command that runs the link for KLEE's command line.
fn klee(folder: &Path) -> Command {
    if !folder.join("bin").exists() {
        expect(
            crate::common::everett(folder).args(["install-tools", "bin"]),
            0,
        );
    }
    let mut command = Command::new(folder.join("bin/everett-klee"));
    command.current_dir(folder).env("EVERETT_WORKERS", "1");
    command
}

#[test]
fn a_program_of_the_name_of_klee_takes_its_command_line() {
    let folder = folder("klee-script");
    fs::create_dir(folder.join("sub")).expect("a folder");
    build(&folder, "sub/program", PROGRAM, &["-g", "-O0"]);
    fs::write(folder.join("test.env"), "TZ=UTC+3\n\n  HOME=/ \n").expect("it can be written");
    let options = [
        "--env-file=test.env",
        "--check-overshift=false",
        "-optimize",
    ];
    let mut run = klee(&folder);
    let output = expect(run.args(options).arg("sub/program"), 0);
    let said = text(&output);
    assert!(said.contains("klee-out-0\""), "{said}");
    assert!(said.contains("ASSERTION FAIL: a != 7"), "{said}");
    assert!(!said.contains("overshift"), "{said}");
    assert!(said.contains("zone UTC+3\n"), "{said}");
    let last = folder.join("sub/klee-last");
    assert_eq!(fs::read_link(&last).ok(), Some("klee-out-0".into()));
    let names = fs::read_dir(&last).expect("a folder");
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let errors = names.filter(|name| name.ends_with(".assert.err"));
    assert_eq!(errors.count(), 1);
    // The next run has a folder of its own; KLEE ends with 1 only where it was told to stop.
    let mut run = klee(&folder);
    let said = text(&expect(run.args(["-exit-on-error", "sub/program"]), 1));
    assert!(said.contains("klee-out-1\""), "{said}");
    assert_eq!(fs::read_link(&last).ok(), Some("klee-out-1".into()));
    let said = text(&expect(
        klee(&folder).args(["--env-file=none", "sub/program"]),
        2,
    ));
    assert!(said.contains("--env-file: cannot read none"), "{said}");
}

/// Each test is replayed on its own, also where two take the same path.
#[test]
fn tests_are_replayed_one_by_one() {
    let folder = folder("klee-replays");
    build(&folder, "program", PROGRAM, &["-g", "-O0"]);
    let mut run = klee(&folder);
    let run = run.args(["--output-dir=all", "--check-overshift=false", "program"]);
    expect(run, 0);
    fs::create_dir(folder.join("tests")).expect("a folder");
    for name in ["a", "b", "c"] {
        let to = folder.join(format!("tests/{name}.ktest"));
        fs::copy(folder.join("all/test000001.ktest"), to).expect("it can be copied");
    }
    for workers in ["1", "2"] {
        let mut run = klee(&folder);
        run.args(["--workers", workers, "--output-dir", workers]);
        let run = run.args([
            "--check-overshift=false",
            "--replay-ktest-dir=tests",
            "program",
        ]);
        let said = text(&expect(run, 0));
        for (name, number) in [("a", 1), ("b", 2), ("c", 3)] {
            let line = format!("KLEE: replaying: tests/{name}.ktest (4 bytes) ({number}/3)");
            assert_eq!(said.matches(&line).count(), 1, "{line}: {said}");
        }
        let summary = summary(&folder.join(workers));
        assert_eq!(summary["paths"]["completed"], 3);
        crate::common::check_weights(&summary);
    }
}

/// Without the check, the processor decides, in the engine and natively.
#[test]
fn shifts_that_are_not_checked_are_those_of_the_processor() {
    const SHIFTS: &str = r#"
#include <everett.h>
#include <stdio.h>
int main(void) {
  unsigned amount = everett_symbolic_u32("amount");
  everett_assume(amount == 33 || amount == 4);
  volatile int one = 1;
  printf("%d\n", one << amount);
  return one << amount == 2;
}
"#;
    let folder = folder("unchecked-shifts");
    build(&folder, "shifts", SHIFTS, &["-g", "-O0"]);
    let run = |options: &[&str], out: &str, code: i32| {
        let mut run = crate::common::everett(&folder);
        run.args(["run", "--all-tests", "--out", out]).args(options);
        expect(run.arg("./shifts"), code);
        crate::common::endings(&folder.join(out))
    };
    run(&[], "checked", 1);
    let ends = run(&["--no-check-shifts"], "unchecked", 0);
    assert_eq!(ends.len(), 2, "{ends:?}");
    let mut test = crate::common::everett(&folder);
    expect(test.args(["test", "unchecked"]), 0);
}

/// Blocks that are never used take no memory, so a program gets more than there is.
#[test]
fn what_is_not_used_takes_no_memory() {
    const HUGE: &str = r#"
#include <klee/klee.h>
#include <stdlib.h>
int main(void) {
  unsigned long size = (1ul << 32) + 1;
  char *block = malloc(size);
  klee_assert(block);
  block[size - 1] = 42;
  if (klee_int("which"))
    klee_make_symbolic(block, size, "block");
  return block[size - 1] != 42;
}
"#;
    let folder = folder("klee-huge");
    build(&folder, "huge", HUGE, &["-g", "-O0"]);
    let mut run = klee(&folder);
    let said = text(&expect(run.args(["--output-dir=out", "huge"]), 0));
    for line in [
        "Large memory allocation (4294967297 bytes). KLEE may run out of memory.",
        "Symbolic objects larger than 4 GiB are not allowed (requested 4294967297 bytes).",
        "completed paths = 1",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

/// What KLEE warns of, and how it writes expressions.
#[test]
fn large_arrays_and_expressions_are_told_as_by_klee() {
    const LARGE: &str = r#"
#include <klee/klee.h>
int main(void) {
  static unsigned char array[4100] = {1, 2};
  unsigned index, other;
  klee_make_symbolic(&index, sizeof index, "index");
  klee_make_symbolic(&other, sizeof other, "other");
  klee_assume(index < sizeof array);
  klee_assume(other < sizeof array);
  klee_print_expr("index", index);
  array[index] = 3;
  return array[other] == 2;
}
"#;
    let folder = folder("klee-large");
    build(&folder, "large", LARGE, &["-g", "-O0"]);
    let mut run = klee(&folder);
    let said = text(&expect(run.args(["--output-dir=out", "large"]), 0));
    let large = "the following array of 4100 bytes to the constraint solver";
    for line in [
        format!("KLEE: WARNING ONCE: Symbolic memory write will send {large}"),
        format!("KLEE: WARNING ONCE: Symbolic memory read will send {large}"),
        "index:(ReadLSB w32 0 index)\n".to_owned(),
    ] {
        assert_eq!(said.matches(&line).count(), 1, "{line}: {said}");
    }
}

/// A name that can be anything is an error, one of two is two paths.
#[test]
fn names_of_inputs_are_known() {
    const NAMES: &str = r#"
#include <klee/klee.h>
#include <stddef.h>
int main(void) {
  unsigned which, number;
  const char *anything;
  klee_make_symbolic(&which, sizeof which, "which");
  klee_make_symbolic(&anything, sizeof anything, "anything");
  if (which == 1)
    klee_make_symbolic(&number, sizeof number, anything);
  if (which == 2)
    ((void (*)(void *, size_t))klee_make_symbolic)(&number, sizeof number);
  static const char *const names[] = {"one", "two"};
  klee_make_symbolic(&number, sizeof number, names[which & 1]);
  return number == 1;
}
"#;
    let folder = folder("klee-names");
    build(&folder, "names", NAMES, &["-g", "-O0"]);
    let mut run = klee(&folder);
    let said = text(&expect(run.args(["--output-dir=out", "names"]), 0));
    for line in [
        "names.c:10: Symbolic string pointer passed to one of the klee_ functions",
        "names.c:12: Incorrect number of arguments to klee_make_symbolic(void*, size_t, char*)",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let tests = fs::read_dir(folder.join("out/tests")).expect("a folder");
    let tests = tests.filter_map(|entry| fs::read(entry.ok()?.path()).ok());
    let tests: Vec<String> = tests
        .map(|test| String::from_utf8_lossy(&test).into_owned())
        .collect();
    for name in ["one", "two"] {
        assert!(tests.iter().any(|test| test.contains(name)), "{name}");
    }
}

#[test]
fn a_stack_is_printed_with_arguments() {
    const STACK: &str = r#"
#include <klee/klee.h>
__attribute__((noinline)) int inner(int number, int any) {
  klee_stack_trace();
  return number + any;
}
int main(void) {
  return inner(12, klee_int("any")) == 3;
}
"#;
    let folder = folder("klee-stack");
    build(&folder, "stack", STACK, &["-g", "-O0"]);
    let mut run = klee(&folder);
    let said = text(&expect(run.args(["--output-dir=out", "stack"]), 0));
    assert!(said.contains("\t#0 in inner(12, symbolic) at "), "{said}");
    assert!(said.contains("stack.c:4\n\t#1 in main("), "{said}");
}

/// Forks where more than a share of all forks is take one side, by instruction and by call path.
#[test]
fn forks_at_one_place_can_be_limited() {
    const FORKS: &str = r#"
#include <klee/klee.h>
__attribute__((noinline)) static int is_set(int bit) {
  if (bit) return 1;
  return 0;
}
int main(void) {
  int first = klee_int("first"), bits[6], set = 0;
  klee_make_symbolic(bits, sizeof bits, "bits");
  if (first == 3) return 1;
  for (int at = 0; at < 6; at++) set += is_set(bits[at]);
  return set;
}
"#;
    let folder = folder("klee-shares");
    build(&folder, "forks", FORKS, &["-g", "-O0"]);
    let run = |options: &[&str], out: &str| {
        let mut run = klee(&folder);
        run.args(options).args(["--output-dir", out, "./forks"]);
        let said = text(&expect(&mut run, 0));
        let summary = summary(&folder.join(out));
        crate::common::check_weights(&summary);
        (said, summary)
    };
    let (_, all) = run(&[], "all");
    assert_eq!(all["paths"]["completed"], 65);
    assert_eq!(all["limits_hit"], serde_json::json!([]));
    // One fork in `main`, and as many in the loop as are not more than half of all.
    let (said, half) = run(
        &["-max-static-fork-pct=0.5", "-max-static-pct-check-delay=1"],
        "half",
    );
    let warning = "skipping fork and concretizing condition (MaxStatic*Pct limit reached) at ";
    assert_eq!(said.matches(warning).count(), 1, "{said}");
    assert!(said.contains("forks.c:4\n"), "{said}");
    assert_eq!(half["paths"]["completed"], 4);
    assert_eq!(half["complete"], false);
    assert_eq!(
        half["limits_hit"],
        serde_json::json!(["max-static-fork-pct"])
    );
    // Both functions together have all forks; the limit begins after two.
    let (_, path) = run(
        &[
            "--max-static-cpfork-pct",
            "0.4",
            "--max-static-pct-check-delay",
            "2",
        ],
        "path",
    );
    assert!(path["paths"]["completed"].as_u64().expect("a number") < 10);
    assert_eq!(
        path["limits_hit"],
        serde_json::json!(["max-static-cpfork-pct"])
    );
    let mut wrong = klee(&folder);
    let wrong = wrong.args(["-max-static-fork-pct=2", "./forks"]);
    assert!(text(&expect(wrong, 2)).contains("not in 0..=1"));
}

/// As in KLEE, calls nest 8192 deep unless another limit is given, and what is deeper is cut off.
#[test]
fn nested_calls_are_limited_as_by_klee() {
    const DEEP: &str = r#"
#include <stdlib.h>
static int down(int depth) { return depth ? down(depth - 1) + 1 : 0; }
int main(int count, char **arguments) { return down(atoi(arguments[1])) % 7; }
"#;
    let folder = folder("klee-frames");
    build(&folder, "deep", DEEP, &["-g", "-O0"]);
    let run = |options: &[&str], depth: &str| {
        let mut run = klee(&folder);
        let run = run.args(["--output-dir", "out"]).args(options);
        let said = text(&expect(run.args(["./deep", depth]), 0));
        let summary = summary(&folder.join("out"));
        let early = folder.join("out/test000001.early").exists();
        std::fs::remove_dir_all(folder.join("out")).expect("a folder");
        (
            said.contains("KLEE: WARNING: Maximum stack size reached."),
            early,
            summary,
        )
    };
    let (is_said, early, cut) = run(&[], "9000");
    assert!(is_said && early, "{cut}");
    assert_eq!(cut["limits_hit"], serde_json::json!(["max-stack-frames"]));
    assert_eq!(cut["complete"], false);
    for (options, depth, is_cut) in [
        (&[][..], "8000", false),
        (&["--max-stack-frames=0"], "9000", false),
        (&["--max-stack-frames", "100"], "99", true),
        (&["--max-stack-frames", "100"], "90", false),
    ] {
        let (is_said, early, summary) = run(options, depth);
        assert_eq!((is_said, early), (is_cut, is_cut), "{depth} {summary}");
        assert_eq!(summary["complete"], !is_cut, "{summary}");
    }
    // Without KLEE's messages, too, a limit that the user set is no failure.
    let mut run = everett(&folder);
    run.args(["run", "--max-stack-frames", "100", "--out", "plain"]);
    expect(run.args(["./deep", "99"]), 0);
    assert_eq!(summary(&folder.join("plain"))["complete"], false);
}

/// What the C library executes before `main` is not counted, and limits do not include it.
#[test]
fn instructions_count_from_main() {
    const SHORT: &str = r#"
#include <klee/klee.h>
int main(void) {
  int number = klee_int("number");
  if (number == 5) klee_assert(0);
  return 0;
}
"#;
    let folder = folder("klee-count");
    build(&folder, "short", SHORT, &["-g", "-O0"]);
    let mut run = klee(&folder);
    let said = text(&expect(
        run.args(["-max-instructions=170", "--output-dir=out", "./short"]),
        0,
    ));
    assert!(said.contains("ASSERTION FAIL: 0"), "{said}");
    let mut own = crate::common::everett(&folder);
    expect(own.args(["run", "--out", "own", "./short"]), 1);
    let counted = summary(&folder.join("out"))["instructions"].as_u64();
    let all = summary(&folder.join("own"))["instructions"].as_u64();
    assert!(counted.is_some_and(|count| count > 0), "{counted:?}");
    assert!(
        counted < Some(200) && all > Some(300),
        "{counted:?} {all:?}"
    );
}

/// An error for which an instruction checks ends its path before another state runs.
#[test]
fn errors_of_instructions_come_first() {
    const SHIFT: &str = r#"
#include <klee/klee.h>
int main(void) {
  unsigned amount = klee_int("amount"), other = klee_int("other");
  volatile unsigned result = 15u << amount;
  if (other == 1) result = 2;
  else if (other == 2) result = 3;
  return result == 7;
}
"#;
    let folder = folder("klee-first");
    build(&folder, "shift", SHIFT, &["-g", "-O0"]);
    for seed in 0..5 {
        let mut run = klee(&folder);
        let out = format!("out-{seed}");
        run.args(["--output-dir", &out, "--seed", &seed.to_string()]);
        expect(run.arg("./shift"), 0);
        let error = folder.join(out).join("test000001.overshift.err");
        assert!(error.exists(), "{seed}");
    }
}

/// Names of parameters are shown where the bitcode has them.
#[test]
fn stacks_name_arguments_that_have_names() {
    const CALLS: &str = r#"
#include <klee/klee.h>
static int divide(int dividend, int divisor) { return dividend / divisor; }
int main(void) { return divide(klee_int("number"), 0); }
"#;
    let folder = folder("klee-parameters");
    fs::write(folder.join("calls.c"), CALLS).expect("it can be written");
    for (option, expected) in [
        (
            "-fno-discard-value-names",
            "in divide(dividend=symbolic, divisor=0) at ",
        ),
        ("-fdiscard-value-names", "in divide(symbolic, 0) at "),
    ] {
        let mut compile = crate::common::everett(&folder);
        compile.args(["cc", "-emit-llvm", "-c", "-g", "-O0", option]);
        expect(compile.args(["calls.c", "-o", "calls.bc"]), 0);
        let mut run = klee(&folder);
        expect(run.args(["--output-dir=out", "calls.bc"]), 0);
        let error = fs::read_to_string(folder.join("out/test000001.div.err"));
        let error = error.expect("a text");
        assert!(error.contains(expected), "{error}");
        fs::remove_dir_all(folder.join("out")).expect("a folder");
        fs::remove_file(folder.join("calls.linked")).expect("a program");
    }
}
