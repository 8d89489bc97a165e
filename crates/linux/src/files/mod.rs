//! Files of a host: the tree of names, what the files hold, and what processes have open.

mod description;
mod status;
mod tree;

pub use description::{
    Description, DescriptionId, Descriptor, Descriptors, Input, MAX_DESCRIPTORS, OpenFlags, Target,
};
pub use status::Status;
pub use tree::{Device, Inode, InodeId, Node, ROOT, Tree};

use everett_expr::ExprId;
use triomphe::Arc;

use crate::bytes::Bytes;

/// Files and open files.
#[derive(Clone, Debug)]
pub struct Files {
    /// Names and contents.
    pub tree: Tree,
    /// What descriptor 0 is fed from.
    pub stdin: Input,
    /// Open files; several descriptors can share one.
    descriptions: Arc<Vec<Option<Description>>>,
}

impl Files {
    /// An empty tree, nothing open.
    pub fn new(stdin: Input) -> Files {
        Files {
            tree: Tree::new(),
            stdin,
            descriptions: Arc::new(Vec::new()),
        }
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

    /// Drops what a file holds if it has neither a name nor anyone who has it open.
    pub fn let_go(&mut self, id: InodeId) {
        let is_open = |description: &Description| description.target == Target::Inode(id);
        if self.tree.get(id).links == 0 && !self.descriptions.iter().flatten().any(is_open) {
            self.tree.get_mut(id).node = Node::Regular(Bytes::default());
        }
    }

    /// All terms, for marking what is alive.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(ExprId)) {
        self.tree.for_each_term(visit);
        self.stdin.for_each_term(visit);
    }
}
