//! A broker inside the process, for tests and for programs that embed a cluster. Its clock is
//! logical: a lease lasts a number of broker operations, so nothing depends on real time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::broker::{Broker, JobId, Key, Kind, Lease, RunId, Ticket};
use crate::error::Result;
use crate::hash::Hash;

/// A job that was handed out.
struct Leased {
    ticket: Ticket,
    delivery: u64,
    /// The time at which the job is handed out again.
    until: u64,
}

/// The contents of a broker.
#[derive(Default)]
struct Stored {
    objects: BTreeMap<Hash, Vec<u8>>,
    records: BTreeMap<Key, Vec<u8>>,
    waiting: VecDeque<(Ticket, u64)>,
    leased: BTreeMap<(RunId, JobId), Leased>,
    now: u64,
    /// A lower bound of the time at which a lease expires.
    soonest: u64,
    /// Whether the clock is that of a simulation, which operations do not advance.
    is_manual: bool,
    bytes: u64,
    /// The time for limits of runs, which no operation advances.
    time: Duration,
}

/// A broker that several workers of a process share.
#[derive(Clone)]
pub struct SharedMemory {
    stored: Arc<Mutex<Stored>>,
    /// Duration of a lease, in operations.
    lease: u64,
}

impl SharedMemory {
    /// Creates an empty broker whose leases last this number of operations.
    pub fn new(lease: u64) -> SharedMemory {
        SharedMemory {
            stored: Arc::default(),
            lease,
        }
    }

    /// Creates an empty broker with a clock that [`SharedMemory::advance_to`] advances; leases last
    /// `lease` of its units.
    pub fn with_clock(lease: u64) -> SharedMemory {
        let shared = SharedMemory::new(lease);
        shared.stored().is_manual = true;
        shared
    }

    /// Sets the clock, which never goes back.
    pub fn advance_to(&self, now: u64) {
        let mut stored = self.stored();
        stored.now = stored.now.max(now);
        stored.expire();
    }

    /// Creates a connection to the broker.
    pub fn connect(&self) -> MemoryBroker {
        MemoryBroker {
            shared: self.clone(),
        }
    }

    fn stored(&self) -> MutexGuard<'_, Stored> {
        // Every change is a single operation, so a panic leaves the contents consistent.
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Expires all leases.
    pub fn expire_leases(&self) {
        let mut stored = self.stored();
        stored.now += self.lease;
        stored.expire();
    }

    /// Lets time pass for runs that have a time limit.
    pub fn pass_time(&self, time: Duration) {
        self.stored().time += time;
    }

    /// Hands out all leased jobs again, to simulate duplicated deliveries.
    pub fn deliver_again(&self) {
        let mut stored = self.stored();
        let again = stored.leased.values();
        let again: Vec<_> = again
            .map(|leased| (leased.ticket.clone(), leased.delivery))
            .collect();
        stored.waiting.extend(again);
    }

    /// Drops all waiting jobs, which a broker must not do. Records stay.
    pub fn lose_queue(&self) {
        self.stored().waiting.clear();
    }

    /// Loses a record, as a server may that did not write it to its disk before a loss of power.
    pub fn lose_record(&self, key: &Key) {
        self.stored().records.remove(key);
    }

    /// Returns the size of objects and records that were sent, in bytes.
    pub fn bytes_sent(&self) -> u64 {
        self.stored().bytes
    }
}

impl Stored {
    fn expire(&mut self) {
        let now = self.now;
        if now < self.soonest {
            return;
        }
        let over: Vec<_> = self
            .leased
            .iter()
            .filter(|(_, leased)| leased.until <= now)
            .map(|(name, _)| name.clone())
            .collect();
        for name in over {
            if let Some(leased) = self.leased.remove(&name) {
                self.waiting.push_back((leased.ticket, leased.delivery));
            }
        }
        let left = self.leased.values().map(|leased| leased.until);
        self.soonest = left.min().unwrap_or(u64::MAX);
    }

    /// Returns whether the lease is the newest of its job.
    fn is_current(&self, lease: &Lease) -> bool {
        let name = (lease.ticket.run.clone(), lease.handed.clone());
        let leased = self.leased.get(&name);
        leased.is_some_and(|leased| leased.delivery == lease.delivery)
    }
}

/// A connection to a broker in the process.
pub struct MemoryBroker {
    shared: SharedMemory,
}

impl MemoryBroker {
    fn step(&self) -> MutexGuard<'_, Stored> {
        let mut stored = self.shared.stored();
        if !stored.is_manual {
            stored.now += 1;
        }
        stored.expire();
        stored
    }
}

impl Broker for MemoryBroker {
    fn put(&mut self, hash: Hash, bytes: &[u8]) -> Result<()> {
        let mut stored = self.step();
        stored.bytes += bytes.len() as u64;
        stored.objects.insert(hash, bytes.to_vec());
        Ok(())
    }

    fn get(&mut self, hash: Hash) -> Result<Option<Vec<u8>>> {
        Ok(self.step().objects.get(&hash).cloned())
    }

    fn record(&mut self, key: &Key, value: &[u8]) -> Result<Vec<u8>> {
        let mut stored = self.step();
        stored.bytes += value.len() as u64;
        let record = stored.records.entry(key.clone());
        Ok(record.or_insert_with(|| value.to_vec()).clone())
    }

    fn note(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        self.step().records.insert(key.clone(), value.to_vec());
        Ok(())
    }

    fn look_up(&mut self, key: &Key) -> Result<Option<Vec<u8>>> {
        Ok(self.step().records.get(key).cloned())
    }

    fn list(&mut self, kind: Kind, run: &RunId) -> Result<Vec<(JobId, Vec<u8>)>> {
        let stored = self.step();
        let first = Key::of_run(kind, run);
        let records = stored.records.range(first..);
        let records = records.take_while(|(key, _)| key.kind == kind && key.run == *run);
        Ok(records
            .filter_map(|(key, value)| Some((key.job.clone()?, value.clone())))
            .collect())
    }

    fn runs(&mut self) -> Result<Vec<RunId>> {
        let stored = self.step();
        let runs = stored.records.keys().filter(|key| key.kind == Kind::Run);
        Ok(runs.map(|key| key.run.clone()).collect())
    }

    fn remove_run(&mut self, run: &RunId) -> Result<()> {
        let mut stored = self.step();
        let stays = |key: &Key| key.run != *run || key.kind == Kind::Cancelled;
        stored.records.retain(|key, _| stays(key));
        stored.waiting.retain(|(ticket, _)| ticket.run != *run);
        stored.leased.retain(|(leased, _), _| leased != run);
        Ok(())
    }

    fn objects(&mut self) -> Result<Vec<Hash>> {
        Ok(self.step().objects.keys().copied().collect())
    }

    fn remove_objects(&mut self, hashes: &[Hash]) -> Result<()> {
        let mut stored = self.step();
        for hash in hashes {
            stored.objects.remove(hash);
        }
        Ok(())
    }

    fn publish(&mut self, ticket: &Ticket) -> Result<()> {
        let mut stored = self.step();
        stored.waiting.push_back((ticket.clone(), 0));
        Ok(())
    }

    fn lease(&mut self) -> Result<Option<Lease>> {
        let lease = self.shared.lease;
        let mut stored = self.step();
        let Some((ticket, before)) = stored.waiting.pop_front() else {
            return Ok(None);
        };
        let name = (ticket.run.clone(), ticket.job.clone());
        let until = stored.now + lease;
        // Another worker may hold the job, too.
        let known = stored.leased.get(&name).map_or(0, |leased| leased.delivery);
        let delivery = before.max(known) + 1;
        let leased = Leased {
            ticket: ticket.clone(),
            delivery,
            until,
        };
        stored.soonest = stored.soonest.min(until);
        stored.leased.insert(name, leased);
        Ok(Some(Lease {
            handed: ticket.job.clone(),
            ticket,
            delivery,
            token: String::new(),
        }))
    }

    fn extend(&mut self, lease: &Lease) -> Result<()> {
        let lasts = self.shared.lease;
        let mut stored = self.step();
        if stored.is_current(lease) {
            let until = stored.now + lasts;
            let name = (lease.ticket.run.clone(), lease.handed.clone());
            if let Some(leased) = stored.leased.get_mut(&name) {
                leased.until = until;
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, lease: &Lease) -> Result<bool> {
        let mut stored = self.step();
        let is_current = stored.is_current(lease);
        if is_current {
            let name = (lease.ticket.run.clone(), lease.handed.clone());
            stored.leased.remove(&name);
        }
        Ok(is_current)
    }

    fn release(&mut self, lease: &Lease, pause: Duration) -> Result<()> {
        let mut stored = self.step();
        if stored.is_current(lease) && pause.is_zero() {
            let name = (lease.ticket.run.clone(), lease.handed.clone());
            if let Some(leased) = stored.leased.remove(&name) {
                stored.waiting.push_back((leased.ticket, leased.delivery));
            }
        }
        Ok(())
    }

    fn queued(&mut self, run: &RunId) -> Result<BTreeSet<JobId>> {
        let stored = self.step();
        let waiting = stored.waiting.iter();
        let waiting = waiting.map(|(ticket, _)| (&ticket.run, &ticket.job));
        let leased = stored.leased.keys().map(|(run, job)| (run, job));
        let all = waiting.chain(leased).filter(|(of, _)| *of == run);
        Ok(all.map(|(_, job)| job.clone()).collect())
    }

    fn waiting(&mut self) -> Result<u64> {
        Ok(self.step().waiting.len() as u64)
    }

    fn now(&mut self) -> Result<Duration> {
        Ok(self.shared.stored().time)
    }

    fn lease_time(&self) -> Duration {
        Duration::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett::WeightSum;

    #[test]
    fn late_acknowledgements_are_fenced() {
        let shared = SharedMemory::new(100);
        let mut broker = shared.connect();
        let run = RunId::parse("ab").unwrap();
        let ticket = Ticket::new(&run, "ab", Hash::of(b""), WeightSum::one());
        broker.publish(&ticket).unwrap();
        let first = broker.lease().unwrap().unwrap();
        assert_eq!((first.delivery, broker.lease().unwrap()), (1, None));
        shared.expire_leases();
        let second = broker.lease().unwrap().unwrap();
        assert_eq!(second.delivery, 2);
        assert!(!broker.acknowledge(&first).unwrap());
        broker.release(&first, Duration::ZERO).unwrap();
        assert_eq!(broker.waiting().unwrap(), 0);
        // A heartbeat keeps the lease; the heartbeat of another worker does not.
        for _ in 0..99 {
            broker.extend(&second).unwrap();
            broker.extend(&first).unwrap();
        }
        assert_eq!(broker.waiting().unwrap(), 0);
        assert!(broker.acknowledge(&second).unwrap());
        shared.expire_leases();
        assert_eq!(broker.lease().unwrap(), None);
    }

    #[test]
    fn the_first_record_counts() {
        let mut broker = SharedMemory::new(9).connect();
        let key = Key::of_run(Kind::Outcome, &RunId::parse("ab").unwrap());
        assert_eq!(broker.record(&key, b"one").unwrap(), b"one");
        assert_eq!(broker.record(&key, b"two").unwrap(), b"one");
        assert_eq!(broker.look_up(&key).unwrap().unwrap(), b"one");
    }
}
