//! What is done: worlds in which nothing will happen any more are looked at for the last time, counted, told where that is wanted, and
//! forgotten, each once and as soon as that is known, so that nobody has to keep them apart from worlds that go on.

use everett_linux::Ending;

use super::*;
use crate::finding::PathEnding;
use crate::mapping::Dstate;

/// Worlds of a dstate that are told one by one at most: there may be more than anybody could read.
const MOST_WORLDS: usize = 1 << 16;

impl Explorer<'_> {
    /// Finishes all worlds in which nothing will happen any more, as far as dstates need not part for that.
    pub(super) fn finish_settled(&mut self, listener: &mut dyn Listener) {
        while let Some((id, part)) = self.world.table.next_settled() {
            self.finish_worlds(&part, listener);
            let gone = self.world.table.finish(id, &part);
            self.drop_states(&gone);
        }
    }

    /// Worlds are at their end.
    fn finish_worlds(&mut self, part: &Dstate, listener: &mut dyn Listener) {
        self.note_standing(None);
        self.check_expectations(part, listener);
        self.check_at_end(part, listener);
        let weight = weight_of(part.hosts(), |id| self.frontier.weight(id));
        self.statistics.finished.add_sum(&weight);
        let counts = part.hosts().map(|(_, members)| members.len() as u128);
        let worlds = counts.fold(1u128, u128::saturating_mul);
        self.world.counted.worlds = self.world.counted.worlds.saturating_add(worlds);
        let worlds = u64::try_from(worlds).unwrap_or(u64::MAX);
        self.statistics.paths_completed = self.statistics.paths_completed.saturating_add(worlds);
        if self.config.all_tests {
            self.tell_worlds(part, listener);
        } else if !self.config.no_tests {
            self.tell_new(part, listener);
        }
    }

    /// Tells of one world for each state of a dstate that was the first to execute some code.
    fn tell_new(&mut self, dstate: &Dstate, listener: &mut dyn Listener) {
        for (host, members) in dstate.hosts() {
            for id in members {
                if !self
                    .frontier
                    .live(*id)
                    .is_some_and(|state| state.covered_new)
                {
                    continue;
                }
                let lists = dstate.hosts().map(|(other, others)| match other == host {
                    true => vec![*id],
                    false => others.to_vec(),
                });
                let (lists, mut chosen) = (lists.collect::<Vec<_>>(), Vec::new());
                if let Some(path) = self.choose(Path::default(), &lists, &mut chosen, None, None) {
                    self.tell_world(&path, &chosen, listener);
                }
                // The test of a world covers what all of its states covered.
                for told in chosen.iter().chain([id]) {
                    if let Some(state) = self.frontier.live_mut(*told) {
                        state.covered_new = false;
                    }
                }
            }
        }
    }

    /// Tells of every world of a dstate that can be.
    fn tell_worlds(&mut self, dstate: &Dstate, listener: &mut dyn Listener) {
        let lists: Vec<Vec<StateId>> = dstate
            .hosts()
            .map(|(_, members)| members.to_vec())
            .collect();
        let mut told = 0;
        let mut chosen = Vec::new();
        self.tell_from(Path::default(), &lists, &mut chosen, &mut told, listener);
        if told >= MOST_WORLDS {
            self.note_limit("max-tests");
        }
    }

    fn tell_from(
        &mut self,
        path: Path,
        lists: &[Vec<StateId>],
        chosen: &mut Vec<StateId>,
        told: &mut usize,
        listener: &mut dyn Listener,
    ) {
        if *told >= MOST_WORLDS {
            return;
        }
        let Some((first, others)) = lists.split_first() else {
            *told += 1;
            return self.tell_world(&path, chosen, listener);
        };
        for candidate in first {
            let other = self.frontier.live(*candidate);
            let Some(other) = other.map(|one| one.path.clone()) else {
                continue;
            };
            let mut joined = path.clone();
            if self.join(&mut joined, &other, true) {
                chosen.push(*candidate);
                self.tell_from(joined, others, chosen, told, listener);
                chosen.pop();
            }
        }
    }

    fn tell_world(&mut self, path: &Path, chosen: &[StateId], listener: &mut dyn Listener) {
        let (mut traces, mut saved) = (BTreeMap::new(), SavedFiles::new());
        for id in chosen {
            let name = self.host(self.world.table.host(*id)).name.clone();
            let Some(state) = self.frontier.live(*id) else {
                continue;
            };
            let (mut state, ending) = (state.clone(), state.net().ending.clone());
            state.path.model = path.model.clone();
            let ending = match ending {
                Some(Ending::Exit(status)) => {
                    PathEnding::Exit(self.worker.value(&state, status) as i32)
                }
                Some(Ending::Signal(signal)) => PathEnding::Signal(signal),
                _ if state.sim().is_off() => PathEnding::Off,
                _ => PathEnding::Idle,
            };
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
