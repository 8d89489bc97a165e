//! The registers, flags and memory of a piece of inline assembly. The machine buffers memory writes
//! until all instructions are executed, because later reads may ask the oracle and thereby restart
//! the piece.

use everett_expr::ExprId;
use everett_ir::code::ValueType;

use super::parse::{Constraint, Instruction, Operand, OperandHome};
use crate::integer::Wide;
use crate::value::Value;
use crate::vm::{Arguments, Interrupt, Vm};

/// Width of an x87 register.
pub const EXTENDED: u32 = 80;

/// The location of an operand.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Location {
    General(usize),
    Slot(usize),
    Memory(Value),
    Stack(usize),
    ThreadBase,
    Immediate(u64),
}

/// The processor flags.
#[derive(Copy, Clone, Debug)]
pub struct Flags {
    pub carry: ExprId,
    pub zero: ExprId,
    pub sign: ExprId,
    pub overflow: ExprId,
}

/// The execution of one piece of inline assembly.
pub struct Machine<'m, 'a, 'b> {
    pub vm: &'m mut Vm<'a>,
    pub args: &'m Arguments<'b>,
    general: [ExprId; 16],
    slots: Vec<ExprId>,
    pub stack: Vec<ExprId>,
    pub flags: Flags,
    /// The x87 status word that `fnstsw` stores.
    pub status: ExprId,
    /// The x87 control word that `fldcw` loaded.
    pub control: u16,
    pushed: Vec<ExprId>,
    operands: Vec<(Location, u32)>,
    writes: Vec<(Value, u32, ExprId)>,
}

impl<'m, 'a, 'b> Machine<'m, 'a, 'b> {
    /// Binds the arguments according to the constraints.
    pub fn new(
        vm: &'m mut Vm<'a>,
        args: &'m Arguments<'b>,
        constraints: &[Constraint],
    ) -> Result<Self, Interrupt> {
        let zero = vm.arena.zero(64);
        let bit = vm.arena.zero(1);
        let flags = Flags {
            carry: bit,
            zero: bit,
            sign: bit,
            overflow: bit,
        };
        let floats = vm.thread.floats;
        let status = vm.arena.constant(16, floats.x87_status.into());
        let control = floats.x87_control;
        let mut machine = Machine {
            vm,
            args,
            general: [zero; 16],
            slots: Vec::new(),
            stack: Vec::new(),
            flags,
            status,
            control,
            pushed: Vec::new(),
            operands: Vec::new(),
            writes: Vec::new(),
        };
        let mut argument = 0;
        for constraint in constraints {
            machine.bind(constraint, &mut argument)?;
        }
        Ok(machine)
    }

    fn bind(&mut self, constraint: &Constraint, argument: &mut usize) -> Result<(), Interrupt> {
        let takes_argument = !constraint.output || constraint.home == OperandHome::Memory;
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
        let width = match value {
            Some((registers, ty)) => self.initialise(location, &registers, ty),
            None => self.output_width(),
        };
        if let OperandHome::Tied(operand) = constraint.home {
            self.operands[operand].1 = width;
        }
        self.operands.push((location, width));
        Ok(())
    }

    /// Returns the width of the result if there is only one. With several, the instructions
    /// determine the width.
    fn output_width(&self) -> u32 {
        match self.args.call.result {
            ValueType::Aggregate { .. } | ValueType::Void => 0,
            ValueType::Vector { lanes, lane } => u32::from(lanes) * lane.bits(),
            _ => self.args.result_width(),
        }
    }

    fn initialise(&mut self, location: Location, registers: &Wide, ty: ValueType) -> u32 {
        let width = match ty {
            ValueType::Int(width) => u32::from(width),
            ValueType::Float(kind) => kind.bits(),
            ValueType::Vector { lanes, lane } => u32::from(lanes) * lane.bits(),
            _ => 64,
        };
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
            Location::Memory(_) | Location::ThreadBase | Location::Immediate(_) => {}
        }
        width
    }

    /// Returns the location of an operand, and its width if known.
    pub fn locate(&mut self, operand: &Operand) -> Result<(Location, Option<u32>), Interrupt> {
        Ok(match operand {
            Operand::Argument(index, width) => match self.operands.get(*index) {
                Some((location, known)) => {
                    let known = (*known != 0).then_some(*known);
                    (*location, width.or(known))
                }
                None => return Err(self.args.unsupported("with these constraints")),
            },
            Operand::Named(register) => (Location::General(register.number), Some(register.width)),
            Operand::Immediate(number) => (Location::Immediate(*number), None),
            Operand::Stack(position) => (Location::Stack(*position), Some(EXTENDED)),
            Operand::ThreadBase => (Location::ThreadBase, Some(64)),
            Operand::At(distance, base) => {
                let (base, _) = self.locate(base)?;
                let pointer = self.read(base, 64)?;
                let pointer = Value::of_term(self.vm.arena, pointer);
                let pointer = self.vm.offset_pointer(pointer, *distance as u64);
                (Location::Memory(pointer), None)
            }
        })
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
            Location::Slot(slot) => self.slots[slot],
            Location::Immediate(number) => {
                let number = self.vm.arena.constant(64, number);
                return Ok(self.vm.arena.sext_or_trunc(number, width));
            }
            Location::Stack(position) => match self.stack.get(position) {
                Some(term) => *term,
                None => return Err(self.args.unsupported("with an empty x87 stack")),
            },
            Location::ThreadBase => {
                let base = Value::concrete(self.vm.thread.fs_base);
                return self.read_memory(base, width);
            }
            Location::Memory(pointer) => return self.read_memory(pointer, width),
        };
        Ok(self.vm.arena.zext_or_trunc(term, width))
    }

    fn read_memory(&mut self, pointer: Value, width: u32) -> Result<ExprId, Interrupt> {
        let written = self.writes.iter().rev();
        let mut same = written.filter(|write| write.0 == pointer && write.1 == width);
        if let Some((_, _, term)) = same.next() {
            return Ok(*term);
        }
        let registers = self.vm.load_wide(pointer, width as usize / 8)?;
        Ok(self.vm.wide_term(&registers, width))
    }

    /// Writes a term. Writing the lower half of a register clears the upper half; writing smaller
    /// parts does not.
    pub fn write(&mut self, location: Location, term: ExprId) -> Result<(), Interrupt> {
        let width = self.vm.arena.width(term);
        match location {
            Location::General(number) => {
                self.general[number] = self.merged(self.general[number], term);
            }
            Location::Slot(slot) => self.slots[slot] = self.merged(self.slots[slot], term),
            Location::Stack(position) => match self.stack.get_mut(position) {
                Some(place) => *place = term,
                None => return Err(self.args.unsupported("with an empty x87 stack")),
            },
            Location::Memory(pointer) => self.writes.push((pointer, width, term)),
            Location::ThreadBase | Location::Immediate(_) => {
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
    pub fn finish(mut self, constraints: &[Constraint]) -> Result<Wide, Interrupt> {
        let mut places = Vec::new();
        for (pointer, width, term) in std::mem::take(&mut self.writes) {
            let registers = self.vm.wide_value(term);
            for (limb, value) in registers.into_iter().enumerate() {
                let len = (width as usize / 8 - 8 * limb).min(8);
                let pointer = self.vm.offset_pointer(pointer, 8 * limb as u64);
                places.push((
                    self.vm.resolve_access(pointer, len as u64, true)?,
                    len,
                    value,
                ));
            }
        }
        let mut results = Wide::new();
        for (index, constraint) in constraints.iter().enumerate() {
            let (location, width) = self.operands[index];
            if !constraint.output || constraint.home == OperandHome::Memory {
                continue;
            }
            let natural = match location {
                Location::Stack(_) => EXTENDED,
                _ => 64,
            };
            let width = if width == 0 { natural } else { width };
            let term = match &constraint.home {
                OperandHome::Condition(code) => {
                    let holds = condition(&mut self, code);
                    self.vm.arena.zext(holds, width)
                }
                _ => self.read(location, width)?,
            };
            results.extend(self.result_registers(term));
        }
        for (place, len, value) in places {
            self.vm.store_at(place, len, value)?;
        }
        self.vm.thread.floats.x87_control = self.control;
        Ok(results)
    }

    /// Splits a result into registers; each lane of a vector takes one.
    fn result_registers(&mut self, term: ExprId) -> Wide {
        let ValueType::Vector { lane, lanes } = self.args.call.result else {
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

pub fn condition(m: &mut Machine<'_, '_, '_>, code: &str) -> ExprId {
    let Flags {
        carry,
        zero,
        sign,
        overflow,
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
