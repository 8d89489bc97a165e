//! Which socket an address leads to: addresses of the host, ports that are taken, and what is left of closed
//! connections. Other addresses lead to other hosts where there is a route.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use triomphe::Arc;

use super::{Kind, Socket, State};
use crate::config::RouteSpec;
use crate::errno::Errno;
use crate::host::HostState;
use crate::objects::ObjectId;

/// How long a port is kept after a connection was closed from here.
const TIME_WAIT_NS: u64 = 60_000_000_000;
/// Ports that are given to those who ask for none.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32768..=60999;

/// What a host knows of its network.
#[derive(Clone, Debug)]
pub struct Network {
    /// Its addresses, but those of the loopback.
    pub addresses: Arc<Vec<IpAddr>>,
    /// The next port for those who ask for none.
    next_port: u16,
    /// Connections that were closed here, but of which the network may still know.
    closed: Arc<Vec<Closed>>,
    /// The next name for UNIX sockets that ask for none.
    pub(super) next_name: u32,
    /// Connections that had to wait, so far.
    pub waiting: u64,
    /// Which addresses are of other hosts that can be reached.
    routes: Arc<Vec<RouteSpec>>,
}

/// A connection that was closed here.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Closed {
    local: SocketAddr,
    remote: SocketAddr,
    reuse_address: bool,
    /// When it is forgotten; `None` as long as the peer is there.
    until_ns: Option<u64>,
}

/// Where an address leads to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Route {
    /// To this host, from this address of it.
    Local {
        /// The address as it is: "any" means the loopback.
        to: IpAddr,
        /// Whose address a socket gets that has none.
        from: IpAddr,
    },
    /// To another host, from this address of this one.
    Remote {
        /// Whose address a socket gets that has none.
        from: IpAddr,
    },
    /// To nobody.
    Nowhere(Errno),
}

impl Network {
    /// A host with these addresses.
    pub fn new(addresses: Vec<IpAddr>, routes: Vec<RouteSpec>) -> Network {
        Network {
            routes: Arc::new(routes),
            addresses: Arc::new(addresses),
            next_port: *EPHEMERAL.start(),
            closed: Arc::default(),
            next_name: 0,
            waiting: 0,
        }
    }

    /// Ports are given from another place on, as after another start.
    pub(crate) fn skip_ports(&mut self, times: u32) {
        const APART: u32 = 1000;
        let all = u32::from(EPHEMERAL.end() - EPHEMERAL.start());
        let skipped = times.saturating_mul(APART) % all;
        self.next_port = EPHEMERAL.start() + skipped as u16;
    }

    /// It is an address of this host.
    pub fn is_own(&self, ip: IpAddr) -> bool {
        ip.is_loopback() || self.addresses.contains(&ip)
    }

    /// Where an address leads to. A network between hosts is asked here.
    pub fn route(&self, to: IpAddr) -> Route {
        let to = match to {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        if !self.is_own(to) {
            let matching = self.routes.iter().filter(|route| route.leads_to(to));
            return match matching.max_by_key(|route| route.prefix_len) {
                Some(route) => Route::Remote { from: route.source },
                None => Route::Nowhere(Errno::ENETUNREACH),
            };
        }
        let from = match to {
            IpAddr::V4(ip) if ip.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            ip => ip,
        };
        Route::Local { to, from }
    }

    /// A connection was closed here; its peer was not.
    pub fn leave(&mut self, local: SocketAddr, remote: SocketAddr, reuse_address: bool) {
        Arc::make_mut(&mut self.closed).push(Closed {
            local,
            remote,
            reuse_address,
            until_ns: None,
        });
    }

    /// The connection between these addresses, closed at `local`, is at its end: after a while nobody knows of it.
    pub fn forget_later(&mut self, local: SocketAddr, remote: SocketAddr, now_ns: u64) {
        let mut closed = Arc::make_mut(&mut self.closed).iter_mut();
        if let Some(entry) = closed.find(|entry| (entry.local, entry.remote) == (local, remote)) {
            entry.until_ns = Some(now_ns.saturating_add(TIME_WAIT_NS));
        }
    }

    /// The connection between these addresses was broken off.
    pub fn forget(&mut self, local: SocketAddr, remote: SocketAddr) {
        let is_it = |entry: &Closed| (entry.local, entry.remote) == (local, remote);
        if self.closed.iter().any(is_it) {
            Arc::make_mut(&mut self.closed).retain(|entry| !is_it(entry));
        }
    }

    fn forget_old(&mut self, now_ns: u64) {
        let is_old = |entry: &Closed| entry.until_ns.is_some_and(|until| until <= now_ns);
        if self.closed.iter().any(is_old) {
            Arc::make_mut(&mut self.closed).retain(|entry| !is_old(entry));
        }
    }
}

impl Socket {
    /// Nobody else can have its address.
    fn holds_address(&self) -> bool {
        let is_over = self.kind == Kind::Stream && self.state == State::Idle && !self.bound;
        self.domain.is_internet() && !is_over
    }
}

/// Addresses that a socket at one of them shares with the other.
pub(super) fn overlap(one: IpAddr, one_only_v6: bool, other: IpAddr, other_only_v6: bool) -> bool {
    let all_of_both =
        |ip: IpAddr, only_v6: bool| ip == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && !only_v6;
    if one == other || all_of_both(one, one_only_v6) || all_of_both(other, other_only_v6) {
        return true;
    }
    one.is_ipv4() == other.is_ipv4() && (one.is_unspecified() || other.is_unspecified())
}

/// How well a socket's own address fits what is sent to an address; `None` if it does not.
fn fit(socket: &Socket, to: SocketAddr) -> Option<u32> {
    let local = socket.local.internet()?;
    if local.port() != to.port() {
        return None;
    }
    match (local.ip(), to.ip()) {
        (own, wanted) if own == wanted => Some(3),
        (IpAddr::V4(own), IpAddr::V4(_)) if own.is_unspecified() => Some(2),
        (IpAddr::V6(own), IpAddr::V6(_)) if own.is_unspecified() => Some(2),
        (IpAddr::V6(own), IpAddr::V4(_)) if own.is_unspecified() && !socket.options.only_v6 => {
            Some(1)
        }
        _ => None,
    }
}

impl HostState {
    /// The socket that takes connections at an address. Of several that share it, one that has room.
    pub fn listener_at(&self, to: SocketAddr) -> Option<ObjectId> {
        let mut best: Option<((u32, bool), ObjectId)> = None;
        for (id, socket) in self.sockets() {
            if !socket.is_tcp() || !socket.is_listening() {
                continue;
            }
            let Some(fit) = fit(socket, to) else { continue };
            let rank = (fit, socket.has_backlog_room());
            if best.is_none_or(|best| best.0 < rank) {
                best = Some((rank, id));
            }
        }
        best.map(|best| best.1)
    }

    /// The socket that gets a datagram.
    pub fn datagram_receiver(&self, from: SocketAddr, to: SocketAddr) -> Option<ObjectId> {
        let mut best: Option<(u32, ObjectId)> = None;
        for (id, socket) in self.sockets() {
            if !socket.is_udp() {
                continue;
            }
            let Some(mut fit) = fit(socket, to) else {
                continue;
            };
            if let Some(remote) = socket.remote.internet() {
                if remote != from {
                    continue;
                }
                fit += 10;
            }
            // Of several that share an address without ports being shared, the last one has it.
            if best.is_none_or(|best| best.0 < fit || !socket.options.reuse_port && best.0 == fit) {
                best = Some((fit, id));
            }
        }
        best.map(|best| best.1)
    }

    /// A socket may have this address.
    fn is_free(&self, who: ObjectId, wanted: SocketAddr) -> bool {
        let Some(socket) = self.socket(who) else {
            return false;
        };
        let conflict = |other: &Socket, local: SocketAddr| {
            let meet = local.port() == wanted.port()
                && overlap(
                    local.ip(),
                    other.options.only_v6,
                    wanted.ip(),
                    socket.options.only_v6,
                );
            let both_reuse = socket.options.reuse_address && other.options.reuse_address;
            let both_share = socket.options.reuse_port && other.options.reuse_port;
            meet && !both_share && (!both_reuse || other.is_listening())
        };
        let taken = self.sockets().any(|(id, other)| {
            let same = other.holds_address() && other.kind == socket.kind && id != who;
            same && other
                .local
                .internet()
                .is_some_and(|local| conflict(other, local))
        });
        let lingers = |entry: &Closed| {
            entry.local.port() == wanted.port()
                && overlap(entry.local.ip(), true, wanted.ip(), socket.options.only_v6)
                && !(entry.reuse_address && socket.options.reuse_address)
        };
        let is_stream = socket.kind == Kind::Stream;
        !(taken || is_stream && self.network.closed.iter().any(lingers))
    }

    /// Gives a socket an address of the internet; port 0 means any.
    pub fn take_address(&mut self, who: ObjectId, wanted: SocketAddr) -> Result<SocketAddr, Errno> {
        self.network.forget_old(self.clock_ns);
        if wanted.port() != 0 {
            return if self.is_free(who, wanted) {
                Ok(wanted)
            } else {
                Err(Errno::EADDRINUSE)
            };
        }
        for _ in EPHEMERAL {
            let port = self.network.next_port;
            self.network.next_port = if port == *EPHEMERAL.end() {
                *EPHEMERAL.start()
            } else {
                port + 1
            };
            let address = SocketAddr::new(wanted.ip(), port);
            // A port that somebody has at any address is left alone.
            let held = self.sockets().any(|(_, other)| {
                let local = other.local.internet();
                local.is_some_and(|local| local.port() == port)
            });
            if !held && self.is_free(who, address) {
                return Ok(address);
            }
        }
        Err(Errno::EADDRINUSE)
    }

    /// The address that a new connection of a socket has at this end.
    pub fn address_for_connection(
        &mut self,
        who: ObjectId,
        from: IpAddr,
    ) -> Result<SocketAddr, Errno> {
        let socket = self.socket(who).ok_or(Errno::ENOTSOCK)?;
        match socket.local.internet() {
            Some(local) if local.port() == 0 => {
                let taken = self.take_address(who, local);
                taken.map_err(|_| Errno::EADDRNOTAVAIL)
            }
            Some(local) if local.ip().is_unspecified() => Ok(SocketAddr::new(from, local.port())),
            Some(local) => Ok(local),
            None => {
                let any = SocketAddr::new(from, 0);
                self.take_address(who, any)
                    .map_err(|_| Errno::EADDRNOTAVAIL)
            }
        }
    }

    /// Two sockets would have the same two addresses.
    pub fn has_connection(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let mut sockets = self.sockets();
        sockets.any(|(_, socket)| {
            socket.is_tcp()
                && matches!(
                    socket.state,
                    State::Connected { .. } | State::Connecting { .. }
                )
                && socket.local.internet() == Some(local)
                && socket.remote.internet() == Some(remote)
        })
    }
}
