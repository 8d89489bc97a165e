//! Counts how much is read about real processes in `/proc`, so that tests can bound it. A thread
//! traces one run at a time, so the growth of its count during a run is that of the run.

use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Counts mappings or statuses that were read.
pub fn add(count: usize) {
    COUNT.set(COUNT.get() + count as u64);
}

/// Returns how many mappings and statuses this thread has read so far.
pub fn count() -> u64 {
    COUNT.get()
}
