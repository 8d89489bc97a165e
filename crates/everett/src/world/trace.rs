//! What leads to a world and what is wrong with it, as files have it.

use everett_engine::{Trace, WorldFinding};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Context, Result};
use crate::world::replay::Wanted;

/// The kind of findings that are about what hosts show.
pub const INVARIANT: &str = "invariant";

/// What leads to a world: inputs and choices of every host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorldTrace {
    /// By the names of hosts.
    pub hosts: BTreeMap<String, Trace>,
    /// What is wrong with it, if it is a finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Wrong>,
    /// Where the random bytes of hosts begin, where the scenario does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_seed: Option<u64>,
}

/// What is wrong with a world.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wrong {
    /// The host.
    pub host: String,
    /// What kind.
    pub kind: String,
    /// For people.
    pub message: String,
}

impl WorldTrace {
    /// That of a finding.
    pub fn of(found: &WorldFinding) -> WorldTrace {
        WorldTrace {
            hosts: found.traces.clone(),
            finding: Some(Wrong::of(found)),
            random_seed: None,
        }
    }

    /// Which invariants are to be looked at where it happens again. A world goes on after one that does not hold,
    /// unless that is what is looked for.
    pub(crate) fn wanted(&self) -> Wanted<'_> {
        match &self.finding {
            Some(wrong) if wrong.kind == INVARIANT => Wanted::Invariant(&wrong.message),
            _ => Wanted::Nothing,
        }
    }
}

impl Wrong {
    /// It is of this kind, and this is said of it.
    pub fn is(&self, kind: &str, message: &str) -> bool {
        self.kind == kind && self.message == message
    }

    /// What a search has found.
    pub fn of(found: &WorldFinding) -> Wrong {
        Wrong {
            host: found.host.clone(),
            kind: found.finding.kind.name().to_owned(),
            message: found.finding.message.clone(),
        }
    }
}

/// Reads the trace of a world.
pub(crate) fn read_world(path: &Path) -> Result<WorldTrace> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} is no trace of a world", path.display()))
}
