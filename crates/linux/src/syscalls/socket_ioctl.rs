//! `ioctl` requests about sockets and network interfaces.

use everett_vm::Value;
use std::net::IpAddr;

use crate::capabilities::NET_ADMIN;
use crate::errno::Errno;
use crate::ids::ObjectId;
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::socket::{Address, Domain, NetworkInterface, SocketType};

const BYTES_TO_READ: u64 = 0x541b;
const BYTES_ON_THE_WAY: u64 = 0x5411;
const AT_MARK: u64 = 0x8905;
const NAME_OF: u64 = 0x8910;
const ALL: u64 = 0x8912;
const FLAGS: u64 = 0x8913;
const ADDRESS: u64 = 0x8915;
const BROADCAST: u64 = 0x8919;
const MASK: u64 = 0x891b;
const METRIC: u64 = 0x891d;
const MTU: u64 = 0x8921;
const HARDWARE: u64 = 0x8927;
const INDEX: u64 = 0x8933;
const QUEUE_LEN: u64 = 0x8942;
/// `SIOCADDRT` and `SIOCDELRT`.
const CHANGE_ROUTES: [u64; 2] = [0x890b, 0x890c];
const SET_FLAGS: u64 = 0x8914;
const SET_METRIC: u64 = 0x891e;
const SET_MTU: u64 = 0x8922;
/// Requests that set the address, target, broadcast address, mask, name, hardware address and
/// queue length of an interface.
const SET_OTHERS: [u64; 7] = [0x8916, 0x8918, 0x891a, 0x891c, 0x8923, 0x8924, 0x8943];
/// Sizes of a `struct ifreq`, and of the name at its start.
const REQUEST: u64 = 40;
const NAME: usize = 16;

impl Kernel<'_, '_> {
    /// Handles a socket request; `None` if it is not one.
    pub(super) fn socket_ioctl(
        &mut self,
        object: ObjectId,
        request: u64,
        at: u64,
    ) -> Option<Answer> {
        self.host.socket(object)?;
        Some(match request {
            BYTES_TO_READ => self.write_bytes_to_read(object, at),
            BYTES_ON_THE_WAY => self.write_int(at, self.host.bytes_in_flight(object)),
            AT_MARK => {
                let socket = self.host.socket(object)?;
                match (socket.domain, socket.kind) {
                    (Domain::Unix | Domain::Inet | Domain::Inet6, SocketType::Stream) => {
                        self.write_int(at, u64::from(socket.is_at_mark()))
                    }
                    (Domain::Unix, _) => Err(Errno::EOPNOTSUPP.into()),
                    _ => Err(Errno::ENOTTY.into()),
                }
            }
            ALL => self.write_interfaces(at),
            NAME_OF => self.write_interface_name(at),
            FLAGS | ADDRESS | BROADCAST | MASK | METRIC | MTU | HARDWARE | INDEX | QUEUE_LEN => {
                self.write_interface(request, at)
            }
            SET_FLAGS | SET_METRIC | SET_MTU => self.set_interface(request, at),
            _ if SET_OTHERS.contains(&request) => self.set_interface(request, at),
            _ if CHANGE_ROUTES.contains(&request) && self.is_internet(object) => {
                match self.is_capable(NET_ADMIN) {
                    true => Err(self.refused_change(request)),
                    false => Err(Errno::EPERM.into()),
                }
            }
            _ => return None,
        })
    }

    fn is_internet(&self, object: ObjectId) -> bool {
        let socket = self.host.socket(object);
        socket.is_some_and(|socket| socket.domain.is_internet())
    }

    fn refused_change(&mut self, request: u64) -> Stop {
        self.refuse("ioctl", format!("ioctl request {request:#x}"));
        Errno::EOPNOTSUPP.into()
    }

    /// Changes an interface: only to what it is already.
    fn set_interface(&mut self, request: u64, at: u64) -> Answer {
        /// `IFF_UP`, `IFF_NOTRAILERS`, `IFF_NOARP`, `IFF_PROMISC`, `IFF_ALLMULTI`: what programs can
        /// change.
        const CHANGEABLE: u32 = 0x3a1;
        let wanted = self.read_bytes(at, REQUEST)?;
        if !self.is_capable(NET_ADMIN) {
            return Err(Errno::EPERM.into());
        }
        let end = wanted.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        let interface = self.host.network.interface_named(&wanted[..end.min(NAME)]);
        let interface = interface.ok_or(Errno::ENODEV)?;
        let value = int_at(&wanted, NAME);
        let is_same = match request {
            SET_FLAGS => (value ^ interface.flags) & CHANGEABLE == 0,
            SET_MTU => value == interface.mtu,
            SET_METRIC => value == 0,
            _ => false,
        };
        match is_same {
            true => Ok(Value::ZERO),
            false => Err(self.refused_change(request)),
        }
    }

    fn write_int(&mut self, at: u64, value: u64) -> Answer {
        let value = i32::try_from(value).unwrap_or(i32::MAX);
        self.write_bytes(at, &value.to_le_bytes())?;
        Ok(Value::ZERO)
    }

    fn write_bytes_to_read(&mut self, object: ObjectId, at: u64) -> Answer {
        let socket = self.host.socket(object).ok_or(Errno::ENOTSOCK)?;
        if socket.is_listening() {
            return Err(Errno::EINVAL.into());
        }
        let bytes = crate::objects::socket::available(self.host, object);
        self.write_int(at, bytes.unwrap_or(0))
    }

    /// `SIOCGIFCONF`: all IPv4 addresses with the names of their interfaces.
    fn write_interfaces(&mut self, at: u64) -> Answer {
        let room = self.read_value(at, 4)?;
        let room = self.vm.concretize(room)? as i32;
        let to = self.read_u64(at.wrapping_add(8))?;
        let mut told = Vec::new();
        for interface in self.host.network.interfaces() {
            for (ip, _) in self.host.network.addresses_of(interface.index) {
                if ip.is_ipv4() {
                    told.extend(with_name(&interface, &socket_address(ip)));
                }
            }
        }
        if to != 0 {
            let room = room.max(0) as usize / REQUEST as usize * REQUEST as usize;
            told.truncate(room);
            self.write_bytes(to, &told)?;
        }
        self.write_int(at, told.len() as u64)
    }

    /// `SIOCGIFNAME`: the name of an interface by its index.
    fn write_interface_name(&mut self, at: u64) -> Answer {
        let request = self.read_bytes(at, REQUEST)?;
        let index = int_at(&request, NAME);
        let interface = self.host.network.interface(index).ok_or(Errno::ENODEV)?;
        let mut name = interface.name.as_bytes().to_vec();
        name.resize(NAME, 0);
        self.write_bytes(at, &name)?;
        Ok(Value::ZERO)
    }

    fn write_interface(&mut self, request: u64, at: u64) -> Answer {
        let name = self.read_bytes(at, NAME as u64)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        let interface = self.host.network.interface_named(&name[..end]);
        let interface = interface.ok_or(Errno::ENODEV)?;
        let value = match request {
            FLAGS => (interface.flags as u16).to_le_bytes().to_vec(),
            METRIC => vec![0; 4],
            QUEUE_LEN => 1000u32.to_le_bytes().to_vec(),
            MTU => interface.mtu.to_le_bytes().to_vec(),
            INDEX => interface.index.to_le_bytes().to_vec(),
            HARDWARE => [&interface.kind.to_le_bytes()[..], &interface.hardware].concat(),
            _ => socket_address(self.address_of(&interface, request)?),
        };
        self.check(at, REQUEST, true)?;
        self.write_bytes(at.wrapping_add(NAME as u64), &value)?;
        Ok(Value::ZERO)
    }

    /// The IPv4 address of an interface, its netmask, or its broadcast address.
    fn address_of(&self, interface: &NetworkInterface, request: u64) -> Result<IpAddr, Stop> {
        let all = self.host.network.addresses_of(interface.index);
        let (ip, bits) = all
            .into_iter()
            .find_map(|(ip, bits)| match ip {
                IpAddr::V4(ip) => Some((u32::from(ip), bits)),
                IpAddr::V6(_) => None,
            })
            .ok_or(Errno::EADDRNOTAVAIL)?;
        let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
        Ok(IpAddr::V4(match request {
            ADDRESS => ip.into(),
            MASK => mask.into(),
            _ if interface.index == 1 => 0.into(),
            _ => (ip | !mask).into(),
        }))
    }
}

fn int_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u32::from_le_bytes(*word))
}

fn socket_address(ip: IpAddr) -> Vec<u8> {
    Address::Internet((ip, 0).into()).to_bytes(Domain::Inet)
}

/// Encodes a `struct ifreq`.
fn with_name(interface: &NetworkInterface, value: &[u8]) -> Vec<u8> {
    let mut request = interface.name.as_bytes().to_vec();
    request.resize(NAME, 0);
    request.extend_from_slice(value);
    request.resize(REQUEST as usize, 0);
    request
}
