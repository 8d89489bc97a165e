//! Limits on the data of a program that Everett must keep: its output and its files. Without them,
//! a loop around `write` would exhaust the memory of the machine.

use everett_vm::{Bug, BugKind, PAGE};

use crate::errno::Errno;
use crate::host::HostState;
use crate::kernel::{Kernel, Stop};

/// Maximum size of a file; larger ones are refused rather than held in memory.
const MAX_FILE: u64 = 1 << 32;
/// Maximum size of a file on ext4.
const MAX_FILE_OF_LINUX: u64 = 1 << 44;
/// Maximum number of bytes written to files before the sizes of all files are added up again,
/// because that takes time. With a small limit it happens more often.
const BETWEEN_COUNTS: u64 = 1 << 20;
/// Files may exceed the limit by one part in this many, because their sizes are not added up at
/// each write.
const INEXACT_PART: u64 = 64;

/// The warning that memory was refused.
pub(crate) const NO_MEMORY: &str =
    "the program gets no more memory than the tool may use; see `max_memory`";

/// Formats a size for messages.
fn mebibytes(bytes: u64) -> String {
    match bytes >> 20 {
        0 => everett_vm::bytes(bytes),
        many => format!("{many} MiB"),
    }
}

impl HostState {
    /// Returns the bug that ends a path whose files hold too much because it writes to them through
    /// mappings. Linux would send a signal, which would look like a fault of the program.
    pub(crate) fn check_mapped_files(&mut self) -> Option<Bug> {
        let most = self.options.limits.files;
        let tree = &self.files.tree;
        if tree.all_lengths() <= most || tree.held_bytes() <= most {
            return None;
        }
        self.reach_limit("max-files");
        let most = mebibytes(most);
        let message = format!("files hold more than {most} through mappings; see `max_files`");
        Some(Bug::new(BugKind::Unsupported, message))
    }
}

impl Kernel<'_, '_> {
    /// Ends the program if it prints more than it may.
    pub fn check_output(&mut self, more: u64) -> Result<(), Stop> {
        let most = self.host.options.limits.output;
        if self.host.printed.saturating_add(more) > most {
            self.host.reach_limit("max-output");
            let most = mebibytes(most);
            let message = format!("the program prints more than {most}; see `max_output`");
            return Err(Bug::new(BugKind::Unsupported, message).into());
        }
        Ok(())
    }

    /// The end of `more` bytes at an offset of a file, if a file may be that large.
    pub fn end_in_file(&mut self, call: &str, offset: u64, more: u64) -> Result<u64, Stop> {
        let end = offset.saturating_add(more);
        if end <= MAX_FILE {
            return Ok(end);
        }
        if end <= MAX_FILE_OF_LINUX {
            self.refuse(call, "a file of more than 4 GiB");
        }
        Err(Errno::EFBIG.into())
    }

    /// Refuses a write of `more` bytes at an offset of a file if the disk is full.
    pub fn check_disk(&mut self, offset: u64, more: u64) -> Result<(), Stop> {
        const PAGE_SIZE: u64 = PAGE as u64;
        /// A file needs one entry per page in its page table.
        const ENTRY: u64 = size_of::<usize>() as u64;
        let most = self.host.options.limits.files;
        let touched = more.saturating_add(PAGE_SIZE).next_multiple_of(PAGE_SIZE);
        let touched = touched.saturating_add(offset / PAGE_SIZE * ENTRY);
        let uncounted = self.host.uncounted_writes.saturating_add(touched);
        if uncounted <= BETWEEN_COUNTS.min(most / INEXACT_PART) {
            self.host.uncounted_writes = uncounted;
            return Ok(());
        }
        self.host.uncounted_writes = 0;
        if self.host.files.tree.held_bytes().saturating_add(more) <= most {
            return Ok(());
        }
        // The next write adds up the sizes again.
        self.host.uncounted_writes = BETWEEN_COUNTS;
        let most = mebibytes(most);
        self.host.reach_limit("max-files");
        self.host.warn(format!(
            "the disk is full: files hold {most}; see `max_files`"
        ));
        Err(Errno::ENOSPC.into())
    }
}
