//! Symbolic exploration after a fault search: explores the world with the faults of a scenario and
//! symbolic inputs. The search shows a failure for one input; the exploration covers all inputs.

use everett::Session;
use everett_report::Folder;
use std::collections::BTreeSet;

use crate::error::Result;
use crate::replay::read;
use crate::results::{Explored, ExploredFinding, FaultSummary, ScenarioResult};
use crate::settings::Explore;
use crate::space::Space;
use crate::system::System;

/// The subfolder of the explorations.
const FOLDER: &str = "explored";

/// Returns the scenarios to explore: the representative failure of each cluster, worst first; then
/// the first scenario of each other injection point; then all others whose faults happened.
pub(crate) fn chosen(results: &[ScenarioResult], most: usize) -> Vec<&ScenarioResult> {
    let (failing, mut passing): (Vec<&ScenarioResult>, Vec<&ScenarioResult>) = results
        .iter()
        .partition(|result| result.outcome.is_failure());
    passing.retain(|result| result.injected == Some(true));
    passing.sort_by_key(|result| result.position);
    let mut points: BTreeSet<&[String]> = failing.iter().map(|one| one.stack.as_slice()).collect();
    let (first, again): (Vec<_>, Vec<_>) = passing
        .into_iter()
        .partition(|one| points.insert(&one.stack));
    let representatives = failing.into_iter().filter(|one| one.is_representative);
    let all = representatives.chain(first).chain(again);
    all.take(most).collect()
}

/// Explores the world with the faults of each chosen scenario. Explorations of earlier runs of the
/// search that are not repeated are kept.
pub(crate) fn explore(
    system: &System,
    space: &Space,
    folder: &Folder,
    (results, settings): (&[ScenarioResult], &Explore),
    session: &Session,
) -> Result<Vec<Explored>> {
    let mut kept = earlier(folder);
    let mut explored = Vec::new();
    for result in chosen(results, settings.scenarios) {
        if session.stop.load(std::sync::atomic::Ordering::Relaxed) {
            break;
        }
        let place = format!("{FOLDER}/{}", result.name);
        let out = folder.path().join(&place);
        if out.exists() {
            // A continued search explores again.
            std::fs::remove_dir_all(&out).map_err(crate::Error::writing(&out))?;
            kept.retain(|one| one.name != result.name);
        }
        let scenario = space.scenario(&space.point(result.position));
        let Some(summary) = system.explore(&scenario, &out, settings, session)? else {
            continue;
        };
        let findings = summary.findings.iter().map(|finding| ExploredFinding {
            kind: finding.kind.clone(),
            message: finding.message.clone(),
            host: finding.host.clone(),
            file: finding.file.clone(),
            line: finding.line,
            confirmed: finding.confirmed.clone(),
        });
        explored.push(Explored {
            name: result.name.clone(),
            scenario: result.scenario.clone(),
            folder: place,
            paths: summary.paths.completed + summary.paths.partial,
            complete: summary.complete,
            limits_hit: summary.limits_hit.clone(),
            findings: findings.collect(),
        });
    }
    explored.extend(kept);
    Ok(explored)
}

/// Returns the explorations of earlier runs of a search.
fn earlier(folder: &Folder) -> Vec<Explored> {
    let summary = read::<FaultSummary>(&folder.path().join("summary.json"));
    let mut explored = summary.map_or(Vec::new(), |summary| summary.explored);
    explored.retain(|one| folder.path().join(&one.folder).is_dir());
    explored
}

/// Returns what users should know before they trust explorations.
pub(crate) fn doubts(explored: &[Explored], settings: &Explore) -> Option<String> {
    if settings.scenarios == 0 {
        return None;
    }
    if explored.is_empty() {
        let why = "nothing was explored: there is no failure, and no fault happened";
        return Some(why.to_owned());
    }
    let has_one_path = |one: &Explored| one.complete && one.paths <= 1;
    explored.iter().all(has_one_path).then(|| {
        "each exploration has a single path: nothing that the hosts read before their end is symbolic in the scenario \
         (such as stdin = { symbolic = 16 })"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Outcome;

    #[test]
    fn failures_come_first_and_injection_points_once() {
        let result = |name: &str, outcome, stack: &str, position| ScenarioResult {
            name: name.to_owned(),
            outcome,
            stack: vec![stack.to_owned()],
            position,
            injected: Some(true),
            is_representative: name.starts_with('r'),
            ..ScenarioResult::default()
        };
        let mut results = vec![
            result("r1", Outcome::Crashed, "read", 9),
            result("again", Outcome::Crashed, "read", 8),
            result("same point", Outcome::Passed, "read", 7),
            result("late", Outcome::Passed, "write", 6),
            result("early", Outcome::Passed, "write", 5),
            result("never", Outcome::Passed, "open", 4),
        ];
        results[5].injected = Some(false);
        let names = |most| {
            let all = chosen(&results, most).into_iter();
            all.map(|result| result.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(names(9), ["r1", "early", "late", "same point"]);
        assert_eq!(names(1), ["r1"]);
        assert!(names(0).is_empty());
    }
}
