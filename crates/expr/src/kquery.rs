//! Prints terms in KLEE's notation (KQuery), truncated if they are large. What that notation does
//! not have, tables and floats, is in that of [`Arena::display`].

use crate::arena::Arena;
use crate::node::{ExprId, Node};
use std::fmt;

/// Maximum number of subterms that are printed.
const MAX_PARTS: u32 = 2000;
const MAX_DEPTH: u32 = 100;

/// A displayable form of a term in KLEE's notation.
pub struct Kquery<'a> {
    arena: &'a Arena,
    e: ExprId,
}

impl Arena {
    /// Returns a displayable form of the term in KLEE's notation; `…` replaces truncated parts.
    pub fn kquery(&self, e: ExprId) -> Kquery<'_> {
        Kquery { arena: self, e }
    }

    /// Returns the array and the first index of bytes of one array that follow each other, if the
    /// term consists of them, least significant byte first, or most significant first.
    fn consecutive(&self, e: ExprId) -> Option<(&'static str, ExprId)> {
        let mut bytes = Vec::new();
        self.bytes_of(e, &mut bytes)?;
        let follow = |first: &[(u32, u32)]| {
            let mut pairs = first.windows(2);
            pairs.all(|pair| pair[1].0 == pair[0].0 && pair[1].1 == pair[0].1 + 1)
        };
        let places: Vec<(u32, u32)> = bytes.iter().map(|(_, place)| *place).collect();
        let backwards: Vec<(u32, u32)> = places.iter().rev().copied().collect();
        match places.len() {
            0 | 1 => None,
            // The first byte is the most significant one.
            _ if follow(&backwards) => Some(("ReadLSB", bytes.last()?.0)),
            _ if follow(&places) => Some(("ReadMSB", bytes.first()?.0)),
            _ => None,
        }
    }

    /// Lists the bytes of arrays that a term is the concatenation of, most significant first, with
    /// array and index.
    fn bytes_of(&self, e: ExprId, bytes: &mut Vec<(ExprId, (u32, u32))>) -> Option<()> {
        match self.node(e) {
            Node::Read { array, index } => {
                bytes.push((e, (array.0, index)));
                Some(())
            }
            Node::Concat { hi, lo } => {
                self.bytes_of(hi, bytes)?;
                self.bytes_of(lo, bytes)
            }
            _ => None,
        }
    }
}

struct Writer<'a, 'b, 'c> {
    arena: &'a Arena,
    out: &'b mut fmt::Formatter<'c>,
    parts: u32,
}

impl Writer<'_, '_, '_> {
    fn operation(
        &mut self,
        head: fmt::Arguments<'_>,
        operands: &[ExprId],
        depth: u32,
    ) -> fmt::Result {
        write!(self.out, "({head}")?;
        for operand in operands {
            self.out.write_str(" ")?;
            self.term(*operand, depth)?;
        }
        self.out.write_str(")")
    }

    fn constant(&mut self, e: ExprId) -> fmt::Result {
        match self.arena.as_const_limbs(e) {
            Some([bits]) if self.arena.width(e) == 1 => write!(self.out, "{}", *bits != 0),
            Some([bits]) => write!(self.out, "{bits}"),
            _ => write!(self.out, "{}", self.arena.display(e)),
        }
    }

    fn term(&mut self, e: ExprId, depth: u32) -> fmt::Result {
        self.parts += 1;
        if self.parts > MAX_PARTS || depth > MAX_DEPTH {
            return self.out.write_str("…");
        }
        let depth = depth + 1;
        let width = self.arena.width(e);
        match self.arena.node(e) {
            Node::Constant { .. } | Node::WideConstant { .. } => self.constant(e),
            Node::Read { array, index } => {
                let name = &self.arena.array_info(array).name;
                write!(self.out, "(Read w{width} {index} {name})")
            }
            Node::Not { e } if width == 1 => self.operation(format_args!("Eq false"), &[e], depth),
            Node::Not { e } => self.operation(format_args!("Not w{width}"), &[e], depth),
            Node::Binary { op, a, b } => {
                self.operation(format_args!("{op:?} w{width}"), &[a, b], depth)
            }
            Node::Compare { op, a, b } => self.operation(format_args!("{op:?}"), &[a, b], depth),
            Node::Ite { c, a, b } => {
                self.operation(format_args!("Select w{width}"), &[c, a, b], depth)
            }
            Node::Extract { e, low } => {
                self.operation(format_args!("Extract w{width} {low}"), &[e], depth)
            }
            Node::Concat { hi, lo } => match self.arena.consecutive(e) {
                Some((head, first)) => {
                    let Node::Read { array, index } = self.arena.node(first) else {
                        return self.out.write_str("…");
                    };
                    let name = &self.arena.array_info(array).name;
                    write!(self.out, "({head} w{width} {index} {name})")
                }
                None => self.operation(format_args!("Concat w{width}"), &[hi, lo], depth),
            },
            Node::ZeroExtend { e } => self.operation(format_args!("ZExt w{width}"), &[e], depth),
            Node::SignExtend { e } => self.operation(format_args!("SExt w{width}"), &[e], depth),
            _ => write!(self.out, "{}", self.arena.display(e)),
        }
    }
}

impl fmt::Display for Kquery<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut writer = Writer {
            arena: self.arena,
            out,
            parts: 0,
        };
        writer.term(self.e, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_have_the_notation_of_klee() {
        let mut arena = Arena::new();
        let array = arena.array(0, "arr", 8);
        let byte = arena.read(array, 2);
        let extended = arena.sext(byte, 32);
        let shown = |arena: &Arena, e| arena.kquery(e).to_string();
        assert_eq!(shown(&arena, extended), "(SExt w32 (Read w8 2 arr))");
        let bytes: Vec<ExprId> = (4..8).map(|at| arena.read(array, at)).collect();
        let number = arena.concat_bytes(&bytes);
        assert_eq!(shown(&arena, number), "(ReadLSB w32 4 arr)");
        let reversed: Vec<ExprId> = bytes.iter().rev().copied().collect();
        let number = arena.concat_bytes(&reversed);
        assert_eq!(shown(&arena, number), "(ReadMSB w32 4 arr)");
        let apart = arena.concat_bytes(&[bytes[0], byte]);
        let expected = "(Concat w16 (Read w8 2 arr) (Read w8 4 arr))";
        assert_eq!(shown(&arena, apart), expected);
        let five = arena.constant(8, 5);
        let less = arena.ult(byte, five);
        let sum = arena.add(byte, five);
        let chosen = arena.ite(less, sum, byte);
        let text = shown(&arena, chosen);
        assert!(
            text.starts_with("(Select w8 (Ult (Read w8 2 arr) 5) (Add w8 "),
            "{text}"
        );
        let not = arena.not(less);
        let text = shown(&arena, not);
        assert!(
            text.contains("(Read w8 2 arr)") && !text.contains("Not"),
            "{text}"
        );
    }
}
