//! What runs with KLEE's messages do as KLEE does, where others do as a native program.

use crate::common::{build, check_weights, endings, everett, expect, folder, summary, text};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs a program with KLEE's messages and returns what was said. Errors do not change the exit
/// code.
fn said_by_klee(folder: &Path, options: &[&str], program: &str) -> String {
    let mut run = everett(folder);
    run.args(["run", "--klee-messages", "--output-dir=out"]);
    text(&run.args(options).arg(program).output().expect("it runs"))
}

/// Returns the endings of the files of errors in the folder `out`, sorted.
fn error_endings(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder.join("out"))
        .expect("a folder")
        .flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let tests = names.filter(|name| name.starts_with("test0"));
    let endings = tests.filter_map(|name| Some(name.split_once('.')?.1.to_owned()));
    let mut endings: Vec<String> = endings.filter(|ending| ending != "ktest").collect();
    endings.sort();
    endings
}

#[test]
fn objects_are_made_symbolic_whole() {
    const PARTS: &str = r#"
#include <klee/klee.h>
int main(void) {
  int which, pair[2] = {0, 0};
  klee_make_symbolic(&which, sizeof which, "which");
  switch (which) {
  case 1: klee_make_symbolic(pair, sizeof *pair, "part"); break;
  case 2: klee_make_symbolic(pair + 1, sizeof *pair, "rest"); break;
  }
  return pair[1] == 9;
}
"#;
    let folder = folder("klee-parts");
    build(&folder, "parts", PARTS, &["-g", "-O0"]);
    let said = said_by_klee(&folder, &[], "./parts");
    for line in [
        "parts.c:7: Wrong size given to klee_make_symbolic",
        "parts.c:8: memory error: invalid pointer: make_symbolic",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(error_endings(&folder), ["ptr.err", "user.err"]);
    // Otherwise a part can be symbolic.
    let mut run = everett(&folder);
    expect(run.args(["run", "--out", "own", "./parts"]), 0);
}

/// Bitcode with a function that is nowhere can be explored; only paths that call it end there.
#[test]
fn functions_that_are_nowhere_are_errors_of_paths() {
    const OBJECT: &str = r#"
#include <klee/klee.h>
#include <assert.h>
void nowhere(int);
int main(void) {
  int which = klee_int("which"), side = 0;
  switch (which) {
  case 1: nowhere(7);
  case 2: assert(0);
  case 3: klee_silent_exit(0);
  case 4: klee_make_symbolic(&side, 2, "side");
  case 5:
    klee_make_symbolic(&side, sizeof side, "side");
    klee_open_merge();
    which += side == 8;
    if (side > 3) which++;
    klee_close_merge();
  }
  return which == 3;
}
"#;
    let folder = folder("klee-nowhere");
    fs::write(folder.join("object.c"), OBJECT).expect("it can be written");
    let mut compile = everett(&folder);
    expect(
        compile.args([
            "cc",
            "-emit-llvm",
            "-c",
            "-g",
            "object.c",
            "-o",
            "object.bc",
        ]),
        0,
    );
    let said = said_by_klee(&folder, &["--write-no-tests"], "object.bc");
    for line in [
        "KLEE: WARNING: undefined reference to function: nowhere\n",
        "object.c:8: failed external call: nowhere\n",
        "object.c:9: ASSERTION FAIL: 0\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let stats = fs::read(folder.join("out/run.stats")).expect("statistics");
    let stats = String::from_utf8_lossy(&stats);
    assert!(stats.contains("TerminationExecutionError INTEGER"));
    // Also where no tests are written, errors are no completed paths.
    assert!(said.contains("KLEE: done: completed paths = 2\n"), "{said}");
    assert_eq!(summary(&folder.join("out"))["paths_merged"], 1);
}

/// Where the result of `llvm.abs` is poison.
#[test]
fn the_absolute_value_of_the_least_integer_is_an_error() {
    const ABS: &str = "\
define i32 @main() {
  %1 = call i32 @llvm.abs.i32(i32 -2147483648, i1 false)
  %2 = call i32 @llvm.abs.i32(i32 %1, i1 true)
  ret i32 %2
}
declare i32 @llvm.abs.i32(i32, i1 immarg)
";
    let folder = folder("klee-abs");
    fs::write(folder.join("abs.ll"), ABS).expect("it can be written");
    let said = said_by_klee(&folder, &[], "abs.ll");
    let error =
        "KLEE: ERROR: (location information missing) llvm.abs called with poison and INT_MIN";
    assert_eq!(said.matches(error).count(), 1, "{said}");
    assert_eq!(error_endings(&folder), ["exec.err"]);
}

/// As in KLEE and its library for replays, the explored and the native program print what they
/// have written through stdio.
#[test]
fn a_silent_exit_loses_no_output() {
    const PRINTS: &str = r#"
#include <klee/klee.h>
#include <stdio.h>
int main(void) {
  printf("buffered");
  klee_silent_exit(3);
}
"#;
    let folder = folder("klee-buffered");
    build(&folder, "prints", PRINTS, &["-g"]);
    let mut native = Command::new(folder.join("prints"));
    let output = expect(&mut native, 3);
    assert_eq!(output.stdout, b"buffered");
    let said = said_by_klee(&folder, &[], "./prints");
    assert!(said.contains("buffered"), "{said}");
}

#[test]
fn a_hundred_arguments_can_be_symbolic() {
    let folder = folder("klee-many-arguments");
    build(&folder, "empty", "int main(void) { return 0; }", &[]);
    for (count, code) in [("100", 0), ("101", 2)] {
        let mut run = everett(&folder);
        run.args(["run", "--klee-messages", "--max-paths=1", "--out", count]);
        run.args(["./empty", "--sym-args", count, count, "1"]);
        let said = text(&expect(&mut run, code));
        let is_refused = said.contains("No more than 100 symbolic arguments allowed.");
        assert_eq!(is_refused, code == 2, "{said}");
    }
}

/// Operands of operations on floats get the value of a seed, as KLEE concretises them, and the rest
/// is not explored; integers are explored as always.
#[test]
fn floats_of_seeds_are_concretised() {
    const FLOATS: &str = r#"
#include <klee/klee.h>
int main(void) {
  int number = klee_int("number"), other = klee_int("other");
  double half = number / 2.0;
  if (half > 3) return 1;
  return other == 5 ? 2 : 3;
}
"#;
    let folder = folder("klee-floats");
    build(&folder, "floats", FLOATS, &["-g", "-O0"]);
    let note = "concretizing (reason: floating point)";
    let said = said_by_klee(&folder, &[], "./floats");
    assert!(!said.contains(note), "{said}");
    assert_eq!(summary(&folder.join("out"))["paths"]["completed"], 2);
    let seed = fs::read_dir(folder.join("out"))
        .expect("a folder")
        .flatten();
    let mut seeds = seed.filter(|file| file.file_name().to_string_lossy().ends_with(".ktest"));
    let seed = seeds.next().expect("a test").path();
    let seed = format!("--seed-file={}", seed.display());
    fs::rename(folder.join("out"), folder.join("all")).expect("a folder");
    let seed = seed.replace("/out/", "/all/");
    let said = said_by_klee(&folder, &[&seed], "./floats");
    assert_eq!(said.matches(note).count(), 1, "{said}");
    // The option is there for all runs.
    let mut run = everett(&folder);
    let run = run.args(["run", "--concretize-floats", "--out", "own", "./floats"]);
    expect(run, 0);
    for out in ["out", "own"] {
        let summary = summary(&folder.join(out));
        let completed = summary["paths"]["completed"].as_u64().expect("a number");
        assert_eq!(completed, 1, "{summary}");
        assert_eq!(summary["complete"], false);
        let limits = serde_json::json!(["concretize-floats"]);
        assert_eq!(summary["limits_hit"], limits);
        check_weights(&summary);
    }
}

/// A seed whose inputs have other names fits by their order.
#[test]
fn inputs_of_seeds_are_taken_in_order() {
    const NAMED: &str = r#"
#include <klee/klee.h>
int main(int count, char **words) {
  int number = klee_int(count > 1 ? words[1] : "number");
  if (count == 1) klee_assume(number == 77);
  return number == 77 ? 5 : 6;
}
"#;
    let folder = folder("klee-named");
    build(&folder, "named", NAMED, &["-g"]);
    said_by_klee(&folder, &[], "./named");
    for (klee, name, code) in [
        (true, "number", 5),
        (true, "other", 5),
        (false, "number", 5),
        (false, "other", 6),
    ] {
        let out = format!("{name}-{klee}");
        let mut run = everett(&folder);
        run.args(["run", "--all-tests", "--only-seeds", "--out", &out]);
        run.args(["--seeds", "out/test000001.ktest"]);
        if klee {
            run.arg("--klee-messages");
        }
        expect(run.args(["./named", name]), 0);
        let ends = endings(&folder.join(&out));
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert!(ends[0].contains(&code.to_string()), "{ends:?}");
    }
}
