//! Exhaustive search: all orders of runnable threads.

use everett_vm::{ChoiceSite, Interrupt, Oracle};

use super::{Decision, Policy, Schedule, ask};

/// The policy.
pub(super) const POLICY: Policy = Policy {
    name: "exhaustive",
    number: None,
    what: "all orders",
    preempts: true,
    pick,
};

/// Asks the oracle at every scheduling point.
fn pick(
    decision: &Decision<'_>,
    _: &mut Schedule,
    oracle: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    ask(decision, &ChoiceSite::Schedule, oracle)
}
