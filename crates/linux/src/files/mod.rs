//! Files of a host: the tree of names, what the files hold, and what processes have open.

mod access;
mod description;
mod disk;
mod generated;
mod inode;
mod left;
mod locks;
mod proc;
mod root;
mod status;
mod table;
mod tree;
mod walk;

pub use access::{EXECUTE, READ, WRITE, Who};
pub use description::{
    Description, DescriptionId, Descriptor, Descriptors, Input, MAX_DESCRIPTORS, OpenFlags, Target,
};
pub use disk::Disk;
use disk::Synced;
pub use inode::{Device, Directory, Inode, InodeId, Node};
pub use left::{Left, LeftFile};
pub use locks::{Conflict, LockOwner, LockRange, Locks};
pub use status::Status;
pub use tree::{ROOT, Tree};
pub use walk::{Place, Walk};

use everett_expr::ExprId;
use triomphe::Arc;

use crate::errno::Errno;
use crate::objects::ObjectId;

/// Files and open files.
#[derive(Clone, Debug)]
pub struct Files {
    /// Names and contents.
    pub tree: Tree,
    /// What descriptor 0 of each process is fed from that the host was started with.
    stdins: Vec<Input>,
    /// Locks on files.
    pub locks: Locks,
    /// What files held when they were synchronised last.
    synced: Synced,
    /// FIFOs that somebody has open, with their pipes.
    fifos: Arc<Vec<(InodeId, ObjectId)>>,
    /// Open files; several descriptors can share one.
    descriptions: Arc<Vec<Option<Description>>>,
}

impl Files {
    /// A tree with what every host has, nothing open.
    pub fn new(now_ns: u64) -> Result<Files, Errno> {
        let mut tree = Tree::new(now_ns);
        root::furnish(&mut tree, now_ns)?;
        proc::furnish(&mut tree, now_ns)?;
        tree.finish_furnishing();
        Ok(Files {
            tree,
            stdins: vec![Input::default()],
            locks: Locks::default(),
            synced: Synced::default(),
            fifos: Arc::default(),
            descriptions: Arc::new(Vec::new()),
        })
    }

    /// What processes are fed with, by their numbers; the first one always is.
    pub fn feed(&mut self, stdins: Vec<Input>) {
        if !stdins.is_empty() {
            self.stdins = stdins;
        }
    }

    /// What the process of this number is fed with.
    pub fn stdin(&self, number: u16) -> &Input {
        let last = self.stdins.len() - 1;
        &self.stdins[usize::from(number).min(last)]
    }

    /// The same for changing it.
    pub fn stdin_mut(&mut self, number: u16) -> &mut Input {
        let last = self.stdins.len() - 1;
        &mut self.stdins[usize::from(number).min(last)]
    }

    /// Adds an open file, which one descriptor refers to.
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

    /// An open file.
    pub fn description(&self, id: DescriptionId) -> Option<&Description> {
        self.descriptions.get(id.0 as usize)?.as_ref()
    }

    /// The same for changing it.
    pub fn description_mut(&mut self, id: DescriptionId) -> Option<&mut Description> {
        Arc::make_mut(&mut self.descriptions)
            .get_mut(id.0 as usize)?
            .as_mut()
    }

    /// One more descriptor refers to it.
    pub fn retain(&mut self, id: DescriptionId) {
        if let Some(description) = self.description_mut(id) {
            description.references += 1;
        }
    }

    /// One descriptor less refers to it; the last one closes it. What was closed, if it was.
    pub(crate) fn release(&mut self, id: DescriptionId) -> Option<Description> {
        let description = self.description_mut(id)?;
        description.references = description.references.saturating_sub(1);
        if description.references > 0 {
            return None;
        }
        let closed = Arc::make_mut(&mut self.descriptions)[id.0 as usize].take()?;
        if let Target::Inode(inode) = closed.target {
            self.let_go(inode);
        }
        Some(closed)
    }

    /// The pipe of a FIFO that somebody has open.
    pub fn pipe_of(&self, fifo: InodeId) -> Option<ObjectId> {
        let mut fifos = self.fifos.iter();
        fifos.find(|(id, _)| *id == fifo).map(|(_, pipe)| *pipe)
    }

    /// The FIFO that a pipe belongs to.
    pub fn fifo_of(&self, pipe: ObjectId) -> Option<InodeId> {
        let mut fifos = self.fifos.iter();
        fifos.find(|(_, id)| *id == pipe).map(|(fifo, _)| *fifo)
    }

    /// A FIFO is open now.
    pub fn set_pipe(&mut self, fifo: InodeId, pipe: ObjectId) {
        Arc::make_mut(&mut self.fifos).push((fifo, pipe));
    }

    /// A pipe is gone.
    pub fn forget_pipe(&mut self, pipe: ObjectId) {
        if self.fifo_of(pipe).is_some() {
            Arc::make_mut(&mut self.fifos).retain(|(_, id)| *id != pipe);
        }
    }

    /// Forgets a file that has neither a name nor anyone who has it open.
    pub fn let_go(&mut self, id: InodeId) {
        if self.is_gone(id) {
            self.tree.forget(id);
        }
    }

    /// A file has neither a name nor anyone who has it open.
    pub fn is_gone(&self, id: InodeId) -> bool {
        let is_open = |description: &Description| description.target == Target::Inode(id);
        self.tree.get(id).links == 0 && !self.descriptions.iter().flatten().any(is_open)
    }

    /// All terms, for marking what is alive.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(ExprId)) {
        self.tree.for_each_term(visit);
        self.stdins
            .iter()
            .for_each(|stdin| stdin.for_each_term(visit));
    }
}
