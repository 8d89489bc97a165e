//! What processes of a host have in common beside files: the shared memory, semaphores and queues of System V, and the
//! names of POSIX message queues.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use everett_expr::ExprId;
use everett_vm::Buffer;

use crate::files::{DescriptionId, InodeId};
use crate::host::HostState;
use crate::objects::ObjectId;

/// Who may do what with it, and under which key it is found.
#[derive(Copy, Clone, Debug)]
pub struct Permissions {
    /// The key; 0 if it has none.
    pub key: u32,
    /// Owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Who made it.
    pub creator_uid: u32,
    /// Their group.
    pub creator_gid: u32,
    /// Permission bits.
    pub mode: u32,
}

/// Shared memory.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Who may use it.
    pub permissions: Permissions,
    /// Bytes.
    pub size: u64,
    /// The file that it is.
    pub inode: InodeId,
    /// The open file that keeps it.
    pub holder: DescriptionId,
    /// When it was attached, detached and changed last, in seconds since 1970.
    pub times: [u64; 3],
    /// Who made it, and who attached or detached it last.
    pub pids: [u32; 2],
    /// It goes with the last who has it attached.
    pub removed: bool,
}

/// A semaphore of a set.
#[derive(Copy, Clone, Debug, Default)]
pub struct Semaphore {
    /// Its value.
    pub value: u16,
    /// Who changed it last.
    pub pid: u32,
}

/// A set of semaphores.
#[derive(Clone, Debug)]
pub struct SemaphoreSet {
    /// Who may use it.
    pub permissions: Permissions,
    /// The semaphores.
    pub semaphores: Vec<Semaphore>,
    /// When it was used and changed last.
    pub times: [u64; 2],
}

/// One of the operations of a `semop`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Which semaphore.
    pub number: u16,
    /// How much is added; 0 waits for zero.
    pub change: i16,
    /// `IPC_NOWAIT` and `SEM_UNDO`.
    pub flags: u16,
}

/// A message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its type, over 0.
    pub kind: i64,
    /// What it says.
    pub bytes: Buffer,
}

/// A queue of messages.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Who may use it.
    pub permissions: Permissions,
    /// Messages, the oldest first.
    pub messages: VecDeque<Message>,
    /// Bytes that it holds at most.
    pub capacity: u64,
    /// When somebody sent, received and changed it last.
    pub times: [u64; 3],
    /// Who sent and received last.
    pub pids: [u32; 2],
}

impl Queue {
    /// Bytes in it.
    pub fn bytes(&self) -> u64 {
        let sizes = self.messages.iter().map(|message| message.bytes.len());
        sizes.sum::<usize>() as u64
    }

    /// A message of so many bytes has room.
    pub fn has_room(&self, len: u64) -> bool {
        self.bytes() + len <= self.capacity && (self.messages.len() as u64) < self.capacity
    }

    /// Place of the message that a receiver wants.
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

/// What a call of System V waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IpcWait {
    /// All of these can be done at once.
    Semaphores(u32, Vec<Operation>),
    /// There is such a message.
    Message {
        /// In this queue.
        queue: u32,
        /// Of this type.
        kind: i64,
        /// Or of any but this one.
        except: bool,
    },
    /// There is room for so many bytes.
    Room(u32, u64),
}

impl IpcWait {
    /// The number of what is waited at.
    pub fn id(&self) -> u32 {
        match self {
            IpcWait::Semaphores(id, _) | IpcWait::Room(id, _) => *id,
            IpcWait::Message { queue, .. } => *queue,
        }
    }
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Ipc {
    /// Shared memory, by number.
    pub segments: BTreeMap<u32, Segment>,
    /// Semaphores, by number.
    pub sets: BTreeMap<u32, SemaphoreSet>,
    /// Queues, by number.
    pub queues: BTreeMap<u32, Queue>,
    /// POSIX message queues, by name.
    pub names: BTreeMap<Vec<u8>, ObjectId>,
    /// Which segment a process has attached where.
    pub attached: BTreeMap<(u32, u64), u32>,
    /// What is added to a semaphore at the end of a process: by process, set and semaphore.
    pub undo: BTreeMap<(u32, u32, u16), i32>,
    /// Threads that waited for something that was removed, and do not know it yet.
    pub bereft: BTreeSet<u32>,
    /// The next number.
    pub next: u32,
}

/// How operations on a set of semaphores end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// All are done: the new values.
    Done(Vec<u16>),
    /// This one must wait.
    Waits(usize),
    /// This one would exceed what a semaphore holds.
    TooLarge,
}

/// The largest value of a semaphore.
pub const SEMAPHORE_MAX: i32 = 32767;

impl SemaphoreSet {
    /// Does operations one after the other, all or none.
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
    /// A number that nothing had before.
    pub fn new_number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// How many have a segment attached.
    pub fn attachments(&self, segment: u32) -> u64 {
        let attached = self.attached.values().filter(|id| **id == segment);
        attached.count() as u64
    }

    /// What a wait is for is there, or will never be.
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
            IpcWait::Room(queue, len) => {
                let queue = self.queues.get(queue);
                queue.is_none_or(|queue| queue.has_room(*len))
            }
        }
    }

    /// A child of `fork` has attached what its parent has.
    pub fn inherit(&mut self, parent: u32, child: u32) {
        let all = self.attached.range((parent, 0)..=(parent, u64::MAX));
        let inherited: Vec<_> = all
            .map(|((_, address), id)| ((child, *address), *id))
            .collect();
        self.attached.extend(inherited);
    }

    /// What a process promised to undo is undone.
    fn undo_all(&mut self, pid: u32) {
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

    /// Terms in messages, for marking what is alive.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(ExprId)) {
        for queue in self.queues.values() {
            for message in &queue.messages {
                message.bytes.terms().for_each(&mut *visit);
            }
        }
    }
}

impl HostState {
    /// Seconds of the wall clock.
    pub(crate) fn wall_seconds(&self) -> u64 {
        self.start_time_ns.saturating_add(self.clock_ns) / 1_000_000_000
    }

    /// A process executes another program: its shared memory is detached.
    pub(crate) fn detach_all(&mut self, pid: u32) {
        let attached = self.ipc.attached.range((pid, 0)..=(pid, u64::MAX));
        let addresses: Vec<_> = attached.map(|(at, id)| (*at, *id)).collect();
        for (at, id) in addresses {
            let now = self.wall_seconds();
            let ipc = triomphe::Arc::make_mut(&mut self.ipc);
            ipc.attached.remove(&at);
            if let Some(segment) = ipc.segments.get_mut(&id) {
                segment.times[1] = now;
                segment.pids[1] = pid;
            }
            self.forget_segment(id);
        }
    }

    /// A process ends.
    pub(crate) fn leave_ipc(&mut self, pid: u32) {
        self.detach_all(pid);
        let range = (pid, 0, 0)..=(pid, u32::MAX, u16::MAX);
        if self.ipc.undo.range(range).next().is_some() {
            triomphe::Arc::make_mut(&mut self.ipc).undo_all(pid);
        }
    }

    /// Shared memory that was removed goes when nobody has it attached any more.
    pub(crate) fn forget_segment(&mut self, id: u32) {
        let is_over = |segment: &Segment| segment.removed && self.ipc.attachments(id) == 0;
        if self.ipc.segments.get(&id).is_some_and(is_over)
            && let Some(segment) = triomphe::Arc::make_mut(&mut self.ipc).segments.remove(&id)
        {
            self.release(segment.holder);
        }
    }
}
