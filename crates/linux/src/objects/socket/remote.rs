//! TCP between hosts. A connection is a socket on each host; they exchange segments. The network
//! delivers segments in order, so there are no acknowledgements or retransmissions. Flow control is
//! modelled: a sender waits when the window of the other end is full.

use everett_vm::Buffer;
use std::net::SocketAddr;

use super::inbox::Inbox;
use super::inbox::first_bytes;
use super::{Address, ConnectReport, ReceivedMessage, Socket, SocketState, message_flag};
use crate::errno::Errno;
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Kernel, Stop};
use crate::objects::{Object, OpenObject, event};
use crate::packets::{Packet, PacketKind};

/// The local end of a connection to another host.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// Send window: bytes that the other end can still receive.
    pub window: u64,
    /// Send queue: bytes that wait for the window to open.
    pub unsent: Inbox,
    /// Bytes consumed here that no window update has announced yet.
    unannounced: u64,
}

impl Socket {
    /// Free space in the send buffer.
    pub(super) fn send_space(&self) -> u64 {
        let unsent = self.link.as_ref().map_or(0, |link| link.unsent.len());
        u64::from(self.options.send_buffer).saturating_sub(unsent)
    }

    fn receive_window(&self) -> u64 {
        u64::from(self.options.receive_buffer)
    }
}

impl Kernel<'_, '_> {
    /// Sends bytes to another host, as many as fit into the send buffer.
    pub(super) fn send_remote(
        &mut self,
        open: OpenObject<'_>,
        parts: &[Buffer],
        wanted: u64,
        flags: u32,
    ) -> Result<u64, Stop> {
        let socket = self.socket_of(open)?;
        let room = socket.send_space();
        if room < wanted {
            socket.wants_space = true;
        }
        if room == 0 {
            return Err(self.wait_for_socket(open, event::OUT, flags, "send to a TCP socket"));
        }
        let bytes = first_bytes(parts, wanted.min(room));
        let sent = bytes.len() as u64;
        let mut ahead = sent - 1;
        if let Some(link) = &mut socket.link {
            ahead += link.unsent.len();
            link.unsent.push(ReceivedMessage::plain(bytes));
        }
        if flags & message_flag::OUT_OF_BAND != 0 && sent == wanted {
            self.host
                .send_segment(open.object, PacketKind::Urgent { ahead });
        }
        self.host.push_bytes(open.object, false);
        Ok(sent)
    }
}

impl HostState {
    fn ends(&self, id: ObjectId) -> Option<(SocketAddr, SocketAddr)> {
        let socket = self.socket(id).filter(|socket| socket.link.is_some())?;
        socket.local.internet().zip(socket.remote.internet())
    }

    fn send_segment(&mut self, id: ObjectId, kind: PacketKind) {
        if let Some((local, remote)) = self.ends(id) {
            self.transmit(local, remote, kind);
        }
    }

    /// Sends a connection request to another host.
    pub(super) fn request_connection(&mut self, id: ObjectId) {
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        socket.link = Some(Box::default());
        let window = socket.receive_window();
        self.send_segment(id, PacketKind::Syn { window });
    }

    /// Sends queued bytes, as the window permits, or all of them.
    fn push_bytes(&mut self, id: ObjectId, all: bool) {
        let Some(link) = self.socket_mut(id).and_then(|socket| socket.link.as_mut()) else {
            return;
        };
        let count = if all {
            link.unsent.len()
        } else {
            link.unsent.len().min(link.window)
        };
        if count == 0 {
            return;
        }
        link.window = link.window.saturating_sub(count);
        let bytes = link.unsent.take(count);
        self.send_segment(id, PacketKind::Data(bytes));
    }

    /// Records that the program has consumed bytes; sends a window update once it is large enough.
    pub(super) fn update_window(&mut self, id: ObjectId, count: u64) {
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        let worth = socket.receive_window() / 2;
        let Some(link) = &mut socket.link else { return };
        link.unannounced += count;
        if link.unannounced >= worth {
            let bytes = std::mem::take(&mut link.unannounced);
            self.send_segment(id, PacketKind::WindowUpdate { bytes });
        }
    }

    /// Sends the end of the stream after the queued bytes.
    pub(super) fn end_remote(&mut self, id: ObjectId) {
        self.push_bytes(id, true);
        self.send_segment(id, PacketKind::Fin);
    }

    /// Resets a connection to another host.
    pub(super) fn reset_remote(&mut self, id: ObjectId) {
        self.send_segment(id, PacketKind::Reset);
    }

    /// Fails a connection to another host.
    pub(crate) fn refuse_remote(&mut self, id: ObjectId, error: Errno) {
        let is_declaring = |socket: &Socket| matches!(socket.state, SocketState::Connecting { .. });
        if self.socket(id).is_some_and(is_declaring) {
            self.fail_connection(id, error);
        }
    }

    /// The local socket of a connection, by its addresses.
    fn connection_between(&self, local: SocketAddr, remote: SocketAddr) -> Option<ObjectId> {
        let mut sockets = self.sockets();
        let found = sockets.find(|(_, socket)| {
            socket.link.is_some()
                && socket.local.internet() == Some(local)
                && socket.remote.internet() == Some(remote)
                && matches!(
                    socket.state,
                    SocketState::Connected { .. } | SocketState::Connecting { .. }
                )
        });
        found.map(|(id, _)| id)
    }

    /// Receives a TCP segment from another host.
    pub(crate) fn segment_arrives(&mut self, packet: &Packet) {
        let (local, remote) = (packet.to, packet.from);
        if let PacketKind::Syn { window } = packet.kind {
            return self.syn_arrives(packet, window);
        }
        let Some(id) = self.connection_between(local, remote) else {
            let wants_answer =
                matches!(packet.kind, PacketKind::Data(_) | PacketKind::SynAck { .. });
            if wants_answer {
                self.transmit(local, remote, PacketKind::Reset);
            }
            return;
        };
        match &packet.kind {
            PacketKind::SynAck { window } => self.connection_made(id, *window),
            PacketKind::Refused => self.refuse_remote(id, Errno::ECONNREFUSED),
            PacketKind::Data(bytes) => self.bytes_arrive(id, bytes),
            PacketKind::WindowUpdate { bytes } => self.window_opens(id, *bytes),
            PacketKind::Urgent { ahead } => self.urgent_arrives(id, *ahead),
            PacketKind::Fin => self.end_arrives(id),
            PacketKind::Reset => {
                let connecting =
                    |socket: &Socket| matches!(socket.state, SocketState::Connecting { .. });
                if self.socket(id).is_some_and(connecting) {
                    self.refuse_remote(id, Errno::ECONNREFUSED);
                } else {
                    self.reset(id);
                }
            }
            PacketKind::Syn { .. }
            | PacketKind::Established
            | PacketKind::Datagram(_)
            | PacketKind::Frame(_)
            | PacketKind::Unreachable { .. } => {}
        }
    }

    fn syn_arrives(&mut self, packet: &Packet, window: u64) {
        let (local, remote) = (packet.to, packet.from);
        let listener = self
            .listener_at(local)
            .filter(|_| self.network.is_own(local.ip()));
        let Some(listener) = listener else {
            return self.transmit(local, remote, PacketKind::Refused);
        };
        let Some(server) = self.socket(listener) else {
            return;
        };
        if !server.has_backlog_room() {
            // As if the request had been lost: it is retried later.
            return self.wire.schedule_retry(self.clock_ns, packet.clone());
        }
        let mut accepted = Socket::new(server.domain, server.kind, server.protocol, server.owner);
        accepted.options = server.options.clone();
        accepted.local = Address::Internet(local);
        accepted.remote = Address::Internet(remote);
        accepted.connect_report = ConnectReport::Connected;
        accepted.state = SocketState::Connected { peer: None };
        accepted.link = Some(Box::new(Link {
            window,
            ..Link::default()
        }));
        let own_window = accepted.receive_window();
        let accepted = ObjectId(self.objects.insert(Object::Socket(Box::new(accepted))));
        if let Some(server) = self.socket_mut(listener)
            && let SocketState::Listening { pending, .. } = &mut server.state
        {
            pending.push(accepted);
        }
        self.send_segment(accepted, PacketKind::SynAck { window: own_window });
        self.announce(listener, event::READING);
    }

    fn connection_made(&mut self, id: ObjectId, window: u64) {
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        socket.state = SocketState::Connected { peer: None };
        if let Some(link) = &mut socket.link {
            link.window = window;
        }
        self.announce(id, event::ALL);
    }

    fn bytes_arrive(&mut self, id: ObjectId, bytes: &Buffer) {
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        if socket.read_shut && !socket.end_received {
            // The receiver has shut down reading: the bytes are discarded.
            return self.update_window(id, bytes.len() as u64);
        }
        socket.inbox.push(ReceivedMessage::plain(bytes.clone()));
        self.announce(id, event::READING);
    }

    fn window_opens(&mut self, id: ObjectId, bytes: u64) {
        if let Some(link) = self.socket_mut(id).and_then(|socket| socket.link.as_mut()) {
            link.window += bytes;
        }
        self.push_bytes(id, false);
        let Some(socket) = self.socket_mut(id).filter(|socket| socket.wants_space) else {
            return;
        };
        if socket.send_space() * 3 >= u64::from(socket.options.send_buffer) {
            socket.wants_space = false;
            self.announce(id, event::WRITING);
        }
    }

    fn end_arrives(&mut self, id: ObjectId) {
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        socket.end_received = true;
        socket.read_shut = true;
        if socket.end_sent {
            socket.state = SocketState::Idle;
        }
        self.announce(id, event::ALL);
    }
}
