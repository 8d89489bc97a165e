//! Datagrams: UDP, and datagrams and sequenced packets of UNIX sockets.

use everett_expr::Arena;
use everett_vm::Buffer;
use std::net::SocketAddr;

use super::outgoing::Outgoing;
use super::raw::source_of;
use super::{
    Address, Ancillary, ConnectReport, Corked, Destination, Domain, Received, ReceivedMessage,
    Socket, SocketState, SocketType, message_flag, unspecified,
};
use crate::bytes::join;
use crate::errno::Errno;
use crate::files::OpenFlags;
use crate::frames::{Datagram, Frame};
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Kernel, Stop};
use crate::objects::{OpenObject, event};
use crate::packets::PacketKind;
use crate::wait::WaitCondition;

/// The longest UDP datagram.
const MAX_UDP: u64 = 65507;
/// Buffer space that a message takes besides its bytes.
const OVERHEAD: u64 = 768;
/// Maximum number of queued messages from unconnected peers, minus one: `net.unix.max_dgram_qlen`.
const MAX_MESSAGES: usize = 10;

impl Socket {
    /// Receive buffer space in use.
    fn room_used(&self) -> u64 {
        self.inbox.len() + self.inbox.count() as u64 * OVERHEAD
    }

    /// Whether unconnected senders must wait for queued messages to be received.
    pub(super) fn is_full_for_unconnected(&self) -> bool {
        self.inbox.count() > MAX_MESSAGES
    }

    /// Whether a message from this UNIX socket to its peer must wait.
    pub(super) fn must_wait_for(&self, peer: &Socket) -> bool {
        // Sockets connected to each other are limited by bytes only.
        if peer.is_connected() {
            peer.room_used() * 4 > u64::from(self.options.send_buffer)
        } else {
            peer.is_full_for_unconnected()
        }
    }
}

impl Kernel<'_, '_> {
    /// Receives a message.
    pub(super) fn receive_datagram(
        &mut self,
        open: OpenObject<'_>,
        wanted: u64,
        flags: u32,
    ) -> Result<Received, Stop> {
        let nonblocking =
            open.description.flags.has(OpenFlags::NONBLOCK) || flags & message_flag::DONT_WAIT != 0;
        let socket = self.socket_of(open)?;
        if flags & message_flag::OUT_OF_BAND != 0 && !socket.is_udp() {
            return Err(Errno::EOPNOTSUPP.into());
        }
        if flags & message_flag::ERROR_QUEUE != 0 {
            return Err(Errno::EAGAIN.into());
        }
        if socket.kind == SocketType::Packets && !socket.is_connected() {
            return Err(Errno::ENOTCONN.into());
        }
        if let Some(error) = socket.take_error() {
            return Err(error.into());
        }
        if let Some(first) = socket.inbox.first() {
            let message = first.clone();
            if flags & message_flag::PEEK == 0 {
                socket.inbox.pop();
                if socket.domain == Domain::Unix {
                    self.host.announce_to_senders(open.object);
                }
            } else {
                self.host.retain_all(&message.rights);
            }
            let bytes = message.peek(0, wanted);
            return Ok(Received::of_message(message, bytes));
        }
        // A non-blocking receive reports only the end of a connection.
        if socket.read_shut && (!nonblocking || socket.kind == SocketType::Packets) {
            return Ok(Received::end());
        }
        Err(self.wait_for_socket(open, event::IN, flags, "receive a message"))
    }

    /// The destination of a packet: the given address, or else the address that the socket is
    /// connected to.
    pub(super) fn target_of(
        &mut self,
        open: OpenObject<'_>,
        to: Option<&Address>,
        flags: u32,
    ) -> Result<SocketAddr, Stop> {
        if flags & message_flag::OUT_OF_BAND != 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        match to.unwrap_or(&self.socket_of(open)?.remote) {
            Address::Internet(to) => Ok(*to),
            _ => Err(Errno::EDESTADDRREQ.into()),
        }
    }

    /// Fails if an error is pending, or if the socket was shut down for sending.
    pub(super) fn expect_sendable(&mut self, open: OpenObject<'_>) -> Result<(), Stop> {
        let socket = self.socket_of(open)?;
        match socket.take_error() {
            Some(error) => Err(error.into()),
            None if socket.write_shut => Err(Errno::EPIPE.into()),
            None => Ok(()),
        }
    }

    /// Sends a UDP datagram, or keeps it for more bytes.
    pub(super) fn send_udp(
        &mut self,
        open: OpenObject<'_>,
        parts: &[Buffer],
        ancillary: &Ancillary,
        flags: u32,
    ) -> Result<u64, Stop> {
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let begun = self.socket_of(open)?.corked.clone();
        let before = begun.as_ref().map_or(0, |begun| begun.bytes.len() as u64);
        if before + len > MAX_UDP {
            self.socket_of(open)?.corked = None;
            return Err(Errno::EMSGSIZE.into());
        }
        let to = match &begun {
            Some(begun) => begun.to,
            None => self.target_of(open, ancillary.to.as_ref(), flags)?,
        };
        if to.port() == 0 {
            return Err(Errno::EINVAL.into());
        }
        let socket = self.socket_of(open)?;
        if socket.options.only_v6 && to.is_ipv4() {
            return Err(Errno::ENETUNREACH.into());
        }
        let may_send_to_all = socket.options.broadcast;
        if self.host.network.is_broadcast(to.ip()) && !may_send_to_all {
            return Err(Errno::EACCES.into());
        }
        let is_foreign = |source| !self.host.network.is_own(source);
        if ancillary.source.is_some_and(is_foreign) {
            return Err(Errno::EINVAL.into());
        }
        self.host.bind_udp_anywhere(open.object)?;
        let socket = self.host.socket(open.object).ok_or(Errno::ENOTSOCK)?;
        let way = self.host.way(socket, to.ip())?;
        self.expect_sendable(open)?;
        let socket = self.socket_of(open)?;
        let before = begun.map(|begun| begun.bytes);
        let bytes = join(before.into_iter().chain(parts.iter().cloned()).collect());
        if flags & message_flag::MORE != 0 || socket.options.is_corked() {
            socket.corked = Some(Box::new(Corked { to, bytes }));
            return Ok(len);
        }
        socket.corked = None;
        let port = socket.local.internet().map_or(0, |local| local.port());
        let source = ancillary.source.unwrap_or(source_of(socket, &way));
        let (from, to) = (
            SocketAddr::new(source, port),
            SocketAddr::new(way.to, to.port()),
        );
        let datagram = Datagram {
            bytes,
            hops: socket.hops_to(way.to, ancillary),
        };
        self.emit_datagram((from, to), datagram, &way);
        // The datagram has left the send buffer.
        self.host.announce(open.object, event::WRITING);
        Ok(len)
    }

    /// Sends a datagram over the network, to sockets of this host, or both.
    fn emit_datagram(
        &mut self,
        (from, to): (SocketAddr, SocketAddr),
        datagram: Datagram,
        way: &Outgoing,
    ) {
        let kind = PacketKind::Datagram(datagram.clone());
        if way.leaves {
            self.host.transmit(from, to, kind);
        } else if self.host.packets.is_some() {
            self.host.log_packet(from, to, kind);
        }
        if way.arrives {
            self.host.show_outgoing(from, to, &datagram, way);
            self.host.show_datagram((from, to), &datagram, way.index);
            self.host
                .datagram_arrives(self.vm.arena, (from, to), &datagram, way.index);
        }
    }

    /// Sends the datagram that was kept for more bytes.
    pub fn uncork(&mut self, open: OpenObject<'_>) -> Result<(), Stop> {
        if self.socket_of(open)?.corked.is_some() {
            self.send_udp(open, &[], &Ancillary::default(), 0)?;
        }
        Ok(())
    }

    /// `connect` of UDP: restricts the socket to one peer address.
    pub fn connect_udp(&mut self, open: OpenObject<'_>, to: SocketAddr) -> Result<(), Stop> {
        let own = self.host.socket(open.object).ok_or(Errno::ENOTSOCK)?;
        let (to, from) = match self.host.route_of(own, to.ip()) {
            Destination::Local { to: ip, from } => (SocketAddr::new(ip, to.port()), from),
            Destination::Remote { from } => (to, from),
            Destination::Nowhere(errno) => return Err(errno.into()),
        };
        let socket = self.socket_of(open)?;
        if socket.options.only_v6 && to.is_ipv4() {
            return Err(Errno::ENETUNREACH.into());
        }
        if to.is_ipv4() && socket.local.internet().is_some_and(is_true_v6) {
            return Err(Errno::ENETUNREACH.into());
        }
        if self.socket_of(open)?.kind == SocketType::Datagram {
            self.host.bind_udp_anywhere(open.object)?;
        }
        let socket = self.socket_of(open)?;
        if let Some(local) = socket.local.internet()
            && local.ip().is_unspecified()
        {
            socket.local = Address::Internet(SocketAddr::new(from, local.port()));
        }
        socket.remote = Address::Internet(to);
        socket.state = SocketState::Connected { peer: None };
        Ok(())
    }

    /// `connect` of a UNIX datagram socket.
    pub fn connect_unix_datagram(
        &mut self,
        open: OpenObject<'_>,
        to: &Address,
    ) -> Result<(), Stop> {
        let peer = self.find_unix(to, SocketType::Datagram)?;
        if !self.host.may_send(open.object, peer) {
            return Err(Errno::EPERM.into());
        }
        let remote = self.host.socket(peer).map(|peer| peer.local.clone());
        self.name_to_pass_credentials(open.object);
        let socket = self.socket_of(open)?;
        socket.state = SocketState::Connected { peer: Some(peer) };
        socket.connect_report = ConnectReport::Connected;
        socket.remote = remote.unwrap_or(Address::Unnamed);
        Ok(())
    }

    /// Sends a message of a UNIX socket.
    pub(super) fn send_unix_message(
        &mut self,
        open: OpenObject<'_>,
        parts: &[Buffer],
        ancillary: &Ancillary,
        flags: u32,
    ) -> Result<u64, Stop> {
        if flags & message_flag::OUT_OF_BAND != 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let credentials = ancillary.credentials.unwrap_or(self.credentials());
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let socket = self.socket_of(open)?;
        if let Some(error) = socket
            .take_error()
            .filter(|_| socket.kind == SocketType::Packets)
        {
            return Err(error.into());
        }
        let (kind, state) = (socket.kind, socket.state.clone());
        if kind == SocketType::Packets && !socket.is_connected() {
            return Err(Errno::ENOTCONN.into());
        }
        let write_shut = socket.write_shut;
        let limit = u64::from(socket.options.send_buffer);
        let peer = match (&ancillary.to, state) {
            (Some(to), _) if kind == SocketType::Datagram => Some(self.find_unix(to, kind)?),
            (_, SocketState::Connected { peer }) => peer,
            _ => return Err(Errno::ENOTCONN.into()),
        };
        if len + 32 > limit {
            return Err(Errno::EMSGSIZE.into());
        }
        if write_shut || (peer.is_none() && kind == SocketType::Packets) {
            return Err(Errno::EPIPE.into());
        }
        let Some(peer) = peer else {
            self.host.disconnect(open.object);
            return Err(Errno::ECONNREFUSED.into());
        };
        if !self.host.may_send(open.object, peer) {
            return Err(Errno::EPERM.into());
        }
        let Some(receiver) = self.host.socket(peer) else {
            return Err(Errno::ECONNREFUSED.into());
        };
        if receiver.read_shut {
            return Err(Errno::EPIPE.into());
        }
        if receiver.peer() == Some(open.object) || peer == open.object {
            // Sockets connected to each other are limited by bytes only; the
            // last message may exceed the limit.
            if receiver.room_used() >= limit {
                let what = "send to a UNIX socket";
                return Err(self.wait_for_socket(open, event::OUT, flags, what));
            }
        } else if receiver.is_full_for_unconnected() {
            let condition = WaitCondition::SocketSpace(peer);
            return Err(self.wait_until(
                open,
                condition,
                event::OUT,
                flags,
                "send to a UNIX socket",
            ));
        }
        self.name_to_pass_credentials(open.object);
        let message = ReceivedMessage {
            from: self.socket_of(open)?.local.clone(),
            rights: ancillary.rights.clone(),
            credentials: Some(credentials),
            ..ReceivedMessage::plain(join(parts.to_vec()))
        };
        self.host.retain_all(&ancillary.rights);
        self.host.deliver(peer, message);
        Ok(len)
    }
}

/// Whether it is a genuine IPv6 address, neither wildcard nor IPv4-mapped.
fn is_true_v6(address: SocketAddr) -> bool {
    address.is_ipv6() && !address.ip().is_unspecified()
}

impl HostState {
    /// Binds a UDP socket to the wildcard address and an ephemeral port.
    pub(super) fn bind_udp_anywhere(&mut self, id: ObjectId) -> Result<(), Errno> {
        let socket = self.socket(id).ok_or(Errno::ENOTSOCK)?;
        let own = socket.local.internet();
        if own.is_some_and(|own| own.port() != 0) {
            return Ok(());
        }
        let any = SocketAddr::new(unspecified(socket.domain), 0);
        let wanted = own.unwrap_or(any);
        let local = self.take_address(id, wanted).map_err(|_| Errno::EAGAIN)?;
        if let Some(socket) = self.socket_mut(id) {
            socket.local = Address::Internet(local);
        }
        Ok(())
    }

    /// Receives a datagram at an interface. If no socket accepts a unicast datagram, the sender
    /// gets an error.
    pub(crate) fn datagram_arrives(
        &mut self,
        arena: &mut Arena,
        (from, to): (SocketAddr, SocketAddr),
        datagram: &Datagram,
        index: u32,
    ) {
        if self.network.is_own(to.ip()) {
            match self.datagram_receiver(from, to) {
                Some(receiver) => self.deliver_udp(receiver, from, to, datagram.clone()),
                None => {
                    let sent = Frame::udp(from, to, datagram);
                    let quoted = sent.map_or(Buffer::zeroed(0), |sent| sent.quoted());
                    let errno = Errno::ECONNREFUSED;
                    self.send_unreachable(arena, (to, from), errno, quoted, index);
                }
            }
            return;
        }
        if !self.accepts(to.ip(), index) {
            return;
        }
        // All sockets bound to the port receive a broadcast or multicast datagram.
        let takes = |socket: &Socket| {
            let local = socket.local.internet();
            let is_there = local.is_some_and(|own| {
                own.port() == to.port() && (own.ip().is_unspecified() || own.ip() == to.ip())
            });
            let remote = socket.remote.internet();
            let is_its = is_there && remote.is_none_or(|remote| remote == from);
            socket.is_udp() && is_its && socket.takes_at(to.ip(), index)
        };
        let receivers: Vec<ObjectId> = self
            .sockets()
            .filter_map(|(id, socket)| takes(socket).then_some(id))
            .collect();
        for receiver in receivers {
            self.deliver_udp(receiver, from, to, datagram.clone());
        }
    }

    fn deliver_udp(&mut self, to: ObjectId, from: SocketAddr, at: SocketAddr, datagram: Datagram) {
        let message = ReceivedMessage {
            from: Address::Internet(from),
            to: Address::Internet(at),
            hops: datagram.hops,
            ..ReceivedMessage::plain(datagram.bytes)
        };
        self.queue_datagram(to, message);
    }

    /// Queues a message; it is dropped if the receive buffer is full.
    pub(super) fn queue_datagram(&mut self, to: ObjectId, message: ReceivedMessage) {
        let Some(socket) = self.socket_mut(to) else {
            return;
        };
        let limit = u64::from(socket.options.receive_buffer);
        if !socket.read_shut && socket.room_used() + message.len() <= limit {
            self.deliver(to, message);
        }
    }

    /// Shows a datagram that stays on this host to packet sockets, as outgoing.
    fn show_outgoing(
        &mut self,
        from: SocketAddr,
        to: SocketAddr,
        datagram: &Datagram,
        way: &Outgoing,
    ) {
        if !way.leaves
            && self.has_onlookers()
            && let Some(frame) = Frame::udp(from, to, datagram)
        {
            self.tap(&frame, way.index, true, None);
        }
    }

    /// Whether a UNIX socket accepts messages from another: a connected one only from its peer.
    fn may_send(&self, from: ObjectId, to: ObjectId) -> bool {
        let peer = self.socket(to).and_then(Socket::peer);
        peer.is_none_or(|peer| peer == from)
    }

    /// `shutdown` of UDP.
    pub(super) fn shut_down_udp(&self, id: ObjectId) -> Result<(), Errno> {
        let socket = self.socket(id).ok_or(Errno::ENOTSOCK)?;
        if socket.is_connected() {
            Ok(())
        } else {
            Err(Errno::ENOTCONN)
        }
    }
}

/// Poll events of a UDP socket.
pub fn udp_readiness(socket: &Socket) -> u16 {
    const READ: u16 = event::IN | event::READ_NORMAL;
    let mut events = event::OUT | event::WRITE_NORMAL | event::WRITE_BAND;
    if socket.domain == Domain::Netlink {
        events &= !event::WRITE_BAND;
    }
    if socket.error.is_some() {
        events |= event::ERROR;
    }
    if socket.read_shut {
        events |= READ | event::READ_HANG_UP;
    }
    if socket.read_shut && socket.write_shut {
        events |= event::HANG_UP;
    }
    if !socket.inbox.is_empty() {
        events |= READ;
    }
    events
}
