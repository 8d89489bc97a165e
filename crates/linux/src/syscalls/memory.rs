//! Mappings. Each is an object of its own, so that what runs over its end is found.

use everett_vm::{Buffer, ObjectKind, PAGE, Value};

use crate::errno::Errno;
use crate::files::{Node, Target};
use crate::kernel::{Kernel, Stop};
use crate::process::Break;
use crate::table::ArgKind::{Fd, Flags, Int, Pointer};
use crate::table::{Answer, Call, Row};

/// The family.
pub const ROWS: &[Row] = &[
    Row::new(
        "mmap",
        9,
        &[Pointer, Int, Flags, Flags, Fd, Int],
        &[Errno::ENOMEM],
        mmap,
    )
    .without("addresses that are asked for, writable shared mappings of files"),
    Row::new(
        "mprotect",
        10,
        &[Pointer, Int, Flags],
        &[Errno::ENOMEM],
        mprotect,
    )
    .without("protection does not change"),
    Row::new("munmap", 11, &[Pointer, Int], &[], munmap)
        .without("the start or the middle of a mapping stays"),
    Row::new("brk", 12, &[Pointer], &[], brk).without("more than 16 MiB"),
    Row::new(
        "mremap",
        25,
        &[Pointer, Int, Int, Flags, Pointer],
        &[Errno::ENOMEM],
        mremap,
    )
    .without("MREMAP_FIXED, parts of a mapping"),
    Row::new("msync", 26, &[Pointer, Int, Flags], &[], nothing).without("shared mappings of files"),
    Row::new("madvise", 28, &[Pointer, Int, Int], &[], madvise).without("all but MADV_DONTNEED"),
    Row::new("mlock", 149, &[Pointer, Int], &[Errno::ENOMEM], nothing),
    Row::new("munlock", 150, &[Pointer, Int], &[], nothing),
];

const SHARED: u64 = 1;
const TYPE: u64 = 0xf;
const FIXED: u64 = 0x10;
const ANONYMOUS: u64 = 0x20;
const WRITE: u64 = 2;
/// Larger mappings are refused: each page costs a pointer, filled or not.
const LARGEST: u64 = 1 << 32;
/// Room for `brk`.
const BREAK_ROOM: u64 = 16 << 20;

fn whole_pages(len: u64) -> Result<u64, Errno> {
    len.checked_next_multiple_of(PAGE as u64)
        .filter(|len| *len <= LARGEST)
        .ok_or(Errno::ENOMEM)
}

fn mmap(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let [address, len, protection, flags, _, offset] = call.args;
    if len == 0 || !offset.is_multiple_of(PAGE as u64) || !matches!(flags & TYPE, 1..=3) {
        return Err(Errno::EINVAL.into());
    }
    let size = whole_pages(len)?;
    let contents = if flags & ANONYMOUS != 0 {
        None
    } else {
        let shared = flags & TYPE != 2 && flags & TYPE & SHARED != 0;
        Some(kernel.mapped_contents(
            call.int(4),
            offset,
            size,
            shared && protection & WRITE != 0,
        )?)
    };
    let start = if flags & FIXED != 0 {
        kernel.map_over(address, size)?
    } else {
        kernel.map_new(size)?
    };
    if let Some(contents) = contents {
        kernel.write_buffer(start, &contents)?;
    }
    Ok(Value::concrete(start))
}

fn munmap(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let [address, len, ..] = call.args;
    if len == 0 || !address.is_multiple_of(PAGE as u64) {
        return Err(Errno::EINVAL.into());
    }
    let size = whole_pages(len).map_err(|_| Errno::EINVAL)?;
    let Some((start, mapped)) = kernel.mapping(address) else {
        // Nothing is mapped there, which is no error.
        return Ok(Value::ZERO);
    };
    if address == start && size >= mapped {
        let stack = kernel.vm.stack();
        kernel.vm.memory.free(start, ObjectKind::Mapping, stack)?;
    } else if size >= mapped - (address - start) {
        kernel.resize_mapping(start, address - start);
    } else {
        kernel
            .host
            .warn("munmap of the start or the middle of a mapping leaves it there");
    }
    Ok(Value::ZERO)
}

fn mprotect(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    if !call.args[0].is_multiple_of(PAGE as u64) {
        return Err(Errno::EINVAL.into());
    }
    // Programs protect stacks and globals as well, whose pages are not kept apart here.
    match kernel.vm.memory.near(call.args[0]) {
        Some(_) => Ok(Value::ZERO),
        None => Err(Errno::ENOMEM.into()),
    }
}

fn madvise(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const DONTNEED: u64 = 4;
    let [address, len, advice, ..] = call.args;
    if !address.is_multiple_of(PAGE as u64) {
        return Err(Errno::EINVAL.into());
    }
    let size = whole_pages(len).map_err(|_| Errno::EINVAL)?;
    let Some((start, mapped)) = kernel.mapping(address) else {
        return Err(Errno::ENOMEM.into());
    };
    if advice == DONTNEED {
        let size = size.min(mapped - (address - start));
        if let Some(object) = kernel.vm.memory.object_at_mut(address, size) {
            object.fill(address - start, size, 0);
        }
    }
    Ok(Value::ZERO)
}

fn mremap(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const MAY_MOVE: u64 = 1;
    let [address, _, len, flags, ..] = call.args;
    if !address.is_multiple_of(PAGE as u64) || len == 0 || flags & !MAY_MOVE != 0 {
        return Err(Errno::EINVAL.into());
    }
    let size = whole_pages(len)?;
    let Some((start, mapped)) = kernel.mapping(address) else {
        return Err(Errno::EFAULT.into());
    };
    if start != address {
        return Err(kernel.unsupported("mremap of a part of a mapping"));
    }
    if size <= mapped {
        kernel.resize_mapping(start, size);
        return Ok(Value::concrete(start));
    }
    if flags & MAY_MOVE == 0 {
        return Err(Errno::ENOMEM.into());
    }
    let moved = kernel.map_new(size)?;
    kernel.vm.copy_range(moved, start, mapped);
    let stack = kernel.vm.stack();
    kernel.vm.memory.free(start, ObjectKind::Mapping, stack)?;
    Ok(Value::concrete(moved))
}

fn brk(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let current = match kernel.process().program_break {
        Some(current) => current,
        None => {
            let start = kernel.map_new(BREAK_ROOM)?;
            kernel.resize_mapping(start, 0);
            let new = Break { start, end: start };
            kernel.process_mut().program_break = Some(new);
            new
        }
    };
    let wanted = call.args[0];
    if wanted < current.start || wanted - current.start > BREAK_ROOM {
        return Ok(Value::concrete(current.end));
    }
    let size = wanted - current.start;
    if wanted < current.end {
        // What is given back is zeros when it comes again.
        let (from, gone) = (size, current.end - wanted);
        if let Some(object) = kernel.vm.memory.object_at_mut(current.start, 0) {
            object.fill(from, gone, 0);
        }
    }
    kernel.resize_mapping(current.start, size);
    kernel.process_mut().program_break = Some(Break {
        end: wanted,
        ..current
    });
    Ok(Value::concrete(wanted))
}

fn nothing(_: &mut Kernel<'_, '_>, _: &Call) -> Answer {
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// Start and size of the live mapping at an address.
    fn mapping(&self, address: u64) -> Option<(u64, u64)> {
        let object = self.vm.memory.object_at(address, 1)?;
        (object.kind == ObjectKind::Mapping).then_some((object.start, object.size))
    }

    fn map_new(&mut self, size: u64) -> Result<u64, Stop> {
        let heap = self.vm.memory.heap_bytes().saturating_add(size);
        if heap > self.vm.max_heap {
            return Err(Errno::ENOMEM.into());
        }
        let stack = self.vm.stack();
        let object = self
            .vm
            .memory
            .allocate(size, PAGE as u64, ObjectKind::Mapping);
        let object = object.ok_or(Errno::ENOMEM)?;
        object.allocated = stack;
        Ok(object.start)
    }

    /// A new mapping in place of a part of an old one.
    fn map_over(&mut self, address: u64, size: u64) -> Result<u64, Stop> {
        if !address.is_multiple_of(PAGE as u64) {
            return Err(Errno::EINVAL.into());
        }
        match self.mapping(address) {
            Some((start, mapped)) if size <= mapped - (address - start) => {
                if let Some(object) = self.vm.memory.object_at_mut(address, size) {
                    object.fill(address - start, size, 0);
                }
                Ok(address)
            }
            _ => {
                self.host
                    .warn("mmap at an address that is asked for is not modelled");
                Err(Errno::ENOMEM.into())
            }
        }
    }

    /// Sets the size of a mapping to no more than it was made with.
    fn resize_mapping(&mut self, start: u64, size: u64) {
        if let Some(object) = self.vm.memory.object_at_mut(start, 0) {
            object.size = size;
        }
    }

    /// A private copy of a stretch of a file.
    fn mapped_contents(
        &mut self,
        fd: i32,
        offset: u64,
        size: u64,
        written_back: bool,
    ) -> Result<Buffer, Stop> {
        let (_, description) = self.description(fd)?;
        let Target::Inode(id) = description.target else {
            return Err(Errno::ENODEV.into());
        };
        if !description.flags.readable() || (written_back && !description.flags.writable()) {
            return Err(Errno::EACCES.into());
        }
        match &self.host.files.tree.get(id).node {
            Node::Regular(_) if written_back => {
                self.host
                    .warn("writable shared mappings of files are not modelled");
                Err(Errno::ENODEV.into())
            }
            Node::Regular(bytes) => Ok(bytes.read(offset, size)),
            Node::Device(crate::files::Device::Zero) => Ok(Buffer::zeroed(0)),
            _ => Err(Errno::ENODEV.into()),
        }
    }
}
