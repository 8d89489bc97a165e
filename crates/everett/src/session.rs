//! What a caller gives to an operation besides its spec: a clock, an account of memory, a flag to stop it. Every
//! operation that runs at the same time can have its own; nothing here is shared by a whole process.

use everett_engine::MemoryAccount;
use everett_solver::Clock;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The clock, memory and stop flag of operations. Limits in time count from when it was made.
#[derive(Clone, Debug)]
pub struct Session {
    /// Time since the operation began.
    pub clock: Clock,
    /// The memory that it takes.
    pub memory: Arc<dyn MemoryAccount>,
    /// Set by whoever wants a search to stop; what was found so far is written.
    pub stop: Arc<AtomicBool>,
    /// The process ends behind the operation, so that it need not take its states apart: the system is faster.
    pub ends_process: bool,
    /// Hears of what cannot wait or belongs to no operation.
    pub notices: Notices,
}

impl Default for Session {
    fn default() -> Session {
        Session::new()
    }
}

impl Session {
    /// A session that begins now, accounts for the memory of the process, and can be stopped by its flag.
    pub fn new() -> Session {
        Session {
            clock: Clock::start(),
            memory: Arc::new(ProcessMemory),
            stop: Arc::default(),
            ends_process: false,
            notices: Notices::default(),
        }
    }

    /// Time since the operation began.
    pub fn now(&self) -> Duration {
        self.clock.now()
    }
}

/// Hears at once, from whatever thread, of what takes long or may surprise: tools that are installed first, files of
/// the disk that cannot be read any more. Nobody hears of it by default.
#[derive(Clone)]
pub struct Notices(Arc<dyn Fn(&str) + Send + Sync>);

impl Notices {
    /// Somebody who hears of it.
    pub fn new(hear: impl Fn(&str) + Send + Sync + 'static) -> Notices {
        Notices(Arc::new(hear))
    }

    pub(crate) fn tell(&self, text: &str) {
        (self.0)(text);
    }
}

impl Default for Notices {
    fn default() -> Notices {
        Notices::new(|_| {})
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Notices")
    }
}

/// The memory of the whole process, from the kernel.
#[derive(Copy, Clone, Debug, Default)]
pub struct ProcessMemory;

impl MemoryAccount for ProcessMemory {
    fn used(&self) -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = statm
            .split(' ')
            .nth(1)
            .and_then(|pages| pages.parse::<u64>().ok());
        pages.unwrap_or(0) * 4096
    }

    fn peak(&self) -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }
}
