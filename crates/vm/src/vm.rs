//! The execution context of one thread: everything that instructions and built-in operations may
//! access.

use everett_expr::{Arena, ExprId};
use everett_ir::code::{Call, Callee, FunctionId, GlobalId, Inst, Pc, ValueType};
use smallvec::SmallVec;
use triomphe::Arc;

use crate::bug::{Bug, BugKind, MOST_FRAMES};
use crate::choice::ChoiceSite;
use crate::function_faults::FunctionFaults;
use crate::image::Image;
use crate::memory::{Memory, ObjectKind};
use crate::options::VmOptions;
use crate::oracle::{Oracle, Suspend};
use crate::stacks::{CallSite, ImageId, StackId, StackTable};
use crate::thread::{
    AlternateStack, Frame, OnReturn, Thread, Variadic, VariadicArgument, call_path,
};
use crate::value::Value;

/// Minimum size of a native stack frame: the return address and a saved register.
const FRAME_BYTES: u64 = 16;

/// System call numbers from here on are hypercalls: calls from a program to Everett, not to Linux.
pub const HYPERCALL_BASE: u32 = 0x1_0000;

/// A system call that the thread makes.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct SystemCall {
    /// The number.
    pub number: Value,
    /// The arguments.
    pub args: [Value; 6],
    /// Function and argument of a new thread.
    pub entry: Option<(Value, Value)>,
    /// The position at which the thread continues afterwards, whatever the result.
    pub jump: Option<JumpTarget>,
}

impl SystemCall {
    /// Creates a system call that returns its result to the caller.
    pub fn new(number: Value, args: [Value; 6]) -> SystemCall {
        SystemCall {
            number,
            args,
            entry: None,
            jump: None,
        }
    }
}

/// The target of a `longjmp`: a call of `setjmp`.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct JumpTarget {
    /// The activation that called setjmp.
    pub serial: u64,
    /// The call of setjmp in it.
    pub pc: Pc,
    /// Number of stack slots at that time.
    pub slots: u32,
    /// The value that setjmp returns this time.
    pub value: Value,
}

/// A request that the vm did not fulfil although a machine would, while the program continues.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declined {
    /// The function that was called.
    pub call: &'static str,
    /// The request.
    pub what: &'static str,
    /// The call sites, innermost first.
    pub sites: Vec<CallSite>,
}

/// The reason why an instruction did not complete. It has changed nothing.
#[derive(Clone, PartialEq, Debug)]
pub enum Interrupt {
    /// A question to the oracle has several answers.
    Suspend,
    /// A finding.
    Bug(Box<Bug>),
    /// A system call; [`Vm::finish_call`] takes its result.
    SystemCall(Box<SystemCall>),
    /// The program ended this path, without a finding.
    EndPath,
    /// A preemption point: other threads may run first. The instruction executes when the thread is
    /// resumed.
    PreemptionPoint,
}

impl From<Suspend> for Interrupt {
    fn from(_: Suspend) -> Interrupt {
        Interrupt::Suspend
    }
}

impl From<Bug> for Interrupt {
    fn from(bug: Bug) -> Interrupt {
        Interrupt::Bug(Box::new(bug))
    }
}

/// The reason why [`Vm::run`] returned.
#[derive(Clone, PartialEq, Debug)]
pub enum Exit {
    /// The instruction budget is used up.
    Budget,
    /// A frame with [`OnReturn::Stop`] returned these values.
    Returned(SmallVec<[Value; 4]>),
    /// An instruction did not complete.
    Interrupted(Interrupt),
}

/// The outcome of a built-in operation.
#[derive(Clone, PartialEq, Debug)]
pub enum Done {
    /// No result.
    Void,
    /// One register.
    Value(Value),
    /// Several registers.
    Values(SmallVec<[Value; 4]>),
    /// The operation transferred control itself (pushed or popped frames, or set the program
    /// counter).
    Moved,
}

/// The arguments of a built-in operation.
pub struct Arguments<'a> {
    /// Registers of all arguments.
    pub values: SmallVec<[Value; 8]>,
    /// The call site: types, result, destination.
    pub call: &'a Call,
    /// The name that the call used.
    pub name: &'a str,
}

impl Arguments<'_> {
    /// Returns a register; zero if the caller passed fewer.
    pub fn get(&self, index: usize) -> Value {
        self.values.get(index).copied().unwrap_or(Value::ZERO)
    }

    /// Returns the width in bits of an argument that takes one register.
    pub fn width(&self, index: usize) -> u32 {
        width_of(self.call.arg_types.get(index).copied())
    }

    /// Returns the width in bits of the result.
    pub fn result_width(&self) -> u32 {
        width_of(Some(self.call.result))
    }
}

/// Returns the call that the top frame of a thread is executing.
fn call_of<'i>(image: &'i Image, thread: &Thread) -> Option<&'i Call> {
    let frame = thread.top()?;
    let code = image.code(frame.function)?;
    match code.instructions.get(frame.pc as usize)? {
        Inst::Call { call } => code.calls.get(*call as usize),
        _ => None,
    }
}

fn width_of(ty: Option<ValueType>) -> u32 {
    match ty {
        Some(ValueType::Int(width)) => u32::from(width),
        Some(ValueType::Float(kind)) => kind.bits(),
        Some(ValueType::Vector { lane, .. }) => lane.bits(),
        _ => 64,
    }
}

/// Coverage: the segments and branch edges that were executed.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// One byte per segment, so that marking is a single store. The edges of branches follow the
    /// segments.
    pub segments: Vec<u8>,
    /// Number of segments in `segments`.
    blocks: usize,
    /// Set when a segment is executed for the first time; the reader clears it.
    pub grew: bool,
}

impl Coverage {
    /// Creates empty coverage for all segments of these programs.
    pub fn of(images: &[Image]) -> Coverage {
        let segments = images.iter().map(|image| image.program().segments.len());
        let branches = images.iter().map(|image| image.program().branches as usize);
        let mut coverage = Coverage::new(segments.sum());
        let edges = 2 * branches.sum::<usize>();
        coverage.segments.resize(coverage.blocks + edges, 0);
        coverage
    }

    /// Creates empty coverage for this many segments.
    pub fn new(segments: usize) -> Coverage {
        Coverage {
            segments: vec![0; segments],
            blocks: segments,
            grew: false,
        }
    }

    /// Returns the marks of segments, without those of branches.
    pub fn blocks(&self) -> &[u8] {
        &self.segments[..self.blocks]
    }

    /// Marks an edge of a conditional branch. This does not set `grew`; a new segment does.
    #[inline(always)]
    pub(crate) fn mark_edge(&mut self, edges: u32, holds: bool) {
        self.mark_side(edges + u32::from(!holds));
    }

    /// Marks an edge of a branch or switch by its index.
    #[inline(always)]
    pub(crate) fn mark_side(&mut self, side: u32) {
        if let Some(mark) = self.segments.get_mut(side as usize) {
            *mark = 1;
        }
    }

    #[inline(always)]
    pub(crate) fn mark(&mut self, segment: u32) {
        let mark = &mut self.segments[segment as usize];
        if *mark == 0 {
            *mark = 1;
            self.grew = true;
        }
    }
}

/// A thread together with everything it needs to execute.
pub struct Vm<'a> {
    /// The program.
    pub image: &'a Image,
    /// Index of the program's first segment among those of all programs.
    pub(crate) first_segment: u32,
    /// The term arena.
    pub arena: &'a mut Arena,
    /// The oracle.
    pub oracle: &'a mut dyn Oracle,
    /// The table of call stacks.
    pub stacks: &'a mut StackTable,
    /// The coverage to update.
    pub coverage: &'a mut Coverage,
    /// The options.
    pub options: &'a VmOptions,
    /// The memory of the process.
    pub memory: &'a mut Memory,
    /// The thread.
    pub thread: &'a mut Thread,
    /// Number of instructions executed so far.
    pub instructions: u64,
    /// The value of the processor's time-stamp counter: the virtual clock.
    pub clock_ns: u64,
    /// malloc and its family return null when this many bytes are live.
    pub max_heap: u64,
    /// malloc and its family also return null when blocks and mappings take this much of the
    /// address space.
    pub max_address_space: u64,
    /// malloc and its family also return null when blocks and private writable mappings take this
    /// much.
    pub max_data: u64,
    /// Maximum size of the stack of the first thread in bytes (`RLIMIT_STACK`).
    pub max_stack: u64,
    /// Whether an allocation or a mapping has failed because of these limits.
    pub reached_max_heap: bool,
    /// Number of calls of malloc and its family that fault injection may still fail.
    pub malloc_faults: u32,
    /// The libc functions that fault injection may fail.
    pub function_faults: FunctionFaults,
    /// The call stacks of the allocations that fault injection has failed.
    pub failed_allocations: Vec<Option<StackId>>,
    /// The requests that the vm did not fulfil although a machine would, since this was last taken.
    pub declined: Vec<Declined>,
    /// The preemption points.
    pub points: PreemptionPoints,
    /// Whether the thread is the only one of its process.
    pub alone: bool,
    /// Whether the instruction has asked the oracle anything.
    pub(crate) asked: bool,
}

/// The execution context: everything that a [`Vm`] needs except the state.
pub struct ExecContext<'a> {
    /// The programs of the run.
    pub images: &'a [Image],
    /// The term arena.
    pub arena: &'a mut Arena,
    /// The oracle.
    pub oracle: &'a mut dyn Oracle,
    /// The table of call stacks.
    pub stacks: &'a mut StackTable,
    /// The coverage to update.
    pub coverage: &'a mut Coverage,
    /// The options.
    pub options: &'a VmOptions,
}

impl<'a> Vm<'a> {
    /// Creates the vm of a thread.
    pub fn new(
        context: ExecContext<'a>,
        image: ImageId,
        memory: &'a mut Memory,
        thread: &'a mut Thread,
    ) -> Vm<'a> {
        let ExecContext {
            images,
            arena,
            oracle,
            stacks,
            coverage,
            options,
        } = context;
        Vm {
            image: &images[usize::from(image.0)],
            first_segment: images[usize::from(image.0)].first_segment(),
            arena,
            oracle,
            stacks,
            coverage,
            options,
            memory,
            thread,
            instructions: 0,
            clock_ns: 0,
            max_heap: options.max_heap,
            max_address_space: u64::MAX,
            max_data: u64::MAX,
            max_stack: options.max_stack_bytes,
            reached_max_heap: false,
            malloc_faults: 0,
            function_faults: FunctionFaults::default(),
            failed_allocations: Vec::new(),
            declined: Vec::new(),
            points: PreemptionPoints::None,
            alone: false,
            asked: false,
        }
    }

    /// Branches on a one-bit value.
    pub fn decide(&mut self, bit: Value) -> Result<bool, Interrupt> {
        match bit.term {
            None => Ok(bit.bits & 1 != 0),
            // A register of a merged state may have a wider term.
            Some(_) => {
                let term = bit.to_term(self.arena, 1);
                self.decide_term(term)
            }
        }
    }

    /// Branches on a condition.
    pub fn decide_term(&mut self, condition: ExprId) -> Result<bool, Interrupt> {
        if let Some(bit) = self.arena.as_const(condition) {
            return Ok(bit != 0);
        }
        let condition = self.initialised(condition)?;
        if let Some(bit) = self.arena.as_const(condition) {
            return Ok(bit != 0);
        }
        self.asks();
        Ok(self.oracle.branch(self.arena, condition)?)
    }

    /// Notes that the vm is about to ask the oracle.
    pub(crate) fn asks(&mut self) {
        self.asked = true;
        if let Some(frame) = self.thread.frames.last() {
            let site = CallSite {
                image: self.image.number(),
                function: frame.function,
                pc: frame.pc,
            };
            self.oracle.asks_from(site);
            if self.oracle.wants_call_path() {
                let path = call_path(site.image, &self.thread.frames);
                self.oracle.asks_along(site, path);
            }
        }
    }

    /// Returns the call sites of the innermost frames of the thread.
    pub fn innermost_sites(&self) -> Vec<CallSite> {
        const MOST: usize = 16;
        let frames = self.thread.frames.iter().rev().take(MOST);
        let site = |frame: &Frame| CallSite {
            image: self.image.number(),
            function: frame.function,
            pc: frame.pc,
        };
        frames.map(site).collect()
    }

    /// Concretises a value, one path per feasible value.
    pub fn concretize(&mut self, value: Value) -> Result<u64, Interrupt> {
        match value.term {
            None => Ok(value.bits),
            Some(term) => {
                let term = self.initialised(term)?;
                if let Some(bits) = self.arena.as_const(term) {
                    return Ok(bits);
                }
                self.asks();
                Ok(self.oracle.concretize(self.arena, term)?)
            }
        }
    }

    /// Makes a choice that does not depend on data.
    pub fn choose(&mut self, site: &ChoiceSite, alternatives: u32) -> Result<u32, Interrupt> {
        self.asked = true;
        Ok(self.oracle.choose(site, alternatives)?)
    }

    /// Ends the path with a finding if the condition holds; continues on the path where it does
    /// not.
    pub fn forbid(
        &mut self,
        condition: ExprId,
        bug: impl FnOnce() -> Bug,
    ) -> Result<(), Interrupt> {
        if self.decide_term(condition)? {
            Err(bug().into())
        } else {
            Ok(())
        }
    }

    /// Tells the oracle that the instruction has completed.
    pub fn commit(&mut self) {
        if self.asked {
            self.asked = false;
            self.oracle.commit();
        }
    }

    /// Returns the current call stack.
    pub fn stack(&mut self) -> Option<StackId> {
        let mut below = None;
        // Frames below the top do not change while they wait, so their interned stacks stay valid.
        let frames = &mut self.thread.frames;
        let known = frames
            .iter()
            .rposition(|frame| frame.callers.is_some())
            .unwrap_or(0);
        if let Some(frame) = frames.get(known) {
            below = frame.callers;
        }
        for frame in &mut frames[known..] {
            frame.callers = below;
            let site = CallSite {
                image: self.image.number(),
                function: frame.function,
                pc: frame.pc,
            };
            below = Some(self.stacks.push(below, site));
        }
        below
    }

    /// Calls a function that has code. The caller's program counter stays at the call.
    pub fn push_frame(
        &mut self,
        function: FunctionId,
        args: &[Value],
        variadic: Option<Arc<Variadic>>,
        on_return: OnReturn,
    ) -> Result<(), Interrupt> {
        let Some(code) = self.image.code(function) else {
            let name = &self.image.program().functions[function.0 as usize].name;
            let message = format!("{name} cannot be called this way");
            return Err(Bug::new(BugKind::Unsupported, message).into());
        };
        let depth = self.thread.frames.len();
        let bytes = self.thread.stack_bytes + FRAME_BYTES * depth as u64;
        if depth >= self.options.most_frames {
            let message = format!("{MOST_FRAMES}: {depth} calls");
            return Err(Bug::new(BugKind::Unsupported, message).into());
        }
        let (max_frames, max_bytes) = self.stack_limits();
        if depth >= max_frames || bytes > max_bytes {
            let message = format!("{depth} nested calls use {}", crate::bug::bytes(bytes));
            return Err(Bug::new(BugKind::StackOverflow, message).into());
        }
        let thread = &mut *self.thread;
        let base = thread.registers.len();
        let parameters = (code.parameter_registers as usize).min(args.len());
        thread.registers.extend_from_slice(&args[..parameters]);
        thread
            .registers
            .resize(base + code.registers as usize, Value::ZERO);
        thread.next_serial += 1;
        thread.frames.push(Frame {
            function,
            pc: 0,
            base: base as u32,
            first_slot: thread.slots.len() as u32,
            serial: thread.next_serial,
            on_return,
            callers: None,
            variadic,
            landing: (Value::ZERO, 0),
        });
        Ok(())
    }

    /// Returns the maximum call depth, and the maximum stack size in slots and frames.
    fn stack_limits(&self) -> (usize, u64) {
        match self.thread.alternate_stacks.last() {
            None if self.thread.number == 0 => (self.options.max_frames, self.max_stack),
            None => (self.options.max_frames, self.options.max_stack_bytes),
            Some(second) => (
                second.depth + (second.size / FRAME_BYTES) as usize,
                second.used.saturating_add(second.size),
            ),
        }
    }

    /// Runs the next call on an alternate stack.
    pub fn enter_alternate_stack(&mut self, start: u64, size: u64) {
        let depth = self.thread.frames.len();
        let used = self.thread.stack_bytes + FRAME_BYTES * depth as u64;
        let object = self.memory.object_at(start, size);
        let is_there = object.is_some_and(|object| {
            object.kind != ObjectKind::Constant && object.allows(start - object.start, size, true)
        });
        self.thread.alternate_stacks.push(AlternateStack {
            depth,
            used,
            size,
            first_slot: self.thread.slots.len(),
            start: is_there.then_some(start),
        });
    }

    /// Pops the top frame and its stack slots.
    pub fn pop_frame(&mut self) -> Option<Frame> {
        let frame = self.thread.frames.pop()?;
        while self.thread.slots.len() > frame.first_slot as usize {
            self.pop_slot();
        }
        self.thread.registers.truncate(frame.base as usize);
        Some(frame)
    }

    /// Pops the newest stack slot.
    pub fn pop_slot(&mut self) {
        if let Some(slot) = self.thread.slots.pop() {
            let size = match self.thread.place_of(self.thread.slots.len()) {
                Some((_, end)) => end - slot,
                None => self.memory.pop_stack(slot),
            };
            self.thread.stack_bytes = self.thread.stack_bytes.saturating_sub(size);
        }
    }

    /// Allocates a stack slot of the top frame.
    pub fn push_slot(&mut self, size: u64, align: u64) -> Result<u64, Interrupt> {
        if let Some(placed) = self.place_slot(size, align)? {
            return Ok(placed);
        }
        let start = self.push_zeroed_slot(size, align)?;
        self.mark_uninitialised(start, 0);
        Ok(start)
    }

    /// Allocates a stack slot on the alternate stack, if the thread runs on one.
    fn place_slot(&mut self, size: u64, align: u64) -> Result<Option<u64>, Interrupt> {
        let Some((lowest, end)) = self.thread.place_of(self.thread.slots.len()) else {
            return Ok(None);
        };
        let at = end.checked_sub(size).map(|at| at & !(align.max(1) - 1));
        let Some(at) = at.filter(|at| *at >= lowest) else {
            let message = format!("no room for {}", crate::bug::bytes(size));
            return Err(Bug::new(BugKind::StackOverflow, message).into());
        };
        self.thread.stack_bytes = self.thread.stack_bytes.saturating_add(end - at);
        self.thread.slots.push(at);
        Ok(Some(at))
    }

    fn push_zeroed_slot(&mut self, size: u64, align: u64) -> Result<u64, Interrupt> {
        let stack_overflow = || {
            Bug::new(
                BugKind::StackOverflow,
                format!("no room for {}", crate::bug::bytes(size)),
            )
        };
        let bytes = self.thread.stack_bytes.saturating_add(size);
        if bytes > self.stack_limits().1 {
            return Err(stack_overflow().into());
        }
        let start = self
            .memory
            .push_stack(self.thread.number, size, align.max(1))
            .ok_or_else(stack_overflow)?;
        self.thread.slots.push(start);
        self.thread.stack_bytes = bytes;
        Ok(start)
    }

    /// Allocates a stack slot of the top frame for its variadic arguments.
    pub(crate) fn push_arguments(&mut self, size: u64) -> Result<u64, Interrupt> {
        if let Some(placed) = self.place_slot(size, 64)? {
            return Ok(placed);
        }
        let start = self.push_zeroed_slot(size, 64)?;
        if let Some(object) = self.memory.object_at_mut(start, 0) {
            object.kind = ObjectKind::Arguments;
        }
        Ok(start)
    }

    /// Returns the call that the top frame is executing.
    pub fn current_call(&self) -> Option<&'a Call> {
        call_of(self.image, self.thread)
    }

    /// Completes the call in progress with its results and continues after it.
    pub fn finish_call(&mut self, results: &[Value]) {
        Vm::finish_call_of(self.image, self.thread, results);
    }

    /// Completes the call in progress of a thread that is not running.
    pub fn finish_call_of(image: &Image, thread: &mut Thread, results: &[Value]) {
        let Some(call) = call_of(image, thread) else {
            return;
        };
        let wanted = call.result.registers() as usize;
        let Some(frame) = thread.frames.last_mut() else {
            return;
        };
        let dst = frame.base as usize + call.dst as usize;
        for (at, value) in results.iter().take(wanted).enumerate() {
            thread.registers[dst + at] = *value;
        }
        frame.pc += 1;
    }

    /// Sets the program counter of the top frame.
    pub fn jump(&mut self, pc: Pc) {
        if let Some(frame) = self.thread.frames.last_mut() {
            frame.pc = pc;
        }
    }

    /// Collects the variadic arguments: those after the registers of the callee's named parameters.
    pub(crate) fn gather_variadic(call: &Call, values: &[Value], named: usize) -> Variadic {
        let mut variadic = Variadic::default();
        let mut at = 0;
        for (index, ty) in call.arg_types.iter().enumerate() {
            let registers = ty.registers() as usize;
            let copy = call
                .by_value
                .iter()
                .find(|copy| copy.argument as usize == index);
            let by_value = copy.map(|copy| (copy.size, copy.align));
            let first = at;
            at += registers;
            let values = values[first..at].to_vec();
            // The caller may assume another number of named parameters than the callee has.
            if first >= named {
                variadic.arguments.push(VariadicArgument {
                    ty: *ty,
                    values,
                    by_value,
                });
            }
        }
        variadic
    }

    /// Returns the address of a thread-local global; allocates it at first use.
    pub(crate) fn thread_local(&mut self, global: GlobalId) -> Result<u64, Interrupt> {
        if let Some((_, address)) = self.thread.locals.iter().find(|local| local.0 == global) {
            return Ok(*address);
        }
        let image = self.image;
        let definition = &image.program().globals[global.0 as usize];
        let object = self
            .memory
            .allocate(definition.size, definition.align, ObjectKind::Global)
            .ok_or_else(|| Bug::new(BugKind::HugeAllocation, "no room for thread-local data"))?;
        object.write_concrete(0, &definition.bytes);
        let address = object.start;
        self.thread.locals.push((global, address));
        Ok(address)
    }

    /// Returns the name of a callee, for messages.
    pub(crate) fn callee_name(&self, callee: Callee) -> &'a str {
        let program = self.image.program();
        match callee {
            Callee::Function(id) => &program.functions[id.0 as usize].name,
            Callee::External(id) => &program.externals[id.0 as usize],
            Callee::Assembly(index) => &program.assembly[index as usize].template,
            Callee::Pointer(_) => "a function pointer",
        }
    }
}

/// The kinds of instructions before which a thread yields.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum PreemptionPoints {
    /// No instructions.
    #[default]
    None,
    /// Atomic accesses.
    Atomics,
    /// All accesses to memory that several threads can reach.
    Memory,
}

/// The function of a built-in operation: it asks the oracle all its questions, then changes the
/// state, then returns the result.
pub type Handler = for<'v, 'a, 'b> fn(&'v mut Vm<'a>, &'v Arguments<'b>) -> Result<Done, Interrupt>;
