//! `shrink`, also used after a run: searches for a simpler trace that ends the same, by delta
//! debugging. Candidates are followed loosely in the engine, without a solver: missing choices and
//! inputs take their default. Must not know native programs.

use everett_engine::{
    ExplorerConfig, Finding, Trace, TraceAnswer, TraceChoice, TraceEnd, TraceInput, WorldFinding,
    principal,
};
use everett_sim::SharedList;
use everett_vm::Image;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Context, Result, bail};
use crate::finding::{FindingEntry, finding_files, ktest};
use crate::follow::{Model, Seen, prepare};
use crate::session::Session;
use crate::spec::RunSpec;
use crate::trace::{HOST, WorldTrace, Wrong, one_trace, run_of};
use crate::verdict::Natively;

/// The trace to shrink.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ShrinkSpec {
    /// A trace, or the folder of a finding.
    pub path: PathBuf,
    /// The file for the shrunk trace; by default it replaces the trace, and the original is kept
    /// beside it (`.original.trace`, `.original.world`).
    pub out: Option<PathBuf>,
    /// The time limit; the best trace found so far is the result.
    pub max_time: Duration,
}

impl ShrinkSpec {
    /// Creates a spec that shrinks a trace, or that of a finding, in place.
    pub fn new(path: impl Into<PathBuf>) -> ShrinkSpec {
        ShrinkSpec {
            path: path.into(),
            ..ShrinkSpec::default()
        }
    }
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
    /// Number of input bytes.
    pub bytes: usize,
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
    /// The size of the shrunk trace.
    pub after: TraceSize,
    /// Number of candidates that were followed.
    pub tries: u64,
    /// The file of the shrunk trace.
    pub file: PathBuf,
}

/// The property that shrinking preserves.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Goal {
    /// Kind and location of a program's finding.
    Finding {
        /// The kind.
        kind: String,
        /// File, line and function.
        place: (String, u32, String),
    },
    /// A finding of a world. Only its message distinguishes one invariant from another.
    Wrong(Wrong),
    /// How the path ended, including its output.
    End(TraceEnd),
}

impl Goal {
    /// Returns the goal that preserves the finding of a trace.
    pub(crate) fn of_entry(entry: &FindingEntry, trace: &WorldTrace) -> Goal {
        match &trace.finding {
            Some(wrong) => Goal::Wrong(wrong.clone()),
            None => Goal::Finding {
                kind: entry.kind.clone(),
                place: (entry.file.clone(), entry.line, entry.function.clone()),
            },
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

    /// Returns whether a candidate with more instructions than the trace cannot reach the goal.
    fn is_bounded(&self) -> bool {
        match self {
            Goal::Finding { kind, .. } => kind != "hang",
            Goal::Wrong(wrong) => wrong.kind != "hang",
            Goal::End(_) => true,
        }
    }

    /// Returns the trace and the finding by which a followed trace reaches the goal.
    fn reached(&self, seen: &Seen) -> Option<(WorldTrace, Option<WorldFinding>)> {
        let program = || seen.trace().cloned().map(WorldTrace::of_program);
        match self {
            Goal::Wrong(wrong) => {
                let is_it = |one: &&WorldFinding| Wrong::of(one) == *wrong;
                let found = seen.findings.iter().find(is_it)?;
                Some((WorldTrace::of(found, false), Some(found.clone())))
            }
            Goal::Finding { .. } => {
                let found = seen.findings.last()?;
                let is_it = Goal::of_finding(&found.finding) == *self;
                is_it.then_some((program()?, Some(found.clone())))
            }
            Goal::End(end) => {
                let is_it = seen.findings.is_empty() && seen.end() == Some(end);
                is_it.then_some((program()?, None))
            }
        }
    }
}

/// A shrunk trace.
pub(crate) struct Shrunk {
    /// The trace.
    pub trace: WorldTrace,
    /// The finding in which the trace ends, if any.
    pub found: Option<WorldFinding>,
    /// Number of candidates that were followed.
    pub tries: u64,
}

/// The cost of a trace; less is simpler. Fields are compared in order.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Cost {
    /// Number of choices that are not the default: faults, preemptions, fragments.
    deviations: usize,
    /// The sum of the distances of choices from the default.
    picked: u64,
    /// Number of nonzero numbers, and of nonzero bytes of texts.
    nonzero: usize,
    /// Number of non-printable bytes of texts.
    unprintable: usize,
    /// The sum of all numbers.
    numbers: u128,
    /// The sum of all bytes of texts.
    bytes: u64,
    /// Number of choices.
    choices: usize,
}

/// Returns whether the bytes of an input are a number rather than text.
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
    fn of(trace: &WorldTrace) -> Cost {
        let hosts = || trace.hosts.values();
        let choices = || hosts().flat_map(|host| host.choices.iter());
        let inputs = || hosts().flat_map(|host| host.inputs.iter());
        let picked = || choices().map(|choice| u64::from(choice.picked));
        let texts = || {
            let texts = inputs().filter(|input| !is_number(input));
            texts.flat_map(|input| input.bytes.iter().copied())
        };
        let numbers = || inputs().filter(|input| is_number(input)).map(number);
        let unprintable = |byte: &u8| *byte != 0 && !is_printable(*byte);
        Cost {
            deviations: picked().filter(|picked| *picked > 0).count(),
            picked: picked().sum(),
            nonzero: texts().filter(|byte| *byte != 0).count()
                + numbers().filter(|number| *number != 0).count(),
            unprintable: texts().filter(unprintable).count(),
            numbers: numbers().map(u128::from).sum(),
            bytes: texts().map(u64::from).sum(),
            choices: choices().count(),
        }
    }
}

/// A position in a trace: the host, the index of an input or choice, and the byte of the input.
type TracePosition = (String, usize, usize);

/// The budget of shrinking.
pub(crate) struct ShrinkBudget {
    /// Instructions of candidates; starting a candidate costs [`CANDIDATE`] more. Unlike a time
    /// limit, it gives the same result on a loaded machine.
    pub work: u64,
    /// The deadline, if the user has set one.
    pub until: Option<Duration>,
}

struct Shrinker<'a> {
    model: Model<'a>,
    goal: &'a Goal,
    budget: &'a mut ShrinkBudget,
    best: Shrunk,
    cost: Cost,
}

/// A candidate may execute this many instructions in addition to twice those of the trace.
const MORE_INSTRUCTIONS: u64 = 1_000_000;

/// The cost of starting a candidate, in instructions that take as long.
const CANDIDATE: u64 = 20_000;

/// Searches for a simpler trace within a budget, which it consumes. `None` if there is none.
pub(crate) fn shrink_trace(
    (config, images): (&ExplorerConfig, &[Image]),
    trace: &WorldTrace,
    goal: &Goal,
    budget: &mut ShrinkBudget,
) -> Result<Option<Shrunk>> {
    let mut model = Model::new(config.clone(), images);
    model.config.limits.max_time = budget.until;
    let mut shrinker = Shrinker {
        model,
        goal,
        budget,
        best: Shrunk {
            trace: trace.clone(),
            found: None,
            tries: 0,
        },
        cost: Cost::of(trace),
    };
    if !shrinker.bound_by(trace)? {
        return Ok(None);
    }
    while shrinker.round()? {}
    let is_simpler = shrinker.cost < Cost::of(trace) && shrinker.best.trace.has_end();
    Ok(is_simpler.then_some(shrinker.best))
}

impl Shrinker<'_> {
    fn is_spent(&self) -> bool {
        let now = || self.model.config.clock.now();
        self.budget.work == 0 || self.budget.until.is_some_and(|until| now() >= until)
    }

    /// Follows a trace loosely, and charges the budget.
    fn follow(&mut self, trace: &WorldTrace) -> Result<Seen> {
        let seen = self.model.follow_loosely(trace)?;
        let work = seen.instructions.saturating_add(CANDIDATE);
        self.budget.work = self.budget.work.saturating_sub(work);
        Ok(seen)
    }

    /// Follows the trace itself, to bound the instructions of candidates. Returns `false` if it
    /// does not reach the goal.
    fn bound_by(&mut self, trace: &WorldTrace) -> Result<bool> {
        let seen = self.follow(trace)?;
        if self.goal.reached(&seen).is_none() {
            return Ok(false);
        }
        if self.goal.is_bounded() {
            let most = seen.instructions.saturating_mul(2) + MORE_INSTRUCTIONS;
            let limits = &mut self.model.config.limits;
            limits.max_instructions = Some(
                limits
                    .max_instructions
                    .map_or(most, |limit| limit.min(most)),
            );
        }
        Ok(true)
    }

    /// Follows a candidate and keeps the resulting trace if it is simpler and reaches the goal. The
    /// result contains exactly the choices that the candidate made.
    fn attempt(&mut self, candidate: &WorldTrace) -> Result<bool> {
        self.best.tries += 1;
        let seen = self.follow(candidate)?;
        let Some((trace, found)) = self.goal.reached(&seen) else {
            return Ok(false);
        };
        let trace = WorldTrace {
            random_seed: candidate.random_seed,
            ..trace
        };
        let cost = Cost::of(&trace);
        if cost >= self.cost {
            return Ok(false);
        }
        self.cost = cost;
        self.best.trace = trace;
        self.best.found = found;
        Ok(true)
    }

    /// Returns the best trace with some inputs and choices changed.
    fn changed<'p>(
        &self,
        places: impl IntoIterator<Item = &'p TracePosition>,
        change: impl Fn(&mut Parts, &TracePosition),
    ) -> WorldTrace {
        let mut trace = self.best.trace.clone();
        let mut all: BTreeMap<&str, Parts> = BTreeMap::new();
        for place in places {
            let parts = all
                .entry(&place.0)
                .or_insert_with(|| Parts::of(&trace.host(&place.0)));
            change(parts, place);
        }
        let all = all.into_iter();
        let changed: Vec<_> = all
            .map(|(host, parts)| (host.to_owned(), parts.trace()))
            .collect();
        trace.hosts.extend(changed);
        trace
    }

    /// Applies every reduction once. Returns `true` if one succeeded and there is budget for
    /// another round.
    fn round(&mut self) -> Result<bool> {
        let mut better = self.reduce(deviations, |parts, (_, at, _)| {
            parts.choices[*at].picked = 0
        })?;
        better |= self.lower_choices()?;
        better |= self.reduce(nonzero, |parts, place| *parts.byte(place) = 0)?;
        for byte in *b"a0 A/" {
            better |= self.reduce(unprintable, |parts, place| *parts.byte(place) = byte)?;
        }
        better |= self.lower_numbers()?;
        Ok(better && !self.is_spent())
    }

    /// Applies a change to as many positions as possible, in groups of decreasing size.
    fn reduce(
        &mut self,
        places: fn(&WorldTrace) -> Vec<TracePosition>,
        change: impl Fn(&mut Parts, &TracePosition),
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
                if self.is_spent() {
                    return Ok(better);
                }
                let candidate = self.changed(all.iter().skip(at).take(size), &change);
                if self.attempt(&candidate)? {
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
        while let Some(place) = deviations(&self.best.trace).get(at).cloned() {
            let trace = self.best.trace.host(&place.0);
            let picked = trace.choices.get(place.1).map_or(0, |choice| choice.picked);
            let mut helped = false;
            for lower in [picked / 2, picked.saturating_sub(1)] {
                if lower == 0 || lower == picked || self.is_spent() {
                    continue;
                }
                let candidate = self.changed([&place], |parts, (_, at, _)| {
                    parts.choices[*at].picked = lower;
                });
                if self.attempt(&candidate)? {
                    helped = true;
                    break;
                }
            }
            better |= helped;
            at += usize::from(!helped);
        }
        Ok(better)
    }

    /// Lowers numbers and non-printable bytes. A change may reduce the number of inputs.
    fn lower_numbers(&mut self) -> Result<bool> {
        let mut better = false;
        for (place, value) in numbers(&self.best.trace) {
            let is_number = |parts: &Parts| parts.inputs.get(place.1).is_some_and(is_number);
            better |= self.lower(value, &place, |parts, value| match is_number(parts) {
                true => {
                    let bytes = &mut parts.inputs[place.1].bytes;
                    let len = bytes.len();
                    bytes.copy_from_slice(&value.to_le_bytes()[..len]);
                }
                false => {
                    let input = parts.inputs.get_mut(place.1);
                    if let Some(byte) = input.and_then(|input| input.bytes.get_mut(place.2)) {
                        *byte = value as u8;
                    }
                }
            })?;
        }
        Ok(better)
    }

    /// Searches for the smallest value that reaches the goal, by bisection: assumes that all larger
    /// values do, too.
    fn lower(
        &mut self,
        value: u64,
        place: &TracePosition,
        set: impl Fn(&mut Parts, u64),
    ) -> Result<bool> {
        let (mut refused, mut good) = (0, value);
        while good - refused > 1 && !self.is_spent() {
            // Try 1 first, since it is likely to succeed.
            let next = if refused == 0 && good == value {
                1
            } else {
                refused + (good - refused) / 2
            };
            let candidate = self.changed([place], |parts, _| set(parts, next));
            if self.attempt(&candidate)? {
                good = next;
            } else {
                refused = next;
            }
        }
        Ok(good != value)
    }
}

/// The inputs and choices of a host, as lists that can be changed.
struct Parts {
    inputs: Vec<TraceInput>,
    choices: Vec<TraceChoice>,
    /// The answers of live peers, which cannot be changed.
    answers: SharedList<TraceAnswer>,
}

impl Parts {
    fn of(trace: &Trace) -> Parts {
        Parts {
            inputs: trace.inputs.iter().cloned().collect(),
            choices: trace.choices.iter().cloned().collect(),
            answers: trace.answers.clone(),
        }
    }

    fn trace(self) -> Trace {
        Trace {
            inputs: self.inputs.into_iter().collect(),
            choices: self.choices.into_iter().collect(),
            answers: self.answers,
            ..Trace::default()
        }
    }

    fn byte(&mut self, (_, input, at): &TracePosition) -> &mut u8 {
        &mut self.inputs[*input].bytes[*at]
    }
}

/// Returns the positions of choices that are not the default.
fn deviations(trace: &WorldTrace) -> Vec<TracePosition> {
    let mut places = Vec::new();
    for (name, host) in &trace.hosts {
        let choices = host.choices.iter().enumerate();
        let others = choices.filter(|(_, choice)| choice.picked > 0);
        places.extend(others.map(|(at, _)| (name.clone(), at, 0)));
    }
    places
}

/// Returns the positions of the input bytes that satisfy a predicate.
fn bytes_where(trace: &WorldTrace, wanted: impl Fn(&TraceInput, u8) -> bool) -> Vec<TracePosition> {
    let mut places = Vec::new();
    for (name, host) in &trace.hosts {
        for (number, input) in host.inputs.iter().enumerate() {
            let bytes = input.bytes.iter().enumerate();
            let bytes = bytes.filter(|(_, byte)| wanted(input, **byte));
            places.extend(bytes.map(|(at, _)| (name.clone(), number, at)));
        }
    }
    places
}

fn nonzero(trace: &WorldTrace) -> Vec<TracePosition> {
    bytes_where(trace, |_, byte| byte != 0)
}

fn unprintable(trace: &WorldTrace) -> Vec<TracePosition> {
    bytes_where(trace, |input, byte| {
        byte != 0 && !is_printable(byte) && !is_number(input)
    })
}

/// Returns the positions and values of numbers and of non-printable bytes.
fn numbers(trace: &WorldTrace) -> Vec<(TracePosition, u64)> {
    let mut all = Vec::new();
    for (name, host) in &trace.hosts {
        for (at, input) in host.inputs.iter().enumerate() {
            if is_number(input) {
                all.push(((name.clone(), at, 0), number(input)));
                continue;
            }
            let bytes = input.bytes.iter().enumerate();
            let bytes = bytes.filter(|(_, byte)| **byte != 0 && !is_printable(**byte));
            all.extend(bytes.map(|(byte, value)| ((name.clone(), at, byte), u64::from(*value))));
        }
    }
    all
}

/// Returns the size of a trace.
fn size_of(trace: &WorldTrace) -> TraceSize {
    let inputs = trace.hosts.values().flat_map(|host| host.inputs.iter());
    let bytes: Vec<u8> = inputs
        .flat_map(|input| input.bytes.iter().copied())
        .collect();
    TraceSize {
        deviations: deviations(trace).len(),
        nonzero: bytes.iter().filter(|byte| **byte != 0).count(),
        bytes: bytes.len(),
    }
}

/// Shrinks a trace.
pub fn shrink(spec: &ShrinkSpec, session: &Session) -> Result<ShrinkResult> {
    let mut budget = ShrinkBudget {
        work: u64::MAX,
        until: session.now().checked_add(spec.max_time),
    };
    let folder = run_of(&spec.path)?;
    let path = one_trace(&spec.path)?;
    let run = RunSpec::of(&folder)?;
    let trace = WorldTrace::read(&path, !run.is_scenario())?;
    let (config, images) = prepare(&run, session)?;
    let goal = goal_of(Model::new(config.clone(), &images), &trace)
        .with_context(|| format!("{} cannot be made simpler", path.display()))?;
    let shrunk = shrink_trace((&config, &images), &trace, &goal, &mut budget)?;
    let before = size_of(&trace);
    let Some(shrunk) = shrunk else {
        return Ok(ShrinkResult {
            before,
            shrunk: None,
        });
    };
    let target = spec.out.as_ref().unwrap_or(&path);
    if spec.out.is_none() {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let original = path.with_file_name(trace.original_file(&stem));
        if !original.exists() {
            std::fs::copy(&path, &original)
                .with_context(|| format!("cannot write {}", original.display()))?;
        }
        if let Some(found) = &shrunk.found
            && stem == "finding"
        {
            let beside = path.parent().unwrap_or(Path::new("."));
            let original = trace.original_file(&stem);
            let natively = Natively::NotTried("since it was made simpler");
            for (name, bytes) in finding_files(found, Some(&original), natively) {
                write(&beside.join(name), &bytes)?;
            }
        }
        if trace.is_program {
            let test = ktest(&run.words(), &shrunk.trace.host(HOST));
            write(&path.with_extension("ktest"), &test)?;
        }
    }
    write(target, &shrunk.trace.to_json())?;
    Ok(ShrinkResult {
        before,
        shrunk: Some(ShrunkTo {
            after: size_of(&shrunk.trace),
            tries: shrunk.tries,
            file: target.clone(),
        }),
    })
}

/// Returns the goal that preserves the end of a trace, found by following the trace.
fn goal_of(model: Model<'_>, trace: &WorldTrace) -> Result<Goal> {
    let seen = model.follow(trace)?;
    match (&trace.finding, trace.end()) {
        (Some(wrong), _) if seen.finding_of(trace).is_some() => Ok(Goal::Wrong(wrong.clone())),
        (None, _) if !trace.is_program => bail!(Trace, "the world has no finding"),
        (None, None) => bail!(Trace, "the trace does not say how it ends"),
        (None, Some(expected)) if seen.end() == Some(expected) => Ok(match seen.findings.last() {
            Some(found) => Goal::of_finding(&found.finding),
            None => Goal::End(expected.clone()),
        }),
        _ => bail!(Trace, "the program does not end as the trace says any more"),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(inputs: &[(&str, &[u8])], picked: &[u32]) -> WorldTrace {
        let input = |(name, bytes): &(&str, &[u8])| TraceInput {
            name: (*name).into(),
            bytes: bytes.to_vec(),
        };
        let choice = |picked: &u32| TraceChoice {
            site: everett_vm::ChoiceSite::Schedule,
            alternatives: 9,
            picked: *picked,
        };
        WorldTrace::of_program(Trace {
            inputs: inputs.iter().map(input).collect(),
            choices: picked.iter().map(choice).collect(),
            ..Trace::default()
        })
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
        let at = |input: usize, byte: usize| (HOST.to_owned(), input, byte);
        assert_eq!(nonzero(&trace), [at(0, 0), at(1, 0), at(1, 1)]);
        assert_eq!(unprintable(&trace), [at(1, 1)]);
        assert_eq!(deviations(&trace), [at(1, 0)]);
        assert_eq!(numbers(&trace), [(at(0, 0), 1), (at(1, 1), 2)]);
    }
}
