//! A worker: takes a job, explores it for a while, and returns its outcome and the remaining
//! states.

use everett::{
    Job, JobDecision, JobProgress, JobResult, Prepared, Session, States, Supervisor, Work,
};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::broker::{Broker, Explored, Key, Kind, Lease, Outcome, RunId, Ticket, fetch};
use crate::error::{Error, Result};
use crate::grant::grant;
use crate::hash::Hash;
use crate::mark::{Pause, begin, time_left};
use crate::outcome::{CHILDREN, note_dropped, note_lease, outcome_of, settle_again};
use crate::pause::{pause_without_memory, set_aside};
use crate::refusal::{self, Gate, note_refused};
use crate::reseed::{explore_again, is_over_mark, reseed};
use crate::run::{Build, Manifest, RunKind};
use crate::sharing::{CheckCounter, RETRY_PAUSE, Sharing, lock, may_retry, work_of_checks};
use crate::sign::Submitters;
use crate::states::unpack_states;
use crate::station::{Balancing, Round, Station};
use crate::status::status;

/// Number of times that an idle worker asks for a job before it searches for jobs that fell out of
/// the queue.
const IDLE_BEFORE_RESEEDING: u32 = 50;
/// The time for which an idle worker waits before it asks again.
const PAUSE: Duration = Duration::from_millis(100);
/// The same for a worker that has been idle for a while and knows of no run that goes on.
const LONG_PAUSE: Duration = Duration::from_millis(500);
/// Number of times that a worker asks for a job before it waits longer.
const IDLE_BEFORE_LONG_PAUSES: u32 = 100;

/// The configuration of a worker.
#[derive(Clone, Debug)]
pub struct WorkerSpec {
    /// The name of the worker, for people.
    pub name: String,
    /// This build.
    pub build: Build,
    /// Memory limit, beyond which the worker spills states; by default that of the run.
    pub max_memory: Option<u64>,
    /// Folder for spilled states; by default the folder for temporary files.
    pub scratch: Option<PathBuf>,
    /// The time that the worker waits for a job before it leaves; by default it never leaves.
    pub idle: Option<Duration>,
    /// Whose runs the worker accepts; by default all.
    pub accept: Option<Submitters>,
}

/// A run that a worker has loaded.
struct Known {
    prepared: Prepared,
    work: u64,
    kind: RunKind,
}

/// The result of asking for a job.
pub enum Taken {
    /// There was no job.
    Nothing,
    /// The job had an outcome already, or its run was cancelled or is paused.
    Over,
    /// The worker does not accept the run of the job, and has left it to others.
    Refused(RunId, String),
    /// A job to explore.
    Job(Box<TakenJob>),
}

/// A job to explore.
pub struct TakenJob {
    /// The lease of the job.
    pub lease: Lease,
    /// The time of the session at which the time of the run is over.
    deadline: Option<Duration>,
    /// The run and the states of the job; or the reason why it cannot be explored.
    what: Result<(Rc<Known>, States), String>,
}

/// A step of a worker.
#[derive(Debug)]
pub enum WorkerStep {
    /// There was no job.
    Nothing,
    /// A job had its outcome already, or its run was cancelled or is paused.
    Dropped,
    /// The worker explored a job; this is the outcome that counts.
    Explored(Box<Outcome>),
    /// The worker was idle, and balanced the load.
    Balanced(Round),
    /// The worker has too little memory for any part of a job. The job is handed out again when its
    /// lease ends.
    NoMemory(RunId),
    /// The same, and no worker explores anything of the run: the worker has paused it.
    Paused(RunId),
    /// Records of a run at the broker are damaged, or belong to another version of Everett. The
    /// worker goes on with other runs.
    SetAside(RunId, String),
    /// The worker does not accept a run, for this reason, and leaves its jobs to others.
    Refused(RunId, String),
}

/// A worker of a cluster.
pub struct Worker<'s> {
    spec: WorkerSpec,
    session: &'s Session,
    gate: Gate,
    runs: BTreeMap<RunId, Rc<Known>>,
    /// Runs without open jobs, and cancelled ones.
    over: BTreeSet<RunId>,
    /// Runs that were not over when the worker first saw them.
    open: BTreeSet<RunId>,
    /// Runs that were paused when the worker last looked at them.
    paused: BTreeSet<RunId>,
    /// Runs whose records cannot be read, with the reason, since the last step.
    unreadable: Vec<(RunId, String)>,
    /// The time at which the worker last had a job.
    worked_at: Instant,
    station: Station,
}

/// A supervisor that explores a job while a function returns `true`.
struct WhileAsked<'g>(&'g mut dyn FnMut() -> bool);

impl Supervisor for WhileAsked<'_> {
    fn check(&mut self, _: &JobProgress<'_>, _: &mut Vec<u8>) -> JobDecision {
        match (self.0)() {
            true => JobDecision::GoOn,
            false => JobDecision::Leave,
        }
    }

    fn split(&mut self, _: JobResult) -> bool {
        false
    }
}

/// Returns the message of a panic.
fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

impl<'s> Worker<'s> {
    /// Creates a worker.
    pub fn new(spec: WorkerSpec, session: &'s Session) -> Worker<'s> {
        Worker {
            station: Station::new(&spec.name),
            gate: Gate::new(spec.accept.clone()),
            spec,
            session,
            runs: BTreeMap::new(),
            over: BTreeSet::new(),
            open: BTreeSet::new(),
            paused: BTreeSet::new(),
            unreadable: Vec::new(),
            worked_at: Instant::now(),
        }
    }

    /// Takes a job from the broker.
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
            match Outcome::read(&recorded) {
                Ok(outcome) => settle_again(broker, &lease, &outcome)?,
                // Another job replaces it. All workers would stumble over this one.
                Err(_) => drop(broker.acknowledge(&lease)?),
            }
            return Ok(Taken::Over);
        }
        let pause = Pause::of(broker, run)?;
        if pause.paused {
            self.paused.insert(run.clone());
            set_aside(broker, &lease)?;
            return Ok(Taken::Over);
        }
        self.paused.remove(run);
        // It has jobs again if it was over.
        self.over.remove(run);
        let what = match self.open(broker, &lease.ticket) {
            Ok(what) => Ok(what),
            Err(Error::Damaged(_)) if are_created_again(broker, &lease.ticket)? => {
                broker.acknowledge(&lease)?;
                return Ok(Taken::Over);
            }
            Err(error @ (Error::Damaged(_) | Error::Everett(_))) => Err(error.to_string()),
            Err(Error::NoRun(_)) => {
                broker.acknowledge(&lease)?;
                return Ok(Taken::Over);
            }
            Err(Error::NotAccepted(why)) => {
                note_refused(broker, run, (&self.spec.name, &why))?;
                broker.release(&lease, refusal::PAUSE)?;
                return Ok(Taken::Refused(lease.ticket.run, why));
            }
            Err(error) => {
                broker.release(&lease, Duration::ZERO)?;
                return Err(error);
            }
        };
        let mut deadline = None;
        if let Ok((known, _)) = &what {
            begin(broker, run, &known.kind, &pause)?;
            let left = time_left(broker, run, &known.kind, &pause)?;
            if left.is_some_and(|left| left.is_zero()) {
                note_dropped(broker, &lease)?;
                broker.acknowledge(&lease)?;
                return Ok(Taken::Over);
            }
            deadline = left.and_then(|left| self.session.now().checked_add(left));
        }
        note_lease(broker, &lease.ticket, &self.spec.name, lease.delivery)?;
        Ok(Taken::Job(Box::new(TakenJob {
            lease,
            deadline,
            what,
        })))
    }

    /// Returns the run and the states of a job.
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

    fn prepare(&mut self, broker: &mut dyn Broker, run: &RunId) -> Result<Known> {
        let manifest = self.gate.manifest(broker, run)?;
        let manifest = Manifest::read(&manifest, &self.spec.build)?;
        let (work, kind) = (manifest.work.max(1), manifest.kind);
        let mut parcel = manifest.parcel(broker)?;
        parcel.spec.max_memory = self.spec.max_memory.or(parcel.spec.max_memory);
        // A file that is not a program must not end the worker.
        let prepared = catch_unwind(AssertUnwindSafe(|| Prepared::of(&parcel, self.session)));
        let prepared = prepared.map_err(|panic| Error::damaged(panic_text(&*panic)))??;
        Ok(Known {
            prepared,
            work,
            kind,
        })
    }

    /// Explores a job. Calls `go_on` after each piece of work.
    pub fn explore(&self, job: &TakenJob, go_on: &mut dyn FnMut() -> bool) -> Result<Explored> {
        let ticket = &job.lease.ticket;
        let (known, states) = match &job.what {
            Ok(what) => what,
            Err(error) => return Ok(self.failed(ticket, error)),
        };
        let mut supervisor = WhileAsked(go_on);
        let work = (known.work, known.work);
        let explored = self.run_job((known, states), job, work, &mut supervisor);
        self.judge(ticket, known, explored)
    }

    /// Explores a job, gives states to other workers on request, and continues with the rest.
    /// Returns the lease of that rest with its result; `None` if other workers have ended one of
    /// these jobs.
    fn share(
        &mut self,
        broker: &Mutex<Box<dyn Broker>>,
        job: &TakenJob,
        tell: &mut dyn FnMut(&WorkerStep),
    ) -> Result<Option<(Lease, Explored)>> {
        let lease = job.lease.clone();
        let (known, states) = match &job.what {
            Ok(what) => what,
            Err(error) => {
                let explored = self.failed(&lease.ticket, error);
                return Ok(Some((lease, explored)));
            }
        };
        let (work, ticket) = (work_of_checks(known.work), lease.ticket.clone());
        // The station is lent to the supervisor while the worker explores.
        let mut station = std::mem::replace(&mut self.station, Station::new(""));
        let mut sharing = Sharing {
            broker,
            station: &mut station,
            weigh: &|states| known.prepared.weight_of(states),
            lease,
            checks: CheckCounter::default(),
            check_work: work.1,
            covered: 0,
            is_short: false,
            failure: None,
            stop: &self.session.stop,
            tell: &mut |outcome| tell(&WorkerStep::Explored(Box::new(outcome))),
        };
        let explored = self.run_job((known, states), job, work, &mut sharing);
        let (lease, failure) = (sharing.lease, sharing.failure);
        self.station = station;
        // The balancer need not ask this worker any more; it does no harm if the report does not
        // arrive.
        let _ = self.station.report(&mut **lock(broker), &ticket.run, 0);
        match (explored, failure) {
            (_, Some(Error::Damaged(what))) => {
                let failed = self.failed(&lease.ticket, &what);
                Ok(Some((lease, failed)))
            }
            (_, Some(error)) => Err(error),
            (Ok(None), None) => Ok(None),
            (explored, None) => {
                let explored = self.judge(&lease.ticket, known, explored)?;
                Ok(Some((lease, explored)))
            }
        }
    }

    /// Explores states. Returns `None` if the result is not wanted, and a text if it fails.
    fn run_job(
        &self,
        (known, states): (&Known, &States),
        taken: &TakenJob,
        (first, work): (u64, u64),
        supervisor: &mut dyn Supervisor,
    ) -> Result<Option<JobResult>, String> {
        let ticket = &taken.lease.ticket;
        let spill = self.spill_of(ticket);
        let explored = catch_unwind(AssertUnwindSafe(|| {
            let job = Job {
                states: states.clone(),
                budget: ticket.budget,
                deadline: taken.deadline,
                first,
                work,
                supervisor,
                parts: CHILDREN,
                spill: Some(spill.clone()),
            };
            known.prepared.explore(job, self.session)
        }));
        // The file contains nothing that is still needed.
        let _ = std::fs::remove_file(spill);
        match explored {
            Ok(explored) => explored.map_err(|error| error.to_string()),
            // The next worker that gets the job would panic as well.
            Err(panic) => Err(panic_text(&*panic).to_owned()),
        }
    }

    /// Converts the result of an exploration to the result of the job.
    fn judge(
        &self,
        ticket: &Ticket,
        known: &Known,
        explored: Result<Option<JobResult>, String>,
    ) -> Result<Explored> {
        match explored {
            Ok(Some(result)) => self.explored(ticket, &known.prepared, result),
            Ok(None) => Ok(self.failed(ticket, "a part of it was not wanted")),
            Err(error) => Ok(self.failed(ticket, &error)),
        }
    }

    /// Returns the path of the spill file of a job.
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
        let weigh = |states: &States| prepared.weight_of(states);
        let explored = outcome_of(&self.spec.name, ticket, &weigh, result)?;
        match explored.outcome.weight() {
            Some(weight) if weight == ticket.weight => Ok(explored),
            _ => Ok(self.failed(ticket, "states were lost while it was explored")),
        }
    }

    /// Creates the outcome of a job that cannot be explored: all of it is unknown, and the run is
    /// not complete.
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

    /// Records the result of a job. Returns the outcome that counts.
    pub fn finish(
        &mut self,
        broker: &mut dyn Broker,
        job: &TakenJob,
        explored: &Explored,
    ) -> Result<Outcome> {
        Worker::finish_lease(broker, &job.lease, explored)
    }

    fn finish_lease(
        broker: &mut dyn Broker,
        lease: &Lease,
        explored: &Explored,
    ) -> Result<Outcome> {
        let outcome = broker.finish(lease, explored)?;
        if lease.ticket.budget.is_limited() && outcome.children.is_empty() {
            // Other jobs get the budget that this one did not use.
            grant(broker, &lease.ticket.run)?;
        }
        Ok(outcome)
    }

    /// Takes a job and explores it, if there is one. Calls `tell` for jobs that end while the
    /// worker keeps the rest, before it returns the last step.
    pub fn step(
        &mut self,
        broker: &Mutex<Box<dyn Broker>>,
        tell: &mut dyn FnMut(&WorkerStep),
    ) -> Result<WorkerStep> {
        let job = match self.take(&mut **lock(broker))? {
            Taken::Nothing => return Ok(WorkerStep::Nothing),
            Taken::Over => return Ok(WorkerStep::Dropped),
            Taken::Refused(run, why) => return Ok(WorkerStep::Refused(run, why)),
            Taken::Job(job) => job,
        };
        let shared = with_heartbeat(broker, &job.lease, || self.share(broker, &job, tell));
        self.worked_at = Instant::now();
        let shared = shared?;
        let Some((lease, explored)) = shared else {
            return Ok(WorkerStep::Dropped);
        };
        // If that were recorded, the same job would be handed out at once, again and again.
        let is_late = job.deadline.is_some_and(|at| self.session.now() >= at);
        if has_done_nothing(&explored.outcome)
            && !is_late
            && !self.session.stop.load(Ordering::Relaxed)
        {
            // Where this fails, the job is handed out once more.
            let paused = pause_without_memory(&mut **lock(broker), &lease, &self.spec.name);
            let paused = paused.unwrap_or(false);
            let run = lease.ticket.run;
            return Ok(match paused {
                true => WorkerStep::Paused(run),
                false => WorkerStep::NoMemory(run),
            });
        }
        let mut tries = 0;
        loop {
            let finished = Worker::finish_lease(&mut **lock(broker), &lease, &explored);
            match finished {
                Err(Error::Broker(_)) if may_retry(tries, &self.session.stop) => tries += 1,
                // Its outcome is recorded, and damaged; or the accounts of the run are, which idle
                // workers find out.
                Err(error) if is_about_run(&error) => {
                    lock(broker).acknowledge(&lease)?;
                    return Ok(WorkerStep::Dropped);
                }
                finished => return Ok(WorkerStep::Explored(Box::new(finished?))),
            }
            sleep(RETRY_PAUSE);
        }
    }

    /// Balances the load of all runs that are not over, unless another worker does; called by an
    /// idle worker. If `looks` is set, finds out whether runs in which nobody has states are over.
    pub fn balance(&mut self, broker: &mut dyn Broker, looks: bool) -> Result<Vec<Round>> {
        let mut rounds = Vec::new();
        for run in self.open_runs(broker)? {
            match self.balance_run(broker, &run, looks) {
                Ok(round) => rounds.extend(round),
                Err(error) if is_about_run(&error) => self.set_aside(&run, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(rounds)
    }

    fn balance_run(
        &mut self,
        broker: &mut dyn Broker,
        run: &RunId,
        looks: bool,
    ) -> Result<Option<Round>> {
        match Pause::of(broker, run)?.paused {
            true => self.paused.insert(run.clone()),
            false => self.paused.remove(run),
        };
        match self.station.balance(broker, run)? {
            Balancing::Balanced(round) => {
                // Jobs that nobody seems to have are published again later: a worker may
                // just be loading the program of one.
                let is_over = looks && round.mean == 0.0 && status(broker, run)?.is_over();
                if is_over && self.look(broker, run)?.is_none() {
                    self.station.close(broker, run, &round)?;
                }
                return Ok(Some(round));
            }
            Balancing::Other(true) if is_marked_as_over(broker, run)? => {
                self.close(broker, run.clone());
            }
            Balancing::Other(_) => {}
        }
        Ok(None)
    }

    /// Returns the runs that may have jobs. Looks only once at runs that are over, because a broker
    /// may have many of them.
    fn open_runs(&mut self, broker: &mut dyn Broker) -> Result<Vec<RunId>> {
        let runs: BTreeSet<RunId> = broker.runs()?.into_iter().collect();
        // Others may have been removed.
        self.over.retain(|run| runs.contains(run));
        self.open.retain(|run| runs.contains(run));
        self.paused.retain(|run| runs.contains(run));
        self.gate.retain(|run| runs.contains(run));
        for run in runs {
            if self.over.contains(&run) || self.open.contains(&run) {
                continue;
            }
            if self.gate.is_closed(broker, &run)? {
                continue;
            }
            match is_marked_as_over(broker, &run)? {
                true => self.over.insert(run),
                false => self.open.insert(run),
            };
        }
        Ok(self.open.iter().cloned().collect())
    }

    /// Stops looking at a run, after a last report.
    fn close(&mut self, broker: &mut dyn Broker, run: RunId) {
        // It does no harm if this report does not arrive.
        let _ = self.station.report(broker, &run, 0);
        self.forget(run);
    }

    /// Stops looking at a run.
    fn forget(&mut self, run: RunId) {
        self.runs.remove(&run);
        self.open.remove(&run);
        self.over.insert(run);
    }

    /// Stops looking at a run whose records cannot be read, so that it holds up no other.
    fn set_aside(&mut self, run: &RunId, why: &Error) {
        self.forget(run.clone());
        self.unreadable.push((run.clone(), why.to_string()));
    }

    /// Explores jobs until the stop flag is set or the worker has been idle long enough. Retries
    /// for a while if the broker cannot be reached.
    pub fn run(
        &mut self,
        broker: &Mutex<Box<dyn Broker>>,
        tell: &mut dyn FnMut(&WorkerStep),
    ) -> Result<()> {
        let worked = self.run_until_stopped(broker, tell);
        // It does no harm if this report does not arrive.
        let _ = self.station.leave(&mut **lock(broker));
        worked
    }

    fn run_until_stopped(
        &mut self,
        broker: &Mutex<Box<dyn Broker>>,
        tell: &mut dyn FnMut(&WorkerStep),
    ) -> Result<()> {
        let (mut idle, mut waited, mut failures) = (0u32, Duration::ZERO, 0);
        let mut refused = BTreeSet::new();
        self.worked_at = Instant::now();
        while !self.session.stop.load(Ordering::Relaxed) {
            let did = match self.step(broker, tell) {
                Err(Error::Broker(_))
                    if may_retry(failures, &self.session.stop) && !self.is_tired() =>
                {
                    failures += 1;
                    sleep(RETRY_PAUSE);
                    continue;
                }
                did => did?,
            };
            failures = 0;
            if let WorkerStep::Refused(run, _) = &did {
                // It gets the job again and again, if no other worker takes it.
                if refused.insert(run.clone()) {
                    tell(&did);
                }
                continue;
            }
            tell(&did);
            for (run, why) in std::mem::take(&mut self.unreadable) {
                tell(&WorkerStep::SetAside(run, why));
            }
            if !matches!(
                did,
                WorkerStep::Nothing | WorkerStep::NoMemory(_) | WorkerStep::Paused(_)
            ) {
                (idle, waited) = (0, Duration::ZERO);
                continue;
            }
            idle += 1;
            let pause = match self.open.is_subset(&self.paused) && idle > IDLE_BEFORE_LONG_PAUSES {
                true => LONG_PAUSE,
                false => PAUSE,
            };
            waited += pause;
            for run in self.open.difference(&self.paused) {
                self.station.waited(run, pause);
            }
            if Station::is_round_due(idle) {
                // It does no harm if advisory records do not arrive.
                let looks = idle.is_power_of_two();
                let rounds = self.balance(&mut **lock(broker), looks).unwrap_or_default();
                let rounds = rounds.into_iter().map(WorkerStep::Balanced);
                rounds.for_each(|round| tell(&round));
            }
            if self.spec.idle.is_some_and(|most| waited > most) {
                return Ok(());
            }
            if idle.is_multiple_of(IDLE_BEFORE_RESEEDING) {
                match self.reseed(&mut **lock(broker)) {
                    // The next request for a job notices whether the broker can be reached.
                    Err(Error::Broker(_)) => {}
                    looked => drop(looked?),
                }
            }
            sleep(pause);
        }
        Ok(())
    }

    /// Returns whether the worker has had no job for so long that it leaves even if it cannot ask
    /// for one.
    fn is_tired(&self) -> bool {
        let most = self.spec.idle;
        most.is_some_and(|most| self.worked_at.elapsed() > most)
    }

    /// Publishes jobs again that fell out of the queue, which no broker should allow.
    pub fn reseed(&mut self, broker: &mut dyn Broker) -> Result<u64> {
        let mut added = 0;
        for run in self.open_runs(broker)? {
            added += self.look(broker, &run)?.unwrap_or(0);
        }
        Ok(added)
    }

    /// Does the same for a run. Returns `None` if the run is over.
    fn look(&mut self, broker: &mut dyn Broker, run: &RunId) -> Result<Option<u64>> {
        let added = match is_marked_as_over(broker, run)? {
            true => Ok(None),
            false => reseed(broker, run),
        };
        match added {
            Ok(None) => self.close(broker, run.clone()),
            // It may have been removed meanwhile.
            Err(Error::NoRun(_)) => {
                self.forget(run.clone());
                return Ok(None);
            }
            Err(error) if is_about_run(&error) => {
                self.set_aside(run, &error);
                return Ok(None);
            }
            _ => {}
        }
        added
    }
}

/// Returns whether nothing of a job was explored, and nothing is known about why. Only the memory
/// limit ends a job before any work is done.
fn has_done_nothing(outcome: &Outcome) -> bool {
    outcome.failure.is_none() && outcome.work == Work::default() && !outcome.children.is_empty()
}

/// Returns whether an error says that the records of a run cannot be read. No other run is affected.
fn is_about_run(error: &Error) -> bool {
    matches!(
        error,
        Error::Damaged(_) | Error::Unbalanced(_) | Error::OtherBuild { .. }
    )
}

/// Returns whether a run was cancelled, or whether a worker has seen that it is over.
fn is_marked_as_over(broker: &mut dyn Broker, run: &RunId) -> Result<bool> {
    let over = broker.look_up(&Key::of_run(Kind::Over, run))?;
    let over = over.filter(|mark| is_over_mark(mark));
    let cancelled = broker.look_up(&Key::of_run(Kind::Cancelled, run))?;
    Ok(over.or(cancelled).is_some())
}

/// Returns whether the states of a job are lost, and another job creates them again.
fn are_created_again(broker: &mut dyn Broker, ticket: &Ticket) -> Result<bool> {
    match fetch(broker, ticket.states) {
        Err(Error::Damaged(_)) => {}
        there => return there.map(|_| false),
    }
    match explore_again(broker, &ticket.run, std::slice::from_ref(&ticket.job)) {
        // The accounts of a run that is damaged otherwise cannot be read.
        Err(Error::Damaged(_) | Error::Unbalanced(_) | Error::NoRun(_)) => Ok(false),
        again => again.map(|jobs| jobs > 0),
    }
}

/// Extends the lease while a function runs.
fn with_heartbeat<T>(
    broker: &Mutex<Box<dyn Broker>>,
    lease: &Lease,
    work: impl FnOnce() -> T,
) -> T {
    let interval = lock(broker).lease_time() / 3;
    let (done, changed) = (Mutex::new(false), Condvar::new());
    /// Ends the heartbeat when it is dropped, even if the work panics.
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
                    // If this does not arrive, the job is handed out again, which only costs time.
                    let _ = lock(broker).extend(lease);
                    is_done = done.lock().unwrap_or_else(PoisonError::into_inner);
                }
            }
        });
        let _ending = Ending(&done, &changed);
        work()
    })
}
