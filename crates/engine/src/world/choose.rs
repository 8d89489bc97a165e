//! Chooses one state per host such that the states form a world: their path conditions do not
//! contradict each other, and together they are within the bounds on faults.

use everett_expr::ExprId;
use everett_solver::Verdict;

use super::bounds::add;
use super::*;
use crate::frontier::FaultUse;

/// Lists of states, of which a world takes one state each.
struct Lists<'l> {
    states: &'l [Vec<StateId>],
    /// The state that is being executed, which is not in the frontier.
    own: Option<(StateId, &'l State)>,
    /// Whether to leave out worlds whose feasibility the solver cannot decide.
    must_know: bool,
    /// The minimum fault counts of states from each list on.
    least_from: Vec<FaultUse>,
}

/// Visits a world: the joined path and the states. Returns whether to continue.
type Visit<'v, 'e> = &'v mut dyn FnMut(&mut Explorer<'e>, &Path, &[StateId]) -> bool;

impl<'e> Explorer<'e> {
    /// Finds a feasible world with one state of each list in which `wanted` holds. Returns its
    /// joined path and its states.
    pub(super) fn choose(
        &mut self,
        lists: &[Vec<StateId>],
        own: Option<(StateId, &State)>,
        wanted: Option<ExprId>,
    ) -> Option<(Path, Vec<StateId>)> {
        let mut found = None;
        let visit: Visit<'_, 'e> = &mut |worlds, path, chosen| {
            let path = worlds.path_where(path, wanted);
            found = path.map(|path| (path, chosen.to_vec()));
            found.is_none()
        };
        self.visit_worlds(lists, own, true, visit);
        found
    }

    /// Visits every feasible world with one state of each list, until `visit` returns `false`. With
    /// `must_know`, worlds whose feasibility the solver cannot decide are left out.
    pub(super) fn each_world(
        &mut self,
        lists: &[Vec<StateId>],
        must_know: bool,
        visit: Visit<'_, 'e>,
    ) {
        self.visit_worlds(lists, None, must_know, visit);
    }

    /// Visits every feasible world; `own` is a state that is being executed.
    fn visit_worlds(
        &mut self,
        states: &[Vec<StateId>],
        own: Option<(StateId, &State)>,
        must_know: bool,
        visit: Visit<'_, 'e>,
    ) {
        let lists = Lists {
            states,
            own,
            must_know,
            least_from: self.least_from(states),
        };
        let nothing = FaultUse::default();
        self.visit_from(&lists, Path::default(), nothing, &mut Vec::new(), visit);
    }

    /// Visits every feasible world that begins with the chosen states. `path` is their joined path,
    /// `used` their fault counts. Returns whether to continue.
    fn visit_from(
        &mut self,
        lists: &Lists<'_>,
        path: Path,
        used: FaultUse,
        chosen: &mut Vec<StateId>,
        visit: Visit<'_, 'e>,
    ) -> bool {
        let Some(first) = lists.states.get(chosen.len()) else {
            return visit(self, &path, chosen);
        };
        for candidate in first {
            let mut used = used.clone();
            add(&mut used, self.frontier.used(*candidate));
            let mut in_all = used.clone();
            add(&mut in_all, &lists.least_from[chosen.len() + 1]);
            if !self.world.bounds.allow(&in_all) {
                continue;
            }
            let own = lists.own.filter(|(id, _)| id == candidate);
            if own.is_none() && !self.load(*candidate) {
                continue;
            }
            let state = own.map(|(_, state)| state);
            let other = state.or(self.frontier.live(*candidate));
            let Some(other) = other.map(|one| one.path.clone()) else {
                continue;
            };
            let mut joined = path.clone();
            if !self.join(&mut joined, &other, lists.must_know) {
                continue;
            }
            chosen.push(*candidate);
            let goes_on = self.visit_from(lists, joined, used, chosen, visit);
            chosen.pop();
            if !goes_on {
                return false;
            }
        }
        true
    }

    /// Returns the path with a model under which `wanted` holds, if there is one.
    fn path_where(&mut self, path: &Path, wanted: Option<ExprId>) -> Option<Path> {
        let mut path = path.clone();
        let Some(wanted) = wanted else {
            return Some(path);
        };
        let (arena, solver) = (&mut self.worker.arena, &mut self.worker.solver);
        match solver.check(arena, &path.constraints, &path.model, wanted) {
            Verdict::Sat(model) => {
                path.model = model;
                Some(path)
            }
            Verdict::Unsat => None,
            Verdict::Unknown(reason) => {
                self.note_unknown(&reason);
                None
            }
        }
    }
}
