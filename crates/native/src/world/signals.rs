//! Signals: the model says whose handlers a native thread runs, the real kernel builds their frames.

use everett_linux::{Injected, TaskName};

use super::{NativeError, World};
use crate::events::Kind;

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
}
