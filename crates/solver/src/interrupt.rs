//! When a query must stop without an answer: at the deadline of the run, or
//! when the caller sets the stop flag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::Clock;

/// Stops queries from outside. It never makes an answer: a query that is stopped has none.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// Set by whoever wants the run to stop.
    pub stop: Option<Arc<AtomicBool>>,
    /// The clock of the run.
    pub clock: Clock,
    /// When, by the clock, no query may take any more time.
    pub deadline: Option<Duration>,
}

impl Interrupt {
    /// Whether a query must stop now.
    pub fn is_due(&self) -> bool {
        self.stop
            .as_ref()
            .is_some_and(|stop| stop.load(Ordering::Relaxed))
            || self
                .deadline
                .is_some_and(|deadline| self.clock.now() >= deadline)
    }
}
