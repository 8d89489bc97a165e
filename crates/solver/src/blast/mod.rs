//! The first tier: bit-blasting of terms to an incremental SAT instance.
//!
//! Constraints and conditions are never asserted, only assumed, so one instance serves all states
//! of a worker and every term is translated once. Remainders of floats, and products, quotients and
//! roots that are too large for the solver, are unconstrained here.

mod cdcl;
mod circuits;
mod float_arithmetic;
mod float_conversions;
mod floats;
mod gates;
mod heap;
mod sat;

use crate::congruence::Congruence;
use crate::interrupt::Interrupt;
pub use cdcl::Cdcl;
use circuits::{Word, not_word};
use everett_expr::{Arena, BinaryOp, CompareOp, ExprId, FloatUnaryOp, Node, Variable};
use gates::{FALSE, Gates, TRUE};
use rustc_hash::{FxHashMap, FxHashSet};
use sat::Lit;
pub use sat::{Backend, Sat, SatAnswer};

/// The range of a translated term's bits in the pool.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    width: u32,
    /// Whether the term contains unconstrained floats.
    float: bool,
}

/// A SAT instance with the terms translated so far. Valid until terms are swept from the arena.
pub struct Blaster<B> {
    gates: Gates<B>,
    spans: FxHashMap<ExprId, Span>,
    pool: Vec<Lit>,
    inputs: FxHashMap<Variable, Span>,
    /// Terms whose translation is unconstrained.
    inexact: FxHashSet<ExprId>,
    /// Quotient and remainder of operands that were already divided.
    divisions: FxHashMap<(ExprId, ExprId, bool), (Word, Word)>,
    /// Pairs of terms that are told to be equal where their parts are.
    congruent: FxHashSet<(ExprId, ExprId)>,
    stack: Vec<ExprId>,
    assumptions: Vec<Lit>,
    guesses: Vec<Lit>,
    met_floats: bool,
    /// The largest number of clauses that a single query added.
    largest: usize,
}

/// An instance is kept while it is at most this many times as large as its largest query: a new one
/// would soon be as large again.
const GROWTH: usize = 4;

impl<B: Backend> Blaster<B> {
    pub fn new() -> Blaster<B> {
        Blaster {
            gates: Gates::new(),
            spans: FxHashMap::default(),
            pool: Vec::new(),
            inputs: FxHashMap::default(),
            inexact: FxHashSet::default(),
            divisions: FxHashMap::default(),
            congruent: FxHashSet::default(),
            stack: Vec::new(),
            assumptions: Vec::new(),
            guesses: Vec::new(),
            met_floats: false,
            largest: 0,
        }
    }

    /// Returns whether a new instance would be better: this one has more clauses than `limit`, most
    /// of them from other queries.
    pub fn is_outgrown(&self, limit: usize) -> bool {
        let own = self.largest.saturating_mul(GROWTH);
        self.gates.clauses() > limit.max(own)
    }

    /// Returns whether queries were put to this instance.
    pub fn is_used(&self) -> bool {
        !self.spans.is_empty()
    }

    /// Returns whether the last query contained unconstrained floats. If so, `Sat` may be wrong.
    pub fn saw_floats(&self) -> bool {
        self.met_floats
    }

    /// Sets the interrupt that stops subsequent queries.
    pub fn interrupt_by(&mut self, interrupt: &Interrupt) {
        self.gates.sat.interrupt_by(interrupt);
    }

    /// Returns whether all `terms` can hold together. `guesses` are all variables of the terms,
    /// with values to try first.
    pub fn solve(
        &mut self,
        arena: &Arena,
        terms: impl Iterator<Item = ExprId>,
        guesses: impl Iterator<Item = (Variable, u8)>,
        conflicts: &mut u32,
    ) -> SatAnswer {
        self.assumptions.clear();
        self.met_floats = false;
        let before = self.gates.clauses();
        for e in terms {
            let literal = self.literal(arena, e);
            self.assumptions.push(literal);
        }
        self.largest = self.largest.max(self.gates.clauses() - before);
        self.guesses.clear();
        for (variable, value) in guesses {
            let Some(span) = self.inputs.get(&variable) else {
                continue;
            };
            // The most significant bit first: it matters most to comparisons.
            for position in (0..8).rev() {
                let lit = self.pool[(span.start + position) as usize];
                self.guesses.push(if value >> position & 1 == 1 {
                    lit
                } else {
                    -lit
                });
            }
        }
        self.gates
            .sat
            .solve(&self.assumptions, &self.guesses, conflicts)
    }

    /// Adds that two terms are equal where their parts are. This holds in all queries.
    pub fn add_congruence(&mut self, arena: &Arena, congruence: &Congruence) {
        let &Congruence { one, other, .. } = congruence;
        if !self.congruent.insert((one, other)) {
            return;
        }
        let mut same = Vec::new();
        for &(x, y) in &congruence.parts {
            self.translate(arena, x);
            self.translate(arena, y);
            let (x, y) = (self.word(x), self.word(y));
            same.push(self.gates.equal(&x, &y));
        }
        let same = self.gates.and_all(&mut same);
        self.translate(arena, one);
        self.translate(arena, other);
        for (x, y) in self.word(one).into_iter().zip(self.word(other)) {
            if x != y {
                self.gates.clause(&[-same, -x, y]);
                self.gates.clause(&[-same, x, -y]);
            }
        }
    }

    /// Returns whether the term at this position is in the core of the last query, which was
    /// `Unsat`.
    pub fn is_in_core(&mut self, position: usize) -> bool {
        self.gates.sat.failed(self.assumptions[position])
    }

    /// Returns the value of a byte after `Sat`; `None` if no translated term reads it.
    pub fn value(&mut self, variable: Variable) -> Option<u8> {
        let span = *self.inputs.get(&variable)?;
        let bits = &self.pool[span.start as usize..(span.start + span.width) as usize];
        let mut value = 0;
        for (position, &lit) in bits.iter().enumerate() {
            value |= u8::from(self.gates.sat.value(lit)) << position;
        }
        Some(value)
    }

    /// Returns the literal that is equivalent to a width-1 term.
    fn literal(&mut self, arena: &Arena, e: ExprId) -> Lit {
        self.translate(arena, e);
        let span = self.spans[&e];
        self.met_floats |= span.float;
        self.pool[span.start as usize]
    }

    fn bits(&self, e: ExprId) -> &[Lit] {
        let span = self.spans[&e];
        &self.pool[span.start as usize..(span.start + span.width) as usize]
    }

    fn word(&self, e: ExprId) -> Word {
        self.bits(e).to_vec()
    }

    /// Translates operands before the terms that use them, without recursion: terms may be very
    /// deep.
    fn translate(&mut self, arena: &Arena, root: ExprId) {
        if self.spans.contains_key(&root) {
            return;
        }
        let mut stack = std::mem::take(&mut self.stack);
        stack.push(root);
        while let Some(&e) = stack.last() {
            let before = stack.len();
            stack.extend(
                arena
                    .node(e)
                    .children()
                    .filter(|child| !self.spans.contains_key(child)),
            );
            if stack.len() > before {
                continue;
            }
            stack.pop();
            if !self.spans.contains_key(&e) {
                let mut word = self.translate_node(arena, e);
                set_known_bits(arena, e, &mut word);
                self.store(arena, e, &word);
            }
        }
        self.stack = stack;
    }

    fn store(&mut self, arena: &Arena, e: ExprId, word: &[Lit]) -> Span {
        let node = arena.node(e);
        let span = Span {
            float: self.inexact.contains(&e)
                || node.children().any(|child| self.spans[&child].float),
            start: u32::try_from(self.pool.len()).expect("the clause limit is far below"),
            width: word.len() as u32,
        };
        self.pool.extend_from_slice(word);
        self.spans.insert(e, span);
        span
    }

    fn translate_node(&mut self, arena: &Arena, e: ExprId) -> Word {
        let width = arena.width(e) as usize;
        match arena.node(e) {
            Node::Constant { .. } | Node::WideConstant { .. } => constant_word(arena, e),
            Node::Read { array, index } => {
                let word = self.gates.fresh_word(width);
                let span = self.store(arena, e, &word);
                self.inputs.insert(Variable { array, index }, span);
                word
            }
            Node::Not { e } => not_word(self.bits(e)),
            Node::Binary { op, a, b } => self.binary(arena, e, op, a, b),
            Node::Compare { op, a, b } => vec![self.compare(op, a, b)],
            Node::Ite { c, a, b } => {
                let (yes, no) = (self.word(a), self.word(b));
                self.gates.mux_word(self.bits(c)[0], &yes, &no)
            }
            Node::Select { table, index } => {
                let (_, entries) = arena.table(table);
                let index = self.word(index);
                self.gates.select(&index, &entries, width)
            }
            Node::Extract { e, low } => self.bits(e)[low as usize..low as usize + width].to_vec(),
            Node::Concat { hi, lo } => [self.bits(lo), self.bits(hi)].concat(),
            Node::ZeroExtend { e } => extended(self.word(e), width, FALSE),
            Node::SignExtend { e } => {
                let sign = self.bits(e).last().copied().unwrap_or(FALSE);
                extended(self.word(e), width, sign)
            }
            node => {
                debug_assert!(is_float(&node));
                self.exact_float(node, width).unwrap_or_else(|| {
                    // Unconstrained: sound for `Unsat`, and models are checked by evaluation.
                    self.inexact.insert(e);
                    self.gates.fresh_word(width)
                })
            }
        }
    }

    /// Returns the circuit of a float operation, if there is one.
    fn exact_float(&mut self, node: Node, width: usize) -> Option<Word> {
        match node {
            Node::FloatBinary { op, format, a, b } => {
                let (x, y) = (self.word(a), self.word(b));
                self.gates.float_binary(op, format, &x, &y)
            }
            Node::FloatUnary { op, format, e } => {
                let word = self.word(e);
                match op {
                    FloatUnaryOp::Sqrt => self.gates.float_root(format, &word),
                    FloatUnaryOp::RoundToIntegral(mode) => {
                        Some(self.gates.integral_float(mode, format, &word))
                    }
                }
            }
            Node::FloatCompare { op, format, a, b } => {
                let (x, y) = (self.word(a), self.word(b));
                Some(vec![self.gates.compare_floats(op, format, &x, &y)])
            }
            Node::FloatFromInt { signed, format, e } => {
                let word = self.word(e);
                Some(self.gates.float_from_integer(signed, format, &word))
            }
            Node::FloatToInt { signed, format, e } => {
                let word = self.word(e);
                Some(self.gates.float_to_integer(signed, format, &word, width))
            }
            Node::FloatConvert { from, to, e } => {
                let word = self.word(e);
                Some(self.gates.converted_float(from, to, &word))
            }
            _ => None,
        }
    }

    fn binary(&mut self, arena: &Arena, e: ExprId, op: BinaryOp, a: ExprId, b: ExprId) -> Word {
        let (mut x, mut y) = (self.word(a), self.word(b));
        let width = x.len();
        if matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul) {
            // Lower bits do not depend on higher ones, and the highest are known to be 0.
            let needed = known_length(arena, e);
            x.truncate(needed);
            y.truncate(needed);
        }
        let word = match op {
            BinaryOp::Add => self.gates.add(&x, &y),
            BinaryOp::Sub => self.gates.sub(&x, &y),
            BinaryOp::Mul => self.gates.multiply(&x, &y),
            BinaryOp::UDiv => self.division(a, b, false).0,
            BinaryOp::URem => self.division(a, b, false).1,
            BinaryOp::SDiv => self.division(a, b, true).0,
            BinaryOp::SRem => self.division(a, b, true).1,
            BinaryOp::And => self.gates.and_word(&x, &y),
            BinaryOp::Or => self.gates.or_word(&x, &y),
            BinaryOp::Xor => self.gates.xor_word(&x, &y),
            BinaryOp::Shl => self.gates.shift_left(&x, &y),
            BinaryOp::LShr => self.gates.shift_right(&x, &y, FALSE),
            BinaryOp::AShr => {
                let sign = x.last().copied().unwrap_or(FALSE);
                self.gates.shift_right(&x, &y, sign)
            }
        };
        extended(word, width, FALSE)
    }

    fn division(&mut self, a: ExprId, b: ExprId, signed: bool) -> (Word, Word) {
        if let Some(known) = self.divisions.get(&(a, b, signed)) {
            return known.clone();
        }
        let (x, y) = (self.word(a), self.word(b));
        let result = if signed {
            self.gates.divide_signed(&x, &y)
        } else {
            self.gates.divide(&x, &y)
        };
        self.divisions.insert((a, b, signed), result.clone());
        result
    }

    fn compare(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> Lit {
        let (x, y) = (self.word(a), self.word(b));
        match op {
            CompareOp::Eq => self.gates.equal(&x, &y),
            CompareOp::Ult => self.gates.less(&x, &y, FALSE),
            CompareOp::Ule => self.gates.less(&x, &y, TRUE),
            CompareOp::Slt => self.gates.less_signed(&x, &y, FALSE),
            CompareOp::Sle => self.gates.less_signed(&x, &y, TRUE),
        }
    }
}

fn is_float(node: &Node) -> bool {
    matches!(
        node,
        Node::FloatBinary { .. }
            | Node::FloatUnary { .. }
            | Node::FloatCompare { .. }
            | Node::FloatConvert { .. }
            | Node::FloatFromInt { .. }
            | Node::FloatToInt { .. }
    )
}

/// Returns the number of bits of a term up to the highest one that is not known to be 0.
fn known_length(arena: &Arena, e: ExprId) -> usize {
    match arena.width(e) {
        0..=64 => 64 - arena.unsigned_range(e).1.leading_zeros() as usize,
        width => width as usize,
    }
}

/// Replaces the bits of a word that are known by constants, so that circuits that use it fold them.
fn set_known_bits(arena: &Arena, e: ExprId, word: &mut [Lit]) {
    if word.len() > 64 || arena.is_const(e) {
        return;
    }
    let (zeros, ones) = arena.known_bits(e);
    for (position, lit) in word.iter_mut().enumerate() {
        if zeros >> position & 1 == 1 {
            *lit = FALSE;
        } else if ones >> position & 1 == 1 {
            *lit = TRUE;
        }
    }
}

fn extended(mut word: Word, width: usize, fill: Lit) -> Word {
    word.resize(width, fill);
    word
}

fn constant_word(arena: &Arena, e: ExprId) -> Word {
    let limbs = arena.as_const_limbs(e).unwrap_or_default();
    let bit = |position: u32| limbs[position as usize / 64] >> (position % 64) & 1 == 1;
    (0..arena.width(e))
        .map(|position| if bit(position) { TRUE } else { FALSE })
        .collect()
}
