//! Worlds that one program boots (`netklee.h`): its paths set themselves up as hosts. This module
//! turns them into a scenario, which is then explored like any other. Must not know how it is
//! explored.

pub(crate) mod text;

use everett_engine::{Pending, Stopped, Trace};
use everett_linux::{Machine, Setup};
use everett_report::Folder;
use everett_vm::Image;
use std::collections::BTreeMap;

use crate::error::{Result, bail};
use crate::finding::readable;
use crate::spec::RunSpec;
use text::world_text;

/// The function by which a path declares itself a host.
const SETUP: &str = "klee_net_host_setup";

/// The file name of the generated scenario.
const WORLD: &str = "world.toml";

/// Returns whether a program can boot a world.
pub(crate) fn boots(images: &[Image]) -> bool {
    let programs = images.iter().take(1).map(Image::program);
    let mut needed = programs.flat_map(|program| &program.externals);
    needed.any(|name| name == SETUP)
}

/// A path that is a host.
pub(crate) struct SetUp {
    /// The configuration that the path declares.
    pub setup: Setup,
    /// The trace that leads to its setup call.
    pub trace: Trace,
}

impl SetUp {
    /// Returns the name of the host.
    pub(crate) fn name(&self) -> &str {
        &self.setup.own.name
    }

    /// Returns a description of the path's inputs.
    fn inputs(&self) -> String {
        let inputs = self.trace.inputs.iter();
        let inputs: Vec<String> = inputs
            .map(|input| format!("{} = {}", input.name, readable(&input.bytes)))
            .collect();
        match inputs.as_slice() {
            [] => "no inputs".to_owned(),
            inputs => inputs.join(", "),
        }
    }

    /// Returns the trace from which the host of the world starts. Its weight and counters restart
    /// with the world.
    fn begin(&self) -> Trace {
        let pending = self.trace.pending.clone().unwrap_or_default();
        Trace {
            pending: Some(Pending {
                halvings: 0,
                depth: 0,
                instructions: 0,
                ..pending
            }),
            ..self.trace.clone()
        }
    }
}

/// The outcome of the paths of a program that boots a world.
pub(crate) struct Booted {
    /// Paths that became hosts.
    pub hosts: Vec<SetUp>,
    /// The number of paths that ended without becoming hosts.
    pub others: u64,
    /// Why the search stopped.
    pub stopped: Stopped,
    /// Limits that cut paths off, each of which may have been a host.
    pub cuts: Vec<&'static str>,
}

impl Booted {
    /// Checks that the paths form a world. The error says why they do not, and what to do.
    fn check(&self) -> Result<()> {
        if self.stopped != Stopped::Finished {
            bail!(
                Boot,
                "not all hosts of the world are set up: the search stopped before ({}). Paths stand at {SETUP} on {}; \
                 give the others more time, or let fewer things be symbolic before that call",
                self.stopped.name(),
                names(&self.hosts)
            );
        }
        if !self.cuts.is_empty() {
            bail!(
                Boot,
                "not all hosts of the world are set up: paths were cut off ({}). Paths stand at {SETUP} on {}; raise the limit, or \
                 let fewer things be symbolic before that call",
                self.cuts.join(", "),
                names(&self.hosts)
            );
        }
        if self.others > 0 {
            let (others, hosts) = (self.others, self.hosts.len() as u64);
            let all = others + hosts;
            bail!(
                Boot,
                "{others} of {all} paths ended without {SETUP}, so they are no hosts (these are: {}). Call it on every path, and \
                 end those that are none with klee_silent_exit or klee_assume",
                names(&self.hosts)
            );
        }
        let mut known: BTreeMap<&str, &SetUp> = BTreeMap::new();
        for host in &self.hosts {
            if let Some(other) = known.insert(host.name(), host) {
                bail!(
                    Boot,
                    "two paths set up host {}, one with {}, one with {}. A host is one path: let each have a name of its own, or \
                     decide nothing else before {SETUP} (klee_assume leaves one way only)",
                    host.name(),
                    other.inputs(),
                    host.inputs()
                );
            }
        }
        Ok(())
    }

    /// Returns the error message for paths with findings before they became hosts.
    pub(crate) fn after_findings(&self) -> String {
        format!(
            "no world is explored: something is wrong before all hosts are set up ({} stand at {SETUP}). Repair that first",
            names(&self.hosts)
        )
    }
}

fn names(hosts: &[SetUp]) -> String {
    let mut names: Vec<&str> = hosts.iter().map(SetUp::name).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// Returns all routers. Declarations of several paths under one name must agree.
fn routers(hosts: &[SetUp]) -> Result<Vec<&Machine>> {
    let mut routers: Vec<(&Machine, &str)> = Vec::new();
    for host in hosts {
        for router in &host.setup.routers {
            let known = routers.iter().find(|(known, _)| known.name == router.name);
            match known {
                None => routers.push((router, host.name())),
                Some((known, _)) if *known == router => {}
                Some((_, other)) => bail!(
                    Boot,
                    "hosts {other} and {} have different routers {}. Declare routers before the program branches, or \
                     the same on every path",
                    host.name(),
                    router.name
                ),
            }
        }
    }
    Ok(routers.into_iter().map(|(router, _)| router).collect())
}

/// The world of a program, from which the scenario is generated.
pub(crate) struct World<'w> {
    /// Hosts, in the order of their starts.
    pub hosts: Vec<&'w SetUp>,
    /// Routers.
    pub routers: Vec<&'w Machine>,
}

impl<'w> World<'w> {
    fn of(booted: &'w Booted) -> Result<World<'w>> {
        booted.check()?;
        let mut hosts: Vec<&SetUp> = booted.hosts.iter().collect();
        hosts.sort_by_key(|host| {
            let setup = &host.setup;
            (!setup.is_server, setup.sequence, host.name())
        });
        for host in &hosts {
            if host.setup.own.interfaces.is_empty() {
                bail!(
                    Boot,
                    "host {} is on no network: call klee_net_add_interface and klee_net_add_ipv4_address before {SETUP}",
                    host.name()
                );
            }
        }
        Ok(World {
            hosts,
            routers: routers(&booted.hosts)?,
        })
    }
}

/// Returns the file name of a host's trace.
pub(crate) fn begin_file(host: &str) -> String {
    format!("{host}.begin")
}

/// Writes the scenario of the world that a program boots, and the traces from which its hosts
/// start. Returns the spec of its run.
pub(crate) fn write_world(args: &RunSpec, folder: &Folder, booted: &Booted) -> Result<RunSpec> {
    let world = World::of(booted)?;
    let scenario = folder.path().join(WORLD);
    let args_of_world = args.for_world(&scenario)?;
    let text = world_text(args, &world)?;
    folder.write(WORLD, text.as_bytes())?;
    for host in &booted.hosts {
        let trace = serde_json::to_vec(&host.begin())?;
        folder.write(&begin_file(host.name()), &trace)?;
    }
    Ok(args_of_world)
}
