//! `native`: runs native programs under the kernel model without a trace, once or many times. The seed determines the
//! run. Must not know the engine's search.

use everett_engine::{Trace, TraceEnd, digest};
use everett_linux::{HostConfig, Stdin};
use everett_native::{NativeConfig, NativeEnd, NativeRun, Source, Watcher, WorldRun};
use everett_report::Folder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::compare::describe;
use crate::error::{Context, Result, bail};
use crate::host::HostSpec;
use crate::replay::{BuildSpec, MAX_CALLS, MAX_LONG_COMPUTATIONS, add_libraries, native_config};
use crate::session::Session;
use crate::spec::{RunSpec, is_scenario, results_folder};
use crate::world::trace::Wrong;

/// Native programs to run under the kernel model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NativeSpec {
    /// The seed of all choices, such as schedules and faults.
    pub seed: u64,
    /// Number of runs to make and summarise, with consecutive seeds; by default a single run whose output is shown.
    pub runs: Option<NonZeroU32>,
    /// Folder for the findings of many runs; by default the next number below everett-out/.
    pub out: Option<PathBuf>,
    /// Log the system calls of a single run.
    pub logs_calls: bool,
    /// Keys of the scenario to override, with their values.
    pub settings: Vec<(String, String)>,
    /// The host of a single program.
    #[serde(flatten)]
    pub host: HostSpec,
    /// The program and its arguments, or a scenario.
    pub command: Vec<OsString>,
}

impl NativeSpec {
    /// The program, or the scenario.
    pub(crate) fn program(&self) -> &Path {
        Path::new(
            self.command
                .first()
                .map_or("".as_ref(), OsString::as_os_str),
        )
    }

    /// The equivalent spec for other operations.
    pub(crate) fn run(&self) -> RunSpec {
        RunSpec {
            host: self.host.clone(),
            ..RunSpec::new(self.command.clone())
        }
    }
}

/// The result of native runs.
pub enum NativeResult {
    /// One run of a program.
    Program(Box<NativeRun>),
    /// One run of a world, with the finding if there is one.
    World(Box<WorldRun>, Option<Wrong>),
    /// Many runs.
    Many {
        /// The folder of the results.
        folder: PathBuf,
        /// How the runs ended.
        summary: NativeSummary,
        /// Number of distinct ends that are findings.
        findings: u32,
        /// Whether they are runs of a world.
        is_world: bool,
    },
}

/// Runs native programs under the kernel model. A single program reads its standard input from the watcher.
pub fn native(
    spec: &NativeSpec,
    session: &Session,
    watcher: &mut dyn Watcher,
) -> Result<NativeResult> {
    spec.run().expect_command()?;
    if is_scenario(spec.program()) {
        return crate::world::native::native(spec, session);
    }
    if !spec.settings.is_empty() {
        bail!(Usage, "--set is for scenarios");
    }
    match spec.runs {
        Some(runs) => many(spec, session, runs.get()),
        None => Ok(NativeResult::Program(Box::new(one(
            spec, session, watcher,
        )?))),
    }
}

/// Runs a program once as it would run on Linux: faults go to signal handlers, and the crash of a child does not end
/// its parent.
fn one(spec: &NativeSpec, session: &Session, watcher: &mut dyn Watcher) -> Result<NativeRun> {
    let mut host = HostConfig {
        args: spec
            .command
            .iter()
            .map(|word| everett_linux::Argument::Concrete(word.as_bytes().to_vec()))
            .collect(),
        stdin: Stdin::Live,
        ..HostConfig::default()
    };
    host.options.logs_calls = spec.logs_calls;
    host.options.crashes_end_all = false;
    host.options.faults_to_handlers = true;
    spec.host.apply(&mut host, session)?;
    let programs = spec.host.native_programs(spec.program());
    add_libraries(&mut host, &programs, session)?;
    let config = NativeConfig {
        host,
        programs,
        max_calls: MAX_CALLS,
        max_long_computations: MAX_LONG_COMPUTATIONS,
        keeps_events: false,
        known_allocators: OnceLock::new(),
        script: None,
        finder: None,
        race_skips: 0,
    };
    let source = Source::Random(spec.seed);
    Ok(everett_native::run_watched(&config, source, watcher)?)
}

/// A group of runs that ended the same.
#[derive(Clone, Debug, Serialize)]
pub struct Ended {
    /// A description of the end.
    pub end: String,
    /// Number of runs.
    pub runs: u32,
    /// The first seed with this end.
    pub seed: u64,
    /// The folder of its trace, if the end is a finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// The contents of `summary.json` for many runs.
#[derive(Clone, Debug, Serialize)]
pub struct NativeSummary {
    /// Number of runs.
    pub runs: u32,
    /// The first seed.
    pub seed: u64,
    /// Total number of system calls.
    pub calls: u64,
    /// How the runs ended.
    pub ends: Vec<Ended>,
    /// Wall-clock time of all runs.
    pub wall_seconds: f64,
}

fn many(spec: &NativeSpec, session: &Session, runs: u32) -> Result<NativeResult> {
    let mut run = spec.run();
    run.host.schedule_at_random();
    let config = native_config(&run, &BuildSpec::default(), session)?;
    let folder = results_folder(spec.out.as_deref())?;
    run.write(&folder)?;
    let started = session.now();
    let mut ends: BTreeMap<String, Ended> = BTreeMap::new();
    let (mut findings, mut calls) = (0, 0);
    for number in 0..runs {
        let seed = spec.seed.wrapping_add(u64::from(number));
        let seen = everett_native::run(&config, Source::Random(seed))
            .with_context(|| format!("seed {seed}"))?;
        calls += seen.calls;
        let end = describe(&seen);
        if let Some(known) = ends.get_mut(&end) {
            known.runs += 1;
            continue;
        }
        let finding = match end_of(&seen) {
            Some(expected) if is_finding(&expected) => {
                findings += 1;
                Some(write_finding(&folder, findings, seen.trace, expected)?)
            }
            _ => None,
        };
        let ended = Ended {
            end: end.clone(),
            runs: 1,
            seed,
            finding,
        };
        ends.insert(end, ended);
    }
    let summary = NativeSummary {
        runs,
        seed: spec.seed,
        calls,
        ends: ends.into_values().collect(),
        wall_seconds: (session.now() - started).as_secs_f64(),
    };
    folder.write("summary.json", &serde_json::to_vec_pretty(&summary)?)?;
    Ok(NativeResult::Many {
        folder: folder.path().to_owned(),
        summary,
        findings,
        is_world: false,
    })
}

/// The end of a run in the form that traces record; `None` if it has no such end, for instance because it diverged.
pub(crate) fn end_of(seen: &NativeRun) -> Option<TraceEnd> {
    let output = [0, 1].map(|at| digest(&seen.output[at]));
    let end = TraceEnd {
        output,
        ..TraceEnd::default()
    };
    Some(match &seen.end {
        NativeEnd::Exit(status) => TraceEnd {
            exit: Some(*status),
            ..end
        },
        NativeEnd::Signal { signal, .. } => TraceEnd {
            signal: Some(*signal),
            ..end
        },
        NativeEnd::Finding { kind, .. } => TraceEnd {
            finding: Some(kind.clone()),
            ..end
        },
        NativeEnd::Hang => TraceEnd {
            finding: Some("hang".to_owned()),
            ..end
        },
        NativeEnd::Idle => TraceEnd { idle: true, ..end },
        NativeEnd::Diverged(_) | NativeEnd::Stopped | NativeEnd::Off => return None,
    })
}

fn is_finding(end: &TraceEnd) -> bool {
    end.finding.is_some() || end.signal.is_some()
}

fn write_finding(folder: &Folder, number: u32, trace: Trace, end: TraceEnd) -> Result<String> {
    let place = format!("findings/{number:04}");
    std::fs::create_dir_all(folder.path().join(&place))?;
    let trace = Trace {
        end: Some(end),
        ..trace
    };
    let text = serde_json::to_vec(&trace)?;
    folder.write(&format!("{place}/finding.trace"), &text)?;
    Ok(place)
}
