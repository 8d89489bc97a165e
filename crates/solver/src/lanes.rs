//! Evaluates one operation of a term on many values at once.

use everett_expr::{BinaryOp, Node, scalar};

/// Returns the entries of a table at these indices; the last one for those past the end.
pub fn look_up<const N: usize>(entries: &[u64], index: &[u64; N]) -> [u64; N] {
    let last = entries.len() - 1;
    index.map(|at| entries[usize::try_from(at).map_or(last, |at| at.min(last))])
}

/// Returns the values of a node of at most 64 bits. `last` is the width of its last operand;
/// `operands` has the values of its operands. `None` for floats, wide constants, tables and bytes.
pub fn apply<const N: usize>(
    node: Node,
    width: u32,
    last: u32,
    operands: [&[u64; N]; 3],
) -> Option<[u64; N]> {
    let mask = scalar::mask(width);
    let [a, b, c] = operands;
    Some(match node {
        Node::Constant { bits } => [bits; N],
        Node::Not { .. } => a.map(|x| !x & mask),
        Node::Binary { op, .. } => match divided(op, width, a, b) {
            Some(values) => values,
            None => std::array::from_fn(|i| scalar::binary(op, width, a[i], b[i])),
        },
        Node::Compare { op, .. } => {
            std::array::from_fn(|i| u64::from(scalar::compare(op, last, a[i], b[i])))
        }
        Node::Ite { .. } => std::array::from_fn(|i| if a[i] != 0 { b[i] } else { c[i] }),
        Node::Extract { low, .. } => a.map(|x| x >> low & mask),
        Node::Concat { .. } => std::array::from_fn(|i| a[i] << last | b[i]),
        Node::ZeroExtend { .. } => *a,
        Node::SignExtend { .. } => a.map(|x| scalar::to_signed(last, x) as u64 & mask),
        _ => return None,
    })
}

/// Returns quotients or remainders by one divisor that all values have in common, through a
/// multiplication; `None` for other operations, divisors, and numbers above 32 bits.
fn divided<const N: usize>(
    op: BinaryOp,
    width: u32,
    a: &[u64; N],
    b: &[u64; N],
) -> Option<[u64; N]> {
    use BinaryOp::{SDiv, SRem, UDiv, URem};
    if !matches!(op, UDiv | URem | SDiv | SRem) || N == 1 {
        return None;
    }
    let divisor = b[0];
    // Numbers without a sign are divided as unsigned ones.
    let most = match op {
        SDiv | SRem => scalar::mask(width.min(33) - 1),
        _ => u64::from(u32::MAX),
    };
    let all = a.iter().fold(0, |all, x| all | x);
    if divisor < 2 || divisor | all > most || b.iter().any(|&other| other != divisor) {
        return None;
    }
    let reciprocal = u128::from(u64::MAX / divisor + 1);
    let quotient = |x: u64| ((u128::from(x) * reciprocal) >> 64) as u64;
    Some(match op {
        UDiv | SDiv => a.map(quotient),
        _ => a.map(|x| x - quotient(x) * divisor),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quotients_by_one_divisor_are_exact(
            width in 1u32..65,
            numbers in any::<[u64; 8]>(),
            shift in 0u32..64,
            divisor in prop_oneof![0u64..20, any::<u64>(), (0u32..64).prop_map(|bit| 1 << bit)],
        ) {
            let mask = scalar::mask(width);
            let divisor = divisor & mask;
            let numbers = numbers.map(|number| number >> shift & mask);
            for op in [BinaryOp::UDiv, BinaryOp::URem, BinaryOp::SDiv, BinaryOp::SRem] {
                if let Some(found) = divided(op, width, &numbers, &[divisor; 8]) {
                    let expected = numbers.map(|number| scalar::binary(op, width, number, divisor));
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }

    /// The numbers at which a reciprocal could be wrong are multiples of the divisor and their
    /// neighbours.
    #[test]
    fn quotients_change_at_multiples_of_the_divisor() {
        for divisor in [
            2u64,
            3,
            7,
            10,
            365,
            1461,
            65_521,
            146_097,
            0x7fff_ffff,
            0xffff_fffe,
        ] {
            let last = u64::from(u32::MAX) / divisor * divisor;
            let near = [
                last,
                last - 1,
                last + 1,
                divisor,
                divisor - 1,
                divisor + 1,
                0,
                1,
            ];
            let near = near.map(|number| number.min(u64::from(u32::MAX)));
            for op in [BinaryOp::UDiv, BinaryOp::URem] {
                let expected = near.map(|number| scalar::binary(op, 64, number, divisor));
                assert_eq!(divided(op, 64, &near, &[divisor; 8]), Some(expected));
            }
        }
    }
}
