//! The log of what a host received, in a form that can be stored. The log and the host's own
//! answers determine its state, so a spilled state is rematerialised alone, without the states that
//! sent to it.

use everett_expr::codec::{self, DecodeError};
use everett_expr::{Arena, ExprId};
use everett_linux::{Datagram, Errno, Frame, HardwareAddress, Hops, IpHeader, Packet, PacketKind};
use everett_net::{FaultCounters, Faults, HostIndex};
use everett_vm::Buffer;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;

use crate::arrival::Arrival;
use crate::host::SimHost;
use crate::inbox::InboxClock;

/// An item that a host received from another one.
#[derive(Clone, Debug)]
pub struct Received {
    /// The position of the receiver's inbox at that time.
    pub when: InboxClock,
    /// The received item.
    pub what: Incoming,
}

/// The kinds of items that a host can receive from another one.
#[derive(Clone, Debug)]
pub enum Incoming {
    /// A packet in transit to the host.
    Packet(Arrival),
    /// An earlier host blocks or continues (see [`crate::Start`]).
    Blocking {
        /// The host that blocks or continues.
        from: HostIndex,
        /// Whether that host blocks.
        is_blocked: bool,
        /// The time at which it blocks or continues.
        now_ns: u64,
        /// Faults in the causal past of that host.
        known: Arc<FaultCounters>,
    },
}

impl Incoming {
    /// Returns all terms in the item.
    pub fn terms(&self) -> impl Iterator<Item = ExprId> + '_ {
        let packet = match self {
            Incoming::Packet(arrival) => Some(&arrival.packet),
            Incoming::Blocking { .. } => None,
        };
        packet.into_iter().flat_map(|packet| packet.terms())
    }
}

impl SimHost {
    /// Receives an item from another host.
    pub fn receive(&mut self, incoming: &Incoming, faults: &Faults) {
        match incoming {
            Incoming::Packet(arrival) => self.inbox.push(arrival.clone()),
            Incoming::Blocking {
                from,
                is_blocked,
                now_ns,
                known,
            } => self.notify(*from, *is_blocked, *now_ns, known, faults),
        }
    }
}

/// Stored items of a log, with the terms that they share.
#[derive(Clone, Serialize, Deserialize)]
pub struct StoredReceived {
    items: Vec<StoredItem>,
    /// The terms, encoded with [`codec`].
    #[serde(with = "crate::hex")]
    terms: Vec<u8>,
}

#[derive(Clone, Serialize, Deserialize)]
struct StoredItem {
    when: InboxClock,
    what: StoredIncoming,
}

#[derive(Clone, Serialize, Deserialize)]
enum StoredIncoming {
    Packet(Box<StoredArrival>),
    Blocking {
        from: HostIndex,
        is_blocked: bool,
        now_ns: u64,
        known: FaultCounters,
    },
}

#[derive(Clone, Serialize, Deserialize)]
struct StoredArrival {
    at_ns: u64,
    from: HostIndex,
    number: u64,
    sent_ns: u64,
    source: SocketAddr,
    target: SocketAddr,
    kind: StoredKind,
    decided: bool,
    host_faults_decided: bool,
    known: FaultCounters,
}

#[derive(Clone, Serialize, Deserialize)]
enum StoredKind {
    Syn(u64),
    SynAck(u64),
    WindowUpdate(u64),
    Unreachable(i32, StoredBytes),
    Established,
    Refused,
    Data(StoredBytes),
    Urgent(u64),
    Fin,
    Reset,
    /// The payload, remaining hops, and type of service.
    Datagram(StoredBytes, u8, u8),
    Frame(Box<StoredFrame>),
}

#[derive(Clone, Serialize, Deserialize)]
struct StoredFrame {
    hardware: Option<[HardwareAddress; 2]>,
    ethertype: u16,
    /// The bytes of the IP header, whether what it carries is sound, and the ports.
    ip: Option<(Vec<u8>, bool, (u16, u16))>,
    payload: StoredBytes,
}

#[derive(Clone, Serialize, Deserialize)]
struct StoredBytes {
    #[serde(with = "crate::hex")]
    bytes: Vec<u8>,
    /// The symbolic bytes: the position, the number of the term, and which byte of how many of that
    /// term it is.
    symbolic: Vec<(u32, u32, u8, u8)>,
}

impl StoredReceived {
    /// Stores items.
    pub fn new(items: &[Received], arena: &Arena) -> StoredReceived {
        let mut roots = Vec::new();
        let items = items.iter().map(|item| StoredItem {
            when: item.when,
            what: store(&item.what, &mut roots),
        });
        let items = items.collect();
        let terms = match roots.is_empty() {
            true => Vec::new(),
            false => codec::encode(arena, &roots),
        };
        StoredReceived { items, terms }
    }

    /// Restores the items.
    pub fn restore(self, arena: &mut Arena) -> Result<Vec<Received>, DecodeError> {
        let roots = match self.terms.is_empty() {
            true => Vec::new(),
            false => codec::decode(arena, &self.terms)?,
        };
        let items = self.items.into_iter().map(|item| Received {
            when: item.when,
            what: restore(item.what, &roots),
        });
        Ok(items.collect())
    }
}

/// Stores an item; `roots` collects its terms.
fn store(what: &Incoming, roots: &mut Vec<ExprId>) -> StoredIncoming {
    let arrival = match what {
        Incoming::Packet(arrival) => arrival,
        Incoming::Blocking {
            from,
            is_blocked,
            now_ns,
            known,
        } => {
            return StoredIncoming::Blocking {
                from: *from,
                is_blocked: *is_blocked,
                now_ns: *now_ns,
                known: (**known).clone(),
            };
        }
    };
    let packet = &arrival.packet;
    StoredIncoming::Packet(Box::new(StoredArrival {
        at_ns: arrival.at_ns,
        from: arrival.from,
        number: arrival.number,
        sent_ns: packet.clock_ns,
        source: packet.from,
        target: packet.to,
        kind: match &packet.kind {
            PacketKind::Syn { window } => StoredKind::Syn(*window),
            PacketKind::SynAck { window } => StoredKind::SynAck(*window),
            PacketKind::WindowUpdate { bytes } => StoredKind::WindowUpdate(*bytes),
            PacketKind::Unreachable { errno, quoted } => {
                StoredKind::Unreachable(errno.0, store_bytes(quoted, roots))
            }
            PacketKind::Frame(frame) => StoredKind::Frame(Box::new(StoredFrame {
                hardware: frame.hardware,
                ethertype: frame.ethertype,
                ip: frame
                    .ip
                    .as_ref()
                    .map(|ip| (ip.bytes.clone(), ip.is_sound, ip.ports)),
                payload: store_bytes(&frame.payload, roots),
            })),
            PacketKind::Established => StoredKind::Established,
            PacketKind::Refused => StoredKind::Refused,
            PacketKind::Data(bytes) => StoredKind::Data(store_bytes(bytes, roots)),
            PacketKind::Urgent { ahead } => StoredKind::Urgent(*ahead),
            PacketKind::Fin => StoredKind::Fin,
            PacketKind::Reset => StoredKind::Reset,
            PacketKind::Datagram(Datagram { bytes, hops }) => {
                StoredKind::Datagram(store_bytes(bytes, roots), hops.ttl, hops.tos)
            }
        },
        decided: arrival.decided,
        host_faults_decided: arrival.host_faults_decided,
        known: (*arrival.known).clone(),
    }))
}

/// Stores bytes; `roots` collects the terms of symbolic ones.
fn store_bytes(buffer: &Buffer, roots: &mut Vec<ExprId>) -> StoredBytes {
    let mut symbolic = Vec::new();
    for (at, term, index, of) in buffer.symbolic_bytes() {
        // The bytes of a word are adjacent.
        if roots.last() != Some(&term) {
            roots.push(term);
        }
        symbolic.push((at as u32, roots.len() as u32 - 1, index, of));
    }
    StoredBytes {
        bytes: buffer.bytes().to_vec(),
        symbolic,
    }
}

/// Restores an item with these terms.
fn restore(what: StoredIncoming, roots: &[ExprId]) -> Incoming {
    let stored = match what {
        StoredIncoming::Packet(stored) => *stored,
        StoredIncoming::Blocking {
            from,
            is_blocked,
            now_ns,
            known,
        } => {
            return Incoming::Blocking {
                from,
                is_blocked,
                now_ns,
                known: Arc::new(known),
            };
        }
    };
    let packet = Packet {
        clock_ns: stored.sent_ns,
        from: stored.source,
        to: stored.target,
        kind: match stored.kind {
            StoredKind::Syn(window) => PacketKind::Syn { window },
            StoredKind::SynAck(window) => PacketKind::SynAck { window },
            StoredKind::WindowUpdate(bytes) => PacketKind::WindowUpdate { bytes },
            StoredKind::Unreachable(errno, quoted) => PacketKind::Unreachable {
                errno: Errno(errno),
                quoted: restore_bytes(&quoted, roots),
            },
            StoredKind::Frame(stored) => PacketKind::Frame(Box::new(Frame {
                hardware: stored.hardware,
                ethertype: stored.ethertype,
                ip: stored.ip.map(|(bytes, is_sound, ports)| IpHeader {
                    bytes,
                    is_sound,
                    ports,
                }),
                payload: restore_bytes(&stored.payload, roots),
            })),
            StoredKind::Established => PacketKind::Established,
            StoredKind::Refused => PacketKind::Refused,
            StoredKind::Data(bytes) => PacketKind::Data(restore_bytes(&bytes, roots)),
            StoredKind::Urgent(ahead) => PacketKind::Urgent { ahead },
            StoredKind::Fin => PacketKind::Fin,
            StoredKind::Reset => PacketKind::Reset,
            StoredKind::Datagram(bytes, ttl, tos) => PacketKind::Datagram(Datagram {
                bytes: restore_bytes(&bytes, roots),
                hops: Hops { ttl, tos },
            }),
        },
    };
    Incoming::Packet(Arrival {
        at_ns: stored.at_ns,
        from: stored.from,
        number: stored.number,
        packet: Arc::new(packet),
        decided: stored.decided,
        held_behind: 0,
        held_since: None,
        retransmissions: 0,
        host_faults_decided: stored.host_faults_decided,
        known: Arc::new(stored.known),
        wins_race: false,
    })
}

/// Restores bytes with these terms.
fn restore_bytes(stored: &StoredBytes, roots: &[ExprId]) -> Buffer {
    let mut buffer = Buffer::with_bytes(&stored.bytes, stored.bytes.len());
    for (at, root, index, of) in &stored.symbolic {
        // The numbers come from a file, which may be damaged.
        if let Some(term) = roots.get(*root as usize) {
            buffer.set_symbolic(*at as usize, *term, *index, *of);
        }
    }
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_vm::Value;

    #[test]
    fn what_is_stored_comes_back_in_another_arena() {
        let (mut here, mut there) = (Arena::new(), Arena::new());
        let array = here.array(0, "a:x", 4);
        let (low, high) = (here.read(array, 0), here.read(array, 1));
        let word = here.concat(high, low);
        let mut bytes = Buffer::with_bytes(b"abcdef", 6);
        let value = Value {
            bits: 0,
            term: Some(word),
        };
        bytes.store(2, 2, value);
        let packet = Packet {
            clock_ns: 5,
            from: ([10, 0, 0, 1], 70).into(),
            to: ([10, 0, 0, 2], 80).into(),
            kind: PacketKind::Datagram(bytes.clone().into()),
        };
        let when = InboxClock {
            removed: 3,
            races: 1,
        };
        let arrival = Arrival {
            at_ns: 9,
            from: HostIndex(1),
            number: 7,
            packet: Arc::new(packet),
            decided: true,
            held_behind: 0,
            held_since: None,
            retransmissions: 0,
            host_faults_decided: false,
            known: Arc::default(),
            wins_race: false,
        };
        let received = [Received {
            when,
            what: Incoming::Packet(arrival),
        }];
        let text = serde_json::to_vec(&StoredReceived::new(&received, &here)).expect("JSON");
        let stored: StoredReceived = serde_json::from_slice(&text).expect("the same");
        let back = stored.restore(&mut there).expect("terms");
        let [
            Received {
                when: after,
                what: Incoming::Packet(arrival),
            },
        ] = &back[..]
        else {
            panic!("one packet was stored");
        };
        assert_eq!(after, &when);
        assert_eq!(
            (arrival.at_ns, arrival.number, arrival.decided),
            (9, 7, true)
        );
        let payload = arrival.packet.payload().expect("it has one");
        let digest = |bytes: &Buffer, arena: &mut Arena| {
            let start = everett_expr::Digest128::new();
            bytes.digest(arena, start).finish()
        };
        assert_eq!(digest(payload, &mut there), digest(&bytes, &mut here));
        let places: Vec<_> = payload.symbolic_bytes().map(|one| (one.0, one.2)).collect();
        assert_eq!(places, [(2, 0), (3, 1)]);
    }
}
