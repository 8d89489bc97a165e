//! The broker of a simulated cluster: the in-process broker with measured costs. It serves one
//! request after another, so a request waits for earlier ones.

use everett_cluster::{Broker, Error, Hash, JobId, Key, Kind, Lease, MemoryBroker, RunId, Ticket};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Result<T> = std::result::Result<T, Error>;

/// The durations of operations in seconds.
#[derive(Copy, Clone, Debug)]
pub struct Costs {
    /// Time from request to answer, if the broker is idle.
    pub latency: f64,
    /// The part of that time for which the broker is busy: for reading, and for storing.
    pub read: f64,
    pub write: f64,
    /// The busy time for one of many records in a list.
    pub record: f64,
}

/// The traffic of one second.
#[derive(Copy, Clone, Debug, Default)]
pub struct Line {
    pub messages: u64,
    pub bytes: u64,
    /// Time for which the broker was busy, in seconds.
    pub busy: f64,
}

/// Duration of a slot in seconds.
const SLOT: f64 = 0.01;

/// The load of the broker.
pub struct Traffic {
    costs: Costs,
    /// The current time of the client.
    pub now: f64,
    /// The busy time of the broker in each slot. Requests of a worker are simulated at once, before
    /// those that others make in between, so there is no single queue.
    slots: Vec<f64>,
    pub lines: Vec<Line>,
}

impl Traffic {
    pub fn new(costs: Costs) -> Traffic {
        Traffic {
            costs,
            now: 0.0,
            slots: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Creates a connection whose requests take time.
    pub fn connect(traffic: &SharedTraffic, broker: MemoryBroker) -> Box<dyn Broker> {
        Box::new(Timed {
            broker,
            traffic: traffic.clone(),
        })
    }

    /// Sets the time at which a client starts to send requests.
    pub fn begin(&mut self, now: f64) {
        self.now = now;
    }

    fn serve(&mut self, messages: u64, bytes: usize, seconds: f64) {
        let at = self.now as usize;
        let (mut left, mut slot) = (seconds, (self.now / SLOT) as usize);
        loop {
            if self.slots.len() <= slot {
                self.slots.resize(slot + 1, 0.0);
            }
            let part = left.min(SLOT - self.slots[slot]);
            self.slots[slot] += part;
            self.line((slot as f64 * SLOT) as usize).busy += part;
            left -= part;
            if left <= 1e-12 {
                break;
            }
            slot += 1;
        }
        let begins = slot as f64 * SLOT;
        self.now = self.now.max(begins) + seconds.min(SLOT) + self.costs.latency;
        let line = self.line(at);
        line.messages += messages;
        line.bytes += bytes as u64;
    }

    fn line(&mut self, second: usize) -> &mut Line {
        if self.lines.len() <= second {
            self.lines.resize(second + 1, Line::default());
        }
        &mut self.lines[second]
    }

    fn read(&mut self, bytes: usize) {
        self.serve(1, bytes, self.costs.read);
    }

    fn write(&mut self, bytes: usize) {
        self.serve(1, bytes, self.costs.write);
    }
}

/// The load that a simulation and its connection share.
#[derive(Clone)]
pub struct SharedTraffic(Arc<Mutex<Traffic>>);

impl SharedTraffic {
    pub fn new(costs: Costs) -> SharedTraffic {
        SharedTraffic(Arc::new(Mutex::new(Traffic::new(costs))))
    }

    pub fn get(&self) -> MutexGuard<'_, Traffic> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Timed {
    broker: MemoryBroker,
    traffic: SharedTraffic,
}

/// The requests are those that the broker on NATS makes.
impl Broker for Timed {
    fn put(&mut self, hash: Hash, bytes: &[u8]) -> Result<()> {
        // NATS checks first whether the object exists.
        self.traffic.get().read(0);
        self.traffic.get().write(bytes.len());
        self.broker.put(hash, bytes)
    }
    fn get(&mut self, hash: Hash) -> Result<Option<Vec<u8>>> {
        let found = self.broker.get(hash)?;
        self.traffic.get().read(found.as_ref().map_or(0, Vec::len));
        Ok(found)
    }
    fn record(&mut self, key: &Key, value: &[u8]) -> Result<Vec<u8>> {
        self.traffic.get().write(value.len());
        self.broker.record(key, value)
    }
    fn note(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        self.traffic.get().write(value.len());
        self.broker.note(key, value)
    }
    fn look_up(&mut self, key: &Key) -> Result<Option<Vec<u8>>> {
        let found = self.broker.look_up(key)?;
        self.traffic.get().read(found.as_ref().map_or(0, Vec::len));
        Ok(found)
    }
    fn list(&mut self, kind: Kind, run: &RunId) -> Result<Vec<(JobId, Vec<u8>)>> {
        let found = self.broker.list(kind, run)?;
        let bytes = found.iter().map(|(_, value)| value.len()).sum();
        let mut traffic = self.traffic.get();
        // A consumer is created, and records arrive one after another.
        traffic.write(0);
        let seconds = traffic.costs.record * found.len() as f64;
        traffic.serve(found.len() as u64, bytes, seconds);
        Ok(found)
    }
    fn runs(&mut self) -> Result<Vec<RunId>> {
        self.traffic.get().read(0);
        self.broker.runs()
    }
    fn remove_run(&mut self, run: &RunId) -> Result<()> {
        self.broker.remove_run(run)
    }
    fn objects(&mut self) -> Result<Vec<Hash>> {
        self.broker.objects()
    }
    fn remove_objects(&mut self, hashes: &[Hash]) -> Result<()> {
        self.broker.remove_objects(hashes)
    }
    fn publish(&mut self, ticket: &Ticket) -> Result<()> {
        self.traffic.get().write(ticket.to_bytes().len());
        self.broker.publish(ticket)
    }
    fn lease(&mut self) -> Result<Option<Lease>> {
        let leased = self.broker.lease()?;
        match &leased {
            Some(lease) => self.traffic.get().write(lease.ticket.to_bytes().len()),
            None => self.traffic.get().read(0),
        }
        Ok(leased)
    }
    fn extend(&mut self, lease: &Lease) -> Result<()> {
        self.traffic.get().read(0);
        self.broker.extend(lease)
    }
    fn acknowledge(&mut self, lease: &Lease) -> Result<bool> {
        self.traffic.get().write(0);
        self.broker.acknowledge(lease)
    }
    fn release(&mut self, lease: &Lease, pause: Duration) -> Result<()> {
        self.traffic.get().write(0);
        self.broker.release(lease, pause)
    }
    fn queued(&mut self, run: &RunId) -> Result<BTreeSet<JobId>> {
        self.traffic.get().read(0);
        self.broker.queued(run)
    }
    fn waiting(&mut self) -> Result<u64> {
        self.traffic.get().read(0);
        self.broker.waiting()
    }
    fn now(&mut self) -> Result<Duration> {
        self.broker.now()
    }
    fn lease_time(&self) -> Duration {
        self.broker.lease_time()
    }
}
