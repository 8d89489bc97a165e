//! Passes real files into native processes, which cannot open any, over a socket that all processes
//! of a run have and that nothing else can reach.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::gate::SCRATCH;
use crate::tracee::Tracee;

const CLOSE: u64 = 3;
const RECVMSG: u64 = 47;

/// A socket pair: Everett's end and the processes' end.
pub struct Channel {
    ours: OwnedFd,
    processes: OwnedFd,
}

/// A `struct msghdr` with everything that it points to, for one byte and one file.
#[repr(C)]
#[derive(Copy, Clone)]
struct Message {
    name: [u64; 2],
    parts: u64,
    part_count: u64,
    control: u64,
    control_size: u64,
    flags: u64,
    part: [u64; 2],
    header: [u64; 2],
    file: u64,
    byte: u64,
}

const SIZE: usize = size_of::<Message>();
const PART: u64 = std::mem::offset_of!(Message, part) as u64;
const HEADER: u64 = std::mem::offset_of!(Message, header) as u64;
const FILE: u64 = std::mem::offset_of!(Message, file) as u64;
const BYTE: u64 = std::mem::offset_of!(Message, byte) as u64;
/// `SOL_SOCKET` and `SCM_RIGHTS` in one word, and the size of a header with a file.
const RIGHTS: u64 = (libc::SCM_RIGHTS as u64) << 32 | libc::SOL_SOCKET as u64;
const WITH_FILE: u64 = 20;
const ROOM: u64 = 24;

impl Message {
    /// Lays out a message for an address.
    fn at(address: u64, file: u64) -> Message {
        Message {
            name: [0; 2],
            parts: address + PART,
            part_count: 1,
            control: address + HEADER,
            control_size: ROOM,
            flags: 0,
            part: [address + BYTE, 1],
            header: [WITH_FILE, RIGHTS],
            file,
            byte: 0,
        }
    }

    fn words(&self) -> [u64; SIZE / 8] {
        [
            self.name[0],
            self.name[1],
            self.parts,
            self.part_count,
            self.control,
            self.control_size,
            self.flags,
            self.part[0],
            self.part[1],
            self.header[0],
            self.header[1],
            self.file,
            self.byte,
        ]
    }
}

impl Channel {
    /// Creates a channel.
    pub fn new() -> io::Result<Channel> {
        let (ours, processes) = std::os::unix::net::UnixDatagram::pair()?;
        Ok(Channel {
            ours: ours.into(),
            processes: processes.into(),
        })
    }

    /// Returns the end for processes. `execve` closes it unless the flag is cleared.
    pub fn process_end(&self) -> &OwnedFd {
        &self.processes
    }

    /// Passes a file to the process of a thread that is stopped at a system call. Returns the
    /// descriptor in that process.
    pub fn send_file(&self, tracee: &mut Tracee, file: &impl AsRawFd) -> io::Result<u64> {
        let mut words = Box::new([0; SIZE / 8]);
        let address = words.as_ptr() as u64;
        *words = Message::at(address, file.as_raw_fd() as u64).words();
        // SAFETY: the message and everything that it points to lie in
        // `words`, which is at that address.
        let sent = unsafe { libc::sendmsg(self.ours.as_raw_fd(), words.as_ptr().cast(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        self.receive(tracee)
    }

    fn receive(&self, tracee: &mut Tracee) -> io::Result<u64> {
        let message = Message::at(SCRATCH, 0).words();
        let message: Vec<u8> = message.iter().flat_map(|word| word.to_le_bytes()).collect();
        let placed = tracee.poke(SCRATCH, &message);
        let received =
            tracee.inject_call_preserving(RECVMSG, [tracee.channel, SCRATCH, 0, 0, 0, 0])?;
        let mut number = [0; 4];
        if !placed || received != 1 || !tracee.peek(SCRATCH + FILE, &mut number) {
            let message = "cannot pass a file to a native process";
            return Err(io::Error::other(message));
        }
        Ok(u64::from(u32::from_le_bytes(number)))
    }

    /// Closes a file that was passed to a process.
    pub fn close_file(&self, tracee: &mut Tracee, number: u64) -> io::Result<()> {
        tracee.inject_call_preserving(CLOSE, [number, 0, 0, 0, 0, 0])?;
        Ok(())
    }
}
