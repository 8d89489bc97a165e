//! The file system of a host: inodes, directories, open file descriptions and locks.

mod access;
mod changes;
mod description;
mod dirty_pages;
mod disk;
mod extended;
mod generated;
mod inode;
mod kernel_files;
mod locks;
mod proc;
mod root;
mod status;
mod table;
mod tree;
mod walk;

pub use access::{EXECUTE, FsCredentials, READ, WRITE};
pub use changes::{ChangedFile, FileChange};
pub use description::{
    Description, Descriptor, Descriptors, Held, Input, OpenFlags, Owner, Receiver, Target,
};
pub use dirty_pages::DirtyPages;
pub use disk::Disk;
use everett_expr::VisitTerms;
use std::collections::BTreeSet;
use triomphe::Arc;

use crate::bytes::Bytes;
use crate::errno::Errno;
use crate::ids::{DescriptionId, InodeId, ObjectId};
use disk::Synced;

pub use generated::{About, Generated, IpcList, NetworkList, SocketList};

pub use inode::{Device, Directory, Inode, InodeKind};
pub use locks::{Conflict, LockOwner, LockRange, Locks};
pub use status::Status;
pub use tree::{ROOT, Tree};
pub use walk::{Dentry, Scope, Walk};

/// File system and open file descriptions.
#[derive(Clone, Debug)]
pub struct Files {
    /// Inodes and directories.
    pub tree: Tree,
    /// Standard inputs of the processes that the host booted with.
    stdins: Vec<Input>,
    /// File locks.
    pub locks: Locks,
    /// Contents of files at their last synchronisation.
    synced: Synced,
    /// Pages of mapped files that processes have written.
    pub dirty_pages: DirtyPages,
    /// Files whose times the oracle has chosen.
    pub dated: Arc<BTreeSet<InodeId>>,
    /// The modes that are symbolic.
    modes: Arc<Vec<(Target, Bytes)>>,
    /// Open FIFOs, with their pipes.
    fifos: Arc<Vec<(InodeId, ObjectId)>>,
    /// Open file descriptions; several descriptors can share one.
    descriptions: Arc<Vec<Option<Description>>>,
}

impl Files {
    /// The files that every host has, with nothing open.
    pub fn new(now_ns: u64) -> Result<Files, Errno> {
        let mut tree = Tree::new(now_ns);
        root::populate(&mut tree, now_ns)?;
        proc::populate(&mut tree, now_ns)?;
        tree.mark_standard_files();
        Ok(Files {
            tree,
            stdins: vec![Input::default()],
            locks: Locks::default(),
            synced: Synced::default(),
            dirty_pages: DirtyPages::default(),
            dated: Arc::default(),
            modes: Arc::default(),
            fifos: Arc::default(),
            descriptions: Arc::new(Vec::new()),
        })
    }

    /// Sets the standard inputs of the first processes, by index; the first one always has one.
    pub fn feed(&mut self, stdins: Vec<Input>) {
        if !stdins.is_empty() {
            self.stdins = stdins;
        }
    }

    /// The standard input of a process, by index.
    pub fn stdin(&self, number: u16) -> &Input {
        let last = self.stdins.len() - 1;
        &self.stdins[usize::from(number).min(last)]
    }

    /// The standard input of a process, for changing it.
    pub fn stdin_mut(&mut self, number: u16) -> &mut Input {
        let last = self.stdins.len() - 1;
        &mut self.stdins[usize::from(number).min(last)]
    }

    /// Makes the mode of a file or stream symbolic.
    pub(crate) fn set_mode(&mut self, target: Target, mode: Bytes) {
        Arc::make_mut(&mut self.modes).push((target, mode));
    }

    /// The mode of a file or stream, if it is symbolic.
    pub(crate) fn mode(&self, target: Target) -> Option<&Bytes> {
        let found = self.modes.iter().find(|(of, _)| *of == target);
        found.map(|(_, mode)| mode)
    }

    /// Adds an open file description with one reference.
    pub fn open(&mut self, description: Description) -> DescriptionId {
        let descriptions = Arc::make_mut(&mut self.descriptions);
        let free = descriptions.iter().position(Option::is_none);
        let index = free.unwrap_or(descriptions.len());
        if free.is_none() {
            descriptions.push(None);
        }
        descriptions[index] = Some(description);
        DescriptionId(index as u32)
    }

    /// Returns whether an open file is the standard input or an output stream of the host.
    pub(crate) fn is_standard_stream(&self, id: DescriptionId) -> bool {
        let description = self.description(id);
        description.is_some_and(|one| matches!(one.target, Target::Stdin(_) | Target::Output(_)))
    }

    /// The open file description with this id.
    pub fn description(&self, id: DescriptionId) -> Option<&Description> {
        self.descriptions.get(id.0 as usize)?.as_ref()
    }

    /// Whether a file is open for writing.
    pub fn is_open_for_writing(&self, file: InodeId) -> bool {
        let mut all = self.descriptions.iter().flatten();
        all.any(|open| open.target == Target::Inode(file) && open.flags.writable())
    }

    /// The owners of all open file descriptions of an object.
    pub fn owners_of(&self, object: ObjectId) -> Vec<Owner> {
        let all = self.descriptions.iter().flatten();
        let of = all.filter(|description| description.target == Target::Object(object));
        of.map(|description| description.owner).collect()
    }

    /// The open file description with this id, for changing it.
    pub fn description_mut(&mut self, id: DescriptionId) -> Option<&mut Description> {
        Arc::make_mut(&mut self.descriptions)
            .get_mut(id.0 as usize)?
            .as_mut()
    }

    /// Adds a reference to an open file description.
    pub fn retain(&mut self, id: DescriptionId) {
        if let Some(description) = self.description_mut(id) {
            description.references += 1;
        }
    }

    /// Adds the reference of a mapping.
    pub fn hold(&mut self, held: Held) {
        self.retain(held.by);
        if held.is_writable
            && let Some(description) = self.description_mut(held.by)
        {
            description.writers += 1;
        }
    }

    /// Whether a process has a shared mapping of this file that is writable or can be made so.
    pub fn is_mapped_writable(&self, id: InodeId) -> bool {
        let mut open = self.descriptions.iter().flatten();
        open.any(|open| open.writers > 0 && matches!(open.target, Target::Inode(of) if of == id))
    }

    /// Drops a reference to an open file description. Returns it if that was the last one.
    pub(crate) fn release(&mut self, id: DescriptionId) -> Option<Description> {
        let description = self.description_mut(id)?;
        description.references = description.references.saturating_sub(1);
        if description.references > 0 {
            return None;
        }
        let closed = Arc::make_mut(&mut self.descriptions)[id.0 as usize].take()?;
        if let Target::Inode(inode) = closed.target {
            self.free_if_unused(inode);
        }
        Some(closed)
    }

    /// The pipe of an open FIFO.
    pub fn pipe_of(&self, fifo: InodeId) -> Option<ObjectId> {
        let mut fifos = self.fifos.iter();
        fifos.find(|(id, _)| *id == fifo).map(|(_, pipe)| *pipe)
    }

    /// The FIFO that a pipe belongs to.
    pub fn fifo_of(&self, pipe: ObjectId) -> Option<InodeId> {
        let mut fifos = self.fifos.iter();
        fifos.find(|(_, id)| *id == pipe).map(|(fifo, _)| *fifo)
    }

    /// Sets the pipe of a FIFO that was just opened.
    pub fn set_pipe(&mut self, fifo: InodeId, pipe: ObjectId) {
        Arc::make_mut(&mut self.fifos).push((fifo, pipe));
    }

    /// Removes a closed pipe.
    pub fn remove_pipe(&mut self, pipe: ObjectId) {
        if self.fifo_of(pipe).is_some() {
            Arc::make_mut(&mut self.fifos).retain(|(_, id)| *id != pipe);
        }
    }

    /// Frees an inode that has no link and is not open.
    pub fn free_if_unused(&mut self, id: InodeId) {
        if self.is_gone(id) {
            self.tree.forget(id);
        }
    }

    /// Whether an inode has no link and is not open.
    pub fn is_gone(&self, id: InodeId) -> bool {
        let is_open = |description: &Description| description.target == Target::Inode(id);
        // A process may execute a program whose file has no name any more.
        let inode = self.tree.get(id);
        let can_run = inode.program.is_some();
        inode.links == 0 && !can_run && !self.descriptions.iter().flatten().any(is_open)
    }

    /// Visits all terms, so that the arena can mark live ones.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        self.tree.for_each_term(visit);
        self.stdins
            .iter()
            .for_each(|stdin| stdin.for_each_term(visit));
        self.synced
            .values()
            .for_each(|bytes| bytes.for_each_term(visit));
        self.modes
            .iter()
            .for_each(|(_, mode)| mode.for_each_term(visit));
    }
}
