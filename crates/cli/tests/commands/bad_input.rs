//! Bad input: Everett reports the place and a remedy, exits with code 2, and never panics.

use crate::common::samples::{FORKS, SPIN};
use crate::common::{build, everett, expect, folder, summary, text};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs Everett, and checks that it refuses with exit code 2 and prints all of these words.
fn refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let output = expect(everett(folder).args(arguments), 2);
    let said = text(&output);
    assert!(!said.contains("panicked"), "{arguments:?} said:\n{said}");
    for word in words {
        assert!(
            said.contains(word),
            "{arguments:?} does not say {word:?}:\n{said}"
        );
    }
}

#[test]
fn programs_that_are_not_there() {
    let folder = folder("bad-program");
    refused(
        &folder,
        &["run", "./nothing"],
        &["there is no program ./nothing"],
    );
    refused(
        &folder,
        &["exec", "./nothing"],
        &["there is no program ./nothing"],
    );
    for many in [&[][..], &["--runs", "2"]] {
        let native = |program| [&["native"][..], many, &[program]].concat();
        refused(
            &folder,
            &native("./nothing"),
            &["there is no native program ./nothing\n"],
        );
        refused(&folder, &native("."), &["is a folder, not a program\n"]);
    }
    fs::write(folder.join("script"), "#!/bin/sh\n").expect("written");
    refused(
        &folder,
        &["run", "./script"],
        &["./script.bc is missing", "everett cc"],
    );
    refused(
        &folder,
        &["run", "./nothing.bc"],
        &["cannot read ./nothing.bc", "No such file"],
    );
    refused(&folder, &["run", "."], &["is a folder, not a program"]);
    refused(&folder, &["run"], &["PROGRAM"]);
    refused(
        &folder,
        &["follow", "nothing"],
        &["nothing is not the folder of a run"],
    );
    refused(
        &folder,
        &["resume", "nothing"],
        &["nothing is not the folder of a run"],
    );
    refused(
        &folder,
        &["explore"],
        &["unrecognized subcommand 'explore'"],
    );
    assert!(!folder.join("everett-out").exists(), "nothing was begun");
}

#[test]
fn bitcode_that_is_damaged() {
    let folder = folder("bad-bitcode");
    build(&folder, "spin", SPIN, &[]);
    let good = fs::read(folder.join("spin.bc")).expect("bitcode");
    for (number, length) in [0, 3, 4, 50, good.len() / 2, good.len() - 4]
        .into_iter()
        .enumerate()
    {
        let name = format!("cut{number}.bc");
        fs::write(folder.join(&name), &good[..length]).expect("written");
        refused(&folder, &["run", &name], &[&name]);
        refused(&folder, &["exec", &name], &[&name]);
    }
    fs::write(folder.join("text.bc"), "this is no bitcode at all").expect("written");
    refused(&folder, &["run", "text.bc"], &["text.bc", "bitcode"]);
    fs::write(
        folder.join("elf.bc"),
        fs::read(folder.join("spin")).expect("a program"),
    )
    .expect("written");
    refused(&folder, &["run", "elf.bc"], &["elf.bc", "bitcode"]);
    // Damaged in the middle, bitcode is refused, or runs as far as possible; Everett never panics.
    for round in 0..24u32 {
        let mut damaged = good.clone();
        let at = (round.wrapping_mul(2_654_435_761) as usize) % damaged.len();
        damaged[at] ^= 1 << (round % 8);
        fs::write(folder.join("damaged.bc"), damaged).expect("written");
        let out = format!("out{round}");
        let limits = [
            "--max-instructions",
            "20000",
            "--max-time",
            "5s",
            "--out",
            &out,
        ];
        let mut run = everett(&folder);
        let output = run
            .arg("run")
            .args(limits)
            .arg("damaged.bc")
            .output()
            .expect("it starts");
        assert!(
            output.status.code() <= Some(2),
            "{:?} at byte {at}",
            output.status
        );
        assert!(
            output.status.code().is_some(),
            "{:?} at byte {at}",
            output.status
        );
        assert!(
            !text(&output).contains("panicked"),
            "byte {at}:\n{}",
            text(&output)
        );
    }
}

#[test]
fn options_that_make_no_sense() {
    let folder = folder("bad-options");
    build(&folder, "spin", SPIN, &[]);
    let cases: [(&[&str], &[&str]); 26] = [
        (
            &["--search", "deepest"],
            &["\"deepest\" is not a searcher", "random-path"],
        ),
        (&["--search", ""], &["is not a searcher"]),
        (&["--max-time", "soon"], &["\"soon\"", "--max-time"]),
        (
            &["--max-time", "3y"],
            &["\"y\" is not a unit of time", "ms, s, m or h"],
        ),
        (&["--max-time", "-1s"], &["--max-time"]),
        (&["--max-time", "1e30h"], &["--max-time"]),
        (&["--max-time", "nan"], &["--max-time"]),
        (
            &["--max-memory", "4X"],
            &["not a unit of size", "use K, M or G"],
        ),
        (&["--max-memory", "99999999999G"], &["too large"]),
        (&["--max-memory", "µ"], &["--max-memory"]),
        (&["--max-paths", "-1"], &["--max-paths"]),
        (&["--max-paths", "18446744073709551616"], &["--max-paths"]),
        (&["--max-depth", "x"], &["--max-depth"]),
        (&["--seed", "1.5"], &["--seed"]),
        (&["--set", "a.b=1"], &["--set is for scenarios"]),
        (&["--offline", "/nowhere"], &["--offline is for scenarios"]),
        (&["--dtest"], &["--dtest is for scenarios"]),
        (&["--mapping", "cow"], &["--mapping is for scenarios"]),
        (&["--orders", "1"], &["--orders is for scenarios"]),
        (
            &["--check-deadlocks"],
            &["--check-deadlocks is for scenarios"],
        ),
        (&["--quiet", "--json"], &["--quiet", "--json"]),
        (&["--unknown"], &["--unknown"]),
        (&["--smt-solver", "/nowhere/solver"], &["/nowhere/solver"]),
        (&["--env", "NOVALUE"], &["NOVALUE", "NAME=VALUE"]),
        (&["--batch", "0"], &["--batch"]),
        (&["--solver-time", "later"], &["--solver-time"]),
    ];
    for (options, words) in cases {
        let arguments: Vec<&str> =
            [&["run", "--max-instructions", "5000"], options, &["./spin"]].concat();
        refused(&folder, &arguments, words);
    }
    let cases: [(&[&str], &[&str]); 8] = [
        (&["--sym-arg"], &["--sym-arg needs a length"]),
        (
            &["--sym-arg", "x"],
            &["--sym-arg needs a length, not \"x\""],
        ),
        (
            &["--sym-args", "3", "1", "2"],
            &["Invalid range to --sym-args"],
        ),
        (&["--sym-files", "30", "4"], &["at most 26 files"]),
        (
            &["--sym-stdin", "-4"],
            &["--sym-stdin needs a size, not \"-4\""],
        ),
        (
            &["--sym-stdin", "4000000000"],
            &["a symbolic input of 4000000000 bytes is too large"],
        ),
        (
            &["--sym-file", "name"],
            &["--sym-file needs a name and a size"],
        ),
        (&["--sym-env", "NAME", "x"], &["--sym-env"]),
    ];
    for (words_of_program, words) in cases {
        let run = ["run", "--max-instructions", "5000", "./spin"];
        refused(&folder, &[&run, words_of_program].concat(), words);
    }
}

#[test]
fn folders_that_cannot_be_written() {
    let folder = folder("bad-folder");
    build(&folder, "forks", FORKS, &[]);
    fs::write(folder.join("file"), "").expect("written");
    refused(
        &folder,
        &["run", "--out", "file", "./forks"],
        &["cannot write file"],
    );
    refused(
        &folder,
        &["run", "--out", "/proc/nowhere", "./forks"],
        &["cannot write /proc/nowhere"],
    );
    expect(everett(&folder).args(["run", "--out", "out", "./forks"]), 1);
    refused(
        &folder,
        &["run", "--out", "out", "./forks"],
        &["cannot write out: it holds an earlier run\n"],
    );
    // For users other than root, also a folder without permissions.
    let closed = folder.join("closed");
    fs::create_dir(&closed).expect("a folder");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).expect("closed");
    if fs::write(closed.join("try"), "").is_err() {
        refused(
            &folder,
            &["run", "--out", "closed/out", "./forks"],
            &["cannot write closed/out"],
        );
    }
}

#[test]
fn a_full_disk_is_told_and_what_was_found_is_shown() {
    let folder = folder("full-disk");
    // Traces exceed the limit; `args.json` does not, however long the path of the folder is.
    let large = "static char large[40000]; everett_make_symbolic(large, sizeof large, \"large\");";
    let forks = FORKS.replace("unsigned n = 0;", &format!("unsigned n = 0; {large}"));
    build(&folder, "forks", &forks, &[]);
    // A limit on the size of files acts like a full disk; its signal is ignored.
    let everett = env!("CARGO_BIN_EXE_everett");
    let script =
        format!("trap '' XFSZ; ulimit -f 16; exec '{everett}' run --all-tests --out out ./forks");
    let mut shell = Command::new("bash");
    let output = expect(
        shell
            .args(["-c", &script])
            .current_dir(&folder)
            .env("EVERETT_WORKERS", "1"),
        1,
    );
    let said = text(&output);
    assert!(!said.contains("panicked"), "{said}");
    assert!(
        said.contains("out-of-bounds"),
        "the finding is shown: {said}"
    );
    assert!(said.contains("cannot write out/"), "{said}");
}

/// Changes a field of a JSON file.
fn change(path: &Path, pointer: &str, value: Value) {
    let mut json: Value = serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON");
    *json
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("no {pointer}")) = value;
    fs::write(path, json.to_string()).expect("written");
}

/// Returns bytes as text, one character each.
fn latin(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Arguments of a run that stops with states left.
const START: [&str; 8] = [
    "run",
    "--search",
    "bfs",
    "--max-paths",
    "5",
    "--out",
    "out",
    "./forks",
];

#[test]
fn checkpoints_that_are_damaged() {
    let folder = folder("bad-checkpoint");
    build(&folder, "forks", FORKS, &[]);
    let output = everett(&folder).args(START).output().expect("it starts");
    assert!(output.status.code() < Some(2), "{}", text(&output));
    let (checkpoint, args) = (
        folder.join("out/checkpoint.json"),
        folder.join("out/args.json"),
    );
    let (good, good_args) = (
        fs::read(&checkpoint).expect("it"),
        fs::read(&args).expect("it"),
    );
    // A checkpoint with a copy would be resumed; see `power`.
    fs::remove_file(folder.join("out/checkpoint.json.copy")).expect("it is there");
    for length in [0, 1, good.len() / 2, good.len() - 1] {
        fs::write(&checkpoint, &good[..length]).expect("written");
        refused(&folder, &["resume", "out"], &["checkpoint.json is damaged"]);
    }
    let changes: [(&str, Value); 6] = [
        ("/saved/statistics/finished", "xyz".into()),
        ("/wall_seconds", (-1.0).into()),
        ("/wall_seconds", 1e300.into()),
        ("/saved/left", 3.into()),
        ("/saved/left/0", 3.into()),
        ("/saved/left/0/weight", "xyz".into()),
    ];
    for (pointer, value) in changes {
        fs::write(&checkpoint, &good).expect("written");
        change(&checkpoint, pointer, value);
        refused(&folder, &["resume", "out"], &["checkpoint.json is damaged"]);
    }
    fs::write(&checkpoint, &good).expect("written");
    for (pointer, value) in [
        ("/command", Value::Array(Vec::new())),
        ("/seed", "x".into()),
    ] {
        fs::write(&args, &good_args).expect("written");
        change(&args, pointer, value);
        refused(&folder, &["resume", "out"], &["args.json is damaged"]);
        refused(&folder, &["follow", "out"], &["args.json is damaged"]);
    }
    fs::write(&args, "{").expect("written");
    refused(&folder, &["resume", "out"], &["args.json is damaged"]);
    fs::write(&args, &good_args).expect("written");
    // States that cannot be rematerialised are reported, and the run is not complete.
    let file = folder.join("out/checkpoint-1.states");
    let states = fs::read(&file).expect("it");
    let renamed = latin(&states).replace(r#"["b","#, r#"["c","#);
    assert!(renamed != latin(&states), "the input has this name");
    fs::remove_file(file.with_extension("copy")).expect("it is there");
    for damaged in [
        renamed.chars().map(|byte| byte as u8).collect(),
        vec![0; states.len()],
        states[..states.len() / 2].to_vec(),
        Vec::new(),
    ] {
        fs::write(&checkpoint, &good).expect("written");
        fs::write(&file, damaged).expect("written");
        let output = everett(&folder)
            .args(["resume", "out"])
            .output()
            .expect("it starts");
        assert!(!text(&output).contains("panicked"), "{}", text(&output));
        let summary = summary(&folder.join("out"));
        assert_eq!(summary["complete"], false, "{summary}");
        let has_findings = summary["findings"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        let code = if has_findings { 1 } else { 2 };
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        assert!(text(&output).contains(" lost: "), "{}", text(&output));
        let place = " of checkpoint-1.states";
        assert!(text(&output).contains(place), "{}", text(&output));
    }
}

#[test]
fn one_damaged_spot_of_a_checkpoint_costs_nothing() {
    let folder = folder("damaged-spot");
    build(&folder, "forks", FORKS, &[]);
    let mut run = everett(&folder);
    let whole = run.args(["run", "--out", "whole", "./forks"]).output();
    let whole = whole.expect("it starts");
    assert!(whole.status.code() < Some(2), "{}", text(&whole));
    let whole = summary(&folder.join("whole"));
    assert_eq!(whole["complete"], true);
    let started = everett(&folder).args(START).output().expect("it starts");
    assert!(started.status.code() < Some(2), "{}", text(&started));
    let names = ["checkpoint.json", "checkpoint-1.states"];
    let out = folder.join("out");
    let files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(&out)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(path).expect("a file")))
        .collect();
    for (name, spots) in [(names[0], 2), (names[1], 3)] {
        for spot in 0..spots {
            for (path, bytes) in &files {
                fs::write(path, bytes).expect("written");
            }
            let mut bytes = fs::read(out.join(name)).expect("a file");
            let at = bytes.len() * (2 * spot + 1) / (2 * spots);
            bytes[at] ^= 0xff;
            fs::write(out.join(name), bytes).expect("written");
            let output = everett(&folder).args(["resume", "out"]).output();
            let output = output.expect("it starts");
            let said = text(&output);
            let summary = summary(&out);
            assert_eq!(summary["complete"], true, "{name}, byte {at}: {said}");
            assert_eq!(summary["paths"], whole["paths"], "{name}, byte {at}");
            let is_said =
                said.contains("checkpoint.json is damaged; the run goes on from its copy");
            assert_eq!(is_said, name == names[0], "{said}");
        }
    }
}

#[test]
fn a_program_that_changed_is_not_resumed() {
    let folder = folder("changed-resume");
    build(&folder, "forks", FORKS, &[]);
    everett(&folder).args(START).output().expect("it starts");
    build(&folder, "forks", SPIN, &[]);
    refused(
        &folder,
        &["resume", "out"],
        &["the program has changed", "start a new run"],
    );
}

#[test]
fn traces_that_are_damaged() {
    let folder = folder("bad-trace");
    build(&folder, "forks", FORKS, &[]);
    expect(everett(&folder).args(["run", "--out", "out", "./forks"]), 1);
    let trace = folder.join("out/tests/000001.trace");
    let good = fs::read(&trace).expect("a trace");
    for bad in [
        "",
        "{",
        "[]",
        r#"{"inputs": [{"name": "b", "bytes": "0"}]}"#,
    ] {
        fs::write(&trace, bad).expect("written");
        refused(
            &folder,
            &["follow", "out/tests/000001.trace"],
            &["000001.trace is not a trace"],
        );
    }
    fs::write(&trace, &good).expect("written");
    change(&trace, "/inputs", Value::Array(Vec::new()));
    let output = everett(&folder)
        .args(["follow", "out"])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
}

/// The folder of a run may come from anybody: a pipe in place of a file, without a writer, blocks
/// no command.
#[test]
fn a_pipe_in_the_folder_of_a_run_blocks_nothing() {
    let folder = folder("input-pipe");
    let source = "#include <everett.h>\n#include <stdlib.h>\nint main(void) {\n    int x;\n    \
                  everett_make_symbolic(&x, sizeof x, \"x\");\n    if (x == 7)\n        abort();\n    return 0;\n}\n";
    build(&folder, "aborts", source, &["-g"]);
    expect(
        everett(&folder).args(["run", "--out", "run", "./aborts"]),
        1,
    );
    for (at, file) in ["summary.json", "args.json", "coverage.lcov"]
        .iter()
        .enumerate()
    {
        let copy = format!("copy-{at}");
        expect(
            Command::new("cp")
                .current_dir(&folder)
                .args(["-r", "run", &copy]),
            0,
        );
        let replaced = folder.join(&copy).join(file);
        fs::remove_file(&replaced).expect("a file of a run");
        expect(Command::new("mkfifo").arg(&replaced), 0);
        for command in ["confirm", "coverage", "follow", "resume", "test"] {
            let ended = everett(&folder).args([command, &copy]).output();
            let code = ended.expect("it starts").status.code();
            assert!(
                code.is_some_and(|code| code <= 3),
                "{command} with {file}: {code:?}"
            );
        }
    }
}

/// Pipes and devices are refused wherever a file is expected: reading one might never end.
#[test]
fn only_regular_files_are_read() {
    let folder = folder("input-devices");
    build(&folder, "plain", "int main(void) { return 0; }", &[]);
    for name in ["pipe", "pipe.bc", "pipe.toml"] {
        expect(Command::new("mkfifo").arg(folder.join(name)), 0);
    }
    for name in ["zero", "zero.bc", "zero.toml"] {
        std::os::unix::fs::symlink("/dev/zero", folder.join(name)).expect("a link");
    }
    let commands = [
        "run ./NAME",
        "run NAME.bc",
        "run NAME.toml",
        "run --program /bin/other=NAME ./plain",
        "run --against NAME ./plain",
        "run --file /etc/file=NAME ./plain",
        "exec ./NAME",
        "native ./NAME",
        "native --program /bin/other=NAME ./plain",
        "scenario check NAME.toml",
        "trojans NAME.toml",
        "faults run NAME.toml",
        "harden --budget 10% --workload true ./NAME",
        "coverage NAME",
    ];
    for command in commands {
        for name in ["pipe", "zero"] {
            let words = command.replace("NAME", name);
            let words = words.split_whitespace();
            let said = text(&expect(everett(&folder).args(words), 2));
            let is_told = said.contains("not a regular file") || said.contains("neither a file");
            assert!(is_told, "{command} with {name}: {said}");
        }
    }
}

/// Wrong files where others are expected: the answer says what is wrong with them, once.
#[test]
fn files_of_another_kind_are_refused() {
    let folder = folder("input-kinds");
    build(&folder, "plain", "int main(void) { return 0; }", &[]);
    fs::write(folder.join("empty"), "").expect("written");
    fs::write(folder.join("text"), "hello\n").expect("written");
    fs::create_dir(folder.join("folder")).expect("made");
    for name in ["empty.bc", "text.bc"] {
        fs::copy(folder.join(&name[..name.len() - 3]), folder.join(name)).expect("copied");
    }
    fs::set_permissions(folder.join("empty"), fs::Permissions::from_mode(0o755)).expect("set");
    expect(everett(&folder).args(["run", "--out", "run", "./plain"]), 0);
    for (command, words) in [
        ("run empty.bc", "the file is empty"),
        ("run text.bc", "this is text, not bitcode"),
        ("run --against nothing.bc ./plain", "No such file"),
        ("run --files text ./plain", "text is not a folder"),
        (
            "run --smt-solver ./text ./plain",
            "there is no solver ./text",
        ),
        ("native ./text", "text is not executable"),
        ("native ./empty", "empty is not a program: it is neither"),
        ("native folder", "folder is a folder, not a program"),
        ("replay --on text run", "text is not executable"),
        ("test --on empty run", "empty is not a program"),
        (
            "harden --budget 10% --workload true ./nothing",
            "nothing.bc: there is no such file",
        ),
        ("coverage text", "text names no source files"),
        ("coverage empty run", "empty names no source files"),
        (
            "coverage --files nothing.c run",
            "no file that ends in nothing.c",
        ),
        ("coverage --functions none run", "there is no function none"),
    ] {
        let words_of: Vec<&str> = command.split(' ').collect();
        let said = text(&expect(everett(&folder).args(&words_of), 2));
        assert_eq!(said.matches(words).count(), 1, "{command} said:\n{said}");
    }
    assert!(!folder.join("nothing.harden").exists());
}

/// A script can be written to a device, whose permissions stay.
#[test]
fn scripts_go_to_devices() {
    let folder = folder("input-export-device");
    let program = "#include <stdlib.h>\nint main(void) { abort(); }";
    build(&folder, "aborts", program, &[]);
    expect(
        everett(&folder).args(["run", "--out", "run", "./aborts"]),
        1,
    );
    let mode = || {
        fs::metadata("/dev/null")
            .expect("a device")
            .permissions()
            .mode()
    };
    let before = mode();
    expect(
        everett(&folder).args(["export", "--out", "/dev/null", "run/findings/0001"]),
        0,
    );
    assert_eq!(mode(), before);
}
