//! The end of the wire at a host: what it sends to other hosts, and what comes from them. What is between, and who else there
//! is, others know.

use std::net::SocketAddr;

use crate::errno::Errno;
use crate::host::{ExposedData, Host, HostExit, HostState};
use crate::kernel::Kernel;
use crate::numbers;
use crate::objects::event;
use crate::packets::{Packet, PacketKind};

/// What a host knows of the wire.
#[derive(Clone, Debug)]
pub struct Wire {
    /// There are other hosts.
    pub is_networked: bool,
    /// The clock may go so far: something may arrive then.
    horizon_ns: u64,
    /// Whoever runs the host wants to know when it waits, also where it could go on by itself later.
    pub(crate) stops_at_waits: bool,
    /// What is to be sent.
    sent: Vec<Packet>,
    /// Data that checks look at has changed, and nobody knows yet.
    exposed: bool,
    /// The system call that is about to be made, and nobody knows yet.
    call: Option<&'static str>,
    /// Requests for connections that there was no room for, and when they come again.
    again: Vec<(u64, Packet)>,
}

/// How long a request for a connection waits before it is made again.
const AGAIN_NS: u64 = 1_000_000_000;

impl Wire {
    /// The wire of a host at its start.
    pub fn new(is_networked: bool) -> Wire {
        Wire {
            is_networked,
            horizon_ns: u64::MAX,
            stops_at_waits: false,
            sent: Vec::new(),
            exposed: false,
            call: None,
            again: Vec::new(),
        }
    }

    /// Whoever runs the host says anew how far its clock may go.
    pub(crate) fn end_horizon(&mut self) {
        self.horizon_ns = 0;
    }

    /// Data that checks look at has changed.
    pub(crate) fn note_exposed(&mut self) {
        self.exposed = self.is_networked;
    }

    /// A request for a connection comes again.
    pub(crate) fn ask_again(&mut self, clock_ns: u64, packet: Packet) {
        self.again.push((clock_ns.saturating_add(AGAIN_NS), packet));
    }

    /// When the next of them comes.
    pub(crate) fn next_again(&self) -> Option<u64> {
        self.again.iter().map(|(at, _)| *at).min()
    }

    /// Whoever runs the host must do something before it goes on.
    pub(crate) fn interrupts(&self, clock_ns: u64) -> bool {
        self.exposed || self.call.is_some() || !self.sent.is_empty() || clock_ns > self.horizon_ns
    }

    /// What.
    pub(crate) fn exit(&self, clock_ns: u64) -> Option<HostExit> {
        if self.exposed {
            Some(HostExit::Exposed)
        } else if let Some(name) = self.call {
            Some(HostExit::AtCall(name))
        } else if !self.sent.is_empty() {
            Some(HostExit::Sent)
        } else {
            (clock_ns > self.horizon_ns).then_some(HostExit::Horizon)
        }
    }

    /// The clock may not go so far yet.
    pub(crate) fn is_beyond(&self, time_ns: u64) -> bool {
        time_ns > self.horizon_ns
    }
}

impl Kernel<'_, '_> {
    /// Whoever runs the host is to be asked before this system call is made. Calls that only Everett has are no moments.
    pub(crate) fn must_stop(&mut self, number: u64) -> bool {
        let is_asked = self.task().stop_asked || self.host.setup.leads_to_begin();
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
    /// Requests for connections whose time has come are made again.
    pub(crate) fn repeat_requests(&mut self) {
        while let Some(at) = self
            .wire
            .again
            .iter()
            .position(|(at, _)| *at <= self.clock_ns)
        {
            let (_, packet) = self.wire.again.remove(at);
            self.segment_arrives(&packet);
        }
    }

    /// Something for another host.
    pub(crate) fn transmit(&mut self, from: SocketAddr, to: SocketAddr, kind: PacketKind) {
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
    /// The clock goes no further than this, except in the midst of a system call.
    pub fn set_horizon(&mut self, horizon_ns: u64) {
        self.state.wire.horizon_ns = horizon_ns;
    }

    /// Whether the host comes back whenever it waits for what others send, although its clock might jump.
    pub fn stop_at_waits(&mut self, stops: bool) {
        self.state.wire.stops_at_waits = stops;
    }

    /// What must be done before the host goes on: something was sent or exposed, or it has come to its horizon.
    pub fn interruption(&self) -> Option<HostExit> {
        self.state.wire.exit(self.state.clock_ns)
    }

    /// What the host has sent to others since the last time.
    pub fn take_sent(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.state.wire.sent)
    }

    /// The system call that is about to be made; it counts as known.
    pub fn take_call(&mut self) -> Option<&'static str> {
        self.state.wire.call.take()
    }

    /// Data that the programs of the host show to checks; it counts as seen.
    pub fn take_exposed(&mut self) -> ExposedData {
        self.state.wire.exposed = false;
        self.state.exposed.clone()
    }

    /// Data that the programs of the host show to checks.
    pub fn exposed(&self) -> &ExposedData {
        &self.state.exposed
    }

    /// Lets the host share what it shows with others that show the same.
    pub fn share_exposed(&mut self, same: ExposedData) {
        debug_assert!(same == self.state.exposed, "others show something else");
        self.state.exposed = same;
    }

    /// It was switched off so often before: random bytes and the ports that it gives are others than the last time.
    pub fn has_restarted(&mut self, times: u32) {
        if times > 0 {
            self.state.random ^= u64::from(times).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.state.network.skip_ports(times);
        }
    }

    /// Lets the clock jump on to a time, unless it is there already.
    pub fn pass_time(&mut self, to_ns: u64) {
        self.state.clock_ns = self.state.clock_ns.max(to_ns);
    }

    /// Something arrives from another host.
    pub fn receive(&mut self, packet: &Packet) {
        let state = &mut self.state;
        state.log_packet(packet.from, packet.to, packet.kind.clone());
        match &packet.kind {
            PacketKind::Datagram(bytes) => {
                state.datagram_arrives(packet.from, packet.to, bytes);
            }
            PacketKind::Unreachable(errno) => {
                state.learn_unreachable(packet.to, packet.from, *errno);
            }
            _ => state.segment_arrives(packet),
        }
    }
}

impl HostState {
    /// A datagram could not be delivered; a socket that is connected to where it went learns it.
    fn learn_unreachable(&mut self, local: SocketAddr, remote: SocketAddr, errno: Errno) {
        let found = self.sockets().find(|(_, socket)| {
            socket
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
