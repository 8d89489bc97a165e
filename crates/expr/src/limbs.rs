//! Concrete operators on values of any width, as little-endian 64-bit limbs. Bits above the width
//! are zero in every argument and result.

use crate::node::{BinaryOp, CompareOp};
use std::cmp::Ordering;

/// Returns the number of limbs of a value.
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

/// Returns one bit of a value; false past its end.
#[inline]
pub fn bit(value: &[u64], position: u32) -> bool {
    value
        .get(position as usize / 64)
        .is_some_and(|limb| limb >> (position % 64) & 1 == 1)
}

/// Returns whether all bits are zero.
pub fn is_zero(value: &[u64]) -> bool {
    value.iter().all(|&limb| limb == 0)
}

/// Returns the value, if it fits in 64 bits.
pub fn to_u64(value: &[u64]) -> Option<u64> {
    let (low, high) = value.split_first()?;
    is_zero(high).then_some(*low)
}

/// Returns the low 128 bits.
pub fn to_u128(value: &[u64]) -> u128 {
    let limb = |i: usize| u128::from(value.get(i).copied().unwrap_or(0));
    limb(0) | limb(1) << 64
}

/// Returns a value of this width from 128 bits.
pub fn from_u128(width: u32, bits: u128) -> Vec<u64> {
    let mut result = vec![0; count(width)];
    result[0] = bits as u64;
    if let Some(limb) = result.get_mut(1) {
        *limb = (bits >> 64) as u64;
    }
    truncate(width, &mut result);
    result
}

/// Returns the bitwise complement.
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

/// Returns the two's complement negation.
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
    long_division(a, b)
}

fn significant(value: &[u64]) -> usize {
    value
        .iter()
        .rposition(|&limb| limb != 0)
        .map_or(0, |top| top + 1)
}

/// Divides by Knuth's algorithm D: one limb of the quotient at a time, estimated from the highest
/// limbs. Returns quotient and remainder.
fn long_division(a: &[u64], b: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let (m, n) = (significant(a), significant(b));
    let mut quotient = vec![0; a.len()];
    if m < n {
        return (quotient, a.to_vec());
    }
    if n == 1 {
        let mut rest = 0u128;
        for i in (0..m).rev() {
            let part = rest << 64 | u128::from(a[i]);
            quotient[i] = (part / u128::from(b[0])) as u64;
            rest = part % u128::from(b[0]);
        }
        let mut remainder = vec![0; a.len()];
        remainder[0] = rest as u64;
        return (quotient, remainder);
    }
    // Normalised so that the highest bit of the divisor is set, which makes estimates accurate.
    let shift = b[n - 1].leading_zeros();
    let divisor = extract_shifted(&b[..n], shift, n);
    let mut rest = extract_shifted(&a[..m], shift, m + 1);
    for j in (0..=m - n).rev() {
        quotient[j] = quotient_limb(&mut rest[j..=j + n], &divisor);
    }
    let mut remainder: Vec<u64> = extract(&rest[..n], shift, 64 * n as u32);
    remainder.resize(a.len(), 0);
    (quotient, remainder)
}

/// Returns a value shifted left by less than a limb, in this many limbs.
fn extract_shifted(value: &[u64], shift: u32, length: usize) -> Vec<u64> {
    let mut value = value.to_vec();
    value.resize(length, 0);
    if shift == 0 {
        value
    } else {
        shl(64 * length as u32, &value, shift)
    }
}

/// Subtracts the divisor from the rest as often as possible; returns how often.
fn quotient_limb(rest: &mut [u64], divisor: &[u64]) -> u64 {
    let n = divisor.len();
    let top = u128::from(rest[n]) << 64 | u128::from(rest[n - 1]);
    let first = u128::from(divisor[n - 1]);
    let mut guess = (top / first).min(u128::from(u64::MAX));
    let mut left = top - guess * first;
    // At most two too large after considering the second limb.
    while left >> 64 == 0
        && guess * u128::from(divisor[n - 2]) > (left << 64 | u128::from(rest[n - 2]))
    {
        guess -= 1;
        left += first;
    }
    let (mut carry, mut borrow) = (0u128, false);
    for (limb, &part) in rest.iter_mut().zip(divisor.iter().chain([&0])) {
        let product = guess * u128::from(part) + carry;
        carry = product >> 64;
        let (difference, under) = limb.overflowing_sub(product as u64);
        let (difference, under_again) = difference.overflowing_sub(u64::from(borrow));
        *limb = difference;
        borrow = under || under_again;
    }
    if borrow {
        guess -= 1;
        let mut carry = false;
        for (limb, &part) in rest.iter_mut().zip(divisor.iter().chain([&0])) {
            let (sum, over) = limb.overflowing_add(part);
            let (sum, over_again) = sum.overflowing_add(u64::from(carry));
            *limb = sum;
            carry = over || over_again;
        }
    }
    guess as u64
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

/// Shifts left by a number of bits.
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

/// Returns bits `low..low + width` of a value, zero past its end.
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

/// Returns the concatenation of `hi` and `lo`.
pub fn concat(hi_width: u32, hi: &[u64], lo_width: u32, lo: &[u64]) -> Vec<u64> {
    let width = hi_width + lo_width;
    let mut result = shl(width, &extract(hi, 0, width), lo_width);
    for (limb, low) in result.iter_mut().zip(lo) {
        *limb |= low;
    }
    result
}

/// Sign-extends a value.
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

/// Returns the result of a binary operator.
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

/// Evaluates a comparison.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that are hard to estimate: limbs near zero and near all ones.
    fn samples() -> Vec<Vec<u64>> {
        let limbs = [0, 1, 1 << 63, u64::MAX, u64::MAX - 1, 0x1234_5678_9abc_def0];
        let mut all = Vec::new();
        for a in limbs {
            for b in limbs {
                for c in limbs {
                    all.push(vec![a, b, c, 0]);
                    all.push(vec![c, a, 0, b]);
                }
            }
        }
        all
    }

    #[test]
    fn quotient_and_remainder_make_the_dividend() {
        let width = 256;
        for a in samples() {
            for b in samples().iter().step_by(7).filter(|b| !is_zero(b)) {
                let (quotient, remainder) = udiv_urem(width, &a, b);
                assert!(
                    compare(CompareOp::Ult, width, &remainder, b),
                    "{a:x?} / {b:x?}"
                );
                let product = mul(width, &quotient, b);
                assert_eq!(add_with_carry(width, &product, &remainder, false), a);
                // The product must not have wrapped around.
                assert!(compare(CompareOp::Ule, width, &product, &a));
            }
        }
    }

    #[test]
    fn division_by_zero_is_total() {
        let (a, zero) = ([5, 0, 7], [0; 3]);
        assert_eq!(binary(BinaryOp::UDiv, 192, &a, &zero), [u64::MAX; 3]);
        assert_eq!(binary(BinaryOp::URem, 192, &a, &zero), a);
        assert_eq!(binary(BinaryOp::SDiv, 192, &a, &zero), [u64::MAX; 3]);
        let negative = neg(192, &a);
        assert_eq!(binary(BinaryOp::SDiv, 192, &negative, &zero), [1, 0, 0]);
        assert_eq!(binary(BinaryOp::SRem, 192, &negative, &zero), negative);
    }

    #[test]
    fn shifts_and_slices_of_wide_values() {
        let a = [0x8000_0000_0000_0001, 0, 0x8000_0000_0000_0000];
        let by = |amount| [amount, 0, 0];
        assert_eq!(binary(BinaryOp::Shl, 192, &a, &by(65)), [0, 2, 1]);
        assert_eq!(binary(BinaryOp::LShr, 192, &a, &by(191)), [1, 0, 0]);
        assert_eq!(binary(BinaryOp::AShr, 192, &a, &by(191)), [u64::MAX; 3]);
        assert_eq!(binary(BinaryOp::LShr, 192, &a, &[0, 1, 0]), [0; 3]);
        assert_eq!(sext(8, &[0x80], 130), [!0x7f, u64::MAX, 3]);
        assert_eq!(concat(3, &[5], 127, &[1, 2]), [1, 2 | 1 << 63, 2]);
    }
}
