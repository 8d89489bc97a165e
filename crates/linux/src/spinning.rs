//! Detects spinning threads: loops that read a flag until another thread has set it. If all other
//! threads wait for a time, virtual time jumps there instead of passing in the loop.

use everett_expr::{Arena, ArrayId, ExprId};
use everett_vm::{ChoiceSite, Coverage, ExecContext, Exit, Oracle, Suspend, Thread, Vm};

use crate::host::Host;

/// Maximum number of jumps in a loop that is detected.
const MAX_JUMPS: u32 = 32;

/// An oracle that answers nothing: a thread that asks is not spinning.
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

/// Whether two states of a thread are the same. A call changes the serial number of frames, so a
/// loop that calls functions is not detected.
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
    /// Whether the running thread returns to its current state and has changed nothing: it then
    /// repeats this until another thread writes to its memory, or a signal arrives. The check
    /// executes a copy of the thread, so the result depends only on the state.
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
