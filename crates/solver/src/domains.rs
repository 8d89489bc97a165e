//! The values that a query leaves possible for each byte, computed from terms over single bytes and
//! from bounds on integers that several bytes form.

use crate::bytes::{ByteSet, ByteTables, Classes, ONE_CLASS, refined, single_byte};
use everett_expr::{Arena, CompareOp, ExprId, Node, Support, Variable, scalar};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;

/// With more combinations than this, terms are walked to see which values of a byte they
/// distinguish.
const MANY: u64 = 1 << 12;
/// Maximum number of bytes, and of parts of terms, in such a walk.
const MAX_CLASSIFIED: usize = 16;
const MAX_WALKED: usize = 1 << 12;

/// The values that each byte may still have.
pub struct Domains {
    /// The bytes, in the order of the arena, which no other path influences.
    pub variables: Vec<Variable>,
    allowed: Vec<ByteSet>,
    /// `allowed` as lists, computed on demand: most queries have too many combinations.
    values: OnceCell<Vec<Vec<u8>>>,
    number: Numbers,
    /// The number of combinations of values.
    pub combinations: u64,
    /// Terms over these bytes alone that the values do not decide, so they must be evaluated.
    pub open: Vec<ExprId>,
    /// Terms over these bytes alone, in their order.
    pub inner: Vec<ExprId>,
    /// Whether some terms contain other bytes, too.
    pub partial: bool,
}

impl Domains {
    /// Computes the values that `terms` leave for the bytes of `support`. Terms with other bytes
    /// are skipped; `all_inside` says that there are none.
    pub fn of(
        arena: &mut Arena,
        tables: &mut ByteTables,
        terms: impl Iterator<Item = ExprId>,
        support: &Support,
        all_inside: bool,
    ) -> Domains {
        let mut variables = support.variables().to_vec();
        if !variables.is_sorted_by_key(|&variable| arena.variable_order(variable)) {
            variables.sort_by_key(|&variable| arena.variable_order(variable));
        }
        let number = Numbers::of(&variables);
        let at = |variable| {
            number
                .get(variable, &variables)
                .expect("a byte of the support")
        };
        let mut allowed = vec![ByteSet::ALL; variables.len()];
        let (mut open, mut inner, mut partial) = (Vec::new(), Vec::new(), false);
        for e in terms {
            if !all_inside && !is_inside(arena, e, support) {
                partial = true;
                continue;
            }
            inner.push(e);
            let table = single_byte(arena, e)
                .and_then(|variable| Some((at(variable), tables.table(arena, e)?)));
            match table {
                Some((at, set)) => allowed[at] = allowed[at].intersection(set),
                None => open.push(e),
            }
        }
        // Bounds depend on the signs of values, which terms over single bytes may have decided.
        for &e in &open {
            narrow(arena, e, &mut |variable, set| {
                let allowed = &mut allowed[at(variable)];
                *allowed = allowed.intersection(set);
                *allowed
            });
        }
        let mut combinations = product(&allowed);
        if combinations > MANY && !partial && variables.len() <= MAX_CLASSIFIED {
            let classes = classes(arena, tables, &open, variables.len(), &at);
            for (set, classes) in allowed.iter_mut().zip(classes) {
                *set = classes.map_or(*set, |classes| set.one_of_each(&classes));
            }
            combinations = product(&allowed);
        }
        Domains {
            combinations,
            allowed,
            values: OnceCell::new(),
            variables,
            number,
            open,
            inner,
            partial,
        }
    }

    /// Returns the number of a byte, if it is one of `variables`.
    pub fn number(&self, variable: Variable) -> Option<usize> {
        self.number.get(variable, &self.variables)
    }

    /// Returns the least value of a byte; 0 if none is allowed.
    pub fn least(&self, number: usize) -> u8 {
        self.allowed[number].first().unwrap_or_default()
    }

    /// Returns whether each byte allows its value.
    pub fn allows(&self, values: &[u8]) -> bool {
        let mut pairs = self.allowed.iter().zip(values);
        pairs.all(|(set, &value)| set.contains(value))
    }

    /// Returns the sets of values of each byte.
    pub fn allowed(&self) -> &[ByteSet] {
        &self.allowed
    }

    /// Returns the values of each byte.
    pub fn values(&self) -> &[Vec<u8>] {
        let lists = || self.allowed.iter().map(|set| set.iter().collect());
        self.values.get_or_init(|| lists().collect())
    }

    /// Advances the digits of a combination to the next one. Digits are positions in the lists of
    /// values.
    pub fn count_up(&self, digits: &mut [usize]) {
        for (digit, all) in digits.iter_mut().zip(self.values()) {
            *digit += 1;
            if *digit < all.len() {
                return;
            }
            *digit = 0;
        }
    }

    /// Stores the values of all bytes in a combination in `values`. For few combinations no lists
    /// of values are made.
    pub fn decode(&self, combination: u64, values: &mut [u8]) {
        let mut rest = combination;
        for (value, set) in values.iter_mut().zip(&self.allowed) {
            let len = set.len();
            *value = set.nth(rest % len);
            rest /= len;
        }
    }
}

/// Up to so many bytes a list is searched faster than a map is made.
const FEW_BYTES: usize = 16;

/// The number of each byte in a list; a map where the list is long.
struct Numbers(Option<FxHashMap<Variable, usize>>);

impl Numbers {
    fn of(variables: &[Variable]) -> Numbers {
        let is_long = variables.len() > FEW_BYTES;
        let numbered = || (0..).zip(variables).map(|(at, &variable)| (variable, at));
        Numbers(is_long.then(|| numbered().collect()))
    }

    fn get(&self, variable: Variable, variables: &[Variable]) -> Option<usize> {
        match &self.0 {
            Some(numbers) => numbers.get(&variable).copied(),
            None => variables.iter().position(|&one| one == variable),
        }
    }
}

fn product(sets: &[ByteSet]) -> u64 {
    let sizes = sets.iter().map(|set| set.len());
    sizes.fold(1, u64::saturating_mul)
}

/// Returns the classes of the values of each byte that the terms do not distinguish, so that one
/// value of each class is enough; `None` for bytes whose values may all differ.
///
/// A term is a function of its largest parts over single bytes: values for which all of these parts
/// are the same are in one class.
fn classes(
    arena: &Arena,
    tables: &mut ByteTables,
    terms: &[ExprId],
    bytes: usize,
    number: &impl Fn(Variable) -> usize,
) -> Vec<Option<Classes>> {
    let mut classes = vec![Some(ONE_CLASS); bytes];
    let mut seen = FxHashSet::default();
    let mut stack = terms.to_vec();
    while let Some(e) = stack.pop() {
        if !seen.insert(e) {
            continue;
        }
        if seen.len() > MAX_WALKED {
            return vec![None; bytes];
        }
        let Some(variable) = single_byte(arena, e) else {
            stack.extend(arena.node(e).children());
            continue;
        };
        let known = &mut classes[number(variable)];
        let of_part = match arena.as_variable(e) {
            Some(_) => None,
            None => tables.classes(arena, e),
        };
        *known = match (known.take(), of_part) {
            (Some(known), Some(part)) => Some(refined(&known, part)),
            _ => None,
        };
    }
    classes
}

/// Returns whether all bytes of a term are in the support.
fn is_inside(arena: &mut Arena, e: ExprId, support: &Support) -> bool {
    if arena.support_mask(e) & !support.mask() != 0 {
        return false;
    }
    match single_byte(arena, e) {
        Some(variable) => support.contains(variable),
        None => {
            let own = arena.support(e);
            own.len() <= support.len() && own.variables().iter().all(|&one| support.contains(one))
        }
    }
}

/// Narrows the bytes of an integer by its comparison with a constant.
fn narrow(arena: &Arena, e: ExprId, keep: &mut dyn FnMut(Variable, ByteSet) -> ByteSet) {
    let Node::Compare { op, a, b } = arena.node(e) else {
        return;
    };
    let (CompareOp::Ult | CompareOp::Slt | CompareOp::Ule | CompareOp::Sle, Some(bound)) =
        (op, arena.as_const(b))
    else {
        return;
    };
    let sign = 1u64 << (arena.width(b) - 1);
    if matches!(op, CompareOp::Slt | CompareOp::Sle)
        && (bound & sign != 0 || !is_not_negative(arena, a, keep))
    {
        return;
    }
    let strict = matches!(op, CompareOp::Ult | CompareOp::Slt);
    if let Some(most) = bound.checked_sub(u64::from(strict)) {
        narrow_to(arena, a, most, keep);
    }
}

/// Returns whether the highest bit of a term is 0 for all allowed values of its highest byte.
fn is_not_negative(
    arena: &Arena,
    e: ExprId,
    keep: &mut dyn FnMut(Variable, ByteSet) -> ByteSet,
) -> bool {
    match arena.node(e) {
        Node::Concat { hi, .. } => is_not_negative(arena, hi, keep),
        Node::ZeroExtend { .. } => true,
        Node::Read { array, index } => {
            let left = keep(Variable { array, index }, ByteSet::ALL);
            left.iter().all(|value| value < 128)
        }
        _ => false,
    }
}

/// Removes the values of a term's bytes with which the term exceeds `most`, as far as each byte
/// alone decides it.
fn narrow_to(
    arena: &Arena,
    e: ExprId,
    most: u64,
    keep: &mut dyn FnMut(Variable, ByteSet) -> ByteSet,
) {
    match arena.node(e) {
        Node::Read { array, index } => {
            keep(Variable { array, index }, ByteSet::up_to(most));
        }
        Node::ZeroExtend { e } => narrow_to(arena, e, most, keep),
        Node::Concat { hi, lo } if arena.width(e) <= 64 => {
            let width = arena.width(lo);
            narrow_to(arena, hi, most >> width, keep);
            if most >> width == 0 {
                narrow_to(arena, lo, most & scalar::mask(width), keep);
            }
        }
        _ => {}
    }
}
