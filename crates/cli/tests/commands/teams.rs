//! Results of several workers on one machine and in a cluster: lists are in the order of their
//! contents, and the summary has the figures of the workers.

use crate::cluster::{Trouble, simulate, submitted};
use crate::common::{build, check_weights, count, everett, expect, folder, summary};
use everett::{RunSpec, Session, Silent};
use everett_cluster::{SharedMemory, results};
use serde_json::{Value, json};
use std::path::Path;

const FINDINGS: i32 = 1;

/// A program all of whose paths end in findings, at several locations.
pub(crate) const FAILING: &str = r#"
#include <everett.h>
#include <stdlib.h>
int main(void) {
  unsigned char b[6];
  unsigned n = 0;
  everett_make_symbolic(b, sizeof b, "b");
  for (int i = 0; i < 6; i++)
    if (b[i] > 'a' + i) n |= 1u << i;
  volatile unsigned zero = 0;
  if (n % 3 == 2) return 1 / zero;
  if (n % 3 == 1) *(volatile char *)0 = 1;
  abort();
}
"#;
const PATHS: usize = 64;

fn run(folder: &Path, out: &str, flags: &[&str]) -> Value {
    let mut run = everett(folder);
    run.args(["run", "--no-confirm", "--batch", "50", "--out", out]);
    expect(run.args(flags).arg("./failing"), FINDINGS);
    let summary = summary(&folder.join(out));
    check_weights(&summary);
    assert_eq!(summary["complete"], true);
    summary
}

/// Returns the findings of a summary without what depends on the order of the search: the numbers
/// of their folders.
fn findings(summary: &Value) -> Vec<Value> {
    let mut findings = summary["findings"].as_array().expect("a list").clone();
    for finding in &mut findings {
        finding.as_object_mut().expect("an object").remove("dir");
    }
    findings
}

#[test]
fn findings_are_listed_by_content() {
    let folder = folder("teams-order");
    build(&folder, "failing", FAILING, &[]);
    let all = ["--all-findings", "--no-shrink"];
    let one = findings(&run(&folder, "one", &all));
    assert_eq!(one.len(), PATHS);
    let order = |finding: &Value| {
        let line = finding["line"].as_u64();
        (
            finding["kind"].to_string(),
            line,
            finding["digest"].to_string(),
        )
    };
    assert!(one.is_sorted_by_key(order), "{one:#?}");
    for (number, flags) in [
        &["--workers", "2"][..],
        &["--workers", "4"],
        &["--search", "bfs"],
    ]
    .iter()
    .enumerate()
    {
        let other = run(
            &folder,
            &format!("by-{number}"),
            &[flags, &all[..]].concat(),
        );
        assert_eq!(findings(&other), one, "{flags:?}");
    }
}

#[test]
fn the_summary_has_the_figures_of_workers() {
    let folder = folder("teams-figures");
    build(&folder, "failing", FAILING, &[]);
    let team = run(&folder, "team", &["--workers", "3"])["team"].clone();
    assert_eq!(count(&team, "/workers"), 3);
    let idle = team["idle_seconds"].as_array().expect("a list");
    assert_eq!(idle.len(), 3);
    assert!(idle.iter().all(|one| one.as_f64() >= Some(0.0)), "{team}");
    let share = team["replay_share"].as_f64().expect("a share");
    // Jobs move if workers are fast enough; states that move are replayed.
    assert_eq!(share > 0.0, count(&team, "/jobs_moved") > 0, "{team}");
    let alone = json!({"workers": 1, "jobs_moved": 0, "idle_seconds": [0.0], "replay_share": 0.0});
    for (out, flags) in [
        ("alone", &["--workers", "1"][..]),
        ("same", &["--deterministic", "--workers", "3"]),
    ] {
        assert_eq!(run(&folder, out, flags)["team"], alone, "{out}");
    }
}

/// A run that reports each path with a finding has a test of each, wherever it is explored.
#[test]
fn all_findings_have_tests_on_a_cluster_too() {
    let folder = folder("teams-tests");
    build(&folder, "failing", FAILING, &[]);
    let here = run(&folder, "here", &["--all-findings", "--no-shrink"]);
    assert_eq!(count(&here, "/tests"), PATHS as u64);
    for seed in [1, 2] {
        let shared = SharedMemory::new(1000);
        let spec = RunSpec {
            all_findings: true,
            no_shrink: true,
            batch: Some(50),
            no_confirm: true,
            out: Some(folder.join(format!("by-{seed}"))),
            ..RunSpec::new([folder.join("failing")])
        };
        let (run, dir) = submitted(&mut shared.connect(), &spec);
        let (status, _) = simulate(&shared, &run, 2, seed, Trouble::default());
        assert!(status.is_complete() && status.jobs > 10);
        let done = results(&mut shared.connect(), &dir, &Session::new(), &mut Silent);
        assert!(done.expect("results").summary.complete);
        let there = summary(&dir);
        assert_eq!(there["tests"], here["tests"]);
        assert_eq!(findings(&there), findings(&here), "seed {seed}");
        // The results of a cluster are named in the order of the list.
        let names = there["findings"].as_array().expect("a list").iter();
        assert!(names.map(|one| one["dir"].as_str()).is_sorted());
    }
}
