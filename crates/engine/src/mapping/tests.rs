//! Property tests with random protocols: what a host does is a function of its history, so all
//! mappings must reach the same worlds.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::weight::{Weight, WeightSum};

/// What happened to a host, as digests.
type History = Vec<u64>;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Local {
    history: History,
    /// Packets in transit to the host: when they arrive and from whom, with their content.
    arriving: BTreeMap<(u32, HostIndex), u64>,
    step: u32,
    halvings: u32,
    /// Whether it does nothing until something arrives.
    waits: bool,
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn digest(seed: u64, host: HostIndex, local: &Local) -> u64 {
    let start = mix(seed ^ u64::from(host.0) << 32 ^ u64::from(local.step));
    // Packets in transit are included, so that no two states send the same: packets are distinct.
    let all = local.history.iter().chain(local.arriving.values());
    all.fold(start, |sum, one| mix(sum ^ one))
}

/// What a run does with states and worlds.
#[derive(Copy, Clone, Default)]
struct Ways {
    /// Merge states with equal history.
    merges: bool,
    /// Let hosts wait for packets.
    waits: bool,
    /// Remove worlds as soon as all of their states are quiescent.
    finishes: bool,
}

struct Run {
    ways: Ways,
    /// Worlds that were removed, and their weights.
    finished: Vec<(Vec<History>, u32)>,
    steps: u32,
    table: Table,
    states: BTreeMap<MemberId, Local>,
    copies: usize,
    next: u32,
}

/// Copies states; numbers are not reused.
fn copier<'r>(
    states: &'r mut BTreeMap<MemberId, Local>,
    copies: &'r mut usize,
    next: &'r mut u32,
) -> impl FnMut(MemberId) -> MemberId + 'r {
    move |old| {
        let new = MemberId(*next);
        *copies += 1;
        *next += 1;
        states.insert(new, states[&old].clone());
        new
    }
}

impl Run {
    /// Runs this number of steps on all hosts; at each step, a host branches, sends, or does
    /// nothing.
    fn of(name: &str, seed: u64, hosts: u32, steps: u32, ways: Ways) -> Run {
        let mut mapping = mapping(name).unwrap();
        let numbers: Vec<(HostIndex, MemberId)> =
            (0..hosts).map(|at| (HostIndex(at), MemberId(at))).collect();
        let mut run = Run {
            ways,
            finished: Vec::new(),
            steps,
            table: Table::new(numbers.iter().copied()),
            states: numbers
                .iter()
                .map(|(_, id)| (*id, Local::default()))
                .collect(),
            copies: 0,
            next: hosts,
        };
        while let Some((id, _)) = run
            .states
            .iter()
            .filter(|(_, local)| local.step < steps && !local.waits)
            .min_by_key(|(id, local)| (local.step, run.table.host(**id), **id))
        {
            let id = *id;
            run.step(&mut *mapping, id, seed, hosts);
            run.finish_settled();
        }
        run
    }

    /// Removes all worlds in which nothing will happen.
    fn finish_settled(&mut self) {
        if !self.ways.finishes {
            return;
        }
        for (id, local) in &self.states {
            let is_quiescent = local.waits || local.step >= self.steps;
            self.table.set_quiescent(*id, is_quiescent);
        }
        while let Some((id, part)) = self.table.next_settled() {
            self.finished.extend(self.worlds_of(&part));
            for gone in self.table.finish(id, &part) {
                self.states.remove(&gone);
            }
        }
    }

    fn step(&mut self, mapping: &mut dyn Mapping, id: MemberId, seed: u64, hosts: u32) {
        let host = self.table.host(id);
        let local = self.states.get_mut(&id).unwrap();
        let later = local.arriving.split_off(&(local.step, HostIndex(0)));
        let due = std::mem::replace(&mut local.arriving, later);
        local.history.extend(due.values());
        let action = digest(seed, host, local);
        let step = local.step;
        local.step += 1;
        let states = &mut self.states;
        match action % 8 {
            0 => {
                let local = states.get_mut(&id).unwrap();
                local.halvings += 1;
                let mut twin = local.clone();
                local.history.push(action ^ 1);
                twin.history.push(action ^ 2);
                let child = MemberId(self.next);
                self.next += 1;
                states.insert(child, twin);
                let mut copy = copier(states, &mut self.copies, &mut self.next);
                mapping.branch(&mut self.table, id, child, &mut copy);
            }
            1..=3 if hosts > 1 => {
                let to = HostIndex((host.0 + 1 + (action >> 8) as u32 % (hosts - 1)) % hosts);
                states.get_mut(&id).unwrap().history.push(action);
                let mut copy = copier(states, &mut self.copies, &mut self.next);
                mapping.part(&mut self.table, id, &mut copy);
                drop(copy);
                self.finish_settled();
                let states = &mut self.states;
                let mut copy = copier(states, &mut self.copies, &mut self.next);
                let targets = mapping.receivers(&mut self.table, id, to, &mut copy);
                drop(copy);
                for target in targets {
                    let local = states.get_mut(&target).unwrap();
                    // Packets have few contents, so that different states of the sender can send
                    // the same.
                    let look = if self.ways.merges { action % 4 } else { action };
                    local.arriving.insert((step + 1, host), look);
                    if std::mem::take(&mut local.waits) {
                        local.step = step + 1;
                    }
                    self.table.set_quiescent(target, false);
                    let local = local.clone();
                    let same = |(id, other): (&MemberId, &Local)| {
                        let same_host = self.table.host(*id) == self.table.host(target);
                        (*id != target && same_host && *other == local).then_some(*id)
                    };
                    if self.ways.merges
                        && let Some(other) = states.iter().find_map(same)
                        && mapping.merge(&mut self.table, target, other)
                    {
                        states.remove(&target);
                    }
                }
            }
            4 | 5 if self.ways.waits => {
                let local = states.get_mut(&id).unwrap();
                local.waits = local.arriving.is_empty();
            }
            _ => {}
        }
    }

    /// Returns what happened to each state, and what is in transit to it.
    fn locals(&self) -> Vec<(HostIndex, History, Vec<u64>)> {
        let local = |(id, local): (&MemberId, &Local)| {
            let arriving = local.arriving.values().copied().collect();
            (self.table.host(*id), local.history.clone(), arriving)
        };
        let mut all: Vec<_> = self.states.iter().map(local).collect();
        all.sort();
        all
    }

    /// Returns every world, as the histories of its hosts, and its weight.
    fn worlds_with_weights(&self) -> Vec<(Vec<History>, u32)> {
        let mut worlds = self.finished.clone();
        for id in self.table.dstates() {
            worlds.extend(self.worlds_of(&self.table.dstate(id).unwrap()));
        }
        worlds
    }

    fn worlds_of(&self, dstate: &Dstate) -> Vec<(Vec<History>, u32)> {
        let mut partial: Vec<(Vec<History>, u32)> = vec![(Vec::new(), 0)];
        for (_, members) in dstate.hosts() {
            let mut longer = Vec::new();
            for (world, halvings) in &partial {
                for member in members {
                    let local = &self.states[member];
                    let mut world = world.clone();
                    world.push(local.history.clone());
                    longer.push((world, halvings + local.halvings));
                }
            }
            partial = longer;
        }
        partial
    }

    /// Returns every world, as the histories of its hosts.
    fn worlds(&self) -> BTreeSet<Vec<History>> {
        let mut worlds = BTreeSet::new();
        for (world, _) in self.worlds_with_weights() {
            assert!(worlds.insert(world), "a world is there twice");
        }
        worlds
    }

    fn weight(&self) -> WeightSum {
        let mut sum = WeightSum::default();
        for id in self.table.dstates() {
            sum.add_sum(&weight_of(self.table.hosts(id), |id| Weight {
                halvings: self.states[&id].halvings,
            }));
        }
        sum
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn all_mappings_reach_the_same(seed: u64, hosts in 1u32..5, steps in 1u32..7) {
        let run = |name: &str| Run::of(name, seed, hosts, steps, Ways::default());
        let sds = run("sds");
        let worlds = sds.worlds();
        let distinct = |run: &Run| run.locals().into_iter().collect::<BTreeSet<_>>();
        // Under SDS, which shares most, no two states are equal, and it needs no more states than
        // the others. COB shares none.
        prop_assert_eq!(sds.locals().len(), distinct(&sds).len());
        let most = run("cob").states.len();
        for row in MAPPINGS {
            let other = run(row.name);
            prop_assert_eq!(&worlds, &other.worlds());
            prop_assert_eq!(distinct(&sds), distinct(&other));
            prop_assert!((sds.states.len()..=most).contains(&other.states.len()));
            prop_assert!(other.weight().is_one());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn states_to_which_the_same_happened_can_be_merged(seed: u64, hosts in 1u32..5, steps in 1u32..7) {
        let ways = Ways { merges: true, ..Ways::default() };
        let worlds = |run: &Run| {
            let mut all = run.worlds_with_weights();
            all.sort();
            all
        };
        let sds = Run::of("sds", seed, hosts, steps, ways);
        for row in MAPPINGS {
            let other = Run::of(row.name, seed, hosts, steps, ways);
            prop_assert_eq!(worlds(&sds), worlds(&other));
            prop_assert!(other.weight().is_one());
            prop_assert!(sds.states.len() <= other.states.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn worlds_that_are_finished_early_are_those_of_the_end(seed: u64, hosts in 1u32..5, steps in 1u32..8) {
        let sorted = |run: &Run| {
            let mut all = run.worlds_with_weights();
            all.sort();
            all
        };
        let waiting = Ways { waits: true, ..Ways::default() };
        let finishing = Ways { finishes: true, ..waiting };
        for name in MAPPINGS.iter().map(|row| row.name) {
            let late = Run::of(name, seed, hosts, steps, waiting);
            let early = Run::of(name, seed, hosts, steps, finishing);
            prop_assert_eq!(sorted(&late), sorted(&early));
            // No state is left, and none was copied for worlds that had settled.
            prop_assert!(early.table.is_empty() && early.states.is_empty());
            prop_assert!(early.copies <= late.copies);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_stored_table_comes_back(seed: u64, hosts in 1u32..5, steps in 1u32..7) {
        for name in MAPPINGS.iter().map(|row| row.name) {
            let run = Run::of(name, seed, hosts, steps, Ways::default());
            let ids: Vec<MemberId> = run.table.states().collect();
            let numbers = ids.iter().copied().zip((0..).map(MemberId));
            let numbers: BTreeMap<MemberId, MemberId> = numbers.collect();
            let stored = run.table.store(&run.table.dstates(), &numbers);
            prop_assert!(stored.check(ids.len(), hosts as usize).is_ok());
            let of = ids.iter().map(|id| (numbers[id], run.table.host(*id)));
            let of: Vec<(MemberId, HostIndex)> = of.collect();
            let mut back = Table::default();
            stored.add_to(&mut back, &of).expect("it is right");
            back.check();
            let members = |table: &Table, number: &dyn Fn(MemberId) -> MemberId| {
                let dstates = table.dstates().into_iter();
                let members = |id| table.members(id).map(number).collect::<Vec<_>>();
                dstates.map(members).collect::<Vec<_>>()
            };
            prop_assert_eq!(
                members(&back, &|id| id),
                members(&run.table, &|id| numbers[&id])
            );
            prop_assert_eq!(back.virtual_states(), run.table.virtual_states());
            // A state that is in no set, a state of another host, and a state that does not exist.
            prop_assert!(stored.check(ids.len() - 1, hosts as usize).is_err());
            let more = (MemberId(of.len() as u32), HostIndex(0));
            let more = [&of[..], &[more]].concat();
            prop_assert!(stored.add_to(&mut Table::default(), &more).is_none());
            prop_assert!(stored.check(ids.len(), hosts as usize + 1).is_err());
        }
    }
}

#[test]
fn quiescent_states_go_when_all_others_are_quiescent() {
    let host = HostIndex;
    let mut table = Table::new([(host(0), MemberId(0)), (host(1), MemberId(1))]);
    let mut sds = mapping("sds").unwrap();
    let mut copy = |_| unreachable!("nobody need be copied");
    sds.branch(&mut table, MemberId(0), MemberId(2), &mut copy);
    assert!(table.next_settled().is_none());
    table.set_quiescent(MemberId(0), true);
    // The other host may send something.
    assert!(table.next_settled().is_none());
    table.set_quiescent(MemberId(1), true);
    let (id, part) = table.next_settled().expect("one world is over");
    assert_eq!(
        part.members().collect::<Vec<_>>(),
        [MemberId(0), MemberId(1)]
    );
    assert_eq!(table.finish(id, &part), [MemberId(0)]);
    assert!(table.next_settled().is_none());
    // The rival is gone, so the sender is separated from no other state.
    sds.part(&mut table, MemberId(2), &mut copy);
    let got = sds.receivers(&mut table, MemberId(2), host(1), &mut copy);
    assert_eq!((got, table.len()), (vec![MemberId(1)], 1));
    table.set_quiescent(MemberId(2), true);
    let (id, part) = table.next_settled().expect("the other one is over");
    assert_eq!(table.finish(id, &part), [MemberId(2), MemberId(1)]);
    assert!(table.is_empty());
}

#[test]
fn what_cannot_be_is_removed_with_those_who_were_only_there() {
    let host = HostIndex;
    let numbers = [
        (host(0), MemberId(0)),
        (host(1), MemberId(1)),
        (host(2), MemberId(2)),
    ];
    let mut table = Table::new(numbers);
    let mut next = 2;
    let mut copy = |_| {
        next += 1;
        MemberId(next)
    };
    let mut sds = mapping("sds").unwrap();
    let twin = copy(MemberId(0));
    sds.branch(&mut table, MemberId(0), twin, &mut copy);
    sds.part(&mut table, MemberId(0), &mut copy);
    let got = sds.receivers(&mut table, MemberId(0), host(1), &mut copy);
    assert_eq!(got, [MemberId(1)]);
    assert_eq!(table.len(), 2);
    let gone = table.remove(MemberId(1));
    // The sender is in no other world; the third host is.
    assert_eq!(gone, [MemberId(0), MemberId(1)]);
    assert_eq!(table.len(), 1);
    assert_eq!(table.dstates_of(MemberId(2)).len(), 1);
}

#[test]
fn a_mapping_that_does_not_exist_is_an_error_that_says_which_do() {
    let error = mapping("dsd").err().unwrap().to_string();
    let names: Vec<&str> = MAPPINGS.iter().map(|row| row.name).collect();
    let names = names.join(", ");
    assert_eq!(
        error,
        format!("there is no state mapping `dsd`; there are {names}")
    );
}
