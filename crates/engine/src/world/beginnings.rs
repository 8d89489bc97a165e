//! The initial states: one of each host, in as many worlds as there are outcomes of the faults of whole worlds.

use everett_net::FaultIndex;
use everett_sim::{SimHost, Start, decide_world_faults, world_fault_site};

use super::*;
use crate::oracle::PathOracle;
use crate::state::NetState;
use crate::trace::TraceChoice;

impl Explorer<'_> {
    /// Makes the initial states.
    pub(crate) fn begin_worlds(&mut self, follow: Option<&BTreeMap<String, Trace>>) {
        if follow.is_some() {
            return self.begin_world(0, follow);
        }
        let worlds = 1 << self.world.network.faults.world_faults().len();
        self.statistics.forks += worlds - 1;
        for number in 0..worlds {
            self.begin_world(number, None);
        }
    }

    /// The bits of the number decide the faults of the world, unless a trace does.
    fn begin_world(&mut self, number: u64, follow: Option<&BTreeMap<String, Trace>>) {
        let mut answers = Vec::new();
        let mut states = Vec::new();
        for at in 0..self.config.hosts.len() {
            let host = HostIndex(at as u32);
            let name = self.host(host).name.clone();
            let mut path = match follow {
                Some(traces) => {
                    let trace = traces.get(&name).cloned().unwrap_or_default();
                    Path::following_loosely(Arc::new(trace))
                }
                None => match &self.host(host).begin {
                    Some(begin) => Path::following(begin.clone()),
                    None => Path::default(),
                },
            };
            path.owner = Some(name.into());
            if at == 0 {
                answers = self.answers(number, &mut path);
            }
            let start = Start::new(at, self.host(host).start_ns);
            let times = self.world.network.faults.times(host);
            let mut sim = SimHost::new(start, times, self.host(host).sets_itself_up());
            for (fault, answer) in &answers {
                sim.counters.decide(*fault, *answer);
            }
            let mut state = State::starting(path);
            state.net = Some(Box::new(NetState {
                sim,
                ending: None,
                history: HistoryDigest::default().then(&at).then(&number),
            }));
            states.push((host, self.add_root(state)));
        }
        self.world.table.add_world(states.iter().copied());
        for (_, id) in states {
            self.enqueue(id);
        }
    }

    fn answers(&mut self, number: u64, path: &mut Path) -> Vec<(FaultIndex, bool)> {
        let faults = &self.world.network.faults;
        if path.is_loose() {
            let (solver, scratch) = (&mut self.worker.solver, &mut self.worker.scratch);
            let mut oracle = PathOracle::new(path, solver, scratch, None);
            return decide_world_faults(&mut oracle, faults);
        }
        let undecided = faults.world_faults().into_iter().zip(0..);
        let answers = undecided.map(|(fault, bit)| {
            let picked = number >> bit & 1;
            path.begin_with(TraceChoice {
                site: world_fault_site(faults, fault),
                alternatives: 2,
                picked: picked as u32,
            });
            (fault, picked == 1)
        });
        answers.collect()
    }
}
