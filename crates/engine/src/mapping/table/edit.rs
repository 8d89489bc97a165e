//! Operations that change the table, from which the mappings are built.

use everett_net::HostIndex;
use smallvec::SmallVec;

use super::{DstateEntry, Link, StateEntry, Table, id};
use crate::mapping::sets::{Activity, SetId, StateSet};
use crate::mapping::{Copier, DstateId, MemberId};

/// Operations that the mappings use.
impl Table {
    /// Adds a state of the same host as another state; it is in no dstate yet.
    pub(in crate::mapping) fn add_like(&mut self, new: MemberId, like: MemberId) {
        if let Some(entry) = self.states.get(like) {
            let entry = StateEntry {
                sets: SmallVec::new(),
                ..*entry
            };
            self.states.insert(new, entry);
        }
    }

    /// Adds a state to all sets that contain another state of its host.
    pub(in crate::mapping) fn put_beside(&mut self, new: MemberId, like: MemberId) {
        for set in self.sets_of(like).to_vec() {
            self.substitute(set, &[], &[new]);
        }
    }

    /// Replaces a state by another state of its host, in all sets.
    pub(in crate::mapping) fn put_instead(&mut self, new: MemberId, old: MemberId) {
        for set in self.sets_of(old).to_vec() {
            self.substitute(set, &[old], &[new]);
        }
    }

    /// Returns the sets that contain a state, in order.
    pub(in crate::mapping) fn sets_of(&self, state: MemberId) -> &[SetId] {
        self.states.get(state).map_or(&[], |entry| &entry.sets)
    }

    /// Returns the states of a set, in order.
    pub(in crate::mapping) fn members_of(&self, set: SetId) -> &[MemberId] {
        &self.sets.get(set).members
    }

    /// Returns how many dstates link to a set.
    pub(in crate::mapping) fn shared_by(&self, set: SetId) -> usize {
        self.sets.get(set).dstates.len()
    }

    /// Returns the sets of a host in the dstates of a state of another host, in order, once for
    /// each dstate that links to the set.
    pub(in crate::mapping) fn links_beside(
        &self,
        state: MemberId,
        host: HostIndex,
    ) -> Vec<(SetId, DstateId)> {
        let link = |slot: u32| self.dstates[slot].links.get(host.index());
        let slots = self.slots_of(state);
        let links = slots.filter_map(|slot| Some((link(slot)?.set, self.id(slot))));
        let mut links: Vec<(SetId, DstateId)> = links.collect();
        links.sort_unstable();
        links
    }

    /// Returns the set of these states of a host, which are in order. The caller must link a new
    /// set to a dstate.
    pub(in crate::mapping) fn set_of(&mut self, host: HostIndex, members: Vec<MemberId>) -> SetId {
        if let Some(known) = self.sets.find(&members) {
            return known;
        }
        let states = members.clone();
        let live = states
            .iter()
            .filter(|state| !self.states[**state].quiescent);
        let set = StateSet::new(host, members, live.count());
        let id = self.sets.insert(set);
        for state in states {
            self.enter(state, id);
        }
        id
    }

    /// Returns a set with copies of all states of a set, in the same order.
    pub(in crate::mapping) fn copy_set(&mut self, set: SetId, copy: Copier<'_>) -> SetId {
        let originals = self.sets.get(set).members.clone();
        let mut copies = Vec::with_capacity(originals.len());
        for original in originals.iter() {
            let twin = copy(*original);
            self.add_like(twin, *original);
            copies.push(twin);
        }
        self.set_of(self.sets.get(set).host, copies)
    }

    /// Replaces the set of a host in a dstate by another set of that host.
    pub(in crate::mapping) fn relink(&mut self, id: DstateId, to: SetId) {
        let slot = id.slot;
        let host = self.sets.get(to).host;
        let old = self.dstates[slot].links[host.index()].set;
        if old == to {
            return;
        }
        let before = self.sets.get(old).activity();
        self.unlink(slot, host);
        let at = self.link(slot, to);
        self.dstates[slot].links[host.index()] = at;
        let after = self.sets.get(to).activity();
        self.change_activity(slot, host, before, after);
    }

    /// Removes the states `out` from a set and adds the states `into`, both in order, for all
    /// dstates that link to it. If another set has the same states then, the two are unified, and
    /// `set` may be gone.
    pub(in crate::mapping) fn substitute(
        &mut self,
        set: SetId,
        out: &[MemberId],
        into: &[MemberId],
    ) {
        let before = self.sets.get(set).activity();
        let same = self.sets.substitute(set, out, into);
        let live = |states: &[MemberId], table: &Table| {
            let live = states
                .iter()
                .filter(|state| !table.states[**state].quiescent);
            live.count()
        };
        let (fewer, more) = (live(out, self), live(into, self));
        let changed = self.sets.get_mut(set);
        changed.live = changed.live + more - fewer;
        self.virtual_states += into.len() * changed.dstates.len();
        self.virtual_states -= out.len() * changed.dstates.len();
        for state in out {
            self.leave(*state, set);
        }
        for state in into {
            self.enter(*state, set);
        }
        self.note_activity(set, before);
        if let Some(same) = same {
            self.unify(set, same);
        }
    }

    /// Adds a dstate that is derived from another one: the host of `alone` has only that state, and
    /// `other` maps the sets of the other hosts.
    pub(in crate::mapping) fn derive(
        &mut self,
        from: DstateId,
        alone: MemberId,
        mut other: impl FnMut(&mut Table, SetId) -> SetId,
    ) {
        let host = self.host(alone);
        let own = self.set_of(host, vec![alone]);
        let hosts = self.dstates[from.slot].links.len();
        let mut sets = Vec::with_capacity(hosts);
        for at in 0..hosts {
            let set = self.dstates[from.slot].links[at].set;
            sets.push(match at == host.index() {
                true => own,
                false => other(self, set),
            });
        }
        self.add_dstate(sets);
    }

    /// Separates a state from the other states of its host: wherever there are any, the state moves
    /// to a new dstate, for which `other` maps the sets of the other hosts.
    pub(in crate::mapping) fn part(
        &mut self,
        state: MemberId,
        mut other: impl FnMut(&mut Table, SetId) -> SetId,
    ) {
        let sets = self.sets_of(state).iter().copied();
        let sets: Vec<SetId> = sets.filter(|set| self.members_of(*set).len() > 1).collect();
        let slots = sets.iter().flat_map(|set| &self.sets.get(*set).dstates);
        let mut conflicts: Vec<DstateId> = slots.map(|slot| self.id(*slot)).collect();
        conflicts.sort_unstable();
        for dstate in conflicts {
            self.derive(dstate, state, &mut other);
        }
        for set in sets {
            self.substitute(set, &[state], &[]);
        }
    }
}

/// Internal operations, on which those of the mappings are built.
impl Table {
    /// Returns the slots of the dstates that contain a state.
    pub(super) fn slots_of(&self, state: MemberId) -> impl Iterator<Item = u32> + '_ {
        let sets = self.sets_of(state).iter();
        sets.flat_map(|set| self.sets.get(*set).dstates.iter().copied())
    }

    pub(super) fn id(&self, slot: u32) -> DstateId {
        id(slot, &self.dstates[slot])
    }

    /// Returns the entry of a dstate, unless its slot was reused.
    pub(super) fn entry(&self, id: DstateId) -> Option<&DstateEntry> {
        let entry = self.dstates.get(id.slot);
        entry.filter(|entry| entry.serial == id.serial)
    }

    /// Adds a dstate with these sets, one of each host in order.
    pub(in crate::mapping) fn add_dstate(&mut self, sets: Vec<SetId>) {
        let entry = DstateEntry {
            serial: self.next_serial,
            links: Vec::with_capacity(sets.len()),
            live_hosts: 0,
            live_sum: 0,
        };
        self.next_serial += 1;
        let slot = self.dstates.insert(entry);
        self.newest = Some(self.id(slot));
        for (set, host) in sets.into_iter().zip(0u64..) {
            let link = self.link(slot, set);
            let is_live = self.sets.get(set).live > 0;
            let entry = &mut self.dstates[slot];
            entry.links.push(link);
            if is_live {
                entry.live_hosts += 1;
                entry.live_sum += host;
            }
        }
        if self.dstates[slot].live_hosts <= 1 {
            self.settling.insert(self.id(slot));
        }
    }

    /// Adds a dstate to the list of those that link to a set. Returns the link.
    fn link(&mut self, slot: u32, set: SetId) -> Link {
        let linked = self.sets.get_mut(set);
        self.virtual_states += linked.members.len();
        let dstates = &mut linked.dstates;
        dstates.push(slot);
        Link {
            set,
            at: dstates.len() as u32 - 1,
        }
    }

    /// Removes a dstate from the list of those that link to its set of a host. Returns the states
    /// that are in no set any more.
    fn unlink(&mut self, slot: u32, host: HostIndex) -> Vec<MemberId> {
        let link = self.dstates[slot].links[host.index()];
        let unlinked = self.sets.get_mut(link.set);
        self.virtual_states -= unlinked.members.len();
        let dstates = &mut unlinked.dstates;
        dstates.swap_remove(link.at as usize);
        if let Some(moved) = dstates.get(link.at as usize) {
            self.dstates[*moved].links[host.index()].at = link.at;
        } else if dstates.is_empty() {
            return self.drop_set(link.set);
        }
        Vec::new()
    }

    /// Removes a set to which no dstate links. Returns the states that are in no set any more.
    fn drop_set(&mut self, id: SetId) -> Vec<MemberId> {
        let Some(set) = self.sets.remove(id) else {
            return Vec::new();
        };
        let mut gone = Vec::new();
        for state in set.members.iter() {
            self.leave(*state, id);
            if self.sets_of(*state).is_empty() {
                gone.push(*state);
            }
        }
        gone
    }

    /// Unifies two sets with the same states: all dstates link to one of them, and the other is
    /// removed.
    fn unify(&mut self, one: SetId, other: SetId) {
        let (from, to) = match self.shared_by(one) <= self.shared_by(other) {
            true => (one, other),
            false => (other, one),
        };
        let host = self.sets.get(from).host.index();
        let slots = std::mem::take(&mut self.sets.get_mut(from).dstates);
        self.virtual_states -= slots.len() * self.members_of(from).len();
        for slot in slots {
            let link = self.link(slot, to);
            self.dstates[slot].links[host] = link;
        }
        self.drop_set(from);
        // The index may have had the removed set.
        self.sets.register(to);
    }

    /// Adds a set to the list of those that contain a state.
    fn enter(&mut self, state: MemberId, set: SetId) {
        let sets = &mut self.states[state].sets;
        if let Err(at) = sets.binary_search(&set) {
            sets.insert(at, set);
        }
    }

    /// Removes a set from the list of those that contain a state.
    fn leave(&mut self, state: MemberId, set: SetId) {
        let sets = &mut self.states[state].sets;
        if let Ok(at) = sets.binary_search(&set) {
            sets.remove(at);
        }
    }

    /// Updates all dstates of a set whose activity may have changed.
    pub(super) fn note_activity(&mut self, set: SetId, before: Activity) {
        let changed = self.sets.get(set);
        let (after, host) = (changed.activity(), changed.host);
        if before != after {
            for at in 0..changed.dstates.len() {
                let slot = self.sets.get(set).dstates[at];
                self.change_activity(slot, host, before, after);
            }
        }
    }

    /// Updates a dstate in which the activity of a host's set has changed.
    fn change_activity(&mut self, slot: u32, host: HostIndex, before: Activity, after: Activity) {
        if before == after {
            return;
        }
        let entry = &mut self.dstates[slot];
        match (before.is_live(), after.is_live()) {
            (true, false) => {
                entry.live_hosts -= 1;
                entry.live_sum -= u64::from(host.0);
            }
            (false, true) => {
                entry.live_hosts += 1;
                entry.live_sum += u64::from(host.0);
            }
            _ => {}
        }
        // If all states of a host have become live, no world has settled.
        if entry.live_hosts <= 1 && after != Activity::Live {
            let id = id(slot, entry);
            self.settling.insert(id);
        }
    }

    /// Removes a dstate. Returns the states that are in no dstate any more, by host.
    pub(super) fn dissolve(&mut self, slot: u32) -> Vec<MemberId> {
        let mut gone = Vec::new();
        self.settling.remove(&self.id(slot));
        for host in 0..self.dstates[slot].links.len() {
            gone.extend(self.unlink(slot, HostIndex(host as u32)));
        }
        self.dstates.remove(slot);
        gone
    }

    /// Removes states that are in no dstate.
    pub(super) fn forget(&mut self, gone: &[MemberId]) {
        for state in gone {
            self.states.remove(*state);
        }
    }
}
