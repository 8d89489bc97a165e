//! Compares the interpreter with native code on random programs, and the exploration with all
//! inputs.

use crate::common::branching::{DOMAIN, branching_file};
use crate::common::generator::random_file;
use crate::common::{build, check_weights, everett, expect, folder, summary, text, traces};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Number of functions without optimisation, and of those that a compiler optimises, which takes longer.
const FUNCTIONS: usize = 120;
const OPTIMISED: usize = 60;

/// Builds a file of random functions, runs it natively and on the model, and compares the lines.
fn compare(seed: u64, level: &str, functions: usize) {
    let folder = folder(&format!("random-{seed}"));
    let flags: Vec<&str> = level.split(' ').collect();
    build(&folder, "program", &random_file(seed, functions), &flags);
    let native = expect(Command::new("./program").current_dir(&folder), 0);
    let model = expect(everett(&folder).args(["exec", "./program"]), 0);
    let (native, model) = (text(&native), text(&model));
    assert_eq!(native.lines().count(), 3 * functions, "{native}");
    let mut pairs = native.lines().zip(model.lines());
    if let Some((here, there)) = pairs.find(|(here, there)| here != there) {
        panic!("seed {seed}, {level}: natively `{here}`, on the model `{there}`");
    }
    assert_eq!(native.len(), model.len(), "seed {seed}, {level}");
}

/// Returns the seeds. EVERETT_RANDOM_SEEDS=100 requests more.
fn seeds(least: u64) -> std::ops::RangeInclusive<u64> {
    let asked = std::env::var("EVERETT_RANDOM_SEEDS");
    1..=asked.map_or(least, |count| count.parse().expect("a number"))
}

#[test]
fn random_functions_give_what_they_give_natively_unoptimised() {
    for seed in seeds(5) {
        compare(seed, "-O0", FUNCTIONS);
    }
}

#[test]
fn random_functions_give_what_they_give_natively_optimised() {
    for seed in seeds(1) {
        compare(seed + 1000, "-O2", OPTIMISED);
    }
    if std::arch::is_x86_feature_detected!("avx2") {
        compare(503, "-O2 -march=haswell", OPTIMISED);
    }
}

/// Returns what a function returns natively for all inputs.
fn brute_force(folder: &Path, which: &str) -> BTreeSet<i64> {
    let output = expect(
        Command::new("./program")
            .args([which, "all"])
            .current_dir(folder),
        0,
    );
    let lines = text(&output);
    assert_eq!(lines.lines().count() as u32, DOMAIN.pow(4));
    lines
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect()
}

/// Explores one function: every test ends natively as recorded, and no exit code is missing or
/// wrong.
fn explore(folder: &Path, which: &str, label: &str) {
    let out = folder.join(format!("out-{which}"));
    let mut run = everett(folder);
    run.args(["run", "--quiet", "--all-tests", "--out"])
        .arg(&out);
    expect(run.args(["./program", which]), 0);
    let summary = summary(&out);
    assert_eq!(summary["complete"], true, "{label}: {summary}");
    check_weights(&summary);
    let mut codes = BTreeSet::new();
    for (path, trace) in traces(&out) {
        let code = trace["end"]["exit"].as_i64().expect("paths end in exits");
        codes.insert(code);
        let mut native = Command::new("./program");
        native.arg(which).current_dir(folder);
        expect(
            native.env("EVERETT_TEST", path.with_extension("ktest")),
            code as i32,
        );
    }
    assert_eq!(codes, brute_force(folder, which), "{label}");
}

fn explore_all(seed: u64, level: &str) {
    const COUNT: usize = 40;
    let folder = folder(&format!("branching-{seed}{level}"));
    build(&folder, "program", &branching_file(seed, COUNT), &[level]);
    for which in 0..COUNT {
        explore(
            &folder,
            &which.to_string(),
            &format!("seed {seed}, {level}, g{which}"),
        );
    }
}

#[test]
fn exploring_random_functions_finds_every_end_unoptimised() {
    for seed in seeds(1) {
        explore_all(seed, "-O0");
    }
}

#[test]
fn exploring_random_functions_finds_every_end_optimised() {
    for seed in seeds(1) {
        explore_all(seed + 100, "-O2");
    }
}
