//! The scheduler of a host: it picks the thread that runs next. Each policy is one file with one
//! [`Policy`], and one row in [`SCHEDULERS`].

mod bounded;
mod exhaustive;
mod random;
mod round_robin;

use everett_vm::{CallSite, ChoiceSite, Interrupt, Oracle};
use smallvec::SmallVec;

use crate::process::TaskName;

/// A preemption point between system calls: another thread could have run here.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PreemptionPoint {
    /// The thread that ran.
    pub task: TaskName,
    /// System calls that it had made before.
    pub calls: u64,
    /// The instruction that it was about to execute.
    pub site: CallSite,
    /// Another thread did run.
    pub switches: bool,
}

/// A scheduling decision: the threads that a policy picks from.
pub struct Decision<'m> {
    /// Indices in [`HostState::tasks`] of the runnable tasks, ascending; at least one.
    pub ready: &'m [usize],
    /// Their thread numbers.
    pub threads: &'m [u32],
    /// The task that ran, if it is still runnable.
    pub current: Option<usize>,
    /// Index of the task that ran, runnable or not.
    pub last: usize,
    /// The current task has used up its time slice or called `sched_yield`.
    pub yields: bool,
}

/// Picks one of the runnable tasks.
type Picker = fn(&Decision<'_>, &mut Schedule, &mut dyn Oracle) -> Result<usize, Interrupt>;

/// The scheduler's state.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// The scheduling policy.
    pub kind: Scheduler,
    /// Index of the running task in [`HostState::tasks`].
    pub running: usize,
    /// A thread must be picked before anything runs.
    pub due: bool,
    /// The running thread has called `sched_yield` or used up its time slice.
    pub yielded: bool,
    /// Instructions that the running thread may still execute in its time slice before it makes a
    /// system call.
    pub quantum: u64,
    /// System calls that the running thread has made in its time slice.
    pub calls: u32,
    /// Preemptions so far.
    pub preemptions: u32,
    /// State of the random policy.
    pub random: u64,
    /// The running thread is at the preemption point that was logged last.
    pub at_logged_point: bool,
    /// The tid of a thread that is held back, runnable or not.
    pub held: Option<u32>,
}

impl Schedule {
    /// A schedule whose first thread runs.
    pub fn new(kind: Scheduler) -> Schedule {
        Schedule {
            kind,
            random: kind.number,
            quantum: QUANTUM,
            ..Schedule::default()
        }
    }
}

impl Schedule {
    /// Accounts for a system call of the running thread.
    pub(crate) fn count_call(&mut self) {
        self.calls += 1;
        if self.calls >= MAX_CALLS {
            self.yielded = true;
            self.quantum = 0;
        } else if !self.yielded {
            self.quantum = QUANTUM;
        }
    }

    /// Switches to another scheduling policy.
    pub fn change(&mut self, kind: Scheduler) {
        self.kind = kind;
        self.random = kind.number;
    }
}

/// A scheduling policy.
pub struct Policy {
    /// Its name.
    pub name: &'static str,
    /// The meaning of its number, if it takes one: `bounded:N`.
    pub number: Option<&'static str>,
    /// The orders that it explores.
    pub what: &'static str,
    /// Whether it is consulted at preemption points.
    preempts: bool,
    pub(crate) pick: Picker,
}

/// All policies, the default first. Programs select them by their index (`everett_set_scheduler`).
pub const SCHEDULERS: &[Policy] = &[
    round_robin::POLICY,
    exhaustive::POLICY,
    bounded::POLICY,
    random::POLICY,
];

/// A policy of [`SCHEDULERS`] and its number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Scheduler {
    policy: u8,
    number: u64,
}

impl Scheduler {
    /// The policy at an index; `None` if there is none.
    pub fn at(index: u64, number: u64) -> Option<Scheduler> {
        let policy = u8::try_from(index).ok()?;
        let row = SCHEDULERS.get(usize::from(policy))?;
        Some(Scheduler {
            policy,
            number: row.number.map_or(0, |_| number),
        })
    }

    /// Parses a name, followed by a colon and the number if the policy takes one.
    pub fn parse(text: &str) -> Result<Scheduler, String> {
        let (name, number) = match text.split_once(':') {
            Some((name, digits)) => {
                let number = digits.parse::<u64>();
                (
                    name,
                    Some(number.map_err(|_| format!("{digits:?} is not a number"))?),
                )
            }
            None => (text, None),
        };
        let is_it = |row: &Policy| row.name == name && row.number.is_some() == number.is_some();
        match (0..).zip(SCHEDULERS).find(|(_, row)| is_it(row)) {
            Some((policy, _)) => Ok(Scheduler {
                policy,
                number: number.unwrap_or(0),
            }),
            None => {
                let names: Vec<String> = SCHEDULERS.iter().map(Policy::usage).collect();
                let names = names.join(", ");
                Err(format!("{text:?} is not a scheduler; there are: {names}"))
            }
        }
    }

    /// Whether the policy is consulted at preemption points.
    pub fn preempts(self) -> bool {
        self.row().preempts
    }

    pub(crate) fn row(self) -> &'static Policy {
        &SCHEDULERS[usize::from(self.policy)]
    }
}

impl Policy {
    /// Its name as it is written, such as `bounded:N`.
    pub fn usage(&self) -> String {
        let number = self.number.map(|number| format!(":{number}"));
        format!("{}{}", self.name, number.unwrap_or_default())
    }
}

/// Asks the oracle which runnable task runs. `site` is the kind of choice.
fn ask(
    decision: &Decision<'_>,
    site: &ChoiceSite,
    oracle: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    if decision.ready.len() == 1 {
        return Ok(decision.ready[0]);
    }
    // The first alternative is the task that would continue anyway: picking it is not a deviation.
    let first = decision.current.unwrap_or(decision.ready[0]);
    let threads = || decision.threads.iter().copied();
    let all = || decision.ready.iter().copied().zip(threads());
    let own = all().filter(|(task, _)| *task == first);
    let others = all().filter(|(task, _)| *task != first);
    let (order, threads): (SmallVec<[usize; 8]>, SmallVec<[u32; 8]>) = own.chain(others).unzip();
    oracle.offer_threads(&threads);
    let picked = oracle.choose(site, order.len() as u32)? as usize;
    Ok(order[picked.min(order.len() - 1)])
}

/// Instructions that a thread may execute between two system calls before its time slice is over.
pub(crate) const QUANTUM: u64 = 1_000_000;

/// System calls that a thread may make before its time slice is over.
const MAX_CALLS: u32 = 100;
