//! A state of the search: a host and how it came to be.

use everett_linux::Host;
use everett_vm::{Bug, BugKind};

use crate::path::Path;

/// A state of the search. A clone is a fork.
#[derive(Clone)]
pub struct State {
    /// The host; absent until it has booted.
    pub host: Option<Host>,
    /// How it came to be.
    pub path: Path,
    /// It was the first to execute something since the last fork.
    pub covered_new: bool,
    /// Instructions executed since it covered something new.
    pub since_new: u64,
}

impl State {
    /// The state in which the search begins, or which a trace leads to.
    pub fn starting(path: Path) -> State {
        State {
            host: None,
            path,
            covered_new: false,
            since_new: 0,
        }
    }

    /// Instructions executed on its path.
    pub fn instructions(&self) -> u64 {
        self.host.as_ref().map_or(0, Host::instructions)
    }

    /// What is wrong with it where it has executed more than it may.
    pub fn hang(&self) -> Bug {
        let message = format!("over {} instructions on one path", self.instructions());
        Bug::new(BugKind::Hang, message)
    }
}
