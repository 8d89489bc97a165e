//! A state of one host in a world, and what is on its way to it.

use everett_expr::ExprId;
use everett_linux::{Ending, Packet, PacketKind};
use everett_net::{FaultCounters, HostIndex, LinkState};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
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
    /// How often it was sent again.
    pub again: u32,
}

impl Arrival {
    /// What makes it different from others for who receives it.
    pub fn look(&self) -> impl Hash + use<> {
        let packet = &self.packet;
        let (what, bytes) = match &packet.kind {
            PacketKind::Datagram(bytes) | PacketKind::Data(bytes) => {
                let symbolic: Vec<usize> = (0..bytes.len())
                    .filter(|at| bytes.has_symbolic(*at, 1))
                    .collect();
                let terms: Vec<ExprId> = bytes.terms().collect();
                (
                    discriminant(&packet.kind),
                    Some((bytes.bytes().to_vec(), symbolic, terms)),
                )
            }
            _ => (discriminant(&packet.kind), None),
        };
        let room = match &packet.kind {
            PacketKind::Request { room } | PacketKind::Accepted { room } => *room,
            PacketKind::Room { more } => *more,
            PacketKind::Unreachable(errno) => errno.result(),
            _ => 0,
        };
        let when = (self.at_ns, packet.clock_ns, self.from);
        (when, packet.from, packet.to, what, bytes, room)
    }

    /// It is no part of a stream.
    pub fn is_alone(&self) -> bool {
        matches!(
            self.packet.kind,
            PacketKind::Datagram(_) | PacketKind::Unreachable(_)
        )
    }

    fn is_of_stream(&self, other: &Arrival) -> bool {
        let ends = |one: &Arrival| (one.packet.from, one.packet.to);
        !self.is_alone() && ends(self) == ends(other)
    }

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
    /// What of them waits for others to be on their way.
    pub links: LinkState,
    /// What happened to it.
    pub past: Past,
}

/// A digest of all that made a state what it is: which host, which sides of forks, what it received and when. What a host does
/// is determined by that and by its condition.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Past(u64, u64);

impl Past {
    /// And then this happened.
    pub fn then(self, what: &impl Hash) -> Past {
        let half = |half: u8| {
            let mut hasher = DefaultHasher::new();
            (half, self.0, self.1).hash(&mut hasher);
            what.hash(&mut hasher);
            hasher.finish()
        };
        Past(half(0), half(1))
    }
}

impl Member {
    /// A host that has not started.
    pub fn new(state: State, past: Past) -> Member {
        Member {
            past,
            state,
            doing: Doing::Runs,
            arriving: Arc::default(),
            counters: FaultCounters::default(),
            sent: 0,
            links: LinkState::default(),
        }
    }

    /// The same with another state and past.
    pub fn with_state(&self, state: State, past: Past) -> Member {
        Member {
            past,
            state,
            doing: self.doing.clone(),
            arriving: self.arriving.clone(),
            counters: self.counters.clone(),
            sent: self.sent,
            links: self.links.clone(),
        }
    }

    /// The time of its clock.
    pub fn clock_ns(&self) -> u64 {
        let host = self.state.host.as_ref();
        host.map_or(0, everett_linux::Host::clock_ns)
    }

    /// Something will arrive. What belongs to a stream overtakes nothing of the same stream that was sent before it, however
    /// late that is.
    pub fn expect(&mut self, mut arrival: Arrival) {
        let list = Arc::make_mut(&mut self.arriving);
        if !arrival.is_alone() {
            let same = list.iter().filter(|other| other.is_of_stream(&arrival));
            let before = same.filter(|other| other.number < arrival.number);
            let last = before.map(|other| other.at_ns).max().unwrap_or(0);
            arrival.at_ns = arrival.at_ns.max(last);
            for other in list.iter_mut() {
                if other.is_of_stream(&arrival) && other.number > arrival.number {
                    other.at_ns = other.at_ns.max(arrival.at_ns);
                }
            }
            list.sort_by_key(Arrival::order);
        }
        let at = list.partition_point(|other| other.order() <= arrival.order());
        list.insert(at, arrival);
    }

    /// The same happened to another state, and it is under the same condition: both are one.
    pub fn is_same(&self, other: &Member) -> bool {
        let conditions = (&self.state.path.constraints, &other.state.path.constraints);
        self.past == other.past
            && self.counters == other.counters
            && self.sent == other.sent
            && conditions.0.len() == conditions.1.len()
            && conditions.0.iter().all(|one| conditions.1.contains(one))
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
