//! The search: one explorer for programs and for worlds of several hosts, with its frontier,
//! searchers, forks, weights, limits, spill file, traces and findings. State mappings track which
//! states of different hosts form worlds; a set of states that does is a *dstate* (see `mapping`).
//!
//! Architecture invariant: this crate knows no front end and no native process. A state is a value
//! and can be sent between threads.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod checkpoint;
mod config;
mod delta;
mod distance;
mod error;
mod explorer;
mod finding;
mod frontier;
mod history;
mod input;
mod mapping;
mod memory;
mod names;
mod observe;
mod oracle;
mod pair;
mod part;
mod path;
mod random;
mod saved;
mod search;
mod second;
mod seeds;
mod shares;
mod source;
mod spill;
mod state;
mod statistics;
mod team;
mod trace;
mod weight;
mod worker;
mod world;

pub use config::{ExplorerConfig, Limits, WorldConfig, WorldHost};
pub use error::{ExplorerError, SavedError};
pub use explorer::{Explorer, Listener, Start, Stopped};
pub use finding::{
    Finding, FindingIndex, FindingKey, FrameArgument, HostStatus, PathEnd, PathEnding, SavedFiles,
    ShownValue, Unsupported, WorldFinding,
};
pub use mapping::{Dstate, DstateId, MAPPINGS, MappingRow, MemberId, Table, UnknownMapping};
pub use memory::MemoryAccount;
pub use observe::{Keep, StateView};
pub use pair::Difference;
pub use part::{Part, WorldCounts};
pub use random::Random;
pub use saved::Saved;
pub use search::{DEFAULT_SEARCHERS, SEARCHERS, UnknownSearcher};
pub use seeds::Seed;
pub use shares::ShareLimits;
pub use source::{Called, IsCallAt, SolverLine, SourceFrame, describe, principal};
pub use spill::copy_of;
pub use statistics::{EVENTS, FORK_WORK, SolverFigures, Statistics, VIRTUAL_TIME, WorldStatistics};
pub use team::giving::share_of;
pub use team::member::TeamStatistics;
pub use trace::{
    NativePoint, Pending, Trace, TraceAnswer, TraceChoice, TraceEnd, TraceInput, digest, input_of,
    is_named,
};
pub use weight::{Weight, WeightSum};
pub use world::Worlds;
pub use world::stored::PendingWorld;
