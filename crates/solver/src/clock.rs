//! The clock of a run. The caller of the library provides it, so several runs in one process have a
//! clock each.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time since a run began. Limits, statistics and the log of slow queries depend on it; an answer
/// never does.
#[derive(Copy, Clone, Debug, Default)]
pub enum Clock {
    /// Always zero, for runs without time limits.
    #[default]
    Stopped,
    /// The time since this instant.
    Since(Instant),
    /// A millisecond for each time that somebody looked, so that a run ends at its time limit at the
    /// same point every time.
    Looks(&'static AtomicU64),
}

impl Clock {
    /// Returns a clock that starts now.
    pub fn start() -> Clock {
        Clock::Since(Instant::now())
    }

    /// Returns the time since the run began.
    pub fn now(self) -> Duration {
        match self {
            Clock::Stopped => Duration::ZERO,
            Clock::Since(start) => start.elapsed(),
            Clock::Looks(count) => Duration::from_millis(count.fetch_add(1, Ordering::Relaxed)),
        }
    }
}
