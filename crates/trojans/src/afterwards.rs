//! Explores what the server does with a message after it has accepted it, until it waits for the
//! next one. Reports which findings Trojan messages reach, and which of them client messages reach
//! too.

use everett_engine::{Explorer, Keep, Listener, SourceFrame, StateView, Trace, WorldFinding};
use everett_expr::ExprId;
use everett_linux::{Ending, Packet};
use everett_net::HostIndex;
use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::predicate::StoredPath;
use crate::search::{Answer, Found, Search};
use crate::server::{End, ServerOptions};

/// The messages that the exploration follows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Followed {
    /// Messages that no client sends.
    Trojans,
    /// Messages that clients send.
    Sent,
}

/// A finding that a message leads to.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The description of the finding.
    pub what: String,
    /// The stack of the finding, innermost frame first.
    pub stack: Vec<SourceFrame>,
    /// The path condition.
    pub path: StoredPath,
    /// The server's trace.
    pub trace: Trace,
    /// A Trojan message that leads there; `None` for messages of clients.
    pub found: Option<Found>,
}

/// A listener that collects the findings that the followed messages reach.
pub struct Afterwards<'s> {
    options: ServerOptions,
    search: &'s mut Search,
    followed: Followed,
    /// Findings that the messages reach.
    pub reached: Vec<Reached>,
    /// Reasons why the search could not decide something.
    pub problems: Vec<String>,
    /// Addresses of hosts other than clients to which the server sent something.
    elsewhere: BTreeSet<SocketAddr>,
}

impl<'s> Afterwards<'s> {
    /// Creates a listener that has seen nothing yet.
    pub fn new(
        options: ServerOptions,
        search: &'s mut Search,
        followed: Followed,
    ) -> Afterwards<'s> {
        Afterwards {
            options,
            search,
            followed,
            reached: Vec::new(),
            problems: Vec::new(),
            elsewhere: BTreeSet::new(),
        }
    }

    /// Prunes a state that no followed message reaches.
    fn consider(&mut self, view: &mut StateView<'_, '_>) -> Keep {
        if !self.options.has_message(view) {
            return Keep::Yes;
        }
        let conditions: Vec<ExprId> = view.path_condition().iter().collect();
        let message = self.options.message(view);
        let Ok(path) = self.search.path(view.arena(), &message, &conditions) else {
            return Keep::Yes;
        };
        let is_possible = match self.followed {
            Followed::Trojans => self.search.is_possible(&path),
            Followed::Sent => self.search.may_be_sent(&path),
        };
        match is_possible {
            true => Keep::Yes,
            false => Keep::Prune,
        }
    }

    fn note(&mut self, problem: String) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Records a path that ends in a finding.
    fn reach(&mut self, view: &mut StateView<'_, '_>, what: String) {
        let conditions: Vec<ExprId> = view.path_condition().iter().collect();
        let message = self.options.message(view);
        let path = StoredPath::of(view.arena(), &message, &conditions);
        let terms = match self.search.stored(&path) {
            Ok(terms) => terms,
            Err(error) => return self.note(error.to_string()),
        };
        let found = match self.followed {
            Followed::Trojans => match self.search.decide(&terms) {
                Answer::Trojan(found) => Some(found),
                Answer::None => return,
                Answer::Undecided(reason) => return self.note(reason),
            },
            Followed::Sent if self.search.may_be_sent(&terms) => None,
            Followed::Sent => return,
        };
        self.reached.push(Reached {
            what,
            stack: view.stack(),
            path,
            trace: view.trace(),
            found,
        });
    }
}

impl Listener for Afterwards<'_> {
    fn finding(&mut self, _finding: &WorldFinding) {}

    fn tick(&mut self, _explorer: &Explorer<'_>) {}

    fn wants_waits(&self) -> bool {
        true
    }

    fn keeps_sent(&self) -> bool {
        true
    }

    fn forked(&mut self, child: &mut StateView<'_, '_>) -> Keep {
        self.consider(child)
    }

    fn narrowed(&mut self, state: &mut StateView<'_, '_>) -> Keep {
        self.consider(state)
    }

    fn sent(&mut self, sender: &mut StateView<'_, '_>, packet: &Packet, to: &[HostIndex]) -> Keep {
        if self.options.is_reply(sender, packet) {
            // A reply would make the sender exit, which ends the world.
            return Keep::Lose;
        }
        if self.options.asks(sender, to) {
            self.elsewhere.insert(packet.to);
        }
        Keep::Yes
    }

    fn exposed(&mut self, state: &mut StateView<'_, '_>) -> Keep {
        self.options.exposed(state)
    }

    fn delivered(&mut self, receiver: &mut StateView<'_, '_>, _packet: &Packet) -> Keep {
        self.options.delivered(receiver)
    }

    fn waits(&mut self, state: &mut StateView<'_, '_>) -> Keep {
        let asks_others = state
            .sent()
            .any(|packet| self.elsewhere.contains(&packet.to));
        match self.options.has_message(state) && !asks_others {
            true => Keep::Prune,
            false => Keep::Yes,
        }
    }

    fn ended(&mut self, state: &mut StateView<'_, '_>, ending: &Ending) {
        if !self.options.has_message(state) {
            return;
        }
        match End::of(ending) {
            End::Finding(what) => self.reach(state, what),
            End::Problem(problem) => self.note(problem),
            End::Usual => {}
        }
    }
}
