//! A memory object: one allocation with its address, kind and content.

use everett_expr::{Arena, ExprId, VisitTerms};
use std::collections::BTreeSet;
use triomphe::Arc;

use super::buffer::{Buffer, PAGE};
use super::journal::{Journal, JournaledWrites, MAX_DIRTY, SymbolicWrite};
use super::region::{MappingTraits, PageRun, Region};
use crate::stacks::StackId;
use crate::value::Value;

/// The content of a page that was never written.
static ZEROS: [u8; PAGE] = [0; PAGE];

/// The kind of an object. It determines the kind of finding for a misuse.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ObjectKind {
    /// A global variable.
    Global,
    /// A global constant, read-only.
    Constant,
    /// A stack slot.
    Stack,
    /// The variadic arguments of a call, a stack slot.
    Arguments,
    /// A block from malloc and its family.
    Heap,
    /// A mapping from mmap.
    Mapping,
    /// Kernel-provided data: arguments, environment and the like.
    Kernel,
    /// An object at an address that the program chose.
    Fixed,
}

impl ObjectKind {
    /// Returns the name of the kind in messages.
    pub fn noun(self) -> &'static str {
        match self {
            ObjectKind::Global => "global",
            ObjectKind::Constant => "constant global",
            ObjectKind::Stack => "stack slot",
            ObjectKind::Arguments => "list of variadic arguments",
            ObjectKind::Heap => "heap block",
            ObjectKind::Mapping => "mapping",
            ObjectKind::Kernel => "kernel-made block",
            ObjectKind::Fixed => "fixed object",
        }
    }
}

/// The memory that an object takes, in bytes.
#[derive(Copy, Clone, Debug)]
pub(super) struct Footprint {
    /// Bytes that count as memory in use.
    pub counted: u64,
    /// Bytes that are mapped in addition.
    pub reserved: u64,
    /// Bytes of private memory that is writable.
    pub data: u64,
    /// Number of page runs.
    pub runs: u64,
}

/// The bytes of an object.
#[derive(Clone, Debug)]
pub enum Content {
    /// At most one page.
    One(Arc<Buffer>),
    /// All pages in order. Pages that were never written are absent and read as zeros.
    Pages(Arc<Vec<Option<Arc<Buffer>>>>),
    /// Pages with individual attributes.
    Region(Arc<Region>),
    /// At most one page, of a variable that is out of scope.
    Ended(Arc<Buffer>),
    /// Pages of a variable that is out of scope.
    EndedPages(Arc<Vec<Option<Arc<Buffer>>>>),
    /// No content: the object is dead.
    UnmappedRun,
}

/// An allocation.
#[derive(Clone, Debug)]
pub struct Object {
    /// First address.
    pub start: u64,
    /// Size in bytes; an upper bound if the size is symbolic.
    pub size: u64,
    /// The size as a term, if it is symbolic.
    pub size_term: Option<ExprId>,
    /// Call stack of the allocation.
    pub allocated: Option<StackId>,
    /// Call stack of the deallocation.
    pub freed: Option<StackId>,
    /// The kind.
    pub kind: ObjectKind,
    pub(super) content: Content,
    pub(super) journal: Option<Arc<Journal<Content>>>,
}

impl Object {
    /// Creates an object of zeros.
    pub fn zeroed(start: u64, size: u64, kind: ObjectKind) -> Object {
        Object::with_bytes(start, size, kind, &[])
    }

    /// Creates an object from these bytes, padded with zeros.
    pub fn with_bytes(start: u64, size: u64, kind: ObjectKind, bytes: &[u8]) -> Object {
        let content = if size as usize <= PAGE {
            Content::One(Arc::new(Buffer::with_bytes(bytes, size as usize)))
        } else {
            let pages = (size as usize).div_ceil(PAGE);
            let page = |index: usize| {
                let from = (index * PAGE).min(bytes.len());
                let part = &bytes[from..((index + 1) * PAGE).min(bytes.len())];
                let any = part.iter().any(|byte| *byte != 0);
                any.then(|| Arc::new(Buffer::with_bytes(part, PAGE)))
            };
            Content::Pages(Arc::new((0..pages).map(page).collect()))
        };
        Object {
            start,
            size,
            size_term: None,
            allocated: None,
            freed: None,
            kind,
            content,
            journal: None,
        }
    }

    /// Returns whether the object is alive.
    #[inline(always)]
    pub fn is_live(&self) -> bool {
        matches!(
            self.content,
            Content::One(_) | Content::Pages(_) | Content::Region(_)
        )
    }

    /// Returns whether the object is a variable that is out of scope.
    pub fn has_ended(&self) -> bool {
        matches!(self.content, Content::Ended(_) | Content::EndedPages(_))
    }

    /// Ends the scope of the variable. The content stays, as in a native run.
    pub(super) fn end_scope(&mut self) {
        self.content = match std::mem::replace(&mut self.content, Content::UnmappedRun) {
            Content::One(buffer) => Content::Ended(buffer),
            Content::Pages(pages) => Content::EndedPages(pages),
            other => other,
        };
    }

    /// Begins the scope of the variable; returns `false` if the scope had not ended.
    pub(super) fn begin_scope(&mut self) -> bool {
        let has_ended = self.has_ended();
        self.content = match std::mem::replace(&mut self.content, Content::UnmappedRun) {
            Content::Ended(buffer) => Content::One(buffer),
            Content::EndedPages(pages) => Content::Pages(pages),
            other => other,
        };
        has_ended
    }

    /// Creates an object whose pages have individual attributes.
    pub(super) fn of_region(start: u64, size: u64, kind: ObjectKind, region: Region) -> Object {
        Object {
            start,
            size,
            size_term: None,
            allocated: None,
            freed: None,
            kind,
            content: Content::Region(Arc::new(region)),
            journal: None,
        }
    }

    /// Returns whether the bytes of a range inside the object can be read or written.
    #[inline(always)]
    pub fn allows(&self, offset: u64, len: u64, write: bool) -> bool {
        match &self.content {
            Content::One(_) | Content::Pages(_) => true,
            Content::Region(region) => len == 0 || region.allows(offset, len, write),
            Content::Ended(_) | Content::EndedPages(_) | Content::UnmappedRun => false,
        }
    }

    /// Returns the pages, if they have individual attributes.
    pub fn region(&self) -> Option<&Region> {
        match &self.content {
            Content::Region(region) => Some(region),
            _ => None,
        }
    }

    /// Returns the pages for modification, if they have individual attributes.
    pub(super) fn region_mut(&mut self) -> Option<&mut Region> {
        match &mut self.content {
            Content::Region(region) => Some(Arc::make_mut(region)),
            _ => None,
        }
    }

    /// Converts the content to pages with individual attributes. The object must start on a page
    /// boundary.
    pub(super) fn make_region(&mut self) -> Option<&mut Region> {
        let count = self.size.div_ceil(PAGE as u64);
        let mut region = Region::new(PageRun {
            first: 0,
            count,
            traits: MappingTraits {
                allocated: self.allocated,
                ..MappingTraits::PLAIN
            },
        });
        match &self.content {
            Content::Region(_)
            | Content::Ended(_)
            | Content::EndedPages(_)
            | Content::UnmappedRun => return self.region_mut(),
            Content::One(buffer) => {
                let mut page = Buffer::zeroed(PAGE);
                page.copy_from(0, buffer, 0, buffer.len());
                region.put_page(0, Arc::new(page));
            }
            Content::Pages(pages) => {
                for (number, page) in (0..).zip(pages.iter()) {
                    if let Some(page) = page {
                        region.put_page(number, page.clone());
                    }
                }
            }
        }
        self.content = Content::Region(Arc::new(region));
        self.region_mut()
    }

    /// Returns whether the page at an offset was ever written.
    pub(super) fn has_page(&self, offset: u64) -> bool {
        self.page(offset).is_some()
    }

    /// Extends the object to cover `size` bytes from `start`; the added range must be unused. Pages
    /// keep their addresses.
    pub(super) fn widen(&mut self, start: u64, size: u64) -> Option<()> {
        let shift = (self.start - start) / PAGE as u64;
        let region = self.make_region()?;
        region.shift(shift);
        self.start = start;
        self.size = size;
        Some(())
    }

    /// Returns the number of accessible bytes from an offset on.
    pub fn room(&self, offset: u64, write: bool) -> u64 {
        let Some(region) = self.region() else {
            return self.size.saturating_sub(offset);
        };
        let page = PAGE as u64;
        let mut end = offset;
        while end < self.size && region.allows(end, 1, write) {
            // Runs are long; the end of a file that is shorter than its mapping is found page by
            // page.
            let run = region.run_at(end / page);
            let behind = run.map_or(end, |run| (run.first + run.count) * page);
            end = match region.allows(end, behind - end, write) {
                true => behind,
                false => (end / page + 1) * page,
            };
        }
        end.min(self.size) - offset
    }

    /// Returns the start and size of the mapped extent around an offset, whatever its protection.
    pub fn extent(&self, offset: u64) -> Option<(u64, u64)> {
        match self.region() {
            None => Some((0, self.size)),
            Some(region) => {
                let (first, end) = region.span(offset / PAGE as u64)?;
                let start = first * PAGE as u64;
                let end = (end * PAGE as u64).min(self.size);
                Some((start, end - start))
            }
        }
    }

    /// Returns the number of bytes that count as memory in use.
    pub(super) fn counted_bytes(&self) -> u64 {
        match (&self.content, self.kind) {
            (Content::UnmappedRun, _) => 0,
            (Content::Region(region), ObjectKind::Mapping) => region.counted_bytes(),
            (_, ObjectKind::Heap | ObjectKind::Mapping) => self.size,
            _ => 0,
        }
    }

    /// Returns the memory that the object takes.
    pub(super) fn footprint(&self) -> Footprint {
        let counted = self.counted_bytes();
        let mapped = match (&self.content, self.kind) {
            (Content::Region(region), ObjectKind::Mapping) => region.mapped_bytes(),
            _ => counted,
        };
        Footprint {
            counted,
            reserved: mapped - counted,
            data: match (&self.content, self.kind) {
                (Content::Region(region), ObjectKind::Mapping) => region.data_bytes(),
                _ => counted,
            },
            runs: match (&self.content, self.kind) {
                (Content::Region(region), ObjectKind::Mapping) => region.runs().len() as u64,
                _ => 0,
            },
        }
    }

    /// Ends the lifetime of the object and drops its content.
    pub fn kill(&mut self, freed: Option<StackId>) {
        self.content = Content::UnmappedRun;
        self.journal = None;
        self.freed = freed;
    }

    /// Returns whether the object is a stack slot whose frame has returned, or a freed block.
    pub fn is_popped(&self) -> bool {
        matches!(self.content, Content::UnmappedRun)
    }

    /// Returns the single buffer of a small object.
    #[inline(always)]
    pub fn small(&self) -> Option<&Buffer> {
        match &self.content {
            Content::One(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// Returns the single buffer of a small object, for writing.
    #[inline(always)]
    pub fn small_mut(&mut self) -> Option<&mut Buffer> {
        match &mut self.content {
            Content::One(buffer) => Some(Arc::make_mut(buffer)),
            _ => None,
        }
    }

    fn page(&self, offset: u64) -> Option<(&Buffer, usize)> {
        match &self.content {
            Content::One(buffer) => Some((buffer, offset as usize)),
            Content::Pages(pages) => {
                let page = pages[offset as usize / PAGE].as_ref()?;
                Some((page, offset as usize % PAGE))
            }
            Content::Region(region) => {
                let page = region.page(offset / PAGE as u64)?;
                Some((page, offset as usize % PAGE))
            }
            Content::Ended(_) | Content::EndedPages(_) | Content::UnmappedRun => None,
        }
    }

    /// Returns the number of bytes of a range that are on pages that do not exist yet or that other
    /// states share.
    pub fn unowned(&self, offset: u64, len: u64) -> u64 {
        let pages = offset / PAGE as u64..(offset + len).div_ceil(PAGE as u64);
        let missing = match &self.content {
            Content::Pages(all) if Arc::is_unique(all) => pages
                .filter(|page| !all[*page as usize].as_ref().is_some_and(Arc::is_unique))
                .count() as u64,
            Content::Region(region) if Arc::is_unique(region) => {
                pages.filter(|page| !region.owns(*page)).count() as u64
            }
            _ => pages.end - pages.start,
        };
        missing * PAGE as u64
    }

    /// Returns the number of bytes of a range that are on pages that other states share.
    pub fn shared(&self, offset: u64, len: u64) -> u64 {
        let pages = offset / PAGE as u64..(offset + len).div_ceil(PAGE as u64);
        let is_shared = |page: &u64| match &self.content {
            Content::Pages(all) => all[*page as usize]
                .as_ref()
                .is_some_and(|own| !Arc::is_unique(all) || !Arc::is_unique(own)),
            Content::Region(region) => {
                let is_own = Arc::is_unique(region) && region.owns(*page);
                region.page(*page).is_some() && !is_own
            }
            _ => true,
        };
        pages.filter(is_shared).count() as u64 * PAGE as u64
    }

    fn page_mut(&mut self, offset: u64) -> (&mut Buffer, usize) {
        match &mut self.content {
            Content::One(buffer) => (Arc::make_mut(buffer), offset as usize),
            Content::Pages(pages) => {
                let pages = Arc::make_mut(pages);
                let page = pages[offset as usize / PAGE]
                    .get_or_insert_with(|| Arc::new(Buffer::zeroed(PAGE)));
                (Arc::make_mut(page), offset as usize % PAGE)
            }
            Content::Region(region) => {
                let page = Arc::make_mut(region).page_mut(offset / PAGE as u64);
                (page, offset as usize % PAGE)
            }
            Content::Ended(_) | Content::EndedPages(_) | Content::UnmappedRun => {
                unreachable!("liveness is checked before any access")
            }
        }
    }

    /// Loads `len` (1 to 8) bytes at a checked offset.
    pub fn load(&self, arena: &mut Arena, offset: u64, len: usize) -> Value {
        if let Some(buffer) = self.small() {
            return buffer.load(arena, offset as usize, len);
        }
        if offset as usize % PAGE + len <= PAGE {
            return match self.page(offset) {
                Some((page, at)) => page.load(arena, at, len),
                None => Value::ZERO,
            };
        }
        // The access crosses a page boundary: load byte by byte.
        let bytes: Vec<Value> = (0..len)
            .map(|i| self.byte(arena, offset + i as u64))
            .collect();
        join_bytes(arena, &bytes)
    }

    /// Loads one byte.
    pub fn byte(&self, arena: &mut Arena, offset: u64) -> Value {
        match self.page(offset) {
            Some((page, at)) => page.byte(arena, at),
            None => Value::ZERO,
        }
    }

    /// Stores `len` (1 to 8) bytes at a checked offset. A term must be `8 * len` bits wide.
    pub fn store(&mut self, arena: &mut Arena, offset: u64, len: usize, value: Value) {
        if let Some(buffer) = self.small_mut() {
            return buffer.store(offset as usize, len, value);
        }
        if offset as usize % PAGE + len <= PAGE {
            let (page, at) = self.page_mut(offset);
            return page.store(at, len, value);
        }
        for i in 0..len {
            let byte = match value.term {
                None => Value::concrete(value.bits >> (8 * i) & 0xff),
                Some(term) => {
                    let byte = arena.extract(term, 8 * i as u32, 8);
                    Value::of_term(arena, byte)
                }
            };
            let (page, at) = self.page_mut(offset + i as u64);
            page.store(at, 1, byte);
        }
    }

    /// Calls `visit` with each piece of a range that is in one buffer (`None`: zeros).
    pub fn for_each_piece(
        &self,
        offset: u64,
        len: u64,
        mut visit: impl FnMut(Option<(&Buffer, usize)>, usize),
    ) {
        let mut done = 0;
        while done < len {
            let at = offset + done;
            let room = match &self.content {
                Content::One(_) => len - done,
                _ => (PAGE as u64 - at % PAGE as u64).min(len - done),
            };
            visit(self.page(at), room as usize);
            done += room;
        }
    }

    /// Calls `visit` with each buffer and its offset in the object.
    pub fn for_each_buffer(&self, mut visit: impl FnMut(u64, &Buffer)) {
        match &self.content {
            Content::One(buffer) => visit(0, buffer),
            Content::Pages(pages) => {
                for (at, page) in pages.iter().enumerate() {
                    if let Some(page) = page {
                        visit((at * PAGE) as u64, page);
                    }
                }
            }
            Content::Region(region) => {
                for (page, buffer) in region.present() {
                    visit(page * PAGE as u64, buffer);
                }
            }
            Content::Ended(_) | Content::EndedPages(_) | Content::UnmappedRun => {}
        }
    }

    /// Returns whether a range contains a symbolic byte.
    pub fn has_symbolic(&self, offset: u64, len: u64) -> bool {
        let mut any = false;
        self.for_each_piece(offset, len, |piece, room| {
            any |= piece.is_some_and(|(buffer, at)| buffer.has_symbolic(at, room));
        });
        any
    }

    /// Appends the concrete bytes of a range to `out`. Returns `false` if one is symbolic; `out` is
    /// then meaningless.
    pub fn read_concrete(&self, offset: u64, len: u64, out: &mut Vec<u8>) -> bool {
        let mut concrete = true;
        self.for_each_piece(offset, len, |piece, room| match piece {
            Some((buffer, at)) => {
                concrete &= !buffer.has_symbolic(at, room);
                out.extend_from_slice(&buffer.bytes()[at..at + room]);
            }
            None => out.resize(out.len() + room, 0),
        });
        concrete
    }

    /// Writes concrete bytes.
    pub fn write_concrete(&mut self, offset: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let (buffer, at) = self.page_mut(offset + done as u64);
            let room = (buffer.len() - at).min(bytes.len() - done);
            buffer.write(at, &bytes[done..done + room]);
            done += room;
        }
    }

    /// Fills a range with one concrete byte.
    pub fn fill(&mut self, offset: u64, len: u64, byte: u8) {
        let mut done = 0;
        while done < len {
            if byte == 0 && self.page(offset + done).is_none() {
                done += (PAGE as u64 - (offset + done) % PAGE as u64).min(len - done);
                continue;
            }
            let (buffer, at) = self.page_mut(offset + done);
            let room = (buffer.len() - at).min((len - done) as usize);
            buffer.fill(at, room, byte);
            done += room as u64;
        }
    }

    /// Returns the contiguous concrete bytes from an offset inside the object on, at most `limit`.
    /// Empty if the first one is symbolic.
    pub fn concrete_run(&self, offset: u64, limit: u64) -> &[u8] {
        let limit = limit.min(self.size - offset) as usize;
        if limit == 0 {
            return &[];
        }
        match self.page(offset) {
            Some((buffer, at)) => buffer.concrete_run(at, limit),
            None => &ZEROS[..room_in_page(offset).min(limit)],
        }
    }

    /// Copies a range of another object, including terms. Both ranges were checked.
    pub fn copy_from(&mut self, offset: u64, from: &Object, from_offset: u64, len: u64) {
        let mut done = 0;
        while done < len {
            let (to, at) = (offset + done, from_offset + done);
            if self.share_page(to, from, at, len - done) {
                done += PAGE as u64;
                continue;
            }
            let room = (room_in_page(to).min(room_in_page(at)) as u64).min(len - done) as usize;
            match from.page(at) {
                Some((source, source_at)) => {
                    let (target, target_at) = self.page_mut(to);
                    target.copy_from(target_at, source, source_at, room);
                }
                None => self.fill(to, room as u64, 0),
            }
            done += room as u64;
        }
    }

    /// Copies a whole page by sharing it. Returns `false` if the range is not a whole page.
    fn share_page(&mut self, offset: u64, from: &Object, from_offset: u64, len: u64) -> bool {
        let page = PAGE as u64;
        if len < page || !offset.is_multiple_of(page) || !from_offset.is_multiple_of(page) {
            return false;
        }
        let (Content::Pages(to), Content::Pages(from)) = (&mut self.content, &from.content) else {
            return false;
        };
        let source = &from[(from_offset / page) as usize];
        Arc::make_mut(to)[(offset / page) as usize] = source.clone();
        true
    }

    /// Copies a range within the object; source and destination may overlap.
    pub fn copy_within(&mut self, to: u64, from: u64, len: u64) {
        match &mut self.content {
            Content::One(buffer) => {
                Arc::make_mut(buffer).copy_within(to as usize, from as usize, len as usize);
            }
            _ => {
                let copy = self.snapshot(from, len);
                self.write_buffer(to, &copy);
            }
        }
    }

    /// Copies a range, including terms, to a new buffer.
    pub fn snapshot(&self, offset: u64, len: u64) -> Buffer {
        let mut copy = Buffer::zeroed(len as usize);
        let mut done = 0;
        self.for_each_piece(offset, len, |piece, room| {
            if let Some((buffer, at)) = piece {
                copy.copy_from(done, buffer, at, room);
            }
            done += room;
        });
        copy
    }

    /// Overwrites a range with a copy of a buffer.
    pub fn write_buffer(&mut self, offset: u64, from: &Buffer) {
        let mut done = 0;
        while done < from.len() {
            let (buffer, at) = self.page_mut(offset + done as u64);
            let room = (buffer.len() - at).min(from.len() - done);
            buffer.copy_from(at, from, done, room);
            done += room;
        }
    }

    /// Visits all terms in the object, as roots for garbage collection.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        self.size_term.into_iter().for_each(|term| visit.term(term));
        self.content.for_each_term(visit);
    }
}

/// Access to the journal; see the module `journal`.
impl Object {
    /// Returns the journal and all bytes that are dirty by now. `None` if the object has no
    /// journal, or too many bytes are dirty.
    fn current_journal(&self) -> Option<(&Journal<Content>, BTreeSet<u64>)> {
        let journal = self.journal.as_deref()?;
        let after = journal.after.as_ref()?;
        let mut dirty = journal.dirty.clone();
        if !after.is_same(&self.content) {
            dirty.extend(after.differences(&self.content, MAX_DIRTY)?);
        }
        (dirty.len() <= MAX_DIRTY).then_some((journal, dirty))
    }

    /// Returns the last writes at symbolic offsets.
    pub fn symbolic_writes(&self) -> Option<JournaledWrites<Object>> {
        let (journal, dirty) = self.current_journal()?;
        let before = Object {
            content: journal.before.clone(),
            journal: None,
            ..self.clone()
        };
        Some(JournaledWrites {
            before,
            writes: journal.writes.clone(),
            dirty,
        })
    }

    /// Returns the journal to continue after a write; call this before the write. `None` if the
    /// object keeps no journal.
    pub fn journal(&self) -> Option<Journal<Content>> {
        match self.current_journal() {
            Some((journal, dirty)) if !journal.is_full() => Some(Journal {
                dirty,
                ..journal.clone()
            }),
            _ => matches!(self.content, Content::One(_) | Content::Pages(_))
                .then(|| Journal::new(self.content.clone())),
        }
    }

    /// Adds the last write to the journal.
    pub fn add_to_journal(&mut self, mut journal: Journal<Content>, write: SymbolicWrite) {
        journal.writes.push(write);
        journal.after = Some(self.content.clone());
        self.journal = Some(Arc::new(journal));
    }

    /// Visits all terms in the journal, as roots for garbage collection.
    pub fn for_each_journal_term(&self, visit: &mut dyn VisitTerms) {
        let Some(journal) = self.journal.as_deref() else {
            return;
        };
        journal.before.for_each_term(visit);
        // The dirty bytes are found by comparing the terms of this content.
        if let Some(after) = &journal.after {
            after.for_each_term(visit);
        }
        for write in &journal.writes {
            visit.term(write.offset);
            visit.term(write.value);
        }
    }
}

impl Content {
    fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        match self {
            Content::One(buffer) => buffer.visit_terms(visit),
            Content::Pages(pages) => {
                pages
                    .iter()
                    .flatten()
                    .for_each(|page| page.visit_terms(visit));
            }
            Content::Region(region) => region.for_each_term(visit),
            Content::Ended(_) | Content::EndedPages(_) | Content::UnmappedRun => {}
        }
    }

    /// Returns the offsets of bytes that differ; `None` if there are more than `most`, or the kinds
    /// of content differ.
    fn differences(&self, other: &Content, most: usize) -> Option<Vec<u64>> {
        let mut all = Vec::new();
        let mut add = |number: usize, one: &Buffer, other: &Buffer| {
            let start = number * PAGE;
            let found = one.differences(other).map(|at| (start + at) as u64);
            all.extend(found.take(most + 1 - all.len()));
            all.len() <= most
        };
        match (self, other) {
            (Content::One(one), Content::One(other)) => add(0, one, other).then_some(all),
            (Content::Pages(one), Content::Pages(other)) => {
                let zeros = Buffer::zeroed(PAGE);
                let pages = one.iter().zip(other.iter()).enumerate();
                let is_few = pages.into_iter().all(|(number, pair)| match pair {
                    (None, None) => true,
                    (Some(one), Some(other)) if Arc::ptr_eq(one, other) => true,
                    (one, other) => {
                        let [one, other] =
                            [one, other].map(|page| page.as_deref().unwrap_or(&zeros));
                        add(number, one, other)
                    }
                });
                is_few.then_some(all)
            }
            _ => None,
        }
    }

    /// Returns whether both contents are the same allocation.
    fn is_same(&self, other: &Content) -> bool {
        match (self, other) {
            (Content::One(one), Content::One(other)) => Arc::ptr_eq(one, other),
            (Content::Pages(one), Content::Pages(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

fn room_in_page(offset: u64) -> usize {
    PAGE - offset as usize % PAGE
}

/// Joins bytes, least significant first, into one value.
pub fn join_bytes(arena: &mut Arena, bytes: &[Value]) -> Value {
    if bytes.iter().all(|byte| byte.term.is_none()) {
        let bits = bytes
            .iter()
            .rev()
            .fold(0, |bits, byte| bits << 8 | byte.bits);
        return Value::concrete(bits);
    }
    let mut term = bytes[0].to_term(arena, 8);
    for byte in &bytes[1..] {
        let high = byte.to_term(arena, 8);
        term = arena.concat(high, term);
    }
    Value::of_term(arena, term)
}
