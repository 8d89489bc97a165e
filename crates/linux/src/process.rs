//! Processes and their threads, as the kernel knows them.

use everett_expr::ExprId;
use everett_vm::{Memory, Thread};
use triomphe::Arc;

use crate::files::{Descriptors, InodeId};

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

/// What the kernel knows of a thread.
#[derive(Clone, Debug)]
pub struct TaskState {
    /// Its number on the host.
    pub tid: u32,
    /// Blocked signals, bit `n - 1` for signal `n`.
    pub blocked: u64,
    /// Signals that were sent and wait until they are not blocked.
    pub pending: u64,
    /// `set_tid_address`.
    pub clear_child_tid: u64,
    /// `set_robust_list`: head and length.
    pub robust_list: (u64, u64),
    /// `sigaltstack`: address, flags, size.
    pub alternate_stack: (u64, u32, u64),
    /// The system call under way waits until this time.
    pub deadline_ns: Option<u64>,
    /// Signal handlers that run, innermost last: the blocked signals to restore.
    pub handlers: Vec<u64>,
}

/// A thread of a process.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its frames and registers.
    pub thread: Thread,
    /// What the kernel knows of it.
    pub state: TaskState,
}

impl Task {
    /// A thread that was just made.
    pub fn new(thread: Thread, tid: u32) -> Task {
        let state = TaskState {
            tid,
            blocked: 0,
            pending: 0,
            clear_child_tid: 0,
            robust_list: (0, 0),
            alternate_stack: (0, 2, 0),
            deadline_ns: None,
            handlers: Vec::new(),
        };
        Task { thread, state }
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

/// What the kernel knows of a process, its memory and threads apart.
#[derive(Clone, Debug)]
pub struct ProcessState {
    /// Its number.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bits that new files do not get.
    pub umask: u32,
    /// Its directory.
    pub cwd: InodeId,
    /// Open files.
    pub descriptors: Descriptors,
    /// What it does with signals, by number less one.
    pub actions: Arc<[SignalAction; SIGNALS]>,
    /// The heap that `brk` moves.
    pub program_break: Option<Break>,
    /// The name of the thread (`PR_SET_NAME`).
    pub name: [u8; 16],
}

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its memory.
    pub memory: Memory,
    /// Its threads; the first one is the one that it was started with.
    pub tasks: Vec<Task>,
    /// The rest.
    pub state: ProcessState,
}

impl Process {
    /// All terms, for marking what is alive.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(ExprId)) {
        self.memory.for_each_term(visit);
        for task in &self.tasks {
            task.thread.for_each_term(visit);
        }
    }
}
