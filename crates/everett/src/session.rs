//! What a caller gives to an operation besides its spec: a clock, an account of memory, a flag to stop it. Every operation that
//! runs at the same time can have its own; nothing here is shared by a whole process.

use everett_engine::MemoryAccount;
use everett_solver::Clock;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::events::{Event, Observer};

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
    warnings: Warnings,
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
            warnings: Warnings::default(),
        }
    }

    /// Time since the operation began.
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    pub(crate) fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    pub(crate) fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    /// Tells of what could not be told when it happened.
    pub(crate) fn tell_warnings(&self, observer: &mut dyn Observer) {
        for warning in self.take_warnings() {
            observer.event(&Event::Warning(&warning));
        }
    }
}

/// What went wrong where nobody could be told, until somebody can.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    pub(crate) fn add(&self, warning: String) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.push(warning);
    }

    fn take(&self) -> Vec<String> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *list)
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
