//! Preemption-bounded search: all orders with a limited number of preemptions.

use everett_vm::{ChoiceSite, Interrupt, Oracle};

use super::{Decision, Schedule, ask};
use crate::config::SchedulerKind;

/// Asks freely where the last thread is blocked; preempts a runnable thread only while the bound allows it.
pub fn pick(
    decision: &Decision<'_>,
    schedule: &mut Schedule,
    oracle: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    let Some(current) = decision.current else {
        return ask(decision, &ChoiceSite::Schedule, oracle);
    };
    let SchedulerKind::Bounded(most) = schedule.kind else {
        return Ok(current);
    };
    if decision.yields {
        return ask(decision, &ChoiceSite::Schedule, oracle);
    }
    if schedule.preemptions >= most {
        return Ok(current);
    }
    let picked = ask(decision, &ChoiceSite::Preemption, oracle)?;
    if picked != current {
        schedule.preemptions += 1;
    }
    Ok(picked)
}
