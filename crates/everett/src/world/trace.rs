//! Traces of worlds and their findings, as stored in files.

use everett_engine::{Trace, WorldFinding};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Context, Result};
use crate::world::replay::Wanted;

/// The kind of findings that are violated invariants.
pub const INVARIANT: &str = "invariant";

/// A trace of a world: inputs and choices of every host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorldTrace {
    /// Traces of hosts, by host name.
    pub hosts: BTreeMap<String, Trace>,
    /// The finding that the trace leads to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Wrong>,
    /// The seed of the hosts' random bytes, if the scenario does not fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_seed: Option<u64>,
}

/// A finding in a world.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wrong {
    /// The host that the finding is on.
    pub host: String,
    /// The kind of the finding.
    pub kind: String,
    /// A description for the user.
    pub message: String,
}

impl WorldTrace {
    /// The trace of a finding.
    pub fn of(found: &WorldFinding) -> WorldTrace {
        WorldTrace {
            hosts: found.traces.clone(),
            finding: Some(Wrong::of(found)),
            random_seed: None,
        }
    }

    /// Which invariants a replay evaluates. A world continues after a violated invariant unless that is the finding to
    /// confirm.
    pub(crate) fn wanted(&self) -> Wanted<'_> {
        match &self.finding {
            Some(wrong) if wrong.kind == INVARIANT => Wanted::Invariant(&wrong.message),
            _ => Wanted::Nothing,
        }
    }
}

impl Wrong {
    /// Whether the finding has this kind and message.
    pub fn is(&self, kind: &str, message: &str) -> bool {
        self.kind == kind && self.message == message
    }

    /// The finding of a search.
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
