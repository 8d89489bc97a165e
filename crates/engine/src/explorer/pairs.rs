//! Explores two builds of a program (`--against`): when a path of the build under test
//! ends, the other build starts under the same path condition. When that ends too, the
//! explorer compares what the two did.

use everett_linux::{Host, Stream};
use everett_solver::Verdict;

use super::*;
use crate::finding::PathEnding;
use crate::names::Names;
use crate::pair::difference;
use crate::path::Answer;
use crate::second::{Behaviour, Second};
use crate::trace::TraceEnd;

impl Explorer<'_> {
    /// Starts the other build where a path of the first one has ended. Returns `false` if there is
    /// no other build or the end cannot be compared.
    pub(super) fn goes_on(&mut self, id: StateId, state: &State, ending: &Ending) -> bool {
        if self.config.against.is_none() {
            return false;
        }
        let Some(first) = self.behaviour(state, ending) else {
            return false;
        };
        let mut next = Box::new(state.clone());
        let instructions = state.instructions();
        let path = &mut next.path;
        let made = (path.inputs.len(), &path.choices);
        path.second = Some(Box::new(Second::after(made, first, instructions)));
        path.names = Names::default();
        path.takes_one_side = false;
        // The start of the second build counts as an answer, so that a trace says whether it has
        // started.
        path.answer(Answer::Bool(true));
        path.tape.clear();
        next.host = None;
        self.add_child(id, next);
        true
    }

    /// Returns what a path did; `None` if its end says nothing about the program.
    fn behaviour(&mut self, state: &State, ending: &Ending) -> Option<Behaviour> {
        let (ending, status) = match ending {
            Ending::Exit(status) => (PathEnding::Exit(0), Some(*status)),
            Ending::Signal(signal) => (PathEnding::Signal(*signal), None),
            Ending::Idle => (PathEnding::Idle, None),
            Ending::Bug(bug) if bug.kind.is_tool_limit() || bug.kind == BugKind::Hang => {
                return None;
            }
            Ending::Bug(bug) => {
                let mut bug = bug.clone();
                self.worker.name_abort(state, &mut bug);
                (PathEnding::Bug(bug.kind), None)
            }
            Ending::EndPath | Ending::SetUp => return None,
        };
        let host = state.host.as_ref();
        let end = self.worker.trace_end(state, &ending);
        let output = [Stream::Stdout, Stream::Stderr];
        Some(Behaviour {
            end: TraceEnd { exit: None, ..end },
            ending,
            status,
            output: output
                .map(|it| host.map_or_else(Default::default, |host| host.output(it).clone())),
            files: host.map_or_else(Vec::new, Host::changed_files),
        })
    }

    /// Ends a path of the second build, and compares it with that of the first.
    pub(super) fn end_second(
        &mut self,
        id: StateId,
        mut state: Box<State>,
        ending: Ending,
        listener: &mut dyn Listener,
    ) {
        let is_cut = matches!(&ending, Ending::Bug(bug) if self.is_cut_by(&state, bug));
        let old = self.behaviour(&state, &ending);
        let is_decided = match (state.path.second.take(), old) {
            (Some(second), Some(old)) => self.compare(&mut state.path, &second, &old, listener),
            _ => true,
        };
        if !is_decided {
            self.note_limit("solver");
        }
        self.count_end(
            &state,
            is_cut || !is_decided,
            matches!(ending, Ending::EndPath),
        );
        self.frontier.remove(id);
        self.searcher.removed(id);
        self.hear(&state, 0);
    }

    /// Reports an input of the path for which the builds differ, if there is one. Returns `false`
    /// if the solver cannot decide that.
    fn compare(
        &mut self,
        path: &mut Path,
        second: &Second,
        old: &Behaviour,
        listener: &mut dyn Listener,
    ) -> bool {
        let worker = &mut self.worker;
        let Some(differ) = difference(&mut worker.arena, &second.first, old) else {
            return true;
        };
        if worker.arena.eval(differ, &path.model, &mut worker.scratch) == 0 {
            let (arena, solver) = (&mut worker.arena, &mut worker.solver);
            match solver.check(arena, &path.constraints, &path.model, differ) {
                Verdict::Sat(model) => path.model = model,
                Verdict::Unsat => return true,
                Verdict::Unknown(_) => return false,
            }
        }
        path.constrain(&mut self.worker.arena, differ);
        self.settle_preferences(path);
        let found = Difference::of(&mut self.worker.arena, path, second, old);
        let what = found.aspects.join(", ");
        let key = (Difference::KIND.to_owned(), what, 0, found.ends.join("; "));
        if self.findings.count(key) || self.config.all_findings {
            listener.difference(&found);
        }
        true
    }
}
