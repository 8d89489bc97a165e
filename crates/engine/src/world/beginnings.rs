//! How worlds begin: a state of each host, in as many worlds as things can be decided for all of a world.

use everett_net::{FaultIndex, Faults};
use everett_vm::{ChoiceSite, Oracle};

use super::*;
use crate::oracle::PathOracle;
use crate::trace::TraceChoice;

/// The question whether something happens in a world. Its answer is on the trace of the first host.
fn site(faults: &Faults, fault: FaultIndex) -> ChoiceSite {
    ChoiceSite {
        name: format!("fault:world:{}", faults.get(fault).name),
    }
}

/// Decides for a world what is decided for all of it: which faults happen, and which do not.
pub fn decided(oracle: &mut dyn Oracle, faults: &Faults) -> Vec<(FaultIndex, bool)> {
    let undecided = faults.world_faults().into_iter();
    let answers = undecided.map(|fault| {
        // Whoever follows a trace is never asked to wait.
        let picked = oracle.choose(&site(faults, fault), 2);
        (fault, picked == Ok(1))
    });
    let answers = answers.collect();
    oracle.commit();
    answers
}

impl Worlds<'_> {
    /// Makes the first states of hosts.
    pub(super) fn begin(&mut self, follow: Option<&BTreeMap<String, Trace>>) {
        if follow.is_some() {
            return self.begin_world(0, follow);
        }
        let worlds = 1 << self.config.faults.world_faults().len();
        self.statistics.forks += worlds - 1;
        for number in 0..worlds {
            self.begin_world(number, None);
        }
    }

    /// The bits of the number say what happens in the world, where no trace says it.
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
            let past = Past::default().then(&at).then(&number);
            let starting = Starting::new(at, self.host(host).start_ns);
            let times = self.config.faults.times(host);
            let mut member = Member::new(State::starting(path), past, starting, times);
            for (fault, answer) in &answers {
                member.counters.decide(*fault, *answer);
            }
            states.push((host, self.add(member)));
        }
        self.table.add_world(states.iter().copied());
        for (_, id) in states {
            self.place(id);
        }
    }

    fn answers(&mut self, number: u64, path: &mut Path) -> Vec<(FaultIndex, bool)> {
        let faults = &self.config.faults;
        if path.is_loose() {
            let (solver, scratch) = (&mut self.worker.solver, &mut self.worker.scratch);
            let mut oracle = PathOracle::new(path, solver, scratch, None);
            return decided(&mut oracle, faults);
        }
        let undecided = faults.world_faults().into_iter().zip(0..);
        let answers = undecided.map(|(fault, bit)| {
            let picked = number >> bit & 1;
            path.begin_with(TraceChoice {
                site: site(faults, fault).name,
                alternatives: 2,
                picked: picked as u32,
            });
            (fault, picked == 1)
        });
        answers.collect()
    }
}
