//! What a thread waits for, and whether it has come. A pure function of the host: nobody is woken, so no
//! waking can be lost; the scheduler looks which threads can go on.

use crate::files::{DescriptionId, InodeId};
use crate::host::{Host, HostState};
use crate::ipc::IpcWait;
use crate::objects::ObjectId;
use crate::process::{Doing, Life, TaskState};

/// A word of memory that threads wait at, told apart from all others of the host.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FutexKey {
    /// An address in one process.
    Private {
        /// The process.
        pid: u32,
        /// The address.
        address: u64,
    },
    /// A place in a file or in anonymous shared memory, which several processes can map.
    Shared {
        /// The file.
        inode: u64,
        /// Where in it.
        offset: u64,
    },
}

/// What ends a wait, besides its deadline and signals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Until {
    /// Nothing.
    Never,
    /// Somebody wakes it at this futex, with one of these bits.
    Futex(FutexKey, u32),
    /// One of these open files has one of its events (`POLLIN` and so on); errors and hang-ups always count.
    Ready(Vec<(DescriptionId, u16)>),
    /// A counter (`eventfd`) has at most this value.
    CountAtMost(ObjectId, u64),
    /// One of these children has something to tell.
    Child(Children),
    /// The child that shares our memory (`vfork`) has ended or executes a program of its own.
    ChildIsOnItsOwn(u32),
    /// One of these signals is pending, blocked or not.
    Signals(u64),
    /// Somebody lets go of a lock on a file: the number of releases so far.
    Released(u64),
    /// A socket takes one more message or connection, or is gone.
    Room(ObjectId),
    /// Somebody opens the other end of a FIFO; this one is opened for reading, or for writing.
    Fifo(InodeId, bool),
    /// Semaphores or messages of System V.
    Ipc(IpcWait),
}

/// Children that `wait` is about, and its options, which say what of them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Children {
    /// Which.
    pub which: Which,
    /// Options of `waitid`.
    pub options: u64,
}

/// Which children `wait` is about.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Which {
    /// All.
    Any,
    /// This one.
    Pid(u32),
    /// Those of a process group.
    Group(u32),
}

/// A system call that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wait {
    /// Until this time of the virtual clock at most.
    pub deadline_ns: Option<u64>,
    /// What ends it.
    pub until: Until,
    /// For what, for people.
    pub what: &'static str,
    /// It goes on after a signal whose action says `SA_RESTART`.
    pub restarts: bool,
}

/// Where the answer to a wait can come from.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hope {
    /// Only from threads of the host that wait too.
    None,
    /// From outside of the host: the network, or whoever sends signals.
    Outside,
    /// From a live standard input.
    Input,
}

impl HostState {
    /// What the task waits for is there, or its time is over.
    pub fn wait_is_over(&self, task: &TaskState, wait: &Wait) -> bool {
        if wait.deadline_ns.is_some_and(|at| at <= self.clock_ns) {
            return true;
        }
        match &wait.until {
            Until::Never => false,
            Until::Futex(..) => task.woken,
            Until::Ready(files) => files.iter().any(|(id, events)| {
                self.readiness_for((task.pid, task.tid), *id) & (events | ALWAYS) != 0
            }),
            Until::CountAtMost(counter, most) => self.counts_at_most(*counter, *most),
            Until::Child(children) => self.has_news_of(task.pid, children),
            Until::ChildIsOnItsOwn(pid) => self
                .process_by_pid(*pid)
                .is_none_or(|child| !child.borrows_memory || !matches!(child.life, Life::Running)),
            Until::Signals(mask) => self.pending_signals(task) & mask != 0,
            Until::Released(count) => self.lock_releases != *count,
            Until::Room(socket) => self.has_room(*socket),
            Until::Fifo(..) => task.woken,
            Until::Ipc(wait) => self.ipc.is_over(wait),
        }
    }

    /// A child has something to tell, or there is none left.
    fn has_news_of(&self, parent: u32, wanted: &Children) -> bool {
        let mut children = self.processes.iter().filter(|child| {
            let is_gone = matches!(child.life, Life::Gone);
            child.parent == parent && !is_gone && wanted.include(child)
        });
        let mut any = false;
        let news = children.any(|child| {
            any = true;
            wanted.have_news_of(child)
        });
        news || !any
    }

    /// The best hope of all threads that wait.
    pub fn hope_of_all(&self) -> Hope {
        let waits = self.tasks.iter().filter_map(|task| match &task.doing {
            Doing::Ended => None,
            // Somebody outside may let it go on.
            _ if self.is_stopped(task) => Some(Hope::Outside),
            Doing::Waiting(wait) => Some(self.hope(wait)),
            Doing::Running => None,
        });
        waits.max().unwrap_or(Hope::None)
    }

    /// Where what a task waits for can come from when all others wait as well.
    pub fn hope(&self, wait: &Wait) -> Hope {
        match &wait.until {
            Until::Ready(files) => {
                let hopes = files.iter().map(|(id, events)| self.hope_of(*id, *events));
                hopes.max().unwrap_or(Hope::None)
            }
            Until::Signals(_) => Hope::Outside,
            // `pause` and its kin: only a signal can end it.
            Until::Never if wait.deadline_ns.is_none() => Hope::Outside,
            _ => Hope::None,
        }
    }
}

impl Host {
    /// Somebody on it waits for what only others could send, and does not merely let time go by.
    pub fn awaits_others(&self) -> bool {
        self.state.hope_of_all() == Hope::Outside
    }
}

/// `POLLERR` and `POLLHUP`, which are told of whether asked for or not.
pub const ALWAYS: u16 = 0x18;
