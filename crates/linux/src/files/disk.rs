//! Persistence across power loss. Names, owners and permissions survive, as with a journal; the
//! contents of a file survive only as far as they were synchronised.

use everett_expr::VisitTerms;
use std::collections::{BTreeMap, BTreeSet};
use triomphe::Arc;

use super::description::Target;
use super::dirty_pages::DirtyPages;
use super::inode::InodeKind;
use super::tree::{PROC, ROOT, Tree};
use super::{Files, Input, Locks};
use crate::bytes::Bytes;
use crate::ids::InodeId;

/// Contents of files at their last synchronisation; a file that was never synchronised has no
/// entry.
pub type Synced = Arc<BTreeMap<InodeId, Bytes>>;

/// The disk of a host that is switched off.
#[derive(Clone, Debug)]
pub struct Disk {
    tree: Tree,
    /// Files whose times the oracle has chosen: a restart does not choose them again.
    dated: Arc<BTreeSet<InodeId>>,
    /// The modes that are symbolic.
    modes: Arc<Vec<(Target, Bytes)>>,
}

impl Disk {
    /// Visits all terms.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        self.tree.for_each_term(visit);
        self.modes
            .iter()
            .for_each(|(_, mode)| mode.for_each_term(visit));
    }

    /// The files of a host that boots with this disk. Everything on it is durable.
    pub(crate) fn mount(&self) -> Files {
        let mut files = Files {
            tree: self.tree.clone(),
            stdins: vec![Input::default()],
            locks: Locks::default(),
            synced: Synced::default(),
            dirty_pages: DirtyPages::default(),
            dated: self.dated.clone(),
            modes: self.modes.clone(),
            fifos: Arc::default(),
            descriptions: Arc::new(Vec::new()),
        };
        files.sync_all();
        files
    }
}

impl Files {
    /// Makes the contents of a file durable.
    pub fn sync(&mut self, id: InodeId) {
        self.dirty_pages.clean(id);
        if let InodeKind::Regular(bytes) = &self.tree.get(id).kind {
            Arc::make_mut(&mut self.synced).insert(id, bytes.clone());
        }
    }

    /// Makes the contents of all files durable.
    pub fn sync_all(&mut self) {
        self.dirty_pages = DirtyPages::default();
        for (id, _) in self.unsynced() {
            self.sync(id);
        }
    }

    /// Files with contents that are not durable, in order, with a path of each.
    pub fn unsynced(&self) -> Vec<(InodeId, Vec<u8>)> {
        let origin = self.tree.at_boot();
        let mut found = BTreeMap::new();
        self.tree.for_each_inode(ROOT, &mut |path, id| {
            if let InodeKind::Regular(bytes) = &self.tree.get(id).kind
                && !self.durable_contents(&origin, id).is_same(bytes)
                && !path.starts_with(b"proc/")
            {
                found.entry(id).or_insert_with(|| [b"/", path].concat());
            }
        });
        found.into_iter().collect()
    }

    /// The durable contents of a file.
    fn durable_contents(&self, origin: &Tree, id: InodeId) -> Bytes {
        let synced = self.synced.get(&id).cloned();
        synced.unwrap_or_else(|| match &origin.get(id).kind {
            InodeKind::Regular(bytes) => bytes.clone(),
            _ => Bytes::default(),
        })
    }

    /// The disk that the host has if it is switched off now. The files in `lost` lose what was not
    /// synchronised.
    pub(crate) fn disk(&self, lost: &[InodeId]) -> Disk {
        let origin = self.tree.at_boot();
        let mut tree = self.tree.clone();
        for id in lost {
            tree.get_mut(*id).kind = InodeKind::Regular(self.durable_contents(&origin, *id));
        }
        let processes = tree.directory(PROC).map(|proc| proc.names.clone());
        let is_number = |name: &Vec<u8>| name.iter().all(u8::is_ascii_digit);
        for name in processes.unwrap_or_default().into_keys().filter(is_number) {
            tree.remove(PROC, &name);
        }
        Disk {
            tree,
            dated: self.dated.clone(),
            modes: self.modes.clone(),
        }
    }
}
