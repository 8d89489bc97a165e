//! Totals over all native runs of a world. Must not know how runs are made.

use everett_linux::never_injected;
use everett_native::WorldRun;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use crate::native_world::NativeWorld;

/// An operation that the kernel model refused or ignored in native runs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct NativeUnsupported {
    /// The host, in a world.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The system call.
    pub call: String,
    /// The requested operation.
    pub what: String,
}

/// Totals over runs, besides their ends.
#[derive(Default)]
pub(crate) struct Tally {
    /// Number of system calls.
    pub calls: u64,
    /// Operations that were refused or ignored.
    pub unsupported: BTreeSet<NativeUnsupported>,
    /// Limits that were reached, by the names of their options.
    pub limits_hit: BTreeSet<&'static str>,
    warnings: BTreeSet<String>,
    /// Names of faults of the scenario that occurred.
    fired: BTreeSet<String>,
    /// Failures that were injected, by host.
    failures: BTreeMap<String, BTreeSet<String>>,
    packets: u64,
    /// Whether a run reached its own end.
    has_ended: bool,
}

impl Tally {
    /// Adds a run.
    pub(crate) fn add(&mut self, seen: &WorldRun, is_program: bool) {
        for (host, run) in &seen.hosts {
            self.calls += run.calls;
            self.limits_hit.extend(&run.limits_hit);
            let refusals = run.refusals.iter();
            self.unsupported
                .extend(refusals.map(|refusal| NativeUnsupported {
                    host: (!is_program).then(|| host.clone()),
                    call: refusal.call.clone(),
                    what: refusal.what.clone(),
                }));
            let warnings = run.warnings.iter();
            self.warnings
                .extend(warnings.map(|warning| match is_program {
                    true => warning.clone(),
                    false => format!("host {host}: {warning}"),
                }));
            if !run.failures.is_empty() {
                let known = self.failures.entry(host.clone()).or_default();
                known.extend(run.failures.iter().cloned());
            }
        }
        self.limits_hit.extend(&seen.limits_hit);
        self.fired.extend(seen.fired.iter().cloned());
        self.packets += seen.packets;
        self.has_ended |= seen.is_over;
    }

    /// Returns the faults of the scenario and failures of calls that occurred in no run.
    pub(crate) fn never_fired(&self, world: &NativeWorld) -> Vec<String> {
        let faults = world.context.iter().flat_map(|around| around.faults());
        let mut never: Vec<String> = faults
            .filter(|name| !self.fired.contains(*name))
            .map(str::to_owned)
            .collect();
        let hosts = world.hosts.iter().map(|host| {
            let options = &host.config.host.options.faults;
            (options, self.failures.get(&host.name))
        });
        never.extend(never_injected(hosts));
        never
    }

    /// Returns warnings of the kernel model, and reasons why runs without findings say little.
    pub(crate) fn warnings(&self, world: &NativeWorld) -> BTreeSet<String> {
        let mut warnings = self.warnings.clone();
        warnings.extend(self.world_warning(world));
        warnings
    }

    /// Returns a warning about the world as a whole, if there is one.
    pub(crate) fn world_warning(&self, world: &NativeWorld) -> Option<String> {
        let hosts = world.hosts.len();
        let is_silent = self.packets == 0 && self.has_ended;
        (!world.is_program() && hosts > 1 && is_silent).then(|| no_packets(hosts))
    }
}

/// Returns the warning about a world whose hosts never reach each other.
pub(crate) fn no_packets(hosts: usize) -> String {
    format!(
        "no packet was sent between the {hosts} hosts: do their programs use the addresses of the scenario?"
    )
}
