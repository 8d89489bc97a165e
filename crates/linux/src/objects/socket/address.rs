//! Socket addresses, and their encoding (`struct sockaddr`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use crate::errno::Errno;
use crate::frames::HardwareAddress;

/// Address families.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Domain {
    /// `AF_UNIX`.
    Unix,
    /// `AF_INET`.
    Inet,
    /// `AF_INET6`.
    Inet6,
    /// `AF_NETLINK`.
    Netlink,
    /// `AF_PACKET`.
    Packet,
}

pub const AF_UNSPEC: u16 = 0;
const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const AF_NETLINK: u16 = 16;
const AF_PACKET: u16 = 17;

/// Bytes of `struct sockaddr_un`.
pub const UNIX_SIZE: usize = 110;
/// Bytes of `struct sockaddr_storage`.
pub const STORAGE_SIZE: u64 = 128;

impl Domain {
    /// The family with this number.
    pub fn from_number(number: u64) -> Option<Domain> {
        let domains = [
            Domain::Unix,
            Domain::Inet,
            Domain::Inet6,
            Domain::Netlink,
            Domain::Packet,
        ];
        let mut domains = domains.into_iter();
        domains.find(|domain| u64::from(domain.number()) == number)
    }

    /// Its number.
    pub fn number(self) -> u16 {
        match self {
            Domain::Unix => AF_UNIX,
            Domain::Inet => AF_INET,
            Domain::Inet6 => AF_INET6,
            Domain::Netlink => AF_NETLINK,
            Domain::Packet => AF_PACKET,
        }
    }

    /// Whether it is IPv4 or IPv6.
    pub fn is_internet(self) -> bool {
        matches!(self, Domain::Inet | Domain::Inet6)
    }
}

/// A socket address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Address {
    /// No address.
    Unnamed,
    /// An internet address. IPv4-mapped IPv6 addresses are stored as IPv4.
    Internet(SocketAddr),
    /// A path name, as given.
    Path(Vec<u8>),
    /// A name in the abstract namespace.
    Abstract(Vec<u8>),
    /// An address of a packet socket.
    Link(LinkAddress),
    /// An address of a netlink socket: its port, and the groups that it belongs to, as bits.
    Netlink {
        /// Its port.
        port: u32,
        /// Its groups.
        groups: u32,
    },
}

impl Address {
    /// The internet address, if it is one.
    pub fn internet(&self) -> Option<SocketAddr> {
        match self {
            Address::Internet(address) => Some(*address),
            _ => None,
        }
    }

    /// Decodes an internet address for a socket of this family.
    pub fn parse_internet(domain: Domain, bytes: &[u8]) -> Result<SocketAddr, Errno> {
        let family = family(bytes).ok_or(Errno::EINVAL)?;
        let port = |bytes: &[u8]| u16::from_be_bytes([bytes[2], bytes[3]]);
        match (domain, family) {
            (Domain::Inet, _) if bytes.len() < 16 => Err(Errno::EINVAL),
            (Domain::Inet6, AF_INET6) if bytes.len() < 24 => Err(Errno::EINVAL),
            (Domain::Inet, AF_INET) => {
                let ip = Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7]);
                Ok(SocketAddr::from((ip, port(bytes))))
            }
            (Domain::Inet6, AF_INET6) => {
                let mut octets = [0; 16];
                octets.copy_from_slice(&bytes[8..24]);
                let ip = Ipv6Addr::from(octets).to_canonical();
                Ok(SocketAddr::new(ip, port(bytes)))
            }
            _ => Err(Errno::EAFNOSUPPORT),
        }
    }

    /// Decodes a UNIX socket address.
    pub fn parse_unix(bytes: &[u8]) -> Result<Address, Errno> {
        if bytes.len() > UNIX_SIZE || family(bytes) != Some(AF_UNIX) {
            return Err(Errno::EINVAL);
        }
        match &bytes[2..] {
            [] => Ok(Address::Unnamed),
            [0, name @ ..] => Ok(Address::Abstract(name.to_vec())),
            path => {
                let end = path.iter().position(|byte| *byte == 0);
                Ok(Address::Path(path[..end.unwrap_or(path.len())].to_vec()))
            }
        }
    }

    /// Encodes the address for a socket of this family.
    pub fn to_bytes(&self, domain: Domain) -> Vec<u8> {
        let mut bytes = domain.number().to_le_bytes().to_vec();
        match (self, domain) {
            (Address::Path(path), _) => {
                bytes.extend_from_slice(path);
                bytes.push(0);
            }
            (Address::Abstract(name), _) => {
                bytes.push(0);
                bytes.extend_from_slice(name);
            }
            (Address::Netlink { port, groups }, _) => {
                bytes.extend_from_slice(&[0; 2]);
                bytes.extend_from_slice(&port.to_le_bytes());
                bytes.extend_from_slice(&groups.to_le_bytes());
            }
            (Address::Link(link), _) => bytes.extend_from_slice(&link.to_bytes()),
            (Address::Internet(address), Domain::Inet6) => {
                let ip = match address.ip() {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                    IpAddr::V6(ip) => ip,
                };
                inet6(&mut bytes, SocketAddrV6::new(ip, address.port(), 0, 0));
            }
            (Address::Internet(address), _) => {
                bytes.extend_from_slice(&address.port().to_be_bytes());
                match address.ip() {
                    IpAddr::V4(ip) => bytes.extend_from_slice(&ip.octets()),
                    IpAddr::V6(_) => bytes.extend_from_slice(&[0; 4]),
                }
                bytes.resize(16, 0);
            }
            (Address::Unnamed, Domain::Unix) => {}
            (Address::Unnamed, Domain::Inet) => bytes.resize(16, 0),
            (Address::Unnamed, Domain::Inet6) => bytes.resize(28, 0),
            (Address::Unnamed, Domain::Netlink | Domain::Packet) => bytes.resize(12, 0),
        }
        bytes
    }
}

fn inet6(bytes: &mut Vec<u8>, address: SocketAddrV6) {
    bytes.extend_from_slice(&address.port().to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&address.ip().octets());
    bytes.extend_from_slice(&[0; 4]);
}

/// The address family in an encoded address.
pub fn family(bytes: &[u8]) -> Option<u16> {
    let family = bytes.first_chunk::<2>()?;
    Some(u16::from_le_bytes(*family))
}

/// The wildcard address of a family.
pub fn unspecified(domain: Domain) -> IpAddr {
    match domain {
        Domain::Inet6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}

/// An address of a packet socket (`struct sockaddr_ll`).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LinkAddress {
    /// The protocol over Ethernet.
    pub protocol: u16,
    /// Index of the interface; 0 means all.
    pub index: u32,
    /// Type of the hardware (`ARPHRD_`).
    pub kind: u16,
    /// The kind of destination of a frame (`PACKET_`).
    pub packet_kind: u8,
    /// Bytes of the hardware address.
    pub len: u8,
    /// The hardware address.
    pub hardware: HardwareAddress,
}

/// Bytes of a `struct sockaddr_ll`.
pub(crate) const SIZE: usize = 20;

impl LinkAddress {
    /// Decodes a `struct sockaddr_ll`.
    pub fn parse(bytes: &[u8]) -> Result<LinkAddress, Errno> {
        let bytes = bytes.first_chunk::<SIZE>().ok_or(Errno::EINVAL)?;
        if u16::from_le_bytes([bytes[0], bytes[1]]) != Domain::Packet.number() {
            return Err(Errno::EINVAL);
        }
        Ok(LinkAddress {
            protocol: u16::from_be_bytes([bytes[2], bytes[3]]),
            index: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            kind: u16::from_le_bytes([bytes[8], bytes[9]]),
            packet_kind: bytes[10],
            len: bytes[11],
            hardware: bytes[12..].first_chunk().copied().unwrap_or_default(),
        })
    }

    /// Encodes everything after the family.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.protocol.to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.index.to_le_bytes());
        bytes.extend_from_slice(&self.kind.to_le_bytes());
        bytes.extend_from_slice(&[self.packet_kind, self.len]);
        bytes.extend_from_slice(&self.hardware);
        bytes.resize(SIZE - 2, 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_their_bytes() {
        let plain: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let bytes = Address::Internet(plain).to_bytes(Domain::Inet);
        assert_eq!(bytes[..8], [2, 0, 0, 80, 127, 0, 0, 1]);
        assert_eq!(
            Address::parse_internet(Domain::Inet, &bytes).unwrap(),
            plain
        );
        // An IPv4-mapped IPv6 address is IPv4.
        let mapped = Address::Internet(plain).to_bytes(Domain::Inet6);
        assert_eq!((mapped.len(), mapped[18], mapped[19]), (28, 0xff, 0xff));
        assert_eq!(
            Address::parse_internet(Domain::Inet6, &mapped).unwrap(),
            plain
        );
        assert_eq!(
            Address::parse_internet(Domain::Inet, &mapped),
            Err(Errno::EAFNOSUPPORT)
        );
        let path = Address::parse_unix(b"\x01\0/tmp/s\0rest").unwrap();
        assert_eq!(path, Address::Path(b"/tmp/s".to_vec()));
        let name = Address::Abstract(b"a\0b".to_vec());
        assert_eq!(Address::parse_unix(&name.to_bytes(Domain::Unix)), Ok(name));
        assert_eq!(Address::parse_unix(b"\x01"), Err(Errno::EINVAL));
    }
}
