//! A connection to a broker that breaks at a chosen operation, where its worker dies.

use everett_cluster::{
    Broker, Error, Hash, JobId, Key, Kind, Lease, MemoryBroker, Outcome, RunId, SharedMemory,
    Ticket,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// A connection that breaks for good at some operation, before or after the operation has taken
/// effect.
pub struct Mortal {
    broker: MemoryBroker,
    /// The number of operations that are left.
    pub breaths: u64,
    /// Whether it breaks after the last one has taken effect.
    pub after: bool,
    /// Whether it has broken.
    pub is_dead: bool,
    /// Whether it has a deliberate bug: it takes a job from the queue before it has handed out the
    /// rest of the job.
    pub is_hasty: bool,
}

impl Mortal {
    /// Creates a connection that does not break.
    pub fn new(shared: &SharedMemory) -> Mortal {
        Mortal {
            broker: shared.connect(),
            breaths: u64::MAX,
            after: false,
            is_dead: false,
            is_hasty: false,
        }
    }

    fn op<T>(
        &mut self,
        what: impl FnOnce(&mut MemoryBroker) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let dead = || Err(Error::Broker("dead".to_owned()));
        if self.is_dead {
            return dead();
        }
        self.breaths -= 1;
        self.is_dead = self.breaths == 0;
        match (self.is_dead, self.after) {
            (true, false) => dead(),
            (true, true) => what(&mut self.broker).and_then(|_| dead()),
            (false, _) => what(&mut self.broker),
        }
    }
}

impl Broker for Mortal {
    fn put(&mut self, hash: Hash, bytes: &[u8]) -> Result<(), Error> {
        self.op(|broker| broker.put(hash, bytes))
    }
    fn get(&mut self, hash: Hash) -> Result<Option<Vec<u8>>, Error> {
        self.op(|broker| broker.get(hash))
    }
    fn record(&mut self, key: &Key, value: &[u8]) -> Result<Vec<u8>, Error> {
        self.op(|broker| broker.record(key, value))
    }
    fn note(&mut self, key: &Key, value: &[u8]) -> Result<(), Error> {
        self.op(|broker| broker.note(key, value))
    }
    fn look_up(&mut self, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        self.op(|broker| broker.look_up(key))
    }
    fn list(&mut self, kind: Kind, run: &RunId) -> Result<Vec<(JobId, Vec<u8>)>, Error> {
        self.op(|broker| broker.list(kind, run))
    }
    fn runs(&mut self) -> Result<Vec<RunId>, Error> {
        self.op(Broker::runs)
    }
    fn remove_run(&mut self, run: &RunId) -> Result<(), Error> {
        self.op(|broker| broker.remove_run(run))
    }
    fn objects(&mut self) -> Result<Vec<Hash>, Error> {
        self.op(Broker::objects)
    }
    fn remove_objects(&mut self, hashes: &[Hash]) -> Result<(), Error> {
        self.op(|broker| broker.remove_objects(hashes))
    }
    fn publish(&mut self, ticket: &Ticket) -> Result<(), Error> {
        self.op(|broker| broker.publish(ticket))
    }
    fn lease(&mut self) -> Result<Option<Lease>, Error> {
        self.op(Broker::lease)
    }
    fn extend(&mut self, lease: &Lease) -> Result<(), Error> {
        self.op(|broker| broker.extend(lease))
    }
    fn acknowledge(&mut self, lease: &Lease) -> Result<bool, Error> {
        self.op(|broker| broker.acknowledge(lease))
    }
    fn release(&mut self, lease: &Lease, pause: Duration) -> Result<(), Error> {
        self.op(|broker| broker.release(lease, pause))
    }
    fn queued(&mut self, run: &RunId) -> Result<BTreeSet<JobId>, Error> {
        self.op(|broker| broker.queued(run))
    }
    fn waiting(&mut self) -> Result<u64, Error> {
        self.op(Broker::waiting)
    }
    fn now(&mut self) -> Result<Duration, Error> {
        self.op(|broker| broker.now())
    }
    fn lease_time(&self) -> Duration {
        self.broker.lease_time()
    }
    fn settle(&mut self, lease: &Lease, outcome: &Outcome) -> Result<(), Error> {
        if self.is_hasty {
            self.acknowledge(lease)?;
        }
        for ticket in outcome.tickets(&lease.ticket.run, &lease.ticket.job) {
            self.publish(&ticket)?;
        }
        if !self.is_hasty {
            self.acknowledge(lease)?;
        }
        Ok(())
    }
}
