//! `follow` and `strace`: re-execute traces in the engine, without solver queries, and compare how
//! they end. Must not know native programs.

use everett_engine::{
    Explorer, ExplorerConfig, HostStatus, Limits, Listener, PathEnd, SavedFiles, Start, Trace,
    TraceEnd, WorldFinding,
};
use everett_net::HostIndex;
use everett_sim::Message;
use everett_vm::Image;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::config::program_config;
use crate::error::Result;
use crate::events::{Event, Observer};
use crate::session::Session;
use crate::spec::RunSpec;
use crate::trace::{Ending, HOST, HostEnd, INVARIANT, WorldTrace, Wrong, traces_of};
use crate::world;
use crate::world::hosts::draw_by;

/// The result of following traces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FollowResult {
    /// Number of traces.
    pub traces: usize,
    /// Number of traces that ended differently.
    pub different: usize,
}

/// Follows one trace, or all traces below the folder of a run.
pub fn follow(path: &Path, session: &Session, observer: &mut dyn Observer) -> Result<FollowResult> {
    let (folder, traces) = traces_of(path)?;
    let spec = RunSpec::of(&folder)?;
    let (config, images) = prepare(&spec, session)?;
    let model = Model::new(config, &images);
    let mut different = 0;
    for path in &traces {
        let trace = WorldTrace::read(path, !spec.is_scenario())?;
        if !trace.has_end() {
            continue;
        }
        let ending = ending(&trace, &model.follow(&trace)?);
        different += usize::from(!matches!(ending, Ending::Same));
        let ending = &ending;
        observer.event(&Event::Followed { path, ending });
    }
    Ok(FollowResult {
        traces: traces.len(),
        different,
    })
}

/// Follows traces and reports the system calls of each host, in order, in the format of strace.
pub fn strace(path: &Path, session: &Session, observer: &mut dyn Observer) -> Result<()> {
    let (folder, traces) = traces_of(path)?;
    let spec = RunSpec::of(&folder)?;
    let (mut config, images) = prepare(&spec, session)?;
    for host in &mut config.hosts {
        host.config.options.logs_calls = true;
    }
    let model = Model::new(config, &images);
    for path in &traces {
        let trace = WorldTrace::read(path, !spec.is_scenario())?;
        let seen = model.follow(&trace)?;
        let lines = seen.host_status.iter().flat_map(|host| {
            let missing = missing_calls(host).filter(|_| !trace.is_program);
            let calls = missing.into_iter().chain(host.calls.clone());
            calls.map(|call| match trace.is_program {
                true => call,
                false => format!("{} {call}", host.name),
            })
        });
        observer.event(&Event::Calls {
            path,
            of: traces.len(),
            lines: &lines.collect::<Vec<_>>(),
        });
    }
    Ok(())
}

/// Returns a line about calls of a host that are not in its log, which ends when it is switched off.
fn missing_calls(host: &HostStatus) -> Option<String> {
    let doing = &host.doing;
    match host.restarts {
        _ if host.is_off => Some(format!(
            "+++ {doing}: its calls until then are not kept +++"
        )),
        0 if host.calls.is_empty() => Some(format!("+++ {doing}, without a system call +++")),
        0 => None,
        1 => Some("+++ was started again: its calls until then are not kept +++".to_owned()),
        n => Some(format!(
            "+++ was started again {n} times: its calls until the last time are not kept +++"
        )),
    }
}

/// Returns the configuration of a run's exploration, and its programs.
pub(crate) fn prepare(spec: &RunSpec, session: &Session) -> Result<(ExplorerConfig, Vec<Image>)> {
    match spec.is_scenario() {
        true => world::prepare(spec, session),
        false => Ok((program_config(spec, session)?, spec.load()?)),
    }
}

/// Returns the choices and ends of all hosts.
fn ends(hosts: &BTreeMap<String, Trace>) -> BTreeMap<String, HostEnd> {
    let ends = hosts.iter();
    ends.map(|(name, trace)| (name.clone(), (trace.choices.clone(), trace.end.clone())))
        .collect()
}

/// Returns how a followed trace ended, compared with the recorded end.
fn ending(trace: &WorldTrace, seen: &Seen) -> Ending {
    let wrong = || -> Vec<Wrong> { seen.findings.iter().map(Wrong::of).collect() };
    match (&trace.finding, trace.end()) {
        (Some(_), _) if seen.finding_of(trace).is_some() => Ending::Same,
        (Some(expected), _) => Ending::Finding {
            expected: expected.clone(),
            seen: wrong(),
        },
        (None, Some(expected)) if trace.is_program => match seen.end() {
            Some(end) if end == expected => Ending::Same,
            seen => Ending::Path {
                expected: expected.clone(),
                seen: seen.cloned(),
            },
        },
        (None, _) => {
            let expected = ends(&trace.hosts);
            let seen: Vec<_> = seen.ends.iter().map(ends).collect();
            if seen.contains(&expected) {
                return Ending::Same;
            }
            Ending::World {
                expected,
                seen,
                wrong: wrong(),
            }
        }
    }
}

/// Programs and hosts in which the engine follows traces, one at a time.
pub(crate) struct Model<'i> {
    /// The configuration of the engine.
    pub config: ExplorerConfig,
    images: &'i [Image],
}

impl<'i> Model<'i> {
    /// Creates a model for the traces of a run.
    pub(crate) fn new(config: ExplorerConfig, images: &'i [Image]) -> Model<'i> {
        // The limits of the run do not apply here, except those that decide which paths are hangs
        // and which worlds are cut off: these are part of the meaning of a trace. One path needs
        // little memory, even if a search still holds much.
        let limits = Limits {
            max_instructions: config.limits.max_instructions,
            max_virtual_ns: config.limits.max_virtual_ns,
            ..Limits::default()
        };
        let search = match config.world {
            Some(_) => Vec::new(),
            None => vec!["dfs".to_owned()],
        };
        let config = ExplorerConfig {
            all_tests: true,
            no_tests: false,
            all_findings: true,
            limits,
            search,
            spill: None,
            against: None,
            ..config
        };
        Model { config, images }
    }

    /// Follows a trace.
    pub(crate) fn follow(&self, trace: &WorldTrace) -> Result<Seen> {
        match trace.is_program {
            true => self.run(Start::Trace(trace.host(HOST)), None),
            false => self.run(Start::World(trace.hosts.clone()), trace.random_seed),
        }
    }

    /// Follows a trace whose inputs and choices may be incomplete: missing ones take their default.
    /// Worlds are always followed this way.
    pub(crate) fn follow_loosely(&self, trace: &WorldTrace) -> Result<Seen> {
        match trace.is_program {
            true => self.run(Start::Loosely(trace.host(HOST)), None),
            false => self.follow(trace),
        }
    }

    /// Follows the trace of a finding; a broken invariant reports which writes have set the data
    /// that it reads.
    pub(crate) fn follow_finding(&self, trace: &WorldTrace) -> Result<Seen> {
        let is_invariant = trace.kind() == Some(INVARIANT);
        let mut config = self.config.clone();
        config.vm.log_writes = is_invariant;
        let images = self.images;
        Model { config, images }.follow(trace)
    }

    /// Follows the trace of a program and marks the segments that it executes. `None` if it does
    /// not reach an end.
    pub(crate) fn follow_covering(
        &self,
        trace: &Trace,
        covered: &mut Vec<u8>,
    ) -> Result<Option<PathEnd>> {
        let start = Start::Trace(trace.clone());
        let mut explorer = Explorer::new(self.images, self.config.clone(), start)?;
        let segments = &mut explorer.coverage_mut().segments;
        covered.resize(segments.len(), 0);
        segments.clone_from(covered);
        let mut last = LastPath(None);
        explorer.run(&AtomicBool::new(false), &mut last);
        covered.clone_from(&explorer.coverage().segments);
        Ok(last.0)
    }

    /// Follows the traces of a world and marks the segments that it executes. Returns whether some
    /// are new, and the files that programs want to save.
    pub(crate) fn follow_world_covering(
        &self,
        hosts: &BTreeMap<String, Trace>,
        covered: &mut Vec<u8>,
    ) -> Result<(bool, SavedFiles)> {
        let start = Start::World(hosts.clone());
        let mut explorer = Explorer::new(self.images, self.config.clone(), start)?;
        let segments = &mut explorer.coverage_mut().segments;
        covered.resize(segments.len(), 0);
        segments.clone_from(covered);
        let mut last = LastWorld(SavedFiles::new());
        explorer.run(&AtomicBool::new(false), &mut last);
        let after = explorer.coverage();
        let blocks = after.blocks().iter();
        let grew = blocks.zip(&*covered).any(|(new, old)| new > old);
        covered.clone_from(&after.segments);
        Ok((grew, last.0))
    }

    fn run(&self, start: Start, random_seed: Option<u64>) -> Result<Seen> {
        let mut config = self.config.clone();
        for (host, at) in config.hosts.iter_mut().zip(0..) {
            if let Some(seed) = random_seed {
                draw_by(seed, HostIndex(at), &mut host.config);
            }
        }
        let is_world = config.world.is_some();
        let mut explorer = Explorer::new(self.images, config, start)?;
        let mut seen = Seen::default();
        explorer.run(&AtomicBool::new(false), &mut seen);
        seen.instructions = explorer.statistics().instructions;
        if is_world {
            seen.host_status = explorer.host_status().to_vec();
            seen.messages = explorer.messages();
        }
        Ok(seen)
    }
}

/// A listener that keeps the path that ended last.
struct LastPath(Option<PathEnd>);

impl Listener for LastPath {
    fn path(&mut self, end: &PathEnd) {
        self.0 = Some(end.clone());
    }

    fn finding(&mut self, _: &WorldFinding) {}

    fn tick(&mut self, _: &Explorer<'_>) {}
}

/// A listener that keeps the files of the world that ended last.
struct LastWorld(SavedFiles);

impl Listener for LastWorld {
    fn world(&mut self, _: &BTreeMap<String, Trace>, files: &SavedFiles) {
        self.0.clone_from(files);
    }

    fn finding(&mut self, _: &WorldFinding) {}

    fn tick(&mut self, _: &Explorer<'_>) {}
}

/// The results of following a trace.
#[derive(Default)]
pub(crate) struct Seen {
    /// The findings.
    pub findings: Vec<WorldFinding>,
    /// The complete traces of the hosts of each world that ended.
    pub ends: Vec<BTreeMap<String, Trace>>,
    /// The last status of each host.
    pub host_status: Vec<HostStatus>,
    /// Messages between hosts.
    pub messages: Vec<Message>,
    /// Number of instructions.
    pub instructions: u64,
}

impl Seen {
    /// Returns the complete trace of a program.
    pub(crate) fn trace(&self) -> Option<&Trace> {
        self.ends.last()?.get(HOST)
    }

    /// Returns the end of a program.
    pub(crate) fn end(&self) -> Option<&TraceEnd> {
        self.trace()?.end.as_ref()
    }

    /// Returns the finding that a trace of a world leads to, if it occurred again.
    pub(crate) fn finding_of(&self, trace: &WorldTrace) -> Option<&WorldFinding> {
        let is_it = |one: &&WorldFinding| Some(Wrong::of(one)) == trace.finding;
        self.findings.iter().find(is_it)
    }

    /// Returns the first finding of a kind.
    pub(crate) fn finding_of_kind(&self, kind: &str) -> Option<&WorldFinding> {
        let mut findings = self.findings.iter();
        findings.find(|one| one.finding.kind.name() == kind)
    }

    /// Returns the messages on the way to the finding or to the end of a trace, and the status of
    /// each host there.
    pub(crate) fn on_the_way(self, trace: &WorldTrace) -> (Vec<Message>, Vec<HostStatus>) {
        match self.finding_of(trace) {
            Some(found) => (found.messages.clone(), found.host_status.clone()),
            None if trace.finding.is_none() => (self.messages, self.host_status),
            None => (self.messages, Vec::new()),
        }
    }
}

impl Listener for Seen {
    fn path(&mut self, end: &PathEnd) {
        let trace = end.trace.iter().cloned();
        self.ends
            .extend(trace.map(|trace| BTreeMap::from([(HOST.to_owned(), trace)])));
        self.host_status = vec![HostStatus {
            name: HOST.to_owned(),
            clock_ns: 0,
            doing: String::new(),
            is_off: false,
            threads: Vec::new(),
            failures: Vec::new(),
            calls: end.calls.clone(),
            files: end.files.clone(),
            points: end.points.clone(),
            restarts: 0,
        }];
    }

    fn finding(&mut self, found: &WorldFinding) {
        self.findings.push(found.clone());
    }

    fn world(&mut self, traces: &BTreeMap<String, Trace>, _: &SavedFiles) {
        self.ends.push(traces.clone());
    }

    fn tick(&mut self, _: &Explorer<'_>) {}
}
