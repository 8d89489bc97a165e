//! How worlds end: findings, with one world in which they happen, and ends.

use everett_expr::ExprId;
use everett_linux::Ending;
use everett_vm::{Bug, BugKind, Value};

use super::member::Member;
use super::post::Doing;
use super::*;
use crate::finding::{Finding, PathEnding, uncaught_signal};
use crate::mapping::{Dstate, DstateId};

/// A finding in a world.
#[derive(Clone, Debug)]
pub struct WorldFinding {
    /// What and where.
    pub finding: Finding,
    /// The host that it is on.
    pub host: String,
    /// What leads there: inputs and choices of every host.
    pub traces: BTreeMap<String, Trace>,
    /// What each host was doing then, where one world is followed.
    pub standing: Vec<HostStanding>,
    /// What hosts had sent each other, where one world is followed.
    pub messages: Vec<Message>,
}

/// How a host has to end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Expects {
    /// With this status, or any.
    Exit(Option<i32>),
    /// By this signal, or any.
    Signal(Option<i32>),
    /// Not at all.
    Running,
}

impl Expects {
    /// A host that is ended by a signal ends as it has to.
    pub fn is_signal(self, signal: i32) -> bool {
        matches!(self, Expects::Signal(wanted) if wanted.is_none_or(|wanted| wanted == signal))
    }
}

impl std::fmt::Display for Expects {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expects::Exit(Some(status)) => write!(to, "end with {status}"),
            Expects::Exit(None) => to.write_str("exit"),
            Expects::Signal(Some(signal)) => write!(to, "be ended by signal {signal}"),
            Expects::Signal(None) => to.write_str("be ended by a signal"),
            Expects::Running => to.write_str("go on"),
        }
    }
}

/// Worlds of a dstate that are told one by one at most: there may be more than anybody could read.
const MOST_WORLDS: usize = 1 << 16;

impl Worlds<'_> {
    /// The programs of a host have ended. `true` if its state is gone with that.
    pub(super) fn ended(
        &mut self,
        id: MemberId,
        member: &mut Member,
        ending: Ending,
        listener: &mut dyn WorldListener,
    ) -> bool {
        for warning in member.state.host.iter().flat_map(|host| host.warnings()) {
            self.warn(warning.clone());
        }
        let bug = match &ending {
            Ending::Bug(bug) => {
                let mut bug = bug.clone();
                self.worker.name_abort(&member.state, &mut bug);
                bug
            }
            Ending::Signal(signal) if self.expects_signal(id, *signal) => {
                member.doing = Doing::Over;
                member.ending = Some(ending);
                return false;
            }
            Ending::Signal(signal) => Box::new(uncaught_signal(*signal)),
            Ending::EndPath | Ending::SetUp => {
                self.statistics.paths_partial += 1;
                self.finish_worlds_with(id);
                return true;
            }
            Ending::Exit(_) | Ending::Idle => {
                member.doing = Doing::Over;
                member.ending = Some(ending);
                return false;
            }
        };
        self.report(id, member, &bug, None, listener);
        if bug.kind.is_own_limit() {
            self.note_limit("unsupported");
            self.statistics.paths_partial += 1;
            let weight = self.weight_with(id);
            self.statistics.unknown.add_sum(&weight);
            self.forget(id);
        } else {
            self.statistics.paths_completed += 1;
            self.finish_worlds_with(id);
        }
        true
    }

    /// Tells of a finding if it is the first at its place and there is a world with it, in which something holds.
    fn report(
        &mut self,
        id: MemberId,
        member: &Member,
        bug: &Bug,
        wanted: Option<ExprId>,
        listener: &mut dyn WorldListener,
    ) {
        let name = self.host(self.table.host(id)).name.clone();
        let place = self.worker.place_of(&member.state, bug);
        let mut key = place.key(bug);
        key.3 = format!("{name}:{}", key.3);
        if self.findings.contains(&key) {
            self.findings.count(key);
            return;
        }
        let places: Vec<DstateId> = self.table.places(id).collect();
        let own = Some((id, member));
        for dstate in places {
            let Some(dstate) = self.table.dstate(dstate).cloned() else {
                continue;
            };
            let host = self.table.host(id);
            let lists: Vec<Vec<MemberId>> = dstate
                .hosts()
                .map(|(other, members)| match other == host {
                    true => vec![id],
                    false => members.iter().copied().collect(),
                })
                .collect();
            let mut chosen = Vec::new();
            let Some(path) = self.choose(Path::default(), &lists, &mut chosen, own, wanted) else {
                continue;
            };
            self.findings.count(key);
            let traces = self.traces(&path, &chosen, own);
            self.tell(id, member, bug, traces, &path, listener);
            return;
        }
        // No world has it: the states that could have met it never do.
        self.counted.impossible += 1;
    }

    /// Traces of the states of a world under a model of what all of them went through.
    pub(super) fn traces(
        &self,
        path: &Path,
        chosen: &[MemberId],
        own: Option<(MemberId, &Member)>,
    ) -> BTreeMap<String, Trace> {
        let mut traces = BTreeMap::new();
        for id in chosen {
            let name = self.host(self.table.host(*id)).name.clone();
            let own = own.filter(|(own, _)| own == id).map(|(_, member)| member);
            if let Some(member) = own.or(self.members.get(id)) {
                traces.insert(name, member.state.path.trace_under(&path.model));
            }
        }
        traces
    }

    /// Tells of a finding on a host.
    pub(super) fn tell(
        &mut self,
        id: MemberId,
        member: &Member,
        bug: &Bug,
        mut traces: BTreeMap<String, Trace>,
        path: &Path,
        listener: &mut dyn WorldListener,
    ) {
        let name = self.host(self.table.host(id)).name.clone();
        let place = self.worker.place_of(&member.state, bug);
        let mut state = member.state.clone();
        state.path.model = path.model.clone();
        let ending = PathEnding::Bug(bug.kind);
        let mut trace = traces.get(&name).cloned().unwrap_or_default();
        trace.end = Some(self.worker.trace_end(&state, &ending));
        traces.insert(name.clone(), trace.clone());
        let output = self.worker.output(&state);
        let finding = self.worker.finding(&state, bug, place, trace, output);
        self.note_standing(Some((id, member)));
        listener.finding(&WorldFinding {
            finding,
            host: name,
            traces,
            standing: self.standing.clone(),
            messages: self.messages(),
        });
    }

    /// Nothing will happen any more: all worlds are at their end.
    pub(super) fn finish_all(&mut self, listener: &mut dyn WorldListener) {
        self.note_standing(None);
        let all: Vec<DstateId> = self.table.dstates().map(|(id, _)| id).collect();
        for id in all {
            let Some(dstate) = self.table.dstate(id).cloned() else {
                continue;
            };
            self.check_expectations(&dstate, listener);
            self.check_at_end(&dstate, listener);
            let weight = weight_of(&dstate, |id| self.weight(id));
            self.statistics.finished.add_sum(&weight);
            let counts = dstate.hosts().map(|(_, members)| members.len() as u128);
            let worlds = counts.fold(1u128, u128::saturating_mul);
            self.counted.worlds = self.counted.worlds.saturating_add(worlds);
            let worlds = u64::try_from(worlds).unwrap_or(u64::MAX);
            self.statistics.paths_completed =
                self.statistics.paths_completed.saturating_add(worlds);
            if self.config.all_tests {
                self.tell_worlds(&dstate, listener);
            }
            for gone in self.table.finish(id) {
                self.members.remove(&gone);
            }
        }
        self.queue.clear();
        self.places.clear();
    }

    /// A host that had to end in a certain way and did not is a finding.
    fn check_expectations(&mut self, dstate: &Dstate, listener: &mut dyn WorldListener) {
        for id in dstate.members().collect::<Vec<_>>() {
            let host = self.table.host(id);
            let Some(expected) = self.host(host).expects else {
                continue;
            };
            let Some(member) = self.members.get(&id).cloned() else {
                continue;
            };
            if let Doing::Off(_) = member.doing {
                continue;
            }
            let wanted = match (expected, &member.ending) {
                (Expects::Exit(None), Some(Ending::Exit(_)))
                | (Expects::Signal(_), Some(Ending::Signal(_)))
                | (Expects::Running, None) => continue,
                (Expects::Exit(Some(expected)), Some(Ending::Exit(status))) => {
                    let different = self.differs(*status, expected);
                    if self.worker.arena.as_const(different) == Some(0) {
                        continue;
                    }
                    Some(different)
                }
                _ => None,
            };
            let (kind, message) = match &member.ending {
                Some(_) => (
                    BugKind::Expectation,
                    format!("it does not {expected} as expected"),
                ),
                None => (
                    BugKind::Deadlock,
                    format!("it waits for ever, and should {expected}"),
                ),
            };
            let bug = Bug::new(kind, message);
            self.report(id, &member, &bug, wanted, listener);
        }
    }

    /// A host is ended by this signal as it has to be.
    fn expects_signal(&self, id: MemberId, signal: i32) -> bool {
        let expects = self.host(self.table.host(id)).expects;
        expects.is_some_and(|expects| expects.is_signal(signal))
    }

    /// That a status, which may be symbolic, is not this one.
    fn differs(&mut self, status: Value, expected: i32) -> ExprId {
        let arena = &mut self.worker.arena;
        let constant = arena.constant(8, expected as u64 & 0xff);
        let status = match status.term {
            Some(term) => term,
            None => arena.constant(8, status.bits & 0xff),
        };
        let same = arena.eq(status, constant);
        arena.not(same)
    }

    /// Tells of every world of a dstate that can be.
    fn tell_worlds(&mut self, dstate: &Dstate, listener: &mut dyn WorldListener) {
        let lists: Vec<Vec<MemberId>> = dstate
            .hosts()
            .map(|(_, members)| members.iter().copied().collect())
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
        lists: &[Vec<MemberId>],
        chosen: &mut Vec<MemberId>,
        told: &mut usize,
        listener: &mut dyn WorldListener,
    ) {
        if *told >= MOST_WORLDS {
            return;
        }
        let Some((first, others)) = lists.split_first() else {
            *told += 1;
            return self.tell_world(&path, chosen, listener);
        };
        for candidate in first {
            let Some(other) = self
                .members
                .get(candidate)
                .map(|one| one.state.path.clone())
            else {
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

    fn tell_world(&mut self, path: &Path, chosen: &[MemberId], listener: &mut dyn WorldListener) {
        let (mut traces, mut saved) = (BTreeMap::new(), SavedFiles::new());
        for id in chosen {
            let name = self.host(self.table.host(*id)).name.clone();
            let Some(member) = self.members.get(id) else {
                continue;
            };
            let (mut state, ending) = (member.state.clone(), member.ending.clone());
            state.path.model = path.model.clone();
            let ending = match ending {
                Some(Ending::Exit(status)) => {
                    PathEnding::Exit(self.worker.value(&state, status) as i32)
                }
                Some(Ending::Signal(signal)) => PathEnding::Signal(signal),
                _ if matches!(member.doing, Doing::Off(_)) => PathEnding::Off,
                _ => PathEnding::Idle,
            };
            let mut trace = state.path.trace_under(&path.model);
            trace.end = Some(self.worker.trace_end(&state, &ending));
            let files = self.worker.saved_files(&state);
            if !files.is_empty() {
                saved.insert(name.clone(), files);
            }
            traces.insert(name, trace);
        }
        listener.world(&traces, &saved);
    }
}
