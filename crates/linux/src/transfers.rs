//! The bytes that a system call moves between ranges of guest memory and the kernel.

use everett_vm::Buffer;

use crate::errno::Errno;
use crate::kernel::{Kernel, Stop};
use crate::queue::slice;

/// Maximum number of bytes of one call.
pub const MAX_TRANSFER: u64 = 0x7fff_f000;
/// Number of copies of the bytes of a transfer that are in memory at once: in transit, and at the
/// destination.
pub const COPIES: u64 = 2;

/// A range of guest memory.
#[derive(Copy, Clone)]
pub struct IoRange {
    pub address: u64,
    pub len: u64,
}

/// What remains of the ranges after their first `count` bytes.
pub fn skip(ranges: &[IoRange], mut count: u64) -> Vec<IoRange> {
    let mut rest = Vec::with_capacity(ranges.len());
    for range in ranges {
        let gone = range.len.min(count);
        count -= gone;
        rest.push(IoRange {
            address: range.address.wrapping_add(gone),
            len: range.len - gone,
        });
    }
    rest
}

/// The first `left` bytes of consecutive buffers.
pub fn first_bytes(parts: Vec<Buffer>, mut left: u64) -> Vec<Buffer> {
    let mut first = Vec::with_capacity(parts.len());
    for part in parts {
        let len = (part.len() as u64).min(left) as usize;
        left -= len as u64;
        if len == part.len() {
            first.push(part);
        } else {
            let mut cut = Buffer::zeroed(len);
            cut.copy_from(0, &part, 0, len);
            first.push(cut);
        }
    }
    first
}

impl Kernel<'_, '_> {
    /// How many of the first `len` bytes of the ranges the kernel can access: a transfer to or from
    /// a file ends before the first byte that it cannot. `EFAULT` if that is the first of all.
    pub fn accessible(&mut self, ranges: &[IoRange], len: u64, write: bool) -> Result<u64, Stop> {
        let mut done = 0;
        for range in ranges {
            let wanted = range.len.min(len - done);
            let there = self.accessible_from(range.address, wanted, write)?;
            done += there;
            if there < wanted {
                break;
            }
        }
        match done {
            0 if len > 0 => Err(Errno::EFAULT.into()),
            _ => Ok(done),
        }
    }

    /// Writes bytes into ranges of guest memory, after a check of all ranges.
    pub fn scatter(&mut self, ranges: &[IoRange], bytes: &Buffer) -> Result<(), Stop> {
        for write in [false, true] {
            let mut done = 0;
            for range in ranges {
                let len = (range.len as usize).min(bytes.len() - done);
                if !write {
                    self.check(range.address, len as u64, true)?;
                } else if len == bytes.len() {
                    self.write_buffer(range.address, bytes)?;
                } else {
                    let mut part = Buffer::zeroed(len);
                    part.copy_from(0, bytes, done, len);
                    self.write_buffer(range.address, &part)?;
                }
                done += len;
            }
        }
        Ok(())
    }

    /// Writes bytes up to the first one whose place the kernel cannot access.
    pub fn scatter_accessible(&mut self, ranges: &[IoRange], bytes: &Buffer) -> Result<(), Stop> {
        let mut done = 0;
        for range in ranges {
            let len = (range.len as usize).min(bytes.len() - done);
            let there = self.accessible_from(range.address, len as u64, true)? as usize;
            self.write_buffer(range.address, &slice(bytes, done, there))?;
            done += there;
            if there < len {
                break;
            }
        }
        Ok(())
    }

    /// The bytes of the ranges that one call moves.
    pub fn gather(&mut self, ranges: &[IoRange]) -> Result<Vec<Buffer>, Stop> {
        let all = ranges.iter().map(|range| range.len).sum();
        self.gather_most(ranges, self.limit_transfer(all).min(MAX_TRANSFER))
    }

    /// All bytes of the ranges: messages are not truncated.
    pub fn gather_all(&mut self, ranges: &[IoRange]) -> Result<Vec<Buffer>, Stop> {
        self.gather_most(ranges, MAX_TRANSFER)
    }

    /// The first bytes of the ranges.
    pub fn gather_most(&mut self, ranges: &[IoRange], mut left: u64) -> Result<Vec<Buffer>, Stop> {
        let wanted = ranges.iter().map(|range| range.len);
        let wanted = wanted.fold(0, u64::saturating_add).min(left);
        self.vm.need_room(wanted.saturating_mul(COPIES))?;
        let mut parts = Vec::with_capacity(ranges.len());
        for range in ranges {
            let len = range.len.min(left);
            left -= len;
            parts.push(self.read_buffer(range.address, len)?);
        }
        Ok(parts)
    }
}
