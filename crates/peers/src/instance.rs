//! One live instance of a peer: its connections, its position in the recording, the acts that it is
//! told and its answers.

use everett_sim::{ConnectionId, FLUSH_BYTES, HostAct, PeerAct};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

use crate::compare::{Comparison, compare};
use crate::link::{CHUNK, Came, Link};
use crate::process::Process;
use crate::setup::{LiveSetup, Where};

/// The socket to which a live client connects.
pub enum Listener {
    /// A TCP socket.
    Tcp(TcpListener),
    /// A socket for datagrams.
    Udp(Arc<UdpSocket>),
    /// A Unix socket, which may be in a folder of its own.
    Unix {
        /// The socket.
        listener: UnixListener,
        /// The folder, which is removed with the socket.
        _folder: Option<TempDir>,
    },
}

impl Listener {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Udp(socket) => socket.as_fd(),
            Listener::Unix { listener, .. } => listener.as_fd(),
        }
    }

    /// Accepts the next client, or receives the next datagram and hands it to the link of its sender. Returns the link of
    /// a new client.
    fn accept(&self, links: &mut [Option<Link>]) -> io::Result<Option<Link>> {
        let socket = match self {
            Listener::Tcp(listener) => return Link::accepted(listener.accept()?.0).map(Some),
            Listener::Unix { listener, .. } => {
                return Link::accepted_unix(listener.accept()?.0).map(Some);
            }
            Listener::Udp(socket) => socket,
        };
        if !links.iter().flatten().all(Link::has_room) {
            return Err(ErrorKind::WouldBlock.into());
        }
        let mut bytes = vec![0; MAX_DATAGRAM];
        let (count, sender) = socket.recv_from(&mut bytes)?;
        bytes.truncate(count);
        if let Some(link) = links.iter_mut().flatten().find(|link| link.is_from(sender)) {
            link.hand_over(&bytes);
            return Ok(None);
        }
        let mut link = Link::of_sender(socket.clone(), sender)?;
        link.hand_over(&bytes);
        Ok(Some(link))
    }
}

/// Maximum size of a datagram.
const MAX_DATAGRAM: usize = 1 << 16;

/// A live instance.
pub struct Instance {
    setup: Arc<LiveSetup>,
    /// The process of the instance, if Everett started it. Instances that differ by their
    /// connections share it.
    process: Option<Arc<Mutex<Process>>>,
    at: Where,
    listener: Option<Listener>,
    links: Vec<Option<Link>>,
    /// Memory for reading.
    chunk: Vec<u8>,
    /// Acts of the peer about connections (accept, refuse, open) that were not reported yet.
    unanswered: VecDeque<PeerAct>,
    /// The position of the instance in the recording.
    pub after: u128,
    /// Acts that the instance was told since then.
    pub told: Vec<HostAct>,
    /// The connection on which a host acted last, until the peer has reacted or was silent.
    awaited: Option<ConnectionId>,
    /// Whether anything arrived since then.
    has_reacted: bool,
    /// The connection that was opened last, until something is sent on it.
    unspoken: Option<ConnectionId>,
    /// Whether the peer has said something on a connection on which nothing had been sent.
    greets: bool,
    /// The counter value when the instance was last asked.
    pub used: u64,
}

impl Instance {
    /// Creates an instance that was told nothing.
    pub fn new(
        setup: Arc<LiveSetup>,
        process: Option<Arc<Mutex<Process>>>,
        at: Where,
        listener: Option<Listener>,
    ) -> Instance {
        Instance {
            setup,
            process,
            at,
            listener,
            links: Vec::new(),
            chunk: vec![0; CHUNK],
            unanswered: VecDeque::new(),
            after: 0,
            told: Vec::new(),
            awaited: None,
            has_reacted: false,
            unspoken: None,
            greets: false,
            used: 0,
        }
    }

    fn link(&mut self, connection: ConnectionId) -> Option<&mut Link> {
        self.links.get_mut(connection as usize)?.as_mut()
    }

    /// Returns whether the process has ended, so that nothing can arrive except what is in transit.
    fn is_dead(&self) -> bool {
        let Some(process) = &self.process else {
            return false;
        };
        let mut process = process.lock().unwrap_or_else(PoisonError::into_inner);
        process.has_ended()
    }

    /// Waits until the peer reacts to the last act, if that was on another connection. Bytes on
    /// several connections arrive in no defined order, but a peer may depend on it. Whether earlier
    /// answers were reported does not matter: what arrives later counts, on any connection.
    fn let_react(&mut self, next: ConnectionId) {
        let Some(last) = self.awaited.filter(|last| *last != next) else {
            return;
        };
        let until = Instant::now() + self.setup.patience;
        loop {
            self.move_bytes();
            let reacts = self.has_reacted || self.link(last).is_none();
            if reacts || Instant::now() >= until || !self.wait(until) {
                self.awaited = None;
                return;
            }
        }
    }

    /// Notes that the peer may react to what is sent on a connection now.
    fn await_reaction(&mut self, connection: ConnectionId) {
        self.move_bytes();
        self.has_reacted = false;
        // One that has ended already has nothing more to say there.
        let link = self.link(connection);
        let can_react = link.is_some_and(|link| !link.has_ended());
        self.awaited = can_react.then_some(connection);
    }

    /// Tells the instance an act of a host.
    pub fn tell(&mut self, act: HostAct) {
        if !self.setup.any_order {
            self.let_react(act.connection());
        }
        if let HostAct::Send(connection, _) | HostAct::End(connection) = &act {
            self.await_reaction(*connection);
            self.unspoken = self.unspoken.filter(|opened| opened != connection);
        }
        match &act {
            HostAct::Open(connection) => {
                self.open(*connection);
                self.unspoken = Some(*connection);
                // A peer that says something first has then noticed the connection.
                if self.greets {
                    self.await_reaction(*connection);
                }
            }
            HostAct::Accept(_) => {}
            HostAct::Refuse(connection) | HostAct::Reset(connection) => {
                if let Some(link) = self.links.get_mut(*connection as usize) {
                    *link = None;
                }
            }
            HostAct::Send(connection, bytes) => {
                if let Some(link) = self.link(*connection) {
                    link.send(bytes);
                }
            }
            HostAct::End(connection) => {
                if let Some(link) = self.link(*connection) {
                    link.end();
                }
            }
        }
        self.told.push(act);
    }

    fn open(&mut self, connection: ConnectionId) {
        let (is_datagram, patience) = (self.setup.is_datagram, self.setup.long_patience());
        let link = Link::connect(&self.at, is_datagram, patience).ok();
        let at = connection as usize;
        if self.links.len() <= at {
            self.links.resize_with(at + 1, || None);
        }
        match (&link, is_datagram) {
            (None, _) => self.unanswered.push_back(PeerAct::Refuse(connection)),
            (Some(_), false) => self.unanswered.push_back(PeerAct::Accept(connection)),
            (Some(_), true) => {}
        }
        self.links[at] = link;
    }

    /// Waits until bytes can be read or written, or a client connects. Returns `false` if none of
    /// that can happen.
    fn wait(&mut self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let mut all = Vec::with_capacity(self.links.len() + 1);
        for link in self.links.iter().flatten() {
            let mut wanted = PollFlags::empty();
            wanted.set(PollFlags::POLLIN, link.wants_reading());
            wanted.set(PollFlags::POLLOUT, link.wants_writing());
            if !wanted.is_empty() {
                all.push(PollFd::new(link.fd(), wanted));
            }
        }
        if let Some(listener) = &self.listener {
            all.push(PollFd::new(listener.fd(), PollFlags::POLLIN));
        }
        if all.is_empty() {
            return false;
        }
        // Rounded up, so that the last wait is not a busy one.
        let left = left.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32;
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let ready = poll(&mut all, timeout).unwrap_or(0);
        drop(all);
        if ready > 0 {
            self.move_bytes();
        }
        true
    }

    /// Reads and writes as many bytes as possible, and accepts clients.
    fn move_bytes(&mut self) {
        for (link, connection) in self.links.iter_mut().zip(0..) {
            let Some(link) = link else { continue };
            link.write();
            link.read(&mut self.chunk);
            let has_arrived = link.take_arrivals() > 0;
            self.has_reacted |= has_arrived;
            self.greets |= has_arrived && self.unspoken == Some(connection);
        }
        while let Some(listener) = &self.listener {
            match listener.accept(&mut self.links) {
                Ok(None) => self.has_reacted = true,
                Ok(Some(link)) => {
                    self.has_reacted = true;
                    let connection = self.links.len() as ConnectionId;
                    self.links.push(Some(link));
                    self.unanswered.push_back(PeerAct::Open(connection));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Returns the next act of the peer that was not reported yet.
    fn next_said(&mut self) -> Option<PeerAct> {
        if let Some(act) = self.unanswered.pop_front() {
            return Some(act);
        }
        let is_datagram = self.setup.is_datagram;
        for (link, connection) in self.links.iter_mut().zip(0..) {
            let came = link.as_mut().and_then(Link::take);
            return Some(match came {
                None => continue,
                Some(Came::Bytes(bytes)) => PeerAct::Send(connection, bytes),
                Some(Came::End) => PeerAct::End(connection),
                Some(Came::Broken) => {
                    if !is_datagram {
                        *link = None;
                        PeerAct::Reset(connection)
                    } else {
                        PeerAct::Refuse(connection)
                    }
                }
            });
        }
        None
    }

    /// Returns the next act of the peer, or why it cannot be asked.
    pub fn ask(&mut self) -> Result<PeerAct, String> {
        // A client gets more time to connect, because nobody knows how long it takes to start.
        let is_awaited = self.listener.is_some() && self.links.is_empty();
        let patience = match is_awaited {
            true => self.setup.long_patience(),
            false => self.setup.patience,
        };
        let until = Instant::now() + patience;
        let sent = |act: &HostAct| match act {
            HostAct::Send(_, bytes) => bytes.len(),
            _ => 0,
        };
        let is_flush =
            !self.setup.any_order && self.told.iter().map(sent).sum::<usize>() >= FLUSH_BYTES;
        loop {
            self.move_bytes();
            if let Some(act) = self.next_said() {
                return Ok(act);
            }
            let is_taken = !self.links.iter().flatten().any(Link::wants_writing);
            if is_flush && is_taken {
                return Ok(PeerAct::Taken);
            }
            let cannot_speak = !self.links.iter().flatten().any(Link::wants_reading);
            let is_over = cannot_speak && self.is_dead();
            if is_over {
                // Bytes that the peer sent before it ended count.
                self.move_bytes();
                return match self.next_said() {
                    Some(act) => Ok(act),
                    None if is_awaited => Err(self.ended_early()),
                    None => Ok(PeerAct::Silence),
                };
            }
            // Checks periodically whether a client has ended.
            let wake_at = if self.listener.is_some() {
                until.min(Instant::now() + POLL_INTERVAL)
            } else {
                until
            };
            if Instant::now() >= until || !self.wait(wake_at) {
                self.awaited = None;
                return Ok(PeerAct::Silence);
            }
        }
    }

    /// Describes a client that has ended before it connected.
    fn ended_early(&self) -> String {
        let process = self.process.as_ref();
        let process = process.map(|process| process.lock().unwrap_or_else(PoisonError::into_inner));
        let printed = process.map(|process| process.printed()).unwrap_or_default();
        format!("it ended before it connected; it printed {printed:?}")
    }

    /// Waits for a recorded act of the peer. Fails with a description if the peer acts differently.
    pub fn expect(&mut self, act: &PeerAct) -> Result<(), String> {
        let until = Instant::now() + self.setup.long_patience();
        loop {
            self.move_bytes();
            let seen = match act {
                PeerAct::Silence | PeerAct::Taken => return Ok(()),
                PeerAct::Accept(_) | PeerAct::Refuse(_) | PeerAct::Open(_) => {
                    let is_datagram_refused =
                        self.setup.is_datagram && matches!(act, PeerAct::Refuse(_));
                    match self.unanswered.front() {
                        Some(front) if front == act => {
                            self.unanswered.pop_front();
                            return Ok(());
                        }
                        None if is_datagram_refused => return Ok(()),
                        front => front.map(PeerAct::describe),
                    }
                }
                PeerAct::Send(connection, bytes) => match self.expect_bytes(*connection, bytes) {
                    Seen::Same => return Ok(()),
                    Seen::Other(what) => Some(what),
                    Seen::NotYet => None,
                },
                PeerAct::End(connection) | PeerAct::Reset(connection) => {
                    let link = self.link(*connection);
                    match link {
                        None => return Ok(()),
                        Some(link) if link.ended() => {
                            link.take();
                            return Ok(());
                        }
                        Some(link) if !link.kept().is_empty() => {
                            Some(format!("sends {:?}", String::from_utf8_lossy(link.kept())))
                        }
                        Some(_) => None,
                    }
                }
            };
            let is_late = Instant::now() >= until;
            if let Some(other) = seen {
                return Err(other);
            }
            if is_late || !self.wait(until.min(Instant::now() + POLL_INTERVAL)) {
                return Err(self.instead_of(act));
            }
        }
    }

    /// Describes what has arrived where a recorded act was expected and did not come in time.
    fn instead_of(&mut self, act: &PeerAct) -> String {
        let nothing = "says nothing".to_owned();
        let PeerAct::Send(connection, wanted) = act else {
            return nothing;
        };
        match self.link(*connection) {
            Some(link) if !link.kept().is_empty() => {
                let pairs = link.kept().iter().zip(wanted);
                let common = pairs.take_while(|(one, other)| one == other).count();
                difference(wanted, link.kept(), common)
            }
            _ => nothing,
        }
    }

    fn expect_bytes(&mut self, connection: ConnectionId, wanted: &[u8]) -> Seen {
        let setup = self.setup.clone();
        let Some(link) = self.link(connection) else {
            return Seen::Other("has closed the connection".to_owned());
        };
        let at = match compare(wanted, link.kept(), &setup.varies, link.is_stream()) {
            Comparison::Same(count) => {
                link.take_bytes(count);
                return Seen::Same;
            }
            // Nothing more arrives after the end, or as long as nothing is taken.
            Comparison::NotYet if !link.has_ended() && link.has_room() => return Seen::NotYet,
            Comparison::NotYet => link.kept().len(),
            Comparison::Other(at) => at,
        };
        Seen::Other(difference(wanted, link.kept(), at))
    }
}

/// The interval between two checks of an instance.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The comparison of an instance's answer with a recorded one.
enum Seen {
    Same,
    Other(String),
    NotYet,
}

/// Returns the first difference between two texts, for people.
fn difference(wanted: &[u8], seen: &[u8], at: usize) -> String {
    /// Number of bytes that are shown around the difference.
    const AROUND: usize = 20;
    let part = |bytes: &[u8]| {
        let from = at.saturating_sub(AROUND).min(bytes.len());
        let to = (at + AROUND).min(bytes.len());
        format!("{:?}", String::from_utf8_lossy(&bytes[from..to]))
    };
    format!(
        "sends {} where it had sent {} (byte {at})",
        part(seen),
        part(wanted)
    )
}
