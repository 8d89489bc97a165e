//! Copy on write: states branch alone; when one sends and others of its host do not, everybody else is copied.

use super::{Copier, DstateId, HostNumber, Mapping, MemberId, Table};

/// Every state is in one dstate.
pub struct CopyOnWrite;

impl Mapping for CopyOnWrite {
    fn branched(
        &mut self,
        table: &mut Table,
        parent: MemberId,
        child: MemberId,
        _copy: Copier<'_>,
    ) {
        join_places(table, parent, child);
    }

    fn sent(
        &mut self,
        table: &mut Table,
        sender: MemberId,
        to: HostNumber,
        copy: Copier<'_>,
    ) -> Vec<MemberId> {
        let places: Vec<DstateId> = table.places(sender).collect();
        for place in places {
            if !table.has_rivals(sender, place) {
                continue;
            }
            let host = table.host(sender);
            let others = table
                .dstate(place)
                .into_iter()
                .flat_map(|found| found.members());
            let others: Vec<MemberId> = others.filter(|one| table.host(*one) != host).collect();
            let new = table.add_dstate();
            table.take_out(sender, place);
            table.put(sender, new);
            for other in others {
                let twin = copy(other);
                table.add_like(twin, other);
                table.put(twin, new);
            }
        }
        let places = table.places(sender);
        let targets = places.filter_map(|place| table.dstate(place));
        targets.flat_map(|found| found.of_host(to)).collect()
    }
}

/// A state that has split off another one is where that one is.
pub(super) fn join_places(table: &mut Table, parent: MemberId, child: MemberId) {
    table.add_like(child, parent);
    for place in table.places(parent).collect::<Vec<_>>() {
        table.put(child, place);
    }
}
