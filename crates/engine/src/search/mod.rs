//! Searchers: which state is executed next.
//!
//! A searcher is one file that implements [`Searcher`] and one line in [`SEARCHERS`].

mod coverage;
mod ordered;
mod plain;

use crate::frontier::{Frontier, StateId};
use crate::random::Random;

/// Decides which state is executed next.
pub trait Searcher {
    /// A state has joined the frontier.
    fn added(&mut self, frontier: &Frontier, id: StateId);
    /// A state has left the frontier.
    fn removed(&mut self, id: StateId);
    /// A state was executed and has not ended.
    fn updated(&mut self, frontier: &Frontier, id: StateId);
    /// Returns the state to execute next. The frontier has at least one state.
    fn select(&mut self, frontier: &Frontier, random: &mut Random) -> Option<StateId>;
}

/// A searcher of the table: its name, what it does, and its constructor.
pub struct Row {
    /// The name of the searcher.
    pub name: &'static str,
    /// What the searcher does, for people.
    pub what: &'static str,
    make: fn() -> Box<dyn Searcher>,
}

/// All searchers.
pub const SEARCHERS: &[Row] = &[
    Row {
        name: "dfs",
        what: "depth first: the newest state",
        make: || Box::<plain::DepthFirst>::default(),
    },
    Row {
        name: "bfs",
        what: "breadth first: the state that waited longest",
        make: || Box::<plain::BreadthFirst>::default(),
    },
    Row {
        name: "random-path",
        what: "a random walk down the tree of forks",
        make: || Box::new(plain::RandomPath),
    },
    Row {
        name: "random-state",
        what: "any state, all alike",
        make: || Box::<plain::RandomState>::default(),
    },
    Row {
        name: "coverage",
        what: "states near code that was never executed",
        make: || Box::<coverage::CoverageGuided>::default(),
    },
    Row {
        name: "fewest-faults",
        what: "the state with the fewest injected faults",
        make: || Box::new(ordered::Ordered::new(|info| u64::from(info.faults))),
    },
    Row {
        name: "fewest-preemptions",
        what: "the state with the fewest preemptions",
        make: || Box::new(ordered::Ordered::new(|info| u64::from(info.preemptions))),
    },
    Row {
        name: "shallowest",
        what: "the state with the fewest forks",
        make: || Box::new(ordered::Ordered::new(|info| u64::from(info.depth))),
    },
];

/// The searchers of a program that names none. (In a scenario, the state with the least clock runs
/// next.)
pub const DEFAULT_SEARCHERS: [&str; 2] = ["random-path", "coverage"];

/// The error for an unknown searcher.
#[derive(Debug, thiserror::Error)]
#[error("there is no searcher {name:?}; there are: {}", names().join(", "))]
pub struct UnknownSearcher {
    name: String,
}

fn names() -> Vec<&'static str> {
    SEARCHERS.iter().map(|row| row.name).collect()
}

fn row(name: &String) -> Result<&'static Row, UnknownSearcher> {
    let found = SEARCHERS.iter().find(|row| row.name == name);
    found.ok_or_else(|| UnknownSearcher { name: name.clone() })
}

/// Creates the searcher for a list of names: one, or several that take turns.
pub fn searcher(names: &[String]) -> Result<Box<dyn Searcher>, UnknownSearcher> {
    let make = |name: &String| Ok((row(name)?.make)());
    let mut members = names.iter().map(make).collect::<Result<Vec<_>, _>>()?;
    if members.len() == 1
        && let Some(only) = members.pop()
    {
        return Ok(only);
    }
    Ok(Box::new(Interleaved { members, turn: 0 }))
}

/// Several searchers that take turns.
struct Interleaved {
    members: Vec<Box<dyn Searcher>>,
    turn: usize,
}

impl Searcher for Interleaved {
    fn added(&mut self, frontier: &Frontier, id: StateId) {
        self.members
            .iter_mut()
            .for_each(|member| member.added(frontier, id));
    }

    fn removed(&mut self, id: StateId) {
        self.members
            .iter_mut()
            .for_each(|member| member.removed(id));
    }

    fn updated(&mut self, frontier: &Frontier, id: StateId) {
        self.members
            .iter_mut()
            .for_each(|member| member.updated(frontier, id));
    }

    fn select(&mut self, frontier: &Frontier, random: &mut Random) -> Option<StateId> {
        if self.members.is_empty() {
            return frontier.random_leaf(random);
        }
        self.turn = (self.turn + 1) % self.members.len();
        self.members[self.turn].select(frontier, random)
    }
}
