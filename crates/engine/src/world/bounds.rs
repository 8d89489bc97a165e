//! Bounds on faults that hold for whole worlds. A host knows of its causal past only, so two hosts that have not heard
//! of each other may each take what only one of them may. Each state counts what happened on its own host; one state of
//! each host is a world if the sum of these counts is within the bounds. What hosts are asked stays a matter of their
//! causal past, so states are shared as without bounds, and no world within the bounds is lost.

use everett_net::{FaultCounters, FaultIndex, Faults, HostIndex, Scope};
use smallvec::{SmallVec, smallvec};
use std::collections::{BTreeMap, HashMap};

use super::*;
use crate::config::Statistics;
use crate::mapping::{DstateId, weight_of};
use crate::weight::Weight;

/// How often each bounded fault has happened, in the order of the bounds; what is missing is 0.
pub type FaultUse = SmallVec<[u32; 2]>;

/// States of a host.
pub type HostStates<'s> = (HostIndex, &'s [StateId]);

/// The bounds.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    faults: Vec<(FaultIndex, u32)>,
}

/// What combinations of states weigh, one state of each host.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many are worlds.
    pub worlds: u128,
    /// The weight of these.
    pub within: WeightSum,
    /// The weight of those that exceed a bound.
    pub beyond: WeightSum,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.worlds = self.worlds.saturating_add(other.worlds);
        self.within.add_sum(&other.within);
        self.beyond.add_sum(&other.beyond);
    }
}

/// Combinations of states of some hosts that use faults alike.
#[derive(Clone, Default)]
struct Part {
    count: u128,
    weight: WeightSum,
}

/// The same by what they use.
type ByUse = BTreeMap<FaultUse, Part>;

impl Part {
    fn add(&mut self, count: u128, weight: &WeightSum) {
        self.count = self.count.saturating_add(count);
        self.weight.add_sum(weight);
    }
}

/// Adds counts to others.
pub fn add(sum: &mut FaultUse, more: &[u32]) {
    if sum.len() < more.len() {
        sum.resize(more.len(), 0);
    }
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

/// The least of each count.
pub fn least<'u>(all: impl IntoIterator<Item = &'u [u32]>) -> FaultUse {
    let mut all = all.into_iter();
    let mut least: FaultUse = all.next().unwrap_or_default().into();
    for used in all {
        for (least, at) in least.iter_mut().zip(0..) {
            *least = (*least).min(used.get(at).copied().unwrap_or(0));
        }
    }
    least
}

/// What is used at least by hosts from each one on, where these are the least counts of each host; 0 behind the last.
pub fn least_from(hosts: impl DoubleEndedIterator<Item = FaultUse>) -> Vec<FaultUse> {
    let mut sums = vec![FaultUse::default()];
    for least in hosts.rev() {
        let mut sum = sums.last().cloned().unwrap_or_default();
        add(&mut sum, &least);
        sums.push(sum);
    }
    sums.reverse();
    sums
}

impl Bounds {
    /// The bounds of a world of so many hosts.
    pub fn of(faults: &Faults, hosts: usize) -> Bounds {
        Bounds {
            faults: faults.world_bounds(hosts),
        }
    }

    /// There are none, or hosts keep them by themselves.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// How often the faults have happened on a host itself.
    pub fn used(&self, host: HostIndex, counters: &FaultCounters) -> FaultUse {
        let faults = self.faults.iter();
        faults
            .map(|(fault, _)| counters.used(*fault, Scope::Host, host))
            .collect()
    }

    /// So much is within the bounds.
    pub fn allow(&self, used: &[u32]) -> bool {
        let mut faults = self.faults.iter().zip(used);
        faults.all(|((_, most), used)| used <= most)
    }

    /// A world of which all of these are true may be within the bounds.
    fn allow_together(&self, known: &[&FaultCounters]) -> bool {
        let together = |fault| FaultCounters::used_together(fault, known.iter().copied());
        let mut faults = self.faults.iter();
        faults.all(|(fault, most)| together(*fault) <= *most)
    }

    /// What all combinations of a state of each host are.
    pub fn tally<'u>(
        &self,
        hosts: &[HostStates<'_>],
        weight: impl Fn(StateId) -> Weight,
        used: impl Fn(StateId) -> &'u [u32],
    ) -> Tally {
        if self.allow_all(hosts, &used) {
            let counts = hosts.iter().map(|(_, states)| states.len() as u128);
            return Tally {
                worlds: counts.fold(1, u128::saturating_mul),
                within: weight_of(hosts.iter().copied(), weight),
                beyond: WeightSum::default(),
            };
        }
        let nothing: FaultUse = smallvec![0; self.faults.len()];
        let one = Part {
            count: 1,
            weight: WeightSum::one(),
        };
        let mut within = BTreeMap::from([(nothing, one)]);
        let mut beyond = WeightSum::default();
        for (_, states) in hosts {
            let (mut alike, mut all) = (ByUse::new(), WeightSum::default());
            for state in *states {
                let part = alike.entry(used(*state).into()).or_default();
                part.count += 1;
                part.weight.add(weight(*state));
                all.add(weight(*state));
            }
            beyond = beyond.times(&all);
            within = self.joined(&within, &alike, &mut beyond);
        }
        let mut all = Part::default();
        for part in within.values() {
            all.add(part.count, &part.weight);
        }
        Tally {
            worlds: all.count,
            within: all.weight,
            beyond,
        }
    }

    /// Combinations of some hosts with the states of one more. The weight of those that exceed a bound goes `beyond`.
    fn joined(&self, some: &ByUse, more: &ByUse, beyond: &mut WeightSum) -> ByUse {
        let mut joined = ByUse::new();
        for (used, part) in some {
            for (also, other) in more {
                let mut sum = used.clone();
                add(&mut sum, also);
                let weight = part.weight.times(&other.weight);
                if self.allow(&sum) {
                    let count = part.count.saturating_mul(other.count);
                    joined.entry(sum).or_default().add(count, &weight);
                } else {
                    beyond.add_sum(&weight);
                }
            }
        }
        joined
    }

    /// Every combination is within the bounds.
    fn allow_all<'u>(
        &self,
        hosts: &[HostStates<'_>],
        used: &impl Fn(StateId) -> &'u [u32],
    ) -> bool {
        let mut faults = self.faults.iter().zip(0..);
        faults.all(|((_, most), at)| {
            let used = |state: &StateId| used(*state).get(at).copied().unwrap_or(0);
            let of_host = |(_, states): &HostStates<'_>| states.iter().map(used).max();
            let mut sum = hosts.iter().filter_map(of_host);
            sum.try_fold(0u32, u32::checked_add)
                .is_some_and(|sum| sum <= *most)
        })
    }
}

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

    /// Notes what has happened on the host of a state that is being executed. Returns `false` if that is too much in
    /// all of its worlds: then it is gone.
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

    /// A state may be in a world within the bounds, although others may have used up what it has used.
    pub(super) fn is_within(&self, id: StateId) -> bool {
        let mut used = self.frontier.used(id).iter();
        if self.world.bounds.is_empty() || used.all(|used| *used == 0) {
            return true;
        }
        let (dstates, mut known) = (self.world.table.dstates_of(id), HashMap::new());
        let mut dstates = dstates.into_iter();
        dstates.any(|dstate| self.is_within_in(id, dstate, &mut known))
    }

    /// The same in one dstate. The least counts of its sets are `known` as long as the table does not change.
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

    /// Takes dstates out that have no other state of the host and no world within the bounds. Returns `false` if the
    /// state is in no world that is: then it is gone.
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

    /// Takes all worlds with a state out: they exceed a bound. Returns the states that are gone with that.
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

    /// Sender and receiver may be in one world within the bounds: what both know of, and what is on its way to the
    /// receiver.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// States of hosts with their halvings and what they used.
    type Given = Vec<Vec<(u32, [u32; 2])>>;

    fn bounds(most: [u32; 2]) -> Bounds {
        let faults = most.into_iter().zip(0..);
        let faults = faults.map(|(most, fault)| (FaultIndex(fault), most));
        Bounds {
            faults: faults.collect(),
        }
    }

    fn tally(bounds: &Bounds, given: &Given) -> Tally {
        let all: Vec<&(u32, [u32; 2])> = given.iter().flatten().collect();
        let mut ids = (0..).map(StateId);
        let lists = given
            .iter()
            .map(|states| ids.by_ref().take(states.len()).collect());
        let lists: Vec<Vec<StateId>> = lists.collect();
        let hosts = (0..).map(HostIndex).zip(lists.iter().map(Vec::as_slice));
        let hosts: Vec<HostStates<'_>> = hosts.collect();
        let weight = |id: StateId| Weight {
            halvings: all[id.0 as usize].0,
        };
        bounds.tally(&hosts, weight, |id| &all[id.0 as usize].1)
    }

    /// The same, world by world.
    fn one_by_one(bounds: &Bounds, given: &Given) -> Tally {
        let mut worlds = vec![(0, [0, 0])];
        for states in given {
            let longer = |(halvings, used): &(u32, [u32; 2])| {
                let (halvings, used) = (*halvings, *used);
                let with = move |(more, also): &(u32, [u32; 2])| {
                    (halvings + more, [used[0] + also[0], used[1] + also[1]])
                };
                states.iter().map(with)
            };
            worlds = worlds.iter().flat_map(longer).collect();
        }
        let mut tally = Tally::default();
        for (halvings, used) in worlds {
            match bounds.allow(&used) {
                true => {
                    tally.worlds += 1;
                    tally.within.add(Weight { halvings });
                }
                false => tally.beyond.add(Weight { halvings }),
            }
        }
        tally
    }

    #[test]
    fn packets_and_one_loss_make_one_world_more_than_packets() {
        // Five hosts that receive 20 packets each: one state without a loss, one for each packet that is lost.
        let mut host: Vec<(u32, [u32; 2])> = (1..=20).map(|packet| (packet, [1, 0])).collect();
        host.push((20, [0, 0]));
        let tally = tally(&bounds([1, 0]), &vec![host; 5]);
        assert_eq!(tally.worlds, 101);
        let mut sum = tally.within.clone();
        sum.add_sum(&tally.beyond);
        assert!(sum.is_one() && !tally.beyond.is_zero());
    }

    #[test]
    fn the_least_counts_add_up_from_the_end() {
        let hosts = [&[1u32, 2][..], &[], &[0, 3]];
        let sums = least_from(hosts.into_iter().map(FaultUse::from));
        let expected: [&[u32]; 4] = [&[1, 5], &[0, 3], &[0, 3], &[]];
        assert!(sums.iter().map(|sum| &sum[..]).eq(expected));
        assert_eq!(least([&[2u32, 1][..], &[1, 4]])[..], [1, 1]);
        assert_eq!(least([&[2u32, 1][..], &[]])[..], [0, 0]);
    }

    proptest! {
        #[test]
        fn worlds_are_counted_as_one_by_one(
            given in prop::collection::vec(prop::collection::vec((3u32..9, [0u32..3, 0u32..2]), 1..5), 1..5),
            most in [0u32..5, 0u32..3],
        ) {
            let bounds = bounds(most);
            let (counted, expected) = (tally(&bounds, &given), one_by_one(&bounds, &given));
            prop_assert_eq!(counted.worlds, expected.worlds);
            // Sums may have words of zeros at their end.
            prop_assert_eq!(counted.within.to_f64(), expected.within.to_f64());
            prop_assert_eq!(counted.beyond.to_f64(), expected.beyond.to_f64());
        }
    }
}
