//! Sets of states of one host, shared by dstates. Dstates in which a host has the same states
//! link to the same set. So a dstate costs one link per host, and a change to a set takes
//! effect in all dstates that share it.

use everett_net::HostIndex;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::MemberId;
use super::slab::Slab;

/// The index of a set. Indices are reused, so nothing is ordered by them.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct SetId(pub u32);

/// Which states of a set are live, which means not quiescent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Activity {
    /// All states are live.
    Live,
    /// Some states are live.
    Mixed,
    /// No state is live.
    Quiescent,
}

impl Activity {
    /// Returns whether some state is live.
    pub fn is_live(self) -> bool {
        self != Activity::Quiescent
    }
}

/// A set of states of one host, and the dstates in which the host has exactly these states.
#[derive(Clone, Debug)]
pub(super) struct StateSet {
    /// The host of the states.
    pub host: HostIndex,
    /// The states, in order; shared with the copies of dstates that are handed out.
    pub members: Arc<Vec<MemberId>>,
    /// The number of live states.
    pub live: usize,
    /// The slots of the dstates that link to the set. Each dstate knows its position in this list.
    pub dstates: Vec<u32>,
    /// The digest of the states.
    digest: u64,
}

impl StateSet {
    /// Creates a set of these states, which are in order; no dstate links to it yet.
    pub fn new(host: HostIndex, members: Vec<MemberId>, live: usize) -> StateSet {
        let digest = digest_of(&members);
        StateSet {
            host,
            members: Arc::new(members),
            live,
            dstates: Vec::new(),
            digest,
        }
    }

    /// Returns which of its states are live.
    pub fn activity(&self) -> Activity {
        match self.live {
            0 => Activity::Quiescent,
            live if live == self.members.len() => Activity::Live,
            _ => Activity::Mixed,
        }
    }

    /// Removes the states `out` and adds the states `into`, both in order.
    pub fn substitute(&mut self, out: &[MemberId], into: &[MemberId]) {
        let members = Arc::make_mut(&mut self.members);
        if let [one] = out {
            if let Ok(at) = members.binary_search(one) {
                members.remove(at);
            }
        } else if !out.is_empty() {
            members.retain(|member| out.binary_search(member).is_err());
        }
        let is_in_order = members.last() < into.first();
        members.extend(into);
        if !is_in_order {
            // These are two sorted runs, which the sort detects.
            members.sort();
        }
        self.digest ^= digest_of(out) ^ digest_of(into);
    }
}

/// Returns a digest of a set: the exclusive or of a hash of each state, so that single states can
/// be added and removed.
fn digest_of(members: &[MemberId]) -> u64 {
    members.iter().fold(0, |sum, member| sum ^ mix(member.0))
}

/// Hashes an id, with the finaliser of splitmix64.
fn mix(id: u32) -> u64 {
    let mut z = (u64::from(id) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A hasher for digests, which are hashes already.
#[derive(Clone, Default)]
struct Digested(u64);

impl Hasher for Digested {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, digest: u64) {
        self.0 = digest;
    }
}

/// All sets, with an index by their states. Of sets with the same digest, the index finds at most
/// one: then less is shared, but all results are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Sets {
    sets: Slab<StateSet>,
    index: HashMap<u64, SetId, BuildHasherDefault<Digested>>,
}

impl Sets {
    /// Returns the set of these states, which are in order, if there is one.
    pub fn find(&self, members: &[MemberId]) -> Option<SetId> {
        let found = *self.index.get(&digest_of(members))?;
        (*self.get(found).members == members).then_some(found)
    }

    /// Adds a set.
    pub fn insert(&mut self, set: StateSet) -> SetId {
        let id = SetId(self.sets.insert(set));
        self.register(id);
        id
    }

    /// Removes a set.
    pub fn remove(&mut self, id: SetId) -> Option<StateSet> {
        self.unregister(id);
        self.sets.remove(id.0)
    }

    /// Returns a set.
    pub fn get(&self, id: SetId) -> &StateSet {
        &self.sets[id.0]
    }

    /// Returns a set, to change anything but its states.
    pub fn get_mut(&mut self, id: SetId) -> &mut StateSet {
        &mut self.sets[id.0]
    }

    /// Returns all sets.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (SetId, &StateSet)> {
        self.sets.iter().map(|(at, set)| (SetId(at), set))
    }

    /// Changes the states of a set. Returns the other set that now has the same states, if there is
    /// one.
    pub fn substitute(&mut self, id: SetId, out: &[MemberId], into: &[MemberId]) -> Option<SetId> {
        self.unregister(id);
        self.sets[id.0].substitute(out, into);
        self.register(id)
    }

    /// Adds a set to the index. Returns the other set that has the same states, if there is one.
    pub fn register(&mut self, id: SetId) -> Option<SetId> {
        let digest = self.get(id).digest;
        let known = *self.index.entry(digest).or_insert(id);
        let is_same = || self.get(known).members == self.get(id).members;
        (known != id && is_same()).then_some(known)
    }

    /// Removes a set from the index.
    fn unregister(&mut self, id: SetId) {
        let digest = self.get(id).digest;
        if self.index.get(&digest) == Some(&id) {
            self.index.remove(&digest);
        }
    }
}
