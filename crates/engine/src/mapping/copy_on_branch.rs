//! Copy on branch (COB): a fork of one state copies all states of its world, so a dstate is always
//! one world. It is simple, and the tests compare the other mappings with it.

use super::{Copier, Mapping, MemberId, Table};

/// The COB mapping: every dstate has one state per host.
pub struct CopyOnBranch;

impl Mapping for CopyOnBranch {
    fn branch(&mut self, table: &mut Table, parent: MemberId, child: MemberId, copy: Copier<'_>) {
        table.add_like(child, parent);
        for dstate in table.dstates_of(parent) {
            table.derive(dstate, child, |table, set| table.copy_set(set, &mut *copy));
        }
    }

    fn part(&mut self, _table: &mut Table, _sender: MemberId, _copy: Copier<'_>) {}
}
