//! Sequences of bytes, concrete or symbolic: the contents of files and output streams.
//!
//! Cloning is O(1); clones share pages until one of them writes.

use everett_expr::{Arena, ArrayId, Assignment, EvalScratch, VisitTerms};
use everett_vm::{Buffer, PAGE, Pages, Value};
use std::ops::Range;
use triomphe::Arc;

/// Bytes written to an output stream; it only grows at its end.
pub type Output = Bytes;

/// Initial size of the first page, which doubles as needed: a line of output does not cost every
/// state a whole page.
const FIRST: usize = 64;

/// An empty page.
const ZEROS: [u8; PAGE] = [0; PAGE];

/// Concrete bytes that many states share. They may be loaded lazily, but never change.
pub trait ByteSource: Send + Sync + std::fmt::Debug {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes; fewer than [`ByteSource::len`] if they cannot be loaded.
    fn bytes(&self) -> &[u8];
}

impl ByteSource for std::sync::Arc<[u8]> {
    fn len(&self) -> u64 {
        (**self).len() as u64
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

impl ByteSource for &'static str {
    fn len(&self) -> u64 {
        str::len(self) as u64
    }

    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// The immutable base under the pages.
#[derive(Clone, Debug)]
struct Base {
    source: std::sync::Arc<dyn ByteSource>,
    /// Length of the part that is still visible.
    len: u64,
}

impl Base {
    /// The visible part of a range.
    fn range(&self, offset: u64, len: usize) -> &[u8] {
        if offset >= self.len {
            return &[];
        }
        let all = self.source.bytes();
        let end = (all.len() as u64).min(self.len);
        let start = offset.min(end) as usize;
        let end = offset.saturating_add(len as u64).min(end) as usize;
        &all[start..end]
    }
}

/// A sequence of bytes.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    base: Option<Base>,
    /// A missing page has the contents of the base, or zeros. Bytes at and beyond `len` are zeros.
    pages: Option<Pages>,
    len: u64,
    /// Every present page has full size.
    whole: bool,
}

impl Bytes {
    /// A copy of these bytes.
    pub fn from_concrete(bytes: &[u8]) -> Bytes {
        let page = |part: &[u8]| Some(Arc::new(Buffer::with_bytes(part, part.len())));
        let pages: Vec<_> = bytes.chunks(PAGE).map(page).collect();
        Bytes {
            base: None,
            pages: Some(Arc::new(pages)),
            len: bytes.len() as u64,
            whole: false,
        }
    }

    /// The text of a file that every host has. It takes no memory until a program changes it.
    pub fn from_text(text: &'static str) -> Bytes {
        Bytes::from_source(std::sync::Arc::new(text))
    }

    /// A sequence that refers to these bytes and does not copy them.
    pub fn from_source(source: std::sync::Arc<dyn ByteSource>) -> Bytes {
        let len = source.len();
        Bytes {
            base: Some(Base { source, len }),
            pages: None,
            len,
            whole: false,
        }
    }

    /// Whether both are clones of the same sequence, unchanged since then.
    pub fn is_same(&self, other: &Bytes) -> bool {
        let same_base = match (&self.base, &other.base) {
            (None, None) => true,
            (Some(own), Some(other)) => {
                own.len == other.len && std::sync::Arc::ptr_eq(&own.source, &other.source)
            }
            _ => false,
        };
        let same_pages = match (&self.pages, &other.pages) {
            (None, None) => true,
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            _ => false,
        };
        self.len == other.len && same_base && same_pages
    }

    /// Whether both share this page.
    pub fn is_same_page(&self, other: &Bytes, index: usize) -> bool {
        let same = match (self.page(index), other.page(index)) {
            (None, None) => true,
            (Some(own), Some(other)) => std::ptr::eq(own, other),
            _ => false,
        };
        same && self.base_page(index).len() == other.base_page(index).len()
    }

    /// All bytes of a symbolic input array.
    pub fn from_input(arena: &mut Arena, input: ArrayId, size: u32) -> Bytes {
        let mut bytes = Bytes::default();
        let mut at = 0;
        while at < size {
            let room = (size - at).min(PAGE as u32);
            bytes.append(&input_bytes(arena, input, at, room));
            at += room;
        }
        bytes
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether both are the same concrete bytes.
    pub fn has_same_bytes(&self, other: &Bytes) -> bool {
        let is_same = |offset| {
            let (own, other) = (
                self.read(offset, PAGE as u64),
                other.read(offset, PAGE as u64),
            );
            own.is_concrete() && other.is_concrete() && own.bytes() == other.bytes()
        };
        self.len == other.len && (0..self.len).step_by(PAGE).all(is_same)
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory that its own pages take.
    pub fn held(&self) -> u64 {
        let pages = self.pages.as_ref();
        pages.map_or(0, |pages| {
            let present = pages.iter().flatten().count();
            (present * PAGE + size_of_val(pages.as_slice())) as u64
        })
    }

    fn page(&self, index: usize) -> Option<&Buffer> {
        self.pages.as_ref()?.get(index)?.as_deref()
    }

    /// The part of the base under a page.
    fn base_page(&self, index: usize) -> &[u8] {
        let base = self.base.as_ref();
        base.map_or(&[], |base| base.range(index as u64 * PAGE as u64, PAGE))
    }

    /// The page for writing, at least `needed` bytes long.
    fn page_mut(&mut self, index: usize, needed: usize) -> &mut Buffer {
        if self.page(index).is_none() && self.base.is_some() {
            let page = Arc::new(Buffer::with_bytes(self.base_page(index), PAGE));
            let pages = Arc::make_mut(self.pages.get_or_insert_with(Default::default));
            if pages.len() <= index {
                pages.resize(index + 1, None);
            }
            pages[index] = Some(page);
        }
        let pages = Arc::make_mut(self.pages.get_or_insert_with(|| Arc::new(Vec::new())));
        if pages.len() <= index {
            pages.resize(index + 1, None);
        }
        let whole = self.whole || index > 0 || pages.len() > 1;
        let size = if whole {
            PAGE
        } else {
            needed.next_power_of_two().clamp(FIRST, PAGE)
        };
        let page = pages[index].get_or_insert_with(|| Arc::new(Buffer::zeroed(size)));
        if page.len() < needed {
            let mut larger = Buffer::zeroed(size);
            larger.copy_from(0, page, 0, page.len());
            *page = Arc::new(larger);
        }
        Arc::make_mut(page)
    }

    /// A copy of a range, truncated at the end.
    pub fn read(&self, offset: u64, len: u64) -> Buffer {
        let len = len.min(self.len.saturating_sub(offset)) as usize;
        if let (Some(base), None) = (&self.base, &self.pages) {
            return Buffer::with_bytes(base.range(offset, len), len);
        }
        let mut copy = Buffer::zeroed(len);
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let (index, within) = ((at / PAGE as u64) as usize, (at % PAGE as u64) as usize);
            let room = (PAGE - within).min(len - done);
            if let Some(page) = self.page(index) {
                // A short page is followed by zeros.
                let held = page.len().saturating_sub(within).min(room);
                copy.copy_from(done, page, within, held);
            } else if let Some(base) = &self.base {
                copy.write(done, base.range(at, room));
            }
            done += room;
        }
        copy
    }

    /// Writes a range; a gap before it is filled with zeros.
    pub fn write(&mut self, offset: u64, from: &Buffer) {
        let mut done = 0;
        while done < from.len() {
            let at = offset + done as u64;
            let (index, within) = ((at / PAGE as u64) as usize, (at % PAGE as u64) as usize);
            let room = (PAGE - within).min(from.len() - done);
            self.page_mut(index, within + room)
                .copy_from(within, from, done, room);
            done += room;
        }
        if !from.is_empty() {
            self.len = self.len.max(offset + from.len() as u64);
        }
    }

    /// Appends bytes.
    pub fn append(&mut self, from: &Buffer) {
        self.write(self.len, from);
    }

    /// Truncates, or extends with zeros.
    pub fn set_len(&mut self, len: u64) {
        if let Some(base) = &mut self.base {
            base.len = base.len.min(len);
        }
        if len < self.len
            && let Some(pages) = &mut self.pages
        {
            let pages = Arc::make_mut(pages);
            let (index, within) = ((len / PAGE as u64) as usize, (len % PAGE as u64) as usize);
            pages.truncate(if within == 0 { index } else { index + 1 });
            if within > 0
                && let Some(Some(page)) = pages.get_mut(index)
                && page.len() > within
            {
                let page = Arc::make_mut(page);
                page.fill(within, page.len() - within, 0);
            }
        }
        self.len = len;
    }

    /// Zeroes a range without extending the sequence.
    pub fn clear(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.len);
        let mut at = offset;
        while at < end {
            let (index, within) = ((at / PAGE as u64) as usize, (at % PAGE as u64) as usize);
            let room = ((PAGE - within) as u64).min(end - at) as usize;
            if room == PAGE && self.base.is_none() {
                if let Some(pages) = &mut self.pages
                    && index < pages.len()
                {
                    Arc::make_mut(pages)[index] = None;
                }
            } else if self.has_data(index) {
                self.page_mut(index, within + room).fill(within, room, 0);
            }
            at += room as u64;
        }
    }

    fn has_data(&self, page: usize) -> bool {
        self.page(page).is_some() || !self.base_page(page).is_empty()
    }

    /// Offset of the next data (or the next hole) at or after an offset. The end counts as a hole.
    pub fn next_change(&self, offset: u64, to_data: bool) -> Option<u64> {
        let mut at = offset;
        while at < self.len {
            let page = at / PAGE as u64;
            if self.has_data(page as usize) == to_data {
                return Some(at);
            }
            at = (page + 1) * PAGE as u64;
        }
        (!to_data).then_some(self.len)
    }

    /// Its pages in full size, for mapping. Bytes after the end are zeros.
    pub fn pages(&mut self) -> Pages {
        if self.base.is_some() {
            for index in 0..self.len.div_ceil(PAGE as u64) as usize {
                if self.page(index).is_none() && !self.base_page(index).is_empty() {
                    self.page_mut(index, PAGE);
                }
            }
            self.base = None;
        }
        let pages = self.pages.get_or_insert_with(|| Arc::new(Vec::new()));
        if !self.whole {
            for page in Arc::make_mut(pages).iter_mut().flatten() {
                if page.len() < PAGE {
                    let mut larger = Buffer::zeroed(PAGE);
                    larger.copy_from(0, page, 0, page.len());
                    *page = Arc::new(larger);
                }
            }
            self.whole = true;
        }
        self.clear_tail();
        self.pages.clone().unwrap_or_default()
    }

    /// Replaces its pages, each of full size.
    pub fn set_pages(&mut self, pages: Option<Pages>) {
        self.pages = pages;
        self.whole = true;
        self.clear_tail();
    }

    /// Whether it holds exactly these pages.
    pub fn has_pages(&self, pages: &Pages) -> bool {
        let own = self.pages.as_ref();
        own.is_some_and(|own| Arc::ptr_eq(own, pages))
    }

    /// Zeroes the rest of the last page: a process that maps a file can write beyond the end, and
    /// others must not see that.
    fn clear_tail(&mut self) {
        let (index, within) = (self.len / PAGE as u64, (self.len % PAGE as u64) as usize);
        let page = self.page(index as usize);
        let is_clear = |page: &Buffer| {
            let rest = page.bytes().get(within..).unwrap_or_default();
            ZEROS.starts_with(rest) && !page.has_symbolic(within, rest.len())
        };
        if within > 0 && !page.is_none_or(is_clear) {
            let page = self.page_mut(index as usize, PAGE);
            page.fill(within, PAGE - within, 0);
        }
    }

    /// The bytes under an assignment to the symbolic inputs.
    pub fn evaluate(&self, arena: &mut Arena, assignment: &dyn Assignment) -> Vec<u8> {
        self.evaluate_range(0..self.len, arena, assignment)
    }

    /// The bytes of a range, under an assignment to the symbolic inputs.
    pub fn evaluate_range(
        &self,
        range: Range<u64>,
        arena: &mut Arena,
        assignment: &dyn Assignment,
    ) -> Vec<u8> {
        let range = range.start..range.end.min(self.len);
        let mut bytes = Vec::with_capacity(range.end.saturating_sub(range.start) as usize);
        let mut scratch = EvalScratch::new();
        // Page by page: a copy of the whole sequence would double the memory.
        for start in range.clone().step_by(PAGE) {
            let part = self.read(start, (range.end - start).min(PAGE as u64));
            let first = bytes.len();
            bytes.extend_from_slice(part.bytes());
            for (at, byte) in bytes[first..].iter_mut().enumerate() {
                if part.has_symbolic(at, 1) {
                    let term = part.byte_term(arena, at);
                    *byte = arena.eval(term, assignment, &mut scratch) as u8;
                }
            }
        }
        bytes
    }

    /// Visits all terms, so that the arena can mark live ones.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        let pages = self.pages.iter().flat_map(|pages| pages.iter()).flatten();
        pages.for_each(|page| page.visit_terms(visit));
    }
}

/// Bytes of a symbolic input array as a buffer.
pub fn input_bytes(arena: &mut Arena, input: ArrayId, from: u32, len: u32) -> Buffer {
    let mut buffer = Buffer::zeroed(len as usize);
    for at in 0..len {
        let term = arena.read(input, from + at);
        buffer.store(
            at as usize,
            1,
            Value {
                bits: 0,
                term: Some(term),
            },
        );
    }
    buffer
}

/// Joins several buffers.
pub fn join(mut parts: Vec<Buffer>) -> Buffer {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let len = parts.iter().map(Buffer::len).sum();
    let mut all = Buffer::zeroed(len);
    let mut at = 0;
    for part in &parts {
        all.copy_from(at, part, 0, part.len());
        at += part.len();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concrete(bytes: &Bytes) -> Vec<u8> {
        bytes.evaluate(&mut Arena::new(), &|_: ArrayId, _: u32| 0)
    }

    #[test]
    fn what_was_written_is_read() {
        let mut bytes = Bytes::default();
        let mut expected = Vec::new();
        for round in 0..200u32 {
            let part: Vec<u8> = (0..round).map(|i| (i * 7 + round) as u8).collect();
            bytes.append(&Buffer::with_bytes(&part, part.len()));
            expected.extend_from_slice(&part);
        }
        assert_eq!(concrete(&bytes), expected);
        assert_eq!(bytes.read(4090, 20).bytes(), &expected[4090..4110]);
        assert_eq!(bytes.read(expected.len() as u64, 5).len(), 0);
    }

    #[test]
    fn gaps_and_cuts_are_zeros() {
        let mut bytes = Bytes::from_concrete(b"hello");
        let clone = bytes.clone();
        bytes.set_len(2);
        bytes.set_len(6);
        assert_eq!(concrete(&bytes), b"he\0\0\0\0");
        bytes.write(5000, &Buffer::with_bytes(b"x", 1));
        assert_eq!(bytes.len(), 5001);
        assert_eq!(bytes.read(1, 3).bytes(), b"e\0\0");
        assert_eq!(bytes.read(4999, 9).bytes(), b"\0x");
        assert_eq!(concrete(&clone), b"hello");
    }

    #[test]
    fn a_source_is_shared_until_it_is_written() {
        let all: Vec<u8> = (0..10_000u32).map(|at| at as u8).collect();
        let source: std::sync::Arc<[u8]> = all.clone().into();
        let mut bytes = Bytes::from_source(std::sync::Arc::new(source));
        let clone = bytes.clone();
        assert_eq!(bytes.read(4000, 200).bytes(), &all[4000..4200]);
        bytes.write(5000, &Buffer::with_bytes(b"xyz", 3));
        let mut expected = all.clone();
        expected[5000..5003].copy_from_slice(b"xyz");
        assert_eq!(concrete(&bytes), expected);
        bytes.set_len(9000);
        bytes.set_len(9500);
        expected[9000..].fill(0);
        expected.truncate(9500);
        assert_eq!(concrete(&bytes), expected);
        bytes.clear(100, 8000);
        expected[100..8100].fill(0);
        assert_eq!(concrete(&bytes), expected);
        assert_eq!(concrete(&clone), all);
        assert!(clone.is_same(&clone.clone()) && !clone.is_same(&bytes));
    }

    #[test]
    fn holes_are_found() {
        let mut bytes = Bytes::default();
        bytes.write(8192, &Buffer::with_bytes(b"data", 4));
        bytes.set_len(20_000);
        assert_eq!(bytes.next_change(0, true), Some(8192));
        assert_eq!(bytes.next_change(0, false), Some(0));
        assert_eq!(bytes.next_change(8193, true), Some(8193));
        assert_eq!(bytes.next_change(8193, false), Some(12_288));
        assert_eq!(bytes.next_change(12_288, true), None);
        bytes.clear(8192, 4096);
        assert_eq!(bytes.next_change(0, true), None);
        assert_eq!(bytes.next_change(0, false), Some(0));
    }

    #[test]
    fn symbolic_bytes_keep_their_terms() {
        let mut arena = Arena::new();
        let input = arena.array(0, "stdin", 5000);
        let bytes = Bytes::from_input(&mut arena, input, 5000);
        let value = |_: ArrayId, index: u32| index as u8;
        let expected: Vec<u8> = (0..5000u32).map(|i| i as u8).collect();
        assert_eq!(bytes.evaluate(&mut arena, &value), expected);
        let mut terms = 0;
        bytes.for_each_term(&mut |_| terms += 1);
        assert_eq!(terms, 5000);
    }
}
