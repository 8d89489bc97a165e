//! Packet timing: propagation latency, transmission time at a bandwidth, and queues.

use crate::topology::{Path, PortIndex, Topology};

/// When a packet arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// The packet arrives at this time.
    At(u64),
    /// The packet never arrives, because the queue of this port was full.
    Dropped(PortIndex),
}

/// The queues of ports. With one per sending host, hosts are independent (packets of different
/// hosts do not share queues at routers); with one per world, they share them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct LinkState {
    /// The queues, sorted by port; only ports with a non-empty queue.
    queues: Vec<Queue>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Queue {
    port: PortIndex,
    /// Departure times of the queued packets, in order.
    departures_ns: Vec<u64>,
}

impl LinkState {
    /// Returns whether all queues are empty.
    pub fn is_idle(&self) -> bool {
        self.queues.is_empty()
    }

    /// Returns the number of packets in the queue of a port, including the one in transmission.
    pub fn waiting(&self, port: PortIndex) -> usize {
        match self.position(port) {
            Ok(at) => self.queues[at].departures_ns.len(),
            Err(_) => 0,
        }
    }

    fn position(&self, port: PortIndex) -> Result<usize, usize> {
        self.queues.binary_search_by_key(&port, |queue| queue.port)
    }

    /// Removes the packets that have departed by this time.
    fn advance(&mut self, port: PortIndex, now_ns: u64) {
        if let Ok(at) = self.position(port) {
            let departures = &mut self.queues[at].departures_ns;
            departures.retain(|departure| *departure > now_ns);
            if departures.is_empty() {
                self.queues.remove(at);
            }
        }
    }

    /// Enqueues a packet with this transmission time. Returns its departure time; `None` if the
    /// queue is full.
    fn enqueue(
        &mut self,
        port: PortIndex,
        now_ns: u64,
        duration_ns: u64,
        most_waiting: Option<u32>,
    ) -> Option<u64> {
        self.advance(port, now_ns);
        // The packet in transmission does not occupy the queue.
        let waiting = self.waiting(port).saturating_sub(1);
        if self.waiting(port) > 0 && most_waiting.is_some_and(|most| waiting >= most as usize) {
            return None;
        }
        let at = match self.position(port) {
            Ok(at) => at,
            Err(at) => {
                let departures_ns = Vec::new();
                self.queues.insert(
                    at,
                    Queue {
                        port,
                        departures_ns,
                    },
                );
                at
            }
        };
        let departures = &mut self.queues[at].departures_ns;
        let begin_ns = departures.last().map_or(now_ns, |last| (*last).max(now_ns));
        let gone_ns = begin_ns.saturating_add(duration_ns);
        departures.push(gone_ns);
        Some(gone_ns)
    }
}

/// Returns the transmission time at a bandwidth, rounded up.
fn duration_ns(bytes: u64, bits_per_second: u64) -> u64 {
    let bits = u128::from(bytes) * 8;
    let ns = (bits * 1_000_000_000).div_ceil(u128::from(bits_per_second.max(1)));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

impl Topology {
    /// Returns the arrival time of a packet of this size (with headers) that is sent now.
    pub fn arrival_ns(
        &self,
        path: &Path,
        sent_ns: u64,
        bytes: u64,
        links: &mut LinkState,
    ) -> Arrival {
        let mut now_ns = sent_ns;
        for hop in &path.hops {
            let network = self.network(hop.network);
            if let Some(bandwidth) = network.bandwidth_bits_per_s {
                let duration = duration_ns(bytes, bandwidth);
                match links.enqueue(hop.port, now_ns, duration, network.queue_packets) {
                    Some(gone_ns) => now_ns = gone_ns,
                    None => return Arrival::Dropped(hop.port),
                }
            }
            now_ns = now_ns.saturating_add(network.latency_ns);
        }
        Arrival::At(now_ns)
    }
}
