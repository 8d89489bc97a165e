//! Processes and tasks, as the kernel's tables hold them.

use everett_vm::{Buffer, Bug, FloatEnvironment, ImageId, Memory, Thread, Value};
use triomphe::Arc;

use crate::capabilities::Capabilities;
use crate::files::Descriptors;
use crate::ids::InodeId;
use crate::limits::Limits;
use crate::signals::{Pending, SIGNALS};
use crate::slots::Slots;
use crate::timers::PosixTimer;
use crate::wait::{Wait, WaitCondition};

/// The pid of init, which adopts orphans.
pub(crate) const INIT: u32 = 1;

/// Process 1, as calls about processes see it: no program of the host. It reaps its children at
/// once, and signals have no effect on it.
#[derive(Clone, Debug)]
pub struct Init {
    /// The process.
    pub process: ProcessState,
    /// Its only thread.
    pub task: TaskState,
}

/// The users and groups of a process whose program starts.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct NewIds {
    /// Real, effective and saved user id.
    pub uid: [u32; 3],
    /// The same of the group.
    pub gid: [u32; 3],
    /// The program gets privileges that its user does not have.
    pub is_secure: bool,
}

/// Identity of a task.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskName {
    /// Its pid.
    pub pid: u32,
    /// Its tid.
    pub tid: u32,
}

/// The disposition of a signal.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct SignalAction {
    /// `SIG_DFL` (0), `SIG_IGN` (1) or the address of a function.
    pub handler: u64,
    /// `SA_` flags.
    pub flags: u64,
    /// The return address of a handler; kept only for `sigaction` to read back.
    pub restorer: u64,
    /// Signals blocked while the handler runs.
    pub mask: u64,
}

/// Run state of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunState {
    /// It can run.
    Running,
    /// It is blocked in a system call.
    Waiting(Wait),
    /// It has exited and is about to be removed.
    Ended,
}

impl RunState {
    /// Whether the task has exited.
    pub fn is_ended(&self) -> bool {
        matches!(self, RunState::Ended)
    }

    /// The condition that the task waits for, if it is blocked.
    pub fn condition(&self) -> Option<&WaitCondition> {
        match self {
            RunState::Waiting(wait) => Some(&wait.condition),
            RunState::Running | RunState::Ended => None,
        }
    }
}

/// Kernel state of a task (a thread).
#[derive(Clone, Debug)]
pub struct TaskState {
    /// Its tid, unique on the host.
    pub tid: u32,
    /// The pid of its process.
    pub pid: u32,
    /// Its run state.
    pub run_state: RunState,
    /// It was woken at the futex or FIFO that it waits for.
    pub woken: bool,
    /// Sequence number of its current wait: wake-ups go to the longest waiting task first.
    pub waiting_since: u64,
    /// Bytes that the current system call moved before it blocked.
    pub progress: u64,
    /// System calls made so far, without memory management.
    pub calls: u64,
    /// Other threads had the chance to run before the system call that it is about to make.
    pub passed_preemption_point: bool,
    /// The oracle was already asked whether the blocked system call fails.
    pub fault_asked: bool,
    /// The driver of the host was already asked about the system call that it is about to make.
    pub stop_asked: bool,
    /// The child of the current `vfork`.
    pub vforked: Option<u32>,
    /// Stack slots that it borrows from the thread that created it, which continues to use them.
    pub lent_slots: usize,
    /// The stack of its process that it runs on.
    pub stack: u32,
    /// Signal mask: bit `n - 1` blocks signal `n`.
    pub blocked: u64,
    /// Pending signals sent to this thread.
    pub pending: Pending,
    /// The address set by `set_tid_address`.
    pub clear_child_tid: u64,
    /// `set_robust_list`: head and length.
    pub robust_list: (u64, u64),
    /// `sigaltstack`: address, flags, size.
    pub alternate_stack: (u64, u32, u64),
    /// Deadline of the current system call.
    pub deadline_ns: Option<u64>,
    /// The deadline is on the wall clock, and moves when the wall clock is set.
    pub waits_for_wall_clock: bool,
    /// Clock readings since the last other system call.
    pub clock_readings: u32,
    /// The address at which the current system call stores the remaining time if a signal
    /// interrupts it; 0 if nowhere.
    pub remainder: u64,
    /// Signal mask to restore when the next handler returns, after a system call
    /// replaced it (`sigsuspend`, `ppoll`).
    pub restored_mask: Option<u64>,
    /// Running signal handlers, innermost last.
    pub handlers: Vec<HandlerRun>,
    /// The thread's name (`PR_SET_NAME`).
    pub name: [u8; 16],
    /// CPU time used.
    pub cpu_ns: u64,
    /// Number of times that it has waited.
    pub waits: u64,
    /// Nice value (`setpriority`).
    pub nice: i32,
    /// `sched_setscheduler`: policy and priority.
    pub policy: (u32, i32),
    /// `sched_setaffinity` has bound it to one processor.
    pub pinned: bool,
    /// `PR_SET_TIMERSLACK`: stored, but without effect.
    pub timer_slack_ns: u64,
}

/// A system call that is suspended while a signal handler runs.
#[derive(Clone, Debug, Default)]
pub struct Suspended {
    woken: bool,
    progress: u64,
    passed_preemption_point: bool,
    fault_asked: bool,
    stop_asked: bool,
    vforked: Option<u32>,
    deadline_ns: Option<u64>,
}

/// A running signal handler, and the state to restore when it returns.
#[derive(Clone, Debug)]
pub struct HandlerRun {
    /// Frames below its own.
    pub(crate) depth: usize,
    /// Serial number of its frame.
    pub(crate) serial: u64,
    /// Stack slots that existed before it.
    pub(crate) slots: usize,
    /// Signal mask to restore.
    pub(crate) blocked: u64,
    /// Address of its `ucontext`.
    pub(crate) context: u64,
    /// The program counter in the `ucontext`.
    pub(crate) program_counter: u64,
    /// It runs on the alternate stack.
    pub(crate) on_alternate_stack: bool,
    /// `sigaltstack` to restore.
    pub(crate) restored_stack: Option<(u64, u32, u64)>,
    /// The bug that ends the program when it returns: `abort` never returns.
    pub(crate) ends_with: Option<Box<Bug>>,
    /// The floating-point environment to restore.
    pub(crate) floats: FloatEnvironment,
    /// The system call to resume afterwards.
    pub(crate) call: Suspended,
}

impl TaskState {
    /// A new task with default state.
    pub fn new(tid: u32, pid: u32) -> TaskState {
        TaskState {
            tid,
            pid,
            run_state: RunState::Running,
            woken: false,
            waiting_since: 0,
            progress: 0,
            calls: 0,
            passed_preemption_point: false,
            fault_asked: false,
            stop_asked: false,
            vforked: None,
            lent_slots: 0,
            stack: 0,
            blocked: 0,
            pending: Pending::default(),
            clear_child_tid: 0,
            robust_list: (0, 0),
            alternate_stack: (0, 2, 0),
            deadline_ns: None,
            waits_for_wall_clock: false,
            clock_readings: 0,
            remainder: 0,
            restored_mask: None,
            handlers: Vec::new(),
            name: *b"program\0\0\0\0\0\0\0\0\0",
            cpu_ns: 0,
            waits: 0,
            nice: 0,
            policy: (0, 0),
            pinned: false,
            timer_slack_ns: 50_000,
        }
    }

    /// Suspends the current system call.
    pub fn suspend(&mut self) -> Suspended {
        Suspended {
            woken: std::mem::take(&mut self.woken),
            progress: std::mem::take(&mut self.progress),
            passed_preemption_point: std::mem::take(&mut self.passed_preemption_point),
            fault_asked: std::mem::take(&mut self.fault_asked),
            stop_asked: std::mem::take(&mut self.stop_asked),
            vforked: self.vforked.take(),
            deadline_ns: self.deadline_ns.take(),
        }
    }

    /// Resumes a suspended system call.
    pub fn resume(&mut self, call: Suspended) {
        self.woken = call.woken;
        self.progress = call.progress;
        self.passed_preemption_point = call.passed_preemption_point;
        self.fault_asked = call.fault_asked;
        self.stop_asked = call.stop_asked;
        self.vforked = call.vforked;
        self.deadline_ns = call.deadline_ns;
    }

    /// A task created by this one, with everything that it inherits.
    pub fn child(&self, tid: u32, pid: u32) -> TaskState {
        TaskState {
            blocked: self.blocked,
            name: self.name,
            handlers: self.handlers.clone(),
            nice: self.nice,
            policy: self.policy,
            pinned: self.pinned,
            timer_slack_ns: self.timer_slack_ns,
            ..TaskState::new(tid, pid)
        }
    }
}

/// The heap that ends at the program break (`brk`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Break {
    /// First address.
    pub start: u64,
    /// First address after the heap.
    pub end: u64,
}

/// How a process exited.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum ExitStatus {
    /// It exited with this status, 8 bits, which may be symbolic.
    Exit(Value),
    /// This signal killed it.
    Signal(i32),
}

/// Exit state of a process.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum ExitState {
    /// It is alive.
    Alive,
    /// It has exited, and its parent has not reaped it.
    Zombie(ExitStatus),
    /// It is reaped and about to be removed.
    Reaped,
}

/// A state change of a live child that its parent can wait for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StateChange {
    /// This signal stopped it.
    Stopped(i32),
    /// SIGCONT continued it.
    Continued,
}

/// `/proc/PID/oom_score_adj`.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct OutOfMemory {
    /// The value, from -1000 to 1000.
    pub adjustment: i32,
    /// The lowest value that it can set without `CAP_SYS_RESOURCE`.
    pub lowest: i32,
}

/// Kernel state of a process, without its memory and tasks.
#[derive(Clone, Debug)]
pub struct ProcessState {
    /// Its pid.
    pub pid: u32,
    /// Its parent's pid.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// Its session.
    pub session: u32,
    /// The program that it executes.
    pub image: ImageId,
    /// Whether it is alive, a zombie or reaped.
    pub exit_state: ExitState,
    /// It was created by `vfork`, and its parent is blocked until it exits or calls `execve`.
    pub borrows_memory: bool,
    /// The pid of the process whose memory it uses (`vfork`, `CLONE_VM`); `None` if it has its own.
    pub lender: Option<u32>,
    /// Signal sent to its parent when it exits.
    pub exit_signal: i32,
    /// User ids: real, effective, saved.
    pub uid: [u32; 3],
    /// Group ids: real, effective, saved.
    pub gid: [u32; 3],
    /// File mode creation mask.
    pub umask: u32,
    /// Current working directory.
    pub cwd: InodeId,
    /// Its root directory (`chroot`).
    pub root: InodeId,
    /// File descriptors.
    pub descriptors: Descriptors,
    /// Signal dispositions, by signal number minus one.
    pub actions: Arc<[SignalAction; SIGNALS]>,
    /// Pending signals sent to the process, not yet taken by one of its threads.
    pub pending: Pending,
    /// Maximum number of bytes that it may hold in heap blocks and mappings.
    pub max_heap: u64,
    /// The heap that ends at the program break (`brk`).
    pub program_break: Option<Break>,
    /// The program, arguments and environment that it was started with.
    pub execution: Arc<Execution>,
    /// The signal that stopped it, while it is stopped.
    pub stopped: Option<i32>,
    /// A state change that its parent has not waited for yet.
    pub state_change: Option<StateChange>,
    /// It has called `execve` since it was created.
    pub has_executed: bool,
    /// Supplementary groups.
    pub groups: Arc<Vec<u32>>,
    /// The user and group that file permission checks use, if they are not the effective ones
    /// (`setfsuid`, `setfsgid`).
    pub file_ids: [Option<u32>; 2],
    /// Resource limits.
    pub limits: Arc<Limits>,
    /// `PR_SET_PDEATHSIG`: the signal that it gets when its parent exits.
    pub parent_death_signal: i32,
    /// `PR_SET_CHILD_SUBREAPER`: orphaned descendants become its children.
    pub is_subreaper: bool,
    /// `PR_SET_NO_NEW_PRIVS`.
    pub no_new_privileges: bool,
    /// The users and groups with which its program started.
    pub started_as: NewIds,
    /// `PR_SET_DUMPABLE`.
    pub dumpable: u32,
    /// `PR_SET_SECUREBITS`.
    pub secure_bits: u32,
    /// Memory that it has locked.
    pub locked_memory: LockedMemory,
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// How likely it is to be killed if memory runs out.
    pub out_of_memory: OutOfMemory,
    /// It may use huge pages, unless `PR_SET_THP_DISABLE` was set.
    pub has_huge_pages: bool,
    /// CPU time used by its threads.
    pub cpu_ns: u64,
    /// CPU time used by its reaped children.
    pub children_cpu_ns: u64,
    /// Maximum bytes of blocks and mappings that it had when it made a system call.
    pub most_memory: u64,
    /// The same of the child that had most.
    pub children_most_memory: u64,
    /// Number of times that its threads have waited.
    pub waits: u64,
    /// The same of its reaped children.
    pub children_waits: u64,
    /// Armed timers of `setitimer`: real, virtual, profiling.
    pub alarms: [Option<u32>; 3],
    /// Timers made by `timer_create`.
    pub timers: Slots<PosixTimer>,
}

impl ProcessState {
    /// Whether a bit of `PR_SET_SECUREBITS` is set.
    pub fn has_secure_bit(&self, bit: u32) -> bool {
        self.secure_bits & bit != 0
    }

    /// Visits all terms, so that the arena can mark live ones.
    pub fn for_each_term(&self, visit: &mut dyn everett_expr::VisitTerms) {
        if let ExitState::Zombie(ExitStatus::Exit(status)) = self.exit_state {
            status.term.into_iter().for_each(|term| visit.term(term));
        }
        let execution = &self.execution;
        for string in execution.args.iter().chain(&execution.env) {
            string.terms().for_each(|term| visit.term(term));
        }
        self.pending.for_each_term(visit);
    }
}

/// A task that a system call has created, and its process if that is new.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// The process and its memory, unless the task joins an existing process.
    pub process: Option<(ProcessState, Memory)>,
    /// The kernel's state of the task.
    pub task: TaskState,
    /// Its frames and registers.
    pub thread: Thread,
}

/// Arguments of an `execve`, decoded.
#[derive(Clone, Debug, Default)]
pub struct Execution {
    /// The program.
    pub image: ImageId,
    /// The file that is executed.
    pub file: Option<InodeId>,
    /// Its name in `/proc` and in debuggers.
    pub name: Vec<u8>,
    /// Arguments, without their terminating NULs.
    pub args: Vec<Buffer>,
    /// Environment, without terminating NULs.
    pub env: Vec<Buffer>,
}

/// Locked memory of a process. Cloning is O(1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LockedMemory {
    /// Disjoint ranges: start and end.
    pub(crate) ranges: Arc<Vec<(u64, u64)>>,
    /// All memory that was mapped at the time is locked (`mlockall`).
    pub(crate) all: bool,
    /// All memory that will be mapped is locked.
    pub(crate) future: bool,
}

impl LockedMemory {
    /// Bytes in locked ranges.
    pub(crate) fn bytes(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        self.all
            || self
                .ranges
                .iter()
                .any(|range| range.0 < end && start < range.1)
    }

    /// Adds a range.
    pub(crate) fn lock(&mut self, start: u64, end: u64) {
        self.unlock(start, end);
        Arc::make_mut(&mut self.ranges).push((start, end));
    }

    /// Removes a range.
    pub fn unlock(&mut self, start: u64, end: u64) {
        if self.ranges.is_empty() {
            return;
        }
        let left = self.ranges.iter().flat_map(|range| {
            let before = (range.0, range.1.min(start));
            let behind = (range.0.max(end), range.1);
            [before, behind]
        });
        let left = left.filter(|(start, end)| start < end).collect();
        self.ranges = Arc::new(left);
    }
}
