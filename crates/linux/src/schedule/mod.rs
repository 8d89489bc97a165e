//! The scheduler of a host: which thread runs next. A policy is one file with one [`Policy`], and one row in
//! [`SCHEDULERS`].

mod bounded;
mod exhaustive;
mod random;
mod round_robin;

use everett_vm::{
    Bug, BugKind, CallSite, ChoiceSite, ExecContext, Interrupt, Oracle, PreemptionPoints,
};
use smallvec::SmallVec;

use crate::config::PreemptAt;
use crate::dispatch::SliceEnd;
use crate::host::{Ending, Host, HostExit, HostState};
use crate::kernel::{Kernel, reborrow};
use crate::process::{ExitState, ExitStatus, RunState, TaskName};
use crate::wait::WakeSource;

/// Instructions that a thread may execute between two system calls before its time slice is over.
const QUANTUM: u64 = 1_000_000;
/// System calls that a thread may make before its time slice is over.
const MAX_CALLS: u32 = 100;

/// How often the clock may jump to a timer in a row without any thread becoming runnable.
const MAX_IDLE_JUMPS: u32 = 10_000;

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
    /// Instructions that the running thread may still execute before it must make a system call.
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
    /// The first thread runs.
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
    /// What its number means, if it takes one: `bounded:N`.
    pub number: Option<&'static str>,
    /// What it explores.
    pub what: &'static str,
    /// Whether it is consulted at preemption points.
    preempts: bool,
    pick: Picker,
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

    /// Parses a name, with its number behind a colon if it takes one.
    pub fn parse(text: &str) -> Result<Scheduler, String> {
        let (name, number) = match text.split_once(':') {
            Some((name, digits)) => {
                let number = digits.parse::<u64>();
                (
                    name,
                    Some(number.map_err(|_| format!("{digits:?} is no number"))?),
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
                Err(format!("{text:?} is no scheduler; there are: {names}"))
            }
        }
    }

    /// Whether the policy is consulted at preemption points.
    pub fn preempts(self) -> bool {
        self.row().preempts
    }

    fn row(self) -> &'static Policy {
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

/// Asks the oracle which runnable task runs. `site` is the kind of the choice.
fn ask(
    decision: &Decision<'_>,
    site: &ChoiceSite,
    oracle: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    if decision.ready.len() == 1 {
        return Ok(decision.ready[0]);
    }
    // The task that would continue anyway is the first alternative: picking it is no deviation.
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

impl Kernel<'_, '_> {
    /// Logs a preemption point between two system calls of the running thread.
    pub(crate) fn log_point(&mut self) {
        let Some(frame) = self.vm.thread.top() else {
            return;
        };
        let passed = PreemptionPoint {
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

    /// Stops the running thread before its system call, once, if the policy may preempt it there.
    pub(crate) fn stop_at_point(&mut self) -> bool {
        let options = &self.host.options;
        let wanted = self.host.schedule.kind.preempts() && options.preempt_at != PreemptAt::Quantum;
        if !wanted || self.task().passed_preemption_point || self.host.tasks.len() == 1 {
            return false;
        }
        self.task_mut().passed_preemption_point = true;
        true
    }
}

impl HostState {
    /// Ends the time slice of a thread that computes without system calls, and advances its clocks.
    pub(crate) fn end_quantum(&mut self) {
        self.clock_ns = self.clock_ns.saturating_add(QUANTUM);
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

    /// The instructions before which the running thread stops for preemption.
    pub(crate) fn points(&self, alone: bool, shares: bool) -> PreemptionPoints {
        if self.tasks.len() == 1 || !self.schedule.kind.preempts() {
            return PreemptionPoints::None;
        }
        if alone && !shares {
            // The memory is private: processes interact at system calls only.
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
        match &task.run_state {
            RunState::Running => true,
            RunState::Waiting(wait) => {
                self.wait_is_over(task, wait) || self.has_deliverable_signal(task)
            }
            RunState::Ended => false,
        }
    }

    fn ready(&self) -> SmallVec<[usize; 8]> {
        (0..self.tasks.len())
            .filter(|at| self.can_run(*at) && self.schedule.held != Some(self.tasks[*at].tid))
            .collect()
    }

    /// The earliest deadline of a blocked task.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let deadlines = self.tasks.iter().filter_map(|task| match &task.run_state {
            RunState::Waiting(wait) => wait.deadline_ns,
            _ => None,
        });
        let others = self.next_timer().into_iter().chain(self.wire.next_retry());
        deadlines.chain(others).min()
    }

    /// The exit status of the host, once its first process has exited and no other process holds its output
    /// streams.
    fn is_over(&self) -> Option<ExitStatus> {
        let first = self.processes.first()?;
        let ExitState::Zombie(exit_status) = first.exit_state else {
            return None;
        };
        let alive = || {
            let processes = self.processes.iter().skip(1);
            processes.filter(|process| matches!(process.exit_state, ExitState::Alive))
        };
        let goes_on = if self.options.waits_for_all {
            alive().next().is_some()
        } else {
            alive().any(|process| self.holds_output(process))
        };
        (!goes_on).then_some(exit_status)
    }

    fn holds_output(&self, process: &crate::process::ProcessState) -> bool {
        process.descriptors.iter().any(|(_, descriptor)| {
            let description = self.files.description(descriptor.description);
            description.is_some_and(|open| matches!(open.target, crate::files::Target::Output(_)))
        })
    }
}

impl From<ExitStatus> for Ending {
    fn from(exit_status: ExitStatus) -> Ending {
        match exit_status {
            ExitStatus::Exit(status) => Ending::Exit(status),
            ExitStatus::Signal(signal) => Ending::Signal(signal),
        }
    }
}

impl Host {
    /// Runs until an event stops the host or about `budget` instructions were executed.
    pub fn run(&mut self, around: ExecContext<'_>, budget: u64) -> HostExit {
        let end = self.state.instructions.saturating_add(budget);
        self.run_until(around, end, false)
    }

    /// Runs until an event stops the host or this many instructions were executed since it booted. Stops there before
    /// the next thread is picked, so that no time passes.
    pub fn run_to(&mut self, around: ExecContext<'_>, instructions: u64) -> HostExit {
        self.run_until(around, instructions, true)
    }

    fn run_until(&mut self, mut around: ExecContext<'_>, end: u64, before_pick: bool) -> HostExit {
        loop {
            if let Some(exit) = self.state.wire.exit(self.state.clock_ns) {
                return exit;
            }
            if before_pick && self.state.instructions >= end {
                return HostExit::Budget;
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
                SliceEnd::Budget => {
                    if schedule.quantum == 0 {
                        self.state.end_quantum();
                    }
                }
                SliceEnd::Point | SliceEnd::Off => schedule.due = true,
                SliceEnd::Execute(execution) => {
                    if let Err(exit) = self.execute(*execution, &mut around) {
                        return exit;
                    }
                }
                SliceEnd::Exit(exit) => return exit,
            }
            self.update_tasks();
        }
    }

    /// Picks the thread that runs next. Returns `Some` if no thread is runnable.
    pub(crate) fn pick(
        &mut self,
        around: &mut ExecContext<'_>,
    ) -> Result<Option<HostExit>, Interrupt> {
        let mut idle_jumps = 0;
        loop {
            if let Some(exit_status) = self.state.is_over() {
                return Ok(Some(HostExit::Ended(exit_status.into())));
            }
            self.state.fire_timers();
            self.state.retry_requests();
            let ready = self.state.ready();
            if ready.is_empty() {
                idle_jumps += 1;
                if idle_jumps > MAX_IDLE_JUMPS {
                    // A periodic timer fires forever, and no thread reacts to it.
                    return Ok(Some(HostExit::Ended(Ending::Idle)));
                }
                match self.idle() {
                    Some(exit) => return Ok(Some(exit)),
                    None => continue,
                }
            }
            let last = self.state.schedule.running;
            let current = ready.contains(&last).then_some(last);
            let thread = |at: &usize| self.state.tasks[*at].tid;
            let threads: SmallVec<[u32; 8]> = ready.iter().map(thread).collect();
            let decision = Decision {
                ready: &ready,
                threads: &threads,
                current,
                last,
                yields: self.state.schedule.quantum == 0 || current.is_none(),
            };
            let picker = self.state.schedule.kind.row().pick;
            let around = reborrow(around);
            let schedule = &mut self.state.schedule;
            let picked = picker(&decision, schedule, around.oracle)?;
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

    /// No thread is runnable: advances the clock to the next deadline, or reports how the host ends.
    fn idle(&mut self) -> Option<HostExit> {
        let wake_source = self.state.best_wake_source();
        if wake_source == WakeSource::Stdin {
            return Some(HostExit::NeedsInput);
        }
        let deadline = self.state.next_deadline();
        let is_told = self.state.wire.stops_at_waits && wake_source == WakeSource::External;
        if let Some(deadline) = deadline
            && !is_told
            && self.state.wire.may_jump(deadline)
        {
            self.state.clock_ns = self.state.clock_ns.max(deadline);
            return None;
        }
        if deadline.is_some() || self.state.wire.is_networked && wake_source == WakeSource::External
        {
            return Some(HostExit::Waits(deadline));
        }
        let ended = self.state.processes.first().map(|first| first.exit_state);
        Some(HostExit::Ended(match (wake_source, ended) {
            (WakeSource::External, Some(ExitState::Zombie(exit_status))) => exit_status.into(),
            (WakeSource::External, _) => Ending::Idle,
            _ => Ending::Bug(Box::new(self.deadlock())),
        }))
    }

    fn deadlock(&mut self) -> Bug {
        let waiting: Vec<usize> = (0..self.state.tasks.len())
            .filter(|at| matches!(self.state.tasks[*at].run_state, RunState::Waiting(_)))
            .collect();
        if let Some(first) = waiting.first() {
            // The report shows the stack of this thread first.
            self.state.schedule.running = *first;
        }
        let threads: Vec<String> = self.threads().into_iter().map(|(who, _)| who).collect();
        let message = match threads.as_slice() {
            [only] => format!("the only thread waits forever ({only})"),
            all => format!(
                "all {} threads wait forever ({})",
                all.len(),
                all.join("; ")
            ),
        };
        Bug::new(BugKind::Deadlock, message)
    }
}
