//! Preemption-bounded search: all orders with a limited number of preemptions.

use everett_vm::{Interrupt, Oracle};

use super::{Moment, Schedule, SchedulerKind, ask};

/// Asks freely where the last thread is blocked; preempts a runnable thread only while the bound allows it.
pub fn pick(
    moment: &Moment<'_>,
    schedule: &mut Schedule,
    oracle: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    let Some(current) = moment.current else {
        return ask(moment, "schedule", oracle);
    };
    let SchedulerKind::Bounded(most) = schedule.kind else {
        return Ok(current);
    };
    if moment.yields {
        return ask(moment, "schedule", oracle);
    }
    if schedule.preemptions >= most {
        return Ok(current);
    }
    let picked = ask(moment, "preempt:", oracle)?;
    if picked != current {
        schedule.preemptions += 1;
    }
    Ok(picked)
}
