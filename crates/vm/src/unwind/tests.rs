//! Tests of exceptions in hand-written programs.

use everett_ir::code::{
    Body, Call, Callee, Clause, Code, ExternalId, Function, FunctionId, Inst, LandingPad, Operand,
    Program, SegmentId, ValueType,
};

use super::{END_OF_STACK, filter_selector, selector_for};
use crate::bug::BugKind;
use crate::memory::ObjectKind;
use crate::options::VmOptions;
use crate::testing::Harness;
use crate::thread::OnReturn;
use crate::value::Value;
use crate::vm::{Exit, Interrupt};

const RUST: u64 = u64::from_le_bytes(*b"MOZ\0RUST");
const CXX: u64 = 0x434c_4e47_432b_2b00;

/// Creates a function that calls `callee` with its parameter and returns the result of the call or
/// of its landing pad: two registers, the second 999 if the call returned.
fn caller(callee: Callee, pad: Option<LandingPad>, segment: u32) -> Code {
    let registers = Operand::register;
    let call = Call {
        callee,
        args: vec![registers(0)],
        arg_types: vec![ValueType::Pointer],
        fixed: 1,
        by_value: Vec::new(),
        dst: 1,
        result: ValueType::Int(64),
        unwind: pad.as_ref().map(|_| 0),
    };
    let instructions = vec![
        Inst::Segment {
            count: 1,
            id: SegmentId(segment),
        },
        Inst::Call { call: 0 },
        Inst::Return { values: (0, 2) },
        Inst::LandingPad { dst: 1 },
        Inst::Return { values: (2, 2) },
    ];
    Code {
        locations: vec![None; instructions.len()],
        instructions,
        constants: vec![999],
        operands: vec![
            registers(1),
            Operand::constant(0),
            registers(1),
            registers(2),
        ],
        calls: vec![call],
        landing_pads: pad.into_iter().collect(),
        registers: 3,
        parameter_registers: 1,
        ..Code::default()
    }
}

fn pad(cleanup: bool, clauses: Vec<Clause>) -> Option<LandingPad> {
    Some(LandingPad {
        target: 3,
        cleanup,
        clauses,
    })
}

/// Runs a chain of functions with these landing pads; the innermost function raises an exception of
/// this class. Returns the result of the outermost one, with 0 for the address of the exception.
fn raise(class: u64, pads: Vec<Option<LandingPad>>) -> [u64; 2] {
    let (exit, exception) = run(class, pads, &VmOptions::default());
    let Exit::Returned(values) = exit else {
        panic!("the program does not end: {exit:?}");
    };
    let same = values[0].bits == exception;
    [if same { 0 } else { values[0].bits }, values[1].bits]
}

/// Like `raise`, with options. Returns the exit and the address of the exception.
fn run(class: u64, pads: Vec<Option<LandingPad>>, options: &VmOptions) -> (Exit, u64) {
    let last = pads.len() - 1;
    let mut program = Program {
        externals: vec!["_Unwind_RaiseException".to_owned()],
        ..Program::default()
    };
    for (index, pad) in pads.into_iter().enumerate() {
        let callee = if index == last {
            Callee::External(ExternalId(0))
        } else {
            Callee::Function(FunctionId(index as u32 + 1))
        };
        let code = caller(callee, pad, index as u32);
        program.segments.push((FunctionId(index as u32), 0));
        program.functions.push(Function {
            name: format!("f{index}"),
            parameters: Box::default(),
            body: Body::Code(Box::new(code)),
            location: None,
        });
    }
    let mut harness = Harness::with(program);
    let block = harness.memory.allocate(256, 16, ObjectKind::Heap);
    let block = block.expect("room");
    let exception = block.start + 128;
    block.write_concrete(128, &class.to_le_bytes());
    harness.options = options.clone();
    let exit = harness.vm(|vm| {
        let args = [Value::concrete(exception)];
        vm.push_frame(FunctionId(0), &args, None, OnReturn::Stop)
            .expect("it has code");
        vm.run(1000)
    });
    (exit, exception)
}

#[test]
fn catch_all_takes_any_exception() {
    let all = || pad(false, vec![Clause::Catch(0)]);
    assert_eq!(raise(RUST, vec![all(), None, None]), [0, selector_for(0)]);
    assert_eq!(raise(CXX, vec![all(), None]), [0, selector_for(0)]);
}

#[test]
fn nobody_takes_it() {
    // A cleanup is not a handler: the unwinder returns to the raiser.
    let answer = raise(RUST, vec![pad(true, vec![])]);
    assert_eq!(answer, [END_OF_STACK, 999]);
}

#[test]
fn what_nobody_takes_is_reported_where_asked() {
    let options = VmOptions {
        report_uncaught: true,
        ..VmOptions::default()
    };
    let (exit, _) = run(RUST, vec![None, pad(true, vec![])], &options);
    let Exit::Interrupted(Interrupt::Bug(bug)) = exit else {
        panic!("no finding: {exit:?}");
    };
    assert_eq!(bug.kind, BugKind::UncaughtException);
    // With a handler other than the runtime's, there is no finding.
    let all = pad(false, vec![Clause::Catch(0)]);
    let (exit, _) = run(RUST, vec![all, None], &options);
    assert!(matches!(exit, Exit::Returned(_)));
}

#[test]
fn cleanups_come_before_the_handler() {
    let all = pad(false, vec![Clause::Catch(0)]);
    // The function with the cleanup returns instead of resuming, so the outer call gets its result.
    assert_eq!(raise(RUST, vec![all, pad(true, vec![]), None])[1], 999);
}

#[test]
fn types_are_for_exceptions_of_their_language() {
    let typed = pad(false, vec![Clause::Catch(0x5000), Clause::Catch(0)]);
    assert_eq!(raise(RUST, vec![typed, None]), [0, selector_for(0)]);
    let filter = pad(false, vec![Clause::Filter(vec![0x5000])]);
    let expected = [0, filter_selector(0)];
    assert_eq!(raise(RUST, vec![filter, None]), expected);
    let nothing_passes = pad(false, vec![Clause::Filter(vec![])]);
    assert_eq!(raise(CXX, vec![nothing_passes, None]), expected);
}
