//! `SO_PEEK_OFF`: a receive with `MSG_PEEK` begins where the last one has ended.

use super::{Domain, Received, ReceivedMessage, message_flag};
use crate::errno::Errno;
use crate::kernel::{Kernel, Stop};
use crate::objects::{OpenObject, event};

impl Kernel<'_, '_> {
    /// Receives bytes or a message, and moves the offset at which the next peek begins, if there is
    /// one.
    pub fn receive(
        &mut self,
        open: OpenObject<'_>,
        wanted: u64,
        flags: u32,
    ) -> Result<Received, Stop> {
        const ELSEWHERE: u32 = message_flag::OUT_OF_BAND | message_flag::ERROR_QUEUE;
        let offset = self.socket_of(open)?.options.peek_offset;
        let Some(offset) = offset.filter(|_| flags & ELSEWHERE == 0) else {
            return self.receive_first(open, wanted, flags);
        };
        let peeks = flags & message_flag::PEEK != 0;
        let received = match peeks {
            true => self.peek_behind(open, offset, wanted, flags)?,
            false => self.receive_first(open, wanted, flags)?,
        };
        let is_whole = !peeks && self.socket_of(open)?.domain == Domain::Unix;
        let len = match is_whole {
            true => received.full_len,
            false => received.bytes.len() as u64,
        };
        let moved = match peeks {
            true => offset.saturating_add(len),
            false => offset.saturating_sub(len),
        };
        self.socket_of(open)?.options.peek_offset = Some(moved);
        Ok(received)
    }

    /// Peeks at what is behind the first `offset` bytes of the queue.
    fn peek_behind(
        &mut self,
        open: OpenObject<'_>,
        offset: u64,
        wanted: u64,
        flags: u32,
    ) -> Result<Received, Stop> {
        let keeps_messages = self.host.keeps_messages(open.object);
        let socket = self.socket_of(open)?;
        if offset == 0 || socket.error.is_some() {
            return self.receive_first(open, wanted, flags);
        }
        if !keeps_messages {
            let bytes = socket.inbox.peek(offset, wanted);
            if bytes.is_empty() && wanted > 0 && !socket.end_received && !socket.read_shut {
                return Err(self.wait_behind(open, flags));
            }
            return Ok(Received::bytes(bytes));
        }
        let mut skipped = offset;
        let is_behind = |message: &&ReceivedMessage| {
            let is_skipped = skipped >= message.len();
            skipped -= if is_skipped { message.len() } else { 0 };
            !is_skipped
        };
        let Some(message) = socket.inbox.iter().find(is_behind).cloned() else {
            return Err(self.wait_behind(open, flags));
        };
        self.host.retain_all(&message.rights);
        let bytes = message.peek(skipped, wanted);
        Ok(Received::of_message(message, bytes))
    }

    /// Waits for more than what was peeked at, which is not modelled.
    fn wait_behind(&mut self, open: OpenObject<'_>, flags: u32) -> Stop {
        if self
            .socket_of(open)
            .is_ok_and(|socket| socket.inbox.is_empty())
        {
            return self.wait_for_socket(open, event::IN, flags, "peek");
        }
        let nonblocking = open
            .description
            .flags
            .has(crate::files::OpenFlags::NONBLOCK);
        if !nonblocking && flags & message_flag::DONT_WAIT == 0 {
            self.refuse("recvfrom", "waiting behind SO_PEEK_OFF");
        }
        Errno::EAGAIN.into()
    }
}
