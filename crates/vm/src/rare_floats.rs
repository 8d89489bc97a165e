//! Concrete arithmetic in the formats that terms do not support: binary128, in which libraries
//! compute long double functions, and bfloat16.

use everett_ir::code::{FloatKind, FloatOp};
use rustc_apfloat::ieee::{BFloat, Double, Half, Quad, Single, X87DoubleExtended};
use rustc_apfloat::{Float, FloatConvert};
use std::cmp::Ordering;

/// Returns whether this module implements the format.
pub(crate) fn is_rare(kind: FloatKind) -> bool {
    matches!(kind, FloatKind::BFloat | FloatKind::Quad)
}

/// Computes `a op b` in a rare format.
pub(crate) fn binary(op: FloatOp, kind: FloatKind, a: u128, b: u128) -> u128 {
    match kind {
        FloatKind::BFloat => compute::<BFloat>(op, a, b),
        _ => compute::<Quad>(op, a, b),
    }
}

fn compute<F: Float>(op: FloatOp, a: u128, b: u128) -> u128 {
    let (a, b) = (F::from_bits(a), F::from_bits(b));
    let result = match op {
        FloatOp::Add => a + b,
        FloatOp::Sub => a - b,
        FloatOp::Mul => a * b,
        FloatOp::Div => a / b,
        FloatOp::Rem => a.c_fmod(b),
    };
    result.value.to_bits()
}

/// Compares `a` and `b` in a rare format; `None` if one is NaN.
pub(crate) fn compare(kind: FloatKind, a: u128, b: u128) -> Option<Ordering> {
    match kind {
        FloatKind::BFloat => BFloat::from_bits(a).partial_cmp(&BFloat::from_bits(b)),
        _ => Quad::from_bits(a).partial_cmp(&Quad::from_bits(b)),
    }
}

/// Converts between formats of which at least one is rare.
pub(crate) fn convert(from: FloatKind, to: FloatKind, bits: u128) -> u128 {
    match from {
        FloatKind::Half => convert_from(Half::from_bits(bits), to),
        FloatKind::BFloat => convert_from(BFloat::from_bits(bits), to),
        FloatKind::Single => convert_from(Single::from_bits(bits), to),
        FloatKind::Double => convert_from(Double::from_bits(bits), to),
        FloatKind::X87 => convert_from(X87DoubleExtended::from_bits(bits), to),
        FloatKind::Quad => convert_from(Quad::from_bits(bits), to),
    }
}

fn convert_from<F>(value: F, to: FloatKind) -> u128
where
    F: FloatConvert<Half> + FloatConvert<BFloat> + FloatConvert<Single>,
    F: FloatConvert<Double> + FloatConvert<X87DoubleExtended> + FloatConvert<Quad>,
{
    fn into<F: FloatConvert<T>, T: Float>(value: F) -> u128 {
        value.convert(&mut false).value.to_bits()
    }
    match to {
        FloatKind::Half => into::<F, Half>(value),
        FloatKind::BFloat => into::<F, BFloat>(value),
        FloatKind::Single => into::<F, Single>(value),
        FloatKind::Double => into::<F, Double>(value),
        FloatKind::X87 => into::<F, X87DoubleExtended>(value),
        FloatKind::Quad => into::<F, Quad>(value),
    }
}

/// Converts an integer of at most 128 bits to a rare format.
pub(crate) fn from_int(signed: bool, kind: FloatKind, width: u32, bits: u128) -> u128 {
    fn into<F: Float>(signed: bool, bits: u128) -> u128 {
        let value = if signed {
            F::from_i128(bits as i128)
        } else {
            F::from_u128(bits)
        };
        value.value.to_bits()
    }
    let unused = 128 - width;
    let bits = match signed {
        true => ((bits << unused) as i128 >> unused) as u128,
        false => bits << unused >> unused,
    };
    match kind {
        FloatKind::BFloat => into::<BFloat>(signed, bits),
        _ => into::<Quad>(signed, bits),
    }
}

/// Converts a rare format to an integer of at most 128 bits, rounding towards zero. Values out of
/// range saturate (undefined in LLVM).
pub(crate) fn to_int(signed: bool, kind: FloatKind, bits: u128, width: u32) -> u128 {
    fn from<F: Float>(signed: bool, bits: u128, width: usize) -> u128 {
        let value = F::from_bits(bits);
        if signed {
            value.to_i128(width).value as u128
        } else {
            value.to_u128(width).value
        }
    }
    let result = match kind {
        FloatKind::BFloat => from::<BFloat>(signed, bits, width as usize),
        _ => from::<Quad>(signed, bits, width as usize),
    };
    result << (128 - width) >> (128 - width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quad(value: f64) -> u128 {
        let bits = u128::from(value.to_bits());
        convert(FloatKind::Double, FloatKind::Quad, bits)
    }

    fn double(bits: u128) -> f64 {
        f64::from_bits(convert(FloatKind::Quad, FloatKind::Double, bits) as u64)
    }

    #[test]
    fn quads_compute_with_113_bits() {
        let third = binary(FloatOp::Div, FloatKind::Quad, quad(1.0), quad(3.0));
        assert_eq!(double(third), 1.0 / 3.0);
        assert_eq!(third, 0x3ffd_5555_5555_5555_5555_5555_5555_5555);
        let rest = binary(FloatOp::Rem, FloatKind::Quad, quad(-7.5), quad(2.0));
        assert_eq!(double(rest), -1.5);
        let tiny = quad(2f64.powi(-100));
        let sum = binary(FloatOp::Add, FloatKind::Quad, quad(1.0), tiny);
        let back = binary(FloatOp::Sub, FloatKind::Quad, sum, quad(1.0));
        assert_eq!(back, tiny);
    }

    #[test]
    fn quads_compare_and_convert() {
        assert_eq!(
            compare(FloatKind::Quad, quad(1.0), quad(2.0)),
            Some(Ordering::Less)
        );
        assert_eq!(compare(FloatKind::Quad, quad(f64::NAN), quad(2.0)), None);
        assert_eq!(to_int(true, FloatKind::Quad, quad(-2.9), 32), 0xffff_fffe);
        assert_eq!(to_int(false, FloatKind::Quad, quad(2.9), 64), 2);
        assert_eq!(from_int(true, FloatKind::Quad, 8, 0xff), quad(-1.0));
        assert_eq!(from_int(false, FloatKind::Quad, 8, 0xff), quad(255.0));
    }

    #[test]
    fn the_short_format_has_eight_bits() {
        let one = convert(
            FloatKind::Single,
            FloatKind::BFloat,
            u128::from(1f32.to_bits()),
        );
        assert_eq!(one, 0x3f80);
        let small = convert(
            FloatKind::Single,
            FloatKind::BFloat,
            u128::from(0.001f32.to_bits()),
        );
        assert_eq!(binary(FloatOp::Add, FloatKind::BFloat, one, small), one);
    }
}
