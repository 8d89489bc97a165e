//! The system under test as a world of native programs under the kernel model. Runs it with planned
//! faults, in this process.

use everett::{
    ExploreLimits, HostPlans, KeptResults, NativeLimit, PlannedFault, PlannedKind, PlannedLimits,
    PlannedRun, PlannedSite, PlannedWorld, Possible, Session, Summary, joined_arguments,
};
use everett_report::Folder;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::error::{Error, Result};
use crate::injector::WorldFault;
use crate::manager::{Crash, Ended, Injected, Output, Seen, WorldRun, digest};
use crate::results::Isolation;
use crate::settings::{Explore, Limits, SearchConfig};

/// A pool of worlds that are ready to run: each job takes one, and puts it back.
pub(crate) struct Worlds {
    scenario: PathBuf,
    /// Calls that may fail.
    calls: BTreeSet<String>,
    limits: PlannedLimits,
    kept: KeptResults,
    most_output: usize,
    /// The names of the hosts, and of the faults of the scenario.
    hosts: Vec<String>,
    faults: Vec<String>,
    idle: Mutex<Vec<PlannedWorld>>,
}

impl Worlds {
    /// Creates the world of a search, in which these calls may fail.
    pub(crate) fn new(config: &SearchConfig, calls: BTreeSet<String>) -> Result<Worlds> {
        let scenario = config.folder.join(&config.scenario);
        let limits = limits_of(&config.limits);
        let kept = KeptResults {
            files: config.impact.files > 0.0,
            lines: config.impact.coverage > 0.0,
            callers: false,
        };
        // Errors in the scenario are reported before the search begins.
        let first = PlannedWorld::of(&scenario, &calls, limits, kept)?;
        Ok(Worlds {
            scenario,
            calls,
            limits,
            kept,
            most_output: usize::try_from(config.limits.output).unwrap_or(usize::MAX),
            hosts: first.hosts().map(str::to_owned).collect(),
            faults: first.faults(),
            idle: Mutex::new(vec![first]),
        })
    }

    fn with<T>(&self, work: impl FnOnce(&PlannedWorld) -> Result<T>) -> Result<T> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let ready = idle().pop();
        let world = match ready {
            Some(world) => world,
            None => PlannedWorld::of(&self.scenario, &self.calls, self.limits, self.kept)?,
        };
        let done = work(&world);
        idle().push(world);
        done
    }

    /// Checks that the scenario has the hosts and faults of a plan.
    pub(crate) fn check(&self, faults: &[WorldFault]) -> Result<()> {
        for fault in faults {
            if let Some(host) = &fault.host
                && !self.hosts.contains(host)
            {
                let names = self.hosts.join(", ");
                let message = format!("there is no host {host}; there are: {names}");
                return Err(Error::Usage(message));
            }
            if fault.call.is_none() && !self.faults.contains(&fault.fault) {
                let message = match self.faults.is_empty() {
                    true => "the scenario has no [fault.NAME]".to_owned(),
                    false => format!("there are: {}", self.faults.join(", ")),
                };
                let name = &fault.fault;
                return Err(Error::Usage(format!("there is no fault {name}; {message}")));
            }
        }
        Ok(())
    }

    /// Runs the world with some faults.
    pub(crate) fn run(&self, faults: &[WorldFault]) -> Result<Seen> {
        let begun = Instant::now();
        let run = self.with(|world| Ok(world.run(&plans(faults))?))?;
        let mut seen = self.seen(&run);
        seen.world = WorldRun(Some(Arc::new(run)));
        seen.seconds = begun.elapsed().as_secs_f64();
        Ok(seen)
    }

    /// Writes the trace of a failure. Runs the world again if it ran elsewhere.
    pub(crate) fn write_trace(
        &self,
        (faults, known): (&[WorldFault], &WorldRun),
        folder: &Folder,
        place: &str,
    ) -> Result<()> {
        self.with(|world| {
            let run = match &known.0 {
                Some(run) => run.clone(),
                None => Arc::new(world.run(&plans(faults))?),
            };
            // Where a limit ends a run depends on the machine, so a replay of the trace would end
            // elsewhere.
            if run.limit.is_some() {
                return Ok(());
            }
            Ok(world.write_trace(&run, folder, place)?)
        })
    }

    /// Explores the world with some faults and symbolic inputs.
    pub(crate) fn explore(
        &self,
        faults: &[WorldFault],
        out: &Path,
        settings: &Explore,
        session: &Session,
    ) -> Result<Summary> {
        let limits = explore_limits(settings);
        self.with(|world| Ok(world.explore(plans(faults), out, limits, session)?.summary))
    }

    /// Checks that the world can be explored.
    pub(crate) fn check_explorable(&self, settings: &Explore, session: &Session) -> Result<()> {
        let limits = explore_limits(settings);
        self.with(|world| Ok(world.check_explorable(limits, session)?))
    }

    /// Writes what a replay of traces needs.
    pub(crate) fn write(&self, folder: &Folder) -> Result<()> {
        self.with(|world| Ok(world.write(folder)?))
    }

    fn seen(&self, run: &PlannedRun) -> Seen {
        let mut crashes = Vec::new();
        let (mut output, mut errors) = (String::new(), String::new());
        let mut files = BTreeMap::new();
        for host in &run.hosts {
            if let Some((signal, stack)) = &host.crash {
                crashes.push(Crash {
                    program: host.name.clone(),
                    signal: *signal,
                    stack: stack.clone(),
                });
            }
            for (text, bytes) in [&mut output, &mut errors].into_iter().zip(&host.output) {
                for line in String::from_utf8_lossy(bytes).lines() {
                    text.push_str(&format!("{}: {line}\n", host.name));
                }
            }
            errors.push_str(&format!("{}: {}\n", host.name, host.text));
            let own = host.files.iter();
            files.extend(
                own.map(|(path, digest)| (format!("{}:{path}", host.name), digest.clone())),
            );
        }
        let wrong = run.broken();
        let wrong = wrong.map(|wrong| format!("{}: {}: {}", wrong.host, wrong.kind, wrong.message));
        let code = run
            .hosts
            .iter()
            .map(|host| host.code)
            .find(|code| *code != 0);
        let test = match (&run.limit, crashes.first()) {
            (Some(NativeLimit::Time), _) => Ended::Timeout,
            (Some(NativeLimit::Memory(_)), _) => Ended::Limit("memory".to_owned()),
            (Some(limit @ NativeLimit::Files(_)), _) => Ended::Limit(limit.to_string()),
            (None, Some(crash)) => Ended::Signal(crash.signal),
            (None, None) if run.hangs() => Ended::Timeout,
            (None, None) if wrong.is_some() => Ended::Exit(1),
            (None, None) => Ended::Exit(code.unwrap_or(0)),
        };
        let stuck = run.hosts.iter().filter(|host| host.is_stuck);
        let injected = run
            .injected
            .iter()
            .zip(1..)
            .map(|(fault, number)| Injected {
                program: fault.host.clone(),
                function: fault.what.clone(),
                number,
                stack: fault.stack.clone(),
                arguments: joined_arguments(&fault.arguments),
            });
        Seen {
            start_failure: None,
            test,
            cleanup_failure: None,
            output: [output, errors].map(|text| kept(&text, self.most_output)),
            injected: injected.collect(),
            crashes,
            files,
            coverage: run.lines(),
            measured: None,
            isolation: Isolation::Model,
            seconds: 0.0,
            calls: BTreeMap::new(),
            sites: Vec::new(),
            core: None,
            wrong,
            stuck: stuck.map(|host| host.name.clone()).collect(),
            world: WorldRun::default(),
        }
    }
}

/// Returns a text as output, of which this many bytes are kept.
fn kept(text: &str, most: usize) -> Output {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Output {
        text: text[..end].to_owned(),
        bytes: text.len() as u64,
        digest: digest(&text.as_bytes()[..end]),
    }
}

fn plans(faults: &[WorldFault]) -> HostPlans {
    let planned = |fault: &WorldFault| {
        let kind = match &fault.call {
            Some(call) if call == "malloc" => PlannedKind::Allocation,
            Some(call) => PlannedKind::Call {
                call: call.clone(),
                failure: fault.fault.clone(),
            },
            None => PlannedKind::Scenario(fault.fault.clone()),
        };
        let from = fault.site.as_ref().map(|site| PlannedSite {
            callsite: site.callsite.clone(),
            stack: site.stack.clone(),
            arguments: site.arguments.clone(),
        });
        let fault_of_host = PlannedFault::new(kind, fault.first, fault.last).from(from);
        (fault.host.clone(), fault_of_host)
    };
    faults.iter().map(planned).collect()
}

/// Returns the possible faults in the world of a scenario, and how often each can happen; with
/// `callers` for each call stack.
pub(crate) fn possible(scenario: &Path, callers: bool) -> Result<BTreeMap<Possible, u64>> {
    let all = BTreeSet::from(["*".to_owned()]);
    let limits = limits_of(&Limits::default());
    let kept = KeptResults {
        callers,
        ..KeptResults::default()
    };
    Ok(PlannedWorld::of(scenario, &all, limits, kept)?.possible()?)
}

fn explore_limits(settings: &Explore) -> ExploreLimits {
    ExploreLimits {
        paths: settings.paths,
        forks: settings.forks,
        instructions: settings.instructions,
    }
}

fn limits_of(limits: &Limits) -> PlannedLimits {
    PlannedLimits {
        time: limits.timeout,
        memory: limits.memory,
    }
}
