//! The explorer of fault searches alone, and the seeded faults of `examples/faults-pbft` and
//! `examples/faults-recovery`.

use anyhow::{Context, Result, ensure};
use everett_faultspace::search::SEARCHES;
use everett_faultspace::{Guided, Numbers, Space};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::faults::mean_and_deviation;
use crate::{Bench, times};

/// The space of AFEX for PBFT.
const SPACE: &str =
    "mask : [0,4095] gray clients : [10,250] step 10 malicious : { client, primary };";
/// Number of scenarios that each search proposes.
const PROPOSED: u64 = 200_000;
/// Scenarios a second of AFEX's explorer.
const PAPER: u64 = 8_500;

/// Number of seeds of searches for seeded faults.
const SEEDS: u64 = 20;
/// Maximum number of runs of a search for the timer.
const RUNS: u64 = 3000;
/// The impact from which 200 correct clients or more are never served.
const WORST: u64 = 400;
/// Runs whose mean impact is measured, as in Fig. 3.9 of AFEX, and the number of seeds.
const FIRST_RUNS: u64 = 125;
const FIRST_SEEDS: u64 = 5;

/// Returns the processor time of this process.
fn processor() -> f64 {
    times("self", [11, 12])
}

impl Bench {
    /// Scenarios a second that searches propose and learn, without any test, and without feedback.
    pub fn explorer_alone(&self, text: &mut String) -> Result<()> {
        let space = Space::parse(SPACE).context("the space")?;
        writeln!(
            text,
            "The explorer alone, {PROPOSED} of {} scenarios, without feedback, by processor time:\n\n\
             | search | scenarios a second | AFEX |\n|---|---|---|",
            space.size()
        )?;
        for row in SEARCHES {
            let mut search = (row.new)(&space, &Guided::default(), Numbers::new(1));
            let begun = processor();
            let mut proposed = 0u64;
            while proposed < PROPOSED
                && let Some(point) = search.next(&space)
            {
                // One scenario in four has impact.
                let is_harmful = point.indices.iter().all(|index| index % 4 < 2);
                let fitness = if is_harmful { 1.0 } else { 0.0 };
                search.learn(&space, &point, fitness);
                proposed += 1;
            }
            let seconds = (processor() - begun).max(0.01);
            let paper = if row.name == "guided" {
                PAPER.to_string()
            } else {
                "-".to_owned()
            };
            let rate = proposed as f64 / seconds;
            writeln!(text, "| {} | {rate:.0} | {paper} |", row.name)?;
        }
        writeln!(text)?;
        Ok(())
    }

    /// Runs until a search finds the single view-change timer at its worst.
    pub fn view_change_timer(&self, text: &mut String) -> Result<()> {
        let from = self.root.join("examples/faults-pbft");
        let folder = self.work.join("pbft");
        std::fs::create_dir_all(&folder)?;
        let built = Command::new("cc")
            .args(["-O2", "-o"])
            .arg(folder.join("pbft"))
            .arg(from.join("pbft.c"))
            .status()?;
        ensure!(built.success(), "the model of PBFT cannot be built");
        let search = std::fs::read_to_string(from.join("search.toml"))?;
        std::fs::write(folder.join("search.toml"), &search)?;
        let until = format!("{search}\n[stop]\nimpact = {WORST}\n");
        std::fs::write(folder.join("until.toml"), until)?;
        writeln!(
            text,
            "The single view-change timer of PBFT: runs until a search finds a scenario in which none of 200 correct \
             clients or more is ever served (at most {RUNS}), mean and deviation of {SEEDS} seeds, and the mean impact of the first {FIRST_RUNS} \
             runs of {FIRST_SEEDS} seeds (Fig. 3.9):\n\n\
             | search | runs | deviation | mean impact |\n|---|---|---|---|"
        )?;
        for name in ["guided", "adaptive", "random"] {
            let file = folder.join("until.toml");
            let (mean, deviation) = self.runs_until_stopped(&file, name, RUNS)?;
            let file = folder.join("search.toml");
            let mut impact = 0.0;
            for seed in 1..=FIRST_SEEDS {
                impact += mean_impact(&self.search_for(&file, name, seed, FIRST_RUNS)?);
            }
            let impact = impact / FIRST_SEEDS as f64;
            writeln!(
                text,
                "| {name} | {mean:.0} | {deviation:.0} | {impact:.0} |"
            )?;
        }
        writeln!(text)?;
        Ok(())
    }

    /// Runs until a search finds the seeded faults of `examples/faults-recovery`.
    pub fn recovery_code(&self, text: &mut String) -> Result<()> {
        let from = self.root.join("examples/faults-recovery");
        let folder = self.work.join("recovery");
        std::fs::create_dir_all(&folder)?;
        writeln!(
            text,
            "Faults in recovery code, in worlds: runs until the crash is found, mean and deviation of {SEEDS} seeds:\n\n\
             | fault | search | runs | deviation |\n|---|---|---|---|"
        )?;
        for (program, what) in [
            ("table", "double unlock (Fig. 3.6)"),
            ("settings", "unchecked strdup (Fig. 3.7)"),
        ] {
            let search = format!("find-{program}.toml");
            for file in [&format!("{program}.c"), &format!("{program}.toml"), &search] {
                std::fs::copy(from.join(file), folder.join(file))?;
            }
            self.build_world(&folder, &[program])?;
            for name in ["guided", "adaptive", "random"] {
                let file = folder.join(&search);
                let (mean, deviation) = self.runs_until_stopped(&file, name, RUNS)?;
                writeln!(text, "| {what} | {name} | {mean:.1} | {deviation:.1} |")?;
            }
        }
        writeln!(text)?;
        Ok(())
    }

    /// Returns mean and deviation of the runs of a search until it reaches its target.
    pub(crate) fn runs_until_stopped(
        &self,
        file: &Path,
        name: &str,
        most: u64,
    ) -> Result<(f64, f64)> {
        let mut runs = Vec::new();
        for seed in 1..=SEEDS {
            let summary = self.search_for(file, name, seed, most)?;
            runs.push(summary["scenarios_run"].as_f64().context("no runs")?);
        }
        Ok(mean_and_deviation(&runs))
    }

    fn search_for(&self, file: &Path, name: &str, seed: u64, runs: u64) -> Result<Value> {
        let out = self.work.join(format!("seeded-{name}-{seed}"));
        let mut command = Command::new(&self.everett);
        command.args(["faults", "run"]).arg(file);
        command.args(["--search", name, "--seed", &seed.to_string()]);
        command.args(["--runs", &runs.to_string(), "--out"]);
        let output = command.arg(&out).output()?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        let summary = std::fs::read(out.join("summary.json")).with_context(said)?;
        std::fs::remove_dir_all(&out)?;
        Ok(serde_json::from_slice(&summary)?)
    }
}

/// Returns the mean impact of all scenarios that were run.
fn mean_impact(summary: &Value) -> f64 {
    let results = summary["results"].as_array().map_or(&[][..], Vec::as_slice);
    let impacts = results
        .iter()
        .filter_map(|result| result["impact"].as_f64());
    impacts.sum::<f64>() / results.len().max(1) as f64
}
