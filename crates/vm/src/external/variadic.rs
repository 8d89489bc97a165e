//! `va_list` of the System V ABI for x86-64: `{ gp_offset, fp_offset, overflow_arg_area,
//! reg_save_area }`. Compilers expand `va_arg` to accesses of these fields.
//!
//! The offsets say that all registers are used up, so that all arguments are consecutive in the
//! overflow area. The area is an object of exactly their size: `va_arg` past the last argument
//! leaves it, which is a finding. A native program would read an uninitialised register.

use everett_ir::code::{FloatKind, ValueType};
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

/// The value of `gp_offset` when no general register is left.
const GENERAL_END: u64 = 48;
/// The value of `fp_offset` when no vector register is left.
const VECTOR_END: u64 = 176;
/// Size of a `va_list`.
const LIST_BYTES: u64 = 24;
/// libc functions that always read as many variadic arguments as a system call can have, even if
/// the caller passed fewer.
const PASS_ALL_ON: &[&str] = &["syscall", "fcntl", "ioctl", "prctl", "ptrace", "clone"];
/// Number of bytes that these functions read past their arguments.
const PASSED_ON_BYTES: u64 = 6 * 8;

/// A piece to be written to the area.
#[derive(Debug)]
enum Piece {
    Value { offset: u64, len: u64, value: Value },
    Copy { offset: u64, from: u64, len: u64 },
}

/// The layout of the arguments in the area.
#[derive(Debug, Default)]
struct Layout {
    pieces: Vec<Piece>,
    bytes: u64,
}

impl Layout {
    fn new(variadic: &Variadic) -> Layout {
        let mut layout = Layout::default();
        for argument in &variadic.arguments {
            layout.add(argument);
        }
        layout
    }

    fn add(&mut self, argument: &VariadicArgument) {
        if let Some((size, align)) = argument.by_value {
            let offset = self.allocate(size, u64::from(align));
            let from = argument.values.first().map_or(0, |value| value.bits);
            let len = size;
            self.pieces.push(Piece::Copy { offset, from, len });
            return;
        }
        let pieces = pieces(argument);
        let len = pieces.last().map_or(0, |(offset, len, _)| offset + len);
        let align = match argument.ty {
            ValueType::Void | ValueType::Ignored => return,
            ValueType::Float(FloatKind::X87) => 16,
            ValueType::Float(_) | ValueType::Vector { .. } => len.next_power_of_two(),
            _ if len > 8 => 16,
            _ => 8,
        };
        let at = self.allocate(len, align);
        self.pieces.extend(placed(&pieces, at));
    }

    /// Allocates an argument in the area.
    fn allocate(&mut self, size: u64, align: u64) -> u64 {
        let align = align.clamp(8, 64);
        let at = self.bytes.next_multiple_of(align);
        self.bytes = at.saturating_add(size).next_multiple_of(8);
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

/// Returns the registers of an argument with their offsets and sizes in memory.
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
    /// Returns the variadic arguments of the running function.
    fn variadic_arguments(&self) -> Arc<Variadic> {
        let frame = self.thread.top();
        frame
            .and_then(|frame| frame.variadic.clone())
            .unwrap_or_default()
    }

    /// Returns how many bytes the running function may read past its arguments.
    fn read_past_arguments(&self) -> u64 {
        let program = self.image.program();
        let function = self.thread.top().and_then(|frame| {
            let function = program.functions.get(frame.function.0 as usize)?;
            PASS_ALL_ON
                .contains(&function.name.as_str())
                .then_some(function)
        });
        let file = function.and_then(|function| {
            let location = program.location(function.location?);
            Some(program.string(location.file))
        });
        match file {
            Some(file) if program.library.is_runtime(file) => PASSED_ON_BYTES,
            _ => 0,
        }
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
    let area = vm.push_arguments(layout.bytes + vm.read_past_arguments())?;
    vm.fill(area, layout.pieces)?;
    let fields = [
        (0, 4, GENERAL_END),
        (4, 4, VECTOR_END),
        (8, 8, area),
        (16, 8, 0),
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

/// Ends a list. The areas are stack slots of the frame and end with it.
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

    /// Starts a list in a frame with these arguments and returns the words of the area.
    fn start(arguments: Vec<VariadicArgument>) -> Vec<u64> {
        let mut harness = Harness::new();
        let block = harness.memory.allocate(24, 8, ObjectKind::Heap);
        let list = block.expect("room").start;
        harness.thread.frames.push(frame(Variadic { arguments }));
        harness.compute("llvm.va_start.p0", &[pointer(list)], ValueType::Void);
        let word = |harness: &mut Harness, at: u64| {
            let value = harness.memory.load(&mut harness.arena, at, 8);
            value.ok().map(|value| value.bits)
        };
        assert_eq!(word(&mut harness, list), Some(176 << 32 | 48));
        let area = word(&mut harness, list + 8).expect("the field");
        (0..)
            .map_while(|at| word(&mut harness, area + 8 * at))
            .collect()
    }

    const LONG: ValueType = ValueType::Int(64);
    const DOUBLE: ValueType = ValueType::Float(FloatKind::Double);

    #[test]
    fn the_area_ends_behind_the_last_argument() {
        let mut arguments: Vec<_> = (0..7).map(|x| argument(LONG, &[x])).collect();
        arguments.extend((0..9).map(|x| argument(DOUBLE, &[100 + x])));
        let expected: Vec<u64> = (0..7).chain(100..109).collect();
        assert_eq!(start(arguments), expected);
        assert!(start(Vec::new()).is_empty());
    }

    #[test]
    fn wide_arguments_are_aligned() {
        let extended = ValueType::Float(FloatKind::X87);
        let arguments = vec![
            argument(LONG, &[7]),
            argument(ValueType::Int(128), &[1, 2]),
            argument(LONG, &[3]),
            argument(extended, &[5, 6]),
        ];
        assert_eq!(start(arguments), [7, 0, 1, 2, 3, 0, 5, 6]);
    }
}
