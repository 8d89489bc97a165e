//! `setsockopt` and `getsockopt`.

use everett_vm::Value;

use super::groups::{GROUP_INTERFACE, GROUP_INTERFACE6};
use crate::capabilities::NET_RAW;
use crate::errno::Errno;
use crate::frames::protocol;
use crate::ids::ObjectId;
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::socket::{
    Credentials, Domain, LOOPBACK, SO_TIMESTAMP, SO_TIMESTAMPING, SO_TIMESTAMPNS, Socket,
    SocketState, SocketType, UDP_CORK, capabilities_for, has_missing_effect, level,
};
use crate::table::ArgKind::{Fd, Int, Pointer};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "setsockopt",
        54,
        &[Fd, Int, Int, Pointer, Int],
        &[Errno::ENOBUFS],
        setsockopt,
    )
    .without("options of the network stack, which are stored without effect"),
    Row::new(
        "getsockopt",
        55,
        &[Fd, Int, Int, Pointer, Pointer],
        &[Errno::ENOBUFS],
        getsockopt,
    )
    .without("most of TCP_INFO"),
];

const REUSE_ADDRESS: u32 = 2;
const TYPE: u32 = 3;
const ERROR: u32 = 4;
const BROADCAST: u32 = 6;
const SEND_BUFFER: u32 = 7;
const RECEIVE_BUFFER: u32 = 8;
const LINGER: u32 = 13;
const REUSE_PORT: u32 = 15;
const PASS_CREDENTIALS: u32 = 16;
const PEER_CREDENTIALS: u32 = 17;
const RECEIVE_LOW_WATER: u32 = 18;
const SEND_LOW_WATER: u32 = 19;
const RECEIVE_TIMEOUT: u32 = 20;
const SEND_TIMEOUT: u32 = 21;
const BIND_TO_DEVICE: u32 = 25;
const ACCEPTS: u32 = 30;
const FORCE_SEND_BUFFER: u32 = 32;
const FORCE_RECEIVE_BUFFER: u32 = 33;
const PROTOCOL: u32 = 38;
const DOMAIN: u32 = 39;
/// Memory that the socket uses: nine numbers.
const MEMORY: u32 = 55;
const PEEK_OFFSET: u32 = 42;
const LOCK_FILTER: u32 = 44;
const ONLY_V6: u32 = 26;
const HOPS: u32 = 2;
const HEADER_INCLUDED: u32 = 3;
const ICMP_FILTER: u32 = 1;
/// `IP_OPTIONS`, `IP_MTU` and `IPV6_MTU`.
const HEADER_OPTIONS: u32 = 4;
const PATH_MTU: u32 = 14;
const PATH_MTU6: u32 = 24;
/// `IP_MINTTL` and `IPV6_UNICAST_HOPS`.
const LEAST_HOPS: u32 = 21;
const HOPS6: u32 = 16;
/// `IP_TOS`, and its bits about congestion.
const TYPE_OF_SERVICE: u32 = 1;
const CONGESTION: i32 = 3;
/// `IP_MULTICAST_TTL` and `IPV6_MULTICAST_HOPS`.
const GROUP_HOPS: u32 = 33;
const GROUP_HOPS6: u32 = 18;
const TCP_MAXSEG: u32 = 2;
const LEAST_SEGMENT: i32 = 88;
const TCP_INFO: u32 = 11;
const TCP_CONGESTION: u32 = 13;
/// `NETLINK_ADD_MEMBERSHIP` and `NETLINK_DROP_MEMBERSHIP`.
const JOIN_NETLINK: u32 = 1;
const LEAVE_NETLINK: u32 = 2;
/// Read-only socket options.
const ONLY_TOLD: &[u32] = &[TYPE, ERROR, PEER_CREDENTIALS, ACCEPTS, PROTOCOL, DOMAIN];
/// Maximum length of an option that is read.
const MAX: u64 = 256;

/// Formats an option for messages.
fn option_name(level: u32, name: u32) -> String {
    format!("socket option {name} of level {level}")
}

fn setsockopt(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let found = kernel.find_socket(call.int(0))?;
    let (level, name) = (call.args[1] as u32, call.args[2] as u32);
    let len = u64::try_from(call.int(4)).map_err(|_| Errno::EINVAL)?;
    kernel.check_level(found.object, level, Errno::ENOPROTOOPT)?;
    let bytes = kernel.read_bytes(call.args[3], len.min(MAX))?;
    let result = if level == level::SOCKET {
        kernel.set_of_socket(found.object, name, &bytes)
    } else {
        kernel.set_of_protocol(found.object, level, name, &bytes)
    };
    let only_told = level == level::SOCKET && ONLY_TOLD.contains(&name);
    if let Err(Errno::ENOPROTOOPT) = result
        && !only_told
    {
        kernel.refuse("setsockopt", option_name(level, name));
    }
    result?;
    let socket = kernel.socket_of(found.open())?;
    let works = match (level, name) {
        // The segments of TCP have no headers in the model; Linux looks at the least number of
        // hops for TCP only.
        (level::IP, HOPS | LEAST_HOPS) | (level::IPV6, HOPS6) => !socket.is_tcp(),
        (level::SOCKET, BIND_TO_DEVICE) => !socket.kind.has_connections(),
        // Bytes of a stream have no arrival times in the model.
        (level::SOCKET, SO_TIMESTAMP | SO_TIMESTAMPNS | SO_TIMESTAMPING) => {
            socket.kind != SocketType::Stream
        }
        _ => false,
    };
    if (level, name) == (level::UDP, UDP_CORK) && !socket.options.is_corked() {
        kernel.uncork(found.open())?;
    }
    if has_missing_effect(level, name) && !works && bytes.iter().any(|byte| *byte != 0) {
        kernel.refuse("setsockopt", option_name(level, name));
    }
    Ok(Value::ZERO)
}

fn getsockopt(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let found = kernel.find_socket(call.int(0))?;
    let (level, name) = (call.args[1] as u32, call.args[2] as u32);
    let room = kernel.read_value(call.args[4], 4)?;
    let room = kernel.vm.concretize(room)? as i32;
    let otherwise = match kernel.host.socket(found.object).map(|socket| socket.domain) {
        Some(Domain::Inet6) => Errno::ENOPROTOOPT,
        _ => Errno::EOPNOTSUPP,
    };
    kernel.check_level(found.object, level, otherwise)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    if matches!(
        (level, name),
        (level::IP, PATH_MTU) | (level::IPV6, PATH_MTU6)
    ) {
        let mtu = kernel.host.path_mtu(found.object).ok_or(Errno::ENOTCONN)?;
        let told = mtu.to_le_bytes();
        let told = &told[..room.min(told.len())];
        kernel.write_bytes(call.args[3], told)?;
        kernel.write_bytes(call.args[4], &(told.len() as u32).to_le_bytes())?;
        return Ok(Value::ZERO);
    }
    let socket = kernel.host.socket(found.object).ok_or(Errno::ENOTSOCK)?;
    let bytes = if level == level::SOCKET {
        get_of_socket(socket, name)
    } else {
        get_of_protocol(socket, level, name)
    };
    let Some(bytes) = bytes else {
        kernel.refuse("getsockopt", option_name(level, name));
        return Err(Errno::ENOPROTOOPT.into());
    };
    let told = &bytes[..room.min(bytes.len())];
    kernel.check(call.args[4], 4, true)?;
    kernel.write_bytes(call.args[3], told)?;
    kernel.write_bytes(call.args[4], &(told.len() as u32).to_le_bytes())?;
    if (level, name) == (level::SOCKET, ERROR)
        && let Some(socket) = kernel.host.socket_mut(found.object)
    {
        socket.error = None;
    }
    Ok(Value::ZERO)
}

/// Decodes an `int` option; options of IP may also be a single byte.
fn number(bytes: &[u8]) -> Option<i32> {
    bytes.first_chunk().map(|word| i32::from_le_bytes(*word))
}

/// Decodes a timeout from a `struct timeval`; `None` if it is zero.
fn timeout(bytes: &[u8]) -> Result<Option<u64>, Errno> {
    let word = |at: usize| {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
        word.map(|word| i64::from_le_bytes(*word))
            .ok_or(Errno::EINVAL)
    };
    let (seconds, microseconds) = (word(0)?, word(8)?);
    if !(0..1_000_000).contains(&microseconds) {
        return Err(Errno::EDOM);
    }
    let Ok(seconds) = u64::try_from(seconds) else {
        // A negative timeout means no wait.
        return Ok(Some(0));
    };
    let ns = seconds.saturating_mul(1_000_000_000);
    let ns = ns.saturating_add(microseconds as u64 * 1000);
    Ok((ns != 0).then_some(ns))
}

fn timeval(ns: Option<u64>) -> Vec<u8> {
    let ns = ns.unwrap_or(0);
    let parts = [ns / 1_000_000_000, ns % 1_000_000_000 / 1000];
    parts.map(u64::to_le_bytes).concat()
}

impl Kernel<'_, '_> {
    /// Checks that options of this level exist for the socket.
    fn check_level(&mut self, object: ObjectId, level: u32, otherwise: Errno) -> Result<(), Stop> {
        let socket = self.host.socket(object).ok_or(Errno::ENOTSOCK)?;
        let exists = match level {
            level::SOCKET => true,
            level::NETLINK => socket.domain == Domain::Netlink,
            _ if socket.domain == Domain::Unix => return Err(Errno::EOPNOTSUPP.into()),
            level::PACKET => socket.is_packet(),
            level::RAW => socket.is_raw(),
            level::IP => socket.domain.is_internet(),
            level::IPV6 => socket.domain == Domain::Inet6,
            level::TCP => socket.is_tcp(),
            level::UDP => socket.is_udp(),
            _ => {
                self.refuse("setsockopt", format!("socket options of level {level}"));
                false
            }
        };
        if exists {
            Ok(())
        } else {
            Err(otherwise.into())
        }
    }

    /// Checks that the process has a capability that an option needs.
    fn check_option(&self, level: u32, name: u32, value: i32) -> Result<(), Errno> {
        match capabilities_for(level, name, value) {
            Some((any, errno)) if !any.iter().any(|one| self.is_capable(*one)) => Err(errno),
            _ => Ok(()),
        }
    }

    fn set_of_socket(&mut self, object: ObjectId, name: u32, bytes: &[u8]) -> Result<(), Errno> {
        if name == BIND_TO_DEVICE {
            let found = match text(bytes) {
                [] => 0,
                name => {
                    self.host
                        .network
                        .interface_named(name)
                        .ok_or(Errno::ENODEV)?
                        .index
                }
            };
            let may_change = self.is_capable(NET_RAW);
            let socket = self.host.socket_mut(object).ok_or(Errno::ENOTSOCK)?;
            if socket.options.device != 0 && !may_change {
                return Err(Errno::EPERM);
            }
            socket.options.device = found;
            return Ok(());
        }
        let value = number(bytes).ok_or(Errno::EINVAL)?;
        self.check_option(level::SOCKET, name, value)?;
        let socket = self.host.socket_mut(object).ok_or(Errno::ENOTSOCK)?;
        let options = &mut socket.options;
        match name {
            REUSE_ADDRESS => options.reuse_address = value != 0,
            REUSE_PORT if value != 0 && !socket.domain.is_internet() => {
                return Err(Errno::EOPNOTSUPP);
            }
            REUSE_PORT => options.reuse_port = value != 0,
            BROADCAST => options.broadcast = value != 0,
            PASS_CREDENTIALS if socket.domain != Domain::Unix => return Err(Errno::EOPNOTSUPP),
            PASS_CREDENTIALS => options.pass_credentials = value != 0,
            SEND_BUFFER => options.set_send_buffer(value as u32, false),
            RECEIVE_BUFFER => options.set_receive_buffer(value as u32, false),
            FORCE_SEND_BUFFER => options.set_send_buffer(value.max(0) as u32, true),
            FORCE_RECEIVE_BUFFER => options.set_receive_buffer(value.max(0) as u32, true),
            RECEIVE_LOW_WATER => {
                let value = if value < 0 { i32::MAX } else { value };
                options.receive_low_water = value.max(1) as u32;
            }
            LINGER => {
                let seconds = number(bytes.get(4..).unwrap_or_default()).ok_or(Errno::EINVAL)?;
                options.linger_s = (value != 0).then_some(seconds as u32);
            }
            PEEK_OFFSET
                if !matches!(socket.domain, Domain::Unix) && !socket.domain.is_internet() =>
            {
                return Err(Errno::EOPNOTSUPP);
            }
            PEEK_OFFSET => options.peek_offset = u64::try_from(value).ok(),
            LOCK_FILTER if value == 0 && options.other(level::SOCKET, name) == Some(1) => {
                return Err(Errno::EPERM);
            }
            RECEIVE_TIMEOUT => options.receive_timeout_ns = timeout(bytes)?,
            SEND_TIMEOUT => options.send_timeout_ns = timeout(bytes)?,
            _ => options.set_other(level::SOCKET, name, value)?,
        }
        Ok(())
    }

    fn set_of_protocol(
        &mut self,
        object: ObjectId,
        level: u32,
        name: u32,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        if let Some(done) = self.set_of_groups(object, level, name, bytes) {
            return done;
        }
        if level == level::NETLINK && matches!(name, JOIN_NETLINK | LEAVE_NETLINK) {
            let group = number(bytes).ok_or(Errno::EINVAL)?;
            return self.change_netlink_group(object, group, name == JOIN_NETLINK);
        }
        if (level, name) == (level::TCP, TCP_CONGESTION) {
            let known = [&b"cubic"[..], b"reno"].contains(&text(bytes));
            return if known { Ok(()) } else { Err(Errno::ENOENT) };
        }
        let mut value = match (number(bytes), bytes) {
            (Some(value), _) => value,
            (None, [byte, ..]) if level == level::IP => i32::from(*byte),
            _ => return Err(Errno::EINVAL),
        };
        self.check_option(level, name, value)?;
        let socket = self.host.socket_mut(object).ok_or(Errno::ENOTSOCK)?;
        if (level, name) == (level::IP, HEADER_INCLUDED) && socket.is_raw() {
            socket.options.header_included = value != 0;
            return Ok(());
        }
        if (level, name) == (level::RAW, ICMP_FILTER) {
            if u32::from(protocol::ICMP) != socket.protocol {
                return Err(Errno::EOPNOTSUPP);
            }
            socket.options.icmp_filter = value as u32;
            return Ok(());
        }
        if (level, name) == (level::IPV6, ONLY_V6) {
            if socket.local.internet().is_some() {
                return Err(Errno::EINVAL);
            }
            socket.options.only_v6 = value != 0;
            return Ok(());
        }
        if socket.kind.has_connections() {
            match (level, name) {
                // The two bits of congestion are those of the connection.
                (level::IP, TYPE_OF_SERVICE) => value &= !CONGESTION,
                (level::IP, GROUP_HOPS) => return Err(Errno::EINVAL),
                (level::IPV6, GROUP_HOPS6) => return Err(Errno::ENOPROTOOPT),
                (level::TCP, TCP_MAXSEG) if (1..LEAST_SEGMENT).contains(&value) => {
                    return Err(Errno::EINVAL);
                }
                _ => {}
            }
        }
        socket.options.set_other(level, name, value)
    }
}

/// A string up to its NUL.
fn text(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}

fn get_of_socket(socket: &Socket, name: u32) -> Option<Vec<u8>> {
    let options = &socket.options;
    let value = match name {
        REUSE_ADDRESS => u32::from(options.reuse_address),
        REUSE_PORT => u32::from(options.reuse_port),
        BROADCAST => u32::from(options.broadcast),
        PASS_CREDENTIALS => u32::from(options.pass_credentials),
        SEND_BUFFER => options.send_buffer,
        RECEIVE_BUFFER => options.receive_buffer,
        RECEIVE_LOW_WATER => options.receive_low_water,
        SEND_LOW_WATER => 1,
        TYPE => socket.kind.number(),
        PROTOCOL => socket.protocol,
        DOMAIN => u32::from(socket.domain.number()),
        ACCEPTS => u32::from(socket.is_listening()),
        ERROR => socket.error.map_or(0, |error| error.0 as u32),
        LINGER => {
            let parts = [
                u32::from(options.linger_s.is_some()),
                options.linger_s.unwrap_or(0),
            ];
            return Some(parts.map(u32::to_le_bytes).concat());
        }
        PEER_CREDENTIALS => {
            let peer = socket.peer_owner.filter(|_| socket.domain == Domain::Unix);
            return Some(peer.unwrap_or(Credentials::NOBODY).to_bytes());
        }
        PEEK_OFFSET => options.peek_offset.map_or(u32::MAX, |at| at as u32),
        MEMORY => return Some(memory(socket)),
        RECEIVE_TIMEOUT => return Some(timeval(options.receive_timeout_ns)),
        SEND_TIMEOUT => return Some(timeval(options.send_timeout_ns)),
        BIND_TO_DEVICE if options.device == LOOPBACK => return Some(b"lo\0".to_vec()),
        BIND_TO_DEVICE if options.device != 0 => return Some(b"eth0\0".to_vec()),
        BIND_TO_DEVICE => return Some(Vec::new()),
        _ => options.other(level::SOCKET, name)? as u32,
    };
    Some(value.to_le_bytes().to_vec())
}

fn get_of_protocol(socket: &Socket, level: u32, name: u32) -> Option<Vec<u8>> {
    match (level, name) {
        (level::IP, HEADER_INCLUDED) if socket.is_raw() => {
            let value = u32::from(socket.options.header_included);
            Some(value.to_le_bytes().to_vec())
        }
        (level::RAW, ICMP_FILTER) => Some(socket.options.icmp_filter.to_le_bytes().to_vec()),
        (level::IP, GROUP_INTERFACE) => {
            let own = socket.options.group_interface.1;
            Some(match own {
                Some(std::net::IpAddr::V4(own)) => own.octets().to_vec(),
                _ => vec![0; 4],
            })
        }
        (level::IPV6, GROUP_INTERFACE6) => {
            let index = socket.options.group_interface.0;
            Some(index.to_le_bytes().to_vec())
        }
        (level::IPV6, ONLY_V6) => Some(u32::from(socket.options.only_v6).to_le_bytes().to_vec()),
        // No socket has options in the headers of its packets.
        (level::IP, HEADER_OPTIONS) => Some(Vec::new()),
        (level::TCP, TCP_INFO) => Some(tcp_info(socket)),
        (level::TCP, TCP_CONGESTION) => {
            let mut name = b"cubic".to_vec();
            name.resize(16, 0);
            Some(name)
        }
        _ => {
            let value = socket.options.other(level, name)?;
            Some(value.to_le_bytes().to_vec())
        }
    }
}

/// `SO_MEMINFO`: memory for received bytes, receive buffer, memory for bytes to send, send buffer,
/// and five numbers that are 0 here.
fn memory(socket: &Socket) -> Vec<u8> {
    let options = &socket.options;
    let received = socket.inbox.len() as u32;
    let first = [received, options.receive_buffer, 0, options.send_buffer];
    let mut bytes = first.map(u32::to_le_bytes).concat();
    bytes.resize(9 * 4, 0);
    bytes
}

/// The start of a `struct tcp_info`: connection state, and length of the accept queue.
fn tcp_info(socket: &Socket) -> Vec<u8> {
    const SIZE: usize = 232;
    const SEGMENT: u32 = 32768;
    let mut info = vec![0; SIZE];
    info[0] = socket.tcp_state();
    let mut put = |at: usize, value: u32| info[at..at + 4].copy_from_slice(&value.to_le_bytes());
    put(16, SEGMENT);
    put(20, SEGMENT);
    if let SocketState::Listening { backlog, pending } = &socket.state {
        put(24, pending.len() as u32);
        put(28, *backlog);
    }
    info
}
