//! Concrete meaning of the operators on values of any width, as little-endian limbs of 64 bits.
//! Bits above the width are zero in every argument and result.

use crate::node::{BinaryOp, CompareOp};
use std::cmp::Ordering;

/// Number of limbs of a value.
#[inline]
pub fn count(width: u32) -> usize {
    width.div_ceil(64) as usize
}

/// Clears the bits above the width.
pub fn truncate(width: u32, value: &mut [u64]) {
    let rest = width % 64;
    if rest != 0
        && let Some(top) = value.last_mut()
    {
        *top &= (1u64 << rest) - 1;
    }
}

/// One bit of a value; false above its end.
#[inline]
pub fn bit(value: &[u64], position: u32) -> bool {
    value
        .get(position as usize / 64)
        .is_some_and(|limb| limb >> (position % 64) & 1 == 1)
}

/// Whether all bits are zero.
pub fn is_zero(value: &[u64]) -> bool {
    value.iter().all(|&limb| limb == 0)
}

/// The value where it fits in 64 bits.
pub fn to_u64(value: &[u64]) -> Option<u64> {
    let (low, high) = value.split_first()?;
    is_zero(high).then_some(*low)
}

/// The low 128 bits.
pub fn to_u128(value: &[u64]) -> u128 {
    let limb = |i: usize| u128::from(value.get(i).copied().unwrap_or(0));
    limb(0) | limb(1) << 64
}

/// A value of the width from 128 bits.
pub fn from_u128(width: u32, bits: u128) -> Vec<u64> {
    let mut result = vec![0; count(width)];
    result[0] = bits as u64;
    if let Some(limb) = result.get_mut(1) {
        *limb = (bits >> 64) as u64;
    }
    truncate(width, &mut result);
    result
}

/// The complement.
pub fn not(width: u32, a: &[u64]) -> Vec<u64> {
    let mut result: Vec<u64> = a.iter().map(|limb| !limb).collect();
    truncate(width, &mut result);
    result
}

fn add_with_carry(width: u32, a: &[u64], b: &[u64], complement: bool) -> Vec<u64> {
    let mut carry = complement;
    let mut result = Vec::with_capacity(a.len());
    for (&x, &y) in a.iter().zip(b) {
        let y = if complement { !y } else { y };
        let (sum, over) = x.overflowing_add(y);
        let (sum, over_again) = sum.overflowing_add(u64::from(carry));
        carry = over || over_again;
        result.push(sum);
    }
    truncate(width, &mut result);
    result
}

/// Two's complement negation.
pub fn neg(width: u32, a: &[u64]) -> Vec<u64> {
    add_with_carry(width, &vec![0; a.len()], a, true)
}

fn mul(width: u32, a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut result = vec![0u64; a.len()];
    for (i, &x) in a.iter().enumerate() {
        let mut carry = 0u128;
        for (j, &y) in b.iter().enumerate().take(a.len() - i) {
            let sum = u128::from(x) * u128::from(y) + u128::from(result[i + j]) + carry;
            result[i + j] = sum as u64;
            carry = sum >> 64;
        }
    }
    truncate(width, &mut result);
    result
}

fn udiv_urem(width: u32, a: &[u64], b: &[u64]) -> (Vec<u64>, Vec<u64>) {
    if is_zero(b) {
        return (not(width, &vec![0; a.len()]), a.to_vec());
    }
    if width <= 128 {
        let (x, y) = (to_u128(a), to_u128(b));
        return (from_u128(width, x / y), from_u128(width, x % y));
    }
    // One spare limb, because the remainder is doubled before the divisor is taken away.
    let wide = width + 64;
    let mut divisor = b.to_vec();
    divisor.push(0);
    let mut quotient = vec![0; a.len()];
    let mut remainder = vec![0; a.len() + 1];
    for position in (0..width).rev() {
        remainder = shl(wide, &remainder, 1);
        remainder[0] |= u64::from(bit(a, position));
        if unsigned_cmp(&remainder, &divisor) != Ordering::Less {
            remainder = add_with_carry(wide, &remainder, &divisor, true);
            quotient[position as usize / 64] |= 1 << (position % 64);
        }
    }
    remainder.truncate(a.len());
    (quotient, remainder)
}

fn magnitude(width: u32, a: &[u64]) -> Vec<u64> {
    if bit(a, width - 1) {
        neg(width, a)
    } else {
        a.to_vec()
    }
}

fn signed_div(width: u32, a: &[u64], b: &[u64]) -> Vec<u64> {
    let (quotient, _) = udiv_urem(width, &magnitude(width, a), &magnitude(width, b));
    if bit(a, width - 1) != bit(b, width - 1) {
        neg(width, &quotient)
    } else {
        quotient
    }
}

fn signed_rem(width: u32, a: &[u64], b: &[u64]) -> Vec<u64> {
    let (_, remainder) = udiv_urem(width, &magnitude(width, a), &magnitude(width, b));
    if bit(a, width - 1) {
        neg(width, &remainder)
    } else {
        remainder
    }
}

/// Shift to the left by a number of bits.
pub fn shl(width: u32, a: &[u64], amount: u32) -> Vec<u64> {
    let mut result = vec![0; a.len()];
    if amount >= width {
        return result;
    }
    let (whole, part) = (amount as usize / 64, amount % 64);
    for i in whole..a.len() {
        result[i] = a[i - whole] << part;
        if part != 0 && i > whole {
            result[i] |= a[i - whole - 1] >> (64 - part);
        }
    }
    truncate(width, &mut result);
    result
}

/// Bits `low..low + width` of a value, zero above its end.
pub fn extract(a: &[u64], low: u32, width: u32) -> Vec<u64> {
    let (whole, part) = (low as usize / 64, low % 64);
    let limb = |i: usize| a.get(i).copied().unwrap_or(0);
    let mut result: Vec<u64> = (0..count(width))
        .map(|i| {
            let below = limb(whole + i) >> part;
            if part == 0 {
                below
            } else {
                below | limb(whole + i + 1) << (64 - part)
            }
        })
        .collect();
    truncate(width, &mut result);
    result
}

/// `hi` above `lo`.
pub fn concat(hi_width: u32, hi: &[u64], lo_width: u32, lo: &[u64]) -> Vec<u64> {
    let width = hi_width + lo_width;
    let mut result = shl(width, &extract(hi, 0, width), lo_width);
    for (limb, low) in result.iter_mut().zip(lo) {
        *limb |= low;
    }
    result
}

/// Copies of the sign bit above the value.
pub fn sext(from: u32, a: &[u64], to: u32) -> Vec<u64> {
    let extended = extract(a, 0, to);
    if !bit(a, from - 1) {
        return extended;
    }
    let ones = shl(to, &not(to, &vec![0; count(to)]), from);
    extended.iter().zip(&ones).map(|(x, y)| x | y).collect()
}

fn shift(op: BinaryOp, width: u32, a: &[u64], b: &[u64]) -> Vec<u64> {
    let amount = match to_u64(b) {
        Some(amount) if amount < u64::from(width) => amount as u32,
        _ => width,
    };
    match op {
        BinaryOp::Shl => shl(width, a, amount),
        BinaryOp::AShr if bit(a, width - 1) => not(width, &extract(&not(width, a), amount, width)),
        _ => extract(a, amount, width),
    }
}

/// The result of a binary operator.
pub fn binary(op: BinaryOp, width: u32, a: &[u64], b: &[u64]) -> Vec<u64> {
    let bitwise = |f: fn(u64, u64) -> u64| a.iter().zip(b).map(|(&x, &y)| f(x, y)).collect();
    match op {
        BinaryOp::Add => add_with_carry(width, a, b, false),
        BinaryOp::Sub => add_with_carry(width, a, b, true),
        BinaryOp::Mul => mul(width, a, b),
        BinaryOp::UDiv => udiv_urem(width, a, b).0,
        BinaryOp::URem => udiv_urem(width, a, b).1,
        BinaryOp::SDiv => signed_div(width, a, b),
        BinaryOp::SRem => signed_rem(width, a, b),
        BinaryOp::And => bitwise(|x, y| x & y),
        BinaryOp::Or => bitwise(|x, y| x | y),
        BinaryOp::Xor => bitwise(|x, y| x ^ y),
        BinaryOp::Shl | BinaryOp::LShr | BinaryOp::AShr => shift(op, width, a, b),
    }
}

fn unsigned_cmp(a: &[u64], b: &[u64]) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

/// The truth of a comparison.
pub fn compare(op: CompareOp, width: u32, a: &[u64], b: &[u64]) -> bool {
    let unsigned = unsigned_cmp(a, b);
    let signed = match (bit(a, width - 1), bit(b, width - 1)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        _ => unsigned,
    };
    match op {
        CompareOp::Eq => unsigned == Ordering::Equal,
        CompareOp::Ult => unsigned == Ordering::Less,
        CompareOp::Ule => unsigned != Ordering::Greater,
        CompareOp::Slt => signed == Ordering::Less,
        CompareOp::Sle => signed != Ordering::Greater,
    }
}
