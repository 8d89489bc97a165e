//! Inotify instances: watched inodes and the queue of events.
//!
//! File operations report events with [`HostState::notify`] and [`HostState::notify_name`], which
//! cost nothing while nothing is watched.

use everett_vm::Buffer;
use std::collections::{BTreeMap, VecDeque};
use triomphe::Arc;

use super::{Object, OpenObject, Operations, event};
use crate::errno::Errno;
use crate::files::OpenFlags;
use crate::host::HostState;
use crate::ids::{InodeId, ObjectId};
use crate::kernel::{Kernel, Stop};

/// Event bits and flags of inotify.
pub mod happened {
    pub const ACCESS: u32 = 0x1;
    pub const MODIFY: u32 = 0x2;
    pub const ATTRIBUTES: u32 = 0x4;
    pub const CLOSE_WRITE: u32 = 0x8;
    pub const CLOSE_NO_WRITE: u32 = 0x10;
    pub const OPEN: u32 = 0x20;
    pub const MOVED_FROM: u32 = 0x40;
    pub const MOVED_TO: u32 = 0x80;
    pub const CREATE: u32 = 0x100;
    pub const DELETE: u32 = 0x200;
    pub const DELETE_SELF: u32 = 0x400;
    pub const MOVE_SELF: u32 = 0x800;
    /// All events.
    pub const ALL: u32 = 0xfff;
    pub const OVERFLOW: u32 = 0x4000;
    pub const IGNORED: u32 = 0x8000;
    pub const EXCLUDE_UNLINKED: u32 = 0x400_0000;
    pub const IS_DIRECTORY: u32 = 0x4000_0000;
    pub const ONE_SHOT: u32 = 0x8000_0000;

    /// `IN_ISDIR` if the event concerns a directory.
    pub fn directory(is_directory: bool) -> u32 {
        if is_directory { IS_DIRECTORY } else { 0 }
    }
}

/// Maximum number of queued events; one overflow event follows.
const MAX_EVENTS: usize = 16384;
/// Size of `struct inotify_event` without the name.
const HEAD: usize = 16;

/// A queued event.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Event {
    watch: i32,
    mask: u32,
    cookie: u32,
    name: Vec<u8>,
}

impl Event {
    /// Length of its name with padding.
    fn name_size(&self) -> usize {
        match self.name.len() {
            0 => 0,
            len => (len + 1).next_multiple_of(HEAD),
        }
    }

    fn size(&self) -> usize {
        HEAD + self.name_size()
    }

    fn append_to(&self, bytes: &mut Vec<u8>) {
        let words = [self.mask, self.cookie, self.name_size() as u32];
        bytes.extend_from_slice(&self.watch.to_le_bytes());
        words
            .iter()
            .for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        let end = bytes.len() + self.name_size();
        bytes.extend_from_slice(&self.name);
        bytes.resize(end, 0);
    }
}

/// An inotify instance.
#[derive(Clone, Debug, Default)]
pub struct Inotify {
    /// Watches by descriptor: the file, and its mask with flags.
    watches: BTreeMap<i32, (InodeId, u32)>,
    /// The last watch descriptor used.
    last: i32,
    queue: VecDeque<Event>,
}

impl Inotify {
    /// The watch descriptor of a file, and its mask.
    pub fn watch_of(&self, inode: InodeId) -> Option<(i32, u32)> {
        let mut watches = self.watches.iter();
        let found = watches.find(|(_, watch)| watch.0 == inode);
        found.map(|(number, watch)| (*number, watch.1))
    }

    /// Whether there is such a watch.
    pub fn has(&self, watch: i32) -> bool {
        self.watches.contains_key(&watch)
    }

    fn add(&mut self, event: Event) {
        if self.queue.back() == Some(&event) {
            return;
        }
        if self.queue.len() < MAX_EVENTS {
            self.queue.push_back(event);
        } else if self.queue.len() == MAX_EVENTS {
            self.queue.push_back(Event {
                watch: -1,
                mask: happened::OVERFLOW,
                cookie: 0,
                name: Vec::new(),
            });
        }
    }
}

/// The inotify instances that watch a file. Cloning is O(1).
#[derive(Clone, Debug, Default)]
pub struct FileWatchers {
    of: Arc<BTreeMap<InodeId, Vec<ObjectId>>>,
    /// Number of renames so far: both events of a rename have the same cookie.
    moves: u32,
}

/// Operations of an inotify instance.
pub const OPERATIONS: Operations = Operations {
    read,
    readiness,
    close,
    seeks: true,
    available: |host, open| {
        let events = inotify(host, open.object)?.queue.iter();
        Some(events.map(|event| event.size() as u64).sum())
    },
    ..Operations::CLOSED
};

/// The inotify instance with this id, if it is one.
pub fn inotify(host: &HostState, id: ObjectId) -> Option<&Inotify> {
    match host.objects.get(id.0)? {
        Object::Inotify(inotify) => Some(inotify),
        _ => None,
    }
}

fn inotify_mut(host: &mut HostState, id: ObjectId) -> Option<&mut Inotify> {
    match host.objects.get_mut(id.0)? {
        Object::Inotify(inotify) => Some(inotify),
        _ => None,
    }
}

fn read(kernel: &mut Kernel<'_, '_>, open: OpenObject<'_>, wanted: u64) -> Result<Buffer, Stop> {
    let Some(inotify) = inotify_mut(kernel.host, open.object) else {
        return Err(Errno::EBADF.into());
    };
    let mut bytes = Vec::new();
    while let Some(next) = inotify.queue.front()
        && (bytes.len() + next.size()) as u64 <= wanted
    {
        next.append_to(&mut bytes);
        inotify.queue.pop_front();
    }
    match (bytes.is_empty(), inotify.queue.is_empty()) {
        (false, _) => Ok(Buffer::with_bytes(&bytes, bytes.len())),
        (true, false) => Err(Errno::EINVAL.into()),
        (true, true) => Err(kernel.wait_for(open, event::IN, "read from an inotify")),
    }
}

fn readiness(host: &HostState, open: OpenObject<'_>) -> u16 {
    match inotify(host, open.object) {
        Some(inotify) if inotify.queue.is_empty() => 0,
        Some(_) => event::READING,
        None => event::INVALID,
    }
}

fn close(host: &mut HostState, open: OpenObject<'_>) {
    let watched = inotify(host, open.object);
    let watched = watched.map(|inotify| inotify.watches.values().map(|watch| watch.0).collect());
    let watched: Vec<InodeId> = watched.unwrap_or_default();
    for inode in watched {
        host.remove_file_watcher(inode, open.object);
    }
    host.objects.remove(open.object.0);
}

impl HostState {
    /// Adds or changes a watch, and returns its descriptor.
    pub fn watch_file(&mut self, id: ObjectId, inode: InodeId, mask: u32) -> i32 {
        let Some(inotify) = inotify_mut(self, id) else {
            return -1;
        };
        let old = inotify.watch_of(inode).map(|(number, _)| number);
        let number = old.unwrap_or_else(|| {
            inotify.last += 1;
            inotify.last
        });
        inotify.watches.insert(number, (inode, mask));
        let watchers = Arc::make_mut(&mut self.file_watchers.of)
            .entry(inode)
            .or_default();
        if !watchers.contains(&id) {
            watchers.push(id);
        }
        number
    }

    /// Removes a watch and reports `IN_IGNORED`.
    pub fn unwatch_file(&mut self, id: ObjectId, watch: i32) {
        let Some(inotify) = inotify_mut(self, id) else {
            return;
        };
        let Some((inode, _)) = inotify.watches.remove(&watch) else {
            return;
        };
        inotify.add(Event {
            watch,
            mask: happened::IGNORED,
            cookie: 0,
            name: Vec::new(),
        });
        self.remove_file_watcher(inode, id);
        self.announce(id, event::READING);
    }

    fn remove_file_watcher(&mut self, inode: InodeId, id: ObjectId) {
        let of = Arc::make_mut(&mut self.file_watchers.of);
        if let Some(watchers) = of.get_mut(&inode) {
            watchers.retain(|watcher| *watcher != id);
            if watchers.is_empty() {
                of.remove(&inode);
            }
        }
    }

    /// Reports an event of a file to the watches of its parent directories, then to its own.
    pub fn notify(&mut self, inode: InodeId, mask: u32) {
        if self.file_watchers.of.is_empty() {
            return;
        }
        let directory = happened::directory(self.files.tree.get(inode).is_directory());
        let of_self = happened::DELETE_SELF | happened::MOVE_SELF;
        if mask & of_self == 0 {
            let watched: Vec<InodeId> = self.file_watchers.of.keys().copied().collect();
            for parent in watched {
                let name = self.files.tree.name_in(parent, inode);
                if let Some(name) = name.map(<[u8]>::to_vec) {
                    self.queue_event(parent, mask | directory, &name, 0);
                }
            }
        }
        // Events about the watched directory itself do not have `IN_ISDIR`.
        let directory = if mask & of_self == 0 { directory } else { 0 };
        self.queue_event(inode, mask | directory, b"", 0);
        if mask & happened::DELETE_SELF != 0 {
            for id in self
                .file_watchers
                .of
                .get(&inode)
                .cloned()
                .unwrap_or_default()
            {
                let watch = inotify(self, id).and_then(|inotify| inotify.watch_of(inode));
                if let Some((number, _)) = watch {
                    self.unwatch_file(id, number);
                }
            }
        }
    }

    /// Reports an event of a file to its own watches only.
    pub fn notify_self(&mut self, inode: InodeId, mask: u32) {
        if !self.file_watchers.of.is_empty() {
            self.queue_event(inode, mask, b"", 0);
        }
    }

    /// Reports the last close of an open file, and the deletion of the file if the close frees it.
    pub(super) fn notify_close(&mut self, inode: InodeId, flags: OpenFlags) {
        if self.file_watchers.of.is_empty() || flags.has(OpenFlags::PATH) {
            return;
        }
        self.notify(
            inode,
            match flags.writable() {
                true => happened::CLOSE_WRITE,
                false => happened::CLOSE_NO_WRITE,
            },
        );
        self.notify_gone(inode);
    }

    /// Reports the deletion of a file, if it is gone.
    pub fn notify_gone(&mut self, inode: InodeId) {
        if !self.file_watchers.of.is_empty() && self.files.is_gone(inode) {
            self.notify(inode, happened::DELETE_SELF);
        }
    }

    /// Reports an event of a name in a directory. `cookie` is 0 except for renames.
    pub fn notify_name(&mut self, directory: InodeId, name: &[u8], mask: u32, cookie: u32) {
        if !self.file_watchers.of.is_empty() {
            self.queue_event(directory, mask, name, cookie);
        }
    }

    /// A new cookie for both events of a rename.
    pub fn next_move(&mut self) -> u32 {
        if !self.file_watchers.of.is_empty() {
            self.file_watchers.moves += 1;
        }
        self.file_watchers.moves
    }

    fn queue_event(&mut self, inode: InodeId, mask: u32, name: &[u8], cookie: u32) {
        let watchers = self.file_watchers.of.get(&inode).cloned();
        for id in watchers.unwrap_or_default() {
            let Some(inotify) = inotify_mut(self, id) else {
                continue;
            };
            let Some((watch, wanted)) = inotify.watch_of(inode) else {
                continue;
            };
            if wanted & mask & happened::ALL == 0 {
                continue;
            }
            inotify.add(Event {
                watch,
                mask,
                cookie,
                name: name.to_vec(),
            });
            self.announce(id, event::READING);
            if wanted & happened::ONE_SHOT != 0 {
                self.unwatch_file(id, watch);
            }
        }
    }
}
