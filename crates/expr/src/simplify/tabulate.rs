//! Large terms over one byte become tables. A program that computes with one unknown character in a
//! loop builds a term that grows with every round; the table of its 256 values has the same
//! meaning, and everything that looks at terms takes as long as for a small one.

use crate::arena::Arena;
use crate::hash::FastMap;
use crate::node::{ArrayId, ExprId, Node};
use crate::scalar;

/// Terms that are nested more deeply become tables.
const MAX_HEIGHT: u8 = 40;
/// Maximum number of parts of a term that becomes a table.
const MAX_PARTS: usize = 1 << 12;

/// The values of a term for each value of the byte.
type Column = [u64; 256];

impl Arena {
    /// Returns the table of a term's values, if the term is large and depends on one byte;
    /// otherwise the term.
    #[inline(always)]
    pub(super) fn tabulated(&mut self, e: ExprId) -> ExprId {
        if self.entries[e.index()].content().height <= MAX_HEIGHT {
            return e;
        }
        self.tabulated_if_small(e)
    }

    #[cold]
    fn tabulated_if_small(&mut self, e: ExprId) -> ExprId {
        let width = self.width(e);
        let Some((array, index)) = self.single_byte_support(e).filter(|_| width <= 64) else {
            return e;
        };
        let Some(parts) = self.parts_of_byte(e) else {
            return e;
        };
        // Pointer resolution divides a path by the if-then-else terms in a pointer.
        if width == 64 && parts.iter().any(|&part| self.may_be_address(part)) {
            return e;
        }
        let column = self.column(&parts);
        let byte = self.read_of(array, index);
        self.select(width, &column, byte)
    }

    fn read_of(&mut self, array: ArrayId, index: u32) -> ExprId {
        self.intern(Node::Read { array, index }, 8)
    }

    /// Returns the parts of a term, operands first. `None` if there are too many, or if one of them
    /// is wide or a float.
    fn parts_of_byte(&self, root: ExprId) -> Option<Vec<ExprId>> {
        let (mut parts, mut seen) = (Vec::new(), FastMap::<ExprId, bool>::default());
        let mut stack = vec![root];
        while let Some(&e) = stack.last() {
            match seen.get(&e) {
                Some(true) => drop(stack.pop()),
                Some(false) => {
                    seen.insert(e, true);
                    parts.push(e);
                    stack.pop();
                }
                None => {
                    let node = self.node(e);
                    if self.width(e) > 64 || node.is_float() || seen.len() >= MAX_PARTS {
                        return None;
                    }
                    seen.insert(e, false);
                    stack.extend(node.children().filter(|child| !seen.contains_key(child)));
                }
            }
        }
        Some(parts)
    }

    /// Returns the values of the last one of `parts`.
    fn column(&self, parts: &[ExprId]) -> Column {
        let position: FastMap<ExprId, usize> =
            parts.iter().enumerate().map(|(at, &e)| (e, at)).collect();
        let mut columns: Vec<Column> = Vec::with_capacity(parts.len());
        for &e in parts {
            let mut operands = [&[0; 256]; 3];
            for (operand, child) in operands.iter_mut().zip(self.node(e).children()) {
                *operand = &columns[position[&child]];
            }
            columns.push(self.column_of_part(e, operands));
        }
        columns.pop().unwrap_or([0; 256])
    }

    /// Computes the values of a term from those of its operands.
    fn column_of_part(&self, e: ExprId, [a, b, c]: [&Column; 3]) -> Column {
        let node = self.node(e);
        let (width, mask) = (self.width(e), scalar::mask(self.width(e)));
        let last = node.children().last().map_or(0, |child| self.width(child));
        match node {
            Node::Constant { bits } => [bits; 256],
            Node::Read { .. } => std::array::from_fn(|value| value as u64),
            Node::Not { .. } => a.map(|x| !x & mask),
            Node::Binary { op, .. } => {
                std::array::from_fn(|i| scalar::binary(op, width, a[i], b[i]))
            }
            Node::Compare { op, .. } => {
                std::array::from_fn(|i| u64::from(scalar::compare(op, last, a[i], b[i])))
            }
            Node::Ite { .. } => std::array::from_fn(|i| if a[i] != 0 { b[i] } else { c[i] }),
            Node::Extract { low, .. } => a.map(|x| x >> low & mask),
            Node::Concat { .. } => std::array::from_fn(|i| a[i] << last | b[i]),
            Node::ZeroExtend { .. } => *a,
            Node::SignExtend { .. } => a.map(|x| scalar::to_signed(last, x) as u64 & mask),
            Node::Select { table, .. } => a.map(|x| self.tables.get(table).get(x)),
            _ => unreachable!("wide terms and floats are no parts"),
        }
    }

    /// Returns whether a term is a constant that can be the address of an object of a program.
    fn may_be_address(&self, e: ExprId) -> bool {
        let value = self.as_const(e).filter(|_| self.width(e) == 64);
        value.is_some_and(|value| value >> 32 != 0 && value >> 48 == 0)
    }
}
