//! The proxy of injector `corrupt`: a process next to the commands of a test that forwards messages
//! between a client and a server, and changes bytes of some.
//!
//! A message of a stream is what one side sends before the other side sends something. Each
//! datagram is a message.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{ForkResult, Pid, fork};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use super::Injected;
use crate::injector::{ByteFault, Change, Direction};
use crate::settings::Proxy;

/// Number of bytes that are read at a time.
const CHUNK: usize = 16 << 10;
/// Maximum size of a datagram.
const DATAGRAM: usize = 64 << 10;
/// Maximum number of simultaneous connections, and of datagram clients.
const CONNECTIONS: usize = 256;
/// Time limit for the server to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
const DIRECTIONS: [Direction; 2] = [Direction::ToServer, Direction::ToClient];

/// Starts the proxy as a child. When this returns, the proxy listens. It logs its changes to a
/// file.
pub(super) fn start(proxy: &Proxy, faults: &[ByteFault], log: &Path) -> std::io::Result<Pid> {
    let log = File::create(log)?;
    let corrupter = Corrupter {
        faults: faults.to_vec(),
        messages: [0; 2],
        log,
    };
    if proxy.is_udp {
        let socket = UdpSocket::bind(proxy.listen)?;
        socket.set_nonblocking(true)?;
        return in_child(|| Datagrams::new(socket, proxy.to, corrupter).serve());
    }
    let listener = TcpListener::bind(proxy.listen)?;
    listener.set_nonblocking(true)?;
    let streams = Streams {
        listener,
        to: proxy.to,
        connections: Vec::new(),
        corrupter,
    };
    in_child(|| streams.serve())
}

fn in_child(serve: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<Pid> {
    // SAFETY: a manager has one thread, so the child may do anything.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            super::sandbox::end_with_parent();
            let code = i32::from(serve().is_err());
            // SAFETY: ends the child without running the manager's exit handlers.
            unsafe { libc::_exit(code) }
        }
    }
}

/// Parses the log of a proxy.
pub(super) fn read_log(text: &str) -> Vec<Injected> {
    let parsed = text.lines().filter_map(|line| {
        let (direction, number) = line.split_once(' ')?;
        let direction = DIRECTIONS[direction.parse::<usize>().ok()?.min(1)];
        let number = number.parse().ok()?;
        Some(Injected {
            program: "proxy".to_owned(),
            function: format!("message {number} {}", direction.text()),
            number,
            stack: Vec::new(),
            arguments: String::new(),
        })
    });
    parsed.collect()
}

/// Counts messages and changes their bytes.
struct Corrupter {
    faults: Vec<ByteFault>,
    /// Messages so far, by direction.
    messages: [u64; 2],
    log: File,
}

impl Corrupter {
    /// Returns the number of a message that begins.
    fn begin(&mut self, direction: Direction) -> u64 {
        self.messages[direction as usize] += 1;
        self.messages[direction as usize]
    }

    /// Returns the changed bytes of a message, from an offset on.
    fn change(&mut self, bytes: &[u8], direction: Direction, message: u64, at: u64) -> Vec<u8> {
        let mut changed = Vec::with_capacity(bytes.len());
        for (offset, byte) in (at..).zip(bytes) {
            let (mut byte, mut is_kept) = (*byte, true);
            let hits = |fault: &&ByteFault| fault.hits(direction, message, offset);
            for fault in self.faults.iter().filter(hits) {
                match fault.change {
                    Change::Invert(mask) => byte ^= mask,
                    Change::Set(value) => byte = value,
                    Change::Insert(value) => changed.push(value),
                    Change::Remove => is_kept = false,
                }
                let line = format!("{} {message}\n", direction as usize);
                // If the write fails, the reader of the log sees that a fault is missing.
                let _ = self.log.write_all(line.as_bytes());
            }
            changed.extend(is_kept.then_some(byte));
        }
        changed
    }
}

/// One direction of a connection.
#[derive(Default)]
struct Flow {
    /// Bytes that wait for the receiver.
    waiting: Vec<u8>,
    /// The number of the current message, and how many of its bytes have passed.
    message: u64,
    offset: u64,
    /// Whether the sender has closed its end.
    has_ended: bool,
    /// Whether the proxy has closed the receiver's end.
    is_closed: bool,
}

/// A connection of a client, and its connection to the server; flows by direction.
struct Connection {
    /// The sender of each direction: client, server.
    senders: [TcpStream; 2],
    flows: [Flow; 2],
    /// The direction of the last message.
    last: Option<Direction>,
}

impl Connection {
    fn is_over(&self) -> bool {
        self.flows.iter().all(|flow| flow.is_closed)
    }

    /// Reads from a sender. The flow must be empty. Returns `false` if the connection is broken.
    fn receive(&mut self, direction: Direction, corrupter: &mut Corrupter) -> bool {
        let at = direction as usize;
        let mut chunk = vec![0; CHUNK];
        let got = match self.senders[at].read(&mut chunk) {
            Ok(got) => got,
            Err(error) => return is_passing(&error),
        };
        let flow = &mut self.flows[at];
        if got == 0 {
            flow.has_ended = true;
            return true;
        }
        if self.last != Some(direction) {
            self.last = Some(direction);
            (flow.message, flow.offset) = (corrupter.begin(direction), 0);
        }
        flow.waiting = corrupter.change(&chunk[..got], direction, flow.message, flow.offset);
        flow.offset += got as u64;
        true
    }

    /// Forwards waiting bytes. Returns `false` if the connection is broken.
    fn send(&mut self, direction: Direction) -> bool {
        let at = direction as usize;
        let flow = &mut self.flows[at];
        let receiver = &mut self.senders[1 - at];
        while !flow.waiting.is_empty() {
            match receiver.write(&flow.waiting) {
                Ok(sent) => drop(flow.waiting.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        if flow.has_ended && !flow.is_closed {
            flow.is_closed = true;
            // If the receiver is gone, there is nothing to close.
            let _ = receiver.shutdown(Shutdown::Write);
        }
        true
    }

    /// Returns the events to wait for on a side: that it sends, and that it can receive.
    fn interest(&self, side: usize) -> PollFlags {
        let (own, other) = (&self.flows[side], &self.flows[1 - side]);
        let mut flags = PollFlags::empty();
        if own.waiting.is_empty() && !own.has_ended {
            flags |= PollFlags::POLLIN;
        }
        if !other.waiting.is_empty() {
            flags |= PollFlags::POLLOUT;
        }
        flags
    }
}

fn is_passing(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::TimedOut
    )
}

/// The proxy of streams.
struct Streams {
    listener: TcpListener,
    to: SocketAddr,
    connections: Vec<Connection>,
    corrupter: Corrupter,
}

impl Streams {
    fn serve(mut self) -> std::io::Result<()> {
        loop {
            self.wait()?;
            if self.connections.len() < CONNECTIONS {
                self.accept();
            }
            let corrupter = &mut self.corrupter;
            self.connections.retain_mut(|connection| {
                let is_whole = DIRECTIONS.into_iter().all(|direction| {
                    let flow = &connection.flows[direction as usize];
                    let is_free = flow.waiting.is_empty() && !flow.has_ended;
                    (!is_free || connection.receive(direction, corrupter))
                        && connection.send(direction)
                });
                is_whole && !connection.is_over()
            });
        }
    }

    fn accept(&mut self) {
        while let Ok((client, _)) = self.listener.accept() {
            // The client sees a closed connection, as from a server that has died.
            let Ok(server) = TcpStream::connect_timeout(&self.to, CONNECT) else {
                continue;
            };
            let senders = [client, server];
            let is_ready = |one: &TcpStream| {
                one.set_nonblocking(true).is_ok() && one.set_nodelay(true).is_ok()
            };
            if senders.iter().all(is_ready) {
                self.connections.push(Connection {
                    senders,
                    flows: Default::default(),
                    last: None,
                });
            }
        }
    }

    fn wait(&self) -> nix::Result<()> {
        let mut all = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        if self.connections.len() >= CONNECTIONS {
            all.clear();
        }
        for connection in &self.connections {
            for side in 0..2 {
                let flags = connection.interest(side);
                // Without this test, poll would report a closed end again and again.
                if !flags.is_empty() {
                    all.push(PollFd::new(connection.senders[side].as_fd(), flags));
                }
            }
        }
        wait_for(&mut all)
    }
}

fn wait_for(all: &mut [PollFd<'_>]) -> nix::Result<()> {
    match poll(all, PollTimeout::NONE) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The proxy of datagrams: each client has a socket to the server.
struct Datagrams {
    socket: UdpSocket,
    to: SocketAddr,
    clients: Vec<(SocketAddr, UdpSocket)>,
    corrupter: Corrupter,
}

impl Datagrams {
    fn new(socket: UdpSocket, to: SocketAddr, corrupter: Corrupter) -> Datagrams {
        Datagrams {
            socket,
            to,
            clients: Vec::new(),
            corrupter,
        }
    }

    fn serve(mut self) -> std::io::Result<()> {
        let mut datagram = vec![0; DATAGRAM];
        loop {
            let sockets = self.clients.iter().map(|(_, server)| server.as_fd());
            let sockets = std::iter::once(self.socket.as_fd()).chain(sockets);
            let mut all: Vec<PollFd<'_>> = sockets
                .map(|socket| PollFd::new(socket, PollFlags::POLLIN))
                .collect();
            wait_for(&mut all)?;
            drop(all);
            while let Ok((got, client)) = self.socket.recv_from(&mut datagram) {
                let direction = Direction::ToServer;
                let message = self.corrupter.begin(direction);
                let bytes = self
                    .corrupter
                    .change(&datagram[..got], direction, message, 0);
                if let Some(server) = self.server_of(client) {
                    // A datagram that cannot be sent is lost, as on a network.
                    let _ = server.send(&bytes);
                }
            }
            for (client, server) in &self.clients {
                while let Ok(got) = server.recv(&mut datagram) {
                    let direction = Direction::ToClient;
                    let message = self.corrupter.begin(direction);
                    let bytes = self
                        .corrupter
                        .change(&datagram[..got], direction, message, 0);
                    let _ = self.socket.send_to(&bytes, client);
                }
            }
        }
    }

    /// Returns the socket that forwards the datagrams of a client to the server.
    fn server_of(&mut self, client: SocketAddr) -> Option<&UdpSocket> {
        let known = self.clients.iter().position(|(one, _)| *one == client);
        let at = match known {
            Some(at) => at,
            None => {
                if self.clients.len() == CONNECTIONS {
                    self.clients.remove(0);
                }
                let any: SocketAddr = match self.to {
                    SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
                    SocketAddr::V6(_) => ([0u16; 8], 0).into(),
                };
                let server = UdpSocket::bind(any).ok()?;
                server.connect(self.to).ok()?;
                server.set_nonblocking(true).ok()?;
                self.clients.push((client, server));
                self.clients.len() - 1
            }
        };
        Some(&self.clients[at].1)
    }
}
