//! Socket options for multicast groups.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::errno::Errno;
use crate::ids::ObjectId;
use crate::kernel::Kernel;
use crate::objects::socket::{Address, Domain, family, level};

pub const GROUP_INTERFACE: u32 = 32;
pub const GROUP_INTERFACE6: u32 = 17;
const ADD_MEMBERSHIP: u32 = 35;
const DROP_MEMBERSHIP: u32 = 36;
const JOIN_GROUP6: u32 = 20;
const LEAVE_GROUP6: u32 = 21;
/// Options to join and leave a group, with an address of any family.
const JOIN_GROUP: u32 = 42;
const LEAVE_GROUP: u32 = 45;
/// Offset of the address in a `struct group_req`.
const GROUP_AT: usize = 8;

/// A group, and the interface: its index, or its address.
type Request = (IpAddr, (u32, IpAddr));

const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

fn v4_at(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let octets = bytes.get(at..)?.first_chunk::<4>()?;
    Some(Ipv4Addr::from(*octets).into())
}

fn index_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*word))
}

/// Decodes a `struct ip_mreq` or `struct ip_mreqn`.
fn request(bytes: &[u8]) -> Option<Request> {
    let index = index_at(bytes, 8).unwrap_or(0);
    Some((v4_at(bytes, 0)?, (index, v4_at(bytes, 4)?)))
}

/// Decodes a `struct ipv6_mreq`.
fn request6(bytes: &[u8]) -> Option<Request> {
    let octets = bytes.first_chunk::<16>()?;
    let any = Ipv6Addr::UNSPECIFIED.into();
    Some((Ipv6Addr::from(*octets).into(), (index_at(bytes, 16)?, any)))
}

/// Decodes a `struct group_req`.
fn group_request(bytes: &[u8]) -> Option<Request> {
    let address = bytes.get(GROUP_AT..)?;
    let domain = Domain::from_number(u64::from(family(address)?))?;
    let group = Address::parse_internet(domain, address).ok()?.ip();
    let any = match group {
        IpAddr::V4(_) => ANY,
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    Some((group, (index_at(bytes, 0)?, any)))
}

impl Kernel<'_, '_> {
    /// Sets a multicast option; `None` if it is not one.
    pub(super) fn set_of_groups(
        &mut self,
        object: ObjectId,
        level: u32,
        name: u32,
        bytes: &[u8],
    ) -> Option<Result<(), Errno>> {
        let (wanted, joins) = match (level, name) {
            (level::IP, GROUP_INTERFACE) => return Some(self.set_group_interface(object, bytes)),
            (level::IPV6, GROUP_INTERFACE6) => {
                return Some(self.set_group_interface6(object, bytes));
            }
            (level::IP, ADD_MEMBERSHIP | DROP_MEMBERSHIP) => {
                (request(bytes), name == ADD_MEMBERSHIP)
            }
            (level::IPV6, JOIN_GROUP6 | LEAVE_GROUP6) => (request6(bytes), name == JOIN_GROUP6),
            (level::IP | level::IPV6, JOIN_GROUP | LEAVE_GROUP) => {
                (group_request(bytes), name == JOIN_GROUP)
            }
            _ => return None,
        };
        let has_groups = self
            .host
            .socket(object)
            .is_some_and(|socket| !socket.kind.has_connections());
        Some(match wanted {
            // Connection-oriented sockets have no groups.
            _ if !has_groups => Err(Errno::EPROTO),
            None => Err(Errno::EINVAL),
            Some((group, interface)) => self.host.change_group(object, group, interface, joins),
        })
    }

    fn set_group_interface(&mut self, object: ObjectId, bytes: &[u8]) -> Result<(), Errno> {
        // A `struct in_addr`, a `struct ip_mreq` or a `struct ip_mreqn`.
        let (address, index) = match bytes.len() {
            ..4 => return Err(Errno::EINVAL),
            4..8 => (v4_at(bytes, 0), 0),
            _ => (v4_at(bytes, 4), index_at(bytes, 8).unwrap_or(0)),
        };
        let address = address.unwrap_or(ANY);
        let chosen = match index {
            0 if address.is_unspecified() => (0, None),
            0 => {
                let found = self.host.network.index_of(address);
                (found.ok_or(Errno::EADDRNOTAVAIL)?, Some(address))
            }
            index => {
                let found = self.host.network.interface(index);
                let own = Some(address).filter(|address| !address.is_unspecified());
                (found.ok_or(Errno::EADDRNOTAVAIL)?.index, own)
            }
        };
        let socket = self.host.socket_mut(object).ok_or(Errno::ENOTSOCK)?;
        socket.options.group_interface = chosen;
        Ok(())
    }

    fn set_group_interface6(&mut self, object: ObjectId, bytes: &[u8]) -> Result<(), Errno> {
        let index = index_at(bytes, 0).ok_or(Errno::EINVAL)?;
        if index != 0 && self.host.network.interface(index).is_none() {
            return Err(Errno::ENODEV);
        }
        let socket = self.host.socket_mut(object).ok_or(Errno::ENOTSOCK)?;
        socket.options.group_interface = (index, None);
        Ok(())
    }
}
