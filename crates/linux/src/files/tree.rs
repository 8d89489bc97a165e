//! The tree of names and what the files hold.

use std::collections::BTreeMap;

use everett_expr::ExprId;
use everett_vm::ImageId;
use triomphe::Arc;

use crate::bytes::Bytes;
use crate::errno::Errno;

/// Number of a file on its host, at least 1.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InodeId(pub u32);

/// The root directory.
pub const ROOT: InodeId = InodeId(1);

/// Symbolic links that one lookup follows.
const MAX_LINKS: u32 = 40;
/// Longest name of one component.
const NAME_MAX: usize = 255;

/// Character devices.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Device {
    /// `/dev/null`.
    Null,
    /// `/dev/zero`.
    Zero,
    /// `/dev/full`.
    Full,
    /// `/dev/random` and `/dev/urandom`.
    Random,
}

impl Device {
    /// Its minor number; the major one is 1.
    pub fn minor(self) -> u64 {
        match self {
            Device::Null => 3,
            Device::Zero => 5,
            Device::Full => 7,
            Device::Random => 9,
        }
    }
}

/// What a file is.
#[derive(Clone, Debug)]
pub enum Node {
    /// A regular file.
    Regular(Bytes),
    /// A directory: names, and the directory above.
    Directory(BTreeMap<Vec<u8>, InodeId>, InodeId),
    /// A symbolic link.
    Link(Vec<u8>),
    /// A character device.
    Device(Device),
    /// The name of a UNIX socket.
    Socket,
}

/// A file.
#[derive(Clone, Debug)]
pub struct Inode {
    /// What it is.
    pub node: Node,
    /// Permission bits.
    pub mode: u32,
    /// Names that it has.
    pub links: u32,
    /// When it was last written, in nanoseconds since 1970.
    pub modified_ns: u64,
    /// The program that it is, where the run has it.
    pub program: Option<ImageId>,
}

/// The tree.
#[derive(Clone, Debug)]
pub struct Tree {
    /// By number. Number 0 is nobody.
    inodes: Arc<Vec<Arc<Inode>>>,
}

/// Where the last component of a path lies.
pub struct Place<'p> {
    /// The directory.
    pub directory: InodeId,
    /// The name in it; empty for the directory itself.
    pub name: &'p [u8],
}

impl Tree {
    /// A root with `/dev` and `/tmp`.
    pub fn new() -> Tree {
        let directory = |parent| Inode {
            node: Node::Directory(BTreeMap::new(), parent),
            mode: 0o755,
            links: 2,
            modified_ns: 0,
            program: None,
        };
        let mut tree = Tree {
            inodes: Arc::new(vec![Arc::new(directory(ROOT)), Arc::new(directory(ROOT))]),
        };
        let devices = tree.add(ROOT, b"dev", directory(ROOT));
        let listed = [
            (&b"null"[..], Device::Null),
            (b"zero", Device::Zero),
            (b"full", Device::Full),
            (b"random", Device::Random),
            (b"urandom", Device::Random),
        ];
        for (name, device) in listed {
            let node = Node::Device(device);
            tree.add(
                devices,
                name,
                Inode {
                    node,
                    mode: 0o666,
                    links: 1,
                    modified_ns: 0,
                    program: None,
                },
            );
        }
        let mut temporary = directory(ROOT);
        temporary.mode = 0o1777;
        tree.add(ROOT, b"tmp", temporary);
        tree
    }

    /// A file.
    pub fn get(&self, id: InodeId) -> &Inode {
        // Number 0 stands for what is not there; numbers come from this tree alone.
        self.inodes.get(id.0 as usize).unwrap_or(&self.inodes[0])
    }

    /// A file, to be changed.
    pub fn get_mut(&mut self, id: InodeId) -> &mut Inode {
        let inodes = Arc::make_mut(&mut self.inodes);
        let index = if (id.0 as usize) < inodes.len() {
            id.0 as usize
        } else {
            0
        };
        Arc::make_mut(&mut inodes[index])
    }

    /// Adds a file under a name that is free.
    pub fn add(&mut self, directory: InodeId, name: &[u8], inode: Inode) -> InodeId {
        let inodes = Arc::make_mut(&mut self.inodes);
        let id = InodeId(inodes.len() as u32);
        let is_directory = matches!(inode.node, Node::Directory(..));
        inodes.push(Arc::new(inode));
        let parent = self.get_mut(directory);
        if let Node::Directory(names, _) = &mut parent.node {
            names.insert(name.to_vec(), id);
            parent.links += u32::from(is_directory);
        }
        id
    }

    /// Takes a name away; the file stays for those who have it open.
    pub fn remove(&mut self, directory: InodeId, name: &[u8]) {
        let parent = self.get_mut(directory);
        let Node::Directory(names, _) = &mut parent.node else {
            return;
        };
        let Some(id) = names.remove(name) else { return };
        let inode = self.get_mut(id);
        if matches!(inode.node, Node::Directory(..)) {
            inode.links = 0;
            let parent = self.get_mut(directory);
            parent.links = parent.links.saturating_sub(1);
        } else {
            inode.links = inode.links.saturating_sub(1);
        }
    }

    /// The file with this name in a directory.
    pub fn child(&self, directory: InodeId, name: &[u8]) -> Result<Option<InodeId>, Errno> {
        match &self.get(directory).node {
            Node::Directory(names, parent) => match name {
                b"" | b"." => Ok(Some(directory)),
                b".." => Ok(Some(*parent)),
                _ if name.len() > NAME_MAX => Err(Errno::ENAMETOOLONG),
                _ => Ok(names.get(name).copied()),
            },
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// The directory that the last component of a path lies in, and that component.
    pub fn place<'p>(&self, from: InodeId, path: &'p [u8]) -> Result<Place<'p>, Errno> {
        self.place_following(from, path, MAX_LINKS)
    }

    fn place_following<'p>(
        &self,
        from: InodeId,
        path: &'p [u8],
        links: u32,
    ) -> Result<Place<'p>, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        let mut directory = if path[0] == b'/' { ROOT } else { from };
        let mut name: &[u8] = b"";
        for component in path
            .split(|byte| *byte == b'/')
            .filter(|part| !part.is_empty())
        {
            if !name.is_empty() {
                directory = self.step(directory, name, links)?;
            }
            name = component;
        }
        if name.is_empty() {
            return Ok(Place { directory, name });
        }
        if !matches!(self.get(directory).node, Node::Directory(..)) {
            return Err(Errno::ENOTDIR);
        }
        Ok(Place { directory, name })
    }

    /// One component further, following links.
    fn step(&self, directory: InodeId, name: &[u8], links: u32) -> Result<InodeId, Errno> {
        let id = self.child(directory, name)?.ok_or(Errno::ENOENT)?;
        match &self.get(id).node {
            Node::Link(_) if links == 0 => Err(Errno::ELOOP),
            Node::Link(target) => {
                let place = self.place_following(directory, target, links - 1)?;
                self.step(place.directory, place.name, links - 1)
            }
            _ => Ok(id),
        }
    }

    /// The file that a path names. A link at its end is followed if `follow` says so.
    pub fn lookup(&self, from: InodeId, path: &[u8], follow: bool) -> Result<InodeId, Errno> {
        let place = self.place(from, path)?;
        let must_be_directory = path.ends_with(b"/");
        let id = if follow || must_be_directory {
            self.step(place.directory, place.name, MAX_LINKS)?
        } else {
            self.child(place.directory, place.name)?
                .ok_or(Errno::ENOENT)?
        };
        if must_be_directory && !matches!(self.get(id).node, Node::Directory(..)) {
            return Err(Errno::ENOTDIR);
        }
        Ok(id)
    }

    /// Makes a file with its directories, or replaces it. For setting up.
    pub fn install(&mut self, from: InodeId, path: &[u8], inode: Inode) -> Result<(), Errno> {
        let cut = path
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |at| at + 1);
        let (directories, name) = path.split_at(cut);
        if name.is_empty() || matches!(name, b"." | b"..") {
            return Err(Errno::EINVAL);
        }
        let directory = self.make_directories(from, directories)?;
        if self.child(directory, name)?.is_some() {
            self.remove(directory, name);
        }
        self.add(directory, name, inode);
        Ok(())
    }

    /// The directory of this path, made where it is not there.
    pub fn make_directories(&mut self, from: InodeId, path: &[u8]) -> Result<InodeId, Errno> {
        let mut at = if path.first() == Some(&b'/') {
            ROOT
        } else {
            from
        };
        for name in path
            .split(|byte| *byte == b'/')
            .filter(|part| !part.is_empty())
        {
            at = match self.child(at, name)? {
                Some(id) => id,
                None => {
                    let node = Node::Directory(BTreeMap::new(), at);
                    self.add(
                        at,
                        name,
                        Inode {
                            node,
                            mode: 0o755,
                            links: 2,
                            modified_ns: 0,
                            program: None,
                        },
                    )
                }
            };
        }
        match self.get(at).node {
            Node::Directory(..) => Ok(at),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// The absolute path of a directory; `None` if it was removed.
    pub fn path_of(&self, directory: InodeId) -> Option<Vec<u8>> {
        let mut parts = Vec::new();
        let mut at = directory;
        while at != ROOT {
            let Node::Directory(_, parent) = self.get(at).node else {
                return None;
            };
            let Node::Directory(names, _) = &self.get(parent).node else {
                return None;
            };
            let (name, _) = names.iter().find(|entry| *entry.1 == at)?;
            parts.push(name.as_slice());
            at = parent;
        }
        if parts.is_empty() {
            return Some(b"/".to_vec());
        }
        Some(
            parts
                .iter()
                .rev()
                .flat_map(|part| [b"/", *part].concat())
                .collect(),
        )
    }

    /// Calls `visit` with the path, relative to a directory, of everything below it.
    pub fn for_each_path(&self, directory: InodeId, visit: &mut dyn FnMut(&[u8])) {
        let mut waiting = vec![(directory, Vec::new())];
        while let Some((at, prefix)) = waiting.pop() {
            let Node::Directory(names, _) = &self.get(at).node else {
                continue;
            };
            for (name, id) in names {
                let path = [prefix.as_slice(), name].concat();
                visit(&path);
                waiting.push((*id, [path.as_slice(), b"/"].concat()));
            }
        }
    }

    /// All terms, for marking what is alive.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(ExprId)) {
        for inode in self.inodes.iter() {
            if let Node::Regular(bytes) = &inode.node {
                bytes.for_each_term(visit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> Inode {
        let node = Node::Regular(Bytes::from_concrete(bytes));
        Inode {
            node,
            mode: 0o644,
            links: 1,
            modified_ns: 0,
            program: None,
        }
    }

    #[test]
    fn paths_lead_to_files() {
        let mut tree = Tree::new();
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
        assert_eq!(tree.path_of(ROOT).unwrap(), b"/");
    }

    #[test]
    fn links_are_followed_and_loops_end() {
        let mut tree = Tree::new();
        tree.install(ROOT, b"/a/file", file(b"x")).unwrap();
        let link = |target: &[u8]| Inode {
            node: Node::Link(target.to_vec()),
            mode: 0o777,
            links: 1,
            modified_ns: 0,
            program: None,
        };
        tree.install(ROOT, b"/a/near", link(b"file")).unwrap();
        tree.install(ROOT, b"/dir", link(b"a")).unwrap();
        tree.install(ROOT, b"/loop", link(b"loop")).unwrap();
        let target = tree.lookup(ROOT, b"/a/file", true).unwrap();
        assert_eq!(tree.lookup(ROOT, b"/dir/near", true), Ok(target));
        assert_ne!(tree.lookup(ROOT, b"/dir/near", false), Ok(target));
        assert_eq!(tree.lookup(ROOT, b"/loop", true), Err(Errno::ELOOP));
        assert_eq!(tree.lookup(ROOT, b"/loop/x", true), Err(Errno::ELOOP));
    }

    #[test]
    fn a_removed_name_is_gone_in_this_clone_only() {
        let mut tree = Tree::new();
        tree.install(ROOT, b"/file", file(b"x")).unwrap();
        let clone = tree.clone();
        tree.remove(ROOT, b"file");
        assert_eq!(tree.lookup(ROOT, b"/file", true), Err(Errno::ENOENT));
        assert!(clone.lookup(ROOT, b"/file", true).is_ok());
    }
}
