//! The invariants of a scenario, and their evaluation in a world of native programs.

use everett_expr::Arena;
use everett_invariant::{Invariants, When, evaluate};
use everett_linux::ExposedData;
use everett_native::CheckTrigger;
use everett_scenario::{CheckTime, Scenario};
use everett_sim::{History, broken_message, never_held, timeline, view};
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::disk::Disk;
use crate::error::{Context, Error, Result};

/// Parses the invariants of a scenario.
pub(crate) fn invariants(disk: &dyn Disk, scenario: &Scenario) -> Result<Vec<Arc<Invariants>>> {
    let mut all = Vec::new();
    for check in &scenario.checks {
        let (text, place) = match (&check.text, &check.file) {
            (Some(text), _) => (text.clone(), format!("check {}", check.name)),
            (None, Some(file)) => {
                let cannot_read = || format!("cannot read {}", file.display());
                let text = disk.read(file).with_context(cannot_read)?;
                let text = String::from_utf8(text);
                let text = text
                    .map_err(std::io::Error::other)
                    .with_context(cannot_read)?;
                (text, file.display().to_string())
            }
            (None, None) => continue,
        };
        let mut found = everett_invariant::parse(&text).map_err(|error| Error::Invariants {
            place,
            message: error.to_string(),
        })?;
        let when: Vec<When> = check.when.iter().map(when).collect();
        found.set_default_times(&when);
        all.push(Arc::new(found));
    }
    Ok(all)
}

fn when(time: &CheckTime) -> When {
    match time {
        CheckTime::Change => When::OnChange,
        CheckTime::End => When::AtEnd,
        CheckTime::Eventually => When::Eventually,
        CheckTime::At(time_ns) => When::At { time_ns: *time_ns },
    }
}

/// Evaluates invariants in a world of native programs.
pub(crate) struct Confirming<'c> {
    invariants: &'c [Arc<Invariants>],
    /// The message of the finding to look for; `None` accepts any violation.
    message: Option<&'c str>,
    arena: Arena,
    /// Reasons why invariants could not be evaluated.
    pub(crate) failures: BTreeSet<String>,
}

impl<'c> Confirming<'c> {
    /// Creates a check for the violation with this message; without a message, for any violation.
    pub(crate) fn new(
        invariants: &'c [Arc<Invariants>],
        message: Option<&'c str>,
    ) -> Confirming<'c> {
        Confirming {
            invariants,
            message,
            arena: Arena::new(),
            failures: BTreeSet::new(),
        }
    }

    /// Returns the message of an invariant that is violated while the world runs.
    pub(crate) fn check_running(
        &mut self,
        trigger: CheckTrigger,
        shown: &[(String, ExposedData)],
    ) -> Option<String> {
        let hosts: Vec<(&String, &ExposedData)> =
            shown.iter().map(|(name, data)| (name, data)).collect();
        match trigger {
            CheckTrigger::Change => self.broken(When::OnChange, &hosts),
            CheckTrigger::At(time_ns) => self.broken(When::At { time_ns }, &hosts),
        }
    }

    /// Returns the message of an invariant that is violated at the end of the world.
    pub(crate) fn check_end(&mut self, histories: &[(String, History)]) -> Option<String> {
        let hosts: Vec<(&String, &ExposedData)> = histories
            .iter()
            .map(|(name, history)| (name, &history.last))
            .collect();
        if let Some(message) = self.broken(When::AtEnd, &hosts) {
            return Some(message);
        }
        let names: Vec<String> = histories.iter().map(|(name, _)| name.clone()).collect();
        let histories: Vec<&History> = histories.iter().map(|(_, history)| history).collect();
        let timeline = timeline(&histories);
        let (arena, said) = (&mut self.arena, self.message);
        let unevaluated = &mut self.failures;
        let is_wanted = |message: &str| said.is_none_or(|said| said == message);
        let all = self.invariants.iter().flat_map(|file| file.iter());
        let mut asked = all.filter(|one| one.when().contains(&When::Eventually));
        asked.find_map(|invariant| {
            let message = broken_message(invariant, When::Eventually);
            let (never, failures) = never_held(invariant, &names, &timeline, arena);
            unevaluated.extend(failures);
            (is_wanted(&message) && arena.as_const(never) == Some(1)).then_some(message)
        })
    }

    fn broken(&mut self, when: When, hosts: &[(&String, &ExposedData)]) -> Option<String> {
        let view = view(hosts.iter().copied(), &mut self.arena);
        let (arena, said) = (&mut self.arena, self.message);
        let failures = &mut self.failures;
        let is_wanted = |message: &str| said.is_none_or(|said| said == message);
        let all = self.invariants.iter().flat_map(|file| file.iter());
        let mut asked = all.filter(|one| one.when().contains(&when));
        asked.find_map(|invariant| {
            let message = broken_message(invariant, when);
            // An invariant that cannot be evaluated is not violated, but it does not hold either.
            let verdict = match evaluate(invariant, &view, arena) {
                Ok(verdict) => verdict,
                Err(error) => {
                    failures.insert(error.to_string());
                    return None;
                }
            };
            let failed = verdict.failures.iter();
            let failed = failed.filter(|one| arena.as_const(one.when) != Some(0));
            failures.extend(failed.map(|one| one.error.to_string()));
            let is_broken = arena.as_const(verdict.holds) == Some(0);
            (is_wanted(&message) && is_broken).then_some(message)
        })
    }
}
