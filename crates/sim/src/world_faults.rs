//! Faults that are decided once per world, when it begins, such as partitions.

use everett_net::{FaultIndex, Faults};
use everett_vm::{ChoiceSite, Oracle};

/// Returns the question whether a fault happens in a world. Its answer is on the trace of the first
/// host.
pub fn site(faults: &Faults, fault: FaultIndex) -> ChoiceSite {
    ChoiceSite::WorldFault {
        fault: faults.get(fault).name.as_str().into(),
    }
}

/// Decides which of these faults happen in a world that follows a trace or runs natively: there,
/// the oracle never suspends.
pub fn decide_world_faults(oracle: &mut dyn Oracle, faults: &Faults) -> Vec<(FaultIndex, bool)> {
    let undecided = faults.world_faults().into_iter();
    let answers = undecided.map(|fault| {
        let picked = oracle.choose(&site(faults, fault), 2);
        (fault, picked == Ok(1))
    });
    let answers = answers.collect();
    oracle.commit();
    answers
}
