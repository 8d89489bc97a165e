//! The context of an operation besides its spec: clock, memory account and stop flag. Concurrent
//! operations can each have their own; nothing here is global to the process.

use everett_engine::MemoryAccount;
use everett_solver::Clock;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Clock, memory account and stop flag of operations. Time limits count from its creation.
#[derive(Clone, Debug)]
pub struct Session {
    /// Time since the session was created.
    pub clock: Clock,
    /// The account of the memory in use.
    pub memory: Arc<dyn MemoryAccount>,
    /// Stops a search when it is set; results so far are written.
    pub stop: Arc<AtomicBool>,
    /// Whether the process exits after the operation. States are then not freed, since the kernel
    /// reclaims their memory faster.
    pub ends_process: bool,
    /// Default number of workers for searches of a program.
    pub workers: u64,
    /// Receives urgent messages and those that do not belong to an operation.
    pub notices: Notices,
}

impl Default for Session {
    fn default() -> Session {
        Session::new()
    }
}

impl Session {
    /// Creates a session that starts now, accounts for the memory of the process, and has one
    /// worker per search.
    pub fn new() -> Session {
        Session {
            clock: Clock::start(),
            memory: Arc::new(ProcessMemory),
            stop: Arc::default(),
            ends_process: false,
            workers: 1,
            notices: Notices::default(),
        }
    }

    /// Returns the time since the session was created.
    pub fn now(&self) -> Duration {
        self.clock.now()
    }
}

/// A callback for messages that cannot wait, from any thread: tools that must be installed first,
/// files on disk that became unreadable. The default ignores them.
#[derive(Clone)]
pub struct Notices(Arc<dyn Fn(&str) + Send + Sync>);

impl Notices {
    /// Creates notices that are passed to a callback.
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

/// The memory of the whole process, as the kernel reports it.
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
