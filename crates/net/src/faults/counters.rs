//! What has happened so far on a path, as a host knows it: a small value that is part of the host's state.

use super::{FaultIndex, Scope};
use crate::topology::HostIndex;

/// How often each fault could have happened and did, on each host that this one has heard of. It is what a host knows by
/// its own past and the messages that it got, so it does not depend on how worlds are shared.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct FaultCounters {
    /// By fault and host, in order.
    counts: Vec<Count>,
    /// What was decided for the whole world, in order.
    decided: Vec<(FaultIndex, bool)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Count {
    fault: FaultIndex,
    host: HostIndex,
    seen: u32,
    used: u32,
}

impl FaultCounters {
    /// How often a fault could have happened on a host.
    pub fn seen(&self, fault: FaultIndex, host: HostIndex) -> u32 {
        self.find(fault, host).map_or(0, |at| self.counts[at].seen)
    }

    /// How often a fault happened: on a host, or wherever this host has heard of.
    pub fn used(&self, fault: FaultIndex, scope: Scope, host: HostIndex) -> u32 {
        let all = self.counts.iter().filter(|count| count.fault == fault);
        let meant = all.filter(|count| scope == Scope::Path || count.host == host);
        meant.fold(0, |sum, count| sum.saturating_add(count.used))
    }

    /// How often all faults together happened.
    pub fn total_used(&self) -> u32 {
        let all = self.counts.iter();
        all.fold(0, |sum, count| sum.saturating_add(count.used))
    }

    /// Whether something happens in this world, where that is known.
    pub fn decided(&self, fault: FaultIndex) -> Option<bool> {
        let found = self.decided.binary_search_by_key(&fault, |known| known.0);
        found.ok().map(|at| self.decided[at].1)
    }

    /// Takes up how often faults happened on other hosts, those that matter everywhere.
    pub(super) fn learn(
        &mut self,
        other: &FaultCounters,
        matters_everywhere: impl Fn(FaultIndex) -> bool,
    ) {
        let used = other.counts.iter().filter(|count| count.used > 0);
        for count in used.filter(|count| matters_everywhere(count.fault)) {
            let own = self.entry(count.fault, count.host);
            own.used = own.used.max(count.used);
        }
    }

    /// Whether something happens in this world is known from its start on.
    pub fn decide(&mut self, fault: FaultIndex, answer: bool) {
        let found = self.decided.binary_search_by_key(&fault, |known| known.0);
        if let Err(at) = found {
            self.decided.insert(at, (fault, answer));
        }
    }

    pub(super) fn count_seen(&mut self, fault: FaultIndex, host: HostIndex) {
        let entry = self.entry(fault, host);
        entry.seen = entry.seen.saturating_add(1);
    }

    pub(super) fn count_used(&mut self, fault: FaultIndex, host: HostIndex) {
        let entry = self.entry(fault, host);
        entry.used = entry.used.saturating_add(1);
    }

    fn find(&self, fault: FaultIndex, host: HostIndex) -> Option<usize> {
        let key = (fault, host);
        let found = self
            .counts
            .binary_search_by_key(&key, |count| (count.fault, count.host));
        found.ok()
    }

    fn entry(&mut self, fault: FaultIndex, host: HostIndex) -> &mut Count {
        let key = (fault, host);
        let found = self
            .counts
            .binary_search_by_key(&key, |count| (count.fault, count.host));
        let at = found.unwrap_or_else(|at| {
            let fresh = Count {
                fault,
                host,
                seen: 0,
                used: 0,
            };
            self.counts.insert(at, fresh);
            at
        });
        &mut self.counts[at]
    }
}
