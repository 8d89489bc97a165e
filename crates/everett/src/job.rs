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

/// Where the exploration of a job stands.
pub struct JobProgress<'p> {
    /// States that are left.
    pub states: u64,
    /// Coverage of segments in the job, a mark each.
    pub covered: &'p [u8],
    /// Whether states can be given away while the rest goes on ([`Look::Give`]).
    pub can_give: bool,
}

/// What becomes of a job after a look at it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Look {
    /// It goes on.
    GoOn,
    /// What is left is for others.
    Leave,
    /// The job ends here. Up to this number of its states are for others; what is left is another
    /// job, with which this exploration goes on, without rematerialising its states.
    Give(u64),
}

/// Decides how far a job is explored.
pub trait Supervisor {
    /// Looks at a job, whenever a piece of work is done. May add to what is covered elsewhere, of
    /// which searchers then keep away.
    fn look(&mut self, progress: &JobProgress<'_>, covered: &mut Vec<u8>) -> Look;

    /// Takes the result of a job that ends because of [`Look::Give`]. The first of the states that
    /// are left are those that this exploration keeps. Returns whether it goes on.
    fn split(&mut self, result: JobResult) -> bool;
}

/// A job: states to explore, with a budget.
pub struct Job<'j> {
    /// The states.
    pub states: States,
    /// What may be done at most.
    pub budget: Budget,
    /// Instructions between two looks.
    pub work: u64,
    /// The same before the first one. It doubles up to `work`: the states that a search begins with
    /// are those that are most worth giving away.
    pub first: u64,
    /// Decides how far it is explored.
    pub supervisor: &'j mut dyn Supervisor,
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

    /// Explores states until none is left, the budget is spent, or the supervisor wants no more.
    /// States are rematerialised without queries, when it is their turn. `None` if the result of
    /// a part was not wanted.
    pub fn explore(&self, job: Job<'_>, session: &Session) -> Result<Option<JobResult>> {
        // A budget is for a whole job, and worlds cannot be parted.
        let can_give = !job.budget.is_limited() && self.config.world.is_none();
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
            until: job.first,
            pace: job.first.max(1),
            work: job.work.max(1),
            most: job.budget.instructions,
            is_due: false,
            session,
            stop: &stop,
        };
        let (supervisor, mut elsewhere) = (job.supervisor, Vec::new());
        loop {
            explorer.run(&stop, &mut listener);
            if !std::mem::take(&mut listener.is_due) {
                break;
            }
            stop.store(false, Ordering::Relaxed);
            let progress = JobProgress {
                states: explorer.states() as u64,
                covered: &explorer.coverage().segments,
                can_give,
            };
            let look = supervisor.look(&progress, &mut elsewhere);
            explorer.know_covered(&std::mem::take(&mut elsewhere));
            match look {
                Look::GoOn => {}
                Look::Give(count) if can_give => {
                    let count = usize::try_from(count).unwrap_or(usize::MAX);
                    let given = explorer.give_states(count);
                    if count > 0 && given.is_empty() {
                        // What it has is not worth moving.
                        continue;
                    }
                    let result = part_of(&mut explorer, &mut listener, given);
                    if !supervisor.split(result) {
                        return Ok(None);
                    }
                }
                Look::Leave | Look::Give(_) => break,
            }
        }
        let mut result = listener.result;
        result.left = self.left_of(&mut explorer, job.parts);
        result.part = explorer.take_part();
        Ok(Some(result))
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

/// The result of a job that ends although its exploration goes on: what was done since the last
/// one, the states that are kept, and those that are given away.
fn part_of(
    explorer: &mut Explorer<'_>,
    listener: &mut Working<'_>,
    given: Vec<Trace>,
) -> JobResult {
    let mut result = std::mem::take(&mut listener.result);
    result.left.push(States::Program(explorer.copy_states()));
    if !given.is_empty() {
        result.left.push(States::Program(given));
    }
    result.part = explorer.take_part();
    listener.until = listener.pace;
    result
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
    /// Work until the next look, and at most.
    pace: u64,
    work: u64,
    /// Instructions at most.
    most: Option<u64>,
    /// A piece of work is done.
    is_due: bool,
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
        if is_asked || is_spent {
            self.is_due = false;
            self.stop.store(true, Ordering::Relaxed);
        } else if done >= self.until {
            self.pace = self.pace.saturating_mul(2).min(self.work);
            self.until = done.saturating_add(self.pace);
            self.is_due = true;
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}
