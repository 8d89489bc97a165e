//! The status of a run, computed from all outcomes: finished, unknown, pruned, excluded, leased and
//! pending weights sum to exactly 1.

use everett::counted;
use everett::{Budget, WeightSum, Work};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::balance::spread;
use crate::broker::{Broker, JobId, Key, Kind, Outcome, RunId, Ticket};
use crate::error::{Error, Result};
use crate::grant::granted;
use crate::hash::Hash;
use crate::mark::{Pause, time_left};
use crate::outcome::{has_holder, was_in_vain};
use crate::refusal::Refusal;
use crate::run::{first_job, kind_of};
use crate::station::{Round, WorkerStatus};

/// Maximum number of the balancer's decisions that are displayed.
const MOST_SHOWN: usize = 8;

/// The status of a run.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Weight of paths that ended.
    pub finished: WeightSum,
    /// Weight of paths that were given up.
    pub unknown: WeightSum,
    /// Weight of paths that the program pruned.
    pub pruned: WeightSum,
    /// Weight of combinations that a limit excludes.
    pub excluded: WeightSum,
    /// Weight of jobs that workers hold.
    pub leased: WeightSum,
    /// Weight of jobs that wait.
    pub pending: WeightSum,
    /// Number of explored jobs.
    pub jobs: u64,
    /// Number of jobs that workers hold.
    pub jobs_leased: u64,
    /// Number of jobs that wait.
    pub jobs_pending: u64,
    /// Number of waiting jobs that cannot be explored, because their share of the run's budget is
    /// spent.
    pub jobs_stopped: u64,
    /// Number of times that a job was handed out again.
    pub redelivered: u64,
    /// Number of jobs that are explored again, because the broker has lost what they came to.
    pub jobs_again: u64,
    /// Number of these jobs whose outcomes are damaged.
    pub(crate) outcomes_damaged: u64,
    /// The limits of the run as a whole.
    pub limits: Budget,
    /// The part of the budget that no job with budget holds.
    pub free: Budget,
    /// Number of grants to stopped jobs.
    pub(crate) grants: u64,
    /// Number of states that moved from one job to another.
    pub states_moved: u64,
    /// Paths or worlds that ended, forks and instructions.
    pub work: Work,
    /// Number of findings; a finding of several jobs counts for each.
    pub findings: u64,
    /// Instructions that rematerialised states.
    pub replayed: u64,
    /// Size of jobs and results that workers sent, in bytes.
    pub bytes: u64,
    /// Size of the states that moved, in bytes.
    pub bytes_moved: u64,
    /// Number of times that a worker gave states away and continued with the rest.
    pub transfers: u64,
    /// The work of each worker.
    pub workers: BTreeMap<String, WorkerFigures>,
    /// The number of states of each worker, as last reported.
    pub loads: Vec<WorkerStatus>,
    /// The last decision of the balancer.
    pub round: Option<Round>,
    /// Number of segments of the programs that workers have reported as covered.
    pub covered: u64,
    /// The reasons why jobs could not be explored.
    pub failures: Vec<String>,
    /// Whether the run was cancelled.
    pub is_cancelled: bool,
    /// Whether the run is paused.
    pub is_paused: bool,
    /// The reason why a worker has paused the run.
    pub paused_because: Option<String>,
    /// Why a worker does not accept the run; others may.
    pub refusal: Option<Refusal>,
    /// Whether the time limit of the run is reached.
    pub is_late: bool,
    /// The results of explored jobs.
    pub(crate) results: Vec<Recorded>,
    /// Jobs without an outcome.
    pub(crate) open: Vec<Open>,
    /// All jobs that count, and those that are explored again.
    pub(crate) tickets: BTreeMap<JobId, Ticket>,
}

/// The work of a worker.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct WorkerFigures {
    /// Number of explored jobs.
    pub jobs: u64,
    /// Paths or worlds that ended, forks and instructions.
    #[serde(flatten)]
    pub work: Work,
    /// Number of findings.
    pub findings: u64,
}

impl WorkerFigures {
    fn add(&mut self, outcome: &Outcome) {
        self.jobs += 1;
        self.work.add(&outcome.work);
        self.findings = self.findings.saturating_add(outcome.findings);
    }
}

/// Results that an explored job recorded.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// The job.
    pub job: JobId,
    /// The hash of the object with the results.
    pub object: Hash,
    /// The weight of what the results are about, except for what was given up.
    pub weight: WeightSum,
}

/// A job without an outcome.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    /// The job, with its budget.
    pub ticket: Ticket,
    /// Whether a worker holds the job.
    pub is_leased: bool,
    /// Whether the last worker that had the job left it for lack of memory.
    pub is_in_vain: bool,
    /// Whether the job has no budget.
    pub is_stopped: bool,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.weights().into_iter();
        let shown = shown.filter(|(name, weight)| *weight > 0.0 || *name == "finished");
        let shown: Vec<String> = shown
            .map(|(name, weight)| format!("{name} {weight:.6}"))
            .collect();
        let state = self.state();
        let (jobs, leased, pending) = (self.jobs, self.jobs_leased, self.jobs_pending);
        writeln!(
            f,
            "{state}: {} explored, {leased} with workers, {pending} waiting",
            counted(jobs, "job")
        )?;
        writeln!(
            f,
            "{}, {} of jobs, {}",
            counted(self.work.paths, "path"),
            counted(self.findings, "finding"),
            counted(self.workers.len(), "worker")
        )?;
        writeln!(f, "weight {} = 1, exactly", shown.join(" + "))?;
        write!(
            f,
            "{} moved, {} sent, replay {:.1} % of instructions",
            counted(self.states_moved, "state"),
            counted(self.bytes, "byte"),
            100.0 * self.replay_share()
        )?;
        self.show_balance(f)?;
        if self.jobs_again > 0 {
            let jobs = counted(self.jobs_again, "job");
            write!(
                f,
                "\n{jobs} explored again, because the broker lost what had been explored"
            )?;
        }
        if let Some(why) = &self.paused_because {
            write!(f, "\na worker has paused the run: {why}")?;
        }
        if let Some(refusal) = self.refusal.as_ref().filter(|_| !self.is_over()) {
            write!(f, "\n{refusal}")?;
        }
        let mut failures = self.failures.iter();
        failures.try_for_each(|failure| write!(f, "\na job could not be explored: {failure}"))
    }
}

impl Status {
    /// Returns the numbers of states of all workers that have not left, as last reported.
    pub fn lengths(&self) -> Vec<u64> {
        let present = self.loads.iter().filter(|load| !load.has_left);
        present.map(|load| load.states).collect()
    }

    /// Displays the balance of load.
    fn show_balance(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = self.lengths();
        if lengths.is_empty() {
            return Ok(());
        }
        let rounds = self.round.as_ref().map_or(0, |round| round.number);
        let (rounds, transfers) = (
            counted(rounds, "round"),
            counted(self.transfers, "transfer"),
        );
        write!(f, "\n{rounds} of the balancer, {transfers}")?;
        let Some(round) = self.round.as_ref().filter(|_| !self.is_over()) else {
            return Ok(());
        };
        let (mean, deviation) = spread(&lengths);
        write!(
            f,
            "; states a worker: mean {mean:.1}, deviation {deviation:.1}"
        )?;
        for transfer in round.transfers.iter().take(MOST_SHOWN) {
            let (from, to) = (&transfer.from, &transfer.to);
            let states = counted(transfer.states, "state");
            write!(f, "\n    {from} was asked for {states} for {to}")?;
        }
        match round.transfers.len().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n    and {more} more"),
        }
    }

    /// Returns the state of the run in a word or two.
    pub fn state(&self) -> &'static str {
        match (self.is_over(), self.is_cancelled) {
            (true, _) if self.limit().is_some() => "at a limit",
            (true, _) => "finished",
            (false, true) => "cancelled",
            (false, false) if self.is_paused => "paused",
            (false, false) => "running",
        }
    }

    /// Returns whether no remaining job may be explored.
    pub fn is_over(&self) -> bool {
        if self.is_late {
            // Workers are about to hand back what they have.
            return self.jobs_leased == 0;
        }
        let may_go_on = self.free.spent().is_none();
        self.open.iter().all(|open| open.is_stopped && !may_go_on)
    }

    /// Returns the limit of the whole run at which it stopped.
    pub fn limit(&self) -> Option<&'static str> {
        let is_stopped = self.is_over() && !self.open.is_empty();
        let late = self.is_late.then_some("max-time");
        self.free.spent().or(late).filter(|_| is_stopped)
    }

    /// Returns whether everything was explored.
    pub fn is_complete(&self) -> bool {
        let mut explored = self.finished.clone();
        explored.add_sum_checked(&self.excluded) && explored.is_one()
    }

    /// Returns the share of all instructions that rematerialised states.
    pub fn replay_share(&self) -> f64 {
        let all = self.work.instructions.saturating_add(self.replayed);
        match all {
            0 => 0.0,
            all => self.replayed as f64 / all as f64,
        }
    }

    /// Returns the progress as a line for people.
    pub fn progress(&self) -> String {
        let paused = match self.state() {
            "paused" => ", paused",
            _ => "",
        };
        format!(
            "{:.3} % explored, {}, {} with workers, {} waiting, {}{paused}",
            100.0 * (self.finished.to_f64() + self.excluded.to_f64()),
            counted(self.jobs, "job"),
            self.jobs_leased,
            self.jobs_pending,
            counted(self.work.paths, "path")
        )
    }

    fn add(&mut self, job: &JobId, outcome: Outcome) -> bool {
        self.jobs += 1;
        self.work.add(&outcome.work);
        self.findings = self.findings.saturating_add(outcome.findings);
        self.replayed = self.replayed.saturating_add(outcome.replayed);
        self.bytes = self.bytes.saturating_add(outcome.bytes);
        let moved = outcome.given().iter().map(|child| child.count);
        self.states_moved = moved.fold(self.states_moved, u64::saturating_add);
        self.bytes_moved = self.bytes_moved.saturating_add(outcome.bytes_moved);
        self.transfers += u64::from(outcome.kept && !outcome.given().is_empty());
        let worker = self.workers.entry(outcome.worker.clone());
        worker.or_default().add(&outcome);
        self.failures.extend(outcome.failure);
        if let Some(object) = outcome.results {
            let mut weight = outcome.finished.clone();
            weight.add_sum(&outcome.pruned);
            weight.add_sum(&outcome.excluded);
            self.results.push(Recorded {
                job: job.clone(),
                object,
                weight,
            });
        }
        self.finished.add_sum_checked(&outcome.finished)
            && self.unknown.add_sum_checked(&outcome.unknown)
            && self.pruned.add_sum_checked(&outcome.pruned)
            && self.excluded.add_sum_checked(&outcome.excluded)
    }

    fn add_open(&mut self, ticket: Ticket, lease: Option<&[u8]>) -> bool {
        let is_leased = lease.is_some_and(has_holder);
        let (weight, jobs) = match is_leased {
            true => (&mut self.leased, &mut self.jobs_leased),
            false => (&mut self.pending, &mut self.jobs_pending),
        };
        *jobs += 1;
        let fits = weight.add_sum_checked(&ticket.weight);
        let is_stopped = ticket.budget.spent().is_some();
        self.jobs_stopped += u64::from(is_stopped);
        if !is_stopped {
            self.free = self.free.without(&ticket.budget);
        }
        self.open.push(Open {
            ticket,
            is_leased,
            is_in_vain: lease.is_some_and(was_in_vain),
            is_stopped,
        });
        fits
    }

    /// Adds the advisory records of workers. Those that are damaged are ignored: nothing depends on
    /// them.
    fn add_advice(&mut self, broker: &mut dyn Broker, run: &RunId) -> Result<()> {
        let loads = broker.list(Kind::Worker, run)?.into_iter();
        let loads = loads.filter_map(|(_, load)| serde_json::from_slice(&load).ok());
        self.loads.extend(loads);
        self.loads.sort_by(|one, other| one.name.cmp(&other.name));
        let round = broker.look_up(&Key::of_run(Kind::Round, run))?;
        self.round = round.and_then(|round| serde_json::from_slice(&round).ok());
        let refusal = broker.look_up(&Key::of_run(Kind::Refused, run))?;
        self.refusal = refusal.and_then(|refusal| serde_json::from_slice(&refusal).ok());
        let covered = broker.look_up(&Key::of_run(Kind::Coverage, run))?;
        let bits = covered.iter().flatten().map(|byte| byte.count_ones());
        self.covered = bits.map(u64::from).sum();
        Ok(())
    }

    /// Returns the sum of all weights; `None` if it is above 1.
    fn sum(&self) -> Option<WeightSum> {
        let mut sum = self.finished.clone();
        let parts = [
            &self.unknown,
            &self.pruned,
            &self.excluded,
            &self.leased,
            &self.pending,
        ];
        let mut parts = parts.into_iter();
        parts.all(|part| sum.add_sum_checked(part)).then_some(sum)
    }
}

/// Computes the status of a run. Fails if its weights do not sum to 1: something was lost or
/// counted twice then.
pub fn status(broker: &mut dyn Broker, run: &RunId) -> Result<Status> {
    let kind = kind_of(broker, run)?;
    // Grants are read before outcomes, because the outcome that names a job precedes its grant.
    let (granted, grants) = granted(broker, run)?;
    let cancelled = broker.look_up(&Key::of_run(Kind::Cancelled, run))?;
    let paused = Pause::of(broker, run)?;
    let left = time_left(broker, run, &kind, &paused)?;
    let again = broker.list(Kind::Again, run)?.into_iter();
    let again: BTreeSet<JobId> = again.map(|(job, _)| job).collect();
    let leases: BTreeMap<JobId, Vec<u8>> = broker.list(Kind::Lease, run)?.into_iter().collect();
    let outcomes = broker.list(Kind::Outcome, run)?.into_iter();
    let outcomes = outcomes.map(|(job, bytes)| (job, Outcome::read(&bytes).ok()));
    let mut outcomes: BTreeMap<JobId, Option<Outcome>> = outcomes.collect();
    let mut status = Status {
        is_cancelled: cancelled.is_some(),
        is_paused: paused.paused,
        paused_because: paused.why,
        is_late: cancelled.is_none() && left.is_some_and(|left| left.is_zero()),
        redelivered: leases.values().map(|lease| deliveries(lease)).sum(),
        jobs_again: again.len() as u64,
        limits: kind.limits,
        free: kind.limits,
        grants,
        ..Status::default()
    };
    status.add_advice(broker, run)?;
    let mut next = vec![first_job(run, &kind)?.0];
    while let Some(mut ticket) = next.pop() {
        let name = ticket.job.clone();
        if let Some(budget) = granted.get(&name) {
            ticket.budget = *budget;
        }
        status.tickets.insert(name.clone(), ticket.clone());
        let fits = match outcomes.remove(&name) {
            _ if again.contains(&name) => {
                next.push(ticket.again());
                true
            }
            // Nothing can be recorded in the place of a damaged outcome.
            Some(None) => {
                status.jobs_again += 1;
                status.outcomes_damaged += 1;
                next.push(ticket.again());
                true
            }
            Some(Some(outcome)) => {
                if outcome.weight().as_ref() != Some(&ticket.weight) {
                    let what = format!("job {name} has not the weight of what it came to");
                    return Err(Error::Unbalanced(what));
                }
                next.extend(outcome.all_tickets(run, &name));
                status.add(&name, outcome)
            }
            None => status.add_open(ticket, leases.get(&name).map(Vec::as_slice)),
        };
        if !fits {
            return Err(Error::Unbalanced(format!("job {name} weighs too much")));
        }
    }
    status.free = status.free.after(&status.work);
    match status.sum() {
        Some(sum) if sum.is_one() => Ok(status),
        _ => Err(Error::Unbalanced("the weights do not sum to 1".to_owned())),
    }
}

/// Returns how often a job was handed out after the first time.
fn deliveries(lease: &[u8]) -> u64 {
    let lease: serde_json::Value = serde_json::from_slice(lease).unwrap_or_default();
    lease["delivery"].as_u64().unwrap_or(1).saturating_sub(1)
}
