//! Inodes: type, contents, owner and times of a file.

use everett_vm::ImageId;
use std::collections::BTreeMap;
use triomphe::Arc;

use super::description::Target;
use super::extended::Attributes;
use super::generated::Generated;
use crate::bytes::Bytes;
use crate::event;
use crate::ids::InodeId;

/// Devices.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Device {
    /// `/dev/null`.
    Null,
    /// `/dev/zero`.
    Zero,
    /// `/dev/full`.
    Full,
    /// `/dev/random`.
    Random,
    /// `/dev/urandom`.
    Urandom,
    /// `/dev/tty`: the controlling terminal, which no process has at boot.
    Terminal,
    /// `/dev/ptmx`, which creates pseudo-terminals.
    Multiplexer,
    /// `/dev/pts/N`.
    Line(u32),
    /// A device without a driver, with its numbers; it cannot be opened.
    Other {
        /// It is a block device.
        is_block: bool,
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
}

impl Device {
    /// Major and minor number.
    pub fn number(self) -> (u32, u32) {
        match self {
            Device::Null => (1, 3),
            Device::Zero => (1, 5),
            Device::Full => (1, 7),
            Device::Random => (1, 8),
            Device::Urandom => (1, 9),
            Device::Terminal => (5, 0),
            Device::Multiplexer => (5, 2),
            Device::Line(number) => (136, number),
            Device::Other { major, minor, .. } => (major, minor),
        }
    }

    /// Whether it is a block device.
    pub fn is_block(self) -> bool {
        matches!(self, Device::Other { is_block: true, .. })
    }

    /// The character device with these numbers.
    pub fn with_number(number: (u32, u32)) -> Option<Device> {
        const ALL: [Device; 7] = [
            Device::Null,
            Device::Zero,
            Device::Full,
            Device::Random,
            Device::Urandom,
            Device::Terminal,
            Device::Multiplexer,
        ];
        ALL.into_iter().find(|device| device.number() == number)
    }
}

/// A directory entry.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DirectoryEntry {
    /// The file.
    pub id: InodeId,
    /// Its position in directory listings; never reused in this directory.
    pub position: u64,
}

/// A directory.
#[derive(Clone, Debug)]
pub struct Directory {
    /// Entries by name.
    pub names: BTreeMap<Vec<u8>, DirectoryEntry>,
    /// The parent directory.
    pub parent: InodeId,
    next_position: u64,
}

/// Positions 0 and 1 are those of `.` and `..`.
const FIRST_POSITION: u64 = 2;

impl Directory {
    /// An empty one.
    pub fn new(parent: InodeId) -> Directory {
        Directory {
            names: BTreeMap::new(),
            parent,
            next_position: FIRST_POSITION,
        }
    }

    /// Adds a directory entry, or replaces the one of that name.
    pub fn insert(&mut self, name: &[u8], id: InodeId) {
        let position = self.next_position;
        self.next_position += 1;
        self.names
            .insert(name.to_vec(), DirectoryEntry { id, position });
    }

    /// Entries from a position on, in order: name, file and position.
    pub fn listed_from(&self, own: InodeId, position: u64) -> Vec<(&[u8], InodeId, u64)> {
        let dots = [(&b"."[..], own, 0), (b"..", self.parent, 1)];
        let names = self.names.iter();
        let names = names.map(|(name, entry)| (name.as_slice(), entry.id, entry.position));
        let mut all: Vec<_> = dots.into_iter().chain(names).collect();
        all.retain(|entry| entry.2 >= position);
        all.sort_by_key(|entry| entry.2);
        all
    }
}

/// Type and contents of an inode.
#[derive(Clone, Debug)]
pub enum InodeKind {
    /// A regular file.
    Regular(Bytes),
    /// A directory.
    Directory(Directory),
    /// A symbolic link with this target.
    Link(Vec<u8>),
    /// A character device.
    Device(Device),
    /// A FIFO.
    Fifo,
    /// The name of a bound UNIX socket.
    Socket,
    /// A file with generated contents.
    Generated(Generated),
    /// A magic link in `/proc` to an open file or to a directory of a process.
    Magic(Target),
}

/// An inode.
#[derive(Clone, Debug)]
pub struct Inode {
    /// Type and contents.
    pub kind: InodeKind,
    /// Permission bits.
    pub mode: u32,
    /// Owner's user id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Number of hard links.
    pub links: u32,
    /// Last access, in nanoseconds since 1970.
    pub accessed_ns: i64,
    /// Last modification of the contents.
    pub modified_ns: i64,
    /// Last status change.
    pub changed_ns: i64,
    /// Creation.
    pub born_ns: i64,
    /// Extended attributes.
    pub attributes: Attributes,
    /// The program that `execve` starts, if the file is one.
    pub program: Option<ImageId>,
    /// Seals, for files of `memfd_create`.
    pub seals: Option<u32>,
    /// The path that `/proc` shows for a file without a name: its last one, or that of its memory.
    pub last_path: Option<Arc<Vec<u8>>>,
    /// The generated file that it is the open copy of, if writes to it change something.
    pub setting: Option<Generated>,
    /// The events that `poll` reports of a file of the kernel that `epoll` can watch.
    pub polled: Option<u16>,
}

impl Inode {
    /// An inode that belongs to root, with one link (directories have two).
    pub fn new(kind: InodeKind, mode: u32, now_ns: u64) -> Inode {
        let now_ns = i64::try_from(now_ns).unwrap_or(i64::MAX);
        let links = if matches!(kind, InodeKind::Directory(_)) {
            2
        } else {
            1
        };
        let is_random = matches!(kind, InodeKind::Device(Device::Random));
        Inode {
            kind,
            mode,
            uid: 0,
            gid: 0,
            links,
            accessed_ns: now_ns,
            modified_ns: now_ns,
            changed_ns: now_ns,
            born_ns: now_ns,
            attributes: Attributes::default(),
            program: None,
            seals: None,
            last_path: None,
            setting: None,
            polled: is_random.then_some(event::READING),
        }
    }

    /// Lets `epoll` watch it. The events hold from the start.
    pub fn polled(self, events: u16) -> Inode {
        Inode {
            polled: Some(events),
            ..self
        }
    }

    /// An empty directory.
    pub fn directory(parent: InodeId, mode: u32, now_ns: u64) -> Inode {
        Inode::new(InodeKind::Directory(Directory::new(parent)), mode, now_ns)
    }

    /// Whether writes to it succeed whatever they write: `/dev/null` and `/dev/zero`.
    pub fn ignores_bytes(&self) -> bool {
        matches!(self.kind, InodeKind::Device(Device::Null | Device::Zero))
    }

    /// Whether it is a file that the kernel makes up, such as those in `/proc`.
    pub fn is_of_kernel(&self) -> bool {
        match self.kind {
            InodeKind::Generated(_) | InodeKind::Magic(_) => true,
            InodeKind::Regular(_) => self.polled.is_some(),
            _ => false,
        }
    }

    /// Whether it is a regular file.
    pub fn is_regular(&self) -> bool {
        matches!(self.kind, InodeKind::Regular(_))
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, InodeKind::Directory(_))
    }

    /// Updates the times after its contents changed.
    pub fn touch(&mut self, now_ns: u64) {
        self.modified_ns = i64::try_from(now_ns).unwrap_or(i64::MAX);
        self.changed_ns = self.modified_ns;
    }

    /// Updates the times after its metadata changed.
    pub fn touch_status(&mut self, now_ns: u64) {
        self.changed_ns = i64::try_from(now_ns).unwrap_or(i64::MAX);
    }

    /// The new access time, if it must be updated (`relatime`): if the last access was before the
    /// last change, or a day ago.
    pub fn access_to_note(&self, now_ns: u64) -> Option<i64> {
        const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
        let now_ns = i64::try_from(now_ns).unwrap_or(i64::MAX);
        let stale = self.accessed_ns <= self.modified_ns
            || self.accessed_ns <= self.changed_ns
            || now_ns.saturating_sub(self.accessed_ns) >= DAY_NS;
        (stale && now_ns != self.accessed_ns).then_some(now_ns)
    }
}
