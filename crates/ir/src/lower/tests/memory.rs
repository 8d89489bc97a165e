//! Stack slots, loads, stores and address arithmetic.

use super::build::Build;
use super::machine::run;
use crate::code::{Body, Inst};
use crate::module::*;

/// Code that loads a slot, stores to it, and then uses the loaded value must compute the same with
/// and without promotion.
#[test]
fn promoted_slots_keep_what_was_read() {
    let mut build = Build::new();
    let (int, wide, bit) = (build.int(32), build.int(64), build.int(1));
    let (one, ten) = (build.number(32, 1), build.number(32, 10));
    build.function("slots", &[int], wide, |build, body| {
        body.block();
        let slot = body.alloca(build, int);
        body.store(slot, Value::Argument(0));
        let before = body.load(int, slot);
        let extended = body.cast(wide, CastOp::ZExt, before);
        let more = body.binary(int, BinaryOp::Add, before, one);
        body.store(slot, more);
        let after = body.load(int, slot);
        let compared = InstructionKind::ICmp {
            predicate: IntPredicate::Ult,
            lhs: after,
            rhs: ten,
            same_sign: false,
        };
        let condition = body.push(bit, compared);
        body.store(slot, ten);
        body.effect(InstructionKind::CondBranch {
            condition,
            then: BlockId::new(1),
            otherwise: BlockId::new(2),
        });
        body.block();
        let last = body.load(int, slot);
        let last = body.cast(wide, CastOp::ZExt, last);
        let sum = body.binary(wide, BinaryOp::Mul, last, extended);
        body.ret(sum);
        body.block();
        body.ret(extended);
    });
    for promote in [false, true] {
        let program = build.lower(promote);
        let memory = &mut Vec::new();
        assert_eq!(run(&program, "slots", &[5], memory), [50], "{promote}");
        assert_eq!(run(&program, "slots", &[9], memory), [9], "{promote}");
        assert_eq!(memory.is_empty(), promote);
    }
}

#[test]
fn slots_whose_address_is_used_stay_in_memory() {
    let mut build = Build::new();
    let (int, byte, pointer) = (build.int(32), build.int(8), build.pointer());
    build.function("escapes", &[int], pointer, |build, body| {
        body.block();
        let slot = body.alloca(build, int);
        body.store(slot, Value::Argument(0));
        body.ret(slot);
    });
    build.function("narrower", &[int], byte, |build, body| {
        body.block();
        let slot = body.alloca(build, int);
        body.store(slot, Value::Argument(0));
        let low = body.load(byte, slot);
        body.ret(low);
    });
    let program = build.lower(true);
    for name in ["escapes", "narrower"] {
        let id = program.function(name).unwrap();
        let Body::Code(code) = &program.functions[id.0 as usize].body else {
            unreachable!()
        };
        let allocates = |inst: &Inst| matches!(inst, Inst::Alloca { .. });
        assert!(code.instructions.iter().any(allocates), "{name}");
    }
    assert_eq!(
        run(&program, "narrower", &[0x1234], &mut Vec::new()),
        [0x34]
    );
}

#[test]
fn bits_are_packed_in_memory() {
    let mut build = Build::new();
    let (bits, byte, pointer) = (build.vector(8, 1), build.int(8), build.pointer());
    let (odd, wide) = (build.int(17), build.int(72));
    build.function("pack", &[pointer, bits], byte, |_, body| {
        body.block();
        body.store(Value::Argument(0), Value::Argument(1));
        let value = body.load(byte, Value::Argument(0));
        body.ret(value);
    });
    build.function("unpack", &[pointer], bits, |_, body| {
        body.block();
        let value = body.load(bits, Value::Argument(0));
        body.ret(value);
    });
    build.function("odd", &[pointer, odd, wide], wide, |_, body| {
        body.block();
        body.store(Value::Argument(0), Value::Argument(2));
        body.store(Value::Argument(0), Value::Argument(1));
        let value = body.load(wide, Value::Argument(0));
        body.ret(value);
    });
    let program = build.lower(true);
    let memory = &mut vec![0xff; 16];
    assert_eq!(
        run(&program, "pack", &[3, 1, 0, 1, 1, 0, 0, 0, 1], memory),
        [0x8d]
    );
    assert_eq!((memory[2], memory[3], memory[4]), (0xff, 0x8d, 0xff));
    assert_eq!(
        run(&program, "unpack", &[3], memory),
        [1, 0, 1, 1, 0, 0, 0, 1]
    );
    let result = run(
        &program,
        "odd",
        &[0, 0x1_0203, 0x1111_1111_1111_1111, 0x22],
        memory,
    );
    assert_eq!(result, [0x1111_1111_1101_0203, 0x22]);
    assert_eq!(memory[9], 0xff);
}

#[test]
fn addresses_of_members() {
    let mut build = Build::new();
    let (byte, int, wide) = (build.int(8), build.int(32), build.int(64));
    let pointer = build.pointer();
    let inner = build.ty(Type::Array {
        element: int,
        count: 6,
    });
    let outer = build.structure(&[byte, inner, wide]);
    let (one, two) = (build.number(32, 1), build.number(32, 2));
    let minus_one = build.number(64, u64::MAX);
    build.function("member", &[pointer, int], pointer, |_, body| {
        body.block();
        let indices = [minus_one, one, Value::Argument(1)];
        let address = body.gep(pointer, outer, Value::Argument(0), &indices);
        body.ret(address);
    });
    build.function("read", &[pointer, int], wide, |_, body| {
        body.block();
        let index = body.cast(wide, CastOp::SExt, Value::Argument(1));
        let address = body.gep(pointer, outer, Value::Argument(0), &[index, two]);
        let value = body.load(wide, address);
        body.ret(value);
    });
    let program = build.lower(true);
    let none = &mut Vec::new();
    assert_eq!(
        run(&program, "member", &[1000, 3], none),
        [1000 - 40 + 4 + 12]
    );
    assert_eq!(
        run(&program, "member", &[1000, 0xffff_ffff], none),
        [1000 - 40]
    );
    let mut memory = vec![0; 200];
    memory[72] = 77;
    assert_eq!(run(&program, "read", &[80, 0xffff_ffff], &mut memory), [77]);
}
