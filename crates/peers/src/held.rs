//! What a stopped process and its copies share: the kernel's side of open files. Copies run one
//! after the other, and each must find it as the first one did.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Pid, Whence, lseek};
use std::collections::BTreeSet;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// Real time within which connections that are being made must be there or gone.
const SETTLED: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// How the kernel marks the path of an open file without a name.
const DELETED: &str = " (deleted)";

/// An open file of a stopped process.
pub struct Held {
    number: RawFd,
    file: OwnedFd,
    has_name: bool,
    kind: Kind,
    status: OFlag,
}

/// What a copy can change of an open file.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// The position.
    File(libc::off_t),
    /// The connections that were not accepted; the port, if it has one.
    Listener(Option<u16>),
    /// The datagrams that were not read.
    Datagrams,
    /// The bytes that were not read.
    Bytes,
    /// The files that it waits for.
    Interests(BTreeSet<String>),
    /// Nothing.
    Plain,
}

/// Returns the open files of a process, or why copies cannot share them.
pub fn held_files(pid: Pid) -> Result<Vec<Held>, String> {
    let failed = |error: io::Error| format!("its open files cannot be read: {error}");
    let process = open_by(libc::SYS_pidfd_open, pid.as_raw(), 0).map_err(failed)?;
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    numbers.sort_unstable();
    let held = numbers.into_iter().map(|number| {
        let place = std::fs::read_link(format!("/proc/{pid}/fd/{number}")).map_err(failed)?;
        let file = open_by(libc::SYS_pidfd_getfd, process.as_raw_fd(), number).map_err(failed)?;
        let information = information(pid, number).map_err(failed)?;
        let place = place.display().to_string();
        let kind = kind_of(&file, &place, &information, pid);
        let kind = kind.map_err(|why| format!("its file {number} is {place}: {why}"))?;
        let status = status_of(&file).map_err(failed)?;
        Ok(Held {
            number,
            file,
            has_name: !place.ends_with(DELETED),
            kind,
            status,
        })
    });
    held.collect()
}

/// Makes all open files what they were when the process was stopped. No copy runs.
pub fn reset(pid: Pid, all: &[Held]) -> Result<(), String> {
    let failed = |one: &Held, error: &dyn std::fmt::Display| {
        format!("its file {} is not what it was: {error}", one.number)
    };
    for one in all {
        if one.is_lost() {
            return Err(failed(one, &"a copy has removed or replaced it"));
        }
        one.empty(pid).map_err(|error| failed(one, &error))?;
    }
    // What is waited for depends on the others.
    for one in all {
        if let Kind::Interests(before) = &one.kind {
            let now = information(pid, one.number).map_err(|error| failed(one, &error))?;
            if interests(&now) != *before {
                return Err(failed(one, &"a copy has changed what it waits for (epoll)"));
            }
        }
    }
    Ok(())
}

impl Held {
    fn empty(&self, pid: Pid) -> io::Result<()> {
        match &self.kind {
            Kind::File(position) => {
                lseek(&self.file, *position, Whence::SeekSet)?;
            }
            Kind::Listener(port) => {
                let until = Instant::now() + SETTLED;
                loop {
                    while is_readable(&self.file) {
                        drop_connection(&self.file)?;
                    }
                    if !port.is_some_and(|port| is_being_connected(pid, port)) {
                        break;
                    }
                    if Instant::now() >= until {
                        return Err(io::Error::other("a connection to it is still being made"));
                    }
                    std::thread::sleep(POLL_INTERVAL);
                }
            }
            Kind::Datagrams => {
                while is_readable(&self.file) {
                    drop_datagram(&self.file);
                }
            }
            Kind::Bytes => while is_readable(&self.file) && drop_bytes(&self.file)? {},
            Kind::Interests(_) | Kind::Plain => {}
        }
        if status_of(&self.file)? != self.status {
            fcntl(&self.file, FcntlArg::F_SETFL(self.status))?;
        }
        Ok(())
    }

    /// Returns whether it is a file whose name is gone.
    fn is_lost(&self) -> bool {
        let there = std::fs::metadata(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        let is_there = there.is_ok_and(|there| there.nlink() > 0);
        matches!(self.kind, Kind::File(_)) && self.has_name && !is_there
    }
}

fn information(pid: Pid, number: RawFd) -> io::Result<String> {
    std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}"))
}

/// Returns the files that an epoll set has, with their events. Positions are left out.
fn interests(information: &str) -> BTreeSet<String> {
    let lines = information.lines().filter(|line| line.starts_with("tfd:"));
    lines
        .map(|line| line.split(" pos:").next().unwrap_or(line).to_owned())
        .collect()
}

fn kind_of(file: &OwnedFd, place: &str, information: &str, pid: Pid) -> Result<Kind, String> {
    let failed = |error: io::Error| error.to_string();
    let is_empty = |kind: Kind| match is_readable(file) {
        true => Err("something waits to be read from it".to_owned()),
        false => Ok(kind),
    };
    if information
        .lines()
        .any(|line| line.starts_with("lock:") && line.contains("POSIX"))
    {
        return Err("it holds a lock, which a copy would not have".to_owned());
    }
    if place.starts_with("socket:") {
        return socket_kind(file, pid).and_then(is_empty);
    }
    match place {
        "anon_inode:[eventfd]" => return is_empty(Kind::Bytes),
        "anon_inode:[eventpoll]" => return Ok(Kind::Interests(interests(information))),
        "anon_inode:[signalfd]" | "anon_inode:[pidfd]" => return Ok(Kind::Plain),
        _ if place.starts_with("anon_inode:") => {
            return Err("a copy would share it".to_owned());
        }
        _ => {}
    }
    let status = status_of(file).map_err(failed)?;
    let is_read_only = status & OFlag::O_ACCMODE == OFlag::O_RDONLY;
    if place.starts_with("pipe:") {
        return match is_read_only {
            true => is_empty(Kind::Bytes),
            false => Ok(Kind::Plain),
        };
    }
    if [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
    ]
    .contains(&place)
    {
        return Ok(Kind::Plain);
    }
    let there = std::fs::metadata(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let there = there.map_err(failed)?;
    if !there.is_file() && !there.is_dir() {
        return Err("a copy would share it".to_owned());
    }
    if place.ends_with(DELETED) && !is_read_only {
        return Err("it has no name any more, and a copy would write to it".to_owned());
    }
    let position = lseek(file, 0, Whence::SeekCur);
    position.map(Kind::File).map_err(|error| error.to_string())
}

fn socket_kind(file: &OwnedFd, pid: Pid) -> Result<Kind, String> {
    let failed = |error: io::Error| error.to_string();
    let family = option(file, libc::SO_DOMAIN, 0).map_err(failed)?;
    let is_unix = family == libc::AF_UNIX;
    if !is_unix && family != libc::AF_INET && family != libc::AF_INET6 {
        return Err("it is neither of the internet nor of Unix".to_owned());
    }
    // What accepts connections knows its address, as any socket does.
    let socket = TcpStream::from(file.try_clone().map_err(failed)?);
    if option(file, libc::SO_ACCEPTCONN, 0).map_err(failed)? != 0 {
        let port = socket.local_addr().ok().map(|own| own.port());
        return Ok(Kind::Listener(port));
    }
    if option(file, libc::SO_TYPE, 0).map_err(failed)? == libc::SOCK_DGRAM {
        return Ok(Kind::Datagrams);
    }
    // Both ends of a pair are those of the process, or the other one is closed. The number is the first
    // word of the credentials.
    let maker = option(file, libc::SO_PEERCRED, 2).map_err(failed)?;
    match is_unix {
        true if maker == pid.as_raw() => Ok(Kind::Bytes),
        true if maker == 0 => Ok(Kind::Plain),
        false if socket.peer_addr().is_err() => Ok(Kind::Plain),
        _ => Err("it is connected to another process".to_owned()),
    }
}

/// Returns the first word of an option of a socket, which more words follow.
#[allow(unsafe_code)]
fn option(socket: &OwnedFd, name: libc::c_int, more: usize) -> io::Result<libc::c_int> {
    let mut words = [0; 3];
    let mut size = (size_of::<libc::c_int>() * (1 + more)) as libc::socklen_t;
    // SAFETY: the kernel writes at most three words.
    let result = unsafe {
        let place = (&raw mut words).cast();
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            place,
            &raw mut size,
        )
    };
    match result {
        0 => Ok(words[0]),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns whether a connection to a port is being made, and is not in the queue of its socket yet.
fn is_being_connected(pid: Pid, port: u16) -> bool {
    const BEING_MADE: &str = "03";
    let port = format!(":{port:04X}");
    ["tcp", "tcp6"].iter().any(|table| {
        let table = std::fs::read_to_string(format!("/proc/{pid}/net/{table}"));
        table.unwrap_or_default().lines().skip(1).any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let is_there = words.next().is_some_and(|local| local.ends_with(&port));
            is_there && words.nth(1) == Some(BEING_MADE)
        })
    })
}

/// Returns whether something can be read from a file, or accepted from a socket.
pub fn is_readable(file: &OwnedFd) -> bool {
    let mut wanted = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
    let is_ready = poll(&mut wanted, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
    is_ready
        && wanted[0]
            .revents()
            .is_some_and(|now| now.contains(PollFlags::POLLIN))
}

fn is_later(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionAborted | Interrupted | WouldBlock)
}

#[allow(unsafe_code)]
fn drop_connection(listener: &OwnedFd) -> io::Result<()> {
    let no_address = std::ptr::null_mut();
    // SAFETY: the kernel writes no address where none is wanted, and the descriptor is new.
    unsafe {
        match libc::accept4(
            listener.as_raw_fd(),
            no_address,
            std::ptr::null_mut(),
            libc::SOCK_CLOEXEC,
        ) {
            accepted if accepted >= 0 => drop(OwnedFd::from_raw_fd(accepted)),
            _ => {
                let error = io::Error::last_os_error();
                return if is_later(&error) { Ok(()) } else { Err(error) };
            }
        }
    }
    Ok(())
}

/// Takes a datagram out of the queue of a socket. Its error, if it has one, is taken, too.
#[allow(unsafe_code)]
fn drop_datagram(socket: &OwnedFd) {
    let mut byte = 0u8;
    // SAFETY: the kernel writes at most this byte.
    unsafe {
        libc::recv(
            socket.as_raw_fd(),
            (&raw mut byte).cast(),
            1,
            libc::MSG_DONTWAIT,
        );
    }
}

/// Reads bytes that are there. Returns `false` at the end.
fn drop_bytes(file: &OwnedFd) -> io::Result<bool> {
    match nix::unistd::read(file, &mut [0; 1 << 12]).map_err(io::Error::from) {
        Ok(count) => Ok(count > 0),
        Err(error) if is_later(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

fn status_of(file: &OwnedFd) -> io::Result<OFlag> {
    Ok(OFlag::from_bits_retain(fcntl(file, FcntlArg::F_GETFL)?))
}

/// Makes one of the calls that open a file by two numbers.
#[allow(unsafe_code)]
pub fn open_by(call: libc::c_long, one: RawFd, other: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: numbers only, and the descriptor is new.
    unsafe {
        match libc::syscall(call, one, other, 0) {
            opened if opened >= 0 => Ok(OwnedFd::from_raw_fd(opened as RawFd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
