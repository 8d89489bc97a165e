//! The work on the findings of a run after its search: shrinks them, confirms them natively, and
//! describes the course of their worlds.

use everett_engine::{ExplorerConfig, WorldFinding};
use everett_native::Deadline;
use everett_toolchain::BuildLimits;
use everett_vm::Image;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Recorder, in_folder};
use crate::error::Result;
use crate::events::Event;
use crate::finding::{finding_files, written_files};
use crate::follow::Model;
use crate::native_world::{NativeWorld, tell_revealing};
use crate::session::Session;
use crate::shrink::{Goal, ShrinkBudget, Shrunk, shrink_trace};
use crate::spec::{BuildSpec, RunSpec};
use crate::trace::WorldTrace;
use crate::verdict::{Build, Natively, Verdict};
use crate::world::chart::{host_status_text, messages_files};
use crate::world::topology;

/// Work for shrinking one finding, see [`ShrinkBudget`].
const SHRINK_WORK: u64 = 60_000_000;
/// Work for shrinking all findings of a run.
const ALL_SHRINK_WORK: u64 = 4 * SHRINK_WORK;
/// Maximum part of a run's time limit that is reserved for shrinking findings and confirming them
/// natively.
pub(super) const AFTER_TIME: Duration = Duration::from_secs(20);

/// Time limit of one checked build, if the run has none. No build takes as long, even on a loaded
/// machine.
const BUILD_TIME: Duration = Duration::from_secs(600);

impl Recorder<'_> {
    /// Shrinks the findings of this run, describes the course of their worlds, and confirms them
    /// natively, as long as there is time.
    pub(crate) fn work_on_findings(
        &mut self,
        config: &ExplorerConfig,
        images: &[Image],
    ) -> Result<()> {
        if self.found.is_empty() {
            return Ok(());
        }
        let mut until = AfterRun::of(self.spec, config, self.session);
        let mut native = self.native_world(until.deadline(self.session));
        let mut late = false;
        let mut confirmed = 0;
        let mut all = std::mem::take(&mut self.found);
        // The budget for shrinking goes to the same findings whichever was found first.
        all.sort_by_cached_key(|(number, _)| self.findings[*number].order());
        for (number, found) in all {
            let trace = WorldTrace::of(&found, self.format.is_program);
            let goal = Goal::of_entry(&self.findings[number], &trace);
            let shrunk = until.shrunk((config, images), &trace, &goal);
            let is_late = until.limit.is_some_and(|until| self.session.now() >= until);
            late |= is_late;
            let (verdict, shrunk) = match &mut native {
                Some(native) if !is_late => {
                    // The toolchain may be missing, and installing it takes minutes.
                    native.builds = BuildLimits {
                        installs: false,
                        time: Some(until.build_time(self.session.now())),
                    };
                    self.observer.event(&Event::Confirming {
                        entry: &self.findings[number],
                        findings: self.findings.len(),
                    });
                    let (verdict, shrunk) = confirm(native, &trace, shrunk);
                    (Ok(verdict), shrunk)
                }
                _ if self.spec.no_confirm => (Err("`no_confirm` is set"), shrunk),
                Some(_) => (Err("there was no time"), shrunk),
                None => (Err("the native programs cannot be run"), shrunk),
            };
            let natively = match &verdict {
                Ok((verdict, build)) => Natively::Tried(verdict, *build),
                Err(why) => Natively::NotTried(why),
            };
            self.settle(number, (found, trace), shrunk, natively, (config, images))?;
            let Ok((verdict, build)) = verdict else {
                continue;
            };
            confirmed += usize::from(verdict == Verdict::Confirmed);
            self.note_verdict(number, &verdict, build);
        }
        if native.is_some() {
            if late {
                self.warn("there is no time to confirm all findings");
            }
            self.observer.event(&Event::FindingsReplayed {
                confirmed,
                findings: self.findings.len(),
            });
        }
        Ok(())
    }

    /// Returns the native programs on which findings are confirmed, if they can be and shall be.
    fn native_world(&mut self, deadline: Deadline) -> Option<NativeWorld> {
        if self.spec.no_confirm {
            return None;
        }
        match NativeWorld::of(self.spec, &BuildSpec::default(), self.session) {
            Ok(mut native) => {
                let hosts = native.hosts.iter();
                let programs = hosts.flat_map(|host| &host.config.programs);
                tell_revealing(programs, self.session);
                for host in &mut native.hosts {
                    host.config.deadline = Some(deadline.clone());
                }
                Some(native)
            }
            Err(error) => {
                self.warn(&format!("nothing is confirmed: {}", error.chain()));
                None
            }
        }
    }

    /// Notes whether a finding was confirmed.
    fn note_verdict(&mut self, number: usize, verdict: &Verdict, build: Option<Build>) {
        let entry = &mut self.findings[number];
        entry.confirmed = Some(verdict.name().to_owned());
        entry.confirmed_reason = verdict.reason().map(str::to_owned);
        entry.confirmed_on = build.map(|build| build.name().to_owned());
        self.observer
            .event(&Event::FindingReplayed { entry, verdict });
    }

    /// Replaces the files of a finding with those of the shrunk trace, if there is one, and keeps
    /// the original trace beside it. For a world, adds the messages on the way to the finding, and
    /// the status and files of its hosts.
    fn settle(
        &mut self,
        number: usize,
        (mut found, mut trace): (WorldFinding, WorldTrace),
        shrunk: Option<Shrunk>,
        natively: Natively<'_>,
        (config, images): (&ExplorerConfig, &[Image]),
    ) -> Result<()> {
        let dir = self.findings[number].dir.clone();
        let mut original = None;
        let mut files = Vec::new();
        if let Some(Shrunk {
            found: Some(other),
            trace: simpler,
            ..
        }) = shrunk
        {
            let name = trace.original_file("finding");
            files.push((name.clone(), trace.to_json()));
            files.extend(self.format.files("finding", &simpler));
            (found, trace, original) = (other, simpler, Some(name));
            self.findings[number].message = found.finding.message.clone();
        }
        let mut seen = None;
        if !trace.is_program {
            let seen = seen.insert(Model::new(config.clone(), images).follow_finding(&trace)?);
            if let Some(again) = seen.finding_of(&trace) {
                found.finding.values.clone_from(&again.finding.values);
            }
        }
        if self.failed && original.is_none() {
            files.extend(self.format.files("finding", &trace));
        }
        files.extend(finding_files(&found, original.as_deref(), natively));
        if let Some(seen) = seen {
            let (messages, host_status) = seen.on_the_way(&trace);
            let text = files.iter_mut().find(|(name, _)| name == "finding.txt");
            if let Some((_, text)) = text {
                text.extend(host_status_text(&host_status, &found.host).into_bytes());
            }
            files.extend(messages_files(&topology(config), &messages));
            for host in host_status {
                files.extend(written_files(&format!("{}.fs", host.name), &host.files));
            }
        }
        self.replacing.extend(in_folder(&dir, files));
        Ok(())
    }
}

/// The limits of the work on findings after a run. Without a time limit there are no deadlines,
/// because a loaded machine would get other results.
struct AfterRun {
    /// Remaining work for shrinking traces.
    work: u64,
    /// Deadline for shrinking traces.
    shrink: Option<Duration>,
    /// The time limit of the run.
    limit: Option<Duration>,
}

impl AfterRun {
    fn of(spec: &RunSpec, config: &ExplorerConfig, session: &Session) -> AfterRun {
        let now = session.now();
        let soon = now + AFTER_TIME;
        let limit = match session.stop.load(Ordering::Relaxed) {
            true => Some(config.limits.max_time.map_or(soon, |limit| limit.min(soon))),
            false => config.limits.max_time,
        };
        let shrink = |limit: Duration| now + limit.saturating_sub(now).min(AFTER_TIME) / 2;
        AfterRun {
            work: if spec.no_shrink { 0 } else { ALL_SHRINK_WORK },
            // The other half of the time is for confirming findings natively.
            shrink: limit.map(shrink),
            limit,
        }
    }

    /// Returns the deadline of native runs: the time limit, or a second interrupt.
    fn deadline(&self, session: &Session) -> Deadline {
        let (clock, limit) = (session.clock, self.limit);
        let stop = session.stop.clone();
        let was_stopped = stop.load(Ordering::Relaxed);
        Arc::new(move || {
            let is_stopped = !was_stopped && stop.load(Ordering::Relaxed);
            is_stopped || limit.is_some_and(|limit| clock.now() >= limit)
        })
    }

    /// Shrinks the trace of a finding. `None` if there is no simpler trace or the budget is spent.
    fn shrunk(
        &mut self,
        model: (&ExplorerConfig, &[Image]),
        trace: &WorldTrace,
        goal: &Goal,
    ) -> Option<Shrunk> {
        let is_late = self
            .shrink
            .is_some_and(|until| model.0.clock.now() >= until);
        if self.work == 0 || is_late {
            return None;
        }
        let mut budget = ShrinkBudget {
            work: self.work.min(SHRINK_WORK),
            until: self.shrink,
        };
        self.work -= budget.work;
        let shrunk = shrink_trace(model, trace, goal, &mut budget);
        self.work += budget.work;
        // If shrinking fails, the original trace stays.
        shrunk.ok().flatten()
    }

    /// Returns the time for a checked build that starts now.
    fn build_time(&self, now: Duration) -> Duration {
        let left = self.limit.map(|limit| limit.saturating_sub(now));
        left.unwrap_or(BUILD_TIME).min(BUILD_TIME)
    }
}

/// Confirms a finding natively. The shrunk trace is kept unless only the original trace is
/// confirmed.
fn confirm(
    native: &NativeWorld,
    trace: &WorldTrace,
    shrunk: Option<Shrunk>,
) -> ((Verdict, Option<Build>), Option<Shrunk>) {
    let Some(shrunk) = shrunk else {
        return (native.confirm(trace), None);
    };
    let confirmed = native.confirm(&shrunk.trace);
    if confirmed.1.is_none() {
        let original = native.confirm(trace);
        if original.1.is_some() {
            return (original, None);
        }
    }
    (confirmed, Some(shrunk))
}
