//! The directory tree and its inodes.

use everett_expr::VisitTerms;
use everett_vm::ImageId;
use triomphe::Arc;

use super::inode::{Directory, Inode, InodeKind};
use super::table::InodeTable;
use crate::bytes::Bytes;
use crate::errno::Errno;
use crate::ids::InodeId;

/// The root directory.
pub const ROOT: InodeId = InodeId(1);
/// `/proc`.
pub const PROC: InodeId = InodeId(2);

/// The directory tree.
#[derive(Clone, Debug)]
pub struct Tree {
    inodes: InodeTable,
    /// Inodes with lower numbers exist on every host.
    standard_end: InodeId,
    /// All inodes as they were at boot.
    origin: InodeTable,
    /// A placeholder for an inode that does not exist.
    nobody: Inode,
}

impl Tree {
    /// A root directory with an empty `/proc`.
    pub fn new(now_ns: u64) -> Tree {
        let mut tree = Tree {
            inodes: InodeTable::default(),
            standard_end: InodeId(0),
            origin: InodeTable::default(),
            nobody: Inode {
                links: 0,
                ..Inode::new(InodeKind::Link(Vec::new()), 0, 0)
            },
        };
        // Inode number 0 is not used.
        tree.inodes.push(tree.nobody.clone());
        tree.inodes.push(Inode::directory(ROOT, 0o755, now_ns));
        tree.add(ROOT, b"proc", Inode::directory(ROOT, 0o555, now_ns));
        tree
    }

    /// The inode with this number.
    pub fn get(&self, id: InodeId) -> &Inode {
        self.inodes.get(id).unwrap_or(&self.nobody)
    }

    /// The inode with this number, for changing it.
    pub fn get_mut(&mut self, id: InodeId) -> &mut Inode {
        match self.inodes.get_mut(id) {
            Some(inode) => inode,
            None => &mut self.nobody,
        }
    }

    /// The directory with this inode number, if it is one.
    pub fn directory(&self, id: InodeId) -> Option<&Directory> {
        match &self.get(id).kind {
            InodeKind::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    fn directory_mut(&mut self, id: InodeId) -> Option<&mut Directory> {
        match &mut self.get_mut(id).kind {
            InodeKind::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    /// Adds an unlinked inode.
    pub fn add_unlinked(&mut self, inode: Inode) -> InodeId {
        self.inodes.push(Inode { links: 0, ..inode })
    }

    /// Adds an inode under a free name.
    pub fn add(&mut self, directory: InodeId, name: &[u8], inode: Inode) -> InodeId {
        let is_directory = inode.is_directory();
        let id = self.inodes.push(inode);
        if let Some(names) = self.directory_mut(directory) {
            names.insert(name, id);
            self.get_mut(directory).links += u32::from(is_directory);
        }
        id
    }

    /// Adds a hard link under a free name to a file that is not a directory.
    pub fn link(&mut self, directory: InodeId, name: &[u8], id: InodeId) {
        if let Some(names) = self.directory_mut(directory) {
            names.insert(name, id);
            self.get_mut(id).links += 1;
        }
    }

    /// Unlinks a name and returns its inode, which stays as long as it is open.
    pub fn remove(&mut self, directory: InodeId, name: &[u8]) -> Option<InodeId> {
        let entry = self.directory_mut(directory)?.names.remove(name)?;
        let inode = self.get_mut(entry.id);
        if inode.is_directory() {
            inode.links = 0;
            let parent = self.get_mut(directory);
            parent.links = parent.links.saturating_sub(1);
        } else {
            inode.links = inode.links.saturating_sub(1);
        }
        if self.get(entry.id).links == 0
            && let Some(mut path) = self.path_of(directory)
        {
            path.extend(if path.ends_with(b"/") { &b""[..] } else { b"/" });
            path.extend(name);
            self.get_mut(entry.id).last_path = Some(Arc::new(path));
        }
        Some(entry.id)
    }

    /// Renames an entry to a free name.
    pub fn rename(&mut self, from: (InodeId, &[u8]), to: (InodeId, &[u8])) {
        let taken = self
            .directory_mut(from.0)
            .and_then(|names| names.names.remove(from.1));
        let Some(entry) = taken else { return };
        if let Some(names) = self.directory_mut(to.0) {
            names.insert(to.1, entry.id);
        }
        self.set_parent(entry.id, from.0, to.0);
    }

    /// Exchanges two entries.
    pub fn exchange(&mut self, one: (InodeId, &[u8]), other: (InodeId, &[u8])) {
        let found = |tree: &Tree, dentry: (InodeId, &[u8])| {
            let entry = tree.directory(dentry.0)?.names.get(dentry.1)?;
            Some(entry.id)
        };
        let (Some(first), Some(second)) = (found(self, one), found(self, other)) else {
            return;
        };
        for (dentry, id) in [(one, second), (other, first)] {
            let entry = self
                .directory_mut(dentry.0)
                .and_then(|names| names.names.get_mut(dentry.1));
            if let Some(entry) = entry {
                entry.id = id;
            }
        }
        self.set_parent(first, one.0, other.0);
        self.set_parent(second, other.0, one.0);
    }

    /// Updates a directory's parent after a rename.
    fn set_parent(&mut self, id: InodeId, from: InodeId, to: InodeId) {
        if from == to {
            return;
        }
        if let Some(directory) = self.directory_mut(id) {
            directory.parent = to;
            let old = self.get_mut(from);
            old.links = old.links.saturating_sub(1);
            self.get_mut(to).links += 1;
        }
    }

    /// Frees an inode that has no link and is not open.
    pub fn forget(&mut self, id: InodeId) {
        self.inodes.remove(id);
    }

    /// Whether a directory is `above` or a descendant of it.
    pub fn is_below(&self, directory: InodeId, above: InodeId) -> bool {
        let mut at = directory;
        loop {
            if at == above {
                return true;
            }
            match self.directory(at) {
                Some(names) if at != ROOT => at = names.parent,
                _ => return false,
            }
        }
    }

    /// Whether a directory is in `/proc`.
    pub fn is_in_proc(&self, directory: InodeId) -> bool {
        directory != ROOT && self.is_below(directory, PROC)
    }

    /// The root directory of the mounted file system that a directory is in.
    pub fn mount_of(&self, directory: InodeId) -> InodeId {
        let mut mounts = vec![PROC];
        let shared = self.child(ROOT, b"dev").ok().flatten();
        let shared = shared.and_then(|dev| self.child(dev, b"shm").ok().flatten());
        mounts.extend(shared);
        let is_there = |mount: &InodeId| self.is_below(directory, *mount);
        mounts.into_iter().find(is_there).unwrap_or(ROOT)
    }

    /// Creates or replaces a file, and creates its parent directories. Used at boot.
    pub fn install(&mut self, from: InodeId, path: &[u8], inode: Inode) -> Result<InodeId, Errno> {
        let cut = path
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |at| at + 1);
        let (directories, name) = path.split_at(cut);
        if name.is_empty() || matches!(name, b"." | b"..") {
            return Err(Errno::EINVAL);
        }
        let directory = self.create_directories(from, directories)?;
        self.replace(directory, name, inode)
    }

    /// Adds an inode under a name that may be in use.
    pub fn replace(
        &mut self,
        directory: InodeId,
        name: &[u8],
        inode: Inode,
    ) -> Result<InodeId, Errno> {
        if self.child(directory, name)?.is_some() {
            self.remove(directory, name);
        }
        Ok(self.add(directory, name, inode))
    }

    /// Resolves the path of a directory, and creates missing directories.
    pub fn create_directories(&mut self, from: InodeId, path: &[u8]) -> Result<InodeId, Errno> {
        let mut at = if path.first() == Some(&b'/') {
            ROOT
        } else {
            from
        };
        for name in path
            .split(|byte| *byte == b'/')
            .filter(|part| !part.is_empty())
        {
            at = match self.lookup(at, name, true) {
                Ok(id) => id,
                Err(Errno::ENOENT) => {
                    let now_ns = self.get(at).changed_ns.max(0) as u64;
                    self.add(at, name, Inode::directory(at, 0o755, now_ns))
                }
                Err(errno) => return Err(errno),
            };
        }
        match self.get(at).kind {
            InodeKind::Directory(..) => Ok(at),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// The absolute path of a directory; `None` if it was removed.
    pub fn path_of(&self, directory: InodeId) -> Option<Vec<u8>> {
        let mut parts = Vec::new();
        let mut at = directory;
        while at != ROOT {
            let parent = self.directory(at)?.parent;
            parts.push(self.name_in(parent, at)?);
            at = parent;
        }
        if parts.is_empty() {
            return Some(b"/".to_vec());
        }
        let parts = parts.iter().rev();
        Some(parts.flat_map(|part| [b"/", *part].concat()).collect())
    }

    /// A name of an inode in a directory.
    pub fn name_in(&self, directory: InodeId, id: InodeId) -> Option<&[u8]> {
        let mut names = self.directory(directory)?.names.iter();
        names
            .find(|(_, entry)| entry.id == id)
            .map(|(name, _)| name.as_slice())
    }

    /// A path of an inode of any type; `None` if it has none.
    pub fn any_path_of(&self, id: InodeId) -> Option<Vec<u8>> {
        if self.get(id).is_directory() {
            return self.path_of(id);
        }
        let mut found = None;
        self.for_each_inode(ROOT, &mut |path, file| {
            if file == id && found.is_none() {
                found = Some([b"/", path].concat());
            }
        });
        found
    }

    /// Marks the current inodes as those that every host has.
    pub fn mark_standard_files(&mut self) {
        self.standard_end = self.inodes.next_id();
    }

    /// Marks the current state as the state at boot.
    pub fn start(&mut self) {
        self.origin = self.inodes.clone();
    }

    /// Whether this is a regular file of the boot with the contents and the time of modification
    /// that it had then.
    pub fn is_unmodified(&self, id: InodeId) -> bool {
        let Some(before) = self.origin.get(id) else {
            return false;
        };
        match (&self.get(id).kind, &before.kind) {
            (InodeKind::Regular(new), InodeKind::Regular(old)) => {
                new.is_same(old) && self.get(id).modified_ns == before.modified_ns
            }
            _ => false,
        }
    }

    /// Gives another time to everything about a file that happened before boot.
    pub fn date(&mut self, id: InodeId, time_ns: i64) {
        let Some(before) = self.origin.get(id) else {
            return;
        };
        let before = [
            before.accessed_ns,
            before.modified_ns,
            before.changed_ns,
            before.born_ns,
        ];
        let inode = self.get_mut(id);
        let fields = [
            &mut inode.accessed_ns,
            &mut inode.modified_ns,
            &mut inode.changed_ns,
            &mut inode.born_ns,
        ];
        for (field, before) in fields.into_iter().zip(before) {
            if *field == before {
                *field = time_ns;
            }
        }
    }

    /// The tree as it was at boot.
    pub fn at_boot(&self) -> Tree {
        Tree {
            inodes: self.origin.clone(),
            ..self.clone()
        }
    }

    /// Calls `visit` for everything below a directory, and for the targets of one level of symbolic
    /// links, with the path relative to the directory and whether every host has that file.
    pub fn for_each_name(&self, directory: InodeId, visit: &mut dyn FnMut(&[u8], bool)) {
        let mut waiting = vec![(directory, Vec::new(), false)];
        while let Some((at, prefix, linked)) = waiting.pop() {
            let Some(directory) = self.directory(at) else {
                continue;
            };
            let in_proc = self.is_in_proc(at);
            for (name, entry) in &directory.names {
                let path = [prefix.as_slice(), name].concat();
                visit(&path, in_proc || entry.id < self.standard_end);
                let below = [path.as_slice(), b"/"].concat();
                let is_link = matches!(
                    self.get(entry.id).kind,
                    InodeKind::Link(_) | InodeKind::Magic(_)
                );
                match self.lookup(at, name, true) {
                    // A link to a directory above it would recurse forever.
                    Ok(id) if is_link && (linked || self.is_below(at, id)) => {}
                    Ok(id) => waiting.push((id, below, linked || is_link)),
                    Err(_) => {}
                }
            }
        }
    }

    /// Calls `visit` for everything below a directory, with the path relative to the directory and
    /// the inode.
    pub fn for_each_inode(&self, directory: InodeId, visit: &mut dyn FnMut(&[u8], InodeId)) {
        let mut waiting = vec![(directory, Vec::new())];
        while let Some((at, prefix)) = waiting.pop() {
            let Some(directory) = self.directory(at) else {
                continue;
            };
            for (name, entry) in &directory.names {
                let path = [prefix.as_slice(), name].concat();
                visit(&path, entry.id);
                waiting.push((entry.id, [path.as_slice(), b"/"].concat()));
            }
        }
    }

    /// The first program whose contents match.
    pub fn find_program(&self, matches: impl Fn(&Bytes) -> bool) -> Option<ImageId> {
        let mut programs = self.inodes.iter().filter(|inode| inode.program.is_some());
        let found = programs.find(|inode| match &inode.kind {
            InodeKind::Regular(bytes) => matches(bytes),
            _ => false,
        });
        found?.program
    }

    /// The total length of all regular files.
    pub fn all_lengths(&self) -> u64 {
        let lengths = self.inodes.iter().map(|inode| match &inode.kind {
            InodeKind::Regular(bytes) => bytes.len(),
            _ => 0,
        });
        lengths.fold(0, u64::saturating_add)
    }

    /// Bytes of memory that the contents of files take, without those that all hosts share.
    pub fn held_bytes(&self) -> u64 {
        let inodes = self.inodes.iter();
        let held = inodes.map(|inode| match &inode.kind {
            InodeKind::Regular(bytes) => bytes.held(),
            _ => 0,
        });
        held.sum()
    }

    /// Visits all terms, so that the arena can mark live ones.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        for inode in self.inodes.iter() {
            inode.attributes.for_each_term(visit);
            if let InodeKind::Regular(bytes) = &inode.kind {
                bytes.for_each_term(visit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Bytes;
    use crate::files::access::FsCredentials;
    use crate::files::walk::Walk;

    fn file(bytes: &[u8]) -> Inode {
        Inode::new(InodeKind::Regular(Bytes::from_concrete(bytes)), 0o644, 0)
    }

    fn link(target: &[u8]) -> Inode {
        Inode::new(InodeKind::Link(target.to_vec()), 0o777, 0)
    }

    #[test]
    fn paths_lead_to_files() {
        let mut tree = Tree::new(0);
        tree.install(ROOT, b"/a/b/file", file(b"x")).unwrap();
        let b = tree.lookup(ROOT, b"/a/b", true).unwrap();
        let found = tree.lookup(b, b"../b/./file", true).unwrap();
        assert_eq!(tree.lookup(ROOT, b"a//b/file", true), Ok(found));
        assert_eq!(tree.lookup(ROOT, b"/a/b/file/", true), Err(Errno::ENOTDIR));
        assert_eq!(tree.lookup(ROOT, b"/a/b/file/x", true), Err(Errno::ENOTDIR));
        assert_eq!(tree.lookup(ROOT, b"/a/none", true), Err(Errno::ENOENT));
        assert_eq!(tree.lookup(ROOT, b"", true), Err(Errno::ENOENT));
        assert_eq!(tree.lookup(ROOT, b"/..", true), Ok(ROOT));
        assert_eq!(tree.path_of(b).unwrap(), b"/a/b");
        assert_eq!(tree.any_path_of(found).unwrap(), b"/a/b/file");
        assert_eq!(tree.path_of(ROOT).unwrap(), b"/");
    }

    #[test]
    fn links_are_followed_and_loops_end() {
        let mut tree = Tree::new(0);
        tree.install(ROOT, b"/a/file", file(b"x")).unwrap();
        tree.install(ROOT, b"/a/near", link(b"file")).unwrap();
        tree.install(ROOT, b"/dir", link(b"a")).unwrap();
        tree.install(ROOT, b"/loop", link(b"loop")).unwrap();
        let target = tree.lookup(ROOT, b"/a/file", true).unwrap();
        assert_eq!(tree.lookup(ROOT, b"/dir/near", true), Ok(target));
        assert_ne!(tree.lookup(ROOT, b"/dir/near", false), Ok(target));
        assert_eq!(tree.lookup(ROOT, b"/loop", true), Err(Errno::ELOOP));
        assert_eq!(tree.lookup(ROOT, b"/loop/x", true), Err(Errno::ELOOP));
        tree.install(ROOT, b"/new", link(b"a/later")).unwrap();
        let (dentry, found) = Walk::new(&tree, &FsCredentials::ROOT)
            .final_dentry(ROOT, b"/new")
            .unwrap();
        assert_eq!((dentry.name.as_slice(), found), (&b"later"[..], None));
    }

    #[test]
    fn a_removed_name_is_gone_in_this_clone_only() {
        let mut tree = Tree::new(0);
        tree.install(ROOT, b"/file", file(b"x")).unwrap();
        let clone = tree.clone();
        tree.remove(ROOT, b"file");
        assert_eq!(tree.lookup(ROOT, b"/file", true), Err(Errno::ENOENT));
        assert!(clone.lookup(ROOT, b"/file", true).is_ok());
    }

    #[test]
    fn directories_that_move_know_their_parents() {
        let mut tree = Tree::new(0);
        tree.install(ROOT, b"/a/d/file", file(b"x")).unwrap();
        let b = tree.create_directories(ROOT, b"/b").unwrap();
        let (a, d) = (
            tree.lookup(ROOT, b"/a", true).unwrap(),
            tree.lookup(ROOT, b"/a/d", true).unwrap(),
        );
        tree.rename((a, b"d"), (b, b"e"));
        assert_eq!(tree.path_of(d).unwrap(), b"/b/e");
        assert_eq!((tree.get(a).links, tree.get(b).links), (2, 3));
        assert!(tree.is_below(d, b) && !tree.is_below(b, d));
        tree.exchange((ROOT, b"a"), (b, b"e"));
        assert_eq!(tree.path_of(a).unwrap(), b"/b/e");
        assert_eq!(tree.path_of(d).unwrap(), b"/a");
        assert_eq!(tree.directory(d).unwrap().parent, ROOT);
    }
}
