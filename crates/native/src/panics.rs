//! Detects Rust panics in native code with a breakpoint where a panic is raised. A panic of a
//! thread need not end the process, and a caught panic does not even end the thread.

use crate::known::KnownProgram;

use everett_engine::SourceFrame;

use crate::call_stack::NativeStack;
use crate::entries::Entries;
use crate::tracee::{Registers, Tracee};

/// The function that raises exceptions, and thus panics.
const RAISE: &str = "_Unwind_RaiseException";
/// The exception class of Rust panics.
const RUST_CLASS: [u8; 8] = *b"MOZ\0RUST";

/// Watches for the panic with which a trace ends.
#[derive(Clone, Default, Debug)]
pub struct Panics {
    /// Breakpoints where exceptions are raised.
    pub entries: Entries,
    place: Option<(String, u32)>,
}

impl Panics {
    /// Watches for a panic with this stack in a program that has not executed anything yet.
    pub fn watch(
        stack: &[SourceFrame],
        program: &KnownProgram,
        tracee: &mut Tracee,
        bias: u64,
    ) -> Panics {
        let principal = stack
            .iter()
            .find(|frame| !frame.is_library() && frame.line != 0);
        Panics {
            entries: Entries::watch(&[RAISE], program, tracee, bias),
            place: principal.map(|frame| (frame.file.clone(), frame.line)),
        }
    }

    /// Returns whether every panic is a finding, because no location is given.
    pub fn are_all_wanted(&self) -> bool {
        self.place.is_none()
    }

    /// Returns whether the exception that a thread is about to raise is a panic.
    pub fn is_panic(tracee: &mut Tracee, registers: &Registers) -> bool {
        let mut class = [0; 8];
        tracee.peek(registers.rdi, &mut class) && class == RUST_CLASS
    }

    /// Returns whether a panic with this stack is the expected one: others may be caught before.
    pub fn is_at_place(&self, stack: &NativeStack) -> bool {
        let Some((file, line)) = &self.place else {
            return true;
        };
        let frames = stack.innermost.iter().chain(&stack.callers);
        let mut frames = frames.chain(&stack.nearby);
        frames.any(|frame| frame.line == *line && frame.is_of(file))
    }
}
