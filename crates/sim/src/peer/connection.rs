//! A connection between a host and a live peer, on the peer's side.

use everett_linux::PacketKind;
use everett_vm::Buffer;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// Number of bytes that the peer's kernel accepts without having announced that they were read.
pub const WINDOW: u64 = 1 << 18;

/// The stage of a connection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Stage {
    /// One end has requested the connection.
    Asked,
    /// The connection is open.
    Open,
    /// The connection is closed.
    Closed,
}

/// A connection. A sender of datagrams counts as one that is always open.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The address of the peer's end.
    pub local: SocketAddr,
    /// The address of the host's end.
    pub remote: SocketAddr,
    /// The stage of the connection.
    pub stage: Stage,
    /// The number of bytes that the host still accepts.
    pub window: u64,
    /// Data of the peer that the host does not accept yet.
    unsent: VecDeque<Arc<[u8]>>,
    /// The number of received bytes that were not announced to the host as read.
    unannounced: u64,
    host_has_ended: bool,
    peer_has_ended: bool,
    /// Whether the host was notified that the peer has ended.
    has_told_end: bool,
}

impl Connection {
    /// Creates a connection between these ends.
    pub fn new(local: SocketAddr, remote: SocketAddr, stage: Stage, window: u64) -> Connection {
        Connection {
            local,
            remote,
            stage,
            window,
            unsent: VecDeque::new(),
            unannounced: 0,
            host_has_ended: false,
            peer_has_ended: false,
            has_told_end: false,
        }
    }

    /// Returns whether the connection is not closed.
    pub fn is_open(&self) -> bool {
        self.stage != Stage::Closed
    }

    /// Returns whether the host may still receive something from the peer.
    pub fn can_hear(&self) -> bool {
        self.is_open() && !self.peer_has_ended
    }

    /// Returns whether the host does not accept earlier data of the peer.
    pub fn is_full(&self) -> bool {
        self.is_open() && !self.unsent.is_empty()
    }

    /// Counts received bytes of the host. Returns how many more the host may send, once that is
    /// worth a packet.
    pub fn received(&mut self, bytes: u64) -> Option<u64> {
        self.unannounced += bytes;
        let is_worth = self.unannounced >= WINDOW / 2;
        is_worth.then(|| std::mem::take(&mut self.unannounced))
    }

    /// Queues data of the peer.
    pub fn say(&mut self, bytes: &[u8]) {
        self.unsent.push_back(bytes.into());
    }

    /// Marks that the host sends nothing more.
    pub fn host_ended(&mut self) {
        self.host_has_ended = true;
        self.close_if_over();
    }

    /// Marks that the peer sends nothing more.
    pub fn peer_ended(&mut self) {
        self.peer_has_ended = true;
    }

    fn close_if_over(&mut self) {
        if self.host_has_ended && self.has_told_end {
            self.stage = Stage::Closed;
        }
    }

    /// Returns the packets that can be sent now.
    pub fn flush(&mut self, is_udp: bool) -> Vec<PacketKind> {
        let mut kinds = Vec::new();
        if self.stage != Stage::Open {
            return kinds;
        }
        while let Some(bytes) = self.unsent.front() {
            let buffer = |bytes: &[u8]| Buffer::with_bytes(bytes, bytes.len());
            if is_udp {
                kinds.push(PacketKind::Datagram(buffer(bytes).into()));
                self.unsent.pop_front();
                continue;
            }
            let count = (bytes.len() as u64).min(self.window) as usize;
            if count == 0 {
                break;
            }
            self.window -= count as u64;
            kinds.push(PacketKind::Data(buffer(&bytes[..count])));
            let rest: Arc<[u8]> = bytes[count..].into();
            match rest.is_empty() {
                true => drop(self.unsent.pop_front()),
                false => self.unsent[0] = rest,
            }
        }
        if self.peer_has_ended && self.unsent.is_empty() && !self.has_told_end {
            self.has_told_end = true;
            kinds.push(PacketKind::Fin);
            self.close_if_over();
        }
        kinds
    }
}
