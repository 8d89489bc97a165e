//! What must hold in every world: looked at when data that it is about changes, at times, and at the end.

use everett_expr::ExprId;
use everett_invariant::{Invariant, When, evaluate};
use everett_linux::ExposedData;
use everett_solver::Verdict;
use everett_vm::{Bug, BugKind};

use super::looks::{Story, broken_message, moments, never_held, view};
use super::member::Member;
use super::*;
use crate::mapping::{Dstate, DstateId};

/// An invariant, the number of its file, and why it is looked at.
#[derive(Copy, Clone)]
struct Question<'i> {
    invariant: &'i Invariant,
    file: usize,
    when: When,
}

/// States of a host that look the same to an invariant.
type Alike<T> = (T, Vec<MemberId>);

impl Worlds<'_> {
    /// A host shows other data.
    pub(super) fn exposed(
        &mut self,
        id: MemberId,
        member: &mut Member,
        listener: &mut dyn WorldListener,
    ) {
        if let Some(host) = &mut member.state.host {
            host.take_exposed();
        }
        if self.is_asked(When::Eventually) {
            member.note_look();
        }
        self.check_change(id, member, listener);
    }

    /// What a host shows has changed.
    pub(super) fn check_change(
        &mut self,
        id: MemberId,
        member: &Member,
        listener: &mut dyn WorldListener,
    ) {
        if !self.is_asked(When::OnChange) {
            return;
        }
        let places: Vec<DstateId> = self.table.places(id).collect();
        for place in places {
            if let Some(dstate) = self.table.dstate(place).cloned() {
                self.check(When::OnChange, &dstate, Some((id, member)), listener);
            }
        }
    }

    /// There are invariants for this.
    fn is_asked(&self, when: When) -> bool {
        let mut all = self.config.invariants.iter().flat_map(|file| file.iter());
        all.any(|invariant| invariant.when().contains(&when))
    }

    /// The next time at which invariants are looked at, if all that happens up to it has happened.
    pub(super) fn time_before(&self, next_ns: u64) -> Option<u64> {
        let most = self.config.max_virtual_ns.unwrap_or(u64::MAX);
        let time_ns = self.times.first().copied()?;
        (time_ns < next_ns && time_ns <= most).then_some(time_ns)
    }

    /// It is this time in all worlds: every call that began until then is over, and none that begins later has begun.
    pub(super) fn check_at(&mut self, time_ns: u64, listener: &mut dyn WorldListener) {
        self.times.remove(&time_ns);
        let all: Vec<DstateId> = self.table.dstates().map(|(id, _)| id).collect();
        for id in all {
            if let Some(dstate) = self.table.dstate(id).cloned() {
                self.check(When::At { time_ns }, &dstate, None, listener);
            }
        }
    }

    /// All worlds of a dstate are at their end: at times to come they will look as they do now.
    pub(super) fn check_at_end(&mut self, dstate: &Dstate, listener: &mut dyn WorldListener) {
        let most = self.config.max_virtual_ns.unwrap_or(u64::MAX);
        let times: Vec<u64> = self.times.range(..=most).copied().collect();
        for time_ns in times {
            self.check(When::At { time_ns }, dstate, None, listener);
        }
        self.check(When::AtEnd, dstate, None, listener);
        self.check(When::Eventually, dstate, None, listener);
    }

    /// Looks at all worlds of a dstate, or at those with a state that is not in the table of states at the moment.
    fn check(
        &mut self,
        when: When,
        dstate: &Dstate,
        own: Option<(MemberId, &Member)>,
        listener: &mut dyn WorldListener,
    ) {
        for (number, file) in self.config.invariants.clone().iter().enumerate() {
            for invariant in file.iter().filter(|one| one.when().contains(&when)) {
                let question = Question {
                    invariant,
                    file: number,
                    when,
                };
                if when != When::AtEnd || !self.is_known(&question) {
                    self.check_one(&question, dstate, own, listener);
                }
            }
        }
    }

    fn check_one(
        &mut self,
        question: &Question<'_>,
        dstate: &Dstate,
        own: Option<(MemberId, &Member)>,
        listener: &mut dyn WorldListener,
    ) {
        let names = dstate.hosts().map(|(host, _)| self.host(host).name.clone());
        let names: Vec<String> = names.collect();
        let mut chosen = Vec::new();
        if question.when == When::Eventually {
            let stories = self.alike(dstate, own, story_of);
            let ask = |worlds: &mut Self, picked: &[&Alike<Story>]| {
                let stories: Vec<&Story> = picked.iter().map(|(story, _)| story).collect();
                let arena = &mut worlds.worker.arena;
                let (never, failures) =
                    never_held(question.invariant, &names, &moments(&stories), arena);
                failures.iter().for_each(|one| worlds.note_failure(one));
                Some(never)
            };
            self.check_alike(question, &stories, &ask, &mut chosen, own, listener);
        } else {
            let looks = self.alike(dstate, own, look_of);
            let ask = |worlds: &mut Self, picked: &[&Alike<ExposedData>]| {
                let data = picked.iter().map(|(data, _)| data);
                worlds.broken(question.invariant, names.iter().zip(data))
            };
            self.check_alike(question, &looks, &ask, &mut chosen, own, listener);
        }
    }

    /// The states of each host, those that look the same together.
    fn alike<T: PartialEq>(
        &self,
        dstate: &Dstate,
        own: Option<(MemberId, &Member)>,
        look: fn(&Member) -> T,
    ) -> Vec<Vec<Alike<T>>> {
        let mut all = Vec::new();
        for (host, members) in dstate.hosts() {
            let mut different: Vec<Alike<T>> = Vec::new();
            let own = own.filter(|(id, _)| self.table.host(*id) == host);
            let members = members.iter().copied();
            for id in members.filter(|id| own.is_none_or(|(own, _)| own == *id)) {
                let member = own.map(|(_, member)| member).or(self.members.get(&id));
                let Some(look) = member.map(look) else {
                    continue;
                };
                match different.iter_mut().find(|(known, _)| *known == look) {
                    Some((_, ids)) => ids.push(id),
                    None => different.push((look, vec![id])),
                }
            }
            all.push(different);
        }
        all
    }

    /// Asks about every choice of looks, one of each host.
    fn check_alike<T, F>(
        &mut self,
        question: &Question<'_>,
        looks: &[Vec<Alike<T>>],
        ask: &F,
        chosen: &mut Vec<usize>,
        own: Option<(MemberId, &Member)>,
        listener: &mut dyn WorldListener,
    ) where
        F: Fn(&mut Self, &[&Alike<T>]) -> Option<ExprId>,
    {
        if chosen.len() < looks.len() {
            for look in 0..looks[chosen.len()].len() {
                chosen.push(look);
                self.check_alike(question, looks, ask, chosen, own, listener);
                chosen.pop();
            }
            return;
        }
        let picked = chosen.iter().zip(looks).map(|(at, looks)| &looks[*at]);
        let picked: Vec<&Alike<T>> = picked.collect();
        let Some(broken) = ask(self, &picked) else {
            return;
        };
        if self.worker.arena.as_const(broken) == Some(0) {
            return;
        }
        let lists: Vec<Vec<MemberId>> = picked.iter().map(|(_, ids)| ids.clone()).collect();
        self.find_broken(question, broken, &lists, own, listener);
    }

    /// That an invariant does not hold where hosts show this, as a term, if that can be said.
    fn broken<'d>(
        &mut self,
        invariant: &Invariant,
        hosts: impl Iterator<Item = (&'d String, &'d ExposedData)>,
    ) -> Option<ExprId> {
        let view = view(hosts, &mut self.worker.arena);
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

    /// What is looked at after changes too was found broken then: saying so once more at the end is of no use.
    fn is_known(&self, question: &Question<'_>) -> bool {
        let (kind, start, line, name) = self.key(question, "");
        let mut known = self.findings.iter().map(|(key, _)| key);
        question.invariant.when().contains(&When::OnChange)
            && known.any(|key| {
                key.0 == kind && key.1.starts_with(&start) && key.2 == line && key.3 == name
            })
    }

    /// Findings of one invariant are the same if the same host has broken it, or if it is found broken at the same time.
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

    /// Looks for a world of these states in which an invariant is broken.
    fn find_broken(
        &mut self,
        question: &Question<'_>,
        broken: ExprId,
        lists: &[Vec<MemberId>],
        own: Option<(MemberId, &Member)>,
        listener: &mut dyn WorldListener,
    ) {
        let mut chosen = Vec::new();
        let found = self.choose(Path::default(), lists, &mut chosen, own, Some(broken));
        let Some(path) = found else { return };
        let host = own.map_or("", |(id, _)| &self.host(self.table.host(id)).name);
        let key = self.key(question, host);
        if !self.findings.count(key) {
            return;
        }
        let bug = Bug::new(
            BugKind::Invariant,
            broken_message(question.invariant, question.when),
        );
        let traces = self.traces(&path, &chosen, own);
        let shown = own.map(|(id, member)| (id, member.clone()));
        let shown = shown.or_else(|| {
            let id = *chosen.first()?;
            Some((id, self.members.get(&id)?.clone()))
        });
        if let Some((id, member)) = shown {
            self.tell(id, &member, &bug, traces, &path, listener);
        }
    }

    /// One state of each list, so that all can be together and something holds.
    pub(super) fn choose(
        &mut self,
        path: Path,
        lists: &[Vec<MemberId>],
        chosen: &mut Vec<MemberId>,
        own: Option<(MemberId, &Member)>,
        wanted: Option<ExprId>,
    ) -> Option<Path> {
        let Some((first, others)) = lists.split_first() else {
            let mut path = path;
            let Some(wanted) = wanted else {
                return Some(path);
            };
            let worker = &mut self.worker;
            let (arena, solver) = (&mut worker.arena, &mut worker.solver);
            return match solver.check(arena, &path.constraints, &path.model, wanted) {
                Verdict::Sat(model) => {
                    path.model = model;
                    Some(path)
                }
                Verdict::Unsat => None,
                Verdict::Unknown(reason) => {
                    self.solver_gave_up(&reason);
                    None
                }
            };
        };
        for candidate in first {
            let member = own
                .filter(|(id, _)| id == candidate)
                .map(|(_, member)| member);
            let other = member
                .or(self.members.get(candidate))
                .map(|one| one.state.path.clone());
            let Some(other) = other else { continue };
            let mut joined = path.clone();
            if !self.join(&mut joined, &other, true) {
                continue;
            }
            chosen.push(*candidate);
            if let Some(found) = self.choose(joined, others, chosen, own, wanted) {
                return Some(found);
            }
            chosen.pop();
        }
        None
    }
}

/// What a state shows.
fn look_of(member: &Member) -> ExposedData {
    let host = member.state.host.as_ref();
    host.map_or_else(ExposedData::default, |host| host.exposed().clone())
}

/// What a state showed, from its start on.
fn story_of(member: &Member) -> Story {
    Story {
        looks: member.looks.clone(),
        last: look_of(member),
    }
}
