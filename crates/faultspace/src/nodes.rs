//! Nodes: other machines that run tests for a search. The search sends them scenarios, each node
//! ([`crate::Node`]) runs them with the commands of its own search file, and answers what it
//! observed. Must not know how tasks and answers travel.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::manager::{Seen, digest};
use crate::settings::SearchConfig;
use crate::space::Scenario;

/// The way to the nodes of a search. Threads call it at a time, one for each scenario in flight.
pub trait Nodes: Debug + Send + Sync {
    /// Has a task done by some node, and returns its answer, or why there is none. It waits for a
    /// node no longer than until this time.
    fn run(&self, task: &[u8], until: Option<Instant>) -> std::result::Result<Vec<u8>, String>;

    /// Returns the number of answers of each node.
    fn counts(&self) -> BTreeMap<String, u64>;
}

/// A task of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// What the search files of the explorer and of the node must have in common.
    pub search: String,
    /// The scenario.
    pub scenario: String,
    /// Whether its faults are injected; otherwise, its test runs without faults.
    pub is_faulty: bool,
}

/// Returns the digest of what results depend on, besides the machine and the commands. The commands
/// and their folder, a node may have of its own.
pub(crate) fn digest_of(config: &SearchConfig) -> String {
    let same = (
        (env!("CARGO_PKG_VERSION"), &config.space, &config.injector),
        (&config.programs, &config.proxy, config.shares_network),
        (&config.impact, &config.limits),
    );
    let bytes = serde_json::to_vec(&same).unwrap_or_default();
    format!("{:016x}", digest(&bytes))
}

/// Returns the bytes of a task.
pub(crate) fn task_of(search: &str, scenario: &str, is_faulty: bool) -> Vec<u8> {
    let task = Task {
        search: search.to_owned(),
        scenario: scenario.to_owned(),
        is_faulty,
    };
    serde_json::to_vec(&task).unwrap_or_default()
}

/// Has a scenario run by a node.
pub(crate) fn run_on(
    nodes: &dyn Nodes,
    config: &SearchConfig,
    scenario: &Scenario,
    is_faulty: bool,
    until: Option<Instant>,
) -> Result<Seen> {
    let task = task_of(&digest_of(config), &scenario.to_string(), is_faulty);
    let answer = nodes.run(&task, until).map_err(Error::Manager)?;
    let seen: std::result::Result<Seen, String> = serde_json::from_slice(&answer)
        .map_err(|error| Error::Manager(format!("the answer of a node is damaged: {error}")))?;
    seen.map_err(Error::Manager)
}
