//! Random scheduling: the same seed gives the same order.

use everett_vm::{Interrupt, Oracle};

use super::{Moment, Schedule};
use crate::host::split_mix;

/// Picks a runnable task at random.
pub fn pick(
    moment: &Moment<'_>,
    schedule: &mut Schedule,
    _: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    let drawn = split_mix(&mut schedule.random) as usize;
    Ok(moment.ready[drawn % moment.ready.len()])
}
