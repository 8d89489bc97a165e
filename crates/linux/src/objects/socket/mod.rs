//! Sockets: what is behind the descriptor. How bytes get from one socket to another is in `stream` and
//! `datagram`; which socket an address leads to is in `network`.

mod address;
mod datagram;
mod inbox;
mod netlink;
mod network;
mod options;
mod remote;
mod stream;
mod unix;

use everett_vm::Buffer;

pub use address::{AF_UNSPEC, Address, Domain, STORAGE_SIZE, family, unspecified};
pub use inbox::{Credentials, Inbox, Message};
pub use netlink::{INTERFACES, Interface};
pub use network::{Network, Route};
pub use options::{Options, level};
pub use remote::Link;

use super::{Object, ObjectId, Open, Operations, event};
use crate::errno::Errno;
use crate::files::{InodeId, OpenFlags};
use crate::host::HostState;
use crate::kernel::{Kernel, Stop};
use crate::packets::PacketKind;
use crate::syscalls::signals::SIGPIPE;
use crate::wait::{Hope, Until};

/// How bytes travel.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// `SOCK_STREAM`: bytes in order.
    Stream,
    /// `SOCK_DGRAM`: messages, each on its own.
    Datagram,
    /// `SOCK_SEQPACKET`: messages in order over a connection.
    Packets,
    /// `SOCK_RAW`, as `AF_NETLINK` has it.
    Raw,
}

impl Kind {
    /// The kind with this number.
    pub fn from_number(number: u64) -> Option<Kind> {
        let mut kinds = [Kind::Stream, Kind::Datagram, Kind::Packets, Kind::Raw].into_iter();
        kinds.find(|kind| u64::from(kind.number()) == number)
    }

    /// Its number.
    pub fn number(self) -> u32 {
        match self {
            Kind::Stream => 1,
            Kind::Datagram => 2,
            Kind::Raw => 3,
            Kind::Packets => 5,
        }
    }

    /// Nothing is sent before there is a connection.
    pub fn has_connections(self) -> bool {
        matches!(self, Kind::Stream | Kind::Packets)
    }
}

/// Where a socket is in its life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// Not connected, or not any more.
    Idle,
    /// It takes connections.
    Listening {
        /// How many connections wait at most, but one.
        backlog: u32,
        /// Connections that were not accepted yet, the oldest first.
        pending: Vec<ObjectId>,
    },
    /// It waits until there is room for it where it wants to connect to.
    Connecting {
        /// It began in this order.
        since: u64,
    },
    /// It has a peer, or had one that is gone.
    Connected {
        /// The socket at the other end; `None` if it is closed, or where addresses are looked up each time.
        peer: Option<ObjectId>,
    },
}

/// What `connect` has told its callers so far.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Told {
    /// Nothing.
    Nothing,
    /// That a connection is under way.
    Underway,
    /// That there is a connection.
    Connected,
}

/// A socket.
#[derive(Clone, Debug)]
pub struct Socket {
    /// Family of its addresses.
    pub domain: Domain,
    /// How bytes travel.
    pub kind: Kind,
    /// Number of the protocol.
    pub protocol: u32,
    /// What can be set.
    pub options: Options,
    /// Where it is in its life.
    pub state: State,
    /// What `connect` has told.
    pub told: Told,
    /// The error that the next call gets.
    pub error: Option<Errno>,
    /// Nothing more is received, once what is there is gone.
    pub read_shut: bool,
    /// Nothing more can be sent.
    pub write_shut: bool,
    /// The peer knows that nothing more is sent.
    pub end_sent: bool,
    /// The peer has said that it sends no more.
    pub end_received: bool,
    /// Its own address.
    pub local: Address,
    /// The address of its peer.
    pub remote: Address,
    /// Its address was chosen by the program, and stays when it is disconnected.
    pub bound: bool,
    /// So was its port.
    pub bound_port: bool,
    /// The node in the tree that bears its name.
    pub inode: Option<InodeId>,
    /// What came in.
    pub inbox: Inbox,
    /// It wanted to send more than there was room for.
    pub wants_room: bool,
    /// Who made it, or listens.
    pub owner: Credentials,
    /// Who is at the other end.
    pub peer_owner: Option<Credentials>,
    /// The connection to a socket of another host.
    pub link: Option<Box<Link>>,
}

impl Socket {
    /// A new socket.
    pub fn new(domain: Domain, kind: Kind, protocol: u32, owner: Credentials) -> Socket {
        Socket {
            domain,
            kind,
            protocol,
            options: Options::new(domain, kind),
            state: State::Idle,
            told: Told::Nothing,
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
            wants_room: false,
            owner,
            peer_owner: None,
            link: None,
        }
    }

    /// It speaks TCP.
    pub fn is_tcp(&self) -> bool {
        self.domain.is_internet() && self.kind == Kind::Stream
    }

    /// It speaks UDP.
    pub fn is_udp(&self) -> bool {
        self.domain.is_internet() && self.kind == Kind::Datagram
    }

    /// The socket at the other end.
    pub fn peer(&self) -> Option<ObjectId> {
        match self.state {
            State::Connected { peer } => peer,
            _ => None,
        }
    }

    /// It has a peer, or had one.
    pub fn is_connected(&self) -> bool {
        matches!(self.state, State::Connected { .. })
    }

    /// It takes connections.
    pub fn is_listening(&self) -> bool {
        matches!(self.state, State::Listening { .. })
    }

    /// There is room for one more that waits to be accepted.
    pub fn has_backlog_room(&self) -> bool {
        match &self.state {
            State::Listening { backlog, pending } => pending.len() <= *backlog as usize,
            _ => false,
        }
    }

    /// Takes connections from now on, or takes another number of them.
    pub fn listen(&mut self, most: u32) {
        match &mut self.state {
            State::Listening { backlog, .. } => *backlog = most,
            state => {
                *state = State::Listening {
                    backlog: most,
                    pending: Vec::new(),
                }
            }
        }
    }

    /// Takes the error that the next call gets.
    pub fn take_error(&mut self) -> Option<Errno> {
        self.error.take()
    }
}

/// What can be done with a socket.
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
    write: |kernel, open, parts| kernel.send(open, parts, &Parcel::default(), 0),
    readiness,
    hope,
    close,
    available: |host, open| available(host, open.object),
    for_each_term: |object, visit| {
        if let Object::Socket(socket) = object {
            socket.inbox.for_each_term(visit);
            if let Some(link) = &socket.link {
                link.unsent.for_each_term(visit);
            }
        }
    },
    ..Operations::CLOSED
};

/// What travels with bytes that are sent.
#[derive(Clone, Debug, Default)]
pub struct Parcel {
    /// Where they go to, where that is said.
    pub to: Option<Address>,
    /// Open files.
    pub rights: Vec<crate::files::DescriptionId>,
    /// Who sends them, where that is said.
    pub credentials: Option<Credentials>,
}

/// What was received.
#[derive(Clone, Debug)]
pub struct Received {
    /// The bytes.
    pub bytes: Buffer,
    /// How long the message was.
    pub full_len: u64,
    /// From where, where it is a message.
    pub from: Option<Address>,
    /// To which address.
    pub to: Address,
    /// Open files that came along. They belong to the receiver now.
    pub rights: Vec<crate::files::DescriptionId>,
    /// Who sent it.
    pub credentials: Option<Credentials>,
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
        }
    }

    /// The end of a stream.
    pub fn end() -> Received {
        Received::bytes(Buffer::zeroed(0))
    }
}

/// Flags of sending and receiving.
pub mod message_flag {
    pub const OUT_OF_BAND: u32 = 0x1;
    pub const PEEK: u32 = 0x2;
    pub const CONTROL_TRUNCATED: u32 = 0x8;
    pub const TRUNCATE: u32 = 0x20;
    pub const DONT_WAIT: u32 = 0x40;
    pub const WAIT_ALL: u32 = 0x100;
    pub const ERROR_QUEUE: u32 = 0x2000;
    pub const NO_SIGNAL: u32 = 0x4000;
    pub const CLOSE_ON_EXEC: u32 = 0x4000_0000;
}

impl HostState {
    /// A socket.
    pub fn socket(&self, id: ObjectId) -> Option<&Socket> {
        match self.objects.get(id.0)? {
            Object::Socket(socket) => Some(socket),
            _ => None,
        }
    }

    /// The same for changing it.
    pub fn socket_mut(&mut self, id: ObjectId) -> Option<&mut Socket> {
        match self.objects.get_mut(id.0)? {
            Object::Socket(socket) => Some(socket),
            _ => None,
        }
    }

    /// All sockets, by number.
    pub fn sockets(&self) -> impl Iterator<Item = (ObjectId, &Socket)> {
        self.objects.iter().filter_map(|(id, object)| match object {
            Object::Socket(socket) => Some((ObjectId(id), &**socket)),
            _ => None,
        })
    }

    /// Something arrives at a socket.
    pub(self) fn deliver(&mut self, to: ObjectId, message: Message) {
        if self.packets.is_some() {
            self.log_received(to, PacketKind::Data((*message.bytes).clone()));
        }
        if let Some(socket) = self.socket_mut(to) {
            socket.inbox.push(message);
            self.announce(to, event::READING);
        }
    }

    /// An object hands on messages, each as a whole.
    pub fn keeps_messages(&self, id: ObjectId) -> bool {
        self.socket(id)
            .is_some_and(|socket| socket.kind != Kind::Stream)
    }

    /// `shutdown`.
    pub fn shut_down(&mut self, id: ObjectId, read: bool, write: bool) -> Result<(), Errno> {
        let socket = self.socket_mut(id).ok_or(Errno::ENOTSOCK)?;
        let (domain, kind) = (socket.domain, socket.kind);
        if domain == Domain::Netlink {
            return Err(Errno::EOPNOTSUPP);
        }
        socket.read_shut |= read;
        socket.write_shut |= write;
        self.announce(id, event::ALL);
        match (domain, kind) {
            (Domain::Unix, _) => self.shut_down_unix(id, read, write),
            (_, Kind::Stream) => self.shut_down_tcp(id, read, write),
            _ => self.shut_down_udp(id),
        }
    }

    /// A socket takes one more message or connection, or is none any more.
    pub fn has_room(&self, id: ObjectId) -> bool {
        self.socket(id).is_none_or(|socket| {
            if socket.is_listening() {
                socket.has_backlog_room()
            } else {
                !socket.is_full_for_strangers()
            }
        })
    }
}

impl Kernel<'_, '_> {
    /// The next bytes or the next message.
    pub fn receive(&mut self, open: Open<'_>, wanted: u64, flags: u32) -> Result<Received, Stop> {
        let socket = self.socket_of(open)?;
        match (socket.domain, socket.kind) {
            (Domain::Inet | Domain::Inet6, Kind::Stream) => self.receive_tcp(open, wanted, flags),
            (Domain::Unix, Kind::Stream) => self.receive_unix(open, wanted, flags),
            _ => self.receive_datagram(open, wanted, flags),
        }
    }

    /// Sends bytes, as many as there is room for, or one message.
    pub fn send(
        &mut self,
        open: Open<'_>,
        parts: &[Buffer],
        parcel: &Parcel,
        flags: u32,
    ) -> Result<u64, Stop> {
        let socket = self.socket_of(open)?;
        match (socket.domain, socket.kind) {
            (Domain::Unix, Kind::Stream) => self.send_unix(open, parts, parcel, flags),
            (Domain::Unix, _) => self.send_unix_message(open, parts, parcel, flags),
            (Domain::Netlink, _) => self.send_netlink(open, parts),
            (_, Kind::Stream) => self.send_tcp(open, parts, flags),
            _ => self.send_udp(open, parts, parcel.to.as_ref(), flags),
        }
    }

    /// The socket behind an open file.
    pub fn socket_of(&mut self, open: Open<'_>) -> Result<&mut Socket, Stop> {
        let socket = self.host.socket_mut(open.object);
        socket.ok_or(Stop::Errno(Errno::ENOTSOCK))
    }

    /// Waits for events of a socket as long as its options and the call's flags say.
    pub fn wait_for_socket(
        &mut self,
        open: Open<'_>,
        events: u16,
        flags: u32,
        what: &'static str,
    ) -> Stop {
        self.wait_until(
            open,
            Until::Ready(vec![(open.id, events)]),
            events,
            flags,
            what,
        )
    }

    /// The same for any condition; `events` say whether it is for receiving or for sending.
    pub fn wait_until(
        &mut self,
        open: Open<'_>,
        until: Until,
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
            return self.wait_restartable(until, what);
        };
        let deadline = self.host.clock_ns.saturating_add(timeout);
        match self.wait(until, Some(deadline), what) {
            Ok(()) => Errno::EAGAIN.into(),
            Err(stop) => stop,
        }
    }

    /// Nobody is there to receive: a signal, unless the caller wants none.
    fn broken_pipe(&mut self, flags: u32) -> Stop {
        // What was sent before it had to wait is what the call returns; then there is no signal.
        if flags & message_flag::NO_SIGNAL == 0 && self.task().progress == 0 {
            self.raise(SIGPIPE);
        }
        Errno::EPIPE.into()
    }
}

fn readiness(host: &HostState, open: Open<'_>) -> u16 {
    let Some(socket) = host.socket(open.object) else {
        return event::INVALID;
    };
    match (socket.domain, socket.kind) {
        (Domain::Unix, _) => unix::unix_readiness(host, socket),
        (_, Kind::Stream) => stream::tcp_readiness(host, socket),
        _ => datagram::udp_readiness(socket),
    }
}

fn hope(host: &HostState, open: Open<'_>, events: u16) -> Hope {
    let Some(socket) = host.socket(open.object) else {
        return Hope::None;
    };
    let open_to_all = socket.is_udp() && !socket.is_connected() && events & event::IN != 0;
    let is_remote = host.wire.is_networked && (socket.link.is_some() || socket.is_udp());
    if socket.is_listening() || open_to_all || is_remote {
        Hope::Outside
    } else {
        Hope::None
    }
}

fn close(host: &mut HostState, open: Open<'_>) {
    let Some(socket) = host.socket(open.object) else {
        return;
    };
    match (socket.domain, socket.kind) {
        (Domain::Unix, _) => unix::close_unix(host, open.object, true),
        (_, Kind::Stream) => stream::close_tcp(host, open.object),
        _ => host.objects.remove(open.object.0),
    }
}

/// Bytes that can be received without waiting.
pub fn available(host: &HostState, id: ObjectId) -> Option<u64> {
    let socket = host.socket(id)?;
    if socket.kind.has_connections() {
        Some(socket.inbox.len())
    } else {
        Some(socket.inbox.first().map_or(0, Message::len))
    }
}
