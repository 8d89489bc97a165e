//! Resource limits of a process (`setrlimit`).

/// No limit.
pub const UNLIMITED: u64 = u64::MAX;

/// `RLIMIT_FSIZE`: the largest file.
pub const FILE_SIZE: usize = 1;
const STACK: usize = 3;
const CORE: usize = 4;
/// `RLIMIT_NPROC`: processes and threads of the user.
pub const PROCESSES: usize = 6;
/// `RLIMIT_NOFILE`: one more than the highest descriptor.
pub const DESCRIPTORS: usize = 7;
/// `RLIMIT_MEMLOCK`: bytes of locked memory.
pub const LOCKED_MEMORY: usize = 8;
/// `RLIMIT_AS`: bytes of the address space.
pub const ADDRESS_SPACE: usize = 9;
const RESOURCES: usize = 16;
/// Address space that a program takes before it maps anything: its code, data, stack and the pages
/// of the kernel.
const OWN_ADDRESS_SPACE: u64 = 512 << 10;

/// A soft and a hard limit.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// The limit in force.
    pub soft: u64,
    /// Maximum value that the soft limit can be raised to.
    pub hard: u64,
}

/// Resource limits of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    all: [Limit; RESOURCES],
}

impl Default for Limits {
    fn default() -> Limits {
        let limit = |soft, hard| Limit { soft, hard };
        let mut all = [limit(UNLIMITED, UNLIMITED); RESOURCES];
        all[STACK] = limit(8 << 20, UNLIMITED);
        all[CORE] = limit(0, UNLIMITED);
        all[DESCRIPTORS] = limit(MAX_DESCRIPTORS as u64, MAX_DESCRIPTORS as u64);
        Limits { all }
    }
}

impl Limits {
    /// The limit of a resource.
    pub fn get(&self, resource: usize) -> Option<Limit> {
        self.all.get(resource).copied()
    }

    /// The soft limit of a resource.
    pub fn soft(&self, resource: usize) -> u64 {
        self.all.get(resource).map_or(UNLIMITED, |limit| limit.soft)
    }

    /// Maximum bytes that blocks and mappings may take.
    pub fn address_space(&self) -> u64 {
        match self.soft(ADDRESS_SPACE) {
            UNLIMITED => UNLIMITED,
            limit => limit.saturating_sub(OWN_ADDRESS_SPACE),
        }
    }

    /// Sets a limit.
    pub fn set(&mut self, resource: usize, to: Limit) {
        if let Some(limit) = self.all.get_mut(resource) {
            *limit = to;
        }
    }
}

/// Maximum number of descriptors of a process.
pub const MAX_DESCRIPTORS: usize = 1024;
