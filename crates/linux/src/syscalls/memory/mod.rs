//! Memory mappings. Each anonymous private mapping is a separate object, so that an overrun is
//! detected.

mod advice;
mod locking;
mod mapping;
mod moving;

pub(crate) use mapping::{LOWEST, MapRequest, decode_mmap};

use everett_vm::{Mapping, PAGE};

use crate::errno::Errno;
use crate::kernel::{Kernel, Stop};
use crate::table::ArgKind::{Fd, Flags, Int, Pointer};
use crate::table::Row;
use crate::table::property::{MEMORY, ONE_THREAD};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "mmap",
        9,
        &[Pointer, Int, Flags, Flags, Fd, Int],
        &[Errno::ENOMEM],
        mapping::mmap,
    )
    .with(MEMORY | ONE_THREAD)
    .without("addresses in the program's own globals, stacks or heap; self-modifying code"),
    Row::new(
        "mprotect",
        10,
        &[Pointer, Int, Flags],
        &[Errno::ENOMEM],
        mapping::mprotect,
    )
    .with(MEMORY | ONE_THREAD)
    .without("globals and stacks keep their protection"),
    Row::new("munmap", 11, &[Pointer, Int], &[], mapping::munmap).with(MEMORY | ONE_THREAD),
    Row::new("brk", 12, &[Pointer], &[], moving::brk).with(MEMORY | ONE_THREAD),
    Row::new(
        "mremap",
        25,
        &[Pointer, Int, Int, Flags, Pointer],
        &[Errno::ENOMEM],
        moving::mremap,
    )
    .with(MEMORY | ONE_THREAD),
    Row::new(
        "msync",
        26,
        &[Pointer, Int, Flags],
        &[Errno::EIO],
        advice::msync,
    ),
    Row::new(
        "mincore",
        27,
        &[Pointer, Int, Pointer],
        &[],
        advice::mincore,
    )
    .with(ONE_THREAD)
    .without("a page that was only read counts as absent"),
    Row::new("madvise", 28, &[Pointer, Int, Int], &[], advice::madvise)
        .with(MEMORY | ONE_THREAD)
        .without("MADV_DONTFORK and MADV_WIPEONFORK for globals, stacks and heap"),
    Row::new(
        "mlock",
        149,
        &[Pointer, Int],
        &[Errno::ENOMEM],
        locking::mlock,
    ),
    Row::new("munlock", 150, &[Pointer, Int], &[], locking::munlock),
    Row::new(
        "mlockall",
        151,
        &[Flags],
        &[Errno::ENOMEM],
        locking::mlockall,
    ),
    Row::new("munlockall", 152, &[], &[], locking::munlockall),
    Row::new(
        "mlock2",
        325,
        &[Pointer, Int, Flags],
        &[Errno::ENOMEM],
        locking::mlock2,
    ),
];

const PAGE_SIZE: u64 = PAGE as u64;
/// End of the user address space.
pub(crate) const ADDRESSES: u64 = 0x7fff_ffff_f000;

/// Rounds a length up to pages; `None` if it exceeds the address space.
fn whole_pages(len: u64) -> Option<u64> {
    len.checked_next_multiple_of(PAGE_SIZE)
        .filter(|len| *len <= ADDRESSES)
}

/// Checks that an address is page-aligned.
fn aligned(address: u64) -> Result<u64, Errno> {
    if address.is_multiple_of(PAGE_SIZE) {
        Ok(address)
    } else {
        Err(Errno::EINVAL)
    }
}

/// Bytes of memory.
#[derive(Copy, Clone, Default)]
struct Space {
    /// All of them.
    all: u64,
    /// Those that are private and writable.
    data: u64,
}

impl Space {
    fn new(size: u64, is_data: bool) -> Space {
        Space {
            all: size,
            data: if is_data { size } else { 0 },
        }
    }

    fn of(mappings: &[Mapping]) -> Space {
        mappings.iter().fold(Space::default(), |sum, mapping| {
            let this = Space::new(mapping.size, mapping.traits.is_data());
            Space {
                all: sum.all + this.all,
                data: sum.data + this.data,
            }
        })
    }
}

/// A page range that a call names, and the mappings in it.
struct PageRange {
    start: u64,
    size: u64,
    mappings: Vec<Mapping>,
}

impl PageRange {
    /// First unmapped address, if any.
    fn hole(&self) -> Option<u64> {
        let mut at = self.start;
        for mapping in &self.mappings {
            if mapping.start > at {
                return Some(at);
            }
            at = mapping.end();
        }
        (at < self.start + self.size).then_some(at)
    }

    fn has_hole(&self) -> bool {
        self.hole().is_some()
    }
}

impl Kernel<'_, '_> {
    /// The mappings in a range.
    fn range(&self, address: u64, len: u64) -> Result<PageRange, Errno> {
        let start = aligned(address)?;
        let size = whole_pages(len).ok_or(Errno::ENOMEM)?;
        let end = start.checked_add(size);
        if end.is_none_or(|end| end > ADDRESSES) {
            return Err(Errno::ENOMEM);
        }
        let mappings = self.vm.memory.mappings_in(start, size);
        Ok(PageRange {
            start,
            size,
            mappings: mappings.unwrap_or_default(),
        })
    }

    /// Whether an address is in a global, stack or heap block. These are not mappings of the
    /// program; calls about their pages succeed without effect.
    fn is_own_object(&self, address: u64) -> bool {
        let object = self.vm.memory.near(address);
        object.is_some_and(|object| {
            object.is_live() && object.kind != everett_vm::ObjectKind::Mapping
        })
    }

    /// Whether a part of a range is unmapped.
    fn has_hole(&mut self, range: &PageRange) -> bool {
        let Some(guest) = &mut self.guest else {
            return range.has_hole() && !self.is_own_object(range.start);
        };
        let mut pages = (range.start..range.start + range.size).step_by(PAGE);
        pages.any(|page| !guest.is_mapped(page))
    }

    /// Checks that the process may map more memory (`RLIMIT_AS`, `RLIMIT_DATA`, and `RLIMIT_MEMLOCK`
    /// if it is locked) in place of what is `replaced`.
    fn check_space(&mut self, more: Space, replaced: Space, is_locked: bool) -> Result<(), Stop> {
        let is_locked = is_locked || self.process().locked_memory.future;
        let locked = self.process().locked_memory.bytes();
        if is_locked && more.all > 0 && locked.saturating_add(more.all) > self.lock_limit()? {
            return Err(Errno::EAGAIN.into());
        }
        let memory = &self.vm.memory;
        let others = memory.address_space().saturating_sub(replaced.all);
        let data = memory.data_bytes().saturating_sub(replaced.data);
        if others.saturating_add(more.all) > self.vm.max_address_space
            || more.data > 0 && data.saturating_add(more.data) > self.vm.max_data
        {
            return Err(Errno::ENOMEM.into());
        }
        Ok(())
    }

    /// Checks that more memory may be used.
    fn check_heap(&mut self, more: u64) -> Result<(), Stop> {
        let heap = self.vm.memory.heap_bytes().saturating_add(more);
        if heap > self.vm.max_heap {
            self.vm.reached_max_heap = true;
            return Err(Errno::ENOMEM.into());
        }
        Ok(())
    }
}
