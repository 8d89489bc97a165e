//! memcpy and its family: operations on byte ranges of a given length.

use super::scan::ByteMatch;
use super::{Operation, replaced, supplied};
use crate::bug::{Bug, BugKind};
use crate::memory::ObjectKind;
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// Copies up to this size go through a buffer on the native stack.
const SMALL_COPY: usize = 64;

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    replaced("memcpy", memcpy),
    replaced("memmove", memmove),
    replaced("mempcpy", mempcpy),
    replaced("memset", memset),
    replaced("bzero", bzero),
    replaced("explicit_bzero", bzero),
    replaced("memcmp", memcmp),
    replaced("bcmp", memcmp),
    replaced("memchr", memchr),
    replaced("memrchr", memrchr),
    replaced("__memrchr", memrchr),
    replaced("memccpy", memccpy),
    replaced("llvm.memcpy", memcpy),
    replaced("llvm.memcpy.inline", memcpy),
    replaced("llvm.memmove", memmove),
    replaced("llvm.memset", memset),
    replaced("llvm.memset.inline", memset),
    // Fortified variants from the headers of other C libraries. They need no check of the
    // destination size that they pass, because the vm checks every access.
    supplied("__memcpy_chk", memcpy),
    supplied("__memmove_chk", memmove),
    supplied("__mempcpy_chk", mempcpy),
    supplied("__memset_chk", memset),
    supplied("__explicit_bzero_chk", bzero),
];

impl Vm<'_> {
    /// Returns the number of accessible bytes from an address to the end of its object; 0 if it is
    /// not accessible.
    pub(crate) fn room_at(&self, address: u64, write: bool) -> u64 {
        match self.memory.object_at(address, 0) {
            Some(object) if !(write && object.kind == ObjectKind::Constant) => {
                object.room(address - object.start, write)
            }
            _ => 0,
        }
    }

    /// Checks ranges of one length, given as pointers and whether they are written. Returns
    /// addresses and length.
    pub(crate) fn ranges<const N: usize>(
        &mut self,
        pointers: [(Value, bool); N],
        len: Value,
    ) -> Result<([u64; N], u64), Interrupt> {
        let mut known = len.as_concrete();
        if known.is_none() {
            let term = len.to_term(self.arena, 64);
            let some = self.arena.is_nonzero(term);
            if !self.decide_term(some)? {
                known = Some(0);
            }
        }
        let mut addresses = [0; N];
        for (address, (pointer, write)) in addresses.iter_mut().zip(pointers) {
            *address = self.pointer(pointer, known.unwrap_or(1), write)?;
        }
        let len = match known {
            Some(len) => len,
            None => {
                for (address, (_, write)) in addresses.iter().zip(pointers) {
                    self.fits(*address, len, write)?;
                }
                self.concretize(len)?
            }
        };
        for (address, (_, write)) in addresses.iter().zip(pointers) {
            self.check_range(*address, len, write)?;
        }
        Ok((addresses, len))
    }

    /// Reports a symbolic length that does not fit in the object at an address.
    fn fits(&mut self, address: u64, len: Value, write: bool) -> Result<(), Interrupt> {
        let room = self.room_at(address, write);
        let len = len.to_term(self.arena, 64);
        let limit = self.arena.constant(64, room);
        let inside = self.arena.ule(len, limit);
        if self.decide_term(inside)? {
            return Ok(());
        }
        let bad = if room == 0 { address } else { address + room };
        Err(self.fault(bad, 1, write))
    }

    /// Returns the maximum number of bytes that a scan may visit from an address on. If the limit
    /// is symbolic, all values that lead past the end of the object are one path.
    pub(crate) fn walk_limit(&mut self, starts: &[u64], limit: Value) -> Result<u64, Interrupt> {
        if let Some(limit) = limit.as_concrete() {
            return Ok(limit);
        }
        let rooms = starts.iter().map(|start| self.room_at(*start, false));
        let room = rooms.min().unwrap_or(0);
        let term = limit.to_term(self.arena, 64);
        let bound = self.arena.constant(64, room);
        let inside = self.arena.ule(term, bound);
        if self.decide_term(inside)? {
            self.concretize(limit)
        } else {
            Ok(room + 1)
        }
    }
}

/// Reports a copy whose destination overlaps its source (both as address and length).
pub fn forbid_overlap(name: &str, to: (u64, u64), from: (u64, u64)) -> Result<(), Interrupt> {
    let overlap = to.0 < from.0.wrapping_add(from.1) && from.0 < to.0.wrapping_add(to.1);
    match overlap {
        true => Err(overlapping_copy(name, from.1)),
        false => Ok(()),
    }
}

/// Returns the finding for a copy of `len` bytes whose ranges overlap.
pub(super) fn overlapping_copy(name: &str, len: u64) -> Interrupt {
    let message = format!(
        "{name} of {} between ranges that overlap",
        crate::bug::bytes(len)
    );
    Bug::new(BugKind::OverlappingCopy, message).into()
}

/// Destination, source and length of a copy between ranges that must not overlap.
fn distinct_operands(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<(u64, u64, u64), Interrupt> {
    let (to, from, len) = copy_operands(vm, args)?;
    // Compilers emit a self-copy for `*p = *p`.
    if to != from {
        forbid_overlap("memcpy", (to, len), (from, len))?;
    }
    Ok((to, from, len))
}

fn copy_operands(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<(u64, u64, u64), Interrupt> {
    // Check the destination first: an out-of-bounds write is worse than an out-of-bounds read.
    let pointers = [(args.get(0), true), (args.get(1), false)];
    let ([to, from], len) = vm.ranges(pointers, args.get(2))?;
    vm.need_room_to_copy(to, from, len)?;
    Ok((to, from, len))
}

/// Fast path: copies a few concrete bytes between objects of known size. Returns `None` without
/// changes if that does not apply.
fn copy_small(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Option<Value> {
    let [to, from, len] = [args.get(0), args.get(1), args.get(2)];
    if to.term.is_some() || from.term.is_some() || len.term.is_some() || vm.records_accesses() {
        return None;
    }
    let (to, from, len) = (to.bits, from.bits, len.bits);
    let mut small = [0; SMALL_COPY];
    let small = small.get_mut(..usize::try_from(len).ok()?)?;
    if to.abs_diff(from) < len {
        return None;
    }
    let source = vm.memory.object_at(from, len)?;
    let run = source.concrete_run(from - source.start, len);
    if run.len() != small.len() || source.size_term.is_some() {
        return None;
    }
    small.copy_from_slice(run);
    let target = vm.memory.object_at_mut(to, len)?;
    if target.size_term.is_some() {
        return None;
    }
    let offset = to - target.start;
    target.write_concrete(offset, small);
    Some(Value::concrete(to))
}

/// Copies through symbolic pointers. Returns `None` without changes if they have to be concretised.
fn copy_through(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    name: Option<&str>,
) -> Result<Option<Value>, Interrupt> {
    let [to, from, len] = [args.get(0), args.get(1), args.get(2)];
    let Some(len) = len.as_concrete() else {
        return Ok(None);
    };
    Ok(vm.copy_through(to, from, len, name)?.then_some(to))
}

fn memcpy(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let Some(to) = copy_small(vm, args) {
        return Ok(Done::Value(to));
    }
    if let Some(to) = copy_through(vm, args, Some("memcpy"))? {
        return Ok(Done::Value(to));
    }
    let (to, from, len) = distinct_operands(vm, args)?;
    vm.copy_range(to, from, len);
    Ok(Done::Value(Value::concrete(to)))
}

fn mempcpy(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (to, from, len) = distinct_operands(vm, args)?;
    vm.copy_range(to, from, len);
    Ok(Done::Value(Value::concrete(to.wrapping_add(len))))
}

fn memmove(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let Some(to) = copy_small(vm, args) {
        return Ok(Done::Value(to));
    }
    if let Some(to) = copy_through(vm, args, None)? {
        return Ok(Done::Value(to));
    }
    let (to, from, len) = copy_operands(vm, args)?;
    vm.copy_range(to, from, len);
    Ok(Done::Value(Value::concrete(to)))
}

fn memset(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let fill = vm.truncate(args.get(1), 8).as_concrete();
    if let (Some(len), Some(byte)) = (args.get(2).as_concrete(), fill)
        && vm.fill_through(args.get(0), byte as u8, len)?
    {
        return Ok(Done::Value(args.get(0)));
    }
    let ([to], len) = vm.ranges([(args.get(0), true)], args.get(2))?;
    let byte = vm.truncate(args.get(1), 8);
    match byte.as_concrete() {
        Some(0) => vm.need_room_to_clear(to, len)?,
        Some(_) => vm.need_room_to_write(to, len)?,
        None => vm.need_room_to_fill(to, len)?,
    }
    let Some(object) = vm.memory.object_at_mut(to, len).filter(|_| len > 0) else {
        return Ok(Done::Value(Value::concrete(to)));
    };
    let offset = to - object.start;
    match byte.as_concrete() {
        Some(byte) => object.fill(offset, len, byte as u8),
        None => {
            for at in offset..offset + len {
                object.store(vm.arena, at, 1, byte);
            }
        }
    }
    Ok(Done::Value(Value::concrete(to)))
}

fn bzero(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let ([to], len) = vm.ranges([(args.get(0), true)], args.get(1))?;
    vm.need_room_to_clear(to, len)?;
    if let Some(object) = vm.memory.object_at_mut(to, len).filter(|_| len > 0) {
        let offset = to - object.start;
        object.fill(offset, len, 0);
    }
    Ok(Done::Void)
}

fn memcmp(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let Some(len) = args.get(2).as_concrete()
        && let Some(result) = vm.compare_through(args.get(0), args.get(1), len, false)?
    {
        return Ok(Done::Value(result));
    }
    let pointers = [(args.get(0), false), (args.get(1), false)];
    let ([a, b], len) = vm.ranges(pointers, args.get(2))?;
    vm.compare_bytes(a, b, len, false).map(Done::Value)
}

/// Finds a byte in a range. C says that memchr stops at the byte that it finds, so the object may
/// be shorter than the length.
fn memchr(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let wanted = vm.byte_match(args.get(1));
    if let Some(limit) = args.get(2).as_concrete()
        && let Some(at) = vm.find_through(args.get(0), limit, &[wanted])?
    {
        return Ok(Done::Value(match at == limit {
            true => Value::ZERO,
            false => vm.offset_pointer(args.get(0), at),
        }));
    }
    let (start, limit) = walk_operands(vm, args.get(0), args.get(2))?;
    let found = vm.find_byte(start, limit, &[wanted])?;
    Ok(Done::Value(found_at(start, found)))
}

fn memrchr(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let ([start], len) = vm.ranges([(args.get(0), false)], args.get(2))?;
    let wanted = vm.byte_match(args.get(1));
    let found = vm.find_last_byte(start, len, wanted)?;
    Ok(Done::Value(found_at(start, found)))
}

fn memccpy(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (from, limit) = walk_operands(vm, args.get(1), args.get(3))?;
    let wanted: ByteMatch = vm.byte_match(args.get(2));
    let found = vm.find_byte(from, limit, &[wanted])?;
    let len = found.map_or(limit, |at| at + 1);
    let to = vm.pointer(args.get(0), len, true)?;
    vm.check_range(to, len, true)?;
    forbid_overlap("memccpy", (to, len), (from, len))?;
    vm.need_room_to_copy(to, from, len)?;
    vm.copy_range(to, from, len);
    Ok(Done::Value(match found {
        Some(_) => Value::concrete(to + len),
        None => Value::ZERO,
    }))
}

/// Returns the start and limit of a scan.
fn walk_operands(vm: &mut Vm<'_>, pointer: Value, limit: Value) -> Result<(u64, u64), Interrupt> {
    let start = match limit.as_concrete() {
        Some(limit) => vm.pointer(pointer, limit.min(1), false)?,
        None => vm.concretize(pointer)?,
    };
    let limit = vm.walk_limit(&[start], limit)?;
    Ok((start, limit))
}

/// Returns the address of a match, or null.
fn found_at(start: u64, found: Option<u64>) -> Value {
    found.map_or(Value::ZERO, |at| Value::concrete(start + at))
}
