//! Searches for a solution of a comparison by bisection. Most terms that programs compare, floats
//! above all, are monotonic in each number that they are computed from. A term need not be: every
//! solution that is found is checked by evaluation.

use everett_expr::{Arena, ArrayId, CompareOp, EvalScratch, ExprId, Node, Variable};
use std::cmp::Ordering;

use crate::domains::Domains;
use crate::model::Model;

/// Maximum number of words that are varied.
const MAX_WORDS: usize = 24;
/// Maximum number of terms evaluated by one bisection.
const MAX_EVALUATIONS: u64 = 1 << 18;

/// The two sides of a comparison, and how their bits are ordered.
struct Comparison {
    a: ExprId,
    b: ExprId,
    /// Whether the sides are floats, whose highest bit is a sign.
    is_float: bool,
    is_signed: bool,
}

impl Comparison {
    /// Returns the comparison that a condition is. Whether the sides of an equation are signed is not
    /// known, so there are two.
    fn of(arena: &Arena, mut condition: ExprId) -> Vec<Comparison> {
        while let Node::Not { e } = arena.node(condition) {
            condition = e;
        }
        let (a, b, is_float, orders): (_, _, _, &[bool]) = match arena.node(condition) {
            Node::Compare { op, a, b } => match op {
                CompareOp::Eq => (a, b, false, &[false, true]),
                CompareOp::Slt | CompareOp::Sle => (a, b, false, &[true]),
                CompareOp::Ult | CompareOp::Ule => (a, b, false, &[false]),
            },
            Node::FloatCompare { a, b, .. } => (a, b, true, &[true]),
            _ => return Vec::new(),
        };
        if arena.width(a) > 128 {
            return Vec::new();
        }
        let comparison = |&is_signed: &bool| Comparison {
            a,
            b,
            is_float,
            is_signed,
        };
        orders.iter().map(comparison).collect()
    }

    /// Returns a number that has the same order as the value of a side.
    fn key(&self, width: u32, limbs: &[u64]) -> u128 {
        let high = limbs.get(1).copied().unwrap_or(0);
        let bits = u128::from(limbs[0]) | u128::from(high) << 64;
        let sign = 1u128 << (width - 1);
        match (bits & sign != 0, self.is_float) {
            (true, true) => (sign << 1).wrapping_sub(1) & !bits,
            _ if self.is_signed => bits ^ sign,
            _ => bits,
        }
    }
}

/// A value of a word: the number of its first byte, its size in bytes, and the value.
#[derive(Clone, Copy)]
struct Word {
    first: usize,
    size: usize,
    value: u64,
}

/// The search for values of the bytes in `domains`. All other bytes have the values of the model.
pub struct Bisection<'a> {
    arena: &'a Arena,
    /// The terms that must hold; the condition is the first.
    terms: &'a [ExprId],
    domains: &'a Domains,
    model: &'a Model,
    scratch: &'a mut EvalScratch,
    /// The current values of the varied bytes.
    values: Vec<u8>,
}

impl<'a> Bisection<'a> {
    /// Creates a search that starts at the values of the model.
    pub fn new(
        arena: &'a Arena,
        terms: &'a [ExprId],
        domains: &'a Domains,
        model: &'a Model,
        scratch: &'a mut EvalScratch,
    ) -> Bisection<'a> {
        let variables = domains.variables.iter();
        Bisection {
            arena,
            terms,
            domains,
            model,
            scratch,
            values: variables.map(|&one| model.value(one)).collect(),
        }
    }

    /// Returns values of the bytes under which all terms hold.
    pub fn run(&mut self) -> Option<Vec<u8>> {
        let comparisons = Comparison::of(self.arena, *self.terms.first()?);
        let start = self.values.clone();
        comparisons.iter().find_map(|comparison| {
            self.values.clone_from(&start);
            let found = self.approach(comparison);
            found.or_else(|| {
                self.values.clone_from(&start);
                self.climb(comparison)
            })
        })
    }

    /// Varies one word after the other. If no value of a word is a solution, the word keeps the end
    /// of its range that brings the sides nearest to each other.
    fn approach(&mut self, comparison: &Comparison) -> Option<Vec<u8>> {
        let end = self.scratch.evaluated() + MAX_EVALUATIONS;
        for (first, size) in self.words() {
            let mut nearest = None;
            for (low, high) in intervals(size) {
                if self.scratch.evaluated() > end {
                    return None;
                }
                let word = |value| Word { first, size, value };
                let found = self.between(comparison, word(low), word(high), &mut nearest);
                if found.is_some() {
                    return found;
                }
            }
            self.keep(comparison, nearest);
        }
        None
    }

    /// Varies one word after the other as far as the other terms allow: a sum of three numbers
    /// with bounds may need all three of them.
    fn climb(&mut self, comparison: &Comparison) -> Option<Vec<u8>> {
        if !self.allows_others(None) {
            return None;
        }
        let end = self.scratch.evaluated() + MAX_EVALUATIONS;
        for (first, size) in self.words() {
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(&self.values[first..first + size]);
            let value = u64::from_le_bytes(bytes);
            let word = |value| Word { first, size, value };
            let mut nearest = None;
            let around = intervals(size).into_iter();
            for (low, high) in around.filter(|(low, high)| (*low..=*high).contains(&value)) {
                for limit in [low, high] {
                    if self.scratch.evaluated() > end {
                        return None;
                    }
                    let furthest = word(self.furthest(word(value), limit));
                    let (low, high) = match limit < value {
                        true => (furthest, word(value)),
                        false => (word(value), furthest),
                    };
                    let found = self.between(comparison, low, high, &mut nearest);
                    if found.is_some() {
                        return found;
                    }
                }
            }
            self.keep(comparison, nearest);
        }
        None
    }

    /// Sets a word to a value if that brings the sides nearer to each other.
    fn keep(&mut self, comparison: &Comparison, nearest: Option<(u128, Word)>) {
        let (_, distance) = self.order(comparison, None);
        if let Some((nearer, word)) = nearest
            && nearer < distance
        {
            self.values = self.values_with(Some(word));
        }
    }

    /// Returns the value of a word that is nearest to `limit` and allowed by the terms other than
    /// the condition, if they allow an interval of values.
    fn furthest(&mut self, word: Word, limit: u64) -> u64 {
        if self.allows_others(Some(Word {
            value: limit,
            ..word
        })) {
            return limit;
        }
        let (mut good, mut bad) = (word.value, limit);
        while good.abs_diff(bad) > 1 {
            let value = good.min(bad) + good.abs_diff(bad) / 2;
            match self.allows_others(Some(Word { value, ..word })) {
                true => good = value,
                false => bad = value,
            }
        }
        good
    }

    /// Returns the words that adjacent bytes form, each as the number of its first byte and its
    /// size, the largest first.
    fn words(&self) -> Vec<(usize, usize)> {
        let variables = &self.domains.variables;
        let mut words = Vec::new();
        let mut start = 0;
        while start < variables.len() {
            let follows = |at: usize| {
                let (before, here) = (variables[at - 1], variables[at]);
                before.array == here.array && before.index + 1 == here.index
            };
            let end = (start + 1..variables.len()).find(|&at| !follows(at));
            let end = end.unwrap_or(variables.len());
            for size in [8, 4, 2, 1] {
                let firsts = (start..end)
                    .step_by(size)
                    .filter(|first| first + size <= end);
                words.extend(firsts.map(|first| (first, size)));
            }
            start = end;
        }
        words.truncate(MAX_WORDS);
        words
    }

    /// Bisects between two values of a word for the point where the order of the sides changes.
    /// `nearest` is updated to the possible value with the least distance between the sides, and
    /// that distance.
    fn between(
        &mut self,
        comparison: &Comparison,
        mut low: Word,
        mut high: Word,
        nearest: &mut Option<(u128, Word)>,
    ) -> Option<Vec<u8>> {
        for end in [low, high] {
            if let Some(found) = self.holds(end) {
                return Some(found);
            }
        }
        let (at_low, from_low) = self.order(comparison, Some(low));
        let (at_high, from_high) = self.order(comparison, Some(high));
        for (distance, end) in [(from_low, low), (from_high, high)] {
            let is_nearer = nearest.is_none_or(|(nearest, _)| distance < nearest);
            if is_nearer && self.domains.allows(&self.values_with(Some(end))) {
                *nearest = Some((distance, end));
            }
        }
        if at_low == at_high {
            return None;
        }
        while high.value - low.value > 1 {
            let value = low.value + (high.value - low.value) / 2;
            let middle = Word { value, ..low };
            if let Some(found) = self.holds(middle) {
                return Some(found);
            }
            match self.order(comparison, Some(middle)).0 == at_low {
                true => low = middle,
                false => high = middle,
            }
        }
        None
    }

    /// Returns the values of all varied bytes, with a word set to a value.
    fn values_with(&self, word: Option<Word>) -> Vec<u8> {
        let mut values = self.values.clone();
        if let Some(Word { first, size, value }) = word {
            values[first..first + size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
        values
    }

    fn value(&self, values: &[u8], array: ArrayId, index: u32) -> u8 {
        let variable = Variable { array, index };
        let number = self.domains.number(variable);
        number.map_or_else(|| self.model.value(variable), |number| values[number])
    }

    /// Returns the order of the sides and their distance, with a word set to a value.
    fn order(&mut self, comparison: &Comparison, word: Option<Word>) -> (Ordering, u128) {
        let values = self.values_with(word);
        let mut scratch = std::mem::take(self.scratch);
        let byte = |array, index| self.value(&values, array, index);
        let mut key = |side| {
            let limbs = self.arena.eval_limbs(side, &byte, &mut scratch);
            comparison.key(self.arena.width(side), &limbs)
        };
        let (a, b) = (key(comparison.a), key(comparison.b));
        *self.scratch = scratch;
        (a.cmp(&b), a.abs_diff(b))
    }

    /// Returns the values of all bytes with a word set to a value, if all terms hold under them.
    fn holds(&mut self, word: Word) -> Option<Vec<u8>> {
        let values = self.values_with(Some(word));
        let all = self.domains.allows(&values) && self.evaluate(self.terms, &values);
        all.then_some(values)
    }

    /// Returns whether all terms but the condition hold, with a word set to a value.
    fn allows_others(&mut self, word: Option<Word>) -> bool {
        let values = self.values_with(word);
        self.domains.allows(&values) && self.evaluate(&self.terms[1..], &values)
    }

    /// Returns whether terms hold under values of the bytes.
    fn evaluate(&mut self, terms: &[ExprId], values: &[u8]) -> bool {
        let mut scratch = std::mem::take(self.scratch);
        let byte = |array, index| self.value(values, array, index);
        let mut terms = terms.iter();
        let all = terms.all(|&e| self.arena.eval_bool(e, &byte, &mut scratch));
        *self.scratch = scratch;
        all
    }
}

/// Returns the ranges of a word's values in which numbers are ordered: unsigned integers, integers
/// of each sign, and floats of each sign.
fn intervals(size: usize) -> Vec<(u64, u64)> {
    let most = u64::MAX >> (64 - 8 * size);
    let half = most / 2;
    let mut intervals = vec![(0, half), (half + 1, most), (0, most)];
    let infinity = match size {
        8 => f64::INFINITY.to_bits(),
        4 => u64::from(f32::INFINITY.to_bits()),
        _ => return intervals,
    };
    intervals.extend([(0, infinity), (half + 1, half + 1 + infinity)]);
    intervals
}
