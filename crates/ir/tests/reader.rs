//! The reader on valid files of several compilers, on damaged ones, and on other file types.

use everett_ir::module::*;
use everett_ir::{Module, read_modules};
use std::path::{Path, PathBuf};

fn fixtures() -> Vec<(PathBuf, Vec<u8>)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let entries = std::fs::read_dir(data).expect("tests/data");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "bc"));
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(path).expect("fixture")))
        .collect()
}

fn fixture(name: &str) -> Module {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    everett_ir::read_file(path).expect("readable")
}

/// Visits everything that a module refers to; a dangling id would panic.
fn walk(module: &Module) -> u64 {
    let mut sum = 0u64;
    for ty in module.types.ids() {
        sum = sum
            .wrapping_add(module.types.size_of(ty))
            .wrapping_add(module.types.abi_align(ty));
    }
    for constant in &module.constants {
        constant.kind.for_each_operand(|operand| {
            sum = sum.wrapping_add(
                module
                    .constant_type(operand)
                    .map_or(0, |ty| ty.index() as u64),
            );
        });
    }
    for (_, function) in module.functions() {
        let mut copy = function.clone();
        copy.for_each_operand_mut(|operand| {
            let ty = module.value_type(function, *operand);
            sum = sum.wrapping_add(ty.map_or(0, |ty| ty.index() as u64));
        });
        for block in function.block_ids() {
            let last = function.block(block).last().expect("a block has an end");
            assert!(last.1.kind.is_terminator());
        }
        let locations = function
            .instructions
            .iter()
            .filter_map(|instruction| instruction.loc);
        for start in locations {
            let mut next = Some(start);
            while let Some(id) = next {
                next = module.debug.locations[id.index()].inlined_at;
                sum += 1;
            }
        }
    }
    sum
}

/// A small deterministic generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn every_truncation_is_an_error() {
    for (path, bytes) in fixtures() {
        for length in (0..bytes.len() - 4).step_by(37) {
            let Err(error) = Module::read(&bytes[..length]) else {
                panic!("{} cut at {length} was read", path.display());
            };
            assert!(error.offset_bits <= length as u64 * 8, "{error}");
        }
    }
}

#[test]
fn damaged_files_never_panic() {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let mut read = 0;
    let mut refused = 0;
    for (_, bytes) in fixtures() {
        for round in 0..800 {
            let mut damaged = bytes.clone();
            for _ in 0..=round % 4 {
                let bit = numbers.below(damaged.len() * 8);
                damaged[bit / 8] ^= 1 << (bit % 8);
            }
            match Module::read(&damaged) {
                Ok(module) => {
                    read += usize::from(walk(&module) != u64::MAX);
                }
                Err(error) => {
                    refused += usize::from(!error.to_string().is_empty());
                }
            }
        }
    }
    // Both must happen, or the damage is ineffective.
    assert!(
        read > 100 && refused > 100,
        "read {read}, refused {refused}"
    );
}

#[test]
fn what_is_no_bitcode_is_named() {
    for (bytes, words) in [
        (&b"\x7fELF\x02\x01\x01"[..], "native ELF"),
        (b"!<arch>\nfoo", "archive"),
        (b"", "empty"),
        (b"define i32 @main()", "text"),
        (b"\xde\xc0\x17\x0b\0\0\0\0", "wrapper"),
        (b"\x00\xff\xfe\xfd", "not bitcode"),
        (b"BC\xC0\xDE", "no module"),
    ] {
        let error = Module::read(bytes).expect_err("not bitcode").to_string();
        assert!(error.contains(words), "{error:?} does not say {words:?}");
    }
}

#[test]
fn a_wrapped_file_is_read() {
    let (_, bytes) = &fixtures()[0];
    let mut wrapped = Vec::new();
    for word in [0x0B17_C0DE, 0, 20, bytes.len() as u32, 7] {
        wrapped.extend_from_slice(&u32::to_le_bytes(word));
    }
    wrapped.extend_from_slice(bytes);
    wrapped.extend_from_slice(&[0; 12]);
    let module = Module::read(&wrapped).expect("wrapped");
    assert_eq!(
        module.functions.len(),
        Module::read(bytes).expect("plain").functions.len()
    );
}

#[test]
fn two_modules_in_one_file_are_read_apart() {
    let (_, first) = &fixtures()[0];
    let (_, second) = &fixtures()[1];
    let mut both = first.clone();
    both.extend_from_slice(&second[4..]);
    let error = Module::read(&both).expect_err("two modules").to_string();
    assert!(error.contains("2 modules"), "{error}");
    let modules = read_modules(&both).expect("two modules");
    let alone = Module::read(second).expect("alone");
    assert_eq!(modules.len(), 2);
    assert_eq!(modules[1].functions.len(), alone.functions.len());
    assert_eq!(modules[1].functions[0].name, alone.functions[0].name);
}

#[test]
fn all_compilers_agree_on_the_program() {
    let names = ["clang14", "clang16", "clang19", "clang22"];
    for name in names {
        let module = fixture(&format!("program.{name}.bc"));
        assert!(module.producer.starts_with("LLVM"), "{}", module.producer);
        let take = &module.functions[module.function_named("take").expect("take").index()];
        let attributes = module.attributes(take.attributes).expect("attributes");
        let byval = attributes.params[0].byval.expect("byval");
        assert_eq!(module.types.size_of(byval), 40);
        assert_eq!(attributes.params[0].align, 8);
        let server = module.global_named("server").expect("server");
        let ty = module.globals[server.index()].ty;
        assert_eq!(module.types.size_of(ty), 200, "{name}");
        let item = module.types.ids().find(|&id| {
            let name = Some("struct.item");
            matches!(&module.types[id], Type::Struct(body) if body.name.as_deref() == name)
        });
        let item = item.expect("struct.item");
        assert_eq!(module.types.field_offset(item, 1), Some(8));
        assert_eq!(module.types.field_offset(item, 2), None);
        let counter = &module.globals[module.global_named("counter").expect("counter").index()];
        assert!(counter.thread_local && counter.linkage == Linkage::Internal);
        let asm = module
            .inline_asms
            .iter()
            .any(|asm| asm.text.starts_with("lock; orl"));
        assert!(asm, "{name}");
    }
}

#[test]
fn the_data_layout_decides_about_i128() {
    let align = |name: &str| {
        let mut module = fixture(name);
        let wide = module.types.intern(Type::Integer(128));
        module.types.compute_layouts().expect("layouts");
        module.types.abi_align(wide)
    };
    assert_eq!(align("program.clang14.bc"), 8);
    assert_eq!(align("program.clang22.bc"), 16);
}

#[test]
fn paths_lead_to_fields() {
    use everett_ir::debug::{PathError, find_path};
    for compiler in ["clang14", "clang16", "clang19", "clang22"] {
        let module = fixture(&format!("program.{compiler}.bc"));
        let server = module.global_named("server").expect("server");
        for (path, offset, size) in [
            ("server", 0, 200 * 8),
            ("server.name", 0, 96),
            ("server.name[3]", 24, 8),
            ("server.table.count", 128, 32),
            (
                "server.table.items[2].values[1]",
                (16 + 8 + 64 + 16) * 8,
                64,
            ),
            ("server.mode", 152 * 8, 32),
            ("server.word.number", 156 * 8, 32),
            ("server.next", 160 * 8, 64),
            ("server.high", 168 * 8 + 3, 5),
            ("server.grid[1]", (172 + 12) * 8, 96),
            ("server.grid[1][2]", (172 + 20) * 8, 32),
        ] {
            let place = find_path(&module, path).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert_eq!(
                (place.global, place.offset_bits, place.size_bits),
                (server, offset, size)
            );
        }
        let fails = |path| {
            find_path(&module, path)
                .expect_err("no such place")
                .to_string()
        };
        assert!(fails("server.tabel").contains("name, table, mode"));
        assert!(fails("server.next.name").contains("pointer"));
        assert!(fails("server.name[12]").contains("12 elements"));
        assert!(fails("nothing").contains("no global variable"));
        assert!(fails("severs").contains("there is `server`"));
        let next = find_path(&module, "server.next->table.count").expect("next");
        let (through, offset) = (next.through, next.offset_bits);
        assert_eq!((through, offset), (vec![160 * 8], 128));
        assert!(fails("server.table->count").contains("struct"));
        assert!(matches!(
            find_path(&module, ".x"),
            Err(PathError::Syntax(_))
        ));
        assert!(find_path(&module, "jump::targets[1]").is_ok());
    }
    let module = fixture("exceptions.clang22.bc");
    assert_eq!(
        find_path(&module, "outer::instance.more")
            .expect("more")
            .offset_bits,
        96
    );
    assert_eq!(
        find_path(&module, "instance.field")
            .expect("field")
            .offset_bits,
        64
    );
    let module = fixture("program.rust195.bc");
    let rows = find_path(&module, "TABLE.rows[2]").expect("rows");
    assert_eq!((rows.offset_bits % 8, rows.size_bits), (0, 16));
    assert_eq!(
        find_path(&module, "SHAPE.Square.side")
            .expect("side")
            .size_bits,
        64
    );
}

#[test]
fn a_name_that_is_not_mangled_stands_for_the_definition() {
    let module = fixture("everything.llvm22.bc");
    let aside = module.global_named("aside").expect("aside");
    assert!(module.globals[aside.index()].initializer.is_some());
    assert_eq!(
        module
            .globals
            .iter()
            .filter(|global| &*global.name == "aside")
            .count(),
        2
    );
}
