//! `replay` for worlds: runs the native programs of all hosts as a trace prescribes.

use everett_native::{Guide, NativeHost, NoWatcher, Watcher, WorldRun};
use everett_sim::Message;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

use crate::error::{Context, Result};
use crate::events::{Event, Observer};
use crate::repeat::repeat_world;
use crate::replay::{ReplayResult, ReplaySpec, Steps, Verdict, shared};
use crate::session::Session;
use crate::spec::RunSpec;
use crate::world::chart::capture;
use crate::world::replay::{NativeWorld, source_of};
use crate::world::trace::{WorldTrace, read_world};

/// Replays worlds natively.
pub(crate) fn replay(
    spec: &ReplaySpec,
    run: &RunSpec,
    traces: &[PathBuf],
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<ReplayResult> {
    let mut world = NativeWorld::of(run, &spec.build, session)?;
    spec.expect_one(traces)?;
    for host in &mut world.hosts {
        host.config.host.options.logs_calls = spec.steps;
        host.config.keeps_events = spec.times.is_some();
    }
    let mut others = 0;
    for path in traces {
        let trace = read_world(path)?;
        let hosts = match spec.times.is_some() || spec.steps {
            true => world.prepared(&trace)?,
            false => Vec::new(),
        };
        let (world, trace) = (&world, &trace);
        let replayed = Replayed {
            world,
            trace,
            hosts,
        };
        if let Some(times) = spec.times {
            let run = || watched(&replayed, nobody(&replayed.hosts));
            let repeats = repeat_world(run, times.get())?;
            let same = repeats.are_same();
            observer.event(&Event::Repeated {
                path,
                times,
                repeats: &repeats,
            });
            if !same {
                others += 1;
                continue;
            }
        }
        let verdict = if spec.steps {
            let seen = {
                let shared = shared(observer);
                watched(&replayed, steps(&shared, &replayed.hosts))?
            };
            if let Some(prefix) = &spec.pcap {
                write_captures(prefix, &world.hosts, &seen.messages, observer)?;
            }
            tell_output(&seen, observer);
            match world.judge(trace, &seen) {
                Verdict::Confirmed => Verdict::Confirmed,
                // The finding may need builds that check for errors which plain native code survives.
                _ => world.confirm(trace)?,
            }
        } else {
            let (verdict, seen) = world.replay(trace)?;
            if let Some(seen) = seen.filter(|_| traces.len() == 1) {
                tell_output(&seen, observer);
            }
            verdict
        };
        others += usize::from(verdict != Verdict::Confirmed);
        let verdict = &verdict;
        observer.event(&Event::Replayed { path, verdict });
    }
    Ok(ReplayResult {
        traces: traces.len(),
        confirmed: traces.len() - others,
        are_worlds: true,
    })
}

/// Reports the output of each host of a world.
pub(crate) fn tell_output(seen: &WorldRun, observer: &mut dyn Observer) {
    for (name, run) in &seen.hosts {
        observer.event(&Event::Output {
            host: Some(name),
            streams: &run.output,
        });
    }
}

/// A watcher for each host.
pub(crate) type Watchers<'w> = Vec<Box<dyn Watcher + 'w>>;

fn nobody<'w>(hosts: &[NativeHost]) -> Watchers<'w> {
    let watchers = hosts
        .iter()
        .map(|_| Box::new(NoWatcher) as Box<dyn Watcher>);
    watchers.collect()
}

/// A native world with the trace to replay and its hosts.
pub(crate) struct Replayed<'w> {
    pub(crate) world: &'w NativeWorld,
    pub(crate) trace: &'w WorldTrace,
    pub(crate) hosts: Vec<NativeHost>,
}

/// Replays a world natively with a watcher on each host.
pub(crate) fn watched(replayed: &Replayed<'_>, mut watchers: Watchers<'_>) -> Result<WorldRun> {
    let (trace, hosts) = (replayed.trace, &replayed.hosts);
    let guides = hosts.iter().zip(&mut watchers);
    let guides = guides.map(|(host, watcher)| Guide {
        source: source_of(trace, &host.name),
        watcher: &mut **watcher,
    });
    let guides = guides.collect();
    let seen = replayed.world.run(hosts, guides, trace.wanted());
    seen.context("the native programs could not be run")
}

/// Watchers that report the events of all hosts.
fn steps<'s, 'o: 's>(
    observer: &'s RefCell<&'o mut dyn Observer>,
    hosts: &[NativeHost],
) -> Watchers<'s> {
    let at = |host: &NativeHost| -> Box<dyn Watcher + 's> {
        Box::new(Steps {
            host: Some(host.name.clone()),
            observer,
        })
    };
    hosts.iter().map(at).collect()
}

/// Writes a capture file for each host, named prefix, host, `.pcap`.
fn write_captures(
    prefix: &Path,
    hosts: &[NativeHost],
    messages: &[Message],
    observer: &mut dyn Observer,
) -> Result<()> {
    let prefix = match prefix.extension() {
        Some(extension) if extension == "pcap" => prefix.with_extension(""),
        _ => prefix.to_owned(),
    };
    for host in hosts {
        let packets = capture(&host.name, messages);
        let file = PathBuf::from(format!("{}-{}.pcap", prefix.display(), host.name));
        std::fs::write(&file, everett_report::pcap(&packets))
            .with_context(|| format!("cannot write {}", file.display()))?;
        observer.event(&Event::Captured {
            host: Some(&host.name),
            file: &file,
            packets: packets.len(),
        });
    }
    Ok(())
}
