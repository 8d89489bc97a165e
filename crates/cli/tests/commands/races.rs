//! Races of native threads: random schedules find them, and their traces reproduce them.

use crate::common::{build, everett, expect, folder, summary, text};
use std::path::Path;

/// Four races, and the same programs without them.
const RACES: &str = include_str!("../native/races.c");
const NAMES: [&str; 4] = ["counter", "lazy", "balance", "stack"];

/// Random schedules in which each race is found.
const ENOUGH: &str = "200";
/// Random schedules of a program without a race, which is also tried at another level of optimisation.
const SOME: &str = "50";

/// Runs one of the programs with random schedules. Returns its output.
fn schedules(folder: &Path, name: &str, where_to: &str, runs: &str, code: i32) -> String {
    let mut run = everett(folder);
    run.args(["native", "--runs", runs, "--preempt", where_to]);
    run.args(["--out", &format!("{name}-{where_to}"), "./races", name]);
    text(&expect(&mut run, code))
}

fn found_and_replayed(level: &str) {
    let folder = folder(&format!("races{level}"));
    build(&folder, "races", RACES, &["-g", level]);
    for name in NAMES {
        let said = schedules(&folder, name, "memory", ENOUGH, 1);
        assert!(said.contains(" 1 finding,"), "{level} {name}: {said}");
        let finding = format!("{name}-memory/findings/0001");
        let said = text(&expect(everett(&folder).args(["replay", &finding]), 0));
        assert!(said.contains("1 of 1 traces confirmed"), "{said}");
        let runs = if level == "-O1" { ENOUGH } else { SOME };
        schedules(&folder, &format!("{name}-ok"), "memory", runs, 0);
    }
}

#[test]
fn random_schedules_find_races_without_optimisation() {
    found_and_replayed("-O0");
}

#[test]
fn random_schedules_find_races_with_some_optimisation() {
    found_and_replayed("-O1");
}

#[test]
fn random_schedules_find_races_with_all_optimisation() {
    found_and_replayed("-O2");
}

#[test]
fn the_seed_says_which_schedule_runs() {
    let folder = folder("races-seeds");
    build(&folder, "races", RACES, &["-g"]);
    schedules(&folder, "stack", "atomics", ENOUGH, 1);
    let seen = summary(&folder.join("stack-atomics"));
    let ends = seen["ends"].as_array().expect("ends");
    let found = ends.iter().find(|end| end["finding"].is_string());
    let seed = found.expect("a finding")["seed"].to_string();
    // The seed alone reproduces the run, and without change points no race is found.
    for (depth, code) in [("3", 1), ("1", 0)] {
        let mut run = everett(&folder);
        run.args(["native", "--runs", "1", "--seed", &seed, "--depth", depth]);
        run.args(["--preempt", "atomics", "--out", &format!("depth{depth}")]);
        expect(run.args(["./races", "stack"]), code);
    }
}
