//! Worlds on native programs: whether what was found happens again with all hosts.

use anyhow::{Context, Result};
use everett_engine::{Expects, Trace};
use everett_expr::Arena;
use everett_invariant::{Byte, Exposed, Invariants, When, evaluate};
use everett_linux::ExposedData;
use everett_native::{NativeEnd, NativeError, NativeHost, WorldRun, run_world};
use everett_scenario::Scenario;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::compare::{checks_for, compare, describe};
use crate::replay::{Verdict, checked_builds, confirmed_of};
use crate::run::RunArgs;
use crate::scenario::load;
use crate::world::{WorldTrace, Wrong, invariants, read_world};
use crate::world_hosts::{expected, native_hosts};

/// The kind of findings that are about what hosts show.
const INVARIANT: &str = "invariant";

/// A scenario with its native programs.
pub struct NativeWorld {
    scenario: Scenario,
    hosts: Vec<NativeHost>,
    invariants: Vec<Arc<Invariants>>,
}

impl NativeWorld {
    /// That of a run.
    pub fn of(args: &RunArgs) -> Result<NativeWorld> {
        let scenario = load(&args.scenario())?;
        Ok(NativeWorld {
            hosts: native_hosts(&scenario)?,
            invariants: invariants(&scenario)?,
            scenario,
        })
    }

    /// Whether a world happens again.
    pub fn confirm(&self, trace: &WorldTrace) -> Result<Verdict> {
        let plain = self.try_on(&self.hosts, trace)?;
        let wrong = trace.finding.as_ref();
        let end = wrong.and_then(|wrong| trace.hosts.get(&wrong.host)?.end.as_ref());
        let (Some(wrong), Some(end)) = (wrong, end) else {
            return Ok(plain);
        };
        if plain == Verdict::Confirmed {
            return Ok(plain);
        }
        for checks in checks_for(end) {
            let mut hosts = native_hosts(&self.scenario)?;
            for host in hosts.iter_mut().filter(|host| host.name == wrong.host) {
                match checked_builds(&host.config.programs, *checks) {
                    Ok(programs) => host.config.programs = programs,
                    Err(_) => return Ok(plain),
                }
            }
            let checked = self.try_on(&hosts, trace)?;
            if checked == Verdict::Confirmed {
                return Ok(checked);
            }
        }
        Ok(plain)
    }

    fn try_on(&self, hosts: &[NativeHost], trace: &WorldTrace) -> Result<Verdict> {
        let mut arena = Arena::new();
        // A world goes on after a broken invariant, unless that is what is looked for.
        let finding = trace.finding.as_ref();
        let is_wanted = finding.is_some_and(|wrong| wrong.kind == INVARIANT);
        let mut check = |shown: &[(String, ExposedData)]| {
            let broken = self.broken(When::OnChange, shown, &mut arena);
            broken.filter(|_| is_wanted)
        };
        let (topology, faults) = (&self.scenario.topology, &self.scenario.faults);
        let mut seen = match run_world(hosts, topology, faults, &trace.hosts, &mut check) {
            Ok(seen) => seen,
            Err(NativeError::NotReplayable(why)) => return Ok(Verdict::NotReplayable(why)),
            Err(error) => return Err(error).context("the native programs could not be run"),
        };
        if is_wanted && seen.broken.is_none() {
            seen.broken = self.broken(When::AtEnd, &seen.shown, &mut arena);
        }
        Ok(match &trace.finding {
            Some(wrong) => self.compare_finding(wrong, &trace.hosts, &seen),
            None => compare_ends(&trace.hosts, &seen),
        })
    }

    /// Which invariant does not hold.
    fn broken(
        &self,
        when: When,
        shown: &[(String, ExposedData)],
        arena: &mut Arena,
    ) -> Option<String> {
        let mut view = Exposed::new();
        for (name, data) in shown {
            let node = view.add_node(name.clone());
            for ((state, key), bytes) in data.iter() {
                let bytes = bytes.bytes().iter().map(|byte| Byte::Known(*byte));
                view.expose(node, state, key, bytes.collect());
            }
        }
        let all = self.invariants.iter().flat_map(|file| file.iter());
        for invariant in all.filter(|one| one.when().contains(&when)) {
            // What cannot be evaluated is not broken.
            let Ok(verdict) = evaluate(invariant, &view, arena) else {
                continue;
            };
            if arena.as_const(verdict.holds) == Some(0) {
                let name = invariant.name();
                return Some(format!("the invariant {name} does not hold"));
            }
        }
        None
    }

    /// A host has ended otherwise than it had to.
    fn is_unexpected(&self, name: &str, end: &NativeEnd) -> bool {
        let host = self.scenario.hosts.iter().find(|host| host.name == name);
        match (host.and_then(expected), end) {
            (Some(Expects::Exit(wanted)), NativeEnd::Exit(status)) => {
                wanted.is_some_and(|wanted| wanted != *status)
            }
            (Some(_), NativeEnd::Exit(_)) => true,
            _ => false,
        }
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
        let is_same = match wrong.kind.as_str() {
            INVARIANT => seen.broken.as_ref() == Some(&wrong.message),
            // It waits, and nobody is left who could send something.
            "deadlock" if host.end == NativeEnd::Idle => true,
            "expectation" => self.is_unexpected(&wrong.host, &host.end),
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

fn diverged(seen: &WorldRun) -> Option<(&String, &String)> {
    let mut hosts = seen.hosts.iter();
    hosts.find_map(|(name, run)| match &run.end {
        NativeEnd::Diverged(why) => Some((name, why)),
        _ => None,
    })
}

/// Do all hosts end as their traces did?
fn compare_ends(traces: &BTreeMap<String, Trace>, seen: &WorldRun) -> Verdict {
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

/// Replays worlds natively; exit code 1 if one of them ends otherwise.
pub fn replay(args: &RunArgs, traces: &[PathBuf]) -> Result<u8> {
    let world = NativeWorld::of(args)?;
    let mut others = 0;
    for path in traces {
        let verdict = world.confirm(&read_world(path)?)?;
        others += usize::from(!verdict.tell(path));
    }
    Ok(confirmed_of(traces.len(), others, "worlds"))
}
