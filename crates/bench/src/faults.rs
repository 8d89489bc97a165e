//! Fault searches on `examples/faults-coreutils`, beside the figures of AFEX: failing scenarios that
//! a number of runs finds, axes whose values are in no order, and failures of allocations. The
//! explorer alone, PBFT and a real server follow.

use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::Bench;

/// Number of seeds of each search.
const SEEDS: u64 = 20;
/// Number of seeds of searches with an axis in no order.
const SHUFFLED_SEEDS: u64 = 10;
/// Number of seeds of searches that run every scenario.
const WHOLE_SEEDS: u64 = 2;
/// Number of runs of each search, as in the paper.
const RUNS: u64 = 250;
/// Number of scenarios: 29 tests, 19 functions, no call, the first or the second.
const SCENARIOS: u64 = 1653;
/// Failing scenarios that AFEX found: guided, at random, and of all.
const PAPER: (u64, u64, u64) = (74, 32, 205);
/// Runs until AFEX knew all failures of allocations: guided; without functions that are never
/// called; with a model of the environment; at random; the same without functions never called.
const PAPER_MEMORY: (u64, u64, u64, u64, u64) = (417, 213, 103, 836, 391);
/// Functions that allocate.
const ALLOCATORS: [&str; 4] = ["malloc", "calloc", "realloc", "strdup"];

impl Bench {
    pub fn faults(&self, text: &mut String) -> Result<()> {
        let file = self.root.join("examples/faults-coreutils/search.toml");
        let search = std::fs::read_to_string(&file)?;
        writeln!(
            text,
            "Failing scenarios of 29 tests of `ln` and `mv` that {RUNS} of {SCENARIOS} runs find, {SEEDS} seeds:\n\n\
             | search | mean | deviation | times random | paper |\n|---|---|---|---|---|"
        )?;
        let mut found = Vec::new();
        for name in ["guided", "adaptive", "random"] {
            found.push(self.failures_of(&search, name, SEEDS)?);
        }
        let random = found[2].0;
        let papers = [PAPER.0.to_string(), "-".to_owned(), PAPER.1.to_string()];
        for ((name, (mean, deviation)), paper) in ["guided", "adaptive", "random"]
            .iter()
            .zip(&found)
            .zip(papers)
        {
            let times = mean / random;
            writeln!(
                text,
                "| {name} | {mean:.1} | {deviation:.1} | {times:.2} | {paper} |"
            )?;
        }
        let whole = self.search_faults(&search, "exhaustive", 1, SCENARIOS)?;
        let all = failures(&whole).len();
        writeln!(text, "| all scenarios | {all} | | | {} |\n", PAPER.2)?;
        self.shuffled(&search, found[0].0, random, text)?;
        self.allocations(&search, &without_uncalled(&search, &whole)?, text)?;
        self.explorer_alone(text)?;
        self.view_change_timer(text)?;
        self.recovery_code(text)?;
        self.replicated_service(text)?;
        self.fault_rates(text)?;
        self.fault_servers(text)
    }

    /// Returns mean and deviation of the failures that a search finds.
    fn failures_of(&self, search: &str, name: &str, seeds: u64) -> Result<(f64, f64)> {
        let mut counts = Vec::new();
        for seed in 1..=seeds {
            let summary = self.search_faults(search, name, seed, RUNS)?;
            counts.push(failures(&summary).len() as f64);
        }
        Ok(mean_and_deviation(&counts))
    }

    /// Runs a search, and returns its summary.
    fn search_faults(&self, search: &str, name: &str, seed: u64, runs: u64) -> Result<Value> {
        let folder = self.work.join("faults");
        std::fs::create_dir_all(&folder)?;
        let script = self.root.join("examples/faults-coreutils/run");
        std::fs::copy(script, folder.join("run"))?;
        std::fs::write(folder.join("search.toml"), search)?;
        let out = self.work.join(format!("out-{}", self.number()));
        let mut command = Command::new(&self.everett);
        command
            .args(["faults", "run"])
            .arg(folder.join("search.toml"));
        command.args(["--search", name, "--seed", &seed.to_string()]);
        command
            .args(["--runs", &runs.to_string(), "--out"])
            .arg(&out);
        let output = command.output()?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        let summary = std::fs::read(out.join("summary.json")).with_context(said)?;
        remove(&out)?;
        Ok(serde_json::from_slice(&summary)?)
    }

    /// Table 3.4: the values of one axis at a time are in no order.
    fn shuffled(&self, search: &str, guided: f64, random: f64, text: &mut String) -> Result<()> {
        text.push_str(
            "Guided, with the values of one axis in no order (Table 3.4: the search is worse for it):\n\n\
             | axis | mean | deviation |\n|---|---|---|\n",
        );
        writeln!(text, "| none | {guided:.1} | |")?;
        for axis in ["test", "function", "callNumber"] {
            let (mean, deviation) =
                self.failures_of(&with_shuffled(search, axis)?, "guided", SHUFFLED_SEEDS)?;
            writeln!(text, "| {axis} | {mean:.1} | {deviation:.1} |")?;
        }
        writeln!(text, "| at random | {random:.1} | |\n")?;
        Ok(())
    }

    /// Runs until all failures of allocations are known.
    fn allocations(&self, search: &str, trimmed: &str, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "Runs until all failures of allocations are known, mean of {WHOLE_SEEDS} seeds. Trimmed: without functions \
             that no test calls. Environment: allocations fail with a likelihood of 0.8, others with 0.1:\n\n\
             | search | runs | paper |\n|---|---|---|"
        )?;
        let likely = "\n[relevance]\nmemory = 0.8\ndefault = 0.1\n";
        let rows = [
            ("guided", search.to_owned(), "guided", PAPER_MEMORY.0),
            (
                "guided, trimmed",
                trimmed.to_owned(),
                "guided",
                PAPER_MEMORY.1,
            ),
            (
                "guided, trimmed, environment",
                format!("{trimmed}{likely}"),
                "guided",
                PAPER_MEMORY.2,
            ),
            ("random", search.to_owned(), "random", PAPER_MEMORY.3),
            (
                "random, trimmed",
                trimmed.to_owned(),
                "random",
                PAPER_MEMORY.4,
            ),
        ];
        for (name, search, algorithm, paper) in rows {
            let mut runs = Vec::new();
            for seed in 1..=WHOLE_SEEDS {
                let summary = self.search_faults(&search, algorithm, seed, SCENARIOS)?;
                runs.push(last_allocation(&summary) as f64);
            }
            let (mean, _) = mean_and_deviation(&runs);
            writeln!(text, "| {name} | {mean:.0} | {paper} |")?;
        }
        Ok(())
    }
}

/// Removes the results of a search.
fn remove(out: &Path) -> Result<()> {
    std::fs::remove_dir_all(out).with_context(|| format!("cannot remove {}", out.display()))
}

/// Returns the failing scenarios: when each was run, and its text.
fn failures(summary: &Value) -> Vec<(u64, String)> {
    let results = summary["results"].as_array().map_or(&[][..], Vec::as_slice);
    let failing = results.iter().filter(|result| {
        let outcome = result["outcome"].as_str().unwrap_or_default();
        matches!(outcome, "failed" | "crashed" | "hung" | "limit")
    });
    let named = failing.filter_map(|result| {
        let number = result["name"].as_str()?.parse().ok()?;
        Some((number, result["scenario"].as_str()?.to_owned()))
    });
    named.collect()
}

/// Returns the number of the run that found the last failure of an allocation.
fn last_allocation(summary: &Value) -> u64 {
    let failing = failures(summary).into_iter();
    let is_allocation = |scenario: &str| {
        let mut words = scenario.split(' ').skip_while(|word| *word != "function");
        words.nth(1).is_some_and(|name| ALLOCATORS.contains(&name))
    };
    let numbers =
        failing.filter_map(|(number, scenario)| is_allocation(&scenario).then_some(number));
    numbers.max().unwrap_or(0)
}

/// An axis of a search: where its values are in the text, and the values.
fn axis_of(search: &str, axis: &str) -> Result<(std::ops::Range<usize>, Vec<String>)> {
    let label = format!("{axis} :");
    let begin = search.find(&label).context("no such axis")? + label.len();
    let end = search[begin..]
        .find(['}', ']'])
        .context("an axis has no end")?
        + begin
        + 1;
    let inner = search[begin..end].trim();
    let values = match inner.strip_prefix('[') {
        Some(range) => {
            let range = range.trim_end_matches(']').split_once(',');
            let (first, last) = range.context("a range has two ends")?;
            let (first, last): (u64, u64) = (first.trim().parse()?, last.trim().parse()?);
            (first..=last).map(|value| value.to_string()).collect()
        }
        None => {
            let list = inner.trim_start_matches('{').trim_end_matches('}');
            list.split(',')
                .map(|value| value.trim().to_owned())
                .collect()
        }
    };
    Ok((begin..end, values))
}

fn with_values(search: &str, place: &std::ops::Range<usize>, values: &[String]) -> String {
    let (before, after) = (&search[..place.start], &search[place.end..]);
    format!("{before} {{ {} }}{after}", values.join(", "))
}

/// Returns a search in which the values of an axis are in another, fixed order.
fn with_shuffled(search: &str, axis: &str) -> Result<String> {
    let (place, values) = axis_of(search, axis)?;
    // A step that has no common divisor with the number of values visits each of them once.
    let count = values.len();
    let step = (count / 2 + 1..).find(|step| divisor(*step, count) == 1);
    let step = step.unwrap_or(1);
    let order = (0..count).map(|at| values[at * step % count].clone());
    Ok(with_values(search, &place, &order.collect::<Vec<_>>()))
}

/// Returns a search without the functions that no test calls, from a run of all scenarios.
fn without_uncalled(search: &str, whole: &Value) -> Result<String> {
    let (place, mut values) = axis_of(search, "function")?;
    let results = whole["results"].as_array().map_or(&[][..], Vec::as_slice);
    values.retain(|function| {
        let text = format!("function {function} ");
        let mut results = results.iter();
        results.any(|result| {
            let scenario = result["scenario"].as_str().unwrap_or_default();
            result["injected"] == true && scenario.contains(&text)
        })
    });
    Ok(with_values(search, &place, &values))
}

fn divisor(one: usize, two: usize) -> usize {
    match two {
        0 => one,
        _ => divisor(two, one % two),
    }
}

pub(crate) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / count;
    (mean, variance.sqrt())
}
