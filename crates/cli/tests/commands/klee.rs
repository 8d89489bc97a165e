//! Harnesses and scripts that were written for KLEE: the texts of its errors, and the arguments of
//! its runtime.

use crate::common::{build, endings, everett, expect, folder, summary, text};
use std::fs;
use std::path::Path;

/// Makes one error of each kind that functions of `klee/klee.h` can make.
const ERRORS: &str = r#"
#include <klee/klee.h>
int main(void) {
  unsigned char which, y;
  int small;
  static const int constant = 3;
  klee_make_symbolic(&which, sizeof which, "which");
  klee_make_symbolic(&y, sizeof y, "y");
  switch (which) {
  case 1: klee_make_symbolic(&small, 8, "small"); break;
  case 2: klee_make_symbolic((void *)0, 4, "null"); break;
  case 3: klee_make_symbolic((void *)&constant, 4, "constant"); break;
  case 4: klee_check_memory_access(&small, 5); break;
  case 5: klee_assume(y > 5); klee_assume(y < 3); break;
  case 6: return klee_range(4, 3, "range");
  case 7: klee_assume(y < 3); break;
  }
  return 0;
}
"#;

/// Runs a program with KLEE's messages, and returns them with the errors' file endings, sorted.
fn errors(folder: &Path, program: &str) -> (Vec<String>, Vec<String>) {
    let mut run = everett(folder);
    run.args(["run", "--klee-messages", "--out", "out"]);
    let said = text(&expect(run.arg(program), 1));
    let errors = said.lines().filter(|line| line.contains("KLEE: ERROR"));
    let mut errors: Vec<String> = errors
        .map(|line| line.rsplit(".c:").next().expect("a place").to_owned())
        .collect();
    errors.sort();
    let files = fs::read_dir(folder.join("out")).expect("a folder");
    let names = files.map(|file| {
        file.expect("a file")
            .file_name()
            .into_string()
            .expect("UTF-8")
    });
    let mut endings: Vec<String> = names
        .filter(|name| name.starts_with("test0"))
        .filter_map(|name| Some(name.split_once('.')?.1.to_owned()))
        .filter(|ending| ending != "ktest")
        .collect();
    endings.sort();
    (errors, endings)
}

#[test]
fn errors_of_the_interface_have_the_texts_of_klee() {
    let folder = folder("klee-errors");
    build(&folder, "errors", ERRORS, &["-g"]);
    let (errors, endings) = errors(&folder, "./errors");
    let expected = [
        "10: Wrong size given to klee_make_symbolic",
        "11: memory error: invalid pointer: make_symbolic",
        "12: cannot make readonly object symbolic",
        "13: check_memory_access: memory error",
        "14: invalid klee_assume call (provably false)",
        "15: invalid range",
    ];
    assert_eq!(errors, expected);
    assert_eq!(
        endings,
        [
            "ptr.err", "ptr.err", "user", "user.err", "user.err", "user.err"
        ]
    );
}

/// As KLEE does, an error is known by its instruction, not by its line.
#[test]
fn errors_at_instructions_of_a_line_are_different() {
    let folder = folder("klee-instructions");
    let program = r#"
#include <klee/klee.h>
int main(void) {
  unsigned char which, index;
  char one[4] = {0}, other[4] = {0};
  klee_make_symbolic(&which, sizeof which, "which");
  klee_make_symbolic(&index, sizeof index, "index");
  return which > 9 ? one[index] : other[index];
}
"#;
    build(&folder, "line", program, &["-g"]);
    let (errors, _) = errors(&folder, "./line");
    assert_eq!(errors, ["8: memory error: out of bound pointer"; 2]);
    // Without KLEE's messages, people look at lines.
    expect(
        everett(&folder).args(["run", "--out", "lines", "./line"]),
        1,
    );
    let lines = summary(&folder.join("lines"));
    assert_eq!(lines["findings"].as_array().map(Vec::len), Some(1));
}

/// Reads and writes a file, and ends with the number of its arguments or with what has failed.
const FILES: &str = r#"
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char byte;
  int failures = 0, fd = open("A", O_RDWR);
  failures += read(fd, &byte, 1) < 0;
  failures += write(fd, "x", 1) < 0;
  failures += close(fd) < 0;
  return 10 * failures + argc;
}
"#;

#[test]
fn arguments_of_the_runtime_of_klee_are_not_those_of_the_program() {
    let folder = folder("klee-arguments");
    build(&folder, "files", FILES, &[]);
    let ends = |args: &[&str], options: &[&str]| {
        let mut run = everett(&folder);
        run.args(["run", "--all-tests", "--out", "out"])
            .args(options);
        expect(run.args(["./files", "--sym-files", "1", "4"]).args(args), 0);
        let mut codes: Vec<String> = endings(&folder.join("out"))
            .iter()
            .map(|end| end.split([':', ',']).nth(1).expect("a code").to_owned())
            .collect();
        fs::remove_dir_all(folder.join("out")).expect("it can go");
        codes.dedup();
        codes
    };
    assert_eq!(ends(&["--save-all-writes", "--sym-stdout"], &[]), ["1"]);
    assert_eq!(ends(&["--fd-fail"], &[]), ["1", "11"]);
    assert_eq!(
        ends(&["-max-fail", "2", "argument"], &[]),
        ["12", "2", "22"]
    );
    // The options of the run say which calls fail, the larger number is that of failures.
    let closes = ["--faults", "1", "--fault", "close:EIO"];
    assert_eq!(ends(&["--max-fail", "2"], &closes), ["1", "11"]);
    let mut run = everett(&folder);
    run.args(["run", "./files", "--max-fail"]);
    let said = text(&expect(&mut run, 2));
    assert!(
        said.contains("--max-fail needs a number of failures"),
        "{said}"
    );
}

#[test]
fn a_wild_pointer_and_one_out_of_bounds_are_one_error() {
    const POINTERS: &str = r#"
#include <klee/klee.h>
int array[4];
int main(void) {
  int which;
  klee_make_symbolic(&which, sizeof which, "which");
  int *pointer = which == 1 ? (int *)0x123456789 : which == 2 ? array + 4 : which == 3 ? array + 5 : array;
  return *pointer;
}
"#;
    let folder = folder("klee-pointers");
    build(&folder, "pointers", POINTERS, &["-g", "-O0"]);
    let (errors, endings) = errors(&folder, "./pointers");
    assert_eq!(errors, ["8: memory error: out of bound pointer"]);
    assert_eq!(endings, ["ptr.err"]);
    let messages = fs::read_to_string(folder.join("out/messages.txt")).expect("a text");
    assert_eq!(messages.matches("KLEE: ERROR").count(), 1, "{messages}");
}

/// Stacks in files of errors show what functions were called with.
#[test]
fn stacks_have_arguments() {
    const CALLS: &str = r#"
#include <klee/klee.h>
__attribute__((noinline)) static int inner(int divisor, int dividend) {
  return dividend / divisor;
}
__attribute__((noinline)) static int outer(int number, long divisor) {
  return inner((int)divisor, number);
}
int main(void) {
  int number;
  klee_make_symbolic(&number, sizeof number, "number");
  if (number == 7)
    return outer(number, 0);
  return outer(number, 1);
}
"#;
    let folder = folder("klee-stacks");
    build(&folder, "calls", CALLS, &["-g", "-O0"]);
    let (errors, endings) = errors(&folder, "./calls");
    assert_eq!(errors, ["4: divide by zero"]);
    assert_eq!(endings, ["div.err"]);
    let files = fs::read_dir(folder.join("out")).expect("a folder");
    let mut paths = files.flatten().map(|file| file.path());
    let path = paths.find(|path| path.to_string_lossy().ends_with(".div.err"));
    let text = fs::read_to_string(path.expect("a file")).expect("a text");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("\t#"))
        .take(2)
        .map(|line| line.split(" at ").next().unwrap_or_default())
        .collect();
    let expected = [
        "\t#000000000 in inner(0, symbolic)",
        "\t#100000000 in outer(symbolic, 0)",
    ];
    assert_eq!(lines, expected, "{text}");
}

/// As KLEE does, a run prints what the program prints: once what paths have in common.
#[test]
fn what_the_program_prints_is_printed() {
    const PRINTS: &str = r#"
#include <klee/klee.h>
#include <unistd.h>
int main(void) {
  int which = klee_int("which");
  write(1, "first\n", 6);
  int small = which < 10;
  write(1, small ? "small\n" : "large\n", 6);
  write(2, "error\n", 6);
  if (small && which > 5)
    write(1, "middle\n", 7);
  klee_assert(which != 77);
  write(1, "last\n", 5);
  return 0;
}
"#;
    let folder = folder("klee-prints");
    build(&folder, "prints", PRINTS, &["-g"]);
    for workers in ["1", "2"] {
        let mut run = everett(&folder);
        run.args(["run", "--klee-messages", "--workers", workers, "./prints"]);
        let output = expect(&mut run, 1);
        let printed = String::from_utf8(output.stdout.clone()).expect("UTF-8");
        let mut printed: Vec<&str> = printed.lines().collect();
        printed.sort_unstable();
        assert_eq!(
            printed,
            ["first", "large", "last", "last", "last", "middle", "small"]
        );
        let errors = text(&output).matches("error\n").count();
        assert_eq!(errors, 2, "each side of the first branch");
    }
}

/// Fails in different ways, which clang's traps tell apart only in part.
const CHECKED: &str = r#"
#include <klee/klee.h>
int main(void) {
  int table[4] = {0}, which, number;
  float zero = 0;
  klee_make_symbolic(&which, sizeof which, "which");
  klee_make_symbolic(&number, sizeof number, "number");
  char *bytes = (char *)table;
  switch (which) {
  case 1: return table[number & 7];
  case 2: return number + 1;
  case 3: return 1 << number;
  case 4: return *(_Bool *)&number;
  case 5: return *(int *)(bytes + 1);
  case 6: return *(number == 3 ? (int *)0 : table);
  case 7: return (unsigned char)0 + (signed char){number};
  case 8: return (bytes - (unsigned long)bytes) != 0;
  case 9: return 1 / zero > 7;
  case 10: return number ? number / -1 : 0;
  }
  return 0;
}
"#;

const CHECKS: &str = "-fsanitize=array-bounds,signed-integer-overflow,shift-exponent,bool,alignment,null,\
                      implicit-signed-integer-truncation,pointer-overflow,float-divide-by-zero,\
                      integer-divide-by-zero";

#[test]
fn checks_of_the_sanitizer_have_the_texts_of_klee() {
    let folder = folder("klee-sanitizer");
    build(&folder, "checked", CHECKED, &["-g", "-O0", CHECKS]);
    let (errors, endings) = errors(&folder, "./checked");
    let expected = [
        "10: out-of-bounds-index",
        "11: signed-integer-overflow",
        "12: shift out of bounds",
        "13: load invalid value",
        "14: misaligned-pointer-use",
        "15: null-pointer-use",
        "16: implicit-signed-integer-truncation",
        "17: nullptr-after-nonzero-offset",
        "18: float-divide-by-zero",
        "19: integer division overflow",
    ];
    assert_eq!(errors, expected);
    assert_eq!(
        endings,
        [
            "div.err",
            "implicit_truncation.err",
            "invalid_load.err",
            "overflow.err",
            "overflow.err",
            "overflow.err",
            "ptr.err",
            "ptr.err",
            "ptr.err",
            "ptr.err",
        ]
    );
    // Natively, each of them ends in a trap.
    let confirmed = summary(&folder.join("out"));
    let findings = confirmed["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), 10);
    for finding in findings {
        assert_eq!(finding["confirmed"], "confirmed", "{finding}");
    }
}

#[test]
fn traps_of_the_sanitizer_have_the_texts_of_klee() {
    let folder = folder("klee-traps");
    let flags = ["-g", "-O0", CHECKS, "-fsanitize-trap=all"];
    build(&folder, "checked", CHECKED, &flags);
    let (errors, _) = errors(&folder, "./checked");
    for expected in [
        "10: out-of-bounds-index",
        "11: signed-integer-overflow",
        "12: shift out of bounds",
        "13: load invalid value",
    ] {
        assert!(errors.iter().any(|error| error == expected), "{errors:?}");
    }
    assert_eq!(errors.len(), 10, "{errors:?}");
}

/// As KLEE loads it, bitcode that a compiler wrote needs no build.
#[test]
fn bitcode_of_a_compiler_is_linked() {
    const OBJECT: &str = r#"
#include <klee/klee.h>
#include <stdio.h>
#include <stdlib.h>
int __snprintf_chk(char *, unsigned long, int, unsigned long, const char *, ...);
int twice(int a) {
  char text[9];
  // As glibc's headers have it.
  __snprintf_chk(text, sizeof text, 1, sizeof text, "%d", 2 * a);
  return atoi(text);
}
int thrice(int a) { return 3 * a; }
void end(int status) {
  printf("ended with %d\n", status);
  fflush(stdout);
  klee_silent_exit(status);
}
int other(int count, char **arguments) {
  printf("%d: %s\n", count, arguments[1]);
  return 5;
}
int main(void) {
  printf("main: %d\n", twice(7));
  exit(3);
}
"#;
    let folder = folder("klee-objects");
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
    let run = |number: &str, options: &[&str], code: i32| {
        let mut run = everett(&folder);
        run.args(["run", "--klee-messages", "--output-dir", number]);
        run.args(options).args(["object.bc", "argument"]);
        let output = expect(&mut run, code);
        let printed = String::from_utf8(output.stdout.clone()).expect("UTF-8");
        (printed, text(&output))
    };
    assert_eq!(run("1", &[], 0).0, "main: 14\n");
    assert_eq!(run("2", &["--entry-point=other"], 0).0, "2: argument\n");
    let aliases = [
        "-function-alias=exit:end",
        "--function-alias",
        "twi.*:thrice",
    ];
    let (printed, said) = run("3", &aliases, 0);
    assert_eq!(printed, "main: 21\nended with 3\n");
    assert!(
        said.contains("KLEE: function-alias: replaced @exit with @end"),
        "{said}"
    );
    let (_, said) = run("4", &["--entry-point=missing"], 2);
    let missing = "KLEE: ERROR: Entry function 'missing' not found in module.";
    assert!(said.contains(missing), "{said}");
    // What is linked has its entry.
    build(&folder, "linked", "int main(void) { return 0; }", &[]);
    let mut run = everett(&folder);
    run.args(["run", "--klee-messages", "--entry-point=other", "./linked"]);
    let said = text(&expect(&mut run, 2));
    assert!(said.contains("belong to the build"), "{said}");
}

#[test]
fn wrong_arguments_of_the_runtime_are_refused_with_its_texts() {
    let folder = folder("klee-wrong-arguments");
    build(&folder, "files", FILES, &[]);
    for (args, wanted) in [
        (
            "--sym-files 1 10 --sym-files 2 10",
            "Multiple --sym-files are not allowed",
        ),
        ("--sym-files 0 10", "(number of files) cannot be 0"),
        ("--sym-files 2 0", "(file size) cannot be 0"),
        ("--sym-args 3 2 10", "Invalid range to --sym-args"),
        ("--sym-args 0 0 10", "Invalid range to --sym-args"),
    ] {
        let mut run = everett(&folder);
        run.args(["run", "./files"]).args(args.split(' '));
        let said = text(&expect(&mut run, 2));
        assert!(said.contains(wanted), "{args}: {said}");
    }
}

/// KLEE reports these as errors of memory and of execution.
#[test]
fn jumps_and_variadic_arguments_have_the_texts_of_klee() {
    const WRONG: &str = r#"
#include <klee/klee.h>
#include <stdarg.h>
int last(int count, ...) {
  va_list list;
  va_start(list, count);
  int value = va_arg(list, int);
  value = va_arg(list, int);
  return value;
}
int main(void) {
  void *labels[] = {&&one, &&two};
  long which;
  klee_make_symbolic(&which, sizeof which, "which");
  if (which == 5)
    return last(1, 2);
  void *label = which == 7 ? (void *)which : labels[which & 1];
  goto *label;
one:
  return 1;
two:
  return 2;
}
"#;
    let folder = folder("klee-jumps");
    build(&folder, "wrong", WRONG, &["-g", "-O0"]);
    let (errors, endings) = errors(&folder, "./wrong");
    let expected = [
        "18: indirectbr: illegal label address",
        "8: memory error: out of bound pointer",
    ];
    assert_eq!(errors, expected);
    assert_eq!(endings, ["exec.err", "ptr.err"]);
}

/// Goes different ways, and says something on the way.
const SPEAKS: &str = r#"
#include <klee/klee.h>
int main(void) {
  int a = klee_int("a");
  klee_warning("it begins");
  klee_warning_once("it is said once");
  if (a == 123456)
    klee_print_expr("found", a);
  else
    klee_print_expr("number", 7);
  if (a > 100)
    return 1;
  return 0;
}
"#;

#[test]
fn messages_of_programs_are_printed() {
    let folder = folder("klee-notes");
    build(&folder, "speaks", SPEAKS, &["-g"]);
    for workers in ["1", "2"] {
        let mut run = everett(&folder);
        run.args(["run", "--klee-messages", "--workers", workers]);
        let said = text(&expect(run.args(["--out", workers, "./speaks"]), 0));
        for (line, times) in [
            ("KLEE: WARNING: main: it begins", 1),
            ("KLEE: WARNING ONCE: main: it is said once", 1),
            ("number:7", 1),
            ("found:", 1),
        ] {
            assert_eq!(said.matches(line).count(), times, "{line}: {said}");
        }
        let warnings = fs::read_to_string(folder.join(workers).join("warnings.txt"));
        let warnings = warnings.expect("a text");
        assert!(warnings.contains("main: it begins"), "{warnings}");
    }
}

/// Returns the numbers of tests in KLEE's format in a folder.
fn tests_in(folder: &Path) -> usize {
    let files = fs::read_dir(folder).expect("a folder");
    let names = files.map(|file| file.expect("a file").file_name());
    names
        .filter(|name| name.to_string_lossy().ends_with(".ktest"))
        .count()
}

#[test]
fn seeds_are_followed() {
    let folder = folder("klee-seeds");
    build(&folder, "speaks", SPEAKS, &["-g"]);
    let run = |args: &[&str]| {
        let mut run = everett(&folder);
        run.args(["run", "--klee-messages"]).args(args);
        text(&expect(run.arg("./speaks"), 0))
    };
    run(&["--out", "all"]);
    assert_eq!(tests_in(&folder.join("all")), 3);
    // Each test of the first run takes its own way, and there are no others.
    run(&["--out", "again", "--seeds", "all", "--only-seeds"]);
    assert_eq!(tests_in(&folder.join("again")), 3);
    let summary = summary(&folder.join("again"));
    assert_eq!(summary["paths"]["completed"], 3);
    for number in 1..=3 {
        let seed = format!("all/test{number:06}.ktest");
        let out = format!("one-{number}");
        // KLEE's names of the options.
        run(&["-output-dir", &out, "-replay-ktest-file", &seed]);
        let of = |file: &str| fs::read(folder.join(file)).expect("a test");
        let test = of(&format!("{out}/test000001.ktest"));
        assert_eq!(tests_in(&folder.join(&out)), 1);
        assert_eq!(test, of(&seed));
    }
    // What the seed leaves out is explored all the same.
    run(&["-output-dir=more", "-seed-file=all/test000001.ktest"]);
    assert_eq!(tests_in(&folder.join("more")), 3);
    let same = |name: &str| fs::read(folder.join(name).join("test000001.ktest")).expect("a test");
    assert_eq!(same("more"), same("all"));
}

#[test]
fn what_a_limit_leaves_has_tests() {
    let folder = folder("klee-halted");
    build(&folder, "speaks", SPEAKS, &["-g"]);
    let mut run = everett(&folder);
    run.args(["run", "--klee-messages", "--output-dir=out"]);
    let run = run.args(["--max-instructions=1", "--optimize", "./speaks"]);
    let said = text(&expect(run, 0));
    for line in [
        "ignored: --optimize",
        "KLEE: halting execution, dumping remaining states",
        "KLEE: done: partially completed paths = 1",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(folder.join("out/test000001.early").exists());
    assert!(folder.join("out/test000001.ktest").exists());
}

/// Fails in two ways.
const FAILS: &str = r#"
#include <assert.h>
#include <klee/klee.h>
int main(void) {
  int a = klee_int("a");
  klee_assume(a > 10);
  if (a == 11)
    klee_assume(a < 10);
  assert(a != 12);
  return 0;
}
"#;

#[test]
fn a_run_stops_at_findings() {
    let folder = folder("klee-stops");
    build(&folder, "fails", FAILS, &["-g"]);
    let mut run = everett(&folder);
    run.args(["run", "--klee-messages", "--workers", "1"]);
    let run = run.args(["--exit-on-error-type=Assert", "--silent-klee-assume"]);
    let said = text(&expect(run.arg("./fails"), 1));
    assert!(!said.contains("provably false"), "{said}");
    assert!(
        said.contains("EXITING ON ERROR:\nError: ASSERTION FAIL: a != 12"),
        "{said}"
    );
    let mut run = everett(&folder);
    let run = run.args(["run", "--out", "all", "--stop-at", "all", "./fails"]);
    expect(run, 1);
    let summary = summary(&folder.join("all"));
    let limits = summary["limits_hit"].as_array().expect("a list");
    assert!(limits.iter().any(|limit| limit == "stop-at"), "{limits:?}");
}

/// Ends with what it finds in the modes of a symbolic file and of standard input.
const MODES: &str = r#"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
  struct stat status;
  if (open("A", O_RDWR) < 0) return 1;
  if (open("A", O_RDONLY) < 0) return 2;
  fstat(0, &status);
  if (status.st_size != 4) return 3;
  if (isatty(0) != S_ISCHR(status.st_mode)) return 4;
  if (S_ISDIR(status.st_mode)) return 5;
  return S_ISCHR(status.st_mode) ? 6 : 7;
}
"#;

#[test]
fn modes_of_symbolic_files_are_those_of_klee() {
    let folder = folder("klee-modes");
    build(&folder, "modes", MODES, &["-g"]);
    let ends = |options: &[&str], out: &str| {
        let mut run = everett(&folder);
        run.args(["run", "--all-tests", "--out", out]).args(options);
        expect(run.args(["./modes", "--sym-files", "1", "4"]), 0);
        let mut codes: Vec<String> = endings(&folder.join(out))
            .iter()
            .map(|end| end.split([':', ',']).nth(1).expect("a code").to_owned())
            .collect();
        codes.sort();
        codes.dedup();
        codes
    };
    // Standard input is a pipe otherwise.
    assert_eq!(ends(&[], "usual"), ["3"]);
    assert_eq!(
        ends(&["--sym-file-modes"], "symbolic"),
        ["1", "5", "6", "7"]
    );
    expect(everett(&folder).args(["follow", "symbolic"]), 0);
    expect(everett(&folder).args(["test", "symbolic"]), 0);
    let mut run = everett(&folder);
    run.args(["run", "--klee-messages", "--posix-runtime"]);
    let run = run.args(["--output-dir=klee", "./modes", "--sym-files", "1", "4"]);
    expect(run, 0);
    assert!(tests_in(&folder.join("klee")) >= 4);
}

#[test]
fn uncaught_exceptions_tell_their_text() {
    const THROWS: &str = r#"
#include <klee/klee.h>
#include <stdexcept>
#include <string>
int main() {
  if (klee_int("which") == 7)
    throw std::out_of_range(std::string("more than ") + "seven");
  throw 7;
}
"#;
    let folder = folder("klee-exceptions");
    fs::write(folder.join("throws.cc"), THROWS).expect("it can be written");
    let mut compile = everett(&folder);
    expect(compile.args(["c++", "-g", "throws.cc", "-o", "throws"]), 0);
    let mut run = everett(&folder);
    let said = text(&expect(run.args(["run", "--klee-messages", "./throws"]), 1));
    for line in [
        "terminating due to uncaught exception of type std::out_of_range: more than seven\n",
        "terminating due to uncaught exception of type int\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

#[test]
fn a_close_of_no_region_is_said() {
    const CLOSES: &str = r#"
#include <klee/klee.h>
int main(void) {
  int which = klee_int("which"), result = 0;
  if (which == 0) klee_open_merge();
  if (klee_int("other") == 1) result = 5;
  klee_close_merge();
  return result;
}
"#;
    let folder = folder("klee-close");
    build(&folder, "closes", CLOSES, &["-g"]);
    let mut run = everett(&folder);
    let said = text(&expect(run.args(["run", "--klee-messages", "./closes"]), 0));
    assert!(said.contains("ran into a close at"), "{said}");
    // What is opened is closed without a word, also where nothing is merged.
    const PAIRS: &str = r#"
#include <klee/klee.h>
int main(void) {
  int result = 0;
  klee_open_merge();
  if (klee_int("which") == 1) result = 5;
  klee_close_merge();
  return result;
}
"#;
    build(&folder, "pairs", PAIRS, &["-g"]);
    for options in [&[][..], &["--check-races"]] {
        let mut run = everett(&folder);
        run.args(["run", "--klee-messages"]).args(options);
        let said = text(&expect(run.arg("./pairs"), 0));
        assert!(!said.contains("ran into a close"), "{options:?}: {said}");
    }
}

/// As in KLEE, depth first means the side on which a condition is false.
#[test]
fn paths_have_the_order_of_klee_with_dfs() {
    const ORDERED: &str = r#"
#include <klee/klee.h>
#include <unistd.h>
int main(void) {
  int number = klee_int("number");
  if (number == 0) write(1, "zero\n", 5);
  else if (number < 0) write(1, "negative\n", 9);
  else write(1, "positive\n", 9);
  return 0;
}
"#;
    let folder = folder("klee-order");
    build(&folder, "ordered", ORDERED, &["-g", "-O0"]);
    let mut run = everett(&folder);
    let output = expect(
        run.args(["run", "--klee-messages", "--search=dfs", "./ordered"]),
        0,
    );
    let printed = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(printed, "positive\nnegative\nzero\n");
}
