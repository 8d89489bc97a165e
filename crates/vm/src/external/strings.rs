//! strlen and its family: operations on NUL-terminated strings.
//!
//! The libc's versions read whole words past the end of objects; these operations read exactly as
//! far as C allows.

use super::bytes::forbid_overlap;
use super::scan::ByteMatch;
use super::{Operation, replaced, supplied};
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family. `index`, `rindex`, `strdup`, `strstr` and similar functions are
/// the program's own: they call these operations, or read byte by byte.
pub const OPERATIONS: &[Operation] = &[
    replaced("strlen", strlen),
    replaced("strnlen", strnlen),
    replaced("strcpy", strcpy),
    replaced("stpcpy", stpcpy),
    replaced("__stpcpy", stpcpy),
    replaced("strncpy", strncpy),
    replaced("stpncpy", stpncpy),
    replaced("__stpncpy", stpncpy),
    replaced("strcat", strcat),
    replaced("strncat", strncat),
    replaced("strlcpy", strlcpy),
    replaced("strlcat", strlcat),
    replaced("strcmp", strcmp),
    replaced("strncmp", strncmp),
    replaced("strchr", strchr),
    replaced("strrchr", strrchr),
    replaced("strchrnul", strchrnul),
    replaced("__strchrnul", strchrnul),
    supplied("__strcpy_chk", strcpy),
    supplied("__stpcpy_chk", stpcpy),
    supplied("__strncpy_chk", strncpy),
    supplied("__stpncpy_chk", stpncpy),
    supplied("__strcat_chk", strcat),
    supplied("__strncat_chk", strncat),
];

/// Concretises a string argument.
fn string(vm: &mut Vm<'_>, pointer: Value) -> Result<u64, Interrupt> {
    vm.pointer(pointer, 1, false)
}

fn address(address: u64) -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::concrete(address)))
}

fn strlen(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let Some(len) = vm.length_through(args.get(0), u64::MAX)? {
        return address(len);
    }
    let start = string(vm, args.get(0))?;
    vm.string_length(start).and_then(address)
}

fn strnlen(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let Some(limit) = args.get(1).as_concrete()
        && let Some(len) = vm.length_through(args.get(0), limit)?
    {
        return address(len);
    }
    let start = vm.concretize(args.get(0))?;
    let limit = vm.walk_limit(&[start], args.get(1))?;
    vm.bounded_length(start, limit).and_then(address)
}

/// Copies a string with its terminator; returns destination and length.
fn copy_string(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<(u64, u64), Interrupt> {
    let from = string(vm, args.get(1))?;
    let len = vm.string_length(from)?;
    let to = vm.pointer(args.get(0), len + 1, true)?;
    vm.check_range(to, len + 1, true)?;
    forbid_overlap(args.name, (to, len + 1), (from, len + 1))?;
    vm.need_room_to_copy(to, from, len + 1)?;
    vm.copy_range(to, from, len + 1);
    Ok((to, len))
}

/// Copies a string through symbolic pointers and returns its length. Returns `None` without changes
/// if the pointers have to be concretised.
fn copy_string_through(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Option<u64>, Interrupt> {
    let (to, from) = (args.get(0), args.get(1));
    if !vm.stays_symbolic(&[to, from]) {
        return Ok(None);
    }
    let len = vm.length_of(from, u64::MAX)?;
    let is_copied = vm.put_through(args.name, (to, len + 1), (from, len + 1), len)?;
    Ok(is_copied.then_some(len))
}

fn strcpy(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if copy_string_through(vm, args)?.is_some() {
        return Ok(Done::Value(args.get(0)));
    }
    copy_string(vm, args).and_then(|(to, _)| address(to))
}

fn stpcpy(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let Some(len) = copy_string_through(vm, args)? {
        return Ok(Done::Value(vm.offset_pointer(args.get(0), len)));
    }
    copy_string(vm, args).and_then(|(to, len)| address(to + len))
}

/// Copies a string into a field of fixed size, padded with zeros; returns destination and length.
fn copy_field(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<(u64, u64), Interrupt> {
    let ([to], size) = vm.ranges([(args.get(0), true)], args.get(2))?;
    let from = vm.pointer(args.get(1), size.min(1), false)?;
    let len = vm.bounded_length(from, size)?;
    forbid_overlap(args.name, (to, size), (from, size.min(len + 1)))?;
    vm.need_room_to_write(to, size)?;
    vm.need_room_to_copy(to, from, len)?;
    vm.copy_range(to, from, len);
    if let Some(object) = vm.memory.object_at_mut(to, size).filter(|_| size > len) {
        let offset = to - object.start;
        object.fill(offset + len, size - len, 0);
    }
    Ok((to, len))
}

/// Copies as [`copy_field`] does through symbolic pointers and returns the length. Returns `None` without changes if the
/// pointers have to be concretised.
fn copy_field_through(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Option<u64>, Interrupt> {
    let (to, from) = (args.get(0), args.get(1));
    let size = match args.get(2).as_concrete() {
        Some(size) if size > 0 && vm.stays_symbolic(&[to, from]) => size,
        _ => return Ok(None),
    };
    // Check the destination first: an out-of-bounds write is worse than an out-of-bounds read.
    vm.resolve_access(to, size, true)?;
    let len = vm.length_of(from, size)?;
    let is_copied = vm.put_through(args.name, (to, size), (from, size.min(len + 1)), len)?;
    Ok(is_copied.then_some(len))
}

fn strncpy(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if copy_field_through(vm, args)?.is_some() {
        return Ok(Done::Value(args.get(0)));
    }
    copy_field(vm, args).and_then(|(to, _)| address(to))
}

fn stpncpy(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let Some(len) = copy_field_through(vm, args)? {
        return Ok(Done::Value(vm.offset_pointer(args.get(0), len)));
    }
    copy_field(vm, args).and_then(|(to, len)| address(to + len))
}

/// Writes the first `len` bytes read from a string, and a NUL, to `to`.
fn put_string(
    vm: &mut Vm<'_>,
    name: &str,
    to: u64,
    (from, read): (u64, u64),
    len: u64,
) -> Result<(), Interrupt> {
    vm.check_range(to, len + 1, true)?;
    forbid_overlap(name, (to, len + 1), (from, read))?;
    vm.need_room_to_copy(to, from, len)?;
    vm.copy_range(to, from, len);
    if let Some(object) = vm.memory.object_at_mut(to + len, 1) {
        let offset = to + len - object.start;
        object.fill(offset, 1, 0);
    }
    Ok(())
}

/// Appends at most `limit` bytes of a string through symbolic pointers. Returns `false` without changes if the pointers
/// have to be concretised.
fn append_through(vm: &mut Vm<'_>, args: &Arguments<'_>, limit: u64) -> Result<bool, Interrupt> {
    let (to, from) = (args.get(0), args.get(1));
    if limit == 0 || !vm.stays_symbolic(&[to, from]) {
        return Ok(false);
    }
    let has = vm.length_of(to, u64::MAX)?;
    let len = vm.length_of(from, limit)?;
    let end = vm.offset_pointer(to, has);
    let read = limit.min(len.saturating_add(1));
    vm.put_through(args.name, (end, len + 1), (from, read), len)
}

fn strcat(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if append_through(vm, args, u64::MAX)? {
        return Ok(Done::Value(args.get(0)));
    }
    let to = string(vm, args.get(0))?;
    let from = string(vm, args.get(1))?;
    let has = vm.string_length(to)?;
    let len = vm.string_length(from)?;
    put_string(vm, args.name, to + has, (from, len + 1), len)?;
    address(to)
}

fn strncat(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let Some(limit) = args.get(2).as_concrete()
        && append_through(vm, args, limit)?
    {
        return Ok(Done::Value(args.get(0)));
    }
    let to = string(vm, args.get(0))?;
    let from = vm.concretize(args.get(1))?;
    let limit = vm.walk_limit(&[from], args.get(2))?;
    let has = vm.string_length(to)?;
    let len = vm.bounded_length(from, limit)?;
    let read = limit.min(len.saturating_add(1));
    put_string(vm, args.name, to + has, (from, read), len)?;
    address(to)
}

fn strlcpy(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let from = string(vm, args.get(1))?;
    let len = vm.string_length(from)?;
    let size = target_size(vm, args.get(2), len)?;
    if size > 0 {
        let kept = len.min(size - 1);
        let to = vm.pointer(args.get(0), kept + 1, true)?;
        put_string(vm, args.name, to, (from, len + 1), kept)?;
    }
    address(len)
}

/// Concretises the size of a destination. All sizes over `len` are one path.
fn target_size(vm: &mut Vm<'_>, size: Value, len: u64) -> Result<u64, Interrupt> {
    if size.term.is_some() {
        let term = size.to_term(vm.arena, 64);
        let len_term = vm.arena.constant(64, len);
        let holds_all = vm.arena.ugt(term, len_term);
        if vm.decide_term(holds_all)? {
            return Ok(len + 1);
        }
    }
    vm.concretize(size)
}

fn strlcat(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let to = vm.concretize(args.get(0))?;
    let from = string(vm, args.get(1))?;
    let size = vm.walk_limit(&[to], args.get(2))?;
    let has = vm.bounded_length(to, size)?;
    let len = vm.string_length(from)?;
    if has < size {
        let kept = len.min(size - has - 1);
        put_string(vm, args.name, to + has, (from, len + 1), kept)?;
    }
    address(has + len)
}

fn strcmp(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let Some(result) = vm.compare_through(args.get(0), args.get(1), u64::MAX, true)? {
        return Ok(Done::Value(result));
    }
    let a = string(vm, args.get(0))?;
    let b = string(vm, args.get(1))?;
    vm.compare_bytes(a, b, u64::MAX, true).map(Done::Value)
}

fn strncmp(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let Some(limit) = args.get(2).as_concrete()
        && let Some(result) = vm.compare_through(args.get(0), args.get(1), limit, true)?
    {
        return Ok(Done::Value(result));
    }
    let a = vm.concretize(args.get(0))?;
    let b = vm.concretize(args.get(1))?;
    let limit = vm.walk_limit(&[a, b], args.get(2))?;
    vm.compare_bytes(a, b, limit, true).map(Done::Value)
}

/// Returns the address of the first byte that matches or terminates the string.
fn find_or_end(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<(u64, ByteMatch), Interrupt> {
    let start = string(vm, args.get(0))?;
    let wanted = vm.byte_match(args.get(1));
    let at = match wanted {
        ByteMatch::Byte(0) => vm.string_length(start)?,
        _ => vm
            .find_byte(start, u64::MAX, &[wanted, ByteMatch::Byte(0)])?
            .unwrap_or(0),
    };
    Ok((start + at, wanted))
}

/// Returns the offset of the first byte that matches or terminates the string, through a symbolic pointer; `None` if the
/// pointer has to be concretised.
fn find_or_end_through(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Option<u64>, Interrupt> {
    let wanted = vm.byte_match(args.get(1));
    vm.find_through(args.get(0), u64::MAX, &[wanted, ByteMatch::Byte(0)])
}

fn strchrnul(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let Some(at) = find_or_end_through(vm, args)? {
        return Ok(Done::Value(vm.offset_pointer(args.get(0), at)));
    }
    find_or_end(vm, args).and_then(|(at, _)| address(at))
}

fn strchr(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let Some(at) = find_or_end_through(vm, args)? {
        let wanted = vm.byte_match(args.get(1));
        return match vm.matches_through(args.get(0), at, &[wanted])? {
            true => Ok(Done::Value(vm.offset_pointer(args.get(0), at))),
            false => address(0),
        };
    }
    let (at, wanted) = find_or_end(vm, args)?;
    let found = vm.matches_byte(at, &[wanted])?;
    address(if found { at } else { 0 })
}

/// Does what [`strrchr`] does through a symbolic pointer; `None` if the pointer has to be concretised.
fn find_last_through(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Option<Value>, Interrupt> {
    let Some(len) = vm.length_through(args.get(0), u64::MAX)? else {
        return Ok(None);
    };
    let wanted = vm.byte_match(args.get(1));
    for at in (0..=len).rev() {
        if vm.matches_through(args.get(0), at, &[wanted])? {
            return Ok(Some(vm.offset_pointer(args.get(0), at)));
        }
    }
    Ok(Some(Value::ZERO))
}

fn strrchr(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let Some(found) = find_last_through(vm, args)? {
        return Ok(Done::Value(found));
    }
    let start = string(vm, args.get(0))?;
    let wanted = vm.byte_match(args.get(1));
    let len = vm.string_length(start)?;
    let found = vm.find_last_byte(start, len + 1, wanted)?;
    address(found.map_or(0, |at| start + at))
}
