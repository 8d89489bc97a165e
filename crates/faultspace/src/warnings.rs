//! What users should know before they trust the result of a search.

use crate::results::ScenarioResult;
use crate::settings::SearchConfig;

/// Returns why a search in which no fault ever happened is not meaningful.
pub(crate) fn never_injected(config: &SearchConfig) -> String {
    let who = match config.programs.as_slice() {
        [] => "a program that is not a shell".to_owned(),
        programs => format!("program {}", programs.join(", ")),
    };
    let linked = match config.injector.as_str() {
        "preload" => ", or is it static (then use injector ptrace)",
        _ => "",
    };
    format!(
        "no fault was ever injected, so the result says nothing: does the test run {who}{linked}, \
         and does it make these calls? (everett faults profile counts them)"
    )
}

/// Returns a warning if tests fail although no fault happened: then other failures may have nothing
/// to do with their faults, either.
pub(crate) fn unstable(results: &[ScenarioResult]) -> Option<String> {
    let without =
        |result: &&ScenarioResult| result.injected == Some(false) && result.outcome.is_failure();
    let names: Vec<&str> = results
        .iter()
        .filter(without)
        .map(|result| result.name.as_str())
        .collect();
    let first = names.first()?;
    Some(format!(
        "{} ended badly although no fault happened (such as {first}): the test is not stable, or its time limit is too \
         short for this machine",
        everett_report::counted(names.len(), "scenario")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Outcome;

    #[test]
    fn failures_without_a_fault_are_told() {
        let result = |injected, outcome| ScenarioResult {
            name: "000007".to_owned(),
            injected,
            outcome,
            ..ScenarioResult::default()
        };
        let stable = [
            result(Some(true), Outcome::Failed),
            result(None, Outcome::Failed),
            result(Some(false), Outcome::Passed),
        ];
        assert_eq!(unstable(&stable), None);
        let told = unstable(&[result(Some(false), Outcome::Hung)]).unwrap_or_default();
        assert!(
            told.starts_with("1 scenario ended badly") && told.contains("000007"),
            "{told}"
        );
    }
}
