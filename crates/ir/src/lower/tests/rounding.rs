//! Operations with a rounding mode other than to nearest.

use super::build::Build;
use crate::code::Body;
use crate::module::*;

/// Returns the unsupported instructions in a call of a constrained intrinsic on arguments of this
/// type.
fn unsupported(name: &str, mode: &str, from: Type, to: Type, operands: u32) -> Vec<String> {
    let mut build = Build::new();
    let (from, to) = (build.ty(from), build.ty(to));
    let metadata = build.ty(Type::Metadata);
    let values = vec![from; operands as usize];
    let mut params = values.clone();
    params.extend([metadata, metadata]);
    let name = format!("llvm.experimental.constrained.{name}");
    let intrinsic = build.function(&name, &params, to, |_, _| {});
    let signature = build.ty(Type::Function {
        result: to,
        params: params.into(),
        varargs: false,
    });
    build.module.metadata_strings = vec![mode.into(), "fpexcept.ignore".into()];
    build.function("caller", &values, to, |_, body| {
        body.block();
        let start = body.function.operands.len() as u32;
        let arguments = (0..operands).map(Value::Argument);
        let strings = [Value::Metadata(0), Value::Metadata(1)];
        body.function.operands.extend(arguments.chain(strings));
        body.function.calls.push(Call {
            callee: Value::Function(intrinsic),
            signature,
            args: Span {
                start,
                len: operands + 2,
            },
            attributes: None,
            calling_convention: 0,
            tail: TailKind::None,
            fast_math: 0,
            bundles: Span::default(),
        });
        let call = CallId::new(body.function.calls.len() - 1);
        let result = body.push(to, InstructionKind::Call { call });
        body.ret(result);
    });
    let program = build.lower(true);
    let id = program.function("caller").expect("it was made above");
    match &program.functions[id.0 as usize].body {
        Body::Code(code) => code.unsupported.clone(),
        _ => panic!("it has code"),
    }
}

const OTHERS: [&str; 4] = [
    "round.upward",
    "round.downward",
    "round.towardzero",
    "round.tonearestaway",
];

#[test]
fn other_modes_are_not_computed_to_nearest() {
    let operations = [
        ("fadd.f64", Type::Double, Type::Double, 2),
        ("fdiv.f64", Type::Double, Type::Double, 2),
        ("fma.f64", Type::Double, Type::Double, 3),
        ("sqrt.f64", Type::Double, Type::Double, 1),
        ("rint.f64", Type::Double, Type::Double, 1),
        ("lrint.i64.f64", Type::Double, Type::Integer(64), 1),
        ("fptrunc.f32.f64", Type::Double, Type::Float, 1),
        ("sitofp.f64.i64", Type::Integer(64), Type::Double, 1),
        ("uitofp.f32.i32", Type::Integer(32), Type::Float, 1),
        ("uitofp.f32.i25", Type::Integer(25), Type::Float, 1),
    ];
    for (name, from, to, operands) in operations {
        let check = |mode| unsupported(name, mode, from.clone(), to.clone(), operands);
        for mode in OTHERS {
            let expected = format!("llvm.experimental.constrained.{name} with {mode}");
            assert_eq!(check(mode), [expected]);
        }
        for mode in ["round.tonearest", "round.dynamic"] {
            assert!(check(mode).is_empty(), "{name} {mode}");
        }
    }
}

#[test]
fn exact_operations_need_no_mode() {
    let operations = [
        ("frem.f64", Type::Double, Type::Double, 2),
        ("sitofp.f64.i32", Type::Integer(32), Type::Double, 1),
        ("sitofp.f64.i54", Type::Integer(54), Type::Double, 1),
        ("uitofp.f64.i53", Type::Integer(53), Type::Double, 1),
        ("uitofp.f80.i64", Type::Integer(64), Type::X86Fp80, 1),
    ];
    for (name, from, to, operands) in operations {
        for mode in OTHERS {
            let found = unsupported(name, mode, from.clone(), to.clone(), operands);
            assert!(found.is_empty(), "{name} {mode}: {found:?}");
        }
    }
}
