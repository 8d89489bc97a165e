//! Explores the worlds of a program: states and their forks, searchers, traces, findings, weights.

mod distance;
mod explorer;
mod finding;
mod frontier;
mod mapping;
mod memory;
mod names;
mod oracle;
mod path;
mod random;
mod search;
mod shelf;
mod source;
mod state;
mod trace;
mod weight;
mod worker;
mod world;

pub use explorer::{
    Explorer, ExplorerConfig, ExplorerError, Limits, Listener, Start, Statistics, Stopped,
};
pub use finding::{Finding, FindingIndex, FindingKey, PathEnd, PathEnding};
pub use mapping::{Dstate, DstateId, MAPPINGS, MemberId, Table};
pub use memory::MemoryAccount;
pub use random::Random;
pub use search::SEARCHERS;
pub use shelf::Bundle;
pub use source::{SourceFrame, describe, principal};
pub use trace::{Pending, Trace, TraceChoice, TraceEnd, TraceInput, digest, input_of, is_named};
pub use weight::{Weight, WeightSum};
pub use world::{
    HostStanding, SavedFiles, WorldConfig, WorldError, WorldFinding, WorldHost, WorldListener,
    WorldStatistics, Worlds,
};
