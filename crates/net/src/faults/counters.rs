//! Fault counters: the faults that have happened so far on a path, as far as a host knows. They are
//! part of the host's state.

use serde::{Deserialize, Serialize};

use super::{FaultIndex, Scope};
use crate::topology::HostIndex;

/// How often each fault was possible and has happened, on each host in the causal past. A host
/// knows its own past and that of the messages it received, so the counters do not depend on how
/// states are shared between worlds.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct FaultCounters {
    /// The counts, sorted by fault and host.
    counts: Vec<Count>,
    /// Decisions for the whole world, sorted.
    decided: Vec<(FaultIndex, bool)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
struct Count {
    fault: FaultIndex,
    host: HostIndex,
    seen: u32,
    used: u32,
}

impl FaultCounters {
    /// Returns how often a fault was possible on a host.
    pub fn seen(&self, fault: FaultIndex, host: HostIndex) -> u32 {
        self.find(fault, host).map_or(0, |at| self.counts[at].seen)
    }

    /// Returns how often a fault has happened, on a host or on all hosts in the causal past.
    pub fn used(&self, fault: FaultIndex, scope: Scope, host: HostIndex) -> u32 {
        let all = self.counts.iter().filter(|count| count.fault == fault);
        let meant = all.filter(|count| scope != Scope::Host || count.host == host);
        meant.fold(0, |sum, count| sum.saturating_add(count.used))
    }

    /// Returns how often a fault has happened at least in a world with all of these causal pasts:
    /// on each host, the largest of the known counts.
    pub fn used_together<'c>(
        fault: FaultIndex,
        known: impl IntoIterator<Item = &'c FaultCounters>,
    ) -> u32 {
        let known = known.into_iter().flat_map(|counters| &counters.counts);
        let known = known.filter(|count| count.fault == fault && count.used > 0);
        let mut used: Vec<(HostIndex, u32)> = known.map(|count| (count.host, count.used)).collect();
        // The largest count of each host is its last one.
        used.sort_unstable();
        let by_host = used.chunk_by(|one, other| one.0 == other.0);
        let most = by_host.filter_map(|counts| counts.last());
        most.fold(0, |sum, (_, used)| sum.saturating_add(*used))
    }

    /// Returns how often all faults were possible or happened, in total: a number that grows with
    /// everything that is counted.
    pub fn total(&self) -> u64 {
        let all = self.counts.iter();
        all.map(|count| u64::from(count.seen) + u64::from(count.used))
            .sum()
    }

    /// Returns how often all faults have happened, in total.
    pub fn total_used(&self) -> u32 {
        let all = self.counts.iter();
        all.fold(0, |sum, count| sum.saturating_add(count.used))
    }

    /// Returns whether a per-world fault happens in this world, if that is decided.
    pub fn decided(&self, fault: FaultIndex) -> Option<bool> {
        let found = self.decided.binary_search_by_key(&fault, |known| known.0);
        found.ok().map(|at| self.decided[at].1)
    }

    /// Merges how often faults happened on other hosts, for faults that are not counted on each
    /// host separately.
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

    /// Records the decision whether a per-world fault happens. It is made when the world starts.
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

    /// Returns the counts of a fault on a host; creates them if necessary.
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
