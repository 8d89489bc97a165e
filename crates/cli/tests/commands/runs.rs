//! Whole runs: repeatable, equal for every searcher, stopped at limits and resumed.

use crate::common::samples::{FORK_FOR_EVER, FORKS, FORKS_PATHS, LARGE_STATES, SPIN, WORDS};
use crate::common::{
    build, check_weights, count, endings, everett, expect, files, folder, is_at_its_end, searchers,
    stop_at, summary, summary_without_measures, text, traces, watched,
};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const CLEAN: i32 = 0;
const FINDINGS: i32 = 1;

/// Programs that fork, and their exit codes.
const COMMANDS: [(&[&str], i32); 2] = [
    (&["./forks"], FINDINGS),
    (&["./words", "--sym-arg", "2", "--sym-stdin", "4"], CLEAN),
];

/// Runs a program, and returns the folder of the results.
fn run(folder: &Path, name: &str, options: &[&str], command: &[&str], code: i32) -> PathBuf {
    let out = folder.join(name);
    let mut run = everett(folder);
    run.args(["run", "--all-tests", "--out", name])
        .args(options);
    expect(run.args(command), code);
    check_weights(&summary(&out));
    out
}

fn resume(folder: &Path, name: &str, options: &[&str], code: i32) -> Value {
    expect(everett(folder).args(["resume", name]).args(options), code);
    let summary = summary(&folder.join(name));
    check_weights(&summary);
    summary
}

fn limits(summary: &Value) -> Vec<&str> {
    let hit = summary["limits_hit"].as_array().expect("a list");
    hit.iter().filter_map(Value::as_str).collect()
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let folder = folder("same-seed");
    build(&folder, "forks", FORKS, &[]);
    build(&folder, "words", WORDS, &[]);
    for (number, (command, code)) in COMMANDS.into_iter().enumerate() {
        for search in ["random-path,coverage", "random-state", "dfs"] {
            let options = ["--seed", "7", "--search", search];
            let outs = ["a", "b"].map(|name| {
                run(
                    &folder,
                    &format!("{name}-{number}-{search}"),
                    &options,
                    command,
                    code,
                )
            });
            let [a, b] = &outs;
            for part in ["tests", "findings"] {
                let (a, b) = (files(&a.join(part)), files(&b.join(part)));
                assert!(a == b, "{part} of {command:?} by {search}");
                assert!(part != "tests" || a.len() > 20);
            }
            assert_eq!(summary_without_measures(a), summary_without_measures(b));
        }
    }
}

#[test]
fn every_searcher_reaches_the_same_paths() {
    let folder = folder("searchers");
    build(&folder, "forks", FORKS, &[]);
    let mut expected: Option<Vec<String>> = None;
    for search in searchers().chain(["random-path,coverage"]) {
        let options = ["--search", search, "--batch", "50"];
        let out = run(&folder, search, &options, &["./forks"], FINDINGS);
        let summary = summary(&out);
        assert_eq!(summary["complete"], true, "{search}");
        assert_eq!(count(&summary, "/paths/completed"), FORKS_PATHS, "{search}");
        assert_eq!(
            summary["findings"].as_array().map(Vec::len),
            Some(1),
            "{search}"
        );
        let endings = endings(&out);
        assert_eq!(endings.len() as u64, FORKS_PATHS, "{search}");
        let first = expected.get_or_insert_with(|| endings.clone());
        assert!(*first == endings, "{search} reaches other paths");
    }
}

#[test]
fn any_number_of_workers_reaches_the_same_paths() {
    let folder = folder("workers");
    build(&folder, "forks", FORKS, &[]);
    build(&folder, "words", WORDS, &[]);
    for (number, (command, code)) in COMMANDS.into_iter().enumerate() {
        let whole = format!("whole-{number}");
        run(&folder, &whole, &["--batch", "50"], command, code);
        for workers in ["2", "3", "8"] {
            let name = format!("by-{workers}-{number}");
            let options = ["--workers", workers, "--batch", "50"];
            run(&folder, &name, &options, command, code);
            check_same_as_whole(&folder, &name, &whole);
        }
        expect(everett(&folder).args(["follow", &whole]), CLEAN);
    }
    // A fault that one worker injects has fired, even if others did not inject it.
    let faults = ["--faults", "1", "--fault", "readv,chown", "--batch", "50"];
    let never = ["1", "3"].map(|workers| {
        let name = format!("faults-{workers}");
        let options = [&["--workers", workers], &faults[..]].concat();
        let out = run(
            &folder,
            &name,
            &options,
            &["./words", "--sym-stdin", "4"],
            CLEAN,
        );
        summary(&out)["faults_never_fired"].clone()
    });
    assert_eq!(
        never,
        [serde_json::json!(["chown"]), serde_json::json!(["chown"])]
    );
}

#[test]
fn counted_limits_stop_the_search() {
    let folder = folder("limits");
    build(&folder, "forks", FORKS, &[]);
    for workers in ["1", "3"] {
        check_counted_limits(&folder, workers);
    }
}

fn check_counted_limits(folder: &Path, workers: &str) {
    let stopped = |name: &str, option: &str, value: &str| {
        let options = [
            "--search",
            "bfs",
            "--batch",
            "50",
            "--workers",
            workers,
            option,
            value,
        ];
        let mut run = everett(folder);
        let out = format!("{name}-{workers}");
        run.args(["run", "--out", &out])
            .args(options)
            .arg("./forks");
        let output = run.output().expect("it starts");
        assert!(output.status.code() < Some(2), "{}", text(&output));
        let summary = summary(&folder.join(out));
        check_weights(&summary);
        assert_eq!(summary["complete"], false);
        assert_eq!(limits(&summary), [name]);
        (summary, text(&output))
    };
    let (summary, said) = stopped("max-paths", "--max-paths", "10");
    let paths = count(&summary, "/paths/completed") + count(&summary, "/paths/partial");
    assert_eq!(paths, 10);
    assert_eq!(summary["stopped"], "max-paths");
    assert!(said.contains("everett resume"), "{said}");
    let (summary, _) = stopped("max-forks", "--max-forks", "20");
    assert_eq!(count(&summary, "/forks"), 20);
    let (summary, said) = stopped("max-depth", "--max-depth", "3");
    assert_eq!(count(&summary, "/states_pending"), 0);
    assert!(summary["weight"]["unknown"].as_f64() > Some(0.0));
    assert!(!said.contains("everett resume"), "{said}");
}

#[test]
fn too_many_instructions_are_a_hang() {
    let folder = folder("hang");
    build(&folder, "spin", SPIN, &[]);
    let options = ["--max-instructions", "200000"];
    let out = run(&folder, "out", &options, &["./spin"], FINDINGS);
    let summary = summary(&out);
    assert_eq!(summary["findings"][0]["kind"], "hang", "{summary}");
    assert_eq!(summary["findings"][0]["function"], "main");
    let instructions = count(&summary, "/instructions");
    assert!((200_000..210_000).contains(&instructions), "{instructions}");
    expect(everett(&folder).args(["follow", "out"]), 0);
}

/// Paths hang at the limit even if they would end soon after it, and so do their traces.
#[test]
fn traces_of_hangs_end_at_the_limit() {
    const SOURCE: &str = r#"
#include <unistd.h>
int main(void) {
  char bytes[4];
  int sum = 0;
  if (read(0, bytes, 4) != 4) return 9;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 8; j++)
      if (bytes[i] == 'a' + j) sum += j;
  return sum != 0;
}
"#;
    let folder = folder("hang-followed");
    build(&folder, "sums", SOURCE, &[]);
    let options = [
        "--max-instructions",
        "200",
        "--all-findings",
        "--no-confirm",
    ];
    let out = run(
        &folder,
        "out",
        &options,
        &["./sums", "--sym-stdin", "4"],
        FINDINGS,
    );
    let summary = summary(&out);
    let findings = summary["findings"].as_array().unwrap();
    assert!(!findings.is_empty() && findings.iter().all(|one| one["kind"] == "hang"));
    expect(everett(&folder).args(["follow", "out"]), 0);
}

/// Two deterministic runs write the same files, also where these say how long something took.
#[test]
fn deterministic_runs_write_the_same_files() {
    let folder = folder("deterministic");
    build(&folder, "words", WORDS, &[]);
    let (command, code) = COMMANDS[1];
    let [one, other] = [(), ()].map(|()| {
        let _ = std::fs::remove_dir_all(folder.join("out"));
        let out = run(&folder, "out", &["--deterministic"], command, code);
        files(&out)
    });
    assert!(one.len() > 20 && one.contains_key("summary.json"));
    assert!(one == other);
}

#[test]
fn the_time_limit_is_kept() {
    let folder = folder("max-time");
    for (name, source) in [("spin", SPIN), ("fork-for-ever", FORK_FOR_EVER)] {
        build(&folder, name, source, &[]);
        let out = format!("out-{name}");
        let options = ["--max-time", "2s", "--no-tests"];
        let mut run = everett(&folder);
        run.args(["run", "--all-tests", "--out", &out]);
        let used = processor_time(run.args(options).arg(format!("./{name}")));
        check_time(&folder.join(&out), name, used);
        // Rematerialising the rest counts as time too.
        let mut resume = everett(&folder);
        let used = processor_time(resume.args(["resume", "--max-time", "2s", &out]));
        check_time(&folder.join(&out), name, used);
        let files = fs::read_dir(folder.join(&out)).expect("a folder").flatten();
        let kept = files.filter(|file| {
            let name = file.file_name();
            let name = name.to_string_lossy();
            name.starts_with("checkpoint") || name == "spill"
        });
        let total: u64 = kept
            .map(|file| file.metadata().map_or(0, |it| it.len()))
            .sum();
        let seen = summary(&folder.join(&out));
        let states = count(&seen, "/states_pending") + count(&seen, "/states_unsaved");
        // About 300 bytes per state, twice, and once more if the previous checkpoint is kept
        // because the last one, in a hurry, was not synchronised.
        let most = 4096 * (states + 16);
        assert!(total < most, "{total} bytes for {states} states");
    }
}

/// Checks a run of two seconds, with everything that it had to write, by its processor time: a
/// loaded machine does not change that.
fn check_time(out: &Path, name: &str, used: f64) {
    let summary = summary(out);
    check_weights(&summary);
    // A disk that others keep busy may be too slow for the last states.
    let hit = limits(&summary);
    let is_known = |limit: &&str| ["max-time", "lost-state"].contains(limit);
    assert!(
        hit.contains(&"max-time") && hit.iter().all(is_known),
        "{name}: {hit:?}"
    );
    // Writing without a limit took half a minute.
    assert!(used < 2.04 + 8.0, "{name}: {used} s");
}

/// Runs a command that must succeed, and returns the processor time of its process in seconds.
fn processor_time(command: &mut Command) -> f64 {
    /// `_SC_CLK_TCK`.
    const TICKS: f64 = 100.0;
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let mut used = 0.0;
    loop {
        let path = format!("/proc/{}/stat", child.id());
        let stat = fs::read_to_string(path).unwrap_or_default();
        // The fields after the name, which is in parentheses: the state is the third of all.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks = |at: usize| fields.split_whitespace().nth(at)?.parse::<f64>().ok();
        if let (Some(user), Some(system)) = (ticks(14 - 3), ticks(15 - 3)) {
            used = (user + system) / TICKS;
        }
        if let Some(status) = child.try_wait().expect("its state") {
            assert!(status.success(), "{command:?}: {status}");
            return used;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn states_are_spilled_at_the_memory_limit() {
    const LIMIT: u64 = 64 << 20;
    let folder = folder("max-memory");
    build(&folder, "large", LARGE_STATES, &[]);
    let start = |out: &str, limit: &str| {
        let mut run = everett(&folder);
        run.args(["run", "--all-tests", "--search", "bfs", "--batch", "10"]);
        run.args(["--max-memory", limit, "--out", out, "./large"]);
        watched(&mut run)
    };
    let free = start("free", "4G");
    assert!(
        free > LIMIT,
        "the program is too small for this test: {free} bytes"
    );
    let peak = start("bounded", "64M");
    let (free, bounded) = (folder.join("free"), folder.join("bounded"));
    let counts = summary(&bounded);
    check_weights(&counts);
    assert!(count(&counts, "/states_spilled") > 0, "{counts}");
    assert_eq!(counts["complete"], true);
    assert!(peak < LIMIT, "{peak} bytes");
    assert_eq!(count(&summary(&free), "/states_spilled"), 0);
    // Instructions that rematerialise states do not count again.
    assert!(count(&counts, "/instructions_replayed") > 0, "{counts}");
    assert_eq!(count(&summary(&free), "/instructions_replayed"), 0);
    assert_eq!(
        count(&counts, "/instructions"),
        count(&summary(&free), "/instructions")
    );
    assert!(endings(&bounded) == endings(&free), "the paths differ");
    assert_eq!(endings(&bounded).len(), 512);
}

/// Checks that a resumed run has found what an uninterrupted one finds.
fn check_same_as_whole(folder: &Path, resumed: &str, whole: &str) {
    let (resumed, whole) = (folder.join(resumed), folder.join(whole));
    assert!(endings(&resumed) == endings(&whole), "the paths differ");
    assert!(!resumed.join("checkpoint.json").exists());
    let (resumed, whole) = (summary(&resumed), summary(&whole));
    for part in [
        "/complete",
        "/paths",
        "/findings",
        "/tests",
        "/forks",
        "/instructions",
        "/coverage",
    ] {
        // Findings name the first path that reached them, which depends on the order.
        let list = |summary: &Value| match summary.pointer(part) {
            Some(Value::Array(list)) => Value::from(list.len()),
            other => other.cloned().expect("a part"),
        };
        assert_eq!(list(&resumed), list(&whole), "{part}");
    }
}

#[test]
fn a_run_stopped_at_limits_and_resumed_finds_the_same() {
    let folder = folder("resume");
    build(&folder, "forks", FORKS, &[]);
    run(&folder, "whole", &[], &["./forks"], FINDINGS);
    for search in ["dfs", "bfs", "random-path,coverage"] {
        let name = format!("stopped-{search}");
        let mut start = everett(&folder);
        start.args([
            "run",
            "--all-tests",
            "--max-paths",
            "30",
            "--search",
            search,
        ]);
        let output = start
            .args(["--out", &name, "./forks"])
            .output()
            .expect("it starts");
        assert!(output.status.code() < Some(2), "{}", text(&output));
        check_weights(&summary(&folder.join(&name)));
        let mut step = everett(&folder);
        step.args(["resume", &name, "--max-paths", "100"]);
        let output = step.output().expect("it starts");
        assert!(output.status.code() < Some(2), "{}", text(&output));
        let middle = summary(&folder.join(&name));
        check_weights(&middle);
        assert_eq!(count(&middle, "/paths/completed"), 100);
        let summary = resume(&folder, &name, &[], FINDINGS);
        assert_eq!(summary["complete"], true, "{search}");
        check_same_as_whole(&folder, &name, "whole");
        expect(everett(&folder).args(["follow", &name]), CLEAN);
        let output = expect(everett(&folder).args(["resume", &name]), 2);
        assert!(
            text(&output).contains("the run has ended"),
            "{}",
            text(&output)
        );
    }
}

#[test]
fn a_run_stopped_by_a_signal_and_resumed_finds_the_same() {
    let folder = folder("interrupt");
    build(&folder, "forks", FORKS, &[]);
    run(&folder, "whole", &[], &["./forks"], FINDINGS);
    let workers = ["1", "1", "1", "2", "3"];
    for (workers, enough) in workers.into_iter().zip([1, 40, 150, 1, 40]) {
        let name = format!("stopped-{workers}-{enough}");
        let mut start = everett(&folder);
        start.args(["run", "--all-tests", "--workers", workers]);
        start.args(["--out", &name, "./forks"]);
        let tests = folder.join(&name).join("tests");
        let code = stop_at(&mut start, "INT", &tests, enough);
        assert!(matches!(code, Some(0 | FINDINGS | 3)), "{code:?}");
        let stopped = summary(&folder.join(&name));
        check_weights(&stopped);
        if stopped["stopped"] == "asked" {
            // The other workers may just have ended the last paths.
            if stopped["complete"] == false {
                resume(&folder, &name, &[], FINDINGS);
            }
        }
        check_same_as_whole(&folder, &name, "whole");
    }
}

#[test]
fn a_run_killed_again_and_again_and_resumed_finds_the_same() {
    let folder = folder("killed");
    build(&folder, "forks", FORKS, &[]);
    run(&folder, "whole", &[], &["./forks"], FINDINGS);
    for workers in ["1", "3"] {
        let name = format!("killed-{workers}");
        let tests = folder.join(&name).join("tests");
        let mut command = everett(&folder);
        command.args(["run", "--all-tests", "--checkpoint", "0s"]);
        command.args(["--workers", workers, "--out", &name, "./forks"]);
        for enough in [1, 2, 20, 60, 100, 200, 300] {
            stop_at(&mut command, "KILL", &tests, enough);
            command = everett(&folder);
            command.args(["resume", &name]);
        }
        let out = folder.join(&name);
        if !is_at_its_end(&out) {
            // As if the run was killed after its summary, before it removed its checkpoint.
            fs::copy(folder.join("whole/summary.json"), out.join("summary.json")).expect("copied");
            resume(&folder, &name, &[], FINDINGS);
        }
        check_same_as_whole(&folder, &name, "whole");
        expect(everett(&folder).args(["follow", &name]), CLEAN);
    }
}

#[test]
fn following_a_changed_program_tells_the_difference() {
    let folder = folder("changed");
    build(&folder, "words", WORDS, &[]);
    let command = ["./words", "--sym-stdin", "4"];
    run(&folder, "out", &[], &command, CLEAN);
    let output = expect(everett(&folder).args(["follow", "out"]), CLEAN);
    assert!(
        text(&output).contains(" 0 end otherwise"),
        "{}",
        text(&output)
    );
    build(
        &folder,
        "words",
        &WORDS.replace("return 11", "return 21"),
        &[],
    );
    let output = expect(everett(&folder).args(["follow", "out"]), FINDINGS);
    let said = text(&output);
    assert!(said.contains("11") && said.contains("21"), "{said}");
    let changed = traces(&folder.join("out"));
    let (path, _) = changed
        .iter()
        .find(|(_, trace)| trace["end"]["exit"] == 11)
        .expect("a test that ended in 11");
    expect(everett(&folder).arg("follow").arg(path), FINDINGS);
}

#[test]
fn following_takes_no_notice_of_the_limits_of_the_run() {
    let folder = folder("follow-limits");
    build(&folder, "forks", FORKS, &[]);
    let options = [
        "--max-time",
        "100s",
        "--max-forks",
        "50",
        "--max-paths",
        "500",
    ];
    let mut run = everett(&folder);
    run.args(["run", "--all-tests", "--out", "out"])
        .args(options);
    let output = run.arg("./forks").output().expect("it starts");
    assert!(output.status.code() < Some(2), "{}", text(&output));
    // As if following the traces took longer than the run was allowed to take.
    let path = folder.join("out/args.json");
    let mut args: Value = serde_json::from_slice(&fs::read(&path).expect("args")).expect("JSON");
    args["max_time"]["secs"] = 0.into();
    args["max_forks"] = 0.into();
    args["max_paths"] = 0.into();
    fs::write(&path, args.to_string()).expect("written");
    expect(everett(&folder).args(["follow", "out"]), CLEAN);
}

/// Some paths are merged, one leaves the region by itself, and many fork afterwards.
const MERGED: &str = r#"
#include <assert.h>
#include <klee/klee.h>
int main(void) {
  unsigned char bytes[6];
  int count = 0, sum = 0;
  klee_make_symbolic(bytes, sizeof bytes, "bytes");
  for (int i = 0; i < 6; i++) {
    klee_open_merge();
    if (bytes[i] > 100)
      count += 1;
    else if (bytes[i] == 7)
      return 3;
    klee_close_merge();
  }
  for (int i = 0; i < 6; i++)
    if (bytes[i] & 1)
      sum += i;
  assert(count < 6 || sum != 9);
  return count == 3 ? sum : 1;
}
"#;

#[test]
fn merged_paths_are_continued_wherever_they_were_left() {
    let folder = folder("merged");
    build(&folder, "merged", MERGED, &["-O0"]);
    let run = |out: &str, options: &[&str], code: i32| {
        let run = ["run", "-q", "--all-tests", "--out", out];
        expect(
            everett(&folder).args(run).args(options).arg("./merged"),
            code,
        );
        summary(&folder.join(out))
    };
    let whole = run("whole", &["--workers", "1"], 1);
    assert_eq!(whole["complete"], true, "{whole}");
    check_weights(&whole);
    // Without merging, there would be hundreds of times as many paths.
    let paths = count(&whole, "/paths/completed");
    assert!((7..1000).contains(&paths), "{whole}");
    let team = run("team", &["--workers", "3"], 1);
    assert_eq!(count(&team, "/paths/completed"), paths, "{team}");
    let stopped = ["--workers", "1", "--search", "bfs", "--max-paths", "5"];
    let parts = run("parts", &stopped, 0);
    assert_eq!(parts["complete"], false, "{parts}");
    check_weights(&parts);
    expect(everett(&folder).args(["resume", "-q", "parts"]), 1);
    let parts = summary(&folder.join("parts"));
    assert_eq!(parts["complete"], true, "{parts}");
    assert_eq!(count(&parts, "/paths/completed"), paths, "{parts}");
    check_weights(&parts);
    // Each trace takes one of the merged paths.
    for out in ["whole", "parts"] {
        expect(everett(&folder).args(["follow", out]), 0);
        expect(everett(&folder).args(["confirm", "--tests", out]), 0);
    }
}
