//! Libc functions of native programs that fault injection can make fail. A breakpoint at the entry
//! of each asks the model; if the call fails, the thread returns at once. Only calls from outside of
//! the C library count, as in explored programs.

use std::collections::BTreeMap;

use everett_vm::{FailingFunction, FunctionFailure, ImageId, STREAM_ERROR};

use crate::allocations::step_over;
use crate::known::KnownProgram;
use crate::replacements;
use crate::tracee::{Registers, Stopped, Tracee};

/// The `int3` instruction.
const BREAKPOINT: u8 = 0xcc;
/// The opcode of a direct call.
const CALL: u8 = 0xe8;
/// The return address of calls that fail when they return, which is never mapped.
const RETURN: u64 = 0xd00;
/// Offset of musl's `errno` in the block that `%fs` points to.
const ERRNO_OFFSET: u64 = 52;

/// The entries of functions that can fail, by program and address.
#[derive(Clone, Default, Debug)]
pub(crate) struct FailingFunctions {
    points: BTreeMap<(ImageId, u64), Point>,
}

/// The entry of a function.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Point {
    /// The index of the function.
    pub(crate) function: usize,
    /// The address.
    pub(crate) address: u64,
    /// The byte that the breakpoint replaces; `None` if another breakpoint was there before.
    original: Option<u8>,
}

/// A call that does its work, and fails when it returns.
#[derive(Clone, Debug)]
pub(crate) struct FailingCall {
    back: u64,
    failure: FunctionFailure,
}

impl FailingFunctions {
    /// Sets breakpoints in a program that has not executed anything yet. They must be the last ones.
    pub(crate) fn watch(
        &mut self,
        image: ImageId,
        functions: &[FailingFunction],
        program: &KnownProgram,
        tracee: &mut Tracee,
    ) -> std::io::Result<()> {
        if functions.is_empty() {
            return Ok(());
        }
        let bias = program.allocator.bias_of(tracee)?;
        for (function, failing) in functions.iter().enumerate() {
            let symbols = failing.symbols.iter();
            for address in symbols.flat_map(|symbol| program.functions(symbol)) {
                let address = address.wrapping_add(bias);
                let mut byte = [0];
                if self.points.contains_key(&(image, address)) || !tracee.peek(address, &mut byte) {
                    continue;
                }
                let point = Point {
                    function,
                    address,
                    original: Some(byte[0]).filter(|byte| *byte != BREAKPOINT),
                };
                tracee.poke(address, &[BREAKPOINT]);
                self.points.insert((image, address), point);
            }
        }
        Ok(())
    }

    /// Returns whether no function can fail.
    pub(crate) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Returns the function at whose entry a thread has stopped.
    pub(crate) fn reached(&self, image: ImageId, registers: &Registers) -> Option<Point> {
        let address = registers.rip.wrapping_sub(1);
        self.points.get(&(image, address)).copied()
    }
}

impl Point {
    /// Returns whether the C library calls the function for its own work.
    ///
    /// The return address may belong to a caller further up, because functions can end with a jump to
    /// another function. Then the call before it is one of the function that jumped.
    pub(crate) fn is_called_by_library(
        &self,
        program: &KnownProgram,
        tracee: &Tracee,
        registers: &Registers,
    ) -> std::io::Result<bool> {
        let bias = program.allocator.bias_of(tracee)?;
        let back = word(tracee, registers.rsp);
        let is_library = |address: u64| program.is_in_library(address.wrapping_sub(bias));
        Ok(match called_before(tracee, back) {
            Some(target) if target != self.address => is_library(target),
            Some(_) => is_library(back.wrapping_sub(1)),
            // The library calls only functions of others through pointers.
            None => false,
        })
    }

    /// Makes the call fail.
    pub(crate) fn fail(
        &self,
        function: &FailingFunction,
        failure: FunctionFailure,
        (tracee, registers): (&mut Tracee, Registers),
    ) -> std::io::Result<()> {
        let arguments = [registers.rdi, registers.rsi, registers.rdx, registers.rcx];
        let stream = function.stream.and_then(|at| arguments.get(at));
        if let Some(stream) = stream.filter(|stream| **stream != 0) {
            let mut flags = [0; 4];
            if tracee.peek(*stream, &mut flags) {
                let marked = u32::from_le_bytes(flags) | STREAM_ERROR as u32;
                tracee.poke(*stream, &marked.to_le_bytes());
            }
        }
        set_errno(&failure, tracee, &registers);
        replacements::leave(tracee, registers, failure.value as u64)
    }

    /// Lets the call do its work, and fail when it returns.
    pub(crate) fn fail_later(
        failure: FunctionFailure,
        tracee: &mut Tracee,
        registers: &Registers,
    ) -> FailingCall {
        let back = word(tracee, registers.rsp);
        tracee.poke(registers.rsp, &RETURN.to_le_bytes());
        FailingCall { back, failure }
    }

    /// Executes the first instruction of the function. `None` if the handler of the other breakpoint
    /// does so.
    pub(crate) fn step_over(
        &self,
        tracee: &mut Tracee,
        registers: Registers,
    ) -> std::io::Result<Option<Stopped>> {
        let Some(original) = self.original else {
            return Ok(None);
        };
        step_over(tracee, registers, (self.address, original)).map(Some)
    }
}

impl FailingCall {
    /// Returns whether the function has returned.
    pub(crate) fn has_returned(registers: &Registers) -> bool {
        registers.rip == RETURN
    }

    /// Returns what stands on the stack instead of the return address, and that address.
    pub(crate) fn hidden(&self) -> (u64, u64) {
        (RETURN, self.back)
    }

    /// Lets the thread continue behind the call, with its failure.
    pub(crate) fn leave(
        self,
        tracee: &mut Tracee,
        mut registers: Registers,
    ) -> std::io::Result<()> {
        set_errno(&self.failure, tracee, &registers);
        registers.rip = self.back;
        registers.rax = self.failure.value as u64;
        tracee.set_registers(registers)
    }
}

fn set_errno(failure: &FunctionFailure, tracee: &mut Tracee, registers: &Registers) {
    if let Some(errno) = failure.errno {
        let place = registers.fs_base.wrapping_add(ERRNO_OFFSET);
        tracee.poke(place, &errno.to_le_bytes());
    }
}

fn word(tracee: &Tracee, address: u64) -> u64 {
    let mut bytes = [0; 8];
    tracee.peek(address, &mut bytes);
    u64::from_le_bytes(bytes)
}

/// Returns the target of the direct call before a return address.
fn called_before(tracee: &Tracee, back: u64) -> Option<u64> {
    let mut code = [0; 5];
    let is_call = tracee.peek(back.wrapping_sub(5), &mut code) && code[0] == CALL;
    let distance = i32::from_le_bytes([code[1], code[2], code[3], code[4]]);
    is_call.then(|| back.wrapping_add_signed(distance.into()))
}
