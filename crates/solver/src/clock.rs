//! The clock of a run. The caller of the library provides it, so each of several
//! runs in one process has its own.

use std::time::{Duration, Instant};

/// Time since a run began. Limits, statistics and the log of slow queries
/// depend on it, an answer never does.
#[derive(Copy, Clone, Debug, Default)]
pub enum Clock {
    /// It stands still at zero, for runs that have no limits in time.
    #[default]
    Stopped,
    /// It shows the time since this instant.
    Since(Instant),
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Clock {
        Clock::Since(Instant::now())
    }

    /// Time since the run began.
    pub fn now(self) -> Duration {
        match self {
            Clock::Stopped => Duration::ZERO,
            Clock::Since(start) => start.elapsed(),
        }
    }
}
