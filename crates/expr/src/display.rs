//! Prints terms in C-like notation, truncated if they are large.

use crate::arena::Arena;
use crate::node::{BinaryOp, CompareOp, ExprId, Node};
use std::fmt;

/// Maximum number of subterms that are printed.
const MAX_PARTS: u32 = 200;
const MAX_DEPTH: u32 = 24;

/// A displayable form of a term.
pub struct Display<'a> {
    arena: &'a Arena,
    e: ExprId,
}

impl Arena {
    /// Returns a displayable form of the term, in infix, C-like notation; `…` replaces truncated
    /// parts.
    pub fn display(&self, e: ExprId) -> Display<'_> {
        Display { arena: self, e }
    }
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::UDiv => "/",
        BinaryOp::SDiv => "/s",
        BinaryOp::URem => "%",
        BinaryOp::SRem => "%s",
        BinaryOp::And => "&",
        BinaryOp::Or => "|",
        BinaryOp::Xor => "^",
        BinaryOp::Shl => "<<",
        BinaryOp::LShr => ">>",
        BinaryOp::AShr => ">>s",
    }
}

fn compare_symbol(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => "==",
        CompareOp::Ult => "<",
        CompareOp::Ule => "<=",
        CompareOp::Slt => "<s",
        CompareOp::Sle => "<=s",
    }
}

struct Writer<'a, 'b, 'c> {
    arena: &'a Arena,
    out: &'b mut fmt::Formatter<'c>,
    parts: u32,
}

impl Writer<'_, '_, '_> {
    fn infix(&mut self, a: ExprId, symbol: &str, b: ExprId, depth: u32) -> fmt::Result {
        self.out.write_str("(")?;
        self.term(a, depth)?;
        write!(self.out, " {symbol} ")?;
        self.term(b, depth)?;
        self.out.write_str(")")
    }

    fn call(&mut self, name: fmt::Arguments<'_>, node: Node, depth: u32) -> fmt::Result {
        write!(self.out, "{name}(")?;
        for (i, child) in node.children().enumerate() {
            if i > 0 {
                self.out.write_str(", ")?;
            }
            self.term(child, depth)?;
        }
        self.out.write_str(")")
    }

    fn constant(&mut self, e: ExprId) -> fmt::Result {
        let limbs = self.arena.as_const_limbs(e).unwrap_or(&[]);
        match *limbs {
            [bits] if bits < 10 => write!(self.out, "{bits}"),
            [bits] => write!(self.out, "{bits:#x}"),
            _ => {
                self.out.write_str("0x")?;
                limbs
                    .iter()
                    .rev()
                    .try_for_each(|limb| write!(self.out, "{limb:016x}"))
            }
        }
    }

    fn term(&mut self, e: ExprId, depth: u32) -> fmt::Result {
        self.parts += 1;
        if self.parts > MAX_PARTS || depth > MAX_DEPTH {
            return self.out.write_str("…");
        }
        let depth = depth + 1;
        let width = self.arena.width(e);
        let node = self.arena.node(e);
        match node {
            Node::Constant { .. } | Node::WideConstant { .. } => self.constant(e),
            Node::Read { array, index } => {
                write!(self.out, "{}[{index}]", self.arena.array_info(array).name)
            }
            Node::Not { e } => {
                self.out.write_str(if width == 1 { "!" } else { "~" })?;
                self.term(e, depth)
            }
            Node::Binary { op, a, b } => self.infix(a, symbol(op), b, depth),
            Node::Compare { op, a, b } => self.infix(a, compare_symbol(op), b, depth),
            Node::Ite { c, a, b } => {
                self.out.write_str("(")?;
                self.term(c, depth)?;
                self.out.write_str(" ? ")?;
                self.term(a, depth)?;
                self.out.write_str(" : ")?;
                self.term(b, depth)?;
                self.out.write_str(")")
            }
            Node::Select { table, index } => {
                let (_, entries) = self.arena.table(table);
                write!(self.out, "table{}[", entries.len())?;
                self.term(index, depth)?;
                self.out.write_str("]")
            }
            Node::Extract { e, low } => {
                self.term(e, depth)?;
                write!(self.out, "[{}:{low}]", low + width - 1)
            }
            Node::Concat { hi, lo } => self.infix(hi, "++", lo, depth),
            Node::ZeroExtend { .. } => self.call(format_args!("u{width}"), node, depth),
            Node::SignExtend { .. } => self.call(format_args!("i{width}"), node, depth),
            Node::FloatBinary { op, format, .. } => {
                self.call(format_args!("{op:?}.{format:?}"), node, depth)
            }
            Node::FloatUnary { op, format, .. } => {
                self.call(format_args!("{op:?}.{format:?}"), node, depth)
            }
            Node::FloatCompare { op, format, .. } => {
                self.call(format_args!("{op:?}.{format:?}"), node, depth)
            }
            Node::FloatConvert { from, to, .. } => {
                self.call(format_args!("{to:?}.from{from:?}"), node, depth)
            }
            Node::FloatFromInt { signed, format, .. } => {
                let from = if signed { "Signed" } else { "Unsigned" };
                self.call(format_args!("{format:?}.from{from}"), node, depth)
            }
            Node::FloatToInt { signed, format, .. } => {
                let to = if signed { 'i' } else { 'u' };
                self.call(format_args!("{to}{width}.from{format:?}"), node, depth)
            }
        }
    }
}

impl fmt::Display for Display<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Writer {
            arena: self.arena,
            out,
            parts: 0,
        }
        .term(self.e, 0)
    }
}
