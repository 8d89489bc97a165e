//! State mapping: which states of different hosts belong together.
//!
//! A *dstate* is a set of states with at least one state of every host. States of one host in a dstate have the same
//! communication history, so every choice of one state per host is a world. A mapping preserves this when states fork
//! and when they send. It knows nothing of the contents of states: it decides which states to copy, and gets the ids
//! of the copies. A mapping is one file with one type, and one row in [`MAPPINGS`].

mod copy_on_branch;
mod copy_on_write;
mod sets;
mod slab;
mod stored;
mod super_dstates;
mod table;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use everett_net::HostIndex;
use std::fmt;

pub use stored::StoredTable;
pub use table::{Dstate, Table};

use crate::weight::{Weight, WeightSum};

/// A state of one host. Ids are given in the order in which states are made, and not reused.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberId(pub u32);

/// A dstate. Ids are in the order in which dstates are made, and not reused.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DstateId {
    /// Creation number; also the generation of the slot.
    serial: u64,
    /// Where the table has it.
    slot: u32,
}

/// Copies a state and returns the id of the copy.
pub type Copier<'c> = &'c mut dyn FnMut(MemberId) -> MemberId;

/// How states of different hosts are kept together.
pub trait Mapping {
    /// A state has forked: `child` is new. As a rule it is in all dstates of the other one.
    fn branch(&mut self, table: &mut Table, parent: MemberId, child: MemberId, _copy: Copier<'_>) {
        table.add_like(child, parent);
        table.put_beside(child, parent);
    }

    /// A state is about to send something: it parts from the other states of its host, and is the only one in each of
    /// its dstates afterwards.
    fn part(&mut self, table: &mut Table, sender: MemberId, copy: Copier<'_>);

    /// The states of a host that receive something from a state that has parted from others. Afterwards they receive
    /// it in all of their worlds.
    fn receivers(
        &mut self,
        table: &mut Table,
        sender: MemberId,
        to: HostIndex,
        _copy: Copier<'_>,
    ) -> Vec<MemberId> {
        let dstates = table.dstates_of(sender).into_iter();
        dstates
            .flat_map(|id| table.of_host(id, to))
            .copied()
            .collect()
    }

    /// A state may be in several dstates.
    fn shares_states(&self) -> bool {
        false
    }

    /// Merges two states of a host that are the same: `other` takes the places of `one`, which is gone. `false` if a
    /// state cannot be in several dstates, or both are in one together.
    fn merge(&mut self, _table: &mut Table, _one: MemberId, _other: MemberId) -> bool {
        false
    }
}

/// A mapping and how it is made.
type Entry = (&'static str, fn() -> Box<dyn Mapping>);

/// All mappings, the default first.
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

/// The weight of all worlds that can be made of a state of each host: a world weighs as much as its states, multiplied.
pub fn weight_of<'s>(
    hosts: impl IntoIterator<Item = (HostIndex, &'s [MemberId])>,
    of_state: impl Fn(MemberId) -> Weight,
) -> WeightSum {
    let mut product = WeightSum::one();
    // Most hosts have one state, and what is multiplied by these is only shifted.
    let mut single = Weight::default();
    for (_, members) in hosts {
        if let [member] = members {
            single.halvings += of_state(*member).halvings;
            continue;
        }
        let mut sum = WeightSum::default();
        for member in members {
            sum.add(of_state(*member));
        }
        product = product.times(&sum);
    }
    let mut shift = WeightSum::default();
    shift.add(single);
    product.times(&shift)
}
