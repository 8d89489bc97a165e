//! Copy on write: states branch alone; when one sends and others of its host do not, everybody else is copied.

use everett_net::HostIndex;

use super::{Copier, DstateId, Mapping, MemberId, Table};

/// Every state is in one dstate.
pub struct CopyOnWrite;

impl Mapping for CopyOnWrite {
    fn sent(
        &mut self,
        table: &mut Table,
        sender: MemberId,
        to: HostIndex,
        copy: Copier<'_>,
    ) -> Vec<MemberId> {
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
        let places = table.places(sender);
        let targets = places.filter_map(|place| table.dstate(place));
        targets.flat_map(|found| found.of_host(to)).collect()
    }
}
