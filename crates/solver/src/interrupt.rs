//! Stops a query without an answer: at the deadline of the run, or when the caller sets the stop
//! flag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::Clock;

/// Conditions that stop a query. They never influence an answer: a stopped query has none.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// A flag that the caller sets to stop the run.
    pub stop: Option<Arc<AtomicBool>>,
    /// The clock of the run.
    pub clock: Clock,
    /// The time of the clock after which no query may run.
    pub deadline: Option<Duration>,
}

impl Interrupt {
    /// Returns whether a query must stop now.
    pub fn is_due(&self) -> bool {
        self.stop
            .as_ref()
            .is_some_and(|stop| stop.load(Ordering::Relaxed))
            || self
                .deadline
                .is_some_and(|deadline| self.clock.now() >= deadline)
    }
}
