//! Native worlds: the same run every time, and nothing of the machine within reach.

mod common;

use common::{build, everett, expect, folder, text};

/// Processes, threads, sockets, signals and time.
const WORLD: &str = include_str!("native/world.c");

#[test]
fn one_trace_gives_one_log_of_events() {
    let folder = folder("native-same");
    build(&folder, "world", WORLD, &["-g"]);
    let mut run = everett(&folder);
    run.args(["run", "--out", "out", "--all-tests", "--no-confirm"]);
    run.args([
        "--scheduler",
        "random:7",
        "--preempt",
        "syscalls",
        "./world",
    ]);
    expect(&mut run, 0);
    let output = expect(everett(&folder).args(["replay", "--times", "20", "out"]), 0);
    let said = text(&output);
    assert!(said.contains("20 runs, 0 with another log"), "{said}");
    assert!(said.contains("1 of 1 traces confirmed"), "{said}");
    // A log of a handful of events would prove nothing.
    let events = said.split("which has ").nth(1).expect("a count of events");
    let events: u32 = events
        .split(' ')
        .next()
        .and_then(|count| count.parse().ok())
        .expect("a number");
    assert!(events > 1000, "{said}");
}
