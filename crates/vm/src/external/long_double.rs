//! libm functions on long double whose results are exact or correctly rounded.
//!
//! The library's own versions are assembly, or were compiled to take arguments by pointer where C
//! callers pass values. Both conventions are supported here.

use everett_expr::environment::flag;
use everett_expr::{FloatFormat, FloatOp, FloatUnaryOp, RoundingMode, float};
use everett_ir::code::{FloatKind, ValueType};
use rustc_apfloat::Float;
use rustc_apfloat::ieee::X87DoubleExtended;

use super::{Operation, replaced};
use crate::bug::{Bug, BugKind};
use crate::floating::{bits128, registers128};
use crate::integer::Wide;
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    replaced("sqrtl", sqrtl),
    replaced("fabsl", fabsl),
    replaced("copysignl", copysignl),
    replaced("floorl", floorl),
    replaced("ceill", ceill),
    replaced("truncl", truncl),
    replaced("roundl", roundl),
    replaced("rintl", rintl),
    replaced("nearbyintl", nearbyintl),
    replaced("lrintl", lrintl),
    replaced("llrintl", lrintl),
    replaced("fmodl", fmodl),
    replaced("remainderl", remainderl),
    replaced("dreml", remainderl),
];

const KIND: FloatKind = FloatKind::X87;
const FORMAT: FloatFormat = FloatFormat::X87;
/// Size of a value in memory.
const BYTES: usize = 10;
const SIGN: u64 = 1 << 15;

/// Returns the registers of an argument.
fn argument(vm: &mut Vm<'_>, args: &Arguments<'_>, index: usize) -> Result<Wide, Interrupt> {
    let types = &args.call.arg_types;
    let before = types.iter().take(index);
    let at: usize = before.map(|ty| ty.registers() as usize).sum();
    match types.get(index) {
        Some(ValueType::Float(FloatKind::X87)) => {
            Ok(Wide::from_slice(&[args.get(at), args.get(at + 1)]))
        }
        Some(ValueType::Pointer) => Ok(vm.load_wide(args.get(at), BYTES)?.into()),
        other => {
            let message = format!("{} with an argument of type {other:?}", args.name);
            Err(Bug::new(BugKind::Unsupported, message).into())
        }
    }
}

fn unary(vm: &mut Vm<'_>, args: &Arguments<'_>, op: FloatUnaryOp) -> Result<Done, Interrupt> {
    let x = argument(vm, args, 0)?;
    if let Some(bits) = bits128(&x) {
        let result = vm.float_unary_number(op, FORMAT, bits);
        return Ok(Done::Values(registers128(KIND, result)));
    }
    let x = vm.wide_term(&x, KIND.bits());
    let result = vm.float_unary_term(op, FORMAT, x)?;
    Ok(Done::Values(vm.wide_value(result)))
}

fn round(vm: &mut Vm<'_>, args: &Arguments<'_>, mode: RoundingMode) -> Result<Done, Interrupt> {
    unary(vm, args, FloatUnaryOp::RoundToIntegral(mode))
}

fn sqrtl(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    unary(vm, args, FloatUnaryOp::Sqrt)
}

fn floorl(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    round(vm, args, RoundingMode::TowardNegative)
}

fn ceill(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    round(vm, args, RoundingMode::TowardPositive)
}

fn truncl(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    round(vm, args, RoundingMode::TowardZero)
}

fn roundl(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    round(vm, args, RoundingMode::NearestAway)
}

fn rintl(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    round(vm, args, vm.float_rounding(FORMAT))
}

/// Rounds like [`rintl`], but does not raise the inexact flag.
fn nearbyintl(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let before = vm.thread.floats;
    let done = rintl(vm, args)?;
    vm.thread.floats = before;
    Ok(done)
}

/// Rounds to the nearest integer; returns the processor's "integer indefinite" if the result is out
/// of range.
fn lrintl(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let mode = Some(vm.float_rounding(FORMAT));
    let x = argument(vm, args, 0)?;
    if let Some(bits) = bits128(&x) {
        let result = vm.float_to_int_number(FORMAT, mode, bits, 64);
        return Ok(Done::Value(Value::concrete(result[0])));
    }
    let x = vm.wide_term(&x, KIND.bits());
    let result = vm.float_to_int_term(FORMAT, mode, x, 64);
    Ok(Done::Value(Value::of_term(vm.arena, result)))
}

/// Returns the upper register (sign and exponent) as a 16-bit term, with the sign of `sign`, or
/// cleared.
fn with_sign(vm: &mut Vm<'_>, x: Value, sign: Option<Value>) -> Value {
    let x = x.to_term(vm.arena, 16);
    let magnitude = vm.arena.constant(16, !SIGN);
    let mut result = vm.arena.and(x, magnitude);
    if let Some(sign) = sign {
        let sign = sign.to_term(vm.arena, 16);
        let mask = vm.arena.constant(16, SIGN);
        let sign = vm.arena.and(sign, mask);
        result = vm.arena.or(result, sign);
    }
    Value::of_term(vm.arena, result)
}

fn fabsl(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let mut x = argument(vm, args, 0)?;
    x[1] = with_sign(vm, x[1], None);
    Ok(Done::Values(x))
}

fn copysignl(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let mut x = argument(vm, args, 0)?;
    let y = argument(vm, args, 1)?;
    x[1] = with_sign(vm, x[1], Some(y[1]));
    Ok(Done::Values(x))
}

fn fmodl(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let x = argument(vm, args, 0)?;
    let y = argument(vm, args, 1)?;
    vm.float(everett_ir::code::FloatOp::Rem, KIND, &x, &y)
        .map(Done::Values)
}

fn remainderl(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let x = argument(vm, args, 0)?;
    let y = argument(vm, args, 1)?;
    let (Some(x), Some(y)) = (bits128(&x), bits128(&y)) else {
        let message = format!("{} of a symbolic value", args.name);
        return Err(Bug::new(BugKind::Unsupported, message).into());
    };
    let result = remainder(x, y);
    if float::is_nan(FORMAT, result) && !float::is_nan(FORMAT, x) && !float::is_nan(FORMAT, y) {
        vm.thread.floats.raise(FORMAT, flag::INVALID);
    }
    Ok(Done::Values(registers128(KIND, result)))
}

/// `x - n·y` for the integer `n` nearest to `x / y`.
fn remainder(x: u128, y: u128) -> u128 {
    if float::is_nan(FORMAT, x) || float::is_nan(FORMAT, y) {
        // NaN results are the same for all operations.
        return float::binary(FloatOp::Rem, FORMAT, x, y);
    }
    let result = X87DoubleExtended::from_bits(x).ieee_rem(X87DoubleExtended::from_bits(y));
    let bits = result.value.to_bits();
    if float::is_nan(FORMAT, bits) {
        float::default_nan(FORMAT)
    } else {
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Argument, Harness, pointer};

    fn extended(x: f64) -> u128 {
        float::convert(FloatFormat::Double, FORMAT, u128::from(x.to_bits()))
    }

    fn call(name: &str, args: &[f64]) -> f64 {
        let mut harness = Harness::new();
        let kind = ValueType::Float(KIND);
        let args: Vec<Argument> = args
            .iter()
            .map(|x| (kind, registers128(KIND, extended(*x)).to_vec()))
            .collect();
        match harness.call_typed(name, &args, ValueType::Int(64)) {
            Ok(Done::Values(values)) => {
                let bits = bits128(&values).unwrap();
                f64::from_bits(float::convert(FORMAT, FloatFormat::Double, bits) as u64)
            }
            Ok(Done::Value(value)) => value.bits as i64 as f64,
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn results_are_those_of_c() {
        for x in [0.0, -0.0, 1.5, -2.5, 3.5, 1e10, -7.25, 0.3, f64::INFINITY] {
            assert_eq!(call("floorl", &[x]), x.floor());
            assert_eq!(call("ceill", &[x]), x.ceil());
            assert_eq!(call("truncl", &[x]), x.trunc());
            assert_eq!(call("roundl", &[x]), x.round());
            assert_eq!(call("rintl", &[x]), x.round_ties_even());
            assert_eq!(call("fabsl", &[x]), x.abs());
            assert_eq!(call("copysignl", &[x, -1.0]), x.copysign(-1.0));
            if x.is_finite() {
                assert_eq!(call("lrintl", &[x]), x.round_ties_even());
                assert_eq!(call("fmodl", &[x, 0.75]), x % 0.75);
            }
        }
        assert_eq!(call("sqrtl", &[2.25]), 1.5);
        assert_eq!(call("remainderl", &[5.0, 3.0]), -1.0);
        assert_eq!(call("remainderl", &[2.5, 1.0]), 0.5);
        assert_eq!(call("remainderl", &[3.5, 1.0]), -0.5);
        assert!(call("remainderl", &[1.0, 0.0]).is_nan());
        assert!(call("sqrtl", &[-1.0]).is_nan());
    }

    #[test]
    fn arguments_may_come_by_pointer() {
        let mut harness = Harness::new();
        let bits = extended(-2.25);
        let place = harness.block(&bits.to_le_bytes());
        let done = harness.call_typed("floorl", &[pointer(place)], ValueType::Float(KIND));
        let Ok(Done::Values(values)) = done else {
            panic!("{done:?}");
        };
        assert_eq!(bits128(&values), Some(extended(-3.0)));
    }

    #[test]
    fn symbolic_values_keep_their_terms() {
        let mut harness = Harness::new();
        let bits = extended(-2.25);
        let place = harness.block(&bits.to_le_bytes());
        harness.make_symbolic(place + 9);
        let done = harness.call_typed("fabsl", &[pointer(place)], ValueType::Float(KIND));
        let Ok(Done::Values(values)) = done else {
            panic!("{done:?}");
        };
        assert!(values[1].term.is_some());
        let known: Vec<Value> = values
            .iter()
            .map(|v| Value::concrete(harness.eval_value(*v)))
            .collect();
        assert_eq!(bits128(&known), Some(extended(2.25)));
    }
}
