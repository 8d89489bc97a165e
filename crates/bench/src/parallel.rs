//! Two workers against one. Two processors of a machine may be threads of one core. Two independent
//! processes show that, so their time is the bound.

use anyhow::{Result, bail};
use serde_json::Value;
use std::fmt::Write;
use std::process::Command;

use crate::worlds::grid;
use crate::{Bench, Measured, RUNS};

/// Programs with many forks, with sizes at which they run for some seconds.
const PROGRAMS: [(&str, &str); 4] = [
    ("02_branch_tree", "-DBITS=19"),
    ("03_branch_tree_dep", "-DBITS=16"),
    ("07_expr_parser", "-DSIZE=8"),
    ("10_linked_list", "-DN=8"),
];

/// An example, its scenario, the state mapping, and settings.
type Scenario = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

/// The example whose scenarios are generated.
const GRID: &str = "sde-grid";

/// Scenarios in which hosts share many states, few, or none.
const SCENARIOS: [Scenario; 9] = [
    (GRID, "7x7.toml", "sds", &[]),
    (GRID, "18x18.toml", "sds", &[]),
    (GRID, "5x5.toml", "cow", &[]),
    (GRID, "12x12.toml", "cow", &[]),
    (GRID, "3x3.toml", "cob", &[]),
    (
        "echo",
        "losses.toml",
        "sds",
        &[
            "host.client.count=5",
            "fault.lost.most=3",
            "fault.lost.per=causal",
        ],
    ),
    (
        "echo",
        "losses.toml",
        "cob",
        &[
            "host.client.count=3",
            "fault.lost.most=3",
            "fault.lost.per=causal",
        ],
    ),
    ("raft", "fixed.toml", "sds", &[]),
    ("raft", "fixed.toml", "cob", &[]),
];

impl Bench {
    pub fn parallel(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "Two workers, without tests; two processes with one worker each are the bound:\n\n\
             | program | paths | one, s | two, s | faster | bound | share of the bound | processor | moved | replay |\n\
             |---|---|---|---|---|---|---|---|---|---|"
        )?;
        for (program, size) in PROGRAMS {
            self.build(program, size)?;
            let (mut one, mut two, mut both) = (f64::MAX, f64::MAX, f64::MAX);
            let mut processor = (f64::MAX, f64::MAX);
            let (mut paths, mut moved, mut replay) = ((0, 0), 0, 0.0);
            for _ in 0..RUNS {
                let options = ["--no-tests", "--no-confirm", "--workers"];
                let alone = self.explore(program, &[&options[..], &["1"]].concat())?;
                let team = self.explore(program, &[&options[..], &["2"]].concat())?;
                let completed =
                    |run: &Measured| run.summary["paths"]["completed"].as_u64().unwrap_or(0);
                paths = (completed(&alone), completed(&team));
                moved = team.summary["states_moved"].as_u64().unwrap_or(0);
                let count = |name: &str| team.summary[name].as_f64().unwrap_or(0.0);
                let executed = count("instructions") + count("instructions_replayed");
                replay = 100.0 * count("instructions_replayed") / executed;
                (one, two) = (one.min(alone.seconds), two.min(team.seconds));
                processor = (
                    processor.0.min(alone.processor),
                    processor.1.min(team.processor),
                );
                both = both.min(self.two_at_once(program)?);
            }
            if paths.0 != paths.1 {
                bail!("{program}: {paths:?} paths");
            }
            let (faster, bound) = (one / two, 2.0 * one / both);
            writeln!(
                text,
                "| {program} {size} | {} | {one:.2} | {two:.2} | {faster:.2} | {bound:.2} | {:.0} % | {:.2}, {:.2} | \
                 {moved} | {replay:.1} % |",
                paths.1,
                100.0 * faster / bound,
                processor.0,
                processor.1,
            )?;
        }
        self.worlds_of_two(text)
    }

    /// Compares two workers with one on scenarios.
    fn worlds_of_two(&self, text: &mut String) -> Result<()> {
        text.push_str(
            "\nWorlds: the same; a state that is in dstates of both workers is explored by each of them, so that there \
             are more.\n\n\
             | scenario | mapping | worlds | one, s | two, s | faster | processor | states | moved | jobs | idle, s |\n\
             |---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for (example, scenario, mapping, settings) in SCENARIOS {
            let folder = self.example(example)?;
            if let Some((size, _)) = scenario.split_once('x').filter(|_| example == GRID) {
                grid(&folder, size.parse()?, "")?;
            }
            let mut best: [Option<Measured>; 2] = [None, None];
            for _ in 0..RUNS {
                for (best, workers) in best.iter_mut().zip(["1", "2"]) {
                    let out = self.work.join(format!("out-{}", self.number()));
                    let mut run = Command::new(&self.everett);
                    run.current_dir(&folder)
                        .args(["run", "--quiet", "--no-tests"]);
                    run.args(["--no-confirm", "--no-shrink", "--mapping", mapping]);
                    run.args(["--workers", workers, "--out"]).arg(&out);
                    for setting in settings {
                        run.args(["--set", setting]);
                    }
                    let run = self.measure(run.arg(scenario), &out)?;
                    if best.as_ref().is_none_or(|best| run.seconds < best.seconds) {
                        *best = Some(run);
                    }
                }
            }
            let [Some(one), Some(two)] = best else {
                bail!("{scenario}: nothing was measured");
            };
            if one.summary["worlds"] != two.summary["worlds"] {
                bail!("{scenario}: other worlds with two workers");
            }
            let idle = two.summary["team"]["idle_seconds"].as_array();
            let idle = idle.into_iter().flatten().filter_map(Value::as_f64);
            let idle: Vec<String> = idle.map(|seconds| format!("{seconds:.2}")).collect();
            let row = format!(
                "| {example}/{scenario} {} | {mapping} | {} | {:.2} | {:.2} | {:.2} | {:.2}, {:.2} | {}, {} | {} | {} | \
                 {} |",
                settings.join(" "),
                two.summary["worlds"],
                one.seconds,
                two.seconds,
                one.seconds / two.seconds,
                one.processor,
                two.processor,
                one.summary["states_total"],
                two.summary["states_total"],
                two.summary["states_moved"],
                two.summary["team"]["jobs_moved"],
                idle.join(", "),
            );
            eprintln!("{row}");
            writeln!(text, "{row}")?;
        }
        Ok(())
    }

    /// Returns the time of two concurrent runs with one worker each, in seconds.
    fn two_at_once(&self, program: &str) -> Result<f64> {
        let start = std::time::Instant::now();
        let mut runs = Vec::new();
        for _ in 0..2 {
            let out = self.work.join(format!("out-{}", self.number()));
            let mut run = Command::new(&self.everett);
            run.args([
                "run",
                "--quiet",
                "--no-tests",
                "--no-confirm",
                "--workers",
                "1",
            ]);
            run.arg("--out").arg(out).arg(self.work.join(program));
            runs.push(run.stdout(std::process::Stdio::null()).spawn()?);
        }
        for mut run in runs {
            run.wait()?;
        }
        Ok(start.elapsed().as_secs_f64())
    }
}
