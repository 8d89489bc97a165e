//! Fault spaces: describes the faults that can hit a system, and searches for those with the
//! highest impact (AFEX).
//!
//! A [`Space`] is a union of products of axes; a [`Scenario`] is one of its points. A search
//! ([`search`]) proposes scenarios, an injector ([`injector`]) injects the faults of each in a run
//! of the system under test, sensors measure the impact ([`impact`]), and the search learns from
//! it. [`run`] drives all of this and writes a folder of results.
//!
//! Architecture invariant: the core (space, search, impact, clusters) knows no process and no
//! clock, so that a search is a function of its seed and of the results that it was given. Real
//! programs run in a separate manager process ([`manager`]), which may die without harm to the
//! search. The crate prints nothing.

#![deny(missing_docs)]

pub mod cluster;
mod config;
mod error;
mod explore;
pub mod impact;
pub mod injector;
mod journal;
mod leftovers;
pub mod manager;
mod map;
mod node;
mod nodes;
mod numbers;
mod profile;
mod regression;
mod replay;
mod results;
mod run;
pub mod search;
mod settings;
mod show;
pub mod space;
mod system;
mod text;
mod unchecked;
mod warnings;
mod worlds;

pub use config::SearchFile;
pub use error::{Error, Result};
pub use node::{Node, NodeSpec};
pub use nodes::Nodes;
pub use numbers::Numbers;
pub use profile::{ProfileBy, ProfileResult, ProfileSpec, profile};
pub use replay::{ReplayResult, ReplaySpec, replay};
pub use results::{Explored, ExploredFinding, FaultSummary, Isolation, Outcome, ScenarioResult};
pub use run::{Progress, RunResult, RunSpec, run};
pub use settings::{Command, Explore, Guided, Impact, SearchConfig, Stop};
pub use show::{AxisDensity, AxisShown, Shown, show};
pub use space::{Axis, Point, Scenario, Space, SpaceError, Subspace, Value, Values};
pub use unchecked::Unchecked;
