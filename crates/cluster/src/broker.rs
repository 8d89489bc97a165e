//! The interface of a broker: it stores objects by hash and small records by key, and hands out
//! jobs under leases.

use everett::{Budget, WeightSum, Work};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::hash::Hash;

/// Defines names that are part of keys: hexadecimal digits, which have no special meaning to any
/// broker.
macro_rules! names {
    ($($(#[$text:meta])* $name:ident,)*) => {$(
        $(#[$text])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
        pub struct $name(String);

        impl $name {
            /// Parses a name: at most 64 hexadecimal digits.
            pub fn parse(text: &str) -> Option<$name> {
                let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
                let is_one = (1..=64).contains(&text.len()) && text.bytes().all(is_digit);
                is_one.then(|| $name(text.to_owned()))
            }

            /// Returns the digits of the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'d> Deserialize<'d> for $name {
            fn deserialize<D: Deserializer<'d>>(from: D) -> Result<$name, D::Error> {
                let text = String::deserialize(from)?;
                $name::parse(&text).ok_or_else(|| D::Error::custom("a name has hexadecimal digits"))
            }
        }
    )*};
}

names! {
    /// The name of a run.
    RunId,
    /// The name of a job of a run: a digest of its parent's name and of its states, so that equal
    /// jobs get equal names.
    JobId,
}

impl RunId {
    /// Returns the name of a run: a digest of its manifest and a nonce.
    pub(crate) fn of(manifest: &[u8], nonce: &[u8]) -> RunId {
        let hash = Hash::of_parts(&[b"run", manifest, nonce]).to_string();
        RunId(hash[..16].to_owned())
    }
}

impl JobId {
    /// Returns the name of a job: a digest of its parent (a job, or the run for its first job) and
    /// its states.
    pub(crate) fn of(parent: &str, states: Hash) -> JobId {
        let hash = Hash::of_parts(&[b"job", parent.as_bytes(), states.to_string().as_bytes()]);
        JobId(hash.to_string()[..32].to_owned())
    }
}

/// The kind of a record.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// The description of a run: a [`crate::Manifest`].
    Run,
    /// The signature of a run by whoever submitted it.
    Signature,
    /// The outcome of a job: an [`Outcome`].
    Outcome,
    /// The worker that holds a job.
    Lease,
    /// The mark that the run was cancelled. It stays when the run is removed.
    Cancelled,
    /// The mark that the run is paused, or was and goes on.
    Paused,
    /// The time at which the first worker began with a run that has a time limit.
    Began,
    /// The mark that no job of the run may be explored any more.
    Over,
    /// The mark that a job is explored again, because the broker has lost what it came to.
    Again,
    /// Budget granted to jobs that have spent their share.
    Grant,
    /// The number of states of a worker: a [`crate::WorkerStatus`]. Advisory, as all following
    /// kinds.
    Worker,
    /// A request of the balancer to a worker.
    Request,
    /// The last decision of the balancer: a [`crate::Round`].
    Round,
    /// The coverage of all workers together: a bit for each segment.
    Coverage,
    /// Why a worker does not accept the run: a [`crate::Refusal`].
    Refused,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 15] = [
        Kind::Run,
        Kind::Signature,
        Kind::Outcome,
        Kind::Lease,
        Kind::Cancelled,
        Kind::Paused,
        Kind::Began,
        Kind::Over,
        Kind::Again,
        Kind::Grant,
        Kind::Worker,
        Kind::Request,
        Kind::Round,
        Kind::Coverage,
        Kind::Refused,
    ];

    /// Returns the kinds of records that are removed with a run. The mark that it was cancelled
    /// stays, so that workers that still have jobs of the run drop them.
    pub fn removed() -> impl Iterator<Item = Kind> {
        let all = Kind::ALL.into_iter();
        all.filter(|kind| *kind != Kind::Cancelled)
    }

    /// Returns the name of the kind in keys.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Signature => "signature",
            Kind::Outcome => "outcome",
            Kind::Lease => "lease",
            Kind::Cancelled => "cancelled",
            Kind::Paused => "paused",
            Kind::Began => "began",
            Kind::Over => "over",
            Kind::Again => "again",
            Kind::Grant => "grant",
            Kind::Worker => "worker",
            Kind::Request => "request",
            Kind::Round => "round",
            Kind::Coverage => "coverage",
            Kind::Refused => "refused",
        }
    }
}

/// The key of a record.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    /// The kind of the record.
    pub kind: Kind,
    /// The run.
    pub run: RunId,
    /// The job, if the record is about one.
    pub job: Option<JobId>,
}

impl Key {
    /// Creates the key of a record about a run.
    pub fn of_run(kind: Kind, run: &RunId) -> Key {
        Key {
            kind,
            run: run.clone(),
            job: None,
        }
    }

    /// Creates the key of a record about a job.
    pub fn of_job(kind: Kind, run: &RunId, job: &JobId) -> Key {
        Key {
            job: Some(job.clone()),
            ..Key::of_run(kind, run)
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind.name(), self.run)?;
        self.job.as_ref().map_or(Ok(()), |job| write!(f, ".{job}"))
    }
}

/// What follows the name of a job in that of the parent of its replacement.
const AGAIN: &str = " again";

/// A job in the queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ticket {
    /// The run of the job.
    pub run: RunId,
    /// The name of the job.
    pub job: JobId,
    /// The job that created this one, the run for the first job, or the job that this one replaces.
    pub parent: String,
    /// The hash of the object with the job's states.
    pub states: Hash,
    /// The weight of the states.
    pub weight: WeightSum,
    /// The budget for the states.
    #[serde(default)]
    pub budget: Budget,
}

impl Ticket {
    /// Creates the ticket of a job with these states.
    pub fn new(run: &RunId, parent: &str, states: Hash, weight: WeightSum) -> Ticket {
        Ticket {
            run: run.clone(),
            job: JobId::of(parent, states),
            parent: parent.to_owned(),
            states,
            weight,
            budget: Budget::default(),
        }
    }

    /// Returns the job that replaces this one when it is explored again. Others may have got its
    /// budget, so that it has to wait for a grant if the run is limited.
    pub(crate) fn again(&self) -> Ticket {
        let parent = format!("{}{AGAIN}", self.job);
        Ticket {
            budget: self.budget.after(&Work {
                paths: u64::MAX,
                forks: u64::MAX,
                instructions: u64::MAX,
            }),
            ..Ticket::new(&self.run, &parent, self.states, self.weight.clone())
        }
    }

    /// Returns whether the job replaces one that is explored again.
    pub(crate) fn is_again(&self) -> bool {
        self.parent.ends_with(AGAIN)
    }

    /// Returns the job that created this one; `None` for the first job of a run.
    pub(crate) fn creator(&self) -> Option<JobId> {
        let name = self.parent.strip_suffix(AGAIN).unwrap_or(&self.parent);
        let name = (name != self.run.as_str()).then_some(name);
        name.and_then(JobId::parse)
    }

    /// Serialises the ticket.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a ticket from untrusted bytes.
    pub fn read(bytes: &[u8]) -> Result<Ticket> {
        let ticket: Ticket = serde_json::from_slice(bytes).map_err(Error::damaged)?;
        match ticket.job == JobId::of(&ticket.parent, ticket.states) {
            true => Ok(ticket),
            false => Err(Error::damaged(
                "a job has not the name that its states give it",
            )),
        }
    }
}

/// A lease of a job. The broker hands the job out again unless it is acknowledged or the lease is
/// extended in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The job.
    pub ticket: Ticket,
    /// The job that the broker handed out: the same job, or one whose remaining states the worker
    /// kept.
    pub handed: JobId,
    /// Number of times that the job was handed out, including this one.
    pub delivery: u64,
    /// The broker's id of the lease.
    pub token: String,
}

/// A job that another job created for its remaining states.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Child {
    /// The name of the job.
    pub job: JobId,
    /// The hash of the object with the job's states.
    pub states: Hash,
    /// The weight of the states.
    pub weight: WeightSum,
    /// Number of states.
    pub count: u64,
    /// The budget for the states. A job without budget is not handed out.
    #[serde(default)]
    pub budget: Budget,
}

/// The outcome of a job. The first one that is recorded counts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The worker that explored the job.
    pub worker: String,
    /// Weight of paths that ended.
    pub finished: WeightSum,
    /// Weight of paths that were given up.
    pub unknown: WeightSum,
    /// Weight of paths that the program pruned.
    pub pruned: WeightSum,
    /// Weight of combinations that a fault limit excludes.
    pub excluded: WeightSum,
    /// Jobs for the remaining states.
    pub children: Vec<Child>,
    /// The hash of the object with counters, tests and findings; `None` if the job could not be
    /// explored.
    pub results: Option<Hash>,
    /// The reason why the job could not be explored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Paths or worlds that ended, forks and instructions.
    #[serde(flatten)]
    pub work: Work,
    /// Number of findings.
    pub findings: u64,
    /// Instructions that rematerialised states.
    pub replayed: u64,
    /// Size of the objects that were sent, in bytes.
    pub bytes: u64,
    /// Whether the first of the created jobs stays with the worker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Size of the states of the jobs that do not stay with the worker, in bytes.
    #[serde(default)]
    pub bytes_moved: u64,
}

impl Outcome {
    /// Serialises the outcome.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads an outcome from untrusted bytes.
    pub fn read(bytes: &[u8]) -> Result<Outcome> {
        serde_json::from_slice(bytes).map_err(Error::damaged)
    }

    /// Returns the total weight; `None` if it is above 1.
    pub fn weight(&self) -> Option<WeightSum> {
        let mut sum = self.finished.clone();
        let parts = [&self.unknown, &self.pruned, &self.excluded].into_iter();
        let left = self.children.iter().map(|child| &child.weight);
        parts
            .chain(left)
            .all(|part| sum.add_sum_checked(part))
            .then_some(sum)
    }

    /// Returns the created jobs that are for other workers.
    pub fn given(&self) -> &[Child] {
        &self.children[usize::from(self.kept).min(self.children.len())..]
    }

    /// Returns the created jobs that have a budget, to be handed out.
    pub fn tickets<'o>(
        &'o self,
        run: &'o RunId,
        job: &'o JobId,
    ) -> impl Iterator<Item = Ticket> + 'o {
        let tickets = self.all_tickets(run, job);
        tickets.filter(|ticket| ticket.budget.spent().is_none())
    }

    /// Returns all created jobs.
    pub(crate) fn all_tickets<'o>(
        &'o self,
        run: &'o RunId,
        job: &'o JobId,
    ) -> impl Iterator<Item = Ticket> + 'o {
        let children = self.children.iter();
        children.map(|child| Ticket {
            budget: child.budget,
            ..Ticket::new(run, job.as_str(), child.states, child.weight.clone())
        })
    }
}

/// Objects by their hashes.
pub(crate) type Objects = Vec<(Hash, Vec<u8>)>;

/// The result of an explored job, with the objects that must be stored before its outcome counts.
#[derive(Clone, Debug)]
pub struct Explored {
    /// Objects that the outcome names.
    pub objects: Vec<(Hash, Vec<u8>)>,
    /// The outcome.
    pub outcome: Outcome,
}

/// A broker. All operations are idempotent, so that they can be retried.
pub trait Broker: Send {
    /// Stores an object.
    fn put(&mut self, hash: Hash, bytes: &[u8]) -> Result<()>;

    /// Returns the bytes of an object. The caller checks them against the hash.
    fn get(&mut self, hash: Hash) -> Result<Option<Vec<u8>>>;

    /// Records a value under a key unless there is a record already, atomically. Returns the value
    /// that is recorded now.
    fn record(&mut self, key: &Key, value: &[u8]) -> Result<Vec<u8>>;

    /// Replaces the value under a key. Only for advisory data.
    fn note(&mut self, key: &Key, value: &[u8]) -> Result<()>;

    /// Returns the value recorded under a key.
    fn look_up(&mut self, key: &Key) -> Result<Option<Vec<u8>>>;

    /// Returns all records of a kind about jobs of a run.
    fn list(&mut self, kind: Kind, run: &RunId) -> Result<Vec<(JobId, Vec<u8>)>>;

    /// Returns all runs.
    fn runs(&mut self) -> Result<Vec<RunId>>;

    /// Removes the records ([`Kind::removed`]) of a run that was cancelled, and its jobs, unless
    /// that is left to workers, which drop them.
    fn remove_run(&mut self, run: &RunId) -> Result<()>;

    /// Returns the hashes of all objects.
    fn objects(&mut self) -> Result<Vec<Hash>>;

    /// Removes objects.
    fn remove_objects(&mut self, hashes: &[Hash]) -> Result<()>;

    /// Adds a job to the queue.
    fn publish(&mut self, ticket: &Ticket) -> Result<()>;

    /// Adds a job to the queue that was taken from it without an outcome. Some brokers drop jobs
    /// that were published a short time before; not this one.
    fn publish_again(&mut self, ticket: &Ticket) -> Result<()> {
        self.publish(ticket)
    }

    /// Takes a job from the queue, if there is one.
    fn lease(&mut self) -> Result<Option<Lease>>;

    /// Extends a lease, because the job is still being explored.
    fn extend(&mut self, lease: &Lease) -> Result<()>;

    /// Removes a finished job from the queue. Returns `false` if the broker knows that another
    /// worker holds the lease; the job then stays with that worker.
    fn acknowledge(&mut self, lease: &Lease) -> Result<bool>;

    /// Returns a job to the queue for another worker. Nobody gets it before this time has passed; a
    /// broker without a clock waits for the end of the lease instead.
    fn release(&mut self, lease: &Lease, pause: Duration) -> Result<()>;

    /// Returns the jobs of a run that are in the queue, waiting or handed out.
    fn queued(&mut self, run: &RunId) -> Result<BTreeSet<JobId>>;

    /// Returns the number of jobs that wait for a worker.
    fn waiting(&mut self) -> Result<u64>;

    /// Returns the time at the broker, since some moment that never changes. Machines whose clocks
    /// differ agree about it.
    fn now(&mut self) -> Result<Duration>;

    /// Returns how long a lease lasts.
    fn lease_time(&self) -> Duration;

    /// Finishes a job: stores its results, publishes the jobs that it created, and only then
    /// removes it from the queue. Returns the outcome that counts, which is that of another worker
    /// if one was faster.
    fn finish(&mut self, lease: &Lease, explored: &Explored) -> Result<Outcome> {
        for (hash, bytes) in &explored.objects {
            self.put(*hash, bytes)?;
        }
        let key = Key::of_job(Kind::Outcome, &lease.ticket.run, &lease.ticket.job);
        let recorded = self.record(&key, &explored.outcome.to_bytes())?;
        let outcome = Outcome::read(&recorded)?;
        self.settle(lease, &outcome)?;
        Ok(outcome)
    }

    /// Settles a job whose outcome is recorded: publishes the jobs that it created, and removes it
    /// from the queue.
    fn settle(&mut self, lease: &Lease, outcome: &Outcome) -> Result<()> {
        for ticket in outcome.tickets(&lease.ticket.run, &lease.ticket.job) {
            self.publish(&ticket)?;
        }
        self.acknowledge(lease)?;
        Ok(())
    }
}

/// Returns the bytes of an object, checked against its hash.
pub(crate) fn fetch(broker: &mut dyn Broker, hash: Hash) -> Result<Vec<u8>> {
    let bytes = broker.get(hash)?;
    let bytes = bytes.ok_or_else(|| Error::damaged(format!("the object {hash} is missing")))?;
    match Hash::of(&bytes) == hash {
        true => Ok(bytes),
        false => Err(Error::damaged(format!("the object {hash} has other bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett::Weight;

    #[test]
    fn names_are_digits() {
        assert!(RunId::parse("0123abcd").is_some());
        for text in ["", "../x", "a.b", "ABC", "a b", &"0".repeat(65)] {
            assert_eq!(RunId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_job_has_the_name_of_its_states() {
        let run = RunId::parse("12").unwrap();
        let ticket = Ticket::new(&run, "12", Hash::of(b"states"), WeightSum::one());
        assert_eq!(Ticket::read(&ticket.to_bytes()).unwrap(), ticket);
        let other = Ticket {
            states: Hash::of(b"others"),
            ..ticket.clone()
        };
        assert!(Ticket::read(&other.to_bytes()).is_err());
        for end in 0..ticket.to_bytes().len() {
            assert!(Ticket::read(&ticket.to_bytes()[..end]).is_err());
        }
    }

    #[test]
    fn outcomes_above_one_are_noticed() {
        let mut outcome = Outcome::default();
        outcome.finished.add(Weight { halvings: 1 });
        outcome.unknown.add(Weight { halvings: 1 });
        assert!(outcome.weight().unwrap().is_one());
        outcome.pruned.add(Weight { halvings: 9 });
        assert_eq!(outcome.weight(), None);
    }
}
