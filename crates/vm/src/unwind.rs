//! Exceptions: the search for a landing pad, and unwinding to it.
//!
//! Natively, `libunwind` and the personality functions use unwind tables. The vm uses the clauses
//! of landing pads instead. For a C++ clause it calls the program's own type info (`can_catch`, a
//! virtual function of libc++abi), so a call may interrupt the search.

use everett_ir::address::Slot;
use everett_ir::code::{Clause, Inst, LandingPad};
use triomphe::Arc;

use crate::bug::{Bug, BugKind};
use crate::thread::{OnReturn, Unwinding};
use crate::value::Value;
use crate::vm::{Done, Interrupt, Vm};

/// The result of `_Unwind_RaiseException` if there is no handler (`_URC_END_OF_STACK`).
const END_OF_STACK: u64 = 5;
/// "CLNGC++", above the byte that distinguishes primary from dependent exceptions.
const CXX_CLASS: u64 = 0x43_4c4e_4743_2b2b;
/// The value of that byte in a dependent exception, thrown by `std::rethrow_exception`.
const DEPENDENT: u64 = 1;
/// Offset of `primaryException` in libc++abi's
/// `__cxa_dependent_exception`, from its `unwindHeader`.
const PRIMARY_EXCEPTION: i64 = -88;
/// Offset of `exceptionType` in `__cxa_exception` and `__cxa_dependent_exception`.
const EXCEPTION_TYPE: i64 = -80;
/// Offset of `catchTemp`, which receives the second result of `can_catch`.
const CATCH_TEMP: i64 = -16;
/// Offset of `adjustedPtr`, which `__cxa_begin_catch` returns.
const ADJUSTED_POINTER: i64 = -8;
/// Size of `_Unwind_Exception`; the thrown object follows.
const UNWIND_HEADER: i64 = 32;
/// Index of `can_catch` in the virtual table of a libc++abi type info, after two destructors and
/// two placeholder entries.
const CAN_CATCH_ENTRY: u64 = 4;

/// Returns the selector of a type info, by which a landing pad distinguishes its clauses. It is
/// derived from the address.
pub fn selector_for(type_info: u64) -> u64 {
    match Slot::of(type_info) {
        Some(slot) => u64::from((slot.class << 22 | (slot.index & 0x3f_ffff)) + 1),
        None => 1,
    }
}

/// Returns the selector of a violated filter.
fn filter_selector(clause: usize) -> u64 {
    u64::from((-(clause as i32) - 1) as u32)
}

impl<'a> Vm<'a> {
    /// Executes `_Unwind_RaiseException`.
    pub(crate) fn raise(&mut self, exception: u64) -> Result<Done, Interrupt> {
        self.start_search(exception, self.thread.frames.len(), false)?;
        Ok(Done::Moved)
    }

    /// Continues unwinding after a cleanup.
    pub(crate) fn resume_unwinding(&mut self, exception: Value) -> Result<(), Interrupt> {
        let exception = self.concretize(exception)?;
        match self.thread.frames.len() {
            0 | 1 => Err(uncaught()),
            frames => self.start_search(exception, frames - 1, true),
        }
    }

    /// Searches for a handler below the frame `above`.
    fn start_search(
        &mut self,
        exception: u64,
        above: usize,
        resumed: bool,
    ) -> Result<(), Interrupt> {
        let first = self.next_frame(above);
        let state = Unwinding {
            exception,
            frame: first.unwrap_or(0),
            clause: 0,
            member: 0,
            resumed,
        };
        match first {
            Some(_) => self.search(state),
            None => self.nobody(&state),
        }
    }

    /// Continues the search for a handler.
    fn search(&mut self, mut state: Unwinding) -> Result<(), Interrupt> {
        let native = self.is_cxx(state.exception);
        loop {
            let pad = self.pad_of(state.frame);
            while let Some(clause) = pad.and_then(|pad| pad.clauses.get(state.clause)) {
                match clause {
                    Clause::Catch(0) => return self.take(&state, selector_for(0)),
                    Clause::Catch(type_info) if native => {
                        return self.ask_can_catch(state, *type_info);
                    }
                    Clause::Catch(_) => {}
                    // Filter types are C++ types, so every foreign exception violates the filter.
                    Clause::Filter(types) => match types.get(state.member).filter(|_| native) {
                        Some(type_info) => return self.ask_can_catch(state, *type_info),
                        None => return self.take(&state, filter_selector(state.clause)),
                    },
                }
                state.clause += 1;
                state.member = 0;
            }
            (state.clause, state.member) = (0, 0);
            match self.next_frame(state.frame) {
                Some(next) => state.frame = next,
                None => return self.nobody(&state),
            }
        }
    }

    /// Returns the frame below, unless exceptions cannot propagate to it.
    fn next_frame(&self, index: usize) -> Option<usize> {
        let crosses = match self.thread.frames.get(index) {
            Some(frame) => matches!(frame.on_return, OnReturn::Caller | OnReturn::Fails { .. }),
            None => true,
        };
        (index > 0 && crosses).then(|| index - 1)
    }

    fn nobody(&mut self, state: &Unwinding) -> Result<(), Interrupt> {
        if state.resumed {
            return Err(uncaught());
        }
        if self.options.report_uncaught {
            return Err(self.uncaught_exception(state.exception));
        }
        self.thread.unwinding = None;
        self.finish_call(&[Value::concrete(END_OF_STACK)]);
        Ok(())
    }

    /// Returns the landing pad of the call that a frame is executing.
    fn pad_of(&self, index: usize) -> Option<&'a LandingPad> {
        let frame = self.thread.frames.get(index)?;
        let code = self.image.code(frame.function)?;
        let Inst::Call { call } = code.instructions.get(frame.pc as usize)? else {
            return None;
        };
        code.landing_pads
            .get(code.calls[*call as usize].unwind? as usize)
    }

    fn exception_class(&mut self, exception: u64) -> u64 {
        let class = self.memory.load(self.arena, exception, 8);
        class.map_or(0, |class| class.bits)
    }

    /// Returns whether the exception is a C++ exception.
    fn is_cxx(&mut self, exception: u64) -> bool {
        self.exception_class(exception) >> 8 == CXX_CLASS
    }

    /// Returns the address of the thrown object.
    fn thrown_object(&mut self, exception: u64) -> Result<u64, Interrupt> {
        if self.exception_class(exception) & 0xff == DEPENDENT {
            return self.exception_field(exception, PRIMARY_EXCEPTION);
        }
        Ok(exception.wrapping_add_signed(UNWIND_HEADER))
    }

    fn exception_field(&mut self, exception: u64, offset: i64) -> Result<u64, Interrupt> {
        let address = exception.wrapping_add_signed(offset);
        let value = self.load(Value::concrete(address), 8)?;
        self.concretize(value)
    }

    /// Calls `can_catch` of a type info. The search continues when it returns.
    fn ask_can_catch(&mut self, state: Unwinding, type_info: u64) -> Result<(), Interrupt> {
        let thrown_type = self.exception_field(state.exception, EXCEPTION_TYPE)?;
        let table = self.load(Value::concrete(type_info), 8)?;
        let table = self.concretize(table)?;
        let entry = table.wrapping_add(8 * CAN_CATCH_ENTRY);
        let function = self.load(Value::concrete(entry), 8)?;
        let function = self.concretize(function)?;
        let Some(function) = self.function_at(function) else {
            let message = format!("the type info at {type_info:#x} has no can_catch");
            return Err(Bug::new(BugKind::Unsupported, message).into());
        };
        let scratch = state.exception.wrapping_add_signed(CATCH_TEMP);
        let object = self.thrown_object(state.exception)?;
        self.store(Value::concrete(scratch), 8, Value::concrete(object))?;
        let args = [type_info, thrown_type, scratch].map(Value::concrete);
        self.push_frame(function, &args, None, OnReturn::Unwinder)?;
        self.thread.unwinding = Some(Arc::new(state));
        Ok(())
    }

    /// Continues the search with the result of `can_catch`.
    pub(crate) fn resume_search(&mut self, results: &[Value]) -> Result<(), Interrupt> {
        let Some(state) = self.thread.unwinding.take() else {
            return Err(Bug::new(BugKind::Unsupported, "nobody was unwinding").into());
        };
        let mut state = (*state).clone();
        // The frame of `can_catch` is popped, so the oracle can no longer be asked.
        let Some(answer) = results.first().and_then(|value| value.as_concrete()) else {
            let message = "a type info that is not sure which exceptions it takes";
            return Err(Bug::new(BugKind::Unsupported, message).into());
        };
        let clause = self
            .pad_of(state.frame)
            .and_then(|pad| pad.clauses.get(state.clause));
        match (clause, answer & 1 != 0) {
            (Some(Clause::Catch(type_info)), true) => {
                let adjusted = self.exception_field(state.exception, CATCH_TEMP)?;
                self.set_adjusted(state.exception, adjusted)?;
                return self.land(&state, selector_for(*type_info));
            }
            (Some(Clause::Filter(_)), false) => state.member += 1,
            _ => {
                state.clause += 1;
                state.member = 0;
            }
        }
        self.search(state)
    }

    /// Handles a clause that accepts the exception without checking its type.
    fn take(&mut self, state: &Unwinding, selector: u64) -> Result<(), Interrupt> {
        if let Some(finding) = self.reported_panic(state) {
            return Err(finding);
        }
        if self.is_cxx(state.exception) {
            let object = self.thrown_object(state.exception)?;
            self.set_adjusted(state.exception, object)?;
        }
        self.land(state, selector)
    }

    fn set_adjusted(&mut self, exception: u64, adjusted: u64) -> Result<(), Interrupt> {
        let place = exception.wrapping_add_signed(ADJUSTED_POINTER);
        self.store(Value::concrete(place), 8, Value::concrete(adjusted))
    }

    /// Unwinds to the first frame with a cleanup, or to the handler.
    fn land(&mut self, state: &Unwinding, selector: u64) -> Result<(), Interrupt> {
        let handler = state.frame;
        self.thread.unwinding = None;
        let top = self.thread.frames.len() - 1;
        let first = if state.resumed {
            top.saturating_sub(1)
        } else {
            top
        };
        for index in (handler..=first).rev() {
            let Some(pad) = self.pad_of(index) else {
                continue;
            };
            if index != handler && !pad.cleanup {
                continue;
            }
            while self.thread.frames.len() > index + 1 {
                self.pop_frame();
            }
            if let Some(frame) = self.thread.frames.last_mut() {
                let selector = if index == handler { selector } else { 0 };
                frame.landing = (Value::concrete(state.exception), selector);
                frame.pc = pad.target;
            }
            return Ok(());
        }
        Err(uncaught())
    }
}

fn uncaught() -> Interrupt {
    Bug::new(BugKind::UncaughtException, "an uncaught exception").into()
}

mod uncaught;

#[cfg(test)]
mod tests;
