//! `replay`: traces happen again on native programs, under the same kernel model. Owns the verdict on a trace and how
//! it comes about; must not know who looks at a replay.

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

/// Native runs for a finding whose threads were preempted between system calls.
const MAX_ATTEMPTS: usize = 50;
/// The same for a path that ended well.
const MAX_ATTEMPTS_OF_TESTS: usize = 9;
/// Native runs for a race, each of which holds a thread before another access.
const MAX_SPARED: u32 = 20;
/// System calls of a replay before it counts as a hang.
pub(crate) const MAX_CALLS: u64 = 1_000_000;
/// Stretches of 50 ms that a program computes before a replay counts as a hang.
pub(crate) const MAX_LONG_COMPUTATIONS: u32 = 40;

/// Which traces are replayed, and how.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplaySpec {
    /// A trace, the folder of a finding, or the folder of a run.
    pub path: PathBuf,
    /// On which build.
    pub build: BuildSpec,
    /// It has to be one trace.
    pub one: bool,
    /// Every event is told when it happens ([`Event::Step`]).
    pub steps: bool,
    /// What internet sockets send each other is written to this file; for a world, to a file for each host, whose name
    /// has that of the host behind this one.
    pub pcap: Option<PathBuf>,
    /// Each trace is replayed so many times, and everything that happens is compared.
    pub times: Option<NonZeroU32>,
}

/// Which build of the program traces are replayed on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BuildSpec {
    /// Other native programs than those that were explored.
    pub on: Vec<OtherBuild>,
    /// The builds that check every access to memory, not only where a finding needs them.
    pub checked: bool,
}

impl BuildSpec {
    /// It is the one that was explored.
    pub fn is_own(&self) -> bool {
        self.on.is_empty() && !self.checked
    }
}

impl ReplaySpec {
    /// The traces that a path leads to, on the programs that were explored.
    pub fn new(path: impl Into<PathBuf>) -> ReplaySpec {
        ReplaySpec {
            path: path.into(),
            ..ReplaySpec::default()
        }
    }

    /// Only one trace can be looked at closely.
    pub(crate) fn expect_one(&self, traces: &[PathBuf]) -> Result<()> {
        if self.one || self.pcap.is_some() {
            expect_one(&self.path, traces)?;
        }
        Ok(())
    }
}

/// The only trace that a path leads to.
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

/// Whether a trace happened again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It ended the same.
    Confirmed,
    /// It ended otherwise.
    NotReproduced(String),
    /// It could not be tried.
    NotReplayable(String),
}

impl Verdict {
    /// As `summary.json` has it.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::NotReproduced(_) => "not-reproduced",
            Verdict::NotReplayable(_) => "not-replayable",
        }
    }

    /// Why not.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Confirmed => None,
            Verdict::NotReproduced(why) | Verdict::NotReplayable(why) => Some(why),
        }
    }
}

/// What came of replaying traces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayResult {
    /// How many there are.
    pub traces: usize,
    /// How many of them happened again.
    pub confirmed: usize,
    /// They are traces of worlds.
    pub are_worlds: bool,
}

/// An observer that several watchers tell of what happens.
pub(crate) fn shared(observer: &mut dyn Observer) -> RefCell<&mut dyn Observer> {
    RefCell::new(observer)
}

/// Tells of every event of a host when it happens.
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

/// Writes the packets of a replay.
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

/// What a native run of an exploration is told.
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

/// The same for a host of a world.
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

/// Lets the host have the libraries of dynamic programs, behind all that the run says about its files.
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

/// The same while somebody looks.
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

/// Where threads take turns between system calls on the path of a trace, if they do and it is not known yet.
fn script_of(config: &NativeConfig, trace: &Trace) -> Option<Script> {
    if config.script.is_some() || !points::are_possible(config) {
        return None;
    }
    config.finder.as_ref()?(trace)
}

/// What a native run is told so that threads take turns where they do on the path of a trace, for whoever looks at it:
/// as in the run that ends as the trace does.
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

/// Replays on the programs, and where they do not end the same though they should, on their checked builds.
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
    // Who asks for something else is another program, unless an error in memory has led it astray.
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

/// Replays on checked builds of the programs: native code survives many errors in memory. `why` the programs
/// themselves do not end the same.
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

/// Why a program has no checked build, in a line.
fn no_checked_build(error: &ToolchainError) -> String {
    let error = error.to_string();
    match error.lines().find(|line| line.contains("undefined symbol")) {
        // It is made from bitcode, which machine code is not in.
        Some(line) => format!(
            "parts of the program are assembly or machine code ({})",
            line.trim()
        ),
        None => error.lines().next().unwrap_or_default().to_owned(),
    }
}

/// The builds of programs that look at something.
pub(crate) fn checked_builds(
    programs: &[PathBuf],
    checks: Checks,
    notices: &Notices,
) -> Result<Vec<PathBuf>, ToolchainError> {
    let notify = |text: &str| notices.tell(text);
    let build = |program: &PathBuf| match (is_checked_build(program), checks) {
        (false, _) => everett_toolchain::checked_build(program, checks, &notify),
        (true, Checks::Memory) => Ok(program.clone()),
        // The build that looks at something else lies beside the program, too.
        (true, _) => everett_toolchain::checked_build(&program.with_extension(""), checks, &notify),
    };
    programs.iter().map(build).collect()
}

/// Native runs with places at which threads take turns, at most.
pub(crate) fn most_attempts(is_finding: bool) -> usize {
    match is_finding {
        true => MAX_ATTEMPTS,
        false => MAX_ATTEMPTS_OF_TESTS,
    }
}

/// Why what happened is not said to happen natively though it may.
pub(crate) fn no_places(tried: usize) -> String {
    format!(
        "threads were preempted between system calls, and none of {tried} native runs with nearby places ended the same"
    )
}

/// What came of trying several places at which threads take turns.
struct Tried {
    verdict: Verdict,
    seen: Option<NativeRun>,
    /// The places of the run that ended the same; the likeliest ones if none did.
    script: Script,
}

/// Threads were preempted between system calls. Where that was is known by the line, so several places are tried; only
/// a run that ends the same counts.
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

/// Replays the trace of a finding. What cannot be tried is no error.
pub(crate) fn confirm_one(config: &NativeConfig, trace: Trace, notices: &Notices) -> Verdict {
    let Some(expected) = trace.end.clone() else {
        return Verdict::NotReplayable("the trace does not say how it ends".to_owned());
    };
    match replay_one(config, trace, &expected, notices) {
        Ok((verdict, _)) => verdict,
        Err(error) => Verdict::NotReplayable(error.chain()),
    }
}
