//! Preemption-bounded search: all orders with a limited number of preemptions.

use everett_vm::{ChoiceSite, Interrupt, Oracle};

use super::{Decision, Policy, Schedule, ask};

/// The policy.
pub(super) const POLICY: Policy = Policy {
    name: "bounded",
    number: Some("N"),
    what: "all orders with at most N preemptions",
    preempts: true,
    pick,
};

/// Asks the oracle if the last thread is blocked or yields; otherwise preempts it only while the
/// bound allows it.
fn pick(
    decision: &Decision<'_>,
    schedule: &mut Schedule,
    oracle: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    let Some(current) = decision.current else {
        return ask(decision, &ChoiceSite::Schedule, oracle);
    };
    if decision.yields {
        return ask(decision, &ChoiceSite::Schedule, oracle);
    }
    if u64::from(schedule.preemptions) >= schedule.kind.number {
        return Ok(current);
    }
    let picked = ask(decision, &ChoiceSite::Preemption, oracle)?;
    if picked != current {
        schedule.preemptions += 1;
    }
    Ok(picked)
}
