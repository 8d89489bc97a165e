//! Runs native worlds with faults that are planned beforehand, once for each plan: for searches of
//! fault spaces. Must not know how plans are created.

use everett_engine::Trace;
use everett_native::{Guide, NativeEnd, NativeLimit, NativeRun, Source, WorldRun};
use everett_report::Folder;
use everett_vm::ChoiceSite;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use everett_sim::{PlannedFault, PlannedKind, PlannedSite, USUAL};

use crate::call_sites::CallSites;
use crate::compare::{NOT_ENDED, describe};
use crate::error::{Context, Result, bail};
use crate::events::Silent;
use crate::explore::{RunResult, explore, prepare};
use crate::native::{write_finding, write_test};
use crate::native_world::{CheckedInvariants, NativeWorld, nobody};
use crate::plans::{HostPlans, plan_of};
use crate::scenario::load_scenario;
use crate::session::Session;
use crate::spec::{BuildSpec, RunSpec};
use crate::trace::Wrong;

/// The seed of random bytes, the same for all runs.
const SEED: u64 = 0;

/// A number of failures of calls that exceeds that of any run.
const MOST_FAILURES: &str = "1000000";

/// Findings by which a program terminates itself.
const ABORTS: [&str; 4] = ["abort", "assert", "panic", "uncaught-exception"];
const SIGABRT: i32 = 6;

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct PlannedLimits {
    /// Maximum time.
    pub time: Duration,
    /// Maximum memory of all hosts together.
    pub memory: u64,
}

/// The limits of an exploration: work, never time.
#[derive(Clone, Copy, Debug)]
pub struct ExploreLimits {
    /// Maximum number of paths that end.
    pub paths: u64,
    /// Maximum number of forks.
    pub forks: u64,
    /// Maximum number of instructions of each path.
    pub instructions: u64,
}

/// What runs keep beside their ends and outputs.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeptResults {
    /// Digests of the files that hosts change.
    pub files: bool,
    /// The source lines that hosts execute, by the debug information of their programs.
    pub lines: bool,
    /// The stacks and arguments of calls that can fail.
    pub callers: bool,
}

/// A native world that is run with planned faults.
pub struct PlannedWorld {
    spec: RunSpec,
    world: NativeWorld,
    session: Session,
    limits: PlannedLimits,
    sites: CallSites,
}

/// A fault that occurred.
#[derive(Clone, Debug)]
pub struct InjectedFault {
    /// The host.
    pub host: String,
    /// The call that failed, or the name of the fault.
    pub what: String,
    /// The call stack of the fault, innermost first; empty for faults of the network and of hosts.
    pub stack: Vec<String>,
    /// The arguments of the call, without addresses; empty for faults of the network and of hosts.
    pub arguments: Vec<String>,
}

/// How a host ended.
#[derive(Clone, Debug)]
pub struct PlannedHost {
    /// The name of the host.
    pub name: String,
    /// The exit status; 0 if it ended as the scenario expects, or waits.
    pub code: i32,
    /// The signal that ended the host, with the call stack, innermost first.
    pub crash: Option<(i32, Vec<String>)>,
    /// Standard output and standard error.
    pub output: [Vec<u8>; 2],
    /// A description of the end, for people.
    pub text: String,
    /// Whether the host has not ended although its world is over or cut off at its virtual time,
    /// and the scenario does not expect that.
    pub is_stuck: bool,
    /// Files that the host changed, with digests of their contents.
    pub files: BTreeMap<String, String>,
}

/// The result of a run.
pub struct PlannedRun {
    /// The hosts, by name.
    pub hosts: Vec<PlannedHost>,
    /// The finding, if there is one.
    pub wrong: Option<Wrong>,
    /// The limit of the run that was reached, if any.
    pub limit: Option<NativeLimit>,
    /// Faults that occurred.
    pub injected: Vec<InjectedFault>,
    seen: WorldRun,
}

impl PlannedRun {
    /// Returns the finding, if it is neither a crash nor a hang: such as a violated invariant.
    pub fn broken(&self) -> Option<&Wrong> {
        let is_crash = |kind: &str| matches!(kind, "signal" | "hang") || ABORTS.contains(&kind);
        self.wrong.as_ref().filter(|wrong| !is_crash(&wrong.kind))
    }

    /// Describes the finding, or the host that reached a limit.
    fn failure(&self) -> Option<String> {
        let limited = self.limit.as_ref().and_then(|_| {
            let is_limited = |run: &&PlannedHost| match self.seen.hosts.get(&run.name) {
                Some(seen) => matches!(seen.end, NativeEnd::Limit(_)),
                None => false,
            };
            let host = self.hosts.iter().find(is_limited)?;
            Some(format!("{} {}", host.name, host.text))
        });
        let wrong = self.wrong.as_ref();
        let wrong = wrong.map(|wrong| format!("{}: {}: {}", wrong.host, wrong.kind, wrong.message));
        limited.or(wrong)
    }

    /// The source lines that were executed, as `FILE:LINE`, if they are kept.
    pub fn lines(&self) -> Vec<String> {
        let all = self.seen.hosts.values().flat_map(|run| &run.lines);
        let all: BTreeSet<String> = all.map(|(file, line)| format!("{file}:{line}")).collect();
        all.into_iter().collect()
    }

    /// Returns whether a host did not reach its end.
    pub fn hangs(&self) -> bool {
        let hangs = |run: &NativeRun| matches!(run.end, NativeEnd::Hang);
        self.seen.hosts.values().any(hangs)
    }
}

/// From where a call comes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Caller {
    /// The source line, or what is known of it.
    pub site: String,
    /// The name of the whole stack.
    pub stack: String,
    /// The arguments of the call, without addresses.
    pub arguments: Vec<String>,
}

/// A fault that can be planned.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Possible {
    /// A failure of a call on a host.
    Call {
        /// The host.
        host: String,
        /// The call.
        call: String,
        /// The failure.
        failure: String,
        /// From where the call comes, if stacks are kept.
        from: Option<Caller>,
    },
    /// A fault of the scenario on a host.
    Scenario {
        /// The host.
        host: String,
        /// The name of the fault.
        fault: String,
    },
}

impl PlannedWorld {
    /// Creates the world of a scenario, in which these calls can fail; `*` means all.
    pub fn of(
        scenario: &Path,
        calls: &BTreeSet<String>,
        limits: PlannedLimits,
        kept: KeptResults,
    ) -> Result<PlannedWorld> {
        let session = Session::new();
        let mut spec = RunSpec::new([scenario]);
        if !spec.is_scenario() {
            bail!(Usage, "{} is not a scenario: NAME.toml", scenario.display());
        }
        if !calls.is_empty() {
            let groups: BTreeSet<String> = {
                let hosts = load_scenario(&spec.scenario())?.hosts.into_iter();
                hosts.map(|host| host.group).collect()
            };
            let calls: Vec<String> = calls.iter().map(|call| format!("{call:?}")).collect();
            for group in groups {
                let key = |name: &str| format!("host.{group}.{name}");
                spec.settings
                    .push((key("faults"), MOST_FAILURES.to_owned()));
                spec.settings
                    .push((key("fault_calls"), format!("[{}]", calls.join(", "))));
            }
        }
        let sites = CallSites::of_this_machine();
        let mut world = NativeWorld::of(&spec, &BuildSpec::default(), &session)?;
        for host in &mut world.hosts {
            if host.peer.is_some() {
                bail!(Usage, "fault searches of worlds have no live peers");
            }
            host.config.finds_panics = true;
            host.config.keeps_files = kept.files;
            host.config.counts_lines = kept.lines;
            host.config.max_memory = limits.memory;
            let sites = sites.clone();
            host.config.is_at = Some(Arc::new(move |from, origin| sites.is_at(origin, from)));
            host.config.keeps_callers = kept.callers;
        }
        Ok(PlannedWorld {
            spec,
            world,
            session,
            limits,
            sites,
        })
    }

    /// Returns the names of the hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.world.hosts.iter().map(|host| host.name.as_str())
    }

    /// Returns the names of the faults of the scenario.
    pub fn faults(&self) -> Vec<String> {
        let context = self.world.context.as_ref();
        let faults = context.map(|context| context.scenario.faults.list());
        let faults = faults.into_iter().flatten();
        faults.map(|fault| fault.name.clone()).collect()
    }

    /// Runs the world with some faults.
    pub fn run(&self, plans: &HostPlans) -> Result<PlannedRun> {
        let mut hosts = self.world.seeded(SEED);
        let (clock, until) = (self.session.clock, self.session.now() + self.limits.time);
        for host in &mut hosts {
            host.config.deadline = Some(Arc::new(move || clock.now() >= until));
        }
        let mut watchers = nobody(&hosts);
        let guided = (1u64..).zip(&hosts).zip(&mut watchers);
        let guides = guided.map(|((number, host), watcher)| {
            let plan = plan_of(plans, &host.name);
            let begin = host.begin.as_ref();
            let begin = begin.map_or_else(Trace::default, |begin| Trace::clone(begin));
            Guide {
                source: Source::Planned(Box::new(begin), SEED ^ number, plan),
                watcher: &mut **watcher,
            }
        });
        let seen = self
            .world
            .run(&hosts, guides.collect(), CheckedInvariants::AnyInvariant);
        let seen = seen.context("the native programs could not be run")?;
        let wrong = self.world.wrong_with(&seen);
        let limit = seen.hosts.values().find_map(|run| match &run.end {
            NativeEnd::Limit(limit) => Some(limit.clone()),
            _ => None,
        });
        Ok(PlannedRun {
            hosts: seen
                .hosts
                .iter()
                .map(|(name, run)| self.host(name, run, &seen))
                .collect(),
            wrong,
            limit,
            injected: seen
                .hosts
                .iter()
                .flat_map(|(host, run)| self.injected(host, run))
                .collect(),
            seen,
        })
    }

    /// Checks that the world can be explored: its programs need bitcode, which runs do not.
    pub fn check_explorable(&self, limits: ExploreLimits, session: &Session) -> Result<()> {
        let spec = self.explored_spec(HostPlans::new(), limits);
        prepare(&spec, session).map(drop)
    }

    /// Explores the world with some faults: no others occur, and inputs are symbolic.
    pub fn explore(
        &self,
        plans: HostPlans,
        out: &Path,
        limits: ExploreLimits,
        session: &Session,
    ) -> Result<RunResult> {
        let spec = RunSpec {
            out: Some(out.to_owned()),
            ..self.explored_spec(plans, limits)
        };
        explore(&spec, session, &mut Silent)
    }

    fn explored_spec(&self, plans: HostPlans, limits: ExploreLimits) -> RunSpec {
        RunSpec {
            planned: Some(plans),
            max_paths: Some(limits.paths),
            max_forks: Some(limits.forks),
            max_instructions: Some(limits.instructions),
            no_tests: true,
            ..self.spec.clone()
        }
    }

    fn host(&self, name: &str, run: &NativeRun, seen: &WorldRun) -> PlannedHost {
        let is_expected = self.world.unexpected(name, run).is_empty();
        let hosts = &self.world.hosts;
        let expects = |host: &&everett_native::NativeHost| host.name == name;
        let has_expectation = hosts
            .iter()
            .find(expects)
            .is_some_and(|host| !host.expects.is_empty());
        let code = match run.end {
            NativeEnd::Exit(_) if has_expectation && is_expected => 0,
            NativeEnd::Exit(code) => code,
            _ => 0,
        };
        let signal = match &run.end {
            NativeEnd::Signal { signal, .. } => Some(*signal),
            NativeEnd::Finding { kind, .. } if ABORTS.contains(&kind.as_str()) => Some(SIGABRT),
            _ => None,
        };
        let crash = signal.map(|signal| (signal, self.sites.texts(&run.stack)));
        let files = run.files.iter().map(|(file, bytes)| {
            let path = String::from_utf8_lossy(&file.path).into_owned();
            (path, everett_engine::digest(bytes))
        });
        PlannedHost {
            name: name.to_owned(),
            code,
            crash,
            output: run.output.clone(),
            text: match run.end {
                NativeEnd::Idle if !seen.is_over => NOT_ENDED.to_owned(),
                NativeEnd::Limit(ref limit) => limit.what(),
                _ => describe(run),
            },
            // Expectations apply to worlds that are over.
            is_stuck: run.end == NativeEnd::Idle
                && (seen.is_cut || seen.is_over && !has_expectation),
            files: files.collect(),
        }
    }

    /// Returns the faults that can occur in a run without faults, and how often. The world must
    /// have been created with the calls that may fail.
    pub fn possible(&self) -> Result<BTreeMap<Possible, u64>> {
        let run = self.run(&Vec::new())?;
        if let Some(why) = run.failure() {
            bail!(Usage, "the world fails without any fault: {why}");
        }
        let mut all = BTreeMap::new();
        for (host, run) in &run.seen.hosts {
            for (number, choice) in run.trace.choices.iter().enumerate() {
                let site = &choice.site;
                if !site.is_fault() || matches!(site, ChoiceSite::UnsyncedLoss { .. }) {
                    continue;
                }
                let from = run.asked_from.get(&number);
                let from = from.and_then(|origin| {
                    Some(Caller {
                        site: self.sites.name(&origin.stack)?,
                        stack: self.sites.identity(&origin.stack),
                        arguments: origin.arguments.clone(),
                    })
                });
                for name in site.faults() {
                    let (host, failure) = (host.clone(), name.to_owned());
                    let possible = match call_of(site) {
                        Some(call) => Possible::Call {
                            host,
                            call: call.to_owned(),
                            failure,
                            from: from.clone(),
                        },
                        None => Possible::Scenario {
                            host,
                            fault: failure,
                        },
                    };
                    *all.entry(possible).or_default() += 1;
                }
            }
        }
        Ok(all)
    }

    /// Writes the spec that replays of this world's traces need into the folder of results.
    pub fn write(&self, folder: &Folder) -> Result<()> {
        self.spec.write(folder)
    }

    /// Writes the trace of a run to a file in the folder, with its messages if there is a finding.
    /// `everett replay` and `everett test` replay it.
    pub fn write_trace(&self, run: &PlannedRun, folder: &Folder, place: &str) -> Result<()> {
        match &run.wrong {
            Some(wrong) => {
                let seen = (SEED, &run.seen);
                write_finding(folder, place, &self.world, seen, wrong.clone())
            }
            None => write_test(folder, place, (SEED, &run.seen)),
        }
    }
}

/// Returns the call that a choice can make fail; `malloc` for an allocation.
fn call_of(site: &ChoiceSite) -> Option<&str> {
    site.fault_target().filter(|_| site.is_of_call())
}

impl PlannedWorld {
    /// Returns the faults that occurred on a host. Stacks are those of calls and allocations, in
    /// order.
    fn injected(&self, host: &str, run: &NativeRun) -> Vec<InjectedFault> {
        let mut calls = run.injected.iter();
        let choices = run.trace.choices.iter();
        let faults = choices.filter(|choice| choice.picked > 0 && choice.site.is_fault());
        faults
            .map(|choice| {
                let (what, origin) = match call_of(&choice.site) {
                    Some(call) => (Some(call), calls.next()),
                    None => (choice.site.faults().nth(choice.picked as usize - 1), None),
                };
                let stack = origin.map(|origin| self.sites.texts(&origin.stack));
                InjectedFault {
                    host: host.to_owned(),
                    what: what.unwrap_or_default().to_owned(),
                    stack: stack.unwrap_or_default(),
                    arguments: origin.map_or(Vec::new(), |origin| origin.arguments.clone()),
                }
            })
            .collect()
    }
}
