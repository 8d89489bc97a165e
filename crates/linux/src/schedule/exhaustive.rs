//! Exhaustive search: all orders of runnable threads.

use everett_vm::{Interrupt, Oracle};

use super::{Moment, Schedule, ask};

/// Asks the oracle at every scheduling point.
pub fn pick(
    moment: &Moment<'_>,
    _: &mut Schedule,
    oracle: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    ask(moment, "schedule", oracle)
}
