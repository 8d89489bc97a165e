//! Trojan messages: messages that a server accepts and that none of its clients sends.
//!
//! The analysis first explores the clients. It keeps each message that they send as terms over
//! client inputs, together with the path condition (a client predicate, [`Clients`]). Then it
//! explores the server on an unconstrained message ([`Server`]). On each server path, [`Search`]
//! decides whether there is a message that no client sends. The decision is exact: client inputs
//! are eliminated where the message determines them ([`eliminate`]), and the rest is refined
//! candidate by candidate.
//!
//! Architecture invariant: this crate knows no scenario, no file and no native program. It keeps no
//! terms of the engine, because the engine frees terms that its states do not use. It encodes them,
//! and decodes them into its own arena.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod afterwards;
mod clients;
mod domain;
mod eliminate;
mod formula;
mod layout;
mod path_input;
mod pattern;
mod pin;
mod point_times;
mod predicate;
mod search;
mod server;
mod subsume;

pub use afterwards::{Afterwards, Followed, Reached};
pub use clients::{ClientOptions, Clients};
pub use eliminate::eliminate;
pub use formula::{Formula, Open};
pub use layout::{Count, Field, Layout, Placed, Shape, Start, unmasked as unmasked_parts};
pub use path_input::PathInput;
pub use pattern::{Pattern, PatternError};
pub use pin::Pin;
pub use point_times::{Point, PointTime, PointTimes};
pub use predicate::{Encoded, Message, StoredPath, unmasked};
pub use search::{
    Answer, Found, How, Kept, Missing, Negation, Produced, Search, SearchError, SearchOptions,
    SearchStatistics,
};
pub use server::{
    ACCEPT, AcceptRule, Accepted, MARKS, OnFound, REJECT, Server, ServerOptions, Why,
};
