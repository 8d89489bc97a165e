//! What must hold in every world: looked at when data that it is about changes, and at the end.

use everett_invariant::{Byte, Exposed, Invariant, When, evaluate};
use everett_linux::ExposedData;
use everett_solver::Verdict;
use everett_vm::{Buffer, Bug, BugKind, Value};

use super::member::Member;
use super::*;
use crate::mapping::{Dstate, DstateId};

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
        let places: Vec<DstateId> = self.table.places(id).collect();
        for place in places {
            if let Some(dstate) = self.table.dstate(place).cloned() {
                self.check(When::OnChange, &dstate, Some((id, member)), listener);
            }
        }
    }

    /// All worlds of a dstate are at their end.
    pub(super) fn check_at_end(&mut self, dstate: &Dstate, listener: &mut dyn WorldListener) {
        self.check(When::AtEnd, dstate, None, listener);
    }

    /// Looks at all worlds of a dstate, or at those with a state that is not in the table of states at the moment.
    fn check(
        &mut self,
        when: When,
        dstate: &Dstate,
        own: Option<(MemberId, &Member)>,
        listener: &mut dyn WorldListener,
    ) {
        for file in self.config.invariants.clone() {
            for invariant in file.iter().filter(|one| one.when().contains(&when)) {
                self.check_one(invariant, dstate, own, listener);
            }
        }
    }

    fn check_one(
        &mut self,
        invariant: &Invariant,
        dstate: &Dstate,
        own: Option<(MemberId, &Member)>,
        listener: &mut dyn WorldListener,
    ) {
        // States of a host that show the same data look the same to an invariant.
        let mut looks: Vec<Vec<(ExposedData, Vec<MemberId>)>> = Vec::new();
        for (host, members) in dstate.hosts() {
            let mut different: Vec<(ExposedData, Vec<MemberId>)> = Vec::new();
            let own = own.filter(|(id, _)| self.table.host(*id) == host);
            let members = members.iter().copied();
            for id in members.filter(|id| own.is_none_or(|(own, _)| own == *id)) {
                let member = own.map(|(_, member)| member).or(self.members.get(&id));
                let data = member.and_then(|member| member.state.host.as_ref());
                let data = data.map_or_else(ExposedData::default, |host| host.exposed().clone());
                match different.iter_mut().find(|(known, _)| same(known, &data)) {
                    Some((_, ids)) => ids.push(id),
                    None => different.push((data, vec![id])),
                }
            }
            looks.push(different);
        }
        let names: Vec<String> = dstate
            .hosts()
            .map(|(host, _)| self.host(host).name.clone())
            .collect();
        let mut chosen = Vec::new();
        self.check_looks(invariant, &names, &looks, &mut chosen, own, listener);
    }

    fn check_looks(
        &mut self,
        invariant: &Invariant,
        names: &[String],
        looks: &[Vec<(ExposedData, Vec<MemberId>)>],
        chosen: &mut Vec<usize>,
        own: Option<(MemberId, &Member)>,
        listener: &mut dyn WorldListener,
    ) {
        if chosen.len() < looks.len() {
            for look in 0..looks[chosen.len()].len() {
                chosen.push(look);
                self.check_looks(invariant, names, looks, chosen, own, listener);
                chosen.pop();
            }
            return;
        }
        let mut view = Exposed::new();
        let picked: Vec<&(ExposedData, Vec<MemberId>)> = chosen
            .iter()
            .zip(looks)
            .map(|(at, looks)| &looks[*at])
            .collect();
        for (name, (data, _)) in names.iter().zip(&picked) {
            let node = view.add_node(name.clone());
            for ((state, key), bytes) in data.iter() {
                let bytes = (0..bytes.len()).map(|at| {
                    let value: Value = bytes.byte(&mut self.worker.arena, at);
                    match value.term {
                        Some(term) => Byte::Term(term),
                        None => Byte::Known(value.bits as u8),
                    }
                });
                view.expose(node, state, key, bytes.collect());
            }
        }
        let verdict = match evaluate(invariant, &view, &mut self.worker.arena) {
            Ok(verdict) => verdict,
            Err(error) => return self.note_failure(&error.to_string()),
        };
        for failure in &verdict.failures {
            self.note_failure(&failure.error.to_string());
        }
        let broken = self.worker.arena.not(verdict.holds);
        if self.worker.arena.as_const(broken) == Some(0) {
            return;
        }
        let lists: Vec<Vec<MemberId>> = picked.iter().map(|(_, ids)| ids.clone()).collect();
        self.find_broken(invariant, broken, &lists, own, listener);
    }

    fn note_failure(&mut self, message: &str) {
        self.warn(format!("an invariant could not be evaluated: {message}"));
        self.note_limit("invariant");
    }

    /// Looks for a world of these states in which an invariant is broken.
    fn find_broken(
        &mut self,
        invariant: &Invariant,
        broken: everett_expr::ExprId,
        lists: &[Vec<MemberId>],
        own: Option<(MemberId, &Member)>,
        listener: &mut dyn WorldListener,
    ) {
        let mut chosen = Vec::new();
        let found = self.choose(Path::default(), lists, &mut chosen, own, Some(broken));
        let Some(path) = found else { return };
        let place = invariant.place();
        let file = self.place_of_change(own);
        let key = (
            BugKind::Invariant.name().to_owned(),
            file,
            place.line as u32,
            invariant.name().to_owned(),
        );
        if !self.findings.count(key) {
            return;
        }
        let message = format!("the invariant {} does not hold", invariant.name());
        let bug = Bug::new(BugKind::Invariant, message);
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

    /// Where the data changed that breaks an invariant.
    fn place_of_change(&self, own: Option<(MemberId, &Member)>) -> String {
        own.map_or_else(String::new, |(id, _)| {
            self.host(self.table.host(id)).name.clone()
        })
    }

    /// One state of each list, so that all can be together and something holds.
    pub(super) fn choose(
        &mut self,
        path: Path,
        lists: &[Vec<MemberId>],
        chosen: &mut Vec<MemberId>,
        own: Option<(MemberId, &Member)>,
        wanted: Option<everett_expr::ExprId>,
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

/// Two hosts show the same.
fn same(one: &ExposedData, other: &ExposedData) -> bool {
    std::ptr::eq(&**one, &**other)
        || one.len() == other.len()
            && one.iter().zip(other.iter()).all(|(one, other)| {
                one.0 == other.0
                    && (std::ptr::eq(&**one.1, &**other.1) || same_bytes(one.1, other.1))
            })
}

fn same_bytes(one: &Buffer, other: &Buffer) -> bool {
    one.bytes() == other.bytes()
        && (0..one.len()).all(|at| one.has_symbolic(at, 1) == other.has_symbolic(at, 1))
        && one.terms().eq(other.terms())
}
