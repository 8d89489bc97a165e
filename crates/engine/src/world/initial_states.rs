//! The initial states of worlds: one state per host, for each combination of outcomes of the faults
//! that are decided once per world, such as partitions.

use everett_net::{FaultIndex, StartTime};
use everett_sim::{Plan, SimHost, Start, decide_world_faults, world_fault_site};

use super::jobs::weight_of_rest;
use super::*;
use crate::oracle::PathOracle;
use crate::state::{NetState, ReceivedLog};
use crate::trace::TraceChoice;
use crate::weight::WeightSum;

/// Returns the number of the world after another one. Numbers with fewer faults, which are the one
/// bits, come before those with more.
fn number_after(number: u64, faults: u32) -> Option<u64> {
    let lowest = number & number.wrapping_neg();
    if lowest > 0 {
        // In the lowest run of ones, the highest one moves up and the others move down.
        let up = number + lowest;
        let next = up | (((up ^ number) >> 2) / lowest);
        if next < 1 << faults {
            return Some(next);
        }
    }
    let ones = number.count_ones() + 1;
    (ones <= faults).then(|| (1 << ones) - 1)
}

impl Explorer<'_> {
    /// Creates the initial states of the first worlds, or of the one world that follows these
    /// traces.
    pub(crate) fn begin_worlds(&mut self, follow: Option<&BTreeMap<String, Trace>>) {
        if follow.is_some() {
            return self.begin_world(0, follow);
        }
        if let Some(plan) = self.config.plans.first().cloned() {
            return self.begin_planned_world(plan);
        }
        self.world.next_world = Some(0);
        self.begin_more_worlds();
    }

    /// Makes the initial states of the one world whose faults are planned. World faults are
    /// choices of the first host.
    fn begin_planned_world(&mut self, mut plan: Plan) {
        let sites = self.first_choices(0).into_iter().map(|choice| choice.site);
        let number = sites
            .zip(0..)
            .map(|(site, bit)| u64::from(plan.pick(&site, |_| false)) << bit);
        let number = number.sum();
        self.begin_world(number, None);
        let others = weight_of_rest(self.world_fault_count(), 1);
        self.statistics.pruned.add_sum(&others);
    }

    /// Creates the initial states of the next worlds. Returns `false` if all worlds have begun.
    ///
    /// Each fault of a whole world doubles the number of worlds, so a limited number begins at a
    /// time, and the next ones when these are done. Worlds with few faults come first.
    pub(crate) fn begin_more_worlds(&mut self) -> bool {
        const AT_A_TIME: u64 = 1 << 10;
        if self.world.next_world.is_none() {
            return false;
        }
        self.world.begin_times();
        for _ in 0..AT_A_TIME {
            let Some(number) = self.world.next_world else {
                break;
            };
            self.statistics.forks += u64::from(number > 0);
            self.begin_world(number, None);
            self.world.begun += 1;
            self.world.next_world = number_after(number, self.world_fault_count());
        }
        true
    }

    fn world_fault_count(&self) -> u32 {
        self.world.network.faults.world_faults().len() as u32
    }

    /// Returns the weight of the worlds that have not begun.
    pub(super) fn weight_of_others(&self) -> WeightSum {
        let faults = self.world_fault_count();
        if self.world.next_world.is_none() {
            return WeightSum::default();
        }
        weight_of_rest(faults, self.world.begun)
    }

    /// Begins one world. The bits of its number decide its faults, unless a trace does.
    fn begin_world(&mut self, number: u64, follow: Option<&BTreeMap<String, Trace>>) {
        let mut answers = self.answers(number);
        let mut states = Vec::new();
        for at in 0..self.config.hosts.len() {
            let host = HostIndex(at as u32);
            let mut path = match follow {
                Some(traces) => {
                    let trace = traces.get(&self.host(host).name);
                    Path::following_loosely(Arc::new(trace.cloned().unwrap_or_default()))
                }
                None => match &self.host(host).begin {
                    Some(begin) => Path::following(begin.clone()),
                    None => Path::default(),
                },
            };
            if at == 0 && path.is_loose() {
                answers = self.followed_answers(&mut path);
            } else if at == 0 {
                for choice in self.first_choices(number) {
                    path.begin_with(choice);
                }
            }
            let state = self.initial_state(host, number, path, &answers);
            states.push((host, self.add_root(state)));
        }
        self.world.table.add_world(states.iter().copied());
        for (_, id) in states {
            self.enqueue(id);
        }
    }

    /// Returns the initial state of a host.
    pub(super) fn initial_state(
        &self,
        host: HostIndex,
        world: u64,
        mut path: Path,
        answers: &[(FaultIndex, bool)],
    ) -> State {
        let told = self.host(host);
        path.owner = Some(told.name.as_str().into());
        let mut start = Start::new(told.start);
        for (at, other) in (0..).zip(&self.config.hosts) {
            if other.start == StartTime::At(u64::MAX) {
                // A host that never starts keeps no other one waiting.
                start.notify(HostIndex(at), true, 0);
            }
        }
        let times = self.world.network.faults.times(host);
        let sim = SimHost::new(start, times, told.sets_itself_up());
        let mut sim = sim.with_peer(told.peer.as_ref());
        for (fault, answer) in answers {
            sim.counters.decide(*fault, *answer);
        }
        let mut state = State::starting(path);
        state.net = Some(Box::new(NetState {
            host,
            world,
            sim,
            ending: None,
            history: HistoryDigest::default().then(&host.index()).then(&world),
            received: ReceivedLog::default(),
            sent: Default::default(),
            waits: Vec::new(),
            is_marked: false,
        }));
        state
    }

    /// Returns which faults of whole worlds happen in the world of this number.
    pub(super) fn answers(&self, number: u64) -> Vec<(FaultIndex, bool)> {
        let undecided = self.world.network.faults.world_faults().into_iter();
        let answers = undecided.zip(0..);
        answers
            .map(|(fault, bit)| (fault, number >> bit & 1 == 1))
            .collect()
    }

    /// Returns the decisions on faults of whole worlds as choices, with which the trace of the
    /// first host begins.
    pub(super) fn first_choices(&self, number: u64) -> Vec<TraceChoice> {
        let faults = &self.world.network.faults;
        let choice = |(fault, answer)| TraceChoice {
            site: world_fault_site(faults, fault),
            alternatives: 2,
            picked: u32::from(answer),
        };
        self.answers(number).into_iter().map(choice).collect()
    }

    fn followed_answers(&mut self, path: &mut Path) -> Vec<(FaultIndex, bool)> {
        let faults = &self.world.network.faults;
        let (solver, scratch) = (&mut self.worker.solver, &mut self.worker.scratch);
        let mut oracle = PathOracle::new(path, solver, scratch);
        decide_world_faults(&mut oracle, faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_world_begins_once_and_those_with_few_faults_first() {
        for faults in 0..=6 {
            let all: Vec<u64> =
                std::iter::successors(Some(0), |number| number_after(*number, faults)).collect();
            let mut sorted = all.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..1 << faults), "{faults}");
            assert!(
                all.is_sorted_by_key(|number| number.count_ones()),
                "{all:?}"
            );
        }
        assert_eq!(number_after(1 << 61, 62), Some(3));
        assert_eq!(number_after((1 << 62) - 1, 62), None);
    }
}
