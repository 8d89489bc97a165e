//! A thread: its stack frames and registers. A thread is a value.

use everett_expr::{FloatFormat, RoundingMode};
use everett_ir::code::{FunctionId, GlobalId, Pc, ValueType};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use triomphe::Arc;

use crate::stacks::{ImageId, StackId};
use crate::value::Value;

/// The continuation of a frame when it returns.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OnReturn {
    /// The result goes to the caller's call instruction.
    Caller,
    /// [`crate::Vm::run`] returns: the thread ends, or the code that pushed the frame takes the
    /// result.
    Stop,
    /// The unwinder continues with the result.
    Unwinder,
    /// The caller's call instruction gets this result instead: the function has done its work, and
    /// fails all the same.
    Fails {
        /// The errno that the function sets; 0 for none.
        errno: u16,
        /// The result.
        value: i32,
    },
}

/// A variadic argument (one beyond the named parameters).
#[derive(Clone, Debug)]
pub struct VariadicArgument {
    /// The type.
    pub ty: ValueType,
    /// The registers.
    pub values: Vec<Value>,
    /// Size and alignment, if the argument is passed by value in memory.
    pub by_value: Option<(u64, u32)>,
}

/// The variadic arguments of a call.
#[derive(Clone, Debug, Default)]
pub struct Variadic {
    /// The arguments.
    pub arguments: Vec<VariadicArgument>,
}

/// A stack frame: one activation of a function.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The function.
    pub function: FunctionId,
    /// The next instruction, or the call in progress.
    pub pc: Pc,
    /// Index of the frame's first register in [`Thread::registers`].
    pub base: u32,
    /// Stack slots below this index belong to callers.
    pub first_slot: u32,
    /// Identifies this activation, for `longjmp`.
    pub serial: u64,
    /// The continuation when the frame returns.
    pub on_return: OnReturn,
    /// The interned call stack below the frame, if it was requested before.
    pub callers: Option<StackId>,
    /// The variadic arguments.
    pub variadic: Option<Arc<Variadic>>,
    /// Exception pointer and selector that the unwinder left for the landing pad.
    pub landing: (Value, u64),
}

/// The initial x87 control word: extended precision, all exceptions masked, round to nearest.
pub const DEFAULT_X87_CONTROL: u16 = 0x37f;
/// The initial `MXCSR`: round to nearest, subnormals enabled, exceptions masked, no exception
/// flags.
pub const DEFAULT_MXCSR: u32 = 0x1f80;

/// The floating-point environment of a thread: rounding modes and exception flags. Precision and
/// masks always have their initial values. Flags are tracked only if the program can read them
/// ([`crate::Image::tracks_floats`]).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FloatEnvironment {
    /// Control and status of SSE.
    pub mxcsr: u32,
    /// The x87 control word.
    pub x87_control: u16,
    /// The exception flags in the x87 status word.
    pub x87_status: u16,
    /// Whether flags may be missing, because those of operations on terms are unknown.
    pub unknown: bool,
}

impl Default for FloatEnvironment {
    fn default() -> FloatEnvironment {
        FloatEnvironment {
            mxcsr: DEFAULT_MXCSR,
            x87_control: DEFAULT_X87_CONTROL,
            x87_status: 0,
            unknown: false,
        }
    }
}

impl FloatEnvironment {
    /// Returns the rounding mode of operations in a format.
    pub fn rounding(&self, format: FloatFormat) -> RoundingMode {
        let field = match format {
            FloatFormat::X87 => self.x87_control >> 10,
            _ => (self.mxcsr >> 13) as u16,
        };
        match field & 3 {
            0 => RoundingMode::NearestEven,
            1 => RoundingMode::TowardNegative,
            2 => RoundingMode::TowardPositive,
            _ => RoundingMode::TowardZero,
        }
    }

    /// Raises flags in the unit that executes operations in a format.
    pub fn raise(&mut self, format: FloatFormat, flags: u16) {
        match format {
            FloatFormat::X87 => self.x87_status |= flags,
            _ => self.mxcsr |= u32::from(flags),
        }
    }
}

/// A thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// The number in the process. It selects the thread's stack.
    pub number: u32,
    /// Registers of all frames, outermost first.
    pub registers: Vec<Value>,
    /// Frames, outermost first.
    pub frames: Vec<Frame>,
    /// Addresses of live stack slots, in order of allocation.
    pub slots: Vec<u64>,
    /// Total size of these slots.
    pub stack_bytes: u64,
    /// Base of `%fs`.
    pub fs_base: u64,
    /// Rounding modes and exception flags.
    pub floats: FloatEnvironment,
    /// Addresses of the thread-local globals that this thread has used.
    pub locals: Vec<(GlobalId, u64)>,
    /// The serial of the next frame.
    pub next_serial: u64,
    /// The exception for which the unwinder searches a handler.
    pub unwinding: Option<Arc<Unwinding>>,
    /// Whether other threads had the chance to run before the next instruction, so that it is not a
    /// preemption point again.
    pub passed_preemption_point: bool,
    /// The alternate stacks that the thread runs on, outermost first.
    pub alternate_stacks: Vec<AlternateStack>,
}

/// An alternate signal stack: additional space beyond the end of the thread's stack.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AlternateStack {
    /// Number of frames when it was entered.
    pub depth: usize,
    /// Bytes in use when it was entered, in slots and frames.
    pub used: u64,
    /// Size in bytes.
    pub size: u64,
    /// Number of slots when it was entered; the slots above are on it.
    pub first_slot: usize,
    /// The lowest address of the stack if it is in the program's memory: slots are then placed
    /// there and are not objects themselves. `None` if slots are placed like all others.
    pub start: Option<u64>,
}

impl Thread {
    /// Creates a thread without frames.
    pub fn new(number: u32) -> Thread {
        Thread {
            number,
            registers: Vec::new(),
            frames: Vec::new(),
            slots: Vec::new(),
            stack_bytes: 0,
            fs_base: 0,
            floats: FloatEnvironment::default(),
            locals: Vec::new(),
            next_serial: 0,
            unwinding: None,
            passed_preemption_point: false,
            alternate_stacks: Vec::new(),
        }
    }

    /// Returns the position of the slot with this index, existing or future, if it is on an
    /// alternate stack: the lowest address of that stack, and the end of the space for the slot.
    pub fn place_of(&self, slot: usize) -> Option<(u64, u64)> {
        let mut stacks = self.alternate_stacks.iter().rev();
        let stack = stacks.find(|stack| stack.first_slot <= slot)?;
        let start = stack.start?;
        let above = match slot > stack.first_slot {
            true => self.slots.get(slot - 1).copied(),
            false => None,
        };
        Some((start, above.unwrap_or(start + stack.size)))
    }

    /// Leaves the alternate stacks that were entered with this many frames or more.
    pub fn leave_alternate_stacks(&mut self, depth: usize) {
        self.alternate_stacks.retain(|stack| stack.depth < depth);
    }

    /// Returns the top frame.
    pub fn top(&self) -> Option<&Frame> {
        self.frames.last()
    }

    /// Visits the terms in the registers, as roots for garbage collection.
    pub fn for_each_term(&self, visit: &mut dyn everett_expr::VisitTerms) {
        self.registers
            .iter()
            .filter_map(|value| value.term)
            .for_each(|term| visit.term(term));
        for frame in &self.frames {
            frame
                .landing
                .0
                .term
                .into_iter()
                .for_each(|term| visit.term(term));
            let variadic = frame
                .variadic
                .iter()
                .flat_map(|variadic| variadic.arguments.iter());
            variadic
                .flat_map(|argument| argument.values.iter())
                .filter_map(|value| value.term)
                .for_each(|term| visit.term(term));
        }
    }
}

/// An exception in flight: the position of the search for its handler, which may wait for
/// `can_catch` to return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unwinding {
    /// Address of the `_Unwind_Exception`.
    pub(crate) exception: u64,
    /// The frame being examined.
    pub(crate) frame: usize,
    /// The clause of the landing pad.
    pub(crate) clause: usize,
    /// The type in the filter clause.
    pub(crate) member: usize,
    /// Whether `resume` started the search, so that it does not return on failure.
    pub(crate) resumed: bool,
}

/// Returns a digest of the calls that led to the innermost frame. A call from a place from which the
/// same function was called before leads to where that call led, so recursion is one path.
pub(crate) fn call_path(image: ImageId, frames: &[Frame]) -> u64 {
    let mut calls: Vec<(Option<(FunctionId, Pc)>, FunctionId)> = Vec::new();
    let mut caller = None;
    for frame in frames {
        let call = (caller, frame.function);
        match calls.iter().position(|known| *known == call) {
            Some(at) => calls.truncate(at + 1),
            None => calls.push(call),
        }
        caller = Some((frame.function, frame.pc));
    }
    FxBuildHasher.hash_one((image, calls))
}
