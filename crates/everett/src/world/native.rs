//! `native` for scenarios: runs worlds of native programs without traces. Network faults and schedules are random; the
//! same seed gives the same run.

use everett_engine::{Trace, TraceEnd, digest};
use everett_native::{Guide, NativeEnd, NativeRun, NoWatcher, Source, WorldRun};
use everett_report::Folder;
use std::collections::BTreeMap;

use crate::compare::describe;
use crate::error::{Context, Result};
use crate::native::{Ended, NativeResult, NativeSpec, NativeSummary, end_of};
use crate::replay::BuildSpec;
use crate::session::Session;
use crate::spec::{RunSpec, results_folder};
use crate::world::chart::messages_files;
use crate::world::record::others;
use crate::world::replay::{NativeWorld, Wanted};
use crate::world::trace::{WorldTrace, Wrong};

/// Runs worlds of native programs.
pub(crate) fn native(spec: &NativeSpec, session: &Session) -> Result<NativeResult> {
    let mut run = spec.run();
    run.settings.extend_from_slice(&spec.settings);
    run.refuse_what_scenarios_say()?;
    let mut world = NativeWorld::of(&run, &BuildSpec::default(), session)?;
    match spec.runs {
        None => one(spec, world),
        Some(runs) => {
            // As for single programs, threads are scheduled at random unless the scenario names a scheduler.
            let mut hosts = world.scenario.hosts.iter();
            if hosts.all(|host| host.scheduler.is_none() && host.preempt.is_none()) {
                let settings = [("scheduler", "exhaustive"), ("preempt", "syscalls")];
                let settings =
                    settings.map(|(key, value)| (format!("defaults.{key}"), value.to_owned()));
                run.settings.extend(settings);
                world = NativeWorld::of(&run, &BuildSpec::default(), session)?;
            }
            many(spec, session, &run, &world, runs.get())
        }
    }
}

/// Runs a world once.
fn run_once(world: &NativeWorld, seed: u64) -> Result<WorldRun> {
    let hosts = world.seeded(seed);
    let mut watchers: Vec<NoWatcher> = hosts.iter().map(|_| NoWatcher).collect();
    let guided = (1u64..).zip(&hosts).zip(&mut watchers);
    let guides = guided.map(|((number, host), watcher)| {
        // Each host draws from an independent random source.
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

fn one(spec: &NativeSpec, mut world: NativeWorld) -> Result<NativeResult> {
    for host in &mut world.hosts {
        host.config.host.options.logs_calls = spec.logs_calls;
    }
    let seen = run_once(&world, spec.seed)?;
    let wrong = world.wrong_with(&seen);
    Ok(NativeResult::World(Box::new(seen), wrong))
}

fn many(
    spec: &NativeSpec,
    session: &Session,
    run: &RunSpec,
    world: &NativeWorld,
    runs: u32,
) -> Result<NativeResult> {
    let folder = results_folder(spec.out.as_deref())?;
    run.write(&folder)?;
    let started = session.now();
    let mut ends: BTreeMap<String, Ended> = BTreeMap::new();
    let (mut findings, mut calls) = (0, 0);
    for number in 0..runs {
        let seed = spec.seed.wrapping_add(u64::from(number));
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
        is_world: true,
    })
}

/// A description of how a world ended.
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

/// The end of the host that the finding is on.
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
        // The run of a world stops at its finding.
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
