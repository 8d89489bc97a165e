//! The accounts of a run: finished, given up, excluded, leased and pending weights sum to 1, exactly.

use everett::WeightSum;
use std::collections::BTreeMap;

use crate::broker::{Broker, JobId, Key, Kind, Outcome, RunId, Ticket};
use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::run::first_job;

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
    /// States that moved from one job to another.
    pub states_moved: u64,
    /// Paths that ended.
    pub paths: u64,
    /// Findings, with those that several jobs met counted by each.
    pub findings: u64,
    /// Instructions, without those that rematerialised states.
    pub instructions: u64,
    /// Instructions that rematerialised states.
    pub replayed: u64,
    /// Bytes of jobs and results that workers sent.
    pub bytes: u64,
    /// Jobs by the worker that explored them.
    pub workers: BTreeMap<String, u64>,
    /// Jobs that could not be explored, and why.
    pub failures: Vec<String>,
    /// The run was cancelled.
    pub is_cancelled: bool,
    /// Results of jobs.
    pub(crate) results: Vec<Hash>,
    /// Jobs that have no outcome, and whether a worker has them.
    pub(crate) open: Vec<(Ticket, bool)>,
}

impl Status {
    /// Nothing is left.
    pub fn is_over(&self) -> bool {
        self.open.is_empty()
    }

    /// Everything was explored.
    pub fn is_complete(&self) -> bool {
        let mut explored = self.finished.clone();
        explored.add_sum_checked(&self.excluded) && explored.is_one()
    }

    /// The share of all instructions that rematerialised states.
    pub fn replay_share(&self) -> f64 {
        let all = self.instructions.saturating_add(self.replayed);
        match all {
            0 => 0.0,
            all => self.replayed as f64 / all as f64,
        }
    }

    fn add(&mut self, outcome: Outcome) -> bool {
        self.jobs += 1;
        self.paths = self.paths.saturating_add(outcome.paths);
        self.findings = self.findings.saturating_add(outcome.findings);
        self.instructions = self.instructions.saturating_add(outcome.instructions);
        self.replayed = self.replayed.saturating_add(outcome.replayed);
        self.bytes = self.bytes.saturating_add(outcome.bytes);
        let moved = outcome.children.iter().map(|child| child.count);
        self.states_moved = moved.fold(self.states_moved, u64::saturating_add);
        *self.workers.entry(outcome.worker).or_default() += 1;
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
        self.open.push((ticket, is_leased));
        fits
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

/// Where a run stands. Fails if its accounts do not sum to 1: then something was lost, or counted twice.
pub fn status(broker: &mut dyn Broker, run: &RunId) -> Result<Status> {
    if broker.look_up(&Key::of_run(Kind::Run, run))?.is_none() {
        return Err(Error::NoRun(run.to_string()));
    }
    let cancelled = broker.look_up(&Key::of_run(Kind::Cancelled, run))?;
    let leases: BTreeMap<JobId, Vec<u8>> = broker.list(Kind::Lease, run)?.into_iter().collect();
    let outcomes = broker.list(Kind::Outcome, run)?.into_iter();
    let outcomes = outcomes.map(|(job, bytes)| Ok((job, Outcome::read(&bytes)?)));
    let mut outcomes: BTreeMap<JobId, Outcome> = outcomes.collect::<Result<_>>()?;
    let mut status = Status {
        is_cancelled: cancelled.is_some(),
        ..Status::default()
    };
    let mut next = vec![first_job(run).0];
    while let Some(ticket) = next.pop() {
        let name = ticket.job.clone();
        let fits = match outcomes.remove(&name) {
            Some(outcome) => {
                if outcome.weight().as_ref() != Some(&ticket.weight) {
                    let what = format!("job {name} has not the weight of what it came to");
                    return Err(Error::Unbalanced(what));
                }
                next.extend(outcome.tickets(run, &name));
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
    match status.sum() {
        Some(sum) if sum.is_one() => Ok(status),
        _ => Err(Error::Unbalanced("the weights do not sum to 1".to_owned())),
    }
}

/// Puts jobs that nobody has into the queue again. Returns how many; `None` if nothing is open.
pub fn reseed(broker: &mut dyn Broker, run: &RunId) -> Result<Option<u64>> {
    let status = status(broker, run)?;
    let nobodys = status.open.iter().filter(|(_, is_leased)| !is_leased);
    let mut added = 0;
    for (ticket, _) in nobodys {
        broker.publish(ticket)?;
        added += 1;
    }
    Ok((!status.is_over()).then_some(added))
}
