//! Evaluates one operation of a term on many values at once.

use everett_expr::{Node, scalar};

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
        Node::Binary { op, .. } => std::array::from_fn(|i| scalar::binary(op, width, a[i], b[i])),
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
