//! The interface between the kernel model and the driver of native processes: access to guest
//! memory, signals to deliver, and changes to mappings.

use crate::files::Held;
use crate::ids::DescriptionId;

/// The memory of a native process.
pub trait Guest {
    /// Reads memory at an address into `into`; `false` if the memory is not readable.
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool;
    /// Writes bytes at an address; `false` if the memory is not writable.
    fn write(&mut self, address: u64, bytes: &[u8]) -> bool;
    /// Whether the byte at an address is writable.
    fn can_write(&mut self, address: u64) -> bool;
    /// Whether an address is mapped, with any protection.
    fn is_mapped(&mut self, address: u64) -> bool;
    /// Stack pointer of the calling thread.
    fn stack_pointer(&mut self) -> u64;
    /// The thread's signal mask after a handler has returned, taken from the signal frame.
    fn restored_mask(&mut self) -> Option<u64>;
    /// The number of the shared file that is mapped at an address, and the offset in it.
    fn shared_file_offset(&mut self, address: u64) -> Option<(u64, u64)>;
    /// The mappings of the process, ordered by address.
    fn mappings(&mut self) -> Vec<GuestMapping>;
    /// The auxiliary vector that the process was started with.
    fn auxiliary_vector(&mut self) -> Vec<u8>;
}

/// A mapping of a process, as `/proc/PID/maps` shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestMapping {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Rights, such as `rw-p`.
    pub rights: String,
    /// Offset in its file.
    pub offset: u64,
    /// Name of its file or purpose; empty if it has none.
    pub name: String,
}

/// A signal whose handler the native thread must run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Injected {
    /// The signal number.
    pub signal: i32,
    /// `si_code`.
    pub code: i32,
    /// Contents of `siginfo_t` from byte 16 on: sender and value, or a child and its status.
    pub words: [u64; 3],
    /// The signal mask to restore when the handler has returned.
    pub mask: u64,
}

/// A file that a process maps.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MappedFile {
    /// The file.
    pub inode: u32,
    /// The open file description that keeps it alive.
    pub holder: u32,
    /// The mapping is writable.
    pub may_write: bool,
}

impl MappedFile {
    pub(crate) fn held(&self) -> Held {
        Held {
            by: DescriptionId(self.holder),
            is_writable: self.may_write,
        }
    }
}

/// A change that the driver must make to the memory of a native process.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MemoryChange {
    /// Map a file, from its beginning.
    Map {
        /// Address.
        start: u64,
        /// Length in bytes.
        size: u64,
        /// Protection flags of `mmap`.
        protection: u64,
        /// The file.
        file: MappedFile,
    },
    /// Unmap a range.
    Unmap {
        /// Address.
        start: u64,
        /// Length in bytes.
        size: u64,
    },
}
