//! POSIX message queues: messages with priorities, highest first.

use everett_expr::VisitTerms;
use everett_vm::Buffer;

use super::{Object, OpenObject, Operations, event};
use crate::errno::Errno;
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Kernel, Stop};

/// A message.
#[derive(Clone, Debug)]
pub struct QueuedMessage {
    /// Its priority.
    pub priority: u32,
    /// Its contents.
    pub bytes: Buffer,
}

/// Registration for notification when a message arrives at an empty queue (`mq_notify`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    /// The process.
    pub pid: u32,
    /// The signal that it gets; 0 for none.
    pub signal: i32,
    /// The value that the signal carries.
    pub value: u64,
    /// The netlink socket that gets these bytes instead of a signal (`SIGEV_THREAD`).
    pub cookie: Option<(ObjectId, Cookie)>,
}

/// What a library sends itself to start a thread. The last byte says why it gets it.
pub type Cookie = [u8; 32];

/// Reasons of notifications by a socket: a message has arrived, or none will be told.
const ARRIVED: u8 = 1;
const REMOVED: u8 = 2;

/// A message queue.
#[derive(Clone, Debug)]
pub struct MessageQueue {
    /// Messages, next one first.
    pub messages: Vec<QueuedMessage>,
    /// Maximum number of messages (`mq_maxmsg`).
    pub most: u64,
    /// Maximum size of a message (`mq_msgsize`).
    pub largest: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owner's user id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// The user that its bytes count for (`RLIMIT_MSGQUEUE`).
    pub creator: u32,
    /// Time of the last message, or of its creation.
    pub time_ns: u64,
    /// Number of open file descriptions.
    pub open: u32,
    /// The queue has a name.
    pub named: bool,
    /// The process to notify.
    pub registration: Option<Registration>,
}

impl MessageQueue {
    /// Inserts a message after those of the same priority.
    pub fn push(&mut self, message: QueuedMessage) {
        let at = self
            .messages
            .partition_point(|other| other.priority >= message.priority);
        self.messages.insert(at, message);
    }

    /// Bytes that a queue with these limits counts for `RLIMIT_MSGQUEUE`.
    pub fn counted_bytes(most: u64, largest: u64) -> u64 {
        /// What the kernel keeps for each message and for each priority.
        const OF_MESSAGE: u64 = 48 + 48;
        most.saturating_mul(largest.saturating_add(OF_MESSAGE))
    }

    /// What a read of its descriptor returns: its bytes, and who is notified.
    fn text(&self) -> String {
        let bytes: usize = self
            .messages
            .iter()
            .map(|message| message.bytes.len())
            .sum();
        let (notice, signal, pid) = match &self.registration {
            // `SIGEV_THREAD`, `SIGEV_SIGNAL`, or `SIGEV_NONE`.
            Some(told) if told.cookie.is_some() => (2, 0, told.pid),
            Some(told) if told.signal > 0 => (0, told.signal, told.pid),
            Some(told) => (1, 0, told.pid),
            None => (0, 0, 0),
        };
        format!("QSIZE:{bytes:<10} NOTIFY:{notice:<5} SIGNO:{signal:<5} NOTIFY_PID:{pid:<6}\n")
    }

    /// Whether there is no space for another message.
    pub fn is_full(&self) -> bool {
        self.messages.len() as u64 >= self.most
    }
}

/// Operations of a message queue, besides sending and receiving.
pub const OPERATIONS: Operations = Operations {
    read,
    readiness,
    close,
    for_each_term,
    ..Operations::CLOSED
};

/// The message queue with this id, if it is one.
pub fn queue(host: &HostState, id: ObjectId) -> Option<&MessageQueue> {
    match host.objects.get(id.0)? {
        Object::MessageQueue(queue) => Some(queue),
        _ => None,
    }
}

/// The message queue with this id, for changing it.
pub fn queue_mut(host: &mut HostState, id: ObjectId) -> Option<&mut MessageQueue> {
    match host.objects.get_mut(id.0)? {
        Object::MessageQueue(queue) => Some(queue),
        _ => None,
    }
}

/// Reads the text about a queue, from the offset of the descriptor on.
fn read(kernel: &mut Kernel<'_, '_>, open: OpenObject<'_>, wanted: u64) -> Result<Buffer, Stop> {
    let queue = queue(kernel.host, open.object).ok_or(Errno::EBADF)?;
    let text = queue.text().into_bytes();
    let from = text.len().min(open.description.offset as usize);
    let len = (text.len() - from).min(usize::try_from(wanted).unwrap_or(usize::MAX));
    if let Some(description) = kernel.host.files.description_mut(open.id) {
        description.offset += len as u64;
    }
    Ok(Buffer::with_bytes(&text[from..from + len], len))
}

fn readiness(host: &HostState, open: OpenObject<'_>) -> u16 {
    let Some(queue) = queue(host, open.object) else {
        return 0;
    };
    let mut events = 0;
    if !queue.messages.is_empty() {
        events |= event::READING;
    }
    if !queue.is_full() {
        events |= event::WRITING;
    }
    events
}

fn close(host: &mut HostState, open: OpenObject<'_>) {
    let Some(queue) = queue_mut(host, open.object) else {
        return;
    };
    queue.open -= 1;
    host.destroy_unused_queue(open.object);
}

fn for_each_term(object: &Object, visit: &mut dyn VisitTerms) {
    if let Object::MessageQueue(queue) = object {
        for message in &queue.messages {
            message.bytes.terms().for_each(|term| visit.term(term));
        }
    }
}

impl HostState {
    /// Destroys an unlinked queue at its last close.
    pub(crate) fn destroy_unused_queue(&mut self, id: ObjectId) {
        if queue(self, id).is_some_and(|queue| queue.open == 0 && !queue.named) {
            self.objects.remove(id.0);
        }
    }
}

impl HostState {
    /// Ends the registration of a process with a queue.
    pub fn end_registration(&mut self, id: ObjectId) {
        let queue = queue_mut(self, id);
        if let Some(told) = queue.and_then(|queue| queue.registration.take()) {
            self.send_cookie(told, REMOVED);
        }
    }

    /// Notifies a process by its socket, if it wants that.
    pub fn notify_by_socket(&mut self, told: Registration) {
        self.send_cookie(told, ARRIVED);
    }

    fn send_cookie(&mut self, told: Registration, reason: u8) {
        if let Some((socket, mut cookie)) = told.cookie {
            cookie[cookie.len() - 1] = reason;
            self.send_back(socket, &cookie);
        }
    }
}
