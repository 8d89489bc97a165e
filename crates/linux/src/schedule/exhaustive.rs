//! All orders: whoever can run may run.

use everett_vm::{ChoiceSite, Interrupt, Oracle};

use super::{Moment, Schedule, ask};

/// Asks at every point.
pub fn pick(
    moment: &Moment<'_>,
    _: &mut Schedule,
    oracle: &mut dyn Oracle,
) -> Result<usize, Interrupt> {
    ask(moment, &ChoiceSite::Schedule, oracle)
}
