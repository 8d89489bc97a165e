//! Reference implementation of the table and of the three mappings, for tests: B-trees of B-trees
//! that are searched in full. Tests run it beside the real implementation and compare the results.

use everett_net::HostIndex;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

use super::{MemberId, Table, mapping};

/// The states of a dstate, by host.
type Members = BTreeMap<HostIndex, BTreeSet<MemberId>>;

/// A table without redundant data.
#[derive(Default)]
struct Model {
    dstates: BTreeMap<u32, Members>,
    hosts: BTreeMap<MemberId, HostIndex>,
    quiescent: BTreeSet<MemberId>,
    next: u32,
}

impl Model {
    fn dstates_of(&self, state: MemberId) -> Vec<u32> {
        let all = self.dstates.iter();
        let with_it = all.filter(|(_, members)| members[&self.hosts[&state]].contains(&state));
        with_it.map(|(id, _)| *id).collect()
    }

    fn add_dstate(&mut self, members: Members) {
        self.dstates.insert(self.next, members);
        self.next += 1;
    }

    fn add_like(&mut self, new: MemberId, like: MemberId) {
        self.hosts.insert(new, self.hosts[&like]);
        if self.quiescent.contains(&like) {
            self.quiescent.insert(new);
        }
    }

    fn of_host(&mut self, id: u32, host: HostIndex) -> &mut BTreeSet<MemberId> {
        let dstate = self.dstates.get_mut(&id).unwrap();
        dstate.get_mut(&host).unwrap()
    }

    /// Adds a dstate in which `alone` is the only state of its host; other hosts keep their states,
    /// or get copies of them.
    fn derive(&mut self, from: u32, alone: MemberId, copier: Option<&mut Copies>) {
        let mut members = self.dstates[&from].clone();
        let own = self.hosts[&alone];
        members.insert(own, BTreeSet::from([alone]));
        if let Some(copier) = copier {
            for (_, states) in members.iter_mut().filter(|(host, _)| **host != own) {
                let copy = |state: &MemberId| {
                    let twin = copier.copy(*state);
                    self.add_like(twin, *state);
                    twin
                };
                *states = states.iter().map(copy).collect();
            }
        }
        self.add_dstate(members);
    }

    fn branch(&mut self, name: &str, parent: MemberId, child: MemberId, copies: &mut Copies) {
        let host = self.hosts[&parent];
        self.add_like(child, parent);
        for id in self.dstates_of(parent) {
            match name {
                "cob" => self.derive(id, child, Some(copies)),
                _ => {
                    self.of_host(id, host).insert(child);
                }
            }
        }
    }

    fn part(&mut self, name: &str, sender: MemberId, copies: &mut Copies) {
        let host = self.hosts[&sender];
        for id in self.dstates_of(sender) {
            if self.of_host(id, host).len() > 1 {
                self.derive(id, sender, (name == "cow").then_some(&mut *copies));
                self.of_host(id, host).remove(&sender);
            }
        }
    }

    fn receivers(
        &mut self,
        name: &str,
        sender: MemberId,
        to: HostIndex,
        copies: &mut Copies,
    ) -> Vec<MemberId> {
        let sending = self.dstates_of(sender);
        let targets = sending.iter().flat_map(|id| &self.dstates[id][&to]);
        let targets: BTreeSet<MemberId> = targets.copied().collect();
        for target in targets.iter().filter(|_| name == "sds") {
            let mut elsewhere = self.dstates_of(*target);
            elsewhere.retain(|id| !sending.contains(id));
            if elsewhere.is_empty() {
                continue;
            }
            let twin = copies.copy(*target);
            self.add_like(twin, *target);
            for id in elsewhere {
                self.of_host(id, to).remove(target);
                self.of_host(id, to).insert(twin);
            }
        }
        targets.into_iter().collect()
    }

    fn merge(&mut self, name: &str, one: MemberId, other: MemberId) -> bool {
        let (own, others) = (self.dstates_of(one), self.dstates_of(other));
        let host = self.hosts[&one];
        let is_apart = own.iter().all(|id| !others.contains(id));
        if name != "sds" || !is_apart || host != self.hosts[&other] {
            return false;
        }
        for id in own {
            self.of_host(id, host).remove(&one);
            self.of_host(id, host).insert(other);
        }
        self.forget();
        true
    }

    /// Removes states that are in no dstate, and returns them.
    fn forget(&mut self) -> Vec<MemberId> {
        let all: Vec<MemberId> = self.hosts.keys().copied().collect();
        let gone = all
            .into_iter()
            .filter(|state| self.dstates_of(*state).is_empty());
        let gone: Vec<MemberId> = gone.collect();
        for state in &gone {
            self.hosts.remove(state);
            self.quiescent.remove(state);
        }
        gone
    }

    fn remove(&mut self, state: MemberId) -> Vec<MemberId> {
        let host = self.hosts[&state];
        for id in self.dstates_of(state) {
            self.of_host(id, host).remove(&state);
            if self.of_host(id, host).is_empty() {
                self.dstates.remove(&id);
            }
        }
        self.forget()
    }

    /// Removes the first settled worlds. Returns them and the removed states, in order.
    fn finish_next(&mut self) -> Option<(Members, Vec<MemberId>)> {
        for (id, members) in &self.dstates {
            let is_live = |state: &&MemberId| !self.quiescent.contains(*state);
            let live = members
                .iter()
                .filter(|(_, states)| states.iter().any(|one| is_live(&one)));
            let live: Vec<HostIndex> = live.map(|(host, _)| *host).collect();
            let mut part = members.clone();
            if let [host] = live[..] {
                part.insert(host, &members[&host] & &self.quiescent);
            }
            if live.len() > 1 || part.values().any(BTreeSet::is_empty) {
                continue;
            }
            let id = *id;
            match live[..] {
                [host] => {
                    let left = self.of_host(id, host);
                    *left = &*left - &part[&host];
                }
                _ => {
                    self.dstates.remove(&id);
                }
            }
            return Some((part, self.forget()));
        }
        None
    }
}

/// A copier of states that records which states it copied, and numbers the copies.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Copies {
    next: u32,
    originals: Vec<MemberId>,
}

impl Copies {
    fn copy(&mut self, state: MemberId) -> MemberId {
        self.originals.push(state);
        self.next += 1;
        MemberId(self.next - 1)
    }
}

/// The next operation. Numbers pick among the existing states and hosts.
#[derive(Copy, Clone, Debug)]
enum Operation {
    Branch(usize),
    Part(usize),
    Send(usize, usize),
    Merge(usize, usize),
    Quiesce(usize, bool),
    Finish,
    Remove(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    let pick = || 0..1000usize;
    prop_oneof![
        4 => pick().prop_map(Operation::Branch),
        2 => pick().prop_map(Operation::Part),
        6 => (pick(), pick()).prop_map(|(sender, to)| Operation::Send(sender, to)),
        4 => (pick(), pick()).prop_map(|(one, other)| Operation::Merge(one, other)),
        6 => (pick(), prop::bool::weighted(0.7)).prop_map(|(state, is)| Operation::Quiesce(state, is)),
        2 => Just(Operation::Finish),
        1 => pick().prop_map(Operation::Remove),
    ]
}

/// Applies the operations to both tables and compares the results.
fn compare(name: &str, hosts: u32, operations: &[Operation]) {
    let first: Vec<(HostIndex, MemberId)> =
        (0..hosts).map(|at| (HostIndex(at), MemberId(at))).collect();
    let (mut table, mut real) = (Table::new(first.iter().copied()), mapping(name).unwrap());
    let mut model = Model {
        hosts: first.iter().map(|(host, state)| (*state, *host)).collect(),
        ..Model::default()
    };
    let world = first
        .iter()
        .map(|(host, state)| (*host, BTreeSet::from([*state])));
    model.add_dstate(world.collect());
    let mut wanted = Copies {
        next: hosts,
        ..Copies::default()
    };
    let mut got = wanted.clone();
    for operation in operations {
        let states: Vec<MemberId> = model.hosts.keys().copied().collect();
        if states.is_empty() {
            break;
        }
        let state = |pick: usize| states[pick % states.len()];
        match *operation {
            Operation::Branch(parent) if states.len() < 200 => {
                let child = MemberId(wanted.next);
                (wanted.next, got.next) = (wanted.next + 1, got.next + 1);
                model.branch(name, state(parent), child, &mut wanted);
                let copy = &mut |one| got.copy(one);
                real.branch(&mut table, state(parent), child, copy);
            }
            Operation::Branch(_) => {}
            Operation::Part(sender) => {
                model.part(name, state(sender), &mut wanted);
                real.part(&mut table, state(sender), &mut |one| got.copy(one));
            }
            Operation::Send(sender, to) => {
                let (sender, to) = (state(sender), HostIndex(to as u32 % hosts));
                model.part(name, sender, &mut wanted);
                real.part(&mut table, sender, &mut |one| got.copy(one));
                let receivers = model.receivers(name, sender, to, &mut wanted);
                let copy = &mut |one| got.copy(one);
                assert_eq!(real.receivers(&mut table, sender, to, copy), receivers);
            }
            Operation::Merge(one, other) => {
                let merged = model.merge(name, state(one), state(other));
                let is_merged = real.merge(&mut table, state(one), state(other));
                assert_eq!(is_merged, merged);
            }
            Operation::Quiesce(one, is_quiescent) => {
                match is_quiescent {
                    true => model.quiescent.insert(state(one)),
                    false => model.quiescent.remove(&state(one)),
                };
                table.set_quiescent(state(one), is_quiescent);
            }
            Operation::Finish => {
                while let Some((part, gone)) = model.finish_next() {
                    let (id, settled) = table.next_settled().expect("worlds that settled");
                    let hosts = settled.hosts().map(|(host, states)| {
                        (host, states.iter().copied().collect::<BTreeSet<_>>())
                    });
                    assert_eq!(hosts.collect::<Members>(), part);
                    let mut finished = table.finish(id, &settled);
                    finished.sort();
                    assert_eq!(finished, gone);
                }
                assert_eq!(table.next_settled(), None);
            }
            Operation::Remove(one) => {
                assert_eq!(table.remove(state(one)), model.remove(state(one)));
            }
        }
        assert_eq!(got, wanted);
        assert_same(&table, &model);
    }
}

fn assert_same(table: &Table, model: &Model) {
    table.check();
    let ids = table.dstates();
    let dstates = ids.iter().map(|id| {
        let hosts = table.hosts(*id);
        let hosts = hosts.map(|(host, states)| (host, states.iter().copied().collect()));
        hosts.collect::<Members>()
    });
    let dstates: Vec<Members> = dstates.collect();
    assert_eq!(dstates, model.dstates.values().cloned().collect::<Vec<_>>());
    assert!(table.states().eq(model.hosts.keys().copied()));
    for (state, host) in &model.hosts {
        assert_eq!(table.host(*state), *host);
        let places = table.dstates_of(*state);
        let places = places.iter().map(|id| ids.binary_search(id).unwrap());
        let all: Vec<u32> = model.dstates.keys().copied().collect();
        let places: Vec<u32> = places.map(|at| all[at]).collect();
        assert_eq!(places, model.dstates_of(*state));
    }
    let states = dstates.iter().flat_map(|hosts| hosts.values());
    let virtual_states = states.map(BTreeSet::len).sum::<usize>();
    assert_eq!(table.virtual_states(), virtual_states);
    assert_eq!(table.len(), model.dstates.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_table_is_that_of_the_model(
        hosts in 1u32..5,
        operations in prop::collection::vec(operation(), 1..60),
    ) {
        for name in ["sds", "cow", "cob"] {
            compare(name, hosts, &operations);
        }
    }
}
