//! Capabilities of a process (`capset`, `prctl`).

/// Sets of capabilities, as bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Effective set: the capabilities that permission checks use.
    pub effective: u64,
    /// Permitted set: the capabilities that the process may make effective.
    pub permitted: u64,
    /// Inheritable set: the capabilities that `execve` may keep.
    pub inheritable: u64,
    /// Bounding set: the capabilities that `execve` may grant.
    pub bounding: u64,
    /// Ambient set: the capabilities that `execve` keeps if the user is not root.
    pub ambient: u64,
}

/// All capabilities.
pub const ALL: u64 = (1 << 41) - 1;

pub const CHOWN: u32 = 0;
pub const DAC_OVERRIDE: u32 = 1;
pub const DAC_READ_SEARCH: u32 = 2;
pub const FOWNER: u32 = 3;
pub const FSETID: u32 = 4;
pub const KILL: u32 = 5;
pub const SETGID: u32 = 6;
pub const SETUID: u32 = 7;
pub const SETPCAP: u32 = 8;
pub const NET_BIND_SERVICE: u32 = 10;
pub const NET_ADMIN: u32 = 12;
pub const NET_RAW: u32 = 13;
pub const IPC_LOCK: u32 = 14;
pub const SYS_MODULE: u32 = 16;
pub const SYS_RAWIO: u32 = 17;
pub const SYS_CHROOT: u32 = 18;
pub const SYS_PTRACE: u32 = 19;
pub const SYS_PACCT: u32 = 20;
pub const SYS_ADMIN: u32 = 21;
pub const SYS_BOOT: u32 = 22;
pub const SYS_NICE: u32 = 23;
pub const SYS_RESOURCE: u32 = 24;
pub const SYS_TIME: u32 = 25;
pub const SYS_TTY_CONFIG: u32 = 26;
pub const MKNOD: u32 = 27;
pub const SYSLOG: u32 = 34;
pub const WAKE_ALARM: u32 = 35;
pub const BPF: u32 = 39;

/// Bits of `PR_SET_SECUREBITS`. The next higher bit of each is its lock.
pub mod secure {
    /// Programs that root executes get no capabilities.
    pub const NO_ROOT: u32 = 1;
    /// Changes of the user do not change the capabilities.
    pub const NO_FIXUP: u32 = 4;
    /// Permitted capabilities stay when the last user id of root goes.
    pub const KEEP_CAPABILITIES: u32 = 0x10;
    /// No capability can become ambient.
    pub const NO_AMBIENT: u32 = 0x40;
    /// All locks.
    pub const LOCKS: u64 = 0xaa;
}

/// Capabilities about files, which follow the user id that file permission checks use: the five
/// above, `CAP_LINUX_IMMUTABLE`, `CAP_MKNOD` and `CAP_MAC_OVERRIDE`.
const OF_FILES: u64 = 0x1f | 1 << 9 | 1 << MKNOD | 1 << 32;

impl Capabilities {
    /// The capabilities of root.
    pub const ROOT: Capabilities = Capabilities {
        effective: ALL,
        permitted: ALL,
        inheritable: 0,
        bounding: ALL,
        ambient: 0,
    };

    /// Whether a capability is effective.
    pub fn has(&self, capability: u32) -> bool {
        self.effective >> capability & 1 != 0
    }

    /// Updates the effective set after `setfsuid`.
    pub fn follow_file_user(&mut self, old: u32, new: u32) {
        if old == 0 && new != 0 {
            self.effective &= !OF_FILES;
        }
        if old != 0 && new == 0 {
            self.effective |= self.permitted & OF_FILES;
        }
    }

    /// Updates the sets after a change of the user ids: real, effective, saved.
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

    /// Updates the sets after `execve` of a program that has no file capabilities.
    pub fn follow_exec(&mut self, uid: [u32; 3], secure_bits: u32) {
        let trusts_root = secure_bits & secure::NO_ROOT == 0;
        let is_root = trusts_root && (uid[0] == 0 || uid[1] == 0);
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
        assert!(for_now.has(KILL) && for_now.has(DAC_OVERRIDE));
        kept.follow_exec([5; 3], 0);
        assert_eq!((kept.effective, kept.permitted), (0, 0));
    }
}
