//! Sends signals to processes and threads, and dequeues pending ones. Signal
//! numbers and queues are in `signals`.

use triomphe::Arc;

use crate::host::HostState;
use crate::limits::{PENDING_SIGNALS, UNLIMITED};
use crate::process::{ExitState, ExitStatus, ProcessState, RunState, StateChange, TaskState};
use crate::signals::{
    DEFAULT, FIRST_QUEUED, IGNORE, IGNORED_BY_DEFAULT, SA_NOCLDSTOP, SIGCHLD, SIGCONT, SIGKILL,
    STOPPING, Signal, bit, code,
};
use crate::wait::WaitCondition;

impl Signal {
    /// Creates a signal that a process sends.
    pub fn from_process(number: i32, code: i32, sender: &ProcessState) -> Signal {
        let who = u64::from(sender.pid) | u64::from(sender.uid[0]) << 32;
        Signal {
            words: [who, 0, 0],
            ..Signal::new(number, code)
        }
    }

    /// Creates a signal that reports a child to its parent.
    pub fn from_child(child: &ProcessState, code: i32, status: i32) -> Signal {
        let number = match child.exit_signal {
            0 => SIGCHLD,
            number => number,
        };
        let sent = Signal::from_process(number, code, child);
        Signal {
            words: [sent.words[0], u64::from(status as u32), 0],
            ..sent
        }
    }
}

impl ProcessState {
    /// Whether the process ignores this signal, by its action or by default.
    pub fn ignores(&self, signal: i32) -> bool {
        match self.actions[signal as usize - 1].handler {
            IGNORE => true,
            DEFAULT => IGNORED_BY_DEFAULT & bit(signal) != 0,
            _ => false,
        }
    }
}

impl HostState {
    /// The set of pending signals of a thread, those of its process included.
    pub fn pending_signals(&self, task: &TaskState) -> u64 {
        let process = self.process_by_pid(task.pid);
        task.pending.mask() | process.map_or(0, |process| process.pending.mask())
    }

    /// Whether a task takes a signal sent to its process: the first task that does not block the
    /// signal does.
    fn takes(&self, task: &TaskState, signal: i32) -> bool {
        let mut willing = self.tasks_of(task.pid).filter(|other| {
            let other = if other.tid == task.tid { task } else { other };
            other.blocked & bit(signal) == 0
        });
        willing.next().is_some_and(|first| first.tid == task.tid)
    }

    /// Signals that the thread will take when it runs and that have an effect.
    pub fn deliverable_signals(&self, task: &TaskState) -> u64 {
        let Some(process) = self.process_by_pid(task.pid) else {
            return 0;
        };
        let mut left = process.pending.mask() & !task.blocked & !task.pending.mask();
        let mut signals = task.pending.mask() & !task.blocked;
        while left != 0 {
            let signal = left.trailing_zeros() as i32 + 1;
            left &= left - 1;
            if self.takes(task, signal) {
                signals |= bit(signal);
            }
        }
        let mut left = signals;
        while left != 0 {
            let signal = left.trailing_zeros() as i32 + 1;
            left &= left - 1;
            if process.ignores(signal) {
                signals &= !bit(signal);
            }
        }
        signals
    }

    /// Whether a signal interrupts the wait of this thread.
    pub fn has_deliverable_signal(&self, task: &TaskState) -> bool {
        self.deliverable_signals(task) != 0
    }

    /// Takes the next of these signals that is pending for a thread or its process.
    pub fn take_signal(&mut self, task: usize, wanted: u64) -> Option<Signal> {
        if self.tasks[task].pending.mask() & wanted != 0 {
            return Arc::make_mut(&mut self.tasks[task]).pending.take(wanted);
        }
        let pid = self.tasks[task].pid;
        if self.process_by_pid(pid)?.pending.mask() & wanted == 0 {
            return None;
        }
        self.process_by_pid_mut(pid)?.pending.take(wanted)
    }

    /// Sends a signal from the kernel to a process.
    pub fn send_to_process(&mut self, pid: u32, signal: i32) {
        self.send(pid, Signal::new(signal, code::KERNEL));
    }

    /// Sends a signal to a process; one of its threads that does not block the signal takes it.
    /// Returns whether there was space in the queue.
    pub fn send(&mut self, pid: u32, signal: Signal) -> bool {
        let is_blocked = match self.tasks_of(pid).next() {
            None => return true,
            Some(first) => first.blocked & bit(signal.number) != 0,
        } || self.is_waited_for(pid, signal.number);
        self.apply_immediate_effects(pid, signal.number);
        let is_new = signal.number >= FIRST_QUEUED
            || self
                .process_by_pid(pid)
                .is_none_or(|process| process.pending.mask() & bit(signal.number) == 0);
        let admitted = self.admitted(pid, signal);
        let added = match self.process_by_pid_mut(pid) {
            Some(process) if matches!(process.exit_state, ExitState::Alive) => {
                // An ignored and unblocked signal is discarded.
                (!is_blocked && process.ignores(signal.number))
                    || admitted.is_some_and(|signal| process.pending.add(signal))
            }
            _ => true,
        };
        // One that is pending already is not sent again: nothing is announced.
        if is_new {
            self.announce_signal(signal.number);
        }
        added
    }

    /// The signal as it is queued: without its information if its user has as many queued signals
    /// as `RLIMIT_SIGPENDING` of the process allows. `None` if it is not sent without it.
    fn admitted(&self, pid: u32, signal: Signal) -> Option<Signal> {
        let is_real_time = signal.number >= FIRST_QUEUED;
        let is_exempt = signal.code == code::TIMER || !is_real_time && signal.code >= 0;
        if is_exempt || self.may_queue_signal(pid) {
            return Some(signal);
        }
        let needs_entry = is_real_time && signal.code != code::USER;
        (!needs_entry).then(|| signal.without_entry())
    }

    /// Whether `RLIMIT_SIGPENDING` of a process allows its user one more signal or timer.
    pub fn may_queue_signal(&self, pid: u32) -> bool {
        let Some(process) = self.process_by_pid(pid) else {
            return true;
        };
        let limit = process.limits.soft(PENDING_SIGNALS);
        limit == UNLIMITED || self.queued_signals(process.uid[0]) < limit
    }

    /// Signals in the queues of a user, and timers of `timer_create`, which have a signal each.
    pub fn queued_signals(&self, user: u32) -> u64 {
        let is_of_user = |pid| {
            self.process_by_pid(pid)
                .is_some_and(|one| one.uid[0] == user)
        };
        let tasks = self.tasks.iter().filter(|task| is_of_user(task.pid));
        let to_threads: usize = tasks.map(|task| task.pending.counted()).sum();
        let processes = self.processes.iter().filter(|one| one.uid[0] == user);
        let others = processes.map(|one| one.pending.counted() + one.timers.iter().count());
        (to_threads + others.sum::<usize>()) as u64
    }

    /// Whether a thread of the process waits for this signal with `sigwait`.
    fn is_waited_for(&self, pid: u32, signal: i32) -> bool {
        self.tasks_of(pid).any(|task| match &task.run_state {
            RunState::Waiting(wait) => match wait.condition {
                WaitCondition::Signals(mask) => mask & bit(signal) != 0,
                _ => false,
            },
            _ => false,
        })
    }

    /// Sends a signal to one thread. Returns whether there was space in the queue.
    pub fn send_to_task(&mut self, task: usize, signal: Signal) -> bool {
        let pid = self.tasks[task].pid;
        self.apply_immediate_effects(pid, signal.number);
        let is_blocked = self.tasks[task].blocked & bit(signal.number) != 0
            || self.is_waited_for(pid, signal.number);
        let process = self.process_by_pid(pid);
        if !is_blocked && process.is_some_and(|process| process.ignores(signal.number)) {
            return true;
        }
        let is_new = signal.number >= FIRST_QUEUED
            || self.tasks[task].pending.mask() & bit(signal.number) == 0;
        let Some(admitted) = self.admitted(pid, signal) else {
            return false;
        };
        let added = Arc::make_mut(&mut self.tasks[task]).pending.add(admitted);
        if is_new {
            self.announce_signal(signal.number);
        }
        added
    }

    /// Applies the immediate effects of a signal, which do not depend on its action: SIGCONT and
    /// SIGKILL continue a stopped process, and stop signals and SIGCONT discard each other.
    fn apply_immediate_effects(&mut self, pid: u32, signal: i32) {
        match signal {
            SIGKILL => {
                if let Some(process) = self.process_by_pid_mut(pid) {
                    process.stopped = None;
                }
            }
            SIGCONT => {
                self.discard_signals(pid, STOPPING);
                self.continue_process(pid);
            }
            _ if STOPPING & bit(signal) != 0 => self.discard_signals(pid, bit(SIGCONT)),
            _ => {}
        }
    }

    /// Discards pending signals of a process and its threads.
    pub fn discard_signals(&mut self, pid: u32, signals: u64) {
        for task in &mut self.tasks {
            if task.pid == pid && task.pending.mask() & signals != 0 {
                Arc::make_mut(task).pending.forget(signals);
            }
        }
        if let Some(process) = self.process_by_pid_mut(pid) {
            process.pending.forget(signals);
        }
    }

    /// Stops a process.
    pub fn stop(&mut self, pid: u32, signal: i32) {
        let Some(process) = self.process_by_pid_mut(pid) else {
            return;
        };
        process.stopped = Some(signal);
        process.state_change = Some(StateChange::Stopped(signal));
        self.notify_parent(pid, code::CHILD_STOPPED, signal);
    }

    /// Continues a stopped process.
    fn continue_process(&mut self, pid: u32) {
        let Some(process) = self.process_by_pid_mut(pid) else {
            return;
        };
        if process.stopped.take().is_some() {
            process.state_change = Some(StateChange::Continued);
            self.notify_parent(pid, code::CHILD_CONTINUED, SIGCONT);
        }
    }

    /// Notifies the parent of a process that it was stopped or continued, unless the parent has set
    /// `SA_NOCLDSTOP`.
    fn notify_parent(&mut self, pid: u32, code: i32, status: i32) {
        let Some(child) = self.process_by_pid(pid) else {
            return;
        };
        let (parent, signal) = (child.parent, Signal::from_child(child, code, status));
        let wants = self
            .process_by_pid(parent)
            .is_some_and(|parent| parent.actions[SIGCHLD as usize - 1].flags & SA_NOCLDSTOP == 0);
        if wants {
            let signal = Signal {
                number: SIGCHLD,
                ..signal
            };
            self.send(parent, signal);
        }
    }

    /// Whether a process group is orphaned: no process controls it that could continue it.
    pub fn is_orphaned(&self, group: u32) -> bool {
        let mut members = self.processes.iter().filter(|process| {
            process.group == group && matches!(process.exit_state, ExitState::Alive)
        });
        !members.any(|member| {
            // The parent of the first process is outside the host and does job control.
            self.processes
                .first()
                .is_some_and(|first| first.pid == member.pid)
                || self
                    .process_by_pid(member.parent)
                    .is_some_and(|parent| parent.group != group && parent.session == member.session)
        })
    }

    /// Whether a task's process is stopped.
    pub fn is_stopped(&self, task: &TaskState) -> bool {
        let process = self.process_by_pid(task.pid);
        process.is_some_and(|process| process.stopped.is_some())
    }

    /// The signal that reports the exit of a child to its parent.
    pub fn signal_of_exit(child: &ProcessState, exit_status: ExitStatus) -> Signal {
        match exit_status {
            ExitStatus::Exit(status) => Signal {
                status: Some(status),
                ..Signal::from_child(child, code::CHILD_EXITED, 0)
            },
            ExitStatus::Signal(signal) => Signal::from_child(child, code::CHILD_KILLED, signal),
        }
    }

    /// Index of the live task with this tid.
    pub fn task_by_tid(&self, tid: u32) -> Option<usize> {
        let mut tasks = self.tasks.iter();
        tasks.position(|task| task.tid == tid && task.run_state != RunState::Ended)
    }
}
