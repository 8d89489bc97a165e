//! Simulates a host in a world: what is in transit to it, its clock and horizon, the faults that
//! hit it, when it starts and restarts, what it exposes to invariants, and how it must end.
//!
//! One implementation serves explored hosts (the vm, driven by `engine`) and native ones (ptrace,
//! driven by `native`): both implement [`Machine`], and [`step`] advances either.
//!
//! Architecture invariant: this crate knows no solver, no search and no ptrace. [`step`] touches
//! one host only and changes nothing while a question is open.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arrival;
mod expectation;
pub mod hex;
mod host;
mod host_faults;
mod inbox;
mod list;
mod message_log;
mod observation;
mod peer;
mod plan;
mod received;
mod start;
mod transit;
mod world_faults;

pub use arrival::Arrival;
pub use expectation::{Expected, Expects, first_expects};
pub use host::{
    Exit, MAX_OBSERVATIONS, Machine, Network, Questions, SimHost, Step, horizon_ns, step,
};
pub use host_faults::{HostFault, HostFaultOutcome};
pub use inbox::{Inbox, InboxClock, NextEvent, RunState};
pub use list::{BLOCK, SharedList};
pub use message_log::{Message, MessageLog};
pub use observation::{
    History, KnownData, Observation, ObservationLog, broken_message, never_held, read_by, timeline,
    view,
};
pub use peer::{
    Acted, ConnectionId, FLUSH_BYTES, HostAct, Peer, PeerAct, PeerConfig, SymbolicBytes,
    position_after, question_id,
};
pub use plan::{Asked, Plan, PlannedFault, PlannedKind, PlannedSite, USUAL};
pub use received::{Incoming, Received, StoredReceived};
pub use start::Start;
pub use transit::Delivery;
pub use world_faults::{decide_world_faults, site as world_fault_site};
