//! `native`: real programs under the kernel model without a trace, once or many times. The same seed is the same run.
//! Must not know the engine's search.

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

/// Native programs that run under the kernel model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NativeSpec {
    /// Seed of all choices: schedules and failures.
    pub seed: u64,
    /// How many runs are made and reported, with this seed and those that follow; one that is shown if it is not said.
    pub runs: Option<NonZeroU32>,
    /// Folder for what many runs find; the next number below everett-out/ if there is none.
    pub out: Option<PathBuf>,
    /// System calls of the one run are logged.
    pub logs_calls: bool,
    /// Keys of a scenario that stand above those that it has, with their values.
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

    /// A run of it, as other operations know them.
    pub(crate) fn run(&self) -> RunSpec {
        RunSpec {
            host: self.host.clone(),
            ..RunSpec::new(self.command.clone())
        }
    }
}

/// What came of native runs.
pub enum NativeResult {
    /// Of one run of a program.
    Program(Box<NativeRun>),
    /// Of one run of a world, with what is wrong with it.
    World(Box<WorldRun>, Option<Wrong>),
    /// Of many runs.
    Many {
        /// Where they are written.
        folder: PathBuf,
        /// How they ended.
        summary: NativeSummary,
        /// How many of the ends are findings.
        findings: u32,
        /// They are runs of a world.
        is_world: bool,
    },
}

/// Runs native programs under the model. A single program asks the watcher for its standard input.
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

/// Goes as it would natively: handlers get their faults, and if a child crashes that is its parent's affair.
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

/// Runs that ended the same.
#[derive(Clone, Debug, Serialize)]
pub struct Ended {
    /// How, for people.
    pub end: String,
    /// How many.
    pub runs: u32,
    /// The first of their seeds.
    pub seed: u64,
    /// Where its trace lies, if something is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// What `summary.json` says about many runs.
#[derive(Clone, Debug, Serialize)]
pub struct NativeSummary {
    /// How many.
    pub runs: u32,
    /// The first seed.
    pub seed: u64,
    /// System calls of all.
    pub calls: u64,
    /// How they ended.
    pub ends: Vec<Ended>,
    /// How long it took.
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

/// How a run ended, as traces have it.
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
