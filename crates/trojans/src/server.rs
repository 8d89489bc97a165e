//! Explores what a server accepts: listens to the exploration of a server that receives an
//! unconstrained message, prunes paths without Trojan messages, and decides the paths that accept.

use everett_engine::{Explorer, Keep, Listener, SourceFrame, StateView, Trace, WorldFinding};
use everett_expr::{ArrayInfo, ExprId, Node};
use everett_linux::{Ending, Packet};
use everett_net::HostIndex;
use everett_vm::BugKind;
use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::pattern::Pattern;
use crate::point_times::PointTime;
use crate::predicate::StoredPath;
use crate::search::{Answer, Search};

/// The exposed state whose keys are the marks in the code.
pub const MARKS: &str = "trojans";
/// The key of a mark that accepts.
pub const ACCEPT: &str = "accept";
/// The key of a mark that rejects.
pub const REJECT: &str = "reject";

/// When a server path accepts the message. A path that ends in a finding always accepts it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AcceptRule {
    /// The server answers the sender.
    Reply,
    /// The server answers the sender with a reply that matches.
    ReplyMatches(Pattern),
    /// The server answers the sender with a reply that does not match.
    ReplyOther(Pattern),
    /// The server makes one of these system calls.
    Calls(Vec<String>),
    /// The server exposes [`ACCEPT`] of [`MARKS`].
    Marks,
}

/// Why a path accepts the message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// The server answers.
    Reply,
    /// The server makes this system call.
    Call(String),
    /// The server exposes the mark.
    Mark,
    /// The path ends in this finding.
    Crash(String),
}

/// The hosts of the analysis, and the rule of acceptance.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The server.
    pub server: HostIndex,
    /// The clients, one of which sends the message.
    pub clients: Vec<HostIndex>,
    /// The port that the message comes from.
    pub sender_port: u16,
    /// The length of the message in bytes.
    pub length: u32,
    /// When a path accepts.
    pub accept: AcceptRule,
    /// When the server is in the state under analysis, if an event gives it. In other worlds, the
    /// message does not count.
    pub point_time: Option<PointTime>,
}

impl ServerOptions {
    /// Returns the packet of the message, if the server has received it.
    pub(crate) fn received<'p>(&self, view: &'p StateView<'_, '_>) -> Option<&'p Packet> {
        let mut received = view.received();
        received.find(|packet| packet.from.port() == self.sender_port)
    }

    /// Returns whether the server has received the message.
    pub(crate) fn has_message(&self, view: &StateView<'_, '_>) -> bool {
        view.host() == self.server && self.received(view).is_some()
    }

    /// Decides about a host that has received a packet: the message must find the server in the state
    /// under analysis.
    pub(crate) fn delivered(&self, view: &StateView<'_, '_>) -> Keep {
        match &self.point_time {
            Some(_) if self.has_message(view) && !view.is_marked() => Keep::Prune,
            Some(point_time) => point_time.delivered(view, self.server),
            None => Keep::Yes,
        }
    }

    /// Decides about a host that has exposed data.
    pub(crate) fn exposed(&self, view: &StateView<'_, '_>) -> Keep {
        let point_time = self.point_time.as_ref();
        point_time.map_or(Keep::Yes, |point_time| {
            point_time.exposed(view, self.server)
        })
    }

    /// Returns whether the packet is an answer of the server to the sender.
    pub(crate) fn is_reply(&self, sender: &StateView<'_, '_>, packet: &Packet) -> bool {
        packet.payload().is_some()
            && packet.to.port() == self.sender_port
            && self.has_message(sender)
    }

    /// Returns whether the server sends to a host that is not a client, for whose answer it may
    /// wait.
    pub(crate) fn asks(&self, sender: &StateView<'_, '_>, to: &[HostIndex]) -> bool {
        let is_other = |host: &HostIndex| *host != self.server && !self.clients.contains(host);
        self.has_message(sender) && to.iter().any(is_other)
    }

    /// Returns the engine's input that holds the message.
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

/// How a server path ended.
pub(crate) enum End {
    /// In this finding.
    Finding(String),
    /// In a problem that is not a fault of the program.
    Problem(String),
    /// Normally.
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

/// A server path that accepts messages.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The path condition.
    pub path: StoredPath,
    /// Why it accepts.
    pub why: Why,
    /// The stack at acceptance, innermost frame first.
    pub stack: Vec<SourceFrame>,
    /// The server's trace.
    pub trace: Trace,
    /// Whether the path has Trojan messages.
    pub answer: Answer,
}

/// A listener that collects the accepting paths of a server.
pub struct Server<'s> {
    options: ServerOptions,
    search: &'s mut Search,
    /// Paths that accept and have Trojan messages, or may have some.
    pub accepted: Vec<Accepted>,
    /// The number of accepting paths, including paths without Trojan messages that were not pruned.
    pub accepting: u64,
    /// The number of rejecting paths.
    pub rejecting: u64,
    /// States that were pruned because no Trojan message reaches them.
    pub pruned: u64,
    /// Whether the server received the message.
    pub has_received: bool,
    /// Reasons why the search could not decide something.
    pub problems: Vec<String>,
    /// Addresses of hosts other than clients to which the server sent something.
    elsewhere: BTreeSet<SocketAddr>,
    /// Called for each path that accepts Trojan messages, or may do so.
    on_found: Option<OnFound<'s>>,
}

/// What is called for a path that has been found.
pub type OnFound<'s> = &'s mut dyn FnMut(&mut Search, &Accepted);

impl<'s> Server<'s> {
    /// Creates a listener that has seen nothing yet.
    pub fn new(
        options: ServerOptions,
        search: &'s mut Search,
        on_found: Option<OnFound<'s>>,
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

    /// Records that a path accepts, under a further condition.
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
            found(self.search, &accepted);
        }
        self.accepted.push(accepted);
    }

    /// Handles an answer of the server to the sender.
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
        let keep = self.options.delivered(receiver);
        if keep != Keep::Prune && self.has_message(receiver) {
            self.has_received |= packet.payload().is_some();
        }
        keep
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
            return self.options.exposed(state);
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
        // The server may wait for another host before it answers.
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

/// Returns whether a finding is a fault of the program: not a limit of the search, and not
/// something that only an assumption excludes.
fn is_of_program(kind: BugKind) -> bool {
    !kind.is_tool_limit() && !matches!(kind, BugKind::Hang | BugKind::InvalidAssumption)
}
