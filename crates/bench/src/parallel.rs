//! Two workers against one. Two processors of a machine may be threads of one core. Two independent
//! processes show that, so their time is the bound.

use anyhow::{Result, bail};
use std::fmt::Write;
use std::process::Command;

use crate::{Bench, RUNS};

/// Programs with many forks.
const PROGRAMS: [&str; 2] = ["02_branch_tree", "07_expr_parser"];

impl Bench {
    pub fn parallel(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "Two workers, without tests; two processes with one worker each are the bound:\n\n\
             | program | one worker s | two workers s | faster | bound | share of the bound | states moved |\n\
             |---|---|---|---|---|---|---|"
        )?;
        for program in PROGRAMS {
            self.build(program, "-O0")?;
            let (mut one, mut two, mut both) = (f64::MAX, f64::MAX, f64::MAX);
            let (mut paths, mut moved) = ((0, 0), 0);
            for _ in 0..RUNS {
                let options = ["--no-tests", "--no-confirm", "--workers"];
                let alone = self.explore(program, &[&options[..], &["1"]].concat())?;
                let team = self.explore(program, &[&options[..], &["2"]].concat())?;
                let completed =
                    |run: &crate::Measured| run.summary["paths"]["completed"].as_u64().unwrap_or(0);
                paths = (completed(&alone), completed(&team));
                moved = team.summary["states_moved"].as_u64().unwrap_or(0);
                (one, two) = (one.min(alone.seconds), two.min(team.seconds));
                both = both.min(self.two_at_once(program)?);
            }
            if paths.0 != paths.1 {
                bail!("{program}: {paths:?} paths");
            }
            let (faster, bound) = (one / two, 2.0 * one / both);
            writeln!(
                text,
                "| {program} | {one:.2} | {two:.2} | {faster:.2} | {bound:.2} | {:.0} % | {moved} |",
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
