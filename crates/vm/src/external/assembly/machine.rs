//! The registers, flags and memory of a piece of inline assembly. The machine buffers memory writes
//! until all instructions are executed, because later reads may ask the oracle and thereby restart
//! the piece.

use std::collections::BTreeMap;

use everett_expr::ExprId;
use everett_ir::code::{Assembly, ValueType};

use super::parse::{Address, Constraint, Instruction, Operand, OperandHome};
use crate::access::AccessTarget;
use crate::integer::Wide;
use crate::value::Value;
use crate::vm::{Arguments, Interrupt, Vm};

/// Width of an x87 register.
pub const EXTENDED: u32 = 80;
/// Width of a vector register.
pub const VECTOR: u32 = 128;

/// The location of an operand.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Location {
    General(usize),
    /// Bits 8 to 15 of a general register.
    High(usize),
    Slot(usize),
    /// Bits 8 to 15 of a slot.
    HighSlot(usize),
    Vector(usize),
    Memory(Value),
    Stack(usize),
    Immediate(u64),
    /// A label outside of the template, by its number among the targets.
    Target(usize),
}

/// The processor flags.
#[derive(Copy, Clone, Debug)]
pub struct Flags {
    pub carry: ExprId,
    pub zero: ExprId,
    pub sign: ExprId,
    pub overflow: ExprId,
    /// A byte that has an even number of ones if the parity flag is set.
    pub parity: ExprId,
    /// Whether string instructions go down.
    pub down: bool,
}

/// A write to a pointer that is symbolic: pointer, width, and what is written.
type SymbolicWrite = (Value, u32, ExprId);

/// The execution of one piece of inline assembly.
pub struct Machine<'m, 'a, 'b> {
    pub vm: &'m mut Vm<'a>,
    pub args: &'m Arguments<'b>,
    general: [ExprId; 16],
    vectors: [ExprId; 16],
    slots: Vec<ExprId>,
    pub stack: Vec<ExprId>,
    pub flags: Flags,
    /// The x87 status word that `fnstsw` stores.
    pub status: ExprId,
    /// The x87 control word that `fldcw` loaded.
    pub control: u16,
    /// Number of instructions and repetitions so far.
    pub steps: u64,
    pushed: Vec<ExprId>,
    operands: Vec<(Location, u32)>,
    /// Targets of the writes to concrete addresses, with their sizes.
    writes: BTreeMap<u64, (AccessTarget, usize)>,
    /// The bytes that these write.
    bytes: BTreeMap<u64, ExprId>,
    symbolic_writes: Vec<SymbolicWrite>,
}

impl<'m, 'a, 'b> Machine<'m, 'a, 'b> {
    /// Binds the arguments according to the constraints.
    pub fn new(
        vm: &'m mut Vm<'a>,
        args: &'m Arguments<'b>,
        assembly: &Assembly,
        constraints: &[Constraint],
    ) -> Result<Self, Interrupt> {
        let zero = vm.arena.zero(64);
        let bit = vm.arena.zero(1);
        let flags = Flags {
            carry: bit,
            zero: bit,
            sign: bit,
            overflow: bit,
            parity: vm.arena.constant(8, 1),
            down: false,
        };
        let floats = vm.thread.floats;
        let status = vm.arena.constant(16, floats.x87_status.into());
        let control = floats.x87_control;
        let vector = vm.arena.zero(VECTOR);
        let mut machine = Machine {
            vm,
            args,
            general: [zero; 16],
            vectors: [vector; 16],
            slots: Vec::new(),
            stack: Vec::new(),
            flags,
            status,
            control,
            steps: 0,
            pushed: Vec::new(),
            operands: Vec::new(),
            writes: BTreeMap::new(),
            bytes: BTreeMap::new(),
            symbolic_writes: Vec::new(),
        };
        let mut argument = 0;
        let mut results = assembly.results.iter();
        for constraint in constraints {
            let is_result = constraint.output && constraint.home != OperandHome::Memory;
            let result = if is_result { results.next() } else { None };
            machine.bind(constraint, &mut argument, result.copied())?;
        }
        Ok(machine)
    }

    fn bind(
        &mut self,
        constraint: &Constraint,
        argument: &mut usize,
        result: Option<ValueType>,
    ) -> Result<(), Interrupt> {
        let takes_argument = match constraint.home {
            OperandHome::Memory => true,
            OperandHome::Target(_) => false,
            _ => !constraint.output,
        };
        let value = if takes_argument {
            let index = *argument;
            *argument += 1;
            Some((self.args.operand(index), self.args.type_of(index)))
        } else {
            None
        };
        let location = match constraint.home {
            OperandHome::General(number) => Location::General(number),
            OperandHome::Stack(position) => Location::Stack(position),
            OperandHome::Vector(number) => Location::Vector(number),
            OperandHome::Target(number) => Location::Target(number),
            OperandHome::Memory => {
                let pointer = value.and_then(|(registers, _)| registers.first().copied());
                let location = Location::Memory(pointer.unwrap_or(Value::ZERO));
                self.operands.push((location, 0));
                return Ok(());
            }
            OperandHome::Anywhere | OperandHome::Condition(_) => {
                let zero = self.vm.arena.zero(64);
                self.slots.push(zero);
                Location::Slot(self.slots.len() - 1)
            }
            OperandHome::Tied(operand) => match self.operands.get(operand) {
                Some((location, _)) => *location,
                None => return Err(self.args.unsupported("with these constraints")),
            },
        };
        let width = match (value, result) {
            (Some((registers, ty)), _) => self.initialise(location, &registers, ty),
            (None, Some(ty)) => width_of(ty),
            (None, None) => 0,
        };
        self.operands.push((location, width));
        Ok(())
    }

    fn initialise(&mut self, location: Location, registers: &Wide, ty: ValueType) -> u32 {
        let width = width_of(ty);
        let term = match ty {
            ValueType::Vector { lane, .. } if lane.bits() != 64 => {
                let mut terms = registers.iter().map(|value| {
                    let value: ExprId = value.to_term(self.vm.arena, lane.bits());
                    value
                });
                let first = terms.next();
                let rest: Vec<ExprId> = terms.collect();
                let zero = self.vm.arena.zero(width);
                first.map_or(zero, |first| {
                    rest.into_iter()
                        .fold(first, |low, high| self.vm.arena.concat(high, low))
                })
            }
            _ => self.vm.wide_term(registers, width),
        };
        match location {
            Location::General(number) => {
                self.general[number] = self.vm.arena.zext_or_trunc(term, 64);
            }
            Location::Vector(number) => {
                self.vectors[number] = self.vm.arena.zext_or_trunc(term, VECTOR);
            }
            Location::Slot(slot) => {
                let kept = width.max(64);
                self.slots[slot] = self.vm.arena.zext(term, kept);
            }
            Location::Stack(position) => {
                let zero = self.vm.arena.zero(EXTENDED);
                if self.stack.len() <= position {
                    self.stack.resize(position + 1, zero);
                }
                self.stack[position] = self.vm.arena.zext_or_trunc(term, EXTENDED);
            }
            _ => {}
        }
        width
    }

    /// Returns the location of an operand, and its width if known.
    pub fn locate(&mut self, operand: &Operand) -> Result<(Location, Option<u32>), Interrupt> {
        Ok(match operand {
            Operand::Argument(index, width) => {
                let (location, known) = self.bound(*index)?;
                (location, width.or((known != 0).then_some(known)))
            }
            Operand::HighArgument(index) => match self.bound(*index)?.0 {
                Location::General(number) => (Location::High(number), Some(8)),
                Location::Slot(slot) => (Location::HighSlot(slot), Some(8)),
                _ => return Err(self.args.unsupported("with these constraints")),
            },
            Operand::Named(register) => (Location::General(register.number), Some(register.width)),
            Operand::High(number) => (Location::High(*number), Some(8)),
            Operand::Vector(number) => (Location::Vector(*number), Some(VECTOR)),
            Operand::Immediate(number) => (Location::Immediate(*number), None),
            Operand::Stack(position) => (Location::Stack(*position), Some(EXTENDED)),
            Operand::At(address) => (Location::Memory(self.address(address)?), None),
            Operand::Label(name) => {
                let why = format!("with the operand {name}");
                return Err(self.args.unsupported(&why));
            }
        })
    }

    fn bound(&mut self, index: usize) -> Result<(Location, u32), Interrupt> {
        let known = self.operands.get(index).copied();
        known.ok_or_else(|| self.args.unsupported("with these constraints"))
    }

    /// Computes the address of a memory operand.
    fn address(&mut self, address: &Address) -> Result<Value, Interrupt> {
        let mut sum = self.vm.arena.constant(64, address.distance as u64);
        if address.thread {
            let base = self.vm.arena.constant(64, self.vm.thread.fs_base);
            sum = self.vm.arena.add(base, sum);
        }
        if let Some(base) = &address.base {
            let base = match self.locate(base)?.0 {
                Location::Memory(pointer) => pointer.to_term(self.vm.arena, 64),
                location => self.read(location, 64)?,
            };
            sum = self.vm.arena.add(base, sum);
        }
        if let Some(argument) = address.distance_argument {
            let location = self.bound(argument)?.0;
            let distance = self.read(location, 64)?;
            sum = self.vm.arena.add(sum, distance);
        }
        if let Some((index, scale)) = &address.index {
            let location = self.locate(index)?.0;
            let index = self.read(location, 64)?;
            let scale = self.vm.arena.constant(64, *scale);
            let index = self.vm.arena.mul(index, scale);
            sum = self.vm.arena.add(sum, index);
        }
        Ok(Value::of_term(self.vm.arena, sum))
    }

    /// Returns the operand width of an instruction: from its suffix or from one of its operands.
    pub fn width(
        &mut self,
        instruction: &Instruction,
        suffix: Option<u32>,
    ) -> Result<u32, Interrupt> {
        if let Some(width) = suffix {
            return Ok(width);
        }
        for operand in instruction.operands.iter().rev() {
            if let (_, Some(width)) = self.locate(operand)? {
                return Ok(width);
            }
        }
        Err(self.args.unsupported("without a width"))
    }

    /// Reads `width` bits.
    pub fn read(&mut self, location: Location, width: u32) -> Result<ExprId, Interrupt> {
        let term = match location {
            Location::General(number) => self.general[number],
            Location::High(number) => {
                let term = self.general[number];
                return Ok(self.vm.arena.extract(term, 8, 8));
            }
            Location::HighSlot(slot) => {
                let term = self.slots[slot];
                return Ok(self.vm.arena.extract(term, 8, 8));
            }
            Location::Slot(slot) => self.slots[slot],
            Location::Vector(number) => self.vectors[number],
            Location::Immediate(number) => {
                let number = self.vm.arena.constant(64, number);
                return Ok(self.vm.arena.sext_or_trunc(number, width));
            }
            Location::Stack(position) => match self.stack.get(position) {
                Some(term) => *term,
                None => return Err(self.args.unsupported("with an empty x87 stack")),
            },
            Location::Memory(pointer) => return self.read_memory(pointer, width),
            Location::Target(_) => {
                return Err(self.args.unsupported("with the address of a label"));
            }
        };
        Ok(self.vm.arena.zext_or_trunc(term, width))
    }

    fn read_memory(&mut self, pointer: Value, width: u32) -> Result<ExprId, Interrupt> {
        if let [.., last] = &self.symbolic_writes[..]
            && last.0 == pointer
            && last.1 == width
        {
            return Ok(last.2);
        }
        let pointer = self.settled(pointer)?;
        let len = width as usize / 8;
        let range = pointer.bits..pointer.bits.saturating_add(len as u64);
        let written = match pointer.term {
            None => self.bytes.range(range.clone()).count(),
            Some(_) => 0,
        };
        let mut bytes = Vec::new();
        if written < len {
            let registers = self.vm.load_wide(pointer, len)?;
            let term = self.vm.wide_term(&registers, width);
            if written == 0 {
                return Ok(term);
            }
            for at in 0..len as u32 {
                bytes.push(self.vm.arena.extract(term, 8 * at, 8));
            }
        } else {
            bytes.resize(len, self.flags.parity);
        }
        for (address, byte) in self.bytes.range(range) {
            bytes[(address - pointer.bits) as usize] = *byte;
        }
        Ok(self.vm.arena.concat_bytes(&bytes))
    }

    /// Makes what is written comparable with a pointer: where one of them is symbolic, both are
    /// concretised, except for the first write of a piece.
    fn settled(&mut self, pointer: Value) -> Result<Value, Interrupt> {
        if self.symbolic_writes.is_empty() && self.writes.is_empty() {
            return Ok(pointer);
        }
        for (at, width, term) in std::mem::take(&mut self.symbolic_writes) {
            let address = self.vm.concretize(at)?;
            self.write_at(address, width, term)?;
        }
        Ok(Value::concrete(self.vm.concretize(pointer)?))
    }

    fn write_memory(&mut self, pointer: Value, width: u32, term: ExprId) -> Result<(), Interrupt> {
        if let [.., last] = &mut self.symbolic_writes[..]
            && last.0 == pointer
            && last.1 == width
        {
            last.2 = term;
            return Ok(());
        }
        let pointer = self.settled(pointer)?;
        if pointer.term.is_some() {
            self.symbolic_writes.push((pointer, width, term));
            return Ok(());
        }
        self.write_at(pointer.bits, width, term)
    }

    fn write_at(&mut self, address: u64, width: u32, term: ExprId) -> Result<(), Interrupt> {
        let len = width as usize / 8;
        for at in (0..len).step_by(8) {
            let part = (len - at).min(8);
            let start = address.wrapping_add(at as u64);
            let known = self.writes.get(&start);
            if known.is_none_or(|known| known.1 < part) {
                let pointer = Value::concrete(start);
                let target = self.vm.resolve_access(pointer, part as u64, true)?;
                self.writes.insert(start, (target, part));
            }
        }
        for at in 0..len {
            let byte = self.vm.arena.extract(term, 8 * at as u32, 8);
            self.bytes.insert(address.wrapping_add(at as u64), byte);
        }
        Ok(())
    }

    /// Writes a term. Writing the lower half of a register clears the upper half; writing smaller
    /// parts does not.
    pub fn write(&mut self, location: Location, term: ExprId) -> Result<(), Interrupt> {
        let width = self.vm.arena.width(term);
        match location {
            Location::General(number) => {
                self.general[number] = self.merged(self.general[number], term);
            }
            Location::High(number) => {
                self.general[number] = self.with_high(self.general[number], term);
            }
            Location::HighSlot(slot) => {
                self.slots[slot] = self.with_high(self.slots[slot], term);
            }
            Location::Slot(slot) => self.slots[slot] = self.merged(self.slots[slot], term),
            Location::Vector(number) => {
                let old = self.vectors[number];
                self.vectors[number] = if width < VECTOR {
                    let rest = self.vm.arena.extract(old, width, VECTOR - width);
                    self.vm.arena.concat(rest, term)
                } else {
                    term
                };
            }
            Location::Stack(position) => match self.stack.get_mut(position) {
                Some(place) => *place = term,
                None => return Err(self.args.unsupported("with an empty x87 stack")),
            },
            Location::Memory(pointer) => return self.write_memory(pointer, width, term),
            Location::Immediate(_) | Location::Target(_) => {
                return Err(self.args.unsupported("with this destination"));
            }
        }
        Ok(())
    }

    fn merged(&mut self, old: ExprId, new: ExprId) -> ExprId {
        let (has, width) = (self.vm.arena.width(old), self.vm.arena.width(new));
        if width >= 32 {
            return self.vm.arena.zext_or_trunc(new, width.max(64));
        }
        let rest = self.vm.arena.extract(old, width, has - width);
        self.vm.arena.concat(rest, new)
    }

    fn with_high(&mut self, old: ExprId, byte: ExprId) -> ExprId {
        let width = self.vm.arena.width(old);
        let low = self.vm.arena.extract(old, 0, 8);
        let rest = self.vm.arena.extract(old, 16, width - 16);
        let upper = self.vm.arena.concat(rest, byte);
        self.vm.arena.concat(upper, low)
    }

    pub fn general(&self, number: usize) -> ExprId {
        self.general[number]
    }

    pub fn push(&mut self, term: ExprId) {
        self.pushed.push(term);
    }

    pub fn pop(&mut self) -> Result<ExprId, Interrupt> {
        let pushed = self.pushed.pop();
        pushed.ok_or_else(|| self.args.unsupported("with more popped than pushed"))
    }

    /// Commits the buffered writes and returns the results.
    pub fn finish(
        mut self,
        assembly: &Assembly,
        constraints: &[Constraint],
    ) -> Result<Wide, Interrupt> {
        if self.flags.down {
            return Err(self.args.unsupported("which leaves the direction flag set"));
        }
        let places = self.places()?;
        let mut results = Wide::new();
        let mut types = assembly.results.iter();
        for (index, constraint) in constraints.iter().enumerate() {
            if !constraint.output || constraint.home == OperandHome::Memory {
                continue;
            }
            let Some(ty) = types.next() else { break };
            let width = width_of(*ty);
            let term = match &constraint.home {
                OperandHome::Condition(code) => {
                    let holds = condition(&mut self, code);
                    self.vm.arena.zext(holds, width)
                }
                _ => {
                    let location = self.operands[index].0;
                    self.read(location, width)?
                }
            };
            results.extend(self.result_registers(term, *ty));
        }
        for (place, len, value) in places {
            self.vm.store_at(place, len, value)?;
        }
        self.vm.thread.floats.x87_control = self.control;
        Ok(results)
    }

    /// Returns what is to be stored: targets, sizes and values.
    fn places(&mut self) -> Result<Vec<(AccessTarget, usize, Value)>, Interrupt> {
        let mut places = Vec::new();
        for (pointer, width, term) in std::mem::take(&mut self.symbolic_writes) {
            let registers = self.vm.wide_value(term);
            for (limb, value) in registers.into_iter().enumerate() {
                let len = (width as usize / 8 - 8 * limb).min(8);
                let pointer = self.vm.offset_pointer(pointer, 8 * limb as u64);
                let target = self.vm.resolve_access(pointer, len as u64, true)?;
                places.push((target, len, value));
            }
        }
        for (start, (target, len)) in std::mem::take(&mut self.writes) {
            let bytes = self.bytes.range(start..).take(len);
            let bytes: Vec<ExprId> = bytes.map(|(_, byte)| *byte).collect();
            let term = self.vm.arena.concat_bytes(&bytes);
            places.push((target, len, Value::of_term(self.vm.arena, term)));
        }
        Ok(places)
    }

    /// Splits a result into registers; each lane of a vector takes one.
    fn result_registers(&mut self, term: ExprId, ty: ValueType) -> Wide {
        let ValueType::Vector { lane, lanes } = ty else {
            return self.vm.wide_value(term);
        };
        let bits = lane.bits();
        let mut registers = Wide::new();
        for index in 0..u32::from(lanes) {
            let part = self.vm.arena.extract(term, index * bits, bits);
            registers.extend(self.vm.wide_value(part));
        }
        registers
    }
}

/// Returns the width of a value in bits.
fn width_of(ty: ValueType) -> u32 {
    match ty {
        ValueType::Int(width) => u32::from(width),
        ValueType::Float(kind) => kind.bits(),
        ValueType::Vector { lanes, lane } => u32::from(lanes) * lane.bits(),
        _ => 64,
    }
}

/// Returns whether a condition code holds.
pub fn condition(m: &mut Machine<'_, '_, '_>, code: &str) -> ExprId {
    let Flags {
        carry,
        zero,
        sign,
        overflow,
        parity,
        ..
    } = m.flags;
    let arena = &mut *m.vm.arena;
    let (holds, negate) = match code {
        "e" | "z" => (zero, false),
        "ne" | "nz" => (zero, true),
        "c" | "b" | "nae" => (carry, false),
        "nc" | "ae" | "nb" => (carry, true),
        "s" => (sign, false),
        "ns" => (sign, true),
        "o" => (overflow, false),
        "no" => (overflow, true),
        "p" | "pe" | "np" | "po" => {
            let odd = (1..8).fold(arena.extract(parity, 0, 1), |odd, at| {
                let bit = arena.extract(parity, at, 1);
                arena.xor(odd, bit)
            });
            (odd, matches!(code, "p" | "pe"))
        }
        "be" | "na" => (arena.or(carry, zero), false),
        "a" | "nbe" => (arena.or(carry, zero), true),
        "l" | "nge" => (arena.xor(sign, overflow), false),
        "ge" | "nl" => (arena.xor(sign, overflow), true),
        _ => {
            let less = arena.xor(sign, overflow);
            (arena.or(less, zero), matches!(code, "g" | "nle"))
        }
    };
    if negate { arena.not(holds) } else { holds }
}
