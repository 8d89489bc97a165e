//! The path condition of one state, sliced into groups that share no variable.
//!
//! Bytes that the condition fixes to one value are substituted in everything that is added later,
//! so that fixed bytes do not connect groups.

use crate::persistent::{ByteMap, List};
use everett_expr::{Arena, BinaryOp, CompareOp, Digest128, ExprId, Node, Variable};
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;
use std::sync::Arc;

/// A set of width-1 terms that all hold. Cloning is O(1).
#[derive(Clone, Default)]
pub struct Constraints {
    inner: Arc<Inner>,
}

#[derive(Clone, Default)]
struct Inner {
    /// All constraints, in insertion order.
    list: List<ExprId>,
    groups: List<Option<Arc<Group>>>,
    /// Index of a byte's group, plus one.
    group_of: ByteMap<u32>,
    fixed: ByteMap<Fixed>,
    fixed_count: usize,
    /// The sum of digests of all constraints.
    digest: u128,
    contradiction: Option<ExprId>,
}

/// The value that the path condition fixes a byte to.
type Fixed = Option<u8>;

/// Constraints that share variables, directly or transitively.
#[derive(Clone, Default)]
pub(crate) struct Group {
    /// The constraints, in insertion order.
    pub ordered: Vec<ExprId>,
    /// The constraints, sorted by id for fast subset tests.
    pub sorted: Vec<ExprId>,
    /// All variables of the constraints, sorted.
    pub variables: Vec<Variable>,
    /// Hash of the set of constraints, independent of their order.
    pub hash: u128,
}

impl Group {
    /// Returns a copy with room for one more constraint, which is what copies are made for.
    fn with_room(&self) -> Group {
        let roomy = |list: &[ExprId]| {
            let mut copy = Vec::with_capacity(list.len() + 1);
            copy.extend_from_slice(list);
            copy
        };
        Group {
            ordered: roomy(&self.ordered),
            sorted: roomy(&self.sorted),
            variables: self.variables.clone(),
            hash: self.hash,
        }
    }

    fn insert(&mut self, e: ExprId) {
        if let Err(at) = self.sorted.binary_search(&e) {
            self.sorted.insert(at, e);
            self.ordered.push(e);
            self.hash = self.hash.wrapping_add(id_hash(e));
        }
    }

    fn absorb(&mut self, other: &Group) {
        for &e in &other.ordered {
            self.insert(e);
        }
        self.add_variables(&other.variables);
    }

    fn add_variables(&mut self, variables: &[Variable]) {
        for &variable in variables {
            if let Err(at) = self.variables.binary_search(&variable) {
                self.variables.insert(at, variable);
            }
        }
    }
}

/// Hashes an id by two independent 64-bit mixes, so that sums of hashes identify sets of ids.
pub(crate) fn id_hash(e: ExprId) -> u128 {
    let mix = |mut x: u64| {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let id = e.index() as u64 + 1;
    let low = mix(id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let high = mix(id.wrapping_mul(0xd1b5_4a32_d192_ed03) ^ 0x5851_f42d_4c95_7f2d);
    u128::from(high) << 64 | u128::from(low)
}

impl Constraints {
    /// Creates the empty set.
    pub fn new() -> Constraints {
        Constraints::default()
    }

    /// Adds a condition. Splits conjunctions and drops parts that are known to hold.
    pub fn add(&mut self, arena: &mut Arena, e: ExprId) {
        debug_assert_eq!(arena.width(e), 1, "a constraint has width 1");
        let mut pending: SmallVec<[ExprId; 8]> = smallvec![e];
        while let Some(e) = pending.pop() {
            let e = self.simplify(arena, e);
            if arena.is_true(e) {
                continue;
            }
            if let Some((first, second)) = conjuncts(arena, e) {
                pending.push(second);
                pending.push(first);
                continue;
            }
            if !self.is_known(arena, e) {
                self.insert(arena, e);
            }
        }
    }

    fn insert(&mut self, arena: &mut Arena, e: ExprId) {
        let support = arena.support(e);
        let inner = Arc::make_mut(&mut self.inner);
        inner.list.push(e);
        let one = Digest128::new().then_u64(arena.digest(e)).finish();
        inner.digest = inner.digest.wrapping_add(one);
        if support.is_empty() {
            // Constant false.
            inner.contradiction = Some(e);
            return;
        }
        let numbers = inner.group_numbers(support.variables());
        let home = match numbers.first() {
            Some(&number) => number,
            None => {
                inner.groups.push(None);
                inner.groups.len() - 1
            }
        };
        inner.join(home, &numbers, e, support.variables());
        let mut facts = Vec::new();
        fixed_bytes(arena, e, &mut facts);
        for (variable, value) in facts {
            inner.fixed.set(variable, Some(value));
            inner.fixed_count += 1;
        }
    }

    /// Returns the constraints, in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = ExprId> + '_ {
        self.inner.list.iter().copied()
    }

    /// Returns a digest of the constraints as a set, the same in every arena.
    pub fn digest(&self) -> u128 {
        self.inner.digest
    }

    /// Returns the number of constraints.
    pub fn len(&self) -> usize {
        self.inner.list.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the set contains exactly this constraint.
    pub fn contains(&self, e: ExprId) -> bool {
        self.inner.list.iter().any(|&known| known == e)
    }

    /// Like [`Constraints::contains`], but looks at one group only.
    fn is_known(&self, arena: &mut Arena, e: ExprId) -> bool {
        let support = arena.support(e);
        let Some(&first) = support.variables().first() else {
            return self.inner.contradiction == Some(e);
        };
        self.inner
            .group(first)
            .is_some_and(|group| group.sorted.binary_search(&e).is_ok())
    }

    /// Returns the constraints that share variables with `e`, directly or transitively. No other
    /// constraint can affect whether `e` is satisfiable.
    pub fn slice_for(&self, arena: &mut Arena, e: ExprId) -> Vec<ExprId> {
        let mut slice = Vec::new();
        self.groups_for(arena.support(e).variables(), &mut slice);
        slice
            .iter()
            .flat_map(|group| group.ordered.iter().copied())
            .collect()
    }

    /// Substitutes fixed bytes in `e`.
    pub(crate) fn simplify(&self, arena: &mut Arena, e: ExprId) -> ExprId {
        if self.inner.fixed_count == 0 {
            return e;
        }
        let mut replacements = HashMap::new();
        for &variable in arena.support(e).variables() {
            if let Some(value) = self.fixed_value(variable) {
                let byte = arena.read(variable.array, variable.index);
                replacements.insert(byte, arena.constant(8, u64::from(value)));
            }
        }
        if replacements.is_empty() {
            e
        } else {
            arena.substitute(e, &replacements)
        }
    }

    /// Returns the value of a byte, if the constraints fix it.
    pub(crate) fn fixed_value(&self, variable: Variable) -> Option<u8> {
        self.inner.fixed.get(variable)
    }

    /// Returns a constraint that is constant false, if one was added.
    pub(crate) fn contradiction(&self) -> Option<ExprId> {
        self.inner.contradiction
    }

    /// Stores the groups of these variables in `out`, each once, in the order of their creation.
    /// That order is the same for all paths with these constraints, while the order of variables
    /// depends on what other paths created.
    pub(crate) fn groups_for<'a>(&'a self, variables: &[Variable], out: &mut Vec<&'a Group>) {
        out.clear();
        for &variable in variables {
            if let Some(group) = self.inner.group(variable)
                && !out.iter().any(|known| std::ptr::eq(*known, group))
            {
                out.push(group);
            }
        }
        let number = |group: &&Group| self.inner.group_of.get(group.variables[0]);
        out.sort_unstable_by_key(number);
    }
}

impl Inner {
    fn group(&self, variable: Variable) -> Option<&Group> {
        let number = self.group_of.get(variable).checked_sub(1)?;
        self.groups.get(number as usize)?.as_deref()
    }

    /// Returns the indices of the groups of these variables, largest group first.
    fn group_numbers(&self, variables: &[Variable]) -> SmallVec<[usize; 8]> {
        let mut numbers: SmallVec<[usize; 8]> = variables
            .iter()
            .filter_map(|&variable| self.group_of.get(variable).checked_sub(1))
            .map(|number| number as usize)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let size = |number: usize| {
            self.groups
                .get(number)
                .and_then(Option::as_ref)
                .map_or(0, |group| group.ordered.len())
        };
        if let Some(largest) = (0..numbers.len()).max_by_key(|&at| size(numbers[at])) {
            numbers.swap(0, largest);
        }
        numbers
    }

    /// Merges the groups with these indices and the constraint `e` into one group at `home`.
    fn join(&mut self, home: usize, numbers: &[usize], e: ExprId, variables: &[Variable]) {
        let tag = u32::try_from(home + 1).expect("fewer than 2^32 groups");
        let before = self.groups.get(home).and_then(Option::as_ref);
        let mut joined = before.map_or_else(Group::default, |group| group.with_room());
        for &number in numbers.iter().filter(|&&number| number != home) {
            if let Some(other) = self.groups.get(number).cloned().flatten() {
                joined.absorb(&other);
                for &variable in &other.variables {
                    self.group_of.set(variable, tag);
                }
                self.groups.set(number, None);
            }
        }
        joined.insert(e);
        joined.add_variables(variables);
        self.groups.set(home, Some(Arc::new(joined)));
        for &variable in variables {
            self.group_of.set(variable, tag);
        }
    }
}

/// Returns the two halves of a conjunction, or of a negated disjunction.
pub(crate) fn conjuncts(arena: &mut Arena, e: ExprId) -> Option<(ExprId, ExprId)> {
    match arena.node(e) {
        Node::Binary {
            op: BinaryOp::And,
            a,
            b,
        } => Some((a, b)),
        Node::Not { e } => match arena.node(e) {
            Node::Binary {
                op: BinaryOp::Or,
                a,
                b,
            } => Some((arena.not(a), arena.not(b))),
            _ => None,
        },
        _ => None,
    }
}

/// Adds the bytes that the constraint alone fixes to `facts`: `byte == constant`, also for words of
/// several bytes.
fn fixed_bytes(arena: &Arena, e: ExprId, facts: &mut Vec<(Variable, u8)>) {
    let Node::Compare {
        op: CompareOp::Eq,
        a,
        b,
    } = arena.node(e)
    else {
        return;
    };
    let (word, constant) = if arena.is_const(b) { (a, b) } else { (b, a) };
    let Some(limbs) = arena.as_const_limbs(constant) else {
        return;
    };
    let mut pending = vec![(word, 0)];
    while let Some((word, low)) = pending.pop() {
        match arena.node(word) {
            Node::Read { array, index } => {
                facts.push((Variable { array, index }, byte_at(limbs, low)));
            }
            Node::Concat { hi, lo } => {
                pending.push((hi, low + arena.width(lo)));
                pending.push((lo, low));
            }
            // The bits above decide whether the constraint can hold, not the values of the bytes.
            Node::ZeroExtend { e } | Node::SignExtend { e } => pending.push((e, low)),
            _ => {}
        }
    }
}

fn byte_at(limbs: &[u64], low: u32) -> u8 {
    let limb = |at: u32| limbs.get(at as usize).copied().unwrap_or(0);
    let (at, shift) = (low / 64, low % 64);
    let mut bits = limb(at) >> shift;
    if shift > 56 {
        bits |= limb(at + 1) << (64 - shift);
    }
    bits as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(arena: &mut Arena, count: u32) -> Vec<ExprId> {
        let array = arena.array(0, "input", count);
        (0..count).map(|index| arena.read(array, index)).collect()
    }

    #[test]
    fn conjunctions_are_split_and_repetitions_dropped() {
        let mut arena = Arena::new();
        let byte = bytes(&mut arena, 2);
        let limit = arena.constant(8, 10);
        let (a, b) = (arena.ult(byte[0], limit), arena.ult(byte[1], limit));
        let both = arena.and(a, b);
        let mut constraints = Constraints::new();
        constraints.add(&mut arena, both);
        constraints.add(&mut arena, a);
        let truth = arena.bool_constant(true);
        constraints.add(&mut arena, truth);
        assert_eq!(constraints.len(), 2);
        assert!(constraints.contains(a) && constraints.contains(b) && !constraints.contains(both));
        assert_eq!(constraints.slice_for(&mut arena, byte[1]), [b]);
    }

    #[test]
    fn fixed_bytes_are_replaced_in_what_comes_later() {
        let mut arena = Arena::new();
        let byte = bytes(&mut arena, 4);
        let word = arena.concat_bytes(&byte[..2]);
        let value = arena.constant(16, 0x0201);
        let fixed = arena.eq(word, value);
        let mut constraints = Constraints::new();
        constraints.add(&mut arena, fixed);
        let sum = arena.add(byte[1], byte[2]);
        let limit = arena.constant(8, 7);
        let small = arena.ult(sum, limit);
        constraints.add(&mut arena, small);
        let slice = constraints.slice_for(&mut arena, byte[2]);
        assert_eq!(slice.len(), 1);
        assert_eq!(
            arena.support(slice[0]).len(),
            1,
            "the fixed byte does not tie the groups"
        );
        let one = arena.constant(8, 1);
        let known = arena.eq(byte[0], one);
        let before = constraints.len();
        constraints.add(&mut arena, known);
        assert_eq!(constraints.len(), before);
        let unknown = arena.not(known);
        constraints.add(&mut arena, unknown);
        assert!(constraints.contradiction().is_some());
    }

    proptest! {
        /// The slice of a byte is what is reachable from it over shared bytes, and a clone is
        /// unaffected by later additions.
        #[test]
        fn slices_are_closed_over_shared_bytes(
            pairs in prop::collection::vec((0usize..12, 0usize..12), 0..14),
            start in 0usize..12,
        ) {
            let mut arena = Arena::new();
            let byte = bytes(&mut arena, 12);
            let mut constraints = Constraints::new();
            let mut snapshots = Vec::new();
            for &(a, b) in &pairs {
                let sum = arena.add(byte[a], byte[b]);
                let limit = arena.constant(8, 77);
                let e = arena.ult(sum, limit);
                snapshots.push((constraints.clone(), constraints.len()));
                constraints.add(&mut arena, e);
            }
            for (snapshot, length) in snapshots {
                prop_assert_eq!(snapshot.iter().count(), length);
            }
            let mut reached = vec![start];
            loop {
                let more: Vec<usize> = pairs
                    .iter()
                    .flat_map(|&(a, b)| [(a, b), (b, a)])
                    .filter(|(a, b)| reached.contains(a) && !reached.contains(b))
                    .map(|(_, b)| b)
                    .collect();
                if more.is_empty() {
                    break;
                }
                reached.extend(more);
            }
            let mut expected: Vec<ExprId> = constraints
                .iter()
                .filter(|&e| {
                    let support = arena.support(e);
                    reached.iter().any(|&at| arena.as_variable(byte[at]).is_some_and(|v| support.contains(v)))
                })
                .collect();
            let mut slice = constraints.slice_for(&mut arena, byte[start]);
            slice.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(slice, expected);
        }
    }
}
