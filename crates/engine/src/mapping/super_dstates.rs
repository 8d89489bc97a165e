//! Super dstates: a state may be in several dstates, so that bystanders need no copy when dstates part. Only who receives
//! something in some of its worlds and not in others is copied, once.

use std::collections::BTreeSet;

use everett_net::HostIndex;

use super::{Copier, DstateId, Mapping, MemberId, Table};

/// A state is in as many dstates as it has parts in.
pub struct SuperDstates;

impl Mapping for SuperDstates {
    fn part(&mut self, table: &mut Table, sender: MemberId, _copy: Copier<'_>) {
        let places: Vec<DstateId> = table.places(sender).collect();
        for place in places {
            if table.has_rivals(sender, place) {
                let (new, others) = table.part(sender, place);
                others.into_iter().for_each(|other| table.put(other, new));
            }
        }
    }

    fn receivers(
        &mut self,
        table: &mut Table,
        sender: MemberId,
        to: HostIndex,
        copy: Copier<'_>,
    ) -> Vec<MemberId> {
        let sending: BTreeSet<DstateId> = table.places(sender).collect();
        let targets: BTreeSet<MemberId> = sending
            .iter()
            .filter_map(|place| table.dstate(*place))
            .flat_map(|found| found.of_host(to))
            .collect();
        for target in &targets {
            // Where its worlds have another state of the sender's host, it does not receive.
            let elsewhere = table
                .places(*target)
                .filter(|place| !sending.contains(place));
            let elsewhere: Vec<DstateId> = elsewhere.collect();
            if elsewhere.is_empty() {
                continue;
            }
            let twin = copy(*target);
            table.add_like(twin, *target);
            for place in elsewhere {
                table.take_out(*target, place);
                table.put(twin, place);
            }
        }
        targets.into_iter().collect()
    }

    fn unite(&mut self, table: &mut Table, one: MemberId, other: MemberId) -> bool {
        let places: Vec<DstateId> = table.places(one).collect();
        let is_apart = table.places(other).all(|place| !places.contains(&place));
        if is_apart && table.host(one) == table.host(other) {
            for place in places {
                table.take_out(one, place);
                table.put(other, place);
            }
            table.remove(one);
            return true;
        }
        false
    }
}
