//! Replay of world traces in the engine, each in a world of its own.

use everett_engine::{
    Explorer, ExplorerConfig, HostStanding, Limits, Listener, SavedFiles, Start, Trace,
    WorldFinding,
};
use everett_net::HostIndex;
use everett_sim::Message;
use everett_vm::Image;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use crate::error::Result;
use crate::events::{Event, Observer};
use crate::follow::{Ending, FollowResult, HostEnd};
use crate::session::Session;
use crate::spec::RunSpec;
use crate::world::hosts::draw_by;
use crate::world::prepare;
use crate::world::trace::{WorldTrace, Wrong, read_world};

/// The findings and final traces of a replayed world.
#[derive(Default)]
struct Seen {
    findings: Vec<WorldFinding>,
    ends: Vec<BTreeMap<String, Trace>>,
}

impl Listener for Seen {
    fn finding(&mut self, found: &WorldFinding) {
        self.findings.push(found.clone());
    }

    fn world(&mut self, traces: &BTreeMap<String, Trace>, _: &SavedFiles) {
        self.ends.push(traces.clone());
    }

    fn tick(&mut self, _: &Explorer<'_>) {}
}

impl Seen {
    fn wrong(&self) -> Vec<Wrong> {
        self.findings.iter().map(Wrong::of).collect()
    }
}

fn follow_one<'a>(
    config: &ExplorerConfig,
    images: &'a [Image],
    trace: &WorldTrace,
) -> Result<(Seen, Explorer<'a>)> {
    // A replay ignores the limits of the run, except the one that defines hangs: it is part of the world's semantics.
    let limits = Limits {
        max_instructions: config.limits.max_instructions,
        max_virtual_ns: config.limits.max_virtual_ns,
        ..Limits::default()
    };
    let mut config = ExplorerConfig {
        all_tests: true,
        limits,
        search: Vec::new(),
        ..config.clone()
    };
    for (host, at) in config.hosts.iter_mut().zip(0..) {
        if let Some(seed) = trace.random_seed {
            draw_by(seed, HostIndex(at), &mut host.config);
        }
    }
    let mut worlds = Explorer::new(images, config, Start::World(trace.hosts.clone()))?;
    let mut seen = Seen::default();
    worlds.run(&AtomicBool::new(false), &mut seen);
    Ok((seen, worlds))
}

/// The choices and ends of all hosts.
fn ends(hosts: &BTreeMap<String, Trace>) -> BTreeMap<String, HostEnd> {
    let ends = hosts.iter();
    ends.map(|(name, trace)| (name.clone(), (trace.choices.clone(), trace.end.clone())))
        .collect()
}

/// How a world ended, compared with its trace.
fn ending(trace: &WorldTrace, seen: &Seen) -> Ending {
    let wrong = seen.wrong();
    match &trace.finding {
        Some(expected) if wrong.contains(expected) => Ending::Same,
        Some(expected) => Ending::Finding {
            expected: expected.clone(),
            seen: wrong,
        },
        None => {
            let expected = ends(&trace.hosts);
            let seen: Vec<_> = seen.ends.iter().map(ends).collect();
            if seen.contains(&expected) {
                return Ending::Same;
            }
            Ending::World {
                expected,
                seen,
                wrong,
            }
        }
    }
}

/// Replays traces of worlds in the engine.
pub(crate) fn follow(
    spec: &RunSpec,
    traces: &[PathBuf],
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<FollowResult> {
    let (config, images) = prepare(spec, session)?;
    let mut different = 0;
    for path in traces {
        let trace = read_world(path)?;
        let (seen, _) = follow_one(&config, &images, &trace)?;
        let ending = ending(&trace, &seen);
        different += usize::from(!matches!(ending, Ending::Same));
        let ending = &ending;
        observer.event(&Event::Followed { path, ending });
    }
    Ok(FollowResult {
        traces: traces.len(),
        different,
    })
}

/// Reports the system calls of all hosts, in order for each host.
pub(crate) fn strace(
    spec: &RunSpec,
    traces: &[PathBuf],
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<()> {
    let (mut config, images) = prepare(spec, session)?;
    for host in &mut config.hosts {
        host.config.options.logs_calls = true;
    }
    for path in traces {
        let (_, worlds) = follow_one(&config, &images, &read_world(path)?)?;
        let standing = worlds.standing().iter();
        let lines = standing.flat_map(|host| {
            let calls = host.calls.iter();
            calls.map(|call| format!("{} {call}", host.name))
        });
        observer.event(&Event::Calls {
            path,
            of: traces.len(),
            lines: &lines.collect::<Vec<_>>(),
        });
    }
    Ok(())
}

/// The finding of a world, if it happens again when the engine replays the world.
pub(crate) fn found_again(
    config: &ExplorerConfig,
    images: &[Image],
    trace: &WorldTrace,
) -> Result<Option<WorldFinding>> {
    let (seen, _) = follow_one(config, images, trace)?;
    let is_it = |one: &WorldFinding| Some(Wrong::of(one)) == trace.finding;
    Ok(seen.findings.into_iter().find(is_it))
}

/// Whether the finding of a world still happens in the bitcode.
pub(crate) fn happens(spec: &RunSpec, session: &Session, trace: &WorldTrace) -> Result<bool> {
    let (config, images) = prepare(spec, session)?;
    Ok(found_again(&config, &images, trace)?.is_some())
}

/// The messages on the way to a finding or to the end of a world, and the final state of each host.
pub(crate) fn on_the_way(
    config: &ExplorerConfig,
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
