//! Netlink sockets: requests about interfaces, addresses and routes, and the multicast groups that
//! are notified of route changes.

use std::net::IpAddr;

use everett_vm::Buffer;

use super::interfaces::NetworkInterface;
use super::routes;
use super::table_route::{IfPresent, TableRoute};
use super::{Address, Domain, Network, ReceivedMessage};
use crate::capabilities::NET_ADMIN;
use crate::errno::Errno;
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Kernel, Stop};
use crate::objects::OpenObject;

const ERROR: u16 = 2;
const DONE: u16 = 3;
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const GET_ADDRESS: u16 = 22;
const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const GET_ROUTE: u16 = 26;
/// Flags of requests and answers.
const MULTI: u16 = 2;
const ACKNOWLEDGE: u16 = 4;
const DUMP: u16 = 0x300;
/// Bytes of a `struct nlmsghdr`.
const HEADER: usize = 16;

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
        IpAddr::V4(_) => (FAMILY_V4, octets(ip)),
        IpAddr::V6(_) => (FAMILY_V6, octets(ip)),
    };
    let own = match ip {
        IpAddr::V4(ip) => Some(u32::from(ip)),
        IpAddr::V6(_) => None,
    };
    let mut body = vec![family, bits, 0x80, scope];
    body.extend_from_slice(&interface.index.to_le_bytes());
    attribute(&mut body, 1, &octets);
    if ip.is_ipv4() {
        attribute(&mut body, 2, &octets);
        if !ip.is_loopback() {
            let host_bits = u32::MAX.checked_shr(bits.into()).unwrap_or(0);
            let broadcast = own.map(|own| (own | host_bits).to_be_bytes());
            attribute(&mut body, 4, &broadcast.unwrap_or_default());
        }
        attribute(&mut body, 3, &[interface.name.as_bytes(), &[0]].concat());
    }
    body
}

/// The reply to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Reply {
    /// Messages of a dump.
    Dump(Vec<u8>),
    /// The result of a change.
    Done(Result<(), Errno>),
    /// The model does not support the request.
    Unknown,
}

/// A request: its header and its body.
struct Request<'a> {
    header: &'a [u8; HEADER],
    body: &'a [u8],
}

impl<'a> Request<'a> {
    /// Splits the first request off these bytes.
    fn first(bytes: &'a [u8]) -> Option<(Request<'a>, &'a [u8])> {
        let header = bytes.first_chunk::<HEADER>()?;
        let len = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let body = bytes.get(HEADER..len)?;
        let rest = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((Request { header, body }, rest))
    }

    fn half(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.header[at], self.header[at + 1]])
    }

    fn kind(&self) -> u16 {
        self.half(4)
    }

    fn flags(&self) -> u16 {
        self.half(6)
    }

    fn family(&self) -> u8 {
        self.body.first().copied().unwrap_or(0)
    }

    /// The sequence number and the port of the requester, as replies contain them.
    fn sequence(&self, port: u32) -> [u8; 8] {
        let mut sequence = [0; 8];
        sequence[..4].copy_from_slice(&self.header[8..12]);
        sequence[4..].copy_from_slice(&port.to_le_bytes());
        sequence
    }
}

const FAMILY_V4: u8 = 2;
const FAMILY_V6: u8 = 10;

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let v6 = <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    v4.or(v6).ok()
}

/// Attributes of a route (`RTA_`).
mod of_route {
    pub const TO: u16 = 1;
    pub const INTERFACE: u16 = 4;
    pub const GATEWAY: u16 = 5;
    pub const PRIORITY: u16 = 6;
    pub const SOURCE: u16 = 7;
    pub const TABLE: u16 = 15;
}
/// Bytes of a `struct rtmsg`.
const ROUTE_HEADER: usize = 12;

/// Encodes a route.
fn route(route: &TableRoute) -> Vec<u8> {
    let family = if route.network.is_ipv4() {
        FAMILY_V4
    } else {
        FAMILY_V6
    };
    let table = u8::try_from(route.table).unwrap_or(0);
    let (kind, scope) = (route.kind, route.scope);
    let mut body = vec![
        family,
        route.prefix_len,
        0,
        route.tos,
        table,
        route.protocol,
        scope,
        kind,
    ];
    body.extend_from_slice(&[0; 4]);
    attribute(&mut body, of_route::TABLE, &route.table.to_le_bytes());
    if route.prefix_len != 0 {
        attribute(&mut body, of_route::TO, &octets(route.network));
    }
    if route.priority != 0 {
        attribute(&mut body, of_route::PRIORITY, &route.priority.to_le_bytes());
    }
    if let Some(source) = route.source {
        attribute(&mut body, of_route::SOURCE, &octets(source));
    }
    if let Some(gateway) = route.gateway {
        attribute(&mut body, of_route::GATEWAY, &octets(gateway));
    }
    if route.interface != 0 {
        attribute(
            &mut body,
            of_route::INTERFACE,
            &route.interface.to_le_bytes(),
        );
    }
    body
}

/// Decodes a route; `None` if it has attributes that the model does not support.
fn parse_route(body: &[u8]) -> Option<Result<TableRoute, Errno>> {
    let Some(header) = body.first_chunk::<ROUTE_HEADER>() else {
        return Some(Err(Errno::EINVAL));
    };
    let is_v4 = match header[0] {
        FAMILY_V4 => true,
        FAMILY_V6 => false,
        _ => return Some(Err(Errno::EOPNOTSUPP)),
    };
    let mut route = TableRoute {
        network: routes::any(is_v4),
        prefix_len: header[1],
        table: header[4].into(),
        protocol: header[5],
        scope: header[6],
        kind: header[7],
        tos: header[3],
        priority: 0,
        gateway: None,
        interface: 0,
        source: None,
    };
    let mut rest = &body[ROUTE_HEADER..];
    while let Some([low, high, kind_low, kind_high, ..]) = rest.first_chunk::<4>() {
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        let Some(value) = rest.get(4..len) else {
            return Some(Err(Errno::EINVAL));
        };
        let number = value
            .first_chunk()
            .map_or(0, |word| u32::from_le_bytes(*word));
        match u16::from_le_bytes([*kind_low, *kind_high]) {
            of_route::TO => match ip(value) {
                Some(to) => route.network = to,
                None => return Some(Err(Errno::EINVAL)),
            },
            of_route::GATEWAY => route.gateway = ip(value),
            of_route::SOURCE => route.source = ip(value),
            of_route::INTERFACE => route.interface = number,
            of_route::PRIORITY => route.priority = number,
            of_route::TABLE => route.table = number,
            _ => return None,
        }
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    let most = if is_v4 { 32 } else { 128 };
    let is_right = route.prefix_len <= most && route.network.is_ipv4() == is_v4;
    Some(if is_right {
        Ok(route)
    } else {
        Err(Errno::EINVAL)
    })
}

impl Kernel<'_, '_> {
    /// Answers netlink requests.
    pub(super) fn send_netlink(
        &mut self,
        open: OpenObject<'_>,
        parts: &[Buffer],
    ) -> Result<u64, Stop> {
        let mut bytes = Vec::new();
        for part in parts {
            for at in 0..part.len() {
                let byte = part.byte(self.vm.arena, at);
                bytes.push(self.vm.concretize(byte)? as u8);
            }
        }
        let port = self.netlink_port(open.object)?;
        let mut rest = &bytes[..];
        while let Some((request, after)) = Request::first(rest) {
            let reply = match request.kind() {
                NEW_ROUTE | DELETE_ROUTE => self.change_routes(open.object, &request, port),
                _ => dump(&self.host.network, &request, port),
            };
            if reply == Reply::Unknown {
                self.refuse("sendto", format!("netlink request {}", request.kind()));
            }
            for answer in encoded(reply, &request, port) {
                let bytes = Buffer::with_bytes(&answer, answer.len());
                self.host
                    .deliver(open.object, ReceivedMessage::plain(bytes));
            }
            rest = after;
        }
        Ok(bytes.len() as u64)
    }

    /// `bind` of a netlink socket: sets its port, and replaces its groups.
    pub fn bind_netlink(&mut self, id: ObjectId, port: u32, groups: u32) -> Result<(), Errno> {
        let (own, _) = self.netlink_address(id)?;
        let port = match own {
            0 if port == 0 => self.netlink_port(id)?,
            0 if self.host.has_netlink_port(port) => return Err(Errno::EADDRINUSE),
            0 => port,
            own if own == port => own,
            _ => return Err(Errno::EINVAL),
        };
        let socket = self.host.socket_mut(id).ok_or(Errno::ENOTSOCK)?;
        socket.local = Address::Netlink { port, groups };
        Ok(())
    }

    /// The port of a netlink socket. A socket without a port gets one, usually the process id.
    fn netlink_port(&mut self, id: ObjectId) -> Result<u32, Errno> {
        const OTHERS: u32 = u32::MAX - 4095;
        let (own, groups) = self.netlink_address(id)?;
        if own != 0 {
            return Ok(own);
        }
        let process = self.process().pid;
        let mut free = std::iter::once(process).chain((1..=OTHERS).rev());
        let port = free.find(|port| !self.host.has_netlink_port(*port));
        let port = port.ok_or(Errno::EADDRINUSE)?;
        let socket = self.host.socket_mut(id).ok_or(Errno::ENOTSOCK)?;
        socket.local = Address::Netlink { port, groups };
        Ok(port)
    }

    /// Port and groups of a netlink socket; port 0 if it has none.
    fn netlink_address(&self, id: ObjectId) -> Result<(u32, u32), Errno> {
        let socket = self.host.socket(id).ok_or(Errno::ENOTSOCK)?;
        Ok(match socket.local {
            Address::Netlink { port, groups } => (port, groups),
            _ => (0, 0),
        })
    }

    /// `NETLINK_ADD_MEMBERSHIP` and `NETLINK_DROP_MEMBERSHIP`.
    pub fn change_netlink_group(
        &mut self,
        id: ObjectId,
        group: i32,
        joins: bool,
    ) -> Result<(), Errno> {
        /// Number of groups of `NETLINK_ROUTE`; those above 32 get no notifications.
        const GROUPS: i32 = 36;
        if !(1..=GROUPS).contains(&group) {
            return Err(Errno::EINVAL);
        }
        let bit = 1u32.checked_shl(group as u32 - 1).unwrap_or(0);
        let (port, before) = self.netlink_address(id)?;
        let groups = if joins { before | bit } else { before & !bit };
        let socket = self.host.socket_mut(id).ok_or(Errno::ENOTSOCK)?;
        socket.local = Address::Netlink { port, groups };
        Ok(())
    }

    /// Adds or deletes a route.
    fn change_routes(&mut self, id: ObjectId, request: &Request<'_>, port: u32) -> Reply {
        const REPLACE: u16 = 0x100;
        const EXCLUSIVE: u16 = 0x200;
        const CREATE: u16 = 0x400;
        const APPEND: u16 = 0x800;
        if !self.is_capable(NET_ADMIN) {
            return Reply::Done(Err(Errno::EPERM));
        }
        let wanted = match parse_route(request.body) {
            Some(Ok(wanted)) => wanted,
            Some(Err(errno)) => return Reply::Done(Err(errno)),
            None => return Reply::Unknown,
        };
        let has = |flag: u16| request.flags() & flag != 0;
        let present = IfPresent {
            replaces: has(REPLACE),
            fails: has(EXCLUSIVE),
            creates: has(CREATE),
            appends: has(APPEND),
        };
        let network = &mut self.host.network;
        let changed = match request.kind() {
            NEW_ROUTE => network.add_route(wanted, present),
            _ => network.delete_route(&wanted).ok_or(Errno::ESRCH),
        };
        if let Ok(changed) = &changed {
            self.host.tell_route(id, changed, request, port);
        }
        Reply::Done(changed.map(|_| ()))
    }
}

impl HostState {
    /// Sends a netlink socket a message that it has left with the kernel.
    pub fn send_back(&mut self, to: ObjectId, bytes: &[u8]) {
        let domain = self.socket(to).map(|socket| socket.domain);
        if domain == Some(Domain::Netlink) {
            let bytes = Buffer::with_bytes(bytes, bytes.len());
            self.deliver(to, ReceivedMessage::plain(bytes));
        }
    }

    fn has_netlink_port(&self, wanted: u32) -> bool {
        let mut all = self.sockets();
        all.any(|(_, one)| matches!(one.local, Address::Netlink { port, .. } if port == wanted))
    }

    /// Notifies the sockets of the group, except the requester, that a route has changed.
    fn tell_route(&mut self, by: ObjectId, changed: &TableRoute, request: &Request<'_>, port: u32) {
        /// Bits of `RTNLGRP_IPV4_ROUTE` and `RTNLGRP_IPV6_ROUTE`.
        const ROUTES_V4: u32 = 1 << 6;
        const ROUTES_V6: u32 = 1 << 10;
        let group = if changed.network.is_ipv4() {
            ROUTES_V4
        } else {
            ROUTES_V6
        };
        let members = self.sockets().filter(|(id, socket)| {
            let is_member =
                matches!(socket.local, Address::Netlink { groups, .. } if groups & group != 0);
            *id != by && socket.domain == Domain::Netlink && is_member
        });
        let members: Vec<ObjectId> = members.map(|(id, _)| id).collect();
        let mut told = Vec::new();
        let sequence = request.sequence(port);
        message(&mut told, request.kind(), 0, &sequence, &route(changed));
        for id in members {
            let bytes = Buffer::with_bytes(&told, told.len());
            self.deliver(id, ReceivedMessage::plain(bytes));
        }
    }
}

/// The messages of a reply.
fn encoded(reply: Reply, request: &Request<'_>, port: u32) -> Vec<Vec<u8>> {
    let sequence = request.sequence(port);
    let mut last = Vec::new();
    let result = match reply {
        Reply::Dump(found) => {
            message(&mut last, DONE, MULTI, &sequence, &[0; 4]);
            return [found, last]
                .into_iter()
                .filter(|one| !one.is_empty())
                .collect();
        }
        Reply::Done(Ok(())) if request.flags() & ACKNOWLEDGE == 0 => return Vec::new(),
        Reply::Done(Ok(())) => 0,
        Reply::Done(Err(errno)) => -errno.0,
        Reply::Unknown => -Errno::EOPNOTSUPP.0,
    };
    let body = [&result.to_le_bytes(), &request.header[..]].concat();
    message(&mut last, ERROR, 0, &sequence, &body);
    vec![last]
}

/// Answers a request for all interfaces, addresses or routes.
fn dump(network: &Network, request: &Request<'_>, port: u32) -> Reply {
    let sequence = request.sequence(port);
    let wants = |is_v4: bool| {
        let family = if is_v4 { FAMILY_V4 } else { FAMILY_V6 };
        request.family() == 0 || request.family() == family
    };
    if request.flags() & DUMP == 0 {
        return Reply::Unknown;
    }
    let mut found = Vec::new();
    match request.kind() {
        GET_LINK => {
            for interface in network.interfaces() {
                message(&mut found, NEW_LINK, MULTI, &sequence, &link(&interface));
            }
        }
        GET_ADDRESS => {
            for is_v4 in [true, false] {
                for interface in network.interfaces() {
                    for (ip, bits) in network.addresses_of(interface.index) {
                        if ip.is_ipv4() == is_v4 && wants(is_v4) {
                            let body = address(&interface, ip, bits);
                            message(&mut found, NEW_ADDRESS, MULTI, &sequence, &body);
                        }
                    }
                }
            }
        }
        GET_ROUTE => {
            for one in network.all_routes() {
                if wants(one.network.is_ipv4()) {
                    message(&mut found, NEW_ROUTE, MULTI, &sequence, &route(&one));
                }
            }
        }
        _ => return Reply::Unknown,
    }
    Reply::Dump(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        message(&mut bytes, kind, flags, &[7; 8], body);
        bytes
    }

    #[test]
    fn all_addresses_are_told_and_what_is_not_known_is_refused() {
        let network = Network::new(vec![IpAddr::from([10, 0, 0, 1])], Vec::new());
        let bytes = request(GET_ADDRESS, 0x301, &[0]);
        let (asked, rest) = Request::first(&bytes).unwrap();
        assert!(rest.is_empty());
        let told = encoded(dump(&network, &asked, 9), &asked, 9);
        assert_eq!(told.len(), 2);
        assert_eq!(told[0][8..16], [7, 7, 7, 7, 9, 0, 0, 0]);
        let has = |part: &[u8]| told[0].windows(part.len()).any(|window| window == part);
        assert!(has(&[127, 0, 0, 1]) && has(&[10, 0, 0, 255]) && has(b"eth0\0"));
        assert_eq!(told[1][4], DONE as u8);
        let bytes = request(999, 1, &[0]);
        let (asked, _) = Request::first(&bytes).unwrap();
        assert_eq!(dump(&network, &asked, 9), Reply::Unknown);
        assert_eq!(encoded(Reply::Unknown, &asked, 9)[0][4], ERROR as u8);
        assert!(Request::first(b"short").is_none());
    }

    #[test]
    fn routes_survive_their_bytes() {
        let one = TableRoute {
            network: IpAddr::from([192, 0, 2, 0]),
            prefix_len: 24,
            table: 1000,
            protocol: 12,
            scope: 0,
            kind: 1,
            tos: 0,
            priority: 32,
            gateway: Some(IpAddr::from([10, 0, 0, 2])),
            interface: 2,
            source: None,
        };
        assert_eq!(parse_route(&route(&one)), Some(Ok(one)));
        assert_eq!(parse_route(&[2]), Some(Err(Errno::EINVAL)));
        let mut other = route(&one);
        attribute(&mut other, 9, &[0; 8]);
        assert_eq!(parse_route(&other), None);
    }
}
