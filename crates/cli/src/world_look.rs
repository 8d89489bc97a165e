//! `everett replay` for worlds: traces of all hosts on their native programs, looked at while they happen.

use anyhow::{Context, Result, bail};
use everett_engine::Message;
use everett_native::{Guide, NativeHost, NoWatcher, StoppedRun, Watcher, WorldRun};
use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::EXIT_CLEAN;
use crate::compare::describe;
use crate::output::HOST;
use crate::repeat::repeat_world;
use crate::replay::{ReplayArgs, confirmed_of};
use crate::run::RunArgs;
use crate::step::{HandOver, Pace, Place, Walker, Wish, ask};
use crate::world_chart::capture;
use crate::world_replay::{NativeWorld, source_of};
use crate::world_trace::{WorldTrace, read_world};

/// Replays worlds natively; exit code 1 if one of them ends otherwise.
pub fn replay(args: &ReplayArgs, run: &RunArgs, traces: &[PathBuf]) -> Result<u8> {
    let mut world = NativeWorld::of(run, &args.build)?;
    args.expect_one(traces)?;
    for host in &mut world.hosts {
        host.config.host.options.logs_calls = args.look.needs_log();
        host.config.keeps_events = args.times.is_some();
    }
    let mut others = 0;
    for path in traces {
        let trace = read_world(path)?;
        let is_looked_at = args.look.gdb.is_some()
            || args.look.step
            || args.times.is_some()
            || args.look.needs_log();
        let replayed = Replayed {
            world: &world,
            trace: &trace,
            hosts: match is_looked_at {
                true => world.prepared(&trace)?,
                false => Vec::new(),
            },
        };
        if let Some(place) = &args.look.gdb {
            debug(&replayed, place)?;
            return Ok(EXIT_CLEAN);
        }
        if args.look.step {
            walk(&replayed)?;
            return Ok(EXIT_CLEAN);
        }
        if let Some(times) = args.times {
            let seen = repeat_world(|| watched(&replayed, nobody(&replayed.hosts)), times.get())?;
            if !seen.tell(path, times) {
                others += 1;
                continue;
            }
        }
        let verdict = if args.look.needs_log() {
            let seen = watched(&replayed, paced(args, &replayed.hosts))?;
            if let Some(prefix) = &args.look.pcap {
                write_captures(prefix, &world.hosts, &seen.messages)?;
            }
            print_output(&seen)?;
            match world.judge(&trace, &seen) {
                verdict if verdict.reason().is_none() => verdict,
                // It may need builds that check what native code survives.
                _ => world.confirm(&trace)?,
            }
        } else {
            let (verdict, seen) = world.replay(&trace)?;
            if let Some(seen) = seen.filter(|_| traces.len() == 1) {
                print_output(&seen)?;
            }
            verdict
        };
        others += usize::from(!verdict.tell(path));
    }
    Ok(confirmed_of(traces.len(), others, "worlds"))
}

/// What the hosts of a world wrote.
pub fn print_output(seen: &WorldRun) -> Result<()> {
    for (name, run) in &seen.hosts {
        std::io::stdout().write_all(&prefixed(name, &run.output[0]))?;
        std::io::stderr().write_all(&prefixed(name, &run.output[1]))?;
    }
    Ok(())
}

/// What a host wrote, each line with its name.
fn prefixed(name: &str, output: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        text.extend_from_slice(format!("{name}: ").as_bytes());
        text.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    text
}

/// One who looks, for each host.
type Watchers<'w> = Vec<Box<dyn Watcher + 'w>>;

fn nobody<'w>(hosts: &[NativeHost]) -> Watchers<'w> {
    let watchers = hosts
        .iter()
        .map(|_| Box::new(NoWatcher) as Box<dyn Watcher>);
    watchers.collect()
}

/// A world with the hosts of a trace.
struct Replayed<'w> {
    world: &'w NativeWorld,
    trace: &'w WorldTrace,
    hosts: Vec<NativeHost>,
}

/// Runs a world as its traces say while somebody looks at each host.
fn watched(replayed: &Replayed<'_>, mut watchers: Watchers<'_>) -> Result<WorldRun> {
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

/// Prints events, and lets time go by, as the arguments say.
fn paced<'w>(args: &ReplayArgs, hosts: &[NativeHost]) -> Watchers<'w> {
    let pace = |host: &NativeHost| -> Box<dyn Watcher> {
        Box::new(Named {
            pace: Pace::new(&args.look),
            name: host.name.clone(),
        })
    };
    hosts.iter().map(pace).collect()
}

struct Named {
    name: String,
    pace: Pace,
}

impl Watcher for Named {
    fn event(&mut self, number: usize, line: &str, clock_ns: u64) -> bool {
        let line = format!("{} {line}", self.name);
        self.pace.event(number, &line, clock_ns)
    }
}

/// A file for each host: the prefix, its name, `.pcap`.
fn write_captures(prefix: &Path, hosts: &[NativeHost], messages: &[Message]) -> Result<()> {
    let prefix = match prefix.extension() {
        Some(extension) if extension == "pcap" => prefix.with_extension(""),
        _ => prefix.to_owned(),
    };
    for host in hosts {
        let bytes = capture(&host.name, messages);
        let file = PathBuf::from(format!("{}-{}.pcap", prefix.display(), host.name));
        std::fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
        println!("what {} sent and got is in {}", host.name, file.display());
    }
    Ok(())
}

/// Opens a debugger on a host; all others stand still.
fn debug(replayed: &Replayed<'_>, place: &Place) -> Result<()> {
    let (trace, hosts) = (replayed.trace, &replayed.hosts);
    let names = hosts.iter().map(|host| host.name.as_str());
    let names: Vec<&str> = names.collect();
    // Where none is named, the one that something is wrong on.
    let name = match &trace.finding {
        Some(wrong) if place.host == HOST && !names.contains(&HOST) => &wrong.host,
        _ => &place.host,
    };
    let Some(at) = names.iter().position(|other| other == name) else {
        bail!("there is no host {name:?}; there are: {}", names.join(", "));
    };
    let mut watcher = HandOver::at(place.event);
    if watcher.at.is_none() {
        let seen = watched(replayed, nobody(hosts))?;
        if let Some(host) = seen.hosts.get(name) {
            println!("host {name} {}", describe(host));
            watcher.at_end_of(host);
        }
    }
    let mut watchers = nobody(hosts);
    watchers[at] = Box::new(Borrowed(&mut watcher));
    let seen = watched(replayed, watchers);
    watcher.outcome?;
    // What the trace says about the rest says nothing about the part that was looked at.
    if watcher.at.is_none() {
        seen?;
    }
    Ok(())
}

/// Somebody else who looks.
struct Borrowed<'w>(&'w mut dyn Watcher);

impl Watcher for Borrowed<'_> {
    fn event(&mut self, number: usize, line: &str, clock_ns: u64) -> bool {
        self.0.event(number, line, clock_ns)
    }

    fn before_exit(&mut self, number: usize) -> bool {
        self.0.before_exit(number)
    }

    fn stopped(&mut self, world: &mut StoppedRun<'_>) {
        self.0.stopped(world);
    }
}

/// Somebody who walks through the events of all hosts.
struct Walk {
    walker: Walker,
    /// Events of all hosts so far.
    events: usize,
    /// The host of the last one.
    on: String,
}

/// The same, at one of the hosts.
struct WalkAt<'w> {
    name: String,
    walk: &'w RefCell<Walk>,
}

impl Watcher for WalkAt<'_> {
    fn event(&mut self, number: usize, line: &str, clock_ns: u64) -> bool {
        let mut walk = self.walk.borrow_mut();
        if walk.walker.wish.is_some() {
            return false;
        }
        walk.events += 1;
        walk.on.clone_from(&self.name);
        let event = walk.events;
        let line = format!("{}:{number} {line}", self.name);
        walk.walker.event(event, &line, clock_ns)
    }

    fn stopped(&mut self, world: &mut StoppedRun<'_>) {
        let mut walk = self.walk.borrow_mut();
        if walk.on == self.name {
            walk.walker.stopped(world);
        }
    }
}

/// Walks through a world event by event.
fn walk(replayed: &Replayed<'_>) -> Result<()> {
    let mut next = 1;
    loop {
        let walker = Walker {
            next,
            wish: None,
            outcome: Ok(()),
        };
        let walk = RefCell::new(Walk {
            walker,
            events: 0,
            on: String::new(),
        });
        let at = |host: &NativeHost| -> Box<dyn Watcher + '_> {
            Box::new(WalkAt {
                name: host.name.clone(),
                walk: &walk,
            })
        };
        let seen = watched(replayed, replayed.hosts.iter().map(at).collect());
        let walk = walk.into_inner();
        if let Err(error) = walk.walker.outcome {
            println!("{error:#}");
        }
        let wish = match walk.walker.wish {
            Some(wish) => wish,
            None => {
                for (name, host) in &seen?.hosts {
                    println!("       host {name} {}", describe(host));
                }
                match ask(walk.events + 1) {
                    Wish::Event(event) if event > walk.events => Wish::Quit,
                    wish => wish,
                }
            }
        };
        match wish {
            Wish::Event(event) => next = event,
            Wish::Debugger | Wish::Quit => return Ok(()),
        }
    }
}
