//! What listeners see of a state when something happens to it. Analyses are built on this: they look at the path condition
//! and at terms, ask the solver, and prune states.

use everett_expr::{Arena, ExprId};
use everett_net::HostIndex;
use everett_solver::{Constraints, Model, Verdict};

use crate::frontier::StateId;
use crate::path::Sharing;
use crate::state::State;
use crate::trace::Trace;
use crate::worker::Worker;

/// What becomes of a state.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Keep {
    /// It is explored further.
    Yes,
    /// It is dropped, and all worlds that it is in with it. Their weight is counted as pruned.
    Prune,
}

/// A state that something happens to.
pub struct StateView<'v, 'a> {
    id: StateId,
    state: &'v State,
    worker: &'v mut Worker<'a>,
}

impl<'v, 'a> StateView<'v, 'a> {
    pub(crate) fn new(id: StateId, state: &'v State, worker: &'v mut Worker<'a>) -> Self {
        StateView { id, state, worker }
    }

    /// Which state it is. Ids of worlds' states are in the order in which states are made.
    pub fn id(&self) -> StateId {
        self.id
    }

    /// Its host.
    pub fn host(&self) -> HostIndex {
        let net = self.state.net.as_ref();
        net.map_or(HostIndex(0), |net| net.host)
    }

    /// Its clock.
    pub fn clock_ns(&self) -> u64 {
        self.state.clock_ns()
    }

    /// Its path condition.
    pub fn path_condition(&self) -> &Constraints {
        &self.state.path.constraints
    }

    /// A model of its path condition.
    pub fn model(&self) -> &Model {
        &self.state.path.model
    }

    /// The trace that leads to where it stands.
    pub fn trace(&self) -> Trace {
        self.state.path.pending_trace(&mut Sharing::default())
    }

    /// The terms of the worker, to build conditions with.
    pub fn arena(&mut self) -> &mut Arena {
        &mut self.worker.arena
    }

    /// Whether a condition can hold where this state stands.
    pub fn check(&mut self, condition: ExprId) -> Verdict {
        let path = &self.state.path;
        let (arena, solver) = (&mut self.worker.arena, &mut self.worker.solver);
        solver.check(arena, &path.constraints, &path.model, condition)
    }
}
