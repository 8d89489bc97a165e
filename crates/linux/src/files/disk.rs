//! What of the files outlives a host that is switched off. Names, owners and permissions are kept as they are, as by a journal;
//! what a file holds is certain only where it was synchronised.

use std::collections::BTreeMap;
use triomphe::Arc;

use super::inode::{InodeId, Node};
use super::tree::{PROC, ROOT, Tree};
use super::{Files, Input, Locks};
use crate::bytes::Bytes;
use crate::host::Host;

/// What files held when they were synchronised last, those that ever were.
pub type Synced = Arc<BTreeMap<InodeId, Bytes>>;

/// The disk of a host that is off.
#[derive(Clone, Debug)]
pub struct Disk {
    tree: Tree,
}

impl Disk {
    /// The files of a host that starts with it. All that is there is certain.
    pub(crate) fn mount(&self) -> Files {
        let mut files = Files {
            tree: self.tree.clone(),
            stdins: vec![Input::default()],
            locks: Locks::default(),
            synced: Synced::default(),
            fifos: Arc::default(),
            descriptions: Arc::new(Vec::new()),
        };
        files.sync_all();
        files
    }
}

impl Files {
    /// What a file holds will be there, whatever happens.
    pub fn sync(&mut self, id: InodeId) {
        if let Node::Regular(bytes) = &self.tree.get(id).node {
            Arc::make_mut(&mut self.synced).insert(id, bytes.clone());
        }
    }

    /// The same for all files.
    pub fn sync_all(&mut self) {
        for (id, _) in self.unsynced() {
            self.sync(id);
        }
    }

    /// Files that may hold something else after the host was switched off, in order, and a path of each.
    pub fn unsynced(&self) -> Vec<(InodeId, Vec<u8>)> {
        let origin = self.tree.at_the_start();
        let mut found = BTreeMap::new();
        self.tree.for_each_file(ROOT, &mut |path, id| {
            if let Node::Regular(bytes) = &self.tree.get(id).node
                && !self.certain(&origin, id).is_same(bytes)
                && !path.starts_with(b"proc/")
            {
                found.entry(id).or_insert_with(|| [b"/", path].concat());
            }
        });
        found.into_iter().collect()
    }

    /// What a file is sure to hold.
    fn certain(&self, origin: &Tree, id: InodeId) -> Bytes {
        let synced = self.synced.get(&id).cloned();
        synced.unwrap_or_else(|| match &origin.get(id).node {
            Node::Regular(bytes) => bytes.clone(),
            _ => Bytes::default(),
        })
    }

    /// The disk if the host is switched off now, and these files lose what was not synchronised.
    pub(crate) fn disk(&self, lost: &[InodeId]) -> Disk {
        let origin = self.tree.at_the_start();
        let mut tree = self.tree.clone();
        for id in lost {
            tree.get_mut(*id).node = Node::Regular(self.certain(&origin, *id));
        }
        let processes = tree.directory(PROC).map(|proc| proc.names.clone());
        let is_number = |name: &Vec<u8>| name.iter().all(u8::is_ascii_digit);
        for name in processes.unwrap_or_default().into_keys().filter(is_number) {
            tree.remove(PROC, &name);
        }
        Disk { tree }
    }
}

impl Host {
    /// Files that may hold something else after the host was switched off, in order, and a path of each.
    pub fn unsynced(&self) -> Vec<(InodeId, Vec<u8>)> {
        self.state.files.unsynced()
    }

    /// Its disk if it is switched off now, and these files lose what was not synchronised.
    pub fn disk(&self, lost: &[InodeId]) -> Disk {
        self.state.files.disk(lost)
    }
}
