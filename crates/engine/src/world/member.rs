//! A state of one host in a world, and what is on its way to it.

use everett_linux::{Disk, Ending, ExposedData, Packet};
use everett_net::{FaultCounters, LinkState};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::looks::{Look, Looks};
use super::mailbox::{Doing, Mailbox};
use super::starts::Starting;
use crate::state::State;

/// Changes of what a host shows that are remembered.
pub const MOST_LOOKS: usize = 1 << 12;

/// A state of one host in a world.
#[derive(Clone)]
pub struct Member {
    /// The host, and how it came to be.
    pub state: State,
    /// What it does.
    pub doing: Doing,
    /// How its programs have ended, if they have.
    pub ending: Option<Ending>,
    /// What is on its way to it.
    pub mailbox: Mailbox,
    /// What went wrong so far, here and wherever it has heard of.
    pub counters: FaultCounters,
    /// Packets that it has sent.
    pub sent: u64,
    /// What of them waits for others to be on their way.
    pub links: LinkState,
    /// What happened to it.
    pub past: Past,
    /// What it has sent and what is not on its way yet.
    pub unsent: Vec<Packet>,
    /// What others learn of it though it does not say it.
    pub outbox: Vec<Packet>,
    /// When it is started, for the first time or again.
    pub starting: Starting,
    /// The disk that it starts with, where it was switched off.
    pub disk: Option<Arc<Disk>>,
    /// How often it was.
    pub restarts: u32,
    /// How often something overtook what would have arrived before it.
    pub overtaken: u32,
    /// What it showed so far, where somebody will ask.
    pub looks: Looks,
    /// It showed more than is remembered.
    pub has_shown_more: bool,
    /// What it showed when it was looked at for the last time.
    pub shown: ExposedData,
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
    /// A host that is started at a time, or when it has learnt enough; something can become of it at some times.
    pub fn new(state: State, past: Past, starting: Starting, times: Vec<u64>) -> Member {
        Member {
            past,
            state,
            doing: Doing::Runs,
            ending: None,
            mailbox: Mailbox::new(times),
            counters: FaultCounters::default(),
            sent: 0,
            links: LinkState::default(),
            unsent: Vec::new(),
            outbox: Vec::new(),
            starting,
            disk: None,
            restarts: 0,
            overtaken: 0,
            looks: Looks::default(),
            has_shown_more: false,
            shown: ExposedData::default(),
        }
    }

    /// The same with another state and past.
    pub fn with_state(&self, state: State, past: Past) -> Member {
        Member {
            past,
            state,
            doing: self.doing,
            ending: self.ending.clone(),
            mailbox: self.mailbox.clone(),
            counters: self.counters.clone(),
            sent: self.sent,
            links: self.links.clone(),
            unsent: self.unsent.clone(),
            outbox: self.outbox.clone(),
            starting: self.starting.clone(),
            disk: self.disk.clone(),
            restarts: self.restarts,
            overtaken: self.overtaken,
            looks: self.looks.clone(),
            has_shown_more: self.has_shown_more,
            shown: self.shown.clone(),
        }
    }

    /// What it shows from a time on is remembered, if that is not too much.
    pub fn note_look(&mut self, look: Look) {
        if self.looks.len() < MOST_LOOKS {
            self.looks.push(look);
        } else {
            self.has_shown_more = true;
        }
    }

    /// The host is off: all is gone but its disk, with which it may start again at a time.
    pub fn switch_off(&mut self, now_ns: u64, again: Option<(u64, Box<Disk>)>) {
        let nothing = Look::nothing(now_ns);
        self.shown = nothing.data.clone();
        self.note_look(nothing);
        self.state.host = None;
        self.ending = None;
        self.doing = Doing::Off(again.as_ref().map(|(at_ns, _)| *at_ns));
        if let Some((at_ns, disk)) = again {
            self.starting.at_ns = at_ns;
            self.disk = Some(Arc::from(disk));
            self.restarts += 1;
        }
    }

    /// What its host warns of.
    pub fn warnings(&self) -> &[String] {
        let host = self.state.host.as_ref();
        host.map_or(&[], everett_linux::Host::warnings)
    }

    /// The time of its clock.
    pub fn clock_ns(&self) -> u64 {
        let host = self.state.host.as_ref();
        host.map_or(0, everett_linux::Host::clock_ns)
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

    /// When it sent what is not on its way yet.
    pub fn unsent_ns(&self) -> Option<u64> {
        self.unsent.iter().map(|packet| packet.clock_ns).min()
    }

    /// When it does something next by itself or because something arrives. `u64::MAX` where nothing will happen.
    pub fn next_ns(&self) -> u64 {
        if let Some(sent_ns) = self.unsent_ns() {
            return sent_ns;
        }
        match (&self.state.host, self.doing) {
            (None, Doing::Runs) => self.starting.at_ns,
            (_, doing) => self.mailbox.next_event_ns(doing, self.clock_ns()),
        }
    }
}
