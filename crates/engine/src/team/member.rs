//! The data that the workers of one search share: jobs, counters, phases, and messages to the lead
//! (the worker whose explorer the caller runs). Must not know the explorer, which acts on it.

use everett_linux::{Refusal, Setup};
use everett_net::FaultIndex;
use everett_solver::{Clock, SolverStatistics};
use everett_vm::Note;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::finding::{PathEnd, SavedFiles, WorldFinding};
use crate::pair::Difference;
use crate::statistics::{Statistics, WorldStatistics};
use crate::trace::Trace;
use crate::world::transfer::{MovedState, WorldPart, WorldSnapshot};

/// An event of another worker for the listener of the lead.
pub(crate) enum Event {
    Path(Box<PathEnd>),
    Printed([Vec<u8>; 2]),
    Noted(Vec<Note>),
    Seed(u32),
    Finding(Box<WorldFinding>),
    Difference(Box<Difference>),
    SetUp(Box<Setup>, Box<Trace>),
    World(Box<(BTreeMap<String, Trace>, SavedFiles)>),
}

/// A unit of work that moves from one worker to another.
#[derive(Clone)]
pub(crate) enum Job {
    /// States of a program, as pending traces. They are rematerialised together.
    States(Vec<Arc<Trace>>),
    /// Dstates with their states.
    Worlds(Arc<WorldPart<MovedState>>),
}

impl Job {
    /// Creates the job for a state of a program.
    pub(super) fn state(trace: Trace) -> Job {
        Job::States(vec![Arc::new(trace)])
    }

    /// Returns the states of a program in the job.
    pub(crate) fn traces(&self) -> &[Arc<Trace>] {
        match self {
            Job::States(traces) => traces,
            Job::Worlds(_) => &[],
        }
    }

    /// Returns the number of states in the job.
    pub(super) fn states(&self) -> u64 {
        match self {
            Job::States(traces) => traces.len() as u64,
            Job::Worlds(part) => part.states() as u64,
        }
    }
}

/// A part of the frontier that other workers have while the lead writes a checkpoint.
#[derive(Default)]
pub(crate) struct Elsewhere {
    /// Jobs in transit, and states of programs that other workers have.
    pub(crate) jobs: Vec<Job>,
    /// Worlds that other workers have.
    pub(crate) snapshots: Vec<WorldSnapshot>,
}

impl Elsewhere {
    fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.snapshots.is_empty()
    }
}

/// Counters and findings of a worker since its last report.
pub(crate) struct Report {
    pub(super) statistics: Statistics,
    pub(super) worlds: WorldStatistics,
    /// Faults that have happened in some world.
    pub(super) fired: Vec<FaultIndex>,
    /// All limits that the worker has reached.
    pub(super) limits: Vec<&'static str>,
    /// All warnings of the worker.
    pub(super) warnings: Vec<String>,
    pub(super) refusals: Vec<Refusal>,
    pub(super) solver: SolverStatistics,
    /// Events for the listener of the lead.
    pub(super) events: Vec<Event>,
    /// The number of states that the worker gave up because there was no time for them.
    pub(super) unsaved: u64,
}

/// The phase of all workers.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Explore the own frontier, and exchange states.
    Explore,
    /// Pause, because the lead writes a checkpoint.
    Still,
    /// Hand over the remaining states and leave.
    Close,
}

/// The data of a team behind its lock.
pub(crate) struct Shared {
    pub(super) phase: Phase,
    /// Jobs that wait for a worker.
    pub(super) jobs: Vec<Job>,
    /// Reports that the lead has not merged yet.
    pub(super) reports: Vec<Report>,
    /// The number of workers, including the lead.
    pub(super) workers: usize,
    /// The number of workers that wait for jobs.
    pub(super) waiting: usize,
    /// The number of workers that are paused.
    pub(super) still: usize,
    /// How often paused workers were released.
    pub(super) releases: u64,
    /// The number of paused workers with states that the checkpoint does not have yet.
    pub(super) copying: usize,
    /// States of paused workers that the lead has not written yet.
    pub(super) copies: Elsewhere,
    /// The coverage of segments by the whole team.
    pub(super) covered: Vec<u8>,
    /// The number of states in jobs that were given away.
    pub(super) moved: u64,
    /// The number of jobs that were given away.
    pub(super) jobs_moved: u64,
    /// The time that each worker has waited for jobs; the lead is the first.
    pub(super) idle: Vec<Duration>,
    /// When states that were not handed over to the lead are given up.
    pub(super) closed_at: Option<Duration>,
    /// Whether the lead has panicked, so that it takes nothing any more.
    pub(super) is_abandoned: bool,
}

impl Shared {
    /// Counts jobs that are given away.
    pub(super) fn count_moved(&mut self, jobs: &[Job]) {
        self.moved += jobs.iter().map(Job::states).sum::<u64>();
        self.jobs_moved += jobs.len() as u64;
    }

    /// Counts jobs out that no other worker has taken.
    pub(super) fn count_unmoved(&mut self, jobs: &[Job]) {
        self.moved -= jobs.iter().map(Job::states).sum::<u64>();
        self.jobs_moved -= jobs.len() as u64;
    }
}

/// The data that the workers of a team share.
pub(crate) struct Team {
    pub(super) shared: Mutex<Shared>,
    /// How much memory each worker was given and may still use; the lead is the first.
    pub(super) rooms: Vec<AtomicU64>,
    /// Locked while a worker measures how much memory is left, and takes a part of it.
    pub(super) measuring: Mutex<()>,
    /// Notified of every change of the shared data.
    pub(super) changed: Condvar,
    /// The number of workers that wait while there are no jobs for them.
    pub(super) wanted: AtomicUsize,
    /// The number of times that the coverage has grown.
    pub(super) growth: AtomicUsize,
    /// The number of states of workers other than the lead, as last reported.
    pub(super) elsewhere: AtomicUsize,
    /// The number of instructions that the whole search is expected to take, extrapolated from the
    /// explored part; 0 if that is not known.
    pub(super) expected: AtomicU64,
    /// The number of instructions of all workers, as last reported.
    pub(super) explored: AtomicU64,
    /// The part of the replay budget that is spent.
    pub(super) given_replay: AtomicU64,
    /// The number of ended paths of all workers, counted before each end, so that no limit is
    /// exceeded.
    pub(super) paths: AtomicU64,
    /// The number of forks of all workers, counted before each fork.
    pub(super) forks: AtomicU64,
    /// The number of instructions of all workers.
    pub(super) instructions: AtomicU64,
    /// The number of findings at which the search stops.
    pub(super) stops: AtomicU64,
    /// Whether workers must check the phase.
    pub(super) attention: AtomicBool,
    /// Whether the team uses too much memory: all workers but the lead leave.
    pub(super) is_narrow: AtomicBool,
    /// Interrupts the solvers of all workers but the lead.
    pub(super) stop: Arc<AtomicBool>,
}

/// Counters of a team, for summaries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TeamStatistics {
    /// The number of workers.
    pub workers: usize,
    /// The number of states that moved from one worker to another.
    pub moved: u64,
    /// The number of jobs in which they moved.
    pub jobs_moved: u64,
    /// The time that each worker has waited for jobs; the lead is the first. Empty without a team.
    pub idle: Vec<Duration>,
}

/// A counter with a limit for all workers together.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Ended paths.
    Paths,
    /// Forks.
    Forks,
    /// Instructions.
    Instructions,
    /// Findings at which the search stops.
    Stops,
}

/// A worker's view of its team.
pub(crate) struct Member {
    pub(super) team: Arc<Team>,
    /// The number of the worker; the lead is 0.
    pub(super) number: usize,
    pub(super) is_lead: bool,
    /// Events for the listener of the lead, until the next report.
    pub(super) events: Arc<Mutex<Vec<Event>>>,
    /// The number of states in the last report to the team.
    pub(super) told: usize,
    /// The value of the growth counter at the last exchange.
    pub(super) growth: usize,
    /// Whether the coverage has grown here since the last exchange.
    pub(crate) has_grown: bool,
    /// The number of rounds of this worker's search.
    pub(super) rounds: u32,
    /// When to check again whether idle workers want states of a program.
    pub(super) look_after: Duration,
    /// The round of the next check whether idle workers want dstates.
    pub(super) look_at: u32,
    /// The number of rounds between two such checks.
    pub(super) pause: u32,
    /// The solver counters at the last report.
    pub(super) reported: SolverStatistics,
}

/// The result of waiting for jobs.
pub(crate) enum Waited {
    Jobs(Vec<Job>),
    /// Nothing arrived in time, or the phase has changed.
    Again,
    /// All workers wait and no job is left: the search has ended.
    Finished,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A worker that panics ends the run; until then, counters may be read.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Team {
    pub(super) fn new(
        workers: usize,
        covered: Vec<u8>,
        [paths, forks, instructions]: [u64; 3],
    ) -> Team {
        Team {
            shared: Mutex::new(Shared {
                phase: Phase::Explore,
                jobs: Vec::new(),
                reports: Vec::new(),
                workers,
                waiting: 0,
                still: 0,
                releases: 0,
                copying: 0,
                copies: Elsewhere::default(),
                covered,
                moved: 0,
                jobs_moved: 0,
                idle: vec![Duration::ZERO; workers],
                closed_at: None,
                is_abandoned: false,
            }),
            rooms: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            measuring: Mutex::new(()),
            changed: Condvar::new(),
            wanted: AtomicUsize::new(0),
            growth: AtomicUsize::new(0),
            elsewhere: AtomicUsize::new(0),
            expected: AtomicU64::new(0),
            explored: AtomicU64::new(0),
            given_replay: AtomicU64::new(0),
            paths: AtomicU64::new(paths),
            forks: AtomicU64::new(forks),
            instructions: AtomicU64::new(instructions),
            stops: AtomicU64::new(0),
            attention: AtomicBool::new(false),
            is_narrow: AtomicBool::new(false),
            stop: Arc::default(),
        }
    }

    /// Locks the shared data.
    pub(super) fn shared(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }

    /// Changes the phase of all workers, and wakes them.
    pub(super) fn set_phase(&self, shared: &mut Shared, phase: Phase) {
        shared.phase = phase;
        self.attention
            .store(phase != Phase::Explore, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Updates how many waiting workers have no job yet.
    pub(super) fn renew_wanted(&self, shared: &Shared) {
        let wanted = shared.waiting.saturating_sub(shared.jobs.len());
        self.wanted.store(wanted, Ordering::Relaxed);
    }

    /// Adds jobs for waiting workers.
    pub(super) fn add_jobs(&self, jobs: Vec<Job>) {
        let mut shared = self.shared();
        shared.count_moved(&jobs);
        shared.jobs.extend(jobs);
        self.renew_wanted(&shared);
        self.changed.notify_all();
    }

    /// Gives jobs to the lead, which takes them soon. Waits while the lead has many to take,
    /// because all of them together may not fit into memory.
    pub(super) fn hand_over(&self, jobs: Vec<Job>) {
        let shared = self.shared();
        // A lead that writes a checkpoint itself waits for this worker.
        let must_wait = |shared: &mut Shared| {
            let is_taken = shared.phase != Phase::Still && !shared.is_abandoned;
            shared.jobs.len() > MOST_HANDED && is_taken
        };
        drop(self.changed.wait_while(shared, must_wait));
        self.add_jobs(jobs);
    }

    /// Returns the jobs of workers that leave while the search continues, for the lead.
    pub(super) fn handed(&self) -> Vec<Job> {
        let mut shared = self.shared();
        let are_handed = shared.jobs.len() > MOST_HANDED || self.is_narrow.load(Ordering::Relaxed);
        if !are_handed {
            return Vec::new();
        }
        let jobs = std::mem::take(&mut shared.jobs);
        self.renew_wanted(&shared);
        self.changed.notify_all();
        jobs
    }

    /// Waits for a while for jobs and returns all, for the lead; `None` if all others have left.
    pub(super) fn take_handed(&self) -> Option<Vec<Job>> {
        let is_due = |shared: &mut Shared| shared.jobs.is_empty() && shared.workers > 1;
        let waited = self
            .changed
            .wait_timeout_while(self.shared(), PATIENCE, is_due);
        let (mut shared, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let jobs = std::mem::take(&mut shared.jobs);
        self.renew_wanted(&shared);
        self.changed.notify_all();
        (shared.workers > 1 || !jobs.is_empty()).then_some(jobs)
    }

    /// Leaves the memory that a worker was given to others.
    pub(super) fn leave_room(&self, worker: usize) {
        self.rooms[worker].store(0, Ordering::SeqCst);
    }

    /// Returns whether states that are not handed over yet are given up.
    pub(super) fn is_closed_at(&self, now: Duration) -> bool {
        self.shared().closed_at.is_some_and(|end| now >= end)
    }

    /// Waits for jobs like [`Team::wait`], and adds the time that this takes to that of a worker.
    /// The worker leaves its memory to others: it must ask again before it uses any.
    pub(super) fn wait_as(&self, worker: usize, clock: Clock) -> Waited {
        let start = clock.now();
        self.leave_room(worker);
        let waited = self.wait();
        self.shared().idle[worker] += clock.now().saturating_sub(start);
        waited
    }

    /// Waits for jobs for a while. The last worker that waits while there are none ends the search.
    fn wait(&self) -> Waited {
        let mut shared = self.shared();
        if shared.phase != Phase::Explore {
            return Waited::Again;
        }
        shared.waiting += 1;
        self.renew_wanted(&shared);
        let is_due = |shared: &mut Shared| {
            let is_end = shared.waiting == shared.workers && shared.jobs.is_empty();
            !is_end && shared.jobs.is_empty() && shared.phase == Phase::Explore
        };
        let waited = self.changed.wait_timeout_while(shared, PATIENCE, is_due);
        let (mut shared, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_end = shared.waiting == shared.workers && shared.jobs.is_empty();
        let waited = match shared.phase {
            _ if is_end => {
                self.set_phase(&mut shared, Phase::Close);
                Waited::Finished
            }
            Phase::Explore if !shared.jobs.is_empty() => {
                let fair = shared.jobs.len().div_ceil(shared.waiting);
                let at = shared.jobs.len() - fair;
                Waited::Jobs(shared.jobs.split_off(at))
            }
            Phase::Explore | Phase::Still | Phase::Close => Waited::Again,
        };
        shared.waiting -= 1;
        self.renew_wanted(&shared);
        self.changed.notify_all();
        waited
    }

    /// Returns whether the expected work in worlds of this weight justifies the cost of moving
    /// them.
    pub(super) fn is_worth_weight(&self, weight: f64, instructions: u64) -> bool {
        let all = self.expected.load(Ordering::Relaxed);
        all == 0 || all as f64 * weight >= WORTH * instructions as f64
    }

    pub(super) fn phase(&self) -> Phase {
        self.shared().phase
    }

    /// Asks all workers to hand over what is left, until this time, and to leave.
    pub(super) fn close(&self, until: Option<Duration>) {
        self.stop.store(true, Ordering::Relaxed);
        let mut shared = self.shared();
        shared.closed_at = until;
        self.set_phase(&mut shared, Phase::Close);
    }

    /// Lets all workers leave because the lead has panicked. They do not wait for it any more and
    /// give up their states, because the run has failed.
    pub(super) fn abandon(&self) {
        self.shared().is_abandoned = true;
        self.close(Some(Duration::ZERO));
    }

    /// Pauses this worker for a checkpoint. Returns `None` if none is being written any more.
    pub(super) fn pause(&self) -> Option<Pause<'_>> {
        let mut shared = self.shared();
        if shared.phase != Phase::Still {
            return None;
        }
        shared.still += 1;
        shared.copying += 1;
        self.changed.notify_all();
        Some(Pause {
            releases: shared.releases,
            team: self,
        })
    }

    /// Returns states of paused workers for the lead's checkpoint, a part at a time; `None` after
    /// the last one.
    pub(crate) fn next_copies(&self) -> Option<Elsewhere> {
        let is_due = |shared: &mut Shared| shared.copying > 0 && shared.copies.is_empty();
        let waited = self.changed.wait_while(self.shared(), is_due);
        let mut shared = waited.unwrap_or_else(PoisonError::into_inner);
        let copies = std::mem::take(&mut shared.copies);
        self.changed.notify_all();
        (!copies.is_empty()).then_some(copies)
    }
}

/// The pause of a worker while the lead writes a checkpoint.
pub(super) struct Pause<'t> {
    team: &'t Team,
    /// The number of releases before this pause.
    releases: u64,
}

impl Pause<'_> {
    /// Gives the lead copies of states for its checkpoint. Waits while the lead has many, because
    /// all of them together may not fit into memory. Returns `false` if it needs no more.
    pub(super) fn give(&self, copies: Elsewhere) -> bool {
        let must_wait =
            |shared: &mut Shared| self.goes_on(shared) && shared.copies.jobs.len() > MOST_HANDED;
        let waited = self.team.changed.wait_while(self.team.shared(), must_wait);
        let mut shared = waited.unwrap_or_else(PoisonError::into_inner);
        if !self.goes_on(&shared) {
            return false;
        }
        shared.copies.jobs.extend(copies.jobs);
        shared.copies.snapshots.extend(copies.snapshots);
        self.team.changed.notify_all();
        true
    }

    /// Returns whether the checkpoint is still being written.
    fn goes_on(&self, shared: &Shared) -> bool {
        shared.releases == self.releases && !shared.is_abandoned
    }

    /// Waits until the checkpoint is written.
    pub(super) fn wait(self) {
        let (team, releases) = (self.team, self.releases);
        drop(self);
        let is_still = |shared: &mut Shared| shared.releases == releases && !shared.is_abandoned;
        drop(team.changed.wait_while(team.shared(), is_still));
    }
}

/// However giving copies ends, the lead does not wait for more.
impl Drop for Pause<'_> {
    fn drop(&mut self) {
        let mut shared = self.team.shared();
        if shared.releases == self.releases {
            shared.copying -= 1;
        }
        self.team.changed.notify_all();
    }
}

impl Member {
    /// Creates the view of a worker that gives no dstates away before this round of its search.
    pub(super) fn new(team: Arc<Team>, number: usize, first_look: u32) -> Member {
        Member {
            team,
            number,
            is_lead: number == 0,
            events: Arc::default(),
            told: 0,
            growth: 0,
            has_grown: true,
            rounds: 0,
            look_after: Duration::ZERO,
            look_at: first_look,
            pause: ROUNDS_A_LOOK,
            reported: SolverStatistics::default(),
        }
    }

    /// Returns a counter of all workers.
    pub(crate) fn counter(&self, counted: Counted) -> &AtomicU64 {
        match counted {
            Counted::Paths => &self.team.paths,
            Counted::Forks => &self.team.forks,
            Counted::Instructions => &self.team.instructions,
            Counted::Stops => &self.team.stops,
        }
    }

    /// Returns how much memory this worker may use until it asks again: its share of what is left
    /// up to the limit, or what it needs, and nothing of what others were given and may still use.
    pub(crate) fn take_room(&self, needed: u64, left: impl FnOnce() -> u64) -> u64 {
        let workers = self.team.shared().workers as u64;
        let _measuring = lock(&self.team.measuring);
        self.keep_room(0);
        // First what others may still use: what they use meanwhile is then counted twice, not never.
        let rooms = self.team.rooms.iter();
        let given: u64 = rooms.map(|room| room.load(Ordering::SeqCst)).sum();
        let left = left();
        let free = left.saturating_sub(given);
        let room = free.min((left / workers).max(needed));
        self.keep_room(room);
        room
    }

    /// Records how much memory this worker may still use.
    pub(crate) fn keep_room(&self, room: u64) {
        self.team.rooms[self.number].store(room, Ordering::SeqCst);
    }

    /// Returns whether there are other workers.
    pub(crate) fn has_others(&self) -> bool {
        self.team.shared().workers > 1
    }

    /// Makes all workers but the lead leave. Returns `false` if the lead is already alone.
    pub(crate) fn narrow(&self) -> bool {
        self.team.is_narrow.store(true, Ordering::Relaxed);
        if !self.is_lead {
            return true;
        }
        let are_others = |shared: &mut Shared| shared.workers > 1;
        let mut shared = self.team.shared();
        if !are_others(&mut shared) {
            return false;
        }
        // One of them may be in a long query.
        let waited = self
            .team
            .changed
            .wait_timeout_while(shared, PATIENCE, are_others);
        drop(waited);
        true
    }

    /// Returns the number of states of the other workers, if this is the lead.
    pub(crate) fn elsewhere(&self) -> usize {
        match self.is_lead {
            true => self.team.elsewhere.load(Ordering::Relaxed),
            false => 0,
        }
    }
}

/// How long a worker waits for jobs before it checks the clock and the stop flag.
pub(crate) const PATIENCE: Duration = Duration::from_millis(10);

/// Maximum number of jobs that wait for the lead before workers pause handing over their states.
const MOST_HANDED: usize = 256;

/// A state is given away if the expected work below it is at least this many times the cost of
/// rematerialising it.
pub(super) const WORTH: f64 = 16.0;

/// Number of rounds between two checks whether idle workers want dstates, because a round of a
/// world is short. It doubles if no dstate was worth giving.
pub(crate) const ROUNDS_A_LOOK: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies of all states of a worker may be larger than the available memory.
    #[test]
    fn the_lead_gets_copies_of_a_paused_worker_in_parts() {
        let team = Team::new(2, Vec::new(), [0; 3]);
        team.set_phase(&mut team.shared(), Phase::Still);
        let part = || Elsewhere {
            jobs: (0..64).map(|_| Job::state(Trace::default())).collect(),
            snapshots: Vec::new(),
        };
        let mut sizes = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let pause = team.pause().expect("a checkpoint is being written");
                assert!((0..100).all(|_| pause.give(part())));
                pause.wait();
            });
            let is_moving = |shared: &mut Shared| shared.still == 0;
            drop(team.changed.wait_while(team.shared(), is_moving));
            while let Some(copies) = team.next_copies() {
                sizes.push(copies.jobs.len());
            }
            team.shared().releases += 1;
            team.changed.notify_all();
        });
        assert_eq!(sizes.iter().sum::<usize>(), 6400);
        assert!(sizes.iter().all(|size| *size <= MOST_HANDED + 64));
    }

    #[test]
    fn a_worker_stops_giving_copies_when_nobody_wants_them() {
        let team = Team::new(2, Vec::new(), [0; 3]);
        assert!(team.pause().is_none());
        team.set_phase(&mut team.shared(), Phase::Still);
        let pause = team.pause().expect("a checkpoint is being written");
        assert!(pause.give(Elsewhere::default()));
        team.shared().releases += 1;
        assert!(!pause.give(Elsewhere::default()));
        pause.wait();
    }
}
