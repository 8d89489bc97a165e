//! `test` and `confirm`: replay many traces on native programs in parallel. Owns how a regression
//! suite interprets verdicts.

use everett_report::{Outcome, TestCase, junit};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use crate::acceptance::REJECTED;
use crate::compare::diverged;
use crate::conclusion::Conclusion;
use crate::error::{Context, Error, Result, bail};
use crate::events::{Event, Observer};
use crate::follow::{Model, prepare};
use crate::native_world::NativeWorld;
use crate::replay::ReplayResult;
use crate::session::Session;
use crate::spec::{BuildSpec, RunSpec};
use crate::trace::{WorldTrace, run_of, traces_below};
use crate::verdict::Verdict;

/// A regression suite.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TestSpec {
    /// Folders of runs, folders below them, or traces.
    pub paths: Vec<PathBuf>,
    /// The build to replay on.
    pub build: BuildSpec,
    /// Whether findings are expected not to occur any more.
    pub fixed: bool,
    /// The file for the results in JUnit format.
    pub junit: Option<PathBuf>,
    /// Number of parallel replays; by default one per processor.
    pub jobs: Option<NonZeroUsize>,
}

impl TestSpec {
    /// Creates a spec for the traces in these folders, on the programs that were explored.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> TestSpec {
        TestSpec {
            paths: paths.into_iter().map(Into::into).collect(),
            ..TestSpec::default()
        }
    }
}

/// The findings to confirm natively. The verdicts are recorded in the summary of the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfirmSpec {
    /// The folder of a run, or a folder or trace below it.
    pub path: PathBuf,
    /// Whether all tests are replayed, not only findings.
    pub tests: bool,
    /// The build to replay on.
    pub build: BuildSpec,
    /// Number of parallel replays; by default one per processor.
    pub jobs: Option<NonZeroUsize>,
}

impl ConfirmSpec {
    /// Creates a spec for the findings of a run, or of a part of it.
    pub fn new(path: impl Into<PathBuf>) -> ConfirmSpec {
        ConfirmSpec {
            path: path.into(),
            ..ConfirmSpec::default()
        }
    }
}

/// The result of a regression suite.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TestResult {
    /// Number of traces that passed.
    pub passed: usize,
    /// Number of traces that failed.
    pub failed: usize,
    /// Number of traces from which the program diverged.
    pub diverged: usize,
    /// Number of traces without a result.
    pub skipped: usize,
}

impl TestResult {
    /// Returns the conclusion of the suite. If all traces were skipped, nothing was tested.
    pub fn conclusion(&self) -> Conclusion {
        let is_wrong = self.failed + self.diverged > 0;
        let is_untested = self.passed == 0 && self.skipped > 0;
        Conclusion::new(is_wrong, is_untested, false)
    }
}

/// Maximum number of instructions of following one trace in the bitcode: a changed program may not
/// end.
const FOLLOW_INSTRUCTIONS: u64 = 2_000_000_000;

/// A run and its native programs.
struct Suite {
    folder: PathBuf,
    run: RunSpec,
    native: NativeWorld,
    /// Whether other builds replace programs of a scenario.
    is_rebuilt: bool,
    /// Kind and recorded verdict of the findings of the run, by their folders.
    confirmed: BTreeMap<PathBuf, (String, String)>,
}

impl Suite {
    fn open(folder: PathBuf, build: &BuildSpec, session: &Session) -> Result<Suite> {
        let mut run = RunSpec::of(&folder)?;
        let native = NativeWorld::of(&run, build, session)?;
        let is_rebuilt = run.is_scenario() && !build.on.is_empty();
        if native.is_program() {
            run = run.on(&build.on)?;
        }
        let confirmed = confirmed_in(&folder);
        Ok(Suite {
            folder,
            run,
            native,
            is_rebuilt,
            confirmed,
        })
    }

    /// Returns whether the run recorded a finding as confirmed; `None` if unknown.
    fn was_confirmed(&self, replayed: &Replayed) -> Option<bool> {
        let path = std::path::absolute(&replayed.path).ok()?;
        if let Some((_, said)) = self.confirmed.get(path.parent()?) {
            return Some(said == "confirmed");
        }
        // For a test that ends in a finding, use the verdicts on findings of the same kind.
        let kind = replayed.trace.kind()?;
        let mut same = self
            .confirmed
            .values()
            .filter(|said| said.0 == kind)
            .peekable();
        same.peek()?;
        Some(same.any(|said| said.1 == "confirmed"))
    }
}

/// Returns the kind and recorded verdict of the findings of a run, by their folders.
fn confirmed_in(folder: &Path) -> BTreeMap<PathBuf, (String, String)> {
    let text = everett_report::read_file(&folder.join("summary.json")).unwrap_or_default();
    let summary: Value = serde_json::from_slice(&text).unwrap_or_default();
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let findings = summary["findings"].as_array().into_iter().flatten();
    findings
        .filter_map(|finding| {
            let text = |name: &str| Some(finding[name].as_str()?.to_owned());
            Some((
                folder.join(text("dir")?),
                (text("kind")?, text("confirmed")?),
            ))
        })
        .collect()
}

/// A trace and the result of its replay.
struct Replayed {
    path: PathBuf,
    suite: usize,
    trace: WorldTrace,
    verdict: Verdict,
    /// Whether the replay diverged from the trace.
    diverged: bool,
    took: Duration,
}

/// Collects the traces that record how they end, and the runs to which they belong.
fn gather(
    paths: &[PathBuf],
    build: &BuildSpec,
    session: &Session,
) -> Result<(Vec<Suite>, Vec<Replayed>)> {
    let mut suites: Vec<Suite> = Vec::new();
    let mut traces = Vec::new();
    for path in paths {
        if !path.exists() {
            bail!(Trace, "there is no {}", path.display());
        }
        for path in traces_below(path)? {
            let folder = run_of(&path)?;
            let known = suites.iter().position(|suite| suite.folder == folder);
            let suite = match known {
                Some(at) => at,
                None => {
                    suites.push(Suite::open(folder, build, session)?);
                    suites.len() - 1
                }
            };
            let trace = WorldTrace::read(&path, suites[suite].native.is_program())?;
            if trace.has_end() {
                traces.push(Replayed {
                    path,
                    suite,
                    trace,
                    verdict: Verdict::NotReplayable("it was not tried".to_owned()),
                    diverged: false,
                    took: Duration::ZERO,
                });
            }
        }
    }
    Ok((suites, traces))
}

/// Replays all traces in parallel and reports the results in the order of the traces.
fn replay_all(
    suites: &[Suite],
    traces: Vec<Replayed>,
    jobs: Option<NonZeroUsize>,
    mut tell: impl FnMut(&Replayed),
) -> Vec<Replayed> {
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok());
    let jobs = jobs.map_or(1, NonZeroUsize::get).min(traces.len());
    let waiting = Mutex::new(traces.into_iter().enumerate());
    let (sender, receiver) = mpsc::channel();
    let mut early = BTreeMap::new();
    let mut done = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (sender, waiting) = (sender.clone(), &waiting);
            scope.spawn(move || {
                loop {
                    let next = waiting
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .next();
                    let Some((at, mut replayed)) = next else {
                        return;
                    };
                    replayed.replay(&suites[replayed.suite]);
                    if sender.send((at, replayed)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (at, replayed) in receiver {
            early.insert(at, replayed);
            while let Some(next) = early.remove(&done.len()) {
                tell(&next);
                done.push(next);
            }
        }
    });
    done
}

impl Replayed {
    fn replay(&mut self, suite: &Suite) {
        let start = Instant::now();
        match suite.native.replay(&self.trace) {
            Ok(replayed) => {
                // A diverged replay may still be confirmed by checked builds.
                let seen = replayed.seen.as_ref();
                self.diverged = replayed.verdict != Verdict::Confirmed
                    && seen.is_some_and(|seen| diverged(seen).is_some());
                self.verdict = replayed.verdict;
            }
            Err(error) => self.verdict = Verdict::NotReplayable(error.chain()),
        }
        self.took = start.elapsed();
    }

    /// Returns the outcome of the replay in a test suite.
    fn outcome(&self, suite: &Suite, fixed: bool, session: &Session) -> Outcome {
        let why = || self.verdict.reason().unwrap_or_default().to_owned();
        if self.diverged {
            return Outcome::Error(why());
        }
        let was_confirmed = suite.was_confirmed(self);
        let is_message = suite.native.acceptance.is_some();
        if fixed && (self.trace.is_finding() || is_message) {
            return match &self.verdict {
                Verdict::NotReproduced(why) if is_message && why == REJECTED => Outcome::Passed,
                Verdict::Confirmed => Outcome::Failed("it still happens".to_owned()),
                Verdict::NotReplayable(why) => Outcome::Skipped(why.clone()),
                Verdict::NotReproduced(why) => match self.happens_in_model(suite, session) {
                    Ok(true) => Outcome::Failed(
                        "it still happens, although native code continues unaffected".to_owned(),
                    ),
                    Ok(false) => Outcome::Passed,
                    Err(_) if was_confirmed == Some(true) => Outcome::Passed,
                    Err(error) => Outcome::Skipped(format!(
                        "{why}; whether it would have been seen before is not known: {}",
                        error.chain()
                    )),
                },
            };
        }
        match &self.verdict {
            Verdict::Confirmed => Outcome::Passed,
            Verdict::NotReplayable(why) => Outcome::Skipped(why.clone()),
            // Not a regression: native code did not show the finding at the time of the run either.
            Verdict::NotReproduced(why) if was_confirmed == Some(false) => {
                Outcome::Skipped(why.clone())
            }
            Verdict::NotReproduced(why) => Outcome::Failed(why.clone()),
        }
    }

    /// Returns whether the finding occurs in the bitcode beside the program.
    /// Fails if that cannot be determined.
    fn happens_in_model(&self, suite: &Suite, session: &Session) -> Result<bool> {
        if suite.is_rebuilt {
            bail!(
                Usage,
                "worlds are followed in the bitcode of the scenario's own programs only"
            );
        }
        let (config, images) = prepare(&suite.run, session)?;
        let mut model = Model::new(config, &images);
        let most = &mut model.config.limits.max_instructions;
        *most = Some(most.map_or(FOLLOW_INSTRUCTIONS, |most| most.min(FOLLOW_INSTRUCTIONS)));
        let seen = model.follow(&self.trace)?;
        if !self.trace.is_program {
            return Ok(seen.finding_of(&self.trace).is_some());
        }
        let seen = seen.end().ok_or_else(|| {
            Error::Trace("the bitcode diverges from the trace or does not end".to_owned())
        })?;
        let expected = self.trace.end();
        Ok(expected.is_some_and(|expected| {
            seen.finding == expected.finding && seen.signal == expected.signal
        }))
    }
}

/// Replays traces as a regression suite.
pub fn test(spec: &TestSpec, session: &Session, observer: &mut dyn Observer) -> Result<TestResult> {
    let (suites, traces) = gather(&spec.paths, &spec.build, session)?;
    if traces.is_empty() {
        bail!(Trace, "there are no traces that say how they end");
    }
    let mut outcomes = Vec::new();
    let tell = |replayed: &Replayed| {
        let outcome = replayed.outcome(&suites[replayed.suite], spec.fixed, session);
        observer.event(&Event::Tested {
            path: &replayed.path,
            outcome: &outcome,
        });
        outcomes.push(outcome);
    };
    let replayed = replay_all(&suites, traces, spec.jobs, tell);
    let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count();
    if let Some(file) = &spec.junit {
        let cases = replayed.iter().zip(&outcomes);
        let cases = cases.map(|(replayed, outcome)| TestCase {
            name: replayed.path.display().to_string(),
            class: suites[replayed.suite].run.program().display().to_string(),
            seconds: replayed.took.as_secs_f64(),
            outcome: outcome.clone(),
        });
        let text = junit("everett", &cases.collect::<Vec<_>>());
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(TestResult {
        passed: count(|outcome| *outcome == Outcome::Passed),
        failed: count(|outcome| matches!(outcome, Outcome::Failed(_))),
        diverged: count(|outcome| matches!(outcome, Outcome::Error(_))),
        skipped: count(|outcome| matches!(outcome, Outcome::Skipped(_))),
    })
}

/// Replays the findings of a run, and its tests on request, and records the verdicts in its
/// summary.
pub fn confirm(
    spec: &ConfirmSpec,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<ReplayResult> {
    let folder = run_of(&spec.path)?;
    let (suites, mut traces) = gather(std::slice::from_ref(&spec.path), &spec.build, session)?;
    if !spec.tests {
        let of_a_finding =
            |path: &Path| path.ends_with("finding.trace") || path.ends_with("finding.world");
        traces.retain(|trace| of_a_finding(&trace.path) || spec.path.is_file());
    }
    let tell = |replayed: &Replayed| {
        observer.event(&Event::Replayed {
            path: &replayed.path,
            verdict: &replayed.verdict,
        });
    };
    let replayed = replay_all(&suites, traces, spec.jobs, tell);
    let confirmed = replayed
        .iter()
        .filter(|one| one.verdict == Verdict::Confirmed);
    let result = ReplayResult {
        traces: replayed.len(),
        confirmed: confirmed.count(),
        are_worlds: false,
    };
    // The verdict on another build says nothing about the run.
    if spec.build.is_own() {
        note_in_summary(&folder, &replayed)?;
    }
    Ok(result)
}

/// Writes the verdicts on findings into the summary of their run.
fn note_in_summary(folder: &Path, replayed: &[Replayed]) -> Result<()> {
    let file = folder.join("summary.json");
    let Ok(text) = everett_report::read_file(&file) else {
        return Ok(());
    };
    let mut summary: Value = serde_json::from_slice(&text).map_err(|error| Error::Damaged {
        path: file.clone(),
        source: Box::new(error.into()),
    })?;
    let findings = summary["findings"].as_array_mut().into_iter().flatten();
    for finding in findings {
        let Some(dir) = finding["dir"].as_str() else {
            continue;
        };
        let traces = ["trace", "world"].map(|kind| Path::new(dir).join(format!("finding.{kind}")));
        let is_its = |one: &&Replayed| traces.iter().any(|trace| one.path.ends_with(trace));
        if let Some(one) = replayed.iter().find(is_its) {
            finding["confirmed"] = one.verdict.name().into();
            finding["confirmed_reason"] = one.verdict.reason().into();
        }
    }
    let text = serde_json::to_vec_pretty(&summary)?;
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}
