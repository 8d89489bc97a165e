//! Urgent data of TCP (`MSG_OOB`): one byte of the stream is marked. The program reads it
//! separately, unless it wants it in line (`SO_OOBINLINE`). A read never crosses the mark.

use super::{Received, Socket, level, message_flag};
use crate::errno::Errno;
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Kernel, Stop};
use crate::objects::{OpenObject, event};
use crate::owners::URGENT;

const IN_LINE: u32 = 10;

/// The urgent mark in the stream that a socket receives.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Urgent {
    /// Unread bytes before the marked one.
    pub ahead: u64,
    /// The marked byte was read with `MSG_OOB`.
    is_read: bool,
}

impl Socket {
    pub(super) fn is_in_line(&self) -> bool {
        self.options.other(level::SOCKET, IN_LINE) == Some(1)
    }

    /// Whether the marked byte can be read with `MSG_OOB`.
    pub(super) fn has_urgent_byte(&self) -> bool {
        let is_here = |urgent: Urgent| !urgent.is_read && self.inbox.len() > urgent.ahead;
        self.urgent.is_some_and(is_here)
    }

    /// Whether the next byte is the marked one (`SIOCATMARK`).
    pub fn is_at_mark(&self) -> bool {
        self.urgent.is_some_and(|urgent| urgent.ahead == 0) || self.is_at_marked_message()
    }

    /// Number of bytes that do not count as readable: the marked byte, if it is next.
    pub(super) fn skipped(&self) -> u64 {
        let is_next = self.urgent.is_some_and(|urgent| urgent.ahead == 0);
        u64::from(is_next && !self.is_in_line() && !self.inbox.is_empty())
    }

    /// Number of bytes that a read can return at once, as `FIONREAD` reports it.
    pub(super) fn readable(&self) -> u64 {
        match self.urgent {
            Some(urgent) if !self.is_in_line() => self.inbox.len().min(urgent.ahead),
            _ => self.inbox.len(),
        }
    }

    /// Maximum number of bytes that a read returns: those before the mark. A read at the mark
    /// removes the mark, and also the marked byte unless it is in line.
    pub(super) fn before_mark(&mut self, takes: bool) -> u64 {
        let Some(urgent) = self.urgent else {
            return u64::MAX;
        };
        if urgent.ahead > 0 {
            return urgent.ahead;
        }
        if takes && !self.inbox.is_empty() {
            if !self.is_in_line() {
                self.inbox.take(1);
            }
            self.urgent = None;
        }
        u64::MAX
    }

    /// Moves the mark closer after bytes were read.
    pub(super) fn approach_mark(&mut self, count: u64) {
        if let Some(urgent) = &mut self.urgent {
            urgent.ahead = urgent.ahead.saturating_sub(count);
        }
    }
}

impl Kernel<'_, '_> {
    /// Reads the marked byte (`MSG_OOB`).
    pub(super) fn receive_urgent(
        &mut self,
        open: OpenObject<'_>,
        wanted: u64,
        flags: u32,
    ) -> Result<Received, Stop> {
        let socket = self.socket_of(open)?;
        let urgent = socket.urgent.filter(|urgent| !urgent.is_read);
        let Some(urgent) = urgent.filter(|_| !socket.is_in_line()) else {
            return Err(Errno::EINVAL.into());
        };
        if !socket.has_urgent_byte() {
            return match socket.read_shut {
                true => Ok(Received::end()),
                false => Err(Errno::EAGAIN.into()),
            };
        }
        let byte = socket.inbox.peek(urgent.ahead, wanted.min(1));
        if flags & message_flag::PEEK == 0 {
            socket.urgent = Some(Urgent {
                is_read: true,
                ..urgent
            });
        }
        let mut received = Received::bytes(byte);
        received.full_len = 1;
        received.flags = message_flag::OUT_OF_BAND;
        Ok(received)
    }
}

impl HostState {
    /// Marks the byte that follows `ahead` bytes after those that have arrived, and signals the
    /// owners of the socket.
    pub(super) fn urgent_arrives(&mut self, id: ObjectId, ahead: u64) {
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        // The previous marked byte becomes ordinary, unless it is next and others follow it: then
        // it is dropped.
        let skipped = socket.skipped();
        if skipped > 0 && socket.inbox.len() > skipped {
            socket.inbox.take(skipped);
        }
        socket.urgent = Some(Urgent {
            ahead: socket.inbox.len() + ahead,
            is_read: false,
        });
        self.tell_owners(id, URGENT);
        self.announce(id, event::PRIORITY);
    }
}
