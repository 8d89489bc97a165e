//! All orders in which threads that could go on are stopped at most so many times.

use everett_vm::{ChoiceSite, Interrupt, Oracle};

use super::{Moment, Schedule, SchedulerKind, ask};

/// Asks freely where the thread that ran cannot go on; stops it only while that is allowed.
pub fn pick(
    moment: &Moment<'_>,
    schedule: &mut Schedule,
    oracle: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    let Some(current) = moment.current else {
        return ask(moment, &ChoiceSite::Schedule, oracle);
    };
    let SchedulerKind::Bounded(most) = schedule.kind else {
        return Ok(current);
    };
    if moment.yields {
        return ask(moment, &ChoiceSite::Schedule, oracle);
    }
    if schedule.preemptions >= most {
        return Ok(current);
    }
    let picked = ask(moment, &ChoiceSite::Preemption, oracle)?;
    if picked != current {
        schedule.preemptions += 1;
    }
    Ok(picked)
}
