//! Worlds of several hosts: does for scenarios what the other modules do for one program. Owns the way from a scenario
//! to the configuration that the engine explores.

pub(crate) mod chart;
mod checks;
mod dtest;
pub(crate) mod follow;
mod hosts;
pub(crate) mod look;
pub(crate) mod native;
mod points;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod shrink;
pub(crate) mod trace;

use everett_engine::{Explorer, ExplorerConfig, Limits, Start, WorldConfig};
use everett_net::Topology;
use everett_report::Folder;
use everett_scenario::Scenario;
use everett_sim::Network;
use everett_vm::Image;
use std::time::Duration;

use crate::error::{Result, bail};
use crate::events::{Event, Observer};
use crate::explore::{RunResult, explorer_config, shrinks_until};
use crate::replay::BuildSpec;
use crate::scenario::load_scenario;
use crate::session::Session;
use crate::spec::RunSpec;
use crate::summary::{RunSummary, line_coverage};
use crate::watched;
use chart::{messages_files, standing_text};
use checks::invariants;
use follow::on_the_way;
use hosts::{Programs, hosts};
use record::{Recorder, summary};
use replay::NativeWorld;

/// Refuses parts of a scenario that the engine cannot explore yet; ignoring them silently would be wrong.
fn refuse_the_impossible(scenario: &Scenario) -> Result<()> {
    /// The largest number of partitions that is explored.
    const MOST: usize = 10;
    if scenario.faults.world_faults().len() > MOST {
        bail!(
            Usage,
            "there are more than {MOST} partitions; each doubles the number of worlds from the start"
        );
    }
    Ok(())
}

/// The exploration's configuration, and the programs.
pub(crate) fn prepare(args: &RunSpec, session: &Session) -> Result<(ExplorerConfig, Vec<Image>)> {
    args.refuse_what_scenarios_say()?;
    let scenario = load_scenario(&args.scenario())?;
    refuse_the_impossible(&scenario)?;
    let invariants = invariants(&scenario)?;
    let mut programs = Programs::default();
    let mut hosts = hosts(&scenario, &mut programs, session)?;
    let images = programs.load(args.promotes())?;
    watched::place(&mut hosts, &images)?;
    let general = explorer_config(args, session, None)?;
    let mapping = args.mapping.as_deref();
    let mapping = mapping.unwrap_or(scenario.search.mapping.name());
    let world = WorldConfig {
        network: network(&scenario),
        invariants,
        mapping: mapping.to_owned(),
    };
    let config = ExplorerConfig {
        hosts,
        world: Some(world),
        limits: limits(&general.limits, &scenario),
        search: scenario.search.searchers.clone(),
        seed: match args.seed {
            0 => scenario.search.seed,
            seed => seed,
        },
        ..general
    };
    Ok((config, images))
}

/// The network of a scenario.
pub(crate) fn network(scenario: &Scenario) -> Network {
    Network {
        topology: scenario.topology.clone(),
        faults: scenario.faults.clone(),
        orders: scenario.search.orders,
        max_events: scenario.limits.events,
    }
}

/// The topology of a world.
pub(crate) fn topology(config: &ExplorerConfig) -> Topology {
    let world = config.world.as_ref();
    world.map_or_else(Topology::default, |world| world.network.topology.clone())
}

/// The limits of a run; the command line takes precedence over the scenario.
fn limits(run: &Limits, scenario: &Scenario) -> Limits {
    let said = &scenario.limits;
    let depth = said
        .depth
        .map(|depth| u32::try_from(depth).unwrap_or(u32::MAX));
    Limits {
        max_time: run.max_time.or(said.time_ns.map(Duration::from_nanos)),
        // A spec always has this limit, so the scenario takes precedence here.
        max_memory: said.memory_bytes.or(run.max_memory),
        max_paths: run.max_paths.or(said.paths),
        max_forks: run.max_forks.or(said.forks),
        max_depth: run.max_depth.or(depth),
        max_instructions: run.max_instructions.or(said.instructions),
        max_virtual_ns: said.virtual_time_ns,
    }
}

/// Explores a scenario.
pub(crate) fn run(
    spec: &RunSpec,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<RunResult> {
    // Report errors of the scenario before the folder is created.
    let prepared = prepare(spec, session)?;
    explore_prepared(spec, session, observer, prepared, &spec.folder()?)
}

/// Explores a scenario and writes to an existing folder.
pub(crate) fn explore(
    spec: &RunSpec,
    session: &Session,
    observer: &mut dyn Observer,
    folder: &Folder,
) -> Result<RunResult> {
    let prepared = prepare(spec, session)?;
    explore_prepared(spec, session, observer, prepared, folder)
}

fn explore_prepared(
    spec: &RunSpec,
    session: &Session,
    observer: &mut dyn Observer,
    (config, images): (ExplorerConfig, Vec<Image>),
    folder: &Folder,
) -> Result<RunResult> {
    let mut worlds = Explorer::new(&images, config.clone(), Start::Beginning)?;
    spec.write(folder)?;
    observer.event(&Event::Started {
        folder: folder.path(),
    });
    let mut recorder = Recorder::new(spec, session, observer, &config, folder.clone());
    let stopped = worlds.run(&session.stop, &mut recorder);
    recorder.write_samples(&worlds)?;
    if let Some(until) = shrinks_until(spec, session) {
        recorder.simplify(&config, &images, until)?;
    }
    for (dir, found) in recorder.traces() {
        let (messages, standing) = on_the_way(&config, &images, found)?;
        for (name, bytes) in messages_files(&topology(&config), &messages) {
            folder.write(&format!("{dir}/{name}"), &bytes)?;
        }
        recorder.add_text(dir, &standing_text(&standing))?;
        let files = standing.into_iter().map(|host| (host.name, host.files));
        recorder.write_files(&format!("{dir}/"), &files.collect())?;
    }
    if !spec.no_confirm && !recorder.traces().is_empty() {
        recorder.confirm(&NativeWorld::of(spec, &BuildSpec::default(), session)?)?;
    }
    let summary = summary(&worlds, &recorder, stopped);
    folder.write("summary.json", &serde_json::to_vec_pretty(&summary)?)?;
    let lines = line_coverage(worlds.images(), &worlds.coverage().segments);
    folder.write("coverage.lcov", lines.to_lcov().as_bytes())?;
    let summary = RunSummary::World(Box::new(summary));
    recorder.finish(&summary);
    Ok(RunResult {
        folder: folder.path().to_owned(),
        summary,
    })
}
