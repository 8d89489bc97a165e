//! Bitcasts, lane selection, phis.

use super::build::Build;
use super::machine::run;
use crate::module::*;

const SAMPLES: [u128; 4] = [
    0,
    0x0123_4567_89ab_cdef_fedc_ba98_7654_3210,
    u128::MAX,
    0x8000_0000_0000_0001_8000_0000_0000_0001,
];

/// `value` in lanes of `width` bits, each lane in limbs.
fn lanes(value: u128, width: u32, count: u32) -> Vec<u64> {
    let mut result = Vec::new();
    for lane in 0..count {
        let mut left = width;
        let mut bits = value.checked_shr(lane * width).unwrap_or(0);
        while left > 0 {
            let take = left.min(64);
            result.push((bits as u64) & crate::lower::shape::mask(take));
            bits = bits.checked_shr(64).unwrap_or(0);
            left -= take;
        }
    }
    result
}

#[test]
fn bitcasts_keep_all_bits() {
    // Lane width and number of lanes, all of 128 bits; one lane of 128 is the integer.
    let shapes = [
        (128, 1),
        (64, 2),
        (32, 4),
        (16, 8),
        (8, 16),
        (1, 128),
        (4, 32),
    ];
    for (from_width, from_count) in shapes {
        for (to_width, to_count) in shapes {
            let mut build = Build::new();
            let mut shape = |width, count| match count {
                1 => build.int(width),
                _ => build.vector(count, width),
            };
            let (from, to) = (shape(from_width, from_count), shape(to_width, to_count));
            build.function("cast", &[from], to, |_, body| {
                body.block();
                let value = body.cast(to, CastOp::BitCast, Value::Argument(0));
                body.ret(value);
            });
            let program = build.lower(true);
            for sample in SAMPLES {
                let result = run(
                    &program,
                    "cast",
                    &lanes(sample, from_width, from_count),
                    &mut Vec::new(),
                );
                assert_eq!(
                    result,
                    lanes(sample, to_width, to_count),
                    "{from_width} {to_width}"
                );
            }
        }
    }
}

#[test]
fn wide_shifts_by_constants() {
    for width in [65, 96, 128] {
        for amount in [0, 1, 7, 63, 64] {
            for op in [BinaryOp::Shl, BinaryOp::LShr] {
                let mut build = Build::new();
                let ty = build.int(width);
                let by = build.wide(width, amount);
                build.function("shift", &[ty], ty, |_, body| {
                    body.block();
                    let value = body.binary(ty, op, Value::Argument(0), by);
                    body.ret(value);
                });
                let program = build.lower(true);
                for sample in SAMPLES {
                    let sample = sample & (u128::MAX >> (128 - width));
                    let expected = match op {
                        BinaryOp::Shl => (sample << amount) & (u128::MAX >> (128 - width)),
                        _ => sample >> amount,
                    };
                    let args = lanes(sample, width, 1);
                    let result = run(&program, "shift", &args, &mut Vec::new());
                    assert_eq!(result, lanes(expected, width, 1), "{op:?} {width} {amount}");
                }
            }
        }
    }
}

#[test]
fn widths_change() {
    for (from, to) in [
        (8, 32),
        (32, 8),
        (1, 64),
        (64, 128),
        (128, 64),
        (128, 33),
        (16, 100),
    ] {
        for op in [CastOp::ZExt, CastOp::SExt, CastOp::Trunc] {
            if (op == CastOp::Trunc) == (from < to) {
                continue;
            }
            let mut build = Build::new();
            let (from_ty, to_ty) = (build.int(from), build.int(to));
            build.function("cast", &[from_ty], to_ty, |_, body| {
                body.block();
                let value = body.cast(to_ty, op, Value::Argument(0));
                body.ret(value);
            });
            let program = build.lower(true);
            for sample in SAMPLES {
                let sample = sample & (u128::MAX >> (128 - from));
                let unused = 128 - from;
                let wide = match op {
                    CastOp::SExt => (((sample << unused) as i128) >> unused) as u128,
                    _ => sample,
                };
                let args = lanes(sample, from, 1);
                let result = run(&program, "cast", &args, &mut Vec::new());
                assert_eq!(result, lanes(wide, to, 1), "{op:?} {from} {to}");
            }
        }
    }
}

#[test]
fn lanes_are_chosen_by_variables() {
    let mut build = Build::new();
    let (vector, lane) = (build.vector(4, 16), build.int(16));
    let index_ty = build.int(32);
    build.function("put", &[vector, lane, index_ty], vector, |_, body| {
        body.block();
        let kind = InstructionKind::InsertElement {
            vector: Value::Argument(0),
            element: Value::Argument(1),
            index: Value::Argument(2),
        };
        let value = body.push(vector, kind);
        body.ret(value);
    });
    build.function("get", &[vector, index_ty], lane, |_, body| {
        body.block();
        let kind = InstructionKind::ExtractElement {
            vector: Value::Argument(0),
            index: Value::Argument(1),
        };
        let value = body.push(lane, kind);
        body.ret(value);
    });
    build.function("shuffle", &[vector, vector], vector, |_, body| {
        body.block();
        body.function.masks = vec![7, 0, 2, 5];
        let kind = InstructionKind::ShuffleVector {
            lhs: Value::Argument(0),
            rhs: Value::Argument(1),
            mask: Span { start: 0, len: 4 },
        };
        let value = body.push(vector, kind);
        body.ret(value);
    });
    let program = build.lower(true);
    let none = &mut Vec::new();
    assert_eq!(
        run(&program, "put", &[1, 2, 3, 4, 9, 2], none),
        [1, 2, 9, 4]
    );
    assert_eq!(run(&program, "get", &[1, 2, 3, 4, 3], none), [4]);
    assert_eq!(run(&program, "get", &[1, 2, 3, 4, 0], none), [1]);
    assert_eq!(
        run(&program, "shuffle", &[1, 2, 3, 4, 5, 6, 7, 8], none),
        [8, 1, 3, 6]
    );
}

/// A loop whose phis swap their values in each iteration.
#[test]
fn phis_are_assigned_at_once() {
    let mut build = Build::new();
    let int = build.int(32);
    let (zero, one) = (build.number(32, 0), build.number(32, 1));
    let pair = build.structure(&[int, int]);
    let poison = build.add(pair, ConstantKind::Poison);
    let bit = build.int(1);
    build.function("swap", &[int, int, int], pair, |_, body| {
        let entry = body.block();
        body.effect(InstructionKind::Branch {
            target: BlockId::new(1),
        });
        let header = body.block();
        let (a, b, i) = (body.phi(int), body.phi(int), body.phi(int));
        let next = body.binary(int, BinaryOp::Add, i, one);
        let done = InstructionKind::ICmp {
            predicate: IntPredicate::Uge,
            lhs: next,
            rhs: Value::Argument(2),
            same_sign: false,
        };
        let condition = body.push(bit, done);
        body.effect(InstructionKind::CondBranch {
            condition,
            then: BlockId::new(2),
            otherwise: header,
        });
        body.edges(a, &[(entry, Value::Argument(0)), (header, b)]);
        body.edges(b, &[(entry, Value::Argument(1)), (header, a)]);
        body.edges(i, &[(entry, zero), (header, next)]);
        body.block();
        body.function.paths = vec![0, 1];
        let first = InstructionKind::InsertValue {
            aggregate: poison,
            element: a,
            path: Span { start: 0, len: 1 },
        };
        let first = body.push(pair, first);
        let both = InstructionKind::InsertValue {
            aggregate: first,
            element: b,
            path: Span { start: 1, len: 1 },
        };
        let both = body.push(pair, both);
        body.ret(both);
    });
    let program = build.lower(true);
    assert_eq!(run(&program, "swap", &[7, 8, 1], &mut Vec::new()), [7, 8]);
    assert_eq!(run(&program, "swap", &[7, 8, 2], &mut Vec::new()), [8, 7]);
    assert_eq!(run(&program, "swap", &[7, 8, 5], &mut Vec::new()), [7, 8]);
}
