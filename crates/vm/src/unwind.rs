//! Exceptions: finding the landing pad and unwinding the frames down to it.
//!
//! What `libunwind` and the personality functions do from tables in the native program is done here
//! from the clauses of landing pads. A C++ clause asks the program's own type info (`can_catch`, a virtual
//! function of libc++abi) whether it takes the exception, so the search may be interrupted by a call.

use everett_ir::address::Slot;
use everett_ir::code::{Clause, Inst, LandingPad};
use triomphe::Arc;

use crate::bug::{Bug, BugKind};
use crate::thread::OnReturn;
use crate::value::Value;
use crate::vm::{Done, Interrupt, Vm};

/// `_Unwind_RaiseException`'s answer when nobody takes the exception.
const END_OF_STACK: u64 = 5;
/// Offset of `exceptionType` in libc++abi's `__cxa_exception`, from its `unwindHeader`.
const EXCEPTION_TYPE: i64 = -80;
/// Offset of `catchTemp`, which serves as the place for `can_catch`'s second result.
const CATCH_TEMP: i64 = -16;
/// Offset of `adjustedPtr`, which `__cxa_begin_catch` returns.
const ADJUSTED_POINTER: i64 = -8;
/// Size of `_Unwind_Exception`; the thrown object follows.
const UNWIND_HEADER: i64 = 32;
/// Entry of `can_catch` in the table of virtual functions of a type info of libc++abi.
const CAN_CATCH_ENTRY: u64 = 4;

/// An exception that is looking for its handler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unwinding {
    /// Address of its `_Unwind_Exception`.
    exception: u64,
    /// Frame under examination.
    frame: usize,
    /// Clause that was asked last.
    clause: usize,
    /// The search was started by `resume`, which does not come back.
    resumed: bool,
}

/// The number by which a landing pad tells its clauses apart, from the address of the type info.
pub fn selector_for(type_info: u64) -> u64 {
    match Slot::of(type_info) {
        Some(slot) => u64::from((slot.class << 22 | (slot.index & 0x3f_ffff)) + 1),
        None => 1,
    }
}

/// The number of a filter that was violated.
fn filter_selector(clause: usize) -> u64 {
    u64::from((-(clause as i32) - 1) as u32)
}

impl<'a> Vm<'a> {
    /// `_Unwind_RaiseException`.
    pub(crate) fn raise(&mut self, exception: u64) -> Result<Done, Interrupt> {
        let frame = self.thread.frames.len();
        self.search(Unwinding {
            exception,
            frame,
            clause: 0,
            resumed: false,
        })?;
        Ok(Done::Moved)
    }

    /// Goes on after a cleanup: the frame that ran it is done.
    pub(crate) fn resume_unwinding(&mut self, exception: Value) -> Result<(), Interrupt> {
        let exception = self.concretize(exception)?;
        let frame = self.thread.frames.len() - 1;
        if frame == 0 {
            return Err(uncaught());
        }
        self.search(Unwinding {
            exception,
            frame,
            clause: 0,
            resumed: true,
        })
    }

    /// Looks for a handler from `state.frame` outwards (frames at or above it were looked at).
    fn search(&mut self, mut state: Unwinding) -> Result<(), Interrupt> {
        let mut clause = state.clause;
        let mut index = state.frame;
        if clause == 0 {
            let Some(next) = self.next_frame(index) else {
                return self.nobody(&state);
            };
            index = next;
        }
        loop {
            if let Some(pad) = self.pad_of(index) {
                while let Some(candidate) = pad.clauses.get(clause) {
                    state = Unwinding {
                        frame: index,
                        clause: clause + 1,
                        ..state
                    };
                    match candidate {
                        Clause::Catch(0) => {
                            return self.land(&state, index, selector_for(0));
                        }
                        Clause::Catch(type_info) if self.is_cxx(state.exception) => {
                            return self.ask_can_catch(state, *type_info);
                        }
                        Clause::Filter(types) if types.is_empty() => {
                            return self.land(&state, index, filter_selector(clause));
                        }
                        Clause::Catch(_) | Clause::Filter(_) => clause += 1,
                    }
                }
            }
            clause = 0;
            match self.next_frame(index) {
                Some(next) => index = next,
                None => return self.nobody(&state),
            }
        }
    }

    /// The frame below, unless an exception cannot cross to it.
    fn next_frame(&self, index: usize) -> Option<usize> {
        let crosses = match self.thread.frames.get(index) {
            Some(frame) => frame.on_return == OnReturn::Caller,
            None => true,
        };
        (index > 0 && crosses).then(|| index - 1)
    }

    fn nobody(&mut self, state: &Unwinding) -> Result<(), Interrupt> {
        if state.resumed {
            return Err(uncaught());
        }
        self.thread.unwinding = None;
        self.finish_call(&[Value::concrete(END_OF_STACK)]);
        Ok(())
    }

    /// The landing pad of the call that a frame is executing.
    fn pad_of(&self, index: usize) -> Option<&'a LandingPad> {
        let frame = &self.thread.frames[index];
        let code = self.image.code(frame.function)?;
        let Inst::Call { call } = code.instructions[frame.pc as usize] else {
            return None;
        };
        code.landing_pads
            .get(code.calls[call as usize].unwind? as usize)
    }

    /// Whether the exception was thrown by C++ ("CLNGC++" with any last byte).
    fn is_cxx(&mut self, exception: u64) -> bool {
        let class = self.memory.load(self.arena, exception, 8);
        class.is_ok_and(|class| class.bits >> 8 == 0x43_4c4e_4743_2b2b)
    }

    fn exception_field(&mut self, exception: u64, offset: i64) -> Result<u64, Interrupt> {
        let address = exception.wrapping_add_signed(offset);
        let value = self.load(Value::concrete(address), 8)?;
        self.concretize(value)
    }

    /// Calls `can_catch` of a type info; the search goes on when it returns.
    fn ask_can_catch(&mut self, state: Unwinding, type_info: u64) -> Result<(), Interrupt> {
        let thrown_type = self.exception_field(state.exception, EXCEPTION_TYPE)?;
        let table = self.load(Value::concrete(type_info), 8)?;
        let table = self.concretize(table)?;
        let function = self.load(Value::concrete(table + 8 * CAN_CATCH_ENTRY), 8)?;
        let function = self.concretize(function)?;
        let Some(function) = self.function_at(function) else {
            let message = format!("the type info at {type_info:#x} has no can_catch");
            return Err(Bug::new(BugKind::Unsupported, message).into());
        };
        let scratch = state.exception.wrapping_add_signed(CATCH_TEMP);
        let object = state.exception.wrapping_add_signed(UNWIND_HEADER);
        self.store(Value::concrete(scratch), 8, Value::concrete(object))?;
        let args = [type_info, thrown_type, scratch].map(Value::concrete);
        self.push_frame(function, &args, None, OnReturn::Unwinder)?;
        self.thread.unwinding = Some(Arc::new(state));
        Ok(())
    }

    /// `can_catch` has answered.
    pub(crate) fn unwinder_returned(&mut self, results: &[Value]) -> Result<(), Interrupt> {
        let Some(state) = self.thread.unwinding.take() else {
            return Err(Bug::new(BugKind::Unsupported, "nobody was unwinding").into());
        };
        let state = (*state).clone();
        let caught = results.first().copied().unwrap_or(Value::ZERO);
        if !self.decide(caught)? {
            return self.search(state);
        }
        let adjusted = self.exception_field(state.exception, CATCH_TEMP)?;
        let place = state.exception.wrapping_add_signed(ADJUSTED_POINTER);
        self.store(Value::concrete(place), 8, Value::concrete(adjusted))?;
        let index = state.frame;
        let selector = match self
            .pad_of(index)
            .and_then(|pad| pad.clauses.get(state.clause - 1))
        {
            Some(Clause::Catch(type_info)) => selector_for(*type_info),
            _ => 0,
        };
        self.land(&state, index, selector)
    }

    /// Unwinds to the first frame that wants to clean up, or to the handler.
    fn land(&mut self, state: &Unwinding, handler: usize, selector: u64) -> Result<(), Interrupt> {
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
    Bug::new(
        BugKind::UncaughtException,
        "an exception that nobody catches",
    )
    .into()
}
