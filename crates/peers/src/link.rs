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
const CHUNK: usize = 1 << 16;
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

/// A real connection.
pub struct Link {
    socket: Socket,
    /// Received data: the bytes of a stream are a single item.
    came: VecDeque<Vec<u8>>,
    came_bytes: usize,
    /// Data that is not sent yet.
    unsent: VecDeque<Vec<u8>>,
    /// Whether the end of the stream must be sent after that data.
    ends: bool,
    /// How the peer's data ended, if it has.
    over: Option<Came>,
    /// Whether that end was reported.
    has_told_end: bool,
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
                let socket = UnixDatagram::bind(own_name(path))?;
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
            came: VecDeque::new(),
            came_bytes: 0,
            unsent: VecDeque::new(),
            ends: false,
            over: None,
            has_told_end: false,
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
        self.came_bytes < MAX_KEPT
    }

    /// Returns whether this is the link of a client that sends datagrams from this address.
    pub fn is_from(&self, address: SocketAddr) -> bool {
        matches!(self.socket, Socket::UdpClient(_, client) if client == address)
    }

    /// Adds a datagram that another socket has received.
    pub fn hand_over(&mut self, bytes: &[u8]) {
        self.came_bytes += bytes.len();
        self.came.push_back(bytes.to_vec());
    }

    /// Returns whether there is unsent data.
    pub fn wants_writing(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends bytes of a stream, or a datagram: as many bytes as possible at once.
    pub fn send(&mut self, bytes: &[u8]) {
        self.unsent.push_back(bytes.to_vec());
        self.write();
    }

    /// Ends the stream after all unsent data.
    pub fn end(&mut self) {
        self.ends = true;
        self.write();
    }

    /// Sends as much as possible. Data that a broken connection does not take is lost.
    pub fn write(&mut self) {
        while let Some(bytes) = self.unsent.front_mut() {
            let sent = match &mut self.socket {
                Socket::Tcp(socket) => socket.write(bytes),
                Socket::Unix(socket) => socket.write(bytes),
                Socket::Udp(socket) => socket.send(bytes),
                Socket::UdpClient(socket, client) => socket.send_to(bytes, *client),
                Socket::UnixDatagram(socket) => socket.send(bytes),
            };
            match sent {
                Ok(count) if self.is_stream() && count < self.unsent[0].len() => {
                    self.unsent[0].drain(..count);
                }
                Ok(_) => drop(self.unsent.pop_front()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.unsent.clear(),
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

    /// Reads the available data, as far as there is room.
    pub fn read(&mut self) {
        let is_stream = self.is_stream();
        let mut chunk = vec![0; CHUNK];
        while self.wants_reading() {
            let read = match &mut self.socket {
                Socket::Tcp(socket) => socket.read(&mut chunk),
                Socket::Unix(socket) => socket.read(&mut chunk),
                Socket::Udp(socket) => socket.recv(&mut chunk),
                Socket::UdpClient(..) => return,
                Socket::UnixDatagram(socket) => socket.recv(&mut chunk),
            };
            match read {
                Ok(0) if is_stream => self.over = Some(Came::End),
                Ok(count) => {
                    self.came_bytes += count;
                    match self.came.back_mut().filter(|_| is_stream) {
                        Some(last) => last.extend_from_slice(&chunk[..count]),
                        None => self.came.push_back(chunk[..count].to_vec()),
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.over = Some(Came::Broken),
            }
        }
    }

    /// Takes the next received data. Returns the end of the stream once.
    pub fn take(&mut self) -> Option<Came> {
        match self.came.pop_front() {
            Some(mut bytes) => {
                if self.is_stream() && bytes.len() > CHUNK {
                    self.came.push_front(bytes.split_off(CHUNK));
                }
                self.came_bytes -= bytes.len();
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
        self.came.front().map_or(&[], Vec::as_slice)
    }

    /// Takes this number of received bytes.
    pub fn take_bytes(&mut self, count: usize) {
        if let Some(first) = self.came.front_mut() {
            self.came_bytes -= count;
            first.drain(..count);
            if first.is_empty() || !self.is_stream() {
                self.came.pop_front();
            }
        }
    }

    /// Returns whether data was received or the stream has ended.
    pub fn has_more(&self) -> bool {
        !self.came.is_empty() || self.over.is_some()
    }

    /// Returns whether the peer's stream has ended, and all data before it was taken.
    pub fn ended(&self) -> bool {
        self.came.is_empty() && self.over.is_some()
    }
}

/// Returns a name for our end of a Unix socket, beside that of the peer.
fn own_name(path: &std::path::Path) -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".everett-{}-{number}", std::process::id()))
}
