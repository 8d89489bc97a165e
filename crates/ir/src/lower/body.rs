//! Lowers the body of one function: tracks the location of values and emits code.

use std::collections::HashMap;
use std::rc::Rc;

use super::Context;
use super::analysis::{Analysis, register_lane};
use super::fold::NotPlain;
use super::moves::Moves;
use super::shape::Shape;
use crate::code::{
    self, ByValue, Code, Inst, IntFlags, IntOp, LocationId, Operand, Pc, Register, SegmentId,
};
use crate::module::{
    BlockId, ConstantKind, Function, InstId, Instruction, InstructionKind, Type, TypeId, Value,
};

/// Maximum number of registers of a frame; a function with more is not executed.
const MAX_REGISTERS: u32 = 1 << 22;
/// Maximum size of the operand pool; only absurd aggregates reach it.
const MAX_POOL: usize = 1 << 24;
/// Maximum nesting depth of constant expressions that are computed at run time.
const MAX_DEPTH: u32 = 64;

/// The registers and constants of a value: a range of [`Body::pool`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Ops {
    start: u32,
    len: u32,
}

impl Ops {
    /// No operands.
    pub const EMPTY: Ops = Ops { start: 0, len: 0 };

    /// Returns the number of operands.
    pub fn len(self) -> u32 {
        self.len
    }

    /// Returns a part of the operands; empty if there are none.
    pub fn slice(self, from: u32, len: u32) -> Ops {
        let from = from.min(self.len);
        Ops {
            start: self.start + from,
            len: len.min(self.len - from),
        }
    }
}

/// The location of an instruction's result.
#[derive(Copy, Clone)]
pub(super) enum ValueHome {
    /// Not computed yet, or no result.
    Nothing,
    /// In these operands.
    Ops(Ops),
    /// An address that only loads and stores use; these add the offset.
    Address { base: Operand, offset: i64 },
    /// A sign-extended integer that only address arithmetic uses, which extends it.
    Extended { source: Operand, width: u8 },
    /// A stack slot that is promoted to registers, starting at this one.
    Slot(Register),
}

/// A code position that is not known yet. Blocks come first, then stubs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Label(pub u32);

/// The moves on an edge of a branch with several targets.
pub(super) struct Stub {
    pub from: BlockId,
    pub to: BlockId,
    pub label: Label,
    pub location: Option<LocationId>,
    pub kind: StubKind,
}

/// The source of a stub's values.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum StubKind {
    /// The edge.
    Edge,
    /// The registers in which an indirect branch left the values.
    Indirect { shadow: Register },
}

/// Scratch memory that is reused between functions.
#[derive(Default)]
pub(super) struct Scratch {
    analysis: Analysis,
    values: Vec<ValueHome>,
    pool: Vec<Operand>,
    constant_ids: HashMap<u64, u32>,
    moves: Moves,
}

/// The lowering of one function.
pub(super) struct Body<'a, 'c> {
    pub cx: &'c mut Context<'a>,
    pub function: &'a Function,
    pub id: code::FunctionId,
    pub code: Code,
    pub analysis: Analysis,
    pub values: Vec<ValueHome>,
    pool: Vec<Operand>,
    arguments: Vec<Ops>,
    constant_ids: HashMap<u64, u32>,
    pub moves: Moves,
    /// Position of each label.
    pub labels: Vec<Pc>,
    pub stubs: Vec<Stub>,
    /// Registers in which indirect branches leave the phis of a block.
    pub shadows: HashMap<BlockId, Register>,
    pub location: Option<LocationId>,
    pub block: BlockId,
    /// Stack slots for calls, allocated at function entry.
    entry_slots: Vec<Inst>,
    segment: Pc,
    depth: u32,
    too_large: bool,
}

/// Lowers a function that is defined in the module.
pub(super) fn lower_function<'a>(
    cx: &mut Context<'a>,
    scratch: &mut Scratch,
    function: &'a Function,
    id: code::FunctionId,
) -> Code {
    let segments_before = cx.segments.len();
    let Scratch {
        mut analysis,
        mut values,
        mut pool,
        mut constant_ids,
        moves,
    } = std::mem::take(scratch);
    let promote = cx.promote;
    analysis.run(cx, function, promote);
    values.clear();
    values.resize(function.instructions.len(), ValueHome::Nothing);
    pool.clear();
    constant_ids.clear();
    let mut body = Body {
        cx,
        function,
        id,
        code: Code::default(),
        analysis,
        values,
        pool,
        arguments: Vec::new(),
        constant_ids,
        moves,
        labels: vec![0; function.blocks.len()],
        stubs: Vec::new(),
        shadows: HashMap::new(),
        location: None,
        block: BlockId::new(0),
        entry_slots: Vec::new(),
        segment: 0,
        depth: 0,
        too_large: false,
    };
    body.signature();
    body.reserve();
    body.blocks();
    body.emit_stubs();
    body.insert_entry_slots(segments_before);
    body.resolve_labels();
    if body.too_large {
        body.cx.segments.truncate(segments_before);
        body.replace_by_unsupported("function with too many values");
    }
    let Body {
        mut code,
        analysis,
        values,
        pool,
        constant_ids,
        moves,
        ..
    } = body;
    *scratch = Scratch {
        analysis,
        values,
        pool,
        constant_ids,
        moves,
    };
    code.instructions.shrink_to_fit();
    code.locations.shrink_to_fit();
    code.constants.shrink_to_fit();
    code
}

impl<'a> Body<'a, '_> {
    /// Assigns registers to the parameters.
    fn signature(&mut self) {
        let function = self.function;
        for &param in &function.params {
            let registers = self.shape(param).map_or(0, |shape| shape.registers);
            let first = self.fresh(registers);
            let ops = self.run(first, registers);
            self.arguments.push(ops);
        }
        self.code.parameter_registers = self.code.registers;
        self.code.by_value = self.copied_parameters();
        self.code.optimised = self.cx.optimised.contains(self.cx.module, function);
        if let Type::Function {
            result, varargs, ..
        } = self.cx.module.types[function.ty]
        {
            self.code.variadic = varargs;
            self.code.result = self.shape(result).map(|shape| shape.value);
        }
    }

    fn copied_parameters(&self) -> Vec<ByValue> {
        let module = self.cx.module;
        let Some(attributes) = module.attributes(self.function.attributes) else {
            return Vec::new();
        };
        let params = (0..).zip(&attributes.params);
        params
            .filter_map(|(argument, param)| {
                let ty = param.byval?;
                let align = param.align.max(module.types.abi_align(ty)).min(1 << 31);
                Some(ByValue {
                    argument,
                    size: module.types.size_of(ty),
                    align: align as u32,
                })
            })
            .collect()
    }

    /// Assigns registers to phis and promoted stack slots, because these are used before their
    /// definition is reached.
    fn reserve(&mut self) {
        for at in 0..self.analysis.order.len() {
            let block = self.analysis.order[at];
            for (id, instruction) in self.function.block(block) {
                if !matches!(instruction.kind, InstructionKind::Phi { .. }) {
                    break;
                }
                let registers = self
                    .shape(instruction.ty)
                    .map_or(0, |shape| shape.registers);
                let first = self.fresh(registers);
                self.values[id.index()] = ValueHome::Ops(self.run(first, registers));
            }
        }
        for index in 0..self.function.instructions.len() {
            if !self.analysis.promoted[index] {
                continue;
            }
            if let InstructionKind::Alloca { allocated, .. } =
                self.function.instructions[index].kind
            {
                let lane = register_lane(self.cx, allocated);
                let first = self.fresh(lane.map_or(1, |lane| lane.registers()));
                self.values[index] = ValueHome::Slot(first);
            }
        }
    }

    fn blocks(&mut self) {
        let order = std::mem::take(&mut self.analysis.order);
        for (at, &block) in order.iter().enumerate() {
            if self.too_large {
                break;
            }
            self.block = block;
            self.bind(Label(block.index() as u32));
            let function = self.function;
            self.location = function
                .block(block)
                .next()
                .and_then(|(_, i)| self.locate(i));
            self.start_segment();
            for (id, instruction) in function.block(block) {
                if self.too_large {
                    break;
                }
                self.location = self.locate(instruction);
                if self.cx.is_counted(function, instruction) {
                    self.count();
                }
                self.instruction(id, instruction, order.get(at + 1).copied());
            }
            let ends = function
                .block(block)
                .last()
                .is_some_and(|(_, i)| i.kind.is_terminator());
            if !ends {
                self.unsupported("block without an end");
            }
        }
        self.analysis.order = order;
    }

    fn locate(&self, instruction: &Instruction) -> Option<LocationId> {
        instruction.loc.map(|loc| LocationId(loc.index() as u32))
    }

    /// Allocates a stack slot once per activation, however often it is used.
    pub fn entry_slot(&mut self, size: u64, align: u32) -> Register {
        let dst = self.register();
        self.entry_slots.push(Inst::Alloca { dst, size, align });
        dst
    }

    /// Inserts the slots after the first instruction, the start of the first segment.
    fn insert_entry_slots(&mut self, first_segment: usize) {
        let slots = std::mem::take(&mut self.entry_slots);
        let count = slots.len();
        if count == 0 || self.code.instructions.is_empty() {
            return;
        }
        self.code.instructions.splice(1..1, slots);
        self.code
            .locations
            .splice(1..1, std::iter::repeat_n(None, count));
        // The entry block is never a target.
        for label in self.labels.iter_mut().filter(|label| **label > 0) {
            *label += count as Pc;
        }
        for (_, pc) in self.cx.segments[first_segment..]
            .iter_mut()
            .filter(|entry| entry.1 > 0)
        {
            *pc += count as Pc;
        }
    }

    fn resolve_labels(&mut self) {
        let labels = &self.labels;
        let resolve = |pc: &mut Pc| *pc = labels.get(*pc as usize).copied().unwrap_or(0);
        for instruction in &mut self.code.instructions {
            if let Inst::Jump { target } = instruction {
                resolve(target);
            }
        }
        for targets in &mut self.code.branches {
            resolve(&mut targets.then);
            resolve(&mut targets.other);
        }
        for table in &mut self.code.switches {
            resolve(&mut table.default);
            table.cases.iter_mut().for_each(|case| resolve(&mut case.1));
            table.dense.iter_mut().for_each(resolve);
        }
        for pad in &mut self.code.landing_pads {
            resolve(&mut pad.target);
        }
        self.code.block_addresses.values_mut().for_each(resolve);
    }

    fn replace_by_unsupported(&mut self, what: &str) {
        self.code = Code {
            parameter_registers: self.code.parameter_registers,
            registers: self.code.parameter_registers,
            variadic: self.code.variadic,
            result: self.code.result,
            by_value: std::mem::take(&mut self.code.by_value),
            ..Code::default()
        };
        self.location = None;
        self.start_segment();
        self.unsupported(what);
    }

    /// Appends an instruction.
    pub fn emit(&mut self, inst: Inst) {
        self.code.instructions.push(inst);
        self.code.locations.push(self.location);
    }

    /// Returns the position of the next instruction.
    pub fn pc(&self) -> Pc {
        self.code.instructions.len() as Pc
    }

    /// Binds a label to the current position.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.pc();
    }

    /// Creates a label that is not bound yet.
    pub fn new_label(&mut self) -> Label {
        self.labels.push(0);
        Label(self.labels.len() as u32 - 1)
    }

    /// Starts a segment here.
    pub fn start_segment(&mut self) {
        self.segment = self.pc();
        let id = SegmentId(self.cx.segments.len() as u32);
        self.cx.segments.push((self.id, self.segment));
        self.emit(Inst::Segment { count: 0, id });
    }

    /// Counts an LLVM instruction in the current segment.
    fn count(&mut self) {
        if let Some(Inst::Segment { count, .. }) =
            self.code.instructions.get_mut(self.segment as usize)
        {
            *count += 1;
        }
    }

    /// Emits an unsupported instruction.
    pub fn unsupported(&mut self, what: &str) {
        let what_index = match self.code.unsupported.iter().position(|known| known == what) {
            Some(known) => known,
            None => {
                self.code.unsupported.push(what.to_owned());
                self.code.unsupported.len() - 1
            }
        };
        self.emit(Inst::Unsupported {
            what: what_index as u32,
        });
    }

    /// Allocates consecutive registers.
    pub fn fresh(&mut self, count: u32) -> Register {
        let first = self.code.registers;
        if count > MAX_REGISTERS - first {
            self.too_large = true;
            return 0;
        }
        self.code.registers += count;
        first
    }

    /// Allocates one register.
    pub fn register(&mut self) -> Register {
        self.fresh(1)
    }

    /// Returns the constant as an operand.
    pub fn constant(&mut self, word: u64) -> Operand {
        intern(&mut self.constant_ids, &mut self.code.constants, word)
    }

    /// Returns operands for consecutive registers.
    pub fn run(&mut self, first: Register, count: u32) -> Ops {
        let start = self.pool.len() as u32;
        self.pool
            .extend((first..first + count).map(Operand::register));
        self.pooled(start)
    }

    /// Adds operands to the pool, as a value.
    pub fn ops(&mut self, operands: impl IntoIterator<Item = Operand>) -> Ops {
        let start = self.pool.len() as u32;
        self.pool.extend(operands);
        self.pooled(start)
    }

    /// Creates a value of one register.
    pub fn one(&mut self, operand: Operand) -> Ops {
        self.ops([operand])
    }

    /// Returns `count` zeros.
    pub fn zeros(&mut self, count: u32) -> Ops {
        let zero = self.constant(0);
        self.ops(std::iter::repeat_n(zero, count as usize))
    }

    fn pooled(&mut self, start: u32) -> Ops {
        if self.pool.len() > MAX_POOL {
            self.too_large = true;
        }
        Ops {
            start,
            len: self.pool.len() as u32 - start,
        }
    }

    /// Returns the operand `index` of a value; zero if a malformed program makes a value too short.
    pub fn at(&mut self, ops: Ops, index: u32) -> Operand {
        if index < ops.len {
            self.pool[(ops.start + index) as usize]
        } else {
            self.constant(0)
        }
    }

    /// Returns all operands of a value.
    pub fn list(&self, ops: Ops) -> &[Operand] {
        &self.pool[ops.start as usize..(ops.start + ops.len) as usize]
    }

    /// Returns the value of a constant operand.
    pub fn constant_value(&self, operand: Operand) -> Option<u64> {
        operand
            .as_constant()
            .map(|index| self.code.constants[index as usize])
    }

    /// Returns the register layout of a type.
    pub fn shape(&mut self, ty: TypeId) -> Option<Rc<Shape>> {
        self.cx.folder.shapes.get(ty)
    }

    /// Returns the register layout of an operand.
    pub fn shape_of(&mut self, value: Value) -> Option<Rc<Shape>> {
        match self.cx.module.value_type(self.function, value) {
            Some(ty) => self.shape(ty),
            None => None,
        }
    }

    /// Returns the operands of a value, exactly as many as its type has registers.
    pub fn operands(&mut self, value: Value) -> Ops {
        match value {
            Value::Instruction(id) => match self.values[id.index()] {
                ValueHome::Ops(ops) => ops,
                ValueHome::Address { base, offset } => {
                    let sum = self.add_offset(base, offset);
                    self.one(sum)
                }
                ValueHome::Extended {
                    source: a,
                    width: from,
                } => {
                    let dst = self.register();
                    self.emit(Inst::SignExtend {
                        from,
                        to: 64,
                        dst,
                        a,
                    });
                    self.run(dst, 1)
                }
                ValueHome::Nothing | ValueHome::Slot(_) => Ops::EMPTY,
            },
            Value::Argument(index) => self
                .arguments
                .get(index as usize)
                .copied()
                .unwrap_or(Ops::EMPTY),
            Value::Block(_) | Value::Metadata(_) | Value::InlineAsm(_) => Ops::EMPTY,
            Value::Constant(_) | Value::Alias(_) => {
                let start = self.pool.len() as u32;
                let problem = match self.cx.folder.words(value) {
                    Ok(words) => {
                        for &word in words {
                            let constant =
                                intern(&mut self.constant_ids, &mut self.code.constants, word);
                            self.pool.push(constant);
                        }
                        return self.pooled(start);
                    }
                    Err(problem) => problem,
                };
                self.special_constant(value, problem)
            }
            Value::Global(_) | Value::Function(_) | Value::Ifunc(_) => {
                match self.cx.folder.word(value) {
                    Ok(word) => {
                        let constant = self.constant(word);
                        self.one(constant)
                    }
                    Err(problem) => self.special_constant(value, problem),
                }
            }
        }
    }

    /// Returns the only operand of a value of one register.
    pub fn single(&mut self, value: Value) -> Operand {
        let ops = self.operands(value);
        self.at(ops, 0)
    }

    fn special_constant(&mut self, value: Value, problem: NotPlain) -> Ops {
        let what = match problem {
            NotPlain::AtRunTime if self.depth < MAX_DEPTH => {
                self.depth += 1;
                let ops = self.run_time_constant(value);
                self.depth -= 1;
                return ops;
            }
            NotPlain::AtRunTime => "deep constant expression",
            NotPlain::Unsupported(name) => name,
        };
        self.unsupported(&format!("constant: {what}"));
        let registers = self.shape_of(value).map_or(1, |shape| shape.registers);
        self.zeros(registers)
    }

    /// Emits code that computes a constant where it is used.
    fn run_time_constant(&mut self, value: Value) -> Ops {
        let constant = match value {
            Value::Global(id) => {
                let dst = self.register();
                let Some(global) = self.cx.global_ids[id.index()] else {
                    return self.zeros(1);
                };
                self.emit(Inst::ThreadLocal { dst, global });
                return self.run(dst, 1);
            }
            Value::Alias(id) => return self.operands(self.cx.module.aliases[id.index()].target),
            Value::Constant(id) => self.cx.module.constant(id),
            _ => return Ops::EMPTY,
        };
        let ty = constant.ty;
        match &constant.kind {
            ConstantKind::Aggregate(members) => {
                let members: Vec<Ops> = members.iter().map(|&m| self.operands(m)).collect();
                self.concat(&members)
            }
            ConstantKind::Cast { op, value } => self.cast(*op, *value, ty),
            ConstantKind::Gep {
                source,
                base,
                indices,
                ..
            } => self.gep_value(*source, *base, indices, ty),
            ConstantKind::Binary { op, lhs, rhs } => {
                self.binary(*op, *lhs, *rhs, IntFlags::default(), ty)
            }
            ConstantKind::FNeg { value } => self.float_negate(*value),
            ConstantKind::ICmp {
                predicate,
                lhs,
                rhs,
            } => self.integer_compare(*predicate, *lhs, *rhs),
            ConstantKind::FCmp {
                predicate,
                lhs,
                rhs,
            } => self.float_compare(*predicate, false, *lhs, *rhs),
            ConstantKind::Select {
                condition,
                then,
                otherwise,
            } => self.select(*condition, *then, *otherwise, ty),
            ConstantKind::ExtractElement { vector, index } => {
                self.extract_element(*vector, *index, ty)
            }
            ConstantKind::InsertElement {
                vector,
                element,
                index,
            } => self.insert_element(*vector, *element, *index, ty),
            ConstantKind::DsoLocalEquivalent(value) | ConstantKind::NoCfi(value) => {
                self.operands(*value)
            }
            _ => {
                self.unsupported("constant expression");
                let registers = self.shape(ty).map_or(0, |shape| shape.registers);
                self.zeros(registers)
            }
        }
    }

    /// Concatenates values.
    pub fn concat(&mut self, values: &[Ops]) -> Ops {
        let start = self.pool.len() as u32;
        for ops in values {
            let range = ops.start as usize..(ops.start + ops.len) as usize;
            self.pool.extend_from_within(range);
        }
        self.pooled(start)
    }

    /// Makes the operands consecutive registers or constants; returns the first.
    pub fn contiguous(&mut self, ops: Ops) -> Operand {
        if ops.len == 1 {
            return self.at(ops, 0);
        }
        let list = self.list(ops).to_vec();
        let first = list.first().copied();
        let follows = |(at, operand): (usize, &Operand)| match first.map(|f| f.as_register()) {
            Some(Some(register)) => operand.as_register() == Some(register + at as u32),
            Some(None) => {
                let start = first.and_then(Operand::as_constant).unwrap_or(0);
                operand.as_constant() == Some(start + at as u32)
            }
            None => false,
        };
        if let Some(first) = first.filter(|_| list.iter().enumerate().all(follows)) {
            return first;
        }
        if !list.is_empty() && list.iter().all(|operand| operand.as_constant().is_some()) {
            let words: Vec<u64> = list
                .iter()
                .filter_map(|operand| self.constant_value(*operand))
                .collect();
            let start = self.code.constants.len() as u32;
            self.code.constants.extend(words);
            return Operand::constant(start);
        }
        let dst = self.fresh(list.len() as u32);
        for (at, src) in list.into_iter().enumerate() {
            self.emit(Inst::Move {
                dst: dst + at as u32,
                src,
            });
        }
        Operand::register(dst)
    }

    /// Makes the operands of a value that needs exactly `count` registers consecutive registers or
    /// constants; returns the first.
    pub fn contiguous_exact(&mut self, ops: Ops, count: u32) -> Operand {
        if ops.len == count {
            return self.contiguous(ops);
        }
        let missing = self.zeros(count.saturating_sub(ops.len));
        let whole = self.concat(&[ops.slice(0, count), missing]);
        self.contiguous(whole)
    }

    /// Records the location of an instruction's result.
    pub fn define(&mut self, id: InstId, ops: Ops) {
        self.values[id.index()] = ValueHome::Ops(ops);
    }

    /// Returns `base + offset`.
    pub fn add_offset(&mut self, base: Operand, offset: i64) -> Operand {
        if offset == 0 {
            return base;
        }
        if let Some(word) = self.constant_value(base) {
            return self.constant(word.wrapping_add(offset as u64));
        }
        let offset = self.constant(offset as u64);
        self.int(IntOp::Add, 64, base, offset)
    }

    /// Emits an integer operation on one register.
    pub fn int(&mut self, op: IntOp, width: u32, a: Operand, b: Operand) -> Operand {
        let dst = self.register();
        let flags = IntFlags::default();
        self.emit(Inst::Int {
            op,
            width: width as u8,
            flags,
            dst,
            a,
            b,
        });
        Operand::register(dst)
    }
}

/// Returns the operand of a constant of the function; adds the constant if it is new.
fn intern(ids: &mut HashMap<u64, u32>, constants: &mut Vec<u64>, word: u64) -> Operand {
    let index = *ids.entry(word).or_insert_with(|| {
        constants.push(word);
        constants.len() as u32 - 1
    });
    Operand::constant(index)
}
