//! The conditions that blocked tasks wait for. Whether a task can continue is a pure function of
//! the kernel's tables (see `readiness`): the scheduler evaluates the conditions of all blocked
//! tasks, so no wake-up can be lost.

use crate::ids::{DescriptionId, InodeId, ObjectId};
use crate::ipc::IpcWait;
use crate::timers::TimeBase;

/// Identity of a futex word on a host.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FutexKey {
    /// An address in the private memory of one process.
    Private {
        /// The process.
        pid: u32,
        /// The address.
        address: u64,
    },
    /// An offset in a file or in anonymous shared memory, which several processes can map.
    Shared {
        /// The file.
        inode: u64,
        /// The offset in it.
        offset: u64,
    },
}

/// The condition that ends a wait, besides its deadline and signals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WaitCondition {
    /// No condition: only the deadline or a signal ends the wait.
    Never,
    /// The deadline has passed on this clock of processor time, on which it is.
    ProcessorTime(TimeBase),
    /// A wake-up at this futex with one of these bits.
    Futex(FutexKey, u32),
    /// One of these open files has one of its poll events (`POLLIN` and so on).
    /// Errors and hang-ups always count.
    Ready(Vec<(DescriptionId, u16)>),
    /// The counter of an `eventfd` is at most this value.
    CountAtMost(ObjectId, u64),
    /// One of these children has changed its state.
    Child(ChildSelector),
    /// The child of `vfork` has exited or called `execve`.
    VforkDone(u32),
    /// One of these signals is pending, blocked or not.
    Signals(u64),
    /// The signal that the call has sent to its own thread is no longer pending. Until then, it
    /// interrupts the wait.
    SignalTaken,
    /// A file lock is released; the value is the number of releases at the start of the wait.
    LockReleased(u64),
    /// A socket has space for one more message or connection, or is closed.
    SocketSpace(ObjectId),
    /// A UNIX stream has bytes besides a marked one, or its end.
    StreamBytes(ObjectId),
    /// The other end of a FIFO is opened; the flag tells whether this end is opened for reading.
    Fifo(InodeId, bool),
    /// System V semaphores or messages.
    Ipc(IpcWait),
}

/// The children that a `wait` call selects, and its options, which select the state changes that
/// count.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ChildSelector {
    /// The selected children.
    pub which: ChildFilter,
    /// Options of `waitid`.
    pub options: u64,
}

/// Which children a `wait` call selects.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ChildFilter {
    /// All children.
    Any,
    /// The child with this pid.
    Pid(u32),
    /// The children in this process group.
    Group(u32),
}

/// The wait of a blocked system call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wait {
    /// Deadline on its clock.
    pub deadline_ns: Option<u64>,
    /// The condition that ends it.
    pub condition: WaitCondition,
    /// A description for messages.
    pub what: &'static str,
    /// It restarts after a signal whose action has `SA_RESTART`.
    pub restarts: bool,
}

impl Wait {
    /// The clock of the deadline.
    pub fn clock(&self) -> TimeBase {
        match self.condition {
            WaitCondition::ProcessorTime(base) => base,
            _ => TimeBase::Host,
        }
    }
}

/// The source of the event that ends a wait once all threads of the host are blocked, least
/// promising first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WakeSource {
    /// Only from threads of the host, which are blocked too: a deadlock.
    None,
    /// From outside the host: the network, or a sender of signals.
    External,
    /// From a live standard input.
    Stdin,
}

/// `POLLERR` and `POLLHUP`, which `poll` reports whether requested or not.
pub const ALWAYS: u16 = 0x18;
