//! The planned faults of a scenario, by host.

use everett_sim::{Plan, PlannedFault};

/// The faults of a run, by host; faults without a host apply to every host.
pub type HostPlans = Vec<(Option<String>, PlannedFault)>;

/// Returns the faults of one host.
pub(crate) fn plan_of(plans: &HostPlans, host: &str) -> Plan {
    let is_own = |on: &Option<String>| on.as_deref().is_none_or(|name| name == host);
    let own = plans.iter().filter(|(on, _)| is_own(on));
    Plan(own.map(|(_, fault)| fault.clone()).collect())
}
