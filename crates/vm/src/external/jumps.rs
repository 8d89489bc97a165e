//! setjmp and longjmp. A buffer names the activation of a function and the call of setjmp in it.

use super::{Operation, replaced};
use crate::bug::{Bug, BugKind};
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The family. The mask of blocked signals that `sigsetjmp` may keep is the kernel's affair and is not kept.
pub const OPERATIONS: &[Operation] = &[
    replaced("setjmp", setjmp),
    replaced("_setjmp", setjmp),
    replaced("__setjmp", setjmp),
    replaced("sigsetjmp", setjmp),
    replaced("__sigsetjmp", setjmp),
    replaced("longjmp", longjmp),
    replaced("_longjmp", longjmp),
    replaced("siglongjmp", longjmp),
];

/// First word of a buffer that setjmp has filled.
const MARK: u64 = 0x6a6d_705f_6275_6621;
/// Words that are used of the eight that a buffer has.
const WORDS: usize = 4;

/// What a buffer holds.
struct Target {
    thread: u64,
    serial: u64,
    pc: u64,
}

fn setjmp(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let ([buffer], _) = vm.ranges([(args.get(0), true)], Value::concrete(8 * WORDS as u64))?;
    let Some(frame) = vm.thread.top() else {
        return Ok(Done::Value(Value::ZERO));
    };
    let words = [
        MARK,
        u64::from(vm.thread.number),
        frame.serial,
        u64::from(frame.pc),
    ];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    if let Some(object) = vm.memory.object_at_mut(buffer, bytes.len() as u64) {
        let offset = buffer - object.start;
        object.write_concrete(offset, &bytes);
    }
    Ok(Done::Value(Value::ZERO))
}

fn longjmp(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let target = read_target(vm, args.get(0))?;
    let value = result(vm, args.get(1));
    if target.thread != u64::from(vm.thread.number) {
        return Err(bad_jump("longjmp to a place in another thread"));
    }
    let frames = &vm.thread.frames;
    let Some(index) = frames
        .iter()
        .rposition(|frame| frame.serial == target.serial)
    else {
        return Err(bad_jump("longjmp to a function that has returned"));
    };
    while vm.thread.frames.len() > index + 1 {
        vm.pop_frame();
    }
    vm.thread.unwinding = None;
    vm.jump(target.pc as u32);
    vm.finish_call(&[value]);
    Ok(Done::Moved)
}

fn read_target(vm: &mut Vm<'_>, buffer: Value) -> Result<Target, Interrupt> {
    let ([buffer], _) = vm.ranges([(buffer, false)], Value::concrete(8 * WORDS as u64))?;
    let mut words = [0; WORDS];
    for (at, word) in (0u64..).zip(&mut words) {
        *word = vm
            .memory
            .load(vm.arena, buffer + 8 * at, 8)
            .ok()
            .and_then(Value::as_concrete)
            .unwrap_or(0);
    }
    let [mark, thread, serial, pc] = words;
    if mark != MARK {
        return Err(bad_jump("longjmp with a buffer that setjmp has not filled"));
    }
    Ok(Target { thread, serial, pc })
}

/// What setjmp returns for this argument of longjmp: never zero.
fn result(vm: &mut Vm<'_>, value: Value) -> Value {
    let value = value.to_term(vm.arena, 32);
    let zero = vm.arena.zero(32);
    let one = vm.arena.constant(32, 1);
    let is_zero = vm.arena.eq(value, zero);
    let value = vm.arena.ite(is_zero, one, value);
    Value::of_term(vm.arena, value)
}

fn bad_jump(message: &str) -> Interrupt {
    Bug::new(BugKind::BadJump, message).into()
}

#[cfg(test)]
mod tests {
    use everett_ir::address::{Slot, class_for};
    use everett_ir::code::{
        Body, Call, Callee, Code, ExternalId, Function, FunctionId, Global, Inst, Operand, Program,
        SegmentId, ValueType,
    };

    use crate::bug::BugKind;
    use crate::testing::Lab;
    use crate::thread::OnReturn;
    use crate::vm::{Exit, Interrupt};

    const BUFFER: u64 = 200;

    fn call(callee: Callee, args: &[Operand]) -> Call {
        Call {
            callee,
            args: args.to_vec(),
            arg_types: vec![ValueType::Int(64); args.len()],
            fixed: args.len() as u32,
            by_value: Vec::new(),
            dst: 0,
            result: ValueType::Int(32),
            unwind: None,
        }
    }

    fn function(
        name: &str,
        instructions: Vec<Inst>,
        constants: Vec<u64>,
        calls: Vec<Call>,
    ) -> Function {
        let code = Code {
            locations: vec![None; instructions.len()],
            instructions,
            constants,
            operands: vec![Operand::register(0)],
            calls,
            registers: 1,
            result: Some(ValueType::Int(32)),
            ..Code::default()
        };
        Function {
            name: name.to_owned(),
            body: Body::Code(Box::new(code)),
            location: None,
        }
    }

    fn segment(id: u32) -> Inst {
        Inst::Segment {
            count: 1,
            id: SegmentId(id),
        }
    }

    /// `main` calls setjmp; where it returns an even number, it calls `jump`, which stores a stack slot and calls
    /// longjmp with `value`. `late` calls setjmp and returns, and then main calls `jump`.
    fn program(value: u64, late: bool) -> (Program, u64) {
        let class = class_for(BUFFER, 16).unwrap();
        let buffer = Slot { class, index: 0 }.start(16);
        let setjmp = call(Callee::External(ExternalId(0)), &[Operand::constant(0)]);
        let longjmp = call(
            Callee::External(ExternalId(1)),
            &[Operand::constant(0), Operand::constant(1)],
        );
        let returns = Inst::Return { values: (0, 1) };
        let first = if late {
            call(Callee::Function(FunctionId(2)), &[])
        } else {
            setjmp.clone()
        };
        let main = vec![
            segment(0),
            Inst::Call { call: 0 },
            Inst::Branch {
                cond: Operand::register(0),
                then: 6,
                other: 3,
            },
            segment(1),
            Inst::Call { call: 1 },
            Inst::Jump { target: 6 },
            segment(2),
            returns,
        ];
        let jump = vec![
            segment(3),
            Inst::Alloca {
                dst: 0,
                size: 8,
                align: 8,
            },
            Inst::Call { call: 0 },
            Inst::Unreachable,
        ];
        let functions = vec![
            function(
                "main",
                main,
                vec![buffer],
                vec![first, call(Callee::Function(FunctionId(1)), &[])],
            ),
            function("jump", jump, vec![buffer, value], vec![longjmp]),
            function(
                "late",
                vec![segment(4), Inst::Call { call: 0 }, returns],
                vec![buffer],
                vec![setjmp],
            ),
        ];
        let mut slots_used = vec![0; class as usize + 1];
        slots_used[class as usize] = 1;
        let program = Program {
            functions,
            globals: vec![Global {
                name: "buffer".to_owned(),
                address: buffer,
                size: BUFFER,
                align: 16,
                bytes: Vec::new(),
                constant: false,
                thread_local: false,
            }],
            externals: vec!["setjmp".to_owned(), "longjmp".to_owned()],
            segments: [(0, 0), (0, 3), (0, 6), (1, 0), (2, 0)]
                .map(|(function, pc)| (FunctionId(function), pc))
                .to_vec(),
            slots_used,
            ..Program::default()
        };
        (program, buffer)
    }

    fn run(value: u64, late: bool) -> (Lab, Exit) {
        let (program, _) = program(value, late);
        let mut lab = Lab::with(program);
        let exit = lab.vm(|vm| {
            vm.push_frame(FunctionId(0), &[], None, OnReturn::Stop)
                .unwrap();
            vm.run(1000)
        });
        (lab, exit)
    }

    #[test]
    fn longjmp_returns_from_setjmp_again() {
        for (value, expected) in [(7, 7), (0, 1)] {
            let (lab, exit) = run(value, false);
            let Exit::Returned(values) = exit else {
                panic!("main returns: {exit:?}");
            };
            assert_eq!(values[0].as_concrete(), Some(expected));
            assert!(lab.thread.slots.is_empty());
            assert!(lab.thread.registers.is_empty());
        }
    }

    #[test]
    fn a_function_that_has_returned_is_no_target() {
        let (_, exit) = run(7, true);
        let Exit::Interrupted(Interrupt::Bug(bug)) = exit else {
            panic!("a finding: {exit:?}");
        };
        assert_eq!(bug.kind, BugKind::BadJump);
        assert!(bug.message.contains("returned"));
    }

    #[test]
    fn a_buffer_must_be_filled() {
        let mut lab = Lab::new();
        let buffer = lab.block(&[0; 200]);
        assert_eq!(lab.ask("longjmp", &[buffer, 1]), Err(BugKind::BadJump));
        assert_eq!(lab.ask("longjmp", &[0, 1]), Err(BugKind::NullPointer));
        let short = lab.block(&[0; 8]);
        assert_eq!(lab.ask("setjmp", &[short]), Err(BugKind::OutOfBounds));
    }
}
