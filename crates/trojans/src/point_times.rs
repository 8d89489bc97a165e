//! The time of a server state that an event gives: finds out when worlds reach it, and excludes
//! worlds that reach it at another time.

use everett_engine::{Explorer, Keep, Listener, StateView, WorldFinding};
use everett_linux::Packet;
use everett_net::HostIndex;
use std::collections::BTreeSet;

/// The exposed state whose keys are the names of marks.
const POINTS: &str = "trojans at";

/// A point of an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Point {
    /// This host has received this number of packets with data at this port.
    Received(HostIndex, u16, u32),
    /// A host has made a mark with this name.
    Marked(String),
}

impl Point {
    /// Returns whether a host has just made the mark.
    fn is_made(&self, state: &StateView<'_, '_>) -> bool {
        match self {
            Point::Marked(name) => state.has_just_exposed(POINTS, name),
            Point::Received(..) => false,
        }
    }

    /// Returns whether a host has received as many packets, with the one that has just arrived.
    fn is_received(&self, receiver: &StateView<'_, '_>) -> bool {
        let Point::Received(host, port, number) = *self else {
            return false;
        };
        let received = receiver.received();
        let received = received.filter(|packet| packet.to.port() == port).count();
        receiver.host() == host && received >= number as usize
    }
}

/// The times at which worlds first reach a point. They are not explored beyond it.
pub struct PointTimes {
    point: Point,
    /// The virtual times.
    pub times_ns: BTreeSet<u64>,
}

impl PointTimes {
    /// Creates a listener that has seen nothing yet.
    pub fn new(point: Point) -> PointTimes {
        PointTimes {
            point,
            times_ns: BTreeSet::new(),
        }
    }

    fn note(&mut self, is_reached: bool, view: &StateView<'_, '_>) -> Keep {
        if !is_reached {
            return Keep::Yes;
        }
        self.times_ns.insert(view.clock_ns());
        Keep::Prune
    }
}

impl Listener for PointTimes {
    fn finding(&mut self, _finding: &WorldFinding) {}

    fn tick(&mut self, _explorer: &Explorer<'_>) {}

    fn wants_order(&self) -> bool {
        // Several hosts may make the mark, and the first one counts.
        matches!(self.point, Point::Marked(_))
    }

    fn exposed(&mut self, state: &mut StateView<'_, '_>) -> Keep {
        self.note(self.point.is_made(state), state)
    }

    fn delivered(&mut self, receiver: &mut StateView<'_, '_>, _packet: &Packet) -> Keep {
        self.note(self.point.is_received(receiver), receiver)
    }
}

/// The time of a server state. Only worlds that first reach the point at this time are in that
/// state: in them, the states of the server are marked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PointTime {
    /// The point.
    pub point: Point,
    /// The virtual time.
    pub at_ns: u64,
}

impl PointTime {
    fn decide(&self, is_reached: bool, view: &StateView<'_, '_>, server: HostIndex) -> Keep {
        match view.clock_ns() {
            now_ns if is_reached && now_ns < self.at_ns => Keep::Prune,
            now_ns if is_reached && now_ns == self.at_ns => Keep::Mark(server),
            _ => Keep::Yes,
        }
    }

    /// Decides about a host that has exposed data.
    pub(crate) fn exposed(&self, state: &StateView<'_, '_>, server: HostIndex) -> Keep {
        self.decide(self.point.is_made(state), state, server)
    }

    /// Decides about a host that has received a packet.
    pub(crate) fn delivered(&self, receiver: &StateView<'_, '_>, server: HostIndex) -> Keep {
        let is_reached = !receiver.is_marked() && self.point.is_received(receiver);
        self.decide(is_reached, receiver, server)
    }
}
