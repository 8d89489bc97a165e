//! The receive queue of a socket.

use everett_expr::VisitTerms;
use everett_vm::Buffer;
use std::collections::VecDeque;
use triomphe::Arc;

use super::address::Address;
use crate::bytes::join;
use crate::frames::Hops;
use crate::ids::DescriptionId;
use crate::queue::slice;

/// Credentials of a sender (`struct ucred`).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Credentials {
    /// Process id.
    pub pid: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

impl Credentials {
    /// Encodes a `struct ucred`.
    pub fn to_bytes(self) -> Vec<u8> {
        [self.pid, self.uid, self.gid]
            .map(u32::to_le_bytes)
            .concat()
    }
}

/// A message in a receive queue (for streams: the bytes of one send).
#[derive(Clone, Debug)]
pub struct ReceivedMessage {
    /// The bytes.
    pub bytes: Arc<Buffer>,
    /// How many of them are already consumed.
    pub gone: usize,
    /// Source address.
    pub from: Address,
    /// Destination address, for ancillary data.
    pub to: Address,
    /// Open file descriptions passed along (`SCM_RIGHTS`).
    pub rights: Vec<DescriptionId>,
    /// Credentials of the sender (`SCM_CREDENTIALS`).
    pub credentials: Option<Credentials>,
    /// Remaining hops and type of service of its packet, for ancillary data.
    pub hops: Hops,
    /// Wall-clock time at its arrival, if the socket asks for it.
    pub arrived_ns: Option<u64>,
    /// It is the marked byte of a UNIX stream.
    pub is_urgent: bool,
}

impl ReceivedMessage {
    /// Bytes without source address or ancillary data.
    pub fn plain(bytes: Buffer) -> ReceivedMessage {
        ReceivedMessage {
            bytes: Arc::new(bytes),
            gone: 0,
            from: Address::Unnamed,
            to: Address::Unnamed,
            rights: Vec::new(),
            credentials: None,
            hops: Hops::default(),
            arrived_ns: None,
            is_urgent: false,
        }
    }

    /// Bytes that are left.
    pub fn len(&self) -> u64 {
        (self.bytes.len() - self.gone) as u64
    }

    /// A copy of the remaining bytes from `skip` on, at most `wanted`.
    pub fn peek(&self, skip: u64, wanted: u64) -> Buffer {
        let skip = skip.min(self.len());
        let len = wanted.min(self.len() - skip);
        slice(&self.bytes, self.gone + skip as usize, len as usize)
    }
}

/// A receive queue. Cloning is O(1).
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    messages: Option<Arc<VecDeque<ReceivedMessage>>>,
    len: u64,
}

impl Inbox {
    /// Bytes in all messages.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Number of messages.
    pub fn count(&self) -> usize {
        self.messages.as_ref().map_or(0, |messages| messages.len())
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.messages.is_none()
    }

    /// All messages, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &ReceivedMessage> {
        self.messages.iter().flat_map(|messages| messages.iter())
    }

    /// The first message.
    pub fn first(&self) -> Option<&ReceivedMessage> {
        self.messages.as_ref()?.front()
    }

    /// Appends a message.
    pub fn push(&mut self, message: ReceivedMessage) {
        self.len += message.len();
        let messages = self.messages.get_or_insert_with(Default::default);
        Arc::make_mut(messages).push_back(message);
    }

    /// Removes the first message.
    pub fn pop(&mut self) -> Option<ReceivedMessage> {
        let messages = Arc::make_mut(self.messages.as_mut()?);
        let first = messages.pop_front()?;
        self.len -= first.len();
        if messages.is_empty() {
            self.messages = None;
        }
        Some(first)
    }

    /// Makes the marked byte an ordinary one.
    pub fn unmark(&mut self) {
        let at = self.iter().position(|message| message.is_urgent);
        if let (Some(at), Some(messages)) = (at, &mut self.messages) {
            Arc::make_mut(messages)[at].is_urgent = false;
        }
    }

    /// Removes the marked byte. Its message stays as a mark, and replaces an older one right before
    /// it. Returns the descriptors that came with it.
    pub fn take_marked(&mut self) -> Vec<DescriptionId> {
        let Some(at) = self.iter().position(|message| message.is_urgent) else {
            return Vec::new();
        };
        let Some(messages) = &mut self.messages else {
            return Vec::new();
        };
        let messages = Arc::make_mut(messages);
        let marked = &mut messages[at];
        self.len -= marked.len();
        marked.is_urgent = false;
        marked.gone = marked.bytes.len();
        let rights = std::mem::take(&mut marked.rights);
        if at > 0 && messages[at - 1].len() == 0 {
            messages.remove(at - 1);
        }
        rights
    }

    /// Consumes bytes of the first message, and removes it when none are left.
    pub fn consume(&mut self, count: u64) {
        let Some(messages) = &mut self.messages else {
            return;
        };
        let messages = Arc::make_mut(messages);
        if let Some(first) = messages.front_mut() {
            let count = count.min(first.len());
            first.gone += count as usize;
            self.len -= count;
            first.rights = Vec::new();
            if first.len() == 0 {
                messages.pop_front();
            }
        }
        if messages.is_empty() {
            self.messages = None;
        }
    }

    /// A copy of the first bytes, from `skip` on, across messages.
    pub fn peek(&self, mut skip: u64, wanted: u64) -> Buffer {
        let mut parts = Vec::new();
        let mut left = wanted;
        for message in self.iter() {
            let len = message.len();
            if skip >= len {
                skip -= len;
                continue;
            }
            if left == 0 {
                break;
            }
            let part = message.peek(skip, left);
            skip = 0;
            left -= part.len() as u64;
            parts.push(part);
        }
        join(parts)
    }

    /// Removes the first bytes, across messages.
    pub fn take(&mut self, wanted: u64) -> Buffer {
        let bytes = self.peek(0, wanted);
        let mut left = bytes.len() as u64;
        while left > 0 {
            let count = self.first().map_or(left, ReceivedMessage::len).min(left);
            self.consume(count);
            left -= count;
        }
        bytes
    }

    /// Visits all terms, so that the arena can mark live ones.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        for message in self.iter() {
            message.bytes.terms().for_each(|term| visit.term(term));
        }
    }
}

/// A copy of the first bytes of several parts.
pub fn first_bytes(parts: &[Buffer], len: u64) -> Buffer {
    let mut left = len as usize;
    let mut taken = Vec::with_capacity(parts.len());
    for part in parts {
        let count = part.len().min(left);
        left -= count;
        if count > 0 {
            taken.push(if count == part.len() {
                part.clone()
            } else {
                slice(part, 0, count)
            });
        }
    }
    join(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> ReceivedMessage {
        ReceivedMessage::plain(Buffer::with_bytes(text.as_bytes(), text.len()))
    }

    #[test]
    fn bytes_flow_across_messages_and_clones_keep_theirs() {
        let mut inbox = Inbox::default();
        inbox.push(message("hello"));
        inbox.push(message(" world"));
        let clone = inbox.clone();
        assert_eq!(inbox.peek(3, 5).bytes(), b"lo wo");
        assert_eq!(inbox.take(7).bytes(), b"hello w");
        assert_eq!((inbox.len(), inbox.count()), (4, 1));
        assert_eq!(inbox.take(99).bytes(), b"orld");
        assert!(inbox.is_empty());
        assert_eq!((clone.len(), clone.count()), (11, 2));
    }

    #[test]
    fn an_empty_message_is_a_message() {
        let mut inbox = Inbox::default();
        inbox.push(message(""));
        assert!(!inbox.is_empty());
        assert_eq!(inbox.pop().unwrap().len(), 0);
        assert!(inbox.is_empty() && inbox.pop().is_none());
    }
}
