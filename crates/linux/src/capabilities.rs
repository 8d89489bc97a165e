//! Capabilities of a process.

/// Sets of capabilities, as bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Those that count.
    pub effective: u64,
    /// Those that it may make effective.
    pub permitted: u64,
    /// Those that `execve` may keep.
    pub inheritable: u64,
    /// Those that `execve` may give.
    pub bounding: u64,
    /// Those that `execve` keeps for who is not root.
    pub ambient: u64,
}

/// All capabilities that there are.
pub const ALL: u64 = (1 << 41) - 1;

pub const KILL: u32 = 5;
pub const SETGID: u32 = 6;
pub const SETUID: u32 = 7;
pub const SETPCAP: u32 = 8;
pub const NET_ADMIN: u32 = 12;
pub const NET_RAW: u32 = 13;
pub const IPC_LOCK: u32 = 14;
pub const SYS_CHROOT: u32 = 18;
pub const SYS_ADMIN: u32 = 21;
pub const SYS_NICE: u32 = 23;
pub const SYS_RESOURCE: u32 = 24;
pub const SYS_TIME: u32 = 25;
pub const MKNOD: u32 = 27;

/// Capabilities about files, which go with the user of the file system: all to
/// override permissions and owners.
const OF_FILES: u64 = 0x1f;

impl Capabilities {
    /// Those of root.
    pub const ROOT: Capabilities = Capabilities {
        effective: ALL,
        permitted: ALL,
        inheritable: 0,
        bounding: ALL,
        ambient: 0,
    };

    /// The same, with these that count.
    pub fn with(self, effective: u64) -> Capabilities {
        Capabilities { effective, ..self }
    }

    /// Whether a capability counts.
    pub fn has(&self, capability: u32) -> bool {
        self.effective >> capability & 1 != 0
    }

    /// Whether it overrides all permissions of files.
    pub fn overrides_files(&self) -> bool {
        self.effective & OF_FILES == OF_FILES
    }

    /// Follows a change of the user ids: real, effective, saved.
    pub fn follow_users(&mut self, old: [u32; 3], new: [u32; 3], keeps: bool) {
        if old.contains(&0) && !new.contains(&0) {
            if !keeps {
                self.permitted = 0;
                self.effective = 0;
            }
            self.ambient = 0;
        }
        if old[1] == 0 && new[1] != 0 {
            self.effective = 0;
        }
        if old[1] != 0 && new[1] == 0 {
            self.effective = self.permitted;
        }
    }

    /// Follows `execve` of a program without capabilities of its own.
    pub fn follow_exec(&mut self, uid: [u32; 3]) {
        let is_root = uid[0] == 0 || uid[1] == 0;
        self.permitted = match is_root {
            true => self.inheritable | self.bounding,
            false => self.ambient,
        };
        self.effective = match is_root && uid[1] == 0 {
            true => self.permitted,
            false => self.ambient,
        };
        if is_root {
            self.ambient = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_leaves_root_keeps_what_was_asked_for() {
        let mut left = Capabilities::ROOT;
        left.follow_users([0; 3], [5; 3], false);
        assert_eq!((left.effective, left.permitted), (0, 0));
        let mut kept = Capabilities::ROOT;
        kept.follow_users([0; 3], [5; 3], true);
        assert_eq!((kept.effective, kept.permitted), (0, ALL));
        let mut for_now = Capabilities::ROOT;
        for_now.follow_users([0; 3], [0, 5, 0], false);
        assert_eq!((for_now.effective, for_now.permitted), (0, ALL));
        for_now.follow_users([0, 5, 0], [0; 3], false);
        assert!(for_now.has(KILL) && for_now.overrides_files());
        kept.follow_exec([5; 3]);
        assert_eq!((kept.effective, kept.permitted), (0, 0));
    }
}
