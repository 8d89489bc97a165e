//! The table of states and dstates.
//!
//! A dstate links each host to a [`StateSet`]. A set lists the dstates that link to it, and a state
//! lists the sets that contain it. So the cost of a step depends on the sets and dstates that it
//! changes, not on how many there are.

mod edit;

#[cfg(test)]
mod check;

use everett_net::HostIndex;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::sets::{Activity, SetId, Sets};
use super::slab::{MemberMap, Slab};
use super::{DstateId, MemberId};

/// A dstate, or a part of one, as it was when it was requested. It shares its sets with the table
/// until they change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dstate {
    /// The set of each host, in the order of hosts.
    sets: Vec<Arc<Vec<MemberId>>>,
}

impl Dstate {
    /// Returns hosts and their states.
    pub fn hosts(&self) -> impl Iterator<Item = (HostIndex, &[MemberId])> {
        let hosts = (0..).map(HostIndex);
        hosts.zip(self.sets.iter().map(|set| set.as_slice()))
    }

    /// Returns all states, by host.
    pub fn members(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.sets.iter().flat_map(|set| set.iter().copied())
    }
}

/// The table's entry for a state.
#[derive(Clone, Debug)]
struct StateEntry {
    host: HostIndex,
    /// Whether nothing will happen to the state unless another host sends to it.
    quiescent: bool,
    /// The sets that contain the state, in order.
    sets: SmallVec<[SetId; 4]>,
}

/// The link of a dstate to its set of a host.
#[derive(Copy, Clone, Debug)]
struct Link {
    set: SetId,
    /// The position of the dstate in the set's list of dstates.
    at: u32,
}

/// The table's entry for a dstate.
#[derive(Clone, Debug)]
struct DstateEntry {
    /// The creation number, which orders dstates; slots are reused.
    serial: u64,
    /// The link of each host, in the order of hosts.
    links: Vec<Link>,
    /// The number of hosts with live states.
    live_hosts: u32,
    /// The sum of the indices of hosts with live states: if there is only one, it is that host's
    /// index.
    live_sum: u64,
}

/// Returns the id of the dstate in a slot.
fn id(slot: u32, entry: &DstateEntry) -> DstateId {
    DstateId {
        serial: entry.serial,
        slot,
    }
}

/// The table of states and dstates: which states are in which dstates.
#[derive(Clone, Debug, Default)]
pub struct Table {
    states: MemberMap<StateEntry>,
    sets: Sets,
    dstates: Slab<DstateEntry>,
    /// The creation number of the next dstate.
    next_serial: u64,
    /// The dstate that was created last.
    newest: Option<DstateId>,
    /// The number of virtual states: pairs of a dstate and a state in it.
    virtual_states: usize,
    /// Dstates that may have settled since they were last examined, with live states of at most one
    /// host. Every dstate with settled worlds is among them.
    settling: BTreeSet<DstateId>,
}

impl Table {
    /// Creates a table with one world, of one state of each host.
    pub fn new(states: impl IntoIterator<Item = (HostIndex, MemberId)>) -> Table {
        let mut table = Table::default();
        table.add_world(states);
        table
    }

    /// Adds a world of states that are in no other world.
    ///
    /// # Panics
    /// If a host has no state or several.
    pub fn add_world(&mut self, states: impl IntoIterator<Item = (HostIndex, MemberId)>) {
        let mut states: Vec<(HostIndex, MemberId)> = states.into_iter().collect();
        states.sort();
        let mut sets = Vec::with_capacity(states.len());
        for ((host, state), at) in states.into_iter().zip(0..) {
            assert_eq!(host, HostIndex(at), "a world has one state of each host");
            self.add_alone(state, host);
            sets.push(self.set_of(host, vec![state]));
        }
        self.add_dstate(sets);
    }

    /// Adds a state of a host, which is in no dstate yet.
    pub(in crate::mapping) fn add_alone(&mut self, state: MemberId, host: HostIndex) {
        let entry = StateEntry {
            host,
            quiescent: false,
            sets: SmallVec::new(),
        };
        self.states.insert(state, entry);
    }

    /// Returns whether a state is in some world.
    pub fn contains(&self, state: MemberId) -> bool {
        self.states.get(state).is_some()
    }

    /// Returns the host of a state.
    pub fn host(&self, state: MemberId) -> HostIndex {
        let entry = self.states.get(state);
        entry.map_or(HostIndex(u32::MAX), |entry| entry.host)
    }

    /// Returns the dstates that contain a state, in the order of their creation.
    pub fn dstates_of(&self, state: MemberId) -> Vec<DstateId> {
        let mut ids: Vec<DstateId> = self.slots_of(state).map(|slot| self.id(slot)).collect();
        ids.sort_unstable();
        ids
    }

    /// Returns whether `is_one` holds for some state of `host` in the dstates of `state`.
    pub fn any_beside(
        &self,
        state: MemberId,
        host: HostIndex,
        mut is_one: impl FnMut(MemberId) -> bool,
    ) -> bool {
        let mut links = self.links_beside(state, host);
        links.dedup_by_key(|(set, _)| *set);
        let mut members = links.iter().flat_map(|(set, _)| self.members_of(*set));
        members.any(|member| is_one(*member))
    }

    /// Returns all states of other hosts in the dstates of a state. A state may occur several
    /// times.
    pub fn beside(&self, state: MemberId) -> impl Iterator<Item = MemberId> + '_ {
        let own = self.host(state);
        let links = self.slots_of(state);
        let links = links.flat_map(|slot| &self.dstates[slot].links);
        let mut sets: Vec<SetId> = links.map(|link| link.set).collect();
        sets.sort_unstable();
        sets.dedup();
        let sets = sets.into_iter().map(|set| self.sets.get(set));
        let others = sets.filter(move |set| set.host != own);
        others.flat_map(|set| set.members.iter().copied())
    }

    /// Returns a dstate as it is now.
    pub fn dstate(&self, id: DstateId) -> Option<Dstate> {
        let links = self.entry(id)?.links.iter();
        let sets = links.map(|link| self.sets.get(link.set).members.clone());
        Some(Dstate {
            sets: sets.collect(),
        })
    }

    /// Returns the hosts of a dstate and their states.
    pub fn hosts(&self, id: DstateId) -> impl Iterator<Item = (HostIndex, &[MemberId])> {
        let links = self.entry(id).into_iter().flat_map(|entry| &entry.links);
        let sets = links.map(|link| self.members_of(link.set));
        (0..).map(HostIndex).zip(sets)
    }

    /// Returns all states of a dstate, by host.
    pub fn members(&self, id: DstateId) -> impl Iterator<Item = MemberId> + '_ {
        self.hosts(id).flat_map(|(_, members)| members).copied()
    }

    /// Returns the states of a host in a dstate.
    pub fn of_host(&self, id: DstateId, host: HostIndex) -> &[MemberId] {
        let link = self
            .entry(id)
            .and_then(|entry| entry.links.get(host.index()));
        link.map_or(&[], |link| self.members_of(link.set))
    }

    /// Returns all dstates, in the order of their creation.
    pub fn dstates(&self) -> Vec<DstateId> {
        let all = self.dstates.iter();
        let mut ids: Vec<DstateId> = all.map(|(slot, entry)| id(slot, entry)).collect();
        ids.sort_unstable();
        ids
    }

    /// Returns the dstate that was created last, if it still exists.
    pub fn newest(&self) -> Option<DstateId> {
        self.newest.filter(|id| self.entry(*id).is_some())
    }

    /// Returns the number of dstates.
    pub fn len(&self) -> usize {
        self.dstates.len()
    }

    /// Returns whether there is no dstate, and so no world.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of virtual states: pairs of a dstate and a state in it.
    pub fn virtual_states(&self) -> usize {
        self.virtual_states
    }

    /// Returns all states.
    pub fn states(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.states.iter().map(|(state, _)| state)
    }

    /// Sets whether a state is quiescent: nothing will happen to it unless another host sends to
    /// it.
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

    /// Returns worlds in which all states are quiescent, as a part of a dstate: of at most one
    /// host, the part may lack some states. The caller must remove the part with [`Table::finish`]
    /// before the next call. The oldest dstate comes first.
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

    /// Removes settled worlds from a dstate. Returns the states that are in no world any more.
    pub fn finish(&mut self, id: DstateId, part: &Dstate) -> Vec<MemberId> {
        let Some(entry) = self.entry(id) else {
            return Vec::new();
        };
        let smaller = entry.links.iter().zip(&part.sets).find(|(link, some)| {
            let all = &self.sets.get(link.set).members;
            !Arc::ptr_eq(all, some) && all != *some
        });
        let Some((link, states)) = smaller else {
            return self.remove_dstate(id);
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

    /// Removes all worlds of a dstate. Returns the states that are in no world any more.
    pub fn remove_dstate(&mut self, id: DstateId) -> Vec<MemberId> {
        if self.entry(id).is_none() {
            return Vec::new();
        }
        let gone = self.dissolve(id.slot);
        self.forget(&gone);
        gone
    }

    /// Removes all worlds with a state. Returns that state and those that are in no world without
    /// it.
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
