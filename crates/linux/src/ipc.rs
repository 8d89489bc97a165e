//! Inter-process communication by name: System V shared memory, semaphores and message queues, and
//! the names of POSIX message queues.

use everett_expr::VisitTerms;
use everett_vm::Buffer;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ids::{DescriptionId, InodeId, ObjectId};

/// Key and permissions of an IPC object (`struct ipc_perm`).
#[derive(Copy, Clone, Debug)]
pub struct Permissions {
    /// The key; 0 is `IPC_PRIVATE`.
    pub key: u32,
    /// Owner's user id.
    pub uid: u32,
    /// Owner's group id.
    pub gid: u32,
    /// Creator's user id.
    pub creator_uid: u32,
    /// Creator's group id.
    pub creator_gid: u32,
    /// Permission bits.
    pub mode: u32,
}

/// A shared memory segment.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Key and permissions.
    pub permissions: Permissions,
    /// Size in bytes.
    pub size: u64,
    /// The file that holds its contents.
    pub inode: InodeId,
    /// The open file description that keeps the file alive.
    pub holder: DescriptionId,
    /// Times of the last attach, detach and change, in seconds since 1970.
    pub times: [u64; 3],
    /// Pids of the creator and of the last process that attached or detached it.
    pub pids: [u32; 2],
    /// `IPC_RMID` was called: it is destroyed at the last detach.
    pub removed: bool,
}

/// A semaphore of a set.
#[derive(Copy, Clone, Debug, Default)]
pub struct Semaphore {
    /// Its value.
    pub value: u16,
    /// Pid of the last process that changed it.
    pub pid: u32,
}

/// A semaphore set.
#[derive(Clone, Debug)]
pub struct SemaphoreSet {
    /// Key and permissions.
    pub permissions: Permissions,
    /// The semaphores.
    pub semaphores: Vec<Semaphore>,
    /// Times of the last operation and of the last change.
    pub times: [u64; 2],
}

/// One operation of a `semop` (`struct sembuf`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Index of the semaphore.
    pub number: u16,
    /// The number to add; 0 waits for zero.
    pub change: i16,
    /// `IPC_NOWAIT` and `SEM_UNDO`.
    pub flags: u16,
}

/// A message.
#[derive(Clone, Debug)]
pub struct SysvMessage {
    /// Its type, above 0.
    pub kind: i64,
    /// Its contents.
    pub bytes: Buffer,
}

/// A System V message queue.
#[derive(Clone, Debug)]
pub struct SysvQueue {
    /// Key and permissions.
    pub permissions: Permissions,
    /// Messages, oldest first.
    pub messages: VecDeque<SysvMessage>,
    /// Capacity in bytes.
    pub capacity: u64,
    /// Times of the last send, receive and change.
    pub times: [u64; 3],
    /// Pids of the last sender and receiver.
    pub pids: [u32; 2],
}

impl SysvQueue {
    /// Bytes in the queue.
    pub fn bytes(&self) -> u64 {
        let sizes = self.messages.iter().map(|message| message.bytes.len());
        sizes.sum::<usize>() as u64
    }

    /// Whether a message of this size fits.
    pub fn has_room(&self, len: u64) -> bool {
        self.bytes() + len <= self.capacity && (self.messages.len() as u64) < self.capacity
    }

    /// Index of the message that `msgrcv` selects by type.
    pub fn find(&self, kind: i64, except: bool) -> Option<usize> {
        let mut kinds = self.messages.iter().map(|message| message.kind);
        if kind == 0 {
            return kinds.next().map(|_| 0);
        }
        if kind > 0 {
            return kinds.position(|other| (other == kind) != except);
        }
        let limit = kind.checked_neg().unwrap_or(i64::MAX);
        let few = kinds.enumerate().filter(|(_, other)| *other <= limit);
        few.min_by_key(|(at, other)| (*other, *at))
            .map(|(at, _)| at)
    }
}

/// The condition that a System V call waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IpcWait {
    /// All of these semaphore operations can be done at once.
    Semaphores(u32, Vec<Operation>),
    /// A message of this type.
    Message {
        /// The queue.
        queue: u32,
        /// The message type.
        kind: i64,
        /// `MSG_EXCEPT`: any type but this one.
        except: bool,
    },
    /// Space for this many bytes in a queue.
    QueueSpace(u32, u64),
}

impl IpcWait {
    /// The id of the object that it waits for.
    pub fn id(&self) -> u32 {
        match self {
            IpcWait::Semaphores(id, _) | IpcWait::QueueSpace(id, _) => *id,
            IpcWait::Message { queue, .. } => *queue,
        }
    }
}

/// All IPC objects of a host.
#[derive(Clone, Debug, Default)]
pub struct Ipc {
    /// Shared memory segments, by id.
    pub segments: BTreeMap<u32, Segment>,
    /// Semaphore sets, by id.
    pub sets: BTreeMap<u32, SemaphoreSet>,
    /// Message queues, by id.
    pub queues: BTreeMap<u32, SysvQueue>,
    /// POSIX message queues, by name.
    pub names: BTreeMap<Vec<u8>, ObjectId>,
    /// Attached segments, by pid and address.
    pub attached: BTreeMap<(u32, u64), u32>,
    /// `SEM_UNDO`: the adjustment of a semaphore when a process exits, by pid, set and semaphore.
    pub undo: BTreeMap<(u32, u32, u16), i32>,
    /// Tids of threads that waited for an object that was removed, and that have not returned
    /// `EIDRM` yet.
    pub removed_waiters: BTreeSet<u32>,
    /// The next free id.
    pub next: u32,
}

/// Result of a list of semaphore operations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// All operations succeed, with these new values.
    Done(Vec<u16>),
    /// The operation at this index blocks.
    Waits(usize),
    /// An operation exceeds the largest value of a semaphore.
    TooLarge,
}

/// The largest value of a semaphore.
pub const SEMAPHORE_MAX: i32 = 32767;

impl SemaphoreSet {
    /// Tries a list of operations in order: all or none.
    pub fn attempt(&self, operations: &[Operation]) -> Attempt {
        let mut values: Vec<u16> = self.semaphores.iter().map(|one| one.value).collect();
        for (at, operation) in operations.iter().enumerate() {
            let Some(value) = values.get_mut(usize::from(operation.number)) else {
                return Attempt::TooLarge;
            };
            let new = i32::from(*value) + i32::from(operation.change);
            let must_wait = match operation.change {
                0 => *value != 0,
                _ => new < 0,
            };
            if must_wait {
                return Attempt::Waits(at);
            }
            if new > SEMAPHORE_MAX {
                return Attempt::TooLarge;
            }
            *value = new as u16;
        }
        Attempt::Done(values)
    }
}

impl Ipc {
    /// Allocates an id that was never used before.
    pub fn new_number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// How many times a segment is attached.
    pub fn attachments(&self, segment: u32) -> u64 {
        let attached = self.attached.values().filter(|id| **id == segment);
        attached.count() as u64
    }

    /// Whether a wait is over: its condition holds, or its object is gone.
    pub fn is_over(&self, wait: &IpcWait) -> bool {
        match wait {
            IpcWait::Semaphores(set, operations) => self
                .sets
                .get(set)
                .is_none_or(|set| !matches!(set.attempt(operations), Attempt::Waits(_))),
            IpcWait::Message {
                queue,
                kind,
                except,
            } => {
                let queue = self.queues.get(queue);
                queue.is_none_or(|queue| queue.find(*kind, *except).is_some())
            }
            IpcWait::QueueSpace(queue, len) => {
                let queue = self.queues.get(queue);
                queue.is_none_or(|queue| queue.has_room(*len))
            }
        }
    }

    /// A child of `fork` inherits its parent's attached segments.
    pub fn inherit(&mut self, parent: u32, child: u32) {
        let all = self.attached.range((parent, 0)..=(parent, u64::MAX));
        let inherited: Vec<_> = all
            .map(|((_, address), id)| ((child, *address), *id))
            .collect();
        self.attached.extend(inherited);
    }

    /// Applies the `SEM_UNDO` adjustments of an exiting process.
    pub(crate) fn undo_all(&mut self, pid: u32) {
        let range = (pid, 0, 0)..=(pid, u32::MAX, u16::MAX);
        let undo: Vec<_> = self.undo.range(range).map(|(at, by)| (*at, *by)).collect();
        for (key, by) in undo {
            self.undo.remove(&key);
            let set = self.sets.get_mut(&key.1);
            if let Some(one) = set.and_then(|set| set.semaphores.get_mut(usize::from(key.2))) {
                let new = (i32::from(one.value) + by).clamp(0, SEMAPHORE_MAX);
                one.value = new as u16;
                one.pid = pid;
            }
        }
    }

    /// Visits all terms in messages, so that the arena can mark live ones.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        for queue in self.queues.values() {
            for message in &queue.messages {
                message.bytes.terms().for_each(|term| visit.term(term));
            }
        }
    }
}
