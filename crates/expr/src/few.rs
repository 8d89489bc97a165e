//! The values that a term can have, where these are few.

use crate::arena::Arena;
use crate::eval::EvalScratch;
use crate::node::{ExprId, Node};
use crate::scalar;
use std::collections::{BTreeSet, HashMap};

/// Maximum number of subterms of a term, and of one that is evaluated for all values of its byte.
const MAX_VISITS: usize = 256;
const MAX_EVALUATED: usize = 64;
/// Maximum number of subterms that are evaluated in a computation, and of pairs of values that are
/// combined at a subterm: an access asks for each of its offsets.
const MAX_EVALUATIONS: usize = 4;
const MAX_PAIRS: usize = 256;

/// A computation of values.
struct Search<'a> {
    arena: &'a Arena,
    scratch: EvalScratch,
    known: HashMap<ExprId, Option<BTreeSet<u64>>>,
    /// Maximum number of values of a subterm.
    most: usize,
    /// Number of subterms that were evaluated for all values of their byte.
    evaluations: usize,
}

impl Arena {
    /// Returns a set of values, at most `most`, which contains all values that a term can have.
    /// `None` if there are more, or if the term is too large.
    pub fn few_values(&self, e: ExprId, most: usize) -> Option<BTreeSet<u64>> {
        let mut search = Search {
            arena: self,
            scratch: EvalScratch::new(),
            known: HashMap::new(),
            most,
            evaluations: 0,
        };
        search.of(e)
    }
}

impl Search<'_> {
    fn of(&mut self, e: ExprId) -> Option<BTreeSet<u64>> {
        if let Some(known) = self.known.get(&e) {
            return known.clone();
        }
        if self.arena.width(e) > 64 || self.known.len() > MAX_VISITS {
            return None;
        }
        // Also the mark that it was visited: each level of the recursion makes one.
        self.known.insert(e, None);
        let values = self.combinations(e).and_then(|values| self.limited(values));
        let values = values.or_else(|| self.evaluated(e));
        self.known.insert(e, values.clone());
        values
    }

    /// Returns the values by those of the operands.
    fn combinations(&mut self, e: ExprId) -> Option<BTreeSet<u64>> {
        let width = self.arena.width(e);
        let mask = scalar::mask(width);
        Some(match self.arena.node(e) {
            Node::Constant { bits } => BTreeSet::from([bits]),
            Node::Ite { a, b, .. } => {
                let mut values = self.of(a)?;
                values.extend(self.of(b)?);
                values
            }
            Node::Select { table, .. } => {
                let (_, entries) = self.arena.table(table);
                let mut values = BTreeSet::new();
                for &entry in entries.iter() {
                    values.insert(entry);
                    if values.len() > self.most {
                        return None;
                    }
                }
                values
            }
            Node::Not { e } => self.mapped(e, |x| !x & mask)?,
            Node::Extract { e, low } => self.mapped(e, |x| x >> low & mask)?,
            Node::ZeroExtend { e } => self.of(e)?,
            Node::SignExtend { e } => {
                let from = self.arena.width(e);
                self.mapped(e, |x| scalar::to_signed(from, x) as u64 & mask)?
            }
            Node::Concat { hi, lo } => {
                let low = self.arena.width(lo);
                self.combined(hi, lo, |x, y| x << low | y)?
            }
            Node::Binary { op, a, b } => {
                self.combined(a, b, |x, y| scalar::binary(op, width, x, y))?
            }
            _ if width == 1 => BTreeSet::from([0, 1]),
            _ => return None,
        })
    }

    /// Returns the values for all values of the one byte that a small term depends on.
    fn evaluated(&mut self, e: ExprId) -> Option<BTreeSet<u64>> {
        if self.evaluations == MAX_EVALUATIONS || matches!(self.arena.node(e), Node::Read { .. }) {
            return None;
        }
        self.arena.single_byte_support(e)?;
        let (mut seen, mut stack) = (BTreeSet::from([e]), vec![e]);
        while let Some(e) = stack.pop() {
            let children = self.arena.node(e).children();
            stack.extend(children.filter(|&child| seen.insert(child)));
            if seen.len() > MAX_EVALUATED {
                return None;
            }
        }
        self.evaluations += 1;
        let mask = scalar::mask(self.arena.width(e));
        let values = (0..=u8::MAX).map(|byte| {
            let value = self.arena.eval(e, &|_, _| byte, &mut self.scratch);
            value & mask
        });
        let values = values.collect();
        self.limited(values)
    }

    fn limited(&self, values: BTreeSet<u64>) -> Option<BTreeSet<u64>> {
        (values.len() <= self.most).then_some(values)
    }

    fn mapped(&mut self, e: ExprId, map: impl Fn(u64) -> u64) -> Option<BTreeSet<u64>> {
        Some(self.of(e)?.into_iter().map(map).collect())
    }

    fn combined(
        &mut self,
        a: ExprId,
        b: ExprId,
        combine: impl Fn(u64, u64) -> u64,
    ) -> Option<BTreeSet<u64>> {
        let (a, b) = (self.of(a)?, self.of(b)?);
        if a.len() * b.len() > MAX_PAIRS {
            return None;
        }
        let combine = &combine;
        let pairs = a
            .iter()
            .flat_map(|&x| b.iter().map(move |&y| combine(x, y)));
        Some(pairs.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::BinaryOp;
    use proptest::prelude::*;

    #[test]
    fn choices_and_bits_have_few_values() {
        let mut arena = Arena::new();
        let input = arena.array(0, "input", 4);
        let bytes: Vec<ExprId> = (0..4).map(|at| arena.read(input, at)).collect();
        let word = arena.concat_bytes(&bytes);
        assert_eq!(arena.few_values(word, 64), None);
        assert_eq!(arena.few_values(bytes[0], 64), None);
        let nibble = arena.extract(bytes[0], 4, 4);
        assert_eq!(arena.few_values(nibble, 64), Some((0..16).collect()));
        let (wide, other) = (arena.zext(bytes[1], 32), arena.zext(bytes[2], 32));
        let product = arena.mul(wide, other);
        let condition = arena.ult(word, product);
        let (one, other) = (arena.constant(64, 8188), arena.constant(64, 4));
        let index = arena.ite(condition, one, other);
        let wide = arena.zext(nibble, 64);
        let sum = arena.add(index, wide);
        let expected: BTreeSet<u64> = (4..20).chain(8188..8204).collect();
        assert_eq!(arena.few_values(sum, 64), Some(expected));
        assert_eq!(arena.few_values(sum, 16), None);
    }

    proptest! {
        /// No value is missing.
        #[test]
        fn all_values_are_found(
            steps in prop::collection::vec((0u8..20, any::<u8>(), any::<u8>(), any::<u64>()), 1..12),
            values in any::<[u8; 3]>(),
        ) {
            let mut arena = Arena::new();
            let input = arena.array(0, "input", 3);
            let mut all: Vec<ExprId> = Vec::new();
            for at in 0..3 {
                let byte = arena.read(input, at);
                let few = arena.extract(byte, 0, 2);
                all.push(arena.zext(few, 64));
            }
            for (operation, first, second, bits) in steps {
                let (a, b) = (
                    all[usize::from(first) % all.len()],
                    all[usize::from(second) % all.len()],
                );
                let term = match operation {
                    0..13 => arena.binary(BinaryOp::ALL[usize::from(operation)], a, b),
                    13 => arena.not(a),
                    14 | 15 => {
                        let less = arena.ult(a, b);
                        arena.ite(less, b, a)
                    }
                    16 => arena.constant(64, bits),
                    17 => {
                        let part = arena.extract(a, u32::from(first % 32), 32);
                        arena.sext(part, 64)
                    }
                    18 => {
                        let entries: Vec<u64> = (0..u64::from(second) + 1).map(|at| at.wrapping_mul(bits) % 7).collect();
                        arena.select(64, &entries, a)
                    }
                    _ => {
                        let (high, low) = (arena.extract(a, 0, 32), arena.extract(b, 0, 32));
                        arena.concat(high, low)
                    }
                };
                all.push(term);
            }
            let mut scratch = EvalScratch::new();
            for e in all {
                let value = arena.eval(e, &|_, at: u32| values[at as usize], &mut scratch);
                if let Some(few) = arena.few_values(e, 64) {
                    prop_assert!(few.contains(&value), "{value} is not in {few:?}");
                }
            }
        }
    }
}
