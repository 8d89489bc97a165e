//! The end of a path: counts it, reports findings, and makes a trace where a test is wanted.

use super::limits::STOP_AT;
use super::*;
use everett_expr::Arena;
use everett_linux::{ChangedFile, Host, PreemptionPoint, Refusal, never_injected};
use everett_solver::Verdict;
use everett_vm::{CallSite, MOST_FRAMES, leak_finding, leaked_blocks};
use std::collections::btree_map::Entry;

use crate::finding::{PathEnding, Unsupported, uncaught_signal};
use crate::source::{SourceFrame, describe, principal};

/// Returns the finding for leaked memory, if some process of the host leaks.
fn leak(arena: &Arena, host: &Host) -> Option<Bug> {
    host.processes()
        .find_map(|(memory, threads)| leak_finding(&leaked_blocks(memory, &threads, arena)))
}

impl Explorer<'_> {
    /// Cuts a path off at a limit: the weight below it is unknown.
    pub(super) fn cut(
        &mut self,
        id: StateId,
        mut state: Box<State>,
        why: &'static str,
        listener: &mut dyn Listener,
    ) {
        self.tell_output(&mut state, listener);
        self.statistics.unknown.add(state.path.weight);
        self.count_partial();
        self.close(id, &state, PathEnding::Cut(why), None, listener);
    }

    /// Ends a path: counts it, reports its finding if there is one, and makes its trace if a test
    /// is wanted.
    pub(super) fn end(
        &mut self,
        id: StateId,
        mut state: Box<State>,
        ending: Ending,
        listener: &mut dyn Listener,
    ) {
        let ending = self.check_leaks(&state, ending);
        if state.path.second.is_some() {
            return self.end_second(id, state, ending, listener);
        }
        let goes_on = self.goes_on(id, &state, &ending);
        if goes_on && state.path.follow.is_some() {
            // It is rematerialised: the listener was told of its end before.
            self.frontier.remove(id);
            self.searcher.removed(id);
            return;
        }
        self.tell_output(&mut state, listener);
        listener.ended(&mut StateView::new(id, &state, &mut self.worker), &ending);
        let is_cut = matches!(&ending, Ending::Bug(bug) if self.is_cut_by(&state, bug));
        let is_silent = matches!(&ending, Ending::EndPath);
        if !goes_on {
            self.count_end(&state, is_cut, is_silent);
        }
        let signal = match &ending {
            Ending::Signal(signal) => Some(*signal),
            _ => None,
        };
        let bug = match ending {
            Ending::Bug(mut bug) => {
                self.worker.name_abort(&state, &mut bug);
                bug
            }
            Ending::Exit(status) => {
                let wanted = self.wants_test(&state);
                if wanted {
                    self.settle_preferences(&mut state.path);
                }
                let status = match status.term {
                    None => status.bits,
                    Some(term) => {
                        self.worker
                            .arena
                            .eval(term, &state.path.model, &mut self.worker.scratch)
                    }
                };
                let trace = wanted.then(|| state.path.trace_under(&state.path.model));
                return self.close(id, &state, PathEnding::Exit(status as i32), trace, listener);
            }
            Ending::Signal(signal) => Box::new(uncaught_signal(signal)),
            Ending::Idle => {
                let wanted = self.wants_test(&state);
                let trace = wanted.then(|| state.path.trace_under(&state.path.model));
                return self.close(id, &state, PathEnding::Idle, trace, listener);
            }
            Ending::EndPath => return self.close(id, &state, PathEnding::Silent, None, listener),
            Ending::SetUp => return self.set_up(id, &state, listener),
        };
        let path_ending = match signal {
            Some(signal) => PathEnding::Signal(signal),
            None => PathEnding::Bug(bug.kind),
        };
        self.settle_preferences(&mut state.path);
        let trace = state.path.trace_under(&state.path.model);
        let output = self.worker.output(&state);
        let mut trace = trace;
        let mut end = self.worker.trace_end(&state, &path_ending);
        if let Some(other) = bug.other {
            end.races_with = self.worker.frames_of(other);
        }
        trace.end = Some(end);
        let first = self.report(&state, &bug, trace.clone(), output, listener);
        let trace = (first || self.config.all_tests || self.config.all_findings).then_some(trace);
        self.close(id, &state, path_ending, trace, listener);
    }

    /// Counts a path that was cut off.
    pub(super) fn count_partial(&mut self) {
        self.statistics.paths_partial += 1;
        if let Some(member) = &self.member {
            let all = member.counter(Counted::Paths);
            all.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a path that has ended, and its weight.
    pub(super) fn count_end(&mut self, state: &State, is_cut: bool, is_silent: bool) {
        match is_cut {
            true => self.statistics.unknown.add(state.path.weight),
            false => self.statistics.finished.add(state.path.weight),
        }
        if is_cut || is_silent {
            self.statistics.paths_partial += 1;
        } else {
            self.statistics.paths_completed += 1;
        }
    }

    /// Returns whether a finding only cuts a path off, because a limit was reached or Everett does
    /// not support what the program does: what the path would do next is unknown.
    pub(crate) fn is_cut_by(&mut self, state: &State, bug: &Bug) -> bool {
        if bug.kind == BugKind::Unsupported && bug.message.starts_with(MOST_FRAMES) {
            self.note_limit(FRAMES);
        } else if bug.kind.is_tool_limit() && state.limits_hit().is_empty() {
            self.note_limit("unsupported");
        }
        bug.kind.is_tool_limit() || bug.kind == BugKind::Hang
    }

    /// Collects the warnings, limits, refusals and injected failures of a state's kernel. The first
    /// `warned` warnings are known already.
    pub(crate) fn hear(&mut self, state: &State, warned: usize) {
        for warning in state.warnings().iter().skip(warned) {
            self.warn(warning.clone());
        }
        for limit in state.limits_hit() {
            self.note_limit(limit);
        }
        for refusal in state.refusals() {
            self.note_refusal(refusal);
        }
        self.note_injected(state);
    }

    /// Records which failures were injected into the host of a state.
    fn note_injected(&mut self, state: &State) {
        let Some(host) = &state.host else {
            return;
        };
        let number = state.net.as_ref().map_or(0, |net| net.host.index() as u32);
        for failure in host.injected_failures() {
            let known = self.statistics.injected.entry(number).or_default();
            if !known.contains(&*failure.what) {
                known.insert(failure.what.clone().into_owned());
            }
        }
    }

    /// Returns the failures that the configuration asks for (`--fault`, `fault_calls`) and that no
    /// path has injected.
    pub fn failures_never_injected(&self) -> Vec<String> {
        let hosts = self.config.hosts.iter().zip(0..);
        never_injected(hosts.map(|(host, number)| {
            let injected = self.statistics.injected.get(&number);
            (&host.config.options.faults, injected)
        }))
    }

    /// Returns the requests that kernels refused, to report them to the lead.
    pub(crate) fn refused(&self) -> Vec<Refusal> {
        let refused = self.refusals.iter();
        let refused = refused.map(|((call, what, sites), count)| Refusal {
            call: call.clone(),
            what: what.clone(),
            sites: sites.clone(),
            count: *count,
        });
        refused.collect()
    }

    /// Records a request that a kernel refused, and warns of it the first time.
    pub(crate) fn note_refusal(&mut self, refusal: &Refusal) {
        let key = (
            refusal.call.clone(),
            refusal.what.clone(),
            refusal.sites.clone(),
        );
        let known = self.refusals.entry(key);
        let is_new = matches!(known, Entry::Vacant(_));
        let count = known.or_default();
        *count = (*count).max(refusal.count);
        if is_new {
            let place = self.place_of_refusal(&refusal.sites);
            let place = place.map(|at| format!(", in {} at {}:{}", at.function, at.file, at.line));
            let place = place.unwrap_or_default();
            self.warn(format!("{} is not modelled{place}", refusal.what));
        }
    }

    fn place_of_refusal(&self, sites: &[CallSite]) -> Option<SourceFrame> {
        let frames = describe(self.worker.images, sites);
        principal(&frames).cloned()
    }

    /// Returns the requests that kernels refused although Linux would serve them.
    pub fn unsupported(&self) -> Vec<Unsupported> {
        let mut all = self.earlier_refusals.clone();
        for ((call, what, sites), count) in &self.refusals {
            let place = self.place_of_refusal(sites).unwrap_or_default();
            let new = Unsupported {
                call: call.clone(),
                what: what.clone(),
                function: place.function,
                file: place.file,
                line: place.line,
                count: *count,
            };
            match all.iter_mut().find(|known| known.is_same(&new)) {
                Some(known) => known.count = known.count.max(new.count),
                None => all.push(new),
            }
        }
        all
    }

    /// Ends a path that has declared itself a host of a world, and tells the listener.
    fn set_up(&mut self, id: StateId, state: &State, listener: &mut dyn Listener) {
        self.frontier.remove(id);
        self.searcher.removed(id);
        if let Some(host) = &state.host {
            let trace = state.path.pending_trace(&mut Sharing::default());
            listener.set_up(host.setup(), &trace);
        }
    }

    /// Returns whether a test is made for a path that ends without a finding.
    pub(super) fn wants_test(&self, state: &State) -> bool {
        self.config.all_tests || state.covered_new
    }

    /// Replaces the exit of a path by a finding if its host leaks memory and that is checked.
    pub(crate) fn check_leaks(&self, state: &State, ending: Ending) -> Ending {
        let Ending::Exit(_) = &ending else {
            return ending;
        };
        if !self.config.check_leaks {
            return ending;
        }
        match state
            .host
            .as_ref()
            .and_then(|host| leak(&self.worker.arena, host))
        {
            Some(bug) => Ending::Bug(Box::new(bug)),
            None => ending,
        }
    }

    /// Reports a finding if it is the first at its location. Returns whether it is.
    pub(super) fn report(
        &mut self,
        state: &State,
        bug: &Bug,
        trace: Trace,
        output: [Vec<u8>; 2],
        listener: &mut dyn Listener,
    ) -> bool {
        let place = self.worker.place_of(state, bug);
        let key = place.key(bug, self.config.findings_by_instruction);
        let first = self.findings.count(key.clone());
        if self.config.stop_at.contains(&bug.kind) {
            self.note_limit(STOP_AT);
            self.count(Counted::Stops, 1);
        }
        if !first && !self.config.all_findings {
            return false;
        }
        let files = self.changed_files(state);
        let finding = self.worker.finding(state, bug, place, trace, output);
        let finding = Finding { files, ..finding };
        let host = &self.config.hosts[0].name;
        listener.finding(&WorldFinding::alone(finding, host, key));
        first
    }

    /// Changes the model so that it satisfies as many preferences as possible, in their order.
    pub(crate) fn settle_preferences(&mut self, path: &mut Path) {
        let preferences = path.preferences.clone();
        let mut constraints = path.constraints.clone();
        for preference in preferences.iter() {
            let holds = self
                .worker
                .arena
                .eval(*preference, &path.model, &mut self.worker.scratch)
                != 0;
            if !holds {
                match self.worker.solver.check(
                    &mut self.worker.arena,
                    &constraints,
                    &path.model,
                    *preference,
                ) {
                    Verdict::Sat(model) => path.model = model,
                    _ => continue,
                }
            }
            constraints.add(&mut self.worker.arena, *preference);
        }
    }

    /// Returns the files that a path changed, if the user or the program asks for them.
    pub(crate) fn changed_files(&mut self, state: &State) -> Vec<(ChangedFile, Vec<u8>)> {
        let host = state.host.as_ref().filter(|_| self.config.keep_files);
        match host.map(Host::changed_files) {
            Some(files) => self.worker.written(state, files),
            None => self.worker.saved_files(state),
        }
    }

    /// Tells the listener what a state has printed since the last time.
    pub(super) fn tell_output(&mut self, state: &mut State, listener: &mut dyn Listener) {
        if !self.config.tell_output {
            return;
        }
        let output = self.worker.output_since(state);
        if output.iter().any(|bytes| !bytes.is_empty()) {
            listener.printed(&output);
        }
        let notes = state.path.take_notes();
        if !notes.is_empty() {
            listener.noted(&notes);
        }
    }

    /// Removes the state of an ended path from the frontier and tells the listener.
    fn close(
        &mut self,
        id: StateId,
        state: &State,
        ending: PathEnding,
        mut trace: Option<Trace>,
        listener: &mut dyn Listener,
    ) {
        self.frontier.remove(id);
        self.searcher.removed(id);
        self.hear(state, 0);
        if let Some(trace) = &mut trace
            && trace.end.is_none()
        {
            trace.end = Some(self.worker.trace_end(state, &ending));
        }
        let output = if self.config.keep_output {
            self.worker.output(state)
        } else {
            [Vec::new(), Vec::new()]
        };
        self.count_faults(state);
        let calls = state.host.as_ref().map_or(&[][..], Host::log).to_vec();
        let files = match &trace {
            Some(_) => self.changed_files(state),
            None => Vec::new(),
        };
        let passed = state.host.as_ref().map_or(&[][..], Host::points);
        let place = |point: &PreemptionPoint| {
            let frames = crate::source::describe(self.worker.images, &[point.site]);
            (*point, frames.into_iter().next().unwrap_or_default())
        };
        let points = passed.iter().map(place).collect();
        listener.path(&PathEnd {
            files,
            calls,
            points,
            ending,
            trace,
            covered_new: state.covered_new,
            digest: state.path.digest,
            weight: state.path.weight,
            depth: state.path.depth,
            instructions: state.instructions(),
            output,
        });
    }

    /// Counts which failures could be injected on a path, and which were.
    pub(crate) fn count_faults(&mut self, state: &State) {
        for choice in state.path.choices.iter() {
            let Some(call) = choice.site.fault_target() else {
                continue;
            };
            for (number, failure) in (1..).zip(choice.site.faults()) {
                let name = format!("{call}:{failure}");
                let fired = self.statistics.faults.entry(name).or_default();
                *fired += u64::from(choice.picked == number);
            }
        }
    }
}
