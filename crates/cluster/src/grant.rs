//! Distributes the budget of a run. Each job has a share of it, and divides what it does not use
//! among the jobs that it creates. A job stops when its share is spent, until a worker grants it
//! budget that other jobs did not use.
//!
//! Grants are a list, and the broker records each position of the list once. Before a worker
//! appends a grant, it has read all earlier ones, and outcomes of jobs can only free more budget.
//! So concurrent grants never exceed what is free.

use everett::Budget;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::broker::{Broker, JobId, Key, Kind, RunId};
use crate::error::{Error, Result};
use crate::status::status;

/// Maximum number of jobs that a grant includes.
const AT_A_TIME: u64 = 8;

/// Additional budget of stopped jobs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Grant {
    jobs: Vec<(JobId, Budget)>,
}

/// Returns the budget that was granted to jobs, and the number of grants.
pub(crate) fn granted(
    broker: &mut dyn Broker,
    run: &RunId,
) -> Result<(BTreeMap<JobId, Budget>, u64)> {
    let grants = broker.list(Kind::Grant, run)?;
    let (mut jobs, count) = (BTreeMap::new(), grants.len() as u64);
    for (_, bytes) in grants {
        let grant: Grant = serde_json::from_slice(&bytes).map_err(Error::damaged)?;
        // A job stops for good once it has its outcome, so it gets at most one grant.
        jobs.extend(grant.jobs);
    }
    Ok((jobs, count))
}

/// Grants stopped jobs the budget that others did not use. Returns the number of jobs.
pub fn grant(broker: &mut dyn Broker, run: &RunId) -> Result<u64> {
    loop {
        let status = status(broker, run)?;
        let free = status.free;
        if status.jobs_stopped == 0 || free.spent().is_some() || !free.is_limited() {
            return Ok(0);
        }
        let stopped = status.open.iter().filter(|open| open.is_stopped);
        let stopped: Vec<_> = stopped.map(|open| &open.ticket).collect();
        let mut count = AT_A_TIME.min(stopped.len() as u64);
        while count > 1 && free.part(count - 1, count).spent().is_some() {
            count -= 1;
        }
        let parts = (0..count).map(|number| free.part(number, count));
        let jobs = stopped.iter().zip(parts);
        let ours = Grant {
            jobs: jobs
                .map(|(ticket, budget)| (ticket.job.clone(), budget))
                .collect(),
        };
        let bytes = serde_json::to_vec(&ours).map_err(everett::Error::from)?;
        let recorded = broker.record(&place(run, status.grants), &bytes)?;
        if recorded != bytes {
            // Another worker was faster, so the free budget has changed.
            continue;
        }
        for (ticket, (_, budget)) in stopped.iter().zip(&ours.jobs) {
            let mut ticket = (*ticket).clone();
            ticket.budget = *budget;
            broker.publish(&ticket)?;
        }
        return Ok(count);
    }
}

/// Returns the key of a position in the list.
fn place(run: &RunId, number: u64) -> Key {
    let name = JobId::parse(&format!("{number:016x}"));
    Key {
        job: name,
        ..Key::of_run(Kind::Grant, run)
    }
}
