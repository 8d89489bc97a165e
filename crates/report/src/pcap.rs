//! Packets as a pcap file for Wireshark and tcpdump. The model contains the data of connections
//! only; this module synthesises headers, sequence numbers and acknowledgements, as in a network
//! without loss.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The content of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PacketContent {
    /// A connection is established: all three packets of the handshake.
    Opened,
    /// A connection is refused: the request and the reset.
    Refused,
    /// A connection request to another host.
    Request,
    /// The other host accepts the connection.
    Accepted,
    /// The other host refuses the connection.
    Rejected,
    /// Bytes of a connection.
    Data(Vec<u8>),
    /// The sender closes its direction.
    End,
    /// The connection is reset.
    Reset,
    /// A UDP datagram.
    Datagram(Vec<u8>),
    /// A whole frame, with its headers.
    Frame(Vec<u8>),
}

/// A packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedPacket {
    /// The time of the packet, in nanoseconds since 1970.
    pub time_ns: u64,
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// The content.
    pub content: PacketContent,
}

/// Magic number of pcap with nanosecond timestamps.
const MAGIC: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;
/// Maximum size of a packet that Wireshark accepts.
const SNAPSHOT: u32 = 262_144;
/// Maximum payload of a TCP packet.
const SEGMENT: usize = 1460;
const TCP: u8 = 6;
const UDP: u8 = 17;

mod flag {
    pub const FIN: u8 = 1;
    pub const SYN: u8 = 2;
    pub const RST: u8 = 4;
    pub const PSH: u8 = 8;
    pub const ACK: u8 = 16;
}

/// Encodes a pcap file.
pub fn pcap(packets: &[CapturedPacket]) -> Vec<u8> {
    let mut file = Capture::default();
    for word in [MAGIC, 0x0004_0002, 0, 0, SNAPSHOT, ETHERNET] {
        file.bytes.extend_from_slice(&word.to_le_bytes());
    }
    for packet in packets {
        file.add(packet);
    }
    file.bytes
}

#[derive(Default)]
struct Capture {
    bytes: Vec<u8>,
    /// The next sequence number of each direction.
    sequence: BTreeMap<(SocketAddr, SocketAddr), u32>,
}

impl Capture {
    fn add(&mut self, packet: &CapturedPacket) {
        let (from, to, at) = (packet.from, packet.to, packet.time_ns);
        match &packet.content {
            PacketContent::Opened => {
                self.sequence.insert((from, to), 0);
                self.sequence.insert((to, from), 0);
                self.tcp(at, from, to, flag::SYN, &[]);
                self.tcp(at, to, from, flag::SYN | flag::ACK, &[]);
                self.tcp(at, from, to, flag::ACK, &[]);
            }
            PacketContent::Refused => {
                self.sequence.insert((from, to), 0);
                self.sequence.insert((to, from), 0);
                self.tcp(at, from, to, flag::SYN, &[]);
                self.tcp(at, to, from, flag::RST | flag::ACK, &[]);
            }
            PacketContent::Request => {
                self.sequence.insert((from, to), 0);
                self.sequence.insert((to, from), 0);
                self.tcp(at, from, to, flag::SYN, &[]);
            }
            PacketContent::Accepted => {
                self.tcp(at, from, to, flag::SYN | flag::ACK, &[]);
                self.tcp(at, to, from, flag::ACK, &[]);
            }
            PacketContent::Rejected => self.tcp(at, from, to, flag::RST | flag::ACK, &[]),
            PacketContent::Data(bytes) => {
                for segment in bytes.chunks(SEGMENT) {
                    self.tcp(at, from, to, flag::PSH | flag::ACK, segment);
                }
                self.tcp(at, to, from, flag::ACK, &[]);
            }
            PacketContent::End => {
                self.tcp(at, from, to, flag::FIN | flag::ACK, &[]);
                self.tcp(at, to, from, flag::ACK, &[]);
            }
            PacketContent::Reset => self.tcp(at, from, to, flag::RST | flag::ACK, &[]),
            PacketContent::Datagram(bytes) => self.udp(at, from, to, bytes),
            PacketContent::Frame(bytes) => self.record(at, bytes),
        }
    }

    fn tcp(&mut self, at: u64, from: SocketAddr, to: SocketAddr, flags: u8, bytes: &[u8]) {
        let acknowledged = match flags & flag::ACK {
            0 => 0,
            _ => self.sequence.get(&(to, from)).copied().unwrap_or(0),
        };
        let next = self.sequence.entry((from, to)).or_insert(0);
        let sequence = *next;
        let counted = bytes.len() as u32 + u32::from(flags & (flag::SYN | flag::FIN) != 0);
        *next = next.wrapping_add(counted);
        let mut segment = Vec::with_capacity(20 + bytes.len());
        segment.extend_from_slice(&from.port().to_be_bytes());
        segment.extend_from_slice(&to.port().to_be_bytes());
        segment.extend_from_slice(&sequence.to_be_bytes());
        segment.extend_from_slice(&acknowledged.to_be_bytes());
        // Five words of header; a window of 65535; checksum and urgent pointer.
        segment.extend_from_slice(&[0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend_from_slice(bytes);
        self.internet(at, from.ip(), to.ip(), TCP, segment, 16);
    }

    fn udp(&mut self, at: u64, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let len = (8 + bytes.len()) as u16;
        let mut datagram = Vec::with_capacity(8 + bytes.len());
        datagram.extend_from_slice(&from.port().to_be_bytes());
        datagram.extend_from_slice(&to.port().to_be_bytes());
        datagram.extend_from_slice(&len.to_be_bytes());
        datagram.extend_from_slice(&[0, 0]);
        datagram.extend_from_slice(bytes);
        self.internet(at, from.ip(), to.ip(), UDP, datagram, 6);
    }

    /// Adds headers to a payload. The payload's checksum, which also covers addresses, is stored at
    /// an offset in it.
    fn internet(
        &mut self,
        at: u64,
        from: IpAddr,
        to: IpAddr,
        protocol: u8,
        mut carried: Vec<u8>,
        checksum_at: usize,
    ) {
        let len = carried.len();
        let (kind, addresses, header) = match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let addresses = [from.octets(), to.octets()].concat();
                let total = (20 + len) as u16;
                let mut header = vec![0x45, 0];
                header.extend_from_slice(&total.to_be_bytes());
                // No fragments; 64 hops; the checksum is filled in later.
                header.extend_from_slice(&[0, 0, 0x40, 0, 64, protocol, 0, 0]);
                header.extend_from_slice(&addresses);
                let sum = checksum(&[&header]);
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                (0x0800u16, addresses, header)
            }
            _ => {
                let octets = |address: IpAddr| match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                let addresses = [octets(from), octets(to)].concat();
                let mut header = vec![0x60, 0, 0, 0];
                header.extend_from_slice(&(len as u16).to_be_bytes());
                header.extend_from_slice(&[protocol, 64]);
                header.extend_from_slice(&addresses);
                (0x86dd, addresses, header)
            }
        };
        let pseudo = [&(len as u32).to_be_bytes()[..], &[0, 0, 0, protocol]].concat();
        let sum = match checksum(&[&addresses, &pseudo, &carried]) {
            // In UDP zero means that there is no checksum.
            0 if protocol == UDP => 0xffff,
            sum => sum,
        };
        carried[checksum_at..checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
        let mut frame = Vec::with_capacity(14 + header.len() + len);
        for address in [to, from] {
            frame.extend_from_slice(&hardware_address(address));
        }
        frame.extend_from_slice(&kind.to_be_bytes());
        frame.extend_from_slice(&header);
        frame.extend_from_slice(&carried);
        self.record(at, &frame);
    }

    /// Adds a frame.
    fn record(&mut self, at: u64, frame: &[u8]) {
        let (seconds, nanos) = (at / 1_000_000_000, at % 1_000_000_000);
        for word in [
            seconds as u32,
            nanos as u32,
            frame.len() as u32,
            frame.len() as u32,
        ] {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
        self.bytes.extend_from_slice(frame);
    }
}

/// Returns a locally administered hardware address, derived from the end of the IP address.
fn hardware_address(address: IpAddr) -> [u8; 6] {
    let [a, b, c, d] = match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(address) => {
            let octets = address.octets();
            [octets[12], octets[13], octets[14], octets[15]]
        }
    };
    [2, 0, a, b, c, d]
}

/// Returns the Internet checksum of several parts, each starting at an even offset.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for pair in part.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            sum += u64::from(u16::from_be_bytes([pair[0], low]));
        }
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(from: &str, to: &str, content: PacketContent) -> CapturedPacket {
        CapturedPacket {
            time_ns: 5_000_000_007,
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            content,
        }
    }

    /// Returns the frames of a file, parsed according to the specification.
    fn frames(bytes: &[u8]) -> Vec<&[u8]> {
        assert_eq!(bytes[..4], MAGIC.to_le_bytes());
        let mut frames = Vec::new();
        let mut at = 24;
        while at < bytes.len() {
            let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
            assert_eq!(bytes[at..at + 8], [5, 0, 0, 0, 7, 0, 0, 0]);
            frames.push(&bytes[at + 16..at + 16 + len]);
            at += 16 + len;
        }
        assert_eq!(at, bytes.len());
        frames
    }

    /// Computes a receiver's check: the sum including the checksum is zero.
    fn is_intact(frame: &[u8]) -> bool {
        let v4 = frame[12..14] == [8, 0];
        let (header, carried) = frame[14..].split_at(if v4 { 20 } else { 40 });
        let (addresses, protocol) = match v4 {
            true => (&header[12..20], header[9]),
            false => (&header[8..40], header[6]),
        };
        let len = (carried.len() as u32).to_be_bytes();
        let pseudo = [&len[..], &[0, 0, 0, protocol]].concat();
        (!v4 || checksum(&[header]) == 0) && checksum(&[addresses, &pseudo, carried]) == 0
    }

    #[test]
    fn a_connection_has_numbers_that_fit() {
        let (client, server) = ("127.0.0.1:40000", "127.0.0.1:80");
        let file = pcap(&[
            packet(client, server, PacketContent::Opened),
            packet(client, server, PacketContent::Data(b"hello".to_vec())),
            packet(server, client, PacketContent::End),
            packet(client, server, PacketContent::Reset),
        ]);
        let frames = frames(&file);
        assert!(frames.iter().all(|frame| is_intact(frame)));
        let numbers = |frame: &[u8]| {
            let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
            (word(38), word(42), frame[47])
        };
        let seen: Vec<_> = frames.iter().map(|frame| numbers(frame)).collect();
        let (syn, ack, fin, push) = (flag::SYN, flag::ACK, flag::FIN, flag::PSH);
        let expected = [
            (0, 0, syn),
            (0, 1, syn | ack),
            (1, 1, ack),
            (1, 1, push | ack),
            (1, 6, ack),
            (1, 6, fin | ack),
            (6, 2, ack),
            (6, 2, flag::RST | ack),
        ];
        assert_eq!(seen, expected);
        assert_eq!(&frames[3][54..], b"hello");
    }

    #[test]
    fn connections_between_hosts_are_made_step_by_step() {
        let (client, server) = ("10.0.0.2:40000", "10.0.0.1:80");
        let steps = [
            packet(client, server, PacketContent::Request),
            packet(server, client, PacketContent::Accepted),
        ];
        let refused = [
            packet(client, server, PacketContent::Request),
            packet(server, client, PacketContent::Rejected),
        ];
        let flags = |packets: &[CapturedPacket]| {
            let file = pcap(packets);
            let frames = frames(&file);
            assert!(frames.iter().all(|frame| is_intact(frame)));
            frames.iter().map(|frame| frame[47]).collect::<Vec<_>>()
        };
        let (syn, ack) = (flag::SYN, flag::ACK);
        assert_eq!(flags(&steps), [syn, syn | ack, ack]);
        assert_eq!(flags(&refused), [syn, flag::RST | ack]);
    }

    #[test]
    fn datagrams_and_both_families_are_intact() {
        let odd = PacketContent::Datagram(b"odd".to_vec());
        let file = pcap(&[
            packet("10.0.0.1:1", "10.0.0.2:53", odd.clone()),
            packet("[::1]:1", "[::1]:53", odd),
            packet("[::1]:1", "[::1]:2", PacketContent::Data(vec![7; 3000])),
        ]);
        let frames = frames(&file);
        assert_eq!(frames.len(), 2 + 3 + 1);
        assert!(frames.iter().all(|frame| is_intact(frame)));
        assert_eq!(&frames[0][42..], b"odd");
    }
}
