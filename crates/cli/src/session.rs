//! What the process gives to operations of the library: its memory and its interrupts.

use anyhow::Result;
use everett::{MemoryAccount, Notices, ProcessMemory, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The memory of the process, with the allocator of the process.
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
        // SAFETY: it may be called at any time, from any thread.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}

/// The one operation of this process.
pub fn session() -> Session {
    let mut session = Session::new();
    session.memory = Arc::new(AllocatedMemory);
    session.ends_process = true;
    session.notices = Notices::new(notice);
    session
}

/// Says what cannot wait.
pub fn notice(text: &str) {
    eprintln!("everett: {text}");
}

/// Set when the user asks to stop; asked twice, the process ends at once.
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
