//! The results of a search and the description of a space as text for people.

use crate::results::{Explored, FaultSummary, Isolation};
use crate::show::Shown;
use everett_report::counted;

/// Maximum number of listed failures.
const MOST_SHOWN: usize = 20;

impl FaultSummary {
    /// Returns the failures, one of each cluster, and the totals.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        let failures = self
            .results
            .iter()
            .filter(|result| result.is_representative);
        let count = failures.clone().count();
        if count > 0 {
            lines.push("impact  precision  relevance  cluster  outcome       scenario".to_owned());
        }
        for result in failures.take(MOST_SHOWN) {
            let precision = match result.precision {
                Some(precision) => format!("{precision:.3}"),
                None if result.repeats == "always the same" => "always".to_owned(),
                None => "-".to_owned(),
            };
            lines.push(format!(
                "{:>6.2}  {precision:>9}  {:>9.3}  {:>7}  {:<12}  {}: {} ({})",
                result.impact,
                result.relevance,
                result.cluster.unwrap_or_default(),
                result.outcome.to_string(),
                result.name,
                result.scenario,
                result.why.join(", ")
            ));
        }
        if count > MOST_SHOWN {
            lines.push(format!(
                "... and {} more",
                counted(count - MOST_SHOWN, "cluster")
            ));
        }
        lines.push(format!(
            "{} of {} scenarios, {} in {}, {:.2} s ({} search, seed {})",
            self.scenarios_run,
            self.scenarios_total,
            counted(self.failures, "failure"),
            counted(self.clusters, "cluster"),
            self.wall_seconds,
            self.search,
            self.seed
        ));
        for (name, tests) in &self.nodes {
            lines.push(format!("node {name}: {}", counted(*tests, "test")));
        }
        lines.extend(self.explored.iter().flat_map(Explored::lines));
        lines.join("\n")
    }

    /// Returns what users should know before they trust the result.
    pub fn notes(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for warning in &self.warnings {
            lines.push(format!("warning: {warning}"));
        }
        if self.errors > 0 {
            let errors = self.errors;
            lines.push(format!(
                "{errors} scenarios could not be run; summary.json says why"
            ));
        }
        for test in &self.failing_without_faults {
            lines.push(format!(
                "test {test} fails without any fault; its scenarios are not meaningful"
            ));
        }
        if self.cleanup_failures > 0 {
            let failures = self.cleanup_failures;
            lines.push(format!("cleanup failed after {failures} scenarios"));
        }
        if self.isolation == Isolation::Processes {
            lines.push(
                "this machine has no namespaces: tests run on a copy of their folder".to_owned(),
            );
        }
        lines
    }
}

impl Explored {
    /// Returns lines about the exploration and its findings.
    fn lines(&self) -> Vec<String> {
        let how = match self.complete {
            true => "all".to_owned(),
            false => format!("not all ({})", self.limits_hit.join(", ")),
        };
        let mut lines = vec![format!(
            "explored {}: {}: {}, {how}, {}",
            self.name,
            self.scenario,
            counted(self.paths, "path"),
            counted(self.findings.len(), "finding")
        )];
        for finding in &self.findings {
            let confirmed = finding.confirmed.as_deref().unwrap_or("not confirmed");
            lines.push(format!(
                "  {}: {} at {}:{} on {}, {confirmed}",
                finding.kind, finding.message, finding.file, finding.line, finding.host
            ));
        }
        lines
    }
}

impl Shown {
    /// Returns the description of the space as text.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        let holes = self.positions - self.size;
        lines.push(format!(
            "{}; holes and repetitions: {}",
            counted(self.size, "scenario"),
            counted(holes, "position")
        ));
        for (number, (subtypes, axes, holes)) in (1..).zip(&self.subspaces) {
            let kind = match subtypes.is_empty() {
                true => String::new(),
                false => format!(" ({})", subtypes.join(" ")),
            };
            lines.push(format!("subspace {number}{kind}: {holes} holes"));
            for axis in axes {
                let [first, last] = &axis.ends;
                lines.push(format!(
                    "  {:<14} {:>10} values, {first} to {last}",
                    axis.name, axis.values
                ));
            }
        }
        if !self.densities.is_empty() {
            let results = self.results;
            lines.push(format!(
            "relative linear density (from {results} scenarios; above 1 it pays to go along an axis)"
        ));
            let number =
                |density: Option<f64>| density.map_or("-".to_owned(), |one| format!("{one:.2}"));
            for density in &self.densities {
                lines.push(format!(
                    "  {:<14} whole space {:>6}  vicinity {:>6}",
                    density.name,
                    number(density.whole),
                    number(density.vicinity)
                ));
            }
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_run_is_said_with_its_file() {
        let summary = FaultSummary {
            errors: 2,
            ..FaultSummary::default()
        };
        let notes = summary.notes();
        assert!(
            notes.contains(&"2 scenarios could not be run; summary.json says why".to_owned()),
            "{notes:?}"
        );
    }
}
