//! The outcome of a job that was explored: its results as an object, and its remaining states as
//! further jobs.

use everett::{JobResult, States, WeightSum};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use crate::broker::{Broker, Child, Explored, JobId, Key, Kind, Lease, Outcome, Ticket};
use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::states::{divide, pack_states, sort_states};

/// Maximum number of jobs that a job creates. Each waiting worker gets one, and each can be divided
/// again.
pub(crate) const CHILDREN: usize = 8;

/// What is recorded in the place of the worker that holds a job, if nobody does.
const NOBODY: &str = "";

const RESULTS_MAGIC: &[u8] = b"everett results 2\n";
/// Maximum size of a job's results in bytes.
const MOST_RESULTS: usize = 1 << 30;

/// Serialises results to an object.
fn pack_results(result: &JobResult) -> Result<Vec<u8>> {
    let text = serde_json::to_vec(result).map_err(everett::Error::from)?;
    let mut packed = RESULTS_MAGIC.to_vec();
    packed.extend(compress_to_vec_zlib(&text, 6));
    Ok(packed)
}

/// Reads results from untrusted bytes.
pub(crate) fn unpack_results(packed: &[u8]) -> Result<JobResult> {
    let packed = packed.strip_prefix(RESULTS_MAGIC);
    let packed = packed.ok_or_else(|| Error::damaged("these are not results"))?;
    let text = decompress_to_vec_zlib_with_limit(packed, MOST_RESULTS);
    let text = text.map_err(|_| Error::damaged("results that cannot be decompressed"))?;
    serde_json::from_slice(&text).map_err(Error::damaged)
}

/// A function that returns the weight of states.
pub type Weigh<'w> = dyn Fn(&States) -> Option<WeightSum> + 'w;

/// Creates the outcome of a job with this result, and the objects that it names. The remaining
/// states are divided.
pub fn outcome_of(
    worker: &str,
    ticket: &Ticket,
    weigh: &Weigh<'_>,
    mut result: JobResult,
) -> Result<Explored> {
    result.left = divide(std::mem::take(&mut result.left), CHILDREN);
    outcome_in_parts(worker, ticket, weigh, result)
}

/// Creates the outcome of a job of whose remaining states the worker keeps the first part and gives
/// the others away.
pub fn outcome_of_split(
    worker: &str,
    ticket: &Ticket,
    weigh: &Weigh<'_>,
    mut result: JobResult,
) -> Result<Explored> {
    result.left.iter_mut().for_each(sort_states);
    let mut explored = outcome_in_parts(worker, ticket, weigh, result)?;
    let kept = explored.objects.get(1).map_or(0, |(_, bytes)| bytes.len());
    explored.outcome.kept = true;
    explored.outcome.bytes_moved -= kept as u64;
    Ok(explored)
}

fn outcome_in_parts(
    worker: &str,
    ticket: &Ticket,
    weigh: &Weigh<'_>,
    mut result: JobResult,
) -> Result<Explored> {
    let left = std::mem::take(&mut result.left);
    let (results, work) = (pack_results(&result)?, result.work());
    let mut objects = vec![(Hash::of(&results), results)];
    let mut children = Vec::new();
    let (rest, parts) = (ticket.budget.after(&work), left.len() as u64);
    for (part, number) in left.into_iter().zip(0..) {
        let states = pack_states(&part)?;
        let hash = Hash::of(&states);
        children.push(Child {
            job: JobId::of(ticket.job.as_str(), hash),
            states: hash,
            weight: weigh(&part).unwrap_or_default(),
            count: part.count(),
            budget: rest.part(number, parts),
        });
        objects.push((hash, states));
    }
    let statistics = result.part.statistics;
    let sizes = || objects.iter().map(|(_, bytes)| bytes.len() as u64);
    let outcome = Outcome {
        worker: worker.to_owned(),
        finished: statistics.finished,
        unknown: statistics.unknown,
        pruned: statistics.pruned,
        excluded: statistics.excluded,
        children,
        results: Some(objects[0].0),
        failure: None,
        work,
        findings: result.findings.len() as u64,
        replayed: statistics.replayed,
        bytes: sizes().sum(),
        kept: false,
        bytes_moved: sizes().skip(1).sum(),
    };
    Ok(Explored { objects, outcome })
}

/// Ends a job whose worker continues with the remaining states: stores its results, publishes the
/// parts for other workers, and turns the lease into that of the kept part. Returns `false` if
/// another worker has ended the job; the kept part is not this worker's then.
///
/// The job that the broker handed out stays leased until the kept part is finished. If the worker
/// dies, the job is handed out again, and the next worker finds its outcome and publishes the
/// remaining jobs.
pub fn hand_out(broker: &mut dyn Broker, lease: &mut Lease, explored: &Explored) -> Result<bool> {
    let (run, job) = (&lease.ticket.run, &lease.ticket.job);
    for (hash, bytes) in &explored.objects {
        broker.put(*hash, bytes)?;
    }
    let ours = explored.outcome.to_bytes();
    let recorded = broker.record(&Key::of_job(Kind::Outcome, run, job), &ours)?;
    if recorded != ours {
        return Ok(false);
    }
    let mut tickets = explored.outcome.all_tickets(run, job);
    let Some(kept) = tickets.next() else {
        return Err(Error::damaged("a job was divided, and nothing is left"));
    };
    note_lease(broker, &kept, &explored.outcome.worker, 1)?;
    for ticket in tickets {
        broker.publish(&ticket)?;
    }
    lease.ticket = kept;
    Ok(true)
}

/// Settles a job that was handed out again although it has its outcome: the worker that recorded it
/// may have died before it published the created jobs. Jobs that other workers hold are left to
/// them. The job that the worker kept is published, because no worker holds it any more.
pub fn settle_again(broker: &mut dyn Broker, lease: &Lease, outcome: &Outcome) -> Result<()> {
    let (run, job) = (&lease.ticket.run, &lease.ticket.job);
    let kept = outcome.children.first().filter(|_| outcome.kept);
    for ticket in outcome.tickets(run, job) {
        let is_kept = kept.is_some_and(|kept| kept.job == ticket.job);
        let key = |kind| Key::of_job(kind, run, &ticket.job);
        // A job that was leased from the queue is handed out again from there.
        let is_with_others = !is_kept
            && (broker.look_up(&key(Kind::Lease))?.is_some()
                || broker.look_up(&key(Kind::Outcome))?.is_some());
        if !is_with_others {
            broker.publish(&ticket)?;
        }
    }
    broker.acknowledge(lease)?;
    Ok(())
}

/// Records that nobody holds a job that was handed out.
pub(crate) fn note_dropped(broker: &mut dyn Broker, lease: &Lease) -> Result<()> {
    note_lease(broker, &lease.ticket, NOBODY, lease.delivery)
}

/// Returns whether the record about the lease of a job says that a worker holds it.
pub(crate) fn has_holder(lease: &[u8]) -> bool {
    let lease: serde_json::Value = serde_json::from_slice(lease).unwrap_or_default();
    lease["worker"] != NOBODY
}

/// Records that the worker of a job had too little memory for any part of it, and left it.
pub(crate) fn note_in_vain(broker: &mut dyn Broker, lease: &Lease, worker: &str) -> Result<()> {
    let noted = serde_json::json!({"worker": worker, "delivery": lease.delivery, "in_vain": true})
        .to_string();
    let key = Key::of_job(Kind::Lease, &lease.ticket.run, &lease.ticket.job);
    broker.note(&key, noted.as_bytes())
}

/// Returns whether the last worker of a job left it for lack of memory.
pub(crate) fn was_in_vain(lease: &[u8]) -> bool {
    let lease: serde_json::Value = serde_json::from_slice(lease).unwrap_or_default();
    lease["in_vain"] == true
}

/// Records that a worker holds a job.
pub(crate) fn note_lease(
    broker: &mut dyn Broker,
    ticket: &Ticket,
    worker: &str,
    delivery: u64,
) -> Result<()> {
    let noted = serde_json::json!({"worker": worker, "delivery": delivery}).to_string();
    let key = Key::of_job(Kind::Lease, &ticket.run, &ticket.job);
    broker.note(&key, noted.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_results_are_refused() {
        let packed = pack_results(&JobResult::default()).unwrap();
        assert!(unpack_results(&packed).is_ok());
        for end in 0..packed.len() {
            assert!(unpack_results(&packed[..end]).is_err());
        }
    }
}
