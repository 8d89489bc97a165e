//! One after the other, each until it waits or its time is over.

use everett_vm::{Interrupt, Oracle};

use super::{Moment, Schedule};

/// The one that ran, while it has time; else the next one behind it.
pub fn pick(moment: &Moment<'_>, _: &mut Schedule, _: &mut dyn Oracle) -> Result<usize, Interrupt> {
    match moment.current {
        Some(current) if !moment.yields => Ok(current),
        _ => {
            let behind = moment.ready.iter().find(|task| **task > moment.last);
            Ok(*behind.unwrap_or(&moment.ready[0]))
        }
    }
}
