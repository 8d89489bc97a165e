//! Round robin: each thread runs until it blocks or its time slice is over.

use everett_vm::{Interrupt, Oracle};

use super::{Moment, Schedule};

/// The current task while it has time left; otherwise the next runnable one behind it.
pub fn pick(moment: &Moment<'_>, _: &mut Schedule, _: &mut dyn Oracle) -> Result<usize, Interrupt> {
    match moment.current {
        Some(current) if !moment.yields => Ok(current),
        _ => {
            let behind = moment.ready.iter().find(|task| **task > moment.last);
            Ok(*behind.unwrap_or(&moment.ready[0]))
        }
    }
}
