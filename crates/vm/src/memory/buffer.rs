//! A buffer of at most one page: concrete bytes with a sparse overlay of symbolic ones.

use everett_expr::{Arena, Digest128, ExprId, VisitTerms};
use smallvec::SmallVec;
use std::cell::Cell;
use std::hash::{Hash, Hasher};

use crate::value::Value;

/// Page size: large objects consist of pages, the unit that is copied at the first write after a
/// fork.
pub const PAGE: usize = 4096;

const LINE: usize = 16;

/// A byte of a term: byte `index` of the `of` bytes that were stored together.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
struct SymbolicByte {
    term: Option<ExprId>,
    index: u8,
    of: u8,
}

type Line = [SymbolicByte; LINE];

thread_local! {
    /// Total size of all buffers that the thread has created.
    static MADE: Cell<u64> = const { Cell::new(0) };
}

/// Returns the total size of all buffers that this thread has created so far, including dropped
/// ones. To measure the memory of a process takes longer than most instructions; the growth of this
/// number bounds the growth of the memory.
pub fn made_bytes() -> u64 {
    MADE.get()
}

fn count_made(bytes: usize) {
    MADE.set(MADE.get() + bytes as u64);
}

fn new_line() -> Box<Line> {
    count_made(size_of::<Line>());
    Box::default()
}

/// Maximum number of bytes of memory that a symbolic byte takes: the byte itself, its entry in a
/// line, and its share of the table of lines.
pub const MEMORY_OF_SYMBOLIC: u64 = 1 + size_of::<SymbolicByte>() as u64 + 1;

/// The bytes of an object, or of one page of it.
#[derive(Debug)]
pub struct Buffer {
    bytes: SmallVec<[u8; 32]>,
    /// One entry per 16 bytes; empty if nothing is symbolic.
    overlay: Vec<Option<Box<Line>>>,
}

impl Clone for Buffer {
    fn clone(&self) -> Buffer {
        let lines = self.overlay.iter().flatten().count();
        let table = self.overlay.len() * size_of::<usize>();
        count_made(size_of::<Buffer>() + self.len() + table + lines * size_of::<Line>());
        Buffer {
            bytes: self.bytes.clone(),
            overlay: self.overlay.clone(),
        }
    }
}

impl Buffer {
    /// Creates a buffer of zeros.
    pub fn zeroed(size: usize) -> Buffer {
        count_made(size_of::<Buffer>() + size);
        Buffer {
            bytes: SmallVec::from_elem(0, size),
            overlay: Vec::new(),
        }
    }

    /// Creates a buffer from these bytes, padded with zeros to `size`.
    pub fn with_bytes(bytes: &[u8], size: usize) -> Buffer {
        count_made(size_of::<Buffer>() + size);
        let mut buffer = SmallVec::from_slice(bytes);
        buffer.resize(size, 0);
        Buffer {
            bytes: buffer,
            overlay: Vec::new(),
        }
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether the size is zero.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns whether no byte is symbolic.
    #[inline(always)]
    pub fn is_concrete(&self) -> bool {
        self.overlay.is_empty()
    }

    /// Returns the concrete bytes. Those under symbolic bytes are meaningless.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn symbolic(&self, at: usize) -> Option<SymbolicByte> {
        let line = self.overlay.get(at / LINE)?.as_ref()?;
        let byte = line[at % LINE];
        byte.term.is_some().then_some(byte)
    }

    /// Returns the number of bytes that were stored together with the value at a position if a term
    /// begins there, and otherwise 1.
    pub(super) fn width_at(&self, at: usize) -> usize {
        match self.symbolic(at) {
            Some(byte) if byte.index == 0 => usize::from(byte.of).max(1),
            _ => 1,
        }
    }

    /// Returns the positions of bytes that differ from those of another buffer.
    pub(super) fn differences<'b>(&'b self, other: &'b Buffer) -> impl Iterator<Item = usize> + 'b {
        let pairs = self.parts().zip(other.parts()).enumerate();
        let others = pairs.filter(|(_, (one, other))| one != other);
        others.map(|(at, _)| at)
    }

    /// Returns each byte in canonical form: its value, or its term and the byte index in it.
    fn parts(&self) -> impl Iterator<Item = (u8, Option<(ExprId, u8)>)> + '_ {
        (0..self.len()).map(|at| match self.symbolic(at) {
            Some(SymbolicByte {
                term: Some(term),
                index,
                ..
            }) => (0, Some((term, index))),
            _ => (self.bytes[at], None),
        })
    }

    /// Returns whether a range contains a symbolic byte.
    pub fn has_symbolic(&self, at: usize, len: usize) -> bool {
        !self.overlay.is_empty() && self.concrete_run(at, len).len() < len
    }

    /// Returns the concrete bytes from a position up to the first symbolic one, at most `limit`.
    pub fn concrete_run(&self, at: usize, limit: usize) -> &[u8] {
        let bytes = &self.bytes[at..];
        let bytes = &bytes[..bytes.len().min(limit)];
        if self.overlay.is_empty() {
            return bytes;
        }
        let mut run = 0;
        while run < bytes.len() {
            match &self.overlay[(at + run) / LINE] {
                None => run += LINE - (at + run) % LINE,
                Some(line) if line[(at + run) % LINE].term.is_some() => break,
                Some(_) => run += 1,
            }
        }
        &bytes[..run.min(bytes.len())]
    }

    /// Copies a range within the buffer; source and destination may overlap.
    pub fn copy_within(&mut self, to: usize, from: usize, len: usize) {
        if self.has_symbolic(from, len) {
            let copy = self.clone();
            return self.copy_from(to, &copy, from, len);
        }
        self.bytes.copy_within(from..from + len, to);
        self.clear_symbolic(to, len);
    }

    /// Loads `len` (1 to 8) bytes, little-endian.
    #[inline(always)]
    pub fn load(&self, arena: &mut Arena, at: usize, len: usize) -> Value {
        if self.overlay.is_empty() {
            return Value::concrete(read_le(&self.bytes, at, len));
        }
        self.load_overlaid(arena, at, len)
    }

    fn load_overlaid(&self, arena: &mut Arena, at: usize, len: usize) -> Value {
        if !self.has_symbolic(at, len) {
            return Value::concrete(read_le(&self.bytes, at, len));
        }
        if let Some(first) = self.symbolic(at)
            && first.index == 0
            && usize::from(first.of) == len
            && (1..len).all(|i| {
                self.symbolic(at + i).is_some_and(|b| {
                    b.term == first.term && usize::from(b.index) == i && b.of == first.of
                })
            })
            && let Some(term) = first.term
        {
            return Value::of_term(arena, term);
        }
        let mut term = self.byte_term(arena, at);
        for i in 1..len {
            let high = self.byte_term(arena, at + i);
            term = arena.concat(high, term);
        }
        Value::of_term(arena, term)
    }

    /// Returns one byte as an 8-bit term.
    pub fn byte_term(&self, arena: &mut Arena, at: usize) -> ExprId {
        match self.symbolic(at) {
            Some(SymbolicByte {
                term: Some(term),
                index,
                ..
            }) => arena.extract(term, u32::from(index) * 8, 8),
            _ => arena.constant(8, u64::from(self.bytes[at])),
        }
    }

    /// Returns one byte as a value.
    pub fn byte(&self, arena: &mut Arena, at: usize) -> Value {
        match self.symbolic(at) {
            Some(_) => {
                let term = self.byte_term(arena, at);
                Value::of_term(arena, term)
            }
            None => Value::concrete(u64::from(self.bytes[at])),
        }
    }

    /// Stores `len` (1 to 8) bytes, little-endian. A term must be `8 * len` bits wide.
    #[inline(always)]
    pub fn store(&mut self, at: usize, len: usize, value: Value) {
        match value.term {
            None => {
                write_le(&mut self.bytes, at, len, value.bits);
                if !self.overlay.is_empty() {
                    self.clear_symbolic(at, len);
                }
            }
            Some(term) => self.store_term(at, len, term),
        }
    }

    fn store_term(&mut self, at: usize, len: usize, term: ExprId) {
        if self.overlay.is_empty() {
            self.overlay.resize(self.bytes.len().div_ceil(LINE), None);
        }
        for i in 0..len {
            let line = self.overlay[(at + i) / LINE].get_or_insert_with(new_line);
            line[(at + i) % LINE] = SymbolicByte {
                term: Some(term),
                index: i as u8,
                of: len as u8,
            };
        }
    }

    /// Removes the symbolic overlay of a range. Its bytes become the concrete ones under the
    /// overlay.
    pub fn clear_symbolic(&mut self, at: usize, len: usize) {
        if self.overlay.is_empty() {
            return;
        }
        for i in at..at + len {
            if let Some(line) = &mut self.overlay[i / LINE] {
                line[i % LINE] = SymbolicByte::default();
            }
        }
    }

    /// Copies a range of another buffer, including terms.
    pub fn copy_from(&mut self, at: usize, from: &Buffer, from_at: usize, len: usize) {
        self.bytes[at..at + len].copy_from_slice(&from.bytes[from_at..from_at + len]);
        self.clear_symbolic(at, len);
        if !from.has_symbolic(from_at, len) {
            return;
        }
        if self.overlay.is_empty() {
            self.overlay.resize(self.bytes.len().div_ceil(LINE), None);
        }
        for i in 0..len {
            if let Some(byte) = from.symbolic(from_at + i) {
                let line = self.overlay[(at + i) / LINE].get_or_insert_with(new_line);
                line[(at + i) % LINE] = byte;
            }
        }
    }

    /// Overwrites bytes with concrete ones.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.clear_symbolic(at, bytes.len());
    }

    /// Fills a range with one concrete byte.
    pub fn fill(&mut self, at: usize, len: usize, byte: u8) {
        self.bytes[at..at + len].fill(byte);
        self.clear_symbolic(at, len);
    }

    /// Continues a digest by content: the concrete bytes and the terms of the symbolic ones. The
    /// digest is the same on every run and machine, and does not depend on how terms are stored: a
    /// word gives the same digest as its bytes one by one.
    #[must_use]
    pub fn digest(&self, arena: &mut Arena, digest: Digest128) -> Digest128 {
        if self.is_concrete() {
            return digest.then_bytes(&self.bytes).then_u64(0);
        }
        let mut known = self.bytes.clone();
        let mut symbolic = Vec::new();
        for (at, below) in known.iter_mut().enumerate() {
            if self.symbolic(at).is_none() {
                continue;
            }
            let term = self.byte_term(arena, at);
            match arena.as_const(term) {
                Some(bits) => *below = bits as u8,
                None => {
                    *below = 0;
                    symbolic.push((at as u64, arena.digest(term)));
                }
            }
        }
        let digest = digest.then_bytes(&known).then_u64(symbolic.len() as u64);
        let terms = symbolic.into_iter();
        terms.fold(digest, |digest, (at, term)| {
            digest.then_u64(at).then_u64(term)
        })
    }

    /// Returns the symbolic bytes as they are stored: the position, the term, the byte index in the
    /// term, and the number of bytes of the term.
    pub fn symbolic_bytes(&self) -> impl Iterator<Item = (usize, ExprId, u8, u8)> + '_ {
        let lines = self.overlay.iter().zip((0..).step_by(LINE));
        let lines = lines.filter_map(|(line, first)| Some((line.as_ref()?, first)));
        lines.flat_map(|(line, first)| {
            let bytes = line.iter().zip(first..);
            bytes.filter_map(|(byte, at)| Some((at, byte.term?, byte.index, byte.of)))
        })
    }

    /// Makes a byte symbolic; the inverse of [`Buffer::symbolic_bytes`].
    pub fn set_symbolic(&mut self, at: usize, term: ExprId, index: u8, of: u8) {
        if at >= self.bytes.len() {
            return;
        }
        if self.overlay.is_empty() {
            self.overlay.resize(self.bytes.len().div_ceil(LINE), None);
        }
        let line = self.overlay[at / LINE].get_or_insert_with(new_line);
        line[at % LINE] = SymbolicByte {
            term: Some(term),
            index,
            of,
        };
    }

    /// Returns all terms, to mark the live ones.
    pub fn terms(&self) -> impl Iterator<Item = ExprId> + '_ {
        self.overlay
            .iter()
            .flatten()
            .flat_map(|line| line.iter().filter_map(|byte| byte.term))
    }

    /// Visits all terms, unless they were visited already: states share buffers.
    pub fn visit_terms(&self, visit: &mut dyn VisitTerms) {
        let address = std::ptr::from_ref(self) as usize;
        if !self.overlay.is_empty() && visit.is_new(address) {
            self.terms().for_each(|term| visit.term(term));
        }
    }
}

/// Buffers are equal if all bytes are: concrete bytes by value, symbolic ones by term and byte
/// index. The concrete bytes under symbolic ones do not count.
impl PartialEq for Buffer {
    fn eq(&self, other: &Buffer) -> bool {
        match self.is_concrete() && other.is_concrete() {
            true => self.bytes == other.bytes,
            false => self.len() == other.len() && self.parts().eq(other.parts()),
        }
    }
}

impl Eq for Buffer {}

impl Hash for Buffer {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.len().hash(hasher);
        if self.is_concrete() {
            return hasher.write(&self.bytes);
        }
        let known: SmallVec<[u8; 32]> = self.parts().map(|(known, _)| known).collect();
        hasher.write(&known);
        let symbolic = self
            .parts()
            .enumerate()
            .filter(|(_, (_, term))| term.is_some());
        symbolic.for_each(|(at, (_, term))| (at, term).hash(hasher));
    }
}

#[inline(always)]
fn read_le(bytes: &[u8], at: usize, len: usize) -> u64 {
    let bytes = &bytes[at..at + len];
    match len {
        1 => u64::from(bytes[0]),
        2 => u64::from(u16::from_le_bytes([bytes[0], bytes[1]])),
        4 => u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        8 => u64::from_le_bytes([
            bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
        ]),
        _ => bytes
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
    }
}

#[inline(always)]
fn write_le(bytes: &mut [u8], at: usize, len: usize, value: u64) {
    let bytes = &mut bytes[at..at + len];
    match len {
        1 => bytes[0] = value as u8,
        2 => bytes.copy_from_slice(&(value as u16).to_le_bytes()),
        4 => bytes.copy_from_slice(&(value as u32).to_le_bytes()),
        8 => bytes.copy_from_slice(&value.to_le_bytes()),
        _ => bytes.copy_from_slice(&value.to_le_bytes()[..len]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::DefaultHasher;

    fn digest(buffer: &Buffer) -> u64 {
        let mut hasher = DefaultHasher::new();
        buffer.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn bytes_of_one_term_are_different_bytes() {
        let mut arena = Arena::new();
        let array = arena.array(0, "wide", 4);
        let bytes = [0, 1].map(|at| arena.read(array, at));
        let term = arena.concat(bytes[1], bytes[0]);
        let mut whole = Buffer::zeroed(2);
        whole.store(0, 2, Value::of_term(&arena, term));
        let byte = |at: usize| {
            let mut one = Buffer::with_bytes(&[7], 1);
            one.copy_from(0, &whole, at, 1);
            one
        };
        assert_ne!(byte(0), byte(1));
        assert_ne!(digest(&byte(0)), digest(&byte(1)));
        assert_eq!(byte(1), byte(1));
        let mut swapped = Buffer::zeroed(2);
        swapped.copy_from(0, &whole, 1, 1);
        swapped.copy_from(1, &whole, 0, 1);
        assert_ne!(whole, swapped);
        assert_ne!(digest(&whole), digest(&swapped));
    }

    #[test]
    fn what_lies_below_symbolic_bytes_makes_no_difference() {
        let mut arena = Arena::new();
        let array = arena.array(0, "byte", 1);
        let term = arena.read(array, 0);
        let [mut one, mut other] = [3, 4].map(|below| Buffer::with_bytes(&[below, 9], 2));
        assert_ne!(one, other);
        for buffer in [&mut one, &mut other] {
            let value = Value::of_term(&arena, term);
            buffer.store(0, 1, value);
        }
        assert_eq!(one, other);
        assert_eq!(digest(&one), digest(&other));
        one.write(0, &[5]);
        let plain = Buffer::with_bytes(&[5, 9], 2);
        assert_eq!(one, plain);
        assert_eq!(digest(&one), digest(&plain));
    }

    #[test]
    fn digests_are_by_content() {
        // The content, and unrelated terms that are created before it.
        let content_digests = |unrelated: u32| {
            let mut arena = Arena::new();
            let other = arena.array(1, "other", 16);
            for index in 0..unrelated {
                arena.read(other, index);
            }
            let array = arena.array(0, "wide", 4);
            let bytes = [0, 1].map(|at| arena.read(array, at));
            let word = arena.concat(bytes[1], bytes[0]);
            let mut whole = Buffer::with_bytes(&[1, 2, 3, 4], 20);
            let mut pieces = Buffer::with_bytes(&[1, 0, 0, 4], 20);
            whole.store(1, 2, Value::of_term(&arena, word));
            for (at, byte) in bytes.into_iter().enumerate() {
                pieces.store(at + 1, 1, Value::of_term(&arena, byte));
            }
            let mut swapped = whole.clone();
            swapped.copy_from(1, &whole, 2, 1);
            swapped.copy_from(2, &whole, 1, 1);
            let plain = Buffer::with_bytes(&[1, 2, 3, 4], 20);
            let mut cleared = whole.clone();
            cleared.write(1, &[2, 3]);
            // The high byte of an extended byte is concrete.
            let extended = arena.zext(bytes[0], 16);
            let mut zero = Buffer::zeroed(2);
            zero.store(0, 2, Value::of_term(&arena, extended));
            let mut byte = Buffer::with_bytes(&[9, 0], 2);
            byte.store(0, 1, Value::of_term(&arena, bytes[0]));
            [whole, pieces, swapped, plain, cleared, zero, byte]
                .map(|buffer| buffer.digest(&mut arena, Digest128::new()).finish())
        };
        let digests = content_digests(0);
        let [whole, pieces, swapped, plain, cleared, zero, byte] = digests;
        assert_eq!(whole, pieces);
        assert_eq!(plain, cleared);
        assert_eq!(zero, byte);
        assert!(whole != swapped && whole != plain && swapped != plain && zero != whole);
        assert_eq!(content_digests(7), digests, "ids make no difference");
    }
}
