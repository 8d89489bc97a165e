//! Copies and scans through symbolic pointers that stay symbolic, with the same effect as the loops
//! of a libc: `table[hash(key)] = entry` is one path, not one path per position.

use everett_expr::ExprId;
use std::ops::Range;

use super::bytes::overlapping_copy;
use super::scan::{ByteMatch, Comparison, Pair};
use crate::access::AccessTarget;
use crate::value::Value;
use crate::vm::{Interrupt, Vm};

/// Maximum number of bytes of a copy times the positions that they can have. Beyond it, the pointer
/// is concretised.
const MAX_CELLS: u64 = 1 << 17;
/// Maximum number of positions of a byte that a scan reads.
const MAX_PLACES: u64 = 1 << 12;
/// Maximum number of bytes that are accessed at once.
const PIECE: u64 = 8;

/// A range of bytes that a copy reads or writes.
#[derive(Copy, Clone)]
struct Operand {
    pointer: Value,
    target: AccessTarget,
}

impl Operand {
    fn places(&self) -> u64 {
        match self.target {
            AccessTarget::At(_) => 1,
            AccessTarget::Within { positions, .. } => positions.count(),
        }
    }
}

impl Vm<'_> {
    /// Returns whether an operation can keep these pointers symbolic. The detection of data races
    /// needs one address per access.
    pub(crate) fn stays_symbolic(&self, pointers: &[Value]) -> bool {
        let mut pointers = pointers.iter();
        pointers.any(|pointer| pointer.term.is_some()) && !self.checks_races()
    }

    fn operand(&mut self, pointer: Value, len: u64, write: bool) -> Result<Operand, Interrupt> {
        let target = self.resolve_access(pointer, len, write)?;
        Ok(Operand { pointer, target })
    }

    /// Copies `len` bytes. Returns `false` without changes if the pointers have to be concretised.
    /// `name` is the name of an operation whose ranges must not overlap.
    pub(crate) fn copy_through(
        &mut self,
        to: Value,
        from: Value,
        len: u64,
        name: Option<&str>,
    ) -> Result<bool, Interrupt> {
        if len == 0 || !self.stays_symbolic(&[to, from]) {
            return Ok(false);
        }
        // Check the destination first: an out-of-bounds write is worse than an out-of-bounds read.
        let to = self.operand(to, len, true)?;
        let from = self.operand(from, len, false)?;
        let places = to.places().max(from.places());
        if places == 1 || len.saturating_mul(places) > MAX_CELLS {
            return Ok(false);
        }
        if let Some(name) = name {
            let apart = self.are_apart((to.pointer, len), (from.pointer, len));
            // Compilers emit a self-copy for `*p = *p`.
            let [first, second] = [to, from].map(|one| one.pointer.to_term(self.arena, 64));
            let same = self.arena.eq(first, second);
            let allowed = self.arena.or(apart, same);
            self.require(allowed, name, len)?;
        }
        self.copy_pieces(to, from, len)?;
        Ok(true)
    }

    /// Copies `len` bytes of a string, of which `read` were read, and fills the rest of `total` bytes with zeros.
    /// Returns `false` without changes if the pointers have to be concretised.
    pub(crate) fn put_through(
        &mut self,
        name: &str,
        (to, total): (Value, u64),
        (from, read): (Value, u64),
        len: u64,
    ) -> Result<bool, Interrupt> {
        if total == 0 || !self.stays_symbolic(&[to, from]) {
            return Ok(false);
        }
        let target = self.operand(to, total, true)?;
        let source = match len {
            0 => None,
            _ => Some(self.operand(from, len, false)?),
        };
        let places = source
            .map_or(1, |source| source.places())
            .max(target.places());
        if places == 1 || total.saturating_mul(places) > MAX_CELLS {
            return Ok(false);
        }
        let apart = self.are_apart((to, total), (from, read));
        self.require(apart, name, read)?;
        if let Some(source) = source {
            self.copy_pieces(target, source, len)?;
        }
        self.fill_pieces(target, len..total, 0)?;
        Ok(true)
    }

    fn copy_pieces(&mut self, to: Operand, from: Operand, len: u64) -> Result<(), Interrupt> {
        let mut values = Vec::new();
        for (at, size) in pieces(0..len) {
            values.push(self.load_piece(from, at, size)?);
        }
        for ((at, size), value) in pieces(0..len).zip(values) {
            self.store_piece(to, at, size, value)?;
        }
        Ok(())
    }

    fn fill_pieces(&mut self, to: Operand, range: Range<u64>, byte: u8) -> Result<(), Interrupt> {
        for (at, size) in pieces(range) {
            let bits = u64::from_le_bytes([byte; 8]) >> (8 * (PIECE - size));
            self.store_piece(to, at, size, Value::concrete(bits))?;
        }
        Ok(())
    }

    /// Fills `len` bytes with a byte. Returns `false` as [`Vm::copy_through`] does.
    pub(crate) fn fill_through(
        &mut self,
        to: Value,
        byte: u8,
        len: u64,
    ) -> Result<bool, Interrupt> {
        if len == 0 || !self.stays_symbolic(&[to]) {
            return Ok(false);
        }
        let to = self.operand(to, len, true)?;
        if to.places() == 1 || len.saturating_mul(to.places()) > MAX_CELLS {
            return Ok(false);
        }
        self.fill_pieces(to, 0..len, byte)?;
        Ok(true)
    }

    fn load_piece(&mut self, from: Operand, at: u64, size: u64) -> Result<Value, Interrupt> {
        // The whole range is in bounds, so an access to a piece asks nothing.
        let pointer = match from.target {
            AccessTarget::At(address) => Value::concrete(address + at),
            AccessTarget::Within { .. } => self.offset_pointer(from.pointer, at),
        };
        self.load(pointer, size as usize)
    }

    fn store_piece(
        &mut self,
        to: Operand,
        at: u64,
        size: u64,
        value: Value,
    ) -> Result<(), Interrupt> {
        match self.shifted(to.target, at, size) {
            Some(target) => self.store_at(target, size as usize, value),
            None => Err(Interrupt::EndPath),
        }
    }

    /// Returns the condition that two ranges do not overlap.
    fn are_apart(&mut self, to: (Value, u64), from: (Value, u64)) -> ExprId {
        let [start, other] = [to, from].map(|(pointer, _)| pointer.to_term(self.arena, 64));
        let [size, other_size] = [to, from].map(|(_, len)| self.arena.constant(64, len));
        let (ahead, behind) = (self.arena.sub(start, other), self.arena.sub(other, start));
        let ahead = self.arena.uge(ahead, other_size);
        let behind = self.arena.uge(behind, size);
        self.arena.and(ahead, behind)
    }

    /// Reports an overlapping copy unless its ranges are as they must be.
    fn require(&mut self, allowed: ExprId, name: &str, len: u64) -> Result<(), Interrupt> {
        match self.decide_term(allowed)? {
            true => Ok(()),
            false => Err(overlapping_copy(name, len)),
        }
    }

    /// Returns whether scans through a pointer read few positions at a time. Asks the oracle
    /// whether the first `len` bytes are in bounds.
    fn is_scannable(&mut self, pointer: Value, len: u64) -> Result<bool, Interrupt> {
        Ok(self.operand(pointer, len, false)?.places() <= MAX_PLACES)
    }

    /// Returns the length of a string, at most `limit`; `None` if the pointer has to be
    /// concretised.
    pub(crate) fn length_through(
        &mut self,
        pointer: Value,
        limit: u64,
    ) -> Result<Option<u64>, Interrupt> {
        self.find_through(pointer, limit, &[ByteMatch::Byte(0)])
    }

    /// Returns the offset of the first matching byte, or `limit` if there is none among so many; `None` if the pointer
    /// has to be concretised.
    pub(crate) fn find_through(
        &mut self,
        pointer: Value,
        limit: u64,
        wanted: &[ByteMatch],
    ) -> Result<Option<u64>, Interrupt> {
        if limit == 0 || !self.stays_symbolic(&[pointer]) || !self.is_scannable(pointer, 1)? {
            return Ok(None);
        }
        for at in 0..limit {
            if self.matches_through(pointer, at, wanted)? {
                return Ok(Some(at));
            }
        }
        Ok(Some(limit))
    }

    /// Returns whether the byte at an offset matches.
    pub(crate) fn matches_through(
        &mut self,
        pointer: Value,
        at: u64,
        wanted: &[ByteMatch],
    ) -> Result<bool, Interrupt> {
        let byte = self.offset_pointer(pointer, at);
        let byte = self.load(byte, 1)?;
        self.is_one_of(byte, wanted)
    }

    /// Returns the length of a string, at most `limit`. Concretises the pointer if it has to be.
    pub(crate) fn length_of(&mut self, pointer: Value, limit: u64) -> Result<u64, Interrupt> {
        if let Some(len) = self.length_through(pointer, limit)? {
            return Ok(len);
        }
        let start = self.pointer(pointer, limit.min(1), false)?;
        self.bounded_length(start, limit)
    }

    /// Compares as [`Vm::compare_bytes`] does; `None` if the pointers have to be concretised.
    pub(crate) fn compare_through(
        &mut self,
        a: Value,
        b: Value,
        limit: u64,
        strings: bool,
    ) -> Result<Option<Value>, Interrupt> {
        // Strings may end before the limit; other ranges must be accessible as a whole.
        let least = if strings { 1 } else { limit };
        if limit == 0
            || !self.stays_symbolic(&[a, b])
            || !self.is_scannable(a, least)?
            || !self.is_scannable(b, least)?
        {
            return Ok(None);
        }
        let mut walk = Comparison::default();
        for at in 0..limit {
            let (x, y) = (self.offset_pointer(a, at), self.offset_pointer(b, at));
            // An inaccessible byte is a finding only if the comparison reaches it.
            let is_inside = self.is_surely_inside(x) && self.is_surely_inside(y);
            if (walk.is_long() || !is_inside) && !self.arrives(&mut walk)? {
                return Ok(Some(self.difference(walk)));
            }
            let x = self.load(x, 1)?.to_term(self.arena, 8);
            let y = self.load(y, 1)?.to_term(self.arena, 8);
            match self.compare_bytes_of(x, y, strings) {
                Pair::Same => {}
                Pair::Last(difference) => {
                    walk.end = Some(difference);
                    return Ok(Some(self.difference(walk)));
                }
                Pair::Open { same, difference } => walk.pairs.push((same, difference)),
            }
        }
        walk.end = Some(self.arena.zero(32));
        Ok(Some(self.difference(walk)))
    }

    fn is_surely_inside(&mut self, pointer: Value) -> bool {
        let Some(term) = pointer.term else {
            return !self.may_leave(pointer.bits);
        };
        let Some((start, size)) = self.base_object(term) else {
            return false;
        };
        let base: ExprId = self.arena.constant(64, start);
        let offset = self.arena.sub(term, base);
        self.arena.unsigned_range(offset).1 < size && !self.may_leave(start)
    }
}

/// Returns a range of offsets as pieces, each with its size.
fn pieces(range: Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    let end = range.end;
    range
        .step_by(PIECE as usize)
        .map(move |at| (at, PIECE.min(end - at)))
}
