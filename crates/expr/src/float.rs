//! Concrete float arithmetic on bits, bit-exact with x86: SSE for single and double precision, x87
//! for the 80-bit format. The rounding mode is to nearest even;
//! [`crate::environment`] has the others.
//!
//! NaNs are handled explicitly everywhere, because neither the compiler nor the soft-float library
//! specifies which NaN an operation returns.

use crate::limbs;
use crate::node::{FloatCompareOp, FloatFormat, FloatOp, FloatUnaryOp, RoundingMode};
use rustc_apfloat::ieee::{Double, Half, Single, X87DoubleExtended};
use rustc_apfloat::{Float, FloatConvert, Round};
use std::cmp::Ordering;

const X87_INTEGER_BIT: u128 = 1 << 63;

/// Returns the number of stored significand bits, with the explicit integer bit of the x87.
fn significand_bits(format: FloatFormat) -> u32 {
    match format {
        FloatFormat::Half => 10,
        FloatFormat::Single => 23,
        FloatFormat::Double => 52,
        FloatFormat::X87 => 64,
    }
}

fn exponent_mask(format: FloatFormat) -> u128 {
    let bits = format.width() - 1 - significand_bits(format);
    (1 << bits) - 1
}

fn sign_mask(format: FloatFormat) -> u128 {
    1 << (format.width() - 1)
}

/// Returns a mask of the bits of the format.
fn all_bits(format: FloatFormat) -> u128 {
    (1 << format.width()) - 1
}

/// Returns the bit that distinguishes quiet from signalling NaNs.
fn quiet_bit(format: FloatFormat) -> u128 {
    match format {
        FloatFormat::X87 => 1 << 62,
        _ => 1 << (significand_bits(format) - 1),
    }
}

/// Returns the NaN that invalid operations return on x86: quiet, with the sign set and no payload.
pub fn default_nan(format: FloatFormat) -> u128 {
    let exponent = exponent_mask(format) << significand_bits(format);
    let integer = if format == FloatFormat::X87 {
        X87_INTEGER_BIT
    } else {
        0
    };
    sign_mask(format) | exponent | integer | quiet_bit(format)
}

/// The decoded value of a float.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unpacked {
    Nan,
    Infinite {
        negative: bool,
    },
    /// `±significand · 2^exponent`.
    Finite {
        negative: bool,
        significand: u64,
        exponent: i32,
    },
}

pub(crate) fn decode(format: FloatFormat, bits: u128) -> Unpacked {
    let stored = significand_bits(format);
    let significand = (bits & ((1 << stored) - 1)) as u64;
    let exponent = (bits >> stored & exponent_mask(format)) as i32;
    let negative = bits & sign_mask(format) != 0;
    let top = exponent_mask(format) as i32;
    let bias = top >> 1;
    if format == FloatFormat::X87 {
        let integer = significand >> 63 == 1;
        return match (exponent, integer) {
            (e, true) if e == top && significand << 1 == 0 => Unpacked::Infinite { negative },
            (e, _) if e == top => Unpacked::Nan,
            (0, _) => Unpacked::Finite {
                negative,
                significand,
                exponent: 1 - bias - 63,
            },
            (_, true) => Unpacked::Finite {
                negative,
                significand,
                exponent: exponent - bias - 63,
            },
            // Unnormals: the x87 treats them as invalid operands.
            (_, false) => Unpacked::Nan,
        };
    }
    let fraction = stored as i32;
    match (exponent, significand) {
        (e, 0) if e == top => Unpacked::Infinite { negative },
        (e, _) if e == top => Unpacked::Nan,
        (0, _) => Unpacked::Finite {
            negative,
            significand,
            exponent: 1 - bias - fraction,
        },
        _ => Unpacked::Finite {
            negative,
            significand: significand | 1 << stored,
            exponent: exponent - bias - fraction,
        },
    }
}

/// Returns whether the bits are a NaN (or, for the x87, an invalid encoding).
pub fn is_nan(format: FloatFormat, bits: u128) -> bool {
    decode(format, bits) == Unpacked::Nan
}

/// Returns whether the bits are a signalling NaN or an invalid encoding: an
/// operand that raises the invalid flag.
pub(crate) fn is_signalling(format: FloatFormat, bits: u128) -> bool {
    let top = exponent_mask(format) << significand_bits(format);
    let is_odd = format == FloatFormat::X87 && (bits & X87_INTEGER_BIT == 0 || bits & top != top);
    is_nan(format, bits) && (is_odd || bits & quiet_bit(format) == 0)
}

/// Returns the quiet form of a NaN operand, as operations return it.
fn quiet(format: FloatFormat, bits: u128) -> u128 {
    let top = exponent_mask(format) << significand_bits(format);
    if format == FloatFormat::X87 && (bits & X87_INTEGER_BIT == 0 || bits & top != top) {
        return default_nan(format);
    }
    bits | quiet_bit(format)
}

/// Returns the NaN result of an operation with at least one NaN operand.
fn propagate(format: FloatFormat, a: u128, b: u128) -> u128 {
    let (a_nan, b_nan) = (is_nan(format, a), is_nan(format, b));
    if format != FloatFormat::X87 || !(a_nan && b_nan) {
        return quiet(format, if a_nan { a } else { b });
    }
    // The x87 selects the quiet NaN, then the larger significand, then the positive one.
    let is_quiet = |x: u128| x & quiet_bit(format) != 0;
    let (qa, qb) = (quiet(format, a), quiet(format, b));
    match (is_quiet(a), is_quiet(b)) {
        (true, false) => qa,
        (false, true) => qb,
        _ => match (a as u64).cmp(&(b as u64)) {
            Ordering::Greater => qa,
            Ordering::Less => qb,
            Ordering::Equal => qa.min(qb),
        },
    }
}

fn f32_of(bits: u128) -> f32 {
    f32::from_bits(bits as u32)
}

fn f64_of(bits: u128) -> f64 {
    f64::from_bits(bits as u64)
}

fn soft_binary<F: Float>(op: FloatOp, a: u128, b: u128) -> u128 {
    let (a, b) = (F::from_bits(a), F::from_bits(b));
    let result = match op {
        FloatOp::Add => a + b,
        FloatOp::Sub => a - b,
        FloatOp::Mul => a * b,
        FloatOp::Div => a / b,
        FloatOp::Rem => a % b,
    };
    result.value.to_bits()
}

/// Returns a sum, difference, product, quotient or remainder.
pub fn binary(op: FloatOp, format: FloatFormat, a: u128, b: u128) -> u128 {
    let (a, b) = (a & all_bits(format), b & all_bits(format));
    if is_nan(format, a) || is_nan(format, b) {
        return propagate(format, a, b);
    }
    macro_rules! native {
        ($a:expr, $b:expr) => {
            match op {
                FloatOp::Add => $a + $b,
                FloatOp::Sub => $a - $b,
                FloatOp::Mul => $a * $b,
                FloatOp::Div => $a / $b,
                FloatOp::Rem => $a % $b,
            }
        };
    }
    let result = match format {
        FloatFormat::Single => u128::from(native!(f32_of(a), f32_of(b)).to_bits()),
        FloatFormat::Double => u128::from(native!(f64_of(a), f64_of(b)).to_bits()),
        FloatFormat::Half => soft_binary::<Half>(op, a, b),
        FloatFormat::X87 => soft_binary::<X87DoubleExtended>(op, a, b),
    };
    if is_nan(format, result) {
        default_nan(format)
    } else {
        result
    }
}

/// Returns `a · b + c`, rounded once.
pub fn fused_multiply_add(format: FloatFormat, a: u128, b: u128, c: u128) -> u128 {
    let (a, b, c) = (
        a & all_bits(format),
        b & all_bits(format),
        c & all_bits(format),
    );
    if let Some(nan) = [a, b, c].into_iter().find(|&x| is_nan(format, x)) {
        return quiet(format, nan);
    }
    fn soft<F: Float>(a: u128, b: u128, c: u128) -> u128 {
        F::from_bits(a)
            .mul_add(F::from_bits(b), F::from_bits(c))
            .value
            .to_bits()
    }
    let result = match format {
        FloatFormat::Single => soft::<Single>(a, b, c),
        FloatFormat::Double => soft::<Double>(a, b, c),
        FloatFormat::Half => soft::<Half>(a, b, c),
        FloatFormat::X87 => soft::<X87DoubleExtended>(a, b, c),
    };
    if is_nan(format, result) {
        default_nan(format)
    } else {
        result
    }
}

/// Returns the square root of a positive finite x87 number, by an integer root of twice the
/// precision.
fn x87_sqrt(significand: u64, exponent: i32) -> u128 {
    let shift = significand.leading_zeros();
    let (significand, exponent) = (significand << shift, exponent - shift as i32);
    // The exponent of the radicand must be even, and its root must have 64 bits.
    let odd = exponent.rem_euclid(2) as u32;
    let up = 64 - odd;
    let radicand = u128::from(significand) << up;
    let root = radicand.isqrt();
    let round_up = radicand - root * root > root;
    let mut root = root + u128::from(round_up);
    let mut exponent = (exponent - up as i32) / 2;
    if root >> 64 != 0 {
        root >>= 1;
        exponent += 1;
    }
    ((exponent + 63 + 16383) as u128) << 64 | root
}

fn sqrt(format: FloatFormat, bits: u128) -> u128 {
    let (significand, exponent) = match decode(format, bits) {
        Unpacked::Finite { significand: 0, .. } => return bits,
        Unpacked::Infinite { negative: false } => return bits,
        Unpacked::Finite {
            negative: false,
            significand,
            exponent,
        } => (significand, exponent),
        _ => return default_nan(format),
    };
    match format {
        FloatFormat::Single => f32_of(bits).sqrt().to_bits().into(),
        FloatFormat::Double => f64_of(bits).sqrt().to_bits().into(),
        // A double has more than twice the bits, so double rounding is harmless.
        FloatFormat::Half => {
            let wide = f64_of(convert(FloatFormat::Half, FloatFormat::Double, bits)).sqrt();
            convert(
                FloatFormat::Double,
                FloatFormat::Half,
                wide.to_bits().into(),
            )
        }
        FloatFormat::X87 => x87_sqrt(significand, exponent),
    }
}

/// Returns the mode as the soft-float library names it.
pub(crate) fn soft_mode(mode: RoundingMode) -> Round {
    match mode {
        RoundingMode::NearestEven => Round::NearestTiesToEven,
        RoundingMode::NearestAway => Round::NearestTiesToAway,
        RoundingMode::TowardZero => Round::TowardZero,
        RoundingMode::TowardPositive => Round::TowardPositive,
        RoundingMode::TowardNegative => Round::TowardNegative,
    }
}

fn soft_round<F: Float>(mode: RoundingMode, bits: u128) -> u128 {
    let rounded = F::from_bits(bits).round_to_integral(soft_mode(mode));
    rounded.value.to_bits()
}

/// Returns the square root, or rounds to an integral value.
pub fn unary(op: FloatUnaryOp, format: FloatFormat, bits: u128) -> u128 {
    let bits = bits & all_bits(format);
    if is_nan(format, bits) {
        return quiet(format, bits);
    }
    match (op, format) {
        (FloatUnaryOp::Sqrt, _) => sqrt(format, bits),
        (FloatUnaryOp::RoundToIntegral(mode), FloatFormat::Half) => soft_round::<Half>(mode, bits),
        (FloatUnaryOp::RoundToIntegral(mode), FloatFormat::Single) => {
            soft_round::<Single>(mode, bits)
        }
        (FloatUnaryOp::RoundToIntegral(mode), FloatFormat::Double) => {
            soft_round::<Double>(mode, bits)
        }
        (FloatUnaryOp::RoundToIntegral(mode), FloatFormat::X87) => {
            soft_round::<X87DoubleExtended>(mode, bits)
        }
    }
}

fn order(format: FloatFormat, a: u128, b: u128) -> Option<Ordering> {
    if is_nan(format, a) || is_nan(format, b) {
        return None;
    }
    match format {
        FloatFormat::Half => Half::from_bits(a).partial_cmp(&Half::from_bits(b)),
        FloatFormat::Single => f32_of(a).partial_cmp(&f32_of(b)),
        FloatFormat::Double => f64_of(a).partial_cmp(&f64_of(b)),
        FloatFormat::X87 => {
            X87DoubleExtended::from_bits(a).partial_cmp(&X87DoubleExtended::from_bits(b))
        }
    }
}

/// Evaluates a comparison.
pub fn compare(op: FloatCompareOp, format: FloatFormat, a: u128, b: u128) -> bool {
    let order = order(format, a & all_bits(format), b & all_bits(format));
    match op {
        FloatCompareOp::Oeq => order == Some(Ordering::Equal),
        FloatCompareOp::Olt => order == Some(Ordering::Less),
        FloatCompareOp::Ole => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        FloatCompareOp::Uno => order.is_none(),
    }
}

/// Converts a NaN, which keeps its sign and the upper bits of its payload.
fn convert_nan(from: FloatFormat, to: FloatFormat, bits: u128) -> u128 {
    let bits = quiet(from, bits);
    let fraction = |format| match format {
        FloatFormat::X87 => 63,
        other => significand_bits(other),
    };
    let payload = bits & ((1 << fraction(from)) - 1);
    let payload = if fraction(to) >= fraction(from) {
        payload << (fraction(to) - fraction(from))
    } else {
        payload >> (fraction(from) - fraction(to))
    };
    let sign = if bits & sign_mask(from) != 0 {
        sign_mask(to)
    } else {
        0
    };
    sign | (default_nan(to) & !sign_mask(to)) | payload
}

fn soft_convert<F>(to: FloatFormat, bits: u128) -> u128
where
    F: Float + FloatConvert<Half> + FloatConvert<Single>,
    F: FloatConvert<Double> + FloatConvert<X87DoubleExtended>,
{
    let value = F::from_bits(bits);
    let mut loses = false;
    match to {
        FloatFormat::Half => FloatConvert::<Half>::convert(value, &mut loses)
            .value
            .to_bits(),
        FloatFormat::Single => FloatConvert::<Single>::convert(value, &mut loses)
            .value
            .to_bits(),
        FloatFormat::Double => FloatConvert::<Double>::convert(value, &mut loses)
            .value
            .to_bits(),
        FloatFormat::X87 => FloatConvert::<X87DoubleExtended>::convert(value, &mut loses)
            .value
            .to_bits(),
    }
}

/// Converts between formats.
pub fn convert(from: FloatFormat, to: FloatFormat, bits: u128) -> u128 {
    let bits = bits & all_bits(from);
    if from == to {
        return bits;
    }
    if is_nan(from, bits) {
        return convert_nan(from, to, bits);
    }
    match from {
        FloatFormat::Half => soft_convert::<Half>(to, bits),
        FloatFormat::Single => soft_convert::<Single>(to, bits),
        FloatFormat::Double => soft_convert::<Double>(to, bits),
        FloatFormat::X87 => soft_convert::<X87DoubleExtended>(to, bits),
    }
}

/// Converts an integer of any width, as limbs, to a float.
pub fn from_int(signed: bool, format: FloatFormat, width: u32, value: &[u64]) -> u128 {
    let negative = signed && limbs::bit(value, width - 1);
    let magnitude = if negative {
        limbs::neg(width, value)
    } else {
        value.to_vec()
    };
    let length = (0..width)
        .rev()
        .find(|&i| limbs::bit(&magnitude, i))
        .map_or(0, |i| i + 1);
    let shift = length.saturating_sub(128);
    let mut kept = limbs::to_u128(&limbs::extract(&magnitude, shift, 128));
    // For rounding it only matters whether the truncated bits are zero.
    if (0..shift).any(|i| limbs::bit(&magnitude, i)) {
        kept |= 1;
    }
    fn soft<F: Float>(kept: u128, shift: u32) -> u128 {
        F::from_u128(kept)
            .value
            .scalbn(shift.min(1 << 20) as i32)
            .to_bits()
    }
    let result = match format {
        FloatFormat::Half => soft::<Half>(kept, shift),
        FloatFormat::Single => soft::<Single>(kept, shift),
        FloatFormat::Double => soft::<Double>(kept, shift),
        FloatFormat::X87 => soft::<X87DoubleExtended>(kept, shift),
    };
    if negative {
        result | sign_mask(format)
    } else {
        result
    }
}

/// Truncates a float towards zero to an integer of this width, as limbs. NaNs and values out of
/// range give the integer indefinite (only the sign bit set), as `cvttsd2si` does.
pub fn to_int(signed: bool, format: FloatFormat, bits: u128, width: u32) -> Vec<u64> {
    let indefinite = || limbs::shl(width, &limbs::from_u128(width, 1), width - 1);
    let Unpacked::Finite {
        negative,
        significand,
        exponent,
    } = decode(format, bits & all_bits(format))
    else {
        return indefinite();
    };
    let length = (64 - significand.leading_zeros() as i32) + exponent;
    if length <= 0 || significand == 0 {
        return vec![0; limbs::count(width)];
    }
    if length > width as i32 {
        return indefinite();
    }
    let magnitude = if exponent >= 0 {
        let one = limbs::from_u128(width, u128::from(significand));
        limbs::shl(width, &one, exponent as u32)
    } else {
        limbs::from_u128(width, u128::from(significand >> -exponent))
    };
    let top = limbs::bit(&magnitude, width - 1);
    match (signed, negative) {
        (false, false) => magnitude,
        (false, true) => indefinite(),
        (true, false) if top => indefinite(),
        (true, false) => magnitude,
        // The least number is its own negation, and equals the indefinite value.
        (true, true) if top => indefinite(),
        (true, true) => limbs::neg(width, &magnitude),
    }
}
