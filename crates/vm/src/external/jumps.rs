//! setjmp and longjmp. A jump buffer identifies the activation of a function and the call of setjmp
//! in it.

use super::{Operation, replaced};
use crate::bug::{Bug, BugKind};
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, JumpTarget, SystemCall, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    replaced("setjmp", setjmp),
    replaced("_setjmp", setjmp),
    replaced("__setjmp", setjmp),
    replaced("sigsetjmp", setjmp_with_mask),
    replaced("__sigsetjmp", setjmp_with_mask),
    replaced("longjmp", longjmp),
    replaced("_longjmp", longjmp),
    replaced("siglongjmp", longjmp),
];

/// Magic number in the first word of a buffer that setjmp filled.
const MARK: u64 = 0x6a6d_705f_6275_6621;
/// Number of words used of the eight in a buffer.
const WORDS: usize = 6;
/// Offset of the signal mask in a buffer.
const MASK_AT: u64 = 72;

/// The content of a buffer.
struct Target {
    thread: u64,
    jump: JumpTarget,
    has_mask: bool,
}

fn setjmp(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    mark(vm, args.get(0), false)?;
    Ok(Done::Value(Value::ZERO))
}

/// `sigsetjmp(buffer, with_mask)`.
fn setjmp_with_mask(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let with_mask = vm.concretize(args.get(1))? as u32 != 0;
    let buffer = mark(vm, args.get(0), with_mask)?;
    if !with_mask {
        return Ok(Done::Value(Value::ZERO));
    }
    vm.check_range(buffer + MASK_AT, 8, true)?;
    Err(mask_call(0, buffer + MASK_AT, None))
}

/// Asks the kernel to set the signal mask from one address and to store the old one at another.
fn mask_call(set: u64, tell: u64, jump: Option<JumpTarget>) -> Interrupt {
    const SIGPROCMASK: u64 = 14;
    const SET: u64 = 2;
    let args = [SET, set, tell, 8, 0, 0].map(Value::concrete);
    let number = Value::concrete(SIGPROCMASK);
    let call = SystemCall::new(number, args);
    Interrupt::SystemCall(Box::new(SystemCall { jump, ..call }))
}

/// Stores the thread's position in a buffer; returns the address of the buffer.
fn mark(vm: &mut Vm<'_>, buffer: Value, has_mask: bool) -> Result<u64, Interrupt> {
    let ([buffer], _) = vm.ranges([(buffer, true)], Value::concrete(8 * WORDS as u64))?;
    let Some(frame) = vm.thread.top() else {
        return Ok(buffer);
    };
    let words = [
        MARK,
        u64::from(vm.thread.number),
        frame.serial,
        u64::from(frame.pc),
        vm.thread.slots.len() as u64,
        u64::from(has_mask),
    ];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    if let Some(object) = vm.memory.object_at_mut(buffer, bytes.len() as u64) {
        let offset = buffer - object.start;
        object.write_concrete(offset, &bytes);
    }
    Ok(buffer)
}

fn longjmp(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (buffer, mut target) = read_target(vm, args.get(0))?;
    target.jump.value = result(vm, args.get(1));
    if target.thread != u64::from(vm.thread.number) {
        return Err(bad_jump("longjmp to a place in another thread"));
    }
    let mut frames = vm.thread.frames.iter();
    if !frames.any(|frame| frame.serial == target.jump.serial) {
        return Err(bad_jump("longjmp to a function that has returned"));
    }
    if target.has_mask {
        return Err(mask_call(buffer + MASK_AT, 0, Some(target.jump)));
    }
    vm.unwind_to_jump(target.jump);
    Ok(Done::Moved)
}

impl Vm<'_> {
    /// Pops frames down to a call of setjmp, and continues after it.
    pub fn unwind_to_jump(&mut self, jump: JumpTarget) {
        let frames = self.thread.frames.iter();
        let Some(index) = frames.rev().position(|frame| frame.serial == jump.serial) else {
            return;
        };
        for _ in 0..index {
            self.pop_frame();
        }
        while self.thread.slots.len() > jump.slots as usize {
            self.pop_slot();
        }
        let depth = self.thread.frames.len();
        self.thread.leave_alternate_stacks(depth);
        self.thread.unwinding = None;
        self.jump(jump.pc);
        self.finish_call(&[jump.value]);
    }
}

fn read_target(vm: &mut Vm<'_>, buffer: Value) -> Result<(u64, Target), Interrupt> {
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
    let [mark, thread, serial, pc, slots, has_mask] = words;
    if mark != MARK {
        return Err(bad_jump("longjmp with a buffer that setjmp has not filled"));
    }
    let jump = JumpTarget {
        serial,
        pc: pc as u32,
        slots: slots as u32,
        value: Value::ZERO,
    };
    let target = Target {
        thread,
        jump,
        has_mask: has_mask != 0,
    };
    Ok((buffer, target))
}

/// Returns the value that setjmp returns for this argument of longjmp; it is never zero.
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
        Body, BranchTargets, Call, Callee, Code, ExternalId, Function, FunctionId, Global, Inst,
        Operand, Program, SegmentId, ValueType,
    };

    use crate::bug::BugKind;
    use crate::testing::Harness;
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
            branches: vec![BranchTargets { then: 6, other: 3 }],
            calls,
            registers: 1,
            result: Some(ValueType::Int(32)),
            ..Code::default()
        };
        Function {
            name: name.to_owned(),
            parameters: Box::default(),
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

    /// `main` calls setjmp. If it returns an even number, main calls `jump`, which allocates a
    /// stack slot and calls longjmp with `value`. With `late`, a function calls setjmp and returns,
    /// and then main calls `jump`.
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
                target: 0,
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

    fn run(value: u64, late: bool) -> (Harness, Exit) {
        let (program, _) = program(value, late);
        let mut harness = Harness::with(program);
        let exit = harness.vm(|vm| {
            vm.push_frame(FunctionId(0), &[], None, OnReturn::Stop)
                .unwrap();
            vm.run(1000)
        });
        (harness, exit)
    }

    #[test]
    fn longjmp_returns_from_setjmp_again() {
        for (value, expected) in [(7, 7), (0, 1)] {
            let (harness, exit) = run(value, false);
            let Exit::Returned(values) = exit else {
                panic!("main returns: {exit:?}");
            };
            assert_eq!(values[0].as_concrete(), Some(expected));
            assert!(harness.thread.slots.is_empty());
            assert!(harness.thread.registers.is_empty());
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
        let mut harness = Harness::new();
        let buffer = harness.block(&[0; 200]);
        assert_eq!(
            harness.call_concrete("longjmp", &[buffer, 1]),
            Err(BugKind::BadJump)
        );
        assert_eq!(
            harness.call_concrete("longjmp", &[0, 1]),
            Err(BugKind::NullPointer)
        );
        let short = harness.block(&[0; 8]);
        assert_eq!(
            harness.call_concrete("setjmp", &[short]),
            Err(BugKind::OutOfBounds)
        );
    }
}
