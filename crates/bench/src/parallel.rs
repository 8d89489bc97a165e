//! Two workers against one. Two processors of a machine may be threads of one core. Two independent
//! processes show that, so their time is the bound.

use anyhow::{Result, bail};
use std::fmt::Write;
use std::process::Command;

use crate::{Bench, RUNS};

/// Programs with many forks, with sizes at which they run for some seconds.
const PROGRAMS: [(&str, &str); 4] = [
    ("02_branch_tree", "-DBITS=19"),
    ("03_branch_tree_dep", "-DBITS=16"),
    ("07_expr_parser", "-DSIZE=8"),
    ("10_linked_list", "-DN=8"),
];

impl Bench {
    pub fn parallel(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "Two workers, without tests; two processes with one worker each are the bound:\n\n\
             | program | paths | one, s | two, s | faster | bound | share of the bound | moved | replay |\n\
             |---|---|---|---|---|---|---|---|---|"
        )?;
        for (program, size) in PROGRAMS {
            self.build(program, size)?;
            let (mut one, mut two, mut both) = (f64::MAX, f64::MAX, f64::MAX);
            let (mut paths, mut moved, mut replay) = ((0, 0), 0, 0.0);
            for _ in 0..RUNS {
                let options = ["--no-tests", "--no-confirm", "--workers"];
                let alone = self.explore(program, &[&options[..], &["1"]].concat())?;
                let team = self.explore(program, &[&options[..], &["2"]].concat())?;
                let completed =
                    |run: &crate::Measured| run.summary["paths"]["completed"].as_u64().unwrap_or(0);
                paths = (completed(&alone), completed(&team));
                moved = team.summary["states_moved"].as_u64().unwrap_or(0);
                let count = |name: &str| team.summary[name].as_f64().unwrap_or(0.0);
                let executed = count("instructions") + count("instructions_replayed");
                replay = 100.0 * count("instructions_replayed") / executed;
                (one, two) = (one.min(alone.seconds), two.min(team.seconds));
                both = both.min(self.two_at_once(program)?);
            }
            if paths.0 != paths.1 {
                bail!("{program}: {paths:?} paths");
            }
            let (faster, bound) = (one / two, 2.0 * one / both);
            writeln!(
                text,
                "| {program} {size} | {} | {one:.2} | {two:.2} | {faster:.2} | {bound:.2} | {:.0} % | {moved} | \
                 {replay:.1} % |",
                paths.1,
                100.0 * faster / bound
            )?;
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
