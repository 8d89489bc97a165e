//! Evaluation of a term under an assignment of the symbolic bytes. It is iterative, so the depth of
//! a term does not matter; each shared subterm is evaluated once per call.

use crate::arena::Arena;
use crate::float;
use crate::limbs;
use crate::node::{ArrayId, ExprId, Node};
use crate::scalar;

/// An assignment of values to the symbolic bytes.
pub trait Assignment {
    /// Returns the value of a byte.
    fn byte(&self, array: ArrayId, index: u32) -> u8;
}

impl<F: Fn(ArrayId, u32) -> u8> Assignment for F {
    #[inline]
    fn byte(&self, array: ArrayId, index: u32) -> u8 {
        self(array, index)
    }
}

/// Reusable memory for evaluations.
#[derive(Default)]
pub struct EvalScratch {
    /// The value of each term, or its offset in `wide`; valid if `stamps` equals `epoch`.
    values: Vec<u64>,
    stamps: Vec<u32>,
    epoch: u32,
    stack: Vec<ExprId>,
    wide: Vec<u64>,
    evaluated: u64,
}

impl EvalScratch {
    /// Creates empty memory.
    pub fn new() -> EvalScratch {
        EvalScratch::default()
    }

    /// Returns the number of terms evaluated so far. Of an if-then-else, only the selected branch
    /// counts.
    pub fn evaluated(&self) -> u64 {
        self.evaluated
    }

    fn start(&mut self, length: usize) {
        if self.stamps.len() < length {
            self.stamps.resize(length, 0);
            self.values.resize(length, 0);
        }
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.stamps.fill(0);
            self.epoch = 1;
        }
        self.stack.clear();
        self.wide.clear();
    }

    #[inline]
    fn known(&self, e: ExprId) -> bool {
        self.stamps[e.index()] == self.epoch
    }

    #[inline]
    fn narrow(&self, e: ExprId) -> u64 {
        self.values[e.index()]
    }

    #[inline]
    fn set(&mut self, e: ExprId, value: u64) {
        self.values[e.index()] = value;
        self.stamps[e.index()] = self.epoch;
        self.evaluated += 1;
    }

    fn limbs(&self, e: ExprId, width: u32) -> &[u64] {
        if width <= 64 {
            return std::slice::from_ref(&self.values[e.index()]);
        }
        let start = self.values[e.index()] as usize;
        &self.wide[start..start + limbs::count(width)]
    }

    fn set_limbs(&mut self, e: ExprId, width: u32, value: &[u64]) {
        if width <= 64 {
            return self.set(e, value[0]);
        }
        let start = self.wide.len() as u64;
        self.wide.extend_from_slice(value);
        self.set(e, start);
    }
}

impl Arena {
    /// Returns the value of a term of at most 64 bits.
    ///
    /// # Panics
    /// If the term is wider.
    pub fn eval<A: Assignment + ?Sized>(
        &self,
        e: ExprId,
        assignment: &A,
        scratch: &mut EvalScratch,
    ) -> u64 {
        assert!(
            self.width(e) <= 64,
            "the value of a wide term does not fit in 64 bits"
        );
        if let Some(bits) = self.as_const(e) {
            return bits;
        }
        self.run(e, assignment, scratch);
        scratch.narrow(e)
    }

    /// Evaluates a condition.
    pub fn eval_bool<A: Assignment + ?Sized>(
        &self,
        e: ExprId,
        assignment: &A,
        scratch: &mut EvalScratch,
    ) -> bool {
        self.eval(e, assignment, scratch) & 1 == 1
    }

    /// Returns the value of a term of any width, least significant limb first.
    pub fn eval_limbs<A: Assignment + ?Sized>(
        &self,
        e: ExprId,
        assignment: &A,
        scratch: &mut EvalScratch,
    ) -> Vec<u64> {
        self.run(e, assignment, scratch);
        scratch.limbs(e, self.width(e)).to_vec()
    }

    fn run<A: Assignment + ?Sized>(&self, root: ExprId, assignment: &A, scratch: &mut EvalScratch) {
        scratch.start(self.index_bound());
        scratch.stack.push(root);
        while let Some(&e) = scratch.stack.last() {
            if scratch.known(e) || self.step(e, assignment, scratch) {
                scratch.stack.pop();
            }
        }
    }

    /// Evaluates a term if its operands are evaluated; otherwise pushes them on the stack.
    #[inline]
    fn step<A: Assignment + ?Sized>(
        &self,
        e: ExprId,
        assignment: &A,
        scratch: &mut EvalScratch,
    ) -> bool {
        let entry = &self.entries[e.index()];
        let (node, width) = (entry.node, entry.width());
        match node {
            Node::Constant { bits } => scratch.set(e, bits),
            Node::WideConstant { index } => scratch.set_limbs(e, width, self.wide.get(index)),
            Node::Read { array, index } => {
                scratch.set(e, u64::from(assignment.byte(array, index)));
            }
            Node::Ite { c, a, b } => return self.step_ite(e, width, [c, a, b], scratch),
            _ => {
                let before = scratch.stack.len();
                for child in node.children() {
                    if scratch.known(child) {
                        continue;
                    }
                    // Half of all operands are leaves, which are evaluated here at once.
                    match self.entries[child.index()].node {
                        Node::Constant { bits } => scratch.set(child, bits),
                        Node::Read { array, index } => {
                            scratch.set(child, u64::from(assignment.byte(array, index)));
                        }
                        _ => scratch.stack.push(child),
                    }
                }
                if scratch.stack.len() != before {
                    return false;
                }
                self.apply(e, &node, width, scratch);
            }
        }
        true
    }

    /// Evaluates only the selected branch: tables become deep trees of if-then-else.
    fn step_ite(
        &self,
        e: ExprId,
        width: u32,
        [c, a, b]: [ExprId; 3],
        scratch: &mut EvalScratch,
    ) -> bool {
        if !scratch.known(c) {
            scratch.stack.push(c);
            return false;
        }
        let chosen = if scratch.narrow(c) == 1 { a } else { b };
        if !scratch.known(chosen) {
            scratch.stack.push(chosen);
            return false;
        }
        // A wide value is shared by position.
        debug_assert_eq!(width, self.width(chosen));
        scratch.set(e, scratch.narrow(chosen));
        true
    }

    #[inline]
    fn apply(&self, e: ExprId, node: &Node, width: u32, scratch: &mut EvalScratch) {
        let narrow = |child: ExprId| scratch.values[child.index()];
        let from = |child: ExprId| self.entries[child.index()].width();
        let value = match *node {
            Node::Not { e } if width <= 64 => !narrow(e) & scalar::mask(width),
            Node::Binary { op, a, b } if width <= 64 => {
                scalar::binary(op, width, narrow(a), narrow(b))
            }
            Node::Compare { op, a, b } if from(a) <= 64 => {
                u64::from(scalar::compare(op, from(a), narrow(a), narrow(b)))
            }
            Node::Select { table, index } => self.tables.get(table).get(narrow(index)),
            Node::Extract { e, low } if from(e) <= 64 => narrow(e) >> low & scalar::mask(width),
            Node::Concat { hi, lo } if width <= 64 => narrow(hi) << from(lo) | narrow(lo),
            Node::ZeroExtend { e } if width <= 64 => narrow(e),
            Node::SignExtend { e } if width <= 64 => {
                scalar::to_signed(from(e), narrow(e)) as u64 & scalar::mask(width)
            }
            _ => return self.apply_wide(e, node, width, scratch),
        };
        scratch.set(e, value);
    }

    /// Evaluates wide terms and floats.
    #[cold]
    fn apply_wide(&self, e: ExprId, node: &Node, width: u32, scratch: &mut EvalScratch) {
        let get = |child: ExprId| scratch.limbs(child, self.width(child));
        let bits = |child: ExprId| limbs::to_u128(get(child));
        let truth = |value: bool| vec![u64::from(value)];
        let value = match *node {
            Node::Constant { .. }
            | Node::WideConstant { .. }
            | Node::Read { .. }
            | Node::Ite { .. } => unreachable!("evaluated by step"),
            Node::Select { .. } => unreachable!("entries have at most 64 bits"),
            Node::Not { e } => limbs::not(width, get(e)),
            Node::Binary { op, a, b } => limbs::binary(op, width, get(a), get(b)),
            Node::Compare { op, a, b } => truth(limbs::compare(op, self.width(a), get(a), get(b))),
            Node::Extract { e, low } => limbs::extract(get(e), low, width),
            Node::Concat { hi, lo } => {
                limbs::concat(self.width(hi), get(hi), self.width(lo), get(lo))
            }
            Node::ZeroExtend { e } => limbs::extract(get(e), 0, width),
            Node::SignExtend { e } => limbs::sext(self.width(e), get(e), width),
            Node::FloatBinary { op, format, a, b } => {
                limbs::from_u128(width, float::binary(op, format, bits(a), bits(b)))
            }
            Node::FloatUnary { op, format, e } => {
                limbs::from_u128(width, float::unary(op, format, bits(e)))
            }
            Node::FloatCompare { op, format, a, b } => {
                truth(float::compare(op, format, bits(a), bits(b)))
            }
            Node::FloatConvert { from, to, e } => {
                limbs::from_u128(width, float::convert(from, to, bits(e)))
            }
            Node::FloatFromInt { signed, format, e } => limbs::from_u128(
                width,
                float::from_int(signed, format, self.width(e), get(e)),
            ),
            Node::FloatToInt { signed, format, e } => float::to_int(signed, format, bits(e), width),
        };
        scratch.set_limbs(e, width, &value);
    }
}
