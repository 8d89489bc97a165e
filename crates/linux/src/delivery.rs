//! Signal delivery: signal frames and handlers that run on the stack of their thread, return from
//! handlers, and hardware faults that have a handler.

use everett_vm::{Buffer, Bug, BugKind, FloatEnvironment, OnReturn, Value, resize};
use triomphe::Arc;

use crate::kernel::{Kernel, Stop};
use crate::process::{ExitStatus, HandlerRun, SignalAction, Suspended};
use crate::signals::{DEFAULT, IGNORE, SIGABRT, SIGSTOP, STOPPING, Signal, bit, blockable};
use crate::wait::Wait;

const SA_ONSTACK: u64 = 0x0800_0000;
const SA_RESTART: u64 = 0x1000_0000;
const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESETHAND: u64 = 0x8000_0000;

/// `SS_ONSTACK`: the thread runs on the alternate stack.
pub const ON_STACK: u32 = 1;
/// `SS_DISABLE`: there is no alternate stack.
pub const NO_STACK: u32 = 2;
/// `SS_AUTODISARM`: the alternate stack is disabled while a handler runs on it.
pub const AUTO_DISARM: u32 = 0x8000_0000;

/// Layout of a `struct ucontext`.
mod context {
    pub const SIZE: usize = 968;
    pub const STACK: usize = 16;
    pub const STACK_POINTER: usize = 160;
    pub const PROGRAM_COUNTER: usize = 168;
    pub const MASK: usize = 296;
}

/// Size of a `siginfo_t`.
pub const INFORMATION_SIZE: usize = 128;

impl Kernel<'_, '_> {
    /// Builds a `siginfo_t`.
    pub fn signal_information(&mut self, signal: &Signal) -> Buffer {
        let mut bytes = Buffer::zeroed(INFORMATION_SIZE);
        let head = [signal.number as u32, 0, signal.code as u32, 0];
        bytes.write(0, &head.map(u32::to_le_bytes).concat());
        bytes.write(16, &signal.words.map(u64::to_le_bytes).concat());
        if let Some(status) = signal.status {
            let term = status.to_term(self.vm.arena, 8);
            let wide = resize(self.vm.arena, term, 32);
            bytes.store(24, 4, Value::of_term(self.vm.arena, wide));
        }
        bytes
    }
}

/// The signal for a bug that the processor or the libc is certain to detect.
fn fault_of(bug: &Bug) -> Option<Signal> {
    let code = bug.fault_code()?;
    Some(Signal {
        words: [bug.address.unwrap_or(0), 0, 0],
        ..Signal::new(bug.native_signal(), code)
    })
}

impl Kernel<'_, '_> {
    /// Performs the default action of deliverable signals until none is left or the next one has a
    /// handler, and returns that one with its action. A stop signal stops the process.
    fn next_handler(&mut self) -> Result<Option<(i32, SignalAction)>, Stop> {
        loop {
            let ready = self.host.deliverable_signals(self.task());
            let own = self.task().pending.next(ready);
            let Some(number) = own.or_else(|| self.process().pending.next(ready)) else {
                return Ok(None);
            };
            let action = self.process().actions[number as usize - 1];
            match action.handler {
                DEFAULT => self.default_action(number)?,
                _ => return Ok(Some((number, action))),
            }
        }
    }

    fn default_action(&mut self, number: i32) -> Result<(), Stop> {
        self.host.take_signal(self.task, bit(number));
        if STOPPING & bit(number) != 0 {
            let (pid, group) = (self.process().pid, self.process().group);
            if number != SIGSTOP && self.host.is_orphaned(group) {
                return Ok(());
            }
            self.host.stop(pid, number);
            return Err(Stop::Point);
        }
        if number == SIGABRT {
            let bug = Bug::new(BugKind::Abort, "the program aborted (SIGABRT)");
            return Err(bug.into());
        }
        Err(Stop::Exit(ExitStatus::Signal(number)))
    }

    /// Delivers unblocked pending signals: runs a handler, or performs the default action.
    pub fn deliver_signals(&mut self) -> Result<(), Stop> {
        let is_quiet = self.task().pending.mask() | self.process().pending.mask() == 0;
        if is_quiet {
            return Ok(());
        }
        while let Some((number, action)) = self.next_handler()? {
            let Some(signal) = self.host.take_signal(self.task, bit(number)) else {
                break;
            };
            let signal = self.store_overrun(signal);
            self.vm.order_by_all_objects(false);
            self.run_handler(&signal, action, None)?;
        }
        self.discard_ignored();
        Ok(())
    }

    /// Discards pending signals that were blocked when they arrived and are ignored now.
    fn discard_ignored(&mut self) {
        let mut left = self.host.pending_signals(self.task()) & !self.task().blocked;
        let mut ignored = 0;
        while left != 0 {
            let signal = left.trailing_zeros() as i32 + 1;
            left &= left - 1;
            if self.process().ignores(signal) {
                ignored |= bit(signal);
            }
        }
        // Each signal is taken as if it had a handler: from then on the overruns of its timer are
        // known.
        while ignored != 0
            && let Some(signal) = self.host.take_signal(self.task, ignored)
        {
            self.store_overrun(signal);
        }
    }

    /// Handles a signal that arrived while the thread is blocked. `None` if the wait continues;
    /// otherwise whether the call restarts once the handler has returned.
    pub(crate) fn interruption(&mut self, wait: &Wait) -> Result<Option<bool>, Stop> {
        let next = self.next_handler()?;
        Ok(next.map(|(_, action)| wait.restarts && action.flags & SA_RESTART != 0))
    }

    /// The thread's native program counter, as far as the program can observe it.
    fn program_counter(&self) -> u64 {
        let symbols = &self.vm.image.program().symbols;
        if self.vm.at_cancellation_point()
            && let Some(address) = symbols.get("__cp_begin")
        {
            return *address;
        }
        let function = self.vm.thread.top().map(|frame| frame.function);
        function.map_or(0, |id| everett_ir::address::function_address(id.0))
    }

    /// Makes the thread run a handler before it continues.
    pub(crate) fn run_handler(
        &mut self,
        signal: &Signal,
        action: SignalAction,
        ends_with: Option<Box<Bug>>,
    ) -> Result<(), Stop> {
        let stack = self.task().alternate_stack;
        let has_stack = action.flags & SA_ONSTACK != 0 && stack.1 & NO_STACK == 0;
        let enters = has_stack && !self.is_on_alternate_stack();
        let disarms = enters && stack.1 & AUTO_DISARM != 0;
        let blocked = self.task_mut().restored_mask.take();
        let mut run = HandlerRun {
            depth: 0,
            serial: 0,
            slots: 0,
            blocked: blocked.unwrap_or(self.task().blocked),
            context: 0,
            program_counter: 0,
            on_alternate_stack: enters,
            restored_stack: disarms.then_some(stack),
            ends_with,
            floats: self.vm.thread.floats,
            call: Suspended::default(),
        };
        if self.guest.is_some() {
            self.inject(signal, run.blocked);
        } else {
            self.call_handler(signal, action, &mut run)?;
        }
        let task = self.task_mut();
        run.call = task.suspend();
        task.handlers.push(run);
        task.blocked |= blockable(action.mask);
        if disarms {
            task.alternate_stack = (0, NO_STACK, 0);
        }
        if action.flags & SA_NODEFER == 0 {
            task.blocked |= blockable(bit(signal.number));
        }
        if action.flags & SA_RESETHAND != 0 {
            let index = signal.number as usize - 1;
            Arc::make_mut(&mut self.process_mut().actions)[index].handler = DEFAULT;
        }
        Ok(())
    }

    /// Pushes the frame of a handler.
    fn call_handler(
        &mut self,
        signal: &Signal,
        action: SignalAction,
        run: &mut HandlerRun,
    ) -> Result<(), Stop> {
        let Some(function) = self.vm.function_at(action.handler) else {
            let message = format!("the handler of signal {} is not a function", signal.number);
            return Err(Bug::new(BugKind::InvalidCall, message).into());
        };
        let depth = self.vm.thread.frames.len();
        // Drops handlers that were left by `longjmp`.
        self.task_mut().handlers.retain(|run| run.depth < depth);
        run.depth = depth;
        run.slots = self.vm.thread.slots.len();
        run.program_counter = self.program_counter();
        if run.on_alternate_stack {
            let (start, _, size) = self.task().alternate_stack;
            self.vm.enter_alternate_stack(start, size);
        }
        let information = self.signal_information(signal);
        let information_at = self.vm.push_slot(INFORMATION_SIZE as u64, 16)?;
        self.write_buffer(information_at, &information)?;
        run.context = self.vm.push_slot(context::SIZE as u64, 16)?;
        self.write_context(run.context, run.blocked, run.program_counter)?;
        let args = [signal.number as u64, information_at, run.context].map(Value::concrete);
        self.vm.push_frame(function, &args, None, OnReturn::Stop)?;
        // A handler starts with the initial environment.
        self.vm.thread.floats = FloatEnvironment::default();
        run.serial = self.vm.thread.top().map_or(0, |frame| frame.serial);
        Ok(())
    }

    /// Whether a handler runs on the alternate stack.
    pub fn is_on_alternate_stack(&mut self) -> bool {
        if let Some(guest) = &mut self.guest {
            let pointer = guest.stack_pointer();
            let (start, _, size) = self.task().alternate_stack;
            return pointer.wrapping_sub(start) <= size && pointer != start;
        }
        let frames = &self.vm.thread.frames;
        self.task().handlers.iter().any(|run| {
            let frame = frames.get(run.depth);
            run.on_alternate_stack && frame.is_some_and(|frame| frame.serial == run.serial)
        })
    }

    fn write_context(&mut self, at: u64, blocked: u64, program_counter: u64) -> Result<(), Stop> {
        let stack = self.task().alternate_stack;
        let mut bytes = Buffer::zeroed(context::SIZE);
        let words = [stack.0, u64::from(stack.1), stack.2];
        bytes.write(context::STACK, &words.map(u64::to_le_bytes).concat());
        bytes.write(context::STACK_POINTER, &at.to_le_bytes());
        bytes.write(context::PROGRAM_COUNTER, &program_counter.to_le_bytes());
        bytes.write(context::MASK, &blocked.to_le_bytes());
        self.write_buffer(at, &bytes)
    }

    /// Reads a word of a `ucontext`, which the handler may have changed.
    fn context_word(&mut self, context: u64, offset: usize) -> Option<u64> {
        let address = context.checked_add(offset as u64)?;
        let word = self.vm.memory.load(self.vm.arena, address, 8).ok()?;
        word.as_concrete()
    }

    /// Returns from a handler: restores the signal mask and continues the interrupted code.
    pub fn handler_returned(&mut self) -> Result<(), Stop> {
        if self.guest.is_none() {
            let depth = self.vm.thread.frames.len();
            self.task_mut().handlers.retain(|run| run.depth <= depth);
        }
        let Some(run) = self.task_mut().handlers.pop() else {
            return Ok(());
        };
        let blocked = match &mut self.guest {
            Some(guest) => guest.restored_mask(),
            None => self.context_word(run.context, context::MASK),
        };
        let counter = self.context_word(run.context, context::PROGRAM_COUNTER);
        while self.vm.thread.slots.len() > run.slots {
            self.vm.pop_slot();
        }
        if run.on_alternate_stack {
            self.vm.thread.leave_alternate_stacks(run.depth);
        }
        self.vm.thread.floats = run.floats;
        if let Some(bug) = run.ends_with {
            return Err(Stop::Interrupt(everett_vm::Interrupt::Bug(bug)));
        }
        let task = self.task_mut();
        task.blocked = blockable(blocked.unwrap_or(run.blocked));
        if let Some(stack) = run.restored_stack {
            task.alternate_stack = stack;
        }
        task.resume(run.call);
        self.continue_at(run.program_counter, counter.unwrap_or(run.program_counter))?;
        self.deliver_signals()
    }

    /// Continues at the program counter that a handler has set: libc cancels a thread by moving its
    /// program counter out of the system call.
    fn continue_at(&mut self, shown: u64, wanted: u64) -> Result<(), Stop> {
        if shown == wanted {
            return Ok(());
        }
        let symbols = &self.vm.image.program().symbols;
        if symbols.get("__cp_cancel") == Some(&wanted) && self.vm.at_cancellation_point() {
            self.task_mut().suspend();
            if self.vm.begin_cancellation()? {
                return Ok(());
            }
        }
        Err(self.unsupported("a signal handler changed registers of the interrupted code"))
    }

    /// An instruction faults: runs its signal handler, if there is one. The instruction is executed
    /// again when the handler returns.
    pub(crate) fn deliver_fault(&mut self, bug: &Bug) -> Result<bool, Stop> {
        if !self.host.options.faults_to_handlers {
            return Ok(false);
        }
        let Some(mut signal) = fault_of(bug) else {
            return Ok(false);
        };
        let action = self.process().actions[signal.number as usize - 1];
        let is_blocked = self.task().blocked & bit(signal.number) != 0;
        if is_blocked || matches!(action.handler, DEFAULT | IGNORE) {
            return Ok(false);
        }
        if bug.kind == BugKind::StackOverflow {
            let stack = self.task().alternate_stack;
            let has_room = action.flags & SA_ONSTACK != 0 && stack.1 & NO_STACK == 0;
            if !has_room || self.is_on_alternate_stack() {
                return Ok(false);
            }
        }
        let ends = matches!(bug.kind, BugKind::Abort | BugKind::Assertion);
        if ends {
            signal = Signal::from_process(signal.number, signal.code, self.process());
        }
        self.vm.commit();
        let ends_with = ends.then(|| Box::new(bug.clone()));
        self.run_handler(&signal, action, ends_with)?;
        Ok(true)
    }
}
