//! A state of the search: a host and how it came to be.

use everett_linux::{Ending, Host};
use everett_sim::SimHost;
use everett_vm::{Bug, BugKind};

use crate::history::HistoryDigest;
use crate::path::Path;

/// A state of the search. A clone is a fork.
#[derive(Clone)]
pub struct State {
    /// The host; absent until it has booted, and while it is powered off.
    pub host: Option<Host>,
    /// How it came to be.
    pub path: Path,
    /// It was the first to execute some code since the last fork.
    pub covered_new: bool,
    /// Instructions executed since it covered something new.
    pub since_new: u64,
    /// Its part in a world; a program on its own has none.
    pub net: Option<Box<NetState>>,
}

/// What a state of a world has besides its host.
#[derive(Clone)]
pub struct NetState {
    /// The host's part in the world.
    pub sim: SimHost,
    /// How its programs have ended, if they have.
    pub ending: Option<Ending>,
    /// The digest of its history.
    pub history: HistoryDigest,
}

// States move between worker threads.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<State>();
};

impl State {
    /// The state of a program in which the search begins, or which a trace leads to.
    pub fn starting(path: Path) -> State {
        State {
            host: None,
            path,
            covered_new: false,
            since_new: 0,
            net: None,
        }
    }

    /// Instructions executed on its path.
    pub fn instructions(&self) -> u64 {
        self.host.as_ref().map_or(0, Host::instructions)
    }

    /// The finding of a state that has executed more than it may.
    pub fn hang(&self) -> Bug {
        let message = format!("over {} instructions on one path", self.instructions());
        Bug::new(BugKind::Hang, message)
    }

    /// Its part in a world. Only states of worlds are asked for it.
    pub fn net(&self) -> &NetState {
        self.net.as_deref().expect("a state of a world")
    }

    /// The same, to change it.
    pub fn net_mut(&mut self) -> &mut NetState {
        self.net.as_deref_mut().expect("a state of a world")
    }

    /// The host's part in a world.
    pub fn sim(&self) -> &SimHost {
        &self.net().sim
    }

    /// The same, to change it.
    pub fn sim_mut(&mut self) -> &mut SimHost {
        &mut self.net_mut().sim
    }

    /// Warnings of its kernel.
    pub fn warnings(&self) -> &[String] {
        self.host.as_ref().map_or(&[], Host::warnings)
    }

    /// Its clock.
    pub fn clock_ns(&self) -> u64 {
        self.host.as_ref().map_or(0, Host::clock_ns)
    }

    /// When the next event of a host in a world happens; `u64::MAX` for never.
    pub fn next_ns(&self) -> u64 {
        self.sim().next_ns(self.host.as_ref())
    }

    /// Both states of a world have the same history and path condition, so they can be merged.
    pub fn is_same(&self, other: &State) -> bool {
        let conditions = (&self.path.constraints, &other.path.constraints);
        self.net().history == other.net().history
            && self.sim().counters == other.sim().counters
            && self.sim().sent == other.sim().sent
            && conditions.0.len() == conditions.1.len()
            && conditions.0.iter().all(|one| conditions.1.contains(one))
    }
}
