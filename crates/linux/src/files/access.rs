//! File permission checks: the credentials of a process against the mode and owner of an inode.

use super::inode::{Inode, InodeKind};
use crate::capabilities::{self, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID};
use crate::errno::Errno;

/// Credentials of a process, as file permission checks use them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FsCredentials {
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// Its effective capabilities.
    pub capabilities: u64,
}

/// Read permission.
pub const READ: u32 = 4;
/// Write permission.
pub const WRITE: u32 = 2;
/// Execute or search permission.
pub const EXECUTE: u32 = 1;

const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const STICKY: u32 = 0o1000;

impl Inode {
    /// Whether a program in this file runs as its owner or group.
    pub fn grants_ids(&self) -> bool {
        self.mode & SET_UID != 0 || self.grants_group()
    }

    fn grants_group(&self) -> bool {
        self.mode & (SET_GID | 0o010) == SET_GID | 0o010
    }
}

impl FsCredentials {
    /// Root, who passes all checks.
    pub const ROOT: FsCredentials = FsCredentials {
        uid: 0,
        gid: 0,
        groups: Vec::new(),
        capabilities: capabilities::ALL,
    };

    /// Whether a capability is effective.
    pub fn has(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 != 0
    }

    /// Whether it is a member of a group.
    pub fn is_in(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }

    /// `EACCES` unless all wanted permissions are granted, by the mode or by a capability:
    /// `CAP_DAC_READ_SEARCH` to read files, and to read and search directories,
    /// `CAP_DAC_OVERRIDE` for everything but executing what nobody may execute.
    pub fn check(&self, inode: &Inode, wanted: u32) -> Result<(), Errno> {
        let granted = if self.uid == inode.uid {
            inode.mode >> 6
        } else if self.is_in(inode.gid) {
            inode.mode >> 3
        } else {
            inode.mode
        };
        let wanted = wanted & 7;
        let is_directory = inode.is_directory();
        let only_looks = wanted == READ || (is_directory && wanted & WRITE == 0);
        let executable = is_directory || inode.mode & 0o111 != 0;
        let may = wanted & !granted == 0
            || (only_looks && self.has(DAC_READ_SEARCH))
            || (self.has(DAC_OVERRIDE) && (wanted & EXECUTE == 0 || executable));
        if may { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// `EPERM` unless it may change the metadata of a file: its owner and `CAP_FOWNER` may.
    pub fn check_owner(&self, inode: &Inode) -> Result<(), Errno> {
        if self.has(FOWNER) || self.uid == inode.uid {
            Ok(())
        } else {
            Err(Errno::EPERM)
        }
    }

    /// Whether it may remove a file's name from a directory.
    pub fn check_removal(&self, directory: &Inode, inode: &Inode) -> Result<(), Errno> {
        self.check(directory, WRITE | EXECUTE)?;
        if directory.mode & STICKY != 0
            && !self.has(FOWNER)
            && self.uid != inode.uid
            && self.uid != directory.uid
        {
            return Err(Errno::EPERM);
        }
        Ok(())
    }

    /// Clears the set-user-ID bit of a file that a user without `CAP_FSETID` has changed. Clears
    /// the set-group-ID bit too if the group may execute the file, or the user is not in the group.
    pub fn clear_set_ids(&self, inode: &mut Inode) {
        if self.has(FSETID) {
            return;
        }
        inode.mode &= !SET_UID;
        if inode.mode & 0o010 != 0 || !self.is_in(inode.gid) {
            inode.mode &= !SET_GID;
        }
    }

    /// Sets the owner of a new file: its creator, with the directory's group if that has the
    /// set-group-ID bit. Only members of that group can then give its rights to who executes it.
    pub fn own(&self, directory: &Inode, inode: &mut Inode) {
        inode.uid = self.uid;
        inode.gid = self.gid;
        if directory.mode & SET_GID != 0 {
            inode.gid = directory.gid;
            if matches!(inode.kind, InodeKind::Directory(_)) {
                inode.mode |= SET_GID;
            } else if inode.grants_group() && !self.is_in(inode.gid) && !self.has(FSETID) {
                inode.mode &= !SET_GID;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::ROOT;
    use crate::ids::InodeId;

    fn inode(mode: u32, uid: u32, gid: u32) -> Inode {
        Inode {
            uid,
            gid,
            ..Inode::new(InodeKind::Link(Vec::new()), mode, 0)
        }
    }

    #[test]
    fn the_first_class_that_fits_decides() {
        let who = FsCredentials {
            uid: 5,
            gid: 6,
            groups: vec![7],
            capabilities: 0,
        };
        // The owner does not get the permissions of others.
        assert_eq!(who.check(&inode(0o077, 5, 6), READ), Err(Errno::EACCES));
        assert_eq!(
            who.check(&inode(0o700, 5, 6), READ | WRITE | EXECUTE),
            Ok(())
        );
        assert_eq!(who.check(&inode(0o050, 1, 7), READ | EXECUTE), Ok(()));
        assert_eq!(who.check(&inode(0o050, 1, 7), WRITE), Err(Errno::EACCES));
        assert_eq!(who.check(&inode(0o002, 1, 1), WRITE), Ok(()));
        assert_eq!(
            FsCredentials::ROOT.check(&inode(0, 5, 5), READ | WRITE),
            Ok(())
        );
        assert_eq!(
            FsCredentials::ROOT.check(&inode(0o666, 5, 5), EXECUTE),
            Err(Errno::EACCES)
        );
        assert_eq!(
            FsCredentials::ROOT.check(&inode(0o100, 5, 5), EXECUTE),
            Ok(())
        );
    }

    #[test]
    fn sticky_directories_keep_the_files_of_others() {
        let who = |uid| FsCredentials {
            uid,
            capabilities: if uid == 0 { capabilities::ALL } else { 0 },
            ..FsCredentials::default()
        };
        let directory = Inode::directory(ROOT, 0o1777, 0);
        let file = inode(0o644, 5, 5);
        assert_eq!(who(5).check_removal(&directory, &file), Ok(()));
        assert_eq!(who(6).check_removal(&directory, &file), Err(Errno::EPERM));
        assert_eq!(who(0).check_removal(&directory, &file), Ok(()));
        let closed = Inode::directory(InodeId(1), 0o755, 0);
        assert_eq!(who(5).check_removal(&closed, &file), Err(Errno::EACCES));
    }
}
