//! The memory account of a run. The caller of the library provides it, because only the caller
//! knows what else the process does.

use std::fmt::Debug;

/// The account of the memory that a run uses. Each run of a process can have its own.
pub trait MemoryAccount: Debug + Send + Sync {
    /// Returns the number of bytes in use.
    fn used(&self) -> u64;

    /// Returns the largest number of bytes in use so far.
    fn peak(&self) -> u64 {
        self.used()
    }

    /// Returns freed memory to the system, if the allocator keeps it.
    fn release(&self) {}
}
