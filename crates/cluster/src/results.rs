//! The results of a run: what its jobs came to, written as the folder of an ordinary run.

use everett::{
    ClusterFigures, Gathered, JobResult, Observer, RunResult, RunSpec, Session, Trace, conclude,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

use crate::broker::{Broker, RunId, fetch};
use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::run::{Build, Submission, describe};
use crate::status::{Status, status};
use crate::tree::unpack;
use crate::worker::unpack_results;

/// The file that says which run of a cluster a folder is for.
pub const FILE: &str = "cluster.json";

/// A run that was submitted, as its folder knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Submitted {
    /// Its name at the broker.
    pub run: RunId,
    /// The build that submitted it.
    pub build: Build,
    /// What is explored: the hash of the manifest.
    pub manifest: Hash,
    /// Work that a job does at a time, where it was said.
    pub work: Option<u64>,
}

impl Submitted {
    /// Reads it from the folder of a run.
    pub fn of(dir: &Path) -> Result<Submitted> {
        let bytes = std::fs::read(dir.join(FILE));
        let bytes = bytes.map_err(|_| Error::NotSubmitted(dir.to_owned()))?;
        serde_json::from_slice(&bytes).map_err(|_| Error::NotSubmitted(dir.to_owned()))
    }

    /// Writes it to the folder of a run.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(self).map_err(everett::Error::from)?;
        Ok(std::fs::write(dir.join(FILE), bytes)?)
    }
}

/// Writes the results of a run into its folder, as far as it has come. Findings are confirmed here, as `everett run`
/// does. If something is left, the folder has a checkpoint with it.
pub fn results(
    broker: &mut dyn Broker,
    dir: &Path,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<RunResult> {
    let submitted = Submitted::of(dir)?;
    let submission = Submission {
        spec: RunSpec::of(dir)?,
        build: submitted.build.clone(),
        work: submitted.work,
        nonce: Vec::new(),
    };
    let (manifest, _) = describe(&submission, session)?;
    if Hash::of(&manifest) != submitted.manifest {
        return Err(Error::ProgramChanged);
    }
    let status = status(broker, &submitted.run)?;
    let jobs = jobs(broker, &status)?;
    paths_of(&jobs)?;
    let mut left: Vec<Trace> = Vec::new();
    for (ticket, _) in &status.open {
        left.extend(unpack(&fetch(broker, ticket.states)?)?);
    }
    let gathered = Gathered {
        jobs,
        left,
        unknown: status.unknown.clone(),
        failures: status.failures.clone(),
        figures: figures(&status),
    };
    Ok(conclude(dir, gathered, session, observer)?)
}

/// What the jobs of a run came to.
fn jobs(broker: &mut dyn Broker, status: &Status) -> Result<Vec<JobResult>> {
    let results = status.results.iter();
    let results = results.map(|hash| unpack_results(&fetch(broker, *hash)?));
    results.collect()
}

/// The paths of jobs, by digests of their answers. Each is explored once.
fn paths_of(jobs: &[JobResult]) -> Result<BTreeSet<u64>> {
    let mut paths = BTreeSet::new();
    for (digest, _) in jobs.iter().flat_map(|job| &job.paths) {
        if !paths.insert(*digest) {
            let what = format!("path {digest:016x} was explored twice");
            return Err(Error::Unbalanced(what));
        }
    }
    Ok(paths)
}

/// The paths of a run that have ended, by digests of their answers.
pub fn paths(broker: &mut dyn Broker, run: &RunId) -> Result<BTreeSet<u64>> {
    let status = status(broker, run)?;
    paths_of(&jobs(broker, &status)?)
}

fn figures(status: &Status) -> ClusterFigures {
    ClusterFigures {
        jobs: status.jobs,
        jobs_left: status.open.len() as u64,
        states_moved: status.states_moved,
        bytes_sent: status.bytes,
        replay_share: status.replay_share(),
        workers: status.workers.clone(),
    }
}
