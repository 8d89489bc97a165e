//! Signal state of the kernel: pending signals, which thread takes one, and stopped processes.

use everett_expr::ExprId;
use everett_vm::Value;
use triomphe::Arc;

use crate::host::HostState;
use crate::process::{
    ExitState, ExitStatus, ProcessState, RunState, SIGNALS, StateChange, TaskState,
};
use crate::wait::WaitCondition;

pub const SIGILL: i32 = 4;
pub const SIGTRAP: i32 = 5;
pub const SIGABRT: i32 = 6;
pub const SIGBUS: i32 = 7;
pub const SIGFPE: i32 = 8;
pub const SIGKILL: i32 = 9;
pub const SIGSEGV: i32 = 11;
pub const SIGPIPE: i32 = 13;
pub const SIGALRM: i32 = 14;
pub const SIGCHLD: i32 = 17;
pub const SIGCONT: i32 = 18;
pub const SIGSTOP: i32 = 19;
pub const SIGXFSZ: i32 = 25;
pub const SIGVTALRM: i32 = 26;
pub const SIGPROF: i32 = 27;
pub const SIGSYS: i32 = 31;
/// `SIGRTMIN` of the kernel: signals from here on are queued.
pub const FIRST_QUEUED: i32 = 32;

/// `SIG_DFL`.
pub const DEFAULT: u64 = 0;
/// `SIG_IGN`.
pub const IGNORE: u64 = 1;

pub const SA_NOCLDSTOP: u64 = 1;
pub const SA_NOCLDWAIT: u64 = 2;

/// SIGCHLD, SIGCONT, SIGURG, SIGWINCH: the default action is to ignore them.
const IGNORED_BY_DEFAULT: u64 = bit(17) | bit(18) | bit(23) | bit(28);
/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU: the default action is to stop the process.
pub const STOPPING: u64 = bit(19) | bit(20) | bit(21) | bit(22);
/// Signals that instructions cause, which are delivered first.
const SYNCHRONOUS: u64 =
    bit(SIGSEGV) | bit(SIGBUS) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGFPE) | bit(SIGSYS);

/// Origin of a signal: `si_code`.
pub mod code {
    pub const USER: i32 = 0;
    pub const KERNEL: i32 = 0x80;
    pub const TIMER: i32 = -2;
    pub const THREAD: i32 = -6;
    pub const CHILD_EXITED: i32 = 1;
    pub const CHILD_KILLED: i32 = 2;
    pub const CHILD_STOPPED: i32 = 5;
    pub const CHILD_CONTINUED: i32 = 6;
}

/// The bit of a signal in a mask.
pub const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Removes SIGKILL and SIGSTOP from a mask: they cannot be blocked.
pub fn blockable(mask: u64) -> u64 {
    mask & !(bit(SIGKILL) | bit(SIGSTOP))
}

/// Whether it is a valid signal number.
pub fn is_signal(number: i32) -> bool {
    (1..=SIGNALS as i32).contains(&number)
}

/// A sent signal.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Signal {
    /// The signal number.
    pub number: i32,
    /// Its origin, one of [`code`].
    pub code: i32,
    /// Contents of `siginfo_t` from byte 16 on: sender and value, an address, or a child and its status.
    pub words: [u64; 3],
    /// Exit status of a child, 8 bits, which may be symbolic: the low half of the second word.
    pub status: Option<Value>,
}

impl Signal {
    /// A signal without further information.
    pub fn new(number: i32, code: i32) -> Signal {
        Signal {
            number,
            code,
            words: [0; 3],
            status: None,
        }
    }

    /// A signal that a process sends.
    pub fn from_process(number: i32, code: i32, sender: &ProcessState) -> Signal {
        let who = u64::from(sender.pid) | u64::from(sender.uid[0]) << 32;
        Signal {
            words: [who, 0, 0],
            ..Signal::new(number, code)
        }
    }

    /// A signal that reports a child to its parent.
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

/// Pending signals of a thread or process.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    /// Set of the signals in the queue.
    mask: u64,
    queue: Vec<Signal>,
}

/// The most signals that are queued.
const MAX_QUEUED: usize = 4096;

impl Pending {
    /// The set of pending signals.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Adds a signal. Of signals that are not queued only the first one is kept. Returns whether there was
    /// space.
    pub fn add(&mut self, signal: Signal) -> bool {
        let is_known = self.mask & bit(signal.number) != 0;
        if is_known && signal.number < FIRST_QUEUED {
            return true;
        }
        if self.queue.len() >= MAX_QUEUED {
            return false;
        }
        self.mask |= bit(signal.number);
        self.queue.push(signal);
        true
    }

    /// Discards these signals.
    pub fn forget(&mut self, signals: u64) {
        if self.mask & signals != 0 {
            self.queue
                .retain(|signal| bit(signal.number) & signals == 0);
            self.mask &= !signals;
        }
    }

    /// The next signal among these.
    pub fn next(&self, wanted: u64) -> Option<i32> {
        let there = self.mask & wanted;
        let first = match there & SYNCHRONOUS {
            0 => there,
            urgent => urgent,
        };
        (first != 0).then(|| first.trailing_zeros() as i32 + 1)
    }

    /// Takes the next signal among these: lowest number first, then oldest first.
    pub fn take(&mut self, wanted: u64) -> Option<Signal> {
        let number = self.next(wanted)?;
        let at = self
            .queue
            .iter()
            .position(|signal| signal.number == number)?;
        let signal = self.queue.remove(at);
        if !self.queue.iter().any(|other| other.number == number) {
            self.mask &= !bit(number);
        }
        Some(signal)
    }

    /// A pending signal that matches, for changing it.
    pub fn find_mut(&mut self, mut wanted: impl FnMut(&Signal) -> bool) -> Option<&mut Signal> {
        self.queue.iter_mut().find(|signal| wanted(signal))
    }

    /// Visits all terms, so that the arena can mark live ones.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(ExprId)) {
        let statuses = self.queue.iter().filter_map(|signal| signal.status);
        statuses.filter_map(|status| status.term).for_each(visit);
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

    /// Whether a task takes a signal sent to its process: the first one that does not block it does.
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

    /// Sends a signal to a process; any of its threads that does not block it takes it. Returns whether there
    /// was space in the queue.
    pub fn send(&mut self, pid: u32, signal: Signal) -> bool {
        let is_blocked = match self.tasks_of(pid).next() {
            None => return true,
            Some(first) => first.blocked & bit(signal.number) != 0,
        } || self.is_waited_for(pid, signal.number);
        self.apply_immediate_effects(pid, signal.number);
        let added = match self.process_by_pid_mut(pid) {
            Some(process) if matches!(process.exit_state, ExitState::Alive) => {
                // An ignored and unblocked signal is discarded.
                (!is_blocked && process.ignores(signal.number)) || process.pending.add(signal)
            }
            _ => true,
        };
        self.announce_signal(signal.number);
        added
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
        let added = Arc::make_mut(&mut self.tasks[task]).pending.add(signal);
        self.announce_signal(signal.number);
        added
    }

    /// The immediate effects of sending a signal, whatever its action: SIGCONT and SIGKILL continue a stopped
    /// process, and stop signals and SIGCONT discard each other.
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

    /// Whether a process group is orphaned: no process that could continue it controls it.
    pub fn is_orphaned(&self, group: u32) -> bool {
        let mut members = self.processes.iter().filter(|process| {
            process.group == group && matches!(process.exit_state, ExitState::Alive)
        });
        !members.any(|member| {
            // The parent of the first process is outside of the host and does job control.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(number: i32, value: u64) -> Signal {
        Signal {
            words: [value, 0, 0],
            ..Signal::new(number, code::USER)
        }
    }

    #[test]
    fn only_late_numbers_are_queued() {
        let mut pending = Pending::default();
        for value in 0..3 {
            pending.add(sent(10, value));
            pending.add(sent(40, value));
        }
        let values: Vec<_> =
            std::iter::from_fn(|| pending.take(u64::MAX).map(|s| (s.number, s.words[0]))).collect();
        assert_eq!(values, [(10, 0), (40, 0), (40, 1), (40, 2)]);
        assert_eq!(pending.mask(), 0);
    }

    #[test]
    fn the_lowest_comes_first_but_faults_come_before() {
        let mut pending = Pending::default();
        for number in [40, 2, 35, SIGSEGV] {
            pending.add(sent(number, 0));
        }
        assert_eq!(pending.next(u64::MAX), Some(SIGSEGV));
        assert_eq!(pending.next(!bit(SIGSEGV)), Some(2));
        pending.forget(bit(2) | bit(SIGSEGV));
        assert_eq!(pending.take(u64::MAX).map(|signal| signal.number), Some(35));
        assert!(pending.take(bit(7)).is_none());
    }
}
