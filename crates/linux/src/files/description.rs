//! Open file descriptions, and the descriptors that refer to them.

use everett_expr::VisitTerms;
use everett_vm::Buffer;
use triomphe::Arc;

use crate::bytes::Bytes;
use crate::errno::Errno;
use crate::ids::{DescriptionId, InodeId, ObjectId};
use crate::limits::MAX_DESCRIPTORS;
use crate::outcome::Stream;

/// What an open file description refers to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// The standard input of one of the processes that the host booted with, by index.
    Stdin(u16),
    /// One of the collected output streams.
    Output(Stream),
    /// A file of the tree.
    Inode(InodeId),
    /// A pipe, socket or other kernel object.
    Object(ObjectId),
}

/// Flags of `open`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OpenFlags(pub u32);

impl OpenFlags {
    pub const WRITE_ONLY: u32 = 1;
    pub const READ_WRITE: u32 = 2;
    pub const CREATE: u32 = 0o100;
    pub const EXCLUSIVE: u32 = 0o200;
    /// `O_NOCTTY`: do not become the controlling terminal.
    pub const TERMINAL: u32 = 0o400;
    pub const TRUNCATE: u32 = 0o1000;
    pub const APPEND: u32 = 0o2000;
    pub const NONBLOCK: u32 = 0o4000;
    /// `O_DSYNC`, and `O_SYNC`, which includes its bit: data is on disk when the call returns.
    pub const DSYNC: u32 = 0o10_000;
    /// `O_ASYNC`: events are signalled to the owner.
    pub const ASYNC: u32 = 0o20_000;
    /// `O_DIRECT`: writes to a pipe are packets.
    pub const DIRECT: u32 = 0o40_000;
    /// `O_LARGEFILE`: implied on 64 bits, and `fcntl` reports it.
    pub const LARGE: u32 = 0o100_000;
    pub const DIRECTORY: u32 = 0o200_000;
    pub const NO_FOLLOW: u32 = 0o400_000;
    /// `O_NOATIME`: reads leave the access time.
    pub const NO_ACCESS_TIME: u32 = 0o1_000_000;
    pub const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    pub const PATH: u32 = 0o10_000_000;
    /// `O_TMPFILE`: an unnamed file; comes with `DIRECTORY`.
    pub const TMPFILE: u32 = 0o20_000_000;

    /// Flags that have an effect together with `PATH`.
    pub const WITH_PATH: u32 =
        OpenFlags::DIRECTORY | OpenFlags::NO_FOLLOW | OpenFlags::CLOSE_ON_EXEC | OpenFlags::PATH;

    /// Whether it has one of these flags.
    pub fn has(self, flags: u32) -> bool {
        self.0 & flags != 0
    }

    /// Whether it permits reading.
    pub fn readable(self) -> bool {
        self.0 & 3 != OpenFlags::WRITE_ONLY && !self.has(OpenFlags::PATH)
    }

    /// Whether it permits writing.
    pub fn writable(self) -> bool {
        self.0 & 3 != 0 && !self.has(OpenFlags::PATH)
    }
}

/// An open file description.
#[derive(Clone, Debug)]
pub struct Description {
    /// What it refers to.
    pub target: Target,
    /// File offset.
    pub offset: u64,
    /// Status flags and access mode.
    pub flags: OpenFlags,
    /// The receiver of the signals about its events.
    pub owner: Owner,
    /// Number of descriptors that refer to it.
    pub references: u32,
    /// How many of them are shared mappings that are writable or can be made so.
    pub writers: u32,
    /// The directions in which calls on it may fail, as the program has set them; `None` if the
    /// program has set nothing.
    pub faults: Option<u8>,
    /// Maximum number of pieces in which the program wants its bytes to arrive.
    pub fragments: Option<u32>,
    /// Fragmented reads so far.
    pub pieces: u32,
    /// How many of the next bytes read become symbolic.
    pub symbolic: u64,
}

impl Description {
    /// A newly opened description.
    pub fn new(target: Target, flags: u32) -> Description {
        Description {
            target,
            offset: 0,
            flags: OpenFlags(flags),
            owner: Owner::NONE,
            references: 1,
            writers: 0,
            faults: None,
            fragments: None,
            pieces: 0,
            symbolic: 0,
        }
    }
}

/// The reference of a mapping to an open file description.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// The open file description.
    pub by: DescriptionId,
    /// The mapping is shared, and writable or can be made so.
    pub is_writable: bool,
}

/// A file descriptor of a process.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// The open file description.
    pub description: DescriptionId,
    /// Closed by `execve`.
    pub close_on_exec: bool,
}

/// The file descriptor table of a process.
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    /// Long enough for the highest descriptor that was ever open.
    entries: Arc<Vec<Option<Descriptor>>>,
    /// `RLIMIT_NOFILE`, if it is lower than the default.
    limit: Option<u32>,
}

impl Descriptors {
    /// The entry of a descriptor.
    pub fn get(&self, fd: i32) -> Result<Descriptor, Errno> {
        let index = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        self.entries
            .get(index)
            .copied()
            .flatten()
            .ok_or(Errno::EBADF)
    }

    /// The lowest free descriptor from `from` on.
    pub fn free_from(&self, from: i32) -> Result<i32, Errno> {
        let mut fd = usize::try_from(from).map_err(|_| Errno::EINVAL)?;
        while self.entries.get(fd).copied().flatten().is_some() {
            fd += 1;
        }
        if fd >= self.limit() {
            Err(Errno::EMFILE)
        } else {
            Ok(fd as i32)
        }
    }

    /// One more than the highest new descriptor.
    pub fn limit(&self) -> usize {
        let limit = self.limit.map_or(MAX_DESCRIPTORS, |limit| limit as usize);
        limit.min(MAX_DESCRIPTORS)
    }

    /// Sets [`Descriptors::limit`]; open descriptors stay open.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = Some(limit.min(MAX_DESCRIPTORS as u64) as u32);
    }

    /// Size of the kernel's table, which limits `select`. It starts at 64 and doubles as needed; it
    /// does not shrink when descriptors are closed.
    pub fn table_size(&self) -> u64 {
        const AT_FIRST: usize = 64;
        self.entries.len().next_power_of_two().max(AT_FIRST) as u64
    }

    /// The table of a child: it is only as large as the open descriptors need.
    pub fn inherited(&self) -> Descriptors {
        let needed = self.entries.iter().rposition(Option::is_some);
        let needed = needed.map_or(0, |last| last + 1);
        let mut child = self.clone();
        if needed < child.entries.len() {
            Arc::make_mut(&mut child.entries).truncate(needed);
        }
        child
    }

    /// All open descriptors, by number.
    pub fn iter(&self) -> impl Iterator<Item = (i32, Descriptor)> {
        let entries = (0..).zip(self.entries.iter());
        entries.filter_map(|(fd, entry)| Some((fd, (*entry)?)))
    }

    /// Sets a descriptor and returns the old entry.
    pub fn set(&mut self, fd: i32, to: Option<Descriptor>) -> Option<Descriptor> {
        let index = usize::try_from(fd)
            .ok()
            .filter(|index| *index < MAX_DESCRIPTORS)?;
        if to.is_none() && index >= self.entries.len() {
            return None;
        }
        let entries = Arc::make_mut(&mut self.entries);
        if entries.len() <= index {
            entries.resize(index + 1, None);
        }
        std::mem::replace(&mut entries[index], to)
    }
}

/// The source of a standard input.
#[derive(Clone, Debug, Default)]
pub struct Input {
    bytes: Bytes,
    offset: u64,
    /// More bytes may still be supplied.
    open: bool,
}

impl Input {
    /// These bytes, then end of file.
    pub fn fixed(bytes: Bytes) -> Input {
        Input {
            bytes,
            offset: 0,
            open: false,
        }
    }

    /// Bytes that the caller supplies while the host runs.
    pub fn live() -> Input {
        Input {
            bytes: Bytes::default(),
            offset: 0,
            open: true,
        }
    }

    /// Supplies more bytes; an empty slice means end of file.
    pub fn supply(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.open = false;
        } else if self.open {
            self.bytes.append(&Buffer::with_bytes(bytes, bytes.len()));
        }
    }

    /// The number of bytes, with those that were read.
    pub fn total(&self) -> u64 {
        self.bytes.len()
    }

    /// Bytes that can be read without blocking.
    pub fn available(&self) -> u64 {
        self.bytes.len() - self.offset
    }

    /// Whether a read must block: no bytes are available, but more may be supplied.
    pub fn must_wait(&self) -> bool {
        self.open && self.available() == 0
    }

    /// The next bytes, at most `len`.
    pub fn peek(&self, len: u64) -> Buffer {
        self.bytes.read(self.offset, len)
    }

    /// Consumes bytes.
    pub fn advance(&mut self, len: u64) {
        self.offset += len.min(self.available());
        if self.open && self.available() == 0 {
            // Consumed bytes of a live input are not needed again.
            self.bytes = Bytes::default();
            self.offset = 0;
        }
    }

    /// Visits all terms, so that the arena can mark live ones.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        self.bytes.for_each_term(visit);
    }
}

/// The receiver of the events of a file.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Receiver {
    /// Nobody.
    Nobody,
    /// A thread.
    Thread(u32),
    /// A process.
    Process(u32),
    /// A process group.
    Group(u32),
}

/// The owner of an open file description.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The receiver of its signals.
    pub receiver: Receiver,
    /// The signal; 0 is `SIGIO` without further information.
    pub signal: i32,
    /// Real and effective user id of the process that set the receiver.
    pub(crate) users: [u32; 2],
}
