//! Creates and removes mappings, and changes page protection: `mmap`, `munmap` and `mprotect`.

use everett_vm::{
    Backing, FileView, MappingTraits, OnFork, Placement, Protection, Value, WrittenPages,
};

use super::{ADDRESSES, PAGE_SIZE, Space, aligned, whole_pages};
use crate::errno::Errno;
use crate::file_mappings::holders;
use crate::files::{Description, Device, InodeKind, OpenFlags, Target};
use crate::ids::InodeId;
use crate::kernel::{Answer, Kernel, Stop};
use crate::table::Call;

/// Maximum number of mappings of a process (`vm.max_map_count`).
const MOST_MAPPINGS: u64 = 65_530;
/// Number of mappings that a program has from the start, stack included.
const OWN_MAPPINGS: u64 = 8;
const TYPE: u64 = 0xf;
const SHARED: u64 = 1;
const PRIVATE: u64 = 2;
const SHARED_VALIDATE: u64 = 3;
const FIXED: u64 = 0x10;
const ANONYMOUS: u64 = 0x20;
const LOCKED: u64 = 0x2000;
const NO_RESERVE: u64 = 0x4000;
const FIXED_NO_REPLACE: u64 = 0x10_0000;
/// Flags that `MAP_SHARED_VALIDATE` accepts for a file (`LEGACY_MAP_MASK`).
const KNOWN: u64 = 0x7c07_f9f3;
/// `PROT_READ`, `PROT_WRITE` and `PROT_EXEC`.
const PROTECTION: u64 = 7;
const PROT_WRITE: u64 = 2;
/// `PROT_SEM`, `PROT_GROWSDOWN` and `PROT_GROWSUP`, which have no effect here.
const PROTECTION_HINTS: u64 = 0x8 | 0x100_0000 | 0x200_0000;
/// Flags that are ignored although a program could notice. The flags not listed here affect only
/// performance, or have no effect on Linux either.
const IGNORED: [(u64, &str); 4] = [
    (0x40, "MAP_32BIT"),
    (0x80, "MAP_ABOVE4G"),
    (0x100, "MAP_GROWSDOWN"),
    (0x4_0000, "MAP_HUGETLB"),
];
/// The lowest address that can be mapped.
pub(crate) const LOWEST: u64 = 0x1_0000;

/// A requested mapping.
#[derive(Copy, Clone, Debug)]
pub(crate) struct MapRequest {
    /// Address, or a hint.
    pub address: u64,
    /// Size in bytes, a multiple of the page size.
    pub size: u64,
    pub protection: u64,
    pub flags: u64,
    /// The file, the open file description that keeps it alive, and the first page.
    pub file: Option<(InodeId, u32, u64)>,
    /// It may be made writable later.
    pub may_write: bool,
}

pub(super) fn mmap(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let request = decode_mmap(kernel, call)?;
    kernel.map(request)
}

/// Decodes and checks the arguments of `mmap`.
pub(crate) fn decode_mmap(kernel: &mut Kernel<'_, '_>, call: &Call) -> Result<MapRequest, Stop> {
    let [address, len, protection, flags, _, offset] = call.args;
    if !offset.is_multiple_of(PAGE_SIZE) {
        return Err(Errno::EINVAL.into());
    }
    let file = match flags & ANONYMOUS {
        0 => Some(kernel.description(call.int(4))?),
        _ => None,
    };
    if file
        .as_ref()
        .is_some_and(|(_, open)| open.flags.has(OpenFlags::PATH))
    {
        return Err(Errno::EBADF.into());
    }
    let kind = flags & TYPE;
    if len == 0 {
        return Err(Errno::EINVAL.into());
    }
    let size = whole_pages(len).ok_or(Errno::ENOMEM)?;
    if file.is_some() && offset.checked_add(size).is_none_or(|end| end as i64 <= 0) {
        return Err(Errno::EOVERFLOW.into());
    }
    if !matches!(kind, SHARED | PRIVATE | SHARED_VALIDATE) {
        return Err(Errno::EINVAL.into());
    }
    // On a file, this type refuses flags that the file system does not know.
    if kind == SHARED_VALIDATE && file.is_some() && flags & !KNOWN != 0 {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let mut request = MapRequest {
        address,
        size,
        protection,
        flags,
        file: None,
        may_write: true,
    };
    if let Some((descriptor, description)) = file {
        let inode = kernel.mappable(&description, &mut request)?;
        let holder = descriptor.description.0;
        request.file = inode.map(|inode| (inode, holder, offset / PAGE_SIZE));
        if let Some(inode) = inode {
            kernel.note_access(inode, description.flags);
        }
    }
    if let Some((_, name)) = IGNORED.iter().find(|(flag, _)| flags & flag != 0) {
        kernel.refuse("mmap", *name);
    }
    Ok(request)
}

pub(super) fn munmap(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let start = aligned(call.args[0])?;
    let size = whole_pages(call.args[1]).filter(|size| *size > 0);
    let size = size.ok_or(Errno::EINVAL)?;
    let end = start.checked_add(size);
    if end.is_none_or(|end| end > ADDRESSES) {
        return Err(Errno::EINVAL.into());
    }
    if kernel.mappings() >= MOST_MAPPINGS && kernel.is_within_mapping(start, start + size) {
        return Err(Errno::ENOMEM.into());
    }
    kernel.unmap(start, size);
    kernel
        .process_mut()
        .locked_memory
        .unlock(start, start + size);
    Ok(Value::ZERO)
}

pub(super) fn mprotect(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let [address, len, protection, ..] = call.args;
    aligned(address)?;
    if len == 0 {
        return Ok(Value::ZERO);
    }
    let range = kernel.range(address, len)?;
    if protection & !(PROTECTION | PROTECTION_HINTS) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let wanted = Protection((protection & PROTECTION) as u8);
    if kernel.is_own_object(address) {
        kernel.vm.memory.protect(address, range.size, wanted);
        return Ok(Value::ZERO);
    }
    // Changes everything up to the first page that is unmapped or does not permit it.
    let end = range.hole().unwrap_or(range.start + range.size);
    let forbidden = range
        .mappings
        .iter()
        .find(|mapping| mapping.start < end && wanted.0 & 2 != 0 && !mapping.traits.may_write);
    let (end, result) = match forbidden {
        Some(mapping) => (mapping.start, Err(Errno::EACCES.into())),
        None if range.has_hole() => (end, Err(Errno::ENOMEM.into())),
        None => (end, Ok(Value::ZERO)),
    };
    let unused = range
        .mappings
        .iter()
        .filter(|mapping| mapping.traits.counted && mapping.traits.protection == Protection::NONE);
    if wanted != Protection::NONE {
        kernel.check_heap(unused.map(|mapping| mapping.size).sum())?;
    }
    if wanted.allows(true) {
        // What becomes writable counts from now on.
        let private = range.mappings.iter().filter(|mapping| {
            let is_shared = matches!(mapping.traits.backing, Backing::Shared { .. });
            !is_shared && !mapping.traits.is_data()
        });
        let more = private.map(|mapping| mapping.size).sum();
        let more = Space { all: 0, data: more };
        kernel.check_space(more, Space::default(), false)?;
    }
    let bounds = [range.start, end];
    let splits = bounds.into_iter().filter(|at| kernel.splits(*at, wanted));
    if kernel.mappings() + splits.count() as u64 > MOST_MAPPINGS {
        return Err(Errno::ENOMEM.into());
    }
    if end > range.start {
        let memory = &mut kernel.vm.memory;
        memory.protect(range.start, end - range.start, wanted);
    }
    result
}

impl Kernel<'_, '_> {
    /// Number of mappings of the process, including those of the program itself.
    fn mappings(&self) -> u64 {
        self.vm.memory.mapped_runs() + OWN_MAPPINGS
    }

    /// Whether a change of protection splits a mapping at an address.
    fn splits(&self, at: u64, wanted: Protection) -> bool {
        let mapping = self.vm.memory.mapping_at(at);
        mapping.is_some_and(|mapping| mapping.start < at && mapping.traits.protection != wanted)
    }

    /// Whether a range is in the middle of one mapping.
    fn is_within_mapping(&self, start: u64, end: u64) -> bool {
        let mapping = self.vm.memory.mapping_at(start);
        mapping.is_some_and(|mapping| mapping.start < start && end < mapping.end())
    }

    /// The file of a target, if it can be mapped this way; `None` for `/dev/zero`.
    fn mappable(
        &mut self,
        description: &Description,
        request: &mut MapRequest,
    ) -> Result<Option<InodeId>, Stop> {
        let is_shared = request.flags & TYPE != PRIVATE;
        let Target::Inode(id) = description.target else {
            return Err(Errno::ENODEV.into());
        };
        if is_shared && !description.flags.writable() {
            if request.protection & PROT_WRITE != 0 {
                return Err(Errno::EACCES.into());
            }
            request.may_write = false;
        }
        if !description.flags.readable() {
            return Err(Errno::EACCES.into());
        }
        if is_shared && self.is_sealed(id) {
            if request.protection & PROT_WRITE != 0 {
                return Err(Errno::EPERM.into());
            }
            request.may_write = false;
        }
        match &self.host.files.tree.get(id).kind {
            InodeKind::Regular(_) => Ok(Some(id)),
            InodeKind::Device(Device::Zero) => Ok(None),
            _ => Err(Errno::ENODEV.into()),
        }
    }

    /// Creates a mapping.
    pub(crate) fn map(&mut self, request: MapRequest) -> Answer {
        if self.guest.is_some() {
            return self.map_natively(request);
        }
        if self.mappings() > MOST_MAPPINGS {
            return Err(Errno::ENOMEM.into());
        }
        let placement = self.placement(&request)?;
        let is_shared = request.flags & TYPE != PRIVATE;
        let writable = request.protection & PROT_WRITE != 0;
        let counted = match request.file {
            _ if request.flags & NO_RESERVE != 0 => false,
            Some(_) => !is_shared && writable,
            None => true,
        };
        if counted && request.protection & PROTECTION != 0 {
            self.check_heap(request.size)?;
        }
        let is_locked = request.flags & LOCKED != 0 || self.process().locked_memory.future;
        let replaced = match placement {
            Placement::At(address) => self.vm.memory.mappings_in(address, request.size),
            Placement::Anywhere => None,
        };
        let replaced = Space::of(&replaced.unwrap_or_default());
        let more = Space::new(request.size, writable && !is_shared);
        self.check_space(more, replaced, is_locked)?;
        let allocated = self.vm.stack();
        let before = holders(self.vm.memory);
        if let Placement::At(address) = placement {
            self.vm.memory.unmap(address, request.size, allocated);
        }
        // An anonymous shared mapping is backed by an unlinked file.
        let anonymous = (is_shared && request.file.is_none()).then(|| {
            let inode = self.host.anonymous_file(request.size);
            let open = Description::new(Target::Inode(inode), 2);
            (inode, self.host.files.open(open).0, 0)
        });
        let file = request.file.or(anonymous);
        let traits = MappingTraits {
            protection: Protection((request.protection & PROTECTION) as u8),
            backing: match file {
                None => Backing::Anonymous,
                Some((file, _, page)) if is_shared => Backing::Shared { file: file.0, page },
                Some((file, _, page)) => Backing::Private { file: file.0, page },
            },
            may_write: request.may_write,
            counted,
            on_fork: OnFork::default(),
            allocated,
        };
        let view = file.and_then(|(inode, holder, _)| self.view_of(inode, holder));
        let memory = &mut self.vm.memory;
        let start = memory.map(placement, request.size, traits, view);
        self.host.update_holders(&before, self.vm.memory);
        if let Some((_, holder, _)) = anonymous {
            self.host.release(crate::ids::DescriptionId(holder));
        }
        let start = start.ok_or(Errno::ENOMEM)?;
        if is_locked {
            let locked = &mut self.process_mut().locked_memory;
            locked.lock(start, start + request.size);
        }
        Ok(Value::concrete(start))
    }

    /// The pages of a file as a system call sees them.
    fn view_of(&mut self, inode: InodeId, holder: u32) -> Option<FileView> {
        match &mut self.host.files.tree.get_mut(inode).kind {
            InodeKind::Regular(bytes) => {
                let pages = bytes.pages();
                Some(FileView {
                    file: inode.0,
                    holder,
                    base: Some(pages.clone()),
                    pages: Some(pages),
                    len: bytes.len(),
                    written: WrittenPages::default(),
                })
            }
            _ => None,
        }
    }

    /// Determines the address of a mapping.
    fn placement(&mut self, request: &MapRequest) -> Result<Placement, Stop> {
        let MapRequest {
            address,
            size,
            flags,
            ..
        } = *request;
        let end = address.checked_add(size).filter(|end| *end <= ADDRESSES);
        let memory = &self.vm.memory;
        if flags & (FIXED | FIXED_NO_REPLACE) == 0 {
            let hint = address & !(PAGE_SIZE - 1);
            let is_good = hint >= LOWEST && end.is_some() && memory.is_free(hint, size);
            return Ok(match is_good {
                true => Placement::At(hint),
                false => Placement::Anywhere,
            });
        }
        aligned(address)?;
        end.ok_or(Errno::ENOMEM)?;
        if address < LOWEST {
            return Err(Errno::EPERM.into());
        }
        let is_free = memory.is_free(address, size);
        if flags & FIXED_NO_REPLACE != 0 && !is_free {
            return Err(Errno::EEXIST.into());
        }
        if !is_free && !memory.can_replace(address, size) {
            self.refuse(
                "mmap",
                "mmap over the program's own globals, stacks or heap",
            );
            return Err(Errno::ENOMEM.into());
        }
        Ok(Placement::At(address))
    }

    /// Removes mappings.
    pub(crate) fn unmap(&mut self, start: u64, size: u64) {
        if self.guest.is_some() {
            return self.unmap_natively(start, size);
        }
        let before = holders(self.vm.memory);
        let stack = self.vm.stack();
        self.vm.memory.unmap(start, size, stack);
        self.host.update_holders(&before, self.vm.memory);
    }
}
