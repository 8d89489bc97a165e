//! What happens when a path has ended: accounts, findings, tests.

use super::*;
use everett_linux::{Left, LeftFile, Passed};

/// The finding for memory that nobody can free any more.
fn leak(arena: &Arena, host: &Host) -> Option<Bug> {
    host.processes()
        .find_map(|(memory, threads)| leak_finding(&leaked_blocks(memory, &threads, arena)))
}

impl Explorer<'_> {
    pub(super) fn cut(
        &mut self,
        id: StateId,
        state: Box<State>,
        why: &'static str,
        listener: &mut dyn Listener,
    ) {
        self.statistics.unknown.add(state.path.weight);
        self.statistics.paths_partial += 1;
        self.close(id, &state, PathEnding::Cut(why), None, listener);
    }

    /// A path has ended.
    pub(super) fn end(
        &mut self,
        id: StateId,
        mut state: Box<State>,
        ending: Ending,
        listener: &mut dyn Listener,
    ) {
        let ending = self.check_leaks(&state, ending);
        let is_own_limit = matches!(&ending, Ending::Bug(bug) if bug.kind.is_own_limit());
        let is_silent = matches!(&ending, Ending::EndPath);
        if is_own_limit {
            self.statistics.unknown.add(state.path.weight);
            self.note_limit("unsupported");
        } else {
            self.statistics.finished.add(state.path.weight);
        }
        if is_own_limit || is_silent {
            self.statistics.paths_partial += 1;
        } else {
            self.statistics.paths_completed += 1;
        }
        if let Some(host) = &state.host {
            for warning in host.warnings() {
                let warning = warning.to_string();
                if !self.warnings.contains(&warning) {
                    self.warnings.push(warning);
                }
            }
        }
        let signal = match &ending {
            Ending::Signal(signal) => Some(*signal),
            _ => None,
        };
        let bug = match ending {
            Ending::Bug(mut bug) => {
                if let (BugKind::Abort, Some(host)) = (bug.kind, &state.host) {
                    bug.kind = kind_of_abort(self.images, &host.stack());
                    match bug.kind {
                        BugKind::Panic => bug.message = "a panic aborted the program".to_owned(),
                        BugKind::UncaughtException => {
                            bug.message =
                                "an exception that may go no further ended the program".to_owned();
                        }
                        _ => {}
                    }
                }
                bug
            }
            Ending::Exit(status) => {
                let wanted = self.wants_test(&state);
                if wanted {
                    self.settle_preferences(&mut state.path);
                }
                let status = match status.term {
                    None => status.bits,
                    Some(term) => self.arena.eval(term, &state.path.model, &mut self.scratch),
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
        };
        let path_ending = match signal {
            Some(signal) => PathEnding::Signal(signal),
            None => PathEnding::Bug(bug.kind),
        };
        self.settle_preferences(&mut state.path);
        let trace = state.path.trace_under(&state.path.model);
        let output = self.output(&state);
        let mut trace = trace;
        let mut end = self.trace_end(&state, &path_ending);
        if let Some(other) = bug.other {
            end.races_with = describe_ends(self.images, &self.stacks.sites(other));
            end.races_with.truncate(MOST_FRAMES);
        }
        trace.end = Some(end);
        let first = self.report(&state, &bug, trace.clone(), output, listener);
        let trace = (first || self.config.all_tests || self.config.all_findings).then_some(trace);
        self.close(id, &state, path_ending, trace, listener);
    }

    pub(super) fn wants_test(&self, state: &State) -> bool {
        self.config.all_tests || state.covered_new
    }

    fn check_leaks(&self, state: &State, ending: Ending) -> Ending {
        let Ending::Exit(_) = &ending else {
            return ending;
        };
        if !self.config.check_leaks {
            return ending;
        }
        match state.host.as_ref().and_then(|host| leak(&self.arena, host)) {
            Some(bug) => Ending::Bug(Box::new(bug)),
            None => ending,
        }
    }

    /// Tells of a finding if it is the first at its place.
    pub(super) fn report(
        &mut self,
        state: &State,
        bug: &Bug,
        trace: Trace,
        output: [Vec<u8>; 2],
        listener: &mut dyn Listener,
    ) -> bool {
        let host = state.host.as_ref();
        let sites = host.map_or_else(Vec::new, Host::stack);
        let of = |id: Option<everett_vm::StackId>| {
            id.map_or_else(Vec::new, |id| {
                describe_ends(self.images, &self.stacks.sites(id))
            })
        };
        let allocated = of(bug.allocated);
        // Where a program ends says nothing about what it lost; where it got it does.
        let mut stack = match bug.kind {
            BugKind::Leak if !allocated.is_empty() => allocated.clone(),
            _ => describe_ends(self.images, &sites),
        };
        let message = match take_trap_reason(&mut stack) {
            Some(reason) => format!("{} ({reason})", bug.message),
            None => bug.message.clone(),
        };
        let place = principal(&stack).cloned();
        let key = match &place {
            Some(place) => (
                bug.kind.name().to_owned(),
                place.file.clone(),
                place.line,
                place.function.clone(),
            ),
            None => (bug.kind.name().to_owned(), String::new(), 0, String::new()),
        };
        let first = self.findings.count(key);
        if !first && !self.config.all_findings {
            return false;
        }
        let threads = host.map_or_else(Vec::new, Host::threads);
        let threads = match threads.len() {
            0 | 1 => Vec::new(),
            _ => threads
                .into_iter()
                .map(|(who, sites)| (who, describe_ends(self.images, &sites)))
                .collect(),
        };
        let finding = Finding {
            threads,
            kind: bug.kind,
            message,
            allocated,
            freed: of(bug.freed),
            stack,
            trace,
            clock_ns: host.map_or(0, Host::clock_ns),
            instructions: state.instructions(),
            output,
            files: self.left_files(state),
        };
        listener.finding(&finding);
        first
    }

    /// Changes the model so that as many preferences hold as can, in their order.
    fn settle_preferences(&mut self, path: &mut Path) {
        let preferences = path.preferences.clone();
        let mut constraints = path.constraints.clone();
        for preference in preferences.iter() {
            let holds = self.arena.eval(*preference, &path.model, &mut self.scratch) != 0;
            if !holds {
                match self
                    .solver
                    .check(&mut self.arena, &constraints, &path.model, *preference)
                {
                    Verdict::Sat(model) => path.model = model,
                    _ => continue,
                }
            }
            constraints.add(&mut self.arena, *preference);
        }
    }

    fn output(&mut self, state: &State) -> [Vec<u8>; 2] {
        let Some(host) = &state.host else {
            return [Vec::new(), Vec::new()];
        };
        [Stream::Stdout, Stream::Stderr].map(|stream| {
            host.output(stream)
                .evaluate(&mut self.arena, &state.path.model)
        })
    }

    /// What a path left behind in its files, where that is asked for.
    fn left_files(&mut self, state: &State) -> Vec<(LeftFile, Vec<u8>)> {
        let host = state.host.as_ref().filter(|_| self.config.keep_files);
        let files = host.map_or_else(Vec::new, Host::left_files);
        let mut kept = Vec::with_capacity(files.len());
        for file in files {
            let bytes = match &file.what {
                Left::File(bytes) => bytes.evaluate(&mut self.arena, &state.path.model),
                _ => Vec::new(),
            };
            kept.push((file, bytes));
        }
        kept
    }

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
        if let Some(trace) = &mut trace
            && trace.end.is_none()
        {
            trace.end = Some(self.trace_end(state, &ending));
        }
        let output = if self.config.keep_output {
            self.output(state)
        } else {
            [Vec::new(), Vec::new()]
        };
        self.count_faults(state);
        let calls = state.host.as_ref().map_or(&[][..], Host::log).to_vec();
        let files = match &trace {
            Some(_) => self.left_files(state),
            None => Vec::new(),
        };
        let passed = state.host.as_ref().map_or(&[][..], Host::points);
        let place = |point: &Passed| {
            let frames = crate::source::describe(self.images, &[point.site]);
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
            depth: state.path.depth,
            instructions: state.instructions(),
            output,
        });
    }

    /// Which failures could be injected on a path, and which were.
    fn count_faults(&mut self, state: &State) {
        for choice in state.path.choices.iter() {
            let Some(site) = choice.site.strip_prefix("fault:") else {
                continue;
            };
            let (call, failures) = site.split_once(':').unwrap_or((site, ""));
            for (number, failure) in (1..).zip(failures.split(',')) {
                let name = format!("{call}:{failure}");
                let fired = self.statistics.faults.entry(name).or_default();
                *fired += u64::from(choice.picked == number);
            }
        }
    }

    fn trace_end(&mut self, state: &State, ending: &PathEnding) -> TraceEnd {
        let output = self.output(state).map(|bytes| digest(&bytes));
        let mut end = TraceEnd {
            output,
            ..TraceEnd::default()
        };
        match ending {
            PathEnding::Exit(status) => end.exit = Some(*status),
            PathEnding::Signal(signal) => end.signal = Some(*signal),
            PathEnding::Bug(kind) => {
                end.finding = Some(kind.name().to_owned());
                // Where a hang is cut off is no place of it.
                let host = state.host.as_ref().filter(|_| *kind != BugKind::Hang);
                let sites = host.map_or_else(Vec::new, Host::stack);
                end.stack = describe_ends(self.images, &sites);
                end.stack.truncate(MOST_FRAMES);
            }
            PathEnding::Idle => end.idle = true,
            PathEnding::Silent | PathEnding::Cut(_) => {}
        }
        end
    }
}

/// Frames of a finding that its trace keeps.
const MOST_FRAMES: usize = 16;
