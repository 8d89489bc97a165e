//! Support: the symbolic bytes that a term depends on. Sets are interned, shared, and computed on
//! demand. Small ones are kept for all subterms as well; large ones only for the term, so that long
//! chains of terms over many bytes do not cost quadratic memory.

use crate::hash::FastMap;
use crate::node::{ArrayId, ExprId, Node, Variable};
use std::sync::Arc;

/// Sets up to this size are kept for every term that was asked about, and for its subterms.
const SMALL: usize = 32;
/// Marks a term whose set is not yet computed.
const LAZY: u32 = u32::MAX;
/// Marks a term whose set is large and computed on demand.
const LARGE: u32 = u32::MAX - 1;
const EMPTY: u32 = 0;

/// A sorted set of symbolic bytes; cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Support {
    mask: u64,
    variables: Arc<[Variable]>,
}

/// Returns the bit of a byte in masks.
fn mask_bit(variable: Variable) -> u64 {
    1 << (variable
        .index
        .wrapping_add(variable.array.0.wrapping_mul(23))
        % 64)
}

impl Support {
    fn new(variables: Arc<[Variable]>) -> Support {
        let mask = variables
            .iter()
            .fold(0, |mask, &variable| mask | mask_bit(variable));
        Support { mask, variables }
    }

    /// Returns the set of these bytes, in any order.
    pub fn from_variables(mut variables: Vec<Variable>) -> Support {
        variables.sort_unstable();
        variables.dedup();
        Support::new(variables.into())
    }

    /// Returns the bytes, in order.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Returns a mask with one bit per byte, several bytes sharing a bit: sets with disjoint masks
    /// are disjoint.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.variables.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }

    /// Returns whether the byte is in the set.
    pub fn contains(&self, variable: Variable) -> bool {
        self.mask & mask_bit(variable) != 0 && self.variables.binary_search(&variable).is_ok()
    }

    /// Returns whether the sets have no byte in common.
    pub fn is_disjoint(&self, other: &Support) -> bool {
        if self.mask & other.mask == 0 {
            return true;
        }
        if Arc::ptr_eq(&self.variables, &other.variables) {
            return self.is_empty();
        }
        let (small, large) = if self.len() <= other.len() {
            (self, other)
        } else {
            (other, self)
        };
        if small.len() * 8 < large.len() {
            return !small
                .variables
                .iter()
                .any(|&variable| large.contains(variable));
        }
        let (mut a, mut b) = (
            small.variables.iter().peekable(),
            large.variables.iter().peekable(),
        );
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            match x.cmp(y) {
                std::cmp::Ordering::Less => a.next(),
                std::cmp::Ordering::Greater => b.next(),
                std::cmp::Ordering::Equal => return false,
            };
        }
        true
    }
}

/// The support sets of all terms of an arena.
pub(crate) struct SupportTable {
    /// For each term the index of its set, or `LAZY`, or `LARGE`.
    of_term: Vec<u32>,
    /// For each term the mask of its set.
    masks: Vec<u64>,
    sets: Vec<Option<Support>>,
    ids: FastMap<Support, u32>,
    unions: FastMap<(u32, u32), u32>,
    free: Vec<u32>,
    /// Terms visited by the walk with the number `epoch`.
    stamps: Vec<u32>,
    epoch: u32,
}

impl SupportTable {
    pub(crate) fn new() -> SupportTable {
        let mut table = SupportTable {
            of_term: Vec::new(),
            masks: Vec::new(),
            sets: Vec::new(),
            ids: FastMap::default(),
            unions: FastMap::default(),
            free: Vec::new(),
            stamps: Vec::new(),
            epoch: 0,
        };
        table.intern(Support::new(Arc::new([])));
        table
    }

    fn intern(&mut self, set: Support) -> u32 {
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let id = match self.free.pop() {
            Some(id) => {
                self.sets[id as usize] = Some(set.clone());
                id
            }
            None => {
                self.sets.push(Some(set.clone()));
                (self.sets.len() - 1) as u32
            }
        };
        self.ids.insert(set, id);
        id
    }

    fn set(&self, id: u32) -> &Support {
        self.sets[id as usize]
            .as_ref()
            .expect("a set in use is stored")
    }

    fn trivial_union(a: u32, b: u32) -> Option<u32> {
        match (a, b) {
            (a, EMPTY) => Some(a),
            (EMPTY, b) => Some(b),
            (a, b) if a == b => Some(a),
            _ => None,
        }
    }

    /// Returns the union of two sets, each of which is computed or `LARGE`.
    fn union(&mut self, a: u32, b: u32) -> u32 {
        if let Some(id) = SupportTable::trivial_union(a, b) {
            return id;
        }
        if a == LARGE || b == LARGE {
            return LARGE;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&id) = self.unions.get(&key) {
            return id;
        }
        let mut all = self.set(a).variables.to_vec();
        all.extend_from_slice(&self.set(b).variables);
        let union = Support::from_variables(all);
        let id = if union.len() > SMALL {
            LARGE
        } else {
            self.intern(union)
        };
        self.unions.insert(key, id);
        id
    }

    fn next_epoch(&mut self) {
        self.stamps.resize(self.of_term.len(), 0);
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.stamps.fill(0);
            self.epoch = 1;
        }
    }

    /// Returns whether the walk visits the term for the first time.
    fn first_visit(&mut self, e: ExprId) -> bool {
        std::mem::replace(&mut self.stamps[e.index()], self.epoch) != self.epoch
    }

    /// Adds a new term. It must be called once for each term, after its operands.
    pub(crate) fn insert(&mut self, e: ExprId, node: &Node) {
        let (set, mask) = match *node {
            Node::Read { array, index } => {
                let variable = Variable { array, index };
                (
                    self.intern(Support::new(Arc::new([variable]))),
                    mask_bit(variable),
                )
            }
            _ => node.children().fold((EMPTY, 0), |(set, mask), child| {
                let of_child = self.of_term[child.index()];
                let union = SupportTable::trivial_union(set, of_child).unwrap_or(LAZY);
                // It is unknown whether the other set is a subset of the large one.
                let union = if union == LARGE { LAZY } else { union };
                (union, mask | self.masks[child.index()])
            }),
        };
        if e.index() == self.of_term.len() {
            self.of_term.push(set);
            self.masks.push(mask);
        } else {
            self.of_term[e.index()] = set;
            self.masks[e.index()] = mask;
        }
    }

    /// Drops the sets that no kept term uses.
    pub(crate) fn retain(&mut self, kept: &[bool]) {
        let mut used = vec![false; self.sets.len()];
        used[EMPTY as usize] = true;
        for (index, _) in kept.iter().enumerate().filter(|(_, kept)| **kept) {
            if let Some(used) = used.get_mut(self.of_term[index] as usize) {
                *used = true;
            }
        }
        for (id, _) in used.iter().enumerate().filter(|(_, used)| !**used) {
            if let Some(set) = self.sets[id].take() {
                self.ids.remove(&set);
                self.free.push(id as u32);
            }
        }
        self.unions.clear();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let variables: usize = self
            .sets
            .iter()
            .flatten()
            .map(|set| 64 + 8 * set.len())
            .sum();
        self.of_term.capacity() * 16 + variables + self.unions.capacity() * 16
    }

    /// Returns the bytes that a term depends on; `node_of` gives the node of a term.
    pub(crate) fn support(&mut self, e: ExprId, node_of: impl Fn(ExprId) -> Node) -> Support {
        if self.of_term[e.index()] == LAZY {
            self.make_supports(e, &node_of);
        }
        let id = match self.of_term[e.index()] {
            LARGE => self.collect_support(e, &node_of),
            id => id,
        };
        self.set(id).clone()
    }

    /// Computes the small sets of a term and its subterms, operands first.
    fn make_supports(&mut self, root: ExprId, node_of: &impl Fn(ExprId) -> Node) {
        let mut stack = vec![root];
        while let Some(&e) = stack.last() {
            let node = node_of(e);
            let before = stack.len();
            if self.of_term[e.index()] == LAZY {
                let lazy = |child: &ExprId| self.of_term[child.index()] == LAZY;
                stack.extend(node.children().filter(lazy));
            }
            if stack.len() > before {
                continue;
            }
            stack.pop();
            if self.of_term[e.index()] == LAZY {
                let set = node.children().fold(EMPTY, |set, child| {
                    let of_child = self.of_term[child.index()];
                    self.union(set, of_child)
                });
                self.of_term[e.index()] = set;
            }
        }
    }

    /// Computes a large set by walking down to the terms whose sets are known.
    fn collect_support(&mut self, root: ExprId, node_of: &impl Fn(ExprId) -> Node) -> u32 {
        self.next_epoch();
        let mut stack = vec![root];
        let mut variables: Vec<Variable> = Vec::new();
        while let Some(e) = stack.pop() {
            if !self.first_visit(e) {
                continue;
            }
            match self.of_term[e.index()] {
                LARGE | LAZY => stack.extend(node_of(e).children()),
                id => variables.extend_from_slice(&self.set(id).variables),
            }
        }
        let id = self.intern(Support::from_variables(variables));
        self.of_term[root.index()] = id;
        id
    }

    /// Returns the support mask of a term: one bit per byte, with several bytes sharing a bit.
    #[inline]
    pub(crate) fn mask(&self, e: ExprId) -> u64 {
        self.masks[e.index()]
    }

    /// Returns the byte that a term depends on, if it is exactly one.
    #[inline]
    pub(crate) fn single_byte(&self, e: ExprId) -> Option<(ArrayId, u32)> {
        if self.mask(e).count_ones() != 1 {
            return None;
        }
        // The set of a single byte is never a union, so its term is never lazy.
        let id = self.of_term[e.index()];
        if id >= LARGE {
            return None;
        }
        match *self.set(id).variables {
            [Variable { array, index }] => Some((array, index)),
            _ => None,
        }
    }
}
