//! Merging of two threads that are at the same program location.

use triomphe::Arc;

use crate::memory::Merge;
use crate::thread::{Frame, Thread};

/// Returns whether two frames are at the same location, so that only their registers may differ.
fn is_same_frame(first: &Frame, second: &Frame) -> bool {
    let variadic = match (&first.variadic, &second.variadic) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    };
    first.function == second.function
        && first.pc == second.pc
        && first.base == second.base
        && first.first_slot == second.first_slot
        && first.serial == second.serial
        && first.on_return == second.on_return
        && first.landing == second.landing
        && variadic
}

fn is_same_stack(first: &Thread, second: &Thread) -> bool {
    let mut frames = first.frames.iter().zip(&second.frames);
    first.number == second.number
        && first.frames.len() == second.frames.len()
        && frames.all(|(one, other)| is_same_frame(one, other))
        && first.registers.len() == second.registers.len()
        && first.slots == second.slots
        && first.stack_bytes == second.stack_bytes
        && first.fs_base == second.fs_base
        && first.floats == second.floats
        && first.locals == second.locals
        && first.unwinding.is_none()
        && second.unwinding.is_none()
        && first.passed_preemption_point == second.passed_preemption_point
        && first.alternate_stacks == second.alternate_stacks
}

impl Merge<'_> {
    /// Merges two threads; `None` if they are not at the same location.
    pub fn thread(&mut self, first: &Thread, second: &Thread) -> Option<Thread> {
        if !is_same_stack(first, second) {
            return None;
        }
        let mut merged = first.clone();
        for (one, other) in merged.registers.iter_mut().zip(&second.registers) {
            *one = self.value(*one, *other);
        }
        // Serial numbers of frames that have returned are never reused.
        merged.next_serial = first.next_serial.max(second.next_serial);
        Some(merged)
    }
}
