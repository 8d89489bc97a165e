//! What processes have open.

use everett_expr::ExprId;
use everett_vm::Buffer;
use triomphe::Arc;

use super::inode::InodeId;
use crate::bytes::Bytes;
use crate::errno::Errno;
use crate::host::Stream;
use crate::objects::ObjectId;

/// Number of an open file on its host.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DescriptionId(pub u32);

/// Descriptors of a process end here.
pub const MAX_DESCRIPTORS: usize = 1024;

/// What is open.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// The standard input that one of the processes which the host was started with was given, by its number.
    Stdin(u16),
    /// One of its outputs.
    Output(Stream),
    /// A file of the tree.
    Inode(InodeId),
    /// A pipe, socket or the like.
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
    /// Do not become the controlling terminal.
    pub const TERMINAL: u32 = 0o400;
    pub const TRUNCATE: u32 = 0o1000;
    pub const APPEND: u32 = 0o2000;
    pub const NONBLOCK: u32 = 0o4000;
    /// What is written is on the disk when the call returns (`O_DSYNC`, and `O_SYNC`, which has the bit too).
    pub const SYNCED: u32 = 0o10_000;
    /// Writes to a pipe are packets.
    pub const DIRECT: u32 = 0o40_000;
    /// Every file may be large on 64 bits, and `fcntl` says so.
    pub const LARGE: u32 = 0o100_000;
    pub const DIRECTORY: u32 = 0o200_000;
    pub const NO_FOLLOW: u32 = 0o400_000;
    pub const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    pub const PATH: u32 = 0o10_000_000;
    /// A file without a name; comes with `DIRECTORY`.
    pub const NAMELESS: u32 = 0o20_000_000;

    /// It has one of these.
    pub fn has(self, flags: u32) -> bool {
        self.0 & flags != 0
    }

    /// It can be read.
    pub fn readable(self) -> bool {
        self.0 & 3 != OpenFlags::WRITE_ONLY && !self.has(OpenFlags::PATH)
    }

    /// It can be written.
    pub fn writable(self) -> bool {
        self.0 & 3 != 0 && !self.has(OpenFlags::PATH)
    }
}

/// An open file.
#[derive(Clone, Debug)]
pub struct Description {
    /// What is open.
    pub target: Target,
    /// Where the next read or write is.
    pub offset: u64,
    /// How it was opened.
    pub flags: OpenFlags,
    /// Descriptors that refer to it.
    pub references: u32,
    /// The program said that calls on it may fail, or may not.
    pub faults: Option<bool>,
    /// The program said in how many pieces at most bytes arrive.
    pub fragments: Option<u32>,
    /// Reads so far that had a say in the pieces.
    pub pieces: u32,
    /// So many of the next bytes that are read are symbolic.
    pub symbolic: u64,
}

impl Description {
    /// Just opened.
    pub fn new(target: Target, flags: u32) -> Description {
        Description {
            target,
            offset: 0,
            flags: OpenFlags(flags),
            references: 1,
            faults: None,
            fragments: None,
            pieces: 0,
            symbolic: 0,
        }
    }
}

/// A descriptor of a process.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// The open file.
    pub description: DescriptionId,
    /// It is closed by `execve`.
    pub close_on_exec: bool,
}

/// The descriptors of a process.
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    /// As many as the highest that was ever open since the process was made needs.
    entries: Arc<Vec<Option<Descriptor>>>,
    /// One more than the highest new descriptor, where the process is held to fewer.
    limit: Option<u32>,
}

impl Descriptors {
    /// A descriptor.
    pub fn get(&self, fd: i32) -> Result<Descriptor, Errno> {
        let index = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        self.entries
            .get(index)
            .copied()
            .flatten()
            .ok_or(Errno::EBADF)
    }

    /// The lowest number from `from` on that is free.
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

    /// Sets [`Descriptors::limit`]; what is open stays open.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = Some(limit.min(MAX_DESCRIPTORS as u64) as u32);
    }

    /// Places in the kernel's table, which `select` looks at. It has 64 at first and is doubled until a new descriptor
    /// fits in; it does not shrink when descriptors are closed.
    pub fn places(&self) -> u64 {
        const AT_FIRST: usize = 64;
        self.entries.len().next_power_of_two().max(AT_FIRST) as u64
    }

    /// The same for a child, whose table is no larger than what is open needs.
    pub fn inherited(&self) -> Descriptors {
        let needed = self.entries.iter().rposition(Option::is_some);
        let needed = needed.map_or(0, |last| last + 1);
        let mut child = self.clone();
        if needed < child.entries.len() {
            Arc::make_mut(&mut child.entries).truncate(needed);
        }
        child
    }

    /// All descriptors that are open, by number.
    pub fn iter(&self) -> impl Iterator<Item = (i32, Descriptor)> {
        let entries = (0..).zip(self.entries.iter());
        entries.filter_map(|(fd, entry)| Some((fd, (*entry)?)))
    }

    /// Sets a descriptor and says what it was before.
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

/// What descriptor 0 is fed from.
#[derive(Clone, Debug, Default)]
pub struct Input {
    bytes: Bytes,
    offset: u64,
    /// More may come.
    open: bool,
}

impl Input {
    /// These bytes, then the end.
    pub fn fixed(bytes: Bytes) -> Input {
        Input {
            bytes,
            offset: 0,
            open: false,
        }
    }

    /// What will be supplied.
    pub fn live() -> Input {
        Input {
            bytes: Bytes::default(),
            offset: 0,
            open: true,
        }
    }

    /// More bytes; none mean the end.
    pub fn supply(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.open = false;
        } else if self.open {
            self.bytes.append(&Buffer::with_bytes(bytes, bytes.len()));
        }
    }

    /// Bytes that can be read now.
    pub fn available(&self) -> u64 {
        self.bytes.len() - self.offset
    }

    /// Nothing is there now, but something may come.
    pub fn must_wait(&self) -> bool {
        self.open && self.available() == 0
    }

    /// The next bytes, at most `len`.
    pub fn peek(&self, len: u64) -> Buffer {
        self.bytes.read(self.offset, len)
    }

    /// They were read.
    pub fn advance(&mut self, len: u64) {
        self.offset += len.min(self.available());
        if self.open && self.available() == 0 {
            // What a live input has delivered is needed no more.
            self.bytes = Bytes::default();
            self.offset = 0;
        }
    }

    /// All terms, for marking what is alive.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(ExprId)) {
        self.bytes.for_each_term(visit);
    }
}
