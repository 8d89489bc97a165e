//! Sending and receiving through sockets: `sendto`, `sendmsg`, `recvfrom`, `recvmsg` and variants.

use everett_vm::Value;
use std::net::{Ipv4Addr, SocketAddr};

use super::sockets::OpenSocket;
use crate::errno::Errno;
use crate::files::Target;
use crate::host::HostState;
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::event;
use crate::objects::socket::{
    AF_UNSPEC, Address, Ancillary, Domain, LinkAddress, OPERATIONS, Received, Socket, family,
    message_flag,
};
use crate::table::ArgKind::{Buffer as Bytes, Fd, Flags, Int, Pointer, Symbolic};
use crate::table::property::{MESSAGES, READS, SHOWS_INPUT, WRITES};
use crate::table::{Call, Row};
use crate::transfers::{IoRange, skip};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "sendto",
        44,
        &[Fd, Bytes, Int, Flags, Pointer, Int],
        SEND_ERRORS,
        sendto,
    )
    .with(WRITES | SHOWS_INPUT)
    .fails_where(message_fails),
    Row::new(
        "recvfrom",
        45,
        &[Fd, Bytes, Symbolic, Flags, Pointer, Pointer],
        RECEIVE_ERRORS,
        recvfrom,
    )
    .with(READS)
    .fails_where(message_fails)
    .without("MSG_ERRQUEUE"),
    Row::new("sendmsg", 46, &[Fd, Pointer, Flags], SEND_ERRORS, sendmsg)
        .with(WRITES)
        .fails_where(message_fails)
        .without("the time at which a message is sent"),
    Row::new(
        "recvmsg",
        47,
        &[Fd, Pointer, Flags],
        RECEIVE_ERRORS,
        recvmsg,
    )
    .with(READS)
    .fails_where(message_fails)
    .without("MSG_ERRQUEUE"),
    Row::new(
        "sendmmsg",
        307,
        &[Fd, Pointer, Int, Flags],
        SEND_ERRORS,
        sendmmsg,
    )
    .with(WRITES | MESSAGES)
    .fails_where(message_fails)
    .without("the time at which a message is sent"),
    Row::new(
        "recvmmsg",
        299,
        &[Fd, Pointer, Int, Flags, Pointer],
        RECEIVE_ERRORS,
        recvmmsg,
    )
    .with(READS | MESSAGES)
    .fails_where(message_fails)
    .without("the timeout, MSG_ERRQUEUE"),
];

/// Size of a `struct mmsghdr`, and the offset of the length in it.
const MANY_SIZE: u64 = 64;
const MANY_LEN_AT: u64 = 56;
/// Maximum number of messages of one call.
const MANY: u64 = 1024;

/// `MSG_FASTOPEN`.
const FAST_OPEN: u32 = 0x2000_0000;

const SEND_ERRORS: &[Errno] = &[
    Errno::EINTR,
    Errno::EPIPE,
    Errno::ECONNRESET,
    Errno::ENOBUFS,
    Errno::EAGAIN,
];
const RECEIVE_ERRORS: &[Errno] = &[Errno::EINTR, Errno::ECONNRESET];

/// Whether a send or receive can fail with this errno: only a connection can be broken or reset.
fn message_fails(kernel: &Kernel<'_, '_>, args: &[u64; 6], errno: Errno) -> bool {
    let target = kernel
        .description(args[0] as i32)
        .map(|found| found.1.target);
    let Ok(Target::Object(id)) = target else {
        return true;
    };
    if errno == Errno::EAGAIN && !kernel.is_nonblocking(args[0] as i32) {
        return false;
    }
    match errno {
        Errno::EPIPE | Errno::ECONNRESET => kernel.host.can_break(id, errno),
        _ => true,
    }
}

/// A `struct msghdr`.
struct Header {
    /// Its address.
    at: u64,
    name: u64,
    name_len: u32,
    ranges: Vec<IoRange>,
    control: u64,
    control_len: u64,
}

/// Offsets of the fields of a `struct msghdr` that `recvmsg` changes.
const NAME_LEN_AT: u64 = 8;
const CONTROL_LEN_AT: u64 = 40;
const FLAGS_AT: u64 = 48;
const HEADER_SIZE: u64 = 56;

fn sendto(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let socket = kernel.find_socket(call.int(0))?;
    let to = match call.args[4] {
        0 => None,
        address => Some(kernel.read_address(address, call.int(5))?),
    };
    let range = IoRange {
        address: call.args[1],
        len: call.args[2],
    };
    kernel.send_ranges(
        &socket,
        &[range],
        to,
        Ancillary::default(),
        call.args[3] as u32,
    )
}

fn recvfrom(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let socket = kernel.find_socket(call.int(0))?;
    let range = IoRange {
        address: call.args[1],
        len: kernel.count_to_read(call.int(0), call.args[1], call.raw[2])?,
    };
    let flags = call.args[3] as u32;
    // The handler asks the oracle everything before it consumes bytes. An error about the address is
    // told afterwards.
    let room = match call.args[4] {
        0 => Ok(0),
        _ => match kernel.address_room(call.args[5]) {
            Err(Stop::Errno(errno)) => Err(errno),
            room => Ok(room?),
        },
    };
    let (received, len) = kernel.receive_into(&socket, &[range], flags)?;
    kernel.host.release_all(&received.rights);
    if call.args[4] != 0 {
        let domain = kernel.socket_of(socket.open())?.domain;
        let from = received.from.map(|from| from_bytes(&from, domain));
        let from = from.unwrap_or_default();
        kernel.put_address(call.args[4], call.args[5], room?, &from)?;
    }
    Ok(Value::concrete(len))
}

fn sendmsg(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let socket = kernel.find_socket(call.int(0))?;
    kernel.send_message(&socket, call.args[1], call.args[2] as u32)
}

fn recvmsg(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let socket = kernel.find_socket(call.int(0))?;
    kernel.receive_message(&socket, call.args[1], call.args[2] as u32)
}

fn sendmmsg(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let socket = kernel.find_socket(call.int(0))?;
    let count = (call.args[2] & 0xffff_ffff).min(MANY);
    let flags = call.args[3] as u32;
    let whole = kernel.host.keeps_messages(socket.object);
    let mut index = if whole { kernel.task().progress } else { 0 };
    while index < count {
        let at = call.args[1].wrapping_add(index * MANY_SIZE);
        // The next call receives the rest of a stream.
        let more = if whole || index == 0 {
            0
        } else {
            message_flag::DONT_WAIT
        };
        match kernel.send_message(&socket, at, flags | more) {
            Ok(sent) => {
                let sent = sent.as_concrete().unwrap_or(0) as u32;
                kernel.write_bytes(at.wrapping_add(MANY_LEN_AT), &sent.to_le_bytes())?;
            }
            Err(Stop::Errno(_)) if index > 0 => break,
            Err(stop) => return Err(stop),
        }
        index += 1;
        kernel.task_mut().progress = if whole { index } else { 0 };
    }
    Ok(Value::concrete(index))
}

fn recvmmsg(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const WAIT_FOR_ONE: u32 = 0x1_0000;
    let socket = kernel.find_socket(call.int(0))?;
    let count = (call.args[2] & 0xffff_ffff).min(MANY);
    let flags = call.args[3] as u32 & !message_flag::WAIT_ALL;
    if call.args[4] != 0 {
        kernel.refuse("recvmmsg", "the timeout of recvmmsg");
    }
    let mut index = kernel.task().progress;
    while index < count {
        let at = call.args[1].wrapping_add(index * MANY_SIZE);
        let waits_for_one = flags & WAIT_FOR_ONE != 0 && index > 0;
        let more = if waits_for_one {
            message_flag::DONT_WAIT
        } else {
            0
        };
        match kernel.receive_message(&socket, at, flags & !WAIT_FOR_ONE | more) {
            Ok(received) => {
                let received = received.as_concrete().unwrap_or(0) as u32;
                kernel.write_bytes(at.wrapping_add(MANY_LEN_AT), &received.to_le_bytes())?;
            }
            Err(Stop::Errno(_)) if index > 0 => break,
            Err(stop) => return Err(stop),
        }
        index += 1;
        kernel.task_mut().progress = index;
    }
    Ok(Value::concrete(index))
}

/// Encodes a source address; empty for an unnamed UNIX socket.
fn from_bytes(from: &Address, domain: Domain) -> Vec<u8> {
    match (from, domain) {
        (Address::Unnamed, Domain::Unix) => Vec::new(),
        _ => from.to_bytes(domain),
    }
}

impl Kernel<'_, '_> {
    fn header(&mut self, at: u64) -> Result<Header, Stop> {
        let bytes = self.read_bytes(at, HEADER_SIZE)?;
        let word = |index: usize| {
            let field = bytes[index..].first_chunk::<8>().copied();
            u64::from_le_bytes(field.unwrap_or_default())
        };
        let (name, name_len) = (word(0), word(8) as u32);
        if name != 0 && (name_len as i32) < 0 {
            return Err(Errno::EINVAL.into());
        }
        if word(24) > 1024 {
            return Err(Errno::EMSGSIZE.into());
        }
        let ranges = self.ranges(word(16), word(24))?;
        Ok(Header {
            at,
            name,
            name_len,
            ranges,
            control: word(32),
            control_len: word(40),
        })
    }

    /// Sends one message, or bytes of a stream.
    fn send_message(&mut self, socket: &OpenSocket, at: u64, flags: u32) -> Answer {
        let header = self.header(at)?;
        let to = if header.name == 0 || header.name_len == 0 {
            None
        } else {
            let len = header.name_len.min(128);
            Some(self.read_address(header.name, len as i32)?)
        };
        let ancillary = self.control_to_send(socket, header.control, header.control_len)?;
        self.send_ranges(socket, &header.ranges, to, ancillary, flags)
    }

    fn send_ranges(
        &mut self,
        socket: &OpenSocket,
        ranges: &[IoRange],
        to: Option<Vec<u8>>,
        ancillary: Ancillary,
        flags: u32,
    ) -> Answer {
        let is_unix = self.socket_of(socket.open())?.domain == Domain::Unix;
        if flags & FAST_OPEN != 0 {
            self.refuse("sendto", "MSG_FASTOPEN");
        }
        let is_stream = !is_unix && !self.host.keeps_messages(socket.object);
        if flags & FAST_OPEN != 0 && is_stream && to.is_some() {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let ancillary = Ancillary {
            to: to.map(|to| self.destination(socket, &to)).transpose()?,
            ..ancillary
        };
        if self.host.keeps_messages(socket.object) {
            let parts = self.gather_all(ranges)?;
            let sent = self.send(socket.open(), &parts, &ancillary, flags)?;
            return Ok(Value::concrete(sent));
        }
        self.write_all(ranges, |kernel, parts| match kernel.task().progress {
            0 => kernel.send(socket.open(), parts, &ancillary, flags),
            _ => kernel.send(socket.open(), parts, &Ancillary::default(), flags),
        })
    }

    /// Decodes a destination address.
    fn destination(&mut self, socket: &OpenSocket, bytes: &[u8]) -> Result<Address, Stop> {
        let socket = self.socket_of(socket.open())?;
        Ok(match socket.domain {
            Domain::Unix => Address::parse_unix(bytes)?,
            Domain::Netlink => Address::Unnamed,
            Domain::Packet => Address::Link(LinkAddress::parse(bytes)?),
            // A stream ignores the destination.
            _ if socket.is_tcp() => Address::Unnamed,
            // Accepted for compatibility, as in Linux.
            Domain::Inet if family(bytes) == Some(AF_UNSPEC) && bytes.len() >= 16 => {
                let port = u16::from_be_bytes([bytes[2], bytes[3]]);
                let ip = Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7]);
                Address::Internet(SocketAddr::from((ip, port)))
            }
            domain => Address::Internet(Address::parse_internet(domain, bytes)?),
        })
    }

    fn receive_message(&mut self, socket: &OpenSocket, at: u64, flags: u32) -> Answer {
        let header = self.header(at)?;
        self.check(at, HEADER_SIZE, true)?;
        let (received, len) = self.receive_into(socket, &header.ranges, flags)?;
        let domain = self.socket_of(socket.open())?.domain;
        if header.name != 0 {
            let from = received.from.as_ref();
            let from = from.map_or_else(Vec::new, |from| from_bytes(from, domain));
            let room = (header.name_len as usize).min(from.len());
            self.write_bytes(header.name, &from[..room])?;
            let at = header.at.wrapping_add(NAME_LEN_AT);
            self.write_bytes(at, &(from.len() as u32).to_le_bytes())?;
        }
        let cut = received.full_len > received.bytes.len() as u64;
        let mut told = if cut { message_flag::TRUNCATE } else { 0 };
        told |= flags & message_flag::CLOSE_ON_EXEC | received.flags;
        let room = (header.control, header.control_len);
        let (used, more) = self.control_received(socket, &received, room, flags)?;
        self.write_bytes(header.at.wrapping_add(CONTROL_LEN_AT), &used.to_le_bytes())?;
        let told = (told | more).to_le_bytes();
        self.write_bytes(header.at.wrapping_add(FLAGS_AT), &told)?;
        Ok(Value::concrete(len))
    }

    /// Receives into guest memory, and returns the result of the call.
    fn receive_into(
        &mut self,
        socket: &OpenSocket,
        ranges: &[IoRange],
        flags: u32,
    ) -> Result<(Received, u64), Stop> {
        let wanted = ranges
            .iter()
            .fold(0u64, |sum, range| sum.saturating_add(range.len));
        let dropped = flags & message_flag::TRUNCATE != 0
            && self.host.socket(socket.object).is_some_and(Socket::is_tcp);
        let open = socket.open();
        let keeps_messages = self.host.keeps_messages(socket.object);
        let mut fails = false;
        if !dropped {
            match self.check_targets(open, &OPERATIONS, ranges, wanted) {
                // The message is lost.
                Err(Stop::Errno(_)) if keeps_messages => fails = true,
                checked => checked?,
            }
        }
        let wanted = self.piece(open, &OPERATIONS, wanted)?;
        let all = flags & message_flag::WAIT_ALL != 0
            && flags & message_flag::PEEK == 0
            && !self.host.keeps_messages(socket.object);
        let done = if all { self.task().progress } else { 0 };
        let left = wanted.saturating_sub(done);
        let is_at_mark =
            |host: &HostState| host.socket(open.object).is_some_and(Socket::is_at_mark);
        let is_over = done > 0 && is_at_mark(self.host);
        let received = match self.receive(open, if is_over { 0 } else { left }, flags) {
            Ok(received) => received,
            Err(Stop::Errno(_)) if done > 0 => Received::end(),
            Err(stop) => return Err(stop),
        };
        if fails {
            self.host.release_all(&received.rights);
            self.scatter_accessible(ranges, &received.bytes)?;
            return Err(Errno::EFAULT.into());
        }
        let bytes = self.apply_symbolic_source(open.id, received.bytes)?;
        let len = bytes.len() as u64;
        if !dropped {
            self.scatter(&skip(ranges, done), &bytes)?;
        }
        if all && len > 0 && len < left && !is_at_mark(self.host) {
            self.task_mut().progress = done + len;
            // A call that may not wait returns what it has.
            let stop = self.wait_for_socket(open, event::IN, flags, "receive");
            if !matches!(stop, Stop::Errno(_)) {
                return Err(stop);
            }
        }
        let told = if keeps_messages && flags & message_flag::TRUNCATE != 0 {
            received.full_len
        } else {
            done + len
        };
        Ok((Received { bytes, ..received }, told))
    }
}
