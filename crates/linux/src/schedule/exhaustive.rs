//! Exhaustive search: all orders of runnable threads.

use everett_vm::{ChoiceSite, Interrupt, Oracle};

use super::{Decision, Schedule, ask};

/// Asks the oracle at every scheduling point.
pub fn pick(
    decision: &Decision<'_>,
    _: &mut Schedule,
    oracle: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    ask(decision, &ChoiceSite::Schedule, oracle)
}
