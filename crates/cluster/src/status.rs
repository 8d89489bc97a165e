//! The status of a run, computed from all outcomes: finished, unknown, pruned, excluded, leased and
//! pending weights sum to exactly 1.

use everett::counted;
use everett::{Budget, WeightSum, Work};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

use crate::balance::spread;
use crate::broker::{Broker, JobId, Key, Kind, Outcome, RunId, Ticket};
use crate::error::{Error, Result};
use crate::grant::{grant, granted};
use crate::hash::Hash;
use crate::run::{first_job, kind_of};
use crate::station::{Round, WorkerStatus};

/// Decisions of the balancer that are shown to people.
const MOST_SHOWN: usize = 8;

/// Where a run stands.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Weight of paths that ended.
    pub finished: WeightSum,
    /// Weight of what was given up.
    pub unknown: WeightSum,
    /// Weight of what the program did not want explored.
    pub pruned: WeightSum,
    /// Weight of what a bound excludes.
    pub excluded: WeightSum,
    /// Weight of jobs that workers have.
    pub leased: WeightSum,
    /// Weight of jobs that wait.
    pub pending: WeightSum,
    /// Jobs that were explored.
    pub jobs: u64,
    /// Jobs that workers have.
    pub jobs_leased: u64,
    /// Jobs that wait.
    pub jobs_pending: u64,
    /// Jobs that wait and may do nothing, because their part of the run's budget is spent.
    pub jobs_stopped: u64,
    /// How often a job was handed out again.
    pub redelivered: u64,
    /// What the run may do as a whole.
    pub limits: Budget,
    /// What of that no job has that may still do something.
    pub free: Budget,
    /// How often stopped jobs were granted something.
    pub(crate) grants: u64,
    /// States that moved from one job to another.
    pub states_moved: u64,
    /// Paths or worlds that ended, forks and instructions.
    pub work: Work,
    /// Findings, with those that several jobs met counted by each.
    pub findings: u64,
    /// Instructions that rematerialised states.
    pub replayed: u64,
    /// Bytes of jobs and results that workers sent.
    pub bytes: u64,
    /// Those of the states that moved.
    pub bytes_moved: u64,
    /// How often a worker gave states away and went on with the rest.
    pub transfers: u64,
    /// What each worker did.
    pub workers: BTreeMap<String, WorkerFigures>,
    /// How many states each worker has, as it last reported.
    pub loads: Vec<WorkerStatus>,
    /// What the balancer decided last.
    pub round: Option<Round>,
    /// Segments of the programs that workers have reported as covered.
    pub covered: u64,
    /// Jobs that could not be explored, and why.
    pub failures: Vec<String>,
    /// The run was cancelled.
    pub is_cancelled: bool,
    /// Results of jobs.
    pub(crate) results: Vec<Hash>,
    /// Jobs that have no outcome.
    pub(crate) open: Vec<Open>,
}

/// What a worker did.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct WorkerFigures {
    /// Jobs that it explored.
    pub jobs: u64,
    /// Paths or worlds that ended, forks and instructions.
    #[serde(flatten)]
    pub work: Work,
    /// Findings.
    pub findings: u64,
}

impl WorkerFigures {
    fn add(&mut self, outcome: &Outcome) {
        self.jobs += 1;
        self.work.add(&outcome.work);
        self.findings = self.findings.saturating_add(outcome.findings);
    }
}

/// A job that has no outcome.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    /// The job, with its budget.
    pub ticket: Ticket,
    /// Whether a worker holds it.
    pub is_leased: bool,
    /// Whether it has no budget.
    pub is_stopped: bool,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.weights().into_iter();
        let shown = shown.filter(|(name, weight)| *weight > 0.0 || *name == "finished");
        let shown: Vec<String> = shown
            .map(|(name, weight)| format!("{name} {weight:.6}"))
            .collect();
        let state = match (self.is_over(), self.is_cancelled) {
            (true, _) if self.limit().is_some() => "at a limit",
            (true, _) => "finished",
            (false, true) => "cancelled",
            (false, false) => "running",
        };
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
        let mut failures = self.failures.iter();
        failures.try_for_each(|failure| write!(f, "\na job could not be explored: {failure}"))
    }
}

impl Status {
    /// The numbers of states of workers that are there, as they last reported.
    pub fn lengths(&self) -> Vec<u64> {
        let present = self.loads.iter().filter(|load| !load.has_left);
        present.map(|load| load.states).collect()
    }

    /// How the load is balanced.
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

    /// Whether no job is left that may be explored.
    pub fn is_over(&self) -> bool {
        let may_go_on = self.free.spent().is_none();
        self.open.iter().all(|open| open.is_stopped && !may_go_on)
    }

    /// The limit of the whole run at which it is over.
    pub fn limit(&self) -> Option<&'static str> {
        let is_stopped = self.is_over() && !self.open.is_empty();
        self.free.spent().filter(|_| is_stopped)
    }

    /// Whether everything was explored.
    pub fn is_complete(&self) -> bool {
        let mut explored = self.finished.clone();
        explored.add_sum_checked(&self.excluded) && explored.is_one()
    }

    /// The share of all instructions that rematerialised states.
    pub fn replay_share(&self) -> f64 {
        let all = self.work.instructions.saturating_add(self.replayed);
        match all {
            0 => 0.0,
            all => self.replayed as f64 / all as f64,
        }
    }

    /// The progress, in a line for people.
    pub fn progress(&self) -> String {
        format!(
            "{:.3} % explored, {}, {} with workers, {} waiting, {}",
            100.0 * (self.finished.to_f64() + self.excluded.to_f64()),
            counted(self.jobs, "job"),
            self.jobs_leased,
            self.jobs_pending,
            counted(self.work.paths, "path")
        )
    }

    fn add(&mut self, outcome: Outcome) -> bool {
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
        self.results.extend(outcome.results);
        self.finished.add_sum_checked(&outcome.finished)
            && self.unknown.add_sum_checked(&outcome.unknown)
            && self.pruned.add_sum_checked(&outcome.pruned)
            && self.excluded.add_sum_checked(&outcome.excluded)
    }

    fn add_open(&mut self, ticket: Ticket, is_leased: bool) -> bool {
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
            is_stopped,
        });
        fits
    }

    /// What workers have told each other.
    fn add_advice(&mut self, broker: &mut dyn Broker, run: &RunId) -> Result<()> {
        for (_, load) in broker.list(Kind::Worker, run)? {
            let load = serde_json::from_slice(&load).map_err(Error::damaged)?;
            self.loads.push(load);
        }
        self.loads.sort_by(|one, other| one.name.cmp(&other.name));
        let round = broker.look_up(&Key::of_run(Kind::Round, run))?;
        let round = round.as_deref().map(serde_json::from_slice);
        self.round = round.transpose().map_err(Error::damaged)?;
        let covered = broker.look_up(&Key::of_run(Kind::Coverage, run))?;
        let bits = covered.iter().flatten().map(|byte| byte.count_ones());
        self.covered = bits.map(u64::from).sum();
        Ok(())
    }

    /// The sum of all weights; `None` if it is above 1.
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

/// Where a run stands. Fails if its accounts do not sum to 1: then
/// something was lost, or counted twice.
pub fn status(broker: &mut dyn Broker, run: &RunId) -> Result<Status> {
    let kind = kind_of(broker, run)?;
    // Before the outcomes: each job that is granted something is known by one.
    let (granted, grants) = granted(broker, run)?;
    let cancelled = broker.look_up(&Key::of_run(Kind::Cancelled, run))?;
    let leases: BTreeMap<JobId, Vec<u8>> = broker.list(Kind::Lease, run)?.into_iter().collect();
    let outcomes = broker.list(Kind::Outcome, run)?.into_iter();
    let outcomes = outcomes.map(|(job, bytes)| Ok((job, Outcome::read(&bytes)?)));
    let mut outcomes: BTreeMap<JobId, Outcome> = outcomes.collect::<Result<_>>()?;
    let mut status = Status {
        is_cancelled: cancelled.is_some(),
        redelivered: leases.values().map(|lease| deliveries(lease)).sum(),
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
        let fits = match outcomes.remove(&name) {
            Some(outcome) => {
                if outcome.weight().as_ref() != Some(&ticket.weight) {
                    let what = format!("job {name} has not the weight of what it came to");
                    return Err(Error::Unbalanced(what));
                }
                next.extend(outcome.all_tickets(run, &name));
                status.add(outcome)
            }
            None => {
                let is_leased = leases.contains_key(&name);
                status.add_open(ticket, is_leased)
            }
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

/// How often a job was handed out after the first time.
fn deliveries(lease: &[u8]) -> u64 {
    let lease: serde_json::Value = serde_json::from_slice(lease).unwrap_or_default();
    lease["delivery"].as_u64().unwrap_or(1).saturating_sub(1)
}

/// Puts jobs that nobody has into the queue again, and lets stopped ones have what others did not
/// need. Returns how many fell out of the queue; `None` if nothing is open.
pub fn reseed(broker: &mut dyn Broker, run: &RunId) -> Result<Option<u64>> {
    let status = status(broker, run)?;
    let nobodys = status.open.iter();
    let nobodys = nobodys.filter(|open| !open.is_leased && !open.is_stopped);
    let mut added = 0;
    for open in nobodys {
        broker.publish(&open.ticket)?;
        added += 1;
    }
    grant(broker, run)?;
    Ok((!status.is_over()).then_some(added))
}
