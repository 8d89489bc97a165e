//! Which states of different hosts belong together.
//!
//! A *dstate* is a set of states with at least one of every host; those of one host have the same communication history, so
//! each choice of one state a host is a world. A mapping keeps that true when states branch and when they send. It knows
//! nothing of what is in a state: it says which are to be copied, and gets the number of the copy. A mapping is one file with
//! one type, and one line in the list.

mod copy_on_branch;
mod copy_on_write;
mod super_dstates;

#[cfg(test)]
mod tests;

use everett_net::HostIndex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::weight::{Weight, WeightSum};

/// A state of one host.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberId(pub u32);

/// A set of states that belong together.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DstateId(pub u32);

/// Copies a state and says the number of the copy.
pub type Copier<'c> = &'c mut dyn FnMut(MemberId) -> MemberId;

/// How states of different hosts are kept together.
pub trait Mapping {
    /// A state has split in two: `child` is new. As a rule it is where the other one is.
    fn branched(
        &mut self,
        table: &mut Table,
        parent: MemberId,
        child: MemberId,
        _copy: Copier<'_>,
    ) {
        table.add_like(child, parent);
        for place in table.places(parent).collect::<Vec<_>>() {
            table.put(child, place);
        }
    }

    /// A state is about to send something: afterwards it is the only one of its host wherever it is.
    fn part(&mut self, table: &mut Table, sender: MemberId, copy: Copier<'_>);

    /// Those of a host who receive something from a state that has parted from others. Afterwards all of their worlds receive it,
    /// and no others.
    fn receivers(
        &mut self,
        table: &mut Table,
        sender: MemberId,
        to: HostIndex,
        _copy: Copier<'_>,
    ) -> Vec<MemberId> {
        let places = table.places(sender);
        let targets = places.filter_map(|place| table.dstate(place));
        targets.flat_map(|found| found.of_host(to)).collect()
    }

    /// The first of two states of a host is the same as the second, which takes its places. `false` if a state cannot be in
    /// several places, or they are in one together.
    fn unite(&mut self, _table: &mut Table, _one: MemberId, _other: MemberId) -> bool {
        false
    }
}

/// A mapping and how it is made.
type Entry = (&'static str, fn() -> Box<dyn Mapping>);

/// All mappings, the one that is used where nobody says otherwise first.
pub const MAPPINGS: &[Entry] = &[
    ("sds", || Box::new(super_dstates::SuperDstates)),
    ("cow", || Box::new(copy_on_write::CopyOnWrite)),
    ("cob", || Box::new(copy_on_branch::CopyOnBranch)),
];

/// The mapping of this name.
pub fn mapping(name: &str) -> Result<Box<dyn Mapping>, UnknownMapping> {
    let found = MAPPINGS.iter().find(|(known, _)| *known == name);
    found.map_or_else(
        || Err(UnknownMapping(name.to_owned())),
        |(_, make)| Ok(make()),
    )
}

/// There is no such mapping.
#[derive(Debug, thiserror::Error)]
pub struct UnknownMapping(String);

impl fmt::Display for UnknownMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = MAPPINGS.iter().map(|(name, _)| *name).collect();
        write!(
            f,
            "there is no state mapping `{}`; there are {}",
            self.0,
            names.join(", ")
        )
    }
}

/// A set of states that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dstate {
    members: BTreeMap<HostIndex, BTreeSet<MemberId>>,
}

impl Dstate {
    /// Hosts and their states.
    pub fn hosts(&self) -> impl Iterator<Item = (HostIndex, &BTreeSet<MemberId>)> {
        self.members.iter().map(|(host, members)| (*host, members))
    }

    /// States of a host.
    pub fn of_host(&self, host: HostIndex) -> impl Iterator<Item = MemberId> + '_ {
        self.members.get(&host).into_iter().flatten().copied()
    }

    /// The part of it in which a host has these states alone.
    pub fn with_only(&self, states: impl IntoIterator<Item = MemberId>, host: HostIndex) -> Dstate {
        let mut part = self.clone();
        part.members.insert(host, states.into_iter().collect());
        part
    }

    /// All states.
    pub fn members(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.members.values().flatten().copied()
    }
}

/// Which states are in which dstates.
#[derive(Clone, Debug, Default)]
pub struct Table {
    dstates: BTreeMap<DstateId, Dstate>,
    hosts: BTreeMap<MemberId, HostIndex>,
    places: BTreeMap<MemberId, BTreeSet<DstateId>>,
    next: u32,
    /// States to which nothing will happen any more, unless somebody sends them something.
    still: BTreeSet<MemberId>,
    /// How many others each host has in a dstate; hosts that have none are left out.
    live: BTreeMap<DstateId, BTreeMap<HostIndex, usize>>,
    /// Dstates in which worlds may be at their end: at most one host has states that are not still.
    settling: BTreeSet<DstateId>,
}

impl Table {
    /// One world: a state of each host.
    pub fn new(states: impl IntoIterator<Item = (HostIndex, MemberId)>) -> Table {
        let mut table = Table::default();
        table.add_world(states);
        table
    }

    /// One more world, of states that are in no other.
    pub fn add_world(&mut self, states: impl IntoIterator<Item = (HostIndex, MemberId)>) {
        let world = self.add_dstate();
        for (host, state) in states {
            self.hosts.insert(state, host);
            self.put(state, world);
        }
    }

    fn add_dstate(&mut self) -> DstateId {
        let id = DstateId(self.next);
        self.next += 1;
        self.dstates.insert(id, Dstate::default());
        id
    }

    /// A state that is of the same host as another one. It is in no dstate yet.
    fn add_like(&mut self, new: MemberId, like: MemberId) {
        let host = self.host(like);
        self.hosts.insert(new, host);
        if self.still.contains(&like) {
            self.still.insert(new);
        }
    }

    fn put(&mut self, state: MemberId, dstate: DstateId) {
        let host = self.host(state);
        if let Some(found) = self.dstates.get_mut(&dstate)
            && found.members.entry(host).or_default().insert(state)
        {
            self.places.entry(state).or_default().insert(dstate);
            let more = usize::from(!self.still.contains(&state));
            self.count_live(dstate, host, |live| live + more);
        }
    }

    fn take_out(&mut self, state: MemberId, dstate: DstateId) {
        let host = self.host(state);
        if let Some(found) = self.dstates.get_mut(&dstate)
            && let Some(members) = found.members.get_mut(&host)
            && members.remove(&state)
        {
            let fewer = usize::from(!self.still.contains(&state));
            self.count_live(dstate, host, |live| live - fewer);
        }
        if let Some(places) = self.places.get_mut(&state) {
            places.remove(&dstate);
        }
    }

    fn count_live(&mut self, dstate: DstateId, host: HostIndex, changed: impl Fn(usize) -> usize) {
        let live = self.live.entry(dstate).or_default();
        match changed(live.get(&host).copied().unwrap_or(0)) {
            0 => live.remove(&host),
            left => live.insert(host, left),
        };
        if live.len() <= 1 {
            self.settling.insert(dstate);
        }
    }

    /// Nothing will happen to a state any more unless somebody sends it something, or something will.
    pub fn set_still(&mut self, state: MemberId, is_still: bool) {
        let is_new = match is_still {
            true => self.still.insert(state),
            false => self.still.remove(&state),
        };
        if !is_new {
            return;
        }
        let host = self.host(state);
        for place in self.places(state).collect::<Vec<_>>() {
            self.count_live(place, host, |live| match is_still {
                true => live - 1,
                false => live + 1,
            });
        }
    }

    /// Worlds that are at their end because all of their states are still, as a part of a dstate: of one host it may have those
    /// alone. They are to be taken out with [`Table::finish_part`] before others are asked for.
    pub fn next_settled(&mut self) -> Option<(DstateId, Dstate)> {
        while let Some(id) = self.settling.pop_first() {
            let Some(dstate) = self.dstates.get(&id) else {
                continue;
            };
            let mut live = self.live.get(&id).into_iter().flat_map(BTreeMap::keys);
            let part = match (live.next(), live.next()) {
                (None, _) => dstate.clone(),
                (Some(host), None) => {
                    let states = dstate.of_host(*host);
                    let still = states.filter(|state| self.still.contains(state));
                    dstate.with_only(still, *host)
                }
                (Some(_), Some(_)) => continue,
            };
            if part.hosts().all(|(_, states)| !states.is_empty()) {
                return Some((id, part));
            }
        }
        None
    }

    /// Takes worlds out that have come to their end. Returns the states that are in none any more.
    pub fn finish_part(&mut self, id: DstateId, part: &Dstate) -> Vec<MemberId> {
        let whole = self.dstates.get(&id);
        let whole = whole.into_iter().flat_map(Dstate::hosts);
        let smaller = whole.zip(part.hosts()).find(|(all, some)| all != some);
        let Some((_, (_, states))) = smaller else {
            return self.finish(id);
        };
        let states: Vec<MemberId> = states.iter().copied().collect();
        for state in &states {
            self.take_out(*state, id);
        }
        let gone: Vec<MemberId> = states
            .into_iter()
            .filter(|state| self.is_nowhere(*state))
            .collect();
        self.forget(&gone);
        gone
    }

    fn is_nowhere(&self, state: MemberId) -> bool {
        self.places(state).next().is_none()
    }

    /// Whose state it is.
    pub fn host(&self, state: MemberId) -> HostIndex {
        self.hosts
            .get(&state)
            .copied()
            .unwrap_or(HostIndex(u32::MAX))
    }

    /// The dstates that a state is in.
    pub fn places(&self, state: MemberId) -> impl Iterator<Item = DstateId> + '_ {
        self.places.get(&state).into_iter().flatten().copied()
    }

    /// A dstate.
    pub fn dstate(&self, id: DstateId) -> Option<&Dstate> {
        self.dstates.get(&id)
    }

    /// All dstates.
    pub fn dstates(&self) -> impl Iterator<Item = (DstateId, &Dstate)> {
        self.dstates.iter().map(|(id, dstate)| (*id, dstate))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.dstates.len()
    }

    /// There are none: nothing is left that could be.
    pub fn is_empty(&self) -> bool {
        self.dstates.is_empty()
    }

    /// How often states are in dstates.
    pub fn virtual_states(&self) -> usize {
        self.places.values().map(BTreeSet::len).sum()
    }

    /// States.
    pub fn states(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.places.keys().copied()
    }

    /// Other states of the same host in a dstate.
    fn has_rivals(&self, state: MemberId, dstate: DstateId) -> bool {
        let host = self.host(state);
        self.dstates
            .get(&dstate)
            .is_some_and(|found| found.of_host(host).any(|other| other != state))
    }

    /// A state parts from others of its host in a dstate: it goes to a new one, and those of other hosts, which are returned,
    /// are to be there too, themselves or copies of them.
    fn part(&mut self, state: MemberId, dstate: DstateId) -> (DstateId, Vec<MemberId>) {
        let host = self.host(state);
        let members = self.dstate(dstate).into_iter().flat_map(Dstate::members);
        let others = members.filter(|one| self.host(*one) != host).collect();
        let new = self.add_dstate();
        self.take_out(state, dstate);
        self.put(state, new);
        (new, others)
    }

    /// There is no world with this state any more. Returns it and those that were in no world without it.
    pub fn remove(&mut self, state: MemberId) -> Vec<MemberId> {
        let host = self.host(state);
        let mut gone = BTreeSet::from([state]);
        for place in self.places(state).collect::<Vec<_>>() {
            self.take_out(state, place);
            let is_empty = |found: &Dstate| found.of_host(host).next().is_none();
            if self.dstates.get(&place).is_some_and(is_empty) {
                gone.extend(self.dissolve(place));
            }
        }
        self.forget(&gone);
        gone.into_iter().collect()
    }

    fn forget<'s>(&mut self, gone: impl IntoIterator<Item = &'s MemberId>) {
        for state in gone {
            self.places.remove(state);
            self.hosts.remove(state);
            self.still.remove(state);
        }
    }

    /// Takes a dstate away that has come to its end. Returns the states that are in none any more.
    fn finish(&mut self, id: DstateId) -> Vec<MemberId> {
        let gone = self.dissolve(id);
        self.forget(&gone);
        gone
    }

    fn dissolve(&mut self, id: DstateId) -> Vec<MemberId> {
        let members: Vec<MemberId> = self
            .dstates
            .get(&id)
            .map_or_else(Vec::new, |found| found.members().collect());
        for member in &members {
            self.take_out(*member, id);
        }
        self.dstates.remove(&id);
        self.live.remove(&id);
        self.settling.remove(&id);
        let is_nowhere = |state: &MemberId| self.is_nowhere(*state);
        members.into_iter().filter(is_nowhere).collect()
    }
}

/// The weight of all worlds of a dstate: a world weighs as much as its states, multiplied.
pub fn weight_of(dstate: &Dstate, of_state: impl Fn(MemberId) -> Weight) -> WeightSum {
    let mut product = WeightSum::one();
    for (_, members) in dstate.hosts() {
        let mut sum = WeightSum::default();
        for member in members {
            sum.add(of_state(*member));
        }
        product = product.times(&sum);
    }
    product
}
