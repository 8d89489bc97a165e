//! Packet sockets (`AF_PACKET`), which send and receive whole frames at the interfaces of the host.

use everett_vm::Buffer;

use super::interfaces::{ETHERNET, LOOPBACK};
use super::{Address, Domain, ReceivedMessage, Socket, SocketType};
use crate::bytes::join;
use crate::errno::Errno;
use crate::frames::{ETHERNET_HEADER, Frame, HardwareAddress, ethertype};
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Kernel, Stop};
use crate::objects::socket::address::LinkAddress;
use crate::objects::{OpenObject, event};
use crate::packets::PacketKind;
use crate::queue::slice;

/// Kinds of destinations of a frame.
mod packet_kind {
    pub const HOST: u8 = 0;
    pub const ALL: u8 = 1;
    pub const GROUP: u8 = 2;
    pub const OTHER: u8 = 3;
    pub const OUTGOING: u8 = 4;
}

impl Socket {
    /// Whether it is a packet socket.
    pub fn is_packet(&self) -> bool {
        self.domain == Domain::Packet
    }

    fn link(&self) -> LinkAddress {
        match self.local {
            Address::Link(own) => own,
            _ => LinkAddress::default(),
        }
    }
}

impl Kernel<'_, '_> {
    /// Sends a frame.
    pub(super) fn send_packet(
        &mut self,
        open: OpenObject<'_>,
        parts: &[Buffer],
        to: Option<&Address>,
    ) -> Result<u64, Stop> {
        let socket = self.socket_of(open)?;
        let (own, kind) = (socket.link(), socket.kind);
        let target = match to {
            Some(Address::Link(target)) => Some(*target),
            _ => None,
        };
        let index = target.map_or(own.index, |target| target.index);
        let interface = self.host.network.interface(index).ok_or(Errno::ENXIO)?;
        let bytes = join(parts.to_vec());
        let (hardware, protocol, body) = if kind == SocketType::Raw {
            if bytes.len() < ETHERNET_HEADER {
                return Err(Errno::EINVAL.into());
            }
            let mut header = [0; ETHERNET_HEADER];
            for (at, byte) in header.iter_mut().enumerate() {
                let value = bytes.byte(self.vm.arena, at);
                *byte = self.vm.concretize(value)? as u8;
            }
            let part = |at: usize| header[at..].first_chunk::<6>().copied().unwrap_or_default();
            let protocol = u16::from_be_bytes([header[12], header[13]]);
            let len = bytes.len() - ETHERNET_HEADER;
            let body = slice(&bytes, ETHERNET_HEADER, len);
            ([part(0), part(6)], protocol, body)
        } else {
            let protocol = target.map_or(own.protocol, |target| target.protocol);
            let hardware = match target {
                Some(target) if target.len >= 6 || index == LOOPBACK => target.hardware,
                None if index == LOOPBACK => [0; 6],
                _ => return Err(Errno::EINVAL.into()),
            };
            ([hardware, interface.hardware], protocol, bytes.clone())
        };
        if body.len() > interface.mtu as usize {
            return Err(Errno::EMSGSIZE.into());
        }
        let mut frame = self.take_apart(protocol, body)?;
        frame.hardware = Some(hardware);
        self.host.tap(&frame, index, true, Some(open.object));
        if index == LOOPBACK {
            self.host.frame_arrives(self.vm.arena, &frame, index);
        } else if self.host.wire.is_networked {
            self.host.put_on_wire(frame);
        }
        self.host.announce(open.object, event::WRITING);
        Ok(bytes.len() as u64)
    }

    /// `bind` of a packet socket: from now on it receives one protocol, from one interface or from
    /// all.
    pub fn bind_packet(&mut self, object: ObjectId, bytes: &[u8]) -> Result<(), Errno> {
        let wanted = LinkAddress::parse(bytes)?;
        let interface = match wanted.index {
            0 => None,
            index => Some(self.host.network.interface(index).ok_or(Errno::ENODEV)?),
        };
        let socket = self.host.socket_mut(object).ok_or(Errno::ENOTSOCK)?;
        let protocol = match wanted.protocol {
            0 => socket.link().protocol,
            protocol => protocol,
        };
        socket.local = Address::Link(LinkAddress {
            protocol,
            index: wanted.index,
            kind: interface.map_or(0, |interface| interface.kind),
            packet_kind: packet_kind::HOST,
            len: if interface.is_some() { 6 } else { 0 },
            hardware: interface.map_or([0; 6], |interface| interface.hardware),
        });
        socket.bound = true;
        Ok(())
    }
}

impl HostState {
    /// Sends a frame of a packet socket to the hosts of the network.
    fn put_on_wire(&mut self, frame: Frame) {
        let any = std::net::SocketAddr::from(([0, 0, 0, 0], 0));
        let (from, to) = frame.ip.as_ref().map_or((any, any), super::raw::ends_of);
        self.transmit_quietly(from, to, PacketKind::Frame(Box::new(frame)));
    }

    /// Shows a frame at an interface to packet sockets. Outgoing frames go to the sockets that
    /// receive all protocols, except to the sender.
    pub(crate) fn tap(
        &mut self,
        frame: &Frame,
        index: u32,
        goes_out: bool,
        sender: Option<ObjectId>,
    ) {
        let sees = |id: ObjectId, socket: &Socket| {
            let own = socket.link();
            let is_there = own.index == 0 || own.index == index;
            let is_its = match own.protocol {
                ethertype::ALL => !goes_out || sender != Some(id),
                protocol => !goes_out && protocol != 0 && protocol == frame.ethertype,
            };
            socket.is_packet() && is_there && is_its
        };
        let seers: Vec<(ObjectId, SocketType)> = self
            .sockets()
            .filter_map(|(id, socket)| sees(id, socket).then_some((id, socket.kind)))
            .collect();
        if seers.is_empty() {
            return;
        }
        let (hardware, from) = self.describe(frame, index, goes_out);
        let body = frame.bytes();
        let mut whole = Buffer::zeroed(ETHERNET_HEADER + body.len());
        whole.write(0, &hardware.concat());
        whole.write(12, &frame.ethertype.to_be_bytes());
        whole.copy_from(ETHERNET_HEADER, &body, 0, body.len());
        for (id, kind) in seers {
            let bytes = match kind {
                SocketType::Raw => whole.clone(),
                _ => body.clone(),
            };
            let message = ReceivedMessage {
                from: Address::Link(from),
                ..ReceivedMessage::plain(bytes)
            };
            self.queue_datagram(id, message);
        }
    }

    /// Hardware addresses of a frame at an interface, and its source as a packet socket reports it.
    fn describe(
        &self,
        frame: &Frame,
        index: u32,
        goes_out: bool,
    ) -> ([HardwareAddress; 2], LinkAddress) {
        let interface = self.network.interface(index);
        let own = interface.map_or([0; 6], |interface| interface.hardware);
        let hardware = match frame.hardware {
            Some(hardware) => hardware,
            None if index == LOOPBACK => [[0; 6]; 2],
            None => frame.hardware(),
        };
        let packet_kind = match hardware[0] {
            _ if goes_out => packet_kind::OUTGOING,
            // The loopback has no broadcast address.
            crate::frames::TO_ALL if index != LOOPBACK => packet_kind::ALL,
            [group, ..] if group & 1 != 0 => packet_kind::GROUP,
            target if target == own => packet_kind::HOST,
            _ => packet_kind::OTHER,
        };
        let from = LinkAddress {
            protocol: frame.ethertype,
            index,
            kind: interface.map_or(0, |interface| interface.kind),
            packet_kind,
            len: 6,
            hardware: hardware[1],
        };
        (hardware, from)
    }

    /// Answers an ARP request for an address of this host, as the kernel does.
    pub(super) fn arp_arrives(&mut self, frame: &Frame, index: u32) {
        /// Hardware type Ethernet, protocol type IPv4, operation request.
        const REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 1];
        const LEN: usize = 28;
        let asked = frame.payload.bytes().get(..LEN);
        let is_known = !frame.payload.has_symbolic(0, LEN.min(frame.payload.len()));
        let Some(asked) = asked.filter(|asked| is_known && asked[..8] == REQUEST) else {
            return;
        };
        let wanted = std::net::Ipv4Addr::new(asked[24], asked[25], asked[26], asked[27]);
        let is_own = self.network.addresses.contains(&wanted.into());
        if frame.ethertype != ethertype::ARP || index != ETHERNET || !is_own {
            return;
        }
        let own = self
            .network
            .interface(index)
            .map_or([0; 6], |it| it.hardware);
        let mut answer = REQUEST.to_vec();
        answer[7] = 2;
        answer.extend_from_slice(&own);
        answer.extend_from_slice(&wanted.octets());
        answer.extend_from_slice(&asked[8..18]);
        let asker = asked[8..].first_chunk::<6>().copied().unwrap_or_default();
        let answer = Frame {
            hardware: Some([asker, own]),
            ethertype: ethertype::ARP,
            ip: None,
            payload: Buffer::with_bytes(&answer, answer.len()),
        };
        self.tap(&answer, index, true, None);
        self.put_on_wire(answer);
    }
}
