//! The memory account of a run. The caller of the library provides it, because only the caller knows what else the
//! process does.

use std::fmt::Debug;

/// The memory that a run takes. Every run in a process can have an account of its own.
pub trait MemoryAccount: Debug + Send + Sync {
    /// Bytes that are taken now.
    fn used(&self) -> u64;

    /// The most bytes that were taken so far.
    fn peak(&self) -> u64 {
        self.used()
    }

    /// Gives freed memory back to the system, where the allocator would keep it for a while.
    fn release(&self) {}
}
