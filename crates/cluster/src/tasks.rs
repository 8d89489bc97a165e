//! Tasks for other machines: bytes that a client sends, and the bytes that a node answers. Fault
//! searches run their tests by them. Must not know what the bytes mean.
//!
//! A task is a job of the broker without states: its object is the task, and its outcome names the
//! object with the answer. The first outcome counts, so a node may die, and a task may be handed
//! out twice. A node that dies costs its tasks in flight: others do them again when its leases end.

use everett::WeightSum;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::broker::{Broker, Explored, Key, Kind, Lease, Outcome, RunId, Ticket, fetch};
use crate::error::{Error, Result};
use crate::hash::Hash;

/// The pauses between questions to the broker: the first one, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// For how long a client tries to reach a broker, and the pause after a failure.
const PATIENCE: Duration = Duration::from_secs(60);
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// The number of nodes that may die of a task.
const MOST_DEATHS: u64 = 3;
/// The pause of a node after a task that is not for it, so that others can take that; it doubles
/// with each such task.
const FIRST_REFUSAL: Duration = Duration::from_millis(100);
const LONGEST_REFUSAL: Duration = Duration::from_secs(10);

/// The answer to a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answered {
    /// The answer of a node.
    Bytes(Vec<u8>),
    /// The reason why no node could do the task.
    Failed(String),
    /// The client was stopped, or its time was over, before there was an answer.
    Stopped,
}

/// A client that has tasks done. Several threads may use it at a time.
pub struct TaskClient {
    broker: Mutex<Box<dyn Broker>>,
    run: RunId,
    next: AtomicU64,
    stop: Arc<AtomicBool>,
    /// Number of answers of each node.
    nodes: Mutex<BTreeMap<String, u64>>,
}

/// Returns the object of a task or of an answer. Its first line makes it unlike all others, so that
/// it can be removed when it has been read.
fn object_of(head: &str, bytes: &[u8]) -> (Hash, Vec<u8>) {
    let object = [head.as_bytes(), b"\n", bytes].concat();
    (Hash::of(&object), object)
}

fn content_of(object: &[u8]) -> Result<Vec<u8>> {
    let end = object.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or_else(|| Error::damaged("a task without head"))?;
    Ok(object[end + 1..].to_vec())
}

impl TaskClient {
    /// Creates a client whose tasks are stopped by a flag. The nonce distinguishes it from others.
    pub fn new(broker: Box<dyn Broker>, nonce: &[u8], stop: Arc<AtomicBool>) -> TaskClient {
        TaskClient {
            broker: Mutex::new(broker),
            run: RunId::of(b"tasks", nonce),
            next: AtomicU64::new(0),
            stop,
            nodes: Mutex::default(),
        }
    }

    /// Does something with the broker; tries again for a while if it cannot be reached.
    fn with<T>(&self, work: impl Fn(&mut dyn Broker) -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        loop {
            let done = {
                let mut broker = self.broker.lock().unwrap_or_else(PoisonError::into_inner);
                work(&mut **broker)
            };
            let is_lost = matches!(done, Err(Error::Broker(_)));
            if !is_lost || begun.elapsed() > PATIENCE || self.stop.load(Ordering::Relaxed) {
                return done;
            }
            std::thread::sleep(AFTER_FAILURE);
        }
    }

    /// Has a task done, and waits for the answer, no longer than until this time.
    pub fn run(&self, task: &[u8], until: Option<Instant>) -> Result<Answered> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (hash, object) = object_of(&format!("{} {number}", self.run), task);
        let ticket = Ticket::new(&self.run, &number.to_string(), hash, WeightSum::default());
        self.with(|broker| {
            broker.put(hash, &object)?;
            broker.publish(&ticket)
        })?;
        let key = Key::of_job(Kind::Outcome, &self.run, &ticket.job);
        let mut pause = FIRST_PAUSE;
        let recorded = loop {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(Answered::Stopped);
            }
            if let Some(recorded) = self.with(|broker| broker.look_up(&key))? {
                break recorded;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Answered::Stopped);
            }
            std::thread::sleep(pause);
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        };
        let outcome = Outcome::read(&recorded)?;
        let answered = match (outcome.results, outcome.failure) {
            (Some(answer), _) => {
                let object = self.with(|broker| fetch(broker, answer))?;
                self.with(|broker| broker.remove_objects(&[hash, answer]))?;
                Answered::Bytes(content_of(&object)?)
            }
            (None, why) => Answered::Failed(why.unwrap_or_else(|| "no answer".to_owned())),
        };
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        *nodes.entry(outcome.worker).or_default() += 1;
        Ok(answered)
    }

    /// Returns the number of answers of each node.
    pub fn nodes(&self) -> BTreeMap<String, u64> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.clone()
    }

    /// Removes what the broker still has of this client's tasks. Nodes drop those that they have.
    pub fn end(&self) -> Result<()> {
        let mut broker = self.broker.lock().unwrap_or_else(PoisonError::into_inner);
        broker.record(&Key::of_run(Kind::Cancelled, &self.run), b"")?;
        let outcomes = broker.list(Kind::Outcome, &self.run)?;
        let answers = outcomes.iter().filter_map(|(_, recorded)| {
            let outcome = Outcome::read(recorded).ok()?;
            outcome.results
        });
        let answers: Vec<Hash> = answers.collect();
        broker.remove_objects(&answers)?;
        broker.remove_run(&self.run)
    }
}

/// A node that does tasks.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// The name of the node.
    pub name: String,
    /// The number of tasks at a time.
    pub slots: usize,
    /// The node ends after waiting for this long; by default, it never does.
    pub idle: Option<Duration>,
}

/// What a node did, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Served {
    /// It did a task.
    Done,
    /// It returned a task that is not for it.
    Refused,
    /// It could not reach the broker, and will try again.
    Lost(String),
}

/// The answer of a node's function: `None` if the task is not for this node.
type Done = (Lease, Option<Vec<u8>>);

/// The state of a node.
struct Node<'n> {
    broker: Box<dyn Broker>,
    spec: &'n TaskSpec,
    tell: &'n dyn Fn(&Served),
    /// Tasks that are being done, by their tokens.
    leases: Vec<Lease>,
    /// Answers that the broker does not have yet.
    done: Vec<Done>,
    extended: Instant,
    refusal: Duration,
    refuses_until: Instant,
    last: Instant,
}

/// Does tasks until the stop flag is set, or until there are none for a while; those that it has
/// begun, it ends. `answer` does a task; it returns `None` for one that is not for this node.
pub fn serve_tasks(
    broker: Box<dyn Broker>,
    spec: &TaskSpec,
    stop: &AtomicBool,
    answer: &(dyn Fn(&[u8]) -> Option<Vec<u8>> + Sync),
    tell: &dyn Fn(&Served),
) -> Result<()> {
    let now = Instant::now();
    let mut node = Node {
        broker,
        spec,
        tell,
        leases: Vec::new(),
        done: Vec::new(),
        extended: now,
        refusal: FIRST_REFUSAL,
        refuses_until: now,
        last: now,
    };
    let (send, receive) = channel();
    std::thread::scope(|scope| {
        let mut pause = FIRST_PAUSE;
        loop {
            let is_stopped = stop.load(Ordering::Relaxed) || node.is_idle();
            if is_stopped && node.leases.is_empty() {
                return Ok(());
            }
            let taken = match is_stopped {
                true => node.settle().map(|()| None),
                false => node.step(),
            };
            match taken {
                Ok(Some((lease, task))) => {
                    let send: Sender<Done> = send.clone();
                    scope.spawn(move || drop(send.send((lease, answer(&task)))));
                    pause = FIRST_PAUSE;
                    continue;
                }
                Ok(None) => {}
                Err(Error::Broker(why)) => {
                    (node.tell)(&Served::Lost(why));
                    pause = AFTER_FAILURE;
                }
                Err(error) => return Err(error),
            }
            match receive.recv_timeout(pause) {
                Ok(done) => {
                    node.done.push(done);
                    pause = FIRST_PAUSE;
                }
                Err(RecvTimeoutError::Timeout) => pause = (pause * 3 / 2).min(LONGEST_PAUSE),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    })
}

impl Node<'_> {
    fn is_idle(&self) -> bool {
        let is_free = self.leases.is_empty();
        is_free
            && self
                .spec
                .idle
                .is_some_and(|idle| self.last.elapsed() >= idle)
    }

    /// Sends answers, extends leases, and takes a task if there is one and a place for it.
    fn step(&mut self) -> Result<Option<(Lease, Vec<u8>)>> {
        self.settle()?;
        if self.leases.len() >= self.spec.slots || Instant::now() < self.refuses_until {
            return Ok(None);
        }
        match self.broker.lease()? {
            Some(lease) => self.begin(lease),
            None => Ok(None),
        }
    }

    /// Begins a task.
    fn begin(&mut self, lease: Lease) -> Result<Option<(Lease, Vec<u8>)>> {
        let ticket = &lease.ticket;
        let own = self.leases.iter();
        let mut own = own.filter(|own| own.ticket.job == ticket.job);
        // A broker may hand a task out again that this node still does.
        if own.next().is_some() || self.is_over(&lease)? {
            self.broker.acknowledge(&lease)?;
            return Ok(None);
        }
        let object = self.broker.get(ticket.states)?;
        // An object that is gone or damaged belongs to no task of a client that still waits.
        let object = object.filter(|object| Hash::of(object) == ticket.states);
        let Some(task) = object.and_then(|object| content_of(&object).ok()) else {
            self.broker.acknowledge(&lease)?;
            return Ok(None);
        };
        let key = Key::of_job(Kind::Lease, &ticket.run, &ticket.job);
        let held = self.broker.look_up(&key)?.unwrap_or_default();
        let deaths = String::from_utf8_lossy(&held).parse().unwrap_or(0u64);
        if deaths >= MOST_DEATHS {
            let why = format!("{deaths} nodes died while they did it");
            self.finish(&lease, Vec::new(), Some(why))?;
            return Ok(None);
        }
        self.broker
            .note(&key, (deaths + 1).to_string().as_bytes())?;
        self.leases.push(lease.clone());
        self.last = Instant::now();
        Ok(Some((lease, task)))
    }

    /// Returns whether the client has ended, or the task has an answer.
    fn is_over(&mut self, lease: &Lease) -> Result<bool> {
        let ticket = &lease.ticket;
        let ended = Key::of_run(Kind::Cancelled, &ticket.run);
        let outcome = Key::of_job(Kind::Outcome, &ticket.run, &ticket.job);
        Ok(self.broker.look_up(&ended)?.is_some() || self.broker.look_up(&outcome)?.is_some())
    }

    /// Sends the answers that there are, and extends the leases of other tasks.
    fn settle(&mut self) -> Result<()> {
        while let Some((lease, answer)) = self.done.last().cloned() {
            match answer {
                Some(answer) => {
                    let head = format!("{} {}", self.spec.name, lease.ticket.job);
                    self.finish(&lease, vec![object_of(&head, &answer)], None)?;
                    self.refusal = FIRST_REFUSAL;
                    (self.tell)(&Served::Done);
                }
                None => self.refuse(&lease)?,
            }
            self.done.pop();
            self.leases.retain(|own| own.ticket.job != lease.ticket.job);
            self.last = Instant::now();
        }
        if self.extended.elapsed() >= self.broker.lease_time() / 3 {
            for lease in &self.leases {
                self.broker.extend(lease)?;
            }
            self.extended = Instant::now();
        }
        Ok(())
    }

    fn finish(
        &mut self,
        lease: &Lease,
        objects: Vec<(Hash, Vec<u8>)>,
        failure: Option<String>,
    ) -> Result<()> {
        if self.is_over(lease)? {
            self.broker.acknowledge(lease)?;
            return Ok(());
        }
        let results = objects.first().map(|(hash, _)| *hash);
        let outcome = Outcome {
            worker: self.spec.name.clone(),
            results,
            failure,
            ..Outcome::default()
        };
        let recorded = self.broker.finish(lease, &Explored { objects, outcome })?;
        let other = results.filter(|own| recorded.results != Some(*own));
        // Another node was faster.
        other.map_or(Ok(()), |own| self.broker.remove_objects(&[own]))
    }

    /// Returns a task to the broker, as if this node had not begun it.
    fn refuse(&mut self, lease: &Lease) -> Result<()> {
        let key = Key::of_job(Kind::Lease, &lease.ticket.run, &lease.ticket.job);
        let held = self.broker.look_up(&key)?.unwrap_or_default();
        let begun = String::from_utf8_lossy(&held).parse().unwrap_or(1u64);
        self.broker
            .note(&key, begun.saturating_sub(1).to_string().as_bytes())?;
        self.broker.release(lease, Duration::ZERO)?;
        self.refuses_until = Instant::now() + self.refusal;
        self.refusal = (self.refusal * 2).min(LONGEST_REFUSAL);
        (self.tell)(&Served::Refused);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SharedMemory;

    const LEASE: u64 = 1000;

    fn spec(name: &str) -> TaskSpec {
        TaskSpec {
            name: name.to_owned(),
            slots: 2,
            idle: None,
        }
    }

    fn client(shared: &SharedMemory, stop: &Arc<AtomicBool>) -> TaskClient {
        TaskClient::new(Box::new(shared.connect()), b"1", stop.clone())
    }

    type Answer<'a> = &'a (dyn Fn(&[u8]) -> Option<Vec<u8>> + Sync);

    /// Runs nodes while `work` runs.
    fn with_nodes(shared: &SharedMemory, nodes: &[(&str, Answer<'_>)], work: impl FnOnce()) {
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (name, answer) in nodes {
                let (end, broker) = (&end, Box::new(shared.connect()));
                scope.spawn(move || serve_tasks(broker, &spec(name), end, *answer, &|_| {}));
            }
            work();
            end.store(true, Ordering::Relaxed);
        });
    }

    fn twice(task: &[u8]) -> Option<Vec<u8>> {
        Some([task, task].concat())
    }

    #[test]
    fn tasks_are_answered_by_any_number_of_nodes() {
        let shared = SharedMemory::new(LEASE);
        let stop = Arc::new(AtomicBool::new(false));
        let client = client(&shared, &stop);
        with_nodes(&shared, &[("a", &twice), ("b", &twice)], || {
            std::thread::scope(|scope| {
                for number in 0..20u8 {
                    let client = &client;
                    scope.spawn(move || {
                        let answered = client.run(&[b'x', number], None).unwrap();
                        assert_eq!(answered, Answered::Bytes(vec![b'x', number, b'x', number]));
                    });
                }
            });
        });
        assert_eq!(client.nodes().values().sum::<u64>(), 20);
        client.end().unwrap();
        assert_eq!(shared.connect().objects().unwrap(), []);
    }

    #[test]
    fn nobody_waits_for_nodes_beyond_the_end() {
        let shared = SharedMemory::new(LEASE);
        let stop = Arc::new(AtomicBool::new(false));
        let client = client(&shared, &stop);
        let soon = Instant::now() + FIRST_PAUSE;
        assert_eq!(client.run(b"x", Some(soon)).unwrap(), Answered::Stopped);
    }

    #[test]
    fn a_node_that_dies_costs_its_tasks_in_flight() {
        let shared = SharedMemory::new(LEASE);
        let stop = Arc::new(AtomicBool::new(false));
        let client = client(&shared, &stop);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| client.run(b"x", None).unwrap());
            // A node that takes the task and never comes back.
            let mut dead = shared.connect();
            while dead.lease().unwrap().is_none() {
                std::thread::sleep(FIRST_PAUSE);
            }
            shared.expire_leases();
            with_nodes(&shared, &[("a", &twice)], || {
                assert_eq!(asked.join().unwrap(), Answered::Bytes(b"xx".to_vec()));
            });
        });
    }

    #[test]
    fn a_task_that_kills_its_nodes_is_given_up() {
        let shared = SharedMemory::new(LEASE);
        let stop = Arc::new(AtomicBool::new(false));
        let client = client(&shared, &stop);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| client.run(b"x", None).unwrap());
            for _ in 0..MOST_DEATHS {
                let spec = spec("dead");
                let mut node = Node {
                    broker: Box::new(shared.connect()),
                    spec: &spec,
                    tell: &|_| {},
                    leases: Vec::new(),
                    done: Vec::new(),
                    extended: Instant::now(),
                    refusal: FIRST_REFUSAL,
                    refuses_until: Instant::now(),
                    last: Instant::now(),
                };
                while node.step().unwrap().is_none() {
                    std::thread::sleep(FIRST_PAUSE);
                }
                shared.expire_leases();
            }
            with_nodes(&shared, &[("a", &twice)], || {
                let why = "3 nodes died while they did it".to_owned();
                assert_eq!(asked.join().unwrap(), Answered::Failed(why));
            });
        });
    }

    #[test]
    fn tasks_for_others_are_returned_and_a_client_can_be_stopped() {
        let shared = SharedMemory::new(LEASE);
        let stop = Arc::new(AtomicBool::new(false));
        let client = client(&shared, &stop);
        let nobody = |_: &[u8]| None;
        with_nodes(&shared, &[("a", &nobody)], || {
            std::thread::scope(|scope| {
                let asked = scope.spawn(|| client.run(b"x", None).unwrap());
                with_nodes(&shared, &[("b", &twice)], || {
                    assert_eq!(asked.join().unwrap(), Answered::Bytes(b"xx".to_vec()));
                });
                let asked = scope.spawn(|| client.run(b"y", None).unwrap());
                stop.store(true, Ordering::Relaxed);
                assert_eq!(asked.join().unwrap(), Answered::Stopped);
            });
        });
    }
}
