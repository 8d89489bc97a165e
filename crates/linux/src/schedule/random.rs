//! Random scheduling: the same seed gives the same order.

use everett_vm::{Interrupt, Oracle};

use super::{Decision, Schedule};
use crate::host::split_mix;

/// Picks a runnable task at random.
pub fn pick(
    decision: &Decision<'_>,
    schedule: &mut Schedule,
    _: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    let drawn = split_mix(&mut schedule.random) as usize;
    Ok(decision.ready[drawn % decision.ready.len()])
}
