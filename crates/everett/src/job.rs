//! Jobs: parts of a search that another machine explores. Owns how a worker there
//! explores some states ([`Prepared::explore`]) and the result ([`JobResult`]). Must
//! not know how jobs are transported.

use everett_engine::{
    Explorer, ExplorerConfig, FindingKey, Limits, Listener, Part, PathEnd, Pending, SavedFiles,
    Start, Trace, Weight, WeightSum, WorldFinding, Worlds,
};
use everett_vm::Image;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::budget::{Budget, Work};
use crate::error::Result;
use crate::finding::FindingEntry;
use crate::parcel::Parcel;
use crate::session::Session;
use crate::trace::WorldTrace;

/// Work that a fork counts as, in instructions: the queries before it take as long.
const FORK_WORK: u64 = 1000;

/// A program or a scenario that is ready to be explored.
pub struct Prepared {
    pub(crate) config: ExplorerConfig,
    pub(crate) images: Vec<Image>,
    writes_tests: bool,
}

/// States to explore.
#[derive(Clone)]
pub enum States {
    /// Those of a program, as pending traces.
    Program(Vec<Trace>),
    /// Worlds.
    Worlds(Box<Worlds>),
}

impl States {
    /// All of a run.
    pub fn beginning(is_world: bool) -> States {
        match is_world {
            true => States::Worlds(Box::new(Worlds::beginning())),
            false => States::Program(vec![root_state()]),
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        match self {
            States::Program(states) => states.len() as u64,
            States::Worlds(worlds) => worlds.states() as u64,
        }
    }
}

/// A job: states to explore, with a budget.
pub struct Job<'j> {
    /// The states.
    pub states: States,
    /// What may be done at most.
    pub budget: Budget,
    /// Instructions between two calls of `go_on`.
    pub work: u64,
    /// Called after each such number of instructions; `false` leaves the rest to others.
    pub go_on: &'j mut dyn FnMut() -> bool,
    /// In how many parts worlds are left at most.
    pub parts: usize,
    /// File that states are spilled to at the memory limit. Worlds need one in any case.
    pub spill: Option<PathBuf>,
}

/// The result of a job.
#[derive(Default, Serialize, Deserialize)]
pub struct JobResult {
    /// What was counted, found and covered.
    pub part: Part,
    /// Digests of the answers of the paths of a program that ended, with how
    /// often their weights were halved.
    pub paths: Vec<(u64, u32)>,
    /// Worlds that ended: each entry is all combinations of some states of each
    /// host, by digests of their answers.
    #[serde(default)]
    pub worlds: Vec<Vec<Vec<u64>>>,
    /// Tests, of paths or worlds that executed something for the first time in the job,
    /// or of all where they are wanted.
    pub tests: Vec<JobTest>,
    /// Findings, the first at each place in the job.
    pub findings: Vec<JobFinding>,
    /// States that are left; worlds in parts.
    #[serde(skip)]
    pub left: Vec<States>,
}

/// A path or a world that ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct JobTest {
    /// The digest of a path's answers.
    pub digest: u64,
    /// Inputs, choices and ends.
    pub trace: WorldTrace,
    /// It left files behind that belong to the test.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_files: bool,
}

/// A path or a world that ended in something wrong.
#[derive(Debug, Serialize, Deserialize)]
pub struct JobFinding {
    /// What is the same finding.
    pub key: FindingKey,
    /// What and where.
    pub entry: FindingEntry,
    /// Inputs and choices that lead there.
    pub trace: WorldTrace,
}

/// The state that a search of a program begins with.
pub fn root_state() -> Trace {
    Trace {
        pending: Some(Pending::default()),
        ..Trace::default()
    }
}

/// The weight of states of a program together; `None` if they weigh more than
/// everything, or one of them is at its end.
pub fn weight_of<'t>(states: impl IntoIterator<Item = &'t Trace>) -> Option<WeightSum> {
    let mut sum = WeightSum::default();
    for state in states {
        let halvings = state.pending.as_ref()?.halvings;
        if !sum.add_checked(Weight { halvings }) {
            return None;
        }
    }
    Some(sum)
}

impl Prepared {
    /// Prepares what came from elsewhere. It may be damaged or hostile: whatever names a
    /// path of this machine is refused.
    pub fn of(parcel: &Parcel, session: &Session) -> Result<Prepared> {
        let (config, images) = parcel.prepare(session)?;
        Ok(Prepared {
            config,
            images,
            writes_tests: !parcel.spec.no_tests,
        })
    }

    /// Segments of the programs.
    pub fn segments(&self) -> usize {
        everett_vm::Coverage::of(&self.images).segments.len()
    }

    /// The weight of states; `None` if they are none of this run.
    pub fn weight_of(&self, states: &States) -> Option<WeightSum> {
        match (states, &self.config.world) {
            (States::Program(states), None) => weight_of(states),
            (States::Worlds(worlds), Some(_)) => worlds.weight(&self.config),
            _ => None,
        }
    }

    /// Explores states until none is left, the budget is spent, or `go_on` returns `false`.
    /// States are rematerialised without queries, when it is their turn.
    pub fn explore(&self, job: Job<'_>, session: &Session) -> Result<JobResult> {
        let config = ExplorerConfig {
            spill: job.spill,
            limits: Limits {
                max_paths: job.budget.paths,
                max_forks: job.budget.forks,
                ..self.config.limits.clone()
            },
            ..self.config.clone()
        };
        let start = match job.states {
            States::Program(states) => Start::States(states),
            States::Worlds(worlds) => Start::Worlds(vec![*worlds]),
        };
        let mut explorer = Explorer::new(&self.images, config, start)?;
        let stop = AtomicBool::new(false);
        let mut listener = Working {
            result: JobResult::default(),
            writes_tests: self.writes_tests,
            until: job.work,
            work: job.work.max(1),
            most: job.budget.instructions,
            go_on: job.go_on,
            session,
            stop: &stop,
        };
        explorer.run(&stop, &mut listener);
        let mut result = listener.result;
        result.left = self.left_of(&mut explorer, job.parts);
        result.part = explorer.part();
        Ok(result)
    }

    /// Takes the states that are left of a search, worlds in up to this number of parts.
    pub(crate) fn left_of(&self, explorer: &mut Explorer<'_>, parts: usize) -> Vec<States> {
        if self.config.world.is_some() {
            let parts = explorer.take_worlds_in_parts(parts).into_iter();
            return parts.map(Box::new).map(States::Worlds).collect();
        }
        let states = explorer.take_states();
        let is_any = !states.is_empty();
        is_any
            .then_some(States::Program(states))
            .into_iter()
            .collect()
    }
}

impl JobResult {
    /// What was done.
    pub fn work(&self) -> Work {
        let statistics = &self.part.statistics;
        Work {
            paths: statistics.paths_completed + statistics.paths_partial,
            forks: statistics.forks,
            instructions: statistics.instructions,
        }
    }
}

/// The listener of a job.
struct Working<'j> {
    result: JobResult,
    writes_tests: bool,
    until: u64,
    work: u64,
    /// Instructions at most.
    most: Option<u64>,
    go_on: &'j mut dyn FnMut() -> bool,
    session: &'j Session,
    stop: &'j AtomicBool,
}

impl Listener for Working<'_> {
    fn path(&mut self, end: &PathEnd) {
        self.result.paths.push((end.digest, end.weight.halvings));
        if let Some(trace) = end.trace.as_ref().filter(|_| self.writes_tests) {
            self.result.tests.push(JobTest {
                digest: end.digest,
                trace: WorldTrace::of_program(trace.clone()),
                has_files: !end.files.is_empty(),
            });
        }
    }

    fn world(&mut self, traces: &BTreeMap<String, Trace>, files: &SavedFiles) {
        self.result.tests.push(JobTest {
            digest: 0,
            trace: WorldTrace::of_hosts(traces.clone()),
            has_files: !files.is_empty(),
        });
    }

    fn settled(&mut self, hosts: Vec<Vec<u64>>) {
        self.result.worlds.push(hosts);
    }

    fn wants_settled(&self) -> bool {
        true
    }

    fn finding(&mut self, found: &WorldFinding) {
        self.result.findings.push(JobFinding {
            key: found.key.clone(),
            entry: FindingEntry::of(found, String::new()),
            // The end of a program's trace says what was found.
            trace: WorldTrace::of(found, false),
        });
    }

    fn tick(&mut self, explorer: &Explorer<'_>) {
        let statistics = explorer.statistics();
        // What rematerialises states is no work done: a job always gets further.
        let done = statistics.instructions + FORK_WORK * statistics.forks;
        let is_asked = self.session.stop.load(Ordering::Relaxed);
        let is_spent = self
            .most
            .is_some_and(|most| statistics.instructions >= most);
        if is_asked || is_spent || (done >= self.until && !(self.go_on)()) {
            self.stop.store(true, Ordering::Relaxed);
        } else if done >= self.until {
            self.until = done.saturating_add(self.work);
        }
    }
}
