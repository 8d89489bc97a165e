//! The results of a search as files.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How a test was kept apart from the machine.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// In namespaces of its own: it sees no other process, and what it writes is gone.
    #[default]
    Namespaces,
    /// On a copy of its folder; its processes are traced and ended.
    Processes,
    /// Under the kernel model: nothing of the machine is reachable.
    Model,
}

/// How a scenario ended.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As without the fault.
    #[default]
    Passed,
    /// With another exit code.
    Failed,
    /// A process crashed.
    Crashed,
    /// It did not end in its time.
    Hung,
    /// It took more processes or output than it may.
    Limit,
    /// Its output or its files differ.
    Differs,
    /// Its impact is as high as that of a failure.
    Harmful,
    /// It could not be started.
    StartFailed,
    /// Everett could not run it.
    Error,
}

impl Outcome {
    /// Whether it is a failure of the system under test.
    pub fn is_failure(self) -> bool {
        !matches!(self, Outcome::Passed | Outcome::Error)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Crashed => "crashed",
            Outcome::Hung => "hung",
            Outcome::Limit => "limit",
            Outcome::Differs => "differs",
            Outcome::Harmful => "harmful",
            Outcome::StartFailed => "start-failed",
            Outcome::Error => "error",
        })
    }
}

/// The result of a scenario.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ScenarioResult {
    /// Its name: the folder below `scenarios/`.
    pub name: String,
    /// Its text.
    pub scenario: String,
    /// Its position in the space.
    pub position: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What it shows, as one number.
    pub impact: f64,
    /// Its fitness when the search learned it.
    pub fitness: f64,
    /// 1 over the variance of the impact over all repetitions; `null` if there is no variance.
    pub precision: Option<f64>,
    /// How it repeats: `always the same`, `varies`, or `not repeated`.
    pub repeats: String,
    /// How likely its faults are.
    pub relevance: f64,
    /// Number of its cluster; `null` if it is no failure.
    pub cluster: Option<usize>,
    /// It stands for its cluster.
    pub is_representative: bool,
    /// The fault has happened; `null` where nobody can tell.
    pub injected: Option<bool>,
    /// What makes up the impact.
    pub why: Vec<String>,
    /// The stack at the injection point, innermost first.
    pub stack: Vec<String>,
}

/// What the exploration of a scenario came to.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Explored {
    /// The name of the scenario.
    pub name: String,
    /// Its text.
    pub scenario: String,
    /// The folder of the run, below the folder of results: `everett replay` and `everett resume`
    /// know it.
    pub folder: String,
    /// Worlds, or parts of them that end in a finding.
    pub paths: u64,
    /// Whether all worlds with these faults were explored.
    pub complete: bool,
    /// Limits that were reached.
    pub limits_hit: Vec<String>,
    /// What was found.
    pub findings: Vec<ExploredFinding>,
}

/// A finding of an exploration.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ExploredFinding {
    /// Its kind.
    pub kind: String,
    /// What is wrong.
    pub message: String,
    /// The host.
    pub host: String,
    /// The place in the source.
    pub file: String,
    /// The line there.
    pub line: u32,
    /// Whether it happens natively, too: `confirmed`, or why not; `null` where that was not tried.
    pub confirmed: Option<String>,
}

/// The contents of `summary.json`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FaultSummary {
    /// Scenarios of the space.
    pub scenarios_total: u64,
    /// Scenarios that were run.
    pub scenarios_run: u64,
    /// Failures among them.
    pub failures: u64,
    /// Scenarios in which a process crashed.
    pub crashes: u64,
    /// Scenarios that did not end in their time.
    pub hangs: u64,
    /// Scenarios that Everett could not run.
    pub errors: u64,
    /// Clusters of failures.
    pub clusters: u64,
    /// The search.
    pub search: String,
    /// Its seed.
    pub seed: u64,
    /// The injector.
    pub injector: String,
    /// How tests were kept apart from the machine.
    pub isolation: Isolation,
    /// Scenarios whose faults happened; `null` where nobody can tell.
    pub scenarios_injected: Option<u64>,
    /// What the user should know before he trusts the result.
    pub warnings: Vec<String>,
    /// Whether all scenarios were run.
    pub is_complete: bool,
    /// Whether somebody interrupted it.
    pub is_interrupted: bool,
    /// Tests that fail without any fault, and whose scenarios say nothing therefore.
    pub failing_without_faults: Vec<String>,
    /// Tests whose cleanup failed.
    pub cleanup_failures: u64,
    /// Lines that all runs covered, where coverage is measured; without faults and with them.
    pub lines_covered: Option<[u64; 2]>,
    /// What the search has learned about each axis.
    pub sensitivity: std::collections::BTreeMap<String, f64>,
    /// Runs beside those of scenarios: without faults, and repetitions.
    pub other_runs: u64,
    /// Jobs at a time.
    pub jobs: usize,
    /// Time of all runs.
    pub wall_seconds: f64,
    /// Explorations of scenarios with symbolic inputs.
    #[serde(default)]
    pub explored: Vec<Explored>,
    /// The results, worst first.
    pub results: Vec<ScenarioResult>,
}

impl FaultSummary {
    /// Whether explorations found something.
    pub fn has_findings(&self) -> bool {
        self.explored
            .iter()
            .any(|explored| !explored.findings.is_empty())
    }

    /// Whether there were faults to inject, and none of them happened: such a search says nothing.
    pub fn is_without_injection(&self) -> bool {
        self.scenarios_injected == Some(0)
    }
}

/// What curves show, after each scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curves {
    /// Failures so far.
    pub failures: Vec<f64>,
    /// Impact of each scenario.
    pub impact: Vec<f64>,
    /// Time of the test of each scenario.
    pub seconds: Vec<f64>,
    /// Sensitivity of each axis.
    pub sensitivity: Vec<Vec<f64>>,
}
