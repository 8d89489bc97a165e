//! At random: the same seed gives the same order.

use everett_vm::{Interrupt, Oracle};

use super::{Moment, Schedule};
use crate::host::split_mix;

/// Any one of those that are ready.
pub fn pick(
    moment: &Moment<'_>,
    schedule: &mut Schedule,
    _: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    let drawn = split_mix(&mut schedule.random) as usize;
    Ok(moment.ready[drawn % moment.ready.len()])
}
