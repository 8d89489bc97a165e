//! Sockets: creating, binding and connecting.

use everett_vm::Value;
use std::net::SocketAddr;

use crate::capabilities::{self, NET_BIND_SERVICE};
use crate::errno::Errno;
use crate::files::{Description, InodeKind, OpenFlags, Target};
use crate::frames::protocol;
use crate::ids::{DescriptionId, InodeId, ObjectId};
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::socket::{
    AF_UNSPEC, Address, ConnectReport, Credentials, Domain, LinkAddress, STORAGE_SIZE, Socket,
    SocketState, SocketType, family, unspecified,
};
use crate::objects::{Object, OpenObject};
use crate::table::ArgKind::{Fd, Flags, Int, Pointer};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "socket",
        41,
        &[Int, Flags, Int],
        &[Errno::EMFILE, Errno::ENOBUFS],
        socket,
    )
    .without("raw sockets of IPv6, rings of packet sockets, other families"),
    Row::new("connect", 42, &[Fd, Pointer, Int], CONNECT_ERRORS, connect),
    Row::new("accept", 43, &[Fd, Pointer, Pointer], ACCEPT_ERRORS, accept),
    Row::new(
        "accept4",
        288,
        &[Fd, Pointer, Pointer, Flags],
        ACCEPT_ERRORS,
        accept4,
    ),
    Row::new("shutdown", 48, &[Fd, Int], &[Errno::ENOTCONN], shutdown),
    Row::new(
        "bind",
        49,
        &[Fd, Pointer, Int],
        &[Errno::EADDRINUSE, Errno::EACCES],
        bind,
    ),
    Row::new(
        "socketpair",
        53,
        &[Int, Flags, Int, Pointer],
        &[Errno::EMFILE, Errno::ENFILE],
        socketpair,
    ),
    Row::new("listen", 50, &[Fd, Int], &[Errno::EADDRINUSE], listen),
    Row::new(
        "getsockname",
        51,
        &[Fd, Pointer, Pointer],
        &[Errno::ENOBUFS],
        getsockname,
    ),
    Row::new(
        "getpeername",
        52,
        &[Fd, Pointer, Pointer],
        &[Errno::ENOTCONN],
        getpeername,
    ),
];

const CONNECT_ERRORS: &[Errno] = &[
    Errno::ECONNREFUSED,
    Errno::ETIMEDOUT,
    Errno::ENETUNREACH,
    Errno::EINTR,
];
const ACCEPT_ERRORS: &[Errno] = &[Errno::EINTR, Errno::ECONNABORTED, Errno::EMFILE];

/// Bytes of a `struct sockaddr_ll` before the hardware address.
const LINK_HEADER: usize = 12;
/// Bytes of the family, which starts every address.
const FAMILY_SIZE: u64 = 2;
/// Bytes of a `struct sockaddr_in` before its padding.
const BEFORE_PADDING: u64 = 8;
/// The first port that every user may bind to (`ip_unprivileged_port_start`).
const UNPRIVILEGED_PORTS: u16 = 1024;
/// Maximum backlog that `listen` accepts (`somaxconn`).
const MAX_PENDING: u32 = 4096;

/// A socket and its open file description, copied out of the tables so that both can be used.
pub struct OpenSocket {
    pub object: ObjectId,
    pub id: DescriptionId,
    pub description: Description,
}

impl OpenSocket {
    pub fn open(&self) -> OpenObject<'_> {
        OpenObject {
            object: self.object,
            description: &self.description,
            id: self.id,
            // Sockets do not depend on the calling thread.
            caller: (0, 0),
        }
    }
}

fn socket(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let decoded = decode_socket_args(call);
    let [family, kind, protocol] = [0, 1, 2].map(|at| call.args[at] as u32);
    // Not a refusal: Linux rejects a raw socket without a protocol, too.
    let is_wrong = [family, kind & 0xf, protocol] == [2, 3, 0];
    let is_raw6 = family == 10 && kind & 0xf == 3 && protocol != 0;
    if is_raw6 && !kernel.is_capable(capabilities::NET_RAW) {
        return Err(Errno::EPERM.into());
    }
    if let Err(errno) = decoded
        && errno != Errno::EINVAL
        && !is_wrong
    {
        let what = format!(
            "socket of family {family}, type {}, protocol {protocol}",
            kind & 0xf
        );
        kernel.refuse("socket", what);
    }
    let (domain, kind, protocol, flags) = decoded?;
    let is_raw = domain == Domain::Packet || domain == Domain::Inet && kind == SocketType::Raw;
    if is_raw && !kernel.process().capabilities.has(capabilities::NET_RAW) {
        return Err(Errno::EPERM.into());
    }
    let mut socket = Socket::new(domain, kind, protocol, kernel.credentials());
    if domain == Domain::Packet {
        socket.local = Address::Link(LinkAddress {
            protocol: (protocol as u16).swap_bytes(),
            ..LinkAddress::default()
        });
    } else if is_raw {
        let any = SocketAddr::new(unspecified(domain), protocol as u16);
        socket.local = Address::Internet(any);
        socket.bound_port = true;
        socket.options.header_included = protocol == u32::from(protocol::RAW);
    }
    let fd = kernel.open_new(
        Object::Socket(Box::new(socket)),
        flags | OpenFlags::READ_WRITE,
    )?;
    Ok(Value::concrete(fd as u64))
}

/// Checks the arguments of `socket`: family, type, protocol and descriptor flags.
pub fn decode_socket_args(call: &Call) -> Result<(Domain, SocketType, u32, u32), Errno> {
    const KIND_MASK: u64 = 0xf;
    const KINDS: u64 = 11;
    const ICMP: u32 = 1;
    /// Number of IP protocols, including those internal to the kernel.
    const PROTOCOLS: u32 = 263;
    const TCP: u32 = 6;
    const UDP: u32 = 17;
    let flags = call.args[1] as u32 & !(KIND_MASK as u32);
    if flags & !(OpenFlags::NONBLOCK | OpenFlags::CLOSE_ON_EXEC) != 0 {
        return Err(Errno::EINVAL);
    }
    let number = call.args[1] & KIND_MASK;
    if number >= KINDS {
        return Err(Errno::EINVAL);
    }
    let domain = Domain::from_number(call.args[0] & 0xffff_ffff).ok_or(Errno::EAFNOSUPPORT)?;
    let kind = SocketType::from_number(number).ok_or(Errno::ESOCKTNOSUPPORT)?;
    let protocol = call.args[2] as u32;
    let (kind, protocol) = match (domain, kind, protocol) {
        (Domain::Unix, _, 2..) => return Err(Errno::EPROTONOSUPPORT),
        (Domain::Unix, SocketType::Raw, _) => (SocketType::Datagram, 0),
        (Domain::Unix, _, _) => (kind, 0),
        (Domain::Inet | Domain::Inet6, SocketType::Stream, 0 | TCP) => (kind, TCP),
        (Domain::Inet | Domain::Inet6, SocketType::Datagram, 0 | UDP) => (kind, UDP),
        (Domain::Inet, SocketType::Datagram, ICMP) => (kind, ICMP),
        (Domain::Inet | Domain::Inet6, _, PROTOCOLS..) => return Err(Errno::EINVAL),
        (Domain::Inet, SocketType::Raw, 1..) => (kind, protocol),
        (Domain::Inet | Domain::Inet6, SocketType::Packets, _) => {
            return Err(Errno::ESOCKTNOSUPPORT);
        }
        (Domain::Packet, SocketType::Raw | SocketType::Datagram, _) => (kind, protocol & 0xffff),
        (Domain::Packet, _, _) => return Err(Errno::ESOCKTNOSUPPORT),
        (Domain::Inet | Domain::Inet6, _, _) => return Err(Errno::EPROTONOSUPPORT),
        (Domain::Netlink, SocketType::Raw | SocketType::Datagram, 0) => (kind, 0),
        (Domain::Netlink, SocketType::Raw | SocketType::Datagram, _) => {
            return Err(Errno::EPROTONOSUPPORT);
        }
        (Domain::Netlink, _, _) => return Err(Errno::ESOCKTNOSUPPORT),
    };
    Ok((domain, kind, protocol, flags))
}

fn connect(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let socket = kernel.find_socket(call.int(0))?;
    let bytes = kernel.read_address(call.args[1], call.int(2))?;
    let domain = kernel.socket_of(socket.open())?.domain;
    let Some(family) = family(&bytes) else {
        return Err(Errno::EINVAL.into());
    };
    let kind = kernel.socket_of(socket.open())?.kind;
    let open = socket.open();
    if let (SocketType::Stream, Some(to)) = (kind, kernel.peer_at(&bytes)) {
        // A live peer behind a path is used like a peer with an internet address.
        kernel.socket_of(open)?.domain = Domain::Inet;
        kernel.connect_tcp(open, to)?;
        return Ok(Value::ZERO);
    }
    match (domain, kind) {
        (Domain::Netlink, _) => {
            kernel.refuse("connect", "connect of a netlink socket");
            return Err(Errno::EOPNOTSUPP.into());
        }
        (Domain::Packet, _) => return Err(Errno::EOPNOTSUPP.into()),
        (Domain::Unix, SocketType::Datagram) if family == AF_UNSPEC => {
            kernel.host.disconnect_by_request(open.object);
        }
        (Domain::Unix, SocketType::Datagram) => {
            kernel.connect_unix_datagram(open, &Address::parse_unix(&bytes)?)?;
        }
        (Domain::Unix, _) => kernel.connect_unix(open, &Address::parse_unix(&bytes)?)?,
        _ if family == AF_UNSPEC => kernel.host.disconnect_by_request(open.object),
        (_, SocketType::Datagram | SocketType::Raw) => {
            kernel.connect_udp(open, Address::parse_internet(domain, &bytes)?)?;
        }
        _ => kernel.connect_tcp(open, Address::parse_internet(domain, &bytes)?)?,
    }
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// The address of the live peer behind a path.
    fn peer_at(&self, address: &[u8]) -> Option<SocketAddr> {
        let paths = &self.host.options.peer_paths;
        if paths.is_empty() {
            return None;
        }
        let Ok(Address::Path(path)) = Address::parse_unix(address) else {
            return None;
        };
        let known = paths.iter().find(|(known, _)| *known == path);
        known.map(|(_, address)| *address)
    }
}

fn accept(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.accept_as(call, 0)
}

fn accept4(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let flags = call.args[3] as u32;
    if flags & !(OpenFlags::NONBLOCK | OpenFlags::CLOSE_ON_EXEC) != 0 {
        return Err(Errno::EINVAL.into());
    }
    kernel.accept_as(call, flags)
}

fn shutdown(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let socket = kernel.find_socket(call.int(0))?;
    let (read, write) = match call.int(1) {
        0 => (true, false),
        1 => (false, true),
        2 => (true, true),
        _ => return Err(Errno::EINVAL.into()),
    };
    kernel.host.shut_down(socket.object, read, write)?;
    Ok(Value::ZERO)
}

fn bind(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let found = kernel.find_socket(call.int(0))?;
    let bytes = kernel.read_address(call.args[1], call.int(2))?;
    match kernel.socket_of(found.open())?.domain {
        Domain::Unix => kernel.bind_unix(found.object, &bytes),
        Domain::Netlink => {
            let word = |at: usize| {
                let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
                word.map(|word| u32::from_le_bytes(*word))
                    .ok_or(Errno::EINVAL)
            };
            kernel.bind_netlink(found.object, word(4)?, word(8)?)?;
            Ok(Value::ZERO)
        }
        Domain::Packet => {
            kernel.bind_packet(found.object, &bytes)?;
            Ok(Value::ZERO)
        }
        Domain::Inet | Domain::Inet6 => kernel.bind_internet(found.object, &bytes),
    }
}

fn listen(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let found = kernel.find_socket(call.int(0))?;
    let backlog = (call.args[1] as u32).min(MAX_PENDING);
    let socket = kernel.socket_of(found.open())?;
    if !socket.kind.has_connections() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    match socket.domain {
        Domain::Unix => kernel.listen_unix(found.object, backlog),
        _ => kernel.listen_tcp(found.object, backlog),
    }
}

fn getsockname(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let found = kernel.find_socket(call.int(0))?;
    let socket = kernel.socket_of(found.open())?;
    let mut bytes = socket.local.to_bytes(socket.domain);
    if let Address::Link(own) = socket.local {
        bytes.truncate(LINK_HEADER + usize::from(own.len));
    }
    kernel.write_address(call.args[1], call.args[2], &bytes)?;
    Ok(Value::ZERO)
}

fn getpeername(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let found = kernel.find_socket(call.int(0))?;
    let socket = kernel.socket_of(found.open())?;
    if socket.is_packet() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if !socket.is_connected() {
        return Err(Errno::ENOTCONN.into());
    }
    let bytes = socket.remote.to_bytes(socket.domain);
    kernel.write_address(call.args[1], call.args[2], &bytes)?;
    Ok(Value::ZERO)
}

fn socketpair(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (domain, kind, _, flags) = decode_socket_args(call)?;
    if domain != Domain::Unix {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let first = kernel.process().descriptors.free_from(0)?;
    let second = kernel.process().descriptors.free_from(first + 1)?;
    let fds = [first, second].map(i32::to_le_bytes).concat();
    kernel.write_bytes(call.args[3], &fds)?;
    let pair = kernel.unix_pair(kind);
    for (fd, object) in [first, second].into_iter().zip(pair) {
        let flags = flags | OpenFlags::READ_WRITE;
        kernel.install(fd, Description::new(Target::Object(object), flags));
    }
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// Credentials of the calling process.
    pub fn credentials(&self) -> Credentials {
        let process = self.process();
        Credentials {
            pid: process.pid,
            uid: process.uid[1],
            gid: process.gid[1],
        }
    }

    /// The socket behind a descriptor.
    pub fn find_socket(&mut self, fd: i32) -> Result<OpenSocket, Stop> {
        let (descriptor, description) = self.description(fd)?;
        let Target::Object(object) = description.target else {
            return Err(Errno::ENOTSOCK.into());
        };
        if self.host.socket(object).is_none() {
            return Err(Errno::ENOTSOCK.into());
        }
        Ok(OpenSocket {
            object,
            id: descriptor.description,
            description,
        })
    }

    /// Reads an encoded address. Padding has no meaning and may be symbolic: it counts as zero.
    pub fn read_address(&mut self, address: u64, len: i32) -> Result<Vec<u8>, Stop> {
        let len = u64::try_from(len).ok().filter(|len| *len <= STORAGE_SIZE);
        let len = len.ok_or(Errno::EINVAL)?;
        self.check(address, len, false)?;
        let mut bytes = self.read_bytes(address, len.min(FAMILY_SIZE))?;
        let meaningful = match bytes == Domain::Inet.number().to_le_bytes() {
            true => len.min(BEFORE_PADDING),
            false => len,
        };
        let from = bytes.len() as u64;
        bytes.extend(self.read_bytes(address.wrapping_add(from), meaningful - from)?);
        bytes.resize(len as usize, 0);
        Ok(bytes)
    }

    /// Writes an address, truncated to the size of the buffer, and its full length.
    pub fn write_address(&mut self, address: u64, len_at: u64, bytes: &[u8]) -> Result<(), Stop> {
        let room = self.address_room(len_at)?;
        self.put_address(address, len_at, room, bytes)
    }

    /// Reads the size of an address buffer.
    pub fn address_room(&mut self, len_at: u64) -> Result<usize, Stop> {
        let room = self.read_value(len_at, 4)?;
        let room = self.vm.concretize(room)? as i32;
        self.check(len_at, 4, true)?;
        Ok(usize::try_from(room).map_err(|_| Errno::EINVAL)?)
    }

    /// Writes an address into a buffer of known size.
    pub fn put_address(
        &mut self,
        address: u64,
        len_at: u64,
        room: usize,
        bytes: &[u8],
    ) -> Result<(), Stop> {
        self.write_bytes(address, &bytes[..room.min(bytes.len())])?;
        self.write_bytes(len_at, &(bytes.len() as u32).to_le_bytes())
    }

    fn bind_internet(&mut self, object: ObjectId, bytes: &[u8]) -> Answer {
        let socket = self.host.socket(object).ok_or(Errno::ENOTSOCK)?;
        let domain = socket.domain;
        let wanted = match family(bytes) {
            // Accepted for compatibility, as in Linux.
            Some(AF_UNSPEC) if domain == Domain::Inet && bytes.len() >= 16 => {
                if bytes[4..8] != [0; 4] {
                    return Err(Errno::EAFNOSUPPORT.into());
                }
                let port = u16::from_be_bytes([bytes[2], bytes[3]]);
                SocketAddr::new(unspecified(domain), port)
            }
            _ => Address::parse_internet(domain, bytes)?,
        };
        let is_mapped = domain == Domain::Inet6 && wanted.is_ipv4();
        if is_mapped && socket.options.only_v6 {
            return Err(Errno::EINVAL.into());
        }
        let ip = wanted.ip();
        // A stream that is bound to one of these can be had, but no connection of it.
        let to_many = ip.is_multicast() || self.host.network.is_broadcast(ip);
        let is_known = ip.is_unspecified() || to_many || self.host.network.is_own(ip);
        if !is_known && !socket.options.binds_anywhere() {
            return Err(Errno::EADDRNOTAVAIL.into());
        }
        if socket.is_raw() && socket.state == SocketState::Idle {
            let port = socket.protocol as u16;
            if let Some(socket) = self.host.socket_mut(object) {
                socket.local = Address::Internet(SocketAddr::new(ip, port));
                socket.bound = true;
            }
            return Ok(Value::ZERO);
        }
        let needs_capability = (1..UNPRIVILEGED_PORTS).contains(&wanted.port());
        if needs_capability && !socket.is_ping() && !self.is_capable(NET_BIND_SERVICE) {
            return Err(Errno::EACCES.into());
        }
        let has_port = socket
            .local
            .internet()
            .is_some_and(|local| local.port() != 0);
        if socket.state != SocketState::Idle || has_port {
            return Err(Errno::EINVAL.into());
        }
        let local = self.host.take_address(object, wanted)?;
        if let Some(socket) = self.host.socket_mut(object) {
            socket.local = Address::Internet(local);
            socket.bound = true;
            socket.bound_port = wanted.port() != 0;
        }
        Ok(Value::ZERO)
    }

    fn bind_unix(&mut self, object: ObjectId, bytes: &[u8]) -> Answer {
        let wanted = Address::parse_unix(bytes)?;
        let socket = self.host.socket(object).ok_or(Errno::ENOTSOCK)?;
        let (kind, is_named) = (socket.kind, socket.local != Address::Unnamed);
        let local = match wanted {
            Address::Unnamed if is_named => return Ok(Value::ZERO),
            Address::Unnamed => self.host.free_unix_name(kind),
            named => named,
        };
        let mut inode = None;
        match &local {
            Address::Path(path) => {
                let cwd = self.process().cwd;
                if self.resolve_dentry(cwd, path)?.1.is_some() {
                    return Err(Errno::EADDRINUSE.into());
                }
                if is_named {
                    return Err(Errno::EINVAL.into());
                }
                inode = Some(self.create_socket_node(path)?);
            }
            _ if is_named => return Err(Errno::EINVAL.into()),
            name if self.host.unix_socket_named(name, kind).is_some() => {
                return Err(Errno::EADDRINUSE.into());
            }
            _ => {}
        }
        if let Some(socket) = self.host.socket_mut(object) {
            socket.local = local;
            socket.inode = inode;
            socket.bound = true;
        }
        Ok(Value::ZERO)
    }

    fn create_socket_node(&mut self, path: &[u8]) -> Result<InodeId, Stop> {
        let cwd = self.process().cwd;
        let (dentry, _) = self.resolve_dentry(cwd, path)?;
        if dentry.must_be_directory {
            return Err(Errno::ENOENT.into());
        }
        Ok(self.create_file(&dentry, InodeKind::Socket, 0o777)?)
    }

    fn listen_unix(&mut self, object: ObjectId, most: u32) -> Answer {
        let owner = self.credentials();
        let socket = self.host.socket_mut(object).ok_or(Errno::ENOTSOCK)?;
        if socket.local == Address::Unnamed {
            return Err(Errno::EINVAL.into());
        }
        if !matches!(
            socket.state,
            SocketState::Idle | SocketState::Listening { .. }
        ) {
            return Err(Errno::EINVAL.into());
        }
        socket.owner = owner;
        socket.listen(most);
        Ok(Value::ZERO)
    }

    fn listen_tcp(&mut self, object: ObjectId, most: u32) -> Answer {
        let socket = self.host.socket(object).ok_or(Errno::ENOTSOCK)?;
        match socket.state {
            SocketState::Listening { .. } => {}
            SocketState::Idle if socket.connect_report == ConnectReport::Nothing => {}
            _ => return Err(Errno::EINVAL.into()),
        }
        let local = match socket.local.internet() {
            Some(local) if local.port() != 0 => local,
            own => {
                let any = SocketAddr::new(unspecified(socket.domain), 0);
                self.host.take_address(object, own.unwrap_or(any))?
            }
        };
        if self.host.has_listener_at(object, local) {
            return Err(Errno::EADDRINUSE.into());
        }
        let owner = self.credentials();
        if let Some(socket) = self.host.socket_mut(object) {
            socket.local = Address::Internet(local);
            socket.owner = owner;
            socket.listen(most);
        }
        self.host.retry_connections(local.port());
        Ok(Value::ZERO)
    }

    fn accept_as(&mut self, call: &Call, flags: u32) -> Answer {
        let found = self.find_socket(call.int(0))?;
        let fd = self.process().descriptors.free_from(0)?;
        if !self.socket_of(found.open())?.kind.has_connections() {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let connection = self.pending_connection(found.open())?;
        let socket = self.host.socket(connection).ok_or(Errno::ECONNABORTED)?;
        let remote = socket.remote.to_bytes(socket.domain);
        if call.args[1] != 0 {
            self.write_address(call.args[1], call.args[2], &remote)?;
        }
        self.host.take_pending(found.object);
        let description =
            Description::new(Target::Object(connection), flags | OpenFlags::READ_WRITE);
        self.install(fd, description);
        Ok(Value::concrete(fd as u64))
    }
}
