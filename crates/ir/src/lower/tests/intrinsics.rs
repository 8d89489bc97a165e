//! Intrinsics that ask what a compiler knows.

use super::build::{Body, Build};
use super::machine::run;
use crate::module::*;

/// Pushes a call of a function.
fn call(
    body: &mut Body,
    callee: FunctionId,
    (signature, result): (TypeId, TypeId),
    args: &[Value],
) -> Value {
    let start = body.function.operands.len() as u32;
    body.function.operands.extend(args);
    body.function.calls.push(Call {
        callee: Value::Function(callee),
        signature,
        args: Span {
            start,
            len: args.len() as u32,
        },
        attributes: None,
        calling_convention: 0,
        tail: TailKind::None,
        fast_math: 0,
        bundles: Span::default(),
    });
    let call = CallId::new(body.function.calls.len() - 1);
    body.push(result, InstructionKind::Call { call })
}

/// Declares a function and returns it with its signature and its result.
fn declare(
    build: &mut Build,
    name: &str,
    params: &[TypeId],
    result: TypeId,
) -> (FunctionId, (TypeId, TypeId)) {
    let id = build.function(name, params, result, |_, _| {});
    let signature = build.ty(Type::Function {
        result,
        params: params.into(),
        varargs: false,
    });
    (id, (signature, result))
}

/// As where nothing is optimised, only what is a constant in the code is one.
#[test]
fn constants_are_constant() {
    let mut build = Build::new();
    let (bit, int) = (build.int(1), build.int(32));
    let (asks, types) = declare(&mut build, "llvm.is.constant.i32", &[int], bit);
    let number = build.number(32, 123);
    for (name, value) in [("constant", number), ("argument", Value::Argument(0))] {
        build.function(name, &[int], bit, |_, body| {
            body.block();
            let result = call(body, asks, types, &[value]);
            body.ret(result);
        });
    }
    let program = build.lower(true);
    let mut memory = Vec::new();
    assert_eq!(run(&program, "constant", &[7], &mut memory), [1]);
    assert_eq!(run(&program, "argument", &[7], &mut memory), [0]);
}

#[test]
fn the_size_of_a_slot_is_known() {
    let mut build = Build::new();
    let (bit, long, pointer) = (build.int(1), build.int(64), build.pointer());
    let params = [pointer, bit, bit, bit];
    let (asks, types) = declare(&mut build, "llvm.objectsize.i64.p0", &params, long);
    let (no, yes) = (build.number(1, 0), build.number(1, 1));
    let allocated = build.vector(6, 32);
    let cases = [
        ("slot", no, true),
        ("most", no, false),
        ("least", yes, false),
    ];
    for (name, minimum, of_slot) in cases {
        build.function(name, &[pointer], long, |build, body| {
            body.block();
            let object = match of_slot {
                true => body.alloca(build, allocated),
                false => Value::Argument(0),
            };
            let result = call(body, asks, types, &[object, minimum, no, no]);
            body.ret(result);
        });
    }
    let program = build.lower(false);
    let mut memory = Vec::new();
    let results = ["slot", "most", "least"].map(|name| run(&program, name, &[64], &mut memory)[0]);
    assert_eq!(results, [32, u64::MAX, 0]);
}
