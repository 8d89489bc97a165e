//! Tests that compare intrinsics with the processor's instructions, through Rust's own intrinsics.

use everett_ir::code::{FloatKind, Lane, ValueType};
use proptest::prelude::*;

use crate::bug::BugKind;
use crate::testing::{Argument, Harness, bits, int, pointer};
use crate::value::Value;
use crate::vm::Interrupt;

/// Converts sixteen bytes to lanes of this type.
fn vector(lane: Lane, bytes: [u8; 16]) -> Argument {
    let size = lane.bits() as usize / 8;
    let lanes: Vec<Value> = bytes
        .chunks(size)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(chunk);
            Value::concrete(u64::from_le_bytes(word))
        })
        .collect();
    let lanes_count = lanes.len() as u16;
    let ty = ValueType::Vector {
        lanes: lanes_count,
        lane,
    };
    (ty, lanes)
}

fn vector_type(lane: Lane) -> ValueType {
    vector(lane, [0; 16]).0
}

fn call(name: &str, args: &[Argument], result: ValueType) -> Vec<u64> {
    bits(&Harness::new().compute(name, args, result))
}

/// Joins the lanes of a result.
fn bytes_of(lanes: &[u64]) -> Vec<u8> {
    let size = 16 / lanes.len();
    lanes
        .iter()
        .flat_map(|lane| lane.to_le_bytes()[..size].to_vec())
        .collect()
}

#[cfg(target_arch = "x86_64")]
mod native {
    use super::*;
    use std::arch::x86_64::*;

    fn load(bytes: [u8; 16]) -> __m128i {
        // SAFETY: both are sixteen bytes without invalid values.
        unsafe { std::mem::transmute(bytes) }
    }

    fn store(vector: __m128i) -> Vec<u8> {
        // SAFETY: as above.
        let bytes: [u8; 16] = unsafe { std::mem::transmute(vector) };
        bytes.to_vec()
    }

    const BYTE: Lane = Lane::Int(8);
    const WORD: Lane = Lane::Int(16);
    const DOUBLE_WORD: Lane = Lane::Int(32);
    const QUAD_WORD: Lane = Lane::Int(64);

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn integers(a in any::<[u8; 16]>(), b in any::<[u8; 16]>(), count in 0u8..70) {
            let (x, y) = (load(a), load(b));
            let mut amount = [0; 16];
            amount[0] = count;
            let by = load(amount);
            // SAFETY: every x86-64 has SSE2.
            let rows = unsafe {
                [
                    ("sse2.packsswb.128", WORD, BYTE, store(_mm_packs_epi16(x, y))),
                    ("sse2.packssdw.128", DOUBLE_WORD, WORD, store(_mm_packs_epi32(x, y))),
                    ("sse2.packuswb.128", WORD, BYTE, store(_mm_packus_epi16(x, y))),
                    ("sse2.pmulh.w", WORD, WORD, store(_mm_mulhi_epi16(x, y))),
                    ("sse2.pmulhu.w", WORD, WORD, store(_mm_mulhi_epu16(x, y))),
                    ("sse2.pmadd.wd", WORD, DOUBLE_WORD, store(_mm_madd_epi16(x, y))),
                    ("sse2.pavg.b", BYTE, BYTE, store(_mm_avg_epu8(x, y))),
                    ("sse2.pavg.w", WORD, WORD, store(_mm_avg_epu16(x, y))),
                    ("sse2.psad.bw", BYTE, QUAD_WORD, store(_mm_sad_epu8(x, y))),
                ]
            };
            for (name, lane, result, expected) in rows {
                let args = [vector(lane, a), vector(lane, b)];
                let lanes = call(&format!("llvm.x86.{name}"), &args, vector_type(result));
                prop_assert_eq!(bytes_of(&lanes), expected, "{}", name);
            }
            // SAFETY: every x86-64 has SSE2.
            let shifts = unsafe {
                [
                    ("psll.w", WORD, store(_mm_sll_epi16(x, by))),
                    ("psll.q", QUAD_WORD, store(_mm_sll_epi64(x, by))),
                    ("psrl.d", DOUBLE_WORD, store(_mm_srl_epi32(x, by))),
                    ("psra.w", WORD, store(_mm_sra_epi16(x, by))),
                    ("psra.d", DOUBLE_WORD, store(_mm_sra_epi32(x, by))),
                ]
            };
            for (name, lane, expected) in shifts {
                let name = format!("llvm.x86.sse2.{name}");
                let args = [vector(lane, a), vector(lane, amount)];
                let lanes = call(&name, &args, vector_type(lane));
                prop_assert_eq!(bytes_of(&lanes), &expected[..], "{}", name);
                let (front, last) = name.rsplit_once('.').expect("a name in parts");
                let args = [vector(lane, a), int(32, count.into())];
                let lanes = call(&format!("{front}i.{last}"), &args, vector_type(lane));
                prop_assert_eq!(bytes_of(&lanes), &expected[..], "{} immediate", name);
            }
            // SAFETY: every x86-64 has SSE2.
            let signs = unsafe { _mm_movemask_epi8(x) } as u32;
            let args = [vector(BYTE, a)];
            let result = call("llvm.x86.sse2.pmovmskb.128", &args, ValueType::Int(32));
            prop_assert_eq!(result, [u64::from(signs)]);
        }

        #[test]
        fn floats(x in any::<f64>(), y in any::<f64>(), z in -1e10..1e10) {
            const DOUBLE: Lane = Lane::Float(FloatKind::Double);
            let pack = |low: f64, high: f64| {
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&low.to_le_bytes());
                bytes[8..].copy_from_slice(&high.to_le_bytes());
                bytes
            };
            let (a, b) = (pack(x, z), pack(y, x));
            // SAFETY: every x86-64 has SSE2.
            let (min, less, rounded) = unsafe {
                let (v, w) = (_mm_castsi128_pd(load(a)), _mm_castsi128_pd(load(b)));
                (
                    store(_mm_castpd_si128(_mm_min_pd(v, w))),
                    store(_mm_castpd_si128(_mm_cmplt_sd(v, w))),
                    _mm_cvtsd_si32(_mm_set_sd(z)) as u32,
                )
            };
            let args = [vector(DOUBLE, a), vector(DOUBLE, b), int(8, 1)];
            let result = call("llvm.x86.sse2.min.pd", &args[..2], vector_type(DOUBLE));
            prop_assert_eq!(bytes_of(&result), min);
            let result = call("llvm.x86.sse2.cmp.sd", &args, vector_type(DOUBLE));
            prop_assert_eq!(bytes_of(&result), less);
            let args = [vector(DOUBLE, pack(z, 0.0))];
            let result = call("llvm.x86.sse2.cvtsd2si", &args, ValueType::Int(32));
            prop_assert_eq!(result, [u64::from(rounded)]);
        }
    }
}

#[test]
fn checksums() {
    // The check value of CRC-32C for the digits 1 to 9.
    let mut harness = Harness::new();
    let mut crc = 0xffff_ffffu128;
    for digit in b"123456789" {
        let args = [int(32, crc), int(8, (*digit).into())];
        let result = harness.compute("llvm.x86.sse42.crc32.32.8", &args, ValueType::Int(32));
        crc = bits(&result)[0].into();
    }
    assert_eq!(crc ^ 0xffff_ffff, 0xe306_9283);
}

#[test]
fn mxcsr_keeps_masks_and_subnormals() {
    let loaded = |word: u32| {
        let mut harness = Harness::new();
        let args = [pointer(harness.block(&word.to_le_bytes()))];
        let intrinsic = harness.call_typed("llvm.x86.sse.ldmxcsr", &args, ValueType::Void);
        let assembly = harness.assembly("ldmxcsr $0", "*m", &args, ValueType::Void);
        [intrinsic.map(drop), assembly.map(drop)].map(|outcome| match outcome {
            Ok(()) => true,
            Err(Interrupt::Bug(bug)) if bug.kind == BugKind::Unsupported => false,
            Err(other) => panic!("{other:?}"),
        })
    };
    // The initial word, one with exception flags, and rounding upward.
    for word in [0x1f80, 0x1fa0, 0x5f80] {
        assert_eq!(loaded(word), [true, true], "{word:x}");
    }
    // Flush to zero, denormals are zero, overflow unmasked.
    for word in [0x9f80, 0x1fc0, 0x1b80] {
        assert_eq!(loaded(word), [false, false], "{word:x}");
    }
}

#[test]
fn carries() {
    let pair = ValueType::Aggregate { registers: 2 };
    let all = u128::from(u64::MAX);
    let args = [int(8, 1), int(64, all), int(64, 0)];
    assert_eq!(call("llvm.x86.addcarry.64", &args, pair), [1, 0]);
    let args = [int(8, 1), int(64, 5), int(64, 4)];
    assert_eq!(call("llvm.x86.subborrow.64", &args, pair), [0, 0]);
}
