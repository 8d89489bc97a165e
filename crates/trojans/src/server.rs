//! Explores what a server accepts: listens to the search of a server that receives an unconstrained
//! message, prunes paths without Trojan messages, and decides the paths that accept.

use everett_engine::{Explorer, Keep, Listener, SourceFrame, StateView, Trace, WorldFinding};
use everett_expr::{ArrayInfo, ExprId, Node};
use everett_linux::{Ending, Packet};
use everett_net::HostIndex;
use everett_vm::BugKind;
use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::pattern::Pattern;
use crate::predicate::StoredPath;
use crate::search::{Answer, Search};

/// What marks in the code are exposed as: the state and its keys.
pub const MARKS: &str = "trojans";
/// The key of a mark that accepts.
pub const ACCEPT: &str = "accept";
/// The key of a mark that rejects.
pub const REJECT: &str = "reject";

/// When a path accepts the message. A path that ends in a finding accepts it always.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AcceptRule {
    /// It answers the sender.
    Reply,
    /// It answers the sender with something that matches.
    ReplyMatches(Pattern),
    /// It answers the sender with something that does not match.
    ReplyOther(Pattern),
    /// It makes one of these system calls.
    Calls(Vec<String>),
    /// It says so: it exposes [`ACCEPT`] of [`MARKS`].
    Marks,
}

/// Why a path accepts the message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// It answers.
    Reply,
    /// It makes this system call.
    Call(String),
    /// It says so.
    Mark,
    /// It ends in this finding.
    Crash(String),
}

/// Who takes part, and what accepts.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The server.
    pub server: HostIndex,
    /// Its clients, one of which sends the message.
    pub clients: Vec<HostIndex>,
    /// The port that the message comes from.
    pub sender_port: u16,
    /// Bytes of the message.
    pub length: u32,
    /// What accepts.
    pub accept: AcceptRule,
}

impl ServerOptions {
    /// The packet that is the message, if the server has received it.
    pub(crate) fn received<'p>(&self, view: &'p StateView<'_, '_>) -> Option<&'p Packet> {
        let mut received = view.received();
        received.find(|packet| packet.from.port() == self.sender_port)
    }

    /// The server has received the message.
    pub(crate) fn has_message(&self, view: &StateView<'_, '_>) -> bool {
        view.host() == self.server && self.received(view).is_some()
    }

    /// The server answers the sender.
    pub(crate) fn is_reply(&self, sender: &StateView<'_, '_>, packet: &Packet) -> bool {
        packet.payload().is_some()
            && packet.to.port() == self.sender_port
            && self.has_message(sender)
    }

    /// The server asks another host, which is no client, and may wait for its answer.
    pub(crate) fn asks(&self, sender: &StateView<'_, '_>, to: &[HostIndex]) -> bool {
        let is_other = |host: &HostIndex| *host != self.server && !self.clients.contains(host);
        self.has_message(sender) && to.iter().any(is_other)
    }

    /// The input that the message is, in the terms of the engine.
    pub(crate) fn message(&self, view: &mut StateView<'_, '_>) -> ArrayInfo {
        let payload = self.received(view).and_then(Packet::payload).cloned();
        let first = payload.filter(|payload| !payload.is_empty());
        let first = first.map(|payload| payload.byte_term(view.arena(), 0));
        let nothing = ArrayInfo {
            ordinal: 0,
            name: String::new(),
            size: self.length,
        };
        match first.map(|first| view.arena().node(first)) {
            Some(Node::Read { array, .. }) => view.arena().array_info(array).clone(),
            _ => nothing,
        }
    }
}

/// How a server ended.
pub(crate) enum End {
    /// In a finding, which is this.
    Finding(String),
    /// In something that is no fault of the program.
    Problem(String),
    /// As it should.
    Usual,
}

impl End {
    pub(crate) fn of(ending: &Ending) -> End {
        match ending {
            Ending::Bug(bug) if is_of_program(bug.kind) => {
                End::Finding(format!("{}: {}", bug.kind.name(), bug.message))
            }
            Ending::Bug(bug) => End::Problem(bug.message.clone()),
            Ending::Signal(signal) => End::Finding(format!("signal {signal} ends the server")),
            _ => End::Usual,
        }
    }
}

/// A path that accepts messages.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The condition of the path.
    pub path: StoredPath,
    /// Why it accepts.
    pub why: Why,
    /// Where, innermost first.
    pub stack: Vec<SourceFrame>,
    /// The server's trace.
    pub trace: Trace,
    /// Whether there is a Trojan message on it.
    pub answer: Answer,
}

/// What was seen of a server.
pub struct Server<'s> {
    options: ServerOptions,
    search: &'s mut Search,
    /// Paths that accept and have Trojan messages, or may have.
    pub accepted: Vec<Accepted>,
    /// How many paths accepted, with those without Trojan messages that were not pruned before.
    pub accepting: u64,
    /// How many paths rejected.
    pub rejecting: u64,
    /// States that were pruned because no Trojan message reaches them.
    pub pruned: u64,
    /// The message was received.
    pub has_received: bool,
    /// Why something could not be decided.
    pub problems: Vec<String>,
    /// Addresses of hosts that are no clients, to which the server sent something.
    elsewhere: BTreeSet<SocketAddr>,
    /// Called for each path that accepts a Trojan message.
    on_found: Option<&'s mut dyn FnMut(&Accepted)>,
}

impl<'s> Server<'s> {
    /// Nothing was seen yet.
    pub fn new(
        options: ServerOptions,
        search: &'s mut Search,
        on_found: Option<&'s mut dyn FnMut(&Accepted)>,
    ) -> Server<'s> {
        Server {
            options,
            search,
            accepted: Vec::new(),
            accepting: 0,
            rejecting: 0,
            pruned: 0,
            has_received: false,
            problems: Vec::new(),
            elsewhere: BTreeSet::new(),
            on_found,
        }
    }

    fn has_message(&self, view: &StateView<'_, '_>) -> bool {
        self.options.has_message(view)
    }

    fn note(&mut self, problem: String) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn conditions(&mut self, view: &mut StateView<'_, '_>) -> Option<Vec<ExprId>> {
        let conditions: Vec<ExprId> = view.path_condition().iter().collect();
        let message = self.options.message(view);
        match self.search.path(view.arena(), &message, &conditions) {
            Ok(path) => Some(path),
            Err(error) => {
                self.note(error.to_string());
                None
            }
        }
    }

    /// Prunes a state that no Trojan message reaches.
    fn consider(&mut self, view: &mut StateView<'_, '_>) -> Keep {
        if !self.search.options().prune || !self.has_message(view) {
            return Keep::Yes;
        }
        let Some(path) = self.conditions(view) else {
            return Keep::Yes;
        };
        match self.search.is_possible(&path) {
            true => Keep::Yes,
            false => {
                self.pruned += 1;
                Keep::Prune
            }
        }
    }

    /// A path accepts, under a further condition.
    fn accept(&mut self, view: &mut StateView<'_, '_>, why: Why, further: Option<ExprId>) {
        self.accepting += 1;
        let mut conditions: Vec<ExprId> = view.path_condition().iter().collect();
        conditions.extend(further);
        let message = self.options.message(view);
        let path = StoredPath::of(view.arena(), &message, &conditions);
        let answer = match self.search.stored(&path) {
            Ok(terms) => self.search.decide(&terms),
            Err(error) => Answer::Undecided(error.to_string()),
        };
        if answer == Answer::None {
            return;
        }
        let accepted = Accepted {
            path,
            why,
            stack: view.stack(),
            trace: view.trace(),
            answer,
        };
        if let Some(found) = &mut self.on_found {
            found(&accepted);
        }
        self.accepted.push(accepted);
    }

    /// The server answers the sender.
    fn replies(&mut self, view: &mut StateView<'_, '_>, packet: &Packet) -> Keep {
        let (pattern, wanted) = match &self.options.accept {
            AcceptRule::Reply => {
                self.accept(view, Why::Reply, None);
                return Keep::Prune;
            }
            AcceptRule::ReplyMatches(pattern) => (pattern.clone(), true),
            AcceptRule::ReplyOther(pattern) => (pattern.clone(), false),
            AcceptRule::Calls(_) | AcceptRule::Marks => return Keep::Yes,
        };
        let mut bytes = Vec::new();
        if let Some(payload) = packet.payload() {
            for at in 0..payload.len() {
                bytes.push(payload.byte_term(view.arena(), at));
            }
        }
        let arena = view.arena();
        let mut matches = pattern.matches(arena, &bytes);
        if !wanted {
            matches = arena.not(matches);
        }
        if arena.is_false(matches) {
            self.rejecting += 1;
        } else {
            self.accept(view, Why::Reply, Some(matches));
        }
        Keep::Prune
    }
}

impl Listener for Server<'_> {
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
            return self.replies(sender, packet);
        }
        if self.options.asks(sender, to) {
            self.elsewhere.insert(packet.to);
        }
        Keep::Yes
    }

    fn delivered(&mut self, receiver: &mut StateView<'_, '_>, packet: &Packet) -> Keep {
        if receiver.host() == self.options.server && self.has_message(receiver) {
            self.has_received |= packet.payload().is_some();
        }
        Keep::Yes
    }

    fn called(&mut self, state: &mut StateView<'_, '_>, name: &str) -> Keep {
        let AcceptRule::Calls(calls) = &self.options.accept else {
            return Keep::Yes;
        };
        if !calls.iter().any(|call| call == name) || !self.has_message(state) {
            return Keep::Yes;
        }
        self.accept(state, Why::Call(name.to_owned()), None);
        Keep::Prune
    }

    fn exposed(&mut self, state: &mut StateView<'_, '_>) -> Keep {
        if !self.has_message(state) {
            return Keep::Yes;
        }
        if state.has_just_exposed(MARKS, REJECT) {
            self.rejecting += 1;
            return Keep::Prune;
        }
        if self.options.accept == AcceptRule::Marks && state.has_just_exposed(MARKS, ACCEPT) {
            self.accept(state, Why::Mark, None);
            return Keep::Prune;
        }
        Keep::Yes
    }

    fn waits(&mut self, state: &mut StateView<'_, '_>) -> Keep {
        // It may wait for a host that it asks before it answers.
        let asks_others = state
            .sent()
            .any(|packet| self.elsewhere.contains(&packet.to));
        match self.has_message(state) && !asks_others {
            true => {
                self.rejecting += 1;
                Keep::Prune
            }
            false => Keep::Yes,
        }
    }

    fn ended(&mut self, state: &mut StateView<'_, '_>, ending: &Ending) {
        if !self.has_message(state) {
            return;
        }
        match End::of(ending) {
            End::Finding(why) => self.accept(state, Why::Crash(why), None),
            End::Problem(problem) => self.note(problem),
            End::Usual => self.rejecting += 1,
        }
    }
}

/// A finding is one of the program: not a limit of the search, and nothing
/// that only an assumption excludes.
fn is_of_program(kind: BugKind) -> bool {
    !kind.is_tool_limit() && !matches!(kind, BugKind::Hang | BugKind::InvalidAssumption)
}
