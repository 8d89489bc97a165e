//! A state of the search: a host, and the path that led to it.

use everett_expr::VisitTerms;
use everett_linux::{Ending, Host, Packet, Refusal};
use everett_net::{Faults, HostIndex};
use everett_sim::{Incoming, Received, SharedList, SimHost};
use everett_vm::{Bug, BugKind};
use serde::{Deserialize, Serialize};
use std::hash::Hash;

use crate::history::HistoryDigest;
use crate::path::{Path, mix};

/// A state of the search. A clone is a fork.
#[derive(Clone)]
pub struct State {
    /// The host; absent before it has booted and while it is powered off.
    pub host: Option<Host>,
    /// The path that led to the state.
    pub path: Path,
    /// Whether the state was the first to execute some code since the last fork.
    pub covered_new: bool,
    /// The number of instructions since the state covered something new.
    pub since_new: u64,
    /// Whether the program has entered its `main`, if that matters.
    pub has_main: bool,
    /// The state's part in a world; `None` for a single program.
    pub net: Option<Box<NetState>>,
}

/// The log of what a state received, in blocks that forked states share.
pub type ReceivedLog = SharedList<Received>;

/// The part of a state that only states of worlds have.
#[derive(Clone)]
pub struct NetState {
    /// The index of the host.
    pub host: HostIndex,
    /// The number of the world in which the state began, which determines the faults of whole
    /// worlds.
    pub world: u64,
    /// The simulated host: inbox, clock, faults and run state.
    pub sim: SimHost,
    /// How the programs of the host have ended, if they have.
    pub ending: Option<Ending>,
    /// The digest of the state's history.
    pub history: HistoryDigest,
    /// The log of what the host received from others.
    pub received: ReceivedLog,
    /// The packets that the host sent, if the listener keeps them. A spilled state loses them.
    pub sent: SharedList<Packet>,
    /// How many these were when it waited for others, if the listener wants waits.
    pub waits: Vec<usize>,
    /// Whether a listener has marked it. A spilled state loses this.
    pub is_marked: bool,
}

impl NetState {
    /// Notes that it waits for others.
    pub fn note_wait(&mut self) {
        let sent = self.sent.len();
        if sent > self.waits.last().copied().unwrap_or(0) {
            self.waits.push(sent);
        }
    }

    /// Receives an item from another host; `event` is its entry in the history.
    pub fn receive(&mut self, incoming: Incoming, event: &impl Hash, faults: &Faults) {
        self.sim.receive(&incoming, faults);
        self.history = self.history.then(event);
        let when = self.sim.inbox.clock();
        let what = incoming;
        self.received.push(Received { when, what });
    }
}

// States move between worker threads.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<State>();
};

impl State {
    /// Creates the initial state of a program, or the start of the path to the state of a trace.
    pub fn starting(path: Path) -> State {
        State {
            host: None,
            path,
            covered_new: false,
            since_new: 0,
            has_main: false,
            net: None,
        }
    }

    /// Returns the number of instructions on the path.
    pub fn instructions(&self) -> u64 {
        self.instructions_before() + self.host.as_ref().map_or(0, Host::instructions)
    }

    /// Returns the number of instructions of the first of two builds, while the second one runs.
    pub fn instructions_before(&self) -> u64 {
        let second = self.path.second.as_ref();
        second.map_or(0, |second| second.instructions)
    }

    /// Returns the finding for a state that has exceeded the limit on instructions.
    pub fn hang(&self) -> Bug {
        let message = format!("over {} instructions on one path", self.instructions());
        Bug::new(BugKind::Hang, message)
    }

    /// Returns the state's part in a world. Panics for a state of a single program.
    pub fn net(&self) -> &NetState {
        self.net.as_deref().expect("a state of a world")
    }

    /// Returns the state's part in a world, to change it.
    pub fn net_mut(&mut self) -> &mut NetState {
        self.net.as_deref_mut().expect("a state of a world")
    }

    /// Returns the simulated host of a state of a world.
    pub fn sim(&self) -> &SimHost {
        &self.net().sim
    }

    /// Returns the simulated host of a state of a world, to change it.
    pub fn sim_mut(&mut self) -> &mut SimHost {
        &mut self.net_mut().sim
    }

    /// Returns a digest of the answers that led to the state, and of the world in which it began.
    pub fn answers(&self) -> u64 {
        let world = self.net.as_ref().map_or(0, |net| net.world);
        mix(self.path.digest, world)
    }

    /// Returns the requests that the kernel refused.
    pub fn refusals(&self) -> &[Refusal] {
        self.host.as_ref().map_or(&[], Host::refusals)
    }

    /// Returns the limits of the kernel that the program reached.
    pub fn limits_hit(&self) -> &[&'static str] {
        self.host.as_ref().map_or(&[], Host::limits_hit)
    }

    /// Returns whether the host is on, and its programs have not ended.
    pub fn is_waiting(&self) -> bool {
        let net = self.net.as_ref();
        // A live peer serves others and has no end of its own.
        let waits = |net: &NetState| net.ending.is_none() && !net.sim.is_off();
        net.is_some_and(|net| waits(net) && net.sim.peer.is_none())
    }

    pub fn warnings(&self) -> &[String] {
        self.host.as_ref().map_or(&[], Host::warnings)
    }

    /// Returns the host's clock; if the host is powered off, the time of the power-off.
    pub fn clock_ns(&self) -> u64 {
        match (&self.host, &self.net) {
            (Some(host), _) => host.clock_ns(),
            (None, Some(net)) if net.sim.peer.is_some() => net.sim.clock_ns(None),
            (None, Some(net)) => net.sim.off_since_ns,
            (None, None) => 0,
        }
    }

    /// Returns the time of the next event of a host in a world; `u64::MAX` for never.
    pub fn next_ns(&self) -> u64 {
        self.sim().next_ns(self.host.as_ref())
    }
}

impl State {
    /// Returns whether the state may refer to nothing of its worker: it has no symbolic input and no
    /// condition, and follows no trace. What it received may still have terms.
    pub fn seems_movable(&self) -> bool {
        let path = &self.path;
        let is_peer = self.net.as_ref().is_some_and(|net| net.sim.peer.is_some());
        let follows = path.follow.is_some() || path.second.is_some();
        path.inputs.is_empty() && path.constraints.is_empty() && !follows && !is_peer
    }

    /// Visits all terms that the state refers to.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        self.path
            .constraints
            .iter()
            .for_each(|term| visit.term(term));
        self.path
            .preferences
            .iter()
            .copied()
            .for_each(|term| visit.term(term));
        if let Some(second) = &self.path.second {
            second.first.for_each_term(visit);
        }
        if let Some(host) = &self.host {
            host.for_each_term(visit);
        }
        let Some(net) = &self.net else { return };
        net.sim.for_each_term(visit);
        for received in net.received.iter() {
            received.what.terms().for_each(|term| visit.term(term));
        }
        for packet in net.sent.iter() {
            packet.terms().for_each(|term| visit.term(term));
        }
        if let Some(Ending::Exit(status)) = &net.ending {
            status.term.into_iter().for_each(|term| visit.term(term));
        }
    }
}

/// A digest that identifies equal states of a host: history, fault counters and path condition.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Identity(HistoryDigest);

impl Identity {
    /// Returns the identity of a state. The order of its conditions does not matter.
    pub fn of(state: &State) -> Identity {
        let net = state.net();
        let sum = state.path.constraints.digest();
        let digest = net.history.then(&net.sim.counters).then(&net.sim.sent);
        Identity(digest.then(&sum))
    }
}
