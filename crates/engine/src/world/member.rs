//! A state of one host in a world, and what is on its way to it.

use everett_linux::{Ending, Packet};
use everett_net::{FaultCounters, HostIndex};
use std::sync::Arc;

use crate::state::State;

/// Something on its way to a host.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When it is there.
    pub at_ns: u64,
    /// Who sent it.
    pub from: HostIndex,
    /// Its number among what that host sent: of what arrives at once, the first is first.
    pub number: u64,
    /// What it is.
    pub packet: Arc<Packet>,
    /// What becomes of it is decided.
    pub decided: bool,
    /// It waits for so many others to arrive before it.
    pub behind: u32,
}

impl Arrival {
    fn order(&self) -> (u64, HostIndex, u64) {
        (self.at_ns, self.from, self.number)
    }
}

/// What a host does.
#[derive(Clone, PartialEq, Debug)]
pub enum Doing {
    /// It can go on, when its time comes.
    Runs,
    /// It waits until this time, or for what arrives.
    Waits(Option<u64>),
    /// Its programs have ended; its kernel answers what arrives.
    Over(Ending),
}

/// A state of one host in a world.
#[derive(Clone)]
pub struct Member {
    /// The host, and how it came to be.
    pub state: State,
    /// What it does.
    pub doing: Doing,
    /// What is on its way to it, the next first.
    arriving: Arc<Vec<Arrival>>,
    /// What went wrong so far, here and wherever it has heard of.
    pub counters: FaultCounters,
    /// Packets that it has sent.
    pub sent: u64,
}

impl Member {
    /// A host that has not started.
    pub fn new(state: State) -> Member {
        Member {
            state,
            doing: Doing::Runs,
            arriving: Arc::default(),
            counters: FaultCounters::default(),
            sent: 0,
        }
    }

    /// The same with another state.
    pub fn with_state(&self, state: State) -> Member {
        Member {
            state,
            doing: self.doing.clone(),
            arriving: self.arriving.clone(),
            counters: self.counters.clone(),
            sent: self.sent,
        }
    }

    /// The time of its clock.
    pub fn clock_ns(&self) -> u64 {
        let host = self.state.host.as_ref();
        host.map_or(0, everett_linux::Host::clock_ns)
    }

    /// Something will arrive.
    pub fn expect(&mut self, arrival: Arrival) {
        let list = Arc::make_mut(&mut self.arriving);
        let at = list.partition_point(|other| other.order() <= arrival.order());
        list.insert(at, arrival);
    }

    /// What arrives next.
    pub fn next_arrival(&self) -> Option<&Arrival> {
        self.arriving.iter().find(|arrival| arrival.behind == 0)
    }

    /// Takes what arrives next.
    pub fn take_arrival(&mut self) -> Option<Arrival> {
        let at = self
            .arriving
            .iter()
            .position(|arrival| arrival.behind == 0)?;
        Some(Arc::make_mut(&mut self.arriving).remove(at))
    }

    /// Something has arrived: what waits for that has less to wait for.
    pub fn let_others_follow(&mut self) {
        if self.arriving.iter().any(|arrival| arrival.behind > 0) {
            let now = self.clock_ns();
            for arrival in Arc::make_mut(&mut self.arriving) {
                arrival.behind = arrival.behind.saturating_sub(1);
                arrival.at_ns = arrival.at_ns.max(now);
            }
        }
    }

    /// When it does something next by itself or because something arrives; `start_ns` is when it is started. `u64::MAX`
    /// where nothing will happen.
    pub fn next_ns(&self, start_ns: u64) -> u64 {
        let arrival = self.next_arrival().map_or(u64::MAX, |next| next.at_ns);
        match &self.doing {
            Doing::Runs if self.state.host.is_none() => start_ns,
            Doing::Runs => self.clock_ns(),
            Doing::Waits(until) => until.unwrap_or(u64::MAX).min(arrival),
            Doing::Over(_) => arrival,
        }
    }

    /// The next arrival is due before anything else happens here.
    pub fn has_arrival_due(&self, horizon_ns: u64) -> bool {
        let Some(next) = self.next_arrival() else {
            return false;
        };
        match &self.doing {
            Doing::Runs => next.at_ns <= self.clock_ns(),
            Doing::Waits(until) => {
                next.at_ns <= until.unwrap_or(u64::MAX) && next.at_ns <= horizon_ns
            }
            Doing::Over(_) => next.at_ns <= horizon_ns,
        }
    }
}
