//! What users should know before they trust the result of a search.

use crate::results::ScenarioResult;
use crate::settings::{Command, SearchConfig};
use crate::space::Space;

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

/// Returns a warning if an axis of the space is nearly called as an attribute of the injector: then it
/// is an attribute of the test, and says nothing about the fault.
pub(crate) fn misspelt(config: &SearchConfig, space: &Space) -> Option<String> {
    let row = crate::injector::named(&config.injector)?;
    let commands = [&config.test, &config.start, &config.cleanup];
    let is_used = |name: &str| {
        let place = format!("{{{name}}}");
        let mut words = commands
            .into_iter()
            .flatten()
            .flat_map(|command| match command {
                Command::Shell(text) => std::slice::from_ref(text),
                Command::Words(words) => words.as_slice(),
            });
        words.any(|word| word.contains(&place))
    };
    let own = row.injector.attributes();
    let is_own = |name: &str| own.iter().any(|own| own.eq_ignore_ascii_case(name));
    space.names().iter().find_map(|(_, name)| {
        let meant = own.iter().find(|own| is_near(own, name))?;
        (!is_own(name) && !is_used(name)).then(|| {
            format!(
                "axis {name} is not an attribute of injector {} ({meant} is); only the test can see it",
                config.injector
            )
        })
    })
}

/// Returns whether one letter is wrong, missing or too many, or two are in the wrong order.
fn is_near(one: &str, two: &str) -> bool {
    let (one, two) = (one.to_ascii_lowercase(), two.to_ascii_lowercase());
    let (one, two) = (one.as_bytes(), two.as_bytes());
    let begin = one.iter().zip(two).take_while(|(a, b)| a == b).count();
    let (one, two) = (&one[begin..], &two[begin..]);
    let end = one.iter().rev().zip(two.iter().rev());
    let end = end.take_while(|(a, b)| a == b).count();
    match (&one[..one.len() - end], &two[..two.len() - end]) {
        ([a, b], [c, d]) => (a, b) == (d, c),
        (one, two) => one.len() <= 1 && two.len() <= 1 && begin + end > 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_attributes_are_told() {
        let told = |test: &str, space: &str| {
            let config = SearchConfig {
                injector: "preload".to_owned(),
                test: Some(Command::Shell(test.to_owned())),
                ..SearchConfig::default()
            };
            misspelt(&config, &Space::parse(space).unwrap())
        };
        let right = "function : {read} errno : {EIO} retVal : {-1} test : {1} clients : {2};";
        assert_eq!(told("./run", right), None);
        for wrong in ["callNumbr", "callnubmer", "fuction", "errnoo", "retvel"] {
            let said = told("./run", &format!("{wrong} : {{1}};")).unwrap();
            assert!(
                said.starts_with(&format!("axis {wrong} is not an attribute")),
                "{said}"
            );
        }
        assert_eq!(told("./run {errnos}", "errnos : {1};"), None);
    }
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
