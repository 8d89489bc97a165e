//! Marks the terms that are still referred to, so that the arena can free all others.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use crate::arena::Arena;
use crate::hash::FastHasher;
use crate::node::ExprId;

/// Visits the terms of something that may be shared.
pub trait VisitTerms {
    /// Visits a term.
    fn term(&mut self, term: ExprId);

    /// Whether the terms of the part at this address are still to be visited. States share most of
    /// what they refer to, so a part is visited once: to visit all of every state takes a
    /// multiple of their memory.
    fn is_new(&mut self, address: usize) -> bool {
        let _ = address;
        true
    }
}

impl<F: FnMut(ExprId)> VisitTerms for F {
    fn term(&mut self, term: ExprId) {
        self(term);
    }
}

/// Terms that are marked. What is visited must stay where it is meanwhile: parts of it are known
/// by their addresses.
pub struct Marking<'a> {
    arena: &'a Arena,
    marked: Vec<bool>,
    /// Marked terms whose children are not.
    stack: Vec<ExprId>,
    visited: HashSet<usize, BuildHasherDefault<FastHasher>>,
}

/// Which terms of an arena are referred to.
pub struct Marks(Vec<bool>);

impl Arena {
    /// Frees all terms that are not reachable from the live ones. Ids of live terms do not change;
    /// freed ids are reused. Returns the number of freed terms.
    pub fn sweep(&mut self, live: impl Iterator<Item = ExprId>) -> usize {
        let mut marking = Marking::new(self);
        live.for_each(|term| marking.term(term));
        let marks = marking.finish();
        self.sweep_unmarked(&marks)
    }

    /// The same, where the live ones are marked already.
    pub fn sweep_unmarked(&mut self, Marks(marked): &Marks) -> usize {
        self.free_unmarked(marked)
    }
}

impl<'a> Marking<'a> {
    /// Nothing is marked yet.
    pub fn new(arena: &'a Arena) -> Marking<'a> {
        Marking {
            arena,
            marked: vec![false; arena.bound()],
            stack: Vec::new(),
            visited: HashSet::default(),
        }
    }

    /// What was marked.
    pub fn finish(self) -> Marks {
        Marks(self.marked)
    }
}

impl VisitTerms for Marking<'_> {
    fn term(&mut self, term: ExprId) {
        if self.marked[term.index()] {
            return;
        }
        self.stack.push(term);
        while let Some(term) = self.stack.pop() {
            if !std::mem::replace(&mut self.marked[term.index()], true) {
                self.stack.extend(self.arena.node(term).children());
            }
        }
    }

    fn is_new(&mut self, address: usize) -> bool {
        self.visited.insert(address)
    }
}
