//! The folder of a run: one run at a time writes to it, and a full disk loses as little as
//! possible.

use crate::common::samples::{FORKS, WORDS};
use crate::common::{build, everett, expect, folder, summary, text};
use std::fs::{self, File};
use std::os::unix::fs::symlink;

#[test]
fn a_folder_is_locked_while_a_run_writes_to_it() {
    let folder = folder("disk-locked");
    build(&folder, "words", WORDS, &[]);
    let out = folder.join("out");
    fs::create_dir(&out).expect("a folder");
    let run = ["run", "--out", "out", "./words", "--sym-stdin", "2"];
    {
        // The lock of another run.
        let other = File::open(&out).expect("the folder");
        other.try_lock().expect("nobody has it");
        let said = text(&expect(everett(&folder).args(run), 2));
        assert!(said.contains("another run is writing to it"), "{said}");
        // A process that another test starts just now may have the file, too.
        other.unlock().expect("it is held");
    }
    // The lock is released when its file is closed, as when a process is killed.
    expect(everett(&folder).args(run), 0);
    let other = File::open(&out).expect("the folder");
    other.try_lock().expect("the run has ended");
    let said = text(&expect(everett(&folder).args(["resume", "out"]), 2));
    assert!(said.contains("another run is writing to it"), "{said}");
}

#[test]
fn a_full_disk_leaves_summary_and_findings() {
    let folder = folder("disk-full");
    build(&folder, "forks", FORKS, &["-g"]);
    // Writing to this device fails as on a full disk.
    let full = "/dev/full";
    let out = folder.join("out");
    for dir in ["tests", "findings/0001"] {
        fs::create_dir_all(out.join(dir)).expect("a folder");
    }
    symlink(full, out.join("tests/000001.trace")).expect("a link");
    // A finding is reported, whatever else happens.
    let output = expect(everett(&folder).args(["run", "--out", "out", "./forks"]), 1);
    let said = text(&output);
    assert!(said.contains("not all results could be written"), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.contains("out-of-bounds"), "{said}");
    let summary = summary(&out);
    let warnings = summary["warnings"].to_string();
    assert!(
        warnings.contains("not all results could be written"),
        "{warnings}"
    );
    assert_eq!(summary["findings"][0]["confirmed"], "confirmed");
    for file in [
        "finding.txt",
        "finding.json",
        "finding.trace",
        "finding.ktest",
    ] {
        let file = out.join("findings/0001").join(file);
        assert!(
            fs::metadata(&file).is_ok_and(|file| file.len() > 0),
            "{}",
            file.display()
        );
    }
    expect(everett(&folder).args(["replay", "out/findings/0001"]), 0);
    // The reserve had space for what could not be written at first.
    let test = out.join("tests/000001.trace");
    let metadata = fs::symlink_metadata(&test).expect("a test");
    assert!(metadata.is_file() && metadata.len() > 0);
    expect(
        everett(&folder).args(["replay", "out/tests/000001.trace"]),
        0,
    );
}

#[test]
fn a_full_disk_is_a_failure_where_nothing_is_found() {
    let folder = folder("disk-full-clean");
    build(&folder, "words", WORDS, &[]);
    fs::create_dir_all(folder.join("out/tests")).expect("a folder");
    symlink("/dev/full", folder.join("out/tests/000001.trace")).expect("a link");
    let run = ["run", "--out", "out", "./words", "--sym-stdin", "2"];
    let said = text(&expect(everett(&folder).args(run), 2));
    assert!(said.contains("not all results could be written"), "{said}");
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_not_promised() {
    let folder = folder("disk-checkpoint");
    build(&folder, "words", WORDS, &[]);
    let run = |out: &str, paths: &str| {
        let mut run = everett(&folder);
        run.args(["run", "--out", out, "--max-paths", paths]);
        run.args(["--checkpoint", "1000s", "./words", "--sym-stdin", "2"]);
        run
    };
    fs::create_dir(folder.join("out")).expect("a folder");
    symlink("/dev/full", folder.join("out/checkpoint.json.new")).expect("a link");
    let said = text(&expect(&mut run("out", "2"), 2));
    let summary_before = summary(&folder.join("out"));
    let left = summary_before["states_pending"].as_u64().expect("a number");
    assert!(left > 0, "{summary_before}");
    assert_eq!(summary_before["states_unsaved"], left);
    assert_eq!(summary_before["resume_from"], "beginning");
    let hint = format!("{left} states left; start again with: everett resume out");
    assert!(said.contains(&hint), "{said}");
    assert!(
        said.contains("a resumed run starts again from the beginning"),
        "{said}"
    );
    // The announced behaviour is the real one.
    expect(everett(&folder).args(["resume", "out"]), 0);
    expect(&mut run("whole", "1000"), 0);
    let [resumed, whole] = ["out", "whole"].map(|out| summary(&folder.join(out)));
    assert_eq!(resumed["complete"], true);
    assert_eq!(resumed["paths"], whole["paths"]);
    assert!(resumed["resume_from"].is_null() && resumed["states_unsaved"] == 0);
}
