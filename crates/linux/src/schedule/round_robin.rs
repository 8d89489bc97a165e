//! Round robin: each thread runs until it blocks or its time slice is over.

use everett_vm::{Interrupt, Oracle};

use super::{Decision, Policy, Schedule};

/// The policy.
pub(super) const POLICY: Policy = Policy {
    name: "round-robin",
    number: None,
    what: "one order: each thread until it waits or its time slice is over",
    preempts: false,
    pick,
};

/// Picks the current task as long as it has time left; otherwise the next runnable task after it.
fn pick(decision: &Decision<'_>, _: &mut Schedule, _: &mut dyn Oracle) -> Result<usize, Interrupt> {
    match decision.current {
        Some(current) if !decision.yields => Ok(current),
        _ => {
            let behind = decision.ready.iter().find(|task| **task > decision.last);
            Ok(*behind.unwrap_or(&decision.ready[0]))
        }
    }
}
