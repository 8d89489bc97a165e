//! Trojan messages: messages that a server accepts and none of its clients sends.
//!
//! Clients are explored first: each message that they send is kept as terms over their inputs, with
//! its path condition ([`Clients`]). Then the server is explored on an unconstrained message
//! ([`Server`]). On each of its paths, [`Search`] decides whether there is a message that no client
//! sends. The decision is exact: client inputs are eliminated where the message determines them
//! ([`eliminate`]), and the rest is refined candidate by candidate.
//!
//! Architecture invariant: knows no scenario, no file and no native program. The crate keeps no
//! terms of the engine, which frees terms that its states do not use: it encodes them, and
//! decodes them into its own arena.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod afterwards;
mod clients;
mod domain;
mod eliminate;
mod formula;
mod layout;
mod moments;
mod path_input;
mod pattern;
mod pin;
mod predicate;
mod search;
mod server;

pub use afterwards::{Afterwards, Followed, Reached};
pub use clients::{ClientOptions, Clients};
pub use eliminate::eliminate;
pub use formula::{Formula, Open};
pub use layout::{Count, Field, Layout, Placed, Shape, Start, unmasked as unmasked_parts};
pub use moments::{Moments, Point};
pub use path_input::PathInput;
pub use pattern::{Pattern, PatternError};
pub use pin::Pin;
pub use predicate::{Encoded, Message, StoredPath, unmasked};
pub use search::{
    Answer, Found, How, Kept, Missing, Negation, Produced, Search, SearchError, SearchOptions,
    SearchStatistics,
};
pub use server::{ACCEPT, AcceptRule, Accepted, MARKS, REJECT, Server, ServerOptions, Why};
