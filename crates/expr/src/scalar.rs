//! Concrete operators on values of at most 64 bits. Bits above the width are zero in every argument
//! and result.

use crate::node::{BinaryOp, CompareOp};

/// Returns a mask of the low `width` bits.
#[inline]
pub fn mask(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1u64 << width) - 1
    }
}

/// Returns the sign bit of the width.
#[inline]
pub fn sign_bit(width: u32) -> u64 {
    1u64 << (width - 1)
}

/// Returns the value as a signed number.
#[inline]
pub fn to_signed(width: u32, bits: u64) -> i64 {
    let shift = 64 - width;
    ((bits << shift) as i64) >> shift
}

/// Returns the result of a binary operator.
#[inline]
pub fn binary(op: BinaryOp, width: u32, a: u64, b: u64) -> u64 {
    let all = mask(width);
    let result = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::UDiv => a.checked_div(b).unwrap_or(all),
        BinaryOp::URem => a.checked_rem(b).unwrap_or(a),
        BinaryOp::SDiv => signed_div(width, a, b),
        BinaryOp::SRem => signed_rem(width, a, b),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl if b >= u64::from(width) => 0,
        BinaryOp::Shl => a << b,
        BinaryOp::LShr if b >= u64::from(width) => 0,
        BinaryOp::LShr => a >> b,
        BinaryOp::AShr => (to_signed(width, a) >> b.min(63)) as u64,
    };
    result & all
}

fn signed_div(width: u32, a: u64, b: u64) -> u64 {
    let (x, y) = (to_signed(width, a), to_signed(width, b));
    if y == 0 {
        // -(|x| / 0) for negative x: minus all ones is one.
        return if x < 0 { 1 } else { u64::MAX };
    }
    x.wrapping_div(y) as u64
}

fn signed_rem(width: u32, a: u64, b: u64) -> u64 {
    let (x, y) = (to_signed(width, a), to_signed(width, b));
    if y == 0 { a } else { x.wrapping_rem(y) as u64 }
}

/// Evaluates a comparison.
#[inline]
pub fn compare(op: CompareOp, width: u32, a: u64, b: u64) -> bool {
    match op {
        CompareOp::Eq => a == b,
        CompareOp::Ult => a < b,
        CompareOp::Ule => a <= b,
        CompareOp::Slt => to_signed(width, a) < to_signed(width, b),
        CompareOp::Sle => to_signed(width, a) <= to_signed(width, b),
    }
}
