//! Resource limits of a process (`setrlimit`).

/// No limit.
pub const UNLIMITED: u64 = u64::MAX;

/// `RLIMIT_FSIZE`: the largest file.
pub const FILE_SIZE: usize = 1;
/// `RLIMIT_CPU`: seconds of processor time.
pub const PROCESSOR_TIME: usize = 0;
/// `RLIMIT_DATA`: bytes of private writable memory.
pub const DATA: usize = 2;
/// `RLIMIT_STACK`: bytes of the stack of the first thread.
pub const STACK: usize = 3;
const CORE: usize = 4;
/// `RLIMIT_NPROC`: processes and threads of the user.
pub const PROCESSES: usize = 6;
/// `RLIMIT_NOFILE`: one more than the highest descriptor.
pub const DESCRIPTORS: usize = 7;
/// `RLIMIT_MEMLOCK`: bytes of locked memory.
pub const LOCKED_MEMORY: usize = 8;
/// `RLIMIT_AS`: bytes of the address space.
pub const ADDRESS_SPACE: usize = 9;
/// `RLIMIT_SIGPENDING`: queued signals of the user.
pub const PENDING_SIGNALS: usize = 11;
/// `RLIMIT_MSGQUEUE`: bytes of the POSIX message queues of the user.
pub const QUEUE_BYTES: usize = 12;
/// The largest stack of a program, whatever its limit.
const MOST_STACK: u64 = 256 << 20;
const MOST_QUEUE_BYTES: u64 = 819_200;
/// `RLIMIT_NICE`: 20 less the lowest nice value.
pub const NICE: usize = 13;
/// `RLIMIT_RTPRIO`: the highest real-time priority.
pub const REAL_TIME_PRIORITY: usize = 14;
const RESOURCES: usize = 16;
/// Queued signals of a user at first: Linux derives the number from the size of memory.
const MOST_PENDING: u64 = 16_384;
/// Address space that a program takes before it maps anything: its code, data, stack and the pages
/// of the kernel.
const OWN_ADDRESS_SPACE: u64 = 512 << 10;
/// The part of it that is private and writable, without the stack.
const OWN_DATA: u64 = 32 << 10;

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
        all[PENDING_SIGNALS] = limit(MOST_PENDING, MOST_PENDING);
        all[QUEUE_BYTES] = limit(MOST_QUEUE_BYTES, MOST_QUEUE_BYTES);
        all[NICE] = limit(0, 0);
        all[REAL_TIME_PRIORITY] = limit(0, 0);
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

    /// Maximum bytes of private writable memory. A soft limit of 0 only concerns the heap that ends
    /// at the program break.
    pub fn all_data(&self) -> u64 {
        self.get(DATA).map_or(UNLIMITED, |limit| match limit.soft {
            0 => limit.hard,
            soft => soft,
        })
    }

    /// Maximum bytes of it that blocks and mappings may take.
    pub fn data(&self) -> u64 {
        match self.all_data() {
            UNLIMITED => UNLIMITED,
            limit => limit.saturating_sub(OWN_DATA),
        }
    }

    /// Maximum bytes of the stack of the first thread.
    pub fn stack(&self) -> u64 {
        self.soft(STACK).min(MOST_STACK)
    }

    /// Whether the heap that ends at the program break may not grow at all.
    pub fn forbids_break(&self) -> bool {
        self.soft(DATA) == 0
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
