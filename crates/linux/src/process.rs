//! Processes and their threads, as the kernel knows them.

use everett_vm::{ImageId, Value};
use triomphe::Arc;

use crate::delivery::HandlerRun;
use crate::files::{Descriptors, InodeId};
use crate::life::Execution;
use crate::limits::Limits;
use crate::signals::Pending;
use crate::slots::Slots;
use crate::timers::PosixTimer;
use crate::wait::Wait;

/// What a process does with a signal.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct SignalAction {
    /// `SIG_DFL` (0), `SIG_IGN` (1) or the address of a function.
    pub handler: u64,
    /// `SA_` flags.
    pub flags: u64,
    /// Where a handler returns to; kept for `sigaction` to tell.
    pub restorer: u64,
    /// Signals blocked while the handler runs.
    pub mask: u64,
}

/// Number of signals.
pub const SIGNALS: usize = 64;

/// What a thread is doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Doing {
    /// It can run.
    Running,
    /// Its system call waits.
    Waiting(Wait),
    /// It has ended and will be forgotten.
    Ended,
}

/// What the kernel knows of a thread.
#[derive(Clone, Debug)]
pub struct TaskState {
    /// Its number on the host.
    pub tid: u32,
    /// Number of its process.
    pub pid: u32,
    /// What it is doing.
    pub doing: Doing,
    /// Somebody woke it at the futex where it waits.
    pub woken: bool,
    /// Waits began in this order, for waking the longest waiting first.
    pub waiting_since: u64,
    /// Bytes that the system call under way has moved before it had to wait.
    pub progress: u64,
    /// System calls that it has made, those about memory left out.
    pub calls: u64,
    /// Others had the chance to run before the system call that it is about to make.
    pub passed_preemption_point: bool,
    /// It was asked whether the system call that waits fails.
    pub fault_asked: bool,
    /// Whoever runs the host was asked about the system call that it is about to make.
    pub stop_asked: bool,
    /// The child of the `vfork` under way.
    pub vforked: Option<u32>,
    /// Which of the stacks of its process it has.
    pub stack: u32,
    /// Blocked signals, bit `n - 1` for signal `n`.
    pub blocked: u64,
    /// Signals that were sent and wait until they are not blocked.
    pub pending: Pending,
    /// `set_tid_address`.
    pub clear_child_tid: u64,
    /// `set_robust_list`: head and length.
    pub robust_list: (u64, u64),
    /// `sigaltstack`: address, flags, size.
    pub alternate_stack: (u64, u32, u64),
    /// The system call under way waits until this time.
    pub deadline_ns: Option<u64>,
    /// Where the system call under way says how much of its time is left when a signal ends it; 0 is nowhere.
    pub remainder: u64,
    /// Blocked signals to restore when the next handler returns, where a system call had set others
    /// (`sigsuspend`, `ppoll`).
    pub restored_mask: Option<u64>,
    /// Signal handlers that run, innermost last.
    pub handlers: Vec<HandlerRun>,
    /// The name (`PR_SET_NAME`).
    pub name: [u8; 16],
    /// Time that it has executed.
    pub cpu_ns: u64,
    /// `setpriority`.
    pub nice: i32,
    /// `sched_setscheduler`: policy and priority.
    pub policy: (u32, i32),
}

/// A system call under way, while a signal handler makes others.
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

impl TaskState {
    /// A thread that was just made.
    pub fn new(tid: u32, pid: u32) -> TaskState {
        TaskState {
            tid,
            pid,
            doing: Doing::Running,
            woken: false,
            waiting_since: 0,
            progress: 0,
            calls: 0,
            passed_preemption_point: false,
            fault_asked: false,
            stop_asked: false,
            vforked: None,
            stack: 0,
            blocked: 0,
            pending: Pending::default(),
            clear_child_tid: 0,
            robust_list: (0, 0),
            alternate_stack: (0, 2, 0),
            deadline_ns: None,
            remainder: 0,
            restored_mask: None,
            handlers: Vec::new(),
            name: *b"program\0\0\0\0\0\0\0\0\0",
            cpu_ns: 0,
            nice: 0,
            policy: (0, 0),
        }
    }

    /// Sets the system call under way aside.
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

    /// Takes it up again.
    pub fn resume(&mut self, call: Suspended) {
        self.woken = call.woken;
        self.progress = call.progress;
        self.passed_preemption_point = call.passed_preemption_point;
        self.fault_asked = call.fault_asked;
        self.stop_asked = call.stop_asked;
        self.vforked = call.vforked;
        self.deadline_ns = call.deadline_ns;
    }

    /// A thread or process that was made by this one, with what it inherits.
    pub fn child(&self, tid: u32, pid: u32) -> TaskState {
        TaskState {
            blocked: self.blocked,
            name: self.name,
            handlers: self.handlers.clone(),
            nice: self.nice,
            policy: self.policy,
            ..TaskState::new(tid, pid)
        }
    }
}

/// The heap that `brk` moves the end of.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Break {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
}

/// How a process ended.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Death {
    /// With this status, 8 bits, which may be symbolic.
    Exit(Value),
    /// By this signal.
    Signal(i32),
}

/// Where a process is in its life.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Life {
    /// It runs or waits.
    Running,
    /// It has ended, and its parent does not know yet.
    Zombie(Death),
    /// It will be forgotten.
    Gone,
}

/// What a parent can learn of a child that lives.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum News {
    /// This signal stopped it.
    Stopped(i32),
    /// It goes on.
    Continued,
}

/// What the kernel knows of a process, its memory and threads apart.
#[derive(Clone, Debug)]
pub struct ProcessState {
    /// Its number.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// Its session.
    pub session: u32,
    /// The program that it executes.
    pub image: ImageId,
    /// Where it is in its life.
    pub life: Life,
    /// It was made by `vfork`, and its parent waits until it ends or executes a program.
    pub borrows_memory: bool,
    /// Signal that its parent gets at its end.
    pub exit_signal: i32,
    /// User: real, effective, saved.
    pub uid: [u32; 3],
    /// Group: real, effective, saved.
    pub gid: [u32; 3],
    /// Bits that new files do not get.
    pub umask: u32,
    /// Its directory.
    pub cwd: InodeId,
    /// Open files.
    pub descriptors: Descriptors,
    /// What it does with signals, by number less one.
    pub actions: Arc<[SignalAction; SIGNALS]>,
    /// Signals that were sent to it and that none of its threads has taken.
    pub pending: Pending,
    /// Most bytes that it may have in heap blocks and mappings.
    pub max_heap: u64,
    /// The heap that `brk` moves.
    pub program_break: Option<Break>,
    /// What it was started as.
    pub execution: Arc<Execution>,
    /// The file of its program.
    pub executable: Option<InodeId>,
    /// The signal that stopped it, while it is stopped.
    pub stopped: Option<i32>,
    /// What its parent has not learned yet.
    pub news: Option<News>,
    /// It has executed a program since it was made.
    pub has_executed: bool,
    /// Groups besides its own.
    pub groups: Arc<Vec<u32>>,
    /// `setrlimit`.
    pub limits: Arc<Limits>,
    /// `PR_SET_PDEATHSIG`: the signal that it gets when its parent ends.
    pub parent_death_signal: i32,
    /// `PR_SET_CHILD_SUBREAPER`: orphans among its descendants become its children.
    pub is_subreaper: bool,
    /// `PR_SET_NO_NEW_PRIVS`.
    pub no_new_privileges: bool,
    /// `PR_SET_DUMPABLE`.
    pub dumpable: u32,
    /// `PR_SET_KEEPCAPS`.
    pub keeps_capabilities: bool,
    /// Time that its threads have executed.
    pub cpu_ns: u64,
    /// The same of its children that it has waited for.
    pub children_cpu_ns: u64,
    /// Timers of `setitimer` that run: real, virtual, profiling.
    pub alarms: [Option<u32>; 3],
    /// Timers of `timer_create`.
    pub timers: Slots<PosixTimer>,
}

impl ProcessState {
    /// Terms in it, for marking what is alive.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(everett_expr::ExprId)) {
        if let Life::Zombie(Death::Exit(status)) = self.life {
            status.term.into_iter().for_each(&mut *visit);
        }
        let execution = &self.execution;
        for string in execution.args.iter().chain(&execution.env) {
            string.terms().for_each(&mut *visit);
        }
        self.pending.for_each_term(visit);
    }
}
