//! Traces of worlds followed again in the engine, each in a world of its own.

use anyhow::Result;
use everett_engine::{
    HostStanding, Limits, SavedFiles, Trace, WorldConfig, WorldFinding, WorldListener, Worlds,
};
use everett_net::HostIndex;
use everett_sim::Message;
use everett_vm::Image;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use crate::follow::said;
use crate::run::RunArgs;
use crate::world::prepare;
use crate::world_hosts::draw_by;
use crate::world_trace::{WorldTrace, Wrong, read_world};

/// What came of a world.
#[derive(Default)]
struct Seen {
    findings: Vec<WorldFinding>,
    ends: Vec<BTreeMap<String, Trace>>,
}

impl WorldListener for Seen {
    fn finding(&mut self, found: &WorldFinding) {
        self.findings.push(found.clone());
    }

    fn world(&mut self, traces: &BTreeMap<String, Trace>, _: &SavedFiles) {
        self.ends.push(traces.clone());
    }

    fn tick(&mut self, _: &Worlds<'_>) {}
}

impl Seen {
    fn wrong(&self) -> Vec<Wrong> {
        self.findings.iter().map(Wrong::of).collect()
    }
}

fn follow_one<'a>(
    config: &WorldConfig,
    images: &'a [Image],
    trace: &WorldTrace,
) -> Result<(Seen, Worlds<'a>)> {
    // The limits of the run are not those of following it; only the one that made hangs is part of worlds.
    let limits = Limits {
        max_instructions: config.limits.max_instructions,
        ..Limits::default()
    };
    let mut config = WorldConfig {
        all_tests: true,
        limits,
        searchers: Vec::new(),
        ..config.clone()
    };
    for (host, at) in config.hosts.iter_mut().zip(0..) {
        if let Some(seed) = trace.random_seed {
            draw_by(seed, HostIndex(at), &mut host.config);
        }
    }
    let mut worlds = Worlds::new(images, config, Some(&trace.hosts))?;
    let mut seen = Seen::default();
    worlds.run(&AtomicBool::new(false), &mut seen);
    Ok((seen, worlds))
}

/// Follows traces of worlds again; exit code 1 if one of them ends otherwise than it did.
pub fn follow(args: &RunArgs, traces: &[PathBuf]) -> Result<u8> {
    let (config, images) = prepare(args)?;
    let mut different = 0;
    for path in traces {
        let trace = read_world(path)?;
        let (seen, _) = follow_one(&config, &images, &trace)?;
        let ends = |hosts: &BTreeMap<String, Trace>| -> BTreeMap<String, _> {
            let ends = hosts.iter();
            ends.map(|(name, trace)| (name.clone(), (trace.choices.clone(), trace.end.clone())))
                .collect()
        };
        let is_same = match &trace.finding {
            Some(wrong) => seen.wrong().contains(wrong),
            None => seen.ends.iter().any(|end| ends(end) == ends(&trace.hosts)),
        };
        if !is_same {
            different += 1;
            println!("{}: it ends otherwise", path.display());
            match &trace.finding {
                Some(wrong) => println!("    expected {wrong:?}, seen {:?}", seen.wrong()),
                None => println!(
                    "    expected {:?}, seen {:?} {:?}",
                    ends(&trace.hosts),
                    seen.ends.iter().map(ends).collect::<Vec<_>>(),
                    seen.wrong()
                ),
            }
        }
    }
    Ok(said(traces.len(), different))
}

/// Prints the system calls of all hosts, those of each in their order.
pub fn strace(args: &RunArgs, traces: &[PathBuf]) -> Result<u8> {
    let (mut config, images) = prepare(args)?;
    for host in &mut config.hosts {
        host.config.options.logs_calls = true;
    }
    for path in traces {
        if traces.len() > 1 {
            println!("{}:", path.display());
        }
        let (_, worlds) = follow_one(&config, &images, &read_world(path)?)?;
        for host in worlds.standing() {
            for call in &host.calls {
                println!("{} {call}", host.name);
            }
        }
    }
    Ok(crate::EXIT_CLEAN)
}

/// The finding of a world, if it happens where the world is followed.
pub fn found_again(
    config: &WorldConfig,
    images: &[Image],
    trace: &WorldTrace,
) -> Result<Option<WorldFinding>> {
    let (seen, _) = follow_one(config, images, trace)?;
    let is_it = |one: &WorldFinding| Some(Wrong::of(one)) == trace.finding;
    Ok(seen.findings.into_iter().find(is_it))
}

/// What is wrong with a world is still wrong with it in the bitcode.
pub fn happens(args: &RunArgs, trace: &WorldTrace) -> Result<bool> {
    let (config, images) = prepare(args)?;
    Ok(found_again(&config, &images, trace)?.is_some())
}

/// What happened on the way to a finding or to the end of a world, and what each host was doing then.
pub fn on_the_way(
    config: &WorldConfig,
    images: &[Image],
    found: &WorldTrace,
) -> Result<(Vec<Message>, Vec<HostStanding>)> {
    let (seen, worlds) = follow_one(config, images, found)?;
    let is_it = |one: &WorldFinding| Some(Wrong::of(one)) == found.finding;
    Ok(match seen.findings.into_iter().find(is_it) {
        Some(found) => (found.messages, found.standing),
        None if found.finding.is_none() => (worlds.messages(), worlds.standing().to_vec()),
        None => (worlds.messages(), Vec::new()),
    })
}
