//! `everett replay`: traces happen again on the native program. `everett native` runs native
//! programs under the model without a trace.

use anyhow::{Context, Result};
use everett_engine::{Trace, TraceEnd};
use everett_linux::HostConfig;
use everett_native::{
    NativeConfig, NativeEnd, NativeError, NativeRun, NoWatcher, Script, Source, Watcher,
    is_checked_build, libraries, run_watched,
};
use everett_toolchain::{Checks, ToolchainError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::compare::{checks_for, compare};
use crate::follow::{read_trace, traces_of};
use crate::layers::Mount;
use crate::load::OtherBuild;
use crate::points;
use crate::repeat::repeat;
use crate::run::{RunArgs, explorer_config};
use crate::step::{LookArgs, Pace, look, write_packets};
use crate::world::is_scenario;
use crate::{EXIT_CLEAN, EXIT_FINDINGS};

/// Native runs for a finding whose threads were preempted between system calls.
const MAX_ATTEMPTS: usize = 50;
/// The same for a path that ended well.
const MAX_ATTEMPTS_OF_TESTS: usize = 9;
/// Native runs for a race, each of which holds a thread before another access.
const MAX_SPARED: u32 = 20;
/// System calls of a replay before it counts as a hang.
pub const MAX_CALLS: u64 = 1_000_000;
/// Stretches of 50 ms that a program computes before a replay counts as a hang.
pub const MAX_LONG_COMPUTATIONS: u32 = 40;

/// What `everett replay` is told.
#[derive(clap::Args)]
pub struct ReplayArgs {
    /// A trace, the folder of a finding, or the folder of a run.
    pub path: PathBuf,
    /// How it is looked at.
    #[command(flatten)]
    pub look: LookArgs,
    /// On which build.
    #[command(flatten)]
    pub build: BuildArgs,
    /// Replay each trace so many times and compare everything that happens, event by event.
    #[arg(long, value_name = "N")]
    pub times: Option<std::num::NonZeroU32>,
}

/// Which build of the program traces are replayed on.
#[derive(clap::Args, Clone, Default)]
pub struct BuildArgs {
    /// Replay on this native program instead of the one that was explored: another build of the same source, or a
    /// newer one. With PATH, instead of the one that the run has there (`--program`); of a world, instead of that of
    /// a host or group of hosts.
    #[arg(long, value_name = "[PATH=]PROGRAM", value_parser = OtherBuild::parse)]
    pub on: Vec<OtherBuild>,
    /// Replay on the builds that check every access to memory, not only where a finding needs them.
    #[arg(long)]
    pub checked: bool,
}

impl BuildArgs {
    /// It is the one that was explored.
    pub fn is_own(&self) -> bool {
        self.on.is_empty() && !self.checked
    }
}

impl ReplayArgs {
    /// Only one trace can be looked at closely.
    pub fn expect_one(&self, traces: &[PathBuf]) -> Result<()> {
        if self.look.is_about_one() && traces.len() != 1 {
            anyhow::bail!(
                "{} has {} traces; name the one to look at",
                self.path.display(),
                traces.len()
            );
        }
        Ok(())
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

    /// Prints what became of a trace. Returns whether it happened again.
    pub fn tell(&self, path: &Path) -> bool {
        let name = self.name();
        match self.reason() {
            None => println!("{}: {name}", path.display()),
            Some(why) => println!("{}: {name}: {why}", path.display()),
        }
        self.reason().is_none()
    }
}

/// Replays traces natively; exit code 1 if one of them ends otherwise.
pub fn replay(args: &ReplayArgs) -> Result<u8> {
    let (folder, traces) = traces_of(&args.path)?;
    let mut run = RunArgs::of(&folder)?;
    if is_scenario(run.program()) {
        return crate::world_look::replay(args, &run, &traces);
    }
    if args.look.needs_log() {
        run.log_calls();
    }
    let mut config = native_config(&run, &args.build)?;
    config.host.options.logs_packets = args.look.pcap.is_some();
    args.expect_one(&traces)?;
    config.keeps_events = args.times.is_some();
    let mut others = 0;
    for path in &traces {
        let trace = read_trace(path)?;
        let config = match args.look.needs_log() || args.times.is_some() {
            true => with_points(&config, &trace)?,
            false => config.clone(),
        };
        if args.look.gdb.is_some() || args.look.step {
            look(&args.look, &config, &trace)?;
            return Ok(EXIT_CLEAN);
        }
        let Some(expected) = trace.end.clone() else {
            continue;
        };
        if let Some(times) = args.times {
            let seen = repeat(&config, &trace, times.get())?;
            if !seen.tell(path, times) {
                others += 1;
                continue;
            }
        }
        let mut pace = Pace::new(&args.look);
        let (verdict, seen) = replay_watched(&config, trace, &expected, &mut pace)?;
        if let Some(seen) = seen {
            if let Some(file) = &args.look.pcap {
                write_packets(file, &config, &seen)?;
            }
            if traces.len() == 1 {
                std::io::stdout().write_all(&seen.output[0])?;
                std::io::stderr().write_all(&seen.output[1])?;
            }
        }
        others += usize::from(!verdict.tell(path));
    }
    Ok(confirmed_of(traces.len(), others, "traces"))
}

/// Says how many of them happened again; the exit code.
pub fn confirmed_of(count: usize, others: usize, what: &str) -> u8 {
    println!("{} of {count} {what} confirmed", count - others);
    if others == 0 {
        EXIT_CLEAN
    } else {
        EXIT_FINDINGS
    }
}

/// What a native run of an exploration is told.
pub fn native_config(run: &RunArgs, build: &BuildArgs) -> Result<NativeConfig> {
    let explored = explorer_config(run, None)?;
    let mut programs = run.on(&build.on)?.native_programs();
    for program in &programs {
        if !program.exists() {
            anyhow::bail!("there is no native program {}", program.display());
        }
    }
    if build.checked {
        programs = checked_builds(&programs, Checks::Memory)?;
    }
    Ok(NativeConfig {
        finder: Some(points::finder(run)),
        ..native_host_config(explored.host, programs)?
    })
}

/// The same for a host of a world.
pub fn native_host_config(mut host: HostConfig, programs: Vec<PathBuf>) -> Result<NativeConfig> {
    add_libraries(&mut host, &programs)?;
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
pub fn add_libraries(host: &mut HostConfig, programs: &[PathBuf]) -> Result<()> {
    for path in programs.iter().flat_map(|program| libraries(program)) {
        let here = path.as_os_str().as_encoded_bytes();
        if host.files.iter().all(|file| file.path != here) {
            host.files.extend(Mount::same(path).specs()?);
        }
    }
    Ok(())
}

/// Replays one trace and compares its end.
pub fn replay_one(
    config: &NativeConfig,
    trace: Trace,
    expected: &TraceEnd,
) -> Result<(Verdict, Option<NativeRun>)> {
    replay_watched(config, trace, expected, &mut NoWatcher)
}

/// The same while somebody looks.
fn replay_watched(
    config: &NativeConfig,
    trace: Trace,
    expected: &TraceEnd,
    watcher: &mut dyn Watcher,
) -> Result<(Verdict, Option<NativeRun>)> {
    match script_of(config, &trace) {
        Some(script) => {
            let tried = replay_scripted(config, &trace, expected, &script)?;
            Ok((tried.verdict, tried.seen))
        }
        None => replay_once(config, trace, expected, watcher),
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
fn with_points(config: &NativeConfig, trace: &Trace) -> Result<NativeConfig> {
    let Some(script) = script_of(config, trace) else {
        return Ok(config.clone());
    };
    let script = match &trace.end {
        Some(expected) => replay_scripted(config, trace, expected, &script)?.script,
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
        checked = replay_checked(config, trace.clone(), expected, why, *checks)?;
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
) -> Result<(Verdict, Option<NativeRun>)> {
    let programs = match checked_builds(&config.programs, checks) {
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
pub fn checked_builds(
    programs: &[PathBuf],
    checks: Checks,
) -> Result<Vec<PathBuf>, ToolchainError> {
    let build = |program: &PathBuf| match (is_checked_build(program), checks) {
        (false, _) => everett_toolchain::checked_build(program, checks),
        (true, Checks::Memory) => Ok(program.clone()),
        // The build that looks at something else lies beside the program, too.
        (true, _) => everett_toolchain::checked_build(&program.with_extension(""), checks),
    };
    programs.iter().map(build).collect()
}

/// Native runs with places at which threads take turns, at most.
pub fn most_attempts(is_finding: bool) -> usize {
    match is_finding {
        true => MAX_ATTEMPTS,
        false => MAX_ATTEMPTS_OF_TESTS,
    }
}

/// Why what happened is not said to happen natively though it may.
pub fn no_places(tried: usize) -> String {
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
) -> Result<Tried> {
    let most = most_attempts(expected.finding.is_some());
    let (mut last, mut tried) = (None, 0);
    for attempt in points::attempts(script, most) {
        let config = NativeConfig {
            script: Some(attempt.clone()),
            ..config.clone()
        };
        tried += 1;
        let (verdict, seen) = replay_once(&config, trace.clone(), expected, &mut NoWatcher)?;
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
pub fn confirm_one(config: &NativeConfig, trace: Trace) -> Verdict {
    let Some(expected) = trace.end.clone() else {
        return Verdict::NotReplayable("the trace does not say how it ends".to_owned());
    };
    match replay_one(config, trace, &expected) {
        Ok((verdict, _)) => verdict,
        Err(error) => Verdict::NotReplayable(format!("{error:#}")),
    }
}
