//! Linking of modules by symbol.

use everett_ir::Module;
use everett_ir::link::{LinkError, link};
use everett_ir::module::*;
use std::path::Path;

fn fixture(name: &str) -> Module {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    everett_ir::read_file(path).expect("readable")
}

fn pair() -> Vec<Module> {
    vec![
        fixture("link_first.llvm22.bc"),
        fixture("link_second.llvm22.bc"),
    ]
}

fn global<'a>(module: &'a Module, name: &str) -> &'a Global {
    let id = module
        .global_named(name)
        .unwrap_or_else(|| panic!("no global {name}"));
    &module.globals[id.index()]
}

fn function<'a>(module: &'a Module, name: &str) -> &'a Function {
    let id = module
        .function_named(name)
        .unwrap_or_else(|| panic!("no function {name}"));
    &module.functions[id.index()]
}

fn integer(module: &Module, value: Option<Value>) -> u64 {
    let Some(Value::Constant(id)) = value else {
        panic!("not a constant")
    };
    match module.constant(id).kind {
        ConstantKind::Integer(value) => value,
        ref other => panic!("{other:?}"),
    }
}

fn callees(module: &Module, name: &str) -> Vec<String> {
    let calls = function(module, name).calls.iter();
    let name_of = |call: &Call| match call.callee {
        Value::Function(id) => module.functions[id.index()].name.to_string(),
        Value::InlineAsm(id) => module.inline_asms[id.index()].text.to_string(),
        other => format!("{other:?}"),
    };
    calls.map(name_of).collect()
}

#[test]
fn strong_definitions_win() {
    let linked = link(pair()).expect("linked");
    assert_eq!(integer(&linked, global(&linked, "weakly").initializer), 2);
    assert_eq!(integer(&linked, global(&linked, "shared").initializer), 1);
    let fallback = function(&linked, "fallback");
    let InstructionKind::Return { value } = fallback.instructions[0].kind else {
        panic!("no return")
    };
    assert_eq!(integer(&linked, value), 20);
    assert_eq!(
        linked
            .functions
            .iter()
            .filter(|f| &*f.name == "inline_fn")
            .count(),
        1
    );
}

#[test]
fn declarations_become_definitions_and_locals_stay_apart() {
    let linked = link(pair()).expect("linked");
    let main = callees(&linked, "main");
    assert_eq!(
        main,
        ["setup", "inline_fn", "defined_later", "fallback", "nop"]
    );
    assert!(!function(&linked, "defined_later").is_declaration());
    assert_eq!(
        callees(&linked, "defined_later"),
        ["setup.1", "inline_fn", "name2"]
    );
    assert!(function(&linked, "name2").is_declaration());
    assert_eq!(linked.types.size_of(global(&linked, "local").ty), 16);
    assert_eq!(linked.types.size_of(global(&linked, "local.1").ty), 24);
    // A struct that both modules name is one type.
    let pairs = linked.types.ids().filter(
        |&id| matches!(&linked.types[id], Type::Struct(body) if body.name.as_deref() == Some("pair")),
    );
    assert_eq!(pairs.count(), 1);
}

#[test]
fn common_symbols_and_comdats_take_the_largest() {
    let linked = link(pair()).expect("linked");
    let common = global(&linked, "common_small");
    assert_eq!((linked.types.size_of(common.ty), common.align), (16, 16));
    let blob = global(&linked, "blob");
    assert_eq!(linked.types.size_of(blob.ty), 3);
    let mut backwards = pair();
    backwards.reverse();
    let linked = link(backwards).expect("linked");
    assert_eq!(linked.types.size_of(global(&linked, "blob").ty), 3);
    assert_eq!(linked.types.size_of(global(&linked, "common_small").ty), 16);
}

#[test]
fn constructors_are_joined_in_order() {
    let linked = link(pair()).expect("linked");
    let ctors = global(&linked, "llvm.global_ctors");
    let Some(Value::Constant(id)) = ctors.initializer else {
        panic!("no constructors")
    };
    let ConstantKind::Aggregate(members) = &linked.constant(id).kind else {
        panic!("no array")
    };
    assert_eq!(linked.types.element_count(ctors.ty), Some(3));
    let names: Vec<_> = members
        .iter()
        .map(|member| {
            let Value::Constant(id) = member else {
                panic!("no struct")
            };
            let ConstantKind::Aggregate(fields) = &linked.constant(*id).kind else {
                panic!("no struct")
            };
            let Value::Function(id) = fields[1] else {
                panic!("no function")
            };
            linked.functions[id.index()].name.to_string()
        })
        .collect();
    assert_eq!(names, ["setup", "setup.1", "fallback"]);
}

#[test]
fn what_cannot_be_linked_is_named() {
    let first = || fixture("link_first.llvm22.bc");
    let error = link(vec![first(), first()]).expect_err("twice the same");
    let LinkError::Duplicate {
        name,
        first: a,
        second: b,
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (name.as_str(), a.as_str(), b.as_str()),
        ("shared", "first.c", "first.c")
    );
    let everything = fixture("everything.llvm22.bc");
    let error = link(vec![everything, first()])
        .expect_err("an ifunc")
        .to_string();
    assert!(
        error.contains("`resolved`") && error.contains("ifunc"),
        "{error}"
    );
    assert_eq!(link(vec![]).err(), Some(LinkError::Nothing));
    let layouts = vec![
        fixture("program.clang14.bc"),
        fixture("exceptions.clang22.bc"),
    ];
    assert!(matches!(link(layouts), Err(LinkError::DataLayout { .. })));
}

#[test]
fn debug_information_moves_along() {
    let linked = link(vec![
        fixture("exceptions.clang22.bc"),
        fixture("program.clang22.bc"),
    ])
    .expect("linked");
    let place = everett_ir::debug::find_path(&linked, "server.table.count").expect("path");
    assert_eq!(&*linked.globals[place.global.index()].name, "server");
    assert_eq!(place.offset_bits, 128);
    let choose = function(&linked, "choose");
    let lines: Vec<_> = choose
        .instructions
        .iter()
        .filter_map(|instruction| instruction.loc)
        .collect();
    assert!(!lines.is_empty());
    for id in lines {
        let location = linked.debug.locations[id.index()];
        let file = &linked.debug.files[location.file.expect("file").index()];
        assert!(file.name.ends_with("program.c"), "{}", file.name);
    }
}
