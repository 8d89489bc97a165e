//! UNIX sockets: their names, and streams between them.

use everett_vm::Buffer;

use super::inbox::first_bytes;
use super::{
    Address, Ancillary, ConnectReport, Credentials, Domain, Received, ReceivedMessage, Socket,
    SocketState, SocketType, message_flag,
};
use crate::errno::Errno;
use crate::files::{InodeKind, WRITE};
use crate::host::HostState;
use crate::ids::{DescriptionId, InodeId, ObjectId};
use crate::kernel::{Kernel, Stop};
use crate::objects::{Object, OpenObject, event};
use crate::queue::slice;
use crate::wait::WaitCondition;

impl Kernel<'_, '_> {
    /// The UNIX socket with a name, which must be of this type. The caller must have permission to
    /// write to its file.
    pub fn find_unix(&mut self, name: &Address, kind: SocketType) -> Result<ObjectId, Errno> {
        let found = match name {
            Address::Path(path) => {
                let id = self.resolve(self.process().cwd, path, true)?;
                let inode = self.host.files.tree.get(id);
                self.fs_credentials().check(inode, WRITE)?;
                if !matches!(inode.kind, InodeKind::Socket) {
                    return Err(Errno::ECONNREFUSED);
                }
                self.host.unix_socket_at(id)
            }
            // Abstract names are distinct for each socket type.
            Address::Abstract(_) => self.host.unix_socket_named(name, kind),
            _ => return Err(Errno::EINVAL),
        };
        let id = found.ok_or(Errno::ECONNREFUSED)?;
        let socket = self.host.socket(id).ok_or(Errno::ECONNREFUSED)?;
        if socket.kind == kind {
            Ok(id)
        } else {
            Err(Errno::EPROTOTYPE)
        }
    }

    /// Gives a socket with `SO_PASSCRED` a name, by which receivers can answer it.
    pub(super) fn name_to_pass_credentials(&mut self, id: ObjectId) {
        let wants =
            |socket: &&Socket| socket.options.pass_credentials && socket.local == Address::Unnamed;
        let Some(kind) = self.host.socket(id).filter(wants).map(|socket| socket.kind) else {
            return;
        };
        let name = self.host.free_unix_name(kind);
        if let Some(socket) = self.host.socket_mut(id) {
            socket.local = name;
            socket.bound = true;
        }
    }

    /// `connect` of a connection-oriented UNIX socket.
    pub fn connect_unix(&mut self, open: OpenObject<'_>, to: &Address) -> Result<(), Stop> {
        let kind = self.socket_of(open)?.kind;
        let listener = self.find_unix(to, kind)?;
        let takes = |socket: &Socket| socket.is_listening() && !socket.read_shut;
        if !self.host.socket(listener).is_some_and(takes) {
            return Err(Errno::ECONNREFUSED.into());
        }
        if !self.host.has_room(listener) {
            let condition = WaitCondition::SocketSpace(listener);
            return Err(self.wait_until(open, condition, event::OUT, 0, "connect"));
        }
        let owner = self.credentials();
        let remote = self
            .host
            .socket(listener)
            .map(|socket| socket.local.clone());
        let socket = self.socket_of(open)?;
        match socket.state {
            SocketState::Idle => {}
            SocketState::Connected { .. } => return Err(Errno::EISCONN.into()),
            _ => return Err(Errno::EINVAL.into()),
        }
        self.name_to_pass_credentials(open.object);
        let socket = self.socket_of(open)?;
        socket.owner = owner;
        socket.remote = remote.unwrap_or(Address::Unnamed);
        socket.connect_report = ConnectReport::Connected;
        self.host.establish(open.object, listener);
        Ok(())
    }

    /// Receives bytes of a stream, with ancillary data.
    pub(super) fn receive_unix(
        &mut self,
        open: OpenObject<'_>,
        wanted: u64,
        flags: u32,
    ) -> Result<Received, Stop> {
        let socket = self.socket_of(open)?;
        if !socket.is_connected() {
            return Err(Errno::EINVAL.into());
        }
        if flags & message_flag::OUT_OF_BAND != 0 {
            return self.receive_marked(open, wanted, flags);
        }
        if wanted == 0 {
            return Ok(Received::end());
        }
        let peek = flags & message_flag::PEEK != 0;
        if !socket.inbox.is_empty() {
            let (received, lost) = match peek {
                true => socket.clone().read_stream(wanted),
                false => socket.read_stream(wanted),
            };
            let peer = socket.peer();
            if peek {
                self.host.retain_all(&received.rights);
            } else {
                self.host.release_all(&lost);
                peer.inspect(|peer| self.host.announce(*peer, event::WRITING));
            }
            if !received.bytes.is_empty() {
                return Ok(received);
            }
        }
        let socket = self.socket_of(open)?;
        if let Some(error) = socket.take_error() {
            return Err(error.into());
        }
        if socket.read_shut {
            return Ok(Received::end());
        }
        let what = "receive from a UNIX socket";
        if socket.inbox.is_empty() {
            return Err(self.wait_for_socket(open, event::IN, flags, what));
        }
        // The queue has a mark only, which does not count for this call.
        let condition = WaitCondition::StreamBytes(open.object);
        Err(self.wait_until(open, condition, event::IN, flags, what))
    }

    /// Sends as many bytes as fit; ancillary data goes with the first byte.
    pub(super) fn send_unix(
        &mut self,
        open: OpenObject<'_>,
        parts: &[Buffer],
        ancillary: &Ancillary,
        flags: u32,
    ) -> Result<u64, Stop> {
        let wanted: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let is_urgent = flags & message_flag::OUT_OF_BAND != 0;
        if is_urgent && wanted == 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let credentials = ancillary.credentials.unwrap_or(self.credentials());
        let socket = self.socket_of(open)?;
        if ancillary.to.is_some() {
            return Err(if socket.is_connected() {
                Errno::EISCONN.into()
            } else {
                Errno::EOPNOTSUPP.into()
            });
        }
        let SocketState::Connected { peer } = socket.state else {
            return Err(Errno::ENOTCONN.into());
        };
        if socket.write_shut {
            return Err(self.broken_pipe(flags));
        }
        let (from, capacity) = (socket.local.clone(), u64::from(socket.options.send_buffer));
        let Some(receiver) = peer else {
            return Err(self.broken_pipe(flags));
        };
        let Some(peer) = self.host.socket(receiver) else {
            return Err(self.broken_pipe(flags));
        };
        if wanted == 0 {
            return Ok(0);
        }
        let room = capacity.saturating_sub(peer.inbox.len());
        if room == 0 {
            return Err(self.wait_for_socket(open, event::OUT, flags, "send to a UNIX socket"));
        }
        let bytes = first_bytes(parts, wanted.min(room));
        let sent = bytes.len() as u64;
        let message = |bytes: Buffer, rights: &[DescriptionId]| ReceivedMessage {
            from: from.clone(),
            rights: rights.to_vec(),
            credentials: Some(credentials),
            ..ReceivedMessage::plain(bytes)
        };
        let rights = &ancillary.rights;
        self.host.retain_all(rights);
        // The last byte is the urgent one.
        match (is_urgent && sent == wanted, sent) {
            (false, _) => self.host.deliver(receiver, message(bytes, rights)),
            (true, 1) => self.host.deliver_marked(receiver, message(bytes, rights)),
            (true, _) => {
                let before = slice(&bytes, 0, sent as usize - 1);
                let last = slice(&bytes, sent as usize - 1, 1);
                self.host.deliver(receiver, message(before, rights));
                self.host.deliver_marked(receiver, message(last, &[]));
            }
        }
        Ok(sent)
    }

    /// Creates two connected sockets.
    pub fn unix_pair(&mut self, kind: SocketType) -> [ObjectId; 2] {
        let owner = self.credentials();
        let mut make = || {
            let mut socket = Socket::new(Domain::Unix, kind, 0, owner);
            socket.connect_report = ConnectReport::Connected;
            socket.peer_owner = Some(owner);
            ObjectId(self.host.objects.insert(Object::Socket(Box::new(socket))))
        };
        let pair = [make(), make()];
        for (own, peer) in [(pair[0], pair[1]), (pair[1], pair[0])] {
            if let Some(socket) = self.host.socket_mut(own) {
                socket.state = SocketState::Connected { peer: Some(peer) };
            }
        }
        pair
    }
}

impl HostState {
    fn unix_socket_at(&self, inode: InodeId) -> Option<ObjectId> {
        let mut sockets = self.sockets();
        let found = sockets.find(|(_, socket)| socket.inode == Some(inode))?;
        Some(found.0)
    }

    /// The socket with an abstract name.
    pub fn unix_socket_named(&self, name: &Address, kind: SocketType) -> Option<ObjectId> {
        let mut sockets = self.sockets();
        let found = sockets.find(|(_, socket)| {
            // An accepted socket has the name of its listener, but the name does not find it.
            let has_it = socket.domain == Domain::Unix && socket.local == *name;
            has_it && socket.bound && socket.kind == kind
        })?;
        Some(found.0)
    }

    /// An unused abstract name.
    pub fn free_unix_name(&mut self, kind: SocketType) -> Address {
        loop {
            let number = self.network.next_name & 0xf_ffff;
            self.network.next_name = self.network.next_name.wrapping_add(1);
            let name = Address::Abstract(format!("{number:05x}").into_bytes());
            if self.unix_socket_named(&name, kind).is_none() {
                return name;
            }
        }
    }

    /// Retains open file descriptions in transit.
    pub fn retain_all(&mut self, rights: &[DescriptionId]) {
        for id in rights {
            self.files.retain(*id);
        }
    }

    /// Releases open file descriptions in transit that will not arrive.
    pub fn release_all(&mut self, rights: &[DescriptionId]) {
        for id in rights {
            self.release(*id);
        }
    }

    /// `shutdown` of a UNIX socket: the peer of a connection is notified.
    pub(super) fn shut_down_unix(
        &mut self,
        id: ObjectId,
        read: bool,
        write: bool,
    ) -> Result<(), Errno> {
        let socket = self.socket(id).ok_or(Errno::ENOTSOCK)?;
        let peer = socket.peer().filter(|_| socket.kind.has_connections());
        if let Some(peer_id) = peer
            && let Some(peer) = self.socket_mut(peer_id)
        {
            peer.read_shut |= write;
            peer.write_shut |= read;
            self.announce(peer_id, event::ALL);
        }
        Ok(())
    }
}

/// Last close of a UNIX socket, or removal of one that was never accepted.
pub fn close_unix(host: &mut HostState, id: ObjectId, accepted: bool) {
    let Some(socket) = host.socket_mut(id) else {
        return;
    };
    let mut rights = Vec::new();
    let unread = match socket.kind {
        SocketType::Stream => socket.inbox.iter().any(|message| message.len() > 0),
        _ => !socket.inbox.is_empty(),
    };
    while let Some(message) = socket.inbox.pop() {
        rights.extend(message.rights);
    }
    let has_connections = socket.kind.has_connections();
    let state = std::mem::replace(&mut socket.state, SocketState::Idle);
    host.objects.remove(id.0);
    match state {
        SocketState::Listening { pending, .. } => {
            for connection in pending {
                close_unix(host, connection, false);
            }
        }
        SocketState::Connected {
            peer: Some(peer_id),
        } if has_connections => {
            let is_reset = unread || !accepted;
            host.lose_unix_peer(peer_id, is_reset.then_some(Errno::ECONNRESET));
        }
        _ => {}
    }
    if !has_connections {
        host.disconnect_unix_peers(id);
    }
    // The caller that closes the socket releases them.
    host.in_transit.extend(rights);
}

impl HostState {
    /// Ends the connection of a UNIX socket whose peer is gone; an error is what its next call
    /// reports.
    pub(super) fn lose_unix_peer(&mut self, id: ObjectId, error: Option<Errno>) {
        let Some(socket) = self.socket_mut(id) else {
            return;
        };
        socket.state = SocketState::Connected { peer: None };
        socket.read_shut = true;
        socket.write_shut = true;
        socket.error = error.or(socket.error);
        self.announce(id, event::ALL);
    }

    /// Disconnects the sockets whose default destination was closed;
    /// they notice at their next send.
    fn disconnect_unix_peers(&mut self, gone: ObjectId) {
        let peers: Vec<ObjectId> = self
            .sockets()
            .filter(|(_, socket)| socket.domain == Domain::Unix && socket.peer() == Some(gone))
            .map(|(id, _)| id)
            .collect();
        for id in peers {
            if let Some(socket) = self.socket_mut(id) {
                socket.state = SocketState::Connected { peer: None };
                self.announce(id, event::WRITING);
            }
        }
    }

    /// Announces space to senders after a message was received.
    pub(super) fn announce_to_senders(&mut self, receiver: ObjectId) {
        let senders: Vec<ObjectId> = self
            .sockets()
            .filter(|(_, socket)| socket.domain == Domain::Unix && socket.peer() == Some(receiver))
            .map(|(id, _)| id)
            .collect();
        for sender in senders {
            self.announce(sender, event::WRITING);
        }
    }
}

/// Poll events of a UNIX socket.
pub fn unix_readiness(host: &HostState, socket: &Socket) -> u16 {
    const READ: u16 = event::IN | event::READ_NORMAL;
    const WRITE: u16 = event::OUT | event::WRITE_NORMAL | event::WRITE_BAND;
    let mut events = 0;
    if socket.error.is_some() {
        events |= event::ERROR;
    }
    if socket.read_shut && socket.write_shut {
        events |= event::HANG_UP;
    }
    if socket.read_shut {
        events |= READ | event::READ_HANG_UP;
    }
    let peer = match &socket.state {
        SocketState::Listening { pending, .. } => {
            if !pending.is_empty() {
                events |= READ;
            }
            return events;
        }
        SocketState::Connected { peer } => peer.and_then(|peer| host.socket(peer)),
        _ => None,
    };
    if socket.kind.has_connections() && socket.state == SocketState::Idle {
        events |= event::HANG_UP;
    }
    if !socket.inbox.is_empty() {
        events |= READ;
    }
    if socket.has_marked_message() {
        events |= event::PRIORITY;
    }
    let writable = match peer {
        None => true,
        // Writable while at most a quarter of the capacity is in use.
        Some(peer) if socket.kind == SocketType::Stream => {
            peer.inbox.len() * 4 <= u64::from(socket.options.send_buffer)
        }
        Some(peer) => !socket.must_wait_for(peer),
    };
    if writable {
        events |= WRITE;
    }
    events
}

impl Credentials {
    /// Credentials of a missing peer.
    pub const NOBODY: Credentials = Credentials {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
}
