//! What listeners see of a state when an event happens to it. Analyses build on this: they read the
//! path condition and terms, query the solver, and prune states.

use everett_expr::{Arena, ArrayId, ExprId};
use everett_linux::Packet;
use everett_net::HostIndex;
use everett_sim::{Arrival, Incoming};
use everett_solver::{Constraints, Model, Verdict};

use crate::frontier::StateId;
use crate::path::Sharing;
use crate::source::{SourceFrame, describe_ends};
use crate::state::State;
use crate::trace::Trace;
use crate::worker::Worker;

/// A listener's decision about a state.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Keep {
    /// Continue to explore it.
    Yes,
    /// Continue to explore it, but drop the packet that it sends. Only for packets.
    Lose,
    /// Drop it, and all worlds that contain it. Their weight counts as pruned.
    Prune,
}

/// A state at an event, as a listener sees it.
pub struct StateView<'v, 'a> {
    id: StateId,
    state: &'v State,
    worker: &'v mut Worker<'a>,
}

impl<'v, 'a> StateView<'v, 'a> {
    pub(crate) fn new(id: StateId, state: &'v State, worker: &'v mut Worker<'a>) -> Self {
        StateView { id, state, worker }
    }

    /// Its id. Ids of states of worlds are in the order of creation.
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

    /// The stack of its current thread, innermost frame first.
    pub fn stack(&self) -> Vec<SourceFrame> {
        let host = self.state.host.as_ref();
        host.map_or_else(Vec::new, |host| {
            describe_ends(self.worker.images, &host.stack())
        })
    }

    /// The packets with payload that it has sent so far, if the listener keeps them
    /// ([`crate::Listener::keeps_sent`]).
    pub fn sent(&self) -> impl Iterator<Item = &Packet> {
        let net = self.state.net.as_ref();
        net.into_iter().flat_map(|net| net.sent.iter())
    }

    /// The packets with payload that were delivered to it so far.
    pub fn received(&self) -> impl Iterator<Item = &Packet> {
        let net = self.state.net.as_ref();
        net.into_iter().flat_map(|net| {
            let coming = net.sim.inbox.arrivals();
            let is_coming = |one: &Arrival| {
                let same = |other: &Arrival| (other.from, other.number) == (one.from, one.number);
                coming.iter().any(same)
            };
            net.received
                .iter()
                .filter_map(move |received| match &received.what {
                    Incoming::Packet(one) if one.packet.payload().is_some() && !is_coming(one) => {
                        Some(&*one.packet)
                    }
                    _ => None,
                })
        })
    }

    /// Whether it exposes data under this state and key.
    pub fn is_exposed(&self, state: &str, key: &str) -> bool {
        let data = self.state.sim().exposed(self.state.host.as_ref());
        let mut keys = data.keys();
        keys.any(|(of, name)| of == state && name == key)
    }

    /// Its inputs: the array and the name of each, in the order of creation.
    pub fn inputs(&self) -> impl Iterator<Item = (ArrayId, &str)> {
        let inputs = self.state.path.inputs.iter();
        inputs.map(|input| (input.array, &*input.name))
    }

    /// The pending trace that leads to it.
    pub fn trace(&self) -> Trace {
        self.state.path.pending_trace(&mut Sharing::default())
    }

    /// The terms of the worker, to build conditions with.
    pub fn arena(&mut self) -> &mut Arena {
        &mut self.worker.arena
    }

    /// Whether a condition can hold together with its path condition.
    pub fn check(&mut self, condition: ExprId) -> Verdict {
        let path = &self.state.path;
        let (arena, solver) = (&mut self.worker.arena, &mut self.worker.solver);
        solver.check(arena, &path.constraints, &path.model, condition)
    }
}
