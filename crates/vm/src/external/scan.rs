//! Byte scans that several families share: finding a byte and comparing two ranges.
//!
//! Concrete runs are processed as slices. An inaccessible byte is a finding only if the scan can
//! reach it.

use everett_expr::ExprId;

use crate::access::AccessTarget;
use crate::memory::AccessFault;
use crate::value::Value;
use crate::vm::{Interrupt, Vm};

/// Maximum number of symbolic pairs in one comparison expression. Beyond it, the vm asks the oracle
/// whether all of them are equal.
const MAX_PAIRS: usize = 4096;

/// A byte that ends a scan.
#[derive(Copy, Clone)]
pub enum ByteMatch {
    /// This concrete byte.
    Byte(u8),
    /// The value of this 8-bit term.
    Term(ExprId),
}

impl Vm<'_> {
    /// Concretises a pointer to `len` bytes (or to the end of an object if `len` is 0). For a
    /// symbolic pointer, the vm asks for the bounds check once, before it asks for the value.
    pub(crate) fn pointer(
        &mut self,
        pointer: Value,
        len: u64,
        write: bool,
    ) -> Result<u64, Interrupt> {
        if pointer.term.is_none() || len == 0 {
            return self.concretize(pointer);
        }
        match self.resolve_access(pointer, len, write)? {
            AccessTarget::At(address) => Ok(address),
            AccessTarget::Within { object, offset, .. } => {
                let offset = Value::of_term(self.arena, offset);
                Ok(object.wrapping_add(self.concretize(offset)?))
            }
        }
    }

    /// Returns the low byte of an argument, as the byte to search for.
    pub(crate) fn byte_match(&mut self, value: Value) -> ByteMatch {
        let byte = self.truncate(value, 8);
        match byte.term {
            None => ByteMatch::Byte(byte.bits as u8),
            Some(term) => ByteMatch::Term(term),
        }
    }

    /// Returns the concrete bytes at an address, at most `limit`; empty if the first is symbolic.
    /// An inaccessible first byte is a finding.
    fn run_at(&mut self, address: u64, limit: u64) -> Result<&[u8], Interrupt> {
        let limit = match self.memory.object_at(address, 1) {
            Some(object) if object.size_term.is_none() => limit,
            _ => {
                self.check_range(address, 1, false)?;
                limit.min(1)
            }
        };
        Ok(self.memory.object_at(address, 1).map_or(&[], |object| {
            object.concrete_run(address - object.start, limit)
        }))
    }

    /// Returns the offset of the first matching byte among at most `limit` bytes from `start`. Asks
    /// the oracle about each byte that may match.
    pub(crate) fn find_byte(
        &mut self,
        start: u64,
        limit: u64,
        wanted: &[ByteMatch],
    ) -> Result<Option<u64>, Interrupt> {
        let mut at = 0;
        while at < limit {
            let run = self.run_at(start.wrapping_add(at), limit - at)?;
            if run.is_empty() {
                if self.matches_byte(start.wrapping_add(at), wanted)? {
                    return Ok(Some(at));
                }
                at += 1;
                continue;
            }
            let len = run.len() as u64;
            let found = match *wanted {
                [ByteMatch::Byte(a)] => memchr::memchr(a, run),
                [ByteMatch::Byte(a), ByteMatch::Byte(b)] => memchr::memchr2(a, b, run),
                _ => {
                    if self.matches_byte(start.wrapping_add(at), wanted)? {
                        return Ok(Some(at));
                    }
                    at += 1;
                    continue;
                }
            };
            if let Some(found) = found {
                return Ok(Some(at + found as u64));
            }
            at += len;
        }
        Ok(None)
    }

    /// Returns the offset of the last matching byte in a checked range.
    pub(crate) fn find_last_byte(
        &mut self,
        start: u64,
        len: u64,
        wanted: ByteMatch,
    ) -> Result<Option<u64>, Interrupt> {
        if let (ByteMatch::Byte(wanted), Some(object)) = (wanted, self.memory.object_at(start, len))
        {
            let run = object.concrete_run(start - object.start, len);
            if run.len() as u64 == len {
                return Ok(memchr::memrchr(wanted, run).map(|at| at as u64));
            }
        }
        for at in (0..len).rev() {
            if self.matches_byte(start + at, &[wanted])? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Returns whether the byte at a checked address matches.
    pub(crate) fn matches_byte(
        &mut self,
        address: u64,
        wanted: &[ByteMatch],
    ) -> Result<bool, Interrupt> {
        let byte = self.byte_at(address);
        self.is_one_of(byte, wanted)
    }

    /// Returns whether a byte is one of those that end a scan.
    pub(super) fn is_one_of(
        &mut self,
        byte: Value,
        wanted: &[ByteMatch],
    ) -> Result<bool, Interrupt> {
        let byte = byte.to_term(self.arena, 8);
        let mut any = self.arena.bool_constant(false);
        for one in wanted {
            let one = match *one {
                ByteMatch::Byte(byte) => self.arena.constant(8, u64::from(byte)),
                ByteMatch::Term(term) => term,
            };
            let same = self.arena.eq(byte, one);
            any = self.arena.or(any, same);
        }
        self.decide_term(any)
    }

    /// Returns the length of the string at an address.
    pub(crate) fn string_length(&mut self, start: u64) -> Result<u64, Interrupt> {
        self.bounded_length(start, u64::MAX)
    }

    /// Returns the length of the string at an address, at most `limit`.
    pub(crate) fn bounded_length(&mut self, start: u64, limit: u64) -> Result<u64, Interrupt> {
        let end = self.find_byte(start, limit, &[ByteMatch::Byte(0)])?;
        Ok(end.unwrap_or(limit))
    }

    /// Returns the difference (32 bits) of the first differing bytes among `limit`, or zero. With
    /// `strings`, a NUL also ends the comparison. Asks the oracle only if the scan can leave an
    /// object.
    pub(crate) fn compare_bytes(
        &mut self,
        a: u64,
        b: u64,
        limit: u64,
        strings: bool,
    ) -> Result<Value, Interrupt> {
        let mut walk = Comparison::default();
        let mut at = 0;
        while at < limit {
            let (x, y) = (a.wrapping_add(at), b.wrapping_add(at));
            if walk.is_long() || self.may_leave(x) || self.may_leave(y) {
                if !self.arrives(&mut walk)? {
                    return Ok(self.difference(walk));
                }
                self.check_range(x, 1, false)?;
                self.check_range(y, 1, false)?;
            }
            let step = self.compare_runs(x, y, limit - at, strings);
            match step {
                Step::Skip(len) => at += len,
                Step::End(difference) => {
                    walk.end = Some(difference);
                    return Ok(self.difference(walk));
                }
                Step::Symbolic => match self.compare_pair(x, y, strings) {
                    Pair::Same => at += 1,
                    Pair::Last(difference) => {
                        walk.end = Some(difference);
                        return Ok(self.difference(walk));
                    }
                    Pair::Open { same, difference } => {
                        walk.pairs.push((same, difference));
                        at += 1;
                    }
                },
            }
        }
        walk.end = Some(self.arena.zero(32));
        Ok(self.difference(walk))
    }

    /// Returns whether the byte may be outside an object of known size.
    pub(super) fn may_leave(&self, address: u64) -> bool {
        let object = self.memory.object_at(address, 1);
        object.is_none_or(|object| object.size_term.is_some())
    }

    /// Asks whether all pairs so far are equal. If so, drops them.
    pub(super) fn arrives(&mut self, walk: &mut Comparison) -> Result<bool, Interrupt> {
        let same: Vec<ExprId> = walk.pairs.iter().map(|pair| pair.0).collect();
        let all = self.arena.all(&same);
        let arrives = self.decide_term(all)?;
        if arrives {
            walk.pairs.clear();
        }
        Ok(arrives)
    }

    /// Compares contiguous concrete bytes at both addresses.
    fn compare_runs(&mut self, a: u64, b: u64, limit: u64, strings: bool) -> Step {
        let run = |address: u64, limit: u64| {
            let object = self.memory.object_at(address, 1);
            // If the size is symbolic, only one byte was checked.
            object.map_or(&[][..], |object| {
                let limit = if object.size_term.is_some() { 1 } else { limit };
                object.concrete_run(address - object.start, limit)
            })
        };
        let x = run(a, limit);
        let y = run(b, x.len() as u64);
        if y.is_empty() {
            return Step::Symbolic;
        }
        // Equal runs are usually equal as a whole.
        let end = match memchr::memchr(0, y).filter(|_| strings) {
            Some(zero) => zero + 1,
            None => y.len(),
        };
        let (x, y) = (&x[..end], &y[..end]);
        let ends = strings && y[end - 1] == 0;
        if x == y && !ends {
            return Step::Skip(end as u64);
        }
        let stop = |(p, q): (&u8, &u8)| p != q || (strings && *p == 0);
        match x.iter().zip(y).position(stop) {
            None => Step::Skip(y.len() as u64),
            Some(at) => {
                let difference = i32::from(x[at]) - i32::from(y[at]);
                Step::End(self.arena.constant(32, u64::from(difference as u32)))
            }
        }
    }

    fn compare_pair(&mut self, a: u64, b: u64, strings: bool) -> Pair {
        let x = self.byte_at(a).to_term(self.arena, 8);
        let y = self.byte_at(b).to_term(self.arena, 8);
        self.compare_bytes_of(x, y, strings)
    }

    pub(super) fn compare_bytes_of(&mut self, x: ExprId, y: ExprId, strings: bool) -> Pair {
        let (wide_x, wide_y) = (self.arena.zext(x, 32), self.arena.zext(y, 32));
        let difference = self.arena.sub(wide_x, wide_y);
        let mut same = self.arena.eq(x, y);
        if strings {
            let constant = self.arena.as_const(x).or(self.arena.as_const(y));
            match constant {
                Some(0) => return Pair::Last(difference),
                Some(_) => {}
                None => {
                    let more = self.arena.is_nonzero(x);
                    same = self.arena.and(same, more);
                }
            }
        }
        if self.arena.is_true(same) {
            Pair::Same
        } else if self.arena.is_false(same) {
            Pair::Last(difference)
        } else {
            Pair::Open { same, difference }
        }
    }

    /// Builds the result of the comparison: the difference of the first pair that ends it.
    pub(super) fn difference(&mut self, walk: Comparison) -> Value {
        let mut pairs = walk.pairs.into_iter().rev();
        // If the comparison cannot reach its end, one of the pairs ends it, at the latest the last
        // pair.
        let end = walk
            .end
            .or_else(|| pairs.next().map(|pair| pair.1))
            .unwrap_or_else(|| self.arena.zero(32));
        let result = pairs.fold(end, |rest, (same, difference)| {
            self.arena.ite(same, rest, difference)
        });
        Value::of_term(self.arena, result)
    }

    /// Returns the finding for a scan of concrete bytes that reaches this address.
    pub(crate) fn fault(&self, address: u64, len: u64, write: bool) -> Interrupt {
        let fault = AccessFault {
            address,
            len,
            write,
        };
        self.memory.explain(fault).into()
    }
}

/// A comparison in progress.
#[derive(Default)]
pub(super) struct Comparison {
    /// For each symbolic pair: the condition to continue, and the result otherwise.
    pub(super) pairs: Vec<(ExprId, ExprId)>,
    /// The result if no pair ends the comparison; `None` if that is impossible.
    pub(super) end: Option<ExprId>,
}

impl Comparison {
    /// Returns whether the comparison has the maximum number of pairs for one expression.
    pub(super) fn is_long(&self) -> bool {
        self.pairs.len() >= MAX_PAIRS
    }
}

enum Step {
    /// This many pairs are equal.
    Skip(u64),
    /// The comparison ends with this result.
    End(ExprId),
    /// The next byte of one side is symbolic.
    Symbolic,
}

pub(super) enum Pair {
    /// The comparison continues.
    Same,
    /// The comparison ends.
    Last(ExprId),
    /// Symbolic: both are possible.
    Open { same: ExprId, difference: ExprId },
}
