//! Recognises threads that do nothing but wait for memory to change: loops that read a flag until
//! another thread has set it. Virtual time passes at once for them if all others wait for it.

use everett_expr::{Arena, ArrayId, ExprId};
use everett_vm::{ChoiceSite, Coverage, ExecContext, Exit, Oracle, Suspend, Thread, Vm};

use crate::host::Host;

/// The most jumps in a loop that is recognised.
const MAX_JUMPS: u32 = 32;

/// Whoever asks is no such thread.
struct NoAnswers;

impl Oracle for NoAnswers {
    fn branch(&mut self, _: &mut Arena, _: ExprId) -> Result<bool, Suspend> {
        Err(Suspend)
    }

    fn concretize(&mut self, _: &mut Arena, _: ExprId) -> Result<u64, Suspend> {
        Err(Suspend)
    }

    fn choose(&mut self, _: &ChoiceSite, _: u32) -> Result<u32, Suspend> {
        Err(Suspend)
    }

    fn assume(&mut self, _: &mut Arena, _: ExprId) -> Result<bool, Suspend> {
        Err(Suspend)
    }

    fn input(&mut self, _: &mut Arena, _: &str, _: u32) -> Result<ArrayId, Suspend> {
        Err(Suspend)
    }

    fn prefer(&mut self, _: &mut Arena, _: ExprId) {}

    fn open_merge(&mut self) -> Result<(), Suspend> {
        Err(Suspend)
    }

    fn close_merge(&mut self) -> Result<(), Suspend> {
        Err(Suspend)
    }

    fn commit(&mut self) {}
}

/// Whether two states of a thread are the same. Calls leave a trace in them, so a loop that
/// calls functions is not recognised.
fn is_same(one: &Thread, other: &Thread) -> bool {
    let top = |thread: &Thread| {
        let frame = thread.top();
        frame.map(|frame| (thread.frames.len(), frame.function, frame.pc))
    };
    top(one) == top(other)
        && one.next_serial == other.next_serial
        && one.slots == other.slots
        && one.registers == other.registers
}

impl Host {
    /// Whether the running thread comes back to where it is and has changed nothing: then it goes
    /// on so until another thread writes to its memory, or a signal comes. A copy of it is
    /// executed, so this is a function of its state.
    pub(crate) fn spins(&self, around: &mut ExecContext<'_>) -> bool {
        let task = self.state.schedule.running;
        let (Some(process), Some(thread)) = (self.process_index(task), self.threads.get(task))
        else {
            return false;
        };
        let before = &self.memories[self.memory_index(process)];
        if before.has_views() {
            return false;
        }
        let (mut memory, mut copy) = (before.clone(), Thread::clone(thread));
        let mut coverage = Coverage::of(around.images);
        let around = ExecContext {
            images: around.images,
            arena: around.arena,
            oracle: &mut NoAnswers,
            stacks: around.stacks,
            coverage: &mut coverage,
            options: around.options,
        };
        let image = self.state.processes[process].image;
        let mut vm = Vm::new(around, image, &mut memory, &mut copy);
        for _ in 0..MAX_JUMPS {
            if !matches!(vm.run(1), Exit::Budget) {
                return false;
            }
            if is_same(vm.thread, thread) {
                return vm.memory.is_unchanged_since(before);
            }
        }
        false
    }
}
