//! Trojan messages: what a server accepts and none of its clients sends.
//!
//! Clients are explored first: each message that they send is kept as terms over their inputs, with the condition of
//! its path ([`Clients`]). Then the server is explored on an unconstrained message ([`Server`]); [`Search`] decides,
//! on each of its paths, whether there is a message that no client sends. The decision is exact: inputs of clients are
//! eliminated where their bytes stand in the message ([`eliminate`]), and what is left is refined by candidates.
//!
//! Architecture invariant: knows no scenario, no file and no native program. Terms of the engine never stay here: they
//! are encoded and decoded into an arena of its own, because the engine frees terms that its states do not use.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod clients;
mod domain;
mod eliminate;
mod formula;
mod layout;
mod pattern;
mod predicate;
mod search;
mod server;

pub use clients::{ClientOptions, Clients};
pub use eliminate::eliminate;
pub use formula::{Formula, Open};
pub use layout::{Field, Layout};
pub use pattern::{Pattern, PatternError};
pub use predicate::{Encoded, Message, StoredPath, unmasked};
pub use search::{
    Answer, Found, How, Missing, Produced, Search, SearchError, SearchOptions, SearchStatistics,
};
pub use server::{ACCEPT, AcceptRule, Accepted, MARKS, REJECT, Server, ServerOptions, Why};
