//! Signals: the model decides which handlers a native thread runs, the real kernel builds their
//! frames.

use everett_linux::{CallOutcome, Injected, TaskName};
use everett_vm::ExecContext;

use super::{NativeEnd, NativeError, NativeMachine};
use crate::call_stack::NativeStack;
use crate::events::EventKind;

/// Distance from the stack pointer within which a fault can be a stack overflow.
const NEAR_STACK: u64 = 1 << 20;

impl NativeMachine<'_> {
    /// Pushes signal frames onto the stack of a thread; the last one runs first. A frame that
    /// does not fit kills the process.
    pub(super) fn inject(
        &mut self,
        name: TaskName,
        signals: &[Injected],
    ) -> Result<Option<NativeEnd>, NativeError> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        if signals.is_empty() {
            return Ok(None);
        }
        if let Some(call) = native.pending.take() {
            // The thread was stopped before a system call, which restarts when the handlers have
            // returned.
            native.tracee.call_again(call.number)?;
        }
        for injected in signals {
            let words = [injected.signal, injected.code].map(|number| number as u64);
            self.events.note(EventKind::Signal, name, &words);
            if !native.tracee.enter_handler(injected)? {
                return self.crashed(name, libc::SIGSEGV);
            }
        }
        Ok(None)
    }

    /// Runs the handler of a signal that an instruction raises, if there is one and its frame fits.
    pub(super) fn run_fault_handler(
        &mut self,
        name: TaskName,
        signal: i32,
    ) -> Result<bool, NativeError> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(false);
        };
        let (code, words) = native.tracee.information_of_signal()?;
        let fault = (signal, code, words);
        let near_stack = words[0].abs_diff(native.tracee.registers()?.rsp) < NEAR_STACK;
        if near_stack {
            // If the frame does not fit, the real kernel kills the process at once.
            self.record_stack(name, None)?;
        }
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(false);
        };
        let served = self
            .host
            .fault(&mut around!(self), &mut native.tracee, fault);
        let Some(CallOutcome::Continue(signals)) = served else {
            return Ok(false);
        };
        for injected in &signals {
            let words = [injected.signal, injected.code].map(|number| number as u64);
            self.events.note(EventKind::Signal, name, &words);
            if !native.tracee.enter_handler(injected)? {
                return Ok(false);
            }
        }
        self.stack = NativeStack::default();
        Ok(true)
    }
}
