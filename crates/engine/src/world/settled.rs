//! Settled worlds: dstates in which nothing will happen any more. As soon as one settles, the
//! explorer evaluates its invariants and expectations for the last time, counts its worlds, reports
//! those that become tests, and drops it.

use super::bounds::{HostStates, Tally};
use super::*;
use crate::finding::{PathEnding, SavedFiles};
use crate::mapping::Dstate;

/// Maximum number of worlds of a dstate that are reported one by one.
const MAX_REPORTED_WORLDS: usize = 1 << 16;

impl Explorer<'_> {
    /// Finishes all settled worlds that can be removed without splitting a dstate.
    pub(super) fn finish_settled(&mut self, listener: &mut dyn Listener) {
        while let Some((id, part)) = self.world.table.next_settled() {
            if !self.report_settled(&part, listener) {
                return;
            }
            // Worlds with a spilled state that cannot be read are cut off; the rest of the part
            // settles again.
            if part.members().any(|id| self.frontier.get(id).is_none()) {
                continue;
            }
            self.count_settled(&part, listener);
            let gone = self.world.table.finish(id, &part);
            self.drop_states(&gone);
        }
    }

    /// Reports the findings and tests of settled worlds. Returns `false` if the run is stopped
    /// meanwhile; a resumed run reports them.
    fn report_settled(&mut self, part: &Dstate, listener: &mut dyn Listener) -> bool {
        let hosts: Vec<_> = part.hosts().collect();
        if self.tally(&hosts).worlds > 0 {
            self.note_host_status(None);
            self.check_expectations(part, listener);
            self.check_at_end(part, listener);
        }
        if self.world.has_open_questions {
            return false;
        }
        if self.config.all_tests {
            self.report_worlds(part, listener);
        } else if !self.config.no_tests {
            self.report_new(part, listener);
        }
        true
    }

    /// Counts settled worlds and their weight.
    fn count_settled(&mut self, part: &Dstate, listener: &mut dyn Listener) {
        let hosts: Vec<_> = part.hosts().collect();
        let tally = self.tally(&hosts);
        if listener.wants_settled() {
            let states = hosts.iter().map(|(_, states)| {
                let answers = states.iter().filter_map(|id| self.frontier.answers(*id));
                answers.collect()
            });
            listener.settled(states.collect());
        }
        self.book(&tally, |statistics| &mut statistics.finished);
        self.count_stalled(&hosts, &tally);
        self.world.counted.worlds = self.world.counted.worlds.saturating_add(tally.worlds);
        let worlds = u64::try_from(tally.worlds).unwrap_or(u64::MAX);
        self.statistics.paths_completed = self.statistics.paths_completed.saturating_add(worlds);
    }

    /// Counts worlds in which hosts are blocked forever. This is not always wrong: a server waits
    /// after its clients have ended.
    fn count_stalled(&mut self, hosts: &[HostStates<'_>], tally: &Tally) {
        let of = |waits: bool| -> Vec<(HostIndex, Vec<StateId>)> {
            let hosts = hosts.iter().map(|(host, states)| {
                let states = states.iter().copied();
                let states = states.filter(|id| self.frontier.is_waiting(*id) == waits);
                (*host, states.collect())
            });
            hosts.collect()
        };
        let worlds = |states: &[(HostIndex, Vec<StateId>)]| {
            let states = states
                .iter()
                .map(|(host, states)| (*host, states.as_slice()));
            self.tally(&states.collect::<Vec<_>>()).worlds
        };
        let (waiting, others) = (of(true), of(false));
        let stalled = tally.worlds.saturating_sub(worlds(&others));
        let deadlocked = if hosts.len() > 1 { worlds(&waiting) } else { 0 };
        let some = |states: Vec<(HostIndex, Vec<StateId>)>| {
            let some = states.into_iter().filter(|(_, states)| !states.is_empty());
            some.map(|(host, _)| host)
        };
        let counted = &mut self.world.counted;
        counted.stalled = counted.stalled.saturating_add(stalled);
        counted.deadlocked = counted.deadlocked.saturating_add(deadlocked);
        counted.waiting.extend(some(waiting));
        counted.ending.extend(some(others));
    }

    /// Reports one world for each state of a dstate that was the first to execute some code.
    fn report_new(&mut self, dstate: &Dstate, listener: &mut dyn Listener) {
        for (host, members) in dstate.hosts() {
            for id in members {
                if !self.frontier.covered_new(*id) {
                    continue;
                }
                let lists = dstate.hosts().map(|(other, others)| match other == host {
                    true => vec![*id],
                    false => others.to_vec(),
                });
                let lists: Vec<Vec<StateId>> = lists.collect();
                let Some((path, chosen)) = self.choose(&lists, None, None) else {
                    // The state may be in a world of another dstate.
                    continue;
                };
                self.report_world(&path, &chosen, listener);
                // The test of a world covers what all of its states covered.
                for told in chosen {
                    self.frontier.clear_covered_new(told);
                }
            }
        }
    }

    /// Reports every feasible world of a dstate.
    fn report_worlds(&mut self, dstate: &Dstate, listener: &mut dyn Listener) {
        let lists: Vec<Vec<StateId>> = dstate
            .hosts()
            .map(|(_, members)| members.to_vec())
            .collect();
        let mut told = 0;
        self.each_world(&lists, true, &mut |worlds, path, chosen| {
            worlds.report_world(path, chosen, listener);
            told += 1;
            told < MAX_REPORTED_WORLDS
        });
        if told >= MAX_REPORTED_WORLDS {
            self.note_limit("max-tests");
        }
    }

    /// Reports a world to the listener, with the trace and the changed files of each host.
    fn report_world(&mut self, path: &Path, chosen: &[StateId], listener: &mut dyn Listener) {
        let (mut traces, mut saved) = (BTreeMap::new(), SavedFiles::new());
        for id in chosen {
            let name = self.host(self.world.table.host(*id)).name.clone();
            let Some(state) = self.frontier.live(*id) else {
                continue;
            };
            let mut state = state.clone();
            state.path.model = path.model.clone();
            let ending = self.host_ending(&state).unwrap_or(PathEnding::Idle);
            let mut trace = state.path.trace_under(&path.model);
            trace.end = Some(self.worker.trace_end(&state, &ending));
            let files = self.changed_files(&state);
            if !files.is_empty() {
                saved.insert(name.clone(), files);
            }
            traces.insert(name, trace);
        }
        listener.world(&traces, &saved);
    }
}
