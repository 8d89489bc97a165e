//! Bounds on the number of faults in a whole world. A host knows only its causal past, so two hosts
//! that have not heard of each other may each use up a fault that is allowed only once. So each
//! state counts the faults of its own host, and a choice of one state per host is a world only if
//! the sum of the counts is within the bounds. The questions that a host is asked depend on its
//! causal past alone. So states are shared as without bounds, and no world within the bounds is
//! lost.

use everett_net::{FaultCounters, FaultIndex, Faults, HostIndex, Scope};
use smallvec::smallvec;
use std::collections::BTreeMap;

use crate::frontier::{FaultUse, StateId};
use crate::mapping::weight_of;
use crate::weight::{Weight, WeightSum};

/// A host and states of it.
pub type HostStates<'s> = (HostIndex, &'s [StateId]);

/// The bounds on faults per world: faults, and how often each may happen.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    faults: Vec<(FaultIndex, u32)>,
}

/// The count and the weights of all combinations of one state per host.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The number of combinations that are worlds.
    pub worlds: u128,
    /// The weight of the worlds.
    pub within: WeightSum,
    /// The weight of combinations that exceed a bound.
    pub beyond: WeightSum,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Tally) {
        self.worlds = self.worlds.saturating_add(other.worlds);
        self.within.add_sum(&other.within);
        self.beyond.add_sum(&other.beyond);
    }
}

/// Combinations of states of some hosts with equal fault counts: their number and weight.
#[derive(Clone, Default)]
struct Part {
    count: u128,
    weight: WeightSum,
}

/// Combinations of states by their fault counts.
type ByUse = BTreeMap<FaultUse, Part>;

impl Part {
    fn add(&mut self, count: u128, weight: &WeightSum) {
        self.count = self.count.saturating_add(count);
        self.weight.add_sum(weight);
    }
}

/// Adds fault counts to a sum.
pub fn add(sum: &mut FaultUse, more: &[u32]) {
    if sum.len() < more.len() {
        sum.resize(more.len(), 0);
    }
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

/// Returns the minimum of each fault count.
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

/// Returns the suffix sums of the minimum fault counts of hosts: how often the hosts from each one
/// on have used the faults at least; 0 after the last host.
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
    /// Creates the bounds of a world with this number of hosts.
    pub fn of(faults: &Faults, hosts: usize) -> Bounds {
        Bounds {
            faults: faults.world_bounds(hosts),
        }
    }

    /// Returns whether there are no bounds, or hosts keep them by themselves.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// Returns how often the bounded faults have happened on a host itself.
    pub fn used(&self, host: HostIndex, counters: &FaultCounters) -> FaultUse {
        let faults = self.faults.iter();
        faults
            .map(|(fault, _)| counters.used(*fault, Scope::Host, host))
            .collect()
    }

    /// Returns whether these fault counts are within the bounds.
    pub fn allow(&self, used: &[u32]) -> bool {
        let mut faults = self.faults.iter().zip(used);
        faults.all(|((_, most), used)| used <= most)
    }

    /// Returns whether a world that contains all of these causal pasts may be within the bounds.
    pub(super) fn allow_together(&self, known: &[&FaultCounters]) -> bool {
        let together = |fault| FaultCounters::used_together(fault, known.iter().copied());
        let mut faults = self.faults.iter();
        faults.all(|(fault, most)| together(*fault) <= *most)
    }

    /// Counts and weighs all combinations of one state per host.
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

    /// Combines combinations of some hosts with the states of one more. Adds the weight of those
    /// that exceed a bound to `beyond`.
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

    /// Returns whether every combination is within the bounds.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// States of each host, with their halvings and fault counts.
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

    /// Computes the tally world by world.
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
        // Five hosts that receive 20 packets each: one state without a loss, and one for each
        // packet that is lost.
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
            // Sums may end in words of zeros.
            prop_assert_eq!(counted.within.to_f64(), expected.within.to_f64());
            prop_assert_eq!(counted.beyond.to_f64(), expected.beyond.to_f64());
        }
    }
}
