//! Worlds of several hosts: translates a scenario to the configuration that the engine explores.

pub(crate) mod chart;
pub(crate) mod checks;
pub(crate) mod dtest;
pub(crate) mod hosts;
pub(crate) mod samples;

use everett_engine::{ExplorerConfig, WorldConfig, WorldHost};
use everett_net::Topology;
use everett_scenario::Scenario;
use everett_sim::{Network, Plan};
use everett_vm::Image;

use crate::call_sites::CallSites;
use crate::config::explorer_config;
use crate::disk::{Disk, RealDisk};
use crate::error::{Result, bail};
use crate::load::Lowering;
use crate::plans::plan_of;
use crate::replaced::ReplacedFunctions;
use crate::scenario::scenario_from;
use crate::session::Session;
use crate::spec::RunSpec;
use crate::watched;
use checks::invariants;
use hosts::{Programs, expect_ends, hosts};

/// Refuses parts of a scenario that the engine cannot explore yet; ignoring them silently would be
/// wrong.
fn refuse_the_impossible(scenario: &Scenario) -> Result<()> {
    /// Maximum number of partitions: worlds are numbered by which of them occur.
    const MOST: usize = 62;
    if scenario.faults.world_faults().len() > MOST {
        bail!(Usage, "there are more than {MOST} partitions");
    }
    Ok(())
}

/// Creates the configuration of the exploration, and loads the programs.
pub(crate) fn prepare(args: &RunSpec, session: &Session) -> Result<(ExplorerConfig, Vec<Image>)> {
    prepare_from(&RealDisk, args, session)
}

/// Like [`prepare`], with the files of any disk.
pub(crate) fn prepare_from(
    disk: &dyn Disk,
    args: &RunSpec,
    session: &Session,
) -> Result<(ExplorerConfig, Vec<Image>)> {
    args.refuse_what_scenarios_say()?;
    let mut scenario = scenario_from(disk, &args.scenario())?;
    refuse_the_impossible(&scenario)?;
    let args = &args.with_scenario(&scenario)?.with_defaults()?;
    if args.check_deadlocks {
        expect_ends(&mut scenario);
    }
    let invariants = invariants(disk, &scenario)?;
    let mut programs = Programs::on(disk);
    let seed = args.seed.unwrap_or_default();
    let mut hosts = hosts((&scenario, seed), &mut programs, session)?;
    let replaced = ReplacedFunctions::of_run(args, &scenario);
    let fails_functions = |host: &WorldHost| !host.config.options.faults.functions.is_empty();
    let lowering = Lowering {
        intercepts: hosts.iter().any(fails_functions),
        ..args.lowering()
    };
    let images = programs.load(lowering, &replaced)?;
    watched::place(&mut hosts, &images)?;
    let world = WorldConfig {
        network: network(&scenario, args),
        invariants,
        mapping: args.mapping.clone().unwrap_or_default(),
    };
    let config = ExplorerConfig {
        plans: plans(args, &hosts),
        is_at: args.planned.is_some().then(CallSites::of_explored),
        hosts,
        world: Some(world),
        outside: crate::peers::outside(&scenario, args)?,
        search: args.search.clone(),
        ..explorer_config(args, session)?
    };
    Ok((config, images))
}

/// Returns the planned faults of each host, if faults are planned.
fn plans(run: &RunSpec, hosts: &[WorldHost]) -> Vec<Plan> {
    let Some(planned) = &run.planned else {
        return Vec::new();
    };
    let names = hosts.iter().map(|host| host.name.as_str());
    names.map(|name| plan_of(planned, name)).collect()
}

/// Returns the network of a scenario in a run.
pub(crate) fn network(scenario: &Scenario, run: &RunSpec) -> Network {
    Network {
        topology: scenario.topology.clone(),
        faults: scenario.faults.clone(),
        orders: run.orders.unwrap_or_default(),
        max_events: run.max_events,
    }
}

/// Returns the topology of a world.
pub(crate) fn topology(config: &ExplorerConfig) -> Topology {
    let world = config.world.as_ref();
    world.map_or_else(Topology::default, |world| world.network.topology.clone())
}
