//! Worlds on native programs: whether what was found happens again with all hosts.

use anyhow::{Context, Result};
use everett_engine::{Expects, Trace};
use everett_invariant::Invariants;
use everett_native::{Checks, NativeEnd, NativeError, NativeHost, WorldRun, run_world};
use everett_scenario::Scenario;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::compare::{checks_for, compare, describe};
use crate::replay::{Verdict, checked_builds, confirmed_of};
use crate::run::RunArgs;
use crate::scenario::load;
use crate::world::{WorldTrace, Wrong, read_world};
use crate::world_checks::{Confirming, invariants};
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
        // A world goes on after a broken invariant, unless that is what is looked for.
        let finding = trace.finding.as_ref();
        let wanted = finding.filter(|wrong| wrong.kind == INVARIANT);
        let mut confirming = wanted.map(|wrong| Confirming::new(&self.invariants, &wrong.message));
        let checks = Checks {
            times: self
                .invariants
                .iter()
                .flat_map(|file| file.times())
                .collect(),
            look: &mut |moment, shown| confirming.as_mut()?.look(moment, shown),
        };
        let (topology, faults) = (&self.scenario.topology, &self.scenario.faults);
        let mut seen = match run_world(hosts, topology, faults, &trace.hosts, checks) {
            Ok(seen) => seen,
            Err(NativeError::NotReplayable(why)) => return Ok(Verdict::NotReplayable(why)),
            Err(error) => return Err(error).context("the native programs could not be run"),
        };
        if let Some(confirming) = &mut confirming
            && seen.broken.is_none()
        {
            seen.broken = confirming.look_back(&seen.shown);
        }
        Ok(match &trace.finding {
            Some(wrong) => self.compare_finding(wrong, &trace.hosts, &seen),
            None => compare_ends(&trace.hosts, &seen),
        })
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
