//! Records what clients send: listens to the exploration of one client, and keeps each message to
//! the server as terms with its path condition (a client predicate).

use everett_engine::{Explorer, Keep, Listener, StateView, WorldFinding};
use everett_expr::ExprId;
use everett_linux::{Ending, Packet, PacketKind};
use everett_net::HostIndex;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use crate::pin::Pin;
use crate::predicate::Encoded;

/// Which messages of a client are kept.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The client under exploration.
    pub client: HostIndex,
    /// The name of the client.
    pub name: String,
    /// The server.
    pub server: HostIndex,
    /// The port of the server.
    pub port: u16,
    /// Whether messages are parts of a stream, not datagrams.
    pub is_stream: bool,
    /// If set, only the message with this number counts, counted from 1.
    pub number: Option<u32>,
    /// Whether messages also count after the client has heard from the server.
    pub ever: bool,
    /// Whether there are no hosts except the server and its clients.
    pub is_alone: bool,
    /// How often a path may send the same message before it is cut off.
    pub most_repeats: usize,
}

/// The packets that a client writes to one connection without waiting.
struct Burst {
    /// The number of waits before the burst that came after a send.
    waits: usize,
    from: SocketAddr,
    packets: Vec<Packet>,
}

/// A listener that collects the messages of a client.
pub struct Clients {
    options: ClientOptions,
    /// The distinct messages.
    pub sent: BTreeSet<Encoded>,
    /// The number of messages over all paths, with repetitions.
    pub messages: u64,
    /// Source ports of the messages.
    pub ports: BTreeSet<u16>,
    /// Destination addresses of the messages.
    pub addresses: BTreeSet<IpAddr>,
    /// Whether the client closes its direction of the stream after the message.
    pub closes: bool,
    /// The number of bytes that the server sends over a stream before it receives anything.
    pub greeting: usize,
    /// Whether a path was cut off because it sends the same message again and again.
    pub is_cut: bool,
    /// If not empty, states in which none of these conditions is possible are pruned.
    pins: Vec<Pin>,
}

impl Clients {
    /// Creates a listener that has heard nothing yet.
    pub fn new(options: ClientOptions) -> Clients {
        Clients {
            options,
            sent: BTreeSet::new(),
            messages: 0,
            ports: BTreeSet::new(),
            addresses: BTreeSet::new(),
            closes: false,
            greeting: 0,
            is_cut: false,
            pins: Vec::new(),
        }
    }

    /// Restricts the exploration to states in which one of these conditions is possible.
    pub fn pinned_to(self, pins: Vec<Pin>) -> Clients {
        Clients { pins, ..self }
    }

    /// Prunes a client state in which no pin is possible.
    fn consider(&self, view: &mut StateView<'_, '_>) -> Keep {
        let mut pins = self.pins.iter();
        let is_free = self.pins.is_empty() || !self.is_client(view);
        match is_free || pins.any(|pin| pin.is_possible(view)) {
            true => Keep::Yes,
            false => Keep::Prune,
        }
    }

    fn is_to_server(&self, packet: &Packet) -> bool {
        packet.to.port() == self.options.port
            && match packet.kind {
                PacketKind::Datagram(_) => !self.options.is_stream,
                PacketKind::Data(_) | PacketKind::Fin => self.options.is_stream,
                _ => false,
            }
    }

    /// Returns the bytes of a packet.
    fn bytes(view: &mut StateView<'_, '_>, packet: &Packet) -> Vec<ExprId> {
        let Some(payload) = packet.payload() else {
            return Vec::new();
        };
        let places = 0..payload.len();
        places
            .map(|at| payload.byte_term(view.arena(), at))
            .collect()
    }

    fn keep(&mut self, view: &mut StateView<'_, '_>, bytes: &[ExprId], packet: &Packet) {
        let conditions: Vec<ExprId> = view.path_condition().iter().collect();
        let encoded = Encoded::of(view.arena(), &self.options.name, bytes, &conditions);
        self.sent.insert(encoded);
        self.messages += 1;
        self.ports.insert(packet.from.port());
        self.addresses.insert(packet.to.ip());
    }

    /// Handles a datagram: each datagram is a message.
    fn datagram(&mut self, view: &mut StateView<'_, '_>, packet: &Packet) -> Keep {
        let before: Vec<Packet> = view
            .sent()
            .filter(|before| self.is_to_server(before))
            .cloned()
            .collect();
        let number = before.len() as u32 + 1;
        let bytes = Self::bytes(view, packet);
        if self.options.number.is_none_or(|wanted| wanted == number) {
            self.keep(view, &bytes, packet);
        }
        if self.options.number.is_some_and(|wanted| number >= wanted) {
            // Later messages do not matter.
            return Keep::Prune;
        }
        let mut repeats = 0;
        for before in &before {
            repeats += usize::from(Self::bytes(view, before) == bytes);
        }
        if repeats >= self.options.most_repeats {
            self.is_cut = true;
            return Keep::Prune;
        }
        match self.counts_later() {
            true => Keep::Yes,
            false => Keep::Lose,
        }
    }

    /// Returns the bursts that the client has written, in the order of their first packets.
    fn bursts(&self, view: &StateView<'_, '_>) -> Vec<Burst> {
        let mut all: Vec<Burst> = Vec::new();
        for (at, packet) in view.sent().enumerate() {
            if !self.is_to_server(packet) {
                continue;
            }
            let waits = view.waits().partition_point(|sent| *sent <= at);
            let is_of = |burst: &&mut Burst| (burst.waits, burst.from) == (waits, packet.from);
            match all.iter_mut().find(is_of) {
                Some(burst) => burst.packets.push(packet.clone()),
                None => all.push(Burst {
                    waits,
                    from: packet.from,
                    packets: vec![packet.clone()],
                }),
            }
        }
        all
    }

    /// Handles the end of bursts. When a client waits or exits, what it has written to each
    /// connection since its last wait is a message. When it closes a stream (`from`), only what it
    /// has written to that connection is one.
    fn ends_bursts(&mut self, view: &mut StateView<'_, '_>, from: Option<SocketAddr>) -> Keep {
        let (bursts, waits) = (self.bursts(view), view.waits().len());
        let mut all: Vec<Vec<ExprId>> = Vec::new();
        let mut keep = Keep::Yes;
        for (burst, number) in bursts.iter().zip(1..) {
            let packets = burst.packets.iter();
            let bytes: Vec<ExprId> = packets
                .flat_map(|packet| Self::bytes(view, packet))
                .collect();
            let repeats = all.iter().filter(|before| **before == bytes).count();
            all.push(bytes);
            if burst.waits != waits || from.is_some_and(|from| from != burst.from) {
                continue;
            }
            let wanted = self.options.number;
            if wanted.is_none_or(|wanted| wanted == number) {
                self.keep(view, &all[all.len() - 1], &burst.packets[0]);
                self.closes |= from.is_some() && (wanted.is_some() || number == 1);
            }
            if !self.counts_later() || wanted.is_some_and(|wanted| number >= wanted) {
                keep = Keep::Prune;
            } else if repeats >= self.options.most_repeats {
                self.is_cut = true;
                keep = Keep::Prune;
            }
        }
        keep
    }

    /// Returns whether a client that waits for an answer to a datagram gets none: its messages are
    /// lost, and no other host can send to it.
    fn hears_nobody(&self) -> bool {
        !self.options.is_stream && !self.counts_later() && self.options.is_alone
    }

    /// Returns whether messages also count after the client has heard from the server.
    fn counts_later(&self) -> bool {
        self.options.ever || self.options.number.is_some()
    }

    /// Records the size of the greeting: what the server sends over a stream, unless it answers
    /// data of a client or the end of an empty stream.
    fn note_greeting(&mut self, view: &StateView<'_, '_>, packet: &Packet) {
        let is_end =
            |other: &Packet| other.from == packet.to && matches!(other.kind, PacketKind::Fin);
        let is_sent =
            |other: &Packet| other.from == packet.to && matches!(other.kind, PacketKind::Data(_));
        if view
            .delivered()
            .any(|other| is_end(other) || is_sent(other))
        {
            return;
        }
        let is_greeting = |other: &&Packet| {
            other.from.port() == self.options.port
                && other.to == packet.to
                && matches!(other.kind, PacketKind::Data(_))
        };
        let before = view.sent().filter(is_greeting);
        let all = before.chain(std::iter::once(packet).filter(is_greeting));
        let bytes = all.filter_map(Packet::payload).map(|payload| payload.len());
        self.greeting = self.greeting.max(bytes.sum());
    }

    fn is_client(&self, view: &StateView<'_, '_>) -> bool {
        view.host() == self.options.client
    }
}

impl Listener for Clients {
    fn finding(&mut self, _finding: &WorldFinding) {}

    fn tick(&mut self, _explorer: &Explorer<'_>) {}

    fn forked(&mut self, child: &mut StateView<'_, '_>) -> Keep {
        self.consider(child)
    }

    fn narrowed(&mut self, state: &mut StateView<'_, '_>) -> Keep {
        self.consider(state)
    }

    fn keeps_sent(&self) -> bool {
        true
    }

    fn wants_waits(&self) -> bool {
        self.options.is_stream || self.hears_nobody()
    }

    fn ends_world(&self, host: HostIndex) -> bool {
        // The server may run forever.
        host == self.options.client
    }

    fn sent(&mut self, sender: &mut StateView<'_, '_>, packet: &Packet, to: &[HostIndex]) -> Keep {
        if self.options.is_stream && sender.host() == self.options.server {
            self.note_greeting(sender, packet);
        }
        let is_message = self.is_client(sender) && to.contains(&self.options.server);
        if !is_message || !self.is_to_server(packet) {
            return Keep::Yes;
        }
        match packet.kind {
            PacketKind::Fin => self.ends_bursts(sender, Some(packet.from)),
            PacketKind::Data(_) if self.counts_later() => Keep::Yes,
            PacketKind::Data(_) => Keep::Lose,
            _ => self.datagram(sender, packet),
        }
    }

    fn waits(&mut self, state: &mut StateView<'_, '_>) -> Keep {
        match self.is_client(state) {
            true if self.options.is_stream => self.ends_bursts(state, None),
            true if state.is_idle() && state.sent().any(|packet| self.is_to_server(packet)) => {
                Keep::Prune
            }
            _ => Keep::Yes,
        }
    }

    fn delivered(&mut self, receiver: &mut StateView<'_, '_>, packet: &Packet) -> Keep {
        let is_answer = self.is_client(receiver)
            && packet.from.port() == self.options.port
            && packet.payload().is_some();
        match is_answer && !self.counts_later() && !self.options.is_stream {
            // From here on, the server is in another state.
            true => Keep::Prune,
            false => Keep::Yes,
        }
    }

    fn ended(&mut self, state: &mut StateView<'_, '_>, _ending: &Ending) {
        if self.options.is_stream && self.is_client(state) {
            self.ends_bursts(state, None);
        }
    }
}
