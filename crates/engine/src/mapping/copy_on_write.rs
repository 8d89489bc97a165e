//! Copy on write (COW): a fork copies no other state. When a state sends a packet and other states
//! of its host do not, all states of the other hosts are copied.

use super::{Copier, Mapping, MemberId, Table};

/// The COW mapping: every state is in one dstate.
pub struct CopyOnWrite;

impl Mapping for CopyOnWrite {
    fn part(&mut self, table: &mut Table, sender: MemberId, copy: Copier<'_>) {
        table.part(sender, |table, set| table.copy_set(set, &mut *copy));
    }
}
