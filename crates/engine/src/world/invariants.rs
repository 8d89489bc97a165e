//! Evaluates the invariants of worlds: when exposed data changes, at given times, and at the end.

use everett_expr::ExprId;
use everett_invariant::{Invariant, When, evaluate};
use everett_linux::ExposedData;
use everett_sim::{
    History, KnownData, MAX_OBSERVATIONS, broken_message, never_held, read_by, timeline, view,
};
use everett_vm::{Bug, BugKind, Value};

use super::bounds::{add, least_from};
use super::*;
use crate::finding::ShownValue;
use crate::frontier::{FaultUse, SpilledNet};
use crate::mapping::Dstate;

/// An invariant, its position, and the occasion of its evaluation.
#[derive(Copy, Clone)]
struct Question<'i> {
    invariant: &'i Invariant,
    file: usize,
    /// The number of the invariant in its file.
    number: usize,
    when: When,
}

/// States of a host that expose the same data.
type Group<T> = (T, Vec<StateId>);

/// The groups of each host.
struct Groups<T> {
    hosts: Vec<Vec<Group<T>>>,
    /// The minimum fault counts of states from each host on.
    least_from: Vec<FaultUse>,
}

impl Explorer<'_> {
    /// Takes the exposed data of a host, and evaluates invariants if it has changed.
    pub(super) fn exposed(&mut self, id: StateId, state: &mut State, listener: &mut dyn Listener) {
        if self.observe(state) {
            self.check_change(id, state, listener);
        }
    }

    /// Takes the exposed data of a host. Returns whether it has changed.
    pub(super) fn observe(&mut self, state: &mut State) -> bool {
        let remember = self.is_asked(When::Eventually);
        let verdicts = &mut self.world.verdicts;
        let (Some(host), Some(net)) = (&mut state.host, &mut state.net) else {
            return false;
        };
        let share = |data: &ExposedData| verdicts.shared(data);
        net.sim.observe(host, remember, share)
    }

    /// Evaluates invariants after a host's exposed data has changed.
    pub(super) fn check_change(&mut self, id: StateId, state: &State, listener: &mut dyn Listener) {
        if !self.is_asked(When::OnChange) {
            return;
        }
        let own = Some((id, state));
        self.timed(|worlds| {
            for dstate in worlds.world.table.dstates_of(id) {
                if let Some(dstate) = worlds.world.table.dstate(dstate) {
                    worlds.load_unknown(&dstate);
                    let groups = worlds.grouped(&dstate, own, data_of, spilled_data);
                    worlds.check_data(When::OnChange, &groups, own, listener);
                }
            }
        });
    }

    /// Counts the time of an evaluation, without the time for reporting findings.
    fn timed(&mut self, evaluate: impl FnOnce(&mut Self)) {
        let clock = self.config.clock;
        let (start, reporting) = (clock.now(), self.world.reporting);
        evaluate(self);
        let took = clock.now().saturating_sub(start);
        self.world.counted.in_invariants += took.saturating_sub(self.world.reporting - reporting);
    }

    /// Returns whether there are invariants for this occasion.
    fn is_asked(&self, when: When) -> bool {
        let mut all = self.world.invariants.iter().flat_map(|file| file.iter());
        all.any(|invariant| invariant.when().contains(&when))
    }

    /// Returns the next time at which invariants are evaluated, if all events up to it have
    /// happened.
    pub(super) fn time_before(&self, next_ns: u64) -> Option<u64> {
        let most = self.config.limits.max_virtual_ns.unwrap_or(u64::MAX);
        let time_ns = self.world.times.first().copied()?;
        (time_ns < next_ns && time_ns <= most).then_some(time_ns)
    }

    /// Evaluates invariants at a time that all worlds have reached and none has passed.
    pub(super) fn check_at(&mut self, time_ns: u64, listener: &mut dyn Listener) {
        self.check_all(When::At { time_ns }, listener);
        if !self.world.has_open_questions {
            self.world.times.remove(&time_ns);
        }
    }

    /// Evaluates the invariants again that were being evaluated when an earlier run was stopped.
    pub(super) fn check_again(&mut self, listener: &mut dyn Listener) {
        if self.world.has_open_questions && !self.is_stopping() {
            self.world.has_open_questions = false;
            self.check_all(When::OnChange, listener);
        }
    }

    fn check_all(&mut self, when: When, listener: &mut dyn Listener) {
        for id in self.world.table.dstates() {
            if let Some(dstate) = self.world.table.dstate(id) {
                self.check(when, &dstate, listener);
            }
        }
    }

    /// Evaluates the invariants of settled worlds, also those of later times, because the data does
    /// not change any more.
    pub(super) fn check_at_end(&mut self, dstate: &Dstate, listener: &mut dyn Listener) {
        let most = self.config.limits.max_virtual_ns.unwrap_or(u64::MAX);
        let times: Vec<u64> = self.world.times.range(..=most).copied().collect();
        for time_ns in times {
            self.check(When::At { time_ns }, dstate, listener);
        }
        self.check(When::AtEnd, dstate, listener);
        self.check(When::Eventually, dstate, listener);
    }

    /// Evaluates the invariants of one occasion on all worlds of a dstate.
    fn check(&mut self, when: When, dstate: &Dstate, listener: &mut dyn Listener) {
        if !self.is_asked(when) {
            return;
        }
        self.timed(|worlds| {
            if when == When::Eventually {
                worlds.load_all(dstate.members());
                let histories = worlds.grouped(dstate, None, history_of, |_| None);
                worlds.check_histories(&histories, listener);
            } else {
                worlds.load_unknown(dstate);
                let groups = worlds.grouped(dstate, None, data_of, spilled_data);
                worlds.check_data(when, &groups, None, listener);
            }
        });
    }

    /// Evaluates invariants on exposed data; `own` is a state that is being executed.
    fn check_data(
        &mut self,
        when: When,
        groups: &Groups<ExposedData>,
        own: Option<(StateId, &State)>,
        listener: &mut dyn Listener,
    ) {
        let files = self.world.invariants.clone();
        for question in questions(&files, when) {
            if when == When::AtEnd && self.is_known(&question) {
                continue;
            }
            let ask = |worlds: &mut Self, picked: &[&Group<ExposedData>]| {
                let shown: Vec<&ExposedData> = picked.iter().map(|(data, _)| data).collect();
                worlds.verdict(&question, &shown)
            };
            self.check_groups(&question, groups, &ask, &mut Vec::new(), own, listener);
        }
    }

    /// Evaluates `eventually` on the histories of hosts.
    fn check_histories(
        &mut self,
        histories: &Groups<(History, bool)>,
        listener: &mut dyn Listener,
    ) {
        let names = self.host_names();
        let files = self.world.invariants.clone();
        for question in questions(&files, When::Eventually) {
            let ask = |worlds: &mut Self, picked: &[&Group<(History, bool)>]| {
                if picked.iter().any(|((_, has_forgotten), _)| *has_forgotten) {
                    worlds.note_failure(&format!(
                        "a host showed more than {MAX_OBSERVATIONS} changes, and whether {} held is not known",
                        question.invariant.name()
                    ));
                    return None;
                }
                let picked = picked.iter().map(|((history, _), _)| history);
                let picked: Vec<&History> = picked.collect();
                let arena = &mut worlds.worker.arena;
                let (never, failures) =
                    never_held(question.invariant, &names, &timeline(&picked), arena);
                failures.iter().for_each(|one| worlds.note_failure(one));
                Some(never)
            };
            self.check_groups(&question, histories, &ask, &mut Vec::new(), None, listener);
        }
    }

    /// Brings those states back to memory whose exposed data is not known.
    fn load_unknown(&mut self, dstate: &Dstate) {
        let is_unknown = |net: &SpilledNet| net.exposed.is_none();
        let states = dstate.members();
        let unknown = states.filter(|id| self.frontier.spilled_net(*id).is_some_and(is_unknown));
        let unknown: Vec<StateId> = unknown.collect();
        self.load_all(unknown);
    }

    /// Returns the states of each host, grouped by equal data.
    fn grouped<T: PartialEq>(
        &self,
        dstate: &Dstate,
        own: Option<(StateId, &State)>,
        data: fn(&State) -> T,
        spilled: fn(&SpilledNet) -> Option<T>,
    ) -> Groups<T> {
        let mut all = Vec::new();
        for (host, members) in dstate.hosts() {
            let mut different: Vec<Group<T>> = Vec::new();
            let own = own.filter(|(id, _)| self.world.table.host(*id) == host);
            let members = members.iter().copied();
            for id in members.filter(|id| own.is_none_or(|(own, _)| own == *id)) {
                let state = own.map(|(_, state)| state).or(self.frontier.live(id));
                let known = || spilled(self.frontier.spilled_net(id)?);
                let Some(data) = state.map(data).or_else(known) else {
                    continue;
                };
                match different.iter_mut().find(|(known, _)| *known == data) {
                    Some((_, ids)) => ids.push(id),
                    None => different.push((data, vec![id])),
                }
            }
            all.push(different);
        }
        let least_of = |groups: &Vec<Group<T>>| {
            let states: Vec<StateId> = groups.iter().flat_map(|(_, ids)| ids).copied().collect();
            self.least_of(&states)
        };
        Groups {
            least_from: least_from(all.iter().map(least_of)),
            hosts: all,
        }
    }

    /// Returns whether states of the chosen groups and of the remaining hosts may be in a world
    /// within the bounds on faults.
    fn may_be_together<T>(&self, groups: &Groups<T>, chosen: &[usize]) -> bool {
        if self.world.bounds.is_empty() {
            return true;
        }
        let mut sum = groups.least_from[chosen.len()].clone();
        for (at, groups) in chosen.iter().zip(&groups.hosts) {
            add(&mut sum, &self.least_of(&groups[*at].1));
        }
        self.world.bounds.allow(&sum)
    }

    /// Evaluates every combination of groups, one of each host.
    fn check_groups<T, F>(
        &mut self,
        question: &Question<'_>,
        groups: &Groups<T>,
        ask: &F,
        chosen: &mut Vec<usize>,
        own: Option<(StateId, &State)>,
        listener: &mut dyn Listener,
    ) where
        F: Fn(&mut Self, &[&Group<T>]) -> Option<ExprId>,
    {
        if !self.may_be_together(groups, chosen) {
            return;
        }
        if let Some(of_host) = groups.hosts.get(chosen.len()) {
            for group in 0..of_host.len() {
                chosen.push(group);
                self.check_groups(question, groups, ask, chosen, own, listener);
                chosen.pop();
            }
            return;
        }
        let picked = chosen.iter().zip(&groups.hosts);
        let picked = picked.map(|(at, groups)| &groups[*at]);
        let picked: Vec<&Group<T>> = picked.collect();
        let Some(broken) = ask(self, &picked) else {
            return;
        };
        if self.worker.arena.as_const(broken) == Some(0) {
            return;
        }
        let lists: Vec<Vec<StateId>> = picked.iter().map(|(_, ids)| ids.clone()).collect();
        self.find_broken(question, broken, &lists, own, listener);
    }

    /// Returns the condition under which an invariant is broken for this exposed data; `None` if it
    /// cannot be evaluated. Results are cached.
    fn verdict(&mut self, question: &Question<'_>, shown: &[&ExposedData]) -> Option<ExprId> {
        let at = (question.file, question.number);
        if let Some(known) = self.world.verdicts.known(at, shown) {
            return known;
        }
        let broken = self.broken(question.invariant, shown);
        self.world.verdicts.remember(at, shown, broken);
        broken
    }

    /// Evaluates an invariant on exposed data. Returns the condition under which it is broken.
    fn broken(&mut self, invariant: &Invariant, shown: &[&ExposedData]) -> Option<ExprId> {
        let names = self.host_names();
        let view = view(
            names.iter().zip(shown.iter().copied()),
            &mut self.worker.arena,
        );
        let verdict = match evaluate(invariant, &view, &mut self.worker.arena) {
            Ok(verdict) => verdict,
            Err(error) => {
                self.note_failure(&error.to_string());
                return None;
            }
        };
        for failure in &verdict.failures {
            self.note_failure(&failure.error.to_string());
        }
        Some(self.worker.arena.not(verdict.holds))
    }

    /// Returns whether an invariant that is also evaluated after changes was reported then: it is
    /// not reported again at the end.
    fn is_known(&self, question: &Question<'_>) -> bool {
        let (kind, start, line, name) = self.key(question, "");
        let mut known = self.findings.all().into_iter().map(|(key, _)| key);
        question.invariant.when().contains(&When::OnChange)
            && known.any(|key| {
                key.0 == kind && key.1.starts_with(&start) && key.2 == line && key.3 == name
            })
    }

    /// Returns the key of a finding. Findings of one invariant are the same if the same host has
    /// broken it, or if it is found broken at the same time.
    fn key(&self, question: &Question<'_>, host: &str) -> (String, String, u32, String) {
        let place = match question.when {
            When::At { time_ns } => format!("{}: at {time_ns}", question.file),
            When::Eventually => format!("{}: eventually", question.file),
            When::OnChange | When::AtEnd => format!("{}: on {host}", question.file),
        };
        (
            BugKind::Invariant.name().to_owned(),
            place,
            question.invariant.place().line as u32,
            question.invariant.name().to_owned(),
        )
    }

    fn note_failure(&mut self, message: &str) {
        self.warn(format!("an invariant could not be evaluated: {message}"));
        self.note_limit("invariant");
    }

    /// Searches a feasible world of these states in which an invariant is broken.
    fn find_broken(
        &mut self,
        question: &Question<'_>,
        broken: ExprId,
        lists: &[Vec<StateId>],
        own: Option<(StateId, &State)>,
        listener: &mut dyn Listener,
    ) {
        let Some((path, chosen)) = self.choose(lists, own, Some(broken)) else {
            return;
        };
        let host = own.map_or("", |(id, _)| &self.host(self.world.table.host(id)).name);
        let key = self.key(question, host);
        if !self.findings.count(key.clone()) && !self.config.all_findings {
            return;
        }
        let bug = Bug::new(
            BugKind::Invariant,
            broken_message(question.invariant, question.when),
        );
        let traces = self.traces(&path, &chosen, own);
        let shown = own.map(|(id, state)| (id, state.clone()));
        let shown = shown.or_else(|| {
            // The state was joined with others, so it is in memory.
            let id = *chosen.first()?;
            Some((id, self.frontier.live(id)?.clone()))
        });
        if let Some((id, state)) = shown {
            let start = self.config.clock.now();
            let values = self.values_read(question.invariant, &chosen, &path, own);
            let bug = (&bug, values, key);
            self.report_finding(id, &state, bug, traces, &path, listener);
            self.world.reporting += self.config.clock.now().saturating_sub(start);
        }
    }

    /// Returns the data that an invariant reads in a world of these states, under a model of their
    /// path conditions.
    fn values_read(
        &mut self,
        invariant: &Invariant,
        chosen: &[StateId],
        path: &Path,
        own: Option<(StateId, &State)>,
    ) -> Vec<ShownValue> {
        let (names, mut shown, mut origins) = (self.host_names(), Vec::new(), Vec::new());
        for id in chosen {
            let own = own.filter(|(own, _)| own == id).map(|(_, state)| state);
            let Some(state) = own.or(self.frontier.live(*id)) else {
                return Vec::new();
            };
            origins.push(state.host.as_ref().map(|host| host.origins().clone()));
            let (arena, scratch) = (&mut self.worker.arena, &mut self.worker.scratch);
            let mut known = KnownData::new();
            for (name, bytes) in data_of(state).iter() {
                let byte = |at| match bytes.byte(arena, at) {
                    Value { term: None, bits } => bits as u8,
                    Value {
                        term: Some(term), ..
                    } => arena.eval(term, &path.model, scratch) as u8,
                };
                known.insert(name.clone(), (0..bytes.len()).map(byte).collect());
            }
            shown.push(known);
        }
        let read = read_by(invariant, &names, &shown, &mut self.worker.arena);
        let values = read.into_iter().filter_map(|(host, name)| {
            let origins = origins.get(host)?.as_ref();
            let origin = origins.and_then(|all| all.get(&name)).cloned();
            let origin = origin.unwrap_or_default();
            let written = origin.written.into_iter();
            Some(ShownValue {
                host: names.get(host)?.clone(),
                bytes: shown.get(host)?.get(&name)?.clone(),
                written: written.map(|id| self.worker.stack_of(Some(id))).collect(),
                observed: self.worker.stack_of(origin.observed),
                state: name.0,
                key: name.1,
            })
        });
        values.collect()
    }
}

/// Returns the data that a state exposes.
fn data_of(state: &State) -> ExposedData {
    state.sim().exposed(state.host.as_ref())
}

/// Returns the data that a spilled state exposes, if it is known.
fn spilled_data(net: &SpilledNet) -> Option<ExposedData> {
    net.exposed.clone()
}

/// Returns the history of a state's data, and whether parts of it were forgotten.
fn history_of(state: &State) -> (History, bool) {
    (
        state.sim().history(state.host.as_ref()),
        state.sim().has_forgotten,
    )
}

/// Returns the invariants of one occasion.
fn questions(files: &[Arc<Invariants>], when: When) -> impl Iterator<Item = Question<'_>> {
    files
        .iter()
        .enumerate()
        .flat_map(move |(file, invariants)| {
            let all = invariants.iter().enumerate();
            let asked = all.filter(move |(_, invariant)| invariant.when().contains(&when));
            asked.map(move |(number, invariant)| Question {
                invariant,
                file,
                number,
                when,
            })
        })
}
