//! `everett run SCENARIO.toml`: explores worlds of several hosts.

use anyhow::{Result, bail};
use everett_engine::{WorldConfig, Worlds};
use everett_report::Folder;
use everett_scenario::Scenario;
use everett_vm::Image;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::replay::BuildArgs;
use crate::run::{RunArgs, clock, explorer_config, memory_used, stop_flag};
use crate::scenario::load;
use crate::summary::line_coverage;
use crate::watched;
use crate::world_chart::{messages_files, standing_text};
use crate::world_checks::invariants;
use crate::world_follow::on_the_way;
use crate::world_hosts::{Programs, hosts};
use crate::world_output::{Recorder, summary};
use crate::world_replay::NativeWorld;
use crate::{EXIT_CLEAN, EXIT_FINDINGS};

/// It is a scenario, not a program.
pub fn is_scenario(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "toml")
}

/// Refuses what scenarios can say and what is not explored yet: leaving it out silently would be wrong.
fn refuse_the_impossible(scenario: &Scenario) -> Result<()> {
    const MOST: usize = 10;
    if scenario.faults.world_faults().len() > MOST {
        bail!(
            "there are more than {MOST} partitions; each doubles the number of worlds from the start"
        );
    }
    Ok(())
}

/// What is explored, and the programs.
pub fn prepare(args: &RunArgs) -> Result<(WorldConfig, Vec<Image>)> {
    args.refuse_what_scenarios_say()?;
    let scenario = load(&args.scenario())?;
    refuse_the_impossible(&scenario)?;
    let invariants = invariants(&scenario)?;
    let mut programs = Programs::default();
    let mut hosts = hosts(&scenario, &mut programs)?;
    let images = programs.load(args.promotes())?;
    watched::place(&mut hosts, &images)?;
    let general = explorer_config(args, None)?;
    let mapping = args.mapping().unwrap_or(scenario.search.mapping.name());
    let mut limits = general.limits.clone();
    limits.max_time = limits
        .max_time
        .or(scenario.limits.time_ns.map(Duration::from_nanos));
    limits.max_instructions = limits.max_instructions.or(scenario.limits.instructions);
    limits.max_forks = limits.max_forks.or(scenario.limits.forks);
    if let Some(memory) = scenario.limits.memory_bytes {
        limits.max_memory = Some(memory);
    }
    limits.max_paths = limits.max_paths.or(scenario.limits.paths);
    let depth = scenario.limits.depth;
    let depth = depth.map(|depth| u32::try_from(depth).unwrap_or(u32::MAX));
    limits.max_depth = limits.max_depth.or(depth);
    let config = WorldConfig {
        hosts,
        topology: scenario.topology.clone(),
        faults: scenario.faults.clone(),
        invariants,
        mapping: mapping.to_owned(),
        vm: general.vm,
        solver: general.solver,
        limits,
        searchers: scenario.search.searchers.clone(),
        seed: scenario.search.seed,
        orders: scenario.search.orders,
        max_events: scenario.limits.events,
        max_virtual_ns: scenario.limits.virtual_time_ns,
        all_tests: general.all_tests,
        clock,
        memory_used,
    };
    Ok((config, images))
}

/// Explores a scenario.
pub fn run(args: &RunArgs) -> Result<u8> {
    // What is wrong with it is said before there is a folder.
    let prepared = prepare(args)?;
    explore_prepared(args, prepared, &args.folder()?, &*stop_flag()?)
}

/// Explores a scenario, into a folder that there is already.
pub fn explore(args: &RunArgs, folder: &Folder, stop: &AtomicBool) -> Result<u8> {
    explore_prepared(args, prepare(args)?, folder, stop)
}

fn explore_prepared(
    args: &RunArgs,
    (config, images): (WorldConfig, Vec<Image>),
    folder: &Folder,
    stop: &AtomicBool,
) -> Result<u8> {
    let mapping = config.mapping.clone();
    let mut worlds = Worlds::new(&images, config.clone(), None)?;
    folder.write("args.json", &serde_json::to_vec(args)?)?;
    let mut recorder = Recorder::new(args, &config, folder.clone());
    let stopped = worlds.run(stop, &mut recorder);
    recorder.write_samples(&worlds)?;
    if let Some(until) = args.shrinks_until() {
        recorder.simplify(&config, &images, until)?;
    }
    for (dir, found) in recorder.traces() {
        let (messages, standing) = on_the_way(&config, &images, found)?;
        for (name, bytes) in messages_files(&config.topology, &messages) {
            folder.write(&format!("{dir}/{name}"), &bytes)?;
        }
        recorder.add_text(dir, &standing_text(&standing))?;
        let files = standing.into_iter().map(|host| (host.name, host.files));
        recorder.write_files(&format!("{dir}/"), &files.collect())?;
    }
    if args.confirms() && !recorder.traces().is_empty() {
        recorder.confirm(&NativeWorld::of(args, &BuildArgs::default())?)?;
    }
    let summary = summary(&worlds, &recorder, stopped, &mapping);
    folder.write("summary.json", &serde_json::to_vec_pretty(&summary)?)?;
    let lines = line_coverage(worlds.images(), &worlds.coverage().segments);
    folder.write("coverage.lcov", lines.to_lcov().as_bytes())?;
    recorder.finish(&summary, folder);
    Ok(if summary.findings.is_empty() {
        EXIT_CLEAN
    } else {
        EXIT_FINDINGS
    })
}
