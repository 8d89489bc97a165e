//! Replay of worlds on native programs: confirms findings natively with all hosts.

use everett_engine::Trace;
use everett_invariant::Invariants;
use everett_native::{
    Checks, Guide, NativeEnd, NativeError, NativeHost, NativeNetwork, NativeRun, NoWatcher, Source,
    WorldRun, run_world,
};
use everett_net::HostIndex;
use everett_scenario::Scenario;
use everett_sim::{Expects, Network, first_expects};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::compare::{checks_for, compare, describe};
use crate::error::{Context, Result, bail};
use crate::load::OtherBuild;
use crate::replay::{BuildSpec, Verdict, add_libraries, checked_builds, most_attempts, no_places};
use crate::scenario::load_scenario;
use crate::session::{Notices, Session};
use crate::spec::RunSpec;
use crate::world::checks::{Confirming, invariants};
use crate::world::hosts::{draw_by, native_hosts};
use crate::world::network;
use crate::world::points::{WorldPoints, attempts, scripted};
use crate::world::trace::{INVARIANT, WorldTrace, Wrong};

/// Which invariants a native run evaluates.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Wanted<'m> {
    /// None: the world continues whatever its hosts expose.
    Nothing,
    /// The one with this message when it is violated.
    Invariant(&'m str),
    /// All invariants.
    AnyInvariant,
}

/// A scenario with its native programs.
pub(crate) struct NativeWorld {
    /// The scenario.
    pub scenario: Scenario,
    /// Its hosts.
    pub hosts: Vec<NativeHost>,
    network: Network,
    points: WorldPoints,
    invariants: Vec<Arc<Invariants>>,
    notices: Notices,
}

impl NativeWorld {
    /// The native world of a run, with other builds of its programs if requested.
    pub(crate) fn of(spec: &RunSpec, build: &BuildSpec, session: &Session) -> Result<NativeWorld> {
        let scenario = load_scenario(&spec.scenario())?;
        let mut hosts = native_hosts(&scenario, session)?;
        for other in &build.on {
            if !other.file.exists() {
                bail!(
                    Program,
                    "there is no native program {}",
                    other.file.display()
                );
            }
            let replaced = replace(&scenario, &mut hosts, other, session)?;
            if let (0, Some(name)) = (replaced, &other.path) {
                let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
                bail!(
                    Usage,
                    "there is no host {name}; there are: {}",
                    names.join(", ")
                );
            }
        }
        if build.checked {
            for host in &mut hosts {
                host.config.programs = checked_builds(
                    &host.config.programs,
                    everett_toolchain::Checks::Memory,
                    &session.notices,
                )?;
            }
        }
        Ok(NativeWorld {
            hosts,
            network: network(&scenario),
            points: WorldPoints::of(spec, session),
            invariants: invariants(&scenario)?,
            notices: session.notices.clone(),
            scenario,
        })
    }

    /// Runs hosts of this world. A violation of a wanted invariant ends the run.
    pub(crate) fn run<'c>(
        &self,
        hosts: &'c [NativeHost],
        guides: Vec<Guide<'c>>,
        looked_for: Wanted<'_>,
    ) -> Result<WorldRun, NativeError> {
        let mut confirming = match looked_for {
            Wanted::Nothing => None,
            Wanted::Invariant(message) => Some(Confirming::new(&self.invariants, Some(message))),
            Wanted::AnyInvariant => Some(Confirming::new(&self.invariants, None)),
        };
        let files = self.invariants.iter();
        let checks = Checks {
            times: files.flat_map(|file| file.times()).collect(),
            check: &mut |moment, shown| confirming.as_mut()?.look(moment, shown),
        };
        let network = NativeNetwork {
            network: &self.network,
            max_virtual_ns: self.scenario.limits.virtual_time_ns,
        };
        let mut seen = run_world(hosts, &network, guides, checks)?;
        if let Some(confirming) = &mut confirming
            && seen.broken.is_none()
            && !seen.is_cut
        {
            seen.broken = confirming.look_back(&seen.histories);
        }
        Ok(seen)
    }

    /// Replays a trace without watchers.
    fn follow(&self, hosts: &[NativeHost], trace: &WorldTrace) -> Result<WorldRun, NativeError> {
        let mut watchers: Vec<NoWatcher> = hosts.iter().map(|_| NoWatcher).collect();
        let watchers = hosts.iter().zip(&mut watchers);
        let guides = watchers.map(|(host, watcher)| Guide {
            source: source_of(trace, &host.name),
            watcher,
        });
        self.run(hosts, guides.collect(), trace.wanted())
    }

    /// Confirms a trace natively.
    pub(crate) fn confirm(&self, trace: &WorldTrace) -> Result<Verdict> {
        Ok(self.replay(trace)?.0)
    }

    /// Confirms a trace natively; also returns the run on the plain programs.
    pub(crate) fn replay(&self, trace: &WorldTrace) -> Result<(Verdict, Option<WorldRun>)> {
        let (plain, seen, _) = self.try_with_points(self.hosts_of(trace), trace)?;
        let wrong = trace.finding.as_ref();
        let end = wrong.and_then(|wrong| trace.hosts.get(&wrong.host)?.end.as_ref());
        let (Some(wrong), Some(end)) = (wrong, end) else {
            return Ok((plain, seen));
        };
        if plain == Verdict::Confirmed {
            return Ok((plain, seen));
        }
        for checks in checks_for(end) {
            let mut hosts = self.hosts_of(trace);
            for host in hosts.iter_mut().filter(|host| host.name == wrong.host) {
                // The cached facts belong to the plain builds.
                host.config.known_allocators = OnceLock::new();
                match checked_builds(&host.config.programs, *checks, &self.notices) {
                    Ok(programs) => host.config.programs = programs,
                    Err(_) => return Ok((plain, seen)),
                }
            }
            let (checked, _, _) = self.try_with_points(hosts, trace)?;
            if checked == Verdict::Confirmed {
                return Ok((checked, seen));
            }
        }
        Ok((plain, seen))
    }

    /// The hosts, with random bytes from this seed.
    pub(crate) fn seeded(&self, seed: u64) -> Vec<NativeHost> {
        let mut hosts = self.hosts.clone();
        for (host, at) in hosts.iter_mut().zip(0..) {
            draw_by(seed, HostIndex(at), &mut host.config.host);
        }
        hosts
    }

    /// The hosts of a trace, with the random bytes that the trace had.
    fn hosts_of(&self, trace: &WorldTrace) -> Vec<NativeHost> {
        match trace.random_seed {
            Some(seed) => self.seeded(seed),
            None => self.hosts.clone(),
        }
    }

    /// The hosts of a trace, prepared for watchers: their threads switch between system calls as in the run that ends
    /// as the trace does.
    pub(crate) fn prepared(&self, trace: &WorldTrace) -> Result<Vec<NativeHost>> {
        let hosts = self.hosts_of(trace);
        if self.points.scripts(&hosts, trace)?.is_empty() {
            return Ok(hosts);
        }
        Ok(self.try_with_points(hosts, trace)?.2)
    }

    /// Replays a trace on hosts. Preemptions between system calls are known only by source line, so this tries several
    /// places; only a run that ends the same counts. Also returns the hosts of the last run.
    fn try_with_points(
        &self,
        hosts: Vec<NativeHost>,
        trace: &WorldTrace,
    ) -> Result<(Verdict, Option<WorldRun>, Vec<NativeHost>)> {
        let scripts = self.points.scripts(&hosts, trace)?;
        if scripts.is_empty() {
            let (verdict, seen) = self.try_on(&hosts, trace)?;
            return Ok((verdict, seen, hosts));
        }
        let attempts = attempts(&scripts, most_attempts(trace.finding.is_some()));
        let (mut first, mut last) = (None, None);
        let tried = attempts.len();
        for attempt in attempts {
            let hosts = scripted(&hosts, &attempt);
            let (verdict, seen) = self.try_on(&hosts, trace)?;
            if !matches!(verdict, Verdict::NotReproduced(_)) {
                return Ok((verdict, seen, hosts));
            }
            first.get_or_insert(hosts);
            last = seen;
        }
        let verdict = Verdict::NotReplayable(no_places(tried));
        Ok((verdict, last, first.unwrap_or(hosts)))
    }

    fn try_on(
        &self,
        hosts: &[NativeHost],
        trace: &WorldTrace,
    ) -> Result<(Verdict, Option<WorldRun>)> {
        match self.follow(hosts, trace) {
            Ok(seen) => Ok((self.judge(trace, &seen), Some(seen))),
            Err(NativeError::NotReplayable(why)) => Ok((Verdict::NotReplayable(why), None)),
            Err(error) => Err(error).context("the native programs could not be run"),
        }
    }

    /// Compares the end of a native run with its trace.
    pub(crate) fn judge(&self, trace: &WorldTrace, seen: &WorldRun) -> Verdict {
        match &trace.finding {
            Some(wrong) => self.compare_finding(wrong, &trace.hosts, seen),
            None => compare_ends(&trace.hosts, seen),
        }
    }

    /// The kinds and messages of a host's processes that did not end as expected once the world is idle.
    fn unexpected(&self, name: &str, run: &NativeRun) -> Vec<(&'static str, String)> {
        let host = self.hosts.iter().find(|host| host.name == name);
        // A host that was switched off is exempt from expectations.
        let host = host.filter(|_| run.end != NativeEnd::Off);
        let mut wrong = Vec::new();
        for expected in host.iter().flat_map(|host| &host.expects) {
            let end = match &run.end {
                end @ (NativeEnd::Exit(_) | NativeEnd::Signal { .. }) if expected.number == 0 => {
                    Some(end)
                }
                // A host with one process ends when that process and all its descendants have ended.
                _ if run.processes.len() == 1 => None,
                _ => run.processes.get(expected.number).and_then(Option::as_ref),
            };
            let (kind, message) = match (expected.ends, end) {
                (Expects::Running, None) => continue,
                (_, None) => expected.waits_for_ever(),
                (Expects::Exit(wanted), Some(NativeEnd::Exit(status)))
                    if wanted.is_none_or(|wanted| wanted == *status) =>
                {
                    continue;
                }
                (ends, Some(NativeEnd::Signal { signal, .. })) if ends.is_signal(*signal) => {
                    continue;
                }
                _ => expected.ends_otherwise(),
            };
            wrong.push((kind.name(), message));
        }
        wrong
    }

    /// The finding of a world that ran without a trace.
    pub(crate) fn wrong_with(&self, seen: &WorldRun) -> Option<Wrong> {
        let wrong = |host: &str, kind: &str, message: String| {
            Some(Wrong {
                host: host.to_owned(),
                kind: kind.to_owned(),
                message,
            })
        };
        for (name, run) in &seen.hosts {
            match &run.end {
                NativeEnd::Signal { signal, .. } => {
                    let host = self.hosts.iter().find(|host| host.name == *name);
                    let expected = host.and_then(|host| first_expects(&host.expects));
                    if !expected.is_some_and(|expected| expected.is_signal(*signal)) {
                        return wrong(name, "signal", describe(run));
                    }
                }
                NativeEnd::Finding { kind, message } => return wrong(name, kind, message.clone()),
                NativeEnd::Hang => return wrong(name, "hang", describe(run)),
                _ => {}
            }
        }
        let first = self.hosts.first().map(|host| &host.name);
        let shows = seen.broken_on.as_ref().or(first)?;
        let is_at_end = seen.broken_on.is_none() && !seen.is_cut;
        for (name, run) in seen.hosts.iter().filter(|_| is_at_end) {
            if let Some((kind, message)) = self.unexpected(name, run).into_iter().next() {
                return wrong(name, kind, message);
            }
        }
        wrong(shows, INVARIANT, seen.broken.clone()?)
    }

    fn compare_finding(
        &self,
        wrong: &Wrong,
        traces: &BTreeMap<String, Trace>,
        seen: &WorldRun,
    ) -> Verdict {
        if let Some((name, why)) = diverged(seen) {
            return Verdict::NotReproduced(format!("host {name} parts from its trace: {why}"));
        }
        let Some(host) = seen.hosts.get(&wrong.host) else {
            return Verdict::NotReplayable(format!("there is no host {}", wrong.host));
        };
        let mut unexpected = self.unexpected(&wrong.host, host).into_iter();
        let is_same = match wrong.kind.as_str() {
            INVARIANT => seen.broken.as_ref() == Some(&wrong.message),
            // It waits and no host can send to it any more, or it ended otherwise than expected.
            _ if unexpected.any(|(kind, message)| wrong.is(kind, &message)) => true,
            "expectation" => false,
            _ => {
                let end = traces.get(&wrong.host).and_then(|trace| trace.end.as_ref());
                return match end {
                    Some(end) => compare(end, host),
                    None => Verdict::NotReplayable("the trace has no end".to_owned()),
                };
            }
        };
        if is_same {
            return Verdict::Confirmed;
        }
        let seen = match &seen.broken {
            Some(message) => message.clone(),
            None => format!("host {} {}", wrong.host, describe(host)),
        };
        Verdict::NotReproduced(seen)
    }
}

/// Replaces the program of a host, of a group of hosts, or of all hosts by another build. Returns how many it replaced.
fn replace(
    scenario: &Scenario,
    hosts: &mut [NativeHost],
    other: &OtherBuild,
    session: &Session,
) -> Result<usize> {
    let mut replaced = 0;
    for (setup, host) in scenario.hosts.iter().zip(hosts) {
        let names = [&setup.name, &setup.group];
        if other
            .path
            .as_ref()
            .is_some_and(|name| !names.contains(&name))
        {
            continue;
        }
        replaced += 1;
        if let Some(program) = host.config.programs.first_mut() {
            program.clone_from(&other.file);
        }
        let programs = std::slice::from_ref(&other.file);
        add_libraries(&mut host.config.host, programs, session)?;
    }
    Ok(replaced)
}

/// The source of a host's inputs and choices: its trace.
pub(crate) fn source_of(trace: &WorldTrace, name: &str) -> Source {
    let trace = trace.hosts.get(name).cloned().unwrap_or_default();
    Source::Trace(Box::new(trace))
}

/// The first host that diverged from its trace, and how.
pub(crate) fn diverged(seen: &WorldRun) -> Option<(&String, &String)> {
    let mut hosts = seen.hosts.iter();
    hosts.find_map(|(name, run)| match &run.end {
        NativeEnd::Diverged(why) => Some((name, why)),
        _ => None,
    })
}

/// Whether all hosts ended as their traces did.
fn compare_ends(traces: &BTreeMap<String, Trace>, seen: &WorldRun) -> Verdict {
    if let Some((name, why)) = diverged(seen) {
        return Verdict::NotReproduced(format!("host {name} parts from its trace: {why}"));
    }
    for (name, run) in &seen.hosts {
        let Some(end) = traces.get(name).and_then(|trace| trace.end.as_ref()) else {
            continue;
        };
        match compare(end, run) {
            Verdict::Confirmed => {}
            Verdict::NotReproduced(why) => {
                return Verdict::NotReproduced(format!("host {name}: {why}"));
            }
            other => return other,
        }
    }
    Verdict::Confirmed
}
