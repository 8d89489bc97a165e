//! A worker: takes a job, explores it for a while, and returns its
//! outcome and the states that are left.

use everett::{Job, JobResult, Prepared, Session, States};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use crate::broker::{
    Broker, Child, Explored, JobId, Key, Kind, Lease, Outcome, RunId, Ticket, fetch,
};
use crate::error::{Error, Result};
use crate::grant::grant;
use crate::hash::Hash;
use crate::run::{Build, Manifest};
use crate::states::{divide, pack_states, unpack_states};
use crate::status::reseed;

/// Jobs that a job leaves at most. Whoever waits gets one, and each can be divided again.
pub(crate) const CHILDREN: usize = 8;
/// Maximum extensions of a job while no worker is idle: as much is lost if its worker dies.
const MOST_TIMES: u32 = 16;
/// How often an idle worker asks for a job before it looks for jobs that fell out of the queue.
const IDLE_BEFORE_RESEEDING: u32 = 50;
/// How long an idle worker waits before it asks again, and how long one
/// whose broker cannot be reached.
const PAUSE: Duration = Duration::from_millis(100);
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How often a worker tries to reach its broker before it gives up.
const RETRIES: u32 = 120;

const RESULTS_MAGIC: &[u8] = b"everett results 2\n";
/// Most bytes of a job's results.
const MOST_RESULTS: usize = 1 << 30;

/// Results as an object.
fn pack_results(result: &JobResult) -> Result<Vec<u8>> {
    let text = serde_json::to_vec(result).map_err(everett::Error::from)?;
    let mut packed = RESULTS_MAGIC.to_vec();
    packed.extend(compress_to_vec_zlib(&text, 6));
    Ok(packed)
}

/// Results from untrusted bytes.
pub(crate) fn unpack_results(packed: &[u8]) -> Result<JobResult> {
    let packed = packed.strip_prefix(RESULTS_MAGIC);
    let packed = packed.ok_or_else(|| Error::damaged("these are not results"))?;
    let text = decompress_to_vec_zlib_with_limit(packed, MOST_RESULTS);
    let text = text.map_err(|_| Error::damaged("results that cannot be decompressed"))?;
    serde_json::from_slice(&text).map_err(Error::damaged)
}

/// The configuration of a worker.
#[derive(Clone, Debug)]
pub struct WorkerSpec {
    /// Its name, for people.
    pub name: String,
    /// This build.
    pub build: Build,
    /// Memory that it may take, over which it spills states; by default what the run says.
    pub max_memory: Option<u64>,
    /// Folder for spilled states; by default that for temporary files.
    pub scratch: Option<PathBuf>,
    /// It leaves after it has waited so long for a job; by default never.
    pub idle: Option<Duration>,
}

/// A run that a worker knows.
struct Known {
    prepared: Prepared,
    work: u64,
}

/// What a worker does with a job that it was handed.
pub enum Taken {
    /// There was none.
    Nothing,
    /// It had its outcome, or its run was cancelled.
    Over,
    /// The job is to be explored.
    Job(Box<TakenJob>),
}

/// A job to explore.
pub struct TakenJob {
    /// The lease.
    pub lease: Lease,
    /// Its run and states; or why it cannot be explored.
    what: Result<(Rc<Known>, States), String>,
}

/// What a worker did.
#[derive(Debug)]
pub enum WorkerStep {
    /// There was no job.
    Nothing,
    /// A job had its outcome already, or its run was cancelled.
    Dropped,
    /// It explored a job; this is the outcome that counts.
    Explored(Box<Outcome>),
}

/// A worker of a cluster.
pub struct Worker<'s> {
    spec: WorkerSpec,
    session: &'s Session,
    runs: BTreeMap<RunId, Rc<Known>>,
    /// Runs in which nothing is open.
    over: BTreeSet<RunId>,
}

fn lock<'b>(broker: &'b Mutex<Box<dyn Broker>>) -> MutexGuard<'b, Box<dyn Broker>> {
    broker.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a panic says.
fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

impl<'s> Worker<'s> {
    /// A worker that has done nothing yet.
    pub fn new(spec: WorkerSpec, session: &'s Session) -> Worker<'s> {
        Worker {
            spec,
            session,
            runs: BTreeMap::new(),
            over: BTreeSet::new(),
        }
    }

    /// Takes a job.
    pub fn take(&mut self, broker: &mut dyn Broker) -> Result<Taken> {
        let Some(lease) = broker.lease()? else {
            return Ok(Taken::Nothing);
        };
        let (run, job) = (&lease.ticket.run, &lease.ticket.job);
        let cancelled = broker.look_up(&Key::of_run(Kind::Cancelled, run))?;
        if cancelled.is_some() {
            broker.acknowledge(&lease)?;
            return Ok(Taken::Over);
        }
        let recorded = broker.look_up(&Key::of_job(Kind::Outcome, run, job))?;
        if let Some(recorded) = recorded {
            // Whoever recorded it may have died before it handed out what was left.
            broker.settle(&lease, &Outcome::read(&recorded)?)?;
            return Ok(Taken::Over);
        }
        let what = match self.open(broker, &lease.ticket) {
            Ok(what) => Ok(what),
            Err(error @ (Error::Damaged(_) | Error::Everett(_))) => Err(error.to_string()),
            Err(Error::NoRun(_)) => {
                broker.acknowledge(&lease)?;
                return Ok(Taken::Over);
            }
            Err(error) => {
                broker.release(&lease)?;
                return Err(error);
            }
        };
        let noted = serde_json::json!({"worker": self.spec.name, "delivery": lease.delivery});
        let noted = noted.to_string();
        broker.note(&Key::of_job(Kind::Lease, run, job), noted.as_bytes())?;
        Ok(Taken::Job(Box::new(TakenJob { lease, what })))
    }

    /// The run and the states of a job.
    fn open(&mut self, broker: &mut dyn Broker, ticket: &Ticket) -> Result<(Rc<Known>, States)> {
        let known = match self.runs.get(&ticket.run) {
            Some(known) => known.clone(),
            None => {
                let known = Rc::new(self.prepare(broker, &ticket.run)?);
                self.runs.insert(ticket.run.clone(), known.clone());
                known
            }
        };
        let states = unpack_states(&fetch(broker, ticket.states)?)?;
        match known.prepared.weight_of(&states) {
            Some(weight) if weight == ticket.weight => Ok((known, states)),
            _ => Err(Error::damaged("the states of a job have not its weight")),
        }
    }

    fn prepare(&self, broker: &mut dyn Broker, run: &RunId) -> Result<Known> {
        let manifest = broker.look_up(&Key::of_run(Kind::Run, run))?;
        let manifest = manifest.ok_or_else(|| Error::NoRun(run.to_string()))?;
        let manifest = Manifest::read(&manifest, &self.spec.build)?;
        let work = manifest.work.max(1);
        let mut parcel = manifest.parcel(broker)?;
        parcel.spec.max_memory = self.spec.max_memory.or(parcel.spec.max_memory);
        // A file that is no program must not end the worker.
        let prepared = catch_unwind(AssertUnwindSafe(|| Prepared::of(&parcel, self.session)));
        let prepared = prepared.map_err(|panic| Error::damaged(panic_text(&*panic)))??;
        Ok(Known { prepared, work })
    }

    /// Explores a job. Asks `go_on` whenever a piece of work is done.
    pub fn explore(&self, job: &TakenJob, go_on: &mut dyn FnMut() -> bool) -> Result<Explored> {
        let ticket = &job.lease.ticket;
        let (known, states) = match &job.what {
            Ok(what) => what,
            Err(error) => return Ok(self.failed(ticket, error)),
        };
        let spill = self.spill_of(ticket);
        let explored = catch_unwind(AssertUnwindSafe(|| {
            let job = Job {
                states: states.clone(),
                budget: ticket.budget,
                work: known.work,
                go_on,
                parts: CHILDREN,
                spill: Some(spill.clone()),
            };
            known.prepared.explore(job, self.session)
        }));
        // It holds nothing that is still needed.
        let _ = std::fs::remove_file(spill);
        match explored {
            Ok(Ok(result)) => self.explored(ticket, &known.prepared, result),
            Ok(Err(error)) => Ok(self.failed(ticket, &error.to_string())),
            // Whoever got the job next would end in the same way.
            Err(panic) => Ok(self.failed(ticket, panic_text(&*panic))),
        }
    }

    /// Where states of a job are spilled.
    fn spill_of(&self, ticket: &Ticket) -> PathBuf {
        match &self.spec.scratch {
            Some(folder) => folder.join(format!("{}.spill", ticket.job)),
            None => {
                let name = Hash::of(self.spec.name.as_bytes()).to_string();
                let (process, job) = (std::process::id(), &ticket.job);
                std::env::temp_dir().join(format!("everett-{process}-{}-{job}", &name[..16]))
            }
        }
    }

    fn explored(
        &self,
        ticket: &Ticket,
        prepared: &Prepared,
        result: JobResult,
    ) -> Result<Explored> {
        let explored = outcome_of(&self.spec.name, ticket, prepared, result)?;
        match explored.outcome.weight() {
            Some(weight) if weight == ticket.weight => Ok(explored),
            _ => Ok(self.failed(ticket, "states were lost while it was explored")),
        }
    }

    /// The outcome of a job that cannot be explored: all of it is
    /// unknown, and the run is not complete.
    fn failed(&self, ticket: &Ticket, why: &str) -> Explored {
        Explored {
            objects: Vec::new(),
            outcome: Outcome {
                worker: self.spec.name.clone(),
                unknown: ticket.weight.clone(),
                failure: Some(why.to_owned()),
                ..Outcome::default()
            },
        }
    }

    /// Hands back the result of a job. Returns the outcome that counts.
    pub fn finish(
        &mut self,
        broker: &mut dyn Broker,
        job: &TakenJob,
        explored: &Explored,
    ) -> Result<Outcome> {
        let outcome = broker.finish(&job.lease, explored)?;
        let ticket = &job.lease.ticket;
        if ticket.budget.is_limited() && outcome.children.is_empty() {
            // What it did not need is for others.
            grant(broker, &ticket.run)?;
        }
        Ok(outcome)
    }

    /// Takes a job and explores it, if there is one.
    pub fn step(&mut self, broker: &Mutex<Box<dyn Broker>>) -> Result<WorkerStep> {
        let job = match self.take(&mut **lock(broker))? {
            Taken::Nothing => return Ok(WorkerStep::Nothing),
            Taken::Over => return Ok(WorkerStep::Dropped),
            Taken::Job(job) => job,
        };
        let mut times = 0;
        let mut go_on = || {
            times += 1;
            // A worker that cannot reach its broker goes on, too.
            times < MOST_TIMES && lock(broker).waiting().map_or(true, |waiting| waiting > 0)
        };
        let explored = with_heartbeat(broker, &job.lease, || self.explore(&job, &mut go_on))?;
        let mut tries = 0;
        loop {
            let finished = self.finish(&mut **lock(broker), &job, &explored);
            match finished {
                Err(Error::Broker(_)) if tries < RETRIES => tries += 1,
                finished => return Ok(WorkerStep::Explored(Box::new(finished?))),
            }
            sleep(RETRY_PAUSE);
        }
    }

    /// Explores jobs until the stop flag is set or it has been idle long enough. A broker that
    /// cannot be reached is tried again for a while.
    pub fn run(
        &mut self,
        broker: &Mutex<Box<dyn Broker>>,
        tell: &mut dyn FnMut(&WorkerStep),
    ) -> Result<()> {
        let (mut idle, mut failures) = (0u32, 0);
        while !self.session.stop.load(Ordering::Relaxed) {
            let did = match self.step(broker) {
                Err(Error::Broker(_)) if failures < RETRIES => {
                    failures += 1;
                    sleep(RETRY_PAUSE);
                    continue;
                }
                did => did?,
            };
            failures = 0;
            tell(&did);
            if !matches!(did, WorkerStep::Nothing) {
                idle = 0;
                continue;
            }
            idle += 1;
            if self.spec.idle.is_some_and(|most| PAUSE * idle > most) {
                return Ok(());
            }
            if idle.is_multiple_of(IDLE_BEFORE_RESEEDING) {
                self.reseed(&mut **lock(broker))?;
            }
            sleep(PAUSE);
        }
        Ok(())
    }

    /// Puts jobs back into the queue that fell out of it, as no broker should let them.
    pub fn reseed(&mut self, broker: &mut dyn Broker) -> Result<u64> {
        let mut added = 0;
        for run in broker.runs()? {
            if self.over.contains(&run) {
                continue;
            }
            let is_cancelled = broker.look_up(&Key::of_run(Kind::Cancelled, &run))?;
            match reseed(broker, &run)? {
                Some(jobs) if is_cancelled.is_none() => added += jobs,
                _ => {
                    self.over.insert(run);
                }
            }
        }
        Ok(added)
    }
}

/// The outcome of a job with this result, and the objects that it names.
pub(crate) fn outcome_of(
    worker: &str,
    ticket: &Ticket,
    prepared: &Prepared,
    mut result: JobResult,
) -> Result<Explored> {
    let left = divide(std::mem::take(&mut result.left), CHILDREN);
    let (results, work) = (pack_results(&result)?, result.work());
    let mut objects = vec![(Hash::of(&results), results)];
    let mut children = Vec::new();
    let (rest, parts) = (ticket.budget.after(&work), left.len() as u64);
    for (part, number) in left.into_iter().zip(0..) {
        let states = pack_states(&part)?;
        let hash = Hash::of(&states);
        children.push(Child {
            job: JobId::of(ticket.job.as_str(), hash),
            states: hash,
            weight: prepared.weight_of(&part).unwrap_or_default(),
            count: part.count(),
            budget: rest.part(number, parts),
        });
        objects.push((hash, states));
    }
    let statistics = result.part.statistics;
    let outcome = Outcome {
        worker: worker.to_owned(),
        finished: statistics.finished,
        unknown: statistics.unknown,
        pruned: statistics.pruned,
        excluded: statistics.excluded,
        children,
        results: Some(objects[0].0),
        failure: None,
        work,
        findings: result.findings.len() as u64,
        replayed: statistics.replayed,
        bytes: objects.iter().map(|(_, bytes)| bytes.len() as u64).sum(),
    };
    Ok(Explored { objects, outcome })
}

/// Keeps the lease while something is done.
fn with_heartbeat<T>(
    broker: &Mutex<Box<dyn Broker>>,
    lease: &Lease,
    work: impl FnOnce() -> T,
) -> T {
    let interval = lock(broker).lease_time() / 3;
    let (done, changed) = (Mutex::new(false), Condvar::new());
    /// Ends the heartbeat however the work ends.
    struct Ending<'e>(&'e Mutex<bool>, &'e Condvar);
    impl Drop for Ending<'_> {
        fn drop(&mut self) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.1.notify_all();
        }
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut is_done = done.lock().unwrap_or_else(PoisonError::into_inner);
            while !*is_done {
                let waited = changed.wait_timeout(is_done, interval);
                (is_done, _) = waited.unwrap_or_else(PoisonError::into_inner);
                if !*is_done {
                    drop(is_done);
                    // If it does not get through, the job is handed out
                    // again: no harm but work done twice.
                    let _ = lock(broker).extend(lease);
                    is_done = done.lock().unwrap_or_else(PoisonError::into_inner);
                }
            }
        });
        let _ending = Ending(&done, &changed);
        work()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_results_are_refused() {
        let packed = pack_results(&JobResult::default()).unwrap();
        assert!(unpack_results(&packed).is_ok());
        for end in 0..packed.len() {
            assert!(unpack_results(&packed[..end]).is_err());
        }
    }
}
