//! POSIX message queues: messages with priorities, the most urgent first.

use everett_expr::ExprId;
use everett_vm::Buffer;

use super::{Object, ObjectId, Open, Operations, event};
use crate::host::HostState;

/// A message.
#[derive(Clone, Debug)]
pub struct QueuedMessage {
    /// How urgent it is.
    pub priority: u32,
    /// What it says.
    pub bytes: Buffer,
}

/// Who is told when a message comes to an empty queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    /// The process.
    pub pid: u32,
    /// The signal that it gets; 0 for none.
    pub signal: i32,
}

/// A message queue.
#[derive(Clone, Debug)]
pub struct MessageQueue {
    /// Messages, the next one first.
    pub messages: Vec<QueuedMessage>,
    /// So many at most.
    pub most: u64,
    /// Each of so many bytes at most.
    pub largest: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Open files that refer to it.
    pub open: u32,
    /// It has a name.
    pub named: bool,
    /// Who is told.
    pub registration: Option<Registration>,
}

impl MessageQueue {
    /// Adds a message behind those that are as urgent.
    pub fn push(&mut self, message: QueuedMessage) {
        let at = self
            .messages
            .partition_point(|other| other.priority >= message.priority);
        self.messages.insert(at, message);
    }

    /// There is no room for another message.
    pub fn is_full(&self) -> bool {
        self.messages.len() as u64 >= self.most
    }
}

/// What can be done with it besides sending and receiving.
pub const OPERATIONS: Operations = Operations {
    readiness,
    close,
    for_each_term,
    ..Operations::CLOSED
};

/// The queue of an open file.
pub fn queue(host: &HostState, id: ObjectId) -> Option<&MessageQueue> {
    match host.objects.get(id.0)? {
        Object::MessageQueue(queue) => Some(queue),
        _ => None,
    }
}

/// The same for changing it.
pub fn queue_mut(host: &mut HostState, id: ObjectId) -> Option<&mut MessageQueue> {
    match host.objects.get_mut(id.0)? {
        Object::MessageQueue(queue) => Some(queue),
        _ => None,
    }
}

fn readiness(host: &HostState, open: Open<'_>) -> u16 {
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

fn close(host: &mut HostState, open: Open<'_>) {
    let Some(queue) = queue_mut(host, open.object) else {
        return;
    };
    queue.open -= 1;
    host.forget_queue(open.object);
}

fn for_each_term(object: &Object, visit: &mut dyn FnMut(ExprId)) {
    if let Object::MessageQueue(queue) = object {
        for message in &queue.messages {
            message.bytes.terms().for_each(&mut *visit);
        }
    }
}

impl HostState {
    /// A queue without a name goes with the last who has it open.
    pub(crate) fn forget_queue(&mut self, id: ObjectId) {
        if queue(self, id).is_some_and(|queue| queue.open == 0 && !queue.named) {
            self.objects.remove(id.0);
        }
    }
}
