//! `ioctl` requests about sockets and network interfaces.

use everett_vm::Value;
use std::net::IpAddr;

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
            FLAGS | ADDRESS | BROADCAST | MASK | METRIC | MTU | HARDWARE | INDEX => {
                self.write_interface(request, at)
            }
            _ => return None,
        })
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
