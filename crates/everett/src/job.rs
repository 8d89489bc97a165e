//! Jobs: parts of a search that another machine explores. Owns how a worker there
//! explores some states ([`Prepared::explore`]) and the result ([`JobResult`]). Must
//! not know how jobs are transported.

use everett_engine::{
    Explorer, ExplorerConfig, FORK_WORK, FindingKey, Limits, Listener, Part, PathEnd, Pending,
    SavedFiles, Start, Trace, Weight, WeightSum, WorldFinding, Worlds,
};
use everett_vm::Image;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::budget::{Budget, Work};
use crate::error::Result;
use crate::finding::FindingEntry;
use crate::parcel::Parcel;
use crate::session::Session;
use crate::trace::WorldTrace;

/// Maximum number of states that a job rematerialises at its beginning. They are in memory then, as
/// they were on the worker that gave them away.
const MOST_AT_BEGINNING: usize = 1 << 15;
/// Maximum number of them that are rematerialised together.
const MOST_TOGETHER: usize = 256;

/// A program or a scenario that is ready to be explored.
pub struct Prepared {
    pub(crate) config: ExplorerConfig,
    pub(crate) images: Vec<Image>,
    writes_tests: bool,
}

/// States to explore.
#[derive(Clone)]
pub enum States {
    /// States of a program, as pending traces.
    Program(Vec<Trace>),
    /// Worlds.
    Worlds(Box<Worlds>),
}

impl States {
    /// Returns the initial states of a run.
    pub fn beginning(is_world: bool) -> States {
        match is_world {
            true => States::Worlds(Box::new(Worlds::beginning())),
            false => States::Program(vec![root_state()]),
        }
    }

    /// Returns the number of states.
    pub fn count(&self) -> u64 {
        match self {
            States::Program(states) => states.len() as u64,
            States::Worlds(worlds) => worlds.states() as u64,
        }
    }
}

/// The progress of a job.
pub struct JobProgress<'p> {
    /// The number of remaining states.
    pub states: u64,
    /// The number of those that are spilled, because the worker is short of memory.
    pub spilled: u64,
    /// The coverage of segments in the job, a mark each.
    pub covered: &'p [u8],
    /// Whether states can be given away while the exploration of the rest continues
    /// ([`JobDecision::Give`]).
    pub can_give: bool,
}

/// The decision about a job after a check.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum JobDecision {
    /// The job continues.
    GoOn,
    /// The job ends, and all remaining states are for other workers.
    Leave,
    /// The job ends. Up to this number of its states are for other workers; the rest is another
    /// job, with which this exploration continues, without rematerialising its states.
    Give(u64),
    /// The same, with up to this number of spilled states, to have fewer of them.
    GiveSpilled(u64),
}

/// Decides how far a job is explored.
pub trait Supervisor {
    /// Checks a job after each piece of work. May add coverage of other workers, which searchers
    /// then avoid.
    fn check(&mut self, progress: &JobProgress<'_>, covered: &mut Vec<u8>) -> JobDecision;

    /// Takes the result of a job of which states are given away ([`JobDecision::Give`]). The first of the
    /// remaining states are those that this exploration keeps. Returns whether it continues.
    fn split(&mut self, result: JobResult) -> bool;
}

/// A job: states to explore, with a budget.
pub struct Job<'j> {
    /// The states.
    pub states: States,
    /// The maximum work.
    pub budget: Budget,
    /// The time of the session at which the job ends, whatever is left.
    pub deadline: Option<Duration>,
    /// Number of instructions between two checks.
    pub work: u64,
    /// Number of instructions before the first check. It doubles up to `work`: the first states of
    /// a search are most worth giving away.
    pub first: u64,
    /// The supervisor, which decides how far the job is explored.
    pub supervisor: &'j mut dyn Supervisor,
    /// Maximum number of parts of the remaining worlds.
    pub parts: usize,
    /// The file to which states are spilled at the memory limit. Worlds always need one.
    pub spill: Option<PathBuf>,
}

/// The result of a job.
#[derive(Default, Serialize, Deserialize)]
pub struct JobResult {
    /// The statistics, limits and coverage.
    pub part: Part,
    /// Digests of the answers of the paths of a program that ended, with how often their weights
    /// were halved.
    pub paths: Vec<(u64, u32)>,
    /// Worlds that ended: each entry is all combinations of some states of each host, by digests of
    /// their answers.
    #[serde(default)]
    pub worlds: Vec<Vec<Vec<u64>>>,
    /// Tests of paths or worlds that executed something for the first time in the job, or of all if
    /// these are wanted.
    pub tests: Vec<JobTest>,
    /// Findings, the first at each location in the job.
    pub findings: Vec<JobFinding>,
    /// The remaining states; worlds are in parts.
    #[serde(skip)]
    pub left: Vec<States>,
}

/// A path or a world that ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct JobTest {
    /// The digest of a path's answers.
    pub digest: u64,
    /// The inputs, choices and ends.
    pub trace: WorldTrace,
    /// Whether the path left files behind that belong to the test.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_files: bool,
}

/// A path or a world with a finding.
#[derive(Debug, Serialize, Deserialize)]
pub struct JobFinding {
    /// The key that identifies equal findings.
    pub key: FindingKey,
    /// The kind and location of the finding.
    pub entry: FindingEntry,
    /// The inputs and choices that lead to the finding.
    pub trace: WorldTrace,
}

/// Returns the state with which a search of a program begins.
pub fn root_state() -> Trace {
    Trace {
        pending: Some(Pending::default()),
        ..Trace::default()
    }
}

/// Returns the weight of states of a program together; `None` if they weigh more than 1, or one of
/// them is at its end.
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
    /// Prepares a parcel from another machine. It may be damaged or hostile: everything that names
    /// a path of this machine is refused.
    pub fn of(parcel: &Parcel, session: &Session) -> Result<Prepared> {
        let (config, images) = parcel.prepare(session)?;
        Ok(Prepared {
            config,
            images,
            writes_tests: !parcel.spec.no_tests,
        })
    }

    /// Returns the number of segments of the programs.
    pub fn segments(&self) -> usize {
        everett_vm::Coverage::of(&self.images).segments.len()
    }

    /// Returns the weight of states; `None` if they do not belong to this run.
    pub fn weight_of(&self, states: &States) -> Option<WeightSum> {
        match (states, &self.config.world) {
            (States::Program(states), None) => weight_of(states),
            (States::Worlds(worlds), Some(_)) => worlds.weight(&self.config),
            _ => None,
        }
    }

    /// Explores states until none is left, the budget is spent, or the supervisor ends the job.
    /// States are rematerialised without queries: together at the beginning, or, if there are very
    /// many, when they are selected. `None` if the supervisor rejected the result of a part.
    pub fn explore(&self, job: Job<'_>, session: &Session) -> Result<Option<JobResult>> {
        // A budget is for a whole job, and worlds cannot be divided.
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
        let (start, together) = match job.states {
            States::Program(states) if states.len() <= MOST_AT_BEGINNING => {
                (Start::Nothing, states)
            }
            States::Program(states) => (Start::States(states), Vec::new()),
            States::Worlds(worlds) => (Start::Worlds(vec![*worlds]), Vec::new()),
        };
        let mut explorer = Explorer::new(&self.images, config, start)?;
        let together: Vec<Arc<Trace>> = together.into_iter().map(Arc::new).collect();
        // The states of a job are sorted, so that neighbours have the most in common.
        for part in together.chunks(MOST_TOGETHER) {
            explorer.rematerialise_together(part);
        }
        let stop = AtomicBool::new(false);
        let mut listener = Working {
            result: JobResult::default(),
            writes_tests: self.writes_tests,
            until: job.first,
            pace: job.first.max(1),
            work: job.work.max(1),
            most: job.budget.instructions,
            deadline: job.deadline,
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
                spilled: explorer.spilled_states() as u64,
                covered: &explorer.coverage().segments,
                can_give,
            };
            let decision = supervisor.check(&progress, &mut elsewhere);
            explorer.know_covered(&std::mem::take(&mut elsewhere));
            match decision {
                JobDecision::GoOn => {}
                JobDecision::Give(count) | JobDecision::GiveSpilled(count) if can_give => {
                    let most = usize::try_from(count).unwrap_or(usize::MAX);
                    let given = match decision {
                        JobDecision::GiveSpilled(_) => explorer.give_spilled_states(most),
                        _ => explorer.give_states(most),
                    };
                    if count > 0 && given.is_empty() {
                        // The states are not worth moving.
                        continue;
                    }
                    let result = part_of(&mut explorer, &mut listener, given);
                    if !supervisor.split(result) {
                        return Ok(None);
                    }
                }
                JobDecision::Leave | JobDecision::Give(_) | JobDecision::GiveSpilled(_) => break,
            }
        }
        let mut result = listener.result;
        result.left = self.left_of(&mut explorer, job.parts);
        result.part = explorer.take_part();
        Ok(Some(result))
    }

    /// Takes the remaining states of a search, worlds in up to this number of parts.
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

/// Returns the result of a job that ends although its exploration continues: the work since the
/// last one, the states that are kept, and those that are given away.
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
    /// Returns the work of the job.
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
    /// Work until the next check, and its maximum.
    pace: u64,
    work: u64,
    /// Maximum number of instructions.
    most: Option<u64>,
    deadline: Option<Duration>,
    /// Whether a piece of work is done.
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
            // The end of a program's trace contains the finding.
            trace: WorldTrace::of(found, false),
        });
    }

    fn tick(&mut self, explorer: &Explorer<'_>) {
        let statistics = explorer.statistics();
        // Rematerialising states does not count as work, so that a job always makes progress.
        let done = statistics.instructions + FORK_WORK * statistics.forks;
        let is_asked = self.session.stop.load(Ordering::Relaxed);
        let is_spent = self
            .most
            .is_some_and(|most| statistics.instructions >= most);
        let is_late = self
            .deadline
            .is_some_and(|deadline| self.session.now() >= deadline);
        if is_asked || is_spent || is_late {
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
