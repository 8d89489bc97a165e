//! Who runs next. A scheduler is one file with one function, and one line in the list.

mod bounded;
mod exhaustive;
mod random;
mod round_robin;

use everett_vm::{
    Bug, BugKind, CallSite, ChoiceSite, ExecContext, Interrupt, Oracle, PreemptionPoints,
};
use smallvec::SmallVec;

use crate::boot::reborrow;
use crate::dispatch::Pause;
use crate::host::{Ending, Host, HostExit, HostState};
use crate::kernel::Kernel;
use crate::native::TaskName;
use crate::process::{Death, Doing, Life};
use crate::wait::Hope;

/// Instructions that a thread executes between two system calls before another one has its turn.
const QUANTUM: u64 = 1_000_000;
/// System calls that a thread makes before another one has its turn.
const MAX_CALLS: u32 = 100;

/// Times that the clock jumps on although nobody can run then.
const MAX_IDLE_JUMPS: u32 = 10_000;

/// Which threads run next.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum SchedulerKind {
    /// One after the other.
    #[default]
    RoundRobin,
    /// All orders.
    Exhaustive,
    /// All orders with at most so many switches away from a thread that could go on.
    Bounded(u32),
    /// At random, from this seed.
    Random(u64),
}

/// Where a thread can be made to wait for another although it could go on.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum PreemptAt {
    /// Only when its time is over.
    #[default]
    Quantum,
    /// Before system calls.
    SystemCalls,
    /// And before atomic accesses.
    Atomics,
    /// And before every access to memory that several threads can reach.
    Memory,
}

/// A point between system calls at which another thread could have run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Passed {
    /// The thread that ran.
    pub task: TaskName,
    /// System calls that it had made.
    pub calls: u64,
    /// The instruction that it was about to execute.
    pub site: CallSite,
    /// Another thread did run.
    pub switches: bool,
}

/// A moment at which somebody must be picked.
pub struct Moment<'m> {
    /// Places in [`HostState::tasks`] of those that can run, ascending; at least one.
    pub ready: &'m [usize],
    /// The one that ran, if it can go on.
    pub current: Option<usize>,
    /// Place of the one that ran, whether it can go on or not.
    pub last: usize,
    /// The current one has used up its time or asked for others.
    pub yields: bool,
}

/// Picks one of those that are ready.
type Picker = fn(&Moment<'_>, &mut Schedule, &mut dyn Oracle) -> Result<usize, Interrupt>;

/// Who runs, and what schedulers remember.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// How.
    pub kind: SchedulerKind,
    /// Place of the thread that runs in [`HostState::tasks`].
    pub running: usize,
    /// Somebody has to be picked.
    pub due: bool,
    /// The thread that runs asked for others.
    pub yielded: bool,
    /// Instructions that it has left before it must make a system call.
    pub quantum: u64,
    /// System calls that it has made since it was picked.
    pub calls: u32,
    /// Switches away from threads that could go on.
    pub preemptions: u32,
    /// Where the random scheduler is.
    pub random: u64,
    /// The running thread stands at the point that was logged last.
    pub at_logged_point: bool,
    /// A thread that does not run, whatever it could do.
    pub held: Option<u32>,
}

impl Schedule {
    /// The first thread runs.
    pub fn new(kind: SchedulerKind) -> Schedule {
        let random = match kind {
            SchedulerKind::Random(seed) => seed,
            _ => 0,
        };
        Schedule {
            kind,
            random,
            quantum: QUANTUM,
            ..Schedule::default()
        }
    }
}

impl Schedule {
    /// The thread that runs has made a system call.
    pub(crate) fn called(&mut self) {
        self.calls += 1;
        if self.calls >= MAX_CALLS {
            self.yielded = true;
            self.quantum = 0;
        } else if !self.yielded {
            self.quantum = QUANTUM;
        }
    }

    /// Goes on with another scheduler.
    pub fn change(&mut self, kind: SchedulerKind) {
        self.kind = kind;
        if let SchedulerKind::Random(seed) = kind {
            self.random = seed;
        }
    }
}

impl SchedulerKind {
    fn picker(self) -> Picker {
        match self {
            SchedulerKind::RoundRobin => round_robin::pick,
            SchedulerKind::Exhaustive => exhaustive::pick,
            SchedulerKind::Bounded(_) => bounded::pick,
            SchedulerKind::Random(_) => random::pick,
        }
    }

    /// It wants to be asked at points where a thread could go on.
    fn wants_points(self) -> bool {
        self != SchedulerKind::RoundRobin
    }
}

/// Asks which of those that are ready goes first: `site` says what kind of question it is.
fn ask(
    moment: &Moment<'_>,
    site: &ChoiceSite,
    oracle: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    if moment.ready.len() == 1 {
        return Ok(moment.ready[0]);
    }
    // The one that would go on by itself is the first alternative, so that it counts as no deviation.
    let first = moment.current.unwrap_or(moment.ready[0]);
    let others = moment.ready.iter().copied().filter(|task| *task != first);
    let order: SmallVec<[usize; 8]> = std::iter::once(first).chain(others).collect();
    let picked = oracle.choose(site, order.len() as u32)? as usize;
    Ok(order[picked.min(order.len() - 1)])
}

impl Kernel<'_, '_> {
    /// The running thread has come to a point between two system calls.
    pub(crate) fn note_point(&mut self) {
        let Some(frame) = self.vm.thread.top() else {
            return;
        };
        let passed = Passed {
            task: TaskName {
                pid: self.task().pid,
                tid: self.task().tid,
            },
            calls: self.task().calls,
            site: CallSite {
                image: self.vm.image.number(),
                function: frame.function,
                pc: frame.pc,
            },
            switches: false,
        };
        if let Some(points) = &mut self.host.points {
            triomphe::Arc::make_mut(points).push(passed);
            self.host.schedule.at_logged_point = true;
        }
    }

    /// Another thread may run before the system call that the running one is about to make.
    pub(crate) fn is_point(&mut self) -> bool {
        let options = &self.host.options;
        let wanted =
            self.host.schedule.kind.wants_points() && options.preempt_at != PreemptAt::Quantum;
        if !wanted || self.task().passed_preemption_point || self.host.tasks.len() == 1 {
            return false;
        }
        self.task_mut().passed_preemption_point = true;
        true
    }
}

impl HostState {
    /// A thread that computes without end sees time go by, and others have their turn.
    pub(crate) fn long_computation(&mut self) {
        self.clock_ns += QUANTUM;
        if let Some(task) = self.tasks.get_mut(self.schedule.running) {
            let task = triomphe::Arc::make_mut(task);
            task.cpu_ns += QUANTUM;
            let pid = task.pid;
            if let Some(process) = self.process_by_pid_mut(pid) {
                process.cpu_ns += QUANTUM;
            }
        }
        self.schedule.quantum = 0;
        self.schedule.due = true;
    }

    /// Before which instructions the thread that runs stops for others.
    pub(crate) fn points(&self, alone: bool, shares: bool) -> PreemptionPoints {
        if self.tasks.len() == 1 || !self.schedule.kind.wants_points() {
            return PreemptionPoints::None;
        }
        if alone && !shares {
            // Memory is its own; processes meet at system calls.
            return PreemptionPoints::None;
        }
        match self.options.preempt_at {
            PreemptAt::Quantum | PreemptAt::SystemCalls => PreemptionPoints::None,
            PreemptAt::Atomics => PreemptionPoints::Atomics,
            PreemptAt::Memory => PreemptionPoints::Memory,
        }
    }

    fn can_run(&self, at: usize) -> bool {
        let task = &self.tasks[at];
        if self.is_stopped(task) {
            return false;
        }
        match &task.doing {
            Doing::Running => true,
            Doing::Waiting(wait) => {
                self.wait_is_over(task, wait) || self.has_deliverable_signal(task)
            }
            Doing::Ended => false,
        }
    }

    fn ready(&self) -> SmallVec<[usize; 8]> {
        (0..self.tasks.len())
            .filter(|at| self.can_run(*at) && self.schedule.held != Some(self.tasks[*at].tid))
            .collect()
    }

    /// When the next thread that waits goes on by itself.
    fn next_deadline(&self) -> Option<u64> {
        let deadlines = self.tasks.iter().filter_map(|task| match &task.doing {
            Doing::Waiting(wait) => wait.deadline_ns,
            _ => None,
        });
        let others = self.next_timer().into_iter().chain(self.wire.next_again());
        deadlines.chain(others).min()
    }

    /// The process that the host was started with has ended, and nobody else holds its outputs.
    fn is_over(&self) -> Option<Death> {
        let first = self.processes.first()?;
        let Life::Zombie(death) = first.life else {
            return None;
        };
        let alive = || {
            let processes = self.processes.iter().skip(1);
            processes.filter(|process| matches!(process.life, Life::Running))
        };
        let goes_on = if self.options.waits_for_all {
            alive().next().is_some()
        } else {
            alive().any(|process| self.holds_output(process))
        };
        (!goes_on).then_some(death)
    }

    fn holds_output(&self, process: &crate::process::ProcessState) -> bool {
        process.descriptors.iter().any(|(_, descriptor)| {
            let description = self.files.description(descriptor.description);
            description.is_some_and(|open| matches!(open.target, crate::files::Target::Output(_)))
        })
    }
}

impl From<Death> for Ending {
    fn from(death: Death) -> Ending {
        match death {
            Death::Exit(status) => Ending::Exit(status),
            Death::Signal(signal) => Ending::Signal(signal),
        }
    }
}

impl Host {
    /// Runs until something stops it or about `budget` instructions were executed.
    pub fn run(&mut self, mut around: ExecContext<'_>, budget: u64) -> HostExit {
        let end = self.state.instructions.saturating_add(budget);
        loop {
            if let Some(exit) = self.state.wire.exit(self.state.clock_ns) {
                return exit;
            }
            if let Some(exit) = self.choose_thread(&mut around) {
                return exit;
            }
            let before = self.state.instructions;
            let left = end.saturating_sub(before);
            if left == 0 {
                return HostExit::Budget;
            }
            let Some(pause) = self.with_running(&mut around, |running| running.run(left)) else {
                return HostExit::Ended(Ending::EndPath);
            };
            let schedule = &mut self.state.schedule;
            match pause {
                Pause::Budget => {
                    if schedule.quantum == 0 {
                        self.state.long_computation();
                    }
                }
                Pause::Point | Pause::Off => schedule.due = true,
                Pause::Execute(execution) => {
                    if let Err(exit) = self.execute(*execution, &mut around) {
                        return exit;
                    }
                }
                Pause::Exit(exit) => return exit,
            }
            self.settle();
        }
    }

    /// Picks who runs next. `Some` if nobody can.
    pub(crate) fn pick(
        &mut self,
        around: &mut ExecContext<'_>,
    ) -> Result<Option<HostExit>, Interrupt> {
        let mut idle_jumps = 0;
        loop {
            if let Some(death) = self.state.is_over() {
                return Ok(Some(HostExit::Ended(death.into())));
            }
            self.state.fire_timers();
            self.state.repeat_requests();
            let ready = self.state.ready();
            if ready.is_empty() {
                idle_jumps += 1;
                if idle_jumps > MAX_IDLE_JUMPS {
                    // A timer goes on for ever, and nobody cares.
                    return Ok(Some(HostExit::Ended(Ending::Idle)));
                }
                match self.idle() {
                    Some(exit) => return Ok(Some(exit)),
                    None => continue,
                }
            }
            let last = self.state.schedule.running;
            let current = ready.contains(&last).then_some(last);
            let moment = Moment {
                ready: &ready,
                current,
                last,
                yields: self.state.schedule.quantum == 0 || current.is_none(),
            };
            let picker = self.state.schedule.kind.picker();
            let around = reborrow(around);
            let schedule = &mut self.state.schedule;
            let picked = picker(&moment, schedule, around.oracle)?;
            around.oracle.commit();
            if std::mem::take(&mut schedule.at_logged_point)
                && let Some(points) = &mut self.state.points
                && let Some(passed) = triomphe::Arc::make_mut(points).last_mut()
            {
                passed.switches = picked != last;
            }
            let schedule = &mut self.state.schedule;
            schedule.running = picked;
            schedule.due = false;
            schedule.quantum = QUANTUM;
            schedule.calls = 0;
            return Ok(None);
        }
    }

    /// Nobody can run: time jumps to where somebody can, or the host is at its end.
    fn idle(&mut self) -> Option<HostExit> {
        let hope = self.state.hope_of_all();
        if hope == Hope::Input {
            return Some(HostExit::NeedsInput);
        }
        let deadline = self.state.next_deadline();
        let is_told = self.state.wire.stops_at_waits && hope == Hope::Outside;
        if let Some(deadline) = deadline
            && !self.state.wire.is_beyond(deadline)
            && !is_told
        {
            self.state.clock_ns = self.state.clock_ns.max(deadline);
            return None;
        }
        if deadline.is_some() || self.state.wire.is_networked && hope == Hope::Outside {
            return Some(HostExit::Waits(deadline));
        }
        let ended = self.state.processes.first().map(|first| first.life);
        Some(HostExit::Ended(match (hope, ended) {
            (Hope::Outside, Some(Life::Zombie(death))) => death.into(),
            (Hope::Outside, _) => Ending::Idle,
            _ => Ending::Bug(Box::new(self.deadlock())),
        }))
    }

    fn deadlock(&mut self) -> Bug {
        let waiting: Vec<usize> = (0..self.state.tasks.len())
            .filter(|at| matches!(self.state.tasks[*at].doing, Doing::Waiting(_)))
            .collect();
        if let Some(first) = waiting.first() {
            // Its stack is the one that is shown first.
            self.state.schedule.running = *first;
        }
        let threads: Vec<String> = self.threads().into_iter().map(|(who, _)| who).collect();
        let message = match threads.as_slice() {
            [only] => format!("the only thread waits for ever ({only})"),
            all => format!(
                "all {} threads wait for ever ({})",
                all.len(),
                all.join("; ")
            ),
        };
        Bug::new(BugKind::Deadlock, message)
    }
}
