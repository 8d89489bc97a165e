//! A checkpoint as plain data: everything that another search needs to continue this one. Must not
//! know how it is made or restored; see `checkpoint`.

use everett_net::{FaultIndex, HostIndex};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

use crate::error::SavedError;
use crate::finding::{FindingKey, Unsupported};
use crate::history::HistoryDigest;
use crate::mapping::StoredTable;
use crate::spill::{Bundle, SpillId};
use crate::state::Identity;
use crate::statistics::{Statistics, WorldStatistics};

/// A checkpoint of a search: its counters, and what is left to explore.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    /// Files of states beside the spill file, in the order of their numbers.
    pub files: Vec<PathBuf>,
    /// The lists of states of a program that are left.
    pub(crate) left: Vec<Bundle>,
    /// The worlds that are left.
    pub(crate) world: Option<SavedWorld>,
    pub(crate) statistics: Statistics,
    /// Coverage of segments: one digit each, `1` if it was executed.
    pub(crate) covered: String,
    /// Findings, with the number of paths that ended in each.
    pub(crate) findings: Vec<(FindingKey, u64)>,
    /// Names of limits that say what is missing from the results.
    pub(crate) limits: Vec<String>,
    pub(crate) warnings: Vec<String>,
    #[serde(default)]
    pub(crate) unsupported: Vec<Unsupported>,
}

/// The remaining worlds of a search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedWorld {
    /// Names of the hosts.
    pub(crate) hosts: Vec<String>,
    /// The name of the state mapping.
    pub(crate) mapping: String,
    /// The states, the oldest first.
    pub(crate) states: Vec<SavedState>,
    pub(crate) table: StoredTable,
    /// Times at which invariants are still to be evaluated.
    pub(crate) times: Vec<u64>,
    /// Faults that have happened in some world.
    pub(crate) fired: Vec<FaultIndex>,
    pub(crate) counted: WorldStatistics,
    /// The number of the next world that has not begun; `None` if all have.
    #[serde(default)]
    pub(crate) next_world: Option<u64>,
    /// The number of worlds that have begun.
    #[serde(default)]
    pub(crate) begun: u64,
    /// Whether invariants were being evaluated when the search was saved.
    #[serde(default)]
    pub(crate) has_open_questions: bool,
}

/// A saved state of a world: its position in a file of states, and facts about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedState {
    pub(crate) at: SpillId,
    #[serde(flatten)]
    pub(crate) facts: StateFacts,
}

/// Data about a state of a world that is available without rematerialising it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StateFacts {
    pub(crate) host: HostIndex,
    /// The time of the state's next event.
    pub(crate) next_ns: u64,
    /// Whether the host waits for the hosts before it to block.
    pub(crate) is_awaiting: bool,
    /// The digest of the state's history.
    pub(crate) history: HistoryDigest,
    /// The key under which equal states are merged.
    pub(crate) identity: Identity,
    /// Whether the state was the first to execute some code.
    pub(crate) covered_new: bool,
    /// Whether the host is on, and its programs have not ended.
    #[serde(default)]
    pub(crate) is_waiting: bool,
    /// How often the faults that are bounded per world have happened on the host.
    pub(crate) used: Vec<u32>,
    /// A digest of the answers that led to the state.
    #[serde(default)]
    pub(crate) answers: u64,
}

impl Saved {
    /// Returns the number of segments of the programs.
    pub fn segments(&self) -> usize {
        self.covered.len()
    }

    /// Rejects data that no search can have written.
    pub fn check(&self) -> Result<(), SavedError> {
        let is_damaged = self.left.iter().any(|bundle| bundle.weight().is_none());
        let table = self.world.as_ref().map_or(Ok(()), |world| {
            world.table.check(world.states.len(), world.hosts.len())
        });
        match is_damaged || table.is_err() {
            true => Err(SavedError::Damaged),
            false => Ok(()),
        }
    }
}

impl SavedWorld {
    /// Returns the states and the table of dstates.
    pub(crate) fn into_states(self) -> (Vec<SavedState>, StoredTable) {
        (self.states, self.table)
    }
}
