//! Copy on branch: every world is its own. Simple, and what the others are held against.

use super::{Copier, DstateId, Mapping, MemberId, Table};

/// Every dstate has one state a host.
pub struct CopyOnBranch;

impl Mapping for CopyOnBranch {
    fn branched(&mut self, table: &mut Table, parent: MemberId, child: MemberId, copy: Copier<'_>) {
        table.add_like(child, parent);
        let places: Vec<DstateId> = table.places(parent).collect();
        for place in places {
            let others = table
                .dstate(place)
                .into_iter()
                .flat_map(|found| found.members());
            let others: Vec<MemberId> = others.filter(|other| *other != parent).collect();
            let new = table.add_dstate();
            table.put(child, new);
            for other in others {
                let twin = copy(other);
                table.add_like(twin, other);
                table.put(twin, new);
            }
        }
    }

    fn part(&mut self, _table: &mut Table, _sender: MemberId, _copy: Copier<'_>) {}
}
