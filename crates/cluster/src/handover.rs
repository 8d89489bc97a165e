//! Hands a run that was started on one machine over to a cluster.

use everett::{JobResult, Parcel, Prepared, ResumeSpec, RunSpec, Session, States, WeightSum};
use std::path::Path;

use crate::broker::{Broker, Explored, Key, Kind, Objects, RunId, Ticket};
use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::outcome::{CHILDREN, outcome_of};
use crate::results::{FILE, Submitted};
use crate::run::{Build, Submission, describe, first_job, record_run, restore};
use crate::sign::SigningKey;
use crate::status::status;

/// The worker's name for the part of a run that was explored before it was submitted.
const BEFORE: &str = "(before it was submitted)";

impl Submitted {
    /// Hands over a run that was stopped on this machine: its folder becomes that of the submitted
    /// run. Its results so far are the outcome of the first job, and workers continue with the
    /// remaining states. The folder names the run before the broker has it, as that of
    /// [`Submitted::submit`] does.
    pub fn resume(
        broker: &mut dyn Broker,
        resume: &ResumeSpec,
        (build, key): (Build, Option<SigningKey>),
        session: &Session,
    ) -> Result<Submitted> {
        let before = expect_not_going_on(broker, &resume.dir)?;
        let submission = Submission {
            spec: RunSpec::resumed(resume)?,
            build,
            work: None,
            max_work: None,
            nonce: Submission::fresh_nonce(),
            key,
        };
        let parcel = Parcel::of(&submission.spec, session)?;
        let prepared = Prepared::of(&parcel, session)?;
        let result = prepared.hand_over(&submission.spec, &resume.dir, CHILDREN)?;
        let (manifest, objects) = describe(&submission, session)?;
        let run = RunId::of(&manifest, &submission.nonce);
        let submitted = Submitted::new(&submission, (run.clone(), Hash::of(&manifest)));
        let explored = rest(&run, &manifest, (&prepared, result))?;
        let signed = (&*manifest, submission.key.as_ref());
        let sent = submitted
            .write(&resume.dir)
            .and_then(|()| send_rest(broker, &run, signed, (objects, explored)));
        match sent {
            Ok(()) => Ok(submitted),
            Err(error) => {
                if let Ok(None) = broker.look_up(&Key::of_run(Kind::Run, &run)) {
                    // The folder is what it was.
                    let _ = match before {
                        Some(before) => before.write(&resume.dir),
                        None => Ok(std::fs::remove_file(resume.dir.join(FILE))?),
                    };
                }
                Err(error)
            }
        }
    }
}

/// Refuses to hand over a run twice: two runs of the cluster would have one folder, and nobody would
/// know of the first one any more. Returns the run of the cluster that the folder belonged to.
fn expect_not_going_on(broker: &mut dyn Broker, dir: &Path) -> Result<Option<Submitted>> {
    let Ok(before) = Submitted::of(dir) else {
        return Ok(None);
    };
    let is_cancelled = broker.look_up(&Key::of_run(Kind::Cancelled, &before.run))?;
    let goes_on = match status(broker, &before.run) {
        _ if is_cancelled.is_some() => false,
        Err(Error::NoRun(_)) => false,
        status => !status?.is_over(),
    };
    if !goes_on {
        return Ok(Some(before));
    }
    Err(Error::Usage(format!(
        "{} is submitted already, as run {}, which is going on: `cancel` it first",
        dir.display(),
        before.run
    )))
}

/// What was explored of a run before it was submitted, and the first job, which came to that.
struct Rest {
    ticket: Ticket,
    states: Vec<u8>,
    explored: Explored,
}

/// Returns the first job of a run that was partly explored; `result` is its result.
fn rest(run: &RunId, manifest: &[u8], (prepared, result): (&Prepared, JobResult)) -> Result<Rest> {
    let kind = serde_json::from_slice(manifest).map_err(Error::damaged)?;
    let (ticket, states) = first_job(run, &kind)?;
    let weigh = |states: &States| prepared.weight_of(states);
    let explored = outcome_of(BEFORE, &ticket, &weigh, result)?;
    if explored.outcome.weight() != Some(WeightSum::one()) {
        let what = "the checkpoint and the results are not all of the run".to_owned();
        return Err(Error::Unbalanced(what));
    }
    Ok(Rest {
        ticket,
        states,
        explored,
    })
}

/// Stores a run that was partly explored, and hands out what is left of it.
fn send_rest(
    broker: &mut dyn Broker,
    run: &RunId,
    signed: (&[u8], Option<&SigningKey>),
    (mut objects, rest): (Objects, Rest),
) -> Result<()> {
    let (ticket, explored) = (rest.ticket, rest.explored);
    objects.push((ticket.states, rest.states));
    objects.extend(explored.objects);
    for (hash, bytes) in &objects {
        broker.put(*hash, bytes)?;
    }
    // This comes before the run is known, so that no worker explores the first job again.
    let outcome = explored.outcome;
    let key = Key::of_job(Kind::Outcome, run, &ticket.job);
    broker.record(&key, &outcome.to_bytes())?;
    record_run(broker, run, signed)?;
    restore(broker, &objects)?;
    for ticket in outcome.tickets(run, &ticket.job) {
        broker.publish(&ticket)?;
    }
    Ok(())
}
