//! Globals, their content, and linker-defined symbols.

use super::build::Build;
use crate::address::function_address;
use crate::code::{Body, Callee, Global, Program};
use crate::lower::{LowerError, LowerOptions, lower};
use crate::module::*;

fn global<'p>(program: &'p Program, name: &str) -> &'p Global {
    program
        .globals
        .iter()
        .find(|global| global.name == name)
        .unwrap()
}

#[test]
fn contents_are_bytes_with_addresses() {
    let mut build = Build::new();
    let (byte, int, pointer) = (build.int(8), build.int(32), build.pointer());
    let text_ty = build.ty(Type::Array {
        element: byte,
        count: 4,
    });
    let text = build.add(text_ty, ConstantKind::Data(b"abc\0".to_vec().into()));
    let text = build.global("text", text_ty, Some(text));
    let two = build.number(64, 2);
    let inside = build.add(
        pointer,
        ConstantKind::Gep {
            source: byte,
            base: Value::Global(text),
            indices: [two].into(),
            flags: GepFlags::default(),
        },
    );
    let pair_ty = build.structure(&[int, pointer]);
    let seven = build.number(32, 7);
    let pair = build.add(pair_ty, ConstantKind::Aggregate([seven, inside].into()));
    build.global("pair", pair_ty, Some(pair));
    build.global("missing", int, None);
    let weak = build.global("weak", int, None);
    build.module.globals[weak.index()].linkage = Linkage::ExternalWeak;
    let program = build.lower(true);
    let pair = global(&program, "pair");
    let address = program.symbols["text"] + 2;
    assert_eq!(pair.size, 16);
    assert_eq!(pair.bytes[..8], [7, 0, 0, 0, 0, 0, 0, 0]);
    let mut stored = pair.bytes[8..].to_vec();
    stored.resize(8, 0);
    assert_eq!(stored, address.to_le_bytes());
    assert_eq!(global(&program, "text").bytes, b"abc");
    assert_eq!(program.symbols["weak"], 0);
    assert_eq!(global(&program, "missing").size, 0);
    assert_ne!(program.symbols["missing"], 0);
}

#[test]
fn constructors_are_listed_by_priority() {
    let mut build = Build::new();
    let (int, pointer, void) = (build.int(32), build.pointer(), build.ty(Type::Void));
    let ret = |_: &mut Build, body: &mut super::build::Body| {
        body.block();
        body.effect(InstructionKind::Return { value: None });
    };
    let late = build.function("late", &[], void, ret);
    let early = build.function("early", &[], void, ret);
    let entry_ty = build.structure(&[int, pointer, pointer]);
    let null = build.add(pointer, ConstantKind::Null);
    let mut entry = |priority, function| {
        let members = [build.number(32, priority), Value::Function(function), null];
        build.add(entry_ty, ConstantKind::Aggregate(members.into()))
    };
    let entries = [entry(65535, late), entry(101, early)];
    let list_ty = build.ty(Type::Array {
        element: entry_ty,
        count: 2,
    });
    let list = build.add(list_ty, ConstantKind::Aggregate(entries.into()));
    let list = build.global("llvm.global_ctors", list_ty, Some(list));
    build.module.globals[list.index()].linkage = Linkage::Appending;
    let start = build.global("__init_array_start", pointer, None);
    let member = build.number(32, 5);
    let member = build.global("member", int, Some(member));
    build.module.globals[member.index()].section = Some("parts".into());
    build.global("__stop_parts", int, None);
    let program = build.lower(true);
    let array = global(&program, "__init_array_start");
    let mut expected = function_address(1).to_le_bytes().to_vec();
    expected.extend(function_address(0).to_le_bytes());
    let mut bytes = array.bytes.clone();
    bytes.resize(16, 0);
    assert_eq!(bytes, expected);
    assert_eq!(program.symbols["__init_array_start"], array.address);
    assert_eq!(program.symbols["__init_array_end"], array.address + 16);
    assert_eq!(
        program.symbols["__fini_array_end"],
        program.symbols["__fini_array_start"]
    );
    assert_eq!(
        program.symbols["__stop_parts"],
        program.symbols["member"] + 4
    );
    assert!(
        !program
            .globals
            .iter()
            .any(|global| global.name.starts_with("llvm."))
    );
    let _ = start;
}

#[test]
fn calls_find_what_the_vm_takes_over() {
    let mut build = Build::new();
    let void = build.ty(Type::Void);
    let ret = |_: &mut Build, body: &mut super::build::Body| {
        body.block();
        body.effect(InstructionKind::Return { value: None });
    };
    let plain = build.function("plain", &[], void, ret);
    let taken = build.function("taken", &[], void, ret);
    let met = build.function("met", &[], void, ret);
    let signature = build.ty(Type::Function {
        result: void,
        params: [].into(),
        varargs: false,
    });
    let absent = build.function("absent", &[], void, |_, _| {});
    build.module.functions[absent.index()].linkage = Linkage::ExternalWeak;
    build.function("caller", &[], void, |_, body| {
        body.block();
        for callee in [plain, taken, absent, met] {
            body.function.calls.push(Call {
                callee: Value::Function(callee),
                signature,
                args: Span::default(),
                attributes: None,
                calling_convention: 0,
                tail: TailKind::None,
                fast_math: 0,
                bundles: Span::default(),
            });
            let call = CallId::new(body.function.calls.len() - 1);
            body.effect(InstructionKind::Call { call });
        }
        body.effect(InstructionKind::Return { value: None });
    });
    let program = build.lower(true);
    let id = program.function("caller").unwrap();
    let Body::Code(code) = &program.functions[id.0 as usize].body else {
        unreachable!()
    };
    assert_eq!(
        code.calls[0].callee,
        Callee::Function(crate::code::FunctionId(0))
    );
    let Callee::External(external) = code.calls[1].callee else {
        panic!("{:?}", code.calls[1])
    };
    assert_eq!(program.externals[external.0 as usize], "taken");
    assert!(matches!(code.calls[2].callee, Callee::Pointer(_)));
    assert_eq!(program.symbols["absent"], 0);
    // The definition of an intercepted function is behind all others, and its name means the operation.
    let Callee::External(external) = code.calls[3].callee else {
        panic!("{:?}", code.calls[3])
    };
    assert_eq!(program.externals[external.0 as usize], "met");
    let named = program.function("met").unwrap();
    let last = program.functions.last().unwrap();
    assert!(matches!(
        program.functions[named.0 as usize].body,
        Body::External(_)
    ));
    assert!(last.name == "met" && matches!(last.body, Body::Code(_)));
    // One segment at the start and one after each call.
    assert_eq!(
        program
            .segments
            .iter()
            .filter(|(function, _)| *function == id)
            .count(),
        5
    );
}

#[test]
fn contents_that_cannot_be_computed_are_an_error() {
    let mut build = Build::new();
    let int = build.int(32);
    let strange = build.add(int, ConstantKind::Unsupported("strange"));
    build.global("broken", int, Some(strange));
    build.module.types.compute_layouts().unwrap();
    let options = LowerOptions {
        is_vm_operation: &|_| false,
        is_intercepted: &|_| false,
        promote: true,
        check_subobjects: false,
    };
    let error = lower(&build.module, &options).unwrap_err();
    assert_eq!(
        error,
        LowerError::Initializer {
            name: "broken".into(),
            what: "strange"
        }
    );
}
