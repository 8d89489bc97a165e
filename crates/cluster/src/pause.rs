//! Pauses a run: workers give back what they hold of it, and take none of its jobs until it goes
//! on. The mark is a record of the run. A worker that gets a job of a paused run takes it out of
//! the queue, so that the jobs of other runs are not behind it; the tree of outcomes still has it,
//! and whoever lets the run go on publishes all jobs that nobody has.

use crate::broker::{Broker, Lease, RunId};
use crate::error::{Error, Result};
use crate::mark::Pause;
use crate::outcome::{note_dropped, note_in_vain};
use crate::reseed::publish_missing;
use crate::run::kind_of;
use crate::status::status;

/// Fails if a run is not there, or if nothing can be explored of it any more.
fn expect_going_on(broker: &mut dyn Broker, run: &RunId) -> Result<()> {
    let status = status(broker, run)?;
    if status.is_over() || status.is_cancelled {
        let state = status.state();
        return Err(Error::Usage(format!(
            "the run is {state}: it does not go on"
        )));
    }
    Ok(())
}

/// Pauses a run: workers end its jobs at their next check, and record what these came to and what
/// is left of them. Does nothing if the run is paused.
pub fn pause(broker: &mut dyn Broker, run: &RunId) -> Result<()> {
    expect_going_on(broker, run)?;
    let mark = Pause::of(broker, run)?;
    if mark.paused {
        return Ok(());
    }
    let now = broker.now()?;
    mark.changed(true, now).note(broker, run)
}

/// Lets a paused run go on, on whatever workers there are. A run that goes on already stays as it
/// is; if the last attempt ended half done, this one completes it.
pub fn unpause(broker: &mut dyn Broker, run: &RunId) -> Result<()> {
    kind_of(broker, run)?;
    let mark = Pause::of(broker, run)?;
    if mark.paused {
        let now = broker.now()?;
        mark.changed(false, now).note(broker, run)?;
    }
    // This comes after the mark: see `set_aside`.
    publish_missing(broker, run).map(|_| ())
}

/// Number of times that a job is handed out before a worker that has too little memory for it looks
/// whether anything else is left of its run.
const MOST_IN_VAIN: u64 = 6;

/// Pauses a run if a job of it was handed out again and again, a worker has too little memory for
/// any part of it, and so it was with each other job: the run would wait for ever. Nothing is lost,
/// and it can go on with more memory. Returns whether it is paused.
pub(crate) fn pause_without_memory(
    broker: &mut dyn Broker,
    lease: &Lease,
    worker: &str,
) -> Result<bool> {
    let run = &lease.ticket.run;
    note_in_vain(broker, lease, worker)?;
    if lease.delivery < MOST_IN_VAIN {
        return Ok(false);
    }
    // Other jobs are explored, or wait for somebody to try them.
    let open = status(broker, run)?.open;
    if open.iter().any(|open| !open.is_stopped && !open.is_in_vain) {
        return Ok(false);
    }
    let mark = Pause::of(broker, run)?;
    if !mark.paused {
        let now = broker.now()?;
        let why = "no worker has enough memory for a job of it: start workers with more, and let it go on (unpause)";
        let mut mark = mark.changed(true, now);
        mark.why = Some(why.to_owned());
        mark.note(broker, run)?;
    }
    set_aside(broker, lease)?;
    Ok(true)
}

/// Takes a job of a paused run out of the queue. If the run goes on meanwhile, whoever has let it
/// go on may have seen the job in the queue, and relied on that, so it is put back.
pub(crate) fn set_aside(broker: &mut dyn Broker, lease: &Lease) -> Result<()> {
    note_dropped(broker, lease)?;
    broker.acknowledge(lease)?;
    if !Pause::of(broker, &lease.ticket.run)?.paused {
        broker.publish_again(&lease.ticket)?;
    }
    Ok(())
}
