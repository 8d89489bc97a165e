//! The results of a search, as written to files.

use everett::Conclusion;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a test was isolated from the machine.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// In its own namespaces: it sees no other processes, and its writes are discarded.
    #[default]
    Namespaces,
    /// On a copy of its folder; its processes are traced and killed at the end.
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
    /// With another exit code, or with a violated invariant or expectation of a world.
    Failed,
    /// A process crashed.
    Crashed,
    /// It exceeded the time limit.
    Hung,
    /// It exceeded another limit, such as those of processes, output or memory.
    Limit,
    /// Its output or its files differ.
    Differs,
    /// Its impact reaches the threshold of a failure.
    Harmful,
    /// It could not be started.
    StartFailed,
    /// Everett could not run it.
    Error,
}

impl Outcome {
    /// Returns whether it is a failure of the system under test.
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
    /// The name: the folder below `scenarios/`.
    pub name: String,
    /// The text of the scenario.
    pub scenario: String,
    /// The position in the space.
    pub position: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The impact.
    pub impact: f64,
    /// The fitness when the search learned it.
    pub fitness: f64,
    /// The inverse of the variance of the impact over all repetitions; `null` if there is no
    /// variance.
    pub precision: Option<f64>,
    /// How the impact repeats: `always the same`, `varies`, or `not repeated`.
    pub repeats: String,
    /// The probability of its faults.
    pub relevance: f64,
    /// The number of its cluster; `null` if it is not a failure.
    pub cluster: Option<usize>,
    /// Whether it represents its cluster.
    pub is_representative: bool,
    /// Whether the fault happened; `null` if that is not known.
    pub injected: Option<bool>,
    /// The contributions to the impact.
    pub why: Vec<String>,
    /// The stack at the injection point, innermost frame first.
    pub stack: Vec<String>,
    /// The arguments of the call that failed first, without addresses; empty if they are not known.
    #[serde(default)]
    pub arguments: String,
}

/// The result of the symbolic exploration of a scenario.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Explored {
    /// The name of the scenario.
    pub name: String,
    /// The text of the scenario.
    pub scenario: String,
    /// The folder of the run, below the folder of results. `everett replay` and `everett resume`
    /// accept it.
    pub folder: String,
    /// The number of paths: worlds, or parts of them that end in a finding.
    pub paths: u64,
    /// Whether all worlds with these faults were explored.
    pub complete: bool,
    /// The limits that were reached.
    pub limits_hit: Vec<String>,
    /// What was found.
    pub findings: Vec<ExploredFinding>,
}

/// A finding of an exploration.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ExploredFinding {
    /// The kind.
    pub kind: String,
    /// The description.
    pub message: String,
    /// The host.
    pub host: String,
    /// The source file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// Whether it also happens natively: `confirmed`, or why not; `null` if that was not tried.
    pub confirmed: Option<String>,
}

/// The contents of `summary.json`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FaultSummary {
    /// The number of scenarios of the space.
    pub scenarios_total: u64,
    /// The number of scenarios that were run.
    pub scenarios_run: u64,
    /// The number of failures among them.
    pub failures: u64,
    /// The number of scenarios in which a process crashed.
    pub crashes: u64,
    /// The number of scenarios that exceeded the time limit.
    pub hangs: u64,
    /// The number of scenarios that Everett could not run.
    pub errors: u64,
    /// The number of clusters of failures.
    pub clusters: u64,
    /// The search algorithm.
    pub search: String,
    /// Its seed.
    pub seed: u64,
    /// The injector.
    pub injector: String,
    /// How tests were isolated from the machine.
    pub isolation: Isolation,
    /// The number of scenarios whose faults happened; `null` if that is not known.
    pub scenarios_injected: Option<u64>,
    /// What users should know before they trust the result.
    pub warnings: Vec<String>,
    /// Whether all scenarios were run.
    pub is_complete: bool,
    /// Whether the search was interrupted.
    pub is_interrupted: bool,
    /// Tests that fail without any fault, so that their scenarios are not meaningful.
    pub failing_without_faults: Vec<String>,
    /// The number of tests whose cleanup failed.
    pub cleanup_failures: u64,
    /// The number of lines that runs covered, without faults and with them, if coverage is
    /// measured.
    pub lines_covered: Option<[u64; 2]>,
    /// The learned sensitivity of each axis.
    pub sensitivity: std::collections::BTreeMap<String, f64>,
    /// The number of other runs: without faults, and repetitions.
    pub other_runs: u64,
    /// The number of parallel jobs.
    pub jobs: usize,
    /// The number of tests that each node ran, if other machines ran them.
    #[serde(default)]
    pub nodes: std::collections::BTreeMap<String, u64>,
    /// The duration of the search.
    pub wall_seconds: f64,
    /// The processor time of the search and of its tests on this machine.
    #[serde(default)]
    pub processor_seconds: f64,
    /// The duration of the tests of all scenarios together.
    #[serde(default)]
    pub test_seconds: f64,
    /// Explorations of scenarios with symbolic inputs.
    #[serde(default)]
    pub explored: Vec<Explored>,
    /// The results, worst first.
    pub results: Vec<ScenarioResult>,
}

impl FaultSummary {
    /// Returns whether explorations found something.
    pub fn has_findings(&self) -> bool {
        self.explored
            .iter()
            .any(|explored| !explored.findings.is_empty())
    }

    /// Returns the conclusion of the search. It has failed if scenarios could not be run, or if no
    /// fault was injected.
    pub fn conclusion(&self) -> Conclusion {
        Conclusion::new(
            self.failures > 0 || self.has_findings(),
            self.errors > 0 || self.is_without_injection(),
            self.is_interrupted,
        )
    }

    /// Returns whether there were faults to inject, and none of them happened: such a search says
    /// nothing.
    pub fn is_without_injection(&self) -> bool {
        self.scenarios_injected == Some(0)
    }
}

/// The curves of a search, with a value after each scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curves {
    /// The number of failures so far.
    pub failures: Vec<f64>,
    /// The impact of each scenario.
    pub impact: Vec<f64>,
    /// The duration of the test of each scenario.
    pub seconds: Vec<f64>,
    /// The sensitivity of each axis.
    pub sensitivity: Vec<Vec<f64>>,
}
