//! Writes the results of a run on a cluster as the folder of an ordinary run.

use everett::{
    ClusterFigures, Gathered, JobResult, Observer, RunResult, RunSpec, Session, WeightSum,
    conclude, new_folder, remove_new_folder,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::broker::{Broker, JobId, Key, Kind, RunId, fetch};
use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::outcome::unpack_results;
use crate::reseed::{explore_again, reopen};
use crate::run::{Build, Submission, describe, expect_no_local_options, send};
use crate::states::unpack_states;
use crate::status::{Status, status};

/// The file that identifies the run of a cluster that a folder belongs to.
pub const FILE: &str = "cluster.json";

/// Maximum number of steps of the search for worlds that were explored twice. Beyond it, only the
/// weights prove that there are none.
const MOST_STEPS: u64 = 50_000_000;

/// A run that was submitted, as stored in its folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Submitted {
    /// The name of the run at the broker.
    pub run: RunId,
    /// The build that submitted the run.
    pub build: Build,
    /// The hash of the manifest.
    pub manifest: Hash,
    /// Work of a job between two checks for idle workers, if given.
    pub work: Option<u64>,
    /// Maximum number of instructions of the run, if given.
    #[serde(default)]
    pub max_work: Option<u64>,
}

impl Submitted {
    /// Submits a run and creates its folder. Errors of the program are reported before the folder
    /// is created. The folder names the run before the broker has it, so that a run whose submission
    /// was interrupted can be found and cancelled; if the broker has no such run, it goes again.
    pub fn submit(
        broker: &mut dyn Broker,
        submission: Submission,
        session: &Session,
    ) -> Result<(PathBuf, Submitted)> {
        expect_no_local_options(&submission.spec)?;
        let (manifest, objects) = describe(&submission, session)?;
        let dir = new_folder(&submission.spec)?;
        let run = RunId::of(&manifest, &submission.nonce);
        let submitted = Submitted::new(&submission, (run.clone(), Hash::of(&manifest)));
        let signed = (&*manifest, submission.key.as_ref());
        let sent = submitted
            .write(&dir)
            .and_then(|()| send(broker, &run, signed, objects));
        match sent {
            Ok(()) => Ok((dir, submitted)),
            Err(error) => {
                if let Ok(None) = broker.look_up(&Key::of_run(Kind::Run, &run)) {
                    let _ = std::fs::remove_file(dir.join(FILE));
                    remove_new_folder(&dir);
                }
                Err(error)
            }
        }
    }

    /// Creates the description of a submission, with the name of the run and the hash of its
    /// manifest.
    pub(crate) fn new(submission: &Submission, (run, manifest): (RunId, Hash)) -> Submitted {
        Submitted {
            run,
            build: submission.build.clone(),
            manifest,
            work: submission.work,
            max_work: submission.max_work,
        }
    }

    /// Reads the description from the folder of a run.
    pub fn of(dir: &Path) -> Result<Submitted> {
        let bytes = std::fs::read(dir.join(FILE));
        let bytes = bytes.map_err(|_| Error::NotSubmitted(dir.to_owned()))?;
        serde_json::from_slice(&bytes).map_err(|_| Error::NotSubmitted(dir.to_owned()))
    }

    /// Writes the description to the folder of a run.
    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(self).map_err(everett::Error::from)?;
        Ok(std::fs::write(dir.join(FILE), bytes)?)
    }
}

/// Returns the name of a run that a user names by itself or by its folder.
pub fn run_named(run: &Path) -> Result<RunId> {
    let name = run.to_str().and_then(RunId::parse);
    match Submitted::of(run) {
        Ok(submitted) => Ok(submitted.run),
        Err(error) => name.ok_or(error),
    }
}

/// Writes the results of a run so far into its folder. Findings are confirmed here, as `everett
/// run` does. If states remain, the folder gets a checkpoint with them.
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
        max_work: submitted.max_work,
        nonce: Vec::new(),
        key: None,
    };
    let (manifest, _) = describe(&submission, session)?;
    if Hash::of(&manifest) != submitted.manifest {
        return Err(Error::ProgramChanged);
    }
    let is_open_again = reopen(broker, &submitted.run)?;
    let (mut gathered, lost, damaged) = gather(broker, &submitted.run)?;
    let jobs = lost.len() as u64 + damaged;
    if is_open_again {
        gathered.warnings.push(
            "the broker has lost what was explored of a run that was over, so workers of the cluster explore it \
             again: fetch the results later"
                .to_owned(),
        );
    } else if jobs > 0 && explore_again(broker, &submitted.run, &lost)? > 0 {
        (gathered, ..) = gather(broker, &submitted.run)?;
        gathered.warnings.push(format!(
            "the broker has lost what {} came to, so workers of the cluster explore it again: fetch the results later",
            everett::counted(jobs, "job")
        ));
    }
    paths_of(&gathered.jobs)?;
    expect_worlds_once(&gathered.jobs)?;
    Ok(conclude(dir, gathered, session, observer)?)
}

/// Fetches the results and the remaining states of a run. The weight of those that are missing or
/// damaged is unknown: the others are still worth having. Returns their jobs, too, and the number of
/// jobs whose outcomes are damaged, which are open.
fn gather(broker: &mut dyn Broker, run: &RunId) -> Result<(Gathered, Vec<JobId>, u64)> {
    let status = &status(broker, run)?;
    let mut jobs_lost = Vec::new();
    let mut gathered = Gathered {
        jobs: Vec::new(),
        left: Vec::new(),
        left_weight: WeightSum::default(),
        limit: status.limit(),
        unknown: status.unknown.clone(),
        failures: status.failures.clone(),
        warnings: Vec::new(),
        figures: figures(status),
    };
    for recorded in &status.results {
        match results_in(broker, recorded.object) {
            Ok(job) => gathered.jobs.push(job),
            Err(Error::Damaged(what)) => {
                jobs_lost.push(recorded.job.clone());
                gathered.unknown.add_sum(&recorded.weight);
                let lost = format!("its results are lost: {what} (job {})", recorded.job);
                gathered.failures.push(lost);
            }
            Err(error) => return Err(error),
        }
    }
    for open in &status.open {
        let (job, weight) = (&open.ticket.job, &open.ticket.weight);
        match fetch(broker, open.ticket.states).and_then(|states| unpack_states(&states)) {
            Ok(states) => {
                gathered.left.push(states);
                gathered.left_weight.add_sum(weight);
            }
            Err(Error::Damaged(what)) => {
                jobs_lost.push(job.clone());
                gathered.unknown.add_sum(weight);
                let lost = format!("its states are lost: {what} (job {job})");
                gathered.failures.push(lost);
            }
            Err(error) => return Err(error),
        }
    }
    Ok((gathered, jobs_lost, status.outcomes_damaged))
}

/// Returns the results in an object.
fn results_in(broker: &mut dyn Broker, object: Hash) -> Result<JobResult> {
    unpack_results(&fetch(broker, object)?)
}

/// Returns the paths of jobs, by digests of their answers. Fails if one was explored twice.
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

/// A set of worlds that ended: all combinations of some states of each host.
type Combinations = [Vec<u64>];

/// Fails if a world was explored twice.
fn expect_worlds_once(jobs: &[JobResult]) -> Result<()> {
    let all: Vec<&Combinations> = jobs
        .iter()
        .flat_map(|job| job.worlds.iter().map(Vec::as_slice))
        .collect();
    let mut steps = MOST_STEPS;
    match twice(&all, &mut Vec::new(), &mut steps) {
        Some(world) => {
            let world: Vec<String> = world.iter().map(|host| format!("{host:016x}")).collect();
            let what = format!("world {} was explored twice", world.join(" "));
            Err(Error::Unbalanced(what))
        }
        None => Ok(()),
    }
}

/// Returns a combination that two of these sets contain and that begins with the chosen states of
/// the first hosts.
fn twice(all: &[&Combinations], chosen: &mut Vec<u64>, steps: &mut u64) -> Option<Vec<u64>> {
    if all.len() < 2 || *steps == 0 {
        return None;
    }
    let mut with: BTreeMap<u64, Vec<&Combinations>> = BTreeMap::new();
    let mut is_end = true;
    for combinations in all {
        for state in combinations.get(chosen.len()).into_iter().flatten() {
            with.entry(*state).or_default().push(combinations);
            *steps = steps.saturating_sub(1);
        }
        is_end &= combinations.len() <= chosen.len();
    }
    if is_end {
        return Some(chosen.clone());
    }
    for (state, some) in with {
        chosen.push(state);
        let found = twice(&some, chosen, steps);
        chosen.pop();
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Returns the paths of a run that have ended, by digests of their answers.
pub fn paths(broker: &mut dyn Broker, run: &RunId) -> Result<BTreeSet<u64>> {
    let status = status(broker, run)?;
    let jobs = status.results.iter();
    let jobs = jobs.map(|recorded| results_in(broker, recorded.object));
    paths_of(&jobs.collect::<Result<Vec<_>>>()?)
}

fn figures(status: &Status) -> ClusterFigures {
    ClusterFigures {
        jobs: status.jobs,
        jobs_left: status.open.len() as u64,
        states_moved: status.states_moved,
        transfers: status.transfers,
        bytes_sent: status.bytes,
        bytes_moved: status.bytes_moved,
        idle_seconds: {
            let loads = status.loads.iter();
            loads
                .map(|load| (load.name.clone(), load.idle_seconds))
                .collect()
        },
        replay_share: status.replay_share(),
        workers: {
            let workers = status.workers.iter();
            workers
                .map(|(name, did)| (name.clone(), did.jobs))
                .collect()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_that_were_explored_twice_are_noticed() {
        let job = |worlds: &[[&[u64]; 2]]| JobResult {
            worlds: worlds
                .iter()
                .map(|hosts| hosts.map(<[u64]>::to_vec).to_vec())
                .collect(),
            ..JobResult::default()
        };
        let one = job(&[[&[1, 2], &[7]], [&[3], &[7, 8]]]);
        assert!(expect_worlds_once(&[one, job(&[[&[1, 2], &[8]]])]).is_ok());
        let one = || job(&[[&[1, 2], &[7]], [&[3], &[7, 8]]]);
        for other in [[&[2, 9][..], &[6, 7]], [&[3], &[8]], [&[2, 2], &[9]]] {
            assert!(expect_worlds_once(&[one(), job(&[other])]).is_err());
        }
    }
}
