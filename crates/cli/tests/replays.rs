//! The commands around replay: `confirm`, `test`, `shrink`, `export` and `replay` itself.

mod common;

use common::{build, everett, expect, folder, summary, text};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Aborts on some inputs; otherwise says how many bytes it read.
const LETTERS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char b[8] = {0};
  int n = read(0, b, 6);
  if (argc > 1 && argv[1][0] == 'k' && b[0] == 'q' && b[3] > 'm') abort();
  if (b[1] == '!') { puts("bang"); return 3; }
  printf("%d\n", n);
  return 0;
}
"#;

/// Writes behind the end of a block, which native code does not notice.
const SURVIVED: &str = r#"
#include <everett.h>
#include <stdlib.h>
int main(void) {
  unsigned char x;
  everett_make_symbolic(&x, 1, "x");
  char *p = malloc(5);
  if (x == 7) p[5] = 1;
  return p == 0;
}
"#;

fn explore(folder: &Path, options: &[&str], program: &[&str], code: i32) {
    let run = ["run", "--quiet", "--out", "out"];
    expect(everett(folder).args(run).args(options).args(program), code);
}

fn lines(output: &std::process::Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines().map(str::to_owned).collect()
}

#[test]
fn a_suite_passes_as_recorded_and_fails_on_another_program() {
    let folder = folder("suite");
    build(&folder, "letters", LETTERS, &[]);
    build(
        &folder,
        "fixed",
        &LETTERS.replace("abort()", "return 9"),
        &[],
    );
    let program = ["./letters", "--sym-arg", "2", "--sym-stdin", "6"];
    explore(&folder, &[], &program, 1);
    let same = ["test", "out", "--junit", "junit.xml", "--jobs", "3"];
    let said = lines(&expect(everett(&folder).args(same), 0));
    assert!(said[0].starts_with("ok        out/findings/0001/finding.trace"));
    assert_eq!(
        said[said.len() - 1],
        "6 passed, 0 failed, 0 diverged, 0 skipped"
    );
    let junit = fs::read_to_string(folder.join("junit.xml")).expect("a file");
    assert!(
        junit.contains("tests=\"6\" failures=\"0\" errors=\"0\" skipped=\"0\""),
        "{junit}"
    );
    assert_eq!(junit.matches("<testcase ").count(), 6, "{junit}");

    // The mended program ends otherwise, which is what --fixed asks for.
    let other = ["test", "out", "--on", "./fixed"];
    let said = lines(&expect(everett(&folder).args(other), 1));
    assert_eq!(
        said[0],
        "FAILED    out/findings/0001/finding.trace: the native program exits with 9"
    );
    expect(everett(&folder).args(other).arg("--fixed"), 0);
    let said = lines(&expect(
        everett(&folder).args(["test", "out", "--fixed"]),
        1,
    ));
    assert_eq!(
        said[0],
        "FAILED    out/findings/0001/finding.trace: it still happens"
    );

    // A part of a run is a suite too, and so is one trace.
    expect(
        everett(&folder).args(["test", "out/tests", "out/findings/0001/finding.trace"]),
        0,
    );
    let nothing = expect(everett(&folder).args(["test", "elsewhere"]), 2);
    assert!(text(&nothing).contains("there is no elsewhere"));
}

#[test]
fn a_program_that_asks_for_something_else_diverges() {
    let folder = folder("diverges");
    build(&folder, "survived", SURVIVED, &[]);
    explore(&folder, &[], &["./survived"], 1);
    let asks_more = SURVIVED.replace("&x, 1, \"x\"", "&x, 1, \"y\"");
    build(&folder, "other", &asks_more, &[]);
    let said = lines(&expect(
        everett(&folder).args(["test", "out", "--on", "./other"]),
        1,
    ));
    assert!(said.iter().all(|line| !line.starts_with("ok")), "{said:?}");
    assert!(said[0].starts_with("DIVERGED  "), "{said:?}");
    let fixed = ["test", "out", "--fixed", "--on", "./other"];
    let said = lines(&expect(everett(&folder).args(fixed), 1));
    assert!(said[0].starts_with("DIVERGED  "), "{said:?}");
}

#[test]
fn what_native_code_survives_is_neither_passed_nor_mended() {
    let folder = folder("survives");
    build(&folder, "survived", SURVIVED, &[]);
    explore(&folder, &[], &["./survived"], 1);
    let said = lines(&expect(everett(&folder).args(["test", "out"]), 0));
    let finding = &said[0];
    let was_seen = summary(&folder.join("out"))["findings"][0]["confirmed"] == "confirmed";
    assert!(was_seen || finding.starts_with("skipped "), "{said:?}");
    // The bitcode still does it, whatever is seen natively.
    let said = lines(&expect(
        everett(&folder).args(["test", "out", "--fixed"]),
        1,
    ));
    assert!(said[0].starts_with("FAILED    out/findings/0001/finding.trace: it still happens"));
    build(
        &folder,
        "mended",
        &SURVIVED.replace("malloc(5)", "malloc(6)"),
        &[],
    );
    expect(
        everett(&folder).args(["test", "out", "--fixed", "--on", "./mended"]),
        0,
    );
}

#[test]
fn confirming_is_noted_in_the_summary() {
    let folder = folder("confirming");
    build(&folder, "letters", LETTERS, &[]);
    let program = ["./letters", "--sym-arg", "2", "--sym-stdin", "6"];
    explore(&folder, &["--no-confirm"], &program, 1);
    let confirmed = || summary(&folder.join("out"))["findings"][0]["confirmed"].clone();
    assert_eq!(confirmed(), Value::Null);
    let said = lines(&expect(everett(&folder).args(["confirm", "out"]), 0));
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(confirmed(), "confirmed");
    let said = lines(&expect(
        everett(&folder).args(["confirm", "--tests", "out"]),
        0,
    ));
    assert_eq!(said[said.len() - 1], "6 of 6 traces confirmed");
}

/// Needs two of its bytes and one failure, whatever the others are.
const NOISY: &str = r#"
#include <everett.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  unsigned char text[12];
  int failed = 0;
  everett_make_symbolic(text, sizeof text, "text");
  for (int i = 0; i < 3; i++) failed += write(1, "x", 1) != 1;
  if (failed > 0 && text[3] > 'b' && text[7] != 0) abort();
  return 0;
}
"#;

fn trace_of(path: &Path) -> (String, Vec<u64>) {
    let bytes = fs::read(path).expect("a trace");
    let trace: Value = serde_json::from_slice(&bytes).expect("JSON");
    let text = trace["inputs"][0]["bytes"]
        .as_str()
        .expect("bytes")
        .to_owned();
    let choices = trace["choices"].as_array().cloned().unwrap_or_default();
    let picked = choices
        .iter()
        .map(|choice| choice["picked"].as_u64().expect("a number"));
    (text, picked.collect())
}

#[test]
fn a_trace_is_made_simpler_and_ends_the_same() {
    let folder = folder("shrinking");
    build(&folder, "noisy", NOISY, &[]);
    let options = ["--no-shrink", "--faults", "3", "--fault", "write:EINTR"];
    explore(&folder, &options, &["./noisy"], 1);
    let path = folder.join("out/findings/0001/finding.trace");
    let original = folder.join("out/findings/0001/finding.original.trace");
    assert!(!original.exists());
    // More than is needed: every byte, and all three failures.
    let bytes = fs::read_to_string(&path).expect("a trace");
    let mut trace: Value = serde_json::from_str(&bytes).expect("JSON");
    trace["inputs"][0]["bytes"] = "ff".repeat(12).into();
    for choice in trace["choices"].as_array_mut().expect("choices") {
        choice["picked"] = 1.into();
    }
    trace["end"]["output"][0] = "0:cbf29ce484222325".into();
    fs::write(&path, trace.to_string()).expect("it can be written");
    expect(everett(&folder).args(["follow", "out/findings/0001"]), 0);

    let output = expect(everett(&folder).args(["shrink", "out/findings/0001"]), 0);
    let said = text(&output);
    assert!(
        said.starts_with("before: 3 choices that are not as usual, 12 of 12 bytes not zero\n"),
        "{said}"
    );
    let (text, picked) = trace_of(&path);
    assert_eq!(picked.iter().sum::<u64>(), 1, "{picked:?}");
    let printable = |digits: &str| {
        let byte = u8::from_str_radix(digits, 16).expect("a byte");
        byte == 0 || byte.is_ascii_graphic()
    };
    let bytes: Vec<&str> = (0..12).map(|at| &text[2 * at..2 * at + 2]).collect();
    assert_eq!(
        bytes.iter().filter(|byte| **byte != "00").count(),
        2,
        "{text}"
    );
    assert!(bytes[7] != "00" && printable(bytes[7]), "{text}");
    assert_eq!(trace_of(&original), ("ff".repeat(12), vec![1, 1, 1]));
    // It is the same finding, here and natively, and the original is no trace of its own.
    let followed = expect(everett(&folder).args(["follow", "out"]), 0);
    assert!(!common::text(&followed).contains("original"));
    let confirmed = expect(everett(&folder).args(["confirm", "out"]), 0);
    assert!(common::text(&confirmed).ends_with("1 of 1 traces confirmed\n"));
    let finding = fs::read_to_string(folder.join("out/findings/0001/finding.txt"));
    assert!(
        finding
            .expect("a finding")
            .contains("(made simpler; as it was found")
    );
    // A second time nothing is left to do.
    let again = expect(everett(&folder).args(["shrink", "out/findings/0001"]), 0);
    assert!(common::text(&again).ends_with("nothing simpler ends the same\n"));
}

#[test]
fn the_end_of_a_test_stays_when_it_is_made_simpler() {
    let folder = folder("shrinking-tests");
    build(&folder, "letters", LETTERS, &[]);
    let program = ["./letters", "--sym-arg", "2", "--sym-stdin", "6"];
    explore(&folder, &["--all-tests"], &program, 1);
    for number in 1..=5 {
        let path = format!("out/tests/{number:06}.trace");
        expect(everett(&folder).args(["shrink", &path]), 0);
    }
    expect(everett(&folder).args(["follow", "out"]), 0);
    expect(everett(&folder).args(["test", "out"]), 0);
}
