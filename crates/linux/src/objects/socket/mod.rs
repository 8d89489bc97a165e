//! Sockets. `stream` and `datagram` transfer bytes between them; `network` finds the socket for an
//! address.

mod address;
mod datagram;
mod inbox;
mod interfaces;
mod netlink;
mod network;
mod options;
mod outgoing;
mod packet;
mod peeking;
mod raw;
mod remote;
mod routes;
mod stream;
mod table_route;
mod unix;
mod unix_urgent;
mod urgent;

use everett_vm::Buffer;

use super::{Object, OpenObject, Operations, event};
use crate::errno::Errno;
use crate::files::OpenFlags;
use crate::frames::Hops;
use crate::host::HostState;
use crate::ids::{InodeId, ObjectId};
use crate::kernel::{Kernel, Stop};
use crate::packets::PacketKind;
use crate::signals::SIGPIPE;
use crate::wait::{WaitCondition, WakeSource};

pub use crate::objects::socket::address::LinkAddress;
pub use address::{AF_UNSPEC, Address, Domain, STORAGE_SIZE, family, unspecified};
pub use inbox::{Credentials, Inbox, ReceivedMessage};
pub use interfaces::{ETHERNET, LOOPBACK, NetworkInterface};
pub use network::{ClosedConnection, Destination, Network};
pub use options::{
    Options, SO_TIMESTAMP, SO_TIMESTAMPING, SO_TIMESTAMPNS, UDP_CORK, capabilities_for,
    has_missing_effect, level,
};
pub use remote::Link;
pub use table_route::{MAIN, route_type};
pub use urgent::Urgent;

/// Socket types.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SocketType {
    /// `SOCK_STREAM`: a byte stream.
    Stream,
    /// `SOCK_DGRAM`: independent messages.
    Datagram,
    /// `SOCK_SEQPACKET`: sequenced messages over a connection.
    Packets,
    /// `SOCK_RAW`: whole packets.
    Raw,
}

impl SocketType {
    /// The type with this number.
    pub fn from_number(number: u64) -> Option<SocketType> {
        let mut kinds = [
            SocketType::Stream,
            SocketType::Datagram,
            SocketType::Packets,
            SocketType::Raw,
        ]
        .into_iter();
        kinds.find(|kind| u64::from(kind.number()) == number)
    }

    /// Its number.
    pub fn number(self) -> u32 {
        match self {
            SocketType::Stream => 1,
            SocketType::Datagram => 2,
            SocketType::Raw => 3,
            SocketType::Packets => 5,
        }
    }

    /// Whether it is connection-oriented.
    pub fn has_connections(self) -> bool {
        matches!(self, SocketType::Stream | SocketType::Packets)
    }
}

/// Connection state of a socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SocketState {
    /// Not connected, or disconnected.
    Idle,
    /// It listens for connections.
    Listening {
        /// The backlog: the maximum number of pending connections, minus one.
        backlog: u32,
        /// The accept queue, oldest connection first.
        pending: Vec<ObjectId>,
    },
    /// `connect` waits for space in the accept queue of the listener.
    Connecting {
        /// Sequence number, for first come, first served.
        since: u64,
    },
    /// It has a peer, or had one that has closed.
    Connected {
        /// The socket at the other end; `None` if it is closed, or if each message looks up its
        /// receiver.
        peer: Option<ObjectId>,
    },
}

/// What `connect` has reported so far.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ConnectReport {
    /// Nothing.
    Nothing,
    /// `EINPROGRESS`: a connection is being established.
    Underway,
    /// That the connection is established.
    Connected,
}

/// A socket.
#[derive(Clone, Debug)]
pub struct Socket {
    /// Address family.
    pub domain: Domain,
    /// Socket type.
    pub kind: SocketType,
    /// Protocol number.
    pub protocol: u32,
    /// Socket options.
    pub options: Options,
    /// Connection state.
    pub state: SocketState,
    /// What `connect` has reported.
    pub connect_report: ConnectReport,
    /// `SO_ERROR`: the error that the next call returns.
    pub error: Option<Errno>,
    /// No more bytes are received after those in the queue.
    pub read_shut: bool,
    /// Nothing more can be sent.
    pub write_shut: bool,
    /// The peer knows that no more bytes follow (FIN).
    pub end_sent: bool,
    /// The peer sends no more bytes.
    pub end_received: bool,
    /// Local address.
    pub local: Address,
    /// Remote address.
    pub remote: Address,
    /// The local address was chosen with `bind`, and survives a disconnect.
    pub bound: bool,
    /// The local port was chosen with `bind`.
    pub bound_port: bool,
    /// Inode of its path name.
    pub inode: Option<InodeId>,
    /// Receive queue.
    pub inbox: Inbox,
    /// A send found the receive buffer of the peer full.
    pub wants_space: bool,
    /// Credentials of the process that created it or listens.
    pub owner: Credentials,
    /// Credentials of the peer.
    pub peer_owner: Option<Credentials>,
    /// The connection to a socket of another host.
    pub link: Option<Box<Link>>,
    /// The position of urgent data in the stream that it receives.
    pub urgent: Option<Urgent>,
    /// The datagram that it is about to send.
    pub corked: Option<Box<Corked>>,
}

impl Socket {
    /// A new socket.
    pub fn new(domain: Domain, kind: SocketType, protocol: u32, owner: Credentials) -> Socket {
        Socket {
            domain,
            kind,
            protocol,
            options: Options::new(domain, kind),
            state: SocketState::Idle,
            connect_report: ConnectReport::Nothing,
            error: None,
            read_shut: false,
            write_shut: false,
            end_sent: false,
            end_received: false,
            local: Address::Unnamed,
            remote: Address::Unnamed,
            bound: false,
            bound_port: false,
            inode: None,
            inbox: Inbox::default(),
            wants_space: false,
            owner,
            peer_owner: None,
            link: None,
            urgent: None,
            corked: None,
        }
    }

    /// Whether it is a TCP socket.
    pub fn is_tcp(&self) -> bool {
        self.domain.is_internet() && self.kind == SocketType::Stream
    }

    /// Whether it is a UDP socket.
    pub fn is_udp(&self) -> bool {
        self.domain.is_internet() && self.kind == SocketType::Datagram && !self.is_ping()
    }

    /// Whether packets from any sender can reach it.
    fn is_open_to_all(&self) -> bool {
        self.is_packet() || self.domain.is_internet() && !self.kind.has_connections()
    }

    /// The socket at the other end.
    pub fn peer(&self) -> Option<ObjectId> {
        match self.state {
            SocketState::Connected { peer } => peer,
            _ => None,
        }
    }

    /// Whether it has or had a peer.
    pub fn is_connected(&self) -> bool {
        matches!(self.state, SocketState::Connected { .. })
    }

    /// Whether it listens.
    pub fn is_listening(&self) -> bool {
        matches!(self.state, SocketState::Listening { .. })
    }

    /// The state of a TCP connection (`TCP_ESTABLISHED` and so on).
    pub fn tcp_state(&self) -> u8 {
        match &self.state {
            SocketState::Idle => 7,
            SocketState::Listening { .. } => 10,
            SocketState::Connecting { .. } => 2,
            SocketState::Connected { .. } => match (self.end_sent, self.end_received) {
                (false, false) => 1,
                (true, false) => 5,
                (false, true) => 8,
                (true, true) => 9,
            },
        }
    }

    /// Whether the accept queue has space for one more connection.
    pub fn has_backlog_room(&self) -> bool {
        match &self.state {
            SocketState::Listening { backlog, pending } => pending.len() <= *backlog as usize,
            _ => false,
        }
    }

    /// Starts to listen, or changes the backlog.
    pub fn listen(&mut self, most: u32) {
        match &mut self.state {
            SocketState::Listening { backlog, .. } => *backlog = most,
            state => {
                *state = SocketState::Listening {
                    backlog: most,
                    pending: Vec::new(),
                }
            }
        }
    }

    /// Takes the pending error.
    pub fn take_error(&mut self) -> Option<Errno> {
        self.error.take()
    }
}

/// Operations of a socket.
pub const OPERATIONS: Operations = Operations {
    mode: 0o140_777,
    read: |kernel, open, wanted| {
        if wanted == 0 {
            return Ok(Buffer::zeroed(0));
        }
        let received = kernel.receive(open, wanted, 0)?;
        kernel.host.release_all(&received.rights);
        Ok(received.bytes)
    },
    write: |kernel, open, parts| kernel.send(open, parts, &Ancillary::default(), 0),
    readiness,
    wake_source,
    close,
    available: |host, open| available(host, open.object),
    for_each_term: |object, visit| {
        if let Object::Socket(socket) = object {
            socket.inbox.for_each_term(visit);
            if let Some(link) = &socket.link {
                link.unsent.for_each_term(visit);
            }
            if let Some(corked) = &socket.corked {
                corked.bytes.terms().for_each(|term| visit.term(term));
            }
        }
    },
    ..Operations::CLOSED
};

/// Destination and ancillary data of a send.
#[derive(Clone, Debug, Default)]
pub struct Ancillary {
    /// Destination address, if given.
    pub to: Option<Address>,
    /// Open file descriptions to pass (`SCM_RIGHTS`).
    pub rights: Vec<crate::ids::DescriptionId>,
    /// Credentials to pass, if given (`SCM_CREDENTIALS`).
    pub credentials: Option<Credentials>,
    /// Remaining hops and type of service, if given.
    pub hops: (Option<u8>, Option<u8>),
    /// Source address, if given (`IP_PKTINFO`).
    pub source: Option<std::net::IpAddr>,
}

/// A UDP datagram that is not complete yet (`MSG_MORE`, `UDP_CORK`).
#[derive(Clone, Debug)]
pub struct Corked {
    /// Its destination.
    pub to: std::net::SocketAddr,
    /// Its bytes so far.
    pub bytes: Buffer,
}

/// The result of a receive.
#[derive(Clone, Debug)]
pub struct Received {
    /// The bytes.
    pub bytes: Buffer,
    /// Full length of the message before truncation.
    pub full_len: u64,
    /// Source address of a datagram.
    pub from: Option<Address>,
    /// Destination address.
    pub to: Address,
    /// Open file descriptions that were passed; the receiver owns them.
    pub rights: Vec<crate::ids::DescriptionId>,
    /// Credentials of the sender.
    pub credentials: Option<Credentials>,
    /// Remaining hops of its packet, and its type of service.
    pub hops: Hops,
    /// Wall-clock time at its arrival, if the socket asked for it then.
    pub arrived_ns: Option<u64>,
    /// Flags that `recvmsg` returns.
    pub flags: u32,
}

impl Received {
    /// Bytes of a stream.
    pub fn bytes(bytes: Buffer) -> Received {
        Received {
            full_len: bytes.len() as u64,
            bytes,
            from: None,
            to: Address::Unnamed,
            rights: Vec::new(),
            credentials: None,
            hops: Hops::default(),
            arrived_ns: None,
            flags: 0,
        }
    }

    /// A message, of which these bytes are received.
    pub fn of_message(message: ReceivedMessage, bytes: Buffer) -> Received {
        Received {
            bytes,
            full_len: message.len(),
            from: Some(message.from),
            to: message.to,
            rights: message.rights,
            credentials: message.credentials,
            hops: message.hops,
            arrived_ns: message.arrived_ns,
            flags: 0,
        }
    }

    /// End of a stream.
    pub fn end() -> Received {
        Received::bytes(Buffer::zeroed(0))
    }
}

/// `MSG_` flags.
pub mod message_flag {
    pub const OUT_OF_BAND: u32 = 0x1;
    pub const PEEK: u32 = 0x2;
    pub const CONTROL_TRUNCATED: u32 = 0x8;
    pub const TRUNCATE: u32 = 0x20;
    pub const DONT_WAIT: u32 = 0x40;
    pub const WAIT_ALL: u32 = 0x100;
    pub const MORE: u32 = 0x8000;
    pub const ERROR_QUEUE: u32 = 0x2000;
    pub const NO_SIGNAL: u32 = 0x4000;
    pub const CLOSE_ON_EXEC: u32 = 0x4000_0000;
}

impl HostState {
    /// The socket with this id, if it is one.
    pub fn socket(&self, id: ObjectId) -> Option<&Socket> {
        match self.objects.get(id.0)? {
            Object::Socket(socket) => Some(socket),
            _ => None,
        }
    }

    /// Whether an object is a connection that can break with this errno, `EPIPE` or `ECONNRESET`.
    pub fn can_break(&self, id: ObjectId, errno: Errno) -> bool {
        let socket = self.socket(id);
        let connection = socket.filter(|one| one.kind.has_connections() && one.is_connected());
        // After the end of the stream, a reset shows as `EPIPE`.
        connection.is_some_and(|one| errno == Errno::EPIPE || !one.read_shut)
    }

    /// The socket with this id, for changing it.
    pub fn socket_mut(&mut self, id: ObjectId) -> Option<&mut Socket> {
        match self.objects.get_mut(id.0)? {
            Object::Socket(socket) => Some(socket),
            _ => None,
        }
    }

    /// All sockets, by id.
    pub fn sockets(&self) -> impl Iterator<Item = (ObjectId, &Socket)> {
        self.objects.iter().filter_map(|(id, object)| match object {
            Object::Socket(socket) => Some((ObjectId(id), &**socket)),
            _ => None,
        })
    }

    /// Appends a message to the receive queue of a socket.
    pub(self) fn deliver(&mut self, to: ObjectId, mut message: ReceivedMessage) {
        let now = self.wall_clock_ns();
        if self.packets.is_some() {
            self.log_received(to, PacketKind::Data((*message.bytes).clone()));
        }
        if let Some(socket) = self.socket_mut(to) {
            let options = &socket.options;
            let wants = options.wants_times() || options.wants_timestamping();
            message.arrived_ns = wants.then_some(now);
            socket.inbox.push(message);
            self.announce(to, event::READING);
        }
    }

    /// Whether an object preserves message boundaries.
    pub fn keeps_messages(&self, id: ObjectId) -> bool {
        self.socket(id)
            .is_some_and(|socket| socket.kind != SocketType::Stream)
    }

    /// `shutdown`.
    pub fn shut_down(&mut self, id: ObjectId, read: bool, write: bool) -> Result<(), Errno> {
        let socket = self.socket_mut(id).ok_or(Errno::ENOTSOCK)?;
        let (domain, kind) = (socket.domain, socket.kind);
        if matches!(domain, Domain::Netlink | Domain::Packet) {
            return Err(Errno::EOPNOTSUPP);
        }
        socket.read_shut |= read;
        socket.write_shut |= write;
        self.announce(id, event::ALL);
        match (domain, kind) {
            (Domain::Unix, _) => self.shut_down_unix(id, read, write),
            (_, SocketType::Stream) => self.shut_down_tcp(id, read, write),
            _ => self.shut_down_udp(id),
        }
    }

    /// Whether a socket has space for one more message or connection, or is closed.
    pub fn has_room(&self, id: ObjectId) -> bool {
        self.socket(id).is_none_or(|socket| {
            if socket.is_listening() {
                socket.has_backlog_room()
            } else {
                !socket.is_full_for_unconnected()
            }
        })
    }
}

impl Kernel<'_, '_> {
    /// Receives the first bytes or message of the queue.
    fn receive_first(
        &mut self,
        open: OpenObject<'_>,
        wanted: u64,
        flags: u32,
    ) -> Result<Received, Stop> {
        let socket = self.socket_of(open)?;
        match (socket.domain, socket.kind) {
            (Domain::Inet | Domain::Inet6, SocketType::Stream) => {
                self.receive_tcp(open, wanted, flags)
            }
            (Domain::Unix, SocketType::Stream) => self.receive_unix(open, wanted, flags),
            _ => self.receive_datagram(open, wanted, flags),
        }
    }

    /// Sends as many bytes as fit, or one message.
    pub fn send(
        &mut self,
        open: OpenObject<'_>,
        parts: &[Buffer],
        ancillary: &Ancillary,
        flags: u32,
    ) -> Result<u64, Stop> {
        let socket = self.socket_of(open)?;
        match (socket.domain, socket.kind) {
            (Domain::Unix, SocketType::Stream) => self.send_unix(open, parts, ancillary, flags),
            (Domain::Unix, _) => self.send_unix_message(open, parts, ancillary, flags),
            (Domain::Netlink, _) => self.send_netlink(open, parts),
            (Domain::Packet, _) => self.send_packet(open, parts, ancillary.to.as_ref()),
            (_, SocketType::Raw) => self.send_raw(open, parts, ancillary.to.as_ref(), flags),
            _ if socket.is_ping() => self.send_ping(open, parts, ancillary.to.as_ref(), flags),
            (_, SocketType::Stream) => self.send_tcp(open, parts, flags),
            _ => self.send_udp(open, parts, ancillary, flags),
        }
    }

    /// The socket behind an open file.
    pub fn socket_of(&mut self, open: OpenObject<'_>) -> Result<&mut Socket, Stop> {
        let socket = self.host.socket_mut(open.object);
        socket.ok_or(Stop::Errno(Errno::ENOTSOCK))
    }

    /// Blocks until a socket has one of these events, subject to its timeouts and the flags of the
    /// call.
    pub fn wait_for_socket(
        &mut self,
        open: OpenObject<'_>,
        events: u16,
        flags: u32,
        what: &'static str,
    ) -> Stop {
        self.wait_until(
            open,
            WaitCondition::Ready(vec![(open.id, events)]),
            events,
            flags,
            what,
        )
    }

    /// Blocks until a condition holds, subject to timeouts and flags; `events` tell whether the
    /// caller receives or sends.
    pub fn wait_until(
        &mut self,
        open: OpenObject<'_>,
        condition: WaitCondition,
        events: u16,
        flags: u32,
        what: &'static str,
    ) -> Stop {
        let nonblocking = open.description.flags.has(OpenFlags::NONBLOCK);
        if nonblocking || flags & message_flag::DONT_WAIT != 0 {
            return Errno::EAGAIN.into();
        }
        let timeout = self.host.socket(open.object).and_then(|socket| {
            if events & event::IN != 0 {
                socket.options.receive_timeout_ns
            } else {
                socket.options.send_timeout_ns
            }
        });
        let Some(timeout) = timeout else {
            return self.wait_restartable(condition, what);
        };
        let deadline = self.host.clock_ns.saturating_add(timeout);
        match self.wait(condition, Some(deadline), what) {
            Ok(()) => Errno::EAGAIN.into(),
            Err(stop) => stop,
        }
    }

    /// No receiver is left: `EPIPE`, and `SIGPIPE` unless `MSG_NOSIGNAL` is set.
    fn broken_pipe(&mut self, flags: u32) -> Stop {
        // If bytes were sent before the call blocked, it returns their number and sends no signal.
        if flags & message_flag::NO_SIGNAL == 0 && self.task().progress == 0 {
            self.raise(SIGPIPE);
        }
        Errno::EPIPE.into()
    }
}

fn readiness(host: &HostState, open: OpenObject<'_>) -> u16 {
    let Some(socket) = host.socket(open.object) else {
        return event::INVALID;
    };
    match (socket.domain, socket.kind) {
        (Domain::Unix, _) => unix::unix_readiness(host, socket),
        (_, SocketType::Stream) => stream::tcp_readiness(host, socket),
        _ => datagram::udp_readiness(socket),
    }
}

fn wake_source(host: &HostState, open: OpenObject<'_>, events: u16) -> WakeSource {
    let Some(socket) = host.socket(open.object) else {
        return WakeSource::None;
    };
    let is_open = socket.is_open_to_all();
    let open_to_all = is_open && !socket.is_connected() && events & event::IN != 0;
    let is_remote = host.wire.is_networked && (socket.link.is_some() || is_open);
    if socket.is_listening() || open_to_all || is_remote {
        WakeSource::External
    } else {
        WakeSource::None
    }
}

fn close(host: &mut HostState, open: OpenObject<'_>) {
    let Some(socket) = host.socket(open.object) else {
        return;
    };
    match (socket.domain, socket.kind) {
        (Domain::Unix, _) => unix::close_unix(host, open.object, true),
        (_, SocketType::Stream) => stream::close_tcp(host, open.object),
        _ => host.objects.remove(open.object.0),
    }
}

/// Bytes that can be received without blocking.
pub fn available(host: &HostState, id: ObjectId) -> Option<u64> {
    let socket = host.socket(id)?;
    if socket.kind.has_connections() {
        Some(socket.readable())
    } else {
        Some(socket.inbox.first().map_or(0, ReceivedMessage::len))
    }
}
