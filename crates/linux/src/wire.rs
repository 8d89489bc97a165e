//! The network interface of a host: packets to and from other hosts. This module must not know the
//! network between them.

use everett_expr::Arena;
use std::net::SocketAddr;
use triomphe::Arc;

use crate::errno::Errno;
use crate::faults::InjectedFailure;
use crate::frames::{Frame, protocol};
use crate::host::{ExposedData, Host, HostState, Origins};
use crate::ids::ObjectId;
use crate::kernel::Kernel;
use crate::numbers;
use crate::objects::event;
use crate::objects::socket::{ETHERNET, Socket, SocketType};
use crate::outcome::HostExit;
use crate::packets::{Packet, PacketKind};

impl Kernel<'_, '_> {
    /// Stops before a system call to ask the driver, once for each call.
    /// Everett's own calls do not stop.
    pub(crate) fn stop_before_call(&mut self, number: u64) -> bool {
        let is_asked = self.task().stop_asked || self.host.setup.is_before_start();
        if !self.host.options.stops_at_calls || is_asked {
            return false;
        }
        let Some(name) = numbers::name(number) else {
            return false;
        };
        self.task_mut().stop_asked = true;
        self.host.wire.call = Some(name);
        true
    }
}

impl HostState {
    /// Retries connection requests whose delay is over.
    pub(crate) fn retry_requests(&mut self) {
        while let Some(at) = self
            .wire
            .retries
            .iter()
            .position(|(at, _)| *at <= self.clock_ns)
        {
            let (_, packet) = self.wire.retries.remove(at);
            self.segment_arrives(&packet);
        }
    }

    /// Sends a packet to another host.
    pub(crate) fn transmit(&mut self, from: SocketAddr, to: SocketAddr, kind: PacketKind) {
        if self.has_onlookers() {
            let datagram = match &kind {
                PacketKind::Datagram(datagram) => Frame::udp(from, to, datagram),
                PacketKind::Frame(frame) => Some((**frame).clone()),
                PacketKind::Unreachable { .. } => None,
                _ => {
                    self.refuse_to_show_segments();
                    None
                }
            };
            if let Some(frame) = datagram {
                self.tap(&frame, ETHERNET, true, None);
            }
        }
        self.transmit_quietly(from, to, kind);
    }

    /// Sends a packet that packet sockets have already seen.
    pub(crate) fn transmit_quietly(&mut self, from: SocketAddr, to: SocketAddr, kind: PacketKind) {
        self.log_packet(from, to, kind.clone());
        self.wire.sent.push(Packet {
            clock_ns: self.clock_ns,
            from,
            to,
            kind,
        });
    }
}

impl Host {
    /// Sets the horizon: the clock does not pass it, except within a system call.
    pub fn set_horizon(&mut self, horizon_ns: u64) {
        self.state.wire.horizon_ns = horizon_ns;
    }

    /// Sets whether the host returns whenever it waits for other hosts, even if its
    /// clock could jump to a deadline.
    pub fn stop_at_waits(&mut self, stops: bool) {
        self.state.wire.stops_at_waits = stops;
    }

    /// Sets how many deadlines the host may wait for; at the last one
    /// it returns, as at the horizon.
    pub fn set_waits_left(&mut self, waits: u64) {
        self.state.wire.waits_left = waits;
    }

    /// How many deadlines the host may still wait for.
    pub fn waits_left(&self) -> u64 {
        self.state.wire.waits_left
    }

    /// The reason why the driver must act before the host continues: packets, exposed data, or the
    /// horizon.
    pub fn interruption(&self) -> Option<HostExit> {
        self.state.wire.exit(self.state.clock_ns)
    }

    /// Whether the host has sent packets that the driver has not taken.
    pub fn has_sent(&self) -> bool {
        !self.state.wire.sent.is_empty()
    }

    /// Takes the packets that the host has sent since the last call.
    pub fn take_sent(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.state.wire.sent)
    }

    /// Number of packets that the host has sent since the driver last took them.
    pub fn sent_count(&self) -> usize {
        self.state.wire.sent.len()
    }

    /// Returns the send time of the oldest packet that the driver has not taken.
    pub fn sent_ns(&self) -> Option<u64> {
        let sent = self.state.wire.sent.iter();
        sent.map(|packet| packet.clock_ns).min()
    }

    /// Takes the system call that is about to be made.
    pub fn take_call(&mut self) -> Option<&'static str> {
        self.state.wire.call.take()
    }

    /// Takes the exposed data, which then counts as seen.
    pub fn take_exposed(&mut self) -> ExposedData {
        let wire = &mut self.state.wire;
        wire.exposed = false;
        wire.just_shown = std::mem::take(&mut wire.shown);
        self.state.exposed.clone()
    }

    /// Whether programs have exposed data under this state and key, changed or not, between the
    /// last two calls of [`Host::take_exposed`].
    pub fn has_just_exposed(&self, state: &str, key: &str) -> bool {
        let mut shown = self.state.wire.just_shown.iter();
        shown.any(|(of, name)| of == state && name == key)
    }

    /// Data that the programs of the host expose to invariants.
    pub fn exposed(&self) -> &ExposedData {
        &self.state.exposed
    }

    /// The origins of exposed data, if writes to memory are logged.
    pub fn origins(&self) -> &Origins {
        &self.state.origins
    }

    /// Failures that were injected, in order.
    pub fn injected_failures(&self) -> &[InjectedFailure] {
        &self.state.faults.injected
    }

    /// Shares equal exposed data with another host state, to save memory.
    pub fn share_exposed(&mut self, same: ExposedData) {
        debug_assert!(same == self.state.exposed, "the exposed data differs");
        self.state.exposed = same;
    }

    /// Sets how often the host was restarted: its random bytes and
    /// ephemeral ports differ each time.
    pub fn set_restart_count(&mut self, times: u32) {
        if times > 0 {
            self.state.random ^= u64::from(times).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let skipped = self.state.options.skipped_ports;
            self.state.network.skip_ports(skipped.saturating_add(times));
        }
    }

    /// Advances the clock to a time, unless it is already later.
    pub fn pass_time(&mut self, to_ns: u64) {
        self.state.clock_ns = self.state.clock_ns.max(to_ns);
    }

    /// Receives a packet from another host.
    pub fn receive(&mut self, arena: &mut Arena, packet: &Packet) {
        let state = &mut self.state;
        let ends = (packet.from, packet.to);
        state.log_packet(packet.from, packet.to, packet.kind.clone());
        match &packet.kind {
            PacketKind::Datagram(datagram) => {
                state.show_datagram(ends, datagram, ETHERNET);
                state.datagram_arrives(arena, ends, datagram, ETHERNET);
            }
            PacketKind::Frame(frame) => state.frame_arrives(arena, frame, ETHERNET),
            PacketKind::Unreachable { errno, quoted } => {
                state.unreachable_arrives(arena, ends, *errno, quoted, ETHERNET);
            }
            _ => {
                if state.has_onlookers() {
                    state.refuse_to_show_segments();
                }
                state.segment_arrives(packet);
            }
        }
    }
}

impl HostState {
    /// Records that raw and packet sockets do not see TCP segments, which have no bytes of their
    /// own in the model.
    fn refuse_to_show_segments(&mut self) {
        let sees_tcp = |socket: &Socket| match socket.kind {
            SocketType::Raw if socket.is_raw() => socket.protocol == u32::from(protocol::TCP),
            _ => socket.is_packet(),
        };
        let is_missed = self.sockets().any(|(_, socket)| sees_tcp(socket));
        if is_missed {
            self.note_refusal("recvfrom", "TCP segments at raw and packet sockets");
        }
    }

    /// Reports a delivery failure to the socket that is connected to the destination.
    pub(crate) fn report_unreachable(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        errno: Errno,
    ) {
        let found = self.sockets().find(|(_, socket)| {
            (socket.is_udp() || socket.is_tcp())
                && socket
                    .local
                    .internet()
                    .is_some_and(|own| own.port() == local.port())
                && socket.remote.internet() == Some(remote)
        });
        let Some((id, is_tcp)) = found.map(|(id, socket)| (id, socket.is_tcp())) else {
            return;
        };
        if is_tcp {
            return self.refuse_remote(id, errno);
        }
        if let Some(socket) = self.socket_mut(id) {
            socket.error = Some(errno);
        }
        self.announce(id, event::ERROR);
    }
}

impl HostState {
    /// Logs a packet, if packets are logged.
    pub(crate) fn log_packet(&mut self, from: SocketAddr, to: SocketAddr, kind: PacketKind) {
        let clock_ns = self.clock_ns;
        if let Some(packets) = &mut self.packets {
            Arc::make_mut(packets).push(Packet {
                clock_ns,
                from,
                to,
                kind,
            });
        }
    }

    /// Logs a packet that a TCP socket sends to its peer.
    pub(crate) fn log_sent(&mut self, socket: ObjectId, kind: PacketKind) {
        if let Some((local, remote)) = self.ends_of(socket) {
            self.log_packet(local, remote, kind);
        }
    }

    /// Logs a packet that a TCP socket receives from its peer.
    pub(crate) fn log_received(&mut self, socket: ObjectId, kind: PacketKind) {
        if let Some((local, remote)) = self.ends_of(socket) {
            self.log_packet(remote, local, kind);
        }
    }

    fn ends_of(&self, socket: ObjectId) -> Option<(SocketAddr, SocketAddr)> {
        self.packets.as_ref()?;
        let socket = self.socket(socket).filter(|socket| socket.is_tcp())?;
        socket.local.internet().zip(socket.remote.internet())
    }
}

impl Host {
    /// The log of packets; empty if packets are not logged.
    pub fn packets(&self) -> &[Packet] {
        self.state.packets.as_deref().map_or(&[], Vec::as_slice)
    }
}
