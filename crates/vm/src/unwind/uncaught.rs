//! Uncaught exceptions and panics, which are reported where they are thrown.

use everett_ir::code::Location;

use super::EXCEPTION_TYPE;
use crate::bug::{Bug, BugKind};
use crate::thread::Unwinding;
use crate::value::Value;
use crate::vm::{Interrupt, Vm};

/// The exception class of Rust panics.
const RUST_CLASS: u64 = u64::from_le_bytes(*b"MOZ\0RUST");
/// Offset of the name in a C++ type info.
const TYPE_NAME: u64 = 8;
/// Offset of the object that was thrown, behind the unwinder's header.
const CXX_OBJECT: u64 = 32;
/// Offset of the text in an object of one of these types of libc++, by their names.
const CXX_TEXT: u64 = 8;
const WITH_TEXT: [&str; 9] = [
    "St11logic_error",
    "St12domain_error",
    "St16invalid_argument",
    "St12length_error",
    "St12out_of_range",
    "St13runtime_error",
    "St11range_error",
    "St14overflow_error",
    "St15underflow_error",
];
/// Offset of the payload, a `Box<dyn Any + Send>`, in the exception of a panic.
const RUST_PAYLOAD: u64 = 40;
/// Offset of the size in a vtable.
const TABLE_SIZE: u64 = 8;
/// Maximum length of a name or message in a report.
const MAX_TEXT_LENGTH: u64 = 500;

/// Returns the name of a C++ type as programs write it.
fn readable(mangled: &str) -> String {
    // A type info has the name without the prefix of its symbol, with which it can be demangled.
    let symbol = format!("_ZTS{mangled}");
    let name = addr2line::demangle(&symbol, addr2line::gimli::DW_LANG_C_plus_plus);
    let name = name
        .as_deref()
        .and_then(|name| name.strip_prefix("typeinfo name for "));
    name.unwrap_or(mangled).to_owned()
}

impl Vm<'_> {
    /// Returns the finding for an uncaught C++ exception.
    pub(super) fn uncaught_exception(&mut self, exception: u64) -> Interrupt {
        let name = self
            .is_cxx(exception)
            .then(|| self.peek(exception.wrapping_add_signed(EXCEPTION_TYPE)))
            .flatten()
            .and_then(|type_info| self.peek(type_info.wrapping_add(TYPE_NAME)))
            .and_then(|name| self.peek_text(name, None));
        let text = name
            .as_deref()
            .and_then(|name| self.exception_text(exception, name));
        let message = match (name, text) {
            (Some(name), Some(text)) => {
                format!("an uncaught exception of type {}: {text}", readable(&name))
            }
            (Some(name), None) => format!("an uncaught exception of type {}", readable(&name)),
            (None, _) => "an uncaught exception".to_owned(),
        };
        Bug::new(BugKind::UncaughtException, message).into()
    }

    /// Returns what an exception of the standard library tells about itself.
    fn exception_text(&mut self, exception: u64, name: &str) -> Option<String> {
        if !WITH_TEXT.contains(&name) {
            return None;
        }
        let text = self.peek(exception.wrapping_add(CXX_OBJECT + CXX_TEXT))?;
        let text = self.peek_text(text, None)?;
        Some(text.lines().map(str::trim).collect::<Vec<_>>().join(", "))
    }

    /// Returns the finding for a panic: for every panic, or only for one that propagates to the
    /// runtime, which ends the process. `None` if the exception is not a panic, or not one to
    /// report.
    pub(super) fn reported_panic(&mut self, state: &Unwinding) -> Option<Interrupt> {
        let reported = self.options.report_uncaught && !state.resumed;
        if !reported || self.exception_class(state.exception) != RUST_CLASS {
            return None;
        }
        let every = self.options.report_caught_panics && !self.is_raised_again();
        if !every && !self.is_caught_by_runtime(state.frame) {
            return None;
        }
        let message = match self.panic_message(state.exception) {
            Some(text) => text.lines().map(str::trim).collect::<Vec<_>>().join(", "),
            None => "an uncaught panic".to_owned(),
        };
        Some(Bug::new(BugKind::Panic, message).into())
    }

    /// Returns whether `resume_unwind` raises the panic: it is an earlier panic that was caught, or
    /// the program unwinds on purpose.
    fn is_raised_again(&self) -> bool {
        let program = self.image.program();
        for frame in self.thread.frames.iter().rev() {
            let code = self.image.code(frame.function);
            let mut place = code.and_then(|code| *code.locations.get(frame.pc as usize)?);
            while let Some(id) = place {
                let location = program.location(id);
                match program.string(location.function) {
                    "resume_unwind" | "rust_panic_without_hook" => return true,
                    _ if !program.library.contains(program.string(location.file)) => return false,
                    _ => place = location.inlined_at,
                }
            }
        }
        false
    }

    /// Returns whether the innermost `catch_unwind` around the call that this frame executes is the
    /// one of the runtime around `main`. Functions may be inlined, so the search uses the source
    /// locations, not the frames.
    fn is_caught_by_runtime(&self, frame: usize) -> bool {
        let program = self.image.program();
        let mut inside = false;
        for frame in self.thread.frames[..=frame].iter().rev() {
            let Some(code) = self.image.code(frame.function) else {
                return false;
            };
            let mut place = code.locations.get(frame.pc as usize).copied().flatten();
            while let Some(id) = place {
                let location: &Location = program.location(id);
                let name = program.string(location.function);
                let catches = name.starts_with("catch_unwind") || name.starts_with("try<");
                if inside && !catches {
                    return program.string(location.file).ends_with("std/src/rt.rs");
                }
                inside |= catches;
                place = location.inlined_at;
            }
        }
        false
    }

    /// Returns the message of a panic, if the payload looks like a `&str` or a `String`.
    fn panic_message(&mut self, exception: u64) -> Option<String> {
        let data = self.peek(exception.wrapping_add(RUST_PAYLOAD))?;
        let table = self.peek(exception.wrapping_add(RUST_PAYLOAD + 8))?;
        let size = self.peek(table.wrapping_add(TABLE_SIZE))?;
        let word = |vm: &mut Self, at: u64| vm.peek(data.wrapping_add(8 * at));
        match size {
            16 => {
                let (start, length) = (word(self, 0)?, word(self, 1)?);
                self.peek_text(start, Some(length))
            }
            24 => {
                // Capacity, pointer, length; the compiler chooses the order of the first two.
                let (first, second, length) = (word(self, 0)?, word(self, 1)?, word(self, 2)?);
                self.peek_text(second, Some(length))
                    .or_else(|| self.peek_text(first, Some(length)))
            }
            _ => None,
        }
    }

    /// Reads a word of memory, if it is accessible and concrete.
    fn peek(&mut self, address: u64) -> Option<u64> {
        let value: Value = self.memory.load(self.arena, address, 8).ok()?;
        value.as_concrete()
    }

    /// Reads text of this length, or up to a NUL. Symbolic bytes appear as question marks.
    fn peek_text(&mut self, start: u64, length: Option<u64>) -> Option<String> {
        let mut bytes = Vec::new();
        for at in 0..length.unwrap_or(MAX_TEXT_LENGTH).min(MAX_TEXT_LENGTH) {
            let byte = self.memory.load(self.arena, start.wrapping_add(at), 1);
            match byte.ok()?.as_concrete() {
                Some(0) if length.is_none() => break,
                Some(byte) => bytes.push(byte as u8),
                None => bytes.push(b'?'),
            }
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn types_have_the_names_of_the_source() {
        assert_eq!(readable("i"), "int");
        assert_eq!(readable("PKc"), "char const*");
        assert_eq!(readable("St13runtime_error"), "std::runtime_error");
        assert_eq!(readable("N5store5EmptyE"), "store::Empty");
        assert_eq!(readable("no name"), "no name");
    }
}
