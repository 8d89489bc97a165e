//! The details of findings that make them verifiable: values, places, injected failures, and what
//! confirmed them.

use crate::common::{build, everett, expect, folder, summary, text};
use std::fs;
use std::path::Path;

fn finding(folder: &Path, out: &str) -> String {
    let file = folder.join(out).join("findings/0001/finding.txt");
    fs::read_to_string(file).expect("a finding")
}

/// Sets a value in one function and shows it in another.
const SHOWS: &str = r#"
#include "everett.h"
#include <stdlib.h>
#include <unistd.h>
static int total;
static void add(int n) {
    total += n;
}
int main(int argc, char **argv) {
    add(1);
    add(atoi(argv[1]));
    everett_expose("account", "total", &total, sizeof total);
    usleep(1000);
    return argc > 2;
}
"#;

const SHOWN: &str = r#"
[host.a]
program = "./shows"
args = ["1"]

[host.b]
program = "./shows"
args = ["4", "more"]
expect = "exit 0"

[host.off]
program = "./shows"
args = ["1"]
start = "1 s"
stop = "3 s"

[check.same]
text = """
at end invariant same() {
  return sys.data("a", "account", "total").i32() == sys.data("b", "account", "total").i32();
}
"""
"#;

#[test]
fn an_invariant_shows_the_values_and_the_lines_that_set_them() {
    let folder = folder("finding-values");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let include = format!("-I{}", include.display());
    build(&folder, "shows", SHOWS, &["-g", &include]);
    fs::write(folder.join("world.toml"), SHOWN).expect("a scenario");
    expect(
        everett(&folder).args(["run", "--out", "out", "world.toml"]),
        1,
    );
    let summary = summary(&folder.join("out"));
    let found = summary["findings"].as_array().expect("findings");
    assert_eq!(found.len(), 2, "{found:?}");
    for (at, entry) in found.iter().enumerate() {
        let dir = folder
            .join("out")
            .join(entry["dir"].as_str().expect("a folder"));
        let text = fs::read_to_string(dir.join("finding.txt")).expect("a text");
        // Findings at the end of programs point into them, not into libraries.
        assert_eq!(entry["function"], "main", "{at}: {text}");
        let file = entry["file"].as_str().expect("a file");
        assert!(file.ends_with("shows.c"), "{at}: {text}");
        assert!(
            text.contains("natively: confirmed on the native program"),
            "{text}"
        );
        assert!(text.contains("host off at 3.000000 s: is off"), "{text}");
        if entry["kind"] == "invariant" {
            for (host, value) in [("a", 2), ("b", 5)] {
                let shown = format!("    {host}: total of state account = ");
                let mut lines = text.lines().skip_while(|line| !line.starts_with(&shown));
                let line = lines.next().unwrap_or_default();
                assert!(
                    line.ends_with(&format!("integer {value}")),
                    "{line}\n{text}"
                );
                let set = lines.next().unwrap_or_default();
                assert!(set.contains("set in add at "), "{text}");
                assert!(set.ends_with("shows.c:7"), "{text}");
            }
        }
    }
}

/// A copy that does not handle a failed allocation.
const COPIES: &str = r#"
#include <stdlib.h>
#include <unistd.h>
static char *copy(char c) {
    char *p = malloc(8);
    *p = c;
    return p;
}
int main(void) {
    return write(1, copy('x'), 1) < 0;
}
"#;

#[test]
fn injected_failures_say_where_and_can_be_left_out() {
    let folder = folder("finding-failures");
    build(&folder, "copies", COPIES, &["-g"]);
    let run = |out: &str, more: &[&str], code| {
        let mut command = everett(&folder);
        command
            .args(["run", "--faults", "1", "--out", out])
            .args(more);
        expect(command.arg("./copies"), code)
    };
    run("all", &[], 1);
    let text_of = finding(&folder, "all");
    let mut lines = text_of
        .lines()
        .skip_while(|line| !line.contains("malloc fails: ENOMEM"));
    let stack: Vec<&str> = lines.by_ref().skip(1).take(2).collect();
    assert!(
        stack[0].contains("#0 copy at ") && stack[0].ends_with("copies.c:5"),
        "{text_of}"
    );
    assert!(
        stack[1].contains("#1 main at ") && stack[1].ends_with("copies.c:10"),
        "{text_of}"
    );
    run("others", &["--fault", "*,!malloc"], 0);
    let faults = &summary(&folder.join("others"))["faults"];
    assert!(faults.get("write:EIO").is_some(), "{faults}");
    assert!(faults.get("malloc:ENOMEM").is_none(), "{faults}");
    // Scenarios accept the same.
    let scenario =
        "[host.a]\nprogram = \"./copies\"\nfaults = 1\nfault_calls = [\"*\", \"!malloc\"]\n";
    fs::write(folder.join("world.toml"), scenario).expect("a scenario");
    expect(
        everett(&folder).args(["run", "--out", "world", "world.toml"]),
        0,
    );
    let said = text(&run("wrong", &["--fault", "!raed"], 2));
    assert!(said.contains("\"raed\" is not a system call"), "{said}");
}

/// Allocates in several places; Rust aborts at each of them if an allocation fails.
const ALLOCATES: &str = r#"
fn main() {
    let one = vec![1u8; 100];
    let other = one.clone();
    let text: String = other.iter().map(|byte| byte.to_string()).collect();
    std::process::exit(i32::from(text.len() == 3));
}
"#;

#[test]
fn rust_without_memory_is_one_finding() {
    let folder = folder("finding-oom");
    fs::write(folder.join("allocates.rs"), ALLOCATES).expect("a source");
    expect(
        everett(&folder).args(["rustc", "-g", "-o", "allocates", "allocates.rs"]),
        0,
    );
    let run = [
        "run",
        "--faults",
        "1",
        "--fault",
        "malloc",
        "--out",
        "out",
        "./allocates",
    ];
    expect(everett(&folder).args(run), 1);
    let summary = summary(&folder.join("out"));
    let found = summary["findings"].as_array().expect("findings");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0]["message"],
        "an allocation failed, and Rust aborts the program"
    );
}

/// Writes past the end of a block, which only a checked build notices.
const SURVIVED: &str = r#"
#include <stdlib.h>
int main(int argc, char **argv) {
    char *p = malloc(5);
    if (argv[1][0] == 'x') p[5] = 1;
    return p == 0;
}
"#;

#[test]
fn a_run_does_not_install_the_toolchain_to_confirm() {
    let folder = folder("finding-no-toolchain");
    build(&folder, "survived", SURVIVED, &["-g"]);
    let run = |out: &str| {
        let mut command = everett(&folder);
        command
            .env("EVERETT_CACHE", folder.join("cache"))
            .env_remove("EVERETT_ZIG");
        command.args([
            "run",
            "--smt-solver",
            "none",
            "--out",
            out,
            "./survived",
            "--sym-arg",
            "1",
        ]);
        expect(&mut command, 1);
        summary(&folder.join(out))["findings"][0].clone()
    };
    let entry = run("without");
    assert_eq!(entry["confirmed"], "not-reproduced", "{entry}");
    let reason = entry["confirmed_reason"].as_str().expect("a reason");
    assert!(
        reason.contains("the toolchain is not installed"),
        "{reason}"
    );
    // An existing build is reused.
    expect(everett(&folder).args(["confirm", "without"]), 0);
    let entry = run("with");
    assert_eq!(entry["confirmed"], "confirmed", "{entry}");
    assert_eq!(entry["confirmed_on"], "memory", "{entry}");
}
