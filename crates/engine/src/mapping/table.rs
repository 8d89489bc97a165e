//! The table of states and dstates.
//!
//! A dstate links each host to a [`StateSet`]; a set knows the dstates that have it, and a state the sets that it is in. What
//! a step costs depends on the sets and dstates that it changes, not on how many there are.

use everett_net::HostIndex;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::sets::{Activity, SetId, Sets, StateSet};
use super::slab::{MemberMap, Slab};
use super::{Copier, DstateId, MemberId};

/// A dstate or a part of one as it was when it was asked for. It shares its sets with the table until they change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dstate {
    /// Of each host, in order.
    sets: Vec<Arc<Vec<MemberId>>>,
}

impl Dstate {
    /// Hosts and their states.
    pub fn hosts(&self) -> impl Iterator<Item = (HostIndex, &[MemberId])> {
        let hosts = (0..).map(HostIndex);
        hosts.zip(self.sets.iter().map(|set| set.as_slice()))
    }

    /// All states, by host.
    pub fn members(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.sets.iter().flat_map(|set| set.iter().copied())
    }
}

/// What the table knows of a state.
#[derive(Clone, Debug)]
struct StateEntry {
    host: HostIndex,
    /// Nothing will happen to it unless somebody sends it something.
    quiescent: bool,
    /// The sets that it is in, in order.
    sets: SmallVec<[SetId; 4]>,
}

/// The set of a host in a dstate.
#[derive(Copy, Clone, Debug)]
struct Link {
    set: SetId,
    /// The place of the dstate among those that have the set.
    at: u32,
}

/// What the table knows of a dstate.
#[derive(Clone, Debug)]
struct DstateEntry {
    /// Says the order in which dstates were made; slots are reused.
    serial: u64,
    /// By host.
    links: Vec<Link>,
    /// How many hosts have live states.
    live_hosts: u32,
    /// The sum of their indices: where there is one host with live states, it is that host.
    live_sum: u64,
}

/// Which states are in which dstates.
#[derive(Clone, Debug, Default)]
pub struct Table {
    states: MemberMap<StateEntry>,
    sets: Sets,
    dstates: Slab<DstateEntry>,
    next_serial: u64,
    /// Dstates that may have settled since they were asked for: at most one host has live states. All that have are here.
    settling: BTreeSet<DstateId>,
}

impl Table {
    /// One world: a state of each host.
    pub fn new(states: impl IntoIterator<Item = (HostIndex, MemberId)>) -> Table {
        let mut table = Table::default();
        table.add_world(states);
        table
    }

    /// Adds a world of states that are in no other.
    ///
    /// # Panics
    /// If a host has no state or several.
    pub fn add_world(&mut self, states: impl IntoIterator<Item = (HostIndex, MemberId)>) {
        let mut states: Vec<(HostIndex, MemberId)> = states.into_iter().collect();
        states.sort();
        let mut sets = Vec::with_capacity(states.len());
        for ((host, state), at) in states.into_iter().zip(0..) {
            assert_eq!(host, HostIndex(at), "a world has one state of each host");
            let entry = StateEntry {
                host,
                quiescent: false,
                sets: SmallVec::new(),
            };
            self.states.insert(state, entry);
            sets.push(self.set_of(host, vec![state]));
        }
        self.add_dstate(sets);
    }

    /// The host of a state.
    pub fn host(&self, state: MemberId) -> HostIndex {
        let entry = self.states.get(state);
        entry.map_or(HostIndex(u32::MAX), |entry| entry.host)
    }

    /// The dstates that a state is in, in the order in which they were made.
    pub fn dstates_of(&self, state: MemberId) -> Vec<DstateId> {
        let slots = self.sets_of(state).iter();
        let slots = slots.flat_map(|set| self.sets.get(*set).dstates.iter());
        let mut ids: Vec<DstateId> = slots.map(|slot| self.id(*slot)).collect();
        ids.sort_unstable();
        ids
    }

    /// Some state of a host that is in a dstate with another state is such a one.
    pub fn any_beside(
        &self,
        state: MemberId,
        host: HostIndex,
        mut is_one: impl FnMut(MemberId) -> bool,
    ) -> bool {
        let slots = self.sets_of(state).iter();
        let slots = slots.flat_map(|set| self.sets.get(*set).dstates.iter());
        let mut sets: Vec<SetId> = slots
            .map(|slot| self.dstates[*slot].links[host.index()].set)
            .collect();
        sets.sort_unstable();
        sets.dedup();
        let mut members = sets.iter().flat_map(|set| self.members_of(*set));
        members.any(|member| is_one(*member))
    }

    /// A dstate as it is now.
    pub fn dstate(&self, id: DstateId) -> Option<Dstate> {
        let links = self.entry(id)?.links.iter();
        let sets = links.map(|link| self.sets.get(link.set).members.clone());
        Some(Dstate {
            sets: sets.collect(),
        })
    }

    /// Hosts of a dstate and their states.
    pub fn hosts(&self, id: DstateId) -> impl Iterator<Item = (HostIndex, &[MemberId])> {
        let links = self.entry(id).into_iter().flat_map(|entry| &entry.links);
        let sets = links.map(|link| self.members_of(link.set));
        (0..).map(HostIndex).zip(sets)
    }

    /// All states of a dstate, by host.
    pub fn members(&self, id: DstateId) -> impl Iterator<Item = MemberId> + '_ {
        self.hosts(id).flat_map(|(_, members)| members).copied()
    }

    /// The states of a host in a dstate.
    pub fn of_host(&self, id: DstateId, host: HostIndex) -> &[MemberId] {
        let link = self
            .entry(id)
            .and_then(|entry| entry.links.get(host.index()));
        link.map_or(&[], |link| self.members_of(link.set))
    }

    /// All dstates, in the order in which they were made.
    pub fn dstates(&self) -> Vec<DstateId> {
        let all = self.dstates.iter();
        let mut ids: Vec<DstateId> = all.map(|(slot, entry)| id(slot, entry)).collect();
        ids.sort_unstable();
        ids
    }

    /// The number of dstates.
    pub fn len(&self) -> usize {
        self.dstates.len()
    }

    /// There is no dstate, and so no world.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of virtual states: pairs of a dstate and a state in it.
    pub fn virtual_states(&self) -> usize {
        let sets = self.sets.iter();
        sets.map(|(_, set)| set.members.len() * set.dstates.len())
            .sum()
    }

    /// All states.
    pub fn states(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.states.iter().map(|(state, _)| state)
    }

    /// Says whether a state is quiescent: nothing will happen to it unless somebody sends it something.
    pub fn set_quiescent(&mut self, state: MemberId, quiescent: bool) {
        let Some(entry) = self.states.get_mut(state) else {
            return;
        };
        if entry.quiescent == quiescent {
            return;
        }
        entry.quiescent = quiescent;
        for at in 0..entry.sets.len() {
            let id = self.states[state].sets[at];
            let set = self.sets.get_mut(id);
            let before = set.activity();
            match quiescent {
                true => set.live -= 1,
                false => set.live += 1,
            }
            self.note_activity(id, before);
        }
    }

    /// Worlds in which all states are quiescent, as a part of a dstate: of one host it may have some states only. They are to
    /// be taken out with [`Table::finish`] before the next ones are asked for. The oldest dstate comes first.
    pub fn next_settled(&mut self) -> Option<(DstateId, Dstate)> {
        while let Some(id) = self.settling.pop_first() {
            let Some(entry) = self.entry(id).filter(|entry| entry.live_hosts <= 1) else {
                continue;
            };
            let live = (entry.live_hosts == 1).then_some(entry.live_sum as usize);
            let Some(at) = live else {
                return Some((id, self.dstate(id)?));
            };
            let set = self.sets.get(entry.links[at].set);
            if set.activity() == Activity::Live {
                continue;
            }
            let members = set.members.iter().copied();
            let quiescent = members.filter(|state| self.states[*state].quiescent);
            let quiescent = Arc::new(quiescent.collect());
            let mut part = self.dstate(id)?;
            part.sets[at] = quiescent;
            return Some((id, part));
        }
        None
    }

    /// Takes worlds out of a dstate that have settled. Returns the states that are in no world any more.
    pub fn finish(&mut self, id: DstateId, part: &Dstate) -> Vec<MemberId> {
        let Some(entry) = self.entry(id) else {
            return Vec::new();
        };
        let smaller = entry.links.iter().zip(&part.sets).find(|(link, some)| {
            let all = &self.sets.get(link.set).members;
            !Arc::ptr_eq(all, some) && all != *some
        });
        let Some((link, states)) = smaller else {
            let gone = self.dissolve(id.slot);
            self.forget(&gone);
            return gone;
        };
        let (set, host) = (link.set, self.sets.get(link.set).host);
        if let [_] = self.sets.get(set).dstates[..] {
            self.substitute(set, states, &[]);
        } else {
            let left = self.members_of(set).iter().copied();
            let left = left.filter(|state| states.binary_search(state).is_err());
            let left = left.collect();
            let left = self.set_of(host, left);
            self.relink(id, left);
        }
        let gone = states.iter().copied();
        let gone: Vec<MemberId> = gone
            .filter(|state| self.sets_of(*state).is_empty())
            .collect();
        self.forget(&gone);
        gone
    }

    /// Takes all worlds with a state out. Returns it and those that are in no world without it.
    pub fn remove(&mut self, state: MemberId) -> Vec<MemberId> {
        let mut gone = vec![state];
        for set in self.sets_of(state).to_vec() {
            match self.members_of(set) {
                [_] => {
                    for slot in self.sets.get(set).dstates.clone() {
                        gone.extend(self.dissolve(slot));
                    }
                }
                _ => self.substitute(set, &[state], &[]),
            }
        }
        gone.sort_unstable();
        gone.dedup();
        self.forget(&gone);
        gone
    }
}

/// What mappings are made of.
impl Table {
    /// Adds a state of the same host as another one. It is in no dstate yet.
    pub(super) fn add_like(&mut self, new: MemberId, like: MemberId) {
        if let Some(entry) = self.states.get(like) {
            let entry = StateEntry {
                sets: SmallVec::new(),
                ..*entry
            };
            self.states.insert(new, entry);
        }
    }

    /// Puts a state where another one of its host is.
    pub(super) fn put_beside(&mut self, new: MemberId, like: MemberId) {
        for set in self.sets_of(like).to_vec() {
            self.substitute(set, &[], &[new]);
        }
    }

    /// A state takes the places of another one of its host.
    pub(super) fn put_instead(&mut self, new: MemberId, old: MemberId) {
        for set in self.sets_of(old).to_vec() {
            self.substitute(set, &[old], &[new]);
        }
    }

    /// The sets that a state is in, in order.
    pub(super) fn sets_of(&self, state: MemberId) -> &[SetId] {
        self.states.get(state).map_or(&[], |entry| &entry.sets)
    }

    /// The states of a set, in order.
    pub(super) fn members_of(&self, set: SetId) -> &[MemberId] {
        &self.sets.get(set).members
    }

    /// How many dstates have a set.
    pub(super) fn shared_by(&self, set: SetId) -> usize {
        self.sets.get(set).dstates.len()
    }

    /// The sets of a host in the dstates of a state of another one, in order, each as often as a dstate has it.
    pub(super) fn links_beside(&self, state: MemberId, host: HostIndex) -> Vec<(SetId, DstateId)> {
        let slots = self.sets_of(state).iter();
        let slots = slots.flat_map(|set| self.sets.get(*set).dstates.iter());
        let link = |slot: &u32| self.dstates[*slot].links.get(host.index());
        let links = slots.filter_map(|slot| Some((link(slot)?.set, self.id(*slot))));
        let mut links: Vec<(SetId, DstateId)> = links.collect();
        links.sort_unstable();
        links
    }

    /// The set of these states of a host, which are in order. A new one is to be linked to a dstate.
    pub(super) fn set_of(&mut self, host: HostIndex, members: Vec<MemberId>) -> SetId {
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

    /// A set of copies of the states of a set, in the same order.
    pub(super) fn copy_set(&mut self, set: SetId, copy: Copier<'_>) -> SetId {
        let originals = self.sets.get(set).members.clone();
        let mut copies = Vec::with_capacity(originals.len());
        for original in originals.iter() {
            let twin = copy(*original);
            self.add_like(twin, *original);
            copies.push(twin);
        }
        self.set_of(self.sets.get(set).host, copies)
    }

    /// Another set takes the place of that of its host in a dstate.
    pub(super) fn relink(&mut self, id: DstateId, to: SetId) {
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

    /// Takes states out of a set and puts others in, both in order, for all dstates that have it. The set may be another one
    /// afterwards.
    pub(super) fn substitute(&mut self, set: SetId, out: &[MemberId], into: &[MemberId]) {
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

    /// Adds a dstate that is like another one, but that a host has a state alone. The sets of other hosts are those that
    /// `other` makes of them.
    pub(super) fn derive(
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

    /// A state parts from others of its host: wherever there are any it goes to a new dstate, which has the sets of other
    /// hosts that `other` makes of them.
    pub(super) fn part(
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

fn id(slot: u32, entry: &DstateEntry) -> DstateId {
    DstateId {
        serial: entry.serial,
        slot,
    }
}

impl Table {
    fn id(&self, slot: u32) -> DstateId {
        id(slot, &self.dstates[slot])
    }

    fn entry(&self, id: DstateId) -> Option<&DstateEntry> {
        let entry = self.dstates.get(id.slot);
        entry.filter(|entry| entry.serial == id.serial)
    }

    fn add_dstate(&mut self, sets: Vec<SetId>) {
        let entry = DstateEntry {
            serial: self.next_serial,
            links: Vec::with_capacity(sets.len()),
            live_hosts: 0,
            live_sum: 0,
        };
        self.next_serial += 1;
        let slot = self.dstates.insert(entry);
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

    /// A dstate has a set now.
    fn link(&mut self, slot: u32, set: SetId) -> Link {
        let dstates = &mut self.sets.get_mut(set).dstates;
        dstates.push(slot);
        Link {
            set,
            at: dstates.len() as u32 - 1,
        }
    }

    /// A dstate does not have its set of a host any more. Returns the states that are in no set any more.
    fn unlink(&mut self, slot: u32, host: HostIndex) -> Vec<MemberId> {
        let link = self.dstates[slot].links[host.index()];
        let dstates = &mut self.sets.get_mut(link.set).dstates;
        dstates.swap_remove(link.at as usize);
        if let Some(moved) = dstates.get(link.at as usize) {
            self.dstates[*moved].links[host.index()].at = link.at;
        } else if dstates.is_empty() {
            return self.drop_set(link.set);
        }
        Vec::new()
    }

    /// Removes a set that no dstate has. Returns the states that are in no set any more.
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

    /// Of two sets with the same states one is enough.
    fn unify(&mut self, one: SetId, other: SetId) {
        let (from, to) = match self.shared_by(one) <= self.shared_by(other) {
            true => (one, other),
            false => (other, one),
        };
        let host = self.sets.get(from).host.index();
        for slot in std::mem::take(&mut self.sets.get_mut(from).dstates) {
            let link = self.link(slot, to);
            self.dstates[slot].links[host] = link;
        }
        self.drop_set(from);
        // The other one may be the one that was found so far.
        self.sets.register(to);
    }

    /// A state is in a set.
    fn enter(&mut self, state: MemberId, set: SetId) {
        let sets = &mut self.states[state].sets;
        if let Err(at) = sets.binary_search(&set) {
            sets.insert(at, set);
        }
    }

    /// A state is not in a set any more.
    fn leave(&mut self, state: MemberId, set: SetId) {
        let sets = &mut self.states[state].sets;
        if let Ok(at) = sets.binary_search(&set) {
            sets.remove(at);
        }
    }

    /// Which states of a set are live may have changed.
    fn note_activity(&mut self, set: SetId, before: Activity) {
        let changed = self.sets.get(set);
        let (after, host) = (changed.activity(), changed.host);
        if before != after {
            for at in 0..changed.dstates.len() {
                let slot = self.sets.get(set).dstates[at];
                self.change_activity(slot, host, before, after);
            }
        }
    }

    /// Which states of a host are live in a dstate has changed.
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
        // Where all states of a host have become live, no world has settled.
        if entry.live_hosts <= 1 && after != Activity::Live {
            let id = id(slot, entry);
            self.settling.insert(id);
        }
    }

    /// Takes a dstate away. Returns the states that are in none any more, by host.
    fn dissolve(&mut self, slot: u32) -> Vec<MemberId> {
        let mut gone = Vec::new();
        self.settling.remove(&self.id(slot));
        for host in 0..self.dstates[slot].links.len() {
            gone.extend(self.unlink(slot, HostIndex(host as u32)));
        }
        self.dstates.remove(slot);
        gone
    }

    fn forget(&mut self, gone: &[MemberId]) {
        for state in gone {
            self.states.remove(*state);
        }
    }
}

#[cfg(test)]
impl Table {
    /// Holds all parts of the table against each other.
    pub(super) fn check(&self) {
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
