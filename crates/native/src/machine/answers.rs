//! Answers the system calls of native threads: by the model of the host, or by this crate, where
//! real memory and real handlers must change.

use everett_linux::{CallOutcome, Errno, TaskName};
use everett_vm::{BugKind, ExecContext, SystemCall, Value};

use super::mappings::shares_gate;
use super::{Flow, NativeEnd, NativeError, NativeLimit, NativeMachine, call_numbers};
use crate::events::EventKind;
use crate::tracee::Call;

impl NativeMachine<'_> {
    /// Answers the system call that a thread is stopped at.
    pub(super) fn answer(&mut self, name: TaskName) -> Result<Option<NativeEnd>, NativeError> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        let Some(call) = native.pending else {
            return Ok(None);
        };
        self.calls += 1;
        self.last_call = call.number;
        self.computing = None;
        if let Some(end) = self.check_before_call(name, call.number)? {
            return Ok(Some(end));
        }
        let [a, b, c, d, e, f] = call.args;
        self.events
            .note(EventKind::Call, name, &[call.number, a, b, c, d, e, f]);
        if let Flow::Break(end) = self.answer_without_model(name, call)? {
            return Ok(end);
        }
        self.note_origin(name, None)?;
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        let system_call = SystemCall {
            number: Value::concrete(call.number),
            args: call.args.map(Value::concrete),
            entry: None,
            jump: None,
        };
        let is_internal = native.loading.is_some() || native.is_in_allocator(call.number);
        if [call_numbers::GETRUSAGE, call_numbers::EXIT_GROUP].contains(&call.number) {
            let peak = crate::sandbox::peak(native.tracee.process);
            self.host.note_memory(name.pid, peak);
        }
        let (around, tracee) = (&mut around!(self), &mut native.tracee);
        let served = match is_internal {
            true => self.host.serve_internal(around, tracee, &system_call),
            false => self.host.serve(around, tracee, &system_call),
        };
        if native.tracee.violation.is_some() {
            return self.report_kernel_write(name);
        }
        self.note_injected(name, None)?;
        self.apply_memory_changes(name)?;
        self.sync_files()?;
        if !self.threads.contains_key(&name) {
            return Ok(None);
        }
        if matches!(served, CallOutcome::Done(0, _)) {
            self.repeat_natively(name, call)?;
        }
        self.apply_outcome(name, served)
    }

    /// Answers a call that the model of the host does not serve: of memory, of this crate itself, and
    /// those that are refused.
    fn answer_without_model(&mut self, name: TaskName, call: Call) -> Result<Flow, NativeError> {
        if call.is_foreign {
            self.host.refuse_foreign_call(call.number);
            let result = CallOutcome::Done(Errno::ENOSYS.result(), Vec::new());
            return Ok(Flow::Break(self.apply_outcome(name, result)?));
        }
        let end = match call.number {
            call_numbers::RT_SIGRETURN => {
                let Some(native) = self.threads.get_mut(&name) else {
                    return Ok(Flow::Break(None));
                };
                native.tracee.leave_handler(call)?;
                native.pending = None;
                let served = self
                    .host
                    .return_from_handler(&mut around!(self), &mut native.tracee);
                self.apply_outcome(name, served)?
            }
            call_numbers::MMAP
            | call_numbers::MUNMAP
            | call_numbers::MPROTECT
            | call_numbers::BRK
            | call_numbers::MREMAP
            | call_numbers::MINCORE
            | call_numbers::MADVISE
            | call_numbers::ARCH_PRCTL => {
                self.computing = Some(name);
                self.note_origin(name, None)?;
                let served = self.memory_call(name, call)?;
                self.note_injected(name, None)?;
                self.apply_outcome(name, served)?
            }
            call_numbers::SHMAT if shares_gate(&self.host, &call) => {
                let result = Errno::EINVAL.result();
                self.apply_outcome(name, CallOutcome::Done(result, Vec::new()))?
            }
            call_numbers::OWN_REPORT => self.reported(name, call)?,
            call_numbers::OWN_INPUT => match self.supply_symbolic_input(name, call) {
                None => self.apply_outcome(name, CallOutcome::Done(0, Vec::new()))?,
                end => end,
            },
            _ => return Ok(Flow::Continue(())),
        };
        Ok(Flow::Break(end))
    }

    /// Checks what can end the run before a call is answered.
    fn check_before_call(
        &mut self,
        name: TaskName,
        number: u64,
    ) -> Result<Option<NativeEnd>, NativeError> {
        if let Some(end) = self.check_limits_periodically() {
            return Ok(Some(end));
        }
        if let Some(end) = self.check_mapped_files() {
            return Ok(Some(end));
        }
        self.sync_files()?;
        if !self.shared_files.is_empty()
            && let Some(message) = self.host.full_files()
        {
            return Ok(Some(NativeEnd::Limit(NativeLimit::Files(message))));
        }
        if matches!(number, call_numbers::EXIT | call_numbers::EXIT_GROUP) {
            self.expect_loaded(name)?;
            let next = self.host.log().len() + 1;
            if !self.report_events() || !self.watcher.before_exit(next) {
                return Ok(Some(NativeEnd::Stopped));
            }
            if self.oracle.expects(BugKind::Leak)
                && let Some(end) = self.find_leaks(name)?
            {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// Makes a call that the model has answered in the real process, too, if that needs its effect.
    fn repeat_natively(&mut self, name: TaskName, call: Call) -> Result<(), NativeError> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(());
        };
        match call.number {
            // The real kernel runs handlers, so it must know them. The model has told the old action:
            // the real one may be older, if the process was made with `CLONE_CLEAR_SIGHAND`.
            call_numbers::RT_SIGACTION | call_numbers::SIGALTSTACK => {
                let mut args = call.args;
                if call.number == call_numbers::RT_SIGACTION {
                    args[2] = 0;
                }
                native.tracee.inject_call_preserving(call.number, args)?;
            }
            call_numbers::SETRLIMIT | call_numbers::PRLIMIT64 => {
                let limit = self.host.stack_limit(name.pid);
                crate::sandbox::limit_stack_of(native.tracee.process, limit)?;
            }
            _ => {}
        }
        Ok(())
    }
}
