//! Consistency checks of the table, for tests.

use std::collections::BTreeSet;

use super::Table;

impl Table {
    /// Checks that all parts of the table are consistent with each other.
    pub(in crate::mapping) fn check(&self) {
        let mut seen = BTreeSet::new();
        for (id, set) in self.sets.iter() {
            let members = &set.members;
            assert!(!members.is_empty() && members.is_sorted() && !set.dstates.is_empty());
            assert!(
                seen.insert((**members).clone()),
                "two sets have the same states"
            );
            assert_eq!(self.sets.find(members), Some(id));
            let live = members
                .iter()
                .filter(|state| !self.states[**state].quiescent);
            assert_eq!(set.live, live.count());
            for (slot, at) in set.dstates.iter().zip(0..) {
                let link = self.dstates[*slot].links[set.host.index()];
                assert_eq!((link.set, link.at), (id, at));
            }
            for state in members.iter() {
                assert_eq!(self.states[*state].host, set.host);
                assert!(self.sets_of(*state).contains(&id));
            }
        }
        for (state, entry) in self.states.iter() {
            assert!(!entry.sets.is_empty() && entry.sets.is_sorted());
            let mut sets = entry.sets.iter();
            assert!(sets.all(|set| self.members_of(*set).contains(&state)));
        }
        for (_, entry) in self.dstates.iter() {
            let live = entry.links.iter().zip(0u64..);
            let live = live.filter(|(link, _)| self.sets.get(link.set).live > 0);
            let live: Vec<u64> = live.map(|(_, host)| host).collect();
            assert_eq!(entry.live_hosts as usize, live.len());
            assert_eq!(entry.live_sum, live.iter().sum::<u64>());
        }
    }
}
