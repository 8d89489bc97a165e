//! Facts about the value of a term that are known without solving: the bits that are always zero or
//! one, and the unsigned range. They are kept for terms of at most 64 bits and computed once, from
//! the facts of the operands.

use crate::node::{BinaryOp, CompareOp, ExprId, Node};
use crate::scalar;

/// Facts that hold for the value of a term under every assignment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Bits that are always zero; bits above the width are set.
    pub zeros: u64,
    /// Bits that are always one.
    pub ones: u64,
    /// Minimal unsigned value.
    pub min: u64,
    /// Maximal unsigned value.
    pub max: u64,
}

impl Facts {
    /// Creates facts that contain nothing except the width.
    pub(crate) fn unknown(width: u32) -> Facts {
        let all = scalar::mask(width);
        Facts {
            zeros: !all,
            ones: 0,
            min: 0,
            max: all,
        }
    }

    pub(crate) fn constant(bits: u64) -> Facts {
        Facts {
            zeros: !bits,
            ones: bits,
            min: bits,
            max: bits,
        }
    }

    fn bits(width: u32, zeros: u64, ones: u64) -> Facts {
        let all = scalar::mask(width);
        Facts {
            zeros: zeros | !all,
            ones: ones & all,
            min: 0,
            max: all,
        }
    }

    fn range(width: u32, min: u64, max: u64) -> Facts {
        Facts {
            min,
            max,
            ..Facts::unknown(width)
        }
    }

    /// Returns the conjunction of two facts.
    fn meet(self, other: Facts) -> Facts {
        Facts {
            zeros: self.zeros | other.zeros,
            ones: self.ones | other.ones,
            min: self.min.max(other.min),
            max: self.max.min(other.max),
        }
    }

    /// Returns the disjunction of two facts.
    fn join(self, other: Facts) -> Facts {
        Facts {
            zeros: self.zeros & other.zeros,
            ones: self.ones & other.ones,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// Refines the range by the bits and the bits by the range.
    pub(crate) fn refined(mut self) -> Facts {
        self.min = self.min.max(self.ones);
        self.max = self.max.min(!self.zeros);
        let differing = self.min ^ self.max;
        // All values share the bits above the highest one in which the bounds differ.
        let common = match differing.checked_ilog2() {
            Some(highest) => u64::MAX.checked_shl(highest + 1).unwrap_or(0),
            None => u64::MAX,
        };
        self.zeros |= !self.min & common;
        self.ones |= self.min & common;
        self
    }

    /// Returns the value, if there is only one.
    pub(crate) fn single(&self) -> Option<u64> {
        (self.min == self.max).then_some(self.min)
    }

    fn trailing_zeros(&self) -> u32 {
        self.zeros.trailing_ones()
    }

    /// Computes the facts of a new node from the widths and facts of its operands.
    #[inline]
    pub(crate) fn of(
        node: &Node,
        width: u32,
        width_of: impl Fn(ExprId) -> u32,
        facts: impl Fn(ExprId) -> Facts,
    ) -> Facts {
        if width > 64 {
            return Facts::unknown(width);
        }
        let result = match *node {
            Node::Constant { bits } => return Facts::constant(bits),
            Node::Not { e } => {
                let (all, e) = (scalar::mask(width), facts(e));
                Facts {
                    zeros: e.ones | !all,
                    ones: e.zeros & all,
                    min: all - e.max,
                    max: all - e.min,
                }
            }
            Node::Binary { op, a, b } => binary(op, width, facts(a), facts(b)),
            Node::Compare { op, a, b } => match decide(op, width_of(a), facts(a), facts(b)) {
                Some(truth) => return Facts::constant(u64::from(truth)),
                None => return Facts::unknown(1),
            },
            Node::Ite { a, b, .. } => facts(a).join(facts(b)),
            Node::Extract { e, low } if width_of(e) <= 64 => extract(width, facts(e), low),
            Node::Concat { hi, lo } => {
                let shift = width_of(lo);
                let (hi, lo) = (facts(hi), facts(lo));
                Facts {
                    zeros: hi.zeros << shift | lo.zeros & scalar::mask(shift),
                    ones: hi.ones << shift | lo.ones,
                    min: hi.min << shift | lo.min,
                    max: hi.max << shift | lo.max,
                }
            }
            Node::ZeroExtend { e } => facts(e),
            Node::SignExtend { e } => sign_extend(width, width_of(e), facts(e)),
            _ => return Facts::unknown(width),
        };
        result.refined()
    }
}

fn extract(width: u32, e: Facts, low: u32) -> Facts {
    let bits = Facts::bits(width, e.zeros >> low, e.ones >> low);
    if e.max >> low <= scalar::mask(width) {
        return bits.meet(Facts::range(width, e.min >> low, e.max >> low));
    }
    bits
}

fn sign_extend(width: u32, from: u32, e: Facts) -> Facts {
    let sign = scalar::sign_bit(from);
    if e.zeros & sign != 0 {
        return e;
    }
    let above = scalar::mask(width) & !scalar::mask(from);
    if e.ones & sign != 0 {
        return Facts {
            zeros: e.zeros & !above,
            ones: e.ones | above,
            min: e.min | above,
            max: e.max | above,
        };
    }
    Facts::bits(width, e.zeros & scalar::mask(from), e.ones)
}

fn binary(op: BinaryOp, width: u32, a: Facts, b: Facts) -> Facts {
    let unknown = Facts::unknown(width);
    match op {
        BinaryOp::Add => sum(width, a, b),
        BinaryOp::Sub => difference(width, a, b),
        BinaryOp::Mul => product(width, a, b),
        BinaryOp::UDiv if b.min > 0 => {
            unknown.meet(Facts::range(width, a.min / b.max, a.max / b.min))
        }
        BinaryOp::URem => {
            let max = if b.min > 0 {
                a.max.min(b.max - 1)
            } else {
                a.max
            };
            unknown.meet(Facts::range(width, 0, max))
        }
        BinaryOp::UDiv | BinaryOp::SDiv | BinaryOp::SRem => unknown,
        BinaryOp::And => Facts {
            zeros: a.zeros | b.zeros,
            ones: a.ones & b.ones,
            min: 0,
            max: a.max.min(b.max),
        },
        BinaryOp::Or => Facts {
            zeros: a.zeros & b.zeros,
            ones: a.ones | b.ones,
            min: a.min.max(b.min),
            max: unknown.max,
        },
        BinaryOp::Xor => Facts::bits(
            width,
            a.zeros & b.zeros | a.ones & b.ones,
            a.zeros & b.ones | a.ones & b.zeros,
        ),
        BinaryOp::Shl if b.single().is_some_and(|amount| amount < u64::from(width)) => {
            let bits = Facts::bits(
                width,
                a.zeros << b.min | low_mask(b.min as u32),
                a.ones << b.min,
            );
            let max = u128::from(a.max) << b.min;
            if max > u128::from(scalar::mask(width)) {
                return bits;
            }
            bits.meet(Facts::range(width, a.min << b.min, max as u64))
        }
        BinaryOp::Shl => {
            let low = u64::from(a.trailing_zeros())
                .saturating_add(b.min)
                .min(u64::from(width));
            Facts::bits(width, low_mask(low as u32), 0)
        }
        BinaryOp::LShr => {
            let shift = |value: u64, by: u64| if by >= 64 { 0 } else { value >> by };
            Facts::range(width, shift(a.min, b.max), shift(a.max, b.min))
        }
        BinaryOp::AShr => {
            // The sign and everything shifted in are known.
            let sign = scalar::sign_bit(width);
            let kept = b.min.min(u64::from(width) - 1) as u32;
            let top = scalar::mask(width) & !(scalar::mask(width) >> kept >> 1);
            match (a.zeros & sign != 0, a.ones & sign != 0) {
                (true, _) => Facts::bits(width, top, 0),
                (_, true) => Facts::bits(width, 0, top),
                _ => unknown,
            }
        }
    }
}

/// Returns a mask of this many low bits, possibly none.
fn low_mask(count: u32) -> u64 {
    if count == 0 { 0 } else { scalar::mask(count) }
}

/// Returns the known bits of a sum: those for which all operand bits and the carry are known.
fn carried(width: u32, a: Facts, b_zeros: u64, b_ones: u64, carry: u64) -> Facts {
    let greatest = (!a.zeros).wrapping_add(!b_zeros).wrapping_add(carry);
    let least = a.ones.wrapping_add(b_ones).wrapping_add(carry);
    let carry_zero = !(greatest ^ a.zeros ^ b_zeros);
    let carry_one = least ^ a.ones ^ b_ones;
    let known = (a.zeros | a.ones) & (b_zeros | b_ones) & (carry_zero | carry_one);
    Facts::bits(width, !greatest & known, least & known)
}

fn sum(width: u32, a: Facts, b: Facts) -> Facts {
    let bits = carried(width, a, b.zeros, b.ones, 0);
    let all = u128::from(scalar::mask(width));
    let (min, max) = (
        u128::from(a.min) + u128::from(b.min),
        u128::from(a.max) + u128::from(b.max),
    );
    if max <= all {
        bits.meet(Facts::range(width, min as u64, max as u64))
    } else if min > all {
        bits.meet(Facts::range(
            width,
            (min - all - 1) as u64,
            (max - all - 1) as u64,
        ))
    } else {
        bits
    }
}

fn difference(width: u32, a: Facts, b: Facts) -> Facts {
    let bits = carried(width, a, b.ones, b.zeros, 1);
    let all = scalar::mask(width);
    if a.min >= b.max {
        bits.meet(Facts::range(width, a.min - b.max, a.max - b.min))
    } else if a.max < b.min {
        let wrap = |value: u64| value & all;
        let range = (
            wrap(a.min.wrapping_sub(b.max)),
            wrap(a.max.wrapping_sub(b.min)),
        );
        bits.meet(Facts::range(width, range.0, range.1))
    } else {
        bits
    }
}

fn product(width: u32, a: Facts, b: Facts) -> Facts {
    let low = (a.trailing_zeros() + b.trailing_zeros()).min(width);
    let bits = Facts::bits(width, low_mask(low), 0);
    let max = u128::from(a.max) * u128::from(b.max);
    if max <= u128::from(scalar::mask(width)) {
        return bits.meet(Facts::range(width, a.min * b.min, max as u64));
    }
    bits
}

/// Returns the signed range.
fn signed_range(width: u32, e: Facts) -> (i64, i64) {
    let sign = scalar::sign_bit(width);
    if (e.zeros | e.ones) & sign != 0 {
        return (
            scalar::to_signed(width, e.min),
            scalar::to_signed(width, e.max),
        );
    }
    // Both signs are possible: the other bits bound both ends.
    let least = e.ones | sign;
    let greatest = !e.zeros & !sign & scalar::mask(width);
    (
        scalar::to_signed(width, least),
        scalar::to_signed(width, greatest),
    )
}

/// Decides a comparison of two terms of this width from their facts.
pub(crate) fn decide(op: CompareOp, width: u32, x: Facts, y: Facts) -> Option<bool> {
    if width > 64 {
        return None;
    }
    let apart = |below: bool, not_below: bool| match (below, not_below) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    match op {
        CompareOp::Eq => {
            let differ = (x.zeros & y.ones | x.ones & y.zeros) != 0;
            (differ || x.max < y.min || y.max < x.min).then_some(false)
        }
        CompareOp::Ult => apart(x.max < y.min, x.min >= y.max),
        CompareOp::Ule => apart(x.max <= y.min, x.min > y.max),
        CompareOp::Slt | CompareOp::Sle => {
            let (x, y) = (signed_range(width, x), signed_range(width, y));
            if op == CompareOp::Slt {
                apart(x.1 < y.0, x.0 >= y.1)
            } else {
                apart(x.1 <= y.0, x.0 > y.1)
            }
        }
    }
}
