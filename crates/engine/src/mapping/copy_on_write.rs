//! Copy on write: states branch alone; when one sends and others of its host do not, everybody else is copied.

use super::{Copier, DstateId, Mapping, MemberId, Table};

/// Every state is in one dstate.
pub struct CopyOnWrite;

impl Mapping for CopyOnWrite {
    fn part(&mut self, table: &mut Table, sender: MemberId, copy: Copier<'_>) {
        let places: Vec<DstateId> = table.places(sender).collect();
        for place in places {
            if !table.has_rivals(sender, place) {
                continue;
            }
            let (new, others) = table.part(sender, place);
            for other in others {
                let twin = copy(other);
                table.add_like(twin, other);
                table.put(twin, new);
            }
        }
    }
}
