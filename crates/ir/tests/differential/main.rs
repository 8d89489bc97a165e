//! Compares the reader with LLVM's own disassembler, if the toolchain has one: every instruction,
//! operand, constant, type and source location must be the same.

#![allow(clippy::print_stderr, clippy::print_stdout)]

mod instructions;
mod printer;
mod text;

use everett_ir::Module;
use everett_ir::module::*;
use printer::Printer;
use std::path::{Path, PathBuf};
use std::process::Command;
use text::{TextFunction, TextModule, tokens, without_inrange};

/// Whether `llvm-dis` upgrades the intrinsics of a file, because the file is old enough.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Intrinsics {
    Same,
    Upgraded,
}

fn tool(name: &str) -> Option<PathBuf> {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    let path = Path::new(sysroot.trim())
        .join("lib/rustlib/x86_64-unknown-linux-gnu/bin")
        .join(name);
    path.exists().then_some(path)
}

fn disassemble(path: &Path) -> Option<String> {
    let Some(llvm_dis) = tool("llvm-dis") else {
        println!("skipped: llvm-dis is not there (rustup component add llvm-tools)");
        return None;
    };
    let output = Command::new(llvm_dis)
        .arg(path)
        .args(["-o", "-"])
        .output()
        .expect("llvm-dis");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Compares one file; returns the number of equal instructions.
fn compare(path: &Path, intrinsics: Intrinsics) -> Option<usize> {
    let text = TextModule::parse(&disassemble(path)?);
    let module = everett_ir::read_file(path).expect("readable");
    let printer = Printer::new(&module);
    compare_globals(&printer, &text);
    assert_eq!(module.aliases.len() + module.ifuncs.len(), text.aliases);
    let bodies: Vec<_> = module
        .functions()
        .filter(|(_, f)| !f.is_declaration())
        .collect();
    assert_eq!(bodies.len(), text.functions.len(), "functions with a body");
    let mut count = 0;
    // llvm-dis prints functions in module order.
    for ((id, function), expected) in bodies.into_iter().zip(&text.functions) {
        assert_eq!(printer.value(None, Value::Function(id)), expected.name);
        compare_head(&printer, function, expected);
        count += compare_body(&printer, function, expected, &text, intrinsics);
    }
    Some(count)
}

fn compare_globals(printer: &Printer, text: &TextModule) {
    assert_eq!(printer.module.globals.len(), text.globals.len());
    for ((id, global), (name, expected)) in printer.module.globals().zip(&text.globals) {
        assert_eq!(&printer.value(None, Value::Global(id)), name);
        let at = expected
            .iter()
            .position(|token| token == "global" || token == "constant");
        let at = at.expect("global or constant");
        let words = &expected[2..at];
        assert_eq!(global.constant, expected[at] == "constant", "{name}");
        assert_eq!(
            global.thread_local,
            words.iter().any(|w| w == "thread_local"),
            "{name}"
        );
        assert_eq!(linkage_of(words), global.linkage, "{name}");
        let mut ours = printer.ty(global.ty);
        if let Some(initializer) = global.initializer {
            ours = printer.typed(None, initializer);
        }
        let ours = tokens(&ours);
        let theirs = without_inrange(&expected[at + 1..]);
        let rest = theirs.get(ours.len()..).unwrap_or(&[]);
        assert_same(name, &ours, &theirs[..theirs.len() - rest.len()]);
        assert!(rest.is_empty() || rest[0] == ",", "{name}: {rest:?}");
        let align = rest.iter().position(|token| token == "align");
        let align = align.map_or(0, |at| rest[at + 1].parse().expect("alignment"));
        assert_eq!(global.align, align, "{name}");
        let section = rest.iter().position(|token| token == "section");
        let section = section.map(|at| rest[at + 1].trim_matches('"'));
        assert_eq!(global.section.as_deref(), section, "{name}");
        assert_eq!(
            global.comdat.is_some(),
            rest.iter().any(|t| t == "comdat"),
            "{name}"
        );
    }
}

/// Shows where two token lists diverge.
fn assert_same(name: &str, ours: &[String], theirs: &[String]) {
    if ours != theirs {
        let same = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
        let from = same.saturating_sub(12);
        let part = |tokens: &[String]| {
            tokens[from.min(tokens.len())..(same + 8).min(tokens.len())].join(" ")
        };
        panic!("{name}:\n  {}\nis not\n  {}", part(ours), part(theirs));
    }
}

fn linkage_of(words: &[String]) -> Linkage {
    for word in words {
        return match word.as_str() {
            "internal" => Linkage::Internal,
            "private" => Linkage::Private,
            "weak" => Linkage::WeakAny,
            "weak_odr" => Linkage::WeakOdr,
            "linkonce" => Linkage::LinkOnceAny,
            "linkonce_odr" => Linkage::LinkOnceOdr,
            "common" => Linkage::Common,
            "appending" => Linkage::Appending,
            "extern_weak" => Linkage::ExternalWeak,
            "available_externally" => Linkage::AvailableExternally,
            _ => continue,
        };
    }
    Linkage::External
}

fn compare_head(printer: &Printer, function: &Function, expected: &TextFunction) {
    let name = &expected.name;
    assert_eq!(linkage_of(&expected.head[1..3]), function.linkage, "{name}");
    let at = expected
        .head
        .iter()
        .position(|token| token == "personality");
    let theirs = at.map(|at| expected.head[at + 2].clone());
    let ours = function.personality.map(|value| printer.value(None, value));
    assert_eq!(ours, theirs, "{name}");
    let byval = expected
        .head
        .iter()
        .filter(|t| *t == "byval" || *t == "sret")
        .count();
    let attributes = printer.module.attributes(function.attributes);
    let ours = attributes.map_or(0, |list| {
        list.params
            .iter()
            .filter(|p| p.byval.is_some() || p.sret.is_some())
            .count()
    });
    assert_eq!(ours, byval, "{name}");
}

const UNSUPPORTED: [&str; 5] = [
    "catchswitch",
    "catchpad",
    "catchret",
    "cleanuppad",
    "cleanupret",
];

fn compare_body(
    printer: &Printer,
    function: &Function,
    expected: &TextFunction,
    text: &TextModule,
    intrinsics: Intrinsics,
) -> usize {
    let name = &expected.name;
    assert_eq!(function.blocks.len(), expected.blocks, "blocks of {name}");
    let ours = instructions::function_lines(printer, function);
    for ((line, location), (theirs, node)) in ours.iter().zip(&expected.lines) {
        let line = tokens(line);
        let intrinsic = |line: &[String]| line.iter().any(|token| token.starts_with("@llvm."));
        let upgraded = intrinsics == Intrinsics::Upgraded && intrinsic(&line) && intrinsic(theirs);
        // For unsupported instructions only the name is kept.
        let unsupported = line
            .last()
            .is_some_and(|word| UNSUPPORTED.contains(&word.as_str()));
        if unsupported {
            assert_same(name, &line, &theirs[..line.len()]);
        } else if !upgraded {
            assert_same(name, &line, theirs);
        }
        let theirs = node.map_or(vec![], |node| text.location(node));
        assert_eq!(
            chain(printer.module, *location),
            theirs,
            "{name}: {}",
            line.join(" ")
        );
    }
    assert_eq!(ours.len(), expected.lines.len(), "instructions of {name}");
    ours.len()
}

fn chain(module: &Module, location: Option<LocId>) -> Vec<(u32, u32, String, String)> {
    let debug = &module.debug;
    let mut chain = Vec::new();
    let mut next = location;
    while let Some(id) = next {
        let location = debug.locations[id.index()];
        let function = location
            .subprogram
            .map(|id| debug.subprograms[id.index()].name.to_string());
        let file = location
            .file
            .map(|id| debug.files[id.index()].name.to_string());
        let (line, column) = (location.line, location.column);
        chain.push((
            line,
            column,
            function.unwrap_or_default(),
            file.unwrap_or_default(),
        ));
        next = location.inlined_at;
    }
    chain
}

#[test]
fn fixtures_are_what_llvm_says() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut paths: Vec<_> = std::fs::read_dir(data)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    let mut files = 0;
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "bc"))
    {
        let name = path.file_name().unwrap().to_string_lossy();
        let new = name.contains("22") || name.contains("rust");
        let intrinsics = if new {
            Intrinsics::Same
        } else {
            Intrinsics::Upgraded
        };
        files += 1;
        if let Some(count) = compare(path, intrinsics) {
            println!("{name}: {count} instructions");
            assert!(count > 0);
        }
    }
    assert!(files >= 4, "the fixtures are missing");
}

/// Compares files named in the environment, such as whole programs.
#[test]
fn named_files_are_what_llvm_says() {
    let Ok(paths) = std::env::var("EVERETT_IR_COMPARE") else {
        println!("skipped: EVERETT_IR_COMPARE names no files");
        return;
    };
    for path in paths.split(':') {
        let old = ["c14", "c16", "c19"].iter().any(|mark| path.contains(mark));
        let intrinsics = if old {
            Intrinsics::Upgraded
        } else {
            Intrinsics::Same
        };
        println!("{path}: {:?}", compare(Path::new(path), intrinsics));
    }
}

/// Links with both linkers and compares the resulting functions.
#[test]
fn linking_is_what_llvm_does() {
    let Some(llvm_link) = tool("llvm-link") else {
        println!("skipped: llvm-link is not there (rustup component add llvm-tools)");
        return;
    };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for (first, second) in [
        ("link_first.llvm22.bc", "link_second.llvm22.bc"),
        ("program.clang22.bc", "exceptions.clang22.bc"),
    ] {
        let paths = [data.join(first), data.join(second)];
        let output = Command::new(&llvm_link)
            .args(&paths)
            .args(["-o", "-"])
            .output();
        let expected = Module::read(&output.expect("llvm-link").stdout).expect("readable");
        let modules = paths
            .iter()
            .map(|path| everett_ir::read_file(path).expect("readable"));
        let linked = everett_ir::link::link(modules.collect()).expect("linked");
        assert_eq!(bodies(&linked), bodies(&expected));
    }
}

/// Returns the lines of all functions, without the numeric suffixes of local symbols.
fn bodies(module: &Module) -> Vec<(String, Vec<String>)> {
    let printer = Printer::new(module);
    let plain = |text: &str| {
        let kept = tokens(text)
            .into_iter()
            .map(|token| match token.rsplit_once('.') {
                Some((name, digits))
                    if name.starts_with('@') && digits.bytes().all(|b| b.is_ascii_digit()) =>
                {
                    name.to_owned()
                }
                _ => token,
            });
        kept.collect::<Vec<_>>().join(" ")
    };
    let mut bodies: Vec<_> = module
        .functions()
        .filter(|(_, function)| !function.is_declaration())
        .map(|(id, function)| {
            let lines = instructions::function_lines(&printer, function);
            let lines = lines.iter().map(|(line, _)| plain(line)).collect();
            (plain(&printer.value(None, Value::Function(id))), lines)
        })
        .collect();
    bodies.sort();
    bodies
}

/// A whole program with Rust's standard library, compiled by the test.
#[test]
fn a_program_with_std_is_what_llvm_says() {
    let source = r#"
        use std::collections::BTreeMap;
        fn main() {
            let mut counts = BTreeMap::new();
            for word in std::env::args() {
                *counts.entry(word).or_insert(0u64) += 1;
            }
            let thread = std::thread::spawn(move || println!("{counts:?} {:.3}", 0.5f64));
            thread.join().unwrap();
        }
    "#;
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("std-program");
    std::fs::create_dir_all(&directory).expect("directory");
    std::fs::write(directory.join("program.rs"), source).expect("source");
    let mut rustc = Command::new("rustc");
    rustc.args([
        "-g",
        "-O",
        "-C",
        "lto=fat",
        "--emit=llvm-bc,link",
        "program.rs",
    ]);
    let output = rustc.current_dir(&directory).output().expect("rustc");
    if !output.status.success() {
        println!(
            "skipped: rustc cannot link: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        return;
    }
    if let Some(count) = compare(&directory.join("program.bc"), Intrinsics::Same) {
        println!("{count} instructions");
        assert!(count > 10_000, "std is missing from the module");
    }
}
