//! Tests that compare intrinsics with Rust's floating-point operations.

use everett_ir::code::{FloatKind, ValueType};
use proptest::prelude::*;

use crate::testing::{Argument, Harness, bits, int, number};
use crate::value::Value;

const DOUBLE: ValueType = ValueType::Float(FloatKind::Double);

fn double(x: f64) -> Argument {
    (DOUBLE, vec![Value::concrete(x.to_bits())])
}

fn call(name: &str, args: &[Argument]) -> f64 {
    let result = Harness::new().compute(name, args, DOUBLE);
    f64::from_bits(bits(&result)[0])
}

/// Calls an intrinsic with symbolic operands that have these values in the model.
fn call_unknown(name: &str, operands: &[f64]) -> f64 {
    let mut harness = Harness::new();
    let args: Vec<Argument> = operands
        .iter()
        .map(|operand| (DOUBLE, vec![harness.symbolic(operand.to_bits(), 8)]))
        .collect();
    let results = harness.compute(name, &args, DOUBLE);
    f64::from_bits(harness.eval_value(results[0]))
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

fn any_double() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        -100.0..100.0,
        (-10i32..10).prop_map(|x| f64::from(x) / 2.0),
        prop::sample::select(vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn as_rust_computes(x in any_double(), y in any_double(), z in any_double()) {
        let rows: [(&str, f64); 10] = [
            ("llvm.fabs.f64", x.abs()),
            ("llvm.sqrt.f64", x.sqrt()),
            ("llvm.floor.f64", x.floor()),
            ("llvm.ceil.f64", x.ceil()),
            ("llvm.trunc.f64", x.trunc()),
            ("llvm.round.f64", x.round()),
            ("llvm.rint.f64", x.round_ties_even()),
            ("llvm.copysign.f64", x.copysign(y)),
            ("llvm.fma.f64", x.mul_add(y, z)),
            ("llvm.fmuladd.f64", x * y + z),
        ];
        for (name, expected) in rows {
            let result = call(name, &[double(x), double(y), double(z)]);
            prop_assert!(same(result, expected), "{}: {} for {} {}", name, result, x, y);
            if name != "llvm.fma.f64" {
                let result = call_unknown(name, &[x, y, z]);
                prop_assert!(same(result, expected), "{}: {} for {} {}", name, result, x, y);
            }
        }
    }

    #[test]
    fn choices(x in any_double(), y in any_double()) {
        let min = call("llvm.minnum.f64", &[double(x), double(y)]);
        let max = call_unknown("llvm.maxnum.f64", &[x, y]);
        if x.is_nan() || y.is_nan() {
            let other = if x.is_nan() { y } else { x };
            prop_assert!(same(min, other));
            prop_assert!(same(max, min));
            prop_assert!(call("llvm.minimum.f64", &[double(x), double(y)]).is_nan());
        } else {
            prop_assert!(min <= x && min <= y && (min == x || min == y));
            prop_assert!(max >= x && max >= y && (max == x || max == y));
        }
    }

    #[test]
    fn conversions(x in any_double()) {
        let mut harness = Harness::new();
        let mut convert = |name: &str, width: u16| {
            bits(&harness.compute(name, &[double(x)], ValueType::Int(width)))[0]
        };
        prop_assert_eq!(convert("llvm.fptosi.sat.i32.f64", 32), u64::from(x as i32 as u32));
        prop_assert_eq!(convert("llvm.fptosi.sat.i64.f64", 64), x as i64 as u64);
        prop_assert_eq!(convert("llvm.fptoui.sat.i32.f64", 32), u64::from(x as u32));
        prop_assert_eq!(convert("llvm.fptoui.sat.i64.f64", 64), x as u64);
        prop_assert_eq!(convert("llvm.fptoui.sat.i8.f64", 8), u64::from(x as u8));
        if x.abs() < 1e15 {
            prop_assert_eq!(convert("llvm.lround.i64.f64", 64), x.round() as i64 as u64);
            prop_assert_eq!(convert("llvm.lrint.i64.f64", 64), x.round_ties_even() as i64 as u64);
        }
    }

    #[test]
    fn classes(x in any_double()) {
        use std::num::FpCategory;
        let bit = match (x.classify(), x.is_sign_negative()) {
            (FpCategory::Nan, _) => u64::from(x.to_bits() >> 51 & 1 != 0),
            (FpCategory::Infinite, true) => 2,
            (FpCategory::Normal, true) => 3,
            (FpCategory::Subnormal, true) => 4,
            (FpCategory::Zero, true) => 5,
            (FpCategory::Zero, false) => 6,
            (FpCategory::Subnormal, false) => 7,
            (FpCategory::Normal, false) => 8,
            (FpCategory::Infinite, false) => 9,
        };
        let mut harness = Harness::new();
        for class in 0..10 {
            let args = [double(x), int(32, 1 << class)];
            let result = harness.compute("llvm.is.fpclass.f64", &args, ValueType::Int(1));
            prop_assert_eq!(bits(&result)[0], u64::from(class == bit));
        }
    }

    #[test]
    fn parts(x in any_double()) {
        let mut harness = Harness::new();
        let pair = ValueType::Aggregate { registers: 2 };
        let result = bits(&harness.compute("llvm.frexp.f64.i32", &[double(x)], pair));
        let (fraction, power) = (f64::from_bits(result[0]), result[1] as u32 as i32);
        if x == 0.0 || !x.is_finite() {
            prop_assert!(same(fraction, x) && power == 0);
        } else {
            prop_assert!((0.5..1.0).contains(&fraction.abs()));
            let halves = [power / 2, power - power / 2];
            let back = halves.iter().fold(fraction, |x, half| x * 2f64.powi(*half));
            prop_assert!(same(back, x), "{} * 2^{} for {}", fraction, power, x);
        }
        let result = bits(&harness.compute("llvm.modf.f64", &[double(x)], pair));
        let (fraction, whole) = (f64::from_bits(result[0]), f64::from_bits(result[1]));
        prop_assert!(same(whole, x.trunc()));
        if x.is_finite() {
            prop_assert!(same(fraction, x.fract().copysign(x)));
        }
    }
}

#[test]
fn long_doubles_take_two_registers() {
    let kind = ValueType::Float(FloatKind::X87);
    // 2.25 = 0x4000_9000000000000000
    let value = vec![
        Value::concrete(0x9000_0000_0000_0000),
        Value::concrete(0x4000),
    ];
    let mut harness = Harness::new();
    let result = harness.compute("llvm.sqrt.f80", &[(kind, value.clone())], kind);
    assert_eq!(number(&bits(&result)), 0x3fff_c000_0000_0000_0000);
    let args = [(kind, value), int(32, 1 << 8)];
    let result = harness.compute("llvm.is.fpclass.f80", &args, ValueType::Int(1));
    assert_eq!(bits(&result), [1]);
}

#[test]
fn powers() {
    let result = call("llvm.powi.f64.i32", &[double(1.5), int(32, 5)]);
    assert_eq!(result, 1.5f64.powi(5));
    let minus_two = u128::from(-2i32 as u32);
    let result = call("llvm.powi.f64.i32", &[double(4.0), int(32, minus_two)]);
    assert_eq!(result, 0.0625);
}
