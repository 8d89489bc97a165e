//! A state of one host in a world.

use everett_linux::{Ending, Host};
use everett_sim::SimHost;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::state::State;

/// A state of one host in a world.
#[derive(Clone)]
pub struct Member {
    /// The host's programs and kernel, and how they came to be.
    pub state: State,
    /// The host's part in the world.
    pub sim: SimHost,
    /// How its programs have ended, if they have.
    pub ending: Option<Ending>,
    /// The digest of its history.
    pub history: HistoryDigest,
}

/// A digest of everything that made a state what it is: its host, the sides of its forks, what it received and when. The
/// history and the path condition determine what a host does.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HistoryDigest(u64, u64);

impl HistoryDigest {
    /// The history with one more event.
    pub fn then(self, event: &impl Hash) -> HistoryDigest {
        let half = |half: u8| {
            let mut hasher = DefaultHasher::new();
            (half, self.0, self.1).hash(&mut hasher);
            event.hash(&mut hasher);
            hasher.finish()
        };
        HistoryDigest(half(0), half(1))
    }
}

impl Member {
    /// A fork of it: the same host with another state and history.
    pub fn with_state(&self, state: State, history: HistoryDigest) -> Member {
        Member {
            state,
            sim: self.sim.clone(),
            ending: self.ending.clone(),
            history,
        }
    }

    /// Its kernel, where it is on.
    pub fn host(&self) -> Option<&Host> {
        self.state.host.as_ref()
    }

    /// Warnings of its kernel.
    pub fn warnings(&self) -> &[String] {
        self.host().map_or(&[], Host::warnings)
    }

    /// Its clock.
    pub fn clock_ns(&self) -> u64 {
        self.host().map_or(0, Host::clock_ns)
    }

    /// Both states have the same history and path condition, so they can be merged.
    pub fn is_same(&self, other: &Member) -> bool {
        let conditions = (&self.state.path.constraints, &other.state.path.constraints);
        self.history == other.history
            && self.sim.counters == other.sim.counters
            && self.sim.sent == other.sim.sent
            && conditions.0.len() == conditions.1.len()
            && conditions.0.iter().all(|one| conditions.1.contains(one))
    }

    /// When its next event happens; `u64::MAX` for never.
    pub fn next_ns(&self) -> u64 {
        self.sim.next_ns(self.host())
    }
}
