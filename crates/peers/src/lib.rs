//! Live peers: real programs, which are not explored, that hosts of a world talk to. Everything that they say is
//! recorded; the same question is answered from the recording, and only what is new reaches a live one.
//!
//! A peer's recording is a trie: a node is where the peer stands after one of its answers, an edge is what the hosts
//! did since and what the peer answered. A state of a host holds the digest of its node. A state that does something
//! else than those before it gets a fresh instance of the peer, to which the common prefix is played first.
//!
//! Architecture invariant: this crate knows no search and no host; in an exploration, it is the only one that starts
//! programs of the user or contacts addresses, and only those that a scenario names. It knows the real time, because
//! outside nothing else passes.
#![deny(missing_docs)]
#![deny(unsafe_code)]

mod instance;
mod link;
mod pool;
mod process;
mod recording;
mod setup;

pub use pool::{LivePeers, PeerCounts};
pub use recording::{RECORDING, RecordingError};
pub use setup::{LiveSetup, Mode, ReadyWhen, Where, pattern};
