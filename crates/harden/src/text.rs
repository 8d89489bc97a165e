//! Formats the files of the steps as text for people.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::files::{AtomsFile, EstimatesFile, HardFile, SelectionFile};

/// Maximum number of hot functions without checks that are named.
const MOST_TARGETS: usize = 5;

fn percent(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}

impl fmt::Display for AtomsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for atom in &self.atoms {
            *kinds.entry(&atom.kind).or_default() += 1;
        }
        let kinds: Vec<String> = kinds
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        write!(
            f,
            "{} atoms, {:.1} for each line that has any: {}",
            self.atoms.len(),
            self.granularity,
            kinds.join(", ")
        )
    }
}

impl fmt::Display for EstimatesFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "overhead {} with all checks, {} with none; elasticity {}",
            percent(self.overhead_full),
            percent(self.residual_overhead),
            percent(self.elasticity)
        )
    }
}

impl fmt::Display for SelectionFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = match self.method.as_str() {
            "greedy" => "exact",
            _ => "greedy",
        };
        write!(
            f,
            "{} checks kept: {} of the benefit ({other}: {}), expected overhead {}",
            self.kept.len(),
            percent(self.benefit),
            percent(self.benefit_other),
            percent(self.expected_overhead)
        )
    }
}

impl HardFile {
    /// Describes the contents and the cost of the build at this path.
    pub fn text(&self, output: &Path) -> String {
        let mut lines = Vec::new();
        let is_estimated = self.atoms.iter().any(|atom| atom.estimated.count.is_some());
        let how = match (self.is_measured, is_estimated) {
            (true, _) => "overhead",
            (false, true) => "expected overhead",
            (false, false) => "guessed overhead",
        };
        lines.push(format!(
            "{}: {} of {} checks, {} of the benefit",
            output.display(),
            self.selected,
            self.atoms.len(),
            percent(self.benefit)
        ));
        lines.push(format!(
            "{how}: {} selected, {} with all checks, {} with none",
            percent(self.overhead_selected),
            percent(self.overhead_full),
            percent(self.residual_overhead)
        ));
        if !self.paths.is_empty() {
            let checks: usize = self.paths.iter().map(|path| path.on_request).sum();
            lines.push(format!(
                "functions in two versions: {}, with {checks} more checks for some requests",
                self.paths.len()
            ));
        }
        for target in self
            .targets
            .iter()
            .filter(|target| target.cost > 0.001)
            .take(MOST_TARGETS)
        {
            lines.push(format!(
                "hot and unchecked: {} in {} ({} of the overhead of all checks)",
                target.function,
                target.file,
                percent(target.cost / self.overhead_full.max(target.cost))
            ));
        }
        lines.join("\n")
    }

    /// Returns why the build exceeds its budget, if it does.
    pub fn excess(&self) -> Option<&'static str> {
        if self.is_within_budget {
            return None;
        }
        Some(match self.budget {
            Some(budget) if self.residual_overhead > budget => {
                "the runtime alone takes more: checks that cost nothing in the workload are kept"
            }
            _ => {
                "the times of the workload vary too much, or its checks cost more than their counts say"
            }
        })
    }
}
