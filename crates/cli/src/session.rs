//! What the process provides to the library's operations: memory statistics and interrupts.

use anyhow::Result;
use everett::{MemoryAccount, Notices, ProcessMemory, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The memory of the process and its allocator.
#[derive(Debug)]
struct AllocatedMemory;

impl MemoryAccount for AllocatedMemory {
    fn used(&self) -> u64 {
        ProcessMemory.used()
    }

    fn peak(&self) -> u64 {
        ProcessMemory.peak()
    }

    fn release(&self) {
        // SAFETY: `mi_collect` may be called at any time, from any thread.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}

/// The session of this process.
pub fn session() -> Session {
    let mut session = Session::new();
    session.memory = Arc::new(AllocatedMemory);
    session.ends_process = true;
    session.notices = Notices::new(notice);
    session
}

/// Prints an urgent message.
pub fn notice(text: &str) {
    eprintln!("everett: {text}");
}

/// A flag that is set when the user interrupts; a second interrupt ends the process at once.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    })?;
    Ok(stop)
}
