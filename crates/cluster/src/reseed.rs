//! Closes gaps: publishes jobs again that fell out of the queue, and lets jobs be explored again if
//! the broker has lost what they came to or the states that they left. A record replaces the outcome
//! of such a job, and with it all jobs that it created, by one job with the same states: accounts
//! stay exact, and workers that still explore one of the replaced jobs do no harm.

use std::collections::BTreeSet;

use crate::broker::{Broker, JobId, Key, Kind, RunId, Ticket, fetch};
use crate::error::{Error, Result};
use crate::grant::grant;
use crate::hash::Hash;
use crate::run::{first_job, kind_of};
use crate::status::{Open, Status, status};

/// Maximum number of jobs of a run that are explored again. A broker that loses more loses what is
/// explored again, too.
const MOST_AGAIN: usize = 64;
/// The value of the mark [`Kind::Over`] of a run whose jobs are explored again after its end.
const OPEN: &[u8] = b"open";

/// Returns whether the mark that a run is over still holds.
pub(crate) fn is_over_mark(mark: &[u8]) -> bool {
    mark != OPEN
}

/// Publishes the jobs that no worker holds again, and grants stopped jobs the budget that others
/// did not use. Of a run that is over, lets jobs be explored again whose results the broker has
/// lost. Returns the number of published jobs; `None` if nothing is left to do, which is noted, so
/// that no worker looks at it again.
pub fn reseed(broker: &mut dyn Broker, run: &RunId) -> Result<Option<u64>> {
    let status = status(broker, run)?;
    // Workers drop jobs that are not to be explored now, and note that nobody has them.
    let drops = status.is_paused || status.is_late;
    let mut added = 0;
    for open in nobodys(broker, run, &status)? {
        if drops && !open.is_leased {
            continue;
        }
        broker.publish(&open.ticket)?;
        added += 1;
    }
    if status.is_over() {
        let lost = unlisted(broker, &status)?;
        let again = match lost.is_empty() {
            true => 0,
            false => explore_again(broker, run, &lost)?,
        };
        if again > 0 {
            return Ok(Some(again));
        }
        broker.note(&Key::of_run(Kind::Over, run), b"{}")?;
        return Ok(None);
    }
    grant(broker, run)?;
    Ok(Some(added))
}

/// Publishes the jobs that no worker holds and that are not in the queue. Returns their number.
pub(crate) fn publish_missing(broker: &mut dyn Broker, run: &RunId) -> Result<u64> {
    let status = status(broker, run)?;
    let queued = broker.queued(run)?;
    let mut added = 0;
    for open in nobodys(broker, run, &status)? {
        if !queued.contains(&open.ticket.job) {
            broker.publish_again(&open.ticket)?;
            added += 1;
        }
    }
    Ok(added)
}

/// Returns the jobs with budget that no worker holds.
fn nobodys<'s>(broker: &mut dyn Broker, run: &RunId, status: &'s Status) -> Result<Vec<&'s Open>> {
    let fallen = fallen_out(broker, run, status)?;
    let open = status.open.iter().filter(|open| !open.is_stopped);
    let nobodys = open.filter(|open| !open.is_leased || fallen.contains(&open.ticket.job));
    Ok(nobodys.collect())
}

/// Opens a run again that was found to be over and is not any more, because the broker has lost
/// outcomes since. Workers look at no run that is over. Returns whether it is open again.
pub(crate) fn reopen(broker: &mut dyn Broker, run: &RunId) -> Result<bool> {
    let over = Key::of_run(Kind::Over, run);
    if broker.look_up(&over)?.is_none() {
        return Ok(false);
    }
    let status = status(broker, run)?;
    if status.is_over() || status.is_cancelled {
        return Ok(false);
    }
    broker.note(&over, OPEN)?;
    reseed(broker, run)?;
    Ok(true)
}

/// Returns the jobs that a worker had and nobody has now: neither they nor those of which they are
/// the rest are in the queue. Their worker has finished them, and the broker has lost the outcome,
/// or it has lost them before the worker died.
fn fallen_out(broker: &mut dyn Broker, run: &RunId, status: &Status) -> Result<BTreeSet<JobId>> {
    let leased = status.open.iter().filter(|open| open.is_leased);
    let mut fallen: BTreeSet<JobId> = leased.map(|open| open.ticket.job.clone()).collect();
    if fallen.is_empty() {
        return Ok(fallen);
    }
    let queued = broker.queued(run)?;
    fallen.retain(|job| {
        let mut next = Some(job.clone());
        while let Some(job) = next {
            if queued.contains(&job) {
                return false;
            }
            next = status.tickets.get(&job).and_then(Ticket::creator);
        }
        true
    });
    Ok(fallen)
}

/// Returns the jobs whose results or states the broker does not list any more.
pub(crate) fn unlisted(broker: &mut dyn Broker, status: &Status) -> Result<Vec<JobId>> {
    let there: BTreeSet<Hash> = broker.objects()?.into_iter().collect();
    let results = status.results.iter().map(|one| (&one.job, one.object));
    let states = status.open.iter().map(|one| &one.ticket);
    let states = states.map(|ticket| (&ticket.job, ticket.states));
    let lost = results.chain(states);
    let lost = lost.filter(|(_, object)| !there.contains(object));
    Ok(lost.map(|(job, _)| job.clone()).collect())
}

/// Lets jobs be explored again whose results or states are lost. Begins at the nearest job whose
/// states are there; those of the first job always are. Returns the number of published jobs; 0 if
/// nothing can be done.
pub(crate) fn explore_again(broker: &mut dyn Broker, run: &RunId, lost: &[JobId]) -> Result<u64> {
    let before = status(broker, run)?;
    if before.is_cancelled || before.jobs_again as usize >= MOST_AGAIN {
        return Ok(0);
    }
    for job in lost {
        let results = before.results.iter().filter(|one| one.job == *job);
        for recorded in results.map(|one| one.object).collect::<Vec<_>>() {
            discard_damaged(broker, recorded)?;
        }
        if let Some(from) = nearest_whole(broker, run, &before, job)? {
            broker.record(&Key::of_job(Kind::Again, run, &from), b"{}")?;
        }
    }
    let over = Key::of_run(Kind::Over, run);
    if broker.look_up(&over)?.is_some() {
        broker.note(&over, OPEN)?;
    }
    let mut published = 0;
    for open in status(broker, run)?.open {
        if open.ticket.is_again() && !open.is_leased {
            published += 1;
            if !open.is_stopped {
                broker.publish(&open.ticket)?;
            }
        }
    }
    grant(broker, run)?;
    Ok(published)
}

/// Returns the nearest job at or above this one that was explored and whose states are there.
fn nearest_whole(
    broker: &mut dyn Broker,
    run: &RunId,
    status: &Status,
    job: &JobId,
) -> Result<Option<JobId>> {
    let is_open = |job: &JobId| status.open.iter().any(|open| open.ticket.job == *job);
    let mut next = Some(job.clone());
    while let Some(job) = next {
        let Some(ticket) = status.tickets.get(&job) else {
            return Ok(None);
        };
        let mut is_whole = !discard_damaged(broker, ticket.states)?;
        if !is_whole && ticket.creator().is_none() {
            let (_, states) = first_job(run, &kind_of(broker, run)?)?;
            broker.put(ticket.states, &states)?;
            is_whole = true;
        }
        if is_whole {
            // A job that was never explored is published as it is.
            return Ok((!is_open(&job)).then_some(job));
        }
        next = ticket.creator();
    }
    Ok(None)
}

/// Removes what is left of an object that is damaged or missing: it could not be stored again.
/// Returns whether it is.
fn discard_damaged(broker: &mut dyn Broker, object: Hash) -> Result<bool> {
    match fetch(broker, object) {
        Ok(_) => Ok(false),
        Err(Error::Damaged(_)) => {
            broker.remove_objects(&[object])?;
            Ok(true)
        }
        Err(error) => Err(error),
    }
}
