//! Generates the files in `/proc/net` that list interfaces and sockets.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::files::{NetworkList, SocketList, Target};
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::objects::socket::{
    Address, ClosedConnection, Domain, MAIN, Socket, SocketState, route_type, unspecified,
};

/// The titles of `/proc/net/dev`.
const INTERFACES: &str = "Inter-|   Receive                                                \
|  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets \
errs drop fifo colls carrier compressed\n";

/// Lines of sockets of IPv4 are padded to this width.
const TCP_WIDTH: usize = 149;
const UDP_WIDTH: usize = 127;

impl HostState {
    /// `/proc/net/dev`: the interfaces, whose traffic is not counted.
    pub(crate) fn interfaces_text(&self) -> String {
        let mut text = INTERFACES.to_owned();
        for interface in self.network.interfaces() {
            let _ = writeln!(
                text,
                "{:>6}: {:7} {:7} {:4} {:4} {:4} {:5} {:10} {:9} {:8} {:7} {:4} {:4} {:4} {:5} {:7} \
                 {:10}",
                interface.name, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            );
        }
        text
    }

    /// The sockets of a kind, as the file in `/proc/net` lists them.
    pub(crate) fn sockets_text(&self, list: SocketList) -> Vec<u8> {
        match list {
            SocketList::Tcp(domain) => self.tcp_text(domain).into_bytes(),
            SocketList::Udp(domain) => self.udp_text(domain).into_bytes(),
            SocketList::Raw => self.raw_text().into_bytes(),
            SocketList::Unix => self.unix_text(),
        }
    }

    fn tcp_text(&self, domain: Domain) -> String {
        let mut text = title(domain, "  sl", "", TCP_WIDTH);
        // Listening sockets come first.
        let mut all: Vec<_> = self
            .sockets()
            .filter(|(_, socket)| socket.is_tcp() && socket.domain == domain)
            .filter(|(_, socket)| socket.state != SocketState::Idle)
            .collect();
        all.sort_by_key(|(_, socket)| !socket.is_listening());
        let pending = self.pending_connections();
        let mut number = 0;
        for (at, (id, socket)) in all.into_iter().enumerate() {
            let received = match &socket.state {
                SocketState::Listening { pending, .. } => pending.len() as u64,
                // The end of the stream counts as a byte.
                _ => socket.inbox.len() + u64::from(socket.end_received),
            };
            let owner = (!pending.contains(&id)).then_some(id);
            let timing = match socket.is_listening() {
                true => "100 0 0 10 0",
                false => "20 4 30 10 -1",
            };
            let columns = Columns {
                number: format!("{at:4}"),
                state: socket.tcp_state(),
                sent: self.bytes_in_flight(id),
                received,
                owner: self.owner_of(socket, owner),
                references: 1,
                rest: timing,
            };
            push_row(&mut text, socket, &columns, TCP_WIDTH);
            number = at + 1;
        }
        for closed in self.network.closed(self.clock_ns) {
            if closed.domain == domain {
                push_closed(&mut text, number, closed, self.clock_ns);
                number += 1;
            }
        }
        text
    }

    fn udp_text(&self, domain: Domain) -> String {
        let mut text = title(domain, "   sl", " ref pointer drops", UDP_WIDTH);
        let all = self.sockets().filter(|(_, socket)| {
            let is_bound = socket.local.internet().is_some_and(|own| own.port() != 0);
            socket.is_udp() && socket.domain == domain && is_bound
        });
        for (number, (id, socket)) in all.enumerate() {
            let columns = self.datagram_columns(format!("{number:5}"), id, socket);
            push_row(&mut text, socket, &columns, UDP_WIDTH);
        }
        text
    }

    /// Raw sockets, whose ports are the numbers of their protocols.
    fn raw_text(&self) -> String {
        let mut text = title(Domain::Inet, "  sl", " ref pointer drops", 0);
        let all = self.sockets().filter(|(_, socket)| socket.is_raw());
        for (id, socket) in all {
            let columns = self.datagram_columns(format!("{:4}", socket.protocol), id, socket);
            let mut shown = socket.clone();
            let own = shown.local.internet().map(|own| own.ip());
            let own = own.unwrap_or(unspecified(Domain::Inet));
            shown.local = Address::Internet((own, socket.protocol as u16).into());
            push_row(&mut text, &shown, &columns, 0);
        }
        text
    }

    /// What the line about a UDP or raw socket has besides its addresses.
    fn datagram_columns(&self, number: String, id: ObjectId, socket: &Socket) -> Columns {
        const CONNECTED: u8 = 1;
        const UNCONNECTED: u8 = 7;
        Columns {
            number,
            state: match socket.is_connected() {
                true => CONNECTED,
                false => UNCONNECTED,
            },
            sent: 0,
            received: socket.inbox.len(),
            owner: self.owner_of(socket, Some(id)),
            references: 2,
            rest: "0",
        }
    }

    /// A list in `/proc/net` that is not one of sockets.
    pub(crate) fn network_text(&self, list: NetworkList) -> String {
        match list {
            NetworkList::Routes => self.routes_text(),
            NetworkList::Addresses6 => self.addresses_text(),
        }
    }

    fn routes_text(&self) -> String {
        const WIDTH: usize = 127;
        const UP: u32 = 1;
        const GATEWAY: u32 = 2;
        const TO_HOST: u32 = 4;
        let title =
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT";
        let mut text = format!("{title:WIDTH$}\n");
        let mut all = self.network.all_routes();
        all.retain(|route| route.table == MAIN && route.kind == route_type::UNICAST);
        for route in all {
            let (IpAddr::V4(network), Some(interface)) =
                (route.network, self.network.interface(route.interface))
            else {
                continue;
            };
            let word = |ip: Ipv4Addr| u32::from_le_bytes(ip.octets());
            let gateway = match route.gateway {
                Some(IpAddr::V4(gateway)) => word(gateway),
                _ => 0,
            };
            let mask = u32::MAX.checked_shl(32 - u32::from(route.prefix_len));
            let mask = Ipv4Addr::from(mask.unwrap_or(0));
            let flags = UP
                | if gateway != 0 { GATEWAY } else { 0 }
                | if route.prefix_len == 32 { TO_HOST } else { 0 };
            let row = format!(
                "{}\t{:08X}\t{gateway:08X}\t{flags:04X}\t0\t0\t{}\t{:08X}\t0\t0\t0",
                interface.name,
                word(network),
                route.priority,
                word(mask)
            );
            let _ = writeln!(text, "{row:WIDTH$}");
        }
        text
    }

    fn addresses_text(&self) -> String {
        const PERMANENT: u32 = 0x80;
        const OF_LINK: u32 = 0x20;
        const OF_HOST: u32 = 0x10;
        let mut text = String::new();
        for interface in self.network.interfaces() {
            for (ip, bits) in self.network.addresses_of(interface.index) {
                let IpAddr::V6(ip) = ip else { continue };
                let scope = match ip {
                    _ if ip.is_loopback() => OF_HOST,
                    _ if ip.is_unicast_link_local() => OF_LINK,
                    _ => 0,
                };
                let _ = writeln!(
                    text,
                    "{:032x} {:02x} {bits:02x} {scope:02x} {PERMANENT:02x} {:>8}",
                    u128::from(ip),
                    interface.index,
                    interface.name
                );
            }
        }
        text
    }

    fn unix_text(&self) -> Vec<u8> {
        const LISTENS: u32 = 0x1_0000;
        let mut text = b"Num       RefCount Protocol Flags    Type St Inode Path\n".to_vec();
        let pending = self.pending_connections();
        let all = self.sockets();
        for (id, socket) in all.filter(|(_, socket)| socket.domain == Domain::Unix) {
            let flags = if socket.is_listening() { LISTENS } else { 0 };
            let (references, state) = match socket.is_connected() {
                true => (3, 3),
                false => (2, 1),
            };
            let owner = (!pending.contains(&id)).then_some(id);
            let line = format!(
                "{:016x}: {references:08X} {:08X} {flags:08X} {:04X} {state:02X} {:5}",
                0,
                0,
                socket.kind.number(),
                self.owner_of(socket, owner).1,
            );
            text.extend_from_slice(line.as_bytes());
            match &socket.local {
                Address::Path(path) => text.extend([b" ", path.as_slice()].concat()),
                Address::Abstract(name) => {
                    text.extend_from_slice(b" @");
                    let shown = name
                        .iter()
                        .map(|byte| if *byte == 0 { b'@' } else { *byte });
                    text.extend(shown);
                }
                _ => {}
            }
            text.push(b'\n');
        }
        text
    }

    /// Connections that no call of `accept` has returned yet: they have no inode.
    fn pending_connections(&self) -> BTreeSet<ObjectId> {
        let all = self
            .sockets()
            .filter_map(|(_, socket)| match &socket.state {
                SocketState::Listening { pending, .. } => Some(pending.iter().copied()),
                _ => None,
            });
        all.flatten().collect()
    }

    /// User id and inode number of a socket.
    fn owner_of(&self, socket: &Socket, id: Option<ObjectId>) -> (u32, u64) {
        match id {
            Some(id) => (socket.owner.uid, self.status(Target::Object(id)).inode),
            None => (0, 0),
        }
    }
}

/// What a line about a socket has besides its addresses.
struct Columns {
    number: String,
    state: u8,
    sent: u64,
    received: u64,
    owner: (u32, u64),
    references: u32,
    rest: &'static str,
}

fn title(domain: Domain, first: &str, last: &str, width: usize) -> String {
    const COLUMNS: &str = "st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
    match domain {
        Domain::Inet6 => format!(
            "  sl  local_address                         remote_address                        \
             {COLUMNS}{last}\n"
        ),
        _ => {
            let text = format!("{first}  local_address rem_address   {COLUMNS}{last}");
            format!("{text:width$}\n")
        }
    }
}

fn push_row(text: &mut String, socket: &Socket, columns: &Columns, width: usize) {
    let any = SocketAddr::new(unspecified(socket.domain), 0);
    let [local, remote] = [&socket.local, &socket.remote].map(|one| {
        let shown = one.internet().unwrap_or(any);
        address(shown, socket.domain)
    });
    let (uid, inode) = columns.owner;
    let Columns {
        number,
        state,
        sent,
        received,
        references,
        rest,
        ..
    } = columns;
    let row = format!(
        "{number}: {local} {remote} {state:02X} {sent:08X}:{received:08X} {:02X}:{:08X} {:08X} \
         {uid:5} {:8} {inode} {references} {:016x} {rest}",
        0, 0, 0, 0, 0,
    );
    let _ = match socket.domain {
        Domain::Inet6 => writeln!(text, "{row}"),
        _ => writeln!(text, "{row:width$}"),
    };
}

/// Adds the line of a connection whose socket is closed, in TIME_WAIT or FIN_WAIT2.
fn push_closed(text: &mut String, number: usize, closed: &ClosedConnection, now_ns: u64) {
    /// The timer of TIME_WAIT, in hundredths of a second.
    const TIMER: u32 = 3;
    const TICK_NS: u64 = 10_000_000;
    let [local, remote] = [closed.local, closed.remote].map(|one| address(one, closed.domain));
    let (waits_for_peer, until_ns) = closed.state();
    let state = if waits_for_peer { 5 } else { 6 };
    let left = until_ns.saturating_sub(now_ns) / TICK_NS;
    let row = format!(
        "{number:4}: {local} {remote} {state:02X} {:08X}:{:08X} {TIMER:02X}:{left:08X} {:08X} \
         {:5} {:8} {} {TIMER} {:016x}",
        0, 0, 0, 0, 0, 0, 0,
    );
    let _ = match closed.domain {
        Domain::Inet6 => writeln!(text, "{row}"),
        _ => writeln!(text, "{row:TCP_WIDTH$}"),
    };
}

/// An address in hexadecimal: words in the byte order of the processor, and the port.
fn address(address: SocketAddr, domain: Domain) -> String {
    let octets = match (address.ip(), domain) {
        (IpAddr::V4(ip), Domain::Inet6) => ip.to_ipv6_mapped().octets().to_vec(),
        (IpAddr::V4(ip), _) => ip.octets().to_vec(),
        (IpAddr::V6(ip), _) => ip.octets().to_vec(),
    };
    let mut text = String::new();
    for word in octets.chunks_exact(4) {
        let word = word
            .first_chunk()
            .map_or(0, |word| u32::from_le_bytes(*word));
        let _ = write!(text, "{word:08X}");
    }
    let _ = write!(text, ":{:04X}", address.port());
    text
}
