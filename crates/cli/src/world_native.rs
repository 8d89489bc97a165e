//! `everett native SCENARIO.toml`: worlds of real programs without traces. What goes wrong between hosts, and who runs when, is
//! chosen at random; the same seed is the same run.

use anyhow::{Context, Result};
use everett_engine::{Trace, TraceEnd, digest};
use everett_native::{Guide, NativeEnd, NativeRun, NoWatcher, Source, WorldRun};
use everett_report::Folder;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use crate::compare::describe;
use crate::native::{Ended, NativeArgs, Summary, end_of};
use crate::replay::BuildArgs;
use crate::run::RunArgs;
use crate::world_chart::messages_files;
use crate::world_look::print_output;
use crate::world_output::others;
use crate::world_replay::{NativeWorld, Wanted};
use crate::world_trace::{WorldTrace, Wrong};
use crate::{EXIT_CLEAN, EXIT_FINDINGS};

/// Runs worlds; exit code 1 if something is wrong with one of them.
pub fn native(args: &NativeArgs) -> Result<u8> {
    let mut run = RunArgs::of_native(args.host.clone(), &args.command)?;
    run.set(&args.settings);
    run.refuse_what_scenarios_say()?;
    let mut world = NativeWorld::of(&run, &BuildArgs::default())?;
    match args.runs {
        None => one(args, world),
        Some(runs) => {
            // As with single programs: threads take turns at random unless the scenario says how they do.
            let mut hosts = world.scenario.hosts.iter();
            if hosts.all(|host| host.scheduler.is_none() && host.preempt.is_none()) {
                let settings = [("scheduler", "exhaustive"), ("preempt", "syscalls")];
                let settings =
                    settings.map(|(key, value)| (format!("defaults.{key}"), value.to_owned()));
                run.set(&settings);
                world = NativeWorld::of(&run, &BuildArgs::default())?;
            }
            many(args, &run, &world, runs.get())
        }
    }
}

/// Makes one run.
fn run_once(world: &NativeWorld, seed: u64) -> Result<WorldRun> {
    let hosts = world.seeded(seed);
    let mut watchers: Vec<NoWatcher> = hosts.iter().map(|_| NoWatcher).collect();
    let guided = (1u64..).zip(&hosts).zip(&mut watchers);
    let guides = guided.map(|((number, host), watcher)| {
        // Hosts draw from sources that have nothing to do with each other.
        let seed = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let source = match &host.begin {
            Some(begin) => Source::Begun(Box::new(Trace::clone(begin)), seed),
            None => Source::Random(seed),
        };
        Guide { source, watcher }
    });
    let seen = world.run(&hosts, guides.collect(), Wanted::AnyInvariant);
    seen.with_context(|| format!("seed {seed}"))
}

fn one(args: &NativeArgs, mut world: NativeWorld) -> Result<u8> {
    for host in &mut world.hosts {
        host.config.host.options.logs_calls = args.strace;
    }
    let seen = run_once(&world, args.seed)?;
    for (name, run) in &seen.hosts {
        for line in &run.log {
            eprintln!("{name} {line}");
        }
    }
    print_output(&seen)?;
    Ok(match world.wrong_with(&seen) {
        None => EXIT_CLEAN,
        Some(wrong) => {
            eprintln!(
                "everett: host {}: {}: {}",
                wrong.host, wrong.kind, wrong.message
            );
            EXIT_FINDINGS
        }
    })
}

fn many(args: &NativeArgs, run: &RunArgs, world: &NativeWorld, runs: u32) -> Result<u8> {
    let folder = match &args.out {
        Some(path) => Folder::create(path)?,
        None => Folder::next(Path::new("everett-out"))?,
    };
    folder.write("args.json", &serde_json::to_vec(run)?)?;
    let started = Instant::now();
    let mut ends: BTreeMap<String, Ended> = BTreeMap::new();
    let (mut findings, mut calls) = (0, 0);
    for number in 0..runs {
        let seed = args.seed.wrapping_add(u64::from(number));
        let seen = run_once(world, seed)?;
        calls += seen.hosts.values().map(|host| host.calls).sum::<u64>();
        let wrong = world.wrong_with(&seen);
        let end = end_of_world(&seen, wrong.as_ref());
        if let Some(known) = ends.get_mut(&end) {
            known.runs += 1;
            continue;
        }
        let finding = match wrong {
            Some(wrong) => {
                findings += 1;
                let place = format!("findings/{findings:04}");
                write_finding(&folder, &place, world, (seed, &seen), wrong)?;
                Some(place)
            }
            None => None,
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
    summary.print(folder.path(), findings, "");
    Ok(match findings {
        0 => EXIT_CLEAN,
        _ => EXIT_FINDINGS,
    })
}

/// How a world ended, for people.
fn end_of_world(seen: &WorldRun, wrong: Option<&Wrong>) -> String {
    if let Some(wrong) = wrong {
        return format!("host {}: {}: {}", wrong.host, wrong.kind, wrong.message);
    }
    let hosts = seen.hosts.iter();
    let mut ends: Vec<String> = hosts
        .map(|(name, run)| format!("{name} {}", describe(run)))
        .collect();
    if seen.is_cut {
        ends.push("cut off at the limit of virtual time".to_owned());
    }
    ends.join(", ")
}

/// The end of the host that something is wrong on.
fn end_of_host(run: &NativeRun, wrong: &Wrong) -> TraceEnd {
    let own = end_of(run).filter(|end| end.finding.is_some() || end.signal.is_some());
    own.unwrap_or_else(|| TraceEnd {
        finding: Some(wrong.kind.clone()),
        output: [0, 1].map(|at| digest(&run.output[at])),
        ..TraceEnd::default()
    })
}

fn write_finding(
    folder: &Folder,
    place: &str,
    world: &NativeWorld,
    (seed, seen): (u64, &WorldRun),
    wrong: Wrong,
) -> Result<()> {
    let mut hosts: BTreeMap<String, Trace> = BTreeMap::new();
    for (name, run) in &seen.hosts {
        let mut trace = run.trace.clone();
        if *name == wrong.host {
            trace.end = Some(end_of_host(run, &wrong));
        }
        hosts.insert(name.clone(), trace);
    }
    let mut text = format!(
        "{}: {}\non host {}\n",
        wrong.kind, wrong.message, wrong.host
    );
    text.push_str(&others(&hosts, ""));
    for (name, run) in &seen.hosts {
        let time = run.clock_ns as f64 / 1e9;
        // A world that came to what is wrong with it was not run any further.
        let end = match run.end {
            NativeEnd::Idle if seen.broken_on.is_some() => "has not ended".to_owned(),
            _ => describe(run),
        };
        text.push_str(&format!("\nhost {name} at {time:.6} s: {end}\n"));
        for (what, bytes) in ["stdout", "stderr"].iter().zip(&run.output) {
            if !bytes.is_empty() {
                text.push_str(&format!("{what}:\n{}\n", String::from_utf8_lossy(bytes)));
            }
        }
    }
    let trace = WorldTrace {
        hosts,
        finding: Some(wrong),
        random_seed: Some(seed),
    };
    let trace = serde_json::to_vec(&trace)?;
    folder.write(&format!("{place}/finding.world"), &trace)?;
    folder.write(&format!("{place}/finding.txt"), text.as_bytes())?;
    for (name, bytes) in messages_files(&world.scenario.topology, &seen.messages) {
        folder.write(&format!("{place}/{name}"), &bytes)?;
    }
    Ok(())
}
