//! Builds and parses packets as raw and packet sockets see them: IPv4 and Ethernet headers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use everett_expr::Arena;
use everett_vm::{Buffer, Value};

/// Numbers of protocols over Ethernet.
pub mod ethertype {
    /// All protocols, for packet sockets.
    pub const ALL: u16 = 3;
    /// IPv4.
    pub const IP: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
}

/// Numbers of protocols over IP.
pub mod protocol {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// IGMP.
    pub const IGMP: u8 = 2;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// Raw packets whose header the program supplies.
    pub const RAW: u8 = 255;
}

/// Types of ICMP messages.
pub mod icmp {
    /// An answer to an echo request.
    pub const ECHO_REPLY: u8 = 0;
    /// A packet could not be delivered.
    pub const UNREACHABLE: u8 = 3;
    /// An echo request, which the kernel answers.
    pub const ECHO: u8 = 8;
    /// Bytes of an ICMP header.
    pub const HEADER: usize = 8;
}

/// Bytes of an IPv4 header without options.
pub const IP_HEADER: usize = 20;
/// Bytes of an Ethernet header.
pub const ETHERNET_HEADER: usize = 14;
/// Bytes of a UDP header.
pub const UDP_HEADER: usize = 8;
/// Default number of hops of a packet.
pub const USUAL_TTL: u8 = 64;

/// What the IP header of a packet says besides its addresses.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hops {
    /// Remaining hops.
    pub ttl: u8,
    /// Type of service, or traffic class.
    pub tos: u8,
}

impl Default for Hops {
    fn default() -> Hops {
        Hops {
            ttl: USUAL_TTL,
            tos: 0,
        }
    }
}
/// Maximum number of bytes of a packet that an ICMP error quotes: with its own headers the error
/// has 576.
const MOST_QUOTED: usize = 548;

/// A UDP datagram.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Its payload.
    pub bytes: Buffer,
    /// What its IP header says besides its addresses.
    pub hops: Hops,
}

impl From<Buffer> for Datagram {
    fn from(bytes: Buffer) -> Datagram {
        Datagram {
            bytes,
            hops: Hops::default(),
        }
    }
}

/// An Ethernet address.
pub type HardwareAddress = [u8; 6];
/// The broadcast address.
pub const TO_ALL: HardwareAddress = [0xff; 6];

/// The hardware address of the interface with this IP address, or of a multicast group.
pub fn hardware_of(ip: Ipv4Addr) -> HardwareAddress {
    let [a, b, c, d] = ip.octets();
    if ip.is_broadcast() {
        TO_ALL
    } else if ip.is_multicast() {
        [1, 0, 0x5e, b & 0x7f, c, d]
    } else {
        [2, 0, a, b, c, d]
    }
}

/// A packet of a raw or packet socket, with everything that a kernel on its path examines.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Hardware addresses, the target's first, if a packet socket chose them; otherwise IP routes
    /// the packet.
    pub hardware: Option<[HardwareAddress; 2]>,
    /// The protocol over Ethernet.
    pub ethertype: u16,
    /// Its IPv4 header, if it has a valid one.
    pub ip: Option<IpHeader>,
    /// The payload after the IPv4 header. For a frame that is not IPv4: everything after the
    /// Ethernet header.
    pub payload: Buffer,
}

/// An IPv4 header.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IpHeader {
    /// Its bytes; at least 20.
    pub bytes: Vec<u8>,
    /// Length and checksum of the UDP datagram or ICMP message that it carries are correct.
    pub is_sound: bool,
    /// Ports of UDP, source first; type and identifier of an ICMP message.
    pub ports: (u16, u16),
}

impl IpHeader {
    /// A header without options, with its checksum.
    pub fn new(ends: (Ipv4Addr, Ipv4Addr), protocol: u8, ttl: u8, tos: u8, len: usize) -> IpHeader {
        let total = (IP_HEADER + len) as u16;
        let mut bytes = vec![0x45, tos];
        bytes.extend_from_slice(&total.to_be_bytes());
        // No identification, since the packet must not be fragmented.
        bytes.extend_from_slice(&[0, 0, 0x40, 0, ttl, protocol, 0, 0]);
        bytes.extend_from_slice(&ends.0.octets());
        bytes.extend_from_slice(&ends.1.octets());
        let mut header = IpHeader {
            bytes,
            is_sound: true,
            ports: (0, 0),
        };
        header.sum_up();
        header
    }

    /// Computes its checksum and stores it.
    pub fn sum_up(&mut self) {
        self.bytes[10..12].fill(0);
        let sum = checksum(&self.bytes);
        self.bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    }

    /// Parses the header at the start of a packet of this length; `None` if it is invalid.
    pub fn parse(bytes: &[u8], total: usize) -> Option<IpHeader> {
        let len = header_len(bytes)?;
        let header = bytes.get(..len)?;
        let said = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let holds = header[0] >> 4 == 4 && said >= len && said <= total && checksum(header) == 0;
        holds.then(|| IpHeader {
            bytes: header.to_vec(),
            is_sound: true,
            ports: (0, 0),
        })
    }

    fn address(&self, at: usize) -> Ipv4Addr {
        let octets = self
            .bytes
            .get(at..)
            .and_then(|rest| rest.first_chunk::<4>());
        octets.map_or(Ipv4Addr::UNSPECIFIED, |octets| Ipv4Addr::from(*octets))
    }

    /// Its source address.
    pub fn from(&self) -> Ipv4Addr {
        self.address(12)
    }

    /// Its destination address.
    pub fn to(&self) -> Ipv4Addr {
        self.address(16)
    }

    /// The protocol of its payload.
    pub fn protocol(&self) -> u8 {
        self.bytes.get(9).copied().unwrap_or(0)
    }

    /// Remaining hops.
    pub fn ttl(&self) -> u8 {
        self.bytes.get(8).copied().unwrap_or(0)
    }

    /// Type of service.
    pub fn tos(&self) -> u8 {
        self.bytes.get(1).copied().unwrap_or(0)
    }

    /// Its remaining hops and type of service.
    pub fn hops(&self) -> Hops {
        Hops {
            ttl: self.ttl(),
            tos: self.tos(),
        }
    }

    /// Length of the whole packet.
    pub fn total(&self) -> usize {
        usize::from(u16::from_be_bytes([self.bytes[2], self.bytes[3]]))
    }

    /// Whether the packet is a fragment.
    pub fn is_fragment(&self) -> bool {
        self.bytes[6] & 0x3f != 0 || self.bytes[7] != 0
    }
}

/// The length of an IPv4 header according to its length field.
pub fn header_len(bytes: &[u8]) -> Option<usize> {
    let len = usize::from(bytes.first()? & 0xf) * 4;
    (len >= IP_HEADER).then_some(len)
}

/// The internet checksum. Over bytes that contain their correct checksum it is 0.
pub fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The internet checksum of bytes that may be symbolic: 16 bits.
pub fn symbolic_checksum(arena: &mut Arena, bytes: &Buffer) -> Value {
    if bytes.is_concrete() {
        return Value::concrete(u64::from(checksum(bytes.bytes())));
    }
    let mut sum = arena.constant(32, 0);
    for at in (0..bytes.len()).step_by(2) {
        let high = bytes.byte_term(arena, at);
        let low = match at + 1 < bytes.len() {
            true => bytes.byte_term(arena, at + 1),
            false => arena.constant(8, 0),
        };
        let word = arena.concat(high, low);
        let word = arena.zext(word, 32);
        sum = arena.add(sum, word);
    }
    for _ in 0..2 {
        let (low, high) = (arena.extract(sum, 0, 16), arena.extract(sum, 16, 16));
        let (low, high) = (arena.zext(low, 32), arena.zext(high, 32));
        sum = arena.add(low, high);
    }
    let folded = arena.extract(sum, 0, 16);
    let term = arena.not(folded);
    Value::of_term(arena, term)
}

/// Computes the checksum of a message and stores it in the message.
pub fn put_checksum(arena: &mut Arena, bytes: &mut Buffer, at: usize) {
    bytes.write(at, &[0, 0]);
    let sum = symbolic_checksum(arena, bytes);
    match sum.term {
        None => bytes.write(at, &(sum.bits as u16).to_be_bytes()),
        Some(term) => {
            for (at, low) in [(at, 8), (at + 1, 0)] {
                let byte = arena.extract(term, low, 8);
                let byte = Value::of_term(arena, byte);
                bytes.store(at, 1, byte);
            }
        }
    }
}

impl Frame {
    /// Creates an IPv4 packet that IP routes.
    pub fn ip(ip: IpHeader, payload: Buffer) -> Frame {
        Frame {
            hardware: None,
            ethertype: ethertype::IP,
            ip: Some(ip),
            payload,
        }
    }

    /// Creates the UDP datagram of a socket, without a checksum. `None` for IPv6.
    pub fn udp(from: SocketAddr, to: SocketAddr, datagram: &Datagram) -> Option<Frame> {
        let (bytes, Hops { ttl, tos }) = (&datagram.bytes, datagram.hops);
        let (SocketAddr::V4(from), SocketAddr::V4(to)) = (from, to) else {
            return None;
        };
        let mut payload = Buffer::zeroed(UDP_HEADER + bytes.len());
        payload.write(0, &from.port().to_be_bytes());
        payload.write(2, &to.port().to_be_bytes());
        payload.write(4, &(payload.len() as u16).to_be_bytes());
        payload.copy_from(UDP_HEADER, bytes, 0, bytes.len());
        let ends = (*from.ip(), *to.ip());
        let mut ip = IpHeader::new(ends, protocol::UDP, ttl, tos, payload.len());
        ip.ports = (from.port(), to.port());
        Some(Frame::ip(ip, payload))
    }

    /// Creates an ICMP error about a packet, which quotes the start of the packet.
    pub fn error(
        arena: &mut Arena,
        (from, to): (Ipv4Addr, Ipv4Addr),
        code: u8,
        quoted: &Buffer,
    ) -> Frame {
        let mut payload = Buffer::zeroed(icmp::HEADER + quoted.len());
        payload.write(0, &[icmp::UNREACHABLE, code]);
        payload.copy_from(icmp::HEADER, quoted, 0, quoted.len());
        put_checksum(arena, &mut payload, 2);
        let mut ip = IpHeader::new((from, to), protocol::ICMP, USUAL_TTL, 0xc0, payload.len());
        ip.ports = (u16::from(icmp::UNREACHABLE), 0);
        Frame::ip(ip, payload)
    }

    /// The kernel's reply, if the packet is a valid ICMP echo request.
    pub fn echo(&self, arena: &mut Arena, from: Ipv4Addr) -> Option<Frame> {
        let asked = self.ip.as_ref()?;
        let is_request =
            asked.protocol() == protocol::ICMP && asked.ports.0 == u16::from(icmp::ECHO);
        if !is_request || !asked.is_sound || self.payload.len() < icmp::HEADER {
            return None;
        }
        let mut payload = self.payload.clone();
        payload.write(0, &[icmp::ECHO_REPLY]);
        put_checksum(arena, &mut payload, 2);
        let ends = (from, asked.from());
        let mut ip = IpHeader::new(ends, protocol::ICMP, USUAL_TTL, asked.tos(), payload.len());
        ip.ports = (u16::from(icmp::ECHO_REPLY), asked.ports.1);
        Some(Frame::ip(ip, payload))
    }

    /// Everything after the Ethernet header.
    pub fn bytes(&self) -> Buffer {
        let header = self.ip.as_ref().map_or(&[][..], |ip| &ip.bytes);
        let mut bytes = Buffer::zeroed(header.len() + self.payload.len());
        bytes.write(0, header);
        bytes.copy_from(header.len(), &self.payload, 0, self.payload.len());
        bytes
    }

    /// The bytes of the whole frame with this payload.
    pub fn encode(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = self.hardware().concat();
        bytes.extend_from_slice(&self.ethertype.to_be_bytes());
        bytes.extend_from_slice(self.ip.as_ref().map_or(&[][..], |ip| &ip.bytes));
        bytes.extend_from_slice(payload);
        bytes
    }

    /// The start of the packet, as an ICMP error quotes it; empty for frames that are not IPv4.
    pub fn quoted(&self) -> Buffer {
        if self.ip.is_none() {
            return Buffer::zeroed(0);
        }
        let bytes = self.bytes();
        let len = bytes.len().min(MOST_QUOTED);
        crate::queue::slice(&bytes, 0, len)
    }

    /// Hardware addresses, the target's first.
    pub fn hardware(&self) -> [HardwareAddress; 2] {
        let by_address = || {
            let ends = self.ip.as_ref().map(|ip| [ip.to(), ip.from()]);
            ends.map_or([[0; 6]; 2], |ends| ends.map(hardware_of))
        };
        self.hardware.unwrap_or_else(by_address)
    }

    /// The address of the next host on its path; `None` if no host has its hardware address.
    pub fn next_hop(&self) -> Option<IpAddr> {
        let Some([target, _]) = self.hardware else {
            return self.ip.as_ref().map(|ip| ip.to().into());
        };
        match target {
            [group, ..] if group & 1 != 0 => Some(Ipv4Addr::BROADCAST.into()),
            [2, 0, a, b, c, d] => Some(Ipv4Addr::new(a, b, c, d).into()),
            _ => None,
        }
    }

    /// A description for log and trace.
    pub fn describe(&self) -> String {
        let Some(ip) = &self.ip else {
            return format!("frame 0x{:04x}", self.ethertype);
        };
        match (ip.protocol(), ip.ports.0 as u8) {
            (protocol::ICMP, icmp::ECHO) => "ICMP echo request".to_owned(),
            (protocol::ICMP, icmp::ECHO_REPLY) => "ICMP echo reply".to_owned(),
            (protocol::ICMP, kind) => format!("ICMP message {kind}"),
            (protocol::UDP, _) => "raw datagram".to_owned(),
            (other, _) => format!("packet of IP protocol {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_hold_and_come_back() {
        let ends = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let header = IpHeader::new(ends, protocol::ICMP, 9, 0, 8);
        assert_eq!(checksum(&header.bytes), 0);
        let back = IpHeader::parse(&header.bytes, 28).expect("it is sound");
        assert_eq!((back.from(), back.to()), ends);
        assert_eq!((back.protocol(), back.ttl(), back.total()), (1, 9, 28));
        assert!(!back.is_fragment());
        let mut broken = header.bytes.clone();
        broken[8] = 10;
        assert_eq!(IpHeader::parse(&broken, 28), None);
        assert_eq!(IpHeader::parse(&header.bytes, 27), None);
        assert_eq!(IpHeader::parse(&header.bytes[..19], 28), None);
    }

    #[test]
    fn a_symbolic_checksum_is_that_of_the_bytes() {
        let mut arena = Arena::new();
        let array = arena.array(0, "x", 1);
        let mut bytes = Buffer::with_bytes(&[8, 0, 0, 0, 0xff, 0xff, 0xff], 7);
        let term = arena.read(array, 0);
        let value = Value::of_term(&arena, term);
        bytes.store(4, 1, value);
        put_checksum(&mut arena, &mut bytes, 2);
        let sum = symbolic_checksum(&mut arena, &bytes)
            .term
            .expect("symbolic");
        let mut scratch = everett_expr::EvalScratch::new();
        for byte in [0u8, 1, 0x80, 0xf7, 0xff] {
            let input = |_: everett_expr::ArrayId, _: u32| byte;
            assert_eq!(arena.eval(sum, &input, &mut scratch), 0, "{byte}");
        }
    }

    #[test]
    fn frames_go_to_the_host_behind_their_hardware_address() {
        let frame = |target| Frame {
            hardware: Some([target, [2, 0, 10, 0, 0, 1]]),
            ethertype: 0x88b5,
            ip: None,
            payload: Buffer::zeroed(1),
        };
        let host = Ipv4Addr::new(10, 0, 0, 7);
        assert_eq!(frame(hardware_of(host)).next_hop(), Some(host.into()));
        let all = Some(IpAddr::from(Ipv4Addr::BROADCAST));
        assert_eq!(frame(TO_ALL).next_hop(), all);
        let group = hardware_of(Ipv4Addr::new(224, 0, 0, 5));
        assert_eq!(group, [1, 0, 0x5e, 0, 0, 5]);
        assert_eq!(frame(group).next_hop(), all);
        assert_eq!(frame([4; 6]).next_hop(), None);
    }
}
