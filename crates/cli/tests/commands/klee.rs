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
