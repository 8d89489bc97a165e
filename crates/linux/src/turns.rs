//! The scheduling loop of a host: picks the next thread according to the policy, and runs it for a
//! time slice.

use everett_vm::{Bug, BugKind, CallSite, ExecContext, Interrupt, PreemptionPoints};
use smallvec::SmallVec;

use crate::config::PreemptAt;
use crate::dispatch::SliceEnd;
use crate::host::{Host, HostState};
use crate::kernel::{Kernel, reborrow};
use crate::outcome::{Ending, HostExit};
use crate::process::{ExitState, ExitStatus, RunState, TaskName};
use crate::readiness::Signalled;
use crate::schedule::{Decision, PreemptionPoint, QUANTUM};
use crate::timers::TimeBase;
use crate::wait::WakeSource;

/// Maximum number of consecutive jumps of the clock to a timer without any thread becoming
/// runnable.
const MAX_IDLE_JUMPS: u32 = 10_000;
/// Instructions between two checks of the files that the running process maps.
const MAPPED_SLICE: u64 = 4096;

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
    /// Ends the time slice of a thread that has computed without system calls for this long. The
    /// clock advances by that time, but not beyond the next deadline or timer, and by at least a
    /// quantum. On a host with a network it advances only by a quantum: packets that arrive
    /// meanwhile are delayed by as much.
    pub(crate) fn end_long_slice(&mut self, computed_ns: u64) {
        let now = self.clock_ns;
        let steady = self.next_deadline().map(|at| at.saturating_sub(now));
        let left = steady.into_iter().chain(self.processor_time_left()).min();
        let most = left.unwrap_or(computed_ns).min(computed_ns);
        self.end_slice_of(match self.wire.is_networked {
            true => QUANTUM,
            false => most.max(QUANTUM),
        });
    }

    /// Ends the time slice of the running thread, and advances its clocks.
    fn end_slice_of(&mut self, passed_ns: u64) {
        self.clock_ns = self.clock_ns.saturating_add(passed_ns);
        if let Some(task) = self.tasks.get_mut(self.schedule.running) {
            let task = triomphe::Arc::make_mut(task);
            task.cpu_ns += passed_ns;
            let pid = task.pid;
            if let Some(process) = self.process_by_pid_mut(pid) {
                process.cpu_ns += passed_ns;
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

    fn can_run(&self, at: usize, signalled: &Signalled) -> bool {
        let task = &self.tasks[at];
        let is_signalled = signalled.includes(task.pid);
        if is_signalled && self.is_stopped(task) {
            return false;
        }
        match &task.run_state {
            RunState::Running => true,
            RunState::Waiting(wait) => {
                let may_be_interrupted = is_signalled || task.pending.mask() != 0;
                self.wait_is_over(task, wait)
                    || may_be_interrupted && self.has_deliverable_signal(task)
            }
            RunState::Ended => false,
        }
    }

    fn ready(&self) -> SmallVec<[usize; 8]> {
        let signalled = self.signalled();
        let is_ready = |at: &usize| {
            self.can_run(*at, &signalled) && self.schedule.held != Some(self.tasks[*at].tid)
        };
        let mut ready: SmallVec<[usize; 8]> = (0..self.tasks.len()).filter(is_ready).collect();
        let tasks = ready.iter().map(|at| &self.tasks[*at]);
        let pinned = tasks.filter(|task| task.pinned);
        let highest = pinned.map(|task| task.real_time_priority()).max();
        if let Some(highest) = highest.filter(|highest| *highest > 0) {
            ready.retain(|at| {
                let task = &self.tasks[*at];
                !task.pinned || task.real_time_priority() == highest
            });
        }
        ready
    }

    /// Whether a thread has to leave its processor to one with a higher real-time priority.
    pub(crate) fn is_outranked(&self, at: usize) -> bool {
        let own = &self.tasks[at];
        let outranks = |other: usize| {
            let task = &self.tasks[other];
            task.pinned && task.real_time_priority() > own.real_time_priority()
        };
        own.pinned && {
            let signalled = self.signalled();
            let can_run = |other: usize| self.can_run(other, &signalled);
            (0..self.tasks.len()).any(|other| outranks(other) && can_run(other))
        }
    }

    /// The earliest time that the host waits for: the deadline of a blocked task, a timer, or the
    /// retry of a connection request.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let deadlines = self.tasks.iter().filter_map(|task| match &task.run_state {
            RunState::Waiting(wait) if wait.clock() == TimeBase::Host => wait.deadline_ns,
            _ => None,
        });
        let others = self.next_timer().into_iter().chain(self.wire.next_retry());
        deadlines.chain(others).min()
    }

    /// The exit status of the host, once its first process has exited and no other process keeps
    /// the host running: one that holds an output stream, or any live one with `waits_for_all`.
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

    /// Runs until an event stops the host or this many instructions were executed since it booted.
    /// Stops there before the next thread is picked, so that no time passes.
    pub fn run_to(&mut self, around: ExecContext<'_>, instructions: u64) -> HostExit {
        self.run_until(around, instructions, true)
    }

    /// Whether the running process maps files.
    fn maps_files(&self) -> bool {
        let process = self.process_index(self.state.schedule.running);
        process.is_some_and(|process| self.memories[process].has_views())
    }

    /// Ends the time slice of the running thread. If the thread spins and all others wait for a
    /// time, the clock jumps to that time.
    fn end_quantum(&mut self, around: &mut ExecContext<'_>) {
        let state = &self.state;
        let is_alone = !state.wire.is_networked && state.ready().len() == 1;
        let waits_for_time =
            state.next_deadline().is_some() || state.processor_time_left().is_some();
        if is_alone && waits_for_time && self.spins(around) {
            self.state.end_long_slice(u64::MAX);
        } else {
            self.state.end_slice_of(QUANTUM);
        }
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
            let left = match self.maps_files() {
                true => left.min(MAPPED_SLICE - before % MAPPED_SLICE),
                false => left,
            };
            let Some(pause) = self.with_running(&mut around, |running| running.run(left)) else {
                return HostExit::Ended(Ending::EndPath);
            };
            // The check is always after the same instructions, so that a path ends at the same
            // instruction whenever it is repeated.
            let is_due = before / MAPPED_SLICE < self.state.instructions / MAPPED_SLICE;
            if is_due
                && self.maps_files()
                && matches!(pause, SliceEnd::Budget)
                && let Some(bug) = self.state.check_mapped_files()
            {
                return HostExit::Ended(Ending::Bug(Box::new(bug)));
            }
            let schedule = &mut self.state.schedule;
            match pause {
                SliceEnd::Budget => {
                    if schedule.quantum == 0 {
                        self.end_quantum(&mut around);
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

    /// No thread is runnable: advances the clock to the next
    /// deadline, or reports how the host ends.
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
