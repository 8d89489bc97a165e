//! `va_list` of the System V ABI for x86-64: `{ gp_offset, fp_offset, overflow_arg_area,
//! reg_save_area }`. Compilers expand `va_arg` to accesses of these fields, so the areas must be in
//! memory as in a native program.

use everett_ir::code::{FloatKind, Inst, ValueType};
use triomphe::Arc;

use super::{Operation, supplied};
use crate::thread::{Variadic, VariadicArgument};
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    supplied("llvm.va_start", va_start),
    supplied("llvm.va_copy", va_copy),
    supplied("llvm.va_end", va_end),
];

const GENERAL_REGISTERS: u32 = 6;
const VECTOR_REGISTERS: u32 = 8;
/// Size of the general registers in the save area.
const GENERAL_BYTES: u64 = 8 * GENERAL_REGISTERS as u64;
const SAVE_AREA_BYTES: u64 = GENERAL_BYTES + 16 * VECTOR_REGISTERS as u64;
/// Size of a `va_list`.
const LIST_BYTES: u64 = 24;
/// The libc reads up to this much past the arguments (`syscall` always takes six).
const SLACK_BYTES: u64 = 8;

/// A piece to be written to one of the areas.
#[derive(Debug)]
enum Piece {
    Value { offset: u64, len: u64, value: Value },
    Copy { offset: u64, from: u64, len: u64 },
}

/// Where arguments are stored.
#[derive(Debug, Default)]
struct Layout {
    general: u32,
    vector: u32,
    saved: Vec<Piece>,
    overflow: Vec<Piece>,
    overflow_bytes: u64,
}

impl Layout {
    fn new(variadic: &Variadic) -> Layout {
        let mut layout = Layout {
            general: variadic.named_general.min(GENERAL_REGISTERS),
            vector: variadic.named_vector.min(VECTOR_REGISTERS),
            ..Layout::default()
        };
        for argument in &variadic.arguments {
            layout.add(argument);
        }
        layout
    }

    fn add(&mut self, argument: &VariadicArgument) {
        if let Some((size, align)) = argument.by_value {
            let offset = self.stack(size, u64::from(align));
            let from = argument.values.first().map_or(0, |value| value.bits);
            let len = size;
            self.overflow.push(Piece::Copy { offset, from, len });
            return;
        }
        let pieces = pieces(argument);
        let len = pieces.last().map_or(0, |(offset, len, _)| offset + len);
        let count = argument.values.len() as u32;
        let align = if len > 8 { 16 } else { 8 };
        match argument.ty {
            ValueType::Void | ValueType::Ignored => {}
            ValueType::Float(FloatKind::X87) => self.put_on_stack(&pieces, 16, 16),
            ValueType::Float(_) | ValueType::Vector { .. } => {
                if self.vector < VECTOR_REGISTERS && len <= 16 {
                    let at = GENERAL_BYTES + 16 * u64::from(self.vector);
                    self.vector += 1;
                    self.save(&pieces, at);
                } else {
                    self.put_on_stack(&pieces, len, align.max(len.next_power_of_two()));
                }
            }
            _ if count <= 2 && self.general + count <= GENERAL_REGISTERS => {
                let at = 8 * u64::from(self.general);
                self.general += count;
                self.save(&pieces, at);
            }
            _ => self.put_on_stack(&pieces, len, align),
        }
    }

    fn save(&mut self, pieces: &[(u64, u64, Value)], at: u64) {
        self.saved.extend(placed(pieces, at));
    }

    fn put_on_stack(&mut self, pieces: &[(u64, u64, Value)], size: u64, align: u64) {
        let at = self.stack(size, align);
        self.overflow.extend(placed(pieces, at));
    }

    /// Allocates an argument in the overflow area.
    fn stack(&mut self, size: u64, align: u64) -> u64 {
        let align = align.clamp(8, 64);
        let at = self.overflow_bytes.next_multiple_of(align);
        self.overflow_bytes = at.saturating_add(size).next_multiple_of(8);
        at
    }
}

fn placed(pieces: &[(u64, u64, Value)], at: u64) -> impl Iterator<Item = Piece> {
    pieces
        .iter()
        .map(move |&(offset, len, value)| Piece::Value {
            offset: at + offset,
            len,
            value,
        })
}

/// The registers of an argument with their offsets and sizes in memory.
fn pieces(argument: &VariadicArgument) -> Vec<(u64, u64, Value)> {
    let lane = match argument.ty {
        ValueType::Vector { lane, .. } if lane.registers() == 1 => {
            u64::from(lane.bits().div_ceil(8))
        }
        _ => 8,
    };
    let values = argument.values.iter().enumerate();
    values
        .map(|(at, value)| (lane * at as u64, lane, *value))
        .collect()
}

impl Vm<'_> {
    /// The variadic arguments of the running function.
    fn variadic_arguments(&self) -> Arc<Variadic> {
        let Some(frame) = self.thread.top() else {
            return Arc::default();
        };
        if let Some(variadic) = &frame.variadic {
            return variadic.clone();
        }
        // No variadic arguments were passed: only the number of the named ones matters.
        let caller = self.thread.frames.iter().rev().nth(1);
        let code = caller.and_then(|caller| self.image.code(caller.function));
        if let (Some(caller), Some(code)) = (caller, code)
            && let Some(Inst::Call { call }) = code.instructions.get(caller.pc as usize)
        {
            let call = &code.calls[*call as usize];
            let values = vec![Value::ZERO; call.args.len()];
            return Arc::new(Variadic {
                arguments: Vec::new(),
                ..self.gather_variadic(call, &values)
            });
        }
        Arc::default()
    }

    fn fill(&mut self, area: u64, pieces: Vec<Piece>) -> Result<(), Interrupt> {
        for piece in pieces {
            match piece {
                Piece::Value { offset, len, value } => {
                    self.store(Value::concrete(area + offset), len as usize, value)?;
                }
                Piece::Copy { offset, from, len } => self.copy_range(area + offset, from, len),
            }
        }
        Ok(())
    }
}

fn va_start(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let list = vm.concretize(args.get(0))?;
    vm.check_range(list, LIST_BYTES, true)?;
    let variadic = vm.variadic_arguments();
    let layout = Layout::new(&variadic);
    let save_area = vm.push_slot(SAVE_AREA_BYTES, 16)?;
    let overflow_area = vm.push_slot(layout.overflow_bytes + SLACK_BYTES, 64)?;
    vm.fill(save_area, layout.saved)?;
    vm.fill(overflow_area, layout.overflow)?;
    let general = u64::from(variadic.named_general.min(GENERAL_REGISTERS));
    let vector = u64::from(variadic.named_vector.min(VECTOR_REGISTERS));
    let fields = [
        (0, 4, 8 * general),
        (4, 4, GENERAL_BYTES + 16 * vector),
        (8, 8, overflow_area),
        (16, 8, save_area),
    ];
    for (offset, len, bits) in fields {
        vm.store(Value::concrete(list + offset), len, Value::concrete(bits))?;
    }
    Ok(Done::Void)
}

fn va_copy(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let to = vm.concretize(args.get(0))?;
    let from = vm.concretize(args.get(1))?;
    vm.check_range(from, LIST_BYTES, false)?;
    vm.check_range(to, LIST_BYTES, true)?;
    vm.copy_range(to, from, LIST_BYTES);
    Ok(Done::Void)
}

/// The areas are stack slots of the frame and die with it.
fn va_end(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Void)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::ObjectKind;
    use crate::testing::{Harness, pointer};
    use crate::thread::{Frame, OnReturn};
    use everett_ir::code::FunctionId;

    fn argument(ty: ValueType, values: &[u64]) -> VariadicArgument {
        VariadicArgument {
            ty,
            values: values.iter().map(|bits| Value::concrete(*bits)).collect(),
            by_value: None,
        }
    }

    fn frame(variadic: Variadic) -> Frame {
        Frame {
            function: FunctionId(0),
            pc: 0,
            base: 0,
            first_slot: 0,
            serial: 1,
            on_return: OnReturn::Stop,
            callers: None,
            variadic: Some(Arc::new(variadic)),
            landing: (Value::ZERO, 0),
        }
    }

    /// Starts a list in a frame with these arguments; returns a function that reads the word at an
    /// area and an offset.
    fn start(
        arguments: Vec<VariadicArgument>,
        general: u32,
        vector: u32,
    ) -> impl Fn(u64, u64) -> u64 {
        let mut harness = Harness::new();
        let block = harness.memory.allocate(24, 8, ObjectKind::Heap);
        let list = block.expect("room").start;
        harness.thread.frames.push(frame(Variadic {
            arguments,
            named_general: general,
            named_vector: vector,
            named_stack: 0,
        }));
        harness.compute("llvm.va_start.p0", &[pointer(list)], ValueType::Void);
        let word = |harness: &mut Harness, at: u64| {
            let value = harness.memory.load(&mut harness.arena, at, 8);
            value.expect("inside the area").bits
        };
        let fields = [0, 8, 16].map(|at| word(&mut harness, list + at));
        let harness = std::cell::RefCell::new(harness);
        move |field, offset| match field {
            0 => fields[0],
            _ => word(&mut harness.borrow_mut(), fields[field as usize] + offset),
        }
    }

    const OVERFLOW: u64 = 1;
    const SAVED: u64 = 2;
    const LONG: ValueType = ValueType::Int(64);
    const DOUBLE: ValueType = ValueType::Float(FloatKind::Double);

    #[test]
    fn registers_then_stack() {
        let mut arguments: Vec<_> = (0..7).map(|x| argument(LONG, &[x])).collect();
        arguments.extend((0..9).map(|x| argument(DOUBLE, &[100 + x])));
        let word = start(arguments, 1, 0);
        // After one named argument: offsets 8 and 48.
        assert_eq!(word(0, 0), 48 << 32 | 8);
        for at in 0..5 {
            assert_eq!(word(SAVED, 8 + 8 * at), at);
        }
        assert_eq!([0, 8].map(|at| word(OVERFLOW, at)), [5, 6]);
        for at in 0..8 {
            assert_eq!(word(SAVED, 48 + 16 * at), 100 + at);
        }
        assert_eq!(word(OVERFLOW, 16), 108);
    }

    #[test]
    fn wide_arguments_are_aligned() {
        let extended = ValueType::Float(FloatKind::X87);
        let arguments = vec![
            argument(ValueType::Int(128), &[1, 2]),
            argument(LONG, &[3]),
            argument(LONG, &[4]),
            argument(extended, &[5, 6]),
        ];
        let word = start(arguments, 5, 8);
        // One register is left: the wide integer does not fit, the next argument does.
        assert_eq!(word(0, 0), 176 << 32 | 40);
        assert_eq!(word(SAVED, 40), 3);
        assert_eq!([0, 8, 16].map(|at| word(OVERFLOW, at)), [1, 2, 4]);
        assert_eq!([32, 40].map(|at| word(OVERFLOW, at)), [5, 6]);
    }
}
