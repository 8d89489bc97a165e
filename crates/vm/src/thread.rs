//! A thread of a process: its frames and registers. A thread is a value.

use everett_ir::code::{FunctionId, GlobalId, Pc, ValueType};
use triomphe::Arc;

use crate::stacks::StackId;
use crate::unwind::Unwinding;
use crate::value::Value;

/// What happens when a frame returns.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OnReturn {
    /// The caller's call gets the result.
    Caller,
    /// The thread is at its end, or whoever pushed the frame wants to know.
    Stop,
    /// The unwinder goes on with the result.
    Unwinder,
}

/// An argument beyond the named ones.
#[derive(Clone, Debug)]
pub struct VariadicArgument {
    /// Its type.
    pub ty: ValueType,
    /// Its registers.
    pub values: Vec<Value>,
    /// Size and alignment, if it is passed as a copy of memory.
    pub by_value: Option<(u64, u32)>,
}

/// Arguments of a variadic call, and how many registers the named ones took.
#[derive(Clone, Debug, Default)]
pub struct Variadic {
    /// The arguments.
    pub arguments: Vec<VariadicArgument>,
    /// General registers taken by named arguments.
    pub named_general: u32,
    /// Vector registers taken by named arguments.
    pub named_vector: u32,
    /// Bytes of stack taken by named arguments.
    pub named_stack: u64,
}

/// A function that is being executed.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Which.
    pub function: FunctionId,
    /// The instruction that is executed next, or the call that is under way.
    pub pc: Pc,
    /// Where its registers begin in [`Thread::registers`].
    pub base: u32,
    /// Stack slots below this number belong to callers.
    pub first_slot: u32,
    /// Tells this activation from others, for `longjmp`.
    pub serial: u64,
    /// What to do at its end.
    pub on_return: OnReturn,
    /// The stack below it, where it was asked for.
    pub callers: Option<StackId>,
    /// Arguments beyond the named ones.
    pub variadic: Option<Arc<Variadic>>,
    /// What the unwinder left for the landing pad: exception and selector.
    pub landing: (Value, u64),
}

/// The control word that a process starts with: extended precision, all exceptions masked, to nearest.
pub const DEFAULT_X87_CONTROL: u16 = 0x37f;

/// A thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its number in the process, which selects its stack.
    pub number: u32,
    /// Registers of all frames, outermost first.
    pub registers: Vec<Value>,
    /// Frames, outermost first.
    pub frames: Vec<Frame>,
    /// Addresses of live stack slots, in the order of their making.
    pub slots: Vec<u64>,
    /// Bytes in these slots.
    pub stack_bytes: u64,
    /// Base of `%fs`.
    pub fs_base: u64,
    /// Control word of the x87; rounding, precision and masks are those of the start.
    pub x87_control: u16,
    /// Thread-local globals that this thread has used.
    pub locals: Vec<(GlobalId, u64)>,
    /// Next serial of a frame.
    pub next_serial: u64,
    /// An exception that is looking for its handler.
    pub unwinding: Option<Arc<Unwinding>>,
    /// Others had the chance to run before the instruction that is next.
    pub passed_preemption_point: bool,
    /// A second stack that it runs on.
    pub alternate_stack: Option<AlternateStack>,
}

/// Room beyond the usual end of the stack, for handlers of signals.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AlternateStack {
    /// Frames that there were when it was entered.
    pub depth: usize,
    /// Bytes that were in use, in slots and frames.
    pub used: u64,
    /// Its size.
    pub size: u64,
}

impl Thread {
    /// A thread without frames.
    pub fn new(number: u32) -> Thread {
        Thread {
            number,
            registers: Vec::new(),
            frames: Vec::new(),
            slots: Vec::new(),
            stack_bytes: 0,
            fs_base: 0,
            x87_control: DEFAULT_X87_CONTROL,
            locals: Vec::new(),
            next_serial: 0,
            unwinding: None,
            passed_preemption_point: false,
            alternate_stack: None,
        }
    }

    /// The running frame.
    pub fn top(&self) -> Option<&Frame> {
        self.frames.last()
    }

    /// Terms in its registers, for marking what is alive.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(everett_expr::ExprId)) {
        self.registers
            .iter()
            .filter_map(|value| value.term)
            .for_each(&mut *visit);
        for frame in &self.frames {
            frame.landing.0.term.into_iter().for_each(&mut *visit);
            let variadic = frame
                .variadic
                .iter()
                .flat_map(|variadic| variadic.arguments.iter());
            variadic
                .flat_map(|argument| argument.values.iter())
                .filter_map(|value| value.term)
                .for_each(&mut *visit);
        }
    }
}
