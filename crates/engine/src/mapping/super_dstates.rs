//! Super dstates (SDS): a state may be in several dstates, so a split of a dstate does not copy
//! states that neither send nor receive. A state is copied, once, only if it receives a packet in
//! some of its worlds and not in others.

use everett_net::HostIndex;

use super::sets::SetId;
use super::{Copier, DstateId, Mapping, MemberId, Table};

/// The SDS mapping: a state is in as many dstates as it has virtual states.
pub struct SuperDstates;

/// The sets of a receiving host, each with the dstates of the sender that link to it, in order.
struct Covered {
    sets: Vec<(SetId, Vec<DstateId>)>,
}

impl Covered {
    /// Collects the sets of a host in the dstates of a sender.
    fn by(table: &Table, sender: MemberId, host: HostIndex) -> Covered {
        let links = table.links_beside(sender, host);
        let by_set = links.chunk_by(|(one, _), (other, _)| one == other);
        let sets = by_set.map(|links| (links[0].0, links.iter().map(|(_, id)| *id).collect()));
        Covered {
            sets: sets.collect(),
        }
    }

    /// Returns the dstates of the sender that link to a set.
    fn dstates(&self, set: SetId) -> &[DstateId] {
        let found = self.sets.binary_search_by_key(&set, |(known, _)| *known);
        found.map_or(&[], |at| &self.sets[at].1)
    }

    /// Returns whether all dstates that link to a set are dstates of the sender.
    fn is_whole(&self, table: &Table, set: SetId) -> bool {
        self.dstates(set).len() == table.shared_by(set)
    }

    /// Returns the states of all sets, in order.
    fn members(&self, table: &Table) -> Vec<MemberId> {
        let members = self.sets.iter().flat_map(|(set, _)| table.members_of(*set));
        let mut members: Vec<MemberId> = members.copied().collect();
        members.sort_unstable();
        members.dedup();
        members
    }
}

impl Mapping for SuperDstates {
    fn part(&mut self, table: &mut Table, sender: MemberId, _copy: Copier<'_>) {
        table.part(sender, |_, set| set);
    }

    fn receivers(
        &mut self,
        table: &mut Table,
        sender: MemberId,
        to: HostIndex,
        copy: Copier<'_>,
    ) -> Vec<MemberId> {
        let covered = Covered::by(table, sender, to);
        let targets = covered.members(table);
        // A target does not receive in dstates that have another state of the sender's host: there,
        // a copy takes its place.
        let mut elsewhere: Vec<SetId> = Vec::new();
        let mut copies: Vec<(MemberId, MemberId)> = Vec::new();
        for target in &targets {
            let sets = table.sets_of(*target).iter().copied();
            let before = elsewhere.len();
            elsewhere.extend(sets.filter(|set| !covered.is_whole(table, *set)));
            if elsewhere.len() > before {
                let twin = copy(*target);
                table.add_like(twin, *target);
                copies.push((*target, twin));
            }
        }
        elsewhere.sort_unstable();
        elsewhere.dedup();
        for set in elsewhere {
            let members = table.members_of(set).to_vec();
            let copied = |member: &MemberId| copies.binary_search_by_key(member, |(one, _)| *one);
            let found = members.iter().filter_map(|member| copied(member).ok());
            let (out, into): (Vec<_>, Vec<_>) = found.map(|at| copies[at]).unzip();
            table.substitute(set, &out, &into);
            if let [first, ..] = covered.dstates(set) {
                let receiving = table.set_of(to, members);
                debug_assert_eq!(table.of_host(*first, to), into);
                for dstate in covered.dstates(set) {
                    table.relink(*dstate, receiving);
                }
            }
        }
        targets
    }

    fn shares_states(&self) -> bool {
        true
    }

    fn merge(&mut self, table: &mut Table, one: MemberId, other: MemberId) -> bool {
        let (sets, others) = (table.sets_of(one), table.sets_of(other));
        let is_apart = sets.iter().all(|set| others.binary_search(set).is_err());
        if !is_apart || table.host(one) != table.host(other) {
            return false;
        }
        table.put_instead(other, one);
        table.remove(one);
        true
    }
}
