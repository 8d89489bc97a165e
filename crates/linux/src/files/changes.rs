//! The files that a path has created, changed or removed since boot.

use super::Files;
use super::inode::InodeKind;
use super::tree::{PROC, ROOT, Tree};
use crate::bytes::Bytes;

/// How a file changed.
#[derive(Clone, Debug)]
pub enum FileChange {
    /// A regular file, new or with other contents.
    File(Bytes),
    /// A new directory.
    Directory,
    /// A new symbolic link.
    Link(Vec<u8>),
    /// A new FIFO, socket or device.
    Special,
    /// It existed at boot and was removed.
    Removed,
}

/// A file that differs from its state at boot.
#[derive(Clone, Debug)]
pub struct ChangedFile {
    /// Its absolute path.
    pub path: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
    /// How it changed.
    pub what: FileChange,
}

impl Files {
    /// All changes since boot, by path, `/proc` excluded.
    pub fn changes(&self) -> Vec<ChangedFile> {
        let (now, origin) = (&self.tree, self.tree.at_boot());
        let mut left = Vec::new();
        now.for_each_inode(ROOT, &mut |path, id| {
            let before = origin.lookup(ROOT, path, false).ok();
            let inode = now.get(id);
            let same_inode = before == Some(id);
            let unchanged = same_inode
                && origin.get(id).mode == inode.mode
                && match (&inode.kind, &origin.get(id).kind) {
                    (InodeKind::Regular(new), InodeKind::Regular(old)) => new.is_same(old),
                    (InodeKind::Link(new), InodeKind::Link(old)) => new == old,
                    _ => true,
                };
            if !unchanged {
                left.push(ChangedFile {
                    path: [b"/", path].concat(),
                    mode: inode.mode,
                    what: what_is(&inode.kind),
                });
            }
        });
        origin.for_each_inode(ROOT, &mut |path, id| {
            if !exists(now, path) {
                left.push(ChangedFile {
                    path: [b"/", path].concat(),
                    mode: origin.get(id).mode,
                    what: FileChange::Removed,
                });
            }
        });
        left.retain(|file| !file.path.starts_with(b"/proc/"));
        left.sort_by(|one, other| one.path.cmp(&other.path));
        left
    }
}

fn exists(tree: &Tree, path: &[u8]) -> bool {
    let mut at = ROOT;
    for name in path.split(|byte| *byte == b'/') {
        let entry = tree.directory(at).and_then(|names| names.names.get(name));
        match entry {
            Some(entry) => at = entry.id,
            None => return false,
        }
        if at == PROC {
            return true;
        }
    }
    true
}

fn what_is(node: &InodeKind) -> FileChange {
    match node {
        InodeKind::Regular(bytes) => FileChange::File(bytes.clone()),
        InodeKind::Directory(_) => FileChange::Directory,
        InodeKind::Link(target) => FileChange::Link(target.clone()),
        InodeKind::Device(_)
        | InodeKind::Fifo
        | InodeKind::Socket
        | InodeKind::Generated(_)
        | InodeKind::Magic(_) => FileChange::Special,
    }
}
