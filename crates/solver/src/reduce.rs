//! Rewrites a query to an easier one that has a solution if and only if the query has one: bytes
//! that must be equal become one byte, bits that are the same in all values that a byte may have
//! become constants, and what one constraint says of a part of another one is put in its place. A
//! circuit is built after that, so it is smaller; and much of what is left to prove has become
//! evident.

use everett_expr::{Arena, CompareOp, EvalScratch, ExprId, Node, Support, Variable};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::HashMap;

use crate::bytes::{ByteSet, ByteTables};
use crate::domains::Domains;
use crate::model::Model;

/// Maximum number of bytes and of terms of a query that is rewritten.
const MAX_VARIABLES: usize = 256;
const MAX_TERMS: usize = 2048;
/// Maximum number of times that facts are put in place: each can lead to others.
const MAX_ROUNDS: usize = 3;
/// Maximum number of equations that are put in place in one round.
const MAX_EQUATIONS: usize = 16;
/// Maximum number of choices in one side of an equation that is divided into cases.
const MAX_CHOICES: usize = 16;

/// A query that was rewritten.
pub struct Reduced {
    /// The terms that must hold.
    pub terms: Vec<ExprId>,
    /// What took the place of each byte that was replaced; a term over bytes that were not.
    replaced: FxHashMap<Variable, ExprId>,
    is_unchanged: bool,
}

impl Reduced {
    /// Rewrites a query with these terms over these bytes; `None` if it is too large.
    pub fn of(
        arena: &mut Arena,
        tables: &mut ByteTables,
        terms: &[ExprId],
        variables: &[Variable],
    ) -> Option<Reduced> {
        if terms.len() > MAX_TERMS || variables.len() > MAX_VARIABLES {
            return None;
        }
        let mut reduced = Reduced {
            terms: terms.to_vec(),
            replaced: FxHashMap::default(),
            is_unchanged: false,
        };
        reduced.place_all(arena);
        reduced.fix_bits(arena, tables, variables);
        reduced.place_all(arena);
        reduced.divide_equations(arena);
        reduced.is_unchanged = reduced.terms == terms;
        Some(reduced)
    }

    /// Returns a query as it is.
    pub fn unchanged(terms: Vec<ExprId>) -> Reduced {
        Reduced {
            terms,
            replaced: FxHashMap::default(),
            is_unchanged: true,
        }
    }

    /// Returns whether the terms are those of the query, in their order.
    pub fn is_unchanged(&self) -> bool {
        self.is_unchanged
    }

    /// Returns whether a term is known to be false, so that there is no solution.
    pub fn is_refuted(&self, arena: &Arena) -> bool {
        self.terms.iter().any(|&e| arena.is_false(e))
    }

    /// Returns the value of a byte of the query in the solution with these values of the bytes that
    /// were not replaced.
    pub fn value(
        &self,
        arena: &Arena,
        scratch: &mut EvalScratch,
        found: &Model,
        variable: Variable,
    ) -> u8 {
        match self.replaced.get(&variable) {
            Some(&e) => arena.eval(e, found, scratch) as u8,
            None => found.value(variable),
        }
    }

    /// Puts what the terms say in place in each other, until nothing changes.
    fn place_all(&mut self, arena: &mut Arena) {
        for _ in 0..MAX_ROUNDS {
            let before = self.terms.clone();
            self.join_equal_bytes(arena);
            self.place_facts(arena);
            self.place_equations(arena);
            if self.terms == before {
                return;
            }
        }
    }

    /// Replaces a byte that a term equates with another one by that one.
    fn join_equal_bytes(&mut self, arena: &mut Arena) {
        let mut joined: FxHashMap<Variable, Variable> = FxHashMap::default();
        for &e in &self.terms {
            for (one, other) in equal_bytes(arena, e) {
                let (one, other) = (first_of(&joined, one), first_of(&joined, other));
                // The order that no other path influences.
                if arena.variable_order(one) < arena.variable_order(other) {
                    joined.insert(other, one);
                } else if one != other {
                    joined.insert(one, other);
                }
            }
        }
        let mut replaced = FxHashMap::default();
        for &variable in joined.keys() {
            let first = first_of(&joined, variable);
            replaced.insert(variable, arena.read(first.array, first.index));
        }
        self.replace(arena, replaced);
    }

    /// Replaces the bits of bytes that are the same in all values that a byte may have.
    fn fix_bits(&mut self, arena: &mut Arena, tables: &mut ByteTables, variables: &[Variable]) {
        let kept = variables
            .iter()
            .copied()
            .filter(|variable| !self.replaced.contains_key(variable));
        let support = Support::from_variables(kept.collect());
        let domains = Domains::of(arena, tables, self.terms.iter().copied(), &support, true);
        if domains.combinations == 0 {
            self.terms = vec![arena.bool_constant(false)];
            return;
        }
        let mut replaced = FxHashMap::default();
        for (&variable, allowed) in domains.variables.iter().zip(domains.allowed()) {
            let byte = arena.read(variable.array, variable.index);
            let narrowed = narrowed(arena, byte, *allowed);
            if narrowed != byte {
                replaced.insert(variable, narrowed);
            }
        }
        self.replace(arena, replaced);
    }

    /// Puts terms in the place of bytes.
    fn replace(&mut self, arena: &mut Arena, replaced: FxHashMap<Variable, ExprId>) {
        if replaced.is_empty() {
            return;
        }
        let places = replaced.iter();
        let places = places.map(|(one, &e)| (arena.read(one.array, one.index), e));
        let map: HashMap<ExprId, ExprId> = places.collect();
        for e in self.terms.iter_mut().chain(self.replaced.values_mut()) {
            *e = arena.substitute(*e, &map);
        }
        self.replaced.extend(replaced);
    }

    /// Replaces what other terms fix: the terms themselves and their complements by truth values,
    /// and terms that are equal to a constant by the constant.
    ///
    /// No term is replaced by what itself says. Two terms cannot replace parts of one another
    /// unless they contradict each other: each would have to be a part of the other.
    fn place_facts(&mut self, arena: &mut Arena) {
        self.split(arena);
        let mut facts: FxHashMap<ExprId, (usize, ExprId)> = FxHashMap::default();
        for (at, &e) in self.terms.iter().enumerate() {
            for (part, value) in facts_of(arena, e) {
                facts.entry(part).or_insert((at, value));
            }
        }
        for (at, e) in self.terms.iter_mut().enumerate() {
            *e = arena.substitute_with(*e, |part| {
                let fact = facts.get(&part).filter(|(from, _)| *from != at);
                fact.map(|&(_, value)| value)
            });
        }
    }

    /// Replaces the larger side of each equation by the smaller one in all other terms, one
    /// equation after the other.
    fn place_equations(&mut self, arena: &mut Arena) {
        let mut left = MAX_EQUATIONS;
        for at in 0..self.terms.len() {
            let Some((small, large)) = sides_of(arena, self.terms[at]) else {
                continue;
            };
            if left == 0 {
                return;
            }
            left -= 1;
            let map = HashMap::from([(large, small)]);
            if arena.substitute(small, &map) != small {
                continue;
            }
            for (other, e) in self.terms.iter_mut().enumerate() {
                if other != at {
                    *e = arena.substitute(*e, &map);
                }
            }
        }
    }

    /// Divides equations with one of several terms, such as the content of a slot of a table, into
    /// cases: what is equal is then known as soon as the case is.
    fn divide_equations(&mut self, arena: &mut Arena) {
        for e in &mut self.terms {
            let (equation, is_negated) = match arena.node(*e) {
                Node::Not { e } => (e, true),
                _ => (*e, false),
            };
            let Some((a, b)) = sides_of(arena, equation) else {
                continue;
            };
            let is_choice = |e| matches!(arena.node(e), Node::Ite { .. });
            let divided = match (is_choice(a), is_choice(b)) {
                (false, true) => equal_to_one(arena, a, b, &mut { MAX_CHOICES }),
                (true, false) => equal_to_one(arena, b, a, &mut { MAX_CHOICES }),
                _ => None,
            };
            match divided {
                Some(divided) if is_negated => *e = arena.not(divided),
                Some(divided) => *e = divided,
                None => {}
            }
        }
    }

    /// Divides conjunctions into their parts, and drops terms that are true or there already.
    fn split(&mut self, arena: &mut Arena) {
        let mut pending: Vec<ExprId> = self.terms.drain(..).rev().collect();
        let mut seen = FxHashSet::default();
        while let Some(e) = pending.pop() {
            match crate::constraints::conjuncts(arena, e) {
                Some((first, second)) => pending.extend([second, first]),
                None if arena.is_true(e) => {}
                None if seen.insert(e) => self.terms.push(e),
                None => {}
            }
        }
    }
}

/// Returns the byte that a byte is replaced by.
fn first_of(joined: &FxHashMap<Variable, Variable>, mut variable: Variable) -> Variable {
    while let Some(&before) = joined.get(&variable) {
        variable = before;
    }
    variable
}

/// Returns the sides of an equation without constants, the smaller one first.
fn sides_of(arena: &Arena, e: ExprId) -> Option<(ExprId, ExprId)> {
    match arena.node(e) {
        Node::Compare {
            op: CompareOp::Eq,
            a,
            b,
        } if !arena.is_const(a) && !arena.is_const(b) => Some((a, b)),
        _ => None,
    }
}

/// Returns that `x` is equal to the term that `choice` chooses; `None` if there are too many.
fn equal_to_one(arena: &mut Arena, x: ExprId, choice: ExprId, left: &mut usize) -> Option<ExprId> {
    let Node::Ite { c, a, b } = arena.node(choice) else {
        return Some(arena.eq(x, choice));
    };
    *left = left.checked_sub(1)?;
    let a = equal_to_one(arena, x, a, left)?;
    let b = equal_to_one(arena, x, b, left)?;
    Some(arena.ite(c, a, b))
}

/// Returns the pairs of bytes that a term equates.
fn equal_bytes(arena: &Arena, e: ExprId) -> Vec<(Variable, Variable)> {
    let Node::Compare {
        op: CompareOp::Eq,
        a,
        b,
    } = arena.node(e)
    else {
        return Vec::new();
    };
    match (bytes_of(arena, a), bytes_of(arena, b)) {
        (Some(a), Some(b)) => a.into_iter().zip(b).collect(),
        _ => Vec::new(),
    }
}

/// Returns the bytes that a term consists of, the most significant first; `None` if it has other
/// parts.
fn bytes_of(arena: &Arena, e: ExprId) -> Option<Vec<Variable>> {
    let (mut bytes, mut pending) = (Vec::new(), vec![e]);
    while let Some(e) = pending.pop() {
        match arena.node(e) {
            Node::Read { array, index } => bytes.push(Variable { array, index }),
            Node::Concat { hi, lo } => pending.extend([lo, hi]),
            _ => return None,
        }
    }
    Some(bytes)
}

/// Returns what a term that holds says of its parts: a part, and a constant that it is equal to.
fn facts_of(arena: &mut Arena, e: ExprId) -> Vec<(ExprId, ExprId)> {
    let mut facts = vec![(e, arena.bool_constant(true))];
    match arena.node(e) {
        Node::Not { e } => facts.push((e, arena.bool_constant(false))),
        Node::Compare {
            op: CompareOp::Eq,
            a,
            b,
        } if arena.is_const(b) && !arena.is_const(a) => facts.push((a, b)),
        Node::Compare { .. } => {
            let opposite = arena.not(e);
            facts.push((opposite, arena.bool_constant(false)));
        }
        _ => {}
    }
    facts
}

/// Returns a byte with constants for the bits that all allowed values have in common.
fn narrowed(arena: &mut Arena, byte: ExprId, allowed: ByteSet) -> ExprId {
    let (mut ones, mut zeros) = (u8::MAX, u8::MAX);
    for value in allowed.iter() {
        ones &= value;
        zeros &= !value;
    }
    let known = ones | zeros;
    let mut narrowed: Option<ExprId> = None;
    let mut low = 0;
    while low < 8 {
        let is_known = known >> low & 1;
        let run = (low..8).take_while(|at| known >> at & 1 == is_known);
        let width = run.count() as u32;
        let part = match is_known {
            1 => arena.constant(width, u64::from(ones) >> low),
            _ => arena.extract(byte, low, width),
        };
        narrowed = Some(match narrowed {
            Some(below) => arena.concat(part, below),
            None => part,
        });
        low += width;
    }
    narrowed.unwrap_or(byte)
}
