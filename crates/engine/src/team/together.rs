//! Rematerialises states of a program that moved together: the parts that their paths have in
//! common are executed once.

use everett_linux::HostExit;

use super::*;
use crate::frontier::StateInfo;
use crate::state::State;
use crate::trace::Pending;

/// Number of instructions between two checks whether the search stops.
const SLICE: u64 = 1 << 20;

impl Explorer<'_> {
    /// Adds states of a program to the frontier. Those whose paths begin alike become states of
    /// their own where their paths part.
    pub fn rematerialise_together(&mut self, traces: &[Arc<Trace>]) {
        let is_plain = |trace: &&Arc<Trace>| {
            let pending = trace.pending.as_ref();
            let is_inside = |pending: &Pending| pending.answered > 0 && pending.merges.is_empty();
            trace.answers.is_empty() && pending.is_some_and(is_inside)
        };
        let (mut together, mut alone): (Vec<_>, Vec<_>) = match self.config.against {
            None => traces.iter().partition(is_plain),
            Some(_) => (Vec::new(), traces.iter().collect()),
        };
        if together.len() < 2 {
            alone.append(&mut together);
        }
        let together: Vec<Arc<Trace>> = together.into_iter().cloned().collect();
        let reached = self.follow_together(&together);
        alone.extend(together.iter().filter(|trace| !is_among(&reached, trace)));
        for trace in alone {
            self.add_path(Path::following(trace.clone()));
        }
    }

    /// Follows traces until each has a state of its own. Returns those that have one: the rest must
    /// be followed one by one.
    fn follow_together(&mut self, traces: &[Arc<Trace>]) -> Vec<Arc<Trace>> {
        let mut reached = Vec::new();
        if traces.is_empty() {
            return reached;
        }
        self.measure_room();
        let state = Box::new(State::starting(Path::following_together(traces)));
        let id = self
            .frontier
            .add_root(Stored::Running, StateInfo::default());
        let mut groups = vec![(id, state)];
        while let Some((id, mut state)) = groups.pop() {
            let Some(child) = self.run_to_parting(&mut state) else {
                self.frontier.remove(id);
                continue;
            };
            let stored = (Stored::Running, StateInfo::default());
            let other = self.frontier.add_child(id, stored.0, stored.1);
            self.frontier.set_forked_at(other, child.instructions());
            for (id, state) in [(id, state), (other, child)] {
                if state.path.has_companions() {
                    groups.push((id, state));
                    continue;
                }
                reached.extend(state.path.followed());
                let info = self.info(&state);
                self.frontier.set_info(id, info);
                self.frontier.put(id, Stored::Live(state));
                self.searcher.added(&self.frontier, id);
            }
        }
        reached
    }

    /// Runs a state that follows several traces until some of them part from it. Returns their
    /// state, or `None` if they cannot be followed together now.
    fn run_to_parting(&mut self, state: &mut State) -> Option<Box<State>> {
        loop {
            let before = state.instructions();
            let (exit, _) = self.run_slice(state, SLICE);
            self.count_executed(state, before);
            self.note_coverage(state);
            if let Some(path) = state.path.take_leaving() {
                let mut child = Box::new(State {
                    host: state.host.clone(),
                    path,
                    covered_new: false,
                    since_new: state.since_new,
                    has_main: state.has_main,
                    net: None,
                });
                // Its trace may end before this question: what was executed since is new.
                let beyond = child.instructions().saturating_sub(child.path.counted);
                self.statistics.instructions += beyond;
                self.statistics.replayed = self.statistics.replayed.saturating_sub(beyond);
                child.path.counted += beyond;
                return Some(child);
            }
            let goes_on = matches!(exit, HostExit::Budget) && state.path.has_companions();
            if !goes_on || self.is_stopping() || self.is_out_of_room() {
                return None;
            }
        }
    }
}

/// Returns whether a trace is among others.
fn is_among(traces: &[Arc<Trace>], trace: &Arc<Trace>) -> bool {
    traces.iter().any(|other| Arc::ptr_eq(other, trace))
}
