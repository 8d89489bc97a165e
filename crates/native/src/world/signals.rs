//! Signals: the model says whose handlers a native thread runs, the real kernel builds their frames.

use everett_linux::{Injected, Served, TaskName};
use everett_vm::ExecContext;

use super::{NativeError, World};
use crate::events::Kind;
use crate::place::NativeStack;

/// Bytes around the stack pointer in which a fault can be about the end of the stack.
const NEAR_STACK: u64 = 1 << 20;

impl World<'_> {
    /// Puts the frames of handlers onto the stack of a thread; the last one runs first.
    pub(super) fn inject(
        &mut self,
        name: TaskName,
        signals: &[Injected],
    ) -> Result<(), NativeError> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(());
        };
        if signals.is_empty() {
            return Ok(());
        }
        if let Some(call) = native.pending.take() {
            // It stood before a system call, which is made when the handlers have returned.
            native.tracee.call_again(call.number)?;
        }
        for injected in signals {
            let words = [injected.signal, injected.code].map(|number| number as u64);
            self.events.note(Kind::Signal, name, &words);
            if !native.tracee.enter_handler(injected)? {
                let message = format!("signal {} could not be delivered", injected.signal);
                return Err(NativeError::NotReplayable(message));
            }
        }
        Ok(())
    }

    /// What a thread has executed raises a signal: runs its handler, if it has one and there is room for its frame.
    pub(super) fn handles_fault(
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
            // If there is no room for a frame, the real kernel ends the process at once.
            self.look_at_stack(name, None)?;
        }
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(false);
        };
        let served = self
            .host
            .fault(&mut around!(self), &mut native.tracee, fault);
        let Some(Served::Goes(signals)) = served else {
            return Ok(false);
        };
        for injected in &signals {
            let words = [injected.signal, injected.code].map(|number| number as u64);
            self.events.note(Kind::Signal, name, &words);
            if !native.tracee.enter_handler(injected)? {
                return Ok(false);
            }
        }
        self.stack = NativeStack::default();
        Ok(true)
    }
}
