//! Netlink sockets: the requests about interfaces that `getifaddrs` makes.

use std::net::{IpAddr, Ipv4Addr};

use everett_vm::Buffer;

use super::{Network, ReceivedMessage};
use crate::errno::Errno;
use crate::frames::hardware_of;
use crate::kernel::{Kernel, Stop};
use crate::objects::OpenObject;

const ERROR: u16 = 2;
const DONE: u16 = 3;
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const GET_ADDRESS: u16 = 22;
const MULTI: u16 = 2;
const DUMP: u16 = 0x300;
/// Bytes of a `struct nlmsghdr`.
const HEADER: usize = 16;

/// A network interface of the host.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct NetworkInterface {
    /// Interface index.
    pub index: u32,
    /// Its name.
    pub name: &'static str,
    /// `IFF_` flags.
    pub flags: u32,
    /// Maximum transmission unit.
    pub mtu: u32,
    /// Hardware address.
    pub hardware: [u8; 6],
    /// Type of the hardware address (`ARPHRD_`).
    pub kind: u16,
}

/// Indices of the interfaces of every host: the loopback, and one for its addresses.
pub const LOOPBACK: u32 = 1;
pub const ETHERNET: u32 = 2;

const INTERFACES: [NetworkInterface; 2] = [
    NetworkInterface {
        index: LOOPBACK,
        name: "lo",
        flags: 0x1_0049,
        mtu: 65536,
        hardware: [0; 6],
        kind: 772,
    },
    NetworkInterface {
        index: ETHERNET,
        name: "eth0",
        flags: 0x1_1043,
        mtu: 1500,
        hardware: [2, 0, 0, 0, 0, 1],
        kind: 1,
    },
];

impl Network {
    /// All interfaces. The hardware address says the first address, so that frames find their host.
    pub fn interfaces(&self) -> [NetworkInterface; 2] {
        let mut all = INTERFACES;
        let first = self.address_like(ETHERNET, Ipv4Addr::UNSPECIFIED.into());
        if let Some(IpAddr::V4(first)) = first {
            all[1].hardware = hardware_of(first);
        }
        all
    }

    /// The interface with this index.
    pub fn interface(&self, index: u32) -> Option<NetworkInterface> {
        let mut all = self.interfaces().into_iter();
        all.find(|interface| interface.index == index)
    }

    /// The interface with this name.
    pub fn interface_named(&self, name: &[u8]) -> Option<NetworkInterface> {
        let mut all = self.interfaces().into_iter();
        all.find(|interface| interface.name.as_bytes() == name)
    }

    /// Addresses of an interface, with prefix lengths.
    pub fn addresses_of(&self, index: u32) -> Vec<(IpAddr, u8)> {
        if index == 1 {
            return vec![
                (IpAddr::from([127, 0, 0, 1]), 8),
                (IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1u16]), 128),
            ];
        }
        let bits = |ip: &IpAddr| if ip.is_ipv4() { 24 } else { 64 };
        self.addresses.iter().map(|ip| (*ip, bits(ip))).collect()
    }
}

/// Appends an attribute: type and bytes, padded.
fn attribute(to: &mut Vec<u8>, kind: u16, bytes: &[u8]) {
    to.extend_from_slice(&(4 + bytes.len() as u16).to_le_bytes());
    to.extend_from_slice(&kind.to_le_bytes());
    to.extend_from_slice(bytes);
    to.resize(to.len().next_multiple_of(4), 0);
}

fn message(to: &mut Vec<u8>, kind: u16, flags: u16, sequence: &[u8], body: &[u8]) {
    let len = (HEADER + body.len()) as u32;
    to.extend_from_slice(&len.to_le_bytes());
    to.extend_from_slice(&kind.to_le_bytes());
    to.extend_from_slice(&flags.to_le_bytes());
    // Sequence number and port of the requester.
    to.extend_from_slice(sequence);
    to.extend_from_slice(body);
    to.resize(to.len().next_multiple_of(4), 0);
}

fn link(interface: &NetworkInterface) -> Vec<u8> {
    let mut body = vec![0, 0];
    body.extend_from_slice(&interface.kind.to_le_bytes());
    for field in [interface.index, interface.flags, 0] {
        body.extend_from_slice(&field.to_le_bytes());
    }
    attribute(&mut body, 3, &[interface.name.as_bytes(), &[0]].concat());
    attribute(&mut body, 4, &interface.mtu.to_le_bytes());
    attribute(&mut body, 1, &interface.hardware);
    let broadcast = if interface.index == 1 { 0 } else { 0xff };
    attribute(&mut body, 2, &[broadcast; 6]);
    body
}

fn address(interface: &NetworkInterface, ip: IpAddr, bits: u8) -> Vec<u8> {
    let scope = if ip.is_loopback() { 254 } else { 0 };
    let (family, octets) = match ip {
        IpAddr::V4(ip) => (2, ip.octets().to_vec()),
        IpAddr::V6(ip) => (10, ip.octets().to_vec()),
    };
    let mut body = vec![family, bits, 0x80, scope];
    body.extend_from_slice(&interface.index.to_le_bytes());
    attribute(&mut body, 1, &octets);
    if ip.is_ipv4() {
        attribute(&mut body, 2, &octets);
        if !ip.is_loopback() {
            let broadcast = [&octets[..3], &[255]].concat();
            attribute(&mut body, 4, &broadcast);
        }
        attribute(&mut body, 3, &[interface.name.as_bytes(), &[0]].concat());
    }
    body
}

impl Kernel<'_, '_> {
    /// Answers a netlink request.
    pub(super) fn send_netlink(
        &mut self,
        open: OpenObject<'_>,
        parts: &[Buffer],
    ) -> Result<u64, Stop> {
        let mut request = Vec::new();
        for part in parts {
            for at in 0..part.len() {
                let byte = part.byte(self.vm.arena, at);
                request.push(self.vm.concretize(byte)? as u8);
            }
        }
        let answers = answers(&self.host.network, &request);
        if let Some(kind) = answers.first().and_then(|first| refused(first)) {
            self.refuse("sendto", format!("netlink request {kind}"));
        }
        for answer in answers {
            let bytes = Buffer::with_bytes(&answer, answer.len());
            self.host
                .deliver(open.object, ReceivedMessage::plain(bytes));
        }
        Ok(request.len() as u64)
    }
}

/// The type of the request that an answer refuses.
fn refused(answer: &[u8]) -> Option<u16> {
    /// Where the type lies in the copy of the request's header, behind the error.
    const KIND: usize = HEADER + 4 + 4;
    let half = |at: usize| answer.get(at..).and_then(|rest| rest.first_chunk());
    let half = |at: usize| half(at).map(|bytes| u16::from_le_bytes(*bytes));
    half(4).filter(|kind| *kind == ERROR).and(half(KIND))
}

fn answers(network: &Network, request: &[u8]) -> Vec<Vec<u8>> {
    let Some(header) = request.first_chunk::<HEADER>() else {
        return Vec::new();
    };
    let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let (kind, flags) = (half(4), half(6));
    let family = request.get(HEADER).copied().unwrap_or(0);
    let sequence = &header[8..16];
    let mut found = Vec::new();
    match kind {
        GET_LINK if flags & DUMP != 0 => {
            for interface in network.interfaces() {
                message(&mut found, NEW_LINK, MULTI, sequence, &link(&interface));
            }
        }
        GET_ADDRESS if flags & DUMP != 0 => {
            for wanted in [2, 10] {
                for interface in network.interfaces() {
                    for (ip, bits) in network.addresses_of(interface.index) {
                        let own = if ip.is_ipv4() { 2 } else { 10 };
                        if own == wanted && (family == 0 || family == own) {
                            let body = address(&interface, ip, bits);
                            message(&mut found, NEW_ADDRESS, MULTI, sequence, &body);
                        }
                    }
                }
            }
        }
        _ => {
            let refused = i64::from(Errno::EOPNOTSUPP.0).wrapping_neg() as i32;
            let body = [&refused.to_le_bytes(), &header[..]].concat();
            let mut answer = Vec::new();
            message(&mut answer, ERROR, 0, sequence, &body);
            return vec![answer];
        }
    }
    let mut done = Vec::new();
    message(&mut done, DONE, MULTI, sequence, &[0; 4]);
    vec![found, done]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_are_told_and_what_is_not_known_is_refused() {
        let network = Network::new(vec![IpAddr::from([10, 0, 0, 1])], Vec::new());
        let mut request = Vec::new();
        message(&mut request, GET_ADDRESS, 0x301, &[7; 8], &[0]);
        let told = answers(&network, &request);
        assert_eq!(told.len(), 2);
        assert_eq!(told[0][8..16], [7; 8]);
        let has = |part: &[u8]| told[0].windows(part.len()).any(|window| window == part);
        assert!(has(&[127, 0, 0, 1]) && has(&[10, 0, 0, 255]) && has(b"eth0\0"));
        assert_eq!(told[1][4], DONE as u8);
        let mut request = Vec::new();
        message(&mut request, 999, 1, &[7; 8], &[0]);
        assert_eq!(answers(&network, &request)[0][4], ERROR as u8);
        assert_eq!(refused(&answers(&network, &request)[0]), Some(999));
        assert_eq!(refused(&told[0]), None);
        assert!(answers(&network, b"short").is_empty());
    }
}
