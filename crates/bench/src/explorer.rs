//! The explorer of fault searches alone, and the seeded fault of `examples/faults-pbft`.

use anyhow::{Context, Result, ensure};
use everett_faultspace::search::SEARCHES;
use everett_faultspace::{Guided, Numbers, Space};
use serde_json::Value;
use std::fmt::Write;
use std::process::Command;

use crate::{Bench, times};

/// The space of AFEX for PBFT.
const SPACE: &str =
    "mask : [0,4095] gray clients : [10,250] step 10 malicious : { client, primary };";
/// Number of scenarios that each search proposes.
const PROPOSED: u64 = 200_000;
/// Scenarios a second of AFEX's explorer.
const PAPER: u64 = 8_500;

/// Number of seeds of searches for the timer.
const SEEDS: u64 = 10;
/// Runs of each of them.
const RUNS: u64 = 600;
/// The impact if no correct client is served: both latency and throughput are as bad as they count.
const WORST: f64 = 1999.0;

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
        std::fs::write(folder.join("search.toml"), search)?;
        writeln!(
            text,
            "The single view-change timer of PBFT, {RUNS} runs, mean of {SEEDS} seeds: the run that first finds a \
             scenario in which no correct client is served, the number of them, and the mean impact of the first 125 \
             runs (Fig. 3.9):\n\n| search | first | found | mean impact |\n|---|---|---|---|"
        )?;
        for name in ["guided", "adaptive", "random"] {
            let (mut first, mut found, mut impact) = (0, 0, 0.0);
            for seed in 1..=SEEDS {
                let summary = self.search_pbft(&folder, name, seed)?;
                let worst = numbers(&summary, |impact| impact >= WORST);
                first += worst.iter().min().copied().unwrap_or(RUNS);
                found += worst.len();
                impact += mean_of_first(&summary, 125);
            }
            let seeds = SEEDS as f64;
            let (first, found) = (first as f64 / seeds, found as f64 / seeds);
            writeln!(
                text,
                "| {name} | {first:.0} | {found:.1} | {:.0} |",
                impact / seeds
            )?;
        }
        writeln!(text)?;
        Ok(())
    }

    fn search_pbft(&self, folder: &std::path::Path, name: &str, seed: u64) -> Result<Value> {
        let out = self.work.join(format!("pbft-{name}-{seed}"));
        let mut command = Command::new(&self.everett);
        command
            .args(["faults", "run"])
            .arg(folder.join("search.toml"));
        command.args(["--search", name, "--seed", &seed.to_string()]);
        command.args(["--runs", &RUNS.to_string(), "--out"]);
        let output = command.arg(&out).output()?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        let summary = std::fs::read(out.join("summary.json")).with_context(said)?;
        std::fs::remove_dir_all(&out)?;
        Ok(serde_json::from_slice(&summary)?)
    }
}

/// Returns the numbers of the runs with such an impact.
fn numbers(summary: &Value, is_meant: impl Fn(f64) -> bool) -> Vec<u64> {
    let results = summary["results"].as_array().map_or(&[][..], Vec::as_slice);
    let meant = results
        .iter()
        .filter(|result| result["impact"].as_f64().is_some_and(&is_meant));
    let numbers = meant.filter_map(|result| result["name"].as_str()?.parse().ok());
    numbers.collect()
}

/// Returns the mean impact of the scenarios that were run first.
fn mean_of_first(summary: &Value, count: usize) -> f64 {
    let results = summary["results"].as_array().map_or(&[][..], Vec::as_slice);
    let first = results.iter().filter(|result| {
        let number = result["name"].as_str().and_then(|name| name.parse().ok());
        number.is_some_and(|number: usize| number <= count)
    });
    let impacts: Vec<f64> = first
        .filter_map(|result| result["impact"].as_f64())
        .collect();
    impacts.iter().sum::<f64>() / impacts.len().max(1) as f64
}
