//! Applies the bounds on faults to the states of the search: which choices of one state per host
//! are worlds, how many there are, and their weight.

use std::collections::HashMap;

use super::*;
use crate::frontier::FaultUse;
use crate::mapping::{DstateId, weight_of};
use crate::statistics::Statistics;
use crate::world::bounds::{HostStates, Tally, add, least, least_from};

impl Explorer<'_> {
    /// Counts and weighs all combinations of one state per host.
    pub(super) fn tally(&self, hosts: &[HostStates<'_>]) -> Tally {
        let weight = |id| self.frontier.weight(id);
        let used = |id| self.frontier.used(id);
        self.world.bounds.tally(hosts, weight, used)
    }

    /// Counts and weighs all combinations that contain a state.
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

    /// Adds the weight of worlds to a counter, and that of combinations beyond the bounds to the
    /// excluded weight.
    pub(super) fn book(&mut self, tally: &Tally, part: fn(&mut Statistics) -> &mut WeightSum) {
        part(&mut self.statistics).add_sum(&tally.within);
        self.statistics.excluded.add_sum(&tally.beyond);
    }

    /// Records the faults that have happened on the host of a state that is being executed. Removes
    /// the state and returns `false` if they exceed a bound in all of its worlds.
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

    /// Returns whether a state may be in a world within the bounds, given the faults that have
    /// happened on other hosts.
    pub(super) fn is_within(&self, id: StateId) -> bool {
        let mut used = self.frontier.used(id).iter();
        if self.world.bounds.is_empty() || used.all(|used| *used == 0) {
            return true;
        }
        let (dstates, mut known) = (self.world.table.dstates_of(id), HashMap::new());
        let mut dstates = dstates.into_iter();
        dstates.any(|dstate| self.is_within_in(id, dstate, &mut known))
    }

    /// Returns whether a state may be in a world of this dstate within the bounds. `known` caches
    /// the minimum fault counts of sets while the table does not change.
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

    /// Removes the dstates of a state in which it is the only state of its host and no world is
    /// within the bounds. Removes the state and returns `false` if none of its worlds is within the
    /// bounds.
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

    /// Removes all worlds with a state, because they exceed a bound. Returns the states that are in
    /// no world any more.
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

    /// Returns whether sender and receiver may be in one world within the bounds, by what both know
    /// of and what is in transit to the receiver.
    pub(super) fn are_within(&self, receiver: &State, sender: &State) -> bool {
        if self.world.bounds.is_empty() {
            return true;
        }
        let mut known = vec![&sender.sim().counters, &receiver.sim().counters];
        let arriving = receiver.sim().inbox.arrivals().iter();
        known.extend(arriving.map(|arrival| &*arrival.known));
        self.world.bounds.allow_together(&known)
    }

    /// Returns whether a world with one state of each list may be within the bounds.
    pub(super) fn may_be_within(&self, lists: &[Vec<StateId>]) -> bool {
        self.world.bounds.is_empty() || {
            let sums = self.least_from(lists);
            self.world.bounds.allow(&sums[0])
        }
    }

    /// Returns the minimum fault counts of states from each list on.
    pub(super) fn least_from(&self, lists: &[Vec<StateId>]) -> Vec<FaultUse> {
        let lists = lists.iter().map(|states| self.least_of(states));
        least_from(lists)
    }

    /// Returns the minimum fault counts of these states.
    pub(super) fn least_of(&self, states: &[StateId]) -> FaultUse {
        least(states.iter().map(|state| self.frontier.used(*state)))
    }
}
