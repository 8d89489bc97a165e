//! What Everett prints and writes: help, a run, a finding, JSON lines, test files.

use crate::common::samples::{FORKS, FORKS_PATHS, WORDS};
use crate::common::{build, everett, expect, files, folder, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Compares with the file of that name in `tests/expected`; EVERETT_BLESS=1 writes it instead.
fn check_expected(name: &str, seen: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/expected")
        .join(name);
    if std::env::var_os("EVERETT_BLESS").is_some() {
        fs::write(&path, seen).expect("the expected text can be written");
        return;
    }
    let expected = fs::read_to_string(&path).expect("an expected text");
    assert_eq!(
        seen, expected,
        "{name} is not as expected; if it should be as it is now, run with EVERETT_BLESS=1"
    );
}

/// Replaces what varies from run to run: numbers before units of time and rates, and the folder.
fn mask(text: &str, folder: &Path) -> String {
    let text = text.replace(
        &folder
            .canonicalize()
            .expect("a folder")
            .display()
            .to_string(),
        "DIR",
    );
    let mut masked: Vec<String> = Vec::new();
    for line in text.lines() {
        // The path at which the libraries were built depends on the machine.
        let line = match line.split_once(" at /") {
            Some((before, place)) => {
                let file = place.rsplit('/').next().unwrap_or(place);
                &format!("{before} at LIBRARY/{file}")
            }
            None => line,
        };
        let words: Vec<&str> = line.split(' ').collect();
        let mut line: Vec<String> = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let next = words.get(at + 1).unwrap_or(&"");
            let is_time = matches!(next.trim_end_matches(','), "s");
            let is_rate =
                word.starts_with('(') && (next.ends_with("/s),") || word.ends_with("/s),"));
            line.push(match word {
                _ if is_time => "TIME".to_owned(),
                _ if is_rate => "(RATE".to_owned(),
                word => (*word).to_owned(),
            });
        }
        masked.push(line.join(" "));
    }
    masked.join("\n") + "\n"
}

#[test]
fn help_is_as_expected() {
    let folder = folder("help");
    let cases: [(&str, &[&str]); 9] = [
        ("help.txt", &["--help"]),
        ("help-run.txt", &["run", "--help"]),
        ("help-resume.txt", &["resume", "--help"]),
        ("help-follow.txt", &["follow", "--help"]),
        ("help-replay.txt", &["replay", "--help"]),
        ("help-confirm.txt", &["confirm", "--help"]),
        ("help-test.txt", &["test", "--help"]),
        ("help-shrink.txt", &["shrink", "--help"]),
        ("help-export.txt", &["export", "--help"]),
    ];
    for (name, arguments) in cases {
        let output = expect(everett(&folder).args(arguments), 0);
        check_expected(name, &text(&output));
    }
}

/// The tables of README.md and docs/exit-codes.md have a row for each subcommand.
#[test]
fn every_subcommand_is_documented() {
    let help = text(&expect(everett(&folder("subcommands")).arg("--help"), 0));
    let (_, commands) = help.split_once("Commands:\n").expect("a list of commands");
    let lines = commands.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
    assert!(names.contains(&"run") && names.contains(&"rustc"), "{help}");
    for file in ["README.md", "docs/exit-codes.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(file);
        let document = fs::read_to_string(path).expect("a document");
        let rows = document.lines().filter_map(|line| line.strip_prefix('|'));
        let cells = rows.filter_map(|row| row.split('|').next());
        let quoted = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let command = |words: &'_ str| {
            let mut words = words.split_whitespace().filter(|word| *word != "everett");
            words.next().unwrap_or_default().to_owned()
        };
        let documented: Vec<String> = quoted.map(command).collect();
        for name in &names {
            assert!(
                documented.iter().any(|one| one == name),
                "{file} lacks `{name}`"
            );
        }
    }
}

#[test]
fn a_run_says_what_it_did() {
    let folder = folder("run-output");
    build(&folder, "forks", FORKS, &[]);
    let run = ["run", "--search", "dfs", "--out", "out", "./forks"];
    let output = expect(everett(&folder).args(run), 1);
    let said = mask(&text(&output), &folder);
    // The machine's speed is in the middle of the line: (2.5 M/s).
    let said: Vec<&str> = said
        .split(' ')
        .filter(|word| !matches!(*word, "k/s)," | "M/s),"))
        .collect();
    check_expected("run.txt", &said.join(" "));
    let finding = fs::read_to_string(folder.join("out/findings/0001/finding.txt"));
    check_expected("finding.txt", &mask(&finding.expect("a finding"), &folder));
    let names: Vec<String> = files(&folder.join("out")).into_keys().collect();
    check_expected("files.txt", &(names.join("\n") + "\n"));
}

#[test]
fn quiet_prints_findings_only() {
    let folder = folder("quiet");
    build(&folder, "forks", FORKS, &[]);
    build(&folder, "words", WORDS, &[]);
    let output = expect(everett(&folder).args(["run", "--quiet", "./forks"]), 1);
    let said = text(&output);
    assert!(said.starts_with("out-of-bounds"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    let output = expect(
        everett(&folder).args(["run", "-q", "./words", "--sym-stdin", "3"]),
        0,
    );
    assert_eq!(text(&output), "");
    // Without --out, folders are numbered and the newest has a name.
    assert!(folder.join("everett-out/0001/summary.json").exists());
    let latest = fs::read_link(folder.join("everett-out/latest")).expect("a link");
    assert_eq!(latest, Path::new("0002"));
}

/// The program's own words are shown unchanged, even if they look like names of options.
#[test]
fn words_of_the_program_are_not_changed() {
    let folder = folder("output-quotes");
    let words = "field `workers` is wrong, see `max_time`";
    let source =
        format!("#include <everett.h>\nint main(void) {{ everett_report(\"{words}\"); }}\n");
    build(&folder, "quotes", &source, &[]);
    let output = expect(
        everett(&folder).args(["run", "--out", "out", "./quotes"]),
        1,
    );
    let text = text(&output);
    assert!(text.contains(words), "{text}");
}

#[test]
fn klee_messages_are_those_of_klee() {
    const SOURCE: &str = r#"
#include <klee/klee.h>
#include <stdlib.h>
int main(void) {
  int a[4] = {0}, i;
  klee_make_symbolic(&i, sizeof i, "i");
  if (i == 7) klee_report_error(__FILE__, __LINE__, "seven", "my.err");
  if (i == 8) abort();
  if (i == 9) return a[i - 9] / (i - 9);
  klee_assert(i != 11);
  return a[i & 7];
}
"#;
    let folder = folder("klee-messages");
    build(&folder, "program", SOURCE, &["-g"]);
    let run = [
        "run",
        "--klee-messages",
        "--no-confirm",
        "--out",
        "out",
        "./program",
    ];
    let output = expect(everett(&folder).args(run), 1);
    let said = text(&output);
    let read = |name: &str| fs::read_to_string(folder.join("out").join(name)).expect(name);
    let place = folder.canonicalize().expect("a folder").join("program.c");
    for (ending, line, message) in [
        ("my.err", 7, "seven"),
        ("abort.err", 8, "abort failure"),
        ("div.err", 9, "divide by zero"),
        ("assert.err", 10, "ASSERTION FAIL: i != 11"),
        ("ptr.err", 11, "memory error: out of bound pointer"),
    ] {
        let error = format!("KLEE: ERROR: {}:{line}: {message}\n", place.display());
        assert!(
            said.contains(&error) && read("messages.txt").contains(&error),
            "{said}"
        );
        let names = files(&folder.join("out")).into_keys();
        let mut names = names.filter(|name| name.starts_with("test0") && name.ends_with(ending));
        let name = names.next().unwrap_or_else(|| panic!("no {ending}"));
        let head = format!(
            "Error: {message}\nFile: {}\nLine: {line}\nStack: \n",
            place.display()
        );
        assert!(read(&name).starts_with(&head), "{}", read(&name));
        assert!(
            folder
                .join("out")
                .join(name.replace(ending, "ktest"))
                .exists()
        );
    }
    let done = "KLEE: done: completed paths = 1\nKLEE: done: partially completed paths = 5\n\
                KLEE: done: generated tests = 6\n";
    assert!(
        said.ends_with(done) && read("info").ends_with(done),
        "{said}"
    );
    assert_eq!(read("warnings.txt"), "");
    let stats = fs::read(folder.join("out/run.stats")).expect("statistics");
    assert!(stats.starts_with(b"SQLite format 3\0"));
}

#[test]
fn coverage_is_by_function_and_of_several_runs() {
    const SOURCE: &str = r#"
#include <stdlib.h>
__attribute__((noinline)) int left(int x) {
  return x + 1;
}
__attribute__((noinline)) int right(int x) {
  return x - 1;
}
int main(int count, char **words) {
  volatile int seen = 0;
  if (words[1][0] == '1')
    seen = 1;
  return atoi(words[1]) ? left(0) : right(1);
}
"#;
    let folder = folder("coverage");
    build(&folder, "sides", SOURCE, &["-g"]);
    expect(
        everett(&folder).args(["run", "-q", "--out", "one", "./sides", "1"]),
        0,
    );
    expect(
        everett(&folder).args(["run", "-q", "--out", "two", "./sides", "0"]),
        0,
    );
    let lcov = fs::read_to_string(folder.join("one/coverage.lcov")).expect("coverage");
    for record in [
        "FN:4,left\n",
        "FNDA:1,left\n",
        "FNDA:0,right\n",
        "FNF:3\nFNH:2\n",
        "BRF:4\nBRH:2\n",
    ] {
        assert!(lcov.contains(record), "{lcov}");
    }
    // If the condition held, its other side was not taken, although the code after it was executed.
    let sides: Vec<&str> = lcov
        .lines()
        .filter(|line| line.starts_with("BRDA:11,0,"))
        .collect();
    assert_eq!(sides.len(), 2, "{lcov}");
    assert!(sides.iter().any(|side| side.ends_with(",0")), "{lcov}");
    assert!(sides.iter().any(|side| side.ends_with(",1")), "{lcov}");
    let shown = |arguments: &[&str]| {
        let output = expect(everett(&folder).arg("coverage").args(arguments), 0);
        text(&output)
    };
    let one = shown(&["one"]);
    assert!(one.contains("right: not executed"), "{one}");
    let both = shown(&["one", "two", "--lcov", "both.lcov"]);
    assert!(
        both.ends_with("functions 3 of 3 (100.0 %), branches 4 of 4 (100.0 %)\n"),
        "{both}"
    );
    let chosen = shown(&[
        "both.lcov",
        "--functions",
        "left,right",
        "--files",
        "sides.c",
    ]);
    assert!(
        chosen.ends_with(
            "all: lines 2 of 2 (100.0 %), functions 2 of 2 (100.0 %), branches 0 of 0 (0.0 %)\n"
        ),
        "{chosen}"
    );
    let unknown = expect(
        everett(&folder).args(["coverage", "one", "--functions", "up"]),
        2,
    );
    assert!(text(&unknown).contains("there is no function up"));
}

#[test]
fn json_is_a_line_for_each_event() {
    let folder = folder("json");
    build(&folder, "forks", FORKS, &[]);
    let output = expect(
        everett(&folder).args(["run", "--json", "--out", "out", "./forks"]),
        1,
    );
    assert!(output.stderr.is_empty(), "{}", text(&output));
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    let parse =
        |line| serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    let events: Vec<Value> = said.lines().map(parse).collect();
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!(of("finding"), 1, "{said}");
    assert_eq!(of("end"), 1, "{said}");
    assert_eq!(
        of("finding") + of("progress") + of("end"),
        events.len(),
        "{said}"
    );
    let end = &events[events.len() - 1]["summary"];
    assert_eq!(end["paths"]["completed"], FORKS_PATHS);
    let written = fs::read(folder.join("out/summary.json")).expect("a summary");
    assert_eq!(
        *end,
        serde_json::from_slice::<Value>(&written).expect("JSON")
    );
}

/// Reads a test file by the description of its format, not with Everett's own code.
fn read_ktest(bytes: &[u8]) -> (Vec<String>, Vec<(String, Vec<u8>)>) {
    assert_eq!(&bytes[..5], b"KTEST");
    let mut reader = KtestReader { bytes, at: 5 };
    assert_eq!(reader.number(), 3, "version");
    let args = (0..reader.number()).map(|_| reader.string()).collect();
    assert_eq!((reader.number(), reader.number()), (0, 0), "symbolic argvs");
    let objects = (0..reader.number())
        .map(|_| (reader.string(), reader.blob().to_vec()))
        .collect();
    assert_eq!(reader.at, bytes.len(), "nothing is left");
    (args, objects)
}

struct KtestReader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> KtestReader<'b> {
    fn take(&mut self, count: usize) -> &'b [u8] {
        self.at += count;
        &self.bytes[self.at - count..self.at]
    }

    fn number(&mut self) -> usize {
        let word: [u8; 4] = self.take(4).try_into().expect("four bytes");
        u32::from_be_bytes(word) as usize
    }

    fn blob(&mut self) -> &'b [u8] {
        let count = self.number();
        self.take(count)
    }

    fn string(&mut self) -> String {
        String::from_utf8(self.blob().to_vec()).expect("UTF-8")
    }
}

#[test]
fn test_files_are_those_of_klee() {
    let folder = folder("ktest");
    build(&folder, "words", WORDS, &[]);
    let run = ["run", "--quiet", "--all-tests", "--out", "out", "./words"];
    let symbolic = ["--sym-arg", "2", "--sym-stdin", "4"];
    expect(everett(&folder).args(run).args(symbolic), 0);
    let tests = files(&folder.join("out/tests"));
    let mut seen = 0;
    for (name, bytes) in &tests {
        let Some(stem) = name.strip_suffix(".ktest") else {
            continue;
        };
        let (args, objects) = read_ktest(bytes);
        assert_eq!(args[0], "./words");
        let trace = &tests[&format!("{stem}.trace")];
        let trace: Value = serde_json::from_slice(trace).expect("JSON");
        let inputs = trace["inputs"].as_array().expect("inputs");
        assert_eq!(inputs.len(), objects.len());
        for (input, (name, bytes)) in inputs.iter().zip(&objects) {
            assert_eq!(input["name"], name.as_str());
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(input["bytes"], hex);
        }
        seen += 1;
    }
    assert!(seen > 5 && seen * 2 == tests.len(), "{seen} tests");
}

#[test]
fn nobody_has_to_listen() {
    let folder = folder("closed-output");
    build(&folder, "words", WORDS, &[]);
    let mut run = everett(&folder);
    run.args(["run", "--out", "out", "./words", "--sym-stdin", "3"]);
    let mut child = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(!text(&output).contains("panicked"), "{}", text(&output));
    assert!(folder.join("out/summary.json").exists());
}

#[test]
fn sides_of_a_switch_are_branches() {
    const SOURCE: &str = r#"
#include <stdlib.h>
int main(int count, char **words) {
  volatile int seen = 0;
  switch (atoi(words[1])) {
  case 1:
    seen = 3;
    break;
  case 7:
  case 8:
    seen = 4;
    break;
  case 900:
    seen = 5;
  }
  return 0;
}
"#;
    let folder = folder("switches");
    build(&folder, "switches", SOURCE, &["-g", "-O0"]);
    let taken = |out: &str, argument: &str| {
        let run = ["run", "-q", "--out", out, "./switches", argument];
        expect(everett(&folder).args(run), 0);
        let lcov = fs::read_to_string(folder.join(out).join("coverage.lcov")).expect("coverage");
        let sides = lcov.lines().filter(|line| line.starts_with("BRDA:5,0,"));
        let taken = sides.map(|side| side.ends_with(",1"));
        (taken.collect::<Vec<bool>>(), lcov)
    };
    // Three case targets, and the default.
    let (first, lcov) = taken("one", "1");
    assert_eq!(first, [true, false, false, false], "{lcov}");
    let (again, lcov) = taken("eight", "8");
    assert_eq!(again, [false, true, false, false], "{lcov}");
    let (rest, lcov) = taken("none", "5");
    assert_eq!(rest, [false, false, false, true], "{lcov}");
    assert!(lcov.contains("BRF:4\nBRH:1\n"), "{lcov}");
    let arguments = ["coverage", "one", "eight", "none"];
    let all = text(&expect(everett(&folder).args(arguments), 0));
    assert!(all.ends_with("branches 3 of 4 (75.0 %)\n"), "{all}");
}
