//! Finds out when worlds reach a point: listens to an exploration that ends there.

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

/// The times at which states reach a point. States are not explored beyond it.
pub struct Moments {
    point: Point,
    /// The virtual times of arrival.
    pub times_ns: BTreeSet<u64>,
}

impl Moments {
    /// Creates a listener that has seen nothing yet.
    pub fn new(point: Point) -> Moments {
        Moments {
            point,
            times_ns: BTreeSet::new(),
        }
    }

    fn note(&mut self, view: &StateView<'_, '_>) -> Keep {
        self.times_ns.insert(view.clock_ns());
        Keep::Prune
    }
}

impl Listener for Moments {
    fn finding(&mut self, _finding: &WorldFinding) {}

    fn tick(&mut self, _explorer: &Explorer<'_>) {}

    fn exposed(&mut self, state: &mut StateView<'_, '_>) -> Keep {
        match &self.point {
            Point::Marked(name) if state.has_just_exposed(POINTS, name) => self.note(state),
            _ => Keep::Yes,
        }
    }

    fn delivered(&mut self, receiver: &mut StateView<'_, '_>, _packet: &Packet) -> Keep {
        let Point::Received(host, port, number) = self.point else {
            return Keep::Yes;
        };
        let received = receiver.received();
        let received = received.filter(|packet| packet.to.port() == port).count();
        match receiver.host() == host && received >= number as usize {
            true => self.note(receiver),
            false => Keep::Yes,
        }
    }
}
