//! Copy on branch: every world is its own. Simple, and what the others are held against.

use everett_net::HostIndex;

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

    fn sent(
        &mut self,
        table: &mut Table,
        sender: MemberId,
        to: HostIndex,
        _copy: Copier<'_>,
    ) -> Vec<MemberId> {
        let places = table.places(sender);
        let targets = places.filter_map(|place| table.dstate(place)?.of_host(to).next());
        targets.collect()
    }
}
