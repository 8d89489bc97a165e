//! `everett native`: real programs under the kernel model without a trace, once or many times. The same seed is the
//! same run.

use anyhow::{Context, Result};
use everett_engine::{Trace, TraceEnd, digest};
use everett_linux::{HostConfig, Stdin};
use everett_native::{NativeConfig, NativeEnd, NativeRun, Source, Watcher};
use everett_report::Folder;
use everett_vm::BugKind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use crate::compare::describe;
use crate::host_args::HostArgs;
use crate::replay::{BuildArgs, MAX_CALLS, MAX_LONG_COMPUTATIONS, add_libraries, native_config};
use crate::run::RunArgs;
use crate::scenario::parse_setting;
use crate::step::print_log;
use crate::world::is_scenario;
use crate::{EXIT_CLEAN, EXIT_ERROR, EXIT_FINDINGS};

/// What `everett native` is told.
#[derive(clap::Args)]
pub struct NativeArgs {
    /// Seed of all choices: schedules and failures.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Run so many times, with this seed and those that follow, and report how the runs ended. Unless told otherwise,
    /// threads are scheduled at random before system calls.
    #[arg(long, value_name = "N")]
    pub runs: Option<std::num::NonZeroU32>,
    /// Folder for what many runs find; default: the next number below everett-out/.
    #[arg(long, value_name = "DIR", requires = "runs")]
    pub out: Option<PathBuf>,
    /// Print system calls to stderr, as strace does.
    #[arg(long)]
    pub strace: bool,
    /// Where it is a scenario: a key of it and its value, such as host.server.args='["-p", "80"]'.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_setting)]
    pub settings: Vec<(String, String)>,
    /// The host of a single program.
    #[command(flatten)]
    pub host: HostArgs,
    /// The program and its arguments, or a scenario: a file that ends in .toml.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

/// Runs native programs under the model. The exit code of one run is ours; many give 1 if something was found.
pub fn native(args: &NativeArgs) -> Result<u8> {
    if is_scenario(Path::new(&args.command[0])) {
        return crate::world_native::native(args);
    }
    if !args.settings.is_empty() {
        anyhow::bail!("--set is for scenarios");
    }
    match args.runs {
        Some(runs) => many(args, runs.get()),
        None => one(args),
    }
}

/// As shells report SIGABRT.
const ABORTED: u8 = 128 + 6;

/// The program's standard input is ours.
struct OurInput;

impl Watcher for OurInput {
    fn input(&mut self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 65536];
        // Where ours cannot be read, its end has come.
        let count = std::io::stdin().read(&mut bytes).unwrap_or(0);
        bytes.truncate(count);
        Some(bytes)
    }
}

/// Goes as it would natively: handlers get their faults, and if a child crashes that is its parent's affair.
fn one(args: &NativeArgs) -> Result<u8> {
    let mut host = HostConfig {
        args: args
            .command
            .iter()
            .map(|word| everett_linux::Argument::Concrete(word.as_bytes().to_vec()))
            .collect(),
        stdin: Stdin::Live,
        ..HostConfig::default()
    };
    host.options.logs_calls = args.strace;
    host.options.crashes_end_all = false;
    host.options.faults_to_handlers = true;
    args.host.apply(&mut host)?;
    let programs = args.host.native_programs(Path::new(&args.command[0]));
    add_libraries(&mut host, &programs)?;
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
    let source = Source::Random(args.seed);
    let seen = everett_native::run_watched(&config, source, &mut OurInput)?;
    print_log(&seen.log);
    std::io::stdout().write_all(&seen.output[0])?;
    std::io::stderr().write_all(&seen.output[1])?;
    Ok(match seen.end {
        NativeEnd::Exit(status) => status as u8,
        NativeEnd::Signal { signal, .. } => {
            eprintln!("everett: the program {}", describe(&seen));
            128 + signal as u8
        }
        NativeEnd::Idle => EXIT_CLEAN,
        ref end => {
            eprintln!("everett: the program {}", describe(&seen));
            match end {
                // The model calls that by its name; who started the program sees a signal.
                NativeEnd::Finding { kind, .. } if *kind == BugKind::Abort.name() => ABORTED,
                _ => EXIT_ERROR,
            }
        }
    })
}

/// Runs that ended the same.
#[derive(Serialize)]
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
#[derive(Serialize)]
pub struct Summary {
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

fn many(args: &NativeArgs, runs: u32) -> Result<u8> {
    let mut host = args.host.clone();
    host.schedule_at_random();
    let run = RunArgs::of_native(host, &args.command)?;
    let config = native_config(&run, &BuildArgs::default())?;
    let folder = match &args.out {
        Some(path) => Folder::create(path)?,
        None => Folder::next(Path::new("everett-out"))?,
    };
    folder.write("args.json", &serde_json::to_vec(&run)?)?;
    let started = Instant::now();
    let mut ends: BTreeMap<String, Ended> = BTreeMap::new();
    let (mut findings, mut calls) = (0, 0);
    for number in 0..runs {
        let seed = args.seed.wrapping_add(u64::from(number));
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
    let summary = Summary {
        runs,
        seed: args.seed,
        calls,
        ends: ends.into_values().collect(),
        wall_seconds: started.elapsed().as_secs_f64(),
    };
    folder.write("summary.json", &serde_json::to_vec_pretty(&summary)?)?;
    summary.print(folder.path(), findings, "the program ");
    Ok(match findings {
        0 => EXIT_CLEAN,
        _ => EXIT_FINDINGS,
    })
}

impl Summary {
    /// Prints it; `who` it is that ends.
    pub fn print(&self, folder: &Path, findings: u32, who: &str) {
        println!(
            "{} runs, {} distinct ends, {findings} findings, {:.2} s, {:.0} runs/s, {:.0} system calls/s",
            self.runs,
            self.ends.len(),
            self.wall_seconds,
            f64::from(self.runs) / self.wall_seconds,
            self.calls as f64 / self.wall_seconds,
        );
        for ended in &self.ends {
            let place = match &ended.finding {
                Some(place) => format!(": {}", folder.join(place).display()),
                None => String::new(),
            };
            println!(
                "{:>8} {who}{} (first with seed {}){place}",
                ended.runs, ended.end, ended.seed
            );
        }
    }
}

/// How a run ended, as traces have it.
pub fn end_of(seen: &NativeRun) -> Option<TraceEnd> {
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
