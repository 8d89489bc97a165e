//! A real connection to a live peer.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use crate::setup::Where;

/// Number of bytes that are read at once.
pub const CHUNK: usize = 1 << 16;
/// Maximum number of bytes from the peer that are buffered.
const MAX_KEPT: usize = 1 << 20;

/// A real socket.
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Udp(UdpSocket),
    /// The socket that receives the datagrams of all clients, and the address of this one.
    UdpClient(Arc<UdpSocket>, SocketAddr),
    UnixDatagram(UnixDatagram),
}

/// Data received from a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Came {
    /// Bytes of a stream, or a datagram.
    Bytes(Vec<u8>),
    /// The end of the stream.
    End,
    /// The connection broke, or no socket receives the datagrams.
    Broken,
}

/// Pieces of data that are taken from the front, whole or in parts.
#[derive(Default)]
struct Queue {
    pieces: VecDeque<Vec<u8>>,
    /// Number of bytes of the first piece that were taken.
    start: usize,
    /// Number of bytes that were not taken.
    bytes: usize,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.pieces.push_back(bytes.to_vec());
    }

    /// Appends bytes to the last piece, or adds a piece if there is none.
    fn extend(&mut self, bytes: &[u8]) {
        if self.pieces.len() == 1 && self.start > self.bytes {
            // Most of the piece was taken.
            self.pieces[0].drain(..self.start);
            self.start = 0;
        }
        match self.pieces.back_mut() {
            None => self.push(bytes),
            Some(last) => {
                last.extend_from_slice(bytes);
                self.bytes += bytes.len();
            }
        }
    }

    /// Returns what is left of the first piece.
    fn front(&self) -> Option<&[u8]> {
        self.pieces.front().map(|piece| &piece[self.start..])
    }

    /// Takes bytes from the first piece.
    fn take(&mut self, count: usize) {
        self.start += count;
        self.bytes -= count;
        let is_over = self
            .pieces
            .front()
            .is_some_and(|piece| piece.len() <= self.start);
        if is_over {
            self.drop_front();
        }
    }

    fn drop_front(&mut self) {
        self.bytes -= self.front().map_or(0, <[u8]>::len);
        self.pieces.pop_front();
        self.start = 0;
    }
}

/// A real connection.
pub struct Link {
    socket: Socket,
    /// Received data: the bytes of a stream are a single piece.
    came: Queue,
    /// Data that is not sent yet.
    unsent: Queue,
    /// Whether the end of the stream must be sent after that data.
    ends: bool,
    /// How the peer's data ended, if it has.
    over: Option<Came>,
    /// Whether that end was reported.
    has_told_end: bool,
    /// Number of times that something arrived and was not counted yet.
    arrivals: u64,
}

impl Link {
    /// Connects to a peer.
    pub fn connect(at: &Where, is_datagram: bool, patience: Duration) -> io::Result<Link> {
        let socket = match (at, is_datagram) {
            (Where::Internet(address), false) => {
                Socket::Tcp(TcpStream::connect_timeout(address, patience)?)
            }
            (Where::Internet(address), true) => {
                let any = match address.ip() {
                    std::net::IpAddr::V4(_) => "0.0.0.0:0",
                    std::net::IpAddr::V6(_) => "[::]:0",
                };
                let socket = UdpSocket::bind(any)?;
                socket.connect(address)?;
                Socket::Udp(socket)
            }
            (Where::Unix(path), false) => Socket::Unix(UnixStream::connect(path)?),
            (Where::Unix(path), true) => {
                // Without a name, the peer could not answer.
                let socket = bind_beside(path)?;
                socket.connect(path)?;
                Socket::UnixDatagram(socket)
            }
        };
        Link::of(socket)
    }

    /// Creates the link of a connection that a peer made.
    pub fn accepted(stream: TcpStream) -> io::Result<Link> {
        Link::of(Socket::Tcp(stream))
    }

    /// Creates the link of a connection that a peer made over a Unix socket.
    pub fn accepted_unix(stream: UnixStream) -> io::Result<Link> {
        Link::of(Socket::Unix(stream))
    }

    /// Creates the link of a client that sends datagrams, which are handed to the link when they arrive.
    pub fn of_sender(socket: Arc<UdpSocket>, client: SocketAddr) -> io::Result<Link> {
        Link::of(Socket::UdpClient(socket, client))
    }

    fn of(socket: Socket) -> io::Result<Link> {
        match &socket {
            Socket::Tcp(socket) => {
                socket.set_nodelay(true)?;
                socket.set_nonblocking(true)?;
            }
            Socket::Unix(socket) => socket.set_nonblocking(true)?,
            Socket::Udp(socket) => socket.set_nonblocking(true)?,
            Socket::UdpClient(socket, _) => socket.set_nonblocking(true)?,
            Socket::UnixDatagram(socket) => socket.set_nonblocking(true)?,
        }
        Ok(Link {
            socket,
            came: Queue::default(),
            unsent: Queue::default(),
            ends: false,
            over: None,
            has_told_end: false,
            arrivals: 0,
        })
    }

    /// Returns whether bytes have no borders between messages.
    pub fn is_stream(&self) -> bool {
        matches!(self.socket, Socket::Tcp(_) | Socket::Unix(_))
    }

    /// Returns the descriptor of the socket.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
            Socket::Udp(socket) => socket.as_fd(),
            Socket::UdpClient(socket, _) => socket.as_fd(),
            Socket::UnixDatagram(socket) => socket.as_fd(),
        }
    }

    /// Returns whether more data can arrive on a socket of its own and there is room for it.
    pub fn wants_reading(&self) -> bool {
        let has_own_socket = !matches!(self.socket, Socket::UdpClient(..));
        has_own_socket && self.over.is_none() && self.has_room()
    }

    /// Returns whether there is room for more data.
    pub fn has_room(&self) -> bool {
        self.came.bytes < MAX_KEPT
    }

    /// Returns whether this is the link of a client that sends datagrams from this address.
    pub fn is_from(&self, address: SocketAddr) -> bool {
        matches!(self.socket, Socket::UdpClient(_, client) if client == address)
    }

    /// Adds a datagram that another socket has received.
    pub fn hand_over(&mut self, bytes: &[u8]) {
        self.arrivals += 1;
        self.came.push(bytes);
    }

    /// Returns whether there is unsent data.
    pub fn wants_writing(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends bytes of a stream, or a datagram: as many bytes as possible at once.
    pub fn send(&mut self, bytes: &[u8]) {
        let count = match self.unsent.is_empty() && self.is_stream() {
            // Nothing needs to be kept of what the peer takes at once.
            true => self.write_bytes(bytes).unwrap_or(0),
            false => 0,
        };
        if count < bytes.len() || !self.is_stream() {
            self.unsent.push(&bytes[count..]);
        }
        self.write();
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.socket {
            Socket::Tcp(socket) => socket.write(bytes),
            Socket::Unix(socket) => socket.write(bytes),
            Socket::Udp(socket) => socket.send(bytes),
            Socket::UdpClient(socket, client) => socket.send_to(bytes, *client),
            Socket::UnixDatagram(socket) => socket.send(bytes),
        }
    }

    /// Ends the stream after all unsent data.
    pub fn end(&mut self) {
        self.ends = true;
        self.write();
    }

    /// Sends as much as possible. Data that a broken connection does not take is lost.
    pub fn write(&mut self) {
        while !self.unsent.is_empty() {
            let unsent = std::mem::take(&mut self.unsent);
            let sent = self.write_bytes(unsent.front().unwrap_or_default());
            self.unsent = unsent;
            match sent {
                Ok(count) if self.is_stream() => self.unsent.take(count),
                Ok(_) => self.unsent.drop_front(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.unsent = Queue::default(),
            }
        }
        if std::mem::take(&mut self.ends) {
            let _ = match &self.socket {
                Socket::Tcp(socket) => socket.shutdown(Shutdown::Write),
                Socket::Unix(socket) => socket.shutdown(Shutdown::Write),
                Socket::Udp(_) | Socket::UdpClient(..) | Socket::UnixDatagram(_) => Ok(()),
            };
        }
    }

    /// Reads the available data, as far as there is room, by way of `chunk`.
    pub fn read(&mut self, chunk: &mut [u8]) {
        let is_stream = self.is_stream();
        while self.wants_reading() {
            let read = match &mut self.socket {
                Socket::Tcp(socket) => socket.read(chunk),
                Socket::Unix(socket) => socket.read(chunk),
                Socket::Udp(socket) => socket.recv(chunk),
                Socket::UdpClient(..) => return,
                Socket::UnixDatagram(socket) => socket.recv(chunk),
            };
            let is_later = |error: &io::Error| {
                matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
            };
            self.arrivals += u64::from(!read.as_ref().is_err_and(is_later));
            match read {
                Ok(0) if is_stream => self.over = Some(Came::End),
                Ok(count) if is_stream => self.came.extend(&chunk[..count]),
                Ok(count) => self.came.push(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.over = Some(Came::Broken),
            }
        }
    }

    /// Takes the next received data. Returns the end of the stream once.
    pub fn take(&mut self) -> Option<Came> {
        match self.came.front() {
            Some(bytes) if self.is_stream() => {
                let bytes = bytes[..bytes.len().min(CHUNK)].to_vec();
                self.came.take(bytes.len());
                Some(Came::Bytes(bytes))
            }
            Some(bytes) => {
                let bytes = bytes.to_vec();
                self.came.drop_front();
                Some(Came::Bytes(bytes))
            }
            None if self.has_told_end => None,
            None => {
                self.has_told_end = self.over.is_some();
                self.over.clone()
            }
        }
    }

    /// Returns all received bytes that were not taken.
    pub fn kept(&self) -> &[u8] {
        self.came.front().unwrap_or_default()
    }

    /// Takes this number of received bytes.
    pub fn take_bytes(&mut self, count: usize) {
        match self.is_stream() {
            true => self.came.take(count),
            false => self.came.drop_front(),
        }
    }

    /// Returns how often something arrived since this was asked last: data or the end.
    pub fn take_arrivals(&mut self) -> u64 {
        std::mem::take(&mut self.arrivals)
    }

    /// Returns whether the peer's stream has ended; data before its end may be left.
    pub fn has_ended(&self) -> bool {
        self.over.is_some()
    }

    /// Returns whether the peer's stream has ended, and all data before it was taken.
    pub fn ended(&self) -> bool {
        self.came.is_empty() && self.over.is_some()
    }
}

/// Binds our end of a Unix socket to the first free name beside that of the peer.
fn bind_beside(path: &std::path::Path) -> io::Result<UnixDatagram> {
    let mut number = 0u64;
    loop {
        let name = format!(".everett-{}-{number}", std::process::id());
        match UnixDatagram::bind(path.with_file_name(name)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => number += 1,
            bound => return bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_gives_back_what_it_got() {
        let mut queue = Queue::default();
        let (mut wanted, mut seen, mut largest) = (Vec::new(), Vec::new(), 0);
        for round in 0..200_u8 {
            let bytes = vec![round; usize::from(round) + 1];
            queue.extend(&bytes);
            wanted.extend_from_slice(&bytes);
            let front = queue.front().expect("bytes");
            let count = front.len().min(usize::from(round));
            seen.extend_from_slice(&front[..count]);
            queue.take(count);
            assert_eq!(queue.bytes, wanted.len() - seen.len());
            largest = largest.max(queue.pieces.iter().map(Vec::len).max().unwrap_or(0));
        }
        seen.extend_from_slice(queue.front().unwrap_or_default());
        assert_eq!(seen, wanted);
        // What was taken is forgotten before more than as much again is there.
        assert!(largest < 1000, "{largest}");
        queue.drop_front();
        assert!(queue.is_empty() && queue.bytes == 0 && queue.front().is_none());
        queue.push(b"one");
        queue.push(b"");
        queue.drop_front();
        assert_eq!(queue.front(), Some(&b""[..]));
    }

    #[test]
    fn a_slow_peer_gets_everything_in_order() {
        let (own, mut peer) = UnixStream::pair().expect("a pair");
        let mut link = Link::accepted_unix(own).expect("a link");
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at >> 3) as u8).collect();
        bytes.chunks(700_000).for_each(|part| link.send(part));
        link.end();
        assert!(link.wants_writing());
        let mut seen = Vec::new();
        let mut chunk = vec![0; 100_000];
        loop {
            match peer.read(&mut chunk).expect("read") {
                0 => break,
                count => seen.extend_from_slice(&chunk[..count]),
            }
            link.write();
        }
        assert!(seen == bytes && !link.wants_writing());
    }
}
