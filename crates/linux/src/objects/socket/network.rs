//! Address lookup: local addresses, ports in use, connections in
//! TIME_WAIT, and routes to other hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use triomphe::Arc;

use super::table_route::TableRoute;
use super::{Domain, Socket, SocketState, SocketType};
use crate::config::RouteSpec;
use crate::errno::Errno;
use crate::host::HostState;
use crate::ids::ObjectId;

/// How long a closed connection keeps its port.
const TIME_WAIT_NS: u64 = 60_000_000_000;
/// Ephemeral ports.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32768..=60999;

/// Network configuration of a host.
#[derive(Clone, Debug)]
pub struct Network {
    /// Its addresses, besides the loopback addresses.
    pub addresses: Arc<Vec<IpAddr>>,
    /// The next ephemeral port.
    next_port: u16,
    /// Connections that were closed first at this end.
    closed: Arc<Vec<ClosedConnection>>,
    /// The next autobind name of a UNIX socket.
    pub(super) next_name: u32,
    /// Number of connection attempts that had to wait so far.
    pub waiting: u64,
    /// Routes to other hosts.
    pub(super) routes: Arc<Vec<RouteSpec>>,
    /// Routes that programs have added.
    pub(super) added: Arc<Vec<TableRoute>>,
}

/// A connection that was closed first at this end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ClosedConnection {
    /// The domain of its socket.
    pub domain: Domain,
    /// The address at this end.
    pub local: SocketAddr,
    /// The address of the peer.
    pub remote: SocketAddr,
    reuse_address: bool,
    /// When it was closed at this end.
    since_ns: u64,
    /// End of TIME_WAIT; `None` while the peer is still open.
    until_ns: Option<u64>,
}

impl ClosedConnection {
    /// Whether the peer is still open (FIN_WAIT2), and when the connection is forgotten.
    pub fn state(&self) -> (bool, u64) {
        let until_ns = self.since_ns.saturating_add(TIME_WAIT_NS);
        (self.until_ns.is_none(), self.until_ns.unwrap_or(until_ns))
    }
}

/// The route to an address.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    /// It belongs to this host.
    Local {
        /// The destination; the wildcard address means the loopback.
        to: IpAddr,
        /// Source address of an unbound socket.
        from: IpAddr,
    },
    /// It belongs to another host.
    Remote {
        /// Source address of an unbound socket.
        from: IpAddr,
    },
    /// There is no route.
    Nowhere(Errno),
}

impl Network {
    /// A host with these addresses and routes.
    pub fn new(addresses: Vec<IpAddr>, routes: Vec<RouteSpec>) -> Network {
        Network {
            routes: Arc::new(routes),
            added: Arc::default(),
            addresses: Arc::new(addresses),
            next_port: *EPHEMERAL.start(),
            closed: Arc::default(),
            next_name: 0,
            waiting: 0,
        }
    }

    /// Continues with other ephemeral ports, as after a restart.
    pub(crate) fn skip_ports(&mut self, times: u32) {
        const APART: u32 = 1000;
        let all = u32::from(EPHEMERAL.end() - EPHEMERAL.start());
        let skipped = times.saturating_mul(APART) % all;
        self.next_port = EPHEMERAL.start() + skipped as u16;
    }

    /// Whether it is an address of this host.
    pub fn is_own(&self, ip: IpAddr) -> bool {
        ip.is_loopback() || self.addresses.contains(&ip)
    }

    /// Finds the route to an address.
    pub fn route(&self, to: IpAddr) -> Destination {
        let to = match to {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        if !self.is_own(to) {
            let matching = self.routes.iter().filter(|route| route.leads_to(to));
            let best = matching.max_by_key(|route| route.prefix_len);
            let added = self.added_route(to, best.map(|route| route.prefix_len));
            return match (added, best) {
                (Some(Ok(from)), _) => Destination::Remote { from },
                (Some(Err(errno)), _) => Destination::Nowhere(errno),
                (None, Some(route)) => Destination::Remote { from: route.source },
                (None, None) => Destination::Nowhere(Errno::ENETUNREACH),
            };
        }
        let from = match to {
            IpAddr::V4(ip) if ip.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            ip => ip,
        };
        Destination::Local { to, from }
    }

    /// Records that a connection was closed at this end first: the domain of the socket and whether
    /// it reuses addresses, the local and the remote address.
    pub fn leave(&mut self, socket: (Domain, bool), ends: [SocketAddr; 2], now_ns: u64) {
        let ((domain, reuse_address), [local, remote]) = (socket, ends);
        Arc::make_mut(&mut self.closed).push(ClosedConnection {
            domain,
            local,
            remote,
            reuse_address,
            since_ns: now_ns,
            until_ns: None,
        });
    }

    /// The connections that were closed first at this end and are not forgotten yet.
    pub fn closed(&self, now_ns: u64) -> impl Iterator<Item = &ClosedConnection> {
        let is_kept = move |entry: &&ClosedConnection| entry.state().1 > now_ns;
        self.closed.iter().filter(is_kept)
    }

    /// A connection that was closed at `local` first is now closed at
    /// both ends: it enters TIME_WAIT.
    pub fn enter_time_wait(&mut self, local: SocketAddr, remote: SocketAddr, now_ns: u64) {
        let mut closed = Arc::make_mut(&mut self.closed).iter_mut();
        if let Some(entry) = closed.find(|entry| (entry.local, entry.remote) == (local, remote)) {
            entry.until_ns = Some(now_ns.saturating_add(TIME_WAIT_NS));
        }
    }

    /// Forgets a connection that was reset.
    pub fn forget(&mut self, local: SocketAddr, remote: SocketAddr) {
        let is_it = |entry: &ClosedConnection| (entry.local, entry.remote) == (local, remote);
        if self.closed.iter().any(is_it) {
            Arc::make_mut(&mut self.closed).retain(|entry| !is_it(entry));
        }
    }

    fn expire_closed(&mut self, now_ns: u64) {
        let is_old =
            |entry: &ClosedConnection| entry.until_ns.is_some_and(|condition| condition <= now_ns);
        if self.closed.iter().any(is_old) {
            Arc::make_mut(&mut self.closed).retain(|entry| !is_old(entry));
        }
    }
}

impl Socket {
    /// Whether it prevents others from binding its address.
    fn holds_address(&self) -> bool {
        let is_over =
            self.kind == SocketType::Stream && self.state == SocketState::Idle && !self.bound;
        self.domain.is_internet() && !is_over
    }
}

/// Whether two local addresses overlap.
pub(super) fn overlap(one: IpAddr, one_only_v6: bool, other: IpAddr, other_only_v6: bool) -> bool {
    let all_of_both =
        |ip: IpAddr, only_v6: bool| ip == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && !only_v6;
    if one == other || all_of_both(one, one_only_v6) || all_of_both(other, other_only_v6) {
        return true;
    }
    one.is_ipv4() == other.is_ipv4() && (one.is_unspecified() || other.is_unspecified())
}

/// How specifically a socket's local address matches a destination; `None` if it does not.
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
    /// The listening socket for an address. If several share it, one with space in its accept
    /// queue.
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

    /// The socket that receives a datagram.
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
            // If several sockets share an address without `SO_REUSEPORT`, the last one receives.
            if best.is_none_or(|best| best.0 < fit || !socket.options.reuse_port && best.0 == fit) {
                best = Some((fit, id));
            }
        }
        best.map(|best| best.1)
    }

    /// Whether a socket may bind this address.
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
            let is_alike = (other.kind, other.protocol) == (socket.kind, socket.protocol);
            let same = other.holds_address() && is_alike && id != who;
            same && other
                .local
                .internet()
                .is_some_and(|local| conflict(other, local))
        });
        let lingers = |entry: &ClosedConnection| {
            entry.local.port() == wanted.port()
                && overlap(entry.local.ip(), true, wanted.ip(), socket.options.only_v6)
                && !(entry.reuse_address && socket.options.reuse_address)
        };
        let is_stream = socket.kind == SocketType::Stream;
        !(taken || is_stream && self.network.closed.iter().any(lingers))
    }

    /// Binds a socket to an internet address; port 0 selects an ephemeral port.
    pub fn take_address(&mut self, who: ObjectId, wanted: SocketAddr) -> Result<SocketAddr, Errno> {
        self.network.expire_closed(self.clock_ns);
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
            // A port that is bound at any address is skipped.
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

    /// The local address of a new connection.
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

    /// Whether a connection between these addresses exists.
    pub fn has_connection(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let mut sockets = self.sockets();
        sockets.any(|(_, socket)| {
            socket.is_tcp()
                && matches!(
                    socket.state,
                    SocketState::Connected { .. } | SocketState::Connecting { .. }
                )
                && socket.local.internet() == Some(local)
                && socket.remote.internet() == Some(remote)
        })
    }
}
