//! Raw sockets (`SOCK_RAW` of IPv4), ping sockets (`SOCK_DGRAM` with ICMP), and the kernel's own IP
//! processing: it answers echo requests, and sends ICMP errors for packets that no socket accepts.

use everett_expr::Arena;
use everett_vm::Buffer;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::interfaces::LOOPBACK;
use super::outgoing::Outgoing;
use super::{Address, Ancillary, ReceivedMessage, Socket, SocketType, level};
use crate::bytes::join;
use crate::errno::Errno;
use crate::frames::{
    Datagram, Frame, Hops, IP_HEADER, IpHeader, UDP_HEADER, ethertype, header_len, icmp, protocol,
    put_checksum, symbolic_checksum,
};
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Kernel, Stop};
use crate::objects::{OpenObject, event};
use crate::packets::PacketKind;
use crate::queue::slice;

/// The longest IP packet.
const MAX_PACKET: usize = 65535;
const TYPE_OF_SERVICE: u32 = 1;
const TTL: u32 = 2;
const GROUP_TTL: u32 = 33;

impl Socket {
    /// Whether it is a raw socket of IPv4.
    pub fn is_raw(&self) -> bool {
        self.domain.is_internet() && self.kind == SocketType::Raw
    }

    /// Whether it sends and receives ICMP echoes only.
    pub fn is_ping(&self) -> bool {
        let is_icmp = self.protocol == u32::from(protocol::ICMP);
        self.domain.is_internet() && self.kind == SocketType::Datagram && is_icmp
    }

    fn number(&self, name: u32) -> u8 {
        self.options.other(level::IP, name).unwrap_or(0) as u8
    }

    /// Hops and type of service of its datagrams to an address, unless the message has its own.
    pub(super) fn hops_to(&self, to: IpAddr, message: &Ancillary) -> Hops {
        const HOPS6: u32 = 16;
        const GROUP_HOPS6: u32 = 18;
        const TRAFFIC_CLASS: u32 = 67;
        let number6 = |name: u32| self.options.other(level::IPV6, name).unwrap_or(0) as u8;
        let (ttl, tos) = match (to.is_ipv4(), to.is_multicast()) {
            (true, _) => (self.ttl_to(to), self.number(TYPE_OF_SERVICE)),
            (false, true) => (number6(GROUP_HOPS6), number6(TRAFFIC_CLASS)),
            (false, false) => (number6(HOPS6), number6(TRAFFIC_CLASS)),
        };
        Hops {
            ttl: message.hops.0.unwrap_or(ttl),
            tos: message.hops.1.unwrap_or(tos),
        }
    }

    /// Hops that its packets to an address may take.
    pub(super) fn ttl_to(&self, to: IpAddr) -> u8 {
        self.number(if to.is_multicast() { GROUP_TTL } else { TTL })
    }
}

/// The source address of a packet: the socket's address, or the one that routing selects.
pub(super) fn source_of(socket: &Socket, way: &Outgoing) -> IpAddr {
    let own = socket.local.internet().map(|local| local.ip());
    let is_one = |ip: &IpAddr| !ip.is_unspecified() && !ip.is_multicast();
    let is_all = |ip: &IpAddr| matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    own.filter(|ip| is_one(ip) && !is_all(ip))
        .unwrap_or(way.from)
}

fn v4(ip: IpAddr) -> Result<Ipv4Addr, Errno> {
    match ip {
        IpAddr::V4(ip) => Ok(ip),
        IpAddr::V6(_) => Err(Errno::EAFNOSUPPORT),
    }
}

impl Kernel<'_, '_> {
    /// Routes a packet of a raw or ping socket.
    fn way_of_raw(
        &mut self,
        open: OpenObject<'_>,
        to: Option<&Address>,
        len: usize,
        flags: u32,
    ) -> Result<Outgoing, Stop> {
        if len > MAX_PACKET {
            return Err(Errno::EMSGSIZE.into());
        }
        let to = self.target_of(open, to, flags)?.ip();
        let socket = self.host.socket(open.object).ok_or(Errno::ENOTSOCK)?;
        let way = self.host.way(socket, to)?;
        if self.host.network.is_broadcast(to) && !socket.options.broadcast {
            return Err(Errno::EACCES.into());
        }
        self.expect_sendable(open)?;
        Ok(way)
    }

    /// Sends an IP packet.
    pub(super) fn send_raw(
        &mut self,
        open: OpenObject<'_>,
        parts: &[Buffer],
        to: Option<&Address>,
        flags: u32,
    ) -> Result<u64, Stop> {
        let bytes = join(parts.to_vec());
        let way = self.way_of_raw(open, to, bytes.len(), flags)?;
        let socket = self.socket_of(open)?;
        let (from, target) = (v4(source_of(socket, &way))?, v4(way.to)?);
        let (mut ip, mut payload) = if socket.options.header_included {
            self.included_header(&bytes, from, way.index)?
        } else {
            if bytes.len() + IP_HEADER > MAX_PACKET {
                return Err(Errno::EMSGSIZE.into());
            }
            let (ttl, tos) = (socket.ttl_to(way.to), socket.number(TYPE_OF_SERVICE));
            let protocol = socket.protocol as u8;
            let ip = IpHeader::new((from, target), protocol, ttl, tos, bytes.len());
            (ip, bytes.clone())
        };
        self.look_into(&mut ip, &mut payload)?;
        let frame = Frame::ip(ip, payload);
        self.host.send_frame(self.vm.arena, frame, &way);
        self.host.announce(open.object, event::WRITING);
        Ok(bytes.len() as u64)
    }

    /// Parses the header that a program supplies (`IP_HDRINCL`). The kernel fills in missing
    /// fields.
    fn included_header(
        &mut self,
        bytes: &Buffer,
        from: Ipv4Addr,
        index: u32,
    ) -> Result<(IpHeader, Buffer), Stop> {
        let mtu = self.host.network.interface(index).map_or(0, |it| it.mtu);
        if bytes.len() > mtu as usize {
            return Err(Errno::EMSGSIZE.into());
        }
        if bytes.len() < IP_HEADER {
            return Err(Errno::EINVAL.into());
        }
        let first = self.known(bytes, 0, 1)?;
        let Some(len) = header_len(&first) else {
            self.refuse("sendto", "an IP header of less than 20 bytes");
            return Err(Errno::EINVAL.into());
        };
        if len > bytes.len() {
            return Err(Errno::EINVAL.into());
        }
        let mut ip = IpHeader {
            bytes: self.known(bytes, 0, len)?,
            is_sound: true,
            ports: (0, 0),
        };
        ip.bytes[2..4].copy_from_slice(&(bytes.len() as u16).to_be_bytes());
        if ip.from().is_unspecified() {
            ip.bytes[12..16].copy_from_slice(&from.octets());
        }
        ip.sum_up();
        Ok((ip, slice(bytes, len, bytes.len() - len)))
    }

    /// Concrete bytes of a message. Symbolic ones are concretized, with one path for each value.
    fn known(&mut self, bytes: &Buffer, at: usize, len: usize) -> Result<Vec<u8>, Stop> {
        let mut known = Vec::with_capacity(len);
        for at in at..at + len {
            let byte = bytes.byte(self.vm.arena, at);
            known.push(self.vm.concretize(byte)? as u8);
        }
        Ok(known)
    }

    fn known_word(&mut self, bytes: &Buffer, at: usize) -> Result<u16, Stop> {
        let word = self.known(bytes, at, 2)?;
        Ok(u16::from_be_bytes([word[0], word[1]]))
    }

    /// Parses a frame of a packet socket as an IPv4 packet, if its header is valid.
    pub(super) fn take_apart(&mut self, kind: u16, bytes: Buffer) -> Result<Frame, Stop> {
        let mut frame = Frame {
            hardware: None,
            ethertype: kind,
            ip: None,
            payload: bytes,
        };
        if kind != ethertype::IP || frame.payload.len() < IP_HEADER {
            return Ok(frame);
        }
        let bytes = &frame.payload;
        let first = self.known(bytes, 0, 1)?;
        let len = header_len(&first).filter(|len| *len <= bytes.len());
        let Some(len) = len else { return Ok(frame) };
        let header = self.known(bytes, 0, len)?;
        if let Some(mut ip) = IpHeader::parse(&header, bytes.len()) {
            // Bytes after the end of the packet are padding.
            let mut payload = slice(bytes, len, ip.total() - len);
            self.look_into(&mut ip, &mut payload)?;
            frame.ip = Some(ip);
            frame.payload = payload;
        }
        Ok(frame)
    }

    /// Examines what kernels read in a packet: ports, types, and whether checksums are correct.
    /// This happens at the sender, since receivers cannot ask the oracle.
    fn look_into(&mut self, ip: &mut IpHeader, payload: &mut Buffer) -> Result<(), Stop> {
        if ip.is_fragment() {
            ip.is_sound = false;
            self.refuse(
                "sendto",
                "fragments of IP packets, which are not reassembled",
            );
            return Ok(());
        }
        match ip.protocol() {
            protocol::ICMP if payload.len() >= icmp::HEADER => {
                let kind = self.known(payload, 0, 1)?[0];
                let is_echo = matches!(kind, icmp::ECHO | icmp::ECHO_REPLY);
                let id = if is_echo {
                    self.known_word(payload, 4)?
                } else {
                    self.refuse("sendto", "ICMP messages that only raw sockets see");
                    0
                };
                ip.ports = (u16::from(kind), id);
                ip.is_sound = self.sums_up(&Buffer::zeroed(0), payload)?;
            }
            protocol::UDP if payload.len() >= UDP_HEADER => {
                ip.ports = (self.known_word(payload, 0)?, self.known_word(payload, 2)?);
                let len = self.known_word(payload, 4)?;
                payload.write(4, &len.to_be_bytes());
                let len = usize::from(len);
                let has_sum = self.known_word_is_set(payload, 6)?;
                ip.is_sound = (UDP_HEADER..=payload.len()).contains(&len);
                if ip.is_sound && has_sum {
                    let mut pseudo = ip.bytes[12..20].to_vec();
                    pseudo.extend_from_slice(&[0, protocol::UDP]);
                    pseudo.extend_from_slice(&(len as u16).to_be_bytes());
                    let pseudo = Buffer::with_bytes(&pseudo, pseudo.len());
                    ip.is_sound = self.sums_up(&pseudo, &slice(payload, 0, len))?;
                }
            }
            protocol::ICMP | protocol::UDP => ip.is_sound = false,
            protocol::TCP => self.refuse("sendto", "raw TCP segments, which only raw sockets see"),
            _ => {}
        }
        Ok(())
    }

    /// Whether a checksum field is nonzero.
    fn known_word_is_set(&mut self, bytes: &Buffer, at: usize) -> Result<bool, Stop> {
        let word = bytes.load(self.vm.arena, at, 2);
        let term = word.to_term(self.vm.arena, 16);
        let zero = self.vm.arena.constant(16, 0);
        let is_zero = self.vm.arena.eq(term, zero);
        Ok(!self.vm.decide_term(is_zero)?)
    }

    /// Whether the checksum in a message is correct.
    fn sums_up(&mut self, before: &Buffer, bytes: &Buffer) -> Result<bool, Stop> {
        let all = join(vec![before.clone(), bytes.clone()]);
        let sum = symbolic_checksum(self.vm.arena, &all);
        let term = sum.to_term(self.vm.arena, 16);
        let zero = self.vm.arena.constant(16, 0);
        let holds = self.vm.arena.eq(term, zero);
        Ok(self.vm.decide_term(holds)?)
    }

    /// Sends an ICMP echo request of a ping socket, whose identifier is the port of the socket.
    pub(super) fn send_ping(
        &mut self,
        open: OpenObject<'_>,
        parts: &[Buffer],
        to: Option<&Address>,
        flags: u32,
    ) -> Result<u64, Stop> {
        let mut message = join(parts.to_vec());
        let len = message.len();
        if (icmp::HEADER..=MAX_PACKET).contains(&len)
            && self.known(&message, 0, 2)? != [icmp::ECHO, 0]
        {
            return Err(Errno::EINVAL.into());
        }
        if len < icmp::HEADER {
            return Err(Errno::EINVAL.into());
        }
        let way = self.way_of_raw(open, to, len, flags)?;
        self.host.bind_udp_anywhere(open.object)?;
        let socket = self.socket_of(open)?;
        let ends = (v4(source_of(socket, &way))?, v4(way.to)?);
        let id = socket.local.internet().map_or(0, |local| local.port());
        let (ttl, tos) = (socket.ttl_to(way.to), socket.number(TYPE_OF_SERVICE));
        message.write(4, &id.to_be_bytes());
        put_checksum(self.vm.arena, &mut message, 2);
        let mut ip = IpHeader::new(ends, protocol::ICMP, ttl, tos, len);
        ip.ports = (u16::from(icmp::ECHO), id);
        self.host
            .send_frame(self.vm.arena, Frame::ip(ip, message), &way);
        self.host.announce(open.object, event::WRITING);
        Ok(len as u64)
    }
}

/// The addresses of a packet, with ports if it has any.
pub(crate) fn ends_of(ip: &IpHeader) -> (SocketAddr, SocketAddr) {
    let ports = match ip.protocol() {
        protocol::UDP => ip.ports,
        _ => (0, 0),
    };
    let (from, to) = (ip.from(), ip.to());
    ((from, ports.0).into(), (to, ports.1).into())
}

impl HostState {
    /// Sends an IP packet of this host.
    pub(super) fn send_frame(&mut self, arena: &mut Arena, frame: Frame, way: &Outgoing) {
        let Some(ip) = &frame.ip else { return };
        let (from, to) = ends_of(ip);
        if way.leaves {
            self.transmit(from, to, PacketKind::Frame(Box::new(frame.clone())));
        } else {
            self.tap(&frame, way.index, true, None);
            self.log_packet(from, to, PacketKind::Frame(Box::new(frame.clone())));
        }
        if way.arrives {
            self.frame_arrives(arena, &frame, way.index);
        }
    }

    /// Receives a frame at an interface.
    pub(crate) fn frame_arrives(&mut self, arena: &mut Arena, frame: &Frame, index: u32) {
        self.tap(frame, index, false, None);
        let Some(ip) = &frame.ip else {
            return self.arp_arrives(frame, index);
        };
        let (from, to) = ends_of(ip);
        // A frame with hardware addresses is martian if it arrives at the loopback or has a
        // loopback address: no host has such an address on a network.
        let is_martian = frame.hardware.is_some()
            && (index == LOOPBACK || from.ip().is_loopback() || to.ip().is_loopback());
        if is_martian || !self.accepts(to.ip(), index) || ip.is_fragment() {
            return;
        }
        let is_taken = self.deliver_raw(frame, index);
        match ip.protocol() {
            protocol::UDP if ip.is_sound => {
                let len = frame.payload.bytes().get(4..6);
                let len = len.map_or(0, |len| usize::from(u16::from_be_bytes([len[0], len[1]])));
                let len = len.clamp(UDP_HEADER, frame.payload.len());
                let bytes = slice(&frame.payload, UDP_HEADER, len - UDP_HEADER);
                let datagram = Datagram {
                    bytes,
                    hops: ip.hops(),
                };
                self.datagram_arrives(arena, (from, to), &datagram, index);
            }
            protocol::ICMP => self.icmp_arrives(arena, frame, ip, index),
            protocol::UDP | protocol::TCP | protocol::IGMP => {}
            _ if is_taken || !self.network.is_own(to.ip()) => {}
            _ => {
                self.send_unreachable(arena, (to, from), Errno::ENOPROTOOPT, frame.quoted(), index)
            }
        }
    }

    /// Notifies the sender of a packet that no socket accepts.
    pub(super) fn send_unreachable(
        &mut self,
        arena: &mut Arena,
        (from, to): (SocketAddr, SocketAddr),
        errno: Errno,
        quoted: Buffer,
        index: u32,
    ) {
        if index != LOOPBACK {
            return self.transmit(from, to, PacketKind::Unreachable { errno, quoted });
        }
        self.unreachable_arrives(arena, (from, to), errno, &quoted, index);
    }

    /// Processes an ICMP message as the kernel does: answers echo requests, and delivers replies to
    /// ping sockets.
    fn icmp_arrives(&mut self, arena: &mut Arena, frame: &Frame, ip: &IpHeader, index: u32) {
        let (kind, id) = ip.ports;
        // Multicast and broadcast requests are ignored, which is the default.
        if self.network.is_own(ip.to().into())
            && let Some(answer) = frame.echo(arena, ip.to())
        {
            let way = Outgoing {
                to: ip.from().into(),
                from: ip.to().into(),
                index,
                leaves: index != LOOPBACK,
                arrives: index == LOOPBACK,
            };
            return self.send_frame(arena, answer, &way);
        }
        if kind != u16::from(icmp::ECHO_REPLY) || !ip.is_sound {
            return;
        }
        let takes = |socket: &Socket| {
            let local = socket.local.internet();
            let is_there = local.is_some_and(|own| {
                own.port() == id && (own.ip().is_unspecified() || own.ip() == ip.to())
            });
            socket.is_ping() && is_there && socket.takes_at(ip.to().into(), index)
        };
        let mut sockets = self.sockets();
        let found = sockets.find_map(|(id, socket)| takes(socket).then_some(id));
        drop(sockets);
        if let Some(found) = found {
            self.deliver_ip(found, ip, frame.payload.clone());
        }
    }

    /// Delivers a packet to all raw sockets that accept it. Returns whether there is one.
    fn deliver_raw(&mut self, frame: &Frame, index: u32) -> bool {
        let Some(ip) = &frame.ip else { return false };
        let takes = |socket: &Socket| {
            let is_end = |own: Option<SocketAddr>, end: Ipv4Addr| {
                own.is_none_or(|own| own.ip().is_unspecified() || own.ip() == end)
            };
            let is_filtered = ip.protocol() == protocol::ICMP
                && ip.ports.0 < 32
                && socket.options.icmp_filter >> ip.ports.0 & 1 != 0;
            socket.is_raw()
                && socket.protocol == u32::from(ip.protocol())
                && is_end(socket.local.internet(), ip.to())
                && is_end(socket.remote.internet(), ip.from())
                && socket.takes_at(ip.to().into(), index)
                && !is_filtered
        };
        let receivers: Vec<ObjectId> = self
            .sockets()
            .filter_map(|(id, socket)| takes(socket).then_some(id))
            .collect();
        for id in &receivers {
            self.deliver_ip(*id, ip, frame.bytes());
        }
        !receivers.is_empty()
    }

    fn deliver_ip(&mut self, id: ObjectId, ip: &IpHeader, bytes: Buffer) {
        let message = ReceivedMessage {
            from: Address::Internet((ip.from(), 0).into()),
            to: Address::Internet((ip.to(), 0).into()),
            hops: ip.hops(),
            ..ReceivedMessage::plain(bytes)
        };
        self.queue_datagram(id, message);
    }

    /// Delivers a UDP datagram to raw and packet sockets, which see whole packets.
    pub(crate) fn show_datagram(
        &mut self,
        ends: (SocketAddr, SocketAddr),
        datagram: &Datagram,
        index: u32,
    ) {
        if !self.has_onlookers() {
            return;
        }
        if let Some(frame) = Frame::udp(ends.0, ends.1, datagram) {
            self.tap(&frame, index, false, None);
            if self.accepts(ends.1.ip(), index) {
                self.deliver_raw(&frame, index);
            }
        }
    }

    /// Whether there are sockets that see whole packets.
    pub(crate) fn has_onlookers(&self) -> bool {
        let mut sockets = self.sockets();
        sockets.any(|(_, socket)| socket.kind == SocketType::Raw || socket.is_packet())
    }

    /// Receives an ICMP error: raw sockets see the message, and connected sockets get the error.
    pub(crate) fn unreachable_arrives(
        &mut self,
        arena: &mut Arena,
        (from, to): (SocketAddr, SocketAddr),
        errno: Errno,
        quoted: &Buffer,
        index: u32,
    ) {
        let code = match errno {
            Errno::ENETUNREACH => 0,
            Errno::EHOSTUNREACH => 1,
            Errno::ENOPROTOOPT => 2,
            _ => 3,
        };
        if !quoted.is_empty()
            && let (IpAddr::V4(remote), IpAddr::V4(own)) = (from.ip(), to.ip())
        {
            // If the network or host is unreachable, the error does not come from there.
            let teller = if code < 2 { own } else { remote };
            let frame = Frame::error(arena, (teller, own), code, quoted);
            self.tap(&frame, index, false, None);
            self.deliver_raw(&frame, index);
            self.report_to_raw(quoted, errno);
        }
        self.report_unreachable(to, from, errno);
    }

    /// Reports an error to connected raw and ping sockets that sent the quoted packet.
    fn report_to_raw(&mut self, quoted: &Buffer, errno: Errno) {
        let Some(ip) = IpHeader::parse(quoted.bytes(), MAX_PACKET) else {
            return;
        };
        let is_sender = |socket: &Socket| {
            let remote = socket.remote.internet();
            (socket.is_raw() || socket.is_ping())
                && socket.protocol == u32::from(ip.protocol())
                && remote.is_some_and(|remote| remote.ip() == ip.to())
        };
        let senders: Vec<ObjectId> = self
            .sockets()
            .filter_map(|(id, socket)| is_sender(socket).then_some(id))
            .collect();
        // Only a hard error becomes the error of the socket.
        if !matches!(errno, Errno::ENOPROTOOPT | Errno::ECONNREFUSED) {
            return;
        }
        for id in senders {
            if let Some(socket) = self.socket_mut(id) {
                socket.error = Some(errno);
            }
            self.announce(id, event::ERROR);
        }
    }
}
