//! Hands a run that was started on one machine over to a cluster.

use everett::{JobResult, Parcel, Prepared, ResumeSpec, RunSpec, Session, States, WeightSum};

use crate::broker::{Broker, Key, Kind, RunId};
use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::outcome::{CHILDREN, outcome_of};
use crate::results::Submitted;
use crate::run::{Build, Submission, describe, first_job, restore};

/// The worker's name for the part of a run that was explored before it was submitted.
const BEFORE: &str = "(before it was submitted)";

impl Submitted {
    /// Hands over a run that was stopped on this machine: its folder becomes that of the submitted
    /// run. Its results so far are the outcome of the first job, and workers continue with the
    /// remaining states.
    pub fn resume(
        broker: &mut dyn Broker,
        resume: &ResumeSpec,
        build: Build,
        session: &Session,
    ) -> Result<Submitted> {
        let submission = Submission {
            spec: RunSpec::resumed(resume)?,
            build,
            work: None,
            max_work: None,
            nonce: Submission::fresh_nonce(),
        };
        let parcel = Parcel::of(&submission.spec, session)?;
        let prepared = Prepared::of(&parcel, session)?;
        let result = prepared.hand_over(&submission.spec, &resume.dir, CHILDREN)?;
        let named = submit_rest(broker, &submission, (&prepared, result), session)?;
        let submitted = Submitted::new(submission, named);
        submitted.write(&resume.dir)?;
        Ok(submitted)
    }
}

/// Submits a run that was partly explored; `result` is the result of its first job. Returns the
/// name of the run and the hash of its manifest.
fn submit_rest(
    broker: &mut dyn Broker,
    submission: &Submission,
    (prepared, result): (&Prepared, JobResult),
    session: &Session,
) -> Result<(RunId, Hash)> {
    let (manifest, mut objects) = describe(submission, session)?;
    let run = RunId::of(&manifest, &submission.nonce);
    let kind = serde_json::from_slice(&manifest).map_err(Error::damaged)?;
    let (ticket, states) = first_job(&run, &kind)?;
    let weigh = |states: &States| prepared.weight_of(states);
    let explored = outcome_of(BEFORE, &ticket, &weigh, result)?;
    if explored.outcome.weight() != Some(WeightSum::one()) {
        let what = "the checkpoint and the results are not all of the run".to_owned();
        return Err(Error::Unbalanced(what));
    }
    objects.push((ticket.states, states));
    objects.extend(explored.objects);
    for (hash, bytes) in &objects {
        broker.put(*hash, bytes)?;
    }
    // This comes before the run is known, so that no worker explores the first job again.
    let outcome = explored.outcome;
    let key = Key::of_job(Kind::Outcome, &run, &ticket.job);
    broker.record(&key, &outcome.to_bytes())?;
    broker.record(&Key::of_run(Kind::Run, &run), &manifest)?;
    restore(broker, &objects)?;
    for ticket in outcome.tickets(&run, &ticket.job) {
        broker.publish(&ticket)?;
    }
    Ok((run, Hash::of(&manifest)))
}
