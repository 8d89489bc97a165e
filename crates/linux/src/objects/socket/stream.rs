//! TCP connections between two sockets of the same host. Sent bytes arrive at once;
//! acknowledgements and retransmissions of a real network are not observable.

use everett_vm::Buffer;
use std::net::SocketAddr;

use super::inbox::first_bytes;
use super::network::overlap;
use super::{
    Address, ConnectReport, Destination, Received, ReceivedMessage, Socket, SocketState,
    message_flag,
};
use crate::errno::Errno;
use crate::files::OpenFlags;
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Kernel, Stop};
use crate::objects::{Object, OpenObject, event};
use crate::packets::PacketKind;
use crate::wait::WaitCondition;

/// Timeout of `connect`: six retries, with exponential backoff.
const CONNECT_TIMEOUT_NS: u64 = 127_000_000_000;

impl Kernel<'_, '_> {
    /// `connect` of TCP. It may be called again while a connection is being established.
    pub fn connect_tcp(&mut self, open: OpenObject<'_>, to: SocketAddr) -> Result<(), Stop> {
        let nonblocking = open.description.flags.has(OpenFlags::NONBLOCK);
        let socket = self.socket_of(open)?;
        match (socket.connect_report, &socket.state) {
            (ConnectReport::Connected, _) => return Err(Errno::EISCONN.into()),
            (ConnectReport::Underway, _) => {}
            (ConnectReport::Nothing, SocketState::Idle) => {
                self.host.begin_connection(open.object, to)?;
                if nonblocking {
                    return Err(Errno::EINPROGRESS.into());
                }
            }
            (ConnectReport::Nothing, _) => return Err(Errno::EISCONN.into()),
        }
        let socket = self.socket_of(open)?;
        match socket.state {
            SocketState::Connecting { .. } if nonblocking => Err(Errno::EALREADY.into()),
            SocketState::Connecting { .. } => self.wait_for_connection(open),
            SocketState::Idle => {
                let error = socket.take_error().unwrap_or(Errno::ECONNABORTED);
                self.host.disconnect(open.object);
                Err(error.into())
            }
            _ => {
                socket.connect_report = ConnectReport::Connected;
                Ok(())
            }
        }
    }

    fn wait_for_connection(&mut self, open: OpenObject<'_>) -> Result<(), Stop> {
        let timeout = self.socket_of(open)?.options.send_timeout_ns;
        let limit = timeout.unwrap_or(CONNECT_TIMEOUT_NS);
        let deadline = self.host.clock_ns.saturating_add(limit);
        let condition = WaitCondition::Ready(vec![(open.id, event::OUT)]);
        self.wait(condition, Some(deadline), "connect")?;
        if timeout.is_some() {
            return Err(Errno::EINPROGRESS.into());
        }
        self.host.disconnect(open.object);
        Err(Errno::ETIMEDOUT.into())
    }

    /// Receives bytes of a stream.
    pub(super) fn receive_tcp(
        &mut self,
        open: OpenObject<'_>,
        wanted: u64,
        flags: u32,
    ) -> Result<Received, Stop> {
        let socket = self.socket_of(open)?;
        if socket.is_listening() {
            return Err(Errno::ENOTCONN.into());
        }
        if flags & message_flag::OUT_OF_BAND != 0 {
            return self.receive_urgent(open, wanted, flags);
        }
        let enough = u64::from(socket.options.receive_low_water).min(wanted.max(1));
        let is_last = socket.read_shut || socket.end_received || socket.error.is_some();
        let is_last = is_last || socket.state == SocketState::Idle;
        let (before, takes) = (socket.inbox.len(), flags & message_flag::PEEK == 0);
        // A read at the mark drops the marked byte, even if there are no others.
        let most = wanted.min(socket.before_mark(takes && wanted > 0));
        let here = socket.inbox.len() - socket.skipped();
        if here >= enough || (is_last && here > 0) {
            return self.take_from_stream(open, before, most, takes);
        }
        if here > 0 {
            // A wait that is over returns fewer bytes than `SO_RCVLOWAT`, if there are any.
            let what = "receive from a TCP socket";
            return match self.wait_for_socket(open, event::IN, flags, what) {
                Stop::Errno(Errno::EAGAIN) => self.take_from_stream(open, before, most, takes),
                other => Err(other),
            };
        }
        if socket.end_received {
            return Ok(Received::end());
        }
        if let Some(error) = socket.take_error() {
            return Err(error.into());
        }
        if socket.read_shut || wanted == 0 {
            return Ok(Received::end());
        }
        if socket.state == SocketState::Idle {
            return Err(Errno::ENOTCONN.into());
        }
        Err(self.wait_for_socket(open, event::IN, flags, "receive from a TCP socket"))
    }

    /// Consumes or peeks at bytes that have been received; `before` bytes were there before the
    /// call.
    fn take_from_stream(
        &mut self,
        open: OpenObject<'_>,
        before: u64,
        most: u64,
        takes: bool,
    ) -> Result<Received, Stop> {
        let socket = self.socket_of(open)?;
        if !takes {
            return Ok(Received::bytes(socket.inbox.peek(socket.skipped(), most)));
        }
        let bytes = socket.inbox.take(most);
        socket.approach_mark(bytes.len() as u64);
        let gone = before - socket.inbox.len();
        let (peer, is_remote) = (socket.peer(), socket.link.is_some());
        if is_remote {
            self.host.update_window(open.object, gone);
        } else if let Some(peer) = peer {
            self.host.announce_space(peer);
        }
        Ok(Received::bytes(bytes))
    }

    /// Sends as many bytes as fit.
    pub(super) fn send_tcp(
        &mut self,
        open: OpenObject<'_>,
        parts: &[Buffer],
        flags: u32,
    ) -> Result<u64, Stop> {
        let socket = self.socket_of(open)?;
        if let SocketState::Connecting { .. } = socket.state {
            return Err(self.wait_for_socket(open, event::OUT, flags, "send before a connection"));
        }
        if let Some(error) = socket.take_error().filter(|error| *error != Errno::EPIPE) {
            return Err(error.into());
        }
        let SocketState::Connected { peer } = socket.state else {
            return Err(self.broken_pipe(flags));
        };
        if socket.write_shut {
            return Err(self.broken_pipe(flags));
        }
        let wanted: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if wanted == 0 {
            return Ok(0);
        }
        if socket.link.is_some() {
            return self.send_remote(open, parts, wanted, flags);
        }
        let Some(peer) = peer else {
            // Bytes sent to a closed socket are answered with a reset.
            self.host.reset_by_closed_peer(open.object);
            return Ok(wanted);
        };
        let room = self.host.send_room(open.object);
        if room < wanted {
            self.socket_of(open)?.wants_space = true;
        }
        if room == 0 {
            return Err(self.wait_for_socket(open, event::OUT, flags, "send to a TCP socket"));
        }
        let bytes = first_bytes(parts, wanted.min(room));
        let sent = bytes.len() as u64;
        if flags & message_flag::OUT_OF_BAND != 0 && sent == wanted {
            self.host.urgent_arrives(peer, sent - 1);
        }
        self.host.deliver(peer, ReceivedMessage::plain(bytes));
        Ok(sent)
    }

    /// The oldest connection in the accept queue.
    pub fn pending_connection(&mut self, open: OpenObject<'_>) -> Result<ObjectId, Stop> {
        let socket = self.socket_of(open)?;
        let SocketState::Listening { pending, .. } = &socket.state else {
            return Err(Errno::EINVAL.into());
        };
        match pending.first() {
            Some(first) => Ok(*first),
            None if socket.read_shut => Err(Errno::EINVAL.into()),
            None => Err(self.wait_for_socket(open, event::IN, 0, "accept")),
        }
    }
}

impl HostState {
    /// Starts a connection. When this returns, the connection is established, waits for space in
    /// the accept queue, or was refused.
    fn begin_connection(&mut self, id: ObjectId, to: SocketAddr) -> Result<(), Errno> {
        let (to, from, is_remote) = match self
            .route_of(self.socket(id).ok_or(Errno::ENOTSOCK)?, to.ip())
        {
            Destination::Local { to: ip, from } => (SocketAddr::new(ip, to.port()), from, false),
            Destination::Remote { from } => (to, from, true),
            Destination::Nowhere(errno) => return Err(errno),
        };
        if to.is_ipv4() && self.socket(id).is_some_and(|own| own.options.only_v6) {
            return Err(Errno::ENETUNREACH);
        }
        let local = self.address_for_connection(id, from)?;
        if self.has_connection(local, to) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        self.network.waiting += 1;
        let since = self.network.waiting;
        let socket = self.socket_mut(id).ok_or(Errno::ENOTSOCK)?;
        socket.local = Address::Internet(local);
        socket.remote = Address::Internet(to);
        socket.error = None;
        socket.connect_report = ConnectReport::Underway;
        socket.state = SocketState::Connecting { since };
        if is_remote {
            self.request_connection(id);
        } else {
            self.try_connection(id, to);
        }
        Ok(())
    }

    /// Continues a connection attempt: it is established, refused, or still waits for space in the
    /// accept queue.
    fn try_connection(&mut self, id: ObjectId, to: SocketAddr) {
        match self.listener_at(to) {
            Some(listener) if self.has_room(listener) => self.establish(id, listener),
            Some(_) => {}
            None => {
                self.log_sent(id, PacketKind::Refused);
                self.fail_connection(id, Errno::ECONNREFUSED);
            }
        }
    }

    /// Fails a connection attempt.
    pub(super) fn fail_connection(&mut self, id: ObjectId, error: Errno) {
        if let Some(socket) = self.socket_mut(id) {
            socket.error = Some(error);
            socket.state = SocketState::Idle;
            socket.read_shut = true;
            socket.write_shut = true;
            self.announce(id, event::ALL);
        }
    }

    /// Establishes a connection from this socket to a listener.
    pub(super) fn establish(&mut self, id: ObjectId, listener: ObjectId) {
        let (Some(client), Some(server)) = (self.socket(id), self.socket(listener)) else {
            return;
        };
        let mut accepted = Socket::new(server.domain, server.kind, server.protocol, server.owner);
        accepted.options = server.options.clone();
        accepted.local = if client.domain.is_internet() {
            client.remote.clone()
        } else {
            server.local.clone()
        };
        accepted.remote = client.local.clone();
        accepted.connect_report = ConnectReport::Connected;
        accepted.peer_owner = Some(client.owner);
        accepted.state = SocketState::Connected { peer: Some(id) };
        let server_owner = server.owner;
        let accepted = ObjectId(self.objects.insert(Object::Socket(Box::new(accepted))));
        if let Some(client) = self.socket_mut(id) {
            client.state = SocketState::Connected {
                peer: Some(accepted),
            };
            client.peer_owner = Some(server_owner);
        }
        if let Some(server) = self.socket_mut(listener)
            && let SocketState::Listening { pending, .. } = &mut server.state
        {
            pending.push(accepted);
        }
        self.log_sent(id, PacketKind::Established);
        self.announce(id, event::ALL);
        self.announce(listener, event::READING);
    }

    /// Removes the oldest connection from the accept queue.
    pub fn take_pending(&mut self, listener: ObjectId) {
        let Some(socket) = self.socket_mut(listener) else {
            return;
        };
        let port = socket.local.internet().map(|local| local.port());
        if let SocketState::Listening { pending, .. } = &mut socket.state
            && !pending.is_empty()
        {
            pending.remove(0);
        }
        if let Some(port) = port {
            self.retry_connections(port);
        }
    }

    /// Aborts the connection that `accept` would have returned: it is gone at both ends.
    pub fn abort_pending(&mut self, listener: ObjectId) {
        let Some(socket) = self.socket(listener) else {
            return;
        };
        let is_tcp = socket.is_tcp();
        let SocketState::Listening { pending, .. } = &socket.state else {
            return;
        };
        let Some(first) = pending.first().copied() else {
            return;
        };
        self.take_pending(listener);
        match is_tcp {
            true => self.abort_connection(first),
            false => super::unix::close_unix(self, first, false),
        }
    }

    /// Whether another socket already listens at this address.
    pub fn has_listener_at(&self, who: ObjectId, local: SocketAddr) -> bool {
        let Some(own) = self.socket(who) else {
            return false;
        };
        let (shares, only_v6) = (own.options.reuse_port, own.options.only_v6);
        self.sockets().any(|(id, other)| {
            let is_other = id != who && other.is_tcp() && other.is_listening();
            is_other
                && !(shares && other.options.reuse_port)
                && other.local.internet().is_some_and(|address| {
                    let (ours, theirs) = ((local.ip(), only_v6), other.options.only_v6);
                    address.port() == local.port() && overlap(ours.0, ours.1, address.ip(), theirs)
                })
        })
    }

    /// `connect` with `AF_UNSPEC`: resets the connection.
    pub fn disconnect_by_request(&mut self, id: ObjectId) {
        let Some(socket) = self.socket(id) else {
            return;
        };
        let is_broken_off = socket.is_tcp() && socket.is_connected();
        match socket.state {
            SocketState::Listening { .. } => self.stop_listening(id),
            SocketState::Connected { .. } if socket.link.is_some() => self.reset_remote(id),
            SocketState::Connected { peer: Some(peer) } if is_broken_off => self.reset(peer),
            SocketState::Connected { peer: None } if is_broken_off => self.reset_by_closed_peer(id),
            _ => {}
        }
        self.disconnect(id);
        if is_broken_off && let Some(socket) = self.socket_mut(id) {
            socket.error = Some(Errno::ECONNRESET);
        }
    }

    /// Retries waiting connection attempts to a port after its accept queue has
    /// changed or its listener was closed.
    pub fn retry_connections(&mut self, port: u16) {
        loop {
            let waiting = self.sockets().filter_map(|(id, socket)| {
                let SocketState::Connecting { since } = socket.state else {
                    return None;
                };
                if socket.link.is_some() {
                    return None;
                }
                let to = socket.remote.internet()?;
                let listener = self.listener_at(to);
                let decided = listener.is_none_or(|listener| self.has_room(listener));
                (to.port() == port && decided).then_some((since, id, to))
            });
            let Some((_, id, to)) = waiting.min_by_key(|waiting| waiting.0) else {
                return;
            };
            self.try_connection(id, to);
        }
    }

    /// Bytes that a connected socket can send before it blocks: the free space of both buffers.
    fn send_room(&self, id: ObjectId) -> u64 {
        let socket = self.socket(id);
        let peer = socket
            .and_then(Socket::peer)
            .and_then(|peer| self.socket(peer));
        let (Some(socket), Some(peer)) = (socket, peer) else {
            return 0;
        };
        send_capacity(socket, peer).saturating_sub(peer.inbox.len())
    }

    /// Bytes sent that do not fit into the receive buffer of the peer yet.
    pub fn bytes_in_flight(&self, id: ObjectId) -> u64 {
        if let Some(link) = self.socket(id).and_then(|socket| socket.link.as_ref()) {
            return link.unsent.len();
        }
        let peer = self.socket(id).and_then(Socket::peer);
        peer.and_then(|peer| self.socket(peer)).map_or(0, |peer| {
            let room = u64::from(peer.options.receive_buffer);
            peer.inbox.len().saturating_sub(room)
        })
    }

    /// Announces free space to a sender after bytes were received.
    fn announce_space(&mut self, sender: ObjectId) {
        let Some(socket) = self.socket(sender).filter(|socket| socket.wants_space) else {
            return;
        };
        if tcp_readiness(self, socket) & event::OUT != 0 {
            if let Some(socket) = self.socket_mut(sender) {
                socket.wants_space = false;
            }
            self.announce(sender, event::WRITING);
        }
    }

    /// Resets a socket to its unconnected state; its options stay.
    pub fn disconnect(&mut self, id: ObjectId) {
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        socket.state = SocketState::Idle;
        socket.link = None;
        socket.connect_report = ConnectReport::Nothing;
        socket.error = None;
        socket.read_shut = false;
        socket.write_shut = false;
        socket.end_sent = false;
        socket.end_received = false;
        socket.remote = Address::Unnamed;
        match &mut socket.local {
            Address::Internet(local) if socket.bound && !socket.bound_port => local.set_port(0),
            local if !socket.bound => *local = Address::Unnamed,
            _ => {}
        }
    }

    /// Sends the end of the stream (FIN).
    pub(super) fn send_end(&mut self, id: ObjectId) {
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        let SocketState::Connected { peer } = socket.state else {
            return;
        };
        if std::mem::replace(&mut socket.end_sent, true) {
            return;
        }
        socket.write_shut = true;
        if self.socket(id).is_some_and(|socket| socket.link.is_none()) {
            self.log_sent(id, PacketKind::Fin);
        }
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        let both = socket.end_received;
        let addresses = socket.local.internet().zip(socket.remote.internet());
        if both {
            socket.state = SocketState::Idle;
        }
        if socket.link.is_some() {
            self.end_remote(id);
            return self.announce(id, event::ALL);
        }
        self.announce(id, event::ALL);
        match peer {
            Some(peer_id) => {
                let Some(peer) = self.socket_mut(peer_id) else {
                    return;
                };
                peer.end_received = true;
                peer.read_shut = true;
                if both {
                    // The peer closed first: it enters TIME_WAIT.
                    peer.state = SocketState::Idle;
                    let of_peer = (peer.domain, peer.options.reuse_address);
                    if let Some((local, remote)) = addresses {
                        let ends = [remote, local];
                        self.network.leave(of_peer, ends, self.clock_ns);
                        self.network.enter_time_wait(remote, local, self.clock_ns);
                    }
                }
                self.announce(peer_id, event::ALL);
            }
            None => {
                if let Some((local, remote)) = addresses {
                    self.network.enter_time_wait(remote, local, self.clock_ns);
                }
            }
        }
    }

    /// Receives a reset.
    pub(super) fn reset(&mut self, id: ObjectId) {
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        if socket.state == SocketState::Idle {
            return;
        }
        if self.socket(id).is_some_and(|socket| socket.link.is_none()) {
            self.log_received(id, PacketKind::Reset);
        }
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        let half_closed = socket.end_received && !socket.end_sent;
        socket.error = Some(if half_closed {
            Errno::EPIPE
        } else {
            Errno::ECONNRESET
        });
        socket.state = SocketState::Idle;
        socket.read_shut = true;
        socket.write_shut = true;
        self.announce(id, event::ALL);
    }

    /// Breaks a connection, as if both ends had received a reset. The caller reports it at this
    /// end. If it `reads`, the reset came before the bytes that it would have got.
    pub fn break_connection(&mut self, id: ObjectId, reads: bool) {
        let Some(socket) = self.socket(id).filter(|socket| socket.is_connected()) else {
            return;
        };
        let (peer, is_remote) = (socket.peer(), socket.link.is_some());
        match (socket.is_tcp(), peer) {
            (true, _) if is_remote => {
                self.reset_remote(id);
                self.reset(id);
            }
            (true, Some(peer)) => {
                self.reset(peer);
                self.reset(id);
            }
            (true, None) => self.reset_by_closed_peer(id),
            (false, peer) => {
                peer.inspect(|peer| self.lose_unix_peer(*peer, Some(Errno::ECONNRESET)));
                self.lose_unix_peer(id, None);
            }
        }
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        socket.error = None;
        let mut rights = Vec::new();
        while reads && let Some(message) = socket.inbox.pop() {
            rights.extend(message.rights);
        }
        for id in rights {
            self.release(id);
        }
    }

    fn reset_by_closed_peer(&mut self, id: ObjectId) {
        let socket = self.socket(id);
        let ends = socket.and_then(|socket| socket.local.internet().zip(socket.remote.internet()));
        if let Some((local, remote)) = ends {
            self.network.forget(remote, local);
        }
        self.reset(id);
    }

    /// `shutdown` of TCP.
    pub(super) fn shut_down_tcp(
        &mut self,
        id: ObjectId,
        read: bool,
        write: bool,
    ) -> Result<(), Errno> {
        let socket = self.socket(id).ok_or(Errno::ENOTSOCK)?;
        match &socket.state {
            SocketState::Idle => Err(Errno::ENOTCONN),
            SocketState::Listening { .. } if !read => Ok(()),
            SocketState::Listening { .. } => {
                self.stop_listening(id);
                self.disconnect(id);
                Ok(())
            }
            SocketState::Connecting { .. } => {
                self.disconnect(id);
                Ok(())
            }
            SocketState::Connected { .. } => {
                if write {
                    self.send_end(id);
                }
                Ok(())
            }
        }
    }

    /// Resets the connections in the accept queue, and refuses connection attempts that wait for
    /// space in it.
    pub(super) fn stop_listening(&mut self, id: ObjectId) {
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        let port = socket.local.internet().map(|local| local.port());
        let SocketState::Listening { pending, .. } =
            std::mem::replace(&mut socket.state, SocketState::Idle)
        else {
            return;
        };
        for connection in pending {
            self.abort_connection(connection);
        }
        if let Some(port) = port {
            self.retry_connections(port);
        }
    }

    /// Removes a TCP socket and resets its peer.
    fn abort_connection(&mut self, id: ObjectId) {
        self.reset_remote(id);
        if let Some(peer) = self.socket(id).and_then(Socket::peer) {
            self.reset(peer);
        }
        self.objects.remove(id.0);
    }
}

fn send_capacity(socket: &Socket, peer: &Socket) -> u64 {
    u64::from(socket.options.send_buffer) + u64::from(peer.options.receive_buffer)
}

/// Last close of a TCP socket.
pub fn close_tcp(host: &mut HostState, id: ObjectId) {
    let Some(socket) = host.socket(id) else {
        return;
    };
    match socket.state {
        SocketState::Listening { .. } => host.stop_listening(id),
        SocketState::Connected { peer } => {
            if !socket.inbox.is_empty() || socket.options.linger_s == Some(0) {
                if peer.is_none() && socket.link.is_none() {
                    host.reset_by_closed_peer(id);
                }
                return host.abort_connection(id);
            }
            let own = (socket.domain, socket.options.reuse_address);
            let addresses = socket.local.internet().zip(socket.remote.internet());
            host.send_end(id);
            let open_at_other_end = host.socket(id).is_some_and(Socket::is_connected);
            if open_at_other_end && let Some(peer) = peer.and_then(|peer| host.socket_mut(peer)) {
                peer.state = SocketState::Connected { peer: None };
                if let Some((local, remote)) = addresses {
                    host.network.leave(own, [local, remote], host.clock_ns);
                }
            }
        }
        SocketState::Idle | SocketState::Connecting { .. } => {}
    }
    host.objects.remove(id.0);
}

/// Poll events of a TCP socket.
pub fn tcp_readiness(host: &HostState, socket: &Socket) -> u16 {
    const READ: u16 = event::IN | event::READ_NORMAL;
    const WRITE: u16 = event::OUT | event::WRITE_NORMAL;
    let mut events = 0;
    let peer = match &socket.state {
        SocketState::Listening { pending, .. } => {
            return if pending.is_empty() { 0 } else { READ };
        }
        SocketState::Connecting { .. } => return 0,
        SocketState::Idle => {
            events |= event::HANG_UP | WRITE;
            None
        }
        SocketState::Connected { peer } => *peer,
    };
    if socket.read_shut && socket.write_shut {
        events |= event::HANG_UP;
    }
    if socket.read_shut {
        events |= READ | event::READ_HANG_UP;
    }
    if socket.inbox.len() - socket.skipped() >= u64::from(socket.options.receive_low_water) {
        events |= READ;
    }
    if socket.has_urgent_byte() {
        events |= event::PRIORITY;
    }
    let writable = match peer.and_then(|peer| host.socket(peer)) {
        _ if socket.link.is_some() => {
            socket.send_space() * 3 >= u64::from(socket.options.send_buffer)
        }
        // A third of the send capacity must be free.
        Some(peer) => peer.inbox.len() * 3 <= send_capacity(socket, peer) * 2,
        None => true,
    };
    if socket.write_shut || writable {
        events |= WRITE;
    }
    if socket.error.is_some() {
        events |= event::ERROR;
    }
    events
}
