//! Urgent data of UNIX streams (`MSG_OOB`): a byte in a message of its own, of which the last one is
//! marked. Its message stays in the queue as a mark when the byte was read separately. A read stops
//! at the mark; one that starts there drops the byte, unless the program wants it in line.

use super::{Received, ReceivedMessage, Socket, SocketType, message_flag};
use crate::bytes::join;
use crate::errno::Errno;
use crate::host::HostState;
use crate::ids::{DescriptionId, ObjectId};
use crate::kernel::{Kernel, Stop};
use crate::objects::{OpenObject, event};
use crate::owners::URGENT;

impl Socket {
    /// Whether a marked byte of a UNIX stream has arrived and was not read.
    pub(super) fn has_marked_message(&self) -> bool {
        self.inbox.iter().any(|message| message.is_urgent)
    }

    /// Whether the next byte of a UNIX stream is the marked one, or was before it was read.
    pub(super) fn is_at_marked_message(&self) -> bool {
        let mut messages = self.inbox.iter();
        let Some(first) = messages.next() else {
            return false;
        };
        let is_next = messages.next().is_some_and(|next| next.is_urgent);
        let is_read = self.kind == SocketType::Stream && first.len() == 0;
        first.is_urgent || is_read && (is_next || !self.has_marked_message())
    }

    /// Whether a read of a UNIX stream returns bytes.
    pub(super) fn has_plain_bytes(&self) -> bool {
        let counts = |message: &ReceivedMessage| self.is_in_line() || !message.is_urgent;
        let mut messages = self.inbox.iter();
        messages.any(|message| message.len() > 0 && counts(message))
    }

    /// Passes the mark at the start of the queue; `false` if the read ends there, because it has
    /// bytes already. Descriptors that came with a dropped byte are added to `lost`.
    fn pass_mark(&mut self, has_bytes: bool, lost: &mut Vec<DescriptionId>) -> bool {
        if self.inbox.first().is_some_and(|first| first.len() == 0) {
            if has_bytes && !self.has_marked_message() {
                return false;
            }
            self.inbox.pop();
        }
        if !self.inbox.first().is_some_and(|first| first.is_urgent) {
            return true;
        }
        if has_bytes {
            return false;
        }
        self.inbox.unmark();
        if !self.is_in_line() {
            lost.extend(self.inbox.pop().into_iter().flat_map(|byte| byte.rights));
        }
        true
    }

    /// Reads a UNIX stream across messages, but not across different senders (if credentials are
    /// passed), not beyond passed descriptors, and not across the mark.
    pub(super) fn read_stream(&mut self, wanted: u64) -> (Received, Vec<DescriptionId>) {
        let apart = self.options.pass_credentials;
        let mut received = Received::end();
        let (mut parts, mut lost) = (Vec::new(), Vec::new());
        let mut left = wanted;
        while left > 0 && received.rights.is_empty() {
            if !self.pass_mark(!parts.is_empty(), &mut lost) {
                break;
            }
            let Some(first) = self.inbox.first() else {
                break;
            };
            if received.from.is_some() && apart && received.credentials != first.credentials {
                break;
            }
            received.credentials = first.credentials;
            received.from = Some(first.from.clone());
            received.rights = first.rights.clone();
            let part = first.peek(0, left);
            left -= part.len() as u64;
            self.inbox.consume(part.len() as u64);
            parts.push(part);
        }
        received.bytes = join(parts);
        received.full_len = received.bytes.len() as u64;
        (received, lost)
    }
}

impl Kernel<'_, '_> {
    /// Reads the marked byte of a UNIX stream (`MSG_OOB`).
    pub(super) fn receive_marked(
        &mut self,
        open: OpenObject<'_>,
        wanted: u64,
        flags: u32,
    ) -> Result<Received, Stop> {
        let socket = self.socket_of(open)?;
        let marked = socket.inbox.iter().find(|message| message.is_urgent);
        let Some(marked) = marked.filter(|_| !socket.is_in_line()) else {
            return Err(Errno::EINVAL.into());
        };
        let mut received = Received::bytes(marked.peek(0, wanted.min(1)));
        received.flags = message_flag::OUT_OF_BAND;
        received.credentials = marked.credentials;
        if flags & message_flag::PEEK == 0 {
            let lost = socket.inbox.take_marked();
            self.host.release_all(&lost);
        }
        Ok(received)
    }
}

impl HostState {
    /// Whether a read of a UNIX stream returns bytes, its end or an error.
    pub fn has_stream_bytes(&self, id: ObjectId) -> bool {
        self.socket(id).is_none_or(|socket| {
            socket.has_plain_bytes() || socket.read_shut || socket.error.is_some()
        })
    }

    /// Delivers the marked byte of a UNIX stream, and signals the owners of the socket.
    pub(super) fn deliver_marked(&mut self, to: ObjectId, message: ReceivedMessage) {
        if let Some(socket) = self.socket_mut(to) {
            socket.inbox.unmark();
        }
        let is_urgent = true;
        self.deliver(
            to,
            ReceivedMessage {
                is_urgent,
                ..message
            },
        );
        self.tell_owners(to, URGENT);
        self.announce(to, event::PRIORITY);
    }
}
