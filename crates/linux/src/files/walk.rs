//! Path resolution: follows directories and symbolic links to an inode, with permission checks.

use super::access::{EXECUTE, FsCredentials};
use super::description::Target;
use super::inode::InodeKind;
use super::tree::{PROC, ROOT, Tree};
use crate::errno::Errno;
use crate::ids::InodeId;

/// Maximum number of symbolic links followed in one resolution.
const MAX_LINKS: u32 = 40;
/// Maximum length of a component of a path.
const NAME_MAX: usize = 255;

/// The parent directory and the last component of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dentry {
    /// The parent directory.
    pub directory: InodeId,
    /// The last component; empty for the root itself.
    pub name: Vec<u8>,
    /// The path ends with a slash: it must name a directory.
    pub must_be_directory: bool,
}

impl Dentry {
    /// Whether the last component can name a file: it is neither empty nor `.` nor `..`.
    pub fn is_ordinary(&self) -> bool {
        !matches!(self.name.as_slice(), b"" | b"." | b"..")
    }
}

/// What the resolution of a path must not do (`RESOLVE_` flags of `openat2`).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Scope(pub u64);

impl Scope {
    /// `RESOLVE_NO_XDEV`: cross mount points.
    const ONE_MOUNT: u64 = 0x01;
    /// `RESOLVE_NO_MAGICLINKS`: follow links of `/proc` to open files.
    const NO_MAGIC_LINKS: u64 = 0x02;
    /// `RESOLVE_NO_SYMLINKS`: follow links.
    const NO_LINKS: u64 = 0x04;
    /// `RESOLVE_BENEATH`: leave the directory where it starts.
    const BENEATH: u64 = 0x08;
    /// `RESOLVE_IN_ROOT`: the directory where it starts is the root directory.
    pub const IN_ROOT: u64 = 0x10;
    /// `RESOLVE_CACHED`: wait for a disk. Nothing here does.
    pub const CACHED: u64 = 0x20;

    /// Reads the flags; unknown and contradictory ones are invalid.
    pub fn new(flags: u64) -> Result<Scope, Errno> {
        const ALL: u64 = 0x3f;
        let scope = Scope(flags);
        if flags & !ALL != 0 || scope.has(Scope::BENEATH) && scope.has(Scope::IN_ROOT) {
            return Err(Errno::EINVAL);
        }
        Ok(scope)
    }

    /// Whether it has one of these flags.
    pub fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }
}

/// The resolution of a path.
pub struct Walk<'t> {
    tree: &'t Tree,
    who: &'t FsCredentials,
    /// The directory where absolute paths start, and which `..` does not leave (`chroot`).
    root: InodeId,
    /// Symbolic links that may still be followed.
    links: u32,
    /// What it must not do.
    scope: Scope,
    /// The resolution passed through `/proc`, whose contents must be updated first.
    pub entered_proc: bool,
}

impl<'t> Walk<'t> {
    /// Creates a resolution with these credentials.
    pub fn new(tree: &'t Tree, who: &'t FsCredentials) -> Walk<'t> {
        Walk {
            tree,
            who,
            root: ROOT,
            links: MAX_LINKS,
            scope: Scope::default(),
            entered_proc: false,
        }
    }

    /// Sets the root directory of the process.
    pub fn within(self, root: InodeId) -> Walk<'t> {
        Walk { root, ..self }
    }

    /// Limits a resolution that starts in the directory `from`.
    pub fn limited(self, scope: Scope, from: InodeId) -> Walk<'t> {
        let root = match scope.has(Scope::BENEATH | Scope::IN_ROOT) {
            true => from,
            false => self.root,
        };
        Walk {
            scope,
            root,
            ..self
        }
    }

    /// The inode with this name in a directory, if the directory may be searched.
    pub fn child(&mut self, directory: InodeId, name: &[u8]) -> Result<Option<InodeId>, Errno> {
        self.entered_proc |= directory == PROC;
        let inode = self.tree.get(directory);
        let InodeKind::Directory(entries) = &inode.kind else {
            return Err(Errno::ENOTDIR);
        };
        if !name.is_empty() {
            self.who.check(inode, EXECUTE)?;
        }
        let found = match name {
            b"" | b"." => return Ok(Some(directory)),
            b".." if directory == self.root && self.scope.has(Scope::BENEATH) => {
                return Err(Errno::EXDEV);
            }
            b".." if directory == self.root => return Ok(Some(directory)),
            b".." => Some(entries.parent),
            _ if name.len() > NAME_MAX => return Err(Errno::ENAMETOOLONG),
            _ => entries.names.get(name).map(|entry| entry.id),
        };
        if let Some(id) = found {
            self.check_mount(directory, id)?;
        }
        Ok(found)
    }

    /// Fails if the way from a directory to a file in it, or above it, crosses a mount point that
    /// it must not cross.
    fn check_mount(&self, directory: InodeId, id: InodeId) -> Result<(), Errno> {
        let crosses = || {
            let inner = self.tree.get(id).is_directory();
            inner && self.tree.mount_of(id) != self.tree.mount_of(directory)
        };
        match self.scope.has(Scope::ONE_MOUNT) && crosses() {
            true => Err(Errno::EXDEV),
            false => Ok(()),
        }
    }

    /// Resolves the target of a symbolic link in a directory, but for its last component.
    fn parent_of_target(&mut self, directory: InodeId, target: &[u8]) -> Result<Dentry, Errno> {
        self.links = self.links.checked_sub(1).ok_or(Errno::ELOOP)?;
        if self.scope.has(Scope::NO_LINKS) {
            return Err(Errno::ELOOP);
        }
        if target.starts_with(b"/") {
            self.check_mount(directory, self.root)?;
        }
        self.parent(directory, target)
    }

    /// Fails if a magic link in a directory must not be followed.
    fn check_magic_link(&self, directory: InodeId, target: Target) -> Result<(), Errno> {
        if self.scope.has(Scope::NO_LINKS | Scope::NO_MAGIC_LINKS) {
            return Err(Errno::ELOOP);
        }
        self.tree.check_process_link(directory, target, self.who)?;
        let elsewhere = match target {
            // A file of the tree that is no directory has no mount of its own.
            Target::Inode(id) if self.tree.get(id).is_directory() => {
                self.tree.mount_of(id) != self.tree.mount_of(directory)
            }
            _ => true,
        };
        let is_scoped = self.scope.has(Scope::BENEATH | Scope::IN_ROOT);
        match is_scoped || self.scope.has(Scope::ONE_MOUNT) && elsewhere {
            true => Err(Errno::EXDEV),
            false => Ok(()),
        }
    }

    /// Resolves all but the last component of a path.
    pub fn parent(&mut self, from: InodeId, path: &[u8]) -> Result<Dentry, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        let is_absolute = path[0] == b'/';
        if is_absolute && self.scope.has(Scope::BENEATH) {
            return Err(Errno::EXDEV);
        }
        let mut directory = if is_absolute { self.root } else { from };
        self.entered_proc |= self.tree.is_in_proc(directory);
        let mut name: &[u8] = b"";
        let components = path.split(|byte| *byte == b'/');
        for component in components.filter(|part| !part.is_empty()) {
            if !name.is_empty() {
                directory = self.step(directory, name)?;
            }
            name = component;
        }
        if !name.is_empty() {
            let inode = self.tree.get(directory);
            if !inode.is_directory() {
                return Err(Errno::ENOTDIR);
            }
            self.who.check(inode, EXECUTE)?;
        }
        Ok(Dentry {
            directory,
            name: name.to_vec(),
            must_be_directory: path.ends_with(b"/"),
        })
    }

    /// Resolves one component, following symbolic links.
    fn step(&mut self, directory: InodeId, name: &[u8]) -> Result<InodeId, Errno> {
        let id = self.child(directory, name)?.ok_or(Errno::ENOENT)?;
        let tree = self.tree;
        match &tree.get(id).kind {
            InodeKind::Magic(target) => {
                self.check_magic_link(directory, *target)?;
                match target {
                    Target::Inode(target) => Ok(*target),
                    _ => Ok(id),
                }
            }
            InodeKind::Link(target) => {
                let dentry = self.parent_of_target(directory, target)?;
                let id = self.step(dentry.directory, &dentry.name)?;
                self.only_directory(id, dentry.must_be_directory)
            }
            _ => Ok(id),
        }
    }

    fn only_directory(&self, id: InodeId, must_be_directory: bool) -> Result<InodeId, Errno> {
        if must_be_directory && !self.tree.get(id).is_directory() {
            return Err(Errno::ENOTDIR);
        }
        Ok(id)
    }

    /// Resolves a path. `follow` says whether a symbolic link as its last component is followed.
    pub fn lookup(&mut self, from: InodeId, path: &[u8], follow: bool) -> Result<InodeId, Errno> {
        let dentry = self.parent(from, path)?;
        let id = if follow || dentry.must_be_directory {
            self.step(dentry.directory, &dentry.name)?
        } else {
            let found = self.child(dentry.directory, &dentry.name)?;
            found.ok_or(Errno::ENOENT)?
        };
        self.only_directory(id, dentry.must_be_directory)
    }

    /// Resolves all but the last component, after following symbolic links at the end of the path.
    /// The file need not exist.
    pub fn final_dentry(
        &mut self,
        from: InodeId,
        path: &[u8],
    ) -> Result<(Dentry, Option<InodeId>), Errno> {
        let mut dentry = self.parent(from, path)?;
        loop {
            let Some(id) = self.child(dentry.directory, &dentry.name)? else {
                return Ok((dentry, None));
            };
            let tree = self.tree;
            match &tree.get(id).kind {
                InodeKind::Link(target) => {
                    let next = self.parent_of_target(dentry.directory, target)?;
                    let must_be_directory = dentry.must_be_directory || next.must_be_directory;
                    dentry = Dentry {
                        must_be_directory,
                        ..next
                    };
                }
                InodeKind::Magic(target) => {
                    self.check_magic_link(dentry.directory, *target)?;
                    let found = match target {
                        Target::Inode(target) => *target,
                        _ => id,
                    };
                    return Ok((dentry, Some(found)));
                }
                _ => return Ok((dentry, Some(id))),
            }
        }
    }
}

impl Tree {
    /// The inode with this name in a directory.
    pub fn child(&self, directory: InodeId, name: &[u8]) -> Result<Option<InodeId>, Errno> {
        Walk::new(self, &FsCredentials::ROOT).child(directory, name)
    }

    /// Resolves a path as [`Tree::lookup`] does, for a process with this root directory.
    pub fn lookup_within(
        &self,
        root: InodeId,
        from: InodeId,
        path: &[u8],
        follow: bool,
    ) -> Result<InodeId, Errno> {
        let who = FsCredentials::ROOT;
        let mut walk = Walk::new(self, &who).within(root);
        walk.lookup(from, path, follow)
    }

    /// Resolves a path with root's permissions. `follow` says whether a symbolic link as
    /// its last component is followed.
    pub fn lookup(&self, from: InodeId, path: &[u8], follow: bool) -> Result<InodeId, Errno> {
        Walk::new(self, &FsCredentials::ROOT).lookup(from, path, follow)
    }
}
