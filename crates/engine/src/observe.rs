//! The view of a state that listeners get when an event happens to it. Analyses build on this: they
//! read the path condition and terms, query the solver, and prune states.

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
    /// Continue to explore the state.
    Yes,
    /// Continue to explore the state, but drop the packet that it sends. Only for packets.
    Lose,
    /// Continue to explore the state, and mark the states of this host in all worlds of the state
    /// and in no others ([`StateView::is_marked`]). Their path conditions get that of the state.
    /// Only for packets that arrive, and for exposed data.
    Mark(HostIndex),
    /// Drop the state and all worlds that contain it. Their weight counts as pruned.
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

    /// Returns the id of the state. Ids of states of worlds are in the order of creation.
    pub fn id(&self) -> StateId {
        self.id
    }

    /// Returns the host of the state.
    pub fn host(&self) -> HostIndex {
        let net = self.state.net.as_ref();
        net.map_or(HostIndex(0), |net| net.host)
    }

    /// Returns the clock of the host.
    pub fn clock_ns(&self) -> u64 {
        self.state.clock_ns()
    }

    /// Returns whether a listener has marked it ([`Keep::Mark`]).
    pub fn is_marked(&self) -> bool {
        let net = self.state.net.as_ref();
        net.is_some_and(|net| net.is_marked)
    }

    /// Returns the path condition.
    pub fn path_condition(&self) -> &Constraints {
        &self.state.path.constraints
    }

    /// Returns a model of the path condition.
    pub fn model(&self) -> &Model {
        &self.state.path.model
    }

    /// Returns the stack of the current thread, innermost frame first.
    pub fn stack(&self) -> Vec<SourceFrame> {
        let host = self.state.host.as_ref();
        host.map_or_else(Vec::new, |host| {
            describe_ends(self.worker.images, &host.stack())
        })
    }

    /// Returns the packets with payload that the host has sent so far, if the listener keeps them
    /// ([`crate::Listener::keeps_sent`]).
    pub fn sent(&self) -> impl Iterator<Item = &Packet> {
        let net = self.state.net.as_ref();
        net.into_iter().flat_map(|net| net.sent.iter())
    }

    /// Whether nothing will happen to it any more unless another host sends it something.
    pub fn is_idle(&self) -> bool {
        self.state.next_ns() == u64::MAX
    }

    /// How many packets with payload it had sent each time when it waited for others after it had
    /// sent some, if the listener wants waits ([`crate::Listener::wants_waits`]).
    pub fn waits(&self) -> &[usize] {
        let net = self.state.net.as_ref();
        net.map_or(&[], |net| &net.waits)
    }

    /// The packets with payload that were delivered to it so far.
    pub fn received(&self) -> impl Iterator<Item = &Packet> {
        let all = self.delivered();
        all.filter(|packet| packet.payload().is_some())
    }

    /// The packets that were delivered to it so far, also those that only open or end a stream.
    pub fn delivered(&self) -> impl Iterator<Item = &Packet> {
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
                    Incoming::Packet(one) if !is_coming(one) => Some(&*one.packet),
                    _ => None,
                })
        })
    }

    /// Whether it has just exposed data under this state and key: for when listeners hear of exposed
    /// data.
    pub fn has_just_exposed(&self, state: &str, key: &str) -> bool {
        let host = self.state.host.as_ref();
        host.is_some_and(|host| host.has_just_exposed(state, key))
    }

    /// Returns the array and the name of each input, in the order of creation.
    pub fn inputs(&self) -> impl Iterator<Item = (ArrayId, &str)> {
        let inputs = self.state.path.inputs.iter();
        inputs.map(|input| (input.array, &*input.name))
    }

    /// Returns the pending trace that leads to the state.
    pub fn trace(&self) -> Trace {
        self.state.path.pending_trace(&mut Sharing::default())
    }

    /// Returns the worker's arena of terms, to build conditions.
    pub fn arena(&mut self) -> &mut Arena {
        &mut self.worker.arena
    }

    /// Checks whether a condition can hold together with the path condition.
    pub fn check(&mut self, condition: ExprId) -> Verdict {
        let path = &self.state.path;
        let (arena, solver) = (&mut self.worker.arena, &mut self.worker.solver);
        solver.check(arena, &path.constraints, &path.model, condition)
    }
}
