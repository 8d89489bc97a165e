//! Floating-point intrinsics. The vm computes those that have a processor instruction, on numbers
//! and on terms. Those that compilers turn into libm calls become calls of the program's libm.

use everett_expr::{
    Arena, ExprId, FloatCompareOp, FloatFormat, FloatOp, FloatUnaryOp, RoundingMode, environment,
    float,
};
use everett_ir::code::{Body, FloatKind, ValueType};

use super::intrinsics::done;
use super::{Operation, replaced, supplied};
use crate::floating::{bits128, format, registers128};
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    supplied("llvm.fabs", fabs),
    supplied("llvm.copysign", copysign),
    supplied("llvm.canonicalize", canonicalize),
    supplied("llvm.sqrt", sqrt),
    supplied("llvm.floor", floor),
    supplied("llvm.ceil", ceil),
    supplied("llvm.trunc", trunc),
    supplied("llvm.rint", rint),
    supplied("llvm.nearbyint", nearbyint),
    replaced("nearbyint", nearbyint),
    replaced("nearbyintf", nearbyint),
    supplied("llvm.roundeven", roundeven),
    supplied("llvm.round", round),
    supplied("llvm.lrint", lrint),
    supplied("llvm.llrint", lrint),
    supplied("llvm.lround", lround),
    supplied("llvm.llround", lround),
    supplied("llvm.minnum", minnum),
    supplied("llvm.maxnum", maxnum),
    supplied("llvm.minimum", minimum),
    supplied("llvm.maximum", maximum),
    supplied("llvm.minimumnum", minimumnum),
    supplied("llvm.maximumnum", maximumnum),
    supplied("llvm.fmuladd", fmuladd),
    supplied("llvm.fma", fma),
    supplied("llvm.is.fpclass", is_fpclass),
    supplied("llvm.fptosi.sat", fptosi_sat),
    supplied("llvm.fptoui.sat", fptoui_sat),
    supplied("llvm.powi", powi),
    supplied("llvm.frexp", frexp),
    supplied("llvm.modf", modf),
    supplied("llvm.ldexp", libm),
    supplied("llvm.pow", libm),
    supplied("llvm.exp", libm),
    supplied("llvm.exp2", libm),
    supplied("llvm.exp10", libm),
    supplied("llvm.log", libm),
    supplied("llvm.log2", libm),
    supplied("llvm.log10", libm),
    supplied("llvm.sin", libm),
    supplied("llvm.cos", libm),
    supplied("llvm.tan", libm),
    supplied("llvm.asin", libm),
    supplied("llvm.acos", libm),
    supplied("llvm.atan", libm),
    supplied("llvm.atan2", libm),
    supplied("llvm.sinh", libm),
    supplied("llvm.cosh", libm),
    supplied("llvm.tanh", libm),
];

/// Computes a result in the format of the first `N` arguments.
fn compute<const N: usize>(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    number: impl Fn(FloatFormat, [u128; N]) -> u128,
    term: impl Fn(&mut Arena, FloatFormat, [ExprId; N]) -> ExprId,
) -> Result<Done, Interrupt> {
    let kind = args.float_kind(0)?;
    let format = format(kind)?;
    let mut numbers = [0; N];
    let mut concrete = true;
    for (index, number) in numbers.iter_mut().enumerate() {
        match bits128(&args.operand(index)) {
            Some(bits) => *number = bits,
            None => concrete = false,
        }
    }
    if concrete {
        return Ok(done(registers128(kind, number(format, numbers))));
    }
    vm.float_on_terms(format)?;
    let terms = std::array::from_fn(|index| vm.operand_term(args, index, kind.bits()));
    let result = term(vm.arena, format, terms);
    Ok(vm.done(result))
}

/// Sets the sign bit separately, so that this also works for formats without arithmetic.
fn with_sign(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    sign_of: Option<usize>,
) -> Result<Done, Interrupt> {
    let kind = args.float_kind(0)?;
    let mut result = args.operand(0);
    let top = result.len() - 1;
    let width = kind.bits() - 64 * top as u32;
    let value = result[top].to_term(vm.arena, width);
    let sign = vm.arena.constant(width, 1 << (width - 1));
    let rest = vm.arena.not(sign);
    let mut new = vm.arena.and(value, rest);
    if let Some(index) = sign_of {
        let other = args.operand(index)[top].to_term(vm.arena, width);
        let other = vm.arena.and(other, sign);
        new = vm.arena.or(new, other);
    }
    result[top] = Value::of_term(vm.arena, new);
    Ok(done(result))
}

fn fabs(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    if let (FloatKind::Double, Some(bits)) = (args.float_kind(0)?, args.get(0).as_concrete()) {
        return Ok(Done::Value(Value::concrete(bits & !(1 << 63))));
    }
    with_sign(vm, args, None)
}

fn copysign(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    with_sign(vm, args, Some(1))
}

fn canonicalize(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    compute(
        vm,
        args,
        |format, [x]| float::binary(FloatOp::Mul, format, x, one(format)),
        |arena, format, [x]| {
            let one = arena.constant_u128(format.width(), one(format));
            arena.float_binary(FloatOp::Mul, format, x, one)
        },
    )
}

fn one(format: FloatFormat) -> u128 {
    float::from_int(false, format, 2, &[1])
}

fn unary(vm: &mut Vm<'_>, args: &Arguments<'_>, op: FloatUnaryOp) -> Result<Done, Interrupt> {
    let kind = args.float_kind(0)?;
    let format = format(kind)?;
    if let Some(x) = bits128(&args.operand(0)) {
        let result = vm.float_unary_number(op, format, x);
        return Ok(done(registers128(kind, result)));
    }
    let x = vm.operand_term(args, 0, kind.bits());
    let result = vm.float_unary_term(op, format, x)?;
    Ok(vm.done(result))
}

fn rounded(vm: &mut Vm<'_>, args: &Arguments<'_>, mode: RoundingMode) -> Result<Done, Interrupt> {
    unary(vm, args, FloatUnaryOp::RoundToIntegral(mode))
}

fn sqrt(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    unary(vm, args, FloatUnaryOp::Sqrt)
}

fn floor(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    rounded(vm, args, RoundingMode::TowardNegative)
}

fn ceil(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    rounded(vm, args, RoundingMode::TowardPositive)
}

fn trunc(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    rounded(vm, args, RoundingMode::TowardZero)
}

/// Returns the rounding mode that the program has set for the format of the first argument.
fn mode(vm: &Vm<'_>, args: &Arguments<'_>) -> Result<RoundingMode, Interrupt> {
    Ok(vm.float_rounding(format(args.float_kind(0)?)?))
}

fn rint(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    rounded(vm, args, mode(vm, args)?)
}

fn roundeven(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    rounded(vm, args, RoundingMode::NearestEven)
}

/// Rounds like [`rint`], but does not raise the inexact flag.
fn nearbyint(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let before = vm.thread.floats;
    let done = rint(vm, args)?;
    vm.thread.floats = before;
    Ok(done)
}

fn round(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    rounded(vm, args, RoundingMode::NearestAway)
}

fn rounded_to_int(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    mode: RoundingMode,
) -> Result<Done, Interrupt> {
    let kind = args.float_kind(0)?;
    let format = format(kind)?;
    let width = args.result_width();
    if let Some(bits) = bits128(&args.operand(0)) {
        let limbs = vm.float_to_int_number(format, Some(mode), bits, width);
        return Ok(done(limbs.into_iter().map(Value::concrete).collect()));
    }
    let x = vm.operand_term(args, 0, kind.bits());
    let result = vm.float_to_int_term(format, Some(mode), x, width);
    Ok(vm.done(result))
}

fn lrint(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    rounded_to_int(vm, args, mode(vm, args)?)
}

fn lround(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    rounded_to_int(vm, args, RoundingMode::NearestAway)
}

/// How a minimum or maximum treats NaNs and signed zeros.
#[derive(Copy, Clone)]
struct Choice {
    greater: bool,
    /// Whether a NaN operand is the result; otherwise the other operand is.
    keeps_nan: bool,
    /// Whether -0 is less than +0.
    orders_zeros: bool,
}

fn choose(vm: &mut Vm<'_>, args: &Arguments<'_>, choice: Choice) -> Result<Done, Interrupt> {
    let kind = args.float_kind(0)?;
    let format = format(kind)?;
    let x = vm.operand_term(args, 0, kind.bits());
    let y = vm.operand_term(args, 1, kind.bits());
    // For long doubles compilers call libm, which orders zeros; for other formats they emit a
    // comparison.
    let orders_zeros = choice.orders_zeros || kind == FloatKind::X87;
    let result = choose_terms(
        vm.arena,
        format,
        x,
        y,
        Choice {
            orders_zeros,
            ..choice
        },
    );
    Ok(vm.done(result))
}

fn choose_terms(
    arena: &mut Arena,
    format: FloatFormat,
    x: ExprId,
    y: ExprId,
    choice: Choice,
) -> ExprId {
    let (a, b) = if choice.greater { (x, y) } else { (y, x) };
    let mut takes_y = arena.float_compare(FloatCompareOp::Olt, format, a, b);
    if choice.orders_zeros {
        let same = arena.float_compare(FloatCompareOp::Oeq, format, x, y);
        let sign = arena.extract(y, format.width() - 1, 1);
        let sign = if choice.greater {
            arena.not(sign)
        } else {
            sign
        };
        let by_sign = arena.and(same, sign);
        takes_y = arena.or(takes_y, by_sign);
    }
    let chosen = arena.ite(takes_y, y, x);
    let x_is_nan = arena.float_is_nan(format, x);
    let y_is_nan = arena.float_is_nan(format, y);
    if choice.keeps_nan {
        let rest = arena.ite(y_is_nan, y, chosen);
        arena.ite(x_is_nan, x, rest)
    } else {
        let rest = arena.ite(y_is_nan, x, chosen);
        arena.ite(x_is_nan, y, rest)
    }
}

/// Returns the `minnum` of two terms.
pub fn lesser(arena: &mut Arena, format: FloatFormat, x: ExprId, y: ExprId) -> ExprId {
    choose_terms(arena, format, x, y, MINNUM)
}

/// Returns the `maxnum` of two terms.
pub fn greater(arena: &mut Arena, format: FloatFormat, x: ExprId, y: ExprId) -> ExprId {
    choose_terms(arena, format, x, y, MAXNUM)
}

const MINNUM: Choice = Choice {
    greater: false,
    keeps_nan: false,
    orders_zeros: false,
};
const MAXNUM: Choice = Choice {
    greater: true,
    ..MINNUM
};

fn minnum(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    choose(vm, args, MINNUM)
}

fn maxnum(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    choose(vm, args, MAXNUM)
}

fn minimum(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let choice = Choice {
        keeps_nan: true,
        orders_zeros: true,
        ..MINNUM
    };
    choose(vm, args, choice)
}

fn maximum(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let choice = Choice {
        keeps_nan: true,
        orders_zeros: true,
        ..MAXNUM
    };
    choose(vm, args, choice)
}

fn minimumnum(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let choice = Choice {
        orders_zeros: true,
        ..MINNUM
    };
    choose(vm, args, choice)
}

fn maximumnum(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let choice = Choice {
        orders_zeros: true,
        ..MAXNUM
    };
    choose(vm, args, choice)
}

/// Computes a product and a sum, as on a processor without FMA.
fn fmuladd(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let kind = args.float_kind(0)?;
    let numbers = [0, 1, 2].map(|index| bits128(&args.operand(index)));
    if let [Some(x), Some(y), Some(z)] = numbers {
        let format = format(kind)?;
        let product = vm.float_number(FloatOp::Mul, format, x, y);
        let result = vm.float_number(FloatOp::Add, format, product, z);
        return Ok(done(registers128(kind, result)));
    }
    compute(
        vm,
        args,
        |format, [x, y, z]| {
            let product = float::binary(FloatOp::Mul, format, x, y);
            float::binary(FloatOp::Add, format, product, z)
        },
        |arena, format, [x, y, z]| {
            let product = arena.float_binary(FloatOp::Mul, format, x, y);
            arena.float_binary(FloatOp::Add, format, product, z)
        },
    )
}

/// Computes a fused multiply-add. Terms have no fused operation, so the program's `fma` computes it
/// on the bits.
fn fma(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let kind = args.float_kind(0)?;
    let numbers = [0, 1, 2].map(|index| bits128(&args.operand(index)));
    if let [Some(x), Some(y), Some(z)] = numbers {
        let format = format(kind)?;
        let (result, flags) = match vm.image.tracks_floats() {
            true => environment::fused_multiply_add(format, vm.float_rounding(format), [x, y, z]),
            false => (float::fused_multiply_add(format, x, y, z), 0),
        };
        vm.thread.floats.raise(format, flags);
        return Ok(done(registers128(kind, result)));
    }
    libm(vm, args)
}

/// Returns the exponent field of a format: lowest bit and width.
fn exponent_field(format: FloatFormat) -> (u32, u32) {
    match format {
        FloatFormat::Half => (10, 5),
        FloatFormat::Single => (23, 8),
        FloatFormat::Double => (52, 11),
        FloatFormat::X87 => (64, 15),
    }
}

/// Returns the ten classes of `llvm.is.fpclass`, lowest bit first.
fn classes(arena: &mut Arena, format: FloatFormat, x: ExprId) -> [ExprId; 10] {
    let (low, bits) = exponent_field(format);
    let width = format.width();
    let nan = arena.float_is_nan(format, x);
    let quiet_bit = if format == FloatFormat::X87 {
        62
    } else {
        low - 1
    };
    let quiet = arena.extract(x, quiet_bit, 1);
    let magnitude = arena.float_abs(format, x);
    let exponent = arena.extract(x, low, bits);
    let zero_exponent = arena.zero(bits);
    let zero = arena.zero(width);
    let is_zero = arena.eq(magnitude, zero);
    let tiny = arena.eq(exponent, zero_exponent);
    let not_zero = arena.not(is_zero);
    let subnormal = arena.and(tiny, not_zero);
    let full = arena.all_ones(bits);
    let full = arena.eq(exponent, full);
    let not_nan = arena.not(nan);
    let infinite = arena.and(full, not_nan);
    let others = [nan, infinite, subnormal, is_zero];
    let other = arena.any(&others);
    let normal = arena.not(other);
    let negative = arena.extract(x, width - 1, 1);
    let positive = arena.not(negative);
    let signalling = arena.not(quiet);
    [
        arena.and(nan, signalling),
        arena.and(nan, quiet),
        arena.and(negative, infinite),
        arena.and(negative, normal),
        arena.and(negative, subnormal),
        arena.and(negative, is_zero),
        arena.and(positive, is_zero),
        arena.and(positive, subnormal),
        arena.and(positive, normal),
        arena.and(positive, infinite),
    ]
}

fn is_fpclass(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let kind = args.float_kind(0)?;
    let format = format(kind)?;
    let x = vm.operand_term(args, 0, kind.bits());
    let wanted = args.operand(1)[0];
    let wanted = vm.concretize(wanted)?;
    let classes = classes(vm.arena, format, x);
    let chosen = classes.iter().enumerate();
    let chosen: Vec<ExprId> = chosen
        .filter(|(bit, _)| wanted >> bit & 1 != 0)
        .map(|(_, class)| *class)
        .collect();
    let result = vm.arena.any(&chosen);
    Ok(vm.done(result))
}

/// Converts to the nearest integer in range; NaN gives zero.
fn to_int_saturating(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    signed: bool,
) -> Result<Done, Interrupt> {
    let kind = args.float_kind(0)?;
    let format = format(kind)?;
    let width = args.result_width();
    let x = vm.operand_term(args, 0, kind.bits());
    let arena = &mut *vm.arena;
    // The upper bound of the range is a power of two, so the comparison is exact.
    let magnitude = if signed { width - 1 } else { width };
    let one = arena.constant(width + 2, 1);
    let by = arena.constant(width + 2, u64::from(magnitude));
    let above = arena.shl(one, by);
    let above = arena.float_from_int(false, format, above);
    let too_large = arena.float_compare(FloatCompareOp::Ole, format, above, x);
    let ones = arena.all_ones(width);
    let by = arena.constant(width, u64::from(width - magnitude));
    let greatest = arena.lshr(ones, by);
    let (least, below) = if signed {
        (arena.not(greatest), arena.float_neg(format, above))
    } else {
        (arena.zero(width), arena.zero(format.width()))
    };
    let too_small = arena.float_compare(FloatCompareOp::Olt, format, x, below);
    let nan = arena.float_is_nan(format, x);
    let inside = arena.float_to_int(signed, format, x, width);
    let zero = arena.zero(width);
    let result = arena.ite(too_large, greatest, inside);
    let result = arena.ite(too_small, least, result);
    let result = arena.ite(nan, zero, result);
    Ok(vm.done(result))
}

fn fptosi_sat(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    to_int_saturating(vm, args, true)
}

fn fptoui_sat(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    to_int_saturating(vm, args, false)
}

/// Computes an integer power by repeated squaring, with the same rounding as compiler-rt.
fn powi(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let kind = args.float_kind(0)?;
    let format = format(kind)?;
    let power = args.operand(1)[0];
    let power = vm.concretize(power)? as u32 as i32;
    let mut base = vm.operand_term(args, 0, kind.bits());
    let arena = &mut *vm.arena;
    let one = arena.constant_u128(kind.bits(), one(format));
    let mut result = one;
    let mut left = power.unsigned_abs();
    loop {
        if left & 1 != 0 {
            result = arena.float_binary(FloatOp::Mul, format, result, base);
        }
        left >>= 1;
        if left == 0 {
            break;
        }
        base = arena.float_binary(FloatOp::Mul, format, base, base);
    }
    if power < 0 {
        result = arena.float_binary(FloatOp::Div, format, one, result);
    }
    Ok(vm.done(result))
}

/// Splits a number into a fraction in [0.5, 1) and a power of two.
fn frexp(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    const SCALE: u32 = 64;
    let kind = args.float_kind(0)?;
    let format = format(kind)?;
    let x = vm.operand_term(args, 0, kind.bits());
    let (low, bits) = exponent_field(format);
    let classes = classes(vm.arena, format, x);
    let arena = &mut *vm.arena;
    let subnormal = arena.or(classes[4], classes[7]);
    let normal = arena.or(classes[3], classes[8]);
    let scale = float::from_int(false, format, SCALE + 1, &[0, 1]);
    let scale = arena.constant_u128(kind.bits(), scale);
    let scaled = arena.float_binary(FloatOp::Mul, format, x, scale);
    let value = arena.ite(subnormal, scaled, x);
    let half_exponent = (1u64 << (bits - 1)) - 2;
    let exponent = arena.extract(value, low, bits);
    let exponent = arena.zext(exponent, 32);
    let bias = arena.constant(32, half_exponent);
    let power = arena.sub(exponent, bias);
    let shift = arena.constant(32, u64::from(SCALE));
    let lowered = arena.sub(power, shift);
    let power = arena.ite(subnormal, lowered, power);
    // The same significand with the exponent of 0.5.
    let mask = u128::from((1u64 << bits) - 1) << low;
    let mask = arena.constant_u128(kind.bits(), mask);
    let rest = arena.not(mask);
    let rest = arena.and(value, rest);
    let half = arena.constant_u128(kind.bits(), u128::from(half_exponent) << low);
    let fraction = arena.or(rest, half);
    let finite = arena.or(subnormal, normal);
    let fraction = arena.ite(finite, fraction, x);
    let zero = arena.zero(32);
    let power = arena.ite(finite, power, zero);
    let mut results = vm.wide_value(fraction);
    results.push(Value::of_term(vm.arena, power));
    Ok(Done::Values(results))
}

/// Splits a number into the fractional and the integral part, both with its sign.
fn modf(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let kind = args.float_kind(0)?;
    let format = format(kind)?;
    let x = vm.operand_term(args, 0, kind.bits());
    let arena = &mut *vm.arena;
    let toward_zero = FloatUnaryOp::RoundToIntegral(RoundingMode::TowardZero);
    let whole = arena.float_unary(toward_zero, format, x);
    let difference = arena.float_binary(FloatOp::Sub, format, x, whole);
    let same = arena.float_compare(FloatCompareOp::Oeq, format, x, whole);
    let zero = arena.zero(kind.bits());
    let fraction = arena.ite(same, zero, difference);
    let fraction = arena.float_copysign(format, fraction, x);
    let mut results = vm.wide_value(fraction);
    results.extend(vm.wide_value(whole));
    Ok(Done::Values(results))
}

/// Calls the libm function that implements the intrinsic.
fn libm(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let suffix = match args.type_of(0) {
        ValueType::Float(FloatKind::Single) => "f",
        ValueType::Float(FloatKind::Double) => "",
        ValueType::Float(FloatKind::X87) => "l",
        _ => return Err(args.unsupported("in this format")),
    };
    let base = args.name.strip_prefix("llvm.").unwrap_or(args.name);
    let base = base.split('.').next().unwrap_or(base);
    let name = format!("{base}{suffix}");
    let program = vm.image.program();
    let Some(function) = program.function(&name) else {
        let why = format!("in a program that has no {name}");
        return Err(args.unsupported(&why));
    };
    match &program.functions[function.0 as usize].body {
        Body::Code(_) => {
            vm.call_function(function, args.call, args.values.clone())?;
            Ok(Done::Moved)
        }
        Body::External(id) => match vm.image.external(*id) {
            Some(handler) => handler(vm, args),
            None => Err(args.unsupported("in this program")),
        },
    }
}

#[cfg(test)]
mod tests;
