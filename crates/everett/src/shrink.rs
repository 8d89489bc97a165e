//! `shrink`, also used after a run: searches for a simpler trace that ends the same, by delta debugging. Candidates are
//! followed loosely in the engine, without a solver: what a candidate leaves out takes its default. Must not know
//! native programs.

use everett_engine::{
    ExplorerConfig, Finding, Start, Trace, TraceChoice, TraceEnd, TraceInput, principal,
};
use everett_vm::Image;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Context, Result, bail};
use crate::follow::{follow_with, following_config, one_trace, read_trace, run_of};
use crate::record::{FindingEntry, HOST, ORIGINAL, finding_files, ktest};
use crate::session::Session;
use crate::spec::RunSpec;
use crate::world;

/// Which trace to shrink.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ShrinkSpec {
    /// A trace, or the folder of a finding.
    pub path: PathBuf,
    /// The file for the shrunk trace; by default it replaces the trace, and the original is kept beside it
    /// (`.original.trace`).
    pub out: Option<PathBuf>,
    /// The time limit; the best trace found so far is the result.
    pub max_time: Duration,
}

impl Default for ShrinkSpec {
    fn default() -> ShrinkSpec {
        ShrinkSpec {
            path: PathBuf::new(),
            out: None,
            max_time: Duration::from_secs(60),
        }
    }
}

/// The size of a trace.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TraceSize {
    /// Number of choices that are not the default.
    pub deviations: usize,
    /// Number of nonzero input bytes.
    pub nonzero: usize,
    /// Number of input bytes; `None` for a world, whose hosts each have their own inputs.
    pub bytes: Option<usize>,
}

/// The result of shrinking a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShrinkResult {
    /// The size of the original trace.
    pub before: TraceSize,
    /// The shrunk trace; `None` if no simpler trace ends the same.
    pub shrunk: Option<ShrunkTo>,
}

/// A shrunk trace that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShrunkTo {
    /// Its size.
    pub after: TraceSize,
    /// Number of candidates that were followed, if counted.
    pub tries: Option<u64>,
    /// Its file.
    pub file: PathBuf,
}

/// The property that shrinking preserves.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Goal {
    /// Kind and location of a finding.
    Finding {
        /// The kind.
        kind: String,
        /// File, line and function.
        place: (String, u32, String),
    },
    /// How the path ended, including its output.
    End(TraceEnd),
}

impl Goal {
    /// The goal that preserves a finding.
    pub(crate) fn of_entry(entry: &FindingEntry) -> Goal {
        Goal::Finding {
            kind: entry.kind.clone(),
            place: (entry.file.clone(), entry.line, entry.function.clone()),
        }
    }

    fn of_finding(finding: &Finding) -> Goal {
        let place = principal(&finding.stack);
        Goal::Finding {
            kind: finding.kind.name().to_owned(),
            place: place.map_or_else(Default::default, |place| {
                (place.file.clone(), place.line, place.function.clone())
            }),
        }
    }
}

/// A shrunk trace.
pub(crate) struct Shrunk {
    /// The trace.
    pub trace: Trace,
    /// The finding that it ends in, if any.
    pub finding: Option<Finding>,
    /// Number of candidates that were followed.
    pub tries: u64,
}

/// The cost of a trace; less is simpler. Fields are compared in order.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Cost {
    /// Choices that are not the default: faults, preemptions, fragments.
    deviations: usize,
    /// The sum of their distances from the default.
    picked: u64,
    /// Nonzero numbers, and nonzero bytes of texts.
    nonzero: usize,
    /// Non-printable bytes of texts.
    unprintable: usize,
    /// The sum of all numbers.
    numbers: u128,
    /// The sum of all bytes of texts.
    bytes: u64,
    /// Number of choices.
    choices: usize,
}

/// Whether the bytes of an input are a number rather than text.
fn is_number(input: &TraceInput) -> bool {
    matches!(input.bytes.len(), 2 | 4 | 8) && *input.name != *"stdin"
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\t' | b' '..=b'~')
}

fn number(input: &TraceInput) -> u64 {
    let mut bytes = [0; 8];
    bytes[..input.bytes.len()].copy_from_slice(&input.bytes);
    u64::from_le_bytes(bytes)
}

impl Cost {
    fn of(trace: &Trace) -> Cost {
        let picked = || trace.choices.iter().map(|choice| u64::from(choice.picked));
        let texts = || {
            let texts = trace.inputs.iter().filter(|input| !is_number(input));
            texts.flat_map(|input| input.bytes.iter().copied())
        };
        let numbers = || {
            trace
                .inputs
                .iter()
                .filter(|input| is_number(input))
                .map(number)
        };
        let unprintable = |byte: &u8| *byte != 0 && !is_printable(*byte);
        Cost {
            deviations: picked().filter(|picked| *picked > 0).count(),
            picked: picked().sum(),
            nonzero: texts().filter(|byte| *byte != 0).count()
                + numbers().filter(|number| *number != 0).count(),
            unprintable: texts().filter(unprintable).count(),
            numbers: numbers().map(u128::from).sum(),
            bytes: texts().map(u64::from).sum(),
            choices: trace.choices.len(),
        }
    }
}

/// The inputs and choices of a candidate.
#[derive(Clone)]
struct Parts {
    inputs: Vec<TraceInput>,
    choices: Vec<TraceChoice>,
}

struct Shrinker<'a> {
    config: ExplorerConfig,
    images: &'a [Image],
    goal: &'a Goal,
    until: Duration,
    best: Shrunk,
    cost: Cost,
}

/// A candidate may execute this many instructions in addition to twice those of the trace.
const MORE_INSTRUCTIONS: u64 = 1_000_000;

/// Searches for a simpler trace until a deadline. `None` if there is none.
pub(crate) fn shrink_trace(
    run: &RunSpec,
    session: &Session,
    images: &[Image],
    trace: &Trace,
    goal: &Goal,
    until: Duration,
) -> Result<Option<Shrunk>> {
    let mut config = following_config(run, session)?;
    config.search = vec!["dfs".to_owned()];
    // A single path needs little memory, no matter how much the preceding search still holds.
    config.limits.max_memory = None;
    config.limits.max_time = Some(until);
    let mut shrinker = Shrinker {
        config,
        images,
        goal,
        until,
        best: Shrunk {
            trace: trace.clone(),
            finding: None,
            tries: 0,
        },
        cost: Cost::of(trace),
    };
    if !shrinker.bound_by(trace)? {
        return Ok(None);
    }
    while shrinker.round()? {}
    let found = shrinker.cost < Cost::of(trace) && shrinker.best.trace.end.is_some();
    Ok(found.then_some(shrinker.best))
}

impl Shrinker<'_> {
    fn is_late(&self) -> bool {
        self.config.clock.now() >= self.until
    }

    /// Follows the trace itself, to bound the instructions of candidates. `false` if it does not reach the goal.
    fn bound_by(&mut self, trace: &Trace) -> Result<bool> {
        let seen = follow_with(
            self.config.clone(),
            self.images,
            Start::Loosely(trace.clone()),
        )?;
        if !self.reaches_goal(&seen) {
            return Ok(false);
        }
        let is_hang = matches!(self.goal, Goal::Finding { kind, .. } if kind == "hang");
        if !is_hang {
            let most = seen.instructions.saturating_mul(2) + MORE_INSTRUCTIONS;
            let limit = self.config.limits.max_instructions;
            self.config.limits.max_instructions = Some(limit.map_or(most, |limit| limit.min(most)));
        }
        Ok(true)
    }

    fn reaches_goal(&self, seen: &crate::follow::Last) -> bool {
        match (self.goal, &seen.finding) {
            (Goal::Finding { .. }, Some(finding)) => Goal::of_finding(finding) == *self.goal,
            (Goal::End(end), None) => {
                let trace = seen.trace.as_ref();
                trace.is_some_and(|trace| trace.end.as_ref() == Some(end))
            }
            _ => false,
        }
    }

    fn parts(&self) -> Parts {
        Parts {
            inputs: self.best.trace.inputs.iter().cloned().collect(),
            choices: self.best.trace.choices.iter().cloned().collect(),
        }
    }

    /// Follows a candidate and keeps the resulting trace if it is simpler and reaches the goal.
    fn attempt(&mut self, parts: Parts) -> Result<bool> {
        self.best.tries += 1;
        let candidate = Trace {
            inputs: parts.inputs.into_iter().collect(),
            choices: parts.choices.into_iter().collect(),
            pending: None,
            end: None,
        };
        let seen = follow_with(self.config.clone(), self.images, Start::Loosely(candidate))?;
        if !self.reaches_goal(&seen) {
            return Ok(false);
        }
        let Some(trace) = seen.trace else {
            return Ok(false);
        };
        let cost = Cost::of(&trace);
        if cost >= self.cost {
            return Ok(false);
        }
        self.cost = cost;
        self.best.trace = trace;
        self.best.finding = seen.finding;
        Ok(true)
    }

    /// Applies every reduction once. `true` if one succeeded and there is time for another round.
    fn round(&mut self) -> Result<bool> {
        let mut better = self.reduce(deviations, |parts, (at, _)| parts.choices[at].picked = 0)?;
        better |= self.lower_choices()?;
        better |= self.reduce(nonzero, |parts, (input, at)| {
            parts.inputs[input].bytes[at] = 0;
        })?;
        for byte in *b"a0 A/" {
            better |= self.reduce(unprintable, |parts, (input, at)| {
                parts.inputs[input].bytes[at] = byte;
            })?;
        }
        better |= self.lower_numbers()?;
        Ok(better && !self.is_late())
    }

    /// Applies a change to as many places as possible, in groups of decreasing size.
    fn reduce(
        &mut self,
        places: fn(&Trace) -> Vec<(usize, usize)>,
        change: impl Fn(&mut Parts, (usize, usize)),
    ) -> Result<bool> {
        let mut better = false;
        let mut size = places(&self.best.trace).len();
        while size > 0 {
            let mut at = 0;
            loop {
                let all = places(&self.best.trace);
                if at >= all.len() {
                    break;
                }
                if self.is_late() {
                    return Ok(better);
                }
                let mut parts = self.parts();
                for place in all.iter().skip(at).take(size) {
                    change(&mut parts, *place);
                }
                if self.attempt(parts)? {
                    better = true;
                } else {
                    at += size;
                }
            }
            size /= 2;
        }
        Ok(better)
    }

    /// Lowers choices that cannot be the default: smaller files, fewer arguments.
    fn lower_choices(&mut self) -> Result<bool> {
        let mut better = false;
        let mut at = 0;
        while let Some((place, _)) = deviations(&self.best.trace).get(at).copied() {
            let picked = self.best.trace.choices.get(place).map_or(0, |c| c.picked);
            let mut helped = false;
            for lower in [picked / 2, picked.saturating_sub(1)] {
                if lower == 0 || lower == picked || self.is_late() {
                    continue;
                }
                let mut parts = self.parts();
                parts.choices[place].picked = lower;
                if self.attempt(parts)? {
                    helped = true;
                    break;
                }
            }
            better |= helped;
            at += usize::from(!helped);
        }
        Ok(better)
    }

    /// Lowers numbers and non-printable bytes.
    fn lower_numbers(&mut self) -> Result<bool> {
        let mut better = false;
        for at in 0..self.best.trace.inputs.len() {
            let Some(input) = self.best.trace.inputs.get(at).cloned() else {
                break;
            };
            if is_number(&input) {
                let len = input.bytes.len();
                better |= self.lower(number(&input), |parts, value| {
                    if let Some(input) = parts.inputs.get_mut(at) {
                        input.bytes = value.to_le_bytes()[..len].to_vec();
                    }
                })?;
                continue;
            }
            for (place, byte) in input.bytes.iter().enumerate() {
                if *byte == 0 || is_printable(*byte) {
                    continue;
                }
                better |= self.lower(u64::from(*byte), |parts, value| {
                    let input = parts.inputs.get_mut(at);
                    if let Some(byte) = input.and_then(|input| input.bytes.get_mut(place)) {
                        *byte = value as u8;
                    }
                })?;
            }
        }
        Ok(better)
    }

    /// Searches for the smallest value that reaches the goal, by bisection: assumes that larger values do, too.
    fn lower(&mut self, value: u64, set: impl Fn(&mut Parts, u64)) -> Result<bool> {
        let (mut refused, mut good) = (0, value);
        while good - refused > 1 && !self.is_late() {
            // Try 1 first, since it is likely to succeed.
            let next = if refused == 0 && good == value {
                1
            } else {
                refused + (good - refused) / 2
            };
            let mut parts = self.parts();
            set(&mut parts, next);
            if self.attempt(parts)? {
                good = next;
            } else {
                refused = next;
            }
        }
        Ok(good != value)
    }
}

/// The positions of choices that are not the default.
fn deviations(trace: &Trace) -> Vec<(usize, usize)> {
    let choices = trace.choices.iter().enumerate();
    let others = choices.filter(|(_, choice)| choice.picked > 0);
    others.map(|(at, _)| (at, 0)).collect()
}

/// The positions of the input bytes that satisfy a predicate, each with the index of its input.
fn bytes_where(trace: &Trace, wanted: impl Fn(&TraceInput, u8) -> bool) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    for (number, input) in trace.inputs.iter().enumerate() {
        for (at, byte) in input.bytes.iter().enumerate() {
            if wanted(input, *byte) {
                places.push((number, at));
            }
        }
    }
    places
}

fn nonzero(trace: &Trace) -> Vec<(usize, usize)> {
    bytes_where(trace, |_, byte| byte != 0)
}

fn unprintable(trace: &Trace) -> Vec<(usize, usize)> {
    bytes_where(trace, |input, byte| {
        byte != 0 && !is_printable(byte) && !is_number(input)
    })
}

/// The size of a trace.
fn size_of(trace: &Trace) -> TraceSize {
    let bytes = || trace.inputs.iter().flat_map(|input| input.bytes.iter());
    TraceSize {
        deviations: deviations(trace).len(),
        nonzero: bytes().filter(|byte| **byte != 0).count(),
        bytes: Some(bytes().count()),
    }
}

/// Shrinks a trace.
pub fn shrink(spec: &ShrinkSpec, session: &Session) -> Result<ShrinkResult> {
    let until = session.now() + spec.max_time;
    let folder = run_of(&spec.path)?;
    let path = one_trace(&spec.path)?;
    let run = RunSpec::of(&folder)?;
    if run.is_scenario() {
        return world::shrink::shrink(&run, session, &path, spec.out.as_deref(), until);
    }
    let trace = read_trace(&path)?;
    let images = run.load()?;
    let goal = goal_of(&run, session, &images, &trace)
        .with_context(|| format!("{} cannot be made simpler", path.display()))?;
    let shrunk = shrink_trace(&run, session, &images, &trace, &goal, until)?;
    let before = size_of(&trace);
    let Some(shrunk) = shrunk else {
        return Ok(ShrinkResult {
            before,
            shrunk: None,
        });
    };
    let text = serde_json::to_vec(&shrunk.trace)?;
    let target = spec.out.as_ref().unwrap_or(&path);
    if spec.out.is_none() {
        keep_original(&path)?;
        let words = run.words();
        write(&path.with_extension("ktest"), &ktest(&words, &shrunk.trace))?;
        if let Some(finding) = &shrunk.finding
            && path.ends_with("finding.trace")
        {
            let beside = path.parent().unwrap_or(Path::new("."));
            for (name, bytes) in finding_files(finding, HOST, true) {
                write(&beside.join(name), &bytes)?;
            }
        }
    }
    write(target, &text)?;
    Ok(ShrinkResult {
        before,
        shrunk: Some(ShrunkTo {
            after: size_of(&shrunk.trace),
            tries: Some(shrunk.tries),
            file: target.clone(),
        }),
    })
}

/// The goal that preserves the end of a trace, found by following the trace.
fn goal_of(run: &RunSpec, session: &Session, images: &[Image], trace: &Trace) -> Result<Goal> {
    let Some(expected) = &trace.end else {
        bail!(Trace, "the trace does not say how it ends");
    };
    let seen = follow_with(
        following_config(run, session)?,
        images,
        Start::Trace(trace.clone()),
    )?;
    let end = seen.trace.and_then(|seen| seen.end);
    if end.as_ref() != Some(expected) {
        bail!(Trace, "the program does not end as the trace says any more");
    }
    Ok(match &seen.finding {
        Some(finding) => Goal::of_finding(finding),
        None => Goal::End(expected.clone()),
    })
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies a trace to its `.original.trace` file, unless that exists already.
fn keep_original(path: &Path) -> Result<()> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let original = path.with_file_name(format!("{stem}{ORIGINAL}"));
    if !original.exists() {
        std::fs::copy(path, &original)
            .with_context(|| format!("cannot write {}", original.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(inputs: &[(&str, &[u8])], picked: &[u32]) -> Trace {
        let input = |(name, bytes): &(&str, &[u8])| TraceInput {
            name: (*name).into(),
            bytes: bytes.to_vec(),
        };
        let choice = |picked: &u32| TraceChoice {
            site: everett_vm::ChoiceSite::Schedule,
            alternatives: 9,
            picked: *picked,
        };
        Trace {
            inputs: inputs.iter().map(input).collect(),
            choices: picked.iter().map(choice).collect(),
            ..Trace::default()
        }
    }

    #[test]
    fn simpler_means_fewer_deviations_then_fewer_bytes_then_texts_that_can_be_read() {
        let ordered = [
            trace(&[("stdin", b"\0\0")], &[0, 0]),
            trace(&[("stdin", b"a\0")], &[0, 0]),
            trace(&[("stdin", b"\x01\0")], &[0, 0]),
            trace(&[("stdin", b"ab")], &[0, 0]),
            trace(&[("stdin", b"\0\0")], &[0, 1]),
            trace(&[("stdin", b"\0\0")], &[0, 3]),
            trace(&[("stdin", b"\0\0")], &[1, 1]),
        ];
        let costs: Vec<Cost> = ordered.iter().map(Cost::of).collect();
        assert!(costs.is_sorted_by(|a, b| a < b), "{costs:?}");
    }

    #[test]
    fn places_are_those_that_can_be_changed() {
        let trace = trace(&[("x", b"\x01\0\0\0"), ("s", b"a\x02\0")], &[0, 2, 0]);
        assert_eq!(nonzero(&trace), [(0, 0), (1, 0), (1, 1)]);
        assert_eq!(unprintable(&trace), [(1, 1)]);
        assert_eq!(deviations(&trace), [(1, 0)]);
    }
}
