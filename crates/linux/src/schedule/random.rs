//! Random scheduling: the same seed gives the same order.

use everett_vm::{Interrupt, Oracle};

use super::{Decision, Policy, Schedule};
use crate::host::split_mix;

/// The policy.
pub(super) const POLICY: Policy = Policy {
    name: "random",
    number: Some("SEED"),
    what: "one order, drawn from the seed",
    preempts: true,
    pick,
};

/// Picks a runnable task at random.
fn pick(
    decision: &Decision<'_>,
    schedule: &mut Schedule,
    _: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    let drawn = split_mix(&mut schedule.random) as usize;
    Ok(decision.ready[drawn % decision.ready.len()])
}
