//! Judges native runs: whether they end as their traces do and, for runs without a trace, what went
//! wrong.

use everett_engine::Trace;
use everett_native::{NativeEnd, NativeRun, WorldRun};
use everett_sim::{Expects, first_expects};
use std::collections::BTreeMap;

use crate::compare::{compare, describe, diverged};
use crate::native_world::NativeWorld;
use crate::trace::{HOST, INVARIANT, WorldTrace, Wrong};
use crate::verdict::Verdict;

impl NativeWorld {
    /// Compares the end of a native run with its trace.
    pub(crate) fn judge(&self, trace: &WorldTrace, seen: &WorldRun) -> Verdict {
        if let Some(why) = &seen.unanswered {
            return Verdict::NotReproduced(why.clone());
        }
        let verdict = match (&trace.finding, trace.end(), seen.hosts.get(HOST)) {
            (_, Some(end), Some(run)) if trace.is_program => compare(end, run),
            (Some(wrong), ..) => self.compare_finding(wrong, &trace.hosts, seen),
            (None, ..) => compare_ends(&trace.hosts, seen),
        };
        match &self.acceptance {
            Some(acceptance) => acceptance.judge(trace, seen, verdict),
            None => verdict,
        }
    }

    /// Returns the kinds and messages of a host's processes that did not end as expected once the
    /// world is idle.
    pub(crate) fn unexpected(&self, name: &str, run: &NativeRun) -> Vec<(&'static str, String)> {
        let host = self.hosts.iter().find(|host| host.name == name);
        // A host that was switched off is exempt from expectations.
        let host = host.filter(|_| run.end != NativeEnd::Off);
        let mut wrong = Vec::new();
        for expected in host.iter().flat_map(|host| &host.expects) {
            let end = match &run.end {
                end @ (NativeEnd::Exit(_) | NativeEnd::Signal { .. }) if expected.number == 0 => {
                    Some(end)
                }
                // A host with one process ends when that process and all its descendants have
                // ended.
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

    /// Returns the finding of a world that ran without a trace.
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
        for (name, run) in seen.hosts.iter().filter(|_| seen.is_over) {
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
            // The host waits and no host can send to it any more, or it ended differently than
            // expected.
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

/// Compares the ends of all hosts with their traces.
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
