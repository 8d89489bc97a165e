//! The end of hosts in worlds: reports findings, each with one world in which it happens, and
//! checks expectations.

use everett_expr::ExprId;
use everett_linux::Ending;
use everett_sim::{Expected, Expects, RunState, first_expects};
use everett_vm::{Bug, Value};

use super::*;
use crate::finding::{Finding, FindingKey, PathEnding, ShownValue, WorldFinding, uncaught_signal};
use crate::mapping::Dstate;
use crate::trace::TraceEnd;

impl Explorer<'_> {
    /// Handles the end of a host's programs. Returns whether the state is removed.
    pub(super) fn ended(
        &mut self,
        id: StateId,
        state: &mut State,
        ending: Ending,
        listener: &mut dyn Listener,
    ) -> bool {
        if !self.leave_beyond(id) {
            return true;
        }
        listener.ended(&mut StateView::new(id, state, &mut self.worker), &ending);
        let bug = match &ending {
            Ending::Bug(bug) => {
                let mut bug = bug.clone();
                self.worker.name_abort(state, &mut bug);
                bug
            }
            Ending::Signal(signal) if self.expects_signal(id, *signal) => {
                state.sim_mut().run_state = RunState::Ended;
                state.net_mut().ending = Some(ending);
                return false;
            }
            Ending::Signal(signal) => Box::new(uncaught_signal(*signal)),
            Ending::EndPath | Ending::SetUp => {
                self.statistics.paths_partial += 1;
                self.finish_worlds_with(id);
                return true;
            }
            Ending::Exit(_) | Ending::Idle => {
                // The world continues after a leak: other hosts may leak, too.
                if let Ending::Bug(leak) = self.check_leaks(state, ending.clone()) {
                    let dstates = self.dstates_with(id);
                    self.report_in_world(id, state, (&leak, ""), None, &dstates, listener);
                }
                if matches!(ending, Ending::Exit(_)) && listener.ends_world(state.net().host) {
                    self.prune_worlds_with(id);
                    return true;
                }
                state.sim_mut().run_state = RunState::Ended;
                state.net_mut().ending = Some(ending);
                return false;
            }
        };
        let dstates = self.dstates_with(id);
        self.report_in_world(id, state, (&bug, ""), None, &dstates, listener);
        if self.world.has_open_questions {
            // It is not known whether a world ends like this, and the state cannot reach this point
            // again.
            self.note_limit("interrupted");
            self.cut_worlds_with(id);
        } else if self.is_cut_by(state, &bug) {
            self.cut_worlds_with(id);
        } else {
            self.statistics.paths_completed += 1;
            self.finish_worlds_with(id);
        }
        true
    }

    /// Returns the dstates of a state, as they are now.
    fn dstates_with(&self, id: StateId) -> Vec<Dstate> {
        let table = &self.world.table;
        let dstates = table.dstates_of(id).into_iter();
        dstates.filter_map(|id| table.dstate(id)).collect()
    }

    /// Reports a finding, which may be about one process, if it is the first at its location and
    /// one of these dstates has a feasible world with it in which `wanted` holds.
    fn report_in_world(
        &mut self,
        id: StateId,
        state: &State,
        (bug, process): (&Bug, &str),
        wanted: Option<ExprId>,
        dstates: &[Dstate],
        listener: &mut dyn Listener,
    ) {
        let name = self.host(self.world.table.host(id)).name.clone();
        let place = self.worker.place_of(state, bug);
        let mut key = place.key(bug, self.config.findings_by_instruction);
        key.3 = format!("{name}{process}:{}", key.3);
        let own = Some((id, state));
        let host = self.world.table.host(id);
        for dstate in dstates {
            let lists = dstate.hosts().map(|(other, members)| match other == host {
                true => vec![id],
                false => members.to_vec(),
            });
            let lists: Vec<Vec<StateId>> = lists.collect();
            if !self.may_be_within(&lists) {
                continue;
            }
            if self.findings.contains(&key) && !self.config.all_findings {
                self.findings.count(key);
                return;
            }
            let Some((path, chosen)) = self.choose(&lists, own, wanted) else {
                continue;
            };
            if !self.findings.count(key.clone()) && !self.config.all_findings {
                // Another worker has reported it meanwhile.
                return;
            }
            let traces = self.traces(&path, &chosen, own);
            let bug = (bug, Vec::new(), key);
            self.report_finding(id, state, bug, traces, &path, listener);
            return;
        }
        // The finding is in no feasible world: its state never meets the states it would need.
        self.world.counted.impossible += 1;
    }

    /// Returns how the host of a state has ended in a world with the state's model; `None` if it has
    /// not.
    pub(super) fn host_ending(&mut self, state: &State) -> Option<PathEnding> {
        match state.net().ending.clone() {
            Some(Ending::Exit(status)) => {
                Some(PathEnding::Exit(self.worker.value(state, status) as i32))
            }
            Some(Ending::Signal(signal)) => Some(PathEnding::Signal(signal)),
            _ => state.sim().is_off().then_some(PathEnding::Off),
        }
    }

    /// Returns the traces of a world's states under a model of their joined path condition, with
    /// the ends of the hosts that have ended.
    pub(super) fn traces(
        &mut self,
        path: &Path,
        chosen: &[StateId],
        own: Option<(StateId, &State)>,
    ) -> BTreeMap<String, Trace> {
        let mut traces = BTreeMap::new();
        for id in chosen {
            let name = self.host(self.world.table.host(*id)).name.clone();
            let own = own.filter(|(own, _)| own == id).map(|(_, state)| state);
            let Some(state) = own.or(self.frontier.live(*id)) else {
                continue;
            };
            let mut trace = state.path.trace_under(&path.model);
            let is_off_for_good = state.sim().run_state == RunState::Off(None);
            if state.net().ending.is_some() || is_off_for_good {
                let mut state = state.clone();
                state.path.model = path.model.clone();
                let ending = self.host_ending(&state);
                trace.end = ending.map(|ending| self.worker.trace_end(&state, &ending));
            }
            traces.insert(name, trace);
        }
        traces
    }

    /// Reports a finding on a host, with its key; `values` is the data that a broken invariant has
    /// read.
    pub(super) fn report_finding(
        &mut self,
        id: StateId,
        state: &State,
        (bug, values, key): (&Bug, Vec<ShownValue>, FindingKey),
        mut traces: BTreeMap<String, Trace>,
        path: &Path,
        listener: &mut dyn Listener,
    ) {
        let name = self.host(self.world.table.host(id)).name.clone();
        let place = self.worker.place_of(state, bug);
        let mut witness = state.clone();
        witness.path.model = path.model.clone();
        let ending = PathEnding::Bug(bug.kind);
        let mut trace = traces.get(&name).cloned().unwrap_or_default();
        // What is wrong about a world, as a broken invariant, need not end the host itself.
        let before = trace.end.take().unwrap_or_default();
        trace.end = Some(TraceEnd {
            exit: before.exit,
            signal: before.signal,
            off: before.off,
            ..self.worker.trace_end(&witness, &ending)
        });
        traces.insert(name.clone(), trace.clone());
        let output = self.worker.output(&witness);
        let files = self.changed_files(&witness);
        let finding = self.worker.finding(&witness, bug, place, trace, output);
        let finding = Finding {
            files,
            values,
            ..finding
        };
        self.note_host_status(Some((id, state)));
        listener.finding(&WorldFinding {
            finding,
            key,
            host: name,
            traces,
            host_status: self.world.host_status.clone(),
            messages: self.messages(),
        });
    }

    /// Reports a finding for each process that has not ended as the scenario expects.
    pub(super) fn check_expectations(&mut self, dstate: &Dstate, listener: &mut dyn Listener) {
        for id in dstate.members().collect::<Vec<_>>() {
            let host = self.world.table.host(id);
            let expects = self.host(host).expects.clone();
            if expects.is_empty() {
                continue;
            }
            self.load(id);
            let is_off = |state: &State| state.sim().is_off();
            if self.frontier.live(id).is_none_or(is_off) {
                continue;
            }
            // The state is taken out of the frontier for a while, which costs less than a copy.
            let Some(state) = self.take(id) else {
                continue;
            };
            for expected in expects {
                self.check_expected(id, &state, &expected, dstate, listener);
            }
            self.frontier.put(id, Stored::Live(state));
        }
    }

    /// Reports a finding if a process has not ended as expected in some world of a dstate.
    fn check_expected(
        &mut self,
        id: StateId,
        state: &State,
        expected: &Expected,
        dstate: &Dstate,
        listener: &mut dyn Listener,
    ) {
        let first = state.net().ending.clone().filter(|_| expected.number == 0);
        let host = state.host.as_ref();
        let others = !self
            .host(self.world.table.host(id))
            .config
            .others
            .is_empty();
        // A host with one program ends when that process and its children have ended.
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
        self.report_in_world(id, state, (&bug, &process), wanted, dstates, listener);
    }

    /// Returns whether the scenario expects this signal to end a host.
    fn expects_signal(&self, id: StateId, signal: i32) -> bool {
        let expects = first_expects(&self.host(self.world.table.host(id)).expects);
        expects.is_some_and(|expects| expects.is_signal(signal))
    }

    /// Returns the condition that an exit status, which may be symbolic, is not the expected one.
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
