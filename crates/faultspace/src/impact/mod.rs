//! Impact: one number that measures how much the faults of a scenario hurt in a run. Relevance: how
//! likely the faults are.

mod pattern;

pub use pattern::Pattern;

use std::collections::{BTreeMap, BTreeSet};

use crate::manager::{Ended, Seen};
use crate::results::{Isolation, Outcome};
use crate::settings::Impact;
use crate::space::{Scenario, Value};
use everett_linux::functions;

/// Maximum contribution of a latency or throughput.
const MAX_SLOWDOWN: f64 = 1000.0;

/// The measurements of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    /// The impact without new lines, which a repetition reproduces.
    pub repeatable: f64,
    /// The impact.
    pub impact: f64,
    /// How the run ended.
    pub outcome: Outcome,
    /// The contributions to the impact, for people.
    pub why: Vec<String>,
    /// Lines that no earlier run has covered.
    pub new_lines: Vec<String>,
}

/// Measures a run against the same test without faults, and against the lines that are already
/// covered.
pub fn measure(
    weights: &Impact,
    seen: &Seen,
    without: Option<&Seen>,
    covered: &BTreeSet<String>,
) -> Measured {
    let mut measured = Measured::default();
    if let Some(why) = &seen.start_failure {
        measured.note(weights.exit, format!("start fails: {why}"));
        measured.outcome = Outcome::StartFailed;
    } else {
        of_end(weights, seen, without, &mut measured);
    }
    if let Some(without) = without {
        of_differences(weights, seen, without, &mut measured);
    }
    of_log(weights, seen, &mut measured);
    if let Some(printed) = &seen.measured {
        let number = printed
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && *number >= 0.0);
        measured.why.clear();
        measured.repeatable = number.unwrap_or(0.0);
        measured.why.push(match number {
            Some(number) => format!("the impact script says {number}"),
            None => format!("the impact script says no number: {}", printed.trim()),
        });
    }
    measured.impact = measured.repeatable;
    let new = seen.coverage.iter().filter(|line| !covered.contains(*line));
    measured.new_lines = new.cloned().collect();
    if seen.measured.is_none() && weights.coverage > 0.0 && !measured.new_lines.is_empty() {
        let count = measured.new_lines.len();
        measured.impact += weights.coverage * count as f64;
        measured.why.push(format!("{count} new lines"));
    }
    let is_harmful = weights
        .failure
        .is_some_and(|least| measured.impact >= least);
    if is_harmful && measured.outcome == Outcome::Passed {
        measured.outcome = Outcome::Harmful;
    }
    measured
}

impl Measured {
    fn note(&mut self, weight: f64, why: String) {
        self.repeatable += weight;
        self.why.push(one_line(&why));
    }
}

/// Maximum number of characters of a line.
const MOST_CHARACTERS: usize = 300;

/// Returns a text as one short line without control characters. Names and output of the system under
/// test are not trusted: they go to terminals, and to comments of scripts.
pub(crate) fn one_line(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '?' } else { c };
    let mut line: String = text.chars().take(MOST_CHARACTERS).map(shown).collect();
    if text.chars().nth(MOST_CHARACTERS).is_some() {
        line.push_str("...");
    }
    line
}

/// Measures how the test and its processes ended.
fn of_end(weights: &Impact, seen: &Seen, without: Option<&Seen>, measured: &mut Measured) {
    let usual = without.map_or(&Ended::Exit(0), |without| &without.test);
    let old_crashes = without.map_or(0, |without| without.crashes.len());
    if let Some(crash) = seen.crashes.get(old_crashes) {
        measured.note(
            weights.signal,
            format!("{} gets signal {}", crash.program, crash.signal),
        );
        measured.outcome = Outcome::Crashed;
    }
    let was_wrong = without.is_some_and(|without| without.wrong.is_some());
    if let Some(why) = seen.wrong.as_ref().filter(|_| !was_wrong) {
        measured.note(weights.invariant, why.clone());
        if measured.outcome != Outcome::Crashed {
            measured.outcome = Outcome::Failed;
        }
        // The exit code, and a host that waits for ever, say the same again.
        return;
    }
    match &seen.test {
        ended if ended == usual => {}
        Ended::Exit(code) => {
            measured.note(weights.exit, format!("exit {code}"));
            if measured.outcome == Outcome::Passed {
                measured.outcome = Outcome::Failed;
            }
        }
        Ended::Signal(signal) => {
            if measured.outcome != Outcome::Crashed {
                measured.note(weights.signal, format!("the test gets signal {signal}"));
            }
            measured.outcome = Outcome::Crashed;
        }
        Ended::Timeout => {
            measured.note(weights.hang, "no end in its time".to_owned());
            measured.outcome = Outcome::Hung;
        }
        Ended::Limit(what) => {
            measured.note(weights.hang, format!("limit of {what}"));
            measured.outcome = Outcome::Limit;
        }
        Ended::NotStarted(why) => {
            measured.why.push(format!("not started: {why}"));
            measured.outcome = Outcome::Error;
        }
    }
    let waits_anyway = |host: &&String| without.is_some_and(|usual| usual.stuck.contains(*host));
    if let Some(host) = seen.stuck.iter().find(|host| !waits_anyway(host)) {
        measured.note(weights.hang, format!("{host} does not end"));
        if measured.outcome != Outcome::Crashed {
            measured.outcome = Outcome::Hung;
        }
    }
}

/// Measures the differences from the run without faults.
fn of_differences(weights: &Impact, seen: &Seen, without: &Seen, measured: &mut Measured) {
    if weights.output > 0.0 && seen.output[0].digest != without.output[0].digest {
        measured.note(weights.output, "output differs".to_owned());
        measured.differs();
    }
    if weights.files > 0.0
        && let Some(name) = differing_file(weights, &seen.files, &without.files)
    {
        measured.note(weights.files, format!("file {name} differs"));
        measured.differs();
    }
    if weights.latency > 0.0 {
        let value = |seen: &Seen, name: &str| {
            let is_world = seen.isolation == Isolation::Model;
            printed(&seen.output[0].text, name, is_world)
        };
        let mut slowdown = 0.0;
        for (name, is_better_high) in [("latency", false), ("throughput", true)] {
            if let (Some(now), Some(usual)) = (value(seen, name), value(without, name)) {
                let (worse, better) = if is_better_high {
                    (usual, now)
                } else {
                    (now, usual)
                };
                let factor = if better > 0.0 {
                    worse / better
                } else {
                    MAX_SLOWDOWN
                };
                slowdown += (factor - 1.0).clamp(0.0, MAX_SLOWDOWN);
            }
        }
        if slowdown > 0.0 {
            measured.note(
                weights.latency * slowdown,
                format!("{:.1} times slower", 1.0 + slowdown),
            );
        }
    }
}

impl Measured {
    fn differs(&mut self) {
        if self.outcome == Outcome::Passed {
            self.outcome = Outcome::Differs;
        }
    }
}

/// Returns a file that differs from the run without faults.
fn differing_file<'f>(
    weights: &Impact,
    files: &'f BTreeMap<String, String>,
    usual: &'f BTreeMap<String, String>,
) -> Option<&'f String> {
    let counts = |name: &&String| !weights.ignore.iter().any(|pattern| fits(pattern, name));
    let all: BTreeSet<&String> = files.keys().chain(usual.keys()).filter(counts).collect();
    all.into_iter()
        .find(|name| files.get(*name) != usual.get(*name))
}

/// Returns whether a name matches a pattern with `*`.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, rest)) => {
            let Some(name) = name.strip_prefix(begin) else {
                return false;
            };
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            let mut ends = ends.map(|at| &name[at..]);
            ends.any(|end| fits(rest, end))
        }
    }
}

/// Returns the last number that a test prints after a word: `latency 12.5`, `latency: 12.5` or
/// `latency=12.5`. Lines of a world begin with the names of hosts.
fn printed(text: &str, word: &str, is_world: bool) -> Option<f64> {
    let number = |line: &str| {
        let of_host = line.split_once(": ").filter(|_| is_world);
        let line = of_host.map_or(line, |(_, line)| line);
        let rest = line.trim_start().strip_prefix(word)?;
        let rest = rest.trim_start_matches([' ', ':', '=', '\t']);
        let end = rest
            .find(|c: char| !"0123456789.eE+-".contains(c))
            .unwrap_or(rest.len());
        rest[..end]
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
    };
    text.lines().rev().find_map(number)
}

/// Measures whether the log of the run matches.
fn of_log(weights: &Impact, seen: &Seen, measured: &mut Measured) {
    let Some(Ok(pattern)) = weights.log_pattern.as_deref().map(Pattern::parse) else {
        return;
    };
    let lines = seen.output.iter().flat_map(|output| output.text.lines());
    let found = lines.into_iter().find(|line| pattern.is_in(line));
    if let Some(line) = found {
        measured.note(weights.log, format!("log: {line}"));
    }
}

/// Returns the probability of the faults of a scenario under a model. The most specific entry
/// counts (`NAME VALUE`, then the value, then the family of a function, then `default`). Without an
/// entry it is 1.
pub fn relevance(model: &BTreeMap<String, f64>, scenario: &Scenario) -> f64 {
    let default = model.get("default").copied().unwrap_or(1.0);
    let of_fault = |attributes: &[(String, Value)]| {
        let exact = attributes
            .iter()
            .filter_map(|(name, value)| model.get(&format!("{name} {value}")));
        let values = attributes
            .iter()
            .filter_map(|(_, value)| model.get(&value.to_string()));
        let families = attributes.iter().filter_map(|(_, value)| {
            let function = functions::named(&value.to_string())?;
            model.get(function.family)
        });
        exact
            .chain(values)
            .chain(families)
            .next()
            .copied()
            .unwrap_or(default)
    };
    scenario
        .faults
        .iter()
        .map(|fault| of_fault(&fault.0))
        .product()
}

#[cfg(test)]
mod tests;
