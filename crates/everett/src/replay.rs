//! `replay`: replays traces on native programs under the same kernel model. Owns the verdict on a trace and how it is
//! reached; must not know who observes a replay.

use everett_engine::{Trace, TraceEnd};
use everett_linux::HostConfig;
use everett_native::{
    NativeConfig, NativeEnd, NativeError, NativeRun, NoWatcher, Script, Source, Watcher,
    is_checked_build, libraries, run_watched,
};
use everett_toolchain::{Checks, ToolchainError};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::capture::packets_of;
use crate::compare::{checks_for, compare};
use crate::error::{Context, Result, bail};
use crate::events::{Event, Observer};
use crate::explore::{explorer_config, program_host};
use crate::follow::{read_trace, traces_of};
use crate::layers::Mount;
use crate::load::OtherBuild;
use crate::points;
use crate::repeat::repeat;
use crate::session::{Notices, Session};
use crate::spec::RunSpec;

/// Native runs for a finding with preemptions between system calls.
const MAX_ATTEMPTS: usize = 50;
/// Native runs for a path without a finding but with such preemptions.
const MAX_ATTEMPTS_OF_TESTS: usize = 9;
/// Native runs for a data race. Each run holds a thread before a different access.
const MAX_SPARED: u32 = 20;
/// Number of system calls after which a replay counts as a hang.
pub(crate) const MAX_CALLS: u64 = 1_000_000;
/// Number of 50 ms stretches of computation after which a replay counts as a hang.
pub(crate) const MAX_LONG_COMPUTATIONS: u32 = 40;

/// Which traces to replay, and how.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplaySpec {
    /// A trace, the folder of a finding, or the folder of a run.
    pub path: PathBuf,
    /// The build to replay on.
    pub build: BuildSpec,
    /// Require that `path` denotes exactly one trace.
    pub one: bool,
    /// Report every event as it happens ([`Event::Step`]).
    pub steps: bool,
    /// Write the packets of internet sockets to this pcap file; for a world, to one file per host, with the name of the
    /// host appended to the file name.
    pub pcap: Option<PathBuf>,
    /// Replay each trace this many times and compare all events of the runs.
    pub times: Option<NonZeroU32>,
}

/// The build of the program that traces are replayed on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BuildSpec {
    /// Native programs to use instead of those that were explored.
    pub on: Vec<OtherBuild>,
    /// Always use the builds that check memory accesses, not only where a finding needs them.
    pub checked: bool,
}

impl BuildSpec {
    /// Whether it is the build that was explored.
    pub fn is_own(&self) -> bool {
        self.on.is_empty() && !self.checked
    }
}

impl ReplaySpec {
    /// A spec for the traces that `path` denotes, on the programs that were explored.
    pub fn new(path: impl Into<PathBuf>) -> ReplaySpec {
        ReplaySpec {
            path: path.into(),
            ..ReplaySpec::default()
        }
    }

    /// Fails if options that apply to a single trace meet several traces.
    pub(crate) fn expect_one(&self, traces: &[PathBuf]) -> Result<()> {
        if self.one || self.pcap.is_some() {
            expect_one(&self.path, traces)?;
        }
        Ok(())
    }
}

/// The only trace that `path` denotes.
pub(crate) fn expect_one<'t>(path: &Path, traces: &'t [PathBuf]) -> Result<&'t PathBuf> {
    match traces {
        [one] => Ok(one),
        _ => bail!(
            Trace,
            "{} has {} traces; name the one to look at",
            path.display(),
            traces.len()
        ),
    }
}

/// The verdict of replaying a trace natively.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The replay ended as the trace says.
    Confirmed,
    /// The replay ended differently, with the reason.
    NotReproduced(String),
    /// The trace could not be replayed, with the reason.
    NotReplayable(String),
}

impl Verdict {
    /// The name in `summary.json`.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::NotReproduced(_) => "not-reproduced",
            Verdict::NotReplayable(_) => "not-replayable",
        }
    }

    /// Why the trace is not confirmed.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Confirmed => None,
            Verdict::NotReproduced(why) | Verdict::NotReplayable(why) => Some(why),
        }
    }
}

/// The result of replaying traces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayResult {
    /// Number of traces.
    pub traces: usize,
    /// Number of confirmed traces.
    pub confirmed: usize,
    /// Whether they are traces of worlds.
    pub are_worlds: bool,
}

/// An observer that several watchers share.
pub(crate) fn shared(observer: &mut dyn Observer) -> RefCell<&mut dyn Observer> {
    RefCell::new(observer)
}

/// A watcher that reports every event of a host as it happens.
pub(crate) struct Steps<'s, 'o> {
    pub(crate) host: Option<String>,
    pub(crate) observer: &'s RefCell<&'o mut dyn Observer>,
}

impl Watcher for Steps<'_, '_> {
    fn event(&mut self, number: usize, line: &str, clock_ns: u64) -> bool {
        self.observer.borrow_mut().event(&Event::Step {
            host: self.host.as_deref(),
            number,
            line,
            clock_ns,
        });
        true
    }
}

/// Replays traces natively.
pub fn replay(
    spec: &ReplaySpec,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<ReplayResult> {
    let (folder, traces) = traces_of(&spec.path)?;
    let mut run = RunSpec::of(&folder)?;
    if run.is_scenario() {
        return crate::world::look::replay(spec, &run, &traces, session, observer);
    }
    run.host.logs_calls = spec.steps;
    let mut config = native_config(&run, &spec.build, session)?;
    config.host.options.logs_packets = spec.pcap.is_some();
    spec.expect_one(&traces)?;
    config.keeps_events = spec.times.is_some();
    let mut others = 0;
    for path in &traces {
        let trace = read_trace(path)?;
        let config = match spec.steps || spec.times.is_some() {
            true => with_points(&config, &trace, &session.notices)?,
            false => config.clone(),
        };
        let Some(expected) = trace.end.clone() else {
            continue;
        };
        if let Some(times) = spec.times {
            let repeats = repeat(&config, &trace, times.get())?;
            let same = repeats.are_same();
            observer.event(&Event::Repeated {
                path,
                times,
                repeats: &repeats,
            });
            if !same {
                others += 1;
                continue;
            }
        }
        let shared = shared(observer);
        let mut steps = Steps {
            host: None,
            observer: &shared,
        };
        let (verdict, seen) =
            replay_watched(&config, trace, &expected, &mut steps, &session.notices)?;
        if let Some(seen) = seen {
            if let Some(file) = &spec.pcap {
                write_packets(file, &config, &seen, observer)?;
            }
            if traces.len() == 1 {
                observer.event(&Event::Output {
                    host: None,
                    streams: &seen.output,
                });
            }
        }
        others += usize::from(verdict != Verdict::Confirmed);
        let verdict = &verdict;
        observer.event(&Event::Replayed { path, verdict });
    }
    Ok(ReplayResult {
        traces: traces.len(),
        confirmed: traces.len() - others,
        are_worlds: false,
    })
}

/// Writes the packets of a replay to a pcap file.
fn write_packets(
    file: &Path,
    config: &NativeConfig,
    seen: &NativeRun,
    observer: &mut dyn Observer,
) -> Result<()> {
    let packets = packets_of(config, seen);
    std::fs::write(file, everett_report::pcap(&packets))
        .with_context(|| format!("cannot write {}", file.display()))?;
    observer.event(&Event::Captured {
        host: None,
        file,
        packets: packets.len(),
    });
    Ok(())
}

/// The configuration of native runs for an exploration.
pub(crate) fn native_config(
    run: &RunSpec,
    build: &BuildSpec,
    session: &Session,
) -> Result<NativeConfig> {
    let explored = explorer_config(run, session, None)?;
    let mut programs = run.on(&build.on)?.native_programs();
    for program in &programs {
        if !program.exists() {
            bail!(Program, "there is no native program {}", program.display());
        }
    }
    if build.checked {
        programs = checked_builds(&programs, Checks::Memory, &session.notices)?;
    }
    Ok(NativeConfig {
        finder: Some(points::finder(run, session)),
        ..native_host_config(program_host(explored), programs, session)?
    })
}

/// The configuration of native runs for a host of a world.
pub(crate) fn native_host_config(
    mut host: HostConfig,
    programs: Vec<PathBuf>,
    session: &Session,
) -> Result<NativeConfig> {
    add_libraries(&mut host, &programs, session)?;
    Ok(NativeConfig {
        host,
        programs,
        max_calls: MAX_CALLS,
        max_long_computations: MAX_LONG_COMPUTATIONS,
        keeps_events: false,
        known_allocators: OnceLock::new(),
        script: None,
        finder: None,
        race_skips: 0,
    })
}

/// Adds the libraries of dynamically linked programs to the files of the host. Files that the run names take
/// precedence.
pub(crate) fn add_libraries(
    host: &mut HostConfig,
    programs: &[PathBuf],
    session: &Session,
) -> Result<()> {
    for path in programs.iter().flat_map(|program| libraries(program)) {
        let here = path.as_os_str().as_encoded_bytes();
        if host.files.iter().all(|file| file.path != here) {
            host.files
                .extend(Mount::same(path).specs(&session.notices)?);
        }
    }
    Ok(())
}

/// Replays one trace and compares its end.
pub(crate) fn replay_one(
    config: &NativeConfig,
    trace: Trace,
    expected: &TraceEnd,
    notices: &Notices,
) -> Result<(Verdict, Option<NativeRun>)> {
    replay_watched(config, trace, expected, &mut NoWatcher, notices)
}

/// Replays one trace with a watcher and compares its end.
fn replay_watched(
    config: &NativeConfig,
    trace: Trace,
    expected: &TraceEnd,
    watcher: &mut dyn Watcher,
    notices: &Notices,
) -> Result<(Verdict, Option<NativeRun>)> {
    match script_of(config, &trace) {
        Some(script) => {
            let tried = replay_scripted(config, &trace, expected, &script, notices)?;
            Ok((tried.verdict, tried.seen))
        }
        None => replay_once(config, trace, expected, watcher, notices),
    }
}

/// The preemption script of a trace: where threads switch between system calls. `None` if they do not, or if the script
/// is already set.
fn script_of(config: &NativeConfig, trace: &Trace) -> Option<Script> {
    if config.script.is_some() || !points::are_possible(config) {
        return None;
    }
    config.finder.as_ref()?(trace)
}

/// A configuration with the preemption script of a trace, for observing its replay. Prefers the script of a run that
/// ends as the trace does.
pub(crate) fn with_points(
    config: &NativeConfig,
    trace: &Trace,
    notices: &Notices,
) -> Result<NativeConfig> {
    let Some(script) = script_of(config, trace) else {
        return Ok(config.clone());
    };
    let script = match &trace.end {
        Some(expected) => replay_scripted(config, trace, expected, &script, notices)?.script,
        None => script,
    };
    Ok(NativeConfig {
        script: Some(script),
        ..config.clone()
    })
}

/// Replays on the native programs. If the end differs, replays on their checked builds where the finding allows it.
fn replay_once(
    config: &NativeConfig,
    trace: Trace,
    expected: &TraceEnd,
    watcher: &mut dyn Watcher,
    notices: &Notices,
) -> Result<(Verdict, Option<NativeRun>)> {
    let (mut plain, mut seen) = try_once(config, trace.clone(), expected, watcher)?;
    if expected.finding.as_deref() == Some("data-race") {
        for race_skips in 1..MAX_SPARED {
            if plain == Verdict::Confirmed {
                break;
            }
            let config = NativeConfig {
                race_skips,
                ..config.clone()
            };
            (plain, seen) = try_once(&config, trace.clone(), expected, watcher)?;
        }
    }
    let (mut why, checks) = match &plain {
        Verdict::NotReproduced(why) | Verdict::NotReplayable(why) => {
            (why.clone(), checks_for(expected))
        }
        Verdict::Confirmed => return Ok((plain, seen)),
    };
    let mut checked = (plain.clone(), None);
    for checks in checks {
        checked = replay_checked(config, trace.clone(), expected, why, *checks, notices)?;
        match &checked.0 {
            Verdict::NotReproduced(other) => why = other.clone(),
            _ => break,
        }
    }
    if checks.is_empty() {
        return Ok((plain, seen));
    }
    let has_diverged = |seen: &NativeRun| matches!(seen.end, NativeEnd::Diverged(_));
    // A run that diverges means that the program differs, unless a checked build shows that a memory error is the
    // cause.
    if seen.as_ref().is_some_and(has_diverged) && checked.0 != Verdict::Confirmed {
        return Ok((plain, seen));
    }
    Ok(checked)
}

fn try_once(
    config: &NativeConfig,
    trace: Trace,
    expected: &TraceEnd,
    watcher: &mut dyn Watcher,
) -> Result<(Verdict, Option<NativeRun>)> {
    match run_watched(config, Source::Trace(Box::new(trace)), watcher) {
        Ok(seen) => Ok((compare(expected, &seen), Some(seen))),
        Err(NativeError::NotReplayable(why)) => Ok((Verdict::NotReplayable(why), None)),
        Err(error) => Err(error).context("the native program could not be run"),
    }
}

/// Replays on checked builds of the programs, since native code survives many memory errors. `why` says how the end of
/// the plain build differs.
fn replay_checked(
    config: &NativeConfig,
    trace: Trace,
    expected: &TraceEnd,
    why: String,
    checks: Checks,
    notices: &Notices,
) -> Result<(Verdict, Option<NativeRun>)> {
    let programs = match checked_builds(&config.programs, checks, notices) {
        Ok(programs) if programs == config.programs => {
            return Ok((Verdict::NotReproduced(why), None));
        }
        Ok(programs) => programs,
        Err(error) => {
            let error = no_checked_build(&error);
            let why = format!("{why}; it has no build that checks {checks}: {error}");
            return Ok((Verdict::NotReproduced(why), None));
        }
    };
    let config = NativeConfig {
        programs,
        known_allocators: OnceLock::new(),
        ..config.clone()
    };
    let (verdict, seen) = try_once(&config, trace, expected, &mut NoWatcher)?;
    Ok(match verdict {
        Verdict::NotReproduced(other) => {
            let why = format!("{why}; in its build that checks {checks}, {other}");
            (Verdict::NotReproduced(why), seen)
        }
        verdict => (verdict, seen),
    })
}

/// Why a program has no checked build, in one line.
fn no_checked_build(error: &ToolchainError) -> String {
    let error = error.to_string();
    match error.lines().find(|line| line.contains("undefined symbol")) {
        // Checked builds are made from bitcode, which does not contain machine code.
        Some(line) => format!(
            "parts of the program are assembly or machine code ({})",
            line.trim()
        ),
        None => error.lines().next().unwrap_or_default().to_owned(),
    }
}

/// The builds of programs that perform certain checks.
pub(crate) fn checked_builds(
    programs: &[PathBuf],
    checks: Checks,
    notices: &Notices,
) -> Result<Vec<PathBuf>, ToolchainError> {
    let notify = |text: &str| notices.tell(text);
    let build = |program: &PathBuf| match (is_checked_build(program), checks) {
        (false, _) => everett_toolchain::checked_build(program, checks, &notify),
        (true, Checks::Memory) => Ok(program.clone()),
        // Builds with other checks lie beside the plain program, too.
        (true, _) => everett_toolchain::checked_build(&program.with_extension(""), checks, &notify),
    };
    programs.iter().map(build).collect()
}

/// The maximum number of native runs with different preemption scripts.
pub(crate) fn most_attempts(is_finding: bool) -> usize {
    match is_finding {
        true => MAX_ATTEMPTS,
        false => MAX_ATTEMPTS_OF_TESTS,
    }
}

/// The reason for a verdict where no attempted preemption script reproduced the end.
pub(crate) fn no_places(tried: usize) -> String {
    format!(
        "threads were preempted between system calls, and none of {tried} native runs with nearby places ended the same"
    )
}

/// The result of trying several preemption scripts.
struct Tried {
    verdict: Verdict,
    seen: Option<NativeRun>,
    /// The script of the run that ended the same; the likeliest script if none did.
    script: Script,
}

/// Replays a trace with preemptions between system calls. Their places are known by source line only, so it tries
/// several nearby places; only a run that ends the same counts.
fn replay_scripted(
    config: &NativeConfig,
    trace: &Trace,
    expected: &TraceEnd,
    script: &Script,
    notices: &Notices,
) -> Result<Tried> {
    let most = most_attempts(expected.finding.is_some());
    let (mut last, mut tried) = (None, 0);
    for attempt in points::attempts(script, most) {
        let config = NativeConfig {
            script: Some(attempt.clone()),
            ..config.clone()
        };
        tried += 1;
        let (verdict, seen) =
            replay_once(&config, trace.clone(), expected, &mut NoWatcher, notices)?;
        if let Verdict::NotReproduced(_) = verdict {
            last = seen;
            continue;
        }
        return Ok(Tried {
            verdict,
            seen,
            script: attempt,
        });
    }
    Ok(Tried {
        verdict: Verdict::NotReplayable(no_places(tried)),
        seen: last,
        script: script.clone(),
    })
}

/// Confirms the trace of a finding natively. Errors become the verdict `NotReplayable`.
pub(crate) fn confirm_one(config: &NativeConfig, trace: Trace, notices: &Notices) -> Verdict {
    let Some(expected) = trace.end.clone() else {
        return Verdict::NotReplayable("the trace does not say how it ends".to_owned());
    };
    match replay_one(config, trace, &expected, notices) {
        Ok((verdict, _)) => verdict,
        Err(error) => Verdict::NotReplayable(error.chain()),
    }
}
