//! A live peer as a host of the world: what other hosts see of a real program that is not explored.
//! It accepts connections and passes on the answers of the live program, which it gets through the
//! oracle.
//!
//! Its state is a value: the digest of all events so far identifies the state of the live program.
//! The peer is asked at virtual times: `think_ns` after the last act of a host, and at once when a
//! host connects or has sent [`FLUSH_BYTES`]. So the course of a world does not depend on the speed
//! of the real machine.

mod connection;
mod events;

use everett_expr::{Arena, VisitTerms};
use everett_linux::{Packet, PacketKind};
use everett_vm::{Interrupt, Oracle, OutsideQuestion};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use connection::{Connection, Stage};
use events::question_id_in_any_order;
pub use events::{ConnectionId, HostAct, PeerAct, position_after, question_id};

/// Number of bytes that hosts may send before the peer is asked at once whether it takes them.
pub const FLUSH_BYTES: usize = 1 << 20;

/// How symbolic bytes that a host sends to a live peer are made concrete.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum SymbolicBytes {
    /// The bytes get one of their values; the others are not explored.
    #[default]
    One,
    /// The bytes get all of their values, one after the other.
    All,
    /// The path is cut off.
    Refuse,
}

/// The configuration of a live peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerConfig {
    /// The name of the peer.
    pub name: String,
    /// The addresses of the peer as hosts see them.
    pub addresses: Vec<IpAddr>,
    /// The port of the peer as hosts see it; for a client, the port of the host that it connects
    /// to.
    pub port: u16,
    /// The address of the host that the peer connects to, if it is a client.
    pub connects_to: Option<IpAddr>,
    /// Whether the peer uses UDP instead of TCP.
    pub is_udp: bool,
    /// The virtual time after which the peer is asked what it does.
    pub think_ns: u64,
    /// The number of consecutive silent answers after which the peer is asked again only when a
    /// host has acted.
    pub silences: u32,
    /// Whether each connection has its own recording.
    pub is_independent: bool,
    /// Whether messages of different hosts are equivalent in any order.
    pub any_order: bool,
    /// How symbolic bytes are made concrete.
    pub symbolic: SymbolicBytes,
}

/// The events of one recording: of the whole peer, or of one connection.
#[derive(Clone, Debug, Default)]
struct Track {
    /// The position of the peer after its last answer.
    after: u128,
    /// Acts of hosts since the last answer; bytes may be symbolic.
    acts: Vec<PendingAct>,
    /// The number of bytes in these acts.
    pending_bytes: usize,
    /// When the peer is asked next.
    ask_ns: Option<u64>,
    /// Number of consecutive silent answers.
    silences: u32,
}

/// An act of a host whose bytes may be symbolic.
#[derive(Clone, Debug)]
enum PendingAct {
    Plain(HostAct),
    Send(ConnectionId, everett_vm::Buffer),
}

/// A live peer as a host.
#[derive(Clone, Debug)]
pub struct Peer {
    config: Arc<PeerConfig>,
    /// The time of the peer's last event.
    clock_ns: u64,
    connections: Arc<Vec<Connection>>,
    tracks: Arc<Vec<Track>>,
    /// The number of symbolic bytes that got one value.
    concretised: u64,
}

/// What a peer did when it was asked.
pub struct Acted {
    /// The packets that the peer sends.
    pub packets: Vec<Packet>,
    /// The number of symbolic bytes of hosts that got one value for the peer.
    pub concretised: u64,
}

impl Peer {
    /// Creates a peer before its first event.
    pub fn new(config: Arc<PeerConfig>) -> Peer {
        Peer {
            config,
            clock_ns: 0,
            connections: Arc::default(),
            tracks: Arc::default(),
            concretised: 0,
        }
    }

    /// Returns the time of the peer's last event.
    pub fn clock_ns(&self) -> u64 {
        self.clock_ns
    }

    /// Returns the number of symbolic bytes that got one value for the peer.
    pub fn concretised(&self) -> u64 {
        self.concretised
    }

    /// Returns when the peer is asked next.
    pub fn ask_ns(&self) -> Option<u64> {
        self.tracks.iter().filter_map(|track| track.ask_ns).min()
    }

    /// Starts the peer. From now on, a client may connect.
    pub fn start(&mut self, now_ns: u64) {
        self.clock_ns = now_ns;
        if self.config.connects_to.is_some() {
            let track = self.track_mut(0);
            track.ask_ns = Some(now_ns);
        }
    }

    /// Visits all terms in pending acts of hosts.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        for act in self.tracks.iter().flat_map(|track| &track.acts) {
            if let PendingAct::Send(_, bytes) = act {
                bytes.terms().for_each(|term| visit.term(term));
            }
        }
    }

    /// Returns a recording, to change it; creates it if necessary.
    fn track_mut(&mut self, at: usize) -> &mut Track {
        let tracks = Arc::make_mut(&mut self.tracks);
        if tracks.len() <= at {
            tracks.resize_with(at + 1, Track::default);
        }
        &mut tracks[at]
    }

    /// Returns the recording of a connection, and the number of the connection in it.
    fn place(&self, connection: usize) -> (usize, ConnectionId) {
        match self.config.is_independent {
            true => (connection, 0),
            false => (0, connection as ConnectionId),
        }
    }

    /// Records an act of a host; the peer is asked after a while, or at once.
    fn note(
        &mut self,
        connection: usize,
        act: impl FnOnce(ConnectionId) -> PendingAct,
        at_once: bool,
    ) {
        let (now_ns, think_ns) = (self.clock_ns, self.config.think_ns);
        let (track, number) = self.place(connection);
        let track = self.track_mut(track);
        let act = act(number);
        if let PendingAct::Send(_, bytes) = &act {
            track.pending_bytes += bytes.len();
        }
        track.acts.push(act);
        track.silences = 0;
        let at_once = at_once || track.pending_bytes >= FLUSH_BYTES;
        let think_ns = if at_once { 0 } else { think_ns };
        track.ask_ns = Some(now_ns.saturating_add(think_ns));
    }

    /// Cancels the next question while no host could receive the answer, or while a host does not
    /// take earlier data.
    fn settle(&mut self, track: usize) {
        let connections = self.connections.iter().enumerate();
        let mut own = connections.filter(|(at, _)| self.place(*at).0 == track);
        let is_client = self.config.connects_to.is_some();
        let could_hear = is_client || own.clone().any(|(_, connection)| connection.can_hear());
        let is_full = own.any(|(_, connection)| connection.is_full());
        if !could_hear || is_full {
            self.track_mut(track).ask_ns = None;
        }
    }

    /// Receives a packet of a host. Returns what the peer's kernel answers.
    pub fn receive(&mut self, packet: &Packet, now_ns: u64) -> Vec<Packet> {
        self.clock_ns = self.clock_ns.max(now_ns);
        let mut out = Vec::new();
        if !self.config.addresses.contains(&packet.to.ip()) {
            // Multicasts are ignored: only the peer's own connections are passed on.
            return out;
        }
        match &packet.kind {
            PacketKind::Syn { window } => self.syn_arrives(packet, *window, &mut out),
            PacketKind::Datagram(sent) => self.datagram_arrives(packet, &sent.bytes, &mut out),
            PacketKind::Frame(_) | PacketKind::Unreachable { .. } | PacketKind::Established => {}
            _ => self.segment_arrives(packet, &mut out),
        }
        out
    }

    fn answer_to(&self, packet: &Packet, kind: PacketKind) -> Packet {
        Packet {
            clock_ns: self.clock_ns,
            from: packet.to,
            to: packet.from,
            kind,
        }
    }

    fn add(&mut self, connection: Connection) -> usize {
        let connections = Arc::make_mut(&mut self.connections);
        connections.push(connection);
        connections.len() - 1
    }

    /// Handles a request for a connection: passes it on, or refuses it.
    fn syn_arrives(&mut self, packet: &Packet, window: u64, out: &mut Vec<Packet>) {
        let is_served = self.config.connects_to.is_none() && !self.config.is_udp;
        if !is_served || packet.to.port() != self.config.port {
            return out.push(self.answer_to(packet, PacketKind::Refused));
        }
        let connection = Connection::new(packet.to, packet.from, Stage::Asked, window);
        let at = self.add(connection);
        self.note(at, |number| PendingAct::Plain(HostAct::Open(number)), true);
    }

    /// Passes a datagram on to the peer, or answers that its port is closed.
    fn datagram_arrives(
        &mut self,
        packet: &Packet,
        bytes: &everett_vm::Buffer,
        out: &mut Vec<Packet>,
    ) {
        let known = self.find(packet.to, packet.from);
        let is_served = self.config.is_udp
            && (known.is_some()
                || self.config.connects_to.is_none() && packet.to.port() == self.config.port);
        if !is_served {
            let kind = PacketKind::Unreachable {
                errno: everett_linux::Errno::ECONNREFUSED,
                quoted: packet.quoted(),
            };
            return out.push(self.answer_to(packet, kind));
        }
        let at = known.unwrap_or_else(|| {
            let connection = Connection::new(packet.to, packet.from, Stage::Open, u64::MAX);
            let at = self.add(connection);
            self.note(at, |number| PendingAct::Plain(HostAct::Open(number)), false);
            at
        });
        self.note(at, |number| PendingAct::Send(number, bytes.clone()), false);
    }

    /// Returns the latest open connection between these ends.
    fn find(&self, local: SocketAddr, remote: SocketAddr) -> Option<usize> {
        let ends = |connection: &Connection| (connection.local, connection.remote);
        let found =
            |connection: &Connection| connection.is_open() && ends(connection) == (local, remote);
        self.connections.iter().rposition(found)
    }

    /// Handles a TCP segment of a host.
    fn segment_arrives(&mut self, packet: &Packet, out: &mut Vec<Packet>) {
        let Some(at) = self.find(packet.to, packet.from) else {
            let wants_answer =
                matches!(packet.kind, PacketKind::Data(_) | PacketKind::SynAck { .. });
            if wants_answer {
                out.push(self.answer_to(packet, PacketKind::Reset));
            }
            return;
        };
        let plain = |act: fn(ConnectionId) -> HostAct| move |number| PendingAct::Plain(act(number));
        match &packet.kind {
            PacketKind::Data(bytes) => {
                let update = self.connection_mut(at).received(bytes.len() as u64);
                out.extend(
                    update.map(|bytes| self.answer_to(packet, PacketKind::WindowUpdate { bytes })),
                );
                self.note(at, |number| PendingAct::Send(number, bytes.clone()), false);
            }
            PacketKind::WindowUpdate { bytes } => {
                let connection = self.connection_mut(at);
                connection.window = connection.window.saturating_add(*bytes);
                let was_full = connection.is_full();
                self.flush(at, out);
                if was_full && !self.connections[at].is_full() {
                    self.ask_later(self.place(at).0);
                }
                return;
            }
            PacketKind::SynAck { window } => {
                let connection = self.connection_mut(at);
                connection.stage = Stage::Open;
                connection.window = *window;
                self.note(at, plain(HostAct::Accept), false);
                self.flush(at, out);
            }
            PacketKind::Refused => {
                self.connection_mut(at).stage = Stage::Closed;
                self.note(at, plain(HostAct::Refuse), false);
            }
            PacketKind::Fin => {
                self.connection_mut(at).host_ended();
                self.note(at, plain(HostAct::End), false);
            }
            PacketKind::Reset => {
                self.connection_mut(at).stage = Stage::Closed;
                self.note(at, plain(HostAct::Reset), false);
            }
            _ => return,
        }
        self.settle(self.place(at).0);
    }

    fn connection_mut(&mut self, at: usize) -> &mut Connection {
        &mut Arc::make_mut(&mut self.connections)[at]
    }

    /// Schedules the next question of a recording.
    fn ask_later(&mut self, track: usize) {
        let at_ns = self.clock_ns.saturating_add(self.config.think_ns);
        self.track_mut(track).ask_ns = Some(at_ns);
    }

    /// Sends as much as the window of a host permits.
    fn flush(&mut self, at: usize, out: &mut Vec<Packet>) {
        let (clock_ns, is_udp) = (self.clock_ns, self.config.is_udp);
        let connection = self.connection_mut(at);
        let (from, to) = (connection.local, connection.remote);
        let kinds = connection.flush(is_udp);
        out.extend(kinds.into_iter().map(|kind| Packet {
            clock_ns,
            from,
            to,
            kind,
        }));
    }

    /// Asks the live peer what it does next, at the time when it is due. Changes nothing while a
    /// question is open, or if there is no answer, for which it returns the reason.
    pub fn act(
        &mut self,
        oracle: &mut dyn Oracle,
        arena: &mut Arena,
    ) -> Result<Result<Acted, String>, Interrupt> {
        let due = self.tracks.iter().enumerate();
        let due = due.filter_map(|(at, track)| Some((track.ask_ns?, at)));
        let Some((now_ns, at)) = due.min() else {
            return Ok(Err("nothing is to be asked".to_owned()));
        };
        let track = &self.tracks[at];
        let (acts, concretised) = match self.concrete_acts(&track.acts, oracle, arena)? {
            Ok(acts) => acts,
            Err(message) => return Ok(Err(message)),
        };
        let events = HostAct::encode(&acts);
        let question = OutsideQuestion {
            peer: &self.config.name,
            id: match self.config.any_order {
                true => question_id_in_any_order(track.after, &acts, track.silences),
                false => question_id(track.after, &events, track.silences),
            },
            after: track.after,
            events: &events,
        };
        let answer = match oracle.outside(&question)? {
            Ok(answer) => answer,
            Err(message) => return Ok(Err(message)),
        };
        let Some(act) = PeerAct::decode(&answer) else {
            return Ok(Err("its answer is damaged".to_owned()));
        };
        if let Err(message) = self.check(at, &act) {
            return Ok(Err(message));
        }
        let position = position_after(question.id, &answer);
        oracle.commit();
        self.clock_ns = self.clock_ns.max(now_ns);
        self.concretised += concretised;
        self.advance(at, acts, &act, position);
        let packets = self.perform(at, act);
        Ok(Ok(Acted {
            packets,
            concretised,
        }))
    }

    /// Returns the acts of hosts with concrete bytes, and how many bytes got one of several values.
    #[allow(clippy::type_complexity)]
    fn concrete_acts(
        &self,
        acts: &[PendingAct],
        oracle: &mut dyn Oracle,
        arena: &mut Arena,
    ) -> Result<Result<(Vec<HostAct>, u64), String>, Interrupt> {
        let is_symbolic =
            |act: &PendingAct| matches!(act, PendingAct::Send(_, bytes) if !bytes.is_concrete());
        let symbolic = self.config.symbolic;
        if symbolic == SymbolicBytes::Refuse && acts.iter().any(is_symbolic) {
            let name = &self.config.name;
            return Ok(Err(format!(
                "a host sends symbolic bytes to {name}, which are refused"
            )));
        }
        let takes_one = symbolic == SymbolicBytes::One && acts.iter().any(is_symbolic);
        if takes_one {
            oracle.set_forking(false);
        }
        let concrete = concretise(
            acts,
            oracle,
            arena,
            !self.config.is_udp && !self.config.any_order,
        );
        if takes_one && concrete.is_ok() {
            oracle.set_forking(true);
        }
        // If all values are explored, none is lost.
        let (acts, symbolic) = concrete?;
        Ok(Ok((acts, if takes_one { symbolic } else { 0 })))
    }

    /// Advances the position of the peer after its answer.
    fn advance(&mut self, at: usize, acts: Vec<HostAct>, act: &PeerAct, position: u128) {
        let any_order = self.config.any_order;
        let track = self.track_mut(at);
        let is_silent = *act == PeerAct::Silence;
        track.silences = if is_silent { track.silences + 1 } else { 0 };
        if any_order && is_silent {
            // Later acts count as if they had happened before.
            track.acts = acts.into_iter().map(PendingAct::Plain).collect();
            return;
        }
        track.after = position;
        track.acts = Vec::new();
        track.pending_bytes = 0;
    }

    /// Checks an answer: a recording of another scenario may refer to connections that do not
    /// exist.
    fn check(&self, track: usize, act: &PeerAct) -> Result<(), String> {
        let number = match act {
            PeerAct::Silence | PeerAct::Taken | PeerAct::Open(_) => return Ok(()),
            PeerAct::Accept(number)
            | PeerAct::Refuse(number)
            | PeerAct::Send(number, _)
            | PeerAct::End(number)
            | PeerAct::Reset(number) => *number,
        };
        match self.connection_of(track, number) < self.connections.len() {
            true => Ok(()),
            false => Err(format!(
                "its answer is about connection {number}, which there is not"
            )),
        }
    }

    /// Returns the index of a connection, given its recording and its number there.
    fn connection_of(&self, track: usize, number: ConnectionId) -> usize {
        match self.config.is_independent {
            true => track,
            false => number as usize,
        }
    }

    /// Performs an act of the peer. Returns its packets to hosts.
    fn perform(&mut self, track: usize, act: PeerAct) -> Vec<Packet> {
        let mut out = Vec::new();
        let clock_ns = self.clock_ns;
        let packet = |connection: &Connection, kind: PacketKind| Packet {
            clock_ns,
            from: connection.local,
            to: connection.remote,
            kind,
        };
        match act {
            PeerAct::Silence => {
                let is_quiet = self.tracks[track].silences >= self.config.silences;
                self.track_mut(track).ask_ns = None;
                if !is_quiet {
                    self.ask_later(track);
                }
                return out;
            }
            PeerAct::Taken => {}
            PeerAct::Open(_) => self.connect(&mut out),
            PeerAct::Accept(number) => {
                let at = self.connection_of(track, number);
                let connection = self.connection_mut(at);
                connection.stage = Stage::Open;
                let window = connection::WINDOW;
                out.push(packet(connection, PacketKind::SynAck { window }));
            }
            PeerAct::Refuse(number) => {
                let at = self.connection_of(track, number);
                let kind = match self.config.is_udp {
                    false => PacketKind::Refused,
                    true => PacketKind::Unreachable {
                        errno: everett_linux::Errno::ECONNREFUSED,
                        quoted: everett_vm::Buffer::zeroed(0),
                    },
                };
                let connection = self.connection_mut(at);
                connection.stage = Stage::Closed;
                out.push(packet(connection, kind));
            }
            PeerAct::Send(number, bytes) => {
                let at = self.connection_of(track, number);
                self.connection_mut(at).say(&bytes);
                self.flush(at, &mut out);
            }
            PeerAct::End(number) => {
                let at = self.connection_of(track, number);
                self.connection_mut(at).peer_ended();
                self.flush(at, &mut out);
            }
            PeerAct::Reset(number) => {
                let at = self.connection_of(track, number);
                let connection = self.connection_mut(at);
                connection.stage = Stage::Closed;
                out.push(packet(connection, PacketKind::Reset));
            }
        }
        self.ask_later(track);
        if self.owes_answer(track) {
            let now_ns = self.clock_ns;
            self.track_mut(track).ask_ns = Some(now_ns);
        }
        self.settle(track);
        out
    }

    /// Returns whether a host waits for its connection to be accepted.
    fn owes_answer(&self, track: usize) -> bool {
        let connections = self.connections.iter().enumerate();
        let mut own = connections.filter(|(at, _)| self.place(*at).0 == track);
        self.config.connects_to.is_none()
            && own.any(|(_, connection)| connection.stage == Stage::Asked)
    }

    /// Connects the peer to its host.
    fn connect(&mut self, out: &mut Vec<Packet>) {
        /// The first port from which the peer connects.
        const FIRST_PORT: u16 = 40_000;
        let Some((to, from)) = self
            .config
            .connects_to
            .zip(self.config.addresses.first().copied())
        else {
            return;
        };
        let port = FIRST_PORT.wrapping_add(self.connections.len() as u16);
        let (local, remote) = (
            SocketAddr::new(from, port),
            SocketAddr::new(to, self.config.port),
        );
        let (stage, window) = match self.config.is_udp {
            true => (Stage::Open, u64::MAX),
            false => (Stage::Asked, 0),
        };
        self.add(Connection::new(local, remote, stage, window));
        if !self.config.is_udp {
            let window = connection::WINDOW;
            out.push(Packet {
                clock_ns: self.clock_ns,
                from: local,
                to: remote,
                kind: PacketKind::Syn { window },
            });
        }
    }
}

/// Makes the bytes of acts concrete. Consecutive bytes of a stream are joined to one act, because
/// the peer sees no difference.
fn concretise(
    acts: &[PendingAct],
    oracle: &mut dyn Oracle,
    arena: &mut Arena,
    joins: bool,
) -> Result<(Vec<HostAct>, u64), Interrupt> {
    let mut concrete: Vec<HostAct> = Vec::with_capacity(acts.len());
    let mut concretised = 0;
    for act in acts {
        let (number, buffer) = match act {
            PendingAct::Plain(HostAct::Send(number, bytes)) if joins => {
                join(&mut concrete, *number, bytes);
                continue;
            }
            PendingAct::Plain(act) => {
                concrete.push(act.clone());
                continue;
            }
            PendingAct::Send(number, buffer) => (*number, buffer),
        };
        if joins && buffer.is_concrete() {
            join(&mut concrete, number, buffer.bytes());
            continue;
        }
        let mut bytes = buffer.bytes().to_vec();
        let symbolic: Vec<usize> = buffer.symbolic_bytes().map(|(at, ..)| at).collect();
        for at in symbolic {
            let term = buffer.byte_term(arena, at);
            bytes[at] = oracle.concretize(arena, term)? as u8;
            concretised += 1;
        }
        match joins {
            true => join(&mut concrete, number, &bytes),
            false => concrete.push(HostAct::Send(number, bytes)),
        }
    }
    Ok((concrete, concretised))
}

/// Appends bytes to the last act if that sends on the same connection.
fn join(acts: &mut Vec<HostAct>, number: ConnectionId, bytes: &[u8]) {
    match acts.last_mut() {
        Some(HostAct::Send(last, before)) if *last == number => before.extend_from_slice(bytes),
        _ => acts.push(HostAct::Send(number, bytes.to_vec())),
    }
}

#[cfg(test)]
mod tests;
