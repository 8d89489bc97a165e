//! Concrete floats against the processor, bit for bit.
#![cfg(target_arch = "x86_64")]

use everett_expr::{
    Arena, ArrayId, EvalScratch, FloatCompareOp, FloatFormat, FloatOp, FloatUnaryOp, RoundingMode,
    float,
};
use proptest::prelude::*;
use std::arch::asm;

/// An SSE instruction on two doubles or singles.
macro_rules! sse {
    ($instruction:literal, $a:expr, $b:expr) => {{
        let mut result = $a;
        // SAFETY: the instruction only changes the named register.
        unsafe { asm!(concat!($instruction, " {0}, {1}"), inout(xmm_reg) result, in(xmm_reg) $b) };
        result
    }};
}

fn sse_double(op: FloatOp, a: f64, b: f64) -> f64 {
    match op {
        FloatOp::Add => sse!("addsd", a, b),
        FloatOp::Sub => sse!("subsd", a, b),
        FloatOp::Mul => sse!("mulsd", a, b),
        FloatOp::Div => sse!("divsd", a, b),
        FloatOp::Rem => unreachable!("no such instruction"),
    }
}

fn sse_single(op: FloatOp, a: f32, b: f32) -> f32 {
    match op {
        FloatOp::Add => sse!("addss", a, b),
        FloatOp::Sub => sse!("subss", a, b),
        FloatOp::Mul => sse!("mulss", a, b),
        FloatOp::Div => sse!("divss", a, b),
        FloatOp::Rem => unreachable!("no such instruction"),
    }
}

/// Runs x87 instructions on one or two long doubles in memory.
macro_rules! x87 {
    ($code:literal, $a:expr, $b:expr) => {{
        let (a, b): (u128, u128) = ($a, $b);
        let mut result = 0u128;
        // SAFETY: reads 10 bytes each from two values, writes 10 bytes to a third, and leaves the
        // register stack as empty as it was.
        unsafe {
            asm!(
                "fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", $code, "fstp tbyte ptr [{r}]",
                a = in(reg) &a, b = in(reg) &b, r = in(reg) &mut result,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            );
        }
        result
    }};
}

fn x87_binary(op: FloatOp, a: u128, b: u128) -> u128 {
    match op {
        FloatOp::Add => x87!("faddp st(1), st", a, b),
        FloatOp::Sub => x87!("fsubp st(1), st", a, b),
        FloatOp::Mul => x87!("fmulp st(1), st", a, b),
        FloatOp::Div => x87!("fdivp st(1), st", a, b),
        FloatOp::Rem => unreachable!("takes several instructions"),
    }
}

const ARITHMETIC: [FloatOp; 4] = [FloatOp::Add, FloatOp::Sub, FloatOp::Mul, FloatOp::Div];

/// Bits of a double; special values are likely.
fn double_bits() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => any::<u64>(),
        3 => (-64i64..64).prop_map(|value| (value as f64 / 4.0).to_bits()),
        2 => (any::<bool>(), 0u64..4, 0u64..4).prop_map(|(sign, exponent, low)| {
            let exponent = [0, 1, 0x7fe, 0x7ff][exponent as usize];
            u64::from(sign) << 63 | exponent << 52 | low
        }),
        2 => prop::sample::select(vec![
            0, 1 << 63, 0x7ff0_0000_0000_0000, 0xfff0_0000_0000_0000, 0x7ff8_0000_0000_0001,
            0x7ff0_0000_0000_0005, 0xfff8_0000_0000_0000, 0x3ff0_0000_0000_0000,
            0x41e0_0000_0000_0000, 0xc1e0_0000_0000_0000, 0x43e0_0000_0000_0000,
            0xc3e0_0000_0000_0000, 0x41df_ffff_ffff_ffff,
        ]),
    ]
}

/// Bits of a valid long double.
fn x87_bits() -> impl Strategy<Value = u128> {
    let close = 16380u16..16390;
    let exponent = prop_oneof![
        any::<u16>().prop_map(|e| e & 0x7fff),
        close,
        Just(0),
        Just(0x7fff)
    ];
    let significand = prop_oneof![any::<u64>(), Just(0), Just(1), Just(1 << 62), Just(3 << 61)];
    (any::<bool>(), exponent, significand).prop_map(|(sign, exponent, significand)| {
        let integer = if exponent == 0 { 0 } else { 1 << 63 };
        let significand = if exponent == 0 {
            significand >> 1
        } else {
            significand | integer
        };
        u128::from(sign) << 79 | u128::from(exponent) << 64 | u128::from(significand)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn doubles_are_those_of_sse(a in double_bits(), b in double_bits()) {
        for op in ARITHMETIC {
            let native = sse_double(op, f64::from_bits(a), f64::from_bits(b)).to_bits();
            let ours = float::binary(op, FloatFormat::Double, a.into(), b.into());
            prop_assert_eq!(ours, u128::from(native), "{:?} {:x} {:x}", op, a, b);
        }
        let root = sse!("sqrtsd", 0f64, f64::from_bits(a)).to_bits();
        let ours = float::unary(FloatUnaryOp::Sqrt, FloatFormat::Double, a.into());
        prop_assert_eq!(ours, u128::from(root));
    }

    #[test]
    fn singles_are_those_of_sse(a in double_bits(), b in double_bits(), shift in 0u32..33) {
        let (a, b) = ((a >> shift) as u32, (b >> shift) as u32);
        for op in ARITHMETIC {
            let native = sse_single(op, f32::from_bits(a), f32::from_bits(b)).to_bits();
            let ours = float::binary(op, FloatFormat::Single, a.into(), b.into());
            prop_assert_eq!(ours, u128::from(native), "{:?} {:x} {:x}", op, a, b);
        }
        let root = sse!("sqrtss", 0f32, f32::from_bits(a)).to_bits();
        let ours = float::unary(FloatUnaryOp::Sqrt, FloatFormat::Single, a.into());
        prop_assert_eq!(ours, u128::from(root));
    }

    #[test]
    fn long_doubles_are_those_of_the_x87(a in x87_bits(), b in x87_bits()) {
        for op in ARITHMETIC {
            let ours = float::binary(op, FloatFormat::X87, a, b);
            prop_assert_eq!(ours, x87_binary(op, a, b), "{:?} {:x} {:x}", op, a, b);
        }
        let ours = float::unary(FloatUnaryOp::Sqrt, FloatFormat::X87, a);
        prop_assert_eq!(ours, x87!("fstp st(0)\nfsqrt", a, b), "sqrt {:x}", a);
        let mode = FloatUnaryOp::RoundToIntegral(RoundingMode::NearestEven);
        let ours = float::unary(mode, FloatFormat::X87, a);
        prop_assert_eq!(ours, x87!("fstp st(0)\nfrndint", a, b), "rint {:x}", a);
    }

    #[test]
    fn conversions_are_those_of_the_processor(a in double_bits(), wide in x87_bits()) {
        let value = f64::from_bits(a);
        let single = sse!("cvtsd2ss", 0f32, value).to_bits();
        let ours = float::convert(FloatFormat::Double, FloatFormat::Single, a.into());
        prop_assert_eq!(ours, u128::from(single));
        let narrow = f32::from_bits(a as u32);
        let double = sse!("cvtss2sd", 0f64, narrow).to_bits();
        let ours = float::convert(FloatFormat::Single, FloatFormat::Double, u128::from(a as u32));
        prop_assert_eq!(ours, u128::from(double));
        let (int32, int64): (u32, u64);
        // SAFETY: the instructions only change the named registers.
        unsafe {
            asm!("cvttsd2si {0:e}, {1}", out(reg) int32, in(xmm_reg) value);
            asm!("cvttsd2si {0:r}, {1}", out(reg) int64, in(xmm_reg) value);
        }
        prop_assert_eq!(float::to_int(true, FloatFormat::Double, a.into(), 32), vec![u64::from(int32)]);
        prop_assert_eq!(float::to_int(true, FloatFormat::Double, a.into(), 64), vec![int64]);
        let mut stored = 0u64;
        // SAFETY: reads 10 bytes, writes 8 bytes, leaves the register stack as it was.
        unsafe {
            asm!(
                "fld tbyte ptr [{a}]", "fstp qword ptr [{r}]",
                a = in(reg) &wide, r = in(reg) &mut stored,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            );
        }
        let ours = float::convert(FloatFormat::X87, FloatFormat::Double, wide);
        prop_assert_eq!(ours, u128::from(stored), "{:x}", wide);
        let mut extended = 0u128;
        // SAFETY: reads 8 bytes, writes 10 bytes, leaves the register stack as it was.
        unsafe {
            asm!(
                "fld qword ptr [{a}]", "fstp tbyte ptr [{r}]",
                a = in(reg) &a, r = in(reg) &mut extended,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            );
        }
        let ours = float::convert(FloatFormat::Double, FloatFormat::X87, a.into());
        prop_assert_eq!(ours, extended, "{:x}", a);
    }

    #[test]
    fn integers_become_the_nearest_floats(value in any::<i128>(), shift in 0u32..128) {
        let value = value >> shift;
        let limbs = [value as u64, (value >> 64) as u64];
        let double = |signed| float::from_int(signed, FloatFormat::Double, 128, &limbs);
        prop_assert_eq!(double(true), u128::from((value as f64).to_bits()));
        prop_assert_eq!(double(false), u128::from((value as u128 as f64).to_bits()));
        let single = |signed| float::from_int(signed, FloatFormat::Single, 128, &limbs);
        prop_assert_eq!(single(true), u128::from((value as f32).to_bits()));
        prop_assert_eq!(single(false), u128::from((value as u128 as f32).to_bits()));
    }

    #[test]
    fn comparisons_and_rounding(a in double_bits(), b in double_bits()) {
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        let compare = |op| float::compare(op, FloatFormat::Double, a.into(), b.into());
        prop_assert_eq!(compare(FloatCompareOp::Oeq), x == y);
        prop_assert_eq!(compare(FloatCompareOp::Olt), x < y);
        prop_assert_eq!(compare(FloatCompareOp::Ole), x <= y);
        prop_assert_eq!(compare(FloatCompareOp::Uno), x.is_nan() || y.is_nan());
        if !x.is_nan() {
            let round = |mode| {
                let op = FloatUnaryOp::RoundToIntegral(mode);
                float::unary(op, FloatFormat::Double, a.into()) as u64
            };
            prop_assert_eq!(round(RoundingMode::NearestEven), x.round_ties_even().to_bits());
            prop_assert_eq!(round(RoundingMode::NearestAway), x.round().to_bits());
            prop_assert_eq!(round(RoundingMode::TowardZero), x.trunc().to_bits());
            prop_assert_eq!(round(RoundingMode::TowardPositive), x.ceil().to_bits());
            prop_assert_eq!(round(RoundingMode::TowardNegative), x.floor().to_bits());
            if !y.is_nan() && x.is_finite() && y != 0.0 {
                let rem = float::binary(FloatOp::Rem, FloatFormat::Double, a.into(), b.into());
                prop_assert_eq!(rem as u64, (x % y).to_bits());
            }
        }
    }
}

#[test]
fn invalid_operations_give_the_negative_quiet_nan() {
    let zero_by_zero = float::binary(FloatOp::Div, FloatFormat::Double, 0, 0);
    assert_eq!(zero_by_zero, 0xfff8_0000_0000_0000);
    assert_eq!(
        float::default_nan(FloatFormat::X87),
        0xffff_c000_0000_0000_0000
    );
}

#[test]
fn wide_integers_round_once() {
    // 2^200 plus half a unit in the last place and a bit: rounds up.
    let mut limbs = [0u64; 4];
    limbs[3] = 1 << 8;
    limbs[2] = 1 << (200 - 53 - 128);
    limbs[0] = 1;
    let up = float::from_int(false, FloatFormat::Double, 256, &limbs);
    assert_eq!(
        f64::from_bits(up as u64),
        2f64.powi(200) * (1.0 + f64::EPSILON)
    );
    limbs[0] = 0;
    let even = float::from_int(false, FloatFormat::Double, 256, &limbs);
    assert_eq!(f64::from_bits(even as u64), 2f64.powi(200));
    let back = float::to_int(false, FloatFormat::Double, even, 256);
    assert_eq!(back, [0, 0, 0, 1 << 8]);
}

/// Float terms evaluate to the values that constants fold to.
#[test]
fn float_terms_evaluate() {
    let mut arena = Arena::new();
    let array = arena.array(0, "in", 8);
    let bytes: Vec<_> = (0..8).map(|index| arena.read(array, index)).collect();
    let x = arena.concat_bytes(&bytes);
    let format = FloatFormat::Double;
    let constant = arena.constant(64, 2.5f64.to_bits());
    let sum = arena.float_binary(FloatOp::Add, format, x, constant);
    let root = arena.float_unary(FloatUnaryOp::Sqrt, format, sum);
    let less = arena.float_compare(FloatCompareOp::Olt, format, root, x);
    let wide = arena.float_convert(format, FloatFormat::X87, root);
    let int = arena.float_to_int(true, FloatFormat::X87, wide, 32);
    let back = arena.float_from_int(true, FloatFormat::Single, int);
    let negated = arena.float_neg(format, x);
    let magnitude = arena.float_abs(format, negated);
    let is_nan = arena.float_is_nan(format, x);
    let mut scratch = EvalScratch::new();
    for value in [13.5f64, 0.0, -1.0, 1e10] {
        let bytes = value.to_le_bytes();
        let input = |_: ArrayId, index: u32| bytes[index as usize];
        let mut eval = |e| arena.eval_limbs(e, &input, &mut scratch)[0];
        let expected = (value + 2.5).sqrt();
        assert_eq!(eval(root), expected.to_bits());
        assert_eq!(eval(less), u64::from(expected < value));
        assert_eq!(eval(int), expected as u64);
        assert_eq!(eval(back), u64::from((expected as u64 as f32).to_bits()));
        assert_eq!(eval(magnitude), value.abs().to_bits());
        assert_eq!(eval(is_nan), 0);
    }
    let same = arena.float_compare(FloatCompareOp::Ole, format, x, x);
    assert_eq!(same, arena.not(is_nan));
}
