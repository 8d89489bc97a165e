//! Digests of terms by content, which do not depend on ids.

use crate::arena::Arena;
use crate::digest::{Builder, Content, MAX_STEPS};
use crate::node::{ExprId, Node, Variable, tag};

impl Arena {
    /// Returns a key that orders symbolic bytes by the ordinal and the digest of their arrays.
    /// Unlike the order of ids, this order is the same in every arena.
    pub fn variable_order(&self, variable: Variable) -> (u32, u64, u32) {
        let ordinal = self.array_info(variable.array).ordinal;
        (ordinal, self.array_digest(variable.array), variable.index)
    }

    /// Returns a digest of a term by content: of operators, widths, constants, and the names of its
    /// symbolic bytes. Equal terms have the same digest in every arena, on every run and machine,
    /// whatever their ids.
    #[inline]
    pub fn digest(&self, e: ExprId) -> u64 {
        self.entries[e.index()].digest
    }

    /// Computes the content of a node from the contents of its operands. If the kind of node is
    /// known at compile time, only its arm is left.
    #[inline(always)]
    pub(crate) fn content_of(&self, node: &Node, width: u32) -> Content {
        let new = |tag| Builder::new(tag, width);
        let of = |e: ExprId| self.entries[e.index()].content();
        let builder = match *node {
            Node::Constant { bits } => return new(tag::CONSTANT).then(bits).finish_constant(),
            Node::WideConstant { index } => return self.content_of_wide(index, width),
            Node::Read { array, index } => {
                let builder = new(tag::READ).then(u64::from(index));
                builder.then(self.array_digest(array))
            }
            Node::Not { e } => new(tag::NOT).then_operand(of(e)),
            Node::Binary { op, a, b } => {
                let builder = new(tag::BINARY + op as u8).then_operand(of(a));
                builder.then_operand(of(b))
            }
            Node::Compare { op, a, b } => {
                let builder = new(tag::COMPARE + op as u8).then_operand(of(a));
                builder.then_operand(of(b))
            }
            Node::Ite { c, a, b } => {
                let builder = new(tag::ITE).then_operand(of(c)).then_operand(of(a));
                builder.then_operand(of(b))
            }
            Node::Select { table, index } => {
                let builder = new(tag::SELECT).then(self.tables.get(table).digest);
                builder.then_operand(of(index))
            }
            Node::Extract { e, low } => {
                let builder = new(tag::EXTRACT).then(u64::from(low));
                builder.then_operand(of(e))
            }
            Node::Concat { hi, lo } => {
                let builder = new(tag::CONCAT).then_operand(of(hi));
                builder.then_operand(of(lo))
            }
            Node::ZeroExtend { e } => new(tag::ZERO_EXTEND).then_operand(of(e)),
            Node::SignExtend { e } => new(tag::SIGN_EXTEND).then_operand(of(e)),
            _ => return self.content_of_float(node, width),
        };
        builder.finish()
    }

    fn content_of_wide(&self, index: u32, width: u32) -> Content {
        let start = Builder::new(tag::WIDE_CONSTANT, width);
        let limbs = self.wide.get(index).iter();
        let builder = limbs.fold(start, |builder, &limb| builder.then(limb));
        builder.finish_constant()
    }

    fn content_of_float(&self, node: &Node, width: u32) -> Content {
        let code = node.code();
        let [first, second] = code.parts.unwrap_or_default();
        let start = Builder::new(code.tag, width);
        let start = start.then(u64::from(first) | u64::from(second) << 8);
        let operands = node.children();
        let builder = operands.fold(start, |builder, e| {
            builder.then_operand(self.entries[e.index()].content())
        });
        builder.finish()
    }

    /// Returns a key that orders the parts of sums and products, by content like all operands.
    /// Programs read their input byte by byte, so terms over bytes that were created later come
    /// later: a growing sum begins with the previous sum.
    pub(crate) fn part_order(&self, e: ExprId) -> (u64, u64, ExprId) {
        (self.age(e), self.digest(e), e)
    }

    /// Returns the position of a symbolic byte of the term that is found in a few steps.
    fn age(&self, mut e: ExprId) -> u64 {
        for _ in 0..MAX_STEPS {
            e = match self.node(e) {
                Node::Read { array, index } => {
                    return u64::from(self.array_info(array).ordinal) << 32 | u64::from(index);
                }
                Node::ZeroExtend { e }
                | Node::SignExtend { e }
                | Node::Extract { e, .. }
                | Node::Not { e }
                | Node::Binary { a: e, .. }
                | Node::Concat { hi: e, .. }
                | Node::Select { index: e, .. }
                | Node::Ite { a: e, .. } => e,
                _ => break,
            };
        }
        u64::MAX
    }
}
