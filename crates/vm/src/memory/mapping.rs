//! The memory operations behind `mmap`, `munmap`, `mprotect` and `mremap`: they place mappings and
//! change parts of them.
//!
//! Plain anonymous memory of moderate size gets a slot like any object. All other mappings are page
//! runs in two objects outside of the slots, one below and one above them.

use std::collections::BTreeSet;

use everett_ir::address::{CLASS_SHIFT, FUNCTION_BASE, MAX_CLASS, Slot};
use triomphe::Arc;

use super::buffer::{Buffer, PAGE};
use super::object::{Footprint, Object, ObjectKind};
use super::region::{AccessDenial, Backing, FileView, MappingTraits, OnFork, PageRun, Region};
use super::{AccessFault, Memory, Protection, locate, position};
use crate::bug::{Bug, BugKind, bytes};
use crate::stacks::StackId;

/// The null page and its neighbours are never mapped.
pub(super) const LOW_START: u64 = 0x10000;
/// End of the slots.
pub(super) const HIGH_START: u64 = (MAX_CLASS as u64 + 1) << CLASS_SHIFT;
/// End of the user address space.
pub(super) const HIGH_END: u64 = 0x7fff_ffff_f000;
/// Mappings outside of the slots are placed top-down from this address.
pub(super) const TOP: u64 = 0x7fff_0000_0000;
/// Start of the `brk` heap. Mappings without a requested address stay above its range.
pub const BREAK_START: u64 = 0x5555_5600_0000;
/// Upper bound of the `brk` heap.
pub const BREAK_END: u64 = 0x6000_0000_0000;
/// Gap between mappings, so that an overrun of one does not hit another.
const GAP: u64 = 16 * PAGE as u64;
/// Maximum size of a mapping that gets a slot.
const LARGEST_IN_SLOT: u64 = 64 << 20;
/// Maximum size of a dense mapping in a slot; larger ones are sparse.
const LARGEST_DENSE: u64 = 8 << 20;
/// Maximum number of slots that one call can change.
const MAX_SLOTS: u64 = 1 << 16;

const PAGE_SIZE: u64 = PAGE as u64;

/// Where to place a mapping.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Placement {
    /// At any free address.
    Anywhere,
    /// At this address, which must be free.
    At(u64),
}

/// A run of mapped pages.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// The attributes that all its pages share.
    pub traits: MappingTraits,
}

impl Mapping {
    /// Returns the address past the end.
    pub fn end(&self) -> u64 {
        self.start + self.size
    }
}

fn outside_index(address: u64) -> Option<usize> {
    match address {
        LOW_START..FUNCTION_BASE => Some(0),
        HIGH_START..HIGH_END => Some(1),
        _ => None,
    }
}

fn outside_range(index: usize) -> (u64, u64) {
    match index {
        0 => (LOW_START, FUNCTION_BASE),
        _ => (HIGH_START, HIGH_END),
    }
}

/// A range of addresses in one slot, or outside of the slots on one side.
#[derive(Copy, Clone, Debug)]
struct Part {
    start: u64,
    end: u64,
}

/// Splits a range into parts. `None` if it contains invalid addresses or has too many parts.
fn parts(start: u64, len: u64) -> Option<Vec<Part>> {
    let end = start.checked_add(len)?;
    let mut parts = Vec::new();
    let mut at = start;
    while at < end {
        let room_end = match (outside_index(at), Slot::of(at)) {
            (Some(index), _) => outside_range(index).1,
            (None, Some(slot)) => slot.base() + (1 << slot.class),
            (None, None) => return None,
        };
        let until = end.min(room_end);
        parts.push(Part {
            start: at,
            end: until,
        });
        if parts.len() as u64 > MAX_SLOTS {
            return None;
        }
        at = until;
    }
    Some(parts)
}

/// Returns the pages of an object that an address range covers.
fn pages_of(object: &Object, part: Part) -> (u64, u64) {
    let first = part.start.max(object.start) - object.start;
    let end = part.end.max(object.start) - object.start;
    (first / PAGE_SIZE, end.div_ceil(PAGE_SIZE))
}

impl Memory {
    /// Returns whether the address is in the address space that mappings can use.
    pub fn is_address(&self, address: u64) -> bool {
        Slot::of(address).is_some() || outside_index(address).is_some()
    }

    #[cold]
    #[inline(never)]
    pub(super) fn outside(&self, address: u64) -> Option<&Object> {
        let fixed = self.tables.fixed_at(address);
        fixed.or_else(|| self.tables.outside[outside_index(address)?].as_ref())
    }

    #[cold]
    #[inline(never)]
    pub(super) fn outside_mut(&mut self, address: u64) -> Option<&mut Object> {
        let tables = Arc::make_mut(&mut self.tables);
        if tables.fixed_at(address).is_some() {
            return tables.fixed_at_mut(address);
        }
        tables.outside[outside_index(address)?].as_mut()
    }

    /// Returns the object that contains the pages at this address; creates it if there is none.
    fn object_for(&mut self, address: u64) -> Option<&mut Object> {
        if let Some(index) = outside_index(address) {
            let (start, end) = outside_range(index);
            let empty =
                || Object::of_region(start, end - start, ObjectKind::Mapping, Region::default());
            let tables = Arc::make_mut(&mut self.tables);
            return Some(tables.outside[index].get_or_insert_with(empty));
        }
        let slot = Slot::of(address)?;
        let (stack, index) = locate(slot);
        if stack.is_some() || !address.is_multiple_of(PAGE_SIZE) {
            return None;
        }
        let is_usable = match self.near(address) {
            None => false,
            Some(object) if object.kind != ObjectKind::Mapping => return None,
            Some(object) => object.is_live(),
        };
        let (base, size) = (slot.base(), 1 << slot.class);
        if is_usable {
            let object = self.near_mut(address)?;
            object.widen(base, size)?;
            return Some(object);
        }
        let empty = Object::of_region(base, size, ObjectKind::Mapping, Region::default());
        self.table_mut(None, slot.class)?.set(index, empty);
        self.near_mut(address)
    }

    /// Returns the mapped runs in a range, in order, clipped to it. `None` if the range contains
    /// invalid addresses.
    pub fn mappings_in(&self, start: u64, len: u64) -> Option<Vec<Mapping>> {
        let mut found = Vec::new();
        for part in parts(start, len)? {
            let object = self.near(part.start);
            let Some(object) = object.filter(|object| object.is_live()) else {
                continue;
            };
            let (first, end) = pages_of(object, part);
            match object.region() {
                Some(region) => {
                    let runs = region.runs_in(first, end);
                    found.extend(runs.map(|run| Mapping {
                        start: object.start + run.first * PAGE_SIZE,
                        size: run.count * PAGE_SIZE,
                        traits: run.traits,
                    }));
                }
                None if object.kind == ObjectKind::Mapping => {
                    let from = part.start.max(object.start);
                    let to = part.end.min(object.start + object.size);
                    if from < to {
                        found.push(Mapping {
                            start: from,
                            size: to - from,
                            traits: MappingTraits {
                                allocated: object.allocated,
                                ..MappingTraits::PLAIN
                            },
                        });
                    }
                }
                None => {}
            }
        }
        Some(found)
    }

    /// Returns the mapped run at an address.
    pub fn mapping_at(&self, address: u64) -> Option<Mapping> {
        let object = self.near(address).filter(|object| object.is_live())?;
        let inside = address.checked_sub(object.start)?;
        match object.region() {
            Some(region) => {
                let run = region.run_at(inside / PAGE_SIZE)?;
                Some(Mapping {
                    start: object.start + run.first * PAGE_SIZE,
                    size: run.count * PAGE_SIZE,
                    traits: run.traits,
                })
            }
            None if object.kind == ObjectKind::Mapping && inside < object.size => Some(Mapping {
                start: object.start,
                size: object.size,
                traits: MappingTraits {
                    allocated: object.allocated,
                    ..MappingTraits::PLAIN
                },
            }),
            None => None,
        }
    }

    /// Maps whole pages. For file mappings `view` is the file. `None` if there is no room.
    pub fn map(
        &mut self,
        placement: Placement,
        size: u64,
        traits: MappingTraits,
        view: Option<FileView>,
    ) -> Option<u64> {
        let start = match placement {
            Placement::At(address) => address,
            Placement::Anywhere if is_plain(&traits) && size <= LARGEST_DENSE => {
                let object = self.allocate(size, PAGE_SIZE, ObjectKind::Mapping)?;
                object.allocated = traits.allocated;
                return Some(object.start);
            }
            Placement::Anywhere => self.room_for(size, &traits)?,
        };
        let all = parts(start, size)?;
        let [_] = all.as_slice() else {
            return None;
        };
        let object = self.object_for(start)?;
        let is_plain = object.region().is_none();
        if is_plain {
            object.make_region();
        }
        let mut before = object.footprint();
        if is_plain {
            // The run of the mapping is new.
            before.runs = 0;
        }
        let first = (start - object.start) / PAGE_SIZE;
        let region = object.region_mut()?;
        region.map(PageRun {
            first,
            count: size / PAGE_SIZE,
            traits,
        });
        let views = view.is_some();
        if let Some(view) = view {
            region.add_view(view);
        }
        let (base, after) = (object.start, object.footprint());
        self.account(before, after);
        let is_same = |viewer: &u64| {
            self.near(*viewer)
                .is_some_and(|object| object.start == base)
        };
        if views && !self.viewers.iter().any(is_same) {
            self.viewers.push(base);
        }
        Some(start)
    }

    /// Finds a free address for a mapping of this size.
    fn room_for(&mut self, size: u64, traits: &MappingTraits) -> Option<u64> {
        // Inaccessible memory is a reservation into which files may be mapped later; it goes into
        // the object that contains the other mappings.
        let is_memory =
            traits.backing == Backing::Anonymous && traits.protection != Protection::NONE;
        if is_memory && size <= LARGEST_IN_SLOT {
            let before = (self.heap_bytes, self.data_bytes);
            let object = self.allocate(size, PAGE_SIZE, ObjectKind::Mapping)?;
            let start = object.start;
            *object = Object::of_region(start, size, ObjectKind::Mapping, Region::default());
            (self.heap_bytes, self.data_bytes) = before;
            return Some(start);
        }
        if let Some(start) = self.room_below(self.lowest, size) {
            self.lowest = start;
            return Some(start);
        }
        // Addresses that were unmapped are used again when there are no others.
        self.room_below(TOP, size)
    }

    /// Finds the highest free address below another one for a mapping of this size.
    fn room_below(&self, top: u64, size: u64) -> Option<u64> {
        let room = size.checked_add(GAP)?;
        let mut start = top.checked_sub(room)? & !(PAGE_SIZE - 1);
        while start > BREAK_END
            && let Some(taken) = self.mappings_in(start, room)?.first()
        {
            start = taken.start.checked_sub(room)?;
        }
        (start > BREAK_END).then_some(start)
    }

    /// Returns whether the range is free and mappings can be placed there.
    pub fn is_free(&self, start: u64, len: u64) -> bool {
        self.can_replace(start, len)
            && self
                .mappings_in(start, len)
                .is_some_and(|all| all.is_empty())
    }

    /// Returns whether mappings can be placed in the range, replacing existing ones.
    pub fn can_replace(&self, start: u64, len: u64) -> bool {
        if parts(start, len).is_none_or(|all| all.len() != 1) || self.tables.has_fixed(start, len) {
            return false;
        }
        match (outside_index(start), Slot::of(start)) {
            (Some(_), _) => true,
            (None, Some(slot)) => {
                let other = |object: &Object| object.kind != ObjectKind::Mapping;
                locate(slot).0.is_none() && !self.near(start).is_some_and(other)
            }
            (None, None) => false,
        }
    }

    /// Applies a change to each object with mapped pages in a range.
    fn change(
        &mut self,
        start: u64,
        len: u64,
        mut change: impl FnMut(&mut Object, u64, u64),
    ) -> Option<()> {
        for part in parts(start, len)? {
            let Some(object) = self.near_mut(part.start).filter(|object| object.is_live()) else {
                continue;
            };
            let is_aligned = object.start.is_multiple_of(PAGE_SIZE);
            if object.kind != ObjectKind::Mapping
                && !(object.kind == ObjectKind::Heap && is_aligned)
            {
                continue;
            }
            let (first, end) = pages_of(object, part);
            let before = object.footprint();
            if first < end {
                change(object, first, end);
            }
            let after = object.footprint();
            self.account(before, after);
        }
        Some(())
    }

    /// Updates the totals after the footprint of an object has changed.
    fn account(&mut self, before: Footprint, after: Footprint) {
        self.peak_bytes = self.peak_bytes();
        self.heap_bytes = self.heap_bytes - before.counted + after.counted;
        self.reserved_bytes = self.reserved_bytes - before.reserved + after.reserved;
        self.data_bytes = self.data_bytes - before.data + after.data;
        self.runs = self.runs - before.runs + after.runs;
    }

    /// Unmaps pages.
    pub fn unmap(&mut self, start: u64, len: u64, by: Option<StackId>) {
        self.change(start, len, |object, first, end| {
            if object.kind != ObjectKind::Mapping {
                return;
            }
            let all = object.size.div_ceil(PAGE_SIZE);
            if object.region().is_none() && first == 0 && end >= all {
                return object.kill(by);
            }
            let is_slot = Slot::of(object.start).is_some();
            let Some(region) = object.make_region() else {
                return;
            };
            region.unmap(first, end, by);
            region.drop_views();
            if is_slot
                && object
                    .region()
                    .is_some_and(|region| region.runs().is_empty())
            {
                object.kill(by);
            }
        });
        let mut viewers = std::mem::take(&mut self.viewers);
        viewers.retain(|viewer| {
            let region = self.near(*viewer).and_then(Object::region);
            region.is_some_and(|region| !region.files().is_empty())
        });
        self.viewers = viewers;
    }

    /// Sets the protection of pages in mappings and in heap blocks that start on a page boundary.
    pub fn protect(&mut self, start: u64, len: u64, protection: Protection) {
        self.change(start, len, |object, first, end| {
            let is_plain = object.region().is_none() && protection == Protection::READ_WRITE;
            if !is_plain && let Some(region) = object.make_region() {
                region.protect(first, end, protection);
            }
        });
    }

    /// Changes what children of `fork` get of mapped pages.
    pub fn advise_fork(&mut self, start: u64, len: u64, change: impl Fn(&mut OnFork)) {
        self.fork_advice.push((start, len));
        self.change(start, len, |object, first, end| {
            if let Some(region) = object.make_region() {
                region.advise_fork(first, end, &change);
            }
        });
    }

    /// In the memory of a child: takes away what it does not get from its parent.
    pub fn apply_fork_advice(&mut self) {
        for (start, len) in self.fork_advice.clone() {
            for mapping in self.mappings_in(start, len).unwrap_or_default() {
                let OnFork { wipes, drops } = mapping.traits.on_fork;
                if drops {
                    self.unmap(mapping.start, mapping.size, None);
                } else if wipes {
                    self.discard(mapping.start, mapping.size);
                }
            }
        }
    }

    /// Resets pages to their initial content (`MADV_DONTNEED`).
    pub fn discard(&mut self, start: u64, len: u64) {
        self.change(start, len, |object, first, end| {
            if let Some(region) = object.region_mut() {
                region.forget_pages(first, end);
            } else {
                let end = (end * PAGE_SIZE).min(object.size);
                let first = (first * PAGE_SIZE).min(end);
                object.fill(first, end - first, 0);
            }
        });
    }

    /// Moves mapped pages to a free range. With `keep`, the old range stays mapped and empty.
    pub fn relocate(&mut self, from: u64, len: u64, to: u64, keep: bool) -> Option<()> {
        let mappings = self.mappings_in(from, len)?;
        let mut pages: Vec<(u64, Arc<Buffer>)> = Vec::new();
        let mut views: Vec<FileView> = Vec::new();
        self.change(from, len, |object, first, end| {
            let base = object.start;
            if let Some(region) = object.make_region() {
                views.extend(region.files().iter().cloned());
                let taken = region.take_pages(first, end).into_iter();
                pages.extend(taken.map(|(page, content)| (base + page * PAGE_SIZE, content)));
            }
        });
        for mapping in mappings {
            let at = to + (mapping.start - from);
            let file = mapping.traits.backing.file();
            let view = views.iter().find(|view| Some(view.file) == file).cloned();
            self.map(Placement::At(at), mapping.size, mapping.traits, view)?;
            if mapping.traits.on_fork != OnFork::default() {
                self.fork_advice.push((at, mapping.size));
            }
        }
        let target = self.near_mut(to)?;
        let base = target.start;
        let region = target.region_mut()?;
        for (address, content) in pages {
            region.put_page((address - from + to - base) / PAGE_SIZE, content);
        }
        if !keep {
            self.unmap(from, len, None);
        }
        Some(())
    }

    /// Returns for each page whether it was ever written or is backed by a file.
    pub fn resident_pages(&self, start: u64, len: u64) -> Vec<bool> {
        let pages = (0..len.div_ceil(PAGE_SIZE)).map(|page| start + page * PAGE_SIZE);
        let is_there = |address: u64| {
            let object = self.near(address)?;
            let mapping = self.mapping_at(address)?;
            let is_file = mapping.traits.backing.file().is_some();
            Some(is_file || object.has_page(address - object.start))
        };
        pages.map(|page| is_there(page).unwrap_or(false)).collect()
    }

    /// Returns whether any file is mapped.
    pub fn has_views(&self) -> bool {
        !self.viewers.is_empty()
    }

    /// Returns the mapped files, object by object.
    pub fn views(&self) -> impl Iterator<Item = &FileView> {
        let objects = self.viewers.iter().filter_map(|start| self.near(*start));
        objects.flat_map(|object| object.region().map_or(&[][..], Region::files))
    }

    /// Returns the files that have shared mappings.
    pub fn shared_files(&self) -> BTreeSet<u32> {
        self.files_shared_by(|_| true)
    }

    /// Returns the files that have shared mappings which are writable or can be made so.
    pub fn writable_files(&self) -> BTreeSet<u32> {
        self.files_shared_by(|traits| traits.may_write)
    }

    fn files_shared_by(&self, counts: impl Fn(&MappingTraits) -> bool) -> BTreeSet<u32> {
        let objects = self.viewers.iter().filter_map(|start| self.near(*start));
        let regions = objects.filter_map(Object::region);
        let runs = regions.flat_map(Region::runs);
        let shared = runs.filter_map(|run| match run.traits.backing {
            Backing::Shared { file, .. } if counts(&run.traits) => Some(file),
            _ => None,
        });
        shared.collect()
    }

    /// Calls `visit` with a mutable reference to each mapped file.
    pub fn for_each_view(&mut self, mut visit: impl FnMut(&mut FileView)) {
        for start in self.viewers.clone() {
            let object = self.near_mut(start);
            if let Some(region) = object.and_then(Object::region_mut) {
                region.files_mut().iter_mut().for_each(&mut visit);
            }
        }
    }

    /// Drops all file views.
    pub fn forget_views(&mut self) {
        for start in std::mem::take(&mut self.viewers) {
            let object = self.near_mut(start);
            if let Some(region) = object.and_then(Object::region_mut) {
                region.files_mut().clear();
            }
        }
    }

    /// Returns the file and offset behind an address in a shared file mapping.
    pub fn shared_file_offset(&self, address: u64) -> Option<(u32, u64)> {
        if self.viewers.is_empty() {
            return None;
        }
        let mapping = self.mapping_at(address)?;
        match mapping.traits.backing {
            Backing::Shared { file, page } => {
                Some((file, page * PAGE_SIZE + (address - mapping.start)))
            }
            _ => None,
        }
    }
}

/// Returns whether the mapping can be an ordinary object: anonymous, readable and writable.
fn is_plain(traits: &MappingTraits) -> bool {
    traits.protection == Protection::READ_WRITE
        && traits.backing == Backing::Anonymous
        && traits.counted
}

/// Returns the start and size of each run of an object.
pub(super) fn stretches(object: &Object) -> Vec<(u64, u64)> {
    match object.region() {
        None => vec![(object.start, object.size)],
        Some(region) => {
            let runs = region.runs().iter();
            let readable = runs.filter(|run| run.traits.protection != Protection::NONE);
            let place = |run: &PageRun| {
                let start = object.start + run.first * PAGE_SIZE;
                let size = (run.count * PAGE_SIZE).min(object.room(run.first * PAGE_SIZE, false));
                (start, size)
            };
            readable.map(place).collect()
        }
    }
}

/// Returns the finding for an access that a page of a region denies.
pub(super) fn explain(object: &Object, fault: AccessFault) -> Bug {
    let AccessFault {
        address,
        len,
        write,
    } = fault;
    let verb = if write { "write" } else { "read" };
    let wanted = bytes(len);
    let what = object.kind.noun();
    let inside = address.wrapping_sub(object.start);
    let nothing = || format!("{verb} of {wanted} at address {address:#x}, where nothing is");
    let Some(region) = object.region().filter(|_| inside < object.size) else {
        let at = position(object, address);
        let message = format!("{verb} of {wanted} {at} a {what} of {}", bytes(object.size));
        return Bug {
            allocated: object.allocated,
            freed: object.freed,
            ..Bug::new(BugKind::OutOfBounds, message)
        };
    };
    let (kind, message, allocated, freed) = match region.denial(inside, len, write) {
        AccessDenial::Nothing => (BugKind::WildPointer, nothing(), None, None),
        AccessDenial::UnmappedRun(gone) => {
            let size = (gone.end - gone.first) * PAGE_SIZE;
            let offset = inside as i64 - (gone.first * PAGE_SIZE) as i64;
            let message =
                format!("{verb} of {wanted} at offset {offset} of {size} bytes that were unmapped");
            (BugKind::UseAfterFree, message, gone.allocated, gone.freed)
        }
        AccessDenial::Behind(run) => {
            let behind = inside.saturating_sub((run.first + run.count) * PAGE_SIZE);
            let size = run.count * PAGE_SIZE;
            let message = format!(
                "{verb} of {wanted} {} past the end of a {what} of {size} bytes",
                bytes(behind)
            );
            (BugKind::OutOfBounds, message, run.traits.allocated, None)
        }
        AccessDenial::Protected(run) => {
            let (kind, allowed) = match run.traits.protection.0 {
                0 => (BugKind::ProtectedPage, "no access"),
                _ => (BugKind::ReadOnlyWrite, "no writing"),
            };
            let message = format!("{verb} of {wanted} in a page that allows {allowed}");
            (kind, message, run.traits.allocated, None)
        }
        AccessDenial::BeyondFile(run) => {
            let message = format!("{verb} of {wanted} in a page past the end of the mapped file");
            (BugKind::BeyondFile, message, run.traits.allocated, None)
        }
    };
    // Natively another mapping may follow, so an out-of-bounds access need not fault.
    let faults = kind != BugKind::OutOfBounds;
    Bug {
        allocated,
        freed,
        address: faults.then_some(address),
        ..Bug::new(kind, message)
    }
}
