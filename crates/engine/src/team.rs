//! Several workers on one search. Each worker is a thread with its own explorer: arena, solver
//! and frontier. States of programs move between workers as pending traces, worlds as dstates
//! with their states. The worker whose explorer the caller runs is the *lead*: the others report
//! their counts, findings and coverage to it. Frontiers are disjoint; together with the jobs in
//! transit they are the whole frontier.

pub(crate) mod giving;
pub(crate) mod member;
mod together;

use everett_linux::Setup;
use everett_vm::{Image, Note};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::ExplorerConfig;
use crate::explorer::{Explorer, Listener, Start, Stopped};
use crate::finding::{FindingIndex, PathEnd, SavedFiles, WorldFinding};
use crate::frontier::{StateId, Stored};
use crate::mapping::{DstateId, weight_of};
use crate::pair::Difference;
use crate::path::{Path, Sharing};
use crate::team::member::{
    Elsewhere, Event, Job, Member, PATIENCE, Pause, Phase, Report, Shared, Team, TeamStatistics,
    Waited, lock,
};
use crate::trace::Trace;

/// Maximum number of rounds between two checks whether idle workers want dstates.
const MOST_ROUNDS_A_LOOK: u32 = 4096;
/// Dstates are given away for the first time after a number of rounds that is the instructions of a
/// batch divided by this: a shorter search ends before another worker has started.
const FIRST_ROUNDS_PART: u64 = 10;
/// Number of rounds between two reports to the lead.
const ROUNDS_A_REPORT: u32 = 64;
/// After the time limit, the states of other workers are collected for one part in this many of it.
const CLOSING_PART: u32 = 40;

/// Counts a worker out of the team however it ends, so that the others do not wait for it and have
/// its memory.
struct Leaving<'t>(&'t Team, usize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.leave_room(self.1);
        self.0.shared().workers -= 1;
        self.0.changed.notify_all();
    }
}

/// Releases the other workers if the lead panics: otherwise they would wait for the lead, and the
/// panic would wait for them.
struct Leading<'t>(&'t Team);

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abandon();
        }
    }
}

/// Collects the events of a worker for the lead.
struct Forwarding {
    events: Arc<Mutex<Vec<Event>>>,
}

impl Listener for Forwarding {
    fn path(&mut self, end: &PathEnd) {
        lock(&self.events).push(Event::Path(Box::new(end.clone())));
    }

    fn printed(&mut self, output: &[Vec<u8>; 2]) {
        lock(&self.events).push(Event::Printed(output.clone()));
    }

    fn noted(&mut self, notes: &[Note]) {
        lock(&self.events).push(Event::Noted(notes.to_vec()));
    }

    fn seed(&mut self, number: u32) {
        lock(&self.events).push(Event::Seed(number));
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

/// Runs a worker other than the lead, from its first job to its last.
fn work(
    images: &[Image],
    (number, config): (usize, ExplorerConfig),
    findings: FindingIndex,
    team: &Arc<Team>,
) {
    let _leaving = Leaving(team, number);
    let jobs = loop {
        match team.wait_as(number, config.clock) {
            Waited::Jobs(jobs) => break jobs,
            Waited::Finished => return,
            Waited::Again if team.is_narrow.load(Ordering::Relaxed) => return,
            Waited::Again => match team.phase() {
                Phase::Explore => {}
                Phase::Still => team.pause().map_or((), Pause::wait),
                Phase::Close => return,
            },
        }
    };
    let spill = config.spill.clone();
    let mut explorer = match Explorer::new(images, config, Start::Nothing) {
        Ok(explorer) => explorer,
        Err(_) => return team.add_jobs(jobs),
    };
    let member = Member::new(team.clone(), number, explorer.first_look());
    let mut listener = Forwarding {
        events: member.events.clone(),
    };
    explorer.member = Some(member);
    explorer.share_findings(findings);
    explorer.take_jobs(jobs);
    explorer.run(&team.stop, &mut listener);
    team.leave_room(number);
    explorer.share_coverage(team);
    explorer.hand_over(team);
    explorer.report_to_lead();
    let memory = explorer.config.memory.clone();
    drop(explorer);
    // The lead may wait for the memory: it measures again when this worker has left.
    memory.release();
    if let Some(spill) = spill {
        // The file contains nothing that is still needed.
        let _ = std::fs::remove_file(spill);
    }
}

impl<'a> Explorer<'a> {
    /// Explores like [`Explorer::run`], with several workers. A listener that inspects states would
    /// see only those of the lead, so this is for listeners that do not.
    pub fn run_team(
        &mut self,
        workers: usize,
        stop: &AtomicBool,
        listener: &mut dyn Listener,
    ) -> Stopped {
        // With two builds, the end of the first one is not the end of a path.
        let limits = &self.config.limits;
        let is_limited = limits.max_paths.is_some() || limits.max_forks.is_some();
        let is_divisible = match self.is_world() {
            true => self.can_divide_worlds(),
            false => !is_limited || self.config.against.is_none(),
        };
        if workers < 2 || !is_divisible {
            return self.run(stop, listener);
        }
        let covered = self.worker.coverage.segments.clone();
        let counted = [
            self.paths_ended(),
            self.statistics.forks,
            self.statistics.instructions,
        ];
        let team = Arc::new(Team::new(workers, covered, counted));
        self.member = Some(Member::new(team.clone(), 0, self.first_look()));
        let images: &'a [Image] = self.images();
        let stopped = std::thread::scope(|scope| {
            let _leading = Leading(&team);
            for number in 1..workers {
                let (config, findings) = (self.config_of(number, &team), self.findings.clone());
                let team = &team;
                scope.spawn(move || work(images, (number, config), findings, team));
            }
            let stopped = self.run(stop, listener);
            let limit = self.config.limits.max_time;
            let late = limit.map(|most| most.max(self.config.clock.now()) + most / CLOSING_PART);
            team.close(late);
            while let Some(jobs) = team.take_handed() {
                team.shared().count_unmoved(&jobs);
                self.stow(jobs);
            }
            stopped
        });
        self.share_coverage(&team);
        self.absorb(listener);
        let mut shared = team.shared();
        let left = std::mem::take(&mut shared.jobs);
        shared.count_unmoved(&left);
        self.team_statistics = TeamStatistics {
            workers,
            moved: shared.moved,
            jobs_moved: shared.jobs_moved,
            idle: std::mem::take(&mut shared.idle),
        };
        drop(shared);
        self.member = None;
        self.take_jobs(left);
        match stopped {
            Stopped::Finished => self.stopped_by_virtual_time(),
            _ => stopped,
        }
    }

    /// Returns the round from which on a worker gives dstates away.
    fn first_look(&self) -> u32 {
        let rounds = self.config.batch_instructions / FIRST_ROUNDS_PART;
        u32::try_from(rounds).unwrap_or(u32::MAX)
    }

    /// Returns the configuration of a worker, with its own seed and spill file.
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

    /// Returns the counters of the team.
    pub fn team_statistics(&self) -> &TeamStatistics {
        &self.team_statistics
    }

    /// Adds jobs of other workers to the frontier.
    pub(crate) fn take_jobs(&mut self, jobs: Vec<Job>) {
        for job in jobs {
            match job {
                Job::States(traces) => self.rematerialise_together(&traces),
                Job::Worlds(part) => self.take_worlds(&part),
            }
        }
    }

    /// Exchanges states, coverage and reports with the team. Returns why this worker stops, if it
    /// does.
    pub(crate) fn exchange(&mut self, listener: &mut dyn Listener) -> Option<Stopped> {
        let member = self.member.as_mut()?;
        let (team, is_lead) = (member.team.clone(), member.is_lead);
        member.rounds += 1;
        let is_due = member.rounds.is_multiple_of(ROUNDS_A_REPORT);
        let is_idle = self.frontier.is_empty();
        self.share_coverage(&team);
        let is_awaited = team.attention.load(Ordering::Relaxed) || self.is_waiting_for_team();
        if is_idle || is_due || is_awaited {
            match is_lead {
                true => self.absorb(listener),
                false => self.report_to_lead(),
            }
            let handed = if is_lead { team.handed() } else { Vec::new() };
            if !handed.is_empty() {
                self.stow(handed);
                self.take_from_backlog();
                return None;
            }
            if !is_lead {
                match team.phase() {
                    Phase::Explore => {}
                    Phase::Still => self.pause(&team),
                    Phase::Close => return Some(Stopped::Asked),
                }
            }
        }
        if self.must_leave() {
            return Some(Stopped::Asked);
        }
        if !is_idle {
            match self.is_world() {
                true => self.share_worlds(&team),
                false => self.share_work(&team),
            }
            return None;
        }
        let number = self.member.as_ref().map_or(0, |member| member.number);
        // Other workers have its memory meanwhile, so it is measured before the next state runs.
        self.rounds_left = 0;
        match team.wait_as(number, self.config.clock) {
            Waited::Jobs(jobs) => self.take_jobs(jobs),
            Waited::Again => {}
            Waited::Finished => return Some(Stopped::Finished),
        }
        None
    }

    /// Returns whether this worker must leave because the lead needs its memory.
    pub(crate) fn must_leave(&self) -> bool {
        let member = self.member.as_ref();
        member
            .is_some_and(|member| !member.is_lead && member.team.is_narrow.load(Ordering::Relaxed))
    }

    /// Returns whether this is the lead, and other workers leave because it needs their memory.
    pub(crate) fn is_waiting_for_team(&self) -> bool {
        let lead = self.member.as_ref().filter(|member| member.is_lead);
        lead.is_some_and(|lead| lead.team.is_narrow.load(Ordering::Relaxed) && lead.has_others())
    }

    /// Returns whether the search of the whole team has ended.
    pub(crate) fn is_team_finished(&self) -> bool {
        let member = self.member.as_ref();
        member.is_none_or(|member| member.team.phase() == Phase::Close)
    }

    /// Merges the coverage of this worker with that of the team.
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

    /// Reports to the lead what was counted and found since the last report.
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
            unsaved: std::mem::take(&mut self.unsaved),
        };
        member.team.shared().reports.push(report);
    }

    /// Adds the reports of the other workers to the lead's results, and forwards their events.
    fn absorb(&mut self, listener: &mut dyn Listener) {
        let Some(member) = &self.member else { return };
        let team = member.team.clone();
        let reports = std::mem::take(&mut member.team.shared().reports);
        for report in reports {
            self.statistics.add(&report.statistics);
            self.unsaved += report.unsaved;
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
                    Event::Printed(output) => listener.printed(&output),
                    Event::Noted(notes) => listener.noted(&notes),
                    Event::Seed(number) => listener.seed(number),
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
        let explored = self.statistics.instructions;
        team.explored.store(explored, Ordering::Relaxed);
    }

    /// Pauses all workers before a checkpoint. Returns `false` if the search has to stop first,
    /// because a worker may be in a long query: then nothing may be saved.
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
        let jobs = shared.jobs.clone();
        drop(shared);
        self.in_transit = jobs;
        self.share_coverage(&team);
        self.absorb(listener);
        true
    }

    /// Returns states of other workers for a checkpoint of the lead, a part at a time; `None` after
    /// the last one.
    pub(crate) fn next_elsewhere(&self) -> Option<Elsewhere> {
        let member = self.member.as_ref().filter(|member| member.is_lead)?;
        member.team.next_copies()
    }

    /// Lets all workers continue after a checkpoint.
    pub(crate) fn release_team(&mut self) {
        self.in_transit = Vec::new();
        let Some(member) = &self.member else { return };
        let mut shared = member.team.shared();
        (shared.still, shared.copying) = (0, 0);
        shared.copies = Elsewhere::default();
        shared.releases += 1;
        member.team.set_phase(&mut shared, Phase::Explore);
    }
}
