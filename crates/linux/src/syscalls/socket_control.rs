//! Ancillary data of messages: passed descriptors and credentials (`struct cmsghdr`).

use std::net::IpAddr;

use super::sockets::OpenSocket;
use super::time::{SECOND, timespec};
use crate::capabilities::{SETGID, SETUID, SYS_ADMIN};
use crate::errno::Errno;
use crate::files::Descriptor;
use crate::ids::DescriptionId;
use crate::kernel::{Kernel, Stop};
use crate::objects::socket::{
    Ancillary, Credentials, Domain, ETHERNET, Received, SO_TIMESTAMP, SO_TIMESTAMPING,
    SO_TIMESTAMPNS, SocketType, level, message_flag,
};

const SOL_SOCKET: u32 = 1;
const RIGHTS: u32 = 1;
const CREDENTIALS: u32 = 2;
/// Bytes of a `struct cmsghdr`.
const HEADER: u64 = 16;
/// Maximum number of descriptors in one message (`SCM_MAX_FD`).
const MAX_RIGHTS: u64 = 253;
/// Maximum number of bytes of ancillary data.
const MAX: u64 = 1 << 16;

/// `IP_PKTINFO`, `IPV6_PKTINFO`, and the option that enables the latter.
const PACKET_INFO: u32 = 8;
const PACKET_INFO6: u32 = 50;
const RECEIVE_PACKET_INFO6: u32 = 49;
/// Hops and type of service, and the options that enable them.
const TYPE_OF_SERVICE: u32 = 1;
const TTL: u32 = 2;
const RECEIVE_TTL: u32 = 12;
const RECEIVE_TOS: u32 = 13;
const HOPS6: u32 = 52;
const TRAFFIC_CLASS: u32 = 67;
const RECEIVE_HOPS6: u32 = 51;
const RECEIVE_TRAFFIC_CLASS: u32 = 66;
/// `TCP_INQ`: bytes that are left in the queue.
const LEFT: u32 = 36;

/// Index of the interface at which a datagram to this address arrives.
fn interface_of(ip: IpAddr) -> u32 {
    if ip.is_loopback() { 1 } else { 2 }
}

/// Encodes a `struct in_pktinfo`: interface, own address, and destination.
fn packet_info(own: IpAddr, to: IpAddr) -> Vec<u8> {
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets(),
        IpAddr::V6(_) => [0; 4],
    };
    [interface_of(to).to_le_bytes(), octets(own), octets(to)].concat()
}

/// Encodes a `struct in6_pktinfo`.
fn packet_info6(ip: IpAddr) -> Vec<u8> {
    let octets = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    [&octets[..], &interface_of(ip).to_le_bytes()].concat()
}

/// Adds what a program wants in the header of its datagram: hops, type of service, source.
fn add_of_header(ancillary: &mut Ancillary, kind: (u32, u32), data: &[u8]) -> Result<(), Errno> {
    let number = || match (data.first_chunk(), data) {
        (Some(word), _) => i32::from_le_bytes(*word),
        (None, [byte]) if kind == (level::IP, TYPE_OF_SERVICE) => i32::from(*byte),
        _ => -2,
    };
    let byte = || u8::try_from(number()).map_err(|_| Errno::EINVAL);
    match kind {
        (level::IP, TTL) => match byte()? {
            0 => return Err(Errno::EINVAL),
            ttl => ancillary.hops.0 = Some(ttl),
        },
        (level::IP, TYPE_OF_SERVICE) => ancillary.hops.1 = Some(byte()?),
        (level::IPV6, HOPS6) if number() != -1 => ancillary.hops.0 = Some(byte()?),
        (level::IPV6, TRAFFIC_CLASS) if number() != -1 => ancillary.hops.1 = Some(byte()?),
        (level::IPV6, HOPS6 | TRAFFIC_CLASS) => {}
        (level::IP, PACKET_INFO) => {
            let own = data.get(4..8).and_then(|own| own.first_chunk::<4>());
            let own = IpAddr::from(*own.ok_or(Errno::EINVAL)?);
            ancillary.source = Some(own).filter(|own| !own.is_unspecified());
        }
        (level::IPV6, PACKET_INFO6) => {
            let own = data.first_chunk::<16>().ok_or(Errno::EINVAL)?;
            let own = IpAddr::from(*own).to_canonical();
            ancillary.source = Some(own).filter(|own| !own.is_unspecified());
        }
        (level::IP | level::IPV6, _) => return Err(Errno::EINVAL),
        _ => {}
    }
    Ok(())
}

/// An ancillary data entry: level, type and bytes.
type ControlMessage = (u32, u32, Vec<u8>);

impl Kernel<'_, '_> {
    /// Reads the ancillary data of a message to send.
    pub(super) fn control_to_send(
        &mut self,
        socket: &OpenSocket,
        address: u64,
        len: u64,
    ) -> Result<Ancillary, Stop> {
        let mut ancillary = Ancillary::default();
        if len == 0 {
            return Ok(ancillary);
        }
        if len > MAX {
            return Err(Errno::ENOBUFS.into());
        }
        let socket = self.socket_of(socket.open())?;
        let (domain, has_headers) = (socket.domain, socket.is_udp());
        let bytes = self.read_bytes(address, len)?;
        let mut rest = bytes.as_slice();
        while rest.len() as u64 >= HEADER {
            let word = |at: usize| {
                rest[at..]
                    .first_chunk()
                    .map_or(0, |w| u32::from_le_bytes(*w))
            };
            let len = u64::from(word(0)) | u64::from(word(4)) << 32;
            if len < HEADER || len > rest.len() as u64 {
                return Err(Errno::EINVAL.into());
            }
            let data = &rest[HEADER as usize..len as usize];
            match (domain, word(8)) {
                (Domain::Unix, SOL_SOCKET) => {
                    self.add_ancillary(&mut ancillary, word(12), data)?;
                }
                (Domain::Inet | Domain::Inet6, SOL_SOCKET) if word(12) == SO_TIMESTAMPING => {
                    self.refuse("sendmsg", "the time at which a message is sent");
                }
                (Domain::Inet | Domain::Inet6, level) if has_headers => {
                    add_of_header(&mut ancillary, (level, word(12)), data)?;
                }
                _ => {}
            }
            let next = (len.next_multiple_of(8) as usize).min(rest.len());
            rest = &rest[next..];
        }
        Ok(ancillary)
    }

    fn add_ancillary(
        &mut self,
        ancillary: &mut Ancillary,
        kind: u32,
        data: &[u8],
    ) -> Result<(), Stop> {
        let words = data.chunks_exact(4).filter_map(|word| word.first_chunk());
        let words: Vec<u32> = words.map(|word| u32::from_le_bytes(*word)).collect();
        match (kind, words.as_slice()) {
            (RIGHTS, fds) => {
                if (fds.len() + ancillary.rights.len()) as u64 > MAX_RIGHTS {
                    return Err(Errno::EINVAL.into());
                }
                for fd in fds {
                    let descriptor = self.process().descriptors.get(*fd as i32)?;
                    ancillary.rights.push(descriptor.description);
                }
            }
            (CREDENTIALS, [pid, uid, gid]) if data.len() == 12 => {
                let own = self.process();
                let may = (*pid == own.pid || self.is_capable(SYS_ADMIN))
                    && (own.uid.contains(uid) || self.is_capable(SETUID))
                    && (own.gid.contains(gid) || self.is_capable(SETGID));
                if !may {
                    return Err(Errno::EPERM.into());
                }
                if self.host.process_by_pid(*pid).is_none() {
                    return Err(Errno::ESRCH.into());
                }
                ancillary.credentials = Some(Credentials {
                    pid: *pid,
                    uid: *uid,
                    gid: *gid,
                });
            }
            _ => return Err(Errno::EINVAL.into()),
        }
        Ok(())
    }

    /// Writes the ancillary data of a received message. Returns its length, and flags for truncated
    /// entries.
    pub(super) fn control_received(
        &mut self,
        socket: &OpenSocket,
        received: &Received,
        room: (u64, u64),
        flags: u32,
    ) -> Result<(u64, u32), Stop> {
        let (address, mut left) = room;
        let (mut at, mut told) = (address, 0);
        let control_messages = self.control_messages(socket, received)?;
        for (level, kind, bytes) in control_messages {
            let wanted = HEADER + bytes.len() as u64;
            if left < HEADER {
                told |= message_flag::CONTROL_TRUNCATED;
                break;
            }
            let len = wanted.min(left);
            if len < wanted {
                told |= message_flag::CONTROL_TRUNCATED;
            }
            self.write_control_message(at, level, kind, &bytes[..(len - HEADER) as usize])?;
            let space = len.next_multiple_of(8).min(left);
            at = at.wrapping_add(space);
            left -= space;
        }
        if !received.rights.is_empty() {
            let fits = if left < HEADER {
                0
            } else {
                (left - HEADER) / 4
            };
            let (taken, lost) = received
                .rights
                .split_at((fits as usize).min(received.rights.len()));
            let (fds, refused) = self.install_rights(taken, flags)?;
            if !lost.is_empty() || !refused.is_empty() {
                told |= message_flag::CONTROL_TRUNCATED;
            }
            self.host.release_all(&refused);
            self.host.release_all(lost);
            if !fds.is_empty() {
                let bytes: Vec<u8> = fds.iter().flat_map(|fd| fd.to_le_bytes()).collect();
                self.write_control_message(at, SOL_SOCKET, RIGHTS, &bytes)?;
                let len = HEADER + bytes.len() as u64;
                at = at.wrapping_add(len.next_multiple_of(8).min(left));
            }
        }
        Ok((at.wrapping_sub(address), told))
    }

    fn write_control_message(
        &mut self,
        at: u64,
        level: u32,
        kind: u32,
        bytes: &[u8],
    ) -> Result<(), Stop> {
        let mut entry = (HEADER + bytes.len() as u64).to_le_bytes().to_vec();
        entry.extend_from_slice(&level.to_le_bytes());
        entry.extend_from_slice(&kind.to_le_bytes());
        entry.extend_from_slice(bytes);
        self.write_bytes(at, &entry)
    }

    /// Ancillary data that the socket's options enable, besides descriptors.
    fn control_messages(
        &mut self,
        socket: &OpenSocket,
        received: &Received,
    ) -> Result<Vec<ControlMessage>, Stop> {
        let own = received
            .to
            .internet()
            .map(|to| match self.host.network.is_own(to.ip()) {
                true => to.ip(),
                false => {
                    let own = self.host.network.address_like(ETHERNET, to.ip());
                    own.unwrap_or(to.ip())
                }
            });
        let now = self.wall_clock_ns();
        let socket = self.socket_of(socket.open())?;
        let mut control_messages = Vec::new();
        if socket.kind != SocketType::Stream && socket.options.wants_times() {
            // The kernel records arrival times only once a socket asks for them.
            let arrived = received.arrived_ns.unwrap_or(now);
            let in_ns = socket.options.other(level::SOCKET, SO_TIMESTAMPNS) == Some(1);
            let (kind, unit) = if in_ns {
                (SO_TIMESTAMPNS, 1)
            } else {
                (SO_TIMESTAMP, 1000)
            };
            let parts = [arrived / SECOND, arrived % SECOND / unit];
            control_messages.push((SOL_SOCKET, kind, parts.map(u64::to_le_bytes).concat()));
        }
        if socket.kind != SocketType::Stream && socket.options.wants_timestamping() {
            let arrived = received.arrived_ns.unwrap_or(now);
            let mut times = timespec(arrived);
            times.resize(3 * times.len(), 0);
            control_messages.push((SOL_SOCKET, SO_TIMESTAMPING, times));
        }
        // The end of a connection that keeps messages is not a message.
        let is_message = received.credentials.is_some() || socket.kind == SocketType::Stream;
        if socket.domain == Domain::Unix && socket.options.pass_credentials && is_message {
            let sender = received.credentials.unwrap_or(Credentials::NOBODY);
            control_messages.push((SOL_SOCKET, CREDENTIALS, sender.to_bytes()));
        }
        if socket.is_tcp() && socket.options.other(level::TCP, LEFT) == Some(1) {
            // The end of the stream counts as a byte.
            let left = socket.inbox.len().max(u64::from(socket.end_received));
            let left = i32::try_from(left).unwrap_or(i32::MAX);
            control_messages.push((level::TCP, LEFT, left.to_le_bytes().to_vec()));
        }
        if let (Some(to), Some(own)) = (received.to.internet(), own) {
            let wants = |level: u32, name: u32| socket.options.other(level, name) == Some(1);
            if socket.domain == Domain::Inet && wants(level::IP, PACKET_INFO) {
                control_messages.push((level::IP, PACKET_INFO, packet_info(own, to.ip())));
            }
            if socket.domain == Domain::Inet && wants(level::IP, RECEIVE_TTL) {
                let ttl = u32::from(received.hops.ttl).to_le_bytes().to_vec();
                control_messages.push((level::IP, TTL, ttl));
            }
            if socket.domain == Domain::Inet && wants(level::IP, RECEIVE_TOS) {
                control_messages.push((level::IP, TYPE_OF_SERVICE, vec![received.hops.tos]));
            }
            if socket.domain == Domain::Inet6 && wants(level::IPV6, RECEIVE_PACKET_INFO6) {
                control_messages.push((level::IPV6, PACKET_INFO6, packet_info6(to.ip())));
            }
            let numbers = [
                (RECEIVE_HOPS6, HOPS6, received.hops.ttl),
                (RECEIVE_TRAFFIC_CLASS, TRAFFIC_CLASS, received.hops.tos),
            ];
            for (option, kind, value) in numbers {
                if socket.domain == Domain::Inet6 && to.is_ipv6() && wants(level::IPV6, option) {
                    let value = u32::from(value).to_le_bytes().to_vec();
                    control_messages.push((level::IPV6, kind, value));
                }
            }
        }
        Ok(control_messages)
    }

    /// Installs descriptors for passed files, as many as fit, and returns the rest.
    fn install_rights(
        &mut self,
        rights: &[DescriptionId],
        flags: u32,
    ) -> Result<(Vec<i32>, Vec<DescriptionId>), Stop> {
        let close_on_exec = flags & message_flag::CLOSE_ON_EXEC != 0;
        let mut fds = Vec::new();
        for (index, description) in rights.iter().enumerate() {
            let Ok(fd) = self.process().descriptors.free_from(0) else {
                return Ok((fds, rights[index..].to_vec()));
            };
            let descriptor = Descriptor {
                description: *description,
                close_on_exec,
            };
            self.process_mut().descriptors.set(fd, Some(descriptor));
            fds.push(fd);
        }
        Ok((fds, Vec::new()))
    }
}
