//! Several workers on one search. Each has an explorer of its own, with arena, solver and frontier, in a thread of its own;
//! states of programs move between them as pending traces, and worlds as dstates with their states. The lead is the explorer that the caller runs. It keeps
//! the accounts: the others report what they counted, found and covered. Frontiers are disjoint, and together with the jobs
//! on their way they are the whole frontier.

mod giving;

use everett_linux::{Refusal, Setup};
use everett_net::FaultIndex;
use everett_solver::SolverStatistics;
use everett_vm::Image;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::config::{ExplorerConfig, Statistics, WorldStatistics};
use crate::explorer::{Explorer, Listener, Start, Stopped};
use crate::finding::{FindingIndex, PathEnd};
use crate::frontier::{StateId, Stored};
use crate::mapping::{DstateId, weight_of};
use crate::pair::Difference;
use crate::path::{Path, Sharing};
use crate::trace::Trace;
use crate::world::{SavedFiles, VIRTUAL_TIME, WorldFinding, WorldPart, WorldSnapshot};

/// How long a worker waits for jobs before it looks at the clock and at the user's wishes.
const PATIENCE: Duration = Duration::from_millis(10);
/// A state is given away if what lies before it is expected to take so many times what it takes to rematerialise it.
const WORTH: f64 = 16.0;
/// Dstates are given away for the first time after the instructions of a batch divided by this, in rounds: what takes few
/// is over before another worker has begun.
const FIRST_ROUNDS_PART: u64 = 10;
/// Rounds between two looks at whether dstates are wanted: a round of a world is short. Where none was worth it, they double.
const ROUNDS_A_LOOK: u32 = 16;
const MOST_ROUNDS_A_LOOK: u32 = 4096;
/// Rounds between two reports to the lead.
const ROUNDS_A_REPORT: u32 = 64;

/// What the listener of the lead is to hear from another worker.
enum Event {
    Path(Box<PathEnd>),
    Finding(Box<WorldFinding>),
    Difference(Box<Difference>),
    SetUp(Box<Setup>, Box<Trace>),
    World(Box<(BTreeMap<String, Trace>, SavedFiles)>),
}

/// What moves from one worker to another.
#[derive(Clone)]
pub(crate) enum Job {
    /// A state of a program.
    State(Box<Trace>),
    /// Worlds.
    Worlds(Arc<WorldPart>),
}

impl Job {
    /// A state of a program.
    fn state(trace: Trace) -> Job {
        Job::State(Box::new(trace))
    }

    /// How many states move.
    fn states(&self) -> u64 {
        match self {
            Job::State(_) => 1,
            Job::Worlds(part) => part.states() as u64,
        }
    }
}

/// What the lead does not have while a checkpoint is written.
#[derive(Default)]
pub(crate) struct Elsewhere {
    /// On their way, or states of other workers.
    pub(crate) jobs: Vec<Job>,
    /// Worlds of other workers.
    pub(crate) snapshots: Vec<WorldSnapshot>,
}

/// What a worker counted and found since its last report.
struct Report {
    statistics: Statistics,
    worlds: WorldStatistics,
    fired: Vec<FaultIndex>,
    limits: Vec<&'static str>,
    warnings: Vec<String>,
    refusals: Vec<Refusal>,
    solver: SolverStatistics,
    events: Vec<Event>,
}

/// What all workers are to do.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Phase {
    Explore,
    /// Stand still: the lead writes a checkpoint.
    Still,
    /// Hand over what is left, and leave.
    Close,
}

struct Shared {
    phase: Phase,
    jobs: Vec<Job>,
    reports: Vec<Report>,
    /// Workers, with the lead.
    workers: usize,
    /// Those of them that wait for jobs.
    waiting: usize,
    /// Those of them that stand still.
    still: usize,
    /// How often they were released from that.
    releases: u64,
    /// Where their states stand.
    snapshot: Elsewhere,
    /// Coverage of segments.
    covered: Vec<u8>,
    /// Jobs that were given away.
    moved: u64,
}

/// What workers share.
pub(crate) struct Team {
    shared: Mutex<Shared>,
    changed: Condvar,
    /// Workers that wait while there are no jobs.
    wanted: AtomicUsize,
    /// How often the coverage has grown.
    growth: AtomicUsize,
    /// States of workers that are not the lead, as far as they have told.
    elsewhere: AtomicUsize,
    /// Instructions that exploring everything is expected to take, by what the explored part took; 0 if that is not known.
    expected: AtomicU64,
    /// Paths that ended and forks of all workers. Each is counted before it happens, so that no limit is exceeded.
    paths: AtomicU64,
    forks: AtomicU64,
    /// Workers are not only to explore: they look at the phase.
    attention: AtomicBool,
    /// Interrupts the solvers of all workers but the lead.
    stop: Arc<AtomicBool>,
}

/// Counters of a team, for summaries.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TeamStatistics {
    /// Workers.
    pub workers: usize,
    /// States that moved from one worker to another.
    pub moved: u64,
}

/// What has a limit for all workers together.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Paths that ended.
    Paths,
    /// Forks.
    Forks,
}

/// A worker's view of its team.
pub(crate) struct Member {
    team: Arc<Team>,
    is_lead: bool,
    events: Arc<Mutex<Vec<Event>>>,
    /// States that the team was told about.
    told: usize,
    /// The growth of coverage that is known here.
    growth: usize,
    /// Coverage has grown here since the team was told.
    pub(crate) has_grown: bool,
    rounds: u32,
    /// The round in which it is looked at whether dstates are wanted, and how many there are to the next.
    look_at: u32,
    pause: u32,
    /// Solver counters that were reported.
    reported: SolverStatistics,
}

enum Waited {
    Jobs(Vec<Job>),
    Again,
    Finished,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A worker that panics ends the run; until then counters may be read.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Team {
    fn new(workers: usize, explorer: &Explorer<'_>) -> Team {
        let (paths, forks) = (explorer.paths_ended(), explorer.statistics.forks);
        Team {
            shared: Mutex::new(Shared {
                phase: Phase::Explore,
                jobs: Vec::new(),
                reports: Vec::new(),
                workers,
                waiting: 0,
                still: 0,
                releases: 0,
                snapshot: Elsewhere::default(),
                covered: explorer.worker.coverage.segments.clone(),
                moved: 0,
            }),
            changed: Condvar::new(),
            wanted: AtomicUsize::new(0),
            growth: AtomicUsize::new(0),
            elsewhere: AtomicUsize::new(0),
            expected: AtomicU64::new(0),
            paths: AtomicU64::new(paths),
            forks: AtomicU64::new(forks),
            attention: AtomicBool::new(false),
            stop: Arc::default(),
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }

    fn set_phase(&self, shared: &mut Shared, phase: Phase) {
        shared.phase = phase;
        self.attention
            .store(phase != Phase::Explore, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn renew_wanted(&self, shared: &Shared) {
        let wanted = shared.waiting.saturating_sub(shared.jobs.len());
        self.wanted.store(wanted, Ordering::Relaxed);
    }

    fn add_jobs(&self, jobs: Vec<Job>) {
        let mut shared = self.shared();
        shared.moved += jobs.iter().map(Job::states).sum::<u64>();
        shared.jobs.extend(jobs);
        self.renew_wanted(&shared);
        self.changed.notify_all();
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

    /// Whether so much lies before a state that giving it away pays.
    fn is_worth(&self, halvings: u32, instructions: u64) -> bool {
        self.is_worth_weight((-f64::from(halvings)).exp2(), instructions)
    }

    /// The same for worlds of this weight.
    fn is_worth_weight(&self, weight: f64, instructions: u64) -> bool {
        let all = self.expected.load(Ordering::Relaxed);
        all == 0 || all as f64 * weight >= WORTH * instructions as f64
    }

    fn phase(&self) -> Phase {
        self.shared().phase
    }

    fn close(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.set_phase(&mut self.shared(), Phase::Close);
    }

    /// Stands still until the lead has written its checkpoint.
    fn stand_still(&self, states: Elsewhere) {
        let mut shared = self.shared();
        if shared.phase != Phase::Still {
            return;
        }
        shared.snapshot.jobs.extend(states.jobs);
        shared.snapshot.snapshots.extend(states.snapshots);
        shared.still += 1;
        self.changed.notify_all();
        let releases = shared.releases;
        let is_still = |shared: &mut Shared| shared.releases == releases;
        drop(self.changed.wait_while(shared, is_still));
    }
}

/// Leaves the team however a worker ends, so that nobody waits for it.
struct Leaving<'t>(&'t Team);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.shared().workers -= 1;
        self.0.changed.notify_all();
    }
}

/// Keeps what happens for the lead.
struct Forwarding {
    events: Arc<Mutex<Vec<Event>>>,
}

impl Listener for Forwarding {
    fn path(&mut self, end: &PathEnd) {
        lock(&self.events).push(Event::Path(Box::new(end.clone())));
    }

    fn finding(&mut self, finding: &WorldFinding) {
        lock(&self.events).push(Event::Finding(Box::new(finding.clone())));
    }

    fn difference(&mut self, difference: &Difference) {
        lock(&self.events).push(Event::Difference(Box::new(difference.clone())));
    }

    fn world(&mut self, traces: &BTreeMap<String, Trace>, files: &SavedFiles) {
        let world = Box::new((traces.clone(), files.clone()));
        lock(&self.events).push(Event::World(world));
    }

    fn set_up(&mut self, setup: &Setup, trace: &Trace) {
        let event = Event::SetUp(Box::new(setup.clone()), Box::new(trace.clone()));
        lock(&self.events).push(event);
    }

    fn tick(&mut self, _: &Explorer<'_>) {}
}

impl Member {
    fn new(team: Arc<Team>, is_lead: bool, batch: u64) -> Member {
        Member {
            team,
            is_lead,
            events: Arc::default(),
            told: 0,
            growth: 0,
            has_grown: true,
            rounds: 0,
            look_at: u32::try_from(batch / FIRST_ROUNDS_PART).unwrap_or(u32::MAX),
            pause: ROUNDS_A_LOOK,
            reported: SolverStatistics::default(),
        }
    }

    /// The counter of all workers.
    pub(crate) fn counter(&self, counted: Counted) -> &AtomicU64 {
        match counted {
            Counted::Paths => &self.team.paths,
            Counted::Forks => &self.team.forks,
        }
    }

    /// States of the other workers.
    pub(crate) fn elsewhere(&self) -> usize {
        match self.is_lead {
            true => self.team.elsewhere.load(Ordering::Relaxed),
            false => 0,
        }
    }
}

/// A worker other than the lead, from its first job to its last.
fn work(images: &[Image], config: ExplorerConfig, findings: FindingIndex, team: &Arc<Team>) {
    let _leaving = Leaving(team);
    let jobs = loop {
        match team.wait() {
            Waited::Jobs(jobs) => break jobs,
            Waited::Finished => return,
            Waited::Again => match team.phase() {
                Phase::Explore => {}
                Phase::Still => team.stand_still(Elsewhere::default()),
                Phase::Close => return,
            },
        }
    };
    let (spill, batch) = (config.spill.clone(), config.batch_instructions);
    let mut explorer = match Explorer::new(images, config, Start::Nothing) {
        Ok(explorer) => explorer,
        Err(_) => return team.add_jobs(jobs),
    };
    let member = Member::new(team.clone(), false, batch);
    let mut listener = Forwarding {
        events: member.events.clone(),
    };
    explorer.member = Some(member);
    explorer.share_findings(findings);
    explorer.take_jobs(jobs);
    explorer.run(&team.stop, &mut listener);
    explorer.share_coverage(team);
    explorer.report_to_lead();
    let left = explorer.give_all();
    team.add_jobs(left);
    if let Some(spill) = spill {
        // It holds nothing that is still needed.
        let _ = std::fs::remove_file(spill);
    }
}

impl<'a> Explorer<'a> {
    /// The same as [`Explorer::run`], with so many workers. A listener that looks at states sees those of one worker, so
    /// this is for listeners that do not.
    pub fn run_team(
        &mut self,
        workers: usize,
        stop: &AtomicBool,
        listener: &mut dyn Listener,
    ) -> Stopped {
        // Of two builds, the end of the first one is no end of a path.
        let limits = &self.config.limits;
        let is_limited = limits.max_paths.is_some() || limits.max_forks.is_some();
        let is_divisible = match self.is_world() {
            true => self.can_divide_worlds(),
            false => !is_limited || self.config.against.is_none(),
        };
        if workers < 2 || !is_divisible {
            return self.run(stop, listener);
        }
        let team = Arc::new(Team::new(workers, self));
        let batch = self.config.batch_instructions;
        self.member = Some(Member::new(team.clone(), true, batch));
        let images: &'a [Image] = self.images();
        let stopped = std::thread::scope(|scope| {
            for number in 1..workers {
                let (config, findings) = (self.config_of(number, &team), self.findings.clone());
                let team = &team;
                scope.spawn(move || work(images, config, findings, team));
            }
            let stopped = self.run(stop, listener);
            team.close();
            stopped
        });
        self.share_coverage(&team);
        self.absorb(listener);
        let left = std::mem::take(&mut team.shared().jobs);
        self.team_statistics = TeamStatistics {
            workers,
            moved: team.shared().moved - left.iter().map(Job::states).sum::<u64>(),
        };
        self.member = None;
        self.take_jobs(left);
        match stopped {
            Stopped::Finished if self.limits_hit.contains(&VIRTUAL_TIME) => {
                Stopped::Limit(VIRTUAL_TIME)
            }
            _ => stopped,
        }
    }

    fn config_of(&self, number: usize, team: &Team) -> ExplorerConfig {
        let mut config = self.config.clone();
        config.seed = config.seed.wrapping_add(number as u64);
        config.solver.stop = Some(team.stop.clone());
        config.spill = config.spill.map(|path| {
            let mut name = path.into_os_string();
            name.push(format!("-{number}"));
            name.into()
        });
        config
    }

    /// What was counted of the team.
    pub fn team_statistics(&self) -> TeamStatistics {
        self.team_statistics
    }

    fn take_jobs(&mut self, jobs: Vec<Job>) {
        for job in jobs {
            match job {
                Job::State(trace) => self.add_path(Path::following(Arc::from(trace))),
                Job::Worlds(part) => self.take_worlds(&part),
            }
        }
    }

    /// Exchanges states, coverage and reports with the team. Returns why this worker stops, if it does.
    pub(crate) fn exchange(&mut self, listener: &mut dyn Listener) -> Option<Stopped> {
        let member = self.member.as_mut()?;
        let (team, is_lead) = (member.team.clone(), member.is_lead);
        member.rounds += 1;
        let is_due = member.rounds.is_multiple_of(ROUNDS_A_REPORT);
        let is_idle = self.frontier.is_empty();
        self.share_coverage(&team);
        if is_idle || is_due || team.attention.load(Ordering::Relaxed) {
            match is_lead {
                true => self.absorb(listener),
                false => self.report_to_lead(),
            }
            if !is_lead {
                match team.phase() {
                    Phase::Explore => {}
                    Phase::Still => team.stand_still(self.copies()),
                    Phase::Close => return Some(Stopped::Asked),
                }
            }
        }
        if !is_idle {
            match self.is_world() {
                true => self.share_worlds(&team),
                false => self.share_work(&team),
            }
            return None;
        }
        match team.wait() {
            Waited::Jobs(jobs) => self.take_jobs(jobs),
            Waited::Again => {}
            Waited::Finished => return Some(Stopped::Finished),
        }
        None
    }

    /// The team has come to its end, and this worker with it.
    pub(crate) fn is_team_finished(&self) -> bool {
        let member = self.member.as_ref();
        member.is_none_or(|member| member.team.phase() == Phase::Close)
    }

    /// Brings the coverage here and that of the team together.
    fn share_coverage(&mut self, team: &Team) {
        let growth = team.growth.load(Ordering::Relaxed);
        let Some(member) = self.member.as_mut() else {
            return;
        };
        if !member.has_grown && member.growth == growth {
            return;
        }
        let mut shared = team.shared();
        let mine = &mut self.worker.coverage.segments;
        let mut is_new = false;
        for (mark, known) in mine.iter_mut().zip(&mut shared.covered) {
            is_new |= *mark > *known;
            *known |= *mark;
            *mark = *known;
        }
        member.has_grown = false;
        member.growth = match is_new {
            true => team.growth.fetch_add(1, Ordering::Relaxed) + 1,
            false => growth,
        };
        self.distances_stale = true;
    }

    /// Reports to the lead what was counted and found since the last time.
    fn report_to_lead(&mut self) {
        let states = self.states();
        let solver = self.worker.solver.statistics().clone();
        let statistics = self.take_statistics();
        let refusals = self.refused();
        let worlds = std::mem::take(&mut self.world.counted);
        let (_, fired) = self.world.times_and_fired();
        let Some(member) = self.member.as_mut() else {
            return;
        };
        let elsewhere = &member.team.elsewhere;
        elsewhere.fetch_add(states, Ordering::Relaxed);
        elsewhere.fetch_sub(
            std::mem::replace(&mut member.told, states),
            Ordering::Relaxed,
        );
        let report = Report {
            statistics,
            worlds,
            fired,
            limits: self.limits_hit.clone(),
            warnings: self.warnings.clone(),
            refusals,
            solver: solver.since(&std::mem::replace(&mut member.reported, solver.clone())),
            events: std::mem::take(&mut *lock(&member.events)),
        };
        member.team.shared().reports.push(report);
    }

    /// Takes over what the other workers reported.
    fn absorb(&mut self, listener: &mut dyn Listener) {
        let Some(member) = &self.member else { return };
        let team = member.team.clone();
        let reports = std::mem::take(&mut member.team.shared().reports);
        for report in reports {
            self.statistics.add(&report.statistics);
            self.world.counted.add(&report.worlds);
            self.world.note_fired(report.fired);
            self.others_solver.add(&report.solver);
            report
                .limits
                .into_iter()
                .for_each(|limit| self.note_limit(limit));
            report.warnings.into_iter().for_each(|text| self.warn(text));
            for refusal in &report.refusals {
                self.note_refusal(refusal);
            }
            for event in report.events {
                match event {
                    Event::Path(end) => listener.path(&end),
                    Event::Finding(finding) => listener.finding(&finding),
                    Event::Difference(difference) => listener.difference(&difference),
                    Event::SetUp(setup, trace) => listener.set_up(&setup, &trace),
                    Event::World(world) => listener.world(&world.0, &world.1),
                }
            }
        }
        let states = self.states() as u64;
        self.statistics.states_peak = self.statistics.states_peak.max(states);
        let finished = self.statistics.finished.to_f64();
        if finished > 0.0 {
            let expected = self.statistics.instructions as f64 / finished;
            team.expected.store(expected as u64, Ordering::Relaxed);
        }
    }

    /// Before a checkpoint: lets all workers stand still, and learns where their states stand. `false` if the search is to
    /// stop first, because a worker may be in a query that takes long: then nothing may be saved.
    pub(crate) fn hold_team(&mut self, listener: &mut dyn Listener) -> bool {
        let Some(member) = &self.member else {
            return false;
        };
        let team = member.team.clone();
        let mut shared = team.shared();
        team.set_phase(&mut shared, Phase::Still);
        let are_moving = |shared: &mut Shared| shared.still + 1 < shared.workers;
        while shared.still + 1 < shared.workers {
            let waited = team
                .changed
                .wait_timeout_while(shared, PATIENCE, are_moving);
            (shared, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if self.is_stopping() {
                drop(shared);
                self.release_team();
                return false;
            }
        }
        let mut elsewhere = std::mem::take(&mut shared.snapshot);
        elsewhere.jobs.extend(shared.jobs.iter().cloned());
        drop(shared);
        self.elsewhere = elsewhere;
        self.share_coverage(&team);
        self.absorb(listener);
        true
    }

    /// After a checkpoint: all workers go on.
    pub(crate) fn release_team(&mut self) {
        self.elsewhere = Elsewhere::default();
        let Some(member) = &self.member else { return };
        let mut shared = member.team.shared();
        shared.still = 0;
        shared.snapshot = Elsewhere::default();
        shared.releases += 1;
        member.team.set_phase(&mut shared, Phase::Explore);
    }
}
