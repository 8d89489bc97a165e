//! What each host of a world was doing at a finding, for reports.

use everett_linux::{Ending, Host, PreemptionPoint};
use everett_sim::RunState;

use super::*;
use crate::finding::HostStatus;
use crate::source::{describe, describe_ends};

impl Explorer<'_> {
    /// Returns the status of every host at the end of a followed world, or at its last finding.
    pub fn host_status(&self) -> &[HostStatus] {
        &self.world.host_status
    }

    /// Records what every host is doing, if one world is followed. `own` is the state that is being
    /// executed, which is not in the frontier.
    pub(super) fn note_host_status(&mut self, own: Option<(StateId, &State)>) {
        if self.world.messages.is_none() {
            return;
        }
        let mut all = BTreeMap::new();
        let states = self.frontier.iter();
        let others = states.filter_map(|(id, stored)| match stored {
            Stored::Live(state) => Some((id, state.clone())),
            Stored::Spilled(_) | Stored::Running => None,
        });
        let others: Vec<(StateId, Box<State>)> = others.collect();
        let others = others.iter().map(|(id, state)| (*id, &**state));
        for (id, state) in others.chain(own) {
            let host = self.world.table.host(id);
            let files = self.changed_files(state);
            let host_status = self.status_of(host, state);
            all.insert(
                host,
                HostStatus {
                    files,
                    ..host_status
                },
            );
        }
        self.world.host_status = all.into_values().collect();
    }

    /// Returns what a host is doing, without its files.
    fn status_of(&self, host: HostIndex, state: &State) -> HostStatus {
        let doing = match (&state.net().ending, state.sim().run_state, &state.host) {
            (Some(Ending::Exit(status)), _, _) if status.term.is_none() => {
                format!("has exited with {}", status.bits as i32)
            }
            (Some(_), _, _) => "has ended".to_owned(),
            (None, RunState::Off(Some(until)), _) => {
                format!("is off until {:.6} s", until as f64 / 1e9)
            }
            (None, RunState::Off(None), _) => "is off".to_owned(),
            (None, RunState::Waiting(_), None) if state.sim().peer.is_some() => {
                "is a live peer, and has nothing to say".to_owned()
            }
            (None, _, None) => "has not started".to_owned(),
            (None, RunState::Running, _) => "runs".to_owned(),
            (None, RunState::Waiting(Some(until)), _) => {
                format!("waits, until {:.6} s at most", until as f64 / 1e9)
            }
            (None, RunState::Waiting(None), _) => "waits for what others send".to_owned(),
            (None, RunState::Ended, _) => "has ended".to_owned(),
        };
        let running = state.host.as_ref();
        let threads = running.map_or_else(Vec::new, Host::threads);
        let points = running.map_or(&[][..], Host::points);
        let place = |point: &PreemptionPoint| {
            let frames = describe(self.worker.images, &[point.site]);
            (*point, frames.into_iter().next().unwrap_or_default())
        };
        HostStatus {
            name: self.host(host).name.clone(),
            clock_ns: state.clock_ns(),
            doing,
            is_off: state.net().ending.is_none() && state.sim().is_off(),
            threads: threads
                .into_iter()
                .map(|(who, sites)| (who, describe_ends(self.worker.images, &sites)))
                .collect(),
            failures: running.map_or_else(Vec::new, |host| self.worker.failures(host)),
            calls: running.map_or_else(Vec::new, |host| host.log().to_vec()),
            points: points.iter().map(place).collect(),
            restarts: state.sim().restarts,
            files: Vec::new(),
        }
    }
}
