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
    /// A state has left it.
    fn removed(&mut self, id: StateId);
    /// A state was executed and goes on.
    fn updated(&mut self, frontier: &Frontier, id: StateId);
    /// The state to execute. There is at least one.
    fn select(&mut self, frontier: &Frontier, random: &mut Random) -> Option<StateId>;
}

/// Makes a searcher.
type Make = fn() -> Box<dyn Searcher>;

/// All searchers: name, what it does, how it is made.
pub const SEARCHERS: &[(&str, &str, Make)] = &[
    ("dfs", "depth first: the newest state", || {
        Box::<plain::DepthFirst>::default()
    }),
    (
        "bfs",
        "breadth first: the state that waited longest",
        || Box::<plain::BreadthFirst>::default(),
    ),
    (
        "random-path",
        "a random walk down the tree of forks",
        || Box::new(plain::RandomPath),
    ),
    ("random-state", "any state, all alike", || {
        Box::<plain::RandomState>::default()
    }),
    (
        "coverage",
        "states near code that was never executed",
        || Box::<coverage::CoverageGuided>::default(),
    ),
    (
        "fewest-faults",
        "the state with the fewest injected faults",
        || Box::new(ordered::Ordered::new(|info| u64::from(info.faults))),
    ),
    (
        "fewest-preemptions",
        "the state with the fewest preemptions",
        || Box::new(ordered::Ordered::new(|info| u64::from(info.preemptions))),
    ),
    ("shallowest", "the state with the fewest forks", || {
        Box::new(ordered::Ordered::new(|info| u64::from(info.depth)))
    }),
];

/// There is no searcher of that name.
#[derive(Debug, thiserror::Error)]
#[error("there is no searcher {name:?}; there are: {}", names().join(", "))]
pub struct UnknownSearcher {
    name: String,
}

fn names() -> Vec<&'static str> {
    SEARCHERS.iter().map(|row| row.0).collect()
}

/// The searcher for a list of names: one, or several that take turns.
pub fn searcher(names: &[String]) -> Result<Box<dyn Searcher>, UnknownSearcher> {
    let make = |name: &String| match SEARCHERS.iter().find(|row| row.0 == name) {
        Some(row) => Ok(row.2()),
        None => Err(UnknownSearcher { name: name.clone() }),
    };
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
