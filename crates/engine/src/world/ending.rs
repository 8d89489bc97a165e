//! How worlds end: findings, with one world in which they happen, and ends.

use everett_expr::ExprId;
use everett_linux::Ending;
use everett_vm::{Bug, BugKind, Value};

use super::mailbox::Doing;
use super::member::Member;
use super::*;
use crate::finding::{Finding, PathEnding, uncaught_signal};
use crate::mapping::Dstate;

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

/// How a process that a host is started with has to end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// Its number; the first one is that of the host.
    pub number: usize,
    /// Its name.
    pub process: String,
    /// How.
    pub ends: Expects,
}

impl Expected {
    /// Who it is about, for people: the host itself, or one of its further processes.
    fn who(&self) -> String {
        match self.number {
            0 => "it".to_owned(),
            _ => format!("process {}", self.process),
        }
    }

    /// What is wrong where it has not ended, and nothing will happen any more.
    pub fn waits_for_ever(&self) -> (BugKind, String) {
        let message = format!("{} waits for ever, and should {}", self.who(), self.ends);
        (BugKind::Deadlock, message)
    }

    /// What is wrong where it has ended otherwise.
    pub fn ends_otherwise(&self) -> (BugKind, String) {
        let message = format!("{} does not {} as expected", self.who(), self.ends);
        (BugKind::Expectation, message)
    }
}

/// How the first process is expected to end.
pub fn first_expects(all: &[Expected]) -> Option<Expects> {
    let first = all.iter().find(|expected| expected.number == 0);
    first.map(|expected| expected.ends)
}

impl Worlds<'_> {
    /// The programs of a host have ended. `true` if its state is gone with that.
    pub(super) fn ended(
        &mut self,
        id: MemberId,
        member: &mut Member,
        ending: Ending,
        listener: &mut dyn WorldListener,
    ) -> bool {
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
        let places: Vec<Dstate> = self
            .table
            .dstates_of(id)
            .into_iter()
            .filter_map(|place| self.table.dstate(place))
            .collect();
        self.report(id, member, (&bug, ""), None, &places, listener);
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

    /// Tells of a finding, which may be about one process, if it is the first at its place and there is a world with it in these dstates, in which something holds.
    fn report(
        &mut self,
        id: MemberId,
        member: &Member,
        (bug, process): (&Bug, &str),
        wanted: Option<ExprId>,
        dstates: &[Dstate],
        listener: &mut dyn WorldListener,
    ) {
        let name = self.host(self.table.host(id)).name.clone();
        let place = self.worker.place_of(&member.state, bug);
        let mut key = place.key(bug);
        key.3 = format!("{name}{process}:{}", key.3);
        if self.findings.contains(&key) {
            self.findings.count(key);
            return;
        }
        let own = Some((id, member));
        let host = self.table.host(id);
        for dstate in dstates {
            let lists: Vec<Vec<MemberId>> = dstate
                .hosts()
                .map(|(other, members)| match other == host {
                    true => vec![id],
                    false => members.to_vec(),
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

    /// A process that had to end in a certain way and did not is a finding.
    pub(super) fn check_expectations(&mut self, dstate: &Dstate, listener: &mut dyn WorldListener) {
        for id in dstate.members().collect::<Vec<_>>() {
            let host = self.table.host(id);
            let expects = self.host(host).expects.clone();
            if expects.is_empty() {
                continue;
            }
            let is_off = |member: &Member| matches!(member.doing, Doing::Off(_));
            if self.members.get(&id).is_none_or(is_off) {
                continue;
            }
            // Taken out for a while, which costs less than a copy.
            let Some(member) = self.members.remove(&id) else {
                continue;
            };
            for expected in expects {
                self.check_expected(id, &member, &expected, dstate, listener);
            }
            self.members.insert(id, member);
        }
    }

    fn check_expected(
        &mut self,
        id: MemberId,
        member: &Member,
        expected: &Expected,
        dstate: &Dstate,
        listener: &mut dyn WorldListener,
    ) {
        let first = member.ending.clone().filter(|_| expected.number == 0);
        let host = member.state.host.as_ref();
        let others = !self.host(self.table.host(id)).config.others.is_empty();
        // A host with one process is at its end when that is, and all that it left behind.
        let ending = match host.filter(|_| others) {
            Some(host) => first.or_else(|| host.end_of(expected.number)),
            None => first,
        };
        let wanted = match (expected.ends, &ending) {
            (Expects::Exit(None), Some(Ending::Exit(_))) | (Expects::Running, None) => return,
            (Expects::Signal(_), Some(Ending::Signal(signal)))
                if expected.ends.is_signal(*signal) =>
            {
                return;
            }
            (Expects::Exit(Some(expected)), Some(Ending::Exit(status))) => {
                let different = self.differs(*status, expected);
                if self.worker.arena.as_const(different) == Some(0) {
                    return;
                }
                Some(different)
            }
            _ => None,
        };
        let (kind, message) = match &ending {
            Some(_) => expected.ends_otherwise(),
            None => expected.waits_for_ever(),
        };
        let process = match expected.number {
            0 => String::new(),
            _ => format!(" {}", expected.process),
        };
        let bug = Bug::new(kind, message);
        let dstates = std::slice::from_ref(dstate);
        self.report(id, member, (&bug, &process), wanted, dstates, listener);
    }

    /// A host is ended by this signal as it has to be.
    fn expects_signal(&self, id: MemberId, signal: i32) -> bool {
        let expects = first_expects(&self.host(self.table.host(id)).expects);
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
}
