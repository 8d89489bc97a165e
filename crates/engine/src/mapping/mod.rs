//! State mapping: which states of different hosts belong together.
//!
//! A *dstate* (distributed state) is a set of states with at least one state of every host. States
//! of one host in a dstate have the same communication history, so every choice of one state per
//! host is a world. A mapping preserves this when states fork and when they send. It knows nothing
//! of the contents of states: it decides which states to copy, and gets the ids of the copies. A
//! mapping is one file with one type, and one row in [`MAPPINGS`].

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

/// The id of a state of one host. Ids are in the order of creation and are not reused.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberId(pub u32);

/// The id of a dstate. Ids are in the order of creation and are not reused.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DstateId {
    /// The creation number of the dstate; also the generation of the slot.
    serial: u64,
    /// The slot of the dstate in the table.
    slot: u32,
}

/// Copies a state and returns the id of the copy.
pub type Copier<'c> = &'c mut dyn FnMut(MemberId) -> MemberId;

/// Decides which states to copy so that every dstate stays consistent when states fork and send.
pub trait Mapping {
    /// Handles a fork: `child` is new. By default it joins all dstates of its parent.
    fn branch(&mut self, table: &mut Table, parent: MemberId, child: MemberId, _copy: Copier<'_>) {
        table.add_like(child, parent);
        table.put_beside(child, parent);
    }

    /// Prepares a state to send: separates it from the other states of its host. Afterwards it is
    /// the only state of its host in each of its dstates.
    fn part(&mut self, table: &mut Table, sender: MemberId, copy: Copier<'_>);

    /// Returns the states of a host that receive a packet from a state that was prepared with
    /// [`Mapping::part`]. Afterwards, each of them receives the packet in all of its worlds.
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

    /// Returns whether a state can be in several dstates.
    fn shares_states(&self) -> bool {
        false
    }

    /// Merges two equal states of a host: `other` replaces `one` in all its dstates,
    /// and `one` is removed. Returns `false` if a state cannot be in several dstates,
    /// or if both are in the same one.
    fn merge(&mut self, _table: &mut Table, _one: MemberId, _other: MemberId) -> bool {
        false
    }
}

/// A mapping of the table.
pub struct MappingRow {
    /// The name of the mapping.
    pub name: &'static str,
    /// Whether each world has its own states. Several workers then explore no state twice.
    pub separates_worlds: bool,
    make: fn() -> Box<dyn Mapping>,
}

/// All mappings, the default first.
pub const MAPPINGS: &[MappingRow] = &[
    MappingRow {
        name: "sds",
        separates_worlds: false,
        make: || Box::new(super_dstates::SuperDstates),
    },
    MappingRow {
        name: "cow",
        separates_worlds: false,
        make: || Box::new(copy_on_write::CopyOnWrite),
    },
    MappingRow {
        name: "cob",
        separates_worlds: true,
        make: || Box::new(copy_on_branch::CopyOnBranch),
    },
];

/// Returns the mapping of this name.
pub fn mapping(name: &str) -> Result<Box<dyn Mapping>, UnknownMapping> {
    let found = MAPPINGS.iter().find(|row| row.name == name);
    found.map_or_else(
        || Err(UnknownMapping(name.to_owned())),
        |row| Ok((row.make)()),
    )
}

/// The error for an unknown mapping.
#[derive(Debug, thiserror::Error)]
pub struct UnknownMapping(String);

impl fmt::Display for UnknownMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = MAPPINGS.iter().map(|row| row.name).collect();
        write!(
            f,
            "there is no state mapping `{}`; there are {}",
            self.0,
            names.join(", ")
        )
    }
}

/// Returns the weight of all worlds that choose one of these states per host. The weight of a world
/// is the product of the weights of its states.
pub fn weight_of<'s>(
    hosts: impl IntoIterator<Item = (HostIndex, &'s [MemberId])>,
    of_state: impl Fn(MemberId) -> Weight,
) -> WeightSum {
    let mut product = WeightSum::one();
    // Most hosts have one state, and multiplying by a single weight is only a shift.
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
