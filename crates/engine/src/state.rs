//! A state of the search: a host, and the path that led to it.

use everett_expr::VisitTerms;
use everett_linux::{Ending, Host, Packet, Refusal};
use everett_net::{Faults, HostIndex};
use everett_sim::{Incoming, Received, SharedList, SimHost};
use everett_vm::{Bug, BugKind};
use serde::{Deserialize, Serialize};
use std::hash::Hash;

use crate::history::HistoryDigest;
use crate::path::Path;

/// A state of the search. A clone is a fork.
#[derive(Clone)]
pub struct State {
    /// The host; absent until it has booted, and while it is powered off.
    pub host: Option<Host>,
    /// The path that led to it.
    pub path: Path,
    /// Whether it was the first to execute some code since the last fork.
    pub covered_new: bool,
    /// Instructions executed since it covered something new.
    pub since_new: u64,
    /// Its part in a world; `None` for a single program.
    pub net: Option<Box<NetState>>,
}

/// What a state received, in parts that forked states share.
pub type ReceivedLog = SharedList<Received>;

/// The part of a state that only states of worlds have.
#[derive(Clone)]
pub struct NetState {
    /// The index of its host.
    pub host: HostIndex,
    /// The number of the world that it began in: which faults of whole worlds happen.
    pub world: u64,
    /// The host's part in the world.
    pub sim: SimHost,
    /// How its programs have ended, if they have.
    pub ending: Option<Ending>,
    /// The digest of its history.
    pub history: HistoryDigest,
    /// The log of what it received from other hosts.
    pub received: ReceivedLog,
    /// Packets that it sent, if the listener keeps them. A spilled state loses them.
    pub sent: SharedList<Packet>,
}

impl NetState {
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
    /// The initial state of a program, or the state that a trace leads to.
    pub fn starting(path: Path) -> State {
        State {
            host: None,
            path,
            covered_new: false,
            since_new: 0,
            net: None,
        }
    }

    /// Instructions executed on its path.
    pub fn instructions(&self) -> u64 {
        self.instructions_before() + self.host.as_ref().map_or(0, Host::instructions)
    }

    /// Instructions of the first of two builds, while the second one runs.
    pub fn instructions_before(&self) -> u64 {
        let second = self.path.second.as_ref();
        second.map_or(0, |second| second.instructions)
    }

    /// The finding of a state that has executed more than it may.
    pub fn hang(&self) -> Bug {
        let message = format!("over {} instructions on one path", self.instructions());
        Bug::new(BugKind::Hang, message)
    }

    /// Its part in a world. Panics for the state of a single program.
    pub fn net(&self) -> &NetState {
        self.net.as_deref().expect("a state of a world")
    }

    /// The same, to change it.
    pub fn net_mut(&mut self) -> &mut NetState {
        self.net.as_deref_mut().expect("a state of a world")
    }

    /// The host's part in a world.
    pub fn sim(&self) -> &SimHost {
        &self.net().sim
    }

    /// The same, to change it.
    pub fn sim_mut(&mut self) -> &mut SimHost {
        &mut self.net_mut().sim
    }

    /// A digest of the answers that led to it, and of the world that it began in.
    pub fn answers(&self) -> u64 {
        let world = self.net.as_ref().map_or(0, |net| net.world);
        let mixed = self.path.digest ^ world.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 31
    }

    /// What its kernel refused.
    pub fn refusals(&self) -> &[Refusal] {
        self.host.as_ref().map_or(&[], Host::refusals)
    }

    /// Limits of its kernel that the program reached.
    pub fn limits_hit(&self) -> &[&'static str] {
        self.host.as_ref().map_or(&[], Host::limits_hit)
    }

    /// Whether its host is on, and its programs have not ended.
    pub fn is_waiting(&self) -> bool {
        let net = self.net.as_ref();
        // A live peer serves whoever comes.
        let waits = |net: &NetState| net.ending.is_none() && !net.sim.is_off();
        net.is_some_and(|net| waits(net) && net.sim.peer.is_none())
    }

    pub fn warnings(&self) -> &[String] {
        self.host.as_ref().map_or(&[], Host::warnings)
    }

    /// Its clock; the time of the power-off if it is powered off.
    pub fn clock_ns(&self) -> u64 {
        match (&self.host, &self.net) {
            (Some(host), _) => host.clock_ns(),
            (None, Some(net)) if net.sim.peer.is_some() => net.sim.clock_ns(None),
            (None, Some(net)) => net.sim.off_since_ns,
            (None, None) => 0,
        }
    }

    /// When the next event of a host in a world happens; `u64::MAX` for never.
    pub fn next_ns(&self) -> u64 {
        self.sim().next_ns(self.host.as_ref())
    }
}

impl State {
    /// Visits all terms that it refers to.
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

/// A digest of what makes two states of a host the same: history,
/// fault counters and path condition.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Identity(HistoryDigest);

impl Identity {
    /// The identity of a state. Conditions count as a set.
    pub fn of(state: &State) -> Identity {
        let net = state.net();
        let sum = state.path.constraints.digest();
        let digest = net.history.then(&net.sim.counters).then(&net.sim.sent);
        Identity(digest.then(&sum))
    }
}
