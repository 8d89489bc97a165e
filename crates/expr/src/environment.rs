//! Concrete float arithmetic in any rounding mode, with the exception flags that x86 raises. To
//! nearest, the results are the same as those of `crate::float`.
//!
//! All operations compute an exact significand with a sticky bit, which `round` rounds once.
//! Tininess is detected after rounding, as both the SSE and the x87 do.

use crate::float::{self, Unpacked, decode, default_nan, is_nan, is_signalling};
use crate::node::{FloatFormat, FloatOp, RoundingMode};
use rustc_apfloat::ieee::{Double, Half, Single, X87DoubleExtended};
use rustc_apfloat::{Float, Status};

/// Exception flags, at their positions in `MXCSR` and in the x87 status word.
pub mod flag {
    /// Invalid operation.
    pub const INVALID: u16 = 1;
    /// A subnormal operand.
    pub const DENORMAL: u16 = 2;
    /// Division of a finite number by zero.
    pub const DIVIDE: u16 = 4;
    /// Overflow.
    pub const OVERFLOW: u16 = 8;
    /// Underflow: tiny and inexact.
    pub const UNDERFLOW: u16 = 16;
    /// The result was rounded.
    pub const INEXACT: u16 = 32;
    /// All flags.
    pub const ALL: u16 = 63;
}

/// A result and the exception flags that it raises.
pub type Flagged = (u128, u16);

/// A finite number that is not zero: `±(significand + sticky) · 2^exponent`,
/// where sticky is between 0 and 1.
struct Exact {
    negative: bool,
    significand: u128,
    exponent: i32,
    sticky: bool,
}

/// Returns the precision of a format, with the leading bit.
fn precision(format: FloatFormat) -> i32 {
    match format {
        FloatFormat::Half => 11,
        FloatFormat::Single => 24,
        FloatFormat::Double => 53,
        FloatFormat::X87 => 64,
    }
}

/// Returns the exponent of the largest numbers of a format.
fn largest_exponent(format: FloatFormat) -> i32 {
    match format {
        FloatFormat::Half => 15,
        FloatFormat::Single => 127,
        FloatFormat::Double => 1023,
        FloatFormat::X87 => 16383,
    }
}

fn sign_bit(format: FloatFormat, negative: bool) -> u128 {
    u128::from(negative) << (format.width() - 1)
}

/// Returns the bits of a magnitude with an exponent field; the significand includes its leading
/// bit.
fn pack(format: FloatFormat, field: u128, significand: u128) -> u128 {
    match format {
        FloatFormat::X87 => field << 64 | significand,
        _ => (field << (precision(format) - 1)) + significand,
    }
}

fn infinity(format: FloatFormat, negative: bool) -> u128 {
    let field = 2 * largest_exponent(format) as u128 + 1;
    let significand = match format {
        FloatFormat::X87 => 1 << 63,
        _ => 0,
    };
    sign_bit(format, negative) | pack(format, field, significand)
}

fn largest(format: FloatFormat, negative: bool) -> u128 {
    let significand = (1 << precision(format)) - 1;
    let field = 2 * largest_exponent(format) as u128;
    let field = match format {
        FloatFormat::X87 => field,
        // The leading bit adds one.
        _ => field - 1,
    };
    sign_bit(format, negative) | pack(format, field, significand)
}

/// Drops bits of a significand (or appends zeros if negative), and rounds. Also returns whether
/// that changed the value.
fn drop_bits(number: &Exact, dropped: i32, mode: RoundingMode) -> (u128, bool) {
    let Exact {
        negative,
        significand,
        sticky,
        ..
    } = *number;
    if dropped <= 0 {
        let up = sticky && away(mode, negative);
        return ((significand << -dropped) + u128::from(up), sticky);
    }
    let (kept, rest, half) = match dropped {
        1..128 => {
            let kept = significand >> dropped;
            (kept, significand - (kept << dropped), 1 << (dropped - 1))
        }
        128 => (0, significand, 1 << 127),
        // Less than a quarter of the last place.
        _ => (0, 1, 2),
    };
    let inexact = rest != 0 || sticky;
    let up = match mode {
        RoundingMode::NearestEven => rest > half || rest == half && (sticky || kept & 1 == 1),
        RoundingMode::NearestAway => rest >= half,
        _ => inexact && away(mode, negative),
    };
    (kept + u128::from(up), inexact)
}

/// Returns whether a rounding mode rounds away from zero.
fn away(mode: RoundingMode, negative: bool) -> bool {
    match mode {
        RoundingMode::TowardPositive => !negative,
        RoundingMode::TowardNegative => negative,
        _ => false,
    }
}

fn length(significand: u128) -> i32 {
    128 - significand.leading_zeros() as i32
}

/// Rounds a number to a format.
fn round(format: FloatFormat, mode: RoundingMode, number: &Exact) -> Flagged {
    let precision = precision(format);
    let (most, least) = (largest_exponent(format), 1 - largest_exponent(format));
    let sign = sign_bit(format, number.negative);
    let dropped = length(number.significand) - precision;
    let (rounded, inexact) = drop_bits(number, dropped, mode);
    let carry = length(rounded) - precision;
    let exponent = number.exponent + dropped + precision - 1 + carry;
    let raised = if inexact { flag::INEXACT } else { 0 };
    if exponent > most {
        let to_infinity = match mode {
            RoundingMode::NearestEven | RoundingMode::NearestAway => true,
            _ => away(mode, number.negative),
        };
        let bits = match to_infinity {
            true => infinity(format, number.negative),
            false => largest(format, number.negative),
        };
        return (bits, flag::OVERFLOW | flag::INEXACT);
    }
    if exponent >= least {
        let field = (exponent + most) as u128;
        let field = match format {
            FloatFormat::X87 => field,
            _ => field - 1,
        };
        return (sign | pack(format, field, rounded >> carry), raised);
    }
    let dropped = least - (precision - 1) - number.exponent;
    let (rounded, inexact) = drop_bits(number, dropped, mode);
    let raised = if inexact {
        flag::UNDERFLOW | flag::INEXACT
    } else {
        0
    };
    let field = match format {
        // Rounded up to the least normal number.
        FloatFormat::X87 => rounded >> 63,
        _ => 0,
    };
    (sign | pack(format, field, rounded), raised)
}

/// Returns whether a number is subnormal.
fn is_subnormal(format: FloatFormat, bits: u128) -> bool {
    let field = bits & !sign_bit(format, true);
    let stored = match format {
        FloatFormat::X87 => 64,
        _ => precision(format) - 1,
    };
    field >> stored == 0 && field != 0
}

fn denormal<const N: usize>(format: FloatFormat, operands: [u128; N]) -> u16 {
    match operands.iter().any(|&bits| is_subnormal(format, bits)) {
        true => flag::DENORMAL,
        false => 0,
    }
}

fn invalid(format: FloatFormat) -> Flagged {
    (default_nan(format), flag::INVALID)
}

/// Returns the flags of an operation with a NaN among its operands.
fn nan_flags<const N: usize>(format: FloatFormat, operands: [u128; N]) -> u16 {
    match operands.iter().any(|&bits| is_signalling(format, bits)) {
        true => flag::INVALID,
        false => 0,
    }
}

fn zero(format: FloatFormat, negative: bool) -> u128 {
    sign_bit(format, negative)
}

/// Returns a sum, difference, product, quotient or remainder.
pub fn binary(op: FloatOp, format: FloatFormat, mode: RoundingMode, a: u128, b: u128) -> Flagged {
    let mask = (1 << format.width()) - 1;
    let (a, b) = (a & mask, b & mask);
    if is_nan(format, a) || is_nan(format, b) {
        return (float::binary(op, format, a, b), nan_flags(format, [a, b]));
    }
    let subnormal = denormal(format, [a, b]);
    let (bits, flags) = match op {
        FloatOp::Add => add(format, mode, decode(format, a), decode(format, b)),
        FloatOp::Sub => {
            let negated = b ^ sign_bit(format, true);
            add(format, mode, decode(format, a), decode(format, negated))
        }
        FloatOp::Mul => multiply(format, mode, decode(format, a), decode(format, b)),
        FloatOp::Div => divide(format, mode, decode(format, a), decode(format, b)),
        FloatOp::Rem => {
            // Remainders are exact.
            let bits = float::binary(op, format, a, b);
            let flags = u16::from(is_nan(format, bits)) * flag::INVALID;
            return (bits, flags);
        }
    };
    match flags & (flag::INVALID | flag::DIVIDE) {
        0 => (bits, flags | subnormal),
        _ => (bits, flags),
    }
}

fn add(format: FloatFormat, mode: RoundingMode, a: Unpacked, b: Unpacked) -> Flagged {
    use Unpacked::{Finite, Infinite};
    match (a, b) {
        (Infinite { negative: x }, Infinite { negative: y }) if x != y => invalid(format),
        (Infinite { negative }, _) | (_, Infinite { negative }) => (infinity(format, negative), 0),
        (
            Finite {
                negative: x,
                significand: m,
                exponent: e,
            },
            Finite {
                negative: y,
                significand: n,
                exponent: f,
            },
        ) => match sum((x, m, e), (y, n, f)) {
            Some(sum) => round(format, mode, &sum),
            None => {
                let both = x && y && m == 0 && n == 0;
                let down = x != y || m != 0;
                let negative = both || down && mode == RoundingMode::TowardNegative;
                (zero(format, negative), 0)
            }
        },
        _ => invalid(format),
    }
}

/// Returns the exact sum of two numbers; `None` if it is zero.
fn sum(a: (bool, u64, i32), b: (bool, u64, i32)) -> Option<Exact> {
    // The number with the larger leading bit is shifted to the left, so that there is room for all
    // bits of the other, or these are sticky.
    let top = |(_, m, e): (bool, u64, i32)| match m {
        0 => i32::MIN,
        m => e + length(m.into()),
    };
    let (large, small) = if top(a) >= top(b) { (a, b) } else { (b, a) };
    if large.1 == 0 {
        return None;
    }
    let shift = large.1.leading_zeros() as i32 + 62;
    let exponent = large.2 - shift;
    let significand = u128::from(large.1) << shift;
    let right = exponent - small.2;
    let other = u128::from(small.1);
    let (other, sticky) = match right {
        _ if small.1 == 0 => (0, false),
        ..=0 => (other << -right, false),
        1..128 => (other >> right, other & ((1 << right) - 1) != 0),
        _ => (0, true),
    };
    let (negative, significand) = match large.0 == small.0 {
        true => (large.0, significand + other),
        // Both have their leading bits at the same position, so there is no sticky bit.
        false if other > significand => (small.0, other - significand),
        // The sticky part is subtracted: the result is one less, and the rest is sticky.
        false => (large.0, significand - other - u128::from(sticky)),
    };
    (significand != 0).then_some(Exact {
        negative,
        significand,
        exponent,
        sticky,
    })
}

fn multiply(format: FloatFormat, mode: RoundingMode, a: Unpacked, b: Unpacked) -> Flagged {
    let ((x, m), (y, n)) = (parts(a), parts(b));
    let negative = x != y;
    match (m, n) {
        (None, Some((0, _))) | (Some((0, _)), None) => invalid(format),
        (None, _) | (_, None) => (infinity(format, negative), 0),
        (Some((0, _)), _) | (_, Some((0, _))) => (zero(format, negative), 0),
        (Some((m, e)), Some((n, f))) => {
            let product = Exact {
                negative,
                significand: u128::from(m) * u128::from(n),
                exponent: e + f,
                sticky: false,
            };
            round(format, mode, &product)
        }
    }
}

/// Returns the sign, and the significand with its exponent; infinity has none.
fn parts(number: Unpacked) -> (bool, Option<(u64, i32)>) {
    match number {
        Unpacked::Nan => (false, None),
        Unpacked::Infinite { negative } => (negative, None),
        Unpacked::Finite {
            negative,
            significand,
            exponent,
        } => (negative, Some((significand, exponent))),
    }
}

fn divide(format: FloatFormat, mode: RoundingMode, a: Unpacked, b: Unpacked) -> Flagged {
    let ((x, m), (y, n)) = (parts(a), parts(b));
    let negative = x != y;
    match (m, n) {
        (None, None) | (Some((0, _)), Some((0, _))) => invalid(format),
        (None, _) => (infinity(format, negative), 0),
        (_, None) | (Some((0, _)), _) => (zero(format, negative), 0),
        (_, Some((0, _))) => (infinity(format, negative), flag::DIVIDE),
        (Some((m, e)), Some((n, f))) => {
            let (up, divisor_up) = (m.leading_zeros(), n.leading_zeros());
            let (dividend, divisor) = (u128::from(m << up) << 64, u128::from(n << divisor_up));
            let rest = dividend % divisor;
            // Two more bits, so that there is one to round by even for the longest significands.
            let significand = ((dividend / divisor) << 2) | ((rest << 2) / divisor);
            let exponent = (e - up as i32) - (f - divisor_up as i32) - 66;
            let quotient = Exact {
                negative,
                significand,
                exponent,
                sticky: (rest << 2) % divisor != 0,
            };
            round(format, mode, &quotient)
        }
    }
}

/// Returns the square root.
pub fn sqrt(format: FloatFormat, mode: RoundingMode, bits: u128) -> Flagged {
    let bits = bits & ((1 << format.width()) - 1);
    if is_nan(format, bits) {
        let op = crate::node::FloatUnaryOp::Sqrt;
        return (float::unary(op, format, bits), nan_flags(format, [bits]));
    }
    let (negative, number) = parts(decode(format, bits));
    let (significand, exponent) = match number {
        Some((0, _)) => return (bits, 0),
        _ if negative => return invalid(format),
        None => return (bits, 0),
        Some(number) => number,
    };
    let up = significand.leading_zeros();
    let exponent = exponent - up as i32;
    // The exponent of the radicand must be even, and its root must have 64 bits.
    let more = 64 - exponent.rem_euclid(2);
    let radicand = u128::from(significand << up) << more;
    let root = radicand.isqrt();
    let rest = radicand - root * root;
    // The next bit of the root; a root is never half way between two numbers.
    let half = rest > root;
    let number = Exact {
        negative: false,
        significand: root << 2 | u128::from(half) << 1,
        exponent: (exponent - more) / 2 - 2,
        sticky: rest != 0,
    };
    let (root, flags) = round(format, mode, &number);
    (root, flags | denormal(format, [bits]))
}

/// Converts between formats.
pub fn convert(from: FloatFormat, to: FloatFormat, mode: RoundingMode, bits: u128) -> Flagged {
    let bits = bits & ((1 << from.width()) - 1);
    if from == to {
        return (bits, 0);
    }
    if is_nan(from, bits) {
        return (float::convert(from, to, bits), nan_flags(from, [bits]));
    }
    // A store of the x87 converts without regard to subnormal operands.
    let subnormal = match from {
        FloatFormat::X87 => 0,
        _ => denormal(from, [bits]),
    };
    match parts(decode(from, bits)) {
        (negative, None) => (infinity(to, negative), 0),
        (negative, Some((0, _))) => (zero(to, negative), 0),
        (negative, Some((significand, exponent))) => {
            let number = Exact {
                negative,
                significand: significand.into(),
                exponent,
                sticky: false,
            };
            let (bits, flags) = round(to, mode, &number);
            (bits, flags | subnormal)
        }
    }
}

/// Converts an integer of at most 128 bits, given by its magnitude.
pub fn from_int(
    format: FloatFormat,
    mode: RoundingMode,
    negative: bool,
    magnitude: u128,
) -> Flagged {
    if magnitude == 0 {
        return (0, 0);
    }
    let number = Exact {
        negative,
        significand: magnitude,
        exponent: 0,
        sticky: false,
    };
    round(format, mode, &number)
}

/// Returns the flags of a conversion to a signed integer of this width, rounding towards zero.
pub fn to_int_flags(format: FloatFormat, bits: u128, width: u32) -> u16 {
    let (negative, number) = parts(decode(format, bits & ((1 << format.width()) - 1)));
    let Some((significand, exponent)) = number else {
        return flag::INVALID;
    };
    if significand == 0 {
        return 0;
    }
    let length = length(significand.into()) + exponent;
    let whole = exponent >= 0 || -exponent <= significand.trailing_zeros() as i32;
    let shift = (-exponent).clamp(0, 63) as u32;
    let least = negative && length == width as i32 && (significand >> shift).is_power_of_two();
    if length >= width as i32 && !least {
        return flag::INVALID;
    }
    match whole {
        true => 0,
        false => flag::INEXACT,
    }
}

/// Returns the flags of a comparison. A signalling comparison is invalid for all NaNs.
pub fn compare_flags(format: FloatFormat, a: u128, b: u128, signals: bool) -> u16 {
    let mask = (1 << format.width()) - 1;
    let (a, b) = (a & mask, b & mask);
    if is_nan(format, a) || is_nan(format, b) {
        return match signals {
            true => flag::INVALID,
            false => nan_flags(format, [a, b]),
        };
    }
    denormal(format, [a, b])
}

/// Returns the flags of rounding to an integral value, from the operand and the result.
pub fn integral_flags(format: FloatFormat, bits: u128, result: u128) -> u16 {
    let bits = bits & ((1 << format.width()) - 1);
    if is_nan(format, bits) {
        return nan_flags(format, [bits]);
    }
    match bits == result {
        true => 0,
        false => flag::INEXACT | denormal(format, [bits]),
    }
}

/// Returns `x · y + z`, rounded once.
pub fn fused_multiply_add(format: FloatFormat, mode: RoundingMode, numbers: [u128; 3]) -> Flagged {
    fn soft<F: Float>(mode: RoundingMode, [x, y, z]: [u128; 3]) -> Flagged {
        let result =
            F::from_bits(x).mul_add_r(F::from_bits(y), F::from_bits(z), float::soft_mode(mode));
        // The library's flags have other positions.
        let places = [
            (Status::INVALID_OP, flag::INVALID),
            (Status::DIV_BY_ZERO, flag::DIVIDE),
            (Status::OVERFLOW, flag::OVERFLOW),
            (Status::UNDERFLOW, flag::UNDERFLOW),
            (Status::INEXACT, flag::INEXACT),
        ];
        let raised = places
            .iter()
            .filter(|(status, _)| result.status.contains(*status));
        (
            result.value.to_bits(),
            raised.fold(0, |all, (_, flag)| all | flag),
        )
    }
    let [x, y, z] = numbers;
    if numbers.iter().any(|&bits| is_nan(format, bits)) {
        let bits = float::fused_multiply_add(format, x, y, z);
        return (bits, nan_flags(format, numbers));
    }
    let (bits, flags) = match format {
        FloatFormat::Half => soft::<Half>(mode, numbers),
        FloatFormat::Single => soft::<Single>(mode, numbers),
        FloatFormat::Double => soft::<Double>(mode, numbers),
        FloatFormat::X87 => soft::<X87DoubleExtended>(mode, numbers),
    };
    match is_nan(format, bits) {
        true => invalid(format),
        false => (bits, flags),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::FloatUnaryOp;
    use RoundingMode::{NearestEven, TowardNegative, TowardPositive, TowardZero};
    use proptest::prelude::*;

    const DOUBLE: FloatFormat = FloatFormat::Double;

    fn divide(mode: RoundingMode, a: f64, b: f64) -> (f64, u16) {
        let (bits, flags) = binary(
            FloatOp::Div,
            DOUBLE,
            mode,
            a.to_bits().into(),
            b.to_bits().into(),
        );
        (f64::from_bits(bits as u64), flags)
    }

    #[test]
    fn quotients_round_as_they_are_told() {
        let below = 1.0 / 3.0;
        let above = f64::from_bits(f64::to_bits(below) + 1);
        for (mode, expected) in [
            (NearestEven, below),
            (TowardNegative, below),
            (TowardZero, below),
            (TowardPositive, above),
        ] {
            assert_eq!(
                divide(mode, 1.0, 3.0),
                (expected, flag::INEXACT),
                "{mode:?}"
            );
        }
        assert_eq!(divide(NearestEven, 1.0, 4.0), (0.25, 0));
        assert_eq!(divide(NearestEven, 1.0, 0.0), (f64::INFINITY, flag::DIVIDE));
        assert_eq!(divide(NearestEven, 0.0, 0.0).1, flag::INVALID);
        let overflow = flag::OVERFLOW | flag::INEXACT;
        assert_eq!(divide(TowardZero, f64::MAX, 0.5), (f64::MAX, overflow));
        assert_eq!(
            divide(TowardPositive, f64::MAX, 0.5),
            (f64::INFINITY, overflow)
        );
    }

    #[test]
    fn tininess_is_seen_after_rounding() {
        let underflow = flag::UNDERFLOW | flag::INEXACT;
        assert_eq!(divide(NearestEven, f64::MIN_POSITIVE, 3.0).1, underflow);
        assert_eq!(divide(NearestEven, f64::MIN_POSITIVE, 4.0).1, 0, "exact");
        // With an unlimited exponent this would be less than the least normal number
        // by a quarter of the last place.
        let almost = 1.0 - f64::EPSILON / 2.0;
        let (a, b) = (f64::MIN_POSITIVE.to_bits(), almost.to_bits());
        let product = binary(FloatOp::Mul, DOUBLE, NearestEven, a.into(), b.into());
        assert_eq!(product, (f64::MIN_POSITIVE.to_bits().into(), underflow));
    }

    #[test]
    fn integers_out_of_range_are_invalid() {
        let flags = |x: f64, width| to_int_flags(DOUBLE, x.to_bits().into(), width);
        assert_eq!(flags(-2147483648.0, 32), 0);
        assert_eq!(flags(-2147483648.5, 32), flag::INEXACT);
        assert_eq!(flags(2147483647.5, 32), flag::INEXACT);
        assert_eq!(flags(2147483648.0, 32), flag::INVALID);
        assert_eq!(flags(-2147483649.0, 32), flag::INVALID);
        assert_eq!(flags(f64::NAN, 64), flag::INVALID);
        assert_eq!(flags(1e-300, 64), flag::INEXACT);
    }

    fn any_number() -> impl Strategy<Value = u64> {
        // Exponents near each other, and all others.
        prop_oneof![
            any::<u64>(),
            any::<u64>().prop_map(|bits| bits & !(0x7f0 << 52) | 0x3f0 << 52)
        ]
    }

    proptest! {
        #[test]
        fn to_nearest_it_is_the_processor(a in any_number(), b in any_number()) {
            for op in [FloatOp::Add, FloatOp::Sub, FloatOp::Mul, FloatOp::Div] {
                for (format, mask) in [(DOUBLE, u64::MAX), (FloatFormat::Single, 0xffff_ffff)] {
                    let (a, b) = (u128::from(a & mask), u128::from(b & mask));
                    let (bits, _) = binary(op, format, NearestEven, a, b);
                    prop_assert_eq!(bits, float::binary(op, format, a, b), "{:?} {:?}", op, format);
                }
                let wide = |x: u64| float::convert(DOUBLE, FloatFormat::X87, x.into());
                let (a, b) = (wide(a), wide(b));
                let (bits, _) = binary(op, FloatFormat::X87, NearestEven, a, b);
                prop_assert_eq!(bits, float::binary(op, FloatFormat::X87, a, b), "{:?}", op);
                let narrow = float::convert(FloatFormat::X87, FloatFormat::Single, bits);
                let converted = convert(FloatFormat::X87, FloatFormat::Single, NearestEven, bits);
                prop_assert_eq!(converted.0, narrow);
            }
        }

        #[test]
        fn roots_are_those_of_the_processor(a in any_number()) {
            for format in [DOUBLE, FloatFormat::X87] {
                let bits = float::convert(DOUBLE, format, (a >> 1).into());
                let (root, _) = sqrt(format, NearestEven, bits);
                prop_assert_eq!(root, float::unary(FloatUnaryOp::Sqrt, format, bits));
            }
        }
    }
}
