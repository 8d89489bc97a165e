//! Live peers: real programs, which are not explored, that hosts of a world talk to. All
//! their answers are recorded. A repeated question is answered from the recording; only a
//! new one reaches a live instance.
//!
//! A peer's recording is a trie. A node is the state of the peer after one of its answers; an edge
//! is what the hosts did since and what the peer answered. A state of a host holds the digest of
//! its node. A state that diverges from the earlier ones gets a fresh instance of the peer, to
//! which the common prefix is replayed first.
//!
//! Architecture invariant: this crate knows no search and no host. In an exploration, it is the
//! only crate that starts programs of the user or contacts addresses, and only those that a
//! scenario names. It uses real time, because live programs have no other.
#![deny(missing_docs)]
#![deny(unsafe_code)]

mod compare;
mod folder;
mod held;
mod instance;
mod link;
mod pool;
mod process;
mod recording;
mod setup;
mod snapshot;
mod traced;

pub use pool::{LivePeers, PeerCounts};
pub use recording::{RECORDING, RecordingError};
pub use setup::{Fresh, LiveSetup, Mode, ReadyWhen, Where, pattern};
