//! Copies and scans through symbolic pointers that stay symbolic, with the same effect as the loops
//! of a libc: `table[hash(key)] = entry` is one path, not one path per position.

use everett_expr::ExprId;

use super::bytes::overlapping_copy;
use super::scan::{Comparison, Pair};
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
            self.forbid_overlap_through(name, to, from, len)?;
        }
        let pieces = (0..len).step_by(PIECE as usize);
        let pieces: Vec<(u64, u64)> = pieces.map(|at| (at, PIECE.min(len - at))).collect();
        let mut values = Vec::with_capacity(pieces.len());
        for (at, size) in &pieces {
            values.push(self.load_piece(from, *at, *size)?);
        }
        for ((at, size), value) in pieces.into_iter().zip(values) {
            self.store_piece(to, at, size, value)?;
        }
        Ok(true)
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
        for at in (0..len).step_by(PIECE as usize) {
            let size = PIECE.min(len - at);
            let bits = u64::from_le_bytes([byte; 8]) >> (8 * (PIECE - size));
            self.store_piece(to, at, size, Value::concrete(bits))?;
        }
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

    fn forbid_overlap_through(
        &mut self,
        name: &str,
        to: Operand,
        from: Operand,
        len: u64,
    ) -> Result<(), Interrupt> {
        let [to, from] = [to, from].map(|one| one.pointer.to_term(self.arena, 64));
        let size = self.arena.constant(64, len);
        let (ahead, behind) = (self.arena.sub(to, from), self.arena.sub(from, to));
        let ahead = self.arena.uge(ahead, size);
        let behind = self.arena.uge(behind, size);
        let apart = self.arena.and(ahead, behind);
        // Compilers emit a self-copy for `*p = *p`.
        let same = self.arena.eq(to, from);
        let allowed = self.arena.or(apart, same);
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
        if limit == 0 || !self.stays_symbolic(&[pointer]) || !self.is_scannable(pointer, 1)? {
            return Ok(None);
        }
        for at in 0..limit {
            let byte = self.offset_pointer(pointer, at);
            let byte = self.load(byte, 1)?.to_term(self.arena, 8);
            let is_more = self.arena.is_nonzero(byte);
            if !self.decide_term(is_more)? {
                return Ok(Some(at));
            }
        }
        Ok(Some(limit))
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
