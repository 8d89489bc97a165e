//! Counts how much is read about real processes, so that tests can bound it.

use std::cell::Cell;

thread_local! {
    static MADE: Cell<u64> = const { Cell::new(0) };
}

/// Records that this many mappings or statuses were read.
pub fn note(count: usize) {
    MADE.set(MADE.get() + count as u64);
}

/// Returns how many mappings and statuses this thread has read.
pub fn made() -> u64 {
    MADE.get()
}
