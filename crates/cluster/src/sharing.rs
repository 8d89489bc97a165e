//! The supervision of a job that a worker explores: the worker regularly checks for requests, gives
//! states away, and records its results so far.

use everett::{JobDecision, JobProgress, JobResult, Supervisor};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use crate::broker::{Broker, Key, Kind, Lease, Outcome, RunId};
use crate::error::{Error, Result};
use crate::mark::Pause;
use crate::outcome::{Weigh, hand_out, outcome_of_split};
use crate::station::{Station, share_coverage};

/// Number of checks in a piece of work. A check takes a few messages; idle workers wait for it.
pub(crate) const CHECKS_A_PIECE: u64 = 8;
/// The first check of a job comes after this part of the work between two checks.
const FIRST_CHECK_PART: u64 = 16;
/// Number of pieces of work after which the results of a job are recorded. Work since then is lost
/// if the worker dies.
const MOST_PIECES: u64 = 16;
/// Number of states up to which a job is divided at any check. The rest of a divided job is recorded,
/// so that dividing it takes time for each of its states.
const FEW_STATES: u64 = 1 << 12;
/// The work for each state, in instructions, between two divisions of a job with more states. To
/// record a state takes about a hundred instructions.
const WORK_A_STATE: u64 = 1000;
/// Maximum number of checks that a worker skips after its broker could not be reached.
const MOST_LEFT_OUT: u64 = 64;
/// The pause between two attempts to reach the broker, and the maximum number of attempts.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(1);
pub(crate) const RETRIES: u32 = 120;
/// The maximum number of attempts of a worker that is to stop.
const LAST_RETRIES: u32 = 5;

pub(crate) fn lock<'b>(broker: &'b Mutex<Box<dyn Broker>>) -> MutexGuard<'b, Box<dyn Broker>> {
    broker.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether a worker that has failed to reach its broker this many times tries again. One
/// that is to stop soon gives up: its job is handed out again.
pub(crate) fn may_retry(tries: u32, stop: &AtomicBool) -> bool {
    let most = match stop.load(Ordering::Relaxed) {
        true => LAST_RETRIES,
        false => RETRIES,
    };
    tries < most
}

/// Returns the work before the first check of a job, and that between two later ones, by that of a
/// piece.
pub fn work_of_checks(piece: u64) -> (u64, u64) {
    let work = piece.div_ceil(CHECKS_A_PIECE);
    (work.div_ceil(FIRST_CHECK_PART), work)
}

/// Counts the checks of a job, and decides what is done at each. Simulations use the same
/// decisions.
#[derive(Clone, Debug, Default)]
pub struct CheckCounter {
    count: u64,
    /// Number of checks that are skipped until the broker is asked again, and after the next
    /// failure.
    left_out: u64,
    next_left_out: u64,
    /// The check at which the job was divided last.
    divided_at: u64,
}

impl CheckCounter {
    /// Counts a check. Returns whether the broker is asked.
    pub fn begin(&mut self) -> bool {
        self.count += 1;
        self.left_out = self.left_out.saturating_sub(1);
        self.left_out == 0
    }

    /// Decides whether the job is divided at this check, and returns how many of its states are
    /// given away then: as many as others ask for, or none where its results are only recorded.
    /// `work` is that of one check.
    pub fn divide(&mut self, asked: u64, states: u64, work: u64) -> Option<u64> {
        let given = match asked > 0 && self.is_cheap(states, work) {
            true => asked,
            false if self.is_recorded() => 0,
            false => return None,
        };
        self.divided_at = self.count;
        Some(given)
    }

    /// Decides whether the job is divided at this check because memory is short: at most once in a
    /// piece of work, so that the jobs are not small.
    fn divide_for_memory(&mut self, states: u64, work: u64) -> bool {
        let since = self.count - self.divided_at;
        let is_cheap = since >= CHECKS_A_PIECE && self.is_cheap(states, work);
        if is_cheap {
            self.divided_at = self.count;
        }
        is_cheap
    }

    /// Returns whether what a division takes is little against the work of all checks since the
    /// last one.
    fn is_cheap(&self, states: u64, work: u64) -> bool {
        let since = (self.count - self.divided_at).saturating_mul(work);
        states <= FEW_STATES || since >= states.saturating_mul(WORK_A_STATE)
    }

    /// Returns whether a piece of work ends with this check.
    pub fn ends_piece(&self) -> bool {
        self.count.is_multiple_of(CHECKS_A_PIECE)
    }

    /// Returns whether the results of the job so far are recorded at this check.
    fn is_recorded(&self) -> bool {
        self.count.is_multiple_of(CHECKS_A_PIECE * MOST_PIECES)
    }

    /// Records whether the broker answered. If not, it is asked less often for a while.
    fn note(&mut self, answered: bool) {
        self.next_left_out = match answered {
            true => 0,
            false => (2 * self.next_left_out).clamp(1, MOST_LEFT_OUT),
        };
        self.left_out = self.next_left_out;
    }
}

/// Returns whether nobody is to explore a run: it was cancelled, or is paused.
fn is_unwanted(broker: &mut dyn Broker, run: &RunId) -> Result<bool> {
    let cancelled = broker.look_up(&Key::of_run(Kind::Cancelled, run))?;
    Ok(cancelled.is_some() || Pause::of(broker, run)?.paused)
}

/// The supervisor of a job that a worker explores.
pub(crate) struct Sharing<'b> {
    pub(crate) broker: &'b Mutex<Box<dyn Broker>>,
    pub(crate) station: &'b mut Station,
    pub(crate) weigh: &'b Weigh<'b>,
    /// The lease of the job, or of its kept part.
    pub(crate) lease: Lease,
    pub(crate) checks: CheckCounter,
    /// The work of a check.
    pub(crate) check_work: u64,
    /// Number of segments that were covered when coverage was last shared.
    pub(crate) covered: usize,
    /// Whether states are given away because memory is short.
    pub(crate) is_short: bool,
    /// The reason why the remaining states are not explored.
    pub(crate) failure: Option<Error>,
    /// Whether the worker is to stop.
    pub(crate) stop: &'b AtomicBool,
    /// Called with the outcomes of jobs that end while the exploration continues.
    pub(crate) tell: &'b mut dyn FnMut(Outcome),
}

impl Sharing<'_> {
    /// Decides about a job that cannot be split: it is left as a whole if no other job waits.
    fn check_queue(&mut self) -> JobDecision {
        if !self.checks.ends_piece() {
            return JobDecision::GoOn;
        }
        let mut broker = lock(self.broker);
        // A worker that cannot reach its broker continues, too.
        let goes_on = !self.checks.is_recorded()
            && !is_unwanted(&mut **broker, &self.lease.ticket.run).unwrap_or(false)
            && broker.waiting().map_or(true, |waiting| waiting > 0);
        if goes_on {
            JobDecision::GoOn
        } else {
            JobDecision::Leave
        }
    }

    /// Reports to the other workers, and returns what they request.
    fn ask(&mut self, progress: &JobProgress<'_>, covered: &mut Vec<u8>) -> Result<JobDecision> {
        let run = &self.lease.ticket.run;
        let mut broker = lock(self.broker);
        self.station.note_memory(run, progress.spilled > 0);
        let asked = self.station.check_in(&mut **broker, run, progress.states)?;
        let marks = progress.covered.iter().filter(|mark| **mark != 0).count();
        if marks > self.covered || self.checks.ends_piece() {
            *covered = share_coverage(&mut **broker, run, progress.covered)?;
            self.covered = marks;
        }
        if self.checks.ends_piece() && is_unwanted(&mut **broker, run)? {
            return Ok(JobDecision::Leave);
        }
        if asked > 0 {
            return Ok(JobDecision::Give(asked));
        }
        // On the disk, states are in nobody's way; but others have memory for them.
        if progress.spilled > 0 && self.station.others_have_room(&mut **broker, run)? {
            return Ok(JobDecision::GiveSpilled(
                progress.spilled.min(progress.states / 2),
            ));
        }
        Ok(JobDecision::GoOn)
    }

    /// Ends the job, and continues with the kept part.
    fn try_split(&mut self, result: JobResult) -> Result<bool> {
        let ticket = &self.lease.ticket;
        let explored = outcome_of_split(self.station.name(), ticket, self.weigh, result)?;
        if explored.outcome.weight().as_ref() != Some(&ticket.weight) {
            return Err(Error::damaged("states were lost while it was explored"));
        }
        let given = explored.outcome.given().iter();
        let given = given.map(|child| child.count).sum();
        self.station.gave(&ticket.run, given, self.is_short);
        let mut tries = 0;
        loop {
            match hand_out(&mut **lock(self.broker), &mut self.lease, &explored) {
                Err(Error::Broker(_)) if may_retry(tries, self.stop) => tries += 1,
                Ok(true) => {
                    (self.tell)(explored.outcome);
                    return Ok(true);
                }
                handed => return handed,
            }
            sleep(RETRY_PAUSE);
        }
    }
}

impl Supervisor for Sharing<'_> {
    fn check(&mut self, progress: &JobProgress<'_>, covered: &mut Vec<u8>) -> JobDecision {
        let is_asked = self.checks.begin();
        if !progress.can_give {
            return self.check_queue();
        }
        let mut decision = JobDecision::GoOn;
        if is_asked {
            let asked = self.ask(progress, covered);
            self.checks.note(asked.is_ok());
            // A worker that cannot reach its broker continues.
            decision = asked.unwrap_or(JobDecision::GoOn);
        }
        self.is_short = false;
        let asked = match decision {
            JobDecision::Leave => return decision,
            JobDecision::GiveSpilled(count) => {
                self.is_short = count > 0
                    && self
                        .checks
                        .divide_for_memory(progress.states, self.check_work);
                if self.is_short {
                    return decision;
                }
                0
            }
            JobDecision::Give(asked) => asked,
            JobDecision::GoOn => 0,
        };
        let divided = self.checks.divide(asked, progress.states, self.check_work);
        divided.map_or(JobDecision::GoOn, JobDecision::Give)
    }

    fn split(&mut self, result: JobResult) -> bool {
        match self.try_split(result) {
            Ok(goes_on) => goes_on,
            Err(error) => {
                self.failure = Some(error);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_that_does_not_answer_is_asked_less_often() {
        let mut checks = CheckCounter::default();
        let mut asked = Vec::new();
        for at in 1..40 {
            if checks.begin() {
                asked.push(at);
                checks.note(false);
            }
        }
        assert_eq!(asked, [1, 2, 4, 8, 16, 32]);
        checks.note(true);
        assert!(checks.begin() && checks.begin());
    }

    #[test]
    fn a_job_with_many_states_is_divided_seldom() {
        let mut checks = CheckCounter::default();
        let mut divided = Vec::new();
        for at in 1..=100 {
            checks.begin();
            assert_eq!(checks.clone().divide(3, FEW_STATES, 1), Some(3));
            assert_eq!(checks.clone().divide(0, 10_000, 250_000), None);
            if checks.divide(3, 10_000, 250_000).is_some() {
                divided.push(at);
            }
        }
        assert_eq!(divided, [40, 80]);
    }

    #[test]
    fn a_job_is_divided_for_memory_once_in_a_piece_of_work() {
        let mut checks = CheckCounter::default();
        let mut divided = Vec::new();
        for at in 1..=3 * CHECKS_A_PIECE {
            checks.begin();
            if at == 10 {
                // A division on request counts as well.
                assert_eq!(checks.divide(3, FEW_STATES, 1), Some(3));
            }
            let few = checks.clone().divide_for_memory(FEW_STATES, 1);
            assert!(!checks.divide_for_memory(2 * FEW_STATES, 1));
            if few && checks.divide_for_memory(FEW_STATES, 1) {
                divided.push(at);
            }
        }
        assert_eq!(divided, [8, 18]);
    }

    /// A job that has too many states to be divided is recorded all the same, also when others ask
    /// for states at that moment.
    #[test]
    fn a_job_with_many_states_is_recorded() {
        let mut checks = CheckCounter::default();
        let mut divided = Vec::new();
        for at in 1..=CHECKS_A_PIECE * MOST_PIECES {
            checks.begin();
            divided.extend(checks.divide(3, 10_000, 1).map(|given| (at, given)));
        }
        assert_eq!(divided, [(CHECKS_A_PIECE * MOST_PIECES, 0)]);
    }
}
