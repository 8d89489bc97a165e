//! The interpreter loop: fetches and executes the instructions of the running thread.

use everett_ir::code::{Callee, Code, FloatKind, FloatOp, Inst, Operand, SwitchTable};
use smallvec::{Array, SmallVec};

use crate::bug::{Bug, BugKind};
use crate::integer;
use crate::preemption::Access;
use crate::thread::OnReturn;
use crate::value::{Value, mask, signed};
use crate::vm::{Exit, Interrupt, Vm};

/// Pointers into the running frame and its code. Valid until frames or registers are reallocated.
#[derive(Copy, Clone)]
struct Cursor<'a> {
    code: &'a Code,
    /// Index of the first edge of the function's branches and switches in the coverage.
    first_edge: u32,
    instructions: *const Inst,
    constants: *const u64,
    registers: *mut Value,
}

impl<'a> Cursor<'a> {
    #[inline(always)]
    fn read(&self, operand: Operand) -> Value {
        // SAFETY: `Image::new` verified that each operand of the code is a valid index of a
        // constant or of a register of the frame, and `Vm::push_frame` allocated these registers.
        unsafe {
            match operand.as_register() {
                Some(register) => *self.registers.add(register as usize),
                None => {
                    let index = operand.as_constant().unwrap_unchecked();
                    Value::concrete(*self.constants.add(index as usize))
                }
            }
        }
    }

    #[inline(always)]
    fn write(&self, register: u32, value: Value) {
        // SAFETY: as in `read`.
        unsafe { *self.registers.add(register as usize) = value }
    }

    #[inline(always)]
    fn fetch(&self, pc: u32) -> &'a Inst {
        // By reference: a copy of all fields would go through the stack. SAFETY: the verified code
        // ends in a terminator, and all branch targets are in range.
        unsafe { &*self.instructions.add(pc as usize) }
    }

    /// Reads the values of operands. Most lists have one or two, for which `collect` takes longer
    /// than the reads.
    #[inline(always)]
    fn read_all<A: Array<Item = Value>>(&self, operands: &[Operand]) -> SmallVec<A> {
        let mut values = SmallVec::new();
        for operand in operands {
            values.push(self.read(*operand));
        }
        values
    }

    /// Reads the consecutive registers or constants of a wide operand.
    fn read_wide(&self, operand: Operand, count: u32) -> SmallVec<[Value; 4]> {
        let at = |offset: u32| match operand.as_register() {
            Some(register) => Operand::register(register + offset),
            None => Operand::constant(operand.as_constant().unwrap_or(0) + offset),
        };
        (0..count).map(|offset| self.read(at(offset))).collect()
    }

    fn write_wide(&self, register: u32, values: &[Value]) {
        for (offset, value) in values.iter().enumerate() {
            self.write(register + offset as u32, *value);
        }
    }
}

impl<'a> Vm<'a> {
    fn cursor(&mut self) -> Option<(Cursor<'a>, u32)> {
        let frame = self.thread.frames.last()?;
        let code = self.image.code(frame.function)?;
        let registers = &mut self.thread.registers[frame.base as usize..];
        let cursor = Cursor {
            code,
            first_edge: self.image.first_edge() + 2 * code.first_branch,
            instructions: code.instructions.as_ptr(),
            constants: code.constants.as_ptr(),
            registers: registers.as_mut_ptr(),
        };
        Some((cursor, frame.pc))
    }

    fn save_pc(&mut self, pc: u32) {
        if let Some(frame) = self.thread.frames.last_mut() {
            frame.pc = pc;
        }
    }

    /// Executes about `budget` instructions, or fewer if something stops the thread.
    pub fn run(&mut self, budget: u64) -> Exit {
        if self.is_watched() {
            self.run_loop::<true>(budget)
        } else {
            self.run_loop::<false>(budget)
        }
    }

    fn run_loop<const WATCHED: bool>(&mut self, budget: u64) -> Exit {
        let limit = self.instructions.saturating_add(budget);
        let Some((mut at, mut pc)) = self.cursor() else {
            return Exit::Returned(SmallVec::new());
        };

        // Evaluates to the value of a fallible step, or leaves the loop with the interrupt of the
        // instruction.
        macro_rules! attempt {
            ($attempt:expr) => {{
                self.save_pc(pc);
                match $attempt {
                    Ok(value) => {
                        self.commit();
                        value
                    }
                    Err(interrupt) => return self.interrupted(interrupt),
                }
            }};
        }

        loop {
            match *at.fetch(pc) {
                Inst::Segment { count, id } => {
                    self.instructions += u64::from(count);
                    self.coverage.mark(self.first_segment + id.0);
                    if self.instructions >= limit {
                        self.save_pc(pc + 1);
                        return Exit::Budget;
                    }
                }
                Inst::Move { dst, src } => at.write(dst, at.read(src)),
                Inst::Int {
                    op,
                    width,
                    flags,
                    dst,
                    a,
                    b,
                } => {
                    let (a, b) = (at.read(a), at.read(b));
                    let width = u32::from(width);
                    let value =
                        if a.term.is_none() && b.term.is_none() && !self.options.check_overflow {
                            integer::concrete(op, width, a.bits, b.bits)
                        } else {
                            None
                        };
                    let value = match value {
                        Some(bits) => Value::concrete(bits),
                        None => attempt!(self.int_slow(op, width, flags, a, b)),
                    };
                    at.write(dst, value);
                }
                Inst::Compare {
                    pred,
                    width,
                    dst,
                    a,
                    b,
                } => {
                    let (a, b) = (at.read(a), at.read(b));
                    let width = u32::from(width);
                    let value = if a.term.is_none() && b.term.is_none() {
                        Value::concrete(u64::from(integer::compare(pred, width, a.bits, b.bits)))
                    } else {
                        let value = self.compare_slow(pred, width, a, b);
                        attempt!(self.settled(value))
                    };
                    at.write(dst, value);
                }
                Inst::CompareBranch {
                    pred,
                    width,
                    a,
                    b,
                    target,
                } => {
                    let (a, b) = (at.read(a), at.read(b));
                    let width = u32::from(width);
                    let holds = if a.term.is_none() && b.term.is_none() {
                        integer::compare(pred, width, a.bits, b.bits)
                    } else {
                        let condition = self.compare_slow(pred, width, a, b);
                        attempt!(self.decide(condition))
                    };
                    let targets = at.code.branches[target as usize];
                    self.coverage.mark_edge(at.first_edge + 2 * target, holds);
                    pc = if holds { targets.then } else { targets.other };
                    continue;
                }
                Inst::Jump { target } => {
                    pc = target;
                    continue;
                }
                Inst::Branch { cond, target } => {
                    let cond = at.read(cond);
                    let holds = match cond.term {
                        None => cond.bits & 1 != 0,
                        Some(_) => attempt!(self.decide(cond)),
                    };
                    let targets = at.code.branches[target as usize];
                    self.coverage.mark_edge(at.first_edge + 2 * target, holds);
                    pc = if holds { targets.then } else { targets.other };
                    continue;
                }
                Inst::Load {
                    bytes,
                    width,
                    dst,
                    ptr,
                    offset,
                    atomic,
                } => {
                    let pointer = at.read(ptr);
                    if WATCHED {
                        let pointer = self.offset_pointer(pointer, offset as i64 as u64);
                        attempt!(self.watch(Access {
                            pointer,
                            len: u64::from(bytes),
                            write: false,
                            atomic,
                            by_kernel: false,
                        }));
                    }
                    let address = pointer.bits.wrapping_add(offset as i64 as u64);
                    let loaded = match pointer.term {
                        None => self
                            .memory
                            .load(self.arena, address, usize::from(bytes))
                            .ok(),
                        Some(_) => None,
                    };
                    let mut value = match loaded {
                        Some(value) => value,
                        None => attempt!(self.load_slow(pointer, offset, bytes)),
                    };
                    if width != 8 * bytes {
                        value = self.truncate(value, u32::from(width));
                    }
                    at.write(dst, value);
                }
                Inst::Store {
                    bytes,
                    src,
                    ptr,
                    offset,
                    atomic,
                    ..
                } => {
                    let pointer = at.read(ptr);
                    if WATCHED {
                        let pointer = self.offset_pointer(pointer, offset as i64 as u64);
                        attempt!(self.watch(Access {
                            pointer,
                            len: u64::from(bytes),
                            write: true,
                            atomic,
                            by_kernel: false,
                        }));
                    }
                    let value = self.fit(at.read(src), usize::from(bytes));
                    let address = pointer.bits.wrapping_add(offset as i64 as u64);
                    let stored = pointer.term.is_none()
                        && self
                            .memory
                            .store(self.arena, address, usize::from(bytes), value)
                            .is_ok();
                    if !stored {
                        attempt!(self.store_slow(pointer, offset, bytes, value));
                    }
                }
                Inst::Index {
                    index_width,
                    dst,
                    base,
                    index,
                    scale,
                } => {
                    let (base, index) = (at.read(base), at.read(index));
                    let value = if base.term.is_none() && index.term.is_none() {
                        let index = signed(index.bits, u32::from(index_width));
                        let offset = index.wrapping_mul(i64::from(scale)) as u64;
                        Value::concrete(base.bits.wrapping_add(offset))
                    } else {
                        self.index_slow(u32::from(index_width), base, index, scale)
                    };
                    at.write(dst, value);
                }
                Inst::Truncate { width, dst, a } => {
                    let value = self.truncate(at.read(a), u32::from(width));
                    at.write(dst, value);
                }
                Inst::SignExtend { from, to, dst, a } => {
                    let a = at.read(a);
                    let value = match a.term {
                        None => {
                            let bits = signed(a.bits, u32::from(from)) as u64;
                            Value::concrete(bits & mask(u32::from(to)))
                        }
                        Some(_) => {
                            let term = a.to_term(self.arena, u32::from(from));
                            let term = self.arena.sext(term, u32::from(to));
                            Value::of_term(self.arena, term)
                        }
                    };
                    at.write(dst, value);
                }
                Inst::Select {
                    width,
                    dst,
                    cond,
                    a,
                    b,
                } => {
                    let cond = at.read(cond);
                    let cond = match cond.term {
                        None => cond,
                        Some(_) => attempt!(self.settled(cond)),
                    };
                    let value = match cond.term {
                        None => at.read(if cond.bits & 1 != 0 { a } else { b }),
                        Some(_) => self.select_slow(u32::from(width), cond, at.read(a), at.read(b)),
                    };
                    at.write(dst, value);
                }
                Inst::Alloca { dst, size, align } => {
                    let address = attempt!(self.push_slot(size, u64::from(align)));
                    at.write(dst, Value::concrete(address));
                }
                Inst::Float {
                    op,
                    kind,
                    dst,
                    a,
                    b,
                } => {
                    let (x, y) = (at.read(a), at.read(b));
                    let plain = kind == FloatKind::Double && !self.image.tracks_floats();
                    if plain && x.term.is_none() && y.term.is_none() {
                        let bits = double(op, x.bits, y.bits);
                        at.write(dst, Value::concrete(bits));
                    } else {
                        let count = kind.registers();
                        let (x, y) = (at.read_wide(a, count), at.read_wide(b, count));
                        let values = attempt!(self.float(op, kind, &x, &y));
                        at.write_wide(dst, &values);
                    }
                }
                Inst::Call { call } => {
                    self.save_pc(pc);
                    let call = &at.code.calls[call as usize];
                    if let Callee::Function(function) = call.callee
                        && call.by_value.is_empty()
                        && self.image.takes_registers(function)
                        && call.fixed as usize == call.arg_types.len()
                    {
                        let args: SmallVec<[Value; 8]> = at.read_all(&call.args);
                        attempt!(self.push_frame(function, &args, None, OnReturn::Caller));
                    } else {
                        let args: SmallVec<[Value; 8]> = at.read_all(&call.args);
                        if WATCHED {
                            attempt!(self.watch_call(call, &args));
                        }
                        let callee = match call.callee {
                            Callee::Pointer(operand) => Some(at.read(operand)),
                            _ => None,
                        };
                        attempt!(self.call(call, args, callee));
                        if WATCHED {
                            self.thread.passed_preemption_point = false;
                        }
                    }
                    match self.cursor() {
                        Some((cursor, next)) => (at, pc) = (cursor, next),
                        None => return Exit::Returned(SmallVec::new()),
                    }
                    continue;
                }
                Inst::Return {
                    values: (first, count),
                } => {
                    let operands = &at.code.operands[first as usize..(first + count) as usize];
                    let results: SmallVec<[Value; 4]> = at.read_all(operands);
                    self.save_pc(pc);
                    match self.pop_frame().map(|frame| frame.on_return) {
                        Some(OnReturn::Caller) => self.finish_call(&results),
                        Some(OnReturn::Unwinder) => {
                            // The frame that returned is popped, so there is no program counter to
                            // save.
                            if let Err(interrupt) = self.resume_search(&results) {
                                return self.interrupted(interrupt);
                            }
                        }
                        Some(OnReturn::Fails { errno, value }) => self.fail_on_return(errno, value),
                        Some(OnReturn::Stop) | None => return Exit::Returned(results),
                    }
                    match self.cursor() {
                        Some((cursor, next)) => (at, pc) = (cursor, next),
                        None => return Exit::Returned(results),
                    }
                    continue;
                }
                Inst::Switch {
                    width,
                    value,
                    table,
                } => {
                    let value = at.read(value);
                    let table = &at.code.switches[table as usize];
                    pc = match value.term {
                        None => table.target(value.bits),
                        Some(_) => attempt!(self.switch_slow(u32::from(width), value, table)),
                    };
                    self.coverage.mark_side(at.first_edge + table.side(pc));
                    continue;
                }
                Inst::IndirectBranch { address } => {
                    let address = attempt!(self.concretize_label(at.read(address), at.code));
                    pc = match at.code.block_addresses.get(&address) {
                        Some(target) => *target,
                        None => {
                            let message = format!("jump to {address:#x}, which is not a label");
                            attempt!(Err(Bug::new(BugKind::BadJump, message).into()))
                        }
                    };
                    continue;
                }
                Inst::Resume { exception } => {
                    let exception = at.read(exception);
                    attempt!(self.resume_unwinding(exception));
                    match self.cursor() {
                        Some((cursor, next)) => (at, pc) = (cursor, next),
                        None => return Exit::Returned(SmallVec::new()),
                    }
                    continue;
                }
                other => {
                    if WATCHED {
                        attempt!(self.watch_rare(&at, other));
                    }
                    attempt!(self.rare(&at, other));
                }
            }
            if WATCHED {
                self.thread.passed_preemption_point = false;
            }
            pc += 1;
        }
    }

    fn interrupted(&mut self, interrupt: Interrupt) -> Exit {
        self.asked = false;
        Exit::Interrupted(interrupt)
    }

    /// Watches atomic read-modify-write instructions like other accesses.
    fn watch_rare(&mut self, at: &Cursor<'_>, inst: Inst) -> Result<(), Interrupt> {
        let (Inst::AtomicUpdate { ptr, bytes, .. } | Inst::CompareExchange { ptr, bytes, .. }) =
            inst
        else {
            return Ok(());
        };
        self.watch(Access {
            pointer: at.read(ptr),
            len: u64::from(bytes),
            write: true,
            atomic: true,
            by_kernel: false,
        })
    }

    /// Executes instructions that are too infrequent to be part of the loop.
    #[inline(never)]
    fn rare(&mut self, at: &Cursor<'_>, inst: Inst) -> Result<(), Interrupt> {
        match inst {
            Inst::WideInt {
                op,
                width,
                dst,
                a,
                b,
            } => {
                let count = u32::from(width).div_ceil(64);
                let (a, b) = (at.read_wide(a, count), at.read_wide(b, count));
                let values = self.wide_int(op, u32::from(width), &a, &b)?;
                at.write_wide(dst, &values);
            }
            Inst::WideCompare {
                pred,
                width,
                dst,
                a,
                b,
            } => {
                let count = u32::from(width).div_ceil(64);
                let (a, b) = (at.read_wide(a, count), at.read_wide(b, count));
                let value = self.wide_compare(pred, u32::from(width), &a, &b);
                at.write(dst, value);
            }
            Inst::WideSignExtend { from, to, dst, a } => {
                let a = at.read_wide(a, u32::from(from).div_ceil(64));
                let term = self.wide_term(&a, u32::from(from));
                let term = self.arena.sext(term, u32::from(to));
                let values = self.wide_value(term);
                at.write_wide(dst, &values);
            }
            Inst::WideExtract {
                from,
                low,
                width,
                dst,
                a,
            } => {
                let a = at.read_wide(a, u32::from(from).div_ceil(64));
                let term = self.wide_term(&a, u32::from(from));
                let term = self.arena.extract(term, u32::from(low), u32::from(width));
                let values = self.wide_value(term);
                at.write_wide(dst, &values);
            }
            Inst::AllocaDynamic {
                count_width,
                dst,
                count,
                size,
                align,
            } => {
                let count = at.read(count);
                let address = self.push_dynamic_slot(u32::from(count_width), count, size, align)?;
                at.write(dst, Value::concrete(address));
            }
            Inst::ThreadLocal { dst, global } => {
                let address = self.thread_local(global)?;
                at.write(dst, Value::concrete(address));
            }
            Inst::FloatNegate { kind, dst, a } => {
                let a = at.read_wide(a, kind.registers());
                let values = self.float_negate(kind, &a);
                at.write_wide(dst, &values);
            }
            Inst::FloatCompare {
                pred,
                signals,
                kind,
                dst,
                a,
                b,
            } => {
                let count = kind.registers();
                let (a, b) = (at.read_wide(a, count), at.read_wide(b, count));
                let value = self.float_compare(pred, signals, kind, &a, &b)?;
                at.write(dst, value);
            }
            Inst::FloatCast { cast, dst, a } => {
                let count = cast.source_registers();
                let a = at.read_wide(a, count);
                let values = self.float_cast(cast, &a)?;
                at.write_wide(dst, &values);
            }
            Inst::AtomicUpdate {
                op,
                bytes,
                dst,
                ptr,
                value,
            } => {
                let old = self.atomic_update(op, bytes, at.read(ptr), at.read(value))?;
                at.write(dst, old);
            }
            Inst::CompareExchange {
                bytes,
                dst,
                ptr,
                expected,
                new,
            } => {
                let count = u32::from(bytes).div_ceil(8);
                let expected = at.read_wide(expected, count);
                let new = at.read_wide(new, count);
                let values = self.compare_exchange(bytes, at.read(ptr), &expected, &new)?;
                at.write_wide(dst, &values);
            }
            Inst::Fence => {}
            Inst::Scope { begins, slot } => {
                let slot = at.read(slot).bits;
                match begins {
                    true if self.memory.begin_scope(slot) => self.mark_uninitialised(slot, 0),
                    true => {}
                    false => self.memory.end_scope(slot),
                }
            }
            Inst::LandingPad { dst } => {
                if let Some(frame) = self.thread.top() {
                    let (exception, selector) = frame.landing;
                    at.write(dst, exception);
                    at.write(dst + 1, Value::concrete(selector));
                }
            }
            Inst::Unreachable => {
                let message = "control reached code that the compiler assumes unreachable";
                return Err(Bug::new(BugKind::Unreachable, message).into());
            }
            Inst::Unsupported { what } => {
                let what = at
                    .code
                    .unsupported
                    .get(what as usize)
                    .map_or("?", String::as_str);
                let message = format!("this instruction is not supported: {what}");
                return Err(Bug::new(BugKind::Unsupported, message).into());
            }
            hot => unreachable!("{hot:?} is executed in the loop"),
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn truncate(&mut self, value: Value, width: u32) -> Value {
        match value.term {
            None => Value::concrete(value.bits & mask(width)),
            Some(_) => {
                let term = value.to_term(self.arena, width);
                Value::of_term(self.arena, term)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn load_slow(&mut self, pointer: Value, offset: i32, bytes: u8) -> Result<Value, Interrupt> {
        let pointer = self.offset_pointer(pointer, offset as i64 as u64);
        self.load(pointer, usize::from(bytes))
    }

    #[cold]
    #[inline(never)]
    fn store_slow(
        &mut self,
        pointer: Value,
        offset: i32,
        bytes: u8,
        value: Value,
    ) -> Result<(), Interrupt> {
        let pointer = self.offset_pointer(pointer, offset as i64 as u64);
        self.store(pointer, usize::from(bytes), value)
    }

    #[cold]
    #[inline(never)]
    fn index_slow(&mut self, width: u32, base: Value, index: Value, scale: i32) -> Value {
        let base = base.to_term(self.arena, 64);
        let index = index.to_term(self.arena, width);
        let index = self.arena.sext_or_trunc(index, 64);
        let scale = self.arena.constant(64, scale as i64 as u64);
        let offset = self.arena.mul(index, scale);
        let sum = self.arena.add(base, offset);
        Value::of_term(self.arena, sum)
    }

    /// Decides a symbolic condition where it is computed, if that is wanted.
    #[cold]
    #[inline(never)]
    pub(crate) fn settled(&mut self, condition: Value) -> Result<Value, Interrupt> {
        match self.options.fork_conditions {
            true => Ok(Value::concrete(u64::from(self.decide(condition)?))),
            false => Ok(condition),
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn select_slow(&mut self, width: u32, cond: Value, a: Value, b: Value) -> Value {
        let cond = cond.to_term(self.arena, 1);
        let a = a.to_term(self.arena, width);
        let b = b.to_term(self.arena, width);
        let term = self.arena.ite(cond, a, b);
        Value::of_term(self.arena, term)
    }

    /// Resolves a switch on a symbolic value. Asks for each target in turn, so that all cases with
    /// the same target are one path.
    #[cold]
    #[inline(never)]
    fn switch_slow(
        &mut self,
        width: u32,
        value: Value,
        table: &SwitchTable,
    ) -> Result<u32, Interrupt> {
        let term = value.to_term(self.arena, width);
        let mut targets: Vec<u32> = Vec::new();
        for (_, target) in &table.cases {
            if *target != table.default && !targets.contains(target) {
                targets.push(*target);
            }
        }
        for target in targets {
            let mut any = self.arena.bool_constant(false);
            for (case, _) in table.cases.iter().filter(|case| case.1 == target) {
                let case = self.arena.constant(width, *case);
                let hit = self.arena.eq(term, case);
                any = self.arena.or(any, hit);
            }
            if self.decide_term(any)? {
                return Ok(target);
            }
        }
        Ok(table.default)
    }

    /// Allocates a stack slot of dynamic size. A symbolic size is bounded as in malloc.
    fn push_dynamic_slot(
        &mut self,
        width: u32,
        count: Value,
        size: u32,
        align: u32,
    ) -> Result<u64, Interrupt> {
        match count.as_concrete() {
            Some(count) => {
                let bytes = count.saturating_mul(u64::from(size));
                self.push_slot(bytes, u64::from(align))
            }
            None => {
                let count = count.to_term(self.arena, width);
                let count = self.arena.zext_or_trunc(count, 64);
                let size = self.arena.constant(64, u64::from(size));
                let bytes = self.arena.mul(count, size);
                let (bound, bytes) = self.bound_size(bytes, self.options.max_stack_bytes)?;
                let start = self.push_slot(bound, u64::from(align))?;
                if let Some(object) = self.memory.object_at_mut(start, 0) {
                    object.size_term = bytes;
                }
                Ok(start)
            }
        }
    }
}

#[inline(always)]
fn double(op: FloatOp, a: u64, b: u64) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    let result = match op {
        FloatOp::Add => x + y,
        FloatOp::Sub => x - y,
        FloatOp::Mul => x * y,
        FloatOp::Div => x / y,
        FloatOp::Rem => x % y,
    };
    if result.is_nan() {
        // NaN propagation follows the processor's rules, which are implemented in one place.
        let op = match op {
            FloatOp::Add => everett_expr::FloatOp::Add,
            FloatOp::Sub => everett_expr::FloatOp::Sub,
            FloatOp::Mul => everett_expr::FloatOp::Mul,
            FloatOp::Div => everett_expr::FloatOp::Div,
            FloatOp::Rem => everett_expr::FloatOp::Rem,
        };
        let format = everett_expr::FloatFormat::Double;
        return everett_expr::float::binary(op, format, u128::from(a), u128::from(b)) as u64;
    }
    result.to_bits()
}
