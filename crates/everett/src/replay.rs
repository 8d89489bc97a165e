//! `replay`: replays traces on native programs under the same kernel model and reports the
//! verdicts. Must not know who observes a replay.

use everett_native::{NativeHost, NativeRun, Watcher, WorldRun};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use crate::capture::{capture, packets_of};
use crate::error::{Context, Result, bail};
use crate::events::{Event, Observer};
use crate::follow::{Model, prepare};
use crate::native_world::{NativeWorld, Replayed, Watchers, nobody, tell_revealing};
use crate::repeat::repeat;
use crate::session::Session;
use crate::spec::{BuildSpec, RunSpec};
use crate::trace::{WorldTrace, is_dtest, traces_of};
use crate::verdict::Verdict;

/// The traces to replay, and how.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplaySpec {
    /// A trace, the folder of a finding, or the folder of a run.
    pub path: PathBuf,
    /// The build to replay on.
    pub build: BuildSpec,
    /// Whether `path` must denote exactly one trace.
    pub one: bool,
    /// Whether every event is reported as it happens ([`Event::Step`]).
    pub steps: bool,
    /// The pcap file for the packets of internet sockets; for a world, one file per host, with the
    /// name of the host appended to the file name.
    pub pcap: Option<PathBuf>,
    /// Number of times that each trace is replayed; all events of these runs are compared.
    pub times: Option<NonZeroU32>,
    /// Whether live peers answer, not the recording. They are started and contacted.
    pub live: bool,
}

impl ReplaySpec {
    /// Creates a spec for the traces that `path` denotes, on the programs that were explored.
    pub fn new(path: impl Into<PathBuf>) -> ReplaySpec {
        ReplaySpec {
            path: path.into(),
            ..ReplaySpec::default()
        }
    }

    /// Fails if there are several traces for options that apply to a single one.
    fn expect_one(&self, traces: &[PathBuf]) -> Result<()> {
        if self.one || self.pcap.is_some() {
            expect_one(&self.path, traces)?;
        }
        Ok(())
    }
}

/// Returns the only trace that `path` denotes.
fn expect_one<'t>(path: &Path, traces: &'t [PathBuf]) -> Result<&'t PathBuf> {
    match traces {
        [one] => Ok(one),
        _ => bail!(
            Trace,
            "{} has {} traces; name the one to look at",
            path.display(),
            traces.len()
        ),
    }
}

/// The result of replaying traces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayResult {
    /// Number of traces.
    pub traces: usize,
    /// Number of confirmed traces.
    pub confirmed: usize,
    /// Whether the traces are those of worlds.
    pub are_worlds: bool,
}

/// Wraps an observer so that several watchers share it.
fn shared(observer: &mut dyn Observer) -> RefCell<&mut dyn Observer> {
    RefCell::new(observer)
}

/// A watcher that reports every event of a host as it happens.
struct Steps<'s, 'o> {
    host: Option<String>,
    observer: &'s RefCell<&'o mut dyn Observer>,
}

impl Watcher for Steps<'_, '_> {
    fn event(&mut self, number: usize, line: &str, clock_ns: u64) -> bool {
        self.observer.borrow_mut().event(&Event::Step {
            host: self.host.as_deref(),
            number,
            line,
            clock_ns,
        });
        true
    }
}

/// Creates watchers that report the events of all hosts.
fn steps<'s, 'o: 's>(
    world: &NativeWorld,
    observer: &'s RefCell<&'o mut dyn Observer>,
) -> Watchers<'s> {
    let at = |host: &NativeHost| -> Box<dyn Watcher + 's> {
        Box::new(Steps {
            host: (!world.is_program()).then(|| host.name.clone()),
            observer,
        })
    };
    world.hosts.iter().map(at).collect()
}

/// Replays traces natively.
pub fn replay(
    spec: &ReplaySpec,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<ReplayResult> {
    let (folder, traces) = traces_of(&spec.path)?;
    let run = RunSpec::of(&folder)?;
    let mut world = NativeWorld::of(&run, &spec.build, session)?;
    if spec.live {
        world.ask_live_peers()?;
    }
    let programs = world.hosts.iter().flat_map(|host| &host.config.programs);
    tell_revealing(programs, session);
    spec.expect_one(&traces)?;
    let is_program = world.is_program();
    for host in &mut world.hosts {
        let config = &mut host.config;
        config.keeps_events = spec.times.is_some();
        config.host.options.logs_calls = spec.steps;
        config.host.options.logs_packets = is_program && spec.pcap.is_some();
    }
    let mut others = 0;
    for path in &traces {
        let mut trace = WorldTrace::read(path, is_program)?;
        if is_dtest(path) && !is_program {
            trace = completed(&run, &trace, session)?;
        }
        if trace.has_end() {
            let is_one = traces.len() == 1;
            let verdict = replay_one(spec, &world, path, &trace, is_one, observer)?;
            others += usize::from(verdict != Some(Verdict::Confirmed));
        }
    }
    Ok(ReplayResult {
        traces: traces.len(),
        confirmed: traces.len() - others,
        are_worlds: !is_program,
    })
}

/// Completes the inputs of a distributed test to a trace of the world, by following them in the
/// bitcode of its programs. Nothing else happens in that world.
fn completed(run: &RunSpec, inputs: &WorldTrace, session: &Session) -> Result<WorldTrace> {
    let (config, images) = prepare(run, session)?;
    let seen = Model::new(config, &images).follow(inputs)?;
    if let Some(found) = seen.findings.first() {
        return Ok(WorldTrace::of(found, false));
    }
    match seen.ends.last() {
        Some(hosts) => Ok(WorldTrace::of_hosts(hosts.clone())),
        None => bail!(Trace, "the world of this test does not come to its end"),
    }
}

/// Replays one trace. `None` if repeated runs differ.
fn replay_one(
    spec: &ReplaySpec,
    world: &NativeWorld,
    path: &Path,
    trace: &WorldTrace,
    is_one: bool,
    observer: &mut dyn Observer,
) -> Result<Option<Verdict>> {
    let hosts = match spec.times.is_some() || spec.steps {
        true => world.prepared(trace)?,
        false => Vec::new(),
    };
    if let Some(times) = spec.times {
        let run = || world.watch(&hosts, trace, nobody(&hosts));
        let repeats = repeat(run, times.get(), world.is_program())?;
        observer.event(&Event::Repeated {
            path,
            times,
            repeats: &repeats,
        });
        if !repeats.are_same() {
            return Ok(None);
        }
    }
    let Replayed { verdict, seen, .. } = match spec.steps {
        true => {
            let shared = shared(observer);
            world.replay_on(&hosts, trace, &mut steps(world, &shared))?
        }
        false => world.replay(trace)?,
    };
    if let Some(seen) = seen {
        if let Some(file) = &spec.pcap {
            write_captures(file, world, &seen, observer)?;
        }
        for (name, run) in seen.hosts.iter().filter(|_| is_one) {
            observer.event(&Event::Output {
                host: (!world.is_program()).then_some(name),
                streams: &run.output,
            });
        }
    }
    observer.event(&Event::Replayed {
        path,
        verdict: &verdict,
    });
    Ok(Some(verdict))
}

/// Writes the packets of a replay: for a program to this file; for a world to a file for each host,
/// named prefix, host, `.pcap`.
fn write_captures(
    file: &Path,
    world: &NativeWorld,
    seen: &WorldRun,
    observer: &mut dyn Observer,
) -> Result<()> {
    let prefix = match file.extension() {
        Some(extension) if extension == "pcap" => file.with_extension(""),
        _ => file.to_owned(),
    };
    for host in &world.hosts {
        let (name, file, packets) = match (world.is_program(), seen.hosts.get(&host.name)) {
            (true, Some(run)) => (None, file.to_owned(), packets_of(&host.config, run)),
            _ => {
                let file = PathBuf::from(format!("{}-{}.pcap", prefix.display(), host.name));
                let packets = capture(&host.name, &seen.messages);
                (Some(host.name.as_str()), file, packets)
            }
        };
        std::fs::write(&file, everett_report::pcap(&packets))
            .with_context(|| format!("cannot write {}", file.display()))?;
        observer.event(&Event::Captured {
            host: name,
            file: &file,
            packets: packets.len(),
        });
    }
    Ok(())
}

/// A trace of a program or a world that can be replayed natively any number of times. Debuggers and
/// the step-by-step view of a replay build on it.
pub struct NativeReplay {
    world: NativeWorld,
    hosts: Vec<NativeHost>,
    trace: WorldTrace,
}

impl NativeReplay {
    /// Opens the only trace that `path` denotes.
    pub fn open(path: &Path, build: &BuildSpec, session: &Session) -> Result<NativeReplay> {
        let (folder, traces) = traces_of(path)?;
        let run = RunSpec::of(&folder)?;
        let mut world = NativeWorld::of(&run, build, session)?;
        let trace = WorldTrace::read(expect_one(path, &traces)?, world.is_program())?;
        for host in &mut world.hosts {
            host.config.host.options.logs_calls = true;
        }
        Ok(NativeReplay {
            hosts: world.prepared(&trace)?,
            world,
            trace,
        })
    }

    /// Returns whether the trace is that of a world of several hosts.
    pub fn is_world(&self) -> bool {
        !self.world.is_program()
    }

    /// Returns the names of the hosts; a single program has one host, [`HOST`](crate::HOST).
    pub fn hosts(&self) -> Vec<&str> {
        self.hosts.iter().map(|host| host.name.as_str()).collect()
    }

    /// Returns the host of a world on which the finding occurred.
    pub fn wrong_host(&self) -> Option<&str> {
        Some(self.trace.finding.as_ref()?.host.as_str())
    }

    /// Replays the trace with one watcher per host, in the order of [`NativeReplay::hosts`].
    /// Returns the run of each host, by name.
    pub fn run(&self, watchers: Vec<Box<dyn Watcher + '_>>) -> Result<BTreeMap<String, NativeRun>> {
        Ok(self.world.watch(&self.hosts, &self.trace, watchers)?.hosts)
    }
}
