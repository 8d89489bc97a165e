//! Helpers of the tests: building programs, running Everett, reading its results.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod branching;
pub mod generator;
pub mod samples;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

/// Creates an empty folder of this name for a test. Tests run in parallel, so each name may be used
/// only once.
pub fn folder(name: &str) -> PathBuf {
    static TAKEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let is_new = TAKEN.lock().expect("no poison").insert(name.to_owned());
    assert!(is_new, "two tests want the folder {name}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the old folder can be removed");
    }
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

/// Returns the names of all state mappings, the default first.
pub fn mappings() -> impl Iterator<Item = &'static str> + Clone {
    everett::engine::MAPPINGS.iter().map(|row| row.name)
}

/// Returns the names of all searchers.
pub fn searchers() -> impl Iterator<Item = &'static str> {
    everett::engine::SEARCHERS.iter().map(|row| row.name)
}

/// Returns a command that runs Everett in a folder.
pub fn everett(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
    // With several workers, which tests are written and in which order depends on timing.
    command.current_dir(folder).env("EVERETT_WORKERS", "1");
    command
}

/// Returns everything that a process printed.
pub fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(err)
}

/// Runs a command that must exit with this code, and returns its output.
pub fn expect(command: &mut Command, code: i32) -> Output {
    let output = command.output().expect("it starts");
    let seen = output.status.code();
    assert_eq!(seen, Some(code), "{command:?} said:\n{}", text(&output));
    output
}

/// Writes a C program into a folder and builds it.
pub fn build(folder: &Path, name: &str, source: &str, flags: &[&str]) {
    let file = format!("{name}.c");
    fs::write(folder.join(&file), source).expect("the source can be written");
    let mut command = everett(folder);
    command.args(["cc", "-w"]).args(flags);
    expect(command.args(["-o", name, &file]), 0);
}

/// Returns the summary of a run.
pub fn summary(out: &Path) -> Value {
    let bytes = fs::read(out.join("summary.json")).expect("a summary");
    serde_json::from_slice(&bytes).expect("JSON")
}

/// Returns the summary without measurements: times and memory.
pub fn summary_without_measures(out: &Path) -> Value {
    let mut value = summary(out);
    let fields = value.as_object_mut().expect("an object");
    fields.remove("solver_lines"); // Ordered by time.
    if let Some(team) = fields.get_mut("team").and_then(Value::as_object_mut) {
        team.remove("idle_seconds");
    }
    fields.retain(|name, _| !name.ends_with("_seconds") && !name.starts_with("memory"));
    value
}

/// Returns a count in a summary.
pub fn count(summary: &Value, pointer: &str) -> u64 {
    let value = summary.pointer(pointer).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("no count {pointer} in {summary}"))
}

/// Checks that the weights sum to 1, whatever ended the run.
pub fn check_weights(summary: &Value) {
    let part = |name: &str| summary["weight"][name].as_f64().expect("a weight");
    let other = |name: &str| summary["weight"][name].as_f64().unwrap_or(0.0);
    let others = other("excluded") + other("pruned");
    let sum = part("finished") + part("pending") + part("unknown") + others;
    assert!((sum - 1.0).abs() < 1e-9, "the weights sum to {sum}");
}

/// Returns the files below a folder, by relative path.
pub fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root).expect("below the root");
            let bytes = fs::read(&path).expect("readable");
            found.insert(name.display().to_string(), bytes);
        }
    }
    found
}

/// Returns the traces among the tests of a run.
pub fn traces(out: &Path) -> Vec<(PathBuf, Value)> {
    let tests = files(&out.join("tests"));
    let traces = tests
        .into_iter()
        .filter(|(name, _)| name.ends_with(".trace"));
    traces
        .map(|(name, bytes)| {
            let trace = serde_json::from_slice(&bytes).expect("a trace is JSON");
            (out.join("tests").join(name), trace)
        })
        .collect()
}

/// Returns how all paths of a run ended, sorted: the same for every order of exploration.
pub fn endings(out: &Path) -> Vec<String> {
    let mut endings: Vec<String> = traces(out)
        .iter()
        .map(|(_, trace)| trace["end"].to_string())
        .collect();
    endings.sort();
    endings
}

/// Runs a command and sends it a signal when this many tests are in a folder, unless it has ended
/// before.
pub fn stop_at(command: &mut Command, signal: &str, tests: &Path, enough: usize) -> Option<i32> {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let count = || fs::read_dir(tests).map_or(0, |entries| entries.count());
    while count() < enough && child.try_wait().expect("a child").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let kill = format!("kill -{signal} {}", child.id());
    // The process may already have ended.
    let _ = Command::new("sh").args(["-c", &kill]).output();
    child.wait().expect("its end").code()
}

/// Returns whether a run has ended. A run that is killed between its summary and the removal of its
/// checkpoint is resumed again.
pub fn is_at_its_end(out: &Path) -> bool {
    out.join("summary.json").exists() && !out.join("checkpoint.json").exists()
}

/// Runs a command and returns its peak memory in bytes.
pub fn watched(command: &mut Command) -> u64 {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let mut peak = 0;
    while child.try_wait().expect("its state").is_none() {
        let path = format!("/proc/{}/status", child.id());
        let status = fs::read_to_string(path).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let digits = line.and_then(|line| line.split_whitespace().nth(1));
        let kib = digits.and_then(|digits| digits.parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0) * 1024);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    peak
}
