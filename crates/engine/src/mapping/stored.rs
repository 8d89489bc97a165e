//! The table of states and dstates as a checkpoint stores it: each set is written
//! once, however many dstates share it.

use everett_net::HostIndex;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};

use super::table::Table;
use super::{DstateId, MemberId};

/// The table of states and dstates, with states numbered from 0.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StoredTable {
    /// The sets, each with the states of one host in order.
    pub(super) sets: Vec<Vec<u32>>,
    /// The dstates in the order of their creation, each with the number of every host's set.
    pub(super) dstates: Vec<Vec<u32>>,
}

/// The error for a stored table that contradicts itself.
#[derive(Debug)]
pub struct Contradiction;

impl StoredTable {
    /// Rejects numbers that refer to nothing, and dstates without a set of each host.
    pub fn check(&self, states: usize, hosts: usize) -> Result<(), Contradiction> {
        let is_set = |set: &Vec<u32>| {
            let in_range = set.iter().all(|state| (*state as usize) < states);
            !set.is_empty() && in_range && set.is_sorted_by(|one, other| one < other)
        };
        let is_dstate = |dstate: &Vec<u32>| {
            let mut sets = dstate.iter();
            dstate.len() == hosts && sets.all(|set| (*set as usize) < self.sets.len())
        };
        match self.sets.iter().all(is_set) && self.dstates.iter().all(is_dstate) {
            true => Ok(()),
            false => Err(Contradiction),
        }
    }

    /// Returns the states of each host, for every dstate.
    pub fn dstates(&self) -> impl Iterator<Item = impl Iterator<Item = Vec<MemberId>> + '_> + '_ {
        let set = |at: &u32| {
            let members = self.sets.get(*at as usize).into_iter().flatten();
            members.map(|member| MemberId(*member)).collect()
        };
        self.dstates
            .iter()
            .map(move |dstate| dstate.iter().map(set))
    }

    /// Adds the stored dstates to a table, in which the states have these ids and hosts. Returns
    /// `None` if a set has states of another host, or if a state is in no set.
    pub fn add_to(&self, table: &mut Table, states: &[(MemberId, HostIndex)]) -> Option<()> {
        let mut is_used = vec![false; states.len()];
        for (id, host) in states {
            table.add_alone(*id, *host);
        }
        for dstate in &self.dstates {
            let mut sets = Vec::with_capacity(dstate.len());
            for (set, host) in dstate.iter().zip((0..).map(HostIndex)) {
                let members = self.sets.get(*set as usize)?;
                let mut ids = Vec::with_capacity(members.len());
                for member in members {
                    let (id, of) = states.get(*member as usize)?;
                    if *of != host {
                        return None;
                    }
                    is_used[*member as usize] = true;
                    ids.push(*id);
                }
                sets.push(table.set_of(host, ids));
            }
            table.add_dstate(sets);
        }
        is_used.iter().all(|used| *used).then_some(())
    }

    /// Adds the dstates of another stored table, whose states are numbered from `states` on.
    pub fn append(&mut self, other: &StoredTable, states: u32) {
        let sets = self.sets.len() as u32;
        let renumbered = |list: &Vec<u32>, by: u32| list.iter().map(|at| at + by).collect();
        let more = other.sets.iter().map(|set| renumbered(set, states));
        self.sets.extend(more.collect::<Vec<Vec<u32>>>());
        let more = other.dstates.iter().map(|dstate| renumbered(dstate, sets));
        self.dstates.extend(more.collect::<Vec<Vec<u32>>>());
    }
}

impl Table {
    /// Stores these dstates, with these numbers for their states.
    pub fn store(
        &self,
        dstates: &[DstateId],
        numbers: &BTreeMap<MemberId, MemberId>,
    ) -> StoredTable {
        let mut stored = StoredTable::default();
        let mut known: HashMap<SmallVec<[MemberId; 4]>, u32> = HashMap::new();
        for dstate in dstates {
            let mut links = Vec::new();
            for (_, members) in self.hosts(*dstate) {
                let next = stored.sets.len() as u32;
                let number = *known.entry(members.into()).or_insert(next);
                if number == next {
                    let numbers = members.iter().filter_map(|id| numbers.get(id));
                    stored.sets.push(numbers.map(|id| id.0).collect());
                }
                links.push(number);
            }
            stored.dstates.push(links);
        }
        stored
    }
}
