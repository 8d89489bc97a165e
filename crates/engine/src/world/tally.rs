//! Applies the bounds on faults to the states of the search: which choices of one state per host
//! are worlds, how many there are, and what they weigh.

use std::collections::HashMap;

use super::*;
use crate::frontier::FaultUse;
use crate::mapping::{DstateId, weight_of};
use crate::statistics::Statistics;
use crate::world::bounds::{HostStates, Tally, add, least, least_from};

impl Explorer<'_> {
    /// What all combinations of a state of each host are.
    pub(super) fn tally(&self, hosts: &[HostStates<'_>]) -> Tally {
        let weight = |id| self.frontier.weight(id);
        let used = |id| self.frontier.used(id);
        self.world.bounds.tally(hosts, weight, used)
    }

    /// The same for those with a state.
    pub(super) fn tally_with(&self, id: StateId) -> Tally {
        let mut sum = Tally::default();
        let table = &self.world.table;
        let (own, alone) = (table.host(id), [id]);
        for dstate in table.dstates_of(id) {
            let hosts = table.hosts(dstate);
            let with_it = hosts.map(|(host, states)| match host == own {
                true => (host, &alone[..]),
                false => (host, states),
            });
            let with_it: Vec<HostStates<'_>> = with_it.collect();
            sum.add(&self.tally(&with_it));
        }
        sum
    }

    /// Counts the weight of worlds as something; that of combinations which are none is excluded.
    pub(super) fn book(&mut self, tally: &Tally, part: fn(&mut Statistics) -> &mut WeightSum) {
        part(&mut self.statistics).add_sum(&tally.within);
        self.statistics.excluded.add_sum(&tally.beyond);
    }

    /// Notes what has happened on the host of a state that is being executed. Returns `false` if
    /// that is too much in all of its worlds: then it is gone.
    pub(super) fn note_used(&mut self, id: StateId, state: &State) -> bool {
        if self.world.bounds.is_empty() {
            return true;
        }
        let net = state.net();
        let used = self.world.bounds.used(net.host, &net.sim.counters);
        if used[..] == *self.frontier.used(id) {
            return true;
        }
        self.frontier.set_used(id, used);
        self.leave_beyond(id)
    }

    /// A state may be in a world within the bounds, although others
    /// may have used up what it has used.
    pub(super) fn is_within(&self, id: StateId) -> bool {
        let mut used = self.frontier.used(id).iter();
        if self.world.bounds.is_empty() || used.all(|used| *used == 0) {
            return true;
        }
        let (dstates, mut known) = (self.world.table.dstates_of(id), HashMap::new());
        let mut dstates = dstates.into_iter();
        dstates.any(|dstate| self.is_within_in(id, dstate, &mut known))
    }

    /// The same in one dstate. The least counts of its sets are `known` as
    /// long as the table does not change.
    fn is_within_in(
        &self,
        id: StateId,
        dstate: DstateId,
        known: &mut HashMap<usize, FaultUse>,
    ) -> bool {
        let table = &self.world.table;
        let own = table.host(id);
        let mut sum: FaultUse = self.frontier.used(id).into();
        for (host, states) in table.hosts(dstate) {
            if host == own {
                continue;
            }
            let place = states.as_ptr().addr();
            let of_states = || least(states.iter().map(|state| self.frontier.used(*state)));
            add(&mut sum, known.entry(place).or_insert_with(of_states));
        }
        self.world.bounds.allow(&sum)
    }

    /// Takes dstates out that have no other state of the host and no world within the bounds.
    /// Returns `false` if the state is in no world that is: then it is gone.
    pub(super) fn leave_beyond(&mut self, id: StateId) -> bool {
        if self.world.bounds.is_empty() {
            return true;
        }
        let (dstates, mut known) = (self.world.table.dstates_of(id), HashMap::new());
        let is_within = |dstate: &DstateId| self.is_within_in(id, *dstate, &mut known);
        let (within, beyond): (Vec<DstateId>, Vec<DstateId>) =
            dstates.into_iter().partition(is_within);
        if within.is_empty() {
            self.exclude_worlds_with(id);
            return false;
        }
        let host = self.world.table.host(id);
        for dstate in beyond {
            if self.world.table.of_host(dstate, host) == [id] {
                let hosts = self.world.table.hosts(dstate);
                let weight = weight_of(hosts, |id| self.frontier.weight(id));
                self.statistics.excluded.add_sum(&weight);
                let gone = self.world.table.remove_dstate(dstate);
                self.drop_states(&gone);
            }
        }
        true
    }

    /// Takes all worlds with a state out: they exceed a bound. Returns the
    /// states that are gone with that.
    pub(super) fn exclude_worlds_with(&mut self, id: StateId) -> Vec<StateId> {
        if self.world.messages.is_some() {
            let message = "it has more faults than the scenario allows in a world";
            self.warn(format!("a trace could not be followed: {message}"));
        }
        let tally = self.tally_with(id);
        self.statistics.excluded.add_sum(&tally.within);
        self.statistics.excluded.add_sum(&tally.beyond);
        self.forget(id)
    }

    /// Sender and receiver may be in one world within the bounds: what both know of, and
    /// what is on its way to the receiver.
    pub(super) fn are_within(&self, receiver: &State, sender: &State) -> bool {
        if self.world.bounds.is_empty() {
            return true;
        }
        let mut known = vec![&sender.sim().counters, &receiver.sim().counters];
        let arriving = receiver.sim().inbox.arrivals().iter();
        known.extend(arriving.map(|arrival| &*arrival.known));
        self.world.bounds.allow_together(&known)
    }

    /// A state of each list may be a world within the bounds.
    pub(super) fn may_be_within(&self, lists: &[Vec<StateId>]) -> bool {
        self.world.bounds.is_empty() || {
            let sums = self.least_from(lists);
            self.world.bounds.allow(&sums[0])
        }
    }

    /// What states of these lists use at least, from each list on.
    pub(super) fn least_from(&self, lists: &[Vec<StateId>]) -> Vec<FaultUse> {
        let lists = lists.iter().map(|states| self.least_of(states));
        least_from(lists)
    }

    /// What these states use at least.
    pub(super) fn least_of(&self, states: &[StateId]) -> FaultUse {
        least(states.iter().map(|state| self.frontier.used(*state)))
    }
}
