//! Strides: the offsets that a term can have, as an arithmetic progression. A field in an array of
//! structs has the offsets `residue + step * index`.
//!
//! The step comes from the constant factors of the term if its sums cannot wrap around, and
//! otherwise from its known low bits.

use everett_expr::{Arena, BinaryOp, ExprId, Node};

/// Maximum number of summands of a term that are examined.
const MAX_SUMMANDS: usize = 16;
/// Maximum number of known low bits that determine a step: the size of a page.
const MOST_LOW_BITS: u32 = 12;

/// The offsets that a term in bounds of an object can have: `residue + step * i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stride {
    /// The offset of the first element; less than the step.
    pub residue: u64,
    /// The distance between two offsets.
    pub step: u64,
    /// The term as a sum; `None` if the step comes from known low bits.
    sum: Option<Sum>,
}

/// A sum of products that does not wrap around, as a signed number.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Sum {
    products: Vec<(ExprId, u64)>,
    constant: i64,
}

/// The overlap of an access with another one, both at symbolic offsets.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Overlap {
    /// The accesses have no byte in common.
    Never,
    /// The accesses have either no byte in common, or all bytes of the first one, which then starts
    /// this many bytes after the start of the other.
    Inside(u64),
    /// The accesses may have some bytes in common and others not.
    Partly,
}

impl Stride {
    /// Returns the stride of an offset that is in bounds of an object.
    pub fn of(arena: &Arena, offset: ExprId) -> Stride {
        let (zeros, ones) = arena.known_bits(offset);
        let low = (zeros | ones).trailing_ones();
        let by_bits = 1 << low.min(MOST_LOW_BITS);
        let sum = Sum::of(arena, offset);
        match sum.map(|sum| (sum.common_factor(), sum)) {
            Some((step, sum)) if step > by_bits => Stride {
                residue: sum.constant.rem_euclid(step as i64) as u64,
                step,
                sum: Some(sum),
            },
            _ => Stride {
                residue: ones % by_bits,
                step: by_bits,
                sum: None,
            },
        }
    }

    /// Returns the first offset from `min` on.
    pub fn first_from(&self, min: u64) -> u64 {
        let behind = (min % self.step + self.step - self.residue) % self.step;
        match behind {
            0 => min,
            _ => min.saturating_add(self.step - behind),
        }
    }

    /// `(offset - first) / step`; `first` is one of the offsets.
    pub fn index(&self, arena: &mut Arena, offset: ExprId, first: u64) -> ExprId {
        let Some(sum) = &self.sum else {
            let first = arena.constant(64, first);
            let index = arena.sub(offset, first);
            let shift = arena.constant(64, u64::from(self.step.trailing_zeros()));
            return arena.binary(BinaryOp::LShr, index, shift);
        };
        let step = self.step as i64;
        let constant = (sum.constant - first as i64).div_euclid(step);
        let mut index = arena.constant(64, constant as u64);
        for (term, factor) in &sum.products {
            let factor = arena.constant(64, factor / self.step);
            let product = arena.binary(BinaryOp::Mul, *term, factor);
            index = arena.add(index, product);
        }
        index
    }

    /// Returns the overlap of an access of `len` bytes at such an offset with one of `other_len`
    /// bytes at an offset of another stride.
    pub fn overlap(&self, len: u64, other: &Stride, other_len: u64) -> Overlap {
        let step = gcd(self.step, other.step);
        let behind = (self.residue % step + step - other.residue % step) % step;
        if behind >= other_len && step - behind >= len {
            Overlap::Never
        } else if behind + len <= other_len && step >= other_len {
            // The step is at least as long as the other access, so this access cannot reach the
            // other's next position.
            Overlap::Inside(behind)
        } else {
            Overlap::Partly
        }
    }
}

impl Sum {
    /// Returns a term as a sum; `None` if it may wrap around, or has too many summands.
    fn of(arena: &Arena, term: ExprId) -> Option<Sum> {
        let mut sum = Sum::default();
        let mut rest = vec![(term, 1u64)];
        let mut largest = 0u128;
        while let Some((term, factor)) = rest.pop() {
            if let Some(bits) = arena.as_const(term) {
                let product = (bits as i64).checked_mul(i64::try_from(factor).ok()?)?;
                sum.constant = sum.constant.checked_add(product)?;
                continue;
            }
            match arena.node(term) {
                Node::Binary {
                    op: BinaryOp::Add,
                    a,
                    b,
                } => rest.extend([(a, factor), (b, factor)]),
                Node::Binary { op, a, b } if constant_factor(arena, op, b).is_some() => {
                    let own = constant_factor(arena, op, b)?;
                    rest.push((a, factor.checked_mul(own)?));
                }
                Node::Binary { op, a, b } if constant_factor(arena, op, a).is_some() => {
                    if op != BinaryOp::Mul {
                        return None;
                    }
                    let own = constant_factor(arena, op, a)?;
                    rest.push((b, factor.checked_mul(own)?));
                }
                _ => {
                    largest += u128::from(arena.unsigned_range(term).1) * u128::from(factor);
                    sum.products.push((term, factor));
                }
            }
            if rest.len() + sum.products.len() > MAX_SUMMANDS {
                return None;
            }
        }
        let most = i64::MAX as u128 / 2;
        (largest <= most && u128::from(sum.constant.unsigned_abs()) <= most).then_some(sum)
    }

    /// Returns the greatest number that all factors are multiples of.
    fn common_factor(&self) -> u64 {
        let factors = self.products.iter().map(|(_, factor)| *factor);
        factors.fold(0, gcd).max(1)
    }
}

/// Returns the factor of a multiplication or a shift by a constant.
fn constant_factor(arena: &Arena, op: BinaryOp, operand: ExprId) -> Option<u64> {
    let bits = arena.as_const(operand)?;
    match op {
        BinaryOp::Mul => Some(bits),
        BinaryOp::Shl => 1u64.checked_shl(u32::try_from(bits).ok()?),
        _ => None,
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
